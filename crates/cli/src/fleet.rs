//! A fleet as this program uses it: which one is meant, which agents, and how they reach stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{BegunRun, ConductError, ContentFiles, RunTime, input};
use plimsoll_fleet::broker::local_fleet;
use plimsoll_fleet::fabric::{Arrivals, Fabric};
use plimsoll_fleet::lead::{Collected, FleetSettings, Lead, collect};
use plimsoll_fleet::nats::{Access, Nats, NatsConfig, ServerAddr, Side};
use plimsoll_fleet::protocol::About;
pub(crate) use plimsoll_fleet::protocol::{PLACES_MAX, Place};
use plimsoll_fleet::roll::{Call, Recruit, Roll, call_roll};
use plimsoll_fleet::wire::{ConductDoc, FilesConductDoc};
use plimsoll_fleet::{CONTENT_BYTES_MAX, Limits};
use plimsoll_http::expand_hosts;
use plimsoll_model::{Bytes, Interface, StageKind, WallTime};
use plimsoll_record::RunDirectory;
use plimsoll_report::format;
use plimsoll_workload::Share;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{Members, Plan, Stage};

use crate::access::{AccessDoc, FILE_BYTES_MAX};
use crate::args::file::FileConductArgs;
use crate::args::fleet::{FabricArgs, FleetArgs, ReachArgs};
use crate::environment;
use crate::manifest::fresh_seed;
use crate::pins::Absent;
use crate::ui::Ui;

/// Where all is said to be there that has come, if nobody new has for so long.
const SETTLED: Duration = Duration::from_millis(500);
/// How long agents are waited for that may keep a part of a run.
const KEEPERS_WAIT: Duration = Duration::from_secs(10);
/// The same where nobody new has come for so long.
const KEEPERS_SETTLED: Duration = Duration::from_secs(3);

/// A fleet that was reached.
pub(crate) struct Reachable {
    pub(crate) nats: Arc<Nats>,
    arrivals: Arrivals,
    coordinator: u64,
}

/// Agents that are to carry a run out.
pub(crate) struct Mustered {
    fleet: Reachable,
    recruits: Vec<Recruit>,
}

/// Returns where what is kept for the fleet of that name lies where nobody says otherwise.
pub(crate) fn state_directory(name: &str) -> Result<PathBuf> {
    let state = environment::variable("XDG_STATE_HOME").filter(|path| path.starts_with('/'));
    let home = || Some(format!("{}/.local/state", environment::variable("HOME")?));
    let nowhere = "neither XDG_STATE_HOME nor HOME says where to keep it; name a --directory";
    let base = state.or_else(home).context(nowhere)?;
    Ok(Path::new(&base).join("plimsoll").join(name))
}

/// Returns how a NATS of others is reached.
pub(crate) fn others(urls: &str, access: &FabricArgs) -> Result<NatsConfig> {
    let server = |(index, url): (usize, &str)| {
        // It may hold a password, however it is written, so it is not repeated.
        let server: ServerAddr = url
            .trim()
            .parse()
            .map_err(|_| anyhow!("--fabric: address {} of the list is not a URL", index + 1))?;
        if server.username().is_some() || server.password().is_some() {
            bail!(
                "--fabric: everybody on this machine can read a command line: put `USER:PASSWORD`, \
                 or the token, into a file, and name it with --fabric-credentials"
            );
        }
        Ok(server)
    };
    let servers = urls.split(',').enumerate().map(server).collect::<Result<_>>()?;
    let credentials = access.fabric_credentials.as_deref().map(|path| {
        let text = input::read_secret(path, FILE_BYTES_MAX);
        text.with_context(|| format!("--fabric-credentials: cannot read {}", path.display()))
    });
    let credentials = credentials.transpose()?;
    let access = Access::Others { credentials, ca_file: access.fabric_ca.clone() };
    Ok(NatsConfig { servers, access, system: None })
}

