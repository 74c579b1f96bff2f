//! What worker threads and connections tell of themselves while a stage runs.

use std::time::Duration;

use crate::Moment;

/// What a thread used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Time on a processor.
    pub cpu: Duration,
    /// Time ready to run without a processor; `None` where the kernel does not tell.
    pub run_delay: Option<Duration>,
}

/// A span in which a whole process stood still: it was stopped (`SIGSTOP`, Ctrl-Z), had no
/// processor, or its machine was paused. Also one in which it was disturbed ([`DisturbedSeen`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standstill {
    /// When a thread that was due to run did not.
    pub from: Moment,
    /// From there until it ran.
    pub length: Duration,
}

impl Standstill {
    /// Returns when the process went on.
    pub fn until(&self) -> Moment {
        self.from.after(self.length)
    }

    /// Returns when it began and ended, in nanoseconds since the epoch of its clock.
    pub fn bounds_ns(&self) -> (u64, u64) {
        (self.from.as_ns(), self.until().as_ns())
    }
}

/// How many standstills of a client are kept, the longest; and as many of each kind of thing that a
/// client shows: threads, interfaces, devices.
pub const EVIDENCE_KEPT_MAX: usize = 64;

/// The times for which a process stood still: all of them counted, the longest kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandstillsSeen {
    /// How many there were.
    pub count: u64,
    /// For how long in all.
    pub total: Duration,
    /// The [`EVIDENCE_KEPT_MAX`] longest, in the order of time.
    pub longest: Vec<Standstill>,
}

impl StandstillsSeen {
    /// Adds one, which began after all others.
    pub fn add(&mut self, of: Standstill) {
        self.count += 1;
        self.total += of.length;
        self.longest.push(of);
        self.keep_longest();
    }

    /// Adds those of another process.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.total += other.total;
        self.longest.extend(other.longest);
        self.longest.sort_unstable();
        self.keep_longest();
    }

    /// Leaves the shortest out where there are too many, of those the latest.
    fn keep_longest(&mut self) {
        while self.longest.len() > EVIDENCE_KEPT_MAX {
            let each = self.longest.iter().enumerate().rev();
            let shortest = each.min_by_key(|(_, of)| of.length).map(|(at, _)| at);
            shortest.map(|at| self.longest.remove(at));
        }
    }
}

/// How many disturbed spans are kept of a client in a stage; of more, those that are closest to
/// each other become one.
pub const DISTURBED_KEPT_MAX: usize = 512;

/// The spans in which a client was disturbed: it stood still, its threads waited for a processor,
/// or a hypervisor took one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisturbedSeen {
    /// They do not overlap, and are in the order of time.
    pub spans: Vec<Standstill>,
}

impl DisturbedSeen {
    /// Adds one, which began no earlier than the last one. It goes on with that where they touch.
    pub fn add(&mut self, of: Standstill) {
        match self.spans.last_mut().filter(|last| last.until() >= of.from) {
            Some(last) => last.length = last.until().max(of.until()).since(last.from),
            None => self.spans.push(of),
        }
        if self.spans.len() > DISTURBED_KEPT_MAX {
            let gap = |at: &usize| self.spans[at + 1].from.since(self.spans[*at].until());
            let closest = (0..self.spans.len() - 1).min_by_key(gap);
            if let Some(at) = closest {
                let next = self.spans.remove(at + 1);
                self.spans[at].length = next.until().since(self.spans[at].from);
            }
        }
    }

    /// Returns how long they are together.
    pub fn total(&self) -> Duration {
        self.spans.iter().map(|of| of.length).sum()
    }
}

/// How many times of connections one thread keeps of each kind; those after them are counted only.
pub const SOCKET_SAMPLES_MAX: usize = 1_024;

