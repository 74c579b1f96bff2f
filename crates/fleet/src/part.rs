//! An agent's part of a run, from its assignment to its record.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use plimsoll_conduct::{
    BegunRun, CallerError, Changes, Chooser, Chosen, ContentFrom, Crew, Done, FilesPart,
    FilesReady, FilesRun, Observer, Reached, RunRequest, RunSettings, RunTime, Scripted, Stop,
    Targets, machine,
};
use plimsoll_model::{Moment, RunId, Seed};
use plimsoll_record::schema;
use plimsoll_record::{Lease, OpLog, RunDirectory, RunFile};
use plimsoll_workload::Share;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{FieldPath, InvalidField, JobPacing, Plan, Target, WorkloadFile};
use serde_json::Value;
use thiserror::Error;

use crate::content::receive;
use crate::contents::{ContentError, KEPT_BYTES_MAX, fetch, hold};
use crate::fabric::{Fabric, Space, is_word};
use crate::protocol::{AgentId, MachineState, Place};
use crate::station::Input;
use crate::wire::{
    Answer, Assignment, ChangesDoc, ConductDoc, FilesReadyDoc, HandedFiles, Held, Order,
    OutcomeDoc, ProbeDoc, StageEndDoc, StageOrder, found_from,
};

/// Where an agent works: what its owner allows, its time, how it reaches targets.
pub trait Workplace: Send + Sync {
    /// Returns the time of a run that begins now; its clock is the agent's.
    fn time(&self) -> RunTime;

    /// Refuses what the owner of the machine does not allow, for that many of the workers; `access`
    /// as below.
    fn judge(&self, plan: &Plan, share: Share, access: &Value) -> Result<(), CallerError>;

    /// Opens the targets of a plan; `access` is what the coordinator says of how they are reached.
    fn targets(
        &self,
        plan: &Plan,
        access: &Value,
        seed: Seed,
        time: &RunTime,
    ) -> Result<Targets, CallerError>;

    /// Returns how operations are driven here, of a run on files in this part of it.
    fn settings(&self, conduct: &ConductDoc, part: FilesPart) -> Result<RunSettings, CallerError>;

    /// Returns what lies at a path of this machine.
    fn look(&self, path: &str) -> Place {
        let trouble = Some(format!("{path} is unchecked"));
        Place { trouble, ..Place::default() }
    }

    /// Returns how this machine stands.
    fn machine(&self) -> Option<MachineState> {
        None
    }

    /// Returns where the record of a part is kept until the coordinator has it.
    fn record_of(&self, run: &RunId, part: usize) -> PathBuf;

    /// Makes a part that the coordinator has a record of this place's own, which is not kept for
    /// anybody, and returns where it is now.
    fn settle(&self, part: RunDirectory) -> Result<PathBuf, CallerError>;

    /// Returns the runs of which parts are kept that no coordinator has, and where.
    fn kept(&self) -> Vec<(String, PathBuf)> {
        Vec::new()
    }
}

/// How a part ended.
#[derive(Debug)]
pub struct PartEnd {
    /// Of which run.
    pub run: String,
    /// Where its record lies, where nobody has confirmed to have it.
    pub kept: Option<PathBuf>,
    /// Where it lies as a record of the agent's own, which the coordinator has, too.
    pub stays: Option<PathBuf>,
}

/// Nobody waits for the part any longer.
#[derive(Debug, Error)]
#[error("the coordinator has let this agent go")]
struct LetGo;

/// A step that does not follow the one before.
const OUT_OF_ORDER: &str = "the coordinator wants something else than it said";

/// The way between a part and the agent that it is of.
pub(crate) struct Link {
    pub(crate) run: String,
    /// What the names begin with of all that the agent keeps in its space: nobody but the
    /// coordinator knows it.
    pub(crate) below: String,
    pub(crate) agent: AgentId,
    pub(crate) orders: Receiver<(u32, Order)>,
    pub(crate) inputs: Sender<Input>,
    pub(crate) fabric: Arc<dyn Fabric>,
    pub(crate) stop: Stop,
}

impl Link {
    fn next(&self) -> Result<(u32, Order), LetGo> {
        self.orders.recv().map_err(|_| LetGo)
    }

    fn answer(&self, step: u32, answer: Answer) {
        let run = self.run.clone();
        // An agent that has ended needs no answer.
        let _ = self.inputs.send(Input::Answered { run, step, answer: Box::new(answer) });
    }

