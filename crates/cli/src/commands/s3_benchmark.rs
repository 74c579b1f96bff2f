//! `plimsoll as s3-benchmark`: the loops of PUT, GET, LIST2, LISTver and DELETE, with that
//! program's lines and `benchmark.log`.

mod tally;
mod tester;

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_dialects::s3_benchmark::{self as dialect, Benchmark};
use plimsoll_driver::{Driver, DriverError, Steward};
use plimsoll_driver_s3::{
    Credentials, Lookup, RequestOptions, S3Config, S3Driver, S3Steward, Signature,
};
use plimsoll_engine::{
    EngineConfig, EngineError, OpSinkError, StageContext, StageOutcome, run_stage,
};
use plimsoll_http::{Endpoint, HostSelect, HttpVersion};
use plimsoll_model::{Clock, ErrorClass, ObjectId, RunId, StageId, StageKind, WallTime};
use plimsoll_record::schema::{self, Cleanup, CleanupState, RunState, Target};
use plimsoll_record::{OpLogWriter, RunDirectory};
use plimsoll_report::s3_benchmark::{self as layout, Parameters, Test, TestFigures, TestResult};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{
    ExistingObject, ExistingSpec, KeysSpec, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec,
    Population, SPEC_SCHEMA, SizeSpec, Verify, Workload, WorkloadSpec, mix64,
};

use self::tally::{Tally, Written};
use self::tester::{Pages, Tester, lists_versions};
use crate::args::{S3BenchmarkArgs, SignatureArg};
use crate::bucket_lease::{self, BucketLease};
use crate::commands::s3::{fresh_seed, in_words};
use crate::consent::{self, Consent, Permit};
use crate::run_record::{LogSink, Recorded, RunRecord};
use crate::runner::{RunTime, directory_for};
use crate::signals::{Interrupts, Stopped};
use crate::telemetry::{RunFacts, Telemetry};
use crate::ui::{Goal, Ui, Watched};
use crate::{machine, manifest, present, store};

/// What the run is called.
const NAME: &str = "s3-benchmark";
/// Where its lines are kept too, in the directory in which it was started.
const LOG: &str = "benchmark.log";
/// How often cleaning is tried while the store sheds load or drops connections.
const SWEEP_TRIES_MAX: u32 = 20;
const SWEEP_PAUSE: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// DELETE ends when everything is deleted.
const UNTIL_DONE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Takes s3-benchmark's command line and prints its lines.
pub(crate) fn as_s3_benchmark(args: &S3BenchmarkArgs) -> Result<ExitCode> {
    let asked = dialect::from_args(&args.words)?;
    let ui = Ui::new(&args.output.print);
    if args.output.print.json {
        bail!(
            "--json: s3-benchmark prints lines; `plimsoll analyze RUN --json` has each test's figures"
        );
    }
    if args.explain {
        ui.result(&explain(&asked))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut bench = Bench::begin(&asked, args, ui)?;
    bench.say(&format!("{}\n", layout::GREETING))?;
    bench.line(&layout::parameters_line(&parameters(&asked)))?;
    let done = bench.loops();
    bench.finish(done, args.max_error_rate.0)
}

fn parameters(asked: &Benchmark) -> Parameters<'_> {
    Parameters {
        url: &asked.url,
        bucket: &asked.bucket,
        region: &asked.region,
        duration_s: asked.duration_s,
        threads: asked.threads,
        loops: asked.loops,
        size: &asked.size,
    }
}

/// Returns what is asked for and each correction, a line each.
fn explain(asked: &Benchmark) -> String {
    let mut text = format!("{}\n", layout::parameters_line(&parameters(asked)));
    for correction in dialect::CORRECTIONS {
        text.push_str(&format!("# {correction}\n"));
    }
    text
}

/// A run under way.
struct Bench<'a> {
    asked: &'a Benchmark,
    spec: WorkloadSpec,
    /// What PUT does; the other tests have its keys and contents.
    workload: Workload,
    driver: Arc<S3Driver>,
    runtime: tokio::runtime::Runtime,
    steward: S3Steward,
    config: EngineConfig,
    generator: Arc<Generator>,
    record: RunRecord,
    /// Marks the run as under way in the bucket.
    lease: Option<BucketLease>,
    lists_versions: bool,
    results: Vec<TestResult>,
    /// What was removed outside of DELETE.
    swept: Option<u64>,
    /// Whether the log could not be written.
    log_failed: bool,
}

