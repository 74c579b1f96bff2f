//! What a second scan tells of the outages that the first one found: what failed in each, where.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{EndpointId, ErrorClass, Moment, OpRecord};

use super::brown_out::Latencies;
use super::judge::Judge;
use super::stall::Stall;
use super::watch::Watching;
use super::{FailedAt, FailedOf, FailureSpan, Ledger, Outage, TOLD_MAX};
use crate::{Failures, Question, Steadiness};

/// An outage as it is told.
#[derive(Clone, Debug)]
struct OutageTelling {
    stall: Stall,
    first_failure: Option<Moment>,
    failed: Failures,
    at: BTreeMap<EndpointId, u64>,
    of: BTreeMap<u16, u64>,
}

/// The ledger of a row, to be completed by a second scan.
#[derive(Debug)]
pub(crate) struct RowTelling<'a> {
    ledger: Ledger,
    latencies: Latencies,
    steadiness: Option<Steadiness>,
    seen: RowWitness<'a>,
}

/// What a second scan sees of a row.
#[derive(Clone, Debug)]
struct RowWitness<'a> {
    question: &'a Question<'a>,
    /// Until when the row asked for anything; what was known later counts as known then.
    asked_until: u64,
    failed: Option<(u64, u64)>,
    success_before: Option<Moment>,
    /// The gaps to report: those in which an operation failed, then silent ones as they qualify.
    outages: Vec<OutageTelling>,
    /// Decides which silent gaps are reported.
    silent: Judge,
}

/// The outage ledgers of the rows of a question on their way to the answer.
pub(crate) struct Telling<'a> {
    pub(crate) question: &'a Question<'a>,
    pub(crate) wants_more: bool,
    pub(crate) rows: Vec<Option<RowTelling<'a>>>,
}

/// What a second scan sees of the rows of a question.
pub(crate) struct Witness<'a> {
    question: &'a Question<'a>,
    rows: Vec<Option<RowWitness<'a>>>,
}

impl<'a> Telling<'a> {
    /// Returns who sees the records of a second scan, or some of them.
    pub(crate) fn witness(&self) -> Witness<'a> {
        let rows = self.rows.iter().map(|row| row.as_ref().map(|row| row.seen.clone()));
        Witness { question: self.question, rows: rows.collect() }
    }

    /// Takes over what was seen of all records.
    pub(crate) fn hear(&mut self, witness: Witness<'a>) {
        for (row, seen) in self.rows.iter_mut().zip(witness.rows) {
            if let (Some(row), Some(seen)) = (row, seen) {
                row.seen = seen;
            }
        }
    }
}

impl Witness<'_> {
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let Some((row, worker)) = self.question.row_of(op) else { return };
        if self.question.asks_for(op) && self.question.counts(op, row, worker) {
            self.rows[row].as_mut().into_iter().for_each(|row| row.add(op));
        }
    }

    /// Adds what another one saw.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.rows.iter_mut().zip(&other.rows) {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.merge(theirs);
            }
        }
    }
}

impl Watching {
    /// Returns what a second scan is to complete.
    pub(crate) fn telling<'a>(self, question: &'a Question<'a>) -> RowTelling<'a> {
        let silent = self.suspects.iter().filter(|stall| !stall.failed).cloned();
        let silent = Judge::of(silent.collect());
        RowTelling {
            ledger: self.ledger,
            latencies: self.latencies,
            steadiness: self.steadiness,
            seen: RowWitness {
                question,
                asked_until: self.asked_until,
                failed: self.failed,
                success_before: None,
                outages: self.suspects.into_iter().map(OutageTelling::of).collect(),
                silent,
            },
        }
    }
}

