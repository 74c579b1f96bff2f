//! Records read again: analyze, compare, merge, export, report; and warp's files.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_dialects::warp::report::{self, ReportShown};
use plimsoll_foreign::warp::aggregated;
use plimsoll_foreign::warp::raw::{self, Names};
use plimsoll_model::{Moment, OpRecord, WorkerId};

use crate::harness::{
    self, counts, measured, plimsoll, printed, refused, run_line, stderr, without_checksum,
};

const WARP_FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp");

/// Makes a short run of the null driver.
pub(crate) fn null_run(directory: &Path, name: &str) -> String {
    let line = format!("null --duration 300ms --concurrent 4 --threads 1 -q --run-dir {name}");
    printed(directory, &line)
}

#[test]
fn a_run_read_again_gives_the_report_it_gave() {
    let place = tempfile::tempdir().unwrap();
    let first = null_run(place.path(), "run");
    assert_eq!(printed(place.path(), "analyze run"), first);
    let detailed = printed(place.path(), "analyze run --analyze.v --json");
    let detailed: serde_json::Value = serde_json::from_str(&detailed).unwrap();
    assert_eq!(detailed["schema"], "plimsoll.report/1");
    assert!(measured(&detailed)["details"].is_object());
}

#[test]
fn a_killed_run_and_a_damaged_part_are_analysed_as_far_as_whole() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, without_checksum(&text).replace("\"complete\"", "\"running\"")).unwrap();
    fs::write(place.path().join("run/ops/part-000001.parquet.open"), "PAR1").unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("(killed)") && said.contains("part-000001.parquet was never closed"));
    let part = place.path().join("run/ops/part-000000.parquet");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("part-000000.parquet is damaged"), "{said}");
    assert!(said.contains("no operation ended"), "{said}");
}

#[test]
fn a_newer_record_is_refused() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, without_checksum(&text).replace("plimsoll.run/1", "plimsoll.run/2"))
        .unwrap();
    let said = refused(place.path(), "analyze run");
    assert!(said.contains("plimsoll.run/2") && said.contains("plimsoll.run/1"), "{said}");
}

#[test]
fn flags_that_ask_for_what_is_not_there_are_refused() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for (line, named) in [
        ("analyze run --analyze.op foo", "choose one of put, get"),
        ("analyze run --analyze.op get", "no such operation"),
        ("analyze run --analyze.host nowhere:1", "--analyze.host nowhere:1"),
        ("analyze run --stage prepare", "--stage prepare"),
        ("analyze nothing", "nothing"),
        ("export run -o ops.txt", ".csv.zst, .csv, .jsonl, .om, .hlog, .trace.json"),
        ("compare run run --gate p99", "--gate"),
        ("compare run run --gate speed<=1%", "speed"),
        ("compare run run --junit x.xml", "--gate"),
        ("merge run run -o both", "given twice"),
    ] {
        let said = refused(place.path(), line);
        assert!(said.contains(named), "{line}: {said}");
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_side_of_different_work_and_sides_without_common_work_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let run = |name: &str, size: &str, seconds: u32, op: &str| {
        let text = format!(
            "schema: plimsoll.workload/2\nsets: {{o: {{count: 20, size: {size}}}, n: {{size: 1KiB}}}}\n\
             stages:\n- {{prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
             - {{duration: {seconds}s, jobs: [{{work: {{objects: [{op}]}}}}]}}\n"
        );
        fs::write(here.join("w.yaml"), text).unwrap();
        let _ = fs::remove_dir_all(here.join(name));
        printed(here, &format!("run w.yaml --virtual --quiet --run-dir {name}"));
    };
    run("all/small", "1KiB", 2, "{get: o}");
    run("all/large", "64KiB", 2, "{get: o}");
    run("puts", "1KiB", 2, "{put: n}");
    let said = refused(here, "compare all/small all");
    assert!(said.contains("different workloads") && said.contains("64KiB and 1KiB"), "{said}");
    let said = refused(here, "compare all/small puts");
    assert!(said.contains("no kind of operation in common (GET; PUT)"), "{said}");
    // Another seed and another length are no other work.
    run("all/large", "1KiB", 3, "{get: o}");
    printed(here, "compare all all");
}