impl<'a> Bench<'a> {
    /// Makes sure that the bucket can be used and begins the record.
    fn begin(asked: &'a Benchmark, args: &S3BenchmarkArgs, ui: Ui) -> Result<Self> {
        let time = RunTime::machine();
        let seed = args.seed.unwrap_or_else(|| fresh_seed(time.wall_epoch));
        let spec = spec(asked, seed);
        let id = RunId::new(NAME, time.wall_epoch, mix64(seed ^ time.wall_epoch.as_unix_ns()));
        let workload = spec.validate(id.as_str(), None)?;
        let config = config(asked, args, time.wall_epoch)?;
        let driver = S3Driver::new(config.clone()).map_err(in_its_flags)?;
        let mut manifest = manifest::bare(&id, &spec, target(&config, &driver, &workload), &time);
        manifest.certificate = manifest::certificate(args.output.certificate.as_deref())?;
        manifest.notes.push(note(asked));
        let facts = RunFacts {
            run_id: id.as_str(),
            what: NAME,
            endpoints: &manifest.target.endpoints,
            time: &time,
            tls_ca: args.tls.tls_ca.clone(),
            ui,
        };
        let telemetry = Telemetry::start(&args.output.telemetry, &facts)?;
        let path = directory_for(args.output.run_dir.as_deref(), &id);
        let consent = Consent { given: false, flag: consent::YES };
        let _permit = Permit::for_objects(&workload, &asked.bucket, consent, &ui)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop")?;
        // Until here a signal ends the process as it always does: there is nothing to put in order.
        let interrupts = Interrupts::listen()?;
        let directory = RunDirectory::create(&path, &manifest)?;
        let mut steward = driver.steward(&time.clock);
        let begun = interrupts.unless_stopped(&runtime, async {
            steward.ensure_root().await?;
            Ok(lists_versions(&driver, &time.clock, &workload.layout.base).await)
        });
        let stopped = |Stopped| anyhow!("stopped before anything was measured");
        let in_words = |error| in_its_flags(in_words(error));
        let lists_versions = match begun.map_err(stopped).and_then(|done| done.map_err(in_words)) {
            Ok(lists_versions) => lists_versions,
            Err(error) => {
                // Nothing was measured, so the record holds nothing that anybody could want.
                directory.discard()?;
                return Err(error);
            }
        };
        ui.note(&format!("{NAME} on {}, bucket {}, seed {seed}", asked.url, asked.bucket));
        let lease = BucketLease::hold(config, &workload.layout.base, &time, ui)?;
        Ok(Self {
            asked,
            lease: Some(lease),
            generator: Arc::new(Generator::new(seed)),
            spec,
            workload,
            driver: Arc::new(driver),
            runtime,
            steward,
            config: EngineConfig {
                threads: args.threads.unwrap_or_else(machine::cores).max(1),
                op_timeout: args.op_timeout.0,
                retries: 0,
            },
            record: RunRecord { time, directory, manifest, ui, interrupts, telemetry, _permit },
            lists_versions,
            results: Vec::new(),
            swept: Some(0),
            log_failed: false,
        })
    }

    fn say(&self, text: &str) -> Result<()> {
        self.record.ui.result(text)
    }

