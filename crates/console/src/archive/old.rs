//! Workloads that COSBench itself has archived: read from its tables, and never written to.
//!
//! Its percentiles are ends of steps of 10 ms, and failures are known by the share of the successes
//! alone, in hundredths of a percent.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{ALL, HISTORY};
use crate::api::reports::{MatrixLatencyDoc, MatrixRowDoc};
use crate::clock::{IN_FILES, from_local};
use crate::disk;
use crate::facts::{Facts, JobPlan, StagePlan, StageProgress, StageState};
use crate::redact;
use crate::state::{Number, SourceKind, State};
use crate::store::StateChange;

/// What is said of each of them.
const NOTE: &str = "COSBench ran it and archived these figures: percentiles are ends of steps of \
                    10 ms, and how many operations failed is worked out of the share that did not";
/// More of a table is not read.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// A workload that COSBench has archived.
#[derive(Debug)]
pub(crate) struct Old {
    pub(crate) number: Number,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) changes: Vec<StateChange>,
    pub(crate) submitted_ms: i64,
    pub(crate) started_ms: Option<i64>,
    pub(crate) ended_ms: Option<i64>,
    pub(crate) directory: PathBuf,
    /// Its text without secrets.
    pub(crate) text: String,
    pub(crate) has_secrets: bool,
    pub(crate) facts: Facts,
    pub(crate) stages: Vec<StageProgress>,
    pub(crate) rows: Vec<MatrixRowDoc>,
}

/// What lies in an archive that the console does not know.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) old: Vec<Old>,
    /// The highest number that was given.
    pub(crate) last: i64,
}

/// Returns the number and the name of a directory `w3-name`.
fn of_directory(name: &str) -> Option<(Number, &str)> {
    let (id, name) = name.split_once('-')?;
    Some((Number::parse(id)?, name))
}

/// Reads what COSBench has archived, but for the workloads of these numbers.
pub(crate) fn find(root: &Path, is_known: &dyn Fn(Number) -> bool) -> Found {
    let history = read(&root.join(HISTORY));
    let lines: BTreeMap<i64, Line<'_>> =
        history.lines().filter_map(Line::parse).map(|line| (line.number.0, line)).collect();
    let mut names = disk::names_in(root).unwrap_or_default();
    names.sort();
    let of_names = names.iter().filter_map(|name| of_directory(name));
    let meta = read(&root.join(super::META)).trim().parse::<i64>().ok();
    let last = of_names.map(|(number, _)| number.0).chain(lines.keys().copied()).chain(meta);
    let last = last.max().unwrap_or(0);
    let all = read(&root.join(ALL));
    let mut found = Found { old: Vec::new(), last };
    for name in &names {
        let Some((number, _)) = of_directory(name).filter(|(number, _)| !is_known(*number)) else {
            continue;
        };
        if found.old.iter().any(|old| old.number == number) {
            continue;
        }
        let line = lines.get(&number.0);
        found.old.extend(read_one(root, (number, name), line, &all));
    }
    found
}

/// Returns the text of a table; one that is not there, or no plain file, is empty.
fn read(path: &Path) -> String {
    match disk::open_plain(path) {
        Ok((_, length)) if length <= TABLE_BYTES_MAX => disk::read_text(path).unwrap_or_default(),
        _ => String::new(),
    }
}

/// A line of the history. Names are not quoted, so a comma may stand in one.
struct Line<'a> {
    number: Number,
    name: String,
    at: [Option<i64>; 3],
    operations: &'a str,
    state: State,
    changes: Vec<StateChange>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let number = Number::parse(fields.first()?)?;
        let is_date = |field: &&str| from_local(field, IN_FILES).is_some();
        let first = fields.iter().position(is_date)?;
        let name = fields.get(1..first)?.join(",");
        let at = |index: usize| from_local(fields.get(first + index)?, IN_FILES);
        let state = word(fields.get(first + 4)?)?;
        let changes = fields.get(first + 5..)?.iter().filter_map(|field| {
            let (state, at) = field.split_once(" @ ")?;
            Some(StateChange { state: word(state)?, at_ms: from_local(at, IN_FILES)? })
        });
        let operations = fields.get(first + 3)?;
        let at = [at(0), at(1), at(2)];
        Some(Self { number, name, at, operations, state, changes: changes.collect() })
    }
}

