//! Every activity against a store in memory: each byte verified, the right kinds and counts
//! recorded.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::memory::MemoryDriver;
use plimsoll_driver::{Operation, Session};
use plimsoll_model::{
    EndReason, ErrorClass, OpKind, OpRecord, SharedClock, StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_workload::data::Generator;

use crate::testing::Laid;
use crate::{
    EngineConfig, KeptOps, Live, ObjectsJob, RunClock, ServerNames, StageContext, StageOutcome,
    StageWork, StopFlag, VirtualTime, run_stage,
};

const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A store that needs a millisecond of virtual time for each operation.
#[derive(Clone)]
struct Slow(MemoryDriver);

struct SlowSession(<MemoryDriver as plimsoll_driver::Driver>::Session);

impl plimsoll_driver::Driver for Slow {
    type Session = SlowSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<SlowSession> {
        self.0.open_sessions(clock, count).into_iter().map(SlowSession).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        self.0.endpoints()
    }
}

impl Session for SlowSession {
    async fn execute(
        &mut self,
        bucket: Option<&str>,
        operation: Operation<'_>,
    ) -> plimsoll_driver::Completion {
        let mut done = self.0.execute(bucket, operation).await;
        done.end = done.end.after(Duration::from_millis(1));
        done
    }

    fn endpoint(&self) -> plimsoll_model::EndpointId {
        self.0.endpoint()
    }
}

/// A run with everything that it needs.
struct Setup {
    workload: Arc<Laid>,
    driver: MemoryDriver,
    stop: StopFlag,
}

type Done = (StageOutcome, Vec<OpRecord>);

impl Setup {
    fn new(workload: Arc<Laid>, driver: MemoryDriver) -> Self {
        Self { workload, driver, stop: StopFlag::default() }
    }

    fn stage(&self, kind: StageKind, server_names: Option<&Arc<ServerNames>>) -> Done {
        let time = Arc::new(VirtualTime::new());
        let clock: SharedClock = Arc::clone(&time) as SharedClock;
        let generator = &self.workload.generators[0];
        let context = StageContext {
            clock: &clock,
            virtual_time: Some(&time),
            stop: &self.stop,
            live: &Live::new(1),
            generator,
            wall_epoch: WallTime::from_unix_ns(EPOCH_NS),
            begins_at: None,
        };
        let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(1), retries: 0 };
        let mut kept = KeptOps::default();
        let driver = Slow(self.driver.clone());
        let job = self.workload.alone(&driver, kind);
        let work = StageWork::of_objects(StageId(0), ObjectsJob { server_names, ..job });
        let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
        assert_eq!(outcome.ops_count, kept.0.len() as u64);
        (outcome, kept.0)
    }

    fn prepare(&self) -> Done {
        let (outcome, records) = self.stage(StageKind::Prepare, None);
        assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
        assert_eq!(records.len() as u64, self.workload.prepare_ops_count());
        (outcome, records)
    }

    /// Prepares and measures; nothing may fail.
    fn run(&self) -> Vec<OpRecord> {
        let prepared = self.workload.prepares().then(|| self.prepare().0);
        let names = prepared.as_ref().and_then(|prepared| prepared.jobs[0].server_names.as_ref());
        let (outcome, records) = self.stage(StageKind::Measure, names);
        assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
        assert_eq!(outcome.ended_by, EndReason::Duration);
        records
    }
}

fn counts(records: &[OpRecord]) -> BTreeMap<OpKind, usize> {
    let mut counts = BTreeMap::new();
    records.iter().for_each(|op| *counts.entry(op.kind).or_default() += 1);
    counts
}

/// Four workers for 200 ms of this work.
fn special(set: &str, work: &str) -> Arc<Laid> {
    Laid::of(set, 4, work, "duration: 200ms")
}

/// Four workers for half a second of these operations on twelve objects.
fn versioned(pacing: &str, operations: &str) -> Arc<Laid> {
    let job = format!("pacing: {pacing}, work: {{objects: [{operations}]}}");
    Laid::of("count: 12, size: 1000", 4, &job, "duration: 500ms")
}

