//! What the sessions of a thread share: the way to the leader, and connections to servers.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_http::grpc::GrpcChannel;
use plimsoll_http::{Client, Endpoint, Options};
use plimsoll_model::{Moment, SharedClock, WallTime};

use crate::cluster::ServerIndex;
use crate::journal::Journal;
use crate::master::Master;

/// How many more connections than sessions a thread keeps, so that few sessions on many servers
/// need not connect anew each time.
pub(crate) const IDLE_SPARE: usize = 32;

/// What the sessions of a thread share.
pub(crate) struct Thread {
    pub(crate) master: Master,
    pub(crate) clock: SharedClock,
    /// The wall time of the clock's epoch.
    pub(crate) wall_epoch: WallTime,
    /// How volume servers are reached by HTTP.
    pub(crate) options: Rc<Options>,
    /// How masters are.
    pub(crate) master_options: Rc<Options>,
    /// Connections that are idle. Those used last come first, so that no more are open to a server
    /// than were used at once.
    idle: RefCell<Idle>,
    /// How many of these there may be.
    pub(crate) idle_max: usize,
    /// The names of volume servers in requests.
    hosts: RefCell<Vec<(Endpoint, Rc<str>)>>,
    /// Connections of gRPC to volume servers.
    pub(crate) volume_channels: RefCell<HashMap<ServerIndex, GrpcChannel>>,
    pub(crate) journal: Arc<Journal>,
    /// Whether tokens are wanted of reads, and of deletes; `None` until somebody has asked.
    pub(crate) wants_tokens: [Cell<Option<bool>>; 2],
}

/// Connections that nobody uses.
#[derive(Default)]
struct Idle {
    by_server: HashMap<Endpoint, VecDeque<Client>>,
    count: usize,
}

impl Idle {
    fn take(&mut self, to: &Endpoint) -> Option<Client> {
        let taken = self.by_server.get_mut(to).and_then(VecDeque::pop_back);
        self.count -= usize::from(taken.is_some());
        taken
    }

    fn put(&mut self, to: &Endpoint, client: Client) {
        self.count += 1;
        match self.by_server.get_mut(to) {
            Some(of) => of.push_back(client),
            None => {
                self.by_server.insert(to.clone(), VecDeque::from([client]));
            }
        }
    }

    /// Closes the connection that was used longest ago of the server with the most.
    fn close_one(&mut self) {
        if let Some(most) = self.by_server.values_mut().max_by_key(|of| of.len()) {
            self.count -= usize::from(most.pop_front().is_some());
        }
    }
}

impl Thread {
    pub(crate) fn new(
        master: Master,
        clock: SharedClock,
        wall_epoch: WallTime,
        options: Options,
        journal: Arc<Journal>,
    ) -> Self {
        let master_options = Options { tls: master.config.masters_tls(), ..options.clone() };
        Self {
            master,
            clock,
            wall_epoch,
            options: Rc::new(options),
            master_options: Rc::new(master_options),
            idle: RefCell::default(),
            idle_max: IDLE_SPARE,
            hosts: RefCell::default(),
            volume_channels: RefCell::default(),
            journal,
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

    /// Lends a connection to a volume server; who does not give it back has closed it.
    pub(crate) fn connection(&self, to: &Endpoint) -> Client {
        self.connection_by(to, &self.options)
    }

    /// Lends a connection to a master.
    pub(crate) fn master_connection(&self, to: &Endpoint) -> Client {
        self.connection_by(to, &self.master_options)
    }

    fn connection_by(&self, to: &Endpoint, options: &Rc<Options>) -> Client {
        self.idle.borrow_mut().take(to).unwrap_or_else(|| {
            let endpoints = Rc::new([to.clone()]);
            Client::new(endpoints, Rc::clone(options), self.clock.clone())
        })
    }

    /// Takes a connection back.
    pub(crate) fn give_back(&self, to: &Endpoint, client: Client) {
        let mut idle = self.idle.borrow_mut();
        idle.put(to, client);
        if idle.count > self.idle_max {
            idle.close_one();
        }
    }

    pub(crate) fn wall_time(&self) -> WallTime {
        self.wall_epoch.after(self.clock.now().since(Moment::EPOCH))
    }
}
