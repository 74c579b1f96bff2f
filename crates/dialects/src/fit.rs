//! A workload that is like a trace: its mix, the sizes of its objects, how unevenly they are chosen
//! and when operations arrive, each with its distance from the trace.

mod laws;
mod mix;

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::{Bytes, OpKind};
use plimsoll_stats::ZipfFit;
use plimsoll_workload::plan::spec::{
    Arrivals, Choice, FillSpec, JobSpec, Named, ObjectSet, OpenSpec, PacingSpec, RateSpec, SetSpec,
    StageSpec, Targets, WORKLOAD_SCHEMA, WorkSpec, WorkStage, WorkloadFile,
};
use plimsoll_workload::plan::{Profile, Time};
use plimsoll_workload::trace::{NO_OBJECT, Trace};
use thiserror::Error;

pub use self::laws::{ArrivalFit, SizeFit};
use self::laws::{arrivals, sizes};
pub use self::mix::MixFit;

/// What the set of the workload is called.
const SET: &str = "objects";
/// Streams of operations, or workers, as far as there are objects for them.
const WORKERS_MAX: u64 = 32;
/// A workload measures at least so long.
const DURATION_MIN: Duration = Duration::from_secs(1);
/// The least exponent of popularity that is told from even chances.
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
        let popularity = popularity(trace);
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
            let profile = format!("{:.3}/s", arrivals.ops_per_sec).parse::<Profile>();
            if let Ok(profile) = profile {
                let open = OpenSpec::of(RateSpec::Rate(profile));
                job.pacing =
                    PacingSpec::Open(OpenSpec { arrivals: Arrivals(arrivals.law), ..open });
            }
        }
        notes.extend(arrivals.as_ref().and_then(ArrivalFit::note));
        let mut measure = WorkStage::of("measure", vec![job]);
        measure.duration = Some(Time(trace.duration().max(DURATION_MIN)));
        let file = WorkloadFile {
            schema: WORKLOAD_SCHEMA.to_owned(),
            name: "fitted".to_owned(),
            seed: Some(seed),
            verify: true,
            targets: Targets::Given,
            sets: [(SET.to_owned(), set)].into_iter().collect::<Named<SetSpec>>(),
            stages: vec![prepare, StageSpec::Jobs(measure)],
        };
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
        line("", format!("KS distance {distance:.4}"));
        line(
            "popularity",
            match &self.popularity {
                None => "too few reads tell it".to_owned(),
                Some(fit) if fit.exponent < EXPONENT_MIN => "all objects alike".to_owned(),
                Some(ZipfFit { exponent, std_error }) => {
                    format!("zipf, exponent {exponent:.3} ± {std_error:.3} (standard error)")
                }
            },
        );
        match &self.arrivals {
            None => line("arrivals", "the trace does not tell them; a closed loop".to_owned()),
            Some(fit) => {
                let ArrivalFit { law, ops_per_sec, variation, distance } = fit;
                line("arrivals", format!("{law}, {ops_per_sec:.3}/s"));
                let distance = distance.map(|distance| format!("; KS distance {distance:.4}"));
                let distance = distance.unwrap_or_default();
                line("", format!("gaps vary by {variation:.3} of their mean{distance}"));
            }
        }
        text
    }
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
fn popularity(trace: &Trace) -> Option<ZipfFit> {
    let mut counts = vec![0u64; trace.objects_count() as usize];
    let reads = trace.ops().iter().filter(|op| matches!(op.kind, OpKind::Get | OpKind::Stat));
    for op in reads.filter(|op| op.object != NO_OBJECT) {
        counts[op.object as usize] += 1;
    }
    counts.retain(|count| *count > 0);
    ZipfFit::of(&mut counts)
}

#[cfg(test)]
mod tests;
