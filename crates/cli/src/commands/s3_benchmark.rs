//! `plimsoll as s3-benchmark`: the loops of PUT, GET, LIST2, LISTver and DELETE, with that
//! program's lines and `benchmark.log`.

mod tally;
mod tester;

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::{
    BucketLease, ConductError, Consent, Done, Goal, NextStage, Permit, Recording, RunTime, Stop,
    StoreAdmin, Work, machine,
};
use plimsoll_dialects::s3_benchmark::{self as dialect, Benchmark};
use plimsoll_driver::{Admin, Driver};
use plimsoll_driver_s3::{Credentials, Lookup, RequestOptions, S3Config, S3Driver, Signature};
use plimsoll_engine::{
    EngineConfig, EngineError, ObjectsJob, OpSink, StageContext, StageOutcome, StageWork, run_stage,
};
use plimsoll_http::{Endpoint, HostSelect, HttpVersion, PORT_PLAIN, PORT_TLS};
use plimsoll_model::{ObjectId, RunId, StageId, StageKind, WallTime};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{LoopModel, StageJob, Target, Verification};
use plimsoll_report::s3_benchmark::{self as layout, Parameters, Test, TestFigures, TestResult};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{
    ExistingObject, ExistingSpec, KeysSpec, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec,
    Population, SPEC_SCHEMA, SizeSpec, Verify, Workload, WorkloadSpec, mix64,
};

use self::tally::{Tally, Written};
use self::tester::{Pages, Tester, lists_versions};
use crate::args::{S3BenchmarkArgs, SignatureArg, YES};
use crate::commands::s3::fresh_seed;
use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{lower, manifest, shown, signals, store};

/// What the run is called.
const NAME: &str = "s3-benchmark";
/// Where its lines are kept too, in the directory in which it was started.
const LOG: &str = "benchmark.log";
/// How often cleaning is tried: the store was just driven hard.
const SWEEP_TRIES_MAX: u32 = 20;
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
    let (mut recording, mut tests) = begin(&asked, args, ui)?;
    ui.result(&format!("{}\n", layout::GREETING))?;
    tests.line(&layout::parameters_line(&parameters(&asked)))?;
    let generator = Arc::new(Generator::new(tests.spec.seed));
    let done = recording.run(&mut tests, &generator);
    // Lines are printed as the tests end, also those of a run that could not go on.
    ui.result(&layout::below(&tests.results))?;
    let Tests { mut admin, results, .. } = tests;
    let most = args.max_error_rate.0;
    let show = |recording: &mut Recording, _: &_| {
        Ok::<_, anyhow::Error>(is_good(&results, recording, most, &ui))
    };
    Ok(shown::exit_code(recording.finish(done.map_err(anyhow::Error::from), show, &mut admin)?))
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

/// The tests of a run, one after the other.
struct Tests<'a> {
    asked: &'a Benchmark,
    spec: WorkloadSpec,
    /// What PUT does; the other tests have its keys and contents.
    workload: Workload,
    run: String,
    driver: Arc<S3Driver>,
    admin: StoreAdmin,
    config: EngineConfig,
    ui: Ui,
    time: RunTime,
    stop: Stop,
    lists_versions: bool,
    /// Which test comes next: the number of its loop, from 1, and its place in the loop.
    next: (u32, usize),
    /// What the test does that is about to run.
    under_way: Option<(Workload, Tester)>,
    /// What PUT of this loop left.
    written: Written,
    results: Vec<TestResult>,
    /// How many of the results have been printed.
    told_count: usize,
    /// Whether the log could not be written.
    log_failed: bool,
}

