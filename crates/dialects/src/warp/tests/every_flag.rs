//! warp's whole list of flags, written down from what is known of warp and not from our table.

use super::super::flags::FLAGS;
use super::*;

/// What becomes of a flag.
enum Is {
    /// It is a flag of ours, written as here.
    Taken(&'static str),
    /// It is a flag of the report.
    Report,
    /// It is left out and spoken of.
    Noted,
    /// It is refused by name.
    Refused,
}
use Is::{Noted, Refused, Report, Taken};

/// A flag of every benchmark with a value that asks for something.
const SHARED: [(&str, Is); 72] = [
    ("--quiet", Taken("--quiet")),
    ("-q", Taken("--quiet")),
    ("--no-color", Taken("--no-color")),
    ("--json", Taken("--json")),
    ("--debug", Noted),
    ("--insecure", Taken("--insecure")),
    ("--autocompletion", Noted),
    ("--help", Refused),
    ("-h", Refused),
    ("--version", Refused),
    ("-v", Refused),
    ("--pprofdir pprof", Noted),
    ("--cpu", Noted),
    ("--mem", Noted),
    ("--block", Noted),
    ("--mutex", Noted),
    ("--threads", Noted),
    ("--trace", Noted),
    ("--host h:1", Taken("--host=h:1")),
    ("--access-key A", Taken("--access-key=A")),
    ("--secret-key S", Taken("--secret-key=S")),
    ("--session-token T", Taken("--session-token=T")),
    ("--tls", Taken("--tls")),
    ("--ktls", Refused),
    ("--rdma cpu", Refused),
    ("--rdma.window 4MiB", Refused),
    ("--region eu", Taken("--region=eu")),
    ("--sts-web-token file:t", Taken("--sts-web-token=file:t")),
    ("--signature S3V2", Taken("--signature=S3V2")),
    ("--tls --encrypt", Taken("--encrypt")),
    ("--sse-s3-encrypt", Taken("--sse-s3-encrypt")),
    ("--bucket b", Taken("--bucket=b")),
    ("--host-select roundrobin", Taken("--host-select=roundrobin")),
    ("--resolve-host", Taken("--resolve-host")),
    ("--concurrent 8", Taken("--concurrent=8")),
    ("--sndbuf 65536", Noted),
    ("--rcvbuf 65536", Noted),
    ("--noprefix", Taken("--noprefix")),
    ("--prefix p", Taken("--prefix=p")),
    ("--disable-multipart", Taken("--disable-multipart")),
    ("--disable-sha256-payload", Taken("--disable-sha256-payload")),
    ("--md5", Taken("--md5")),
    ("--checksum CRC32C-FO", Taken("--checksum=CRC32C-FO")),
    ("--storage-class COLD", Taken("--storage-class=COLD")),
    ("--disable-http-keepalive", Taken("--disable-http-keepalive")),
    ("--http2", Taken("--http2")),
    ("--stress", Refused),
    ("--influxdb http://t@h:1/b/o", Taken("--influxdb=http://t@h:1/b/o")),
    ("--rps-limit 12.5", Taken("--rps-limit=12.5/s")),
    ("--stdout", Refused),
    ("--lookup path", Taken("--lookup=path")),
    ("--obj.generator random", Taken("--obj.generator=random")),
    ("--obj.randsize", Taken("--obj.randsize")),
    ("--add-metadata a=b --add-metadata c=d", Taken("--add-metadata=c=d")),
    ("--tag a=b", Taken("--tag=a=b")),
    ("--benchdata x", Taken("--benchdata=x")),
    ("--serverprof cpu,mem", Taken("--serverprof=cpu,mem")),
    ("--duration 1m30s", Taken("--duration=1m30s")),
    ("--autoterm", Taken("--autoterm")),
    ("--autoterm --autoterm.dur 5s", Taken("--autoterm.dur=5s")),
    ("--autoterm --autoterm.pct 5", Taken("--autoterm.pct=5")),
    ("--noclear", Taken("--noclear")),
    ("--keep-data", Taken("--keep-data")),
    ("--syncstart 14:30", Taken("--syncstart=14:30")),
    ("--host h:1 --warp-client h{1...4}", Taken("--agents=h{1...4}")),
    ("--web", Refused),
    ("--analyze.dur 5s", Report),
    ("--analyze.out -", Report),
    ("--analyze.v", Report),
    ("--serve :7762", Refused),
    ("--full", Report),
    (
        "--analyze.op GET --analyze.host h --analyze.skip 1s --analyze.limit 5 --analyze.offset 1",
        Report,
    ),
];

/// A flag that only some benchmarks have, after each of them.
const OWN: [(&str, Is); 68] = [
    ("get --objects 5", Taken("--objects=5")),
    ("get --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("get --part.size 8MiB", Taken("--part.size=8MiB")),
    ("get --range", Taken("--range")),
    ("get --range-size 4KiB", Taken("--range-size=4KiB")),
    ("get --versions 3", Taken("--versions=3")),
    ("get --list-existing", Taken("--list-existing")),
    ("get --list-existing --list-flat", Taken("--list-flat")),
    ("put --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("put --part.size 8MiB", Taken("--part.size=8MiB")),
    ("put --post", Taken("--post")),
    ("delete --objects 5", Taken("--objects=5")),
    ("delete --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("delete --batch 10", Taken("--batch=10")),
    ("delete --list-existing", Taken("--list-existing")),
    ("delete --list-existing --list-flat", Taken("--list-flat")),
    ("list --objects 5", Taken("--objects=5")),
    ("list --versions 2", Taken("--versions=2")),
    ("list --obj.size 1KB", Taken("--obj.size=1KB")),
    ("list --metadata", Refused),
    ("list --max-keys 1000", Taken("--max-keys=1000")),
    ("stat --objects 5", Taken("--objects=5")),
    ("stat --obj.size 1KB", Taken("--obj.size=1KB")),
    ("stat --versions 2", Taken("--versions=2")),
    ("stat --list-existing", Taken("--list-existing")),
    ("stat --list-existing --list-flat", Taken("--list-flat")),
    ("mixed --objects 5", Taken("--objects=5")),
    ("mixed --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("mixed --get-distrib 40", Taken("--get-distrib=40")),
    ("mixed --stat-distrib 40", Taken("--stat-distrib=40")),
    ("mixed --put-distrib 40.0", Taken("--put-distrib=40")),
    ("mixed --delete-distrib 40", Taken("--delete-distrib=40")),
    ("versioned --objects 5", Taken("--objects=5")),
    ("versioned --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("versioned --get-distrib 40", Taken("--get-distrib=40")),
    ("versioned --stat-distrib 40", Taken("--stat-distrib=40")),
    ("versioned --put-distrib 40", Taken("--put-distrib=40")),
    ("versioned --delete-distrib 40", Taken("--delete-distrib=40")),
    ("retention --objects 5", Taken("--objects=5")),
    ("retention --versions 2", Taken("--versions=2")),
    ("retention --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("multipart --part.size 5MiB", Taken("--part.size=5MiB")),
    ("multipart --parts 7", Taken("--parts=7")),
    ("multipart --obj.name o.bin", Noted),
    ("multipart --_upload-id u", Refused),
    ("multipart --_part-start 5", Refused),
    ("multipart-put --parts 7", Taken("--parts=7")),
    ("multipart-put --part.size 5MiB", Taken("--part.size=5MiB")),
    ("multipart-put --part.concurrent 3", Taken("--part.concurrent=3")),
    ("append --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("zip --files 5", Taken("--files=5")),
    ("zip --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("zip --part.size 8MiB", Taken("--part.size=8MiB")),
    ("snowball --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("snowball --objs.per 5", Taken("--objs.per=5")),
    ("snowball --compress", Taken("--compress")),
    ("fanout --obj.size 1KiB", Taken("--obj.size=1KiB")),
    ("fanout --copies 5", Taken("--copies=5")),
    ("analyze --analyze.op GET f", Taken("--analyze.op=GET")),
    ("analyze --full f", Taken("--full")),
    ("analyze --web f", Taken("--web")),
    ("analyze --json -", Taken("--json")),
    ("cmp --analyze.op GET f g", Taken("--analyze.op=GET")),
    ("merge --benchdata x f g", Taken("--benchdata=x")),
    ("run --var A=b f.yml", Noted),
    ("client :7761", Refused),
    ("iceberg catalog-read --ns-list-distrib 10", Refused),
    ("iceberg sustained --tpcds", Refused),
];

fn check(line: &str, flag: &str, is: &Is) {
    let name = flag.split(['=', ' ']).next().unwrap().trim_start_matches('-');
    match (is, read(line)) {
        (Taken(expected), Ok(read)) => {
            let ours = joined(&read.flags);
            assert!(ours.iter().any(|flag| flag == expected), "{line}: {ours:?}");
        }
        (Report, Ok(read)) => assert!(
            read.analysis.iter().any(|(ours, _)| ours.trim_start_matches('-') == name),
            "{line}: {read:?}"
        ),
        (Noted, Ok(read)) if line.starts_with("run ") => assert_eq!(read.variables.len(), 1),
        (Noted, Ok(read)) => {
            assert!(read.notes.iter().any(|note| note.flag.contains(name)), "{line}: {read:?}");
            assert!(!read.flags.iter().any(|(ours, _)| ours.contains(name)), "{line}");
        }
        (Refused, Err(LineError::NotTaken { written, why })) => {
            assert!(written.starts_with('`') && why.len() > 15, "{line}: {written} {why}");
        }
        (_, result) => panic!("{line}: {result:?}"),
    }
}

#[test]
fn every_benchmark_knows_every_shared_flag() {
    for benchmark in WarpBenchmark::ALL {
        for (flag, is) in &SHARED {
            check(&format!("{} {flag}", benchmark.name()), flag, is);
        }
    }
}

#[test]
fn every_command_knows_its_own_flags() {
    for (line, is) in &OWN {
        check(line, line.split_once(" --").map_or("", |(_, flag)| flag), is);
    }
}

#[test]
fn the_table_has_no_flag_that_warp_has_not() {
    let lines = || SHARED.iter().chain(&OWN).map(|(line, _)| *line);
    for flag in FLAGS.iter().filter(|flag| flag.name != "yes") {
        let written = format!("--{}", flag.name);
        let is_there = |line: &str| line.split_whitespace().any(|word| word == written);
        assert!(lines().any(is_there), "{written} is not in warp's list");
    }
}

#[test]
fn the_document_has_every_command() {
    let document = include_str!("../../../../../docs/coming-from-warp.md");
    for benchmark in WarpBenchmark::ALL {
        let heading = format!("### `{}`", benchmark.name());
        assert!(document.lines().any(|line| line == heading), "{heading}");
    }
}
