//! What the check refuses of numbers beyond their bounds, and of fields that do not go together.

use super::tests::{check, one_job};
use crate::plan::WorkloadFile;

const O: &str = "{count: 100, size: 1000}";

#[test]
fn mixes_have_what_they_need() {
    let many = "{count: 100000001, size: 1000}";
    check(&[
        (
            &one_job(many, "work: {objects: [{get: o}, {put: o, weight: 9}, {delete: o}]}"),
            "stages[1].jobs[0].work.objects[2].delete: the 100000001 members of set `o` are too \
             many to keep track of one by one, as work that changes them does; at most \
             100000000",
        ),
        (
            &one_job(O, "work: {objects: [{put: o, as: overwrite}, {delete: o}]}"),
            "stages[1].jobs[0].work.objects[1].weight: 1 of delete is above the 0 of new puts \
             of set `o`, which would run out",
        ),
        (
            "sets: {o: {size: 1000}}\nstages: [{duration: 1s, jobs: [{work: {objects: [{put: o, \
             as: overwrite}]}}]}]",
            "stages[0].jobs[0].work.objects[0].put: set `o` has no members yet; no stage before \
             makes them",
        ),
        (
            "sets: {e: {existing: {}, touch: true}}\nstages: [{duration: 1s, jobs: [{work: \
             {objects: [{put: e, as: version}]}}]}]",
            "stages[0].jobs[0].work.objects[0].put: existing objects are not written; put into \
             one of the run's own sets",
        ),
    ]);
}

#[test]
fn special_work_has_bounds() {
    let alone = |set: &str, job: &str| {
        format!("sets: {{o: {set}}}\nstages: [{{duration: 1s, jobs: [{{{job}}}]}}]")
    };
    check(&[
        (
            &one_job(O, "work: {retention: {of: o, hold: 0s}}"),
            "stages[1].jobs[0].work.retention.hold: must be longer than 0s",
        ),
        (
            &alone("{size: 1000}", "work: {retention: {of: o, hold: 1s}}"),
            "stages[0].jobs[0].work.retention.of: set `o` has no members yet; no stage before \
             makes them",
        ),
        (
            &one_job("{count: 1, size: 10001000, part: 1000}", "work: {parts: {get: o}}"),
            "sets.o.size: size 10001000B is out of range: 1B to 10000000B",
        ),
        (
            &one_job("{count: 1, size: 5000, part: 1000, versions: 2}", "work: {parts: {get: o}}"),
            "sets.o.part: objects in parts have no versions to be filled",
        ),
        (
            &alone("{}", "work: {parts: {put: o, parts: 10001, part: 1000}}"),
            "stages[0].jobs[0].work.parts.parts: 10001 is out of range: 1 to 10000",
        ),
        (
            &alone("{}", "work: {parts: {put: o, parts: 5, part: 1000, at_once: 6}}"),
            "stages[0].jobs[0].work.parts.at_once: 6 is above the 5 parts of an upload",
        ),
        (
            &alone(
                "{}",
                "workers: 1001, work: {parts: {put: o, parts: 100, part: 1000, at_once: 100}}",
            ),
            "stages[0].jobs[0].workers: 100100 operations in flight in one stage, 100000 at \
             most",
        ),
        (
            &alone("{size: 1000}", "work: {append: {to: o, parts: 0}}"),
            "stages[0].jobs[0].work.append.parts: 0 is out of range: 1 to 10000",
        ),
        (
            &one_job(
                "{count: 10000, size: 1MiB, archive: zip}",
                "work: {archive: {get_from_zip: o}}",
            ),
            "sets.o.size: a zip archive holds less than 4 GiB",
        ),
        (
            &alone(
                "{size: 10MiB}",
                "workers: 4, work: {archive: {put_tar: o, members: 50, compress: true}}",
            ),
            "stages[0].jobs[0].work.archive.compress: archives that are compressed are built in \
             memory, and those of all workers together come to more than 1 GiB",
        ),
        (
            &alone("{size: 1000}", "work: {fanout: {put: o, copies: 10001}}"),
            "stages[0].jobs[0].work.fanout.copies: 10001 is out of range: 1 to 10000",
        ),
    ]);
}

