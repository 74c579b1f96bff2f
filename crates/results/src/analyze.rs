//! From a record to figures: which stages, which rows, which filters.

use std::time::Duration;

use plimsoll_analysis::{
    Depth, Ledger, OpSource, Question, RowAnalysis, RowAsked, Rows as RowsAsked, Span,
    StageAnalysis, Standstills, Survey, Window, WorkerRow, measure,
};
use plimsoll_model::{Moment, StageKind};
use plimsoll_record::schema::{self, LoopModel, Manifest};

use crate::asked::Asked;
use crate::clients::{ClientStage, RowJobs, Rows, lay_out};
use crate::error::{AskedFor, ReadError, ResultsError};
use crate::names::row_name;
use crate::open::{Origin, Record, RecordStage};
use crate::standstills::standstills;

/// One stage with the figures of its rows.
#[derive(Debug)]
pub struct AnalyzedStage {
    /// Its place among the stages of the record.
    pub stage: usize,
    /// Which jobs each row holds; empty in a record made elsewhere.
    pub rows: Vec<RowJobs>,
    /// The figures, row by row.
    pub analysis: StageAnalysis,
}

impl AnalyzedStage {
    /// Takes out what would be said of times of which nothing is known.
    fn forget_silences(&mut self) {
        for row in &mut self.analysis.rows {
            row.ledger.iter_mut().for_each(Ledger::forget_silences);
            row.advice.retain(|advice| !advice.is_of_time());
            row.steadiness = None;
        }
    }
}

/// How a stage is put into rows.
struct Laid {
    rows: Vec<RowJobs>,
    asked: Vec<RowAsked>,
    workers: Vec<Option<WorkerRow>>,
}

impl Record {
    /// Returns the figures of the stages that were asked for, in their order.
    pub fn analyze(&self, asked: &Asked) -> Result<Vec<AnalyzedStage>, ResultsError> {
        if asked.steady {
            return self.analyze_steady(asked);
        }
        self.analyze_from(&self.source, asked)
    }

    /// Returns the same by the operations that a source gives.
    pub(crate) fn analyze_from<S: OpSource<Error = ReadError>>(
        &self,
        source: &S,
        asked: &Asked,
    ) -> Result<Vec<AnalyzedStage>, ResultsError> {
        let wanted = self.wanted(asked)?;
        let endpoint = asked.host.as_deref().map(|host| self.endpoint(host)).transpose()?;
        if asked.is_windowed() && asked.stage.is_none() {
            self.refuse_windows(asked, &wanted)?;
        }
        let laid: Vec<Laid> = wanted.iter().map(|stage| self.laid(stage, asked)).collect();
        let standstills: Vec<Standstills> =
            wanted.iter().map(|stage| self.standstills(stage)).collect();
        let question = |(stage, laid): (&&RecordStage, &Laid), standstills| {
            let filtered = self.is_filtered(stage, asked);
            Question {
                stages: stage.stages,
                started: stage.started,
                ended: stage.ended,
                rows: RowsAsked::One(laid.asked[0]),
                segment: asked.segment,
                skip: self.skip(stage, asked),
                kind: asked.kind.filter(|_| filtered),
                endpoint: endpoint.filter(|_| filtered),
                client_of: self.agent_of.get(stage.index).unwrap_or(&self.client_of),
                standstills,
                latency_p99_max: asked.latency_p99_max(),
                depth: depth(asked),
            }
        };
        let questions: Vec<Question<'_>> = wanted
            .iter()
            .zip(&laid)
            .zip(&standstills)
            .map(|(of, standstills)| {
                let rows = match of.1.workers.is_empty() {
                    true => RowsAsked::One(of.1.asked[0]),
                    false => RowsAsked::Several { workers: &of.1.workers, rows: &of.1.asked },
                };
                Question { rows, ..question(of, standstills) }
            })
            .collect();
        let answers = self.answers(source, asked, &questions)?;
        let index = |stage: &RecordStage| {
            self.stages.iter().position(|each| std::ptr::eq(each, stage)).unwrap_or_default()
        };
        let of_stage = |((stage, laid), analysis): ((&&RecordStage, Laid), StageAnalysis)| {
            AnalyzedStage { stage: index(stage), rows: laid.rows, analysis }
        };
        let mut analyzed: Vec<AnalyzedStage> =
            wanted.iter().zip(laid).zip(answers).map(of_stage).collect();
        if self.has_holes {
            analyzed.iter_mut().for_each(AnalyzedStage::forget_silences);
        }
        self.without_empty(asked, self.of_job(asked, analyzed)?)
    }

