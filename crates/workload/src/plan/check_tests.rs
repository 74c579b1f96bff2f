//! What the check refuses: path and sentence of each.

use crate::plan::WorkloadFile;

const HEAD: &str = "schema: plimsoll.workload/2\nname: t\n";

/// Returns the sentence with which a file is refused, with the path before it.
pub(super) fn refused(text: &str) -> String {
    let file = WorkloadFile::from_yaml("t.yaml", &format!("{HEAD}{text}"));
    let file = file.unwrap_or_else(|error| panic!("{error}\n{text}"));
    match file.check() {
        Ok(_) => "it is sound".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Compares all sentences before it complains, so that one run shows every difference.
#[track_caller]
pub(super) fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, sentence)| (refused(text), sentence, text))
        .filter(|(found, sentence, _)| found != **sentence)
        .map(|(found, sentence, text)| format!("{text}\n   found {found}\n  wanted {sentence}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a file with one set `o` that is filled, and one more stage with one job.
pub(super) fn one_job(set: &str, job: &str) -> String {
    format!(
        "sets: {{o: {set}}}\nstages:\n- {{jobs: [{{work: {{fill: o}}}}]}}\n\
         - {{duration: 1s, jobs: [{{{job}}}]}}"
    )
}

#[test]
fn targets_and_sets_beyond_count() {
    let targets: String = (0..=64).map(|at| format!("  t{at}: {{s3: {{}}}}\n")).collect();
    let refused_text = refused(&format!("targets:\n{targets}stages: []"));
    assert_eq!(refused_text, "targets: 65 targets are too many: at most 64");
    let named: String = (0..11)
        .map(|at| format!("  s{at}: {{named: {{bucket: 'b{{1..100000}}', key: k}}, size: 1B}}\n"))
        .collect();
    let refused_text = refused(&format!("sets:\n{named}stages: []"));
    assert_eq!(refused_text, "sets: all together name 1100000 buckets: at most 1000000");
    let sets: String = (0..=4_096).map(|at| format!("  s{at}: {{}}\n")).collect();
    let refused = refused(&format!("sets:\n{sets}stages: []"));
    assert_eq!(refused, "sets: 4097 sets are too many: at most 4096");
}

#[test]
fn names_that_nobody_knows() {
    check(&[
        ("stages: []", "stages: is empty; a workload needs a stage"),
        (
            "sets: {o: {size: 1B}}\nstages:\n- {duration: 1s}\n- {duration: 1s, jobs: [{work: {objects: \
             [{put: o}, {stat: o}, {get: x}]}}]}",
            "stages[1].jobs[0].work.objects[2].get: unknown set `x`; the sets are o",
        ),
        (
            "stages: [{jobs: [{work: {fill: x}}]}]",
            "stages[0].jobs[0].work.fill: unknown set `x`; the file has no sets",
        ),
        (
            "targets: {a: {s3: {}}, b: {s3: {}}}\nsets: {o: {}}\nstages: []",
            "sets.o.on: must say which target: a, b",
        ),
        (
            "targets: {a: {s3: {}}, b: {s3: {}}}\nsets: {o: {on: c}}\nstages: []",
            "sets.o.on: unknown target `c`; the targets are a, b",
        ),
        (
            "sets: {o: {on: c}}\nstages: []",
            "sets.o.on: unknown target `c`; the file has no targets",
        ),
        (
            "targets: {a b: {s3: {}}}\nstages: []",
            "targets.a b: `a b` is not a name of 1 to 128 letters, digits, `-`, `_` and `.`",
        ),
    ]);
}

#[test]
fn targets_and_sizes_that_cannot_be() {
    check(&[
        (
            "targets: {a: {s3: {hosts: 'k:s@h'}}}\nstages: []",
            "targets.a.s3.hosts: an address must hold no user and no password; keys come from the \
             environment or a profile",
        ),
        (
            "targets: {a: {s3: {proxy: 'k:s@h:3128'}}}\nstages: []",
            "targets.a.s3.proxy: an address must hold no user and no password; keys come from the \
             environment or a profile",
        ),
        (
            "targets: {s3: {hosts: 'h:80', timeout: 0s}}\nstages: []",
            "targets.s3.timeout: must be more than nothing; leave it out",
        ),
        (
            "targets: {s3: {storage_class: ''}}\nstages: []",
            "targets.s3.storage_class: must not be empty",
        ),
        (
            "targets: {s3: {hosts: 'h:80', insecure: true}}\nstages: []",
            "targets.s3.insecure: needs `tls`",
        ),
        (
            "targets: {s3: {hosts: 'https://h', insecure: true, signature: v2, timeout: 30s, proxy: \
             'p:3128', storage_class: STANDARD_IA}}\nstages: []",
            "stages: is empty; a workload needs a stage",
        ),
        (
            "sets: {o: {}}\nstages: [{duration: 1s, jobs: [{work: {objects: [{put: o}]}}]}]",
            "stages[0].jobs[0].work.objects[0].size: is missing, and set `o` has no size either",
        ),
        (
            "sets: {o: {}}\nstages: [{duration: 1s, jobs: [{work: {fanout: {put: o, copies: 2}}}]}]",
            "sets.o.size: is missing; work that writes to the set needs to know it",
        ),
        (
            "sets: {o: {}}\nstages: [{duration: 1s, jobs: [{work: {archive: {put_tar: o, members: \
             2}}}]}]",
            "sets.o.size: is missing; work that writes to the set needs to know it",
        ),
    ]);
}

#[test]
fn hosts_of_a_workload_are_in_no_file() {
    check(&[(
        "targets: {s3: {hosts: 'file:/etc/passwd'}}\nstages: []",
        "targets.s3.hosts: must be addresses, not a file of them",
    )]);
}

#[test]
fn sets_that_are_not_there_yet_or_any_more() {
    check(&[
        (
            "sets: {o: {size: 1B}}\nstages: [{duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}]",
            "stages[0].jobs[0].work.objects[0].get: set `o` has no members yet; no stage before \
             makes them",
        ),
        (
            "sets: {o: {size: 1B, count: 5}}\nstages:\n- {jobs: [{work: {fill: o}}]}\n\
             - {jobs: [{work: {remove: o}}]}\n- {duration: 1s, jobs: [{work: {objects: [{stat: \
             o}]}}]}",
            "stages[2].jobs[0].work.objects[0].stat: set `o` has no members yet; no stage before \
             makes them",
        ),
        (
            "sets: {f: {files: 1, size: 1MiB}}\nstages: [{jobs: [{work: {blocks: {on: f, read: \
             {block: 4KiB}}}}]}]",
            "stages[0].jobs[0].work.blocks.on: set `f` has no members yet; no stage before makes \
             them",
        ),
        (
            &one_job("{count: 3, size: 1B}", "workers: 4, work: {objects: [{get: o}]}"),
            "stages[1].jobs[0].work.objects[0].get: set `o` has 3 members, too few for 4 workers; \
             each needs one",
        ),
        (
            &one_job(
                "{count: 111, size: 1B}",
                "workers: 4, work: {objects: [{delete: o, batch: 7}]}",
            ),
            "stages[1].jobs[0].work.objects[0].delete: set `o` has 111 members, too few: 4 workers \
             deleting 7 at a time need 112, four batches each",
        ),
        (
            "sets: {o: {count: 9, size: 1B}}\nstages:\n- jobs:\n  - {name: a, work: {fill: o}}\n  \
             - {name: b, work: {fill: o}}",
            "stages[0].jobs[1].work.fill: job `a` of the stage writes the same members of set `o`; \
             a member has one writer",
        ),
        (
            "sets: {c: {named: {key: 'o{1..9}'}, size: 1B, touch: true}}\nstages:\n- duration: 1s\n  \
             jobs:\n  - {name: a, work: {objects: [{put: c, keys: 'o{1..5}'}]}}\n  \
             - {name: b, work: {objects: [{put: c, keys: 'o{5..9}'}]}}",
            "stages[0].jobs[1].work.objects[0].put: job `a` of the stage writes the same members \
             of set `c`; a member has one writer",
        ),
        (
            "sets: {c: {named: {key: 'o{1..9}'}, size: 1B, touch: true}}\nstages:\n- duration: 1s\n  \
             jobs:\n  - {name: a, work: {objects: [{put: c, keys: 'o{1..4}'}]}}\n  \
             - {name: b, work: {objects: [{put: c, keys: 'o{5..9}'}]}}",
            "it is sound",
        ),
        (
            "sets: {c: {named: {key: 'o{1..9}'}, size: 1B}}\nstages: [{jobs: [{work: {fill: c}}]}]",
            "sets.c.touch: must be true: stages[0].jobs[0].work.fill writes members of this set, \
             which the run did not make",
        ),
        (
            "sets: {e: {existing: {}}}\nstages: [{jobs: [{work: {objects: [{delete: e}]}}]}]",
            "sets.e.touch: must be true: stages[0].jobs[0].work.objects[0].delete removes members \
             of this set, which the run did not make",
        ),
        (
            "sets: {d: {paths: [/dev/sdz], size: 1GiB}}\nstages: [{jobs: [{work: {blocks: {on: d, \
             write: {block: 4KiB}}}}]}]",
            "sets.d.touch: must be true: stages[0].jobs[0].work.blocks.on writes members of this \
             set, which the run did not make",
        ),
    ]);
}

#[test]
fn mixes_that_cannot_be() {
    let o = "{count: 90, size: 1KiB}";
    check(&[
        (
            &one_job(o, "work: {objects: [{get: o, range: 2KiB}]}"),
            "stages[1].jobs[0].work.objects[0].range: 2KiB is beyond the largest member of set \
             `o`, which has 1KiB",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, range: 0B}]}"),
            "stages[1].jobs[0].work.objects[0].range: must be at least 1 byte",
        ),
        (
            &one_job(o, "work: {objects: [{put: o}, {delete: o, weight: 2}]}"),
            "stages[1].jobs[0].work.objects[1].weight: 2 of delete is above the 1 of new puts of \
             set `o`, which would run out",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, weight: 0}]}"),
            "stages[1].jobs[0].work.objects[0].weight: must be at least 1",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, weight: 131072}, {stat: o, weight: 65536}]}"),
            "it is sound",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, weight: 4000000001}, {stat: o, weight: 2}]}"),
            "stages[1].jobs[0].work.objects: the weights add up to 4000000003 in lowest terms; \
             65536 are the most: round them",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, weight: 4e9}, {stat: o, weight: 4e9}]}")
                .replace("4e9", "4000000000"),
            "stages[1].jobs[0].work.objects: the weights are too large",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, pick: {zipf: 1.0}}]}"),
            "stages[1].jobs[0].work.objects[0].pick.zipf: 1 is out of range: above 0, at most 10 \
             and not 1",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, pick: {bucket: uniform, key: zipf}}]}"),
            "stages[1].jobs[0].work.objects[0].pick: set `o` has no buckets to pick from",
        ),
        (
            &one_job(o, "work: {objects: [{delete: o, batch: 1001}]}"),
            "stages[1].jobs[0].work.objects[0].batch: 1001 is out of range: 1 to 1000",
        ),
        (
            &one_job(o, "work: {objects: [{get: o, keys: 'x{1..3}'}]}"),
            "stages[1].jobs[0].work.objects[0].keys: is only for sets with user-given names",
        ),
    ]);
}

