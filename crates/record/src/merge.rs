//! Several runs, usually those of one client each, as one.

mod check;
mod clients;
mod error;
mod events;
mod stages;
mod unite;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, ObjectId, OpRecord, RunId, StageId, WallTime, WorkerId};

use self::check::check;
use self::clients::{Client, clients};
pub use self::error::MergeError;
use self::stages::{Column, Stages, check_jobs, columns, note_stages, stages};
use self::unite::leave_out_differences;
use crate::ops::OpLogWriter;
use crate::schema::{
    Agent, Cleanup, CleanupState, FirstError, Manifest, Recorder, RunState, Stage,
};
use crate::{RunDirectory, SummaryCounter};

/// What is said where a run is merged in which a store's own metrics were kept.
const SCRAPED_STAYS: &str =
    "the store's own metrics (--scrape) are not merged: they stay in the runs' own directories";

/// How long a merged run may be. A wrong clock makes longer ones.
const DAYS_MAX: u64 = 32;
const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// The tool whose records come from elsewhere: it has no seed, and numbers objects by their names.
const FOREIGN_TOOL: &str = "warp";
/// Where the workload repeats the seed.
const WORKLOAD_SEED: &str = "seed";
/// Where the workload says in which version it is written.
const WORKLOAD_VERSION: &str = "schema";
/// Reads every operation of a run.
pub type Scan<'a, E> = Box<dyn Fn(&mut dyn FnMut(&OpRecord)) -> Result<(), E> + 'a>;

/// A run that is to be merged with others.
pub struct MergePart<'a, E> {
    /// What is known about it; its stages say when it measured.
    pub manifest: Manifest,
    /// Which of its stages each stage number of its records belongs to, as an index into the
    /// manifest's list.
    pub stage_of: BTreeMap<StageId, usize>,
    /// How many worker numbers its records use.
    pub workers_count: u32,
    /// Reads its records.
    pub scan: Scan<'a, E>,
}

/// How the numbers of one part become those of the whole.
struct Shift {
    /// What is added to its moments.
    ns: u64,
    /// By their first worker as numbered in the part.
    clients: Vec<ClientShift>,
    endpoints: Vec<EndpointId>,
    stages: BTreeMap<StageId, StageId>,
}

/// How the workers of one client become those of the whole.
struct ClientShift {
    own_first: u32,
    workers_count: u32,
    first: u32,
    is_foreign: bool,
}

impl ClientShift {
    fn worker(&self, own: WorkerId) -> WorkerId {
        WorkerId(own.0 - self.own_first + self.first)
    }

    /// Returns the object in the whole; none where its owner has no number there.
    fn object(&self, own: ObjectId) -> Option<ObjectId> {
        // Objects of records made elsewhere are numbered by their names, whoever owns them.
        let owner = match self.is_foreign {
            true => Some(own.owner().0),
            false => (own.owner().0.checked_sub(self.own_first))
                .and_then(|owner| owner.checked_add(self.first)),
        };
        let owner = owner.filter(|owner| *owner <= ObjectId::OWNER_MAX)?;
        Some(ObjectId::new(WorkerId(owner), own.number()))
    }
}

impl Shift {
    fn of<E>(
        at: usize,
        part: &MergePart<'_, E>,
        (clients, columns): (&[Client], &[Column]),
        whole: &Manifest,
    ) -> Self {
        let place = |name: &String| {
            let position = whole.endpoints().position(|each| each == name);
            EndpointId(position.expect("the whole has every part's endpoints") as u16)
        };
        let stage = |(own, index): (&StageId, &usize)| {
            let column = columns.iter().position(|column| column.of_part(at) == Some(*index))?;
            Some((*own, StageId(column as u8)))
        };
        let own = clients.iter().filter(|client| client.part == at);
        let mut of_clients: Vec<ClientShift> = own
            .map(|client| ClientShift {
                own_first: client.own_first,
                workers_count: client.run.workers_count,
                first: client.run.worker_index_first,
                is_foreign: client.is_foreign,
            })
            .collect();
        of_clients.sort_by_key(|client| client.own_first);
        Self {
            ns: part.manifest.started_unix_ns - whole.started_unix_ns,
            clients: of_clients,
            endpoints: part.manifest.endpoints().map(place).collect(),
            stages: part.stage_of.iter().filter_map(stage).collect(),
        }
    }

