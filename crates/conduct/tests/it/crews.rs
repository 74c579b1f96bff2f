//! Runs that several processes carry out, each with its own record.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

use plimsoll_conduct::{
    Changes, ContentFrom, Crew, Done, FilesReady, Observer, Recorded, RunRequest, RunSettings,
    RunTime, StageView, Stop, Store,
};
use plimsoll_driver::null::NullDriver;
use plimsoll_model::{Moment, OpKind, OpRecord, RunId, Seed, TargetKind};
use plimsoll_record::schema;
use plimsoll_record::{OpLog, RunDirectory};
use plimsoll_workload::Share;
use plimsoll_workload::plan::WorkloadFile;

/// Members are filled, changed, read again by others than those who put them, and removed.
const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: divided
sets:
  o: {count: 700, size: {uniform: 1KiB..2KiB}}
  p: {size: 64B}
stages:
- {name: load, prepares: true, jobs: [{workers: 5, work: {fill: o}}]}
- name: main
  jobs:
  - name: mix
    workers: 7
    ops: 2000
    work:
      objects:
      - {get: o, weight: 50}
      - {put: o, weight: 20}
      - {delete: o, weight: 20}
      - {stat: o, weight: 10}
  - {name: few, workers: 2, ops: 150, work: {objects: [{put: p}]}}
- {name: again, jobs: [{workers: 4, ops: 900, work: {objects: [{get: o}, {get: p}]}}]}
- {name: remove, jobs: [{workers: 3, work: {remove: o}}]}
";

struct Silent;

impl Observer for Silent {
    fn note(&self, _line: &str) {}

    fn warn(&self, line: &str) {
        panic!("{line}");
    }

    fn during(&self, _stage: &StageView<'_>, work: &mut dyn FnMut()) {
        work();
    }
}

/// Where the parts of a run meet.
struct Meeting {
    all: Barrier,
    changes: Mutex<Vec<Changes>>,
}

struct Part {
    index: usize,
    share: Share,
    meeting: Arc<Meeting>,
}

impl Crew for Part {
    fn share(&self) -> Share {
        self.share
    }

    fn await_start(
        &mut self,
        _files: Option<FilesReady>,
    ) -> Result<Option<Moment>, Box<dyn std::error::Error + Send + Sync>> {
        self.meeting.all.wait();
        Ok(None)
    }

    fn exchange(
        &mut self,
        _own: &Done,
        changes: Changes,
        _entry: &schema::Stage,
    ) -> Result<Changes, Box<dyn std::error::Error + Send + Sync>> {
        self.meeting.changes.lock().unwrap()[self.index] = changes;
        self.meeting.all.wait();
        let mut all = Changes::default();
        self.meeting.changes.lock().unwrap().iter().for_each(|part| all.append(part.clone()));
        self.meeting.all.wait();
        Ok(all)
    }

    fn is_directed(&self) -> bool {
        true
    }
}

/// What a run, or a part of one, was seen to do.
struct Seen {
    recorded: Recorded,
    ops: Vec<OpRecord>,
}

fn run(place: &Path, crew: Option<Box<dyn Crew>>) -> Seen {
    let time = RunTime::machine();
    let file = WorkloadFile::from_yaml("divided", WORKLOAD).unwrap();
    let request = RunRequest {
        plan: Arc::new(file.check().unwrap()),
        seed: Seed(11),
        id: RunId::new("divided", time.wall_epoch, 1),
        time,
        targets: vec![Store::without_admin(NullDriver, TargetKind::Null).into()],
        settings: RunSettings::default(),
        content: ContentFrom::Files,
    };
    let open = request.lay_out().unwrap();
    let manifest = open.manifest(Vec::new(), Default::default(), None);
    let directory = RunDirectory::create(place, &manifest).unwrap();
    let mut begun = open.begin(directory, manifest, Arc::new(Silent), Stop::default()).unwrap();
    if let Some(crew) = crew {
        begun.divide(crew);
    }
    let recorded = begun.run(None, None).unwrap();
    begun.recording.settle_measured(&recorded).unwrap();
    let mut ops = Vec::new();
    let log = OpLog::open(&begun.recording.directory).unwrap();
    log.scan(&mut |op| ops.push(*op)).unwrap();
    Seen { recorded, ops }
}

/// What an operation did, whenever that was, and in the order of each worker.
type Did = (u8, u8, u32, usize, OpKind, Option<u64>, u64);

fn done(ops: &[OpRecord]) -> Vec<Did> {
    let mut ops: Vec<&OpRecord> = ops.iter().collect();
    ops.sort_by_key(|op| (op.stage.0, op.worker.0, op.start));
    let mut counts = std::collections::BTreeMap::new();
    let did = |op: &OpRecord| {
        let count = counts.entry((op.stage.0, op.worker.0)).or_insert(0_usize);
        *count += 1;
        let object = op.object.map(|object| object.as_u64());
        (op.stage.0, op.job.0, op.worker.0, *count, op.kind, object, op.bytes)
    };
    ops.into_iter().map(did).collect()
}

#[test]
fn parts_do_together_what_one_process_does() {
    let place = tempfile::tempdir().unwrap();
    let alone = run(&place.path().join("alone"), None);
    for weights in [&[1, 1][..], &[1, 0, 2, 5], &[1; 9]] {
        let count = weights.len();
        let meeting = Arc::new(Meeting {
            all: Barrier::new(count),
            changes: Mutex::new(vec![Changes::default(); count]),
        });
        let shares = Share::by_weight(weights).unwrap();
        let parts: Vec<Seen> = std::thread::scope(|scope| {
            let part = |(index, share): (usize, Share)| {
                let meeting = Arc::clone(&meeting);
                let place = place.path().join(format!("{count}-{index}"));
                scope.spawn(move || run(&place, Some(Box::new(Part { index, share, meeting }))))
            };
            let threads: Vec<_> = shares.into_iter().enumerate().map(part).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let ops: Vec<OpRecord> = parts.iter().flat_map(|part| part.ops.iter().copied()).collect();
        assert_eq!(done(&ops), done(&alone.ops), "{weights:?}");
        for (index, stage) in alone.recorded.stages.iter().enumerate() {
            let hashes = parts.iter().map(|part| part.recorded.stages[index].outcome.stream_hash);
            let hash = hashes.fold(0_u64, u64::wrapping_add);
            assert_eq!(hash, stage.outcome.stream_hash, "{weights:?}, stage {index}");
        }
    }
}