#[test]
fn one_run_a_side_is_no_verdict_and_three_may_be() {
    let place = tempfile::tempdir().unwrap();
    // Three copies of one run: how far runs differ on a busy machine is not what is tested.
    null_run(place.path(), "before/1");
    for copy in ["before/2", "before/3"] {
        copy_tree(&place.path().join("before/1"), &place.path().join(copy));
    }
    let said = printed(place.path(), "compare before/1 before/2");
    assert!(said.contains("one run a side: not a verdict"), "{said}");
    let gate = run_line(place.path(), "compare before/1 before/2 --gate rate>=-90%");
    assert_eq!(gate.status.code(), Some(3));
    // A side against itself does not differ, whatever the machine does.
    let line = "compare before before --gate rate>=-90% --gate p50<=+900% --junit gates.xml --json";
    let same: serde_json::Value = serde_json::from_str(&printed(place.path(), line)).unwrap();
    assert_eq!(same["schema"], "plimsoll.compare/1");
    let junit = fs::read_to_string(place.path().join("gates.xml")).unwrap();
    assert_eq!(junit.matches("<testcase").count(), 2, "{junit}");
    let worse = run_line(place.path(), "compare before before --gate p50<=1ns");
    assert_eq!(worse.status.code(), Some(1), "{worse:?}");
    assert!(same["headline"][0].as_str().unwrap().contains("the same within 5"), "{same}");
    // Markdown has the gates, and the same exit codes.
    for (sides, gate, code, outcome) in [
        ("before before", "rate>=-90%", 0, "| pass |"),
        ("before before", "p50<=1ns", 1, "| worse |"),
        ("before/1 before/2", "rate>=-90%", 3, "| inconclusive: one run a side"),
    ] {
        let line = format!("compare {sides} --gate {gate} --markdown");
        let output = run_line(place.path(), &line);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert!(text.starts_with("**") && text.contains(outcome), "{line}: {text}");
    }
    let both = run_line(place.path(), "compare before before --markdown --json");
    assert_eq!(both.status.code(), Some(2), "{both:?}");
}

#[test]
fn every_file_of_warps_is_analysed() {
    let place = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(WARP_FILES).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "zst"));
    files.sort();
    assert_eq!(files.len(), 28);
    for file in &files {
        let commands = ["analyze", "as warp analyze", "as warp analyze --full"];
        let texts = commands.map(|command| {
            let line = format!("{command} {}", file.display());
            let text = printed(place.path(), &line);
            assert!(text.lines().count() > 3, "{line}");
            text
        });
        let is_aggregated = file.to_str().unwrap().ends_with(".json.zst");
        assert_eq!(texts[0] == texts[1], is_aggregated, "{}", file.display());
        assert_eq!(texts[1] == texts[2], is_aggregated, "{}", file.display());
    }
}

#[test]
fn what_warp_wrote_can_be_merged_and_compared() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("{WARP_FILES}/{name}");
    let (get, hosts) = (file("get-full.csv.zst"), file("get-2hosts-full-v.csv.zst"));
    // They ran one after the other, minutes apart.
    let said = refused(place.path(), &format!("merge {get} {hosts} -o merged"));
    assert!(said.contains("nothing overlaps"), "{said}");
    let said = refused(place.path(), &format!("merge {get} {get} -o merged"));
    assert!(said.contains("given twice"), "{said}");
    let said = printed(place.path(), &format!("as warp cmp {get} {hosts}"));
    // As warp prints the two files' numbers of operations.
    assert!(said.contains("Operation: GET\nOperations: 6529 -> 16649\n"), "{said}");
}