    /// Returns when the clients of a stage stood still.
    fn standstills(&self, stage: &RecordStage) -> Standstills {
        match &self.origin {
            Origin::Run { manifest, .. } => standstills(manifest, stage.index),
            Origin::Warp { .. } => Standstills::default(),
        }
    }

    /// Tells whether what is asked for is taken out of a stage: what was only made ready is told
    /// whole.
    fn is_filtered(&self, stage: &RecordStage, asked: &Asked) -> bool {
        asked.stage.is_some() || self.is_result(stage)
    }

    /// Returns how much is left out at the beginning of a stage.
    fn skip(&self, stage: &RecordStage, asked: &Asked) -> Duration {
        if !self.is_filtered(stage, asked) {
            return Duration::ZERO;
        }
        asked.warm_ups.get(stage.index).copied().flatten().unwrap_or(asked.skip)
    }

    /// Leaves out the rows in which nothing is what was asked for: that it is not there says
    /// nothing of the target.
    fn without_empty(
        &self,
        asked: &Asked,
        mut analyzed: Vec<AnalyzedStage>,
    ) -> Result<Vec<AnalyzedStage>, ResultsError> {
        if !asked.is_part() {
            return Ok(analyzed);
        }
        let is_filtered = |of: &AnalyzedStage| self.is_filtered(&self.stages[of.stage], asked);
        for of in analyzed.iter_mut().filter(|of| is_filtered(of)) {
            let has_some = |row: &RowAnalysis| {
                !row.kinds.is_empty() || row.ramp.ops_ok + row.ramp.failed.count() > 0
            };
            let mut keeps = of.analysis.rows.iter().map(has_some).collect::<Vec<_>>().into_iter();
            // Of a record made elsewhere no jobs are known.
            of.rows.retain(|_| keeps.next().unwrap_or_default());
            of.analysis.rows.retain(has_some);
        }
        analyzed.retain(|of| !of.analysis.rows.is_empty());
        if analyzed.iter().any(is_filtered) {
            return Ok(analyzed);
        }
        let (path, kind) =
            (self.path.display(), asked.kind.map(|kind| format!(" {}", kind.name())));
        let (field, what) = match (&asked.host, asked.limit) {
            (Some(_), _) => (AskedFor::Endpoint, "went there"),
            (None, _) if asked.offset > 0 => (AskedFor::Offset, "is left"),
            (None, Some(_)) => (AskedFor::Limit, "is left"),
            (None, None) => (AskedFor::Kind, "is of that kind"),
        };
        let kind = kind.filter(|_| field != AskedFor::Kind).unwrap_or_default();
        let reason = format!("no{kind} operation of what was measured in {path} {what}");
        Err(ResultsError::Asked { field, reason })
    }

