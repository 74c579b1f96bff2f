//! The counters as text that Prometheus reads (exposition format 0.0.4).
//!
//! Written by hand: the counters live in `plimsoll_engine::Live`, and a client library would want
//! to own them.

use std::fmt::{self, Write as _};

use plimsoll_engine::{LiveDetail, PartState, latency_cell_end_ns};
use plimsoll_model::{ErrorClass, OpKind};

use crate::snapshot::{Board, Snapshot, seconds};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the text.
pub(super) fn text(board: &Board, snapshot: &Snapshot) -> String {
    let mut text = String::with_capacity(1 << 16);
    write_all(&mut text, board, snapshot).expect("writing to memory does not fail");
    text
}

fn write_all(out: &mut String, board: &Board, snapshot: &Snapshot) -> fmt::Result {
    family(out, "plimsoll_run_info", "gauge", "The run, always 1.")?;
    writeln!(
        out,
        "plimsoll_run_info{{run=\"{}\",what=\"{}\",version=\"{}\"}} 1",
        escaped(&board.run_id),
        escaped(&board.what),
        env!("CARGO_PKG_VERSION")
    )?;
    family(out, "plimsoll_stage_info", "gauge", "1 for the current stage, 0 for earlier ones.")?;
    for (index, stage) in snapshot.stages.iter().enumerate() {
        let under_way = u8::from(index + 1 == snapshot.stages.len());
        writeln!(out, "plimsoll_stage_info{{stage=\"{}\"}} {under_way}", escaped(&stage.name))?;
    }
    let help = "Operations ended, by how they ended: ok, or a class of failure.";
    family(out, "plimsoll_operations_total", "counter", help)?;
    each(snapshot, |labels, detail| {
        for class in ErrorClass::ALL {
            let count = detail.ended[class as usize];
            if count > 0 || class.is_ok() {
                let name = class.name();
                writeln!(out, "plimsoll_operations_total{{{labels},outcome=\"{name}\"}} {count}")?;
            }
        }
        Ok(())
    })?;
    family(out, "plimsoll_bytes_total", "counter", "Content bytes of successful operations.")?;
    each(snapshot, |labels, detail| {
        writeln!(out, "plimsoll_bytes_total{{{labels}}} {}", detail.bytes)
    })?;
    let help = "Objects that successful operations handled: listed, deleted, else 1 each.";
    family(out, "plimsoll_objects_total", "counter", help)?;
    each(snapshot, |labels, detail| {
        writeln!(out, "plimsoll_objects_total{{{labels}}} {}", detail.objects)
    })?;
    let help = "Latency of successful operations, from the intended start to the end.";
    family(out, "plimsoll_latency_seconds", "histogram", help)?;
    each(snapshot, |labels, detail| histogram(out, labels, detail))?;
    if snapshot.stages.iter().any(|stage| !stage.parts.is_empty()) {
        agents(out, snapshot)?;
    }
    let help = "Processor time of the load generator, all cores, user and system.";
    family(out, "process_cpu_seconds_total", "counter", help)?;
    writeln!(out, "process_cpu_seconds_total {}", snapshot.cpu.as_secs_f64())
}

/// Writes what is known of each agent of a fleet.
fn agents(out: &mut String, snapshot: &Snapshot) -> fmt::Result {
    let of_stages = || {
        let of_stage = |stage| move |part| (stage, part);
        snapshot.stages.iter().flat_map(move |stage| stage.parts.iter().map(of_stage(stage)))
    };
    let help = "Operations that an agent has ended, by whether they succeeded.";
    family(out, "plimsoll_agent_operations_total", "counter", help)?;
    for (stage, (part, counts)) in of_stages() {
        let labels =
            format!("stage=\"{}\",agent=\"{}\"", escaped(&stage.name), escaped(&part.name));
        for (outcome, count) in [("ok", counts.ok), ("failed", counts.failed)] {
            let name = "plimsoll_agent_operations_total";
            writeln!(out, "{name}{{{labels},outcome=\"{outcome}\"}} {count}")?;
        }
    }
    let help = "Content bytes of an agent's successful operations.";
    family(out, "plimsoll_agent_bytes_total", "counter", help)?;
    for (stage, (part, counts)) in of_stages() {
        let (stage, agent) = (escaped(&stage.name), escaped(&part.name));
        let name = "plimsoll_agent_bytes_total";
        writeln!(out, "{name}{{stage=\"{stage}\",agent=\"{agent}\"}} {}", counts.bytes)?;
    }
    let help = "1 while an agent reports, 0 when it is silent or lost.";
    family(out, "plimsoll_agent_up", "gauge", help)?;
    let last = snapshot.stages.last().into_iter().flat_map(|stage| &stage.parts);
    for (part, _) in last {
        let is_up = u8::from(matches!(part.state, PartState::Works | PartState::Done));
        writeln!(out, "plimsoll_agent_up{{agent=\"{}\"}} {is_up}", escaped(&part.name))?;
    }
    Ok(())
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Calls `write` for every kind of every stage, with the labels that say which.
fn each(
    snapshot: &Snapshot,
    mut write: impl FnMut(&str, &LiveDetail) -> fmt::Result,
) -> fmt::Result {
    for stage in &snapshot.stages {
        for (kind, detail) in &stage.kinds {
            write(&labels(&stage.name, *kind), detail)?;
        }
    }
    Ok(())
}

fn labels(stage: &str, kind: OpKind) -> String {
    format!("stage=\"{}\",kind=\"{}\"", escaped(stage), kind.name())
}

fn histogram(out: &mut String, labels: &str, detail: &LiveDetail) -> fmt::Result {
    let mut count = 0;
    for (cell, in_cell) in detail.latency_cells.iter().enumerate() {
        count += in_cell;
        if let Some(end) = latency_cell_end_ns(cell) {
            let end = seconds(end);
            writeln!(out, "plimsoll_latency_seconds_bucket{{{labels},le=\"{end}\"}} {count}")?;
        }
    }
    writeln!(out, "plimsoll_latency_seconds_bucket{{{labels},le=\"+Inf\"}} {count}")?;
    let sum = seconds(detail.latency_ns);
    writeln!(out, "plimsoll_latency_seconds_sum{{{labels}}} {sum}")?;
    writeln!(out, "plimsoll_latency_seconds_count{{{labels}}} {count}")
}

/// Returns a label's value as it stands between quotation marks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
