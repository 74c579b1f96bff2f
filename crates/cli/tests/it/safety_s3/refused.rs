//! What makes no sense about requests and the benchmarks of S3 is refused before anything is
//! written, with exit code 2 and a line that names what to change.

use crate::harness::{oracle, plimsoll, run, stderr};

const ROWS: [(&str, &[&str]); 37] = [
    ("s3 multipart --part.size 4MiB", &["--part.size", "5MiB"]),
    ("s3 multipart-put --part.size 5MB", &["--part.size", "5MiB"]),
    ("s3 put --part.size 1MiB --host HOST", &["--part.size", "5MiB"]),
    ("s3 put --part.size 0 --host HOST", &["--part.size"]),
    ("s3 multipart --parts 10001", &["--parts", "10000"]),
    ("s3 multipart --parts 0", &["--parts", "10000"]),
    ("s3 multipart-put --parts 0", &["--parts", "10000"]),
    ("s3 multipart-put --parts 10001", &["--parts", "10000"]),
    ("s3 multipart-put --parts 5 --part.concurrent 6", &["--part.concurrent", "5"]),
    ("s3 put --part.parallel 0 --host HOST", &["--part.parallel", "1000"]),
    ("s3 multipart --host", &["--host"]),
    ("s3 put --encrypt --host HOST", &["SSE-C", "--tls"]),
    ("s3 put --encrypt --sse-s3-encrypt", &["--encrypt", "--sse-s3-encrypt"]),
    ("s3 delete --batch 1001", &["--batch", "1000"]),
    ("s3 delete --batch 0", &["--batch", "1000"]),
    ("s3 mixed --put-distrib 9", &["--delete-distrib", "PUT"]),
    ("s3 put --checksum CRC99 --host HOST", &["--checksum", "CRC99", "CRC32C"]),
    ("s3 put --checksum CRC32 --md5", &["--checksum", "--md5"]),
    ("s3 put --obj.generator file:EMPTY", &["--obj.generator", "no file"]),
    ("s3 put --obj.generator file:nowhere", &["--obj.generator", "nowhere"]),
    ("s3 put --obj.generator noise", &["--obj.generator", "noise", "file:DIR"]),
    ("s3 get --pick nonsense", &["--pick", "nonsense", "zipf:THETA"]),
    ("s3 get --pick zipf:steep", &["--pick", "zipf:steep", "zipf:THETA"]),
    ("s3 get --pick zipf:1", &["--pick"]),
    ("s3 put --signature V9", &["--signature", "V9"]),
    ("s3 put --signature STS_WEB_TOKEN --host HOST", &["--signature", "--sts-web-token"]),
    ("s3 put --tag plain", &["--tag", "plain", "NAME=VALUE"]),
    ("s3 put --tag =value", &["--tag", "=value", "NAME=VALUE"]),
    ("s3 put --tag a=b --tag a=c --host HOST", &["--tag", "twice"]),
    ("s3 put --tag a=rand:many --host HOST", &["--tag", "rand:many"]),
    ("s3 put TAGS --host HOST", &["--tag", "11", "10"]),
    ("s3 put --add-metadata plain", &["--add-metadata", "plain", "NAME=VALUE"]),
    ("clean http://HOST/b --older-than yesterday", &["--older-than", "yesterday"]),
    ("clean http://HOST/b --older-than 9999999999999999999d", &["--older-than"]),
    ("clean http://HOST/b --run last", &["--run", "last", "s3-get-"]),
    ("clean http://HOST/b --run ../other --yes", &["--run", "../other"]),
    ("clean http://HOST/a/b --yes", &["HOST/a/b", "bucket"]),
];

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_written() {
    let target = oracle();
    let tags: Vec<String> = (0..11).map(|number| format!("--tag t{number}=x")).collect();
    for (line, words) in ROWS {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("EMPTY")).unwrap();
        let line = line.replace("HOST", &target.host).replace("TAGS", &tags.join(" "));
        let mut command = plimsoll(directory.path());
        command.args(line.split_whitespace());
        target.credentials(&mut command);
        if !line.contains(&target.host) {
            command.env_remove("PLIMSOLL_ACCESS_KEY").env_remove("PLIMSOLL_SECRET_KEY");
        }
        let output = run(command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(output.stdout.is_empty(), "{line}: stdout is for results");
        // What the parser of the command line refuses it follows up with a hint.
        let said = text.lines().next().unwrap_or_default();
        assert!(said.starts_with("error: ") || text.lines().count() == 1, "{line}: {text}");
        for word in words {
            let word = word.replace("HOST", &target.host);
            assert!(text.contains(&word), "{line}: no `{word}` in: {text}");
        }
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 1, "{line} leaves something");
        assert_eq!(target.oracle.as_ref().unwrap().stats().buckets_count, 0, "{line}");
    }
}
