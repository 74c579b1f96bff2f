//! What a workload is carried out on: the targets that it names, or the one that the flags do.

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{FilesOn, RunTime, Scripted, Store as ConductedStore, Target};
use plimsoll_driver::null::NullDriver;
use plimsoll_model::Seed;
use plimsoll_oracle::Script;
use plimsoll_workload::plan::spec::{Lookup, OracleTarget, S3Target, TargetSpec};
use plimsoll_workload::plan::{Members, Plan, Target as PlanTarget, TargetIndex};

use crate::args::s3::{LookupArg, StoreArgs};
use crate::store::{self, Store};

/// What stands in for all stores and files.
#[derive(Clone, Debug, Default)]
pub(crate) enum StandIn {
    /// Nothing: they are real.
    #[default]
    Nobody,
    /// Targets on which every operation succeeds at once.
    Null,
    /// Targets in virtual time that a script rules.
    Script(Box<Script>),
}

/// The targets of a plan, as it is run.
#[derive(Default)]
pub(crate) struct Targets {
    /// By target of the plan.
    pub(crate) all: Vec<Target>,
    /// The stores that were opened for them; what is embedded ends when these are dropped.
    pub(crate) stores: Vec<Store>,
    /// What is scripted.
    pub(crate) scripted: Option<Scripted>,
}

fn scripted_targets(scripted: &Scripted, plan: &Plan) -> Vec<Target> {
    let target = |index| match is_on_files(plan, TargetIndex(index)) {
        true => Target::Files(FilesOn::Scripted(scripted.files.clone())),
        false => ConductedStore::without_admin(scripted.driver.clone(), "oracle").into(),
    };
    (0..plan.targets.len()).map(target).collect()
}

impl Targets {
    /// Returns what a plan is to be run on; `args` say how stores are reached, and which one where
    /// the workload names none.
    pub(crate) fn of(
        plan: &Plan,
        args: Option<&StoreArgs>,
        stand_in: &StandIn,
        (seed, time): (Seed, &RunTime),
    ) -> Result<Self> {
        match stand_in {
            StandIn::Nobody => {}
            StandIn::Null => {
                return Ok(Self { all: unasked(plan, FilesOn::Null), ..Self::default() });
            }
            StandIn::Script(script) => {
                let scripted = Scripted::new(script, seed, time, false);
                let all = scripted_targets(&scripted, plan);
                return Ok(Self { all, stores: Vec::new(), scripted: Some(scripted) });
            }
        }
        let mut targets = Self::default();
        for (index, target) in plan.targets.iter().enumerate() {
            refuse_unknown(target)?;
            let needed = || args.context("this command has no store to work on");
            let opened = match &target.spec {
                None if is_on_files(plan, TargetIndex(index)) => Target::Files(FilesOn::Machine),
                None => targets.store(needed()?, time)?,
                Some(TargetSpec::Files(_)) => Target::Files(FilesOn::Machine),
                Some(TargetSpec::S3(spec)) => {
                    let named = with(needed()?, spec);
                    targets
                        .store(&named, time)
                        .with_context(|| format!("target {}", target.name))?
                }
                Some(TargetSpec::Null(_)) => null_store(String::new()),
                Some(TargetSpec::Oracle(spec)) => targets.oracle(spec, needed()?, (seed, time))?,
                Some(TargetSpec::Seaweedfs(_) | TargetSpec::Swift(_)) => {
                    unreachable!("what is not known was refused")
                }
            };
            targets.all.push(opened);
        }
        Ok(targets)
    }

    /// Returns targets for a plan that is only judged: nothing is asked of them.
    pub(crate) fn judged(plan: &Plan, args: Option<&StoreArgs>) -> Result<Vec<Target>> {
        plan.targets.iter().try_for_each(refuse_unknown)?;
        let mut targets = unasked(plan, FilesOn::Machine);
        let own = args.map_or_else(String::new, |args| args.bucket.clone());
        for (opened, target) in targets.iter_mut().zip(&plan.targets) {
            if let Target::Store(store) = opened {
                store.bucket = match &target.spec {
                    Some(TargetSpec::S3(S3Target { bucket: Some(bucket), .. })) => bucket.clone(),
                    _ => own.clone(),
                };
            }
        }
        Ok(targets)
    }

    fn store(&mut self, args: &StoreArgs, time: &RunTime) -> Result<Target> {
        self.keep(store::open(args, time)?)
    }

    fn oracle(
        &mut self,
        spec: &OracleTarget,
        args: &StoreArgs,
        (Seed(seed), time): (Seed, &RunTime),
    ) -> Result<Target> {
        let script = match &spec.script {
            None => None,
            Some(path) => {
                let text = plimsoll_conduct::input::read_given(path.as_ref())
                    .with_context(|| format!("cannot read {path}"))?;
                Some(Script::from_yaml(&text).with_context(|| path.clone())?)
            }
        };
        self.keep(store::open_embedded(args, script, seed, time)?)
    }

    fn keep(&mut self, store: Store) -> Result<Target> {
        let is_shared = store.embedded.is_none();
        let target = ConductedStore::s3(store.config.clone(), is_shared)?;
        self.stores.push(store);
        Ok(target.into())
    }
}

fn null_store(bucket: String) -> Target {
    ConductedStore { bucket, ..ConductedStore::without_admin(NullDriver, "null") }.into()
}

/// Returns targets that nothing is asked of.
fn unasked(plan: &Plan, files: FilesOn) -> Vec<Target> {
    let target = |index| match is_on_files(plan, TargetIndex(index)) {
        true => Target::Files(files.clone()),
        false => null_store(String::new()),
    };
    (0..plan.targets.len()).map(target).collect()
}

/// Refuses what the language knows and this program cannot run yet.
fn refuse_unknown(target: &PlanTarget) -> Result<()> {
    match &target.spec {
        Some(TargetSpec::Seaweedfs(_) | TargetSpec::Swift(_)) => bail!(
            "targets.{}: its kind cannot be run yet; s3, files, oracle and null can",
            target.name
        ),
        Some(TargetSpec::S3(S3Target { profile: Some(_), .. })) => bail!(
            "targets.{}.s3.profile: profiles cannot be used yet; give the keys with --access-key \
             and --secret-key, or by --signature IAM",
            target.name
        ),
        _ => Ok(()),
    }
}

/// Tells whether a target is files.
fn is_on_files(plan: &Plan, index: TargetIndex) -> bool {
    match &plan.targets[index.0].spec {
        Some(spec) => matches!(spec, TargetSpec::Files(_)),
        None => has_only_files(plan, index),
    }
}

/// Tells whether all sets on a target are files, so that it needs no store.
fn has_only_files(plan: &Plan, target: TargetIndex) -> bool {
    let sets = || plan.sets.iter().filter(|set| set.target == target);
    sets().next().is_some()
        && sets().all(|set| matches!(set.members, Members::Files(_) | Members::Tree(_)))
}

/// Returns how a store is reached that a workload names.
fn with(args: &StoreArgs, spec: &S3Target) -> StoreArgs {
    let mut named = args.clone();
    if !spec.hosts.is_empty() {
        named.host = Some(spec.hosts.0.join(","));
        named.tls = spec.tls;
    }
    if let Some(bucket) = &spec.bucket {
        named.bucket.clone_from(bucket);
    }
    named.region = spec.region.clone().or(named.region);
    named.lookup = match spec.lookup {
        None => named.lookup,
        Some(Lookup::Path) => LookupArg::Path,
        Some(Lookup::Host) => LookupArg::Dns,
    };
    named
}