    fn hold<T: serde::Serialize>(&self, what: &str, content: T) -> Result<Held<T>, ContentError> {
        let space = Space::Of(self.agent.clone());
        hold(&*self.fabric, &space, format!("{}/{what}", self.below), content)
    }

    fn fetch<T: serde::de::DeserializeOwned>(&self, held: Held<T>) -> Result<T, ContentError> {
        fetch(&*self.fabric, &Space::Shared, held, KEPT_BYTES_MAX)
    }
}

/// Carries a part out, step by step, and tells the agent how it ended.
pub(crate) fn carry_out(link: Link, workplace: &Arc<dyn Workplace>, observer: Arc<dyn Observer>) {
    let (run, inputs) = (link.run.clone(), link.inputs.clone());
    let part = Part { link, step: 0 };
    let carried = catch_unwind(AssertUnwindSafe(|| part.run(workplace, observer)));
    let Left { kept, stays } = carried.unwrap_or_else(|_| {
        // A defect of this program: the agent leaves the run and keeps what was recorded.
        let kept = workplace.kept().into_iter().find(|(kept, _)| *kept == run);
        Left { kept: kept.map(|(_, path)| path), stays: None }
    });
    let _ = inputs.send(Input::Over(PartEnd { run, kept, stays }));
}

/// Where the record of a part lies that is over.
#[derive(Default)]
struct Left {
    kept: Option<PathBuf>,
    stays: Option<PathBuf>,
}

impl Left {
    /// Returns where it lies that was at `path` and was then to be handed over.
    fn of(path: PathBuf, handed: Result<Option<PathBuf>, CallerError>) -> Self {
        match handed {
            Ok(stays) => Self { kept: None, stays },
            Err(_) => Self { kept: Some(path), stays: None },
        }
    }
}

struct Part {
    link: Link,
    /// The step under way.
    step: u32,
}

/// A part that is made ready.
struct Opened {
    begun: BegunRun,
    allowed: Allowed,
    /// What was opened for the targets, for as long as they are used.
    targets: (Vec<Reached>, Vec<Scripted>),
}

/// What the owner of the machine was asked for a run, and has allowed.
struct Allowed {
    workplace: Arc<dyn Workplace>,
    plan: Arc<Plan>,
    share: Share,
    access: Value,
}

impl Allowed {
    /// Refuses a stage that is ordered otherwise than the plan says, where the owner does not allow
    /// that.
    fn check(&self, chosen: &Chosen) -> Result<(), CallerError> {
        let plan = chosen.in_plan(&self.plan).ok_or("there is no such stage or job")?;
        self.workplace.judge(&plan, self.share, &self.access)
    }
}

impl Part {
    fn run(mut self, workplace: &Arc<dyn Workplace>, observer: Arc<dyn Observer>) -> Left {
        let Ok((step, order)) = self.link.next() else { return Left::default() };
        self.step = step;
        let assignment = match order {
            Order::Open(assignment) => assignment,
            Order::Collect => return self.collect(&**workplace),
            _ => {
                self.fail(&*CallerError::from(OUT_OF_ORDER));
                return Left::default();
            }
        };
        match self.open(*assignment, workplace, observer) {
            Ok((opened, answer)) => {
                self.link.answer(step, answer);
                let path = opened.begun.recording.directory.path().to_path_buf();
                Left::of(path, self.stages(opened))
            }
            Err(error) => {
                self.fail(&*error);
                Left::default()
            }
        }
    }

