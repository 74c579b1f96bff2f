//! warp's default report: what it prints at the end of a benchmark, and for `analyze` without
//! `--full`. Its only source is warp's document of sums.

use std::fmt::{self, Write};

use plimsoll_foreign::warp::aggregated::{
    Aggregate, Aggregated, FirstByte, Segmented, SingleSized, SizeClass, Throughput, Window,
};

use super::layout::words::{self, PICKS, figures, go_duration, rate, whole_seconds};

const MIB: f64 = (1u64 << 20) as f64;
const RULE: &str = "──────────────────────────────────";

/// What is shown of a document.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportShown<'a> {
    /// Whether counts, sizes and times of day are.
    pub details: bool,
    /// Only this type of operation.
    pub op: Option<&'a str>,
}

/// Returns the report as text that ends with an empty line.
pub fn text(document: &Aggregated, shown: ReportShown<'_>) -> String {
    let mut page = Page { text: String::new(), details: shown.details };
    // Writing to a String cannot fail.
    let _ = page.document(document, shown);
    page.text
}

/// So many milliseconds have a second that is not left out at an end.
const WITH_SECONDS_MS: u64 = 6_000;

/// Returns a sentence on each type of operation of which warp's report has no figures, as it ran
/// for too short, or as a clock was wrong: what there is to tell of it all the same.
pub fn skipped(document: &Aggregated) -> Vec<String> {
    let all = document.by_op_type.iter().filter(|(_, of)| segments(of).is_none());
    all.map(|(name, of)| sentence(name, of)).collect()
}

fn sentence(name: &str, of: &Aggregate) -> String {
    let (requests, errors) = (number(of.total_requests), number(of.total_errors));
    let page = Page { text: String::new(), details: true };
    let mut text = format!("{name}: {requests} requests, {errors} failed");
    if let Some(throughput) = &of.throughput {
        text += &format!("; {}", page.average(throughput));
        let lasted = throughput.measure_duration_millis;
        if throughput.segmented.is_none() && lasted >= Some(WITH_SECONDS_MS) {
            text += "; its operations lie too far apart for figures by the second: was the clock \
                     of a client wrong?";
        }
    }
    if let Some(requests) = Requests::of(of.requests_by_client.values().flatten()) {
        text += &format!("; {}", times(requests.times));
    }
    text
}

struct Page {
    text: String,
    details: bool,
}

impl Page {
    fn document(&mut self, document: &Aggregated, shown: ReportShown<'_>) -> fmt::Result {
        let is_shown = |name: &str| shown.op.is_none_or(|op| op.eq_ignore_ascii_case(name));
        let kinds = || document.by_op_type.iter().filter(|(name, _)| is_shown(name));
        for (at, (name, of)) in kinds().enumerate() {
            if at > 0 {
                writeln!(self.text, "\n{RULE}\n")?;
            }
            self.aggregate(name, of, true)?;
        }
        writeln!(self.text)?;
        match &document.total {
            Some(total) if document.by_op_type.len() > 1 && all_overlap(document) => {
                if kinds().next().is_some() {
                    writeln!(self.text, "\n{RULE}\n")?;
                }
                self.aggregate("Total", total, false)
            }
            _ => Ok(()),
        }
    }

    fn aggregate(&mut self, name: &str, of: &Aggregate, has_requests: bool) -> fmt::Result {
        let Some((throughput, segmented)) = segments(of) else { return self.skip(name, of) };
        self.head(name, of, throughput)?;
        writeln!(self.text, " * Average: {}", self.average(throughput))?;
        self.errors(of, " * Errors:", " - First Errors:", "   *")?;
        if has_requests {
            self.requests(of.requests_by_client.values().flatten())?;
        }
        writeln!(self.text)?;
        self.hosts(of)?;
        self.clients(of, has_requests)?;
        self.split(throughput, segmented)
    }

    fn skip(&mut self, name: &str, of: &Aggregate) -> fmt::Result {
        writeln!(
            self.text,
            "Skipping {name} too few samples. Longer benchmark run required for reliable results.\n"
        )?;
        self.errors(of, "Errors:", "- First Errors:", " *")?;
        if number(of.total_errors) > 0 { writeln!(self.text) } else { Ok(()) }
    }

