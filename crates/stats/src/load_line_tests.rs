//! The search on queues whose answer is known.

use plimsoll_model::ProbeRole;

use super::*;
use crate::{mdc_share_over, mg1_share_over, mmc_share_over, rate_carried};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate
    }
}

type Service = fn(&mut Random) -> f64;

/// Servers in front of which arrivals wait in one row (J. Kiefer, J. Wolfowitz, *On the Theory of
/// Queues with Many Servers*, 1955).
struct Store {
    servers: usize,
    service: Service,
    bound: f64,
}

const WARM_UP: f64 = 0.1;

impl Store {
    fn probe(&self, step: (f64, f64, ProbeRole), random: &mut Random) -> Probe {
        let (rate, seconds, role) = step;
        let mut free = vec![0.0_f64; self.servers];
        let mut counts = ProbeCounts::new(1);
        let stretch = |at: f64| {
            let warm = seconds * WARM_UP;
            match ((at - warm) / (seconds - warm) * PROBE_PARTS as f64).floor() {
                part if part < 0.0 => ProbeStretch::WarmUp,
                part if part < PROBE_PARTS as f64 => ProbeStretch::Part(part as usize),
                _ => ProbeStretch::After,
            }
        };
        let mut now = 0.0;
        loop {
            now += random.exponential(rate);
            if now >= seconds {
                break;
            }
            let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            *first = first.max(now) + (self.service)(random);
            counts.note(stretch(now), stretch(*first), true);
            if let ProbeStretch::Part(part) = stretch(now) {
                let missed = u64::from(*first - now > self.bound);
                counts.add(0, part, ProbePart { ended: 1, missed });
            }
        }
        let is_overloaded = counts.is_overloaded();
        Probe { rate, seconds, role, bounds: counts.bounds, is_overloaded, clean_share: 1.0 }
    }

    fn search(&self, goal: LoadLineGoal, seed: u64) -> LoadLineSearch {
        let (mut search, mut random) = (LoadLineSearch::new(goal), Random(seed));
        while let Step::Probe { rate, seconds, role } = search.step() {
            search.add(self.probe((rate, seconds, role), &mut random));
        }
        search
    }

    /// Returns how many of 100 searches are within 5 % of the truth, and how many intervals hold
    /// it.
    fn judge(&self, truth: f64, rate_first: f64) -> (usize, usize) {
        let goal = LoadLineGoal {
            shares_max: vec![0.01],
            precision: 0.0,
            budget_s: 120.0,
            rate_first,
            rate_min: 0.0,
            rate_max: 1e9,
        };
        let (mut near, mut held) = (0, 0);
        for seed in 0..100 {
            let search = self.search(goal.clone(), seed);
            let Some(line) = search.line() else { continue };
            near += usize::from((line.rate / truth - 1.0).abs() <= 0.05);
            held += usize::from(line.low <= truth && truth <= line.high);
        }
        (near, held)
    }
}

/// Returns the rate at which a share of 1 % takes longer than the bound in M/M/c.
fn truth_of_mmc(servers: u32, mu: f64, bound: f64) -> f64 {
    let share = |rate| mmc_share_over(servers, mu, rate, bound);
    rate_carried(f64::from(servers) * mu, 0.01, share)
}

#[test]
fn one_server_is_found_within_a_twentieth() {
    let truth = truth_of_mmc(1, 1_000.0, 0.02);
    let store = Store { servers: 1, service: |random| random.exponential(1_000.0), bound: 0.02 };
    let (near, held) = store.judge(truth, 50.0);
    assert!(near >= 95 && held >= 90, "{near} near, {held} held");
}

#[test]
fn four_servers_are_found_within_a_twentieth() {
    let truth = truth_of_mmc(4, 250.0, 0.03);
    let store = Store { servers: 4, service: |random| random.exponential(250.0), bound: 0.03 };
    let (near, held) = store.judge(truth, 50.0);
    assert!(near >= 95 && held >= 90, "{truth}: {near} near, {held} held");
}

#[test]
fn fast_and_slow_operations_are_found_within_a_twentieth() {
    let service = [(0.000_25, 0.8), (0.001_5, 0.2)];
    let truth = rate_carried(2_000.0, 0.01, |rate| mg1_share_over(&service, rate, 0.01));
    let either: Service = |random| if random.unit() < 0.8 { 0.000_25 } else { 0.001_5 };
    let store = Store { servers: 1, service: either, bound: 0.01 };
    let (near, held) = store.judge(truth, 50.0);
    assert!(near >= 95 && held >= 90, "{truth}: {near} near, {held} held");
}

