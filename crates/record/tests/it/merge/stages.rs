//! Runs of several stages and jobs: which belong together, and which are refused.

use plimsoll_model::{
    CacheState, EndReason, Interface, JobWork, OpRecord, StageId, StageKind, WorkerId,
};
use plimsoll_record::schema::{
    FilesStage, LoopModel, MergedRun, MergedStage, ProcessUsage, Schedule, StageJob,
};
use plimsoll_record::{Manifest, MergePart, RecordError};
use plimsoll_workload::{ArrivalLaw, RateProfile};

use super::{SECOND, get, merge_part, merged, part_manifest, rows};

const MEASURE: StageKind = StageKind::Measure;
const PREPARE: StageKind = StageKind::Prepare;

/// Returns a part with these stages: what each is for, its name, its beginning and its end.
fn part(
    run_id: &str,
    later: u64,
    stages: &[(StageKind, &str, u64, u64)],
) -> MergePart<'static, RecordError> {
    let spans: Vec<_> =
        stages.iter().map(|(kind, _, from, until)| (*kind, *from, *until)).collect();
    let mut manifest = part_manifest(run_id, later, &spans);
    for (stage, (_, name, ..)) in manifest.stages.iter_mut().zip(stages) {
        stage.name = (*name).to_owned();
        stage.ended_by = Some(EndReason::Duration);
        stage.planned_index = Some(stage.index.into());
    }
    merge_part(manifest, Vec::new(), 2)
}