    fn errors(&mut self, of: &Aggregate, head: &str, first: &str, each: &str) -> fmt::Result {
        let errors = number(of.total_errors);
        if errors == 0 {
            return Ok(());
        }
        writeln!(self.text, "{head} {errors}")?;
        if !self.details {
            return Ok(());
        }
        writeln!(self.text, "{first}")?;
        of.first_errors.iter().try_for_each(|error| writeln!(self.text, "{each} {error}"))
    }

    fn head(&mut self, name: &str, of: &Aggregate, throughput: &Throughput) -> fmt::Result {
        let concurrency = number(of.concurrency);
        let ran = go_duration(millis(number(throughput.measure_duration_millis) as f64), 1);
        if !self.details {
            return writeln!(self.text, "Report: {name}. Concurrency: {concurrency}. Ran: {ran}");
        }
        let (requests, objects) = (number(of.total_requests), number(of.total_objects));
        let start = clock(throughput.start_time.as_deref());
        writeln!(
            self.text,
            "Report: {name} ({requests} reqs). Ran Duration: {ran}, starting {start}"
        )?;
        // Where failures are left out, so are their objects.
        let good = requests.saturating_sub(number(of.total_errors)).max(1);
        let each = if objects < requests { objects / good } else { objects / requests.max(1) };
        write!(self.text, " * Objects per request: {each}. ")?;
        let bytes = number(of.total_bytes);
        if let Some(size) = bytes.checked_div(objects).filter(|_| bytes > 0) {
            write!(self.text, "Size: {size} bytes. ")?;
        }
        write!(self.text, "Concurrency: {concurrency}.")?;
        for (name, list) in [("Hosts", &of.hosts), ("Warp Instances", &of.clients)] {
            if list.len() > 1 {
                write!(self.text, " {name}: {}.", list.len())?;
            }
        }
        writeln!(self.text)
    }

    fn requests<'a>(&mut self, windows: impl Iterator<Item = &'a Window> + Clone) -> fmt::Result {
        if let Some(Requests { times: of, first_byte }) = Requests::of(windows.clone()) {
            writeln!(self.text, " * Reqs: {}", times(of))?;
            self.first_byte(first_byte)?;
        }
        for class in classes(windows) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (from, to) = (text(&class[0].min_size_string), text(&class[0].max_size_string));
            let requests: u64 = class.iter().filter_map(|class| class.requests).sum();
            writeln!(self.text, "\nRequest size {from} -> {to} . Requests: {requests}")?;
            let rates = joined(RATES, class.iter().map(|of| (of.figures(), of.merged_entries)));
            // warp ends this line with a space.
            writeln!(self.text, " * Reqs: {} ", figures(&words::TIMES, rates, rate))?;
            let firsts = class.iter().map(|of| (&of.first_byte, of.merged_entries));
            self.first_byte(first_byte(firsts))?;
        }
        Ok(())
    }

    fn first_byte(&mut self, of: Option<[f64; 9]>) -> fmt::Result {
        let time = |value: f64| go_duration(millis(value.round()), 1_000_000);
        match of {
            Some(of) => writeln!(self.text, " * TTFB: {}", figures(&words::FIRST_BYTE, of, time)),
            None => Ok(()),
        }
    }

    fn hosts(&mut self, of: &Aggregate) -> fmt::Result {
        if of.hosts.len() < 2 {
            return Ok(());
        }
        writeln!(self.text, "Throughput by host:")?;
        for host in &of.hosts {
            let Some(throughput) = of.throughput_by_host.get(host) else { continue };
            write!(self.text, " * {host}: Avg: {}", self.average(throughput))?;
            if number(throughput.errors) > 0 {
                write!(self.text, " - Errors: {}", number(throughput.errors))?;
            }
            writeln!(self.text)?;
        }
        writeln!(self.text)
    }

    fn clients(&mut self, of: &Aggregate, has_requests: bool) -> fmt::Result {
        if of.clients.len() < 2 {
            return Ok(());
        }
        writeln!(self.text, "Throughput by client:")?;
        for (at, client) in of.clients.iter().enumerate() {
            let Some(throughput) = of.throughput_by_client.get(client) else { continue };
            writeln!(self.text, "Client {} throughput: {}", at + 1, self.average(throughput))?;
            if has_requests && self.details {
                let windows = of.requests_by_client.get(client);
                self.requests(windows.into_iter().flatten())?;
                writeln!(self.text)?;
            }
        }
        writeln!(self.text)
    }

    fn split(&mut self, throughput: &Throughput, segmented: &Segmented) -> fmt::Result {
        writeln!(self.text, "Throughput, split into {} x 1s:", segmented.segments.len())?;
        let Segmented { fastest_bps, fastest_ops, fastest_start, .. } = segmented;
        let Segmented { median_bps, median_ops, median_start, .. } = segmented;
        let Segmented { slowest_bps, slowest_ops, slowest_start, .. } = segmented;
        let unit = unit(throughput);
        let length = millis(number(segmented.segment_duration_millis) as f64);
        let picked = [
            (fastest_bps, fastest_ops, fastest_start),
            (median_bps, median_ops, median_start),
            (slowest_bps, slowest_ops, slowest_start),
        ];
        for (name, (bytes, objects, start)) in PICKS.into_iter().zip(picked) {
            write!(self.text, " * {name}: ")?;
            if let Some(bytes) = bytes.filter(|bytes| *bytes > 0.0) {
                write!(self.text, "{}, ", rate(bytes))?;
            }
            write!(self.text, "{:.2} {unit}", objects.unwrap_or_default())?;
            if self.details {
                let (length, start) = (go_duration(length, 1), clock(start.as_deref()));
                write!(self.text, " ({length}, starting {start})")?;
            }
            writeln!(self.text)?;
        }
        Ok(())
    }

    fn average(&self, throughput: &Throughput) -> String {
        let [bytes, amount] = per_second(throughput);
        let mut text = String::new();
        if bytes > 0.0 {
            text += &format!("{:.2} MiB/s, ", bytes / MIB);
        }
        text += &format!("{amount:.2} {}", unit(throughput));
        let errors = number(throughput.errors);
        if errors > 0 {
            text += &format!(", {errors} errors");
        }
        if self.details {
            let length = number(throughput.measure_duration_millis);
            text += &format!(" ({})", whole_seconds(length));
        }
        text
    }
}

