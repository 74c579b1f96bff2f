//! fio's normal text: the jobs, a block for each row, and the sums of each group.

use std::fmt::{self, Write};

use plimsoll_stats::Histogram;

use super::figures::{
    self, BATCHES, Base, CELLS, GroupFigures, LEVELS, Shares, Side, Spread, Times, short,
};
use super::{FioDirection, FioRecord, FioRun, FioSection, FioWhose};

/// How many shares of latency stand in one line.
const SHARES_PER_LINE: usize = 5;

/// Returns the text.
pub fn normal(run: &FioRun<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut text, run);
    text
}

fn write_all(text: &mut String, run: &FioRun<'_>) -> fmt::Result {
    if !run.clients.is_empty() {
        return by_clients(text, run);
    }
    begin(text, run, "", &format!("{}\n", run.version))?;
    writeln!(text)?;
    records(text, run, FioWhose::Alone)
}

/// Appends what each client says of itself, its rows and sums, and then what all did together.
fn by_clients(text: &mut String, run: &FioRun<'_>) -> fmt::Result {
    for client in run.clients {
        writeln!(text, "hostname={}, fio={}", client.name, run.version)?;
    }
    for client in run.clients {
        begin(text, run, &format!("<{}> ", client.name), "")?;
    }
    for (number, client) in run.clients.iter().enumerate() {
        writeln!(text, "<{}> ", client.name)?;
        records(text, run, FioWhose::Client(number))?;
    }
    let mut all = run.records.iter().filter(|record| record.whose == FioWhose::All);
    all.try_for_each(|one| record(text, run, one))
}

/// Appends the jobs and how many clones they have, each line behind `prefix`.
fn begin(text: &mut String, run: &FioRun<'_>, prefix: &str, version: &str) -> fmt::Result {
    run.sections.iter().try_for_each(|one| section(text, one, prefix))?;
    let clones: u64 = run.sections.iter().map(|section| u64::from(section.clones)).sum();
    let threads = if clones == 1 { "thread" } else { "threads" };
    writeln!(text, "{version}{prefix}Starting {clones} {threads}")
}

/// Appends rows, and then the sums of each group.
fn records(text: &mut String, run: &FioRun<'_>, whose: FioWhose) -> fmt::Result {
    let rows = || run.records.iter().filter(|record| record.whose == whose);
    rows().try_for_each(|one| record(text, run, one))?;
    let mut done = Vec::new();
    for row in rows() {
        if !done.contains(&row.group) {
            done.push(row.group);
            sums(text, run, row)?;
        }
    }
    Ok(())
}

fn section(text: &mut String, section: &FioSection, prefix: &str) -> fmt::Result {
    let FioSection { name, group, clones, rw, block_bytes, engine, depth } = section;
    let [read, write, trim] = block_bytes.map(|(min, max)| format!("{}-{}", size(min), size(max)));
    write!(text, "{prefix}{name}: (g={group}): rw={rw}, bs=(R) {read}, (W) {write}, (T) {trim}")?;
    writeln!(text, ", ioengine={engine}, iodepth={depth}")?;
    if *clones > 1 { writeln!(text, "{prefix}...") } else { Ok(()) }
}

fn record(text: &mut String, run: &FioRun<'_>, record: &FioRecord<'_>) -> fmt::Result {
    let FioRecord { name, group, clones, error, pid, .. } = record;
    write!(text, "{name}: (groupid={group}, jobs={clones}): err={error:2}")?;
    if *error != 0 {
        write!(text, " (error={})", error_text(*error))?;
    }
    writeln!(text, ": pid={pid}: {}", run.time)?;
    if let Some(description) = &record.description {
        writeln!(text, "  Description  : [{description}]")?;
    }
    for side in Side::BOTH {
        direction(text, run, record, side)?;
    }
    shares(text, &Shares::of(record))?;
    if let Some(sync) = record.sync.filter(|sync| !sync.is_empty()) {
        writeln!(text, "  fsync/fdatasync/sync_file_range:")?;
        times(text, "sync", sync)?;
        percentiles(text, "sync", sync, &record.percentiles)?;
    }
    footer(text, record)
}