#[test]
fn members_in_parts_are_filled_alone() {
    let filled =
        |sets: &str| format!("sets: {sets}\nstages: [{{jobs: [{{work: {{fill: [o, u]}}}}]}}]");
    let alone = "sets whose members are uploaded in parts are filled by a separate job";
    check(&[
        (
            &filled("{o: {count: 9, size: 1KiB}, u: {count: 9, size: 6MiB, part: 5MiB}}"),
            &format!("stages[0].jobs[0].work.fill[1]: {alone}"),
        ),
        (
            &filled(
                "{o: {count: 1, size: 6MiB, part: 5MiB}, u: {count: 9, size: 6MiB, part: 5MiB}}",
            ),
            &format!("stages[0].jobs[0].work.fill[0]: {alone}"),
        ),
    ]);
}

#[test]
fn work_that_cannot_be() {
    let o = "{count: 90, size: 1KiB}";
    check(&[
        (
            &one_job(o, "work: {parts: {put: o, parts: 5, part: 3B, part_min: 5MiB}}"),
            "stages[1].jobs[0].work.parts.part: part size 3B is below what the target takes, 5MiB",
        ),
        (
            &one_job(o, "work: {parts: {put: o, parts: 5, part: 6GiB}}"),
            "stages[1].jobs[0].work.parts.part: part size 6GiB is out of range: 1B to 5GiB",
        ),
        (
            &one_job(o, "work: {parts: {get: o}}"),
            "stages[1].jobs[0].work.parts.get: set `o` has no `part`, so its members have none",
        ),
        (
            &one_job(o, "work: {archive: {get_from_zip: o}}"),
            "stages[1].jobs[0].work.archive.get_from_zip: set `o` is not an archive; it needs \
             `archive: zip`",
        ),
        (
            &one_job(o, "work: {blocks: {on: o, read: {block: 4KiB}}}"),
            "stages[1].jobs[0].work.blocks.on: set `o` does not consist of files",
        ),
        (
            &one_job(o, "work: {append: {to: o, parts: 10001}}"),
            "stages[1].jobs[0].work.append.parts: 10001 is out of range: 1 to 10000",
        ),
        (
            "targets: {files: {directory: /mnt}}\nsets: {o: {size: 1KiB}}\nstages: [{duration: 1s, \
             jobs: [{work: {append: {to: o, parts: 9}}}]}]",
            "stages[0].jobs[0].work: target `files` is of kind files, which does not offer \
             append",
        ),
        (
            "targets: {a: {s3: {}}, b: {s3: {}}}\nsets: {o: {on: a, size: 1B}, p: {on: b, size: \
             1B}}\nstages: [{duration: 1s, jobs: [{work: {objects: [{put: o}, {put: p}]}}]}]",
            "stages[0].jobs[0].work: set `p` lies on target `b`, not on `a`; a job uses one target",
        ),
        (
            "targets: {files: {}}\nsets: {f: {files: 1, size: 1MiB}}\nstages: [{jobs: [{work: \
             {fill: f}}]}]",
            "stages[0].jobs[0].work: target `files` needs a directory for the run's own files",
        ),
        (
            "sets: {f: {files: 1, size: 1MiB}}\nstages: [{jobs: [{work: {blocks: {on: f, write: \
             {block: 1000B}, direct: true}}}]}]",
            "stages[0].jobs[0].work.blocks.write.block: block size 1000B is not a multiple of 512 \
             bytes, which `direct` needs",
        ),
        (
            "sets: {f: {files: 1, size: 1KiB}}\nstages: [{jobs: [{work: {blocks: {on: f, write: \
             {block: 4KiB}}}}]}]",
            "stages[0].jobs[0].work.blocks.write.block: a file of 1KiB holds no block of 4KiB",
        ),
        (
            "sets: {f: {files: 1, size: 1KiB}}\nstages: [{jobs: [{work: {blocks: {on: f}}}]}]",
            "stages[0].jobs[0].work.blocks: must have one of the fields read, write, or both",
        ),
        (
            "sets: {t: {tree: {entries: 5, of_directories: true}}}\nstages: [{jobs: [{work: {names: \
             {open: t}}}]}]",
            "stages[0].jobs[0].work.names.open: directories hold no bytes and are not opened",
        ),
    ]);
}

