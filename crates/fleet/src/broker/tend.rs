//! Keeps the server of a fleet up, and has it know whose leave was taken back.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Broker, BrokerError, SERVER_CONFIG, Tended, agent_id, config, files, start_child, wait_for,
    write_private,
};
use crate::fabric::Space;
use crate::limits::free_bytes;
use crate::protocol::AgentId;

/// How often it is looked whether the server can keep what is handed in.
const KEEPS_LOOK: Duration = Duration::from_secs(1);
/// With less room its disk is full. Once a write has failed, the server tries none any more.
const FULL_BYTES: u64 = 1 << 20;
/// With less room a server that was restarted would fail again at once.
pub(super) const ROOM_BYTES_MIN: u64 = 16 << 20;
/// How long is waited before something is tried again that has failed.
const TRY_AGAIN: Duration = Duration::from_secs(1);

impl Broker {
    /// Does what is due: cuts agents off whose leave was taken back, frees the room of what they
    /// have kept, and starts the server again where it has ended by itself, or keeps nothing more
    /// since its disk was full; returns what happened to the server. What fails is tried again when
    /// this is called again, so that the fleet outlives a full disk or a slow start.
    pub fn tend(&mut self) -> Result<Option<Tended>, BrokerError> {
        if self.tries_at.is_some_and(|at| Instant::now() < at) {
            return Ok(None);
        }
        // A disk that is full of what an agent has kept has no room for anything else.
        let (tended, freed) = (self.tend_server(), self.free_revoked());
        match tended.and_then(|tended| freed.map(|()| tended)) {
            Ok(tended) => {
                let has_failed = self.tries_at.take().is_some();
                Ok(tended.or(has_failed.then_some(Tended::Recovered)))
            }
            Err(error) => {
                self.tries_at = Some(Instant::now() + TRY_AGAIN);
                Err(error)
            }
        }
    }

    fn tend_server(&mut self) -> Result<Option<Tended>, BrokerError> {
        let mut has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        let mut tended = has_ended.then_some(Tended::Restarted);
        if !has_ended && self.looked.elapsed() >= KEEPS_LOOK {
            self.looked = Instant::now();
            let free_bytes = free_bytes(&self.settings.directory);
            if free_bytes < FULL_BYTES && !self.was_full {
                self.was_full = true;
                return Ok(Some(Tended::Full));
            } else if self.was_full && free_bytes >= ROOM_BYTES_MIN {
                // It would not begin to keep anything again by itself.
                self.end_server();
                (has_ended, self.was_full) = (true, false);
                tended = Some(Tended::Resumed);
            }
        }
        let revoked = self.desk.members().revoked.clone();
        if self.awaits_server && !has_ended {
            wait_for(&mut self.child, &self.settings)?;
            self.awaits_server = false;
            tended = Some(Tended::Restarted);
        }
        if !has_ended && revoked == self.told {
            return Ok(tended);
        }
        // Agents know the port.
        self.settings.listen.1 = self.port;
        let path = self.settings.directory.join(SERVER_CONFIG);
        write_private(&path, &config::text(&self.settings, self.room_bytes, &revoked))?;
        if !has_ended {
            let pid = Pid::from_child(&self.child);
            kill_process(pid, Signal::HUP).map_err(|error| files("reload", &path, error.into()))?;
            self.told = revoked;
            return Ok(tended);
        }
        self.child = start_child(&self.settings)?;
        (self.told, self.awaits_server) = (revoked, true);
        wait_for(&mut self.child, &self.settings)?;
        self.awaits_server = false;
        Ok(tended)
    }

    /// Removes what agents have kept whose leave was taken back.
    fn free_revoked(&mut self) -> Result<(), BrokerError> {
        let Some(nats) = &self.nats else { return Ok(()) };
        let due: Vec<_> = self.desk.members().revoked.difference(&self.freed).copied().collect();
        for number in due {
            let agent = AgentId::new(agent_id(number)).expect("a number is an id");
            nats.remove_space(&Space::Of(agent))?;
            self.freed.insert(number);
        }
        Ok(())
    }
}