/// Reaches the fleet that is meant.
pub(crate) fn reach(args: &ReachArgs) -> Result<Reachable> {
    let config = match (&args.fabric, &args.fleet) {
        (Some(urls), _) => others(urls, &args.access)?,
        (None, Some(Some(directory))) => local_fleet(directory)?,
        (None, _) => local_fleet(&state_directory("fleet")?)?,
    };
    let (nats, arrivals) = Nats::join(&config, Side::Coordinator)?;
    let coordinator = fresh_seed(RunTime::machine().wall_epoch);
    Ok(Reachable { nats: Arc::new(nats), arrivals, coordinator })
}

impl Reachable {
    /// Calls the roll until it is enough, and has agents tell what lies at these paths.
    fn roll(
        &self,
        limit: Duration,
        look: &[String],
        is_enough: &mut dyn FnMut(&[Recruit], Duration) -> bool,
    ) -> Result<Roll> {
        self.roll_at(&RunTime::machine(), limit, look, is_enough)
    }

    fn roll_at(
        &self,
        time: &RunTime,
        limit: Duration,
        look: &[String],
        is_enough: &mut dyn FnMut(&[Recruit], Duration) -> bool,
    ) -> Result<Roll> {
        let call = Call { coordinator: self.coordinator, look, limit };
        Ok(call_roll(&*self.nats, &self.arrivals, &*time.clock, call, is_enough)?)
    }

    /// Adds to the record of a run what these agents have kept of it.
    pub(crate) fn collect(
        self,
        present: &[Recruit],
        directory: &RunDirectory,
        parts_stay: bool,
        ui: Ui,
    ) -> Result<Collected> {
        let conduct = ConductDoc::default();
        let settings = FleetSettings {
            access: serde_json::Value::Null,
            conduct,
            limits: Limits::DEFAULT,
            agents_min: 0,
            parts_stay,
            coordinator: self.coordinator,
            content: ContentFiles::default(),
        };
        let clock = RunTime::machine().clock;
        let way = (self.nats as Arc<dyn Fabric>, self.arrivals);
        let collected = collect(way, present, directory, (clock, Arc::new(ui)), settings);
        collected.map_err(|error| anyhow!(error))
    }

    /// Returns all agents that are there once those of these names keep their parts of a run, or
    /// have not come for a while.
    pub(crate) fn keepers(&self, names: &[String], run: &str) -> Result<Roll> {
        let keeps = |present: &[Recruit], name: &String| {
            let is_it = |each: &Recruit| {
                each.name == *name && each.about.kept.iter().any(|kept| kept == run)
            };
            present.iter().any(is_it)
        };
        self.roll(KEEPERS_WAIT, &[], &mut |present, since| {
            let are_there = names.iter().all(|name| keeps(present, name));
            are_there || since >= KEEPERS_SETTLED
        })
    }

    /// Returns all agents that are there, and what the wall clock showed when the clock began by
    /// which they were asked.
    pub(crate) fn all_by_the_clock(&self) -> Result<(Roll, WallTime)> {
        let time = RunTime::machine();
        let limit = Duration::from_secs(10);
        let roll = self.roll_at(&time, limit, &[], &mut |_, since| since >= SETTLED)?;
        Ok((roll, time.wall_epoch))
    }

    /// Returns all agents that are there.
    pub(crate) fn all(&self) -> Result<Roll> {
        self.roll(Duration::from_secs(10), &[], &mut |_, since| since >= SETTLED)
    }
}

/// Which agents are wanted.
enum Wanted {
    All,
    Count(usize),
    Names(Vec<String>),
}

impl Wanted {
    fn parse(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::All) };
        if let Ok(count) = text.parse::<usize>() {
            return match count {
                0 => bail!("--agents 0: a run needs one at least"),
                count => Ok(Self::Count(count)),
            };
        }
        let hosts = expand_hosts(text, 0).with_context(|| format!("--agents {text}"))?;
        Ok(Self::Names(hosts.into_iter().map(|host| host.host).collect()))
    }

    /// Returns those of the present that are wanted, as far as they are there.
    fn of(&self, present: &[Recruit]) -> Vec<Recruit> {
        match self {
            Self::All => present.to_vec(),
            Self::Count(count) => present.iter().take(*count).cloned().collect(),
            Self::Names(names) => {
                let of_name =
                    |name: &String| present.iter().find(|each| each.name == *name).cloned();
                names.iter().filter_map(of_name).collect()
            }
        }
    }

    fn is_enough(&self, present: &[Recruit], since: Duration) -> bool {
        match self {
            Self::All => !present.is_empty() && since >= SETTLED,
            Self::Count(count) => present.len() >= *count,
            Self::Names(names) => self.of(present).len() == names.len(),
        }
    }
}

