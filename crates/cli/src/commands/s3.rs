//! `plimsoll s3`: a benchmark of an S3 store from its flags to its report.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_driver::{DriverError, RootState, Steward};
use plimsoll_driver_s3::{Feature, S3Driver, S3Steward};
use plimsoll_engine::EngineConfig;
use plimsoll_model::{Bytes, ErrorClass, RunId, StageKind, WallTime};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{Cleanup, CleanupState, RunState};
use plimsoll_report::format;
use plimsoll_workload::{
    ActivitySpec, ExistingObject, KeyLayout, Population, Workload, WorkloadSpec, mix64,
};

use crate::args::s3::{ConductArgs, S3Command, StoreArgs};
use crate::args::{OutputArgs, TimeOfDay};
use crate::bucket_lease::{self, BucketLease};
use crate::consent::{self, Consent, Permit};
use crate::present;
use crate::run_record::{Recorded, RunRecord};
use crate::runner::{Asked, Run, RunTime, directory_for};
use crate::server_profile::ServerProfile;
use crate::signals::{Interrupts, Stopped};
use crate::store::{self, Store};
use crate::telemetry::{RunFacts, Telemetry};
use crate::ui::Ui;
use crate::{lower, machine, manifest};

/// Prints what is to be printed of the run in a directory.
pub(crate) type Show<'a> = &'a dyn Fn(&Path) -> Result<()>;

/// How a run against an S3 store is conducted, whatever it does.
pub(crate) struct Settings<'a> {
    pub(crate) store: &'a StoreArgs,
    pub(crate) conduct: &'a ConductArgs,
    pub(crate) output: &'a OutputArgs,
    /// Whether what the run wrote stays in the bucket.
    pub(crate) keeps_data: bool,
    /// Whether it may change what no run wrote.
    pub(crate) consent: Consent,
    /// Prints what is to be printed of the run in a directory; `None`: our report.
    pub(crate) show: Option<Show<'a>>,
}

/// Runs one `s3` command.
pub(crate) fn run(command: &S3Command) -> Result<ExitCode> {
    run_shown(command, None)
}

/// Runs one `s3` command and has it shown in another way than ours.
pub(crate) fn run_shown(command: &S3Command, show: Option<Show<'_>>) -> Result<ExitCode> {
    let common = command.common();
    let time = RunTime::machine();
    let seed = common.load.seed.unwrap_or_else(|| fresh_seed(time.wall_epoch));
    let spec = lower::workload(command, common.store.host.is_none(), seed)?;
    if common.explain {
        Ui::new(&common.output.print).result(&spec.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings {
        store: &common.store,
        conduct: &common.load.conduct,
        output: &common.output,
        keeps_data: common.objects.noclear || common.objects.keep_data,
        consent: Consent {
            given: matches!(command, S3Command::Delete(args) if args.yes),
            flag: consent::YES,
        },
        show,
    };
    run_spec(&spec, &settings, time)
}

/// Runs a workload against the store that the settings name.
pub(crate) fn run_spec(
    spec: &WorkloadSpec,
    settings: &Settings<'_>,
    time: RunTime,
) -> Result<ExitCode> {
    let embedded = settings.store.host.is_none();
    let ui = Ui::new(&settings.output.print);
    if embedded {
        check_embedded_memory(spec)?;
    }
    time_until(settings.conduct.syncstart)?;
    let certificate = manifest::certificate(settings.output.certificate.as_deref())?;
    let store = store::open(settings.store, &time)?;
    let id =
        RunId::new(&spec.name, time.wall_epoch, mix64(spec.seed ^ time.wall_epoch.as_unix_ns()));
    let driver = S3Driver::new(store.config.clone())?;
    let mut manifest = manifest::begin(&id, spec, settings.store, &store.config, &driver, &time);
    manifest.certificate = certificate;
    let facts = RunFacts {
        run_id: id.as_str(),
        what: &spec.name,
        endpoints: &manifest.target.endpoints,
        time: &time,
        tls_ca: settings.store.tls_trust.tls_ca.clone(),
        ui,
    };
    let telemetry = Telemetry::start(&settings.output.telemetry, &facts)?;
    let kinds = settings.conduct.serverprof.as_ref();
    let profile = kinds.map(|kinds| ServerProfile::check(kinds, &store.config, &time.clock));
    let profile = profile.transpose()?;
    let path = directory_for(settings.output.run_dir.as_deref(), &id);
    // Until here a signal ends the process as it always does: there is nothing to put in order.
    let interrupts = Interrupts::listen()?;
    let directory = RunDirectory::create(&path, &manifest)?;

    let mut keeper = Keeper::new(driver.steward(&time.clock), interrupts.clone(), time.wall_epoch)?;
    let bucket = &settings.store.bucket;
    let prepared = keeper.prepare_root(spec, &id, bucket).and_then(|workload| {
        let place = place(&manifest.target.endpoints, bucket, &spec.keys.prefix);
        let permit = Permit::for_objects(&workload, &place, settings.consent, &ui)?;
        Ok((Arc::new(workload), permit))
    });
    let (workload, permit) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nothing was measured, so the record holds nothing that anybody could want.
            directory.discard()?;
            return Err(error);
        }
    };
    if matches!(workload.population, Population::Uploaded(_)) {
        keeper.lease = BucketLease::of_store(&store, &workload.layout.base, &time, ui)?;
    }
    announce(&ui, &store, spec, &manifest.target.endpoints, &settings.store.bucket);
    if let Some(found) = &store.found {
        ui.note(&format!("credentials from {}", found.source));
        let end = time.wall_epoch.after(workload.duration);
        found.outlived(end).iter().for_each(|warning| ui.warn(warning));
    }
    lower::late_stop_rules(&workload).iter().for_each(|warning| ui.warn(warning));
    let run = Run {
        driver: &driver,
        workload,
        config: engine_config(settings.conduct, embedded),
        record: RunRecord { time, directory, manifest, ui, interrupts, telemetry, _permit: permit },
    };
    drive(run, keeper, settings, &store, profile)
}

