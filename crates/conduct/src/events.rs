//! Commands of the user's own, run at instants of the first stage that measures, or of the search
//! whose first probe that is. They come from a
//! command line only: no workload, agent or console has a way to give any.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_engine::Live;
use plimsoll_model::{Moment, SharedClock};
use plimsoll_record::schema;

use crate::Stop;
use crate::child::Group;

/// So much of what a command writes is kept.
pub const OUTPUT_BYTES_MAX: usize = 16 * 1_024;
/// How long a command may go on after the last stage.
pub const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked whether a command has ended, or is to.
const LOOK: Duration = Duration::from_millis(2);
/// What a command wrote and has not come so long after its end is not kept.
const OUTPUT_TIME_MAX: Duration = Duration::from_millis(200);

/// The stage goes on.
const RUNS: u8 = 0;
/// The stage has ended: nothing begins any more.
const OVER: u8 = 1;
/// The stages are over, and so is the time that commands had after them.
const LATE: u8 = 2;
/// All that commands have started is to end.
const END: u8 = 3;

/// A command and when it is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAsked {
    /// How long after the start of the stage.
    pub after: Duration,
    /// What the shell is given.
    pub command: String,
}

/// Takes out of a text what nobody may read.
pub type Hide = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The commands of a run.
pub struct Events {
    asked: Vec<EventAsked>,
    hide: Hide,
    begun: Vec<Begun>,
    state: Arc<AtomicU8>,
    /// The stage that goes on.
    stage: Arc<AtomicU8>,
}

/// A command with the thread that looks after it.
struct Begun {
    event: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of a command.
struct Seen {
    event: schema::Event,
    /// Whether its shell has ended, or will not be started.
    is_done: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self::new(Vec::new(), Arc::new(|text| text.to_owned()))
    }
}

impl Events {
    /// Returns commands to be run; what is kept of them goes through `hide`.
    pub fn new(asked: Vec<EventAsked>, hide: Hide) -> Self {
        Self { asked, hide, begun: Vec::new(), state: Arc::default(), stage: Arc::default() }
    }

    /// Has the commands run from the start of the stage that begins, unless they are from that of
    /// one before.
    pub(crate) fn begin(&mut self, stage: u8, live: &Arc<Live>, clock: &SharedClock) {
        self.stage.store(stage, Ordering::SeqCst);
        for asked in std::mem::take(&mut self.asked) {
            let event = schema::Event {
                stage_index: stage,
                asked_after_ns: u64::try_from(asked.after.as_nanos()).unwrap_or(u64::MAX),
                command: (self.hide)(&asked.command),
                began_ns: None,
                ended_ns: None,
                exit_code: None,
                signal: None,
                output: String::new(),
                output_bytes: 0,
                reason: None,
            };
            let event = Arc::new(Mutex::new(Seen { event, is_done: false }));
            let watch = Watch {
                asked,
                event: Arc::clone(&event),
                live: Arc::clone(live),
                clock: Arc::clone(clock),
                state: Arc::clone(&self.state),
                stage: Arc::clone(&self.stage),
                hide: Arc::clone(&self.hide),
            };
            let thread = thread::Builder::new().name("event".to_owned());
            let thread = thread.spawn(move || watch.carry_out());
            if let Err(error) = &thread {
                not_run(&event, &format!("not run: {error}"));
            }
            self.begun.push(Begun { event, thread: thread.ok() });
        }
    }

