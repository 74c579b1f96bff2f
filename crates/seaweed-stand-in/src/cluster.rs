//! A cluster as its servers share it: what it holds, what the script says, who is told of changes.

use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_model::Moment;
use plimsoll_oracle::{AssignFault, Misbehaviour, wall_time};
use tokio::sync::watch;

use crate::fid::Fid;
use crate::ledger::{Assigned, SeaweedLedger};
use crate::state::{Address, Ask, Given, Refusal, State, full, growing, layout_of};
use crate::token::{Key, READ_LIFE_S, WRITE_LIFE_S, seconds};

/// How long before now an expired token ended.
const EXPIRED_S: u64 = 60;

/// What SeaweedFS says where a master does not lead.
const NOT_LEADER: &str = "raft.Server: Not current leader";

/// The keys of tokens; where there is none, none are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) write: Option<Key>,
    pub(crate) read: Option<Key>,
}

/// What all servers of a cluster share.
pub(crate) struct Cluster {
    state: Mutex<State>,
    /// Told of whatever the news of masters are about.
    changed: watch::Sender<()>,
    pub(crate) misbehaviour: Arc<Misbehaviour>,
    pub(crate) keys: Keys,
    /// After so many ids a stream of them ends.
    pub(crate) stream_answers_max: Option<u32>,
}

/// What became of a request for ids.
pub(crate) struct Answered {
    /// When it is answered.
    pub(crate) at: Moment,
    /// What; `None` where it never is.
    pub(crate) result: Option<Result<Ticket, Refusal>>,
}

/// File ids that were given, with where to write and the token to do so.
pub(crate) struct Ticket {
    pub(crate) given: Given,
    /// Empty where none is needed.
    pub(crate) token: String,
    /// The servers of the volume, that to write to first.
    pub(crate) servers: Vec<Address>,
}

impl Cluster {
    pub(crate) fn new(
        state: State,
        misbehaviour: Arc<Misbehaviour>,
        keys: Keys,
        stream_answers_max: Option<u32>,
    ) -> Self {
        let (state, changed) = (Mutex::new(state), watch::Sender::new(()));
        Self { state, changed, misbehaviour, keys, stream_answers_max }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// Returns what tells of changes of the news.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Does what changes the news.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.state());
        self.changed.send_replace(());
        done
    }

    /// Returns what was truly done so far.
    pub(crate) fn ledger(&self) -> SeaweedLedger {
        let state = self.state();
        let operations = self.misbehaviour.ledger();
        SeaweedLedger { operations, masters: state.counts.clone() }
    }

    /// Gives file ids as the script wants it. `master` is who was asked, `None` for whoever leads.
    pub(crate) fn assign(&self, master: Option<usize>, ask: &Ask) -> Answered {
        let now = self.misbehaviour.clock.now();
        let (answered, is_news) = {
            let mut state = self.state();
            let volumes = state.volumes.len();
            let leads = state.assigning.begin();
            if let Some(leader) = leads {
                state.leader = leader;
            }
            let at = state.assigning.answered_at(now);
            let (ended, result) = self.decide(&mut state, master, ask, now);
            *state.counts.assigns.entry(ended).or_default() += 1;
            (Answered { at, result }, leads.is_some() || volumes != state.volumes.len())
        };
        if is_news {
            self.changed.send_replace(());
        }
        answered
    }

    fn decide(
        &self,
        state: &mut State,
        master: Option<usize>,
        ask: &Ask,
        now: Moment,
    ) -> (Assigned, Option<Result<Ticket, Refusal>>) {
        let refused = |refusal: Refusal| (refusal.ended, Some(Err(refusal)));
        let fault = state.assigning.fault();
        if state.leader.is_none() || master.is_some_and(|master| state.leader != Some(master)) {
            return refused(Refusal::new(Assigned::NotLeader, NOT_LEADER));
        }
        let layout = match layout_of(ask) {
            Ok(layout) => layout,
            Err(refusal) => return refused(refusal),
        };
        match fault {
            Some(AssignFault::Silent) => return (Assigned::Silent, None),
            Some(AssignFault::Growing) => return refused(growing(&layout)),
            Some(AssignFault::Full) => return refused(full(&layout)),
            Some(AssignFault::Failed) => {
                let words = "no volume: the script says so";
                return refused(Refusal::new(Assigned::Failed, words));
            }
            Some(AssignFault::ExpiredToken | AssignFault::WrongToken) | None => {}
        }
        let given = match state.give(ask, now) {
            Ok(given) => given,
            Err(refusal) => return refused(refusal),
        };
        let fault = fault.filter(|_| self.keys.write.is_some());
        let (ended, fid, life) = match fault {
            Some(AssignFault::ExpiredToken) => (Assigned::ExpiredToken, given.fid, None),
            Some(_) => {
                let other = Fid { cookie: given.fid.cookie ^ 1, ..given.fid };
                (Assigned::WrongToken, other, Some(WRITE_LIFE_S))
            }
            None => (Assigned::Given, given.fid, Some(WRITE_LIFE_S)),
        };
        let token = token(self.keys.write.as_ref(), &fid.to_string(), life);
        let of = &state.volumes[&given.fid.volume].servers;
        let others = of.iter().filter(|server| **server != given.server);
        let servers = std::iter::once(&given.server).chain(others);
        let servers = servers.map(|server| state.servers[*server].address).collect();
        (ended, Some(Ok(Ticket { given, token, servers })))
    }

    /// Returns a token to write what `names` names; empty where none is needed.
    pub(crate) fn write_token(&self, names: &str) -> String {
        token(self.keys.write.as_ref(), names, Some(WRITE_LIFE_S))
    }

    /// The same to read it.
    pub(crate) fn read_token(&self, names: &str) -> String {
        token(self.keys.read.as_ref(), names, Some(READ_LIFE_S))
    }
}

/// Returns a token for so many seconds; `None` is one that has ended.
fn token(key: Option<&Key>, names: &str, life: Option<u64>) -> String {
    let now = seconds(wall_time());
    let expires = life.map_or(now - EXPIRED_S, |life| now + life);
    key.map_or_else(String::new, |key| key.sign(names, expires))
}