#[test]
fn jobs_that_cannot_be() {
    let o = "{count: 90, size: 1KiB}";
    let get = "work: {objects: [{get: o}]}";
    let job = |fields: &str| one_job(o, &format!("{fields}, {get}"));
    let endless = format!(
        "sets: {{o: {o}}}\nstages:\n- {{jobs: [{{work: {{fill: o}}}}]}}\n- {{jobs: [{{{get}}}]}}"
    );
    check(&[
        (&job("workers: 0"), "stages[1].jobs[0].workers: 0 is out of range: 1 to 1000000"),
        (
            &job("workers: 1000, depth: 101"),
            "stages[1].jobs[0].workers: 101000 operations in flight in one stage, \
             100000 at most",
        ),
        (
            &format!(
                "sets: {{o: {o}}}\nstages:\n- {{jobs: [{{work: {{fill: o}}}}]}}\n- {{ops: 9, jobs: \
                 [{{name: a, workers: 60000, {get}}}, {{name: b, workers: 40001, {get}}}]}}"
            ),
            "stages[1].jobs[1].workers: 100001 operations in flight in one stage, \
             100000 at most",
        ),
        (&job("depth: 0"), "stages[1].jobs[0].depth: 0 is out of range: 1 to 65536"),
        (&job("duration: 0s"), "stages[1].jobs[0].duration: must be longer than 0s"),
        (&job("ops: 0"), "stages[1].jobs[0].ops: must be at least 1"),
        (&job("bytes: {each: 0}"), "stages[1].jobs[0].bytes.each: must be at least 1"),
        (
            &job("max_error_rate: 101%"),
            "stages[1].jobs[0].max_error_rate: 101% is out of range: 0% to 100%",
        ),
        (
            &job("think: {pause: 1s, spin: 2s}"),
            "stages[1].jobs[0].think.spin: must be at most the pause",
        ),
        (
            &job("workers: 2, deal: {shift: 2}"),
            "stages[1].jobs[0].deal.shift: a shift of 2 needs more than 2 workers",
        ),
        (&job("deal: by_bucket"), "stages[1].jobs[0].deal: set `o` has no buckets to deal"),
        (&job("interface: psync"), "stages[1].jobs[0].interface: is only for work on files"),
        (
            &job("pacing: {open: {rate: 9/s, max_in_flight: 0}}"),
            "stages[1].jobs[0].pacing.open.max_in_flight: 0 is out of range: 1 to 100000",
        ),
        (
            &job("pacing: {capped_each: {}}"),
            "stages[1].jobs[0].pacing.capped_each: is empty; cap read, write or both",
        ),
        (
            &job("pacing: {open: {steps: [{9/s: 1s}]}}"),
            "stages[1].duration: the steps say how long; leave it out",
        ),
        (
            "sets: {o: {count: 9, size: 1B}}\nstages: [{jobs: [{pacing: {open: 9/s}, work: {fill: \
             o}}]}]",
            "stages[0].jobs[0].pacing: work on whole sets has no schedule; use a closed or capped \
             loop",
        ),
        (
            &one_job(o, "pacing: {open: 9/s}, work: {parts: {put: o, part: 1KiB}}"),
            "stages[1].jobs[0].pacing.open: the parts of an upload depend on one another, so that \
             uploads in parts have no schedule; use a closed or capped loop",
        ),
        (
            &endless,
            "stages[1].jobs[0].duration: is missing; without a duration, ops or bytes of the job \
             or its stage the work never ends",
        ),
    ]);
}

