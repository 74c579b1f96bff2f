//! The files of `warp run`.

use super::*;

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testdata/warp-run/",
            $name,
            ".yml"
        ))
    };
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_file_with_most_keys() {
    let line = from_yaml(file!("get"), &[], &NOTHING).unwrap();
    assert_eq!(line.command, WarpCommand::Benchmark(WarpBenchmark::Get));
    let expected = [
        "--no-color",
        "--serverprof=cpu,mem",
        "--benchdata=nightly-get",
        "--region=eu-central-1",
        "--access-key=minio",
        "--secret-key=minio-secret",
        "--host=storage{1...4}:9000,storage9:9000",
        "--tls",
        "--bucket=nightly",
        "--duration=2m",
        "--concurrent=16",
        "--objects=5000",
        "--versions=1",
        "--obj.size=4MiB",
        "--part.size=16MiB",
        "--autoterm",
        "--autoterm.dur=10s",
        "--autoterm.pct=5",
        "--host-select=roundrobin",
        "--disable-http-keepalive",
        "--proxy=env",
    ];
    assert_eq!(joined(&line.flags), expected);
    let report = ["--analyze.v", "--analyze.op=GET", "--analyze.dur=5s", "--analyze.skip=1s"];
    assert_eq!(joined(&line.analysis), report);
    let noted: Vec<&str> = line.notes.iter().map(|note| &*note.flag).collect();
    let expected = [
        "line 9: `warp.server-profile`",
        "line 11: `warp.bench-data`",
        "line 21: `warp.remote.bucket`",
        "line 33: `warp.params.autoterm.enabled`",
    ];
    assert_eq!(noted, expected);
}

#[test]
fn every_benchmark_has_a_file() {
    use WarpBenchmark::{
        Append, Delete, Fanout, List, Mixed, Multipart, MultipartPut, Retention, Snowball, Stat,
        Versioned, Zip,
    };
    for (text, benchmark, expected) in [
        (file!("delete"), Delete, &["--objects=10000", "--batch=50", "--obj.size=1KiB"][..]),
        (
            file!("list"),
            List,
            &["--objects=3000", "--max-keys=1000", "--obj.size=1000", "--versions=2"],
        ),
        (
            file!("stat"),
            Stat,
            &[
                "--objects=3000",
                "--rps-limit=1500/s",
                "--obj.size=1KB",
                "--versions=1",
                "--keep-data",
            ],
        ),
        (
            file!("mixed"),
            Mixed,
            &[
                "--objects=1000",
                "--get-distrib=60",
                "--stat-distrib=20",
                "--put-distrib=12",
                "--delete-distrib=8",
                "--obj.size=128KiB,1MiB",
                "--obj.randsize",
            ],
        ),
        (
            file!("versioned"),
            Versioned,
            &[
                "--objects=250",
                "--obj.size=1MiB",
                "--get-distrib=45",
                "--stat-distrib=30",
                "--put-distrib=15",
                "--delete-distrib=10",
            ],
        ),
        (file!("retention"), Retention, &["--objects=2500", "--obj.size=1KiB", "--versions=5"]),
        (file!("multipart"), Multipart, &["--parts=50", "--part.size=5MiB"]),
        (
            file!("multipart-put"),
            MultipartPut,
            &["--part.concurrent=10", "--parts=20", "--part.size=5MiB"],
        ),
        (file!("zip"), Zip, &["--files=2000", "--obj.size=10KiB"]),
        (
            file!("snowball"),
            Snowball,
            &["--tls", "--compress", "--objs.per=25", "--obj.size=64KiB"],
        ),
        (file!("fanout"), Fanout, &["--tls", "--copies=20", "--obj.size=1MiB"]),
        (file!("append"), Append, &["--tls", "--duration=30s", "--obj.size=1MiB"]),
    ] {
        let line = from_yaml(text, &[], &NOTHING).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(line.command, WarpCommand::Benchmark(benchmark));
        let mut flags = joined(&line.flags);
        flags.retain(|flag| flag != "--host=s3:9000" && flag != "--proxy=env");
        assert_eq!(flags, expected, "{benchmark:?}");
    }
}

