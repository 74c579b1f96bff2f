//! Checks jobs: workers, pacing, limits, and where they work.

use std::num::NonZeroU32;

use super::pacing::pacing;
use super::stages::positive;
use super::{Checked, Context, at_least_one, in_range};
use crate::plan::checked::{Amount, Job, Members, Target, TargetIndex, Think};
use crate::plan::path::FieldPath;
use crate::plan::pattern::Pattern;
use crate::plan::spec::{
    BlocksSpec, Choice, DealBy, DealSpec, JobSpec, Limit, TargetSpec, ThinkSpec, WorkSpec,
};
use crate::plan::units::Percent;
use crate::plan::work::Work;
use plimsoll_model::Ability;

/// The most workers of one job.
const WORKERS_MAX: u32 = 1_000_000;
/// The most operations that a worker keeps in flight.
const DEPTH_MAX: u32 = 65_536;

impl Context<'_> {
    /// Returns a job, checked. `bounded` tells whether its stage ends by itself.
    pub(super) fn job(
        &self,
        path: &FieldPath,
        name: String,
        spec: &JobSpec,
        worker_first: u32,
        bounded: bool,
    ) -> Checked<Job> {
        in_range(&path.field("workers"), spec.workers.into(), WORKERS_MAX)?;
        in_range(&path.field("depth"), spec.depth.into(), DEPTH_MAX)?;
        let (workers, depth) = (count(spec.workers), count(spec.depth));
        let (mut work, needs) = self.work(&path.field("work"), spec)?;
        let target = self.job_target(path, spec, &work)?;
        self.check_needs(path, target, &needs, &work)?;
        let duration = positive(&path.field("duration"), spec.duration.map(|time| time.0))?;
        let ops_max = amount(&path.field("ops"), spec.ops.as_ref(), |ops| *ops)?;
        let bytes_max = amount(&path.field("bytes"), spec.bytes.as_ref(), |size| size.0)?;
        let ends = bounded || duration.is_some() || ops_max.is_some() || bytes_max.is_some();
        if let (Work::Blocks(blocks), WorkSpec::Blocks(BlocksSpec { repeats: None, .. })) =
            (&mut work, &spec.work)
        {
            blocks.repeats = ends;
        }
        if !ends && !work.is_finite() {
            let reason = "is missing; without a duration, ops or bytes of the job or its stage the \
                          work never ends";
            return Err(path.field("duration").refuse(reason));
        }
        self.check_deal(path, spec, &work)?;
        let delay = spec.start_delay;
        if delay.min > delay.max {
            return Err(path.field("start_delay").refuse("the shortest is above the longest"));
        }
        let job = Job {
            name,
            target,
            workers,
            worker_first,
            depth,
            pacing: pacing(&path.field("pacing"), spec)?,
            duration,
            ops_max,
            bytes_max,
            ramp: spec.ramp.0,
            ramp_down: spec.ramp_down.0,
            start_delay: delay.min..=delay.max,
            think: spec.think.map(|spec| think(&path.field("think"), spec)).transpose()?,
            verify: spec.verify.unwrap_or(self.file.verify),
            group: spec.group,
            agent: spec.agent.clone(),
            weights: None,
            interface: spec.interface.map(|interface| interface.0),
            deal: spec.deal,
            error_percent_max: percent(&path.field("max_error_rate"), spec.max_error_rate)?,
            work,
            needs,
            path: path.clone(),
        };
        match spec.interface {
            Some(_) if !job.needs_files() => {
                Err(path.field("interface").refuse("is only for work on files"))
            }
            _ => Ok(job),
        }
    }

    /// Returns where a job works: the target that it names, or else that of its sets.
    fn job_target(&self, path: &FieldPath, spec: &JobSpec, work: &Work) -> Checked<TargetIndex> {
        let sets = work.sets();
        let named = spec.on.as_deref();
        let first = sets.first().map(|set| self.sets[set.0].target);
        let target = match (named, first) {
            (None, Some(target)) => target,
            (name, _) => self.target(&path.field("on"), name)?,
        };
        for set in sets {
            let set = &self.sets[set.0];
            let also = set.also_on.as_ref().map(|(target, _)| *target);
            if set.target != target && also != Some(target) {
                let reason = format!(
                    "set `{}` lies on target `{}`, not on `{}`; a job uses one target",
                    set.name, self.targets[set.target.0].name, self.targets[target.0].name
                );
                return Err(path.field("work").refuse(reason));
            }
        }
        Ok(target)
    }

    /// Refuses work that the target's kind does not offer.
    fn check_needs(
        &self,
        path: &FieldPath,
        target: TargetIndex,
        needs: &[Ability],
        work: &Work,
    ) -> Checked<()> {
        let Target { name, spec: Some(spec), .. } = &self.targets[target.0] else { return Ok(()) };
        if let Some(missing) = needs.iter().find(|need| !spec.offers(**need)) {
            let reason = format!(
                "target `{name}` is of kind {}, which does not offer {}",
                spec.kind(),
                missing.name()
            );
            return Err(path.field("work").refuse(reason));
        }
        let is_made = |members: &Members| match members {
            Members::Files(files) => !files.are_there(),
            Members::Tree(_) => true,
            _ => false,
        };
        let no_directory = matches!(spec, TargetSpec::Files(files) if files.directory.is_empty());
        if no_directory && work.sets().iter().any(|set| is_made(self.members(*set))) {
            let reason = format!("target `{name}` needs a directory for the run's own files");
            return Err(path.field("work").refuse(reason));
        }
        Ok(())
    }

    /// Tells whether work writes or removes members that have one writer each.
    fn is_exclusive(&self, work: &Work) -> bool {
        let mut uses = super::uses::of(work).into_iter();
        uses.any(|used| used.kind.is_exclusive() && self.shared(used.set).is_none())
    }

    fn check_deal(&self, path: &FieldPath, spec: &JobSpec, work: &Work) -> Checked<()> {
        let DealSpec { by, shift } = spec.deal;
        let at = path.field("deal");
        if shift >= spec.workers && shift > 0 {
            let reason = format!("a shift of {shift} needs more than {} workers", spec.workers);
            return Err(at.field("shift").refuse(reason));
        }
        let has_buckets = |members: &Members| match members {
            Members::Objects(objects) => objects.keys.buckets.is_some(),
            Members::Named(named) => named.buckets.is_some(),
            _ => false,
        };
        match by {
            DealBy::ByMember => Ok(()),
            DealBy::ByBucket => {
                match work.sets().into_iter().find(|set| !has_buckets(self.members(*set))) {
                    Some(set) => {
                        let name = &self.sets[set.0].name;
                        Err(at.refuse(format!("set `{name}` has no buckets to deal")))
                    }
                    None => Ok(()),
                }
            }
            DealBy::None if self.is_exclusive(work) => {
                let reason = "members that the work writes or removes must be dealt to workers";
                Err(at.refuse(reason))
            }
            DealBy::None => Ok(()),
            DealBy::BucketSlices | DealBy::MemberSlices => self.check_slices(&at, spec, work),
        }
    }

    /// Refuses slices where there is nothing to be cut, or too little.
    fn check_slices(&self, path: &FieldPath, spec: &JobSpec, work: &Work) -> Checked<()> {
        for set in work.sets() {
            let name = &self.sets[set.0].name;
            let shared = self.shared(set);
            if shared.is_none() {
                let reason = format!("only shared sets can be sliced, and `{name}` is not shared");
                return Err(path.refuse(reason));
            }
            if spec.deal.by == DealBy::BucketSlices && shared.is_none_or(|of| of.buckets.is_none())
            {
                return Err(path.refuse(format!("set `{name}` names no buckets to be cut")));
            }
        }
        let Work::Objects(ops) = work else {
            return match work {
                Work::Fill { .. } | Work::Remove { .. } => Ok(()),
                _ => Err(path.refuse("slices are for `fill`, `remove` and `objects`")),
            };
        };
        for op in ops {
            let of = self.shared(op.set).expect("it was checked");
            let buckets = op.buckets.as_ref().or(of.buckets.as_ref());
            let (count, what) = match spec.deal.by {
                DealBy::BucketSlices => (buckets.map_or(1, Pattern::count), "buckets"),
                _ => (op.keys.as_ref().unwrap_or(&of.keys).count(), "keys"),
            };
            if count < u64::from(spec.workers) {
                let reason = format!(
                    "{count} {what} are too few for {} workers: each needs its own",
                    spec.workers
                );
                return Err(path.refuse(reason));
            }
            let is_apt = |choice: &Choice| matches!(choice, Choice::Uniform | Choice::Sequential);
            if !op.act.choices().into_iter().all(is_apt) {
                let reason = "members of a slice are picked `uniform` or `sequential`";
                return Err(op.path.field("pick").refuse(reason));
            }
        }
        Ok(())
    }
}