fn footer(text: &mut String, record: &FioRecord<'_>) -> fmt::Result {
    let FioRecord { cpu, depths, read, write, depth, .. } = record;
    write!(text, "  cpu          : usr={:.2}%", cpu.user_percent)?;
    write!(text, ", sys={:.2}%, ctx={}", cpu.system_percent, cpu.context_switches)?;
    writeln!(text, ", majf={}, minf={}", cpu.major_faults, cpu.minor_faults)?;
    for (label, names, counts) in [
        ("  IO depths    :", LEVELS, &depths.level),
        ("     submit    :", BATCHES, &depths.submit),
        ("     complete  :", BATCHES, &depths.complete),
    ] {
        counts.as_ref().map_or(Ok(()), |counts| queue(text, label, names, counts))?;
    }
    let syncs = record.sync.map_or(0, Histogram::count);
    write!(text, "     issued rwts: total={},{},0,{syncs}", read.ops, write.ops)?;
    write!(text, " short={},{},0,0", read.short_ops, write.short_ops)?;
    writeln!(text, " dropped={},{},0,0", read.dropped_ops, write.dropped_ops)?;
    if *depth > 0 {
        writeln!(text, "     latency   : target=0, window=0, percentile=100.00%, depth={depth}")?;
    }
    if record.errors_count > 0 {
        let (total, error) = (record.errors_count, record.error);
        let words = error_text(error);
        writeln!(text, "     errors    : total={total}, first_error={error}/<{words}>")?;
    }
    Ok(())
}

fn direction(
    text: &mut String,
    run: &FioRun<'_>,
    record: &FioRecord<'_>,
    side: Side,
) -> fmt::Result {
    let moved = side.of(record);
    if moved.ops == 0 {
        return Ok(());
    }
    let (label, zones) = match side {
        Side::Read => ("read", ""),
        Side::Write => ("write", "; 0 zone resets"),
    };
    let iops = short(moved.ops_per_sec() as u64, 4, Base::Decimal);
    let rate = moved.bytes_per_sec();
    write!(text, "  {label}: IOPS={iops}, BW={}/s ({}/s)", size(rate), decimal_size(rate))?;
    writeln!(text, "({}/{}msec){zones}", size(moved.bytes), moved.runtime_ms)?;
    let of = record.percentiles_of;
    let kinds = [("slat", &moved.slat, of.slat), ("clat", &moved.clat, of.clat)];
    let kinds = kinds.into_iter().chain([("lat", &moved.lat, of.lat)]);
    let known =
        kinds.filter_map(|(name, histogram, asked)| Some((name, histogram.as_deref()?, asked)));
    let known: Vec<_> = known.filter(|(_, histogram, _)| !histogram.is_empty()).collect();
    for (name, histogram, _) in &known {
        times(text, name, histogram)?;
    }
    for (name, histogram, _) in known.iter().filter(|(_, _, asked)| *asked) {
        percentiles(text, name, histogram, &record.percentiles)?;
    }
    windows(text, moved, figures::group(run, record, side))
}

/// Appends the spread of the windows, `bw` in MiB/s once its mean is above 1 GiB/s.
fn windows(
    text: &mut String,
    moved: &FioDirection<'_>,
    group: Option<GroupFigures>,
) -> fmt::Result {
    let bw = Spread::of(&moved.bw_kib_per_sec);
    if bw.count > 0 {
        let (unit, scale) =
            if bw.mean > 1_048_576.0 { ("MiB", 1.0 / 1024.0) } else { ("KiB", 1.0) };
        let (min, max) = ((bw.min * scale).round(), (bw.max * scale).round());
        write!(text, "   bw ({unit:>5}/s): min={min:5}, max={max:5}, ")?;
        write!(text, "per={:.2}%, ", bw.share_of(group))?;
        let (mean, deviation) = (bw.mean * scale, bw.deviation * scale);
        writeln!(text, "avg={mean:5.2}, stdev={deviation:5.2}, samples={}", bw.count)?;
    }
    let iops = Spread::of(&moved.iops);
    if iops.count > 0 {
        let (min, max) = (iops.min.round(), iops.max.round());
        write!(text, "   iops        : min={min:5}, max={max:5}, avg={:5.2}", iops.mean)?;
        writeln!(text, ", stdev={:5.2}, samples={}", iops.deviation, iops.count)?;
    }
    Ok(())
}

/// Returns the largest unit, and its ns, that all is far `above` of.
fn unit(above: impl Fn(u64) -> bool) -> (&'static str, u64) {
    let units = [("msec", 1_000_000), ("usec", 1_000)];
    units.into_iter().find(|&(_, ns)| above(ns)).unwrap_or(("nsec", 1))
}

/// Appends a line of times in the unit that fits.
fn times(text: &mut String, name: &str, histogram: &Histogram) -> fmt::Result {
    let times = Times::of(Some(histogram));
    let above = |unit: u64| {
        times.min > 2 * unit && times.max > 100 * unit - 1 && times.deviation > unit as f64
    };
    let (unit, scale) = unit(above);
    let bound = |ns: u64| short(ns / scale, 6, Base::Decimal);
    write!(text, "    {name:>4} ({unit}): min={}, max={}", bound(times.min), bound(times.max))?;
    let (mean, deviation) = (times.mean / scale as f64, times.deviation / scale as f64);
    writeln!(text, ", avg={mean:5.2}, stdev={deviation:5.2}")
}

