//! The examples of `testdata` are read, checked, printed and read again.
#![expect(clippy::disallowed_methods, reason = "tests read files of the repository")]

use plimsoll_model::Ability;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// Returns the examples with their names, in the order of these.
pub(super) fn examples() -> Vec<(String, String)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"));
    let entries = fs::read_dir(folder).expect("the examples are there");
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("an example is text"))
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .map(read)
        .collect();
    found.sort();
    found
}

pub(super) fn plan(text: &str) -> Plan {
    let (file, source) =
        WorkloadFile::read("t.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    file.check().unwrap_or_else(|error| panic!("{}", source.locate(error)))
}

fn example(name: &str) -> Plan {
    let all = examples();
    let (_, text) = all.iter().find(|(file, _)| file == name).expect("there is such an example");
    plan(text)
}

#[test]
fn every_example_is_sound_and_comes_back_as_it_was() {
    let examples = examples();
    assert!(examples.len() >= 10);
    for (name, text) in examples {
        let (file, source) =
            WorkloadFile::read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        let plan = file.check().unwrap_or_else(|error| panic!("{}", source.locate(error)));
        for printed in [file.to_yaml(), file.to_yaml_full()] {
            let again = WorkloadFile::from_yaml("printed", &printed)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{printed}"));
            let again = again.check().unwrap_or_else(|error| panic!("{name}: {error}\n{printed}"));
            assert_eq!(again.fingerprint(), plan.fingerprint(), "{name}\n{printed}");
        }
        let short = file.to_yaml();
        let again = WorkloadFile::from_yaml("printed", &short).expect("it was read before");
        assert_eq!(again, file, "{name}\n{short}");
        assert!(short.lines().all(|line| line.len() <= 140), "{name}\n{short}");
        assert_ne!(file.to_yaml_full(), short, "{name}");
        let _ = plan.owed();
    }
}

#[test]
fn a_printed_file_is_as_short_as_one_written_by_hand() {
    let file = WorkloadFile::from_yaml(
        "t.yaml",
        "schema: plimsoll.workload/2\nname: get\nsets:\n  o:\n    count: 2500\n    size: 10240KiB\n\
         stages:\n- prepares: true\n  jobs:\n  - workers: 20\n    work:\n      fill: [o]\n\
         - duration: 300s\n  jobs:\n  - workers: 20\n    depth: 1\n    work:\n      objects:\n\
         \x20     - get: o\n        weight: 1\n        pick:\n          zipf: 0.99\n",
    );
    assert_eq!(
        file.unwrap().to_yaml(),
        "schema: plimsoll.workload/2\nname: get\nsets:\n  o: {count: 2500, size: 10MiB}\nstages:\n\
         - {prepares: true, jobs: [{workers: 20, work: {fill: o}}]}\n\
         - {duration: 5m, jobs: [{workers: 20, work: {objects: [{get: o, pick: zipf}]}}]}\n"
    );
}

#[test]
fn the_fingerprint_is_of_the_meaning() {
    let head = "schema: plimsoll.workload/2\n";
    let body = "sets: {o: {count: 9, size: 1KiB}}\nstages:\n- {jobs: [{work: {fill: o}}]}\n";
    let of = |text: &str| plan(&format!("{head}{text}")).fingerprint();
    let first = of(&format!("name: a\n{body}"));
    assert_eq!(first, of(&format!("name: b\nverify: true\n{body}")));
    let other = "stages:\n- name: stage-1\n  jobs: [{name: stage-1, workers: 1, work: {fill: \
                 {sets: [o], block: 1024KiB}}}]\nsets: {o: {size: 1024, count: 9, versions: 1}}\n";
    assert_eq!(first, of(other));
    assert_ne!(first, of(&body.replace("1KiB", "2KiB")));
    assert_ne!(first, of(&format!("seed: 1\n{body}")));
}

#[test]
fn steps_and_repeats_become_stages() {
    let steps = example("steps.yaml");
    let names: Vec<_> = steps.stages.iter().map(|stage| (&*stage.name, stage.step)).collect();
    let load = |step| ("load", Some(step));
    assert_eq!(names, [("prepare", None), load(0), load(1), load(2)]);
    assert_eq!(steps.stages[2].duration, Some(Duration::from_secs(30)));
    let JobPacing::Shared(crate::Pacing::Open(open)) = &steps.stages[2].jobs[0].pacing else {
        panic!("a step is an open loop");
    };
    assert_eq!(open.profile.to_string(), "600/s");
    let three = example("s3-benchmark.yaml");
    assert_eq!(three.stages.len(), 15);
    let iterations: Vec<u32> = three.stages.iter().map(|stage| stage.iteration).collect();
    assert_eq!(iterations[3..8], [0, 0, 1, 1, 1]);
    assert_eq!(three.stages[7].path.to_string(), "stages[0].repeat.stages[2]");
}

#[test]
fn workers_are_numbered_once_and_names_are_resolved() {
    let plan = example("mixed-targets.yaml");
    let main = &plan.stages[1];
    let firsts: Vec<u32> = main.jobs.iter().map(|job| job.worker_first).collect();
    assert_eq!((firsts, main.workers()), (vec![0, 64, 65], 66));
    assert_eq!(main.jobs[2].target, TargetIndex(1));
    assert_eq!(main.jobs[2].needs, [Ability::Blocks]);
    assert_eq!(plan.set(SetIndex(0)).name, "photos");
    let needs: Vec<Ability> =
        plan.needs(TargetIndex(0)).into_iter().map(|(need, _)| need).collect();
    assert_eq!(needs, [Ability::Put, Ability::Get, Ability::Stat, Ability::Delete]);
    assert!(plan.consents.is_empty());
    let files = example("fio-two-groups.yaml");
    let set = files.files(SetIndex(0));
    let FileNames::Made { job, workers, count, .. } = &set.names else { panic!("they are made") };
    assert_eq!((&**job, *workers, *count), ("mix", 4, 4));
    assert_eq!(set.directories, ["/mnt/fs"]);
}

#[test]
fn consent_is_told_for_what_the_run_did_not_make() {
    let plan = example("cosbench.yaml");
    let told: Vec<_> =
        plan.consents.iter().map(|consent| (consent.change, consent.path.to_string())).collect();
    assert_eq!(
        told,
        [
            (Change::Writes, "stages[1].jobs[0].work.fill".to_owned()),
            (Change::Writes, "stages[3].jobs[0].work.objects[1].put".to_owned()),
            (Change::Removes, "stages[4].jobs[0].work.remove".to_owned()),
            (Change::Buckets, "stages[5].jobs[0].work.buckets.remove".to_owned()),
        ]
    );
}

#[test]
fn what_is_owed_adds_up() {
    let owed = example("warp-mixed.yaml").owed();
    assert_eq!((owed.members_filled, owed.workers_max, owed.duration_max), (2_500, 20, None));
    assert_eq!(owed.bytes_filled, 2_500.0 * 10_485_760.0);
    assert_eq!(owed.bytes_written_to_files, 0.0);
    // Three of the fill at most, and four of the mix.
    assert_eq!(owed.rows_max, 3 + 4);
    let of_files = |sets: &str, stages: [&str; 2]| {
        let file = crate::testing::on_files(sets, &stages);
        let owed = file.check().unwrap().owed();
        (owed.bytes_filled, owed.bytes_written_to_files)
    };
    let files = "f: {workers: 2, files: 3, size: 1MiB}";
    let write = "{work: {blocks: {on: f, write: {block: 4KiB}}}, workers: 2, duration: 1s}";
    assert_eq!(of_files(files, [write, write]), (0.0, 6.0 * 1_048_576.0), "each file whole, once");
    assert_eq!(of_files(files, ["{work: {fill: f}}", write]), (6.0 * 1_048_576.0, 0.0));
    let there = "f: {paths: [/mnt/a/x, /mnt/a/y], size: 1MiB, touch: true}";
    assert_eq!(of_files(there, [write, write]), (0.0, 2.0 * 1_048_576.0));
    let tree = "t: {tree: {depth: 1, branching: 2, entries: 5}}";
    let names = |act: &str| format!("{{workers: 2, work: {{names: {{{act}: t}}}}}}");
    let create = "{workers: 2, work: {names: {create: t, bytes: 100}}}";
    let made = of_files(tree, [&names("make_tree"), create]);
    assert_eq!(made, (0.0, 2.0 * 3.0 * 5.0 * 100.0));
    let weed = example("seaweedfs.yaml").owed();
    assert_eq!(weed.ops_asked, 2_000_000);
    let two = example("s3-benchmark.yaml");
    assert_eq!(two.stages[0].duration_max(), Some(Duration::from_secs(60)));
}

#[test]
fn operations_in_flight_are_counted_on_files_as_on_objects() {
    let of = |job: &str| {
        let sets = "f: {workers: 4, files: 3, size: 1MiB}";
        let stage = format!("{{work: {{blocks: {{on: f, write: {{block: 4KiB}}}}}}, {job}}}");
        let plan = crate::testing::on_files(sets, &[&stage]).check().unwrap();
        let job = &plan.stages[0].jobs[0];
        (job.in_flight_max(), job.sessions(), job.blocks_bytes_max())
    };
    assert_eq!(
        of("workers: 4, depth: 500, ops: 9"),
        (2_000, 0, 2_000 << 12),
        "none needs a connection"
    );
    assert_eq!(
        of("workers: 4, depth: 500, interface: psync, ops: 9"),
        (4, 0, 4 << 12),
        "a call blocks"
    );
    let open = "workers: 4, ops: 9, pacing: {open: {rate: 9/s, max_in_flight: 77}}";
    assert_eq!(of(open), (77, 0, 77 << 12));
    let tree = "t: {tree: {depth: 1, branching: 2, entries: 5}}";
    let names = crate::testing::on_files(tree, &["{workers: 2, work: {names: {make_tree: t}}}"]);
    assert_eq!(names.check().unwrap().stages[0].in_flight_max(), 2);
}

#[test]
fn files_in_the_manual_are_sound() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workload.md");
    let page = fs::read_to_string(page).expect("the manual is there");
    let parts: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    let files = parts.iter().map(|part| part.split("```").next().expect("it is closed"));
    let mut count = 0;
    for text in files.filter(|text| text.starts_with("schema:")) {
        plan(text);
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn a_target_is_shown_with_the_buckets_of_what_lies_on_it() {
    let of = |sets: &str| {
        let text = format!(
            "schema: plimsoll.workload/2\nname: test\ntargets: {{a: {{s3: {{}}}}, b: {{s3: {{}}}}}}\n\
             sets: {{{sets}}}\nstages: [{{ops: 1, jobs: [{{work: {{objects: [{{get: n}}]}}}}]}}]\n"
        );
        let plan = WorkloadFile::from_yaml("test", &text).unwrap().check().unwrap();
        [0, 1].map(|at| plan.buckets_in_use(TargetIndex(at), Some("own")).unwrap())
    };
    let named = "n: {on: b, named: {bucket: 'c{1..3}', key: 'o{1..9}'}}";
    assert_eq!(of(named), ["own", "c{1..3}"]);
    // Others lie in the target's own, or in some that are numbered after it.
    let with = |set: &str| of(&format!("{named}, o: {{on: b, count: 1, size: 1KiB{set}}}"));
    assert_eq!(with(""), ["own", "c{1..3}, own"]);
    assert_eq!(with(", keys: {buckets: 2}"), ["own", "c{1..3}, own{1..2}"]);
}
