//! The counters as an OTLP `ExportMetricsServiceRequest` in JSON: 64-bit integers are strings,
//! enums are numbers, all sums and histograms are cumulative.

use plimsoll_engine::{LiveDetail, latency_cell_end_ns};
use plimsoll_model::{ErrorClass, WallTime};
use serde_json::{Value, json};

use crate::snapshot::{Board, Snapshot, StageSnapshot, seconds};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;
/// Where receivers listen for metrics.
pub(super) const PATH: &str = "/v1/metrics";

/// Returns the request.
pub(super) fn request(board: &Board, snapshot: &Snapshot) -> Value {
    let resource = [
        ("service.name", "plimsoll"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", &board.run_id),
        ("plimsoll.what", &board.what),
    ];
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeMetrics": [{
            "scope": {"name": "plimsoll", "version": env!("CARGO_PKG_VERSION")},
            "metrics": metrics(snapshot),
        }],
    }]})
}

fn metrics(snapshot: &Snapshot) -> Vec<Value> {
    let began = snapshot.stages.first().map_or(snapshot.at, |stage| stage.began);
    let mut cpu = times(began, snapshot.at);
    cpu["asDouble"] = json!(snapshot.cpu.as_secs_f64());
    vec![
        sum("plimsoll.operations", "{operation}", "operations ended", operations(snapshot)),
        sum(
            "plimsoll.bytes",
            "By",
            "content bytes of successes",
            each(snapshot, |detail| ("asInt", text(detail.bytes))),
        ),
        sum(
            "plimsoll.objects",
            "{object}",
            "objects that successes handled",
            each(snapshot, |detail| ("asInt", text(detail.objects))),
        ),
        json!({
            "name": "plimsoll.latency",
            "unit": "s",
            "description": "latency of successes, from the intended start to the end",
            "histogram": {
                "aggregationTemporality": CUMULATIVE,
                "dataPoints": histograms(snapshot),
            },
        }),
        sum("process.cpu.time", "s", "processor time of the load generator", vec![cpu]),
    ]
}

fn sum(name: &str, unit: &str, description: &str, points: Vec<Value>) -> Value {
    json!({
        "name": name,
        "unit": unit,
        "description": description,
        "sum": {
            "aggregationTemporality": CUMULATIVE,
            "isMonotonic": true,
            "dataPoints": points,
        },
    })
}

/// Returns a point for every kind of every stage, with the one value that `value` names.
fn each(snapshot: &Snapshot, value: impl Fn(&LiveDetail) -> (&'static str, Value)) -> Vec<Value> {
    points(snapshot, |_, detail, mut point| {
        let (name, value) = value(detail);
        point[name] = value;
        vec![point]
    })
}

fn operations(snapshot: &Snapshot) -> Vec<Value> {
    points(snapshot, |labels, detail, point| {
        let counted = |class: &ErrorClass| class.is_ok() || detail.ended[*class as usize] > 0;
        let classes = ErrorClass::ALL.into_iter().filter(counted);
        classes
            .map(|class| {
                let [stage, kind] = labels;
                let mut point = point.clone();
                point["attributes"] = attributes(&[stage, kind, ("outcome", class.name())]);
                point["asInt"] = text(detail.ended[class as usize]);
                point
            })
            .collect()
    })
}

fn histograms(snapshot: &Snapshot) -> Vec<Value> {
    let ends = (0..).map_while(latency_cell_end_ns).map(seconds);
    let bounds: Vec<f64> = ends.collect();
    points(snapshot, |_, detail, mut point| {
        let counts = detail.latency_cells.iter();
        point["count"] = text(counts.clone().sum());
        point["sum"] = json!(seconds(detail.latency_ns));
        point["bucketCounts"] = counts.map(|count| text(*count)).collect();
        point["explicitBounds"] = json!(bounds);
        vec![point]
    })
}

/// Returns what `make` makes of a point with times and attributes, for every kind of every stage.
fn points(
    snapshot: &Snapshot,
    make: impl Fn([(&'static str, &str); 2], &LiveDetail, Value) -> Vec<Value>,
) -> Vec<Value> {
    let of_stage = |stage: &StageSnapshot| -> Vec<Value> {
        let of_kind = stage.kinds.iter().flat_map(|(kind, detail)| {
            let labels = [("stage", stage.name.as_str()), ("kind", kind.name())];
            let mut point = times(stage.began, snapshot.at);
            point["attributes"] = attributes(&labels);
            make(labels, detail, point)
        });
        of_kind.collect()
    };
    snapshot.stages.iter().flat_map(of_stage).collect()
}

fn times(began: WallTime, at: WallTime) -> Value {
    json!({
        "startTimeUnixNano": text(began.as_unix_ns()),
        "timeUnixNano": text(at.as_unix_ns()),
    })
}

fn attributes(labels: &[(&str, &str)]) -> Value {
    let each = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    labels.iter().map(each).collect()
}

fn text(number: u64) -> Value {
    Value::String(number.to_string())
}
