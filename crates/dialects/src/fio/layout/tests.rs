//! Our output beside fio's own for the same figures, and small figures worked out by hand.

use plimsoll_stats::Histogram;
use plimsoll_testkit::golden::assert_lines_of;

use super::figures::{Base, Shares, Side, Spread, group, short};
use super::samples::{Document, MIXED_JSON, ONLY_JSON, PAIR_JSON, PAIR_TEXT, TEXTS};
use super::*;

/// Splits a line into numbers and what stands between them.
fn parts(line: &str) -> Vec<&str> {
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let kind = number(first);
        let end = rest.find(|c| number(c) != kind).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

/// Tells whether two lines are the same, columns too, but for numbers that are `near`.
fn alike(fio: &str, ours: &str, near: impl Fn(f64, f64) -> bool) -> bool {
    let (fio_parts, our_parts) = (parts(fio), parts(ours));
    let same = |(a, b): (&&str, &&str)| match (a.parse(), b.parse()) {
        (Ok(x), Ok(y)) => a.len() == b.len() && a.find('.') == b.find('.') && near(x, y),
        _ => a == b,
    };
    fio_parts.len() == our_parts.len() && fio_parts.iter().zip(&our_parts).all(same)
}

/// Percentiles are as near as fio's bins are narrow.
fn near_percentile(fio: f64, ours: f64) -> bool {
    (fio - ours).abs() <= fio * 0.008 + 1.0
}

/// The samples' histograms have fio's wide bins, so that some of it falls beside its cell.
fn near_share(fio: f64, ours: f64) -> bool {
    (fio - ours).abs() <= 3.0
}

#[test]
fn the_text_is_that_of_fio() {
    let document = Document::parse(PAIR_JSON);
    let histograms = document.histograms();
    let mut run = document.run(&histograms);
    for (record, pid) in run.records.iter_mut().zip([5436, 5437]) {
        record.pid = pid;
    }
    let section = |name: &str, group, rw: &str, engine: &str, depth| FioSection {
        name: name.to_owned(),
        group,
        clones: 1,
        rw: rw.to_owned(),
        block_bytes: [(4096, 4096), (16_384, 16_384), (16_384, 16_384)],
        engine: engine.to_owned(),
        depth,
    };
    run.sections = vec![
        section("mix", 0, "randrw", "psync", 1),
        FioSection {
            block_bytes: [(4096, 16_384); 3],
            ..section("deep", 1, "randread", "libaio", 4)
        },
    ];
    // Syncs are not counted as depths of the queue.
    let fio = PAIR_TEXT.replace("1=106.2%", "1=100.0%");
    let fio = fio.lines().filter(|line| !line.contains("Laying out IO file"));
    let ours = normal(&run);
    let (fio, ours): (Vec<_>, Vec<_>) = (fio.collect(), ours.lines().collect());
    for (fio, ours) in fio.iter().zip(&ours) {
        let same = if fio.starts_with("     |") {
            alike(fio, ours, near_percentile)
        } else if fio.starts_with("  lat (") {
            alike(fio, ours, near_share)
        } else {
            // What is made from printed decimals is off by less than one of them.
            alike(fio, ours, |x, y| (x - y).abs() < 0.011)
        };
        assert!(same, "\nfio:  {fio}\nours: {ours}");
    }
    assert_eq!(fio.len(), ours.len());
}

#[test]
fn each_line_of_the_text_is_one_of_fios() {
    let fio = TEXTS.map(str::to_owned);
    for json in [MIXED_JSON, ONLY_JSON] {
        let document = Document::parse(json);
        let histograms = document.histograms();
        let section = FioSection {
            name: "mix".to_owned(),
            group: 0,
            clones: 2,
            rw: "randrw".to_owned(),
            block_bytes: [(4096, 16_384); 3],
            engine: "psync".to_owned(),
            depth: 1,
        };
        let run = FioRun { sections: vec![section], ..document.run(&histograms) };
        let rows: Vec<&str> = run.records.iter().map(|record| &*record.name).collect();
        let ours = normal(&run);
        assert!(ours.contains("\n...\n") && ours.contains("\nStarting 2 threads\n"), "{ours}");
        // How many cells there are in one follows from the figures.
        let lines = ours.lines().filter(|line| !line.starts_with("  lat ("));
        let ours: String = lines.map(|line| format!("{line}\n")).collect();
        assert_lines_of(&fio, &ours, &[&rows[..], &["rw70", "mix"]].concat());
    }
}

#[test]
fn how_many_operations_a_call_took_may_be_unknown() {
    let document = Document::parse(PAIR_JSON);
    let histograms = document.histograms();
    let mut run = document.run(&histograms);
    let known = normal(&run);
    for record in &mut run.records {
        (record.depths.submit, record.depths.complete) = (None, None);
    }
    let is_unknown = |line: &&str| line.starts_with("     submit") || line.contains(" complete ");
    assert_eq!(known.lines().filter(is_unknown).count(), 2 * run.records.len());
    let rest: Vec<&str> = known.lines().filter(|line| !is_unknown(line)).collect();
    assert_eq!(normal(&run).lines().collect::<Vec<_>>(), rest);
}

/// Returns a text as it is, and of a number where its point and its minus are and the decimals.
fn shape(value: &str) -> String {
    let value = value.trim_end_matches(',');
    match value.split_once('.') {
        _ if value.starts_with('"') => value.to_owned(),
        Some((_, decimals)) => format!(".{}", decimals.len()),
        None => value.replace(|c: char| c.is_ascii_digit(), ""),
    }
}

/// Checks our document line by line against fio's: names, order, indents, kinds of numbers, and
/// the numbers themselves where `exact`.
fn check_json(fio: &str, plus: bool, exact: bool) {
    let document = Document::parse(fio);
    let histograms = document.histograms();
    let run = document.run(&histograms);
    let ours = if plus { json_plus(&run) } else { json(&run) };
    check_lines(fio, &ours, exact);
}

/// Checks one document against another as [`check_json`] does.
pub(super) fn check_lines(fio: &str, ours: &str, exact: bool) {
    let without_disks = |text: &str| match text.find(",\n  \"disk_util\"") {
        Some(end) => format!("{}\n}}\n", &text[..end]),
        None => text.to_owned(),
    };
    let (fio, ours) = (without_disks(fio), without_disks(ours));
    assert_eq!(fio.lines().count(), ours.lines().count());
    let mut place = "";
    for (fio, ours) in fio.lines().zip(ours.lines()) {
        let (Some((name, value)), Some((our_name, our_value))) =
            (fio.split_once(" : "), ours.split_once(" : "))
        else {
            assert_eq!(fio, ours, "in {place}");
            continue;
        };
        if value == "{" {
            place = name.trim();
        }
        let place = place.trim_matches('"');
        if place == "bins" && value != "{" {
            // Bins are named by their lower end, fio's by their middle.
            assert_eq!(value, our_value, "{name} and {our_name}");
            continue;
        }
        assert_eq!(name, our_name, "in {place}");
        assert_eq!(shape(value), shape(our_value), "{name} in {place}");
        assert_eq!(value.ends_with(','), our_value.ends_with(','), "{name} in {place}");
        let number = |value: &str| value.trim_end_matches(',').parse::<f64>().ok();
        // As told in the module's words: eta, shares of depths; and cells for the samples' bins.
        let apart = name.trim() == "\"eta\"" || place == "iodepth_level";
        if let (true, Some(x), Some(y)) = (exact && !apart, number(value), number(our_value)) {
            let same = match place {
                "percentile" => near_percentile(x, y),
                place if place.starts_with("latency_") => near_share(x, y),
                _ => (x - y).abs() <= x * 1e-6 + 1e-5,
            };
            assert!(same, "{name} in {place}: {x} and {y}");
        }
    }
}

#[test]
fn the_json_is_that_of_fio() {
    check_json(PAIR_JSON, true, true);
    check_json(ONLY_JSON, true, true);
    check_json(MIXED_JSON, false, false);
}

#[test]
fn a_strict_reader_takes_both() {
    for sample in [PAIR_JSON, ONLY_JSON, MIXED_JSON] {
        let fio = Document::parse(sample);
        let histograms = fio.histograms();
        let run = fio.run(&histograms);
        for ours in [json(&run), json_plus(&run)].map(|text| Document::parse(&text)) {
            assert_eq!((ours.timestamp, ours.jobs.len()), (fio.timestamp, fio.jobs.len()));
            for (fio, ours) in fio.jobs.iter().zip(&ours.jobs) {
                let moved = |job: &super::samples::Job| {
                    [&job.read, &job.write, &job.trim].map(|side| {
                        let whole = [side.io_kbytes, side.bw_bytes, side.bw, side.total_ios];
                        (whole, (side.iops * 1e6).round() as u64)
                    })
                };
                assert_eq!(moved(fio), moved(ours));
                for side in [&ours.read, &ours.write] {
                    assert!((0.0..=100.0).contains(&side.bw_agg));
                    assert!(side.bw_dev >= 0.0 && side.iops_stddev >= 0.0);
                }
                assert_eq!(fio.sync.total_ios, ours.sync.total_ios);
                let target = (ours.latency_target, ours.latency_window, ours.first_error);
                assert_eq!((target, ours.latency_percentile), ((0, 0, 0), 100.0));
                let cells = [&ours.latency_ns, &ours.latency_us, &ours.latency_ms];
                let shares: f64 = cells.iter().flat_map(|all| &all.0).map(|(_, share)| share).sum();
                assert!((shares - 100.0).abs() < 1e-3, "{shares}");
            }
        }
    }
}

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

fn one_record<'a>(read: FioDirection<'a>) -> FioRun<'a> {
    let record = FioRecord {
        name: "a".to_owned(),
        whose: FioWhose::Alone,
        group: 0,
        clones: 1,
        description: None,
        options: vec![],
        pid: 7,
        error: 0,
        errors_count: 0,
        elapsed_s: 2,
        job_runtime_ms: 2_000,
        read,
        write: FioDirection::default(),
        sync: None,
        cpu: FioCpu::default(),
        depth: 1,
        depths: FioDepths { level: Some([3, 1, 0, 0, 0, 0, 0]), ..FioDepths::default() },
        percentiles: vec![99.0, 50.0],
        percentiles_of: FioPercentilesOf::default(),
    };
    FioRun {
        version: "plimsoll-0.0.0".to_owned(),
        timestamp_ms: 1_795_209_896_039,
        time: "Fri Nov 20 21:24:56 2026".to_owned(),
        global_options: vec![],
        sections: vec![],
        clients: &[],
        records: vec![record],
    }
}

