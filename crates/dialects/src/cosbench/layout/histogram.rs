//! The histogram of response times: 50,000 buckets of 10 ms, and one for all above.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_stats::Histogram;

use super::number::percent;
use super::{Archive, Metric, column};

/// The number of the bucket of all times from 500 s on.
pub const LAST_BUCKET: u32 = 50_000;

/// How many milliseconds a bucket has.
const WIDTH_MS: u64 = 10;
const BUCKET_NS: u64 = WIDTH_MS * 1_000_000;

/// Returns the counts of buckets of a distribution of nanoseconds. Bins that lie across an edge
/// count by their lower end, which is right to 0.1 %.
pub(super) fn buckets(times: &Histogram) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for bin in times.bins() {
        let bucket = (bin.lowest / BUCKET_NS).min(LAST_BUCKET.into()) as u32;
        *counts.entry(bucket).or_default() += bin.count;
    }
    counts
}

/// Returns the time in ms that so many percent of all do not exceed, in steps of 10.
pub(super) fn percentile(counts: &BTreeMap<u32, u64>, percent: u64) -> Option<u64> {
    let total: u64 = counts.values().sum();
    let rank = (u128::from(total) * u128::from(percent)).div_ceil(100) as u64;
    let mut sum = 0;
    let mut reaches = |count: &u64| {
        sum += count;
        sum >= rank
    };
    let (bucket, _) = counts.iter().find(|(_, count)| reaches(count))?;
    Some((u64::from(*bucket) + 1) * WIDTH_MS)
}

/// Returns `<id>-<name>-rt-histogram.csv`: of each operation of normal work how many took so long,
/// and how many of a hundred so long at most.
pub fn histogram_csv(archive: &Archive) -> String {
    let mut out = String::from("ResTime");
    let mut series: Vec<(&BTreeMap<u32, u64>, u64, u64)> = Vec::new();
    for stage in &archive.stages {
        for metric in stage.metrics.iter().filter(|metric| metric.is_normal()) {
            let Some(counts) = &metric.latencies else { continue };
            let Metric { work, work_name, op_name, .. } = metric;
            let name = format!("{}-w{work}-{work_name}-{op_name}", stage.id);
            _ = write!(out, ",{},(%)", column(&name));
            series.push((counts, counts.values().sum(), 0));
        }
    }
    out.push('\n');
    for bucket in 0..=LAST_BUCKET {
        let from = u64::from(bucket) * WIDTH_MS;
        _ = match bucket {
            LAST_BUCKET => write!(out, "{from}~+INF"),
            _ => write!(out, "{from}~{}", from + WIDTH_MS),
        };
        for (counts, total, sum) in &mut series {
            let count = counts.get(&bucket).copied().unwrap_or(0);
            *sum += count;
            _ = write!(out, ",{count},{}", percent(*sum, *total));
        }
        out.push('\n');
    }
    out
}
