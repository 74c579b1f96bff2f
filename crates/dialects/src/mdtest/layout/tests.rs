//! mdtest's tables held against what mdtest printed, and reports worked out by hand.

use std::time::Duration;

use plimsoll_stats::Histogram;
use serde_json::json;

use super::*;

const OUTPUTS: [&str; 5] = [
    include_str!("../../../../../testdata/mdtest-output/ext4_np2_F_shared_25000.txt"),
    include_str!("../../../../../testdata/mdtest-output/ext4_np2_tree_z3b3_I20.txt"),
    include_str!("../../../../../testdata/mdtest-output/ext4_np2_w3901_10000.txt"),
    include_str!("../../../../../testdata/mdtest-output/quiet-tmp-np1.txt"),
    include_str!("../../../../../testdata/mdtest-output/shm_np2_all_10000.txt"),
];

/// Returns a step of so many operations of 1 ms each.
fn step(ops_ok: u64, failed: u64, took_ms: u64) -> MdtestStep {
    let mut latency = Histogram::new();
    (0..ops_ok).for_each(|_| latency.record(1_000_000));
    MdtestStep {
        ops_ok,
        failed,
        took: Some(Duration::from_millis(took_ms)),
        latency,
        first_done: Some(Duration::from_millis(took_ms - 50)),
        last_done: Some(Duration::from_millis(took_ms)),
        rank_rates: Vec::new(),
    }
}

fn row(label: &str, shift: u32, iterations: Vec<MdtestStep>) -> MdtestRow {
    let name = label.to_lowercase().replace(' ', "-");
    let looks_back = label.starts_with("File") && name != "file-creation";
    let clients = vec!["alpha".to_owned()];
    MdtestRow { label: label.to_owned(), name, shift, looks_back, clients, iterations }
}

fn report() -> MdtestReport {
    let command = ["mdtest", "-F", "-n", "100", "-N", "1", "-d", "/mnt/a b"];
    MdtestReport {
        tool_version: "1.2.3".to_owned(),
        run_id: Some("r1".to_owned()),
        started: "11/20/2026 21:14:33".to_owned(),
        ended: "11/20/2026 21:14:58".to_owned(),
        command: command.map(str::to_owned).to_vec(),
        ranks: 2,
        clients: vec!["alpha".to_owned()],
        kept: None,
        path: "/mnt/a b".to_owned(),
        // 252 GiB with an eighth in use; 16 Mi inodes with a quarter in use.
        file_system: Some(FileSystem {
            size_bytes: 252 << 30,
            free_bytes: (252 << 30) / 8 * 7,
            inodes_count: 16 << 20,
            inodes_free_count: 12 << 20,
        }),
        shift: 1,
        entries: "200 files".to_owned(),
        iterations: 2,
        shows: TableOptions { rates: true, ..TableOptions::default() },
        rows: vec![
            row("File creation", 0, vec![step(200, 0, 1_000), step(200, 0, 500)]),
            row("File stat", 1, vec![step(200, 0, 100), step(190, 10, 100)]),
            row(
                "File read",
                0,
                vec![step(0, 200, 100), MdtestStep { took: None, ..step(0, 0, 50) }],
            ),
            row("Tree creation", 0, vec![step(1, 0, 50), step(1, 0, 50)]),
        ],
        notes: vec!["`-e 0`: file-read reads nothing".to_owned()],
    }
}

#[test]
fn tables_look_as_mdtest_prints_them() {
    for output in OUTPUTS {
        let at = output.find("\nSUMMARY rate").expect("it has a table");
        let block = output[at..].split("-- finished").next().expect("there is a first piece");
        for table in block.split_inclusive("\n\n") {
            let table = format!("\n{}\n", table.trim_matches('\n'));
            let title = table.lines().nth(1).expect("it has a title");
            let rows = table.lines().skip(4).map(|line| {
                let figures: Vec<f64> =
                    line[22..].split_whitespace().map(|text| text.parse().expect(line)).collect();
                let [max, min, mean, std_dev] = figures[..] else { panic!("{line}") };
                (line[3..22].trim_end(), Some(Summary { max, min, mean, std_dev }))
            });
            assert_eq!(text::table(title, rows), table);
        }
    }
}

