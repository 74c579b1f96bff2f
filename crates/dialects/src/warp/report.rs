//! warp's default report: what it prints at the end of a benchmark, and for `analyze` without
//! `--full`. Its only source is warp's document of sums.

use std::fmt::{self, Write};

use plimsoll_foreign::warp::aggregated::{
    Aggregate, Aggregated, FirstByte, Segmented, SingleSized, SizeClass, Throughput, Window,
};

use super::layout::words::{go_duration, rate};

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
    let windows = of.requests_by_client.values().flatten();
    let single: Vec<&SingleSized> =
        windows.filter_map(|window| window.single_sized_requests.as_ref()).collect();
    if !single.is_empty() {
        text += &format!("; {}", times(&merged(&single)));
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
        let single: Vec<&SingleSized> =
            windows.clone().filter_map(|window| window.single_sized_requests.as_ref()).collect();
        if number(merged(&single).requests) > 0 {
            let all = merged(&single);
            writeln!(self.text, " * Reqs: {}", times(&all))?;
            if let Some(first) = &all.first_byte {
                writeln!(self.text, " * TTFB: {}", first_byte(first))?;
            }
        }
        for class in classes(windows) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (from, to) = (text(&class.min_size_string), text(&class.max_size_string));
            let requests = number(class.requests);
            writeln!(self.text, "\nRequest size {from} -> {to} . Requests: {requests}")?;
            // warp ends this line with a space.
            writeln!(self.text, " * Reqs: {} ", rates(&class))?;
            if let Some(first) = &class.first_byte {
                writeln!(self.text, " * TTFB: {}", first_byte(first))?;
            }
        }
        Ok(())
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
        for (name, bytes, objects, start) in [
            ("Fastest", fastest_bps, fastest_ops, fastest_start),
            ("50% Median", median_bps, median_ops, median_start),
            ("Slowest", slowest_bps, slowest_ops, slowest_start),
        ] {
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
        let length = number(throughput.measure_duration_millis);
        let per_second = |amount: f64| match length {
            0 => 0.0,
            length => amount * 1_000.0 / length as f64,
        };
        let (bytes, objects) =
            (throughput.bytes.unwrap_or_default(), throughput.objects.unwrap_or_default());
        let mut text = String::new();
        if bytes > 0.0 {
            text += &format!("{:.2} MiB/s, ", per_second(bytes) / MIB);
        }
        let amount = if objects > 0.0 { objects } else { number(throughput.ops) as f64 };
        text += &format!("{:.2} {}", per_second(amount), unit(throughput));
        let errors = number(throughput.errors);
        if errors > 0 {
            text += &format!(", {errors} errors");
        }
        if self.details {
            text += &format!(" ({}s)", (length + 500) / 1_000);
        }
        text
    }
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
fn segments(of: &Aggregate) -> Option<(&Throughput, &Segmented)> {
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

/// Returns the means of the windows' figures, as warp tells them: each window counts alike.
fn merged(windows: &[&SingleSized]) -> SingleSized {
    let entries: u64 = windows.iter().map(|window| number(window.merged_entries)).sum();
    let mean = |of: &dyn Fn(&SingleSized) -> Option<f64>| {
        let sum: f64 = windows.iter().filter_map(|window| of(window)).sum();
        (entries > 0).then_some(sum / entries as f64)
    };
    let firsts: Vec<(&FirstByte, u64)> = windows
        .iter()
        .filter_map(|window| Some((window.first_byte.as_ref()?, number(window.merged_entries))))
        .collect();
    SingleSized {
        requests: Some(windows.iter().map(|window| number(window.requests)).sum()),
        dur_avg_millis: mean(&|window| window.dur_avg_millis),
        dur_median_millis: mean(&|window| window.dur_median_millis),
        dur_90_millis: mean(&|window| window.dur_90_millis),
        dur_99_millis: mean(&|window| window.dur_99_millis),
        std_dev_millis: mean(&|window| window.std_dev_millis),
        fastest_millis: least(windows.iter().filter_map(|window| window.fastest_millis)),
        slowest_millis: windows.iter().filter_map(|window| window.slowest_millis).reduce(f64::max),
        first_byte: (!firsts.is_empty()).then(|| merged_firsts(&firsts)),
        ..SingleSized::default()
    }
}

/// As [`merged`], of times to first byte.
fn merged_firsts(windows: &[(&FirstByte, u64)]) -> FirstByte {
    let entries: u64 = windows.iter().map(|(_, entries)| entries).sum();
    let mean = |of: &dyn Fn(&FirstByte) -> Option<f64>| {
        let sum: f64 = windows.iter().filter_map(|(window, _)| of(window)).sum();
        Some(sum / entries.max(1) as f64)
    };
    FirstByte {
        average_millis: mean(&|window| window.average_millis),
        fastest_millis: least(windows.iter().filter_map(|(window, _)| window.fastest_millis)),
        p25_millis: mean(&|window| window.p25_millis),
        median_millis: mean(&|window| window.median_millis),
        p75_millis: mean(&|window| window.p75_millis),
        p90_millis: mean(&|window| window.p90_millis),
        p99_millis: mean(&|window| window.p99_millis),
        slowest_millis: windows
            .iter()
            .filter_map(|(window, _)| window.slowest_millis)
            .reduce(f64::max),
        std_dev_millis: mean(&|window| window.std_dev_millis),
    }
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}

/// Returns the size classes of all windows by their sizes, with the means of the windows' speeds;
/// a class that lies within another one is part of it.
fn classes<'a>(windows: impl Iterator<Item = &'a Window>) -> Vec<SizeClass> {
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
    groups.iter().map(|group| joined(group)).collect()
}

