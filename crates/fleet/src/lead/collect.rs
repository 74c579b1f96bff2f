//! What agents have kept of a run whose coordinator lost them, or died, becomes part of its record.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_conduct::{CallerError, Observer, Stop, in_one_line};
use plimsoll_model::{Moment, RunId, SharedClock, WallTime};
use plimsoll_record::schema::{Manifest, Recorder, RunState};
use plimsoll_record::{OpLog, OpLogWriter, RunDirectory, Staging, SummaryCounter};

use super::gather::{Clocks, Count, Handed, STAGING, UNSTARTED, clocks_of, kept_losses, shifted};
use super::{FleetSettings, Lead};
use crate::fabric::{Arrivals, Fabric};
use crate::roll::Recruit;
use crate::wire::{Answer, Order};

/// What came of collecting.
#[derive(Debug, Default)]
pub struct Collected {
    /// Of whom the part is there now: names, and how many operations.
    pub agents: Vec<(String, u64)>,
    /// Of whom it is still missing, and why.
    pub missing: Vec<(String, String)>,
}

/// Adds to the record of a run what agents have kept of it. `recruits` are the agents that are
/// there.
pub fn collect(
    way: (Arc<dyn Fabric>, Arrivals),
    recruits: &[Recruit],
    directory: &RunDirectory,
    (clock, observer): (SharedClock, Arc<dyn Observer>),
    settings: FleetSettings,
) -> Result<Collected, CallerError> {
    let mut manifest = directory.read_manifest()?;
    let mut collected = Collected::default();
    let mut wanted: Vec<(usize, Recruit)> = Vec::new();
    for (index, agent) in manifest.agents.iter().enumerate() {
        if agent.rows_count.is_some() {
            continue;
        }
        let keeps = |recruit: &&Recruit| {
            let is_it = recruit.id.as_str() == agent.id || recruit.name == agent.name;
            is_it && recruit.about.kept.contains(&manifest.run_id)
        };
        let is_part = |recruit: &&Recruit| {
            recruit.name == agent.name && recruit.about.busy.as_ref() == Some(&manifest.run_id)
        };
        let why = match (recruits.iter().find(keeps), recruits.iter().any(|each| is_part(&each))) {
            (Some(recruit), _) => {
                wanted.push((index, recruit.clone()));
                continue;
            }
            (None, true) => {
                "it is still part of the run, and leaves it 10 s after the coordinator's end; then \
                 try again"
            }
            (None, false) => "no agent of that name keeps a part",
        };
        collected.missing.push((agent.name.clone(), why.to_owned()));
    }
    if wanted.is_empty() {
        return Ok(collected);
    }
    let (places, called): (Vec<usize>, Vec<Recruit>) = wanted.into_iter().unzip();
    let run = manifest.run_id.clone();
    let receipt = |place: &usize| manifest.agents[*place].receipt.clone().unwrap_or_default();
    let ids = called.iter().map(|recruit| recruit.id.clone());
    way.0.make(&ids.zip(places.iter().map(receipt)).collect::<Vec<_>>())?;
    let mut lead = Lead::connect(way, called, run, (clock, observer), settings);
    lead.take_kept(directory, &mut manifest, &places, &mut collected)?;
    recount(directory, &mut manifest)?;
    lead.release(&Stop::default())?;
    lead.dismiss();
    Ok(collected)
}

impl Lead {
    /// Has agents hand in what they have kept, and adds it to the record; those whose part cannot
    /// be had go on keeping it.
    fn take_kept(
        &mut self,
        directory: &RunDirectory,
        manifest: &mut Manifest,
        places: &[usize],
        collected: &mut Collected,
    ) -> Result<(), CallerError> {
        self.step(|_| Order::Collect, &|| false)?;
        let staging_place = directory.path().join(STAGING);
        // What another try has left is not of this one.
        if staging_place.exists() {
            Staging::left(&staging_place).remove()?;
        }
        let staging = Staging::begin(&staging_place)?;
        let endpoints: Vec<String> = manifest.endpoints().cloned().collect();
        let id = RunId::parse(&manifest.run_id)?;
        let epoch = WallTime::from_unix_ns(manifest.started_unix_ns);
        let log = OpLogWriter::new(directory, &id, epoch, &endpoints).without_saving();
        let mut log = log.behind_others()?;
        for (at, answer) in self.answers() {
            let name = self.agents[at].name.clone();
            let why = match answer {
                Some(Answer::HandedIn { files, losses }) => {
                    let own = staging_place.join(at.to_string());
                    let of = &manifest.agents[places[at]];
                    let clocks = clocks_of(&of.clock, manifest.stages.len());
                    let receipt = of.receipt.clone();
                    let agent = self.recruits[at].id.clone();
                    let (index, counted) = (places[at], Vec::new());
                    let handed = Handed { index, agent, files, clocks, counted, receipt };
                    let part = self.source(manifest, Stop::default()).fetch(&handed, &own);
                    let part = part.map_err(|error| in_one_line(&error));
                    match part {
                        Ok(part) => {
                            let rows = append(&mut log, &part, &handed.clocks)?;
                            let agent = &mut manifest.agents[places[at]];
                            agent.rows_count = Some(rows);
                            agent.losses = kept_losses(losses);
                            let mut jobs = manifest.stages.iter().flat_map(|stage| &stage.jobs);
                            if jobs.any(|job| job.schedule.is_some()) {
                                agent.losses.push(UNSTARTED.to_owned());
                            }
                            for target in 0..manifest.targets().count() {
                                directory.append_names(target, &part)?;
                            }
                            collected.agents.push((name, rows));
                            continue;
                        }
                        Err(why) => why,
                    }
                }
                Some(Answer::Failed { why }) => why,
                Some(_) => "it answers something else".to_owned(),
                None => "it was lost meanwhile".to_owned(),
            };
            self.give_up(at, why.clone());
            collected.missing.push((name, why));
        }
        log.finish()?;
        Ok(staging.remove()?)
    }
}

