//! What became of writes that were acknowledged: the reads of the stage that reads them back.

use plimsoll_analysis::OpSource;
use plimsoll_model::{ErrorClass, ObjectId};
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
                if let Some(name) = op.object.and_then(|id| named(&stages, id)) {
                    key.clone_from(name);
                }
                let outcome = op.outcome.name().to_owned();
                found.objects.push(ReadBackObject { key: key.clone(), outcome });
            }
        })?;
        found.objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Some(ReadBackReport { objects_count: Some(read), ..found }))
    }
}

/// Returns what the target calls an object, where the record holds it.
fn named<'a>(stages: &[&'a Stage], id: ObjectId) -> Option<&'a String> {
    let number = format!("object/{}/{}", id.owner().0, id.number());
    stages.iter().find_map(|stage| stage.server_names.get(&number))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{StageKind, WorkerId};
    use plimsoll_record::schema::LoopModel;

    use super::*;

    #[test]
    fn what_the_target_gave_a_name_is_found_by_its_number() {
        let begun = Stage::begun(1, StageKind::Prepare, "read-back", LoopModel::Closed, (2, 1));
        let (key, name) = ("object/3/14".to_owned(), "4,06b32fb42d".to_owned());
        let stage = Stage { server_names: [(key, name)].into(), ..begun };
        let of = |owner, number| named(&[&stage], ObjectId::new(WorkerId(owner), number)).cloned();
        assert_eq!(of(3, 14).as_deref(), Some("4,06b32fb42d"));
        assert_eq!(of(14, 3), None);
    }
}
