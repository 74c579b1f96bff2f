//! What COSBench does wrong, one by one, and what is done instead.

pub use crate::correction::Correction;
use crate::correction::correct;

use super::model::{WorkKind, Workload};
use super::storage;

/// Each mistake of COSBench that is corrected, and each choice that is another one here.
pub const CORRECTIONS: [Correction; 22] = [
    correct("delete", "every failure of a delete is a success", "what failed has failed"),
    correct(
        "errors",
        "with c4 a 404 on a write and every error of the client is a success",
        "each is a failure of its class",
    ),
    correct(
        "error codes",
        "they are cut out of the exception's text, so all of S3 are N/A",
        "failures are counted by class and status",
    ),
    correct(
        "retries",
        "the S3 client tries three times more, which no figure shows",
        "each attempt is counted, and nothing is tried again unless asked for",
    ),
    correct("no numbers", "a workload without one counted operation is finished", "it has failed"),
    correct(
        "totalOps, totalBytes",
        "each worker does its whole part and the remainder is left out; fewer than workers are no \
         limit",
        "the limit holds for all workers together, the remainder is shared out",
    ),
    correct(
        "s and r",
        "each driver counts for itself, so that numbers are visited once by each",
        "one counter for all workers on all agents",
    ),
    correct(
        "r in containers and objects",
        "both counters advance at once, so that some pairs are never visited",
        "every pair is visited",
    ),
    correct(
        "h",
        "the first bucket has one more than its weight, the last one less",
        "each has its weight",
    ),
    correct(
        "KiB, MiB, GiB",
        "numbers are taken for bytes, but for the fork",
        "they are powers of 1024 everywhere",
    ),
    correct(
        "content",
        "random content is one block of 4096 letters over and over",
        "it is random throughout, and a function of the object's name",
    ),
    correct(
        "reading",
        "content is thrown away unless hashCheck is set",
        "what this tool wrote is checked, every byte",
    ),
    correct(
        "throughput",
        "rates of workers whose windows differ are added, so that staggered ends inflate sums",
        "operations over one window of all workers",
    ),
    correct(
        "percentiles",
        "they are multiples of 10 ms, and with few samples wrongly 10",
        "they are exact to 0.1 %; only the exported tables have steps of 10 ms, rounded up",
    ),
    correct(
        "time line",
        "three clocks are not in step, so rows repeat or miss operations",
        "each operation is in one row, and rows add up",
    ),
    correct(
        "delay",
        "only in a stage called delay, where it then breaks the end of the workload",
        "in any stage that only waits",
    ),
    correct("closuredelay", "a stage that has failed is completed after it", "it stays failed"),
    correct("drivers", "the clock of every driver is set", "clocks are measured and left alone"),
    correct(
        "waiting for drivers",
        "a driver that dies hangs the workload, and each stage takes 8 s more than its work",
        "it is seen at once, and a stage takes no longer than its work",
    ),
    correct(
        "archive",
        "it is written at the very end, with secrets in it",
        "all is recorded as it happens, and secrets are nowhere",
    ),
    correct("list", "with S3 it does nothing and counts as a success", "containers are listed"),
    correct("S3 signatures", "version 2 is forced", "version 4, or 2 by signer_version=V2"),
];

/// Returns those that say something of a workload.
pub(super) fn of(workload: &Workload) -> Vec<Correction> {
    let works = || workload.stages.iter().flat_map(|stage| &stage.works);
    let operations = || works().flat_map(|work| &work.operations);
    let selects = |letter: &str| {
        let has = |value: &str| value.starts_with(letter);
        operations().any(|operation| {
            let keys = ["containers", "objects", "sizes"];
            keys.iter().filter_map(|key| operation.config.get(key)).any(has)
        })
    };
    let does = |kinds: &[&str]| operations().any(|operation| kinds.contains(&&*operation.kind));
    let has_s3 = works().any(|work| storage::is_s3(&work.storage.kind));
    let has_kibs =
        operations().any(|of| of.config.get("sizes").is_some_and(|sizes| sizes.ends_with("iB")));
    let normal = || works().filter(|work| work.kind == WorkKind::Normal);
    let is_told = |correction: &Correction| match correction.of {
        "delete" => does(&["delete", "cleanup", "dispose"]),
        "errors" | "error codes" | "retries" | "S3 signatures" => has_s3,
        "totalOps, totalBytes" => normal().any(|work| work.total_ops > 0 || work.total_bytes > 0),
        "s and r" => normal().next().is_some() && (selects("r(") || selects("s(")),
        "r in containers and objects" => normal().next().is_some() && selects("r("),
        "h" => selects("h("),
        "KiB, MiB, GiB" => has_kibs,
        "content" => does(&["write", "prepare", "mwrite", "mprepare"]),
        "reading" => does(&["read"]),
        "delay" => works().any(|work| work.kind == WorkKind::Delay),
        "closuredelay" => workload.stages.iter().any(|stage| stage.closure_delay_s > 0),
        "list" => has_s3 && does(&["list"]),
        _ => true,
    };
    CORRECTIONS.into_iter().filter(is_told).collect()
}
