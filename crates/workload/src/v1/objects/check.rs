//! Says what of a workload of version 1 makes no sense: what the language of today has no word for,
//! and then whatever that language refuses, in the fields of version 1.

use std::collections::BTreeSet;

use super::{ActivitySpec, GeneratorSpec, PickSpec, SPEC_SCHEMA, WorkloadSpec};
use crate::plan::WorkloadFile;
use crate::sizes::PARTS_MAX;
use crate::v1::{InvalidWorkload, field_of, invalid};

/// A delete run needs this many batches per worker to be worth measuring (warp's bound).
const BATCHES_PER_WORKER_MIN: u64 = 4;

type Checked = Result<(), InvalidWorkload>;

/// Fields of today's language, of which the first that a refused one is or lies in says which field
/// of version 1 it comes from. Others have the name that version 1 gives them.
const FIELDS: [(&str, &str); 34] = [
    ("sets.o.keys.prefix", "keys.prefix"),
    ("sets.o.existing.prefix", "keys.prefix"),
    ("sets.o.existing", "objects.existing"),
    ("sets.o.count", "objects.count"),
    ("sets.o.versions", "objects.versions"),
    ("sets.o.size", "objects.size"),
    ("sets.o.part", "objects.size"),
    ("sets.o.content.shaped.compress_ratio", "objects.compress_ratio"),
    ("sets.o.content.shaped.dedupe_ratio", "objects.dedupe_ratio"),
    ("sets.o.content", "objects.generator"),
    ("stages[].duration", "measure.duration_ns"),
    ("stages[].until", "measure.until"),
    ("stages[].jobs[].workers", "concurrency"),
    ("stages[].jobs[].pacing", "pacing"),
    ("stages[].jobs[].work.objects[].batch", "measure.delete_batch"),
    ("stages[].jobs[].work.objects[].page", "measure.list_page_size"),
    ("stages[].jobs[].work.objects[].range", "measure.range"),
    ("stages[].jobs[].work.objects[].pick", "measure.pick.zipf.theta"),
    // What is wrong with how an operation uses its set is how many there are of it.
    ("stages[].jobs[].work.objects[]", "objects.count"),
    ("stages[].jobs[].work.objects", "measure.operations"),
    ("stages[].jobs[].work.retention.hold", "measure.activity.retention.hold_ns"),
    ("stages[].jobs[].work.retention.pick", "measure.pick.zipf.theta"),
    ("stages[].jobs[].work.parts.parts", "measure.activity.multipart_put.parts"),
    ("stages[].jobs[].work.parts.at_once", "measure.activity.multipart_put.part_concurrency"),
    ("stages[].jobs[].work.parts.pick", "measure.pick.zipf.theta"),
    ("stages[].jobs[].work.append.parts", "measure.activity.append.parts"),
    ("stages[].jobs[].work.append", "objects.size"),
    ("stages[].jobs[].work.archive.members", "measure.activity.snowball.members"),
    ("stages[].jobs[].work.archive.pick", "measure.pick.zipf.theta"),
    ("stages[].jobs[].work.archive.put_tar", "objects.size"),
    ("stages[].jobs[].work.archive.compress", "objects.size"),
    ("stages[].jobs[].work.fanout.copies", "measure.activity.fanout.copies"),
    ("stages[].jobs[].work.fanout", "objects.size"),
    ("stages[].jobs[].work", "objects.count"),
];

impl WorkloadSpec {
    /// Says what of the spec makes no sense, if anything does.
    pub fn check(&self) -> Checked {
        self.checked().map(drop)
    }

    /// Returns the workload in today's language, if the spec makes sense.
    pub fn checked(&self) -> Result<WorkloadFile, InvalidWorkload> {
        if self.schema != SPEC_SCHEMA {
            return invalid("schema", format!("`{}` is not {SPEC_SCHEMA}", self.schema));
        }
        match &self.measure.activity {
            ActivitySpec::Operations | ActivitySpec::Versioned => self.check_operations()?,
            activity => self.check_activity(activity)?,
        }
        self.check_choices()?;
        let judged = WorkloadFile::try_from(self).and_then(|file| file.judge().map(|()| file));
        judged.map_err(|refused| {
            let field = field_of(&refused.path.form(), &FIELDS);
            let too_few = (field == "objects.count").then(|| self.too_few()).flatten();
            // There is one set, which has no name.
            let reason = too_few.unwrap_or_else(|| refused.reason.replace(" of set `o`", ""));
            InvalidWorkload { field: field.into(), reason }
        })
    }

    /// Tells whether an operation is asked for.
    fn asks(&self, op: &str) -> bool {
        self.weight(op) > 0
    }

    fn weight(&self, op: &str) -> u64 {
        let of_op = self.measure.operations.iter().filter(|each| each.op == op);
        of_op.map(|each| u64::from(each.weight)).sum()
    }

