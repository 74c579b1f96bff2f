//! `plimsoll agent`: takes part in runs of a fleet.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{
    AskedStore, CallerError, FileSettings, FilesPart, Lent, Observer, Reach, Reached, RunSettings,
    RunTime, StandIn, Targets, input, machine,
};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_seaweed::Security;
use plimsoll_driver_swift::Access;
use plimsoll_engine::EngineConfig;
use plimsoll_fleet::Limits;
use plimsoll_fleet::agent_key::AgentKey;
use plimsoll_fleet::broker::join;
use plimsoll_fleet::nats::{Nats, NatsConfig, Side, forward};
use plimsoll_fleet::part::Workplace;
use plimsoll_fleet::pki::NewKey;
use plimsoll_fleet::protocol::{About, AgentId, MachineState, NAME_BYTES_MAX, Place, WEIGHT_MAX};
use plimsoll_fleet::station::{Identity, Input, Station};
use plimsoll_fleet::token::Token;
use plimsoll_fleet::wire::{ConductDoc, FilesConductDoc};
use plimsoll_http::{AllowedHosts, Endpoint, NamedHosts, Transport};
use plimsoll_model::{Bytes, RunId, Seed, SharedClock};
use plimsoll_record::{RunDirectory, is_alive};
use plimsoll_workload::Share;
use plimsoll_workload::plan::{FileNames, Job, Members, Plan, Stage};
use serde_json::Value;

use crate::access::AccessDoc;
use crate::args::fleet::AgentArgs;
use crate::conducted::fresh_seed;
use crate::fleet::{others, state_directory};
use crate::store::{self, Way};
use crate::ui::Ui;
use crate::{environment, signals};

/// The flag that names the hosts which may be connected to.
const ALLOW_HOSTS: &str = "--allow-hosts";

/// The variable that holds a token.
pub(crate) const JOIN: &str = "PLIMSOLL_JOIN";
/// Why an agent does not know where to go.
const NO_FLEET: &str = "name a fleet: --join-file FILE with the token that `plimsoll fleet up` \
    prints, or the token in PLIMSOLL_JOIN, or --fabric URL";
/// More than any file has that holds a token.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// Why an agent does not take part in a run for which it would use its own credentials.
const NO_HOSTS_NAMED: &str = "it uses its own credentials (--agent-credentials) on no host but \
    those that its owner names: start it with --allow-hosts HOSTS";

/// What stands between the run and the number of the part in the name of its directory.
const PART: &str = "-part-";
/// The same where nobody waits for the part any more.
const OWN_PART: &str = ".part-";

/// What the owner of the machine allows.
struct Limited {
    hosts: AllowedHosts,
    /// Without the flag only directories that a run itself makes.
    directories: AllowedDirs,
    workers_max: Option<u32>,
    fill_max: Option<u64>,
}

/// This machine, as an agent works on it.
struct Machine {
    clock: SharedClock,
    directory: PathBuf,
    limited: Limited,
    /// Files that hold certificates of the part under way, or of the last one.
    certificates: Mutex<Vec<tempfile::NamedTempFile>>,
}