/// Returns the state that COSBench calls so; what was under way when it was written is over.
fn word(word: &str) -> Option<State> {
    State::ALL.into_iter().find(|state| state.cosbench_word() == word)
}

/// Returns the state of a stage that COSBench calls so, but for its steps on the way.
fn stage_word(word: &str) -> Option<StageState> {
    Some(match word {
        "waiting" => StageState::Waiting,
        "running" => StageState::Running,
        "sleeping" => StageState::Sleeping,
        "completed" => StageState::Completed,
        "failed" => StageState::Failed,
        "terminated" => StageState::Terminated,
        "cancelled" => StageState::Cancelled,
        "aborted" => StageState::Aborted,
        _ => return None,
    })
}

/// Returns what operations of that type are called here.
fn kind(op_type: &str) -> &str {
    match op_type {
        "read" => "GET",
        "write" => "PUT",
        "delete" => "DELETE",
        "list" => "LIST",
        other => other,
    }
}

fn read_one(
    root: &Path,
    (number, directory_name): (Number, &str),
    line: Option<&Line<'_>>,
    all: &str,
) -> Option<Old> {
    let directory = root.join(directory_name);
    let (_, name) = of_directory(directory_name)?;
    let table = read(&directory.join(format!("{directory_name}.csv")));
    let rows: Vec<Row<'_>> = table.lines().skip(1).filter_map(Row::parse).collect();
    if rows.is_empty() {
        return None;
    }
    let (facts, stages) = stages(&rows, number, all);
    let source = read(&directory.join(SourceKind::Cosbench.file_name()));
    let redacted = redact::redact(SourceKind::Cosbench, &source);
    let first = stages.iter().flat_map(|stage| &stage.states).map(|(_, at)| *at).min();
    let last = stages.iter().flat_map(|stage| &stage.states).map(|(_, at)| *at).max();
    let began = stages.iter().filter_map(|stage| stage.began_at_ms).min();
    let state = line.map_or_else(|| state_of(&stages), |line| line.state);
    // What was under way when it was written is over now.
    let state = if state.is_over() { state } else { State::Terminated };
    let [submitted, started, ended] = line.map_or([first, began, last], |line| line.at);
    let name = line.map_or_else(|| name.to_owned(), |line| line.name.clone());
    let matrix = matrix(&rows, &facts, (number, &name, state), all);
    let operations = line.map(|line| line.operations.split_whitespace().collect::<Vec<_>>());
    let operations = operations.unwrap_or_else(|| rows.iter().map(|row| row.op_type).collect());
    let mut facts = facts;
    for operation in operations.into_iter().map(kind).filter(|word| *word != "N/A") {
        if !facts.operations.iter().any(|have| have == operation) {
            facts.operations.push(operation.to_owned());
        }
    }
    Some(Old {
        number,
        name,
        state,
        changes: line.map(|line| line.changes.clone()).unwrap_or_default(),
        submitted_ms: submitted.or(first).unwrap_or(0),
        started_ms: started.or(began),
        ended_ms: ended.or(last),
        directory,
        text: redacted.text,
        has_secrets: redacted.had_secrets,
        facts,
        stages,
        rows: matrix,
    })
}

/// Returns how a workload must have ended of which the history says nothing.
fn state_of(stages: &[StageProgress]) -> State {
    let any = |state| stages.iter().any(|stage| stage.state == state);
    match () {
        () if any(StageState::Cancelled) => State::Cancelled,
        () if any(StageState::Failed) => State::Failed,
        () if stages.iter().all(|stage| stage.state == StageState::Completed) => State::Finished,
        () => State::Terminated,
    }
}

