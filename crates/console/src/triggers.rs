//! Scripts that a workload has run around it: only those that lie in the folder that the console
//! was given, with a clean environment and for a limited time.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::disk;
use crate::facts::Facts;

/// A script that has not ended after this is ended.
const TIME_MAX: Duration = Duration::from_secs(60);
/// More of its output is not kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// What a script finds programs in.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folder of scripts.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    folder: PathBuf,
}

/// A call of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    script: String,
    arguments: Vec<String>,
}

impl Call {
    /// Reads `name.sh(arg1,arg2)`; as COSBench does, up to the first blank.
    fn parse(text: &str) -> Result<Self, String> {
        let word = text.split_whitespace().next().unwrap_or_default();
        let (script, arguments) = match word.split_once('(') {
            Some((script, rest)) => (script, rest.trim_end_matches(')')),
            None => (word, ""),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if script.is_empty() || script.starts_with('.') || !script.chars().all(is_plain) {
            return Err(format!("trigger `{text}` names no plain file"));
        }
        let arguments = arguments.split(',').filter(|argument| !argument.is_empty());
        Ok(Self { script: script.to_owned(), arguments: arguments.map(str::to_owned).collect() })
    }
}

impl Triggers {
    pub(crate) fn of(folder: &Path) -> Self {
        // A script runs in its folder, so a relative path would mean another place there.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        Self { folder }
    }

    /// Judges the call of a script.
    pub(crate) fn check(&self, call: &str) -> Result<(), String> {
        self.path(&Call::parse(call)?).map(drop)
    }

    fn path(&self, call: &Call) -> Result<PathBuf, String> {
        let path = self.folder.join(&call.script);
        match disk::open_plain(&path) {
            Ok(_) => Ok(path),
            Err(_) => Err(format!(
                "trigger `{}`: there is no such script in the folder of --triggers",
                call.script
            )),
        }
    }

    /// Runs a script to its end, and returns what it wrote.
    fn run(&self, call: &Call, ends: bool) -> Result<Vec<u8>, String> {
        let path = self.path(call)?;
        let mut command = Command::new("/bin/sh");
        command.arg(path);
        match ends {
            true => command.arg("-k"),
            false => command.args(&call.arguments),
        };
        command.env_clear().env("PATH", PATH).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| format!("trigger `{}`: {error}", call.script);
        let mut child = command.spawn().map_err(failed)?;
        let (to, outputs) = channel();
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let to = to.clone();
            thread::spawn(move || {
                let mut text = Vec::new();
                // What comes after that much is not read, and a script that goes on writing ends.
                let _ = stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
                let _ = to.send(text);
            });
        }
        drop(to);
        let mut all = Vec::new();
        let mut is_late = false;
        loop {
            match outputs.recv_timeout(TIME_MAX) {
                Ok(text) => all.extend(text),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    is_late = true;
                    let _ = child.kill();
                    break;
                }
            }
        }
        let status = child.wait().map_err(failed)?;
        match status.success() && !is_late {
            true => Ok(all),
            false if is_late => Err(format!("trigger `{}` did not end in time", call.script)),
            false => Err(format!("trigger `{}` ended with {status}", call.script)),
        }
    }
}

/// Scripts that have begun and are told of the end when this is dropped.
pub(crate) struct Around {
    triggers: Triggers,
    begun: Vec<Call>,
    log: Option<File>,
}

impl Around {
    /// Runs scripts before what they are around begins; `what` stands above what they write.
    pub(crate) fn begin<'c>(
        triggers: &Triggers,
        calls: impl IntoIterator<Item = &'c str>,
        log: Option<&Path>,
        what: &str,
    ) -> Result<Self, String> {
        let mut around = Self { triggers: triggers.clone(), begun: Vec::new(), log: None };
        for call in calls {
            if around.log.is_none() {
                around.log = log.and_then(|path| disk::appended(path).ok());
            }
            let call = Call::parse(call)?;
            around.write(format!("================ {what} ================\n").as_bytes());
            let output = around.triggers.run(&call, false)?;
            around.write(&output);
            around.begun.push(call);
        }
        Ok(around)
    }

    fn write(&mut self, text: &[u8]) {
        if let Some(log) = &mut self.log {
            // A log that cannot be written ends no run.
            let _ = log.write_all(text);
        }
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.begun) {
            match self.triggers.run(&call, true) {
                Ok(output) => self.write(&output),
                Err(error) => self.write(format!("{error}\n").as_bytes()),
            }
        }
    }
}

