//! fio's own output, read back by a strict reader and made into input, for the tests.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use plimsoll_stats::{Bin, CompactHistogram, Histogram};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::*;
use crate::fio::DEFAULT_PERCENTILES;

pub(super) const PAIR_JSON: &str = sample!("pair.json");
pub(super) const PAIR_TEXT: &str = sample!("pair.normal.txt");
pub(super) const MIXED_JSON: &str = sample!("mixed.json");
pub(super) const ONLY_JSON: &str = sample!("only.jsonplus.json");
/// What fio printed of two servers that ran one job of two clones, without the lines before it and
/// with its global options once; and the text of another such run.
pub(super) const CLIENTS_JSON: &str = sample!("clients.json");
pub(super) const CLIENTS_TEXT: &str = sample!("clients.normal.txt");
/// fio's text of jobs on one machine: of each sort of row.
pub(super) const TEXTS: [&str; 8] = [
    PAIR_TEXT,
    sample!("mixed.normal.txt"),
    sample!("libaio.normal.txt"),
    sample!("thread.normal.txt"),
    sample!("trim.normal.txt"),
    sample!("verify.txt"),
    sample!("verify-fail.txt"),
    sample!("latency_target.txt"),
];
pub(super) const LOGS: [&str; 3] = [
    sample!("sample-bwlog_bw.1.log"),
    sample!("sample-iopslog_iops.1.log"),
    sample!("sample-latlog_clat.1.log"),
];

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fio-output/", $name))
    };
}
use sample;

/// An object in the order in which it is written.
#[derive(Default)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
            type Value = Pairs<V>;

            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    pub(super) timestamp: u64,
    #[serde(default)]
    pub(super) timestamp_ms: u64,
    pub(super) time: String,
    #[serde(rename = "global options")]
    pub(super) global_options: Option<Pairs<String>>,
    #[serde(alias = "client_stats")]
    pub(super) jobs: Vec<Job>,
    #[serde(default, rename = "disk_util")]
    pub(super) _disk_util: Vec<Value>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    pub(super) jobname: String,
    pub(super) groupid: u32,
    pub(super) error: i32,
    #[serde(default, rename = "eta")]
    pub(super) _eta: u64,
    #[serde(default)]
    pub(super) elapsed: u64,
    #[serde(default, rename = "job options")]
    pub(super) options: Pairs<String>,
    pub(super) read: Direction,
    pub(super) write: Direction,
    pub(super) trim: Direction,
    pub(super) sync: Sync,
    pub(super) job_runtime: u64,
    pub(super) usr_cpu: f64,
    pub(super) sys_cpu: f64,
    pub(super) ctx: u64,
    pub(super) majf: u64,
    pub(super) minf: u64,
    #[serde(rename = "iodepth_level")]
    pub(super) depth_level: Pairs<f64>,
    #[serde(rename = "iodepth_submit")]
    pub(super) depth_submit: Option<Pairs<f64>>,
    #[serde(rename = "iodepth_complete")]
    pub(super) depth_complete: Option<Pairs<f64>>,
    pub(super) latency_ns: Pairs<f64>,
    pub(super) latency_us: Pairs<f64>,
    pub(super) latency_ms: Pairs<f64>,
    #[serde(default)]
    pub(super) latency_depth: u32,
    #[serde(default)]
    pub(super) latency_target: u64,
    #[serde(default)]
    pub(super) latency_percentile: f64,
    #[serde(default)]
    pub(super) latency_window: u64,
    #[serde(default)]
    pub(super) total_err: u64,
    #[serde(default)]
    pub(super) first_error: u64,
    pub(super) desc: Option<String>,
    pub(super) hostname: Option<String>,
    pub(super) port: Option<u32>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Direction {
    pub(super) io_bytes: u64,
    pub(super) io_kbytes: u64,
    pub(super) bw_bytes: u64,
    pub(super) bw: u64,
    pub(super) iops: f64,
    pub(super) runtime: u64,
    pub(super) total_ios: u64,
    pub(super) short_ios: u64,
    pub(super) drop_ios: u64,
    pub(super) slat_ns: Times,
    pub(super) clat_ns: Times,
    pub(super) lat_ns: Times,
    pub(super) bw_min: u64,
    pub(super) bw_max: u64,
    pub(super) bw_agg: f64,
    pub(super) bw_mean: f64,
    pub(super) bw_dev: f64,
    pub(super) bw_samples: u64,
    pub(super) iops_min: u64,
    pub(super) iops_max: u64,
    pub(super) iops_mean: f64,
    pub(super) iops_stddev: f64,
    pub(super) iops_samples: u64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sync {
    pub(super) total_ios: u64,
    pub(super) lat_ns: Times,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Times {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) stddev: f64,
    #[serde(rename = "N")]
    pub(super) count: u64,
    pub(super) percentile: Option<Pairs<u64>>,
    pub(super) bins: Option<Pairs<u64>>,
}

impl Times {
    /// Returns the histogram with these bins, or all in one where they are not told, and exactly
    /// these figures.
    fn histogram(&self) -> Histogram {
        let one = || vec![Bin { lowest: self.mean as u64, count: self.count }];
        let bins = self.bins.as_ref().map_or_else(one, |bins| {
            let bins = bins.0.iter();
            bins.map(|(ns, count)| Bin { lowest: ns.parse().unwrap(), count: *count }).collect()
        });
        let n = self.count as f64;
        let sum = (self.mean * n).round();
        let squares = self.stddev.powi(2) * (n - 1.0) + sum * sum / n;
        let mut histogram = Histogram::new();
        if self.count > 0 {
            let bounds = Some((self.min, self.max));
            let compact = CompactHistogram::from_parts(bins, sum as u128, squares as u128, bounds);
            histogram.merge_compact(&compact.unwrap());
        }
        histogram
    }
}

/// The histograms of a job: slat, clat and lat of reads and of writes, and sync.
pub(super) struct Histograms([Histogram; 7]);

impl Document {
    pub(super) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    pub(super) fn histograms(&self) -> Vec<Histograms> {
        let job = |job: &Job| {
            let (read, write) = (&job.read, &job.write);
            let read = [&read.slat_ns, &read.clat_ns, &read.lat_ns];
            let write = [&write.slat_ns, &write.clat_ns, &write.lat_ns];
            let [a, b, c] = read.map(Times::histogram);
            let [d, e, f] = write.map(Times::histogram);
            Histograms([a, b, c, d, e, f, job.sync.lat_ns.histogram()])
        };
        self.jobs.iter().map(job).collect()
    }

    /// Returns the input that comes to this output.
    pub(super) fn run<'a>(&self, histograms: &'a [Histograms]) -> FioRun<'a> {
        let rows = self.jobs.iter().zip(histograms);
        FioRun {
            version: self.version.clone(),
            timestamp_ms: self.timestamp_ms,
            time: self.time.clone(),
            global_options: self.global_options.as_ref().map_or(Vec::new(), |all| all.0.clone()),
            sections: Vec::new(),
            clients: &[],
            records: rows.map(|(job, histograms)| job.record(histograms)).collect(),
        }
    }
}

