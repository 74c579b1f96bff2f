//! Queues of which theory says how long an operation takes: what a measurement is held against.
//!
//! Arrivals are a Poisson process, and who comes first is served first. Rates are in operations per
//! second, times in seconds.

/// In so many steps the distribution of waiting is worked out up to the time that is asked for.
const STEPS: usize = 4_000;
/// More operations than so many times those at which a time is exceeded, and than so many, are
/// never in a store that keeps up.
const STATES_PART: usize = 4;
const STATES_MIN: usize = 128;
/// A rate is halved so often; each adds a bit.
const HALVINGS: u32 = 40;

/// Returns the share of operations that take longer than `bound` in M/M/c: service times are
/// exponential, `mu` to a server in a second. The time in the system is the wait, which is 0 or
/// exponential, and the service (D. Gross, C. M. Harris, *Fundamentals of Queueing Theory*, 3rd ed.
/// 1998, section 2.3). 1 where the store does not keep up.
pub fn mmc_share_over(servers: u32, mu: f64, rate: f64, bound: f64) -> f64 {
    let (load, count) = (rate / mu, f64::from(servers));
    let drain = count * mu - rate;
    if drain <= 0.0 {
        return 1.0;
    }
    let blocked =
        (1..=servers).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked));
    let waits = blocked / (1.0 - load / count * (1.0 - blocked));
    let service = (-mu * bound).exp();
    let both = match (mu - drain).abs() < 1e-9 * mu {
        true => (1.0 + mu * bound) * service,
        false => (mu * (-drain * bound).exp() - drain * service) / (mu - drain),
    };
    (1.0 - waits) * service + waits * both
}

/// Returns the share of operations that take longer than `bound` with one server, M/G/1, whose
/// service takes each of these times with that probability. How long one waits is
/// `W(t) = 1 - rho + rate * integral of W(t - u) (1 - B(u)) du`, `B` the distribution of the
/// service (the integral form of Takacs' equation; L. Kleinrock, *Queueing Systems*, vol. 1, 1975,
/// section 5.10), by the trapezoidal rule. 1 where the store does not keep up.
pub fn mg1_share_over(services: &[(f64, f64)], rate: f64, bound: f64) -> f64 {
    let rho = rate * services.iter().map(|(time, share)| time * share).sum::<f64>();
    if rho >= 1.0 {
        return 1.0;
    }
    let step = bound / STEPS as f64;
    // Where a time lies within a step, as much of it counts as lies before it.
    let longer_than = |at: f64| {
        let part = |(time, share): &(f64, f64)| share * ((time - at) / step + 0.5).clamp(0.0, 1.0);
        services.iter().map(part).sum::<f64>()
    };
    let longer: Vec<f64> = (0..=STEPS).map(|at| longer_than(at as f64 * step)).collect();
    let longest = longer.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    let mut waits = vec![1.0 - rho];
    for at in 1..=STEPS {
        let half = |back: usize| if back == at { 0.5 } else { 1.0 };
        let sum: f64 = (1..=longest.min(at)).map(|b| half(b) * longer[b] * waits[at - b]).sum();
        waits.push((1.0 - rho + rate * step * sum) / (1.0 - rate * step * 0.5 * longer[0]));
    }
    let within = |(time, share): &(f64, f64)| {
        let at = (bound - time) / step;
        let (whole, part) = (at.floor(), at.fract());
        match at >= 0.0 {
            true => {
                let (low, next) = (waits[whole as usize], (whole as usize + 1).min(STEPS));
                share * (low + (waits[next] - low) * part)
            }
            false => 0.0,
        }
    };
    1.0 - services.iter().map(within).sum::<f64>()
}

/// Returns the share of operations that take longer than `times` services in M/D/c, where each
/// service takes `service`: those that find at least `times * servers` others. From one service
/// time to the next all that were being served leave and as many come as arrive (C. D. Crommelin,
/// *Delay Probability Formulae When the Holding Times are Constant*, 1932); that chain is solved by
/// elimination (W. K. Grassmann, M. I. Taksar, D. P. Heyman, *Regenerative Analysis and Steady
/// State Distributions for Markov Chains*, 1985). 1 where the store does not keep up.
pub fn mdc_share_over(servers: usize, service: f64, rate: f64, times: usize) -> f64 {
    let arrivals = rate * service;
    if arrivals >= servers as f64 {
        return 1.0;
    }
    let states = (servers * times * STATES_PART).max(STATES_MIN);
    let mut next: Vec<Vec<f64>> = (0..states)
        .map(|here| {
            // Bound: the callers' constants, which are scripts of proofs.
            let mut row = vec![0.0; states];
            let left = here.saturating_sub(servers);
            let mut come = (-arrivals).exp();
            for (count, to) in (left..states).enumerate() {
                row[to] = come;
                come *= arrivals / (count + 1) as f64;
            }
            row[states - 1] += (1.0 - row.iter().sum::<f64>()).max(0.0);
            row
        })
        .collect();
    for last in (1..states).rev() {
        let (before, after) = next.split_at_mut(last);
        let onwards = &after[0][..last];
        let leaves: f64 = onwards.iter().sum();
        for row in before {
            row[last] /= leaves;
            let through = row[last];
            if through > 0.0 {
                row.iter_mut().zip(onwards).for_each(|(to, onwards)| *to += through * onwards);
            }
        }
    }
    let mut weights = vec![1.0];
    while weights.len() < states {
        let state = weights.len();
        let from = weights.iter().zip(&next);
        weights.push(from.map(|(weight, row)| weight * row[state]).sum());
    }
    weights[servers * times..].iter().sum::<f64>() / weights.iter().sum::<f64>()
}

