//! From the probes of a record to the line, the curve, and what else they show.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{JobId, Moment, OpRecord, ProbeRole, StageId, Standstill, per_sec};
use plimsoll_stats::{
    Histogram, LoadLine, LoadLineGoal, LoadLineSearch, Metastable, PROBE_PARTS, Probe, ProbeCounts,
    ProbePart, student_t_quantile,
};
use plimsoll_workload::plan::Search;

use super::counts::Clean;
use super::{ProbeAsked, ProbeCounter, Slo};
use crate::OpSource;
use crate::times::percentile;

/// So many probes of an open loop make a curve of which a knee can be told.
const KNEE_PROBES_MIN: usize = 4;
/// Of Poisson arrivals as many are due as are to be, give or take so many standard deviations, the
/// square root of their number; of even ones give or take next to nothing.
const OFF_DEVIATIONS: f64 = 6.0;
const OFF_PART: f64 = 0.01;

/// A stage that is a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeStage {
    /// Which stage of the record.
    pub stage: StageId,
    /// The rate that was offered, in operations per second; `None`: workers asked for the next
    /// operation when the one before had ended, to find out where to begin.
    pub rate: Option<f64>,
    /// What it was made for; `None` with the rate.
    pub role: Option<ProbeRole>,
    /// The job whose rate it is.
    pub job: JobId,
    /// When it began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// For how long operations were due.
    pub lasts: Duration,
    /// How many were due and never issued.
    pub skipped_count: u64,
    /// Whether it tells nothing: it ended before its time, or not as much was due in it as was to
    /// be offered, as the work had run out, an agent was lost, or the
    /// user ended it.
    pub is_cut: bool,
    /// When a client was disturbed.
    pub disturbed: Vec<Standstill>,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadLineAsked {
    /// What is to be kept.
    pub slos: Arc<[Slo]>,
    /// How well the line is to be known: half the width of its interval over the rate.
    pub precision: f64,
    /// How long all probes together may last.
    pub budget: Duration,
    /// No lower rate is offered, in operations per second; 0: any may be.
    pub rate_min: f64,
    /// No higher rate is offered, in operations per second.
    pub rate_max: f64,
}

/// A point of the curve: what came of one probe in the stretch that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// The probe.
    pub probe: ProbeStage,
    /// How many operations were due.
    pub due_count: u64,
    /// How many of these failed.
    pub failed_count: u64,
    /// How many operations a second ended and succeeded; `None` of one that was cut.
    pub achieved_per_sec: Option<f64>,
    /// The achieved rate over the mean latency, of which the probe shows with 95 % that it is so
    /// much at least; `None` of one that was cut, or of which a tenth has no success.
    pub power_min: Option<f64>,
    /// The latency of those that were due and succeeded, in nanoseconds: the mean,
    pub latency_ns_mean: Option<f64>,
    /// and the 50th, 99th and 99.9th percentile; `None` of too few.
    pub latency_ns: [Option<u64>; 3],
    /// Whether what was waiting grew as long as it lasted.
    pub is_overloaded: bool,
    /// Whether it shows by itself, beyond chance, that something is not kept at its rate; `None` in
    /// a closed loop.
    pub is_too_high: Option<bool>,
    /// Whether more missed something than may, be it by chance.
    pub is_missed: bool,
    /// In what share of its time no client was disturbed: bounds and latencies are of that.
    pub clean_share: f64,
    /// Whether that is too little to show anything.
    pub is_disturbed: bool,
}

/// Where more load begins to cost more than it gives: the offered rate at which the achieved rate
/// over the mean latency is highest (the point of most power: L. Kleinrock, *Power and
/// Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications*, 1979). Of
/// the probes it is the one that shows it most surely, as the maximum would be the luck of a short
/// one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The rate of the probe with the most power, in operations per second.
    pub rate: f64,
    /// The next lower rate that was probed; 0 where there is none.
    pub low: f64,
    /// The next higher one.
    pub high: f64,
}

