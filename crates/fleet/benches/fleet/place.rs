//! The null target as agents of these benches work on it, and runs on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{
    BegunRun, CallerError, ContentFrom, FilesPart, Observer, RunRequest, RunSettings, RunTime,
    Stop, Store, Targets,
};
use plimsoll_driver::null::NullDriver;
use plimsoll_engine::EngineConfig;
use plimsoll_fleet::part::Workplace;
use plimsoll_fleet::wire::ConductDoc;
use plimsoll_model::{Moment, OpRecord, RunId, Seed, SharedClock, TargetKind, WallTime};
use plimsoll_record::schema::Manifest;
use plimsoll_record::{OpLog, RunDirectory};
use plimsoll_workload::Share;
use plimsoll_workload::plan::{Plan, WorkloadFile};
use serde_json::Value;

pub(crate) const OP_TIMEOUT: Duration = Duration::from_secs(60);

/// Objects that are thought of as there, so that nothing has to be uploaded.
const HEAD: &str =
    "schema: plimsoll.workload/2\nname: bench\nsets: {o: {named: {key: '{1..1000}'}}}\nstages:\n";

/// A machine on which every operation succeeds at once.
pub(crate) struct Idle {
    pub(crate) clock: SharedClock,
    pub(crate) place: PathBuf,
}

impl Workplace for Idle {
    fn time(&self) -> RunTime {
        RunTime { clock: Arc::clone(&self.clock), ..RunTime::machine() }
    }

    fn judge(&self, _plan: &Plan, _share: Share, _access: &Value) -> Result<(), CallerError> {
        Ok(())
    }

    fn targets(
        &self,
        _plan: &Plan,
        _access: &Value,
        _seed: Seed,
        _time: &RunTime,
    ) -> Result<Targets, CallerError> {
        let null = Store::without_admin(NullDriver, TargetKind::Null).into();
        Ok(Targets { all: vec![null], ..Targets::default() })
    }

    fn settings(&self, _: &ConductDoc, part: FilesPart) -> Result<RunSettings, CallerError> {
        let mut settings = settings();
        settings.files.part = Some(part);
        Ok(settings)
    }

    fn record_of(&self, run: &RunId, part: usize) -> PathBuf {
        self.place.join(format!("{}-{part}", run.as_str()))
    }

    fn settle(&self, part: RunDirectory) -> Result<PathBuf, CallerError> {
        Ok(part.path().to_path_buf())
    }
}

/// Keeps what is said, and when.
pub(crate) struct Heard {
    clock: SharedClock,
    lines: Mutex<Vec<(Moment, String)>>,
}

impl Heard {
    pub(crate) fn new(clock: &SharedClock) -> Arc<Self> {
        Arc::new(Self { clock: Arc::clone(clock), lines: Mutex::default() })
    }

    /// Returns when a line that holds the text was said first, at `from` or later.
    pub(crate) fn when(&self, text: &str, from: Moment) -> Option<Moment> {
        let lines = self.lines.lock().unwrap();
        lines.iter().find(|(at, line)| *at >= from && line.contains(text)).map(|(at, _)| *at)
    }

    /// Fails where anything was said.
    pub(crate) fn expect_silence(&self) {
        let lines = self.lines.lock().unwrap();
        assert!(lines.is_empty(), "{lines:?}");
    }
}

impl Observer for Heard {
    fn note(&self, _line: &str) {}

    fn warn(&self, line: &str) {
        self.lines.lock().unwrap().push((self.clock.now(), line.to_owned()));
    }
}

fn settings() -> RunSettings {
    let engine = EngineConfig { threads: 1, op_timeout: OP_TIMEOUT, retries: 0 };
    RunSettings { engine, ..RunSettings::default() }
}

/// A run that has begun.
pub(crate) struct Begun {
    pub(crate) run: BegunRun,
    pub(crate) heard: Arc<Heard>,
    pub(crate) stop: Stop,
}

/// What a run left.
pub(crate) struct Seen {
    pub(crate) manifest: Manifest,
    pub(crate) ops: Vec<OpRecord>,
}

/// Begins a run of these stages on nothing; its record lies below `place`.
pub(crate) fn begin(place: &Path, stages: &str, clock: &SharedClock) -> Begun {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let file = WorkloadFile::from_yaml("bench", &format!("{HEAD}{stages}")).unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = RunId::new("bench", WallTime::from_unix_ns(0), number);
    let directory = place.join(format!("run-{number}"));
    let request = RunRequest {
        plan: Arc::new(file.check().unwrap()),
        seed: Seed(11),
        id,
        time: RunTime { clock: Arc::clone(clock), ..RunTime::machine() },
        targets: vec![Store::without_admin(NullDriver, TargetKind::Null).into()],
        settings: settings(),
        content: ContentFrom::Files,
    };
    let open = request.lay_out().unwrap();
    let manifest = open.manifest(Vec::new(), Default::default(), None);
    let directory = RunDirectory::create(&directory, &manifest).unwrap();
    let (heard, stop) = (Heard::new(clock), Stop::default());
    let observer = Arc::clone(&heard) as Arc<dyn Observer>;
    let run = open.begin(directory, manifest, observer, stop.clone()).unwrap();
    Begun { run, heard, stop }
}

impl Begun {
    /// Carries the run out to its end.
    pub(crate) fn carry_out(&mut self) {
        let recorded = self.run.run(None, None).unwrap();
        self.run.recording.settle_measured(&recorded).unwrap();
        self.heard.expect_silence();
    }

    /// Carries the run out and returns what it left.
    pub(crate) fn end(mut self) -> Seen {
        self.carry_out();
        let directory = &self.run.recording.directory;
        let mut ops = Vec::new();
        OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
        Seen { manifest: directory.read_manifest().unwrap(), ops }
    }
}
