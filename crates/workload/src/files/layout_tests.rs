//! A seed gives the same operations on the same files as ever: hashes of them, made when files were
//! still laid out by way of version 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{OpKind, Seed, WorkerId};

use super::{FileOp, FilePlan, FileStream};
use crate::data::Generator;
use crate::plan::{Placing, Plan, WorkloadFile};
use crate::{hash_text, mix64};

/// What the operations of each sample come to.
const KNOWN: [(&str, u64); 21] = [
    ("blocks by Pareto's law", 0x49fe_b3ac_df1c_1709),
    ("blocks by Zipf's law", 0x5e4f_b43e_692b_4b94),
    ("blocks by a normal law", 0xdd9c_f3e5_7a36_4056),
    ("blocks drawn alike", 0x4dfa_fdb8_3df9_dbac),
    ("blocks each once", 0xbc22_da90_4596_1b31),
    ("blocks in a row", 0x9b12_6ee0_a2e3_9b71),
    ("file-bandwidth", 0xfd3c_0477_6f5a_4056),
    ("file-iops", 0x9fc6_a598_3ec2_360e),
    ("file-latency", 0xea0d_7bd6_29aa_869c),
    ("file-metadata", 0x9b13_47b5_b40f_3e20),
    ("file-suite", 0x2809_63e9_c81d_3f4a),
    ("fill", 0xa5ec_743a_253a_8995),
    ("fill past the cache", 0x355c_2c87_fd28_97c3),
    ("fio-mixed", 0x7fd9_4af7_11b6_8732),
    ("fio-weka-guide", 0xdf12_0c0f_979d_c114),
    ("fio-wekatester", 0x1f79_870b_8d7d_659a),
    ("jobs side by side", 0x311d_0647_a501_894a),
    ("mdtest", 0x438e_9db9_0613_c186),
    ("names in trees of each worker", 0x768c_53a0_6d16_1ae1),
    ("names that are shared, and directories", 0x9eb7_835f_88a7_817c),
    ("paths that are there", 0x0bc9_5c15_00a1_6690),
];

const HEAD: &str =
    "schema: plimsoll.workload/2\nname: t\ntargets: {files: {directory: [/a, b/]}}\n";

