//! The terminal: results to stdout, everything else to stderr, the live display, the `q` key.

mod closed;
mod columns;
mod keys;
mod line;
mod sample;
mod screen;
mod text;
mod view;
#[cfg(test)]
mod view_tests;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use plimsoll_conduct::output::OutputError;
use plimsoll_conduct::{Ends, StageView, Stop};
use plimsoll_report::format;
use plimsoll_report::table::is_harmful;

use self::keys::Keys;
use self::line::{LineDisplay, Meter, agents_in_words, beside_the_line};
use self::sample::Sampler;
use crate::{environment, flags};

/// How often keys are read, and the line is drawn.
const TICK: Duration = Duration::from_millis(250);
/// The screen is drawn at every so many ticks, so that it takes well below a hundredth of the
/// processor time of the client.
const TICKS_OF_SCREEN: u32 = 2;
/// When the first line is printed where there is no terminal, and how often further ones are.
const PLAIN_LINE_FIRST: Duration = Duration::from_secs(1);
const PLAIN_LINE: Duration = Duration::from_secs(10);
/// The width of text where there is no terminal.
const WIDTH_DEFAULT: u16 = 100;
/// No message of our own is as long; one that repeats an input may be.
const MESSAGE_CHARS_MAX: usize = 8_192;

/// Prints an error with its causes, once each.
pub(crate) fn complain(error: &anyhow::Error) {
    restore_terminal();
    let text: Vec<String> = error.chain().map(ToString::to_string).collect();
    // A file that was named `-` is written elsewhere, where nobody knows of this.
    let meant = match error.chain().find_map(|cause| cause.downcast_ref::<OutputError>()) {
        Some(OutputError::Write { name, path, .. }) if path == Path::new("-") => Some(name),
        _ => None,
    };
    match meant.filter(|_| closed::was_closed()) {
        Some(name) => write_stderr(&format!("plimsoll: {name}: {}", closed::SENTENCE)),
        None => write_stderr(&format!("plimsoll: {}", shortened(text.join(": ")))),
    }
}

/// Returns a message without the middle of what it repeats of an input that may be of any length.
fn shortened(text: String) -> String {
    let chars = text.chars().count();
    if chars <= MESSAGE_CHARS_MAX {
        return text;
    }
    let half = MESSAGE_CHARS_MAX / 2;
    let [begin, end]: [String; 2] =
        [text.chars().take(half).collect(), text.chars().skip(chars - half).collect()];
    format!("{begin} [{} characters left out] {end}", chars - 2 * half)
}

/// Prints a line for people.
pub(crate) fn write_stderr(line: &str) {
    let Some(line) = screen::say(plain(&flags::in_flags(line))) else { return };
    beside_the_line(|| {
        // There is nobody to tell when stderr is gone.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    });
}

/// Returns a text without what a terminal takes for a command: stores and agents may have said part
/// of it.
fn plain(text: &str) -> String {
    let is_command = |c: char| is_harmful(c) && c != '\n' && c != '\t';
    text.replace(is_command, "\u{fffd}")
}

/// Gives the terminal back as it was found. A display that goes on takes it again as soon as this
/// process is in the foreground.
pub(crate) fn restore_terminal() {
    screen::leave();
    keys::restore_modes();
}

/// Gives the terminal back until [`take_terminal_again`]: the process stops or ends.
pub(crate) fn give_terminal_back() {
    keys::give_back(true);
    restore_terminal();
}

/// Lets a display that goes on have the terminal again.
pub(crate) fn take_terminal_again() {
    keys::give_back(false);
}

/// How a run is shown while it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveMode {
    /// full on a terminal of 80 x 24 or more, line on a smaller one, plain where stderr is none
    #[default]
    Auto,
    /// The whole terminal: figures by kind, host and agent, failures with their last text
    Full,
    /// One line that changes
    Line,
    /// A line every 10 s
    Plain,
}

/// The smallest terminal that is taken over unasked.
const FULL_MIN: (u16, u16) = (80, 24);

impl LiveMode {
    /// Returns what it comes to here.
    fn settled(self) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !environment::has_dumb_terminal();
        let is_large = || {
            screen::size()
                .is_some_and(|(columns, rows)| columns >= FULL_MIN.0 && rows >= FULL_MIN.1)
        };
        match self {
            _ if !is_terminal => Self::Plain,
            Self::Full if keys::is_in_foreground() => Self::Full,
            Self::Auto if keys::is_in_foreground() && is_large() => Self::Full,
            Self::Auto | Self::Full | Self::Line => Self::Line,
            Self::Plain => Self::Plain,
        }
    }
}

/// Where and how to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    quiet: bool,
    /// Colours on stdout.
    pub(crate) color: bool,
    color_stderr: bool,
    live: LiveMode,
}

