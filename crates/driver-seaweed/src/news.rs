//! The thread that keeps what is known of a cluster up to date: it follows the leader, and takes
//! note of which server has which volume.

use std::sync::{Arc, Weak};
use std::time::Duration;

use plimsoll_http::grpc::GrpcChannel;
use prost::Message as _;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::messages::{KeepConnectedRequest, KeepConnectedResponse};
use crate::{SeaweedConfig, ServerAddress};

const KEEP_CONNECTED: &str = "/master_pb.Seaweed/KeepConnected";

/// The pause before the first new try to reach a master; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("seaweed-news".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = ended => {}
                    () = follow_all(&config, &cluster) => {}
                }
            });
        })?;
        Ok(Self { _ends: sender })
    }
}

/// Follows the leader, whoever it is, until the cluster is gone.
async fn follow_all(config: &SeaweedConfig, cluster: &Weak<Cluster>) {
    let mut next = cluster.upgrade().map(|cluster| cluster.leader());
    let (mut turn, mut pause) = (0, PAUSE_MIN);
    loop {
        let master = next.take().unwrap_or_else(|| {
            turn += 1;
            config.masters[turn % config.masters.len()].clone()
        });
        let ended = follow(config, cluster, &master).await;
        let Some(cluster) = cluster.upgrade() else { return };
        match ended {
            Ended::Leads(other) => {
                (next, pause) = (Some(other), PAUSE_MIN);
                continue;
            }
            Ended::Broke { had_news: true } => pause = PAUSE_MIN,
            Ended::Broke { had_news: false } => pause = (pause * 2).min(PAUSE_MAX),
        }
        drop(cluster);
        #[expect(clippy::disallowed_methods, reason = "a thread of its own, of no run's time")]
        tokio::time::sleep(pause).await;
    }
}

/// How following one master ended.
enum Ended {
    /// Another one leads.
    Leads(ServerAddress),
    Broke {
        had_news: bool,
    },
}

async fn follow(config: &SeaweedConfig, cluster: &Weak<Cluster>, master: &ServerAddress) -> Ended {
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
        return Ended::Broke { had_news };
    };
    let hello = hello.encode_to_vec().into();
    let Ok(mut stream) = channel.open_stream(KEEP_CONNECTED, hello).await else {
        return Ended::Broke { had_news };
    };
    while let Ok(Some(message)) = stream.next().await {
        let Ok(message) = KeepConnectedResponse::decode(message) else { break };
        let Some(volumes) = message.volumes else { continue };
        let leader = volumes.leader.parse::<ServerAddress>().ok();
        if let Some(other) = leader.filter(|leader| leader != master) {
            return Ended::Leads(other);
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
    Ended::Broke { had_news }
}
