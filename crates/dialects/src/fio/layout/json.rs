//! fio's JSON and JSON+: the same names in the same order, times in ns, six decimals.

use std::io::{self, Write};

use plimsoll_stats::Histogram;
use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};

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

fn document(run: &FioRun<'_>, bins: bool) -> String {
    let mut top = json!({
        "fio version": run.version,
        "timestamp": run.timestamp_ms / 1000,
    });
    let has_clients = !run.clients.is_empty();
    if !has_clients {
        top["timestamp_ms"] = run.timestamp_ms.into();
    }
    top["time"] = run.time.as_str().into();
    // As in fio: without a global section there is no such field.
    if !run.global_options.is_empty() {
        top["global options"] = options(&run.global_options);
    }
    let name = if has_clients { "client_stats" } else { "jobs" };
    top[name] = run.records.iter().map(|record| job(run, record, bins)).collect();
    if has_clients {
        top["disk_util"] = json!([]);
    }
    let mut text = Vec::new();
    let mut printer = Serializer::with_formatter(&mut text, Layout::default());
    top.serialize(&mut printer).expect("values go into memory");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Returns options as fields; of one given twice the last one, as names are there once.
fn options(written: &[(String, String)]) -> Value {
    written.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn job(run: &FioRun<'_>, record: &FioRecord<'_>, bins: bool) -> Value {
    let shares = Shares::of(record);
    let unused = FioDirection::default();
    let error = record.error.unsigned_abs();
    let mut job = json!({"jobname": record.name, "groupid": record.group, "error": error});
    if record.whose == FioWhose::Alone {
        extend(&mut job, json!({"eta": 0, "elapsed": record.elapsed_s}));
    }
    if record.whose != FioWhose::All {
        job["job options"] = options(&record.options);
    }
    extend(
        &mut job,
        json!({
            "read": direction(run, record, Some(Side::Read), &record.read, bins),
            "write": direction(run, record, Some(Side::Write), &record.write, bins),
            "trim": direction(run, record, None, &unused, bins),
            "sync": sync(record, bins),
            "job_runtime": record.job_runtime_ms,
            "usr_cpu": record.cpu.user_percent,
            "sys_cpu": record.cpu.system_percent,
            "ctx": record.cpu.context_switches,
            "majf": record.cpu.major_faults,
            "minf": record.cpu.minor_faults,
        }),
    );
    for (name, names, counts) in [
        ("iodepth_level", LEVELS, &record.depths.level),
        ("iodepth_submit", BATCHES, &record.depths.submit),
        ("iodepth_complete", BATCHES, &record.depths.complete),
    ] {
        if let Some(counts) = counts {
            job[name] = names.into_iter().zip(figures::percents(counts)).collect();
        }
    }
    extend(
        &mut job,
        json!({
            "latency_ns": cells(&shares.ns),
            "latency_us": cells(&shares.us),
            "latency_ms": cells(&shares.ms),
        }),
    );
    if record.depth > 0 {
        extend(
            &mut job,
            json!({
                "latency_depth": record.depth,
                "latency_target": 0,
                "latency_percentile": 100.0,
                "latency_window": 0,
            }),
        );
    }
    if record.errors_count > 0 {
        extend(&mut job, json!({"total_err": record.errors_count, "first_error": error}));
    }
    if let Some(description) = &record.description {
        job["desc"] = description.as_str().into();
    }
    if let Some((name, port)) = host(run, record) {
        extend(&mut job, json!({"hostname": name, "port": port}));
    }
    job
}

/// Adds fields behind those that are there.
fn extend(job: &mut Value, more: Value) {
    if let (Value::Object(job), Value::Object(more)) = (job, more) {
        job.extend(more);
    }
}

/// Returns the name and the port of whose row it is, where clients ran the jobs.
fn host(run: &FioRun<'_>, record: &FioRecord<'_>) -> Option<(String, u16)> {
    match record.whose {
        FioWhose::Alone => None,
        FioWhose::Client(number) => {
            run.clients.get(number).map(|client| (client.name.clone(), client.port))
        }
        FioWhose::All => {
            let names: Vec<&str> = run.clients.iter().map(|client| client.name.as_str()).collect();
            Some((names.join(","), 0))
        }
    }
}

/// Returns the shares of the cells of one unit.
fn cells(shares: &[f64]) -> Value {
    let names = CELLS.iter().map(u64::to_string).chain(["2000".to_owned(), ">=2000".to_owned()]);
    names.zip(shares.iter().copied()).collect()
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
    let times = |histogram, percentiles| times(histogram, percentiles, &record.percentiles, bins);
    json!({
        "io_bytes": moved.bytes,
        "io_kbytes": moved.bytes / 1024,
        "bw_bytes": bytes_per_sec,
        "bw": bytes_per_sec / 1024,
        "iops": moved.ops_per_sec(),
        "runtime": moved.runtime_ms,
        "total_ios": moved.ops,
        "short_ios": moved.short_ops,
        "drop_ios": moved.dropped_ops,
        "slat_ns": times(moved.slat.as_deref(), of.slat),
        "clat_ns": times(moved.clat.as_deref(), of.clat),
        "lat_ns": times(moved.lat.as_deref(), of.lat),
        "bw_min": bw.min.round() as u64,
        "bw_max": bw.max.round() as u64,
        "bw_agg": bw.share_of(group),
        "bw_mean": bw.mean,
        "bw_dev": bw.deviation,
        "bw_samples": bw.count,
        "iops_min": iops.min.round() as u64,
        "iops_max": iops.max.round() as u64,
        "iops_mean": iops.mean,
        "iops_stddev": iops.deviation,
        "iops_samples": iops.count,
    })
}

/// Returns the figures of syncs, whose percentiles are always there, as in fio.
fn sync(record: &FioRecord<'_>, bins: bool) -> Value {
    let ops = record.sync.map_or(0, Histogram::count);
    json!({"total_ios": ops, "lat_ns": times(record.sync, true, &record.percentiles, bins)})
}

fn times(histogram: Option<&Histogram>, percentiles: bool, wanted: &[f64], bins: bool) -> Value {
    let figures = Times::of(histogram);
    let mut times = json!({
        "min": figures.min,
        "max": figures.max,
        "mean": figures.mean,
        "stddev": figures.deviation,
        "N": figures.count,
    });
    let Some(histogram) = histogram.filter(|histogram| percentiles && !histogram.is_empty()) else {
        return times;
    };
    let values = figures::percentiles(Some(histogram), wanted).into_iter();
    times["percentile"] = values.map(|(percent, ns)| (format!("{percent:.6}"), ns)).collect();
    if bins {
        let bins = histogram.bins().map(|bin| (bin.lowest.to_string(), bin.count));
        times["bins"] = bins.collect();
    }
    times
}

/// The line breaks, indents, blanks and decimals of fio.
#[derive(Default)]
struct Layout {
    depth: usize,
}

impl Layout {
    fn open<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        to.write_all(bracket)?;
        to.write_all(b"\n")
    }

    fn item<W: ?Sized + Write>(&self, to: &mut W, is_first: bool) -> io::Result<()> {
        if !is_first {
            to.write_all(b",\n")?;
        }
        write!(to, "{:1$}", "", 2 * self.depth)
    }

    fn close<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &str) -> io::Result<()> {
        self.depth -= 1;
        write!(to, "\n{:1$}{bracket}", "", 2 * self.depth)
    }
}

impl Formatter for Layout {
    fn write_f64<W: ?Sized + Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        write!(to, "{value:.6}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.item(to, first)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, "]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.item(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b" : ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, "}")
    }
}
