//! How well an open loop kept its schedule, and what to change where it did not.

use std::time::Duration;

use plimsoll_analysis::{FullLoad, RowAnalysis};
use plimsoll_model::{OpRate, per_sec};
use plimsoll_workload::{ArrivalLaw, RateProfile};
use serde::Serialize;

use crate::format::plural;
use crate::format::{UNKNOWN, count, duration, known, number, op_rate, percent};
use crate::report::RowView;
use crate::serial;

/// What queueing theory says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueTheory {
    /// Half of the operations take at most so long, from the intended start to the end.
    #[serde(rename = "latency_ns_p50", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub latency_p50: Duration,
    /// 99 of 100 do.
    #[serde(rename = "latency_ns_p99", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub latency_p99: Duration,
}

/// What stands for the explanation where a part of the operations was left out.
const OF_PART: &str = "The report of all operations says what held it back";

/// What was seen of the operations of an open loop, for the advice on its schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) service_mean: Option<Duration>,
    pub(crate) service_max: Option<Duration>,
    pub(crate) failed_count: u64,
    /// For how long clients stood still, on average.
    pub(crate) stood_still: Duration,
    /// The load while it took nearly all of its places; `None` if it did not, or that is unknown.
    pub(crate) full_load: Option<FullLoad>,
    /// The part of the time in which the threads that make the load computed, 0 to 1.
    pub(crate) cpu_share: Option<f64>,
}

impl Observed {
    /// Threads that compute for this part of the time may be what holds the load back.
    const CPU_SHARE_BUSY: f64 = 0.8;

    fn busy_share(&self) -> Option<f64> {
        self.cpu_share.filter(|share| *share >= Self::CPU_SHARE_BUSY)
    }
}

/// Returns for how long each client of a row stood still, on average: none of its share of the load
/// could start meanwhile.
pub(crate) fn stood_still(of: &RowAnalysis) -> Duration {
    let clients = of.clients.len().max(1) as u32;
    of.ledger.as_ref().map_or(Duration::ZERO, |ledger| ledger.stood_still / clients)
}

/// The schedule of an open loop, and what came of it. What a run that was killed did not write
/// down is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleReport {
    /// The rate as it was asked for, such as `100/s..5000/s over 2m`; of merged runs, that of each.
    pub rates: Vec<RateProfile>,
    /// The highest rate it asks for.
    #[serde(rename = "rate_peak_ops_per_sec", serialize_with = "serial::rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub rate_peak: OpRate,
    /// How the arrivals lie about the rates, each law once.
    pub arrivals: Vec<ArrivalLaw>,
    /// How many operations may have been under way at once.
    #[serde(rename = "in_flight_count_max")]
    pub max_in_flight: u32,
    /// From the start of the stage to the first moment at which an operation could arrive that
    /// counts: the end of the first ramp.
    #[serde(rename = "started_after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub started_after: Duration,
    /// How long operations arrived from then on: until the end of the duration, or until something
    /// else ended the schedule; those under way then are not waited for.
    #[serde(rename = "duration_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub lasted: Option<Duration>,
    /// How many arrived in that time.
    pub offered_count: Option<u64>,
    /// How many of them were issued more than 1 ms after their intended start.
    pub late_count: Option<u64>,
    /// How many of them were never issued.
    pub skipped_count: Option<u64>,
    /// How many of them a replay held back, as an earlier operation on the same object had not
    /// ended; they are not among the late ones.
    pub held_count: u64,
    /// The longest schedule delay of those that were issued.
    #[serde(rename = "delay_ns_max", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub delay_max: Option<Duration>,
}

impl ScheduleReport {
    /// One in so many operations may be late or skipped.
    const MISSED_ONE_IN_MIN: u64 = 100;

    /// Returns how many operations a second arrived.
    pub fn rate_offered(&self) -> Option<OpRate> {
        per_sec(self.offered_count? as f64, self.lasted?).map(OpRate)
    }

    /// Tells whether at most 1 % of the operations were late or skipped, as far as is known.
    pub fn is_kept(&self) -> bool {
        let missed = self.missed_count().saturating_mul(Self::MISSED_ONE_IN_MIN);
        self.offered_count.is_none_or(|offered| missed <= offered)
    }