#[test]
fn figures_of_five_reads() {
    let clat = of(&[1_500, 2_000, 2_000, 300_000, 5_000_000]);
    let run = one_record(FioDirection {
        bytes: 5 * 4096,
        runtime_ms: 2_000,
        ops: 5,
        clat: Some(Cow::Borrowed(&clat)),
        lat: Some(Cow::Borrowed(&clat)),
        bw_kib_per_sec: vec![4.0, 16.0],
        iops: vec![1.0, 4.0],
        ..FioDirection::default()
    });
    let shares = Shares::of(&run.records[0]);
    assert_eq!(shares.us, [20.0, 40.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0]);
    assert_eq!((shares.ns.iter().sum::<f64>(), shares.ms[2]), (0.0, 20.0));
    let text = normal(&run);
    // The mean is 5,305,500 / 5; the squares of the deviations add up to 19,460,344,200,000.
    for line in [
        "a: (groupid=0, jobs=1): err= 0: pid=7: Fri Nov 20 21:24:56 2026",
        "  read: IOPS=2, BW=10.0KiB/s (10.2kB/s)(20.0KiB/2000msec)",
        "    clat (nsec): min=1500, max=5000.0k, avg=1061100.00, stdev=2205694.01",
        "     |  50th=[   2000],  99th=[5000000]",
        "   bw (  KiB/s): min=    4, max=   16, per=100.00%, avg=10.00, stdev= 8.49, samples=2",
        "   iops        : min=    1, max=    4, avg= 2.50, stdev= 2.12, samples=2",
        "  lat (usec)   : 2=20.00%, 4=40.00%, 500=20.00%",
        "  lat (msec)   : 10=20.00%",
        "  IO depths    : 1=75.0%, 2=25.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%",
        "     issued rwts: total=5,0,0,0 short=0,0,0,0 dropped=0,0,0,0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(!text.contains("write") && !text.contains("slat"));
}

#[test]
fn failures_are_told() {
    let mut run = one_record(FioDirection::default());
    (run.records[0].error, run.records[0].errors_count) = (5, 3);
    let text = normal(&run);
    assert!(text.contains("a: (groupid=0, jobs=1): err= 5 (error=Input/output error): pid=7: "));
    let errors = ", depth=1\n     errors    : total=3, first_error=5/<Input/output error>\n";
    assert!(text.contains(errors), "{text}");
    let document = Document::parse(&json(&run));
    let job = &document.jobs[0];
    assert_eq!((job.error, job.total_err, job.first_error), (5, 3, 5));
    assert!(document.global_options.is_none());
}

#[test]
fn options_are_escaped_and_stand_there_once() {
    let mut run = one_record(FioDirection::default());
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    run.global_options =
        vec![option("bs", "4k"), option("directory", "a\"b\\"), option("bs", "8k")];
    let document = Document::parse(&json(&run));
    let options = document.global_options.unwrap().0;
    assert_eq!(options, [option("bs", "8k"), option("directory", "a\"b\\")]);
}

#[test]
fn short_numbers_are_those_of_fio() {
    // Each from one of its reports.
    for (value, width, binary, decimal) in [
        (0, 4, "0", "0"),
        (4096, 4, "4096", "4096"),
        (16_384, 4, "16.0Ki", "16.4k"),
        (5_820_416, 4, "5684Ki", "5820k"),
        (2_910_208_000, 4, "2775Mi", "2910M"),
        (1_048_576_000, 4, "1000Mi", "1049M"),
        (1_000_763_392, 4, "954Mi", "1001M"),
        (18_039_701_504, 4, "16.8Gi", "18.0G"),
        (10_690_232_320, 4, "9.96Gi", "10.7G"),
    ] {
        assert_eq!(short(value, width, Base::Binary), binary);
        assert_eq!(short(value, width, Base::Decimal), decimal);
    }
    for (value, text) in [
        (123_290, "123290"),
        (5_653_412, "5653.4k"),
        (1_616_000, "1616.0k"),
        (15_712_345, "15712k"),
        (371_429_000, "371429k"),
    ] {
        assert_eq!(short(value, 6, Base::Decimal), text);
    }
    for (value, text) in [(7_185, "7185"), (9_999, "9999"), (99_960, "100k"), (9_999_600, "10.0M")]
    {
        assert_eq!(short(value, 4, Base::Decimal), text);
    }
}

#[test]
fn a_group_takes_its_longest_row_and_bounds_of_windows_are_real() {
    let row = |bytes, runtime_ms| FioDirection { bytes, runtime_ms, ops: 1, ..Default::default() };
    let mut run = one_record(row(4_000, 2_000));
    let other = one_record(row(1_000, 1_000));
    run.records.extend(other.records);
    let figures = group(&run, &run.records[0], Side::Read).unwrap();
    // 5,000 bytes in the longer 2 s.
    assert_eq!((figures.bytes_per_sec, figures.slowest, figures.fastest), (2_500, 1_000, 2_000));
    assert_eq!((figures.shortest_ms, figures.longest_ms), (1_000, 2_000));
    assert_eq!(group(&run, &run.records[0], Side::Write), None);
    let spread = Spread::of(&[1.0, 3.0, 5.0]);
    assert_eq!((spread.min, spread.max, spread.mean, spread.deviation), (1.0, 5.0, 3.0, 2.0));
    assert_eq!(Spread::of(&[]), Spread::default());
}
