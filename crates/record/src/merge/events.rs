//! The events of the runs that are merged, in the whole's time and stages.

use super::MergePart;
use super::stages::Column;
use crate::schema::Event;

/// Returns the events of all parts in the order of their moments.
pub(super) fn events<E>(parts: &[MergePart<'_, E>], columns: &[Column], epoch: u64) -> Vec<Event> {
    let mut events = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let later = part.manifest.started_unix_ns - epoch;
        for event in &part.manifest.events {
            let own = Some(usize::from(event.stage_index));
            let Some(stage) = columns.iter().position(|column| column.of_part(at) == own) else {
                continue;
            };
            events.push(Event {
                stage_index: stage as u8,
                began_ns: event.began_ns.map(|at| at + later),
                ended_ns: event.ended_ns.map(|at| at + later),
                ..event.clone()
            });
        }
    }
    events.sort_by_key(|event| (event.stage_index, event.began_ns, event.asked_after_ns));
    events
}