fn joined(group: &[&SizeClass]) -> SizeClass {
    let entries: u64 = group.iter().map(|class| number(class.merged_entries)).sum();
    let mean = |of: &dyn Fn(&SizeClass) -> Option<f64>| {
        let sum: f64 = group.iter().filter_map(|class| of(class)).sum();
        Some(sum / entries.max(1) as f64)
    };
    let firsts: Vec<(&FirstByte, u64)> = group
        .iter()
        .filter_map(|class| Some((class.first_byte.as_ref()?, number(class.merged_entries))))
        .collect();
    SizeClass {
        requests: Some(group.iter().map(|class| number(class.requests)).sum()),
        merged_entries: Some(entries),
        bps_average: mean(&|class| class.bps_average),
        bps_median: mean(&|class| class.bps_median),
        bps_90: mean(&|class| class.bps_90),
        bps_99: mean(&|class| class.bps_99),
        bps_fastest: group.iter().filter_map(|class| class.bps_fastest).reduce(f64::max),
        bps_slowest: least(group.iter().filter_map(|class| class.bps_slowest)),
        first_byte: (!firsts.is_empty()).then(|| merged_firsts(&firsts)),
        ..group[0].clone()
    }
}

fn times(of: &SingleSized) -> String {
    let time = |millis: Option<f64>| format!("{:.1}ms", millis.unwrap_or_default());
    format!(
        "Avg: {}, 50%: {}, 90%: {}, 99%: {}, Fastest: {}, Slowest: {}, StdDev: {}",
        time(of.dur_avg_millis),
        time(of.dur_median_millis),
        time(of.dur_90_millis),
        time(of.dur_99_millis),
        time(of.fastest_millis),
        time(of.slowest_millis),
        time(of.std_dev_millis)
    )
}

fn first_byte(of: &FirstByte) -> String {
    let time =
        |value: Option<f64>| go_duration(millis(value.unwrap_or_default().round()), 1_000_000);
    format!(
        "Avg: {}, Best: {}, 25th: {}, Median: {}, 75th: {}, 90th: {}, 99th: {}, Worst: {} StdDev: {}",
        time(of.average_millis),
        time(of.fastest_millis),
        time(of.p25_millis),
        time(of.median_millis),
        time(of.p75_millis),
        time(of.p90_millis),
        time(of.p99_millis),
        time(of.slowest_millis),
        time(of.std_dev_millis)
    )
}

fn rates(of: &SizeClass) -> String {
    let speed = |value: Option<f64>| rate(value.unwrap_or_default());
    format!(
        "Avg: {}, 50%: {}, 90%: {}, 99%: {}, Fastest: {}, Slowest: {}",
        speed(of.bps_average),
        speed(of.bps_median),
        speed(of.bps_90),
        speed(of.bps_99),
        speed(of.bps_fastest),
        speed(of.bps_slowest)
    )
}

#[cfg(test)]
mod tests;
