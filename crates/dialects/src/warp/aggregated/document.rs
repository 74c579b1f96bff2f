//! The fields of the JSON report, as they are written.

use std::time::Duration;

use plimsoll_foreign::warp::aggregated::{Aggregated, Throughput};
use serde::Serialize;

use super::measured::{self, Bounds, Kind};
use super::{SCHEMA, has_hosts};

/// What an aggregated file of warp's tells.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "plimsoll.aggregated/1"))]
pub(super) struct Document {
    /// Always `plimsoll.aggregated/1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Always `warp aggregated file`.
    foreign: &'static str,
    /// The command line as the file has it.
    command: Option<String>,
    warp_version: Option<String>,
    /// Whether warp marked the file as final; it does not where it ran on several clients.
    is_final: Option<bool>,
    /// What the file cannot tell, in words.
    unknown: Vec<String>,
    /// Each type of operation.
    kinds: Vec<KindOut>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Kind"))]
struct KindOut {
    /// warp's name.
    kind: String,
    /// Failed ones included.
    ops_count: Option<u64>,
    ops_failed_count: Option<u64>,
    /// Failed over all operations, 0 to 1.
    error_rate: Option<f64>,
    /// Those of failed operations included.
    objects_count: Option<u64>,
    /// Those of failed operations included.
    bytes: Option<u64>,
    concurrency: Option<u64>,
    /// The first start, as the file has it: RFC 3339.
    started: Option<String>,
    /// The last end, as the file has it: RFC 3339.
    ended: Option<String>,
    /// Rates and times; null if any operation failed or may have, as warp mixes them in.
    figures: Option<Figures>,
    /// Rates and times with failed operations among the others, null if none failed. The rates are
    /// upper bounds of those of good operations; the times are not bounds of theirs.
    figures_with_failed: Option<Figures>,
    /// What each host did, where there are several.
    endpoints: Vec<Endpoint>,
    /// Up to ten texts of errors.
    errors: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Figures {
    /// Over warp's seconds; null when it kept none.
    rates: Option<Rates>,
    latency_ns: Times,
    ttfb_ns: Times,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rates {
    /// How long one segment is.
    segment_ns: u64,
    segments_count: u32,
    /// The mean of the segments.
    average: Rate,
    /// Picked by bytes, by objects where no bytes move; by each of its own where operations failed.
    fastest: Rate,
    /// The lower of two in the middle.
    median: Rate,
    slowest: Rate,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rate {
    objects_per_sec: f64,
    bytes_per_sec: f64,
}

/// Times of all requests; null where the file leaves them open.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Times {
    /// The mean of the windows' means, weighted by their requests.
    mean: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    p50: Option<BoundsOut>,
    p90: Option<BoundsOut>,
    p99: Option<BoundsOut>,
}

/// The least and the greatest of the windows' percentiles. That of the whole lies between them, but
/// for half a rank in each window, by which warp rounds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Bounds"))]
struct BoundsOut {
    low_ns: u64,
    /// Equal to `low_ns` where the percentile is known.
    high_ns: u64,
}

/// What one host did from its own first start to its own last end, failed operations included.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Endpoint {
    endpoint: String,
    ops_count: Option<u64>,
    ops_failed_count: Option<u64>,
    objects: Option<f64>,
    bytes: Option<f64>,
    duration_ns: Option<u64>,
}

/// Returns the document of a file.
pub(super) fn document(file: &Aggregated, kinds: &[Kind<'_>], unknown: Vec<String>) -> Document {
    Document {
        schema: SCHEMA,
        foreign: "warp aggregated file",
        command: file.commandline.clone(),
        warp_version: file.warp_version.clone(),
        is_final: file.is_final,
        unknown,
        kinds: kinds.iter().map(kind).collect(),
    }
}

fn kind(kind: &Kind<'_>) -> KindOut {
    let all = kind.all;
    let figures = Figures {
        rates: kind.rates.as_ref().map(rates),
        latency_ns: times(&kind.latency),
        ttfb_ns: times(&kind.ttfb),
    };
    let (figures, figures_with_failed) = match kind.counts_failed {
        true => (None, Some(figures)),
        false => (Some(figures), None),
    };
    let hosts = all.throughput_by_host.iter().filter(|_| has_hosts(all));
    KindOut {
        kind: kind.name.to_owned(),
        ops_count: all.total_requests,
        ops_failed_count: all.total_errors,
        error_rate: kind.error_rate(),
        objects_count: all.total_objects,
        bytes: all.total_bytes,
        concurrency: all.concurrency,
        started: all.start_time.clone(),
        ended: all.end_time.clone(),
        figures,
        figures_with_failed,
        endpoints: hosts.map(|(name, of)| endpoint(name, of)).collect(),
        errors: all.first_errors.clone(),
    }
}

fn endpoint(name: &str, of: &Throughput) -> Endpoint {
    let over = of.measure_duration_millis.map(Duration::from_millis);
    Endpoint {
        endpoint: name.to_owned(),
        ops_count: of.ops,
        ops_failed_count: of.errors,
        objects: of.objects,
        bytes: of.bytes,
        duration_ns: over.map(ns),
    }
}

fn rates(of: &measured::Rates) -> Rates {
    let rate =
        |rate: measured::Rate| Rate { objects_per_sec: rate.objects, bytes_per_sec: rate.bytes };
    Rates {
        segment_ns: ns(of.segment),
        segments_count: of.segments,
        average: rate(of.average),
        fastest: rate(of.fastest),
        median: rate(of.median),
        slowest: rate(of.slowest),
    }
}

fn times(of: &measured::Times) -> Times {
    let bounds = |of: Bounds| BoundsOut { low_ns: ns(of.low), high_ns: ns(of.high) };
    Times {
        mean: of.mean.map(ns),
        min: of.min.map(ns),
        max: of.max.map(ns),
        p50: of.p50.map(bounds),
        p90: of.p90.map(bounds),
        p99: of.p99.map(bounds),
    }
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