#[test]
fn what_needs_operations_refuses_an_aggregated_file_in_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let sums = format!("{WARP_FILES}/get-default.json.zst");
    let why = format!(
        "{sums} holds warp's sums and figures, not the operations; `plimsoll as warp analyze` \
         prints them, and `plimsoll as warp cmp` compares them\n"
    );
    for flag in ["--json", "--analyze.v", "--analyze.dur=5s", "--analyze.out=x.csv"] {
        let said = refused(place.path(), &format!("analyze {flag} {sums}"));
        let flag = flag.split('=').next().unwrap();
        assert_eq!(said, format!("plimsoll: {flag}: {why}"));
    }
    let raw = format!("{WARP_FILES}/get-full.csv.zst");
    for line in [
        format!("compare {sums} {sums}"),
        format!("compare {raw} {sums}"),
        format!("merge {raw} {sums} -o merged"),
        format!("export {sums} -o ops.csv"),
        format!("report {sums} -o page.html"),
    ] {
        assert_eq!(refused(place.path(), &line), format!("plimsoll: {why}"), "{line}");
    }
    let said = refused(place.path(), &format!("as warp cmp --analyze.dur 5s {sums} {raw}"));
    assert_eq!(said, format!("plimsoll: --analyze.dur: {why}"));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_kind_of_an_aggregated_file_is_shown_alone() {
    let place = tempfile::tempdir().unwrap();
    let sums = format!("{WARP_FILES}/mixed-default.json.zst");
    let [analyze, as_warp, cmp] = [
        format!("analyze {sums}"),
        format!("as warp analyze {sums}"),
        format!("as warp cmp {sums} {sums}"),
    ];
    for command in [&analyze, &as_warp, &cmp] {
        let all = printed(place.path(), command);
        assert!(all.contains("PUT") && all.contains("DELETE"), "{all}");
        let said = printed(place.path(), &format!("{command} --analyze.op put"));
        assert!(said.contains("PUT") && !said.contains("DELETE"), "{said}");
        let said = refused(place.path(), &format!("{command} --analyze.op list"));
        assert_eq!(said, format!("plimsoll: --analyze.op LIST: {sums} has no such operation\n"));
    }
}

#[test]
fn sums_are_compared_with_the_sums_of_operations() {
    let place = tempfile::tempdir().unwrap();
    // warp printed 9,277 GETs of one file; the other holds each of 6,529.
    let (sums, raw) = ("get-default.json.zst", "get-full.csv.zst");
    let (sums, raw) = (format!("{WARP_FILES}/{sums}"), format!("{WARP_FILES}/{raw}"));
    let said = printed(place.path(), &format!("as warp cmp {sums} {raw}"));
    assert!(said.contains("Operation: GET\nOperations: 9277 -> 6529\n"), "{said}");
    let said = printed(place.path(), &format!("as warp cmp {raw} {raw} --analyze.dur 2s"));
    assert!(said.contains("* Average: +0.00% "), "{said}");
}

#[test]
fn as_warp_analyze_prints_what_warp_printed() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("{WARP_FILES}/{name}");
    let raw = file("get-full.csv.zst");
    let as_warp = printed(place.path(), &format!("as warp analyze --no-color --full {raw}"));
    let (_, body) = as_warp.split_once("----\n").unwrap();
    // As warp printed it after the run.
    let report = fs::read_to_string(file("get-full.txt")).unwrap();
    assert!(
        body.contains("10.18 MiB/s, 651.78 obj/s") && report.contains(body.trim_end()),
        "{body}"
    );
    let shorter = printed(place.path(), &format!("as warp analyze --full --analyze.dur 2s {raw}"));
    assert!(shorter.contains(" x 2s"), "{shorter}");
    // Without `--full` the sums, of a raw file and of warp's own document alike.
    let sums = file("get-default.json.zst");
    let of_raw = printed(place.path(), &format!("as warp analyze {raw}"));
    let of_sums = printed(place.path(), &format!("as warp analyze {sums}"));
    assert!(of_sums.contains("\n * Average: 16.05 MiB/s, 1027.18 obj/s (7s)\n"), "{of_sums}");
    let both = printed(place.path(), &format!("as warp analyze {raw} {sums}"));
    assert_eq!(both, of_raw.clone() + &of_sums);
    let json = printed(place.path(), &format!("as warp analyze --json {raw}"));
    let stored = fs::read(&sums).unwrap();
    for (text, document) in [(&of_raw, json.as_bytes()), (&of_sums, &stored)] {
        let shown = ReportShown { details: true, op: None };
        let report = report::text(&aggregated::read(document).unwrap(), shown);
        assert_eq!(*text, format!("\n {report}\n"));
    }
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["v"], 2);
    let throughput = &document["total"]["throughput"];
    let operations = |of: &serde_json::Value| of["total_requests"].as_u64().unwrap();
    assert!(throughput["bytes"].as_f64() > Some(0.0), "{throughput}");
    let kinds = document["by_op_type"].as_object().unwrap();
    assert_eq!(kinds.values().map(operations).sum::<u64>(), operations(&document["total"]));
}

