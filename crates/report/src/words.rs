//! Values as sentences, the same in every kind of report.

use std::fmt::Display;
use std::time::Duration;

use plimsoll_analysis::{Advice, Figures, SpanRule, Times};
use plimsoll_model::{ErrorClass, OpKind, OpRate, WallTime, WrongKind, per_sec};

use crate::format::{self, byte_rate, bytes, count, duration, known, number, op_rate, plural};
use crate::report::{Report, RowView, StageReport, StageWork};
use crate::stage_words;
use crate::{
    AdviceLine, CertificateLine, CleanupReport, CleanupState, ErrorSample, LoopModel, OpLogCheck,
    RunState, ScheduleReport, TargetReport, Verification, VerificationMode,
};

/// Returns the loop model with its number of workers and what it makes of the latency.
pub(crate) fn loop_model(report: &RowView<'_>) -> String {
    let workers = plural(u64::from(report.row.analysis.workers_count), "worker");
    let threads = report.stage.threads.map(|threads| plural(u64::from(threads), "thread"));
    let threads = threads.map_or(String::new(), |threads| format!(" on {threads}"));
    let schedule = report.schedule();
    match (report.row.loop_model, schedule) {
        (LoopModel::Open, Some(_)) => pacing(LoopModel::Open, schedule, ""),
        (model, _) => pacing(model, schedule, &format!(", {workers}{threads}")),
    }
}

/// Returns when operations start, and what that makes of the latency; `who` stands between.
pub(crate) fn pacing(model: LoopModel, schedule: Option<&ScheduleReport>, who: &str) -> String {
    let (name, meaning) = match model {
        LoopModel::Closed => ("closed loop".to_owned(), "latency = service time"),
        LoopModel::Capped { rate } => (
            match rate {
                Some(rate) => format!("closed loop capped at {} ops/s", number(rate.0)),
                None => "closed loop capped for each worker".to_owned(),
            },
            "latency = service time, waiting for the cap is not in it",
        ),
        LoopModel::Open => {
            let of = schedule.map(|ScheduleReport { rates, arrivals, max_in_flight, .. }| {
                let (rate, arrivals) = (joined(rates), joined(arrivals));
                let limit = count(u64::from(*max_in_flight));
                format!(", {rate} {arrivals}, up to {limit} in flight")
            });
            let name = format!("open loop{}", of.unwrap_or_default());
            (name, "latency from the intended start")
        }
    };
    format!("{name}{who}: {meaning}")
}