/// A row of a workload's own table: an operation of a stage.
struct Row<'a> {
    stage: &'a str,
    op_name: &'a str,
    op_type: &'a str,
    /// From Op-Count to Succ-Ratio.
    figures: Vec<Option<f64>>,
    states: Vec<(&'a str, Option<i64>)>,
}

/// The figures of a row by their places.
const OP_COUNT: usize = 0;
const BYTE_COUNT: usize = 1;
const RES_TIME: usize = 2;
const PROC_TIME: usize = 3;
const PERCENTILES: usize = 4;
const OP_RATE: usize = 10;
const BYTE_RATE: usize = 11;
const SUCC_RATIO: usize = 12;

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [stage, op_name, op_type] = *fields.get(..3)? else { return None };
        let figure = |field: &&str| field.trim_end_matches('%').parse::<f64>().ok();
        let figures = fields.get(3..16)?.iter().map(figure).collect();
        let state = |field: &&'a str| {
            let (state, at) = field.split_once(" @ ").unwrap_or((field, ""));
            (state, from_local(at, IN_FILES))
        };
        let states = fields.get(16..)?.iter().map(state).collect();
        Some(Self { stage, op_name, op_type, figures, states })
    }

    fn count(&self, at: usize) -> u64 {
        self.figures[at].map_or(0, |value| value.max(0.0) as u64)
    }

    /// Returns how many operations failed, as far as the share of the successes says.
    fn failed(&self) -> u64 {
        let ok = self.count(OP_COUNT) as f64;
        let ratio = self.figures[SUCC_RATIO].map_or(1.0, |percent| percent / 100.0);
        if ratio > 0.0 { (ok / ratio - ok).round() as u64 } else { 0 }
    }
}

/// Returns the stages with how they stood, and the works of each as far as the table over all
/// workloads knows them.
fn stages(rows: &[Row<'_>], number: Number, all: &str) -> (Facts, Vec<StageProgress>) {
    let mut facts = Facts { notes: vec![NOTE.to_owned()], ..Facts::default() };
    let mut stages: Vec<StageProgress> = Vec::new();
    for row in rows {
        let known = facts.stages.iter().position(|stage| stage.id.as_deref() == Some(row.stage));
        let at = known.unwrap_or_else(|| {
            facts.stages.push(plan(row, number, all));
            stages.push(progress(row, stages.len() + 1));
            stages.len() - 1
        });
        let stage = &mut stages[at];
        let failed = row.failed();
        // What somebody wrote may be any number.
        let ended = row.count(OP_COUNT).saturating_add(failed);
        stage.ops_count = stage.ops_count.saturating_add(ended);
        stage.ops_failed_count = stage.ops_failed_count.saturating_add(failed);
        stage.bytes_count = stage.bytes_count.saturating_add(row.count(BYTE_COUNT));
    }
    (facts, stages)
}

/// What the table over all workloads says of an operation: how many workers did it, and how.
fn details<'a>(number: Number, stage: &str, all: &'a str) -> Vec<(u32, Cow<'a, str>)> {
    let id = format!("{number}-{stage}-");
    let of = |line: &'a str| {
        // What comes behind is the number of the operation in its stage.
        let (_, rest) = line.strip_prefix(&*id)?.split_once(',')?;
        let fields: Vec<&str> = rest.splitn(16, ',').collect();
        let workers = fields.get(3).and_then(|workers| workers.parse().ok()).unwrap_or(0);
        Some((workers, Cow::Borrowed(*fields.get(15)?)))
    };
    all.lines().filter_map(of).collect()
}

