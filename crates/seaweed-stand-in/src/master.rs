//! A master: by HTTP and by gRPC.

use plimsoll_oracle::{BoxError, Serving, Timer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use s3s::Body;
use serde_json::{Value, json};

use crate::answer::{error, error_text, json_of, query_of};
use crate::cluster::{Answered, Cluster, Ticket};
use crate::fid::Fid;
use crate::grpc::{Call, Status};
use crate::ledger::Assigned;
use crate::messages::{
    AssignRequest, AssignResponse, KeepConnectedRequest, KeepConnectedResponse, Location,
    LookupVolumeRequest, LookupVolumeResponse, VolumeIdLocation, VolumeLocation,
};
use crate::state::{Address, Ask, Refusal, State, layout_of};

/// What it says it is.
const VERSION: &str = "plimsoll stand-in for SeaweedFS";

/// One master of a cluster.
#[derive(Clone)]
pub(crate) struct Master {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) number: usize,
}

type Query = BTreeMap<String, String>;

impl Serving for Master {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        let (head, body) = request.into_parts();
        // Nobody sends anything here that counts.
        drop(body);
        let query = query_of(&head);
        Ok(match head.uri.path() {
            "/dir/assign" => self.assign(&query).await?,
            "/dir/lookup" => self.lookup(&query),
            "/dir/status" => json_of(StatusCode::OK, &self.directory()),
            "/cluster/status" => json_of(StatusCode::OK, &self.leaders()),
            "/vol/grow" => self.grow(&query),
            "/col/delete" => self.drop_collection(&query),
            "/collection/info" => self.collection(&query),
            other => error(404, &format!("the stand-in knows no {other}")),
        })
    }

    fn error(status: StatusCode, code: &str) -> Response<String> {
        error_text(status.as_u16(), code)
    }
}

fn text<'a>(query: &'a Query, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// Returns what a query asks for.
fn ask_of(query: &Query) -> Ask {
    let owned = |name| text(query, name).to_owned();
    Ask {
        count: text(query, "count").parse().unwrap_or(1),
        collection: owned("collection"),
        replication: owned("replication"),
        ttl: owned("ttl"),
        disk: owned("disk"),
        data_center: owned("dataCenter"),
        rack: owned("rack"),
    }
}

fn with_token(mut response: Response<Body>, token: &str) -> Response<Body> {
    if !token.is_empty() {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let value = value.expect("a token is of plain letters");
        response.headers_mut().insert(AUTHORIZATION, value);
    }
    response
}

impl Master {
    /// Asks for ids, and waits until they are given; `None` where they never are.
    async fn assigned(
        &self,
        master: Option<usize>,
        ask: &Ask,
    ) -> std::io::Result<Result<Ticket, Refusal>> {
        let Answered { at, result } = self.cluster.assign(master, ask);
        let Some(result) = result else { return std::future::pending().await };
        let clock = self.cluster.misbehaviour.clock;
        if at > clock.now() {
            Timer::new(clock)?.until(at).await?;
        }
        Ok(result)
    }

    /// A master that does not lead asks the one that does.
    async fn assign(&self, query: &Query) -> std::io::Result<Response<Body>> {
        let Ticket { given, token, servers } = match self.assigned(None, &ask_of(query)).await? {
            Ok(ticket) => ticket,
            Err(refusal) => return Ok(refused(&refusal)),
        };
        let url = servers[0].url();
        let fid = given.fid.to_string();
        let body = json!({"fid": fid, "url": url, "publicUrl": url, "count": given.count});
        Ok(with_token(json_of(StatusCode::OK, &body), &token))
    }