#[test]
fn content_has_bounds() {
    let set = |fields: &str| format!("sets: {{o: {{{fields}}}}}\nstages: [{{duration: 1s}}]");
    check(&[
        (
            &set("content: {shaped: {compress_ratio: 0.9}}"),
            "sets.o.content.shaped.compress_ratio: 0.9 is out of range: 1 to 50",
        ),
        (
            &set("content: {shaped: {dedupe_ratio: 101.0}}"),
            "sets.o.content.shaped.dedupe_ratio: 101 is out of range: 1 to 100",
        ),
        (
            &set("size: {list: [5B, 0B]}"),
            "sets.o.size.list[1]: size 0B is out of range: 1B to 5GiB",
        ),
        (
            &set("size: {histogram: []}"),
            "sets.o.size.histogram: 0 shares are out of range: 1 to 1000000",
        ),
        (
            &set("size: {lognormal: {median: 9, sigma: 0.0}}"),
            "sets.o.size.lognormal.sigma: 0 is out of range: above 0 to 8",
        ),
    ]);
}

#[test]
fn stages_have_bounds() {
    let sets = "sets: {o: {count: 9, size: 1B}}\nstages:\n";
    let jobs = |count: u32, fields: &str| -> String {
        let job = |number| format!("{{name: j{number}, {fields}work: {{objects: [{{put: o}}]}}}},");
        format!("{sets}- {{duration: 1s, jobs: [{}]}}", (0..count).map(job).collect::<String>())
    };
    check(&[
        (&jobs(257, ""), "stages[0].jobs: 257 jobs are out of range: 1 to 256 in one stage"),
        (
            &jobs(17, "workers: 1000000, "),
            "stages[0].jobs[0].workers: 1000000 operations in flight in one stage, 100000 at \
             most",
        ),
    ]);
}

#[test]
fn files_have_bounds() {
    let set = |fields: &str| format!("sets: {{f: {{{fields}}}}}\nstages: [{{duration: 1s}}]");
    check(&[
        (
            &set("files: 10000000, workers: 2, size: 1B"),
            "sets.f.files: 20000000 files in all are out of range: 1 to 16777214",
        ),
        (
            &set("files: 1, size: 1B, name: /etc/x"),
            "sets.f.name: `/etc/x` is absolute; only files that exist are named so",
        ),
        (&set("files: 1, size: 1B, name: ./"), "sets.f.name: `./` names no file"),
        (
            &set("names: [a/../../b], size: 1B"),
            "sets.f.names[0]: `a/../../b` leads out of the run's directory",
        ),
        (
            &set("names: [/etc/x], size: 1B"),
            "sets.f.names[0]: `/etc/x` is absolute; only files that exist are named so",
        ),
        (&set("names: [./], size: 1B"), "sets.f.names[0]: `./` names no file"),
        (&set("files: 1, size: 1PiB"), "sets.f.size: file size 1PiB is out of range: 1B to 512TiB"),
        (&set("tree: {entries: 1, branching: 0}"), "sets.f.tree.branching: must be at least 1"),
        (
            &set("tree: {entries: 1, depth: 64, branching: 2}"),
            "sets.f.tree.depth: 64 levels of 2 directories each are too many",
        ),
        (
            &set("tree: {entries: 1, depth: 201, branching: 1}"),
            "sets.f.tree.depth: 201 levels of 1 directories each are too many",
        ),
        (
            &set("tree: {entries: 18446744073709551615}"),
            "sets.f.tree.entries: more than 1099511627776 entries for each worker are too many",
        ),
        (
            &set("tree: {entries: 1, name: ..}"),
            "sets.f.tree.name: `..` leads out of the run's directory",
        ),
        (
            &set("tree: {entries: 1, shared_names: true, of_directories: true}"),
            "sets.f.tree.shared_names: only files can be shared",
        ),
        (
            "targets: {files: {directory: [/a, /b]}}\nsets: {t: {tree: {entries: 1}}}\nstages: \
             [{duration: 1s}]",
            "sets.t.tree.per_worker: must be true: of a target with several directories, each \
             worker has a tree in one of them",
        ),
    ]);
}

