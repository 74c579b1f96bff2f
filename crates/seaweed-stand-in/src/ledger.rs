//! What a cluster truly did: what became of requests for file ids, and of files.

use std::collections::BTreeMap;

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::{Act, Ledger};
use serde_json::{Value, json};

/// What became of a request for file ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assigned {
    /// Ids were given.
    Given,
    /// Ids were given with a token that is no longer valid.
    ExpiredToken,
    /// Ids were given with the token of another file.
    WrongToken,
    /// Volumes were being made.
    Growing,
    /// No volume could be made.
    Full,
    /// No volume server was there.
    NoServers,
    /// The master failed.
    Failed,
    /// It was not answered.
    Silent,
    /// It went to a master that does not lead.
    NotLeader,
    /// It asked for what cannot be.
    Refused,
}

impl Assigned {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::Given,
        Self::ExpiredToken,
        Self::WrongToken,
        Self::Growing,
        Self::Full,
        Self::NoServers,
        Self::Failed,
        Self::Silent,
        Self::NotLeader,
        Self::Refused,
    ];

    /// Returns its name in ledgers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::ExpiredToken => "expired_token",
            Self::WrongToken => "wrong_token",
            Self::Growing => "growing",
            Self::Full => "full",
            Self::NoServers => "no_servers",
            Self::Failed => "failed",
            Self::Silent => "silent",
            Self::NotLeader => "not_leader",
            Self::Refused => "refused",
        }
    }

    /// Returns how a right client sees the write end that wanted the id; `None` where it goes on
    /// with what it was given.
    pub const fn class(self) -> Option<ErrorClass> {
        match self {
            Self::Given | Self::ExpiredToken | Self::WrongToken => None,
            Self::Growing | Self::NoServers => Some(ErrorClass::Growing),
            Self::Full | Self::Failed | Self::NotLeader | Self::Refused => Some(ErrorClass::Server),
            Self::Silent => Some(ErrorClass::Timeout),
        }
    }
}

/// What a cluster truly did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeaweedLedger {
    /// What volume servers did: put, get, stat, delete.
    pub operations: Ledger,
    pub(crate) masters: Counts,
}

/// What masters did, and what became of copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) assigns: BTreeMap<Assigned, u64>,
    pub(crate) ids: u64,
    pub(crate) lookups: u64,
    pub(crate) copies_stored: u64,
    pub(crate) copies_removed: u64,
}

impl SeaweedLedger {
    /// Returns how many requests for file ids ended so.
    pub fn assigns_count(&self, ended: Assigned) -> u64 {
        self.masters.assigns.get(&ended).copied().unwrap_or(0)
    }

    /// Returns how many file ids were given.
    pub fn ids_count(&self) -> u64 {
        self.masters.ids
    }

    /// Returns how many volumes or files were looked up.
    pub fn lookups_count(&self) -> u64 {
        self.masters.lookups
    }

    /// Returns how many copies of files were stored, one for each server that took one.
    pub fn copies_stored_count(&self) -> u64 {
        self.masters.copies_stored
    }

    /// Returns how many copies of files were removed.
    pub fn copies_removed_count(&self) -> u64 {
        self.masters.copies_removed
    }

    /// Returns the operations with those writes among them that came to no id: as many as a client
    /// sees that asks once for each write.
    pub fn as_seen(&self) -> Ledger {
        let mut seen = self.operations.clone();
        for (ended, count) in &self.masters.assigns {
            for class in (0..*count).filter_map(|_| ended.class()) {
                seen.add(OpKind::Put, class, Act::Serve);
            }
        }
        seen
    }

    /// Returns what was done after `before`, which is an earlier state of the same ledger.
    pub fn since(&self, before: &Self) -> Self {
        let mut masters = self.masters.clone();
        for (ended, old) in &before.masters.assigns {
            masters.assigns.entry(*ended).and_modify(|count| *count -= old);
        }
        masters.assigns.retain(|_, count| *count > 0);
        masters.ids -= before.masters.ids;
        masters.lookups -= before.masters.lookups;
        masters.copies_stored -= before.masters.copies_stored;
        masters.copies_removed -= before.masters.copies_removed;
        Self { operations: self.operations.since(&before.operations), masters }
    }

    /// Returns all of it as one document.
    pub fn to_json(&self) -> Value {
        let assigns = self.masters.assigns.iter();
        let assigns: BTreeMap<&str, u64> =
            assigns.map(|(ended, count)| (ended.name(), *count)).collect();
        let mut document = self.operations.to_json();
        document["seaweed"] = json!({
            "assigns": assigns,
            "ids_count": self.masters.ids,
            "lookups_count": self.masters.lookups,
            "copies_stored_count": self.masters.copies_stored,
            "copies_removed_count": self.masters.copies_removed,
        });
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_without_an_id_are_writes_that_failed() {
        let mut ledger = SeaweedLedger::default();
        ledger.operations.add(OpKind::Put, ErrorClass::Ok, Act::Serve);
        ledger.masters.assigns =
            [(Assigned::Given, 1), (Assigned::Growing, 3), (Assigned::Full, 2)].into();
        ledger.masters.ids = 1;
        let before = ledger.clone();
        assert_eq!(ledger.since(&before), SeaweedLedger::default());
        let seen = ledger.as_seen();
        let classes = [ErrorClass::Ok, ErrorClass::Growing, ErrorClass::Server];
        assert_eq!(classes.map(|class| seen.count(OpKind::Put, class)), [1, 3, 2]);
        ledger.masters.assigns.insert(Assigned::Growing, 5);
        assert_eq!(ledger.since(&before).assigns_count(Assigned::Growing), 2);
        let json = ledger.to_json();
        assert_eq!(json["seaweed"]["assigns"]["growing"], 5);
        assert_eq!(json["kinds"][0]["kind"], "PUT");
    }
}
