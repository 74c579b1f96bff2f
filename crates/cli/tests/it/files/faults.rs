//! What goes wrong while a run is under way is counted, told, and leaves nothing behind.

use serde_json::Value;

use super::{Directories, on_small_disk, printed_and_left};
use crate::harness::stderr;

#[test]
fn names_for_which_no_space_is_left_are_counted() {
    let dirs = Directories::on_disk();
    // A thousand files of 16 KiB are twice what there is.
    let script = "$PLIMSOLL file metadata --dir $DIR --jobs 2 --files 500 --file-size 16KiB --json";
    let Some(output) = on_small_disk(dirs.runs(), "8m", script) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let (printed, left) = printed_and_left(&output);
    assert_eq!(left, "", "nothing of the run is left");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let create = &report["stages"][1];
    let kind = &create["rows"][0]["kinds"][0]["stage_total"];
    let (ok, failed) =
        (kind["ops_ok_count"].as_u64().unwrap(), kind["failed_by_class"]["io"].as_u64().unwrap());
    assert_eq!(ok + failed, 1_000);
    // 8 MiB hold at most 512 of them.
    assert!((400..=512).contains(&ok), "{ok}");
    assert_eq!(kind["bytes"], ok * 16_384, "what failed moved nothing that counts");
    let message = create["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("No space left on device"), "{message}");
    assert!(stderr(&output).contains("create: "), "{}", stderr(&output));
}

#[test]
fn blocks_for_which_no_space_is_left_are_counted() {
    let dirs = Directories::on_disk();
    // It grows, as it may be destroyed, beyond what there is.
    let script = "head -c 4096 /dev/zero > $DIR/foreign
        $PLIMSOLL file bandwidth --dir $DIR --on $DIR/foreign --op write --jobs 1 --depth 2 \
        --i-know-this-destroys-data --file-size 16MiB --ops 16 --direct off --json";
    let Some(output) = on_small_disk(dirs.runs(), "8m", script) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let (printed, left) = printed_and_left(&output);
    assert_eq!(left, "./foreign\n");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let kind = &report["stages"][0]["rows"][0]["kinds"][0]["stage_total"];
    let ok = kind["ops_ok_count"].as_u64().unwrap();
    assert!((6..=8).contains(&ok), "{ok}");
    assert_eq!(kind["failed_by_class"]["io"], 16 - ok);
    assert_eq!(kind["bytes"], ok << 20);
}

#[test]
fn as_fio_names_the_number_of_the_first_error() {
    let dirs = Directories::on_disk();
    let script = "head -c 4096 /dev/zero > $DIR/foreign
        $PLIMSOLL as fio --i-know-this-destroys-data --output-format=json --name=x --rw=write \
        --bs=1M --size=16M --filename=$DIR/foreign";
    let Some(output) = on_small_disk(dirs.runs(), "8m", script) else { return };
    let (printed, _) = printed_and_left(&output);
    if output.status.code() == Some(2) {
        // Refused because it is too small: as good.
        assert!(stderr(&output).contains("4096 bytes"), "{}", stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&printed).unwrap();
    // ENOSPC.
    assert_eq!(report["jobs"][0]["error"], 28);
}

#[test]
fn a_stage_that_cannot_prepare_ends_the_run_and_all_is_removed() {
    let dirs = Directories::in_memory();
    // A file lies where the second stage wants a directory.
    let text = "schema: plimsoll.workload/2
name: clash
seed: 1
targets: {files: {directory: DIR}}
sets:
  a: {files: 1, size: 4KiB, name: clash}
  b: {tree: {name: clash, entries: 1, per_worker: true}}
stages:
- {name: fill, prepares: true, jobs: [{work: {fill: a}}]}
- {name: tree, jobs: [{work: {names: {make_tree: b}}}]}
";
    let path = dirs.write("clash.yaml", text);
    let output = dirs.command(&format!("run {}", path.display())).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stderr(&output);
    let last = said.lines().last().unwrap();
    assert!(last.contains("clash") && last.contains("not a directory"), "{said}");
    dirs.assert_clean("a clash of names");
    let manifest = dirs.take_manifest();
    assert_eq!(
        (&manifest["state"], &manifest["cleanup"]["state"]),
        (&"failed".into(), &"complete".into())
    );
}

#[test]
fn what_was_measured_before_the_disk_of_the_record_was_full_is_named_and_readable() {
    let dirs = Directories::on_disk();
    let script = "$PLIMSOLL null --duration 100s --run-dir $DIR/run; echo \"code $?\" >&2
        $PLIMSOLL analyze $DIR/run";
    let Some(output) = on_small_disk(dirs.runs(), "4m", script) else { return };
    let text = stderr(&output);
    assert!(text.contains("no space left in ") && text.contains("code 2"), "{text}");
    let kept = text.lines().find(|line| line.contains("what was measured until then is in "));
    assert!(kept.is_some_and(|line| line.contains("`plimsoll analyze ")), "{text}");
    let (printed, _) = printed_and_left(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}{text}");
    assert!(printed.contains("its disk was full") && printed.contains("ops/s"), "{printed}");
}