/// Adds the operations of a part by the run's clock, and returns how many they are.
fn append(log: &mut OpLogWriter, part: &RunDirectory, clocks: &Clocks) -> Result<u64, CallerError> {
    let mut failed: Option<CallerError> = None;
    let rows = OpLog::open(part)?.scan(&mut |op| {
        let clock = clocks[usize::from(op.stage.0)];
        let (None, Some(clock)) = (&failed, clock) else { return };
        failed = log.append(&[shifted(op, clock)]).err().map(Into::into);
    })?;
    failed.map_or(Ok(rows), Err)
}

/// Makes counts, summary and state of a run those of its log.
fn recount(directory: &RunDirectory, manifest: &mut Manifest) -> Result<(), CallerError> {
    let mut counter = SummaryCounter::new(directory);
    let mut failed = Ok(());
    let mut stages: BTreeMap<u8, Count> = BTreeMap::new();
    let mut jobs: BTreeMap<(u8, u8), Count> = BTreeMap::new();
    let rows_count = OpLog::open(directory)?.scan(&mut |op| {
        if failed.is_ok() {
            failed = counter.add(op);
        }
        stages.entry(op.stage.0).or_default().add(op);
        jobs.entry((op.stage.0, op.job.0)).or_default().add(op);
    })?;
    failed?;
    for (index, stage) in manifest.stages.iter_mut().enumerate() {
        let index = index as u8;
        let Some(count) = stages.get(&index) else { continue };
        stage.ops_count = Some(count.ops);
        stage.ops_failed_count = Some(count.failed);
        stage.bytes = Some(count.bytes);
        stage.started_ns = stage.started_ns.or(count.first.map(Moment::as_ns));
        stage.ended_ns = stage.ended_ns.or(Some(count.last.as_ns()));
        // The sum of the hashes of all operations is not known of a part of them.
        stage.stream_hash = None;
        for (at, job) in stage.jobs.iter_mut().enumerate() {
            let Some(count) = jobs.get(&(index, at as u8)) else { continue };
            job.ops_count = Some(count.ops);
            job.ops_failed_count = Some(count.failed);
            job.bytes = Some(count.bytes);
            if let Some(schedule) = &mut job.schedule {
                let issued = count.measured;
                // What never started is in no log; agents that told the end of the stage told it.
                let skipped = schedule.skipped_count.unwrap_or(0);
                schedule.offered_count = Some(issued.offered_count.saturating_add(skipped));
                schedule.late_count = Some(issued.late_count);
                schedule.delay_max_ns = Some(issued.delay_max.as_nanos() as u64);
            }
        }
    }
    let parts_count = directory.files()?.iter().filter(|file| file.name.contains('/')).count();
    let wait_ns = manifest.recorder.map_or(0, |recorder| recorder.wait_ns);
    manifest.recorder = Some(Recorder { rows_count, parts_count: parts_count as u32, wait_ns });
    if manifest.state == RunState::Running {
        manifest.state = RunState::Interrupted;
        let why = "its coordinator ended before it; its agents' parts were collected afterwards";
        manifest.state_reason = Some(why.to_owned());
    }
    counter.write()?;
    Ok(directory.write_manifest(manifest)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_schedule_of_a_record_is_counted_again_with_its_log() {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/s3-mixed");
        let committed = RunDirectory::open(&from).unwrap();
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ops")).unwrap();
        for file in committed.files().unwrap() {
            std::fs::copy(from.join(&file.name), place.path().join(&file.name)).unwrap();
        }
        let directory = RunDirectory::open(place.path()).unwrap();
        let mut manifest = directory.read_manifest().unwrap();
        let kept = |manifest: &mut Manifest| manifest.stages[1].jobs[0].schedule.clone().unwrap();
        let told = kept(&mut manifest);
        assert!(told.offered_count > Some(100) && told.late_count.is_some(), "{told:?}");
        // As a coordinator leaves it that died in the stage, and another before its last agents.
        for (offered, skipped) in [(None, None), (Some(10), Some(3))] {
            let schedule = manifest.stages[1].jobs[0].schedule.as_mut().unwrap();
            (schedule.offered_count, schedule.skipped_count) = (offered, skipped);
            (schedule.late_count, schedule.delay_max_ns) = (None, None);
            recount(&directory, &mut manifest).unwrap();
            let again = kept(&mut manifest);
            let issued = told.offered_count.unwrap() - told.skipped_count.unwrap_or(0);
            assert_eq!(again.offered_count, Some(issued + skipped.unwrap_or(0)));
            assert_eq!(again.skipped_count, skipped);
            assert_eq!(
                (again.late_count, again.delay_max_ns),
                (told.late_count, told.delay_max_ns)
            );
        }
    }
}
