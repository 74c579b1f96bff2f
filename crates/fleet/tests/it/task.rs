//! An agent of this process with a connection of its own; the benches have such agents, too.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use plimsoll_conduct::Observer;
use plimsoll_fleet::Limits;
use plimsoll_fleet::broker::join;
use plimsoll_fleet::fabric::Fabric;
use plimsoll_fleet::nats::{Nats, Side, forward};
use plimsoll_fleet::part::Workplace;
use plimsoll_fleet::pki::NewKey;
use plimsoll_fleet::protocol::{About, AgentId};
use plimsoll_fleet::station::{Identity, Input, Station};
use plimsoll_fleet::token::Token;
use plimsoll_model::SharedClock;

/// What an agent works with.
pub(crate) struct Works {
    pub(crate) workplace: Arc<dyn Workplace>,
    pub(crate) clock: SharedClock,
    pub(crate) observer: Arc<dyn Observer>,
}

/// An agent of this process.
pub(crate) struct Task {
    inputs: Sender<Input>,
    thread: JoinHandle<bool>,
}

/// Returns what an agent tells of itself.
pub(crate) fn about(name: &str, weight: u32) -> About {
    About {
        name: name.to_owned(),
        version: "1".to_owned(),
        weight,
        is_encrypted: true,
        busy: None,
        kept: Vec::new(),
        places: Vec::new(),
        machine: None,
    }
}

impl Task {
    /// Starts an agent to whom all comes by `inputs`.
    pub(crate) fn start(
        identity: Identity,
        fabric: Arc<dyn Fabric>,
        (inputs, receiver): (Sender<Input>, Receiver<Input>),
        works: Works,
    ) -> Self {
        let Works { workplace, clock, observer } = works;
        let way = (inputs.clone(), receiver);
        let limits = Limits::DEFAULT;
        let station = Station::new(way, identity, fabric, clock, workplace, observer, limits);
        Self { inputs, thread: std::thread::spawn(move || station.run()) }
    }

    /// Joins a fleet with a connection of its own, which `through` may put something before.
    pub(crate) fn join(
        token: &Token,
        about: About,
        works: Works,
        through: &dyn Fn(AgentId, Nats) -> Arc<dyn Fabric>,
    ) -> Self {
        let (id, config) = join(token, &about.name, &NewKey::make().unwrap()).unwrap();
        let incarnation = 7;
        let way = channel();
        let deliver = forward(way.0.clone(), Input::Arrived);
        let nats = Nats::join_with(&config, Side::Agent(&id, incarnation), deliver).unwrap();
        let fabric = through(id.clone(), nats);
        Self::start(Identity { id, incarnation, about }, fabric, way, works)
    }

    pub(crate) fn end(self) {
        self.inputs.send(Input::End).unwrap();
        self.thread.join().unwrap();
    }
}
