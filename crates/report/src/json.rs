//! The report for programs: one JSON object, `plimsoll.report/1`.
//!
//! Its description is `docs/formats/report.schema.json`. Times are integers of nanoseconds, unknown
//! is null.

mod details;
mod twin;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::{
    Advice, EndpointAnalysis, Failures, Figures, KindAnalysis, Rates, SegmentRate, SpanRule,
    StageTotals, TimeSummary,
};
use plimsoll_model::Moment;
use schemars::generate::SchemaSettings;

use crate::{
    CertificateLine, LoopModel, RunReport, RunState, ScheduleReport, StageWork, VerificationMode,
    words,
};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.report/1";

/// Returns the report as one JSON object.
pub fn render(report: &RunReport) -> serde_json::Value {
    serde_json::to_value(document(report)).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema of the report, as it stands in `docs/formats/report.schema.json`.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<twin::Document>().to_value()
}

fn document(report: &RunReport) -> twin::Document {
    let analysis = &report.analysis;
    let is_real = !report.virtual_time;
    let endpoints = |all: &[EndpointAnalysis]| endpoints(report, all);
    let kind = |kind: &KindAnalysis| twin::Kind {
        kind: kind.kind.name(),
        mix_percent: kind.mix_percent,
        figures: figures(&kind.figures),
        endpoints: endpoints(&kind.endpoints),
    };
    twin::Document {
        schema: SCHEMA,
        tool_version: report.tool_version.clone(),
        run_id: report.run_id.as_ref().map(ToString::to_string),
        what: report.what.clone(),
        command: report.command.clone(),
        state: match report.state {
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Killed => "killed",
            RunState::Failed => "failed",
        },
        ended_because: report.ended_because.clone(),
        run_directory: report.run_directory.clone(),
        started: report.started.to_string(),
        foreign: report.foreign.clone(),
        target: report.target.clone(),
        loop_model: loop_model(report),
        schedule: report.schedule.as_ref().map(|of| schedule(report, of)),
        seed: report.seed.map(|seed| seed.0.to_string()),
        concurrency: report.concurrency,
        threads_count: report.threads,
        error_rate: analysis.error_rate(),
        stage_total: totals(&analysis.total.stage),
        stage: stage(report),
        span: span(report),
        segments: twin::Segments {
            duration_ns: ns(analysis.segment),
            count: analysis.segments_count,
        },
        kinds: analysis.kinds.iter().map(kind).collect(),
        total: figures(&analysis.total),
        endpoints: endpoints(&analysis.endpoints),
        errors: errors(report),
        client_cpu_seconds: report.client_cpu.filter(|_| is_real).map(|cpu| cpu.as_secs_f64()),
        recorder_wait_ns: is_real.then(|| ns(report.recorder_wait)),
        op_log: report
            .op_log
            .map(|check| twin::OpLog { rows_count: check.rows, ops_counted_count: check.counted }),
        verification: report.verification.map(|verification| twin::Verification {
            mode: verification_mode(verification.mode),
            bytes: verification.bytes,
        }),
        prepare: report.prepare.as_ref().map(stage_work),
        cleanup: report.cleanup.as_ref().map(stage_work),
        advice: analysis.advice.iter().map(advice).collect(),
        details: analysis.details.as_ref().map(|details| details::details(report, details)),
        losses: report.losses.clone(),
        notes: report.notes.clone(),
        virtual_time: report.virtual_time,
        stream_hash: report.stream_hash.clone(),
        wrong_by_kind: report.wrong.iter().cloned().collect(),
        certificate: report.certificate.as_ref().map(certificate),
    }
}

fn loop_model(report: &RunReport) -> twin::LoopModel {
    let (model, rate) = match report.loop_model {
        LoopModel::Closed => ("closed", None),
        LoopModel::Capped { rate } => ("capped", Some(rate)),
        LoopModel::Open => {
            ("open", report.schedule.as_ref().and_then(ScheduleReport::rate_offered))
        }
    };
    twin::LoopModel { model, ops_per_sec: rate.map(|rate| rate.0) }
}

fn schedule(report: &RunReport, of: &ScheduleReport) -> twin::Schedule {
    twin::Schedule {
        rate: of.rate.clone(),
        arrivals: of.arrivals.clone(),
        in_flight_count_max: of.max_in_flight,
        duration_ns: of.lasted.map(ns),
        rate_offered_ops_per_sec: of.rate_offered().map(|rate| rate.0),
        rate_achieved_ops_per_sec: report.achieved().map(|rate| rate.0),
        offered_count: of.offered_count,
        late_count: of.late_count,
        skipped_count: of.skipped_count,
        delay_ns_max: of.delay_max.map(ns),
        kept: of.offered_count.map(|_| of.is_kept()),
        warning: report.schedule_warning(),
    }
}

fn certificate(of: &CertificateLine) -> twin::Certificate {
    twin::Certificate {
        tool_version: of.tool_version.clone(),
        machine: of.machine.clone(),
        seed: of.seed.map(|seed| seed.to_string()),
        passed_count: of.passed_count,
        failed_count: of.failed_count,
        when: of.when.clone(),
    }
}

