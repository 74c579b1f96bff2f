//! The flags of a fleet: of who makes one, of its agents, and of runs that it carries out.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use super::{ByteSize, Duration};
use crate::left_out;

/// Which fleet is meant.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct ReachArgs {
    /// The fleet that is up on this machine; DIR is where `plimsoll fleet up` keeps its files
    /// [default: plimsoll/fleet in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) fleet: Option<Option<PathBuf>>,
    /// The agents on this NATS instead, nats://HOST:PORT or tls://HOST:PORT, comma separated
    #[arg(long, value_name = "URLS", conflicts_with = "fleet")]
    pub(crate) fabric: Option<String>,
    #[command(flatten)]
    pub(crate) access: FabricArgs,
}

/// Which fleet is meant that `plimsoll fleet up` has made.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OwnFleetArgs {
    /// Where `plimsoll fleet up` keeps its files
    /// [default: plimsoll/fleet in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) fleet: Option<Option<PathBuf>>,
}

/// Which agents carry a run out.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Run on the agents of the fleet on this machine, each with its share of the workers; DIR is
    /// where `plimsoll fleet up` keeps its files
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) fleet: Option<Option<PathBuf>>,
    /// The same with the agents on this NATS, nats://HOST:PORT or tls://HOST:PORT, comma separated
    #[arg(long, value_name = "URLS", conflicts_with = "fleet")]
    pub(crate) fabric: Option<String>,
    #[command(flatten)]
    pub(crate) access: FabricArgs,
    /// Which agents: so many, or those of these names, comma separated; {1...8} stands for a range
    /// [default: all that are there]
    #[arg(long, value_name = "N|NAMES")]
    pub(crate) agents: Option<String>,
    /// How long to wait for them
    #[arg(long, default_value = "1m", value_name = "DURATION")]
    pub(crate) agents_wait: Duration,
    /// Abort the run when fewer agents than this are left; a result without the lost ones says so,
    /// and the run exits with 1
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) agents_min: usize,
    /// Abort the run when any agent is lost
    #[arg(long, conflicts_with = "agents_min")]
    pub(crate) abort_on_loss: bool,
    /// Give each agent the same share of the workers, whatever its weight
    #[arg(long)]
    pub(crate) agents_equal: bool,
    /// Each agent also keeps its part of the record, as a run directory of its own
    #[arg(long)]
    pub(crate) parts_stay: bool,
    /// Each agent uses its own credentials for the store, on hosts that its owner names
    /// (--allow-hosts); none leave this machine
    #[arg(long)]
    pub(crate) agent_credentials: bool,
}

impl FleetArgs {
    /// Tells whether a run is carried out by a fleet.
    pub(crate) fn is_asked(&self) -> Result<bool> {
        let of_fleets = [
            ("--agents", self.agents.is_some()),
            ("--agents-min", self.agents_min > 1),
            ("--abort-on-loss", self.abort_on_loss),
            ("--agents-equal", self.agents_equal),
            ("--parts-stay", self.parts_stay),
            ("--agent-credentials", self.agent_credentials),
        ];
        let given = of_fleets.into_iter().find(|(_, is_given)| *is_given);
        let names_fleet = self.fleet.is_some() || self.fabric.is_some();
        if names_fleet || given.is_some() {
            left_out::FLEET.check()?;
        }
        match given {
            Some((flag, _)) if !names_fleet => {
                bail!("{flag} is about the agents of a fleet: add --fleet or --fabric")
            }
            _ => Ok(names_fleet),
        }
    }

    /// Returns which fleet is meant.
    pub(crate) fn reach(&self) -> ReachArgs {
        let Self { fleet, fabric, access, .. } = self.clone();
        ReachArgs { fleet, fabric, access }
    }
}

impl Default for FleetArgs {
    /// Returns those of a run that this process carries out itself.
    fn default() -> Self {
        Self {
            fleet: None,
            fabric: None,
            access: FabricArgs::default(),
            agents: None,
            agents_wait: Duration(std::time::Duration::from_secs(60)),
            agents_min: 1,
            abort_on_loss: false,
            agents_equal: false,
            parts_stay: false,
            agent_credentials: false,
        }
    }
}

