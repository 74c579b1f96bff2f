//! A workload of COSBench as a workload of ours: stages, jobs, sets, targets, and a note of every
//! meaning that changes.

mod mix;
mod sets;
mod traps;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_workload::plan::spec::{
    Arrivals, BucketsSpec, CappedEach, DealBy, DealSpec, FillSpec, JobSpec, Limit, Named,
    OneOrMany, PacingSpec, RemoveSpec, StageSpec, TargetSpec, Targets, WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{
    Cap, InvalidField, Percent, Rate, Secrets, Segment, Size, TargetSecrets, Time, WorkloadFile,
};

use self::sets::Sets;
use super::check::{self, Act, Scan, ScanKind, Understood};
use super::corrections::{self, Correction};
use super::error::{Notes, Place, Refused};
use super::model::{Stage, Work, WorkKind, Workload};
use super::selector::Selector;
use super::storage::{self, Reached};

/// The attributes and keys that stand for fields of a workload.
pub const WORDS: [(&str, &str); 20] = [
    ("workers", "`workers`"),
    ("duration", "`runtime`"),
    ("ramp", "`rampup`"),
    ("ramp_down", "`rampdown`"),
    ("ops", "`totalOps`"),
    ("bytes", "`totalBytes`"),
    ("max_error_rate", "`afr`"),
    ("agent", "`driver`"),
    ("deal", "`division`"),
    ("pacing", "`maxIOPS`, `maxBW`"),
    ("weight", "`ratio`"),
    ("size", "`sizes`"),
    ("bucket", "`containers`"),
    ("buckets", "`containers`"),
    ("key", "`objects`"),
    ("keys", "`objects`"),
    ("files", "`files`"),
    ("part", "`part_size`"),
    ("hosts", "`endpoint`"),
    ("auth", "`auth_url`"),
];

/// What is asked for beside the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Fixes every choice.
    pub seed: Option<u64>,
    /// The drivers that there are, where that is known: work that is to run on another one is taken
    /// as if it named none.
    pub drivers: Option<Vec<String>>,
}

/// A workload of COSBench as one of ours.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The workload.
    pub file: WorkloadFile,
    /// Who asks each target.
    pub secrets: TargetSecrets,
    /// What is passed over, or means something else here, a sentence each.
    pub notes: Vec<String>,
    /// What COSBench does wrong with such a workload, and what is done instead.
    pub corrections: Vec<Correction>,
    /// The buckets that it writes to, makes or removes.
    pub touched: Vec<Touched>,
    /// What the stages of the workload are in terms of COSBench's, in their order.
    pub stages: Vec<LoweredStage>,
    /// Where the operation stands that each set was first needed for.
    set_places: BTreeMap<String, Place>,
}

impl Lowered {
    /// Returns the refusal of what the workload came to in words of the workload, with the place in
    /// it.
    pub fn refusal(&self, workload: &Workload, refused: &InvalidField) -> Refused {
        let place = match refused.path.segments() {
            [Segment::Field(of), Segment::Index(stage), below @ ..] if of == "stages" => {
                self.stages.get(*stage).and_then(|lowered| {
                    let stage = workload.stages.get(lowered.stage)?;
                    let job = match below {
                        [Segment::Field(of), Segment::Index(job), ..] if of == "jobs" => Some(job),
                        _ => None,
                    };
                    let work = job.and_then(|job| stage.works.get(*lowered.works.get(*job)?));
                    Some(work.map_or(stage.place, |work| work.place))
                })
            }
            [Segment::Field(of), Segment::Field(set), ..] if of == "sets" => {
                self.set_places.get(&**set).copied()
            }
            _ => None,
        };
        Refused::new(place, crate::in_words(refused, &WORDS))
    }
}

/// Buckets that a workload writes to, makes or removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The target; the only one is called by its kind.
    pub target: String,
    /// The buckets, as a pattern: `ufs{1..2}`.
    pub buckets: String,
}

/// Which part of COSBench's workload a stage of ours is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredStage {
    /// The index of the stage in [`Workload::stages`].
    pub stage: usize,
    /// What of it.
    pub role: StageRole,
    /// The index in [`Stage::works`] of each job of ours.
    pub works: Vec<usize>,
}

/// What a stage of ours does of a stage of COSBench's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageRole {
    /// Makes the containers that a `prepare` asks for.
    MakeContainers,
    /// What it is for.
    Main,
    /// Removes the containers that a `cleanup` asks for.
    RemoveContainers,
    /// Waits when it is over (`closuredelay`), or only waits.
    Pause,
}