    /// Returns whose worker that is; `None` if it is nobody's.
    fn client(&self, worker: WorkerId) -> Option<&ClientShift> {
        let after = self.clients.partition_point(|client| client.own_first <= worker.0);
        let client = self.clients.get(after.checked_sub(1)?)?;
        (worker.0 - client.own_first < client.workers_count).then_some(client)
    }

    fn apply(&self, client: &ClientShift, op: &OpRecord) -> OpRecord {
        let moment = |at: Moment| Moment::from_ns(at.as_ns().saturating_add(self.ns));
        // An endpoint that the manifest does not know is refused by the op log.
        let endpoint = self.endpoints.get(usize::from(op.endpoint.0)).copied();
        OpRecord {
            stage: self.stages[&op.stage],
            worker: client.worker(op.worker),
            endpoint: endpoint.unwrap_or(EndpointId(u16::MAX)),
            object: op.object.and_then(|object| client.object(object)),
            intended: moment(op.intended),
            start: moment(op.start),
            assigned: op.assigned.map(moment),
            first_byte: op.first_byte.map(moment),
            last_byte_sent: op.last_byte_sent.map(moment),
            end: moment(op.end),
            ..*op
        }
    }
}

/// What is worked out of the parts before anything is written.
struct Plan {
    /// The manifest of the whole as it begins.
    manifest: Manifest,
    /// Its stages, as the parts have them.
    columns: Vec<Column>,
    /// What it is made of.
    clients: Vec<Client>,
}

/// Makes one run in `path` of several, whatever their order: workers get new numbers, and moments
/// are moved to the earliest epoch by the wall clocks as recorded. Stages are matched in order; one
/// in which the parts measured for a time lasts only while all of them did. If it fails, it leaves
/// nothing behind.
pub fn merge<E: std::error::Error + 'static>(
    mut parts: Vec<MergePart<'_, E>>,
    path: &Path,
    run: &RunId,
    command_line: Vec<String>,
) -> Result<RunDirectory, MergeError<E>> {
    let plan = planned(&mut parts, run, command_line)?;
    let directory = RunDirectory::create(path, &plan.manifest)?;
    match fill(&directory, &parts, run, plan) {
        Ok(()) => Ok(directory),
        Err(error) => {
            // Why the merge failed matters more than what could not be removed.
            let _ = directory.discard();
            Err(error)
        }
    }
}

/// Puts the parts in order and returns the manifest of the whole as it begins, or why they cannot
/// be merged; nothing is written.
pub fn plan<E: std::error::Error + 'static>(
    parts: &mut [MergePart<'_, E>],
    run: &RunId,
    command_line: Vec<String>,
) -> Result<Manifest, MergeError<E>> {
    planned(parts, run, command_line).map(|plan| plan.manifest)
}

fn planned<E: std::error::Error + 'static>(
    parts: &mut [MergePart<'_, E>],
    run: &RunId,
    command_line: Vec<String>,
) -> Result<Plan, MergeError<E>> {
    // By the first of its clients, so that what was merged before makes no difference.
    parts.sort_by_cached_key(|part| {
        let clients = part.manifest.merged.iter().map(|client| &client.run_id);
        clients.min().unwrap_or(&part.manifest.run_id).clone()
    });
    check(parts)?;
    let mut clients = clients(parts)?;
    let columns = columns(parts)?;
    check_jobs(parts, &columns)?;
    let epoch = parts.iter().map(|part| part.manifest.started_unix_ns).min().unwrap_or_default();
    note_stages(&mut clients, parts, &columns, epoch);
    let made = stages(parts, &columns, &clients, epoch)?;
    let mut whole = manifest(parts, run, command_line, (&columns, made))?;
    leave_out_differences(parts, &columns, &mut clients, &mut whole);
    whole.merged = clients.iter().map(|client| client.run.clone()).collect();
    Ok(Plan { manifest: whole, columns, clients })
}

