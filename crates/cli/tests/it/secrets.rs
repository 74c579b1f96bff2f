//! No secret is in anything that a run leaves or prints, whichever way it was given.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{SECRET_KEY, Target, oracle, plimsoll, run, run_directory, stderr};

/// A token that no command line may give away.
const TOKEN: &str = "token-that-must-stay-secret";
/// What follows every benchmark's own flags.
const SMALL: &str = "--objects 20 --obj.size 1KiB --duration 300ms --concurrent 2";

/// One way for secrets to come in: words, with KEY, SECRET, TOKEN and HOST to be filled in, and
/// variables of the environment.
struct Entry {
    line: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

const fn entry(line: &'static str) -> Entry {
    Entry { line, variables: &[] }
}

const ENTRIES: [Entry; 14] = [
    entry("s3 stat --access-key=KEY --secret-key=SECRET SMALL"),
    entry("s3 stat --access-key KEY --secret-key SECRET SMALL"),
    Entry {
        line: "s3 stat SMALL",
        variables: &[("PLIMSOLL_ACCESS_KEY", "KEY"), ("PLIMSOLL_SECRET_KEY", "SECRET")],
    },
    Entry {
        line: "s3 stat SMALL",
        variables: &[("WARP_ACCESS_KEY", "KEY"), ("WARP_SECRET_KEY", "SECRET")],
    },
    Entry {
        line: "s3 stat --signature IAM SMALL",
        variables: &[("AWS_ACCESS_KEY_ID", "KEY"), ("AWS_SECRET_ACCESS_KEY", "SECRET")],
    },
    Entry {
        line: "s3 stat --signature IAM SMALL",
        variables: &[("AWS_SHARED_CREDENTIALS_FILE", "credentials")],
    },
    entry("run w.yaml --access-key KEY --secret-key=SECRET"),
    entry("as warp stat -host HOST -bucket bench -access-key=KEY -secret-key=SECRET SMALL"),
    entry("as warp stat -host HOST -bucket bench -access-key KEY --secret-key SECRET SMALL"),
    entry("as warp run -var AccessKey=KEY --var SecretKey=SECRET variables.yml"),
    entry("as warp run literal.yml"),
    entry(
        "as warp stat -host HOST -bucket bench -access-key=KEY -secret-key=SECRET \
         -influxdb http://TOKEN@127.0.0.1:1/b/o SMALL",
    ),
    entry("s3 stat --access-key=KEY --secret-key=SECRET --otlp http://127.0.0.1:1/?k=TOKEN SMALL"),
    entry("as s3-benchmark -a KEY --s=SECRET -u http://HOST -b bench -d 1 -z 1K"),
];

const WARP_FILE: &str = "warp:\n  api: v1\n  benchmark: stat\n  remote:\n    host: HOST\n    \
                         bucket: bench\n    access-key: A_KEY\n    secret-key: A_SECRET\n  \
                         params:\n    duration: 1s\n    concurrent: 2\n    objects: 20\n    \
                         obj:\n      size: 1KiB\n";

/// Puts the files there that some entries read.
fn lay_out(directory: &Path, target: &Target) {
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text).unwrap();
    let file = |key: &str, secret: &str| {
        let text = WARP_FILE.replace("HOST", &target.host);
        text.replace("A_KEY", key).replace("A_SECRET", secret)
    };
    write("variables.yml", file("'{{.AccessKey}}'", "'{{.SecretKey}}'"));
    write("literal.yml", file(&target.access_key, &target.secret_key));
    let (key, secret) = (&target.access_key, &target.secret_key);
    write(
        "credentials",
        format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"),
    );
    let line = format!("s3 stat {SMALL} --explain");
    let explained = run(command(directory, &line)).stdout;
    write("w.yaml", String::from_utf8(explained).unwrap());
}

fn command(directory: &Path, line: &str) -> Command {
    let mut command = plimsoll(directory);
    command.args(line.split_whitespace());
    command
}

fn filled_in(text: &str, target: &Target) -> String {
    let text = text.replace("SMALL", SMALL).replace("SECRET", &target.secret_key);
    text.replace("KEY", &target.access_key).replace("TOKEN", TOKEN).replace("HOST", &target.host)
}

