//! The data of a page: the JSON report, less what would make the file too large.

use serde::Serialize;
use serde_json::{Value, json};

use super::document::within_script;
use crate::report::Report;

/// What is left out of the data, in this order, until it is small enough.
const LESS_IMPORTANT: [(Less, &str); 10] = [
    (Less::Endpoints, "the segments of each host"),
    (Less::Series, "the segments of each kind"),
    (Less::Bins, "the bins of the times"),
    (Less::DetailsOfProbes, "the details of probes"),
    (Less::Details, "all details"),
    (Less::Probes, "the stages that are probes"),
    (Less::Hosts, "the figures of hosts"),
    (Less::Texts, "the ends of long texts"),
    (Less::Stages, "the stages"),
    (Less::All, "everything else"),
];
/// A report whose JSON takes more is not made into it: that would take several times as much.
const JSON_BYTES_MAX: usize = 64 << 20;
/// How much is left of long texts, where their ends are left out.
const CHARS_LEFT: usize = 200;

/// A part of the data that may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Less {
    Endpoints,
    Series,
    Bins,
    DetailsOfProbes,
    Details,
    Probes,
    Hosts,
    Texts,
    Stages,
    All,
}

/// Returns the JSON report with at most about `room` bytes, and what had to be left out for that.
pub(super) fn data(report: &Report, room: usize) -> (String, Option<String>) {
    let text = within_script;
    let mut left_out = Vec::new();
    let mut data = json!({});
    if len_within_script(report) > JSON_BYTES_MAX {
        drop_part(&mut data, Less::All);
        left_out.push("everything");
    } else {
        data = crate::json::value(report);
    }
    let mut len = len_within_script(&data);
    for (less, name) in LESS_IMPORTANT {
        if len <= room {
            break;
        }
        // Of most runs no stage is a probe.
        if drop_part(&mut data, less) {
            left_out.push(name);
            len = len_within_script(&data);
        }
    }
    if left_out.is_empty() {
        return (text(&data), None);
    }
    let note = format!("left out here to keep the file small: {}", left_out.join(", "));
    if let Some(notes) = data["notes"].as_array_mut() {
        notes.push(note.clone().into());
    }
    (text(&data), Some(note))
}

/// Leaves out a part of the data, and tells whether there was anything of it.
fn drop_part(data: &mut Value, less: Less) -> bool {
    let mut any = false;
    match less {
        Less::Texts => return cut_texts(data),
        Less::All => {
            *data = json!({ "schema": crate::json::SCHEMA, "notes": [] });
            return true;
        }
        _ => {}
    }
    let Some(stages) = data["stages"].as_array_mut() else { return any };
    let is_probe = |stage: &Value| stage.get("search_index").is_some();
    if less == Less::Probes {
        let all = stages.len();
        stages.retain(|stage| !is_probe(stage));
        return stages.len() < all;
    }
    if less == Less::Stages {
        return !std::mem::take(stages).is_empty();
    }
    for stage in stages.iter_mut().filter(|stage| less != Less::DetailsOfProbes || is_probe(stage))
    {
        for row in stage["rows"].as_array_mut().into_iter().flatten() {
            any |= drop_of_row(row, less);
        }
    }
    any
}

/// Leaves out a part of the data of a row, and tells whether there was anything of it.
fn drop_of_row(row: &mut Value, less: Less) -> bool {
    let field = match less {
        Less::Endpoints => "endpoints",
        Less::Series => "series",
        Less::Bins => {
            row["kinds"].as_array_mut().into_iter().flatten().for_each(drop_bins);
            return true;
        }
        Less::Hosts => {
            let kinds = row["kinds"].as_array_mut().into_iter().flatten();
            for endpoints in kinds.filter_map(|kind| kind.get_mut("endpoints")) {
                *endpoints = json!([]);
            }
            return row["endpoints"]
                .as_array_mut()
                .is_some_and(|of| !std::mem::take(of).is_empty());
        }
        Less::Texts | Less::Stages | Less::All => return false,
        Less::DetailsOfProbes | Less::Details | Less::Probes => {
            return !std::mem::take(&mut row["details"]).is_null();
        }
    };
    let kinds = row["details"].get_mut("kinds").and_then(Value::as_array_mut);
    let kinds = kinds.into_iter().flatten();
    kinds.fold(false, |_, kind| {
        kind[field] = json!([]);
        true
    })
}

/// Leaves out the bins of all times of a kind.
fn drop_bins(kind: &mut Value) {
    for (_, times) in kind.as_object_mut().into_iter().flatten() {
        times.as_object_mut().map(|times| times.remove("bins"));
    }
}

/// Cuts all long texts, and tells whether there was one.
fn cut_texts(data: &mut Value) -> bool {
    match data {
        Value::String(text) if text.chars().count() > CHARS_LEFT => {
            *text = text.chars().take(CHARS_LEFT).chain(['…']).collect();
            true
        }
        Value::Array(values) => values.iter_mut().fold(false, |any, of| cut_texts(of) | any),
        Value::Object(values) => values.values_mut().fold(false, |any, of| cut_texts(of) | any),
        _ => false,
    }
}

/// Returns how long something is as JSON within a script, without making it.
fn len_within_script(data: &impl Serialize) -> usize {
    /// Counts what is written.
    struct Counted(usize);

    impl std::io::Write for Counted {
        fn write(&mut self, content: &[u8]) -> std::io::Result<usize> {
            // Each takes six bytes there.
            let escaped = content.iter().filter(|byte| **byte == b'<').count();
            self.0 += content.len() + 5 * escaped;
            Ok(content.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, data).expect("nothing refuses what is only counted");
    counted.0
}