fn on_files(mut part: MergePart<'static, RecordError>) -> MergePart<'static, RecordError> {
    for stage in &mut part.manifest.stages {
        stage.files = Some(FilesStage::default());
    }
    part
}

fn whole_of(parts: Vec<MergePart<'_, RecordError>>) -> Manifest {
    let place = tempfile::tempdir().unwrap();
    merged(parts, &place.path().join("merged")).unwrap().read_manifest().unwrap()
}

/// Returns name, beginning and end of each stage, in seconds.
fn bounds(manifest: &Manifest) -> Vec<(&str, u64, u64)> {
    let seconds = |at: Option<u64>| at.unwrap() / SECOND;
    let stages = manifest.stages.iter();
    stages.map(|stage| (&*stage.name, seconds(stage.started_ns), seconds(stage.ended_ns))).collect()
}

fn own_bounds(run: &MergedRun) -> Vec<(u8, u16, u64, u64)> {
    let seconds = |at: Option<u64>| at.unwrap() / SECOND;
    let own = |of: &MergedStage| {
        (of.index, of.planned_index.unwrap(), seconds(of.started_ns), seconds(of.ended_ns))
    };
    run.stages.iter().map(own).collect()
}

#[test]
fn stages_are_matched_in_order_and_each_run_keeps_its_own_times() {
    let a = part(
        "a",
        0,
        &[
            (PREPARE, "fill", 0, 10),
            (MEASURE, "put", 10, 20),
            (PREPARE, "more", 20, 22),
            (MEASURE, "get", 22, 30),
        ],
    );
    // Three seconds later, and with nothing to prepare at first.
    let b = part(
        "b",
        3,
        &[(MEASURE, "put", 9, 20), (PREPARE, "more", 20, 21), (MEASURE, "get", 21, 29)],
    );
    let whole = whole_of(vec![b, a]);
    // What is measured for a time lasts while all measured.
    let expected = [("fill", 0, 10), ("put", 12, 20), ("more", 20, 24), ("get", 24, 30)];
    assert_eq!(bounds(&whole), expected);
    let counts: Vec<_> = whole.stages.iter().map(|stage| stage.ops_count.unwrap()).collect();
    assert_eq!(counts, [10, 20, 20, 20]);
    let own: Vec<_> = whole.merged.iter().map(own_bounds).collect();
    let of_a = vec![(0, 0, 0, 10), (1, 1, 10, 20), (2, 2, 20, 22), (3, 3, 22, 30)];
    assert_eq!(own, [of_a, vec![(1, 0, 12, 23), (2, 1, 23, 24), (3, 2, 24, 32)]]);
}

#[test]
fn a_part_that_lost_an_agent_makes_the_whole_degraded() {
    let mut lossy = part("a", 0, &[(MEASURE, "get", 0, 10)]);
    lossy.manifest.agents = crate::manifest().agents;
    let whole = whole_of(vec![lossy, part("b", 0, &[(MEASURE, "get", 0, 10)])]);
    let said = "DEGRADED: run a lost agents (node1), and their share of the work is missing";
    assert_eq!(whole.advice, [said]);
}

#[test]
fn what_ends_by_work_lasts_from_the_first_beginning_to_the_last_end() {
    let put_and_delete = |run_id: &str, from: u64, until: u64| {
        let mut part =
            part(run_id, 0, &[(MEASURE, "put", 0, 10), (MEASURE, "delete", from, until)]);
        part.manifest.stages[1].ended_by = Some(EndReason::OutOfWork);
        part
    };
    let whole = whole_of(vec![put_and_delete("a", 10, 12), put_and_delete("b", 11, 15)]);
    assert_eq!(bounds(&whole), [("put", 0, 10), ("delete", 10, 15)]);
    assert_eq!((whole.notes.len(), whole.advice.len()), (0, 0), "{:?}", whole.notes);
    // They may even have taken turns, which is said.
    let whole = whole_of(vec![put_and_delete("a", 10, 12), put_and_delete("b", 12, 15)]);
    assert_eq!(bounds(&whole), [("put", 0, 10), ("delete", 10, 15)]);
    let said = "stage delete: the merged runs never all ran it at the same time (a had ended \
                by 2026-11-21T09:00:12.000000000Z, and b began at \
                2026-11-21T09:00:12.000000000Z), so its rates, over the time from the first \
                beginning to the last end, are not those of all of them together";
    assert_eq!(whole.advice, [said]);
    assert_eq!(whole.notes.len(), 0, "{:?}", whole.notes);

    let on_files = |run_id: &str, later| on_files(part(run_id, later, &[(MEASURE, "read", 0, 10)]));
    let whole = whole_of(vec![on_files("a", 0), on_files("b", 9)]);
    assert_eq!((bounds(&whole), whole.advice.len()), (vec![("read", 0, 19)], 0));
    let whole = whole_of(vec![on_files("a", 0), on_files("b", 10)]);
    assert_eq!((bounds(&whole), whole.advice.len()), (vec![("read", 0, 20)], 1));
}

#[test]
fn workers_come_client_by_client_with_room_for_the_largest_stage() {
    let ops = |worker: u32| {
        let op = |stage: u8| OpRecord {
            worker: WorkerId(worker),
            ..get(stage, 0, u64::from(stage) * 1_000 + u64::from(worker))
        };
        [op(0), op(1)].to_vec()
    };
    let of = |run_id: &str, workers_count: u32, worker: u32| {
        let stages = [(MEASURE, "read", 0, 10), (MEASURE, "write", 10, 20)];
        let mut part = on_files(part(run_id, 0, &stages));
        part.manifest.stages[1].workers_count = 1;
        MergePart { ..merge_part(part.manifest, ops(worker), workers_count) }
    };
    let place = tempfile::tempdir().unwrap();
    let parts = vec![of("b", 5, 4), of("a", 3, 2), of("c", 1, 0)];
    let directory = merged(parts, &place.path().join("merged")).unwrap();
    let whole = directory.read_manifest().unwrap();
    let blocks: Vec<_> =
        whole.merged.iter().map(|run| (run.worker_index_first, run.workers_count)).collect();
    assert_eq!(blocks, [(0, 3), (3, 5), (8, 1)]);
    assert_eq!(whole.stages[1].workers_count, 3);
    let mut workers: Vec<_> = rows(&directory).iter().map(|op| (op.stage, op.worker.0)).collect();
    workers.sort_unstable();
    let stage = |stage: u8| [2, 7, 8].map(|worker| (StageId(stage), worker));
    assert_eq!(workers, [stage(0), stage(1)].concat());
}

#[test]
fn what_is_known_of_stages_on_files_adds_up() {
    let schedule = |rate: &str, offered: u64| Schedule {
        rates: vec![rate.parse().unwrap()],
        arrivals: vec![ArrivalLaw::Constant],
        max_in_flight: 4,
        offered_from_ns: None,
        offered_until_ns: None,
        offered_count: Some(offered),
        late_count: Some(1),
        skipped_count: Some(0),
        held_count: 0,
        delay_max_ns: Some(offered),
    };
    let of = |run_id: &str, caches: CacheState, gap: Option<u64>, jobs: &[(usize, &str, u64)]| {
        let mut part = on_files(part(run_id, 0, &[(MEASURE, "read", 0, 10)]));
        let stage = &mut part.manifest.stages[0];
        let own = if run_id == "a" { Interface::Libaio } else { Interface::Psync };
        let interfaces = [Interface::IoUring, own].map(Some);
        let job = |interface| StageJob { interface, ..StageJob::of("j", 1, LoopModel::Open) };
        stage.jobs = interfaces.into_iter().map(job).collect();
        for (job, rate, offered) in jobs {
            stage.jobs[*job].schedule = Some(schedule(rate, *offered));
        }
        stage.files = Some(FilesStage {
            caches: Some(caches),
            caches_reason: (caches == CacheState::Cached).then(|| "not root".to_owned()),
            usage: Some(ProcessUsage { user_ns: 5, ..ProcessUsage::default() }),
            unverified_bytes: Some(7),
            look_gap_max_ns: gap,
            uncertain_count: gap.map(|_| 2),
        });
        part
    };
    let parts = vec![
        of("a", CacheState::Dropped, Some(9), &[(0, "5/s", 50), (1, "1/s", 10)]),
        of("b", CacheState::Cached, None, &[(1, "2/s", 20)]),
        of("c", CacheState::Dropped, Some(11), &[(1, "1/s", 10)]),
    ];
    let whole = whole_of(parts);
    let files = whole.stages[0].files.as_ref().unwrap();
    let jobs = &whole.stages[0].jobs;
    let interfaces: Vec<_> = jobs.iter().map(|job| job.interface).collect();
    assert_eq!(interfaces, [Some(Interface::IoUring), None]);
    assert_eq!((files.caches, files.caches_reason.as_deref()), (None, Some("not root")));
    assert_eq!(files.usage.map(|used| used.user_ns), Some(15));
    assert_eq!(files.unverified_bytes, Some(21));
    assert_eq!((files.look_gap_max_ns, files.uncertain_count), (Some(11), Some(4)));
    let of_jobs: Vec<_> = jobs
        .iter()
        .map(|job| job.schedule.as_ref().unwrap())
        .map(|schedule| (schedule.rates.clone(), schedule.offered_count.unwrap()))
        .collect();
    let rates =
        |all: &[f64]| all.iter().map(|rate| RateProfile::constant(*rate).unwrap()).collect();
    assert_eq!(of_jobs, [(rates(&[5.0]), 50), (rates(&[1.0, 1.0, 2.0]), 40)]);
    let differing = "the merged runs differ in caches of stage read, interfaces of stage read;";
    assert!(whole.notes[0].starts_with(differing), "{:?}", whole.notes);
}

#[test]
fn a_workload_that_differs_stays_with_its_run() {
    let of = |run_id: &str, seed: u64, clones: u32| {
        let mut part = on_files(part(run_id, 0, &[(MEASURE, "read", 0, 10)]));
        part.manifest.seed = seed;
        part.manifest.workload = serde_json::json!({
            "schema": "plimsoll.workload/9", "seed": seed, "stages": [{ "clones": clones }],
        })
        .into();
        part
    };
    let own = |manifest: &Manifest| -> Vec<Option<u64>> {
        let clones =
            |run: &MergedRun| run.workload.as_ref()?.to_value()["stages"][0]["clones"].as_u64();
        manifest.merged.iter().map(clones).collect()
    };
    let whole = whole_of(vec![of("a", 1, 4), of("b", 2, 4)]);
    assert_eq!(own(&whole), [None, None]);
    assert_eq!(whole.workload.to_value()["schema"], "plimsoll.workload/9");
    let seeds: Vec<_> = whole.merged.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [Some(1), Some(2)]);
    // Together with one that differs, those that were alike keep theirs.
    let alike = merge_part(whole, Vec::new(), 4);
    let whole = whole_of(vec![of("c", 3, 8), alike]);
    assert_eq!(own(&whole), [Some(4), Some(4), Some(8)]);
    let seed_of_b = whole.merged[1].workload.as_ref().unwrap().to_value()["seed"].as_u64();
    let schema = &whole.workload.to_value()["schema"];
    assert_eq!((seed_of_b, schema), (Some(2), &serde_json::Value::Null));
}

