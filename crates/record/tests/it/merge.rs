//! Runs merged into one.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

mod shards;
mod stages;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_model::{
    EndReason, EndpointId, Moment, ObjectId, OpKind, OpRecord, RunId, SeriesKey, StageId,
    StageKind, TargetKind, WallTime, WorkerId, WrongKind,
};
use plimsoll_record::schema::{
    FilesTarget, LoopModel, RunState, Schedule, ScrapedPage, Stage, StageJob, Target, WrongCount,
};
use plimsoll_record::{
    Manifest, MergeError, MergePart, OpLog, RecordError, RunDirectory, SummaryWriter, merge,
};
use plimsoll_stats::{Sample, Timeline};
use plimsoll_workload::ArrivalLaw;

use crate::{EPOCH, endpoints};

const SECOND: u64 = 1_000_000_000;

/// What a stage of a part is: its kind, its beginning and its end, in seconds since the part's
/// epoch.
type Span = (StageKind, u64, u64);

const STAGES: [Span; 2] = [(StageKind::Prepare, 0, 20), (StageKind::Measure, 20, 90)];

fn stage((kind, started, ended): Span, index: usize) -> Stage {
    Stage {
        index: index as u8,
        kind,
        workers_count: 2,
        threads_count: 1,
        started_ns: Some(started * SECOND),
        ended_ns: Some(ended * SECOND),
        ops_count: Some(10),
        ..crate::manifest().stages[0].clone()
    }
}

/// Returns a run that began `later` seconds after the epoch.
fn part_manifest(run_id: &str, later: u64, stages: &[Span]) -> Manifest {
    let mut manifest = crate::manifest();
    manifest.run_id = run_id.to_owned();
    manifest.state = RunState::Complete;
    manifest.started_unix_ns = EPOCH.as_unix_ns() + later * SECOND;
    manifest.started_at = WallTime::from_unix_ns(manifest.started_unix_ns).to_string();
    manifest.merged = Vec::new();
    manifest.agents = Vec::new();
    manifest.stages = stages.iter().enumerate().map(|(index, span)| stage(*span, index)).collect();
    manifest
}

fn merge_part(
    manifest: Manifest,
    ops: Vec<OpRecord>,
    workers_count: u32,
) -> MergePart<'static, RecordError> {
    let stage_of = (0..manifest.stages.len()).map(|at| (StageId(at as u8), at)).collect();
    let scan = Box::new(move |visit: &mut dyn FnMut(&OpRecord)| {
        ops.iter().for_each(visit);
        Ok(())
    });
    MergePart { manifest, stage_of, workers_count, scan }
}

fn merged(
    parts: Vec<MergePart<'_, RecordError>>,
    path: &Path,
) -> Result<RunDirectory, MergeError<RecordError>> {
    merge(parts, path, &RunId::new("merged", EPOCH, 0), vec!["plimsoll".to_owned()])
}

fn rows(directory: &RunDirectory) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    ops
}

fn file(directory: &RunDirectory, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

/// Returns a download by worker 0 in a stage, from `start_ms` and for a quarter of a second.
fn get(stage: u8, endpoint: u16, start_ms: u64) -> OpRecord {
    let at = |ms: u64| Moment::from_ns(ms * 1_000_000);
    OpRecord {
        stage: StageId(stage),
        endpoint: EndpointId(endpoint),
        object: Some(ObjectId::new(WorkerId(0), start_ms)),
        bytes: 4_096,
        first_byte: Some(at(start_ms + 100)),
        ..OpRecord::plain(OpKind::Get, at(start_ms), at(start_ms + 250))
    }
}

fn summarised(directory: &RunDirectory, ops: &[OpRecord]) -> String {
    let mut timeline: Timeline<SeriesKey> = Timeline::new(0, SECOND);
    for op in ops {
        let sample = Sample {
            start_ns: op.start.as_ns(),
            end_ns: op.end.as_ns(),
            latency_ns: op.end.as_ns() - op.intended.as_ns(),
            ttfb_ns: op.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
            bytes: op.bytes,
            objects: op.objects_count.into(),
            outcome: op.outcome as u8,
        };
        timeline
            .record(SeriesKey { stage: op.stage, kind: op.kind, endpoint: op.endpoint }, &sample);
    }
    SummaryWriter::new(directory).write(&mut timeline).unwrap();
    file(directory, "summary.json")
}

/// What differs of any target of files is unknown of the whole, whichever part comes first.
#[test]
fn each_target_of_files_is_united() {
    let place = tempfile::tempdir().unwrap();
    let part = |run: &str, free_bytes: u64| {
        let mut manifest = part_manifest(run, 0, &STAGES);
        let directories = vec!["/data".to_owned()];
        let file_system = Some("xfs".to_owned());
        let files = FilesTarget {
            directories,
            file_system,
            free_bytes: Some(free_bytes),
            ..FilesTarget::default()
        };
        manifest.more_targets = vec![Target {
            prefix: Some("plimsoll".to_owned()),
            files: Some(files),
            ..Target::bare(TargetKind::File, vec!["/data".to_owned()])
        }];
        merge_part(manifest, vec![get(1, 0, 30_000)], 1)
    };
    let whole = |name: &str, parts: Vec<MergePart<'_, RecordError>>| {
        merged(parts, &place.path().join(name)).unwrap().read_manifest().unwrap()
    };
    let one = whole("ab", vec![part("a", 1), part("b", 2)]);
    let other = whole("ba", vec![part("b", 2), part("a", 1)]);
    assert_eq!(one.more_targets, other.more_targets);
    let [Target { files: Some(files), prefix: None, .. }] = &*one.more_targets else {
        panic!("{:?}", one.more_targets)
    };
    assert_eq!((files.file_system.as_deref(), files.free_bytes), (Some("xfs"), None));
    assert!(one.notes.iter().any(|note| note.contains("where their files lay")), "{:?}", one.notes);
}

