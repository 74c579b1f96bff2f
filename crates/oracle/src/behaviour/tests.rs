//! Behaviour by itself: queues against queueing theory, stalls by hand, shares and plants by count.

use super::*;

const SEED: u64 = 11;
const MS: u64 = 1_000_000;

fn behaviour(script: &str) -> Behaviour {
    let yaml = format!("schema: plimsoll.oracle/1\n{script}");
    let script = Script::from_yaml(&yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"));
    Behaviour::new(&script, SEED).keeping_latencies()
}

fn request(kind: OpKind) -> Request<'static> {
    Request { kind, key: "key", content_bytes: 1_000, honest: ErrorClass::Ok }
}

/// Decides about a get that arrives at `at_ns`; every lie can be told.
fn get(behaviour: &mut Behaviour, at_ns: u64) -> Verdict {
    decide(behaviour, at_ns, OpKind::Get)
}

fn decide(behaviour: &mut Behaviour, at_ns: u64, kind: OpKind) -> Verdict {
    behaviour.decide(Moment::from_ns(at_ns), &request(kind), &mut |_, _| Some(ErrorClass::Corrupt))
}

/// Returns the latencies in ns of gets that arrive as a Poisson process.
fn poisson_latencies(script: &str, ops_per_sec: f64, count: u32) -> Vec<u64> {
    let mut behaviour = behaviour(script);
    let mut random = Random::new(SEED, 1, 1);
    let mut now = 0.0;
    for _ in 0..count {
        now -= (-random.unit()).ln_1p() / ops_per_sec * 1e9;
        get(&mut behaviour, now as u64);
    }
    behaviour.ledger().latencies_ns(OpKind::Get).to_vec()
}

fn mean_ms(latencies: &[u64]) -> f64 {
    latencies.iter().sum::<u64>() as f64 / latencies.len() as f64 / 1e6
}

fn share_above(latencies: &[u64], bound_ms: f64) -> f64 {
    let above = latencies.iter().filter(|latency| **latency as f64 > bound_ms * 1e6).count();
    above as f64 / latencies.len() as f64
}

#[test]
fn one_server_has_the_sojourn_time_of_m_m_1() {
    let script = "service: {time: {exponential: {mean: 1ms}}}\nservers: 1\n";
    let latencies = poisson_latencies(script, 500.0, 400_000);
    // mu = 1000/s, lambda = 500/s: sojourn times are exponential with mean 1 / (mu - lambda) = 2
    // ms. Near ones are alike, so the mean of 400,000 is good to about 0.6 %.
    assert!((mean_ms(&latencies) / 2.0 - 1.0).abs() < 0.02, "{}", mean_ms(&latencies));
    for share in [0.5_f64, 0.1, 0.01] {
        let got = share_above(&latencies, -2.0 * share.ln());
        assert!((got / share - 1.0).abs() < 0.1, "{got} above the quantile of {share}");
    }
}

#[test]
fn two_servers_wait_as_erlang_c_says() {
    let script = "service: {time: {exponential: {mean: 1ms}}}\nservers: 2\n";
    let latencies = poisson_latencies(script, 1_500.0, 600_000);
    // a = 1.5, rho = 0.75: C = 4.5 / (1 + 1.5 + 4.5) = 0.642857 wait, on the mean for
    // C / (2 mu - lambda) = 1.285714 ms; with the service 2.285714 ms.
    assert!((mean_ms(&latencies) / 2.285_714 - 1.0).abs() < 0.03, "{}", mean_ms(&latencies));
    let mut waited = 0;
    let mut behaviour = behaviour(script);
    let mut random = Random::new(SEED, 2, 2);
    let mut now = 0.0;
    for _ in 0..300_000 {
        now -= (-random.unit()).ln_1p() / 1_500.0 * 1e9;
        let verdict = get(&mut behaviour, now as u64);
        waited += u32::from(verdict.started.as_ns() > now as u64);
    }
    assert!((f64::from(waited) / 300_000.0 / 0.642_857 - 1.0).abs() < 0.03, "{waited}");
}

#[test]
fn the_stall_of_the_measuring_document_gives_its_latencies() {
    let script = "service: {time: {constant: 2ms}}\n\
                  stalls: {every: 10s, lasting: 1s, offset: 9s}\n";
    let mut behaviour = behaviour(script);
    for ms in 0..60_000 {
        let verdict = get(&mut behaviour, ms * MS);
        let latency = verdict.done.as_ns() - ms * MS;
        let expected = match ms % 10_000 {
            // 1 ms of the service lies before the stall, 1 ms after it.
            8_999 => 1_002,
            in_period @ 9_000.. => 10_000 - in_period + 2,
            _ => 2,
        };
        assert_eq!(latency, expected * MS, "arrival at {ms} ms");
    }
    let latencies = behaviour.ledger().latencies_ns(OpKind::Get);
    let above = |ms: u64| latencies.iter().filter(|latency| **latency > ms * MS).count();
    // Six stalls; in each 500, 100, 10 arrivals and the one just before it wait longer.
    assert_eq!((above(502), above(902), above(992)), (6 * 501, 6 * 101, 6 * 11));
}

