//! The terminal: results to stdout, everything else to stderr, the live display, the `q` key.

use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_conduct::{Goal, StageView, Stop};
use plimsoll_engine::LiveCounts;
use plimsoll_model::{ByteRate, Moment, OpKind};
use plimsoll_report::format;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{environment, flags};

/// How often the live display is drawn.
const TICK: Duration = Duration::from_millis(250);
/// When the first line is printed where there is no terminal, and how often further ones are.
const PLAIN_LINE_FIRST: Duration = Duration::from_secs(1);
const PLAIN_LINE: Duration = Duration::from_secs(10);
/// The width of text where there is no terminal.
const WIDTH_DEFAULT: u16 = 100;

/// The terminal's modes as they were found, to be put back.
static FOUND_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Prints an error with its causes, once each.
pub(crate) fn complain(error: &anyhow::Error) {
    restore_terminal();
    let text: Vec<String> = error.chain().map(ToString::to_string).collect();
    write_stderr(&format!("plimsoll: {}", text.join(": ")));
}

/// Prints a line for people.
pub(crate) fn write_stderr(line: &str) {
    // There is nobody to tell when stderr is gone.
    let _ = writeln!(std::io::stderr().lock(), "{}", plain(&flags::in_flags(line)));
}

/// Returns a text without what a terminal takes for a command: stores and agents may have said part
/// of it.
fn plain(text: &str) -> String {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.replace(is_command, "\u{fffd}")
}

/// Puts the terminal's modes back as they were found.
pub(crate) fn restore_terminal() {
    let found = FOUND_MODES.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(modes) = found {
        // There is nobody to tell when the terminal is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Where and how to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    quiet: bool,
    /// Colours on stdout.
    pub(crate) color: bool,
    /// The width of stdout.
    pub(crate) width: u16,
    live: bool,
}

impl Ui {
    pub(crate) fn new(quiet: bool, no_color: bool) -> Self {
        let stdout = std::io::stdout();
        let terminal = stdout.is_terminal();
        let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|size| size.ws_col > 0);
        Self {
            quiet,
            color: terminal && !no_color && !environment::wants_no_color(),
            width: size.map_or(WIDTH_DEFAULT, |size| size.ws_col),
            live: std::io::stderr().is_terminal() && !quiet,
        }
    }

    /// Returns a way to print without colours and without a live display.
    pub(crate) fn plain() -> Self {
        Self { quiet: false, color: false, width: WIDTH_DEFAULT, live: false }
    }

    /// Returns the same without notes and a live display.
    pub(crate) fn silent(self) -> Self {
        Self { quiet: true, live: false, ..self }
    }

    /// Prints a line about what goes on.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            write_stderr(line);
        }
    }

    /// Prints a warning, also when asked to be quiet.
    pub(crate) fn warn(&self, line: &str) {
        write_stderr(&format!("warning: {line}"));
    }

    /// Asks a question that `y` answers with yes; `None` where nobody is there to answer.
    pub(crate) fn ask(&self, question: &str) -> Result<Option<bool>> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Ok(None);
        }
        // There is nobody to ask when stderr is gone, and then there is no answer either.
        let _ = write!(std::io::stderr().lock(), "{question} [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
    }

    /// Prints a text that people read, in the flags of the command.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        self.result(&flags::in_flags(text))
    }

    /// Prints a result. A reader that has gone away is no error.
    pub(crate) fn result(&self, text: &str) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to stdout"),
        }
    }

    /// Runs `work` with a live display of `stage`, and the `q` key as a way to end it early.
    pub(crate) fn watch<T>(
        &self,
        stage: &StageView<'_>,
        stop: &Stop,
        work: impl FnOnce() -> T,
    ) -> T {
        if self.quiet {
            return work();
        }
        self.note(stage.doing);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let done = &done;
            let display = scope.spawn(move || self.show(stage, stop, done));
            // The display must end even when the work panics, or the scope would wait for it
            // forever.
            let end = EndDisplay(done);
            let result = work();
            drop(end);
            display.thread().unpark();
            result
        })
    }

    fn show(&self, stage: &StageView<'_>, stop: &Stop, done: &AtomicBool) {
        let keys = self.live.then(Keys::take).flatten();
        let bar = self.live.then(progress_bar);
        let mut meter = Meter::new(stage);
        let mut line_due = PLAIN_LINE_FIRST;
        while !done.load(Ordering::Acquire) {
            std::thread::park_timeout(TICK);
            let elapsed = meter.tick(stage);
            if let Some(bar) = &bar {
                bar.set_position((meter.share(stage, elapsed) * 1_000.0) as u64);
                bar.set_prefix(stage.name.to_owned());
                bar.set_message(meter.text(stage, elapsed));
            } else if elapsed >= line_due {
                line_due = if line_due < PLAIN_LINE { PLAIN_LINE } else { line_due + PLAIN_LINE };
                self.note(&format!("{}: {}", stage.name, meter.text(stage, elapsed)));
            }
            if keys.as_ref().is_some_and(Keys::quit_pressed) {
                stop.stop_stage();
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
}

struct EndDisplay<'a>(&'a AtomicBool);

impl Drop for EndDisplay<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix} {bar:16} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("━╸─"));
    bar
}

/// Turns counters into rates.
struct Meter {
    started: Moment,
    seen_at: Moment,
    seen: LiveCounts,
    now: LiveCounts,
    ops_per_sec: f64,
    bytes_per_sec: f64,
    latency: Option<Duration>,
}

