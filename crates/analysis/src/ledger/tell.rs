//! What a second scan tells of the outages that the first one found: what failed in each, where.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{EndpointId, ErrorClass, Moment, OpRecord};

use super::stall::Stall;
use super::watch::Watching;
use super::{FailedAt, FailedOf, FailureSpan, Ledger, Outage};
use crate::{Failures, Question, Steadiness};

/// An outage as it is told.
#[derive(Debug)]
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
    question: &'a Question<'a>,
    ledger: Ledger,
    failed: Option<(u64, u64)>,
    success_before: Option<Moment>,
    outages: Vec<OutageTelling>,
    steadiness: Option<Steadiness>,
}

/// The outage ledgers of the rows of a question on their way to the answer.
pub(crate) struct Telling<'a> {
    pub(crate) question: &'a Question<'a>,
    pub(crate) wants_more: bool,
    pub(crate) rows: Vec<Option<RowTelling<'a>>>,
}

impl Telling<'_> {
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let Some((row, worker)) = self.question.row_of(op) else { return };
        if self.question.asks_for(op) && worker.is_none_or(|worker| worker.counts(op)) {
            self.rows[row].as_mut().into_iter().for_each(|row| row.add(op));
        }
    }
}

impl Watching {
    /// Returns what a second scan is to complete.
    pub(crate) fn telling<'a>(self, question: &'a Question<'a>) -> RowTelling<'a> {
        let telling = |stall: Stall| OutageTelling {
            stall,
            first_failure: None,
            failed: Failures::default(),
            at: BTreeMap::new(),
            of: BTreeMap::new(),
        };
        RowTelling {
            question,
            ledger: self.ledger,
            failed: self.failed,
            success_before: None,
            outages: self.stalls.into_iter().map(telling).collect(),
            steadiness: self.steadiness,
        }
    }
}

impl RowTelling<'_> {
    /// Sees an operation.
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let end = op.end.as_ns();
        if op.outcome == ErrorClass::Ok {
            if self.failed.is_some_and(|(first, _)| end <= first) {
                self.success_before = self.success_before.max(Some(op.end));
            }
            return;
        }
        let client = self.question.client_of.get(op.worker.0 as usize).copied();
        // Outages of a row and those of its parts may overlap.
        for telling in &mut self.outages {
            let of = &telling.stall;
            let is_of_it = of.endpoint.is_none_or(|endpoint| endpoint == op.endpoint)
                && of.client.is_none_or(|of| client == Some(of));
            if end < of.from || end > of.until || !is_of_it {
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

    /// Returns the ledger, and how steady the row was.
    pub(crate) fn told(self) -> (Ledger, Option<Steadiness>) {
        let failures = self.failed.map(|(first, last)| FailureSpan {
            success_before: self.success_before,
            first: Moment::from_ns(first),
            last: Moment::from_ns(last),
        });
        let outage = |of: OutageTelling| {
            let stall = of.stall;
            let at = |(endpoint, count)| FailedAt { endpoint, count };
            Outage {
                endpoint: stall.endpoint,
                client: stall.client,
                last_success: stall.last_success.map(Moment::from_ns),
                first_failure: of.first_failure,
                next_success: stall.next_success.map(Moment::from_ns),
                gap: Duration::from_nanos(stall.until - stall.from),
                failed: of.failed,
                failed_by_endpoint: of.at.into_iter().map(at).collect(),
                failed_by_client: of
                    .of
                    .into_iter()
                    .map(|(client, count)| FailedOf { client, count })
                    .collect(),
                rate_before: stall.rate_before,
                regained_after: stall.regained_after,
            }
        };
        let outages = self.outages.into_iter().map(outage).collect();
        (Ledger { failures, outages, ..self.ledger }, self.steadiness)
    }
}
