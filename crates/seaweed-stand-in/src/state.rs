//! What a cluster holds: volume servers, volumes, files, and who leads.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_model::Moment;
use plimsoll_workload::Random;

use crate::assigning::Assigning;
use crate::fid::Fid;
use crate::files::{FileKey, Files, Stored};
use crate::ledger::{Assigned, Counts};
use crate::placing::{Layout, Replication, Site, place};

/// Where a server listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    pub(crate) http_port: u16,
    pub(crate) grpc_port: u16,
}

impl Address {
    /// Returns `host:port` of HTTP.
    pub(crate) fn url(self) -> String {
        format!("{}:{}", self.ip, self.http_port)
    }

    /// Returns `host:port.grpcport`.
    pub(crate) fn whole(self) -> String {
        format!("{}.{}", self.url(), self.grpc_port)
    }
}

/// A volume.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) layout: Layout,
    /// Where its copies are.
    pub(crate) servers: Vec<usize>,
}

/// A volume server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    /// Whether it can be reached.
    pub(crate) is_here: bool,
    /// Whether the masters take it for there.
    pub(crate) is_known: bool,
    pub(crate) files: Files,
}

/// A request for file ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) count: u64,
    pub(crate) collection: String,
    pub(crate) replication: String,
    pub(crate) ttl: String,
    pub(crate) disk: String,
    pub(crate) data_center: String,
    pub(crate) rack: String,
}

/// File ids that were given: the first of so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) fid: Fid,
    pub(crate) count: u64,
    /// The server to write to; other copies are made by it.
    pub(crate) server: usize,
}

/// Why no id was given.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) ended: Assigned,
    pub(crate) words: String,
}

impl Refusal {
    pub(crate) fn new(ended: Assigned, words: impl Into<String>) -> Self {
        Self { ended, words: words.into() }
    }
}

/// What a cluster holds.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) masters: Vec<Address>,
    /// Who leads of them.
    pub(crate) leader: Option<usize>,
    pub(crate) servers: Vec<Server>,
    pub(crate) sites: Vec<Site>,
    pub(crate) volumes: BTreeMap<u32, Volume>,
    pub(crate) assigning: Assigning,
    pub(crate) counts: Counts,
    /// How many volumes a server takes.
    pub(crate) volumes_max: usize,
    /// What was acknowledged last of each file.
    acknowledged: BTreeMap<FileKey, Arc<Stored>>,
    last_key: u64,
    last_volume: u32,
    random: Random,
}

impl State {
    pub(crate) fn new(
        masters: Vec<Address>,
        servers: Vec<(Address, Site)>,
        assigning: Assigning,
        random: Random,
        (volumes_max, remembers): (usize, bool),
    ) -> Self {
        let (addresses, sites): (Vec<Address>, Vec<Site>) = servers.into_iter().unzip();
        let server = |address| Server {
            address,
            is_here: true,
            is_known: true,
            files: Files::new(remembers),
        };
        Self {
            masters,
            leader: Some(0),
            servers: addresses.into_iter().map(server).collect(),
            sites,
            volumes: BTreeMap::new(),
            assigning,
            counts: Counts::default(),
            volumes_max,
            acknowledged: BTreeMap::new(),
            last_key: 0,
            last_volume: 0,
            random,
        }
    }

    /// Gives file ids.
    pub(crate) fn give(&mut self, ask: &Ask, now: Moment) -> Result<Given, Refusal> {
        let layout = layout_of(ask)?;
        if !self.servers.iter().any(|server| server.is_known) {
            let words = format!("no volume server capacity registered yet for {}", shown(&layout));
            return Err(Refusal::new(Assigned::NoServers, words));
        }
        let mut writable = self.writable(&layout, ask);
        if writable.is_empty() && self.assigning.is_growing(&layout, now) {
            return Err(growing(&layout));
        }
        if writable.is_empty() {
            self.grow(&layout, layout.replication.grown_at_once(), ask);
            writable = self.writable(&layout, ask);
        }
        if writable.is_empty() {
            return Err(full(&layout));
        }
        let id = writable[self.random.below(writable.len() as u64) as usize];
        let of = &self.volumes[&id].servers;
        let server = of[self.random.below(of.len() as u64) as usize];
        let count = ask.count.max(1);
        let key = self.last_key + 1;
        self.last_key += count;
        let cookie = self.random.next_u64() as u32;
        self.counts.ids += count;
        Ok(Given { fid: Fid { volume: id, key, cookie }, count, server })
    }