    pub(crate) fn missed_count(&self) -> u64 {
        self.late_count.unwrap_or(0).saturating_add(self.skipped_count.unwrap_or(0))
    }

    /// Returns by how much a schedule was not kept, and what to change; `None` if it was.
    ///
    /// `observed` is `None` where a part of the operations was left out.
    pub(crate) fn warning(&self, observed: Option<&Observed>) -> Option<String> {
        let offered = self.offered_count.filter(|_| !self.is_kept())?;
        let missed = self.missed_count();
        let text = |number: Option<u64>| known(number, count);
        Some(format!(
            "SCHEDULE NOT KEPT: {} of {} ({}) did not start on time, {} by more than 1 ms and {} \
             not at all, so the load was not the one asked for. {}",
            count(missed),
            plural(offered, "operation"),
            percent(missed as f64 / offered as f64 * 100.0),
            text(self.late_count),
            text(self.skipped_count),
            observed.map_or_else(|| OF_PART.to_owned(), |observed| self.hint(observed))
        ))
    }

    /// Returns what held the load back, by Little's law: in flight = rate × time.
    fn hint(&self, observed: &Observed) -> String {
        let limit = self.max_in_flight;
        let rate = self.rate_peak.0;
        let needs = |time: Option<Duration>, most: u64| {
            let time = time?;
            let needed = ((rate * time.as_secs_f64()).ceil() as u64).min(most);
            (needed > u64::from(limit)).then_some((needed, time))
        };
        let unsent = rate * observed.stood_still.as_secs_f64();
        if unsent * 2.0 >= self.missed_count().max(1) as f64 {
            let still = duration(observed.stood_still);
            return format!(
                "plimsoll itself stood still for {still}, in which nothing could start: run it \
                 again without stopping it"
            );
        }
        let full = observed.full_load.as_ref();
        if let Some(full) = full.filter(|full| full.is_saturated() == Some(true)) {
            return self.saturated(full, observed);
        }
        let limit = count(u64::from(limit));
        if let Some((needed, time)) = needs(observed.service_mean, u64::MAX) {
            return format!(
                "`max_in_flight` {limit} is below the {} that {}/s needs at the observed {}: raise \
                 it, or lower {}; if the achieved rate does not rise with it, the store completes \
                 no more",
                count(needed),
                number(rate),
                duration(time),
                self.load(),
            );
        }
        if let Some((needed, time)) = needs(observed.service_max, self.backlog_max()) {
            return format!(
                "While the store was slow, up to {} for an operation, {}/s needed up to {} in \
                 flight, and `max_in_flight` is {limit}: raise it; if that does not help, the \
                 client machine is too slow",
                duration(time),
                number(rate),
                count(needed)
            );
        }
        if observed.failed_count == 0 && observed.service_max.is_none() {
            return format!(
                "No operation succeeded: check first that the target answers at all, and why \
                operations used up `max_in_flight` {limit}"
            );
        }
        if observed.failed_count > 0 {
            return format!(
                "Failed operations may have used up `max_in_flight` {limit}: find out first why \
                they failed; a store that sheds load needs a lower {}, not more in flight",
                self.load()
            );
        }
        format!(
            "`max_in_flight` {limit} was enough at the observed {}, so the client machine is too \
            slow or too busy for {}/s: lower {}, or use another",
            known(observed.service_mean, duration),
            number(rate),
            self.load()
        )
    }

