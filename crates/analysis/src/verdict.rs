//! Who was the limit of a stage: judged from its figures and from what was seen of each client, as
//! `docs/verdict.md` says.
//!
//! The client is looked at first. Where there is evidence that it was a limit, the store is never
//! blamed; where the evidence does not decide, the verdict says that it is not known.

mod client;
mod facts;
mod load;
mod words;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use facts::{
    ClientFacts, DeviceFacts, LinkFacts, LoadFacts, MachineFacts, Paced, QuotaFacts, RowFacts,
    ScheduleFacts, SocketFacts, ThreadFacts,
};

/// Who or what limited a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LimitClass {
    /// The store: operations waited in it, and nothing else was short.
    Store,
    /// The store, which refused a part of the load (503 SlowDown, 429).
    StoreShedsLoad,
    /// One address of several, far slower than the others.
    SlowEndpoint,
    /// The way between: round trips, loss, or the capacity of the link.
    Network,
    /// The processors of the client's machine, or its share of them.
    ClientCpu,
    /// The client's threads, each of which had one processor's worth of work.
    ClientThreads,
    /// The client's connections: too few operations under way, or none could be made for want of
    /// ports or descriptors.
    ClientConnections,
    /// The client's recorder: workers waited until their records were taken.
    Recorder,
    /// The client's schedule: operations went out late although there was room for them.
    Pacing,
    /// The load that was asked for, which was carried with room to spare.
    NotEnoughLoad,
    /// The evidence does not tell.
    Unknown,
}

impl LimitClass {
    /// Every class, in the order in which `docs/verdict.md` has them.
    pub const ALL: [Self; 11] = [
        Self::Store,
        Self::StoreShedsLoad,
        Self::SlowEndpoint,
        Self::Network,
        Self::ClientCpu,
        Self::ClientThreads,
        Self::ClientConnections,
        Self::Recorder,
        Self::Pacing,
        Self::NotEnoughLoad,
        Self::Unknown,
    ];

    /// Returns its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::StoreShedsLoad => "store-sheds-load",
            Self::SlowEndpoint => "slow-endpoint",
            Self::Network => "network",
            Self::ClientCpu => "client-cpu",
            Self::ClientThreads => "client-threads",
            Self::ClientConnections => "client-connections",
            Self::Recorder => "recorder",
            Self::Pacing => "pacing",
            Self::NotEnoughLoad => "not-enough-load",
            Self::Unknown => "unknown",
        }
    }

    /// Tells whether it is the client, so that the figures are not those of the store.
    pub const fn is_client(self) -> bool {
        match self {
            Self::ClientCpu
            | Self::ClientThreads
            | Self::ClientConnections
            | Self::Recorder
            | Self::Pacing => true,
            Self::Store
            | Self::StoreShedsLoad
            | Self::SlowEndpoint
            | Self::Network
            | Self::NotEnoughLoad
            | Self::Unknown => false,
        }
    }
}

/// Who was the limit of a stage, and why that is believed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Who.
    pub class: LimitClass,
    /// Whether that is the client: the figures are then not a measurement of the store.
    #[serde(rename = "is_client_limit")]
    pub is_client: bool,
    /// The same in one sentence.
    pub sentence: String,
    /// What is known, those lines first that decided.
    pub evidence: Vec<EvidenceLine>,
    /// What to do to confirm it or to find out that it is wrong.
    pub experiment: String,
}

/// Something that is known of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvidenceLine {
    /// In words and figures.
    pub text: String,
    /// Whether the verdict rests on it.
    pub decides: bool,
}

/// A class with the lines that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) class: LimitClass,
    pub(crate) sentence: String,
    pub(crate) because: Vec<String>,
    pub(crate) experiment: String,
}

/// Returns who was the limit of a stage; `None` where nothing was seen of any client, as in virtual
/// time and in records of other tools.
///
/// What is looked at, in this order: whether the client could make its connections; whether the
/// store refused a good part of the load in so many words; evidence that the client was short of
/// something; whether the store was away; whether the store refused some of the load; whether the
/// load that was asked for was carried; whether threads of the client were full; and only then the
/// way to the store and the store itself.
pub fn judge(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Option<Verdict> {
    if clients.is_empty() {
        return None;
    }
    let finding = client::closed_in(clients)
        .or_else(|| load::refuses(load, clients))
        .or_else(|| client::short_of(clients))
        .or_else(|| load::away(load))
        .or_else(|| load::nothing_done(load))
        .or_else(|| load::sheds(load))
        .or_else(|| load::carried(load))
        .or_else(|| client::threads_full(load, clients))
        .or_else(|| load::late(load, clients))
        .or_else(|| load::slow_endpoint(load))
        .or_else(|| load::network(load, clients))
        .unwrap_or_else(|| load::closed(load, clients));
    Some(verdict(finding, words::known(load, clients)))
}

/// Returns a verdict with all that is known below it, a line once.
fn verdict(finding: Finding, known: Vec<String>) -> Verdict {
    let Finding { class, sentence, because, experiment } = finding;
    let mut evidence: Vec<EvidenceLine> = Vec::new();
    let others = known.into_iter().filter(|text| !because.contains(text)).collect::<Vec<_>>();
    evidence.extend(because.into_iter().map(|text| EvidenceLine { text, decides: true }));
    evidence.extend(others.into_iter().map(|text| EvidenceLine { text, decides: false }));
    Verdict { class, is_client: class.is_client(), sentence, evidence, experiment }
}