/// Who asks a NATS that was there before.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FabricArgs {
    /// With --fabric: the file of credentials that the NATS wants, or of USER:PASSWORD or a token
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub(crate) fabric_credentials: Option<PathBuf>,
    /// With --fabric: trust the certificates in this PEM file besides the system's
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub(crate) fabric_ca: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Start a fleet on this machine and print the line by which agents join it; Ctrl-C ends it
    Up(UpArgs),
    /// Show the agents that are there
    Agents(AgentsArgs),
    /// Add to the record of a run what agents have kept of it, after its coordinator was killed or
    /// had lost them
    Collect(CollectArgs),
    /// Print another line by which agents join
    Token(TokenArgs),
    /// Cut agents off, or let nobody join by a line any more
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// How many agents may join by it [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) uses: Option<u32>,
    /// How long they may [default: as long as the fleet is up]
    #[arg(long, value_name = "DURATION")]
    pub(crate) expires: Option<Duration>,
    #[command(flatten)]
    pub(crate) fleet: OwnFleetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Agents by name or id; they are cut off at once, and a run goes on without them
    #[arg(value_name = "AGENT")]
    pub(crate) whom: Vec<String>,
    /// The number of a line, 1 being the first; agents that have joined by it stay
    #[arg(long, value_name = "N")]
    pub(crate) token: Vec<u32>,
    #[command(flatten)]
    pub(crate) fleet: OwnFleetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Have each agent keep its part as a run directory of its own, too
    #[arg(long)]
    pub(crate) parts_stay: bool,
    #[command(flatten)]
    pub(crate) fleet: ReachArgs,
}

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// Where to listen for agents; port 0 takes a free one
    #[arg(long, default_value = "0.0.0.0:4222", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,
    /// The addresses or names by which agents reach this machine, comma separated
    /// [default: its host name, or the address of --listen]
    #[arg(long, value_name = "HOSTS")]
    pub(crate) advertise: Option<String>,
    /// The NATS server [default: `nats-server` beside plimsoll, or on the path]
    #[arg(long, value_name = "FILE")]
    pub(crate) nats_server: Option<PathBuf>,
    /// Where to keep the fleet's files while it is up: a new or empty directory, or one that a
    /// fleet was in before [default: plimsoll/fleet in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// How many agents may join in all
    #[arg(long, default_value_t = 1_024, value_name = "N")]
    pub(crate) agents_max: u32,
    /// How many agents may join by the line that is printed [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) token_uses: Option<u32>,
    /// How long they may [default: as long as the fleet is up]
    #[arg(long, value_name = "DURATION")]
    pub(crate) token_expires: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) fleet: ReachArgs,
    #[command(flatten)]
    pub(crate) print: super::PrintArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AgentArgs {
    /// The file of the token that `plimsoll fleet up` prints, or of its whole line; - is stdin
    /// [default: the token in PLIMSOLL_JOIN]
    #[arg(long, value_name = "FILE")]
    pub(crate) join_file: Option<PathBuf>,
    /// Take part on this NATS instead, nats://HOST:PORT or tls://HOST:PORT, comma separated
    #[arg(long, value_name = "URLS", conflicts_with = "join_file")]
    pub(crate) fabric: Option<String>,
    #[command(flatten)]
    pub(crate) access: FabricArgs,
    /// What people call this agent [default: the machine's host name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How much load it takes relative to others, at most 1000000 [default: its cores]
    #[arg(long, value_name = "N")]
    pub(crate) weight: Option<u32>,
    /// Where to keep its key, by which a fleet knows it again, and what it records until the
    /// coordinator has it: a new or empty directory, or this agent's own from before
    /// [default: plimsoll/agent in $XDG_STATE_HOME or ~/.local/state, or agent-2 and so on]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Connect to no stores, proxies or sign-ins but these, comma separated, each HOST (all its
    /// ports) or HOST:PORT; {1...8} stands for a range. Only then are the agent's own credentials
    /// used (--agent-credentials) [default: any]
    #[arg(long, value_name = "HOSTS", help_heading = "Limits")]
    pub(crate) allow_hosts: Option<String>,
    /// Work on nothing outside of these directories, comma separated. Without it a run may make
    /// directories of its own anywhere, and works on no files that were there before
    #[arg(long, value_name = "DIRS", value_delimiter = ',', help_heading = "Limits")]
    pub(crate) allow_dirs: Vec<PathBuf>,
    /// Run no more workers than this at once, and no more operations in flight
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) workers_max: Option<u32>,
    /// Fill no more than this in a run, and write no larger files
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) fill_max: Option<ByteSize>,
}