/// Returns the warnings of a command that must succeed.
#[track_caller]
fn warnings(directory: &Path, line: &str) -> Vec<String> {
    let output = run_line(directory, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}: {said}");
    said.lines().filter_map(|line| Some(line.strip_prefix("warning: ")?.to_owned())).collect()
}

#[test]
fn a_flag_of_warps_without_effect_is_never_silent() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("{WARP_FILES}/{name}");
    let (raw, sums) = (file("get-full.csv.zst"), file("get-default.json.zst"));
    let on_raw = warnings(place.path(), &format!("as warp analyze -q --full --debug --cpu {raw}"));
    let expected = [
        "--debug has no effect: requests are not traced",
        "--cpu has no effect: plimsoll does not profile itself; `perf record` does",
    ];
    assert_eq!(on_raw, expected);
    let line = format!("as warp analyze --full --analyze.skip 2s --analyze.out x.tsv {sums}");
    let on_sums = warnings(place.path(), &line);
    let why = format!("has no effect: {sums} holds only warp's sums and figures");
    let flags = ["--analyze.skip", "--full", "--analyze.out"];
    assert_eq!(on_sums, flags.map(|flag| format!("{flag} {why}")));
    assert!(!place.path().join("x.tsv").exists());
    let json = warnings(place.path(), &format!("as warp analyze --json --full {raw}"));
    assert!(json.len() == 1 && json[0].starts_with("--json: "), "{json:?}");
    let line =
        format!("as warp analyze --analyze.dur 2s --analyze.out x.tsv --analyze.limit 9 {raw}");
    let without = ["--analyze.dur", "--analyze.out"]
        .map(|flag| format!("{flag} has no effect without --full, as in warp"));
    assert_eq!(warnings(place.path(), &line), without);
    let compared = warnings(place.path(), &format!("as warp cmp --full --web {raw} {raw}"));
    assert_eq!(compared.len(), 2, "{compared:?}");
    let said = refused(place.path(), &format!("as warp analyze --full-span {raw}"));
    assert!(said.contains("--full-span"), "{said}");
    null_run(place.path(), "run");
    let said = refused(place.path(), "as warp analyze --full run");
    assert!(said.contains("plimsoll export"), "{said}");
    assert!(printed(place.path(), "as warp analyze run").contains("too few samples"));
}

/// A row of a raw file, but for the worker's number: operation, client, endpoint, object, error.
type Row = (OpRecord, [String; 4]);

struct RawFile {
    rows: Vec<Row>,
    threads: Vec<u32>,
    end: raw::ScanEnd,
    workers: usize,
}

fn raw_file(path: &Path) -> RawFile {
    let (mut names, mut found) = (Names::default(), Vec::new());
    let end = raw::scan(fs::File::open(path).unwrap(), &mut names, &mut |op, texts| {
        found.push((*op, texts.file.to_owned(), texts.error.to_owned()));
    });
    let (mut rows, mut threads) = (Vec::new(), Vec::new());
    for (op, file, error) in found {
        let worker = &names.workers[op.worker.0 as usize];
        let client = names.clients[usize::from(worker.client)].clone();
        let endpoint = names.endpoints[usize::from(op.endpoint.0)].clone();
        threads.push(worker.thread);
        rows.push((OpRecord { worker: WorkerId(0), ..op }, [client, endpoint, file, error]));
    }
    RawFile { rows, threads, end: end.unwrap(), workers: names.workers.len() }
}

