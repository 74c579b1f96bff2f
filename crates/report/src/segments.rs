//! Every segment as a row with the columns of warp's `--analyze.out`, and its stage and job, for
//! tables and spreadsheets.
//!
//! What each column means here stands in `docs/formats/segments.md`.

use std::time::Duration;

use plimsoll_analysis::{Figures, SegmentRow};
use plimsoll_model::{OpKind, WallTime};

use crate::Report;
use crate::format::inert_cell;
use crate::report::RowView;
use crate::stage_words::numbered_title;
use crate::table::harmless;

/// The names of the columns that warp has as well, in their order.
pub const COLUMNS: [&str; 17] = [
    "index",
    "op",
    "host",
    "duration_s",
    "objects_per_op",
    "bytes",
    "full_ops",
    "partial_ops",
    "ops_started",
    "ops_ended",
    "errors",
    "mb_per_sec",
    "ops_ended_per_sec",
    "objs_per_sec",
    "reqs_ended_avg_ms",
    "start_time",
    "end_time",
];

/// The names of those that say where it was, in their order behind the others.
const WHERE: [&str; 3] = ["stage", "iteration_index", "job"];

/// One segment of one kind, at all endpoints or at one.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentOut {
    /// Its number within its block, from 0.
    pub index: u64,
    /// The kind of operation.
    pub op: OpKind,
    /// The endpoint; `None` for all of several.
    pub host: Option<String>,
    /// How long it is, in seconds.
    pub duration_s: f64,
    /// Objects per success over the whole stage; `None` without a success.
    pub objects_per_op: Option<f64>,
    /// Bytes moved, by share of time.
    pub bytes: u64,
    /// Successes wholly inside.
    pub full_ops: u64,
    /// Successes that touch it and reach beyond.
    pub partial_ops: u64,
    /// Successes that started in it.
    pub ops_started: u64,
    /// Successes that ended in it.
    pub ops_ended: u64,
    /// Operations that failed in it.
    pub errors: u64,
    /// Units of 1,048,576 bytes per second.
    pub mb_per_sec: f64,
    /// Successes that ended in it, per second.
    pub ops_ended_per_sec: f64,
    /// Objects handled per second, by share of time.
    pub objs_per_sec: f64,
    /// Mean latency in milliseconds of those that ended in it and began in the span; `None` when
    /// there is none.
    pub reqs_ended_avg_ms: Option<f64>,
    /// When it begins.
    pub start_time: WallTime,
    /// When it ends.
    pub end_time: WallTime,
    /// What its stage is called.
    pub stage: String,
    /// Which repetition of the stage it is of, 0-based.
    pub iteration: u32,
    /// What the job, or the group of jobs, is called.
    pub job: String,
}

impl SegmentOut {
    /// Returns its columns that warp does not have.
    fn place(&self) -> [String; WHERE.len()] {
        let cell = |text: &str| inert_cell(&harmless(text)).into_owned();
        [cell(&self.stage), self.iteration.to_string(), cell(&self.job)]
    }
}

/// What lies between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// As warp writes it: the columns' names above every block, times as Go prints them. Stage and
    /// job are left out where they are the same everywhere.
    Tab,
    /// RFC 4180: the names once, times as in RFC 3339.
    Comma,
}

/// Returns a block of segments for each kind of each row of each result and, with `by_host` and
/// several endpoints, one for the kind at each of them; nothing when the analysis was made without
/// details.
pub fn rows(report: &Report, by_host: bool) -> Vec<SegmentOut> {
    let mut all = Vec::new();
    let is_only = report.stages.len() == 1;
    for stage in report.stages.iter().filter(|stage| stage.is_result || is_only) {
        for row in &stage.rows {
            of_row(&RowView { report, stage, row }, by_host, &mut all);
        }
    }
    all
}

fn of_row(report: &RowView<'_>, by_host: bool, rows: &mut Vec<SegmentOut>) {
    let analysis = &report.row.analysis;
    let Some(details) = &analysis.details else { return };
    let several = report.endpoints.len().max(analysis.endpoints.len()) > 1;
    for (kind, of_kind) in analysis.kinds.iter().zip(&details.kinds) {
        debug_assert_eq!(kind.kind, of_kind.kind);
        let only = of_kind.endpoints.first().filter(|_| !several);
        let only = only.map(|at| report.endpoint(at.endpoint));
        rows.extend(block(report, kind.kind, only, &kind.figures, &of_kind.series));
        if !(by_host && several) {
            continue;
        }
        for (at, of) in kind.endpoints.iter().zip(&of_kind.endpoints) {
            debug_assert_eq!(at.endpoint, of.endpoint);
            let host = Some(report.endpoint(of.endpoint));
            rows.extend(block(report, kind.kind, host, &at.figures, &of.series));
        }
    }
}

