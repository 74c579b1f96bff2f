//! The table of segments that warp writes for `--analyze.out`.

use std::fmt::Write;

use plimsoll_analysis::warp::{Recording, WarpAnalysis, WarpSegment, WarpTable};
use plimsoll_model::OpKind;
use plimsoll_report::segments::COLUMNS;

use super::words::date_time;

/// Returns the segments of each kind, and of each endpoint of it, in the order of time; every
/// table begins with its header line.
pub fn segments_tsv(analysis: &WarpAnalysis, recording: &Recording<'_>) -> String {
    let mut text = String::new();
    for (kind, table) in analysis.kinds.iter().flat_map(|k| k.tables.iter().map(|t| (k.kind, t))) {
        text.push_str(&COLUMNS.join("\t"));
        text.push('\n');
        for (index, segment) in table.segments.iter().enumerate() {
            row(&mut text, kind, table, recording, (index, segment));
        }
    }
    text
}

fn row(
    text: &mut String,
    kind: OpKind,
    table: &WarpTable,
    recording: &Recording<'_>,
    (index, segment): (usize, &WarpSegment),
) {
    let shares = &segment.shares;
    let host = table.endpoint.map_or("", |id| recording.endpoint(id));
    let numbers: [&dyn std::fmt::Display; 12] = [
        &segment.length.as_secs_f64(),
        &table.objects_per_operation,
        &shares.bytes,
        &shares.full_ops,
        &shares.partial_ops,
        &shares.ops_started,
        &shares.ops_ended,
        &shares.errors,
        &segment.mib_per_second(),
        &segment.ops_ended_per_second(),
        &segment.objects_per_second(),
        &segment.mean_millis().unwrap_or(0.0),
    ];
    // Writing to a String cannot fail.
    let _ = write!(text, "{index}\t{}\t{host}", kind.name());
    for number in numbers {
        let _ = write!(text, "\t{number}");
    }
    let at = |moment| date_time(moment, recording.utc_offset_seconds, 9);
    let (start, end) = (at(segment.start), at(segment.start.after(segment.length)));
    let _ = writeln!(text, "\t{start}\t{end}");
}
