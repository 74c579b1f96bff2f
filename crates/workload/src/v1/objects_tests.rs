//! Tests of the spec: what is refused, and with which words.

use std::time::Duration;

use super::*;
use crate::data::DataRule;
use crate::plan::{JobPacing, Plan, SetIndex, WorkloadFile, read_as, yaml_of};
use crate::testing::Laid;
use crate::{DataFileSpec, Pacing, StopRule, Verify};

pub(crate) fn spec(operations: &[(&str, u32)]) -> WorkloadSpec {
    WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: "s3-test".to_owned(),
        seed: 42,
        concurrency: 4,
        keys: KeysSpec { prefix: String::new(), per_worker: true },
        objects: ObjectsSpec {
            count: 100,
            size: SizeSpec::FixedBytes(1_000),
            ..ObjectsSpec::default()
        },
        measure: MeasureSpec {
            operations: operations
                .iter()
                .map(|(op, weight)| OpWeightSpec { op: (*op).to_owned(), weight: *weight })
                .collect(),
            duration_ns: 1_000_000_000,
            ..MeasureSpec::default()
        },
        pacing: PacingSpec::Closed,
        verify: true,
    }
}

fn plan(spec: &WorkloadSpec) -> Plan {
    WorkloadFile::try_from(spec).unwrap().check().unwrap()
}

fn laid(spec: &WorkloadSpec) -> Laid {
    Laid::of_file(&WorkloadFile::try_from(spec).unwrap())
}

fn existing() -> ExistingSpec {
    ExistingSpec { limit: None, recursive: true, destroys: false }
}

fn open(rate: &str, arrivals: &str, max_in_flight: u32) -> PacingSpec {
    PacingSpec::Open { rate: rate.to_owned(), arrivals: arrivals.to_owned(), max_in_flight }
}

#[test]
fn every_refusal_names_its_field() {
    type Change = fn(&mut WorkloadSpec);
    let cases: [(&str, Change); 27] = [
        ("schema", |s| s.schema = "plimsoll.workload/9".to_owned()),
        ("concurrency", |s| s.concurrency = 0),
        ("concurrency", |s| {
            (s.concurrency, s.objects.count) = (100_001, 200_000);
        }),
        ("objects.count", |s| {
            s.objects.count = 100_000_001;
            s.measure.operations.push(OpWeightSpec { op: "PUT".to_owned(), weight: 9 });
            s.measure.operations.push(OpWeightSpec { op: "DELETE".to_owned(), weight: 1 });
        }),
        ("objects.size", |s| s.objects.size = SizeSpec::FixedBytes(0)),
        ("objects.size", |s| s.objects.size = SizeSpec::FixedBytes(6 << 30)),
        ("objects.size", |s| s.objects.size = SizeSpec::Histogram(vec![])),
        ("objects.size", |s| {
            s.objects.size = SizeSpec::LogUniform { min_bytes: 9, max_bytes: 5 };
        }),
        ("objects.count", |s| s.objects.count = 3),
        ("measure.operations", |s| s.measure.operations[0].op = "READ".to_owned()),
        ("measure.operations", |s| s.measure.operations[0].weight = 0),
        ("measure.operations.delete", |s| {
            s.measure.operations.push(OpWeightSpec { op: "DELETE".to_owned(), weight: 1 });
        }),
        ("measure.range", |s| s.measure.range = Some(RangeSpec::FixedBytes(0))),
        ("measure.duration_ns", |s| s.measure.duration_ns = 0),
        ("measure.steady.window_ns", |s| {
            s.measure.steady = Some(SteadySpec { window_ns: 0, percent: 7.5 });
        }),
        ("measure.steady.percent", |s| {
            s.measure.steady = Some(SteadySpec { window_ns: 1, percent: f64::NAN });
        }),
        ("measure.until", |s| s.measure.until = vec!["ci(foo)<=5%".to_owned()]),
        ("pacing.capped", |s| s.pacing = PacingSpec::Capped { ops_per_sec: 0.0 }),
        ("pacing.capped", |s| s.pacing = PacingSpec::Capped { ops_per_sec: f64::NAN }),
        ("pacing.open.rate", |s| s.pacing = open("0/s", "constant", 1)),
        ("pacing.open.rate", |s| s.pacing = open("9/s..0/s over 1m", "constant", 1)),
        ("pacing.open.arrivals", |s| s.pacing = open("9/s", "gauss", 1)),
        ("pacing.open.max_in_flight", |s| s.pacing = open("9/s", "poisson", 0)),
        ("pacing.open.max_in_flight", |s| s.pacing = open("9/s", "poisson", 100_001)),
        // Nothing is written, objects are deleted, or there is nothing to overwrite.
        ("measure.overwrite", |s| s.measure.overwrite = true),
        ("measure.overwrite", |s| {
            s.measure.overwrite = true;
            for op in ["PUT", "DELETE"] {
                s.measure.operations.push(OpWeightSpec { op: op.to_owned(), weight: 1 });
            }
        }),
        ("objects.count", |s| {
            s.measure.overwrite = true;
            s.measure.operations[0].op = "PUT".to_owned();
            s.objects.count = 0;
        }),
    ];
    for (field, change) in cases {
        let mut spec = spec(&[("GET", 1)]);
        assert!(spec.check().is_ok());
        change(&mut spec);
        assert_eq!(spec.check().unwrap_err().field, field);
    }
}

