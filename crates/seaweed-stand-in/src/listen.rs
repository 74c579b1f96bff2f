//! The two ports of a server, which can be away for a while and come back.

use plimsoll_oracle::ACCEPT_PAUSE;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};

use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::state::Address;

/// Connections the system may hold for us before they are accepted.
const BACKLOG: u32 = 1024;

/// Two ports that are ours also while nobody listens on them.
pub(crate) struct Ports {
    pub(crate) address: Address,
    /// Bound and not listening, so that the system gives the ports to nobody else.
    _held: [TcpSocket; 2],
}

impl Ports {
    /// Takes two free ports.
    pub(crate) fn take(ip: IpAddr) -> io::Result<Self> {
        let (http, http_port) = bind(SocketAddr::new(ip, 0))?;
        let (grpc, grpc_port) = bind(SocketAddr::new(ip, 0))?;
        Ok(Self { address: Address { ip, http_port, grpc_port }, _held: [http, grpc] })
    }
}

fn bind(at: SocketAddr) -> io::Result<(TcpSocket, u16)> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Two sockets of ours may have a port as long as only one of them listens.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

fn listen(ip: IpAddr, port: u16) -> io::Result<TcpListener> {
    bind(SocketAddr::new(ip, port))?.0.listen(BACKLOG)
}

/// Whether a server is to be there, and whether it is.
#[derive(Clone)]
pub(crate) struct Presence {
    wanted: Arc<watch::Sender<bool>>,
    reached: Arc<(Mutex<Reached>, Condvar)>,
}

/// How it is with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reached {
    #[default]
    Away,
    Here,
    /// It could not listen.
    Failed(io::ErrorKind),
}

impl Presence {
    /// Returns that of a server which is to be there and is not yet.
    pub(crate) fn new() -> Self {
        Self { wanted: Arc::new(watch::Sender::new(true)), reached: Arc::default() }
    }

    /// Wants it to be there, or not to be.
    pub(crate) fn want(&self, is_here: bool) {
        self.wanted.send_replace(is_here);
    }

    /// Waits until it is so. Not for the thread that serves.
    pub(crate) fn wait(&self, is_here: bool) -> io::Result<()> {
        let wanted = if is_here { Reached::Here } else { Reached::Away };
        let (state, changed) = &*self.reached;
        let differs =
            |reached: &mut Reached| *reached != wanted && !matches!(reached, Reached::Failed(_));
        let state = state.lock().expect("nobody panics while holding it");
        let state = changed.wait_while(state, differs).expect("nobody panics while holding it");
        match *state {
            Reached::Failed(kind) => Err(kind.into()),
            Reached::Away | Reached::Here => Ok(()),
        }
    }

    fn reach(&self, reached: Reached) {
        let (state, changed) = &*self.reached;
        *state.lock().expect("nobody panics while holding it") = reached;
        changed.notify_all();
    }
}

/// What is spoken on a connection.
pub(crate) type Speak = Arc<dyn Fn(TcpStream) -> BoxFuture<'static, io::Result<()>> + Send + Sync>;

/// Serves both ports of a server while it is to be there: HTTP, and gRPC.
pub(crate) async fn attend(ports: Ports, presence: Presence, speak: [Speak; 2]) {
    if let Err(error) = listen_and_leave(ports, &presence, speak).await {
        presence.reach(Reached::Failed(error.kind()));
    }
}

async fn listen_and_leave(
    ports: Ports,
    presence: &Presence,
    [http, grpc]: [Speak; 2],
) -> io::Result<()> {
    let mut wanted = presence.wanted.subscribe();
    let Address { ip, http_port, grpc_port } = ports.address;
    loop {
        if wanted.wait_for(|is_wanted| *is_wanted).await.is_err() {
            return Ok(());
        }
        let listeners = (listen(ip, http_port)?, listen(ip, grpc_port)?);
        let mut conversations = JoinSet::new();
        presence.reach(Reached::Here);
        loop {
            let (socket, speak) = tokio::select! {
                is_gone = wanted.wait_for(|is_wanted| !is_wanted) => match is_gone {
                    Ok(_) => break,
                    Err(_) => return Ok(()),
                },
                // What broke a connection is its client's to notice.
                Some(_) = conversations.join_next() => continue,
                accepted = listeners.0.accept() => (accepted, &http),
                accepted = listeners.1.accept() => (accepted, &grpc),
            };
            let Ok((socket, _peer)) = socket else {
                // Most likely for want of file descriptors; a loop without a pause takes a core.
                let _rested = timeout(ACCEPT_PAUSE, pending::<()>()).await;
                continue;
            };
            let _plain = socket.set_nodelay(true);
            conversations.spawn(speak(socket));
        }
        drop(listeners);
        conversations.shutdown().await;
        presence.reach(Reached::Away);
    }
}