#[test]
fn stages_that_cannot_be() {
    let two = "{name: a, work: {fill: o}}";
    let head = "sets: {o: {count: 9, size: 1B}, p: {count: 9, size: 1B}}\nstages:\n";
    let filled = format!("{head}- {{jobs: [{two}]}}\n");
    check(&[
        (
            &format!("targets: {{s3: {{}}}}\n{head}- {{drop_caches: true, jobs: [{two}]}}"),
            "stages[0].drop_caches: target `s3` is of kind s3, whose caches cannot be dropped",
        ),
        (
            &format!("{head}- {{}}"),
            "stages[0].jobs: is empty; a stage without jobs is a pause and needs a duration",
        ),
        (
            &format!("{head}- jobs: [{two}, {{work: {{fill: p}}}}]"),
            "stages[0].jobs[1].name: is missing; of several jobs in one stage each needs one",
        ),
        (
            &format!("{head}- repeat: {{times: 2, stages: []}}"),
            "stages[0].repeat.stages: is empty; there is nothing to repeat",
        ),
        (
            &format!("{head}- repeat: {{times: 0, stages: [{{jobs: [{two}]}}]}}"),
            "stages[0].repeat.times: 0 is out of range: 1 to 256",
        ),
        (
            &format!(
                "{head}- repeat: {{times: 200, stages: [{{duration: 1s}}, {{duration: 1s}}]}}"
            ),
            "stages[0].repeat.stages[0]: more than 256 stages in all, repetitions included",
        ),
        (
            &format!(
                "{filled}- {{duration: 1s, until: [steady, steady], jobs: [{{work: {{objects: \
                      [{{stat: o}}]}}}}]}}"
            ),
            "stages[1].until[1]: `steady` appears twice",
        ),
        (
            &format!(
                "{filled}- {{duration: 1s, until: ['ci(throughput)<=5%'], jobs: [{{work: \
                      {{objects: [{{stat: o}}]}}}}]}}"
            ),
            "stages[1].until[0]: `ci(throughput)<=5%`: no content is moved; ask for ci(rate)",
        ),
    ]);
}