/// Returns what a stage that begins is announced with.
fn announcement(stage: &StageView<'_>) -> String {
    /// What takes no time worth a word is not told of.
    const BYTES_MIN: u64 = 1 << 30;
    let filled = stage.announced.fills.filter(|fills| fills.bytes >= BYTES_MIN).map(|fills| {
        let (count, bytes) = (format::count(fills.members_count), format::bytes(fills.bytes));
        format!(": {bytes} in {count} {}", if fills.are_files { "files" } else { "objects" })
    });
    let early = match stage.announced.ends {
        Some(Ends::Stage) => "; q or Ctrl-C ends it early, with a report",
        Some(Ends::Run) => "; q or Ctrl-C ends the run early, with a report",
        Some(Ends::Search) => "; q or Ctrl-C ends the search, with a report",
        None => "",
    };
    format!("{}{}{early}", stage.announced.doing, filled.unwrap_or_default())
}

/// Returns the width of stdout now: a terminal may be resized during a run.
pub(crate) fn width() -> u16 {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.filter(|size| size.ws_col > 0).map_or(WIDTH_DEFAULT, |size| size.ws_col)
}

impl Ui {
    pub(crate) fn new(quiet: bool, no_color: bool, live: LiveMode) -> Self {
        let stdout = std::io::stdout();
        let wants_color = !no_color && !environment::wants_no_color();
        Self {
            quiet,
            color: stdout.is_terminal() && wants_color,
            color_stderr: wants_color,
            live: live.settled(),
        }
    }

    /// Returns a way to print without colours and without a live display.
    pub(crate) fn plain() -> Self {
        Self { quiet: false, color: false, color_stderr: false, live: LiveMode::Plain }
    }

    /// Returns the same without notes and a live display.
    pub(crate) fn silent(self) -> Self {
        Self { quiet: true, ..self }
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
        screen::leave();
        // There is nobody to ask when stderr is gone, and then there is no answer either.
        let _ = write!(std::io::stderr().lock(), "{} [y/N] ", plain(question));
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
        screen::end();
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(_) if closed::was_closed() => bail!(closed::SENTENCE),
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
        self.note(&announcement(stage));
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

    /// Tells whether a stage takes the whole terminal.
    fn shows_screen(&self) -> bool {
        self.live == LiveMode::Full && screen::may_show()
    }

    fn show(&self, stage: &StageView<'_>, stop: &Stop, done: &AtomicBool) {
        let mut display = match self.live {
            _ if self.shows_screen() => Display::Full { sampler: Sampler::new(stage), ticks: 0 },
            LiveMode::Full | LiveMode::Line => Display::Line(LineDisplay::new(stage)),
            LiveMode::Auto | LiveMode::Plain => Display::plain(stage),
        };
        let has_keys = !matches!(display, Display::Plain { .. }) && keys::is_in_foreground();
        let keys = has_keys.then(Keys::take);
        while !done.load(Ordering::Acquire) {
            std::thread::park_timeout(TICK);
            if !done.load(Ordering::Acquire) {
                display.draw(self, stage);
            }
            if keys.as_ref().is_some_and(Keys::quit_pressed) {
                stop.stop_stage();
            }
        }
    }
}

/// A stage that is shown.
enum Display {
    Full { sampler: Sampler, ticks: u32 },
    Line(LineDisplay),
    Plain { meter: Meter, due: Duration },
}

impl Display {
    fn plain(stage: &StageView<'_>) -> Self {
        Self::Plain { meter: Meter::new(stage), due: PLAIN_LINE_FIRST }
    }

    fn draw(&mut self, ui: &Ui, stage: &StageView<'_>) {
        match self {
            Self::Full { sampler, ticks } => {
                if ticks.is_multiple_of(TICKS_OF_SCREEN) {
                    screen::show(sampler.look(stage), ui.color_stderr);
                }
                *ticks += 1;
            }
            // In the background it would write over what the shell shows.
            Self::Line(_) if !keys::may_touch(std::io::stderr()) => {}
            Self::Line(line) => {
                let (columns, rows) = screen::size().unwrap_or((width(), 1));
                line.draw(stage, usize::from(columns), usize::from(rows));
            }
            Self::Plain { meter, due } => {
                let elapsed = meter.tick(stage);
                if elapsed < *due {
                    return;
                }
                *due = if *due < PLAIN_LINE { PLAIN_LINE } else { *due + PLAIN_LINE };
                let agents = agents_in_words(&stage.live.parts());
                let text = meter.text(stage, elapsed, usize::MAX);
                ui.note(&format!("{}: {text}{agents}", stage.name));
            }
        }
    }
}

struct EndDisplay<'a>(&'a AtomicBool);

impl Drop for EndDisplay<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_repeats_a_long_input_keeps_both_of_its_ends() {
        let text = format!("w.yaml: {} is unknown", "é".repeat(1 << 20));
        let shown = shortened(text.clone());
        assert!(shown.starts_with("w.yaml: é") && shown.ends_with("é is unknown"));
        let left_out = text.chars().count() - MESSAGE_CHARS_MAX;
        assert!(shown.contains(&format!(" [{left_out} characters left out] ")));
        let fits = "e".repeat(MESSAGE_CHARS_MAX);
        assert_eq!(shortened(fits.clone()), fits);
    }
}
