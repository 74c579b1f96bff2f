//! A workload of the queue from its turn to its end.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use plimsoll_analysis::StageTotals;
use plimsoll_conduct::{Observer, Stop};
use plimsoll_results::{Asked, Record};

use super::{Console, Running, lock};
use crate::archive::Archive;
use crate::disk;
use crate::facts::{Facts, StageProgress, StageState};
use crate::live::{Beside, Setup, Watch};
use crate::names::safe;
use crate::redact;
use crate::runner::{Job, Submission, Verdict};
use crate::sample::Machines;
use crate::state::{Number, State};
use crate::store::{Ended, Entry, Remark};
use crate::triggers::{Around, StageScripts};

/// How a run has ended.
struct Outcome {
    state: State,
    error: Option<String>,
}

/// How a run has ended, and when.
pub(super) struct Settled {
    number: Number,
    state: State,
    error: Option<String>,
    at_ms: i64,
}

/// Has the database take what has ended. Returns whether it took all; what it does not take is
/// offered again, and a console that is started again finds it terminated.
pub(super) fn settle(console: &Console) -> bool {
    let mut unsettled = lock(&console.unsettled);
    unsettled.retain(|settled| {
        let Settled { number, state, error, at_ms } = settled;
        let ended = Ended { state: *state, error: error.as_deref(), at_ms: *at_ms };
        let is_kept = console.store.end(*number, &ended).is_ok();
        if is_kept {
            console.forget_secrets(*number);
        }
        !is_kept
    });
    unsettled.is_empty()
}

/// What runs a workload whose turn has come, once it is launched.
pub(super) struct Turn {
    entry: Entry,
    running: Running,
    archive: Option<Arc<Archive>>,
}