#[test]
fn searches_that_cannot_be() {
    let head = "sets: {o: {count: 9, size: 1B}}\nstages:\n- {jobs: [{work: {fill: o}}]}\n";
    let filled = head.to_owned();
    let probe = "rate: 1/s..9/s, slo: ['p99<=1ms']";
    let get = "jobs: [{work: {objects: [{get: o}]}}]";
    let search = |fields: &str, stage: &str| {
        format!("{filled}- search: {{{fields}, stage: {{{stage}{get}}}}}")
    };
    check(&[
        (
            &search(probe, "duration: 1s, "),
            "stages[1].search.stage.duration: the search says how long each probe lasts; leave it \
             out",
        ),
        (
            &search(probe, "prepares: true, "),
            "stages[1].search.stage.prepares: a search is a result; leave it out",
        ),
        (
            &search(&format!("{probe}, budget: 0s"), ""),
            "stages[1].search.budget: must be longer than 0s",
        ),
        (
            &search("rate: 1/s..9/s, slo: []", ""),
            "stages[1].search.slo: is empty; a search needs a condition",
        ),
        (
            &search(&format!("{probe}, job: b"), ""),
            "stages[1].search.job: there is no job `b` in the stage",
        ),
    ]);
}

#[test]
fn sets_that_cannot_be() {
    let set = |fields: &str| format!("sets: {{o: {{{fields}}}}}\nstages: [{{duration: 1s}}]");
    check(&[
        (
            &set("count: 18446744073709551615, size: 1B"),
            "sets.o.count: 18446744073709551615 is out of range: 0 to 1099511627775",
        ),
        (&set("count: 5"), "sets.o.size: is missing; a fill needs to know it"),
        (&set("size: 0B"), "sets.o.size: size 0B is out of range: 1B to 5GiB"),
        (&set("size: 6GiB"), "sets.o.size: size 6GiB is out of range: 1B to 5GiB"),
        (&one_job("{count: 1, size: 6GiB, part: 1GiB}", "work: {fill: o}"), "it is sound"),
        (&set("size: 1B, part: 0B"), "sets.o.part: part size 0B is out of range: 1B to 5GiB"),
        (
            &set("size: {uniform: 0B..5B}"),
            "sets.o.size.uniform: size 0B is out of range: 1B to 5GiB",
        ),
        (
            &set("size: {lognormal: {median: 1KiB, sigma: 9.0}}"),
            "sets.o.size.lognormal.sigma: 9 is out of range: above 0 to 8",
        ),
        (&set("size: {shares: [{1B: 0}]}"), "sets.o.size.shares[0]: must be at least 1"),
        (&set("size: {shares: [{1B: 2}, {1B: 3}]}"), "sets.o.size.shares: a size appears twice"),
        (&set("size: {list: []}"), "sets.o.size.list: 0 sizes are out of range: 1 to 1000000"),
        (&set("size: 1B, versions: 0"), "sets.o.versions: 0 is out of range: 1 to 10000"),
        (&set("keys: {prefix: a/../b}"), "sets.o.keys.prefix: must have no `.` or `..` component"),
        (
            &set("keys: {prefix: \"a\\nb\"}"),
            "sets.o.keys.prefix: must have no control characters, such as line breaks",
        ),
        (&set("keys: {buckets: 0}"), "sets.o.keys.buckets: 0 is out of range: 1 to 10000"),
        (
            &set("count: 65536, size: 1B, archive: zip"),
            "sets.o.count: 65536 is out of range: 1 to 65535 files",
        ),
        (
            &set("count: 2, size: 1B, archive: zip, versions: 2"),
            "sets.o.archive: an archive has neither parts nor versions",
        ),
        (
            &set("content: {shaped: {compress_ratio: 99.0}}"),
            "sets.o.content.shaped.compress_ratio: 99 is out of range: 1 to 50",
        ),
        (&set("content: {files: []}"), "sets.o.content.files: the files hold nothing to upload"),
        (&set("files: 0, size: 1MiB"), "sets.o.files: must be at least 1"),
        (&set("files: 1, size: 0B"), "sets.o.size: file size 0B is out of range: 1B to 512TiB"),
        (
            &set("files: 1, size: 1B, name: ../x"),
            "sets.o.name: `../x` leads out of the run's directory",
        ),
        (&set("paths: [], size: 1B"), "sets.o.paths: 0 paths are out of range: 1 to 1000000"),
        (&set("tree: {entries: 0}"), "sets.o.tree.entries: must be at least 1"),
        (
            &set("tree: {entries: 1, depth: 99, branching: 9}"),
            "sets.o.tree.depth: 99 levels of 9 directories each are too many",
        ),
        (&set("existing: {limit: 0}"), "sets.o.existing.limit: must be at least 1"),
    ]);
}