/// Returns bytes, and objects or what is counted instead of them.
pub(super) fn per_second(throughput: &Throughput) -> [f64; 2] {
    let objects = throughput.objects.filter(|objects| *objects > 0.0);
    let amount = objects.unwrap_or(number(throughput.ops) as f64);
    [throughput.bytes.unwrap_or_default(), amount].map(|amount| {
        match number(throughput.measure_duration_millis) {
            0 => 0.0,
            length => amount * 1_000.0 / length as f64,
        }
    })
}

fn number(value: Option<u64>) -> u64 {
    value.unwrap_or_default()
}

fn millis(millis: f64) -> std::time::Duration {
    std::time::Duration::from_nanos((millis * 1e6) as u64)
}

/// Returns what operations are counted in: where none has an object, by themselves.
fn unit(throughput: &Throughput) -> &'static str {
    let no_objects = throughput.objects.is_none_or(|objects| objects == 0.0);
    if no_objects && number(throughput.ops) > 0 { "ops/s" } else { "obj/s" }
}

/// Returns the throughput and its seconds, where there are enough for warp to tell figures.
pub(super) fn segments(of: &Aggregate) -> Option<(&Throughput, &Segmented)> {
    let throughput = of.throughput.as_ref()?;
    let segmented = throughput.segmented.as_ref()?;
    (segmented.segments.len() >= 2).then_some((throughput, segmented))
}

/// Tells whether each two types of operation overlap in time.
fn all_overlap(document: &Aggregated) -> bool {
    let kinds = || document.by_op_type.values();
    // Times of one file have one zone, and so the order of their texts but for cut zeros.
    let at = |time: &Option<String>| time.as_deref().map(instant).unwrap_or_default();
    kinds().all(|a| kinds().all(|b| at(&a.start_time) <= at(&b.end_time)))
}

/// Returns what instants of one zone are ordered by.
fn instant(time: &str) -> (String, String) {
    let (second, rest) = time.split_at_checked(19).unwrap_or((time, ""));
    let fraction: String = rest.chars().skip(1).take_while(char::is_ascii_digit).collect();
    (second.to_owned(), fraction)
}