/// Work on files of every kind: sets and stages.
const SAMPLES: [(&str, &str, &[&str]); 12] = [
    (
        "fill",
        "own: {files: 3, size: 100KiB..3MiB, workers: 3}, listed: {names: [x, y/z], size: 70MiB}, \
         flat: {files: 2, size: 1MiB, name: $filenum/$jobname/f, job: other}",
        &[
            "{name: a, workers: 3, work: {fill: {sets: [own, listed], block: 64KiB}}}",
            "{name: b, workers: 2, work: {fill: [listed, flat]}}",
        ],
    ),
    (
        "fill past the cache",
        "own: {files: 2, size: 1MiB, workers: 2}",
        &["{workers: 2, verify: false, work: {fill: {sets: own, block: 24KiB, direct: true}}}"],
    ),
    (
        "blocks in a row",
        "own: {files: 2, size: 1MiB, workers: 2}",
        &[
            "{workers: 2, work: {fill: own}}",
            "{name: r, workers: 4, depth: 8, work: {blocks: {on: own, read: {block: {range: \
             4KiB..40KiB}}, \
           order: sequential, repeats: false}}}",
            "{name: w, workers: 3, work: {blocks: {on: own, write: {block: 24KiB}, order: \
             sequential, \
           fsync_every: 3, fdatasync_every: 2, end_fsync: true}}}",
            "{name: r, workers: 2, ops: 700, work: {blocks: {on: own, read: {block: 4KiB}}}}",
        ],
    ),
    (
        "blocks each once",
        "own: {files: 3, size: 1000KiB..2MiB, workers: 3}",
        &["{name: m, workers: 3, ops: 1000, work: {blocks: {on: own, read: {percent: 70%, block: \
           {shares: [{4KiB: 60}, {64KiB: 40}]}}, write: {block: {range: 8KiB..33KiB}}}}}"],
    ),
    (
        "blocks drawn alike",
        "own: {files: 3, size: 1MiB}",
        &[
            "{name: m, workers: 3, ops: {each: 500}, work: {blocks: {on: own, read: {block: 512B}, \
           write: {block: 2KiB}, order: uniform, seed: 99}}}",
            "{name: n, workers: 2, bytes: {each: 1MiB}, work: {blocks: {on: own, read: {block: \
           4KiB}, order: uniform}}}",
        ],
    ),
    (
        "blocks by Zipf's law",
        "own: {names: [data], size: 5MiB}",
        &[
            "{name: m, workers: 2, bytes: 3MiB, work: {blocks: {on: own, write: {block: 4KiB}, \
             order: \
           {zipf: 1.2}}}}",
            "{name: n, workers: 2, ops: 901, work: {blocks: {on: own, read: {block: 4KiB}, order: \
           {zipf: 0.8}}}}",
        ],
    ),
    (
        "blocks by Pareto's law",
        "own: {files: 1, size: 5MiB, name: data}",
        &["{name: m, workers: 2, ops: 901, work: {blocks: {on: own, write: {block: 4KiB}, read: \
           {percent: 33%, block: 16KiB}, order: {pareto: 0.3}, direct: true, sync: dsync}}}"],
    ),
    (
        "blocks by a normal law",
        "own: {files: 1, size: 5MiB, name: data}",
        &["{name: m, workers: 2, duration: 5s, verify: false, work: {blocks: {on: own, write: \
           {block: 4KiB}, order: {normal: 20%}, invalidates: true}}}"],
    ),
    (
        "paths that are there",
        "there: {paths: [/dev/sdx, c/d], size: 1MiB, touch: true}",
        &["{name: m, workers: 2, ops: 901, work: {blocks: {on: there, write: {block: 4KiB}, \
             read: \
           {block: 16KiB}}}}"],
    ),
    (
        "names in trees of each worker",
        "t: {tree: {name: top/t, depth: 2, branching: 3, entries: 4, leaves_only: true, \
         per_worker: \
         true}}",
        &[
            "{name: a, workers: 3, work: {names: {make_tree: t}}}",
            "{name: b, workers: 3, work: {names: {create: t, bytes: 3901B, fsync: true}}}",
            "{name: c, workers: 3, deal: {shift: 1}, work: {names: {stat: t, shuffled: true}}}",
            "{name: d, workers: 3, deal: {shift: 2}, work: {names: {open: t, bytes: 5KiB}}}",
            "{name: e, workers: 3, work: {names: {rename: t}}}",
            "{name: f, workers: 3, ops: 50, deal: {shift: 1}, work: {names: {open: t, bytes: \
             3901B, \
           shuffled: true}}}",
            "{name: g, workers: 3, deal: {shift: 1}, work: {names: {remove: t, shuffled: true}}}",
            "{name: h, workers: 3, work: {names: {remove_tree: t}}}",
        ],
    ),
    (
        "names that are shared, and directories",
        "s: {tree: {entries: 7, per_worker: true, shared_names: true}}, \
         d: {tree: {depth: 3, entries: 2, per_worker: true, of_directories: true}}",
        &[
            "{name: a, workers: 2, work: {names: {make_tree: s}}}",
            "{name: b, workers: 2, work: {names: {create: s, bytes: 100B}}}",
            "{name: c, workers: 2, work: {names: {open: s, bytes: 100B}}}",
            "{name: d, workers: 2, work: {names: {remove: s}}}",
            "{name: e, workers: 2, work: {names: {make_tree: d}}}",
            "{name: f, workers: 2, work: {names: {create: d}}}",
            "{name: g, workers: 2, work: {names: {rename: d}}}",
            "{name: h, workers: 2, work: {names: {remove: d}}}",
        ],
    ),
    (
        "jobs side by side",
        "own: {files: 2, size: 1MiB, workers: 2}, data: {files: 1, size: 3MiB}, \
         t: {tree: {entries: 9, per_worker: true}}",
        &[
            "{name: f, workers: 2, work: {fill: own}}, {name: t, workers: 3, work: {names: \
             {make_tree: \
           t}}}",
            "{name: r, workers: 2, verify: false, ops: 300, work: {blocks: {on: own, read: {block: \
           4KiB}}}}, {name: c, workers: 3, work: {names: {create: t, bytes: 10B}}}, {name: w, \
           workers: 2, ops: 300, work: {blocks: {on: data, write: {block: 4KiB}}}}",
        ],
    ),
];

