//! Scripts that a workload has run around it: only those that lie in the folder that the console
//! was given, with a clean environment and for a limited time.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_conduct::Stop;
use plimsoll_conduct::child::Group;
use plimsoll_record::exposure::check_unchangeable;

use crate::clock::Clock;
use crate::disk;
use crate::facts::Facts;

/// A script that has not ended after this is ended.
const TIME_MAX: Duration = Duration::from_secs(60);
/// What a script wrote and has not come so long after its end is not kept.
const OUTPUT_TIME_MAX: Duration = Duration::from_millis(500);
/// How often it is looked whether a script has ended.
const LOOK: Duration = Duration::from_millis(20);
/// More of its output is not kept.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
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
            Some((script, rest)) => {
                let open = || format!("trigger `{text}` must end in `)`, as in name.sh(1,2)");
                (script, rest.strip_suffix(')').ok_or_else(open)?)
            }
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
        let refused = |why: &str| format!("trigger `{}`: {why}", call.script);
        let found = disk::open_plain(&path).and_then(|(script, _)| script.metadata());
        let found =
            found.map_err(|_| refused("there is no such script in the folder of --triggers"))?;
        match check_unchangeable(&found) {
            Ok(()) => Ok(path),
            Err(exposure) => Err(refused(&exposure.to_string())),
        }
    }

    /// Runs a script to its end, and returns what it wrote, whatever came of it.
    fn run(&self, call: &Call, ends: bool, stop: &Stop) -> (Vec<u8>, Result<(), String>) {
        let failed = |error: String| format!("trigger `{}` {error}", call.script);
        let mut group = match self.spawn(call, ends) {
            Ok(group) => group,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let clock = Clock::start();
        let begun = clock.moment();
        let ended = loop {
            match group.ended() {
                Ok(Some(status)) if status.success() => break Ok(()),
                Ok(Some(status)) => break Err(format!("ended with {status}")),
                Ok(None) if clock.moment().since(begun) >= TIME_MAX => {
                    break Err("did not end in time".to_owned());
                }
                Ok(None) if !ends && stop.is_step_stopped() => break Err("was ended".to_owned()),
                Ok(None) => stop.rest(LOOK),
                Err(error) => break Err(format!("was lost: {error}")),
            }
        };
        // What it has started and left behind ends with it, as with COSBench.
        group.end();
        // One that left the group may hold the output for as long as it likes.
        group.await_output(OUTPUT_TIME_MAX);
        (group.output().kept, ended.map_err(failed))
    }

    /// Starts a script as the head of a group of processes.
    fn spawn(&self, call: &Call, ends: bool) -> Result<Group, String> {
        let path = self.path(call)?;
        let mut command = Command::new("/bin/sh");
        command.arg(path);
        match ends {
            true => command.arg("-k"),
            false => command.args(&call.arguments),
        };
        command.env_clear().env("PATH", PATH).current_dir(&self.folder);
        let group = Group::spawn(&mut command, OUTPUT_BYTES_MAX);
        group.map_err(|error| format!("trigger `{}`: {error}", call.script))
    }
}

/// Scripts that have begun and are told of the end when this is dropped.
pub(crate) struct Around {
    triggers: Triggers,
    begun: Vec<Call>,
    log: Option<File>,
    stop: Stop,
}

impl Around {
    /// Runs scripts before what they are around begins; `what` stands above what they write.
    pub(crate) fn begin<'c>(
        triggers: &Triggers,
        calls: impl IntoIterator<Item = &'c str>,
        (log, what): (Option<&Path>, &str),
        stop: &Stop,
    ) -> Result<Self, String> {
        let mut around = Self::of_none(triggers, stop);
        for call in calls {
            if around.log.is_none() {
                around.log = log.and_then(|path| disk::appended(path).ok());
            }
            let call = Call::parse(call)?;
            around.write(format!("================ {what} ================\n").as_bytes());
            let (output, ended) = around.triggers.run(&call, false, stop);
            around.write(&output);
            if let Err(error) = ended {
                around.write(format!("{error}\n").as_bytes());
                return Err(error);
            }
            around.begun.push(call);
        }
        Ok(around)
    }

    fn of_none(triggers: &Triggers, stop: &Stop) -> Self {
        Self { triggers: triggers.clone(), begun: Vec::new(), log: None, stop: stop.clone() }
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
            let (output, ended) = self.triggers.run(&call, true, &self.stop);
            self.write(&output);
            if let Err(error) = ended {
                self.write(format!("{error}\n").as_bytes());
            }
        }
    }
}

/// The scripts around the stages of a workload: a stage of COSBench's may be several of ours.
pub(crate) struct StageScripts {
    pub(crate) triggers: Triggers,
    /// Where what they write goes.
    pub(crate) log: Option<PathBuf>,
    /// Ends a script that runs before a stage.
    pub(crate) stop: Stop,
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
            let to = (self.log.as_deref(), &*what);
            let around = Around::begin(&self.triggers, calls, to, &self.stop);
            // Where one failed, none is begun again for another part of the stage.
            let (around, ended) = match around {
                Ok(around) => (around, Ok(())),
                Err(error) => (Around::of_none(&self.triggers, &self.stop), Err(error)),
            };
            *open = Some((number, around));
            return ended;
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    use super::*;
    use crate::facts::{StagePlan, Trigger};

    fn begin(triggers: &Triggers, call: &str, log: Option<&Path>) -> Result<Around, String> {
        Around::begin(triggers, [call], (log, "stage s1-main"), &Stop::default())
    }

