//! Selectors, divisions, sizes and limits: what each comes to.

use super::*;

const SELECTORS: [(&str, &str); 7] = [
    ("c(3)", "uniform"),
    ("u(5,12)", "uniform"),
    ("r(5,12)", "sequential"),
    ("5-12", "sequential"),
    ("s(5,12)", "sequential"),
    ("h(5|8|3,9|12|1)", "shares"),
    ("u(5)", "uniform"),
];

/// Returns the config of an operation that needs sizes too.
fn config(containers: &str, objects: &str) -> String {
    format!("containers={containers};objects={objects};sizes=c(1)KB")
}

#[test]
fn every_selector_with_every_division_in_every_operation() {
    for (containers, bucket) in SELECTORS {
        for (objects, key) in SELECTORS {
            for division in ["none", "container", "object"] {
                for kind in ["read", "write", "delete", "list"] {
                    let config = match kind {
                        "list" => format!("containers={containers}"),
                        _ => config(containers, objects),
                    };
                    let operation = format!("<operation type=\"{kind}\" config=\"{config}\"/>");
                    let work = format!(
                        "<work name=\"m\" workers=\"4\" runtime=\"60\" division=\"{division}\">\
                         {operation}</work>"
                    );
                    check_one(
                        &of_works(&work),
                        kind,
                        division,
                        (containers, bucket),
                        (objects, key),
                    );
                }
            }
        }
    }
}

fn check_one(
    text: &str,
    kind: &str,
    division: &str,
    (containers, bucket): (&str, &str),
    (objects, key): (&str, &str),
) {
    let divided = match division {
        "container" => containers,
        "object" if kind != "list" => objects,
        _ => "none",
    };
    let by_histogram = containers.starts_with('h') || kind != "list" && objects.starts_with('h');
    if by_histogram && division != "none" {
        let said = refusal(text);
        assert!(said.contains(&format!("by histogram cannot be divided by {division}")), "{said}");
        return;
    }
    let lowered = lowered(text);
    let job = part(&lowered, "/stages/0/jobs/0");
    let deal = match (division, divided.chars().next()) {
        ("container", Some('u' | 'r' | '5')) => Some("bucket_slices"),
        ("object", Some('u' | 'r' | '5')) => Some("member_slices"),
        _ => None,
    };
    let expected = deal.map(|deal| format!("\"deal\":\"{deal}\""));
    assert_eq!(job.contains("\"deal\""), expected.is_some(), "{job}");
    assert!(expected.is_none_or(|expected| job.contains(&expected)), "{job}");
    let is_drawn = bucket == "uniform" && (kind == "list" || key == "uniform");
    if !is_drawn {
        let form = |law: &str| match law {
            "shares" => r#"{"shares":[{"1..4":3},{"5..8":1}]}"#.to_owned(),
            law => format!("\"{law}\""),
        };
        let key = if kind == "list" { "uniform" } else { key };
        let pick = format!("\"pick\":{{\"bucket\":{},\"key\":{}}}", form(bucket), form(key));
        assert!(job.contains(&pick), "{pick} in {job}");
    }
    let names = |selector: &str, name: &str| match selector {
        "c(3)" => format!("{name}3"),
        "u(5)" => format!("{name}{{5..2147483647}}"),
        _ => format!("{name}{{5..12}}"),
    };
    let set = part(&lowered, "/sets/objects/named");
    assert!(
        set.contains(&format!("\"bucket\":\"{}\"", names(containers, "mycontainers"))),
        "{set}"
    );
    if kind != "list" {
        assert!(set.contains(&format!("\"key\":\"{}\"", names(objects, "myobjects"))), "{set}");
    }
}