/// Refuses what a fleet cannot carry out.
fn check(plan: &Plan, is_real: bool) -> Result<()> {
    if !is_real {
        bail!("no store is asked, so a fleet has nothing to do; leave --fleet out");
    }
    if let Some((_, traced)) = plan.traced().next() {
        bail!(
            "{} is replayed by one process, as agents are not sent traces; leave --fleet out",
            traced.of.file
        );
    }
    let sent = ContentFiles::size_bytes(plan);
    if sent > CONTENT_BYTES_MAX {
        bail!(
            "the files that content is made of hold {}, and agents are sent {} at most: name fewer \
             (--obj.generator, or `files` of the workload's `content`), or leave --fleet out",
            Bytes(sent),
            Bytes(CONTENT_BYTES_MAX)
        );
    }
    let directories = plan.sets.iter().flat_map(|set| match &set.members {
        Members::Files(files) => &*files.directories,
        Members::Tree(tree) => &*tree.directories,
        _ => &[],
    });
    check_absolute(directories)?;
    let is_oracle = |target: &plimsoll_workload::plan::Target| {
        matches!(target.spec, Some(TargetSpec::Oracle(_)))
    };
    if plan.targets.iter().any(is_oracle) {
        bail!("the workload's oracle lives in this process, which agents cannot reach");
    }
    Ok(())
}

/// Refuses paths that mean another place for each agent.
pub(crate) fn check_absolute<'p>(paths: impl IntoIterator<Item = &'p String>) -> Result<()> {
    match paths.into_iter().find(|path| !path.starts_with('/')) {
        Some(relative) => {
            bail!("`{relative}` is a different place on each agent: use absolute paths for a fleet")
        }
        None => Ok(()),
    }
}

/// Returns a warning for measured stages in which agents of these weights have no worker.
fn idle(plan: &Plan, weights: &[u32]) -> Option<String> {
    let shares = Share::by_weight(weights)?;
    let idle_count = |stage: &Stage| {
        let has_work =
            |share: &Share| stage.jobs.iter().any(|job| !job.workers_of(*share).is_empty());
        // Who has no weight is to have no work.
        let meant = shares.iter().zip(weights).filter(|(_, weight)| **weight > 0);
        meant.filter(|(share, _)| !has_work(share)).count()
    };
    // Where jobs name agents, whoever wrote them means who is left without.
    let is_measured = |stage: &&Stage| {
        let has_work = !stage.jobs.is_empty() && !stage.is_on_buckets();
        stage.kind == StageKind::Measure && has_work && !stage.has_pins()
    };
    let mut idle: Vec<(usize, &str)> = plan
        .stages
        .iter()
        .filter(is_measured)
        .map(|stage| (idle_count(stage), &*stage.name))
        .filter(|(count, _)| *count > 0)
        .collect();
    idle.dedup();
    let (count, name) = *idle.iter().max_by_key(|(count, _)| *count)?;
    let others = match idle.len() {
        1 => String::new(),
        many => {
            format!(", and some have none in {}", format::plural(many as u64 - 1, "other stage"))
        }
    };
    let have = if count == 1 { "has" } else { "have" };
    Some(format!(
        "{count} of {} {have} no worker in stage {name}{others}: take more workers (--concurrent, \
         --jobs, or `workers` in a workload file)",
        format::plural(weights.len() as u64, "agent")
    ))
}

