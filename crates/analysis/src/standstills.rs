//! When the clients of a stage stood still, so that nothing of it is charged to the store.

use std::time::Duration;

use plimsoll_model::{Moment, Standstill};

use crate::ledger::{StoodStill, TOLD_MAX};

/// When the clients of a stage stood still. Of one client no two overlap, and all are in the order
/// of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standstills {
    /// When all of them did at once.
    pub all: Vec<Standstill>,
    /// When each did, by its number; empty where there is but one.
    pub by_client: Vec<Vec<Standstill>>,
    /// How often any did, those of which no time is kept too,
    pub count: u64,
    /// and for how long, each client's time added up.
    pub total: Duration,
}

impl Standstills {
    /// None at all.
    pub const NONE: &'static Self =
        &Self { all: Vec::new(), by_client: Vec::new(), count: 0, total: Duration::ZERO };

    /// Returns those of clients, by their numbers.
    pub fn of_clients(mut by_client: Vec<Vec<Standstill>>) -> Self {
        let each = || by_client.iter().flatten();
        let (count, total) = (each().count() as u64, each().map(|of| of.length).sum());
        let all = by_client.iter().cloned().reduce(|a, b| common(&a, &b)).unwrap_or_default();
        if by_client.len() < 2 {
            by_client.clear();
        }
        Self { all, by_client, count, total }
    }

    /// Returns those of any client, with its number where there are several.
    pub(crate) fn of_any(&self) -> impl Iterator<Item = (Option<u16>, &Standstill)> {
        let clients = self.by_client.iter().zip(0_u16..);
        let of_clients =
            clients.flat_map(|(own, client)| own.iter().map(move |of| (Some(client), of)));
        let alone = self.all.iter().filter(|_| self.by_client.is_empty());
        alone.map(|of| (None, of)).chain(of_clients)
    }

    /// Returns as many of those that touch a stretch as a ledger tells one by one, in the order of
    /// time.
    pub(crate) fn told(&self, from: u64, until: u64) -> Vec<StoodStill> {
        let told = |(client, of): (Option<u16>, &Standstill)| StoodStill {
            client,
            from: of.from,
            length: of.length,
        };
        let touches = |(_, of): &(Option<u16>, &Standstill)| {
            of.until().as_ns() > from && of.from.as_ns() < until
        };
        let mut all: Vec<StoodStill> = self.of_any().filter(touches).map(told).collect();
        all.sort_by_key(|of| (of.from, of.client));
        all.truncate(TOLD_MAX);
        all
    }

    /// Returns those of one client, or of all at once.
    pub(crate) fn of(&self, client: Option<u16>) -> &[Standstill] {
        match client {
            Some(client) => self.by_client.get(usize::from(client)).map_or(&[], Vec::as_slice),
            None => &self.all,
        }
    }
}

/// Returns for how many nanoseconds of a stretch there was a standstill.
pub(crate) fn within(standstills: &[Standstill], from: u64, until: u64) -> u64 {
    let own =
        |of: &Standstill| of.until().as_ns().min(until).saturating_sub(of.from.as_ns().max(from));
    standstills.iter().map(own).sum()
}

/// Returns what two clients have in common.
pub fn common(a: &[Standstill], b: &[Standstill]) -> Vec<Standstill> {
    let both = |a: &Standstill, b: &Standstill| {
        let from: Moment = a.from.max(b.from);
        let length = a.until().min(b.until()).since(from);
        (!length.is_zero()).then_some(Standstill { from, length })
    };
    a.iter().flat_map(|a| b.iter().filter_map(move |b| both(a, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: u64, until: u64) -> Standstill {
        Standstill { from: Moment::from_ns(from), length: Duration::from_nanos(until - from) }
    }

    #[test]
    fn all_stood_still_where_each_did() {
        let clients = vec![vec![of(10, 20), of(30, 40)], vec![of(5, 12), of(15, 35)]];
        let both = Standstills::of_clients(clients.clone());
        assert_eq!(both.all, [of(10, 12), of(15, 20), of(30, 35)]);
        assert_eq!((both.of(Some(1)), both.of(Some(7))), (&clients[1][..], &[][..]));
        let alone = Standstills::of_clients(clients[..1].to_vec());
        assert_eq!((alone.count, alone.total), (2, Duration::from_nanos(20)));
        assert_eq!((alone.all, alone.by_client), (clients[0].clone(), Vec::new()));
        assert_eq!(Standstills::of_clients(Vec::new()), *Standstills::NONE);
    }

    #[test]
    fn what_lies_in_a_stretch_counts() {
        let all = [of(10, 20), of(30, 40)];
        assert_eq!(within(&all, 0, 100), 20);
        assert_eq!(within(&all, 15, 32), 7);
        assert_eq!(within(&all, 20, 30), 0);
    }
}
