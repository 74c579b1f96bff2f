//! A run from its workload to its exit code, whatever command asked for it.
//!
//! Long: the order of its steps is what it is about; each is short and used once.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::{
    BeforeMeasuring, BegunRun, Chooser, ConductError, Consent, ContentFiles, ContentFrom, Events,
    FileSettings, Observer, Reached, Recorded, Recording, RunRequest, RunSettings, RunTime, Runner,
    Scripted, StandIn, Stop, Target, Targets, Traces, embedded, machine, output, with_files,
};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_s3::{ProfileKinds, ServerProfile};
use plimsoll_engine::EngineConfig;
use plimsoll_model::{Interface, RunId, Seed, StageKind};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::Manifest;
use plimsoll_report::{format, verdict};
use plimsoll_results::Asked;
use plimsoll_workload::mix64;
use plimsoll_workload::plan::spec::{OracleTarget, QueueSpec, TargetSpec, Targets as TargetSpecs};
use plimsoll_workload::plan::{self, LocalFile, Plan, TargetIndex, TargetSecrets, WorkloadFile};

use crate::access::AccessDoc;
use crate::args::file::FileConductArgs;
use crate::args::s3::{ConductArgs, StoreArgs, TransportArg};
use crate::args::{OutputArgs, TimeOfDay, scrape};
use crate::built::BUILT;
use crate::fleet::{self, Mustered};
pub(crate) use crate::manifest::fresh_seed;
use crate::server_profile::{save, unprofiled};
use crate::store::{self, Asking, Hosts, Judged, Stores};
use crate::syncstart::{time_until, wait_for};
use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{environment, hosts, lower, manifest, pins, said, shown, signals};

/// After so long an operation is given up where nobody says otherwise.
const OP_TIMEOUT: Duration = Duration::from_secs(10);

/// Prints what is to be printed of the run in a directory.
pub(crate) type Show<'a> = &'a dyn Fn(&mut Recording, &Ui) -> Result<()>;

/// Returns who is told of a run instead of the terminal, and tells the terminal.
pub(crate) type Observe<'a> = &'a dyn Fn(Arc<dyn Observer>) -> Arc<dyn Observer>;

/// How a run is carried out.
pub(crate) struct Settings<'a> {
    /// How stores are reached; without it there is none.
    pub(crate) store: Option<&'a StoreArgs>,
    /// Who asks targets, where the flags do not say it.
    pub(crate) secrets: TargetSecrets,
    /// Whether credentials of the environment may be used.
    pub(crate) lends_credentials: bool,
    /// The hosts that may be sent secrets which neither the workload brings nor the command line;
    /// `None`: whichever the workload names.
    pub(crate) lends_to: Option<Hosts>,
    /// What stands in for stores and files.
    pub(crate) stand_in: StandIn,
    /// How operations on objects are driven; without a number of threads by as many as are free.
    pub(crate) threads: Option<usize>,
    pub(crate) op_timeout: Duration,
    pub(crate) retries: u8,
    /// What carries connections to stores.
    pub(crate) transport: TransportArg,
    /// When measuring is to begin.
    pub(crate) syncstart: Option<TimeOfDay>,
    /// What of the server is profiled.
    pub(crate) serverprof: Option<&'a ProfileKinds>,
    /// How operations on files are driven.
    pub(crate) files: Option<&'a FileConductArgs>,
    pub(crate) output: &'a OutputArgs,
    /// Whether what the run wrote stays.
    pub(crate) keeps_data: bool,
    /// Whether it may change what no run wrote.
    pub(crate) consent: Consent,
    /// Whether it goes on where all operations fail alike.
    pub(crate) keeps_going: bool,
    /// How much of the operations may fail, in percent.
    pub(crate) max_error_rate: f64,
    /// How often cleaning is tried.
    pub(crate) clean_tries_max: u32,
    /// Where files under test may lie, and scripts and keys that the workload names.
    pub(crate) allowed: AllowedDirs,
    /// Where the files may lie whose content, or the names in them, go to a store.
    pub(crate) reads: AllowedDirs,
    /// Traces that were read already.
    pub(crate) traces: Traces,
    /// Remarks to be kept with the run.
    pub(crate) notes: Vec<String>,
    /// Prints what is to be printed of the run; `None`: our report.
    pub(crate) show: Option<Show<'a>>,
    /// Who is told of the run before the terminal is.
    pub(crate) observe: Option<Observe<'a>>,
    /// The agents that carry it out, where they were found already.
    pub(crate) mustered: Cell<Option<Mustered>>,
    /// What ends it; `None`: a signal does.
    pub(crate) stop: Option<Stop>,
    /// Whether its client was the limit of a stage that was measured, once it was shown.
    pub(crate) client_limited: Cell<bool>,
}