#[test]
fn fields_are_filled_in() {
    let all = variables(&[
        ("Host", "a:1,b:2"),
        ("Key", "AK"),
        ("Secret", "S=K"),
        ("Seconds", "5"),
        ("Seconds", "15"),
        ("Workers", "8"),
        ("Other", "x"),
    ]);
    let line = from_yaml(file!("put"), &all, &NOTHING).unwrap();
    let expected = [
        "--host=a:1,b:2",
        "--access-key=AK",
        "--secret-key=S=K",
        "--duration=15s",
        "--concurrent=8",
        "--obj.size=1KiB:3,64KiB:1",
        "--disable-sha256-payload",
        "--checksum=CRC32C",
        "--proxy=env",
    ];
    assert_eq!(joined(&line.flags), expected);
    assert_eq!(notes(&line), ["`--var Other`: the file has no such field"]);
    let error = from_yaml(file!("put"), &all[..1], &NOTHING).unwrap_err().to_string();
    assert_eq!(error, "line 4: `{{.Key}}`: no value is given; add `--var Key=VALUE`");
    for (action, expected) in [
        ("{{if .A}}", "`{{if .A}}` is not taken: `if` is more than a field"),
        ("{{ range .A }}", "`{{range .A}}` is not taken: `range` is more than a field"),
        ("{{.A.B}}", "`{{.A.B}}` is not taken: `.A.B` is more than a field"),
        ("{{.A | printf}}", "`{{.A | printf}}` is not taken: `.A` is more than a field"),
        ("{{- .A}}", "`{{- .A}}` is not taken: `-` is more than a field"),
        ("{{.A", "`{{` is not closed by `}}`"),
    ] {
        let text = format!("warp:\n  api: v1\n  benchmark: get\n  region: {action}\n");
        let error = from_yaml(&text, &variables(&[("A", "x")]), &NOTHING).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 4: {expected}")), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let head = "warp:\n  api: v1\n  benchmark: get\n";
    for (rest, expected) in [
        (
            "  params:\n    objets: 5\n",
            "line 5: `warp.params.objets` is no flag of `warp get`; did you mean `--objects`?",
        ),
        (
            "  params:\n    objets: 5\n",
            "line 5: `warp.params.objets` is no flag of `warp get`; did you mean `--objects`?",
        ),
        (
            "  params:\n    batch: 5\n",
            "line 5: `warp.params.batch` is no flag of `warp get`, but of `delete`",
        ),
        (
            "  parms:\n    objects: 5\n",
            "line 4: `warp.parms`: no section of `warp run`; did you mean `params`?",
        ),
        (
            "  params:\n    objects: many\n",
            "line 5: `warp.params.objects`: it is a whole number from 0",
        ),
        (
            "  params:\n    objects: -5\n",
            "line 5: `warp.params.objects`: it is a whole number from 0",
        ),
        (
            "  params:\n    objects: [5]\n",
            "line 5: `warp.params.objects`: it is a whole number from 0",
        ),
        (
            "  params:\n    duration: 5\n",
            "line 5: `warp.params.duration`: it is a duration such as `5m`",
        ),
        (
            "  remote:\n    tls: yes\n",
            "line 5: `warp.remote.tls`: it is `true` or `false`, without quotes",
        ),
        (
            "  remote:\n    tls: 'true'\n",
            "line 5: `warp.remote.tls`: it is `true` or `false`, without quotes",
        ),
        (
            "  remote:\n    secret-key: 12345\n",
            "line 5: `warp.remote.secret-key`: it is not a string; put it in quotes",
        ),
        (
            "  remote:\n    region: [a, b]\n",
            "line 5: `warp.remote.region`: it is one value, no list",
        ),
        (
            "  remote:\n    host: [a, 5]\n",
            "line 5: `warp.remote.host`: an entry is not a string; put it in quotes",
        ),
        (
            "  io:\n    md5: true\n  params:\n    md5: false\n",
            "line 7: `warp.params.md5`: the same as line 5: `warp.io.md5`; one of them must go",
        ),
        (
            "  params:\n    noclear: true\n    no-clear: true\n",
            "line 6: `warp.params.no-clear`: the same as line 5: `warp.params.noclear`",
        ),
        (
            "  advanced:\n    stress: true\n",
            "line 5: `warp.advanced.stress` is not taken: with it warp saves",
        ),
        ("  warp-client: [a, b]\n", "line 4: `warp.warp-client`: name the store with `--host`"),
        (
            "  params:\n    tag: a=b\n",
            "line 5: `warp.params.tag`: flags that can be given several times have no key",
        ),
        ("other: 5\n", "line 4: `other`: no key of `warp run`; the only one here is `warp`"),
    ] {
        let result = from_yaml(&format!("{head}{rest}"), &[], &NOTHING);
        let error = result.map(|line| line.explain()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{rest}{error}");
    }
    let twice = format!("{head}  region: a\n  region: b\n");
    let error = from_yaml(&twice, &[], &NOTHING).unwrap_err().to_string();
    assert!(error.starts_with("line 5: ") && error.contains("region"), "{error}");
}

#[test]
fn the_head_of_a_file_must_fit() {
    for (text, expected) in [
        ("", "the file has no section `warp`"),
        ("warp:\n", "the file has no section `warp`"),
        ("get:\n  api: v1\n", "line 1: `get`: no key of `warp run`; the only one here is `warp`"),
        ("warp:\n  benchmark: get\n", "`warp.api` is missing"),
        ("warp:\n  api: v2\n  benchmark: get\n", "`warp.api` is `v2`; only `v1` is known"),
        ("warp:\n  api: 1\n  benchmark: get\n", "line 2: `warp.api`: it is not a string"),
        ("warp:\n  api: v1\n", "`warp.benchmark` is missing"),
        (
            "warp:\n  api: v1\n  benchmark: gett\n",
            "`gett` is no command of warp; did you mean `get`?",
        ),
        ("warp:\n  api: v1\n  benchmark: merge\n", "`warp.benchmark: merge`: it is no benchmark"),
        ("warp:\n  api: v1\n  benchmark: iceberg\n", "`iceberg` is not taken: it measures"),
    ] {
        let error = from_yaml(text, &[], &NOTHING).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}{error}");
    }
    let torn = from_yaml("warp:\n  api: [v1\n", &[], &NOTHING).unwrap_err().to_string();
    assert!(torn.starts_with("line "), "{torn}");
}

#[test]
fn the_environment_counts_for_files_too() {
    let text = "warp:\n  api: v1\n  benchmark: get\n  remote: {access-key: A}\n";
    let set = |name: &str| match name {
        "WARP_ACCESS_KEY" => Some("other".to_owned()),
        "WARP_HOST" => Some("h:1".to_owned()),
        _ => None,
    };
    let reading = WarpReading { variable: &set, ..NOTHING };
    let line = from_yaml(text, &[], &reading).unwrap();
    assert_eq!(joined(&line.flags), ["--access-key=A", "--host=h:1", "--proxy=env"]);
}

/// Writes a key with nothing behind it, in the section that its name begins with, if any.
fn empty_key(name: &str) -> String {
    match name.split_once('.') {
        Some((section, key)) => format!("    {section}:\n      {key}:\n"),
        None => format!("    {name}:\n"),
    }
}

#[test]
fn every_key_may_be_empty_whatever_the_benchmark() {
    let flags = crate::warp::flags::FLAGS.iter().map(|flag| flag.name);
    // Names with a point in them have a key of their own, if any.
    let flags = flags.filter(|name| !name.contains('.') || name.starts_with("analyze."));
    let renamed = crate::warp::yaml::RENAMED.iter().map(|(key, _)| *key);
    let keys: Vec<&str> = flags.chain(renamed).collect();
    assert!(keys.contains(&"obj.part-size") && keys.len() > 90, "{}", keys.len());
    for benchmark in WarpBenchmark::ALL {
        let head = format!("warp:\n  api: v1\n  benchmark: {}\n", benchmark.name());
        let bare = from_yaml(&head, &[], &NOTHING).unwrap();
        for key in &keys {
            for empty in ["", " ~", " null"] {
                let key = empty_key(key).replace(":\n", &format!(":{empty}\n"));
                let key = key.replacen(&format!(":{empty}\n      "), ":\n      ", 1);
                let text = format!("{head}  params:\n{key}");
                let line = from_yaml(&text, &[], &NOTHING).unwrap_or_else(|e| panic!("{text}{e}"));
                let told = |line: &WarpLine| (joined(&line.flags), joined(&line.analysis));
                assert_eq!((told(&line), notes(&line)), (told(&bare), notes(&bare)), "{text}");
            }
        }
    }
}

#[test]
fn empty_sections_and_keys_of_nobody_change_nothing() {
    let head = "warp:\n  api: v1\n  benchmark: get\n";
    let bare = from_yaml(head, &[], &NOTHING).unwrap();
    let text = format!("{head}  io:\n  params:\n    obj:\n    autoterm:\n  analyze:\nothers:\n");
    assert_eq!(from_yaml(&text, &[], &NOTHING).unwrap(), bare);
    let line = from_yaml(&format!("{head}  params:\n    concurrrent:\n"), &[], &NOTHING).unwrap();
    let told = "line 5: `warp.params.concurrrent`: no key of `warp run`; it is empty, so nothing \
                is lost";
    assert!(notes(&line).contains(&told.to_owned()), "{:?}", notes(&line));
    assert_eq!(line.flags, bare.flags);
    // What is given is another thing.
    let error = from_yaml(&format!("{head}  params:\n    concurrrent: 5\n"), &[], &NOTHING);
    assert!(error.unwrap_err().to_string().contains("did you mean `--concurrent`"));
}
