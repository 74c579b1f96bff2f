//! Laws of chance against their definitions.

use super::*;

/// Returns the chi-square sum of counts against chances.
fn chi_square(counts: &[u64], chances: &[f64]) -> f64 {
    let sum = counts.iter().sum::<u64>() as f64;
    let part =
        |(count, chance): (&u64, &f64)| (*count as f64 - chance * sum).powi(2) / (chance * sum);
    counts.iter().zip(chances).map(part).sum()
}

#[test]
fn a_scatter_visits_every_number_once() {
    for len in [1u64, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 1_000, 4_096, 4_097, 100_000] {
        for seed in 0..5 {
            let order = Scatter::new(seed, len);
            let mut seen: Vec<u64> = (0..len).map(|position| order.at(position)).collect();
            if len > 100 {
                let rising = seen.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
                // A step up is as likely as one down.
                assert!((rising / len as f64 - 0.5).abs() < 0.1, "{len} {seed}: {rising}");
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len} {seed}");
        }
    }
}

#[test]
fn a_scatter_leaves_no_trace_of_the_order() {
    // 2^16 numbers in 16 parts: from which part to which part each step goes, 256 kinds of steps.
    // 255 degrees of freedom: a chance below 0.1 % above 331. Steps of a permutation are a little
    // more even than independent ones.
    for seed in 0..8 {
        let order = Scatter::new(seed, 1 << 16);
        let mut counts = [0; 256];
        for position in 1..1 << 16 {
            let (from, to) = (order.at(position - 1) >> 12, order.at(position) >> 12);
            counts[(from * 16 + to) as usize] += 1;
        }
        let chi = chi_square(&counts, &[1.0 / 256.0; 256]);
        assert!(chi < 331.0, "{seed}: {chi}");
    }
}

#[test]
fn two_seeds_give_two_orders() {
    let (a, b) = (Scatter::new(1, 1_000), Scatter::new(2, 1_000));
    let same = (0..1_000).filter(|position| a.at(*position) == b.at(*position)).count();
    // Of two independent orders, one place is the same on average.
    assert!(same < 8, "{same}");
}

#[test]
fn zipf_ranks_come_as_the_law_says() {
    for theta in [0.5, 0.8, 0.99, 1.2, 2.5] {
        let ranks = 40;
        let law = Zipf::new(ranks, theta);
        let weights: Vec<f64> = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let chances: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let mut counts = vec![0; ranks as usize];
        let mut random = Random::new(1, 2, 3);
        for _ in 0..400_000 {
            counts[law.draw(&mut random) as usize] += 1;
        }
        // 39 degrees of freedom: a chance below 0.1 % above 72.1.
        let chi = chi_square(&counts, &chances);
        assert!(chi < 72.1, "{theta}: {chi}");
    }
}

#[test]
fn zipf_needs_no_table_however_many_ranks_there_are() {
    // The sum of r^-1.2 over all r is zeta(1.2) = 5.5915824...; up to 2^40 the rest of it,
    // (2^40)^-0.2 / 0.2 = 0.0195, is missing.
    let law = Zipf::new(1 << 40, 1.2);
    let mut random = Random::new(1, 2, 3);
    let draws: Vec<u64> = (0..200_000).map(|_| law.draw(&mut random)).collect();
    let first = draws.iter().filter(|rank| **rank == 0).count() as f64 / 200_000.0;
    assert!((first - 1.0 / (5.5916 - 0.0195)).abs() < 0.004, "{first}");
    assert!(draws.iter().all(|rank| *rank < 1 << 40));
    assert!(draws.iter().any(|rank| *rank > 1 << 30));
    let only = Zipf::new(1, 0.7);
    assert_eq!(only.draw(&mut random), 0);
}

#[test]
fn of_a_self_similar_law_a_fifth_gets_four_fifths() {
    let h: f64 = 0.2;
    let power = h.ln() / (1.0 - h).ln();
    let mut random = Random::new(1, 2, 3);
    let draws: Vec<u64> = (0..100_000).map(|_| self_similar(100_000, power, &mut random)).collect();
    for (first, share) in [(20_000, 0.8), (4_000, 0.64), (800, 0.512)] {
        let found = draws.iter().filter(|rank| **rank < first).count() as f64 / 100_000.0;
        assert!((found - share).abs() < 0.006, "{first}: {found}");
    }
}

#[test]
fn a_normal_law_lies_around_the_middle() {
    let mut random = Random::new(1, 2, 3);
    let draws: Vec<u64> = (0..100_000).map(|_| normal(1_000, 0.1, &mut random)).collect();
    // Within one, two and three standard deviations, from a table of the normal law.
    for (deviations, share) in [(100, 0.6827), (200, 0.9545), (300, 0.9973)] {
        let near = |place: &&u64| (500 - deviations..500 + deviations).contains(*place);
        let found = draws.iter().filter(near).count() as f64 / 100_000.0;
        assert!((found - share).abs() < 0.006, "{deviations}: {found}");
    }
    let below = draws.iter().filter(|place| **place < 500).count();
    assert!(below.abs_diff(50_000) < 700, "{below}");
    assert!((0..1_000).all(|_| normal(3, 1.0, &mut random) < 3));
}
