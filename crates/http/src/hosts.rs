//! Which endpoint the next operation goes to, decided per thread.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_model::Moment;

/// How long a host is left alone after its first failure to connect.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// How long at most.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// How hosts are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostSelect {
    /// The host with the fewest calls in flight; among those the one whose last call finished
    /// longest ago.
    #[default]
    Weighed,
    /// The next in turn.
    RoundRobin,
}

#[derive(Clone, Copy, Debug, Default)]
struct HostState {
    in_flight: u32,
    finished: Option<Moment>,
    /// How long it was last left alone; zero once a call got through.
    back_off: Duration,
    busy_until: Moment,
}

impl HostState {
    /// A host that could not be reached is busy for a while, and afterwards while one call tries it
    /// out: a dead host fails fast and would otherwise look idle.
    fn is_busy(&self, now: Moment) -> bool {
        !self.back_off.is_zero() && (now < self.busy_until || self.in_flight > 0)
    }

    fn fail(&mut self, now: Moment) {
        // Calls that were under way together and fail together count as one failure.
        if self.back_off.is_zero() || now >= self.busy_until {
            self.back_off = (self.back_off * 2).clamp(BACK_OFF_MIN, BACK_OFF_MAX);
            self.busy_until = now.after(self.back_off);
        }
    }
}

/// Chooses hosts for the sessions of one thread, which share it by `Rc`.
#[derive(Debug)]
pub struct HostChooser {
    select: HostSelect,
    hosts: Box<[Cell<HostState>]>,
    next: Cell<usize>,
}

impl HostChooser {
    /// Returns a chooser among `hosts_count` hosts, at least one.
    pub fn new(select: HostSelect, hosts_count: usize) -> Self {
        assert!(hosts_count > 0, "there is at least one host");
        let hosts = (0..hosts_count).map(|_| Cell::default()).collect();
        Self { select, hosts, next: Cell::new(0) }
    }

    /// Returns the host of the next call and counts that call as in flight until [`Self::done`].
    pub fn choose(&self, now: Moment) -> usize {
        let chosen = match self.select {
            _ if self.hosts.len() == 1 => 0,
            HostSelect::RoundRobin => self.next.replace((self.next.get() + 1) % self.hosts.len()),
            HostSelect::Weighed => self.least_busy(now),
        };
        let mut host = self.hosts[chosen].get();
        host.in_flight += 1;
        self.hosts[chosen].set(host);
        chosen
    }

    /// Notes that a call to `endpoint` is over; `failed` means that no connection could be made.
    pub fn done(&self, endpoint: usize, now: Moment, failed: bool) {
        let mut host = self.hosts[endpoint].get();
        debug_assert!(host.in_flight > 0, "every done follows a choose");
        host.in_flight = host.in_flight.saturating_sub(1);
        host.finished = Some(now);
        if failed {
            host.fail(now);
        } else {
            host.back_off = Duration::ZERO;
        }
        self.hosts[endpoint].set(host);
    }

    fn least_busy(&self, now: Moment) -> usize {
        let rank = |index: &usize| {
            let host = self.hosts[*index].get();
            (host.is_busy(now), host.in_flight, host.finished)
        };
        (0..self.hosts.len()).min_by_key(rank).expect("there is at least one host")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Moment {
        Moment::from_ns(ms * 1_000_000)
    }

    #[test]
    fn round_robin_takes_the_next_in_turn() {
        let chooser = HostChooser::new(HostSelect::RoundRobin, 3);
        let chosen: Vec<usize> = (0..7).map(|_| chooser.choose(ms(0))).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn weighed_takes_the_fewest_in_flight_then_the_longest_idle() {
        let chooser = HostChooser::new(HostSelect::Weighed, 3);
        assert_eq!(
            [chooser.choose(ms(0)), chooser.choose(ms(0)), chooser.choose(ms(0))],
            [0, 1, 2]
        );
        chooser.done(1, ms(5), false);
        assert_eq!(chooser.choose(ms(6)), 1, "the only idle one");
        chooser.done(2, ms(7), false);
        chooser.done(0, ms(8), false);
        chooser.done(1, ms(9), false);
        assert_eq!(chooser.choose(ms(10)), 2, "idle since 7 ms");
        assert_eq!(chooser.choose(ms(10)), 0, "idle since 8 ms");
        assert_eq!(chooser.choose(ms(10)), 1);
        assert_eq!(chooser.choose(ms(10)), 2, "all have one call, 2 finished longest ago");
    }

    #[test]
    fn a_dead_host_is_left_alone_for_a_doubling_time() {
        let chooser = HostChooser::new(HostSelect::Weighed, 2);
        let mut now = 0;
        for back_off in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            assert_eq!(chooser.choose(ms(now)), 0, "tried again at {now} ms");
            chooser.done(0, ms(now), true);
            for at in [now, now + back_off - 1] {
                assert_eq!(chooser.choose(ms(at)), 1, "at {at} ms host 0 is left alone");
                assert_eq!(chooser.choose(ms(at)), 1, "however much host 1 has in flight");
                chooser.done(1, ms(at), false);
                chooser.done(1, ms(at), false);
            }
            now += back_off;
        }
        // One call tries it out; when that gets through, it is a host like any other.
        assert_eq!(chooser.choose(ms(now)), 0);
        assert_eq!(chooser.choose(ms(now)), 1);
        assert_eq!(chooser.choose(ms(now)), 1, "host 0 is still on trial");
        chooser.done(0, ms(now), false);
        assert_eq!(chooser.choose(ms(now)), 0);
        assert_eq!(chooser.choose(ms(now)), 0);
    }

    #[test]
    fn failures_at_the_same_time_count_once_and_all_dead_means_any() {
        let chooser = HostChooser::new(HostSelect::Weighed, 2);
        for _ in 0..4 {
            chooser.choose(ms(0));
        }
        for host in [0, 0, 1, 1] {
            chooser.done(host, ms(1), true);
        }
        assert_eq!(chooser.choose(ms(2)), 0, "all are dead, so one of them is taken");
        chooser.done(0, ms(2), false);
        assert_eq!(chooser.choose(ms(100)), 0, "host 1 is left alone until 101 ms");
        assert_eq!(chooser.choose(ms(101)), 1);
    }
}