/// Returns the highest rate, up to `most`, at which no more than a share of operations takes too
/// long; `share_over` says how many do, and rises.
pub fn rate_carried(most: f64, share_max: f64, share_over: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if share_over(middle) > share_max { high = middle } else { low = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the time that this share of the operations of M/M/c take longer than, as
/// [`mmc_share_over`] has it; `None` where the store does not keep up.
pub fn mmc_time_over(servers: u32, mu: f64, rate: f64, share: f64) -> Option<f64> {
    if rate >= f64::from(servers) * mu {
        return None;
    }
    let is_longer = |time: f64| mmc_share_over(servers, mu, rate, time) > share;
    let (mut low, mut high) = (0.0, 1.0 / mu);
    while is_longer(high) {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_longer(middle) { low = middle } else { high = middle }
    }
    Some(f64::midpoint(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_memoryless_server_is_exponential() {
        let over = mmc_share_over(1, 1_000.0, 800.0, 0.02);
        assert!((over - (-4.0_f64).exp()).abs() < 1e-9, "{over}");
        // ln(0.01) / 20 ms below 1,000/s.
        let carried = rate_carried(1_000.0, 0.01, |rate| mmc_share_over(1, 1_000.0, rate, 0.02));
        assert!((carried - 769.741_49).abs() < 1e-3, "{carried}");
    }

    #[test]
    fn the_times_of_memoryless_servers_are_those_of_their_shares() {
        // One server at 800 of 1,000/s: exponential with a mean of 5 ms.
        let median = mmc_time_over(1, 1_000.0, 800.0, 0.5).unwrap();
        assert!((median - 0.005 * 2.0_f64.ln()).abs() < 1e-9, "{median}");
        let p99 = mmc_time_over(4, 1_000.0, 3_000.0, 0.01).unwrap();
        assert!((mmc_share_over(4, 1_000.0, 3_000.0, p99) - 0.01).abs() < 1e-9, "{p99}");
        assert_eq!(mmc_time_over(1, 1_000.0, 1_000.0, 0.5), None);
    }

    #[test]
    fn many_memoryless_servers_wait_as_erlang_says() {
        // Erlang's C of 2 servers with a load of 1 is 1/3 (A. K. Erlang, 1917).
        let over_nothing = mmc_share_over(2, 1.0, 1.0, 0.0);
        assert!((over_nothing - 1.0).abs() < 1e-12, "{over_nothing}");
        // 2/3 e^-t + 1/3 (1 + t) e^-t at t = 3.
        let over = mmc_share_over(2, 1.0, 1.0, 3.0);
        assert!((over - 2.0 * (-3.0_f64).exp()).abs() < 1e-9, "{over}");
    }

    #[test]
    fn one_server_of_any_kind_is_the_memoryless_one_where_it_is() {
        // An exponential service of 1 ms cut into slices of 10 us.
        let slices: Vec<(f64, f64)> = (0..3_000)
            .map(|slice| {
                let from = f64::from(slice) * 0.01;
                ((from + 0.005) / 1e3, (-from).exp() - (-from - 0.01).exp())
            })
            .collect();
        let over = mg1_share_over(&slices, 700.0, 0.01);
        assert!((over - (-3.0_f64).exp()).abs() < 2e-4, "{over}");
    }

    #[test]
    fn a_constant_server_is_the_same_by_both_formulas() {
        // P(W = 0) of M/D/1 at half its capacity is 1/2, and P(W <= D) is e^0.5 / 2 (Erlang, 1909).
        let over_two = mdc_share_over(1, 1.0, 0.5, 2);
        assert!((over_two - (1.0 - 0.5_f64.exp() / 2.0)).abs() < 1e-9, "{over_two}");
        for times in [2, 5] {
            let by_chain = mdc_share_over(1, 0.001, 800.0, times);
            let by_integral = mg1_share_over(&[(0.001, 1.0)], 800.0, times as f64 * 0.001);
            assert!((by_chain - by_integral).abs() < 1e-4, "{by_chain} {by_integral}");
        }
    }

    #[test]
    fn a_store_that_does_not_keep_up_is_too_slow_for_all() {
        assert_eq!(mmc_share_over(2, 10.0, 20.0, 1.0), 1.0);
        assert_eq!(mg1_share_over(&[(0.5, 1.0)], 2.0, 1.0), 1.0);
        assert_eq!(mdc_share_over(4, 0.5, 8.0, 3), 1.0);
    }
}
