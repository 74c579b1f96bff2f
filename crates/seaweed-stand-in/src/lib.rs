//! A SeaweedFS of masters and volume servers in memory, on free ports of loopback.
//!
//! It speaks SeaweedFS's own protocol: HTTP of masters and volume servers, and the calls of gRPC
//! that give file ids, look volumes up, tell where they are and remove many files. A [`Script`]
//! says how volume servers and masters take their time, fail and lie. Known differences from
//! SeaweedFS 4.48: nothing expires (`ttl` only parts volumes), nothing is compressed, no chunk
//! manifests, no filer; answers have no dates.

mod answer;
mod assigning;
mod batch;
mod cluster;
mod fid;
mod files;
mod form;
mod grpc;
mod ledger;
mod listen;
mod master;
mod messages;
mod placing;
mod state;
mod token;
mod volume;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use plimsoll_model::{Moment, OpKind};
use plimsoll_oracle::{
    Act, Behaviour, Misbehaviour, SCRIPT_SCHEMA, Script, SeaweedPlan, Serving, Timer, When,
};
use plimsoll_workload::Random;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

pub use self::ledger::{Assigned, SeaweedLedger};
pub use self::placing::Site;

use self::assigning::Assigning;
use self::cluster::{Cluster, Keys};
use self::files::Stored;
use self::listen::{Ports, Presence, Speak, attend};
use self::master::Master;
use self::state::{Ask, State};
use self::token::Key;
use self::volume::VolumeServer;

const PLACE_DOMAIN: u64 = 0x7365_6177;

/// How many volumes a server takes where nobody says otherwise.
const VOLUMES_MAX: usize = 100;

/// How a stand-in for SeaweedFS is set up.
#[derive(Clone)]
pub struct StandInConfig {
    /// How many masters there are, at least one; the first one leads.
    pub masters: usize,
    /// Its volume servers, at least one.
    pub volume_servers: Vec<Site>,
    /// How many volumes a volume server takes.
    pub volumes_max: usize,
    /// What tokens to write and to delete are signed with; `None` where none are wanted.
    pub write_key: Option<Vec<u8>>,
    /// The same of tokens to read.
    pub read_key: Option<Vec<u8>>,
    /// After so many ids a master ends a stream of them in good order; `None`: never.
    pub stream_answers_max: Option<u32>,
    /// How it misbehaves; without a script it does not.
    pub script: Option<Script>,
    /// What fixes all random choices.
    pub seed: u64,
}

impl Default for StandInConfig {
    /// One master and one volume server that do what they should.
    fn default() -> Self {
        Self {
            masters: 1,
            volume_servers: vec![Site::default()],
            volumes_max: VOLUMES_MAX,
            write_key: None,
            read_key: None,
            stream_answers_max: None,
            script: None,
            seed: 0,
        }
    }
}

/// Why a stand-in did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StandInError {
    /// It was to have no master or no volume server.
    #[error("a stand-in for SeaweedFS needs at least one master and one volume server")]
    NoServers,
    /// The script names a server that it does not have.
    #[error("seaweed.{field}: there is no {server}; they count from 0")]
    NoSuchServer {
        /// The path of the field within the script's section.
        field: String,
        /// Which server.
        server: String,
    },
    /// No port, thread or event loop was to be had.
    #[error("cannot serve a stand-in for SeaweedFS")]
    Io(#[source] io::Error),
}

