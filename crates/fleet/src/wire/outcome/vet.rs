//! What somebody says that came of a stage, held against what may be.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_engine::StageOutcome;
use plimsoll_model::Moment;
use serde::Serialize;
use serde_json::Value;

use super::OutcomeDoc;
use crate::offset::Offset;

/// So many operations an agent may do in a second; what drives the null target does fewer.
const OPS_PER_SEC_MAX: u64 = 20_000_000;
/// More bytes than any job moves in a stage, on one machine.
const BYTES_MAX: u64 = 1 << 50;
/// No time of a stage is longer: three years.
const NS_MAX: u64 = 100_000_000_000_000_000;
/// How far the clocks of machines drift apart in a stage, and then some.
const CLOCK_SLACK: Duration = Duration::from_secs(1);
/// More errors than are kept of a stage.
const ERRORS_MAX: usize = 10_000;

/// What a stage is.
#[derive(Clone, Copy, Debug)]
pub struct StageBounds {
    /// How many jobs it has.
    pub jobs: usize,
    /// How many addresses the run has.
    pub endpoints: usize,
    /// How many conditions a search holds it against, where it is a probe of one.
    pub slos: Option<usize>,
    /// For how many whole seconds it went on at most.
    pub seconds: u64,
    /// From when to when it went on, by the coordinator's clock; `None` in virtual time.
    pub within: Option<(Moment, Moment)>,
}

impl StageBounds {
    /// Tells whether an agent whose clock is known so well may have begun and ended so.
    pub(crate) fn hold(&self, outcome: &StageOutcome, offset: Offset) -> bool {
        let slack = CLOCK_SLACK + Duration::from_nanos(offset.uncertainty_ns);
        self.within.is_none_or(|(from, until)| {
            outcome.started.after(slack) >= from && outcome.ended <= until.after(slack)
        })
    }
}

/// Tells whether no number in what somebody says is absurd.
pub(crate) fn are_bounded(said: &impl Serialize) -> bool {
    serde_json::to_value(said).is_ok_and(|said| is_bounded(&said))
}

