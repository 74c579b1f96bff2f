//! The live display on a terminal: a pseudo-terminal whose master end is the test.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::safety::forged_record;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// Returns both ends of a pseudo-terminal of that size. No child but the one that is given it may
/// hold an end, or its closing would be no hang-up.
fn terminal(columns: u16, rows: u16) -> (File, OwnedFd) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let mut name = [0; 64];
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptors have just been opened and belong to nobody else; the name has room
    // for what it is said to have.
    unsafe {
        let master = libc::posix_openpt(flags);
        assert!(master >= 0 && libc::grantpt(master) == 0 && libc::unlockpt(master) == 0);
        assert_eq!(libc::ptsname_r(master, name.as_mut_ptr(), name.len()), 0);
        let tty = libc::open(name.as_ptr(), flags);
        assert!(tty >= 0 && libc::ioctl(tty, libc::TIOCSWINSZ, &raw const size) == 0);
        (File::from_raw_fd(master), OwnedFd::from_raw_fd(tty))
    }
}

/// A run on a terminal of its own.
struct OnTerminal {
    child: Child,
    /// Readable when the child has ended.
    ended: OwnedFd,
    master: File,
    /// Kept open, so that its modes can be read when the run is over.
    tty: Option<OwnedFd>,
    /// What it has printed so far.
    seen: String,
    /// Where it keeps its record.
    directory: tempfile::TempDir,
}