    /// Prints a line and keeps it in the log, as s3-benchmark does with all lines but the first.
    fn line(&mut self, line: &str) -> Result<()> {
        self.say(&format!("{line}\n"))?;
        let since = Duration::from_nanos(self.record.now().as_ns());
        let text = layout::log_line(self.record.time.wall_epoch.after(since), line);
        let file = OpenOptions::new().create(true).append(true).open(LOG);
        let kept = file.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = kept
            && !std::mem::replace(&mut self.log_failed, true)
        {
            self.record.ui.warn(&format!("cannot write {LOG}: {error}"));
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.record.interrupts.stop_flag().is_set()
    }

    /// Runs all loops.
    fn loops(&mut self) -> Result<Recorded> {
        let run = RunId::parse(&self.record.manifest.run_id).context("the run's own id")?;
        let epoch = self.record.time.wall_epoch;
        let endpoints = &self.record.manifest.target.endpoints;
        let mut log = LogSink(OpLogWriter::new(&self.record.directory, &run, epoch, endpoints));
        let mut stages = Vec::new();
        for number in 1..=self.asked.loops {
            if number > 1 {
                // What failed to be deleted, and old versions where the bucket keeps them.
                if let Err(error) = self.sweep() {
                    self.record.ui.warn(&format!(
                        "what loop {} left could not all be removed ({error}), so that listings may \
                         hold more than this loop writes",
                        number - 1
                    ));
                }
            }
            let mut written = Written::default();
            for test in Test::ALL {
                if self.is_stopped() {
                    break;
                }
                let figures = match self.workload_of(test, &written)? {
                    None => self.without_work(test),
                    Some(workload) => {
                        let of = (number, test, workload);
                        let (outcome, figures) = self.test(of, &mut written, &mut log)?;
                        stages.push((StageId(stages.len() as u8), StageKind::Measure, outcome));
                        Some(figures)
                    }
                };
                let result = TestResult { loop_number: number, test, figures };
                self.line(&layout::line(&result))?;
                self.results.push(result);
            }
        }
        let totals = log.0.finish().context("cannot complete the op log")?;
        if stages.is_empty() {
            bail!("stopped before the first test; nothing was measured");
        }
        Ok(Recorded { stages, totals })
    }

    /// Returns what a test came to that was not run: nothing, or it is not offered.
    fn without_work(&self, test: Test) -> Option<TestFigures> {
        (test != Test::ListVer || self.lists_versions).then(TestFigures::default)
    }

    /// Returns what a test does; `None` if there is nothing to do it to, or it is not offered.
    fn workload_of(&self, test: Test, written: &Written) -> Result<Option<Workload>> {
        if test == Test::Put {
            return Ok(Some(self.workload.clone()));
        }
        if written.objects.is_empty() || test == Test::ListVer && !self.lists_versions {
            return Ok(None);
        }
        let op = match test {
            Test::Get => "GET",
            Test::Delete => "DELETE",
            Test::Put | Test::List2 | Test::ListVer => "LIST",
        };
        // What DELETE removes are objects that PUT of this run wrote.
        let existing = Some(ExistingSpec { limit: None, recursive: true, destroys: true });
        let spec = WorkloadSpec {
            objects: ObjectsSpec { existing, ..self.spec.objects.clone() },
            measure: MeasureSpec {
                operations: vec![OpWeightSpec { op: op.to_owned(), weight: 1 }],
                ..self.spec.measure.clone()
            },
            ..self.spec.clone()
        };
        let keys = self.workload.keys();
        let object = |id: &ObjectId| {
            let mut key = String::new();
            keys.write(*id, &mut key);
            ExistingObject { key, size: self.asked.size_bytes }
        };
        // Pages of listings know themselves what they must hold.
        let lists = matches!(test, Test::List2 | Test::ListVer);
        let objects = if lists { Vec::new() } else { written.objects.iter().map(object).collect() };
        let mut workload = spec.validate(&self.record.manifest.run_id, Some(objects))?;
        // Content is a function of key and seed, and PUT of this run wrote it.
        workload.verify = Verify::EveryByte;
        if lists {
            workload.population = Population::Uploaded(0);
        }
        if test == Test::Delete {
            workload.duration = UNTIL_DONE;
        }
        Ok(Some(workload))
    }

    /// Runs one test of one loop.
    fn test(
        &mut self,
        (number, test, workload): (u32, Test, Workload),
        written: &mut Written,
        log: &mut LogSink,
    ) -> Result<(StageOutcome, TestFigures)> {
        let lists = matches!(test, Test::List2 | Test::ListVer);
        let pages = lists.then(|| {
            let versions = test == Test::ListVer;
            let keys = self.workload.keys();
            let seed = mix64(self.spec.seed ^ u64::from(number));
            Pages::of((&written.objects, &written.doubtful), &keys, (versions, seed))
        });
        let tester = Tester::new(&self.driver, pages);
        let own = matches!(test, Test::Get | Test::Delete).then_some(&*written.objects);
        let mut tally = Tally::new(log, own.unwrap_or_default());
        let name = format!("loop-{number}-{}", test.name().to_lowercase());
        let goal = match test {
            Test::Delete => Goal::Ops(written.objects.len() as u64),
            _ => Goal::Time(workload.duration),
        };
        let outcome = self.stage(&name, goal, &tester, &Arc::new(workload), &mut tally)?;
        let (figures, wrote) = tally.end(outcome.started, tester.slowdowns());
        if test == Test::Put {
            *written = wrote;
        }
        Ok((outcome, figures))
    }

    /// Runs a stage of the record.
    fn stage(
        &mut self,
        name: &str,
        goal: Goal,
        tester: &Tester,
        workload: &Arc<Workload>,
        tally: &mut Tally<'_>,
    ) -> Result<StageOutcome> {
        let record = &mut self.record;
        let index = record.manifest.stages.len() as u8;
        let workers = workload.concurrency.get();
        let threads = (self.config.threads as u32).clamp(1, workers);
        let (kind, closed) = (StageKind::Measure, schema::LoopModel::Closed);
        let entry = schema::Stage::begun(index, kind.into(), name, closed, (workers, threads));
        record.manifest.stages.push(entry);
        record.directory.write_manifest(&record.manifest)?;
        let live = record.begin_counting(name, threads as usize);
        let context = StageContext {
            clock: &record.time.clock,
            virtual_time: None,
            stop: record.interrupts.stop_flag(),
            live: &live,
            generator: &self.generator,
            wall_epoch: record.time.wall_epoch,
            tags: None,
        };
        let clock: &dyn Clock = &*record.time.clock;
        let watched = Watched { name, doing: name, goal, live: &live, clock };
        let outcome = record.ui.watch(&watched, &record.interrupts, || {
            run_stage(tester, workload, (StageId(index), kind), &self.config, &context, tally)
        });
        let outcome = outcome.map_err(|error| match error {
            // The sink's own sentence says what to change; ours would only stand before it.
            EngineError::Sink(OpSinkError(source)) => anyhow::Error::from_boxed(source),
            other => other.into(),
        })?;
        record.note_end(index, &outcome);
        record.directory.write_manifest(&record.manifest)?;
        Ok(outcome)
    }

    /// Removes what the run wrote and DELETE did not remove. A store that was just driven hard gets
    /// several tries.
    fn sweep(&mut self) -> Result<(), DriverError> {
        let base = &self.workload.layout.base;
        let interrupts = &self.record.interrupts;
        let mut tries = 1;
        loop {
            let sweep = self.steward.sweep(base);
            let swept = interrupts.unless_stopped(&self.runtime, sweep);
            let stopped = |Stopped| DriverError::new(ErrorClass::Unknown, "stopped");
            match swept.unwrap_or_else(|why| Err(stopped(why))) {
                Ok(removed) => {
                    // How much a try removed before it failed is not told.
                    self.swept = self.swept.filter(|_| tries == 1).map(|swept| swept + removed);
                    return Ok(());
                }
                Err(error)
                    if tries == SWEEP_TRIES_MAX
                        || error.class == ErrorClass::Timeout
                        || !error.class.is_transient() =>
                {
                    return Err(error);
                }
                Err(_) => interrupts.rest(SWEEP_PAUSE),
            }
            tries += 1;
        }
    }

    /// Completes the record, cleans up and prints what s3-benchmark leaves out.
    fn finish(mut self, done: Result<Recorded>, max_error_rate: f64) -> Result<ExitCode> {
        let settled = match &done {
            Ok(recorded) => self.record.settle_measured(recorded),
            Err(error) => {
                self.record.manifest.state = RunState::Failed;
                self.record.manifest.state_reason = Some(format!("{error:#}"));
                Ok(())
            }
        };
        // Cleaning may take long or never end, so everything is printed before it.
        let printed = self.say(&layout::below(&self.results));
        let clean = self.clean_up();
        // The disk may be what failed; the first error is the one to tell.
        let noted = self.record.directory.write_manifest(&self.record.manifest);
        done?;
        settled?;
        noted?;
        printed?;
        Ok(present::exit_code(self.is_good(max_error_rate) && clean))
    }

    /// Removes what is left, and tells whether nothing is.
    fn clean_up(&mut self) -> bool {
        let started = self.record.now();
        self.record.interrupts.begin_step();
        let state = match self.sweep() {
            Ok(()) => CleanupState::Complete,
            Err(error) => {
                let (base, path) =
                    (&self.workload.layout.base, self.record.directory.path().display());
                self.record.ui.warn(&format!(
                    "objects below `{base}` could not all be removed ({error}); \
                     `plimsoll clean {path}` finishes the job"
                ));
                CleanupState::Failed
            }
        };
        if self.lease.take().is_some() && state == CleanupState::Complete {
            // What cannot be removed ends by itself.
            let marks = bucket_lease::marks_of(&self.workload.layout.base);
            let interrupts = &self.record.interrupts;
            for _ in 0..SWEEP_TRIES_MAX {
                let sweep = self.steward.sweep(&marks);
                match interrupts.unless_stopped(&self.runtime, sweep) {
                    Ok(Err(error)) if error.class.is_transient() => interrupts.rest(SWEEP_PAUSE),
                    _ => break,
                }
            }
        }
        let complete = state == CleanupState::Complete;
        let took = self.record.now().since(started).as_nanos() as u64;
        self.record.manifest.cleanup = Cleanup {
            state,
            objects_removed_count: self.swept.filter(|_| complete),
            took_ns: complete.then_some(took),
        };
        complete
    }

    /// Warns where too much failed, or nothing was done at all.
    fn is_good(&self, max_error_rate: f64) -> bool {
        let figures = || self.results.iter().filter_map(|result| result.figures.as_ref());
        let ok: u64 = figures().map(|figures| figures.ops_ok).sum();
        let failed: u64 = figures().map(TestFigures::failed_count).sum();
        let percent = failed as f64 / (ok + failed).max(1) as f64 * 100.0;
        let flaw = if ok + failed == 0 {
            "no operation ended, so there is no result".to_owned()
        } else if percent > max_error_rate {
            let first = self.record.manifest.first_errors.first();
            let first = first.map(|error| format!("; the first: {}", error.message));
            format!(
                "{percent:.2} % of the operations failed, more than --max-error-rate \
                 {max_error_rate}% allows{}",
                first.unwrap_or_default()
            )
        } else {
            return true;
        };
        self.record.ui.warn(&flaw);
        false
    }
}

/// Returns what PUT does, as the record keeps it.
fn spec(asked: &Benchmark, seed: u64) -> WorkloadSpec {
    WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: NAME.to_owned(),
        seed,
        concurrency: asked.threads,
        keys: KeysSpec { prefix: String::new(), per_worker: false },
        objects: ObjectsSpec {
            size: SizeSpec::FixedBytes(asked.size_bytes),
            ..ObjectsSpec::default()
        },
        measure: MeasureSpec {
            operations: vec![OpWeightSpec { op: "PUT".to_owned(), weight: 1 }],
            duration_ns: u64::from(asked.duration_s) * 1_000_000_000,
            ..MeasureSpec::default()
        },
        pacing: PacingSpec::Closed,
        verify: true,
    }
}