    fn lookup(&self, query: &Query) -> Response<Body> {
        let file = query.get("fileId");
        let asked = file.map_or_else(|| text(query, "volumeId"), String::as_str);
        let volume = asked.split(',').next().unwrap_or_default();
        let mut state = self.cluster.state();
        state.counts.lookups += 1;
        let found = locations(&state, volume);
        let found = match found {
            Err(words) => {
                let body = json!({"volumeOrFileId": volume, "error": words});
                return json_of(StatusCode::NOT_FOUND, &body);
            }
            Ok(found) => found,
        };
        let of = |(address, center): &(Address, String)| {
            let url = address.url();
            json!({
                "url": url, "publicUrl": url, "dataCenter": center,
                "grpcPort": address.grpc_port,
            })
        };
        let locations: Vec<Value> = found.iter().map(of).collect();
        let body = json!({"volumeOrFileId": volume, "locations": locations});
        let token = match (file, text(query, "read")) {
            (None, _) => String::new(),
            (Some(file), "yes") => self.cluster.read_token(file),
            (Some(file), _) => self.cluster.write_token(file),
        };
        with_token(json_of(StatusCode::OK, &body), &token)
    }

    fn leaders(&self) -> Value {
        let state = self.cluster.state();
        let mut body = json!({});
        if state.leader == Some(self.number) {
            body["IsLeader"] = true.into();
        }
        if let Some(leader) = state.leader {
            body["Leader"] = state.masters[leader].whole().into();
        }
        let others = state.masters.iter().enumerate().filter(|(at, _)| *at != self.number);
        let peers: Vec<String> = others.map(|(_, address)| address.whole()).collect();
        if !peers.is_empty() {
            body["Peers"] = peers.into();
        }
        body
    }

    fn directory(&self) -> Value {
        let state = self.cluster.state();
        let mut centers: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
        for (at, server) in state.servers.iter().enumerate().filter(|(_, server)| server.is_known) {
            let of = state.volumes.iter().filter(|(_, volume)| volume.servers.contains(&at));
            let url = server.address.url();
            let node = json!({
                "Url": url, "PublicUrl": url, "Volumes": of.count(), "EcShards": 0,
                "Max": state.volumes_max,
            });
            let site = &state.sites[at];
            let racks = centers.entry(&site.data_center).or_default();
            racks.entry(&site.rack).or_default().push(node);
        }
        let rack = |(id, nodes): (&str, Vec<Value>)| json!({"Id": id, "DataNodes": nodes});
        let center = |(id, racks): (&str, BTreeMap<&str, Vec<Value>>)| {
            let racks: Vec<Value> = racks.into_iter().map(rack).collect();
            json!({"Id": id, "Racks": racks})
        };
        let centers: Vec<Value> = centers.into_iter().map(center).collect();
        // As SeaweedFS writes an empty list.
        let centers = if centers.is_empty() { Value::Null } else { centers.into() };
        let max = state.volumes_max * state.servers.iter().filter(|each| each.is_known).count();
        let topology = json!({"Max": max, "Free": state.room(), "DataCenters": centers});
        json!({"Topology": topology, "Version": VERSION})
    }

    fn grow(&self, query: &Query) -> Response<Body> {
        let Ok(count) = text(query, "count").parse::<usize>() else {
            let given = text(query, "count");
            return error(406, &format!("can not parse parameter count {given}"));
        };
        let ask = ask_of(query);
        let layout = match layout_of(&ask) {
            Ok(layout) => layout,
            Err(refusal) => return error(406, &refusal.words),
        };
        self.cluster.change(|state| {
            let (room, wanted) = (state.room(), count * layout.replication.copies());
            if room < wanted {
                let words = format!("only {room} volumes left, not enough for {wanted}");
                return error(406, &words);
            }
            let grown = state.grow(&layout, count, &ask) * layout.replication.copies();
            json_of(StatusCode::OK, &json!({"count": grown}))
        })
    }

    fn drop_collection(&self, query: &Query) -> Response<Body> {
        let collection = text(query, "collection");
        match self.cluster.change(|state| state.drop_collection(collection)) {
            true => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            false => error(400, &format!("collection {collection} does not exist")),
        }
    }

    fn collection(&self, query: &Query) -> Response<Body> {
        let collection = text(query, "collection");
        let state = self.cluster.state();
        if !state.volumes.values().any(|of| of.layout.collection == collection) {
            return error(400, &format!("collection {collection} does not exist"));
        }
        let files = state.files_of(collection);
        let used: usize = files.values().map(|(content, _)| content.len()).sum();
        let body = json!({
            "Collection": collection, "FileCount": files.len(), "UsedSize": used,
            "Version": VERSION, "VolumeCount": 1,
        });
        json_of(StatusCode::OK, &body)
    }

