//! What the records of runs say: reports, the matrix of figures, comparisons.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plimsoll_analysis::compare::Margin;
use plimsoll_analysis::{Figures, Times};
use plimsoll_model::EndpointId;
use plimsoll_report::{Report, RowReport, StageReport, compare as compared, html};
use plimsoll_results::{Asked, Record, ResultsError, Side, environment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::figures::{HostDoc, HostLatencyDoc};
use super::refused::Refused;
use crate::console::Console;
use crate::disk;
use crate::facts::{Facts, StagePlan};
use crate::state::{Number, State};
use crate::store::Entry;

/// More runs than this are in no matrix.
const RUNS_MAX: usize = 500;
/// Of a comparison all runs are in memory together.
const COMPARED_MAX: usize = 40;
/// More rows than this neither.
const ROWS_MAX: usize = 50_000;
/// A larger report is not sent: it is in memory until its last byte is.
const REPORT_BYTES_MAX: usize = 32 << 20;

/// Final figures of many runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MatrixDoc {
    pub(crate) rows: Vec<MatrixRowDoc>,
    pub(crate) kinds: Vec<String>,
    pub(crate) missing: Vec<MissingDoc>,
}

/// A run that has no figures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MissingDoc {
    pub(crate) run: String,
    pub(crate) why: String,
}

/// The figures of one kind of operation of one job of one stage of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MatrixRowDoc {
    pub(crate) run: String,
    pub(crate) run_name: String,
    pub(crate) run_state: State,
    pub(crate) stage: usize,
    pub(crate) stage_id: String,
    pub(crate) job: usize,
    pub(crate) job_name: String,
    pub(crate) kind: String,
    pub(crate) op_name: String,
    pub(crate) workers_count: u32,
    pub(crate) ops_count: u64,
    pub(crate) ops_failed_count: u64,
    pub(crate) bytes_count: u64,
    pub(crate) res_ns_mean: Option<f64>,
    pub(crate) proc_ns_mean: Option<f64>,
    pub(crate) latency_ns: MatrixLatencyDoc,
    pub(crate) ops_per_sec: Option<f64>,
    pub(crate) bytes_per_sec: Option<f64>,
    pub(crate) success_ratio: Option<f64>,
    pub(crate) config: String,
}

/// Latencies that so many percent of the successes did not exceed; null for want of samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MatrixLatencyDoc {
    pub(crate) p50: Option<u64>,
    pub(crate) p60: Option<u64>,
    pub(crate) p80: Option<u64>,
    pub(crate) p90: Option<u64>,
    pub(crate) p95: Option<u64>,
    pub(crate) p99: Option<u64>,
    pub(crate) p99_9: Option<u64>,
    pub(crate) p100: Option<u64>,
}

/// Tells whether there is a report of a run that has ended: something was measured.
pub(super) fn has_report(console: &Console, entry: &Entry) -> bool {
    if !entry.state.is_over() || !has_record(entry) {
        return false;
    }
    let stages = console.store().kept_progress(entry.number).unwrap_or_default();
    stages.iter().any(|stage| stage.measures == Some(true))
}

/// Tells whether there is a record of a run.
fn has_record(entry: &Entry) -> bool {
    let directory = entry.run_directory.as_deref();
    directory.is_some_and(|path| Path::new(path).join("run.json").exists())
}

/// Opens the record of a run.
fn record(entry: &Entry) -> Result<Record, Refused> {
    let path = entry.run_directory.as_deref().ok_or_else(|| no_record(entry))?;
    if !has_record(entry) {
        return Err(no_record(entry));
    }
    Record::open(Path::new(path)).map_err(|error| unreadable(entry, &error))
}

/// Says what is wrong with the record of a run; where it lies on this machine is nobody's business
/// who only looks.
fn unreadable(entry: &Entry, error: &ResultsError) -> Refused {
    let text = error.to_string();
    let Some(place) = entry.run_directory.as_deref() else { return Refused::not_found(text) };
    Refused::not_found(text.replace(&format!("{place}: "), "").replace(place, "the record"))
}

fn no_record(entry: &Entry) -> Refused {
    Refused::not_found(format!("{} has no record", entry.number))
}