/// Writes the op log, the summary and the manifest of the whole.
fn fill<E: std::error::Error + 'static>(
    directory: &RunDirectory,
    parts: &[MergePart<'_, E>],
    run: &RunId,
    plan: Plan,
) -> Result<(), MergeError<E>> {
    let Plan { mut manifest, columns, clients } = plan;
    let endpoints: Vec<String> = manifest.endpoints().cloned().collect();
    let epoch = WallTime::from_unix_ns(manifest.started_unix_ns);
    let mut log = OpLogWriter::new(directory, run, epoch, &endpoints).without_saving();
    let mut counter = SummaryCounter::new(directory);
    for (at, part) in parts.iter().enumerate() {
        let shift = Shift::of(at, part, (&clients, &columns), &manifest);
        let mut written = Ok(());
        let run_id = || part.manifest.run_id.clone();
        let scanned = (part.scan)(&mut |op| {
            if written.is_err() || !shift.stages.contains_key(&op.stage) {
                return;
            }
            let Some(client) = shift.client(op.worker) else {
                let (worker, count) = (op.worker.0, part.workers_count);
                written = Err(MergeError::WorkerBeyond { run_id: run_id(), worker, count });
                return;
            };
            let op = shift.apply(client, op);
            if op.end.as_ns() > DAYS_MAX * DAY_NS {
                written = Err(MergeError::TooLong {
                    run_id: run_id(),
                    ended: epoch.after(Duration::from_nanos(op.end.as_ns())),
                    days: op.end.as_ns() / DAY_NS,
                    limit: DAYS_MAX,
                });
                return;
            }
            let counted = counter.add(&op).and_then(|()| log.append(&[op]));
            written = counted.and_then(|()| log.tick(op.end)).map_err(Into::into);
        });
        scanned.map_err(|source| MergeError::Read { run_id: run_id(), source })?;
        written?;
    }
    let totals = log.finish()?;
    let wait_ns = parts.iter().filter_map(|part| Some(part.manifest.recorder?.wait_ns)).sum();
    manifest.recorder =
        Some(Recorder { rows_count: totals.rows, parts_count: totals.parts, wait_ns });
    manifest.state = state(parts);
    counter.write()?;
    directory.write_manifest(&manifest)?;
    Ok(())
}

fn state<E>(parts: &[MergePart<'_, E>]) -> RunState {
    let states = || parts.iter().map(|part| part.manifest.state);
    if states().all(|state| state == RunState::Complete) {
        RunState::Complete
    } else if states().any(|state| state == RunState::Failed) {
        RunState::Failed
    } else {
        RunState::Interrupted
    }
}

/// Says whose share of the work is missing of a run that agents carried out.
fn lost(manifest: &Manifest) -> Option<String> {
    let is_lost = |agent: &&Agent| agent.lost.is_some() || agent.rows_count.is_none();
    let lost: Vec<&str> =
        manifest.agents.iter().filter(is_lost).map(|agent| &*agent.name).collect();
    let (id, names) = (&manifest.run_id, lost.join(", "));
    (!lost.is_empty()).then(|| {
        format!("DEGRADED: run {id} lost agents ({names}), and their share of the work is missing")
    })
}

/// Returns the manifest of the whole with what the parts have in common, as if they had all of it.
fn manifest<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    run: &RunId,
    command_line: Vec<String>,
    (columns, made): (&[Column], Stages),
) -> Result<Manifest, MergeError<E>> {
    let manifests = || parts.iter().map(|part| &part.manifest);
    let epoch = manifests().map(|manifest| manifest.started_unix_ns).min().unwrap_or_default();
    let mut whole = parts[0].manifest.clone();
    whole.run_id = run.as_str().to_owned();
    whole.state = RunState::Running;
    whole.state_reason = manifests().find_map(|manifest| manifest.state_reason.clone());
    whole.command_line = command_line;
    whole.started_unix_ns = epoch;
    whole.started_at = WallTime::from_unix_ns(epoch).to_string();
    whole.recorder = None;
    whole.cleanup = Cleanup {
        state: CleanupState::NotNeeded,
        objects_removed_count: None,
        files_removed_count: None,
        took_ns: None,
    };
    unite_endpoints(parts, &mut whole)?;
    // Each part owned a prefix of its own, and cleans it itself.
    whole.targets_mut().for_each(|target| target.prefix = None);
    whole.advice = made.advice.into_iter().chain(manifests().filter_map(lost)).collect();
    whole.notes = distinct(manifests().flat_map(|manifest| &manifest.notes));
    whole.stages = made.stages;
    let count = whole.endpoints().count() as u16;
    let targets: Vec<(usize, usize)> = whole.endpoints_by_target().collect();
    for (stage, column) in whole.stages.iter_mut().zip(columns) {
        let Some((part, _)) = column.own(parts).next() else { continue };
        for job in &mut stage.jobs {
            let own = parts[part].manifest.target_of(job.endpoint_first);
            let of = own.and_then(|at| targets.get(at)).filter(|_| targets.len() > 1);
            (job.endpoint_first, job.endpoints_count) =
                of.map_or((0, count), |(first, count)| (*first as u16, *count as u16));
        }
    }
    whole.first_errors = first_errors(parts, columns, epoch);
    whole.events = events::events(parts, columns, epoch);
    // Each was read by one client's clock; a merged run is about what all of them did.
    whole.scraped = Vec::new();
    let is_said = whole.notes.iter().any(|note| note == SCRAPED_STAYS);
    if !is_said && manifests().any(|manifest| !manifest.scraped.is_empty()) {
        whole.notes.push(SCRAPED_STAYS.to_owned());
    }
    Ok(whole)
}