#[test]
fn eight_servers_that_fall_off_a_cliff_are_found_within_a_twentieth() {
    let truth = rate_carried(1_600.0, 0.01, |rate| mdc_share_over(8, 0.005, rate, 10));
    let store = Store { servers: 8, service: |_| 0.005, bound: 0.05 };
    let (near, held) = store.judge(truth, 50.0);
    assert!(near >= 95 && held >= 90, "{truth}: {near} near, {held} held");
}

fn probe(rate: f64, ended: u64, missed: u64) -> Probe {
    let part = ProbePart { ended: ended / 2, missed: missed / 2 };
    let role = ProbeRole::Fit;
    Probe {
        rate,
        seconds: 10.0,
        role,
        bounds: vec![vec![part; 2]],
        is_overloaded: false,
        clean_share: 1.0,
    }
}

fn goal() -> LoadLineGoal {
    LoadLineGoal {
        shares_max: vec![0.01],
        precision: 0.02,
        budget_s: 120.0,
        rate_first: 100.0,
        rate_min: 0.0,
        rate_max: 1_000.0,
    }
}

#[test]
fn a_ramp_goes_up_until_a_rate_is_too_high() {
    let mut search = LoadLineSearch::new(goal());
    let mut rates = Vec::new();
    while let Step::Probe { rate, seconds, role: ProbeRole::Ramp } = search.step() {
        rates.push(rate.round());
        let role = ProbeRole::Ramp;
        let missed = if rate > 600.0 { 900 } else { 0 };
        search.add(Probe { seconds, role, ..probe(rate, 1_000, missed) });
    }
    assert_eq!(rates, [100.0, 160.0, 256.0, 410.0, 655.0]);
    let Step::Probe { rate, role, .. } = search.step() else { panic!("the search goes on") };
    assert!(role == ProbeRole::Find && (409.0..656.0).contains(&rate), "{rate}");
}

#[test]
fn what_carries_all_that_may_be_offered_has_no_line() {
    let mut search = LoadLineSearch::new(goal());
    while let Step::Probe { rate, seconds, .. } = search.step() {
        search.add(Probe { seconds, ..probe(rate, 1_000, 0) });
    }
    assert_eq!(search.probes().last().map(|probe| probe.rate), Some(1_000.0));
    assert_eq!(search.line(), None);
}

#[test]
fn a_line_through_exact_counts_is_met_exactly() {
    let mut search = LoadLineSearch::new(goal());
    // Odds that rise by a factor of e for each 50/s, and are 1 to 99 at 500/s.
    for rate in [400.0, 450.0, 500.0, 550.0, 600.0] {
        let odds = ((rate - 500.0_f64) / 50.0).exp() / 99.0;
        let ended = 10_000_000;
        let missed = (ended as f64 * odds / (1.0 + odds)).round() as u64 / 2 * 2;
        search.add(probe(rate, ended, missed));
    }
    let line = search.line().unwrap();
    assert!((line.rate - 500.0).abs() < 0.01, "{line:?}");
    assert!(line.low < 500.0 && line.high > 500.0 && line.precision() < 0.01, "{line:?}");
    assert_eq!(search.step(), Step::Done);
}

/// A store that does as a function of the rate says: how many of 1,000 operations miss the bound,
/// and whether what waits grows.
fn search_on(goal: LoadLineGoal, mut store: impl FnMut(f64) -> (u64, bool)) -> LoadLineSearch {
    let mut search = LoadLineSearch::new(goal);
    while let Step::Probe { rate, seconds, role } = search.step() {
        let (missed, is_overloaded) = store(rate);
        search.add(Probe { seconds, role, is_overloaded, ..probe(rate, 1_000, missed) });
    }
    search
}