/// Takes part until Ctrl-C.
pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    let name = match &args.name {
        Some(name) => name.clone(),
        None => machine::describe().hostname.unwrap_or_else(|| "agent".to_owned()),
    };
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
        bail!("--name: it is empty, too long or not printable");
    }
    let weight = args.weight.unwrap_or_else(|| u32::try_from(machine::cores()).unwrap_or(1));
    if weight > WEIGHT_MAX {
        bail!("--weight {weight}: the most is {WEIGHT_MAX}");
    }
    // A token may come from a pipe that nobody writes to: until it is read, Ctrl-C ends the process
    // as it always does.
    let leads = leads(args)?;
    let stop = signals::listen()?;
    let (directory, key) = match &args.directory {
        Some(directory) => (directory.clone(), AgentKey::open(directory).context("--directory")?),
        None => AgentKey::open_free(&state_directory("agent")?)?,
    };
    let hosts = args.allow_hosts.as_deref().map(NamedHosts::parse);
    let hosts = hosts.transpose().context(ALLOW_HOSTS)?;
    let limited = Limited {
        directories: allowed_directories(&args.allow_dirs)?,
        hosts: hosts.map_or(AllowedHosts::ANY, |hosts| AllowedHosts::only(hosts, ALLOW_HOSTS)),
        workers_max: args.workers_max,
        fill_max: args.fill_max.map(|size| size.0),
    };
    let entropy = fresh_seed(RunTime::machine().wall_epoch);
    let (id, config) = leads.follow(&name, key.key())?;
    let kept = kept_in(&directory).into_iter().map(|(run, _)| run).collect();
    let about = About {
        name: name.clone(),
        version: env!("PLIMSOLL_VERSION").to_owned(),
        weight,
        is_encrypted: config.is_encrypted(),
        busy: None,
        kept,
        places: Vec::new(),
        machine: None,
    };
    let clock = RunTime::machine().clock;
    let certificates = Mutex::default();
    let workplace = Machine { clock: Arc::clone(&clock), directory, limited, certificates };
    let (to, inputs) = std::sync::mpsc::channel();
    let arrive = forward(to.clone(), Input::Arrived);
    let nats = Nats::join_with(&config, Side::Agent(&id, entropy), arrive)?;
    let identity = Identity { id: id.clone(), incarnation: entropy, about };
    let observer: Arc<dyn Observer> = Arc::new(ui);
    let workplace = Arc::new(workplace);
    let (nats, limits) = (Arc::new(nats), Limits::DEFAULT);
    let inputs = (to.clone(), inputs);
    let station = Station::new(inputs, identity, nats, clock, workplace, observer, limits);
    ui.note(&format!("{name} is part of the fleet as {}; Ctrl-C ends", id.as_str()));
    let works = std::thread::spawn(move || station.run());
    signals::rest(&stop, || match works.is_finished() {
        true => bail!("the agent stopped by itself: this is a bug in plimsoll"),
        false => Ok(()),
    })?;
    let _ = to.send(Input::End);
    let works = works.join();
    let was_busy = works.map_err(|_| anyhow!("the agent failed: this is a bug in plimsoll"))?;
    Ok(signals::exit_code_of_server(was_busy))
}

/// What leads to a fleet.
enum Leads {
    /// A token of it.
    Token(Box<Token>),
    /// Its fabric, which is somebody else's.
    Fabric(Box<NatsConfig>),
}

impl Leads {
    /// Returns what the agent with that key is called on the fabric, and how that is reached.
    fn follow(self, name: &str, key: &NewKey) -> Result<(AgentId, NatsConfig)> {
        match self {
            Self::Token(token) => Ok(join(&token, name, key)?),
            Self::Fabric(config) => {
                let fitting = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let plain: String = name.chars().take(40).map(fitting).collect();
                let id = AgentId::new(format!("{plain}-{:08x}", key.number()))?;
                Ok((id, *config))
            }
        }
    }
}

fn leads(args: &AgentArgs) -> Result<Leads> {
    if let Some(urls) = &args.fabric {
        return Ok(Leads::Fabric(Box::new(others(urls, &args.access)?)));
    }
    let (text, from) = match &args.join_file {
        Some(path) => {
            let text = input::read_secret(path, TOKEN_BYTES_MAX);
            let text =
                text.with_context(|| format!("--join-file: cannot read {}", path.display()))?;
            (text, "--join-file")
        }
        None => (environment::variable(JOIN).context(NO_FLEET)?, JOIN),
    };
    let token = Token::parse(token_in(&text)).context(from)?;
    Ok(Leads::Token(Box::new(token)))
}

/// Returns the token in a text, which may be the whole line that `plimsoll fleet up` prints.
fn token_in(text: &str) -> &str {
    let line = text.split_whitespace().find_map(|word| word.strip_prefix(JOIN)?.strip_prefix('='));
    line.unwrap_or(text)
}

