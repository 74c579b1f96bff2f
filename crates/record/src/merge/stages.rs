//! Which stages of the parts belong together, and what the whole says of them.

use std::collections::BTreeMap;
use std::ops::Range;

use plimsoll_model::{EndReason, StageKind, WallTime};

use super::clients::Client;
use super::{MergeError, MergePart};
use crate::schema::{
    FilesStage, MergedJob, MergedStage, STAGES_MAX, Stage, StageJob, WrongCount, join_evidence,
    sum_known,
};

/// What stands for the stage that a run does not have.
const NONE: &str = "no further stage";

/// A stage of the whole: of each part its own, an index into the part's list.
pub(super) struct Column(Vec<Option<usize>>);

impl Column {
    /// Returns each part that has the stage, with its own.
    pub(super) fn own<'a, E>(
        &'a self,
        parts: &'a [MergePart<'_, E>],
    ) -> impl Iterator<Item = (usize, &'a Stage)> + Clone {
        let stage = |(part, at): (usize, &Option<usize>)| {
            Some((part, parts[part].manifest.stages.get((*at)?)?))
        };
        self.0.iter().enumerate().filter_map(stage)
    }

    /// Returns which of its stages that of one part is.
    pub(super) fn of_part(&self, part: usize) -> Option<usize> {
        self.0[part]
    }
}

/// The stages of one part.
struct Outline<'a> {
    run_id: &'a str,
    stages: &'a [Stage],
    /// Which of them are measured.
    measured: Vec<usize>,
}

impl<'a> Outline<'a> {
    fn of<E>(part: &'a MergePart<'_, E>) -> Self {
        let stages = &part.manifest.stages;
        let measured = stages.iter().enumerate();
        let measured = measured.filter(|(_, stage)| stage.kind == StageKind::Measure);
        Self {
            run_id: &part.manifest.run_id,
            stages,
            measured: measured.map(|(at, _)| at).collect(),
        }
    }

    /// Returns the stages before a measured one that come after the measured one before.
    fn gap(&self, before: usize) -> Range<usize> {
        let start = before.checked_sub(1).map_or(0, |last| self.measured[last] + 1);
        start..self.measured.get(before).copied().unwrap_or(self.stages.len())
    }
}

/// Returns the stages of the whole, matched in order: the same kind, name and repetition. A single
/// measured stage matches whatever it is called, and stages that are not measured may be missing.
pub(super) fn columns<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<Vec<Column>, MergeError<E>> {
    let outlines: Vec<Outline<'_>> = parts.iter().map(Outline::of).collect();
    if let Some(idle) = outlines.iter().find(|outline| outline.measured.is_empty()) {
        return Err(MergeError::NothingMeasured { run_id: idle.run_id.to_owned() });
    }
    let (first, others) = outlines.split_first().ok_or(MergeError::Alone)?;
    for other in others {
        check_measured(first, other)?;
    }
    let mut columns = Vec::new();
    for number in 0..=first.measured.len() {
        columns.extend(between(&outlines, number)?);
        if number < first.measured.len() {
            let own = outlines.iter().map(|outline| Some(outline.measured[number]));
            columns.push(Column(own.collect()));
        }
    }
    if columns.len() > STAGES_MAX {
        return Err(MergeError::TooMany { what: "stages", limit: STAGES_MAX as u32 });
    }
    Ok(columns)
}

/// Refuses two parts that measured different stages.
fn check_measured<E: std::error::Error + 'static>(
    a: &Outline<'_>,
    b: &Outline<'_>,
) -> Result<(), MergeError<E>> {
    let is_single = [a, b].iter().all(|outline| outline.measured.len() == 1);
    for number in 0..a.measured.len().max(b.measured.len()) {
        let of = |outline: &Outline<'_>| outline.measured.get(number).copied();
        let same = match (of(a), of(b)) {
            (Some(of_a), Some(of_b)) if is_single => {
                a.stages[of_a].files.is_some() == b.stages[of_b].files.is_some()
            }
            (Some(of_a), Some(of_b)) => is_same(&a.stages[of_a], &b.stages[of_b]),
            _ => false,
        };
        if !same {
            return Err(differ((a, of(a)), (b, of(b))));
        }
    }
    Ok(())
}

