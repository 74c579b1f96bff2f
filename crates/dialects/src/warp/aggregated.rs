//! The report on an aggregated file of warp's: what its figures tell, and what they cannot.
//!
//! warp counts failed operations among the others there. Where any failed, the rates are upper
//! bounds and the times are those of good and failed ones together.

mod document;
mod measured;
mod page;

use plimsoll_analysis::compare::{KindFigures, Metric, RunFigures};
use plimsoll_foreign::warp::aggregated::{Aggregate, Aggregated};
use plimsoll_model::OpKind;
use plimsoll_report::text::Look;
#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;

use measured::{Bounds, Kind, Rate, Times, kinds};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.aggregated/1";

/// Returns the report for people, as text that ends with a line feed.
pub fn text(file: &Aggregated, look: &Look) -> String {
    page::render(file, &kinds(file), &unknown(file), look)
}

/// Returns the report for programs, as one JSON object.
pub fn json(file: &Aggregated) -> serde_json::Value {
    let document = document::document(file, &kinds(file), unknown(file));
    serde_json::to_value(document).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema of the report, as it stands in `docs/formats/aggregated.schema.json`.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<document::Document>().to_value()
}

/// Returns the figures that may be compared with those of another run.
///
/// Where operations failed, or may have, only their part of all is known. Types of operation that
/// plimsoll has no kind for are left out.
pub fn figures(name: &str, file: &Aggregated) -> RunFigures {
    let known = |kind: &Kind<'_>| Some(figures_of(OpKind::from_name(kind.name)?, kind));
    RunFigures { name: name.to_owned(), kinds: kinds(file).iter().filter_map(known).collect() }
}

fn figures_of(op: OpKind, kind: &Kind<'_>) -> KindFigures {
    let mut figures = KindFigures::new(Some(op), op.moves_bytes());
    figures.operations = kind.all.total_requests;
    figures.set(Metric::Errors, kind.error_rate());
    if kind.counts_failed {
        return figures;
    }
    if let Some(rates) = &kind.rates {
        let mut set = |bytes: Metric, objects: Metric, rate: Rate| {
            figures.set(bytes, op.moves_bytes().then_some(rate.bytes));
            figures.set(objects, Some(rate.objects));
        };
        set(Metric::Throughput, Metric::Objects, rates.average);
        set(Metric::Fastest, Metric::FastestObjects, rates.fastest);
        set(Metric::Median, Metric::MedianObjects, rates.median);
        set(Metric::Slowest, Metric::SlowestObjects, rates.slowest);
    }
    let (latency, ttfb) = (&kind.latency, &kind.ttfb);
    for (of_latency, of_ttfb, value) in [
        (Metric::Mean, Metric::TtfbMean, (|times| times.mean) as fn(&Times) -> _),
        (Metric::P50, Metric::TtfbP50, |times| times.p50.and_then(Bounds::exact)),
        (Metric::P90, Metric::TtfbP90, |times| times.p90.and_then(Bounds::exact)),
        (Metric::P99, Metric::TtfbP99, |times| times.p99.and_then(Bounds::exact)),
        (Metric::Max, Metric::TtfbMax, |times| times.max),
        (Metric::Min, Metric::TtfbMin, |times| times.min),
    ] {
        figures.set(of_latency, value(latency).map(|time| time.as_nanos() as f64));
        figures.set(of_ttfb, value(ttfb).map(|time| time.as_nanos() as f64));
    }
    figures
}

/// Returns what the file cannot tell, one remark each.
fn unknown(file: &Aggregated) -> Vec<String> {
    let kinds = kinds(file);
    let named = |of: &dyn Fn(&Kind<'_>) -> bool| -> Option<String> {
        let names: Vec<&str> = kinds.iter().filter(|kind| of(kind)).map(|kind| kind.name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let mut remarks = vec![
        "operations per second, p99.9 and deviation".to_owned(),
        "the span in which all workers were busy".to_owned(),
    ];
    let mut remark = |names: Option<String>, text: &str| {
        remarks.extend(names.map(|names| format!("{text} ({names})")));
    };
    let is_bounded = |kind: &Kind<'_>| kind.latency.is_bounded() || kind.ttfb.is_bounded();
    remark(named(&is_bounded), "percentiles of the whole: each lies within the bounds shown");
    remark(named(&|kind| kind.counts_failed), "good operations apart from failed ones");
    remark(
        named(&|kind| kind.rates.is_none()),
        "rates: warp kept no seconds, as it does in runs of less than five",
    );
    remark(named(&|kind| kind.has_sizes), "times: sizes differ, so warp kept speeds only");
    remark(
        named(&|kind| kind.latency.max.is_none() && !kind.has_sizes),
        "times: warp's windows do not hold every request",
    );
    if kinds.iter().any(|kind| has_hosts(kind.all)) {
        remarks.push("times at each host".to_owned());
    }
    remarks
}

/// Tells whether there are several hosts to tell apart.
fn has_hosts(all: &Aggregate) -> bool {
    all.throughput_by_host.len() > 1
}

#[cfg(test)]
mod tests;