/// Finds the agents that are to carry a run out, and has them tell what lies at these paths.
pub(crate) fn muster(args: &FleetArgs, look: &[String], ui: &Ui) -> Result<Mustered> {
    let wanted = Wanted::parse(args.agents.as_deref())?;
    let fleet = reach(&args.reach())?;
    let limit = args.agents_wait.0;
    let roll = fleet.roll(limit, look, &mut |present, since| wanted.is_enough(present, since))?;
    roll.strangers.iter().for_each(|stranger| ui.warn(stranger));
    let mut recruits = wanted.of(&roll.present);
    let waited = format::duration(limit);
    match &wanted {
        Wanted::All if recruits.is_empty() => bail!(
            "no agent has joined after {waited}: on each machine run the line that `plimsoll fleet up` \
             printed"
        ),
        Wanted::Count(count) if recruits.len() < *count => bail!(
            "{} of {count} agents have joined after {waited} (--agents, --agents-wait)",
            recruits.len()
        ),
        Wanted::Names(names) if recruits.len() < names.len() => {
            let is_missing = |name: &&String| !recruits.iter().any(|each| each.name == **name);
            let names = names.iter().filter(is_missing).cloned().collect();
            return Err(Absent { names, waited: limit }.into());
        }
        _ => {}
    }
    if let Some(busy) = recruits.iter().find(|each| each.about.busy.is_some()) {
        let run = busy.about.busy.as_deref().unwrap_or_default();
        bail!("agent {} is part of another run, {run}", busy.name);
    }
    if args.agents_equal {
        recruits.iter_mut().for_each(|each| each.about.weight = 1);
    }
    heaviest(&recruits).iter().for_each(|note| ui.note(note));
    let names: Vec<&str> = recruits.iter().map(|each| &*each.name).collect();
    ui.note(&format!("{}: {}", format::plural(names.len() as u64, "agent"), names.join(", ")));
    Ok(Mustered { fleet, recruits })
}

/// Returns a note on an agent that asks for nearly all of the load.
fn heaviest(recruits: &[Recruit]) -> Option<String> {
    /// So much more than the next one is no difference of machines.
    const TIMES: u32 = 16;
    let mut by_weight: Vec<(u32, &str)> =
        recruits.iter().map(|each| (each.about.weight, &*each.name)).collect();
    by_weight.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let [(weight, name), (next, _), ..] = by_weight[..] else { return None };
    let all: u64 = by_weight.iter().map(|(weight, _)| u64::from(*weight)).sum();
    (next > 0 && weight / next >= TIMES).then(|| {
        let share = f64::from(weight) / all as f64 * 100.0;
        format!(
            "agent {name} takes {share:.0} % of the workers, as its weight is {weight} \
             (--agents-equal gives each agent the same share)"
        )
    })
}

/// Has the agents of a run, which are found unless they were already, share the work of a plan.
pub(crate) fn assign(
    plan: &mut Plan,
    found: Option<Mustered>,
    args: &FleetArgs,
    is_real: bool,
    ui: &Ui,
) -> Result<Mustered> {
    check(plan, is_real)?;
    let mustered = found.map_or_else(|| muster(args, &[], ui), Ok)?;
    pin(plan, &mustered.recruits, ui)?;
    idle(plan, &mustered.weights()).iter().for_each(|warning| ui.warn(warning));
    Ok(mustered)
}

/// Has the jobs of a plan be on the agents that they name. One that is not there is told, and
/// what is its is done by all.
fn pin(plan: &mut Plan, recruits: &[Recruit], ui: &Ui) -> Result<()> {
    let agents = recruits.iter().map(|each| (&*each.name, each.about.weight));
    let unknown = plan.pin(&agents.collect::<Vec<_>>()).map_err(ConductError::from)?;
    for (agent, jobs) in unknown {
        ui.warn(&format!(
            "no agent of the run is called {agent}, so all share the workers of {}",
            jobs.join(", ")
        ));
    }
    Ok(())
}

impl Mustered {
    /// Returns how much of the load each takes.
    pub(crate) fn weights(&self) -> Vec<u32> {
        self.recruits.iter().map(|recruit| recruit.about.weight).collect()
    }

