//! Making, finding and refusing a run directory; the manifest.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;

use plimsoll_record::schema::{RunState, Schedule, WrongCount};
use plimsoll_record::{Manifest, RecordError, RunDirectory};

use crate::{manifest, new_run};

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
fn what_an_older_run_lacks_is_absent_and_what_is_there_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let path = place.path().join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    for name in ["schedule", "stream_hash", "wrong", "virtual_time", "certificate"] {
        assert!(!text.contains(&format!("\"{name}\"")), "{text}");
    }
    let mut whole = manifest();
    whole.virtual_time = true;
    whole.certificate = Some(serde_json::json!({"verdicts": {"stall": "holds"}}));
    whole.stages[0].schedule = Some(Schedule {
        rate: "100/s..5000/s over 2m".to_owned(),
        arrivals: "poisson".to_owned(),
        max_in_flight: 1_024,
        offered_count: Some(306_000),
        late_count: Some(7),
        skipped_count: Some(0),
        delay_max_ns: None,
    });
    whole.stages[0].stream_hash = Some("00c0ffee00c0ffee".to_owned());
    whole.stages[0].wrong = vec![WrongCount { kind: "torn".to_owned(), count: 3 }];
    directory.write_manifest(&whole).unwrap();
    assert_eq!(directory.read_manifest().unwrap(), whole);
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
            "{} is in the way: it is no directory; choose another directory for the run",
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
    let text = fs::read_to_string(&path).unwrap();

    let grown = text.replacen('{', "{ \"moon_state\": \"full\",", 1);
    fs::write(&path, grown).unwrap();
    assert_eq!(directory.read_manifest().unwrap(), manifest());

    fs::write(&path, text.replace("plimsoll.run/1", "plimsoll.run/2")).unwrap();
    let refused = directory.read_manifest().unwrap_err().to_string();
    let expected = format!(
        "{} is of schema `plimsoll.run/2`, and this version of plimsoll reads `plimsoll.run/1`; \
         use the version of plimsoll that wrote it",
        path.display()
    );
    assert_eq!(refused, expected);

    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let refused = directory.read_manifest().unwrap_err();
    assert!(matches!(refused, RecordError::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("run.json is damaged"), "{refused}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named_and_the_manifest_before_stays() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    std::os::unix::fs::symlink("/dev/full", place.path().join("run.json.tmp")).unwrap();
    let refused = directory.write_manifest(&manifest()).unwrap_err();
    let expected = format!("no space left in {};", place.path().display());
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    assert_eq!(directory.read_manifest().unwrap(), manifest());
}
