//! A record as it is read back: a run directory, or a raw file of warp's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_analysis::{OpSource, Stages, Survey};
use plimsoll_foreign::warp::aggregated::{self, Aggregated};
use plimsoll_foreign::warp::raw::ScanEnd;
use plimsoll_foreign::warp::{self, FileKind, WarpError};
use plimsoll_model::{Moment, OpKind, OpRecord, StageId};
use plimsoll_record::schema::{Manifest, RunState, StageKind};
use plimsoll_record::{OpLog, ReadManifest, RecordError, RunDirectory, Salvage};

use crate::warp_file::{Bytes, WarpFile};

/// What a path given on the command line holds.
pub(crate) enum Opened {
    /// Every operation.
    Record(Box<Record>),
    /// Sums and figures that warp made.
    Aggregated(Box<Aggregated>),
}

/// A record with every operation, after a first look at all of them.
pub(crate) struct Record {
    /// As it was given.
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) source: Source,
    pub(crate) survey: Survey,
    /// In the order in which they began.
    pub(crate) stages: Vec<RecordStage>,
    pub(crate) endpoints: Vec<String>,
    /// By number; empty when the record does not tell them apart.
    pub(crate) clients: Vec<String>,
    pub(crate) client_of: Vec<u16>,
    /// What could not be read, a sentence each.
    pub(crate) losses: Vec<String>,
}

/// Who made a record.
pub(crate) enum Origin {
    /// A run of ours.
    Run { directory: RunDirectory, manifest: Box<Manifest> },
    /// warp, with everything its file says beside the operations.
    Warp { end: Box<ScanEnd> },
}

/// A stretch of the record that is analysed by itself.
#[derive(Clone, Debug)]
pub(crate) struct RecordStage {
    pub(crate) name: String,
    pub(crate) kind: StageKind,
    /// Its numbers in the records.
    pub(crate) stages: Stages,
    pub(crate) started: Moment,
    pub(crate) ended: Moment,
    pub(crate) workers: u32,
}

impl Record {
    /// Returns the manifest with the bounds of stages that a killed run did not write down, as far
    /// as its operations tell.
    pub(crate) fn bounded(&self, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        for entry in &mut manifest.stages {
            let Some(seen) = self.stages.iter().find(|stage| stage.is(entry)) else { continue };
            entry.started_ns.get_or_insert(seen.started.as_ns());
            entry.ended_ns.get_or_insert(seen.ended.as_ns());
        }
        manifest
    }
}

impl RecordStage {
    /// Tells whether it is that stage of a run of ours.
    pub(crate) fn is(&self, entry: &plimsoll_record::schema::Stage) -> bool {
        self.stages.contains(StageId(entry.index))
    }
}

/// Where the operations are read from.
pub(crate) enum Source {
    Log(OpLog),
    Warp(Box<WarpFile>),
}

/// Why operations cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{}", path.display())]
    Warp { path: PathBuf, source: WarpError },
    #[error("cannot open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
}

impl OpSource for Source {
    type Error = ReadError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), ReadError> {
        match self {
            Self::Log(log) => log.scan(visit).map(|_| ()).map_err(ReadError::from),
            Self::Warp(file) => file.scan(visit),
        }
    }
}

/// Opens a run directory, a file of warp's, or `-`.
pub(crate) fn open(path: &Path) -> Result<Opened> {
    if path.is_dir() {
        return open_run(path).map(|record| Opened::Record(Box::new(record)));
    }
    let bytes = Bytes::at(path)?;
    let kind = warp::detect(bytes.reader()?).map_err(|source| bytes.failed(source))?;
    Ok(match kind {
        FileKind::Raw => Opened::Record(Box::new(open_warp(path, bytes)?)),
        FileKind::Aggregated => {
            let read = aggregated::read(bytes.reader()?).map_err(|source| bytes.failed(source));
            Opened::Aggregated(Box::new(read?))
        }
    })
}

/// Opens what must hold every operation.
pub(crate) fn open_record(path: &Path) -> Result<Record> {
    match open(path)? {
        Opened::Record(record) => Ok(*record),
        Opened::Aggregated(_) => bail!(
            "{} holds warp's sums and figures, not the operations; name a run directory or a raw \
             file (.csv.zst, which warp writes with --full)",
            path.display()
        ),
    }
}