    fn answers<S: OpSource<Error = ReadError>>(
        &self,
        source: &S,
        asked: &Asked,
        questions: &[Question<'_>],
    ) -> Result<Vec<StageAnalysis>, ResultsError> {
        if !asked.is_windowed() {
            return Ok(measure(source, &self.survey, questions)?);
        }
        let mut answers = Vec::new();
        for question in questions {
            let (stages, offset, limit) = (question.stages, asked.offset, asked.limit);
            let window = Window { source, stages, offset, limit };
            let survey = Survey::of(&window)?;
            answers.append(&mut measure(&window, &survey, std::slice::from_ref(question))?);
        }
        for row in answers.iter_mut().flat_map(|answer| &mut answer.rows) {
            row.is_part = true;
            row.ledger = None;
            // What is left out by the order of the record is no fault of the run.
            row.advice.retain(|advice| !advice.is_of_length());
        }
        Ok(answers)
    }

    /// Returns the stages that were asked for.
    fn wanted(&self, asked: &Asked) -> Result<Vec<&RecordStage>, ResultsError> {
        let names = || self.stages.iter().map(|stage| &*stage.title).collect::<Vec<_>>().join(", ");
        let named = |name: &str, of: fn(&RecordStage) -> &str| -> Vec<&RecordStage> {
            self.stages.iter().filter(|stage| of(stage).eq_ignore_ascii_case(name)).collect()
        };
        let wanted: Vec<&RecordStage> = match &asked.stage {
            Some(name) => match named(name, |stage| &stage.name) {
                // One repetition of several is asked for as the report shows it.
                all if all.is_empty() => match named(name, |stage| &stage.title) {
                    one if one.is_empty() => {
                        return Err(self.has_not(AskedFor::Stage, &names()));
                    }
                    one => one,
                },
                all => all,
            },
            None => self.stages.iter().collect(),
        };
        if asked.stage.is_none() && !wanted.iter().any(|stage| self.is_result(stage)) {
            let (names, path) = (names(), self.path.display());
            let agents = self.manifest().map_or(&[][..], |manifest| &manifest.agents);
            let elsewhere = match agents.iter().any(|agent| agent.rows_count.is_none()) {
                true => format!("; agents have the rest (`plimsoll fleet collect {path}`)"),
                false => String::new(),
            };
            return Err(ResultsError::Nothing(format!(
                "{path}: nothing was measured, so there is nothing to analyse; of its stages there \
                 is {} (`stage` NAME shows one){elsewhere}",
                if names.is_empty() { "nothing" } else { &names }
            )));
        }
        let Some(kind) = asked.kind else { return Ok(wanted) };
        let has_kind = |stage: &RecordStage| {
            let seen = self.survey.stages(stage.stages);
            seen.kinds().any(|span| span.kind == kind)
        };
        let is_asked = |stage: &RecordStage| self.is_filtered(stage, asked);
        if !wanted.iter().any(|stage| is_asked(stage) && has_kind(stage)) {
            let reason = format!("{} has no such operation", self.path.display());
            return Err(ResultsError::Asked { field: AskedFor::Kind, reason });
        }
        Ok(wanted.into_iter().filter(|stage| !is_asked(stage) || has_kind(stage)).collect())
    }

    /// Tells whether the figures of a stage are a result. Of a file made elsewhere all are.
    pub(crate) fn is_result(&self, stage: &RecordStage) -> bool {
        matches!(self.origin, Origin::Warp { .. }) || stage.kind == StageKind::Measure
    }

    /// Refuses to count the operations of several stages as if they were one.
    fn refuse_windows(&self, asked: &Asked, wanted: &[&RecordStage]) -> Result<(), ResultsError> {
        let results = wanted.iter().filter(|stage| self.is_result(stage)).count();
        let field = if asked.limit.is_some() { AskedFor::Limit } else { AskedFor::Offset };
        let reason = format!(
            "counts the operations of one stage, and {} has several; name one with `stage`",
            self.path.display()
        );
        if results > 1 { Err(ResultsError::Asked { field, reason }) } else { Ok(()) }
    }

    /// Puts the workers of a stage into rows.
    fn laid(&self, stage: &RecordStage, asked: &Asked) -> Laid {
        let span = if asked.full_span { Span::Whole } else { Span::AllWorkers };
        let Origin::Run { manifest, clients, .. } = &self.origin else {
            let row = RowAsked { workers: stage.workers, span, open: false, ends: None };
            return Laid { rows: Vec::new(), asked: vec![row], workers: Vec::new() };
        };
        let entry = &manifest.stages[stage.index];
        let of_clients = clients.at(stage.index);
        let spans = |job: usize| {
            let schedule = entry.jobs[job].schedule.as_ref();
            of_clients.iter().map(move |client| client.measured_span(job, schedule))
        };
        // Nobody waits for the end of a closed loop whose work is done before its time is up.
        let waits = |job: &usize| {
            entry.jobs[*job].loop_model == LoopModel::Open
                || !of_clients.iter().any(|client| client.may_end_early(*job))
        };
        // The last end of all, where that of each is known.
        let ends = |jobs: &[usize]| {
            let spans = jobs.iter().filter(|job| waits(job)).flat_map(|job| spans(*job));
            let ends = spans.map(|span| span.map(|(_, ends)| ends));
            ends.reduce(|all, each| Some(all?.max(each?))).flatten()
        };
        if let ([job], false) = (&entry.jobs[..], needs_workers(entry, &of_clients, asked)) {
            let open = job.loop_model == LoopModel::Open;
            let row = RowAsked { workers: stage.workers, span, open, ends: ends(&[0]) };
            let rows = vec![RowJobs { jobs: vec![0], worker: None, agent: None }];
            return Laid { rows, asked: vec![row], workers: Vec::new() };
        }
        let change = |began: Moment, worker: &mut WorkerRow| {
            let from = if asked.full_span { began } else { worker.measured_from };
            worker.measured_from = from.max(began.after(self.skip(stage, asked)));
            worker.measured_until = worker.measured_until.filter(|_| !asked.full_span);
        };
        let agents = self.agent_of.get(stage.index).map_or(&[][..], Vec::as_slice);
        let (rows, workers) = lay_out(entry, &of_clients, asked.rows, agents, change);
        let row = |(index, row): (usize, &RowJobs)| {
            let of_row = workers.iter().flatten().filter(|worker| worker.row as usize == index);
            let jobs = || row.jobs.iter().map(|job| &entry.jobs[*job]);
            let on_files = jobs().any(|job| job.is_on_files);
            RowAsked {
                workers: of_row.count() as u32,
                span: if on_files { Span::FromRamps } else { span },
                open: jobs().any(|job| job.loop_model == LoopModel::Open),
                ends: ends(&row.jobs),
            }
        };
        let asked: Vec<RowAsked> = rows.iter().enumerate().map(row).collect();
        if asked.is_empty() {
            // No client began it.
            let row = RowAsked {
                workers: stage.workers,
                span: Span::AllWorkers,
                open: false,
                ends: None,
            };
            let rows = vec![RowJobs { jobs: vec![0], worker: None, agent: None }];
            return Laid { rows, asked: vec![row], workers: Vec::new() };
        }
        Laid { rows, asked, workers }
    }

    /// Leaves only the rows of the job that was asked for.
    fn of_job(
        &self,
        asked: &Asked,
        mut analyzed: Vec<AnalyzedStage>,
    ) -> Result<Vec<AnalyzedStage>, ResultsError> {
        let (Some(name), Some(manifest)) = (&asked.job, self.manifest()) else {
            return Ok(analyzed);
        };
        let known = job_names(manifest, analyzed.iter().map(|of| self.stages[of.stage].index));
        for of in &mut analyzed {
            let entry = &manifest.stages[self.stages[of.stage].index];
            let is_named = |row: &RowJobs| {
                let mut jobs = row.jobs.iter().map(|job| &entry.jobs[*job].name);
                jobs.any(|job| job.eq_ignore_ascii_case(name))
                    || row_name(entry, row).eq_ignore_ascii_case(name)
            };
            let mut keeps = of.rows.iter().map(is_named).collect::<Vec<_>>().into_iter();
            of.analysis.rows.retain(|_| keeps.next().unwrap_or_default());
            of.rows.retain(is_named);
        }
        analyzed.retain(|of| !of.rows.is_empty());
        if analyzed.is_empty() {
            return Err(self.has_not(AskedFor::Job, &known.join(", ")));
        }
        Ok(analyzed)
    }
}

/// Tells whether the only job of a stage has to be looked at worker by worker.
fn needs_workers(stage: &schema::Stage, clients: &[ClientStage<'_>], asked: &Asked) -> bool {
    stage.jobs[0].is_on_files
        || clients.len() > 1
        || asked.rows != Rows::Jobs
        || clients.iter().any(|client| !client.counts_at_once(0))
}

fn depth(asked: &Asked) -> Depth {
    match (asked.details, asked.distributions) {
        (true, _) => Depth::Details,
        (false, true) => Depth::Distributions,
        (false, false) => Depth::Figures,
    }
}

/// Returns the names of the jobs of those stages, each once.
fn job_names(manifest: &Manifest, stages: impl Iterator<Item = usize>) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for job in stages.flat_map(|stage| &manifest.stages[stage].jobs) {
        if !names.contains(&&*job.name) {
            names.push(&job.name);
        }
    }
    names
}