/// Matches the stages before a measured one: each part has all of them that the part with the most
/// has, or some.
fn between<E: std::error::Error + 'static>(
    outlines: &[Outline<'_>],
    number: usize,
) -> Result<Vec<Column>, MergeError<E>> {
    let gap = |outline: &Outline<'_>| outline.gap(number);
    let mut most = &outlines[0];
    for outline in outlines {
        most = if gap(outline).len() > gap(most).len() { outline } else { most };
    }
    let wanted = gap(most);
    // Beside a single measured stage a single other one is the same whatever it is called.
    let is_single = wanted.len() == 1 && most.measured.len() == 1;
    let matches = |a: &Stage, b: &Stage| {
        is_same(a, b) || is_single && a.kind == b.kind && a.files.is_some() == b.files.is_some()
    };
    let mut columns: Vec<Column> =
        wanted.clone().map(|_| Column(vec![None; outlines.len()])).collect();
    for (part, outline) in outlines.iter().enumerate() {
        let mut left = wanted.clone();
        for own in gap(outline) {
            let next = left.start;
            let found = left.find(|at| matches(&most.stages[*at], &outline.stages[own]));
            let Some(found) = found else {
                let next = Some(next).filter(|next| *next < wanted.end);
                return Err(differ((most, next), (outline, Some(own))));
            };
            columns[found - wanted.start].0[part] = Some(own);
        }
    }
    Ok(columns)
}

fn is_same(a: &Stage, b: &Stage) -> bool {
    let key = |stage: &Stage| (stage.kind, stage.files.is_some(), stage.iteration);
    key(a) == key(b) && a.name == b.name
}

fn differ<E: std::error::Error + 'static>(
    (a, of_a): (&Outline<'_>, Option<usize>),
    (b, of_b): (&Outline<'_>, Option<usize>),
) -> MergeError<E> {
    let named = |outline: &Outline<'_>, at: Option<usize>| {
        at.map_or(NONE.to_owned(), |at| described(&outline.stages[at]))
    };
    MergeError::StagesDiffer {
        run_id: a.run_id.to_owned(),
        stage: named(a, of_a),
        other: b.run_id.to_owned(),
        other_stage: named(b, of_b),
    }
}

fn described(stage: &Stage) -> String {
    let kind = match stage.kind {
        StageKind::Prepare => "preparing stage",
        StageKind::Measure => "stage",
        StageKind::Cleanup => "cleaning stage",
    };
    let name = &stage.name;
    match (stage.files.is_some(), stage.iteration) {
        (false, 0) => format!("{kind} {name}"),
        (false, again) => format!("{kind} {name} (repetition {})", again + 1),
        (true, 0) => format!("{kind} {name} (on files)"),
        (true, again) => format!("{kind} {name} (on files, repetition {})", again + 1),
    }
}

/// Refuses parts whose jobs of a stage are not the same.
pub(super) fn check_jobs<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    columns: &[Column],
) -> Result<(), MergeError<E>> {
    for column in columns {
        let mut own = column.own(parts).map(|(part, stage)| (&parts[part], stage));
        let Some((first, stage)) = own.next() else { continue };
        for (other, of_other) in own {
            let (a, b) = (&stage.jobs, &of_other.jobs);
            // A single job on objects matches whatever it is called, as its stage does.
            if stage.files.is_none() && a.len() <= 1 && b.len() <= 1 {
                continue;
            }
            let is_other = |at: &usize| match (a.get(*at), b.get(*at)) {
                (Some(a), Some(b)) => !a.is_same(b),
                _ => true,
            };
            let Some(at) = (0..a.len().max(b.len())).find(is_other) else { continue };
            let named = |job: Option<&StageJob>| {
                job.map_or("no further job".to_owned(), |job| {
                    let work = job.work.map(|work| work.with_shares(job.read_percent));
                    let work = work.as_deref().unwrap_or("unknown work");
                    match job.group {
                        Some(group) => format!("job {} ({work}, group {group})", job.name),
                        None => format!("job {} ({work})", job.name),
                    }
                })
            };
            return Err(MergeError::JobsDiffer {
                stage: stage.name.clone(),
                run_id: first.manifest.run_id.clone(),
                job: named(a.get(at)),
                other: other.manifest.run_id.clone(),
                other_job: named(b.get(at)),
            });
        }
    }
    Ok(())
}