impl OnTerminal {
    fn start(line: &str, columns: u16, rows: u16) -> Self {
        let (master, tty) = terminal(columns, rows);
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(line.split_whitespace()).current_dir(directory.path());
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let (stdin, stdout, stderr) =
            (tty.try_clone().unwrap(), tty.try_clone().unwrap(), tty.try_clone().unwrap());
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        // SAFETY: only system calls are made between fork and exec: a session of its own, whose
        // terminal this is, with Ctrl-\ and hang-up as they are in one, also where a shell has put
        // the tests into the background or `nohup` has them ignore it.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGQUIT, libc::SIG_DFL);
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                let done = libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) >= 0;
                if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            });
        }
        let child = command.spawn().unwrap();
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        Self { child, ended, master, tty: Some(tty), seen: String::new(), directory }
    }

    /// Reads until a text has come that had not been seen before, and returns all up to its end.
    fn await_text(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            // The test holds the terminal as well, so that its end is no end of reading.
            let mut either =
                [PollFd::new(&self.master, PollFlags::IN), PollFd::new(&self.ended, PollFlags::IN)];
            poll(&mut either, None).unwrap();
            let has_more = !either[0].revents().is_empty();
            let mut bytes = [0; 4_096];
            let count = if has_more { self.master.read(&mut bytes).unwrap_or(0) } else { 0 };
            assert!(count > 0, "it ended without {text:?}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    /// Returns what comes until the end.
    fn rest(mut self) -> String {
        // Reading fails when nobody has the other end any more.
        self.tty = None;
        let mut rest = Vec::new();
        let _ = self.master.read_to_end(&mut rest);
        std::mem::take(&mut self.seen) + &String::from_utf8_lossy(&rest)
    }

    /// Takes the terminal away, as a closed window does.
    fn hang_up(&mut self) {
        self.tty = None;
        self.master = File::open("/dev/null").unwrap();
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    fn press(&mut self, key: u8) {
        self.master.write_all(&[key]).unwrap();
    }

    fn echoes(&self) -> bool {
        let tty = self.tty.as_ref().unwrap();
        let modes = tcgetattr(tty.as_fd()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LINE: &str = "s3 get --objects 20 --obj.size 1KiB --duration 600s --concurrent 2";
const CTRL_C: u8 = 3;
const CTRL_Z: u8 = 26;
const CTRL_BACKSLASH: u8 = 28;

#[test]
fn a_large_terminal_is_taken_over_and_given_back_with_what_was_said_and_the_report() {
    let mut run = OnTerminal::start(LINE, 80, 24);
    run.await_text(ENTER);
    let drawn = run.await_text("ops/s now");
    assert!(!drawn.contains(LEAVE), "{drawn}");
    assert!(!run.echoes());
    // Figures of the measured stage are there once something has ended.
    run.await_text("GET");
    run.press(CTRL_C);
    let left = run.await_text(LEAVE);
    assert!(!left.contains("verdict"), "{left}");
    run.await_text(SHOW_CURSOR);
    let said = run.await_text("run kept in ");
    assert!(said.contains("the run was ended early") && said.contains("p99"), "{said}");
    run.await_text("removed 20 objects");
    let code = run.child.wait().unwrap().code();
    assert_eq!(code, Some(130));
    assert!(run.echoes());
    // Nothing covers the report again.
    let rest = run.rest();
    assert!(!rest.contains(ENTER), "{rest}");
}

#[test]
fn ctrl_z_gives_the_terminal_back_until_it_goes_on() {
    let mut run = OnTerminal::start(LINE, 120, 40);
    run.await_text(ENTER);
    run.await_text("GET");
    run.press(CTRL_Z);
    run.await_text(LEAVE);
    run.await_text(SHOW_CURSOR);
    let (_, status) = waitpid(Some(run.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    assert!(run.echoes());
    kill_process(run.pid(), Signal::CONT).unwrap();
    run.await_text("warning: plimsoll itself was stopped for ");
    run.await_text(ENTER);
    run.await_text("GET");
    assert!(!run.echoes());
    run.press(b'q');
    run.await_text(LEAVE);
    run.await_text("run kept in ");
    let code = run.child.wait().unwrap().code();
    assert_eq!(code, Some(0));
    assert!(run.echoes());
}

#[test]
fn a_closed_window_ends_the_run_in_order() {
    for mode in ["full", "line"] {
        let line = format!("{LINE} --live {mode} --run-dir run");
        let mut run = OnTerminal::start(&line, 80, 24);
        run.await_text(if mode == "full" { "GET" } else { " of 600 s, no errors" });
        run.hang_up();
        assert_eq!(run.child.wait().unwrap().code(), Some(129), "{mode}");
        let manifest = std::fs::read(run.directory.path().join("run/run.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["state"], "interrupted", "{mode}");
        assert_eq!(manifest["cleanup"]["state"], "complete", "{mode}: {}", manifest["cleanup"]);
    }
}

#[test]
fn ctrl_backslash_gives_the_terminal_back_before_it_ends() {
    let mut run = OnTerminal::start(LINE, 80, 24);
    run.await_text("GET");
    run.press(CTRL_BACKSLASH);
    run.await_text(LEAVE);
    run.await_text(SHOW_CURSOR);
    assert_eq!(run.child.wait().unwrap().signal(), Some(libc::SIGQUIT));
    assert!(run.echoes());
}

#[test]
fn a_report_is_as_wide_as_the_terminal_when_it_is_printed() {
    let mut run = OnTerminal::start(LINE, 160, 40);
    run.await_text("GET");
    run.resize(60, 40);
    run.press(b'q');
    run.await_text(LEAVE);
    let report = run.await_text("run kept in ");
    // What to try next is a sentence of more than 60 columns; tables do not wrap.
    let (_, next) = report.split_once("\n  try next  ").expect(&report);
    let (next, _) = next.split_once("\r\n\r\n").expect(&report);
    let lines: Vec<&str> = next.lines().collect();
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
    assert!(lines.len() > 1 && widest <= 60, "{widest}: {report}");
}

#[test]
fn a_small_terminal_has_one_line_and_one_that_was_asked_for_has_the_screen() {
    let mut small = OnTerminal::start(LINE, 79, 24);
    let seen = small.await_text(" of 600 s, no errors");
    assert!(!seen.contains(ENTER), "{seen}");
    small.press(b'q');
    small.await_text("run kept in ");
    let asked = format!("{LINE} --live full");
    let mut asked = OnTerminal::start(&asked, 60, 12);
    asked.await_text(ENTER);
    asked.await_text("GET");
    asked.press(b'q');
    asked.await_text("run kept in ");
    let line = format!("{LINE} --live line");
    let mut line = OnTerminal::start(&line, 120, 40);
    let seen = line.await_text(" of 600 s, no errors");
    assert!(!seen.contains(ENTER), "{seen}");
    line.press(b'q');
    line.await_text("run kept in ");
}

#[test]
fn a_record_that_names_commands_of_the_terminal_is_refused_without_them() {
    let place = tempfile::tempdir().unwrap();
    let target = serde_json::json!({ "s3": { "host": "h:1" } });
    forged_record(place.path(), "s3", "h\x1b[2J\x07:1", &target);
    let record = place.path().join("record");
    let cleans = OnTerminal::start(&format!("clean {}", record.display()), 80, 24);
    let said = cleans.rest();
    assert!(said.contains("holds control characters, and no name does"), "{said:?}");
    assert!(!said.contains(['\x1b', '\x07']), "{said:?}");
}
