//! What is taken out of a time line on its way, and what stays, are the whole.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{
    EndpointId, Moment, OpKind, PackedOp, SeriesKey, SharedClock, StageId, StageKind, WallTime,
};
use plimsoll_stats::{INTERVALS_PER_STRETCH, Sample, Timeline, Totals};
use plimsoll_workload::data::Generator;

use super::*;
use crate::instrument_tests::{Answer, Scripted};
use crate::testing::Laid;
use crate::{
    EngineConfig, EngineError, KeptOps, Live, OpSink, OpSinkError, PastSink, StageContext,
    StageOutcome, StopFlag, VirtualTime, run_stage,
};

const SECOND: u64 = 1_000_000_000;
const STRETCH_NS: u64 = SECOND * INTERVALS_PER_STRETCH as u64;

/// Keeps the past, as long as there is room for another part.
struct Keeping {
    parts: Vec<Timeline<SeriesKey>>,
    room: usize,
}

impl OpSink for Keeping {
    fn append(&mut self, _: &[PackedOp]) -> Result<(), OpSinkError> {
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        Some(self)
    }
}

impl PastSink for Keeping {
    fn keep(&mut self, past: &Timeline<SeriesKey>) -> Result<(), OpSinkError> {
        if self.parts.len() == self.room {
            return Err(OpSinkError("no room".into()));
        }
        self.parts.push(past.clone());
        Ok(())
    }
}

/// Runs half an hour of four workers, some of whose operations last for minutes.
fn run(sink: &mut dyn OpSink) -> Result<StageOutcome, EngineError> {
    let time = Arc::new(VirtualTime::new());
    let clock: SharedClock = Arc::clone(&time) as SharedClock;
    let work = "work: {objects: [{get: o, weight: 3}, {put: o}]}";
    let workload = Laid::of("count: 32, size: 1000", 4, work, "duration: 30m");
    let (live, generator) = (Live::new(1), Arc::new(Generator::new(workload.seed.0)));
    let context = StageContext {
        clock: &clock,
        virtual_time: Some(&time),
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
        wall_epoch: WallTime::from_unix_ns(0),
        begins_at: None,
    };
    let script = |number: u64| {
        let seconds = if number % 40 == 7 { 250 } else { 2 };
        (Duration::from_secs(seconds), Answer::Right)
    };
    let driver = Scripted { script, generator: Arc::clone(&generator) };
    let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(3_600), retries: 0 };
    let job = workload.alone(&driver, StageKind::Measure);
    let work = workload.stage_of(StageId(1), StageKind::Measure, job);
    run_stage(&work, &config, &context, sink)
}

#[test]
fn what_a_sink_keeps_and_the_rest_are_the_time_line_of_one_that_keeps_nothing() {
    let whole = run(&mut KeptOps::default()).unwrap();
    let mut sink = Keeping { parts: Vec::new(), room: usize::MAX };
    let mut kept = run(&mut sink).unwrap();
    assert_eq!((kept.ops_count, kept.stream_hash), (whole.ops_count, whole.stream_hash));
    assert_eq!(kept.totals(), whole.totals());
    assert_eq!(whole.kept, Totals::default());
    // Of half an hour what is still in memory at its end: the last operations end up to five
    // minutes after it, at which nothing was sent before, and reach five minutes back; two minutes
    // are open, and one waits for other threads to reach it.
    let minutes = |timeline: &Timeline<SeriesKey>| -> Vec<usize> {
        timeline.series().flat_map(|(_, series)| series.stretches()).map(|(at, _)| at).collect()
    };
    let last = minutes(&whole.timeline).into_iter().max().unwrap();
    assert!(minutes(&kept.timeline).iter().all(|minute| minute + 14 > last));
    // All workers wait for 250 s of every 328 at once, and a minute is sent when the next operation
    // ends: once in each of the five whole rounds at least.
    assert!(sink.parts.len() >= 5, "{}", sink.parts.len());
    // Operations of minutes give their shares to minutes that were kept before.
    let all: Vec<usize> = sink.parts.iter().flat_map(minutes).collect();
    assert!(!all.is_sorted());
    sink.parts.iter().for_each(|part| kept.timeline.merge(part));
    kept.timeline.close();
    assert!(kept.timeline.series().eq(whole.timeline.series()));
}

#[test]
fn a_sink_that_cannot_keep_the_past_ends_the_stage() {
    let mut sink = Keeping { parts: Vec::new(), room: 3 };
    let error = run(&mut sink).unwrap_err();
    assert!(matches!(error, EngineError::Sink(_)), "{error}");
    assert_eq!(sink.parts.len(), 3);
}

#[test]
fn a_thread_whose_recorder_is_away_keeps_what_finds_no_room() {
    let mut sink = Keeping { parts: Vec::new(), room: usize::MAX };
    let (sender, mut past) = Past::of(&mut sink);
    let sender = sender.unwrap();
    let key = SeriesKey { stage: StageId(0), kind: OpKind::Get, endpoint: EndpointId(0) };
    let mut timeline = Timeline::of_seconds();
    let minutes = WAITING_MAX as u64 + 50;
    let mut record = |minute: u64| {
        let start_ns = minute * STRETCH_NS;
        let op = Sample {
            start_ns,
            end_ns: start_ns + minute,
            latency_ns: minute,
            ttfb_ns: None,
            bytes: 1,
            objects: 1,
            outcome: 0,
        };
        timeline.record_and(key, &op, |timeline| sender.send(timeline));
    };
    (0..minutes).for_each(&mut record);
    past.hand_on(&mut sink).unwrap();
    let (first, mut kept) = (sink.parts.len(), Totals::default());
    record(minutes);
    past.hand_on(&mut sink).unwrap();
    // One part has all for which there was no room.
    assert_eq!((first, sink.parts.len()), (WAITING_MAX - 1, WAITING_MAX));
    let (mut rest, sums) = past.finish();
    sink.parts.iter().for_each(|part| kept.add(part));
    assert_eq!(kept, sums);
    rest.merge(&timeline);
    rest.close();
    kept.add(&rest);
    let (_, total) = kept.iter().next().unwrap();
    assert_eq!(total.cell.ended[0], minutes + 1);
    assert_eq!(total.times.latency.sum(), u128::from(minutes * (minutes + 1) / 2));
}
