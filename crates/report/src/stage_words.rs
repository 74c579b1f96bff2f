//! Parts of the report as words, the same in text and on the page.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::{KindAnalysis, RowAnalysis};
use plimsoll_model::{ByteRate, CacheState, EndReason, JobWork, OpKind, OpRate};

use crate::format::plural;
use crate::format::{byte_rate, bytes, count, duration, known, number};
use crate::schedule::{Observed, stood_still};
use crate::words::pacing;
use crate::{JobSchedule, LoopModel, RowReport, StageReport, TargetReport};

const GIB: f64 = (1u64 << 30) as f64;

/// Returns operations a second; `None` where the row took no time.
pub(crate) fn ops_per_sec(kind: &KindAnalysis) -> Option<f64> {
    kind.figures.rates.map(|rates| rates.ops.0)
}

/// Returns bytes a second; `None` also for kinds that move none.
pub(crate) fn bytes_per_sec(kind: &KindAnalysis) -> Option<f64> {
    kind.figures.rates.filter(|_| kind.figures.moves_bytes).map(|rates| rates.bytes.0)
}

/// Tells whether operations of a kind are on blocks of open files, and not on names.
fn is_on_blocks(kind: OpKind) -> bool {
    matches!(kind, OpKind::Read | OpKind::Write | OpKind::Sync)
}

/// Returns where load went, and what lies there.
pub(crate) fn target(target: &TargetReport) -> String {
    if !target.is_files {
        return target.place();
    }
    let device = target.device.as_ref().map(|device| format!(" on {device}"));
    let file_system = target.file_system.as_deref().unwrap_or("unknown file system");
    let free = target.free_bytes.map(|free| format!(", {} free", bytes(free)));
    let (device, free) = (device.unwrap_or_default(), free.unwrap_or_default());
    format!("{}, {file_system}{device}{free}", target.address)
}

/// How well a schedule was kept, in words.
pub(crate) struct ScheduleTold {
    /// A name and a text each.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// By how much it was not kept, and what to change; `None` if it was.
    pub(crate) warning: Option<String>,
}

/// Returns how well each schedule was kept.
pub(crate) fn schedules_told(stage: &StageReport) -> Vec<ScheduleTold> {
    let all = || stage.rows.iter().flat_map(|row| row.schedules.iter().map(move |of| (row, of)));
    let named = stage.rows.len() > 1 || all().count() > 1;
    all().map(|(row, of)| schedule_told(row, of, named)).collect()
}

fn schedule_told(row: &RowReport, of: &JobSchedule, named: bool) -> ScheduleTold {
    // An `fsync` comes with the writes and not by the schedule.
    let kinds = || row.analysis.kinds.iter().filter(|kind| kind.kind != OpKind::Sync);
    let samples: u64 = kinds().map(|kind| kind.figures.service().samples).sum();
    let sum: f64 = kinds().map(|kind| kind.figures.service().sum_ns()).sum();
    let mean = (samples > 0).then(|| Duration::from_nanos((sum / samples as f64) as u64));
    let in_flight = row.analysis.in_flight.as_ref().filter(|_| of.is_alone);
    let observed = Observed {
        service_mean: mean,
        service_max: kinds().filter_map(|kind| kind.figures.service().max).max(),
        failed_count: row.failed_share().failed,
        stood_still: stood_still(&row.analysis),
        full_load: in_flight.and_then(|of_row| of_row.full_load(of.schedule.max_in_flight)),
        cpu_share: None,
    };
    let rates: Option<Vec<f64>> = kinds().map(ops_per_sec).collect();
    let achieved = rates.map(|rates| OpRate(rates.iter().sum()));
    let lead = if named { format!("{}: ", of.job) } else { String::new() };
    // Jobs that share a row are not told apart in its rate.
    let is_whole = !row.analysis.is_part;
    let facts = of.schedule.facts((of.is_alone && is_whole).then_some(achieved));
    ScheduleTold {
        facts: facts.into_iter().map(|(name, text)| (name, format!("{lead}{text}"))).collect(),
        warning: of
            .schedule
            .warning(is_whole.then_some(&observed))
            .map(|text| format!("{lead}{text}")),
    }
}

/// Returns throughput with the binary unit that leaves three digits: `612 MiB/s`, `1.20 GiB/s`.
pub(crate) fn throughput(per_sec: f64) -> String {
    if per_sec / f64::from(1 << 20) < 999.5 {
        return byte_rate(ByteRate(per_sec));
    }
    format!("{} GiB/s", number(per_sec / GIB))
}

/// Returns operations per second: IOPS for blocks that are read or written.
pub(crate) fn rate(kind: OpKind, per_sec: f64) -> String {
    let unit = if matches!(kind, OpKind::Read | OpKind::Write) { "IOPS" } else { "ops/s" };
    format!("{} {unit}", number(per_sec))
}

