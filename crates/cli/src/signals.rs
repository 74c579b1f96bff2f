//! Signals that ask a command to end: the first one ends the step under way, a second one leaves at
//! once.
#![expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "a second signal leaves without another word"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_conduct::Stop;
use plimsoll_engine::RunClock;
use plimsoll_model::{Clock, Moment};
use plimsoll_report::format;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

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

/// Returns the exit code of a server, which only a signal ends: that of the signal where it cut a
/// run short, so that a container that was evicted does not look as if all went well.
pub(crate) fn exit_code_of_server(was_busy: bool) -> ExitCode {
    exit_code().filter(|_| was_busy).map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Begins to listen for SIGINT, SIGTERM and SIGHUP; the last only where it is not ignored already,
/// as under `nohup`. Before SIGTSTP (Ctrl-Z) and SIGQUIT (Ctrl-\) take their course the terminal
/// is given back.
pub(crate) fn listen() -> Result<Stop> {
    let stop = Stop::default();
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let suspend = (!is_ignored(SIGTSTP)).then_some(SIGTSTP);
    let quit = (!is_ignored(SIGQUIT)).then_some(SIGQUIT);
    let heeded = [SIGINT, SIGTERM].into_iter().chain(hangup).chain(suspend).chain(quit);
    let mut signals = Signals::new(heeded).context("cannot listen for Ctrl-C")?;
    let heard = stop.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let clock = RunClock::start();
            let mut last: Option<Moment> = None;
            for signal in signals.forever() {
                match signal {
                    SIGTSTP => {
                        suspend_process(&clock);
                        continue;
                    }
                    SIGQUIT => quit_process(),
                    _ => {}
                }
                let now = clock.now();
                // A shell that goes away, or `timeout`, sends one to the process and one to its
                // group.
                // Whoever presses Ctrl-C without pause is heard again after that time.
                if last.is_none_or(|last| now.since(last) >= ECHO_MAX) {
                    last = Some(now);
                    hear(signal, &heard);
                }
            }
        })
        .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// Waits until somebody wants this process to end.
pub(crate) fn rest(stop: &Stop, mut each: impl FnMut() -> Result<()>) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(100);
    while !stop.flag().is_set() {
        stop.rest(LOOK);
        each()?;
    }
    Ok(())
}

fn hear(signal: i32, stop: &Stop) {
    HEARD.store(signal, Ordering::SeqCst);
    if !stop.request() {
        ui::give_terminal_back();
        std::process::exit(EXIT_SIGNALLED + signal);
    }
}

/// Stops this process as the signal would have, with the terminal as the shell needs it. Returns
/// when it is continued.
fn suspend_process(clock: &RunClock) {
    ui::give_terminal_back();
    let stopped = clock.now();
    // What cannot be stopped goes on.
    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
    ui::take_terminal_again();
    let pause = format::duration(clock.now().since(stopped));
    ui::write_stderr(&format!(
        "warning: plimsoll itself was stopped for {pause} (Ctrl-Z): rates and latencies include that \
         time, outages do not"
    ));
}

/// Ends this process as Ctrl-\\ does, with the terminal as the shell needs it.
fn quit_process() {
    ui::give_terminal_back();
    // It does not return.
    let _ = signal_hook::low_level::emulate_default_handler(SIGQUIT);
}

/// Lets a write beyond `ulimit -f` fail as one to a full disk does, where it would end the process
/// without a word. That takes a handler: unlike a signal that is ignored, child processes do not
/// inherit one.
pub(crate) fn outlive_file_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        // Where it is refused, the signal takes its course.
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
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
