//! The summary: written and read it is the same, merged in any order it is the same bytes.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;

use plimsoll_model::{EndpointId, ErrorClass, OpKind, SeriesKey, StageId};
use plimsoll_record::{RunDirectory, SummaryWriter};
use plimsoll_stats::{Sample, Timeline};
use proptest::prelude::*;

use crate::{new_run, seal_anew};

const SECOND: u64 = 1_000_000_000;

fn key(stage: u8, kind: OpKind, endpoint: u16) -> SeriesKey {
    SeriesKey { stage: StageId(stage), kind, endpoint: EndpointId(endpoint) }
}

fn written(directory: &RunDirectory, timeline: &mut Timeline<SeriesKey>) -> String {
    SummaryWriter::new(directory).write(timeline).unwrap();
    fs::read_to_string(directory.path().join("summary.json")).unwrap()
}

#[test]
fn a_small_summary_reads_as_documented() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut timeline = Timeline::new(0, SECOND);
    let get = key(1, OpKind::Get, 0);
    let sample = Sample {
        start_ns: 2 * SECOND,
        end_ns: 2 * SECOND + 1_000,
        latency_ns: 1_500,
        ttfb_ns: None,
        bytes: 4_096,
        objects: 1,
        outcome: ErrorClass::Ok as u8,
    };
    timeline.record(get, &sample);
    timeline.record(get, &Sample { outcome: ErrorClass::Server as u8, ..sample });
    // Latencies below 2,048 ns have bins of their own: 1500 is 1500, and its square is 2250000.
    let expected = concat!(
        r#"{"schema":"plimsoll.summary/1","origin_ns":0,"interval_ns":1000000000,"#,
        r#""lanes":[{"stage":1,"kind":"GET","endpoint":0,"cells":["#,
        r#"{"interval_index":2,"ended":{"ok":1,"server":1},"bytes":4096,"#,
        r#""objects_micro":1000000}],"times":[{"interval_index_first":0,"latency_ns":"#,
        r#"{"count":1,"sum":"1500","sum_of_squares":"2250000","#,
        r#""min":1500,"max":1500,"bins":[[1500,1]]},"ttfb_ns":null}]}],"#,
        r#""checksum":"crc64-nvme:0000000000000000"}"#,
        "\n"
    );
    let mut expected = expected.as_bytes().to_vec();
    seal_anew(&mut expected);
    assert_eq!(written(&directory, &mut timeline), String::from_utf8(expected).unwrap());
}