    /// Refuses operations that cannot be together, or not with what is said beside them.
    fn check_operations(&self) -> Checked {
        let (measure, objects) = (&self.measure, &self.objects);
        let asked = measure.operations.iter().filter(|each| each.weight > 0);
        let asked: Vec<&str> = asked.map(|each| &*each.op).collect();
        let kinds: BTreeSet<&str> = asked.iter().copied().collect();
        if kinds.is_empty() || kinds.len() < asked.len() {
            return invalid(
                "measure.operations",
                "needs one kind with a weight above 0, each once",
            );
        }
        let versioned = measure.activity == ActivitySpec::Versioned;
        let [put, delete, list] = ["PUT", "DELETE", "LIST"].map(|op| self.asks(op));
        let is_one = kinds.len() == 1;
        let existing = objects.existing.is_some();
        let says_nothing = "has no effect where every PUT writes a version; leave it out";
        first([
            (
                objects.versions > 1 && (put || delete) && !versioned,
                "objects.versions",
                "more than 1 are for GET, STAT and LIST; PUT and DELETE beside them need \
                 measure.activity versioned",
            ),
            (
                existing && (versioned || objects.versions > 1),
                "objects.existing",
                "the versions of existing objects are not known",
            ),
            (versioned && measure.post, "measure.post", says_nothing),
            (versioned && measure.overwrite, "measure.overwrite", says_nothing),
            (measure.post && !put, "measure.post", "needs PUT among the operations"),
            (
                measure.part_bytes_min.is_some(),
                "measure.part_bytes_min",
                "needs an activity with parts",
            ),
            // Overwriting adds no object, so a mix with DELETE would run out of them.
            (
                measure.overwrite && (!put || delete),
                "measure.overwrite",
                "needs PUT among the operations, and no DELETE",
            ),
            (
                versioned && is_one && (list || delete),
                "measure.operations",
                "versioned is for GET, STAT and PUT, with DELETE or not",
            ),
            (list && !is_one, "measure.operations", "LIST cannot be mixed with others"),
            (
                !versioned && !is_one && self.weight("DELETE") > self.weight("PUT"),
                "measure.operations.delete",
                "the weight of DELETE must not be above the weight of PUT, or the objects would \
                 run out",
            ),
            (
                is_one && delete && objects.existing.as_ref().is_some_and(|it| !it.destroys),
                "objects.existing.destroys",
                "removing objects that exist destroys them and has to be allowed",
            ),
            (
                existing && (put || delete && !is_one),
                "objects.existing",
                "PUT and DELETE cannot be mixed on existing objects",
            ),
        ])
    }

    /// Refuses what says nothing beside an activity that is not given by operations.
    fn check_activity(&self, activity: &ActivitySpec) -> Checked {
        let (measure, objects) = (&self.measure, &self.objects);
        let prepares = matches!(
            activity,
            ActivitySpec::Retention { .. } | ActivitySpec::Multipart | ActivitySpec::Zip
        );
        let has_parts = (1..=PARTS_MAX.into()).contains(&objects.count);
        if *activity == ActivitySpec::Multipart && !has_parts {
            return invalid("objects.count", format!("must be 1 to {PARTS_MAX}"));
        }
        let is_retention = matches!(activity, ActivitySpec::Retention { .. });
        let beside = "has no effect with this measure.activity; leave it out";
        first([
            (!measure.operations.is_empty(), "measure.operations", beside),
            (measure.range.is_some(), "measure.range", beside),
            (measure.overwrite, "measure.overwrite", beside),
            (measure.post, "measure.post", beside),
            (measure.delete_batch.is_some(), "measure.delete_batch", beside),
            (measure.list_page_size.is_some(), "measure.list_page_size", beside),
            (objects.existing.is_some(), "objects.existing", beside),
            (
                !prepares && objects.count > 0,
                "objects.count",
                "must be 0, as this activity reads nothing",
            ),
            (prepares && objects.count == 0, "objects.count", "must be at least 1"),
            (
                objects.versions > 1 && !is_retention,
                "objects.versions",
                "must be 1, as this activity knows no versions",
            ),
        ])
    }

    /// Refuses choices and content that the rest of the workload has no use for.
    fn check_choices(&self) -> Checked {
        let measure = &self.measure;
        let picks = match &measure.activity {
            ActivitySpec::Operations | ActivitySpec::Versioned => {
                !["PUT", "DELETE", "LIST"].into_iter().any(|op| self.asks(op))
            }
            ActivitySpec::Retention { .. } | ActivitySpec::Multipart | ActivitySpec::Zip => true,
            _ => false,
        };
        let is_random = self.objects.generator == GeneratorSpec::Random;
        let is_odd = |ratio: Option<f64>| !is_random && ratio.is_some_and(|ratio| ratio != 1.0);
        let steady = measure.steady.as_ref();
        let needs_random = "needs random content; leave the generator at random";
        first([
            (
                measure.pick != PickSpec::Uniform && !picks,
                "measure.pick",
                "zipf and sequential are for operations that leave the objects as they are, such \
                 as GET and STAT without PUT and DELETE",
            ),
            (is_odd(self.objects.compress_ratio), "objects.compress_ratio", needs_random),
            (is_odd(self.objects.dedupe_ratio), "objects.dedupe_ratio", needs_random),
            (
                steady.is_some_and(|steady| steady.window_ns == 0),
                "measure.steady.window_ns",
                "must be above 0",
            ),
            (
                steady.is_some_and(|it| !(it.percent > 0.0 && it.percent.is_finite())),
                "measure.steady.percent",
                "must be above 0",
            ),
        ])
    }

    /// Returns why there are too few objects, in words that know of one set only.
    fn too_few(&self) -> Option<String> {
        let (count, workers) = (self.objects.count, u64::from(self.concurrency));
        if count < workers {
            return Some(format!(
                "{count} objects are too few for {workers} workers; each needs one"
            ));
        }
        let batch = self.measure.delete_batch.unwrap_or(1);
        let least = u64::from(batch) * workers * BATCHES_PER_WORKER_MIN;
        (self.asks("DELETE") && count < least).then(|| {
            format!(
                "{count} objects are too few: {workers} workers deleting {batch} at a time need \
                 {least}, four batches each"
            )
        })
    }
}

/// Refuses the first that holds.
fn first<const N: usize>(refusals: [(bool, &'static str, &'static str); N]) -> Checked {
    match refusals.into_iter().find(|(holds, ..)| *holds) {
        Some((_, field, reason)) => invalid(field, reason),
        None => Ok(()),
    }
}
