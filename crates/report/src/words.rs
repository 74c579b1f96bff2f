//! Values as sentences, the same in every kind of report.

use plimsoll_analysis::{Advice, SpanRule, StageAnalysis};

use crate::format::{self, count, duration, number};
use crate::{LoopModel, OpLogCheck, RunReport, VerificationMode};

/// Returns the loop model with its number of workers and what it makes of the latency.
pub(crate) fn loop_model(report: &RunReport) -> String {
    let workers = plural(u64::from(report.concurrency), "worker");
    let threads = plural(u64::from(report.threads), "thread");
    let (name, meaning) = match report.loop_model {
        LoopModel::Closed => ("closed loop".to_owned(), "latency = service time"),
        LoopModel::Capped { rate } => (
            format!("closed loop capped at {} ops/s", number(rate.0)),
            "latency = service time, waiting for the cap is not in it",
        ),
        LoopModel::Open { rate } => (
            format!("open loop at {} ops/s", number(rate.0)),
            "latency counts from the intended start",
        ),
    };
    format!("{name}, {workers} on {threads}: {meaning}")
}

/// Returns where the figures come from.
pub(crate) fn span(analysis: &StageAnalysis) -> String {
    let (stage, span) = (analysis.ended.since(analysis.started), analysis.span.length());
    match analysis.span.rule {
        SpanRule::AllWorkers => format!(
            "{} of {}, while all {} ran",
            duration(span),
            duration(stage),
            plural(u64::from(analysis.workers_active), "worker")
        ),
        SpanRule::FullAsked => format!("all of {}, start and end included", duration(stage)),
        SpanRule::FullTooShort if analysis.workers_active == 0 => {
            format!("nothing, in {}", duration(stage))
        }
        SpanRule::FullTooShort => {
            format!("all of {}, as the workers hardly ran together", duration(stage))
        }
    }
}

/// Returns how read content was checked.
pub(crate) fn verification(mode: VerificationMode) -> &'static str {
    match mode {
        VerificationMode::EveryByte => "every byte of every read",
        VerificationMode::LengthOnly => "length only: the content is not known",
        VerificationMode::Off => "length only: switched off",
    }
}

/// Returns what is wrong with the op log, if something is.
pub(crate) fn op_log_warning(check: &OpLogCheck) -> Option<String> {
    (check.rows != check.counted).then(|| {
        format!(
            "the op log holds {} but the workers counted {}: figures taken from it are incomplete",
            plural(check.rows, "row"),
            plural(check.counted, "operation")
        )
    })
}

/// Returns what the recorder did to the load, if it did something.
pub(crate) fn recorder_warning(waits: u64) -> Option<String> {
    (waits > 0).then(|| {
        format!(
            "workers waited {} for the recorder, so it may have slowed the load: a faster disk for \
             the run directory helps",
            plural(waits, "time")
        )
    })
}

/// Returns a warning in words.
pub(crate) fn advice(advice: &Advice) -> String {
    match *advice {
        Advice::NothingDone => {
            "no operation of the measured stage ended, so there is nothing to report: try a longer \
             duration"
                .to_owned()
        }
        Advice::FullSpanUsed => {
            "all workers ran together for less than a tenth of the stage, so the figures are of \
             all of it, start and end included: a longer run helps"
                .to_owned()
        }
        Advice::ShortSpan { span } => format!(
            "the measured span of {} holds fewer than 5 whole segments: a longer run tells more",
            duration(span)
        ),
        Advice::FewSamples { kind, samples } => {
            let needs = match samples {
                ..10 => "p90 needs 10, p99 100, p99.9 1,000",
                10..100 => "p99 needs 100, p99.9 1,000",
                _ => "p99.9 needs 1,000",
            };
            format!("{} has {} for its latency: {needs}", kind.name(), plural(samples, "sample"))
        }
        Advice::IdleWorkers { active, configured } => format!(
            "{} of {} ended no operation: give each enough to do, or use fewer",
            count(u64::from(configured - active)),
            plural(u64::from(configured), "worker")
        ),
        Advice::Imbalance { apart } => format!(
            "the first worker was done {} before the last, and the measured span ends with the \
             first",
            duration(apart)
        ),
        Advice::Throttled { count, share } => throttled(count, share),
        Advice::SlowBeyondEnd { latency } => format!(
            "a success that ended after the measured span took {}, longer than every one inside: \
             the latencies do not show it",
            duration(latency)
        ),
        Advice::SegmentLengthened { asked, used } => format!(
            "segments of {} would have been too many, so they are {} long",
            duration(asked),
            duration(used)
        ),
    }
}

/// Returns how much load the store shed.
pub(crate) fn throttled(count: u64, share: f64) -> String {
    format!(
        "the store shed {} ({}) by 503 SlowDown or 429; they count as failed",
        plural(count, "operation"),
        format::percent(share * 100.0)
    )
}

/// Returns a count with its noun: `1 worker`, `1,200 workers`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}