impl Meter {
    /// Rates are taken over at least this long.
    const SPAN_MIN: Duration = Duration::from_secs(1);

    fn new(stage: &StageView<'_>) -> Self {
        let now = stage.clock.now();
        Self {
            started: now,
            seen_at: now,
            seen: LiveCounts::default(),
            now: LiveCounts::default(),
            ops_per_sec: 0.0,
            bytes_per_sec: 0.0,
            latency: None,
        }
    }

    /// Reads the counters and returns how long the stage has run.
    fn tick(&mut self, stage: &StageView<'_>) -> Duration {
        let at = stage.clock.now();
        self.now = OpKind::ALL.iter().fold(LiveCounts::default(), |sum, &kind| {
            let counts = stage.live.counts(kind);
            LiveCounts {
                ok: sum.ok + counts.ok,
                failed: sum.failed + counts.failed,
                bytes: sum.bytes + counts.bytes,
                latency_ns: sum.latency_ns.wrapping_add(counts.latency_ns),
            }
        });
        let span = at.since(self.seen_at);
        if span >= Self::SPAN_MIN {
            let seconds = span.as_secs_f64();
            let ok = self.now.ok - self.seen.ok;
            self.ops_per_sec = ok as f64 / seconds;
            self.bytes_per_sec = (self.now.bytes - self.seen.bytes) as f64 / seconds;
            let latency_ns = self.now.latency_ns.wrapping_sub(self.seen.latency_ns);
            self.latency = latency_ns.checked_div(ok).map(Duration::from_nanos);
            (self.seen, self.seen_at) = (self.now, at);
        }
        at.since(self.started)
    }

    fn share(&self, stage: &StageView<'_>, elapsed: Duration) -> f64 {
        let share = match stage.goal {
            Goal::Ops(ops) => (self.now.ok + self.now.failed) as f64 / ops.max(1) as f64,
            Goal::Time(time) => elapsed.as_secs_f64() / time.as_secs_f64(),
        };
        share.min(1.0)
    }

    fn text(&self, stage: &StageView<'_>, elapsed: Duration) -> String {
        let progress = match stage.goal {
            Goal::Ops(ops) => {
                let done = self.now.ok + self.now.failed;
                format!("{} of {}", format::count(done), format::count(ops))
            }
            Goal::Time(time) if elapsed.as_secs() > time.as_secs() => {
                let waited_for = stage.live.waited_for();
                let waited_for = waited_for.as_deref().unwrap_or("operations under way");
                format!("{0} of {0} s, waiting for {waited_for}", time.as_secs())
            }
            Goal::Time(time) => format!("{} of {} s", elapsed.as_secs(), time.as_secs()),
        };
        let errors = match self.now.failed {
            0 => "no errors".to_owned(),
            1 => "1 ERROR".to_owned(),
            failed => format!("{} ERRORS", format::count(failed)),
        };
        let mut rate = format!("{} op/s", format::count(self.ops_per_sec.round() as u64));
        if self.now.bytes > 0 {
            rate = format!("{rate}, {}", format::byte_rate(ByteRate(self.bytes_per_sec)));
        }
        let latency = self
            .latency
            .map_or(String::new(), |latency| format!(", {} mean", format::duration(latency)));
        format!("{progress}, {errors}: {rate}{latency}")
    }
}

/// The keyboard, read key by key. Signals still work, so that Ctrl-C stays Ctrl-C.
struct Keys;

impl Keys {
    fn take() -> Option<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        // A job in the background would be stopped for touching the terminal.
        if rustix::termios::tcgetpgrp(&stdin).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let found = tcgetattr(&stdin).ok()?;
        let mut modes = found.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        *FOUND_MODES.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        tcsetattr(&stdin, OptionalActions::Now, &modes).ok()?;
        Some(Self)
    }

    /// Tells whether `q` was pressed since it was asked last.
    fn quit_pressed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = std::io::stdin();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        let mut quit = false;
        while poll(&mut waiting, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            let mut key = [0];
            match stdin.lock().read(&mut key) {
                Ok(1) => quit |= matches!(key[0], b'q' | b'Q'),
                _ => break,
            }
        }
        quit
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore_terminal();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use plimsoll_engine::Live;
    use plimsoll_model::{Clock, SharedClock};

    use super::*;

    /// Shows what it is set to.
    #[derive(Default)]
    struct Set(AtomicU64);

    impl Clock for Set {
        fn now(&self) -> Moment {
            Moment::from_ns(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn no_more_time_is_shown_than_a_stage_has() {
        let set = Arc::new(Set::default());
        let clock: SharedClock = Arc::clone(&set) as SharedClock;
        let live = Arc::new(Live::new(1));
        let goal = Goal::Time(Duration::from_secs(8));
        let stage = StageView { name: "main", doing: "main", goal, live: &live, clock: &clock };
        let mut meter = Meter::new(&stage);
        let mut progress = |seconds: u64| {
            set.0.store(seconds * 1_000_000_000, Ordering::Relaxed);
            let elapsed = meter.tick(&stage);
            let text = meter.text(&stage, elapsed);
            text.split_once(", no errors").expect("it says so").0.to_owned()
        };
        assert_eq!(progress(3), "3 of 8 s");
        assert_eq!(progress(8), "8 of 8 s");
        assert_eq!(progress(9), "8 of 8 s, waiting for operations under way");
        live.wait_for(Some("agents a, b".to_owned()));
        assert_eq!(progress(10), "8 of 8 s, waiting for agents a, b");
    }
}
