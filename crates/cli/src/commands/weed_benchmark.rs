//! `plimsoll as weed-benchmark`: files written and read by SeaweedFS's own protocol, with the
//! lines, the reports and the list of that program.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::output::{Named, NewFile, Overwrite};
use plimsoll_conduct::{
    AnyDriver, Chosen, Consent, Done, Observer, Recording, StageView, Target, input,
};
use plimsoll_dialects::LineError;
use plimsoll_dialects::weed_benchmark::layout::{self, Labels, Progress, Stage, StageFigures};
use plimsoll_dialects::weed_benchmark::{
    self as dialect, Asked, Benchmark, LIST_NAME, Listed, list,
};
use plimsoll_engine::LiveCounts;
use plimsoll_model::{OpKind, SeriesKey, StageId};
use plimsoll_stats::Totals;
use plimsoll_workload::plan::{Plan, SetIndex, WorkloadFile};

use crate::args::{LabelsArg, WeedBenchmarkArgs, YES};
use crate::conducted::{Conducted, Settings};
use crate::store::SECURITY_BYTES_MAX;
use crate::ui::Ui;
use crate::{environment, flags};

/// The largest list that is read.
const LIST_BYTES_MAX: u64 = 4 << 30;
/// How often cleaning is tried: the cluster was just driven hard.
const CLEAN_TRIES_MAX: u32 = 20;
/// How often a line tells how far a stage is.
const LINE: Duration = Duration::from_secs(1);

/// Takes the command line of `weed benchmark` and prints as it does.
pub(crate) fn as_weed_benchmark(args: &WeedBenchmarkArgs) -> Result<ExitCode> {
    let (explains, words) = super::take_explain(&args.words);
    let read = |path: &str| input::read_given(Path::new(path)).map_err(|error| error.to_string());
    let ui = args.output.ui();
    let asked = match dialect::from_args(&words, &read) {
        Err(LineError::Help) => return super::help_of(&dialect::help(), "weed-benchmark", &ui),
        asked => asked?,
    };
    if args.output.print.json {
        bail!(
            "--json: weed benchmark prints lines; `plimsoll analyze RUN --json` has each stage's \
             figures"
        );
    }
    let path = asked.list.as_ref().map(PathBuf::from);
    let path = path.unwrap_or_else(|| environment::temporary_directory().join(LIST_NAME));
    let own = Asked {
        seed: args.seed,
        is_distinct: args.distinct,
        listed: listed(&asked, &path)?,
        security: security(args)?,
    };
    let file = asked.workload(&own);
    file.check().map_err(|error| in_words(error.into()))?;
    let notes: Vec<String> = asked.notes(&own).iter().map(ToString::to_string).collect();
    if args.explain || explains {
        let corrections = dialect::CORRECTIONS.iter().map(ToString::to_string);
        let corrections = corrections.chain([dialect::SIZES.to_owned()]);
        let lines = notes.into_iter().chain(corrections).map(|line| format!("# {line}\n"));
        ui.result(&format!("{}{}", lines.collect::<String>(), file.to_yaml()))?;
        return Ok(ExitCode::SUCCESS);
    }
    notes.iter().for_each(|note| ui.note(note));
    run((&asked, &own), &file, args, (path, notes))
}

/// Returns where `security.toml` is: as given, or where weed looks for it, if it is there.
fn security(args: &WeedBenchmarkArgs) -> Result<Option<String>> {
    if let Some(given) = &args.security {
        return Ok(Some(given.display().to_string()));
    }
    let home = environment::variable("HOME").map(|home| format!("{home}/.seaweedfs"));
    let usual = [Some(".".to_owned()), home, Some("/etc/seaweedfs".to_owned())];
    let usual = usual.into_iter().flatten().map(|place| Path::new(&place).join("security.toml"));
    let Some(found) = usual.into_iter().find(|path| path.is_file()) else { return Ok(None) };
    let path = found.display().to_string();
    input::read_unchangeable(&found, SECURITY_BYTES_MAX).map_err(|error| {
        anyhow!("cannot use {path}: {error}; to use it as it is: --security {path}")
    })?;
    Ok(Some(path))
}

fn in_words(error: anyhow::Error) -> anyhow::Error {
    flags::in_words(error, &dialect::WORDS)
}