fn report_of(entry: &Entry, asked: &Asked) -> Result<(Record, Report), Refused> {
    let record = record(entry)?;
    let mut report = record.report(asked).map_err(|error| unreadable(entry, &error))?;
    // Where it lies on this machine is nobody's business who only looks.
    report.run_directory = None;
    Ok((record, report))
}

/// Returns the report of a run for programs, in JSON.
pub(super) fn report_json(console: &Console, number: Number) -> Result<Vec<u8>, Refused> {
    let entry = console.store().entry(number)?;
    let (_, report) = report_of(&entry, &Asked { details: true, ..Asked::default() })?;
    let json = serde_json::to_vec(&report).map_err(|_| Refused::internal())?;
    if json.len() > REPORT_BYTES_MAX {
        return Err(Refused::too_large(format!(
            "the report has {} MiB, and {} MiB at most are sent: download the whole record, which \
             `plimsoll analyze` reads",
            json.len() >> 20,
            REPORT_BYTES_MAX >> 20
        )));
    }
    Ok(json)
}

/// Returns the report of a run as a page.
pub(super) fn report_html(console: &Console, number: Number) -> Result<String, Refused> {
    let entry = console.store().entry(number)?;
    let (record, report) = report_of(&entry, &Asked { details: true, ..Asked::default() })?;
    Ok(html::render(&report, &record.manifest().map(environment).unwrap_or_default()))
}

/// Returns the figures of runs.
pub(crate) fn matrix(
    console: &Console,
    runs: &[Number],
    kinds: &[String],
) -> Result<MatrixDoc, Refused> {
    if runs.len() > RUNS_MAX {
        return Err(Refused::invalid(format!("a matrix has {RUNS_MAX} runs at most")));
    }
    let mut doc = MatrixDoc { rows: Vec::new(), kinds: Vec::new(), missing: Vec::new() };
    for number in runs {
        let rows = console.store().entry(*number).map_err(Refused::from);
        match rows.and_then(|entry| rows_of(console, &entry)) {
            Ok(rows) if doc.rows.len() + rows.len() > ROWS_MAX => {
                return Err(Refused::invalid(format!(
                    "a matrix has {ROWS_MAX} rows at most: name fewer runs"
                )));
            }
            Ok(rows) => doc.rows.extend(rows),
            Err(refused) => {
                let why = refused.message().to_owned();
                doc.missing.push(MissingDoc { run: number.to_string(), why });
            }
        }
    }
    for row in &doc.rows {
        if !doc.kinds.contains(&row.kind) {
            doc.kinds.push(row.kind.clone());
        }
    }
    doc.rows.retain(|row| kinds.is_empty() || kinds.contains(&row.kind));
    Ok(doc)
}

/// What the record of a run says in short.
#[derive(Default, Serialize, Deserialize)]
struct InShort {
    rows: Vec<MatrixRowDoc>,
    hosts: Vec<HostDoc>,
}

/// Returns the rows of one run.
fn rows_of(console: &Console, entry: &Entry) -> Result<Vec<MatrixRowDoc>, Refused> {
    in_short(console, entry).map(|short| short.rows)
}

/// Returns what went to each address in a run that has ended.
pub(super) fn hosts(console: &Console, number: Number, stage: Option<usize>) -> Vec<HostDoc> {
    let entry = console.store().entry(number).ok().filter(|entry| entry.state.is_over());
    // A run without a record has none.
    let short = entry.and_then(|entry| in_short(console, &entry).ok()).unwrap_or_default();
    let is_wanted = |host: &HostDoc| stage.is_none_or(|stage| host.stage == stage);
    short.hosts.into_iter().filter(is_wanted).collect()
}