/// How stores are reached, as the coordinator says.
struct Told<'a> {
    access: &'a AccessDoc,
    ca_file: Option<PathBuf>,
    /// The same of a Swift.
    swift_ca_file: Option<PathBuf>,
    time: &'a RunTime,
    /// How many were opened.
    opened: usize,
    /// The machine that reaches them.
    machine: &'a Machine,
}

impl Reach for Told<'_> {
    fn store(&mut self, _: &str, asked: AskedStore<'_>) -> Result<Reached, CallerError> {
        let args = self.access.store_args(self.opened, self.ca_file.clone())?;
        let way = match asked {
            AskedStore::Own => Way::of(args),
            AskedStore::Named(spec) => Way::named(&args, spec),
            AskedStore::Embedded(_) => {
                return Err("an agent cannot reach the embedded store".into());
            }
        };
        let way = way.told(self.access.identity(), self.allowed());
        match &way.args.host {
            None => return Err("the coordinator names no host".into()),
            Some(hosts) if store::is_host_file(hosts) => {
                return Err(format!("an agent does not read the host file {hosts}").into());
            }
            Some(_) => {}
        }
        let (mut reached, _) = store::open(&way, self.time)?;
        self.access.complete(self.opened, &mut reached);
        self.opened += 1;
        Ok(reached)
    }

    fn security(&mut self, file: Option<&str>) -> Result<Security, CallerError> {
        Ok(self.access.security(file, &|pem| self.machine.certificates_of(pem))?)
    }

    fn swift(&mut self, target: &str) -> Result<Access, CallerError> {
        Ok(self.access.swift_access(target, self.swift_ca_file.clone()))
    }

    fn lend(
        &self,
        _: Lent,
        is_unchecked: bool,
        _: &[(&Endpoint, bool)],
    ) -> Result<(), CallerError> {
        match is_unchecked && self.access.own_credentials {
            true => Err("an agent's own password goes only where certificates are checked".into()),
            false => Ok(()),
        }
    }

    /// The coordinator sends what files hold, so none is read here that a plan names.
    fn files(&self) -> AllowedDirs {
        AllowedDirs::none()
    }

    fn allowed(&self) -> AllowedHosts {
        self.machine.limited.hosts.clone()
    }

    fn transport(&self) -> Transport {
        self.access.transport.into()
    }

    fn only_judges(&self) -> bool {
        false
    }
}

/// Opens the directories that the owner allows.
fn allowed_directories(given: &[PathBuf]) -> Result<AllowedDirs> {
    match given {
        [] => Ok(AllowedDirs::ANY),
        given => AllowedDirs::only(given)
            .map_err(|error| anyhow!("{}; it has to exist (--allow-dirs)", error.message)),
    }
}

impl Limited {
    /// Refuses a path that the owner does not allow; `is_own` tells whether the run makes
    /// directories of its own there.
    fn check_path(&self, path: &str, is_own: bool) -> Result<(), CallerError> {
        if self.directories.is_any() {
            return match is_own {
                true => Ok(()),
                false => Err(format!(
                    "its owner does not allow runs on {path}, which existed before (--allow-dirs)"
                )
                .into()),
            };
        }
        match self.directories.allows(Path::new(path)) {
            true => Ok(()),
            false => Err(format!("its owner does not allow work in {path} (--allow-dirs)").into()),
        }
    }

    /// Refuses files that the owner does not allow.
    fn check_files(&self, plan: &Plan) -> Result<(), CallerError> {
        for set in &plan.sets {
            let (directories, paths) = match &set.members {
                Members::Tree(tree) => (&*tree.directories, None),
                Members::Files(files) => match &files.names {
                    FileNames::Paths(paths) => (&[][..], Some(paths)),
                    _ => (&*files.directories, None),
                },
                _ => continue,
            };
            directories.iter().try_for_each(|path| self.check_path(path, true))?;
            paths.into_iter().flatten().try_for_each(|path| self.check_path(path, false))?;
        }
        Ok(())
    }
}

