//! fio's JSON and JSON+: the same names in the same order, times in ns, six decimals.

use std::fmt::Write;

use plimsoll_stats::Histogram;

use super::figures::{self, BATCHES, CELLS, LEVELS, Shares, Side, Spread, Times};
use super::{FioDirection, FioRecord, FioRun, FioWhose};

/// Returns the document.
pub fn json(run: &FioRun<'_>) -> String {
    document(run, false)
}

/// Returns the document with all bins of the histograms that percentiles are printed of.
pub fn json_plus(run: &FioRun<'_>) -> String {
    document(run, true)
}

/// A value as fio prints it.
enum Value {
    Whole(u64),
    Fraction(f64),
    Text(String),
    Fields(Vec<(String, Value)>),
    Items(Vec<Value>),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Fraction(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// Returns fields in the order given.
fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Vec<(String, Value)> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn document(run: &FioRun<'_>, bins: bool) -> String {
    let mut top = fields([
        ("fio version", run.version.as_str().into()),
        ("timestamp", (run.timestamp_ms / 1000).into()),
    ]);
    let has_clients = !run.clients.is_empty();
    if !has_clients {
        top.push(("timestamp_ms".to_owned(), run.timestamp_ms.into()));
    }
    top.push(("time".to_owned(), run.time.as_str().into()));
    // As in fio: without a global section there is no such field.
    if !run.global_options.is_empty() {
        top.push(("global options".to_owned(), options(&run.global_options)));
    }
    let jobs = run.records.iter().map(|record| job(run, record, bins)).collect();
    let name = if has_clients { "client_stats" } else { "jobs" };
    top.push((name.to_owned(), Value::Items(jobs)));
    if has_clients {
        top.push(("disk_util".to_owned(), Value::Items(Vec::new())));
    }
    let mut text = String::new();
    print(&mut text, &Value::Fields(top), 0);
    text.push('\n');
    text
}

/// Returns options as fields; of one given twice the last one, as names are there once.
fn options(written: &[(String, String)]) -> Value {
    let mut kept: Vec<(String, Value)> = Vec::with_capacity(written.len());
    for (name, value) in written {
        match kept.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value.as_str().into(),
            None => kept.push((name.clone(), value.as_str().into())),
        }
    }
    Value::Fields(kept)
}

fn job(run: &FioRun<'_>, record: &FioRecord<'_>, bins: bool) -> Value {
    let shares = Shares::of(record);
    let unused = FioDirection::default();
    let error = u64::from(record.error.unsigned_abs());
    let mut job = fields([
        ("jobname", record.name.as_str().into()),
        ("groupid", record.group.into()),
        ("error", error.into()),
    ]);
    if record.whose == FioWhose::Alone {
        job.extend(fields([("eta", 0_u64.into()), ("elapsed", record.elapsed_s.into())]));
    }
    if record.whose != FioWhose::All {
        job.push(("job options".to_owned(), options(&record.options)));
    }
    job.extend(fields([
        ("read", direction(run, record, Some(Side::Read), &record.read, bins)),
        ("write", direction(run, record, Some(Side::Write), &record.write, bins)),
        ("trim", direction(run, record, None, &unused, bins)),
        ("sync", sync(record, bins)),
        ("job_runtime", record.job_runtime_ms.into()),
        ("usr_cpu", record.cpu.user_percent.into()),
        ("sys_cpu", record.cpu.system_percent.into()),
        ("ctx", record.cpu.context_switches.into()),
        ("majf", record.cpu.major_faults.into()),
        ("minf", record.cpu.minor_faults.into()),
    ]));
    for (name, names, counts) in [
        ("iodepth_level", LEVELS, &record.depths.level),
        ("iodepth_submit", BATCHES, &record.depths.submit),
        ("iodepth_complete", BATCHES, &record.depths.complete),
    ] {
        job.extend(counts.iter().map(|counts| (name.to_owned(), named(names, counts))));
    }
    job.extend(fields([
        ("latency_ns", cells(&shares.ns)),
        ("latency_us", cells(&shares.us)),
        ("latency_ms", cells(&shares.ms)),
    ]));
    if record.depth > 0 {
        job.extend(fields([
            ("latency_depth", record.depth.into()),
            ("latency_target", 0_u64.into()),
            ("latency_percentile", 100.0.into()),
            ("latency_window", 0_u64.into()),
        ]));
    }
    if record.errors_count > 0 {
        job.extend(fields([
            ("total_err", record.errors_count.into()),
            ("first_error", error.into()),
        ]));
    }
    if let Some(description) = &record.description {
        job.push(("desc".to_owned(), description.as_str().into()));
    }
    if let Some((name, port)) = host(run, record) {
        job.extend(fields([("hostname", name.as_str().into()), ("port", port.into())]));
    }
    Value::Fields(job)
}

/// Returns the name and the port of whose row it is, where clients ran the jobs.
fn host(run: &FioRun<'_>, record: &FioRecord<'_>) -> Option<(String, u32)> {
    match record.whose {
        FioWhose::Alone => None,
        FioWhose::Client(number) => {
            run.clients.get(number).map(|client| (client.name.clone(), u32::from(client.port)))
        }
        FioWhose::All => {
            let names: Vec<&str> = run.clients.iter().map(|client| client.name.as_str()).collect();
            Some((names.join(","), 0))
        }
    }
}

/// Returns shares under their names.
fn named(names: [&str; 7], counts: &[u64; 7]) -> Value {
    let shares = figures::percents(counts);
    let pairs = names.into_iter().zip(shares);
    Value::Fields(pairs.map(|(name, share)| (name.to_owned(), share.into())).collect())
}

/// Returns the shares of the cells of one unit.
fn cells(shares: &[f64]) -> Value {
    let names = CELLS.iter().map(u64::to_string).chain(["2000".to_owned(), ">=2000".to_owned()]);
    Value::Fields(names.zip(shares).map(|(name, &share)| (name, share.into())).collect())
}

fn direction(
    run: &FioRun<'_>,
    record: &FioRecord<'_>,
    side: Option<Side>,
    moved: &FioDirection<'_>,
    bins: bool,
) -> Value {
    let bytes_per_sec = moved.bytes_per_sec();
    let bw = Spread::of(&moved.bw_kib_per_sec);
    let iops = Spread::of(&moved.iops);
    let group = side.and_then(|side| figures::group(run, record, side));
    let of = record.percentiles_of;
    let times = |histogram, percentiles| {
        Value::Fields(times(histogram, percentiles, &record.percentiles, bins))
    };
    Value::Fields(fields([
        ("io_bytes", moved.bytes.into()),
        ("io_kbytes", (moved.bytes / 1024).into()),
        ("bw_bytes", bytes_per_sec.into()),
        ("bw", (bytes_per_sec / 1024).into()),
        ("iops", moved.ops_per_sec().into()),
        ("runtime", moved.runtime_ms.into()),
        ("total_ios", moved.ops.into()),
        ("short_ios", moved.short_ops.into()),
        ("drop_ios", moved.dropped_ops.into()),
        ("slat_ns", times(moved.slat.as_deref(), of.slat)),
        ("clat_ns", times(moved.clat.as_deref(), of.clat)),
        ("lat_ns", times(moved.lat.as_deref(), of.lat)),
        ("bw_min", (bw.min.round() as u64).into()),
        ("bw_max", (bw.max.round() as u64).into()),
        ("bw_agg", bw.share_of(group).into()),
        ("bw_mean", bw.mean.into()),
        ("bw_dev", bw.deviation.into()),
        ("bw_samples", (bw.count as u64).into()),
        ("iops_min", (iops.min.round() as u64).into()),
        ("iops_max", (iops.max.round() as u64).into()),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation.into()),
        ("iops_samples", (iops.count as u64).into()),
    ]))
}