#[test]
fn moments_move_to_the_earliest_epoch_and_measuring_lasts_while_all_measured() {
    let place = tempfile::tempdir().unwrap();
    let early = part_manifest("b", 0, &[(StageKind::Prepare, 0, 1), (StageKind::Measure, 1, 7)]);
    // Three seconds later: prepares from 3 s to 5 s of the whole, and measures from 5 s to 12 s.
    let mut late = part_manifest("a", 3, &[(StageKind::Prepare, 0, 2), (StageKind::Measure, 2, 9)]);
    late.first_errors[0].at_ns = Some(2_500_000_000);
    let parts = vec![
        merge_part(early, vec![get(0, 0, 500), get(1, 0, 6_000)], 1),
        merge_part(late, vec![get(0, 0, 500), get(1, 1, 2_500)], 1),
    ];
    let directory = merged(parts, &place.path().join("merged")).unwrap();
    let manifest = directory.read_manifest().unwrap();
    assert_eq!(manifest.state, RunState::Complete);
    assert_eq!(manifest.started_unix_ns, EPOCH.as_unix_ns());
    assert_eq!(manifest.started_at, "2026-11-21T09:00:00.000000000Z");
    let stages: Vec<_> = manifest
        .stages
        .iter()
        .map(|stage| (stage.kind, stage.started_ns, stage.ended_ns, stage.ops_count))
        .collect();
    let expected = [
        (StageKind::Prepare, Some(0), Some(5 * SECOND), Some(20)),
        (StageKind::Measure, Some(5 * SECOND), Some(7 * SECOND), Some(20)),
    ];
    assert_eq!(stages, expected);
    assert_eq!((manifest.stages[1].workers_count, manifest.stages[1].threads_count), (4, 2));
    let errors: Vec<_> = manifest.first_errors.iter().map(|error| error.at_ns).collect();
    assert_eq!(errors, [Some(5), Some(5_500_000_000)]);

    let mut ops = rows(&directory);
    ops.sort_by_key(|op| op.start);
    let own = |worker: u32, op: OpRecord| OpRecord {
        worker: WorkerId(worker),
        object: op.object.map(|object| ObjectId::new(WorkerId(worker), object.number())),
        ..op
    };
    // Parts are numbered by name, so `a` has worker 0; its objects keep their numbers.
    let late = |stage, endpoint, own_ms: u64| OpRecord {
        object: Some(ObjectId::new(WorkerId(0), own_ms)),
        ..get(stage, endpoint, own_ms + 3_000)
    };
    let expected =
        [own(1, get(0, 0, 500)), late(0, 0, 500), late(1, 1, 2_500), own(1, get(1, 0, 6_000))];
    assert_eq!(ops, expected);
}