fn run(
    (asked, own): (&Benchmark, &Asked),
    file: &WorkloadFile,
    args: &WeedBenchmarkArgs,
    (path, mut notes): (PathBuf, Vec<String>),
) -> Result<ExitCode> {
    let ui = args.output.ui();
    notes.push("as weed-benchmark: --explain lists what is corrected".to_owned());
    let total = Arc::new(AtomicU64::new(0));
    let observe = |inner| -> Arc<dyn Observer> {
        Arc::new(Lines { inner, ui, stages: asked.stages(own), total: Arc::clone(&total) })
    };
    let settings = Settings {
        threads: args.threads.or(asked.cpus_max.map(|cpus| cpus as usize)),
        op_timeout: args.op_timeout.0,
        max_error_rate: args.max_error_rate.0,
        clean_tries_max: CLEAN_TRIES_MAX,
        keeps_data: !args.clean,
        notes,
        observe: Some(&observe),
        keeps_going: true,
        ..Settings::plain(&args.output, Consent::by(YES, false))
    };
    // A list that cannot be written is found out before anything else is.
    let list = (asked.scope.writes() && !args.clean).then(|| List::begin(path)).transpose()?;
    let mut conducted = Conducted::begin(file, &settings).map_err(in_words)?;
    ui.result(&start_line(conducted.run.targets()))?;
    let mut reports = Reports::new((asked, own), args, (list, Arc::clone(&total)));
    let choose = Box::new(|_: &Plan, done: &[Done]| reports.next(done));
    let done = conducted.carry_out(None, Some(choose));
    if let Ok(recorded) = &done {
        reports.take(&recorded.stages);
    }
    let printed = reports.finish();
    let show = |recording: &mut Recording, ui: &Ui| {
        if let Some(first) = recording.manifest.first_errors.first() {
            ui.warn(&format!("the first failure: {}", first.message));
        }
        Ok(())
    };
    conducted.end(printed.and(done), &Settings { show: Some(&show), ..settings })
}

/// Returns the list that is read, where one is.
fn listed(asked: &Benchmark, path: &Path) -> Result<Listed> {
    let shown = path.display().to_string();
    if asked.scope.writes() {
        return Ok(Listed::default());
    }
    let text = input::read_text(path, LIST_BYTES_MAX);
    let text = text.with_context(|| format!("-list: cannot read {shown}"))?;
    let ids = list::read(&text).with_context(|| format!("-list {shown}"))?;
    if ids.is_empty() {
        bail!("-list: {shown} names no files");
    }
    Ok(Listed { path: shown, count: Some(ids.len() as u64) })
}

fn start_line(targets: &[Target]) -> String {
    let store = targets.first().and_then(Target::store);
    let version = match store.map(|store| &store.driver) {
        Some(AnyDriver::Seaweed(driver)) => driver.version(),
        _ => "",
    };
    layout::start_line(version, std::env::consts::OS, std::env::consts::ARCH)
}

/// The list that is written.
struct List {
    path: PathBuf,
    file: NewFile,
}

impl List {
    fn named(path: &Path) -> Named<'_> {
        Named { name: "-list", path, overwrite: Overwrite { given: true, flag: "-list" } }
    }

    fn begin(path: PathBuf) -> Result<Self> {
        // To `weed` this is a file like any other, which it reads again.
        let path = if path == Path::new("-") { Path::new(".").join(path) } else { path };
        let file = Self::named(&path).create()?;
        Ok(Self { path, file })
    }

    fn write(self, ids: &[String]) -> Result<()> {
        Ok(Self::named(&self.path).complete(self.file, list::write(ids).as_bytes())?)
    }
}

/// Prints title and progress of each stage, once a second.
struct Lines {
    inner: Arc<dyn Observer>,
    ui: Ui,
    stages: Vec<Stage>,
    /// Of how many operations the stage consists that goes on.
    total: Arc<AtomicU64>,
}

impl Observer for Lines {
    fn note(&self, line: &str) {
        self.inner.note(line);
    }

    fn warn(&self, line: &str) {
        self.inner.warn(line);
    }

    fn during(&self, view: &StageView<'_>, work: &mut dyn FnMut()) {
        let stage = self.stages.iter().find(|stage| stage.name() == view.name);
        let Some((stage, title)) = stage.and_then(|stage| Some((*stage, stage.title()?))) else {
            return self.inner.during(view, work);
        };
        self.print(&title);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let done = &done;
            let lines = scope.spawn(move || self.follow(view, stage, done));
            // The lines must end even when the work panics.
            let end = End(done);
            self.inner.during(view, work);
            drop(end);
            lines.thread().unpark();
        });
    }

    fn stages_ended(&self, measured: Vec<(StageId, Totals<SeriesKey>)>) {
        self.inner.stages_ended(measured);
    }
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Lines {
    fn follow(&self, view: &StageView<'_>, stage: Stage, done: &AtomicBool) {
        let kind = if stage == Stage::Write { OpKind::Put } else { OpKind::Get };
        let (mut seen, mut seen_at) = (LiveCounts::default(), view.clock.now());
        while !done.load(Ordering::Acquire) {
            let now = view.clock.now();
            let since = now.since(seen_at);
            if since < LINE {
                std::thread::park_timeout(LINE - since);
                continue;
            }
            let counts = view.live.counts(kind);
            let seconds = since.as_secs_f64();
            self.print(&layout::progress_line(&Progress {
                done: counts.ok,
                total: self.total.load(Ordering::Relaxed),
                ops_per_sec: (counts.ok - seen.ok) as f64 / seconds,
                bytes_per_sec: (counts.bytes - seen.bytes) as f64 / seconds,
            }));
            (seen, seen_at) = (counts, now);
        }
    }

    fn print(&self, text: &str) {
        // Where stdout is broken, the report that follows says so.
        let _ = self.ui.result(text);
    }
}

