//! The files that COSBench ships and that are published: what each comes to, or why it is refused.

use super::*;

macro_rules! file {
    ($name:literal, $stages:literal, $sets:literal, $notes:literal) => {
        (
            $name,
            include_str!(concat!("../../../testdata/cosbench/xml/", $name)),
            Ok(($stages, $sets, $notes)),
        )
    };
    ($name:literal, $refused:literal) => {
        ($name, include_str!(concat!("../../../testdata/cosbench/xml/", $name)), Err($refused))
    };
}

type File = (&'static str, &'static str, Result<(usize, usize, usize), &'static str>);

/// Each file with how many stages, sets and notes it comes to, or with what is said of it.
const FILES: [File; 23] = [
    file!("aliyun-config-sample.xml", "`<Access Key Id>` is a placeholder"),
    file!("ampli-config-sample.xml", "storage of type `ampli` is not taken"),
    file!("asus.xml", 6, 1, 0),
    file!("cdmi-base-config-sample.xml", "storage of type `cdmi` is not taken"),
    file!("cdmi-swift-config-sample.xml", "storage of type `cdmi_swift` is not taken"),
    file!("delay-stage-config-sample.xml", 8, 2, 0),
    file!("ecs-config-sample.xml", "`<accesskey>` is a placeholder"),
    file!("gcs-config-sample.xml", "`<projectid>` is a placeholder"),
    file!("hashcheck.xml", 5, 2, 3),
    file!("librados-config-sample.xml", "`<accesskey>` is a placeholder"),
    file!("librados-sample-annotated.xml", "line 22, column 2: it is not well-formed XML"),
    file!("noop-config.xml", 5, 2, 0),
    file!("noop-read-config.xml", 5, 2, 0),
    file!("noop-write-config.xml", 5, 3, 0),
    file!("openio-config-sample.xml", "storage of type `openio` is not taken"),
    file!("reusedata.xml", "storage of type `ampli` is not taken"),
    file!("s3-config-sample.xml", "`<accesskey>` is a placeholder"),
    file!("seed-alluxio-1.xml", 5, 2, 0),
    file!("seed-alluxio-2.xml", "`<ip>` is a placeholder"),
    file!("splitrw.xml", "storage of type `ampli` is not taken"),
    file!("sproxyd-config-sample.xml", "storage of type `sproxyd` is not taken"),
    file!("swift-config-sample.xml", 5, 2, 0),
    file!("workload-config.xml", 5, 2, 0),
];

#[test]
fn every_file_comes_to_a_workload_or_says_why_not() {
    for (name, text, expected) in FILES {
        assert!(is_workload(text), "{name}");
        match expected {
            Ok(counts) => {
                let lowered = lowered(text);
                let found =
                    (lowered.file.stages.len(), lowered.file.sets.len(), lowered.notes.len());
                assert_eq!(found, counts, "{name}: {:?} {}", lowered.notes, json(&lowered.file));
            }
            Err(said) => {
                let refused = refusal(text);
                assert!(refused.contains(said), "{name}: {refused}");
            }
        }
    }
}

/// Those that are refused for their placeholders or their storage, with these filled in.
#[test]
fn the_same_files_once_they_are_edited() {
    let s3 = "<storage type=\"s3\" config=\"accesskey=a;secretkey=b;endpoint=http://h:9000\" />";
    for (name, text, expected) in FILES {
        if expected.is_ok() || name == "librados-sample-annotated.xml" {
            continue;
        }
        let edited: String = text
            .lines()
            .map(|line| match line.trim_start().starts_with("<storage") {
                true => format!("{s3}\n"),
                false => format!("{line}\n"),
            })
            .collect();
        // One of them states its login too.
        let edited = edited.replace("type=\"httpauth\"", "type=\"none\"");
        let lowered = lowered(&edited);
        assert_eq!(lowered.stages.len(), lowered.file.stages.len(), "{name}");
        assert_eq!(lowered.secrets.of("s3").unwrap().access_key.as_ref().unwrap().expose(), "a");
    }
}

#[test]
fn the_first_file_of_the_seed() {
    let text = include_str!("../../../testdata/cosbench/xml/seed-alluxio-1.xml");
    let lowered = lowered(text);
    let target = r#"{"s3":{"hosts":"localhost:29998","lookup":"path"}}"#;
    assert_eq!(part(&lowered, "/targets"), target);
    check_part(
        &lowered,
        "/sets",
        r#"{"objects":{"named":{"bucket":"s3testqwer{1..2}","key":"myobjects{1..10}"},
            "size":"64000B","touch":true,"shared":true},
            "objects-2":{"named":{"bucket":"s3testqwer{1..2}","key":"myobjects{1..20}"},
            "touch":true,"shared":true}}"#,
    );
    assert_eq!(
        part(&lowered, "/stages/0"),
        r#"{"name":"s1-init","jobs":[{"name":"w1-init","work":{"buckets":{"make":"objects"}}}]}"#
    );
    check_part(
        &lowered,
        "/stages/1/jobs",
        r#"[{"name":"w1-prepare","deal":"member_slices","max_error_rate":"0%",
            "work":{"fill":"objects"}}]"#,
    );
    check_part(
        &lowered,
        "/stages/2",
        r#"{"name":"s3-main","jobs":[{"name":"w1-main","workers":8,"duration":"30s",
            "max_error_rate":"20%","work":{"objects":[{"get":"objects","weight":80,
            "name":"read"},{"put":"objects","weight":20,"keys":"myobjects{11..20}",
            "name":"write"}]}}]}"#,
    );
    assert_eq!(part(&lowered, "/stages/3/jobs/0/work"), r#"{"remove":"objects-2"}"#);
    assert_eq!(part(&lowered, "/stages/4/jobs/0/work"), r#"{"buckets":{"remove":"objects"}}"#);
    let touched = Touched { target: "s3".to_owned(), buckets: "s3testqwer{1..2}".to_owned() };
    assert_eq!(lowered.touched, [touched]);
    let roles: Vec<_> = lowered.stages.iter().map(|of| (of.stage, of.role, &*of.works)).collect();
    let main: Vec<_> = (0..5).map(|stage| (stage, StageRole::Main, &[0][..])).collect();
    assert_eq!(roles, main);
    let secrets = lowered.secrets.of("s3").unwrap();
    let keys = [&secrets.access_key, &secrets.secret_key];
    assert_eq!(keys.map(|key| key.as_ref().unwrap().expose()), ["root", "dump"]);
    let shown = format!("{lowered:?} {} {:?}", json(&lowered.file), read(text.as_bytes()));
    assert!(!shown.contains("dump"), "{shown}");
}

#[test]
fn the_second_file_of_the_seed_once_it_is_edited() {
    let text = include_str!("../../../testdata/cosbench/xml/seed-alluxio-2.xml");
    let workload = read(text.replace("<ip>", "10.0.0.1").as_bytes()).unwrap();
    assert_eq!(workload.drivers(), ["driver1", "driver2", "driver3", "driver4"]);
    let drivers = Some(["driver1", "driver2"].map(str::to_owned).to_vec());
    let lowered = lower(&workload, &Options { seed: Some(7), drivers }).unwrap();
    assert_eq!(lowered.file.seed, Some(7));
    lowered.file.check().unwrap();
    let job = |number: usize| part(&lowered, &format!("/stages/1/jobs/{number}"));
    check_part(
        &lowered,
        "/stages/1/jobs/0",
        r#"{"name":"w1-read","workers":128,"duration":"5m","agent":"driver1",
            "max_error_rate":"20%",
            "work":{"objects":[{"get":"objects","weight":100,"name":"read"}]}}"#,
    );
    assert!(job(1).contains(r#""name":"w2-read""#) && job(1).contains(r#""agent":"driver2""#));
    assert!(!job(3).contains("agent"), "{}", job(3));
    assert_eq!(part(&lowered, "/stages/1/name"), "\"s2-128\"");
    assert_eq!(
        part(&lowered, "/sets/objects/named"),
        r#"{"bucket":"ufs2","key":"myobjects{1..10000}.jpg"}"#
    );
    assert_eq!(lowered.notes.len(), 2);
    assert!(lowered.notes[0].starts_with("driver `driver3` is not one of driver1, driver2: "));
}