/// What connections told, as the kernel counts; counts are of whole lives of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketsSeen {
    /// How many were made.
    pub opened: u64,
    /// How many requests went through an `io_uring`; all others went over sockets.
    pub over_ring: u64,
    /// How many were looked at when they were closed.
    pub closed: u64,
    /// How many could not be made as no local port was free.
    pub no_port: u64,
    /// How many could not be made as no descriptor was free.
    pub no_descriptor: u64,
    /// The shortest round trip of each, in microseconds.
    pub rtt_min_us: Vec<u32>,
    /// The smoothed round trip at each look, in microseconds.
    pub rtt_us: Vec<u32>,
    /// The rate at which content was acknowledged at each look, bytes a second.
    pub delivery: Vec<u64>,
    /// Segments with content that were sent.
    pub segments_sent: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Segments with content that came.
    pub segments_received: u64,
    /// Of these, out of order.
    pub out_of_order: u64,
    /// Time with something to send.
    pub busy: Duration,
    /// Of this, as the receiver's window was full.
    pub window_limited: Duration,
    /// Of this, as the send buffer was full.
    pub buffer_limited: Duration,
}

impl SocketsSeen {
    /// Adds what others told.
    pub fn merge(&mut self, mut other: Self) {
        self.opened += other.opened;
        self.over_ring += other.over_ring;
        self.closed += other.closed;
        self.no_port += other.no_port;
        self.no_descriptor += other.no_descriptor;
        self.rtt_min_us.append(&mut other.rtt_min_us);
        self.rtt_us.append(&mut other.rtt_us);
        self.delivery.append(&mut other.delivery);
        self.segments_sent += other.segments_sent;
        self.retransmits += other.retransmits;
        self.segments_received += other.segments_received;
        self.out_of_order += other.out_of_order;
        self.busy += other.busy;
        self.window_limited += other.window_limited;
        self.buffer_limited += other.buffer_limited;
    }

    /// Tells whether no connection was made or tried in vain.
    pub fn is_empty(&self) -> bool {
        self.opened + self.closed + self.no_port + self.no_descriptor == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_spans_that_touch_are_one_and_too_many_come_together() {
        let of = |from, until: u64| Standstill {
            from: Moment::from_ns(from),
            length: Duration::from_nanos(until - from),
        };
        let mut seen = DisturbedSeen::default();
        for span in [of(10, 20), of(20, 30), of(25, 28), of(31, 40)] {
            seen.add(span);
        }
        assert_eq!(seen.spans, [of(10, 30), of(31, 40)]);
        assert_eq!(seen.total(), Duration::from_nanos(29));
        let mut seen = DisturbedSeen::default();
        // The gap behind the hundredth is the shortest.
        let begin = |at: u64| at * 100 - if at == 100 { 50 } else { 0 };
        (0..=DISTURBED_KEPT_MAX as u64).for_each(|at| seen.add(of(begin(at), begin(at) + 10)));
        assert_eq!(seen.spans.len(), DISTURBED_KEPT_MAX);
        assert_eq!(seen.spans[98..100], [of(9_800, 9_810), of(9_900, 9_960)]);
    }

    #[test]
    fn of_endless_standstills_the_longest_are_kept_and_all_are_counted() {
        let of = |at: u64, length_ms| Standstill {
            from: Moment::from_ns(at),
            length: Duration::from_millis(length_ms),
        };
        let mut seen = StandstillsSeen::default();
        // One in ten lasts longer, the rest are alike: of these the first ones stay.
        (0..100).for_each(|at| seen.add(of(at, if at % 10 == 9 { 900 } else { 300 })));
        assert_eq!((seen.count, seen.total), (100, Duration::from_millis(90 * 300 + 10 * 900)));
        let expected: Vec<_> = (0..60)
            .map(|at| of(at, if at % 10 == 9 { 900 } else { 300 }))
            .chain([69, 79, 89, 99].map(|at| of(at, 900)))
            .collect();
        assert_eq!((seen.longest.len(), &seen.longest), (EVIDENCE_KEPT_MAX, &expected));
        let other = StandstillsSeen {
            count: 1,
            total: Duration::from_secs(5),
            longest: vec![of(3, 5_000)],
        };
        seen.merge(other);
        assert_eq!((seen.count, seen.longest.len()), (101, EVIDENCE_KEPT_MAX));
        assert_eq!(seen.longest[3..5], [of(3, 300), of(3, 5_000)]);
        assert_eq!(seen.longest.last(), Some(&of(99, 900)));
    }
}
