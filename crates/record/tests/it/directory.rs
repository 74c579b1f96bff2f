//! Making, finding and refusing a run directory; the manifest.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;

use plimsoll_model::{Moment, WrongKind};
use plimsoll_record::schema::{MergedJob, RunState, Schedule, WrongCount};
use plimsoll_record::{Manifest, OpLog, RecordError, RunDirectory, SummaryWriter};
use plimsoll_stats::Timeline;
use plimsoll_workload::ArrivalLaw;

use crate::{MARK, manifest, new_run, op, seal_anew, without_checksum, writer};

#[test]
fn a_manifest_comes_back_and_is_replaced_whole() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("runs").join("first");
    let directory = new_run(&path);
    assert_eq!(directory.read_manifest().unwrap(), manifest());
    assert!(path.join("ops").is_dir());

    let ended = Manifest {
        state: RunState::Failed,
        state_reason: Some("the server went away".to_owned()),
        ..manifest()
    };
    directory.write_manifest(&ended).unwrap();
    assert_eq!(RunDirectory::open(&path).unwrap().read_manifest().unwrap(), ended);
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "ops", "run.json"], "nothing temporary is left");
}

#[test]
fn what_is_not_known_is_null() {
    let place = tempfile::tempdir().unwrap();
    new_run(place.path());
    let text = fs::read_to_string(place.path().join("run.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for pointer in
        ["/state_reason", "/machine/memory_bytes", "/stages/0/ended_ns", "/target/region"]
    {
        assert_eq!(json.pointer(pointer), Some(&serde_json::Value::Null), "{pointer}");
    }
    assert_eq!(json.pointer("/seed"), Some(&u64::MAX.into()));
    assert_eq!(json.pointer("/schema"), Some(&"plimsoll.run/1".into()));
}

#[test]
fn what_is_not_known_is_absent_and_what_is_known_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let path = place.path().join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    let later =
        ["schedule", "stream_hash", "uploads_given_up_count", "uploads_left_count", "wrong"];
    for name in later.into_iter().chain(["virtual_time", "certificate"]) {
        assert!(!text.contains(&format!("\"{name}\"")), "{text}");
    }
    let mut whole = manifest();
    whole.virtual_time = true;
    whole.certificate = Some(serde_json::json!({"verdicts": {"stall": "holds"}}));
    whole.stages[0].jobs[0].schedule = Some(Schedule {
        rates: vec!["100/s..5000/s over 2m".parse().unwrap()],
        arrivals: vec![ArrivalLaw::Poisson],
        max_in_flight: 1_024,
        offered_from_ns: None,
        offered_until_ns: None,
        offered_count: Some(306_000),
        late_count: Some(7),
        skipped_count: Some(0),
        held_count: 0,
        delay_max_ns: None,
    });
    whole.stages[0].stream_hash = Some("00c0ffee00c0ffee".to_owned());
    (whole.stages[0].uploads_given_up_count, whole.stages[0].uploads_left_count) = (3, 1);
    whole.stages[0].wrong = vec![WrongCount { kind: WrongKind::Torn, count: 3 }];
    directory.write_manifest(&whole).unwrap();
    assert_eq!(directory.read_manifest().unwrap(), whole);
}

#[test]
fn a_run_of_before_the_first_release_is_refused_in_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let path = place.path().join("run.json");
    let sentence = format!(
        "{} was written by a build of before the first release, whose form is not read any more; \
         measure again",
        path.display()
    );
    for language in ["plimsoll.files/1", "plimsoll.workload/2", "plimsoll.workload/1"] {
        let workload = serde_json::json!({"schema": language, "concurrency": 20});
        directory
            .write_manifest(&Manifest {
                workload: workload.into(),
                merged: Vec::new(),
                ..manifest()
            })
            .unwrap();
        assert_eq!(directory.read_manifest().unwrap_err().to_string(), sentence, "{language}");

        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, without_checksum(&text)).unwrap();
        let edited = directory.read_manifest();
        // Its number is today's: whoever took the checksum away may have edited it.
        if language == "plimsoll.workload/2" {
            assert!(edited.is_ok(), "{edited:?}");
        } else {
            assert_eq!(edited.unwrap_err().to_string(), sentence, "{language}");
        }
    }
    // As today's manifest in all but the jobs of its stages, with a checksum that fits.
    directory.write_manifest(&manifest()).unwrap();
    let mut older: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    older["stages"][0].as_object_mut().unwrap().remove("jobs").unwrap();
    older.as_object_mut().unwrap().remove("checksum").unwrap();
    let older = older.to_string();
    let fields = older.strip_suffix('}').unwrap();
    let mut sealed = format!("{fields},\"checksum\":\"{MARK}0000000000000000\"}}").into_bytes();
    seal_anew(&mut sealed);
    fs::write(&path, sealed).unwrap();
    assert_eq!(directory.read_manifest().unwrap_err().to_string(), sentence);
    // Without a checksum it may be one of today's that was edited, and the field is named.
    fs::write(&path, older).unwrap();
    let damaged = directory.read_manifest().unwrap_err().to_string();
    assert!(damaged.contains("is damaged: missing field `jobs`"), "{damaged}");
}

