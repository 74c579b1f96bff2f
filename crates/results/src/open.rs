//! A record as it is read back: a run directory, or a file of warp's.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_analysis::{OpSource, Stages, Survey};
use plimsoll_foreign::warp::aggregated::{self, Aggregated};
use plimsoll_foreign::warp::raw::{LossKind, ScanEnd};
use plimsoll_foreign::warp::{self, FileKind};
use plimsoll_model::{EndpointId, Moment, OpKind, OpOutline, OpRecord, StageId, StageKind, Visit};
use plimsoll_record::schema::{Manifest, RunState as RecordedState, sum_known};
use plimsoll_record::{OpLog, ReadManifest, RecordError, RunDirectory, Salvage, is_alive};
use plimsoll_report::{
    AgentReport, RunState, lost, numbered_title, numbers_of_titles, stage_title,
};

use crate::agents::agents;
use crate::clients::{Clients, agents_of_workers};
use crate::error::{AskedFor, ReadError, ResultsError};
use crate::names::client_names;
use crate::threads::threads_count;
use crate::warp_file::{Bytes, WarpFile};

/// What is not said of a record that has holes.
pub(crate) const UNTOLD: &str =
    "gaps, outages and changes of the rate are not told, as parts of the record are missing";

/// What lies at a path.
pub enum Opened {
    /// Every operation.
    Record(Box<Record>),
    /// Sums and figures that warp made.
    Aggregated(Box<Aggregated>),
}

/// A record with every operation, after a first look at all of them.
pub struct Record {
    /// As it was given.
    pub path: PathBuf,
    /// Who made it.
    pub origin: Origin,
    /// Where its operations are read from.
    pub source: Source,
    /// The first look.
    pub survey: Survey,
    /// In the order in which they began.
    pub stages: Vec<RecordStage>,
    /// The addresses, by their number.
    pub endpoints: Vec<String>,
    /// The clients by number; empty when the record does not tell them apart.
    pub clients: Vec<String>,
    /// The client of each worker by its number, of a record whose stages do not differ in it.
    pub client_of: Vec<u16>,
    /// The same by the stages of a run that agents carried out; empty where none did.
    pub agent_of: Vec<Vec<u16>>,
    /// What could not be read, a sentence each, and what else is to be known of it.
    pub losses: Vec<String>,
    /// Whether all operations that were recorded are there.
    pub is_whole: bool,
    /// Whether some are missing in the midst, so that nothing can be said of the time around them.
    pub has_holes: bool,
}

/// Who made a record.
pub enum Origin {
    /// A run of ours.
    Run {
        /// Where it lies.
        directory: RunDirectory,
        /// What is known of it, with the bounds of stages that a killed run did not write down, as
        /// far as its operations tell.
        manifest: Box<Manifest>,
        /// Who ran it.
        clients: Clients,
    },
    /// warp, with everything its file says beside the operations.
    Warp {
        /// How its file ends.
        end: Box<ScanEnd>,
    },
}

/// A stretch of the record that is analysed by itself.
#[derive(Clone, Debug)]
pub struct RecordStage {
    /// What it is called.
    pub name: String,
    /// The same as a report shows it: with the number of its repetition, and that among stages of
    /// one name, from the second on.
    pub title: String,
    /// Which one it is of those that have its name and repetition, 1-based.
    pub number_of_title: u32,
    /// What it is for.
    pub kind: StageKind,
    /// Its place in the manifest of a run of ours.
    pub index: usize,
    /// Its numbers in the records.
    pub stages: Stages,
    /// When it began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// How many workers it had.
    pub workers: u32,
}

/// Where the operations are read from.
pub enum Source {
    /// A run's op log.
    Log(OpLog),
    /// A raw file of warp's.
    Warp(Box<WarpFile>),
}

impl OpSource for Source {
    type Error = ReadError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), ReadError> {
        match self {
            Self::Log(log) => log.scan(visit).map(|_| ()).map_err(ReadError::from),
            Self::Warp(file) => file.scan(visit),
        }
    }

    fn threads(&self) -> usize {
        match self {
            Self::Log(log) => log.threads(),
            Self::Warp(file) => file.threads(),
        }
    }

    fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<(), ReadError> {
        match self {
            Self::Log(log) => log.scan_apart(visits).map(|_| ()).map_err(ReadError::from),
            Self::Warp(file) => file.scan_apart(visits),
        }
    }

    fn scan_outlines(&self, visits: &mut [&mut Visit<'_, OpOutline>]) -> Result<(), ReadError> {
        match self {
            Self::Log(log) => log.scan_outlines(visits).map(|_| ()).map_err(ReadError::from),
            Self::Warp(file) => file.scan_outlines(visits),
        }
    }
}

