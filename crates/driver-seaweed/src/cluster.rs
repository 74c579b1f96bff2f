//! What is known of a cluster: its leader, its volume servers, and which of them has which volume;
//! shared by all threads and kept up to date by one of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_model::EndpointId;

use crate::ServerAddress;
use crate::messages::{Location, VolumeNews};

/// A volume server, by its place in [`View::servers`].
pub(crate) type ServerIndex = u16;

/// How many volume servers are known at most; those that come later are left out.
const SERVERS_MAX: usize = 16_384;
/// How many volumes are known at most; at 30 GB each they hold 30 PB.
const VOLUMES_MAX: usize = 1 << 20;
/// How many servers of one volume are known at most; an erasure-coded one lies on up to 32.
const HOLDERS_MAX: usize = 64;

/// A cluster as it was at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The leader among the masters, the last one while there is none.
    pub(crate) leader: ServerAddress,
    /// The volume servers; those that are gone stay, so that numbers hold.
    pub(crate) servers: Vec<ServerAddress>,
    by_address: HashMap<String, ServerIndex>,
    volumes: HashMap<u32, Vec<ServerIndex>>,
}

impl View {
    /// Returns the servers that have a volume.
    pub(crate) fn servers_of(&self, volume: u32) -> &[ServerIndex] {
        self.volumes.get(&volume).map_or(&[], Vec::as_slice)
    }

    /// Returns the server of that address.
    pub(crate) fn server(&self, address: &str) -> Option<ServerIndex> {
        self.by_address.get(address).copied()
    }

    /// Tells whether no more volumes are taken note of.
    pub(crate) fn is_full(&self) -> bool {
        self.volumes.len() >= VOLUMES_MAX
    }

    /// Tells whether a volume is known that no server has now.
    pub(crate) fn is_away(&self, volume: u32) -> bool {
        self.volumes.get(&volume).is_some_and(Vec::is_empty)
    }

    /// Returns the server of that address, which may be a new one. Its port of gRPC is guessed
    /// until somebody names it.
    fn learn(&mut self, address: &str, grpc_port: u32) -> Option<ServerIndex> {
        let named_port = u16::try_from(grpc_port).ok().filter(|port| *port > 0);
        if let Some(index) = self.server(address) {
            let server = &mut self.servers[usize::from(index)];
            server.grpc_port = named_port.unwrap_or(server.grpc_port);
            return Some(index);
        }
        let server = ServerAddress::of_volume_server(address, named_port)?;
        let index = self.servers.len();
        if index >= SERVERS_MAX {
            return None;
        }
        let index = index as ServerIndex;
        self.servers.push(server);
        self.by_address.insert(address.to_owned(), index);
        Some(index)
    }

    fn apply(&mut self, news: &VolumeNews) {
        let Some(server) = self.learn(&news.url, news.grpc_port) else { return };
        // First, as a volume that becomes a coded one is in both lists.
        for volume in news.deleted_volumes.iter().chain(&news.deleted_coded_volumes) {
            if let Some(of_volume) = self.volumes.get_mut(volume) {
                of_volume.retain(|other| *other != server);
            }
        }
        for volume in news.new_volumes.iter().chain(&news.new_coded_volumes) {
            let Some(of_volume) = self.holders(*volume) else { continue };
            if !of_volume.contains(&server) && of_volume.len() < HOLDERS_MAX {
                of_volume.push(server);
            }
        }
    }

    /// Returns the list of servers that have a volume; `None` if it is a new one and too many are
    /// known already.
    fn holders(&mut self, volume: u32) -> Option<&mut Vec<ServerIndex>> {
        if self.is_full() && !self.volumes.contains_key(&volume) {
            return None;
        }
        Some(self.volumes.entry(volume).or_default())
    }
}

/// A cluster, as all threads share it.
#[derive(Debug)]
pub(crate) struct Cluster {
    view: Mutex<Arc<View>>,
    /// Counts the changes of the view.
    changes: AtomicU64,
    /// How many volume servers the record knows by name: those at the beginning.
    named_count: usize,
}

/// The number that the record gives to the masters.
pub(crate) const MASTERS: EndpointId = EndpointId(0);

impl Cluster {
    /// Returns a cluster with these volume servers.
    pub(crate) fn new(leader: ServerAddress, servers: &[String]) -> Self {
        let (servers_known, by_address, volumes) = Default::default();
        let mut view = View { leader, servers: servers_known, by_address, volumes };
        for server in servers {
            view.learn(server, 0);
        }
        let named_count = view.servers.len();
        Self { view: Mutex::new(Arc::new(view)), changes: AtomicU64::new(0), named_count }
    }

