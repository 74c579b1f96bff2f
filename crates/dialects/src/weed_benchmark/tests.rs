//! Command lines against the program's own flags and the document.

use plimsoll_workload::plan::WorkloadFile;
use proptest::prelude::*;

use super::flags::FLAGS;
use super::layout::Stage;
use super::*;
use crate::command_line::Kind;

fn no_file(_: &str) -> Result<String, String> {
    Err("there are no files here".to_owned())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn line(text: &str) -> Result<Benchmark, LineError> {
    from_args(&words(text), &no_file)
}

fn with_options(text: &str, options: &str) -> Result<Benchmark, LineError> {
    from_args(&words(text), &|path| match path {
        "f" => Ok(options.to_owned()),
        _ => Err(format!("cannot read {path}")),
    })
}

fn refused(text: &str) -> String {
    line(text).unwrap_err().to_string()
}

fn notes(of: &Benchmark) -> Vec<String> {
    of.notes(&Asked::default()).iter().map(ToString::to_string).collect()
}

/// The flags that the program itself lists: name, type, default.
const OWN_FLAGS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/weed-benchmark/weed-flags.txt"
));

fn own_flags() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    OWN_FLAGS.lines().map(|line| {
        let [name, kind, default] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        (name, kind, default)
    })
}

#[test]
fn the_flags_and_their_defaults_are_those_that_the_program_lists() {
    let plain = line("").unwrap();
    for (name, kind, default) in own_flags() {
        let flag = FLAGS.iter().find(|flag| flag.name == name);
        assert_eq!(flag.unwrap().kind == Kind::Switch, kind == "bool", "{name}");
        let ours = match name {
            "c" => plain.concurrency.to_string(),
            "n" => plain.files.to_string(),
            "size" => plain.size_bytes.to_string(),
            "master" => plain.masters.join(","),
            "collection" => plain.collection.clone(),
            "replication" => plain.replication.clone(),
            "list" => format!("/tmp/{LIST_NAME}"),
            _ => "-".to_owned(),
        };
        assert_eq!(ours, default, "-{name}");
    }
    assert_eq!(own_flags().count() + ["read", "server", "write"].len(), FLAGS.len());
    let expected = Benchmark {
        masters: vec!["localhost:9333".to_owned()],
        concurrency: 16,
        files: 1_048_576,
        size_bytes: 1_024,
        list: None,
        scope: Scope::Both,
        is_sequential: false,
        delete_percent: 0,
        collection: "benchmark".to_owned(),
        replication: "000".to_owned(),
        disk: String::new(),
        fsync: false,
        cpus_max: None,
        passed_over: Vec::new(),
    };
    assert_eq!(plain, expected);
}

#[test]
fn every_flag_is_taken_in_every_form() {
    let value = |name: &str, kind: &str| match (name, kind) {
        ("master", _) => "m1:9333,[::1]:1.2",
        ("replication", _) => "012",
        ("options", _) => "f",
        ("writeOnly" | "debug", _) => "false",
        (_, "bool") => "true",
        _ => "7",
    };
    for (dash, between) in [("-", " "), ("-", "="), ("--", " "), ("--", "=")] {
        let of_flag = |(name, kind, _)| match (value(name, kind), between) {
            // A switch takes no word behind it.
            ("true", " ") => format!("{dash}{name}"),
            ("false", " ") => format!("{dash}{name}=false"),
            (value, between) => format!("{dash}{name}{between}{value}"),
        };
        let all: Vec<String> = own_flags().map(of_flag).collect();
        let expected = Benchmark {
            masters: vec!["m1:9333".to_owned(), "[::1]:1.2".to_owned()],
            concurrency: 7,
            files: 7,
            size_bytes: 7,
            list: Some("7".to_owned()),
            scope: Scope::Read,
            is_sequential: true,
            delete_percent: 7,
            collection: "7".to_owned(),
            replication: "012".to_owned(),
            disk: "7".to_owned(),
            fsync: true,
            cpus_max: Some(7),
            passed_over: vec![Note::new(
                "-cpuprofile",
                "no profile of this program is written; its processor time is in the record",
            )],
        };
        assert_eq!(with_options(&all.join(" "), "").unwrap(), expected);
    }
    // As in Go, the last one wins, and a value may begin with a dash.
    assert_eq!(line("-c 3 -c=5").unwrap().concurrency, 5);
    assert_eq!(line("-collection -x").unwrap().collection, "-x");
    assert_eq!(line("-collection=").unwrap().collection, "");
}

