//! Scripts: quantiles against closed forms, stalls by hand, and every refusal.

use plimsoll_testkit::check_format;
use plimsoll_workload::Random;

use super::*;

/// Returns a script of which only the service time is given.
fn service(time: &str) -> Script {
    let yaml = format!("schema: plimsoll.oracle/1\nservice: {{time: {time}}}\n");
    Script::from_yaml(&yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"))
}

fn quantile_ns(script: &Script, p: f64) -> f64 {
    script.quantile(OpKind::Get, 0, p).as_nanos() as f64
}

#[track_caller]
fn about(got: f64, expected: f64, relative: f64) {
    assert!((got / expected - 1.0).abs() <= relative, "{got} instead of {expected}");
}

/// The quantiles of the standard normal distribution at 0.9, 0.99 and 0.999 (any printed table).
const NORMAL: [(f64, f64); 4] =
    [(0.5, 0.0), (0.9, 1.281_551_566), (0.99, 2.326_347_874), (0.999, 3.090_232_306)];

#[test]
fn quantiles_are_those_of_the_closed_forms() {
    let constant = service("{constant: 2ms}");
    let uniform = service("{uniform: {from: 1ms, to: 3ms}}");
    let exponential = service("{exponential: {mean: 5ms}}");
    let pareto = service("{pareto: {scale: 1ms, shape: 2}}");
    for p in [0.0, 0.25, 0.5, 0.9, 0.99, 0.999] {
        assert_eq!(quantile_ns(&constant, p), 2e6);
        about(quantile_ns(&uniform, p), 1e6 + 2e6 * p, 1e-6);
        about(quantile_ns(&pareto, p), 1e6 / (1.0 - p).sqrt(), 1e-6);
        if p > 0.0 {
            about(quantile_ns(&exponential, p), -5e6 * (1.0 - p).ln(), 1e-6);
        }
    }
    let by_median = service("{lognormal: {median: 4ms, sigma: 0.5}}");
    // The mean of a lognormal is the median times exp(sigma² / 2): 4 ms × 1.133148453.
    let by_mean = service("{lognormal: {mean: 4532593ns, sigma: 0.5}}");
    for (p, z) in NORMAL {
        about(quantile_ns(&by_median, p), 4e6 * (0.5 * z).exp(), 1e-6);
        about(quantile_ns(&by_mean, p), 4e6 * (0.5 * z).exp(), 1e-6);
    }
}

#[test]
fn a_mixture_has_the_quantile_at_which_its_shares_add_up() {
    let constants = "{bimodal: {first: {constant: 1ms}, second: {constant: 20ms}, share: 0.95}}";
    let constants = service(constants);
    assert_eq!(
        [0.5, 0.949, 0.951, 0.999].map(|p| quantile_ns(&constants, p)),
        [1e6, 1e6, 20e6, 20e6]
    );
    // 1 - 0.5 exp(-x / 1 ms) - 0.5 exp(-x / 3 ms) at x = 3 ms ln 8: 1 - 0.5 / 512 - 0.5 / 8.
    let mixed = service(
        "{bimodal: {first: {exponential: {mean: 1ms}}, second: {exponential: {mean: 3ms}}, share: 0.5}}",
    );
    about(quantile_ns(&mixed, 1.0 - 0.5 / 512.0 - 0.5 / 8.0), 3e6 * 8.0_f64.ln(), 1e-6);
    assert_eq!(mixed.mean(OpKind::Put, 0), Some(Duration::from_millis(2)));
}

#[test]
fn draws_have_the_quantiles_that_are_stated() {
    let count = 200_000;
    for time in [
        "{uniform: {from: 0, to: 3ms}}",
        "{exponential: {mean: 5ms}}",
        "{lognormal: {median: 4ms, sigma: 0.8}}",
        "{pareto: {scale: 1ms, shape: 1.5}}",
        "{bimodal: {first: {uniform: {from: 1ms, to: 2ms}}, second: {exponential: {mean: 9ms}}, share: 0.7}}",
    ] {
        let script = service(time);
        let mut random = Random::new(4, 0, 0);
        let service = &script.plan(OpKind::Get).service;
        let draws: Vec<u64> =
            (0..count).map(|_| service.work(random.unit(), 0, 0, 1.0).1).collect();
        for p in [0.1, 0.5, 0.9, 0.99, 0.999] {
            let bound = quantile_ns(&script, p) as u64;
            let within = draws.iter().filter(|draw| **draw <= bound).count() as f64;
            // Four standard deviations of a binomial count.
            let slack = 4.0 * (f64::from(count) * p * (1.0 - p)).sqrt();
            assert!((within - f64::from(count) * p).abs() < slack, "{time} at {p}: {within}");
        }
    }
}

#[test]
fn means_are_those_of_the_closed_forms() {
    let mean = |time: &str| service(time).mean(OpKind::Get, 0).map(|mean| mean.as_nanos());
    assert_eq!(mean("{constant: 150us}"), Some(150_000));
    assert_eq!(mean("{uniform: {from: 1ms, to: 4ms}}"), Some(2_500_000));
    assert_eq!(mean("{exponential: {mean: 3ms}}"), Some(3_000_000));
    // exp(0.5² / 2) = 1.133148453.
    assert_eq!(mean("{lognormal: {median: 1ms, sigma: 0.5}}"), Some(1_133_148));
    assert_eq!(mean("{lognormal: {mean: 7ms, sigma: 1.5}}"), Some(7_000_000));
    assert_eq!(mean("{pareto: {scale: 2ms, shape: 3}}"), Some(3_000_000));
    assert_eq!(mean("{pareto: {scale: 2ms, shape: 1}}"), None);
}

#[test]
fn bytes_and_a_slow_first_byte_come_on_top() {
    let yaml = "
schema: plimsoll.oracle/1
service: {time: {constant: 2ms}, per_byte: 100MB/s}
kinds:
  put: {time: {constant: 5ms}, per_byte: 3ns, first_byte: {delay: 1ms}}
  stat: {time: {constant: 1us}}
";
    let script = Script::from_yaml(yaml).unwrap();
    let us = |kind, bytes| script.quantile(kind, bytes, 0.5).as_nanos() as f64 / 1e3;
    assert_eq!(us(OpKind::Get, 0), 2_000.0);
    assert_eq!(us(OpKind::Get, 100_000), 3_000.0);
    assert_eq!(us(OpKind::Put, 100_000), 6_300.0);
    assert_eq!(us(OpKind::Stat, 100_000), 1.0);
    assert_eq!(us(OpKind::Delete, 0), 2_000.0);
}

#[test]
fn work_rests_in_frozen_time() {
    // Frozen: [100, 130), [200, 230), …
    let stall = Stall { every: 100, lasting: 30, offset: 100 };
    for (from, work, done) in [
        (0, 0, 0),
        (0, 100, 100),
        (0, 101, 131),
        (90, 10, 100),
        (90, 11, 131),
        (100, 0, 130),
        (100, 5, 135),
        (129, 5, 135),
        (130, 5, 135),
        (130, 70, 200),
        (130, 71, 231),
        // 20 in this period, 70 in each of the next two, 1 more.
        (180, 161, 431),
        (5_000, 140, 5_200),
        (5_000, 0, 5_030),
    ] {
        assert_eq!(stall.finish(from, work), done, "{work} from {from}");
    }
    // Step by step, as the definition has it.
    let stall = Stall { every: 7, lasting: 3, offset: 4 };
    let frozen = |at: u64| at >= 4 && (at - 4) % 7 < 3;
    for from in 0..30 {
        let mut at = from;
        for work in 0..40 {
            let mut resumed = at;
            if work == 0 {
                while frozen(resumed) {
                    resumed += 1;
                }
                at = resumed;
                assert_eq!(stall.finish(from, 0), at, "0 from {from}");
                continue;
            }
            while frozen(at) {
                at += 1;
            }
            at += 1;
            assert_eq!(stall.finish(from, work), at, "{work} from {from}");
        }
    }
    let always = Stall { every: 2, lasting: 1, offset: 0 };
    assert_eq!(always.finish(u64::MAX - 5, u64::MAX), u64::MAX, "no overflow");
}

const BASE: &str = "schema: plimsoll.oracle/1\n";
const QUICK: &str = "service: {time: {constant: 1ms}}\n";

#[track_caller]
fn refused(yaml: &str, expected: &str) {
    let error = Script::from_yaml(&format!("{BASE}{yaml}")).expect_err(yaml);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn impossible_times_are_refused() {
    for (time, expected) in [
        ("{constant: 0}", "constant: `0` is zero"),
        (
            "{constant: -2ms}",
            "constant: `-2ms` does not start with a number, so it is not a duration",
        ),
        (
            "{constant: .nan}",
            "constant: `.nan` does not start with a number, so it is not a duration",
        ),
        (
            "{constant: 5}",
            "constant: `5` has no unit; write `5s` (ns, us, ms, s, m, h, d), so it is not a \
             duration",
        ),
        ("{constant: 400000000000d}", "constant: `400000000000d` is too long"),
        ("{uniform: {from: 3ms, to: 3ms}}", "uniform: `3ms` is not below `3ms`"),
        ("{exponential: {mean: 0s}}", "exponential.mean: `0s` is zero"),
        (
            "{lognormal: {median: 1ms, sigma: -1}}",
            "lognormal.sigma: -1 is not a finite number above 0",
        ),
        (
            "{lognormal: {median: 1ms, sigma: .nan}}",
            "lognormal.sigma: NaN is not a finite number above 0",
        ),
        ("{lognormal: {sigma: 1}}", "lognormal: give either `median` or `mean`"),
        (
            "{lognormal: {median: 1ms, mean: 2ms, sigma: 1}}",
            "lognormal: give either `median` or `mean`",
        ),
        ("{pareto: {scale: 1ms, shape: 0}}", "pareto.shape: 0 is not a finite number above 0"),
        ("{pareto: {scale: 0, shape: 2}}", "pareto.scale: `0` is zero"),
        (
            "{bimodal: {first: {constant: 1ms}, second: {constant: 2ms}, share: 1.5}}",
            "bimodal.share: 1.5 is not a share from 0 to 1",
        ),
        (
            "{bimodal: {first: {constant: 1ms}, second: {pareto: {scale: 0, shape: 2}}, share: 0.5}}",
            "bimodal.second.pareto.scale: `0` is zero",
        ),
    ] {
        refused(&format!("service: {{time: {time}}}\n"), &format!("service.time.{expected}"));
    }
    refused(
        "service: {time: {constant: 1ms}}\nservers: 2\nkinds: {put: {time: {pareto: {scale: 1ms, shape: 1}}}}\n",
        "kinds.put.time.pareto.shape: with 1 the mean is infinite, and a queue before `servers` \
         never ends; take more than 1",
    );
    let service = |rest: &str| format!("service: {{time: {{constant: 1ms}}, {rest}}}\n");
    refused(&service("per_byte: 0MiB/s"), "service.per_byte: `0MiB/s` is a rate of 0");
    refused(&service("per_byte: 0"), "service.per_byte: `0` is zero");
    refused(
        &service("drift: {percent_per_minute: -5}"),
        "service.drift.percent_per_minute: -5 is not a finite number of 0 or more",
    );
    refused(
        &service("first_byte: {share: -0.5}"),
        "service.first_byte.share: -0.5 is not a share from 0 to 1",
    );
}

#[test]
fn impossible_stores_are_refused() {
    for (rest, expected) in [
        ("servers: 0", "servers: 0 is not from 1 to 1000000; leave it out for any number"),
        (
            "servers: 1000001",
            "servers: 1000001 is not from 1 to 1000000; leave it out for any number",
        ),
        ("queue_max: 5", "queue_max: nothing ever waits where `servers` is not given"),
        ("rate_cap: {ops_per_sec: 0}", "rate_cap.ops_per_sec: 0 is not a finite number above 0"),
        (
            "rate_cap: {ops_per_sec: 5, burst: 0}",
            "rate_cap.burst: with 0 no operation would ever be let in",
        ),
        ("refusal_time: 0", "refusal_time: `0` is zero"),
        ("stalls: {every: 1s, lasting: 2s}", "stalls.lasting: `2s` is not below `every`, `1s`"),
        ("stalls: {every: 1s, lasting: 1s}", "stalls.lasting: `1s` is not below `every`, `1s`"),
        ("stalls: {every: 0, lasting: 1s}", "stalls.every: `0` is zero"),
        (
            "brownouts: [{from: 1s, lasting: 1s, factor: 2}, {from: 1s, lasting: 1s, factor: 0}]",
            "brownouts[1].factor: 0 is not a finite number above 0",
        ),
        (
            "collapse: {above: 1s, factor: 2, calm: 1ms, lasting: 1s}",
            "collapse: nothing ever waits where `servers` is not given",
        ),
        (
            "servers: 1\ncollapse: {above: 1s, factor: 2, calm: 2s, lasting: 1s}",
            "collapse.calm: `2s` is longer than `above`",
        ),
        (
            "brownouts: [{from: 1s, lasting: 5s, every: 5s, factor: 2}]",
            "brownouts[0].lasting: `5s` is not below `every`",
        ),
        (
            "kinds: {all: {time: {constant: 1ms}}}",
            "kinds.all: what holds for all kinds stands in `service`",
        ),
        ("faults: {get: {reset: 1.5}}", "faults.get.reset: 1.5 is not a share from 0 to 1"),
        ("faults: {all: {silence: .nan}}", "faults.all.silence: NaN is not a share from 0 to 1"),
        (
            "faults: {get: {reset: 0.5, status: {500: 0.25, 501: 0.375}}}",
            "faults.get: the shares add up to 1.125, which is more than 1",
        ),
        (
            "faults: {put: {status: {200: 0.1}}}",
            "faults.put.status.200: only statuses from 400 to 599 are failures",
        ),
        (
            "faults: {delete: {status: {404: 0.1}}}",
            "faults.delete.status.404: DELETE of what is not there succeeds, so 404 is not a fault",
        ),
        (
            "faults: {put: {half_body: 0.1}}",
            "faults.put.half_body: the answer to PUT has no such body",
        ),
        (
            "faults: {stat: {error_in_success: 0.1}}",
            "faults.stat.error_in_success: the answer to STAT has no such body",
        ),
        ("lies: {torn: -0.1}", "lies.torn: -0.1 is not a share from 0 to 1"),
        ("lies: {torn: 0.75, zeroed: 0.5}", "lies: faults and lies of GET add up to more than 1"),
        (
            "faults: {all: {reset: 0.75}}\nlies: {lost_write: 0.5}",
            "faults.all: faults and lies of PUT add up to more than 1",
        ),
        (
            "plant: {count: 0, of: 5, kinds: [torn]}",
            "plant.count: 0 plants nothing; leave `plant` out",
        ),
        ("plant: {count: 6, of: 5, kinds: [torn]}", "plant.count: 6 do not fit into 5 operations"),
        ("plant: {count: 1, of: 5, kinds: []}", "plant.kinds: at least one is needed"),
        (
            "plant: {count: 1, of: 5, kinds: [reset]}",
            "plant.kinds: `reset` is not a lie, `half_body` or `wrong_length`",
        ),
        ("plant: {count: 1, of: 5, kinds: [torn, torn]}", "plant.kinds: `torn` appears twice"),
    ] {
        refused(&format!("{QUICK}{rest}\n"), expected);
    }
}

#[test]
fn what_is_no_script_is_refused_in_one_line_with_its_place() {
    for yaml in ["sevice: 5", "service: {time: {constant: 1ms}}\nstals: {}", "service: [", ""] {
        let error = Script::from_yaml(&format!("{BASE}{yaml}")).expect_err(yaml).to_string();
        assert!(error.starts_with("the oracle script cannot be read: "), "{error}");
        assert!(!error.contains('\n') && error.contains("line"), "{error}");
    }
    let error = Script::from_yaml(&format!("{BASE}{QUICK}stals: {{}}\n")).unwrap_err();
    assert!(error.to_string().contains("stals"), "{error}");
}

#[test]
fn shares_that_add_up_to_1_in_decimals_leave_nothing_over() {
    let tenths = "slow_down: 0.1, reset: 0.2, silence: 0.3, half_body: 0.1, wrong_length: 0.1, \
                  error_in_success: 0.1, status: {500: 0.1}";
    let script = Script::from_yaml(&format!("{BASE}{QUICK}faults: {{get: {{{tenths}}}}}\n"));
    assert_eq!(script.unwrap().plan(OpKind::Get).mix.last().map(|(sum, _)| *sum), Some(1.0));
}

#[test]
fn oracle_schema_json_is_current() {
    let fresh = serde_json::to_string_pretty(&Script::json_schema()).unwrap();
    check_format("oracle.schema.json", &format!("{fresh}\n"));
}

#[test]
fn what_is_wrong_with_the_part_of_seaweedfs_is_said() {
    for (rest, expected) in [
        ("assign: {growing: 1.5}", "seaweed.assign.growing: 1.5 is not a share from 0 to 1"),
        (
            "assign: {growing: 0.5, full: 0.5, silent: 0.1}",
            "seaweed.assign: the shares add up to more than 1",
        ),
        ("assign: {time: {constant: 0s}}", "seaweed.assign.time.constant: `0s` is zero"),
        ("growth: {assigns: 0}", "seaweed.growth.assigns: 0 refuses nothing; leave `growth` out"),
        ("growth: {lasting: 0s}", "seaweed.growth.lasting: `0s` is zero"),
        ("leaders: [{master: 1}]", "seaweed.leaders[0]: give either `at` or `after_assigns`"),
        ("away: [{server: 0, from: 1s, lasting: 0s}]", "seaweed.away[0].lasting: `0s` is zero"),
    ] {
        refused(&format!("{QUICK}seaweed: {{{rest}}}\n"), expected);
    }
}

#[test]
fn an_act_that_is_left_out_leaves_the_others_their_shares() {
    let faults = "faults: {delete: {slow_down: 0.25, error_in_success: 0.5, reset: 0.125}}";
    let script = Script::from_yaml(&format!("{BASE}{QUICK}{faults}\n")).unwrap();
    let without = script.without(OpKind::Delete, Act::ErrorInSuccess);
    let left = [(0.25, Act::SLOW_DOWN), (0.375, Act::ResetBefore)];
    let mut mix = without.plan(OpKind::Delete).mix.clone();
    mix.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert_eq!(mix, left);
}
