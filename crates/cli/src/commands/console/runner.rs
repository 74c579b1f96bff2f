//! Workloads of the console's queue, carried out in this process or by a fleet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Error, Result, bail};
use plimsoll_conduct::bounds::{self, MemoryGuard};
use plimsoll_conduct::{BucketGlob, Consent, NamedHosts, RunTime, StandIn, Traces, machine};
use plimsoll_console::{
    Agent, AgentState, Facts, Job, Problem, Refusal, Runner, Severity, Sound, SourceKind,
    Submission, Verdict,
};
use plimsoll_dialects::fio::is_job_file;
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_http::{Endpoint, PORT_PLAIN, PORT_TLS, Scheme, expand_hosts, split_scheme};
use plimsoll_record::RunDirectory;
use plimsoll_results::degraded;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{Plan, ReadError, Source, Stage, WorkloadFile};

use super::allowed::{Admitted, Touched, hosts_of, touched};
use super::from_xml::FromXml;
use crate::args::console::ConsoleArgs;
use crate::args::file::{FileConductArgs, JobFileArgs};
use crate::args::fleet::FleetArgs;
use crate::args::outages::OutageArgs;
use crate::args::requests::SignatureArg;
use crate::args::s3::StoreArgs;
use crate::args::{CredentialArgs, OutputArgs, Percent, PrintArgs, TelemetryArgs};
use crate::commands::fio;
use crate::commands::run::located;
use crate::conducted::{self, Conducted, Settings};
use crate::hosts::specs;
use crate::pins;
use crate::secret::Secret;
use crate::ui::LiveMode;

/// By what leave is given.
const LEAVE: &str = "`touch` in console.toml";

/// Carries workloads out as `plimsoll run` does.
pub(super) struct LocalRunner {
    store: StoreArgs,
    /// The same without the owner's credentials.
    bare_store: StoreArgs,
    /// Hosts that the owner's credentials may be sent to.
    credential_hosts: NamedHosts,
    fleet: FleetArgs,
    has_fleet: bool,
    /// Where files may lie that a workload names.
    allowed: AllowedDirs,
    known: Arc<Mutex<Known>>,
    /// How much memory this process may take while workloads run.
    memory_max: u64,
    /// How many of them run at a time.
    runs_max: u32,
    /// Held while a workload is judged, which may read files into memory: one after the other.
    judging: Mutex<()>,
}

/// What was heard last.
#[derive(Default)]
pub(super) struct Known {
    pub(super) agents: Vec<Agent>,
    /// Busy and all ticks of all processors.
    ticks: Option<(u64, u64)>,
    /// What the console calls the runs that go on, by their ids.
    runs: BTreeMap<String, String>,
}

/// A workload as it was read.
struct Prepared {
    kind: SourceKind,
    file: Admitted,
    source: Option<Source>,
    notes: Vec<String>,
    stand_in: StandIn,
    /// Of COSBench's: what it came to.
    cosbench: Option<Box<FromXml>>,
    /// Every host that it names, each with whether it is spoken to over TLS, if that can be told.
    hosts: Option<Vec<(Endpoint, bool)>>,
}

/// A workload as it was read, before its files are checked.
struct Unvetted {
    file: WorkloadFile,
    source: Option<Source>,
    notes: Vec<String>,
    stand_in: StandIn,
    cosbench: Option<Box<FromXml>>,
}

impl LocalRunner {
    pub(super) fn new(
        args: &ConsoleArgs,
        allowed: AllowedDirs,
        credential_hosts: NamedHosts,
        runs_max: u32,
    ) -> Result<Self> {
        let has_fleet = args.fleet.is_asked()?;
        let known = Arc::<Mutex<Known>>::default();
        #[cfg(feature = "fleet")]
        if has_fleet {
            super::roll::begin(&args.fleet, &known)?;
        }
        let (mut store, fleet) = (args.store.clone(), args.fleet.clone());
        // Whoever may submit a workload names the store that it goes to: keys of this machine that
        // nobody gave to the console are not looked for, which an empty one says. A web token is
        // one that somebody gave.
        if store.requests.sts_web_token.is_none() {
            store.credentials.access_key.get_or_insert_with(|| Secret::from(String::new()));
        }
        let own = store.host.as_deref().and_then(|hosts| own_hosts(hosts, store.tls));
        let (own, needs_tls) = own.unwrap_or_default();
        let credential_hosts = credential_hosts.and(own, needs_tls);
        let bare_store = without_credentials(store.clone());
        Ok(Self {
            store,
            bare_store,
            credential_hosts,
            fleet,
            has_fleet,
            allowed,
            known,
            runs_max,
            memory_max: args.memory_max.map_or_else(bounds::memory_for_runs, |size| size.0),
            judging: Mutex::default(),
        })
    }