/// Runs the stages, cleans up and reports.
fn drive(
    mut run: Run<'_, S3Driver>,
    mut keeper: Keeper,
    settings: &Settings<'_>,
    store: &Store,
    mut profile: Option<ServerProfile>,
) -> Result<ExitCode> {
    let syncstart = settings.conduct.syncstart;
    let recorded = run.stages(|ui, interrupts| {
        wait_for(syncstart, ui, interrupts)?;
        profile.as_mut().map_or(Ok(()), ServerProfile::start)
    });
    if recorded.is_ok()
        && let Some(Err(error)) = profile.map(|profile| profile.save(&run.record.directory))
    {
        // What was measured is worth no less without it.
        run.record.ui.warn(&format!("{error:#}"));
    }
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            run.record.manifest.state = RunState::Failed;
            run.record.manifest.state_reason = Some(error.to_string());
            clean_up(&mut run, &mut keeper, settings.keeps_data);
            // The disk may be what failed; the first error is the one to tell.
            let _ = run.record.directory.write_manifest(&run.record.manifest);
            return Err(error);
        }
    };
    if recorded.stage(StageKind::Measure).is_none() {
        let error = why_not_prepared(&recorded);
        let settled = run.record.settle(&recorded, RunState::Failed, Some(error.to_string()));
        clean_up(&mut run, &mut keeper, settings.keeps_data);
        settled.and_then(|()| Ok(run.record.directory.write_manifest(&run.record.manifest)?))?;
        return Err(error);
    }
    // Cleaning may take long or never end, so the report is printed before it; and it is done
    // whatever the record and the report came to.
    let reported = report(&mut run, &recorded, settings, store);
    let left = clean_up(&mut run, &mut keeper, settings.keeps_data);
    let noted = run.record.directory.write_manifest(&run.record.manifest);
    let good = reported?;
    noted?;
    Ok(present::exit_code(good && left.is_none()))
}

