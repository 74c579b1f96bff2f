//! Removing many files at once: a call of gRPC to each volume server that has some of them, since
//! servers do not pass these on to those with copies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plimsoll_driver::DriverError;
use plimsoll_http::grpc::GrpcChannel;
use plimsoll_model::ErrorClass;
use prost::Message as _;

use crate::cluster::ServerIndex;
use crate::messages::{BatchDeleteRequest, BatchDeleteResponse};
use crate::thread::Thread;
use crate::{FileId, error, master};

const BATCH_DELETE: &str = "/volume_server_pb.VolumeServer/BatchDelete";

/// What came of removing files.
pub(crate) struct Removed {
    /// How many are gone everywhere.
    pub(crate) count: u32,
    /// How many of them were there.
    pub(crate) there: u64,
    /// How many lie on volumes that no server has, of which it is not known that one had them.
    pub(crate) nowhere: u64,
    /// The first failure.
    pub(crate) result: Result<(), DriverError>,
}

impl Thread {
    /// Removes files with all their copies; what is not there counts as removed.
    pub(crate) async fn remove_all(&self, fids: &[FileId]) -> Removed {
        let mut by_server: BTreeMap<ServerIndex, Vec<usize>> = BTreeMap::new();
        let mut is_gone = vec![true; fids.len()];
        let mut was_there = vec![false; fids.len()];
        // Asked in any case: the news of a volume's servers do not come together, and a copy on one
        // that is not known yet would stay.
        let volumes: BTreeSet<u32> = fids.iter().map(|fid| fid.volume).collect();
        let volumes: Vec<u32> = volumes.into_iter().collect();
        if let Err(error) = self.master.look_up(&volumes).await {
            return Removed { count: 0, there: 0, nowhere: 0, result: Err(error) };
        }
        let (mut result, mut nowhere) = (Ok(()), 0);
        let view = self.master.view();
        for (place, fid) in fids.iter().enumerate() {
            for server in view.servers_of(fid.volume) {
                by_server.entry(*server).or_default().push(place);
            }
            let is_away = view.is_away(fid.volume);
            nowhere += u64::from(!is_away && view.servers_of(fid.volume).is_empty());
            if is_away {
                is_gone[place] = false;
                result = result.and(Err(master::no_server(&view, fid.volume)));
            }
        }
        for (server, places) in by_server {
            let states = (&mut is_gone[..], &mut was_there[..]);
            let of_server = self.remove_on(server, fids, &places, states).await;
            if let Err(error) = of_server {
                result = result.and(Err(error));
            }
        }
        let count = is_gone.iter().filter(|is_gone| **is_gone).count() as u32;
        let there = was_there.iter().filter(|was_there| **was_there).count() as u64;
        Removed { count, there, nowhere, result }
    }

    /// Removes those files that one server has.
    async fn remove_on(
        &self,
        server: ServerIndex,
        fids: &[FileId],
        places: &[usize],
        (is_gone, was_there): (&mut [bool], &mut [bool]),
    ) -> Result<(), DriverError> {
        let names: Vec<String> = places.iter().map(|place| fids[*place].to_string()).collect();
        let answer = self.call_batch(server, names.clone()).await;
        let mut failed = answer.as_ref().err().cloned();
        let results = answer.unwrap_or_default().results;
        let results: HashMap<&str, _> =
            results.iter().map(|result| (&*result.fid, result)).collect();
        for (place, name) in places.iter().zip(&names) {
            let of_file = results.get(&**name);
            let why = match of_file {
                // 304 and 404: it was not there.
                Some(result) if matches!(result.status, 202 | 304 | 404) => {
                    was_there[*place] |= result.status == 202;
                    continue;
                }
                Some(result) => {
                    let status = u16::try_from(result.status).unwrap_or_default();
                    error::of_refusal(status, &result.error)
                }
                None => {
                    let why = format!("the answer does not say what became of {name}");
                    DriverError::new(ErrorClass::Protocol, why)
                }
            };
            is_gone[*place] = false;
            failed.get_or_insert(why);
        }
        failed.map_or(Ok(()), Err)
    }

    async fn call_batch(
        &self,
        server: ServerIndex,
        fids: Vec<String>,
    ) -> Result<BatchDeleteResponse, DriverError> {
        let channel = self.volume_channel(server).await?;
        let request = BatchDeleteRequest { fids }.encode_to_vec();
        let answer = channel.call(BATCH_DELETE, request.into()).await;
        let answer = answer.map_err(|error| error::of_call(&error))?;
        BatchDeleteResponse::decode(answer).map_err(|_| {
            let why = "the volume server's answer to BatchDelete cannot be understood";
            DriverError::new(ErrorClass::Protocol, why)
        })
    }

    async fn volume_channel(&self, server: ServerIndex) -> Result<GrpcChannel, DriverError> {
        let open = self.volume_channels.borrow().get(&server).cloned();
        if let Some(channel) = open.filter(|channel| !channel.is_broken()) {
            return Ok(channel);
        }
        let address = self.master.view().servers[usize::from(server)].clone();
        let options = self.master.config.grpc_options(&address);
        let opened = GrpcChannel::open(&address.grpc(), &options).await;
        let channel = opened.map_err(|error| error::of_call(&error))?;
        self.volume_channels.borrow_mut().insert(server, channel.clone());
        Ok(channel)
    }
}