/// Jobs of one name have rows that nobody could tell apart, unless they share a row.
#[test]
fn results_are_told_apart() {
    let text = |jobs: &str| {
        format!(
            "sets: {{o: {{count: 9, size: 1B}}}}\nstages:\n- {{prepares: true, jobs: [{{work: \
             {{fill: o}}}}]}}\n- {{duration: 1s, jobs: [{jobs}]}}"
        )
    };
    let job = |fields: &str| format!("{{{fields}, work: {{objects: [{{get: o}}]}}}}");
    let said = "stages[1].jobs[2].name: `a` is the name of another job of the stage; jobs of one \
                name need one `group`";
    let three = |fields: [&str; 3]| text(&fields.map(job).join(", "));
    check(&[
        (&three(["name: a", "name: b", "name: a"]), said),
        (&three(["name: a", "name: b, group: 1", "name: a, group: 1"]), said),
        (&three(["name: a, group: 2", "name: b", "name: a, group: 1"]), said),
        (&three(["name: a, group: 1", "name: b", "name: a, group: 1"]), "it is sound"),
        (&three(["name: a, group: 1", "name: b, group: 1", "name: c"]), "it is sound"),
    ]);
    let repeated = three(["name: a", "name: b", "name: c"])
        + "\n- {duration: 1s, jobs: ["
        + &job("name: a")
        + "]}";
    assert_eq!(refused(&repeated), "it is sound", "each stage has jobs of its own");
}