/// Completes the record of a run that measured and prints its report; tells whether it is good.
fn report(
    run: &mut Run<'_, S3Driver>,
    recorded: &Recorded,
    settings: &Settings<'_>,
    store: &Store,
) -> Result<bool> {
    run.record.settle_measured(recorded)?;
    let asked = Asked { full_span: settings.output.full_span, details: false };
    let report = run.report(recorded, asked, store.embedded.is_some())?;
    match settings.show {
        Some(show) => show(run.record.directory.path())?,
        None => present::print(&report, settings.output.print.form(), &run.record.ui)?,
    }
    Ok(present::is_good(&report, settings.conduct.max_error_rate.0, &run.record.ui))
}

/// Why there is no measured stage: prepare failed or was stopped.
fn why_not_prepared(recorded: &Recorded) -> anyhow::Error {
    let Some((_, prepare)) = recorded.stage(StageKind::Prepare) else {
        return anyhow!("the run was stopped before it began");
    };
    let (ops, failed) = (prepare.ops_count, prepare.failed_count);
    match prepare.errors.first() {
        Some(first) => {
            let advice = advice_for(first.class);
            anyhow!(
                "prepare failed: {failed} of {ops} uploads; the first: {}{advice}",
                first.message
            )
        }
        None => anyhow!("stopped while preparing; nothing was measured"),
    }
}

/// What a user can change about a failure of that class.
fn advice_for(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Connect | ErrorClass::Reset => " (check --host and --tls)",
        ErrorClass::Timeout => " (check --host; a store that is only slow may need --op-timeout)",
        ErrorClass::Denied => " (check --access-key, --secret-key and what they may do)",
        ErrorClass::NotFound => " (check --bucket)",
        ErrorClass::Throttled => " (lower --concurrent, or set --rps-limit or --retries)",
        _ => "",
    }
}

pub(crate) fn in_words(error: DriverError) -> anyhow::Error {
    let advice = advice_for(error.class);
    let told = error.message.contains("--");
    anyhow!("{}{}", error.message, if told { "" } else { advice })
}

/// Administration of the target, outside of what is measured. A signal gives each step of it up.
struct Keeper {
    runtime: tokio::runtime::Runtime,
    steward: S3Steward,
    interrupts: Interrupts,
    /// When the run began.
    now: WallTime,
    /// Marks the run as under way, where it writes into a bucket that others see.
    lease: Option<BucketLease>,
}

/// Carries out a step of `$keeper`'s steward.
macro_rules! step {
    ($keeper:ident . $call:ident ( $($given:expr),* )) => {
        heed(&$keeper.interrupts, &$keeper.runtime, $keeper.steward.$call($($given),*))
    };
}

