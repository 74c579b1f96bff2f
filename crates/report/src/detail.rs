//! The report for people, continued: hosts and clients of each kind, all percentiles, sizes,
//! accesses, failures over time.

use std::time::Duration;

use plimsoll_analysis::{
    AccessSummary, Figures, KindDetails, RowDetails, SegmentRow, SizeClass, Times,
};
use plimsoll_model::OpKind;

use crate::format::plural;
use crate::format::{byte_rate, bytes, count, duration, known, number, object_rate, op_rate};
use crate::report::RowView;
use crate::table::{Cell, Paint, Table, Tone, elided, harmless, paragraph};
use crate::words;

/// How many segments with failures are listed.
const SEGMENTS_FAILED_MAX: usize = 20;
/// A name is not cut below this many characters.
const NAME_CHARS_MIN: usize = 8;
/// How wide the longest time is: `99.0 min`.
const TIME_CHARS_MAX: usize = 8;

/// The heading above the names of the percentiles.
const PERCENTILES: &str = "percentile";

/// Writes the details, if there are any.
pub(crate) fn write(report: &RowView<'_>, width: usize, paint: Paint, out: &mut String) {
    let Some(details) = &report.row.analysis.details else { return };
    let mut writer = Writer { report, details, width, paint, out };
    writer.span();
    writer.hosts();
    writer.agents();
    writer.clients();
    writer.percentiles();
    details.kinds.iter().for_each(|kind| writer.sizes(kind));
    details.kinds.iter().for_each(|kind| writer.accesses(kind));
    writer.failures();
}

/// Operations by name, such as those of one host.
struct Peer<'a> {
    name: String,
    figures: &'a Figures,
}

struct Writer<'a> {
    report: &'a RowView<'a>,
    details: &'a RowDetails,
    width: usize,
    paint: Paint,
    out: &'a mut String,
}

