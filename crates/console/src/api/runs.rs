//! Runs: listing, submitting, and what is done to one.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};

use super::doc::{
    ActiveDoc, CheckDoc, CheckedDoc, CheckedJobDoc, CheckedStageDoc, LogDoc, MoveDoc, RunsDoc,
    SubmitDoc, SubmittedDoc, WorkloadDoc,
};
use super::guard::Caller;
use super::refused::Refused;
use super::{At, Fields, Site, blocking, field, number, read, turns, view};
use crate::console::Submitted;
use crate::facts::{JobPlan, StagePlan};
use crate::redact::redact;
use crate::runner::{Refusal, Sound};
use crate::state::{Number, SourceKind, State as RunState};
use crate::store::{Filter, Move, Sort};

/// Nothing longer is looked for.
const SEARCH_CHARS_MAX: usize = 200;
/// No more runs are listed at once.
const LIMIT_MAX: i64 = 200;

/// Lists runs.
pub(super) async fn list(State(site): At, fields: Fields) -> Response {
    let filter = filter(&fields);
    let work = move |site: &Site| {
        let filter = filter?;
        let (entries, total_count) = site.console.store().list(&filter)?;
        let end = filter.offset + entries.len() as i64;
        let active = entries.iter().any(|entry| entry.state == RunState::Queued);
        let places = if active { view::active(&site.console)? } else { Vec::new() };
        let run = |entry: &crate::store::Entry| {
            let id = entry.number.to_string();
            let order = places.iter().find(|run| run.id == id).and_then(|run| run.order);
            view::short(&site.console, entry, order)
        };
        Ok(Json(RunsDoc {
            runs: entries.iter().map(run).collect(),
            next: (end < total_count).then(|| end.to_string()),
            total_count,
        }))
    };
    blocking(site, work).await
}

/// Returns which runs are asked for.
fn filter(fields: &Fields) -> Result<Filter, Refused> {
    let text = |name: &str| fields.0.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let wrong = |name: &str, value: &str| {
        let value: String = value.chars().take(SEARCH_CHARS_MAX).collect();
        Refused::invalid(format!("`{name}={value}` is not an allowed value"))
    };
    let number = |name: &str, otherwise: i64, least: i64| match text(name) {
        None => Ok(otherwise),
        Some(written) => {
            let number = written.parse().ok().filter(|number| *number >= least);
            number.ok_or_else(|| wrong(name, written))
        }
    };
    let search = text("search").map(str::to_owned);
    if search.as_ref().is_some_and(|text| text.chars().count() > SEARCH_CHARS_MAX) {
        let more = format!("`search` has more than {SEARCH_CHARS_MAX} letters");
        return Err(Refused::invalid(more));
    }
    let states = text("state").into_iter().flat_map(|states| states.split(','));
    let states = states.map(|state| RunState::of_name(state).ok_or_else(|| wrong("state", state)));
    let kind =
        text("kind").map(|kind| SourceKind::of_name(kind).ok_or_else(|| wrong("kind", kind)));
    let sort = text("sort").unwrap_or("-submitted");
    Ok(Filter {
        text: search,
        states: states.collect::<Result<_, _>>()?,
        kind: kind.transpose()?,
        sort: match sort.strip_prefix('-').unwrap_or(sort) {
            "submitted" => Sort::Submitted,
            "duration" => Sort::Duration,
            "name" => Sort::Name,
            "state" => Sort::State,
            _ => return Err(wrong("sort", sort)),
        },
        is_rising: !sort.starts_with('-'),
        offset: number("cursor", 0, 0)?,
        limit: number("limit", 50, 1)?.min(LIMIT_MAX),
    })
}