/// Says what is missing of a run that lost agents.
pub fn degraded(manifest: &Manifest) -> Option<String> {
    let lost = lost(&agents(manifest))?;
    Some(format!("DEGRADED: {lost}, so its rates are partial"))
}

impl Record {
    /// Returns what a stage is called in a report; nothing of one that the record does not have.
    pub(crate) fn stage_title(&self, id: StageId) -> &str {
        let own = self.stages.iter().find(|stage| stage.stages.contains(id));
        own.map_or("", |stage| &stage.title)
    }

    /// Opens what must hold every operation.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        match open(path)? {
            Opened::Record(record) => Ok(*record),
            Opened::Aggregated(_) => Err(only_sums(path)),
        }
    }

    /// Opens the record of a run in its directory.
    pub fn of_run(directory: &RunDirectory) -> Result<Self, ResultsError> {
        of_run(directory.path(), directory.clone())
    }

    /// Returns what is known of a run of ours.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.origin {
            Origin::Run { manifest, .. } => Some(manifest),
            Origin::Warp { .. } => None,
        }
    }

    /// Says what is missing of a run that lost agents, where whoever shows it has no place for it.
    pub fn degraded(&self) -> Option<String> {
        degraded(self.manifest()?)
    }

    /// Refuses a record of which no operation is left, though there were some.
    pub fn require_operations(&self) -> Result<(), ResultsError> {
        let were_some = !self.losses.is_empty()
            || self.manifest().is_some_and(|manifest| {
                manifest.stages.iter().any(|stage| stage.ops_count > Some(0))
            });
        if were_some && self.survey.each().next().is_none() {
            return Err(ResultsError::Nothing(format!(
                "no operation of {} can be read: all parts of its op log are damaged or missing",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Returns the endpoint of that name, or of that host and port.
    pub fn endpoint(&self, host: &str) -> Result<EndpointId, ResultsError> {
        let without_scheme =
            |name: &str| name.split_once("://").map_or(name, |(_, rest)| rest).to_owned();
        let same = |name: &String| {
            name == host || without_scheme(name).trim_end_matches('/') == without_scheme(host)
        };
        let position = self.endpoints.iter().position(same);
        position
            .map(|position| EndpointId(position as u16))
            .ok_or_else(|| self.has_not(AskedFor::Endpoint, &self.endpoints.join(", ")))
    }

    /// Returns the error that the record has only others of what was asked for.
    pub(crate) fn has_not(&self, field: AskedFor, known: &str) -> ResultsError {
        let known = if known.is_empty() { "nothing" } else { known };
        ResultsError::Asked { field, reason: format!("{} has {known}", self.path.display()) }
    }
}

/// Opens a run directory, a file of warp's, or `-`.
pub fn open(path: &Path) -> Result<Opened, ResultsError> {
    if path.is_dir() {
        let directory = RunDirectory::open(path)?;
        return of_run(path, directory).map(|record| Opened::Record(Box::new(record)));
    }
    let bytes = Bytes::at(path)?;
    let kind = warp::detect(bytes.reader()?).map_err(|source| bytes.failed(source))?;
    Ok(match kind {
        FileKind::Raw => Opened::Record(Box::new(of_warp(path, bytes)?)),
        FileKind::Aggregated => {
            let read = aggregated::read(bytes.reader()?).map_err(|source| bytes.failed(source));
            Opened::Aggregated(Box::new(read?))
        }
    })
}

/// Refuses an aggregated file of warp's.
pub fn only_sums(path: &Path) -> ResultsError {
    ResultsError::Nothing(format!(
        "{} holds warp's sums and figures, not the operations; `plimsoll as warp analyze` prints \
         them, and `plimsoll as warp cmp` compares them",
        path.display()
    ))
}

/// Returns the runs below each path: itself, or those in it if it is a directory of runs.
pub fn runs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ResultsError> {
    let mut runs = Vec::new();
    for path in paths {
        if !path.is_dir() || path.join("run.json").exists() {
            runs.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
        let failed = |source| ReadError::Place { place: path.display().to_string(), source };
        let mut inside: Vec<PathBuf> = entries.map_err(failed)?;
        inside.retain(|path| path.join("run.json").exists() || is_raw_name(path));
        if inside.is_empty() {
            let sentence = format!("{} holds neither a run nor runs", path.display());
            return Err(ResultsError::Nothing(sentence));
        }
        inside.sort();
        runs.append(&mut inside);
    }
    Ok(runs)
}

fn is_raw_name(path: &Path) -> bool {
    path.file_name().unwrap_or_default().to_string_lossy().ends_with(".csv.zst")
}

fn of_run(path: &Path, directory: RunDirectory) -> Result<Record, ResultsError> {
    let ReadManifest { mut manifest, has_checksum } = directory.read_manifest_checked()?;
    let Salvage { log, mut losses, mut has_holes } = OpLog::salvage(&directory)?;
    let mut log = log.read_by(threads_count());
    let (source, survey) = loop {
        let source = Source::Log(log);
        match Survey::of(&source) {
            Ok(survey) => break (source, survey),
            Err(ReadError::Record(damage)) => {
                let (RecordError::Damaged { path: part, .. }, Source::Log(mut rest)) =
                    (&damage, source)
                else {
                    return Err(damage.into());
                };
                losses.push(rest.leave_out(&part.clone(), &damage));
                has_holes = true;
                log = rest;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if losses.is_empty() {
        losses.extend(missing(&manifest, &survey));
        has_holes = !losses.is_empty();
    }
    // Of a merged record the report tells how many are missing.
    let counted = counted(&manifest).filter(|_| !manifest.merged.is_empty());
    let misses_some = counted.is_some_and(|counted| counted != held(&survey));
    has_holes |= misses_some;
    let is_whole = losses.is_empty() && !misses_some;
    losses.extend(has_holes.then(|| UNTOLD.to_owned()));
    if !has_checksum {
        losses.push(
            "run.json has no checksum, as somebody took it out: damage to it would not be seen"
                .to_owned(),
        );
    }
    let stages = run_stages(&manifest, &survey);
    if stages.is_empty() && manifest.state == RecordedState::Running {
        return Err(ResultsError::Nothing(nothing_saved(path, &manifest)));
    }
    for stage in &stages {
        let entry = &mut manifest.stages[stage.index];
        entry.started_ns.get_or_insert(stage.started.as_ns());
        entry.ended_ns.get_or_insert(stage.ended.as_ns());
    }
    let clients = Clients::of(&manifest);
    Ok(Record {
        path: path.to_path_buf(),
        endpoints: manifest.endpoints().cloned().collect(),
        clients: client_names(&manifest),
        client_of: clients.of_workers(),
        agent_of: agents_of_workers(&manifest),
        origin: Origin::Run { directory, manifest: Box::new(manifest), clients },
        source,
        survey,
        stages,
        losses,
        is_whole,
        has_holes,
    })
}

/// Says what there is of a run that was killed before anything of its op log was saved.
fn nothing_saved(path: &Path, manifest: &Manifest) -> String {
    let begun = manifest.stages.last().map(|stage| &*stage.name);
    let got = begun.map_or("had begun no stage".to_owned(), |name| format!("was in stage {name}"));
    let (path, since) = (path.display(), &manifest.started_at);
    if !manifest.agents.is_empty() {
        return format!(
            "{path}: the run began at {since}, {got}, and its coordinator was killed or is still \
             at work; what its agents recorded is with them (`plimsoll fleet collect {path}` \
             fetches it, `plimsoll clean {path}` removes what the run left in the store)"
        );
    }
    format!(
        "{path}: the run began at {since}, {got}, and was killed or is still going on; no \
         operation of it was saved, as that happens once a second, so there is nothing to analyse \
         (`plimsoll clean {path}` removes what it left in the store)"
    )
}

/// Tells of operations that were recorded and are not in the op log, where no part of it is known
/// to be missing: the last parts leave no gap.
fn missing(manifest: &Manifest, survey: &Survey) -> Option<String> {
    let (held, recorded) = (held(survey), manifest.recorder?.rows_count);
    (held != recorded).then(|| {
        format!(
            "the op log holds {held} operations, but {recorded} were recorded: parts are missing"
        )
    })
}

/// Returns whether a run came to its own end, and with all of its agents.
pub(crate) fn state(
    manifest: &Manifest,
    agents: &[AgentReport],
    directory: &RunDirectory,
) -> Result<RunState, ReadError> {
    Ok(match manifest.state {
        RecordedState::Complete if agents.iter().any(AgentReport::is_lost) => RunState::Degraded,
        RecordedState::Complete => RunState::Complete,
        RecordedState::Interrupted => RunState::Interrupted,
        RecordedState::Failed => RunState::Failed,
        RecordedState::Running if is_alive(directory.path())? => RunState::Running,
        RecordedState::Running => RunState::Killed,
    })
}

/// Returns how many operations are there.
fn held(survey: &Survey) -> u64 {
    survey.each().flat_map(|(_, stage)| stage.kinds()).map(|kind| kind.ops).sum()
}

/// Returns how many the workers counted; `None` where those of a stage are not known.
pub(crate) fn counted(manifest: &Manifest) -> Option<u64> {
    sum_known(manifest.stages.iter().map(|stage| stage.ops_count))
}

/// Returns the stages of a run; one that was killed has them as far as its operations tell.
pub(crate) fn run_stages(manifest: &Manifest, survey: &Survey) -> Vec<RecordStage> {
    let stage = |(index, entry): (usize, &plimsoll_record::schema::Stage)| {
        let stages = Stages::from(StageId(entry.index));
        let seen = survey.stages(stages);
        let started = entry.started_ns.map(Moment::from_ns).or(seen.started())?;
        let ended = entry.ended_ns.map(Moment::from_ns).or(seen.ended()).unwrap_or(started);
        let (name, kind, workers) = (entry.name.clone(), entry.kind, entry.workers_count);
        let title = stage_title(&name, entry.iteration);
        let number_of_title = 1;
        Some(RecordStage {
            name,
            title,
            number_of_title,
            kind,
            index,
            stages,
            started,
            ended,
            workers,
        })
    };
    let mut stages: Vec<RecordStage> =
        manifest.stages.iter().enumerate().filter_map(stage).collect();
    // Stages may share a name, and their titles must differ.
    let titles: Vec<String> = stages.iter().map(|stage| stage.title.clone()).collect();
    for (stage, number) in stages.iter_mut().zip(numbers_of_titles(&titles)) {
        stage.number_of_title = number;
        stage.title = numbered_title(&stage.title, number);
    }
    stages
}

fn of_warp(path: &Path, bytes: Bytes) -> Result<Record, ResultsError> {
    let file = WarpFile::new(bytes);
    let survey = Survey::of(&file)?;
    let end = file.end().expect("the survey has read the file to its end");
    let stages = warp_stages(&survey);
    let names = file.names().clone();
    let several = names.clients.len() > 1;
    Ok(Record {
        path: path.to_path_buf(),
        endpoints: names.endpoints,
        clients: if several { names.clients } else { Vec::new() },
        client_of: names.workers.iter().map(|worker| worker.client).collect(),
        agent_of: Vec::new(),
        losses: end.losses.iter().map(ToString::to_string).collect(),
        is_whole: end.losses.iter().all(|loss| loss.what != LossKind::Truncated),
        has_holes: false,
        origin: Origin::Warp { end: Box::new(end) },
        source: Source::Warp(Box::new(file)),
        survey,
        stages,
    })
}

/// Returns the stages of a raw file, which tells of none: kinds that overlap in time belong
/// together, and the last of such groups is what was measured.
fn warp_stages(survey: &Survey) -> Vec<RecordStage> {
    let mut kinds: Vec<_> = survey.each().flat_map(|(_, stage)| stage.kinds()).collect();
    kinds.sort_by_key(|kind| (kind.started, kind.ended));
    let mut groups: Vec<(Moment, Moment, Vec<OpKind>)> = Vec::new();
    for kind in kinds {
        match groups.last_mut().filter(|(_, ended, _)| kind.started < *ended) {
            Some((_, ended, group)) => {
                *ended = (*ended).max(kind.ended);
                group.push(kind.kind);
            }
            None => groups.push((kind.started, kind.ended, vec![kind.kind])),
        }
    }
    let last = groups.len().saturating_sub(1);
    let stage = |(index, (started, ended, kinds)): (usize, (Moment, Moment, Vec<OpKind>))| {
        let stages = kinds.iter().map(|kind| StageId(*kind as u8)).collect();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        RecordStage {
            name: names.join("+"),
            title: names.join("+"),
            number_of_title: 1,
            kind: if index == last { StageKind::Measure } else { StageKind::Prepare },
            index,
            stages,
            started,
            ended,
            workers: survey.stages(stages).active(),
        }
    };
    groups.into_iter().enumerate().map(stage).collect()
}