impl Keeper {
    fn new(steward: S3Steward, interrupts: Interrupts, now: WallTime) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop")?;
        Ok(Self { runtime, steward, interrupts, now, lease: None })
    }

    /// Makes sure that the bucket is there and can do what the workload asks of it.
    fn ensure_root(&mut self, spec: &WorkloadSpec, id: &RunId) -> Result<()> {
        let (activity, keys) = (&spec.measure.activity, &spec.keys);
        let base = KeyLayout::for_run(&keys.prefix, id.as_str(), keys.per_worker).base;
        let command = spec.name.replacen('-', " ", 1);
        let locks = matches!(activity, ActivitySpec::Retention { .. });
        let root = match locks {
            true => step!(self.ensure_root_with_lock())?,
            false => step!(self.ensure_root())?,
        };
        let keeps_versions = *activity == ActivitySpec::Versioned || spec.objects.versions > 1;
        if keeps_versions || locks {
            if !step!(self.probe(Feature::Versioning, &base))? {
                bail!("{command}: the store keeps no versions, so there is nothing to measure");
            }
            if root == RootState::Existed && !step!(self.keeps_versions())? {
                // Once switched on it can never be undone, and others use the bucket.
                bail!(
                    "the bucket keeps no versions; name another --bucket, to be made with that, or \
                     switch them on yourself"
                );
            }
            step!(self.ensure_versioning())?;
        }
        let (feature, what) = match activity {
            ActivitySpec::Zip => (Feature::Zip, "does not read files out of zip archives"),
            ActivitySpec::Snowball { .. } => (Feature::Snowball, "does not take archives apart"),
            ActivitySpec::Fanout { .. } => {
                (Feature::Fanout, "does not write one content under several names")
            }
            ActivitySpec::Append { .. } => (Feature::Append, "does not add to objects"),
            _ => return Ok(()),
        };
        if !step!(self.probe(feature, &base))? {
            bail!("{command}: the store {what}, so there is nothing to measure");
        }
        Ok(())
    }

    /// Refuses to remove objects of a run that is under way.
    fn refuse_living<'k>(&mut self, keys: impl Iterator<Item = &'k str>) -> Result<()> {
        let runs: BTreeSet<&str> = keys.filter_map(bucket_lease::run_of).collect();
        for base in runs {
            let marked = bucket_lease::is_marked(&mut self.steward, base, self.now);
            if heed(&self.interrupts, &self.runtime, marked)? {
                bail!(
                    "the run whose objects lie below `{base}/` is under way; leave it its objects"
                );
            }
        }
        Ok(())
    }

    /// Makes sure that the bucket is there, or finds in it what the workload wants to find.
    fn prepare_root(&mut self, spec: &WorkloadSpec, id: &RunId, bucket: &str) -> Result<Workload> {
        let Some(existing) = &spec.objects.existing else {
            self.ensure_root(spec, id)?;
            return spec.validate(id.as_str(), None).map_err(lower::in_flags);
        };
        spec.validate(id.as_str(), Some(Vec::new())).map_err(lower::in_flags)?;
        // A bucket that is not there is not made: nothing would be in it.
        let found = step!(self.survey(&spec.keys.prefix, existing.limit, existing.recursive))?;
        if existing.destroys {
            self.refuse_living(found.iter().map(|found| &*found.key))?;
        }
        // An empty object has nothing to read.
        let objects: Vec<ExistingObject> = found
            .into_iter()
            .filter(|found| found.size > 0)
            .map(|found| ExistingObject { key: found.key, size: found.size })
            .collect();
        if objects.is_empty() {
            let prefix = &spec.keys.prefix;
            bail!("--list-existing: no object below `{prefix}` in bucket `{bucket}` (--prefix)");
        }
        spec.validate(id.as_str(), Some(objects)).map_err(lower::in_flags)
    }
}

/// Carries a step of administration out, unless a signal gives it up.
fn heed<T>(
    interrupts: &Interrupts,
    runtime: &tokio::runtime::Runtime,
    step: impl Future<Output = Result<T, DriverError>>,
) -> Result<T> {
    match interrupts.unless_stopped(runtime, step) {
        Ok(done) => done.map_err(in_words),
        Err(Stopped) => bail!("stopped before anything was measured"),
    }
}

/// Names the place of objects that a run did not write.
fn place(endpoints: &[String], bucket: &str, prefix: &str) -> String {
    let below = if prefix.is_empty() { String::new() } else { format!(" below `{prefix}`") };
    format!("bucket `{bucket}`{below} on {}", hosts(endpoints))
}

/// Removes what the run wrote, unless it is to be kept, and says in the manifest what became of it.
///
/// Returns the sentence that names what is left, if something is.
fn clean_up(run: &mut Run<'_, S3Driver>, keeper: &mut Keeper, keeps_data: bool) -> Option<String> {
    let started = run.record.now();
    let wrote = matches!(run.workload.population, Population::Uploaded(_));
    let (mut removed, mut left) = (None, None);
    let state = if !wrote {
        CleanupState::NotNeeded
    } else if keeps_data {
        CleanupState::Kept
    } else {
        run.record.interrupts.begin_step();
        run.record.ui.note("cleaning up; Ctrl-C leaves it to `plimsoll clean`");
        let base = run.workload.layout.base.clone();
        let removed_so_far = keeper.steward.removed_count();
        let sweep = keeper.steward.sweep(&base);
        let why = match run.record.interrupts.unless_stopped(&keeper.runtime, sweep) {
            Ok(Ok(objects)) => {
                run.record.ui.note(&format!("removed {} objects", format::count(objects)));
                removed = Some(objects);
                None
            }
            Ok(Err(error)) => Some((CleanupState::Failed, error.to_string())),
            Err(Stopped) => {
                let so_far = format::count(removed_so_far.load(Ordering::Relaxed));
                Some((CleanupState::Pending, format!("stopped; {so_far} are")))
            }
        };
        let state = why.as_ref().map_or(CleanupState::Complete, |(state, _)| *state);
        left = why.map(|(_, why)| {
            let path = run.record.directory.path().display();
            format!(
                "objects below `{base}` could not all be removed ({why}); `plimsoll clean {path}` \
                 finishes the job"
            )
        });
        left.iter().for_each(|message| run.record.ui.warn(message));
        state
    };
    let took = run.record.now().since(started).as_nanos() as u64;
    if keeper.lease.take().is_some() && left.is_none() {
        // What cannot be removed ends by itself.
        let marks = bucket_lease::marks_of(&run.workload.layout.base);
        let sweep = keeper.steward.sweep(&marks);
        let _ = run.record.interrupts.unless_stopped(&keeper.runtime, sweep);
    }
    run.record.manifest.cleanup =
        Cleanup { state, objects_removed_count: removed, took_ns: removed.map(|_| took) };
    left
}

