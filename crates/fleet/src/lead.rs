//! The coordinator at work: it has agents carry out the stages of a run, and gathers what they
//! recorded.

mod assigning;
mod clocks;
mod collect;
mod doable;
mod files;
mod gather;
mod hearing;
mod judging;
mod remarks;
mod returning;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_conduct::{
    Agents, BegunRun, CallerError, Changes, ContentFiles, DirectedStage, Done, FilesReady,
    Observer, Recording, in_one_line,
};
use plimsoll_engine::{OpSink, StageContext, StageOutcome, StageRules, StopFlag};
use plimsoll_model::{EndReason, Moment, SharedClock};
use plimsoll_record::schema::{self, AgentLoss, Cleanup, FilesStage};
use plimsoll_workload::Share;
use serde_json::Value;

pub use self::collect::{Collected, collect};
use self::files::OnFiles;
use self::hearing::{Hearing, LOOK, News, Shared, State, in_words, perform};
use self::judging::{Blind, Judge, PartTold, StageWatch, Watching};
use crate::contents::{KEPT_BYTES_MAX, fetch, hold};
use crate::coordinator::{Coordinator, CoordinatorDo, LossReason, Standing};
use crate::fabric::{Arrivals, Fabric, Space};
use crate::limits::Limits;
use crate::offset::{ClockLine, Offset};
use crate::roll::Recruit;
use crate::wire::{
    Answer, ChangesDoc, ConductDoc, FilesReadyDoc, Order, OutcomeDoc, ProbeDoc, StageBounds,
    StageEndDoc, StageOrder, are_bounded, ended_by,
};

/// How often what agents tell is shown.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// No agent says more of why it cannot go on.
const WHY_CHARS_MAX: usize = 1_000;
/// An agent may tell so much of what it changed, however little of the load it has.
const CHANGES_BYTES_MIN: u64 = 1 << 20;
/// So many operations of a stage may have changed something and not be counted, as they had not
/// ended.
const UNENDED_MAX: u64 = 1 << 20;

/// No agent has more threads: there are counters for each.
const THREADS_MAX: u32 = 1 << 12;

/// What a run needs to know of its fleet.
pub struct FleetSettings {
    /// How the targets are reached, for whoever opens them; it may hold secrets.
    pub access: Value,
    /// How operations are driven.
    pub conduct: ConductDoc,
    /// How long anybody waits.
    pub limits: Limits,
    /// The run ends when fewer agents are left.
    pub agents_min: usize,
    /// Whether agents keep their parts when the coordinator has them, as records of their own.
    pub parts_stay: bool,
    /// A number that no other coordinator has.
    pub coordinator: u64,
    /// The files that content is made of, which agents read nowhere else.
    pub content: ContentFiles,
}

/// What came of a stage at one agent.
struct PartOutcome {
    doc: Box<OutcomeDoc>,
    clock: ClockLine,
    /// Whether the agent has told it; else it is what the record holds.
    is_told: bool,
}

/// A fleet that carries a run out.
pub struct Lead {
    shared: Arc<Shared>,
    fabric: Arc<dyn Fabric>,
    clock: SharedClock,
    observer: Arc<dyn Observer>,
    settings: FleetSettings,
    run: String,
    /// The agents as the record has them.
    agents: Vec<schema::Agent>,
    recruits: Vec<Recruit>,
    /// By stage and agent: what came of it.
    outcomes: Vec<Vec<Option<PartOutcome>>>,
    /// The stage under way or the last one.
    stage: Option<u8>,
    /// The latest that any agent's clock has shown, where time is virtual.
    latest: Moment,
    is_virtual: bool,
    /// By how much each agent's clock is ahead, as was measured before the stage.
    offsets: Vec<Offset>,
    files: OnFiles,
    /// By stage of the workload: how many jobs it has.
    jobs: Vec<usize>,
    /// By stage of the workload: how long it lasts, where that is known.
    lasts: Vec<Option<Duration>>,
    /// By stage of the workload: whether jobs of it are on agents that they name.
    pinned: Vec<bool>,
    /// How many addresses all targets have.
    endpoints: usize,
    /// What is to be said in the record of agents that stood out.
    remarks: Vec<String>,
    /// Why stages ended that agents were told to end.
    ended: Vec<StageEndDoc>,
    hearing: Option<thread::JoinHandle<()>>,
}

