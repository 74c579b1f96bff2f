//! The commands that the user had run at instants of a stage, as a report shows them.

use std::time::Duration;

use plimsoll_record::schema::{Event, Manifest, Stage};
use plimsoll_report::EventReport;

/// Returns those of a stage, in the order in which they were asked for.
pub(crate) fn events(manifest: &Manifest, stage: &Stage) -> Vec<EventReport> {
    let own = manifest.events.iter().filter(|event| event.stage_index == stage.index);
    let report = |event: &Event| EventReport {
        asked_after: Duration::from_nanos(event.asked_after_ns),
        command: event.command.clone(),
        began_ns: event.began_ns,
        ended_ns: event.ended_ns,
        exit_code: event.exit_code,
        signal: event.signal,
        output: event.output.clone(),
        output_bytes: event.output_bytes,
        reason: event.reason.clone(),
    };
    let mut events: Vec<EventReport> = own.map(report).collect();
    events.sort_by_key(|event| event.asked_after);
    events
}
