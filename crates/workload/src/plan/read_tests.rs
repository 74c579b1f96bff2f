//! What is refused while reading, with place, path and sentence.

use super::*;

const HEAD: &str = "schema: plimsoll.workload/2\nname: t\n";

/// Returns the sentence with which a file is refused.
pub(crate) fn refused(text: &str) -> String {
    WorkloadFile::from_yaml("t.yaml", &format!("{HEAD}{text}")).unwrap_err().to_string()
}

/// Compares all sentences before it complains, so that one run shows every difference.
#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, sentence) in cases {
        let found = refused(text);
        if found != *sentence {
            wrong.push(format!("{text}\n   found {found}\n  wanted {sentence}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_refusal_names_place_path_and_what_is_allowed() {
    check(&[
        ("stages: 5", "t.yaml:3:9: stages: must be a list, not the number 5"),
        (
            "stags: []",
            "t.yaml:3:8: stags: unknown field; allowed are schema, name, seed, verify, \
             keep_going, \
                       targets, sets, stages",
        ),
        ("seed: -1\nstages: []", "t.yaml:3:7: seed: -1 is out of range"),
        ("seed: x\nstages: []", "t.yaml:3:7: seed: must be a whole number, not the text `x`"),
        ("verify: 3\nstages: []", "t.yaml:3:9: verify: must be true or false, not the number 3"),
        ("name: u", "t.yaml:3:1: `name` appears twice"),
        (
            "stages:\n- jobs: [{work: {fil: o}}]",
            "t.yaml:4:23: stages[0].jobs[0].work.fil: `fil` is unknown; allowed are objects, \
             parts, append, archive, fanout, retention, blocks, names, fill, remove, \
             read_back, buckets, replay",
        ),
        (
            "stages:\n- jobs: [{workers: many, work: {fill: o}}]",
            "t.yaml:4:20: stages[0].jobs[0].workers: must be a whole number, not the text `many`",
        ),
        ("stages:\n- jobs: [{workers: 3}]", "t.yaml:4:10: stages[0].jobs[0].work: is missing"),
        (
            "stages:\n- duration: 5\n  jobs: []",
            "t.yaml:4:13: stages[0].duration: `5` is not a duration such as 5m or 1m30s",
        ),
        (
            "stages:\n- duration: 5 parsecs",
            "t.yaml:4:13: stages[0].duration: `5 parsecs` is not a duration such as 5m or 1m30s: \
             `5 parsecs` has no unit of ns, us, ms, s, m, h, d",
        ),
        (
            "stages:\n- jobs:\n  - work:\n      objects:\n      - {get: o}\n      - {got: o}",
            "t.yaml:8:9: stages[0].jobs[0].work.objects[1]: must have exactly one of the fields \
             get, put, post, stat, delete, list",
        ),
        (
            "stages:\n- jobs:\n  - work:\n      objects:\n      - {get: o, wait: 3}",
            "t.yaml:7:24: stages[0].jobs[0].work.objects[0].wait: unknown field; allowed are get, \
             weight, pick, range, version, buckets, keys, name",
        ),
    ]);
}

#[test]
fn a_refusal_of_sets_and_targets_names_place_and_path() {
    check(&[
        (
            "sets: {f: {files: 3, size: 1GiB, counts: 2}}\nstages: []",
            "t.yaml:3:42: sets.f.counts: unknown field; allowed are on, files, size, name, \
             workers, job",
        ),
        (
            "sets: {o: {count: 3, size: 5 bananas}}\nstages: []",
            "t.yaml:3:28: sets.o.size: `5 bananas` is not a size such as 64KiB: `5 bananas` has \
             no unit of B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB, k, m, g, t \
             (powers of 1024)",
        ),
        (
            "sets: {o: {size: {lognormal: {median: 1KiB}}}}\nstages: []",
            "t.yaml:3:30: sets.o.size.lognormal.sigma: is missing",
        ),
        (
            "sets: {o: {size: {shares: [{8MiB: x}]}}}\nstages: []",
            "t.yaml:3:28: sets.o.size.shares[0]: a weight is a whole number",
        ),
        (
            "targets: {s3: {}, files: {}}\nstages: []",
            "t.yaml:3:10: targets: each of several targets needs a name: {store: {s3: ...}, \
             scratch: {files: ...}}",
        ),
        (
            "targets: {a: {s3: {secret_key: x}}}\nstages: []",
            "t.yaml:3:32: targets.a.s3.secret_key: unknown field; allowed are hosts, bucket, \
             create_bucket, keep_bucket, region, tls, lookup, profile, signature, timeout, proxy, \
             storage_class, insecure",
        ),
        (
            "stages:\n- jobs: [{pacing: {open: fast}, work: {fill: o}}]",
            "t.yaml:4:26: stages[0].jobs[0].pacing.open: `fast` is not a rate such as 1000/s or \
             100/s..2000/s over 2m: `fast` is not a rate such as 1000/s",
        ),
    ]);
}

/// What is no workload as a text says so in our own words.
#[test]
fn a_text_that_cannot_be_read_is_refused_in_one_sentence() {
    let deep = format!("sets: {}{}\nstages: []", "[".repeat(70), "]".repeat(70));
    let deeper = format!("sets: {}{}\nstages: []", "[".repeat(5_000), "]".repeat(5_000));
    let many = format!("sets: [{}]", "1,".repeat(300_000));
    let ten = |name: char| format!("[{}]", vec![format!("*{name}"); 10].join(", "));
    let mut bomb = "a: &a [x]\n".to_owned();
    for (name, before) in ('b'..='k').zip('a'..) {
        bomb += &format!("{name}: &{name} {}\n", ten(before));
    }
    let too_much = "is too large, counting what aliases expand to";
    let too_deep = "maps and lists are nested too deeply";
    for (text, place, sentence) in [
        (
            "stages: []\n---\nname: u",
            "5:1",
            "a second document starts here, after a `---`; a file holds one",
        ),
        ("sets: {o: {count: .nan}}", "3:19", "`.nan` is not a finite number"),
        ("sets: {o: {count: -.inf}}", "3:19", "`-.inf` is not a finite number"),
        ("sets: {o: *nobody}", "3:11", "the alias has no anchor before it"),
        ("sets: {o: 'a\0b'}", "3:13", "the control character U+0000 is not allowed in text"),
        ("sets: {\u{e9}: \u{7}}", "3:11", "the control character U+0007 is not allowed in text"),
        (&deep, "", too_deep),
        (&deeper, "", too_deep),
        (&many, "", too_much),
        (&bomb, "", too_much),
    ] {
        let found = refused(text);
        let found = found.strip_prefix("t.yaml:").unwrap();
        match place {
            "" => {
                let (place, rest) = found.split_once(": ").unwrap();
                assert!(place.contains(':') && rest == sentence, "{found}");
            }
            place => assert_eq!(found, format!("{place}: {sentence}")),
        }
    }
}

#[test]
fn another_schema_is_refused() {
    let other = WorkloadFile::from_yaml("t.yaml", "schema: plimsoll.workload/9").unwrap_err();
    let sentence = "t.yaml:1:9: schema: `plimsoll.workload/9` is unknown; this version reads \
                    plimsoll.workload/2";
    assert_eq!(other.to_string(), sentence);
    for deleted in ["plimsoll.workload/1", "plimsoll.files/1"] {
        let text = format!("schema: {deleted}\nconcurrency: 2");
        let error = WorkloadFile::from_yaml("t.yaml", &text).unwrap_err();
        let sentence = format!(
            "t.yaml:1:9: schema: `{deleted}` is no longer read; write the file in \
             plimsoll.workload/2"
        );
        assert_eq!(error.to_string(), sentence);
    }
    let none = WorkloadFile::from_yaml("t.yaml", "stages: []").unwrap_err();
    let sentence = "t.yaml:1:1: schema: is missing; write `schema: plimsoll.workload/2`";
    assert_eq!(none.to_string(), sentence);
}
