//! A run of a month takes the memory of one of an hour.

use std::fs;

use plimsoll_model::{EndpointId, OpKind, SeriesKey, StageId};
use plimsoll_record::SummaryWriter;
use plimsoll_stats::{INTERVALS_PER_STRETCH, Sample, Timeline};
use plimsoll_testkit::held::{Counting, most_held};

use crate::new_run;

#[global_allocator]
static COUNTING: Counting = Counting;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = SECOND * INTERVALS_PER_STRETCH as u64;
const DAY_MINUTES: u64 = 24 * 60;
const DAYS: u64 = 30;
/// The days with some minutes as at 10,000/s. What is full is at rest or on the disk four minutes
/// later, so that more of them add only to the time of this test.
const FULL_DAYS: [u64; 3] = [0, 1, DAYS - 1];
/// The bins of latencies from 100 µs to 25.6 ms, which are eight doublings of 1,024 bins.
const BINS: u64 = 8 * 1_024;

/// Records a minute of one series of one thread: one success in each bin if it is `full`, else one
/// in all.
///
/// At 10,000/s four series of two threads have 75,000 operations a minute each, nine in a bin if
/// they lie as wide apart as here. A bin takes the same place for one as for nine: in an open
/// histogram 4 B, in a packed one a byte or two, as the codes of 0 and of 8 are a few bits apart.
/// So one in each stands for all. A minute with less takes less, and no longer than it is open.
fn record(timeline: &mut Timeline<SeriesKey>, key: SeriesKey, minute: u64, full: bool) -> Past {
    let mut past = None;
    let count = if full { BINS } else { 1 };
    for number in 0..count {
        let (doubling, bin) = (number / 1_024, number % 1_024);
        let latency_ns = (100_000 << doubling) * (1_024 + bin) / 1_024;
        let end_ns = minute * MINUTE + MINUTE * number / count;
        let sample = Sample {
            start_ns: end_ns.saturating_sub(latency_ns),
            end_ns,
            latency_ns,
            ttfb_ns: full.then_some(latency_ns - 20_000),
            bytes: 4_096 + number,
            objects: 1,
            outcome: u8::from(number == 77),
        };
        timeline.record_and(key, &sample, |timeline| {
            let before = timeline.over_before();
            past = timeline.split_before(before).map(|part| (before, part));
        });
    }
    past
}

/// What a thread took out of its time line, and before which stretch it lay.
type Past = Option<(usize, Timeline<SeriesKey>)>;

#[test]
fn thirty_days_of_ten_thousand_operations_a_second_stay_under_64_mebibytes() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(&place.path().join("run"));
    most_held();
    let begun = most_held();
    let kinds = [OpKind::Get, OpKind::Put, OpKind::Stat, OpKind::Delete];
    let keys = kinds.map(|kind| SeriesKey { stage: StageId(0), kind, endpoint: EndpointId(0) });
    let mut threads = [0; 2].map(|_| Timeline::new(0, SECOND));
    // As the recorder of a stage puts threads together.
    let (mut waiting, mut last) = (Timeline::new(0, SECOND), 0);
    let mut writer = SummaryWriter::new(&directory);
    let mut days = Vec::with_capacity(DAYS as usize);
    for minute in 0..DAYS * DAY_MINUTES {
        let (day, of_day) = (minute / DAY_MINUTES, minute % DAY_MINUTES);
        let full = FULL_DAYS.contains(&day) && (10..15).contains(&of_day);
        for timeline in &mut threads {
            for key in keys {
                let Some((before, part)) = record(timeline, key, minute, full) else { continue };
                waiting.merge(&part);
                if before > last {
                    last = before;
                    let past = waiting.split_before(before - 1);
                    past.iter().for_each(|past| writer.keep(past).unwrap());
                }
            }
        }
        if of_day == DAY_MINUTES - 1 {
            days.push(most_held() - begun);
        }
    }
    threads.iter().for_each(|timeline| waiting.merge(timeline));
    drop(threads);
    writer.write(&mut waiting).unwrap();
    let written = most_held() - begun;

    // The same on each such day, but for how nodes of a map happen to be filled; others have less.
    let is_alike = |day: u64| (days[day as usize] - days[0]).abs() < 16 << 10;
    assert!(FULL_DAYS.into_iter().all(is_alike), "{days:?}");
    assert!(days.iter().all(|held| *held < days[0] + (16 << 10)), "{days:?}");
    println!("{} B at most in a day, {written} B when the summary is written", days[0]);
    assert!(days[0].max(written) < 64 << 20, "{} and {written} in the end", days[0]);
    // The place of each minute of one series takes 24 B, in a list that grows by doubling.
    let places = (DAYS * DAY_MINUTES).next_power_of_two() as isize * 24 * 3 / 2;
    assert!(written < days[0] + places, "{written} after {}", days[0]);
    let size = fs::metadata(directory.path().join("summary.json")).unwrap().len();
    let bins = FULL_DAYS.len() as u64 * 5 * 4 * 2 * BINS;
    assert!(size > bins * 8, "all bins are there: {size}");
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|of| of.unwrap()).collect();
    assert!(names.iter().all(|of| of.file_name() != "minutes.tmp"), "{names:?}");
}
