//! A workload that is like a trace: its mix, the sizes of its objects, how unevenly they are chosen
//! and when operations arrive, each with its distance from the trace.

mod laws;
mod mix;

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::{Bytes, OpKind};
use plimsoll_stats::{Interval, ZipfFit};
use plimsoll_workload::RateProfile;
use plimsoll_workload::plan::Time;
use plimsoll_workload::plan::spec::{
    Arrivals, Choice, FillSpec, JobSpec, Named, ObjectSet, OpenSpec, PacingSpec, RateSpec, SetSpec,
    StageSpec, WorkSpec, WorkStage, WorkloadFile,
};
use plimsoll_workload::trace::{NO_OBJECT, Trace};
use thiserror::Error;

pub use self::laws::{ArrivalFit, ArrivalsSeen, DISTANCE_MAX, SizeFit};
use self::laws::{arrivals, sizes};
pub use self::mix::MixFit;

/// What the set of the workload is called.
const SET: &str = "objects";
/// Streams of operations, or workers, as far as there are objects for them.
const WORKERS_MAX: u64 = 32;
/// A workload measures at least so long.
const DURATION_MIN: Duration = Duration::from_secs(1);
/// The least exponent of popularity that the workload is given.
const EXPONENT_MIN: f64 = 0.05;

/// Why no workload is made of a trace.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FitError {
    /// It is not about objects.
    #[error("it is about blocks of files, of which no workload is made; replay it instead")]
    OnFiles,
    /// It is too short to tell anything.
    #[error("{0} operations are too few to tell anything; it takes {FEWEST} at least")]
    TooFew(usize),
}

/// A trace of fewer operations tells nothing.
const FEWEST: usize = 20;

/// A workload that is like a trace.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The workload.
    pub file: WorkloadFile,
    /// Its mix.
    pub mix: MixFit,
    /// The sizes of its objects.
    pub sizes: SizeFit,
    /// How unevenly objects are read; `None` where too few reads tell it.
    pub popularity: Option<ZipfFit>,
    /// When operations arrive; `None` where the trace does not say it.
    pub arrivals: Option<ArrivalFit>,
    /// What of the trace the workload does not have, a sentence each.
    pub notes: Vec<String>,
}

impl Fitted {
    /// Makes a workload of a trace.
    pub fn of(trace: &Trace, seed: u64) -> Result<Self, FitError> {
        if trace.is_on_files() {
            return Err(FitError::OnFiles);
        }
        if trace.ops().len() < FEWEST {
            return Err(FitError::TooFew(trace.ops().len()));
        }
        let popularity = popularity(trace, seed);
        let exponent = popularity.map_or(0.0, |fit| fit.exponent);
        let pick = (exponent >= EXPONENT_MIN).then(|| Choice::Zipf(rounded(exponent)));
        let (mix, mut notes) = MixFit::of(trace);
        let (size, sizes) = sizes(trace);
        let arrivals = trace.is_timed().then(|| arrivals(trace));
        let count = objects_count(trace);
        let workers = count.min(WORKERS_MAX) as u32;
        let set = SetSpec::Objects(ObjectSet::of(count, Some(size)));
        let fill = JobSpec::of(workers, WorkSpec::Fill(FillSpec::of(vec![SET.to_owned()])));
        let prepare =
            StageSpec::Jobs(WorkStage { prepares: true, ..WorkStage::of("prepare", vec![fill]) });
        let mut job = JobSpec::of(workers, WorkSpec::Objects(mix.operations(SET, pick, trace)));
        if let Some(arrivals) = &arrivals {
            match RateProfile::constant(in_figures(arrivals.ops_per_sec)) {
                Ok(profile) => {
                    let open = OpenSpec::of(RateSpec::Rate(profile));
                    job.pacing =
                        PacingSpec::Open(OpenSpec { arrivals: Arrivals(arrivals.law), ..open });
                }
                Err(reason) => notes.push(format!("{reason}; the workload is a closed loop")),
            }
        }
        notes.extend(arrivals.as_ref().and_then(ArrivalFit::note));
        notes.extend(popularity.and_then(|fit| unseen(trace, &fit)));
        let mut measure = WorkStage::of("measure", vec![job]);
        measure.duration = Some(Time(trace.duration().max(DURATION_MIN)));
        let sets = [(SET.to_owned(), set)].into_iter().collect::<Named<SetSpec>>();
        let stages = vec![prepare, StageSpec::Jobs(measure)];
        let file = WorkloadFile { seed: Some(seed), ..WorkloadFile::new("fitted", sets, stages) };
        Ok(Self { file, mix, sizes, popularity, arrivals, notes })
    }

