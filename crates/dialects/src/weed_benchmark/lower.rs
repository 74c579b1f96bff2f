//! What a command line comes to: a workload with writing, removing and reading as its stages.

use std::time::Duration;

use plimsoll_workload::plan::spec::{
    Choice, DeleteOp, ExistingOf, ExistingSet, GetOp, JobSpec, Limit, Named, ObjectSet, OpSpec,
    PickSpec, PutOp, SeaweedTarget, SetSpec, SizeLaw, SizeSpec, StageSpec, TargetSpec, Targets,
    WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{SizeRange, Time, WorkloadFile};

use super::layout::Stage;
use super::{Benchmark, Note, SIZE_MORE_MAX, Scope};

/// What a run is called.
const NAME: &str = "weed-benchmark";
/// The files that stay, or those of the list.
const FILES: &str = "files";
/// The files that are removed again.
const REMOVED: &str = "removed";

/// After how long these are removed, as long as the writing lasts.
const REMOVE_AFTER: Time = Time(Duration::from_secs(1));

/// The flags that stand for fields of the workload.
pub const WORDS: [(&str, &str); 9] = [
    ("master", "-master"),
    ("collection", "-collection"),
    ("replication", "-replication"),
    ("disk", "-disk"),
    ("fsync", "-fsync"),
    ("workers", "-c"),
    ("size", "-size"),
    ("list", "-list"),
    ("ops", "-n"),
];

/// What is asked for beside weed's own flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Fixes every choice.
    pub seed: Option<u64>,
    /// Whether `-n` different files are read instead of `-n` that are drawn.
    pub is_distinct: bool,
    /// The list that is read, where no files are written.
    pub listed: Listed,
    /// The `security.toml` that is read.
    pub security: Option<String>,
}

/// A list of file ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub path: String,
    /// How many there are in it; `None` where it was not looked at.
    pub count: Option<u64>,
}

impl Benchmark {
    /// Returns the workload.
    pub fn workload(&self, asked: &Asked) -> WorkloadFile {
        let mut sets = Named::default();
        if self.scope.writes() {
            for (set, weight) in self.written_sets() {
                if weight > 0 {
                    let size = SizeLaw::Uniform(self.sizes());
                    let set_of = ObjectSet::of(0, Some(SizeSpec::Drawn(size)));
                    sets.insert(set, SetSpec::Objects(set_of));
                }
            }
        } else {
            let list = Some(asked.listed.path.clone());
            let existing = ExistingOf { list, ..ExistingOf::below(String::new()) };
            sets.insert(FILES, SetSpec::Existing(ExistingSet { on: None, existing, touch: false }));
        }
        let stages = self.stages(asked).into_iter().map(|stage| match stage {
            Stage::Write => self.write(),
            Stage::Delete => self.delete(),
            Stage::Read { .. } => self.read(asked),
        });
        let stages = stages.map(StageSpec::Jobs).collect();
        let targets = Targets::One(TargetSpec::Seaweedfs(Box::new(SeaweedTarget {
            security: asked.security.clone(),
            ..self.target()
        })));
        WorkloadFile { seed: asked.seed, targets, ..WorkloadFile::new(NAME, sets, stages) }
    }

    /// Returns the stages of the workload, in their order.
    pub fn stages(&self, asked: &Asked) -> Vec<Stage> {
        let mut stages = Vec::new();
        if self.scope.writes() {
            stages.push(Stage::Write);
            if self.delete_percent > 0 {
                stages.push(Stage::Delete);
            }
        }
        // Where all of what was written is removed, nothing is left to be read.
        if self.scope.reads() && (self.scope == Scope::Read || self.delete_percent < 100) {
            stages.push(Stage::Read { is_sequential: self.reads_each_once(asked) });
        }
        stages
    }

    /// Returns of how many operations a stage consists, where they are known before.
    pub fn ops_count(&self, stage: Stage, asked: &Asked) -> u64 {
        let written = self.files;
        let removed = u128::from(written) * u128::from(self.delete_percent) / 100;
        match stage {
            Stage::Write => written,
            Stage::Delete => removed as u64,
            Stage::Read { .. } => self.reads_count(asked),
        }
    }

