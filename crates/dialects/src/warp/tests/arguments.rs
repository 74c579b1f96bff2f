//! Command lines: how they are written, and what differs from warp.

use super::*;

#[test]
fn a_flag_is_written_in_any_of_gos_ways() {
    for line in [
        "get --concurrent 8 --tls --obj.size 1KiB",
        "get --concurrent=8 --tls=true --obj.size=1KiB",
        "get -concurrent 8 -tls=1 -obj.size=1KiB",
        "get --concurrent 4 --tls=false --concurrent=0x8 --tls --obj.size 1KiB --md5=false",
    ] {
        let mut found = flags(line);
        found.sort();
        assert_eq!(found, ["--concurrent=8", "--obj.size=1KiB", "--tls"], "{line}");
    }
    assert_eq!(flags("-q --no-color get"), ["--quiet", "--no-color"]);
}

#[test]
fn the_bucket_is_created_and_kept_as_warp_does() {
    for (line, bucket) in [("get", OF_BUCKET[0]), ("put --bucket mine", "--bucket=mine")] {
        let flags = read(line).unwrap().flags;
        for (name, value) in [
            ("--bucket", bucket.strip_prefix("--bucket=")),
            ("--create-bucket", None),
            ("--keep-bucket", None),
        ] {
            let flag = (name.to_owned(), value.map(str::to_owned));
            assert_eq!(flags.iter().filter(|given| **given == flag).count(), 1, "{line}: {name}");
        }
    }
}

#[test]
fn the_host_is_warps_where_none_is_given() {
    let line = read("get").unwrap();
    assert_eq!(joined(&line.flags), ["--host=127.0.0.1:9000", "--proxy=env"]);
    assert_eq!(notes(&line), ["`--host`: not given, so it is 127.0.0.1:9000, as in warp"]);
    assert_eq!(flags("get --host a:1,b{1...4}:2"), ["--host=a:1,b{1...4}:2"]);
    assert_eq!(error("get --host="), "`--host=`: it has no value");
}

#[test]
fn the_environment_counts_where_no_flag_does() {
    let environment = [
        ("WARP_HOST", "s3:1"),
        ("WARP_ACCESS_KEY", "AK"),
        ("WARP_SECRET_KEY", "SK"),
        ("WARP_SESSION_TOKEN", "ST"),
        ("WARP_TLS", "true"),
        ("WARP_KTLS", "false"),
        ("WARP_RDMA", ""),
        ("WARP_REGION", "eu"),
        ("WARP_STS_WEB_TOKEN", "file:t"),
        ("WARP_INFLUXDB_CONNECT", "http://t@h:1/b/o"),
    ];
    let expected = [
        "--access-key=AK",
        "--host=s3:1",
        "--influxdb=http://t@h:1/b/o",
        "--region=eu",
        "--secret-key=SK",
        "--session-token=ST",
        "--sts-web-token=file:t",
        "--tls",
    ];
    let mut found = flags_in("get", &environment);
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(flags_in("get --host=b --tls=false", &environment[..1]), ["--host=b"]);
    assert_eq!(flags_in("get --tls=false", &[("WARP_TLS", "1")]), [""; 0]);
    let refused = |name, value| read_in("get", &[(name, value)]).unwrap_err().to_string();
    assert!(refused("WARP_KTLS", "true").starts_with("`WARP_KTLS` is not taken: TLS"));
    assert!(refused("WARP_RDMA", "cpu").starts_with("`WARP_RDMA` is not taken: "));
    assert!(refused("WARP_TLS", "yes").starts_with("`WARP_TLS`: it is a switch"));
}