/// The scripts around the stages of a workload: a stage of COSBench's may be several of ours.
pub(crate) struct StageScripts {
    pub(crate) triggers: Triggers,
    /// Where what they write goes.
    pub(crate) log: Option<PathBuf>,
    /// Of which stage of COSBench's scripts have begun.
    pub(crate) open: Mutex<Option<(usize, Around)>>,
}

impl StageScripts {
    /// Runs what is around a stage that begins; does nothing where another part of it has begun
    /// before.
    pub(crate) fn begin(&self, facts: &Facts, index: usize) -> Result<(), String> {
        let Some(number) = facts.stages.get(index).and_then(|stage| stage.part_of) else {
            return Ok(());
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|(of, _)| *of == number) {
            return Ok(());
        }
        // What is around another stage is told of its end first.
        *open = None;
        let of_stage = facts.triggers.iter().filter(|trigger| trigger.stage == Some(number));
        let mut calls = of_stage.map(|trigger| &*trigger.call).peekable();
        if calls.peek().is_some() {
            let what = format!("stage {number}");
            let around = Around::begin(&self.triggers, calls, self.log.as_deref(), &what)?;
            *open = Some((number, around));
        }
        Ok(())
    }

    /// Tells what is around a stage of its end, unless another part of it comes.
    pub(crate) fn end(&self, facts: &Facts, index: usize) {
        let part_of = |index: usize| facts.stages.get(index).and_then(|stage| stage.part_of);
        if part_of(index) != part_of(index + 1) {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Tells what is still open of the end.
    pub(crate) fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{StagePlan, Trigger};

    #[test]
    fn only_plain_names_are_scripts() {
        let call = Call::parse("a-b.sh(x,y) z").unwrap();
        assert_eq!((&*call.script, call.arguments), ("a-b.sh", vec!["x".into(), "y".into()]));
        for text in ["", "../a.sh", "/bin/sh(-c)", ".hidden", "a;b.sh", "a b/c", "$(x)", "a/b.sh"] {
            let parsed = Call::parse(text);
            assert!(parsed.as_ref().is_err() || parsed.unwrap().script == "a", "{text}");
        }
    }

    #[test]
    fn a_script_has_a_clean_environment_and_is_told_of_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let script = b"echo \"$@\" ${HOME:-none} ${CARGO_PKG_NAME:-clean}\n";
        disk::write(&folder.path().join("a.sh"), script).unwrap();
        let triggers = Triggers::of(folder.path());
        let log = folder.path().join("scripts.log");
        drop(Around::begin(&triggers, ["a.sh(1,2)"], Some(&log), "stage s1-main").unwrap());
        let text = disk::read_text(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let head = "================ stage s1-main ================";
        assert_eq!(lines, [head, "1 2 none clean", "-k none clean"]);
        assert!(triggers.check("b.sh()").unwrap_err().contains("no such script"));
    }

    #[test]
    fn a_script_that_fails_ends_the_workload_before_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        disk::write(&folder.path().join("a.sh"), b"exit 3\n").unwrap();
        let error = Around::begin(&Triggers::of(folder.path()), ["a.sh()"], None, "");
        assert!(error.err().unwrap().contains("exit status: 3"));
    }

    #[test]
    fn a_script_is_around_all_parts_of_its_stage_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        disk::write(&folder.path().join("a.sh"), b"echo \"$@\"\n").unwrap();
        let log = folder.path().join("scripts.log");
        let stage = |part_of| StagePlan { part_of: Some(part_of), ..StagePlan::default() };
        let trigger = Trigger { stage: Some(2), call: "a.sh(x)".to_owned() };
        let facts = Facts {
            stages: [1, 2, 2, 3].map(stage).to_vec(),
            triggers: vec![trigger],
            ..Facts::default()
        };
        let triggers = Triggers::of(folder.path());
        let scripts = StageScripts { triggers, log: Some(log.clone()), open: Mutex::default() };
        let written = || disk::read_text(&log).map_or(0, |text| text.lines().count());
        let mut lines = Vec::new();
        for index in 0..4 {
            scripts.begin(&facts, index).unwrap();
            lines.push(written());
            scripts.end(&facts, index);
            lines.push(written());
        }
        // A head and `x` before the first part, `-k` after the second.
        assert_eq!(lines, [0, 0, 2, 2, 2, 3, 3, 3]);
        assert!(disk::read_text(&log).unwrap().ends_with("\nx\n-k\n"));
    }
}