#[test]
fn a_cliff_is_found_between_two_rates() {
    let search = search_on(goal(), |rate| if rate > 523.0 { (1_000, true) } else { (0, false) });
    let line = search.line().unwrap();
    assert_eq!(line.basis, Basis::Between);
    assert!(line.low <= 523.0 && 523.0 < line.high && line.precision() <= 0.035, "{line:?}");
    assert_eq!(search.metastable(), None);
    // What was carried and what was not, next to each other, were probed once more at the end.
    let counted = search.counted();
    let (carried, high) = search.bracket(|probe| search.is_too_high(probe));
    let probed = |rate: f64| counted.iter().filter(|of| of.rate == rate).count();
    assert!(probed(carried) >= 2 && probed(high) >= 2, "{:?}", search.probes());
}

#[test]
fn probes_that_a_client_disturbed_change_nothing() {
    let store = |rate: f64| if rate > 523.0 { (1_000, true) } else { (0, false) };
    let plain = search_on(LoadLineGoal { budget_s: 400.0, ..goal() }, store);
    let (mut search, mut number) = (LoadLineSearch::new(goal()), 0);
    search.goal.budget_s = 800.0;
    while let Step::Probe { rate, seconds, role } = search.step() {
        let (missed, is_overloaded) = store(rate);
        let probe = Probe { seconds, role, is_overloaded, ..probe(rate, 1_000, missed) };
        number += 1;
        // Of each two the first shows nothing, whatever it seems to show.
        search.add(match number % 2 {
            1 => Probe { clean_share: 0.29, is_overloaded: false, ..probe },
            _ => probe,
        });
    }
    let rates = |search: &LoadLineSearch| -> Vec<f64> {
        search.counted().iter().map(|probe| probe.rate).collect()
    };
    let (of_plain, of_disturbed) = (rates(&plain), rates(&search));
    assert_eq!(of_plain[..5], of_disturbed[..5]);
    let line = search.line().unwrap();
    assert!(line.low <= 523.0 && 523.0 < line.high && line.precision() <= 0.035, "{line:?}");
    assert_eq!(search.metastable(), None);
}

#[test]
fn a_client_that_is_always_disturbed_ends_the_search() {
    let mut search = LoadLineSearch::new(goal());
    let mut lasted = Vec::new();
    while let Step::Probe { rate, seconds, role } = search.step() {
        lasted.push(seconds);
        search.add(Probe { seconds, role, clean_share: 0.0, ..probe(rate, 1_000, 0) });
    }
    assert_eq!(lasted.len(), 12, "{lasted:?}");
    assert_eq!(search.line(), None);
}

#[test]
fn the_bound_that_gives_way_first_is_the_one_that_counts() {
    // Of the second bound 0.1 % may miss: at 300/s; of the first 1 %: at 500/s.
    let goal = LoadLineGoal { shares_max: vec![0.01, 0.001], ..goal() };
    let mut search = LoadLineSearch::new(goal);
    let odds = |rate: f64, line: f64, share: f64| {
        let odds = ((rate - line) / 50.0).exp() * share / (1.0 - share);
        odds / (1.0 + odds)
    };
    while let Step::Probe { rate, seconds, role } = search.step() {
        let ended = 1_000_000;
        let parts = |line: f64, share: f64| {
            let missed = (ended as f64 * odds(rate, line, share)).round() as u64;
            vec![ProbePart { ended, missed }; 10]
        };
        let bounds = vec![parts(500.0, 0.01), parts(300.0, 0.001)];
        search.add(Probe { rate, seconds, role, bounds, is_overloaded: false, clean_share: 1.0 });
    }
    let line = search.line().unwrap();
    assert_eq!(line.basis, Basis::Fit(1));
    assert!((line.rate - 300.0).abs() < 3.0, "{line:?}");
}

#[test]
fn a_store_that_stays_down_is_found_out() {
    let mut is_down = false;
    let search = search_on(goal(), |rate| {
        // Down it carries 200/s, and is back when it is asked for less than 100/s.
        is_down = (is_down || rate > 523.0) && rate >= 100.0;
        let most = if is_down { 200.0 } else { 523.0 };
        if rate > most { (1_000, true) } else { (0, false) }
    });
    let found = search.metastable().unwrap();
    assert!(found.overloaded_at > 523.0 && found.not_back_at < 523.0, "{found:?}");
    assert!(found.back_at.is_some_and(|rate| rate < 200.0), "{found:?}");
    let line = search.line().unwrap();
    assert!(line.low <= 523.0 && 523.0 <= line.high, "{line:?}");

    // One that was slow for one probe only has come back.
    let mut slow = 0;
    let search = search_on(goal(), |rate| {
        slow = if rate > 523.0 { 2 } else { slow - i32::from(slow > 0) };
        if rate > 523.0 || slow > 0 { (1_000, true) } else { (0, false) }
    });
    assert_eq!(search.metastable(), None);
}