    /// Returns whether a workload that names these hosts may use the owner's credentials.
    fn lends_credentials(&self, hosts: Option<&[(Endpoint, bool)]>) -> bool {
        hosts.is_some_and(|hosts| self.credential_hosts.have_all(hosts))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self, run_dir: Option<PathBuf>, lends_credentials: bool) -> OutputArgs {
        let mut fleet = self.fleet.clone();
        // Agents must not use theirs either.
        fleet.agent_credentials &= lends_credentials;
        OutputArgs {
            live: LiveMode::Plain,
            verbose: false,
            print: PrintArgs { json: false, quiet: true, no_color: true },
            run_dir,
            full_span: false,
            steady: false,
            certificate: None,
            fail_on_client_limit: false,
            // Nobody on the network may have a command run.
            outages: OutageArgs::default(),
            telemetry: TelemetryArgs::default(),
            fleet,
        }
    }

    fn settings<'a>(
        &'a self,
        output: &'a OutputArgs,
        files: &'a FileConductArgs,
        prepared: &Prepared,
        touch: Vec<BucketGlob>,
    ) -> Settings<'a> {
        let lends_credentials = self.lends_credentials(prepared.hosts.as_deref());
        Settings {
            store: Some(if lends_credentials { &self.store } else { &self.bare_store }),
            lends_credentials,
            files: Some(files),
            stand_in: prepared.stand_in.clone(),
            notes: prepared.notes.clone(),
            secrets: prepared.cosbench.as_ref().map(|of| of.secrets.clone()).unwrap_or_default(),
            // What COSBench writes stays until a stage of it cleans up.
            keeps_data: prepared.cosbench.is_some(),
            // Other tools' workloads go on whatever fails.
            keeps_going: prepared.kind != SourceKind::Plimsoll,
            allowed: prepared.file.opens(),
            reads: prepared.file.opens(),
            traces: Traces::within(prepared.file.opens()),
            ..Settings::plain(output, Consent::by(LEAVE, false).touching(touch))
        }
    }

    /// Reads a workload in whichever language it is written, and checks its files and hosts.
    fn prepare(&self, submission: &Submission<'_>) -> Result<Prepared, Refusal> {
        let kind = kind_of(submission.text);
        let name = submission.file_name.unwrap_or_else(|| kind.file_name());
        let read = match kind {
            SourceKind::Cosbench => Ok(read_xml(submission.text)?),
            SourceKind::Fio => self.read_fio(submission.text, name),
            SourceKind::Plimsoll => read_own(submission.text, name),
        };
        let read = read.map_err(|error| refused(kind, &error))?;
        let Unvetted { file, source, notes, stand_in, cosbench } = read;
        let hosts = hosts_of(&file);
        let admitted = Admitted::of(file, &self.allowed).map_err(|error| {
            in_place(kind, located(error, source.as_ref(), name), cosbench.as_deref())
        });
        let mut file = admitted?;
        submission.name.into_iter().for_each(|name| file.rename(name));
        Ok(Prepared { kind, file, source, notes, stand_in, cosbench, hosts })
    }

    fn read_fio(&self, text: &str, name: &str) -> Result<Unvetted> {
        let (output, reading) = (self.output(None, false), JobFileArgs::default());
        let conduct = file_conduct();
        let settings = fio::Settings {
            reading: &reading,
            conduct: &conduct,
            output: &output,
            stand_in: StandIn::Nobody,
            keeps_data: false,
            consent: Consent::by(LEAVE, false),
            seed: None,
            explain: false,
            check: false,
        };
        let lowered = fio::from_text(text, name, &settings, &self.allowed)?;
        Ok(Unvetted {
            notes: lowered.notes.iter().map(ToString::to_string).collect(),
            stand_in: if lowered.null { StandIn::Null } else { StandIn::Nobody },
            file: lowered.workload,
            source: None,
            cosbench: None,
        })
    }

    /// Returns what is to be said of the agents that a workload names.
    fn pins(&self, plan: &Plan) -> Vec<Problem> {
        if !self.has_fleet {
            return pins::pinned_here(plan).map(Problem::note).into_iter().collect();
        }
        let known = self.known();
        let is_there = |agent: &&Agent| agent.state != AgentState::Away;
        let names: Vec<&str> =
            known.agents.iter().filter(is_there).map(|agent| &*agent.name).collect();
        unknown_agents(plan, &names).into_iter().map(warning).collect()
    }

    /// Returns existing buckets that the workload changes without permission. A store that cannot
    /// be asked now is asked again when the workload runs.
    fn foreign_buckets(
        &self,
        plan: &Plan,
        prepared: &Prepared,
        touch: Vec<BucketGlob>,
    ) -> Vec<String> {
        let (output, files) = (self.output(None, false), file_conduct());
        let settings = self.settings(&output, &files, prepared, touch);
        let foreign = conducted::foreign_buckets(plan, &settings);
        foreign.unwrap_or_default().into_iter().collect()
    }

    /// Judges what was read.
    fn judge(&self, prepared: &Prepared) -> Result<Arc<Plan>> {
        let (output, files) = (self.output(None, false), file_conduct());
        let settings = self.settings(&output, &files, prepared, Vec::new());
        let has_keys = |spec: &&TargetSpec| match spec {
            TargetSpec::Seaweedfs(seaweed) => seaweed.security.is_some(),
            _ => false,
        };
        if !settings.lends_credentials && specs(&prepared.file).iter().any(has_keys) {
            bail!(
                "`security` names keys of this machine, which go only to the hosts that \
                 `credential_hosts` in console.toml names"
            );
        }
        let name = prepared.kind.file_name();
        let _one_by_one = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = conducted::judge(&prepared.file, &settings);
        let plan = plan.map_err(|error| located(error, prepared.source.as_ref(), name))?;
        bounds::check_rows(plan.owed().rows_max, self.memory_max).map_err(Error::msg)?;
        if !self.has_fleet {
            let most = |of: fn(&Stage) -> u64| plan.stages.iter().map(of).max().unwrap_or(0);
            let (in_flight, connections) =
                (most(Stage::in_flight_max), most(Stage::connections_max));
            let blocks_bytes = most(Stage::blocks_bytes_max);
            bounds::check_in_flight(in_flight, blocks_bytes, self.memory_max)
                .map_err(Error::msg)?;
            bounds::check_connections(connections, self.runs_max).map_err(Error::msg)?;
        }
        Ok(plan)
    }
}

