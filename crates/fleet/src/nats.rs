//! A fabric on NATS: messages over its core, which may drop them, and contents in its object store,
//! where each piece is acknowledged.
#![expect(clippy::disallowed_methods, reason = "owns the connections between machines")]

mod budget;
mod objects;

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

pub use async_nats::ServerAddr;
use async_nats::jetstream;
use async_nats::{Client, ConnectOptions, HeaderMap, Message, Subject};
use bytes::Bytes;
use futures::StreamExt as _;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use self::budget::Budgets;
use self::objects::{TakeError, Takes};
use crate::fabric::{Address, Arrival, Arrivals, Fabric, FabricError, Kept, Space, arrivals};
use crate::protocol::AgentId;
use crate::simulated::{failed, read_whole};

/// What all subjects begin with.
pub(crate) const SUBJECTS: &str = "plimsoll";
/// The header that all messages have which are no server's.
const OURS: &str = "Plimsoll";
/// Messages that wait to be sent; what comes beyond is dropped, and said again.
const WAITING_MAX: usize = 1 << 14;
/// Messages that wait to be taken; the library drops what comes beyond.
const SUBSCRIPTION_MAX: usize = 1 << 18;
/// How large the pieces of a content are.
const CHUNK_BYTES: usize = 1 << 18;
/// What all agents may read is kept no longer than this, whatever became of its coordinator: none
/// of them reads it after it has begun a stage.
const SHARED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Of all that is kept, what coordinators have agents read takes no more than this part; the rest
/// is shared out among the agents of a run.
const SHARED_PART: u64 = 4;
/// An agent may keep this part of all beyond that, as it is counted in whole pieces and most files
/// are smaller.
const FILES_PART: u64 = 8;
/// How much a fabric is taken to keep that has no limit of its own.
const ROOM_BYTES: u64 = 1 << 42;
/// How long a content is tried to be kept or fetched, while the servers come and go.
const TRY_FOR: Duration = Duration::from_secs(60);
/// How long a server may take to be there again when it reads its configuration anew.
const RELOAD_MAX: Duration = Duration::from_secs(5);
/// How long is waited before the next try.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// How long one request to the object store may take.
const REQUEST: Duration = Duration::from_secs(5);
/// No reply goes to a longer subject: each who hears an answer is sent the subject with it.
const REPLY_BYTES_MAX: usize = 256;
/// How long the first connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// What a client calls itself whose end is told.
const CLIENT: &str = "plimsoll-agent";

/// How a NATS is reached.
#[derive(Clone)]
pub struct NatsConfig {
    /// Its servers.
    pub servers: Vec<ServerAddr>,
    /// Who asks, and whom it trusts.
    pub access: Access,
    /// Who hears of connections that end, where that is somebody else.
    pub system: Option<Arc<rustls::ClientConfig>>,
}

/// Who asks a NATS, and whom it trusts.
#[derive(Clone)]
pub enum Access {
    /// A certificate of a fleet of ours.
    Fleet(Arc<rustls::ClientConfig>),
    /// As the servers of others want it: what a file of credentials holds, and whether TLS is
    /// demanded.
    Others {
        /// The text of the file: what NATS calls credentials, else a user and a password with `:`
        /// between them, else a token.
        credentials: Option<String>,
        /// A file of certificates that are trusted besides those of the system.
        ca_file: Option<std::path::PathBuf>,
    },
}

impl NatsConfig {
    /// Tells whether no connection is ever made without TLS.
    pub fn is_encrypted(&self) -> bool {
        match &self.access {
            Access::Fleet(_) | Access::Others { ca_file: Some(_), .. } => true,
            Access::Others { ca_file: None, .. } => {
                self.servers.iter().all(ServerAddr::tls_required)
            }
        }
    }
}

/// Who joins.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// An agent, as this process.
    Agent(&'a AgentId, u64),
    /// A coordinator.
    Coordinator,
    /// Who has made the fleet.
    Up,
    /// Who wants to join it.
    Join,
}

