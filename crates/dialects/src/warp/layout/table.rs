//! The table of segments that warp writes for `--analyze.out`.

use std::fmt::Write;

use plimsoll_analysis::warp::{WarpAnalysis, WarpSegment, WarpTable};
use plimsoll_model::OpKind;
use plimsoll_report::segments::COLUMNS;

use super::WarpNames;
use super::words::date_time;

/// Returns the segments of each kind, and of each endpoint of it, in the order of time; every
/// table begins with its header line.
pub fn segments_tsv(
    analysis: &WarpAnalysis,
    names: WarpNames<'_>,
    utc_offset_seconds: i32,
) -> String {
    let mut text = String::new();
    for (kind, table) in analysis.kinds.iter().flat_map(|k| k.tables.iter().map(|t| (k.kind, t))) {
        text.push_str(&COLUMNS.join("\t"));
        text.push('\n');
        for (index, segment) in table.segments.iter().enumerate() {
            row(&mut text, kind, table, names, (index, segment), utc_offset_seconds);
        }
    }
    text
}

fn row(
    text: &mut String,
    kind: OpKind,
    table: &WarpTable,
    names: WarpNames<'_>,
    (index, segment): (usize, &WarpSegment),
    offset: i32,
) {
    let shares = &segment.shares;
    let host = table.endpoint.map_or("", |id| names.endpoint(id));
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
    let end = segment.start.after(segment.length);
    let (start, end) = (date_time(segment.start, offset, 9), date_time(end, offset, 9));
    let _ = writeln!(text, "\t{start}\t{end}");
}
