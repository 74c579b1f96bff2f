//! Parts of the report as words, the same in text and on the page.

use plimsoll_analysis::phases::KindFigures;
use plimsoll_model::{ByteRate, OpKind};

use super::{CacheState, PhaseReport, PhaseRow, is_on_blocks};
use crate::format::{byte_rate, bytes, count, duration, known, number};
use crate::words::plural;

const GIB: f64 = (1u64 << 30) as f64;

/// Returns throughput with the binary unit that leaves three digits: `612 MiB/s`, `1.20 GiB/s`.
pub(crate) fn throughput(per_sec: f64) -> String {
    if per_sec / f64::from(1 << 20) < 999.5 {
        return byte_rate(ByteRate(per_sec));
    }
    format!("{} GiB/s", number(per_sec / GIB))
}

/// Returns operations per second: IOPS for blocks that are read or written.
pub(crate) fn rate(kind: OpKind, per_sec: f64) -> String {
    let unit = if matches!(kind, OpKind::Read | OpKind::Write) { "IOPS" } else { "ops/s" };
    format!("{} {unit}", number(per_sec))
}

/// Returns the throughput of a kind; nothing where none is moved.
pub(crate) fn throughput_of(kind: &KindFigures, per_sec: Option<f64>) -> String {
    match kind.bytes {
        0 => String::new(),
        _ => known(per_sec, throughput),
    }
}

/// Returns what a stage is called, with the number of its repetition from the second on.
pub(crate) fn name(phase: &PhaseReport) -> String {
    match phase.iteration {
        0 => phase.name.clone(),
        again => format!("{} ({})", phase.name, u64::from(again) + 1),
    }
}

/// Returns what a row did: `randread 4 KiB, 4 workers × depth 16, O_DIRECT, io_uring, caches
/// bypassed`.
pub(crate) fn work(row: &PhaseRow) -> String {
    let block = row.block.as_ref().map_or(String::new(), |block| format!(" {block}"));
    let depth = match row.depth {
        Some(0 | 1) => String::new(),
        depth => format!(" × depth {}", known(depth.map(u64::from), count)),
    };
    let workers = plural(u64::from(row.workers), "worker");
    let mut parts = vec![format!("{}{block}", row.work), format!("{workers}{depth}")];
    parts.extend(row.direct.then(|| "O_DIRECT".to_owned()));
    parts.extend(row.interface.map(|interface| interface.name().to_owned()));
    parts.push(caches(row.caches).to_owned());
    parts.join(", ")
}

/// Returns what lay between the operations and the medium.
pub(crate) fn caches(state: CacheState) -> &'static str {
    match state {
        CacheState::Dropped => "own files dropped from caches before",
        CacheState::DroppedMachine => "caches of the machine dropped before",
        CacheState::Bypassed => "caches bypassed",
        CacheState::Cached => "caches in use",
        CacheState::NotKnown => "caching not known",
    }
}

/// Returns what stages did that are no result, in one line.
pub(crate) fn prepared(phase: &PhaseReport) -> String {
    let kinds = phase.kinds().map(|(_, kind)| {
        let moved = match kind.bytes {
            0 => String::new(),
            moved => format!(", {}", bytes(moved)),
        };
        format!("{} {}{moved}", count(kind.ops_ok), kind.kind.name())
    });
    let kinds: Vec<String> = kinds.collect();
    let all = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join("; ") };
    let failed = match phase.failed_count() {
        0 => String::new(),
        failed => format!("; {} failed", count(failed)),
    };
    format!("{all} in {}{failed} (no result)", duration(phase.took))
}

/// Tells whether first done and last done are shown of a kind: always of names, of blocks when they
/// lie more than 1 % apart.
pub(crate) fn shows_done(row: &PhaseRow, kind: &KindFigures) -> bool {
    let (Some(first), Some(last)) = (kind.first_done, kind.last_done) else { return false };
    let apart = last.after.saturating_sub(first.after);
    !is_on_blocks(kind.kind)
        || (kind.kind != OpKind::Sync && row.figures.took.is_some_and(|took| apart > took / 100))
}

/// Returns what was done in ramps, in one sentence; `None` without ramps.
pub(crate) fn ramp(phase: &PhaseReport) -> Option<String> {
    let ok: u64 = phase.rows.iter().map(|row| row.figures.ramp.ops_ok).sum();
    let failed: u64 = phase.rows.iter().map(|row| row.figures.ramp.failed.count()).sum();
    let told = || {
        let failed_text =
            if failed > 0 { format!(", {} failed", count(failed)) } else { String::new() };
        format!("{}{failed_text}: in no figure", plural(ok + failed, "operation"))
    };
    (ok + failed > 0).then(told)
}

/// Returns how many contents were wrong, by what was wrong with them; `None` if none was.
pub(crate) fn wrong(phase: &PhaseReport) -> Option<String> {
    let kinds = phase.wrong.iter().filter(|(_, times)| *times > 0);
    let kinds: Vec<String> =
        kinds.map(|(name, times)| format!("{} {name}", count(*times))).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}