impl Writer<'_> {
    fn table(&mut self, table: &Table) {
        self.out.push('\n');
        table.write(self.paint, self.out);
    }

    /// Writes a line above others.
    fn heading(&mut self, text: &str) {
        let text = self.paint.apply(Tone::Bold, text);
        self.out.push_str(&format!("\n{text}\n"));
    }

    /// Writes from when to when figures were taken.
    fn span(&mut self) {
        let (span, offset) = (&self.report.row.analysis.span, self.report.utc_offset_seconds);
        self.out.push('\n');
        for (name, moment) in [("span from", span.start), ("span until", span.end)] {
            let at = words::began(self.report.wall_time(moment), offset);
            paragraph(&format!("{name:<12}"), &at, self.width, self.out);
        }
    }

    /// Writes what each host did of each kind, when there are several hosts.
    fn hosts(&mut self) {
        let (report, analysis) = (self.report, &self.report.row.analysis);
        if report.endpoints.len().max(analysis.endpoints.len()) < 2 {
            return;
        }
        for kind in &analysis.kinds {
            let peers = kind.endpoints.iter().map(|at| {
                let name = report.endpoint(at.endpoint);
                Peer { name, figures: &at.figures }
            });
            self.peers(kind.kind.name(), "hosts", &peers.collect::<Vec<_>>());
        }
    }

    /// Writes what each agent of a fleet was and did, over the whole run.
    fn agents(&mut self) {
        if let Some(table) = crate::agents::table(&self.report.agents) {
            self.table(&table);
        }
    }

    /// Writes what each client did of each kind and in all, when there are several clients.
    fn clients(&mut self) {
        let (report, details) = (self.report, self.details);
        if details.clients.is_empty() {
            return;
        }
        for kind in details.kinds.iter().map(|kind| kind.kind) {
            let peers = details.clients.iter().filter_map(|client| {
                let figures =
                    client.kinds.iter().find(|of| of.kind == kind).map(|of| &of.figures)?;
                Some(Peer { name: report.client(client.client), figures })
            });
            self.peers(kind.name(), "clients", &peers.collect::<Vec<_>>());
        }
        if details.kinds.len() > 1 {
            let peers = details
                .clients
                .iter()
                .map(|client| Peer { name: report.client(client.client), figures: &client.total });
            self.peers("total", "clients", &peers.collect::<Vec<_>>());
        }
    }

    /// Writes what was done by each of several, and then how long it took.
    fn peers(&mut self, of: &str, noun: &str, peers: &[Peer<'_>]) {
        if peers.is_empty() {
            return;
        }
        let moves_bytes = peers.iter().any(|peer| peer.figures.moves_bytes);
        let batches = |peer: &Peer<'_>| peer.figures.stage.objects != peer.figures.stage.ops_ok;
        let has_objects = !moves_bytes && peers.iter().any(batches);
        let title = format!("{of} {noun}");
        let mut heading = vec![&*title, "succeeded", "failed", "rate"];
        heading.extend(moves_bytes.then_some("throughput"));
        heading.extend(has_objects.then_some("objects"));
        self.named(&heading, peers, |figures| {
            let (stage, rates) = (&figures.stage, figures.rates);
            let failed = stage.failed.count();
            let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
            let mut cells = vec![count(stage.ops_ok).into(), Cell::new(count(failed), tone)];
            cells.push(known(rates, |rates| op_rate(rates.ops)).into());
            if moves_bytes {
                cells.push(known(rates, |rates| byte_rate(rates.bytes)).into());
            }
            if has_objects {
                cells.push(known(rates, |rates| object_rate(rates.objects)).into());
            }
            cells
        });
        let title = format!("{of} latency");
        self.named(&[&title, "p50", "p99", "mean", "max"], peers, |figures| {
            let latency = &figures.latency;
            let times = [latency.p50, latency.p99, latency.mean, latency.max];
            times.map(|time| known(time, duration).into()).into()
        });
    }

    /// Writes a table with a row for each, their names cut to what room there is.
    fn named(
        &mut self,
        heading: &[&str],
        peers: &[Peer<'_>],
        cells: impl Fn(&Figures) -> Vec<Cell>,
    ) {
        let table = |name_chars_max: usize| {
            let mut table = Table::new(heading);
            for peer in peers {
                let name = elided(&harmless(&peer.name), name_chars_max);
                table.row(&name, Tone::Plain, cells(peer.figures));
            }
            table
        };
        let room = self.width.saturating_sub(2 + table(usize::MAX).width_right());
        let table = table(room.max(NAME_CHARS_MIN));
        self.table(&table);
    }

    /// Writes every percentile of latency and time to first byte, as many columns side by side as
    /// there is room for.
    fn percentiles(&mut self) {
        let columns = self.report.row.analysis.kinds.iter().flat_map(|kind| {
            let name = |time: &str| format!("{} {time}", kind.kind.name());
            let figures = &kind.figures;
            // In an open loop both are shown, also where every operation started on time.
            let service = figures.schedule_delay.as_ref().map(|_| figures.service());
            let service = service.map(|times| (name("service"), times));
            let latency = std::iter::once((name("latency"), &figures.latency));
            let ttfb = (name("TTFB"), &figures.ttfb);
            let parts = figures
                .parts
                .as_ref()
                .map(|parts| [(name("assign"), &parts.assign), (name("upload"), &parts.upload)]);
            latency.chain(service).chain([ttfb]).chain(parts.into_iter().flatten())
        });
        let columns: Vec<(String, &Times)> =
            columns.filter(|(_, times)| times.samples > 0).collect();
        let mut left = &columns[..];
        while !left.is_empty() {
            let mut used = PERCENTILES.len();
            let fits = left.iter().take_while(|(name, _)| {
                used += 2 + name.chars().count().max(TIME_CHARS_MAX);
                used <= self.width
            });
            let (now, later) = left.split_at(fits.count().max(1));
            self.table(&percentile_table(now));
            left = later;
        }
    }

    /// Writes what depends on the size, or in one line that there is but one class.
    fn sizes(&mut self, kind: &KindDetails) {
        let name = kind.kind.name();
        let mut times =
            Table::new(&[&format!("{name} sizes"), "operations", "p50", "p99", "TTFB p50"]);
        let mut rates = Table::new(&[
            &format!("{name} MiB/s per op"),
            "average",
            "median",
            "slow 1 %",
            "fastest",
        ]);
        match &kind.sizes[..] {
            [] => return,
            [only] => {
                self.out.push('\n');
                let text = format!("{name} sizes   {}\n", one_class(only));
                self.out.push_str(&text);
                return;
            }
            _ => {}
        }
        for class in &kind.sizes {
            let label = class_name(class);
            let (latency, ttfb) = (&class.latency, &class.ttfb);
            let each = [latency.p50, latency.p99, ttfb.p50].map(|time| known(time, duration));
            let cells = std::iter::once(count(latency.samples)).chain(each);
            times.row(&label, Tone::Plain, cells.map(Cell::from));
            let whole = |rate: Option<u64>| rate.map(|rate| rate as f64);
            let rate = &class.rate;
            let each = [rate.average, whole(rate.p50), whole(rate.p99_slow), whole(rate.max)];
            let each = each.map(|rate| known(rate, |rate| number(rate / f64::from(1 << 20))));
            rates.row(&label, Tone::Plain, each.map(Cell::from));
        }
        self.table(&times);
        self.table(&rates);
    }

    /// Writes the first and the last access of each object.
    fn accesses(&mut self, kind: &KindDetails) {
        let Some(access) = &kind.access else { return };
        self.heading(&accesses_heading(kind.kind, access));
        let mut table = Table::new(&["access", "p50", "p90", "p99", "max", "mean ± deviation"]);
        let rows: [(&str, &Times); 4] = [
            ("first latency", &access.first),
            ("last latency", &access.last),
            ("first TTFB", &access.first_ttfb),
            ("last TTFB", &access.last_ttfb),
        ];
        for (name, times) in rows.into_iter().filter(|(_, times)| times.samples > 0) {
            let figures = [times.p50, times.p90, times.p99, times.max];
            let figures = figures.map(|value| known(value, duration));
            let cells = figures.into_iter().chain([words::spread(times)]).map(Cell::from);
            table.row(name, Tone::Plain, cells);
        }
        table.write(self.paint, self.out);
    }

    /// Writes each segment in which operations failed.
    fn failures(&mut self) {
        let (report, analysis) = (self.report, &self.report.row.analysis);
        let all = analysis.total.stage.failed.count();
        if all == 0 {
            return;
        }
        let segment = duration(analysis.segment).replace(".00", "");
        self.heading(&format!("failures over time, by {segment} from the start of the span"));
        let failing = self.details.series.iter().filter(|row| row.failed.count() > 0);
        let failing: Vec<_> = failing.collect();
        for row in failing.iter().take(SEGMENTS_FAILED_MAX) {
            let at = words::moment(report.wall_time(row.start), report.utc_offset_seconds);
            let offset = duration(row.start.since(analysis.span.start));
            let classes = row.failed.classes();
            let classes =
                classes.map(|(class, failed)| format!("{} {}", count(failed), class.name()));
            let lead = format!("  {at}  {:<9}  ", format!("+{offset}"));
            paragraph(&lead, &classes.collect::<Vec<_>>().join(", "), self.width, self.out);
        }
        let sum = |rows: &[&SegmentRow]| -> u64 { rows.iter().map(|row| row.failed.count()).sum() };
        let more = failing.get(SEGMENTS_FAILED_MAX..).unwrap_or_default();
        if !more.is_empty() {
            let segments = plural(more.len() as u64, "more segment");
            let failures = plural(sum(more), "failure");
            self.out.push_str(&format!("  and {segments} with {failures}\n"));
        }
        let outside = all - sum(&failing);
        if outside > 0 {
            self.out.push_str(&format!("  {} outside every whole segment\n", count(outside)));
        }
    }
}

fn percentile_table(columns: &[(String, &Times)]) -> Table {
    let names = columns.iter().map(|(name, _)| &**name);
    let mut table = Table::new(&std::iter::once(PERCENTILES).chain(names).collect::<Vec<_>>());
    let mut row = |name: &str, of: &dyn Fn(usize) -> Option<Duration>| {
        let cells = (0..columns.len()).map(|column| Cell::from(known(of(column), duration)));
        table.row(name, Tone::Plain, cells);
    };
    row("min", &|column| columns[column].1.min);
    for percent in Times::PERCENTS {
        row(&format!("p{percent}"), &|column| columns[column].1.percentile(percent));
    }
    row("max", &|column| columns[column].1.max);
    table
}

fn accesses_heading(kind: OpKind, access: &AccessSummary) -> String {
    let of = match access.sampled_one_in {
        1 => String::new(),
        sampled => format!(", a sample of 1 in {}", count(sampled)),
    };
    let objects = plural(access.objects_count, "object");
    format!("{}: first and last access of {objects}{of}", kind.name())
}

/// Returns the size of all that are of one class.
fn one_class(class: &SizeClass) -> String {
    let (smallest, largest) = (class.bytes_smallest, class.bytes_largest);
    if smallest == largest {
        return format!("{} each", bytes(smallest));
    }
    let mean = class.bytes.checked_div(class.latency.samples);
    format!("{} to {}, {} on average", bytes(smallest), bytes(largest), known(mean, bytes))
}

/// Returns a class as its smallest size and the one that is too large: `512 KiB – 1 MiB`.
fn class_name(class: &SizeClass) -> String {
    let beyond = u128::from(class.bytes_max) + 1;
    match class.bytes_min {
        0 => "0 B".to_owned(),
        smallest => format!("{} – {}", power_of_two(smallest.into()), power_of_two(beyond)),
    }
}

/// Returns a power of two with its binary unit: `512 KiB`.
fn power_of_two(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = bytes.trailing_zeros() as usize;
    format!("{} {}", 1 << (power % 10), UNITS[power / 10])
}

#[cfg(test)]
#[path = "detail_tests.rs"]
mod tests;
