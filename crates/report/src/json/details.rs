//! The part of the JSON report that is there when details were asked for.

use plimsoll_analysis::{
    AccessSummary, ClientDetails, KindDetails, RateSummary, SegmentRow, SizeClass, StageDetails,
    percentiles,
};
use plimsoll_stats::Histogram;

use super::{by_class, figures, ns, times, twin};
use crate::RunReport;

pub(super) fn details(report: &RunReport, details: &StageDetails) -> twin::Details {
    twin::Details {
        kinds: details.kinds.iter().map(|each| kind(report, each)).collect(),
        series: series(&details.series),
        clients: details.clients.iter().map(|each| client(report, each)).collect(),
    }
}

fn kind(report: &RunReport, kind: &KindDetails) -> twin::KindDetails {
    let endpoints = kind.endpoints.iter().map(|(endpoint, rows)| twin::EndpointSeries {
        endpoint: report.endpoint(*endpoint),
        series: series(rows),
    });
    twin::KindDetails {
        kind: kind.kind.name(),
        series: series(&kind.series),
        endpoints: endpoints.collect(),
        latency_ns_percentiles: each_percentile(&kind.latency),
        service_time_ns_percentiles: kind.service_time.as_ref().map(each_percentile),
        ttfb_ns_percentiles: each_percentile(&kind.ttfb),
        latency_ns_bins: kind.latency.bins().map(|bin| (bin.lowest, bin.count)).collect(),
        sizes: kind.sizes.iter().map(size).collect(),
        access: kind.access.as_ref().map(access),
    }
}

fn series(rows: &[SegmentRow]) -> Vec<twin::SeriesSegment> {
    let twin = |row: &SegmentRow| twin::SeriesSegment {
        started_ns: row.start.as_ns(),
        bytes: row.bytes,
        ops: row.ops,
        objects: row.objects,
        ops_started_count: row.started,
        ops_ended_count: row.ended,
        ops_full_count: row.full,
        ops_partial_count: row.partial,
        ops_failed_count: row.failed.count(),
        failed_by_class: by_class(&row.failed),
        latency_ns_mean: row.latency_mean.map(ns),
        latency_ns_p50: row.latency_p50.map(ns),
        latency_ns_p99: row.latency_p99.map(ns),
    };
    rows.iter().map(twin).collect()
}

fn each_percentile(histogram: &Histogram) -> Vec<(f64, Option<u64>)> {
    percentiles(histogram).into_iter().map(|(percent, time)| (percent, time.map(ns))).collect()
}

fn size(class: &SizeClass) -> twin::SizeClass {
    twin::SizeClass {
        size_bytes_min: class.bytes_min,
        size_bytes_max: class.bytes_max,
        size_bytes_smallest: class.bytes_smallest,
        size_bytes_largest: class.bytes_largest,
        bytes: class.bytes,
        latency_ns: times(&class.latency),
        ttfb_ns: times(&class.ttfb),
        bytes_per_sec: op_rates(&class.rate),
    }
}

fn op_rates(rate: &RateSummary) -> twin::OpRates {
    twin::OpRates {
        average: rate.average,
        min: rate.min,
        p99_slow: rate.p99_slow,
        p90_slow: rate.p90_slow,
        p50: rate.p50,
        max: rate.max,
    }
}

fn access(access: &AccessSummary) -> twin::Access {
    twin::Access {
        objects_count: access.objects_count,
        sampled_one_in: access.sampled_one_in,
        first_latency_ns: times(&access.first),
        first_ttfb_ns: times(&access.first_ttfb),
        last_latency_ns: times(&access.last),
        last_ttfb_ns: times(&access.last_ttfb),
    }
}

fn client(report: &RunReport, client: &ClientDetails) -> twin::Client {
    let kinds = client
        .kinds
        .iter()
        .map(|(kind, of_kind)| twin::ClientKind { kind: kind.name(), figures: figures(of_kind) });
    twin::Client {
        client: report.client(client.client),
        total: figures(&client.total),
        kinds: kinds.collect(),
    }
}