/// Writes what every second worker of a file did, workers numbered anew from 0.
fn write_half(whole: &RawFile, odd: u32, path: &Path) {
    let mut writer = raw::Writer::new(fs::File::create(path).unwrap()).unwrap();
    for ((op, [client, endpoint, file, error]), thread) in whole.rows.iter().zip(&whole.threads) {
        if thread % 2 == odd {
            let row = raw::RawRow {
                thread: thread / 2,
                op: op.kind.name(),
                client_id: client,
                objects: op.objects_count,
                bytes: op.bytes,
                endpoint,
                file,
                error,
                start_unix_ns: op.start.as_ns(),
                first_byte: op.first_byte.map(Moment::as_ns),
                last_byte: op.last_byte_sent.map(Moment::as_ns),
                end_unix_ns: op.end.as_ns(),
            };
            writer.row(&row).unwrap();
        }
    }
    writer.comment(whole.end.command_line.as_ref().unwrap()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn as_warp_merge_puts_raw_files_together_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    // The second has failures with their texts.
    for (number, name) in ["get-full", "append-errors-full"].into_iter().enumerate() {
        let path = PathBuf::from(format!("{WARP_FILES}/{name}.csv.zst"));
        let mut whole = raw_file(&path);
        write_half(&whole, 0, &at("one.csv.zst"));
        write_half(&whole, 1, &at("two.csv.zst"));
        let line = format!("as warp merge one.csv.zst two.csv.zst --benchdata both{number}");
        printed(place.path(), &line);
        let merged = at(&format!("both{number}.csv.zst"));
        // So its figures are those of the file before it was cut in two.
        let figures = |path: &Path| {
            printed(place.path(), &format!("as warp analyze --full {}", path.display()))
        };
        assert_eq!(figures(&merged), figures(&path));
        let mut merged = raw_file(&merged);
        assert!(merged.rows.is_sorted_by_key(|(op, _)| op.start));
        for file in [&mut whole, &mut merged] {
            file.rows.sort_by(|(a, a_texts), (b, b_texts)| {
                (a.start, a.end, a_texts).cmp(&(b.start, b.end, b_texts))
            });
        }
        assert_eq!((merged.workers, merged.end), (whole.workers, whole.end));
        assert!(merged.rows == whole.rows, "{name}");
    }
    for (line, named) in [
        ("as warp merge one.csv.zst two.csv.zst --benchdata both0", "cannot write both0.csv.zst"),
        ("as warp merge one.csv.zst one.csv.zst --benchdata x", "given twice"),
        ("as warp merge one.csv.zst --benchdata x", "at least two runs"),
    ] {
        let said = refused(place.path(), line);
        assert!(said.contains(named), "{line}: {said}");
    }
    assert!(!at("x.csv.zst").exists());
    printed(place.path(), "as warp merge one.csv.zst two.csv.zst");
    let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let is_default = |name: &String| name.starts_with("warp-merge-") && name.ends_with("].csv.zst");
    assert_eq!(names.filter(is_default).count(), 1);
}

const HEADER: &str = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\t\
                      first_byte\tlast_byte\tend\tduration_ns\tcat\n";

/// Returns a row of one second's download of `bytes` bytes, by one of two workers.
fn row(index: usize, bytes: u64, end: &str) -> String {
    let thread = index % 2;
    let second = index % 60;
    format!(
        "{index}\t{thread}\tGET\tb2Zi\t1\t{bytes}\thttp://a:1\tp/1.rnd\t\t\
         2026-11-20T20:53:{second:02}Z\t\t\t{end}\t\t0\n"
    )
}

fn good_row(index: usize) -> String {
    row(index, 16_384, &format!("2026-11-20T20:53:{:02}.9Z", index % 60))
}

#[test]
fn absurd_sizes_are_a_loss_and_no_overflow() {
    let place = tempfile::tempdir().unwrap();
    let good: String = (0..30).map(good_row).collect();
    let absurd: String =
        (30..40).map(|index| row(index, u64::MAX - 1, "2026-11-20T20:53:59Z")).collect();
    // Each would do, but not the sum of so many.
    let many: String =
        (0..2_100).map(|index| row(index, 1 << 53, "2026-11-20T20:54:59Z")).collect();
    fs::write(place.path().join("absurd.csv"), format!("{HEADER}{good}{absurd}")).unwrap();
    fs::write(place.path().join("many.csv"), format!("{HEADER}{good}{many}")).unwrap();
    for (file, loss) in [
        ("absurd.csv", "10 rows with an unreadable value in column `bytes` were skipped"),
        // Beside the good rows, 127 fit into 2^60 bytes: 2,100 - 127 do not.
        ("many.csv", "1973 rows with more in column `bytes` than can be added up"),
    ] {
        let said = printed(place.path(), &format!("analyze --analyze.v {file}"));
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(loss), "{file}: {said}");
        let found = warnings(place.path(), &format!("as warp analyze --full {file}"));
        assert!(found.len() == 1 && found[0].contains(loss), "{found:?}");
    }
    let shown = printed(place.path(), "analyze absurd.csv --json");
    let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(counts(&document)["bytes"], 30 * 16_384);
}