/// Returns the figures of syncs, whose percentiles are always there, as in fio.
fn sync(record: &FioRecord<'_>, bins: bool) -> Value {
    let ops = record.sync.map_or(0, Histogram::count);
    let times = times(record.sync, true, &record.percentiles, bins);
    Value::Fields(fields([("total_ios", ops.into()), ("lat_ns", Value::Fields(times))]))
}

fn times(
    histogram: Option<&Histogram>,
    percentiles: bool,
    wanted: &[f64],
    bins: bool,
) -> Vec<(String, Value)> {
    let figures = Times::of(histogram);
    let mut times = fields([
        ("min", figures.min.into()),
        ("max", figures.max.into()),
        ("mean", figures.mean.into()),
        ("stddev", figures.deviation.into()),
        ("N", figures.count.into()),
    ]);
    let Some(histogram) = histogram.filter(|histogram| percentiles && !histogram.is_empty()) else {
        return times;
    };
    let values = figures::percentiles(Some(histogram), wanted).into_iter();
    let values = values.map(|(percent, ns)| (format!("{percent:.6}"), ns.into())).collect();
    times.push(("percentile".to_owned(), Value::Fields(values)));
    if bins {
        let bins = histogram.bins().map(|bin| (bin.lowest.to_string(), bin.count.into()));
        times.push(("bins".to_owned(), Value::Fields(bins.collect())));
    }
    times
}

/// Appends a value with the indents, blanks and decimals of fio.
fn print(text: &mut String, value: &Value, depth: usize) {
    match value {
        // Writing to a String cannot fail.
        Value::Whole(whole) => {
            let _ = write!(text, "{whole}");
        }
        Value::Fraction(fraction) => {
            let finite = if fraction.is_finite() { *fraction } else { 0.0 };
            let _ = write!(text, "{finite:.6}");
        }
        Value::Text(words) => quote(text, words),
        Value::Fields(fields) => enclosed(text, "{}", fields, depth, |text, (name, value)| {
            quote(text, name);
            text.push_str(" : ");
            print(text, value, depth + 1);
        }),
        Value::Items(items) => {
            enclosed(text, "[]", items, depth, |text, item| print(text, item, depth + 1));
        }
    }
}

/// Appends each item on a line of its own between two brackets.
fn enclosed<T>(
    text: &mut String,
    brackets: &str,
    items: &[T],
    depth: usize,
    mut item: impl FnMut(&mut String, &T),
) {
    text.push_str(&brackets[..1]);
    if items.is_empty() {
        text.push('\n');
    }
    for (index, one) in items.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(text, depth + 1);
        item(text, one);
    }
    text.push('\n');
    indent(text, depth);
    text.push_str(&brackets[1..]);
}

fn indent(text: &mut String, depth: usize) {
    for _ in 0..depth {
        text.push_str("  ");
    }
}

fn quote(text: &mut String, words: &str) {
    text.push_str(&serde_json::Value::from(words).to_string());
}