/// What the probes show.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadLineAnalysis {
    /// The line; `None` where none can be told.
    pub line: Option<LoadLine>,
    /// The highest rate that was offered and kept all that was asked, in operations per second;
    /// `None`: none was.
    pub carried_max: Option<f64>,
    /// The lowest one that did not.
    pub missed_min: Option<f64>,
    /// The rate at which operations succeeded in the probe that shows the highest one most surely,
    /// in operations per second: the maximum of all would grow with every short probe.
    pub capacity: Option<f64>,
    /// Where more load begins to cost more than it gives.
    pub knee: Option<Knee>,
    /// What was found of a store that did not come back after an overload.
    pub metastable: Option<Metastable>,
    /// The probes, in order of time.
    pub points: Vec<CurvePoint>,
}

/// Returns the lower end of the 95 % confidence interval of a mean, by its values in the equal
/// stretches of a probe.
fn surely(parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    mean - student_t_quantile(0.975, count - 1.0) * error
}

/// What is gathered of a probe while the record is read.
struct Gathered {
    counter: ProbeCounter,
    /// When the client was not disturbed; `None` where it never was.
    clean: Option<Clean>,
    latency: Histogram,
    /// By the stretch in which they were due: how many succeeded, and their latencies added up.
    latency_ns: [(u64, u128); PROBE_PARTS],
    failed_count: u64,
}

impl LoadLineAsked {
    /// Returns what a search of a workload asks.
    pub fn of(search: &Search) -> Self {
        Self {
            slos: search.slo.iter().copied().map(Slo::from).collect(),
            precision: search.precision_percent / 100.0,
            budget: search.budget,
            rate_min: search.rate.map_or(0.0, |rate| rate.from),
            rate_max: search.rate.map_or(f64::INFINITY, |rate| rate.to),
        }
    }

    /// Begins the search, with a ramp from this rate on, in operations per second.
    pub fn search(&self, rate_first: f64) -> LoadLineSearch {
        LoadLineSearch::new(LoadLineGoal {
            shares_max: self.slos.iter().map(Slo::share_max).collect(),
            precision: self.precision,
            budget_s: self.budget.as_secs_f64(),
            rate_first,
            rate_min: self.rate_min,
            rate_max: self.rate_max,
        })
    }
}

impl ProbeStage {
    /// Returns what it has come to as the search takes it in; nothing of a closed loop, of one that
    /// was cut, or of one in which not as much was due as was to be offered, as an agent was lost
    /// or the work ran out: it tells nothing of its rate.
    pub fn taken(&self, counts: &ProbeCounts) -> Option<Probe> {
        let rate = self.rate.filter(|_| !self.is_cut)?;
        let expected = rate * ProbeCounter::counted_for(self.lasts).as_secs_f64();
        let off = (counts.due_count() as f64 - expected).abs();
        if off > expected.sqrt() * OFF_DEVIATIONS + expected * OFF_PART {
            return None;
        }
        Some(Probe {
            rate,
            seconds: self.ended.since(self.started).max(self.lasts).as_secs_f64(),
            role: self.role?,
            bounds: counts.bounds.clone(),
            is_overloaded: counts.is_overloaded(),
            clean_share: counts.clean_share(),
        })
    }
}

impl Gathered {
    fn new(slos: &Arc<[Slo]>, probe: &ProbeStage) -> Self {
        let asked = ProbeAsked { slos: Arc::clone(slos), job: probe.job, lasts: probe.lasts };
        Self {
            counter: ProbeCounter::new(asked, probe.started),
            clean: None,
            latency: Histogram::new(),
            latency_ns: [(0, 0); PROBE_PARTS],
            failed_count: 0,
        }
    }

    fn add(&mut self, op: &OpRecord) {
        self.counter.add(op);
        let Some(part) = self.counter.counted_in(op) else { return };
        if !op.outcome.is_ok() {
            self.failed_count += 1;
            return;
        }
        if self.clean.as_ref().is_some_and(|clean| !clean.holds(&self.counter, op.intended)) {
            return;
        }
        let ns = op.latency().as_nanos();
        self.latency.record(ns as u64);
        let (count, sum) = &mut self.latency_ns[part];
        (*count, *sum) = (*count + 1, *sum + ns);
    }