#[test]
fn brownouts_and_drift_stretch_the_service() {
    let script = "service: {time: {constant: 2ms}, drift: {percent_per_minute: 50}}\n\
                  brownouts: [{from: 60s, lasting: 10s, factor: 3}, \
                  {from: 65s, lasting: 1s, every: 120s, factor: 2}]\n";
    let mut behaviour = behaviour(script);
    // At 1 min the service takes 3 ms, at 2 min 4 ms; at 65 s 1 + 0.5 * 65 / 60 times 2 ms.
    for (at_s, us) in
        [(0, 2_000), (60, 9_000), (65, 18_500), (120, 4_000), (185, 10_167), (186, 5_100)]
    {
        let verdict = get(&mut behaviour, at_s * 1_000 * MS);
        let took = verdict.done.since(verdict.started);
        assert_eq!((took.as_nanos() as f64 / 1e3).round() as u64, us, "at {at_s} s");
    }
}

#[test]
fn a_collapsed_store_stays_slow_until_it_was_calm() {
    let mut behaviour = behaviour(
        "service: {time: {constant: 10ms}}\nservers: 1\n\
         collapse: {above: 50ms, factor: 3, calm: 20ms, lasting: 1s}",
    );
    let mut took = |at_ms: u64| {
        let verdict = get(&mut behaviour, at_ms * MS);
        verdict.done.since(verdict.started).as_nanos() as u64 / MS
    };
    // They wait 0, 10, … 60 ms.
    assert_eq!([0; 7].map(&mut took), [10, 10, 10, 10, 10, 10, 30]);
    // Calm since the moment at which that one began, 60 ms; the last one begins at 930 ms after it
    // has waited for 30 ms, so that there are to be calm moments until 1,930 ms.
    assert_eq!([500, 900, 900].map(&mut took), [30, 30, 30]);
    assert_eq!([1_500, 1_929, 1_960].map(&mut took), [30, 30, 10]);
}

#[test]
fn the_first_byte_goes_out_when_the_script_says() {
    for (first_byte, first_ms, done_ms) in [
        ("", 4, 4),
        (", first_byte: {share: 0.25}", 1, 4),
        (", first_byte: {share: 0}", 0, 4),
        (", first_byte: {delay: 3ms}", 3, 7),
    ] {
        let mut behaviour = behaviour(&format!("service: {{time: {{constant: 4ms}}{first_byte}}}"));
        let verdict = get(&mut behaviour, 10 * MS);
        let ms = |moment: Moment| (moment.as_ns() - 10 * MS) / MS;
        assert_eq!((ms(verdict.first_byte), ms(verdict.done)), (first_ms, done_ms), "{first_byte}");
    }
}

#[test]
fn a_full_queue_turns_away() {
    let script = "service: {time: {constant: 10ms}}\nservers: 1\nqueue_max: 2\nrefusal_time: 3ms\n";
    let mut behaviour = behaviour(script);
    let done_ms = |verdict: &Verdict| verdict.done.as_ns() / MS;
    let served: Vec<Verdict> = (0..3).map(|_| get(&mut behaviour, 0)).collect();
    assert_eq!(served.iter().map(done_ms).collect::<Vec<_>>(), [10, 20, 30]);
    let refused = get(&mut behaviour, MS);
    assert_eq!((refused.act, done_ms(&refused)), (Act::SLOW_DOWN, 4));
    assert_eq!(get(&mut behaviour, 9 * MS).act, Act::SLOW_DOWN);
    let next = get(&mut behaviour, 10 * MS);
    assert_eq!((next.act, done_ms(&next)), (Act::Serve, 40), "one has left the queue");
    assert_eq!(get(&mut behaviour, 10 * MS).act, Act::SLOW_DOWN);
    let ledger = behaviour.ledger();
    assert_eq!(ledger.count(OpKind::Get, ErrorClass::Throttled), 3);
    assert_eq!(ledger.count(OpKind::Get, ErrorClass::Ok), 4);
    assert_eq!(ledger.content_bytes(OpKind::Get), 4_000);
}