#[test]
fn figures_over_iterations_are_those_of_mdtest() {
    // File creation and tree creation of one of mdtest's runs with `-v` and 3 iterations: it
    // printed 3489.731 ± 3200.273 and 5447.852 ± 4195.148. The third rate of the first follows
    // from the mean.
    for (values, mean, std_dev) in [
        ([7185.082, 1636.142, 1647.969], 3489.731, 3200.273),
        ([604.192, 7810.622, 7928.741], 5447.852, 4195.148),
    ] {
        let of = Summary::of(values.into_iter()).expect("there are values");
        assert!((of.mean - mean).abs() < 1e-3, "{of:?}");
        assert!((of.std_dev - std_dev).abs() < 2e-3, "{of:?}");
        assert_eq!(of.max, values.into_iter().fold(0.0, f64::max));
        assert_eq!(of.min, values.into_iter().fold(f64::MAX, f64::min));
    }
    let one = Summary::of([5.0].into_iter());
    assert_eq!(one, Some(Summary { max: 5.0, min: 5.0, mean: 5.0, std_dev: 0.0 }));
    assert_eq!(Summary::of([].into_iter()), None);
}

#[test]
fn the_whole_text() {
    // Creation: 200 and 400 a second, so 300 ± 100 · √2. Stat: 2000 and, as 10 failed, 1900.
    // Read: nothing in 0.1 s; the second one did not happen.
    let expected = "\
-- started at 11/20/2026 21:14:33 --

plimsoll-1.2.3 as mdtest was launched with 2 total task(s) on 1 node(s)
Command line used: mdtest '-F' '-n' '100' '-N' '1' '-d' '/mnt/a b'
Path                : /mnt/a b
FS                  : 252.0 GiB   Used FS: 12.5%   Inodes: 16.0 Mi   Used Inodes: 25.0%
Shifting ranks by 1 for each step.
2 tasks, 200 files

SUMMARY rate (in ops/sec): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                 400.000        200.000        300.000        141.421
   File stat                    2000.000       1900.000       1950.000         70.711
   File read                       0.000          0.000          0.000          0.000
   Tree creation                  20.000         20.000         20.000          0.000
-- finished at 11/20/2026 21:14:58 --

latency              ops  failed      p50      p90      p99  p99.9      max  first done  last done
  File creation 1/2  200       0  1.00 ms  1.00 ms  1.00 ms      –  1.00 ms      950 ms     1.00 s
  File creation 2/2  200       0  1.00 ms  1.00 ms  1.00 ms      –  1.00 ms      450 ms     500 ms
  File stat 1/2      200       0  1.00 ms  1.00 ms  1.00 ms      –  1.00 ms     50.0 ms     100 ms
  File stat 2/2      190      10  1.00 ms  1.00 ms  1.00 ms      –  1.00 ms     50.0 ms     100 ms
  File read 1/2        0     200        –        –        –      –        –     50.0 ms     100 ms
  File read 2/2        0       0        –        –        –      –        –         0 s    50.0 ms
  Tree creation 1/2    1       0        –        –        –      –  1.00 ms         0 s    50.0 ms
  Tree creation 2/2    1       0        –        –        –      –  1.00 ms         0 s    50.0 ms

served by
  File creation  alpha
  File stat      alpha; rank r on the entries of rank r + 1
  File read      alpha; each rank on its own entries
  Tree creation  alpha

caching  is not excluded: one client made the entries and worked on them, so what it kept of them
         may have answered
failed   210 operations, which are in no rate and no latency
note     `-e 0`: file-read reads nothing
";
    assert_eq!(text::render(&report()), expected);
}

