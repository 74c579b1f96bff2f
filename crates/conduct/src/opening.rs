//! Opens what a workload is carried out on: the targets that it names, or the caller's own store.

use plimsoll_driver::null::NullDriver;
use plimsoll_driver_s3::S3Config;
use plimsoll_model::Seed;
use plimsoll_oracle::{Oracle, Script};
use plimsoll_workload::plan::spec::{S3Target, TargetSpec};
use plimsoll_workload::plan::{Members, Plan, Target as PlanTarget, TargetIndex};

use crate::{CallerError, ConductError, FilesOn, RunTime, Scripted, Store, Target, input};

/// What stands in for all stores and files.
#[derive(Clone, Debug, Default)]
pub enum StandIn {
    /// Nothing: they are real.
    #[default]
    Nobody,
    /// Targets on which every operation succeeds at once.
    Null,
    /// Targets in virtual time that a script rules.
    Script(Box<Script>),
}

/// A store that is to be reached.
pub enum AskedStore<'a> {
    /// The caller's own.
    Own,
    /// One that the workload names.
    Named(&'a S3Target),
    /// An embedded one that does as a script says.
    Embedded(Option<Box<Script>>),
}

/// A store that can be reached.
pub struct Reached {
    /// How the driver reaches it.
    pub config: S3Config,
    /// The embedded store; it ends when this is dropped.
    pub embedded: Option<Oracle>,
}

/// Says how a store is reached, as the caller was told.
pub type Reach<'a> = dyn FnMut(AskedStore<'_>) -> Result<Reached, CallerError> + 'a;

/// The targets of a plan, as it is run.
#[derive(Default)]
pub struct Targets {
    /// By target of the plan.
    pub all: Vec<Target>,
    /// The stores that were opened for them; what is embedded ends when these are dropped.
    pub stores: Vec<Reached>,
    /// What is scripted.
    pub scripted: Option<Scripted>,
}

impl Targets {
    /// Returns what a plan is to be run on; `reach` says how stores are reached.
    pub fn of(
        plan: &Plan,
        reach: &mut Reach<'_>,
        stand_in: &StandIn,
        seed: Seed,
        time: &RunTime,
    ) -> Result<Self, ConductError> {
        let mut targets = Self::default();
        match stand_in {
            StandIn::Nobody => {
                for (index, target) in plan.targets.iter().enumerate() {
                    let opened = targets.open(target, is_on_files(plan, index), reach)?;
                    targets.all.push(opened);
                }
            }
            StandIn::Null => targets.all = each(plan, &FilesOn::Null, null_store),
            StandIn::Script(script) => {
                let scripted = Scripted::new(script, seed, time, false);
                let files = FilesOn::Scripted(scripted.files.clone());
                let store = || Store::without_admin(scripted.driver.clone(), "oracle");
                targets.all = each(plan, &files, store);
                targets.scripted = Some(scripted);
            }
        }
        Ok(targets)
    }

    fn open(
        &mut self,
        target: &PlanTarget,
        is_on_files: bool,
        reach: &mut Reach<'_>,
    ) -> Result<Target, ConductError> {
        refuse_unknown(target)?;
        let asked = match &target.spec {
            _ if is_on_files => return Ok(Target::Files(FilesOn::Machine)),
            Some(TargetSpec::Null(_)) => return Ok(null_store().into()),
            Some(TargetSpec::S3(spec)) => AskedStore::Named(spec),
            Some(TargetSpec::Oracle(spec)) => {
                AskedStore::Embedded(spec.script.as_deref().map(read_script).transpose()?)
            }
            _ => AskedStore::Own,
        };
        let named = matches!(asked, AskedStore::Named(_)).then_some(&target.name);
        let is_oracle = matches!(target.spec, Some(TargetSpec::Oracle(_)));
        let opened = reach(asked).and_then(|reached| {
            let is_shared = reached.embedded.is_none();
            let mut store = Store::s3(reached.config.clone(), is_shared)?;
            if is_oracle {
                store.record.kind = "oracle".to_owned();
            }
            Ok((store, reached))
        });
        let (store, reached) = opened.map_err(|source| match named {
            Some(name) => ConductError::Of { what: format!("target {name}"), source },
            None => ConductError::Caller(source),
        })?;
        self.stores.push(reached);
        Ok(store.into())
    }
}

fn read_script(path: &str) -> Result<Box<Script>, ConductError> {
    let failed = |what, source| ConductError::Of { what, source };
    let text = input::read_given(path.as_ref())
        .map_err(|error| failed(format!("cannot read {path}"), error.into()))?;
    let script = Script::from_yaml(&text);
    script.map(Box::new).map_err(|error| failed(path.to_owned(), error.into()))
}

fn null_store() -> Store {
    Store::without_admin(NullDriver, "null")
}

/// Returns files and stores of these kinds for the targets of a plan.
fn each(plan: &Plan, files: &FilesOn, store: impl Fn() -> Store) -> Vec<Target> {
    let target = |index| match is_on_files(plan, index) {
        true => Target::Files(files.clone()),
        false => store().into(),
    };
    (0..plan.targets.len()).map(target).collect()
}

/// Refuses what the language knows and this program cannot run yet.
fn refuse_unknown(target: &PlanTarget) -> Result<(), ConductError> {
    let refused = match &target.spec {
        Some(TargetSpec::Seaweedfs(_) | TargetSpec::Swift(_)) => {
            target.path.refuse("its kind cannot be run yet; s3, files, oracle and null can")
        }
        Some(TargetSpec::S3(S3Target { profile: Some(_), .. })) => {
            let why = "profiles cannot be used yet; give the keys beside the workload";
            target.path.field("profile").refuse(why)
        }
        _ => return Ok(()),
    };
    Err(refused.into())
}

/// Tells whether a target is files. One that the workload does not describe is, where all sets on
/// it are files, so that it needs no store.
fn is_on_files(plan: &Plan, index: usize) -> bool {
    if let Some(spec) = &plan.targets[index].spec {
        return matches!(spec, TargetSpec::Files(_));
    }
    let sets = || plan.sets.iter().filter(|set| set.target == TargetIndex(index));
    sets().next().is_some()
        && sets().all(|set| matches!(set.members, Members::Files(_) | Members::Tree(_)))
}
