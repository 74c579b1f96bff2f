//! A volume server by gRPC: many files are removed at once, of this server only.

use std::io;

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::{Act, Lie, Request as Op, Timer, Verdict};

use crate::fid::Fid;
use crate::grpc::{Call, Status};
use crate::messages::{BatchDeleteRequest, BatchDeleteResponse, DeleteResult};
use crate::state::State;
use crate::volume::VolumeServer;

impl VolumeServer {
    /// Serves a call of gRPC.
    pub(crate) async fn call(self, mut call: Call) {
        if call.path != "/volume_server_pb.VolumeServer/BatchDelete" {
            let words = format!("unknown method {}", call.path);
            return call.end(Err(Status::new(Status::UNIMPLEMENTED, words)));
        }
        let Some(asked) = call.next::<BatchDeleteRequest>().await else { return call.reset() };
        let (verdict, response) = self.remove_all(&asked);
        if verdict.act == Act::Silence {
            return std::future::pending().await;
        }
        if verdict.act == Act::ResetBefore || self.wait(&verdict).await.is_err() {
            return call.reset();
        }
        if let Some(status) = status_of(verdict.act) {
            return call.end(Err(status));
        }
        let sent = call.send(&response);
        call.end(sent.map_err(|_| Status::new(Status::UNKNOWN, "")));
    }

    async fn wait(&self, verdict: &Verdict) -> io::Result<()> {
        Timer::new(self.cluster.misbehaviour.clock)?.until(verdict.done).await
    }

    /// Removes what is to be removed, as the script wants it.
    fn remove_all(&self, asked: &BatchDeleteRequest) -> (Verdict, BatchDeleteResponse) {
        let mut state = self.cluster.state();
        let ids = &asked.file_ids;
        let judged: Vec<(Option<Fid>, DeleteResult)> =
            ids.iter().map(|id| self.judge(&state, id, asked.skip_cookie_check)).collect();
        let is_fine = |result: &DeleteResult| matches!(result.status, 202 | 304 | 404);
        let honest = match judged.iter().all(|(_, result)| is_fine(result)) {
            true => ErrorClass::Ok,
            false => ErrorClass::Client,
        };
        let is_there = judged.iter().any(|(_, result)| result.status == 202);
        let key = ids.first().map_or("", String::as_str);
        let op = Op { kind: OpKind::Delete, key, content_bytes: 0, honest };
        let verdict = self.cluster.misbehaviour.decide(&op, &mut |lie, _| {
            (lie == Lie::LostWrite && is_there).then_some(ErrorClass::Ok)
        });
        if verdict.act == Act::Serve {
            let gone = judged.iter().filter(|(_, result)| result.status == 202);
            for fid in gone.filter_map(|(fid, _)| *fid) {
                state.remove(fid, &[self.number]);
            }
        }
        let results = judged.into_iter().map(|(_, result)| result).collect();
        (verdict, BatchDeleteResponse { results })
    }

    /// Returns what becomes of one file.
    fn judge(&self, state: &State, id: &str, skips_cookie: bool) -> (Option<Fid>, DeleteResult) {
        let result = |status, error: String, size| DeleteResult {
            file_id: id.to_owned(),
            status,
            error,
            size,
        };
        let Some(fid) = Fid::of_path(id) else {
            return (None, result(404, "Wrong fid format.".to_owned(), 0));
        };
        let volume = state.volumes.get(&fid.volume);
        if volume.is_none_or(|volume| !volume.servers.contains(&self.number)) {
            return (None, result(404, format!("volume {} not found", fid.volume), 0));
        }
        match state.file(self.number, (fid.volume, fid.key)) {
            None => (None, result(404, "not found".to_owned(), 0)),
            Some(file) if file.cookie != fid.cookie && !skips_cookie => {
                (None, result(400, "File Random Cookie does not match.".to_owned(), 0))
            }
            Some(file) => (Some(fid), result(202, String::new(), file.needle_size() as u32)),
        }
    }
}

/// Returns the status of gRPC that says what an act says by HTTP.
fn status_of(act: Act) -> Option<Status> {
    let code = match (act, act.fault_class()) {
        (Act::Serve | Act::Lie(_), _) => return None,
        (_, ErrorClass::NotFound) => Status::NOT_FOUND,
        (_, ErrorClass::Denied) => Status::PERMISSION_DENIED,
        (_, ErrorClass::Throttled) => Status::RESOURCE_EXHAUSTED,
        (_, ErrorClass::Precondition) => Status::FAILED_PRECONDITION,
        (_, ErrorClass::Client) => Status::INVALID_ARGUMENT,
        _ => Status::UNKNOWN,
    };
    Some(Status::new(code, "no volume: the script says so"))
}