    /// Returns the least power that the rates of the stretches show: of a ratio by its first-order
    /// expansion in each of them.
    fn power_min(&self, rates: &[f64]) -> Option<f64> {
        let rate = rates.iter().sum::<f64>() / rates.len() as f64;
        let latency = self.latency.mean().filter(|mean| *mean > 0.0 && rate > 0.0)?;
        let of_part = |(own, (count, sum)): (&f64, &(u64, u128))| {
            let own_latency = (*count > 0).then(|| *sum as f64 / *count as f64)?;
            Some(rate / latency * (1.0 + own / rate - own_latency / latency))
        };
        let powers: Option<Vec<f64>> = rates.iter().zip(&self.latency_ns).map(of_part).collect();
        powers.map(|powers| surely(&powers))
    }
}

/// Counts the operations of each probe; latencies only from its clean cells.
fn gather<S: OpSource + ?Sized>(
    source: &S,
    asked: &LoadLineAsked,
    probes: &[ProbeStage],
    clean: Vec<Option<Clean>>,
) -> Result<Vec<Gathered>, S::Error> {
    let mut of_stage: [Option<u16>; 256] = [None; 256];
    for (index, probe) in probes.iter().enumerate() {
        of_stage[usize::from(probe.stage.0)] = Some(index as u16);
    }
    let begin = |(probe, clean)| Gathered { clean, ..Gathered::new(&asked.slos, probe) };
    let mut gathered: Vec<Gathered> = probes.iter().zip(clean).map(begin).collect();
    source.scan(&mut |op| {
        if let Some(index) = of_stage[usize::from(op.stage.0)] {
            gathered[usize::from(index)].add(op);
        }
    })?;
    Ok(gathered)
}

/// Finds the line in the probes of a record.
pub fn find_load_line<S: OpSource + ?Sized>(
    source: &S,
    asked: &LoadLineAsked,
    probes: &[ProbeStage],
) -> Result<LoadLineAnalysis, S::Error> {
    let mut gathered = gather(source, asked, probes, vec![None; probes.len()])?;
    if probes.iter().any(|probe| !probe.disturbed.is_empty()) {
        // When the store was again as before is known only now.
        let clean =
            |(probe, of): (&ProbeStage, &Gathered)| Some(of.counter.clean(&probe.disturbed));
        let clean = probes.iter().zip(&gathered).map(clean).collect();
        gathered = gather(source, asked, probes, clean)?;
    }
    let rate_first = probes.iter().find_map(|probe| probe.rate).unwrap_or(asked.rate_max);
    let (mut search, mut points) = (asked.search(rate_first), Vec::new());
    let mut capacity: Option<(f64, f64)> = None;
    for (probe, gathered) in probes.iter().zip(gathered) {
        let counts = gathered.counter.clone().finish(probe.skipped_count, &probe.disturbed);
        let mut point = point(probe, &counts, &gathered);
        match probe.taken(&counts) {
            Some(taken) => search.add(taken),
            None => point.probe.is_cut |= probe.rate.is_some(),
        }
        if point.probe.is_cut {
            // Nobody knows how much of its time it went on.
            (point.achieved_per_sec, point.power_min) = (None, None);
        }
        if let Some(achieved) = point.achieved_per_sec {
            let least = surely(&rates_by_part(probe, &counts));
            let is_more = capacity.is_none_or(|(most, _)| least > most);
            capacity = if is_more { Some((least, achieved)) } else { capacity };
        }
        points.push(point);
    }
    let mut taken = search.probes().iter();
    let shares_max: Vec<f64> = asked.slos.iter().map(Slo::share_max).collect();
    for point in points.iter_mut().filter(|point| point.probe.rate.is_some() && !point.probe.is_cut)
    {
        let Some(probe) = taken.next() else { break };
        point.is_disturbed = search.is_disturbed(probe);
        if point.is_disturbed {
            continue;
        }
        point.is_too_high = Some(search.is_too_high(probe));
        let mut bounds = probe.bounds.iter().zip(&shares_max);
        point.is_missed = probe.is_overloaded
            || bounds.any(|(parts, share_max)| ProbePart::share_missed(parts) > *share_max);
    }
    let (carried_max, missed_min) = carried_and_missed(&points);
    Ok(LoadLineAnalysis {
        line: search.line(),
        carried_max,
        missed_min,
        capacity: capacity.map(|(_, achieved)| achieved),
        knee: knee(&points),
        metastable: search.metastable(),
        points,
    })
}