/// Appends the percentiles in the unit that fits, rounded up so that they stay upper bounds.
fn percentiles(
    text: &mut String,
    name: &str,
    histogram: &Histogram,
    wanted: &[f64],
) -> fmt::Result {
    let values = figures::percentiles(Some(histogram), wanted);
    let (Some(&(_, lowest)), Some(&(_, highest))) = (values.first(), values.last()) else {
        return Ok(());
    };
    let above = |unit: u64| lowest > 2 * unit && highest > 100 * unit - 1;
    let (unit, scale) = unit(above);
    let width = highest.div_ceil(scale).to_string().len().max(5);
    let decimals = values.iter().map(|&(percent, _)| decimals(percent)).max().unwrap_or(0);
    let per_line = (73 / (decimals + 10 + width)).max(1);
    writeln!(text, "    {name} percentiles ({unit}):")?;
    let last = values.len() - 1;
    for (index, (percent, ns)) in values.into_iter().enumerate() {
        if index % per_line == 0 {
            write!(text, "     |")?;
        }
        let (label, value) = (decimals + 3, ns.div_ceil(scale));
        write!(text, " {percent:label$.decimals$}th=[{value:width$}]")?;
        let line_ends = index % per_line == per_line - 1 || index == last;
        text.push_str(if index == last { "" } else { "," });
        text.push_str(if line_ends { "\n" } else { "" });
    }
    Ok(())
}

/// Returns how many decimals a percentile is written with, at most 6.
fn decimals(percent: f64) -> usize {
    let whole = |&decimals: &usize| {
        let scaled = percent * 10_f64.powi(decimals as i32);
        (scaled - scaled.round()).abs() < 1e-6
    };
    (0..6).find(whole).unwrap_or(6)
}

fn shares(text: &mut String, shares: &Shares) -> fmt::Result {
    let units: [(&str, &[f64]); 3] =
        [("nsec", &shares.ns), ("usec", &shares.us), ("msec", &shares.ms)];
    for (unit, shares) in units {
        let names = CELLS.iter().map(u64::to_string);
        let names = names.chain(["2000".to_owned(), ">=2000".to_owned()]);
        let cells = names.zip(shares).filter(|(_, share)| **share > 0.0);
        let cells: Vec<_> =
            cells.map(|(name, &share)| format!("{name}={:.2}%", lifted(share, 0.01))).collect();
        for line in cells.chunks(SHARES_PER_LINE) {
            writeln!(text, "  lat ({unit})   : {}", line.join(", "))?;
        }
    }
    Ok(())
}

fn queue(text: &mut String, label: &str, names: [&str; 7], counts: &[u64; 7]) -> fmt::Result {
    let shares = figures::percents(counts).map(|share| lifted(share, 0.1));
    let cells: Vec<_> =
        names.iter().zip(shares).map(|(name, share)| format!("{name}={share:.1}%")).collect();
    writeln!(text, "{label} {}", cells.join(", "))
}

/// Returns a share that is not 0 as at least the smallest that can be printed.
fn lifted(share: f64, least: f64) -> f64 {
    if share > 0.0 { share.max(least) } else { 0.0 }
}

fn sums(text: &mut String, run: &FioRun<'_>, of: &FioRecord<'_>) -> fmt::Result {
    writeln!(text, "\nRun status group {} (all jobs):", of.group)?;
    for (side, label) in [(Side::Read, "READ"), (Side::Write, "WRITE")] {
        let Some(sum) = figures::group(run, of, side) else { continue };
        let (rate, slow, fast) = (sum.bytes_per_sec, sum.slowest, sum.fastest);
        write!(text, "{label:>7}: bw={}/s ({}/s)", size(rate), decimal_size(rate))?;
        write!(text, ", {}/s-{}/s", size(slow), size(fast))?;
        write!(text, " ({}/s-{}/s)", decimal_size(slow), decimal_size(fast))?;
        write!(text, ", io={} ({})", size(sum.bytes), decimal_size(sum.bytes))?;
        writeln!(text, ", run={}-{}msec", sum.shortest_ms, sum.longest_ms)?;
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    short(bytes, 4, Base::Binary) + "B"
}

fn decimal_size(bytes: u64) -> String {
    short(bytes, 4, Base::Decimal) + "B"
}

/// Returns the system's words for an error.
fn error_text(error: i32) -> String {
    let text = std::io::Error::from_raw_os_error(error).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