impl Lead {
    /// Has the agents make their parts of a run ready that has begun, each with a share by its
    /// weight. What arrives for this coordinator comes by `arrivals`.
    pub fn open(
        fabric: Arc<dyn Fabric>,
        arrivals: Arrivals,
        recruits: Vec<Recruit>,
        run: &BegunRun,
        settings: FleetSettings,
    ) -> Result<Self, CallerError> {
        let recording = &run.recording;
        let is_virtual = recording.time.virtual_time.is_some();
        // In virtual time nobody's clock goes on while messages are on their way.
        let clock: SharedClock = match is_virtual {
            true => plimsoll_conduct::RunTime::machine().clock,
            false => Arc::clone(&recording.time.clock),
        };
        let id = recording.manifest.run_id.clone();
        let observer = Arc::clone(&recording.observer);
        let way = (fabric, arrivals);
        let mut lead = Self::connect(way, recruits, id, (clock, observer), settings);
        lead.is_virtual = is_virtual;
        lead.assign(run)?;
        Ok(lead)
    }

    /// Returns a coordinator of these agents, which have been told nothing yet.
    fn connect(
        (fabric, arrivals): (Arc<dyn Fabric>, Arrivals),
        recruits: Vec<Recruit>,
        run: String,
        (clock, observer): (SharedClock, Arc<dyn Observer>),
        settings: FleetSettings,
    ) -> Self {
        let who = recruits.iter().map(|recruit| (recruit.id.clone(), recruit.incarnation));
        let machine =
            Coordinator::new(settings.coordinator, run.clone(), settings.limits, who, clock.now());
        let present = BTreeMap::new();
        let state = State { machine, losses: Vec::new(), present, is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let hearing = Hearing {
            shared: Arc::clone(&shared),
            fabric: Arc::clone(&fabric),
            clock: Arc::clone(&clock),
            observer: Arc::clone(&observer),
            names: recruits.iter().map(|recruit| recruit.name.clone()).collect(),
            own_names: recruits.iter().map(|recruit| recruit.about.name.clone()).collect(),
            arrivals,
        };
        let agent = |recruit: &Recruit| schema::Agent {
            name: recruit.name.clone(),
            id: recruit.id.as_str().to_owned(),
            version: recruit.about.version.clone(),
            machine: None,
            weight: recruit.about.weight,
            threads_count: 0,
            clock: Vec::new(),
            lost: None,
            rows_count: None,
            cpu_ns: Vec::new(),
            receipt: None,
            losses: Vec::new(),
        };
        Self {
            shared,
            fabric,
            clock,
            observer,
            settings,
            run,
            agents: recruits.iter().map(agent).collect(),
            recruits,
            outcomes: Vec::new(),
            stage: None,
            latest: Moment::EPOCH,
            is_virtual: false,
            offsets: Vec::new(),
            files: OnFiles::default(),
            jobs: Vec::new(),
            lasts: Vec::new(),
            pinned: Vec::new(),
            endpoints: 0,
            remarks: Vec::new(),
            ended: Vec::new(),
            hearing: Some(thread::spawn(move || hearing.run())),
        }
    }

    /// Has every agent carry a step out, and waits until that is done or nobody is left; it ends
    /// early once `is_stopped`.
    fn step(
        &mut self,
        order: impl FnMut(usize) -> Order,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), CallerError> {
        self.step_watched(order, is_stopped, None, &mut Blind)
    }

    /// The same; `watch` regularly sees what the agents report. After `planned_end`, where it is
    /// known, counters that grow are no reason to wait.
    fn step_watched(
        &mut self,
        order: impl FnMut(usize) -> Order,
        is_stopped: &dyn Fn() -> bool,
        planned_end: Option<Moment>,
        watch: &mut dyn Watching,
    ) -> Result<(), CallerError> {
        let todo = self.shared.state().machine.begin(self.clock.now(), planned_end, order);
        self.perform(todo);
        let (mut watched, mut ends) = (self.clock.now(), false);
        let mut state = self.shared.state();
        while !state.machine.is_step_over() {
            let now = self.clock.now();
            if now.since(watched) >= WATCH_EVERY {
                watched = now;
                watch.see(&state.machine);
                drop(state);
                ends |= watch.think();
                state = self.shared.state();
            }
            if ends || is_stopped() {
                let todo = state.machine.end_step(self.clock.now());
                perform(&mut state, &*self.fabric, todo, |_| {});
            }
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if self.hearing.as_ref().is_none_or(thread::JoinHandle::is_finished) {
                return Err("the connection to the fleet is gone".into());
            }
        }
        watch.see(&state.machine);
        Ok(())
    }

    fn perform(&self, todo: Vec<CoordinatorDo<Order>>) {
        let observer = &self.observer;
        let mut state = self.shared.state();
        perform(&mut state, &*self.fabric, todo, |news| {
            if let News::Lost(index, why) = news {
                observer.warn(&format!("agent {} is lost: {why}", self.agents[index].name));
            }
        });
    }

    /// Returns what each agent has answered to the step that is over; `None` of one that is lost.
    fn answers(&self) -> Vec<(usize, Option<Answer>)> {
        let state = self.shared.state();
        let answer = |standing: &Standing<Answer>| match standing {
            Standing::Done(answer) => Some(answer.clone()),
            Standing::Working | Standing::Lost(_) | Standing::Back => None,
        };
        let members = state.machine.members().iter().enumerate();
        members.map(|(index, member)| (index, answer(member.standing()))).collect()
    }

    /// Returns which agents are left.
    fn left(&self) -> Vec<usize> {
        let state = self.shared.state();
        let members = state.machine.members().iter().enumerate();
        let left = members.filter(|(_, member)| !matches!(member.standing(), Standing::Lost(_)));
        left.map(|(index, _)| index).collect()
    }

    /// Goes on without an agent that cannot.
    fn give_up(&self, index: usize, why: String) {
        // It may be the agent that says it.
        let why = why.chars().take(WHY_CHARS_MAX).collect();
        let todo = self.shared.state().machine.give_up(self.clock.now(), index, why);
        self.perform(todo);
    }

    /// Notes who was lost, and refuses to go on with too few.
    fn note_losses(&mut self) -> Result<(), CallerError> {
        let losses = self.shared.state().losses.clone();
        for (index, loss) in losses {
            let agent = &mut self.agents[index];
            if agent.lost.is_none() && loss.why != LossReason::Dismissed {
                agent.lost = Some(AgentLoss {
                    at_ns: loss.at.as_ns(),
                    heard_ns: loss.heard.as_ns(),
                    stage_index: self.stage,
                    why: in_words(&loss),
                });
            }
        }
        let (left, least) = (self.left().len(), self.settings.agents_min.max(1));
        if left < least {
            let of = self.agents.len();
            return Err(format!(
                "{left} of {of} agents are left, and the run needs {least}; `plimsoll fleet \
                 collect` adds to its record what those that come back have kept"
            )
            .into());
        }
        Ok(())
    }

    /// Returns how many bytes one agent may send of what it changed. The changes of all agents go
    /// out in one content, of which an agent may fill twice its share of the load.
    fn changes_bytes_max(&self, index: usize) -> u64 {
        let weight = |agent: &schema::Agent| u64::from(agent.weight);
        let all: u64 = self.agents.iter().map(weight).sum();
        let own = 2 * weight(&self.agents[index]);
        let bytes = u128::from(KEPT_BYTES_MAX) * u128::from(own) / u128::from(all.max(1));
        (bytes as u64).clamp(CHANGES_BYTES_MIN, KEPT_BYTES_MAX)
    }

    /// Adds up what came of a stage.
    fn add_up(
        &mut self,
        stage: &DirectedStage<'_>,
        offsets: &[Offset],
        bounds: StageBounds,
        is_possible: &dyn Fn(&Changes, u64) -> bool,
    ) -> Result<(StageOutcome, Changes), CallerError> {
        let mut all: Option<StageOutcome> = None;
        let mut changed = Changes::default();
        let mut parts: Vec<Option<PartOutcome>> = Vec::new();
        let mut on_files: Vec<FilesStage> = Vec::new();
        let mut evidence = Vec::new();
        for (index, answer) in self.answers() {
            parts.push(None);
            let (doc, changes, now_ns, files, seen) = match answer {
                Some(Answer::Ended { outcome, changes, now_ns, files, evidence }) => {
                    (outcome, changes, now_ns, files, evidence)
                }
                Some(Answer::Failed { why }) => {
                    self.give_up(index, why);
                    continue;
                }
                Some(_) => {
                    self.give_up(index, "it answers something else".to_owned());
                    continue;
                }
                None => continue,
            };
            let offset = offsets[index];
            let space = Space::Of(self.recruits[index].id.clone());
            let own = fetch(&*self.fabric, &space, changes, self.changes_bytes_max(index));
            let own = own.map_err(|error| in_one_line(&error)).and_then(|own| {
                let ops_max = doc.ops_count().saturating_add(UNENDED_MAX);
                let own = own.changes(stage.sets_count);
                let own = own.filter(|own| is_possible(own, ops_max));
                own.ok_or_else(|| "what it says that it changed means nothing".to_owned())
            });
            let fits = doc.fits(bounds) && are_bounded(&(&files, &seen));
            let outcome = fits.then(|| doc.outcome(offset.into()));
            let outcome = outcome.filter(|outcome| bounds.hold(outcome, offset));
            let outcome =
                outcome.ok_or_else(|| "what it says of the stage means nothing".to_owned());
            let (outcome, own) = match outcome.and_then(|outcome| Ok((outcome, own?))) {
                Ok(both) => both,
                Err(why) => {
                    self.give_up(index, why);
                    continue;
                }
            };
            changed.append(own);
            on_files.extend(files.map(|files| *files));
            evidence.extend(files::evidence(&self.recruits[index].name, seen));
            self.latest = self.latest.max(Moment::from_ns(now_ns));
            match &mut all {
                Some(all) => all.merge(outcome),
                None => all = Some(outcome),
            }
            parts[index] = Some(PartOutcome { doc, clock: offset.into(), is_told: true });
        }
        let number = usize::from(stage.number.0);
        while self.outcomes.len() <= number {
            self.outcomes.push(Vec::new());
        }
        self.outcomes[number] = parts;
        self.note_losses()?;
        self.files.evidence = evidence;
        self.files.stage = FilesStage::sum(&on_files.iter().collect::<Vec<_>>());
        Ok((all.ok_or("no agent has ended the stage")?, changed))
    }

    /// Says which agents stood out in a stage, now and in the record.
    /// `weighed` tells whether each has as many of the workers as its weight says.
    fn remark(&mut self, name: &str, number: u8, weighed: bool) {
        let parts = self.outcomes[usize::from(number)].iter().zip(&self.agents);
        let outcomes: Vec<_> = parts
            .filter_map(|(part, agent)| {
                let part = part.as_ref()?;
                Some((agent, part.doc.outcome(part.clock)))
            })
            .collect();
        let parts = outcomes.iter().map(|(agent, outcome)| remarks::Part {
            name: &agent.name,
            weight: if weighed { agent.weight } else { 0 },
            took: outcome.ended.since(outcome.started),
            began_late_by: outcome.began_late_by,
            cpu_time: outcome.cpu_time,
            cores: agent.machine.as_ref().and_then(|of| of.cores_count).unwrap_or(1),
            ops: outcome.ops_count,
            scheduled: outcome.schedule.map(|of| (of.offered_count, of.late_count)),
        });
        let said = remarks::remarks(name, &parts.collect::<Vec<_>>());
        said.iter().for_each(|text| self.observer.warn(text));
        self.remarks.extend(said);
    }

    fn dismiss(&mut self) {
        let Some(hearing) = self.hearing.take() else { return };
        let todo = self.shared.state().machine.dismiss(self.clock.now());
        self.perform(todo);
        self.shared.state().is_over = true;
        let _ = hearing.join();
        // What was kept for all of them; what is left after an error does no harm.
        let _ = self.fabric.remove(&Space::Shared, &self.run);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Agents for Lead {
    fn threads_count(&self) -> usize {
        let threads = self.agents.iter().map(|agent| agent.threads_count.max(1) as usize);
        threads.sum()
    }

    fn shares(&self) -> Vec<Share> {
        let weights: Vec<u32> = self.agents.iter().map(|agent| agent.weight).collect();
        Share::by_weight(&weights).unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.name.clone()).collect()
    }

    fn prepare(
        &mut self,
        stage: &DirectedStage<'_>,
        stop: &StopFlag,
    ) -> Result<Option<FilesReady>, CallerError> {
        self.stage = Some(stage.number.0);
        let name = format!("{}/before-{}", self.run, stage.number.0);
        let before = ChangesDoc::of(stage.before);
        let before = hold(&*self.fabric, &Space::Shared, name, before)?;
        let order = StageOrder {
            stage: stage.chosen.stage,
            name: stage.chosen.name.clone(),
            ops: stage.chosen.ops,
            pacing: stage.chosen.pacing.as_ref().map(|(job, pacing)| (*job, pacing.spec())),
            probe: stage.chosen.probe.as_ref().map(ProbeDoc::of),
            before,
        };
        self.step(|_| Order::Stage(Box::new(order.clone())), &|| stop.is_set())?;
        let mut told = Vec::new();
        for (index, answer) in self.answers() {
            match answer {
                Some(Answer::Ready { files }) => told.extend(files.map(FilesReadyDoc::ready)),
                None => {}
                Some(Answer::Failed { why }) => self.give_up(index, why),
                Some(_) => self.give_up(index, "it answers something else".to_owned()),
            }
        }
        self.note_losses()?;
        self.offsets = self.measure();
        self.note_losses()?;
        Ok(self.ready(told))
    }

    fn note(&self, manifest: &mut schema::Manifest) {
        manifest.agents.clone_from(&self.agents);
        let targets = std::iter::once(&mut manifest.target).chain(&mut manifest.more_targets);
        for (target, found) in targets.zip(&self.files.targets) {
            if found.is_some() {
                target.files.clone_from(found);
            }
        }
    }

    fn note_end(&self, entry: &mut schema::Stage) {
        self.files.note_end(entry);
    }

    fn run(
        &mut self,
        stage: &DirectedStage<'_>,
        context: &StageContext<'_>,
        rules: Option<&StageRules>,
        is_possible: &dyn Fn(&Changes, u64) -> bool,
    ) -> Result<(StageOutcome, Changes), CallerError> {
        let (asked, begins, offsets) = (self.clock.now(), self.begins(), self.offsets.clone());
        let at = |index: usize| Order::Start { at_ns: offsets[index].to_agent(begins).as_ns() };
        let parts = self.recruits.iter().map(|of| PartTold::by(Space::Of(of.id.clone())));
        let judge = rules.map(|rules| Judge {
            rules,
            fabric: Arc::clone(&self.fabric),
            parts: parts.collect(),
            verdict: None,
        });
        context.live.begin(begins);
        let (number, live, names) = (stage.number.0.into(), context.live, self.names());
        let mut watch = StageWatch { stage: number, live, judge, names };
        let lasts = match &stage.chosen.probe {
            Some(probe) => Some(probe.asked.lasts),
            None => self.lasts.get(stage.chosen.stage).copied().flatten(),
        };
        let planned_end = lasts.map(|lasts| begins.after(lasts));
        self.step_watched(at, &|| context.stop.is_set(), planned_end, &mut watch)?;
        let verdict = watch.judge.and_then(|judge| judge.verdict);
        let bounds = StageBounds {
            jobs: self.jobs.get(stage.chosen.stage).copied().unwrap_or(0),
            endpoints: self.endpoints,
            seconds: self.clock.now().since(asked).as_secs() + 1,
            slos: stage.chosen.probe.as_ref().map(|probe| probe.asked.slos.len()),
            within: context.virtual_time.is_none().then(|| (begins, self.clock.now())),
        };
        let (mut outcome, changed) = self.add_up(stage, &offsets, bounds, is_possible)?;
        match verdict {
            _ if context.stop.is_set() => outcome.ended_by = EndReason::Stopped,
            // Agents were told to stop, and not why.
            Some((reason, because)) if outcome.ended_by == EndReason::Stopped => {
                ended_by(&mut outcome, reason, Some(because.clone()));
                self.ended.push(StageEndDoc::of(stage.number, reason, because));
            }
            _ => {}
        }
        let weighed = !self.pinned.get(stage.chosen.stage).copied().unwrap_or(false);
        self.remark(stage.name, stage.number.0, weighed);
        if let Some(time) = context.virtual_time {
            time.pass_until(self.latest);
        }
        Ok((outcome, changed))
    }

    fn gather(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), CallerError> {
        let gathered = self.gather_all(recording, sink, done);
        recording.manifest.agents.clone_from(&self.agents);
        gathered
    }

    fn clean_files(&mut self, recording: &Recording) -> (Cleanup, bool) {
        self.have_files_removed(recording)
    }
}