#[test]
fn older_names_mean_the_same() {
    assert_eq!(line("-server m:1").unwrap().masters, ["m:1"]);
    assert_eq!(line("-server m:1 -master n:2").unwrap().masters, ["n:2"]);
    assert_eq!(line("-write=false").unwrap().scope, Scope::Read);
    assert_eq!(line("-read=false").unwrap().scope, Scope::Write);
    assert_eq!(line("-read=true -write").unwrap().scope, Scope::Both);
    assert_eq!(line("-readOnly=false -writeOnly").unwrap().scope, Scope::Write);
    for both in ["-readOnly -writeOnly", "-write=false -read=false", "-readOnly -read=0"] {
        assert_eq!(refused(both), "-readOnly and -writeOnly are mutually exclusive");
    }
}

#[test]
fn flags_of_weed_itself_stand_before_the_command_and_change_nothing() {
    for text in ["weed -logdir= -v 2 benchmark -n 5", "-v=2 --logdir=/l benchmark -n=5"] {
        let read = line(text).unwrap();
        assert_eq!((read.files, read.passed_over.len()), (5, 2), "{text}");
    }
    assert_eq!(line("benchmark -n 5").unwrap(), line("-n 5").unwrap());
    assert_eq!(line("-v=2 -n 5 -logtostderr").unwrap().passed_over.len(), 2);
    assert!(notes(&line("-config_dir /c -n 5").unwrap())[0].contains("--security names"));
    // There too, a file of options before the command is not the benchmark's.
    let read = with_options("-options f benchmark -c 2", "n=7").unwrap();
    assert_eq!((read.files, read.concurrency), (1_048_576, 2));
    assert_eq!(with_options("-options f -c 2", "n=7").unwrap().files, 7);
    let said = refused("benchmark -v=1 -n 5");
    assert_eq!(said, "`-v=1` is a flag of weed itself, which stands before the word benchmark");
    assert_eq!(refused("upload -dir x"), "`weed upload` is not taken; `weed benchmark` is");
    assert!(refused("weed shell").contains("`weed shell` is not taken"));
    assert!(refused("-v 1 shell").contains("`shell` is no flag"));
}

#[test]
fn files_of_options_are_read_as_weed_reads_them() {
    let text = "# mine\n\nn=30\r\n c 4 \n-size=10\nfsync\nc=9\nfiler.port=1\n--n=5\nbogus\n";
    let read = with_options("-size 20 -options=f", text).unwrap();
    assert_eq!((read.files, read.concurrency, read.size_bytes), (30, 4, 20));
    assert!(read.fsync);
    let expected = "-options: no flags of weed benchmark, passed over as there: -n, bogus, \
                    filer.port";
    assert_eq!(notes(&read), [expected]);
    for (text, said) in [
        ("n=x", "`-n=x`: it is a whole number in decimal digits"),
        ("c = 4", "`-c== 4`: it is a whole number in decimal digits"),
        ("fsync=maybe", "`-fsync=maybe`: it is a switch: true or false"),
        ("n=1\nsize", "`-options=f`: `size` has no value behind it"),
    ] {
        assert_eq!(with_options("-options f", text).unwrap_err().to_string(), said);
    }
    let said = with_options("-options nowhere", "").unwrap_err().to_string();
    assert_eq!(said, "`-options=nowhere`: cannot read nowhere");
}