impl<'a> Settings<'a> {
    /// Refuses to send a store files of the user's that only a workload names.
    fn check_sent(&self, file: &WorkloadFile) -> Result<()> {
        let (Some(named), StandIn::Nobody) = (&self.lends_to, &self.stand_in) else {
            // The user names all hosts, or nothing is sent.
            return Ok(());
        };
        let is_store = match &file.targets {
            TargetSpecs::Given => !named.is_empty(),
            _ => hosts::specs(file).into_iter().any(|spec| {
                matches!(spec, TargetSpec::S3(_) | TargetSpec::Swift(_) | TargetSpec::Seaweedfs(_))
            }),
        };
        let is_kept = |of: &LocalFile| {
            of.is_sent && (self.reads.is_any() || !self.reads.allows(Path::new(&of.path)))
        };
        match file.local_files().into_iter().find(|of| is_store && is_kept(of)) {
            None => Ok(()),
            Some(LocalFile { field, path, .. }) => {
                let refused = field.refuse(format!(
                    "this would send what is in `{path}` to a store; to allow it, add --allow-dir \
                     with its directory or one above"
                ));
                Err(ConductError::from(refused).into())
            }
        }
    }

    /// Returns it with these as the only directories from which files may go to a store; any, where
    /// none is named.
    pub(crate) fn reading(self, allow_dirs: &[PathBuf]) -> Result<Self> {
        let reads = match allow_dirs {
            [] => AllowedDirs::ANY,
            named => AllowedDirs::own(named)
                .map_err(|error| anyhow!("{}; it has to exist (--allow-dir)", error.message))?,
        };
        Ok(Self { traces: Traces::within(reads.clone()), reads, ..self })
    }

    /// Returns those of a run that is printed to `output`.
    pub(crate) fn plain(output: &'a OutputArgs, consent: Consent) -> Self {
        Self {
            store: None,
            secrets: TargetSecrets::default(),
            lends_credentials: true,
            lends_to: None,
            stand_in: StandIn::Nobody,
            threads: None,
            op_timeout: OP_TIMEOUT,
            retries: 0,
            transport: TransportArg::default(),
            syncstart: None,
            serverprof: None,
            files: None,
            output,
            keeps_data: false,
            consent,
            keeps_going: false,
            max_error_rate: 0.0,
            clean_tries_max: 1,
            allowed: AllowedDirs::ANY,
            reads: AllowedDirs::ANY,
            traces: Traces::default(),
            notes: Vec::new(),
            show: None,
            observe: None,
            mustered: Cell::default(),
            stop: None,
            client_limited: Cell::default(),
        }
    }

    /// Returns the profiling of the first store, if it is to be profiled and can be.
    fn profile(&self, stores: &[Reached], time: &RunTime) -> Result<Option<ServerProfile>> {
        let profile = self.serverprof.zip(stores.first());
        let check =
            |(kinds, store): (_, &Reached)| ServerProfile::check(kinds, &store.config, &time.clock);
        profile.map(check).transpose().map_err(unprofiled)
    }

