//! From what the record tells of clients to when each stood still and was disturbed, on the clock
//! of the record.

use std::time::Duration;

use plimsoll_analysis::{Standstills, common_standstills};
use plimsoll_model::{Moment, Standstill};
use plimsoll_record::schema::{
    ClientEvidence, DISTURBED_KEPT_MAX, EVIDENCE_KEPT_MAX, Manifest, Stage, StandstillEvidence,
};

/// Returns when the clients of a stage stood still, by the numbers that they have in the record: of
/// a fleet its agents, of a merged record its runs.
pub(crate) fn standstills(manifest: &Manifest, stage: usize) -> Standstills {
    let Some(entry) = manifest.stages.get(stage) else { return Standstills::default() };
    let seen = |of: &dyn Fn(&ClientEvidence) -> bool, began: Option<u64>| {
        let seen = entry.evidence.iter().filter(|seen| of(seen));
        // Where several machines carried out what counts as one, all must have stood still.
        let began = began.or(entry.started_ns);
        let each = seen.map(|seen| on_clock(&seen.standstills, EVIDENCE_KEPT_MAX, began));
        each.reduce(|a, b| common_standstills(&a, &b)).unwrap_or_default()
    };
    let clients: Vec<Vec<Standstill>> = if !manifest.merged.is_empty() {
        let of_run = manifest.merged.iter().map(|run| {
            let own = run.stages.iter().find(|of| usize::from(of.index) == stage);
            let began = own.and_then(|of| of.started_ns);
            seen(&|seen| seen.run_id.as_ref() == Some(&run.run_id), began)
        });
        of_run.collect()
    } else if manifest.agents.len() > 1 {
        let of_agent = |name: &str| seen(&|seen| seen.agent.as_deref() == Some(name), None);
        manifest.agents.iter().map(|agent| of_agent(&agent.name)).collect()
    } else {
        vec![seen(&|_| true, None)]
    };
    // The record has the longest ones of each client, and how many and how long all were.
    let sum =
        |of: fn(&ClientEvidence) -> u64| entry.evidence.iter().map(of).fold(0, u64::saturating_add);
    let total = Duration::from_nanos(sum(|seen| seen.stood_still_ns));
    let count = sum(|seen| seen.standstills_count);
    Standstills { count, total, ..Standstills::of_clients(clients) }
}

/// Returns when any client of a stage was disturbed.
pub(crate) fn disturbed(stage: &Stage) -> Vec<Standstill> {
    let of_client =
        |seen: &ClientEvidence| on_clock(&seen.disturbed, DISTURBED_KEPT_MAX, stage.started_ns);
    let mut all: Vec<Standstill> = stage.evidence.iter().flat_map(of_client).collect();
    all.sort_unstable();
    joined(all)
}

/// Returns those of a client in the order of time, none in two, and no more than a record has.
fn on_clock(all: &[StandstillEvidence], most: usize, began_ns: Option<u64>) -> Vec<Standstill> {
    let Some(began) = began_ns.map(Moment::from_ns) else { return Vec::new() };
    let each = all.iter().take(most).map(|of| Standstill {
        from: began.after(Duration::from_nanos(of.from_ns)),
        length: Duration::from_nanos(of.length_ns),
    });
    let mut each: Vec<Standstill> = each.collect();
    each.sort_unstable();
    joined(each)
}

/// Returns sorted spans without any that overlap.
fn joined(sorted: Vec<Standstill>) -> Vec<Standstill> {
    let mut apart: Vec<Standstill> = Vec::new();
    for of in sorted {
        match apart.last_mut().filter(|last| last.until() >= of.from) {
            Some(last) => last.length = last.until().max(of.until()).since(last.from),
            None => apart.push(of),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once_and_no_list_is_endless() {
        let of = |from_ns, length_ns| StandstillEvidence { from_ns, length_ns };
        let seen = vec![of(50, 10), of(10, 20), of(15, 30), of(60, u64::MAX)];
        let bounds = |seen: &[StandstillEvidence]| -> Vec<(u64, u64)> {
            let all = on_clock(seen, EVIDENCE_KEPT_MAX, Some(100));
            all.iter().map(Standstill::bounds_ns).collect()
        };
        assert_eq!(bounds(&seen), [(110, 145), (150, u64::MAX)]);
        assert_eq!(on_clock(&seen, EVIDENCE_KEPT_MAX, None), []);
        let seen: Vec<_> = (0..100_000).map(|at| of(at * 10, 5)).collect();
        assert_eq!(bounds(&seen).len(), EVIDENCE_KEPT_MAX);
    }
}