#[test]
fn a_summary_that_cannot_be_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let histogram = r#"{"count":2,"sum":"3","sum_of_squares":"5","min":1,"max":2,"bins":[[1,1]]}"#;
    let cell = |fields: &str| {
        format!(
            r#"{{"schema":"plimsoll.summary/1","origin_ns":0,"interval_ns":1,"lanes":[{{"stage":0,
            "kind":"GET","endpoint":0,"cells":[{{"bytes":0,"objects_micro":0,{fields}}}],
            "times":[]}}]}}"#
        )
    };
    let times = |fields: &str| {
        format!(
            r#"{{"schema":"plimsoll.summary/1","origin_ns":0,"interval_ns":1,"lanes":[{{"stage":0,
            "kind":"GET","endpoint":0,"cells":[],"times":[{{{fields}}}]}}]}}"#
        )
    };
    let cases = [
        (cell(r#""interval_index":0,"ended":{"lost":1}"#), "`lost` is no class of outcomes"),
        (cell(r#""interval_index":99999999999,"ended":{}"#), "is beyond any run"),
        (
            times(&format!(r#""interval_index_first":0,"latency_ns":{histogram}"#)),
            "the bins do not add up to the count 2",
        ),
        (times(r#""interval_index_first":5"#), "no stretch of intervals begins at 5"),
        (r#"{"schema":"plimsoll.summary/9"}"#.to_owned(), "has the schema `plimsoll.summary/9`"),
        ("{".to_owned(), "summary.json is damaged"),
    ];
    for (text, reason) in cases {
        fs::write(place.path().join("summary.json"), text).unwrap();
        let refused = directory.read_summary().map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn written_and_read_it_is_equal_and_merged_in_any_order_the_same_bytes(
        ops in prop::collection::vec(
            (0u64..130 * SECOND, 0u64..3 * SECOND, any::<u32>(), 0u8..14, 0usize..5, 0u16..3),
            0..80,
        ),
        shards in 1usize..5,
    ) {
        let mut whole = Timeline::new(SECOND / 2, SECOND);
        let mut parts = vec![whole.clone(); shards];
        for (index, &(start_ns, took, bytes, outcome, kind, endpoint)) in ops.iter().enumerate() {
            let key = key((index % 2) as u8, OpKind::ALL[kind], endpoint);
            let sample = Sample {
                start_ns,
                end_ns: start_ns + took,
                latency_ns: took,
                ttfb_ns: (index % 3 == 0).then_some(took / 2),
                bytes: bytes.into(),
                objects: 1,
                outcome,
            };
            whole.record(key, &sample);
            parts[index % shards].record(key, &sample);
        }
        let place = tempfile::tempdir().unwrap();
        let directory = new_run(place.path());
        let bytes = written(&directory, &mut whole);
        let mut back = directory.read_summary().unwrap();
        back.close();
        prop_assert!(back.series().eq(whole.series()));
        prop_assert_eq!(back.origin_ns(), whole.origin_ns());
        prop_assert_eq!(back.interval_ns(), whole.interval_ns());
        prop_assert_eq!(&written(&directory, &mut back), &bytes);

        let mut forward = Timeline::new(SECOND / 2, SECOND);
        parts.iter().for_each(|part| forward.merge(part));
        prop_assert_eq!(&written(&directory, &mut forward), &bytes);
        let mut backward = Timeline::new(SECOND / 2, SECOND);
        parts.iter().rev().for_each(|part| backward.merge(part));
        prop_assert_eq!(&written(&directory, &mut backward), &bytes);
    }

    #[test]
    fn whatever_was_kept_on_the_way_it_is_the_same_bytes(
        ops in prop::collection::vec(
            (0u64..900 * SECOND, 0u64..300 * SECOND, any::<u32>(), 0u8..14, 0usize..5, 0u16..3),
            0..80,
        ),
        sorted in any::<bool>(),
        threads in 1usize..4,
        // After which operations which thread, or all of what is together, hands what on.
        cuts in prop::collection::vec((0usize..80, 0usize..4, 0usize..17), 0..40),
    ) {
        let mut ops = ops;
        if sorted {
            ops.sort_by_key(|(start, took, ..)| start + took);
        }
        let place = tempfile::tempdir().unwrap();
        let (whole_run, kept_run) =
            (new_run(&place.path().join("whole")), new_run(&place.path().join("kept")));
        let mut whole = Timeline::new(0, SECOND);
        let mut parts = vec![whole.clone(); threads];
        let mut waiting = whole.clone();
        let mut writer = SummaryWriter::new(&kept_run);
        for (index, &(start_ns, took, bytes, outcome, kind, endpoint)) in ops.iter().enumerate() {
            let key = key((index % 2) as u8, OpKind::ALL[kind], endpoint);
            let sample = Sample {
                start_ns,
                end_ns: start_ns + took,
                latency_ns: took,
                ttfb_ns: (index % 3 == 0).then_some(took / 2),
                bytes: bytes.into(),
                objects: 1,
                outcome,
            };
            whole.record(key, &sample);
            parts[index % threads].record(key, &sample);
            for &(_, who, before) in cuts.iter().filter(|(at, ..)| *at == index) {
                match parts.get_mut(who) {
                    Some(part) => {
                        part.split_before(before).iter().for_each(|past| waiting.merge(past));
                    }
                    None => {
                        let past = waiting.split_before(before);
                        past.iter().for_each(|past| writer.keep(past).unwrap());
                    }
                }
            }
        }
        parts.iter().for_each(|part| waiting.merge(part));
        let expected = written(&whole_run, &mut whole);
        writer.write(&mut waiting).unwrap();
        let kept = fs::read_to_string(kept_run.path().join("summary.json")).unwrap();
        prop_assert_eq!(&kept, &expected);
        // Of a run that is settled a second time, too.
        writer.write(&mut waiting).unwrap();
        let again = fs::read_to_string(kept_run.path().join("summary.json")).unwrap();
        prop_assert_eq!(&again, &expected);
    }
}