#[test]
fn a_file_that_holds_nothing_of_use_is_refused_in_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let backwards = row(0, 1, "2026-11-20T20:52:59Z");
    let real = fs::read(format!("{WARP_FILES}/get-full.csv.zst")).unwrap();
    for (name, content, sentence) in [
        ("empty.csv.zst", Vec::new(), "the file holds no operation"),
        ("header.csv", HEADER.into(), "the file holds no operation"),
        (
            "backwards.csv",
            format!("{HEADER}{backwards}").into_bytes(),
            "the file holds no operation that can be used: 1 row that ends before it starts was \
             skipped (line 2)",
        ),
        (
            "cut.csv.zst",
            real[..200].to_vec(),
            "the compressed stream is damaged or cut off before anything of use",
        ),
    ] {
        fs::write(place.path().join(name), content).unwrap();
        for line in [
            format!("analyze {name}"),
            format!("as warp analyze {name}"),
            format!("compare {name} {name}"),
            format!("merge -o merged {name} {name}"),
        ] {
            assert_eq!(refused(place.path(), &line), format!("plimsoll: {name}: {sentence}\n"));
        }
    }
    fs::write(place.path().join("cut.csv.zst"), &real[..real.len() / 2]).unwrap();
    let said = printed(place.path(), "analyze cut.csv.zst");
    assert!(said.contains("the file is cut off or damaged at line"), "{said}");
}

#[test]
fn a_run_without_its_parts_says_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    null_run(place.path(), "whole");
    fs::remove_file(place.path().join("run/ops/part-000000.parquet")).unwrap();
    let lost = "the op log holds 0 operations, but ";
    let said = printed(place.path(), "analyze run");
    assert!(said.contains(lost) && said.contains("no operation ended"), "{said}");
    for line in ["compare run whole", "export run -o ops.csv"] {
        let output = plimsoll(place.path()).args(line.split(' ')).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("no operation of run can be read: all parts"), "{line}: {said}");
    }
}

#[test]
fn a_clock_that_is_years_off_is_analysed_but_not_merged() {
    let place = tempfile::tempdir().unwrap();
    let good: String = (0..30).map(good_row).collect();
    let far = good_row(31).replace("2026", "2096");
    fs::write(place.path().join("good.csv"), format!("{HEADER}{good}{}", good_row(30))).unwrap();
    fs::write(place.path().join("far.csv"), format!("{HEADER}{good}{far}")).unwrap();
    printed(place.path(), "analyze far.csv");
    let said = refused(place.path(), "merge good.csv far.csv -o merged");
    assert!(said.contains("a merged run may span 32 days"), "{said}");
    assert!(!place.path().join("merged").exists());
}

#[test]
fn an_export_reads_like_the_run() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for name in ["ops.csv.zst", "ops.csv", "ops.jsonl"] {
        printed(place.path(), &format!("export run -o {name}"));
    }
    let figures = |line: &str| -> serde_json::Value {
        serde_json::from_str(&printed(place.path(), line)).unwrap()
    };
    let (own, back) = (figures("analyze run --json"), figures("analyze ops.csv.zst --json"));
    assert!(counts(&own).is_object() && measured(&own)["kinds"].is_array());
    assert_eq!(counts(&own), counts(&back));
    assert_eq!(measured(&own)["total"]["latency_ns"], measured(&back)["total"]["latency_ns"]);
    let rows = counts(&own)["ops_ok_count"].as_u64().unwrap() as usize;
    let lines = |name: &str| fs::read_to_string(place.path().join(name)).unwrap().lines().count();
    assert_eq!((lines("ops.csv"), lines("ops.jsonl")), (rows + 1, rows));
}