    /// Serves a call of gRPC.
    pub(crate) async fn call(self, mut call: Call) {
        match call.path.as_str() {
            "/master_pb.Seaweed/Assign" => match call.next::<AssignRequest>().await {
                Some(asked) => self.assign_by_call(call, asked).await,
                None => call.reset(),
            },
            "/master_pb.Seaweed/StreamAssign" => self.assign_by_stream(call).await,
            "/master_pb.Seaweed/LookupVolume" => match call.next().await {
                Some(asked) => self.lookup_by_call(call, &asked),
                None => call.reset(),
            },
            "/master_pb.Seaweed/KeepConnected" => {
                if call.next::<KeepConnectedRequest>().await.is_some() {
                    let ended = self.tell_news(&mut call).await;
                    call.end(ended);
                }
            }
            other => {
                let words = format!("unknown method {other}");
                call.end(Err(Status::new(Status::UNIMPLEMENTED, words)));
            }
        }
    }

    async fn assign_by_call(&self, mut call: Call, asked: AssignRequest) {
        match self.assigned(Some(self.number), &ask_by_call(asked)).await {
            Err(_) => call.reset(),
            Ok(Err(refusal)) => call.end(Err(status_of(&refusal))),
            Ok(Ok(ticket)) => {
                let sent = call.send(&self.response_of(&ticket));
                call.end(sent.map_err(|_| Status::new(Status::UNKNOWN, "")));
            }
        }
    }

    /// What passes by itself is told on the stream; anything else ends it.
    async fn assign_by_stream(&self, mut call: Call) {
        let mut left = self.cluster.stream_answers_max;
        while left != Some(0)
            && let Some(asked) = call.next::<AssignRequest>().await
        {
            let response = match self.assigned(Some(self.number), &ask_by_call(asked)).await {
                Err(_) => return call.reset(),
                Ok(Ok(ticket)) => self.response_of(&ticket),
                Ok(Err(refusal)) => {
                    let status = status_of(&refusal);
                    if status.code != Status::RESOURCE_EXHAUSTED {
                        return call.end(Err(status));
                    }
                    AssignResponse { error: refusal.words, ..AssignResponse::default() }
                }
            };
            if call.send(&response).is_err() {
                return;
            }
            left = left.map(|left| left - 1);
        }
        call.end(Ok(()));
    }

    fn response_of(&self, ticket: &Ticket) -> AssignResponse {
        let state = self.cluster.state();
        let location = |address: &Address| {
            let at = state.servers.iter().position(|each| each.address.url() == address.url());
            let center = at.map_or("", |at| &state.sites[at].data_center);
            location_of(*address, center)
        };
        AssignResponse {
            fid: ticket.given.fid.to_string(),
            count: ticket.given.count,
            error: String::new(),
            auth: ticket.token.clone(),
            replicas: ticket.servers[1..].iter().map(location).collect(),
            location: Some(location(&ticket.servers[0])),
        }
    }

    fn lookup_by_call(&self, mut call: Call, asked: &LookupVolumeRequest) {
        let mut state = self.cluster.state();
        let mut found = Vec::new();
        for id in &asked.volume_or_file_ids {
            state.counts.lookups += 1;
            let volume = id.split(',').next().unwrap_or_default();
            let mut entry =
                VolumeIdLocation { volume_or_file_id: volume.to_owned(), ..Default::default() };
            match locations(&state, volume) {
                Err(words) => entry.error = words,
                Ok(locations) => {
                    let of = |(address, center): &(Address, String)| location_of(*address, center);
                    entry.locations = locations.iter().map(of).collect();
                }
            }
            if Fid::of_path(id).is_some() && entry.error.is_empty() {
                // As the real one: a token for the volume, which no volume server takes.
                entry.auth = self.cluster.write_token(volume);
            }
            found.push(entry);
        }
        drop(state);
        let sent = call.send(&LookupVolumeResponse { volume_id_locations: found });
        call.end(sent.map_err(|_| Status::new(Status::UNKNOWN, "")));
    }

