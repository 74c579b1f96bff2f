//! What the sessions of a thread share: the way to the leader, and connections to servers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use plimsoll_http::{Client, Endpoint, Options};
use plimsoll_model::{Moment, SharedClock, WallTime};

use crate::cluster::ServerIndex;
use crate::master::Master;

/// What the sessions of a thread share.
pub(crate) struct Thread {
    pub(crate) master: Master,
    pub(crate) clock: SharedClock,
    /// The wall time of the clock's epoch.
    pub(crate) wall_epoch: WallTime,
    pub(crate) options: Rc<Options>,
    /// Connections that are idle. Those used last come first, so that no more are open to a server
    /// than were used at once.
    idle: RefCell<HashMap<Endpoint, Vec<Client>>>,
    /// The names of volume servers in requests.
    hosts: RefCell<Vec<(Endpoint, Rc<str>)>>,
    /// Whether tokens are wanted of reads, and of deletes; `None` until somebody has asked.
    pub(crate) wants_tokens: [Cell<Option<bool>>; 2],
}

impl Thread {
    pub(crate) fn new(
        master: Master,
        clock: SharedClock,
        wall_epoch: WallTime,
        options: Options,
    ) -> Self {
        Self {
            master,
            clock,
            wall_epoch,
            options: Rc::new(options),
            idle: RefCell::default(),
            hosts: RefCell::default(),
            wants_tokens: Default::default(),
        }
    }

    /// Returns the endpoint of a volume server, and its name in requests.
    pub(crate) fn server(&self, server: ServerIndex) -> (Endpoint, Rc<str>) {
        let mut hosts = self.hosts.borrow_mut();
        let index = usize::from(server);
        if index >= hosts.len() {
            let view = self.master.view();
            let tls = self.options.tls.is_some();
            let known = view.servers.iter().skip(hosts.len()).map(|server| {
                let endpoint = server.http.clone();
                let host = endpoint.authority(tls).into();
                (endpoint, host)
            });
            hosts.extend(known);
        }
        let (endpoint, host) = &hosts[index];
        (endpoint.clone(), Rc::clone(host))
    }

    /// Lends a connection to a server; who does not give it back has closed it.
    pub(crate) fn connection(&self, to: &Endpoint) -> Client {
        let idle = self.idle.borrow_mut().get_mut(to).and_then(Vec::pop);
        idle.unwrap_or_else(|| {
            let endpoints = Rc::new([to.clone()]);
            Client::new(endpoints, Rc::clone(&self.options), self.clock.clone())
        })
    }

    /// Takes a connection back.
    pub(crate) fn give_back(&self, to: &Endpoint, client: Client) {
        let mut idle = self.idle.borrow_mut();
        match idle.get_mut(to) {
            Some(of) => of.push(client),
            None => {
                idle.insert(to.clone(), vec![client]);
            }
        }
    }

    pub(crate) fn wall_time(&self) -> WallTime {
        self.wall_epoch.after(self.clock.now().since(Moment::EPOCH))
    }
}
