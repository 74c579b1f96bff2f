//! A run while it goes on: its counters are read once a second, noted, and told to all who listen.
//!
//! A second is made a text once, whoever listens; who does not keep up is let go.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_conduct::{Goal, Observer, StageView, Stop};
use plimsoll_engine::{ErrorSample, JobOutcome, StageOutcome};
use plimsoll_model::{EndReason, SeriesKey, StageId, redacted};
use plimsoll_stats::Totals;
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::facts::{Facts, JobPlan, JobProgress, StageProgress, StageState};
use crate::sample::{Machines, Sums};
use crate::state::Number;
use crate::store::{Remark, Store};
use crate::ticks::{Counted, Tick};
use crate::triggers::StageScripts;

/// How often counters are read.
const EVERY: Duration = Duration::from_secs(1);
/// A last interval that is shorter than this is left out if nothing ended in it.
const REST_MAX: Duration = Duration::from_millis(200);
/// So many seconds are kept for who asks for what came after one.
const RECENT_MAX: usize = 120;
/// Who has missed more than this asks for the whole again.
const MISSED_MAX: u64 = 40;
/// Who is further behind than this is let go.
const BEHIND_MAX: usize = 64;

/// Something that happened to a run.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A second was counted.
    Tick(Arc<Told>),
    /// Something was said.
    Log(Arc<Remark>, i64),
    /// A state, a stage or a job changed.
    Changed,
    /// It is over.
    End,
}

/// A second, and how far the run was.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What was counted in it.
    pub tick: Tick,
    /// What was counted since the stage began.
    pub sums: Sums,
    /// How far the run is, 0 to 1.
    pub progress: Option<f64>,
    /// The same for the wire, made by whoever needs it first.
    pub(crate) text: std::sync::OnceLock<bytes::Bytes>,
}

/// A run that goes on.
pub(crate) struct Watch {
    number: Number,
    facts: Facts,
    store: Arc<Store>,
    clock: Clock,
    events: broadcast::Sender<Event>,
    inner: Mutex<Inner>,
    /// Is told the same.
    beside: Option<Arc<dyn Beside>>,
    machines: Machines,
    /// What may stand in nothing that is said.
    secrets: Vec<String>,
    scripts: Option<StageScripts>,
    stop: Stop,
}

/// What a run is watched with.
pub(crate) struct Setup {
    /// Where its seconds are noted.
    pub(crate) file: Option<File>,
    /// Who is told the same.
    pub(crate) beside: Option<Arc<dyn Beside>>,
    /// Who carries it out.
    pub(crate) machines: Machines,
    /// Its secrets, which may stand in nothing that is said.
    pub(crate) secrets: Vec<String>,
    /// What is run around its stages.
    pub(crate) scripts: Option<StageScripts>,
    /// What ends it.
    pub(crate) stop: Stop,
}

/// Whoever else is told of a run.
pub(crate) trait Beside: Send + Sync {
    /// A second was counted in a stage that COSBench calls so, if it has a name for it.
    fn tick(&self, tick: &Tick, stage: Option<&str>);

    /// Something was said.
    fn said(&self, remark: &Remark);
}

#[derive(Default)]
struct Inner {
    seq: u64,
    log_seq: i64,
    recent: VecDeque<Arc<Told>>,
    stages: Vec<StageProgress>,
    progress: Option<f64>,
    file: Option<File>,
    /// Whether it is known what came of the last stage that began.
    is_judged: bool,
    /// In which stage and why the run cannot go on.
    broken: Option<(usize, String)>,
}

