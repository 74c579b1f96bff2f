//! Clients that people have: boto3 and the AWS command line, against the store in this process.

#![expect(clippy::disallowed_methods, reason = "runs programs, and looks at what they wrote")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plimsoll_oracle::Oracle;
use plimsoll_testkit::python_site;

use crate::{KEYS, config};

const CALLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/store/boto3_calls.py");

/// Returns a command of Python's that finds the packages, knows who asks, and nothing else.
fn python(program: &str, site: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PYTHONPATH", site).env("HOME", home).current_dir(home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("AWS_ACCESS_KEY_ID", KEYS.0).env("AWS_SECRET_ACCESS_KEY", KEYS.1);
    command.env("AWS_DEFAULT_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|stream| String::from_utf8_lossy(stream).into_owned()).concat()
}

#[test]
fn every_call_of_boto3_works_or_is_refused_by_name() {
    let Some(site) = python_site() else { return };
    for md5_etags in [false, true] {
        let oracle = Oracle::start(crate::OracleConfig { md5_etags, ..config() }).unwrap();
        let home = tempfile::tempdir().unwrap();
        let endpoint = format!("http://{}", oracle.addr());
        let mut command = python("python3", &site, home.path());
        command.arg("-B").arg(CALLS).args([&endpoint, KEYS.0, KEYS.1]);
        let output = command.output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "MD5 as ETag: {md5_etags}\n{said}");
        let count = said.lines().filter(|line| line.ends_with("(as expected)")).count();
        assert!(count >= 60, "{count} calls\n{said}");
        // What it holds at the end is one bucket with one object, which is retained.
        let stats = oracle.stats();
        assert_eq!((stats.buckets_count, stats.objects_count), (1, 1));
    }
}

/// The AWS command line in a folder of its own.
struct Aws {
    site: PathBuf,
    home: tempfile::TempDir,
    endpoint: String,
}

impl Aws {
    fn run(&self, line: &str) -> Output {
        let mut command = python("python3", &self.site, self.home.path());
        command.arg("-B").arg(self.site.join("bin/aws"));
        command.args(["--endpoint-url", &self.endpoint]).args(line.split_whitespace());
        command.output().unwrap()
    }

    /// Returns what a command that must succeed printed.
    #[track_caller]
    fn printed(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn the_aws_command_line_copies_lists_syncs_moves_and_removes() {
    let Some(site) = python_site() else { return };
    let oracle = Oracle::start(config()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let aws = Aws { site, home, endpoint: format!("http://{}", oracle.addr()) };
    let folder = aws.home.path().join("folder");
    fs::create_dir_all(folder.join("sub")).unwrap();
    // Above 8 MiB it is copied in parts.
    let large: Vec<u8> = (0..9_000_000_u32).map(|i| (i % 251) as u8).collect();
    fs::write(folder.join("large"), &large).unwrap();
    fs::write(folder.join("sub/small"), b"small").unwrap();

    aws.printed("s3 mb s3://cli");
    aws.printed("s3 cp folder/sub/small s3://cli/one --metadata ship=plimsoll");
    aws.printed("s3 sync folder s3://cli/synced");
    let listed = aws.printed("s3 ls s3://cli --recursive");
    let keys: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(keys, ["one", "synced/large", "synced/sub/small"]);
    assert_eq!(aws.printed("s3 sync folder s3://cli/synced"), "", "nothing is new");
    aws.printed("s3 cp s3://cli/synced s3://cli/again --recursive");
    aws.printed("s3 mv s3://cli/again/large back");
    assert!(fs::read(aws.home.path().join("back")).unwrap() == large);
    let url = aws.printed("s3 presign s3://cli/one");
    assert!(url.contains("Signature="), "{url}");
    assert!(aws.run("s3 ls s3://nowhere").status.code().is_some_and(|code| code != 0));

    let head = aws.printed("s3api head-object --bucket cli --key one --query Metadata.ship");
    assert_eq!(head.trim(), "\"plimsoll\"");
    aws.printed(
        "s3api put-bucket-versioning --bucket cli --versioning-configuration Status=Enabled",
    );
    aws.printed("s3 rm s3://cli/one");
    let markers = "s3api list-object-versions --bucket cli --query length(DeleteMarkers)";
    assert_eq!(aws.printed(markers).trim(), "1");
    let refused = aws.run(
        "s3api put-bucket-accelerate-configuration --bucket cli \
                           --accelerate-configuration Status=Enabled",
    );
    assert!(text(&refused).contains("NotImplemented"), "{}", text(&refused));
    aws.printed("s3 rm s3://cli --recursive");
    assert_eq!(aws.printed("s3 ls s3://cli --recursive"), "");
}