/// Four workers for a second of these operations on 32 objects.
fn mixed(set: &str, operations: &str) -> Arc<Laid> {
    let set = format!("count: 32, size: 1000, {set}");
    Laid::of(&set, 4, &format!("work: {{objects: [{operations}]}}"), "duration: 1s")
}

#[test]
fn each_version_is_read_as_it_was_written() {
    let mix = "{get: o, weight: 45, version: uniform, range: random}, \
               {stat: o, weight: 30, version: uniform}, {put: o, weight: 15, as: version}, \
               {delete: o, weight: 10, version: uniform}";
    let open = "{open: {rate: 4000/s, arrivals: poisson, max_in_flight: 50}}";
    for pacing in ["closed", "{capped: 1000/s}", open] {
        let setup = Setup::new(versioned(pacing, mix), MemoryDriver::versioned());
        let counts = counts(&setup.run());
        let (puts, deletes) = (counts[&OpKind::Put], counts[&OpKind::Delete]);
        assert!(puts > 20 && deletes > 10 && counts[&OpKind::Get] > 3 * deletes, "{counts:?}");
        assert_eq!(setup.driver.versions_count(), 12 + puts - deletes);
    }
}

#[test]
fn a_spoilt_version_is_found() {
    let setup =
        Setup::new(versioned("closed", "{get: o, version: uniform}"), MemoryDriver::versioned());
    let (prepared, _) = setup.prepare();
    let mut spoilt = 0;
    setup.driver.spoil(|_, _, content| {
        content[700] ^= u8::from(spoilt == 0);
        spoilt += 1;
    });
    let (outcome, records) =
        setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    let wrong: HashSet<_> =
        records.iter().filter(|op| !op.outcome.is_ok()).map(|op| op.object).collect();
    assert_eq!(wrong.len(), 1);
    assert_eq!(outcome.errors[0].class, ErrorClass::Corrupt);
    assert!(outcome.errors[0].message.contains("byte 700 of"), "{}", outcome.errors[0].message);
}

#[test]
fn a_version_in_the_place_of_another_is_found() {
    let workload = mixed("versions: 5", "{get: o, version: uniform}, {stat: o, version: uniform}");
    let setup = Setup::new(workload, MemoryDriver::versioned());
    setup.run();
    let (prepared, _) = setup.prepare();
    let mut older = Vec::new();
    setup.driver.spoil(|_, position, content| {
        if position % 5 == 1 {
            older.clone_from(content);
        } else if position % 5 == 3 {
            content.clone_from(&older);
        }
    });
    let (outcome, _) = setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    let message = &outcome.errors[0].message;
    assert!(message.contains("bytes of an older version (1 instead of 3)"), "{message}");
    assert!(outcome.failed_count < outcome.ops_count / 4, "only one of five versions is wrong");
}

#[test]
fn a_store_without_versions_is_told_at_once() {
    let setup =
        Setup::new(versioned("closed", "{get: o, version: uniform}"), MemoryDriver::default());
    let (outcome, _) = setup.stage(StageKind::Prepare, None);
    assert_eq!(outcome.failed_count, outcome.ops_count);
    let message = &outcome.errors[0].message;
    assert!(message.contains("versioning must be on for the bucket"), "{message}");
}

#[test]
fn listings_hold_every_version() {
    let workload = mixed("versions: 3", "{list: o, versions: true}");
    let setup = Setup::new(workload, MemoryDriver::versioned());
    let records = setup.run();
    assert!(records.iter().all(|op| op.objects_count == 8 * 3 && op.kind == OpKind::List));
}

