//! Tests of the spec: what is refused, and with which words.

use super::*;

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

fn open(rate: &str, arrivals: &str, max_in_flight: u32) -> PacingSpec {
    PacingSpec::Open { rate: rate.to_owned(), arrivals: arrivals.to_owned(), max_in_flight }
}

#[test]
fn every_refusal_names_its_field() {
    type Change = fn(&mut WorkloadSpec);
    let cases: [(&str, Change); 25] = [
        ("schema", |s| s.schema = "plimsoll.workload/9".to_owned()),
        ("concurrency", |s| s.concurrency = 0),
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
        assert!(spec.validate("r", None).is_ok());
        change(&mut spec);
        assert_eq!(spec.validate("r", None).unwrap_err().field, field);
    }
}

#[test]
fn a_delete_run_needs_four_batches_a_worker() {
    let mut spec = spec(&[("DELETE", 1)]);
    spec.measure.delete_batch = Some(7);
    let refused = spec.validate("r", None).unwrap_err();
    assert_eq!(
        refused.reason,
        "100 objects are too few: 4 workers deleting 7 at a time need 112, four batches each"
    );
    spec.objects.count = 112;
    assert!(spec.validate("r", None).is_ok());
    spec.measure.delete_batch = Some(1_001);
    assert_eq!(spec.validate("r", None).unwrap_err().field, "measure.delete_batch");
}

#[test]
fn yaml_comes_back_the_same_and_strangers_are_refused() {
    let mut spec = spec(&[("GET", 45), ("PUT", 15)]);
    spec.objects.size = SizeSpec::LogUniform { min_bytes: 1, max_bytes: 9 };
    spec.pacing = PacingSpec::Capped { ops_per_sec: 12.5 };
    assert!(!spec.to_yaml().contains("steady") && !spec.to_yaml().contains("until"));
    spec.measure.steady = Some(SteadySpec { window_ns: 15_000_000_000, percent: 7.5 });
    spec.measure.until = vec!["ci(p99)<=5%".to_owned()];
    let yaml = spec.to_yaml();
    assert_eq!(serde_saphyr::from_str::<WorkloadSpec>(&yaml).unwrap(), spec, "{yaml}");
    assert!(!yaml.contains("overwrite"), "{yaml}");
    spec.measure.overwrite = true;
    spec.pacing = open("1/s..9/s over 2m", "poisson", 7);
    let yaml = spec.to_yaml();
    assert_eq!(serde_saphyr::from_str::<WorkloadSpec>(&yaml).unwrap(), spec, "{yaml}");
    let strange = format!("{yaml}\nconcurency: 5\n");
    assert!(serde_saphyr::from_str::<WorkloadSpec>(&strange).is_err());
}

#[test]
fn an_open_loop_has_defaults_and_becomes_a_schedule() {
    let yaml = |spec: &WorkloadSpec| {
        spec.to_yaml().replace("pacing: closed", "pacing:\n  open:\n    rate: 1k/s")
    };
    for operation in ["GET", "LIST", "DELETE"] {
        let spec: WorkloadSpec = serde_saphyr::from_str(&yaml(&spec(&[(operation, 1)]))).unwrap();
        assert_eq!(spec.pacing, open("1k/s", "constant", 1_024));
        let Pacing::Open(open) = spec.validate("r", None).unwrap().pacing else {
            panic!("{spec:?}")
        };
        assert_eq!((open.profile.peak(), open.arrivals), (1_000.0, ArrivalLaw::Constant));
        assert_eq!(open.max_in_flight.get(), 1_024);
    }
}

#[test]
fn content_of_existing_objects_is_not_claimed_to_be_checked() {
    let mut spec = spec(&[("GET", 1)]);
    spec.objects.existing = Some(ExistingSpec { limit: None, recursive: true });
    assert_eq!(spec.validate("r", Some(vec![])).unwrap().verify, Verify::LengthOnly);
}

#[test]
fn all_untils_are_one_rule_and_a_steady_throughput_is_another() {
    let mut spec = spec(&[("GET", 1)]);
    assert_eq!(spec.validate("r", None).unwrap().stop_rules, []);
    spec.measure.steady = Some(SteadySpec { window_ns: 15_000_000_000, percent: 7.5 });
    spec.measure.until = vec!["ci(p99)<=5%".to_owned(), "ci(rate)<=1%".to_owned()];
    let rules = spec.validate("r", None).unwrap().stop_rules;
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
        let field = spec.validate("r", None).err().map(|refused| refused.field);
        assert_eq!(field, (!moves).then_some("measure.until".into()), "{operation}");
    }
}