#[test]
fn a_run_has_a_result() {
    let none = "stages: none of them has a result, as each only prepares or is a pause; a workload \
                needs one that measures";
    let sets = "sets: {o: {count: 9, size: 1B}}\nstages:\n";
    let fill = "{prepares: true, jobs: [{work: {fill: o}}]}";
    check(&[
        (&format!("{sets}- {fill}"), none),
        (&format!("{sets}- {fill}\n- {{duration: 1s}}"), none),
        (&format!("{sets}- {{repeat: {{times: 2, stages: [{fill}]}}}}"), none),
        (&format!("{sets}- {{jobs: [{{work: {{fill: o}}}}]}}"), "it is sound"),
    ]);
    let text = format!("{HEAD}{sets}- {fill}");
    let file = WorkloadFile::from_yaml("t.yaml", &text).unwrap();
    assert!(file.recorded().is_ok(), "what has run is still read");
}

#[test]
fn a_job_knows_its_agent() {
    let text = format!(
        "{HEAD}{}",
        one_job("{count: 9, size: 1B}", "agent: d2, work: {objects: [{get: o}]}")
    );
    let plan = WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().unwrap();
    assert_eq!(plan.stages[1].jobs[0].agent.as_deref(), Some("d2"));
    let judged = plan.file.judge().map_err(|refused| refused.to_string());
    assert_eq!(judged, Ok(()), "without a fleet it runs here, as a note of the run says");
}
