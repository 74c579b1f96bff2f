//! Checks when the operations of a job start, and writes it as workload files do.

use super::Checked;
use super::stages::in_flight;
use crate::plan::checked::JobPacing;
use crate::plan::path::FieldPath;
use crate::plan::spec::{
    Arrivals, CappedEach, JobSpec, OpenSpec, PacingSpec, PartsSpec, RateSpec, WorkSpec,
};
use crate::plan::units::{Cap, Rate};
use crate::{OpenLoop, Pacing};

impl JobPacing {
    /// Returns what a workload file means by its `pacing`, whatever the job does; `path` is its
    /// place.
    pub fn of(path: &FieldPath, spec: &PacingSpec) -> Checked<Self> {
        match spec {
            PacingSpec::Closed => Ok(Self::Shared(Pacing::Closed)),
            PacingSpec::Capped(Rate(rate)) => match *rate > 0.0 && rate.is_finite() {
                true => Ok(Self::Shared(Pacing::Capped { ops_per_sec: *rate })),
                false => Err(path.field("capped").refuse("the rate must be above 0")),
            },
            PacingSpec::Open(open) => open_loop(&path.field("open"), open),
            PacingSpec::CappedEach(CappedEach { read, write, arrivals }) => {
                let at = path.field("capped_each");
                if read.is_none() && write.is_none() {
                    return Err(at.refuse("is empty; cap read, write or both"));
                }
                for (field, cap) in [("read", read), ("write", write)] {
                    let rate = match cap {
                        Some(Cap::OpsPerSec(rate) | Cap::BytesPerSec(rate)) => *rate,
                        None => 1.0,
                    };
                    if !(rate > 0.0 && rate.is_finite()) {
                        return Err(at.field(field).refuse("the rate must be above 0"));
                    }
                }
                Ok(Self::CappedEach { read: *read, write: *write, arrivals: arrivals.0 })
            }
        }
    }

    /// Returns it as a workload file has it.
    pub fn spec(&self) -> PacingSpec {
        match self {
            Self::Shared(Pacing::Closed) => PacingSpec::Closed,
            Self::Shared(Pacing::Capped { ops_per_sec }) => PacingSpec::Capped(Rate(*ops_per_sec)),
            Self::Shared(Pacing::Open(open)) => PacingSpec::Open(OpenSpec {
                rate: RateSpec::Rate(open.profile.clone()),
                arrivals: Arrivals(open.arrivals),
                max_in_flight: open.max_in_flight.get(),
            }),
            Self::CappedEach { read, write, arrivals } => {
                let arrivals = Arrivals(*arrivals);
                PacingSpec::CappedEach(CappedEach { read: *read, write: *write, arrivals })
            }
        }
    }
}

/// Returns when the operations of a job start, checked against its work.
pub(super) fn pacing(path: &FieldPath, spec: &JobSpec) -> Checked<JobPacing> {
    let is_open = matches!(spec.pacing, PacingSpec::Open(_));
    let whole = match &spec.work {
        WorkSpec::Fill(_) | WorkSpec::Remove(_) | WorkSpec::ReadBack(_) if is_open => {
            Some("work on whole sets has no schedule; use a closed or capped loop")
        }
        WorkSpec::Buckets(_) => Some("work on buckets has no rate; leave it out"),
        WorkSpec::Replay(_) => Some("a trace has its own times; leave it out"),
        _ => None,
    };
    if let Some(reason) = whole.filter(|_| spec.pacing != PacingSpec::Closed) {
        return Err(path.refuse(reason));
    }
    if let WorkSpec::Replay(replay) = &spec.work
        && !replay.closed
    {
        let at = path.parent().unwrap_or_default().field("work.replay");
        return Ok(JobPacing::Shared(Pacing::Open(super::replay::schedule(&at, replay)?)));
    }
    if is_open && matches!(spec.work, WorkSpec::Parts(PartsSpec::Put(_))) {
        let reason = "the parts of an upload depend on one another, so that uploads in parts have \
                      no schedule; use a closed or capped loop";
        return Err(path.field("open").refuse(reason));
    }
    JobPacing::of(path, &spec.pacing)
}

/// Returns the schedule of that rate.
fn open_loop(path: &FieldPath, open: &OpenSpec) -> Checked<JobPacing> {
    let RateSpec::Rate(profile) = &open.rate else {
        let reason = "steps are for stages that are not searched";
        return Err(path.field("steps").refuse(reason));
    };
    Ok(JobPacing::Shared(Pacing::Open(OpenLoop {
        profile: profile.clone(),
        arrivals: open.arrivals.0,
        max_in_flight: in_flight(&path.field("max_in_flight"), open.max_in_flight)?,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_is_written_as_it_is_read() {
        for text in [
            "closed",
            "{capped: 0.3333333333333333/s}",
            "{capped_each: {read: 5MiB/s}}",
            "{capped_each: {read: 12.5/s, write: 1000.7B/s, arrivals: poisson}}",
            "{open: 300/s}",
            "{open: {rate: 123.4567890123/s, arrivals: poisson, max_in_flight: 7}}",
            "{open: {rate: '0.1/s..2000/s over 1500ms, 7/s for 3ns, 9/s', max_in_flight: 100000}}",
        ] {
            let spec: PacingSpec = crate::plan::read_as("pacing", text).unwrap();
            let pacing = JobPacing::of(&FieldPath::root(), &spec).unwrap();
            let sent = serde_json::to_string(&pacing.spec()).unwrap();
            let spec: PacingSpec = serde_json::from_str(&sent).unwrap();
            assert_eq!(JobPacing::of(&FieldPath::root(), &spec).unwrap(), pacing, "{sent}");
        }
        let beyond = r#"{"open":{"rate":"1/s","max_in_flight":4294967295}}"#;
        let spec: PacingSpec = serde_json::from_str(beyond).unwrap();
        let refused = JobPacing::of(&FieldPath::root(), &spec).unwrap_err().to_string();
        assert_eq!(refused, "open.max_in_flight: 4294967295 is out of range: 1 to 100000");
    }
}
