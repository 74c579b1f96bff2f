//! Figures over time: what was counted second by second, in cells of equal length.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use plimsoll_model::per_sec;
use plimsoll_stats::Percentile;
use serde::{Deserialize, Serialize};

use crate::console::Console;
use crate::disk;
use crate::facts::{Facts, StageState};
use crate::live::Told;
use crate::state::Number;
use crate::store::StoreError;
use crate::ticks::{Counted, HostPart, Part, Row, Tick, merged};

/// Rows of a timeline are cut into parts of this at most.
pub(super) const TIMELINE_MAX: usize = 1_000;

/// What was counted so far.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesDoc {
    pub(crate) seq: u64,
    pub(crate) interval_ms: u64,
    pub(crate) began_at_ms: Option<i64>,
    pub(crate) rows: Vec<SeriesRowDoc>,
    /// By address: from counters while it runs, from its record afterwards.
    pub(crate) hosts: Vec<HostDoc>,
    pub(crate) agents: Vec<AgentFiguresDoc>,
}

/// A stage, or a kind of operation in it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesRowDoc {
    pub(crate) stage: usize,
    pub(crate) stage_name: String,
    /// Null of the whole stage, and where a stage has more than 16 jobs.
    pub(crate) job: Option<usize>,
    pub(crate) job_name: Option<String>,
    /// Null: the whole stage.
    pub(crate) kind: Option<String>,
    /// The ends of the cells.
    pub(crate) at_ms: Vec<i64>,
    pub(crate) ops_per_sec: Vec<f64>,
    pub(crate) bytes_per_sec: Vec<f64>,
    /// Operations under way at the end of each cell.
    pub(crate) in_flight: Vec<Option<u64>>,
    pub(crate) latency_ns: PercentilesDoc<Vec<Option<u64>>>,
    pub(crate) errors: BTreeMap<String, Vec<u64>>,
    pub(crate) bins: Vec<Vec<(u16, u64)>>,
}

/// Latencies that so many percent of the successes did not exceed, at most an eighth too long.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PercentilesDoc<T> {
    pub(crate) p50: T,
    pub(crate) p90: T,
    pub(crate) p99: T,
    pub(crate) p99_9: T,
    pub(crate) max: T,
}

/// What went to one address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostDoc {
    pub(crate) stage: usize,
    pub(crate) host: String,
    pub(crate) ops_count: u64,
    pub(crate) ops_failed_count: u64,
    pub(crate) ops_per_sec: f64,
    pub(crate) bytes_per_sec: f64,
    pub(crate) latency_ns: HostLatencyDoc,
}

/// Latencies of one address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostLatencyDoc {
    pub(crate) p50: Option<u64>,
    pub(crate) p99: Option<u64>,
    pub(crate) max: Option<u64>,
}

/// What one agent does.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentFiguresDoc {
    pub(crate) stage: usize,
    pub(crate) agent: String,
    /// `running`, `done`, `silent` or `lost`.
    pub(crate) state: String,
    /// Null on a fleet.
    pub(crate) workers_count: Option<u32>,
    pub(crate) ops_count: u64,
    pub(crate) ops_failed_count: u64,
    pub(crate) ops_per_sec: f64,
    pub(crate) bytes_per_sec: f64,
    /// Since the stage began.
    pub(crate) latency_ns: HostLatencyDoc,
    /// Operations under way.
    pub(crate) in_flight: Option<u64>,
    /// Its clock less that of the console.
    pub(crate) clock_offset_ms: Option<f64>,
    pub(crate) cpu_percent: Option<f64>,
}

/// A second, as it is told while it runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TickDoc {
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) progress: Option<f64>,
    pub(crate) rows: Vec<TickRowDoc>,
    pub(crate) hosts: Vec<HostDoc>,
    pub(crate) agents: Vec<AgentFiguresDoc>,
}

/// A row of a second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TickRowDoc {
    pub(crate) stage: usize,
    pub(crate) stage_name: String,
    pub(crate) job: Option<usize>,
    pub(crate) job_name: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) ops_per_sec: f64,
    pub(crate) bytes_per_sec: f64,
    pub(crate) in_flight: Option<u64>,
    pub(crate) latency_ns: PercentilesDoc<Option<u64>>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) bins: Vec<(u16, u64)>,
    /// Since the stage began.
    pub(crate) ops_count: u64,
    pub(crate) ops_failed_count: u64,
    pub(crate) bytes_count: u64,
}

