//! `plimsoll s3`: a benchmark of an S3 store from its flags to its report.

use std::cell::RefCell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::{
    Consent, ObjectsWork, Permit, Recorded, Recording, RunTime, Stop, StoreAdmin, machine,
};
use plimsoll_driver_s3::S3Driver;
use plimsoll_engine::EngineConfig;
use plimsoll_model::{Bytes, RunId, WallTime};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::Target;
use plimsoll_results::Asked;
use plimsoll_workload::{Activity, Population, Workload, WorkloadSpec, mix64};

use crate::args::s3::{ConductArgs, S3Command, StoreArgs};
use crate::args::{OutputArgs, TimeOfDay, YES};
use crate::server_profile::ServerProfile;
use crate::store::{self, Store};
use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{lower, manifest, shown, signals};

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
            flag: YES,
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
    let tls_ca = settings.store.tls_trust.tls_ca.clone();
    let telemetry = settings.output.telemetry.start(&manifest, &spec.name, &time, tls_ca, ui)?;
    let kinds = settings.conduct.serverprof.as_ref();
    let profile = kinds.map(|kinds| ServerProfile::check(kinds, &store.config, &time.clock));
    let profile = profile.transpose()?;
    let path = manifest::directory_for(settings.output.run_dir.as_deref(), &id);
    // Until here a signal ends the process as it always does: there is nothing to put in order.
    let stop = signals::listen()?;
    let directory = RunDirectory::create(&path, &manifest)?;
    let terminal = Terminal::observer(ui, &stop, telemetry);

    let mut admin = StoreAdmin::new(driver.admin(&time.clock), stop.clone(), time.wall_epoch)?;
    admin.keeps_data = settings.keeps_data;
    let bucket = &settings.store.bucket;
    let prepared = admin.prepare(spec, &id, bucket).map_err(lower::in_our_flags);
    let prepared = prepared.and_then(|workload| {
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
        let base = &workload.layout.base;
        admin.owns(base, store.lease(base, &time, &terminal)?);
    }
    announce(&ui, &store, spec, &manifest.target.endpoints, bucket);
    if let Some(found) = &store.found {
        ui.note(&format!("credentials from {}", found.source));
        let end = time.wall_epoch.after(workload.duration);
        found.outlived(end).iter().for_each(|warning| ui.warn(warning));
    }
    manifest.notes = notes(&workload, &manifest.target, embedded);
    lower::late_stop_rules(&workload).iter().for_each(|warning| ui.warn(warning));
    let recording = Recording::new(directory, manifest, time, permit, terminal, stop);
    Run { spec, workload, driver: &driver, admin, settings, ui }.conduct(recording, profile)
}

/// A run that may begin.
struct Run<'a> {
    spec: &'a WorkloadSpec,
    workload: Arc<Workload>,
    driver: &'a S3Driver,
    admin: StoreAdmin,
    settings: &'a Settings<'a>,
    ui: Ui,
}

impl Run<'_> {
    /// Runs the stages, prints the report and cleans up.
    fn conduct(
        mut self,
        mut recording: Recording,
        profile: Option<ServerProfile>,
    ) -> Result<ExitCode> {
        let profile = RefCell::new(profile);
        let config = engine_config(self.settings.conduct, self.settings.store.host.is_none());
        let work = ObjectsWork::new(self.driver, &self.workload, config);
        let mut work = work.before_measuring(|recording| {
            wait_for(self.settings.conduct.syncstart, &self.ui, &recording.stop)?;
            profile.borrow_mut().as_mut().map_or(Ok(()), ServerProfile::start)?;
            Ok(())
        });
        let generator = ObjectsWork::<S3Driver>::generator(self.spec, &self.workload);
        let done = generator.and_then(|generator| recording.run(&mut work, &generator));
        drop(work);
        let show = |recording: &mut Recording, recorded: &Recorded| {
            if let Some(Err(error)) =
                profile.into_inner().map(|profile| profile.save(&recording.directory))
            {
                // What was measured is worth no less without it.
                self.ui.warn(&format!("{error:#}"));
            }
            report(recording, recorded, self.settings, &self.ui)
        };
        let done = done.map_err(lower::in_our_flags);
        Ok(shown::exit_code(recording.finish(done, show, &mut self.admin)?))
    }
}

/// Prints the report of a run that measured; tells whether it is good.
fn report(
    recording: &mut Recording,
    recorded: &Recorded,
    settings: &Settings<'_>,
    ui: &Ui,
) -> Result<bool> {
    shown::must_be_measured(recorded)?;
    let asked = Asked { full_span: settings.output.full_span, ..Asked::default() };
    let report = shown::report_of_run(recording, &asked)?;
    match settings.show {
        Some(show) => show(recording.directory.path())?,
        None => shown::print(&report, settings.output.print.form(), ui)?,
    }
    Ok(shown::is_good(&report, settings.conduct.max_error_rate.0, ui))
}

/// Returns remarks on what the figures will mean.
fn notes(workload: &Workload, target: &Target, embedded: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if embedded {
        notes.push(
            "embedded in-memory store on the same cores: this measures plimsoll and the machine, \
             not a store you would use"
                .to_owned(),
        );
    }
    if let Some(signing) = &target.payload_signing
        && !matches!(workload.activity, Activity::List { .. })
        && matches!(workload.population, Population::Uploaded(_))
    {
        notes.push(format!("payload of uploads: {signing}"));
    }
    notes
}

/// Names the place of objects that a run did not write.
fn place(endpoints: &[String], bucket: &str, prefix: &str) -> String {
    let below = if prefix.is_empty() { String::new() } else { format!(" below `{prefix}`") };
    format!("bucket `{bucket}`{below} on {}", hosts(endpoints))
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
fn wait_for(at: Option<TimeOfDay>, ui: &Ui, stop: &Stop) -> Result<()> {
    let Some(TimeOfDay(time)) = at else { return Ok(()) };
    let mut left = time_until(at)?;
    ui.note(&format!("waiting until {time}"));
    while left > Duration::ZERO && !stop.flag().is_set() {
        stop.rest(left);
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