/// A running stand-in; it ends when dropped, and what it held is gone.
pub struct SeaweedStandIn {
    cluster: Arc<Cluster>,
    volume_servers: Vec<Presence>,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SeaweedStandIn {
    /// Starts a cluster; its servers listen when this returns.
    pub fn start(config: StandInConfig) -> Result<Self, StandInError> {
        if config.masters == 0 || config.volume_servers.is_empty() {
            return Err(StandInError::NoServers);
        }
        let script = config.script.clone().unwrap_or_else(honest_script);
        check(&script.seaweed, &config)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(StandInError::Io)?;
        let context = runtime.enter();
        let ports = |count: usize| {
            let ports = (0..count).map(|_| Ports::take(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            ports.collect::<io::Result<Vec<Ports>>>().map_err(StandInError::Io)
        };
        let (masters, volumes) = (ports(config.masters)?, ports(config.volume_servers.len())?);
        drop(context);
        let cluster = Arc::new(cluster_of(&config, script, &masters, &volumes));
        let volume_servers: Vec<Presence> = volumes.iter().map(|_| Presence::new()).collect();
        let of_masters: Vec<Presence> = masters.iter().map(|_| Presence::new()).collect();
        for (number, (ports, presence)) in masters.into_iter().zip(&of_masters).enumerate() {
            let master = Master { cluster: Arc::clone(&cluster), number };
            let http = by_http(master.clone(), &cluster.misbehaviour);
            let grpc = by_grpc(master, |master, call| Box::pin(master.call(call)));
            runtime.spawn(attend(ports, presence.clone(), [http, grpc]));
        }
        for (number, (ports, presence)) in volumes.into_iter().zip(&volume_servers).enumerate() {
            let server = VolumeServer { cluster: Arc::clone(&cluster), number };
            let http = by_http(server.clone(), &cluster.misbehaviour);
            let grpc = by_grpc(server, |server, call| Box::pin(server.call(call)));
            runtime.spawn(attend(ports, presence.clone(), [http, grpc]));
        }
        let handle = runtime.handle().clone();
        let (stop, stopped) = watch::channel(());
        let thread = run(runtime, stopped).map_err(StandInError::Io)?;
        let stand_in = Self {
            cluster: Arc::clone(&cluster),
            volume_servers: volume_servers.clone(),
            stop: Some(stop),
            thread: Some(thread),
        };
        for presence in of_masters.iter().chain(&volume_servers) {
            presence.wait(true).map_err(StandInError::Io)?;
        }
        // Nobody leaves before all have come.
        let plan = config.script.map(|script| script.seaweed).unwrap_or_default();
        handle.spawn(keep_time(cluster, volume_servers, plan));
        Ok(stand_in)
    }

    /// Returns the addresses of the masters, as `host:port.grpcport`.
    pub fn masters(&self) -> Vec<String> {
        self.cluster.state().masters.iter().map(|address| address.whole()).collect()
    }

    /// Returns the addresses of the volume servers, as `host:port.grpcport`.
    pub fn volume_servers(&self) -> Vec<String> {
        self.cluster.state().servers.iter().map(|server| server.address.whole()).collect()
    }

    /// Has that master lead, counted from 0, or none.
    pub fn lead(&self, master: Option<usize>) {
        let count = self.cluster.state().masters.len();
        assert!(master.is_none_or(|master| master < count), "there are {count} masters");
        self.cluster.change(|state| state.leader = master);
    }

    /// Closes all connections of a volume server, counted from 0, and refuses new ones. Masters go
    /// on naming it where they do not notice.
    pub fn leave(&self, server: usize, is_noticed: bool) {
        depart(&self.cluster, server, is_noticed);
        self.volume_servers[server].want(false);
        self.volume_servers[server].wait(false).expect("who leaves need not listen");
    }

    /// Has a volume server come back, with all that it held.
    ///
    /// # Panics
    /// Where it cannot listen any more.
    pub fn come_back(&self, server: usize) {
        self.volume_servers[server].want(true);
        self.volume_servers[server].wait(true).expect("its ports were held for it");
        arrive(&self.cluster, server);
    }

    /// Stores a file as another client would, and returns its id. It is in no ledger. `None` where
    /// there is no room.
    pub fn put_file(&self, collection: &str, content: impl Into<Bytes>) -> Option<String> {
        let ask = Ask { collection: collection.to_owned(), ..Ask::default() };
        let content = content.into();
        self.cluster.change(|state| {
            let counts = state.counts.clone();
            let layout = state::layout_of(&ask).expect("it asks for nothing special");
            if !state.volumes.values().any(|volume| volume.layout == layout) {
                state.grow(&layout, 1, &ask);
            }
            let given = state.give(&ask, Moment::EPOCH).ok()?;
            let mime = "application/octet-stream".to_owned();
            let file = Stored::new(given.fid.cookie, String::new(), mime, content);
            state.store(given.fid, file, None);
            state.counts = counts;
            Some(given.fid.to_string())
        })
    }

    /// Returns the files of a collection by their ids.
    pub fn files(&self, collection: &str) -> BTreeMap<String, Bytes> {
        let files = self.cluster.state().files_of(collection);
        files.into_iter().map(|(fid, (content, _))| (fid, content)).collect()
    }

    /// Returns how many copies there are of each file of a collection.
    pub fn copies(&self, collection: &str) -> BTreeMap<String, usize> {
        let files = self.cluster.state().files_of(collection);
        files.into_iter().map(|(fid, (_, copies))| (fid, copies)).collect()
    }

    /// Returns what it truly did so far.
    pub fn ledger(&self) -> SeaweedLedger {
        self.cluster.ledger()
    }

    /// Makes the ledger keep the latency of every operation of volume servers from now on.
    pub fn keep_latencies(&self) {
        self.cluster.misbehaviour.keep_latencies();
    }
}

impl fmt::Debug for SeaweedStandIn {
    /// Writes the addresses, and none of what is stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeaweedStandIn({})", self.masters().join(", "))
    }
}

impl Drop for SeaweedStandIn {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so already.
            let _ended = thread.join();
        }
    }
}

/// Returns the script of who does what it should, at once.
fn honest_script() -> Script {
    let yaml = format!("schema: {SCRIPT_SCHEMA}\nservice: {{time: {{constant: 1ns}}}}\n");
    Script::from_yaml(&yaml).expect("it is a script")
}

