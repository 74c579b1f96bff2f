//! Lines as they are run.

use std::time::Duration;

use plimsoll_model::OpKind;

use super::super::run::WarpSignature;
use super::*;

fn run(line: &str) -> Result<WarpRun, LineError> {
    let line = read(line).unwrap();
    let WarpCommand::Benchmark(benchmark) = line.command else { panic!("it is no benchmark") };
    line.run(benchmark)
}

#[test]
fn a_line_comes_to_a_workload_and_to_what_its_run_needs() {
    let run = run("get --host=h:1 --access-key hush-a --secret-key hush-s --bucket b --tag a=b \
                   --tag c=d --signature s3v2 --objects 50 --obj.size 4KiB --range-size 1KiB \
                   --concurrent 2 --duration 3s --syncstart 14:30 --keep-data --benchdata dir \
                   --analyze.v --analyze.op get --analyze.host h:1 --analyze.dur 5s")
    .unwrap();
    let file = run.workload.workload(7).unwrap();
    let plan = file.check().unwrap();
    let stages: Vec<_> = plan
        .stages
        .iter()
        .map(|stage| (&*stage.name, stage.jobs[0].workers.get(), stage.duration))
        .collect();
    assert_eq!(stages, [("prepare", 2, None), ("measure", 2, Some(Duration::from_secs(3)))]);
    assert!(file.to_yaml().contains("count: 50"), "{}", file.to_yaml());
    let store = &run.store;
    assert_eq!((store.hosts.as_deref(), &*store.bucket), (Some("h:1"), "b"));
    assert_eq!(store.secret_key.as_deref(), Some("hush-s"));
    assert_eq!(store.signature, WarpSignature::V2);
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(store.tags, [pair("a", "b"), pair("c", "d")]);
    assert_eq!((run.syncstart.as_deref(), run.keeps_data), (Some("14:30"), true));
    assert_eq!(run.run_directory.as_deref(), Some("dir"));
    assert!(!run.consents && !run.json);
    let question = run.shown.question;
    assert_eq!((question.op, question.verbose), (Some(OpKind::Get), true));
    assert_eq!(question.segment, Some(Duration::from_secs(5)));
    assert_eq!(run.shown.host.as_deref(), Some("h:1"));
    let shown = format!("{run:?} {store:?}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn what_cannot_be_run_is_refused_by_its_flag() {
    let said = |line: &str| match run(line) {
        Err(error) => error.to_string(),
        Ok(run) => run.workload.workload(1).unwrap_err().to_string(),
    };
    for (line, start) in [
        ("get --concurrent 99999999999", "`--concurrent=99999999999`: number too large"),
        ("get --autoterm --autoterm.pct 101", "`--autoterm.pct=101`: it is not between 0 and 100"),
        ("get --analyze.op gets", "`--analyze.op=gets`: choose one of put, "),
        (
            "put --part.size 8MiB --disable-multipart",
            "`--disable-multipart` does not go together with `--part.size`",
        ),
        ("get --objects 19", "--objects: set `objects` has 19 members, too few for 20 workers"),
        ("get --obj.randsize --obj.size 9,5", "--obj.size: "),
        ("multipart --parts 0", "--parts: "),
        ("multipart --part.size 1MiB", "--part.size: "),
        ("mixed --put-distrib 5", "--delete-distrib: "),
    ] {
        let said = said(line);
        assert!(said.starts_with(start), "{line}: {said}");
    }
}

#[test]
fn what_is_said_of_4m_is_so() {
    let bytes = |size: &str| {
        let run = run(&format!("multipart-put --host=h --part.size={size}")).unwrap();
        run.workload.part_size
    };
    assert_eq!((bytes("4M"), bytes("4MiB")), (Some(4_000_000), Some(4_194_304)));
    assert_eq!(SIZES, "4M is 4,000,000 bytes, as in warp; 4MiB is 4,194,304");
}