    /// Returns the addresses that the record names: masters, the volume servers of the beginning,
    /// and those that come later.
    pub(crate) fn endpoints(&self, masters: &[ServerAddress]) -> Vec<String> {
        let joined = |of: &[ServerAddress]| {
            of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let mut all = vec![joined(masters)];
        all.extend(self.view().servers[..self.named_count].iter().map(ToString::to_string));
        all.push(EndpointId::LATER_HOSTS.to_owned());
        all
    }

    /// Returns the volume servers that are known.
    pub(crate) fn servers(&self) -> Vec<ServerAddress> {
        self.view().servers.clone()
    }

    /// Returns the number that the record gives to a volume server.
    pub(crate) fn endpoint(&self, server: ServerIndex) -> EndpointId {
        let place = usize::from(server).min(self.named_count);
        EndpointId(1 + place as u16)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<View>> {
        self.view.lock().expect("nobody panics while holding it")
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.lock())
    }

    fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let mut view = self.lock();
        let done = change(Arc::make_mut(&mut view));
        self.changes.fetch_add(1, Ordering::Release);
        done
    }

    /// Takes note of news.
    pub(crate) fn apply(&self, news: &VolumeNews) {
        self.change(|view| view.apply(news));
    }

    /// Returns who leads.
    pub(crate) fn leader(&self) -> ServerAddress {
        self.view().leader.clone()
    }

    /// Begins anew with what a leader tells: it names all volumes first.
    pub(crate) fn begin_news(&self, leader: ServerAddress) {
        self.change(|view| {
            view.leader = leader;
            // What is known to have been there is not forgotten.
            view.volumes.values_mut().for_each(Vec::clear);
        });
    }

    /// Returns the server of an address that a master named, which may be a new one.
    pub(crate) fn learn(&self, location: &Location) -> Option<ServerIndex> {
        self.change(|view| view.learn(&location.url, location.grpc_port))
    }

    /// Takes note that a server which should have a volume is not reached. Whoever needs the volume
    /// next asks the master, if no other server has it.
    pub(crate) fn not_reached(&self, volume: u32, server: ServerIndex) {
        self.change(|view| {
            if let Some(of_volume) = view.volumes.get_mut(&volume) {
                of_volume.retain(|other| *other != server);
            }
        });
    }

    /// Takes note of where a volume was found.
    pub(crate) fn found(&self, volume: u32, locations: &[Location]) {
        self.change(|view| {
            let found = locations.iter().filter_map(|of| view.learn(&of.url, of.grpc_port));
            let found: Vec<_> = found.take(HOLDERS_MAX).collect();
            if let Some(of_volume) = view.holders(volume) {
                *of_volume = found;
            }
        });
    }
}

/// A thread's own copy of the view, renewed when it has changed.
pub(crate) struct Local {
    cluster: Arc<Cluster>,
    view: Arc<View>,
    seen: u64,
}

