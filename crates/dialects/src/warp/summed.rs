//! The document that warp saves and prints of a run by default, from the sums of a record.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::warp::{
    WINDOW_SECONDS, WarpAccess, WarpMoved, WarpSeconds, WarpSizeClass, WarpSummary, WarpSums,
    WarpTimes, WarpWindow, WarpWindowSizes,
};
use plimsoll_foreign::warp::aggregated::{
    Aggregate, Aggregated, FirstByte, MultiSized, Segment, Segmented, SingleSized, SizeClass,
    Throughput, VERSION_MAX, Window,
};
use plimsoll_model::{EndpointId, Moment};

use super::layout::WarpNames;
use super::layout::words::{rfc3339, size};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the document; times of day are `utc_offset_seconds` east of UTC.
///
/// Two things differ from what warp writes. Failed operations are counted and are in no other sum.
/// A run of less than five seconds, of which warp's throughput is 0, has that of the whole run, and
/// as in warp no segments.
pub fn document(
    summary: &WarpSummary,
    names: WarpNames<'_>,
    utc_offset_seconds: i32,
    command_line: String,
) -> Aggregated {
    let page = Page { names, offset: utc_offset_seconds };
    let by_name = |name: String, title: &str, of| (name.clone(), page.aggregate(title, &name, of));
    let kinds = summary.kinds.iter();
    let endpoints = summary.endpoints.iter();
    let clients = summary.clients.iter();
    Aggregated {
        v: Some(VERSION_MAX),
        commandline: Some(command_line),
        is_final: Some(true),
        total: Some(page.aggregate("Total", "", &summary.total)),
        by_op_type: kinds
            .map(|(kind, of)| by_name(kind.name().to_owned(), "Operation: ", of))
            .collect(),
        by_host: endpoints.map(|(id, of)| by_name(page.host(*id), "Host: ", of)).collect(),
        by_client: clients.map(|(id, of)| by_name(page.client(*id), "Client: ", of)).collect(),
        by_obj_log_2_size: summary.sizes.iter().map(|(bits, of)| page.sized(*bits, of)).collect(),
        ..Aggregated::default()
    }
}

struct Page<'a> {
    names: WarpNames<'a>,
    offset: i32,
}

