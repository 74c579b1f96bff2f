//! `plimsoll file`: what each command does, counted.

use serde_json::Value;

use super::{Directories, hashes, skip};
use crate::harness::{printed, refused, run_directory, stderr};

/// Checks that a report agrees with itself and with the log, and that nothing failed. `block` is
/// the bytes of each operation that moves any, but for those that fill.
#[track_caller]
fn check(line: &str, report: &Value, block: Option<u64>) {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/report.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    assert!(against(&schema, &schema, &report["stages"], "").is_some(), "it tells");
    let wrong = against(&schema, &schema, report, "");
    assert_eq!(wrong, None, "{line}");
    assert_eq!(report["schema"], "plimsoll.report/1", "{line}");
    assert_eq!(report["state"], "complete", "{line}");
    let mut begun = 0;
    for stage in report["stages"].as_array().unwrap() {
        let started = stage["started_after_ns"].as_u64().unwrap();
        assert!(
            started >= begun,
            "{line}: {} begins before the stage before it ends",
            stage["name"]
        );
        begun = started + stage["duration_ns"].as_u64().unwrap();
        let mut total = 0;
        for row in stage["rows"].as_array().unwrap() {
            total += row["ramp"]["ops_ok_count"].as_u64().unwrap();
            assert_eq!(row["ramp"]["ops_failed_count"], 0, "{line}");
            assert_eq!(row["total"]["stage_total"]["ops_failed_count"], 0, "{line}");
            for kind in row["kinds"].as_array().unwrap() {
                let done = &kind["stage_total"];
                let ops = done["ops_ok_count"].as_u64().unwrap();
                assert_eq!(kind["latency_ns"]["samples_count"], ops, "{line}");
                let moves = kind["kind"] == "READ" || kind["kind"] == "WRITE";
                if let (Some(block), true, true) = (block, moves, stage["is_result"] == true) {
                    assert_eq!(done["bytes"], ops * block, "{line}: {}", stage["name"]);
                }
                total += ops;
            }
        }
        assert_eq!(stage["op_log"]["rows_count"], total, "{line}: {}", stage["name"]);
        assert_eq!(stage["op_log"]["ops_counted_count"], total, "{line}: {}", stage["name"]);
    }
}

/// Returns what a document has or lacks against its schema, of which this knows enough.
fn against(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.strip_prefix("#/$defs/").unwrap()];
        return against(root, definition, value, at);
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let all: Option<Vec<_>> = choices.iter().map(|one| against(root, one, value, at)).collect();
        return all.map(|reasons| reasons.join(" and "));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
    if !kinds.is_empty() && !fits {
        return Some(format!("{at}: {kind} is not one of {kinds:?}"));
    }
    if let Some(items) = value.as_array() {
        let mut items = items.iter().enumerate();
        return items
            .find_map(|(i, item)| against(root, &schema["items"], item, &format!("{at}/{i}")));
    }
    let fields = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("{at}: no {missing}"));
    }
    fields.iter().find_map(|(name, field)| {
        let place = format!("{at}/{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => Some(format!("{place} is not described")),
            (Value::Null, Value::Null) => Some(format!("{place} is not described")),
            (Value::Null, others) => against(root, others, field, &place),
            (described, _) => against(root, described, field, &place),
        }
    })
}

/// Returns how many operations of a kind a stage counts.
fn ops(report: &Value, stage: &str, kind: &str) -> u64 {
    let stages = report["stages"].as_array().unwrap().iter();
    stages
        .filter(|each| each["name"] == stage)
        .flat_map(|each| each["rows"].as_array().unwrap())
        .flat_map(|row| row["kinds"].as_array().unwrap())
        .filter(|each| each["kind"] == kind)
        .map(|each| each["stage_total"]["ops_ok_count"].as_u64().unwrap())
        .sum()
}

fn stages(report: &Value) -> Vec<String> {
    let stages = report["stages"].as_array().unwrap().iter();
    stages.map(|stage| stage["name"].as_str().unwrap().to_owned()).collect()
}

const SMALL: &str = "--dir DIR --jobs 2 --file-size 256KiB --json";