#[test]
fn a_place_that_is_taken_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis.txt"), "mine").unwrap();
    let refused = RunDirectory::create(place.path(), &manifest()).unwrap_err();
    assert!(matches!(refused, RecordError::NotEmpty { .. }), "{refused}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);

    let file = place.path().join("thesis.txt");
    for path in [file.clone(), file.join("below")] {
        let refused = RunDirectory::create(&path, &manifest()).unwrap_err();
        let expected = format!(
            "{} is in the way: it is not a directory; choose another run directory (`run_dir`)",
            file.display()
        );
        assert_eq!(refused.to_string(), expected);
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
}

#[test]
fn an_empty_directory_will_do() {
    let place = tempfile::tempdir().unwrap();
    assert!(RunDirectory::create(place.path(), &manifest()).is_ok());
}

#[test]
fn a_directory_without_a_manifest_is_no_run() {
    let place = tempfile::tempdir().unwrap();
    for path in [place.path().to_path_buf(), place.path().join("nowhere")] {
        let refused = RunDirectory::open(&path).unwrap_err();
        assert!(matches!(refused, RecordError::NoRun { .. }), "{refused}");
    }
}

#[test]
fn a_manifest_of_another_major_version_is_refused_and_a_new_field_is_not() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let path = place.path().join("run.json");
    let text = without_checksum(&fs::read_to_string(&path).unwrap());

    let grown = text.replacen('{', "{ \"moon_state\": \"full\",", 1);
    fs::write(&path, grown).unwrap();
    assert_eq!(directory.read_manifest().unwrap(), manifest());

    fs::write(&path, text.replace("plimsoll.run/1", "plimsoll.run/2")).unwrap();
    let refused = directory.read_manifest().unwrap_err().to_string();
    let expected = format!(
        "{} has the schema `plimsoll.run/2`, and this version of plimsoll reads `plimsoll.run/1`; \
         use the version of plimsoll that wrote it",
        path.display()
    );
    assert_eq!(refused, expected);

    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let refused = directory.read_manifest().unwrap_err();
    assert!(matches!(refused, RecordError::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("run.json is damaged"), "{refused}");
}

/// Tells whether a byte belongs to what the digits of the checksum are found by.
fn in_mark(bytes: &[u8], position: usize) -> bool {
    let at = bytes.windows(MARK.len()).rposition(|window| window == MARK.as_bytes()).unwrap();
    (at..at + MARK.len()).contains(&position)
}

#[test]
fn a_bit_that_flips_in_a_manifest_or_a_summary_is_seen() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    SummaryWriter::new(&directory).write(&mut Timeline::new(0, 1_000_000_000)).unwrap();
    assert!(directory.read_manifest_checked().unwrap().has_checksum);
    for name in ["run.json", "summary.json"] {
        let path = place.path().join(name);
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            let is_unseen = match name {
                "run.json" => directory.read_manifest_checked().is_ok_and(|read| read.has_checksum),
                // A flip in the name of the checksum leaves none, and all else as it was.
                _ => directory.read_summary().is_ok() && !in_mark(&whole, bit / 8),
            };
            assert!(!is_unseen, "bit {bit} of {name}");
        }
    }
}

#[test]
fn a_manifest_without_a_checksum_is_read_and_one_whose_checksum_does_not_fit_is_not() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let path = place.path().join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, without_checksum(&text)).unwrap();
    let read = directory.read_manifest_checked().unwrap();
    assert_eq!((read.manifest, read.has_checksum), (manifest(), false));

    fs::write(&path, text.replace("\"bench\"", "\"other\"")).unwrap();
    let expected = format!(
        "{} is damaged: its checksum does not match: the file is damaged (if it \
         was changed on purpose, remove its field \"checksum\"); restore it from a copy, or \
         leave it out of the analysis",
        path.display()
    );
    assert_eq!(directory.read_manifest().unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run.json");
    let refused = |directory: &RunDirectory| directory.read_manifest().unwrap_err().to_string();
    let directory = new_run(place.path());
    let text = fs::read(&path).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("run.json"), text).unwrap();

    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("run.json"), &path).unwrap();
    assert!(refused(&directory).contains("run.json is damaged: it is a link, and a run is read"));
    assert!(RunDirectory::open(place.path()).is_err());

    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    assert!(refused(&directory).contains("run.json is damaged: it is a FIFO, and a run is read"));
    assert!(RunDirectory::open(place.path()).is_err());

    // A list of names is read and added to.
    let names = directory.names_path(0);
    std::os::unix::fs::symlink(elsewhere.path().join("run.json"), &names).unwrap();
    let error = directory.read_names(0).unwrap_err().to_string();
    assert!(error.contains("names-0.txt is damaged: it is a link"), "{error}");
    assert!(directory.open_names(0).is_err());
    fs::remove_file(&names).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&names).status().unwrap().success());
    let error = directory.read_names(0).unwrap_err().to_string();
    assert!(error.contains("names-0.txt is damaged: it is a FIFO"), "{error}");
    assert!(directory.open_names(0).is_err());
}