/// Returns what the record of a run says in short, which is kept once it has ended.
fn in_short(console: &Console, entry: &Entry) -> Result<InShort, Refused> {
    let kept = console.series(entry.number).with_extension("short.json");
    if entry.state.is_over()
        && let Ok(text) = disk::read_text(&kept)
        && let Ok(short) = serde_json::from_str(&text)
    {
        return Ok(short);
    }
    let source = console.store().source(entry.number)?;
    let (_, report) = report_of(entry, &Asked { distributions: true, ..Asked::default() })?;
    let mut short = InShort::default();
    for (index, stage) in report.stages.iter().enumerate() {
        let number = number_of(&source.facts, &report.stages[..index], stage);
        short.rows.extend(stage_rows(entry, &source.facts, number, stage));
        short.hosts.extend(hosts_of(number, stage, &report.endpoints));
    }
    if entry.state.is_over()
        && let Ok(text) = serde_json::to_vec(&short)
    {
        // What cannot be kept is worked out again.
        let _ = disk::write_private(&kept, &text);
    }
    Ok(short)
}

/// Returns what went to each address in a stage, over all of its rows; rates are over the time from
/// the first of them to the end of the last, as in a report's headline. Percentiles are known of an
/// address that one row went to.
fn hosts_of(number: usize, stage: &StageReport, endpoints: &[String]) -> Vec<HostDoc> {
    let spans = || stage.rows.iter().map(|row| row.analysis.span);
    let start = spans().map(|span| span.start).min().unwrap_or_default();
    let lasted = spans().map(|span| span.end.since(start)).max().unwrap_or_default();
    let mut hosts: BTreeMap<EndpointId, HostDoc> = BTreeMap::new();
    for row in &stage.rows {
        let share = row.analysis.span.length().as_secs_f64() / lasted.as_secs_f64();
        for of in &row.analysis.endpoints {
            let Figures { stage: totals, rates, latency, .. } = &of.figures;
            let (p50, p99, max) = (ns(latency.p50), ns(latency.p99), ns(latency.max));
            let host = hosts.entry(of.endpoint).and_modify(|host| {
                let max = max.max(host.latency_ns.max);
                host.latency_ns = HostLatencyDoc { p50: None, p99: None, max };
            });
            let host = host.or_insert_with(|| {
                let name = endpoints.get(usize::from(of.endpoint.0)).map_or("", |name| name);
                let host = name.rsplit_once('@').map_or(name, |(_, host)| host).to_owned();
                let latency_ns = HostLatencyDoc { p50, p99, max };
                HostDoc { stage: number, host, latency_ns, ..HostDoc::default() }
            });
            host.ops_count += totals.ended();
            host.ops_failed_count += totals.failed.count();
            if let Some(rates) = rates {
                host.ops_per_sec += rates.ops.0 * share;
                host.bytes_per_sec += rates.bytes.0 * share;
            }
        }
    }
    hosts.into_values().collect()
}

/// Returns the number that a stage has in the plan; of stages of one name the first of the record
/// is the first of the plan, and so on.
fn number_of(facts: &Facts, before: &[StageReport], stage: &StageReport) -> usize {
    let mut same = facts.stages.iter().enumerate().filter(|(_, plan)| plan.name == stage.name);
    let found = same.nth(before.iter().filter(|other| other.name == stage.name).count());
    found.map_or(before.len(), |(at, _)| at) + 1
}

fn stage_rows(
    entry: &Entry,
    facts: &Facts,
    number: usize,
    stage: &StageReport,
) -> Vec<MatrixRowDoc> {
    let plan = facts.stages.get(number - 1);
    let row = |(at, row): (usize, &RowReport)| {
        let (job, config) = job_of(plan, row, at);
        let doc = |kind: &plimsoll_analysis::KindAnalysis| {
            let of = (&kind.figures, kind.kind.name().to_owned());
            let mut doc = figures(of, row.analysis.workers_count);
            doc.run = entry.number.to_string();
            doc.run_name.clone_from(&entry.name);
            doc.run_state = entry.state;
            doc.stage = number;
            doc.stage_id =
                plan.map_or_else(|| format!("s{number}-{}", stage.name), |plan| plan.id_as(number));
            doc.job = job;
            doc.job_name.clone_from(&row.name);
            doc.config.clone_from(&config);
            doc
        };
        row.analysis.kinds.iter().map(doc).collect::<Vec<_>>()
    };
    stage.rows.iter().enumerate().flat_map(row).collect()
}