    /// Returns the volumes of a layout that all servers with a copy are there for.
    fn writable(&self, layout: &Layout, ask: &Ask) -> Vec<u32> {
        let is_there = |server: &usize| self.servers[*server].is_known;
        let is_near =
            |volume: &Volume| self.sites[volume.servers[0]].is_in(&ask.data_center, &ask.rack);
        let of = self.volumes.iter().filter(|(_, volume)| volume.layout == *layout);
        let whole = of.filter(|(_, volume)| volume.servers.iter().all(is_there) && is_near(volume));
        whole.map(|(id, _)| *id).collect()
    }

    /// Makes so many volumes, or as many as there is room for; returns how many.
    pub(crate) fn grow(&mut self, layout: &Layout, count: usize, ask: &Ask) -> usize {
        for grown in 0..count {
            let mut free = self.free_servers();
            // Each begins with another server, so that all have about as many.
            free.sort_by_key(|server| self.volumes_on(*server));
            let within = (&ask.data_center[..], &ask.rack[..]);
            let Some(servers) = place(&self.sites, &free, layout.replication, within) else {
                return grown;
            };
            self.last_volume += 1;
            let volume = Volume { layout: layout.clone(), servers };
            self.volumes.insert(self.last_volume, volume);
        }
        count
    }

    fn free_servers(&self) -> Vec<usize> {
        let all = self.servers.iter().enumerate().filter(|(_, server)| server.is_known);
        let ids = all.map(|(server, _)| server);
        ids.filter(|server| self.volumes_on(*server) < self.volumes_max).collect()
    }

    /// Returns how many volumes there is still room for, in copies.
    pub(crate) fn room(&self) -> usize {
        let free = self.free_servers();
        free.iter().map(|server| self.volumes_max - self.volumes_on(*server)).sum()
    }

    fn volumes_on(&self, server: usize) -> usize {
        self.volumes.values().filter(|volume| volume.servers.contains(&server)).count()
    }

    /// Returns the server that answers for a volume when `server` is asked: itself where it has it,
    /// else one that it asks in turn.
    pub(crate) fn answering(&self, server: usize, volume: u32) -> Option<usize> {
        let of = &self.volumes.get(&volume)?.servers;
        let others = || of.iter().find(|other| self.servers[**other].is_here);
        if of.contains(&server) { Some(server) } else { others().copied() }
    }

    /// Returns a file as a server has it, whatever its cookie.
    pub(crate) fn file(&self, server: usize, key: FileKey) -> Option<&Arc<Stored>> {
        self.servers[server].files.get(key)
    }

    /// Tells whether what a server has of a file is what was acknowledged last.
    pub(crate) fn is_true(&self, key: FileKey, file: &Stored) -> bool {
        self.acknowledged.get(&key).is_none_or(|truth| truth.content == file.content)
    }

    /// Stores a file on all servers of its volume but `lost`.
    pub(crate) fn store(&mut self, fid: Fid, file: Stored, lost: Option<usize>) {
        let (key, file) = ((fid.volume, fid.key), Arc::new(file));
        for server in self.volumes[&fid.volume].servers.clone() {
            if Some(server) != lost {
                self.counts.copies_stored += 1;
                self.servers[server].files.write(key, Some(Arc::clone(&file)));
            }
        }
        self.acknowledged.insert(key, file);
    }