    /// Returns what says how much load there is: of a replay its speed.
    fn load(&self) -> &'static str {
        if self.is_of_trace() { "`speed`" } else { "`rate`" }
    }

    fn is_of_trace(&self) -> bool {
        self.arrivals == [ArrivalLaw::Trace]
    }

    /// Returns how many operations were in flight or waited for it at most: no more than what
    /// arrived during the longest delay.
    fn backlog_max(&self) -> u64 {
        let waited = self.delay_max;
        let waited = waited.map(|delay| (self.rate_peak.0 * delay.as_secs_f64()).ceil() as u64);
        waited.map_or(u64::MAX, |waited| waited.saturating_add(u64::from(self.max_in_flight)))
    }

    /// Returns what to do about a load that more operations in flight would not carry.
    fn saturated(&self, full: &FullLoad, observed: &Observed) -> String {
        let grew = full.half.map_or(String::new(), |half| {
            format!(
                " ({} with {} in flight, {} with {})",
                duration(half.service_mean),
                count(half.in_flight.round() as u64),
                duration(full.full.service_mean),
                count(full.full.in_flight.round() as u64)
            )
        });
        let who = observed.busy_share().map_or("The store".to_owned(), |share| {
            let busy = percent(share * 100.0);
            format!(
                "The store, or the client machine (its threads were busy {busy} of \
                 the time),"
            )
        });
        format!(
            "{who} completes about {}/s and cannot carry {}/s: more in flight only made \
             each operation take longer{grew}. Lower {}; a higher `max_in_flight` would make \
             the queue longer and no operation faster",
            number(full.completed.0),
            number(self.rate_peak.0),
            self.load()
        )
    }

    /// Returns offered and achieved rate and how well the schedule was kept, a name and a text
    /// each; without the achieved rate where it is not asked for.
    pub(crate) fn facts(&self, achieved: Option<Option<OpRate>>) -> Vec<(&'static str, String)> {
        let achieved =
            achieved.map_or(String::new(), |rate| format!("; achieved {}", known(rate, op_rate)));
        let offered = known(self.offered_count, |offered| plural(offered, "operation"));
        let share = |missed: Option<u64>| {
            let share = missed.zip(self.offered_count.filter(|offered| *offered > 0));
            let share = share.filter(|(missed, _)| *missed > 0);
            share.map_or(String::new(), |(missed, offered)| {
                format!(" ({})", percent(missed as f64 / offered as f64 * 100.0))
            })
        };
        let (late, skipped) = (self.late_count, self.skipped_count);
        let kept = match self.offered_count {
            None => UNKNOWN,
            Some(_) if self.is_kept() => "kept",
            Some(_) => "NOT KEPT",
        };
        let held = match self.held_count {
            0 => String::new(),
            held => format!("; {} held back by an earlier one on the same object", count(held)),
        };
        vec![
            (
                "offered",
                format!(
                    "{} ({offered} in {}){achieved}",
                    known(self.rate_offered(), op_rate),
                    known(self.lasted, duration)
                ),
            ),
            (
                "schedule",
                format!(
                    "{kept}: {} late by more than 1 ms{}, {} skipped{}, longest delay {}{held}",
                    known(late, count),
                    share(late),
                    known(skipped, count),
                    share(skipped),
                    known(self.delay_max, duration)
                ),
            ),
        ]
    }
}

impl RowView<'_> {
    /// Returns how many operations a second succeeded; `None` where some were left out.
    pub(crate) fn achieved(&self) -> Option<OpRate> {
        let rates = self.row.analysis.total.rates.filter(|_| !self.row.analysis.is_part);
        rates.map(|rates| rates.ops)
    }

    /// Returns by how much a schedule was not kept, and what to change; `None` if it was.
    pub(crate) fn schedule_warning(&self) -> Option<String> {
        let (total, schedule) = (&self.row.analysis.total, self.schedule()?);
        let in_flight = self.row.analysis.in_flight.as_ref();
        let observed = Observed {
            service_mean: total.service().mean,
            service_max: total.service().max,
            failed_count: total.stage.failed.count(),
            stood_still: stood_still(&self.row.analysis),
            full_load: in_flight.and_then(|of| of.full_load(schedule.max_in_flight)),
            cpu_share: self.cpu_share(),
        };
        schedule.warning((!self.row.analysis.is_part).then_some(&observed))
    }

    /// Returns the part of the stage in which its threads computed, 0 to 1.
    fn cpu_share(&self) -> Option<f64> {
        let stage = self.row.analysis.ended.since(self.row.analysis.started).as_secs_f64();
        let (cpu, threads) =
            self.stage.cpu.filter(|_| !self.virtual_time).zip(self.stage.threads)?;
        let share = cpu.as_secs_f64() / (stage * f64::from(threads));
        share.is_finite().then_some(share)
    }

    /// Returns offered and achieved rate and how well the schedule was kept, a name and a text
    /// each; nothing in a closed loop.
    pub(crate) fn schedule_facts(&self) -> Vec<(&'static str, String)> {
        let Some(schedule) = self.schedule() else { return Vec::new() };
        // A part of the operations achieves nothing that could be held against the schedule.
        schedule.facts((!self.row.analysis.is_part).then(|| self.achieved()))
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
