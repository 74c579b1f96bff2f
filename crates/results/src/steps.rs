//! What came of each step of a rate, from a record.

use std::time::Duration;

use plimsoll_analysis::{StepAsked, find_steps};
use plimsoll_model::{OpRate, StageId, per_sec};
use plimsoll_record::schema::Manifest;
use plimsoll_report::{RowReport, StageReport};
use plimsoll_workload::ArrivalLaw;

use crate::asked::Asked;
use crate::error::ResultsError;
use crate::open::{Origin, Record};

/// More steps than this are a curve, which the charts show.
const STEPS_MAX: usize = 100;

impl Record {
    /// Adds the steps of a rate to the stages with one job that has several, asked for whole.
    pub(crate) fn add_steps(
        &self,
        manifest: &Manifest,
        asked: &Asked,
        stages: &mut [(u8, StageReport)],
    ) -> Result<(), ResultsError> {
        if asked.is_part() || !asked.skip.is_zero() || !manifest.merged.is_empty() {
            return Ok(());
        }
        for (index, stage) in stages {
            let [row] = &mut stage.rows[..] else { continue };
            let entry = &manifest.stages[usize::from(*index)];
            let Origin::Run { clients, .. } = &self.origin else { continue };
            let of_clients = clients.at(usize::from(*index));
            let is_delayed = of_clients.iter().any(|client| client.is_delayed(0));
            // Of a group of jobs nobody asked for the rate of one of them, and where workers begin
            // later than the stage, the rate of each does.
            if entry.jobs.len() > 1 || is_delayed {
                continue;
            }
            let steps = steps(row);
            if steps.len() < 2 || steps.len() > STEPS_MAX {
                continue;
            }
            let of = (StageId(*index), row.analysis.started);
            row.steps = find_steps(&self.source, of, &steps)?;
        }
        Ok(())
    }
}

/// Returns the steps of the only job of a row.
fn steps(row: &RowReport) -> Vec<StepAsked> {
    let [of] = &row.schedules[..] else { return Vec::new() };
    let ([rate], Some(lasted)) = (&of.schedule.rates[..], of.schedule.lasted) else {
        return Vec::new();
    };
    // Of a step that a ramp begins or the end of the schedule cuts only what is measured counts.
    let begun = of.schedule.started_after;
    let ended = begun + lasted;
    let is_even = of.schedule.arrivals == [ArrivalLaw::Constant];
    let step = |(from, length): (Duration, Option<Duration>)| {
        let until = length.map_or(ended, |length| from.saturating_add(length)).min(ended);
        let from = from.max(begun);
        let due = rate.count_within(until) - rate.count_within(from);
        let offered = per_sec(due, until.checked_sub(from)?).map(OpRate)?;
        Some(StepAsked { from, until, offered, is_even })
    };
    rate.steps().filter_map(step).collect()
}