    /// Returns them with operations on objects driven as the flags say.
    pub(crate) fn conducting(self, args: &'a ConductArgs) -> Self {
        Self {
            threads: args.threads,
            op_timeout: args.op_timeout.0,
            retries: args.retries,
            transport: args.transport,
            syncstart: args.syncstart,
            max_error_rate: args.max_error_rate.0,
            ..self
        }
    }

    /// Finds the agents that are to carry a run out, where some are, and reads the traces that are
    /// replayed; returns what is to be said of these.
    fn muster(&self, plan: &mut Plan, ui: &Ui) -> Result<(Option<Mustered>, Vec<String>)> {
        let args = &self.output.fleet;
        if !args.is_asked()? {
            pins::pinned_here(plan).iter().for_each(|note| ui.note(note));
            let of_traces = self.traces.clone().learn(plan)?;
            of_traces.iter().for_each(|note| ui.note(note));
            return Ok((None, of_traces));
        }
        let is_real = matches!(self.stand_in, StandIn::Nobody);
        let mustered = fleet::assign(plan, self.mustered.take(), args, is_real, ui)?;
        Ok((Some(mustered), Vec::new()))
    }

    /// Has agents make a run ready that has begun, and carry it out.
    fn hand_over(
        &self,
        run: &mut BegunRun,
        plan: &Plan,
        (mut reached, stores): (Stores<'_>, &[Reached]),
        mustered: Mustered,
        content: ContentFiles,
    ) -> Result<()> {
        let args = &self.output.fleet;
        let access = AccessDoc::of(plan, &mut reached, stores, args.agent_credentials)?;
        let access = AccessDoc { transport: self.transport, ..access };
        let driven = (self.threads, self.op_timeout, self.retries);
        mustered.direct(run, args, driven, self.files, &access, content)
    }

    /// Returns a workload with what flags add to it; refuses commands at instants of a run that
    /// has no real time.
    fn asked_of(&self, file: WorkloadFile) -> Result<WorkloadFile> {
        if self.is_simulated() && !self.output.outages.event.is_empty() {
            bail!("--event runs commands at instants of real time, and --virtual has none");
        }
        let mut file = self.output.outages.added_to(file)?;
        file.keep_going |= self.keeps_going || self.max_error_rate >= 100.0;
        Ok(file)
    }

    /// Returns where the record of a simulation lies that nobody keeps.
    fn passing(&self) -> Result<Option<tempfile::TempDir>> {
        let passes = self.is_simulated() && self.output.run_dir.is_none();
        Ok(passes.then(output::temporary_directory).transpose()?)
    }

    /// Returns the commands that the user has run at instants of it.
    fn events(&self) -> Events {
        let asked = self.output.outages.event.iter().map(|event| event.0.clone()).collect();
        Events::new(asked, Arc::new(said::without_known_secrets))
    }

    /// Returns whose credentials were found; an error where agents are sent some too short-lived.
    fn lasting(&self, found: Vec<Asking>, of: (bool, &Plan, &RunTime)) -> Result<Vec<Asking>> {
        let (is_fleet, plan, time) = of;
        if is_fleet && !self.output.fleet.agent_credentials {
            store::keys_outlast(plan, &found, time)?;
        }
        Ok(found)
    }

    /// Returns how stores are reached; where agents measure them, what carries connections is for
    /// these to find out.
    fn stores<'s>(&'s self, time: &'s RunTime, seed: Seed, is_fleet: bool) -> Stores<'s> {
        Stores {
            transport: if is_fleet { TransportArg::default() } else { self.transport },
            seed: seed.0,
            variable: self.variable(),
            lends_to: self.lends_to.clone(),
            files: self.allowed.clone(),
            stop: self.stop.clone().unwrap_or_default(),
            ..Stores::new(self.store, &self.secrets, time)
        }
    }

    /// Returns what reads credentials of the environment, if those may be used.
    fn variable(&self) -> fn(&str) -> Option<String> {
        match self.lends_credentials {
            true => environment::variable,
            false => environment::no_variable,
        }
    }

    /// Tells whether nothing of the run is real.
    const fn is_simulated(&self) -> bool {
        matches!(self.stand_in, StandIn::Virtual(_))
    }

    fn time(&self) -> RunTime {
        if self.is_simulated() { RunTime::simulated() } else { RunTime::machine() }
    }

    fn run_settings(&self, is_embedded: bool, by_agents: bool) -> RunSettings {
        let files = FileSettings {
            allowed: self.allowed.clone(),
            interface: self.files.and_then(|files| files.interface).map(Interface::from),
            threads: self
                .files
                .and_then(|files| files.threads)
                .unwrap_or_else(machine::cores)
                .max(1),
            drop_machine_caches: self.files.is_some_and(|files| files.drop_machine_caches),
            keeps_data: self.keeps_data,
            part: None,
        };
        let engine = EngineConfig {
            // A simulation is one thread's.
            threads: match &self.stand_in {
                StandIn::Virtual(_) => 1,
                _ => self.threads.unwrap_or(embedded::cores_free(is_embedded)).max(1),
            },
            op_timeout: self.op_timeout,
            retries: self.retries,
        };
        RunSettings {
            engine,
            files,
            reads: self.reads.clone(),
            keeps_data: self.keeps_data,
            clean_tries_max: self.clean_tries_max,
            consent: self.consent.clone(),
            runner: if by_agents { Runner::Agents } else { Runner::Process },
        }
    }
}

/// A run that has begun, with what it is run on.
pub(crate) struct Conducted {
    pub(crate) run: BegunRun,
    pub(crate) ui: Ui,
    stores: Vec<Reached>,
    /// Whose credentials were found.
    found: Vec<Asking>,
    scripted: Vec<Scripted>,
    profile: Option<ServerProfile>,
    /// Where the record of a simulation lies that nobody keeps.
    passing: Option<tempfile::TempDir>,
}

/// Judges a workload as a run would before it touches anything, and returns what it means.
pub(crate) fn judge(file: &WorkloadFile, settings: &Settings<'_>) -> Result<Arc<Plan>> {
    let file = with_files(file, &settings.reads)?;
    let mut plan = file.check().map_err(ConductError::from)?;
    settings.traces.clone().learn(&mut plan)?;
    let plan = Arc::new(plan);
    let time = settings.time();
    let secrets = &settings.secrets;
    let (args, transport) = (settings.store, settings.transport);
    let (files, variable) = (settings.allowed.clone(), settings.variable());
    let is_embedded = false;
    let mut judged = Judged { args, transport, time: &time, is_embedded, secrets, variable, files };
    let seed = plan.seed.unwrap_or(Seed(0));
    let Targets { all, .. } = Targets::of(&plan, &mut judged, &settings.stand_in, seed, &time)?;
    let is_embedded = judged.is_embedded;
    if is_embedded {
        store::check_embedded_memory(&plan)?;
    }
    request(Arc::clone(&plan), all, time, settings.run_settings(is_embedded, false)).lay_out()?;
    Ok(plan)
}

/// Returns existing buckets that a plan would change, that no run of plimsoll made and that no
/// `touch` covers.
pub(crate) fn foreign_buckets(plan: &Plan, settings: &Settings<'_>) -> Result<BTreeSet<String>> {
    let (time, seed) = (settings.time(), plan.seed.unwrap_or(Seed(0)));
    let mut reached = settings.stores(&time, seed, false);
    let open = |stop| {
        reached.stop = stop;
        Targets::of(plan, &mut reached, &settings.stand_in, seed, &time)
    };
    Ok(plimsoll_conduct::foreign_buckets(plan, open, &settings.consent, &time)?)
}

/// Runs a workload, records it, has it shown and cleans up behind it.
pub(crate) fn run(file: &WorkloadFile, settings: &Settings<'_>) -> Result<ExitCode> {
    let mut conducted = Conducted::begin(file, settings)?;
    let done = conducted.carry_out(settings.syncstart, None);
    conducted.end(done, settings)
}

fn request(
    plan: Arc<Plan>,
    targets: Vec<Target>,
    time: RunTime,
    settings: RunSettings,
) -> RunRequest {
    let seed = plan.seed.unwrap_or_else(|| Seed(fresh_seed(time.wall_epoch)));
    let id = RunId::new(&plan.name, time.wall_epoch, mix64(seed.0 ^ time.wall_epoch.as_unix_ns()));
    let content = ContentFrom::Files;
    RunRequest { plan, seed, id, time, targets, settings, content }
}

/// Returns what the files hold that content is made of, where agents are to have it as well: it is
/// read once, so that all have the same.
fn content_of(
    plan: &Plan,
    mustered: Option<&Mustered>,
    allowed: &AllowedDirs,
) -> Result<ContentFiles> {
    let read = mustered.map(|_| ContentFiles::read(plan, allowed)).transpose()?;
    Ok(read.unwrap_or_default())
}

impl Conducted {
    /// Makes ready what a run needs.
    pub(crate) fn begin(file: &WorkloadFile, settings: &Settings<'_>) -> Result<Self> {
        let ui = settings.output.ui();
        let time = settings.time();
        settings.check_sent(file)?;
        let file = settings.asked_of(with_files(file, &settings.reads)?.into_owned())?;
        let mut plan = file.check().map_err(ConductError::from)?;
        let (mustered, of_traces) = settings.muster(&mut plan, &ui)?;
        let plan = Arc::new(plan);
        time_until(settings.syncstart)?;
        let certificate = manifest::certificate(settings.output.certificate.as_deref())?;
        let mut request =
            request(Arc::clone(&plan), Vec::new(), time.clone(), RunSettings::default());
        let (seed, id) = (request.seed, request.id.clone());
        let mut reached = settings.stores(&time, seed, mustered.is_some());
        let mut on = Targets::of(&plan, &mut reached, &settings.stand_in, seed, &time)?;
        let content = content_of(&plan, mustered.as_ref(), &settings.reads)?;
        if mustered.is_some() {
            on.by_agents();
            request.content = ContentFrom::Here(content.clone());
        }
        let Targets { all, stores, scripted } = on;
        let found = std::mem::take(&mut reached.found);
        let found = settings.lasting(found, (mustered.is_some(), &plan, &time))?;
        let is_embedded = stores.iter().any(|store| store.embedded.is_some());
        if is_embedded {
            if mustered.is_some() {
                bail!("agents cannot reach a store inside this process: name one with --host");
            }
            store::check_embedded_memory(&plan)?;
        }
        request.targets = all;
        request.settings = settings.run_settings(is_embedded, mustered.is_some());
        let open = request.lay_out()?;
        let mut manifest = open.manifest(said::command_line(), BUILT, certificate);
        let embedded = embedded_stores(&plan, &stores);
        let notes = notes(&plan, &manifest, &embedded, mustered.is_none());
        manifest.notes.splice(0..0, settings.notes.iter().cloned());
        manifest.notes.extend(of_traces.into_iter().chain(notes));
        let tls_ca = settings.store.and_then(|args| args.tls_trust.tls_ca.clone());
        let telemetry =
            settings.output.telemetry.start(&manifest, &plan.name, &time, tls_ca.clone(), ui)?;
        let scrape = settings.output.telemetry.scrape.pages(tls_ca, &time, &mut manifest)?;
        let profile = settings.profile(&stores, &time)?;
        let passing = settings.passing()?;
        let path = match &passing {
            Some(place) => place.path().join("run"),
            None => manifest::directory_for(settings.output.run_dir.as_deref(), &id),
        };
        // Until here a signal ends the process as it always does: there is nothing to put in order.
        let stop = settings.stop.clone().map_or_else(signals::listen, Ok)?;
        let directory = RunDirectory::create(&path, &manifest)?;
        let endpoints = manifest.target.endpoints.clone();
        let scraper = scrape::begin(scrape, &directory, &time, ui)?;
        let terminal = Terminal::observer(ui, &stop, telemetry, scraper);
        let observer = match settings.observe {
            Some(observe) => observe(terminal),
            None => terminal,
        };
        let mut run = open.begin(directory, manifest, observer, stop)?;
        run.recording.events = settings.events();
        if let Some(mustered) = mustered
            && let Err(error) =
                settings.hand_over(&mut run, &plan, (reached, &stores), mustered, content)
        {
            run.abandon()?;
            return Err(error);
        }
        announce(&ui, &run, &plan, &embedded, &found, (&endpoints, seed));
        Ok(Self { run, ui, stores, found, scripted, profile, passing })
    }

