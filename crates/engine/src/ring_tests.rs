//! The ring pump is measured: scripted files in virtual time, so that the answers are exact.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plimsoll_driver::{DriverError, Handle, OpenMode, Reply, Request, Ring, RingDriver};
use plimsoll_model::{
    Clock, EndReason, ErrorClass, Interface, Moment, OpKind, OpRecord, SharedClock, StageId,
    WorkerId, WrongKind,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::StageSpec;

use crate::instrument_tests::MS;
use crate::testing::files_of;
use crate::{
    EngineConfig, FilesJobs, KeptOps, Live, RingConfig, StageContext, StageOutcome, StageWork,
    StopFlag, VirtualTime, run_stage,
};

const BLOCK: usize = 4_096;

/// What the scripted files do with one operation.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Right,
    /// One bit of the block is another.
    Flip,
    /// Only so many bytes are moved.
    Short(u64),
    /// A read gives what was there before the last write.
    Old,
    /// A read gives what lies one block further on.
    Shifted,
    Fail(ErrorClass, &'static str),
}

use Answer::{Fail, Flip, Old, Right, Shifted, Short};

/// Decides how long an operation takes and what it gives, by its number in the stage.
pub(crate) type Script = fn(u64) -> (u64, Answer);

/// An operation when it was submitted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    at_ms: u64,
    kind: OpKind,
    in_flight: usize,
}

/// Files in memory, each with its content before the last write.
#[derive(Default)]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    content: HashMap<PathBuf, [Vec<u8>; 2]>,
    count: u64,
    seen: Vec<Seen>,
}

/// Files that do what a script says.
pub(crate) struct World {
    pub(crate) time: Arc<VirtualTime>,
    pub(crate) script: Script,
    pub(crate) files: Arc<Mutex<Files>>,
    pub(crate) pace: Pace,
}

/// What a script's unit of time is, and how long a slot's content takes to be made or checked.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) unit: Duration,
    pub(crate) content: Duration,
}

impl Pace {
    pub(crate) const MS: Self = Self { unit: Duration::from_millis(1), content: Duration::ZERO };
}

pub(crate) struct WorldRing {
    time: Arc<VirtualTime>,
    script: Script,
    files: Arc<Mutex<Files>>,
    pace: Pace,
    buffers: Vec<Vec<u8>>,
    /// End, slot and what comes of it.
    pending: Vec<(Moment, usize, Reply)>,
    /// Whether operations are done at once.
    blocks: bool,
}

impl RingDriver for World {
    type Ring = WorldRing;

    fn ring(
        &self,
        interface: Interface,
        slots: usize,
        buffer_bytes: usize,
    ) -> Result<WorldRing, DriverError> {
        Ok(WorldRing {
            time: Arc::clone(&self.time),
            script: self.script,
            files: Arc::clone(&self.files),
            pace: self.pace,
            buffers: vec![vec![0; buffer_bytes]; slots],
            pending: Vec::new(),
            blocks: interface == Interface::Psync,
        })
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["scripted".to_owned()]
    }
}

fn lock(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().unwrap()
}

impl Files {
    fn open(&mut self, path: PathBuf) -> Handle {
        self.paths.push(path);
        Handle(self.paths.len() as u32 - 1)
    }

    fn write(&mut self, file: Handle, offset: u64, bytes: &[u8]) {
        let [new, old] = self.content.entry(self.paths[file.0 as usize].clone()).or_default();
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        if new.len() < to {
            new.resize(to, 0);
        }
        old.resize(new.len(), 0);
        old[from..to].copy_from_slice(&new[from..to]);
        new[from..to].copy_from_slice(bytes);
    }

    fn read(&self, file: Handle, offset: u64, answer: Answer, buffer: &mut [u8]) {
        let [new, old] = &self.content[&self.paths[file.0 as usize]];
        let content = if matches!(answer, Old) { old } else { new };
        let from = offset as usize + if matches!(answer, Shifted) { buffer.len() } else { 0 };
        buffer.copy_from_slice(&content[from..from + buffer.len()]);
    }
}

