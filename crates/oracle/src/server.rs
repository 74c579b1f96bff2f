//! The server: threads, sockets and the protocol stack around the backend.
//!
//! The first thread accepts and hands connections round the threads, so that each serves its share
//! of them (`SO_REUSEPORT` would deal by hash, and few connections by hash are rarely even).

#![expect(
    clippy::disallowed_methods,
    reason = "spawns its connections, waits after a failed accept"
)]

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::thread::{Builder as ThreadBuilder, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, S3Result, s3_error};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::backend::Backend;
use crate::behaviour::Behaviour;
use crate::digests::Tagging;
use crate::heads::{Answered, HEAD_TIME_MAX, LimitedHeads};
use crate::ledger::Ledger;
use crate::misbehave::{self, Misbehaviour, Socket};
use crate::script::Script;
use crate::store::Store;
use crate::upload;

/// Connections the system may hold for us before they are accepted.
const BACKLOG: u32 = 4096;

/// Accepted connections that may wait for their thread.
const HANDOVER_MAX: usize = 1024;

/// How long accepting rests after a failure, such as no more file descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How an oracle is set up.
#[derive(Clone)]
pub struct OracleConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The one access key id it knows.
    pub access_key: String,
    /// The secret of that key.
    pub secret_key: String,
    /// How much it holds: contents, each once however many copies share it, keys and 256 bytes an
    /// object.
    pub capacity_bytes: u64,
    /// How many threads serve; at least one.
    pub threads: usize,
    /// Whether requests without a signature are served too.
    pub anonymous: bool,
    /// The domain under which buckets are host names; other hosts are addressed by path.
    pub domain: Option<String>,
    /// Whether every ETag is the MD5 of its content, which costs 1.5 ms per MiB that is written.
    pub md5_etags: bool,
    /// Serves TLS with this identity instead of plain TCP.
    pub tls: Option<TlsIdentity>,
    /// How it misbehaves; without a script it does not.
    pub script: Option<Script>,
    /// What fixes the random choices of the script.
    pub seed: u64,
}

/// Who a TLS server says it is.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate, and those that lead to its authority, in PEM.
    pub cert_pem: String,
    /// The private key, in PEM.
    pub key_pem: String,
}

/// Why an oracle did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// It was asked to serve with no thread.
    #[error("an oracle needs at least one thread")]
    NoThreads,
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A thread or its event loop could not be started.
    #[error("cannot start a serving thread")]
    Thread(#[source] io::Error),
    /// The certificate or the key is no PEM.
    #[error("cannot read the TLS certificate or key")]
    TlsPem(#[source] pem::Error),
    /// The certificate and the key do not make an identity.
    #[error("cannot serve TLS with this certificate and key")]
    TlsIdentity(#[source] rustls::Error),
}

/// How much an oracle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleStats {
    /// Buckets.
    pub buckets_count: u64,
    /// Objects in all buckets.
    pub objects_count: u64,
    /// Bytes counted against the capacity: contents (those that copies share once), keys, 256 bytes
    /// an object, and uploads under way.
    pub held_bytes: u64,
}

/// A running store; it ends when dropped, and what it held is gone.
pub struct Oracle {
    addr: SocketAddr,
    store: Arc<Store>,
    server: Server,
    threads_count: usize,
    stop: Option<watch::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Oracle {
    /// Starts an oracle; it listens when this returns.
    pub fn start(config: OracleConfig) -> Result<Self, OracleError> {
        if config.threads == 0 {
            return Err(OracleError::NoThreads);
        }
        let tls = config.tls.as_ref().map(tls_acceptor).transpose()?;
        let (listen, threads_count) = (config.listen, config.threads);
        let behaviour = config.script.as_ref().map(|script| Behaviour::new(script, config.seed));
        let remembers = behaviour.as_ref().is_some_and(Behaviour::tells_lies);
        let script = behaviour.map(|behaviour| Arc::new(Misbehaviour::new(behaviour)));
        let store = Arc::new(Store::new(config.capacity_bytes, remembers));
        let service = service(config, Arc::clone(&store));
        let server = Server { service, tls, script };
        let (stop, threads) = (None, Vec::new());
        let mut oracle = Self { addr: listen, store, server, threads_count, stop, threads };
        oracle.open()?;
        Ok(oracle)
    }

    /// Listens where it did before and serves again, after [`close`](Self::close); it listens when
    /// this returns.
    pub fn open(&mut self) -> Result<(), OracleError> {
        let runtimes: Result<Vec<Runtime>, io::Error> =
            (0..self.threads_count).map(|_| event_loop()).collect();
        let runtimes = runtimes.map_err(OracleError::Thread)?;
        let addr = self.addr;
        let listening = {
            let _context = runtimes[0].enter();
            listen(addr).and_then(|listener| Ok((listener.local_addr()?, listener)))
        };
        let (addr, listener) = listening.map_err(|source| OracleError::Listen { addr, source })?;
        self.addr = addr;
        let (stop, stopped) = watch::channel(());
        self.stop = Some(stop);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            runtimes.iter().map(|_| mpsc::channel(HANDOVER_MAX)).unzip();
        runtimes[0].spawn(accept(listener, senders));
        for (index, (runtime, sockets)) in runtimes.into_iter().zip(receivers).enumerate() {
            runtime.spawn(serve(self.server.clone(), sockets));
            let mut stopped = stopped.clone();
            // The sender is dropped to stop; the tasks go with their runtime.
            let run = move || drop(runtime.block_on(stopped.changed()));
            let thread = ThreadBuilder::new().name(format!("oracle-{index}")).spawn(run);
            self.threads.push(thread.map_err(OracleError::Thread)?);
        }
        Ok(())
    }

    /// Goes away as a process that is killed does: closes every connection and listens no more.
    /// What it holds, its ledger and the time of its script stay.
    pub fn close(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ended = thread.join();
        }
    }

    /// Returns the address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns how much it holds now.
    pub fn stats(&self) -> OracleStats {
        let holding = self.store.holding();
        OracleStats {
            buckets_count: holding.buckets_count,
            objects_count: holding.objects_count,
            held_bytes: holding.bytes,
        }
    }

    /// Returns what the script has done so far; `None` where there is no script.
    pub fn ledger(&self) -> Option<Ledger> {
        self.server.script.as_ref().map(|script| script.ledger())
    }

    /// Makes the ledger keep the latency of every operation from now on; without a script there is
    /// no ledger.
    pub fn keep_latencies(&self) {
        if let Some(script) = &self.server.script {
            script.keep_latencies();
        }
    }

    /// Stops serving, closes every connection and waits for the threads to end.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl fmt::Debug for Oracle {
    /// Writes the address, and none of what is stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oracle").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a thread needs to serve a connection.
#[derive(Clone)]
struct Server {
    service: S3Service,
    tls: Option<TlsAcceptor>,
    script: Option<Arc<Misbehaviour>>,
}

/// The one pair of keys.
struct Keys {
    access_key: String,
    secret_key: SecretKey,
}

#[async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match access_key == self.access_key {
            true => Ok(self.secret_key.clone()),
            false => Err(s3_error!(InvalidAccessKeyId, "no such access key id is known here")),
        }
    }
}

