//! A driver that does nothing, at once and well: what remains is the cost of our own engine and
//! recorder.

use plimsoll_model::{EndpointId, SharedClock};

use crate::{Completion, Driver, Operation, Session};

/// Succeeds without doing anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullDriver;

/// A session of [`NullDriver`].
pub struct NullSession {
    clock: SharedClock,
}

impl Driver for NullDriver {
    type Session = NullSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<NullSession> {
        (0..count).map(|_| NullSession { clock: clock.clone() }).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["null".to_owned()]
    }
}

impl Session for NullSession {
    async fn execute(&mut self, _: Option<&str>, operation: Operation<'_>) -> Completion {
        // Parts go to an upload by its name, and complete it by theirs.
        let server_name = match operation {
            Operation::CreateUpload { .. } | Operation::PutPart { .. } => Some("null".into()),
            _ => None,
        };
        let (bytes, objects_count) = match operation {
            Operation::Put { content, .. }
            | Operation::PutPart { content, .. }
            | Operation::Append { content, .. }
            | Operation::Post { content, .. } => (content.size(), 1),
            Operation::Get { sink, .. }
            | Operation::GetPart { sink, .. }
            | Operation::GetMember { sink, .. } => (sink.accept_unseen(), 1),
            Operation::List { sink, .. } | Operation::ListVersions { sink, .. } => {
                (0, u32::try_from(sink.accept_unseen()).unwrap_or(u32::MAX))
            }
            _ => (0, 1),
        };
        Completion {
            endpoint: EndpointId(0),
            first_byte: None,
            assigned: None,
            last_byte_sent: None,
            end: self.clock.now(),
            bytes,
            objects_count,
            object_size: None,
            server_name,
            is_unchecked: false,
            resent_count: 0,
            result: Ok(()),
        }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}