/// Has a workload whose turn has come stand among those that run.
pub(super) fn enter(console: &Arc<Console>, entry: Entry) -> Turn {
    let number = entry.number;
    let stop = Stop::default();
    let source = console.store.source(number);
    let sealed = disk::read_text(&console.sealed(number)).unwrap_or_default();
    let secrets = redact::secrets(entry.kind, &sealed);
    let (facts, text) = match source {
        Ok(source) => (source.facts, source.text),
        Err(_) => (Facts::default(), String::new()),
    };
    let root = &console.settings.archive;
    let archive = Archive::begin(root, (number, &entry.name, false), (entry.kind, &text));
    let (archive, refused) = match archive {
        Ok(archive) => (Some(Arc::new(archive)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    // Seconds are kept where that can be; a run does not depend on it.
    let file = disk::appended_private(&console.series(number)).ok();
    let store = Arc::clone(&console.store);
    let beside = archive.clone().map(|archive| archive as Arc<dyn Beside>);
    let log = archive.as_ref().map(|archive| archive.directory().join("scripts.log"));
    let scripts = console.triggers.clone().map(|triggers| StageScripts {
        triggers,
        log,
        stop: stop.clone(),
        open: Mutex::default(),
    });
    let of = Arc::downgrade(console);
    let agents = move || of.upgrade().map(|console| console.agents()).unwrap_or_default();
    let machines = Machines { has_fleet: console.has_fleet(), agents: Box::new(agents) };
    let setup = Setup { file, beside, machines, secrets, scripts, stop: stop.clone() };
    let watch = Arc::new(Watch::new(number, facts, store, setup));
    if let Some(error) = refused {
        archive_failed(console, number, &watch, &error);
    }
    let running = Running { watch, stop };
    warn_of_shared(console, &running);
    lock(&console.running).insert(number, running.clone());
    Turn { entry, running, archive }
}

/// Says where a workload changes what another one that runs changes too: neither is measured alone,
/// and what one removes the other may want to read.
fn warn_of_shared(console: &Console, running: &Running) {
    for (other, of) in &*lock(&console.running) {
        let (own, theirs) = (running.watch.facts(), of.watch.facts());
        if !own.targets.iter().any(|target| theirs.targets.contains(target)) {
            continue;
        }
        let theirs: HashSet<&String> = theirs.touches.iter().collect();
        let shared = own.touches.iter().filter(|name| theirs.contains(name));
        let shared: Vec<&str> = shared.map(|name| &**name).collect();
        if let [first, ..] = *shared {
            let more = match shared.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let text = format!("{other} works in {first}{more} at the same time");
            running.watch.remark("warning", &text);
        }
    }
}

/// Runs a workload on a thread of its own.
pub(super) fn launch(console: &Arc<Console>, turn: Turn) {
    let Turn { entry, running, archive } = turn;
    let number = entry.number;
    let (of_thread, waits) = (Arc::clone(console), (archive.clone(), running.clone()));
    let thread = thread::Builder::new().name(format!("run-{number}"));
    let spawned = thread.spawn(move || {
        let (archive, running) = waits;
        let work = AssertUnwindSafe(|| carry_out(&of_thread, &entry, &running, archive.as_deref()));
        let outcome = catch_unwind(work).unwrap_or_else(|_| Outcome {
            state: State::Terminated,
            error: Some("the run failed because of a bug in plimsoll".to_owned()),
        });
        finish(&of_thread, number, &running, archive.as_deref(), &outcome);
    });
    if let Err(error) = spawned {
        let outcome = Outcome {
            state: State::Terminated,
            error: Some(format!("no thread can be started: {error}")),
        };
        finish(console, number, &running, archive.as_deref(), &outcome);
    }
}

fn carry_out(
    console: &Arc<Console>,
    entry: &Entry,
    running: &Running,
    archive: Option<&Archive>,
) -> Outcome {
    let number = entry.number;
    let failed = |error: String| Outcome { state: State::Terminated, error: Some(error) };
    let text = match disk::read_text(&console.sealed(number)) {
        Ok(text) => text,
        Err(error) => return failed(format!("the text of the workload is gone: {error}")),
    };
    let run_directory = run_directory(console, number, &entry.name);
    let run = run_directory.display().to_string();
    let archive_place = archive.map(|archive| archive.directory().display().to_string());
    if let Err(error) = console.store.place(number, Some(&run), archive_place.as_deref()) {
        return failed(error.to_string());
    }
    running.watch.remark("info", &format!("{number} begins"));
    let triggers = running.watch.facts().triggers.clone();
    let around = match &console.triggers {
        Some(of) => {
            let log = archive.map(|archive| archive.directory().join("scripts.log"));
            let own = triggers.iter().filter(|trigger| trigger.stage.is_none());
            let calls = own.map(|trigger| &*trigger.call);
            match Around::begin(of, calls, (log.as_deref(), "workload level"), &running.stop) {
                Ok(around) => Some(around),
                Err(_) if lock(&console.cancelled).contains(&number) => {
                    return Outcome { state: State::Cancelled, error: None };
                }
                Err(error) => return failed(error),
            }
        }
        None => None,
    };
    let observer: Arc<dyn Observer> = Arc::clone(&running.watch) as Arc<dyn Observer>;
    let id = number.to_string();
    let job = Job {
        id: &id,
        submission: Submission {
            text: &text,
            file_name: None,
            name: Some(&entry.name),
            touch: &console.settings.touch,
            asks: false,
        },
        run_directory: &run_directory,
        observer,
        stop: running.stop.clone(),
    };
    let done = console.runner.run(&job);
    drop(around);
    let is_cancelled = lock(&console.cancelled).contains(&number);
    let is_closing = *lock(&console.is_closing);
    let done = match running.watch.broken() {
        Some(error) => Err(error),
        None => done,
    };
    match done {
        Err(_) | Ok(_) if is_cancelled => Outcome { state: State::Cancelled, error: None },
        Err(_) | Ok(_) if is_closing => failed("the console was ended while this ran".to_owned()),
        Ok(Verdict::Good) => Outcome { state: State::Finished, error: None },
        Ok(Verdict::Flawed(error)) => Outcome { state: State::Failed, error },
        Err(error) => failed(error),
    }
}

/// Returns where the record of a workload goes.
fn run_directory(console: &Console, number: Number, name: &str) -> PathBuf {
    console.settings.directory.join("runs").join(format!("{number}-{}", safe(name)))
}

/// Notes how a workload has ended, and lets the next one run.
fn finish(
    console: &Arc<Console>,
    number: Number,
    running: &Running,
    archive: Option<&Archive>,
    outcome: &Outcome,
) {
    let (under_way, waiting) = match outcome.state {
        State::Finished | State::Failed => (StageState::Completed, StageState::Aborted),
        State::Cancelled => (StageState::Cancelled, StageState::Cancelled),
        _ => (StageState::Terminated, StageState::Aborted),
    };
    let error = outcome.error.as_deref().map(|error| running.watch.in_public(error));
    if let Some(error) = &error {
        running.watch.remark("error", error);
    }
    running.watch.remark("info", &format!("{number} is {}", outcome.state.name()));
    // Whoever sees that it has ended sees how its stages have.
    // Of a run that came to its end it is no stage's.
    let of_stage = error.as_deref().filter(|_| outcome.state != State::Failed);
    running.watch.end_stages(under_way, waiting, of_stage);
    // Read before its file may go.
    let text = disk::read_text(&console.sealed(number)).unwrap_or_default();
    let settled =
        Settled { number, state: outcome.state, error: error.clone(), at_ms: console.now_ms() };
    lock(&console.unsettled).push(settled);
    settle(console);
    if let Some(archive) = archive {
        complete_archive(console, number, &running.watch, (archive, &text));
    }
    running.watch.end();
    lock(&console.running).remove(&number);
    lock(&console.cancelled).retain(|each| *each != number);
    console.idle.notify_all();
    console.pump();
}

/// Completes the archive of a workload that has ended.
fn complete_archive(
    console: &Console,
    number: Number,
    watch: &Watch,
    (archive, text): (&Archive, &str),
) {
    let done = console.store.entry(number).and_then(|entry| {
        let changes = console.store.changes(number)?;
        Ok((entry, changes))
    });
    let written = match done {
        Ok((entry, changes)) => {
            let tables = archive.tables(&entry, text);
            let ended = archive.end(&entry, &changes).map_err(|error| error.to_string());
            tables.and(ended)
        }
        Err(error) => Err(error.to_string()),
    };
    if let Some(error) = archive.failed().or(written.err()) {
        archive_failed(console, number, watch, &error);
    }
}

fn archive_failed(console: &Console, number: Number, watch: &Watch, error: &str) {
    let text = format!("the archive is not complete: {error}");
    // If that cannot be kept either, the log of the run still says it.
    let _ = console.store.archive_failed(number, &text);
    watch.remark("warning", &text);
}

/// Takes over what the record has of stages: more than was kept beside it when all was killed.
fn count_recorded(stages: &mut [StageProgress], directory: &Path) {
    let report = Record::open(directory).and_then(|record| record.report(&Asked::default()));
    let Ok(report) = report else { return };
    for (stage, of) in stages.iter_mut().zip(&report.stages) {
        let totals = of.rows.iter().map(|row| &row.analysis.total.stage);
        stage.ops_count = totals.clone().map(StageTotals::ended).sum();
        stage.ops_failed_count = totals.clone().map(|total| total.failed.count()).sum();
        stage.bytes_count = totals.map(|total| total.bytes).sum();
    }
}

/// Completes what was under way when the console was killed.
pub(super) fn settle_orphan(console: &Console, number: Number) {
    let text = disk::read_text(&console.sealed(number)).unwrap_or_default();
    console.forget_secrets(number);
    let Ok(mut stages) = console.store.kept_progress(number) else { return };
    let now = console.now_ms();
    for stage in &mut stages {
        let state = match stage.state {
            StageState::Running | StageState::Sleeping => StageState::Terminated,
            StageState::Waiting => StageState::Aborted,
            _ => continue,
        };
        stage.state = state;
        stage.states.push((state, now));
    }
    let Ok(entry) = console.store.entry(number) else { return };
    count_recorded(&mut stages, &run_directory(console, number, &entry.name));
    let _ = console.store.progress(number, &stages);
    let Ok(entry) = console.store.entry(number) else { return };
    let source = console.store.source(number).map(|source| source.text).unwrap_or_default();
    let root = &console.settings.archive;
    let archive = Archive::begin(root, (number, &entry.name, true), (entry.kind, &source));
    let changes = console.store.changes(number).unwrap_or_default();
    let ended = archive.map_err(|error| error.to_string()).and_then(|archive| {
        let level = "error".to_owned();
        archive.said(&Remark { at_ms: now, level, text: super::KILLED.to_owned() });
        let tables = archive.tables(&entry, &text);
        archive.end(&entry, &changes).map_err(|error| error.to_string()).and(tables)
    });
    if let Err(error) = ended {
        let _ = console.store.archive_failed(number, &error);
    }
}