    /// Returns what each found at the paths that it was asked for; refuses where one knows nothing.
    pub(crate) fn places(&self) -> Result<Vec<&[Place]>> {
        let of = |recruit: &'_ Recruit| -> Result<()> {
            let trouble = recruit.about.places.iter().find_map(|place| place.trouble.as_ref());
            trouble.map_or(Ok(()), |why| bail!("agent {}: {why}", recruit.name))
        };
        self.recruits.iter().try_for_each(of)?;
        Ok(self.recruits.iter().map(|recruit| &*recruit.about.places).collect())
    }

    /// Has the agents make a run ready that has begun, and carry it out.
    pub(crate) fn direct(
        self,
        run: &mut BegunRun,
        args: &FleetArgs,
        (threads, op_timeout, retries): (Option<usize>, Duration, u8),
        files: Option<&FileConductArgs>,
        access: &AccessDoc,
        content: ContentFiles,
    ) -> Result<()> {
        let Self { fleet, recruits } = self;
        let files = files.map(|files| FilesConductDoc {
            interface: files.interface.map(Interface::from),
            threads: files.threads,
            drop_machine_caches: files.drop_machine_caches,
        });
        let conduct = ConductDoc {
            threads,
            op_timeout_ns: u64::try_from(op_timeout.as_nanos()).unwrap_or(u64::MAX),
            retries,
            files: files.unwrap_or_default(),
        };
        let agents_min = if args.abort_on_loss { recruits.len() } else { args.agents_min };
        if agents_min > recruits.len() {
            bail!("--agents-min {agents_min}: only {} agents have joined", recruits.len());
        }
        let sent = match (access.has_secrets(), args.agent_credentials) {
            (true, false) => Some(Sent::Credentials),
            (true, true) => Some(Sent::OtherSecrets),
            (false, _) => (!content.is_empty()).then_some(Sent::Content),
        };
        if let Some(sent) = sent {
            let agents = recruits.iter().map(|each| &each.about);
            check_encrypted(fleet.nats.is_encrypted(), agents, sent)?;
        }
        let longest = Duration::from_nanos(conduct.op_timeout_ns);
        let settings = FleetSettings {
            access: serde_json::to_value(access)?,
            conduct,
            limits: Limits::DEFAULT.with_operations_of(longest),
            agents_min,
            parts_stay: args.parts_stay,
            coordinator: fleet.coordinator,
            content,
        };
        let lead = Lead::open(fleet.nats, fleet.arrivals, recruits, run, settings);
        let lead = lead.map_err(|error| anyhow!(error))?;
        run.direct(Box::new(lead));
        Ok(())
    }
}

/// What goes to agents and may be nobody else's to read.
#[derive(Clone, Copy)]
enum Sent {
    /// Credentials of stores.
    Credentials,
    /// Secrets of stores, where each agent has credentials of its own.
    OtherSecrets,
    /// Files that content is made of.
    Content,
}

/// Refuses to send it where anybody on the network may read it.
fn check_encrypted<'a>(
    is_encrypted: bool,
    mut agents: impl Iterator<Item = &'a About>,
    sent: Sent,
) -> Result<()> {
    let (what, else_own) = match sent {
        Sent::Credentials => (
            "the store's credentials",
            "; or have each agent ask with its own (--agent-credentials)",
        ),
        Sent::OtherSecrets => ("the store's own secrets (of --encrypt)", ""),
        Sent::Content => ("the files that content is made of (--obj.generator)", ""),
    };
    let ways = "write --fabric tls://HOST:PORT, or name the servers' certificates (--fabric-ca)";
    let to = match agents.find(|about| !about.is_encrypted) {
        _ if !is_encrypted => "the agents".to_owned(),
        Some(about) => format!("agent {}", about.name),
        None => return Ok(()),
    };
    let there = if is_encrypted { "there " } else { "" };
    bail!("{what} would go to {to} over NATS without TLS: {there}{ways}{else_own}")
}

#[cfg(test)]
mod tests {
    use plimsoll_fleet::protocol::AgentId;
    use plimsoll_workload::plan::WorkloadFile;

    use super::*;

