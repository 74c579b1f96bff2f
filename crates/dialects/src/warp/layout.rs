//! A recording analysed by warp's method, in the layout of warp's own report.

mod table;
pub(super) mod words;

#[cfg(test)]
pub(super) mod tests;

use std::fmt::{self, Write};

use plimsoll_analysis::warp::{
    WarpAccess, WarpAnalysis, WarpFigures, WarpHostRequests, WarpKind, WarpMixed, WarpRates,
    WarpRequests, WarpSegment, WarpSizeClass, WarpSizes, WarpSource, WarpThroughput, WarpTimes,
};

pub use table::segments_tsv;

use words::{clock, date_time, go_duration, millis, rate, rounded_millis, size, whole_seconds};

/// The names that an analysis refers to by number.
#[derive(Clone, Copy, Debug)]
pub struct WarpNames<'a> {
    /// The endpoints.
    pub endpoints: &'a [String],
    /// The clients' ids.
    pub clients: &'a [String],
}

impl WarpNames<'_> {
    pub(super) fn endpoint(&self, id: plimsoll_model::EndpointId) -> &str {
        self.endpoints.get(usize::from(id.0)).map_or("", String::as_str)
    }

    fn source(&self, source: WarpSource) -> String {
        match source {
            WarpSource::Endpoint(id) => self.endpoint(id).to_owned(),
            WarpSource::Client(id) => {
                let name = self.clients.get(usize::from(id)).map_or("", String::as_str);
                format!("Client_{name}")
            }
        }
    }
}

/// Returns the report; times of day are `utc_offset_seconds` east of UTC.
pub fn text(analysis: &WarpAnalysis, names: WarpNames<'_>, utc_offset_seconds: i32) -> String {
    let mut page =
        Page { text: String::new(), names, offset: utc_offset_seconds, verbose: analysis.verbose };
    // Writing to a String cannot fail.
    let _ = page.analysis(analysis);
    page.text
}

struct Page<'a> {
    text: String,
    names: WarpNames<'a>,
    offset: i32,
    verbose: bool,
}