/// Names hosts: the first of many.
fn hosts(endpoints: &[String]) -> String {
    match endpoints {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        [] => String::new(),
    }
}

fn announce(ui: &Ui, store: &Store, spec: &WorkloadSpec, endpoints: &[String], bucket: &str) {
    if store.embedded.is_some() {
        ui.note(
            "no --host: running on the embedded in-memory store, which shares this machine's cores",
        );
    }
    let hosts = hosts(endpoints);
    ui.note(&format!("{} on {hosts}, bucket {bucket}, seed {}", spec.name, spec.seed));
}

fn engine_config(conduct: &ConductArgs, embedded: bool) -> EngineConfig {
    let cores = machine::cores();
    let free = if embedded { cores - store::embedded_threads().min(cores - 1) } else { cores };
    EngineConfig {
        threads: conduct.threads.unwrap_or(free).max(1),
        op_timeout: conduct.op_timeout.0,
        retries: conduct.retries,
    }
}

/// The embedded store keeps everything in memory, so what prepare uploads must fit.
fn check_embedded_memory(spec: &WorkloadSpec) -> Result<()> {
    let workload = spec.validate("check", None).map_err(lower::in_flags)?;
    let wanted = workload.sizes.mean() * workload.population_count() as f64;
    let capacity = store::embedded_capacity();
    if wanted > capacity as f64 {
        const GIB: f64 = (1u64 << 30) as f64;
        bail!(
            "--objects {} of --obj.size {} on average need {:.1} GiB, and the embedded store holds \
             {:.1} GiB; lower one of them or name a store with --host",
            workload.population_count(),
            Bytes(workload.sizes.mean() as u64),
            wanted / GIB,
            capacity as f64 / GIB
        );
    }
    Ok(())
}

/// A seed that no other run has, short enough to be typed again.
pub(crate) fn fresh_seed(at: WallTime) -> u64 {
    let process = u64::from(rustix::process::getpid().as_raw_nonzero().get() as u32);
    mix64(at.as_unix_ns() ^ process.rotate_left(48)) >> 32
}

/// Waits for a time of day, today's.
fn wait_for(at: Option<TimeOfDay>, ui: &Ui, interrupts: &Interrupts) -> Result<()> {
    let Some(TimeOfDay(time)) = at else { return Ok(()) };
    let mut left = time_until(at)?;
    ui.note(&format!("waiting until {time}"));
    while left > Duration::ZERO && !interrupts.stop_flag().is_set() {
        interrupts.rest(left);
        left = time_until(at).unwrap_or_default();
    }
    Ok(())
}

/// Returns how long it is until a time of day, today's; one that is past is refused, not taken for
/// tomorrow's.
fn time_until(at: Option<TimeOfDay>) -> Result<Duration> {
    let Some(TimeOfDay(time)) = at else { return Ok(Duration::ZERO) };
    let now = jiff::Zoned::now();
    let until = now.with().time(time).build().context("--syncstart")?;
    let left = until.duration_since(&now);
    if left.is_negative() {
        bail!("--syncstart: {time} is over; choose a time that leaves room to prepare");
    }
    Ok(left.unsigned_abs())
}
