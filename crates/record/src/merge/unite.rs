//! What the manifest of the whole cannot say of all parts, left out of it and named.

use std::collections::BTreeSet;

use serde_json::Value;

use super::clients::Client;
use super::stages::Column;
use super::{MergePart, WORKLOAD_SEED, WORKLOAD_VERSION};
use crate::schema::{ClockInfo, FilesTarget, Machine, Manifest, Stage};
use plimsoll_model::StageKind;

/// What the parts differ in where one of them has no workload.
const WHOLE_WORKLOAD: &str = "all of it";
/// How many fields of the workload a note names.
const FIELDS_NAMED_MAX: usize = 8;

/// Makes unknown what the parts do not agree on, so that the whole does not claim what is true of
/// the first only, and notes what it is.
pub(super) fn leave_out_differences<E>(
    parts: &[MergePart<'_, E>],
    columns: &[Column],
    clients: &mut [Client],
    whole: &mut Manifest,
) {
    let manifests = || parts.iter().map(|part| &part.manifest);
    let mut differing = Vec::new();
    macro_rules! unknown_where_different {
        ($($name:literal: $($field:ident).+ = $unknown:expr;)+) => {$(
            if manifests().any(|manifest| manifest.$($field).+ != whole.$($field).+) {
                whole.$($field).+ = $unknown;
                differing.push($name.to_owned());
            }
        )+};
    }
    unknown_where_different! {
        "tool": tool.name = None;
        "tool version": tool.version = None;
        "clock": clock = ClockInfo { source: None, resolution_ns: None };
        "machine": machine = Machine::default();
        "kind of target": target.kind = None;
        "bucket": target.bucket = None;
        "region": target.region = None;
        "addressing": target.lookup = None;
        "TLS": target.tls = None;
        "payload signing": target.payload_signing = None;
        "virtual time": virtual_time = true;
        "certificate": certificate = None;
    }
    differing.extend(unite_targets(parts, whole));
    // The manifest has no place for an unknown seed; those of the parts stand under `merged`.
    if clients.iter().any(|client| client.run.seed != clients[0].run.seed) {
        differing.push("seed (each stands under `merged`)".to_owned());
    }
    differing.extend(unite_workloads(clients, whole));
    differing.extend(unite_stages(parts, columns, whole));
    if !differing.is_empty() {
        whole.notes.push(format!(
            "the merged runs differ in {}; what run.json says of these is unknown, or true of one \
             run only",
            differing.join(", ")
        ));
    }
}

/// Leaves out where files lay as far as the parts differ in it, and returns that they do.
fn unite_targets<E>(parts: &[MergePart<'_, E>], whole: &mut Manifest) -> Option<String> {
    let mut differs = false;
    for (index, target) in whole.targets_mut().enumerate() {
        let own = || parts.iter().filter_map(|part| part.manifest.targets().nth(index));
        if index > 0 && own().any(|own| own.bucket != target.bucket) {
            target.bucket = None;
        }
        if own().any(|own| own.files != target.files) {
            differs = true;
            target.files = Some(united_files(|| own().filter_map(|own| own.files.as_ref())));
        }
    }
    differs.then(|| "where their files lay, or how much was free there".to_owned())
}

/// Returns what is true of the files of all parts.
fn united_files<'f, A: Iterator<Item = &'f FilesTarget>>(all: impl Fn() -> A) -> FilesTarget {
    fn agreed<T: Clone + PartialEq>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
        let first = all.next()??;
        all.all(|each| each.as_ref() == Some(&first)).then_some(first)
    }
    let mut directories: Vec<String> = all().flat_map(|files| files.directories.clone()).collect();
    directories.sort();
    directories.dedup();
    FilesTarget {
        directories,
        file_system: agreed(all().map(|files| files.file_system.clone())),
        mount_point: agreed(all().map(|files| files.mount_point.clone())),
        device: agreed(all().map(|files| files.device.clone())),
        size_bytes: agreed(all().map(|files| files.size_bytes)),
        free_bytes: agreed(all().map(|files| files.free_bytes)),
    }
}

/// Leaves out what differs of the stages, and returns what that is.
fn unite_stages<E>(
    parts: &[MergePart<'_, E>],
    columns: &[Column],
    whole: &mut Manifest,
) -> Vec<String> {
    let mut differing = Vec::new();
    for (stage, column) in whole.stages.iter_mut().zip(columns) {
        let mut own = column.own(parts).map(|(_, stage)| stage);
        if own.clone().any(|each| each.name != stage.name) {
            stage.name = match stage.kind {
                StageKind::Prepare => "prepare",
                StageKind::Measure => "measure",
                StageKind::Cleanup => "cleanup",
            }
            .to_owned();
        }
        if own.clone().any(|each| each.ended_by != stage.ended_by) {
            stage.ended_by = None;
            differing.push(format!("what ended stage {}", stage.name));
        }
        let mut caches = own.clone().filter_map(|each| Some(each.files.as_ref()?.caches));
        if stage.files.as_ref().is_some_and(|files| caches.any(|of| of != files.caches)) {
            differing.push(format!("caches of stage {}", stage.name));
        }
        let ways =
            |stage: &Stage| -> Vec<_> { stage.jobs.iter().map(|job| job.interface).collect() };
        if own.clone().any(|each| ways(each) != ways(stage)) {
            differing.push(format!("interfaces of stage {}", stage.name));
        }
        if own.any(|each| each.loop_model != stage.loop_model) {
            differing.push(format!("loop model of stage {}", stage.name));
        }
    }
    differing
}

/// Leaves out the sections of the workload in which the clients differ, but for its seed, and
/// returns in what they do. What is left is no workload, so it has no version; then, or where only
/// one differs, each keeps its own.
fn unite_workloads(clients: &mut [Client], whole: &mut Manifest) -> Option<String> {
    let mut common = clients[0].workload.clone();
    let mut fields = BTreeSet::new();
    for client in clients.iter() {
        differences("", &client.workload, &common, &mut fields);
    }
    // It repeats the manifest's own.
    fields.remove(WORKLOAD_SEED);
    for client in clients.iter_mut() {
        let keeps = !fields.is_empty() && client.knows_workload;
        client.run.workload = keeps.then(|| client.workload.clone().into());
    }
    if fields.is_empty() {
        whole.workload = common.into();
        return None;
    }
    match &mut common {
        Value::Object(sections) if !fields.contains(WHOLE_WORKLOAD) => {
            let section = |field: &String| field.split('.').next().map(str::to_owned);
            let differing = fields.iter().filter_map(section);
            for name in differing.chain([WORKLOAD_VERSION.to_owned()]) {
                sections.insert(name, Value::Null);
            }
        }
        workload => *workload = Value::Null,
    }
    whole.workload = common.into();
    let more = fields.len().saturating_sub(FIELDS_NAMED_MAX);
    let mut names: Vec<String> = fields.into_iter().take(FIELDS_NAMED_MAX).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    Some(format!("workload ({})", names.join(", ")))
}

/// Adds the names of the fields in which two documents differ.
fn differences(name: &str, a: &Value, b: &Value, fields: &mut BTreeSet<String>) {
    let (Value::Object(a_fields), Value::Object(b_fields)) = (a, b) else {
        if a != b {
            fields.insert(if name.is_empty() { WHOLE_WORKLOAD } else { name }.to_owned());
        }
        return;
    };
    for field in a_fields.keys().chain(b_fields.keys()) {
        let inner = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
        let of = |fields: &serde_json::Map<String, Value>| fields.get(field).cloned();
        let [a, b] = [of(a_fields), of(b_fields)].map(Option::unwrap_or_default);
        differences(&inner, &a, &b, fields);
    }
}
