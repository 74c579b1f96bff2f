//! Records counted by several counters give what one counter gives, to the last bit.

use std::convert::Infallible;

use plimsoll_model::{Visit, WorkerId};
use proptest::prelude::*;

use crate::tests::{drawn, op};
use crate::*;

const MS: u64 = 1_000_000;

/// Deals records out to several counters, each record to the one that its draw names.
struct Dealt {
    ops: Vec<OpRecord>,
    draws: Vec<usize>,
    threads: usize,
}

impl OpSource for Dealt {
    type Error = Infallible;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Infallible> {
        self.ops.scan(visit)
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<(), Infallible> {
        assert_eq!(visits.len(), self.threads);
        for (op, draw) in self.ops.iter().zip(&self.draws) {
            visits[draw % self.threads](op);
        }
        Ok(())
    }
}

/// Asks about two rows of stage 1 with every detail, of which the second is an open loop.
fn rows(workers: &[Option<WorkerRow>]) -> Question<'_> {
    const ROWS: &[RowAsked] = &[
        RowAsked { workers: 2, span: Span::AllWorkers, open: false, ends: None },
        RowAsked { workers: 2, span: Span::FromRamps, open: true, ends: None },
    ];
    let about = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(5_000 * MS), 4);
    Question {
        rows: Rows::Several { workers, rows: ROWS },
        segment: Some(Duration::from_millis(70)),
        client_of: &[0, 1, 1, 0],
        depth: Depth::Details,
        ..about
    }
}

/// Operations of two stages that often begin and end at once.
fn several() -> impl Strategy<Value = Vec<(OpRecord, usize)>> {
    let one = (drawn(), 1u8..3, 0u64..40, 0u64..9, 0u64..6, any::<usize>());
    let one = one.prop_map(|(op, stage, start, took, object, draw)| {
        let start = Moment::from_ns(start * 100 * MS);
        let end = start.after(Duration::from_millis(took * 100));
        let object = Some(plimsoll_model::ObjectId::new(WorkerId(0), object));
        let first_byte = (object.is_some() && took % 2 == 0).then_some(end);
        let stage = StageId(stage);
        let op = OpRecord { stage, object, first_byte, intended: start, start, end, ..op };
        (op, draw)
    });
    prop::collection::vec(one, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_number_of_counters_finds_the_same(drawn in several()) {
        let (ops, draws): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        let worker = |row, from| {
            let measured_from = Moment::from_ns(from * MS);
            Some(WorkerRow { row, measured_from, measured_until: None })
        };
        let workers = [worker(0, 0), worker(1, 300), worker(0, 200), worker(1, 0)];
        let whole = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(5_000 * MS), 4);
        let all = Question { stages: [StageId(1), StageId(2)].into_iter().collect(), ..whole };
        let questions = [rows(&workers), whole, all];
        let alone = Dealt { ops: ops.clone(), draws: draws.clone(), threads: 1 };
        let Ok(survey) = Survey::of(&alone);
        let Ok(expected) = measure(&alone, &survey, &questions);
        for threads in [2, 3, 8] {
            let apart = Dealt { ops: ops.clone(), draws: draws.clone(), threads };
            let Ok(found) = Survey::of(&apart);
            prop_assert_eq!(format!("{found:?}"), format!("{survey:?}"));
            let Ok(answers) = measure(&apart, &found, &questions);
            prop_assert_eq!(&answers, &expected, "{} counters", threads);
        }
    }
}

/// Of two successes that end a silence in the same nanosecond one is usually slow and one is not.
/// Which of them is taken for the one that was waited for must not depend on their order.
#[test]
fn the_order_of_successes_of_one_moment_does_not_matter() {
    let large = |worker, start: u64, end| OpRecord { bytes: 1 << 20, ..op(worker, start, end) };
    let small = (0..100).map(|index| op(0, index * 10, index * 10 + 10));
    let usual = (1..9).map(|worker| large(worker, worker.into(), 900));
    let begin: Vec<OpRecord> = small.chain(usual).collect();
    let last = [op(0, 1_000, 3_000), large(1, 1_000, 3_000)];
    let rest = (0..100).map(|index| op(0, 3_000 + index * 10, 3_010 + index * 10));
    let rest: Vec<OpRecord> = rest.collect();
    let told = |last: [OpRecord; 2]| {
        let ops = [&begin[..], &last, &rest].concat();
        let about = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(4_000 * MS), 9);
        let Ok(answer) = analyze(&ops, &about);
        answer
    };
    let [first, second] = last;
    assert_eq!(told([first, second]), told([second, first]));
}

#[test]
fn objects_let_go_are_the_same_in_one_table_and_in_several() {
    // More than a table follows, so that each of the two lets some go, and both together more.
    let objects = 0..300_000u64;
    let of = |number| {
        let object = Some(plimsoll_model::ObjectId::new(WorkerId(0), number % 250_000));
        OpRecord { object, ..op(0, number % 1_000, number % 1_000 + number % 7) }
    };
    let ops: Vec<OpRecord> = objects.map(of).collect();
    let draws = (0..ops.len()).map(|index| index / 3).collect();
    let about = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(1_010 * MS), 1);
    let about = Question { depth: Depth::Details, ..about };
    let mut source = Dealt { ops, draws, threads: 1 };
    let Ok(expected) = analyze(&source, &about);
    let kinds = &expected.rows[0].details.as_ref().unwrap().kinds;
    assert_eq!(kinds[0].access.as_ref().unwrap().sampled_one_in, 2);
    source.threads = 2;
    let Ok(found) = analyze(&source, &about);
    assert_eq!(found, expected);
}