impl Local {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        let seen = cluster.changes.load(Ordering::Acquire);
        Self { view: cluster.view(), seen, cluster }
    }

    /// Returns the cluster as it is now.
    pub(crate) fn view(&mut self) -> &Arc<View> {
        let changes = self.cluster.changes.load(Ordering::Acquire);
        if changes != self.seen {
            self.seen = changes;
            self.view = self.cluster.view();
        }
        &self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(url: &str, new: &[u32], deleted: &[u32]) -> VolumeNews {
        VolumeNews {
            url: url.to_owned(),
            new_volumes: new.to_vec(),
            deleted_volumes: deleted.to_vec(),
            ..VolumeNews::default()
        }
    }

    #[test]
    fn a_thread_sees_news_and_numbers_hold() {
        let leader: ServerAddress = "m:9333".parse().unwrap();
        let servers = ["a:8080".to_owned(), "b:8080".to_owned()];
        let cluster = Arc::new(Cluster::new(leader.clone(), &servers));
        let mut local = Local::new(Arc::clone(&cluster));
        assert_eq!(local.view().servers_of(1), [0; 0]);
        cluster.apply(&news("b:8080", &[1, 2], &[]));
        cluster.apply(&news("a:8080", &[1], &[]));
        cluster.apply(&news("a:8080", &[1], &[7]));
        assert_eq!(local.view().servers_of(1), [1, 0]);
        cluster.apply(&news("b:8080", &[], &[1]));
        // One that nobody can reach is left out; one that is new comes behind the others.
        cluster.apply(&news("nonsense", &[1], &[]));
        cluster.apply(&news("c:8080", &[1], &[]));
        assert_eq!(local.view().servers_of(1), [0, 2]);
        assert_eq!(local.view().servers_of(2), [1]);
        let at = |url: &str, grpc_port| Location {
            url: url.to_owned(),
            grpc_port,
            ..Location::default()
        };
        cluster.found(9, &[at("c:8080", 0), at("d:8080", 7)]);
        assert_eq!(local.view().servers_of(9), [2, 3]);
        assert_eq!((local.view().is_away(9), local.view().is_away(99)), (false, false));
        // The port of gRPC is a guess until it is named, and stays when it is not named again.
        let ports = |view: &View| view.servers.iter().map(|of| of.grpc_port).collect::<Vec<_>>();
        assert_eq!(ports(local.view()), [18_080, 18_080, 18_080, 7]);
        cluster.apply(&VolumeNews { grpc_port: 9, ..news("a:8080", &[], &[]) });
        cluster.found(9, &[at("c:8080", 8), at("d:8080", 0)]);
        assert_eq!(ports(local.view()), [9, 18_080, 8, 7]);
        // A volume that becomes a coded one of the same server.
        let coded = VolumeNews { new_coded_volumes: vec![2], ..news("b:8080", &[], &[2]) };
        cluster.apply(&coded);
        assert_eq!(local.view().servers_of(2), [1]);
        assert_eq!(
            cluster.endpoints(&[leader]),
            ["m:9333", "a:8080", "b:8080", EndpointId::LATER_HOSTS]
        );
        let numbers: Vec<u16> = (0..4).map(|server| cluster.endpoint(server).0).collect();
        assert_eq!(numbers, [1, 2, 3, 3]);
    }

    #[test]
    fn what_masters_may_tell_without_end_is_kept_up_to_a_limit() {
        let leader: ServerAddress = "m:9333".parse().unwrap();
        let servers: Vec<String> = (1..=u16::MAX).map(|port| format!("h:{port}")).collect();
        let cluster = Arc::new(Cluster::new(leader.clone(), &servers));
        let mut local = Local::new(Arc::clone(&cluster));
        assert_eq!(local.view().servers.len(), SERVERS_MAX);
        let last = local.view().server("h:16384").unwrap();
        assert_eq!(usize::from(cluster.endpoint(last).0), SERVERS_MAX);
        assert_eq!(cluster.endpoints(&[leader]).len(), SERVERS_MAX + 2);
        servers.iter().take(200).for_each(|server| cluster.apply(&news(server, &[7], &[])));
        assert_eq!(local.view().servers_of(7).len(), HOLDERS_MAX);
        let many: Vec<u32> = (0..2 << 20).collect();
        cluster.apply(&news("h:1", &many, &[]));
        assert!(local.view().is_full() && local.view().volumes.len() == VOLUMES_MAX);
        let at = Location { url: "h:1".to_owned(), ..Location::default() };
        cluster.found(u32::MAX, std::slice::from_ref(&at));
        assert_eq!(local.view().servers_of(u32::MAX), [0; 0]);
        // What is known stays so.
        cluster.found(9, &[at]);
        assert_eq!(local.view().servers_of(9), [0]);
    }

    #[test]
    fn a_volume_without_servers_is_not_one_that_never_was() {
        let leader: ServerAddress = "m:9333".parse().unwrap();
        let cluster = Arc::new(Cluster::new(leader.clone(), &["a:8080".to_owned()]));
        let mut local = Local::new(Arc::clone(&cluster));
        cluster.apply(&news("a:8080", &[1, 2], &[]));
        cluster.apply(&news("a:8080", &[], &[1]));
        assert_eq!((local.view().is_away(1), local.view().is_away(2)), (true, false));
        cluster.not_reached(2, 0);
        cluster.not_reached(7, 0);
        assert_eq!((local.view().is_away(2), local.view().is_away(7)), (true, false));
        cluster.begin_news(leader);
        assert_eq!((local.view().is_away(2), local.view().is_away(3)), (true, false));
        cluster.apply(&news("a:8080", &[1, 2], &[]));
        assert_eq!((local.view().is_away(1), local.view().is_away(2)), (false, false));
    }
}
