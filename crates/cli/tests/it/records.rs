//! Records that were damaged, killed or merged, read again.

mod merged;
mod shown;

use std::fs;

use crate::analysis::null_run;
use crate::harness::{printed, refused, run_line, stderr, without_checksum};

#[test]
fn a_flipped_bit_is_said_of_runs_on_files_and_others() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "null");
    let files = "file iops --dir . --jobs 1 --file-size 64KiB --ops 20 -q --run-dir files";
    printed(place.path(), files);
    for name in ["null", "files"] {
        let part = place.path().join(name).join("ops/part-000000.parquet");
        let mut bytes = fs::read(&part).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(&part, bytes).unwrap();
        let output = run_line(place.path(), &format!("analyze {name}"));
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        let sentence = "part-000000.parquet is damaged (its checksum does not match";
        assert!(said.contains(sentence), "{name}: {said}");
    }
}

#[test]
fn a_run_of_which_no_operation_can_be_read_is_neither_exported_nor_compared() {
    let place = tempfile::tempdir().unwrap();
    for name in ["whole", "damaged", "empty", "lost"] {
        null_run(place.path(), name);
    }
    let ops = |name: &str| place.path().join(name).join("ops");
    for name in ["damaged", "empty", "lost"] {
        for part in fs::read_dir(ops(name)).unwrap() {
            let part = part.unwrap().path();
            let mut bytes = fs::read(&part).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            match name {
                "damaged" => fs::write(&part, bytes).unwrap(),
                "empty" => fs::write(&part, "").unwrap(),
                _ => fs::remove_file(&part).unwrap(),
            }
        }
        let exports = [
            "csv",
            "jsonl",
            "warp",
            "openmetrics",
            "hlog",
            "trace",
            "github-bigger",
            "github-smaller",
            "bencher",
        ];
        let exports = exports.map(|format| format!("export {name} -o to --format {format}"));
        let compares =
            [format!("compare {name} whole --gate rate>=-90%"), format!("compare whole {name}")];
        for line in exports.iter().chain(&compares) {
            let output = run_line(place.path(), line);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
            // What is lost is told before it.
            let last = said.lines().last().unwrap();
            assert!(
                last.contains(&format!("no operation of {name} can be read")),
                "{line}: {said}"
            );
        }
    }
    assert!(!place.path().join("to").exists());
}

#[test]
fn a_run_of_which_nothing_was_saved_says_so() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut killed: serde_json::Value = serde_json::from_str(&text).unwrap();
    killed.as_object_mut().unwrap().remove("checksum");
    killed["state"] = "running".into();
    killed["recorder"] = serde_json::Value::Null;
    for stage in killed["stages"].as_array_mut().unwrap() {
        (stage["started_ns"], stage["ended_ns"]) = Default::default();
    }
    fs::write(&manifest, killed.to_string()).unwrap();
    fs::remove_file(place.path().join("run/ops/part-000000.parquet")).unwrap();
    let said = refused(place.path(), "analyze run");
    let sentence = "and was killed or is still going on; no operation of it was saved";
    assert!(said.contains(sentence) && said.contains("plimsoll clean run"), "{said}");
}

#[test]
fn a_run_that_is_under_way_is_not_called_killed() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let run = place.path().join("run");
    let text = fs::read_to_string(run.join("run.json")).unwrap();
    let running = without_checksum(&text).replace("\"complete\"", "\"running\"");
    fs::write(run.join("run.json"), running).unwrap();
    let state = || {
        let text = printed(place.path(), "analyze run");
        let json: serde_json::Value =
            serde_json::from_str(&printed(place.path(), "analyze run --json")).unwrap();
        (text, json["state"].as_str().unwrap().to_owned())
    };
    let lease = plimsoll_record::Lease::try_take(&run).unwrap().unwrap();
    let (text, named) = state();
    assert!(text.contains("(running)") && text.contains("still under way"), "{text}");
    assert_eq!(named, "running");
    drop(lease);
    let (text, named) = state();
    assert!(text.contains("(killed)") && !text.contains("under way"), "{text}");
    assert_eq!(named, "killed");
}

#[test]
fn a_manifest_without_a_checksum_is_analysed_and_a_part_without_one_is_damaged() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, without_checksum(&text)).unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("run.json has no checksum"), "{said}");
    assert!(!said.contains("is damaged"), "{said}");
    let part = place.path().join("run/ops/part-000000.parquet");
    let mut bytes = fs::read(&part).unwrap();
    let mark = b"crc64-nvme:";
    let at = bytes.windows(mark.len()).rposition(|window| window == mark).unwrap();
    bytes[at] = b'-';
    fs::write(&part, bytes).unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("part-000000.parquet is damaged (it has no checksum)"), "{said}");
}
