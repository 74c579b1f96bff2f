//! What the judge is told of a stage: its load with the figures, and each client that made it.

use std::time::Duration;

use plimsoll_model::OpKind;

use crate::{KindAnalysis, RowAnalysis};

/// The load of a stage and what came of it.
#[derive(Clone, Debug)]
pub struct LoadFacts<'a> {
    /// What ran at once, each job or group of jobs by itself.
    pub rows: Vec<RowFacts<'a>>,
    /// Addresses that operations could go to.
    pub endpoints: &'a [String],
}

/// A row of a stage.
#[derive(Clone, Debug)]
pub struct RowFacts<'a> {
    /// Its figures.
    pub analysis: &'a RowAnalysis,
    /// When its operations start.
    pub paced: Paced,
    /// How its schedules were kept, of an open loop where that is known.
    pub schedule: Option<ScheduleFacts>,
    /// Whether its workers pause between operations, as their workload asks.
    pub pauses: bool,
    /// Whether it worked on files.
    pub on_files: bool,
    /// How many operations could be under way at once.
    pub in_flight_max: u32,
}

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paced {
    /// At the end of the one before.
    Closed,
    /// Likewise, below a cap on the rate; `None` where clients differ in it.
    Capped(Option<f64>),
    /// On a schedule.
    Open,
}

/// How a schedule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleFacts {
    /// Operations that were due.
    pub offered: u64,
    /// Of these, issued late.
    pub late: u64,
    /// Of these, never issued.
    pub skipped: u64,
}

/// What was seen of one client; what is `None` or empty is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// What it is called, where there are several.
    pub name: Option<String>,
    /// From its first reading to its last.
    pub took: Duration,
    /// How often it stood still.
    pub standstills_count: u64,
    /// For how long in all.
    pub stood_still: Duration,
    /// How many processors it may use at once.
    pub cores: Option<f64>,
    /// How many worker threads it had.
    pub threads_count: u32,
    /// The busiest of its worker threads.
    pub threads: Vec<ThreadFacts>,
    /// Processor time of all of its worker threads.
    pub threads_cpu: Option<Duration>,
    /// Time that all of its worker threads waited for a processor.
    pub threads_delay: Option<Duration>,
    /// How much of the processor time of its whole process was the kernel's, 0 to 1.
    pub system_share: Option<f64>,
    /// Time that worker threads waited for the recorder, all added up.
    pub recorder_wait: Option<Duration>,
    /// Its machine.
    pub machine: Option<MachineFacts>,
    /// Its share of the machine, where that is bounded.
    pub quota: Option<QuotaFacts>,
    /// Its connections.
    pub sockets: Option<SocketFacts>,
    /// Connections that could not be made as no local port was free.
    pub no_port_count: u64,
    /// Connections and files that could not be opened as no descriptor was free.
    pub no_descriptor_count: u64,
    /// Descriptors that it may have.
    pub descriptors_max: Option<u64>,
    /// Its network interfaces, the busiest first.
    pub links: Vec<LinkFacts>,
    /// Block devices below its files, the busiest first.
    pub devices: Vec<DeviceFacts>,
}

/// A worker thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Time on a processor.
    pub cpu: Duration,
    /// Time ready to run, without a processor.
    pub delay: Duration,
}

/// The processors of a machine, in parts of the time of all of them, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineFacts {
    /// Busy, with whomever.
    pub busy: f64,
    /// Taken away by the hypervisor while there was work.
    pub steal: f64,
    /// Busy with this client.
    pub own: Option<f64>,
}

/// A bound on processor time that a control group sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuotaFacts {
    /// How many processors' worth; `None` where there is no bound at this level.
    pub cores: Option<f64>,
    /// Periods of the bound in which the group had something to run.
    pub periods: u64,
    /// Of these, in how many it was stopped.
    pub throttled: u64,
}

/// Connections of a client, as the kernel tells of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SocketFacts {
    /// How many were opened.
    pub opened: u64,
    /// How many requests went through an `io_uring`.
    pub over_ring: u64,
    /// The median over them of the shortest round trip of each.
    pub rtt_min: Option<Duration>,
    /// Segments with content that were sent.
    pub segments_sent: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Segments with content that came.
    pub segments_received: u64,
    /// Of these, out of order.
    pub out_of_order: u64,
    /// How much of the time with something to send the receiver's window was full, 0 to 1.
    pub window_limited: Option<f64>,
    /// How much of that time the send buffer was, 0 to 1.
    pub buffer_limited: Option<f64>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFacts {
    /// Its name.
    pub name: String,
    /// Bytes a second, of the direction with more of them.
    pub bytes_per_sec: f64,
    /// What it can carry in one direction, where that is known.
    pub capacity_bytes_per_sec: Option<f64>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// How much of the time it had something to do, 0 to 1.
    pub busy: f64,
    /// Requests in it and waiting for it, on average.
    pub queue: f64,
}