impl Page<'_> {
    fn analysis(&mut self, analysis: &WarpAnalysis) -> fmt::Result {
        match &analysis.mixed {
            Some(mixed) => self.mixed(mixed, &analysis.kinds),
            None => analysis.kinds.iter().try_for_each(|kind| self.single(kind)),
        }
    }

    fn rule(&mut self) -> fmt::Result {
        writeln!(self.text, "----------------------------------------")
    }

    fn single(&mut self, kind: &WarpKind) -> fmt::Result {
        writeln!(self.text)?;
        self.rule()?;
        self.heading(kind)?;
        self.errors(kind)?;
        let Some(figures) = &kind.figures else {
            return self.skipped(kind);
        };
        if let Some(requests) = &figures.requests {
            writeln!(self.text)?;
            self.requests(requests)?;
            writeln!(self.text, "\nThroughput:")?;
        }
        write!(self.text, "* Average: {}", average(&figures.throughput))?;
        match self.verbose {
            true => writeln!(self.text, " ({})", whole_seconds(figures.throughput.millis()))?,
            false => writeln!(self.text)?,
        }
        if !figures.by_host.is_empty() {
            self.by_host(&figures.by_host, "")?;
        }
        self.segments(&figures.throughput)
    }

    fn skipped(&mut self, kind: &WarpKind) -> fmt::Result {
        writeln!(
            self.text,
            "Skipping {} too few samples. Longer benchmark run required for reliable results.",
            kind.kind.name()
        )
    }

    fn heading(&mut self, kind: &WarpKind) -> fmt::Result {
        write!(self.text, "Operation: {}", kind.kind.name())?;
        let Some(figures) = &kind.figures else {
            return writeln!(self.text, ". Concurrency: 0");
        };
        let objects = figures.objects_per_operation;
        if !self.verbose {
            if objects <= 1 {
                write!(self.text, ". Concurrency: {}", figures.concurrency)?;
            }
            return writeln!(self.text);
        }
        let ran = figures.ended.since(figures.started);
        write!(self.text, " ({}). Ran {}.", kind.operations, go_duration(ran, 1_000_000_000))?;
        if objects > 1 {
            write!(self.text, " Objects per operation: {objects}.")?;
        }
        if let Some(bytes) = one_size(figures) {
            write!(self.text, " Size: {bytes} bytes.")?;
        }
        write!(self.text, " Concurrency: {}.", figures.concurrency)?;
        if figures.hosts > 1 {
            write!(self.text, " Hosts: {}.", figures.hosts)?;
        }
        if figures.clients > 1 {
            write!(self.text, " Warp Instances: {}.", figures.clients)?;
        }
        writeln!(self.text)
    }

    fn errors(&mut self, kind: &WarpKind) -> fmt::Result {
        if kind.errors == 0 {
            return Ok(());
        }
        writeln!(self.text, "Errors: {}", kind.errors)?;
        if !self.verbose {
            return Ok(());
        }
        writeln!(self.text, "First Errors:")?;
        for error in &kind.first_errors {
            let (endpoint, at) = (self.names.endpoint(error.endpoint), error.at);
            let at = clock(at, self.offset);
            writeln!(self.text, " * {endpoint}, {at}: {}", error.text)?;
        }
        Ok(())
    }

    fn requests(&mut self, requests: &WarpRequests) -> fmt::Result {
        match &requests.sizes {
            WarpSizes::Single(single) => {
                writeln!(self.text, "Requests considered: {}:", requests.considered)?;
                let Some(times) = &single.times else {
                    return writeln!(self.text, "Not enough requests");
                };
                self.access(" * ", " * TTFB: ", times)?;
                let accesses = [("First", &single.first_access), ("Last", &single.last_access)];
                for (which, access) in accesses {
                    if let Some(access) = access {
                        let ttfb = format!(" * {which} Access TTFB: ");
                        self.access(&format!(" * {which} Access: "), &ttfb, access)?;
                    }
                }
            }
            WarpSizes::Multi { bytes_mean, classes } => {
                let considered = requests.considered;
                writeln!(
                    self.text,
                    "Requests considered: {considered}. Multiple sizes, average {bytes_mean} bytes:"
                )?;
                classes.iter().try_for_each(|class| self.size_class(class))?;
            }
        }
        self.requests_by_host(&requests.by_host)
    }

    fn access(&mut self, head: &str, ttfb_head: &str, access: &WarpAccess) -> fmt::Result {
        let times = &access.durations;
        let at = |percent| millis(times.percentile(percent));
        let (average, std_dev) = (millis(times.average), millis(times.std_dev));
        write!(self.text, "{head}Avg: {average}, 50%: {}, 90%: {}, ", at(50), at(90))?;
        write!(self.text, "99%: {}, Fastest: {}, Slowest: {}, ", at(99), at(0), at(100))?;
        writeln!(self.text, "StdDev: {std_dev}")?;
        match &access.ttfb {
            Some(ttfb) => self.ttfb(ttfb_head, ttfb),
            None => Ok(()),
        }
    }

    fn ttfb(&mut self, head: &str, ttfb: &WarpTimes) -> fmt::Result {
        let at = |percent| rounded_millis(ttfb.percentile(percent));
        let (average, std_dev) = (rounded_millis(ttfb.average), rounded_millis(ttfb.std_dev));
        write!(self.text, "{head}Avg: {average}, Best: {}, 25th: {}, ", at(0), at(25))?;
        write!(self.text, "Median: {}, 75th: {}, 90th: {}, ", at(50), at(75), at(90))?;
        writeln!(self.text, "99th: {}, Worst: {} StdDev: {std_dev}", at(99), at(100))
    }

    fn size_class(&mut self, class: &WarpSizeClass) -> fmt::Result {
        let (from, to) = (size(class.bytes_from), size(class.bytes_to));
        writeln!(self.text, "\nRequest size {from} -> {to}. Requests - {}:", class.requests)?;
        writeln!(self.text, " * Throughput: {}", rates(&class.rates))?;
        if let Some(ttfb) = &class.ttfb {
            self.ttfb(" * TTFB: ", ttfb)?;
        }
        match &class.first_access {
            Some(first) => writeln!(self.text, " * First Access: {}", rates(first)),
            None => Ok(()),
        }
    }

    fn requests_by_host(&mut self, hosts: &[WarpHostRequests]) -> fmt::Result {
        if hosts.is_empty() {
            return Ok(());
        }
        writeln!(self.text, "\nRequests by host:")?;
        for host in hosts {
            let name = self.names.source(host.source);
            // warp ends this line with a space.
            writeln!(self.text, " * {name} - {} requests: ", host.requests)?;
            let Some(WarpAccess { durations, ttfb }) = &host.times else { continue };
            let at = |percent| millis(durations.percentile(percent));
            let (average, std_dev) = (millis(durations.average), millis(durations.std_dev));
            write!(self.text, "\t- Avg: {average} Fastest: {} Slowest: {} ", at(0), at(100))?;
            writeln!(self.text, "50%: {} 90%: {} StdDev: {std_dev}", at(50), at(90))?;
            if let Some(ttfb) = ttfb {
                self.ttfb("\t- First Byte: ", ttfb)?;
            }
        }
        Ok(())
    }

    fn by_host(&mut self, hosts: &[(WarpSource, WarpThroughput)], stop: &str) -> fmt::Result {
        writeln!(self.text, "\nThroughput by host:")?;
        for (source, throughput) in hosts {
            let (name, average) = (self.names.source(*source), average(throughput));
            if !self.verbose || !stop.is_empty() {
                writeln!(self.text, " * {name}: Avg: {average}{stop}")?;
                continue;
            }
            // warp has two spaces here.
            writeln!(self.text, " * {name}:\n\t- Average:  {average}")?;
            if let Some(segments) = &throughput.segments {
                writeln!(self.text, "\t- Fastest: {}", main_rate(segments.fastest()))?;
                writeln!(self.text, "\t- 50% Median: {}", main_rate(segments.median()))?;
                writeln!(self.text, "\t- Slowest: {}", main_rate(segments.slowest()))?;
            }
        }
        Ok(())
    }

    fn segments(&mut self, throughput: &WarpThroughput) -> fmt::Result {
        let Some(segments) = &throughput.segments else { return Ok(()) };
        let (count, length) = (segments.by_rate.len(), go_duration(segments.length, 1));
        writeln!(self.text, "\nThroughput, split into {count} x {length}:")?;
        let shown = [
            ("Fastest", segments.fastest()),
            ("50% Median", segments.median()),
            ("Slowest", segments.slowest()),
        ];
        for (name, segment) in shown {
            write!(self.text, " * {name}: {}", both_rates(segment))?;
            if self.verbose {
                let start = clock(segment.start, self.offset);
                write!(self.text, " ({length}, starting {start})")?;
            }
            writeln!(self.text)?;
        }
        Ok(())
    }

    fn mixed(&mut self, mixed: &WarpMixed, kinds: &[WarpKind]) -> fmt::Result {
        writeln!(self.text, "Mixed operations.")?;
        for kind in kinds {
            self.mixed_kind(kind, mixed.operations)?;
        }
        if let Some(total) = &mixed.throughput {
            let (average, ran) = (average(total), whole_seconds(total.millis()));
            writeln!(self.text, "Cluster Total: {average} over {ran}.")?;
        }
        if !mixed.by_host.is_empty() {
            self.by_host(&mixed.by_host, ".")?;
        }
        Ok(())
    }

    fn mixed_kind(&mut self, kind: &WarpKind, of: usize) -> fmt::Result {
        let percent = kind.operations as f64 * 100.0 / of.max(1) as f64;
        let name = kind.kind.name();
        let Some(figures) = &kind.figures else {
            writeln!(self.text, "Operation: {name}, {percent:.0}%, Concurrency: 0")?;
            self.errors(kind)?;
            self.skipped(kind)?;
            return writeln!(self.text);
        };
        let ran = go_duration(figures.ended.since(figures.started), 1_000_000_000);
        let concurrency = figures.concurrency;
        let Some(requests) = &figures.requests else {
            let head = format!("{name}, {percent:.0}%, Concurrency: {concurrency}, Ran {ran}.");
            writeln!(self.text, "Operation: {head}")?;
            self.errors(kind)?;
            return writeln!(self.text, " * Throughput: {}\n", average(&figures.throughput));
        };
        self.rule()?;
        write!(self.text, "Operation: {name} - total: {}, {percent:.1}%, ", kind.operations)?;
        if let Some(bytes) = one_size(figures) {
            write!(self.text, "Size: {bytes} bytes, ")?;
        }
        let started = date_time(figures.started, self.offset, 3);
        writeln!(self.text, "Concurrency: {concurrency}, Ran {ran}, starting {started}")?;
        self.errors(kind)?;
        match figures.by_host.as_slice() {
            [] => writeln!(self.text, " * Throughput: {}", average(&figures.throughput))?,
            hosts => self.by_host(hosts, ".")?,
        }
        writeln!(self.text)?;
        self.requests(requests)?;
        writeln!(self.text)
    }
}

