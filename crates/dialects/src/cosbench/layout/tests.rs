//! Real archives, file by file, out of the numbers that stand in them.

use super::*;
use crate::cosbench::read;

macro_rules! archived {
    ($file:literal) => {
        include_str!(concat!("../../../testdata/cosbench/archive/", $file))
    };
}

/// Returns a number of a table; `N/A` is none.
fn number(text: &str) -> Option<f64> {
    // What is written as 0 is less than half of the last digit, but there.
    (text != "N/A").then(|| text.parse::<f64>().unwrap().max(1e-9))
}

/// Returns a count of samples of which so many percent are these successes.
fn samples(ops: u64, ratio: &str) -> u64 {
    match ratio.strip_suffix('%') {
        Some(percent) => (ops as f64 * 100.0 / percent.parse::<f64>().unwrap()).round() as u64,
        None => ops,
    }
}

/// Returns counts of which so many percent take no longer than these times.
fn latencies(times: &[&str]) -> Option<BTreeMap<u32, u64>> {
    let mut counts = BTreeMap::new();
    for (time, count) in times.iter().zip([60, 20, 10, 5, 4, 1]) {
        let ms: u32 = time.parse().ok()?;
        *counts.entry(ms / 10 - 1).or_default() += count;
    }
    Some(counts)
}

fn state_at(text: &str) -> StateAt {
    let (state, at) = text.split_once(" @ ").unwrap();
    StateAt { state: state.to_owned(), at: at.to_owned() }
}

fn figures(counts: &[&str], times: &[&str], rates: &[&str]) -> Figures {
    let ops = counts[0].parse().unwrap();
    Figures {
        ops,
        samples: samples(ops, rates[2]),
        bytes: counts[1].parse().unwrap(),
        response_ms: number(times[0]),
        processing_ms: number(times[1]),
        throughput: number(rates[0]).unwrap(),
        bandwidth: number(rates[1]).unwrap(),
    }
}

/// Returns the stages of a summary.
fn stages(summary: &str) -> Vec<ArchivedStage> {
    let mut stages: Vec<ArchivedStage> = Vec::new();
    for line in summary.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if stages.last().is_none_or(|stage| stage.id != cells[0]) {
            stages.push(ArchivedStage {
                id: cells[0].to_owned(),
                name: cells[0].split_once('-').map_or(cells[0], |(_, name)| name).to_owned(),
                states: cells[17..].iter().map(|state| state_at(state)).collect(),
                ..ArchivedStage::default()
            });
        }
        if cells[1] != "N/A" {
            let (op_name, sample_type) = cells[1].rsplit_once('-').unwrap_or((cells[1], cells[1]));
            stages.last_mut().unwrap().metrics.push(Metric {
                work: 1,
                work_name: "main".to_owned(),
                op_name: op_name.to_owned(),
                sample_type: sample_type.to_owned(),
                op_type: cells[2].to_owned(),
                figures: figures(&cells[3..5], &cells[5..7], &cells[13..16]),
                latencies: latencies(&cells[7..13]),
                ..Metric::default()
            });
        }
    }
    stages
}

