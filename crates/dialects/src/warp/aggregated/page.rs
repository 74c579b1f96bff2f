//! The report for people.

use std::time::Duration;

use plimsoll_foreign::warp::aggregated::{Aggregated, Throughput};
use plimsoll_model::{ByteRate, OpRate};
use plimsoll_report::format::{
    UNKNOWN, byte_rate, bytes, count, duration, known, object_rate, percent,
};
use plimsoll_report::table::{Cell, Paint, Table, Tone, elided, harmless, paragraph};
use plimsoll_report::text::Look;

use super::has_hosts;
use super::measured::{Bounds, Kind, Rate, Times};

/// How many texts of errors of one type of operation are shown.
const MESSAGES_MAX: usize = 3;
/// How much of a text is shown.
const MESSAGE_CHARS_MAX: usize = 400;
/// How much of the name of a type of operation is shown.
const NAME_CHARS_MAX: usize = 12;

struct Page<'a> {
    kinds: &'a [Kind<'a>],
    width: usize,
    paint: Paint,
    out: String,
}

/// Returns the report as text that ends with a line feed.
pub(super) fn render(
    file: &Aggregated,
    kinds: &[Kind<'_>],
    unknown: &[String],
    look: &Look,
) -> String {
    let paint = Paint { color: look.color };
    let width = usize::from(look.width.max(40));
    let mut page = Page { kinds, width, paint, out: String::new() };
    page.origin(file, unknown);
    page.operations();
    page.rates();
    page.times("latency", |kind| kind.latency);
    if kinds.iter().any(|kind| kind.ttfb != Times::default()) {
        page.times("TTFB", |kind| kind.ttfb);
    }
    page.hosts();
    page.errors();
    page.remarks();
    page.out
}

impl Page<'_> {
    fn fact(&mut self, name: &str, text: &str) {
        paragraph(&format!("{name:<12}"), &harmless(text), self.width, &mut self.out);
    }

    fn table(&mut self, table: &Table) {
        self.out.push('\n');
        table.write(self.paint, &mut self.out);
    }

    fn origin(&mut self, file: &Aggregated, unknown: &[String]) {
        let title = "aggregated warp file: sums and figures, no single operations";
        self.out.push_str(&self.paint.apply(Tone::Bold, title));
        self.out.push_str("\n\n");
        if let Some(command) = &file.commandline {
            self.fact("command", command);
        }
        if let Some(version) = &file.warp_version {
            self.fact("written by", &format!("warp {version}"));
        }
        if file.is_final == Some(false) {
            self.fact("state", "warp did not mark the file as final");
        }
        self.fact("unknown:", &unknown.join("; "));
    }

    fn operations(&mut self) {
        let heading = ["operations", "all", "failed", "error rate", "objects", "bytes", "workers"];
        let mut table = Table::new(&heading);
        let mut when = Table::new(&["when", "first start", "last end"]);
        for kind in self.kinds {
            let all = kind.all;
            let tone = tone(kind);
            let cells = [
                known(all.total_requests, count).into(),
                Cell::new(known(all.total_errors, count), tone),
                Cell::new(known(kind.error_rate(), |rate| percent(rate * 100.0)), tone),
                known(all.total_objects, count).into(),
                known(all.total_bytes, bytes).into(),
                known(all.concurrency, count).into(),
            ];
            table.row(&name(kind), Tone::Plain, cells);
            let at = |time: &Option<String>| Cell::from(known(time.as_deref(), moment));
            when.row(&name(kind), Tone::Plain, [at(&all.start_time), at(&all.end_time)]);
        }
        self.table(&table);
        self.table(&when);
    }

    fn rates(&mut self) {
        let mut table = Table::new(&["rate", "average", "fastest", "median", "slowest"]);
        for kind in self.kinds {
            let picked = kind.rates.map(|of| [of.average, of.fastest, of.median, of.slowest]);
            let cells = |text: &dyn Fn(Rate) -> String| {
                let bound = if kind.counts_failed { "≤ " } else { "" };
                let each = |rate: Rate| Cell::new(format!("{bound}{}", text(rate)), tone(kind));
                picked.map_or([(); 4].map(|()| UNKNOWN.into()), |rates| rates.map(each))
            };
            let objects = |rate: Rate| object_rate(OpRate(rate.objects));
            table.row(&name(kind), Tone::Plain, cells(&objects));
            let Some(rates) = kind.rates else { continue };
            if kind.moves_bytes() {
                table.row("", Tone::Plain, cells(&|rate| byte_rate(ByteRate(rate.bytes))));
            }
            let segment = duration(rates.segment).replace(".00", "");
            let over = format!("over {} × {segment}", count(rates.segments.into()));
            table.row("", Tone::Plain, [Cell::new(over, Tone::Dim)]);
        }
        self.table(&table);
    }

    fn times(&mut self, title: &str, of: impl Fn(&Kind<'_>) -> Times) {
        let table = |has_min: bool| {
            let mut heading = vec![title, "p50", "p90", "p99"];
            heading.extend(has_min.then_some("min"));
            heading.extend(["max", "mean"]);
            let mut table = Table::new(&heading);
            for kind in self.kinds {
                let times = of(kind);
                let bounded = [times.p50, times.p90, times.p99].map(|p| known(p, range));
                let mut cells = Vec::from(bounded);
                cells.extend(has_min.then(|| known(times.min, duration)));
                cells.extend([times.max, times.mean].map(|time| known(time, duration)));
                let cells = cells.into_iter().map(|text| Cell::new(text, tone(kind)));
                table.row(&name(kind), Tone::Plain, cells);
            }
            table
        };
        let names = self.kinds.iter().map(|kind| 2 + name(kind).chars().count());
        let left = names.max().unwrap_or(0).max(title.chars().count());
        let full = table(true);
        // The shortest time says least, so it goes where there is no room.
        let fits = left + full.width_right() <= self.width;
        let table = if fits { full } else { table(false) };
        self.table(&table);
    }

    fn hosts(&mut self) {
        let heading = ["hosts", "all", "failed", "objects", "throughput", "over its"];
        for kind in self.kinds.iter().filter(|kind| has_hosts(kind.all)) {
            let title = format!("{} at", name(kind));
            let table = |chars_max: usize| {
                let mut table = Table::new(&[&[&*title], &heading[1..]].concat());
                for (host, of) in &kind.all.throughput_by_host {
                    table.row(&elided(&harmless(host), chars_max), Tone::Plain, host_cells(of));
                }
                table
            };
            let room = self.width.saturating_sub(2 + table(usize::MAX).width_right());
            let table = table(room.max(8));
            self.table(&table);
        }
    }

    fn errors(&mut self) {
        for kind in self.kinds.iter().filter(|kind| kind.counts_failed) {
            let failed = known(kind.all.total_errors, count);
            let line = format!("errors: {failed} {} failed", name(kind));
            self.out.push_str(&format!("\n{}\n", self.paint.apply(Tone::Bad, &line)));
            for text in kind.all.first_errors.iter().take(MESSAGES_MAX) {
                let text: String = harmless(text).chars().take(MESSAGE_CHARS_MAX).collect();
                paragraph("    ", &text, self.width, &mut self.out);
            }
        }
    }

    fn remarks(&mut self) {
        self.out.push('\n');
        if self.kinds.iter().any(|kind| kind.counts_failed) {
            let text = "warp counts failed operations into objects, bytes, rates and times here: a \
                        rate marked ≤ is an upper bound, the times are of good and failed ones \
                        together";
            let mut lines = String::new();
            paragraph("warning: ", text, self.width, &mut lines);
            let marked = self.paint.apply(Tone::Warn, "warning:");
            self.out.push_str(&lines.replacen("warning:", &marked, 1));
        }
        self.fact(
            "rates",
            "from warp's seconds, of which it leaves out the first and the last two; the average \
             is their mean",
        );
        self.fact(
            "times",
            "from warp's windows of ten seconds; a – b are the bounds of a percentile of the whole",
        );
        self.fact("units", "1 MiB = 1,048,576 bytes; – is unknown or from too few samples");
    }
}

fn host_cells(of: &Throughput) -> [Cell; 5] {
    let failed = of.errors != Some(0);
    let tone = if failed { Tone::Bad } else { Tone::Plain };
    let over = of.measure_duration_millis.filter(|millis| *millis > 0).map(Duration::from_millis);
    let per_second = |sum: Option<f64>| {
        let rate = sum? / over?.as_secs_f64();
        (rate.is_finite() && rate >= 0.0).then_some(rate)
    };
    let bound = if failed { "≤ " } else { "" };
    let objects = per_second(of.objects).map(|rate| object_rate(OpRate(rate)));
    let throughput = per_second(of.bytes).map(|rate| byte_rate(ByteRate(rate)));
    let rate = |text| Cell::new(known(text, |text: String| format!("{bound}{text}")), tone);
    [
        known(of.ops, count).into(),
        Cell::new(known(of.errors, count), tone),
        rate(objects),
        rate(throughput),
        known(over, duration).into(),
    ]
}

fn tone(kind: &Kind<'_>) -> Tone {
    if kind.counts_failed { Tone::Bad } else { Tone::Plain }
}

fn name(kind: &Kind<'_>) -> String {
    elided(&harmless(kind.name), NAME_CHARS_MAX)
}

/// Returns an RFC 3339 time to the second: `2026-11-20 20:58:07 UTC`.
fn moment(text: &str) -> String {
    let text = harmless(text);
    let Some((date_time, rest)) = text.split_at_checked(19) else { return text };
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let zone = if zone == "Z" { "UTC" } else { zone };
    elided(&format!("{} {zone}", date_time.replace('T', " ")), 32)
}

/// Returns bounds with two digits, rounded outward, and one unit where that reads well: `2.2 – 3.5
/// ms`.
fn range(bounds: Bounds) -> String {
    if let Some(value) = bounds.exact() {
        return duration(value);
    }
    let [low, high] = [bounds.low, bounds.high].map(|time| time.as_nanos() as f64);
    let (low_unit, high_unit) = (unit(low), unit(high));
    let shared = low >= high_unit.0 / 10.0;
    let (low_size, low_name) = match shared {
        true => (high_unit.0, String::new()),
        false => (low_unit.0, format!(" {}", low_unit.1)),
    };
    let low = two_digits(low / low_size, f64::floor);
    let high = two_digits(high / high_unit.0, f64::ceil);
    format!("{low}{low_name} – {high} {}", high_unit.1)
}

fn unit(ns: f64) -> (f64, &'static str) {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    units.into_iter().find(|(size, _)| ns >= *size).unwrap_or((1.0, "ns"))
}

fn two_digits(value: f64, round: fn(f64) -> f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let exponent = value.log10().floor() as i32;
    let step = 10_f64.powi(exponent - 1);
    let decimals = usize::try_from(1 - exponent).unwrap_or(0);
    format!("{:.decimals$}", round(value / step) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outward_and_share_a_unit() {
        for (low, high, text) in [
            (2_295_374, 3_470_236, "2.2 – 3.5 ms"),
            (279_297, 1_201_000, "0.27 – 1.3 ms"),
            (32_784_438, 133_178_295, "32 – 140 ms"),
            (28_900, 117_000_000, "28 µs – 120 ms"),
            (0, 1_000, "0 ns – 1.0 µs"),
            (4_000_000, 4_000_000, "4.00 ms"),
        ] {
            let [low, high] = [low, high].map(Duration::from_nanos);
            assert_eq!(range(Bounds { low, high }), text);
        }
    }

    #[test]
    fn a_moment_is_cut_to_the_second() {
        assert_eq!(moment("2026-11-20T20:58:07.631061063Z"), "2026-11-20 20:58:07 UTC");
        assert_eq!(moment("2026-11-20T20:58:07+01:00"), "2026-11-20 20:58:07 +01:00");
        assert_eq!(moment("noon"), "noon");
    }
}
