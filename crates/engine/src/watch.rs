//! Watches what is recorded for the moment at which a stop rule holds.

use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_model::{Moment, OpKind, OpRecord, PackedOp, StageKind, WorkerId};
use plimsoll_stats::{
    AmountSeries, BATCH_NS_MIN, BATCHES_MIN, BatchMetric, Batches, ConfidenceInterval, Percentile,
    STEADY_PARTS, STEADY_PARTS_COMPARED, Steady, SteadyRule,
};
use plimsoll_workload::{Metric, Precision, StopRule, Workload};

use crate::live::StopFlag;
use crate::planner::EndReason;

/// How often the rules are looked at.
const CHECK: Duration = Duration::from_secs(1);

/// What can end the loop of a worker from outside.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// The user's.
    pub(crate) user: &'a StopFlag,
    /// The stage's own: set once, when a stop rule holds.
    pub(crate) rule: &'a OnceLock<Verdict>,
}

impl Stops<'_> {
    /// Returns why to end, if there is a reason.
    pub(crate) fn reason(&self) -> Option<EndReason> {
        if self.user.is_set() {
            return Some(EndReason::Stopped);
        }
        self.rule.get().map(|verdict| verdict.reason)
    }
}

/// A rule that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: EndReason,
    /// The same in words, with figures.
    pub(crate) because: String,
}

/// One rule with what it has to know of the operations so far, for one kind of operation.
enum Watched {
    Steady { rule: SteadyRule, series: AmountSeries },
    Until { asked: Vec<Precision>, batches: Batches },
}

impl Watched {
    fn new(rule: &StopRule, kind: OpKind) -> Self {
        match rule {
            StopRule::Steady { window, percent } => Self::Steady {
                rule: steady_rule(*window, *percent),
                series: AmountSeries::default(),
            },
            StopRule::Until(asked) => {
                // A kind that moves nothing has no throughput to wait for.
                let applies =
                    |each: &&Precision| each.metric != Metric::Throughput || kind.moves_bytes();
                let asked = asked.iter().filter(applies).copied().collect();
                Self::Until { asked, batches: Batches::default() }
            }
        }
    }

    /// Returns in words why the rule holds, if it does.
    fn holds(&mut self, from_ns: u64, to_ns: u64) -> Option<String> {
        match self {
            Self::Steady { rule, series } => {
                Some(in_words(rule, &series.steady(rule, from_ns, to_ns)?))
            }
            Self::Until { asked, batches } => {
                let met: Option<Vec<String>> =
                    asked.iter().map(|each| meets(each, batches, from_ns, to_ns)).collect();
                Some(met?.join("; "))
            }
        }
    }
}

/// A rule, which holds when it does so for every kind of operation that the workload is about.
struct Rule {
    reason: EndReason,
    by_kind: Vec<(OpKind, Watched)>,
}

/// The stop rules of a stage under way. Moments inside are nanoseconds since its start.
pub(crate) struct Watch {
    started: Moment,
    due: Moment,
    active: ActiveRange,
    rules: Vec<Rule>,
}

impl Watch {
    /// Returns the watch over a stage that begins at `started`, `None` where no rule can end it.
    pub(crate) fn new(workload: &Workload, kind: StageKind, started: Moment) -> Option<Self> {
        if kind != StageKind::Measure || workload.stop_rules.is_empty() {
            return None;
        }
        let kinds = workload.activity.kinds();
        let rules = workload.stop_rules.iter().map(|rule| Rule {
            reason: match rule {
                StopRule::Steady { .. } => EndReason::Steady,
                StopRule::Until(_) => EndReason::Until,
            },
            by_kind: kinds.iter().map(|kind| (*kind, Watched::new(rule, *kind))).collect(),
        });
        Some(Self {
            started,
            due: started.after(CHECK),
            active: ActiveRange::new(workload.lanes_count(kind).get()),
            rules: rules.collect(),
        })
    }

    /// Takes note of operations that have ended. Failed ones were done by an active worker, but
    /// nothing else came of them.
    pub(crate) fn observe(&mut self, ops: &[PackedOp]) {
        for op in ops.iter().map(OpRecord::from) {
            let since = |moment: Moment| moment.as_ns().saturating_sub(self.started.as_ns());
            let (start_ns, end_ns) = (since(op.start), since(op.end));
            self.active.ended(op.worker, end_ns);
            if !op.outcome.is_ok() {
                continue;
            }
            let latency_ns = op.latency().as_nanos() as u64;
            let of_kind = self.rules.iter_mut().flat_map(|rule| &mut rule.by_kind);
            for (_, watched) in of_kind.filter(|(kind, _)| *kind == op.kind) {
                match watched {
                    Watched::Steady { series, .. } => {
                        series.record(start_ns, end_ns, op.bytes, u64::from(op.objects_count));
                    }
                    Watched::Until { batches, .. } => {
                        batches.record(start_ns, end_ns, latency_ns, op.bytes);
                    }
                }
            }
        }
    }