fn count(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("it was checked")
}

/// Returns a share in percent.
pub(super) fn percent(path: &FieldPath, share: Option<Percent>) -> Checked<Option<f64>> {
    match share {
        Some(Percent(percent)) if percent > 100.0 => {
            Err(path.refuse(format!("{percent}% is out of range: 0% to 100%")))
        }
        share => Ok(share.map(|share| share.0)),
    }
}

fn amount<T>(
    path: &FieldPath,
    limit: Option<&Limit<T>>,
    number: impl Fn(&T) -> u64,
) -> Checked<Option<Amount>> {
    match limit {
        None => Ok(None),
        Some(Limit::All(limit)) => {
            at_least_one(path, number(limit))?;
            Ok(Some(Amount::All(number(limit))))
        }
        Some(Limit::Each { each }) => {
            at_least_one(&path.field("each"), number(each))?;
            Ok(Some(Amount::Each(number(each))))
        }
    }
}

fn think(path: &FieldPath, spec: ThinkSpec) -> Checked<Think> {
    at_least_one(&path.field("every"), spec.every)?;
    if spec.spin > spec.pause {
        return Err(path.field("spin").refuse("must be at most the pause"));
    }
    let ThinkSpec { pause, spin, every } = spec;
    Ok(Think { pause: pause.0, spin: spin.0, every_ops: count(every) })
}
