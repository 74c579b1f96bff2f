//! A workload as COSBench holds it: with every default, every definition inherited, and special
//! work expanded.

use super::config::Config;
use super::error::{Note, Place};

/// A workload, read and found sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// `name`.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// `trigger`, which is not run.
    pub trigger: Option<String>,
    pub(super) config: String,
    pub(super) workflow_config: String,
    pub(super) auth: Access,
    pub(super) storage: Access,
    /// Its stages, one after the other.
    pub stages: Vec<Stage>,
    /// What was passed over while it was read.
    pub notes: Vec<Note>,
}

/// A stage: works that run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// `name`.
    pub name: String,
    /// `closuredelay`: how many seconds are waited when it is over.
    pub closure_delay_s: u32,
    /// `trigger`, which is not run.
    pub trigger: Option<String>,
    pub(super) config: String,
    pub(super) auth: Access,
    pub(super) storage: Access,
    /// What is done at once.
    pub works: Vec<Work>,
    pub(super) place: Place,
}

/// A work: so many workers that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// `name`; of special work its type where none is given.
    pub name: String,
    /// `type`.
    pub kind: WorkKind,
    /// `workers`.
    pub workers: u32,
    /// `interval` in seconds, between two rows of the time line.
    pub interval_s: u32,
    /// `division`.
    pub division: Division,
    /// `runtime`; 0 is without end.
    pub runtime_s: u32,
    /// `rampup`.
    pub rampup_s: u32,
    /// `rampdown`.
    pub rampdown_s: u32,
    /// `totalOps`; 0 is without end.
    pub total_ops: u32,
    /// `totalBytes`; 0 is without end.
    pub total_bytes: u64,
    /// `afr`: how many of a million operations may fail.
    pub afr: u32,
    /// `driver`: on which it runs.
    pub driver: Option<String>,
    /// `maxIOPS`: operations a second of all workers.
    pub iops_max: Option<u64>,
    /// `maxBW`: bytes a second of all workers.
    pub bytes_per_sec_max: Option<u64>,
    pub(super) config: String,
    pub(super) auth: Access,
    pub(super) storage: Access,
    /// What its workers do, by ratio.
    pub operations: Vec<Operation>,
    pub(super) place: Place,
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Operations by ratio.
    Normal,
    /// Makes containers.
    Init,
    /// Writes all objects.
    Prepare,
    /// Writes all objects in parts (of the fork).
    MultipartPrepare,
    /// Removes all objects.
    Cleanup,
    /// Removes containers.
    Dispose,
    /// Waits.
    Delay,
}

impl WorkKind {
    /// Returns its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Init => "init",
            Self::Prepare => "prepare",
            Self::MultipartPrepare => "mprepare",
            Self::Cleanup => "cleanup",
            Self::Dispose => "dispose",
            Self::Delay => "delay",
        }
    }

    pub(super) const SPECIAL: [Self; 6] = [
        Self::Init,
        Self::Prepare,
        Self::MultipartPrepare,
        Self::Cleanup,
        Self::Dispose,
        Self::Delay,
    ];
}

/// How numbers are cut among workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// Not at all.
    #[default]
    None,
    /// Each has containers of its own.
    Container,
    /// Each has objects of its own, in every container.
    Object,
}

impl Division {
    /// Returns its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Container => "container",
            Self::Object => "object",
        }
    }
}

/// One operation of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `op1`, `op2`, ... over all works of the stage.
    pub id: String,
    /// `type`.
    pub kind: String,
    /// What it is called in reports: its type, `1-read` where its work has several of one type, or
    /// the `name` of its config.
    pub name: String,
    /// `ratio`, of 100.
    pub ratio: u32,
    /// `division`; what nobody knows is refused.
    pub division: Division,
    pub(super) config: Config,
}

impl Operation {
    /// Returns what its samples are of: `prepare` writes and `cleanup` deletes.
    pub fn sample_type(&self) -> &str {
        match self.kind.as_str() {
            "init" | "prepare" => "write",
            "mprepare" => "mwrite",
            "cleanup" | "dispose" => "delete",
            kind => kind,
        }
    }

    /// Returns how reports show it: `read`, `prepare-write`, `1-read-read`.
    pub fn shown(&self) -> String {
        match self.name == self.sample_type() {
            true => self.name.clone(),
            false => format!("{}-{}", self.name, self.sample_type()),
        }
    }

    /// Returns its config with all that it inherits.
    pub fn config(&self) -> &str {
        &self.config.text
    }
}

impl Stage {
    /// Returns the id of the stage, which is the `number`th, 1-based: `s3-main`.
    pub fn id(&self, number: usize) -> String {
        format!("s{number}-{}", self.name)
    }

    /// Tells whether it only waits.
    pub fn is_delay(&self) -> bool {
        self.works.iter().all(|work| work.kind == WorkKind::Delay)
    }
}

impl Workload {
    /// Returns the types of all operations, each once, in their order.
    pub fn op_info(&self) -> Vec<&str> {
        let works = self.stages.iter().flat_map(|stage| &stage.works);
        let mut kinds: Vec<&str> = Vec::new();
        for operation in works.flat_map(|work| &work.operations) {
            if !kinds.contains(&operation.kind.as_str()) {
                kinds.push(&operation.kind);
            }
        }
        kinds
    }

    /// Returns how many seconds there are between two rows of time lines: the shortest interval of
    /// all works.
    pub fn interval_s(&self) -> u32 {
        let works = self.stages.iter().flat_map(|stage| &stage.works);
        works.map(|work| work.interval_s).min().unwrap_or(1).max(1)
    }

    /// Returns the drivers that works are to run on, each once.
    pub fn drivers(&self) -> Vec<&str> {
        let works = self.stages.iter().flat_map(|stage| &stage.works);
        let mut names: Vec<&str> = works.filter_map(|work| work.driver.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns a sentence for each driver that a work is to run on and that is none of `known`:
    /// such work is taken as if it named none.
    pub fn unknown_drivers(&self, known: &[&str]) -> Vec<String> {
        let unknown = self.drivers().into_iter().filter(|name| !known.contains(name));
        let sentence = |name: &str| {
            format!(
                "driver `{name}` is not one of {}: its works are divided among all, as in COSBench",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )
        };
        unknown.map(sentence).collect()
    }
}

/// How a storage is reached: an `auth` or a `storage`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) kind: String,
    pub(super) config: Config,
}

impl Access {
    pub(super) fn none() -> Self {
        Self { kind: "none".to_owned(), config: Config::default() }
    }
}

impl std::fmt::Debug for Access {
    /// Secrets stand in the config.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("kind", &self.kind).finish_non_exhaustive()
    }
}