fn block<'a>(
    report: &'a RowView<'_>,
    op: OpKind,
    host: Option<String>,
    figures: &Figures,
    series: &'a [SegmentRow],
) -> impl Iterator<Item = SegmentOut> + use<'a> {
    let stage = figures.stage;
    let objects_per_op = (stage.ops_ok > 0).then(|| stage.objects as f64 / stage.ops_ok as f64);
    let milliseconds = |time: Duration| time.as_nanos() as f64 / 1e6;
    series.iter().zip(0..).map(move |(row, index)| {
        let seconds = row.length.as_secs_f64();
        let start_time = report.wall_time(row.start);
        SegmentOut {
            index,
            op,
            host: host.clone(),
            duration_s: seconds,
            objects_per_op,
            bytes: row.bytes,
            full_ops: row.full,
            partial_ops: row.partial,
            ops_started: row.started,
            ops_ended: row.ended,
            errors: row.failed.count(),
            mb_per_sec: row.bytes as f64 / f64::from(1 << 20) / seconds,
            ops_ended_per_sec: row.ended as f64 / seconds,
            objs_per_sec: row.objects / seconds,
            reqs_ended_avg_ms: row.latency_mean.map(milliseconds),
            start_time,
            end_time: start_time.after(row.length),
            stage: numbered_title(&report.stage.name, report.stage.number_of_title),
            iteration: report.stage.iteration,
            job: report.row.name.clone(),
        }
    })
}

/// Returns the rows as text, a line each; nothing without rows.
pub fn delimited(rows: &[SegmentOut], separator: Separator) -> String {
    let mut out = String::new();
    // With tabs one job of one stage is written as by warp, which knows no other.
    let is_placed =
        separator == Separator::Comma || rows.windows(2).any(|of| of[0].place() != of[1].place());
    let mut write = |fields: [String; COLUMNS.len()], place: [String; WHERE.len()]| {
        let place = place.into_iter().take(if is_placed { WHERE.len() } else { 0 });
        line(fields.into_iter().chain(place).collect(), separator, &mut out);
    };
    for (at, row) in rows.iter().enumerate() {
        let heads_block = row.index == 0 && separator == Separator::Tab;
        if at == 0 || heads_block {
            write(COLUMNS.map(str::to_owned), WHERE.map(str::to_owned));
        }
        write(fields(row, separator), row.place());
    }
    out
}

/// Returns the fields of a row; unknown is empty.
fn fields(row: &SegmentOut, separator: Separator) -> [String; COLUMNS.len()] {
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let time = |at: WallTime| match separator {
        Separator::Tab => go_time(at),
        Separator::Comma => at.to_string(),
    };
    [
        row.index.to_string(),
        row.op.name().to_owned(),
        row.host
            .as_deref()
            .map(|host| inert_cell(&harmless(host)).into_owned())
            .unwrap_or_default(),
        row.duration_s.to_string(),
        optional(row.objects_per_op),
        row.bytes.to_string(),
        row.full_ops.to_string(),
        row.partial_ops.to_string(),
        row.ops_started.to_string(),
        row.ops_ended.to_string(),
        row.errors.to_string(),
        row.mb_per_sec.to_string(),
        row.ops_ended_per_sec.to_string(),
        row.objs_per_sec.to_string(),
        optional(row.reqs_ended_avg_ms),
        time(row.start_time),
        time(row.end_time),
    ]
}

fn line(fields: Vec<String>, separator: Separator, out: &mut String) {
    let text = match separator {
        Separator::Tab => fields.join("\t"),
        Separator::Comma => fields.into_iter().map(quoted).collect::<Vec<_>>().join(","),
    };
    out.push_str(&text);
    out.push('\n');
}

/// Returns a field in quotation marks if it holds one or a comma.
pub(crate) fn quoted(field: String) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

/// Returns a time as Go prints one in UTC: `2026-11-20 20:57:53.4763 +0000 UTC`, without zeros at
/// the end of the fraction.
fn go_time(at: WallTime) -> String {
    let text = at.to_string().replace('T', " ").replace('Z', "");
    format!("{} +0000 UTC", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