#[test]
fn an_account_is_listed() {
    let text = of_works(&work(
        "<operation type='list' ratio='50'/>\
         <operation type='read' ratio='50' config='containers=c(1);objects=c(1)'/>",
    ));
    let lowered = lowered(&text);
    let list = part(&lowered, "/stages/0/jobs/0/work/objects/0");
    assert_eq!(list, r#"{"list":"objects","weight":50,"account":true,"name":"list"}"#);
    assert!(lowered.file.check().is_ok());
}

#[test]
fn every_scan() {
    for kind in ["init", "prepare", "cleanup", "dispose"] {
        for range in ["r(2,5)", "2-5"] {
            let config = format!("containers={range};objects={range};sizes=c(1)KB");
            let work = format!("<work type=\"{kind}\" workers=\"9\" config=\"{config}\"/>");
            let lowered = lowered(&of_works(&work));
            let last = lowered.file.stages.len() - 1;
            let works: Vec<String> = (0..=last)
                .map(|stage| part(&lowered, &format!("/stages/{stage}/jobs/0/work")))
                .collect();
            let expected: &[&str] = match kind {
                "init" => &[r#"{"buckets":{"make":"objects"}}"#, r#"{"fill":"objects"}"#],
                "prepare" => &[r#"{"fill":"objects"}"#],
                "cleanup" => &[r#"{"remove":"objects"}"#],
                _ => &[r#"{"buckets":{"remove":"objects"}}"#],
            };
            assert_eq!(works, expected, "{work}");
            assert_eq!(
                part(&lowered, "/sets/objects/named"),
                r#"{"bucket":"mycontainers{2..5}","key":"myobjects{2..5}"}"#
            );
        }
    }
    // Nothing to write.
    let nothing =
        of_works("<work type=\"init\" workers=\"1\" config=\"containers=r(1,2);objects=r(0,0)\"/>");
    assert_eq!(lowered(&nothing).file.stages.len(), 1);
}

#[test]
fn a_worker_without_anything_to_do_is_refused_where_it_would_fail() {
    let operation = "<operation type=\"read\" config=\"containers=c(1);objects=u(1,3)\"/>";
    let work = |division: &str| {
        of_works(&format!(
            "<work name='m' workers='4' runtime='9' division='{division}'>{operation}</work>"
        ))
    };
    let said = refusal(&work("object"));
    assert!(said.contains("`objects` has 3 numbers for 4 workers of work `m`"), "{said}");
    lowered(&work("none"));
    lowered(&work("container"));
}

#[test]
fn names_have_prefixes_and_suffixes() {
    let config = "cprefix=a{b;csuffix=-c;oprefix=d/e_;osuffix=}.jpg;containers=c(0);objects=u(1,2)";
    let lowered =
        lowered(&of_works(&work(&format!("<operation type=\"read\" config=\"{config}\"/>"))));
    let named = r#"{"bucket":"a{{b0-c","key":"d/e_{1..2}}}.jpg"}"#;
    assert_eq!(part(&lowered, "/sets/objects/named"), named);
    let empty = "cprefix=;oprefix=;containers=u(1,2);objects=c(7)";
    let lowered =
        self::lowered(&of_works(&work(&format!("<operation type=\"read\" config=\"{empty}\"/>"))));
    assert_eq!(part(&lowered, "/sets/objects/named"), r#"{"bucket":"{1..2}","key":"7"}"#);
}

#[test]
fn sizes_are_decimal_and_drawn_in_units() {
    for (sizes, expected) in [
        ("c(64)KB", r#""64000B""#),
        ("c(0)B", r#""0B""#),
        ("c(1)GB", r#""1000000000B""#),
        ("c(4,9)MB", r#""4000000B""#),
        ("u(1,10)MB", r#"{"steps":{"unit":"1000000B","numbers":[{"1..10":1}]}}"#),
        ("u(7,7)B", r#""7B""#),
        ("r(1,3)KB", r#"{"steps":{"unit":"1000B","numbers":[{"1..3":1}]}}"#),
        ("s(1,3)KB", r#"{"steps":{"unit":"1000B","numbers":[{"1..3":1}]}}"#),
        ("h(5|9|2,1|4|1)KB", r#"{"steps":{"unit":"1000B","numbers":[{"1..4":1},{"5..9":2}]}}"#),
        ("c(4)KiB", r#""4KiB""#),
        ("u(1,2)MiB", r#"{"steps":{"unit":"1MiB","numbers":[{"1..2":1}]}}"#),
    ] {
        let config = format!("containers=c(1);objects=c(1);sizes={sizes}");
        let lowered =
            lowered(&of_works(&work(&format!("<operation type=\"write\" config=\"{config}\"/>"))));
        assert_eq!(part(&lowered, "/sets/objects/size"), expected, "{sizes}");
    }
}

#[test]
fn writes_say_their_own_sizes_names_and_content() {
    let operation = |ratio: u32, kind: &str, config: &str| {
        format!(
            "<operation type=\"{kind}\" ratio=\"{ratio}\" config=\"containers=u(1,2);{config}\"/>"
        )
    };
    let text = of_stages(&format!(
        "<storage type='none'/><workflow><workstage name='p'><work type='prepare' workers='1' \
         config='containers=r(1,2);objects=r(1,9);sizes=c(1)KB'/></workstage>\
         <workstage name='m'>{}</workstage></workflow>",
        work(
            &[
                operation(40, "read", "objects=u(1,9)"),
                operation(20, "write", "objects=u(1,9);sizes=c(1)KB"),
                operation(20, "write", "objects=u(11,19);sizes=u(1,2)KB"),
                operation(10, "write", "objects=u(1,9);sizes=c(1)KB;content=zero"),
                operation(10, "read", "objects=u(2,3);hashCheck=TRUE"),
            ]
            .concat()
        )
    ));
    let lowered = lowered(&text);
    check_part(
        &lowered,
        "/stages/1/jobs/0/work/objects",
        r#"[{"get":"objects","weight":40,"name":"1-read-read"},{"put":"objects","weight":20,
            "name":"1-write-write"},{"put":"objects","weight":20,
            "size":{"steps":{"unit":"1000B","numbers":[{"1..2":1}]}},"keys":"myobjects{11..19}",
            "name":"2-write-write"},{"put":"objects-2","weight":10,"name":"3-write-write"},
            {"get":"objects-3","weight":10,"name":"2-read-read"}]"#,
    );
    assert_eq!(part(&lowered, "/sets/objects-2/content"), "\"zero\"");
    assert_eq!(part(&lowered, "/sets/objects-3/hash_check"), "true");
    // What is only read is no reason to ask.
    assert!(!part(&lowered, "/sets/objects-3").contains("touch"));
}

#[test]
fn limits_of_a_work() {
    let read = "<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/>";
    let job = |attributes: &str| {
        let work = format!("<work name=\"m\" workers=\"4\" {attributes}>{read}</work>");
        part(&lowered(&of_works(&work)), "/stages/0/jobs/0")
    };
    for (attributes, expected) in [
        ("runtime=\"30\"", r#""duration":"30s","max_error_rate":"20%""#),
        (
            "runtime=\"30\" rampup=\"5\" rampdown=\"7\"",
            r#""duration":"30s","ramp":"5s","ramp_down":"7s""#,
        ),
        ("totalOps=\"101\"", r#""workers":4,"ops":101,"max"#),
        ("totalOps=\"3\" rampup=\"9\"", r#""workers":4,"ops":3,"max"#),
        ("totalBytes=\"5000000000\"", r#""workers":4,"bytes":"5000000000B","max"#),
        (
            "totalOps=\"8\" totalBytes=\"9\" runtime=\"1\"",
            r#""duration":"1s","ops":8,"bytes":"9B""#,
        ),
        ("runtime=\"1\" afr=\"0\"", r#""max_error_rate":"0%""#),
        ("runtime=\"1\" afr=\"12345\"", r#""max_error_rate":"1.2345%""#),
        ("runtime=\"1\" maxIOPS=\"100\"", r#""pacing":{"capped":"100/s"}"#),
        (
            "runtime=\"1\" maxBW=\"4000\"",
            r#""pacing":{"capped_each":{"read":"1000B/s","write":"1000B/s"}}"#,
        ),
        ("runtime=\"1\" driver=\"d1\"", r#""agent":"d1""#),
    ] {
        let job = job(attributes);
        assert!(job.contains(expected), "{expected} in {job}");
    }
    for none in ["none", ""] {
        assert!(!job(&format!("runtime=\"1\" driver=\"{none}\"")).contains("agent"));
    }
}

#[test]
fn a_work_is_cut_in_one_way() {
    let text = of_works(
        "<work name=\"m\" workers=\"2\" runtime=\"9\"><operation type=\"read\" ratio=\"50\" \
         division=\"object\" config=\"containers=c(1);objects=u(1,9)\"/><operation type=\"read\" \
         ratio=\"50\" config=\"containers=c(1);objects=u(1,9)\"/></work>",
    );
    let said = refusal(&text);
    assert!(
        said.contains("work `m` cuts its operations among workers in different ways"),
        "{said}"
    );
}

#[test]
fn files_of_a_directory_are_written_under_their_names() {
    for (letter, pick) in [("s", "sequential"), ("r(1,9)", "sequential"), ("u", "uniform")] {
        let config = format!(
            "cprefix=cont;containers=u(1,2);fileselection={letter};files=/data/x/;hashCheck=true"
        );
        let lowered = lowered(&of_works(&work(&format!(
            "<operation type=\"filewrite\" config=\"{config}\"/>"
        ))));
        check_part(
            &lowered,
            "/sets/objects",
            r#"{"named":{"bucket":"cont{1..2}","files":"/data/x/"},"touch":true,"shared":true,
            "hash_check":true}"#,
        );
        let op = part(&lowered, "/stages/0/jobs/0/work/objects/0");
        assert!(op.starts_with(r#"{"put":"objects","weight":100"#), "{op}");
        // Numbers stand for files that are not counted yet.
        let expected = if pick == "uniform" {
            ""
        } else {
            r#""pick":{"bucket":"uniform","key":"sequential"}"#
        };
        assert!(op.contains(expected), "{op}");
    }
}