#[test]
fn no_secret_is_shown() {
    let words = "get --access-key=AKS --secret-key=SKS --session-token STS --host=h:1 --prefix=a'b \
                 --influxdb http://IFS@h:1/b/o --sts-web-token WTS";
    let line = read(words).unwrap();
    for shown in [line.explain(), format!("{line:?}")] {
        for secret in ["AKS", "SKS", "STS=", "=STS", "IFS", "WTS"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
    }
    let expected = "# plimsoll s3 get --access-key=*REDACTED* --secret-key=*REDACTED* \
        --session-token=*REDACTED* --host=h:1 --prefix='a'\\''b' --influxdb=*REDACTED* \
        --sts-web-token=*REDACTED* --bucket=warp-benchmark-bucket --create-bucket \
        --keep-bucket --proxy=env\n\
        # `--prefix=a'b`: the run's own prefix, `plimsoll/<run>/`, comes below it\n\
        # `--influxdb=*REDACTED*`: running totals go out once a second, not after each operation\n";
    assert_eq!(line.explain(), expected);
    assert_eq!(error("get -secret-keys=SKS").find("SKS"), None);
    assert_eq!(error("get ---secret-key=SKS").find("SKS"), None);
}

#[test]
fn what_is_wrong_is_named_with_what_was_meant() {
    for (line, expected) in [
        ("", "which benchmark? its name is missing, such as `get`"),
        ("gett", "`gett` is no command of warp; did you mean `get`?"),
        ("get --objets=1", "`--objets` is no flag of `warp get`; did you mean `--objects`?"),
        ("get -concurent 4", "`-concurent` is no flag of `warp get`; did you mean `--concurrent`?"),
        ("get --qqqqqqq", "`--qqqqqqq` is no flag of `warp get`"),
        ("get --batch 5", "`--batch` is no flag of `warp get`, but of `delete`"),
        (
            "put --get-distrib 5",
            "`--get-distrib` is no flag of `warp put`, but of `mixed`, `versioned`",
        ),
        ("analyze --host h f", "`--host` is no flag of `warp analyze`, but of benchmarks"),
        ("get --var A=b", "`--var` is no flag of `warp get`, but of `run`"),
        ("get --objects", "`--objects`: it has no value"),
        ("get --objects -5", "`--objects=-5`: `-5` is not a whole number from 0"),
        ("get --tls true", "`true` belongs to no flag; a switch is written `--flag=true`"),
        ("get bucket", "`bucket` belongs to no flag; `get` takes nothing else"),
        ("get -- --tls", "`--tls` belongs to no flag; `get` takes nothing else"),
        ("--tls get", "`-tls` is no flag that stands before a command"),
        ("get --=5", "`--` is not written as a flag"),
        ("get --tls=maybe", "`--tls=maybe`: it is a switch: true or false"),
        ("get --lookup=x", "`--lookup=x`: it is auto, host or path"),
        ("get --host-select=x", "`--host-select=x`: it is weighed or roundrobin"),
        ("get --signature=x", "`--signature=x`: it is S3V4, S3V2, IAM or STS_WEB_TOKEN"),
        (
            "get --signature=STS_WEB_TOKEN",
            "`--signature=STS_WEB_TOKEN`: the token is missing; add `--sts-web-token`",
        ),
        ("get --encrypt", "`--encrypt`: the key would go over the wire in the clear; add `--tls`"),
        ("put --tag x", "`--tag=x`: it is written NAME=VALUE"),
        (
            "put --tag x=rand:5",
            "`--tag=x=rand:5` is not taken: values are not drawn; write one out, such as `x=abc`",
        ),
        ("get --md5 --checksum=SHA1", "`--checksum=SHA1`: it does not go together with `--md5`"),
        (
            "get --obj.generator=csv",
            "`--obj.generator=csv`: warp has only `random`; `plimsoll s3` has others",
        ),
        (
            "mixed --get-distrib=4.5",
            "`--get-distrib=4.5`: weights are whole numbers here; multiply all four by ten",
        ),
        ("cmp a", "`cmp` takes two files"),
        ("analyze", "`analyze` takes files"),
        ("run", "`run` takes one file"),
        // A value may be a key, so that none is repeated.
        ("run f --var A", "`--var=*REDACTED*`: it is written Name=Value"),
    ] {
        assert_eq!(error(line), expected, "{line}");
    }
}

#[test]
fn what_has_no_counterpart_is_refused_with_what_to_do() {
    for line in
        ["client", "client 127.0.0.1:7761", "iceberg", "iceberg catalog-read --help", "help"]
    {
        let text = error(line);
        assert!(text.contains(" is not taken: ") && text.len() > 40, "{line}: {text}");
    }
    for checksum in ["SHA512", "MD5CS", "XXH64", "XXH3", "xxh128"] {
        let text = error(&format!("put --checksum={checksum}"));
        assert!(text.contains("is not taken: S3 itself has no such checksum"), "{text}");
    }
    assert!(error("put --checksum=CRC99").contains(": it is one of CRC32, "));
}

#[test]
fn sizes_mean_what_they_mean_to_warp() {
    assert_eq!(flags("put --obj.size=1KiB,1MiB"), ["--obj.size=1MiB"]);
    let line = read("put --obj.size=1KiB,1MiB").unwrap();
    assert!(notes(&line)[1].contains("all objects have the second size"), "{line:?}");
    let random = flags("put --obj.size=1KiB,1MiB --obj.randsize");
    assert_eq!(random, ["--obj.size=1KiB,1MiB", "--obj.randsize"]);
    assert_eq!(flags("put --obj.size=4096:10,8192:5"), ["--obj.size=4096:10,8192:5"]);
}

#[test]
fn existing_objects_are_as_many_as_in_warp() {
    for (line, expected) in [
        ("get --list-existing", &["--list-existing", "--objects=2500"][..]),
        ("get --list-existing --objects=0", &["--list-existing"]),
        ("get --list-existing --objects=7", &["--list-existing", "--objects=7"]),
        ("stat --list-existing", &["--list-existing", "--objects=10000"]),
        ("delete --list-existing --yes", &["--list-existing", "--yes"]),
        (
            "get --list-existing --list-flat --objects=7",
            &["--list-existing", "--list-flat", "--objects=7"],
        ),
        ("get --list-flat", &[]),
    ] {
        assert_eq!(flags(line), expected, "{line}");
    }
}

#[test]
fn signatures_keys_and_sums() {
    let keys = "--access-key=a --secret-key=b";
    assert_eq!(flags(&format!("get --signature=iam {keys}")), ["--signature=IAM"]);
    assert_eq!(
        flags("get --signature=STS_WEB_TOKEN --sts-web-token=file:t"),
        ["--signature=S3V4", "--sts-web-token=file:t"]
    );
    assert_eq!(flags("get --sse-s3-encrypt --encrypt"), ["--sse-s3-encrypt"]);
    assert_eq!(flags("put --checksum=crc64n"), ["--checksum=CRC64NVME"]);
    assert_eq!(flags("put --checksum=MD5"), ["--md5"]);
    assert_eq!(flags("put --checksum=MD5 --md5"), ["--md5"]);
    assert_eq!(flags("get --lookup=host"), ["--lookup=dns"]);
}

#[test]
fn what_does_nothing_is_left_out_and_said() {
    let line = read("get --host=h --autoterm.dur=5s --autoterm.pct 7.5").unwrap();
    assert_eq!(joined(&line.flags), ["--host=h", "--proxy=env"]);
    let expected = [
        "`--autoterm.dur=5s`: does nothing without `--autoterm`",
        "`--autoterm.pct=7.5`: does nothing without `--autoterm`",
    ];
    assert_eq!(notes(&line), expected);
    // What is not asked for is not spoken of.
    let off = "get --host=h --full=false --rdma= --ktls=false --web=0 --serve= --stress=false";
    assert_eq!(notes(&read(off).unwrap()), [""; 0]);
}

#[test]
fn unsigned_content_and_proxies_are_said() {
    let unsigned =
        |line: &str| notes(&read(line).unwrap()).iter().any(|note| note.contains("goes unsigned"));
    assert!(unsigned("put --host=h"));
    assert!(!unsigned("put --host=h --tls"));
    assert!(!unsigned("put --host=h --disable-sha256-payload"));
    assert!(!unsigned("get --host=h"));
    let line = read_in("get --host=h", &[("HTTPS_PROXY", "http://p:1")]).unwrap();
    assert_eq!(
        notes(&line),
        ["`HTTPS_PROXY`: the proxy that it names is gone through, as in warp"]
    );
}

#[test]
fn commands_on_files_hand_their_flags_on() {
    let line = read("analyze a.zst --analyze.op=GET --web b.zst --json --full").unwrap();
    assert_eq!(line.command, WarpCommand::Analyze);
    assert_eq!(joined(&line.flags), ["--analyze.op=GET", "--web", "--json", "--full"]);
    assert_eq!((line.operands.len(), line.notes.len(), line.analysis.len()), (2, 0, 0));
    let line = read("merge --benchdata=x a b").unwrap();
    assert_eq!(
        (line.command, joined(&line.flags)),
        (WarpCommand::Merge, vec!["--benchdata=x".to_owned()])
    );
    let line = read("run f.yml --var A=1 -q --var B=x=y").unwrap();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(line.variables, [pair("A", "1"), pair("B", "x=y")]);
    assert_eq!(
        (line.operands, joined(&line.flags)),
        (vec!["f.yml".to_owned()], vec!["--quiet".to_owned()])
    );
    assert_eq!(read("cmp a b").unwrap().explain(), "# plimsoll as warp cmp a b\n");
}

#[test]
fn the_report_gets_its_flags() {
    let line = read("get --host=h --analyze.v --analyze.op=get --analyze.skip=5s").unwrap();
    assert_eq!(joined(&line.analysis), ["--analyze.v", "--analyze.op=get", "--analyze.skip=5s"]);
    assert_eq!(joined(&line.flags), ["--host=h", "--proxy=env"]);
}
