//! The whole terminal as a live display.
//!
//! The screen stays from stage to stage; what is said meanwhile stands at its foot, and is printed
//! when it is left.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};

use rustix::termios::tcgetwinsize;

use super::keys::may_touch;
use super::sample::View;
use super::text::{Line, changes};
use super::view::frame;

/// Shows the alternate screen and hides the cursor: private modes of xterm, which all terminals
/// that move a cursor know today.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Undoes both.
const LEAVE: &str = "\x1b[?1049l\x1b[?25h";
/// So many of the last lines that were said are kept for the foot.
const SAID_MAX: usize = 64;

/// The only screen there is.
static SCREEN: Mutex<Screen> =
    Mutex::new(Screen { drawn: None, is_over: false, said: VecDeque::new(), held: Vec::new() });

struct Screen {
    /// While it is shown.
    drawn: Option<Drawn>,
    /// Whether results have been printed, which it must not cover again.
    is_over: bool,
    said: VecDeque<String>,
    /// What is printed when it is left.
    held: Vec<String>,
}

struct Drawn {
    /// Columns and rows.
    size: (u16, u16),
    /// What it shows, row by row; nothing after its size has changed.
    lines: Vec<Line>,
    view: View,
    color: bool,
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the columns and rows of the terminal on stderr.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Tells whether it may be shown: results stay visible once they are printed.
pub(super) fn may_show() -> bool {
    !screen().is_over
}

/// Shows `view`, now and until something else is shown. In the background nothing is drawn.
pub(super) fn show(view: View, color: bool) {
    let mut screen = screen();
    // Asked with the lock held, so that nobody gives the terminal back in between.
    if !may_touch(std::io::stderr()) {
        return;
    }
    let said = screen.said.make_contiguous().to_vec();
    if screen.drawn.is_none() {
        screen.drawn = Drawn::enter(color);
    }
    if let Some(drawn) = &mut screen.drawn {
        drawn.view = view;
        drawn.draw(&said);
    }
}

/// Takes a line that was said. Returns it where it is to be printed, as no screen is shown.
pub(super) fn say(line: String) -> Option<String> {
    let mut screen = screen();
    screen.said.extend(line.lines().map(str::to_owned));
    let surplus = screen.said.len().saturating_sub(SAID_MAX);
    screen.said.drain(..surplus);
    let said = screen.said.make_contiguous().to_vec();
    let Some(drawn) = &mut screen.drawn else { return Some(line) };
    drawn.draw(&said);
    screen.held.push(line);
    None
}

/// Leaves the screen, if it is shown, and prints what was said meanwhile.
pub(super) fn leave() {
    screen().leave();
}

/// The same for good: results follow.
pub(super) fn end() {
    let mut screen = screen();
    screen.leave();
    screen.is_over = true;
}

impl Screen {
    fn leave(&mut self) {
        if self.drawn.take().is_none() {
            return;
        }
        let mut stderr = std::io::stderr().lock();
        // There is nobody to tell when the terminal is gone.
        let _ = stderr.write_all(LEAVE.as_bytes());
        self.held.drain(..).for_each(|line| {
            let _ = writeln!(stderr, "{line}");
        });
    }
}

impl Drawn {
    /// Takes the terminal over; `None` where that is not possible.
    fn enter(color: bool) -> Option<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(leave_before_panics_are_told);
        let size = size()?;
        std::io::stderr().write_all(ENTER.as_bytes()).ok()?;
        Some(Self { size, lines: Vec::new(), view: View::default(), color })
    }

    fn draw(&mut self, said: &[String]) {
        let Some(size) = size() else { return };
        if size != self.size {
            self.size = size;
            self.lines.clear();
        }
        let (columns, rows) = (usize::from(size.0), usize::from(size.1));
        let lines = frame(&self.view, said, columns, rows);
        let changes = changes(&self.lines, &lines, columns, self.color);
        self.lines = lines;
        // A terminal that is gone shows nothing, and the run goes on.
        let _ = std::io::stderr().write_all(changes.as_bytes());
    }
}

fn leave_before_panics_are_told() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // What panics while it draws holds the screen, and another panic would tell nothing.
        match SCREEN.try_lock() {
            Ok(mut screen) => screen.leave(),
            Err(TryLockError::Poisoned(screen)) => screen.into_inner().leave(),
            Err(TryLockError::WouldBlock) => {}
        }
        told(panic);
    }));
}