/// Returns the size that all requests share, if it is worth telling.
fn one_size(figures: &WarpFigures) -> Option<u64> {
    match &figures.requests.as_ref()?.sizes {
        WarpSizes::Single(single) => (single.bytes > 0).then_some(single.bytes),
        WarpSizes::Multi { .. } => None,
    }
}

fn average(throughput: &WarpThroughput) -> String {
    let (mib, objects) = (throughput.mib_per_second(), throughput.objects_per_second());
    match (mib, objects) {
        (Some(mib), Some(objects)) if throughput.shares.bytes > 0 => {
            format!("{mib:.2} MiB/s, {objects:.2} obj/s")
        }
        (_, Some(objects)) => format!("{objects:.2} obj/s"),
        _ => "– obj/s".to_owned(),
    }
}

/// Returns a segment's objects per second; where nothing succeeded, operations per second under
/// the same name, as warp has it.
fn objects(segment: &WarpSegment) -> String {
    match segment.objects_per_second() {
        objects if objects > 0.0 => format!("{objects:.2} obj/s"),
        _ => format!("{:.2} obj/s", segment.ops_ended_per_second()),
    }
}

fn both_rates(segment: &WarpSegment) -> String {
    match segment.shares.bytes {
        0 => objects(segment),
        _ => format!("{}, {}", rate(segment.bytes_per_second()), objects(segment)),
    }
}

fn main_rate(segment: &WarpSegment) -> String {
    match segment.shares.bytes {
        0 => objects(segment),
        _ => rate(segment.bytes_per_second()),
    }
}

fn rates(rates: &WarpRates) -> String {
    format!(
        "Average: {}, 50%: {}, 90%: {}, 99%: {}, Fastest: {}, Slowest: {}",
        rate(rates.average),
        rate(rates.p50),
        rate(rates.p90),
        rate(rates.p99),
        rate(rates.fastest),
        rate(rates.slowest)
    )
}