/// Returns the first errors of all parts in the order of their moments, each in the stage of the
/// whole: where clients were not at the same stage at once, the moment would not tell.
fn first_errors<E>(parts: &[MergePart<'_, E>], columns: &[Column], epoch: u64) -> Vec<FirstError> {
    let mut errors = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let later = part.manifest.started_unix_ns - epoch;
        for error in &part.manifest.first_errors {
            let during = |stage: &Stage| {
                error.at_ns.is_some_and(|at| {
                    stage.started_ns.is_some_and(|started| started <= at)
                        && stage.ended_ns.is_some_and(|ended| at <= ended)
                })
            };
            let own = error.stage_index.map(usize::from);
            let own = own.or_else(|| part.manifest.stages.iter().position(during));
            let is_own = |column: &Column| own.is_some() && column.of_part(at) == own;
            let stage = columns.iter().position(is_own);
            let at_ns = error.at_ns.map(|at| at + later);
            let stage_index = stage.map(|stage| stage as u8);
            errors.push(FirstError { at_ns, stage_index, ..error.clone() });
        }
    }
    errors.sort_by_key(|error| error.at_ns);
    errors
}

fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(*text)).cloned().collect()
}

/// Gives the whole all endpoints: in the order of the parts where it is the same in all, otherwise
/// sorted, so that the order of the parts does not matter. Targets stay apart where each part has
/// the like of them and no address is of two.
fn unite_endpoints<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    whole: &mut Manifest,
) -> Result<(), MergeError<E>> {
    let manifests = || parts.iter().map(|part| &part.manifest);
    if manifests().any(|manifest| !manifest.endpoints().eq(whole.endpoints())) {
        let kinds =
            |manifest: &Manifest| manifest.targets().map(|target| target.kind).collect::<Vec<_>>();
        let is_alike = manifests().all(|manifest| kinds(manifest) == kinds(whole));
        let of_target = |at: usize| -> BTreeSet<String> {
            let of = manifests().filter_map(|manifest| manifest.targets().nth(at));
            of.flat_map(|target| target.endpoints.iter().cloned()).collect()
        };
        let own: Vec<_> = (0..whole.targets().count()).map(of_target).collect();
        let all: BTreeSet<String> =
            manifests().flat_map(|manifest| manifest.endpoints().cloned()).collect();
        if is_alike && own.iter().map(BTreeSet::len).sum::<usize>() == all.len() {
            for (target, own) in whole.targets_mut().zip(own) {
                target.endpoints = own.into_iter().collect();
            }
        } else {
            whole.target.endpoints = all.into_iter().collect();
            whole.more_targets.clear();
        }
    }
    if whole.endpoints().count() > usize::from(u16::MAX) {
        return Err(MergeError::TooMany { what: "endpoints", limit: u32::from(u16::MAX) });
    }
    Ok(())
}