/// Returns the rate of all rows of a stage together, of which one does operations of a kind:
/// operations of all over the time from the beginning of the first span to the end of the last, as
/// jobs need not have run at once. `None` where there is none, or where units differ.
pub(crate) fn rate_of_rows(stage: &StageReport, kind: OpKind) -> Option<String> {
    if stage.kinds().any(|(_, of)| is_on_blocks(of.kind) != is_on_blocks(kind)) {
        return None;
    }
    // A row that ended within its ramp has no rate, and no time in it.
    let rated = stage.rows.iter().filter_map(|row| Some((row.analysis.total.rates?, row)));
    let rated: Vec<_> = rated.map(|(rates, row)| (rates.ops.0, row.analysis.span)).collect();
    let start = rated.iter().map(|(_, span)| span.start).min()?;
    let lasted = rated.iter().map(|(_, span)| span.end).max()?.since(start).as_secs_f64();
    let ops: f64 = rated.iter().map(|(ops, span)| ops * span.length().as_secs_f64()).sum();
    Some(match &rated[..] {
        // Not rounded twice.
        [(only, _)] => rate(kind, *only),
        _ => rate(kind, ops / lasted),
    })
}

/// Returns the latencies of a headline with their names: p50 and p99 of the only kind, and of each
/// of several its p99. One percentile over a mix of kinds describes none of them.
pub(crate) fn latencies(row: &RowAnalysis) -> impl Iterator<Item = (String, Duration)> {
    let named = |name: &str, time: Option<Duration>| Some((name.to_owned(), time?));
    let of_kind =
        |of: &KindAnalysis| named(&format!("{} p99", of.kind.name()), of.figures.latency.p99);
    let all: Vec<_> = match &row.kinds[..] {
        several @ [_, _, ..] => several.iter().map(of_kind).collect(),
        _ => vec![named("p50", row.total.latency.p50), named("p99", row.total.latency.p99)],
    };
    all.into_iter().flatten()
}

/// Returns the throughput of a kind; nothing where none is moved.
pub(crate) fn throughput_of(kind: &KindAnalysis, per_sec: Option<f64>) -> String {
    match kind.figures.stage.bytes {
        0 => String::new(),
        _ => known(per_sec, throughput),
    }
}

/// Returns what a stage is called, with the number of its repetition from the second on, and that
/// among stages of one name: no two stages of a run are called alike.
pub fn name(stage: &StageReport) -> String {
    numbered_title(&stage_title(&stage.name, stage.iteration), stage.number_of_title)
}

/// Returns a title with its 1-based number among equal ones, from the second on: `main #2`.
pub fn numbered_title(title: &str, number: u32) -> String {
    match number {
        0 | 1 => title.to_owned(),
        number => format!("{title} #{number}"),
    }
}

/// Returns the number of each title among equal ones, with which no two are alike: one that is
/// called `main #2` by itself takes that number from the others.
pub fn numbers_of_titles(titles: &[String]) -> Vec<u32> {
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(titles.len());
    for title in titles {
        let mut number = last.get(title.as_str()).map_or(1, |last| last + 1);
        while number > 1 && titles.contains(&numbered_title(title, number)) {
            number += 1;
        }
        last.insert(title, number);
        numbers.push(number);
    }
    numbers
}

/// Returns a stage's name with the number of its repetition, which is 0-based, from the second on.
pub fn stage_title(name: &str, iteration: u32) -> String {
    match iteration {
        0 => name.to_owned(),
        again => format!("{name} ({})", u64::from(again) + 1),
    }
}

/// Returns when a stage ran, and what ended it: `2.00 s from +1.00 s, time up`.
pub(crate) fn ran(stage: &StageReport) -> String {
    let ended = stage.ended_by.map_or(String::new(), |by| format!(", {}", ended(by)));
    format!("{} from +{}{ended}", duration(stage.took), duration(stage.started_after))
}

/// Returns what ended a stage, in words.
fn ended(by: EndReason) -> &'static str {
    match by {
        EndReason::OutOfWork => "all work done",
        EndReason::Duration => "time up",
        EndReason::Steady | EndReason::Until => "ended by a stop rule",
        EndReason::Failure => "ended by a failure",
        EndReason::Stopped => "stopped early",
    }
}

/// Returns what a row did: `randread 4 KiB, 4 workers × depth 16, O_DIRECT, io_uring, caches
/// bypassed`.
pub(crate) fn work(row: &RowReport) -> String {
    let block = row.block.as_ref().map_or(String::new(), |block| format!(" {block}"));
    let depth = match row.depth {
        Some(0 | 1) => String::new(),
        depth => format!(" × depth {}", known(depth.map(u64::from), count)),
    };
    let workers = plural(u64::from(row.analysis.workers_count), "worker");
    let work = row.work().unwrap_or_else(|| "work that is not known".to_owned());
    let mut parts = vec![format!("{work}{block}"), format!("{workers}{depth}")];
    parts.extend(row.direct.then(|| "O_DIRECT".to_owned()));
    parts.extend(row.interface.map(|interface| interface.name().to_owned()));
    parts.push(row.caches.map_or("caching not known", caches).to_owned());
    parts.extend(pacings(row));
    parts.join(", ")
}