#[test]
fn every_order_on_every_interface_counts_what_it_was_asked_for() {
    let orders = ["sequential", "random", "uniform", "zipf:1.2", "pareto:0.2", "normal:10"];
    let interfaces = ["io_uring", "libaio", "psync"];
    for (number, order) in orders.into_iter().enumerate() {
        let dirs = Directories::in_memory();
        let interface = interfaces[number % interfaces.len()];
        for (op, expected) in [
            ("both", [("read-iops", "READ", 100), ("write-iops", "WRITE", 100)].as_slice()),
            ("read", &[("read-iops", "READ", 100)]),
            ("write", &[("write-iops", "WRITE", 100)]),
            ("mixed", &[]),
        ] {
            let line = format!(
                "file iops {SMALL} --ops 50 --order {order} --op {op} --interface {interface}"
            );
            let report = dirs.json(&line, 0);
            check(&line, &report, Some(4096));
            for (stage, kind, count) in expected {
                assert_eq!(ops(&report, stage, kind), *count, "{line}");
            }
            if op == "mixed" {
                let of = |kind| ops(&report, "mixed-iops", kind);
                assert_eq!(of("READ") + of("WRITE"), 100, "{line}");
                assert!(of("READ") > of("WRITE"), "{line}: 70 % are to be reads");
            }
            let filled = if op == "write" { 0 } else { 2 };
            assert_eq!(ops(&report, "prepare", "WRITE"), filled, "{line}");
        }
    }
}

#[test]
fn every_way_of_opening_and_syncing_works_on_disk_and_in_memory() {
    for dirs in [Directories::in_memory(), Directories::on_disk()] {
        let on = if dirs.files().starts_with("/dev/shm") { "off" } else { "auto" };
        for more in [
            "file latency --direct off --sync sync --op write",
            "file iops --direct on --sync dsync --op write --interface psync",
            "file bandwidth --block 64KiB --direct on --op mixed --interface libaio",
            "file bandwidth --block 64KiB --op read --interface io_uring --files 3",
        ] {
            let more =
                if on == "off" { more.replace("--direct on", "--direct off") } else { more.into() };
            let line = format!("{more} {SMALL} --ops 40");
            check(
                &line,
                &dirs.json(&line, 0),
                Some(if line.contains("64KiB") { 65_536 } else { 4_096 }),
            );
        }
    }
    // Memory takes O_DIRECT since Linux 6.6, and what does not says so.
    let dirs = Directories::in_memory();
    let line = format!("file iops {SMALL} --ops 5 --direct on");
    let output = dirs.command(&line).output().unwrap();
    let refused = output.status.code() == Some(2) && stderr(&output).contains("refuses O_DIRECT");
    assert!(output.status.success() || refused, "{output:?}");
    dirs.assert_clean(&line);
    for (more, syncs) in [("--fsync 10", 10), ("--fdatasync 20 --end-fsync", 6), ("--end-fsync", 2)]
    {
        let line = format!("file iops {SMALL} --op write --ops 50 {more}");
        let report = dirs.json(&line, 0);
        check(&line, &report, Some(4_096));
        assert_eq!(ops(&report, "write-iops", "SYNC"), syncs, "{line}");
    }
}

#[test]
fn bytes_time_and_rates_end_and_pace_a_stage() {
    let dirs = Directories::in_memory();
    let report = dirs.json(&format!("file latency {SMALL} --bytes 64KiB"), 0);
    check("--bytes", &report, Some(4_096));
    assert_eq!(ops(&report, "read-latency", "READ"), 32);

    let line = format!("file iops {SMALL} --duration 300ms --ramp 100ms --op read");
    let report = dirs.json(&line, 0);
    check(&line, &report, Some(4_096));
    let row = &report["stages"][1]["rows"][0];
    assert!(row["ramp"]["ops_ok_count"].as_u64().unwrap() > 0, "{row}");
    let began = |of: &Value| of.as_u64().unwrap();
    let ramp = began(&row["span"]["started_ns"]) - began(&row["stage_started_ns"]);
    assert_eq!(ramp, 100_000_000);

    let line = format!("file iops {SMALL} --duration 300ms --rps-limit 100/s --op read");
    let report = dirs.json(&line, 0);
    check(&line, &report, Some(4_096));
    // Each of two jobs may start one every 10 ms: 30 of them, or fewer on a busy machine.
    assert!((1..=60).contains(&ops(&report, "read-iops", "READ")));

    for law in ["constant", "poisson"] {
        let line = format!("file iops {SMALL} --ops 50 --rate 2000/s --arrivals {law} --op mixed");
        let report = dirs.printed_either(&line, &[0, 1]);
        let report = serde_json::from_str(&report).unwrap();
        check(&line, &report, Some(4_096));
        let schedule = &report["stages"][1]["rows"][0]["schedules"][0];
        assert_eq!(
            (&schedule["offered_count"], &schedule["skipped_count"]),
            (&100.into(), &0.into())
        );
    }
}