    /// Says why the part cannot go on, and waits until the coordinator lets the agent go.
    fn fail(&self, error: &(dyn std::error::Error + 'static)) {
        let why = plimsoll_conduct::in_one_line(error);
        self.link.answer(self.step, Answer::Failed { why: why.clone() });
        while let Ok((step, _)) = self.link.next() {
            self.link.answer(step, Answer::Failed { why: why.clone() });
        }
    }

    fn open(
        &self,
        assignment: Assignment,
        workplace: &Arc<dyn Workplace>,
        observer: Arc<dyn Observer>,
    ) -> Result<(Opened, Answer), CallerError> {
        if !is_word(&assignment.receipt) {
            return Err("the receipt of the part means nothing".into());
        }
        let share = assignment.share().ok_or("the shares of the agents mean nothing")?;
        let workload: Value = self.link.fetch(assignment.workload)?;
        let file: WorkloadFile = serde_json::from_value(workload)?;
        let mut plan = file.check()?;
        let names = assignment.names.iter().map(String::as_str);
        let agents: Vec<_> = names.zip(assignment.weights.iter().copied()).collect();
        plan.pin(&agents)?;
        let (plan, access) = (Arc::new(plan), assignment.access);
        refuse_scripts(&plan)?;
        workplace.judge(&plan, share, &access)?;
        let (time, seed) = (workplace.time(), Seed(assignment.seed));
        let targets = workplace.targets(&plan, &access, seed, &time)?;
        let Targets { all, stores, scripted } = targets;
        let found = found_from(self.link.fetch(assignment.found)?);
        let (number, count) = (assignment.part, assignment.weights.len());
        let settings =
            workplace.settings(&assignment.conduct, FilesPart { share, number, count })?;
        let threads = settings.engine.threads;
        let id = RunId::parse(&self.link.run)?;
        let path = workplace.record_of(&id, assignment.part);
        let content = ContentFrom::Here(receive(&*self.link.fabric, assignment.content)?);
        let workplace = Arc::clone(workplace);
        let allowed = Allowed { workplace, plan: Arc::clone(&plan), share, access };
        let request = RunRequest { plan, seed, id, time, targets: all, settings, content };
        let open = request.lay_out()?;
        let mut manifest = open.manifest(Vec::new(), Default::default(), None);
        manifest.receipt = Some(assignment.receipt);
        let endpoints = manifest.endpoints().cloned().collect();
        let machine = serde_json::to_value(machine::describe())?;
        let files = manifest.targets().map(|target| target.files.clone()).collect();
        let directory = RunDirectory::create(&path, &manifest)?;
        let stop = self.link.stop.clone();
        let begun = open.begin_part(directory, manifest, observer, stop, &found)?;
        let answer = Answer::Opened { threads, endpoints, machine, files };
        Ok((Opened { begun, allowed, targets: (stores, scripted) }, answer))
    }

    /// Carries the stages out, hands the record in, and returns where it stays, if it does.
    fn stages(self, opened: Opened) -> Result<Option<PathBuf>, CallerError> {
        let Opened { mut begun, allowed, targets } = opened;
        let (share, workplace) = (allowed.share, Arc::clone(&allowed.workplace));
        let clock = Arc::clone(&begun.recording.time.clock);
        let directed = Directed {
            part: self,
            allowed,
            clock,
            next: None,
            refused: None,
            has_begun: false,
            ended: Vec::new(),
        };
        let directed = Rc::new(RefCell::new(directed));
        let of_crew = Rc::clone(&directed);
        begun.divide(Box::new(PartCrew { share, directed: of_crew }));
        let of_chooser = Rc::clone(&directed);
        let choose: Chooser<'_> = Box::new(move |_, _| of_chooser.borrow_mut().choose());
        let done = begun.run(None, Some(choose));
        let done = match directed.borrow_mut().refused.take() {
            Some(refused) => Err(refused),
            None => done.map_err(CallerError::from),
        };
        let settled = done.and_then(|mut recorded| {
            let manifest = &mut begun.recording.manifest;
            for end in &directed.borrow().ended {
                end.note(&mut recorded.stages, &mut manifest.stages);
            }
            Ok(begun.recording.settle_measured(&recorded)?)
        });
        let Directed { part, has_begun, .. } =
            Rc::into_inner(directed).expect("the run is over").into_inner();
        let (directory, files) = (begun.recording.directory.clone(), begun.take_files());
        // Connections end before the record is read.
        drop((begun, targets));
        match settled {
            Ok(()) => part.hand_over(directory, Vec::new(), files, &*workplace),
            Err(error) if has_begun => {
                part.fail(&*error);
                Err(error)
            }
            Err(error) => {
                // Nothing was written or recorded yet, so nobody will ask for it; what another one
                // removes at once is gone as well.
                let _ = files.map(|files| files.sweep(&|| false));
                let _ = directory.discard();
                part.fail(&*error);
                Ok(None)
            }
        }
    }

    /// Hands in what was kept of a run.
    fn collect(mut self, workplace: &dyn Workplace) -> Left {
        let run = self.link.run.clone();
        let found = workplace.kept().into_iter().find(|(kept, _)| *kept == run);
        let Some((_, path)) = found else {
            self.fail(&*CallerError::from("it keeps no part of that run"));
            return Left::default();
        };
        let handed = match opened_again(&path) {
            Ok((directory, receipt, losses, _lease)) => {
                self.link.below = receipt;
                self.hand_over(directory, losses, None, workplace)
            }
            Err(error) => {
                self.fail(&*error);
                Err(error)
            }
        };
        Left::of(path, handed)
    }

    /// Has the fabric keep the record until the coordinator has it, and forgets it then, or returns
    /// where it stays. Files are removed when the coordinator says so.
    fn hand_over(
        mut self,
        directory: RunDirectory,
        losses: Vec<String>,
        files: Option<FilesRun>,
        workplace: &dyn Workplace,
    ) -> Result<Option<PathBuf>, CallerError> {
        let space = Space::Of(self.link.agent.clone());
        let keep = || -> Result<Held<HandedFiles>, CallerError> {
            let keep = |RunFile { name, .. }| {
                let path = format!("{}/{name}", self.link.below);
                let kept = self.link.fabric.put(&space, &path, &mut directory.open_file(&name)?)?;
                Ok((name, kept))
            };
            let files = directory.files()?.into_iter().map(keep);
            let files = files.collect::<Result<HandedFiles, CallerError>>()?;
            Ok(self.link.hold("files", files)?)
        };
        match keep() {
            Ok(files) => self.link.answer(self.step, Answer::HandedIn { files, losses }),
            Err(error) => {
                self.fail(&*error);
                return Err(error);
            }
        }
        let (step, order) = self.link.next()?;
        self.step = step;
        let done = match order {
            Order::Forget { stays: true } => workplace.settle(directory).map(Some),
            Order::Forget { stays: false } => {
                directory.forget().map(|()| None).map_err(CallerError::from)
            }
            _ => Err(OUT_OF_ORDER.into()),
        };
        match &done {
            Ok(_) => {
                self.link.answer(step, Answer::Forgotten);
                self.clean(files.as_ref());
            }
            Err(error) => self.fail(&**error),
        }
        done
    }

    /// Removes files when the coordinator says so, until it lets the agent go.
    fn clean(&self, files: Option<&FilesRun>) {
        while let Ok((step, order)) = self.link.next() {
            let swept = match (order, files) {
                (Order::Clean { sweeps: true }, Some(files)) => self.sweep(files),
                (Order::Clean { .. }, _) => Ok(0),
                _ => Err(OUT_OF_ORDER.to_owned()),
            };
            let answer = match swept {
                Ok(files_count) => Answer::Cleaned { files_count },
                Err(why) => Answer::Failed { why },
            };
            self.link.answer(step, answer);
        }
    }

    fn sweep(&self, files: &FilesRun) -> Result<u64, String> {
        let stop = &self.link.stop;
        stop.begin_stage();
        let swept = files.sweep(&|| stop.flag().is_set());
        swept.map_err(|error| plimsoll_conduct::in_one_line(&error))
    }
}

/// Opens the record of a part that nobody writes any more, with its receipt and with what is
/// missing of it, a sentence each; nobody else changes it as long as the lease is held.
fn opened_again(path: &Path) -> Result<(RunDirectory, String, Vec<String>, Lease), CallerError> {
    let lease = Lease::try_take(path)?.ok_or("another process of this machine works on it")?;
    let directory = RunDirectory::open(path)?;
    let mut losses = directory.close_saved_parts()?;
    let manifest = directory.read_manifest()?;
    let receipt = manifest.receipt.filter(|receipt| is_word(receipt));
    let receipt = receipt.ok_or("it is no part of a run: it has no receipt")?;
    let recorded = manifest.recorder.map_or(0, |recorder| recorder.rows_count);
    let rows = OpLog::open(&directory)?.scan(&mut |_| {})?;
    // The last parts leave no gap.
    if let Some(missing) = recorded.checked_sub(rows).filter(|missing| *missing > 0) {
        losses.push(format!("{missing} of {recorded} operations are missing"));
    }
    Ok((directory, receipt, losses, lease))
}

/// Refuses targets that a script describes, which lies in a file: an agent opens none that a
/// coordinator names.
fn refuse_scripts(plan: &Plan) -> Result<(), CallerError> {
    let is_scripted = |target: &Target| matches!(target.spec, Some(TargetSpec::Oracle(_)));
    match plan.targets.iter().any(is_scripted) {
        true => Err("an oracle of the workload lives where agents do not reach it".into()),
        false => Ok(()),
    }
}

/// What a coordinator has a part do.
struct Directed {
    part: Part,
    allowed: Allowed,
    clock: plimsoll_model::SharedClock,
    /// The stage that comes next, once that is known; `None` inside: there is none.
    next: Option<Option<Chosen>>,
    /// Why the first stage is not begun.
    refused: Option<CallerError>,
    /// Whether any stage has begun.
    has_begun: bool,
    /// Why stages ended that this agent was told to end.
    ended: Vec<StageEndDoc>,
}

impl Directed {
    /// Waits for the next stage, and returns what the one before has changed in all parts.
    fn hear(&mut self) -> Result<Changes, CallerError> {
        let (step, order) = self.part.link.next()?;
        self.part.step = step;
        match order {
            Order::Stage(order) => {
                let StageOrder { stage, name, ops, pacing, probe, before } = *order;
                let before: ChangesDoc = self.part.link.fetch(before)?;
                let paced = |(job, pacing)| {
                    let path = FieldPath::root().field("pacing");
                    Ok::<_, InvalidField>((job, JobPacing::of(&path, &pacing)?))
                };
                let pacing = pacing.map(paced).transpose()?;
                let probe = probe.map(ProbeDoc::probe);
                let chosen = Chosen { stage, name, pacing, ops, probe };
                self.allowed.check(&chosen)?;
                self.next = Some(Some(chosen));
                let changes = before.changes(self.allowed.plan.sets.len());
                Ok(changes.ok_or("what the stage before has changed means nothing")?)
            }
            Order::HandIn { ended } => {
                self.ended = ended;
                self.next = Some(None);
                Ok(Changes::default())
            }
            Order::Open(_)
            | Order::Start { .. }
            | Order::Forget { .. }
            | Order::Collect
            | Order::Clean { .. } => Err(OUT_OF_ORDER.into()),
        }
    }