/// Returns a workload as one of ours.
pub fn lower(workload: &Workload, options: &Options) -> Result<Lowered, Refused> {
    let mut lowering = Lowering {
        workload,
        options,
        notes: Notes::default(),
        targets: Vec::new(),
        parts: Vec::new(),
        sets: Sets::default(),
        stages: Vec::new(),
        lowered: Vec::new(),
    };
    lowering.understand()?;
    traps::note(workload, &lowering.parts, &mut lowering.notes);
    lowering.choose_sets();
    for (index, stage) in workload.stages.iter().enumerate() {
        lowering.stage(index, stage)?;
    }
    match lowering.stages.is_empty() {
        true => Err(Refused::new(None, "nothing is left to be done: no stage does anything")),
        false => Ok(lowering.finish()),
    }
}

/// An operation with where it stands.
struct Part {
    stage: usize,
    work: usize,
    /// Of normal work its place among the operations.
    operation: usize,
    target: usize,
    understood: Understood,
    /// Its set.
    set: usize,
}

/// The jobs of a stage with the works that they are of: those before it, its own, those behind it.
#[derive(Default)]
struct StageJobs {
    makes: Vec<(usize, JobSpec)>,
    main: Vec<(usize, JobSpec)>,
    removes: Vec<(usize, JobSpec)>,
}

impl StageJobs {
    /// Has containers be made before all else is done, and removed behind it, where there is both
    /// in the stage: making, removing, or work on objects. Tells whether that was so.
    fn set_buckets_apart(&mut self) -> bool {
        let job = |work: &WorkSpec| match work {
            WorkSpec::Buckets(BucketsSpec::Make(_)) => 1,
            WorkSpec::Buckets(BucketsSpec::Remove(_)) => 2,
            _ => 0,
        };
        let is_alike = |pair: &[(usize, JobSpec)]| job(&pair[0].1.work) == job(&pair[1].1.work);
        if self.main.windows(2).all(is_alike) {
            return false;
        }
        for (work, spec) in std::mem::take(&mut self.main) {
            let to = match job(&spec.work) {
                1 => &mut self.makes,
                2 => &mut self.removes,
                _ => &mut self.main,
            };
            to.push((work, spec));
        }
        true
    }
}

struct Lowering<'a> {
    workload: &'a Workload,
    options: &'a Options,
    notes: Notes,
    targets: Vec<Reached>,
    parts: Vec<Part>,
    sets: Sets,
    stages: Vec<StageSpec>,
    lowered: Vec<LoweredStage>,
}

impl<'a> Lowering<'a> {
    /// Finds out what every operation means, and which targets there are.
    fn understand(&mut self) -> Result<(), Refused> {
        for (stage, of) in self.workload.stages.iter().enumerate() {
            for (index, work) in of.works.iter().enumerate() {
                if work.kind == WorkKind::Delay {
                    continue;
                }
                let reached = storage::reach(&work.storage, &work.auth)?;
                let known = self.targets.iter().position(|known| *known == reached);
                let target = known.unwrap_or_else(|| {
                    self.targets.push(reached);
                    self.targets.len() - 1
                });
                for (operation, written) in work.operations.iter().enumerate() {
                    // What there is to be said was said when it was read.
                    let understood = check::understand(work, written, &mut Notes::default())?;
                    let part = Part { stage, work: index, operation, target, understood, set: 0 };
                    self.parts.push(part);
                }
            }
        }
        Ok(())
    }

