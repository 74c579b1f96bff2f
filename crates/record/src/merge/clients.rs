//! The clients of the whole: each part, or of a part that was merged before those it was made of.

use plimsoll_model::ObjectId;
use serde_json::Value;

use super::{FOREIGN_TOOL, MergeError, MergePart, WORKLOAD_SEED, WORKLOAD_VERSION};
use crate::schema::{Manifest, MergedRun, RecordedWorkload};

/// One of the runs that the whole is made of, whatever was merged with whom before.
pub(super) struct Client {
    /// The part that holds its operations.
    pub(super) part: usize,
    /// Its first worker, as numbered in the part.
    pub(super) own_first: u32,
    /// Whether its objects are numbered by their names, whoever owns them.
    pub(super) is_foreign: bool,
    /// Its workload as far as it is known.
    pub(super) workload: Value,
    /// Whether that is all of it, and not only what it had in common with others.
    pub(super) knows_workload: bool,
    /// What the whole says of it; of its stages, until they are matched, what the part does.
    pub(super) run: MergedRun,
}

/// Returns the clients of all parts in the order of their names, with new workers; their stages and
/// workloads are still those of their parts.
pub(super) fn clients<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<Vec<Client>, MergeError<E>> {
    let of_part = |(at, part): (usize, &MergePart<'_, E>)| of_part(at, part);
    let mut clients: Vec<Client> = parts.iter().enumerate().flat_map(of_part).collect();
    clients.sort_by(|a, b| a.run.run_id.cmp(&b.run.run_id));
    if let Some([same, _]) = clients.array_windows().find(|[a, b]| a.run.run_id == b.run.run_id) {
        return Err(MergeError::Twice { run_id: same.run.run_id.clone() });
    }
    let mut first = 0u32;
    for client in &mut clients {
        client.run.worker_index_first = first;
        let next = first.checked_add(client.run.workers_count);
        let limit = ObjectId::OWNER_MAX;
        first = next
            .filter(|next| *next <= limit)
            .ok_or(MergeError::TooMany { what: "workers", limit })?;
    }
    Ok(clients)
}

fn of_part<E>(at: usize, part: &MergePart<'_, E>) -> Vec<Client> {
    let manifest = &part.manifest;
    if manifest.merged.is_empty() {
        return vec![alone(at, manifest, part.workers_count)];
    }
    manifest.merged.iter().map(|run| of_merged(at, manifest, run)).collect()
}

fn alone(part: usize, manifest: &Manifest, workers_count: u32) -> Client {
    let is_foreign = manifest.tool.name.as_deref() == Some(FOREIGN_TOOL);
    let workload = manifest.workload.to_value();
    Client {
        part,
        own_first: 0,
        is_foreign,
        knows_workload: !workload.is_null(),
        workload,
        run: MergedRun {
            run_id: manifest.run_id.clone(),
            hostname: manifest.machine.hostname.clone(),
            started_unix_ns: manifest.started_unix_ns,
            seed: (!is_foreign).then_some(manifest.seed),
            prefix: manifest.target.prefix.clone(),
            worker_index_first: 0,
            workers_count,
            stages: Vec::new(),
            workload: None,
        },
    }
}

fn of_merged(part: usize, manifest: &Manifest, run: &MergedRun) -> Client {
    let whole = manifest.workload.to_value();
    let is_agreed = !whole[WORKLOAD_VERSION].is_null();
    let own = run.workload.as_ref().map(RecordedWorkload::to_value);
    let mut workload = own.unwrap_or(whole);
    // The whole repeats the seed of one of them.
    if let (Some(own), Some(seed)) = (run.seed, workload.get_mut(WORKLOAD_SEED)) {
        *seed = own.into();
    }
    Client {
        part,
        own_first: run.worker_index_first,
        is_foreign: run.seed.is_none(),
        knows_workload: run.workload.is_some() || is_agreed,
        workload,
        run: run.clone(),
    }
}