#[test]
fn a_delete_run_needs_four_batches_a_worker() {
    let mut spec = spec(&[("DELETE", 1)]);
    spec.measure.delete_batch = Some(7);
    let refused = spec.check().unwrap_err();
    assert_eq!(
        refused.reason,
        "100 objects are too few: 4 workers deleting 7 at a time need 112, four batches each"
    );
    spec.objects.count = 112;
    assert!(spec.check().is_ok());
    spec.measure.delete_batch = Some(1_001);
    assert_eq!(spec.check().unwrap_err().field, "measure.delete_batch");
}

#[test]
fn yaml_comes_back_the_same_and_strangers_are_refused() {
    let mut spec = spec(&[("GET", 45), ("PUT", 15)]);
    spec.objects.size = SizeSpec::LogUniform { min_bytes: 1, max_bytes: 9 };
    spec.pacing = PacingSpec::Capped { ops_per_sec: 12.5 };
    assert!(!yaml_of(&spec).contains("steady") && !yaml_of(&spec).contains("until"));
    spec.measure.steady = Some(SteadySpec { window_ns: 15_000_000_000, percent: 7.5 });
    spec.measure.until = vec!["ci(p99)<=5%".to_owned()];
    let yaml = yaml_of(&spec);
    assert_eq!(read_as::<WorkloadSpec>("v1", &yaml).unwrap(), spec, "{yaml}");
    assert!(!yaml.contains("overwrite"), "{yaml}");
    spec.measure.overwrite = true;
    spec.pacing = open("1/s..9/s over 2m", "poisson", 7);
    let yaml = yaml_of(&spec);
    assert_eq!(read_as::<WorkloadSpec>("v1", &yaml).unwrap(), spec, "{yaml}");
    let strange = format!("{yaml}\nconcurency: 5\n");
    assert!(read_as::<WorkloadSpec>("v1", &strange).is_err());
}

#[test]
fn an_open_loop_has_defaults_and_becomes_a_schedule() {
    let yaml = |spec: &WorkloadSpec| {
        yaml_of(spec).replace("pacing: closed", "pacing:\n  open:\n    rate: 1k/s")
    };
    for operation in ["GET", "LIST", "DELETE"] {
        let spec: WorkloadSpec = read_as("v1", &yaml(&spec(&[(operation, 1)]))).unwrap();
        assert_eq!(spec.pacing, open("1k/s", "constant", 1_024));
        let JobPacing::Shared(Pacing::Open(open)) = &plan(&spec).stages[1].jobs[0].pacing else {
            panic!("{spec:?}")
        };
        assert_eq!((open.profile.peak(), open.arrivals), (1_000.0, ArrivalLaw::Constant));
        assert_eq!(open.max_in_flight.get(), 1_024);
    }
}

#[test]
fn existing_objects_are_removed_only_where_the_workload_says_so() {
    let mut spec = spec(&[("DELETE", 1)]);
    spec.objects.existing = Some(existing());
    let refused = spec.check().unwrap_err();
    assert_eq!(refused.field, "objects.existing.destroys");
    spec.objects.existing = Some(ExistingSpec { destroys: true, ..existing() });
    assert!(spec.check().is_ok());
}

#[test]
fn content_of_existing_objects_is_not_claimed_to_be_checked() {
    let mut spec = spec(&[("GET", 1)]);
    spec.objects.existing = Some(existing());
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(laid(&spec).measure.verify(SetIndex(0)), Verify::LengthOnly);
}

