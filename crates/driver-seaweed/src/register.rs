//! Files under names of one's own: the first write under a name is given a file id, and all that
//! follow write over that file. What a consistency check needs, which has few keys and many writes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_driver::{Completion, Driver, DriverError, Operation, Session, Settled};
use plimsoll_model::{EndpointId, ErrorClass, SharedClock};

use crate::session::SeaweedSession;
use crate::{FileId, SeaweedDriver};

type Ids = Arc<Mutex<HashMap<String, FileId>>>;

/// Makes sessions that know files by names of one's own.
#[derive(Clone, Debug)]
pub struct SeaweedRegisters {
    driver: SeaweedDriver,
    ids: Ids,
}

impl SeaweedRegisters {
    /// Returns the driver with names that no file has yet.
    pub fn new(driver: SeaweedDriver) -> Self {
        Self { driver, ids: Arc::default() }
    }
}

impl Driver for SeaweedRegisters {
    type Session = RegisterSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<RegisterSession> {
        let sessions = self.driver.open_sessions(clock, count).into_iter();
        sessions.map(|session| RegisterSession { session, ids: Arc::clone(&self.ids) }).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        self.driver.endpoints()
    }
}

/// A session of [`SeaweedRegisters`].
pub struct RegisterSession {
    session: SeaweedSession,
    ids: Ids,
}

impl RegisterSession {
    fn id(&self, key: &str) -> Option<FileId> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Returns the file under a name, which is given an id where it has none.
    async fn id_for(&mut self, key: &str) -> Result<FileId, DriverError> {
        if let Some(id) = self.id(key) {
            return Ok(id);
        }
        let assigned = self.session.reserve_id().await?;
        // Of several who asked at once, all take the first one's.
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(*ids.entry(key.to_owned()).or_insert(assigned))
    }

    /// Returns the end of an operation on what was never written.
    fn absent(&self) -> Completion {
        let error = DriverError::new(ErrorClass::NotFound, "nothing was written under that name");
        self.session.ended(Err(error))
    }
}

impl Session for RegisterSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let named = match &operation {
            Operation::Get { key, .. } | Operation::Stat { key, .. } => self.id(key),
            Operation::Put { key, .. } => match self.id_for(key).await {
                Ok(id) => Some(id),
                Err(error) => return self.session.ended(Err(error)),
            },
            _ => None,
        };
        let name = named.map(|id| id.to_string()).unwrap_or_default();
        match (operation, named) {
            (Operation::Put { content, .. }, Some(id)) => self.session.put_over(id, content).await,
            (Operation::Get { range, sink, .. }, Some(_)) => {
                let get = Operation::Get { key: &name, range, version: None, sink };
                self.session.execute(bucket, get).await
            }
            (Operation::Stat { .. }, Some(_)) => {
                let stat = Operation::Stat { key: &name, version: None };
                self.session.execute(bucket, stat).await
            }
            (Operation::Get { .. } | Operation::Stat { .. }, None) => self.absent(),
            (Operation::Delete { keys }, _) => {
                let ids = keys.iter().filter_map(|key| self.id(key));
                let names: Vec<String> = ids.map(|id| id.to_string()).collect();
                match names.is_empty() {
                    true => self.session.ended(Ok(())),
                    false => {
                        let delete = Operation::Delete { keys: &names };
                        self.session.execute(bucket, delete).await
                    }
                }
            }
            _ => self.session.ended(Err(DriverError::unsupported())),
        }
    }

    fn endpoint(&self) -> EndpointId {
        self.session.endpoint()
    }

    /// What was given up stays: an answer that never came is what a check has to live with.
    async fn settle(&mut self) -> Settled {
        Settled::default()
    }
}
