//! What an agent has counted so far, as it travels.

use std::collections::BTreeMap;

use plimsoll_engine::{Live, LiveDetail};
use plimsoll_model::{ErrorClass, OpKind};
use serde::{Deserialize, Serialize};

use super::outcome::ErrorDoc;
use super::{Held, SeenDoc};

/// What an agent has counted since the stage under way began: sums, so that one that is lost is
/// made up for by the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveDoc {
    /// Which stage of the run it is, 0-based.
    pub stage: u64,
    /// By kind of operation: of all jobs, or of those that are not told apart.
    kinds: BTreeMap<OpKind, KindDoc>,
    /// By job, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<BTreeMap<OpKind, KindDoc>>,
    /// By address, of all kinds, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<KindDoc>,
    /// The last failure of each class, by the agent's clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<ErrorDoc>,
    /// What stop rules have seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<NewSeen>,
}

/// What stop rules have seen in a part of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSeen {
    /// Grows with each that is told of the stage.
    pub number: u64,
    /// What.
    pub content: Held<SeenDoc>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KindDoc {
    /// By class: operations ended.
    ended: BTreeMap<ErrorClass, u64>,
    bytes: u64,
    objects: u64,
    latency_ns: u64,
    ttfb_ns: u64,
    /// By cell: successes of that latency.
    cells: BTreeMap<usize, u64>,
    /// Sum of the schedule delays of successes.
    #[serde(default, skip_serializing_if = "is_zero")]
    delay_ns: u64,
    /// By coarse cell: successes of that time to first byte.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ttfb_cells: BTreeMap<usize, u64>,
    /// By coarse cell: successes of that schedule delay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    delay_cells: BTreeMap<usize, u64>,
    /// Operations under way.
    #[serde(default, skip_serializing_if = "is_zero")]
    in_flight: u64,
}

/// So many sets of counters are told of at most, so that a message never grows too long; where
/// there are more, jobs and addresses are not told apart.
const COUNTERS_MAX: usize = 96;

/// More than any agent counts of one thing in a stage, and little enough that no sum of such
/// counters overflows.
const COUNT_MAX: u64 = 1 << 40;
/// The same of bytes.
const BYTES_MAX: u64 = 1 << 50;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl LiveDoc {
    /// Returns what the counters of a stage show, with what stop rules have seen.
    pub fn of(stage: u64, live: &Live, seen: Option<NewSeen>) -> Self {
        let of_job =
            |job| kinds(|kind| (live.job_detail(job, kind), live.job_in_flight(job, kind)));
        let hosts = (0..live.hosts_count()).map(|host| live.host_detail(host).unwrap_or_default());
        let apart = Self {
            stage,
            kinds: of_job(None),
            jobs: (0..live.jobs_count()).map(|job| of_job(Some(job))).collect(),
            hosts: hosts.map(|host| KindDoc::of(&host)).collect(),
            failures: live.last_failures().iter().map(|(_, last)| ErrorDoc::of(last)).collect(),
            seen,
        };
        let of_jobs: usize = apart.jobs.iter().map(BTreeMap::len).sum();
        if apart.kinds.len() + of_jobs + apart.hosts.len() <= COUNTERS_MAX {
            return apart;
        }
        let kinds = kinds(|kind| (live.detail(kind), live.in_flight(kind)));
        Self { kinds, jobs: Vec::new(), hosts: Vec::new(), ..apart }
    }

    /// Has a slot of the counters show it.
    pub fn show(&self, live: &Live, slot: usize) {
        let show = |job: Option<usize>, kinds: &BTreeMap<OpKind, KindDoc>| {
            for (kind, of) in kinds {
                live.show(slot, job, *kind, &of.detail());
                live.show_in_flight(slot, job, *kind, of.in_flight.min(COUNT_MAX));
            }
        };
        // Of jobs that are not told apart here there is one sum, which no job may overwrite.
        let jobs = self.jobs.iter().take(live.jobs_count()).enumerate();
        jobs.for_each(|(job, of)| show(Some(job), of));
        show(None, &self.kinds);
        let hosts = self.hosts.iter().enumerate();
        hosts.for_each(|(host, of)| live.show_host(slot, host, &of.detail()));
        let failures = self.failures.iter().take(ErrorClass::ALL.len());
        live.show_failures(slot, failures.map(ErrorDoc::told).collect());
    }
}