    /// Tells where volumes are, first all of it and then what changes, as long as this master
    /// leads.
    async fn tell_news(&self, call: &mut Call) -> Result<(), Status> {
        let mut changes = self.cluster.changes();
        let mut told: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        let gone = |_| Status::new(Status::UNKNOWN, "");
        loop {
            changes.mark_unchanged();
            let news = self.news(&mut told);
            for each in news.messages {
                let message = KeepConnectedResponse { volume_location: Some(each) };
                call.send(&message).map_err(gone)?;
            }
            if !news.is_leader {
                let words = "raft.Server: Not current leader";
                return Err(Status::new(Status::UNKNOWN, words));
            }
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Returns what is not told yet, and takes it for told.
    fn news(&self, told: &mut BTreeMap<usize, BTreeSet<u32>>) -> News {
        let state = self.cluster.state();
        let is_first = told.is_empty();
        let leader = state.leader.map(|leader| state.masters[leader].whole()).unwrap_or_default();
        let is_leader = state.leader == Some(self.number);
        let mut messages = Vec::new();
        if !is_leader && !leader.is_empty() {
            messages.push(VolumeLocation { leader, ..VolumeLocation::default() });
            return News { messages, is_leader };
        }
        for (at, server) in state.servers.iter().enumerate() {
            let of = state.volumes.iter().filter(|(_, of)| of.servers.contains(&at));
            let now: BTreeSet<u32> = of.map(|(id, _)| *id).filter(|_| server.is_known).collect();
            let before = told.insert(at, now.clone()).unwrap_or_default();
            if is_first && server.is_known || now != before {
                messages.push(VolumeLocation {
                    url: server.address.url(),
                    public_url: server.address.url(),
                    new_vids: now.difference(&before).copied().collect(),
                    deleted_vids: before.difference(&now).copied().collect(),
                    leader: if is_first { leader.clone() } else { String::new() },
                    data_center: state.sites[at].data_center.clone(),
                    grpc_port: u32::from(server.address.grpc_port),
                });
            }
        }
        if is_first && messages.is_empty() {
            messages.push(VolumeLocation { leader, ..VolumeLocation::default() });
        }
        News { messages, is_leader }
    }
}

/// What is to be told.
struct News {
    messages: Vec<VolumeLocation>,
    is_leader: bool,
}

fn ask_by_call(asked: AssignRequest) -> Ask {
    Ask {
        count: asked.count,
        collection: asked.collection,
        replication: asked.replication,
        ttl: asked.ttl,
        disk: asked.disk_type,
        data_center: asked.data_center,
        rack: asked.rack,
    }
}

fn location_of(address: Address, data_center: &str) -> Location {
    Location {
        url: address.url(),
        public_url: address.url(),
        grpc_port: u32::from(address.grpc_port),
        data_center: data_center.to_owned(),
    }
}

/// Returns the servers of a volume with their data centers, or why there are none.
fn locations(state: &State, volume: &str) -> Result<Vec<(Address, String)>, String> {
    let id: u32 = volume.parse().map_err(|_| format!("unknown volume id {volume}"))?;
    let servers = state.volumes.get(&id).map_or(&[][..], |of| &of.servers);
    let known = servers.iter().filter(|server| state.servers[**server].is_known);
    let of = |at: &usize| (state.servers[*at].address, state.sites[*at].data_center.clone());
    let found: Vec<_> = known.map(of).collect();
    if found.is_empty() { Err(format!("volume id {volume} not found")) } else { Ok(found) }
}

/// Returns a refusal as a status of gRPC.
fn status_of(refusal: &Refusal) -> Status {
    let code = match refusal.ended {
        Assigned::Growing | Assigned::NoServers => Status::RESOURCE_EXHAUSTED,
        _ => Status::UNKNOWN,
    };
    Status::new(code, refusal.words.clone())
}

/// Returns a refusal as an answer of HTTP.
fn refused(refusal: &Refusal) -> Response<Body> {
    let status = match refusal.ended {
        Assigned::Growing | Assigned::NoServers => 503,
        Assigned::Full | Assigned::Refused => 406,
        _ => 500,
    };
    let mut response = error(status, &refusal.words);
    if status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