#[test]
fn no_way_in_leads_to_any_way_out() {
    let target = oracle();
    for Entry { line, variables } in ENTRIES {
        let inputs = tempfile::tempdir().unwrap();
        lay_out(inputs.path(), &target);
        let outputs = tempfile::tempdir().unwrap();
        let mut command = command(inputs.path(), &filled_in(line, &target));
        if !line.contains("s3-benchmark") {
            command.env("PLIMSOLL_HOST", &target.host);
        }
        if line.starts_with("s3") || line.starts_with("run") {
            command.args(["--bucket", "bench", "--create-bucket", "--keep-bucket"]);
        }
        for (name, value) in variables {
            command.env(name, filled_in(value, &target));
        }
        let explained = {
            let mut again = Command::new(command.get_program());
            again.current_dir(inputs.path()).args(command.get_args()).arg("--explain");
            again.env("PLIMSOLL_HOST", &target.host);
            run(again)
        };
        assert_silent(line, "--explain", &[explained.stdout, explained.stderr].concat());
        let output = run(command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {text}");
        assert_silent(line, "stdout", &output.stdout);
        assert_silent(line, "stderr", text.as_bytes());
        let record = run_directory(inputs.path());
        assert_told(&record, outputs.path());
        for path in files_below(&record).into_iter().chain(files_below(outputs.path())) {
            let bytes = std::fs::read(&path).unwrap();
            assert_silent(line, &path.display().to_string(), &bytes);
            if path.extension().is_some_and(|end| end == "zst") {
                let plain = zstd::decode_all(&*bytes).unwrap();
                assert_silent(line, &format!("{} unpacked", path.display()), &plain);
            }
        }
    }
}

/// Has the record told in every form there is.
fn assert_told(record: &Path, outputs: &Path) {
    let record = record.display();
    let one_stage = ["export", "report"];
    for (name, line) in [
        ("analyze.txt", format!("analyze {record}")),
        ("analyze.json", format!("analyze {record} --json")),
        ("report", format!("report {record} -o report.html")),
        ("export", format!("export {record} -o ops.csv")),
        ("export", format!("export {record} -o ops.jsonl")),
        ("export", format!("export {record} --format warp -o raw.csv.zst")),
    ] {
        let output = run(command(outputs, &line));
        // A record of several stages, s3-benchmark's, cannot be told in every form.
        let told = output.status.success() || one_stage.contains(&name);
        assert!(told, "{line}: {}", stderr(&output));
        std::fs::write(outputs.join(name), [output.stdout, output.stderr].concat()).unwrap();
    }
    assert!(files_below(outputs).len() > 4);
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

#[track_caller]
fn assert_silent(line: &str, place: &str, bytes: &[u8]) {
    for secret in [SECRET_KEY, TOKEN] {
        let held = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!held, "{line}: {place} holds a secret");
    }
}

#[test]
fn what_is_refused_does_not_repeat_the_secret() {
    let directory = tempfile::tempdir().unwrap();
    for line in [
        "s3 get --host h --secret-key SECRET",
        "s3 get --host h --access-key KEY --secret-key SECRET --duration x",
        "s3 get --secret-keys=SECRET",
        "s3 get --host h --influxdb http://TOKEN@h",
        "s3 get --host h --influxdb TOKEN",
        "s3 get --host h --otlp ftp://TOKEN@h/",
        "as warp get --host h -secret-key=SECRET -duration=x",
        "as warp get --host h -secret-keys=SECRET",
        "as warp run -var SecretKey=SECRET absent.yml",
        "as s3-benchmark -s SECRET -u http://h",
        "as s3-benchmark -s SECRET -a KEY -u nowhere",
        "as s3-benchmark --secret-key=SECRET",
        "as s3-benchmark -a AK -sSECRET -u http://h",
        "as warp run -var SECRET w.yml",
        "clean AK:SECRET@h/b",
    ] {
        let line = line.replace("SECRET", SECRET_KEY).replace("TOKEN", TOKEN);
        let output = run(command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert_silent(&line, "stderr", &output.stderr);
    }
}