    #[test]
    fn only_plain_names_are_scripts() {
        let call = Call::parse("a-b.sh(x,y) z").unwrap();
        assert_eq!((&*call.script, call.arguments), ("a-b.sh", vec!["x".into(), "y".into()]));
        for text in
            ["", "../a.sh", "/bin/sh(-c)", ".hidden", "a;b.sh", "a b/c", "$(x)", "a/b.sh", "a.sh(1"]
        {
            let parsed = Call::parse(text);
            assert!(parsed.as_ref().is_err() || parsed.unwrap().script == "a", "{text}");
        }
    }

    #[test]
    fn a_script_has_a_clean_environment_and_is_told_of_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let script = b"echo \"$@\" ${HOME:-none} ${CARGO_PKG_NAME:-clean}\n";
        disk::write_private(&folder.path().join("a.sh"), script).unwrap();
        let triggers = Triggers::of(folder.path());
        let log = folder.path().join("scripts.log");
        drop(begin(&triggers, "a.sh(1,2)", Some(&log)).unwrap());
        let text = disk::read_text(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let head = "================ stage s1-main ================";
        assert_eq!(lines, [head, "1 2 none clean", "-k none clean"]);
        assert!(triggers.check("b.sh()").unwrap_err().contains("no such script"));
    }

    #[test]
    fn a_script_that_other_users_can_change_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("a.sh");
        disk::write_private(&script, b"exit 0\n").unwrap();
        let triggers = Triggers::of(folder.path());
        for mode in [0o755, 0o775, 0o757] {
            fs::set_permissions(&script, fs::Permissions::from_mode(mode)).unwrap();
            let refused = (mode != 0o755)
                .then(|| "trigger `a.sh`: other users can change it (chmod go-w)".to_owned());
            assert_eq!(triggers.check("a.sh").err(), refused, "{mode:o}");
        }
    }

    #[test]
    fn a_script_that_fails_ends_the_workload_before_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        disk::write_private(&folder.path().join("a.sh"), b"echo out\necho err >&2\nexit 3\n")
            .unwrap();
        let log = folder.path().join("scripts.log");
        let error = begin(&Triggers::of(folder.path()), "a.sh()", Some(&log));
        assert!(error.err().unwrap().contains("exit status: 3"));
        let text = disk::read_text(&log).unwrap();
        assert!(text.contains("\nout\n") && text.contains("err\n"), "{text}");
        assert!(text.ends_with("trigger `a.sh` ended with exit status: 3\n"), "{text}");
    }

    #[test]
    fn what_a_script_leaves_behind_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        // It holds the output open, which is read to its end.
        disk::write_private(&folder.path().join("a.sh"), b"sleep 300 &\necho begun\n").unwrap();
        let log = folder.path().join("scripts.log");
        drop(begin(&Triggers::of(folder.path()), "a.sh", Some(&log)).unwrap());
        let text = disk::read_text(&log).unwrap();
        assert_eq!(text.matches("begun\n").count(), 2, "{text}");
    }

    #[test]
    fn a_script_before_the_work_ends_when_that_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        disk::write_private(&folder.path().join("a.sh"), b"echo > begun\nsleep 300\n").unwrap();
        let (stop, begun) = (Stop::default(), folder.path().join("begun"));
        let asks = stop.clone();
        let asking = thread::spawn(move || {
            while !begun.exists() {
                thread::yield_now();
            }
            asks.request();
        });
        let triggers = Triggers::of(folder.path());
        let error = Around::begin(&triggers, ["a.sh"], (None, "w1"), &stop).err().unwrap();
        asking.join().unwrap();
        assert_eq!(error, "trigger `a.sh` was ended");
    }

    #[test]
    fn a_script_that_failed_is_not_begun_again_for_another_part_of_its_stage() {
        let folder = tempfile::tempdir().unwrap();
        disk::write_private(&folder.path().join("a.sh"), b"echo ran\nexit 4\n").unwrap();
        let log = folder.path().join("scripts.log");
        let part = StagePlan { part_of: Some(1), ..StagePlan::default() };
        let trigger = Trigger { stage: Some(1), call: "a.sh".to_owned() };
        let facts =
            Facts { stages: vec![part.clone(), part], triggers: vec![trigger], ..Facts::default() };
        let (stop, open) = (Stop::default(), Mutex::default());
        let triggers = Triggers::of(folder.path());
        let scripts = StageScripts { triggers, log: Some(log.clone()), stop, open };
        let error = scripts.begin(&facts, 0).unwrap_err();
        assert!(error.contains("exit status: 4"), "{error}");
        assert_eq!(scripts.begin(&facts, 1), Ok(()));
        scripts.end(&facts, 1);
        assert_eq!(disk::read_text(&log).unwrap().matches("ran\n").count(), 1);
    }

    #[test]
    fn a_script_is_around_all_parts_of_its_stage_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        disk::write_private(&folder.path().join("a.sh"), b"echo \"$@\"\n").unwrap();
        let log = folder.path().join("scripts.log");
        let stage = |part_of| StagePlan { part_of: Some(part_of), ..StagePlan::default() };
        let trigger = Trigger { stage: Some(2), call: "a.sh(x)".to_owned() };
        let facts = Facts {
            stages: [1, 2, 2, 3].map(stage).to_vec(),
            triggers: vec![trigger],
            ..Facts::default()
        };
        let triggers = Triggers::of(folder.path());
        let (stop, open) = (Stop::default(), Mutex::default());
        let scripts = StageScripts { triggers, log: Some(log.clone()), stop, open };
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