impl ClientFacts {
    /// Tells whether enough is known of it to say that it was not the limit.
    pub(crate) fn is_known(&self) -> bool {
        self.cpu_share().is_some() && self.delay_share().is_some()
    }

    /// Returns how much of its time each worker thread had a processor, 0 to 1, on average.
    pub(crate) fn cpu_share(&self) -> Option<f64> {
        self.of_threads(self.threads_cpu?)
    }

    /// Returns how much of its time it stood still, 0 to 1.
    pub(crate) fn still_share(&self) -> Option<f64> {
        share(self.stood_still, self.took)
    }

    /// Returns how much of its time each worker thread waited for a processor.
    pub(crate) fn delay_share(&self) -> Option<f64> {
        self.of_threads(self.threads_delay?)
    }

    /// Returns how much of its time each worker thread waited for the recorder.
    pub(crate) fn recorder_share(&self) -> Option<f64> {
        self.of_threads(self.recorder_wait?)
    }

    fn of_threads(&self, time: Duration) -> Option<f64> {
        let whole = self.took.as_secs_f64() * f64::from(self.threads_count);
        (whole > 0.0).then(|| time.as_secs_f64() / whole)
    }

    /// Returns how long a thread was busy or would have liked to be, as a share of the time.
    pub(crate) fn wanted(&self, thread: &ThreadFacts) -> Option<f64> {
        share(thread.cpu + thread.delay, self.took)
    }
}

impl ThreadFacts {
    /// Returns how much of the time in which it wanted a processor it had none.
    pub(crate) fn starved(&self) -> Option<f64> {
        share(self.delay, self.cpu + self.delay)
    }
}

impl QuotaFacts {
    /// Returns in what part of its periods it was stopped.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.periods > 0).then(|| self.throttled as f64 / self.periods as f64)
    }
}

impl SocketFacts {
    /// Returns the share of segments that were lost or overtaken, of the direction with more.
    pub(crate) fn lost(&self) -> Option<f64> {
        let of = |bad: u64, all: u64| (all > 0).then(|| bad as f64 / all as f64);
        let sent = of(self.retransmits, self.segments_sent);
        let received = of(self.out_of_order, self.segments_received);
        sent.into_iter().chain(received).reduce(f64::max)
    }
}

impl LinkFacts {
    /// Returns how much of what it can carry it carried, 0 to 1.
    pub(crate) fn used(&self) -> Option<f64> {
        self.capacity_bytes_per_sec.map(|most| self.bytes_per_sec / most)
    }
}

impl RowFacts<'_> {
    /// Returns how many operations were under way on average, by Little's law: the rate times the
    /// mean service time.
    pub(crate) fn in_flight(&self) -> Option<f64> {
        let total = &self.analysis.total;
        let mean = total.service().mean?.as_secs_f64();
        total.rates.map(|rates| rates.ops.0 * mean)
    }

    /// Returns how many operations came.
    pub(crate) fn ended(&self) -> u64 {
        self.analysis.total.stage.ended()
    }

    /// Tells whether it had the load that was asked for, in time. A closed loop asks for as much
    /// as it gets.
    pub(crate) fn is_carried(&self) -> bool {
        match self.paced {
            Paced::Closed => false,
            Paced::Capped(rate) => {
                // What begins and completes an upload waits for no turn.
                use OpKind::{AbortUpload, CompleteUpload, CreateUpload};
                let waits = |kind: &&KindAnalysis| {
                    !matches!(kind.kind, CreateUpload | CompleteUpload | AbortUpload)
                };
                let kinds = self.analysis.kinds.iter().filter(waits);
                let reached: f64 =
                    kinds.filter_map(|kind| kind.figures.rates).map(|rates| rates.ops.0).sum();
                let cap = rate.filter(|cap| *cap > 0.0);
                cap.is_some_and(|cap| reached >= cap * CAP_REACHED)
            }
            Paced::Open => self.schedule.is_some_and(|of| of.is_kept()),
        }
    }
}

/// A cap counts as reached from this part of it on: the first and the last second of a stage are
/// not whole.
pub(crate) const CAP_REACHED: f64 = 0.95;

impl ScheduleFacts {
    /// A schedule counts as kept while at most this share of its operations was late or skipped,
    /// as everywhere (`docs/measuring.md`).
    const LATE_SHARE_MAX: f64 = 0.01;

    /// Returns what share of its operations were late or never issued.
    pub(crate) fn late_share(&self) -> f64 {
        let late = (self.late + self.skipped) as f64;
        if self.offered == 0 { 0.0 } else { late / self.offered as f64 }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.late_share() <= Self::LATE_SHARE_MAX
    }
}

fn share(part: Duration, whole: Duration) -> Option<f64> {
    let whole = whole.as_secs_f64();
    (whole > 0.0).then(|| part.as_secs_f64() / whole)
}