    /// Takes note of a file that is said to be stored and is not.
    pub(crate) fn lose(&mut self, fid: Fid, file: Stored) {
        self.acknowledged.insert((fid.volume, fid.key), Arc::new(file));
    }

    /// Removes a file from `servers`.
    pub(crate) fn remove(&mut self, fid: Fid, servers: &[usize]) {
        let key = (fid.volume, fid.key);
        for server in servers {
            let removed = self.servers[*server].files.write(key, None);
            self.counts.copies_removed += u64::from(removed.is_some());
        }
        if self.servers.iter().all(|server| server.files.get(key).is_none()) {
            self.acknowledged.remove(&key);
        }
    }

    /// Removes a collection; `false` where there is none.
    pub(crate) fn drop_collection(&mut self, collection: &str) -> bool {
        let of = |volume: &Volume| volume.layout.collection == collection;
        let ids: Vec<u32> =
            self.volumes.iter().filter(|(_, each)| of(each)).map(|(id, _)| *id).collect();
        for id in &ids {
            self.volumes.remove(id);
            for server in &mut self.servers {
                self.counts.copies_removed += server.files.drop_volume(*id);
            }
        }
        self.acknowledged.retain(|(volume, _), _| !ids.contains(volume));
        self.assigning.forget(collection);
        !ids.is_empty()
    }

    /// Returns the files of a collection by their ids, and how many copies there are of each.
    pub(crate) fn files_of(&self, collection: &str) -> BTreeMap<String, (Bytes, usize)> {
        let mut found = BTreeMap::new();
        let volumes = self.volumes.iter().filter(|(_, of)| of.layout.collection == collection);
        for (volume, of) in volumes {
            for server in &of.servers {
                for (key, file) in self.servers[*server].files.of_volume(*volume) {
                    let fid = Fid { volume: *volume, key, cookie: file.cookie }.to_string();
                    let entry = found.entry(fid).or_insert_with(|| (file.content.clone(), 0));
                    entry.1 += 1;
                }
            }
        }
        found
    }
}

/// Returns the layout that a request wants.
pub(crate) fn layout_of(ask: &Ask) -> Result<Layout, Refusal> {
    let refused = |words: String| Refusal::new(Assigned::Refused, words);
    let replication = Replication::parse(&ask.replication)
        .ok_or_else(|| refused(format!("unexpected replication type: {}", ask.replication)))?;
    let number = ask.ttl.trim_end_matches(|unit: char| "mhdwMy".contains(unit));
    let is_time = ask.ttl.is_empty() || (number.parse::<u8>().is_ok());
    if !is_time {
        return Err(refused(format!("strconv.Atoi: parsing {number:?}: invalid syntax")));
    }
    let (collection, ttl) = (ask.collection.clone(), ask.ttl.clone());
    Ok(Layout { collection, replication, ttl, disk: ask.disk.clone() })
}

/// Writes a layout as SeaweedFS does in its refusals.
fn shown(layout: &Layout) -> String {
    let Layout { collection, replication, ttl, .. } = layout;
    format!(r#"{{"collection":"{collection}","replication":"{replication}","ttl":"{ttl}"}}"#)
}

/// Says that volumes are being made.
pub(crate) fn growing(layout: &Layout) -> Refusal {
    let words = format!("no writable volumes for {}, volume growth in progress", shown(layout));
    Refusal::new(Assigned::Growing, words)
}

/// Says that no volume can be made.
pub(crate) fn full(layout: &Layout) -> Refusal {
    let Layout { collection, replication, ttl, .. } = layout;
    let words = format!(
        "failed to find writable volumes for collection:{collection} replication:{replication} \
         ttl:{ttl} error: No writable volumes and no free volumes left for {}",
        shown(layout)
    );
    Refusal::new(Assigned::Full, words)
}

#[cfg(test)]
mod tests;
