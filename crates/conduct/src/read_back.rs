//! Around the stage that reads back what was acknowledged: waiting until the stores answer again,
//! and what a target calls the objects that are not as they were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{Driver, DriverError, Operation, Session};
use plimsoll_engine::{OpSink, OpSinkError, PastSink, ServerNames};
use plimsoll_model::{Moment, OpRecord, PackedOp};
use plimsoll_report::format;
use plimsoll_workload::objects::ObjectsJob;
use plimsoll_workload::plan::{self, SetIndex};

use crate::targets::AnyDriver;
use crate::{ConductError, Recording, Target};

/// A store that does not answer for so long is not waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An answer that takes longer is none.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// So many objects of each set are asked for, spread over it, as they lie on several servers.
const ASKED_OF_SET: u64 = 16;
/// So many objects that are not as they were have their names kept.
const NAMES_MAX: usize = 1_000;

/// Tells whether a stage reads back what was acknowledged, and does nothing else.
pub(crate) fn is_read_back(stage: &plan::Stage) -> bool {
    let reads_back = |job: &plan::Job| matches!(job.work, plan::Work::ReadBack(_));
    !stage.jobs.is_empty() && stage.jobs.iter().all(reads_back)
}

/// What is asked for to learn whether a store answers.
pub(crate) struct Asking<'a> {
    driver: &'a AnyDriver,
    work: &'a ObjectsJob,
    names: &'a ServerNames,
}

/// Returns what is asked of the jobs of a stage.
pub(crate) fn asking<'a>(
    targets: &'a [Target],
    placed: &[plan::PlacedJob],
    works: &'a [Arc<ObjectsJob>],
    names: &'a ServerNames,
) -> Vec<Asking<'a>> {
    let asking = placed.iter().zip(works).filter_map(|(placed, work)| {
        let driver = &targets[placed.target.0].store()?.driver;
        Some(Asking { driver, work, names })
    });
    asking.collect()
}

/// Waits until every store answers about some of the objects that are to be read back, whatever it
/// says of them, but not for longer than a minute; somebody who ends the run ends the wait.
pub(crate) fn await_stores(
    recording: &Recording,
    asking: &[Asking<'_>],
) -> Result<(), ConductError> {
    if recording.time.virtual_time.is_some() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ConductError::event_loop)?;
    let began = recording.now();
    let mut told = false;
    loop {
        let asked = async {
            for of in asking {
                of.answers(recording).await?;
            }
            Ok::<(), DriverError>(())
        };
        let waited = |now: Moment| format::duration(now.since(began));
        match recording.stop.unless_stopped(&runtime, asked) {
            Err(_) => return Ok(()),
            Ok(Ok(())) => {
                if told {
                    let waited = waited(recording.now());
                    recording.observer.note(&format!("the store answers again after {waited}"));
                }
                return Ok(());
            }
            Ok(Err(error)) if recording.now().since(began) >= WAIT_MAX => {
                recording.observer.warn(&format!(
                    "the store has not answered for {}; reading back anyway: {}",
                    waited(recording.now()),
                    error.message
                ));
                return Ok(());
            }
            Ok(Err(error)) if !told => {
                told = true;
                recording.observer.note(&format!(
                    "waiting up to {} for the store before reading back what it acknowledged: {}",
                    format::duration(WAIT_MAX),
                    error.message
                ));
            }
            Ok(Err(_)) => recording.stop.rest(ANSWER_MAX),
        }
    }
}