fn plan(row: &Row<'_>, number: Number, all: &str) -> StagePlan {
    let name = row.stage.split_once('-').map_or(row.stage, |(_, name)| name).to_owned();
    // Its works are not told apart.
    let details = details(number, row.stage, all);
    let configs: Vec<String> = details.iter().map(|(_, config)| hidden(config)).collect();
    let job = JobPlan {
        name: name.clone(),
        workers_count: details.iter().map(|(workers, _)| *workers).max().unwrap_or(0),
        work: configs.join("; "),
        ..JobPlan::default()
    };
    let prepares = matches!(row.op_type, "init" | "prepare" | "cleanup" | "dispose" | "delay");
    let id = Some(row.stage.to_owned());
    StagePlan { name, id, prepares, jobs: vec![job], ..StagePlan::default() }
}

fn hidden(config: &str) -> String {
    redact::redact(SourceKind::Cosbench, config).text
}

fn progress(row: &Row<'_>, number: usize) -> StageProgress {
    // The first is how it stands, without a time.
    let timed = row.states.iter().filter_map(|(word, at)| Some((stage_word(word)?, (*at)?)));
    let states: Vec<(StageState, i64)> = timed.collect();
    let began = states.iter().find(|(state, _)| *state == StageState::Running);
    let state = row.states.first().and_then(|(word, _)| stage_word(word)).unwrap_or_default();
    let state = match state {
        StageState::Waiting => StageState::Aborted,
        StageState::Running | StageState::Sleeping => StageState::Terminated,
        over => over,
    };
    StageProgress {
        number,
        state,
        began_at_ms: began.map(|(_, at)| *at),
        ended_at_ms: began.and(states.last()).map(|(_, at)| *at),
        states,
        ..StageProgress::default()
    }
}