fn with_jobs(
    mut part: MergePart<'static, RecordError>,
    jobs: &[(&str, JobWork)],
) -> MergePart<'static, RecordError> {
    let job = |(name, work): &(&str, JobWork)| StageJob {
        work: Some(*work),
        ..StageJob::of(name, 1, LoopModel::Closed)
    };
    for stage in &mut part.manifest.stages {
        stage.jobs = jobs.iter().map(job).collect();
    }
    part
}

#[test]
fn runs_whose_stages_or_jobs_differ_are_refused_with_both_named() {
    let loops = |run_id: &str, second: &str| {
        part(run_id, 0, &[(MEASURE, "put", 0, 10), (MEASURE, second, 10, 20)])
    };
    let one = |run_id: &str| part(run_id, 0, &[(MEASURE, "put", 0, 10)]);
    let file = |run_id: &str| on_files(one(run_id));
    let prepared = |run_id: &str, name: &str| {
        let stages = [(PREPARE, name, 0, 1), (MEASURE, "put", 1, 9), (MEASURE, "get", 9, 20)];
        part(run_id, 0, &stages)
    };
    let repeated = || {
        let mut part = on_files(loops("b", "put"));
        part.manifest.stages[1].iteration = 1;
        part
    };
    let unended = || {
        let mut part = loops("b", "get");
        part.manifest.stages[1].ended_ns = None;
        part
    };
    let late = || part("b", 0, &[(MEASURE, "put", 5, 15), (MEASURE, "get", 20, 30)]);
    let cases = [
        (
            vec![loops("a", "get"), loops("b", "list")],
            "run a has stage get where run b has stage list;",
        ),
        (
            vec![loops("a", "get"), one("b")],
            "run a has stage get where run b has no further stage;",
        ),
        (vec![one("a"), file("b")], "run a has stage put where run b has stage put (on files);"),
        (
            vec![on_files(loops("a", "put")), repeated()],
            "run a has stage put (on files) where run b has stage put (on files, repetition 2);",
        ),
        (
            vec![prepared("a", "fill"), prepared("b", "make")],
            "run a has preparing stage fill where run b has preparing stage make;",
        ),
        (
            vec![
                with_jobs(file("a"), &[("x", JobWork::Read)]),
                with_jobs(file("b"), &[("x", JobWork::Write)]),
            ],
            "in stage put run a has job x (read) where run b has job x (write);",
        ),
        (
            vec![with_jobs(file("a"), &[("x", JobWork::Read)]), with_jobs(file("b"), &[])],
            "in stage put run a has job x (read) where run b has no further job;",
        ),
        (
            vec![loops("a", "get"), unended()],
            "the record of run b does not say when stage get began or ended,",
        ),
        (
            vec![loops("a", "get"), late()],
            "nothing overlaps in stage get: a had ended by 2026-11-21T09:00:20.000000000Z and b ",
        ),
        (
            vec![merge_part(whole_of(vec![one("a"), one("b")]), Vec::new(), 4), one("b")],
            "run b is given twice and would count double",
        ),
    ];
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("merged");
    for (parts, sentence) in cases {
        let refused = merged(parts, &path).map(|_| ()).unwrap_err().to_string();
        assert!(refused.starts_with(sentence), "{refused}");
        assert!(!path.exists(), "a refusal leaves nothing behind");
    }
}
