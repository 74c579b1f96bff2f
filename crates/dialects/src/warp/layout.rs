//! A recording analysed by warp's method, in the layout of warp's own report.

mod table;
pub(super) mod words;

#[cfg(test)]
pub(super) mod tests;

use std::fmt::{self, Write};

use plimsoll_analysis::warp::{
    Recording, WarpAccess, WarpAnalysis, WarpFigures, WarpHostRequests, WarpKind, WarpMixed,
    WarpMultiSize, WarpRates, WarpRequests, WarpSegment, WarpSizeClass, WarpSizes, WarpSource,
    WarpThroughput, WarpTimes,
};

pub use table::segments_tsv;

use words::{
    PICKS, clock, date_time, figures, go_duration, millis, rate, rounded_millis, size,
    whole_seconds,
};

/// Returns the report on a recording.
pub fn text(analysis: &WarpAnalysis, recording: &Recording<'_>) -> String {
    let mut page = Page { text: String::new(), recording, verbose: analysis.verbose };
    // Writing to a String cannot fail.
    let _ = page.analysis(analysis);
    page.text
}

struct Page<'a> {
    text: String,
    recording: &'a Recording<'a>,
    verbose: bool,
}

impl Page<'_> {
    fn source(&self, source: WarpSource) -> String {
        match source {
            WarpSource::Endpoint(id) => self.recording.endpoint(id).to_owned(),
            WarpSource::Client(number) => format!("Client_{}", self.recording.client(number)),
        }
    }

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
            let endpoint = self.recording.endpoint(error.endpoint);
            let at = clock(error.at, self.recording.utc_offset_seconds);
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
            WarpSizes::Multi(WarpMultiSize { bytes_mean, classes }) => {
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
        let times = access.durations.figures();
        writeln!(self.text, "{head}{}", figures(&words::TIMES, times, millis))?;
        match &access.ttfb {
            Some(ttfb) => self.ttfb(ttfb_head, ttfb),
            None => Ok(()),
        }
    }

    fn ttfb(&mut self, head: &str, ttfb: &WarpTimes) -> fmt::Result {
        let times = ttfb.first_byte_figures();
        writeln!(self.text, "{head}{}", figures(&words::FIRST_BYTE, times, rounded_millis))
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
            let name = self.source(host.source);
            // warp ends this line with a space.
            writeln!(self.text, " * {name} - {} requests: ", host.requests)?;
            let Some(WarpAccess { durations, ttfb }) = &host.times else { continue };
            let [average, p50, p90, _, fastest, slowest, std_dev] = durations.figures().map(millis);
            write!(self.text, "\t- Avg: {average} Fastest: {fastest} Slowest: {slowest} ")?;
            writeln!(self.text, "50%: {p50} 90%: {p90} StdDev: {std_dev}")?;
            if let Some(ttfb) = ttfb {
                self.ttfb("\t- First Byte: ", ttfb)?;
            }
        }
        Ok(())
    }

    fn by_host(&mut self, hosts: &[(WarpSource, WarpThroughput)], stop: &str) -> fmt::Result {
        writeln!(self.text, "\nThroughput by host:")?;
        for (source, throughput) in hosts {
            let (name, average) = (self.source(*source), average(throughput));
            if !self.verbose || !stop.is_empty() {
                writeln!(self.text, " * {name}: Avg: {average}{stop}")?;
                continue;
            }
            // warp has two spaces here.
            writeln!(self.text, " * {name}:\n\t- Average:  {average}")?;
            if let Some(segments) = &throughput.segments {
                for (name, segment) in PICKS.into_iter().zip(segments.picked()) {
                    writeln!(self.text, "\t- {name}: {}", main_rate(segment))?;
                }
            }
        }
        Ok(())
    }

    fn segments(&mut self, throughput: &WarpThroughput) -> fmt::Result {
        let Some(segments) = &throughput.segments else { return Ok(()) };
        let (count, length) = (segments.by_rate.len(), go_duration(segments.length, 1));
        writeln!(self.text, "\nThroughput, split into {count} x {length}:")?;
        for (name, segment) in PICKS.into_iter().zip(segments.picked()) {
            write!(self.text, " * {name}: {}", both_rates(segment))?;
            if self.verbose {
                let start = clock(segment.start, self.recording.utc_offset_seconds);
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
        let started = date_time(figures.started, self.recording.utc_offset_seconds, 3);
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
        WarpSizes::Multi(_) => None,
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
    const HEADS: [&str; 6] =
        ["Average: ", ", 50%: ", ", 90%: ", ", 99%: ", ", Fastest: ", ", Slowest: "];
    figures(&HEADS, *rates, rate)
}
