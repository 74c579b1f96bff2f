//! By how much an agent's clock is ahead of the coordinator's, from exchanges of messages.

use std::collections::VecDeque;

use plimsoll_model::Moment;
use plimsoll_record::schema::ClockReading;
use serde::{Deserialize, Serialize};

/// So many exchanges are made before a clock is taken as known.
pub const PROBES: u32 = 16;

/// So many probes may be on their way at once.
const UNDER_WAY_MAX: usize = 16;

/// What an agent says of a probe, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// Which probe.
    pub probe: u64,
    /// When it was received.
    pub heard_ns: u64,
    /// When the answer was sent.
    pub said_ns: u64,
}

/// By how much an agent's clock is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// When that was measured, by the coordinator's clock.
    pub at: Moment,
    /// What the agent's clock shows more than the coordinator's at one instant, in nanoseconds.
    pub ns: i64,
    /// By how much that may be wrong either way: half of the time that the messages were on their
    /// way.
    pub uncertainty_ns: u64,
}

impl Offset {
    /// Returns what the agent's clock shows at a moment of the coordinator's; before its epoch, 0.
    pub fn to_agent(self, at: Moment) -> Moment {
        Moment::from_ns(at.as_ns().saturating_add_signed(self.ns))
    }

    /// Returns the coordinator's moment at which the agent's clock shows `at`; before its epoch, 0.
    pub fn to_coordinator(self, at: Moment) -> Moment {
        Moment::from_ns(at.as_ns().saturating_add_signed(self.ns.saturating_neg()))
    }

    /// Works an offset out of one exchange (RFC 5905, section 8): `sent` and `received` are by the
    /// coordinator's clock, the echo by the agent's.
    fn of(sent: Moment, echo: &Echo, received: Moment) -> Option<Self> {
        let (sent, back) = (i128::from(sent.as_ns()), i128::from(received.as_ns()));
        let (heard, said) = (i128::from(echo.heard_ns), i128::from(echo.said_ns));
        let on_way = (back - sent) - (said - heard);
        if on_way < 0 || said < heard || back < sent {
            return None;
        }
        let ns = i64::try_from(((heard - sent) + (said - back)) / 2).ok()?;
        // Rounded up, as is the half of an odd sum above.
        let uncertainty_ns = u64::try_from((on_way + 1) / 2 + 1).ok()?;
        Some(Self { at: received, ns, uncertainty_ns })
    }
}

impl From<&ClockReading> for Offset {
    fn from(reading: &ClockReading) -> Self {
        let ClockReading { at_ns, offset_ns, uncertainty_ns, .. } = *reading;
        Self { at: Moment::from_ns(at_ns), ns: offset_ns, uncertainty_ns }
    }
}

/// By how much an agent's clock is ahead while a stage goes on: as was measured before it, and as
/// was measured after it, once that is known; in between along a straight line, as clocks drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockLine {
    begin: Offset,
    end: Option<Offset>,
}

impl From<Offset> for ClockLine {
    fn from(begin: Offset) -> Self {
        Self { begin, end: None }
    }
}

impl ClockLine {
    /// Returns it with what was measured afterwards. A difference that may be one of the measuring
    /// is no drift.
    #[must_use]
    pub fn until(self, end: Offset) -> Self {
        let Offset { ns, uncertainty_ns, .. } = self.begin;
        let drifts = ns.abs_diff(end.ns) > uncertainty_ns.saturating_add(end.uncertainty_ns);
        Self { end: drifts.then_some(end), ..self }
    }

    /// Returns by how much the clock is ahead when it shows `at`. All moments of one operation are
    /// moved by the same, so that no latency depends on two clocks.
    pub fn at(&self, at: Moment) -> Offset {
        let Self { begin, end: Some(end) } = self else { return self.begin };
        let span = end.at.since(begin.at).as_nanos() as i128;
        if span == 0 {
            return *begin;
        }
        let since = begin.to_coordinator(at).since(begin.at).as_nanos() as i128;
        let drift = (i128::from(end.ns) - i128::from(begin.ns)) * since.min(span) / span;
        // It lies between the two.
        let ns = (i128::from(begin.ns) + drift) as i64;
        let uncertainty_ns = begin.uncertainty_ns.max(end.uncertainty_ns);
        Offset { at: begin.at, ns, uncertainty_ns }
    }

    /// Returns the coordinator's moment at which the agent's clock shows `at`.
    pub fn to_coordinator(&self, at: Moment) -> Moment {
        self.at(at).to_coordinator(at)
    }
}

