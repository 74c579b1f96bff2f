//! What was seen of the clients while a stage ran, by which its verdict says who was the limit.
//!
//! Threads count from when they were let go to their end; what the machine counts is read just
//! before the stage and right after it. What the machine does not tell is null.

use serde::{Deserialize, Serialize};

/// How many disturbed spans of one client are kept.
pub use plimsoll_model::DISTURBED_KEPT_MAX;
/// How many threads, interfaces and devices of one client are kept, the busiest first, and how many
/// standstills, the longest.
pub use plimsoll_model::EVIDENCE_KEPT_MAX;

/// What was seen of one client of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientEvidence {
    /// The machine that it ran on.
    pub host: Option<String>,
    /// What people call it, where it is an agent of a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The run that it carried out, where the record was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// From when its workers were let go to the end of the last of them.
    pub took_ns: u64,
    /// How many processors it may use at once, in thousandths.
    pub cores_milli: Option<u64>,
    /// Its worker threads.
    pub threads: ThreadsEvidence,
    /// User time of its whole process.
    pub user_ns: Option<u64>,
    /// System time of its whole process.
    pub system_ns: Option<u64>,
    /// How often a worker thread waited as the recorder was behind.
    pub recorder_waits_count: u64,
    /// For how long in all.
    pub recorder_wait_ns: u64,
    /// The processors of its machine, with whomever they were busy.
    pub processors: Option<ProcessorsEvidence>,
    /// The bound on processor time of its control group, the tightest one above it.
    pub quota: Option<QuotaEvidence>,
    /// Its connections; null where it made none to a store.
    pub sockets: Option<SocketsEvidence>,
    /// Files and connections that it may have open.
    pub descriptors_max: Option<u64>,
    /// How many it had open at the last reading.
    pub descriptors_count: Option<u64>,
    /// The interfaces of its machine that carried something, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceEvidence>,
    /// The devices below its files under test, the busiest first; none where these are in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceEvidence>,
    /// How often it stood still for 250 ms or more: stopped, without a processor, or on a machine
    /// that was paused.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub standstills_count: u64,
    /// For how long in all.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub stood_still_ns: u64,
    /// When that was, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standstills: Vec<StandstillEvidence>,
    /// When it was disturbed, in the order of time: it stood still, a worker thread waited 2 ms or
    /// more for a processor within 20 ms, or a hypervisor took one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<StandstillEvidence>,
}

/// A time for which a client stood still or was disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandstillEvidence {
    /// From when the client began the stage to when that began.
    pub from_ns: u64,
    /// From there until its end.
    pub length_ns: u64,
}

/// The worker threads of a client, without its recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadsEvidence {
    /// How many.
    pub count: u32,
    /// Time on a processor, all added up.
    pub cpu_ns: Option<u64>,
    /// Time ready to run without a processor (the run queue), all added up.
    pub run_delay_ns: Option<u64>,
    /// The busiest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<ThreadEvidence>,
}

/// A worker thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadEvidence {
    /// Time on a processor.
    pub cpu_ns: u64,
    /// Time ready to run without a processor.
    pub run_delay_ns: u64,
}

/// The processors of a machine: time of all of them added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorsEvidence {
    /// All time that there was.
    pub all_ns: u64,
    /// Busy, with whomever.
    pub busy_ns: u64,
    /// Taken by the hypervisor while there was something to run.
    pub steal_ns: u64,
}

/// A control group's bound on processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaEvidence {
    /// How many processors' worth, in thousandths; null where nothing is bounded.
    pub cores_milli: Option<u64>,
    /// Periods in which the group had something to run.
    pub periods_count: u64,
    /// Periods in which it was stopped.
    pub throttled_count: u64,
    /// For how long, all of its threads added up.
    pub throttled_ns: u64,
}

/// The connections of a client to the store, as the kernel counts (`TCP_INFO`): of each what it had
/// come to when it was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketsEvidence {
    /// How many were made.
    pub opened_count: u64,
    /// How many requests went through an `io_uring`; all others went over sockets.
    pub io_uring_requests_count: u64,
    /// How many were looked at; all the rest of these figures are of them.
    pub seen_count: u64,
    /// How many could not be made as no local port was free.
    pub no_port_count: u64,
    /// How many could not be made as no descriptor was free.
    pub no_descriptor_count: u64,
    /// The median over connections of the shortest round trip of each.
    pub rtt_min_ns: Option<u64>,
    /// The median over all looks of the smoothed round trip; it has delayed acknowledgements in it,
    /// and so up to 40 ms of what the server took.
    pub rtt_ns: Option<u64>,
    /// Segments with content that were sent.
    pub segments_sent_count: u64,
    /// Segments that were sent again.
    pub retransmits_count: u64,
    /// Segments with content that came.
    pub segments_received_count: u64,
    /// Of these, out of order.
    pub out_of_order_count: u64,
    /// Time with something to send, all added up.
    pub busy_ns: u64,
    /// Of this, as the window of the receiver was full.
    pub window_limited_ns: u64,
    /// Of this, as the send buffer was full.
    pub buffer_limited_ns: u64,
    /// The median over all looks of the rate at which content was acknowledged.
    pub delivery_bytes_per_sec: Option<u64>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceEvidence {
    /// Its name.
    pub name: String,
    /// Bytes that came.
    pub received_bytes: u64,
    /// Bytes that went.
    pub sent_bytes: u64,
    /// Packets that were dropped or damaged, either way.
    pub lost_count: u64,
    /// What it carries in one direction; null for the loopback and virtual ones.
    pub bits_per_sec: Option<u64>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceEvidence {
    /// Its name.
    pub name: String,
    /// Requests that ended.
    pub requests_count: u64,
    /// Time with a request in it.
    pub busy_ns: u64,
    /// Time of all requests in it added up, so that its share of the time is how many there were.
    pub queue_ns: u64,
}

impl ClientEvidence {
    /// Keeps no more of anything than one client has.
    pub fn truncate(&mut self) {
        self.threads.busiest.truncate(EVIDENCE_KEPT_MAX);
        self.interfaces.truncate(EVIDENCE_KEPT_MAX);
        self.devices.truncate(EVIDENCE_KEPT_MAX);
        self.standstills.sort_by_key(|of| std::cmp::Reverse(of.length_ns));
        self.standstills.truncate(EVIDENCE_KEPT_MAX);
        self.standstills.sort_unstable();
        self.disturbed.truncate(DISTURBED_KEPT_MAX);
    }
}

/// Returns what was seen of all clients of several runs of a stage, each with the run's id, in an
/// order that does not depend on theirs.
pub fn join_evidence<'a>(
    runs: impl Iterator<Item = (&'a str, &'a Vec<ClientEvidence>)>,
) -> Vec<ClientEvidence> {
    let of_run = |(run_id, evidence): (&str, &'a Vec<ClientEvidence>)| {
        let run_id = run_id.to_owned();
        // Of a run that was merged before each knows whose it is.
        evidence.iter().map(move |of| ClientEvidence {
            run_id: Some(of.run_id.clone().unwrap_or_else(|| run_id.clone())),
            ..of.clone()
        })
    };
    let mut all: Vec<ClientEvidence> = runs.flat_map(of_run).collect();
    all.sort();
    all
}