impl Page<'_> {
    fn host(&self, id: EndpointId) -> String {
        self.names.endpoint(id).to_owned()
    }

    fn client(&self, id: u16) -> String {
        self.names.clients.get(usize::from(id)).cloned().unwrap_or_default()
    }

    fn at(&self, moment: Moment) -> Option<String> {
        Some(rfc3339(moment, self.offset))
    }

    fn sized(&self, bits: u32, of: &WarpSums) -> (String, Aggregate) {
        let least = 1_u64 << bits.saturating_sub(1);
        let range = format!("{least}->{}", least - 1 + least);
        (bits.to_string(), self.aggregate("Size: ", &range, of))
    }

    fn aggregate(&self, title: &str, name: &str, of: &WarpSums) -> Aggregate {
        let moved = of.moved;
        let endpoints = || of.endpoints.iter().map(|(id, moved)| (self.host(*id), *moved));
        let clients = || of.clients.iter().map(|(id, moved)| (self.client(*id), *moved));
        let sorted = |names: BTreeMap<String, WarpMoved>| names.into_keys().collect();
        Aggregate {
            title: Some(format!("{title}{name} (Final)")),
            total_requests: Some(moved.requests),
            total_objects: Some(moved.objects),
            total_errors: Some(moved.errors),
            total_bytes: Some(moved.bytes),
            concurrency: Some(of.concurrency as u64),
            start_time: self.at(moved.started),
            end_time: self.at(moved.ended),
            first_errors: of.first_errors.clone(),
            hosts: sorted(endpoints().collect()),
            clients: sorted(clients().collect()),
            throughput: Some(self.throughput(of)),
            throughput_by_host: endpoints().map(|(name, of)| (name, self.moved(&of))).collect(),
            throughput_by_client: clients().map(|(name, of)| (name, self.moved(&of))).collect(),
            requests_by_client: of
                .windows
                .iter()
                .map(|(id, windows)| {
                    (self.client(*id), windows.iter().map(|window| self.window(window)).collect())
                })
                .collect(),
        }
    }

    fn moved(&self, of: &WarpMoved) -> Throughput {
        let length = of.ended.since(of.started).as_millis();
        Throughput {
            start_time: self.at(of.started),
            end_time: self.at(of.ended),
            errors: Some(of.errors),
            measure_duration_millis: u64::try_from(length).ok(),
            bytes: Some(of.bytes as f64),
            objects: Some(of.objects as f64),
            ops: Some(of.requests - of.errors),
            ..Throughput::default()
        }
    }

    fn throughput(&self, of: &WarpSums) -> Throughput {
        let Some(seconds) = &of.seconds else { return self.moved(&of.moved) };
        let (sum, count) = (seconds.sum(), seconds.all.len());
        Throughput {
            start_time: self.at(seconds.start),
            end_time: self.at(seconds.start.after(SECOND * count as u32)),
            errors: Some(sum.errors),
            measure_duration_millis: Some(count as u64 * 1_000),
            bytes: Some(sum.bytes),
            objects: Some(sum.objects),
            ops: Some(sum.started),
            op_type: None,
            segmented: Some(self.segmented(seconds)),
        }
    }

    fn segmented(&self, seconds: &WarpSeconds) -> Segmented {
        let segment = |(at, second): (usize, &plimsoll_analysis::warp::WarpSecond)| Segment {
            start: self.at(seconds.start.after(SECOND * at as u32)),
            bytes_per_sec: Some(second.bytes.round()),
            obj_per_sec: Some((second.objects * 100.0).round() / 100.0),
            errors: (second.errors > 0).then_some(second.errors),
        };
        let segments: Vec<Segment> = seconds.all.iter().enumerate().map(segment).collect();
        let mut sorted: Vec<&Segment> = segments.iter().collect();
        let objects = |segment: &Segment| segment.obj_per_sec.unwrap_or_default();
        sorted.sort_by(|a, b| objects(a).total_cmp(&objects(b)));
        let last = sorted.len() - 1;
        let (slow, fast) = (sorted[0], sorted[last]);
        let median = sorted[sorted.len().div_ceil(2).min(last)];
        Segmented {
            segment_duration_millis: Some(1_000),
            sorted_by: Some("ops".to_owned()),
            fastest_start: fast.start.clone(),
            fastest_bps: fast.bytes_per_sec,
            fastest_ops: fast.obj_per_sec,
            median_start: median.start.clone(),
            median_bps: median.bytes_per_sec,
            median_ops: median.obj_per_sec,
            slowest_start: slow.start.clone(),
            slowest_bps: slow.bytes_per_sec,
            slowest_ops: slow.obj_per_sec,
            segments,
        }
    }

    fn window(&self, window: &WarpWindow) -> Window {
        let requests = Some(window.requests as u64);
        let mut out = Window {
            start_time: self.at(window.start),
            end_time: self.at(window.start.after(SECOND * WINDOW_SECONDS as u32)),
            ..Window::default()
        };
        match &window.sizes {
            WarpWindowSizes::Single { bytes, times } => {
                let single = SingleSized { requests, obj_size: Some(*bytes), ..single(times) };
                out.single_sized_requests = Some(single);
            }
            WarpWindowSizes::Multi { bytes_mean, classes } => {
                out.multi_sized_requests = Some(MultiSized {
                    requests,
                    avg_obj_size: Some(*bytes_mean),
                    merged_entries: Some(1),
                    by_size: classes.iter().map(size_class).collect(),
                });
            }
        }
        out
    }
}

fn millis(duration: Duration) -> Option<f64> {
    Some(duration.as_nanos() as f64 / 1e6)
}

fn single(of: &WarpAccess) -> SingleSized {
    let at = |percent| millis(of.durations.percentile(percent));
    SingleSized {
        merged_entries: Some(1),
        dur_avg_millis: millis(of.durations.average),
        dur_median_millis: at(50),
        dur_90_millis: at(90),
        dur_99_millis: at(99),
        fastest_millis: at(0),
        slowest_millis: at(100),
        std_dev_millis: millis(of.durations.std_dev),
        first_byte: of.ttfb.as_ref().map(first_byte),
        ..SingleSized::default()
    }
}

fn first_byte(of: &WarpTimes) -> FirstByte {
    let at = |percent| millis(of.percentile(percent));
    FirstByte {
        average_millis: millis(of.average),
        fastest_millis: at(0),
        p25_millis: at(25),
        median_millis: at(50),
        p75_millis: at(75),
        p90_millis: at(90),
        p99_millis: at(99),
        slowest_millis: at(100),
        std_dev_millis: millis(of.std_dev),
    }
}

fn size_class(of: &WarpSizeClass) -> SizeClass {
    SizeClass {
        min_size: Some(of.bytes_from),
        max_size: Some(of.bytes_to),
        min_size_string: Some(size(of.bytes_from)),
        max_size_string: Some(size(of.bytes_to)),
        requests: Some(of.requests as u64),
        avg_obj_size: Some(of.bytes_mean),
        avg_duration_millis: millis(of.duration_mean),
        bps_average: Some(of.rates.average),
        bps_median: Some(of.rates.p50),
        bps_90: Some(of.rates.p90),
        bps_99: Some(of.rates.p99),
        bps_fastest: Some(of.rates.fastest),
        bps_slowest: Some(of.rates.slowest),
        first_byte: of.ttfb.as_ref().map(first_byte),
        merged_entries: Some(1),
    }
}