#[test]
fn no_place_to_wait_means_only_who_finds_a_server_is_served() {
    let mut behaviour = behaviour("service: {time: {constant: 10ms}}\nservers: 2\nqueue_max: 0\n");
    let acts = [0, 1, 2, 10, 10, 11].map(|ms| get(&mut behaviour, ms * MS).act);
    let (serve, refuse) = (Act::Serve, Act::SLOW_DOWN);
    assert_eq!(acts, [serve, serve, refuse, serve, refuse, serve]);
}

#[test]
fn a_rate_cap_lets_in_its_rate_and_its_burst() {
    let script = "service: {time: {constant: 1ms}}\nrate_cap: {ops_per_sec: 100, burst: 5}\n";
    let mut behaviour = behaviour(script);
    // 1000/s for 10 s: the burst, then one every 10 ms.
    for ms in 0..10_000 {
        let verdict = get(&mut behaviour, ms * MS);
        if verdict.act == Act::SLOW_DOWN {
            assert_eq!(verdict.done.as_ns(), (ms + 1) * MS, "refused after 1 ms");
        }
    }
    let let_in = behaviour.ledger().count(OpKind::Get, ErrorClass::Ok);
    assert!((1_004..=1_005).contains(&let_in), "{let_in}");
    assert_eq!(behaviour.ledger().class_count(ErrorClass::Throttled), 10_000 - let_in);
    // Exactly at the rate nothing is refused, though moments are rounded to ns.
    let mut exact =
        self::behaviour("service: {time: {constant: 1ms}}\nrate_cap: {ops_per_sec: 300}\n");
    for number in 0..30_000 {
        assert_eq!(get(&mut exact, number * 1_000 * MS / 300).act, Act::Serve, "{number}");
    }
}

const EVERY_FAULT: &str = "service: {time: {constant: 1ms}}
faults:
  all: {reset: 0.25, half_body: 0.25}
  get: {slow_down: 0.05, status: {500: 0.04, 403: 0.02, 404: 0.03}, reset: 0.06, half_body: 0.07,
        wrong_length: 0.08, error_in_success: 0.09, silence: 0.1}
lies: {lost_write: 0.5, zeroed: 0.11}
";

#[test]
fn faults_and_lies_come_by_their_shares() {
    let mut behaviour = behaviour(EVERY_FAULT);
    let count = 100_000;
    for number in 0..count {
        let verdict = get(&mut behaviour, number * MS);
        let done = Moment::from_ns((number + 1) * MS);
        assert_eq!(verdict.done, if verdict.act == Act::Silence { NEVER } else { done });
        decide(&mut behaviour, number * MS, OpKind::Put);
    }
    let ledger = behaviour.ledger().clone();
    let near = |got: u64, share: f64| {
        let slack = 4.0 * (count as f64 * share * (1.0 - share)).sqrt();
        assert!((got as f64 - count as f64 * share).abs() < slack, "{got} for {share}");
    };
    let of_get = |class| ledger.count(OpKind::Get, class);
    near(of_get(ErrorClass::Throttled), 0.05);
    near(of_get(ErrorClass::Server), 0.04);
    near(of_get(ErrorClass::Denied), 0.02);
    near(of_get(ErrorClass::NotFound), 0.03);
    near(of_get(ErrorClass::Reset), 0.06);
    near(of_get(ErrorClass::Truncated), 0.15);
    near(of_get(ErrorClass::Protocol), 0.09);
    near(of_get(ErrorClass::Timeout), 0.10);
    near(of_get(ErrorClass::Corrupt), 0.11);
    near(of_get(ErrorClass::Ok), 0.35);
    assert_eq!(ledger.operations_count(OpKind::Get), count);
    assert_eq!(ledger.lie_count(Lie::Zeroed), of_get(ErrorClass::Corrupt));
    let acts = ledger.acts(OpKind::Get);
    assert_eq!(acts["half_body"] + acts["wrong_length"], of_get(ErrorClass::Truncated));
    assert_eq!(ledger.content_bytes(OpKind::Get), of_get(ErrorClass::Ok) * 1_000);
    // The entry for all has no half bodies for puts; their lie here ends as `Corrupt`.
    near(ledger.count(OpKind::Put, ErrorClass::Reset), 0.25);
    near(ledger.lie_count(Lie::LostWrite), 0.5);
    near(ledger.count(OpKind::Put, ErrorClass::Ok), 0.25);
    assert_eq!(ledger.count(OpKind::Put, ErrorClass::Truncated), 0);
}