/// Notes when each client was at each stage, on the clock of the whole.
pub(super) fn note_stages<E>(
    clients: &mut [Client],
    parts: &[MergePart<'_, E>],
    columns: &[Column],
    epoch: u64,
) {
    for client in clients {
        let manifest = &parts[client.part].manifest;
        let later = manifest.started_unix_ns - epoch;
        let moved = |at: Option<u64>| at.map(|at| at + later);
        let is_alone = manifest.merged.is_empty();
        let before = std::mem::take(&mut client.run.stages);
        for (index, column) in columns.iter().enumerate() {
            let Some(own) = column.of_part(client.part) else { continue };
            let stage = &manifest.stages[own];
            let noted = match is_alone {
                true => Some(MergedStage {
                    index: 0,
                    planned_index: stage.planned(),
                    started_ns: stage.started_ns,
                    ended_ns: stage.ended_ns,
                    ended_by: stage.ended_by,
                    jobs: stage.jobs.iter().map(MergedJob::from).collect(),
                }),
                false => before.iter().find(|of| usize::from(of.index) == own).cloned(),
            };
            client.run.stages.extend(noted.map(|of| MergedStage {
                index: index as u8,
                started_ns: moved(of.started_ns),
                ended_ns: moved(of.ended_ns),
                ..of
            }));
        }
    }
}

/// The beginning and the end of a stage of the whole.
type Bounds = (Option<u64>, Option<u64>);

/// When a client was at a stage, on the clock of the whole.
struct Span<'a> {
    run_id: &'a str,
    started: Option<u64>,
    ended: Option<u64>,
    by_work: bool,
}

/// The stages of the whole.
pub(super) struct Stages {
    pub(super) stages: Vec<Stage>,
    /// What keeps their figures from being trusted, a sentence each.
    pub(super) advice: Vec<String>,
}

/// Returns the stages of the whole. Where the parts measured for a time it lasts only while all of
/// them did, and where they did a given work from the first beginning to the last end.
pub(super) fn stages<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
    columns: &[Column],
    clients: &[Client],
    epoch: u64,
) -> Result<Stages, MergeError<E>> {
    let mut made = Stages { stages: Vec::new(), advice: Vec::new() };
    let is_measured =
        |column: &&Column| column.own(parts).any(|(_, stage)| stage.kind == StageKind::Measure);
    let is_only = columns.iter().filter(is_measured).count() == 1;
    for (index, column) in columns.iter().enumerate() {
        let Some(mut stage) = sum(index as u8, column, parts) else { continue };
        let spans = spans(index as u8, clients);
        let (started, ended) = match stage.kind {
            StageKind::Prepare | StageKind::Cleanup => whole(&spans),
            StageKind::Measure => {
                let by_work = stage.files.is_some() || spans.iter().all(|span| span.by_work);
                let shared = shared(&spans, &stage.name, is_only)?;
                if let (true, Err(apart)) = (by_work, &shared) {
                    made.advice.push(apart.sentence(&stage.name, epoch));
                }
                match (by_work, shared) {
                    (true, _) => whole(&spans),
                    (false, Ok(bounds)) => bounds,
                    (false, Err(apart)) => {
                        return Err(apart.refusal((!is_only).then_some(&*stage.name), epoch));
                    }
                }
            }
        };
        (stage.started_ns, stage.ended_ns) = (started, ended);
        made.stages.push(stage);
    }
    Ok(made)
}

/// Returns when each client was at a stage.
fn spans(index: u8, clients: &[Client]) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    for Client { run, .. } in clients {
        let Some(of) = run.stages.iter().find(|of| of.index == index) else { continue };
        let by_work = of.ended_by == Some(EndReason::OutOfWork);
        let (started, ended) = (of.started_ns, of.ended_ns);
        spans.push(Span { run_id: &run.run_id, started, ended, by_work });
    }
    spans
}

