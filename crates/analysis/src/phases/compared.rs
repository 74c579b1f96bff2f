//! The figures of a stage of a run on files, as runs are compared by.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_stats::Histogram;

use super::{KindFigures, PhaseAnalysis};
use crate::TimeSummary;
use crate::compare::{KindFigures as Compared, Metric, Noise, RunFigures, Windowed};

/// Returns the figures of a stage, each kind over all of its rows.
pub fn compared(name: impl Into<String>, stage: &PhaseAnalysis) -> RunFigures {
    let of = |kind: OpKind| {
        let rows: Vec<&KindFigures> = stage.rows.iter().flat_map(|row| row.kind(kind)).collect();
        (!rows.is_empty()).then(|| of_rows(Some(kind), &rows, stage.window))
    };
    let mut kinds: Vec<Compared> = OpKind::ALL.into_iter().filter_map(of).collect();
    if kinds.len() > 1 {
        let all: Vec<&KindFigures> = stage.rows.iter().flat_map(|row| &row.kinds).collect();
        kinds.push(of_rows(None, &all, stage.window));
    }
    RunFigures { name: name.into(), kinds }
}

/// Returns the figures of kinds together: rates add up, each over the time of its own row, and
/// times are put together.
fn of_rows(kind: Option<OpKind>, rows: &[&KindFigures], window: Duration) -> Compared {
    let moves_bytes = rows.iter().any(|of| of.kind.moves_bytes());
    let mut of = Compared::new(kind, moves_bytes);
    let failed: u64 = rows.iter().map(|of| of.failed.count()).sum();
    let ended = failed + rows.iter().map(|of| of.ops_ok).sum::<u64>();
    of.operations = Some(ended);
    of.set(Metric::Errors, (ended > 0).then(|| failed as f64 / ended as f64));
    let rate: Option<f64> = rows.iter().map(|of| of.ops_per_sec).sum();
    of.set(Metric::Rate, rate);
    of.set(Metric::Objects, rate);
    let bytes = rows.iter().filter(|of| of.kind.moves_bytes()).map(|of| of.bytes_per_sec);
    of.set(Metric::Throughput, bytes.sum::<Option<f64>>().filter(|_| moves_bytes));
    let mut latency = Histogram::default();
    rows.iter().for_each(|of| latency.merge(of.latency.histogram()));
    of.set_times(&TimeSummary::of(&latency), &TimeSummary::default());
    let windows = windows_of(rows, window);
    set_windows(&mut of, &windows);
    if let Some(noise) = Noise::of_windows(&windows) {
        noise.fill(&mut of);
    }
    of
}

/// Sets the fastest, median and slowest window, in the order that segments have.
fn set_windows(of: &mut Compared, windows: &[Windowed]) {
    let mut slowest_first: Vec<&Windowed> = windows.iter().collect();
    slowest_first.sort_by_key(|window| (window.bytes, window.ops));
    let (Some(slowest), Some(fastest)) = (slowest_first.first(), slowest_first.last()) else {
        return;
    };
    let median = slowest_first[(slowest_first.len() - 1) / 2];
    for (of_bytes, of_objects, window) in [
        (Metric::Fastest, Metric::FastestObjects, fastest),
        (Metric::Median, Metric::MedianObjects, &median),
        (Metric::Slowest, Metric::SlowestObjects, slowest),
    ] {
        let bytes = window.bytes as f64 / window.seconds;
        of.set(of_bytes, of.moves_bytes.then_some(bytes));
        of.set(of_objects, Some(window.ops as f64 / window.seconds));
    }
}

/// Returns what rows did together in each window that is whole in all of them that reach it, in the
/// order of time.
fn windows_of(rows: &[&KindFigures], window: Duration) -> Vec<Windowed> {
    let mut windows: BTreeMap<Duration, Option<Windowed>> = BTreeMap::new();
    for each in rows.iter().flat_map(|of| &of.windows) {
        let empty = Windowed { seconds: window.as_secs_f64(), ..Windowed::default() };
        let sum = windows.entry(each.start).or_insert(Some(empty));
        if each.length < window {
            *sum = None;
        } else if let Some(sum) = sum {
            sum.ops += each.ops;
            sum.bytes += each.bytes;
            let mean = each.latency_mean.map_or(0.0, |mean| mean.as_nanos() as f64);
            sum.latency_ns += mean * each.ops as f64;
        }
    }
    windows.into_values().flatten().collect()
}
