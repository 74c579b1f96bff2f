//! Whatever is written, reading and checking end with an answer; what is printed is read again.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::example_tests::examples;
use super::spec::*;
use super::tree::Tree;
use super::*;

/// Values that are put where something else stood.
fn stranger() -> impl Strategy<Value = Tree> {
    let texts = vec![
        "",
        "o",
        "x",
        "0s",
        "5m",
        "584y",
        "0B",
        "1B",
        "16EiB",
        "4KiB..1B",
        "0%",
        "1e9%",
        "1/s",
        "0.000001/s",
        "100/s..5/s over 1ns",
        "c{1..9}",
        "{1..18446744073709551615}",
        "uniform",
        "zipf",
        "closed",
        "steady",
        "ci(p99)<=5%",
        "../..",
        "/",
        "\u{0}",
        "å\n- b: #",
        "true",
        "~",
    ];
    prop_oneof![
        select(texts).prop_map(|text| Tree::Text(text.to_owned())),
        select(vec![-1i128, 0, 1, 2, 100, 257, 1 << 31, 1 << 32, 1 << 40, (1 << 64) - 1, 1 << 64])
            .prop_map(Tree::Int),
        select(vec![0.0, -1.0, 0.5, 1.0, 1e300, f64::NAN, f64::INFINITY]).prop_map(Tree::Float),
        any::<bool>().prop_map(Tree::Bool),
        Just(Tree::Null),
        Just(Tree::List(Vec::new())),
        Just(Tree::Map(Vec::new())),
    ]
}