    /// Returns what was found, a line each, at most 80 columns wide.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, said: String| {
            let _ = writeln!(text, "{what:<12}{said}");
        };
        line("mix", self.mix.to_string());
        line(
            "reads",
            format!("{:.4} % of {} operations", self.mix.reads_percent(), self.mix.all()),
        );
        let SizeFit { law, distance, count, median, .. } = &self.sizes;
        line("sizes", format!("{law}, of {count} objects, median {}", Bytes(*median)));
        line("", format!("KS distance {distance:.4}, limit {DISTANCE_MAX:.4}"));
        let popularity = match &self.popularity {
            None => vec!["too few reads tell it".to_owned()],
            Some(fit) => said_of_popularity(fit),
        };
        let arrivals = match &self.arrivals {
            None => vec!["the trace does not tell them; a closed loop".to_owned()],
            Some(fit) => fit.said(),
        };
        for (what, said) in [("popularity", popularity), ("arrivals", arrivals)] {
            for (at, said) in said.into_iter().enumerate() {
                line(if at == 0 { what } else { "" }, said);
            }
        }
        text
    }
}

/// Returns how far shares of reads may be from Zipf's law that is to be taken for theirs.
pub fn popularity_limit(fit: &ZipfFit) -> f64 {
    fit.distance_by_chance.max(DISTANCE_MAX)
}

/// Returns what is to be said of a popularity, lines of at most 68 columns.
fn said_of_popularity(fit: &ZipfFit) -> Vec<String> {
    let ZipfFit { exponent, interval: Interval { low, high }, distance, .. } = *fit;
    if exponent == 0.0 {
        return vec![
            "not distinguishable from uniform".to_owned(),
            format!("an exponent of Zipf's law would be at most {high:.3}"),
        ];
    }
    let most = popularity_limit(fit);
    let (assumed, fits) = match distance > most {
        true => (" assumed", "no law of Zipf's fits: "),
        false => ("", ""),
    };
    vec![
        format!("zipf{assumed}, exponent {exponent:.3}, 95 % interval {low:.3} to {high:.3}"),
        format!("{fits}KS distance {distance:.4}, limit {most:.4}"),
    ]
}

/// Returns what is to be said where more objects were read from than the trace shows.
fn unseen(trace: &Trace, fit: &ZipfFit) -> Option<String> {
    let (seen, all) = (u64::from(trace.objects_count()), fit.population);
    (all > seen + seen / 5).then(|| {
        format!(
            "reads are as if of about {all} objects, of which the trace shows {seen}: the \
             workload has no more than those"
        )
    })
}

/// Rounds a rate to four figures, or to the third place after the point where that is finer.
fn in_figures(ops_per_sec: f64) -> f64 {
    let places = (3.0 - ops_per_sec.log10().floor()).clamp(3.0, 12.0);
    let unit = 10f64.powi(places as i32);
    (ops_per_sec * unit).round() / unit
}

/// Returns how many objects the workload begins with.
fn objects_count(trace: &Trace) -> u64 {
    match trace.made_first().len() {
        0 => u64::from(trace.objects_count()).clamp(1, WORKERS_MAX),
        made => made as u64,
    }
}

/// Returns a number with as many digits as a fit has.
fn rounded(exponent: f64) -> f64 {
    let rounded = (exponent * 1e4).round() / 1e4;
    // The language has no law of exponent 1, whose sums have another form.
    if rounded == 1.0 { 1.0001 } else { rounded }
}

/// Returns how unevenly objects are read.
fn popularity(trace: &Trace, seed: u64) -> Option<ZipfFit> {
    // Bound: objects that operations of the trace name, which are in memory.
    let mut counts = vec![0u64; trace.objects_count() as usize];
    let reads = trace.ops().iter().filter(|op| matches!(op.kind, OpKind::Get | OpKind::Stat));
    for op in reads.filter(|op| op.object != NO_OBJECT) {
        counts[op.object as usize] += 1;
    }
    ZipfFit::of(counts, seed)
}

#[cfg(test)]
mod tests;