/// Lays the jobs on files of a plan out.
fn laid(plan: Plan) -> FilePlan {
    let (buckets, found) = ([String::new()], BTreeMap::new());
    let placing = Placing { run: "r", seed: Seed(7), buckets: &buckets, found: &found };
    let placed = Arc::new(plan).place(&placing).unwrap_or_else(|error| panic!("{error}"));
    placed.files.expect("it works on files")
}

/// What the next operation of a worker is; `generator`: and which content it has.
fn words_of(
    plan: &FilePlan,
    stream: &FileStream,
    op: &FileOp,
    generator: Option<&Generator>,
) -> String {
    match op {
        FileOp::Block(op) => {
            let entry = plan.table.entry(op.file);
            let mut bytes = Vec::new();
            if let Some(generator) = generator.filter(|_| op.write) {
                bytes.resize(op.len as usize, 0);
                stream.fill(op, generator, &mut bytes);
            }
            let seen = &bytes[..bytes.len().min(64)];
            let place = format!("{}+{} of {}", op.offset, op.len, entry.size);
            format!("{} {place} {} {} {seen:?}", op.write, entry.path, entry.existing)
        }
        FileOp::Sync { file, data_only } => format!("sync {file} {data_only}"),
        FileOp::Name(op) => {
            let (mut path, mut to, mut bytes) = (Vec::new(), Vec::new(), [0; 8_192]);
            stream.path(op, &mut path);
            if op.kind == OpKind::Rename {
                stream.new_path(op, &mut to);
            }
            if let Some(generator) = generator.filter(|_| op.kind == OpKind::Create) {
                stream.fill_name(op, generator, &mut bytes);
            }
            format!("{op:?} {:?} {path:?} {to:?} {:?}", stream.directory(), &bytes[..64])
        }
    }
}

/// Does what is left to do to names: later stages work on what is there.
fn finish_names(mut stream: FileStream) {
    if stream.directory().is_some() {
        while let Some(op) = stream.next_op() {
            stream.completed(&op, true);
        }
    }
}

/// Compares the operations on files of a plan with those that it always came to.
#[track_caller]
pub(crate) fn same_layout(name: &str, plan: Plan) {
    let stages = plan.stages.len();
    let (plan, generator) = (laid(plan), Generator::new(7));
    let mut all = hash_text(&format!("{:?}", plan.run_directories()));
    let mut add = |words: String| all = mix64(all ^ hash_text(&words));
    for stage in 0..stages {
        add(format!("stage {stage} of {}", plan.workers(stage)));
        add(format!("{:?}", plan.directories_before(stage)));
        for worker in (0..plan.workers(stage)).map(WorkerId) {
            if worker.0 >= 9 {
                finish_names(plan.stream(stage, worker, 0));
                continue;
            }
            let (job, clone) = plan.job_of(stage, worker);
            let files = plan.files_of(stage, worker);
            let buffer = plan.buffer_bytes(stage, worker);
            add(format!("worker {worker:?}: {clone} of {job}, {files:?}, {buffer}"));
            let mut stream = plan.stream(stage, worker, 0);
            add(format!("{}", stream.work_left(1_000)));
            for number in 0..400 {
                add(format!("{}", stream.must_drain()));
                let Some(op) = stream.next_op() else { break };
                let generator = (number < 3).then_some(&generator);
                add(words_of(&plan, &stream, &op, generator));
                stream.completed(&op, true);
            }
            finish_names(stream);
        }
    }
    let known = KNOWN.iter().find(|(sample, _)| *sample == name);
    assert_eq!(known, Some(&(name, all)), "{name}: {all:#018x}");
}

#[test]
fn operations_on_files_are_those_they_always_were() {
    for (name, sets, stages) in SAMPLES {
        let stages: String = stages.iter().map(|jobs| format!("- {{jobs: [{jobs}]}}\n")).collect();
        let text = format!("{HEAD}sets: {{{sets}}}\nstages:\n{stages}");
        let file = WorkloadFile::from_yaml(name, &text).unwrap_or_else(|error| panic!("{error}"));
        same_layout(name, file.recorded().unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}
