//! Calls to the master: file ids, and where volumes are. One connection for all sessions of a
//! thread.

use std::cell::RefCell;
use std::sync::Arc;

use aws_lc_rs::hmac;
use bytes::{Bytes, BytesMut};
use plimsoll_driver::DriverError;
use plimsoll_http::grpc::{GrpcChannel, GrpcError, GrpcStream};
use plimsoll_model::ErrorClass;
use prost::Message as _;
use serde::Deserialize;

use crate::cluster::{Cluster, Local, ServerIndex, View};
use crate::messages::{AssignRequest, AssignResponse, Location, LookupRequest, LookupResponse};
use crate::{FileId, SeaweedConfig, ServerAddress, error};

const ASSIGN: &str = "/master_pb.Seaweed/Assign";
const STREAM_ASSIGN: &str = "/master_pb.Seaweed/StreamAssign";
const LOOKUP: &str = "/master_pb.Seaweed/LookupVolume";

/// The number of the field that says how large a file will be.
const EXPECTED_BYTES: u32 = 11;

/// A file id with where to write it.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    pub(crate) fid: FileId,
    /// How many ids before it were assigned with it: 0 for the first of them.
    pub(crate) before: u64,
    /// How many ids were assigned, this one and those after it.
    pub(crate) count: u64,
    /// The token that lets write it; empty where none is needed.
    pub(crate) token: String,
    pub(crate) server: ServerIndex,
}

/// The way of one thread to the leader.
pub(crate) struct Master {
    pub(crate) config: Arc<SeaweedConfig>,
    pub(crate) cluster: Arc<Cluster>,
    local: RefCell<Local>,
    channel: RefCell<Option<(ServerAddress, GrpcChannel)>>,
    /// Held by who connects, so that others wait for it instead of connecting too.
    connecting: tokio::sync::Mutex<()>,
    pub(crate) write_key: Option<hmac::Key>,
    pub(crate) read_key: Option<hmac::Key>,
}

impl Master {
    pub(crate) fn new(config: Arc<SeaweedConfig>, cluster: Arc<Cluster>) -> Self {
        let key =
            |key: &Option<Vec<u8>>| key.as_ref().map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
        Self {
            local: RefCell::new(Local::new(Arc::clone(&cluster))),
            channel: RefCell::default(),
            connecting: tokio::sync::Mutex::default(),
            write_key: key(&config.keys.write),
            read_key: key(&config.keys.read),
            config,
            cluster,
        }
    }

