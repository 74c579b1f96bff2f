//! Durations, rates, sizes and times of day as warp writes them.

use std::time::Duration;

use plimsoll_model::{Moment, WallTime};

const NS: u64 = 1_000_000_000;

/// What stands before each figure of the times of requests.
pub(crate) const TIMES: [&str; 7] =
    ["Avg: ", ", 50%: ", ", 90%: ", ", 99%: ", ", Fastest: ", ", Slowest: ", ", StdDev: "];
/// What stands before each figure of times to first byte.
pub(crate) const FIRST_BYTE: [&str; 9] = [
    "Avg: ",
    ", Best: ",
    ", 25th: ",
    ", Median: ",
    ", 75th: ",
    ", 90th: ",
    ", 99th: ",
    ", Worst: ",
    // warp has no comma here.
    " StdDev: ",
];

/// What the segments are called that are shown of all.
pub(crate) const PICKS: [&str; 3] = ["Fastest", "50% Median", "Slowest"];

/// Returns figures behind what stands before each.
pub(crate) fn figures<T>(
    heads: &[&str],
    figures: impl IntoIterator<Item = T>,
    text: impl Fn(T) -> String,
) -> String {
    heads.iter().zip(figures).map(|(head, of)| format!("{head}{}", text(of))).collect()
}

/// Returns a duration rounded down to a multiple of `unit_ns`, as Go prints durations.
pub(crate) fn go_duration(duration: Duration, unit_ns: u64) -> String {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX) / unit_ns * unit_ns;
    let decimal = |ns: u64, of: u64, unit: &str| {
        let digits = of.ilog10() as usize;
        let fraction = format!("{:0digits$}", ns % of);
        match fraction.trim_end_matches('0') {
            "" => format!("{}{unit}", ns / of),
            fraction => format!("{}.{fraction}{unit}", ns / of),
        }
    };
    let (hours, minutes) = (ns / NS / 3_600, ns / NS / 60 % 60);
    match ns {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => decimal(ns, 1_000, "µs"),
        1_000_000..NS => decimal(ns, 1_000_000, "ms"),
        _ => {
            let seconds = decimal(ns % (60 * NS), NS, "s");
            match (hours, minutes) {
                (0, 0) => seconds,
                (0, _) => format!("{minutes}m{seconds}"),
                _ => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

/// Returns a duration in whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> String {
    go_duration(duration, 1_000_000)
}

/// Returns a duration in whole milliseconds, rounded.
pub(super) fn rounded_millis(duration: Duration) -> String {
    millis(duration + Duration::from_micros(500))
}

/// Returns milliseconds as whole seconds, rounded, never as minutes.
pub(crate) fn whole_seconds(millis: u64) -> String {
    format!("{}s", (millis + 500) / 1_000)
}

/// Returns bytes per second.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    const KIB: f64 = 1_024.0;
    const MIB: f64 = KIB * KIB;
    const GIB: f64 = MIB * KIB;
    match bytes_per_second {
        0.0 => "0B/s".to_owned(),
        rate if rate < 2.0 * KIB => format!("{rate:.1}B/s"),
        rate if rate < 2.0 * MIB => format!("{:.1}KiB/s", rate / KIB),
        rate if rate < 10.0 * GIB => format!("{:.1}MiB/s", rate / MIB),
        rate if rate < 10.0 * GIB * KIB => format!("{:.2}GiB/s", rate / GIB),
        rate => format!("{:.2}TiB/s", rate / GIB / KIB),
    }
}

/// Returns the border of a size class.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
    let fits = |unit: &&(u32, &str)| bytes >> unit.0 > 0;
    let (shift, unit) = units.iter().find(fits).copied().unwrap_or((0, "B"));
    format!("{}{unit}", bytes >> shift)
}

/// Returns the time of day and its zone.
pub(super) fn clock(at: Moment, offset_seconds: i32) -> String {
    let (.., hour, minute, second) = local(at, offset_seconds).civil();
    format!("{hour:02}:{minute:02}:{second:02} {}", zone_name(offset_seconds))
}

/// Returns date, time of day with at most `digits` fraction digits, and zone, as Go prints times.
pub(super) fn date_time(at: Moment, offset_seconds: i32, digits: usize) -> String {
    let (year, month, day, hour, minute, second) = local(at, offset_seconds).civil();
    let fraction = format!("{:09}", at.as_ns() % NS);
    let fraction = match fraction[..digits.min(9)].trim_end_matches('0') {
        "" => String::new(),
        fraction => format!(".{fraction}"),
    };
    let (zone, name) = (zone(offset_seconds), zone_name(offset_seconds));
    let date = format!("{year:04}-{month:02}-{day:02}");
    format!("{date} {hour:02}:{minute:02}:{second:02}{fraction} {zone} {name}")
}

/// Returns date and time as Go writes them in JSON: RFC 3339, the fraction without trailing zeros.
pub(crate) fn rfc3339(at: Moment, offset_seconds: i32) -> String {
    let (year, month, day, hour, minute, second) = local(at, offset_seconds).civil();
    let fraction = format!(".{:09}", at.as_ns() % NS);
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let zone = match offset_seconds {
        0 => "Z".to_owned(),
        offset => {
            let zone = zone(offset);
            format!("{}:{}", &zone[..3], &zone[3..])
        }
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
}

fn local(at: Moment, offset_seconds: i32) -> WallTime {
    let offset = i64::from(offset_seconds) * NS as i64;
    WallTime::from_unix_ns(at.as_ns().saturating_add_signed(offset))
}

fn zone(offset_seconds: i32) -> String {
    let sign = if offset_seconds < 0 { '-' } else { '+' };
    let minutes = offset_seconds.unsigned_abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// Returns what Go calls a zone that it knows no name for.
fn zone_name(offset_seconds: i32) -> String {
    match offset_seconds {
        0 => "UTC".to_owned(),
        offset => zone(offset),
    }
}