#[test]
fn a_store_that_never_comes_back_ends_the_search() {
    let mut is_down = false;
    let search = search_on(goal(), |rate| {
        is_down |= rate > 523.0;
        if is_down { (1_000, true) } else { (0, false) }
    });
    assert_eq!(search.metastable().unwrap().back_at, None);
    assert!(search.probes().len() < 40, "{}", search.probes().len());
}

#[test]
fn few_operations_of_which_none_misses_are_no_miss() {
    let goal = LoadLineGoal { shares_max: vec![0.01, 0.001], ..goal() };
    let mut search = LoadLineSearch::new(goal);
    while let Step::Probe { rate, seconds, role } = search.step() {
        let bounds = vec![vec![ProbePart { ended: 3, missed: 0 }; 10]; 2];
        search.add(Probe { rate, seconds, role, bounds, is_overloaded: false, clean_share: 1.0 });
    }
    assert!(search.probes().iter().all(|probe| !search.is_too_high(probe)));
    assert_eq!(search.line(), None);
    assert_eq!(search.probes().last().map(|probe| probe.rate), Some(1_000.0));
}

#[test]
fn what_is_not_carried_at_any_rate_has_no_line() {
    let search = search_on(goal(), |_| (1_000, false));
    assert_eq!(search.line(), None);
    // None below the lowest that was allowed is asked for.
    let goal = LoadLineGoal { rate_min: 100.0, ..goal() };
    let search = search_on(goal, |_| (1_000, false));
    assert!(search.probes().iter().all(|probe| probe.rate >= 100.0), "{:?}", search.probes());
    assert_eq!(search.line(), None);
}

#[test]
fn what_is_nearly_missed_at_the_highest_rate_has_no_line() {
    // Some miss, and never too many: a fit would go on above what was offered.
    let goal = LoadLineGoal { rate_max: 400.0, ..goal() };
    let search = search_on(goal, |rate| (if rate > 300.0 { 9 } else { 2 }, false));
    assert_eq!(search.line(), None);
}

#[test]
fn a_cold_start_is_not_the_line() {
    let mut first = true;
    let search = search_on(goal(), |rate| match std::mem::take(&mut first) {
        true => (100, false),
        false if rate > 523.0 => (1_000, true),
        false => (0, false),
    });
    let line = search.line().unwrap();
    assert!(line.low <= 523.0 && 523.0 < line.high, "{line:?}");
}

#[test]
fn what_waits_grows_or_sways() {
    let counts = |backlog: [u64; PROBE_PARTS + 1]| {
        let mut counts = ProbeCounts::new(1);
        let mut before = 0;
        for (part, waiting) in backlog.into_iter().enumerate() {
            counts.due[part] = 100;
            counts.ended[part] = 100 + before - waiting;
            before = waiting;
        }
        counts
    };
    assert!(counts([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]).is_overloaded());
    // A queue that was long once, one that sways, and one that has a hiccup at the end.
    assert!(!counts([0, 0, 60, 90, 60, 30, 0, 0, 0, 0, 0]).is_overloaded());
    assert!(!counts([40, 5, 60, 10, 30, 50, 20, 60, 10, 50, 40]).is_overloaded());
    assert!(!counts([0, 1, 2, 1, 0, 2, 1, 0, 1, 2, 90]).is_overloaded());
}

#[test]
fn counts_of_parts_add_up() {
    let mut one = ProbeCounts::new(1);
    one.note(ProbeStretch::WarmUp, ProbeStretch::Part(0), true);
    one.note(ProbeStretch::Part(3), ProbeStretch::Part(4), false);
    one.add(0, 3, ProbePart { ended: 1, missed: 1 });
    let mut both = one.clone();
    both.merge(&one);
    both.skip(5);
    assert_eq!((both.due_count(), both.succeeded_count()), (7, 2));
    assert_eq!(both.bounds[0][3], ProbePart { ended: 2, missed: 2 });
    assert_eq!(both.bounds[0][PROBE_PARTS - 1], ProbePart { ended: 5, missed: 5 });
    assert!(both.fits(1) && !both.fits(2));
}