fn kind_of(request: &Request<'_>) -> OpKind {
    match request {
        Request::Read { .. } => OpKind::Read,
        Request::Write { .. } => OpKind::Write,
        Request::Sync { .. } => OpKind::Sync,
        Request::Create { .. } => OpKind::Create,
        Request::Open { .. } => OpKind::Open,
        Request::Stat { .. } => OpKind::Stat,
        Request::Unlink { .. } => OpKind::Unlink,
        Request::Rename { .. } => OpKind::Rename,
        Request::Mkdir { .. } => OpKind::Mkdir,
        Request::Rmdir { .. } => OpKind::Rmdir,
    }
}

impl Ring for WorldRing {
    fn open_file(&mut self, path: &Path, _: OpenMode) -> Result<Handle, DriverError> {
        Ok(lock(&self.files).open(path.to_owned()))
    }

    fn open_directory(&mut self, path: &Path) -> Result<Handle, DriverError> {
        Ok(lock(&self.files).open(path.to_owned()))
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.time.pass(self.pace.content);
        &mut self.buffers[slot]
    }

    fn submit(&mut self, slot: usize, request: &Request<'_>) -> Option<Reply> {
        let mut files = lock(&self.files);
        let (takes, answer) = (self.script)(files.count);
        files.count += 1;
        let (kind, in_flight) = (kind_of(request), self.pending.len());
        files.seen.push(Seen { at_ms: self.time.now().as_ns() / MS, kind, in_flight });
        let buffer = &mut self.buffers[slot];
        let below = |files: &Files, place: &plimsoll_driver::Place<'_>| {
            files.paths[place.directory.0 as usize].join(place.name.to_str().unwrap())
        };
        let moved = match *request {
            Request::Read { file, offset, len } => {
                files.read(file, offset, answer, &mut buffer[..len as usize]);
                u64::from(len)
            }
            Request::Write { file, offset, len } => {
                files.write(file, offset, &buffer[..len as usize]);
                u64::from(len)
            }
            Request::Create { place, len, .. } => {
                let path = below(&files, &place);
                files.content.insert(path, [buffer[..len as usize].to_vec(), Vec::new()]);
                u64::from(len)
            }
            Request::Open { place, len } => {
                let [content, _] = &files.content[&below(&files, &place)];
                buffer[..len as usize].copy_from_slice(content);
                u64::from(len)
            }
            _ => 0,
        };
        if let Flip = answer {
            buffer[500] ^= 1;
        }
        let reply = match answer {
            Fail(class, text) => Err(DriverError::new(class, text)),
            Short(count) => Ok(count),
            _ => Ok(moved),
        };
        let takes = self.pace.unit * takes as u32;
        if self.blocks {
            self.time.pass(takes);
            return Some(reply);
        }
        self.pending.push((self.time.now().after(takes), slot, reply));
        None
    }

    fn next_end(&self) -> Option<Moment> {
        self.pending.iter().map(|(end, ..)| *end).min()
    }

    fn reap(&mut self, wait: Option<Duration>, replies: &mut Vec<(usize, Reply)>) {
        let now = self.time.now();
        let first = self.next_end().expect("something is under way");
        let until = wait.map_or(first, |wait| first.min(now.after(wait)));
        self.time.pass(until.since(now));
        self.look(replies);
    }

    fn look(&mut self, replies: &mut Vec<(usize, Reply)>) {
        let now = self.time.now();
        let ended = self.pending.extract_if(.., |(end, ..)| *end <= now);
        replies.extend(ended.map(|(_, slot, reply)| (slot, reply)));
    }
}

/// What one stage came to.
pub(crate) struct Ran {
    pub(crate) outcome: StageOutcome,
    pub(crate) records: Vec<OpRecord>,
    seen: Vec<Seen>,
}

impl Ran {
    pub(crate) fn starts_ms(&self) -> Vec<u64> {
        self.records.iter().map(|op| op.start.as_ns() / MS).collect()
    }

    fn outcomes(&self) -> Vec<ErrorClass> {
        self.records.iter().map(|op| op.outcome).collect()
    }

    fn kinds(&self) -> Vec<OpKind> {
        self.seen.iter().map(|seen| seen.kind).collect()
    }