/// Says what stands in the record beside the workload of PUT.
fn note(asked: &Benchmark) -> String {
    format!(
        "as s3-benchmark: PUT, GET, LIST2, LISTver and DELETE in {} loops; --explain lists what is \
         corrected",
        asked.loops
    )
}

fn config(asked: &Benchmark, args: &S3BenchmarkArgs, wall_epoch: WallTime) -> Result<S3Config> {
    let address = &asked.address;
    let port = if address.tls { store::PORT_TLS } else { store::PORT_PLAIN };
    Ok(S3Config {
        endpoints: vec![Endpoint::new(address.host.clone(), address.port.unwrap_or(port))],
        tls: store::tls(address.tls, &args.tls).map_err(in_its_flags)?,
        credentials: Credentials::Keys {
            access_key: asked.access_key.clone(),
            secret_key: asked.secret_key.clone(),
            session_token: None,
        },
        region: Some(asked.region.clone()),
        bucket: asked.bucket.clone(),
        lookup: Lookup::Path,
        host_select: HostSelect::Weighed,
        sign_payload: false,
        content_md5: args.md5,
        connect_timeout: CONNECT_TIMEOUT,
        keep_alive: true,
        http_version: HttpVersion::One,
        proxies: None,
        wall_epoch,
        options: RequestOptions {
            signature: match args.signature {
                SignatureArg::S3v4 => Signature::V4,
                SignatureArg::S3v2 => Signature::V2,
            },
            ..RequestOptions::default()
        },
    })
}

fn target(config: &S3Config, driver: &S3Driver, workload: &Workload) -> Target {
    Target {
        bucket: Some(config.bucket.clone()),
        prefix: Some(workload.layout.base.clone()),
        region: config.region.clone(),
        lookup: Some("path".to_owned()),
        tls: Some(config.tls.is_some()),
        payload_signing: Some("unsigned".to_owned()),
        ..Target::bare("s3", driver.endpoints())
    }
}

/// Returns an error in the words of s3-benchmark's flags.
fn in_its_flags(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let flags = [
        ("--host and --tls", "-u"),
        ("--tls", "-u with https://"),
        ("--host", "-u"),
        ("--bucket", "-b"),
        ("--region", "-r"),
        ("--access-key", "-a"),
        ("--secret-key", "-s"),
        ("--concurrent, or set --rps-limit or --retries", "-t"),
    ];
    let text = format!("{:#}", error.into());
    anyhow!(flags.iter().fold(text, |text, (ours, its)| text.replace(ours, its)))
}