/// Returns the time from the first beginning to the last end.
fn whole(spans: &[Span<'_>]) -> Bounds {
    let started = spans.iter().filter_map(|span| span.started).min();
    (started, spans.iter().filter_map(|span| span.ended).max())
}

/// Two clients of which one had ended when the other began.
struct Apart {
    earlier: String,
    ended: u64,
    later: String,
    began: u64,
}

impl Apart {
    fn refusal<E: std::error::Error + 'static>(
        self,
        stage: Option<&str>,
        epoch: u64,
    ) -> MergeError<E> {
        MergeError::NoOverlap {
            in_stage: stage.map_or(String::new(), |name| format!(" in stage {name}")),
            earlier: self.earlier,
            ended: WallTime::from_unix_ns(epoch + self.ended),
            later: self.later,
            began: WallTime::from_unix_ns(epoch + self.began),
        }
    }

    fn sentence(&self, stage: &str, epoch: u64) -> String {
        let wall = |at: u64| WallTime::from_unix_ns(epoch + at);
        format!(
            "stage {stage}: the merged runs never all ran it at the same time ({} had ended by \
             {}, and {} began at {}), so its rates, over the time from the first beginning to the \
             last end, are not those of all of them together",
            self.earlier,
            wall(self.ended),
            self.later,
            wall(self.began)
        )
    }
}

/// Returns when all clients were at a stage, or two that never were.
fn shared<E: std::error::Error + 'static>(
    spans: &[Span<'_>],
    stage: &str,
    is_only: bool,
) -> Result<Result<Bounds, Apart>, MergeError<E>> {
    let mut latest: Option<(u64, &str)> = None;
    let mut earliest: Option<(u64, &str)> = None;
    for span in spans {
        let (Some(started), Some(ended)) = (span.started, span.ended) else {
            let run_id = span.run_id.to_owned();
            return Err(match is_only {
                true => MergeError::NothingMeasured { run_id },
                false => MergeError::NoBounds { run_id, stage: stage.to_owned() },
            });
        };
        latest = latest.max(Some((started, span.run_id)));
        earliest =
            Some(earliest.map_or((ended, span.run_id), |seen| seen.min((ended, span.run_id))));
    }
    let (Some((began, later)), Some((ended, earlier))) = (latest, earliest) else {
        return Err(MergeError::Alone);
    };
    if ended > began {
        return Ok(Ok((Some(began), Some(ended))));
    }
    let (earlier, later) = (earlier.to_owned(), later.to_owned());
    Ok(Err(Apart { earlier, ended, later, began }))
}

/// Returns a stage with what the parts counted of it, added up; `None` where none has it.
fn sum<E>(index: u8, column: &Column, parts: &[MergePart<'_, E>]) -> Option<Stage> {
    let own = || column.own(parts).map(|(_, stage)| stage);
    let first = own().next()?;
    let sum = |of: fn(&Stage) -> Option<u64>| sum_known(own().map(of));
    let counts = |of: fn(&Stage) -> u32| own().map(of).fold(0, u32::saturating_add);
    let add = |of: fn(&Stage) -> u64| own().map(of).fold(0, u64::saturating_add);
    let jobs: Vec<&[StageJob]> = own().map(|stage| &stage.jobs[..]).collect();
    let on_files: Vec<&FilesStage> = own().filter_map(|stage| stage.files.as_ref()).collect();
    Some(Stage {
        index,
        workers_count: counts(|stage| stage.workers_count),
        threads_count: counts(|stage| stage.threads_count),
        // What one of them saw need not be true of all.
        ended_because: None,
        ops_count: sum(|stage| stage.ops_count),
        ops_failed_count: sum(|stage| stage.ops_failed_count),
        bytes: sum(|stage| stage.bytes),
        cpu_ns: sum(|stage| stage.cpu_ns),
        jobs: StageJob::sums(&jobs),
        stream_hash: None,
        uploads_given_up_count: add(|stage| stage.uploads_given_up_count),
        uploads_left_count: add(|stage| stage.uploads_left_count),
        wrong: WrongCount::sum(own().flat_map(|stage| &stage.wrong)),
        // Owners have other numbers in a merged record.
        server_names: BTreeMap::new(),
        files: FilesStage::sum(&on_files),
        evidence: join_evidence(
            column.own(parts).map(|(part, stage)| (&*parts[part].manifest.run_id, &stage.evidence)),
        ),
        ..first.clone()
    })
}