fn is_bounded(said: &Value) -> bool {
    match said {
        Value::Number(number) => number.as_u64().is_none_or(|number| number <= NS_MAX),
        Value::Array(all) => all.iter().all(is_bounded),
        Value::Object(all) => all.values().all(is_bounded),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

impl OutcomeDoc {
    /// Tells whether it may have come of such a stage: everything in it is of the stage, and no
    /// sum of such numbers overflows.
    pub fn fits(&self, stage: StageBounds) -> bool {
        let ops_max = stage.seconds.saturating_add(1).saturating_mul(OPS_PER_SEC_MAX);
        let is_job = |job: u8| usize::from(job) < stage.jobs;
        let jobs: BTreeSet<u8> = self.jobs.iter().map(|job| job.job).collect();
        let jobs_fit = self.jobs.iter().all(|job| {
            let schedule = job.schedule.as_ref().is_none_or(|of| {
                let most = of.offered.max(of.late).max(of.skipped);
                let is_span = |(from_ns, until_ns)| from_ns <= until_ns && until_ns <= NS_MAX;
                of.span_ns.is_none_or(is_span) && most <= ops_max && of.delay_max_ns <= NS_MAX
            });
            let counts = job.failed <= job.ops && job.ops <= ops_max && job.bytes <= BYTES_MAX;
            let counts = counts && job.unchecked <= job.ops && job.unchecked_bytes <= job.bytes;
            let counts = counts
                && job.measured <= job.ops
                && job.measured_failed <= job.measured.min(job.failed)
                && job.measured_bytes <= job.bytes;
            let measured = job.measured_ns.is_none_or(|(from, until)| {
                from <= NS_MAX && until.is_none_or(|until| from <= until && until <= NS_MAX)
            });
            is_job(job.job) && counts && schedule && measured
        });
        let errors_fit = self.errors.iter().all(|error| {
            // One without an address has the highest number.
            let endpoint = usize::from(error.endpoint);
            let is_endpoint = endpoint < stage.endpoints || error.endpoint == u16::MAX;
            is_job(error.job) && is_endpoint
        });
        let counts = [self.uploads_given_up, self.uploads_left, self.recorder_waits];
        let counts = counts.iter().chain(self.wrong.values()).chain(self.failed_statuses.values());
        let times = [self.began_late_by_ns, self.recorder_wait_ns];
        jobs.len() == self.jobs.len()
            && jobs_fit
            && errors_fit
            && self.errors.len() <= ERRORS_MAX
            && counts.into_iter().all(|count| *count <= BYTES_MAX)
            && times.iter().all(|ns| *ns <= NS_MAX)
            && self.cpu_ns <= NS_MAX
            && self.looks.is_none_or(|(gap_ns, uncertain)| gap_ns <= NS_MAX && uncertain <= ops_max)
            && self.started_ns <= self.ended_ns
            && self
                .probe
                .as_ref()
                .is_none_or(|probe| stage.slos.is_some_and(|slos| probe.fits(slos, ops_max)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"started_ns":5,"began_late_by_ns":7,"ended_ns":9,"ended_by":"duration",
        "jobs":[{"job":1,"ops":10,"failed":2,"bytes":80,"ended_by":"duration","stream_hash":1}],
        "errors":[{"class":"throttled","job":1,"kind":"GET","endpoint":0,"at_ns":6,"message":""}],
        "uploads_given_up":1,"uploads_left":2,"wrong":{"torn":1},"failed_statuses":{"503":2},
        "recorder_waits":1,"recorder_wait_ns":9,"cpu_ns":100}"#;

    #[test]
    fn numbers_are_bounded_wherever_they_are() {
        let usage = |user_ns: u64| serde_json::json!([{"usage": {"user_ns": user_ns}}, null, "x"]);
        assert!(are_bounded(&usage(3_600_000_000_000)));
        assert!(!are_bounded(&usage(u64::MAX)));
    }

    #[test]
    fn what_cannot_be_is_not_taken() {
        let bounds = StageBounds { jobs: 2, endpoints: 1, slos: None, seconds: 3, within: None };
        let fits = |text: &str| serde_json::from_str::<OutcomeDoc>(text).unwrap().fits(bounds);
        assert!(fits(GOOD));
        let max = u64::MAX.to_string();
        for (from, to) in [
            ("\"job\":1,\"ops\"", "\"job\":2,\"ops\""),
            ("\"ops\":10", &*format!("\"ops\":{max}")),
            ("\"failed\":2", "\"failed\":11"),
            ("\"bytes\":80", &format!("\"bytes\":{max}")),
            ("\"endpoint\":0", "\"endpoint\":7"),
            ("\"cpu_ns\":100", &format!("\"cpu_ns\":{max}")),
            ("\"503\":2", &format!("\"503\":{max}")),
            ("\"started_ns\":5", "\"started_ns\":50"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            assert!(!fits(&GOOD.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn a_stage_neither_begins_before_nor_ends_after_the_coordinator_saw_it() {
        let within = Some((Moment::from_ns(20_000_000_000), Moment::from_ns(30_000_000_000)));
        let bounds = StageBounds { jobs: 2, endpoints: 1, slos: None, seconds: 3, within };
        let offset = Offset { at: Moment::EPOCH, ns: 0, uncertainty_ns: 1_000_000_000 };
        let holds = |started_s: u64, ended_s: u64| {
            let mut outcome = serde_json::from_str::<OutcomeDoc>(GOOD).unwrap();
            outcome.started_ns = started_s * 1_000_000_000;
            outcome.ended_ns = ended_s * 1_000_000_000;
            bounds.hold(&outcome.outcome(offset.into()), offset)
        };
        // Both are known to a second, and the clocks may have drifted by another.
        assert!(holds(18, 32) && !holds(17, 32) && !holds(18, 33));
    }
}
