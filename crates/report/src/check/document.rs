//! The JSON form of a consistency check. Times are integers of nanoseconds, unknown is null.

use std::collections::BTreeMap;

use plimsoll_analysis::history::{Event, HistoryOp, Saw};
#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::{CheckReport, CheckRoot, sentence};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.check/1";

/// What a consistency check found.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document {
    /// `plimsoll.check/1`.
    schema: &'static str,
    /// The version of the program.
    tool_version: String,
    /// The store.
    target: Target,
    /// What fixed the choices of the workers.
    seed: u64,
    /// Loops that did one operation at a time.
    workers: u32,
    /// Threads that drove them.
    threads: usize,
    /// Keys in use at one time.
    keys: u32,
    /// Keys used in all; the others replaced keys with too many writes of unknown outcome.
    keys_used: u32,
    /// From the first operation's begin to the last one's end.
    duration_ns: u64,
    /// Whether the user ended it.
    interrupted: bool,
    /// Operations by kind.
    operations: BTreeMap<&'static str, Operations>,
    /// Why operations failed, by class.
    failures: BTreeMap<&'static str, u64>,
    /// Answers that were judged: of reads, and one for each key of a listing.
    judged_count: u64,
    /// The most operations that were kept at one time.
    kept_count_max: usize,
    /// All violations.
    violations_count: u64,
    /// Violations by kind.
    counts: BTreeMap<&'static str, u64>,
    /// The first violations.
    violations: Vec<Violation>,
}

/// The store.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Target {
    endpoints: Vec<String>,
    /// The bucket, collection or directory.
    #[serde(flatten)]
    root: CheckRoot,
    /// What all keys began with; absent where the store chose the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    embedded: bool,
}

/// Operations of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Operations {
    /// Told something, or did what was asked.
    done: u64,
    /// Asked for a range that was not in the object of that moment.
    out_of_range: u64,
    /// Failed; a write may have taken effect.
    failed: u64,
}

/// One violation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Violation {
    /// `stale-read`, `lost-write`, `resurrected-delete`, `list-omission`, `list-ghost`,
    /// `list-stale`, `wrong-size`, or what content is instead: `other-object`, `shifted`,
    /// `old-version`, `zeroed`, `torn`, `flipped`, `short`, `long`, `foreign`.
    kind: &'static str,
    /// The same as a sentence.
    sentence: &'static str,
    /// The key below the prefix, or a whole name that nobody wrote.
    key: String,
    /// The operations that prove it, in the order in which they began.
    proof: Vec<Operation>,
    /// Further operations that told the same.
    repeats_count: u64,
}

/// One operation of a proof.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Operation {
    /// Its number in the order in which operations began.
    number: u64,
    worker: u32,
    kind: &'static str,
    /// What a PUT wrote.
    written: Option<String>,
    /// How many bytes a PUT wrote.
    size: Option<u64>,
    /// First byte and length of a ranged GET.
    range: Option<(u64, u64)>,
    /// Since the check began.
    begin_ns: u64,
    /// Since the check began; null when it was not known.
    end_ns: Option<u64>,
    /// `done`, `value`, `present`, `absent`, `wrong`, `failed` or `pending`.
    answer: &'static str,
    /// The value that a GET gave, or of which wrong content holds traces.
    value: Option<String>,
    /// The size that a STAT or a LIST stated.
    stated_size: Option<u64>,
    /// What wrong content is, or the class of a failure.
    class: Option<&'static str>,
    /// The first wrong byte.
    wrong_at: Option<u64>,
}

/// Returns the check as one JSON object.
pub fn json(report: &CheckReport) -> serde_json::Value {
    serde_json::to_value(document(report)).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema of the check, as it stands in `docs/formats/check.schema.json`.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document>().to_value()
}

fn document(report: &CheckReport) -> Document {
    let history = &report.history;
    let operations = history.ops.iter().map(|(kind, tally)| {
        let plimsoll_analysis::history::Tally { done, out_of_range, failed } = *tally;
        (kind.name(), Operations { done, out_of_range, failed })
    });
    let violations = history.violations.iter().map(|violation| Violation {
        kind: violation.kind.name(),
        sentence: sentence(violation),
        key: violation.key.as_ref().map_or_else(Clone::clone, ToString::to_string),
        proof: violation.proof.iter().map(|event| operation(report, event)).collect(),
        repeats_count: violation.repeats_count,
    });
    Document {
        schema: SCHEMA,
        tool_version: report.tool_version.clone(),
        target: Target {
            endpoints: report.endpoints.clone(),
            root: report.root.clone(),
            prefix: report.prefix.clone(),
            embedded: report.embedded,
        },
        seed: report.seed,
        workers: report.workers,
        threads: report.threads,
        keys: report.keys,
        keys_used: report.keys_used,
        duration_ns: report.took().as_nanos() as u64,
        interrupted: report.interrupted,
        operations: operations.collect(),
        failures: history.failures.iter().map(|(class, count)| (class.name(), *count)).collect(),
        judged_count: history.judged_count,
        kept_count_max: history.kept_count_max,
        violations_count: report.violations_count(),
        counts: history.counts.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        violations: violations.collect(),
    }
}

fn operation(report: &CheckReport, event: &Event) -> Operation {
    let since = |moment: plimsoll_model::Moment| moment.since(report.started).as_nanos() as u64;
    let mut operation = Operation {
        number: event.number,
        worker: event.worker.0,
        kind: event.op.kind().name(),
        written: None,
        size: None,
        range: None,
        begin_ns: since(event.begin),
        end_ns: event.end.map(since),
        answer: "done",
        value: None,
        stated_size: None,
        class: None,
        wrong_at: None,
    };
    match event.op {
        HistoryOp::Put(value, size) => {
            operation.written = Some(value.to_string());
            operation.size = Some(size);
        }
        HistoryOp::Get(_, range) => operation.range = range,
        HistoryOp::Stat(_) | HistoryOp::Delete(_) | HistoryOp::List => {}
    }
    operation.answer = match event.saw {
        Saw::Pending => "pending",
        Saw::Done => "done",
        Saw::Absent => "absent",
        Saw::Failed(class) => {
            operation.class = Some(class.name());
            "failed"
        }
        Saw::Value(value) => {
            operation.value = Some(value.to_string());
            "value"
        }
        Saw::Present(size) => {
            operation.stated_size = size;
            "present"
        }
        Saw::Wrong(wrong) => {
            operation.class = Some(wrong.kind.name());
            operation.value = wrong.value.map(|value| value.to_string());
            operation.wrong_at = Some(wrong.at);
            "wrong"
        }
    };
    operation
}