/// Returns the kinds of which any operation has ended or is under way.
fn kinds(of: impl Fn(OpKind) -> (Option<LiveDetail>, u64)) -> BTreeMap<OpKind, KindDoc> {
    let kind = |kind: &OpKind| {
        let (detail, in_flight) = of(*kind);
        let is_there = detail.is_some() || in_flight > 0;
        let doc = KindDoc { in_flight, ..KindDoc::of(&detail.unwrap_or_default()) };
        is_there.then_some((*kind, doc))
    };
    OpKind::ALL.iter().filter_map(kind).collect()
}

impl KindDoc {
    fn of(detail: &LiveDetail) -> Self {
        let classes = ErrorClass::ALL.into_iter().zip(detail.ended);
        let classes = classes.filter(|(_, count)| *count > 0);
        Self {
            ended: classes.collect(),
            bytes: detail.bytes,
            objects: detail.objects,
            latency_ns: detail.latency_ns,
            ttfb_ns: detail.ttfb_ns,
            cells: counted(&*detail.latency_cells),
            delay_ns: detail.delay_ns,
            ttfb_cells: counted(&detail.ttfb_cells),
            delay_cells: counted(&detail.delay_cells),
            in_flight: 0,
        }
    }

    fn detail(&self) -> LiveDetail {
        let mut detail = LiveDetail {
            bytes: self.bytes.min(BYTES_MAX),
            objects: self.objects.min(COUNT_MAX),
            latency_ns: self.latency_ns,
            ttfb_ns: self.ttfb_ns,
            delay_ns: self.delay_ns,
            ..LiveDetail::default()
        };
        for (class, count) in &self.ended {
            detail.ended[*class as usize] = (*count).min(COUNT_MAX);
        }
        put(&self.cells, &mut *detail.latency_cells);
        put(&self.ttfb_cells, &mut detail.ttfb_cells);
        put(&self.delay_cells, &mut detail.delay_cells);
        detail
    }
}

/// Returns the cells in which something was counted.
fn counted(cells: &[u64]) -> BTreeMap<usize, u64> {
    cells.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
}

