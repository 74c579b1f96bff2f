//! What became of writes that were acknowledged: the reads of the stage that reads them back.

use plimsoll_analysis::OpSource;
use plimsoll_model::ErrorClass;
use plimsoll_record::schema::{Manifest, Stage};
use plimsoll_report::{ReadBackObject, ReadBackReport};
use plimsoll_workload::plan::Work;

use crate::error::ReadError;
use crate::export::Naming;
use crate::open::{Origin, Record};

/// How many objects are named.
const NAMED_MAX: usize = 1_000;

impl Record {
    /// Returns what was found of them; `None` where they were not to be read back.
    pub(crate) fn read_back(
        &self,
        manifest: &Manifest,
    ) -> Result<Option<ReadBackReport>, ReadError> {
        let stages: Vec<&Stage> =
            manifest.stages.iter().filter(|stage| stage.is_read_back()).collect();
        if stages.iter().all(|stage| stage.ended_ns.is_none()) {
            let Origin::Run { clients, .. } = &self.origin else { return Ok(None) };
            let jobs = clients.plan().into_iter().flat_map(|plan| &plan.stages);
            let is_asked =
                jobs.flat_map(|stage| &stage.jobs).any(|job| matches!(job.work, Work::ReadBack(_)));
            return Ok(is_asked.then(ReadBackReport::default));
        }
        let naming = Naming::of(manifest);
        let (mut found, mut read, mut key) = (ReadBackReport::default(), 0, String::new());
        self.source.scan(&mut |op| {
            if !stages.iter().any(|stage| stage.index == op.stage.0) {
                return;
            }
            read += 1;
            let count = match op.outcome {
                ErrorClass::Ok => return,
                ErrorClass::NotFound => &mut found.lost_count,
                ErrorClass::Corrupt | ErrorClass::Truncated => &mut found.wrong_count,
                _ => &mut found.unread_count,
            };
            *count += 1;
            if found.objects.len() < NAMED_MAX {
                naming.write(manifest, op, &mut key);
                let outcome = op.outcome.name().to_owned();
                found.objects.push(ReadBackObject { key: key.clone(), outcome });
            }
        })?;
        found.objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Some(ReadBackReport { objects_count: Some(read), ..found }))
    }
}