#[test]
fn schedules_and_wrong_content_add_up() {
    let place = tempfile::tempdir().unwrap();
    let part = |run_id: &str, rate: &str, counts: [u64; 4], wrong: &[(WrongKind, u64)]| {
        let mut manifest = part_manifest(run_id, 0, &[(StageKind::Measure, 0, 9)]);
        let [offered, late, skipped, delay] = counts.map(Some);
        let stage = &mut manifest.stages[0];
        stage.jobs[0].schedule = Some(Schedule {
            rates: vec![rate.parse().unwrap()],
            arrivals: vec![ArrivalLaw::Constant],
            max_in_flight: 10,
            offered_from_ns: None,
            offered_until_ns: None,
            offered_count: offered,
            late_count: late,
            skipped_count: skipped,
            held_count: 0,
            delay_max_ns: delay,
        });
        stage.stream_hash = Some("00c0ffee00c0ffee".to_owned());
        (stage.uploads_given_up_count, stage.uploads_left_count) = (7, wrong.len() as u64);
        let count = |&(kind, count): &(WrongKind, u64)| WrongCount { kind, count };
        stage.wrong = wrong.iter().map(count).collect();
        merge_part(manifest, Vec::new(), 1)
    };
    let parts = vec![
        part("a", "100/s", [900, 5, 1, 70], &[(WrongKind::Zeroed, 1), (WrongKind::Torn, 2)]),
        part("b", "200/s", [1_800, 0, 0, 90], &[(WrongKind::Torn, 5)]),
        part("c", "300/s", [2_700, 1, 0, 80], &[]),
    ];
    let whole = merged(parts, &place.path().join("merged")).unwrap().read_manifest().unwrap();
    let expected = Schedule {
        rates: ["100/s", "200/s", "300/s"].map(|rate| rate.parse().unwrap()).to_vec(),
        arrivals: vec![ArrivalLaw::Constant],
        max_in_flight: 30,
        offered_from_ns: None,
        offered_until_ns: None,
        offered_count: Some(5_400),
        late_count: Some(6),
        skipped_count: Some(1),
        held_count: 0,
        delay_max_ns: Some(90),
    };
    assert_eq!(whole.stages[0].jobs[0].schedule, Some(expected));
    assert_eq!(whole.stages[0].stream_hash, None);
    let uploads = (whole.stages[0].uploads_given_up_count, whole.stages[0].uploads_left_count);
    assert_eq!(uploads, (21, 3));
    let wrong: Vec<_> =
        whole.stages[0].wrong.iter().map(|wrong| (wrong.kind, wrong.count)).collect();
    assert_eq!(wrong, [(WrongKind::Zeroed, 1), (WrongKind::Torn, 7)]);
}

#[test]
fn what_cannot_be_merged_is_refused_in_a_sentence() {
    let measure = |run_id: &str, later, started, ended| {
        let manifest = part_manifest(run_id, later, &[(StageKind::Measure, started, ended)]);
        merge_part(manifest, Vec::new(), 1)
    };
    let idle = || {
        let manifest = part_manifest("idle", 0, &[(StageKind::Prepare, 0, 9)]);
        merge_part(manifest, Vec::new(), 1)
    };
    let unended = || {
        let mut part = measure("killed", 0, 0, 9);
        part.manifest.stages[0].ended_ns = None;
        part
    };
    let cases = [
        (Vec::new(), "merging takes at least two runs"),
        (vec![measure("a", 0, 0, 9)], "merging takes at least two runs"),
        (
            vec![measure("a", 0, 0, 9), measure("b", 0, 0, 9), measure("a", 0, 0, 9)],
            "run a is given twice and would count double",
        ),
        (
            vec![measure("a", 0, 0, 9), idle()],
            "run idle measured nothing, so there is nothing to merge it with",
        ),
        (
            vec![measure("a", 0, 0, 9), unended()],
            "run killed measured nothing, so there is nothing to merge it with",
        ),
        (
            // The one ends as the other begins: 4 + 5 = 9 s after the epoch.
            vec![measure("late", 4, 5, 30), measure("wide", 0, 0, 60), measure("early", 0, 1, 9)],
            "nothing overlaps: early had ended by 2026-11-21T09:00:09.000000000Z and late began to \
             measure at 2026-11-21T09:00:09.000000000Z; only runs that ran at the same time can be \
             merged",
        ),
    ];
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("merged");
    for (parts, sentence) in cases {
        let refused = merged(parts, &path).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), sentence);
        assert!(!path.exists(), "a refusal leaves nothing behind");
    }
}

