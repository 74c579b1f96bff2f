//! Watches what is recorded for the moment at which a stop rule holds.

use std::time::Duration;

use plimsoll_model::{EndReason, JobId, Moment, OpKind, OpRecord, PackedOp, WorkerId};
use plimsoll_stats::{
    AmountSeries, BATCH_NS_MIN, BATCHES_MIN, BatchMetric, Batches, ConfidenceInterval, Percentile,
    STEADY_PARTS, STEADY_PARTS_COMPARED, Steady, SteadyRule,
};
use plimsoll_workload::{Metric, Precision, StopRule, start_delay};

use crate::seen::{JobSeen, PartSeen, RuleSeen};
use crate::timing::{JobTiming, Verdict};

/// How often the rules are looked at.
const CHECK: Duration = Duration::from_secs(1);

/// The stop rules of a stage whose parts others carry out.
pub struct StageRules(Watch);

impl StageRules {
    pub(crate) fn new(jobs: &[WatchedJob<'_>], rules: &[StopRule]) -> Option<Self> {
        Watch::new(jobs, rules, Moment::EPOCH).map(Self)
    }

    /// Returns how many series of numbers each part tells of: one for each rule, job and kind.
    pub fn count(&self) -> usize {
        let rules = self.0.jobs.iter().flat_map(|job| &job.rules);
        rules.map(|rule| rule.by_kind.len()).sum()
    }

    /// Returns which rule holds for all parts together, if one does, and why in words. Parts that
    /// mean something else are as if they had not been told.
    pub fn judge(&self, parts: &[&PartSeen]) -> Option<(EndReason, String)> {
        let mut all = self.0.clone();
        let mut ranges = Vec::new();
        for (index, job) in all.jobs.iter_mut().enumerate() {
            let mut range: Option<(u64, u64)> = None;
            for part in parts {
                let seen = part.jobs.get(index).filter(|seen| job.fits(seen))?;
                if !seen.has_workers {
                    continue;
                }
                let (from, to) = seen.active_ns?;
                let (first, last) = range.unwrap_or((from, to));
                range = Some((first.max(from), last.min(to)));
                job.add(seen);
            }
            ranges.push(range?);
        }
        let verdict = all.held(&ranges)?;
        Some((verdict.reason, verdict.because))
    }
}

impl SeenJob {
    /// Tells whether somebody else's numbers are of this job's rules.
    fn fits(&self, seen: &JobSeen) -> bool {
        let is_alike = |(rule, seen): (&Rule, &Vec<RuleSeen>)| {
            let of_kind = rule.by_kind.iter().zip(seen).all(|((_, watched), seen)| {
                matches!(
                    (watched, seen),
                    (Watched::Steady { .. }, RuleSeen::Amounts(_))
                        | (Watched::Until { .. }, RuleSeen::Batches(_))
                )
            });
            of_kind && rule.by_kind.len() == seen.len()
        };
        self.rules.len() == seen.rules.len() && self.rules.iter().zip(&seen.rules).all(is_alike)
    }

    fn add(&mut self, seen: &JobSeen) {
        for (rule, seen) in self.rules.iter_mut().zip(&seen.rules) {
            for ((_, watched), seen) in rule.by_kind.iter_mut().zip(seen) {
                match (watched, seen) {
                    (Watched::Steady { series, .. }, RuleSeen::Amounts(own)) => series.merge(own),
                    (Watched::Until { batches, .. }, RuleSeen::Batches(own)) => {
                        batches.merge(own.clone());
                    }
                    _ => {}
                }
            }
        }
    }
}

/// One rule with what it has to know of the operations so far, for one kind of operation.
#[derive(Clone)]
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

/// A rule, which holds when it does so for every kind of operation that any job is about.
#[derive(Clone)]
struct Rule {
    reason: EndReason,
    by_kind: Vec<(OpKind, Watched)>,
}

/// A job as far as rules watch it.
#[derive(Clone, Debug)]
pub(crate) struct WatchedJob<'a> {
    pub(crate) id: JobId,
    pub(crate) name: &'a str,
    /// The kinds of operation that are its result.
    pub(crate) kinds: Vec<OpKind>,
    /// The number in the stage of the first worker that records.
    pub(crate) number_first: u32,
    /// How many there are.
    pub(crate) numbers: u32,
    /// How many numbers each worker has.
    pub(crate) numbers_each: u32,
    pub(crate) timing: &'a JobTiming,
    pub(crate) seed: u64,
}

impl WatchedJob<'_> {
    /// Returns when the worker begins that has a number, counted from the first of the job that
    /// records, in a stage that begins at moment 0.
    pub(crate) fn begins(&self, at: u32) -> Moment {
        let number = self.number_first + at / self.numbers_each * self.numbers_each;
        Moment::EPOCH.after(start_delay(&self.timing.start_delay, self.seed, WorkerId(number)))
    }
}

/// What the rules have seen of a job.
#[derive(Clone)]
struct SeenJob {
    id: JobId,
    name: String,
    number_first: u32,
    active: ActiveRange,
    rules: Vec<Rule>,
}

/// The stop rules of a stage under way. Moments inside are nanoseconds since its start.
#[derive(Clone)]
pub(crate) struct Watch {
    started: Moment,
    due: Moment,
    jobs: Vec<SeenJob>,
}