fn count(tree: &Tree) -> usize {
    1 + match tree {
        Tree::List(items) => items.iter().map(count).sum(),
        Tree::Map(fields) => fields.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

/// Puts `other` in the place of node `at`, counted from the top.
fn replace(tree: &mut Tree, at: &mut usize, other: &Tree) {
    if *at == 0 {
        *tree = other.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    let inner: Vec<&mut Tree> = match tree {
        Tree::List(items) => items.iter_mut().collect(),
        Tree::Map(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    for each in inner {
        if *at == usize::MAX {
            return;
        }
        replace(each, at, other);
    }
}

fn texts() -> Vec<Tree> {
    examples().iter().map(|(_, text)| super::read::parse("t", text).unwrap()).collect()
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![(1u64..1 << 33).prop_map(Size), (0u32..33).prop_map(|shift| Size(1 << shift))]
}

fn size_range() -> impl Strategy<Value = SizeRange> {
    (1u64..1 << 20, 0u64..1 << 20).prop_map(|(min, more)| SizeRange { min, max: min + more })
}

fn shares() -> impl Strategy<Value = Shares<Size>> {
    let share = (size(), 0u64..100).prop_map(|(value, weight)| Share { value, weight });
    prop::collection::vec(share, 0..4).prop_map(Shares)
}

fn sizes() -> impl Strategy<Value = SizeSpec> {
    prop_oneof![
        size().prop_map(SizeSpec::Fixed),
        size_range().prop_map(|range| SizeSpec::Drawn(SizeLaw::Uniform(range))),
        size_range().prop_map(|range| SizeSpec::Drawn(SizeLaw::LogUniform(range))),
        (size(), 0.0..9.0f64)
            .prop_map(|(median, sigma)| SizeSpec::Drawn(SizeLaw::Lognormal { median, sigma })),
        shares().prop_map(|shares| SizeSpec::Drawn(SizeLaw::Shares(shares))),
        shares().prop_map(|shares| SizeSpec::Drawn(SizeLaw::Histogram(shares))),
        prop::collection::vec(size(), 0..4).prop_map(|list| SizeSpec::Drawn(SizeLaw::List(list))),
        (size(), numbers()).prop_map(|(unit, numbers)| {
            SizeSpec::Drawn(SizeLaw::Steps(SizeSteps { unit, numbers }))
        }),
    ]
}

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(|ns| Time(std::time::Duration::from_nanos(ns)))
}

fn numbers() -> impl Strategy<Value = Shares<NumberRange>> {
    let range = (1u64..50, 0u64..50).prop_map(|(from, more)| NumberRange { from, to: from + more });
    let share = (range, 0u64..9).prop_map(|(value, weight)| Share { value, weight });
    prop::collection::vec(share, 0..3).prop_map(Shares)
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Uniform),
        Just(Choice::Sequential),
        Just(Choice::Own),
        (0.0..3.0f64).prop_map(Choice::Zipf),
        numbers().prop_map(Choice::Shares),
    ]
}

fn pick() -> impl Strategy<Value = Option<PickSpec>> {
    prop::option::of(prop_oneof![
        choice().prop_map(PickSpec::Member),
        (choice(), choice()).prop_map(|(bucket, key)| PickSpec::InBucket { bucket, key }),
    ])
}

fn op() -> impl Strategy<Value = OpSpec> {
    let version = || select(vec![VersionPick::Newest, VersionPick::Uniform]);
    let range = prop::option::of(prop_oneof![
        Just(RangeSpec::Random),
        size().prop_map(RangeSpec::Fixed),
        size_range().prop_map(|range| RangeSpec::Drawn(LengthLaw::Uniform(range))),
        (size(), size()).prop_map(|(length, of)| RangeSpec::Within(RangeWithin { length, of })),
    ]);
    let keys =
        || prop::option::of((1u64..9).prop_map(|to| format!("k{{1..{to}}}").parse().unwrap()));
    let get = (0u32..9, pick(), range, version(), keys()).prop_map(
        |(weight, pick, range, version, keys)| {
            let name = (weight == 3).then(|| "label: 'x'".to_owned());
            OpSpec::Get(GetOp {
                get: "o".into(),
                weight,
                pick,
                range,
                version,
                buckets: None,
                keys,
                name,
            })
        },
    );
    let put_as = prop::option::of(select(vec![PutAs::New, PutAs::Overwrite, PutAs::Version]));
    let put =
        (1u32..9, pick(), put_as, prop::option::of(sizes()), prop::option::of(time()), keys())
            .prop_map(|(weight, pick, put_as, size, remove_after, keys)| {
                let (put, name, buckets) = ("o".into(), None, None);
                OpSpec::Put(PutOp {
                    put,
                    weight,
                    pick,
                    put_as,
                    size,
                    remove_after,
                    part: (weight == 5).then_some(Size(5 << 20)),
                    buckets,
                    keys,
                    name,
                })
            });
    let delete =
        (1u32..9, pick(), 0u32..1_002, version()).prop_map(|(weight, pick, batch, version)| {
            let (delete, name, buckets, keys) = ("o".into(), None, None, None);
            OpSpec::Delete(DeleteOp { delete, weight, pick, batch, version, buckets, keys, name })
        });
    let list = (1u32..6_000, prop::option::of(0u32..3), any::<[bool; 3]>()).prop_map(
        |(page, pages, [versions, by_page, account])| {
            let pick = (page == 7)
                .then_some(PickSpec::InBucket { bucket: Choice::Sequential, key: Choice::Uniform });
            let (list, weight, buckets, name) = ("o".into(), 1, None, None);
            let op = ListOp {
                list,
                weight,
                page,
                pages,
                versions,
                by_page,
                account,
                pick,
                buckets,
                name,
            };
            OpSpec::List(op)
        },
    );
    prop_oneof![get, put, delete, list]
}

fn work() -> impl Strategy<Value = WorkSpec> {
    let blocks = (size(), shares(), 0.0..100.0f64, any::<[bool; 4]>()).prop_map(
        |(block, shares, percent, [reads, writes, direct, repeats])| {
            let read =
                ReadBlocks { block: BlockSizes::Fixed(block), percent: Some(Percent(percent)) };
            let write = WriteBlocks { block: BlockSizes::Drawn(BlockLaw::Shares(shares)) };
            WorkSpec::Blocks(BlocksSpec {
                read: reads.then_some(read),
                write: writes.then_some(write),
                order: BlockOrder::Normal(Percent(percent)),
                direct,
                repeats: Some(repeats),
                ..BlocksSpec::of("f")
            })
        },
    );
    let parts =
        (prop::option::of(0u32..300), size(), 0u32..30).prop_map(|(parts, part, at_once)| {
            let part_min = parts.map(|_| part);
            WorkSpec::Parts(PartsSpec::Put(PutParts {
                put: "o".into(),
                parts,
                part,
                at_once,
                part_min,
            }))
        });
    let fill = (any::<bool>(), size(), any::<bool>()).prop_map(|(both, block, direct)| {
        let sets = if both { vec!["o".to_owned(), "f".to_owned()] } else { vec!["o".to_owned()] };
        WorkSpec::Fill(FillSpec { block, direct, ..FillSpec::of(sets) })
    });
    let remove = (1u32..9).prop_map(|batch| {
        WorkSpec::Remove(RemoveSpec { batch, ..RemoveSpec::of(vec!["o".into()]) })
    });
    let names = (size(), any::<[bool; 2]>()).prop_map(|(bytes, [fsync, shuffled])| {
        let create = "t".to_owned();
        WorkSpec::Names(NamesSpec::Create(CreateNames { create, bytes, fsync, shuffled }))
    });
    let replay = (0.1..9.0f64, 1u32..2_000, any::<bool>());
    let replay = replay.prop_map(|(speed, max_in_flight, closed)| {
        WorkSpec::Replay(ReplaySpec { of: "o".into(), speed, max_in_flight, closed })
    });
    let objects = prop::collection::vec(op(), 0..4).prop_map(WorkSpec::Objects);
    prop_oneof![
        3 => objects, 1 => blocks, 1 => parts, 1 => fill,
        1 => remove, 1 => names, 1 => replay,
    ]
}

fn pacing() -> impl Strategy<Value = PacingSpec> {
    let profile = select(vec!["100/s", "1/s..900/s over 90s", "1/s for 5ms, 7.5/s"]);
    let open = (profile, any::<bool>(), 1u32..2_000).prop_map(|(rate, poisson, max_in_flight)| {
        let law = if poisson { crate::ArrivalLaw::Poisson } else { crate::ArrivalLaw::Constant };
        let rate = RateSpec::Rate(rate.parse().unwrap());
        PacingSpec::Open(OpenSpec { rate, arrivals: Arrivals(law), max_in_flight })
    });
    let step = (0.1..1e6f64, time()).prop_map(|(rate, time)| Step { rate: Rate(rate), time });
    let steps = prop::collection::vec(step, 0..3)
        .prop_map(|steps| PacingSpec::Open(OpenSpec::of(RateSpec::Steps(steps))));
    let each = (0.1..1e9f64).prop_map(|rate| {
        let (read, write) = (Some(Cap::BytesPerSec(rate)), None);
        PacingSpec::CappedEach(CappedEach { read, write, arrivals: Arrivals::default() })
    });
    prop_oneof![
        3 => Just(PacingSpec::Closed),
        1 => (0.1..1e7f64).prop_map(|rate| PacingSpec::Capped(Rate(rate))),
        1 => open,
        1 => steps,
        1 => each,
    ]
}

fn job() -> impl Strategy<Value = JobSpec> {
    let limit = prop::option::of(prop_oneof![
        any::<u64>().prop_map(Limit::All),
        any::<u64>().prop_map(|each| Limit::Each { each }),
    ]);
    let deal = select(vec![
        DealBy::ByMember,
        DealBy::ByBucket,
        DealBy::None,
        DealBy::BucketSlices,
        DealBy::MemberSlices,
    ]);
    let deal = (deal, 0u32..3);
    let delay =
        (time(), time()).prop_map(|(a, b)| TimeRange { min: a.0.min(b.0), max: a.0.max(b.0) });
    (work(), pacing(), 1u32..99, limit, deal, delay, prop::option::of(time()), any::<bool>())
        .prop_map(|(work, pacing, workers, ops, (by, shift), start_delay, duration, named)| {
            JobSpec {
                name: named.then(|| "a job: of - 'mine'".to_owned()),
                pacing,
                ops,
                duration,
                ramp_down: Time(std::time::Duration::from_secs(u64::from(named))),
                start_delay,
                deal: DealSpec { by, shift },
                verify: named.then_some(false),
                max_error_rate: named.then_some(Percent(0.1)),
                agent: named.then(|| "driver1".to_owned()),
                ..JobSpec::of(workers, work)
            }
        })
}

fn file() -> impl Strategy<Value = WorkloadFile> {
    let set = (any::<u32>(), prop::option::of(sizes()), 0u32..4, any::<bool>()).prop_map(
        |(count, size, versions, more)| {
            let mut set = ObjectSet::of(count.into(), size);
            set.versions = versions;
            if more {
                set.keys = KeysSpec { prefix: "a/".into(), per_worker: false, buckets: Some(4) };
                set.content = ContentSpec::Shaped { compress_ratio: Some(1.5), dedupe_ratio: None };
            }
            SetSpec::Objects(set)
        },
    );
    let jobs = prop::collection::vec(job(), 0..3);
    let stage = (jobs, prop::option::of(time()), any::<[bool; 4]>()).prop_map(
        |(jobs, duration, [prepares, if_offered, until, repeat])| {
            let until = if until { vec!["steady".parse().unwrap()] } else { Vec::new() };
            let stage =
                WorkStage { jobs, duration, prepares, if_offered, until, ..WorkStage::default() };
            let stages = vec![StageSpec::Jobs(stage.clone())];
            match repeat {
                true => StageSpec::Repeat(RepeatStage { repeat: RepeatSpec { times: 2, stages } }),
                false => StageSpec::Jobs(stage),
            }
        },
    );
    (set, prop::collection::vec(stage, 0..3), prop::option::of(any::<u64>())).prop_map(
        |(set, stages, seed)| {
            let size = SizeRange { min: 1 << 20, max: 1 << 21 };
            let files = SetSpec::Listed(ListedSet { on: None, names: vec!["x y".into()], size });
            let mut named = NamedSet::of(NamesOf::keys(None, "k{1..9}".parse().unwrap()));
            named.content_seed = seed.unwrap_or(1);
            (named.shared, named.hash_check) = (true, seed.is_some());
            named.part = seed.map(|_| Size(5 << 20));
            let named = SetSpec::Named(named);
            let sets = [("o".to_owned(), set), ("f".to_owned(), files), ("n".to_owned(), named)];
            let sets = sets.into_iter().collect();
            WorkloadFile { seed, ..WorkloadFile::new("any", sets, stages) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_printed_is_read_again(file in file()) {
        let short = file.to_yaml();
        let again = WorkloadFile::from_yaml("short", &short);
        prop_assert_eq!(again.as_ref(), Ok(&file), "{}", short);
        let full = file.to_yaml_full();
        let again = WorkloadFile::from_yaml("full", &full);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{full}")))?;
        let once_more = WorkloadFile::from_yaml("full", &again.to_yaml_full());
        prop_assert_eq!(once_more.as_ref(), Ok(&again));
        match (file.check(), again.check()) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a.fingerprint(), b.fingerprint()),
            (a, b) => prop_assert_eq!(a.err(), b.err()),
        }
    }

    #[test]
    fn examples_with_strangers_in_them_are_answered(
        which in any::<Index>(),
        places in prop::collection::vec((any::<Index>(), stranger()), 1..3),
    ) {
        let examples = texts();
        let mut tree = examples[which.index(examples.len())].clone();
        for (place, other) in &places {
            let mut at = place.index(count(&tree));
            replace(&mut tree, &mut at, other);
        }
        let text = print::print(&tree);
        if let Ok(file) = WorkloadFile::from_yaml("any", &text) {
            let again = WorkloadFile::from_yaml("again", &file.to_yaml());
            prop_assert!(again.is_ok(), "{:?}\n{}", again, text);
            if let Ok(plan) = file.check() {
                let _ = (plan.owed(), plan.fingerprint(), plan.needs(TargetIndex(0)));
            }
        }
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*", more in "[\\[\\]{}:,\\- \n'\"&*!|>a-z0-9]{0,200}") {
        let _ = WorkloadFile::from_yaml("any", &text);
        let _ = WorkloadFile::from_yaml("any", &format!("schema: plimsoll.workload/2\n{more}"));
    }
}

#[test]
fn what_is_nested_deeply_is_refused() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        assert!(WorkloadFile::from_yaml("deep", &text).is_err());
    }
    let mut bombs = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..9 {
        let entries = vec![format!("*a{}", level - 1); 8].join(", ");
        bombs.push_str(&format!("a{level}: &a{level} [{entries}]\n"));
    }
    assert!(WorkloadFile::from_yaml("bomb", &bombs).is_err());
}