#[test]
fn exported_figures_are_those_of_the_report() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let figures = |line: &str| -> serde_json::Value {
        serde_json::from_str(&printed(place.path(), line)).unwrap()
    };
    let own = figures("analyze run --json");
    let p99 = measured(&own)["kinds"][0]["latency_ns"]["p99"].as_f64().unwrap();
    let bencher = figures("export run --format bencher -o -");
    let (name, measures) = bencher.as_object().unwrap().iter().next().unwrap();
    assert_eq!(measures["latency-p99"]["value"].as_f64(), Some(p99), "{bencher}");
    let smaller = figures("export run --format github-smaller -o -");
    let find = |list: &serde_json::Value, metric: &str| {
        let name = format!("{name} {metric}");
        list.as_array().unwrap().iter().find(|of| of["name"] == *name).cloned()
    };
    let of_github = find(&smaller, "p99").unwrap();
    assert_eq!(
        (of_github["value"].as_f64(), of_github["unit"].as_str()),
        (Some(p99 / 1e6), Some("ms"))
    );
    let bigger = figures("export run --format github-bigger -o -");
    assert!(find(&bigger, "rate").unwrap()["value"].as_f64().unwrap() > 0.0, "{bigger}");
    assert!(find(&bigger, "p99").is_none() && find(&smaller, "rate").is_none());
}

/// warp's file has no stages: uploads that only prepared would be read as measured ones.
#[test]
fn an_export_to_warps_format_holds_no_preparation_of_a_kind_that_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let rows = |line: &str, kind: &str| {
        printed(place.path(), &format!("s3 {line} -q --run-dir {kind}"));
        printed(place.path(), &format!("export {kind} -o {kind}.csv.zst"));
        printed(place.path(), &format!("export {kind} -o {kind}.jsonl"));
        let read = |name: String| fs::read(place.path().join(name)).unwrap();
        let text = zstd::decode_all(&*read(format!("{kind}.csv.zst"))).unwrap();
        let text = String::from_utf8(text).unwrap();
        let warp = text.lines().filter(|row| row.split('\t').nth(2) == Some("PUT")).count();
        let all = String::from_utf8(read(format!("{kind}.jsonl"))).unwrap();
        (warp, all.lines().filter(|row| row.contains("\"kind\":\"PUT\"")).count())
    };
    let sizes = "--objects 40 --obj.size 1KiB --concurrent 2 --duration 600ms";
    let (warp, all) = rows(&format!("mixed {sizes}"), "mixed");
    assert!(warp > 0);
    assert_eq!(all - warp, 40);
    assert_eq!(rows(&format!("get {sizes}"), "get"), (40, 40));
}

#[test]
fn segments_go_to_a_file_by_its_ending() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for name in ["segments.tsv", "segments.csv", "segments.parquet"] {
        printed(place.path(), &format!("analyze run --analyze.dur 50ms --analyze.out {name}"));
    }
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(read("segments.tsv").starts_with(b"index\top\thost\tduration_s\tobjects_per_op\t"));
    assert!(read("segments.csv").starts_with(b"index,op,host,duration_s,objects_per_op,"));
    assert!(read("segments.parquet").starts_with(b"PAR1"));
}

#[test]
fn the_html_report_is_written() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    printed(place.path(), "report run -o run.html");
    let page = fs::read_to_string(place.path().join("run.html")).unwrap();
    assert!(page.contains("plimsoll.report/1") && page.contains("<svg"));
}

#[test]
fn a_comparison_is_written_as_a_page() {
    let place = tempfile::tempdir().unwrap();
    ["a", "b", "c", "d"].iter().for_each(|name| drop(null_run(place.path(), name)));
    printed(place.path(), "report a b -o two.html");
    printed(place.path(), "report a --before b c d -o four.html");
    let page = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    let (two, four) = (page("two.html"), page("four.html"));
    assert!(two.contains("one run a side gives no verdict"));
    for text in ["plimsoll.compare/", "<dt>before</dt><dd>a, b</dd>", "<dd>c, d</dd>"] {
        assert!(four.contains(text), "{text}");
    }
    assert!(two.len().max(four.len()) < 900_000);
    // What is there stays, and what cannot be compared is refused before a file is written.
    assert!(refused(place.path(), "report a b -o two.html").contains("already exists"));
    let missing = refused(place.path(), "report a nowhere -o five.html");
    assert!(missing.contains("nowhere") && !place.path().join("five.html").exists());
    let puts = "s3 put --obj.size 1KiB --duration 300ms --concurrent 2 -q --run-dir puts";
    printed(place.path(), puts);
    let apart = refused(place.path(), "report a puts -o five.html");
    assert!(apart.contains("have no kind of operation in common"), "{apart}");
    assert!(!place.path().join("five.html").exists());
}