#[test]
fn blocks_have_bounds() {
    let of = |fields: &str| one_job("{files: 1, size: 2GiB}", fields);
    let blocks = |fields: &str| of(&format!("work: {{blocks: {{on: o, {fields}}}}}"));
    let order = |law: &str| blocks(&format!("read: {{block: 4KiB}}, order: {law}"));
    let endless = "sets: {f: {files: 1, size: 1MiB}}\nstages: [{jobs: [{work: {blocks: {on: f, \
                   write: {block: 4KiB}, repeats: true}}}]}]";
    let fill = |fields: &str| {
        format!(
            "sets: {{f: {{files: 1, size: 1000}}}}\nstages: [{{jobs: [{{work: {{fill: {{sets: f, \
             {fields}}}}}}}]}}]"
        )
    };
    check(&[
        (
            &blocks("read: {block: 0B}"),
            "stages[1].jobs[0].work.blocks.read.block: block size 0B is out of range: 1B to \
             1GiB",
        ),
        (
            &blocks("read: {block: 1073741825}"),
            "stages[1].jobs[0].work.blocks.read.block: block size 1073741825B is out of range: \
             1B to 1GiB",
        ),
        (
            &blocks("read: {block: {range: 0B..4B}}"),
            "stages[1].jobs[0].work.blocks.read.block.range: block size 0B is out of range: 1B \
             to 1GiB",
        ),
        (
            &blocks("read: {block: {shares: [{4096: 0}]}}"),
            "stages[1].jobs[0].work.blocks.read.block.shares[0]: 0 is out of range: 1 to \
             4294967295",
        ),
        (
            &blocks("read: {percent: 101%, block: 4KiB}, write: {block: 4KiB}"),
            "stages[1].jobs[0].work.blocks.read.percent: 101% is out of range: 1% to 99%, a \
             whole number",
        ),
        (
            &blocks("write: {block: 4KiB}, fsync_every: 0"),
            "stages[1].jobs[0].work.blocks.fsync_every: must be at least 1",
        ),
        (
            endless,
            "stages[0].jobs[0].duration: is missing; without a duration, ops or bytes of the \
             job or its stage the work never ends",
        ),
        (
            &order("{zipf: 0.0}"),
            "stages[1].jobs[0].work.blocks.order.zipf: 0 is out of range: above 0 and not 1",
        ),
        (
            &order("{zipf: 1.0}"),
            "stages[1].jobs[0].work.blocks.order.zipf: 1 is out of range: above 0 and not 1",
        ),
        (
            &order("{zipf: -1.0}"),
            "stages[1].jobs[0].work.blocks.order.zipf: -1 is out of range: above 0 and not 1",
        ),
        (
            &order("{pareto: 0.0}"),
            "stages[1].jobs[0].work.blocks.order.pareto: 0 is out of range: between 0 and 1",
        ),
        (
            &order("{pareto: 1.0}"),
            "stages[1].jobs[0].work.blocks.order.pareto: 1 is out of range: between 0 and 1",
        ),
        (
            &order("{normal: 0%}"),
            "stages[1].jobs[0].work.blocks.order.normal: 0 is out of range: above 0% to 100%",
        ),
        (
            &order("{normal: 101%}"),
            "stages[1].jobs[0].work.blocks.order.normal: 101 is out of range: above 0% to 100%",
        ),
        (
            &fill("block: 0B"),
            "stages[0].jobs[0].work.fill.block: block size 0B is out of range: 1B to 1GiB",
        ),
    ]);
}

#[test]
fn names_that_cannot_be_worked_on() {
    let names = |tree: &str, work: &str| {
        format!(
            "sets: {{t: {{tree: {{entries: 3, {tree}}}}}}}\nstages:\n\
             - {{jobs: [{{work: {{names: {{make_tree: t}}}}}}]}}\n\
             - {{jobs: [{{work: {{names: {{create: t}}}}}}]}}\n\
             - {{jobs: [{{workers: 2, work: {{names: {{{work}}}}}}}]}}"
        )
    };
    check(&[(
        &names("shared_names: true", "rename: t"),
        "stages[2].jobs[0].work.names.rename: workers cannot rename the same entries",
    )]);
}

/// What only a plan that is laid out shows.
#[test]
fn names_on_the_target_have_bounds() {
    let tar = format!(
        "sets: {{o: {{size: 1000, keys: {{prefix: {}}}}}}}\nstages: [{{duration: 1s, jobs: \
         [{{work: {{archive: {{put_tar: o, members: 50}}}}}}]}}]",
        "p".repeat(140)
    );
    let job = "targets: {files: {directory: /a}}\nsets: {f: {files: 1, size: 1B, name: $jobname/x, \
               job: ..}}\nstages: [{jobs: [{work: {fill: f}}]}]";
    for (text, sentence) in [
        (&*tar, "sets.o.keys.prefix: is too long for the names in a tar archive"),
        (job, "stages[0].jobs[0].work.fill: `../x` leads out of the run's directory"),
    ] {
        let text = format!("schema: plimsoll.workload/2\n{text}");
        let file = WorkloadFile::from_yaml("t.yaml", &text).unwrap();
        assert_eq!(file.judge().unwrap_err().to_string(), sentence);
    }
}