/// Returns a part whose operations are `ops`, and another that measured at the same time.
fn pair(ops: Vec<OpRecord>) -> Vec<MergePart<'static, RecordError>> {
    vec![
        merge_part(part_manifest("a", 0, &STAGES), ops, 1),
        merge_part(part_manifest("b", 0, &STAGES), vec![get(1, 0, 21_000)], 1),
    ]
}

#[test]
fn a_merge_that_fails_midway_leaves_nothing_behind() {
    let unreadable = || {
        let mut parts = pair(Vec::new());
        parts[1].scan = Box::new(|visit| {
            visit(&get(1, 0, 21_000));
            Err(RecordError::Missing { path: "part-000001.parquet".into() })
        });
        parts
    };
    let beyond =
        || pair(vec![get(1, 0, 21_000), OpRecord { worker: WorkerId(1), ..get(1, 0, 22_000) }]);
    // 33 days, and so past the limit.
    let late = || pair(vec![get(1, 0, 33 * 86_400_000)]);
    let place = tempfile::tempdir().unwrap();
    for (parts, sentence) in [
        (&unreadable as &dyn Fn() -> _, "cannot read run b"),
        (
            &beyond,
            "the op log of run a has an operation of worker 1, but the run's workers are numbered \
             from 0 to below 1; its record is damaged",
        ),
        (
            &late,
            "run a has an operation that ended on 2026-12-24T09:00:00.250000000Z, 33 days after \
             the first run began; a merged run may span 32 days, so is its clock right?",
        ),
    ] {
        let path = place.path().join("merged");
        let refused = merged(parts(), &path).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), sentence);
        assert!(!path.exists(), "{sentence}");
        // A directory that was there before stays, as empty as it was.
        fs::create_dir(&path).unwrap();
        assert!(merged(parts(), &path).is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "{sentence}");
        fs::remove_dir(&path).unwrap();
    }
}

#[test]
fn what_the_parts_differ_in_is_not_claimed_of_the_whole() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let alike = || {
        let mut parts = pair(Vec::new());
        for part in &mut parts {
            let seed = part.manifest.seed;
            part.manifest.workload = serde_json::json!({
                "schema": "plimsoll.workload/9",
                "seed": seed,
                "keys": { "per_worker": true },
                "measure": { "duration_ns": 5, "operations": [] },
            })
            .into();
            part.manifest.stages[1].ended_by = Some(EndReason::Duration);
        }
        parts
    };
    let own = alike()[0].manifest.clone();
    let same = merged(alike(), &path("same")).unwrap().read_manifest().unwrap();
    assert_eq!((&same.workload, &same.tool, &same.notes), (&own.workload, &own.tool, &own.notes));
    assert_eq!(same.stages[1].ended_by, own.stages[1].ended_by);

    let differing = |turned: bool| {
        let mut parts = alike();
        let other = &mut parts[1].manifest;
        other.tool.version = Some("0.2.0".to_owned());
        other.seed -= 1;
        let mut workload = other.workload.to_value();
        workload["seed"] = other.seed.into();
        workload["measure"]["duration_ns"] = 6.into();
        other.workload = workload.into();
        other.stages[1].ended_by = Some(EndReason::Stopped);
        if turned {
            parts.reverse();
        }
        parts
    };
    let directory = merged(differing(false), &path("differing")).unwrap();
    let turned = merged(differing(true), &path("turned")).unwrap();
    assert_eq!(file(&directory, "run.json"), file(&turned, "run.json"));
    let whole = directory.read_manifest().unwrap();
    let tool = (whole.tool.name.as_deref(), whole.tool.version.as_deref());
    assert_eq!(tool, (Some("plimsoll"), None));
    let left = serde_json::json!({
        "schema": null,
        "seed": own.seed,
        "keys": { "per_worker": true },
        "measure": null,
    });
    assert_eq!(whole.workload.to_value(), left);
    let ended: Vec<Option<EndReason>> = whole.stages.iter().map(|it| it.ended_by).collect();
    assert_eq!(ended, [own.stages[0].ended_by, None]);
    let seeds: Vec<Option<u64>> = whole.merged.iter().map(|part| part.seed).collect();
    assert_eq!(seeds, [Some(own.seed), Some(own.seed - 1)]);
    let note = "the merged runs differ in tool version, seed (each stands under `merged`), \
                workload (measure.duration_ns), what ended stage get; what run.json says of these \
                is unknown, or true of one run only";
    assert_eq!(whole.notes.last().map(String::as_str), Some(note));

    // A record made elsewhere has no workload.
    let mut parts = alike();
    parts[1].manifest.workload = serde_json::Value::Null.into();
    let whole = merged(parts, &path("foreign")).unwrap().read_manifest().unwrap();
    assert!(whole.workload.to_value().is_null());

    // The seed alone is no other workload.
    let mut parts = alike();
    parts[1].manifest.seed -= 1;
    let mut workload = parts[1].manifest.workload.to_value();
    workload["seed"] = parts[1].manifest.seed.into();
    parts[1].manifest.workload = workload.into();
    let whole = merged(parts, &path("seeds")).unwrap().read_manifest().unwrap();
    assert_eq!(whole.workload, own.workload);
    assert_eq!(whole.notes.len(), own.notes.len() + 1);
}