#[test]
fn the_seed_decides_and_faults_do_not_move_service_times() {
    let time = "service: {time: {lognormal: {median: 2ms, sigma: 1}}}\n";
    let faulty = EVERY_FAULT.replace("service: {time: {constant: 1ms}}\n", time);
    let run = |script: &str, seed: u64| -> Vec<Verdict> {
        let yaml = format!("schema: plimsoll.oracle/1\n{script}");
        let mut behaviour = Behaviour::new(&Script::from_yaml(&yaml).unwrap(), seed);
        (0..2_000).map(|number| get(&mut behaviour, number * MS)).collect()
    };
    assert_eq!(run(&faulty, 1), run(&faulty, 1));
    assert_ne!(run(&faulty, 1), run(&faulty, 2));
    let (plain, faulty) = (run(time, 1), run(&faulty, 1));
    for (plain, faulty) in plain.iter().zip(&faulty).filter(|(_, other)| other.done != NEVER) {
        assert_eq!(plain.done, faulty.done);
    }
}

#[test]
fn plants_are_exact_and_wait_until_they_can_be_told() {
    let script = "service: {time: {constant: 1ms}}\ngrace_count: 100\n\
                  plant: {count: 40, of: 1000, \
                  kinds: [torn, half_body, old_version, list_ghost]}\n";
    let mut behaviour = behaviour(script);
    let mut planted = Vec::new();
    for number in 0..2_000u64 {
        let kind = match number % 10 {
            0 => OpKind::List,
            1 => OpKind::Put,
            _ => OpKind::Get,
        };
        // There are no older versions for a while.
        let mut tell =
            |lie, _| (lie != Lie::OldVersion || number >= 1_500).then_some(ErrorClass::Corrupt);
        let now = Moment::from_ns(number * MS);
        let verdict = behaviour.decide(now, &request(kind), &mut tell);
        if verdict.act != Act::Serve {
            assert!(verdict.act.fits(kind) && number >= 100);
            planted.push((number, verdict.act));
        }
    }
    let ledger = behaviour.ledger();
    for lie in [Lie::Torn, Lie::OldVersion, Lie::ListGhost] {
        assert_eq!(ledger.lie_count(lie), 10, "{}", lie.name());
    }
    assert_eq!(ledger.class_count(ErrorClass::Truncated), 10);
    assert_eq!(ledger.class_count(ErrorClass::Ok), 2_000 - 40);
    let old: Vec<u64> = planted
        .iter()
        .filter(|(_, act)| *act == Act::Lie(Lie::OldVersion))
        .map(|(number, _)| *number)
        .collect();
    assert!(old[0] >= 1_500 && old[9] < 1_520, "told as soon as they can be: {old:?}");
    // Gets and lists are nine in ten, so 1000 of them end at about operation 1211.
    let late = planted.iter().filter(|(number, act)| {
        (1_230..1_500).contains(number) && *act != Act::Lie(Lie::OldVersion)
    });
    assert_eq!(late.count(), 0);
}

#[test]
fn every_operation_may_be_planted() {
    let script = "service: {time: {constant: 1ms}}\n\
                  plant: {count: 300, of: 300, kinds: [flipped, zeroed, shifted]}\n";
    let mut behaviour = behaviour(script);
    let planted = (0..400).filter(|at| get(&mut behaviour, *at).act != Act::Serve).count();
    assert_eq!(planted, 300);
    for lie in [Lie::Flipped, Lie::Zeroed, Lie::Shifted] {
        assert_eq!(behaviour.ledger().lie_count(lie), 100);
    }
}

#[test]
fn what_fails_by_itself_is_not_lied_about_and_keeps_its_class() {
    let mut behaviour = behaviour("service: {time: {constant: 1ms}}\nlies: {zeroed: 1}\n");
    let mut tell = |_, _| Some(ErrorClass::Corrupt);
    let missing =
        Request { honest: ErrorClass::NotFound, content_bytes: 0, ..request(OpKind::Get) };
    assert_eq!(behaviour.decide(Moment::EPOCH, &missing, &mut tell).act, Act::Serve);
    let empty = Request { content_bytes: 0, ..request(OpKind::Get) };
    assert_eq!(behaviour.decide(Moment::EPOCH, &empty, &mut tell).act, Act::Serve);
    let cannot = behaviour.decide(Moment::EPOCH, &request(OpKind::Get), &mut |_, _| None);
    assert_eq!(cannot.act, Act::Serve);
    let ledger = behaviour.ledger();
    assert_eq!(ledger.count(OpKind::Get, ErrorClass::NotFound), 1);
    assert_eq!(ledger.count(OpKind::Get, ErrorClass::Ok), 2);
    assert_eq!(ledger.lie_count(Lie::Zeroed), 0);
}

#[test]
fn a_moment_before_the_last_one_counts_as_the_last_one() {
    let mut behaviour = behaviour("service: {time: {constant: 1ms}}\n");
    get(&mut behaviour, 5 * MS);
    assert_eq!(get(&mut behaviour, 3 * MS).done, Moment::from_ns(6 * MS));
}