    /// Gives every operation its set: those that are written whole first, so that others find them.
    fn choose_sets(&mut self) {
        let rank = |act: &Act| match act {
            Act::Scan(Scan { sizes: Some(_), .. }) => 0,
            Act::Write(_) | Act::WriteFiles { .. } => 1,
            Act::Scan(Scan { kind: ScanKind::Cleanup, .. }) => 2,
            Act::Read { .. } | Act::Head { .. } | Act::Restore { .. } | Act::Delete { .. } => 3,
            Act::List { .. } | Act::ListAccount | Act::Scan(_) | Act::Pause => 4,
        };
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|part| rank(&self.parts[*part].understood.act));
        for index in order {
            let part = &self.parts[index];
            self.parts[index].set = self.sets.choose(part.target, &part.understood);
        }
    }

    /// Returns the operations of a work.
    fn parts_of(&self, stage: usize, work: usize) -> Vec<&Part> {
        let is_of = |part: &&Part| (part.stage, part.work) == (stage, work);
        self.parts.iter().filter(is_of).collect()
    }

    fn stage(&mut self, index: usize, stage: &'a Stage) -> Result<(), Refused> {
        let id = stage.id(index + 1);
        let mut jobs = StageJobs::default();
        for (number, work) in stage.works.iter().enumerate() {
            match work.kind {
                WorkKind::Delay if stage.is_delay() => {}
                WorkKind::Delay => {
                    let text = "delay work beside other work says nothing: closuredelay is waited \
                                when the stage is over";
                    self.notes.add(Some(work.place.line), text);
                }
                _ => self.work((index, number), work, &mut jobs)?,
            }
        }
        if jobs.set_buckets_apart() {
            let text = "containers are made before the other work of the stage begins, and removed \
                        when it has ended: COSBench does both beside it";
            self.notes.add(Some(stage.place.line), text);
        }
        self.push(index, StageRole::MakeContainers, &format!("{id}-make-containers"), jobs.makes);
        self.push(index, StageRole::Main, &id, jobs.main);
        self.push(
            index,
            StageRole::RemoveContainers,
            &format!("{id}-remove-containers"),
            jobs.removes,
        );
        let seconds = u64::from(stage.closure_delay_s);
        if seconds > 0 {
            let name = if stage.is_delay() { id } else { format!("{id}-closuredelay") };
            let duration = Some(Time(Duration::from_secs(seconds)));
            let pause = WorkStage { duration, ..WorkStage::of(&name, Vec::new()) };
            self.stages.push(StageSpec::Jobs(pause));
            let (role, works) = (StageRole::Pause, Vec::new());
            self.lowered.push(LoweredStage { stage: index, role, works });
        } else if stage.is_delay() {
            let text = format!("stage `{}` waits for nothing: it has no closuredelay", stage.name);
            self.notes.add(Some(stage.place.line), text);
        }
        Ok(())
    }

    /// Adds the jobs of a work, which is the `number`th of its stage.
    fn work(
        &self,
        (stage, number): (usize, usize),
        work: &Work,
        jobs: &mut StageJobs,
    ) -> Result<(), Refused> {
        let parts = self.parts_of(stage, number);
        let name = Some(format!("w{}-{}", number + 1, work.name));
        let of_work = |spec: JobSpec| (number, JobSpec { name: name.clone(), ..spec });
        let &[Part { understood: Understood { act: Act::Scan(scan), .. }, set, .. }] = &*parts
        else {
            let job = JobSpec { agent: self.agent(work), ..self.mixed_job(work, &parts)? };
            jobs.main.push(of_work(job));
            return Ok(());
        };
        let set = vec![Sets::name(*set)];
        let job_of = |spec| of_work(JobSpec::of(1, WorkSpec::Buckets(spec)));
        let make = || job_of(BucketsSpec::Make(OneOrMany(set.clone())));
        let remove = || job_of(BucketsSpec::Remove(OneOrMany(set.clone())));
        let has_objects = scan.objects != Selector::Nothing;
        if has_objects && scan.kind != ScanKind::Dispose {
            let job = self.scan_job(work, scan, set[0].clone());
            jobs.main.push(of_work(JobSpec { agent: self.agent(work), ..job }));
        }
        match scan.kind {
            ScanKind::Init if !has_objects => jobs.main.push(make()),
            ScanKind::Dispose => jobs.main.push(remove()),
            ScanKind::Init | ScanKind::Prepare if scan.with_containers => jobs.makes.push(make()),
            ScanKind::Cleanup if scan.with_containers => jobs.removes.push(remove()),
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, stage: usize, role: StageRole, name: &str, jobs: Vec<(usize, JobSpec)>) {
        let (works, jobs): (Vec<usize>, Vec<JobSpec>) = jobs.into_iter().unzip();
        if !jobs.is_empty() {
            self.stages.push(StageSpec::Jobs(WorkStage::of(name, jobs)));
            self.lowered.push(LoweredStage { stage, role, works });
        }
    }

    /// Returns the agent of a work: an unknown driver is none.
    fn agent(&self, work: &Work) -> Option<String> {
        let name = work.driver.as_ref()?;
        let known = self.options.drivers.as_ref();
        known.is_none_or(|known| known.contains(name)).then(|| name.clone())
    }

    /// Returns the job of a walk through all objects.
    fn scan_job(&self, work: &Work, scan: &Scan, set: String) -> JobSpec {
        let (spec, by) = match scan.kind {
            ScanKind::Init => (WorkSpec::Fill(FillSpec::of(vec![set])), DealBy::BucketSlices),
            ScanKind::Prepare => (WorkSpec::Fill(FillSpec::of(vec![set])), DealBy::MemberSlices),
            ScanKind::Cleanup | ScanKind::Dispose => {
                (WorkSpec::Remove(RemoveSpec::of(vec![set])), DealBy::MemberSlices)
            }
        };
        let mut job = JobSpec::of(work.workers, spec);
        job.deal = DealSpec { by, shift: 0 };
        job.max_error_rate = Some(error_rate(work));
        if work.iops_max.is_some() || work.bytes_per_sec_max.is_some() {
            job.pacing = pacing(work);
        }
        job
    }

    /// Returns the job of operations by ratio.
    fn mixed_job(&self, work: &Work, parts: &[&Part]) -> Result<JobSpec, Refused> {
        let mut specs = Vec::with_capacity(parts.len());
        for part in parts {
            let written = &work.operations[part.operation];
            specs.push(mix::op(&self.sets, part, written)?);
        }
        let moves = parts.iter().any(|part| part.understood.act.moves_bytes());
        if work.runtime_s == 0 && work.total_ops == 0 && !moves {
            let more = format!(
                "work `{}` would never end: nothing that it does moves a byte, so totalBytes is \
                 never reached; write runtime=\"30\" or totalOps",
                work.name
            );
            return Err(Refused::new(work.place, more));
        }
        let seconds = |seconds: u32| Time(Duration::from_secs(seconds.into()));
        let mut job = JobSpec::of(work.workers, WorkSpec::Objects(specs));
        if work.runtime_s > 0 {
            job.duration = Some(seconds(work.runtime_s));
            job.ramp = seconds(work.rampup_s);
            job.ramp_down = seconds(work.rampdown_s);
        }
        job.ops = (work.total_ops > 0).then(|| Limit::All(work.total_ops.into()));
        job.bytes = (work.total_bytes > 0).then_some(Limit::All(Size(work.total_bytes)));
        job.deal = DealSpec { by: mix::deal(work, parts)?, shift: 0 };
        job.max_error_rate = Some(error_rate(work));
        job.pacing = pacing(work);
        Ok(job)
    }

    fn finish(self) -> Lowered {
        let Self { workload, options, mut notes, targets, parts, sets, stages, lowered } = self;
        let names: Vec<String> = match &*targets {
            [one] => vec![one.spec.kind().to_owned()],
            many => (1..=many.len()).map(|number| format!("store-{number}")).collect(),
        };
        let touched = sets.touched(&names);
        let mut set_places = BTreeMap::new();
        for part in &parts {
            set_places.entry(Sets::name(part.set)).or_insert(part.understood.place);
        }
        let sets = sets.specs((targets.len() > 1).then_some(&*names));
        let (mut specs, mut secrets) = (Vec::new(), Vec::new());
        let is_chunked =
            |target| parts.iter().any(|part| part.target == target && part.understood.is_chunked);
        for (number, (name, target)) in names.into_iter().zip(targets).enumerate() {
            let target = chunked(target, is_chunked(number));
            if target.secrets != Secrets::default() {
                secrets.push((name.clone(), target.secrets));
            }
            specs.push((name, target.spec));
        }
        if let Some(known) = &options.drivers {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            workload.unknown_drivers(&known).into_iter().for_each(|text| notes.add(None, text));
        }
        let targets = match specs.len() {
            0 => Targets::Given,
            1 => Targets::One(specs.remove(0).1),
            _ => Targets::Several(specs.into_iter().collect::<Named<_>>()),
        };
        let named = WorkloadFile::new(&workload.name, sets, stages);
        let notes = workload.notes.iter().cloned().chain(notes.list());
        Lowered {
            file: WorkloadFile { seed: options.seed, targets, ..named },
            secrets: secrets.into_iter().collect(),
            notes: notes.map(|note| note.to_string()).collect(),
            corrections: corrections::of(workload),
            touched,
            stages: lowered,
            set_places,
        }
    }
}

/// Returns a target to which content is sent without its length, where it takes that.
fn chunked(mut target: Reached, is_chunked: bool) -> Reached {
    if let TargetSpec::Swift(swift) = &mut target.spec {
        swift.chunked = is_chunked;
    }
    target
}

/// Returns the share of operations that may fail.
fn error_rate(work: &Work) -> Percent {
    Percent(f64::from(work.afr) / 10_000.0)
}

/// Returns the caps of a work; operations go before bytes.
fn pacing(work: &Work) -> PacingSpec {
    match (work.iops_max, work.bytes_per_sec_max) {
        (Some(rate), _) => PacingSpec::Capped(Rate(rate as f64)),
        (None, Some(rate)) => {
            let cap = Some(Cap::BytesPerSec(rate as f64 / f64::from(work.workers)));
            let arrivals = Arrivals::default();
            PacingSpec::CappedEach(CappedEach { read: cap, write: cap, arrivals })
        }
        (None, None) => PacingSpec::Closed,
    }
}