impl RowWitness<'_> {
    /// Sees an operation.
    fn add(&mut self, op: &OpRecord) {
        let end = op.end.as_ns();
        let client = self.question.client_of.get(op.worker.0 as usize).copied();
        self.silent.add(op, client);
        if op.outcome == ErrorClass::Ok {
            if self.failed.is_some_and(|(first, _)| end <= first) {
                self.success_before = self.success_before.max(Some(op.end));
            }
            return;
        }
        // Outages of a row and those of its parts may overlap.
        for telling in &mut self.outages {
            let of = &telling.stall;
            let known = end.min(self.asked_until);
            if known < of.from || known > of.until || !of.is_about(op, client) {
                continue;
            }
            telling.failed.add(op.outcome);
            let first = telling.first_failure.get_or_insert(op.end);
            *first = (*first).min(op.end);
            *telling.at.entry(op.endpoint).or_default() += 1;
            if let Some(client) = client {
                *telling.of.entry(client).or_default() += 1;
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.success_before = self.success_before.max(other.success_before);
        for (mine, theirs) in self.outages.iter_mut().zip(&other.outages) {
            mine.merge(theirs);
        }
        self.silent.merge(&other.silent);
    }
}

impl RowTelling<'_> {
    /// Returns the ledger, and how steady the row was.
    pub(crate) fn told(self) -> (Ledger, Option<Steadiness>) {
        let seen = self.seen;
        let failures = seen.failed.map(|(first, last)| FailureSpan {
            success_before: seen.success_before,
            first: Moment::from_ns(first),
            last: Moment::from_ns(last),
        });
        let silent = seen.silent.stalls();
        let mut told = seen.outages;
        told.retain(|of| of.stall.failed || silent.contains(&of.stall));
        let of_all = told.iter().map(|of| &of.stall).filter(|stall| stall.is_of_all());
        let of_all: Vec<Stall> = of_all.cloned().collect();
        // What all of the row tells is not told of its parts as well.
        told.retain(|of| of.stall.is_of_all() || !of_all.iter().any(|all| all.covers(&of.stall)));
        told.sort_by_key(|of| (of.stall.from, of.stall.endpoint, of.stall.client));
        let outages_count = told.len() as u64;
        let lasted = of_all.iter().map(|stall| (stall.until - stall.from, stall.stood_still));
        let away = lasted.map(|(gap, stood_still)| gap.saturating_sub(stood_still)).sum();
        let away = Duration::from_nanos(away);
        told.truncate(TOLD_MAX);
        let outages = told.into_iter().map(OutageTelling::told).collect();
        let apart = of_all.iter().map(|stall| (stall.from, stall.until));
        let standstills = seen.question.standstills.of_any();
        let apart: Vec<_> = apart.chain(standstills.map(|(_, of)| of.bounds_ns())).collect();
        let brown_outs = self.latencies.brown_outs(&apart);
        let ledger = Ledger { failures, outages_count, away, outages, brown_outs, ..self.ledger };
        (ledger, self.steadiness)
    }
}

impl OutageTelling {
    fn of(stall: Stall) -> Self {
        Self {
            stall,
            first_failure: None,
            failed: Failures::default(),
            at: BTreeMap::new(),
            of: BTreeMap::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        let first = self.first_failure.into_iter().chain(other.first_failure);
        self.first_failure = first.min();
        self.failed.merge(&other.failed);
        for (endpoint, count) in &other.at {
            *self.at.entry(*endpoint).or_default() += count;
        }
        for (client, count) in &other.of {
            *self.of.entry(*client).or_default() += count;
        }
    }

    fn told(self) -> Outage {
        let stall = self.stall;
        let at = |(endpoint, count)| FailedAt { endpoint, count };
        let of = |(client, count)| FailedOf { client, count };
        Outage {
            endpoint: stall.endpoint,
            client: stall.client,
            last_success: stall.last_success.map(Moment::from_ns),
            first_failure: self.first_failure,
            next_success: stall.next_success.map(Moment::from_ns),
            gap: Duration::from_nanos(stall.until - stall.from),
            stood_still: Duration::from_nanos(stall.stood_still),
            failed: self.failed,
            failed_by_endpoint: self.at.into_iter().map(at).collect(),
            failed_by_client: self.of.into_iter().map(of).collect(),
            rate_before: stall.rate_before,
            regained_after: stall.regained_after,
        }
    }
}