#[test]
fn what_makes_no_sense_is_refused_by_its_flag() {
    for (text, part) in [
        ("-c 0", "`-c=0`: it is 1 at least"),
        ("-n 0", "`-n=0`: it is 1 at least"),
        ("-n -1", "`-n=-1`: it is a whole number"),
        ("-n 0x10", "`-n=0x10`: it is a whole number"),
        ("-n 010", "octal"),
        ("-n 99999999999999999999", "at most"),
        ("-c 2147483648", "it is 2147483647 at most"),
        ("-size 5G", "`-size=5G`: it is a whole number"),
        ("-size 5368709120", "it is 5368709057 at most"),
        ("-deletePercent 101", "`-deletePercent=101`: it is 100 at most"),
        ("-replication 1", "`-replication=1`: it is three digits"),
        ("-replication 0x1", "three digits"),
        ("-list=", "`-list=`: it is a path"),
        ("-master localhost", "`-master=localhost`: each is a host with its port"),
        ("-server :9333", "`-server=:9333`: each is a host"),
        ("-master m:1,,n:2", "each is a host"),
        ("-master m:1.", "each is a host"),
        ("-master http://m/", "each is a host"),
        ("-master dnssrv+weed", "dnssrv+"),
        ("-fsync=yes", "`-fsync=yes`: it is a switch: true or false"),
        ("-readOnly=2", "`-readOnly=2`: it is a switch: true or false"),
        ("-c", "`-c`: it has no value"),
        ("-c 2 more -n 5", "`more` is no flag"),
        ("-fsync true", "`true` is no flag"),
        ("-c 2 -- -n 5", "`--` is no flag"),
        ("-c 2 - -n 5", "`-` is no flag"),
        ("-foo 1", "`-foo` is no flag of weed benchmark"),
        ("-readonly", "`-readonly` is no flag of weed benchmark; did you mean `-readOnly`?"),
        ("-deletePercnt=5", "did you mean `-deletePercent`?"),
        ("--threads=5", "`--threads` is no flag of weed benchmark; did you mean `-c`?"),
        ("-sequentialRead", "did you mean `-readSequentially`?"),
    ] {
        let said = refused(text);
        assert!(said.contains(part), "`{text}`: {said}");
    }
}

proptest! {
    #[test]
    fn no_words_make_it_panic(
        words in proptest::collection::vec(
            prop_oneof![
                "-{0,3}[a-zA-Z_]{0,12}(=.{0,6})?",
                proptest::sample::select(
                    FLAGS.iter().map(|flag| format!("-{}", flag.name)).collect::<Vec<_>>()
                ),
                "[0-9]{0,25}",
                Just("benchmark".to_owned()),
                any::<String>(),
            ],
            0..8,
        ),
        options in any::<String>(),
        seed in any::<Option<u64>>(),
        count in any::<Option<u64>>(),
    ) {
        if let Ok(asked) = from_args(&words, &|_| Ok(options.clone())) {
            let listed = Listed { path: "l".to_owned(), count };
            let own = Asked { seed, is_distinct: count.is_none(), listed, security: None };
            let file = asked.workload(&own);
            prop_assert_eq!(file.stages.len(), asked.stages(&own).len());
            asked.notes(&own);
        }
        let _ = list::read(&options);
    }
}

#[test]
fn help_tells_every_flag_with_its_default() {
    for text in ["-h", "benchmark -h", "weed benchmark -c 4 --help", "-help -c"] {
        assert_eq!(line(text).unwrap_err(), LineError::Help, "{text}");
    }
    let help = help();
    let flag = |name: &str| format!("-{name}");
    for (name, _, default) in own_flags() {
        let mut lines = help.lines().skip_while(|line| line.split(' ').nth(2) != Some(&flag(name)));
        let says = lines.nth(1).unwrap();
        let default = default.strip_prefix("/tmp/").unwrap_or(default);
        let forms = [format!("(default {default}"), format!("(default {default:?})")];
        assert!(default == "-" || forms.iter().any(|form| says.contains(form)), "{name}: {says}");
    }
    let is_told = |flag: &str| help.lines().any(|line| line.split(' ').nth(2) == Some(flag));
    assert!(FLAGS.iter().all(|of| is_told(&flag(of.name))));
}

#[test]
fn corrections_are_sentences_without_a_full_stop() {
    assert!(CORRECTIONS.len() >= 20);
    CORRECTIONS.iter().for_each(Correction::assert_is_sentence);
}

#[test]
fn the_document_has_every_correction() {
    let document = include_str!("../../../../docs/coming-from-weed-benchmark.md");
    for Correction { of, there, here } in CORRECTIONS {
        assert!(document.contains(&format!("\n| {of} | {there} | {here} |")), "{of}: {there}");
    }
}

/// Returns the plan, and each stage in a few words.
fn stages(asked: &Benchmark, own: &Asked) -> (String, Vec<String>) {
    let text = asked.workload(own).to_yaml();
    let plan = WorkloadFile::from_yaml("lowered", &text).unwrap().check().unwrap();
    let stage = |stage: &plimsoll_workload::plan::Stage| {
        let job = &stage.jobs[0];
        let sets = job.work.sets();
        let sets: Vec<&str> = sets.iter().map(|set| &*plan.set(*set).name).collect();
        let ops = stage.ops_max.map_or("all".to_owned(), |ops| ops.to_string());
        format!("{} {} {} {ops}", stage.name, sets.join("+"), job.workers)
    };
    let stages = plan.stages.iter().map(stage).collect();
    (text, stages)
}

