//! The thread that keeps what is known of a cluster up to date: it follows the leader, and takes
//! note of which server has which volume.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use plimsoll_http::grpc::{GrpcChannel, GrpcStream};
use prost::Message as _;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::messages::{KeepConnectedRequest, KeepConnectedResponse};
use crate::{SeaweedConfig, ServerAddress};

const KEEP_CONNECTED: &str = "/master_pb.Seaweed/KeepConnected";

/// The pause before the first new try to reach a master; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long a master may be silent.
#[derive(Clone, Copy)]
struct Patience {
    /// Before it is asked for a sign of life.
    quiet: Duration,
    /// Before it answers that, or a call.
    answer: Duration,
}

/// Masters end the connection of a client that pings more than once in 60 s (`NewGrpcServer` in
/// SeaweedFS's `weed/pb/grpc_client_server.go`), and wait 20 s for the answers to their own pings.
const PATIENCE: Patience =
    Patience { quiet: Duration::from_secs(65), answer: Duration::from_secs(20) };

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(crate) struct News {
    _ends: oneshot::Sender<()>,
}

impl News {
    /// Begins to follow the news of a cluster.
    pub(crate) fn follow(
        config: Arc<SeaweedConfig>,
        cluster: &Arc<Cluster>,
    ) -> std::io::Result<Self> {
        let (sender, ended) = oneshot::channel();
        let cluster = Arc::downgrade(cluster);
        // A runtime must not be dropped within another, which would happen here without a thread.
        let (give, given) = std::sync::mpsc::channel::<Runtime>();
        std::thread::Builder::new().name("seaweed-news".to_owned()).spawn(move || {
            let Ok(runtime) = given.recv() else { return };
            runtime.block_on(async {
                tokio::select! {
                    _ = ended => {}
                    () = follow_all(&config, &cluster) => {}
                }
            });
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        give.send(runtime).expect("the thread waits for it");
        Ok(Self { _ends: sender })
    }
}

/// Follows the leader, whoever it is, until the cluster is gone.
async fn follow_all(config: &SeaweedConfig, cluster: &Weak<Cluster>) {
    let mut course = Course::beginning_at(cluster.upgrade().map(|cluster| cluster.leader()));
    loop {
        let master = course.master(&config.masters);
        let ended = follow(config, cluster, &master, PATIENCE).await;
        if cluster.strong_count() == 0 {
            return;
        }
        let pause = course.pause(ended);
        #[expect(clippy::disallowed_methods, reason = "a thread of its own, of no run's time")]
        tokio::time::sleep(pause).await;
    }
}

/// Which master is followed next, and how long after the one before.
struct Course {
    /// The one that another has named as the leader.
    next: Option<ServerAddress>,
    /// Whether the one that is followed was named by the one before.
    is_named: bool,
    turn: usize,
    pause: Duration,
}

impl Course {
    fn beginning_at(next: Option<ServerAddress>) -> Self {
        Self { next, is_named: false, turn: 0, pause: PAUSE_MIN }
    }

    fn master(&mut self, masters: &[ServerAddress]) -> ServerAddress {
        self.next.take().unwrap_or_else(|| {
            self.turn += 1;
            masters[self.turn % masters.len()].clone()
        })
    }

    /// Returns how long to wait before the next. Who names a leader is believed at once, unless it
    /// was itself named so: two that name each other would be asked without a pause.
    fn pause(&mut self, ended: Ended) -> Duration {
        let Ended { leader, had_news } = ended;
        self.pause = if had_news { PAUSE_MIN } else { (self.pause * 2).min(PAUSE_MAX) };
        let was_named = std::mem::replace(&mut self.is_named, leader.is_some());
        self.next = leader;
        if self.is_named && !was_named { Duration::ZERO } else { self.pause }
    }
}

/// How following one master ended.
#[derive(Debug)]
struct Ended {
    /// The one that leads, if it said that another one does.
    leader: Option<ServerAddress>,
    had_news: bool,
}

async fn follow(
    config: &SeaweedConfig,
    cluster: &Weak<Cluster>,
    master: &ServerAddress,
    patience: Patience,
) -> Ended {
    let options = config.grpc_options(master);
    let mut had_news = false;
    let hello = KeepConnectedRequest {
        client_type: "client".to_owned(),
        client_address: "plimsoll".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        data_center: config.data_center.clone(),
        rack: config.rack.clone(),
    };
    let Ok(channel) = GrpcChannel::open(&master.grpc(), &options).await else {
        return Ended { leader: None, had_news };
    };
    let hello = hello.encode_to_vec().into();
    let begun = timeout(patience.answer, channel.open_stream(KEEP_CONNECTED, hello)).await;
    let Ok(Ok(mut stream)) = begun else { return Ended { leader: None, had_news } };
    while let Some(message) = next(&channel, &mut stream, patience).await {
        let Ok(message) = KeepConnectedResponse::decode(message) else { break };
        let Some(volumes) = message.volumes else { continue };
        let leader = volumes.leader.parse::<ServerAddress>().ok();
        if let Some(other) = leader.filter(|leader| leader != master) {
            return Ended { leader: Some(other), had_news };
        }
        let Some(cluster) = cluster.upgrade() else { break };
        if !had_news {
            cluster.begin_news(master.clone());
            had_news = true;
        }
        if !volumes.url.is_empty() {
            cluster.apply(&volumes);
        }
    }
    Ended { leader: None, had_news }
}

/// Returns the next message of a master. One whose host is gone ends no connection: it is missed by
/// its answer to a ping.
async fn next(channel: &GrpcChannel, stream: &mut GrpcStream, patience: Patience) -> Option<Bytes> {
    loop {
        match timeout(patience.quiet, stream.next()).await {
            Ok(message) => return message.ok().flatten(),
            Err(_) => timeout(patience.answer, channel.ping()).await.ok()?.ok()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// The first frames of a server whose call has begun: SETTINGS, then HEADERS of stream 1 with
    /// `:status: 200` (RFC 7541, appendix A, entry 8).
    const BEGUN: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];

    #[test]
    fn masters_that_name_each_other_are_asked_ever_more_slowly() {
        let [a, b]: [ServerAddress; 2] = ["a:9333", "b:9333"].map(|of| of.parse().unwrap());
        let masters = [a.clone(), b.clone()];
        let mut course = Course::beginning_at(Some(b.clone()));
        let leads = |other: &ServerAddress| Ended { leader: Some(other.clone()), had_news: false };
        assert_eq!(course.master(&masters), b);
        assert_eq!(course.pause(leads(&a)), Duration::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..4 {
            assert_eq!(course.master(&masters), a);
            pauses.push(course.pause(leads(&b)));
            assert_eq!(course.master(&masters), b);
            pauses.push(course.pause(leads(&a)));
        }
        assert!(pauses[0] > Duration::ZERO && pauses.is_sorted(), "{pauses:?}");
        assert_eq!(pauses[7], PAUSE_MAX);
        // Also where each has news.
        assert_eq!(course.master(&masters), a);
        assert_eq!(course.pause(Ended { had_news: true, ..leads(&b) }), PAUSE_MIN);
        // One that led, and whose connection broke, names nobody.
        assert_eq!(course.master(&masters), b);
        assert_eq!(course.pause(Ended { leader: None, had_news: true }), PAUSE_MIN);
        assert_eq!(course.master(&masters), b);
        assert_eq!(course.pause(leads(&a)), Duration::ZERO);
    }

    #[test]
    fn a_master_that_falls_silent_is_left() {
        for said in [&b""[..], BEGUN] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let master: ServerAddress = format!("127.0.0.1:1.{port}").parse().unwrap();
            // It stays connected and reads nothing, as a host does that has lost its power.
            let server = std::thread::spawn(move || {
                let mut connection = listener.accept().unwrap().0;
                connection.write_all(said).unwrap();
                connection
            });
            let config = SeaweedConfig::new(vec![master.clone()], "c");
            let moment = Duration::from_millis;
            let patience = Patience { quiet: moment(1), answer: moment(200) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let ended = runtime.unwrap().block_on(async {
                let nothing = Weak::new();
                let followed = follow(&config, &nothing, &master, patience);
                timeout(Duration::from_secs(30), followed).await
            });
            assert!(matches!(ended, Ok(Ended { leader: None, had_news: false })), "{ended:?}");
            drop(server.join().unwrap());
        }
    }
}