    /// Has nothing begin any more, as the stage has ended in which the commands were to be run,
    /// unless it is a probe of a search that goes on; stages before it, which only prepare, end
    /// nothing.
    pub(crate) fn stage_ended(&self, is_probe: bool) {
        if is_probe || self.begun.is_empty() {
            return;
        }
        let _ = self.state.compare_exchange(RUNS, OVER, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Tells whether a command still runs.
    pub(crate) fn is_running(&self) -> bool {
        let runs = |seen: &Seen| !seen.is_done && seen.event.began_ns.is_some();
        self.begun.iter().any(|begun| runs(&lock(&begun.event)))
    }

    fn is_done(&self) -> bool {
        self.begun.iter().all(|begun| lock(&begun.event).is_done)
    }

    /// Waits for the commands that still run, not longer than they may, nor than to a request to
    /// stop; what goes on then is ended. Returns what is known of all.
    pub(crate) fn await_all(&self, stop: &Stop, clock: &SharedClock) -> Vec<schema::Event> {
        self.stage_ended(false);
        if !self.is_done() {
            stop.begin_step();
            let end = clock.now().after(GRACE);
            while clock.now() < end && !stop.is_step_stopped() && !self.is_done() {
                stop.rest(LOOK);
            }
            self.state.store(LATE, Ordering::SeqCst);
            // Threads look often, and a shell that is killed ends.
            while !self.is_done() {
                stop.rest(LOOK);
            }
        }
        self.begun.iter().map(|begun| lock(&begun.event).event.clone()).collect()
    }

    /// Ends what commands have left behind.
    pub(crate) fn end(&mut self) {
        self.state.store(END, Ordering::SeqCst);
        for begun in &mut self.begun {
            let _ = begun.thread.take().map(JoinHandle::join);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.end();
    }
}

/// What looks after one command.
struct Watch {
    asked: EventAsked,
    event: Arc<Mutex<Seen>>,
    live: Arc<Live>,
    clock: SharedClock,
    state: Arc<AtomicU8>,
    stage: Arc<AtomicU8>,
    hide: Hide,
}

impl Watch {
    fn state(&self) -> u8 {
        self.state.load(Ordering::SeqCst)
    }

    /// Waits for the instant; `false` where the stage ended before.
    fn await_instant(&self) -> bool {
        loop {
            if self.state() != RUNS {
                return false;
            }
            let left = match self.live.begun() {
                Some(begun) => begun.after(self.asked.after).since(self.clock.now()),
                None => LOOK,
            };
            if left.is_zero() {
                return true;
            }
            thread::park_timeout(left.min(LOOK * 10));
        }
    }

    fn carry_out(self) {
        if !self.await_instant() {
            return not_run(&self.event, "not run: the stage had ended before");
        }
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.asked.command);
        let began = self.clock.now();
        let mut group = match Group::spawn(&mut command, OUTPUT_BYTES_MAX) {
            Ok(group) => group,
            Err(error) => return not_run(&self.event, &format!("not run: {error}")),
        };
        let mut seen = lock(&self.event);
        seen.event.began_ns = Some(began.as_ns());
        // Of a search it may be a later probe.
        seen.event.stage_index = self.stage.load(Ordering::SeqCst);
        drop(seen);
        let ended = loop {
            match group.ended() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if self.state() >= LATE => {
                    break Err("ended by the run, which was over".to_owned());
                }
                Ok(None) => thread::park_timeout(LOOK),
                Err(error) => break Err(format!("lost: {error}")),
            }
        };
        let at = self.clock.now();
        if ended.is_err() {
            group.end();
        }
        group.await_output(OUTPUT_TIME_MAX);
        self.note(&group, ended, at);
        // What it has left behind, such as a server that it started, goes on until the run is over.
        while self.state() < END {
            thread::park_timeout(LOOK * 10);
        }
    }

    fn note(&self, group: &Group, ended: Result<std::process::ExitStatus, String>, at: Moment) {
        let output = group.output();
        let mut seen = lock(&self.event);
        let event = &mut seen.event;
        event.output = (self.hide)(&String::from_utf8_lossy(&output.kept));
        event.output_bytes = output.bytes;
        event.ended_ns = Some(at.as_ns());
        match ended {
            Ok(status) => {
                event.exit_code = status.code();
                event.signal = status.signal();
            }
            Err(reason) => event.reason = Some(reason),
        }
        seen.is_done = true;
    }
}

fn lock(event: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    event.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_run(event: &Mutex<Seen>, reason: &str) {
    let mut seen = lock(event);
    seen.event.reason = Some(reason.to_owned());
    seen.is_done = true;
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::RunClock;

    use super::*;

    /// Runs commands at the start of a stage, which ends when `until` is done with them.
    fn run(commands: &[&str], until: impl Fn(&Events)) -> Vec<schema::Event> {
        let asked =
            |command: &&str| EventAsked { after: Duration::ZERO, command: (*command).to_owned() };
        let hide: Hide = Arc::new(|text| text.replace("hush", "*"));
        let mut events = Events::new(commands.iter().map(asked).collect(), hide);
        let clock: SharedClock = Arc::new(RunClock::start());
        let live = Arc::new(Live::new(1));
        events.begin(1, &live, &clock);
        live.begin(clock.now());
        until(&events);
        events.stage_ended(false);
        events.await_all(&Stop::default(), &clock)
    }

    fn all_done(events: &Events) {
        while !events.is_done() {
            thread::yield_now();
        }
    }

    #[test]
    fn what_a_command_wrote_and_how_it_ended_is_kept() {
        let said = "echo out hush; echo err >&2; exit 3";
        let events = run(&[said, "kill -9 $$", "yes | head -c 100000"], all_done);
        let [first, second, third] = &events[..] else { panic!("{events:?}") };
        assert_eq!((first.exit_code, first.signal), (Some(3), None));
        assert!(first.output.contains("out *\n") && first.output.contains("err\n"), "{first:?}");
        assert_eq!(first.command, "echo out *; echo err >&2; exit 3");
        assert_eq!(first.stage_index, 1);
        assert!(first.ended_ns >= first.began_ns && first.began_ns.is_some());
        assert_eq!((second.exit_code, second.signal), (None, Some(9)));
        assert_eq!((third.output.len(), third.output_bytes), (OUTPUT_BYTES_MAX, 100_000));
    }

    #[test]
    fn a_command_whose_stage_has_ended_is_not_run() {
        let mut events = Events::new(
            vec![EventAsked { after: Duration::from_secs(3_600), command: "exit 1".to_owned() }],
            Arc::new(str::to_owned),
        );
        let clock: SharedClock = Arc::new(RunClock::start());
        let live = Arc::new(Live::new(1));
        live.begin(clock.now());
        events.begin(0, &live, &clock);
        events.stage_ended(false);
        let [event] = &events.await_all(&Stop::default(), &clock)[..] else { panic!() };
        assert_eq!((event.began_ns, event.exit_code), (None, None));
        assert_eq!(event.reason.as_deref(), Some("not run: the stage had ended before"));
    }

    #[test]
    fn a_stage_that_ends_before_any_command_was_begun_ends_none() {
        let asked = vec![EventAsked { after: Duration::ZERO, command: "echo ran".to_owned() }];
        let mut events = Events::new(asked, Arc::new(str::to_owned));
        // The stage that prepares.
        events.stage_ended(false);
        let clock: SharedClock = Arc::new(RunClock::start());
        let live = Arc::new(Live::new(1));
        live.begin(clock.now());
        events.begin(1, &live, &clock);
        all_done(&events);
        assert_eq!(events.await_all(&Stop::default(), &clock)[0].output, "ran\n");
    }

    #[test]
    fn a_command_that_goes_on_ends_with_all_that_it_has_started() {
        let clock: SharedClock = Arc::new(RunClock::start());
        let live = Arc::new(Live::new(1));
        let command = "sleep 300 & echo $!; sleep 300".to_owned();
        let asked = vec![EventAsked { after: Duration::ZERO, command }];
        let mut events = Events::new(asked, Arc::new(str::to_owned));
        live.begin(clock.now());
        events.begin(0, &live, &clock);
        while lock(&events.begun[0].event).event.began_ns.is_none() {
            thread::yield_now();
        }
        events.stage_ended(false);
        let (stop, is_over) = (Stop::default(), Arc::new(AtomicU8::new(0)));
        let (asks, over) = (stop.clone(), Arc::clone(&is_over));
        // The user does not want to wait.
        let asking = thread::spawn(move || {
            while over.load(Ordering::SeqCst) == 0 {
                asks.request();
                thread::yield_now();
            }
        });
        let found = events.await_all(&stop, &clock);
        is_over.store(1, Ordering::SeqCst);
        asking.join().unwrap();
        assert_eq!(found[0].reason.as_deref(), Some("ended by the run, which was over"));
        assert_eq!(found[0].exit_code, None);
    }
}