    /// Returns what differs from what weed benchmark does with these flags, beside what is
    /// corrected.
    pub fn notes(&self, asked: &Asked) -> Vec<Note> {
        let mut notes = self.passed_over.clone();
        let writes = self.scope.writes();
        if self.delete_percent > 0 && writes {
            let text = "the files to be removed are drawn while writing, by weight, so that they \
                        are about as many percent; those whose second is not over when all is \
                        written are removed in a stage of its own";
            notes.push(Note::new("-deletePercent", text));
        }
        if self.delete_percent == 100 && self.scope == Scope::Both {
            let text = "nothing is left to be read, so that stage is left out";
            notes.push(Note::new("-deletePercent 100", text));
        }
        if self.size_bytes == 0 && writes {
            let text = format!("files of 1 to {SIZE_MORE_MAX} bytes are written, no empty ones");
            notes.push(Note::new("-size 0", text));
        }
        if let Some(cpus) = self.cpus_max {
            let text = format!("{cpus} threads at most drive the workers, unless --threads is set");
            notes.push(Note::new("-maxCpu", text));
        }
        if asked.is_distinct && self.scope.reads() {
            let reads = self.reads_count(asked);
            if reads < self.files && !self.is_sequential {
                let text = format!("there are {reads} files, so {reads} are read and not -n");
                notes.push(Note::new("--distinct", text));
            }
        }
        notes
    }

    /// Returns how many files are read, as far as that is known before.
    fn reads_count(&self, asked: &Asked) -> u64 {
        let there = match self.scope {
            Scope::Read => asked.listed.count,
            _ => Some(self.files - self.ops_count(Stage::Delete, asked)),
        };
        there.map_or(self.files, |there| self.reads_of(there, asked))
    }

    /// Returns how many files are read where there are so many.
    pub fn reads_of(&self, there: u64, asked: &Asked) -> u64 {
        match (self.is_sequential, asked.is_distinct) {
            (true, _) => there,
            (false, true) => self.files.min(there),
            (false, false) => self.files,
        }
    }

    /// Tells whether no file is read twice.
    pub fn reads_each_once(&self, asked: &Asked) -> bool {
        self.is_sequential || asked.is_distinct
    }

    /// Returns the sets that are written, and how often each is, relative to the other.
    fn written_sets(&self) -> [(&'static str, u32); 2] {
        [(FILES, 100 - self.delete_percent), (REMOVED, self.delete_percent)]
    }

    fn sizes(&self) -> SizeRange {
        SizeRange { min: self.size_bytes.max(1), max: self.size_bytes + SIZE_MORE_MAX }
    }

    fn target(&self) -> SeaweedTarget {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        SeaweedTarget {
            collection: given(&self.collection),
            replication: given(&self.replication),
            // What is taken where none is named.
            disk: given(&self.disk).filter(|disk| disk != "hdd"),
            fsync: self.fsync,
            create_bucket: true,
            ..SeaweedTarget::of(self.masters.clone())
        }
    }

    /// Returns the stage that writes as many files as are asked for, whichever worker is free.
    fn write(&self) -> WorkStage {
        let put = |(set, weight): (&str, u32)| {
            let remove_after = (set == REMOVED).then_some(REMOVE_AFTER);
            OpSpec::Put(PutOp { put: set.to_owned(), weight, remove_after, ..PutOp::default() })
        };
        let sets = self.written_sets().into_iter().filter(|(_, weight)| *weight > 0);
        let only_one = matches!(self.delete_percent, 0 | 100);
        let ops = sets.map(|(set, weight)| put((set, if only_one { 1 } else { weight }))).collect();
        let jobs = vec![JobSpec::of(self.concurrency, WorkSpec::Objects(ops))];
        WorkStage { ops: Some(self.files), ..WorkStage::of(Stage::Write.name(), jobs) }
    }

    fn delete(&self) -> WorkStage {
        let delete =
            DeleteOp { delete: REMOVED.to_owned(), weight: 1, batch: 1, ..DeleteOp::default() };
        let work = WorkSpec::Objects(vec![OpSpec::Delete(delete)]);
        WorkStage::of(Stage::Delete.name(), vec![JobSpec::of(self.concurrency, work)])
    }

    fn read(&self, asked: &Asked) -> WorkStage {
        let each_once = self.reads_each_once(asked);
        let pick = each_once.then_some(PickSpec::Member(Choice::Sequential));
        let get = GetOp { get: FILES.to_owned(), weight: 1, pick, ..GetOp::default() };
        let work = WorkSpec::Objects(vec![OpSpec::Get(get)]);
        let count = self.reads_count(asked);
        let name = Stage::Read { is_sequential: each_once }.name();
        let job = JobSpec::of(self.concurrency, work);
        match each_once {
            // Dealt to the workers as the files are, so that each file is read once.
            true => {
                let job = JobSpec { ops: Some(Limit::All(count)), ..job };
                WorkStage::of(name, vec![job])
            }
            false => WorkStage { ops: Some(count), ..WorkStage::of(name, vec![job]) },
        }
    }
}