    #[test]
    fn agents_without_a_worker_are_told_of_once() {
        let plan = |workers: [u32; 3]| {
            let [load, first, second] = workers;
            let text = format!(
                "schema: plimsoll.workload/2\nname: idle\nsets: {{o: {{count: 9, size: 1B}}}}\n\
                 stages:\n\
                 - {{name: load, prepares: true, jobs: [{{workers: {load}, work: {{fill: o}}}}]}}\n\
                 - {{name: main, duration: 1s, jobs: [{{name: a, workers: {first}, work: \
                 {{objects: [{{get: o}}]}}}}, {{name: b, work: {{objects: [{{stat: o}}]}}}}]}}\n\
                 - {{name: next, duration: 1s, jobs: [{{workers: {second}, work: {{objects: \
                 [{{get: o}}]}}}}]}}\n"
            );
            WorkloadFile::from_yaml("idle", &text).unwrap().check().unwrap()
        };
        let said = |workers, weights: &[u32]| idle(&plan(workers), weights);
        assert_eq!(said([1, 8, 8], &[1; 8]), None, "what prepares is no result");
        assert_eq!(said([1, 2, 2], &[1, 0, 1]), None, "who has no weight wants none");
        let advice = "take more workers (--concurrent, --jobs, or `workers` in a workload file)";
        assert_eq!(
            said([1, 8, 5], &[1; 8]).unwrap(),
            format!("3 of 8 agents have no worker in stage next: {advice}")
        );
        assert_eq!(
            said([1, 1, 2], &[1; 3]).unwrap(),
            format!(
                "2 of 3 agents have no worker in stage main, and some have none in 1 other \
                 stage: {advice}"
            )
        );
    }

    fn about(name: &str, weight: u32, is_encrypted: bool) -> About {
        About {
            name: name.to_owned(),
            version: "1".to_owned(),
            weight,
            is_encrypted,
            busy: None,
            kept: Vec::new(),
            places: Vec::new(),
            machine: None,
        }
    }

    #[test]
    fn an_agent_that_takes_nearly_all_of_the_load_is_named() {
        let note = |weights: &[u32]| {
            let recruit = |(number, weight): (usize, &u32)| {
                let (name, id) = (format!("n{number}"), format!("a{number}"));
                let (id, about) = (AgentId::new(id).unwrap(), about(&name, *weight, true));
                Recruit { id, name, incarnation: 1, about }
            };
            heaviest(&weights.iter().enumerate().map(recruit).collect::<Vec<_>>())
        };
        for weights in [&[][..], &[9], &[8, 4, 64], &[1_000_000, 0]] {
            assert_eq!(note(weights), None, "{weights:?}");
        }
        assert_eq!(
            note(&[4, 1_000_000, 4]).unwrap(),
            "agent n1 takes 100 % of the workers, as its weight is 1000000 (--agents-equal gives \
             each agent the same share)"
        );
    }

    #[test]
    fn secrets_go_nowhere_without_tls() {
        let agents = [about("a", 1, true), about("b", 1, false)];
        let check = |is_encrypted, sent| {
            let checked = check_encrypted(is_encrypted, agents.iter(), sent);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(
            check(false, Sent::Credentials).unwrap_err(),
            "the store's credentials would go to the agents over NATS without TLS: write --fabric \
             tls://HOST:PORT, or name the servers' certificates (--fabric-ca); or have each agent \
             ask with its own (--agent-credentials)"
        );
        assert_eq!(
            check(true, Sent::OtherSecrets).unwrap_err(),
            "the store's own secrets (of --encrypt) would go to agent b over NATS without TLS: there \
             write --fabric tls://HOST:PORT, or name the servers' certificates (--fabric-ca)"
        );
        assert_eq!(
            check(false, Sent::Content).unwrap_err(),
            "the files that content is made of (--obj.generator) would go to the agents over NATS \
             without TLS: write --fabric tls://HOST:PORT, or name the servers' certificates \
             (--fabric-ca)"
        );
        assert!(check_encrypted(true, agents[..1].iter(), Sent::Credentials).is_ok());
    }
}