    /// Returns the id of the run.
    pub(crate) fn run_id(&self) -> &str {
        &self.run.recording.manifest.run_id
    }

    /// Carries the stages out, in the order in which they are chosen.
    pub(crate) fn carry_out(
        &mut self,
        syncstart: Option<TimeOfDay>,
        choose: Option<Chooser<'_>>,
    ) -> Result<Recorded> {
        let Self { run, ui, found, profile, scripted, .. } = self;
        let ui = *ui;
        let before: BeforeMeasuring<'_> = Box::new(move |recording| {
            wait_for(syncstart, &ui, &recording.stop)?;
            scripted.iter().for_each(|of| of.begin(recording.now()));
            profile.as_mut().map_or(Ok(()), |profile| profile.start()).map_err(unprofiled)?;
            Ok(())
        });
        let done = run.run(Some(before), choose);
        run.recording.manifest.notes.extend(found.iter().flat_map(Asking::remarks));
        Ok(done?)
    }

    /// Has the run shown, cleans up, and returns the exit code.
    pub(crate) fn end(self, done: Result<Recorded>, settings: &Settings<'_>) -> Result<ExitCode> {
        let good = self.finish(done, settings)?;
        let fails = settings.output.fail_on_client_limit && settings.client_limited.get();
        Ok(if good && fails { shown::client_limit() } else { shown::exit_code(good) })
    }

    /// Has the run shown, cleans up, and tells whether all is as it should be.
    pub(crate) fn finish(self, done: Result<Recorded>, settings: &Settings<'_>) -> Result<bool> {
        let is_kept = self.passing.is_none();
        self.finish_by(done, |recording, ui| report(recording, settings, (ui, is_kept)))
    }

    /// The same with `show`, which shows the run and tells whether what was measured is good.
    pub(crate) fn finish_by(
        self,
        done: Result<Recorded>,
        show: impl FnOnce(&mut Recording, &Ui) -> Result<bool>,
    ) -> Result<bool> {
        let Self { run, ui, stores: _stores, profile, passing: _passing, .. } = self;
        let show = |recording: &mut Recording, recorded: &Recorded| {
            if let Some(Err(error)) = profile.map(|profile| save(profile, &recording.directory)) {
                // What was measured is worth no less without it.
                ui.warn(&format!("{error:#}"));
            }
            if recorded.stage(StageKind::Measure).is_none() {
                bail!("nothing was measured");
            }
            show(recording, &ui)
        };
        run.finish(done, show)
    }
}