#[test]
fn a_manifest_that_is_too_large_is_not_read_into_memory() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    // Nothing but a hole, which takes no room on the disk.
    let file = fs::File::options().write(true).open(place.path().join("run.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    let refused = directory.read_manifest().unwrap_err().to_string();
    let expected = "it has 1099511627776 bytes, and no such file has more than 67108864";
    assert!(refused.contains(expected), "{refused}");
}

/// Where the path of a run leads to another place meanwhile, that place stays as it was.
#[test]
fn a_run_is_written_and_read_where_it_was_made() {
    let place = tempfile::tempdir().unwrap();
    let (path, foreign) = (place.path().join("run"), place.path().join("foreign"));
    let directory = new_run(&path);
    let mut writer = writer(&directory);
    writer.append(&[op(1)]).unwrap();

    fs::create_dir_all(foreign.join("ops")).unwrap();
    fs::rename(&path, place.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(&foreign, &path).unwrap();
    writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    writer.append(&[op(2)]).unwrap();
    writer.finish().unwrap();
    directory.write_manifest(&manifest()).unwrap();
    SummaryWriter::new(&directory).write(&mut Timeline::new(0, 1)).unwrap();
    directory.write_beside("profiles.zip", |file| file.write_all(b"x")).unwrap();

    let names = |path: &std::path::Path| fs::read_dir(path).unwrap().count();
    assert_eq!((names(&foreign), names(&foreign.join("ops"))), (1, 0));
    let mut ops = Vec::new();
    OpLog::open(&directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    assert_eq!(ops, [op(1), op(2)]);
    assert_eq!(directory.read_manifest().unwrap(), manifest());
}

#[test]
fn a_link_in_the_place_of_a_new_file_is_not_written_through() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(&place.path().join("run"));
    let foreign = place.path().join("foreign");
    fs::write(&foreign, "mine").unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&foreign, directory.path().join(name));
    for name in ["run.json.tmp", "summary.json", "ops/part-000000.parquet.open"] {
        link(name).unwrap();
    }
    directory.write_manifest(&manifest()).unwrap();
    SummaryWriter::new(&directory).write(&mut Timeline::new(0, 1)).unwrap();
    let mut writer = writer(&directory);
    writer.append(&[op(1)]).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("part-000000.parquet.open"));
    assert_eq!(fs::read_to_string(foreign).unwrap(), "mine");
    assert_eq!(directory.read_manifest().unwrap(), manifest());
}

#[test]
fn a_manifest_that_says_what_cannot_be_is_damaged() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut manifest = manifest();
    let refused = |manifest: &Manifest| {
        directory.write_manifest(manifest).unwrap();
        directory.read_manifest().unwrap_err().to_string()
    };
    let odd = "x\nrun complete".to_owned();
    let changes: [&dyn Fn(&mut Manifest); 4] = [
        &|of| of.run_id = odd.clone(),
        &|of| of.merged[0].run_id = odd.clone(),
        &|of| of.target.endpoints.push(odd.clone()),
        &|of| of.target.prefix = Some(odd.clone()),
    ];
    for change in changes {
        let mut manifest = manifest.clone();
        change(&mut manifest);
        let expected = "run.json is damaged: `x run complete` holds control characters, and no";
        assert!(refused(&manifest).contains(expected), "{}", refused(&manifest));
    }
    manifest.merged = vec![manifest.merged[0].clone(); 2];
    manifest.merged.iter_mut().for_each(|run| run.workers_count = 9_000_000);
    let expected = "run.json is damaged: its merged runs have 18000000 workers, and there can be";
    assert!(refused(&manifest).contains(expected), "{}", refused(&manifest));
    // Each of these is by itself the number of a worker; together they are none.
    manifest.merged.truncate(1);
    let run = &mut manifest.merged[0];
    (run.worker_index_first, run.workers_count) = (9_000_000, 1);
    run.stages[0].jobs = vec![MergedJob { worker_first: 0, workers_count: 9_000_000 }];
    let expected = "run.json is damaged: a worker of it has number 18000000, and there can be no";
    assert!(refused(&manifest).contains(expected), "{}", refused(&manifest));
}
