//! `plimsoll as s3-benchmark`: the loops of PUT, GET, LIST2, LISTver and DELETE, with that
//! program's lines and `benchmark.log`.

use std::cell::Cell;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::output::append;
use plimsoll_conduct::{Chosen, Consent, Done, Recording, RunTime};
use plimsoll_dialects::LineError;
use plimsoll_dialects::s3_benchmark::layout::{self, Test, TestFigures, TestResult};
use plimsoll_dialects::s3_benchmark::{self as dialect, Benchmark};
use plimsoll_workload::plan::Plan;

use crate::args::requests::{RequestArgs, SignatureArg as Signing};
use crate::args::s3::{LookupArg, StoreArgs};
use crate::args::{CredentialArgs, S3BenchmarkArgs, SignatureArg, YES};
use crate::conducted::{Conducted, Settings};
use crate::secret::Secret;
use crate::ui::Ui;
use crate::{lower, shown};

/// Where its lines are kept too, in the directory in which it was started.
const LOG: &str = "benchmark.log";
/// How often cleaning is tried: the store was just driven hard.
const CLEAN_TRIES_MAX: u32 = 20;

/// Takes s3-benchmark's command line and prints its lines.
pub(crate) fn as_s3_benchmark(args: &S3BenchmarkArgs) -> Result<ExitCode> {
    let ui = args.output.ui();
    let asked = match dialect::from_args(&args.words) {
        Err(LineError::Help) => return super::help_of(&dialect::help(), "s3-benchmark", &ui),
        asked => asked?,
    };
    if args.output.print.json {
        bail!(
            "--json: s3-benchmark prints lines; `plimsoll analyze RUN --json` has each test's \
            figures"
        );
    }
    let file = asked.workload(args.seed);
    let parameters = layout::parameters_line(&asked);
    if args.explain {
        let notes: String =
            dialect::CORRECTIONS.iter().map(|correction| format!("# {correction}\n")).collect();
        let sizes = dialect::SIZES;
        ui.result(&format!("# {parameters}\n{notes}# {sizes}\n{}", file.to_yaml()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = store(&asked, args);
    let settings = Settings {
        store: Some(&store),
        threads: args.threads,
        op_timeout: args.op_timeout.0,
        // The share is that of all tests together, which is judged here.
        max_error_rate: 100.0,
        clean_tries_max: CLEAN_TRIES_MAX,
        notes: vec!["as s3-benchmark: --explain lists what is corrected".to_owned()],
        keeps_going: true,
        ..Settings::plain(&args.output, Consent::by(YES, false))
    };
    let mut conducted = Conducted::begin(&file, &settings).map_err(in_its_words)?;
    let run = &conducted.run;
    let (time, left_out) = (run.recording.time.clone(), run.left_out().to_vec());
    let mut tests = Tests::new(parameters, left_out, (ui, time));
    let choose = Box::new(|plan: &Plan, done: &[Done]| tests.next(plan, done));
    let done = conducted.carry_out(None, Some(choose));
    if let Ok(recorded) = &done {
        tests.take(&recorded.stages);
    }
    // Also of a run that could not go on.
    let below = ui.result(&layout::below(&tests.results));
    let printed = tests.failed.map_or(below, Err);
    let is_good = Cell::new(true);
    let show = |recording: &mut Recording, ui: &Ui| {
        is_good.set(judge(&tests.results, recording, args.max_error_rate.0, ui));
        Ok(())
    };
    let code = conducted.end(printed.and(done), &Settings { show: Some(&show), ..settings })?;
    Ok(if is_good.get() { code } else { shown::exit_code(false) })
}

/// Warns where too much failed; tells whether not.
fn judge(results: &[TestResult], recording: &Recording, max_error_rate: f64, ui: &Ui) -> bool {
    let figures = || results.iter().filter_map(|result| result.figures.as_ref());
    let ok: u64 = figures().map(|figures| figures.ops_ok).sum();
    let failed: u64 = figures().map(TestFigures::failed_count).sum();
    let percent = failed as f64 / (ok + failed).max(1) as f64 * 100.0;
    if percent > max_error_rate {
        let first = recording.manifest.first_errors.first();
        let first = first.map(|error| format!("; the first: {}", error.message));
        ui.warn(&format!(
            "{percent:.2} % of the operations failed, more than --max-error-rate {max_error_rate}% \
             allows{}",
            first.unwrap_or_default()
        ));
    }
    percent <= max_error_rate
}

/// The tests of a run, one after the other.
struct Tests {
    /// The line that says what was asked for.
    parameters: String,
    /// Stages that the store does not offer what is needed for.
    left_out: Vec<usize>,
    ui: Ui,
    time: RunTime,
    /// The stage of the plan that comes next.
    next: usize,
    /// The stage that was chosen last, until it is known what came of it.
    under_way: Option<usize>,
    /// Whether PUT of this loop wrote anything.
    has_objects: bool,
    results: Vec<TestResult>,
    /// Why nothing can be printed any more.
    failed: Option<anyhow::Error>,
    /// Whether the log could not be written.
    log_failed: bool,
}

impl Tests {
    fn new(parameters: String, left_out: Vec<usize>, (ui, time): (Ui, RunTime)) -> Self {
        Self {
            parameters,
            left_out,
            ui,
            time,
            next: 0,
            under_way: None,
            has_objects: false,
            results: Vec::new(),
            failed: None,
            log_failed: false,
        }
    }

    /// Prints what has ended, and chooses the next test that has something to do.
    fn next(&mut self, plan: &Plan, done: &[Done]) -> Option<Chosen> {
        if self.next == 0 {
            self.print(layout::GREETING);
            self.line(&self.parameters.clone());
        }
        self.take(done);
        while self.next < plan.stages.len() && self.failed.is_none() {
            let stage = self.next;
            self.next += 1;
            let (loop_number, test) = Test::at(stage);
            let is_offered = !self.left_out.contains(&stage);
            if test == Test::Put || (self.has_objects && is_offered) {
                self.under_way = Some(stage);
                return Some(Chosen::plain(stage));
            }
            let figures = is_offered.then(TestFigures::default);
            self.end(TestResult { loop_number, test, figures });
        }
        None
    }

    /// Takes what came of the test that was under way, if it has ended.
    fn take(&mut self, done: &[Done]) {
        let (Some(last), Some(stage)) = (done.last(), self.under_way.take()) else { return };
        let (loop_number, test) = Test::at(stage);
        let (outcome, took) = (&last.outcome, last.outcome.ended.since(last.outcome.started));
        let figures = TestFigures::of(&outcome.totals(), took, &outcome.failed_statuses);
        if test == Test::Put {
            self.has_objects = figures.ops_ok > 0;
        }
        self.end(TestResult { loop_number, test, figures: Some(figures) });
    }

    fn end(&mut self, result: TestResult) {
        self.line(&layout::line(&result));
        self.results.push(result);
    }

    /// Prints a line and keeps it in the log, as s3-benchmark does with all lines but the first.
    fn line(&mut self, line: &str) {
        self.print(line);
        let since = Duration::from_nanos(self.time.clock.now().as_ns());
        let text = layout::log_line(self.time.wall_epoch.after(since), line);
        if let Err(error) = append(Path::new(LOG), &text)
            && !std::mem::replace(&mut self.log_failed, true)
        {
            self.ui.warn(&format!("cannot write {LOG}: {error}"));
        }
    }

    fn print(&mut self, line: &str) {
        if let Err(error) = self.ui.result(&format!("{line}\n")) {
            self.failed.get_or_insert(error);
        }
    }
}

/// Returns how the store is reached that the workload names.
fn store(asked: &Benchmark, args: &S3BenchmarkArgs) -> StoreArgs {
    let secret = |key: &str| key.parse::<Secret>().ok();
    let credentials = CredentialArgs {
        access_key: secret(&asked.access_key),
        secret_key: secret(&asked.secret_key),
        session_token: None,
    };
    StoreArgs {
        bucket: asked.bucket.clone(),
        lookup: LookupArg::Path,
        md5: args.md5,
        requests: RequestArgs {
            signature: match args.signature {
                SignatureArg::S3v4 => Signing::S3v4,
                SignatureArg::S3v2 => Signing::S3v2,
            },
            // Each object is one PUT, as there.
            disable_multipart: true,
            ..RequestArgs::default()
        },
        ..StoreArgs::of(credentials, args.tls.clone())
    }
}

/// Returns an error in the words of s3-benchmark's flags.
fn in_its_words(error: anyhow::Error) -> anyhow::Error {
    let flags = [
        ("--host and --tls", "-u"),
        ("need --tls or https://", "need -u with https://"),
        ("--host", "-u"),
        ("--bucket", "-b"),
        ("--region", "-r"),
        ("--access-key", "-a"),
        ("--secret-key", "-s"),
        ("--concurrent, or set --rps-limit or --retries", "-t"),
    ];
    let text = format!("{:#}", lower::in_our_words(error, None));
    let text = text.strip_prefix("target s3: ").unwrap_or(&text);
    let text = match text.split_once(".workers: ") {
        Some((path, why)) if path.starts_with("stages[") => format!("-t: {why}"),
        _ => text.to_owned(),
    };
    let with_its = |text: String, (ours, its): &(&str, &str)| {
        let field = ours.trim_start_matches('-').replace('-', "_");
        text.replace(ours, its).replace(&format!("`{field}`"), its)
    };
    anyhow!(flags.iter().fold(text, with_its))
}