/// Returns the number of the first job of a row, and what all of them do. Jobs of a group share a
/// row, so that its place among the rows is that of no job.
fn job_of(plan: Option<&StagePlan>, row: &RowReport, at: usize) -> (usize, String) {
    let jobs = if row.jobs.is_empty() { std::slice::from_ref(&at) } else { &row.jobs[..] };
    let planned = jobs.iter().filter_map(|job| plan?.jobs.get(*job));
    let works: Vec<&str> = planned.map(|job| &*job.work).collect();
    (jobs[0] + 1, works.join("; "))
}

fn ns(time: Option<Duration>) -> Option<u64> {
    time.and_then(|time| u64::try_from(time.as_nanos()).ok())
}

fn figures((of, kind): (&Figures, String), workers_count: u32) -> MatrixRowDoc {
    let Figures { stage, rates, latency, ttfb, .. } = of;
    let at = |times: &Times, percent: f64| ns(times.percentile(percent));
    let ended = stage.ended();
    MatrixRowDoc {
        run: String::new(),
        run_name: String::new(),
        run_state: State::Finished,
        stage: 0,
        stage_id: String::new(),
        job: 0,
        job_name: String::new(),
        op_name: crate::archive::op_name(&kind),
        kind,
        workers_count,
        ops_count: stage.ops_ok,
        ops_failed_count: stage.failed.count(),
        bytes_count: stage.bytes,
        res_ns_mean: ns(latency.mean).map(|ns| ns as f64),
        proc_ns_mean: ns(ttfb.mean).map(|ns| ns as f64),
        latency_ns: MatrixLatencyDoc {
            p50: at(latency, 50.0),
            p60: at(latency, 60.0),
            p80: at(latency, 80.0),
            p90: at(latency, 90.0),
            p95: at(latency, 95.0),
            p99: at(latency, 99.0),
            p99_9: at(latency, 99.9),
            p100: ns(latency.max),
        },
        ops_per_sec: rates.map(|rates| rates.ops.0),
        bytes_per_sec: rates.map(|rates| rates.bytes.0),
        success_ratio: (ended > 0).then(|| stage.ops_ok as f64 / ended as f64),
        config: String::new(),
    }
}