#[test]
fn times_iterations_and_ranks_are_shown_where_asked_for() {
    let mut report = report();
    report.shows = TableOptions { times: true, each_iteration: true, ..TableOptions::default() };
    report.rows.truncate(1);
    report.rows[0].iterations[0].rank_rates = vec![Some(100.0), Some(102.0)];
    report.rows[0].iterations[1].rank_rates = vec![Some(200.0), None];
    let text = text::render(&report);
    // 1 s and 0.5 s: 0.75 ± 0.25 · √2.
    let tables = "\
2 tasks, 200 files

   Operation               Duration              Rate
   ---------               --------              ----
iteration 1
   File creation     :          1.000 sec,        200.000 ops/sec
iteration 2
   File creation     :          0.500 sec,        400.000 ops/sec

SUMMARY time (in seconds): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                   1.000          0.500          0.750          0.354
-- finished at 11/20/2026 21:14:58 --
";
    assert!(text.contains(tables), "{text}");
    // 402 / 3.
    let ranks =
        "ranks (ops/s)    slowest  fastest  mean\n  File creation      100      200   134\n";
    assert!(text.contains(ranks), "{text}");
    assert!(!text.contains("SUMMARY rate"));
    assert!(!text.contains("caching"), "nothing looked at what was made");
    let large = FileSystem {
        size_bytes: 3 << 40,
        free_bytes: 3 << 39,
        inodes_count: 0,
        inodes_free_count: 0,
    };
    report.file_system = Some(large);
    let line =
        "FS                  : 3.0 TiB   Used FS: 50.0%   Inodes: 0.0 Mi   Used Inodes: –%\n";
    assert!(text::render(&report).contains(line));
}

#[test]
fn the_json_has_every_iteration() {
    let value = json::render(&report());
    assert_eq!(value["schema"], json!("plimsoll.mdtest/1"));
    assert_eq!(value["failed_count"], json!(210));
    assert_eq!(value["caching_excluded"], json!(false));
    assert_eq!(value["file_system"]["inodes_free_count"], json!(12 << 20));
    let stat = &value["rows"][1];
    assert_eq!(stat["name"], json!("file-stat"));
    assert_eq!(stat["shift"], json!(1));
    assert_eq!(stat["ops_per_sec"]["mean"], json!(1950.0));
    assert_eq!(stat["duration_seconds"]["max"], json!(0.1));
    let second = &stat["iterations"][1];
    assert_eq!(second["index"], json!(1));
    assert_eq!((&second["ops_ok_count"], &second["failed_count"]), (&json!(190), &json!(10)));
    assert_eq!(second["duration_ns"], json!(100_000_000));
    assert_eq!(second["ops_per_sec"], json!(1900.0));
    assert_eq!(second["first_done_ns"], json!(50_000_000));
    assert_eq!(second["latency_ns"]["samples_count"], json!(190));
    let percentiles = second["latency_ns"]["percentiles"].as_array().expect("it is a list");
    assert!(percentiles.contains(&json!([99.0, 1_000_000])), "{percentiles:?}");
    assert!(percentiles.contains(&json!([99.9, null])), "{percentiles:?}");
    let unknown = &value["rows"][2]["iterations"][1];
    assert_eq!((&unknown["duration_ns"], &unknown["ops_per_sec"]), (&json!(null), &json!(null)));
}

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&json::schema()).expect("it is JSON") + "\n";
    plimsoll_testkit::check_format("mdtest.schema.json", &current);
}

#[test]
fn a_report_has_the_lines_of_mdtests_output() {
    let mut report = report();
    report.shift = 0;
    report.entries = "20000 files/directories".to_owned();
    let labels = ["Directory", "File"].into_iter().flat_map(|of| {
        let steps = ["creation", "stat", if of == "File" { "read" } else { "rename" }, "removal"];
        steps.map(|step| format!("{of} {step}"))
    });
    let labels = labels.chain(["Tree creation".to_owned(), "Tree removal".to_owned()]);
    report.rows = labels.map(|label| row(&label, 0, vec![step(200, 0, 500)])).collect();
    let ours = text::render(&report);
    let (ours, _) = ours.split_once("\n\nlatency").unwrap();
    // Of MPI's nodes, and of a choice of mdtest's, there is a note here.
    let mdtest = OUTPUTS[4].lines().filter(|line| !line.starts_with(['W', 'N']));
    let mdtest: String = mdtest.map(|line| format!("{line}\n")).collect();
    let names = [
        "mdtest-4.1.0+dev",
        "plimsoll-1.2.3 as mdtest",
        "SCRATCH/build-ior/src/mdtest '-i' '1' '-n' '10000' '-u' '-d' '/dev/shm/fsb/mdt'",
        "mdtest '-F' '-n' '100' '-N' '1' '-d' '/mnt/a b'",
        "/dev/shm/fsb/mdt",
        "/mnt/a b",
    ];
    plimsoll_testkit::golden::assert_like(&mdtest, ours, &names);
}