/// Returns the runs below each path: itself, or those in it if it is a directory of runs.
pub(crate) fn runs(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for path in paths {
        if !path.is_dir() || path.join("run.json").exists() {
            runs.push(path.clone());
            continue;
        }
        let listed = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()));
        let entries: io::Result<Vec<_>> =
            listed?.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut inside = entries.with_context(|| format!("cannot read {}", path.display()))?;
        inside.retain(|path| path.join("run.json").exists() || is_warp_name(path));
        if inside.is_empty() {
            bail!("{} holds neither a run nor runs", path.display());
        }
        inside.sort();
        runs.append(&mut inside);
    }
    Ok(runs)
}

fn is_warp_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".csv.zst") || name.ends_with(".json.zst")
}

fn open_run(path: &Path) -> Result<Record> {
    let directory = RunDirectory::open(path)?;
    let ReadManifest { manifest, has_checksum } = directory.read_manifest_checked()?;
    let Salvage { mut log, mut losses, remarks } = OpLog::salvage(&directory)?;
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
                log = rest;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if losses.is_empty() {
        losses.extend(missing(&manifest, &survey));
    }
    losses.extend(remarks);
    if !has_checksum {
        losses.push(
            "run.json has no checksum, as an older version of plimsoll wrote it or somebody took \
             it out: damage to it would not be seen"
                .to_owned(),
        );
    }
    let stages = run_stages(&manifest, &survey);
    if stages.is_empty() && manifest.state == RunState::Running {
        bail!(nothing_saved(path, &manifest));
    }
    Ok(Record {
        path: path.to_path_buf(),
        endpoints: manifest.target.endpoints.clone(),
        clients: crate::present::clients(&manifest),
        client_of: client_of(&manifest),
        origin: Origin::Run { directory, manifest: Box::new(manifest) },
        source,
        survey,
        stages,
        losses,
    })
}

/// Says what there is of a run that was killed before anything of its op log was saved.
fn nothing_saved(path: &Path, manifest: &Manifest) -> String {
    let begun = manifest.stages.last().map(|stage| &*stage.name);
    let got = begun.map_or("had begun no stage".to_owned(), |name| format!("was in stage {name}"));
    let (path, since) = (path.display(), &manifest.started_at);
    format!(
        "{path}: the run began at {since}, {got}, and was killed or is still under way; no \
         operation of it was saved, as that happens once a second, so there is nothing to analyse \
         (`plimsoll clean {path}` removes what it left in the store)"
    )
}

/// Tells of operations that were recorded and are not in the op log, where no part of it is known
/// to be missing: the last parts leave no gap.
fn missing(manifest: &Manifest, survey: &Survey) -> Option<String> {
    let recorded = manifest.recorder?.rows_count;
    let held: u64 = survey.each().flat_map(|(_, stage)| stage.kinds()).map(|kind| kind.ops).sum();
    (held != recorded).then(|| {
        format!(
            "the op log holds {held} operations, but {recorded} were recorded: parts are missing"
        )
    })
}

/// Returns the stages of a run; one that was killed has them as far as its operations tell.
fn run_stages(manifest: &Manifest, survey: &Survey) -> Vec<RecordStage> {
    let stage = |entry: &plimsoll_record::schema::Stage| {
        let stages = Stages::from(StageId(entry.index));
        let seen = survey.stages(stages);
        let started = entry.started_ns.map(Moment::from_ns).or(seen.started())?;
        let ended = entry.ended_ns.map(Moment::from_ns).or(seen.ended()).unwrap_or(started);
        let workers = entry.workers_count;
        Some(RecordStage {
            name: entry.name.clone(),
            kind: entry.kind,
            stages,
            started,
            ended,
            workers,
        })
    };
    manifest.stages.iter().filter_map(stage).collect()
}

/// Returns the client of each worker by its number; empty where there is but one.
pub(crate) fn client_of(manifest: &Manifest) -> Vec<u16> {
    let clients = manifest.merged.iter().zip(0u16..);
    clients
        .flat_map(|(part, client)| std::iter::repeat_n(client, part.workers_count as usize))
        .collect()
}

fn open_warp(path: &Path, bytes: Bytes) -> Result<Record> {
    let file = WarpFile::new(bytes);
    let survey = Survey::of(&file)?;
    let end = file.end().context("the file was not read")?;
    let stages = warp_stages(&survey);
    let names = file.names().clone();
    let several = names.clients.len() > 1;
    Ok(Record {
        path: path.to_path_buf(),
        endpoints: names.endpoints,
        clients: if several { names.clients } else { Vec::new() },
        client_of: names.workers.iter().map(|worker| worker.client).collect(),
        losses: end.losses.iter().map(ToString::to_string).collect(),
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
            kind: if index == last { StageKind::Measure } else { StageKind::Prepare },
            stages,
            started,
            ended,
            workers: survey.stages(stages).active(),
        }
    };
    groups.into_iter().enumerate().map(stage).collect()
}