impl Runner for LocalRunner {
    fn check(&self, submission: &Submission<'_>) -> Result<Sound, Refusal> {
        let prepared = self.prepare(submission)?;
        let plan = self.judge(&prepared);
        let plan =
            plan.map_err(|error| in_place(prepared.kind, error, prepared.cosbench.as_deref()))?;
        let globs = globs(submission.touch);
        let of = touched(&plan, &self.store.bucket, &globs);
        let Touched { files, all: touches, open: needs_leave, foreign } = of;
        let foreign = match submission.asks && foreign.is_empty() && !needs_leave.is_empty() {
            true => self.foreign_buckets(&plan, &prepared, globs),
            false => foreign,
        };
        let of_files = files.iter().map(|set| {
            format!("it overwrites the files of set {set}, which were there before: not from here")
        });
        let of_buckets = foreign.iter().map(|bucket| {
            format!(
                "it changes bucket {bucket}, which no plimsoll run made; {LEAVE} (or --touch of \
                 the console) allows that"
            )
        });
        let problems: Vec<Problem> = of_files.chain(of_buckets).map(Problem::error).collect();
        if !problems.is_empty() {
            return Err(Refusal { kind: prepared.kind, problems });
        }
        let mut facts = Facts { touches, notes: prepared.notes.clone(), ..Facts::of(&plan) };
        if let Some(of) = &prepared.cosbench {
            of.complete(&mut facts);
        }
        let mut problems: Vec<Problem> = prepared.notes.into_iter().map(Problem::note).collect();
        if !needs_leave.is_empty() {
            let text = format!(
                "it changes {}, and may change only what a plimsoll run made; {LEAVE} allows \
                others",
                needs_leave.join(", ")
            );
            problems.push(warning(text));
        }
        problems.extend(self.pins(&plan));
        Ok(Sound {
            kind: prepared.kind,
            name: prepared.file.name.clone(),
            explained: prepared.file.to_yaml(),
            facts,
            needs_leave,
            problems,
            hosts: prepared.hosts,
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<Verdict, String> {
        let in_words = |error: Error| format!("{error:#}");
        let prepared = self.prepare(&job.submission).map_err(|refusal| {
            let first = refusal.problems.into_iter().next();
            first.map_or_else(String::new, |problem| problem.message)
        })?;
        // What was allowed when it was submitted may not be any more.
        self.judge(&prepared).map_err(in_words)?;
        let lends_credentials = self.lends_credentials(prepared.hosts.as_deref());
        let output = self.output(Some(job.run_directory.to_path_buf()), lends_credentials);
        let files = file_conduct();
        let settings = Settings {
            observe: Some(&|_| Arc::clone(&job.observer)),
            show: Some(&|_, _| Ok(())),
            stop: Some(job.stop.clone()),
            ..self.settings(&output, &files, &prepared, globs(job.submission.touch))
        };
        let guard = MemoryGuard::begin(self.memory_max, job.stop.clone());
        let guard = guard.map_err(|error| format!("no thread can be started: {error}"))?;
        let mut conducted = Conducted::begin(&prepared.file, &settings).map_err(in_words)?;
        let run_id = conducted.run_id().to_owned();
        self.known().runs.insert(run_id.clone(), job.id.to_owned());
        let done = conducted.carry_out(None, None);
        let finished = conducted.finish(done, &settings);
        self.known().runs.remove(&run_id);
        if let Some(refusal) = guard.refusal() {
            return Err(refusal);
        }
        match finished.map_err(in_words)? {
            true => Ok(Verdict::Good),
            false => {
                let record = RunDirectory::open(job.run_directory);
                let manifest = record.and_then(|record| record.read_manifest());
                Ok(Verdict::Flawed(manifest.ok().as_ref().and_then(degraded)))
            }
        }
    }

    fn agents(&self) -> Vec<Agent> {
        let mut known = self.known();
        if self.has_fleet {
            let named = |agent: &Agent| {
                // Others' runs have no page here.
                let run = agent.run.as_ref().and_then(|run| known.runs.get(run).cloned());
                Agent { run, ..agent.clone() }
            };
            return known.agents.iter().map(named).collect();
        }
        let ticks = machine::processor_ticks();
        let cpu_percent = known.ticks.zip(ticks).and_then(|((busy, all), (busy_now, all_now))| {
            let passed = all_now.saturating_sub(all);
            let busy = busy_now.saturating_sub(busy);
            (passed > 0).then(|| busy as f64 * 100.0 / passed as f64)
        });
        known.ticks = ticks.or(known.ticks);
        vec![Agent {
            name: machine::describe().hostname.unwrap_or_else(|| "here".to_owned()),
            address: None,
            state: AgentState::Ready,
            // It is the clock by which others are judged.
            clock_offset_ms: Some(0.0),
            cpu_percent,
            cores_count: Some(machine::cores() as u64),
            version: Some(env!("PLIMSOLL_VERSION").to_owned()),
            seen_at_ms: now_ms(),
            run: None,
        }]
    }

    fn has_fleet(&self) -> bool {
        self.has_fleet
    }
}

fn warning(text: String) -> Problem {
    Problem { severity: Severity::Warning, ..Problem::note(text) }
}

/// Returns a sentence for each agent that a workload names and that is none of those there.
fn unknown_agents(plan: &Plan, names: &[&str]) -> Vec<String> {
    let mut unknown: Vec<(&str, Vec<String>)> = Vec::new();
    for (stage, job, agent) in plan.pinned().filter(|(.., agent)| !names.contains(agent)) {
        let job = format!("{}/{}", stage.name, job.name);
        match unknown.iter_mut().find(|(of, _)| *of == agent) {
            Some((_, jobs)) => jobs.push(job),
            None => unknown.push((agent, vec![job])),
        }
    }
    let there = match names {
        [] => "no agent has joined".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    let sentence = |(agent, jobs): (&str, Vec<String>)| {
        format!(
            "no agent is called {agent} ({there}): if none is when it runs, all share the workers \
             of {}",
            jobs.join(", ")
        )
    };
    unknown.into_iter().map(sentence).collect()
}

/// Returns patterns of names of buckets; one that is none was refused when the console began.
fn globs(touch: &[String]) -> Vec<BucketGlob> {
    touch.iter().filter_map(|pattern| pattern.parse().ok()).collect()
}

fn file_conduct() -> FileConductArgs {
    FileConductArgs {
        interface: None,
        threads: None,
        drop_machine_caches: false,
        max_error_rate: Percent(0.0),
    }
}

/// Reads COSBench's XML.
fn read_xml(text: &str) -> Result<Unvetted, Refusal> {
    let (of, file, notes) = FromXml::read(text)?;
    let cosbench = Some(Box::new(of));
    Ok(Unvetted { file, source: None, notes, stand_in: StandIn::Nobody, cosbench })
}

/// Returns the hosts of `--host`, and whether they are for TLS only; `None` if they are in a file.
fn own_hosts(hosts: &str, tls: bool) -> Option<(Vec<Endpoint>, bool)> {
    let (scheme, list) = split_scheme(hosts).ok()?;
    let tls = tls || scheme == Some(Scheme::Https);
    Some((expand_hosts(&list, if tls { PORT_TLS } else { PORT_PLAIN }).ok()?, tls))
}

/// Returns the flags without credentials.
fn without_credentials(store: StoreArgs) -> StoreArgs {
    let mut bare = store;
    bare.credentials = CredentialArgs {
        access_key: Some(Secret::from(String::new())),
        secret_key: None,
        session_token: None,
    };
    bare.tls_trust.client_cert = None;
    bare.tls_trust.client_key = None;
    bare.requests.sts_web_token = None;
    if matches!(bare.requests.signature, SignatureArg::Iam | SignatureArg::StsWebToken) {
        bare.requests.signature = SignatureArg::S3v4;
    }
    bare
}

/// Tells in which language a workload is written.
fn kind_of(text: &str) -> SourceKind {
    match text {
        text if text.trim_start().starts_with('<') => SourceKind::Cosbench,
        text if is_job_file(text) => SourceKind::Fio,
        _ => SourceKind::Plimsoll,
    }
}

fn read_own(text: &str, name: &str) -> Result<Unvetted> {
    let (file, source) = WorkloadFile::read(name, text)?;
    let (source, stand_in) = (Some(source), StandIn::Nobody);
    Ok(Unvetted { file, source, notes: Vec::new(), stand_in, cosbench: None })
}

/// Returns a refusal in the words of the workload's language.
fn in_place(kind: SourceKind, error: Error, cosbench: Option<&FromXml>) -> Refusal {
    let of_xml = cosbench.and_then(|of| of.refusal(&error));
    of_xml.unwrap_or_else(|| refused(kind, &error))
}

/// Returns a refusal with the place that it is about, where it has one.
fn refused(kind: SourceKind, error: &Error) -> Refusal {
    let found = error.downcast_ref::<ReadError>();
    let position = found.and_then(|found| found.position);
    let problem = Problem {
        severity: Severity::Error,
        message: found.map_or_else(|| format!("{error:#}"), |found| found.invalid.to_string()),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
    };
    Refusal { kind, problems: vec![problem] }
}

pub(super) fn now_ms() -> Option<i64> {
    i64::try_from(RunTime::machine().wall_epoch.as_unix_ns() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_are_not_there_are_named_with_what_was_to_be_theirs() {
        let job = |name: &str, agent: &str| {
            format!("{{name: {name}, agent: {agent}, work: {{objects: [{{get: o}}]}}}}")
        };
        let text = format!(
            "schema: plimsoll.workload/2\nname: pinned\nsets: {{o: {{count: 9, size: 1B}}}}\n\
             stages:\n- {{name: load, prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
             - {{name: main, duration: 1s, jobs: [{}, {}, {}]}}\n",
            job("a", "driver1"),
            job("b", "driver2"),
            job("c", "driver2")
        );
        let plan = WorkloadFile::from_yaml("pinned", &text).unwrap().check().unwrap();
        assert_eq!(unknown_agents(&plan, &["driver2", "driver1"]), Vec::<String>::new());
        assert_eq!(
            unknown_agents(&plan, &["driver1"]),
            ["no agent is called driver2 (there are driver1): if none is when it runs, all share \
              the workers of main/b, main/c"]
        );
        assert_eq!(unknown_agents(&plan, &[]).len(), 2);
    }
}