#[test]
fn retention_holds_random_versions() {
    let hold = Duration::from_secs(86_400);
    let workload =
        special("count: 20, size: 100, versions: 5", "work: {retention: {of: o, hold: 24h}}");
    let setup = Setup::new(workload, MemoryDriver::versioned());
    let records = setup.run();
    assert_eq!(counts(&records), BTreeMap::from([(OpKind::Retention, 800)]));
    assert!(records.iter().all(|op| op.bytes == 0 && op.object.is_some()));
    let held = setup.driver.held();
    // 800 draws of 100 leave one out with a chance of 1 in 3,100 each.
    assert!(held.len() > 95, "{}", held.len());
    let least = WallTime::from_unix_ns(EPOCH_NS).after(hold);
    assert!(held.iter().all(|until| *until >= least && *until <= least.after(hold)));
}

/// Reads parts of one object, which the workers fill together.
fn multipart(workers: u32, parts: u64, bytes: u64) -> Arc<Laid> {
    let set = format!("count: 1, part: {bytes}, size: {}", parts * bytes);
    Laid::of(&set, workers, "work: {parts: {get: o}}", "duration: 200ms")
}

#[test]
fn parts_of_one_object_are_uploaded_by_all_and_read() {
    let setup = Setup::new(multipart(4, 30, 5_000), MemoryDriver::default());
    let (prepared, uploads) = setup.prepare();
    let expected = [(OpKind::CreateUpload, 1), (OpKind::PutPart, 30), (OpKind::CompleteUpload, 1)];
    assert_eq!(counts(&uploads), BTreeMap::from(expected));
    let workers: HashSet<WorkerId> = uploads.iter().map(|op| op.worker).collect();
    assert_eq!(workers.len(), 4);
    assert!(uploads.iter().all(|op| op.object == Some(setup.workload.set().id(0))));
    assert_eq!((setup.driver.uploads_count(), setup.driver.versions_count()), (0, 1));
    let (outcome, records) =
        setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
    assert!(records.iter().all(|op| op.kind == OpKind::Get && op.bytes == 5_000));
    setup.driver.spoil(|_, _, content| content[5_000 * 7 + 123] ^= 1);
    let (outcome, _) = setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    assert!(outcome.failed_count > 0);
    let message = &outcome.errors[0].message;
    assert!(message.contains("byte 35123 of") && message.contains("1 flipped bit"), "{message}");
}

#[test]
fn whoever_comes_first_begins_a_common_upload_and_the_last_completes_it() {
    // None of the workers that have parts here is the first of all.
    let setup = Setup::new(multipart(5, 2, 500), MemoryDriver::default());
    let run = |workers: std::ops::Range<u32>| {
        let time = Arc::new(VirtualTime::new());
        let clock: SharedClock = Arc::clone(&time) as SharedClock;
        let context = StageContext {
            clock: &clock,
            virtual_time: Some(&time),
            stop: &setup.stop,
            live: &Live::new(1),
            generator: &setup.workload.generators[0],
            wall_epoch: WallTime::from_unix_ns(EPOCH_NS),
            begins_at: None,
        };
        let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(1), retries: 0 };
        let (mut kept, driver) = (KeptOps::default(), Slow(setup.driver.clone()));
        let job = setup.workload.alone(&driver, StageKind::Prepare);
        let work = StageWork::of_objects(StageId(0), ObjectsJob { workers, ..job });
        let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
        assert_eq!((outcome.failed_count, outcome.ended_by), (0, EndReason::OutOfWork));
        counts(&kept.0)
    };
    // Parts that another engine was to write are missing, so there is nothing to complete.
    let given_up = [(OpKind::CreateUpload, 1), (OpKind::PutPart, 1), (OpKind::AbortUpload, 1)];
    assert_eq!(run(1..4), BTreeMap::from(given_up));
    assert_eq!((setup.driver.uploads_count(), setup.driver.versions_count()), (0, 0));
    let whole = [(OpKind::CreateUpload, 1), (OpKind::PutPart, 2), (OpKind::CompleteUpload, 1)];
    assert_eq!(run(0..5), BTreeMap::from(whole));
    assert_eq!((setup.driver.uploads_count(), setup.driver.versions_count()), (0, 1));
}

