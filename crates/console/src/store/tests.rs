//! Tests of what is kept.

use plimsoll_testkit as _;

use super::*;

fn accepted<'a>(name: &'a str, facts: &'a Facts) -> Accepted<'a> {
    Accepted {
        name,
        kind: SourceKind::Cosbench,
        text: "<workload/>",
        file_name: Some("a.xml"),
        explained: "schema: x",
        facts,
        user: "ann",
        resubmitted_from: None,
        has_secrets: false,
    }
}

fn with(names: &[&str]) -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("db")).unwrap();
    let facts = Facts { operations: vec!["GET".to_owned()], ..Facts::default() };
    for (at_ms, name) in names.iter().enumerate() {
        let number = store.next_number().unwrap();
        store.accept(number, &accepted(name, &facts), at_ms as i64).unwrap();
    }
    (directory, store)
}

fn queue(store: &Store) -> Vec<i64> {
    store.active().unwrap().iter().map(|entry| entry.number.0).collect()
}

#[test]
fn turns_come_in_order_and_no_more_run_than_may() {
    let (_directory, store) = with(&["a", "b", "c"]);
    assert_eq!(store.take_next(1, 10).unwrap().unwrap().name, "a");
    assert_eq!(store.take_next(1, 10).unwrap(), None);
    assert_eq!(store.take_next(2, 10).unwrap().unwrap().name, "b");
    let ended = Ended { state: State::Finished, error: None, at_ms: 20 };
    store.end(Number(1), &ended).unwrap();
    let entry = store.entry(Number(1)).unwrap();
    assert_eq!((entry.started_ms, entry.ended_ms), (Some(10), Some(20)));
    let changes: Vec<State> =
        store.changes(Number(1)).unwrap().iter().map(|change| change.state).collect();
    assert_eq!(changes, [State::Queued, State::Running, State::Finished]);
    assert_eq!(store.take_next(2, 30).unwrap().unwrap().name, "c");
}

#[test]
fn the_workloads_of_a_user_that_wait_are_bound() {
    let (_directory, store) = with(&["a"]);
    let facts = Facts::default();
    let text = "#".repeat(WAITING_BYTES_MAX as usize / 2);
    let accept = |user| {
        let accepted = Accepted { user, text: &text, ..accepted("b", &facts) };
        store.accept(store.next_number().unwrap(), &accepted, 1)
    };
    assert!(accept("ann").is_ok());
    assert!(matches!(accept("ann"), Err(StoreError::Waiting)));
    assert!(accept("bob").is_ok());
    // Once the small one has its turn, both halves fit.
    assert_eq!(store.take_next(1, 10).unwrap().unwrap().name, "a");
    assert!(accept("ann").is_ok());
    assert!(matches!(accept("ann"), Err(StoreError::Waiting)));
}

#[test]
fn the_queue_is_put_into_another_order() {
    let (_directory, store) = with(&["a", "b", "c", "d"]);
    for (number, to, expected) in [
        (3, Move::Up, [1, 3, 2, 4]),
        (1, Move::Down, [3, 1, 2, 4]),
        (4, Move::Before(Number(3)), [4, 3, 1, 2]),
        (3, Move::After(Number(2)), [4, 1, 2, 3]),
        (4, Move::Up, [4, 1, 2, 3]),
        (3, Move::Down, [4, 1, 2, 3]),
        (2, Move::Before(Number(2)), [4, 1, 2, 3]),
    ] {
        store.reorder(Number(number), to).unwrap();
        assert_eq!(queue(&store), expected, "{number} {to:?}");
    }
    assert_eq!(store.take_next(1, 0).unwrap().unwrap().number, Number(4));
    let error = store.reorder(Number(4), Move::Up).unwrap_err();
    assert_eq!(error.to_string(), "w4 is running, so that is not possible");
    let error = store.reorder(Number(1), Move::Before(Number(99))).unwrap_err();
    assert_eq!(error.to_string(), "there is no workload w99");
}

#[test]
fn what_is_opened_again_is_all_there_and_numbers_go_on() {
    let (directory, store) = with(&["a", "b"]);
    store.take_next(1, 5).unwrap();
    store.remark(Number(1), &Remark { at_ms: 6, level: "info".into(), text: "x".into() }).unwrap();
    drop(store);
    let store = Store::open(&directory.path().join("db")).unwrap();
    assert_eq!(store.terminate_orphans("killed", 9).unwrap(), [Number(1)]);
    let entry = store.entry(Number(1)).unwrap();
    assert_eq!((entry.state, entry.error.as_deref()), (State::Terminated, Some("killed")));
    assert_eq!(queue(&store), [2]);
    assert_eq!(store.remarks(Number(1)).unwrap().len(), 1);
    assert_eq!(store.source(Number(2)).unwrap().facts.operations, ["GET"]);
    assert_eq!(store.next_number().unwrap(), Number(3));
}

#[test]
fn only_what_waits_is_cancelled_at_once() {
    let (_directory, store) = with(&["a", "b"]);
    store.take_next(1, 5).unwrap();
    assert!(!store.cancel_queued(Number(1), 6).unwrap());
    assert!(store.cancel_queued(Number(2), 6).unwrap());
    assert!(!store.cancel_queued(Number(2), 7).unwrap());
    assert!(matches!(store.cancel_queued(Number(9), 7), Err(StoreError::Unknown(_))));
}

#[test]
fn what_is_looked_for_is_text_and_no_pattern() {
    let (_directory, store) = with(&["read 50%", "READ_me", "write", "'; DROP TABLE workload; --"]);
    let found = |text: &str| {
        let filter =
            Filter { text: Some(text.to_owned()), limit: 10, is_rising: true, ..Filter::default() };
        let (entries, total) = store.list(&filter).unwrap();
        assert_eq!(entries.len() as i64, total);
        entries.iter().map(|entry| entry.number.0).collect::<Vec<_>>()
    };
    assert_eq!(found("read"), [1, 2]);
    assert_eq!(found("50%"), [1]);
    assert_eq!(found("d_m"), [2]);
    assert_eq!(found("w3"), [3]);
    assert_eq!(found("DROP TABLE"), [4]);
    assert_eq!(found("%"), [1]);
    assert_eq!(found("get"), [1, 2, 3, 4]);
}

#[test]
fn lists_are_cut_sorted_and_narrowed() {
    let (_directory, store) = with(&["b", "a", "C"]);
    store.take_next(1, 5).unwrap();
    let list = |filter: Filter| {
        let (entries, total) = store.list(&filter).unwrap();
        (entries.iter().map(|entry| &*entry.name).collect::<Vec<_>>().join(" "), total)
    };
    let filter = Filter { limit: 2, ..Filter::default() };
    assert_eq!(list(filter.clone()), ("C a".to_owned(), 3));
    assert_eq!(list(Filter { offset: 2, ..filter.clone() }), ("b".to_owned(), 3));
    let by_name = Filter { limit: 9, sort: Sort::Name, is_rising: true, ..Filter::default() };
    assert_eq!(list(by_name), ("a b C".to_owned(), 3));
    let running = Filter { states: vec![State::Running], limit: 9, ..Filter::default() };
    assert_eq!(list(running), ("b".to_owned(), 1));
    let fio = Filter { kind: Some(SourceKind::Fio), limit: 9, ..Filter::default() };
    assert_eq!(list(fio), (String::new(), 0));
}
