//! What a command line comes to: a workload with the five tests of each loop as its stages.

use std::time::Duration;

use plimsoll_workload::plan::spec::{
    DeleteOp, GetOp, JobSpec, KeysSpec, ListOp, Lookup, Named, ObjectSet, OneOrMany, OpSpec, PutOp,
    S3Target, SetSpec, SizeSpec, StageSpec, TargetSpec, Targets, WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{Size, Time, WorkloadFile};

use super::{Address, Benchmark};

/// What a run is called.
const NAME: &str = "s3-benchmark";
/// How many entries a page of a listing has at most, as there.
const PAGE_SIZE: u32 = 1_000;
/// The tests of a loop in their order, as its stages are called.
const TESTS: [&str; super::TESTS_PER_LOOP as usize] = ["put", "get", "list2", "listver", "delete"];

impl Benchmark {
    /// Returns the workload: as many stages for each loop as there are tests, and objects of the
    /// loop's own.
    pub fn workload(&self, seed: Option<u64>) -> WorkloadFile {
        let mut sets = Named::default();
        let mut stages = Vec::new();
        for number in 1..=self.loops {
            let set = format!("loop-{number}");
            for test in TESTS {
                let jobs = vec![JobSpec::of(self.threads, WorkSpec::Objects(vec![op(test, &set)]))];
                let duration = Time(Duration::from_secs(self.duration_s.into()));
                stages.push(StageSpec::Jobs(WorkStage {
                    // DELETE ends when everything is deleted.
                    duration: (test != "delete").then_some(duration),
                    if_offered: test == "listver",
                    ..WorkStage::of(&format!("{set}-{test}"), jobs)
                }));
            }
            let size = SizeSpec::Fixed(Size(self.size_bytes));
            let keys = KeysSpec { per_worker: false, ..KeysSpec::default() };
            let objects = ObjectSet { keys, ..ObjectSet::of(0, Some(size)) };
            sets.insert(&set, SetSpec::Objects(objects));
        }
        let targets = Targets::One(TargetSpec::S3(self.target()));
        WorkloadFile { seed, targets, ..WorkloadFile::new(NAME, sets, stages) }
    }

    fn target(&self) -> S3Target {
        S3Target {
            hosts: OneOrMany(vec![self.address.to_string()]),
            bucket: Some(self.bucket.clone()),
            // It creates the bucket and leaves it.
            create_bucket: true,
            keep_bucket: true,
            region: Some(self.region.clone()),
            tls: self.address.tls,
            lookup: Some(Lookup::Path),
            ..S3Target::default()
        }
    }
}

impl std::fmt::Display for Address {
    /// Writes host and port, one of IPv6 with brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Returns what a test does to the objects of its loop.
fn op(test: &str, set: &str) -> OpSpec {
    let (set, weight, name) = (set.to_owned(), 1, None);
    let (pick, buckets, keys) = (None, None, None);
    let version = Default::default();
    match test {
        "put" => OpSpec::Put(PutOp {
            put: set,
            weight,
            pick,
            put_as: None,
            size: None,
            remove_after: None,
            part: None,
            buckets,
            keys,
            name,
        }),
        "get" => {
            let get = GetOp { get: set, weight, pick, range: None, version, buckets, keys, name };
            OpSpec::Get(get)
        }
        "delete" => OpSpec::Delete(DeleteOp {
            delete: set,
            weight,
            pick,
            batch: 1,
            version,
            buckets,
            keys,
            name,
        }),
        _ => OpSpec::List(ListOp {
            list: set,
            weight,
            page: PAGE_SIZE,
            versions: test == "listver",
            by_page: true,
            pick,
            buckets,
            name,
            ..ListOp::default()
        }),
    }
}
