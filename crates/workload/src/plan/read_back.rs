//! A workload with a stage that reads back what it has written.

use super::spec::{JobSpec, OneOrMany, OpSpec, PutAs, SetSpec, StageSpec, WorkSpec, WorkStage};
use super::{FieldPath, InvalidField, WorkloadFile};

/// What the stage is called.
const NAME: &str = "read-back";

impl WorkloadFile {
    /// Returns the workload with a stage behind the last one that writes whole objects, which reads
    /// back all that was acknowledged and is still to be there. Refuses what cannot be read back.
    pub fn with_read_back(mut self) -> Result<Self, InvalidField> {
        let mut written: Vec<(String, u32)> = Vec::new();
        let mut last = 0;
        for (index, stage) in self.stages.iter().enumerate() {
            let before = written.len();
            writes(&self, index, stage, &mut written)?;
            if written.len() > before || has_read_back(stage) {
                last = index;
            }
        }
        if self.stages.iter().any(has_read_back) {
            return Ok(self);
        }
        if written.is_empty() {
            let path = FieldPath::root().field("stages");
            return Err(path.refuse(
                "only measured stages that write whole objects of the run (`put`, `post`) can be \
                read back, and there is none",
            ));
        }
        let mut jobs: Vec<JobSpec> = Vec::new();
        for (set, workers) in written {
            let name = format!("{NAME}-{set}");
            if jobs.iter().all(|job| job.name.as_ref() != Some(&name)) {
                let work = WorkSpec::ReadBack(OneOrMany(vec![set]));
                let verify = Some(true);
                let job = JobSpec::of(workers, work);
                jobs.push(JobSpec { name: Some(name), verify, ..job });
            }
        }
        let stage = WorkStage { prepares: true, ..WorkStage::of(NAME, jobs) };
        self.stages.insert(last + 1, StageSpec::Jobs(stage));
        Ok(self)
    }
}

fn has_read_back(stage: &StageSpec) -> bool {
    let StageSpec::Jobs(stage) = stage else { return false };
    stage.jobs.iter().any(|job| matches!(job.work, WorkSpec::ReadBack(_)))
}

/// Notes the sets that a stage writes, each with how many workers do.
fn writes(
    file: &WorkloadFile,
    index: usize,
    stage: &StageSpec,
    written: &mut Vec<(String, u32)>,
) -> Result<(), InvalidField> {
    let stage = match stage {
        StageSpec::Jobs(stage) => stage,
        StageSpec::Repeat(of) => {
            return of.repeat.stages.iter().try_for_each(|of| writes(file, index, of, written));
        }
        StageSpec::Search(_) => return Ok(()),
    };
    let path = FieldPath::root().field("stages").index(index);
    for (number, job) in stage.jobs.iter().enumerate().filter(|_| !stage.prepares) {
        let at = path.field("jobs").index(number).field("work");
        let refuse = |what: &str| {
            at.refuse(format!(
                "{what} cannot be read back: only whole, unversioned objects of the run can"
            ))
        };
        let ops = match &job.work {
            WorkSpec::Objects(ops) => ops,
            WorkSpec::Parts(_) => return Err(refuse("what is uploaded in parts")),
            WorkSpec::Append(_) => return Err(refuse("what is appended")),
            WorkSpec::Archive(_) | WorkSpec::Fanout(_) => {
                return Err(refuse("what the store makes of an upload"));
            }
            WorkSpec::Blocks(_) | WorkSpec::Names(_) => return Err(refuse("what is on files")),
            _ => continue,
        };
        for op in ops {
            let (set, is_version) = match op {
                OpSpec::Put(put) => (&put.put, put.put_as == Some(PutAs::Version)),
                OpSpec::Post(post) => (&post.post, false),
                _ => continue,
            };
            let is_own = file.sets.iter().any(|(name, of)| {
                name == set && matches!(of, SetSpec::Objects(of) if of.versions == 1)
            });
            if is_version || !is_own {
                return Err(refuse(&format!("what is written to set `{set}`")));
            }
            if written.iter().all(|(known, _)| known != set) {
                written.push((set.clone(), job.workers));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stages: &str) -> Result<WorkloadFile, InvalidField> {
        let text = format!(
            "schema: plimsoll.workload/2\nsets: {{o: {{count: 10, size: 1KiB}}, f: {{files: 1, \
             size: 4KiB}}}}\nstages:\n{stages}"
        );
        WorkloadFile::from_yaml("w", &text).unwrap().with_read_back()
    }

    #[test]
    fn the_stage_stands_behind_the_last_that_writes() {
        let stages = "- {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n\
                      - {name: main, duration: 1s, jobs: [{workers: 7, work: {objects: \
                      [{get: o}, {put: o}]}}]}\n\
                      - {name: clean, jobs: [{work: {remove: o}}]}\n";
        let file = read(stages).unwrap();
        let names: Vec<_> = file.work_stages().map(|stage| stage.name.as_deref()).collect();
        assert_eq!(names, [None, Some("main"), Some(NAME), Some("clean")]);
        let job = &file.work_stages().nth(2).unwrap().jobs[0];
        assert_eq!((job.workers, job.name.as_deref()), (7, Some("read-back-o")));
        file.check().unwrap();
        // Once is enough.
        assert_eq!(file.clone().with_read_back().unwrap(), file);
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        for (stages, why) in [
            ("- {duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}", "there is none"),
            ("- {duration: 1s, jobs: [{work: {blocks: {on: f, write: {block: 4KiB}}}}]}", "files"),
            ("- {duration: 1s, jobs: [{work: {parts: {put: o, part: 5MiB}}}]}", "in parts"),
            ("- {duration: 1s, jobs: [{work: {objects: [{put: o, as: version}]}}]}", "set `o`"),
        ] {
            let refused = read(stages).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
