//! Operations of a log as a time line counts them.

use plimsoll_model::{OpRecord, SeriesKey};
use plimsoll_stats::Sample;

/// Returns the series that an operation is part of.
pub fn series_of(op: &OpRecord) -> SeriesKey {
    SeriesKey { stage: op.stage, kind: op.kind, endpoint: op.endpoint }
}

/// Returns what a time line takes of an operation.
pub fn sample_of(op: &OpRecord) -> Sample {
    Sample {
        start_ns: op.start.as_ns(),
        end_ns: op.end.as_ns(),
        latency_ns: op.latency().as_nanos() as u64,
        ttfb_ns: op.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
        bytes: op.bytes,
        objects: u64::from(op.objects_count),
        outcome: op.outcome as u8,
    }
}
