//! fio's terse output, version 3: a line a row, fields between semicolons, times in µs.

use std::fmt::Write;

use super::figures::{self, Shares, Side, Spread, Times};
use super::text::lifted;
use super::{FioDirection, FioRecord, FioRun};

/// How many percentiles a line has room for.
const PERCENTILES_MAX: usize = 20;

/// Returns a line for each row. Without fields for disks, of which fio has 9 each, it has 121.
pub fn terse(run: &FioRun<'_>) -> String {
    let mut text = String::new();
    for record in &run.records {
        // Writing to a String cannot fail.
        let _ = line(&mut text, run, record);
    }
    text
}

fn line(text: &mut String, run: &FioRun<'_>, record: &FioRecord<'_>) -> std::fmt::Result {
    let FioRecord { name, group, error, cpu, .. } = record;
    write!(text, "3;{};{name};{group};{error}", run.version)?;
    for side in Side::BOTH {
        direction(text, run, record, side)?;
    }
    write!(text, ";{:.6}%;{:.6}%", cpu.user_percent, cpu.system_percent)?;
    write!(text, ";{};{};{}", cpu.context_switches, cpu.major_faults, cpu.minor_faults)?;
    for share in figures::percents(&record.depths.level.unwrap_or_default()) {
        write!(text, ";{:.1}%", lifted(share, 0.1))?;
    }
    let Shares { ns, mut us, ms } = Shares::of(record);
    // Nothing is finer than a microsecond here: the first cell has all below.
    us[0] += ns.iter().sum::<f64>();
    for share in us.into_iter().chain(ms) {
        write!(text, ";{:.2}%", lifted(share, 0.01))?;
    }
    if record.errors_count > 0 {
        write!(text, ";{};{error}", record.errors_count)?;
    }
    if let Some(description) = &record.description {
        write!(text, ";{description}")?;
    }
    writeln!(text)
}

fn direction(
    text: &mut String,
    run: &FioRun<'_>,
    record: &FioRecord<'_>,
    side: Side,
) -> std::fmt::Result {
    let moved: &FioDirection<'_> = side.of(record);
    let (rate, iops) = (moved.bytes_per_sec() / 1024, moved.ops_per_sec() as u64);
    write!(text, ";{};{rate};{iops};{}", moved.bytes / 1024, moved.runtime_ms)?;
    times(text, Times::of(moved.slat.as_deref()))?;
    times(text, Times::of(moved.clat.as_deref()))?;
    percentiles(text, record, moved)?;
    times(text, Times::of(moved.lat.as_deref()))?;
    let bw = Spread::of(&moved.bw_kib_per_sec);
    let share = bw.share_of(figures::group(run, record, side));
    write!(text, ";{:.0};{:.0};{share:.6}%;{:.6};{:.6}", bw.min, bw.max, bw.mean, bw.deviation)
}

fn times(text: &mut String, times: Times) -> std::fmt::Result {
    let us = |ns: f64| ns / 1000.0;
    write!(text, ";{};{}", times.min / 1000, times.max / 1000)?;
    write!(text, ";{:.6};{:.6}", us(times.mean), us(times.deviation))
}

/// Appends the percentiles, `lat` before `clat` where both are wanted, and fills up with zeros.
fn percentiles(
    text: &mut String,
    record: &FioRecord<'_>,
    moved: &FioDirection<'_>,
) -> std::fmt::Result {
    let of = record.percentiles_of;
    let histogram = if of.lat { &moved.lat } else { &moved.clat };
    let mut values = figures::percentiles(histogram.as_deref(), &record.percentiles);
    if values.is_empty() {
        values = record.percentiles.iter().map(|&percent| (percent, 0)).collect();
    }
    if !of.lat && !of.clat {
        values.clear();
    }
    values.truncate(PERCENTILES_MAX);
    for (percent, ns) in &values {
        write!(text, ";{percent:.6}%={}", ns / 1000)?;
    }
    (values.len()..PERCENTILES_MAX).try_for_each(|_| write!(text, ";0%=0"))
}