/// The reports of the stages, one after the other, and the list.
struct Reports<'a> {
    asked: &'a Benchmark,
    own: &'a Asked,
    labels: Labels,
    ui: Ui,
    /// The list, until it is written.
    list: Option<List>,
    /// Of how many operations the stage consists that goes on.
    total: Arc<AtomicU64>,
    /// The stages of the plan.
    stages: Vec<Stage>,
    /// The stage that comes next.
    next: usize,
    /// The stage that was chosen last, until it is known what came of it.
    under_way: Option<usize>,
    /// The ids of what was written and is to stay.
    ids: Vec<String>,
    /// How many of those that were written are to be removed.
    to_delete: u64,
    results: Vec<(Stage, StageFigures)>,
    /// Why nothing can be printed any more.
    failed: Option<anyhow::Error>,
}

impl<'a> Reports<'a> {
    fn new(
        (asked, own): (&'a Benchmark, &'a Asked),
        args: &WeedBenchmarkArgs,
        (list, total): (Option<List>, Arc<AtomicU64>),
    ) -> Self {
        let labels = match args.labels {
            LabelsArg::New => Labels::New,
            LabelsArg::Old => Labels::Old,
        };
        let ui = args.output.ui();
        Self {
            asked,
            own,
            labels,
            ui,
            list,
            total,
            stages: asked.stages(own),
            next: 0,
            under_way: None,
            ids: Vec::new(),
            to_delete: 0,
            results: Vec::new(),
            failed: None,
        }
    }

    /// Prints what has ended, and chooses the next stage, where there is something to be done.
    fn next(&mut self, done: &[Done]) -> Option<Chosen> {
        self.take(done);
        let stage = *self.stages.get(self.next)?;
        if self.failed.is_some() {
            return None;
        }
        let mut chosen = Chosen::plain(self.next);
        let mut total = self.asked.ops_count(stage, self.own);
        if matches!(stage, Stage::Read { .. }) && self.asked.scope.writes() {
            // Only now it is known how many there are.
            let there = self.ids.len() as u64;
            if there == 0 {
                self.ui.warn("no file was written that could be read");
                return None;
            }
            total = self.asked.reads_of(there, self.own);
            chosen.ops = self.asked.reads_each_once(self.own).then_some((0, total));
        }
        self.total.store(total, Ordering::Relaxed);
        self.under_way = Some(self.next);
        self.next += 1;
        Some(chosen)
    }

    /// Takes what came of the stage that was under way, if it has ended.
    fn take(&mut self, done: &[Done]) {
        let (Some(last), Some(index)) = (done.last(), self.under_way.take()) else { return };
        let (outcome, stage) = (&last.outcome, self.stages[index]);
        let took = outcome.ended.since(outcome.started);
        let (figures, deletions) = StageFigures::of(&outcome.totals(), took);
        if stage == Stage::Write {
            self.learn(last);
        }
        if stage.title().is_some() {
            let text = layout::report(self.asked.concurrency, &figures, self.labels);
            if let Err(error) = self.ui.result(&text) {
                self.failed.get_or_insert(error);
            }
        }
        if stage != Stage::Delete {
            self.results.push((stage, figures));
        }
        match (deletions, self.results.last_mut()) {
            (Some(more), Some((Stage::Delete, known))) => known.add(&more),
            (Some(first), _) => self.results.push((Stage::Delete, first)),
            (None, _) => {}
        }
        let is_next_written = matches!(self.stages.get(self.next), Some(Stage::Delete));
        if !is_next_written {
            self.write_list();
        }
    }

    /// Ends the reports, also of a run that could not go on.
    fn finish(mut self) -> Result<()> {
        if self.results.is_empty() {
            return self.failed.map_or(Ok(()), Err);
        }
        // The run may have ended before the files were removed that were to be.
        self.write_list();
        let of_deletions = |(stage, _): &&(Stage, _)| *stage == Stage::Delete;
        let deleted = self.results.iter().find(of_deletions).map_or(0, |(_, of)| of.ops_ok);
        if let left @ 1.. = self.to_delete.saturating_sub(deleted) {
            self.ui.warn(&format!(
                "-deletePercent: {left} of the files that were to be removed still exist, and are \
                not in the list; `plimsoll clean RUN` removes all that the run wrote"
            ));
        }
        let below = self.ui.result(&layout::below(&self.results));
        self.failed.map_or(below, Err)
    }

    /// Takes the ids of what is to stay: those of the first set, unless all is to be removed.
    fn learn(&mut self, written: &Done) {
        let names = || written.outcome.jobs.iter().filter_map(|job| job.server_names.as_deref());
        let all = |set| names().flat_map(move |names| names.of_set(SetIndex(set)));
        if self.asked.delete_percent == 100 {
            self.to_delete = all(0).count() as u64;
            return;
        }
        self.ids = all(0).map(str::to_owned).collect();
        self.to_delete = all(1).count() as u64;
    }

    fn write_list(&mut self) {
        let Some(list) = self.list.take() else { return };
        if let Err(error) = list.write(&self.ids) {
            self.failed.get_or_insert(error);
        }
    }
}