/// Returns the matrix as a table.
pub(super) fn matrix_csv(doc: &MatrixDoc) -> String {
    let mut out = "Run,Name,State,Stage,Job,Op,Workers,Ops,Failed,Bytes,Mean-ns,Proc-ns,P50-ns,\
                   P60-ns,P80-ns,P90-ns,P95-ns,P99-ns,P99.9-ns,P100-ns,Ops/s,Bytes/s,Success\n"
        .to_owned();
    let cell = |text: &str| {
        let quoted = text.replace('"', "\"\"");
        // What a spreadsheet would take for a formula.
        let is_formula = quoted.starts_with(['=', '+', '-', '@', '\t', '\r']);
        format!("\"{}{quoted}\"", if is_formula { "'" } else { "" })
    };
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let ns = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for row in &doc.rows {
        let l = &row.latency_ns;
        let cells = [
            row.run.clone(),
            cell(&row.run_name),
            row.run_state.name().to_owned(),
            cell(&row.stage_id),
            cell(&row.job_name),
            row.kind.clone(),
            row.workers_count.to_string(),
            row.ops_count.to_string(),
            row.ops_failed_count.to_string(),
            row.bytes_count.to_string(),
            number(row.res_ns_mean),
            number(row.proc_ns_mean),
            ns(l.p50),
            ns(l.p60),
            ns(l.p80),
            ns(l.p90),
            ns(l.p95),
            ns(l.p99),
            ns(l.p99_9),
            ns(l.p100),
            number(row.ops_per_sec),
            number(row.bytes_per_sec),
            number(row.success_ratio),
        ];
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn side(console: &Console, runs: &[Number]) -> Result<Side, Refused> {
    let asked = Asked { details: true, ..Asked::default() };
    let mut side = Side::default();
    for number in runs {
        let record = record(&console.store().entry(*number)?)?;
        let added = side.add(Path::new(&number.to_string()), &record, &asked);
        added.map_err(|error| Refused::not_found(error.to_string()))?;
    }
    Ok(side)
}

/// Compares runs before and after, as `plimsoll compare` does.
pub(super) fn compare(
    console: &Console,
    before: &[Number],
    after: &[Number],
) -> Result<Value, Refused> {
    if before.is_empty() || after.is_empty() {
        return Err(Refused::invalid("name runs before and after"));
    }
    if before.len() + after.len() > COMPARED_MAX {
        return Err(Refused::invalid(format!("a comparison has {COMPARED_MAX} runs at most")));
    }
    let (before, after) = (side(console, before)?, side(console, after)?);
    let (comparison, differences) = before.compare(after, Margin::default());
    Ok(compared::json::json(&comparison, &differences, &[]))
}

#[cfg(test)]
mod tests {
    use plimsoll_analysis::{Depth, Question, analyze};
    use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord, StageId};

    use super::*;
    use crate::facts::JobPlan;

    const MS: u64 = 1_000_000;

    /// Returns a row of one worker that reads for 10 s, each time for so long, at one endpoint.
    fn row(name: &str, jobs: &[usize], took_ms: u64, endpoint: u16) -> RowReport {
        let read = |start_ms: u64| {
            let start = Moment::from_ns(start_ms * MS);
            OpRecord {
                endpoint: EndpointId(endpoint),
                bytes: 1_000,
                outcome: if start_ms == 0 { ErrorClass::Connect } else { ErrorClass::Ok },
                ..OpRecord::plain(OpKind::Get, start, Moment::from_ns((start_ms + took_ms) * MS))
            }
        };
        let ops: Vec<OpRecord> = (0..10_000).step_by(took_ms as usize).map(read).collect();
        let ended = Moment::from_ns(10_000 * MS);
        let mut question = Question::about(StageId(0), Moment::EPOCH, ended, 1);
        question.depth = Depth::Distributions;
        let Ok(mut analysis) = analyze(&ops[..], &question);
        let jobs = jobs.to_vec();
        RowReport { jobs, ..RowReport::of(name, analysis.rows.pop().unwrap()) }
    }

    #[test]
    fn each_address_is_counted_once_whatever_number_of_jobs_went_to_it() {
        let rows = vec![row("fast", &[0], 10, 0), row("slow", &[1], 50, 0), row("b", &[2], 10, 1)];
        let stage = StageReport::of("main", rows);
        let endpoints = ["http://a:1".to_owned(), "http://b:1".to_owned()];
        let hosts = hosts_of(1, &stage, &endpoints);
        let [a, b] = &hosts[..] else { panic!("{hosts:?}") };
        assert_eq!((&*a.host, a.ops_count, a.ops_failed_count), ("http://a:1", 1_200, 2));
        assert_eq!((&*b.host, b.ops_count, b.ops_failed_count), ("http://b:1", 1_000, 1));
        // The one has 100 a second and the other 20, the first of each without its warm-up.
        assert!((a.ops_per_sec - 120.0).abs() < 1.0, "{a:?}");
        assert!((b.ops_per_sec - 100.0).abs() < 1.0, "{b:?}");
        let ms = |ns: Option<u64>| ns.map(|ns| (ns as f64 / 1e6).round() as u64);
        let of = |host: &HostDoc| {
            let HostLatencyDoc { p50, p99, max } = host.latency_ns;
            [p50, p99, max].map(ms)
        };
        assert_eq!(of(a), [None, None, Some(50)], "of two rows");
        assert_eq!(of(b), [Some(10), Some(10), Some(10)]);
    }

    #[test]
    fn a_group_of_jobs_is_in_the_matrix_as_its_first_job_with_the_work_of_all() {
        let job = |name: &str| JobPlan { work: name.to_uppercase(), ..JobPlan::default() };
        let jobs = ["a", "b", "c"].map(job).to_vec();
        let plan = StagePlan { jobs, ..StagePlan::default() };
        let rows = [row("a", &[0, 1], 10, 0), row("c", &[2], 10, 0)];
        let found = [0, 1].map(|at| job_of(Some(&plan), &rows[at], at));
        assert_eq!(found, [(1, "A; B".to_owned()), (3, "C".to_owned())]);
    }
}