/// Prints the report of a run that measured; tells whether it is good.
fn report(
    recording: &mut Recording,
    settings: &Settings<'_>,
    (ui, is_kept): (&Ui, bool),
) -> Result<bool> {
    let OutputArgs { full_span, steady, verbose, .. } = *settings.output;
    let mut asked = Asked { full_span, steady, details: verbose, ..Asked::default() };
    let mut report = match shown::report_of_run(recording, &asked) {
        // What was measured is shown all the same.
        Err(error) if steady => {
            recording.observer.warn(&format!("--steady: {error:#}"));
            asked.steady = false;
            shown::report_of_run(recording, &asked)?
        }
        report => report?,
    };
    if !is_kept {
        report.run_directory = None;
    }
    match settings.show {
        Some(show) => show(recording, ui)?,
        None => shown::print(&report, settings.output.print.form(), ui)?,
    }
    let is_client = report.verdict.as_ref().is_some_and(|verdict| verdict.is_client);
    let refused = report.load_lines.iter().filter(|line| line.is_refused()).count();
    settings.client_limited.set(is_client || refused > 0);
    if settings.show.is_some()
        && let Some(line) = verdict::line(&report)
    {
        // Other layouts have no place for it.
        if is_client { ui.warn(&line) } else { ui.note(&format!("verdict: {line}")) }
    }
    let flaws = plimsoll_results::flaws(&report, settings.max_error_rate);
    flaws.iter().for_each(|flaw| recording.observer.warn(flaw));
    // What has an exit code of its own is no flaw beside it.
    let is_said = settings.output.fail_on_client_limit && flaws.len() == refused;
    Ok(flaws.is_empty() || is_said)
}

