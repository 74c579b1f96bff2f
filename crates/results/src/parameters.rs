//! What a run was made with, under names that people know it by: `measure: workers`.

use plimsoll_analysis::compare::Difference;
use plimsoll_model::{OpKind, StageKind};
use plimsoll_record::schema::{LoopModel, Manifest, Stage};
use plimsoll_report::joined;
use serde_json::Value;

/// Names and values of what a run was made with.
pub(crate) type Parameters = Vec<(String, String)>;

/// Between the stage or set that a parameter is of and what it is called there.
const OF: &str = ": ";

/// What the parameter is called that says what carried requests.
pub(crate) const TRANSPORT: &str = "transport";

/// Returns what a run did, but for its seed and what says how long or for whom it did it.
pub(crate) fn workload(manifest: &Manifest) -> Parameters {
    let mut all = Vec::new();
    flatten("workload", &manifest.workload.to_value(), &mut all);
    all.retain(|(name, _)| {
        let last = name.rsplit('.').next().unwrap_or_default();
        !["seed", "duration", "keep_going"].contains(&last) && name != "workload.name"
    });
    all.iter_mut().for_each(|(name, _)| *name = known_as(name));
    all
}

/// Returns what a run was made with, but for what differs between any two runs.
pub(crate) fn parameters(manifest: &Manifest) -> Parameters {
    let mut all = Vec::new();
    let schedule = first_measured(manifest)
        .and_then(|stage| stage.jobs.iter().find_map(|job| job.schedule.as_ref()));
    let mut machine = serde_json::to_value(&manifest.machine).unwrap_or_default();
    if let Some(features) = machine.get_mut("cpu_features") {
        // One row, rather than one for each place in the list.
        *features = manifest.machine.cpu_features.join(" ").into();
    }
    let target = serde_json::json!({
        "loop": loop_model(manifest),
        "rate": schedule.map(|schedule| joined(&schedule.rates)),
        "tool": manifest.tool.version,
        "profile": manifest.tool.profile,
        "machine": machine,
        "endpoints": manifest.target.endpoints.join(", "),
        "bucket": manifest.target.bucket,
        "lookup": manifest.target.lookup,
        "tls": manifest.target.tls,
        TRANSPORT: transport(manifest),
        "payload_signing": manifest.target.payload_signing,
        "workload": manifest.workload.to_value(),
    });
    flatten("", &target, &mut all);
    all.retain(|(name, _)| name != "workload.seed");
    all.iter_mut().for_each(|(name, _)| *name = known_as(name));
    all
}

/// Returns what decided when operations of what was measured first started; `None` where nothing
/// was measured.
pub(crate) fn loop_model(manifest: &Manifest) -> Option<LoopModel> {
    first_measured(manifest).map(|stage| stage.loop_model)
}

fn first_measured(manifest: &Manifest) -> Option<&Stage> {
    manifest.stages.iter().find(|stage| stage.kind == StageKind::Measure)
}

/// Returns what carried the requests of what was measured, as far as that is known; those of a ring
/// may be some of them only.
fn transport(manifest: &Manifest) -> Option<&'static str> {
    let measured = manifest.stages.iter().filter(|stage| stage.kind == StageKind::Measure);
    let sockets = measured.flat_map(|stage| &stage.evidence).filter_map(|of| of.sockets);
    let over_ring = sockets.map(|of| of.io_uring_requests_count > 0).reduce(|a, b| a | b)?;
    Some(if over_ring { "io_uring" } else { "sockets" })
}

fn flatten(name: &str, value: &Value, all: &mut Parameters) {
    let inner =
        |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&inner(field), value, all));
        }
        Value::Array(values) => {
            for (value, label) in values.iter().zip(labels(values)) {
                flatten(&inner(&label), value, all);
            }
        }
        Value::String(text) => all.push((name.to_owned(), text.clone())),
        other => all.push((name.to_owned(), other.to_string())),
    }
}