impl Machine {
    /// Keeps certificates in a file for as long as anybody may read them.
    fn certificates_of(&self, pem: &str) -> Result<PathBuf> {
        let file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file.as_file(), pem.as_bytes())?;
        let path = file.path().to_path_buf();
        self.certificates().push(file);
        Ok(path)
    }

    fn certificates(&self) -> MutexGuard<'_, Vec<tempfile::NamedTempFile>> {
        self.certificates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workplace for Machine {
    fn time(&self) -> RunTime {
        // The agent's clock goes on from run to run; what its wall time was at its epoch is asked
        // anew, as the wall clock may have been set since.
        let now = RunTime::machine();
        let since = self.clock.now();
        let epoch = now.wall_epoch.as_unix_ns().saturating_sub(since.as_ns());
        RunTime {
            clock: Arc::clone(&self.clock),
            wall_epoch: plimsoll_model::WallTime::from_unix_ns(epoch),
            virtual_time: None,
        }
    }

    fn judge(&self, plan: &Plan, share: Share, access: &Value) -> Result<(), CallerError> {
        let access: AccessDoc = serde_json::from_value(access.clone())?;
        let requests = access.store.as_ref().map(|store| &store.requests);
        let of_stage = |stage: &Stage| {
            let of_job = |job: &Job| {
                let own = job.workers_of(share).len() as u64;
                // An object that is uploaded in parts has several requests in flight.
                let parts = requests.map_or(1, |of| of.parts_in_flight(plan, job));
                (job.in_flight_max() * own * parts).div_ceil(job.workers.get().into())
            };
            stage.jobs.iter().map(of_job).sum::<u64>()
        };
        let workers = plan.stages.iter().map(of_stage).max().unwrap_or(0);
        if let Some(most) = self.limited.workers_max.filter(|most| workers > u64::from(*most)) {
            let why = format!(
                "its part has {workers} workers (or operations in flight), and its owner allows {most}"
            );
            return Err(format!("{why} (--workers-max)").into());
        }
        self.limited.check_files(plan)?;
        let owed = plan.owed();
        let fills = owed.bytes_filled + owed.bytes_written_to_files;
        if let Some(most) = self.limited.fill_max.filter(|most| fills > *most as f64) {
            let (fills, most) = (Bytes(fills as u64), Bytes(most));
            let why =
                format!("the run fills and writes files of {fills}, and its owner allows {most}");
            return Err(format!("{why} (--fill-max)").into());
        }
        Ok(())
    }

    fn targets(
        &self,
        plan: &Plan,
        access: &Value,
        seed: Seed,
        time: &RunTime,
    ) -> Result<Targets, CallerError> {
        let access: AccessDoc = serde_json::from_value(access.clone())?;
        // An agent has one part at a time, so nobody reads those of the part before any more.
        self.certificates().clear();
        if access.own_credentials && !self.limited.hosts.are_named() {
            return Err(NO_HOSTS_NAMED.into());
        }
        let certificates =
            |pem: &Option<String>| pem.as_deref().map(|pem| self.certificates_of(pem)).transpose();
        let (ca_file, swift_ca_file) =
            (certificates(&access.ca_pem)?, certificates(&access.swift_ca_pem)?);
        let machine = self;
        let mut told = Told { access: &access, ca_file, swift_ca_file, time, opened: 0, machine };
        Ok(Targets::of(plan, &mut told, &StandIn::Nobody, seed, time)?)
    }

    fn settings(&self, conduct: &ConductDoc, part: FilesPart) -> Result<RunSettings, CallerError> {
        let cores = |threads: Option<usize>| threads.unwrap_or_else(machine::cores).max(1);
        let op_timeout = Duration::from_nanos(conduct.op_timeout_ns);
        let engine =
            EngineConfig { threads: cores(conduct.threads), op_timeout, retries: conduct.retries };
        let FilesConductDoc { interface, threads, drop_machine_caches } = &conduct.files;
        Ok(RunSettings {
            engine,
            files: FileSettings {
                interface: *interface,
                threads: cores(*threads),
                allowed: self.limited.directories.clone(),
                drop_machine_caches: *drop_machine_caches,
                // The coordinator says when what was written is removed.
                keeps_data: true,
                part: Some(part),
            },
            // The coordinator sends what they hold.
            reads: AllowedDirs::none(),
            keeps_data: true,
            ..RunSettings::default()
        })
    }

    fn machine(&self) -> Option<MachineState> {
        let (busy_ticks, ticks) = machine::processor_ticks().unwrap_or_default();
        Some(MachineState {
            number: 0,
            wall_ns: RunTime::machine().wall_epoch.as_unix_ns(),
            cores_count: machine::cores() as u64,
            busy_ticks,
            ticks,
        })
    }

    fn look(&self, path: &str) -> Place {
        let trouble = |why: String| Place { trouble: Some(why), ..Place::default() };
        // What already exists is judged with the workload.
        if let Err(why) = self.limited.check_path(path, true) {
            return trouble(why.to_string());
        }
        let (path, allowed) = (Path::new(path), &self.limited.directories);
        match allowed.probe(path) {
            Ok(facts) => Place {
                free_bytes: Some(facts.free_bytes),
                direct_align: facts.direct.map(|direct| u64::from(direct.offset_align)),
                size_bytes: allowed.size_bytes(path),
                is_device: allowed.is_device(path),
                trouble: None,
            },
            Err(error) => trouble(error.message),
        }
    }

    fn record_of(&self, run: &RunId, part: usize) -> PathBuf {
        self.directory.join(format!("{}{PART}{part}", run.as_str()))
    }

    fn settle(&self, part: RunDirectory) -> Result<PathBuf, CallerError> {
        let name = part.path().file_name().and_then(|name| name.to_str());
        let (run, number) =
            name.and_then(|name| name.rsplit_once(PART)).ok_or("it is not a part")?;
        let place = self.directory.join(format!("{run}{OWN_PART}{number}"));
        part.move_to(&place)?;
        Ok(place)
    }

    fn kept(&self) -> Vec<(String, PathBuf)> {
        kept_in(&self.directory)
    }
}

