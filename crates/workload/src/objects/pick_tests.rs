//! What is drawn of a set, by law and by worker.

use super::*;
use crate::plan::spec::Share;

fn drawn(choice: &Choice, count: u64, worker: (u32, u32), draws: usize) -> Vec<u64> {
    let (worker, workers) = worker;
    let mut picker = Picker::new(choice, count, 5, (WorkerId(worker), workers));
    let mut random = Random::new(1, 2, worker.into());
    (0..draws).map(|_| picker.draw(&mut random)).collect()
}

#[test]
fn workers_take_turns_through_a_sequence() {
    let first: Vec<Vec<u64>> =
        (0..3).map(|worker| drawn(&Choice::Sequential, 7, (worker, 3), 3)).collect();
    assert_eq!(first, [[0, 3, 6], [1, 4, 0], [2, 5, 1]]);
    for (count, workers) in [(12u64, 3u32), (7, 3), (1, 4), (6, 4), (5, 5), (4, 9)] {
        let rounds = count.div_ceil(u64::from(workers)) as usize;
        let mut all: Vec<u64> = (0..workers)
            .flat_map(|worker| drawn(&Choice::Sequential, count, (worker, workers), rounds))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert!(all.into_iter().eq(0..count), "{count} objects, {workers} workers");
    }
}

#[test]
fn ranks_come_by_zipfs_law_on_members_in_seeded_order() {
    let draws = drawn(&Choice::Zipf(1.2), 100, (0, 1), 100_000);
    let mut counts = [0u32; 100];
    draws.iter().for_each(|&number| counts[number as usize] += 1);
    let mut sorted = counts;
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_ne!(counts, sorted, "the order is not that of the numbers");
    // The weights of ranks 1 to 100 with theta 1.2 add up to 3.6030.
    let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-1.2)).sum();
    for rank in [1, 2, 5] {
        let expected = 100_000.0 * f64::from(rank).powf(-1.2) / total;
        let got = f64::from(sorted[rank as usize - 1]);
        assert!((got / expected - 1.0).abs() < 0.05, "rank {rank}: {got} of {expected}");
    }
    // Another worker draws others, but likes the same best.
    let other = drawn(&Choice::Zipf(1.2), 100, (1, 2), 100);
    assert_ne!(draws[..100], other);
}

#[test]
fn a_worker_draws_its_own_from_what_is_dealt_to_it() {
    for (worker, workers, expected) in [(0, 3, vec![0, 3, 6]), (2, 3, vec![2, 5])] {
        let mut all = drawn(&Choice::Own, 7, (worker, workers), 200);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, expected);
    }
}

#[test]
fn shares_count_from_one_and_end_where_the_set_does() {
    let share = |from, to, weight| Share { value: NumberRange { from, to }, weight };
    let choice = Choice::Shares(Shares(vec![share(1, 2, 3), share(9, 30, 1), share(50, 60, 9)]));
    let draws = drawn(&choice, 10, (0, 1), 40_000);
    let count = |number: u64| draws.iter().filter(|&&drawn| drawn == number).count() as f64;
    // 3 in 4 from the first two, 1 in 4 from the two of the second range that there are.
    for (number, expected) in [(0, 15_000.0), (1, 15_000.0), (8, 5_000.0), (9, 5_000.0)] {
        assert!((count(number) / expected - 1.0).abs() < 0.05, "{number}: {}", count(number));
    }
    assert_eq!(draws.iter().filter(|&&drawn| drawn > 9).count(), 0);
}

#[test]
fn popular_places_stay_popular_whoever_is_in_them() {
    let mut picker = Picker::new(&Choice::Zipf(1.5), 50, 5, (WorkerId(0), 1));
    let mut random = Random::new(1, 2, 3);
    let mut first = 0;
    for round in 0..10_000 {
        // As many as there are: the set grows and shrinks.
        let place = picker.draw_place(40 + round % 20, &mut random);
        first += u64::from(place == 0);
    }
    // Rank 1 of 50 with theta 1.5 has 1 / 2.33 = 43 of 100; places beyond wrap to the first ones.
    assert!((4_000..4_700).contains(&first), "{first}");
}