/// Returns what merged runs have of each as one text: `100/s + 200/s`.
pub fn joined(all: &[impl Display]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

/// Returns what an error said, and which host of the run said it.
pub(crate) fn said(report: &RowView<'_>, error: &ErrorSample) -> String {
    let at = error.endpoint.map(|id| format!("{}: ", report.endpoint(id)));
    at.unwrap_or_default() + &error.message
}

/// Returns the first texts, at most `most`, of one kind's failures of one class, each of them once
/// and cut to `chars_max` characters.
pub(crate) fn messages(
    errors: &[ErrorSample],
    of: (OpKind, ErrorClass),
    (most, chars_max): (usize, usize),
    text: impl Fn(&ErrorSample) -> String,
) -> Vec<String> {
    let mut texts = Vec::new();
    for error in errors.iter().filter(|error| (error.kind, error.class) == of) {
        let text = text(error).chars().take(chars_max).collect();
        if texts.len() < most && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Returns a moment in UTC, and beside it the local time where it is another.
pub(crate) fn began(at: WallTime, utc_offset_seconds: Option<i32>) -> String {
    let local = local(at, utc_offset_seconds);
    let local = local.map_or(String::new(), |(time, zone)| format!(" ({time} {zone})"));
    format!("{} UTC{local}", to_the_second(at))
}

/// Returns a moment in UTC, and beside it the local time of day where it is another.
pub(crate) fn moment(at: WallTime, utc_offset_seconds: Option<i32>) -> String {
    let local = local(at, utc_offset_seconds).map_or(String::new(), |(time, zone)| {
        let time_of_day = time.split_once(' ').map_or(&*time, |(_, time)| time);
        format!(" ({time_of_day} {zone})")
    });
    format!("{} UTC{local}", to_the_second(at))
}

fn to_the_second(at: WallTime) -> String {
    let text = at.to_string();
    text.split('.').next().unwrap_or_default().replace('T', " ").replace('Z', "")
}

/// Returns the local time and its zone, where they are not those of UTC.
fn local(at: WallTime, utc_offset_seconds: Option<i32>) -> Option<(String, String)> {
    let offset = utc_offset_seconds.filter(|offset| *offset != 0)?;
    let ahead = i64::from(offset) * 1_000_000_000;
    let local = WallTime::from_unix_ns(at.as_unix_ns().saturating_add_signed(ahead));
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    let zone = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    Some((to_the_second(local), zone))
}

/// Returns where the figures come from.
pub(crate) fn span(report: &RowView<'_>) -> String {
    let analysis = &report.row.analysis;
    let (stage, span) = (analysis.ended.since(analysis.started), analysis.span.length());
    // A row may begin after a ramp, and end before its stage does.
    let part = match span == stage {
        true => format!("all of {}", duration(stage)),
        false => format!("{} of {}", duration(span), duration(stage)),
    };
    match analysis.span.rule {
        SpanRule::AllWorkers => format!(
            "{} of {}, while all {} ran",
            duration(span),
            duration(stage),
            plural(u64::from(analysis.workers_active), "worker")
        ),
        SpanRule::Schedule => format!("{part}, as operations arrived"),
        SpanRule::FullAsked => format!("{part}, start and end included"),
        SpanRule::FullTooShort if analysis.workers_active == 0 => {
            format!("nothing, in {}", duration(stage))
        }
        SpanRule::FromRamps => part,
        SpanRule::FullTooShort if report.stage.clients_apart => {
            format!("{part}, as the clients were not all at it at the same time")
        }
        SpanRule::FullTooShort if analysis.is_part => part,
        SpanRule::FullTooShort => format!("{part}, as the workers hardly ran together"),
    }
}

/// What the times of an open loop are, in one sentence.
pub(crate) const OPEN_TIMES: &str =
    "latency is from the intended start, service from the real one, delay between";

/// Tells whether operations started later than they should have, or might have.
pub(crate) fn has_delays(figures: &Figures) -> bool {
    figures.schedule_delay.is_some() || figures.service_time.is_some()
}

/// Returns the mean of times with their deviation: `10.0 ms ± 1.20 ms`.
pub(crate) fn spread(times: &Times) -> String {
    format::known(times.mean, |mean| {
        format!("{} ± {}", duration(mean), format::known(times.std_dev, duration))
    })
}

/// Returns how read content was checked.
pub(crate) fn verification(mode: VerificationMode) -> &'static str {
    match mode {
        VerificationMode::EveryByte => "every byte of every read",
        VerificationMode::Partial => "every byte of what the run wrote",
        VerificationMode::Checksum => "whole reads against the checksum that the server states",
        VerificationMode::LengthOnly => "length only: the content is not known",
        VerificationMode::Off => "length only: switched off",
    }
}

/// Returns what else there is to know about a run, a name and a text each.
pub(crate) fn remarks(report: &RowView<'_>) -> Vec<(&'static str, String)> {
    let mut remarks = Vec::new();
    remarks.extend(report.stage.ended_because.clone().map(|because| ("ended early", because)));
    remarks.extend(report.prepared().map(|stage| ("prepared", prepared(stage, report))));
    remarks.extend(crate::read_back::line(report.report));
    remarks.extend(cleaned(report.report).map(|text| ("cleaned up", text)));
    remarks.extend(report.verification.map(|check| ("verified", verified(check))));
    remarks.extend(report.stage.cpu.filter(|_| !report.virtual_time).map(|cpu| {
        let totals = &report.row.analysis.total.stage;
        let ended = totals.ops_ok + totals.failed.count();
        let each = (ended > 0).then(|| cpu.as_nanos() as f64 / ended as f64);
        let each = known(each, |ns| duration(Duration::from_nanos(ns.round() as u64)));
        ("client CPU", format!("{}, {each} per operation", duration(cpu)))
    }));
    let whole = report.stage.op_log.filter(OpLogCheck::is_whole);
    remarks.extend(
        whole.map(|check| {
            ("op log", format!("{}, all that were counted", plural(check.rows, "row")))
        }),
    );
    remarks.extend(identity(report));
    remarks.extend(report.certificate.as_ref().map(|of| ("certificate", certificate(of))));
    remarks
}

/// Returns how much of what was read was checked, and how.
pub(crate) fn verified(check: Verification) -> String {
    let unchecked = match check.unverified_bytes {
        0 => String::new(),
        unverified => format!("; {} not checked", bytes(unverified)),
    };
    format!("{}, {}{unchecked}", bytes(check.bytes), verification(check.mode))
}

/// Returns what a stage made; on files by kind, as nothing of it is an object.
fn prepared(stage: &StageReport, report: &Report) -> String {
    match stage.rows.iter().any(|row| row.is_on_files) {
        true => stage_words::prepared(stage),
        false => stage_work(&stage.work(), report),
    }
}

/// Returns what fixes all choices of a run; in virtual time it fixes the result.
fn identity(report: &RowView<'_>) -> Option<(&'static str, String)> {
    if !report.virtual_time {
        return report.seed.map(|seed| ("seed", seed.0.to_string()));
    }
    let seed = known(report.seed, |seed| seed.0.to_string());
    let hash = known(report.stage.stream_hash.as_deref(), str::to_owned);
    Some(("time", format!("virtual, seed {seed}, stream hash {hash}")))
}

fn certificate(of: &CertificateLine) -> String {
    let text = |known: &Option<String>| format::known(known.as_deref(), str::to_owned);
    format!(
        "plimsoll {} on {}, seed {}: {} passed, {} failed ({})",
        text(&of.tool_version),
        text(&of.machine),
        known(of.seed, |seed| seed.to_string()),
        plural(of.passed_count, "proof"),
        count(of.failed_count),
        text(&of.when)
    )
}

/// Returns how many contents that were read were wrong: for each class of failure a name and a
/// text, `12 (5 old-version, 7 torn)`.
pub(crate) fn wrong(report: &RowView<'_>) -> Vec<(&'static str, String)> {
    let class = |class: ErrorClass| {
        let is_truncated = class == ErrorClass::Truncated;
        let of_class = |(kind, n): &(&WrongKind, &u64)| **n > 0 && kind.is_length() == is_truncated;
        let kinds: Vec<_> = report.stage.wrong.iter().filter(of_class).collect();
        let all: u64 = kinds.iter().map(|(_, n)| *n).sum();
        let each = kinds.iter().map(|(kind, n)| format!("{} {kind}", count(**n)));
        let each = each.collect::<Vec<_>>().join(", ");
        (all > 0).then(|| (class.name(), format!("{} ({each})", count(all))))
    };
    [ErrorClass::Corrupt, ErrorClass::Truncated].into_iter().filter_map(class).collect()
}

/// Returns what the failures leave of the rates; `None` without failures.
pub(crate) fn goodput(report: &RowView<'_>) -> Option<String> {
    let total = &report.row.analysis.total;
    if total.stage.failed.count() == 0 {
        return None;
    }
    let rates = known(total.rates, |rates| {
        let bytes = total.moves_bytes.then(|| format!("{}, ", byte_rate(rates.bytes)));
        format!("{}{}", bytes.unwrap_or_default(), op_rate(rates.ops))
    });
    Some(format!("{rates}: failures are excluded from rates and latencies"))
}

/// Returns what a stage did in one line. In virtual time there is no rate: it would be one of
/// nothing that ran.
fn stage_work(work: &StageWork, report: &Report) -> String {
    // Names of SeaweedFS are of files.
    let of_files = |of: &TargetReport| of.collection.is_some() || of.directory.is_some();
    let is_of_files = !report.targets.is_empty() && report.targets.iter().all(of_files);
    let (noun, each) = if is_of_files { ("file", "files") } else { ("object", "obj") };
    let bytes = if work.bytes > 0 { format!(", {}", bytes(work.bytes)) } else { String::new() };
    let rate = per_sec(work.objects as f64, work.took).filter(|_| !report.virtual_time);
    let rate = rate.map(|rate| format!(" ({} {each}/s)", number(rate))).unwrap_or_default();
    format!("{}{bytes} in {}{rate}", plural(work.objects, noun), duration(work.took))
}

/// Returns what was removed at the end.
pub(crate) fn cleaned(report: &Report) -> Option<String> {
    let CleanupReport { state, removed, removed_files, took } = report.cleanup?;
    let (files, all) = (report.targets.iter().filter(|of| of.is_files).count(), &report.targets);
    let noun = match files {
        0 => "object",
        files if files == all.len() => "file",
        _ => "objects and file",
    };
    let what = removed.map(|removed| {
        let of_files = removed_files.filter(|_| files < all.len()).unwrap_or(0).min(removed);
        match (removed - of_files, of_files) {
            (objects, 0) if removed_files.is_some() && noun != "file" => plural(objects, "object"),
            (removed, 0) => plural(removed, noun),
            (0, files) => plural(files, "file"),
            (objects, files) => {
                format!("{} and {}", plural(objects, "object"), plural(files, "file"))
            }
        }
    });
    let work = || {
        let (objects, took) = (removed?, took?);
        Some(stage_work(&StageWork { objects, bytes: 0, took }, report))
    };
    match (state, files) {
        (CleanupState::Complete | CleanupState::Failed, 0) => work(),
        (CleanupState::Complete, _) => what.map(|what| format!("{what} removed")),
        (CleanupState::Kept, 0) => None,
        (CleanupState::Kept, _) => Some(format!("{noun}s kept")),
        (CleanupState::Failed, _) => Some(format!("not all {noun}s could be removed")),
    }
}

/// Returns all warnings about a run, with the advice that `tells` picks, but for the load that the
/// store shed, which is shown beside the failures.
pub(crate) fn warnings(report: &RowView<'_>, tells: impl Fn(&Advice) -> bool) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(state_warning(report.state).map(str::to_owned));
    warnings.extend(crate::read_back::warning(report.report));
    warnings.extend(report.losses.iter().cloned());
    warnings.extend(crate::stage_words::unchecked(report.stage));
    warnings.extend(report.stage.op_log.as_ref().and_then(op_log_warning));
    warnings.extend(recorder_warning(report.recorder_wait));
    warnings.extend(report.certificate.as_ref().and_then(|of| certificate_warning(of, report)));
    let has_own_line = |advice: &&Advice| matches!(advice, Advice::Throttled { .. });
    let told = report.row.analysis.advice.iter().filter(|of| !has_own_line(of) && tells(of));
    warnings.extend(told.map(advice));
    warnings.extend(report.advice.iter().cloned());
    warnings
}

/// Returns what is wrong with the op log, if something is.
pub(crate) fn op_log_warning(check: &OpLogCheck) -> Option<String> {
    (!check.is_whole()).then(|| {
        format!(
            "the op log holds {} but the workers counted {}: figures taken from it are incomplete",
            plural(check.rows, "row"),
            plural(check.counted, "operation")
        )
    })
}

/// Returns why a certificate does not vouch for a run, if there is a reason.
fn certificate_warning(of: &CertificateLine, report: &RowView<'_>) -> Option<String> {
    if of.failed_count > 0 {
        let failed = plural(of.failed_count, "failed proof");
        return Some(format!("the certificate reports {failed}: do not trust these figures"));
    }
    if of.passed_count == 0 {
        return Some(
            "the certificate holds no proof that passed, so it vouches for nothing".into(),
        );
    }
    let (proved, ran) = (of.tool_version.as_ref()?, report.tool_version.as_ref()?);
    (proved != ran)
        .then(|| format!("the certificate was made by plimsoll {proved}, and the run by {ran}"))
}

/// Returns what the recorder did to the load, if it did something.
pub(crate) fn recorder_warning(wait: Option<Duration>) -> Option<String> {
    wait.filter(|wait| !wait.is_zero()).map(|wait| {
        format!(
            "workers waited {} in all for the recorder, so it may have slowed the load: leave a \
            core free (fewer `threads`), or put the run directory on a faster disk",
            duration(wait)
        )
    })
}

/// Returns what to know about a run that did not come to its own end.
pub fn state_warning(state: RunState) -> Option<&'static str> {
    match state {
        // The agents' section says whose share is missing.
        RunState::Complete | RunState::Degraded => None,
        RunState::Running => {
            Some("the run is still under way; the figures are of what it did so far")
        }
        RunState::Interrupted => Some("the run was ended early; the figures are of what ran"),
        RunState::Killed => Some(
            "the run has no recorded end: it was killed, or its disk was full; what it did in its \
            last second or two may be missing",
        ),
        RunState::Failed => Some("the run was aborted; the figures are of what ran"),
    }
}

/// Returns a warning with its code.
pub(crate) fn advice_line(of: &Advice) -> AdviceLine {
    let code = match of {
        Advice::NothingDone => "nothing-done",
        Advice::FullSpanUsed { .. } => "full-span-used",
        Advice::AllSkipped { .. } => "all-skipped",
        Advice::ShortSpan { .. } => "short-span",
        Advice::FewSamples { .. } => "few-samples",
        Advice::IdleWorkers { .. } => "idle-workers",
        Advice::Imbalance { .. } => "imbalance",
        Advice::Throttled { .. } => "throttled",
        Advice::NothingSucceeded { .. } => "nothing-succeeded",
        Advice::SlowBeyondEnd { .. } => "slow-beyond-end",
        Advice::Drift { .. } => "drift",
        Advice::Cliff(_) => "cliff",
        Advice::Pauses { .. } => "pauses",
        Advice::SegmentLengthened { .. } => "segment-lengthened",
    };
    AdviceLine { code, text: advice(of) }
}

/// Returns a warning in words.
pub(crate) fn advice(advice: &Advice) -> String {
    match *advice {
        Advice::NothingDone => {
            "no operation of the measured stage ended, so there is nothing to report: check that \
            the store answers at all, then measure for several times as long as an operation takes"
                .to_owned()
        }
        Advice::FullSpanUsed { skipped: false } => {
            "all workers ran together for less than a tenth of the stage, so the figures include \
            its start and end: run for longer, or with more objects where they are used up"
                .to_owned()
        }
        Advice::FullSpanUsed { skipped: true } => {
            "all workers ran together for less than a tenth of what was not left out of the \
            stage, so the figures include its end"
                .to_owned()
        }
        Advice::AllSkipped { skip, took } => format!(
            "the first {} of the stage are left out, and nothing of its {} remains: leave out less",
            duration(skip),
            duration(took)
        ),
        Advice::ShortSpan { span } => format!(
            "the measured span of {} is too short for 5 whole segments: measure for longer",
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
            "{} of {} ended no operation: run for longer than an operation takes, give each enough \
             to do, or use fewer",
            count(u64::from(configured - active)),
            plural(u64::from(configured), "worker")
        ),
        Advice::Imbalance { apart } => format!(
            "the first worker was done {} before the last, and the measured span ends with the \
             first",
            duration(apart)
        ),
        Advice::Throttled { count, share } => throttled(count, share),
        Advice::NothingSucceeded { length, after } => format!(
            "no operation succeeded for {}, from {} after the begin of the measured span on: the \
             rates are means over that outage, and the error rate counts only the few that were \
             tried",
            duration(length),
            duration(after)
        ),
        Advice::SlowBeyondEnd { latency } => format!(
            "an operation that succeeded after the measured span took {}, longer than any inside: \
            the latencies do not include it",
            duration(latency)
        ),
        Advice::Drift { .. } | Advice::Cliff(_) | Advice::Pauses { .. } => unsteady(advice),
        Advice::SegmentLengthened { asked, used } => format!(
            "segments of {} would have been too many, so they are {} long",
            duration(asked),
            duration(used)
        ),
    }
}

/// Returns in what way a rate was not steady; of other advice nothing.
fn unsteady(advice: &Advice) -> String {
    match *advice {
        Advice::Drift { part } => format!(
            "the rate {} by {} of its mean over the run, so the mean describes no moment of it: \
            run for longer, or look for what fills up or runs down",
            if part < 0.0 { "fell" } else { "rose" },
            format::percent(part.abs() * 100.0)
        ),
        Advice::Cliff(cliff) => format!(
            "the rate changed at once, {} after the start, from {} to {}: the mean describes \
            neither: leave out the beginning, or run for longer",
            duration(cliff.after),
            op_rate(OpRate(cliff.before)),
            op_rate(OpRate(cliff.rate_after))
        ),
        Advice::Pauses { period } => format!(
            "the rate pauses about every {}: something in the store, or on this machine, \
            alternates with the load",
            duration(period)
        ),
        _ => String::new(),
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