impl Watch {
    /// Returns the watch over a stage that begins at `started`, `None` where no rule can end it.
    pub(crate) fn new(
        jobs: &[WatchedJob<'_>],
        rules: &[StopRule],
        started: Moment,
    ) -> Option<Self> {
        if rules.is_empty() {
            return None;
        }
        let seen = |job: &WatchedJob<'_>| SeenJob {
            id: job.id,
            name: job.name.to_owned(),
            number_first: job.number_first,
            active: ActiveRange::new(job),
            rules: rules.iter().map(|rule| Rule::new(rule, &job.kinds)).collect(),
        };
        let jobs = jobs.iter().map(seen).collect();
        Some(Self { started, due: started.after(CHECK), jobs })
    }

    /// Takes note of what was recorded. Failed operations were done by an active worker, but
    /// nothing else came of them; what is not measured counts for nothing.
    pub(crate) fn observe(&mut self, ops: &[PackedOp]) {
        for op in ops.iter().map(OpRecord::from).filter(|op| op.is_measured) {
            let since = |moment: Moment| moment.as_ns().saturating_sub(self.started.as_ns());
            let (start_ns, end_ns) = (since(op.start), since(op.end));
            let Some(job) = self.jobs.iter_mut().find(|job| job.id == op.job) else { continue };
            let worker = op.worker.0 - job.number_first;
            job.active.ended(worker, end_ns);
            if !op.outcome.is_ok() {
                continue;
            }
            let latency_ns = op.latency().as_nanos() as u64;
            let of_kind = job.rules.iter_mut().flat_map(|rule| &mut rule.by_kind);
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

    /// Tells whether it is time to look.
    fn is_due(&mut self, now: Moment) -> bool {
        let is_due = now >= self.due;
        // Whole seconds of the stage, however late the look at one of them was.
        while self.due <= now {
            self.due = self.due.after(CHECK);
        }
        is_due
    }

    /// Returns what was seen so far, if it is time to tell.
    pub(crate) fn tell(&mut self, now: Moment) -> Option<PartSeen> {
        let seen = |watched: &Watched| match watched {
            Watched::Steady { series, .. } => RuleSeen::Amounts(series.clone()),
            Watched::Until { batches, .. } => RuleSeen::Batches(batches.clone()),
        };
        let of_rule = |rule: &Rule| rule.by_kind.iter().map(|(_, watched)| seen(watched)).collect();
        let of_job = |job: &SeenJob| JobSeen {
            has_workers: !job.active.workers.is_empty(),
            active_ns: job.active.range(),
            rules: job.rules.iter().map(of_rule).collect(),
        };
        self.is_due(now).then(|| PartSeen { jobs: self.jobs.iter().map(of_job).collect() })
    }

    /// Returns the rule that holds, if it is time to look and one does.
    pub(crate) fn check(&mut self, now: Moment) -> Option<Verdict> {
        if !self.is_due(now) {
            return None;
        }
        let ranges: Option<Vec<_>> = self.jobs.iter().map(|job| job.active.range()).collect();
        self.held(&ranges?)
    }

    /// Returns the rule that holds over these stretches of the jobs, if one does.
    fn held(&mut self, ranges: &[(u64, u64)]) -> Option<Verdict> {
        let rules_count = self.jobs.first()?.rules.len();
        let several_jobs = self.jobs.len() > 1;
        (0..rules_count).find_map(|at| {
            let mut held = Vec::new();
            for (job, &(from_ns, to_ns)) in self.jobs.iter_mut().zip(ranges) {
                let several_kinds = job.rules[at].by_kind.len() > 1;
                for (kind, watched) in &mut job.rules[at].by_kind {
                    let because = watched.holds(from_ns, to_ns)?;
                    let of_kind = several_kinds.then(|| kind.name());
                    let of_job = several_jobs.then_some(&*job.name);
                    let of: Vec<&str> = [of_job, of_kind].into_iter().flatten().collect();
                    held.push(match of.is_empty() {
                        true => because,
                        false => format!("{}: {because}", of.join(" ")),
                    });
                }
            }
            let reason = self.jobs[0].rules[at].reason;
            Some(Verdict { reason, because: held.join("; ") })
        })
    }
}

impl Rule {
    fn new(rule: &StopRule, kinds: &[OpKind]) -> Self {
        let reason = match rule {
            StopRule::Steady { .. } => EndReason::Steady,
            StopRule::Until(_) => EndReason::Until,
        };
        Self {
            reason,
            by_kind: kinds.iter().map(|kind| (*kind, Watched::new(rule, *kind))).collect(),
        }
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

/// The stretch in which all workers of a job were active, as far as it is known: from when each had
/// ended an operation to the earliest of the workers' latest ends. What ended before that is all
/// recorded, as the operations of one worker are recorded in the order in which they end.
#[derive(Clone)]
struct ActiveRange {
    /// By number: the worker's last end.
    workers: Vec<Option<u64>>,
    not_begun: usize,
    from_ns: u64,
}

impl ActiveRange {
    fn new(job: &WatchedJob<'_>) -> Self {
        let workers = vec![None; job.numbers as usize];
        Self { workers, not_begun: job.numbers as usize, from_ns: 0 }
    }

    /// Takes note of an operation of a worker.
    fn ended(&mut self, worker: u32, end_ns: u64) {
        let last_end = &mut self.workers[worker as usize];
        if last_end.is_none() {
            self.not_begun -= 1;
            self.from_ns = self.from_ns.max(end_ns);
        }
        *last_end = Some(last_end.map_or(end_ns, |last| last.max(end_ns)));
    }

    fn range(&self) -> Option<(u64, u64)> {
        let to_ns = self.workers.iter().copied().min().flatten()?;
        (self.not_begun == 0).then_some((self.from_ns, to_ns))
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