/// Returns what the embedded stores of a run are: the oracles of the plan, and the one that stands
/// in where no host is named.
fn embedded_stores(plan: &Plan, stores: &[Reached]) -> Vec<String> {
    let embedded_count = stores.iter().filter(|store| store.embedded.is_some()).count();
    let oracle = |target: &plan::Target| match &target.spec {
        Some(TargetSpec::Oracle(OracleTarget { script: Some(script), .. })) => {
            Some(format!("the oracle (an embedded store that does as {script} says)"))
        }
        Some(TargetSpec::Oracle(OracleTarget { queue: Some(queue), .. })) => {
            let QueueSpec { servers, time } = queue;
            let at_once = format::plural(u64::from(*servers), "operation");
            Some(format!(
                "the oracle (an embedded store that serves {at_once} at once, in {time} each on \
                 average)"
            ))
        }
        Some(TargetSpec::Oracle(_)) => {
            Some("the oracle (an embedded store that answers as fast as it can)".to_owned())
        }
        _ => None,
    };
    let mut found: Vec<String> = plan.targets.iter().filter_map(oracle).collect();
    // Where something stands in for all targets, none is started.
    found.truncate(embedded_count);
    if found.len() < embedded_count {
        found.push("the embedded in-memory store".to_owned());
    }
    found
}