impl Asking<'_> {
    /// Returns a failure that may pass, if there is one.
    async fn answers(&self, recording: &Recording) -> Result<(), DriverError> {
        let mut session = self.driver.open_sessions(&recording.time.clock, 1).remove(0);
        for index in self.work.work.sets() {
            let set = self.work.set(index);
            let mut key = String::new();
            for held in self.work.sample(index, ASKED_OF_SET) {
                match self.names.get(index, held.id, held.version).filter(|_| set.is_named) {
                    Some(name) => name.clone_into(&mut key),
                    None if set.is_named => continue,
                    None => set.keys.write(held.id, &mut key),
                }
                let bucket = set.buckets.name(set.bucket_of(held.id));
                let stat = Operation::Stat { key: &key, version: None };
                let asked = tokio::time::timeout(ANSWER_MAX, session.execute(bucket, stat)).await;
                let result = asked.map_or_else(|_| Err(late()), |completion| completion.result);
                if let Err(error) = result
                    && error.class.is_transient()
                {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

fn late() -> DriverError {
    let message = format!("no answer for {}", format::duration(ANSWER_MAX));
    DriverError::new(plimsoll_model::ErrorClass::Timeout, message)
}

/// Notes which objects are not as they were acknowledged, and hands on what is recorded.
pub(crate) struct Noting<'a> {
    sink: &'a mut dyn OpSink,
    /// What noted of; `None` in other stages.
    of: Option<Named<'a>>,
    noted: BTreeMap<String, String>,
}

/// What a target calls the objects of a stage, whose jobs work on these sets.
pub(crate) struct Named<'a> {
    pub(crate) names: &'a ServerNames,
    pub(crate) jobs: &'a [plan::Job],
}

impl<'a> Noting<'a> {
    pub(crate) fn new(sink: &'a mut dyn OpSink, of: Option<Named<'a>>) -> Self {
        Self { sink, of, noted: BTreeMap::new() }
    }

    /// Returns the names by what stands for the object where there is none.
    pub(crate) fn noted(self) -> BTreeMap<String, String> {
        self.noted
    }
}

impl Named<'_> {
    fn of(&self, op: &OpRecord) -> Option<(String, String)> {
        let id = op.object?;
        let sets: Vec<SetIndex> = self.jobs.get(usize::from(op.job.0))?.work.sets();
        let name = sets.iter().find_map(|set| self.names.get(*set, id, 0))?;
        Some((format!("object/{}/{}", id.owner().0, id.number()), name.to_owned()))
    }
}

impl OpSink for Noting<'_> {
    fn begun(&mut self, at: Moment) {
        self.sink.begun(at);
    }

    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        if let Some(of) = &self.of {
            let ops = ops.iter().map(OpRecord::from).filter(|op| !op.outcome.is_ok());
            let left = NAMES_MAX - self.noted.len();
            self.noted.extend(ops.filter_map(|op| of.of(&op)).take(left));
        }
        self.sink.append(ops)
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.sink.tick(now)
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        self.sink.past()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::KeptOps;
    use plimsoll_model::{ErrorClass, ObjectId, OpKind, WorkerId};
    use plimsoll_workload::plan::WorkloadFile;

    use super::*;

    fn read(number: u64, outcome: ErrorClass) -> PackedOp {
        let moment = Moment::from_ns(1_000);
        PackedOp::from(&OpRecord {
            object: Some(ObjectId::new(WorkerId(3), number)),
            outcome,
            ..OpRecord::plain(OpKind::Get, moment, moment)
        })
    }

    #[test]
    fn what_is_lost_has_the_name_that_the_target_gave_it() {
        let text = "schema: plimsoll.workload/2\nsets: {o: {count: 9, size: 1KiB}}\nstages:\n\
                    - {duration: 1s, jobs: [{work: {objects: [{put: o}]}}]}\n";
        let file = WorkloadFile::from_yaml("w", text).unwrap().with_read_back().unwrap();
        let plan = file.check().unwrap();
        let stage = plan.stages.iter().find(|stage| is_read_back(stage)).unwrap();
        assert_eq!(plan.stages.iter().filter(|stage| is_read_back(stage)).count(), 1);
        let mut names = ServerNames::default();
        for number in 0..4 {
            let id = ObjectId::new(WorkerId(3), number);
            names.note(SetIndex(0), id, 0, 1, &format!("5,0{number}aa"));
        }
        let mut kept = KeptOps::default();
        let mut noting = Noting::new(&mut kept, Some(Named { names: &names, jobs: &stage.jobs }));
        let ops = [
            read(0, ErrorClass::Ok),
            read(1, ErrorClass::NotFound),
            read(3, ErrorClass::Corrupt),
            // Nobody knows what that one is called.
            read(8, ErrorClass::NotFound),
        ];
        noting.append(&ops).unwrap();
        let noted: Vec<(String, String)> = noting.noted().into_iter().collect();
        let pair = |key: &str, name: &str| (key.to_owned(), name.to_owned());
        assert_eq!(noted, [pair("object/3/1", "5,01aa"), pair("object/3/3", "5,03aa")]);
        assert_eq!(kept.0.len(), 4);
    }
}