#[test]
fn a_part_that_fails_in_the_prepare_stage_gives_the_upload_up() {
    let setup = Setup::new(multipart(4, 30, 500), MemoryDriver::default());
    setup.driver.refuse(|op| matches!(op, Operation::PutPart { number: 11, .. }));
    let (outcome, records) = setup.stage(StageKind::Prepare, None);
    assert_eq!(outcome.failed_count, 1);
    assert_eq!(counts(&records)[&OpKind::AbortUpload], 1);
    assert_eq!((setup.driver.uploads_count(), setup.driver.versions_count()), (0, 0));
}

fn multipart_put(pacing: &str, parts: u32, at_once: u32) -> Arc<Laid> {
    let put = format!("{{put: o, parts: {parts}, part: 300, at_once: {at_once}}}");
    special("", &format!("pacing: {pacing}, work: {{parts: {put}}}"))
}

#[test]
fn every_request_of_an_upload_is_recorded() {
    for pacing in ["closed", "{capped: 400/s}"] {
        let setup = Setup::new(multipart_put(pacing, 10, 3), MemoryDriver::default());
        let records = setup.run();
        let counts = counts(&records);
        let whole = counts[&OpKind::CompleteUpload];
        assert_eq!(setup.driver.versions_count(), whole);
        assert_eq!(setup.driver.uploads_count(), 0);
        let aborted = counts.get(&OpKind::AbortUpload).copied().unwrap_or(0);
        assert_eq!(counts[&OpKind::CreateUpload], whole + aborted);
        // Create, four rounds of three parts at a time and complete take 6 ms.
        if pacing == "closed" {
            assert!((4 * 32..=4 * 34).contains(&whole), "{whole}");
        } else {
            assert!((75..=80).contains(&counts[&OpKind::PutPart]), "{counts:?}");
        }
        let workers: HashSet<WorkerId> = records.iter().map(|op| op.worker).collect();
        assert_eq!(workers, (0..12).map(WorkerId).collect());
        // A worker has one operation under way at a time, and an object one upload.
        for worker in workers {
            let mut own: Vec<_> = records.iter().filter(|op| op.worker == worker).collect();
            own.sort_by_key(|op| op.start);
            assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start));
            assert!(own.iter().all(|op| op.object.unwrap().owner().0 == worker.0 / 3));
        }
        let right = setup.workload.keys();
        let mut key = String::new();
        let generator = Generator::new(setup.workload.seed.0);
        let mut contents = BTreeMap::new();
        for op in records.iter().filter(|op| op.kind == OpKind::CompleteUpload) {
            right.write(op.object.unwrap(), &mut key);
            let mut content = vec![0; 3_000];
            generator.content(plimsoll_workload::hash_text(&key), 0).fill(0, &mut content);
            contents.insert(key.clone(), content);
        }
        setup.driver.spoil(|key, _, content| assert_eq!(contents[key], *content));
    }
}

#[test]
fn an_upload_with_a_part_that_fails_is_given_up_and_the_next_begun() {
    let setup = Setup::new(multipart_put("closed", 10, 3), MemoryDriver::default());
    let mut count = 0;
    setup.driver.refuse(move |op| {
        count += u32::from(matches!(op, Operation::PutPart { .. }));
        matches!(op, Operation::PutPart { .. }) && count % 25 == 0
    });
    let (outcome, records) = setup.stage(StageKind::Measure, None);
    let counts = counts(&records);
    assert!(outcome.failed_count > 5, "{counts:?}");
    assert!(records.iter().all(|op| op.outcome.is_ok() || op.kind == OpKind::PutPart));
    assert!(counts[&OpKind::AbortUpload] > 5 && counts[&OpKind::CompleteUpload] > 5);
    assert_eq!(setup.driver.uploads_count(), 0);
    assert_eq!(setup.driver.versions_count(), counts[&OpKind::CompleteUpload]);
}