fn stage(report: &RunReport) -> twin::Stage {
    let analysis = &report.analysis;
    twin::Stage {
        started_ns: analysis.started.as_ns(),
        ended_ns: analysis.ended.as_ns(),
        duration_ns: ns(analysis.ended.since(analysis.started)),
        first_done_ns: analysis.first_done.map(Moment::as_ns),
        last_done_ns: analysis.last_done.map(Moment::as_ns),
        workers_active_count: analysis.workers_active,
    }
}

fn span(report: &RunReport) -> twin::Span {
    let span = &report.analysis.span;
    twin::Span {
        started_ns: span.start.as_ns(),
        ended_ns: span.end.as_ns(),
        duration_ns: ns(span.length()),
        rule: match span.rule {
            SpanRule::AllWorkers => "all-workers",
            SpanRule::FullAsked => "full-asked",
            SpanRule::FullTooShort => "full-too-short",
            SpanRule::Schedule => "schedule",
        },
    }
}

fn endpoints(report: &RunReport, all: &[EndpointAnalysis]) -> Vec<twin::Endpoint> {
    let twin = |at: &EndpointAnalysis| twin::Endpoint {
        endpoint: report.endpoint(at.endpoint),
        figures: figures(&at.figures),
    };
    all.iter().map(twin).collect()
}

fn errors(report: &RunReport) -> Vec<twin::Error> {
    let twins = report.errors.iter().map(|error| twin::Error {
        class: error.class.name(),
        kind: error.kind.name(),
        endpoint: error.endpoint.map(|id| report.endpoint(id)),
        message: error.message.clone(),
    });
    twins.collect()
}

fn figures(figures: &Figures) -> twin::Figures {
    twin::Figures {
        span_counts: twin::SpanCounts {
            ops_started_count: figures.counts.started,
            ops_ok_count: figures.counts.ok,
            ops_failed_count: figures.counts.failed.count(),
            failed_by_class: by_class(&figures.counts.failed),
        },
        stage_total: totals(&figures.stage),
        rates: figures.rates.map(rates),
        segments: figures.segments.map(|picked| twin::PickedSegments {
            fastest: segment(picked.fastest),
            median: segment(picked.median),
            slowest: segment(picked.slowest),
        }),
        latency_ns: times(&figures.latency),
        service_time_ns: times(&figures.service_time),
        schedule_delay_ns: figures.schedule_delay.as_ref().map(times),
        ttfb_ns: times(&figures.ttfb),
    }
}

fn totals(totals: &StageTotals) -> twin::Totals {
    twin::Totals {
        ops_ok_count: totals.ops_ok,
        ops_failed_count: totals.failed.count(),
        failed_by_class: by_class(&totals.failed),
        bytes: totals.bytes,
        objects_count: totals.objects,
        latency_ns_max: totals.latency_max.map(ns),
        ops_late_count: totals.late,
    }
}

fn by_class(failures: &Failures) -> BTreeMap<&'static str, u64> {
    failures.classes().map(|(class, count)| (class.name(), count)).collect()
}

fn rates(rates: Rates) -> twin::Rates {
    twin::Rates {
        ops_per_sec: rates.ops.0,
        objects_per_sec: rates.objects.0,
        bytes_per_sec: rates.bytes.0,
    }
}

fn segment(segment: SegmentRate) -> twin::Segment {
    twin::Segment { started_ns: segment.start.as_ns(), rates: rates(segment.rates) }
}

fn times(times: &TimeSummary) -> twin::Times {
    twin::Times {
        samples_count: times.samples,
        min: times.min.map(ns),
        p50: times.p50.map(ns),
        p90: times.p90.map(ns),
        p99: times.p99.map(ns),
        p99_9: times.p99_9.map(ns),
        max: times.max.map(ns),
        mean: times.mean.map(ns),
        std_dev: times.std_dev.map(ns),
    }
}

const fn verification_mode(mode: VerificationMode) -> &'static str {
    match mode {
        VerificationMode::EveryByte => "every-byte",
        VerificationMode::Partial => "partial",
        VerificationMode::LengthOnly => "length-only",
        VerificationMode::Off => "off",
    }
}

fn stage_work(work: &StageWork) -> twin::StageWork {
    twin::StageWork { objects_count: work.objects, bytes: work.bytes, duration_ns: ns(work.took) }
}

fn advice(advice: &Advice) -> twin::Advice {
    let code = match advice {
        Advice::NothingDone => "nothing-done",
        Advice::FullSpanUsed => "full-span-used",
        Advice::ShortSpan { .. } => "short-span",
        Advice::FewSamples { .. } => "few-samples",
        Advice::IdleWorkers { .. } => "idle-workers",
        Advice::Imbalance { .. } => "imbalance",
        Advice::Throttled { .. } => "throttled",
        Advice::NothingSucceeded { .. } => "nothing-succeeded",
        Advice::SlowBeyondEnd { .. } => "slow-beyond-end",
        Advice::SegmentLengthened { .. } => "segment-lengthened",
    };
    twin::Advice { code, text: words::advice(advice) }
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