/// Each compared with all before it, a million of them take hours.
#[test]
fn a_million_notes_are_united_in_one_pass() {
    let place = tempfile::tempdir().unwrap();
    let mut parts = pair(Vec::new());
    let notes: Vec<String> = (0..1_000_000).map(|number| format!("n{number}")).collect();
    parts.iter_mut().for_each(|part| part.manifest.notes = notes.clone());
    let whole = merged(parts, &place.path().join("whole")).unwrap().read_manifest().unwrap();
    assert!(whole.notes == notes);
}

#[test]
fn what_stores_told_of_themselves_stays_with_the_parts_and_is_said_once() {
    let place = tempfile::tempdir().unwrap();
    let mut parts = pair(Vec::new());
    for part in &mut parts {
        let url = "http://h/metrics".to_owned();
        part.manifest.scraped = vec![ScrapedPage { url, interval_ns: 5 }];
        // As one has it that was merged before.
        part.manifest.notes.push(
            "the store's own metrics (--scrape) are not merged: they stay in \
                                  the runs' own directories"
                .to_owned(),
        );
    }
    parts[0].manifest.notes.pop();
    let whole = merged(parts, &place.path().join("whole")).unwrap().read_manifest().unwrap();
    assert_eq!(whole.scraped, []);
    let said = whole.notes.iter().filter(|note| note.contains("--scrape")).count();
    assert_eq!(said, 1, "{:?}", whole.notes);
}

#[test]
fn endpoints_in_different_orders_are_told_apart_by_name_whatever_the_order_of_the_parts() {
    let parts = || {
        let there = part_manifest("a", 0, &STAGES);
        let mut back = part_manifest("b", 0, &STAGES);
        back.target.endpoints.reverse();
        let mut other = part_manifest("c", 0, &STAGES);
        other.target.endpoints = vec!["http://10.0.0.0:9000".to_owned()];
        // Each went to 10.0.0.1, and the last to 10.0.0.0.
        vec![
            merge_part(there, vec![get(1, 0, 21_000)], 1),
            merge_part(back, vec![get(1, 1, 22_000)], 1),
            merge_part(other, vec![get(1, 0, 23_000)], 1),
        ]
    };
    let place = tempfile::tempdir().unwrap();
    let forward = merged(parts(), &place.path().join("forward")).unwrap();
    let mut reversed = parts();
    reversed.reverse();
    let backward = merged(reversed, &place.path().join("backward")).unwrap();
    for name in ["run.json", "summary.json"] {
        assert_eq!(file(&forward, name), file(&backward, name));
    }
    let ops = rows(&forward);
    assert_eq!(ops, rows(&backward));
    let known = forward.read_manifest().unwrap().target.endpoints;
    let expected = ["http://10.0.0.0:9000", &endpoints()[0], &endpoints()[1]];
    assert_eq!(known, expected);
    let went: BTreeMap<u64, &str> = ops
        .iter()
        .map(|op| (op.start.as_ns() / SECOND, known[usize::from(op.endpoint.0)].as_str()))
        .collect();
    let expected = [(21, known[1].as_str()), (22, &known[1]), (23, &known[0])];
    assert_eq!(went, BTreeMap::from(expected));
}