#[test]
fn all_untils_are_one_rule_and_a_steady_throughput_is_another() {
    let mut spec = spec(&[("GET", 1)]);
    assert_eq!(plan(&spec).stages[1].stop_rules, []);
    spec.measure.steady = Some(SteadySpec { window_ns: 15_000_000_000, percent: 7.5 });
    spec.measure.until = vec!["ci(p99)<=5%".to_owned(), "ci(rate)<=1%".to_owned()];
    assert_eq!(spec.check(), Ok(()));
    let rules = &plan(&spec).stages[1].stop_rules;
    let window = Duration::from_secs(15);
    assert_eq!(rules[0], StopRule::Steady { window, percent: 7.5 });
    let StopRule::Until(precisions) = &rules[1] else { panic!("{rules:?}") };
    assert_eq!(precisions.len(), 2);
}

#[test]
fn a_throughput_is_not_waited_for_where_nothing_moves() {
    for (operation, moves) in [("GET", true), ("PUT", true), ("STAT", false), ("LIST", false)] {
        let mut spec = spec(&[(operation, 1)]);
        spec.measure.until = vec!["ci(throughput)<=5%".to_owned()];
        let field = spec.check().err().map(|refused| refused.field);
        assert_eq!(field, (!moves).then_some("measure.until".into()), "{operation}");
    }
}

fn special(activity: ActivitySpec, count: u64) -> WorkloadSpec {
    let mut spec = spec(&[]);
    spec.measure.activity = activity;
    spec.objects.count = count;
    spec
}

fn activities() -> [WorkloadSpec; 8] {
    [
        special(ActivitySpec::Retention { hold_ns: 1 }, 1),
        special(ActivitySpec::Multipart, 10_000),
        special(ActivitySpec::MultipartPut { parts: 100, part_concurrency: 20 }, 0),
        special(ActivitySpec::Append { parts: 10_000 }, 0),
        special(ActivitySpec::Zip, 10_000),
        special(ActivitySpec::Snowball { members: 50, compress: true }, 0),
        special(ActivitySpec::Fanout { copies: 100 }, 0),
        WorkloadSpec {
            measure: MeasureSpec {
                activity: ActivitySpec::Versioned,
                ..spec(&[("GET", 1), ("DELETE", 9), ("PUT", 1)]).measure
            },
            ..spec(&[])
        },
    ]
}

#[test]
fn every_activity_is_read_and_written() {
    for spec in activities() {
        assert_eq!(spec.check(), Ok(()));
        assert!(!laid(&spec).measure.kinds().is_empty());
        let yaml = yaml_of(&spec);
        assert_eq!(read_as::<WorkloadSpec>("v1", &yaml).unwrap(), spec, "{yaml}");
    }
    let mut spec = spec(&[("GET", 1)]);
    assert!(!yaml_of(&spec).contains("activity") && !yaml_of(&spec).contains("pick"));
    spec.measure.pick = PickSpec::Zipf { theta: 1.2 };
    spec.objects.size = SizeSpec::Lognormal { median_bytes: 4_096, sigma: 1.5 };
    spec.objects.generator =
        GeneratorSpec::Files(vec![DataFileSpec { path: "a".to_owned(), bytes: 7 }]);
    spec.objects.versions = 3;
    let yaml = yaml_of(&spec);
    assert_eq!(read_as::<WorkloadSpec>("v1", &yaml).unwrap(), spec, "{yaml}");
    assert_eq!(spec.check(), Ok(()));
    let laid = laid(&spec);
    assert_eq!(laid.measure.set(SetIndex(0)).data, DataRule::Files { bytes: 7 });
    assert!(laid.measure.is_versioned(SetIndex(0)) && laid.prepare_ops_count() == 300);
}