/// Returns when operations of the jobs of a row start, where that is not when others have ended;
/// jobs that differ in it are named.
fn pacings(row: &RowReport) -> Vec<String> {
    let schedule = |job: &str| {
        let named = row.schedules.iter().find(|of| of.job == job);
        named.map(|of| &of.schedule)
    };
    let Some((_, first)) = row.paced.first() else { return Vec::new() };
    let alike = row.paced.iter().all(|(_, model)| model == first) && row.schedules.len() < 2;
    let paced = row.paced.iter().filter(|(_, model)| *model != LoopModel::Closed);
    let told = paced.map(|(job, model)| {
        let lead = if alike { String::new() } else { format!("{job}: ") };
        lead + &pacing(*model, schedule(job), "")
    });
    told.take(if alike { 1 } else { usize::MAX }).collect()
}

/// Returns what lay between the operations and the medium.
pub(crate) fn caches(state: CacheState) -> &'static str {
    match state {
        CacheState::Dropped => "own files dropped from caches before",
        CacheState::DroppedMachine => "caches of the machine dropped before",
        CacheState::Bypassed => "caches bypassed",
        CacheState::Cached => "caches in use",
    }
}

/// Returns what a stage did of which no operation is recorded.
fn idle(stage: &StageReport) -> &'static str {
    let all = |work| stage.rows.iter().all(|row| row.work == Some(work));
    match () {
        () if all(JobWork::MakeBuckets) => "made buckets",
        () if all(JobWork::RemoveBuckets) => "removed buckets",
        () => "nothing",
    }
}

/// Returns what stages did that are no result, in one line.
pub(crate) fn prepared(stage: &StageReport) -> String {
    let kinds = stage.kinds().map(|(_, kind)| {
        let moved = match kind.figures.stage.bytes {
            0 => String::new(),
            moved => format!(", {}", bytes(moved)),
        };
        format!("{} {}{moved}", count(kind.figures.stage.ops_ok), kind.kind.name())
    });
    let kinds: Vec<String> = kinds.collect();
    if stage.rows.iter().all(|row| row.analysis.workers_count == 0) {
        return format!("a pause of {}", duration(stage.took));
    }
    let all = if kinds.is_empty() { idle(stage).to_owned() } else { kinds.join("; ") };
    let failed = match stage.failed_count() {
        0 => String::new(),
        failed => format!("; {} failed", count(failed)),
    };
    // That it came to its end needs no word.
    let ended = match stage.ended_by {
        None | Some(EndReason::OutOfWork | EndReason::Duration) => String::new(),
        Some(by) => format!("; {}", ended(by)),
    };
    format!("{all} in {}{failed}{ended} (no result)", duration(stage.took))
}

/// Tells whether first done and last done are shown of a kind: always of names, of blocks when they
/// lie more than 1 % apart.
pub(crate) fn shows_done(row: &RowReport, kind: &KindAnalysis) -> bool {
    let (Some(first), Some(last)) = (kind.figures.first_done, kind.figures.last_done) else {
        return false;
    };
    let apart = last.after.saturating_sub(first.after);
    !is_on_blocks(kind.kind)
        || (kind.kind != OpKind::Sync && row.analysis.took().is_some_and(|took| apart > took / 100))
}

/// Returns what stands before [`ramp`]: with a ramp may be counted what was left out.
pub(crate) fn ramp_name(stage: &StageReport) -> &'static str {
    if stage.is_part() { "left out" } else { "ramp" }
}

/// Returns what was done in ramps, in one sentence; `None` without ramps.
pub(crate) fn ramp(stage: &StageReport) -> Option<String> {
    let ok: u64 = stage.rows.iter().map(|row| row.analysis.ramp.ops_ok).sum();
    let failed: u64 = stage.rows.iter().map(|row| row.analysis.ramp.failed.count()).sum();
    let told = || {
        let failed_text =
            if failed > 0 { format!(", {} failed", count(failed)) } else { String::new() };
        format!("{}{failed_text}: in no figure", plural(ok + failed, "operation"))
    };
    (ok + failed > 0).then(told)
}

/// Returns how many contents were wrong, by what was wrong with them; `None` if none was.
pub(crate) fn wrong(stage: &StageReport) -> Option<String> {
    let kinds = stage.wrong.iter().filter(|(_, times)| **times > 0);
    let kinds: Vec<String> =
        kinds.map(|(kind, times)| format!("{} {kind}", count(*times))).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// Returns how many reads could not be checked, in one sentence; `None` if none was.
pub(crate) fn unchecked(stage: &StageReport) -> Option<String> {
    let told = || {
        let reads = plural(stage.unchecked_count, "read");
        let were = if stage.unchecked_count == 1 { "was" } else { "were" };
        format!("{reads} {were} counted and not checked: what they should hold is unknown")
    };
    (stage.unchecked_count > 0).then(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_titles_are_alike_once_they_are_numbered() {
        let titles = ["main", "main", "other", "main #2", "main"].map(str::to_owned);
        let numbers = numbers_of_titles(&titles);
        let told =
            titles.iter().zip(&numbers).map(|(title, number)| numbered_title(title, *number));
        let told: Vec<String> = told.collect();
        assert_eq!(told, ["main", "main #3", "other", "main #2", "main #4"]);
    }
}