impl Job {
    fn record<'a>(&self, histograms: &'a Histograms) -> FioRecord<'a> {
        let Histograms([a, b, c, d, e, f, sync]) = histograms;
        let kept = |one: &'a Histogram| Some(one).filter(|one| !one.is_empty());
        let figures = [&self.read, &self.write].map(|side| side.clat_ns.percentile.as_ref());
        let percentiles = figures.into_iter().flatten().next();
        let percentiles = percentiles.map_or(DEFAULT_PERCENTILES.to_vec(), |all| {
            all.0.iter().map(|(percent, _)| percent.parse().unwrap()).collect()
        });
        let counts = |shares: &Pairs<f64>| {
            std::array::from_fn(|cell| (shares.0[cell].1 * 1000.0).round() as u64)
        };
        FioRecord {
            name: self.jobname.clone(),
            whose: FioWhose::Alone,
            group: self.groupid,
            clones: 1,
            description: self.desc.clone(),
            options: self.options.0.clone(),
            pid: 1,
            error: self.error,
            errors_count: self.total_err,
            elapsed_s: self.elapsed,
            job_runtime_ms: self.job_runtime,
            read: self.read.direction([a, b, c].map(kept)),
            write: self.write.direction([d, e, f].map(kept)),
            sync: kept(sync),
            cpu: FioCpu {
                user_percent: self.usr_cpu,
                system_percent: self.sys_cpu,
                context_switches: self.ctx,
                major_faults: self.majf,
                minor_faults: self.minf,
            },
            depth: self.latency_depth,
            depths: FioDepths {
                level: Some(counts(&self.depth_level)),
                submit: self.depth_submit.as_ref().map(counts),
                complete: self.depth_complete.as_ref().map(counts),
            },
            percentiles,
            percentiles_of: FioPercentilesOf {
                slat: false,
                clat: true,
                lat: self.read.lat_ns.percentile.is_some(),
            },
        }
    }
}

impl Direction {
    fn direction<'a>(&self, [slat, clat, lat]: [Option<&'a Histogram>; 3]) -> FioDirection<'a> {
        FioDirection {
            bytes: self.io_bytes,
            runtime_ms: self.runtime,
            ops: self.total_ios,
            short_ops: self.short_ios,
            dropped_ops: self.drop_ios,
            slat: slat.map(Cow::Borrowed),
            clat: clat.map(Cow::Borrowed),
            lat: lat.map(Cow::Borrowed),
            bw_kib_per_sec: windows(self.bw_samples, self.bw_min, self.bw_max, self.bw_mean),
            iops: windows(self.iops_samples, self.iops_min, self.iops_max, self.iops_mean),
        }
    }
}

/// Returns windows of this spread: exactly, if there are no more than three.
fn windows(count: u64, min: u64, max: u64, mean: f64) -> Vec<f64> {
    let (min, max) = (min as f64, max as f64);
    match count {
        0 => Vec::new(),
        1 => vec![mean],
        2 => vec![min, max],
        _ => {
            let rest = (mean * count as f64 - min - max) / (count - 2) as f64;
            // Bound: fio's own output, in tests alone.
            let mut windows = vec![rest; count as usize];
            windows[..2].copy_from_slice(&[min, max]);
            windows
        }
    }
}