/// Puts counts into their cells; one that is not known here is left out, and none is absurd.
fn put(counts: &BTreeMap<usize, u64>, cells: &mut [u64]) {
    for (cell, count) in counts {
        if let Some(of) = cells.get_mut(*cell) {
            *of = (*count).min(COUNT_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::ErrorSample;
    use plimsoll_model::{EndpointId, JobId, Moment};

    use super::*;

    #[test]
    fn counters_are_shown_as_they_were_and_unknown_cells_are_left_out() {
        let text = r#"{"stage": 3, "kinds": {
            "GET": {"ended": {"ok": 3, "throttled": 1}, "bytes": 30,
                    "objects": 3, "latency_ns": 4000, "ttfb_ns": 2000,
                    "cells": {"1": 2, "7": 1, "99999": 5},
                    "delay_ns": 70, "ttfb_cells": {"2": 3, "99": 1}, "delay_cells": {"0": 3}}}}"#;
        let doc: LiveDoc = serde_json::from_str(text).unwrap();
        let live = Live::new(2);
        doc.show(&live, 1);
        let detail = live.detail(OpKind::Get).unwrap();
        assert_eq!((detail.ended_count(), detail.failed_count(), detail.bytes), (4, 1, 30));
        assert_eq!((detail.latency_cells[1], detail.latency_cells[7]), (2, 1));
        assert_eq!((detail.ttfb_cells[2], detail.delay_cells[0], detail.delay_ns), (3, 3, 70));
        let back = LiveDoc::of(3, &live, None);
        assert_eq!(back.kinds.len(), 1);
        assert_eq!(back.kinds[&OpKind::Get].cells, BTreeMap::from([(1, 2), (7, 1)]));
        assert_eq!(back.kinds[&OpKind::Get].ttfb_cells, BTreeMap::from([(2, 3)]));
    }

    #[test]
    fn no_sum_of_what_agents_tell_overflows() {
        let max = u64::MAX;
        let text = format!(
            r#"{{"stage": 0, "kinds": {{"GET": {{"ended": {{"ok": {max}, "throttled": {max},
            "reset": {max}}}, "bytes": {max}, "objects": {max}, "latency_ns": {max},
            "ttfb_ns": {max}, "cells": {{"1": {max}, "2": {max}}}, "delay_ns": {max},
            "ttfb_cells": {{"2": {max}}}, "in_flight": {max}}}}}}}"#
        );
        let doc: LiveDoc = serde_json::from_str(&text).unwrap();
        let live = Live::new(64);
        (0..64).for_each(|slot| doc.show(&live, slot));
        let counts = live.counts(OpKind::Get);
        assert_eq!((counts.ok, counts.failed), (64 * COUNT_MAX, 128 * COUNT_MAX));
        assert_eq!((counts.bytes, live.in_flight(OpKind::Get)), (64 * BYTES_MAX, 64 * COUNT_MAX));
        let detail = live.detail(OpKind::Get).unwrap();
        assert_eq!(detail.ended_count(), 192 * COUNT_MAX);
        assert!(detail.latency(plimsoll_stats::Percentile::P50).is_some());
    }

    #[test]
    fn jobs_and_addresses_are_shown_apart_unless_a_message_would_grow_too_long() {
        let detail = |ok: u64| {
            let mut detail = LiveDetail { bytes: ok * 10, ..LiveDetail::default() };
            detail.ended[0] = ok;
            detail
        };
        let from = Live::telling(1, 3, 2);
        from.show(0, Some(1), OpKind::Get, &detail(5));
        from.show(0, Some(2), OpKind::Get, &detail(2));
        from.show_in_flight(0, Some(2), OpKind::Get, 7);
        from.show_host(0, 1, &detail(4));
        let failure = ErrorSample {
            class: ErrorClass::Connect,
            job: JobId(2),
            kind: OpKind::Get,
            endpoint: EndpointId(1),
            at: Moment::from_ns(7),
            status: None,
            message: "refused".to_owned(),
        };
        from.show_failures(0, vec![failure.clone()]);
        let doc = LiveDoc::of(0, &from, None);
        let doc: LiveDoc = serde_json::from_str(&serde_json::to_string(&doc).unwrap()).unwrap();
        let to = Live::telling(2, 3, 2);
        doc.show(&to, 1);
        let ok = |detail: Option<LiveDetail>| detail.map(|detail| detail.ended[0]);
        assert_eq!(ok(to.job_detail(Some(1), OpKind::Get)), Some(5));
        assert_eq!(ok(to.job_detail(Some(2), OpKind::Get)), Some(2));
        assert_eq!((to.job_in_flight(Some(2), OpKind::Get), to.slot_in_flight(1)), (7, 7));
        assert_eq!((ok(to.host_detail(0)), ok(to.host_detail(1))), (None, Some(4)));
        assert_eq!(to.last_failures(), [(1, failure)]);
        let many = Live::telling(1, 16, 32);
        for job in 0..16 {
            OpKind::ALL.iter().for_each(|kind| many.show(0, Some(job), *kind, &detail(1)));
        }
        let doc = LiveDoc::of(0, &many, None);
        assert_eq!((doc.jobs.len(), doc.hosts.len()), (0, 0));
        let to = Live::telling(1, 16, 32);
        doc.show(&to, 0);
        assert_eq!(ok(to.detail(OpKind::Get)), Some(16));
    }
}
