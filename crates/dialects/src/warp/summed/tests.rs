//! Documents of operations that lie far apart.

use plimsoll_analysis::warp::WarpWorker;
use plimsoll_model::{ObjectId, OpKind, OpRecord, WorkerId};

use super::*;

const MS: u64 = 1_000_000;

fn op(worker: u32, start_ms: u64, end_ms: u64) -> OpRecord {
    OpRecord {
        worker: WorkerId(worker),
        object: Some(ObjectId::new(WorkerId(0), start_ms)),
        bytes: 1_000,
        first_byte: Some(Moment::from_ns((start_ms + 1) * MS)),
        ..OpRecord::plain(OpKind::Get, Moment::from_ns(start_ms * MS), Moment::from_ns(end_ms * MS))
    }
}

fn summary(ops: &[OpRecord]) -> Aggregated {
    let workers: Vec<WarpWorker> =
        (0..4).map(|thread| WarpWorker { client: thread as u16 % 2, thread }).collect();
    let recording = Recording {
        ops,
        endpoints: &["http://a".to_owned()],
        clients: &["one".to_owned(), "two".to_owned()],
        workers: &workers,
        error_texts: &BTreeMap::new(),
        utc_offset_seconds: 0,
    };
    document(&recording, &WarpQuestion::default(), String::new()).unwrap()
}

fn segments(of: &Aggregate) -> Option<usize> {
    Some(of.throughput.as_ref()?.segmented.as_ref()?.segments.len())
}

#[test]
fn a_client_whose_clock_was_not_set_takes_no_memory_for_the_years_between() {
    let in_2026 = |op: OpRecord| {
        let later = |at: Moment| at.after(Duration::from_secs(1_790_000_000));
        OpRecord { start: later(op.start), end: later(op.end), ..op }
    };
    let mut ops = vec![op(1, 500, 700)];
    ops.extend((0..20).map(|at| in_2026(op(0, at * 500, at * 500 + 500))));
    let found = summary(&ops);
    let total = found.total.unwrap();
    assert_eq!((total.total_requests, segments(&total)), (Some(21), None));
    // Of the client whose clock is right there are those 10 s and the one in which the last ended,
    // without two at each end.
    let of_one = &found.by_client["one"];
    assert_eq!(segments(of_one), Some(7));
    assert_eq!(of_one.throughput.as_ref().unwrap().ops, Some(14));
}

#[test]
fn seconds_of_all_parts_together_are_bounded() {
    // A day, five times: of all, of the kind, the address, the client and the size.
    let of_a_day = [op(0, 0, 1_000), op(0, 86_400_000, 86_401_000)];
    let told = |found: Aggregated| {
        let (kinds, sizes) = (found.by_op_type.into_values(), found.by_obj_log_2_size);
        let parts = kinds.chain(found.by_host.into_values()).chain(found.by_client.into_values());
        let parts = found.total.into_iter().chain(parts).chain(sizes.into_values());
        parts.map(|part| segments(&part).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(told(summary(&of_a_day)), [true; 5]);
    // 16 days: twice is as much as there may be.
    let of_weeks = [op(0, 0, 1_000), op(0, 1_400_000_000, 1_400_001_000)];
    assert_eq!(told(summary(&of_weeks)), [true, true, false, false, false]);
    // Five months: not once.
    let of_months = [op(0, 0, 1_000), op(0, 13_000_000_000, 13_000_001_000)];
    assert_eq!(told(summary(&of_months)), [false; 5]);
}