#[test]
fn a_store_and_files_stay_apart_on_other_hosts() {
    let part = |run_id: &str, host: &str, directory: &str| {
        let mut manifest = part_manifest(run_id, 0, &STAGES);
        manifest.target.endpoints = vec![host.to_owned()];
        let files = FilesTarget {
            directories: vec![directory.to_owned()],
            file_system: Some("ext4".to_owned()),
            ..FilesTarget::default()
        };
        let target = Target::bare(TargetKind::File, vec![directory.to_owned()]);
        manifest.more_targets = vec![Target { files: Some(files), ..target }];
        let job = |name: &str, first| StageJob {
            endpoint_first: first,
            endpoints_count: 1,
            ..StageJob::of(name, 1, LoopModel::Closed)
        };
        manifest.stages[1].jobs = vec![job("users", 0), job("scan", 1)];
        merge_part(manifest, vec![get(1, 0, 21_000), get(1, 1, 22_000)], 1)
    };
    let place = tempfile::tempdir().unwrap();
    let parts = |dirs: [&str; 2]| vec![part("a", "h1:9", dirs[0]), part("b", "h2:9", dirs[1])];
    let whole = merged(parts(["/d", "/e"]), &place.path().join("apart")).unwrap();
    let manifest = whole.read_manifest().unwrap();
    let addresses: Vec<_> = manifest.targets().map(|target| target.endpoints.clone()).collect();
    assert_eq!(addresses, [["h1:9", "h2:9"], ["/d", "/e"]]);
    let files = manifest.more_targets[0].files.as_ref().unwrap();
    assert_eq!(
        (&files.directories[..], files.file_system.as_deref()),
        (&["/d".to_owned(), "/e".to_owned()][..], Some("ext4"))
    );
    let of_jobs: Vec<_> = manifest.stages[1]
        .jobs
        .iter()
        .map(|job| (job.endpoint_first, job.endpoints_count))
        .collect();
    assert_eq!(of_jobs, [(0, 2), (2, 2)]);
    let went: Vec<u16> = rows(&whole).iter().map(|op| op.endpoint.0).collect();
    assert_eq!(went, [0, 2, 1, 3]);
    // A directory of both is one address.
    let whole = merged(parts(["/d", "/d"]), &place.path().join("same")).unwrap();
    let manifest = whole.read_manifest().unwrap();
    assert_eq!(manifest.endpoints().collect::<Vec<_>>(), ["h1:9", "h2:9", "/d"]);
    assert_eq!(manifest.more_targets.len(), 1);
}

/// What the manifest of a part says instead, and the beginning of the sentence that refuses it.
type Refusal = (fn(&mut Manifest), &'static str);

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let cases: [Refusal; 6] = [
        (
            |manifest| manifest.stages[1].ended_ns = Some(u64::MAX),
            "the manifest of run a contradicts itself: it names the moment 18446744073709551615 ns",
        ),
        (
            |manifest| manifest.started_unix_ns = 1 << 63,
            "the manifest of run a contradicts itself: it names the moment 9223372036854775808 ns",
        ),
        (
            |manifest| manifest.stages[1].bytes = Some(u64::MAX / 2),
            "the manifest of run a contradicts itself: it counts 9223372036854775807 of something",
        ),
        (
            |manifest| {
                let wrong = WrongCount { kind: WrongKind::Torn, count: u64::MAX };
                manifest.stages[1].wrong = vec![wrong];
            },
            "the manifest of run a contradicts itself: it counts 18446744073709551615 of something",
        ),
        (
            |manifest| manifest.stages = vec![manifest.stages[0].clone(); 257],
            "the manifest of run a contradicts itself: it has 257 stages, and there can be 256",
        ),
        (
            |manifest| manifest.target.endpoints = vec!["a:80".to_owned(); 4_097],
            "the manifest of run a contradicts itself: it has 4097 hosts, and there can be 4096",
        ),
    ];
    for (change, sentence) in cases {
        let mut a = part_manifest("a", 0, &STAGES);
        change(&mut a);
        let b = part_manifest("b", 0, &STAGES);
        let parts = vec![merge_part(a, Vec::new(), 2), merge_part(b, Vec::new(), 2)];
        let path = place.path().join("merged");
        let refused = merged(parts, &path).map(|_| ()).unwrap_err().to_string();
        assert!(refused.starts_with(sentence), "{refused}");
        assert!(!path.exists(), "{sentence}");
    }
}

/// Adding up moments of a hostile op log neither wraps nor ends the process.
#[test]
fn operations_at_the_end_of_time_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let late = Moment::from_ns(u64::MAX);
    let op = OpRecord { intended: late, start: late, first_byte: None, end: late, ..get(1, 0, 0) };
    let parts = vec![
        merge_part(part_manifest("a", 0, &STAGES), Vec::new(), 2),
        merge_part(part_manifest("b", 30, &STAGES), vec![op], 2),
    ];
    let refused = merged(parts, &place.path().join("merged")).map(|_| ()).unwrap_err();
    assert!(matches!(refused, MergeError::TooLong { .. }), "{refused}");
}