fn matrix(
    rows: &[Row<'_>],
    facts: &Facts,
    (number, name, state): (Number, &str, State),
    all: &str,
) -> Vec<MatrixRowDoc> {
    let doc = |(index, row): (usize, &Row<'_>)| {
        let at = facts.stages.iter().position(|stage| stage.id.as_deref() == Some(row.stage))?;
        let plan = &facts.stages[at];
        let before = rows[..index].iter().filter(|before| before.stage == row.stage).count();
        let details = details(number, row.stage, all);
        let (workers_count, config) = details.get(before).cloned().unwrap_or_default();
        row.figures[OP_COUNT]?;
        let ns = |index: usize| row.figures[index].map(|ms| ms * 1e6);
        let latency = |index: usize| ns(PERCENTILES + index).map(|ns| ns as u64);
        let failed = row.failed();
        Some(MatrixRowDoc {
            run: number.to_string(),
            run_name: name.to_owned(),
            run_state: state,
            stage: at + 1,
            stage_id: row.stage.to_owned(),
            job: 1,
            job_name: plan.name.clone(),
            kind: kind(row.op_type).to_owned(),
            op_name: row.op_name.to_owned(),
            workers_count,
            ops_count: row.count(OP_COUNT),
            ops_failed_count: failed,
            bytes_count: row.count(BYTE_COUNT),
            res_ns_mean: ns(RES_TIME),
            proc_ns_mean: ns(PROC_TIME),
            latency_ns: MatrixLatencyDoc {
                p60: latency(0),
                p80: latency(1),
                p90: latency(2),
                p95: latency(3),
                p99: latency(4),
                p100: latency(5),
                ..MatrixLatencyDoc::default()
            },
            ops_per_sec: row.figures[OP_RATE],
            bytes_per_sec: row.figures[BYTE_RATE],
            success_ratio: row.figures[SUCC_RATIO].map(|percent| percent / 100.0),
            config: hidden(&config),
        })
    };
    rows.iter().enumerate().filter_map(doc).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What COSBench itself has written.
    fn archive() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/testdata/cosbench/archive")
    }

    fn old(number: i64) -> Old {
        let found = find(&archive(), &|_| false);
        found.old.into_iter().find(|old| old.number == Number(number)).unwrap()
    }

    #[test]
    fn what_cosbench_has_archived_is_read_as_it_stands() {
        let found = find(&archive(), &|number| number == Number(3));
        let numbers: Vec<i64> = found.old.iter().map(|old| old.number.0).collect();
        // The history goes on to w44, whose directories are not here.
        assert_eq!((&numbers[..], found.last), (&[1, 28, 29][..], 44));
        let demo = old(1);
        assert_eq!((&*demo.name, demo.state), ("demo", State::Finished));
        assert_eq!(demo.ended_ms.unwrap() - demo.submitted_ms, 126_000);
        assert_eq!(demo.facts.operations.join(" "), "init prepare GET PUT cleanup dispose");
        let ids: Vec<&str> = demo.facts.stages.iter().filter_map(|of| of.id.as_deref()).collect();
        assert_eq!(ids, ["s1-init", "s2-prepare", "s3-main", "s4-cleanup", "s5-dispose"]);
        let main = &demo.stages[2];
        assert_eq!((main.state, main.ops_count), (StageState::Completed, 17_632 + 4_395));
        assert_eq!(main.ended_at_ms.unwrap() - main.began_at_ms.unwrap(), 36_000);
        let read = &demo.rows[2];
        assert_eq!((&*read.stage_id, &*read.kind, &*read.op_name), ("s3-main", "GET", "read"));
        assert_eq!((read.ops_count, read.bytes_count), (17_632, 1_128_448_000));
        assert_eq!((read.ops_per_sec, read.success_ratio), (Some(587.89), Some(1.0)));
        assert_eq!((read.res_ns_mean, read.latency_ns.p50), (Some(10_560_000.0), None));
        assert_eq!(read.latency_ns.p100, Some(160_000_000));
        assert_eq!((read.workers_count, demo.rows[3].workers_count), (8, 8));
        assert_eq!(read.config, "80% containers=u(1-32) objects=u(1-50)");
        assert_eq!(demo.facts.stages[2].jobs[0].workers_count, 8);
    }

    #[test]
    fn failures_come_from_the_share_and_what_never_ran_has_no_rows() {
        let errors = old(29);
        // As in rows of our own runs, the successes: COSBench's Op-Count.
        assert_eq!((errors.rows[0].ops_failed_count, errors.rows[0].ops_count), (92, 740));
        assert_eq!(errors.stages[0].ops_failed_count, 92);
        assert_eq!(errors.facts.stages[0].jobs[0].workers_count, 2);
        let never = old(28);
        assert_eq!((never.state, never.rows.len()), (State::Terminated, 0));
        assert_eq!(never.stages[0].state, StageState::Aborted);
        assert_eq!(never.stages[0].began_at_ms, None);
    }

    #[test]
    fn no_secret_of_an_archive_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("w7-a,b");
        disk::make(&directory).unwrap();
        let table = read(&archive().join("w29-r-errors/w29-r-errors.csv"));
        disk::write(&directory.join("w7-a,b.csv"), table.as_bytes()).unwrap();
        let xml = b"<workload><storage config=\"accesskey=KEY1;secretkey=SEC2\"/></workload>";
        disk::write(&directory.join("workload-config.xml"), xml).unwrap();
        let history = "Id,Name\nw7,a,b,2026-11-20 21:03:03,2026-11-20 21:03:48,2026-11-20 21:03:56,\
                       read,processing,queuing @ 2026-11-20 21:03:03\nbroken\nw9,x\n";
        disk::write(&folder.path().join(HISTORY), history.as_bytes()).unwrap();
        // Neither of these is a workload of COSBench's.
        disk::make(&folder.path().join("w8-empty")).unwrap();
        disk::make(&folder.path().join("notes")).unwrap();
        let found = find(folder.path(), &|_| false);
        let [old] = &found.old[..] else { panic!("{found:?}") };
        assert_eq!((&*old.name, old.state, old.has_secrets), ("a,b", State::Terminated, true));
        assert!(!old.text.contains("KEY1") && !old.text.contains("SEC2"), "{}", old.text);
        assert_eq!(found.last, 8);
    }
}