    /// Returns the cluster as it is now.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(self.local.borrow_mut().view())
    }

    /// Returns the connection to the leader, which is made where there is none.
    pub(crate) async fn channel(&self) -> Result<GrpcChannel, DriverError> {
        let leader = self.view().leader.clone();
        if let Some(channel) = self.open_channel(&leader) {
            return Ok(channel);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(channel) = self.open_channel(&leader) {
            return Ok(channel);
        }
        let opened = GrpcChannel::open(&leader.grpc(), &self.config.grpc_options(&leader)).await;
        let channel = opened.map_err(|error| error::of_call(&error))?;
        *self.channel.borrow_mut() = Some((leader, channel.clone()));
        Ok(channel)
    }

    fn open_channel(&self, leader: &ServerAddress) -> Option<GrpcChannel> {
        let channel = self.channel.borrow();
        let (of, channel) = channel.as_ref()?;
        (of == leader && !channel.is_broken()).then(|| channel.clone())
    }

    /// Returns the request for ids of files of this size, but for how many bytes each will have.
    pub(crate) fn assign_request(&self, collection: &str) -> Vec<u8> {
        let config = &self.config;
        let request = AssignRequest {
            count: u64::from(config.assign_count),
            replication: config.replication.clone(),
            collection: collection.to_owned(),
            ttl: config.ttl.clone(),
            data_center: config.data_center.clone(),
            rack: config.rack.clone(),
            disk_type: config.disk.clone(),
            expected_bytes: 0,
        };
        request.encode_to_vec()
    }

    /// Asks for file ids by a call. `request` is what [`assign_request`](Self::assign_request)
    /// made.
    pub(crate) async fn assign(&self, request: &[u8], size: u64) -> Result<Assigned, DriverError> {
        let channel = self.channel().await?;
        let answer = channel.call(ASSIGN, with_size(request, size)).await;
        self.assigned(answer)
    }

    /// Asks for file ids over `stream`, which is begun where there is none, and anew where the
    /// master has ended it in good order.
    pub(crate) async fn assign_on(
        &self,
        stream: &mut Option<GrpcStream>,
        request: &[u8],
        size: u64,
    ) -> Result<Assigned, DriverError> {
        let message = with_size(request, size);
        // What is broken, or dropped half-way, is not used again.
        if let Some(mut begun) = stream.take() {
            // Of a stream that has ended, the master's last word says more than this.
            let _ = begun.send(message.clone());
            let answer = begun.next().await.map_err(|error| error::of_call(&error))?;
            if let Some(answer) = answer {
                *stream = Some(begun);
                return self.assigned(Ok(answer));
            }
        }
        let begun = self.channel().await?.open_stream(STREAM_ASSIGN, message).await;
        let mut begun = begun.map_err(|error| error::of_call(&error))?;
        let answer = begun.next().await.map_err(|error| error::of_call(&error))?;
        let Some(answer) = answer else {
            let why = "the master ended the stream of file ids";
            return Err(DriverError::new(ErrorClass::Reset, why));
        };
        *stream = Some(begun);
        self.assigned(Ok(answer))
    }

    fn assigned(&self, answer: Result<Bytes, GrpcError>) -> Result<Assigned, DriverError> {
        let answer = answer.map_err(|error| error::of_call(&error))?;
        let answer = AssignResponse::decode(answer).map_err(|_| unreadable("an id"))?;
        if !answer.error.is_empty() {
            return Err(error::of_words(&answer.error));
        }
        let location = answer.location.unwrap_or_default();
        let assigned = self.place(&answer.fid, answer.count, answer.token, &location)?;
        // The news of a volume that was just made come seconds later.
        if self.view().servers_of(assigned.fid.volume).is_empty() {
            let mut all = answer.replicas;
            all.push(location);
            self.cluster.found(assigned.fid.volume, &all);
        }
        Ok(assigned)
    }

    /// Returns the path by which ids are asked for over HTTP.
    pub(crate) fn assign_path(&self, collection: Option<&str>, size: u64) -> String {
        let config = &self.config;
        let count = config.assign_count;
        let mut path = format!("/dir/assign?count={count}&dataSize={size}");
        config.push_placement(collection.unwrap_or(&config.collection), &mut path);
        path
    }

    /// Reads the answer to it.
    pub(crate) fn assigned_by_http(
        &self,
        body: &[u8],
        token: String,
    ) -> Result<Assigned, DriverError> {
        let answer: AssignedByHttp =
            serde_json::from_slice(body).map_err(|_| unreadable("an id"))?;
        match answer.error.is_empty() {
            true => {
                let location = Location { url: answer.url, ..Location::default() };
                self.place(&answer.fid, answer.count, token, &location)
            }
            false => Err(error::of_words(&answer.error)),
        }
    }

    /// Returns an id with the server that it is to be written to.
    fn place(
        &self,
        fid: &str,
        count: u64,
        token: String,
        location: &Location,
    ) -> Result<Assigned, DriverError> {
        let fid = fid.parse::<FileId>().map_err(|error| error.to_string());
        let known = self.view().server(&location.url);
        let server = known.or_else(|| self.cluster.learn(location));
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        match (fid, server) {
            (Ok(fid), Some(server)) if is_plain => {
                Ok(Assigned { fid, before: 0, count, token, server })
            }
            (Err(why), _) => {
                let why = format!("the master assigned an invalid file id: {why}");
                Err(DriverError::new(ErrorClass::Protocol, why))
            }
            _ => Err(unreadable("an id")),
        }
    }

    /// Returns the servers that have a volume, asking the master where it is not known.
    pub(crate) async fn servers_of(&self, volume: u32) -> Result<Arc<View>, DriverError> {
        let view = self.view();
        if !view.servers_of(volume).is_empty() {
            return Ok(view);
        }
        self.look_up(&[volume]).await?;
        let view = self.view();
        match view.servers_of(volume).is_empty() {
            true => Err(no_server(&view, volume)),
            false => Ok(view),
        }
    }

    /// Asks the master where volumes are; the view says it then.
    pub(crate) async fn look_up(&self, volumes: &[u32]) -> Result<(), DriverError> {
        let volumes_or_files = volumes.iter().map(ToString::to_string).collect();
        let request = LookupRequest { volumes_or_files, collection: String::new() };
        let channel = self.channel().await?;
        let answer = channel.call(LOOKUP, request.encode_to_vec().into()).await;
        let answer = answer.map_err(|error| error::of_call(&error))?;
        let answer = LookupResponse::decode(answer).map_err(|_| unreadable("a lookup"))?;
        for found in answer.found.iter().filter(|found| !found.locations.is_empty()) {
            let volume = found.volume_or_file.parse().map_err(|_| unreadable("a lookup"))?;
            self.cluster.found(volume, &found.locations);
        }
        Ok(())
    }
}

/// The answer of `/dir/assign`.
#[derive(Deserialize)]
struct AssignedByHttp {
    #[serde(default)]
    fid: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    error: String,
}

fn with_size(request: &[u8], size: u64) -> Bytes {
    let mut message = BytesMut::with_capacity(request.len() + 12);
    message.extend_from_slice(request);
    prost::encoding::uint64::encode(EXPECTED_BYTES, &size, &mut message);
    message.freeze()
}

/// Returns what it means that no server has a volume: its files are not there, unless it is known
/// to be somewhere and only out of reach.
pub(crate) fn no_server(view: &View, volume: u32) -> DriverError {
    if view.is_away(volume) {
        return away(volume);
    }
    if view.is_full() {
        let why = format!("the cluster has more volumes than are kept, and {volume} is not known");
        return DriverError::new(ErrorClass::Server, why);
    }
    let why = format!("no server has volume {volume}");
    DriverError::new(ErrorClass::NotFound, why)
}

/// Returns the error of a volume that is known to be somewhere out of reach.
pub(crate) fn away(volume: u32) -> DriverError {
    let why = format!("no server has volume {volume} now; one that had it is away");
    DriverError::new(ErrorClass::Server, why)
}

fn unreadable(what: &str) -> DriverError {
    let why = format!("the master's answer to the question for {what} cannot be understood");
    DriverError::new(ErrorClass::Protocol, why)
}
