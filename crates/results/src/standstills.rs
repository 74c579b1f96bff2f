//! From what the record tells of clients to when each stood still, on the clock of the record.

use std::time::Duration;

use plimsoll_analysis::{Standstills, common_standstills};
use plimsoll_model::{Moment, Standstill};
use plimsoll_record::schema::{ClientEvidence, Manifest};

/// Returns when the clients of a stage stood still, by the numbers that they have in the record: of
/// a fleet its agents, of a merged record its runs.
pub(crate) fn standstills(manifest: &Manifest, stage: usize) -> Standstills {
    let Some(entry) = manifest.stages.get(stage) else { return Standstills::default() };
    let seen = |of: &dyn Fn(&ClientEvidence) -> bool, began: Option<u64>| {
        let seen = entry.evidence.iter().filter(|seen| of(seen));
        // Where several machines carried out what counts as one, all must have stood still.
        let each = seen.map(|seen| on_clock(seen, began.or(entry.started_ns)));
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
    Standstills::of_clients(clients)
}

fn on_clock(seen: &ClientEvidence, began_ns: Option<u64>) -> Vec<Standstill> {
    let Some(began) = began_ns.map(Moment::from_ns) else { return Vec::new() };
    let each = seen.standstills.iter().map(|of| Standstill {
        from: began.after(Duration::from_nanos(of.from_ns)),
        length: Duration::from_nanos(of.length_ns),
    });
    each.collect()
}
