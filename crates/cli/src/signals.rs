//! Signals that ask a command to end: the first one ends the step under way, a second one leaves at
//! once.
#![expect(clippy::disallowed_methods, reason = "a second signal leaves without another word")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_engine::{RunClock, StopFlag};
use plimsoll_model::{Clock, Moment};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::ui;

/// What a shell adds to the number of the signal that ended a program.
const EXIT_SIGNALLED: i32 = 128;

/// Signals that come this soon after another are the same wish, told twice.
const ECHO_MAX: Duration = Duration::from_millis(500);

/// The signal that was heard last; 0: none.
static HEARD: AtomicI32 = AtomicI32::new(0);

/// Returns the exit code of a command that a signal ended, as shells give it; `None` where none was
/// heard.
pub(crate) fn exit_code() -> Option<u8> {
    match HEARD.load(Ordering::SeqCst) {
        0 => None,
        signal => u8::try_from(EXIT_SIGNALLED + signal).ok(),
    }
}

/// Counts what the user asked for.
#[derive(Clone)]
pub(crate) struct Interrupts {
    stop: Arc<StopFlag>,
    /// Signals since the step began that another one ends at once.
    count: Arc<AtomicU32>,
    /// Signals in all, for whoever waits for one.
    total: watch::Sender<u32>,
}

/// The step was given up, as a signal asked for.
pub(crate) struct Stopped;

impl Default for Interrupts {
    fn default() -> Self {
        Self { stop: Arc::default(), count: Arc::default(), total: watch::Sender::new(0) }
    }
}

impl Interrupts {
    const REST_MAX: Duration = Duration::from_millis(50);

    /// Begins to listen for SIGINT, SIGTERM and SIGHUP; the last only where it is not ignored
    /// already, as under `nohup`.
    pub(crate) fn listen() -> Result<Self> {
        let interrupts = Self::default();
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let heeded = [SIGINT, SIGTERM].into_iter().chain(hangup);
        let mut signals = Signals::new(heeded).context("cannot listen for Ctrl-C")?;
        let heard = interrupts.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let clock = RunClock::start();
                let mut last: Option<Moment> = None;
                for signal in signals.forever() {
                    let now = clock.now();
                    // A shell that goes away, or `timeout`, sends one to the process and one to its
                    // group.
                    let is_echo = last.is_some_and(|last| now.since(last) < ECHO_MAX);
                    last = Some(now);
                    if !is_echo {
                        heard.hear(signal);
                    }
                }
            })
            .context("cannot listen for Ctrl-C")?;
        Ok(interrupts)
    }

    fn hear(&self, signal: i32) {
        HEARD.store(signal, Ordering::SeqCst);
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.stop.set();
            self.total.send_modify(|total| *total += 1);
        } else {
            ui::restore_terminal();
            std::process::exit(EXIT_SIGNALLED + signal);
        }
    }

    /// Begins a step that goes on although a signal has ended what came before, such as cleaning:
    /// the next signal gives it up, and one more leaves at once.
    pub(crate) fn begin_step(&self) {
        self.count.store(0, Ordering::SeqCst);
    }

    /// Carries `work` out, which a signal from now on gives up where it stands.
    pub(crate) fn unless_stopped<T>(
        &self,
        runtime: &tokio::runtime::Runtime,
        work: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        let mut total = self.total.subscribe();
        if self.is_step_stopped() {
            return Err(Stopped);
        }
        runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                _ = total.changed() => Err(Stopped),
            }
        })
    }

    /// Rests for `time` at most, less when somebody may have asked to stop.
    pub(crate) fn rest(&self, time: Duration) {
        std::thread::park_timeout(time.min(Self::REST_MAX));
    }

    /// Ends the stage under way as Ctrl-C does.
    pub(crate) fn stop_stage(&self) {
        self.stop.set();
    }

    /// Returns the flag that ends the stage under way.
    pub(crate) fn stop_flag(&self) -> &StopFlag {
        &self.stop
    }

    /// Returns whether a signal came since the step began.
    pub(crate) fn is_step_stopped(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

/// Tells whether this process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action the call only fills a struct, for which zeros are a value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