/// The exchanges with one agent.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Those that may still be answered, with when they went out.
    sent: VecDeque<(u64, Moment)>,
    number: u64,
    heard: u32,
    best: Option<Offset>,
}

impl Probes {
    /// Forgets what was measured, so that it is measured anew; a probe under way still counts.
    pub fn begin(&mut self) {
        self.heard = 0;
        self.best = None;
    }

    /// Returns the number of a probe that goes out now.
    pub fn send(&mut self, now: Moment) -> u64 {
        self.number += 1;
        if self.sent.len() == UNDER_WAY_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((self.number, now));
        self.number
    }

    /// Takes note of an answer; returns whether it was one to a probe under way.
    pub fn hear(&mut self, echo: &Echo, now: Moment) -> bool {
        let found = self.sent.iter().position(|(number, _)| *number == echo.probe);
        let Some((_, sent)) = found.and_then(|at| self.sent.remove(at)) else { return false };
        let Some(offset) = Offset::of(sent, echo, now) else { return false };
        self.heard += 1;
        if self.best.is_none_or(|best| offset.uncertainty_ns < best.uncertainty_ns) {
            self.best = Some(offset);
        }
        true
    }

    /// Returns how many answers came since the measurement began.
    pub fn heard_count(&self) -> u32 {
        self.heard
    }

    /// Returns the offset by the exchange whose messages were on their way for the shortest time.
    pub fn best(&self) -> Option<Offset> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_uncertainty(
            // Three hours either way, and messages of up to 100 ms, not alike there and back.
            offset in -10_800_000_000_000_i64..10_800_000_000_000,
            ways in prop::collection::vec(
                (0_u64..100_000_000, 0_u64..100_000_000, 0_u64..5_000_000),
                1..20,
            ),
        ) {
            let epoch = 20_000_000_000_000_u64;
            let mut probes = Probes::default();
            let mut now = epoch;
            for (there, back, inside) in ways {
                let probe = probes.send(Moment::from_ns(now));
                let agent = |at: u64| at.saturating_add_signed(offset);
                let (heard_ns, said_ns) = (agent(now + there), agent(now + there + inside));
                now += there + inside + back;
                let echo = Echo { probe, heard_ns, said_ns };
                prop_assert!(probes.hear(&echo, Moment::from_ns(now)));
                prop_assert!(!probes.hear(&echo, Moment::from_ns(now)), "an answer counts once");
            }
            let best = probes.best().unwrap();
            prop_assert!(best.ns.abs_diff(offset) <= best.uncertainty_ns);
            let at = Moment::from_ns(epoch);
            prop_assert_eq!(best.to_coordinator(best.to_agent(at)), at);
        }
    }

    #[test]
    fn a_clock_that_drifts_is_followed_between_two_measurements() {
        let offset = |at, ns| Offset { at: Moment::from_ns(at), ns, uncertainty_ns: 5 };
        // 100 ns ahead at 1 s, and 2,100 ns at 3 s.
        let begin = offset(1_000_000_000, 100);
        let line = ClockLine::from(begin);
        let shown = |at: u64, ahead: u64| Moment::from_ns(at + ahead);
        assert_eq!(line.at(shown(2_000_000_000, 1_100)), begin, "nothing else is known yet");
        let line = line.until(offset(3_000_000_000, 2_100));
        for (at, ahead) in [(1_000_000_000, 100), (2_000_000_000, 1_100), (3_000_000_000, 2_100)] {
            let back = line.to_coordinator(shown(at, ahead)).as_ns();
            assert!(back.abs_diff(at) <= 1, "{back} {at}");
        }
        // Before and behind it goes on as at the ends.
        assert_eq!(line.at(Moment::EPOCH).ns, 100);
        assert_eq!(line.at(shown(9_000_000_000, 2_100)).ns, 2_100);
        // What may be one of the measuring is none of the clock.
        let still = ClockLine::from(begin).until(offset(3_000_000_000, 110));
        assert_eq!(still.at(shown(3_000_000_000, 110)), begin);
    }

    #[test]
    fn what_no_clock_can_show_does_not_count() {
        let mut probes = Probes::default();
        let probe = probes.send(Moment::from_ns(1_000));
        // The agent claims to have had the probe for longer than it was away.
        let echo = Echo { probe, heard_ns: 0, said_ns: 5_000 };
        assert!(!probes.hear(&echo, Moment::from_ns(2_000)));
        let probe = probes.send(Moment::from_ns(3_000));
        assert!(
            !probes
                .hear(&Echo { probe: probe + 1, heard_ns: 1, said_ns: 2 }, Moment::from_ns(4_000))
        );
        assert_eq!((probes.best(), probes.heard_count()), (None, 0));
    }
}