/// Refuses what names a server that is not there.
fn check(plan: &SeaweedPlan, config: &StandInConfig) -> Result<(), StandInError> {
    let refused = |field, server| Err(StandInError::NoSuchServer { field, server });
    for (index, change) in plan.leaders.iter().enumerate() {
        if let Some(master) = change.master.filter(|master| *master >= config.masters) {
            return refused(format!("leaders[{index}].master"), format!("master {master}"));
        }
    }
    for (index, away) in plan.away.iter().enumerate() {
        if away.server >= config.volume_servers.len() {
            let server = format!("volume server {}", away.server);
            return refused(format!("away[{index}].server"), server);
        }
    }
    Ok(())
}

fn cluster_of(
    config: &StandInConfig,
    script: Script,
    masters: &[Ports],
    volumes: &[Ports],
) -> Cluster {
    // Its answer to a delete has no body that a client reads.
    let script = script.without(OpKind::Delete, Act::ErrorInSuccess);
    let behaviour = Behaviour::new(&script, config.seed);
    let remembers = behaviour.tells_lies();
    let servers = volumes.iter().map(|ports| ports.address).zip(config.volume_servers.clone());
    let state = State::new(
        masters.iter().map(|ports| ports.address).collect(),
        servers.collect(),
        Assigning::new(script.seaweed, script.grace_count, config.seed),
        Random::new(config.seed, PLACE_DOMAIN, 0),
        (config.volumes_max, remembers),
    );
    let key = |secret: &Option<Vec<u8>>| secret.as_deref().map(Key::new);
    let keys = Keys { write: key(&config.write_key), read: key(&config.read_key) };
    let misbehaviour = Arc::new(Misbehaviour::new(behaviour));
    Cluster::new(state, misbehaviour, keys, config.stream_answers_max)
}

fn by_http(server: impl Serving, misbehaviour: &Arc<Misbehaviour>) -> Speak {
    let misbehaviour = Arc::clone(misbehaviour);
    Arc::new(move |socket| {
        Box::pin(plimsoll_oracle::converse(socket, server.clone(), Arc::clone(&misbehaviour)))
    })
}

fn by_grpc<S: Clone + Send + Sync + 'static>(
    server: S,
    call: impl Fn(S, grpc::Call) -> futures::future::BoxFuture<'static, ()>
    + Clone
    + Send
    + Sync
    + 'static,
) -> Speak {
    Arc::new(move |socket| {
        let (server, call) = (server.clone(), call.clone());
        Box::pin(grpc::converse(socket, move |asked| call(server.clone(), asked)))
    })
}

fn run(runtime: Runtime, mut stopped: watch::Receiver<()>) -> io::Result<JoinHandle<()>> {
    // The sender is dropped to stop; the tasks go with their runtime.
    let run = move || drop(runtime.block_on(stopped.changed()));
    std::thread::Builder::new().name("seaweed-stand-in".to_owned()).spawn(run)
}

/// A volume server goes.
fn depart(cluster: &Cluster, server: usize, is_noticed: bool) {
    cluster.change(|state| {
        let server = &mut state.servers[server];
        (server.is_here, server.is_known) = (false, !is_noticed);
    });
}

/// A volume server is there again.
fn arrive(cluster: &Cluster, server: usize) {
    cluster.change(|state| {
        let server = &mut state.servers[server];
        (server.is_here, server.is_known) = (true, true);
    });
}

/// What happens at a time.
enum Event {
    Leads(Option<usize>),
    Leaves { server: usize, is_noticed: bool },
    ComesBack(usize),
}

/// Does what is to happen by time.
async fn keep_time(
    cluster: Arc<Cluster>,
    servers: Vec<Presence>,
    plan: SeaweedPlan,
) -> io::Result<()> {
    let mut events: Vec<(u64, Event)> = Vec::new();
    for change in plan.leaders {
        if let When::At(at) = change.when {
            events.push((at, Event::Leads(change.master)));
        }
    }
    for away in plan.away {
        let leaves = Event::Leaves { server: away.server, is_noticed: away.is_noticed };
        events.push((away.from, leaves));
        let back = away.from.saturating_add(away.lasting);
        events.push((back, Event::ComesBack(away.server)));
    }
    events.sort_by_key(|(at, _)| *at);
    let timer = Timer::new(cluster.misbehaviour.clock)?;
    for (at, event) in events {
        timer.until(Moment::from_ns(at)).await?;
        match event {
            Event::Leads(master) => cluster.change(|state| state.leader = master),
            Event::Leaves { server, is_noticed } => {
                depart(&cluster, server, is_noticed);
                servers[server].want(false);
            }
            Event::ComesBack(server) => {
                servers[server].want(true);
                arrive(&cluster, server);
            }
        }
    }
    Ok(())
}