/// Takes a workload in.
pub(super) async fn submit(
    State(site): At,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Response {
    let work = move |site: &Site| {
        let _turn = turns::begin(site, &caller.user)?;
        let SubmitDoc { text, file_name, name, to } = read(&body)?;
        let (number, problems) = site.console.submit(&Submitted {
            text: &text,
            file_name: file_name.as_deref(),
            name: name.as_deref().filter(|name| !name.is_empty()),
            user: &caller.user,
            first: to.as_deref() == Some("first"),
            resubmitted_from: None,
        })?;
        let id = number.to_string();
        Ok((StatusCode::CREATED, Json(SubmittedDoc { id, problems })))
    };
    blocking(site, work).await
}

/// Judges a workload.
pub(super) async fn check(
    State(site): At,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Response {
    let work = move |site: &Site| {
        let _turn = turns::begin(site, &caller.user)?;
        let CheckDoc { text, file_name } = read(&body)?;
        let judged = site.console.check(&text, file_name.as_deref(), None);
        Ok(Json(match judged {
            Ok(sound) => sound_doc(sound),
            Err(refusal) => refused_doc(refusal),
        }))
    };
    blocking(site, work).await
}

fn sound_doc(sound: Sound) -> CheckedDoc {
    let job = |job: JobPlan| CheckedJobDoc {
        name: job.name,
        workers_count: job.workers_count,
        work: job.work,
    };
    let stage = |(index, stage): (usize, StagePlan)| CheckedStageDoc {
        number: index + 1,
        name: stage.name,
        planned_ns: stage.planned_ns,
        delay_ns: stage.delay_ns,
        jobs: stage.jobs.into_iter().map(job).collect(),
    };
    CheckedDoc {
        ok: true,
        kind: sound.kind,
        name: Some(sound.name),
        problems: sound.problems,
        lowered: Some(redact(SourceKind::Plimsoll, &sound.explained).text),
        touches: sound.facts.touches,
        needs_leave: sound.needs_leave,
        stages: sound.facts.stages.into_iter().enumerate().map(stage).collect(),
        corrections: sound.facts.corrections,
    }
}

fn refused_doc(refusal: Refusal) -> CheckedDoc {
    CheckedDoc {
        ok: false,
        kind: refusal.kind,
        name: None,
        problems: refusal.problems,
        lowered: None,
        touches: Vec::new(),
        needs_leave: Vec::new(),
        stages: Vec::new(),
        corrections: Vec::new(),
    }
}

/// Shows a run.
pub(super) async fn show(State(site): At, Path(id): Path<String>) -> Response {
    blocking(site, move |site| Ok(Json(view::full(&site.console, number(&id)?, true)?))).await
}

/// Cancels a run.
pub(super) async fn cancel(State(site): At, Path(id): Path<String>) -> Response {
    let work = move |site: &Site| {
        let entry = site.console.cancel(number(&id)?)?;
        Ok(Json(view::short(&site.console, &entry, None)))
    };
    blocking(site, work).await
}

/// Takes a workload in again.
pub(super) async fn resubmit(
    State(site): At,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let work = move |site: &Site| {
        let _turn = turns::begin(site, &caller.user)?;
        let number = site.console.resubmit(number(&id)?, &caller.user)?;
        let id = number.to_string();
        Ok((StatusCode::CREATED, Json(SubmittedDoc { id, problems: Vec::new() })))
    };
    blocking(site, work).await
}

/// Moves a waiting run.
pub(super) async fn reorder(State(site): At, Path(id): Path<String>, body: Bytes) -> Response {
    let work = move |site: &Site| {
        let to: MoveDoc = read(&body)?;
        let number = number(&id)?;
        if let Some(to) = wanted(site, number, &to)? {
            site.console.reorder(number, to)?;
        }
        Ok(Json(ActiveDoc { active: view::active(&site.console)? }))
    };
    blocking(site, work).await
}

fn wanted(site: &Site, run: Number, to: &MoveDoc) -> Result<Option<Move>, Refused> {
    let queued = || -> Result<Vec<Number>, Refused> {
        let active = site.console.store().active()?;
        let queued = active.iter().filter(|entry| entry.state == RunState::Queued);
        Ok(queued.map(|entry| entry.number).collect())
    };
    Ok(Some(match (&to.before, &to.after, to.to.as_deref()) {
        (Some(before), _, _) => Move::Before(number(before)?),
        (None, Some(after), _) => Move::After(number(after)?),
        (None, None, Some("up")) => Move::Up,
        (None, None, Some("down")) => Move::Down,
        (None, None, Some("first")) => Move::Before(queued()?.first().copied().unwrap_or(run)),
        (None, None, Some("last")) => Move::After(queued()?.last().copied().unwrap_or(run)),
        _ => return Err(Refused::invalid("say `before`, `after` or `to`")),
    }))
}

/// Shows the text of a run's workload.
pub(super) async fn workload(State(site): At, Path(id): Path<String>) -> Response {
    let work = move |site: &Site| {
        let source = site.console.store().source(number(&id)?)?;
        let crate::store::Source { text, file_name, explained, .. } = source;
        Ok(Json(WorkloadDoc { text, file_name, lowered: explained }))
    };
    blocking(site, work).await
}

/// Shows what was said of a run.
pub(super) async fn log(State(site): At, Path(id): Path<String>, fields: Fields) -> Response {
    let work = move |site: &Site| {
        let number = number(&id)?;
        site.console.store().entry(number)?;
        let after = field(&fields, "after").unwrap_or(0_i64).max(0);
        let limit = field(&fields, "limit").unwrap_or(500_usize).clamp(1, 2_000);
        let remarks = site.console.store().remarks(number)?;
        let last = remarks.len() as i64;
        let lines = (1..).zip(&remarks).filter(|(seq, _)| *seq > after).take(limit);
        let log = lines.map(|(seq, remark)| view::log_line(seq, remark)).collect();
        Ok(Json(LogDoc { log, last }))
    };
    blocking(site, work).await
}