#[test]
fn one_seed_gives_one_stream_also_by_way_of_the_explained_workload() {
    let dirs = Directories::in_memory();
    let mut first = Vec::new();
    let line = "file iops --dir DIR --jobs 2 --file-size 256KiB --ops 60 --op mixed --json";
    for more in ["--seed 7", "--seed 7 --interface psync", "--seed 7 --threads 1", "--seed 8"] {
        dirs.printed(&format!("{line} {more}"), 0);
        let found = hashes(&dirs.take_manifest());
        match more {
            "--seed 7" => first = found,
            "--seed 8" => assert_ne!(found[1], first[1]),
            _ => assert_eq!(found, first, "{more}"),
        }
    }
    let lines = [
        line.to_owned(),
        "file metadata --dir DIR --jobs 2 --files 20 --file-size 100B --json".to_owned(),
        format!("{line} --rate 5000/s --arrivals poisson"),
    ];
    for line in lines {
        dirs.printed_either(&format!("{line} --seed 7"), &[0, 1]);
        let expected = hashes(&dirs.take_manifest());
        let yaml = dirs.printed(&format!("{line} --seed 7 --explain"), 0);
        assert!(yaml.starts_with("schema: plimsoll.workload/2\n"), "{yaml}");
        let path = dirs.write("explained.yaml", &yaml);
        dirs.printed_either(&format!("run {} --json", path.display()), &[0, 1]);
        assert_eq!(hashes(&dirs.take_manifest()), expected, "{line}");
    }
}

#[test]
fn names_are_made_looked_at_and_removed_in_order() {
    let dirs = Directories::in_memory();
    for more in ["--file-size 100B --fsync", "--shared-directory --no-shift", "--iterations 3"] {
        let line = format!("file metadata --dir DIR --jobs 2 --files 30 --json {more}");
        let report = dirs.json(&line, 0);
        check(&line, &report, None);
        let times = if more.contains("iterations") { 3 } else { 1 };
        for (stage, kind) in
            [("create", "CREATE"), ("stat", "STAT"), ("open", "OPEN"), ("delete", "UNLINK")]
        {
            assert_eq!(ops(&report, stage, kind), 60 * times, "{line}");
        }
        let one = ["tree", "create", "stat", "open", "delete", "tree-removal"];
        assert_eq!(stages(&report), one.repeat(times as usize), "{line}");
    }
}