    /// Returns the rule that holds, if it is time to look and one does.
    pub(crate) fn check(&mut self, now: Moment) -> Option<Verdict> {
        if now < self.due {
            return None;
        }
        // Whole seconds of the stage, however late the look at one of them was.
        while self.due <= now {
            self.due = self.due.after(CHECK);
        }
        let (from_ns, to_ns) = self.active.range()?;
        self.rules.iter_mut().find_map(|rule| {
            let several = rule.by_kind.len() > 1;
            let held = rule.by_kind.iter_mut().map(|(kind, watched)| {
                let because = watched.holds(from_ns, to_ns)?;
                Some(if several { format!("{}: {because}", kind.name()) } else { because })
            });
            let because = held.collect::<Option<Vec<String>>>()?.join("; ");
            Some(Verdict { reason: rule.reason, because })
        })
    }
}

/// Returns the shortest time after which `rule` can hold.
pub fn stop_time_min(rule: &StopRule) -> Duration {
    Duration::from_nanos(match rule {
        StopRule::Steady { window, percent } => steady_rule(*window, *percent).range_ns_min(),
        // The first batch is that in which the workers begin.
        StopRule::Until(_) => (BATCHES_MIN as u64 + 1) * BATCH_NS_MIN,
    })
}

fn steady_rule(window: Duration, percent: f64) -> SteadyRule {
    SteadyRule { window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX), percent }
}

fn in_words(rule: &SteadyRule, steady: &Steady) -> String {
    let what = if steady.by_bytes { "throughput" } else { "rate" };
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!(
        "{what} within {} % over the last {STEADY_PARTS_COMPARED} of {STEADY_PARTS} parts \
         ({:.1} s of {:.1} s)",
        rule.percent,
        seconds(steady.window_ns),
        seconds(steady.range_ns),
    )
}

/// Returns a sentence if the figure is known as well as asked.
fn meets(asked: &Precision, batches: &mut Batches, from_ns: u64, to_ns: u64) -> Option<String> {
    let metric = match asked.metric {
        Metric::Rate => BatchMetric::Rate,
        Metric::Throughput => BatchMetric::Throughput,
        Metric::Mean => BatchMetric::MeanLatency,
        Metric::P50 => BatchMetric::Latency(Percentile::P50),
        Metric::P90 => BatchMetric::Latency(Percentile::P90),
        Metric::P99 => BatchMetric::Latency(Percentile::P99),
        Metric::P99_9 => BatchMetric::Latency(Percentile::P99_9),
    };
    let interval = batches.interval(metric, from_ns, to_ns)?;
    let percent = interval.percent();
    let ConfidenceInterval { batches_count, batch_ns, .. } = interval;
    (percent <= asked.percent).then(|| {
        format!(
            "ci({}) is ±{percent:.1} %, at most {} % was asked ({batches_count} batches of {} s)",
            asked.metric.name(),
            asked.percent,
            batch_ns / BATCH_NS_MIN,
        )
    })
}

/// The stretch in which all workers were active, as far as it is known: from when each had ended
/// an operation to the earliest of the workers' latest ends. What ended before that is all
/// recorded, as a worker has one operation under way at a time.
struct ActiveRange {
    last_ends: Vec<Option<u64>>,
    not_begun: usize,
    from_ns: u64,
}

impl ActiveRange {
    fn new(workers: u32) -> Self {
        Self { last_ends: vec![None; workers as usize], not_begun: workers as usize, from_ns: 0 }
    }

    fn ended(&mut self, worker: WorkerId, end_ns: u64) {
        let last_end = &mut self.last_ends[worker.0 as usize];
        if last_end.is_none() {
            self.not_begun -= 1;
            self.from_ns = self.from_ns.max(end_ns);
        }
        *last_end = Some(last_end.map_or(end_ns, |last| last.max(end_ns)));
    }

    fn range(&self) -> Option<(u64, u64)> {
        let to_ns = self.last_ends.iter().copied().min().flatten()?;
        (self.not_begun == 0).then_some((self.from_ns, to_ns))
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