/// Makes sure that the bucket can be used and begins the record.
fn begin<'a>(
    asked: &'a Benchmark,
    args: &S3BenchmarkArgs,
    ui: Ui,
) -> Result<(Recording, Tests<'a>)> {
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
    let telemetry =
        args.output.telemetry.start(&manifest, NAME, &time, args.tls.tls_ca.clone(), ui)?;
    let path = manifest::directory_for(args.output.run_dir.as_deref(), &id);
    let consent = Consent { given: false, flag: YES };
    let permit = Permit::for_objects(&workload, &asked.bucket, consent, &ui)?;
    // Until here a signal ends the process as it always does: there is nothing to put in order.
    let stop = signals::listen()?;
    let directory = RunDirectory::create(&path, &manifest)?;
    let mut admin = StoreAdmin::new(driver.admin(&time.clock), stop.clone(), time.wall_epoch)?;
    admin.tries_max = SWEEP_TRIES_MAX;
    let base = &workload.layout.base;
    let lists_versions = match usable(&mut admin, &driver, &time, base) {
        Ok(lists_versions) => lists_versions,
        Err(error) => {
            // Nothing was measured, so the record holds nothing that anybody could want.
            directory.discard()?;
            return Err(in_its_flags(lower::in_our_flags(error)));
        }
    };
    ui.note(&format!("{NAME} on {}, bucket {}, seed {seed}", asked.url, asked.bucket));
    let terminal = Terminal::observer(ui, &stop, telemetry);
    admin.owns(base, Some(BucketLease::hold(config, base, &time, Arc::clone(&terminal))?));
    let config = EngineConfig {
        threads: args.threads.unwrap_or_else(machine::cores).max(1),
        op_timeout: args.op_timeout.0,
        retries: 0,
    };
    let tests = Tests {
        asked,
        spec,
        workload,
        run: id.as_str().to_owned(),
        driver: Arc::new(driver),
        admin,
        config,
        ui,
        time: time.clone(),
        stop: stop.clone(),
        lists_versions,
        next: (1, 0),
        under_way: None,
        written: Written::default(),
        results: Vec::new(),
        told_count: 0,
        log_failed: false,
    };
    Ok((Recording::new(directory, manifest, time, permit, terminal, stop), tests))
}

/// Makes sure that the bucket is there, and tells whether the store lists versions.
fn usable(
    admin: &mut StoreAdmin,
    driver: &S3Driver,
    time: &RunTime,
    base: &str,
) -> Result<bool, ConductError> {
    let mut bucket = driver.admin(&time.clock);
    admin.heed(async {
        bucket.ensure_root().await?;
        Ok(lists_versions(driver, &time.clock, base).await)
    })
}

impl Tests<'_> {
    /// Prints a line and keeps it in the log, as s3-benchmark does with all lines but the first.
    fn line(&mut self, line: &str) -> Result<()> {
        self.ui.result(&format!("{line}\n"))?;
        let since = Duration::from_nanos(self.time.clock.now().as_ns());
        let text = layout::log_line(self.time.wall_epoch.after(since), line);
        let file = OpenOptions::new().create(true).append(true).open(LOG);
        let kept = file.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = kept
            && !std::mem::replace(&mut self.log_failed, true)
        {
            self.ui.warn(&format!("cannot write {LOG}: {error}"));
        }
        Ok(())
    }

    /// Prints the lines of tests that have ended.
    fn tell(&mut self) -> Result<()> {
        while let Some(result) = self.results.get(self.told_count) {
            let line = layout::line(result);
            self.told_count += 1;
            self.line(&line)?;
        }
        Ok(())
    }

    /// Removes what failed to be deleted, and old versions where the bucket keeps them.
    fn sweep(&mut self, loop_number: u32) {
        if let Err(error) = self.admin.sweep() {
            self.ui.warn(&format!(
                "what loop {} left could not all be removed ({error}), so that listings may hold \
                 more than this loop writes",
                loop_number - 1
            ));
        }
    }

    /// Returns what a test came to that was not run: nothing, or it is not offered.
    fn without_work(&self, test: Test) -> Option<TestFigures> {
        (test != Test::ListVer || self.lists_versions).then(TestFigures::default)
    }

    /// Returns what a test does; `None` if there is nothing to do it to, or it is not offered.
    fn workload_of(&self, test: Test) -> Result<Option<Workload>> {
        if test == Test::Put {
            return Ok(Some(self.workload.clone()));
        }
        let written = &self.written;
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
        let mut workload = spec.validate(&self.run, Some(objects))?;
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

    /// Returns what a test does to the store.
    fn tester(&self, test: Test, loop_number: u32) -> Tester {
        let lists = matches!(test, Test::List2 | Test::ListVer);
        let pages = lists.then(|| {
            let versions = test == Test::ListVer;
            let keys = self.workload.keys();
            let seed = mix64(self.spec.seed ^ u64::from(loop_number));
            let Written { objects, doubtful } = &self.written;
            Pages::of((objects, doubtful), &keys, (versions, seed))
        });
        Tester::new(&self.driver, pages)
    }
}