/// Lets unsigned requests in; signed ones are still checked.
struct Anonymous;

#[async_trait]
impl S3Access for Anonymous {
    async fn check(&self, _: &mut S3AccessContext<'_>) -> S3Result<()> {
        Ok(())
    }
}

/// Buckets as host names under a domain, whatever the port.
struct Domain(String);

impl S3Host for Domain {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
        let bucket = name.strip_suffix(self.0.as_str()).and_then(|head| head.strip_suffix('.'));
        Ok(match bucket {
            Some(bucket) => VirtualHost::new(self.0.as_str()).with_bucket(bucket),
            None => VirtualHost::new(host),
        })
    }
}

fn service(config: OracleConfig, store: Arc<Store>) -> S3Service {
    let tagging = if config.md5_etags { Tagging::Md5 } else { Tagging::Crc64 };
    let mut builder = S3ServiceBuilder::new(Backend::new(store, tagging));
    let secret_key = SecretKey::from(config.secret_key);
    builder.set_auth(Keys { access_key: config.access_key, secret_key });
    if config.anonymous {
        builder.set_access(Anonymous);
    }
    if let Some(domain) = config.domain {
        builder.set_host(Domain(domain));
    }
    builder.build()
}

fn tls_acceptor(identity: &TlsIdentity) -> Result<TlsAcceptor, OracleError> {
    let certs: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(identity.cert_pem.as_bytes()).collect();
    let certs = certs.map_err(OracleError::TlsPem)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes());
    let key = key.map_err(OracleError::TlsPem)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certs, key))
        .map_err(OracleError::TlsIdentity)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn event_loop() -> io::Result<Runtime> {
    runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Hands connections to the threads in turn.
async fn accept(listener: TcpListener, threads: Vec<mpsc::Sender<StdTcpStream>>) {
    for thread in threads.iter().cycle() {
        let socket = loop {
            let accepted = listener.accept().await;
            match accepted.and_then(|(socket, _peer)| socket.into_std()) {
                Ok(socket) => break socket,
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        };
        if thread.send(socket).await.is_err() {
            // That thread has ended, and so will this one.
            return;
        }
    }
}

/// Serves the connections handed to this thread.
async fn serve(server: Server, mut sockets: mpsc::Receiver<StdTcpStream>) {
    while let Some(socket) = sockets.recv().await {
        let server = server.clone();
        // What breaks one connection is its client's to notice.
        tokio::spawn(async move {
            let _broken = server.converse(socket).await;
        });
    }
}

impl Server {
    async fn converse(self, socket: StdTcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let socket = TcpStream::from_std(socket)?;
        match self.tls.clone() {
            None => self.speak(socket).await,
            Some(tls) => {
                let shaken = timeout(HEAD_TIME_MAX, tls.accept(socket)).await;
                self.speak(shaken.map_err(io::Error::from)??).await
            }
        }
    }

    async fn speak(self, socket: impl Socket) -> io::Result<()> {
        match self.script {
            None => speak_http(socket, self.service).await,
            Some(script) => misbehave::converse(socket, self.service, script).await,
        }
    }
}

async fn speak_http(socket: impl Socket, service: S3Service) -> io::Result<()> {
    let (socket, answering) = LimitedHeads::new(socket, HEAD_TIME_MAX);
    let service = service_fn(move |request| answer(service.clone(), request, answering.request()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    connection.await.map_err(io::Error::other)
}

/// Answers a request, which is counted for as long as that takes.
async fn answer(
    service: S3Service,
    request: Request<Incoming>,
    _counted: Answered,
) -> Result<Response<Body>, HttpError> {
    upload::answer(service, request).await
}