/// Returns the time of day of an instant and its zone.
fn clock(time: Option<&str>) -> String {
    let time = time.unwrap_or_default();
    let second = time.get(11..19).unwrap_or("00:00:00");
    let rest = time.get(19..).unwrap_or_default();
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    match zone {
        "Z" | "" => format!("{second} UTC"),
        zone => format!("{second} {}", zone.replace(':', "")),
    }
}

/// How a figure of several windows comes from theirs.
#[derive(Clone, Copy)]
enum Join {
    /// As warp has it: each window counts alike.
    Mean,
    Least,
    Greatest,
}

use Join::{Greatest, Least, Mean};

/// In the order of the parts' figures.
const TIMES: [Join; 7] = [Mean, Mean, Mean, Mean, Least, Greatest, Mean];
const FIRST_BYTE: [Join; 9] = [Mean, Least, Mean, Mean, Mean, Mean, Mean, Greatest, Mean];
const RATES: [Join; 6] = [Mean, Mean, Mean, Mean, Greatest, Least];

/// Returns the figures of several windows, each of which may have been merged from some.
fn joined<const N: usize>(
    rules: [Join; N],
    windows: impl Iterator<Item = ([Option<f64>; N], Option<u64>)> + Clone,
) -> [f64; N] {
    let merged: u64 = windows.clone().filter_map(|(_, merged)| merged).sum();
    std::array::from_fn(|at| {
        let values = windows.clone().filter_map(|(figures, _)| figures[at]);
        let joined = match rules[at] {
            Mean => Some(values.sum::<f64>() / merged.max(1) as f64),
            Least => values.reduce(f64::min),
            Greatest => values.reduce(f64::max),
        };
        joined.unwrap_or_default()
    })
}

/// The figures of requests for objects of one size.
pub(super) struct Requests {
    /// Mean, percentiles, extremes and deviation of their times in milliseconds.
    pub(super) times: [f64; 7],
    /// Those of their times to first byte.
    pub(super) first_byte: Option<[f64; 9]>,
}

impl Requests {
    /// Returns the figures of the requests in some windows, if there are any.
    pub(super) fn of<'a>(windows: impl Iterator<Item = &'a Window>) -> Option<Self> {
        let windows = windows.filter_map(|window| window.single_sized_requests.as_ref());
        let all: Vec<&SingleSized> = windows.filter(|of| number(of.requests) > 0).collect();
        (!all.is_empty()).then(|| Self {
            times: joined(TIMES, all.iter().map(|of| (of.figures(), of.merged_entries))),
            first_byte: first_byte(all.iter().map(|of| (&of.first_byte, of.merged_entries))),
        })
    }
}

/// Returns the times to first byte of several windows, if there are any.
fn first_byte<'a>(
    windows: impl Iterator<Item = (&'a Option<FirstByte>, Option<u64>)> + Clone,
) -> Option<[f64; 9]> {
    let known = windows.filter_map(|(of, merged)| Some((of.as_ref()?.figures(), merged)));
    known.clone().next().map(|_| joined(FIRST_BYTE, known))
}

/// Returns the size classes of all windows by their sizes; a class that lies within another one is
/// part of it.
fn classes<'a>(windows: impl Iterator<Item = &'a Window>) -> Vec<Vec<&'a SizeClass>> {
    let mut groups: Vec<Vec<&SizeClass>> = Vec::new();
    let multi = windows.filter_map(|window| window.multi_sized_requests.as_ref());
    for class in multi.flat_map(|multi| &multi.by_size) {
        let holds = |group: &&mut Vec<&SizeClass>| {
            class.min_size >= group[0].min_size && class.max_size <= group[0].max_size
        };
        match groups.iter_mut().find(holds) {
            Some(group) => group.push(class),
            None => groups.push(vec![class]),
        }
    }
    groups.sort_by_key(|group| group[0].min_size);
    groups
}

fn times(of: [f64; 7]) -> String {
    figures(&words::TIMES, of, |millis| format!("{millis:.1}ms"))
}

#[cfg(test)]
mod tests;
