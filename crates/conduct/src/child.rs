//! Child processes: each is the head of a group that is ended as a whole, what it writes is kept up
//! to a limit, and nothing waits for it without an end.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_model::Clock;
use rustix::process::{Pid, Signal, kill_process_group};

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
        Ok(Self { child, output, open })
    }

    /// Tells how the process at the head has ended; `None` while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
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

    /// Ends all of it at once.
    pub fn end(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.child.wait();
    }
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