/// Returns the highest rate that was carried, and the lowest that was not.
fn carried_and_missed(points: &[CurvePoint]) -> (Option<f64>, Option<f64>) {
    let of_curve = || {
        let like = points.iter().filter(|point| point.is_too_high.is_some());
        like.filter(|point| point.probe.role != Some(ProbeRole::Descent))
    };
    let missed_min = of_curve()
        .filter(|point| point.is_too_high == Some(true))
        .filter_map(|point| point.probe.rate)
        .min_by(f64::total_cmp);
    // What a probe at no higher rate, that went on for as long, contradicts was luck.
    let is_contradicted = |kept: &CurvePoint| {
        of_curve().any(|point| {
            point.is_too_high == Some(true)
                && point.probe.rate <= kept.probe.rate
                && point.probe.lasts >= kept.probe.lasts
        })
    };
    let kept = of_curve().filter(|point| !point.is_missed && !is_contradicted(point));
    let carried_max = kept.filter_map(|point| point.probe.rate).max_by(f64::total_cmp);
    (carried_max, missed_min)
}

/// Returns how many operations a second succeeded in each equal stretch of a probe.
fn rates_by_part(probe: &ProbeStage, counts: &ProbeCounts) -> Vec<f64> {
    let counted_for = ProbeCounter::counted_for(probe.lasts);
    let count = |count: &u64| *count as f64 * PROBE_PARTS as f64;
    let rate = |of: &u64| per_sec(count(of), counted_for).unwrap_or_default();
    counts.succeeded_by_part().iter().map(rate).collect()
}

fn point(probe: &ProbeStage, counts: &ProbeCounts, gathered: &Gathered) -> CurvePoint {
    let counted_for = ProbeCounter::counted_for(probe.lasts);
    let latency = &gathered.latency;
    let known = |percent| percentile(latency, percent).map(|time| time.as_nanos() as u64);
    CurvePoint {
        probe: probe.clone(),
        due_count: counts.due_count(),
        failed_count: gathered.failed_count,
        power_min: gathered.power_min(&rates_by_part(probe, counts)),
        achieved_per_sec: per_sec(counts.succeeded_count() as f64, counted_for),
        latency_ns_mean: latency.mean(),
        latency_ns: [50.0, 99.0, 99.9].map(known),
        is_overloaded: probe.rate.is_some() && counts.is_overloaded(),
        is_too_high: None,
        is_missed: false,
        clean_share: counts.clean_share(),
        is_disturbed: false,
    }
}

/// Returns the knee of the curve. Probes that look whether the store is back are not of it.
fn knee(points: &[CurvePoint]) -> Option<Knee> {
    let of_curve =
        |point: &&CurvePoint| point.probe.role.is_some_and(|role| role != ProbeRole::Descent);
    let power = |point: &CurvePoint| Some((point.probe.rate?, point.power_min?));
    let mut powers: Vec<(f64, f64)> = points.iter().filter(of_curve).filter_map(power).collect();
    powers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = (0..powers.len()).max_by(|a, b| powers[*a].1.total_cmp(&powers[*b].1))?;
    let higher = powers.iter().find(|(rate, _)| *rate > powers[at].0);
    let lower = powers.iter().rev().find(|(rate, _)| *rate < powers[at].0);
    (powers.len() >= KNEE_PROBES_MIN).then_some(())?;
    Some(Knee { rate: powers[at].0, low: lower.map_or(0.0, |(rate, _)| *rate), high: higher?.0 })
}
