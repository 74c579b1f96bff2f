//! What stop rules have seen in one part of a stage, as it travels.

use plimsoll_engine::{JobSeen, PartSeen, RuleSeen};
use plimsoll_stats::{AmountSeries, Batches, Bin, CompactHistogram};
use serde::{Deserialize, Serialize};

/// As [`PartSeen`] has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenDoc {
    jobs: Vec<JobDoc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct JobDoc {
    has_workers: bool,
    active_ns: Option<(u64, u64)>,
    rules: Vec<Vec<RuleDoc>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleDoc {
    Amounts {
        cell_ns: u64,
        /// Bytes, and millionths of objects.
        cells: Vec<(u64, u64)>,
    },
    Batches {
        batch_ns: u64,
        batches: Vec<BatchDoc>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BatchDoc {
    bytes: u64,
    ops_micro: u64,
    /// The lowest value of each bin and how many are in it.
    bins: Vec<(u64, u64)>,
    /// As decimal numbers: they have up to 128 bits.
    sum: String,
    sum_of_squares: String,
    min_max: Option<(u64, u64)>,
}

impl RuleDoc {
    fn of(seen: &RuleSeen) -> Self {
        match seen {
            RuleSeen::Amounts(series) => {
                let (cell_ns, cells) = series.parts();
                Self::Amounts { cell_ns, cells: cells.collect() }
            }
            RuleSeen::Batches(batches) => {
                let mut batches = batches.clone();
                let (batch_ns, parts) = batches.parts();
                let batch = |(bytes, ops_micro, latency): (u64, u64, &CompactHistogram)| BatchDoc {
                    bytes,
                    ops_micro,
                    bins: latency.bins().map(|bin| (bin.lowest, bin.count)).collect(),
                    sum: latency.sum().to_string(),
                    sum_of_squares: latency.sum_of_squares().to_string(),
                    min_max: latency.min_max(),
                };
                let batches = parts.map(|of| batch((of.bytes, of.ops_micro, of.latency)));
                Self::Batches { batch_ns, batches: batches.collect() }
            }
        }
    }

    fn seen(self) -> Option<RuleSeen> {
        Some(match self {
            Self::Amounts { cell_ns, cells } => {
                RuleSeen::Amounts(AmountSeries::from_parts(cell_ns, cells)?)
            }
            Self::Batches { batch_ns, batches } => {
                let batch = |of: BatchDoc| {
                    let bins = of.bins.into_iter().map(|(lowest, count)| Bin { lowest, count });
                    let (sum, squares) = (of.sum.parse().ok()?, of.sum_of_squares.parse().ok()?);
                    let latency = CompactHistogram::from_parts(bins, sum, squares, of.min_max)?;
                    Some((of.bytes, of.ops_micro, latency))
                };
                let batches = batches.into_iter().map(batch).collect::<Option<Vec<_>>>()?;
                RuleSeen::Batches(Batches::from_parts(batch_ns, batches)?)
            }
        })
    }
}

impl SeenDoc {
    /// Returns it, to be sent.
    pub fn of(part: &PartSeen) -> Self {
        let rule = |kinds: &Vec<RuleSeen>| kinds.iter().map(RuleDoc::of).collect();
        let job = |job: &JobSeen| JobDoc {
            has_workers: job.has_workers,
            active_ns: job.active_ns,
            rules: job.rules.iter().map(rule).collect(),
        };
        Self { jobs: part.jobs.iter().map(job).collect() }
    }

    /// Returns it as it was sent; `None` where it means nothing.
    pub fn part(self) -> Option<PartSeen> {
        let rule = |kinds: Vec<RuleDoc>| kinds.into_iter().map(RuleDoc::seen).collect();
        let job = |job: JobDoc| {
            Some(JobSeen {
                has_workers: job.has_workers,
                active_ns: job.active_ns,
                rules: job.rules.into_iter().map(rule).collect::<Option<_>>()?,
            })
        };
        Some(PartSeen { jobs: self.jobs.into_iter().map(job).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::{BatchMetric, Percentile, SteadyRule};

    use super::*;

    #[test]
    fn what_was_seen_comes_back_as_it_went() {
        let (mut series, mut batches) = (AmountSeries::default(), Batches::default());
        for second in 0..100_u64 {
            let start = second * 1_000_000_000;
            series.record(start, start + 500_000_000, 1_000 + second, 2);
            batches.record(start, start + 1_000 * (second + 1), 1_000 * (second + 1), 77);
        }
        let rules = vec![
            vec![RuleSeen::Amounts(series.clone())],
            vec![RuleSeen::Batches(batches.clone()), RuleSeen::Batches(Batches::default())],
        ];
        let job = JobSeen { has_workers: true, active_ns: Some((5, 90_000_000_000)), rules };
        let sent = SeenDoc::of(&PartSeen { jobs: vec![job] });
        let text = serde_json::to_string(&sent).unwrap();
        let read: SeenDoc = serde_json::from_str(&text).unwrap();
        assert_eq!(read, sent);
        let back = read.part().unwrap();
        assert_eq!(back.jobs[0].active_ns, Some((5, 90_000_000_000)));
        let [amounts, of_batches] = &back.jobs[0].rules[..] else { panic!("there are two") };
        assert!(matches!(&amounts[0], RuleSeen::Amounts(of) if *of == series));
        let RuleSeen::Batches(of) = &of_batches[0] else { panic!("{of_batches:?}") };
        let interval =
            |mut batches: Batches| batches.interval(BatchMetric::MeanLatency, 0, 100_000_000_000);
        assert_eq!(interval(of.clone()), interval(batches));
        // What cannot be is not taken.
        for (from, to) in [
            ("\"cell_ns\":40000000", "\"cell_ns\":30000000"),
            ("\"cell_ns\":40000000", "\"cell_ns\":10995116277760000000"),
            ("\"bins\":[[", "\"bins\":[[18446744073709551615,1],["),
            ("\"sum\":\"", "\"sum\":\"x"),
            ("\"has_workers\":true", "\"has_workers\":1"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let broken = serde_json::from_str::<SeenDoc>(&text.replace(from, to));
            assert!(broken.map_or(true, |doc| doc.part().is_none()), "{to}");
        }
    }
    #[test]
    fn no_sum_of_what_agents_claim_to_have_seen_overflows() {
        let most = u128::MAX.to_string();
        let batch = BatchDoc {
            bytes: u64::MAX,
            ops_micro: u64::MAX,
            bins: vec![(1, u64::MAX)],
            sum: most.clone(),
            sum_of_squares: most,
            min_max: Some((1, 1)),
        };
        let amounts =
            RuleDoc::Amounts { cell_ns: 10_000_000, cells: vec![(u64::MAX, u64::MAX); 4_096] };
        let batches = RuleDoc::Batches { batch_ns: 1_000_000_000, batches: vec![batch; 40] };
        let [Some(RuleSeen::Amounts(mut amounts)), Some(RuleSeen::Batches(mut batches))] =
            [amounts.seen(), batches.seen()]
        else {
            panic!("they can be")
        };
        amounts.merge(&amounts.clone());
        batches.merge(batches.clone());
        let rule = SteadyRule { window_ns: 1_000_000_000, percent: 50.0 };
        // All that can be counted was reached before the range began that is compared.
        assert_eq!(amounts.steady(&rule, 0, 40_000_000_000), None);
        let p50 = BatchMetric::Latency(Percentile::P50);
        for metric in [BatchMetric::Rate, BatchMetric::Throughput, BatchMetric::MeanLatency, p50] {
            let interval = batches.interval(metric, 0, 40_000_000_000);
            assert!(interval.is_none_or(|of| of.centre > 0.0), "{metric:?}: {interval:?}");
        }
    }
}