#[test]
fn the_suite_has_the_guides_stages_in_its_order_and_its_table() {
    let dirs = Directories::in_memory();
    let line = "file suite --dir DIR --scale 1/1048576 --duration 100ms --jobs 2 --iterations 2";
    let report = dirs.json(&format!("{line} --json"), 0);
    check(line, &report, None);
    let names = ["tree", "create", "stat", "delete", "tree-removal"];
    let blocks = [
        "create-iops-files",
        "create-bw-files",
        "read-throughput",
        "write-throughput",
        "read-iops",
        "write-iops",
        "read-latency",
        "write-latency",
    ];
    assert_eq!(stages(&report), [blocks.as_slice(), &names, &names].concat());
    std::fs::remove_dir_all(run_directory(dirs.runs())).unwrap();
    let text = dirs.printed(line, 0);
    let table = text.split("WEKA's summary").nth(1).unwrap();
    for row in ["throughput", "IOPS", "latency", "creates", "stats", "deletes"] {
        assert!(table.contains(row), "no {row} in: {table}");
    }
    // The same from the record.
    let again = dirs.printed(&format!("analyze {}", run_directory(dirs.runs()).display()), 0);
    assert_eq!(again.split("WEKA's summary").nth(1).unwrap().lines().next(), table.lines().next());
    let wide: Vec<&str> = text
        .lines()
        .skip(1)
        .filter(|line| {
            // What the machine is called is as long as it is.
            let is_given = line.contains("plimsoll") || line.contains('/');
            // Sentences are as wide as there is room, which is more where nobody looks.
            let leads = ["verdict ", "  because ", "  try next ", "gap ", "            "];
            let is_sentence = leads.iter().any(|lead| line.starts_with(lead));
            line.chars().count() > 80 && !is_given && !is_sentence && !line.starts_with("machine ")
        })
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn a_recorded_run_is_analysed_again_to_the_same_figures() {
    let dirs = Directories::in_memory();
    let first = dirs.json(&format!("file iops {SMALL} --ops 50 --seed 3"), 0);
    let run = run_directory(dirs.runs());
    let again = dirs.json(&format!("analyze {} --json", run.display()), 0);
    assert_eq!(again["stages"], first["stages"]);
}

#[test]
fn files_that_were_there_are_read_as_they_are() {
    let dirs = Directories::on_disk();
    let content: Vec<u8> = (0..128 << 10).map(|at: u32| (at % 251) as u8).collect();
    let path = dirs.runs().join("existing");
    std::fs::write(&path, &content).unwrap();
    let line =
        format!("file iops --dir DIR --on {} --op read --jobs 2 --ops 30 --json", path.display());
    let report = dirs.json(&line, 0);
    check(&line, &report, Some(4_096));
    assert_eq!(
        stages(&report),
        ["read-iops"],
        "its size is that of the file, and nothing is filled"
    );
    assert_eq!(report["verification"]["mode"], "length-only");
    assert_eq!(std::fs::read(&path).unwrap(), content);
    std::fs::remove_dir_all(run_directory(dirs.runs())).unwrap();
    // Writing to it is for those who say so, and it stays.
    let line = line.replace("--op read", "--op write --i-know-this-destroys-data");
    check(&line, &dirs.json(&line, 0), Some(4_096));
    let written = std::fs::read(&path).unwrap();
    assert!(written.len() == content.len() && written != content);
}

/// What a ramp keeps out of the figures is in no figure that is taken from the record later.
#[test]
fn a_stage_with_a_ramp_has_the_figures_that_the_run_printed() {
    let dirs = Directories::in_memory();
    let line = format!("file iops {SMALL} --duration 300ms --ramp 100ms --op read");
    let printed_by_run = dirs.json(&line, 0);
    let run = run_directory(dirs.runs()).display().to_string();
    let stages = printed_by_run["stages"].as_array().unwrap();
    let stage = stages.iter().find(|stage| stage["is_result"] == true).unwrap();
    let name = stage["name"].as_str().unwrap();
    assert!(stage["rows"][0]["ramp"]["ops_ok_count"].as_u64().unwrap() > 0, "{stage:#}");
    let read = |line: &str| -> Value { serde_json::from_str(&printed(dirs.runs(), line)).unwrap() };
    let analyzed = read(&format!("analyze {run} --stage {name} --json"));
    assert_eq!(analyzed["stages"], Value::Array(vec![stage.clone()]));
    // To the letter, also where one stage is all that is asked about.
    let compared = read(&format!("compare {run} {run} --stage {name} --json"));
    let kind = &stage["rows"][0]["kinds"][0];
    let metric = |name: &str| {
        let metrics = compared["kinds"][0]["metrics"].as_array().unwrap();
        metrics.iter().find(|of| of["metric"] == name).unwrap()["before"]["mean"].as_f64().unwrap()
    };
    assert_eq!(metric("rate"), kind["rates"]["ops_per_sec"].as_f64().unwrap());
    assert_eq!(metric("throughput"), kind["rates"]["bytes_per_sec"].as_f64().unwrap());
    for name in ["mean", "min", "max"] {
        assert_eq!(metric(name), kind["latency_ns"][name].as_f64().unwrap(), "{name}");
    }
    assert_eq!(metric("p99"), kind["latency_ns"]["p99"].as_f64().unwrap());
    let counts = compared["kinds"][0]["ops_count_before"].as_u64().unwrap();
    assert_eq!(counts, kind["stage_total"]["ops_ok_count"].as_u64().unwrap());
    let row = |of: &Value| of["stages"][0]["rows"][0].clone();
    // The stage alone is the same page, and what is asked of one stage is heeded.
    let narrowed = read(
        &format!("analyze {run} --stage {name} --analyze.op write --json").replace("write", "read"),
    );
    for figures in ["stage_total", "latency_ns", "rates", "first_done", "last_done"] {
        let of = |report: &Value| row(report)["kinds"][0][figures].clone();
        assert_eq!(of(&narrowed), of(&analyzed), "{figures}");
    }
    let skipped = read(&format!("analyze {run} --stage {name} --analyze.skip 1h --json"));
    assert!(
        row(&skipped)["ramp"]["ops_ok_count"].as_u64()
            > row(&analyzed)["ramp"]["ops_ok_count"].as_u64()
    );
    let full = read(&format!("analyze {run} --stage {name} --full-span --json"));
    assert_eq!(row(&full)["ramp"]["ops_ok_count"], 0);
    let said = refused(dirs.runs(), &format!("analyze {run} --stage {name} --analyze.op stat"));
    assert!(said.contains("has no such operation"), "{said}");
}

#[test]
fn what_a_run_never_wrote_does_not_count_as_checked() {
    let dirs = Directories::in_memory();
    // The second half of the file is read too, and nobody has written it, unless it was filled.
    let head = "schema: plimsoll.workload/2\nname: x\nseed: 1\ntargets: {files: {directory: DIR}}\n\
                sets: {w: {files: 1, size: 64KiB, name: f}, r: {files: 1, size: SIZE, name: f}}\n\
                stages:\n";
    let stage = |name: &str, set: &str| {
        let blocks = format!("{{on: {set}, {name}: {{block: 4KiB}}, order: sequential}}");
        format!("- {{name: {name}, jobs: [{{name: {set}, work: {{blocks: {blocks}}}}}]}}\n")
    };
    let (write, read) = (stage("write", "w"), stage("read", "r"));
    let fill = "- {prepares: true, jobs: [{work: {fill: r}}]}\n";
    for (stages, size, mode, bytes, unverified) in [
        (format!("{write}{read}"), "128KiB", "partial", 65_536, 65_536),
        (format!("{fill}{read}"), "128KiB", "every-byte", 131_072, 0),
        (format!("{write}{read}"), "64KiB", "every-byte", 65_536, 0),
    ] {
        let head = head.replace("SIZE", size);
        let path = dirs.write("w.yaml", &format!("{head}{stages}"));
        let line = format!("run {}", path.display());
        let report = dirs.json(&format!("{line} --json"), 0);
        let manifest = dirs.take_manifest();
        let checked = &report["verification"];
        assert_eq!(checked["mode"], mode, "{stages}");
        assert_eq!(checked["bytes"], bytes, "{stages}");
        assert_eq!(checked["unverified_bytes"], unverified, "{stages}");
        let stages = manifest["stages"].as_array().unwrap();
        let kept = stages.last().unwrap()["files"]["unverified_bytes"].as_u64().unwrap();
        assert_eq!(kept, unverified);
        let text = dirs.printed(&line, 0);
        assert_eq!(text.contains("every byte of every read"), mode == "every-byte", "{text}");
        let partly = "64.0 KiB, every byte of what the run wrote; 64.0 KiB not checked";
        assert_eq!(text.contains(partly), mode == "partial", "{text}");
        dirs.take_manifest();
    }
}

#[test]
fn only_who_asks_for_it_has_all_caches_of_the_machine_dropped() {
    let dirs = Directories::on_disk();
    for (line, caches) in [
        ("file iops --dir DIR --jobs 1 --file-size 64KiB --ops 8 --direct off", "dropped"),
        ("file iops --dir DIR --jobs 1 --file-size 64KiB --ops 8 --direct on", "bypassed"),
        ("file metadata --dir DIR --jobs 1 --files 5", "cached"),
        ("as mdtest -F -n 5 -d DIR", "cached"),
    ] {
        let output = dirs.command(line).output().unwrap();
        if stderr(&output).contains("refuses O_DIRECT") {
            skip("no O_DIRECT here");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        let manifest = dirs.take_manifest();
        let last = &manifest["stages"].as_array().unwrap().last().unwrap()["files"];
        if last["caches_reason"] == "the file system lies in memory" {
            skip("the disk lies in memory");
            return;
        }
        // What the reader has open is as cached as it was.
        assert_eq!(last["caches"], caches, "{line}");
        let why = last["caches_reason"].as_str().unwrap_or_default();
        assert_eq!(why.contains("`drop_machine_caches`"), line.contains("file meta"), "{why}");
    }
}

#[test]
fn a_comparison_is_stage_by_stage() {
    let dirs = Directories::in_memory();
    dirs.json("file metadata --dir DIR --jobs 1 --files 30 --json", 0);
    let run = run_directory(dirs.runs()).display().to_string();
    let text = printed(dirs.runs(), &format!("compare {run} {run}"));
    for stage in ["\n  create: CREATE ", "\n  stat: STAT ", "\n  delete: UNLINK "] {
        assert!(text.contains(stage), "{text}");
    }
    let text = printed(dirs.runs(), &format!("compare {run} {run} -v"));
    for stage in ["create\n\nCREATE ", "stat\n\nSTAT ", "delete\n\nUNLINK "] {
        assert!(text.contains(stage), "{text}");
    }
    dirs.json(&format!("file iops {SMALL} --ops 5 --op read --run-dir other"), 0);
    let said = refused(dirs.runs(), &format!("compare {run} other"));
    assert!(said.contains("no kind of operation in common (CREATE, STAT, OPEN, UNLINK; READ)"));
    let text = printed(dirs.runs(), &format!("compare {run} {run} --stage create"));
    assert!(text.lines().any(|line| line.starts_with("  CREATE  ops/s")), "{text}");
    // What moves no bytes has no throughput.
    assert!(!text.contains("MiB/s"), "{text}");
}