#[test]
fn a_stage_that_is_over_leaves_no_upload() {
    // 1,000 parts do not fit into 200 ms.
    let setup = Setup::new(multipart_put("closed", 1_000, 2), MemoryDriver::default());
    let (outcome, records) = setup.stage(StageKind::Measure, None);
    assert_eq!((outcome.failed_count, outcome.ended_by), (0, EndReason::Duration));
    let counts = counts(&records);
    assert_eq!((counts[&OpKind::CreateUpload], counts[&OpKind::AbortUpload]), (4, 4));
    assert_eq!(setup.driver.uploads_count(), 0);
    let create_fails = Setup::new(multipart_put("closed", 5, 2), MemoryDriver::default());
    create_fails.driver.refuse(|op| matches!(op, Operation::CreateUpload { .. }));
    let (outcome, records) = create_fails.stage(StageKind::Measure, None);
    assert_eq!(outcome.failed_count as usize, records.len());
    let objects: HashSet<_> = records.iter().map(|op| op.object).collect();
    assert_eq!(objects.len(), records.len(), "each is tried once");
}

#[test]
fn what_is_added_follows_on_what_is_there() {
    for pacing in ["closed", "{open: {rate: 4000/s, max_in_flight: 50}}"] {
        let job = format!("pacing: {pacing}, work: {{append: {{to: o, parts: 20}}}}");
        let workload = special("size: {log_uniform: 1..1000}", &job);
        let setup = Setup::new(workload, MemoryDriver::default());
        let records = setup.run();
        let counts = counts(&records);
        assert!(counts[&OpKind::Append] >= 15 * counts[&OpKind::Put], "{counts:?}");
        let generator = Generator::new(setup.workload.seed.0);
        let sum: u64 = records.iter().map(|op| op.bytes).sum();
        let mut there = 0;
        setup.driver.spoil(|key, _, content| {
            let right = generator.content(plimsoll_workload::hash_text(key), 0);
            assert!(right.matches(0, content));
            there += content.len() as u64;
        });
        assert_eq!(sum, there);
    }
}

#[test]
fn an_object_that_could_not_be_added_to_is_left_alone() {
    let workload = special("size: 9", "work: {append: {to: o, parts: 10000}}");
    let setup = Setup::new(workload, MemoryDriver::default());
    let mut count = 0;
    setup.driver.refuse(move |_| {
        count += 1;
        count % 40 == 0
    });
    let (outcome, records) = setup.stage(StageKind::Measure, None);
    assert_eq!(outcome.failed_count, 20);
    assert!(records.iter().all(|op| op.outcome.is_ok() || op.outcome == ErrorClass::Server));
}

#[test]
fn files_of_a_zip_archive_are_read_one_by_one() {
    let set = "count: 50, size: {log_uniform: 1..50000}, archive: zip";
    let workload = special(set, "work: {archive: {get_from_zip: o}}");
    let setup = Setup::new(workload, MemoryDriver::default());
    let (prepared, uploads) = setup.prepare();
    assert_eq!((uploads.len(), uploads[0].kind), (1, OpKind::Put));
    let (outcome, records) =
        setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
    for op in &records {
        assert_eq!((op.kind, op.bytes), (OpKind::Get, setup.workload.size_of(op.object.unwrap())));
    }
    let mut at = 0;
    setup.driver.spoil(|key, _, content| {
        assert!(key.ends_with(".zip"));
        at = content.len() / 2;
        content[at] ^= 8;
    });
    let (outcome, _) = setup.stage(StageKind::Measure, prepared.jobs[0].server_names.as_ref());
    assert!(outcome.failed_count > 0 && outcome.failed_count < outcome.ops_count / 2);
    assert_eq!(outcome.errors[0].class, ErrorClass::Corrupt);
}

#[test]
fn archives_are_taken_apart_into_objects() {
    let workload = special("size: 1234", "work: {archive: {put_tar: o, members: 7}}");
    let setup = Setup::new(workload, MemoryDriver::default());
    let records = setup.run();
    assert!(records.iter().all(|op| (op.objects_count, op.bytes) == (7, 7 * 1_234)));
    assert_eq!(counts(&records), BTreeMap::from([(OpKind::Put, 800)]));
    assert_eq!(setup.driver.versions_count(), 800 * 7);
    let generator = Generator::new(setup.workload.seed.0);
    setup.driver.spoil(|key, _, content| {
        assert!(key.starts_with("plimsoll/run/"));
        let right = generator.content(plimsoll_workload::hash_text(key), 0);
        assert!(content.len() == 1_234 && right.matches(0, content));
    });
}

