//! The sockets of the console: who connects is served, with limits on how long and how many.
#![expect(clippy::disallowed_methods, reason = "each connection is a task of the server")]

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::api::{Peer, Site, router};
use crate::console::Console;
use crate::held::Held;
use crate::users::{Gate, Users};

/// Who has not said what they want after this is let go.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// No more connections are served at a time, and no more than a part of the files that the process
/// may open: workloads need the others. From one address half of them, so that others get an answer
/// whatever one of them does.
const CONNECTIONS_MAX: usize = 1_024;
const CONNECTIONS_PART: u64 = 4;
/// No more threads wait for files and the database.
const THREADS_MAX: usize = 64;
/// A head may have so many bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Where and how the console is served.
pub struct Serve {
    /// Where to listen; the first is the console's own.
    pub listen: Vec<SocketAddr>,
    /// Who may ask.
    pub users: Users,
    /// The certificate chain and the key, in PEM.
    pub tls: Option<(Vec<u8>, Vec<u8>)>,
    /// The name of this machine.
    pub host_name: Option<String>,
    /// The program's version.
    pub version: String,
}

/// Why the console cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The certificate or the key cannot be used.
    #[error("the certificate or its key cannot be used: {0}")]
    Tls(String),
    /// A thread or an event loop cannot be started.
    #[error("cannot start the server")]
    Start(#[source] io::Error),
}

/// The console as it is served. Dropped, it is no more.
pub struct Serving {
    addresses: Vec<SocketAddr>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Begins to serve a console.
    pub fn start(console: Arc<Console>, serve: Serve) -> Result<Self, ServeError> {
        let tls = serve.tls.as_ref().map(acceptor).transpose()?;
        let mut listeners = Vec::new();
        for address in &serve.listen {
            let bound = StdTcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            listeners.push(bound.map_err(|error| ServeError::Listen(*address, error))?);
        }
        let addresses = listeners.iter().map(StdTcpListener::local_addr);
        let addresses: io::Result<Vec<SocketAddr>> = addresses.collect();
        let gate = Gate::new(serve.users);
        let about = (serve.host_name, tls.is_some());
        let router = router(Arc::new(Site::new(console, gate, about, serve.version)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS_MAX)
            .build()
            .map_err(ServeError::Start)?;
        let (end, ended) = watch::channel(false);
        let thread = thread::Builder::new().name("console".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(serve_all(listeners, &router, tls, ended));
            // What still waits for a disk is not waited for.
            runtime.shutdown_background();
        });
        Ok(Self {
            addresses: addresses.map_err(ServeError::Start)?,
            end,
            thread: Some(thread.map_err(ServeError::Start)?),
        })
    }

    /// Returns where it is served.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.send_replace(true);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn acceptor((chain, key): &(Vec<u8>, Vec<u8>)) -> Result<TlsAcceptor, ServeError> {
    let wrong = |error: &dyn std::fmt::Display| ServeError::Tls(error.to_string());
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong(&error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve_all(
    listeners: Vec<StdTcpListener>,
    router: &Router,
    tls: Option<TlsAcceptor>,
    mut ended: watch::Receiver<bool>,
) {
    let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = CONNECTIONS_MAX.min((files_max / CONNECTIONS_PART) as usize);
    let (places, held) = (Arc::new(Semaphore::new(most)), Arc::default());
    for listener in listeners {
        let Ok(listener) = TcpListener::from_std(listener) else { continue };
        let limits = (Arc::clone(&places), Arc::clone(&held), most / 2);
        tokio::spawn(accept(listener, router.clone(), tls.clone(), limits));
    }
    // An error means that whoever would end it is gone.
    let _ = ended.wait_for(|is_over| *is_over).await;
}

/// Returns the address that limits count for a peer: one for this machine, and one for each IPv6
/// /64, as a host may use any address of these.
fn limited(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) if v4.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

async fn accept(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    (places, held, of_address_max): (Arc<Semaphore>, Arc<Held<IpAddr>>, usize),
) {
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, limited(peer.ip())),
            Err(_) => {
                // Such as for want of open files: others end meanwhile.
                let _ = timeout(Duration::from_millis(50), std::future::pending::<()>()).await;
                continue;
            }
        };
        let Some(hold) = held.take(peer, of_address_max) else { continue };
        let (router, tls) = (router.clone(), tls.clone());
        tokio::spawn(async move {
            serve_one(stream, Peer(peer), router, tls).await;
            drop((hold, place));
        });
    }
}

async fn serve_one(stream: TcpStream, peer: Peer, router: Router, tls: Option<TlsAcceptor>) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => converse(stream, peer, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEAD_TIME_MAX, tls.accept(stream)).await {
                converse(stream, peer, router).await;
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    server.max_buf_size(HEAD_BYTES_MAX);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    // Whoever goes away in the middle is gone.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