/// Returns the conditions of the query in the page on the op log that are not about the stage, and
/// what the page says of the stage and the percentile.
fn recipe() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/ops.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```sql\n").skip(1).collect();
    assert_eq!(blocks.len(), 1, "one query, which this test follows");
    let query = blocks[0].split("```").next().unwrap();
    query.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Issue 13: the query of the page mixed the stages.
#[test]
fn the_query_in_the_page_on_the_op_log_gives_the_figures_of_the_report() {
    let query = recipe();
    for part in [
        "WHERE measured AND stage IN (SELECT s.index FROM (SELECT unnest(stages) AS s FROM 'RUN/run.json') \
         WHERE s.kind = 'measure')",
        "SELECT max(first_end) AS began, min(last_end) AS ended FROM (SELECT min(end_ns) AS \
         first_end, max(end_ns) AS last_end FROM measured GROUP BY worker)",
        "quantile_disc(end_ns - start_ns + schedule_delay_ns, 0.99)",
        "FROM measured, span WHERE outcome = 'ok' AND start_ns >= began AND end_ns > began AND \
         end_ns <= ended GROUP BY kind",
    ] {
        assert!(query.contains(part), "this test follows a query with `{part}`:\n{query}");
    }
    // The same over the log of a run that prepared with the kind that it measured.
    let place = tempfile::tempdir().unwrap();
    let line = "s3 mixed --objects 40 --obj.size 1KiB --concurrent 2 --duration 600ms \
                -q --json --run-dir run";
    let report: serde_json::Value = serde_json::from_str(&printed(place.path(), line)).unwrap();
    let manifest = fs::read_to_string(place.path().join("run/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let stages = manifest["stages"].as_array().unwrap();
    let is_measured = |row: &serde_json::Value| {
        stages.iter().any(|stage| stage["kind"] == "measure" && stage["name"] == row["stage"])
    };
    let rows = printed(place.path(), "export run --format jsonl -o -");
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |row: &serde_json::Value, name: &str| row[name].as_u64().unwrap();
    let measured: Vec<_> = rows.iter().filter(|row| is_measured(row)).collect();
    assert!(measured.len() < rows.len(), "other stages are in the log");
    let mut ends = std::collections::BTreeMap::<u64, (u64, u64)>::new();
    for row in &measured {
        let end = number(row, "end_ns");
        let ends = ends.entry(number(row, "worker")).or_insert((end, end));
        *ends = (ends.0.min(end), ends.1.max(end));
    }
    let began = ends.values().map(|ends| ends.0).max().unwrap();
    let ended = ends.values().map(|ends| ends.1).min().unwrap();
    for kind in harness::measured(&report)["kinds"].as_array().unwrap() {
        let inside = measured.iter().filter(|row| {
            let (start, end) = (number(row, "start_ns"), number(row, "end_ns"));
            let in_span = start >= began && end > began && end <= ended;
            row["outcome"] == "ok" && row["kind"] == kind["kind"] && in_span
        });
        let mut latencies: Vec<u64> = inside
            .map(|row| {
                let delay = number(row, "start_ns") - number(row, "intended_ns");
                number(row, "end_ns") - number(row, "start_ns") + delay
            })
            .collect();
        latencies.sort_unstable();
        let times = &kind["latency_ns"];
        assert_eq!(times["samples_count"], latencies.len(), "{kind:#}");
        let rank = (latencies.len() as f64 * 0.5).ceil() as usize;
        let (exact, told) = (latencies[rank - 1] as f64, times["p50"].as_f64().unwrap());
        assert!((told - exact).abs() <= exact * 0.001, "{exact} is told as {told}");
    }
}
