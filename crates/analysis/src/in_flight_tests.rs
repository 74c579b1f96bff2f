//! Loads on stores of known capacity, with every level worked out by hand.

use plimsoll_model::{OpKind, StageId};

use super::*;

/// Returns 10 s of operations that are due every `every_us`, at most `limit` in flight, of a store
/// that serves `servers` at once, first come first served, each in `took_us`.
fn load(every_us: u64, limit: usize, servers: usize, took_us: u64) -> InFlight {
    let mut in_flight = InFlight::new(Moment::from_ns(7_000));
    let (mut ends, mut free) = (Vec::<u64>::new(), vec![0u64; servers]);
    for index in 0..10_000_000 / every_us {
        let due = index * every_us;
        // Its place is free when the one `limit` before it has ended; ends come in order.
        let start = ends.len().checked_sub(limit).map_or(due, |before| due.max(ends[before]));
        if start >= 10_000_000 {
            break;
        }
        let server = index as usize % servers;
        free[server] = free[server].max(start) + took_us;
        ends.push(free[server]);
        in_flight.add(&op(start, free[server]));
    }
    in_flight
}

fn op(start_us: u64, end_us: u64) -> OpRecord {
    let at = |us: u64| Moment::from_ns(7_000 + us * 1_000);
    OpRecord {
        stage: StageId(1),
        bytes: 1,
        ..OpRecord::plain(OpKind::Get, at(start_us), at(end_us))
    }
}

#[test]
fn a_saturated_store_takes_longer_the_more_is_in_flight() {
    // 8 at once, 4 ms each: 2,000/s, of 4,000/s that are due. 512 in flight then take 256 ms.
    let full = load(250, 512, 8, 4_000).full_load(512).unwrap();
    assert_eq!(full.is_saturated(), Some(true), "{full:?}");
    assert!((1_990.0..=2_010.0).contains(&full.completed.0), "{full:?}");
    assert!((250..=256).contains(&full.full.service_mean.as_millis()), "{full:?}");
    // Up to 256 in flight wait for at most 128 ms.
    assert!(full.half.unwrap().service_mean < Duration::from_millis(129), "{full:?}");
    // One that needs nearly half of the places for its rate.
    let full = load(250, 512, 200, 100_000).full_load(512).unwrap();
    assert_eq!(full.is_saturated(), Some(true), "{full:?}");
}

#[test]
fn a_store_with_room_takes_no_longer() {
    // 50 ms each whatever is in flight, 1,000/s: 50 are needed, and 20 carry 400/s.
    let full = load(1_000, 20, 10_000, 50_000).full_load(20).unwrap();
    assert_eq!(full.is_saturated(), Some(false), "{full:?}");
    assert_eq!(full.full.service_mean, Duration::from_millis(50));
    assert_eq!(full.half.unwrap().service_mean, Duration::from_millis(50));
    assert!((390.0..=410.0).contains(&full.completed.0), "{full:?}");
}

#[test]
fn a_load_that_left_places_free_is_not_full() {
    assert_eq!(load(1_000, 100, 10_000, 50_000).full_load(100), None);
    assert_eq!(InFlight::new(Moment::EPOCH).full_load(1), None);
}

#[test]
fn one_place_leaves_no_evidence() {
    let full = load(1_000, 1, 1, 5_000).full_load(1);
    assert_eq!(full.and_then(|full| full.is_saturated()), None, "{full:?}");
}

#[test]
fn steps_hold_every_moment_once() {
    assert_eq!((index_of(0), index_of(65_535), index_of(65_536)), (0, 0, 1));
    assert_eq!(index_of(u64::MAX), STEPS - 1);
    for index in 0..STEPS {
        assert_eq!(index_of(start_of(index)), index);
        assert_eq!(index_of(start_of(index + 1) - u64::from(index + 1 < STEPS)), index);
    }
}

#[test]
fn a_first_operation_that_was_slow_says_nothing_of_the_store() {
    let mut in_flight = InFlight::new(Moment::from_ns(7_000));
    // It takes 15 ms alone. Then a burst takes all 64 places of a store that ends one each 1.5 ms.
    in_flight.add(&op(1_000, 16_000));
    let mut ends: Vec<u64> = Vec::new();
    for index in 0..2_000_usize {
        let place = index.checked_sub(64).map(|before| ends[before]);
        let (start, end) = (place.unwrap_or(20_000), 20_000 + 1_500 * (index as u64 + 1));
        in_flight.add(&op(start, end));
        ends.push(end);
    }
    let full = in_flight.full_load(64).unwrap();
    assert_eq!((full.half, full.is_saturated()), (None, None), "{full:?}");
    assert!((94..=96).contains(&full.full.service_mean.as_millis()), "{full:?}");
}