    fn choose(&mut self) -> Option<Chosen> {
        if self.next.is_none() {
            self.refused = self.hear().err();
        }
        self.next.take().flatten()
    }
}

/// The part that this process has in a run, while it is carried out.
struct PartCrew {
    share: Share,
    directed: Rc<RefCell<Directed>>,
}

impl Crew for PartCrew {
    fn share(&self) -> Share {
        self.share
    }

    fn await_start(&mut self, files: Option<FilesReady>) -> Result<Option<Moment>, CallerError> {
        let mut directed = self.directed.borrow_mut();
        let Directed { part, has_begun, .. } = &mut *directed;
        part.link.stop.begin_stage();
        part.link.answer(part.step, Answer::Ready { files: files.map(FilesReadyDoc::of) });
        let (step, order) = part.link.next()?;
        part.step = step;
        match order {
            Order::Start { at_ns } => {
                *has_begun = true;
                Ok(Some(Moment::from_ns(at_ns)))
            }
            _ => Err(OUT_OF_ORDER.into()),
        }
    }

    fn exchange(
        &mut self,
        own: &Done,
        changes: Changes,
        entry: &schema::Stage,
    ) -> Result<Changes, CallerError> {
        let mut directed = self.directed.borrow_mut();
        let changes = ChangesDoc::of(&changes);
        let changes = directed.part.link.hold(&format!("changes-{}", own.stage.0), changes)?;
        let outcome = Box::new(OutcomeDoc::of(&own.outcome));
        let now_ns = directed.clock.now().as_ns();
        let step = directed.part.step;
        let files = entry.files.clone().map(Box::new);
        let evidence = entry.evidence.clone();
        let ended = Answer::Ended { outcome, changes, now_ns, files, evidence };
        directed.part.link.answer(step, ended);
        directed.hear()
    }

    fn is_directed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_conduct::{Opening, of_workload};
    use plimsoll_model::TargetKind;
    use plimsoll_record::schema::{Recorder, Target};

    use super::*;

    #[test]
    fn what_is_gone_of_a_kept_part_is_said() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("part");
        let time = RunTime::simulated();
        let id = RunId::new("kept", time.wall_epoch, 1);
        let opening = Opening::of_nobody(&id, Target::bare(TargetKind::Null, Vec::new()), &time);
        let mut manifest = of_workload(opening, Value::Null, 1);
        manifest.recorder = Some(Recorder { rows_count: 3, parts_count: 1, wait_ns: 0 });
        manifest.receipt = Some("r1".to_owned());
        let directory = RunDirectory::create(&path, &manifest).unwrap();
        let busy = opened_again(&path).err().unwrap().to_string();
        assert_eq!(busy, "another process of this machine works on it");
        drop(directory);
        let (_, receipt, losses, _lease) = opened_again(&path).unwrap();
        assert_eq!(receipt, "r1");
        assert_eq!(losses, ["3 of 3 operations are missing"]);
    }
}