/// Returns the counts of one column of a histogram.
fn column_of(histogram: &str, column: usize) -> BTreeMap<u32, u64> {
    let counts = histogram.lines().skip(1).enumerate().map(|(bucket, line)| {
        (bucket as u32, line.split(',').nth(column).unwrap().parse().unwrap())
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn summaries_are_those_of_the_archives() {
    for summary in [
        archived!("w1-demo/w1-demo.csv"),
        archived!("w3-s3-sample/w3-s3-sample.csv"),
        archived!("w28-r-drv4/w28-r-drv4.csv"),
        archived!("w29-r-errors/w29-r-errors.csv"),
    ] {
        let archive = Archive { stages: stages(summary), ..Archive::default() };
        assert_eq!(summary_csv(&archive), summary);
    }
}

#[test]
fn percentiles_and_histograms_are_those_of_the_counts() {
    let whole = archived!("w1-demo/w1-demo-rt-histogram.csv");
    let summary = archived!("w1-demo/w1-demo.csv");
    let mut stages = stages(summary);
    for (metric, column) in stages[2].metrics.iter_mut().zip([1, 3]) {
        metric.latencies = Some(column_of(whole, column));
        // All of the successes are in the rows that were kept.
        let sum: u64 = metric.latencies.iter().flatten().map(|(_, count)| count).sum();
        assert_eq!(sum, metric.figures.ops);
    }
    let archive = Archive { stages, ..Archive::default() };
    assert_eq!(summary_csv(&archive), summary);
    let text = histogram_csv(&archive);
    assert!(text.starts_with(whole), "{}", &text[..2_000]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 50_002);
    assert_eq!(lines[50_000..], ["499990~500000,0,100%,0,100%", "500000~+INF,0,100%,0,100%"]);

    let none = histogram_csv(&Archive::default());
    assert!(none.starts_with(archived!("w28-r-drv4/w28-r-drv4-rt-histogram.csv")));
}

#[test]
fn a_percentile_of_few_is_one_of_them() {
    let counts = BTreeMap::from([(4, 1)]);
    assert_eq!(
        [60, 80, 99, 100].map(|percent| histogram::percentile(&counts, percent)),
        [Some(50); 4]
    );
    let counts = BTreeMap::from([(0, 2), (1, 1), (LAST_BUCKET, 1)]);
    let at = |percent| histogram::percentile(&counts, percent).unwrap();
    assert_eq!([at(50), at(60), at(75), at(100)], [10, 20, 20, 500_010]);
    assert_eq!(histogram::percentile(&BTreeMap::new(), 60), None);
}

#[test]
fn distributions_fall_into_buckets() {
    let mut times = plimsoll_stats::Histogram::new();
    for ms in [0, 9, 10, 11, 25, 600_000, 900_000] {
        times.record(ms * 1_000_000 + 500_000);
    }
    let counts: Vec<(u32, u64)> = histogram::buckets(&times).into_iter().collect();
    assert_eq!(counts, [(0, 2), (1, 2), (2, 1), (50_000, 2)]);
}

/// Checks that a time line comes to the same bytes again.
#[track_caller]
fn check_time_line(text: &str) {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.nth(1).unwrap().split(',').skip(1).collect();
    let count = (names.len() - 3) / 7;
    let metric = |shown: &&str| {
        let (op_name, sample_type) = shown.rsplit_once('-').unwrap_or((shown, shown));
        let (op_name, sample_type) = (op_name.to_owned(), sample_type.to_owned());
        Metric { op_name, sample_type, ..Metric::default() }
    };
    let snapshots = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let at = |group: usize, op: usize| cells[1 + group * count + op];
        let of = |op| {
            let all: Vec<&str> = (0..7).map(|group| at(group, op)).collect();
            figures(&all[0..2], &all[2..4], &all[4..7])
        };
        let version = cells.last().unwrap().parse().unwrap();
        Snapshot { time: cells[0].to_owned(), figures: (0..count).map(of).collect(), version }
    });
    let stage = ArchivedStage {
        metrics: names[..count].iter().map(metric).collect(),
        snapshots: snapshots.collect(),
        ..ArchivedStage::default()
    };
    assert_eq!(stage_csv(&stage), text);
}

#[test]
fn time_lines_are_those_of_the_archives() {
    check_time_line(archived!("w1-demo/s1-init.csv"));
    check_time_line(archived!("w1-demo/s2-prepare.csv"));
    check_time_line(archived!("w1-demo/s3-main.csv"));
    check_time_line(archived!("w1-demo/s4-cleanup.csv"));
    check_time_line(archived!("w1-demo/s5-dispose.csv"));
    check_time_line(archived!("w3-s3-sample/s3-main.csv"));
    check_time_line(archived!("w29-r-errors/s1-main.csv"));
    assert_eq!(stage_csv(&ArchivedStage::default()), archived!("w28-r-drv4/s1-main.csv"));
}

#[test]
fn the_history_of_workloads_is_that_of_the_archives() {
    let text = archived!("run-history.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HISTORY_HEADER));
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let given = |cell: &str| (!cell.is_empty()).then(|| cell.to_owned());
        let archive = Archive {
            id: cells[0].to_owned(),
            name: cells[1].to_owned(),
            submitted: cells[2].to_owned(),
            started: given(cells[3]),
            stopped: given(cells[4]),
            op_info: cells[5].split(' ').map(str::to_owned).collect(),
            states: cells[7..].iter().map(|state| state_at(state)).collect(),
            stages: Vec::new(),
        };
        assert_eq!(history_row(&archive), format!("{line}\n"));
    }
}

#[test]
fn the_table_of_all_operations_is_that_of_the_archives() {
    let text = archived!("workloads.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(WORKLOADS_HEADER));
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let (rest, number) = cells[0].rsplit_once('-').unwrap();
        let (id, stage) = rest.split_once('-').unwrap();
        let (op_name, sample_type) = cells[1].rsplit_once('-').unwrap_or((cells[1], cells[1]));
        let (ratio, config) = cells[16].split_once("% ").unwrap();
        let metric = Metric {
            op_name: op_name.to_owned(),
            sample_type: sample_type.to_owned(),
            workers: cells[4].parse().unwrap(),
            figures: figures(&cells[2..4], &cells[5..7], &cells[13..16]),
            latencies: latencies(&cells[7..13]),
            ratio: ratio.parse().unwrap(),
            // Where there is a blank or a dash there was a semicolon or a comma.
            config: config.replace(' ', ";").replace('-', ","),
            ..Metric::default()
        };
        let before = vec![Metric::default(); number.parse::<usize>().unwrap() - 1];
        let stage = ArchivedStage {
            id: stage.to_owned(),
            metrics: before.into_iter().chain([metric]).collect(),
            ..ArchivedStage::default()
        };
        let archive = Archive { id: id.to_owned(), stages: vec![stage], ..Archive::default() };
        assert_eq!(workloads_rows(&archive).lines().last(), Some(line));
    }
}

/// Checks that a workload is saved as COSBench saves it.
#[track_caller]
fn check_config(submitted: &str, saved: &str) {
    let workload = read(submitted.as_bytes()).unwrap();
    let hidden = saved.replace("cosadmin", "***").replace("cossecret1", "***");
    assert_eq!(config_xml(&workload), hidden);
}

#[test]
fn workloads_are_saved_as_in_the_archives() {
    let demo = include_str!("../../../testdata/cosbench/xml/workload-config.xml");
    let demo = demo.replace("runtime=\"300\"", "rampup=\"5\" runtime=\"30\"");
    check_config(&demo, archived!("w1-demo/workload-config.xml"));
    let seed = include_str!("../../../testdata/cosbench/xml/seed-alluxio-1.xml");
    let seed = seed.replace("root;", "cosadmin;").replace("=dump;", "=cossecret1;");
    let seed = seed.replace("localhost:29998", "127.0.0.1:9310");
    check_config(&seed, archived!("w3-s3-sample/workload-config.xml"));
    let works: String = (1..=4)
        .map(|number| {
            format!(
                "<work name='read' workers='4' runtime='4' driver='driver{number}'><operation \
                 type='read' config='containers=u(1,2);objects=u(1,10)'/></work>"
            )
        })
        .collect();
    let drivers = format!(
        "<workload name='r-drv4' description='probe'><storage type='mock'/><workflow>\
         <workstage name='main'>{works}</workstage></workflow></workload>"
    );
    check_config(&drivers, archived!("w28-r-drv4/workload-config.xml"));
    let errors = "<workload name='r-errors' description='probe'>\
        <storage type='mock' config='errors=0.1'/><workflow><workstage name='main'>\
        <work name='m' workers='2' runtime='4'><operation type='read' \
        config='containers=u(1,2);objects=u(1,10)'/></work></workstage></workflow></workload>";
    check_config(errors, archived!("w29-r-errors/workload-config.xml"));
    // What is saved means the same again.
    let saved = config_xml(&read(demo.as_bytes()).unwrap());
    let again = read(saved.as_bytes()).unwrap();
    assert_eq!(again.stages.len(), 5);
    assert_eq!((again.stages[2].works[0].rampup_s, again.stages[2].works[0].runtime_s), (5, 30));
}

#[test]
fn logs_have_banners() {
    let archive =
        Archive { stages: stages(archived!("w1-demo/w1-demo.csv")), ..Archive::default() };
    assert_eq!(scripts_log(&archive), archived!("w1-demo/scripts.log"));
    let line = LogLine {
        stage: "s3-main".to_owned(),
        driver: "driver1".to_owned(),
        at: "2026-11-20 20:55:38,001".to_owned(),
        level: "WARN".to_owned(),
        of: "run".to_owned(),
        text: "one\nline".to_owned(),
    };
    let log = workload_log(&archive, &[line]);
    let stages = "=".repeat(50);
    let missions = "-".repeat(34);
    assert!(log.starts_with(&format!("{stages} stage: s1-init {stages}\n")), "{log}");
    let expected = format!(
        "{stages} stage: s3-main {stages}\n{missions} mission: s3-main, driver: driver1 \
         {missions}\n2026-11-20 20:55:38,001 [WARN] [run] - one line\n{stages} stage: s4-cleanup"
    );
    assert!(log.contains(&expected), "{log}");
}

#[test]
fn numbers_have_two_digits_behind_the_point_at_most() {
    for (value, text) in [
        (0.0, "0"),
        (0.004, "0"),
        (0.125, "0.12"),
        (0.375, "0.38"),
        (11.0, "11"),
        (10.5, "10.5"),
        (1e12, "1000000000000"),
        (-0.001, "0"),
        (f64::NAN, "N/A"),
    ] {
        assert_eq!(number::number(value), text);
    }
    assert_eq!(
        [number::ratio(0, 0), number::ratio(0, 9), number::ratio(2, 3), number::ratio(9, 9)],
        ["N/A", "0%", "66.67%", "100%"]
    );
}

#[test]
fn names_break_neither_lines_nor_columns_nor_directories() {
    let metric =
        Metric { op_name: "a,b\nc".to_owned(), sample_type: "x".to_owned(), ..Metric::default() };
    let stage = ArchivedStage {
        id: "s1-../x,y".to_owned(),
        metrics: vec![metric],
        ..ArchivedStage::default()
    };
    let archive = Archive {
        id: "w1".to_owned(),
        name: "../e,t".to_owned(),
        stages: vec![stage],
        ..Archive::default()
    };
    assert_eq!(archive.directory(), "w1-..-e,t");
    assert!(summary_csv(&archive).contains("\ns1-../x-y,a-b-c-x,"));
    let files = files(&archive, String::new(), &[]);
    assert!(files.iter().all(|file| !file.name.contains('/')));
    assert_eq!(meta("w44"), "44");
    // What a spreadsheet takes for a formula.
    let archive = Archive { name: "=HYPERLINK(\"http://x\")".to_owned(), ..archive };
    assert!(history_row(&archive).starts_with("w1,'=HYPERLINK("));
}

#[test]
fn the_summary_table_has_the_units_of_the_pages() {
    let archive =
        Archive { stages: stages(archived!("w1-demo/w1-demo.csv")), ..Archive::default() };
    let table = summary_table(&archive);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let of_reads = table.lines().filter(|line| line.contains("s3-main") && line.contains(" read "));
    let cells = |row: &'_ str| -> Vec<String> {
        let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    let rows: Vec<Vec<String>> = of_reads.map(cells).collect();
    assert_eq!(rows[0], ["s3-main", "read", "17.63 kops", "1.13 GB", "100%", "completed"]);
    assert_eq!(rows[1], ["s3-main", "read", "10.56 ms", "10.56 ms", "587.89 op/s", "37.62 MB/S"]);
    assert_eq!(rows.len(), 2);
    // Containers are made without operations, which have no speed.
    assert_eq!(table.lines().filter(|line| line.contains("init-write")).count(), 1);
}
