//! Child processes: each is the head of a group that is ended as a whole, what it writes is kept up
//! to a limit, and nothing waits for it without an end.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_model::Clock;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};

/// How often it is looked whether a process that is waited for has ended.
const LOOK: Duration = Duration::from_millis(2);
/// How long the rest of its output is waited for once it has.
const OUTPUT_TIME_MAX: Duration = Duration::from_millis(200);

/// What a process has written, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its beginning, of both streams in the order in which it came.
    pub kept: Vec<u8>,
    /// How much it was in all.
    pub bytes: u64,
}

/// How a process that was run to its end has ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// How the process at the head of its group ended.
    pub status: ExitStatus,
    /// What came on its output.
    pub output: Output,
}

/// Runs `$0` by a shell, and ends the group when the input ends. As what runs in the background has
/// no input, that is another descriptor.
const GUARDED: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -9 0; } >/dev/null 2>&1 & \
                       exec 3<&-; exec /bin/sh -c \"$0\" 2>/dev/null";

/// Runs a command line by a shell in a group of its own, without an input, and returns how it
/// ended and what it printed, but for its errors; `None` where that takes longer than `time_max`.
/// Then, and where it left others behind, the whole group is ended; so it is when this very process
/// ends, however that comes.
pub fn run_to_end(
    line: &str,
    kept_max: usize,
    clock: &dyn Clock,
    time_max: Duration,
) -> io::Result<Option<Ended>> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARDED, line]).stdin(Stdio::piped());
    let mut group = Group::start(&mut command, kept_max)?;
    // The end of this ends the group.
    let _held = group.child.stdin.take();
    let begun = clock.now();
    let status = loop {
        if let Some(status) = group.ended()? {
            break status;
        }
        let left = time_max.saturating_sub(clock.now().since(begun));
        if left.is_zero() {
            return Ok(None);
        }
        thread::park_timeout(left.min(LOOK));
    };
    group.await_output(OUTPUT_TIME_MAX);
    Ok(Some(Ended { status, output: group.output() }))
}

/// A process and all that it starts and that stays in its group; ended when this is dropped.
#[derive(Debug)]
pub struct Group {
    child: Child,
    is_reaped: bool,
    output: Arc<Mutex<Output>>,
    /// Hangs up when both streams have ended.
    open: Receiver<()>,
}

impl Group {
    /// Starts a process at the head of a group of its own, without an input. Of what it writes
    /// `kept_max` bytes are kept; the rest is read and counted.
    pub fn spawn(command: &mut Command, kept_max: usize) -> io::Result<Self> {
        Self::start(command.stdin(Stdio::null()), kept_max)
    }

    /// The same with an input of the caller's choice.
    fn start(command: &mut Command, kept_max: usize) -> io::Result<Self> {
        command.process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let output = Arc::<Mutex<Output>>::default();
        let (hold, open) = channel();
        if let Some(stream) = child.stdout.take() {
            read(stream, &output, kept_max, hold.clone());
        }
        if let Some(stream) = child.stderr.take() {
            read(stream, &output, kept_max, hold.clone());
        }
        Ok(Self { child, is_reaped: false, output, open })
    }

    /// Returns how the process at the head has ended; `None` while it runs.
    ///
    /// It is not reaped here: until it is, the kernel gives its number to no other process and no
    /// other group, so that [`Self::end`] never signals a stranger.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = waitid(WaitId::Pid(Pid::from_child(&self.child)), options)?;
        Ok(seen.as_ref().and_then(status_of))
    }

    /// Returns what was written so far.
    pub fn output(&self) -> Output {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits at most so long for all that may still be written.
    pub fn await_output(&self, time_max: Duration) {
        // Nobody sends: it is the end of both that is waited for, or of the time.
        let _ = self.open.recv_timeout(time_max);
    }

    /// Ends all of it at once. Only the first call signals, as the second would after the head was
    /// reaped.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.is_reaped, true) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Returns the status that `wait` would have returned.
fn status_of(seen: &WaitIdStatus) -> Option<ExitStatus> {
    const DUMPED_CORE: i32 = 0x80;
    let core = if seen.dumped() { DUMPED_CORE } else { 0 };
    let by_signal = || seen.terminating_signal().map(|signal| signal | core);
    let raw = seen.exit_status().map(|code| (code & 0xff) << 8).or_else(by_signal);
    raw.map(ExitStatus::from_raw)
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a stream to its end beside the process.
fn read(
    mut stream: impl Read + Send + 'static,
    to: &Arc<Mutex<Output>>,
    kept_max: usize,
    hold: Sender<()>,
) {
    let to = Arc::clone(to);
    // One that left the group may hold the stream open: then the thread ends with the program.
    thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let mut output = to.lock().unwrap_or_else(PoisonError::into_inner);
            let room = kept_max.saturating_sub(output.kept.len()).min(count);
            output.kept.extend_from_slice(&buffer[..room]);
            output.bytes += count as u64;
        }
        drop(hold);
    });
}

#[cfg(test)]
mod tests {
    use rustix::process::test_kill_process_group;

    use super::*;

    #[test]
    fn a_group_keeps_its_number_until_it_is_ended() {
        let mut group =
            Group::spawn(Command::new("/bin/sh").args(["-c", "exit 3"]), 1_024).unwrap();
        let head = Pid::from_child(&group.child);
        let status = loop {
            match group.ended().unwrap() {
                Some(status) => break status,
                None => thread::yield_now(),
            }
        };
        assert_eq!((status.code(), status.signal()), (Some(3), None));
        assert_eq!(group.ended().unwrap(), Some(status), "it is told as often as it is asked");
        // Nobody is left in the group, and yet its number is not free.
        assert_eq!(test_kill_process_group(head), Ok(()));
        group.end();
        assert_eq!(test_kill_process_group(head), Err(rustix::io::Errno::SRCH));
    }

    #[test]
    fn a_signal_is_a_status_like_that_of_wait() {
        let mut group =
            Group::spawn(Command::new("/bin/sh").args(["-c", "kill -9 $$"]), 1_024).unwrap();
        let status = loop {
            match group.ended().unwrap() {
                Some(status) => break status,
                None => thread::yield_now(),
            }
        };
        assert_eq!((status.code(), status.signal()), (None, Some(9)));
    }
}