impl Watch {
    /// Begins to watch a run.
    pub(crate) fn new(number: Number, facts: Facts, store: Arc<Store>, setup: Setup) -> Self {
        let Setup { file, beside, machines, secrets, scripts, stop } = setup;
        let clock = Clock::start();
        let stage = |index| StageProgress { number: index + 1, ..StageProgress::default() };
        let stages = (0..facts.stages.len()).map(stage).collect();
        let inner = Mutex::new(Inner { stages, file, ..Inner::default() });
        let (events, _) = broadcast::channel(BEHIND_MAX);
        Self {
            number,
            facts,
            store,
            clock,
            events,
            inner,
            beside,
            machines,
            secrets,
            scripts,
            stop,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to what happens from now on; also returns the seconds after that number, or `None`
    /// where they are not kept any more.
    pub(crate) fn listen(
        &self,
        after: u64,
    ) -> (broadcast::Receiver<Event>, Option<Vec<Arc<Told>>>) {
        let inner = self.inner();
        let events = self.events.subscribe();
        let first = inner.recent.front().map_or(inner.seq + 1, |told| told.tick.seq);
        let is_near = inner.seq.saturating_sub(after) <= MISSED_MAX;
        let missed = (is_near && after.saturating_add(1) >= first)
            .then(|| inner.recent.iter().filter(|told| told.tick.seq > after).cloned().collect());
        (events, missed)
    }

    /// Returns how far the run is.
    pub(crate) fn progress(&self) -> Option<f64> {
        self.inner().progress
    }

    /// Returns how its stages stand.
    pub(crate) fn stages(&self) -> Vec<StageProgress> {
        self.inner().stages.clone()
    }

    /// Returns the id of the stage that goes on, as COSBench names it: `s3-main`.
    pub(crate) fn short_stage(&self) -> Option<String> {
        let stages = self.stages();
        let goes_on = |stage: &&StageProgress| {
            matches!(stage.state, StageState::Running | StageState::Sleeping)
        };
        let number = stages.iter().find(goes_on)?.number;
        let plan = self.facts.stages.get(number - 1);
        Some(plan.map_or_else(|| format!("s{number}"), |plan| plan.id_as(number)))
    }

    /// Returns what a stage is called among all, by its name where nothing is known of it.
    fn id_of(&self, index: usize, name: &str) -> String {
        let plan = self.facts.stages.get(index);
        plan.map_or_else(|| name.to_owned(), |plan| plan.id_as(index + 1))
    }

    /// Returns the last second.
    pub(crate) fn last(&self) -> Option<Arc<Told>> {
        self.inner().recent.back().cloned()
    }

    /// Returns what it is known of before it runs.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns a text without the secrets of the run.
    pub(crate) fn in_public(&self, text: &str) -> String {
        redacted(text, self.secrets.iter().map(String::as_str))
    }

    /// Returns why the run cannot go on, if something beside it said so.
    pub(crate) fn broken(&self) -> Option<String> {
        self.inner().broken.as_ref().map(|(_, error)| error.clone())
    }

    /// Says something of the run.
    pub(crate) fn remark(&self, level: &str, text: &str) {
        let text = self.in_public(text);
        let remark = Remark { at_ms: self.clock.now_ms(), level: level.to_owned(), text };
        if let Some(beside) = &self.beside {
            beside.said(&remark);
        }
        // A remark that cannot be kept ends no run.
        let _ = self.store.remark(self.number, &remark);
        let seq = {
            let mut inner = self.inner();
            inner.log_seq += 1;
            inner.log_seq
        };
        let _ = self.events.send(Event::Log(Arc::new(remark), seq));
    }

    /// Says that something about the run changed that is not a second.
    pub(crate) fn changed(&self) {
        let _ = self.events.send(Event::Changed);
    }

    /// Ends all stages that have not ended. `error` is what ended the run, in one line.
    pub(crate) fn end_stages(&self, running: StageState, waiting: StageState, error: Option<&str>) {
        if let Some(scripts) = &self.scripts {
            scripts.close();
        }
        let at_ms = self.clock.now_ms();
        let stages = {
            let mut inner = self.inner();
            if let Some(error) = error {
                let error = self.in_public(error);
                inner.blame(running, &error, at_ms);
            }
            for stage in &mut inner.stages {
                match stage.state {
                    StageState::Running | StageState::Sleeping => {
                        enter(stage, running, stage.ended_at_ms.unwrap_or(at_ms));
                    }
                    StageState::Waiting => enter(stage, waiting, at_ms),
                    _ => {}
                }
            }
            inner.file = None;
            inner.stages.clone()
        };
        let _ = self.store.progress(self.number, &stages);
    }

    /// Tells who listens that nothing more comes.
    pub(crate) fn end(&self) {
        let _ = self.events.send(Event::Changed);
        let _ = self.events.send(Event::End);
    }

    /// Finds the stage of that name that comes next, and begins it.
    fn begin_stage(&self, name: &str) -> usize {
        let at_ms = self.clock.now_ms();
        let mut inner = self.inner();
        let next = inner.stages.iter().rposition(|stage| stage.began_at_ms.is_some());
        let next = next.map_or(0, |last| last + 1);
        let is_it = |index: &usize| self.facts.stages[*index].name == name;
        let index = (next..inner.stages.len()).find(is_it).unwrap_or(next);
        if index >= inner.stages.len() {
            // Such as a probe of a search, which no plan names one by one.
            let number = inner.stages.len() + 1;
            inner.stages.push(StageProgress { number, ..StageProgress::default() });
        }
        let is_pause = self.facts.stages.get(index).is_some_and(|stage| stage.jobs.is_empty());
        let state = if is_pause { StageState::Sleeping } else { StageState::Running };
        enter(&mut inner.stages[index], state, at_ms);
        inner.stages[index].began_at_ms = Some(at_ms);
        inner.is_judged = false;
        let plan = self.facts.stages.get(index);
        let measures = plan.is_none_or(|plan| !plan.prepares && !plan.jobs.is_empty());
        inner.stages[index].measures = Some(measures);
        let stages = inner.stages.clone();
        drop(inner);
        let _ = self.store.progress(self.number, &stages);
        self.remark("stage", &format!("stage {} began", self.id_of(index, name)));
        self.changed();
        index
    }

    fn end_stage(&self, index: usize, name: &str) {
        let at_ms = self.clock.now_ms();
        let stages = {
            let mut inner = self.inner();
            match self.stop.is_step_stopped() {
                // Cut short; as what, is known when the run has ended.
                true => inner.stages[index].ended_at_ms = Some(at_ms),
                false => enter(&mut inner.stages[index], StageState::Completed, at_ms),
            }
            inner.stages.clone()
        };
        let _ = self.store.progress(self.number, &stages);
        self.remark("stage", &format!("stage {} ended", self.id_of(index, name)));
        self.changed();
    }

    /// Reads the counters once a second until the stage is over, and once more then.
    fn sample(&self, index: usize, view: &StageView<'_>, ended: &Receiver<()>) {
        let jobs = self.facts.stages.get(index).map(|stage| &*stage.jobs).unwrap_or_default();
        let workers: Vec<u32> = jobs.iter().map(|job| job.workers_count).collect();
        let began = self.clock.moment();
        let mut before = Sums::default();
        let (mut last, mut due) = (began, began.after(EVERY));
        loop {
            let wait = due.since(self.clock.moment());
            let is_over = !matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
            let now = self.clock.moment();
            let interval = now.since(last);
            let sums = Sums::read(view, &workers, &self.machines);
            let Sums { rows, parts, hosts } = sums.since(&before);
            let tick = Tick {
                seq: 0,
                at_ms: self.clock.now_ms(),
                interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
                stage: index + 1,
                rows,
                parts,
                hosts,
            };
            // A rest of a second in which nothing ended says nothing.
            let is_rest = is_over && last != began && interval < REST_MAX;
            if !is_rest || sums.ended_count() > before.ended_count() {
                let progress = self.fraction(index, view.goal, &sums, now.since(began));
                self.note(tick, &sums, progress);
            }
            before = sums;
            last = now;
            due = due.after(EVERY);
            if is_over {
                return;
            }
        }
    }

    /// Keeps a second, and tells it.
    fn note(&self, mut tick: Tick, sums: &Sums, progress: Option<f64>) {
        let mut inner = self.inner();
        inner.seq += 1;
        tick.seq = inner.seq;
        inner.progress = progress;
        if let Some(stage) = inner.stages.get_mut(tick.stage - 1) {
            count(stage, sums);
        }
        if let (Some(file), Ok(mut line)) = (&mut inner.file, serde_json::to_string(&tick)) {
            line.push('\n');
            // A full disk costs the history of seconds, never the run.
            let _ = file.write_all(line.as_bytes());
        }
        // Of rows only counts are asked for.
        let mut sums = sums.clone();
        sums.rows.iter_mut().for_each(|row| row.counted.cells = Vec::new());
        let told = Told { tick, sums, progress, text: std::sync::OnceLock::new() };
        let told = Arc::new(told);
        inner.recent.push_back(Arc::clone(&told));
        while inner.recent.len() > RECENT_MAX {
            inner.recent.pop_front();
        }
        // Sent under the lock, so that who begins to listen misses none and sees none twice.
        let _ = self.events.send(Event::Tick(Arc::clone(&told)));
        drop(inner);
        if let Some(beside) = &self.beside {
            let plan = self.facts.stages.get(told.tick.stage - 1);
            beside.tick(&told.tick, plan.and_then(|plan| plan.id.as_deref()));
        }
    }

    /// Returns how far the whole run is, by the time that is planned for its stages.
    fn fraction(&self, index: usize, goal: Goal, sums: &Sums, since: Duration) -> Option<f64> {
        let of_stage = match goal {
            Goal::Ops(0) => 0.0,
            Goal::Ops(ops) => sums.ended_count() as f64 / ops as f64,
            Goal::Time(time) => since.as_secs_f64() / time.as_secs_f64().max(1e-9),
        };
        let weights = weights(&self.facts);
        let own = weights.get(index)?;
        let done: f64 = weights[..index].iter().sum();
        Some((done + own * of_stage.min(1.0)) / weights.iter().sum::<f64>())
    }

    /// Notes what came of the stage that has ended last.
    fn judge(&self, outcome: &StageOutcome) {
        let mut inner = self.inner();
        inner.is_judged = true;
        let Some(at) = inner.stages.iter().rposition(|stage| stage.began_at_ms.is_some()) else {
            return;
        };
        let Some(plan) = self.facts.stages.get(at) else { return };
        let mut error = match outcome.ended_by {
            EndReason::Failure => outcome.ended_because.clone(),
            _ => None,
        };
        let mut jobs = Vec::new();
        for (job, of) in plan.jobs.iter().enumerate() {
            let outcome_of = outcome.jobs.iter().find(|of| usize::from(of.job.0) == job);
            let Some(of_job) = outcome_of else { continue };
            let first = outcome.errors.iter().find(|error| error.job == of_job.job);
            let failed = match plan.prepares {
                // What is no result may fail; what depends on it says so.
                true => None,
                false => too_many_failed(of, of_job, first).map(|text| self.in_public(&text)),
            };
            if error.is_none()
                && let Some(failed) = &failed
            {
                let lead =
                    if plan.jobs.len() > 1 { format!("{}: ", of.name) } else { String::new() };
                error = Some(format!("{lead}{failed}"));
            }
            // As the report has it: without ramps, which the counters of a stage that goes on have.
            jobs.push(JobProgress {
                ops_count: of_job.measured_count,
                ops_failed_count: of_job.measured_failed_count,
                bytes_count: of_job.measured_bytes,
                error: failed,
            });
        }
        let stage = &mut inner.stages[at];
        if jobs.len() == plan.jobs.len() && !jobs.is_empty() {
            let sum = |of: fn(&JobProgress) -> u64| jobs.iter().map(of).sum();
            stage.ops_count = sum(|job| job.ops_count);
            stage.ops_failed_count = sum(|job| job.ops_failed_count);
            stage.bytes_count = sum(|job| job.bytes_count);
            stage.jobs = jobs;
        }
        let was_cut = stage.state != StageState::Completed;
        if let Some(error) = error.filter(|_| !was_cut) {
            let at_ms = stage.ended_at_ms.unwrap_or_else(|| self.clock.now_ms());
            stage.states.retain(|(state, _)| *state != StageState::Completed);
            enter(stage, StageState::Failed, at_ms);
            stage.error = Some(self.in_public(&error));
        }
        let stages = inner.stages.clone();
        drop(inner);
        let _ = self.store.progress(self.number, &stages);
        self.changed();
    }

    /// Runs what is around a stage, and gives the run up where that fails.
    fn run_scripts(&self, index: usize) {
        let Some(scripts) = &self.scripts else { return };
        if let Err(error) = scripts.begin(&self.facts, index) {
            self.inner().broken = Some((index, self.in_public(&error)));
            self.stop.request();
        }
    }
}

impl Inner {
    /// Says of the stage that ended the run why it did.
    fn blame(&mut self, state: StageState, error: &str, at_ms: i64) {
        let began = self.stages.iter().rposition(|stage| stage.began_at_ms.is_some());
        let goes_on = |stage: &StageProgress| {
            matches!(stage.state, StageState::Running | StageState::Sleeping)
        };
        let under_way = self.stages.iter().rposition(goes_on);
        let at = match began {
            _ if under_way.is_some() => under_way.unwrap_or(0),
            _ if self.broken.is_some() => self.broken.as_ref().map_or(0, |(at, _)| *at),
            // What ended it then came between two stages, or before the first.
            Some(last) if self.is_judged => last + 1,
            Some(last) => last,
            None => 0,
        };
        let Some(stage) = self.stages.get_mut(at) else { return };
        if stage.state == StageState::Completed {
            stage.states.retain(|(state, _)| *state != StageState::Completed);
        }
        enter(stage, state, stage.ended_at_ms.unwrap_or(at_ms));
        stage.error = Some(error.to_owned());
    }
}

/// Counts what a stage has come to so far.
fn count(stage: &mut StageProgress, sums: &Sums) {
    let all = sums.rows.iter().map(|row| (row.job, &row.counted));
    stage.ops_count = all.clone().map(|(_, of)| of.ended_count()).sum();
    stage.ops_failed_count = all.clone().map(|(_, of)| of.failed_count()).sum();
    stage.bytes_count = all.clone().map(|(_, of)| of.bytes).sum();
    // Where some of it is of no job that is known, no job's count is known.
    let jobs: Option<Vec<usize>> = sums.rows.iter().map(|row| row.job).collect();
    let last = jobs.and_then(|jobs| jobs.into_iter().max()).unwrap_or(0);
    let of_job = |job: usize| {
        let own = all.clone().filter(|(of, _)| *of == Some(job)).map(|(_, of)| of);
        let mut progress = JobProgress::default();
        own.for_each(|of: &Counted| {
            progress.ops_count += of.ended_count();
            progress.ops_failed_count += of.failed_count();
            progress.bytes_count += of.bytes;
        });
        progress
    };
    stage.jobs = (1..=last).map(of_job).collect();
}

/// Returns what a job has come to where more of it failed than may.
fn too_many_failed(
    plan: &JobPlan,
    outcome: &JobOutcome,
    first: Option<&ErrorSample>,
) -> Option<String> {
    // As the exit code has it: without what failed in a ramp.
    let JobOutcome { measured_count, measured_failed_count, .. } = *outcome;
    let (ops_count, failed_count) = (measured_count, measured_failed_count);
    let may = plan.failed_percent_max.unwrap_or(0.0);
    let percent = failed_count as f64 * 100.0 / ops_count.max(1) as f64;
    if failed_count == 0 || percent <= may {
        return None;
    }
    let first = first.map_or_else(String::new, |error| {
        format!(
            "; the first, {}: {}",
            error.kind.name(),
            error.message.replace(char::is_control, " ")
        )
    });
    let share = match percent {
        percent if percent < 0.01 => "less than 0.01 %".to_owned(),
        percent => format!("{} %", (percent * 100.0).round() / 100.0),
    };
    Some(format!(
        "{failed_count} of {ops_count} operations failed ({share}, and {may} % may){first}"
    ))
}

/// Returns how much of a run each stage is: the time that is planned for it; of one that lasts as
/// long as it takes, a tenth of the longest.
fn weights(facts: &Facts) -> Vec<f64> {
    let planned = |stage: &crate::facts::StagePlan| stage.planned_ns.map(|ns| ns as f64);
    let longest = facts.stages.iter().filter_map(planned).fold(0.0, f64::max);
    let other = if longest > 0.0 { longest / 10.0 } else { 1.0 };
    facts.stages.iter().map(|stage| planned(stage).unwrap_or(other)).collect()
}

fn enter(stage: &mut StageProgress, state: StageState, at_ms: i64) {
    stage.state = state;
    stage.states.push((state, at_ms));
    if !matches!(state, StageState::Running | StageState::Sleeping) && stage.began_at_ms.is_some() {
        stage.ended_at_ms = Some(at_ms);
    }
}

impl Observer for Watch {
    fn note(&self, line: &str) {
        self.remark("info", line);
    }

    fn warn(&self, line: &str) {
        self.remark("warning", line);
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        let index = self.begin_stage(stage.name);
        self.run_scripts(index);
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            let reader = thread::Builder::new().name("console-ticks".to_owned());
            let reader = reader.spawn_scoped(scope, move || self.sample(index, stage, &ended));
            work();
            drop(end);
            // Without a reader the run goes on unseen; a panic there is no failure of the run.
            let _ = reader.map(thread::ScopedJoinHandle::join);
        });
        if let Some(scripts) = &self.scripts {
            scripts.end(&self.facts, index);
        }
        self.end_stage(index, stage.name);
    }