#[test]
fn one_content_is_written_under_several_names() {
    let workload = special("size: 500", "work: {fanout: {put: o, copies: 9}}");
    let setup = Setup::new(workload, MemoryDriver::default());
    let records = setup.run();
    assert!(records.iter().all(|op| (op.objects_count, op.bytes) == (9, 4_500)));
    assert_eq!(counts(&records), BTreeMap::from([(OpKind::Post, 800)]));
    assert_eq!(setup.driver.versions_count(), 7_200);
}

#[test]
fn a_form_is_a_kind_of_its_own_and_is_read_back() {
    let workload = mixed("content: {shaped: {compress_ratio: 3.0}}", "{get: o}, {post: o}");
    let counts = counts(&Setup::new(workload, MemoryDriver::default()).run());
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [OpKind::Get, OpKind::Post]);
}

/// On threads and the machine's clock: who uploads one object together waits for one another.
#[test]
fn threads_share_an_upload() {
    let workload = multipart(4, 200, 100);
    let clock: SharedClock = Arc::new(RunClock::start());
    let (stop, live) = (StopFlag::default(), Live::new(3));
    let generator = Arc::new(Generator::new(workload.seed.0));
    let context = StageContext {
        clock: &clock,
        virtual_time: None,
        stop: &stop,
        live: &live,
        generator: &generator,
        wall_epoch: WallTime::from_unix_ns(EPOCH_NS),
        begins_at: None,
    };
    let config = EngineConfig { threads: 3, op_timeout: Duration::from_secs(10), retries: 0 };
    let driver = MemoryDriver::default();
    let mut kept = KeptOps::default();
    let job = workload.alone(&driver, StageKind::Prepare);
    let work = StageWork::of_objects(StageId(0), job);
    let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
    assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
    assert_eq!(counts(&kept.0)[&OpKind::PutPart], 200);
    assert_eq!((driver.uploads_count(), driver.versions_count()), (0, 1));
}

/// A store whose thread dies when an upload is to begin.
struct Dying;

struct DyingSession;

impl plimsoll_driver::Driver for Dying {
    type Session = DyingSession;

    fn open_sessions(&self, _: &SharedClock, count: usize) -> Vec<DyingSession> {
        (0..count).map(|_| DyingSession).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["dying".to_owned()]
    }
}

impl Session for DyingSession {
    async fn execute(
        &mut self,
        _: Option<&str>,
        operation: Operation<'_>,
    ) -> plimsoll_driver::Completion {
        assert!(!matches!(operation, Operation::CreateUpload { .. }), "scripted");
        unreachable!("no upload began")
    }

    fn endpoint(&self) -> plimsoll_model::EndpointId {
        plimsoll_model::EndpointId(0)
    }
}

#[test]
fn nobody_waits_for_an_upload_whose_beginner_is_gone() {
    let workload = multipart(4, 200, 100);
    let clock: SharedClock = Arc::new(RunClock::start());
    let context = StageContext {
        clock: &clock,
        virtual_time: None,
        stop: &StopFlag::default(),
        live: &Live::new(4),
        generator: &Arc::new(Generator::new(1)),
        wall_epoch: WallTime::from_unix_ns(EPOCH_NS),
        begins_at: None,
    };
    let config = EngineConfig { threads: 4, op_timeout: Duration::from_secs(1), retries: 0 };
    let mut kept = KeptOps::default();
    let job = workload.alone(&Dying, StageKind::Prepare);
    let work = StageWork::of_objects(StageId(0), job);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_stage(&work, &config, &context, &mut kept).map(|_| ())
    }));
    let panic = ran.expect_err("the panic is handed on");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"scripted"));
    assert!(context.stop.is_set() && kept.0.is_empty());
}