/// A part of a timeline.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TimelineDoc {
    pub(crate) rows: Vec<TimelineRowDoc>,
    pub(crate) next: Option<String>,
    pub(crate) total_count: usize,
}

/// A kind of operation in one second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TimelineRowDoc {
    pub(crate) at_ms: i64,
    pub(crate) stage: usize,
    pub(crate) stage_id: String,
    pub(crate) job_name: Option<String>,
    pub(crate) kind: String,
    pub(crate) ops_count: u64,
    pub(crate) bytes_count: u64,
    pub(crate) res_ns_mean: Option<f64>,
    pub(crate) proc_ns_mean: Option<f64>,
    pub(crate) ops_per_sec: f64,
    pub(crate) bytes_per_sec: f64,
    pub(crate) success_ratio: Option<f64>,
}

/// Returns the seconds of a run that were kept, of one stage or of all.
pub(super) fn ticks(console: &Console, number: Number, stage: Option<usize>) -> Vec<Tick> {
    // A run that began no stage has no file.
    let Ok((file, _)) = disk::open_plain(&console.series(number)) else { return Vec::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    // The last line of a run that was killed may be cut.
    let ticks = lines.filter_map(|line| serde_json::from_str::<Tick>(&line).ok());
    ticks.filter(|tick| stage.is_none_or(|stage| tick.stage == stage)).collect()
}

fn stage_name(facts: &Facts, stage: usize) -> String {
    let plan = stage.checked_sub(1).and_then(|index| facts.stages.get(index));
    plan.map_or_else(|| "stage".to_owned(), |plan| plan.name.clone())
}

fn job_name(facts: &Facts, stage: usize, job: Option<usize>) -> Option<String> {
    let plan = facts.stages.get(stage.checked_sub(1)?)?;
    plan.jobs.get(job?.checked_sub(1)?).map(|job| job.name.clone())
}

fn per_second(count: u64, interval_ns: u64) -> f64 {
    per_sec(count as f64, Duration::from_nanos(interval_ns)).unwrap_or_default()
}

fn percentiles(of: &Counted) -> PercentilesDoc<Option<u64>> {
    PercentilesDoc {
        p50: of.latency_ns_at(Percentile::P50),
        p90: of.latency_ns_at(Percentile::P90),
        p99: of.latency_ns_at(Percentile::P99),
        p99_9: of.latency_ns_at(Percentile::P99_9),
        max: of.latency_ns_at(Percentile::MAX),
    }
}

/// Returns what was counted so far, in at most so many cells a row.
pub(super) fn series(
    console: &Console,
    number: Number,
    stage: Option<usize>,
    points_max: usize,
) -> Result<SeriesDoc, StoreError> {
    let facts = console.store().source(number)?.facts;
    let ticks = ticks(console, number, stage);
    let mut doc = SeriesDoc {
        seq: ticks.last().map_or(0, |tick| tick.seq),
        interval_ms: 1_000,
        began_at_ms: console.store().entry(number)?.started_ms,
        rows: Vec::new(),
        hosts: super::reports::hosts(console, number, stage),
        agents: Vec::new(),
    };
    let running = console.running(number).map(|running| running.watch.stages());
    let goes_on = running.iter().flatten().find(|stage| stage.state == StageState::Running);
    let goes_on = goes_on.map(|stage| stage.number);
    let mut stages: Vec<usize> = ticks.iter().map(|tick| tick.stage).collect();
    stages.dedup();
    for stage in stages {
        let of_stage: Vec<Tick> =
            ticks.iter().filter(|tick| tick.stage == stage).cloned().collect();
        let cells = merged(&of_stage, points_max);
        let longest = cells.iter().map(|cell| cell.interval_ns / 1_000_000).max();
        doc.interval_ms = doc.interval_ms.max(longest.unwrap_or(0));
        doc.rows.extend(rows(&facts, stage, &cells));
        let (all, last) = (merged(&of_stage, 1), of_stage.last());
        if let (Some(all), Some(last)) = (all.first(), last) {
            // Rates of a stage that goes on are those of now.
            let of_rates = if goes_on == Some(stage) { last } else { all };
            doc.agents.extend(agents(all, of_rates));
            if !doc.hosts.iter().any(|host| host.stage == stage) {
                doc.hosts.extend(hosts(all, of_rates));
            }
        }
    }
    Ok(doc)
}

fn rows(facts: &Facts, stage: usize, cells: &[Tick]) -> Vec<SeriesRowDoc> {
    let mut keys: Vec<(Option<usize>, Option<String>)> = vec![(None, None)];
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        let key = (row.job, Some(row.kind.clone()));
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().map(|key| series_row(facts, stage, cells, key)).collect()
}

fn of_key(cell: &Tick, job: Option<usize>, kind: Option<&String>) -> Counted {
    let Some(kind) = kind else { return cell.all() };
    let row = cell.rows.iter().find(|row| row.kind == *kind && row.job == job);
    row.map(|row| row.counted.clone()).unwrap_or_default()
}

fn in_flight(cell: &Tick, job: Option<usize>, kind: Option<&String>) -> Option<u64> {
    let Some(kind) = kind else { return cell.in_flight() };
    cell.rows.iter().find(|row| row.kind == *kind && row.job == job)?.in_flight
}

fn series_row(
    facts: &Facts,
    stage: usize,
    cells: &[Tick],
    (job, kind): (Option<usize>, Option<String>),
) -> SeriesRowDoc {
    let counted: Vec<Counted> = cells.iter().map(|cell| of_key(cell, job, kind.as_ref())).collect();
    let mut latency: PercentilesDoc<Vec<Option<u64>>> = PercentilesDoc::default();
    let mut errors: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (index, of) in counted.iter().enumerate() {
        let cell = percentiles(of);
        latency.p50.push(cell.p50);
        latency.p90.push(cell.p90);
        latency.p99.push(cell.p99);
        latency.p99_9.push(cell.p99_9);
        latency.max.push(cell.max);
        for (class, count) in &of.failed {
            errors.entry(class.clone()).or_insert_with(|| vec![0; counted.len()])[index] = *count;
        }
    }
    let rate = |count: fn(&Counted) -> u64| {
        let pairs = counted.iter().zip(cells);
        pairs.map(|(of, cell)| per_second(count(of), cell.interval_ns)).collect()
    };
    SeriesRowDoc {
        stage,
        stage_name: stage_name(facts, stage),
        job,
        job_name: job_name(facts, stage, job),
        at_ms: cells.iter().map(|cell| cell.at_ms).collect(),
        ops_per_sec: rate(|of| of.ok),
        bytes_per_sec: rate(|of| of.bytes),
        in_flight: cells.iter().map(|cell| in_flight(cell, job, kind.as_ref())).collect(),
        latency_ns: latency,
        errors,
        bins: match &kind {
            None => counted.iter().map(Counted::bins).collect(),
            Some(_) => Vec::new(),
        },
        kind,
    }
}

fn latency(of: &Counted) -> HostLatencyDoc {
    HostLatencyDoc {
        p50: of.latency_ns_at(Percentile::P50),
        p99: of.latency_ns_at(Percentile::P99),
        max: of.latency_ns_at(Percentile::MAX),
    }
}

/// Returns the successes and their bytes per second of what was counted in an interval; of nothing
/// they are 0.
fn rates(counted: Option<&Counted>, interval: &Tick) -> (f64, f64) {
    let of = |count: u64| per_second(count, interval.interval_ns);
    counted.map_or((0.0, 0.0), |counted| (of(counted.ok), of(counted.bytes)))
}

/// Returns what agents have done since a stage began, with the rates of an interval.
fn agents(all: &Tick, of_rates: &Tick) -> Vec<AgentFiguresDoc> {
    let doc = |part: &Part| {
        let now = of_rates.parts.iter().find(|now| now.name == part.name);
        let (ops_per_sec, bytes_per_sec) = rates(now.map(|now| &now.counted), of_rates);
        AgentFiguresDoc {
            stage: all.stage,
            agent: part.name.clone(),
            state: part.state.clone(),
            workers_count: part.workers_count,
            ops_count: part.counted.ended_count(),
            ops_failed_count: part.counted.failed_count(),
            ops_per_sec,
            bytes_per_sec,
            latency_ns: latency(&part.counted),
            in_flight: part.in_flight,
            clock_offset_ms: part.clock_offset_ms,
            cpu_percent: part.cpu_percent,
        }
    };
    all.parts.iter().map(doc).collect()
}

/// Returns what went to addresses since a stage began, with the rates of an interval.
fn hosts(all: &Tick, of_rates: &Tick) -> Vec<HostDoc> {
    let doc = |host: &HostPart| {
        let now = of_rates.hosts.iter().find(|now| now.name == host.name);
        let (ops_per_sec, bytes_per_sec) = rates(now.map(|now| &now.counted), of_rates);
        HostDoc {
            stage: all.stage,
            host: host.name.clone(),
            ops_count: host.counted.ended_count(),
            ops_failed_count: host.counted.failed_count(),
            ops_per_sec,
            bytes_per_sec,
            latency_ns: latency(&host.counted),
        }
    };
    all.hosts.iter().map(doc).collect()
}

/// Returns a second as it is told.
pub(super) fn tick(facts: &Facts, told: &Told) -> TickDoc {
    let Told { tick, sums, progress, .. } = told;
    let mut all_sums = Counted::default();
    sums.rows.iter().for_each(|row| all_sums.add(&row.counted));
    let whole = tick_row(facts, tick, (None, None), &tick.all(), &all_sums);
    let of_row = |row: &Row| {
        let same = sums.rows.iter().find(|sum| sum.kind == row.kind && sum.job == row.job);
        let since = same.map(|sum| sum.counted.clone()).unwrap_or_default();
        tick_row(facts, tick, (row.job, Some(row.kind.clone())), &row.counted, &since)
    };
    let since = Tick {
        stage: tick.stage,
        parts: sums.parts.clone(),
        hosts: sums.hosts.clone(),
        ..Tick::default()
    };
    TickDoc {
        seq: tick.seq,
        at_ms: tick.at_ms,
        progress: *progress,
        rows: std::iter::once(whole).chain(tick.rows.iter().map(of_row)).collect(),
        hosts: hosts(&since, tick),
        agents: agents(&since, tick),
    }
}

fn tick_row(
    facts: &Facts,
    tick: &Tick,
    (job, kind): (Option<usize>, Option<String>),
    now: &Counted,
    since: &Counted,
) -> TickRowDoc {
    TickRowDoc {
        stage: tick.stage,
        stage_name: stage_name(facts, tick.stage),
        job,
        job_name: job_name(facts, tick.stage, job),
        ops_per_sec: per_second(now.ok, tick.interval_ns),
        bytes_per_sec: per_second(now.bytes, tick.interval_ns),
        in_flight: in_flight(tick, job, kind.as_ref()),
        latency_ns: percentiles(now),
        errors: now.failed.clone(),
        bins: if kind.is_none() { now.bins() } else { Vec::new() },
        kind,
        ops_count: since.ended_count(),
        ops_failed_count: since.failed_count(),
        bytes_count: since.bytes,
    }
}

/// Returns a part of the timeline of a run.
pub(super) fn timeline(
    console: &Console,
    number: Number,
    stage: Option<usize>,
    (offset, limit): (usize, usize),
) -> Result<TimelineDoc, StoreError> {
    let facts = console.store().source(number)?.facts;
    let ticks = ticks(console, number, stage);
    let pairs: Vec<(&Tick, &Row)> =
        ticks.iter().flat_map(|tick| tick.rows.iter().map(move |row| (tick, row))).collect();
    let rows = pairs.iter().skip(offset).take(limit).map(|(tick, row)| {
        let Counted { ok, bytes, .. } = row.counted;
        let ended = row.counted.ended_count();
        TimelineRowDoc {
            at_ms: tick.at_ms,
            stage: tick.stage,
            stage_id: facts
                .stages
                .get(tick.stage - 1)
                .map_or_else(|| format!("s{}", tick.stage), |plan| plan.id_as(tick.stage)),
            job_name: job_name(&facts, tick.stage, row.job),
            kind: row.kind.clone(),
            ops_count: ok,
            bytes_count: bytes,
            res_ns_mean: row.counted.latency_ns_mean(),
            proc_ns_mean: row.counted.ttfb_ns_mean(),
            ops_per_sec: per_second(ok, tick.interval_ns),
            bytes_per_sec: per_second(bytes, tick.interval_ns),
            success_ratio: (ended > 0).then(|| ok as f64 / ended as f64),
        }
    });
    let end = offset + limit;
    Ok(TimelineDoc {
        rows: rows.collect(),
        next: (end < pairs.len()).then(|| end.to_string()),
        total_count: pairs.len(),
    })
}

/// Returns the timeline of a stage as COSBench's table.
pub(super) fn timeline_csv(console: &Console, number: Number, stage: Option<usize>) -> String {
    let ticks = ticks(console, number, stage);
    let mut kinds: Vec<String> = Vec::new();
    for row in ticks.iter().flat_map(|tick| &tick.rows) {
        if !kinds.contains(&row.kind) {
            kinds.push(row.kind.clone());
        }
    }
    if kinds.is_empty() {
        return String::new();
    }
    let head = crate::archive::stage_head(&kinds);
    let rows = ticks.iter().enumerate();
    let rows = rows.map(|(version, tick)| crate::archive::stage_row(tick, &kinds, version as u64));
    head + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{JobPlan, StagePlan};
    use crate::sample::Sums;

    fn counted(ok: u64) -> Counted {
        Counted { ok, bytes: ok * 100, cells: vec![(1, ok)], ..Counted::default() }
    }

    fn sums(ok: u64) -> Sums {
        let row = |job, kind: &str, ok, in_flight| Row {
            job: Some(job),
            kind: kind.to_owned(),
            in_flight: Some(in_flight),
            counted: counted(ok),
        };
        let part = Part {
            name: "driver1".to_owned(),
            state: "running".to_owned(),
            in_flight: Some(5),
            clock_offset_ms: Some(-0.25),
            counted: counted(ok),
            ..Part::default()
        };
        Sums {
            rows: vec![row(1, "GET", ok, 3), row(2, "GET", 2 * ok, 2)],
            parts: vec![part],
            hosts: vec![HostPart { name: "h:1".to_owned(), counted: counted(3 * ok) }],
        }
    }

    #[test]
    fn a_second_tells_rates_of_now_and_counts_since_its_stage_began() {
        let job = |name: &str| JobPlan { name: name.to_owned(), ..JobPlan::default() };
        let jobs = vec![job("a"), job("b")];
        let stage = StagePlan { name: "main".to_owned(), jobs, ..StagePlan::default() };
        let facts = Facts { stages: vec![stage], ..Facts::default() };
        let Sums { rows, parts, hosts } = sums(10);
        let interval_ns = 2_000_000_000;
        let tick_of = Tick { seq: 7, interval_ns, stage: 1, rows, parts, hosts, at_ms: 1 };
        let text = std::sync::OnceLock::new();
        let told = Told { tick: tick_of, sums: sums(100), progress: None, text };
        let doc = tick(&facts, &told);
        let of = |row: &TickRowDoc| (row.job_name.clone(), row.in_flight, row.ops_per_sec);
        let rows: Vec<_> = doc.rows.iter().map(of).collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            rows,
            [(None, Some(5), 15.0), (named("a"), Some(3), 5.0), (named("b"), Some(2), 10.0)]
        );
        assert_eq!((doc.rows[0].ops_count, doc.rows[2].ops_count), (300, 200));
        let agent = &doc.agents[0];
        assert_eq!((agent.ops_count, agent.ops_per_sec, agent.in_flight), (100, 5.0, Some(5)));
        assert_eq!((agent.clock_offset_ms, agent.latency_ns.p50), (Some(-0.25), Some(1_152)));
        let host = &doc.hosts[0];
        assert_eq!((&*host.host, host.ops_count, host.bytes_per_sec), ("h:1", 300, 1_500.0));
    }

    #[test]
    fn seconds_of_older_versions_are_read() {
        let line = r#"{"seq":1,"at_ms":5,"interval_ns":9,"stage":1,"rows":[{"kind":"GET","ok":2,
            "bytes":3,"latency_ns":4,"ttfb_ns":0,"cells":[[0,2]]}],"parts":[{"name":"a",
            "state":"running","ops":1,"failed":0,"bytes":1,"ops_count":1,"ops_failed_count":0}]}"#;
        let tick: Tick = serde_json::from_str(line).unwrap();
        assert_eq!((tick.rows[0].counted.ok, tick.in_flight()), (2, None));
        assert_eq!((&*tick.parts[0].name, tick.parts[0].counted.ok), ("a", 0));
    }
}