    fn message(&self, class: ErrorClass) -> &str {
        let error = self.outcome.errors.iter().find(|error| error.class == class);
        &error.expect("an error of the class was kept").message
    }

    /// Returns the bytes that count.
    fn bytes(&self) -> u64 {
        let series = self.outcome.timeline.series();
        series.flat_map(|(_, each)| each.cells().map(|(_, cell)| cell.bytes)).sum()
    }
}

/// Returns a workload of stages of one job each, which are YAML without braces.
pub(crate) fn stages(jobs: &[&str]) -> WorkloadFile {
    let stages = jobs.iter().map(|job| format!("{{name: j, {job}}}"));
    workload(&stages.collect::<Vec<_>>())
}

/// Returns a workload of stages of these jobs on files of 64 KiB, one for each of up to eight
/// workers, and on a tree.
pub(crate) fn workload(stages: &[String]) -> WorkloadFile {
    let most = (2..9).rev().find(|most| {
        let workers = format!("workers: {most},");
        stages.iter().any(|jobs| jobs.contains(&workers))
    });
    let workers = most.unwrap_or(1);
    let set = |(set, job): (&str, &str)| {
        format!("  {set}: {{files: 1, size: 64KiB, workers: {workers}, job: {job}}}\n")
    };
    let sets: String = [("f", "j"), ("a", "a"), ("b", "b"), ("c", "c")].map(set).concat();
    let stage =
        |(number, jobs): (usize, &String)| format!("- {{name: stage{number}, jobs: [{jobs}]}}\n");
    let stages: String = stages.iter().enumerate().map(stage).collect();
    let text = format!(
        "schema: plimsoll.workload/2\nname: test\nseed: 7\ntargets: {{files: {{directory: /d}}}}\n\
         sets:\n  t: {{tree: {{entries: 5, per_worker: true}}}}\n{sets}stages:\n{stages}"
    );
    WorkloadFile::from_yaml("test", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the work on blocks of a worker's file.
pub(crate) fn blocks(read_percent: u32, more: &str) -> String {
    let sizes = match read_percent {
        0 => format!("write: {{block: {BLOCK}B}}"),
        100 => format!("read: {{block: {BLOCK}B}}"),
        percent => {
            format!("read: {{block: {BLOCK}B, percent: {percent}%}}, write: {{block: {BLOCK}B}}")
        }
    };
    format!("work: {{blocks: {{on: f, {sizes}, order: sequential, repeats: true{more}}}}}")
}

pub(crate) const FILL: &str = "workers: 1, work: {fill: {sets: f, block: 64KiB}}";

/// Runs all stages, each with its script, and returns what the last came to.
pub(crate) fn run_file(file: &WorkloadFile, scripts: &[Script]) -> Ran {
    run_at(file, scripts, Pace::MS)
}

/// Runs all stages, each with its script, at a pace.
pub(crate) fn run_at(file: &WorkloadFile, scripts: &[Script], pace: Pace) -> Ran {
    let plan = files_of(file);
    let files = Arc::new(Mutex::new(Files::default()));
    let mut last = None;
    assert_eq!(scripts.len(), plan.plan.stages.len());
    for (stage, &script) in scripts.iter().enumerate() {
        let time = Arc::new(VirtualTime::new());
        let clock: SharedClock = Arc::clone(&time) as SharedClock;
        (lock(&files).count, lock(&files).seen) = (0, Vec::new());
        let world = World { time: Arc::clone(&time), script, files: Arc::clone(&files), pace };
        let (live, generator) = (Live::new(1), Arc::new(Generator::new(plan.seed.0)));
        let (stop, mut kept) = (StopFlag::default(), KeptOps::default());
        let context = StageContext {
            clock: &clock,
            virtual_time: Some(&time),
            stop: &stop,
            live: &live,
            generator: &generator,
            wall_epoch: plimsoll_model::WallTime::from_unix_ns(0),
            begins_at: None,
        };
        let rings = RingConfig { threads: 1, interface: Interface::IoUring };
        let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(60), retries: 0 };
        let jobs = FilesJobs::alone(&world, &plan, stage, rings);
        let work = StageWork::of_files(StageId(stage as u8), jobs);
        let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
        assert_eq!(outcome.ops_count, kept.0.len() as u64);
        let failed = kept.0.iter().filter(|op| !op.outcome.is_ok()).count() as u64;
        assert_eq!(outcome.failed_count, failed);
        last = Some(Ran { outcome, records: kept.0, seen: lock(&files).seen.clone() });
    }
    last.expect("there is a stage")
}

pub(crate) fn one_ms(_: u64) -> (u64, Answer) {
    (1, Right)
}

pub(crate) fn ten_ms(_: u64) -> (u64, Answer) {
    (10, Right)
}

/// Runs a job on a file that was filled before.
pub(crate) fn run(job: &str, read_percent: u32, more: &str, script: Script) -> Ran {
    let job = format!("{job}, {}", blocks(read_percent, more));
    run_file(&stages(&[FILL, &job]), &[one_ms, script])
}

#[test]
fn every_kind_of_failure_has_its_class_and_counts_for_nothing() {
    let ran = run("workers: 1, depth: 1, ops: 10", 100, "", |number| {
        let answer = match number {
            3 => Flip,
            5 => Short(1_000),
            7 => Fail(ErrorClass::Io, "the disk is gone"),
            8 => Shifted,
            _ => Right,
        };
        (1, answer)
    });
    use ErrorClass::{Corrupt, Io, Ok, Truncated};
    assert_eq!(ran.outcomes(), [Ok, Ok, Ok, Corrupt, Ok, Truncated, Ok, Io, Corrupt, Ok]);
    // A failed block is not asked for again at once: 10 ms, and 20 ms after a second one in a row.
    assert_eq!(ran.starts_ms(), [0, 1, 2, 3, 14, 15, 26, 27, 38, 59]);
    assert_eq!(ran.bytes(), 6 * BLOCK as u64);
    let path = "/d/plimsoll/run/j.0.0";
    let wrong = ran.message(Corrupt);
    let at = 3 * BLOCK + 500;
    assert!(wrong.contains(&format!("byte {at} of `{path}` is wrong")), "{wrong}");
    let short = format!("truncated: `{path}` gave 1000 bytes instead of 4096 at {}", 5 * BLOCK);
    assert_eq!(ran.message(Truncated), short);
    assert_eq!(ran.message(Io), "io: the disk is gone");
    let kinds = [WrongKind::Short, WrongKind::Flipped, WrongKind::Shifted];
    let mut found: Vec<_> = ran.outcome.wrong.iter().map(|(kind, count)| (*kind, *count)).collect();
    found.sort_by_key(|(kind, _)| kinds.iter().position(|each| each == kind));
    assert_eq!(found, kinds.map(|kind| (kind, 1)));
}

#[test]
fn what_was_written_before_the_last_write_is_an_old_version() {
    let pass = "workers: 1, depth: 4, ops: 16";
    let (write, read) =
        (format!("{pass}, {}", blocks(0, "")), format!("{pass}, {}", blocks(100, "")));
    let passes = stages(&[FILL, &write, &read]);
    let right = run_file(&passes, &[one_ms as Script; 3]);
    assert_eq!((right.outcome.failed_count, right.bytes()), (0, 65_536));
    let ran =
        run_file(&passes, &[one_ms, one_ms, |number| (1, if number == 6 { Old } else { Right })]);
    assert_eq!(ran.outcome.failed_count, 1);
    assert_eq!(ran.outcome.wrong.get(&WrongKind::OldVersion), Some(&1));
    let text = ran.message(ErrorClass::Corrupt);
    assert!(text.contains("/d/plimsoll/run/j.0.0") && text.contains("version"), "{text}");
}

#[test]
fn a_failed_or_short_write_is_counted_and_its_content_is_then_either() {
    let pass = "workers: 1, depth: 1, ops: 16";
    let (write, read) =
        (format!("{pass}, {}", blocks(0, "")), format!("{pass}, {}", blocks(100, "")));
    let writing = run_file(
        &stages(&[FILL, &write]),
        &[one_ms, |number| {
            let full = Fail(ErrorClass::Io, "no space is left");
            (
                1,
                if number == 2 {
                    full
                } else if number == 4 {
                    Short(512)
                } else {
                    Right
                },
            )
        }],
    );
    assert_eq!((writing.outcome.failed_count, writing.bytes()), (2, 14 * BLOCK as u64));
    assert!(writing.outcome.errors[0].message.contains("no space is left"));
    let short = format!("io: `/d/plimsoll/run/j.0.0` took 512 of 4096 bytes at {}", 4 * BLOCK);
    assert_eq!(writing.outcome.errors[1].message, short);
    // Nobody knows which of the two is there; both are right, and only in that block.
    for (old, failed) in [(2, 0), (3, 1)] {
        let scripts: [Script; 3] = [
            one_ms,
            |number| (1, if number == 2 { Fail(ErrorClass::Io, "lost") } else { Right }),
            match old {
                2 => |number| (1, if number == 2 { Old } else { Right }),
                _ => |number| (1, if number == 3 { Old } else { Right }),
            },
        ];
        let reading = run_file(&stages(&[FILL, &write, &read]), &scripts);
        assert_eq!(reading.outcome.failed_count, failed, "block {old}");
    }
}

#[test]
fn depth_is_kept_until_the_time_is_up() {
    let job = "workers: 1, depth: 4, duration: 100ms";
    let ran = run(job, 100, "", ten_ms);
    assert_eq!(ran.records.len(), 40);
    assert_eq!(ran.outcome.ended_by, EndReason::Duration);
    assert!(ran.records.iter().all(|op| op.latency() == Duration::from_millis(10)));
    assert_eq!(ran.seen.iter().map(|seen| seen.in_flight).max(), Some(3));
    assert_eq!(ran.outcome.ended, Moment::from_ns(100 * MS));
    // What blocks has one in flight, whatever its depth.
    let ran = run(&format!("interface: psync, {job}"), 100, "", ten_ms);
    assert_eq!(
        (ran.records.len(), ran.seen.iter().map(|seen| seen.in_flight).max()),
        (10, Some(0))
    );
}

#[test]
fn a_cap_is_exact_and_its_waiting_is_no_latency() {
    for cap in ["100/s", "400KiB/s"] {
        let job =
            format!("workers: 1, depth: 4, duration: 1s, pacing: {{capped_each: {{read: {cap}}}}}");
        let ran = run(&job, 100, "", one_ms);
        let every_10_ms: Vec<u64> = (0..100).map(|number| 10 * number).collect();
        assert_eq!(ran.starts_ms(), every_10_ms, "{cap}");
        assert!(ran.records.iter().all(|op| op.latency() == Duration::from_millis(1)));
        assert_eq!(ran.outcome.ended, Moment::from_ns(1_000 * MS));
        // A stall is made up for: what was due in it follows at once.
        let job = job.replace("depth: 4", "depth: 1");
        let ran = run(&job, 100, "", |number| (if number == 0 { 250 } else { 1 }, Right));
        assert_eq!(ran.records.len(), 100, "{cap}");
        assert_eq!(ran.starts_ms()[..4], [0, 250, 251, 252]);
    }
}

#[test]
fn pauses_count_from_the_last_end_and_do_not_outlast_the_job() {
    let think = "think: {pause: 50ms, spin: 20ms, every: 4}";
    let job = format!("workers: 1, depth: 2, ops: 10, {think}");
    let ran = run(&job, 100, "", ten_ms);
    assert_eq!(ran.starts_ms(), [0, 0, 10, 10, 70, 70, 80, 80, 140, 140]);
    for spin in [0, 10_000_000_000_u64] {
        let think = format!("think: {{pause: 10s, spin: {spin}ns, every: 1}}");
        let job = format!("workers: 1, depth: 1, duration: 100ms, {think}");
        let ran = run(&job, 100, "", ten_ms);
        assert_eq!(ran.records.len(), 1);
        assert_eq!(ran.outcome.ended, Moment::from_ns(100 * MS), "spin {spin}");
    }
}

#[test]
fn nothing_is_in_flight_beside_a_sync() {
    use OpKind::{Sync, Write};
    for every in ["fsync_every", "fdatasync_every"] {
        let job = "workers: 1, depth: 4, ops: 9";
        let ran = run(job, 0, &format!(", {every}: 3, end_fsync: true"), ten_ms);
        let three = [Write, Write, Write, Sync];
        let expected: Vec<_> = [three, three, three].concat().into_iter().chain([Sync]).collect();
        assert_eq!(ran.kinds(), expected, "{every}");
        assert!(ran.seen.iter().filter(|seen| seen.kind == Sync).all(|seen| seen.in_flight == 0));
        // Three at once, a sync alone, and so on: 20 ms a round, and the last sync.
        let rounds: Vec<u64> = ran.seen.iter().map(|seen| seen.at_ms).collect();
        assert_eq!(rounds, [0, 0, 0, 10, 20, 20, 20, 30, 40, 40, 40, 50, 60]);
    }
    // When the time is up the files are put on the medium all the same.
    let job = "workers: 1, depth: 4, duration: 35ms";
    let ran = run(job, 0, ", end_fsync: true", ten_ms);
    assert_eq!(ran.kinds().last(), Some(&Sync));
    assert_eq!(*ran.seen.last().unwrap(), Seen { at_ms: 40, kind: Sync, in_flight: 0 });
    assert_eq!(ran.records.len(), 17);
}

#[test]
fn jobs_side_by_side_keep_to_their_own_pace() {
    let blocks = |name: &str, read_percent| blocks(read_percent, "").replace("on: f", name);
    let closed = format!("{{name: a, duration: 1s, {}}}", blocks("on: a", 100));
    let capped = format!(
        "{{name: b, workers: 2, pacing: {{capped_each: {{write: 10/s}}}}, duration: 1s, {}}}",
        blocks("on: b", 0)
    );
    let fill = format!("{{{}}}", FILL.replace("sets: f", "sets: a"));
    let file = workload(&[fill, format!("{closed}, {capped}")]);
    let ran = run_file(&file, &[one_ms, ten_ms]);
    let of = |worker| ran.records.iter().filter(|op| op.worker == WorkerId(worker)).count();
    assert_eq!([of(0), of(1), of(2)], [100, 10, 10]);
    assert_eq!(ran.outcome.failed_count, 0);
}

#[test]
fn the_first_failure_ends_a_stage_that_wants_it() {
    let job = format!("workers: 1, depth: 4, {}", blocks(100, ""));
    let mut file = stages(&[FILL, &format!("duration: 1s, {job}")]);
    let StageSpec::Jobs(reads) = &mut file.stages[1] else { panic!("it has jobs") };
    reads.end_on_failure = true;
    let ran = run_file(
        &file,
        &[one_ms, |number| {
            (10, if number == 9 { Fail(ErrorClass::Io, "bad sector") } else { Right })
        }],
    );
    assert_eq!(ran.outcome.ended_by, EndReason::Failure);
    assert_eq!(ran.outcome.ended_because.as_deref(), Some("READ failed: io: bad sector"));
    // What was in flight beside it is taken in: of the four that ended together the second failed,
    // when the first one's slot was in use again.
    assert_eq!(ran.records.len(), 13);
}

#[test]
fn names_fail_without_a_pause_and_their_content_is_checked() {
    let names = |act: &str| format!("interface: psync, work: {{names: {{{act}}}}}");
    let jobs = ["make_tree: t", "create: t, bytes: 600B", "stat: t", "open: t, bytes: 600B"];
    let jobs = jobs.map(names);
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    let absent: Script =
        |number| (1, if number < 3 { Fail(ErrorClass::NotFound, "no such file") } else { Right });
    let ran = run_file(&stages(&jobs[..3]), &[one_ms, one_ms, absent]);
    assert_eq!((ran.outcome.failed_count, ran.starts_ms()), (3, vec![0, 1, 2, 3, 4]));
    let flipped: Script = |number| (1, if number == 2 { Flip } else { Right });
    let ran = run_file(&stages(&jobs), &[one_ms, one_ms, one_ms, flipped]);
    use ErrorClass::{Corrupt, Ok};
    assert_eq!(ran.outcomes(), [Ok, Ok, Corrupt, Ok, Ok]);
    let text = ran.message(Corrupt);
    assert!(text.contains("byte 500 of `/d/plimsoll/run/t/"), "{text}");
    assert_eq!(ran.bytes(), 4 * 600);
}