#[test]
fn what_an_activity_cannot_do_is_refused() {
    type Change = fn(&mut WorkloadSpec);
    let [retention, multipart, put, append, zip, snowball, fanout, versioned] = activities();
    let open_loop: Change = |s| s.pacing = open("9/s", "constant", 1);
    let cases: [(&WorkloadSpec, &str, Change); 27] = [
        (&retention, "measure.activity.retention.hold_ns", |s| {
            s.measure.activity = ActivitySpec::Retention { hold_ns: 0 };
        }),
        (&retention, "objects.count", |s| s.objects.count = 0),
        (&retention, "measure.operations", |s| {
            s.measure.operations = spec(&[("GET", 1)]).measure.operations
        }),
        (&retention, "measure.range", |s| s.measure.range = Some(RangeSpec::Random)),
        (&multipart, "objects.count", |s| s.objects.count = 10_001),
        (&multipart, "objects.size", |s| {
            s.objects.size = SizeSpec::LogUniform { min_bytes: 1, max_bytes: 9 };
        }),
        (&multipart, "objects.size", |s| s.measure.part_bytes_min = Some(5 << 20)),
        (&multipart, "objects.versions", |s| s.objects.versions = 2),
        (&put, "measure.activity.multipart_put.parts", |s| {
            s.measure.activity = ActivitySpec::MultipartPut { parts: 10_001, part_concurrency: 1 };
        }),
        (&put, "measure.activity.multipart_put.part_concurrency", |s| {
            s.measure.activity = ActivitySpec::MultipartPut { parts: 5, part_concurrency: 6 };
        }),
        (&put, "concurrency", |s| {
            s.concurrency = 1_001;
            s.measure.activity = ActivitySpec::MultipartPut { parts: 100, part_concurrency: 100 };
        }),
        (&put, "pacing.open", open_loop),
        (&put, "objects.count", |s| s.objects.count = 1),
        (&put, "measure.pick", |s| s.measure.pick = PickSpec::Sequential),
        (&append, "measure.activity.append.parts", |s| {
            s.measure.activity = ActivitySpec::Append { parts: 0 };
        }),
        (&zip, "objects.count", |s| s.objects.count = 65_536),
        (&zip, "objects.size", |s| s.objects.size = SizeSpec::FixedBytes(1 << 20)),
        (&snowball, "objects.size", |s| s.objects.size = SizeSpec::FixedBytes(10 << 20)),
        (&snowball, "keys.prefix", |s| s.keys.prefix = "p".repeat(140)),
        (&fanout, "measure.activity.fanout.copies", |s| {
            s.measure.activity = ActivitySpec::Fanout { copies: 10_001 };
        }),
        (&versioned, "measure.overwrite", |s| s.measure.overwrite = true),
        (&versioned, "measure.post", |s| s.measure.post = true),
        (&versioned, "measure.pick", |s| s.measure.pick = PickSpec::Zipf { theta: 0.9 }),
        (&versioned, "objects.count", |s| s.objects.count = 3),
        (&versioned, "objects.existing", |s| {
            s.objects.existing = Some(existing());
        }),
        (&versioned, "measure.operations", |s| s.measure.operations.truncate(0)),
        (&versioned, "measure.part_bytes_min", |s| s.measure.part_bytes_min = Some(1)),
    ];
    for (spec, field, change) in cases {
        let mut spec = spec.clone();
        change(&mut spec);
        let refused = spec.check().unwrap_err();
        assert_eq!(refused.field, field, "{refused}");
        assert!(!refused.reason.contains(". ") && !refused.reason.ends_with('.'), "{refused}");
    }
    for spec in [retention, multipart, append, zip, snowball, fanout, versioned] {
        let mut spec = spec;
        open_loop(&mut spec);
        assert!(spec.check().is_ok(), "{}", yaml_of(&spec));
    }
}

#[test]
fn content_and_choice_have_bounds() {
    type Change = fn(&mut WorkloadSpec);
    let cases: [(&str, Change); 14] = [
        ("objects.compress_ratio", |s| s.objects.compress_ratio = Some(0.9)),
        ("objects.compress_ratio", |s| s.objects.compress_ratio = Some(51.0)),
        ("objects.compress_ratio", |s| s.objects.compress_ratio = Some(f64::NAN)),
        ("objects.compress_ratio", |s| {
            s.objects.compress_ratio = Some(2.0);
            s.objects.generator = GeneratorSpec::Zero;
        }),
        ("objects.dedupe_ratio", |s| s.objects.dedupe_ratio = Some(101.0)),
        ("objects.generator", |s| s.objects.generator = GeneratorSpec::Files(Vec::new())),
        ("objects.size", |s| s.objects.size = SizeSpec::List(Vec::new())),
        ("objects.size", |s| s.objects.size = SizeSpec::List(vec![5, 0])),
        ("objects.size", |s| {
            s.objects.size = SizeSpec::Lognormal { median_bytes: 9, sigma: 0.0 };
        }),
        ("objects.versions", |s| s.objects.versions = 0),
        ("objects.versions", |s| {
            s.objects.versions = 2;
            s.measure.operations[0].op = "PUT".to_owned();
        }),
        ("measure.pick.zipf.theta", |s| s.measure.pick = PickSpec::Zipf { theta: 1.0 }),
        ("measure.pick", |s| {
            s.measure.pick = PickSpec::Sequential;
            s.measure.operations.push(OpWeightSpec { op: "PUT".to_owned(), weight: 1 });
        }),
        ("measure.post", |s| s.measure.post = true),
    ];
    for (field, change) in cases {
        let mut spec = spec(&[("GET", 1)]);
        change(&mut spec);
        assert_eq!(spec.check().unwrap_err().field, field);
    }
}
