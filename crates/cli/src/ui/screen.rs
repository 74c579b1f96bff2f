//! The whole terminal as a live display.
//!
//! The screen stays from stage to stage; what is said meanwhile stands at its foot, and is printed
//! when it is left.

use std::collections::VecDeque;
use std::io::{BufWriter, Stderr, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::termios::tcgetwinsize;

use super::keys::may_touch;
use super::sample::View;
use super::view::{Look, draw};

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
    terminal: Terminal<CrosstermBackend<Lossy>>,
    area: Rect,
    view: View,
    look: Look,
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
pub(super) fn show(view: View, look: Look) {
    let mut screen = screen();
    // Asked with the lock held, so that nobody gives the terminal back in between.
    if !may_touch(std::io::stderr()) {
        return;
    }
    let said = screen.said.make_contiguous().to_vec();
    if screen.drawn.is_none() {
        screen.drawn = Drawn::enter(look);
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
        let _ = queue!(stderr, LeaveAlternateScreen, Show);
        self.held.drain(..).for_each(|line| {
            let _ = writeln!(stderr, "{line}");
        });
        let _ = stderr.flush();
    }
}

impl Drawn {
    /// Takes the terminal over; `None` where that is not possible.
    fn enter(look: Look) -> Option<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(leave_before_panics_are_told);
        let area = area()?;
        let mut stderr = Lossy(BufWriter::new(std::io::stderr()));
        queue!(stderr, EnterAlternateScreen, Hide).ok()?;
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let terminal = Terminal::with_options(CrosstermBackend::new(stderr), options).ok()?;
        Some(Self { terminal, area, view: View::default(), look })
    }

    fn draw(&mut self, said: &[String]) {
        let Some(area) = area() else { return };
        // A terminal that is gone shows nothing, and the run goes on.
        if area != self.area {
            self.area = area;
            let _ = self.terminal.resize(area);
        }
        let (view, look) = (&self.view, self.look);
        let _ = self.terminal.draw(|frame| draw(frame, view, said, look));
    }
}

/// Writes to a terminal as long as there is one. The library panics where it cannot show the cursor
/// again, and a window that was closed must not end the run.
struct Lossy(BufWriter<Stderr>);

impl Write for Lossy {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // There is nobody to tell.
        let _ = self.0.flush();
        Ok(())
    }
}

fn area() -> Option<Rect> {
    size().map(|(columns, rows)| Rect::new(0, 0, columns, rows))
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