/// A fabric on NATS.
pub struct Nats {
    loops: Loop,
    jetstream: jetstream::Context,
    client: Client,
    outgoing: mpsc::Sender<(String, Bytes)>,
    is_encrypted: bool,
}

fn subject_of(to: &Address) -> String {
    match to {
        Address::Agents => format!("{SUBJECTS}.ask.all"),
        Address::Agent(agent) => format!("{SUBJECTS}.ask.{}", agent.as_str()),
        Address::Coordinators(from) => format!("{SUBJECTS}.tell.{}", from.as_str()),
    }
}

/// Returns the bucket that is a space.
pub(crate) fn bucket_of(space: &Space) -> String {
    match space {
        Space::Shared => format!("{SUBJECTS}-shared"),
        Space::Of(agent) => format!("{SUBJECTS}-of-{}", agent.as_str()),
    }
}

/// Returns what an agent's inbox begins with; nobody else may hear it.
pub(crate) fn inbox_of(id: &str) -> String {
    format!("_INBOX_{SUBJECTS}_{id}")
}

fn options(access: &Access) -> Result<ConnectOptions, FabricError> {
    let plain = ConnectOptions::new()
        .connection_timeout(CONNECT)
        .request_timeout(Some(REQUEST))
        .ping_interval(Duration::from_secs(2))
        .subscription_capacity(SUBSCRIPTION_MAX)
        .ignore_discovered_servers()
        .reconnect_delay_callback(|tries| TRY_AGAIN.min(Duration::from_millis(20 * tries as u64)));
    match access {
        Access::Fleet(tls) => Ok(plain.tls_client_config((**tls).clone()).require_tls(true)),
        Access::Others { credentials, ca_file } => {
            let plain = match ca_file {
                Some(path) => plain.add_root_certificates(path.clone()).require_tls(true),
                None => plain,
            };
            match credentials.as_deref().map(|text| (text, text.trim().split_once(':'))) {
                Some((text, _)) if text.contains("-----BEGIN") => plain
                    .credentials(text)
                    .map_err(|error| failed("cannot use the credentials".to_owned(), error)),
                Some((_, Some((user, password)))) => {
                    Ok(plain.user_and_password(user.to_owned(), password.to_owned()))
                }
                Some((text, None)) => Ok(plain.token(text.trim().to_owned())),
                None => Ok(plain),
            }
        }
    }
}

/// An event loop on a thread of its own, until it is dropped.
struct Loop {
    handle: Handle,
    over: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Loop {
    fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (over, ended) = oneshot::channel::<()>();
        let drive = move || {
            let _ = runtime.block_on(ended);
        };
        let thread = thread::Builder::new().name("fabric".to_owned()).spawn(drive)?;
        Ok(Self { handle, over: Some(over), thread: Some(thread) })
    }

    fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Nats {
    /// Joins a fabric, and returns what arrives.
    pub fn join(config: &NatsConfig, side: Side<'_>) -> Result<(Self, Arrivals), FabricError> {
        let (to, arrivals) = arrivals();
        let deliver = move |arrival| to.deliver(arrival);
        Ok((Self::join_with(config, side, deliver)?, arrivals))
    }

    /// The same; what arrives is handed over until that is not wanted any more.
    pub fn join_with(
        config: &NatsConfig,
        side: Side<'_>,
        deliver: impl Fn(Arrival) -> bool + Clone + Send + 'static,
    ) -> Result<Self, FabricError> {
        let runtime = Loop::start()
            .map_err(|error| failed("cannot start the thread of the fabric".to_owned(), error))?;
        let client = runtime.block_on(connect(config, side))?;
        let subjects: Vec<String> = match side {
            Side::Agent(id, _) => {
                vec![subject_of(&Address::Agents), subject_of(&Address::Agent(id.clone()))]
            }
            Side::Coordinator => vec![format!("{SUBJECTS}.tell.*")],
            Side::Up | Side::Join => Vec::new(),
        };
        for subject in subjects {
            let subscribed = runtime.block_on(client.subscribe(subject.clone()));
            let mut messages =
                subscribed.map_err(|error| failed(format!("cannot hear {subject}"), error))?;
            let deliver = deliver.clone();
            let mut budgets = Budgets::default();
            runtime.spawn(async move {
                while let Some(message) = messages.next().await {
                    if !is_ours(&message) {
                        continue;
                    }
                    let last = message.subject.rsplit('.').next().unwrap_or_default();
                    let told = message.subject.starts_with(&format!("{SUBJECTS}.tell."));
                    let from = AgentId::new(last).ok().filter(|_| told);
                    // What is dropped is said again, by whoever does not flood.
                    let now = tokio::time::Instant::now();
                    if !budgets.spend(from.as_ref(), message.payload.len(), now) {
                        continue;
                    }
                    let bytes = message.payload.to_vec();
                    if !deliver(Arrival::Message { from, bytes }) {
                        return;
                    }
                }
            });
        }
        if let (Side::Coordinator, Some(system)) = (side, &config.system) {
            runtime.block_on(hear_ends(config, Arc::clone(system), deliver))?;
        }
        let flushed = runtime.block_on(client.flush());
        flushed.map_err(|error| failed("the NATS server does not answer".to_owned(), error))?;
        let (outgoing, waiting) = mpsc::channel(WAITING_MAX);
        runtime.spawn(send(client.clone(), waiting));
        // It begins a task of its own.
        let within = runtime.handle.enter();
        let jetstream = jetstream::ContextBuilder::new().timeout(REQUEST).build(client.clone());
        drop(within);
        let is_encrypted = config.is_encrypted();
        Ok(Self { loops: runtime, jetstream, client, outgoing, is_encrypted })
    }

    /// Tells whether all that this process says goes through TLS.
    pub const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Removes the place of an agent with all that is kept there, if there is one.
    pub(crate) fn remove_space(&self, of: &Space) -> Result<(), FabricError> {
        let stream = objects::stream_of(&bucket_of(of));
        // A server that reads its configuration anew answers nothing for a moment.
        self.keep_trying(format!("cannot remove what {of} has kept"), RELOAD_MAX, || async {
            match self.jetstream.delete_stream(&stream).await {
                Err(error) if !objects::is_missing(&error.kind()) => Err(error),
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }

    /// Asks somebody once, and returns the answer.
    pub(crate) fn request(&self, subject: &str, content: Vec<u8>) -> Result<Vec<u8>, FabricError> {
        let asked = self.client.request(subject.to_owned(), content.into());
        let answer = self.loops.block_on(asked);
        let answer = answer.map_err(|error| failed(format!("no answer to {subject}"), error))?;
        Ok(answer.payload.to_vec())
    }

    /// Answers whatever is asked under a subject by those whose inboxes begin so; whoever asks may
    /// name any subject for the answer.
    pub(crate) fn answer(
        &self,
        subject: String,
        inbox: String,
        answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> Result<(), FabricError> {
        let subscribed = self.loops.block_on(self.client.subscribe(subject.clone()));
        let mut asked =
            subscribed.map_err(|error| failed(format!("cannot hear {subject}"), error))?;
        let client = self.client.clone();
        let mut budgets = Budgets::default();
        self.loops.spawn(async move {
            while let Some(message) = asked.next().await {
                let now = tokio::time::Instant::now();
                if !budgets.spend(None, message.payload.len(), now) {
                    continue;
                }
                let is_own =
                    |reply: &Subject| reply.starts_with(&inbox) && reply.len() <= REPLY_BYTES_MAX;
                if let Some(reply) = message.reply.filter(is_own) {
                    // Who does not hear the answer asks again.
                    let _ = client.publish(reply, answer(&message.payload).into()).await;
                }
            }
        });
        let flushed = self.loops.block_on(self.client.flush());
        flushed.map_err(|error| failed("the NATS server does not answer".to_owned(), error))
    }

    /// Does something again and again until it is done or has taken too long.
    fn keep_trying<T, E, F>(
        &self,
        what: String,
        time_max: Duration,
        mut act: impl FnMut() -> F,
    ) -> Result<T, FabricError>
    where
        F: Future<Output = Result<T, E>>,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.loops.block_on(async {
            let end = tokio::time::Instant::now() + time_max;
            loop {
                match act().await {
                    Ok(done) => return Ok(done),
                    Err(error) if tokio::time::Instant::now() >= end => {
                        return Err(failed(what, error));
                    }
                    Err(_) => tokio::time::sleep(TRY_AGAIN).await,
                }
            }
        })
    }
}

async fn connect(config: &NatsConfig, side: Side<'_>) -> Result<Client, FabricError> {
    let options = options(&config.access)?;
    let options = match side {
        Side::Agent(id, incarnation) => options
            .name(format!("{CLIENT}/{}/{incarnation}", id.as_str()))
            .custom_inbox_prefix(inbox_of(id.as_str())),
        Side::Coordinator => {
            options.name("plimsoll-coordinator").custom_inbox_prefix(inbox_of("coordinator"))
        }
        Side::Up => options.name("plimsoll-up").custom_inbox_prefix(inbox_of("up")),
        Side::Join => options.name("plimsoll-join").custom_inbox_prefix(inbox_of("join")),
    };
    let connected = options.connect(config.servers.clone()).await;
    connected.map_err(|error| failed(format!("cannot connect to {}", shown(config)), error))
}

fn shown(config: &NatsConfig) -> String {
    let servers: Vec<String> =
        config.servers.iter().map(|each| format!("{}:{}", each.host(), each.port())).collect();
    format!("NATS at {}", servers.join(", "))
}

/// Tells whether a member of the fleet sent a message. The server also sends replies to any subject
/// that a request names, and they look like messages. They are ignored, and do not count towards
/// the limits of the agent whose subject it is.
fn is_ours(message: &Message) -> bool {
    let has = |name: &str| message.headers.as_ref().is_some_and(|all| all.get(name).is_some());
    has(OURS) && !has("Nats-Stream")
}

/// Sends what waits.
async fn send(client: Client, mut waiting: mpsc::Receiver<(String, Bytes)>) {
    while let Some((subject, message)) = waiting.recv().await {
        let mut headers = HeaderMap::new();
        headers.insert(OURS, "1");
        // What is lost is said again.
        let _ = client.publish_with_headers(subject, headers, message).await;
    }
    let _ = client.flush().await;
}

/// What a server tells of a connection that has ended.
#[derive(Deserialize)]
struct Ended {
    client: EndedClient,
}

#[derive(Deserialize)]
struct EndedClient {
    /// What it called itself.
    #[serde(default)]
    name: String,
    /// Who it was, as the server knows by its certificate.
    #[serde(default)]
    user: String,
}

/// Hears of connections that end.
async fn hear_ends(
    config: &NatsConfig,
    tls: Arc<rustls::ClientConfig>,
    deliver: impl Fn(Arrival) -> bool + Send + 'static,
) -> Result<(), FabricError> {
    let options = options(&Access::Fleet(tls))?.name("plimsoll-system");
    let connected = options.connect(config.servers.clone()).await;
    let client =
        connected.map_err(|error| failed(format!("cannot connect to {}", shown(config)), error))?;
    let heard = client.subscribe("$SYS.ACCOUNT.*.DISCONNECT").await;
    let mut heard =
        heard.map_err(|error| failed("cannot watch for ended connections".to_owned(), error))?;
    tokio::spawn(async move {
        // It lives as long as anybody hears.
        let _client = client;
        while let Some(message) = heard.next().await {
            let Ok(Ended { client }) = serde_json::from_slice(&message.payload) else { continue };
            let mut parts = client.name.split('/');
            let (Some(CLIENT), Some(id), Some(incarnation)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            // Anybody may call itself like another agent.
            if id != client.user {
                continue;
            }
            let (Ok(agent), Ok(incarnation)) = (AgentId::new(id), incarnation.parse()) else {
                continue;
            };
            if !deliver(Arrival::Disconnected { agent, incarnation }) {
                return;
            }
        }
    });
    Ok(())
}

impl Fabric for Nats {
    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        // Where too many wait it is dropped, as it may be.
        let _ = self.outgoing.try_send((subject_of(to), message.into()));
        Ok(())
    }

    fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError> {
        let make = |of: Space, takes: Takes| {
            let bucket = bucket_of(&of);
            self.keep_trying(format!("cannot make the object store {bucket}"), TRY_FOR, || {
                objects::make(&self.jetstream, &bucket, &takes)
            })
        };
        let what = "cannot ask for the room that there is".to_owned();
        let account = self.keep_trying(what, TRY_FOR, || self.jetstream.query_account())?;
        // Who was part of other runs has some of it, too.
        let agents_count = agents.len().max(account.streams.saturating_sub(1)).max(1) as u64;
        let limit = account.limits.max_storage.map(i64::unsigned_abs);
        let shared = limit.map(|room| room / SHARED_PART);
        make(Space::Shared, Takes::Anything { bytes: shared, max_age: SHARED_FOR })?;
        let room = limit.unwrap_or(ROOM_BYTES);
        let own = (room - room / SHARED_PART) / agents_count + room / FILES_PART;
        let pieces = (own / CHUNK_BYTES as u64).max(1);
        agents.iter().try_for_each(|(agent, word)| {
            make(Space::Of(agent.clone()), Takes::Below { word: word.clone(), pieces })
        })
    }

    fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError> {
        // What is sent again is needed from its beginning.
        let (content, bucket) = (Bytes::from(read_whole(name, content)?), bucket_of(of));
        self.keep_trying(format!("cannot hand {name} over"), TRY_FOR, || {
            objects::put(&self.jetstream, &bucket, name, content.clone())
        })
    }

    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
        let (mut taken, bucket) = (objects::Taken::default(), bucket_of(of));
        self.loops.block_on(async {
            let mut end = tokio::time::Instant::now() + TRY_FOR;
            loop {
                let before = taken.size;
                let took = objects::take(&self.jetstream, &bucket, kept, to, &mut taken).await;
                let Err(error) = took else { return Ok(taken.size) };
                let now = tokio::time::Instant::now();
                if taken.size > before {
                    end = now + TRY_FOR;
                }
                if now >= end || !matches!(error, TakeError::Passing(_)) {
                    return Err(failed(format!("cannot fetch {} of {of}", kept.name), error));
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
        })
    }

    fn remove(&self, of: &Space, path: &str) -> Result<(), FabricError> {
        let (what, bucket) = (format!("cannot clear what {of} has kept"), bucket_of(of));
        self.keep_trying(what, TRY_FOR, || async {
            let removed = match of {
                Space::Shared => objects::remove(&self.jetstream, &bucket, path).await,
                // It holds the record of one run, and anything else that its agent put there.
                Space::Of(_) => objects::clear(&self.jetstream, &bucket).await,
            };
            removed.map_err(|error| failed("the object store does not do it".to_owned(), error))
        })
    }
}

/// Hands what arrives to whoever takes inputs of another type.
pub fn forward<T: Send + 'static>(
    to: Sender<T>,
    as_input: impl Fn(Arrival) -> T + Clone + Send + 'static,
) -> impl Fn(Arrival) -> bool + Clone + Send + 'static {
    move |arrival| to.send(as_input(arrival)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nats_of_others_is_encrypted_where_no_connection_can_be_without_tls() {
        for (servers, ca_file, expected) in [
            (&["nats://a:4222"][..], None, false),
            (&["a:4222"], None, false),
            (&["tls://a:4222"], None, true),
            (&["tls://a:4222", "nats://b:4222"], None, false),
            (&["tls://a:4222", "tls://b:4222"], None, true),
            (&["nats://a:4222"], Some("ca.pem"), true),
        ] {
            let config = NatsConfig {
                servers: servers.iter().map(|server| server.parse().unwrap()).collect(),
                access: Access::Others { credentials: None, ca_file: ca_file.map(Into::into) },
                system: None,
            };
            assert_eq!(config.is_encrypted(), expected, "{servers:?} {ca_file:?}");
        }
    }
}