/// Returns what the entries of a list are called: by their names or the kind of operation that they
/// are, where no two have the same, and otherwise by their numbers.
fn labels(values: &[Value]) -> Vec<String> {
    let label = |value: &Value| {
        let name = value.get("name").and_then(Value::as_str).map(|name| name.replace('.', "-"));
        let fields = || value.as_object().into_iter().flat_map(|fields| fields.keys());
        let kind = || fields().find(|field| OpKind::from_name(&field.to_uppercase()).is_some());
        name.or_else(|| kind().cloned())
    };
    let labels: Option<Vec<String>> = values.iter().map(label).collect();
    let is_apart = |labels: &Vec<String>| {
        let mut sorted: Vec<&String> = labels.iter().collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    let numbers = || (0..values.len()).map(|index| index.to_string()).collect();
    labels.filter(is_apart).unwrap_or_else(numbers)
}

/// Returns a field of the workload language by the stage or the set that it is of.
fn known_as(name: &str) -> String {
    let Some(field) = name.strip_prefix("workload.") else { return name.to_owned() };
    let of = |rest: &str| rest.split_once('.').map(|(of, field)| (of.to_owned(), field.to_owned()));
    if let Some((set, field)) = field.strip_prefix("sets.").and_then(of) {
        return format!("{set}{OF}{field}");
    }
    let Some((stage, field)) = field.strip_prefix("stages.").and_then(of) else {
        return field.to_owned();
    };
    let Some((job, field)) = field.strip_prefix("jobs.").and_then(of) else {
        return format!("{stage}{OF}{field}");
    };
    let field = field.trim_start_matches("work.").trim_start_matches("objects.").replace('.', " ");
    match &*job {
        "0" => format!("{stage}{OF}{field}"),
        job => format!("{stage}, {job}{OF}{field}"),
    }
}

/// Returns the differences with those in one that are the same of several stages.
pub(crate) fn merged(differences: Vec<Difference>) -> Vec<Difference> {
    let mut merged: Vec<Difference> = Vec::new();
    for of in differences {
        let field = |name: &str| name.split_once(OF).map(|(_, field)| field.to_owned());
        let own = field(&of.name);
        let is_same = |known: &&mut Difference| {
            let is_field =
                own.is_some() && (field(&known.name) == own || Some(&known.name) == own.as_ref());
            is_field && known.before == of.before && known.after == of.after
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => known.name = own.unwrap_or_default(),
            None => merged.push(of),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(workload: &Value) -> Parameters {
        let mut all = Vec::new();
        flatten("workload", workload, &mut all);
        all.iter_mut().for_each(|(name, _)| *name = known_as(name));
        all
    }

    #[test]
    fn parameters_are_named_by_stage_set_and_kind() {
        let names = |workload: Value| of(&workload).into_iter().map(|(name, _)| name).collect();
        let found: Vec<String> = names(json!({
            "name": "w",
            "sets": {"objects": {"count": 5}},
            "stages": [
                {"name": "prepare", "jobs": [{"workers": 4, "work": {"fill": "objects"}}]},
                {"name": "measure", "duration": "2s", "jobs": [
                    {"name": "a", "work": {"objects": [
                        {"get": "objects", "weight": 45}, {"put": "objects", "weight": 15}]}},
                    {"name": "b", "workers": 1},
                ]},
            ],
        }));
        let expected = [
            "name",
            "objects: count",
            "prepare: name",
            "prepare: workers",
            "prepare: fill",
            "measure: name",
            "measure: duration",
            "measure, a: name",
            "measure, a: get get",
            "measure, a: get weight",
            "measure, a: put put",
            "measure, a: put weight",
            "measure, b: name",
            "measure, b: workers",
        ];
        assert_eq!(found, expected);
        // Two of one name are told apart by their numbers.
        let twice = names(json!({"stages": [{"name": "a", "x": 1}, {"name": "a", "x": 2}]}));
        let twice: Vec<String> = twice;
        assert!(twice.contains(&"1: x".to_owned()), "{twice:?}");
    }

    #[test]
    fn what_differs_alike_in_several_stages_is_told_once() {
        let difference = |name: &str, after: &str| Difference {
            name: name.to_owned(),
            before: vec!["4".to_owned()],
            after: vec![after.to_owned()],
        };
        let found = merged(vec![
            difference("prepare: workers", "8"),
            difference("measure: workers", "8"),
            difference("cool: workers", "8"),
            difference("other: workers", "9"),
            difference("workers", "8"),
        ]);
        let names: Vec<&str> = found.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["workers", "other: workers", "workers"]);
    }
}