/// Returns the runs of which parts are kept there, and where.
fn kept_in(directory: &Path) -> Vec<(String, PathBuf)> {
    // Where nothing is, nothing is kept.
    let Ok(names) = input::names_in(&AllowedDirs::ANY, directory) else { return Vec::new() };
    let run = |name: String| {
        let (run, part) = name.rsplit_once(PART)?;
        let is_part = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (id, path) = (RunId::parse(run).ok().filter(|_| is_part)?, directory.join(&name));
        // What another process of this machine works on is not kept for anybody.
        (!is_alive(&path).ok()?).then(|| (id.to_string(), path))
    };
    names.into_iter().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser;
    use plimsoll_workload::plan::WorkloadFile;

    use super::*;
    use crate::args::s3::StoreArgs;
    use crate::args::{Cli, Command};

    /// Parses the store arguments of a command line.
    fn store(words: &[&str]) -> Option<StoreArgs> {
        let words = ["plimsoll", "s3", "get"].iter().chain(words);
        match Cli::parse_from(words).command {
            Command::S3(command) => Some(command.common().store.clone()),
            _ => unreachable!("it begins so"),
        }
    }

    /// Returns a machine whose owner allows these hosts.
    fn machine(hosts: AllowedHosts) -> Machine {
        let limited =
            Limited { hosts, directories: AllowedDirs::ANY, workers_max: None, fill_max: None };
        let (directory, certificates) = (PathBuf::new(), Mutex::default());
        Machine { clock: RunTime::machine().clock, directory, limited, certificates }
    }

    fn only(hosts: &str) -> AllowedHosts {
        AllowedHosts::only(NamedHosts::parse(hosts).unwrap(), ALLOW_HOSTS)
    }

    /// Returns why a machine does not open the targets of a workload; `None` where it does.
    fn refusal(machine: &Machine, targets: &str, access: AccessDoc) -> Option<String> {
        let text = format!(
            "schema: plimsoll.workload/2\nname: t\ntargets: {{a: {targets}}}\nsets: {{o: {{count: \
             1, size: 1B}}}}\nstages: [{{jobs: [{{work: {{fill: o}}}}]}}]\n"
        );
        let plan = WorkloadFile::from_yaml("t", &text).unwrap().check().unwrap();
        let access = serde_json::to_value(access).unwrap();
        let opened = machine.targets(&plan, &access, Seed(1), &RunTime::machine());
        opened.err().map(|error| format!("{:#}", anyhow!(error)))
    }

    #[test]
    fn no_list_of_hosts_is_read_that_a_coordinator_names() {
        let store = store(&["--host", "file:/dev/zero"]);
        let access = AccessDoc { store, ..AccessDoc::default() };
        let refused = refusal(&machine(AllowedHosts::ANY), "{s3: {}}", access).unwrap();
        assert!(
            refused.ends_with("an agent does not read the host file file:/dev/zero"),
            "{refused}"
        );
    }

    /// Opening any of these would connect to it, and nothing listens there: the refusal shows that
    /// no connection was tried.
    #[test]
    fn no_target_is_opened_at_a_host_that_the_owner_has_not_named() {
        let machine = machine(only("127.0.0.1:1,127.0.0.2"));
        let refused = |targets: &str| {
            let (store, swift) = (store(&["--host", "127.0.0.1:1"]), BTreeMap::new());
            let access = AccessDoc { store, swift, ..AccessDoc::default() };
            let refused = refusal(&machine, targets, access).unwrap();
            let (_, host) = refused.split_once("does not allow load on ").expect(&refused);
            host.to_owned()
        };
        for (targets, host) in [
            ("{s3: {hosts: \"127.0.0.1:1,127.0.0.1:3\"}}", "127.0.0.1:3"),
            ("{s3: {hosts: \"127.0.0.1:1\", proxy: \"http://127.0.0.3:1\"}}", "127.0.0.3:1"),
            ("{s3: {proxy: \"socks5://127.0.0.1:2\"}}", "127.0.0.1:2"),
            ("{seaweedfs: {master: [\"127.0.0.2:9333\", \"127.0.0.3:9333\"]}}", "127.0.0.3:9333"),
            ("{seaweedfs: {filer: [\"127.0.0.2\", \"127.0.0.3\"]}}", "127.0.0.3:8888"),
            (
                "{swift: {auth_version: none, storage_url: \"http://127.0.0.3:1/v1/a\", \
                 container: c}}",
                "127.0.0.3:1",
            ),
        ] {
            assert_eq!(refused(targets), format!("{host} (--allow-hosts)"), "{targets}");
        }
    }

    #[test]
    fn an_agents_own_credentials_go_to_no_host_that_its_owner_has_not_named() {
        let access = || {
            let store = store(&["--host", "127.0.0.1:1"]);
            AccessDoc { store, own_credentials: true, ..AccessDoc::default() }
        };
        for targets in ["{s3: {}}", "{seaweedfs: {filer: \"127.0.0.1:1\"}}"] {
            let refused = refusal(&machine(AllowedHosts::ANY), targets, access());
            assert_eq!(refused.as_deref(), Some(NO_HOSTS_NAMED));
            let refused = refusal(&machine(only("127.0.0.2")), targets, access()).unwrap();
            assert!(refused.contains("does not allow load on 127.0.0.1:1"), "{refused}");
        }
        let filer = "{seaweedfs: {filer: \"127.0.0.1:1\"}}";
        assert_eq!(refusal(&machine(only("127.0.0.1")), filer, access()), None);
    }
}