    fn stage_ended(&self, outcome: &StageOutcome) {
        self.judge(outcome);
    }

    fn stages_ended(&self, measured: Vec<(StageId, Totals<SeriesKey>)>) {
        drop(measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StagePlan;

    #[test]
    fn stages_weigh_as_long_as_they_are_to_last() {
        let stage = |planned_s: Option<u64>| StagePlan {
            planned_ns: planned_s.map(|s| s * 1_000_000_000),
            ..StagePlan::default()
        };
        let facts = |planned: &[Option<u64>]| Facts {
            stages: planned.iter().copied().map(stage).collect(),
            ..Facts::default()
        };
        let shares = |planned: &[Option<u64>]| {
            let weights = weights(&facts(planned));
            let all: f64 = weights.iter().sum();
            weights.iter().map(|weight| (weight * 100.0 / all).round() as u32).collect::<Vec<_>>()
        };
        assert_eq!(shares(&[None, Some(100), None]), [8, 83, 8]);
        assert_eq!(shares(&[Some(10), Some(30)]), [25, 75]);
        assert_eq!(shares(&[None, None]), [50, 50]);
    }

    #[test]
    fn who_missed_too_much_asks_for_the_whole_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("a.sqlite")).unwrap());
        let setup = Setup {
            file: None,
            beside: None,
            machines: Machines::unknown(),
            secrets: vec!["HIDDEN".to_owned()],
            scripts: None,
            stop: Stop::default(),
        };
        let facts = Facts { stages: vec![StagePlan::default()], ..Facts::default() };
        let watch = Watch::new(Number(1), facts, store, setup);
        for _ in 0..100 {
            watch.note(Tick { stage: 1, ..Tick::default() }, &Sums::default(), None);
        }
        let missed = |after| watch.listen(after).1.map(|missed| missed.len());
        assert_eq!(
            [missed(100), missed(60), missed(59), missed(0)],
            [Some(0), Some(40), None, None]
        );
        assert_eq!(watch.in_public("key HIDDEN"), "key *REDACTED*");
    }
}