#[test]
fn a_run_writes_and_reads_as_many_files_as_are_asked_for() {
    let own = Asked { seed: Some(5), ..Asked::default() };
    let (text, of) = stages(&line("-n 1000 -c 8 -master m1:9,m2:9.10 -fsync").unwrap(), &own);
    assert_eq!(of, ["write files 8 1000", "read files 8 1000"]);
    for part in [
        "seed: 5",
        "master: ['m1:9', 'm2:9.10']",
        "collection: benchmark",
        "replication: '000'",
        "fsync: true",
        "uniform: 1KiB..1087B",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("disk") && !text.contains("pick"), "{text}");
    let (text, of) = stages(&line("-writeOnly -size 0 -disk ssd -collection=").unwrap(), &own);
    assert_eq!(of, ["write files 16 1048576"]);
    assert!(text.contains("uniform: 1B..63B") && text.contains("disk: ssd"), "{text}");
    assert!(!text.contains("collection"), "{text}");
    assert!(!stages(&line("-disk hdd").unwrap(), &own).0.contains("disk"));
}

#[test]
fn what_is_deleted_is_a_set_and_a_stage_of_its_own() {
    let own = Asked::default();
    let asked = line("-n 1000 -deletePercent 30").unwrap();
    let (text, of) = stages(&asked, &own);
    let expected = ["write files+removed 16 1000", "delete removed 16 all", "read files 16 1000"];
    assert_eq!(of, expected);
    assert!(text.contains("weight: 70") && text.contains("weight: 30"), "{text}");
    assert_eq!(text.matches("remove_after: 1s").count(), 1, "{text}");
    assert_eq!(asked.ops_count(Stage::Delete, &own), 300);
    assert!(notes(&asked)[0].starts_with("-deletePercent: "));

    let asked = line("-n 1000 -deletePercent 100").unwrap();
    let (text, of) = stages(&asked, &own);
    assert_eq!(of, ["write removed 16 1000", "delete removed 16 all"]);
    assert!(!text.contains("files"), "{text}");
    assert!(notes(&asked)[1].contains("nothing is left to be read"));
}

#[test]
fn each_file_is_read_once_where_that_is_asked_for() {
    let plain = Asked::default();
    let asked = line("-n 1000 -c 4 -readSequentially -deletePercent 10").unwrap();
    let (text, of) = stages(&asked, &plain);
    assert_eq!(of[2], "read files 4 all");
    assert!(text.contains("ops: 900") && text.contains("pick: sequential"), "{text}");
    let distinct = Asked { is_distinct: true, ..Asked::default() };
    let (text, _) = stages(&line("-n 1000").unwrap(), &distinct);
    // It is so in the title too.
    let stages = line("").unwrap().stages(&distinct);
    assert_eq!(stages, [Stage::Write, Stage::Read { is_sequential: true }]);
    assert!(text.contains("ops: 1000") && text.contains("pick: sequential"), "{text}");
}

#[test]
fn the_list_is_read_where_nothing_is_written() {
    let listed = Listed { path: "l.txt".to_owned(), count: Some(50) };
    let own = Asked { listed, ..Asked::default() };
    let (text, of) = stages(&line("-readOnly -n 1000").unwrap(), &own);
    assert_eq!(of, ["read files 16 1000"]);
    assert!(text.contains("list: l.txt") && !text.contains("size"), "{text}");
    let sequential = line("-readOnly -n 1000 -readSequentially").unwrap();
    let (text, of) = stages(&sequential, &own);
    assert_eq!(of, ["read files 16 all"]);
    assert!(text.contains("ops: 50"), "{text}");
    let distinct = Asked { is_distinct: true, ..own };
    let asked = line("-readOnly -n 1000").unwrap();
    assert!(stages(&asked, &distinct).0.contains("ops: 50"));
    let noted = asked.notes(&distinct);
    assert_eq!(noted[0].to_string(), "--distinct: there are 50 files, so 50 are read and not -n");
    assert!(stages(&line("-readOnly -n 10").unwrap(), &distinct).0.contains("ops: 10"));
}

#[test]
fn what_is_said_of_4m_is_so() {
    assert!(refused("-size=4M").contains("-size"));
    assert_eq!(line("-size=4096").unwrap().size_bytes, 4_096);
    assert!(SIZES.starts_with("-size counts bytes"));
}
