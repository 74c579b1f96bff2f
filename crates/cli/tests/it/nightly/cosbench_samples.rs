//! COSBench's own samples for Swift and S3 by `plimsoll as cosbench`: scaled down, with the address
//! and login that one is told to put in, on real servers. Run by `cargo xtask test`.

use plimsoll_driver_swift::{Address, SignIn, SwiftConfig, SwiftDriver};
use plimsoll_testkit::{LiveKind, LiveServer, live};

use crate::cosbench::{as_cosbench, done, scaled, shortened, stages};
use crate::harness::{self, block_on, clock, run, stderr};

type Replaced<'a> = &'a [(&'a str, &'a str)];

/// A stage of a record: name, operations, failures.
type Stage = (String, u64, u64);

/// Runs a sample, and returns what its record has of it.
#[track_caller]
fn run_sample(name: &str, replaced: Replaced<'_>, secret: &str) -> Vec<Stage> {
    let directory = tempfile::tempdir().unwrap();
    let file = scaled(directory.path(), &format!("xml/{name}.xml"), replaced);
    let output = run(as_cosbench(directory.path(), &[&shortened(&file)]));
    let printed = done(&output);
    assert!(!printed.contains(secret) && !stderr(&output).contains(secret), "{name}");
    stages(directory.path())
}

/// Returns the names of stages with their operations, those of a stage that lasts for a time as 1.
fn counted(stages: &[Stage]) -> Vec<(&str, u64)> {
    let count = |(name, ops, failed): &'_ Stage| {
        assert_eq!(*failed, 0, "{name}");
        if name.ends_with("-main") { u64::from(*ops > 0) } else { *ops }
    };
    stages.iter().map(|stage| (&*stage.0, count(stage))).collect()
}

/// Three containers of six objects, and of twelve names in all.
const SCALED: Replaced<'_> =
    &[(",32)", ",3)"), (",50)", ",6)"), ("u(51,100)", "u(7,12)"), ("r(1,100)", "r(1,12)")];

fn containers(server: &LiveServer) -> Vec<String> {
    let auth = Address::parse(&format!("{}/auth/v1.0", server.url)).unwrap();
    let (user, key) = (server.access_key.clone(), server.secret_key.clone().into());
    let config = SwiftConfig::new(SignIn::V1 { auth, user, key }, "unused");
    let driver = block_on(SwiftDriver::open(config, &clock())).unwrap();
    block_on(async {
        driver.admin(&clock(), None).unwrap().containers("mycontainers").await.unwrap()
    })
}

#[test]
fn the_samples_of_swift_run_on_openstack_swift_and_leave_nothing() {
    let Some(server) = live(LiveKind::Swift) else { return };
    let login = format!(
        "username={};password={};auth_url={}/auth/v1.0\"",
        server.access_key, server.secret_key, server.url
    );
    let sample_login =
        "username=test:tester;password=testing;auth_url=http://192.168.10.1:8080/auth/v1.0\"";
    let replaced = [&[(sample_login, &*login)][..], SCALED].concat();
    let whole = [("s1-init", 0), ("s2-prepare", 18), ("s3-main", 1), ("s4-cleanup", 36)];
    for name in ["swift-config-sample", "hashcheck"] {
        let stages = run_sample(name, &replaced, &server.secret_key);
        assert_eq!(counted(&stages)[..4], whole, "{name}");
        assert_eq!(counted(&stages)[4..], [("s5-dispose", 0)], "{name}");
        assert_eq!(containers(&server), [""; 0], "{name}");
    }
    // COSBench ends this one at its second stage that is called `delay`.
    let stages = run_sample("delay-stage-config-sample", &replaced, &server.secret_key);
    let worked: Vec<_> = counted(&stages).into_iter().filter(|(_, ops)| *ops > 0).collect();
    assert_eq!(worked, [("s3-prepare", 18), ("s4-main", 1), ("s6-cleanup", 36)]);
    assert_eq!(containers(&server), [""; 0]);
}

#[test]
fn the_profile_of_asus_runs_on_openstack_swift() {
    let Some(server) = live(LiveKind::Swift) else { return };
    let login = format!(
        "username={};password={};auth_url={}/auth/v1.0\"",
        server.access_key, server.secret_key, server.url
    );
    let replaced = [
        ("username=test:swift;password=thepassword;auth_url=http://lab-be1:80/auth\"", &*login),
        ("containers=", "cprefix=asus;containers="),
        (",431)", ",2)"),
        (",1299)", ",9)"),
        ("\"256\"", "\"8\""),
        ("\"40\"", "\"3\""),
        // A gigabyte is much for a test.
        (",5121|102400|18,102401|1024000|2)", ")"),
    ];
    let stages = run_sample("asus", &replaced, &server.secret_key);
    let worked: Vec<_> = counted(&stages).into_iter().filter(|(_, ops)| *ops > 0).collect();
    assert_eq!(worked, [("s2-prepare", 18), ("s4-main", 1), ("s5-cleanup", 18)]);
}

#[test]
fn the_sample_of_s3_runs_on_minio_and_leaves_nothing() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = harness::live(&server, "unused");
    let access = format!(
        "accesskey={};secretkey={};endpoint=http://{}\"",
        target.access_key, target.secret_key, target.host
    );
    let replaced = [
        (
            "accesskey=<accesskey>;secretkey=<scretkey>;proxyhost=<proxyhost>;\
             proxyport=<proxyport>;endpoint=<endpoint>\"",
            &*access,
        ),
        ("s3testqwer", "s3-sample-"),
    ];
    let stages = run_sample("s3-config-sample", &replaced, &target.secret_key);
    let expected =
        [("s1-init", 0), ("s2-prepare", 20), ("s3-main", 1), ("s4-cleanup", 40), ("s5-dispose", 0)];
    assert_eq!(counted(&stages), expected);
    for bucket in ["s3-sample-1", "s3-sample-2"] {
        assert!(!harness::live(&server, bucket).exists(), "{bucket}");
    }
}