/// Returns remarks on what the figures will mean.
fn notes(plan: &Plan, manifest: &Manifest, embedded: &[String], alone: bool) -> Vec<String> {
    let note = |store: &String| {
        format!(
            "{} on the same cores: this measures plimsoll and the machine, not a store you would \
             use",
            store.trim_start_matches("the ")
        )
    };
    let mut notes: Vec<String> = embedded.iter().map(note).collect();
    let mut jobs = plan.stages.iter().flat_map(|stage| &stage.jobs);
    if let Some(signing) = &manifest.target.payload_signing
        && jobs.any(|job| job.work.sends_content())
    {
        notes.push(format!("payload of uploads: {signing}"));
    }
    if alone {
        notes.extend(pins::pinned_here(plan));
    }
    notes
}

fn announce(
    ui: &Ui,
    run: &BegunRun,
    plan: &Plan,
    embedded: &[String],
    found: &[Asking],
    (endpoints, Seed(seed)): (&[String], Seed),
) {
    for store in embedded {
        ui.note(&format!("running on {store}, which shares this machine's cores"));
    }
    let place = match run.targets() {
        [Target::Store(store)] if !store.bucket.is_empty() => {
            let in_use = plan.buckets_in_use(TargetIndex(0), Some(&store.bucket));
            let name = store.record.root_name(in_use.as_ref().unwrap_or(&store.bucket));
            format!("on {}, {} {name}", format::hosts(endpoints), store.record.root_word())
        }
        [Target::Files(_)] => format!("in {}", endpoints.join(", ")),
        [_] => format!("on {}", format::hosts(endpoints)),
        targets => format!("on {} targets", targets.len()),
    };
    ui.note(&format!("{} {place}, seed {seed}", plan.name));
    for Asking { found, .. } in found {
        ui.note(&format!("credentials from {}", found.source));
    }
    lower::late_stop_rules(plan).iter().for_each(|warning| ui.warn(warning));
}
