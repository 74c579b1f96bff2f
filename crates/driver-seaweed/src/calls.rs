//! Calls of HTTP to masters, outside of what is measured: who leads, what is there, growth, the
//! removal of a collection.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_driver::DriverError;
use plimsoll_http::{Body, Client, Options, Request, ResponseHead, ResponseSink};
use plimsoll_model::{ErrorClass, SharedClock};
use serde::Deserialize;

use crate::topology::Topology;
use crate::{SeaweedConfig, ServerAddress, error};

/// How long a master may take without moving a byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an answer may take in all.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A cluster's whole description may be long.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// An answer.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the server says that it is SeaweedFS.
    is_named: bool,
}

impl Said {
    /// Returns the meaning of an answer that is none of success.
    pub(crate) fn refusal(&self) -> DriverError {
        error::of_answer(self.status, &self.body, self.is_named)
    }
}

impl ResponseSink for Said {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        self.is_named = error::is_named(head);
        self.body.clear();
    }

    fn body(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(ANSWER_BYTES_MAX - self.body.len());
        self.body.extend_from_slice(&bytes[..kept]);
    }
}

/// Asks one server `path` with its query, whatever comes of it.
pub(crate) async fn ask(
    config: &SeaweedConfig,
    clock: &SharedClock,
    server: &ServerAddress,
    path: &str,
) -> Result<Said, DriverError> {
    let options = Options {
        connect_timeout: config.connect_timeout,
        tls: config.masters_tls(),
        stall_timeout: Some(STALL_TIMEOUT),
        allowed: config.allowed.clone(),
        ..Options::default()
    };
    let host = server.http.authority(config.masters_tls().is_some());
    let mut client = Client::new(Rc::new([server.http.clone()]), Rc::new(options), clock.clone());
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
    let request = Request { head: head.as_bytes(), method_is_head: false, body: Body::Empty };
    let mut said = Said::default();
    // One that answers without end does not stall.
    let outcome = tokio::time::timeout(ANSWER_TIME_MAX, client.exchange(0, request, &mut said));
    match outcome.await {
        Ok(Ok(_)) => Ok(said),
        Ok(Err(failed)) => Err(error::of_exchange(&failed)),
        Err(_) => {
            let why = format!("{server} has not ended its answer in {ANSWER_TIME_MAX:?}");
            Err(DriverError::new(ErrorClass::Timeout, why))
        }
    }
}

/// The same, where an answer of success must hold a document of that kind.
pub(crate) async fn read<T: for<'de> Deserialize<'de>>(
    config: &SeaweedConfig,
    clock: &SharedClock,
    server: &ServerAddress,
    path: &str,
) -> Result<T, DriverError> {
    let said = ask(config, clock, server, path).await?;
    if said.status != 200 {
        return Err(said.refusal());
    }
    serde_json::from_slice(&said.body).map_err(|_| {
        let what = path.split('?').next().unwrap_or(path);
        let why = format!("the answer of {server} to {what} cannot be understood");
        DriverError::with_status(ErrorClass::Protocol, said.status, why)
    })
}

/// What a master knows of who leads.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ClusterStatus {
    #[serde(default)]
    is_leader: bool,
    #[serde(default)]
    leader: String,
}

/// What is there.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DirStatus {
    /// The version of the program.
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) topology: Topology,
}

/// Returns the leader of the masters: the first that answers knows it.
pub(crate) async fn find_leader(
    config: &SeaweedConfig,
    clock: &SharedClock,
) -> Result<ServerAddress, DriverError> {
    let mut first: Option<DriverError> = None;
    for master in &config.masters {
        match read::<ClusterStatus>(config, clock, master, "/cluster/status").await {
            // It names its port of gRPC too.
            Ok(status) => match status.leader.parse() {
                Ok(leader) => return Ok(leader),
                Err(_) if status.is_leader => return Ok(master.clone()),
                Err(_) => {
                    let why = format!("the masters have no leader, says {master}");
                    first.get_or_insert(DriverError::new(ErrorClass::Server, why));
                }
            },
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.expect("there is at least one master"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_in_all_racks() {
        let text = r#"{"Version":"4.48","Topology":{"Max":8,"DataCenters":[{"Id":"d1","Racks":[
            {"Id":"r1","DataNodes":[{"Url":"a:8080","Volumes":7},{"Url":"b:8080"}]},
            {"Id":"r2","DataNodes":null}]},{"Id":"d2","Racks":null},
            {"Racks":[{"DataNodes":[{"Url":"c:8080"}]}]}]}}"#;
        let status: DirStatus = serde_json::from_str(text).unwrap();
        assert_eq!(status.topology.servers(), ["a:8080", "b:8080", "c:8080"]);
        assert_eq!(status.version, "4.48");
        let empty: DirStatus =
            serde_json::from_str(r#"{"Topology":{"DataCenters":null}}"#).unwrap();
        assert_eq!(empty.topology.servers(), [""; 0]);
    }
}