impl Tests<'_> {
    /// Prints what has ended, and chooses the next test that has something to do.
    fn choose(&mut self) -> Result<Option<NextStage>> {
        self.tell()?;
        while !self.stop.flag().is_set() {
            let (number, place) = self.next;
            let Some(&test) = Test::ALL.get(place) else {
                self.next = (number + 1, 0);
                continue;
            };
            if number > self.asked.loops {
                break;
            }
            if place == 0 && number > 1 {
                self.sweep(number);
                self.written = Written::default();
            }
            let Some(workload) = self.workload_of(test)? else {
                self.next.1 += 1;
                let figures = self.without_work(test);
                self.results.push(TestResult { loop_number: number, test, figures });
                self.tell()?;
                continue;
            };
            let name = format!("loop-{number}-{}", test.name().to_lowercase());
            let workers = workload.concurrency.get();
            let stage = NextStage {
                doing: name.clone(),
                name,
                kind: StageKind::Measure,
                loop_model: LoopModel::Closed,
                iteration: 0,
                jobs: vec![StageJob {
                    verification: (test == Test::Get).then_some(Verification::EveryByte),
                    ..StageJob::of(test.name(), workers, LoopModel::Closed)
                }],
                workers_count: workers,
                threads_count: self.config.threads.clamp(1, workers as usize),
                files: None,
                goal: match test {
                    Test::Delete => Goal::Ops(self.written.objects.len() as u64),
                    _ => Goal::Time(workload.duration),
                },
            };
            self.under_way = Some((workload, self.tester(test, number)));
            return Ok(Some(stage));
        }
        Ok(None)
    }
}

impl Work for Tests<'_> {
    fn next(
        &mut self,
        _recording: &Recording,
        _done: &[Done],
    ) -> Result<Option<NextStage>, ConductError> {
        self.choose().map_err(|error| ConductError::Caller(error.into()))
    }

    fn run(
        &mut self,
        stage: StageId,
        context: &StageContext<'_>,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let (loop_number, place) = self.next;
        let test = Test::ALL[place];
        let (workload, tester) = self.under_way.take().expect("a test was chosen");
        let own = matches!(test, Test::Get | Test::Delete).then_some(&*self.written.objects);
        let mut tally = Tally::new(sink, own.unwrap_or_default());
        let workload = Arc::new(workload);
        let job = ObjectsJob::alone(&tester, &workload, StageKind::Measure);
        let work = StageWork::of_objects(stage, job);
        let outcome = run_stage(&work, &self.config, context, &mut tally)?;
        let (figures, wrote) = tally.end(outcome.started, tester.slowdowns());
        if test == Test::Put {
            self.written = wrote;
        }
        self.results.push(TestResult { loop_number, test, figures: Some(figures) });
        self.next.1 += 1;
        Ok(outcome)
    }
}

/// Warns where too much failed, or nothing was done at all.
fn is_good(results: &[TestResult], recording: &Recording, max_error_rate: f64, ui: &Ui) -> bool {
    let figures = || results.iter().filter_map(|result| result.figures.as_ref());
    let ok: u64 = figures().map(|figures| figures.ops_ok).sum();
    let failed: u64 = figures().map(TestFigures::failed_count).sum();
    let percent = failed as f64 / (ok + failed).max(1) as f64 * 100.0;
    let flaw = if ok + failed == 0 {
        "no operation ended, so there is no result".to_owned()
    } else if percent > max_error_rate {
        let first = recording.manifest.first_errors.first();
        let first = first.map(|error| format!("; the first: {}", error.message));
        format!(
            "{percent:.2} % of the operations failed, more than --max-error-rate \
             {max_error_rate}% allows{}",
            first.unwrap_or_default()
        )
    } else {
        return true;
    };
    ui.warn(&flaw);
    false
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
    let port = if address.tls { PORT_TLS } else { PORT_PLAIN };
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
