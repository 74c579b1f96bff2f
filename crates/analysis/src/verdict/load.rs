//! What the operations tell: whether the load was carried, where it went, and what it waited for.

use std::time::Duration;

use plimsoll_model::ErrorClass;

use super::facts::{ClientFacts, LoadFacts, Paced, RowFacts};
use super::words::{self, number, percent, plural, time};
use super::{Finding, LimitClass, client};
use crate::{EndpointAnalysis, Figures, is_loopback};

/// Of all operations: how many the store may refuse before that is what limits.
pub(super) const SHED_SHARE: f64 = 0.01;

/// Of all operations: from how many refusals on the store's own word counts for more than what the
/// client was short of. A refusal costs the store little and comes back at once, so that a closed
/// loop asks again as fast as its threads can: the client is then busy *because* the store refuses.
pub(super) const REFUSED_SHARE: f64 = 0.10;

/// Of all operations: how many may fail before nothing can be said of what the others met.
const FAILED_SHARE: f64 = 0.10;

/// Fewer operations tell nothing.
pub(super) const OPS_MIN: u64 = 20;

/// A slow address takes this many times as long as the median of the others. Disks, zones and
/// generations of servers differ by less than two; three is beyond what an even fleet shows.
pub(super) const SLOW_TIMES: f64 = 3.0;

/// Of the median time of an operation: how much one round trip may be before the way is what takes
/// the time. Each operation needs one at least.
pub(super) const ROUND_TRIP_SHARE: f64 = 0.50;

/// Shorter round trips are those of one machine or one rack, where what is measured is how soon a
/// process wakes up.
const ROUND_TRIP_MIN: Duration = Duration::from_micros(200);

/// Of all segments: how many may be lost or overtaken. TCP's rate falls with the square root of the
/// loss (Mathis et al., 1997), and each lost segment at the end of an answer costs a timeout of
/// 200 ms.
pub(super) const LOST_SHARE: f64 = 0.01;

/// Fewer lost segments are chance.
const LOST_MIN: u64 = 20;

/// Of what a link can carry in one direction: headers and acknowledgements take the rest.
pub(super) const LINK_SHARE: f64 = 0.85;

/// Of the time with something to send: how much the receiver's window may be full. A store that
/// leaves what it was sent lying is busy.
pub(super) const WINDOW_SHARE: f64 = 0.30;

/// Operations waited where the median took this many times as long as the fastest of its kind: one
/// more was before it on average.
pub(super) const QUEUE_TIMES: f64 = 2.0;

/// With fewer operations under way for each address, a busy store cannot be told from one that is
/// not asked for more.
pub(super) const IN_FLIGHT_MIN: u32 = 4;

/// In a closed loop workers are between operations for less than this share of their time.
const BETWEEN_SHARE: f64 = 0.20;

/// A device is full from here on.
const DEVICE_FULL: f64 = 0.90;

/// Returns that nothing can be said as operations failed, or as there were none.
pub(super) fn nothing_done(load: &LoadFacts<'_>) -> Option<Finding> {
    let ended: u64 = load.rows.iter().map(RowFacts::ended).sum();
    let ok: u64 = load.rows.iter().map(|row| row.analysis.total.stage.ops_ok).sum();
    let shed = shed_count(load);
    let failed = (ended - ok) - shed;
    let unknown = |sentence: String, experiment: &str| Finding {
        class: LimitClass::Unknown,
        sentence,
        because: Vec::new(),
        experiment: experiment.to_owned(),
    };
    if ended < OPS_MIN {
        let sentence = format!("{} ended, too few to tell", plural(ended, "operation"));
        return Some(unknown(sentence, "run for longer"));
    }
    if failed as f64 > ended as f64 * FAILED_SHARE {
        let sentence = format!(
            "{} of the operations failed, so that what limited the others is not known",
            percent(failed as f64 / ended as f64)
        );
        return Some(unknown(sentence, "find out why operations failed first: the report says"));
    }
    None
}

fn shed_count(load: &LoadFacts<'_>) -> u64 {
    let of = |row: &RowFacts<'_>| {
        let failed = &row.analysis.total.stage.failed;
        failed.of(ErrorClass::Throttled) + failed.of(ErrorClass::Growing)
    };
    load.rows.iter().map(of).sum()
}

/// Returns that the store refused a good part of the load, if it did, whatever the client was short
/// of besides.
pub(super) fn refuses(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Option<Finding> {
    let ended: u64 = load.rows.iter().map(RowFacts::ended).sum();
    let is_clear = shed_count(load) as f64 >= ended as f64 * REFUSED_SHARE;
    if !is_clear || nothing_done(load).is_some() {
        return None;
    }
    let mut finding = sheds(load)?;
    if let Some(shortage) = client::short_of(clients) {
        finding.because.push(format!("besides, {}", shortage.sentence));
        finding.because.extend(shortage.because);
    }
    Some(finding)
}

/// Returns that the store refused load, if it did.
pub(super) fn sheds(load: &LoadFacts<'_>) -> Option<Finding> {
    let ended: u64 = load.rows.iter().map(RowFacts::ended).sum();
    let shed = shed_count(load);
    let share = shed as f64 / ended as f64;
    (share >= SHED_SHARE).then(|| Finding {
        class: LimitClass::StoreShedsLoad,
        sentence: "the store sheds load: it answered a part of the operations with a refusal"
            .to_owned(),
        because: vec![format!(
            "{shed} of {} ({}) were refused as too many",
            plural(ended, "operation"),
            percent(share)
        )],
        experiment:
            "halve the load: if refusals stop and the rate of successes stays, the store was \
                     at its limit"
                .to_owned(),
    })
}

/// Returns that the load that was asked for was carried, if all of it was.
pub(super) fn carried(load: &LoadFacts<'_>) -> Option<Finding> {
    let all = !load.rows.is_empty() && load.rows.iter().all(RowFacts::is_carried);
    all.then(|| {
        let is_open = load.rows.iter().any(|row| row.paced == Paced::Open);
        let line = |row: &RowFacts<'_>| match row.schedule {
            Some(of) => format!(
                "{} of {} due were late or skipped ({})",
                of.late + of.skipped,
                plural(of.offered, "operation"),
                percent(of.late_share())
            ),
            None => "the cap on the rate was reached".to_owned(),
        };
        let mut because: Vec<String> = load.rows.iter().map(line).collect();
        because.dedup();
        because.extend(load.rows.iter().filter_map(words::in_flight));
        Finding {
            class: LimitClass::NotEnoughLoad,
            sentence: "the load was the limit: all that was asked for was carried".to_owned(),
            because,
            experiment: match is_open {
                true => "double the rate: if the schedule is still kept, the store has room",
                false => "double the cap on the rate: if it is still reached, the store has room",
            }
            .to_owned(),
        }
    })
}

/// Of the time that counts: for how much of it the store may have been away before nothing can be
/// said of the rest.
pub(super) const AWAY_SHARE: f64 = 0.05;

/// Returns that the store was away, if it was for long enough.
pub(super) fn away(load: &LoadFacts<'_>) -> Option<Finding> {
    let ledgers = load.rows.iter().filter_map(|row| row.analysis.ledger.as_ref());
    let each = ledgers
        .filter(|ledger| !ledger.asked.is_zero())
        .map(|ledger| (ledger.away.as_secs_f64() / ledger.asked.as_secs_f64(), ledger.away));
    let (share, away) = each.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share >= AWAY_SHARE).then(|| Finding {
        class: LimitClass::Unknown,
        sentence: format!(
            "the store was away for {}, {} of the time that counts: what limited the rest is not \
             known",
            time(away),
            percent(share)
        ),
        because: vec![format!("no operation succeeded for {} in all", time(away))],
        experiment: "find out from the store's own log why it was away, then run again: the \
                     outage lines say from when to when"
            .to_owned(),
    })
}

/// Returns the row that tells most: of those whose load was not carried the one with the most
/// operations.
fn limiting<'l, 'a>(load: &'l LoadFacts<'a>) -> Option<&'l RowFacts<'a>> {
    let open = load.rows.iter().filter(|row| !row.is_carried());
    open.max_by_key(|row| row.ended())
}

/// Returns that a schedule was not kept as others had the processors of a client's machine.
fn crowded_out(missed: String, client: &ClientFacts) -> Finding {
    Finding {
        class: LimitClass::ClientCpu,
        sentence:
            "the client did not keep its schedule: other programs kept the processors of its \
        machine busy"
                .to_owned(),
        because: [Some(missed), words::processors(client)].into_iter().flatten().collect(),
        experiment: "stop other programs on the client's machine, or use a larger or a second one \
                     (`--fleet`): if operations go out on time, they were it"
            .to_owned(),
    }
}

/// Returns that operations of a schedule went out late although there was room, or that the room
/// was too small, if one of that is so.
pub(super) fn late(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Option<Finding> {
    let row = limiting(load).filter(|row| row.paced == Paced::Open)?;
    let schedule = row.schedule?;
    let missed = format!(
        "{} of {} due were late or skipped ({})",
        schedule.late + schedule.skipped,
        plural(schedule.offered, "operation"),
        percent(schedule.late_share())
    );
    let in_flight = words::in_flight(row);
    let Some(seen) = &row.analysis.in_flight else {
        return Some(Finding {
            class: LimitClass::Unknown,
            sentence:
                "the schedule was not kept, and how many operations were in flight over time is \
                not known for a part of a stage"
                    .to_owned(),
            because: [Some(missed), in_flight].into_iter().flatten().collect(),
            experiment: "ask for the whole stage".to_owned(),
        });
    };
    let Some(full) = seen.full_load(row.in_flight_max) else {
        if seen.was_full(row.in_flight_max) {
            return Some(Finding {
                class: LimitClass::Unknown,
                sentence: format!(
                    "the schedule was not kept, as for a while all of {} were taken: the store \
                    stalled then, or they are too few",
                    plural(u64::from(row.in_flight_max), "place")
                ),
                because: [Some(missed), in_flight].into_iter().flatten().collect(),
                experiment: "double --max-in-flight: if as much is late, the store was the limit"
                    .to_owned(),
            });
        }
        if let Some(crowded) = clients.iter().find(|client| client::is_crowded(client)) {
            return Some(crowded_out(missed, crowded));
        }
        return Some(Finding {
            class: LimitClass::Pacing,
            sentence: "the client did not keep its schedule, though more operations could have \
            been in flight"
                .to_owned(),
            because: [Some(missed), in_flight].into_iter().flatten().collect(),
            experiment: "double --threads, or halve the rate: if operations go out on time, the \
                         client was the limit"
                .to_owned(),
        });
    };
    (full.is_saturated() == Some(false)).then(|| Finding {
        class: LimitClass::ClientConnections,
        sentence: format!(
            "the client may have at most {} in flight, and the store answers them as fast as \
            it answers half as many",
            plural(u64::from(row.in_flight_max), "operation")
        ),
        because: [Some(missed), in_flight].into_iter().flatten().collect(),
        experiment:
            "double --max-in-flight: if the schedule is kept then, the client was the limit"
                .to_owned(),
    })
}

/// Returns that one address of several was far slower than the others, if one was.
pub(super) fn slow_endpoint(load: &LoadFacts<'_>) -> Option<Finding> {
    let row = limiting(load)?;
    let mut all: Vec<(Duration, &EndpointAnalysis)> = Vec::new();
    for of in &row.analysis.endpoints {
        let times = of.figures.service();
        all.extend(times.p50.filter(|_| times.samples >= OPS_MIN).map(|p50| (p50, of)));
    }
    all.sort_by_key(|(p50, _)| *p50);
    let (slowest, of) = all.pop()?;
    let of_others = all.get(all.len() / 2).map(|(p50, _)| *p50)?;
    // Where the second slowest is slow as well, it is not one of several.
    let second = all.last().map_or(of_others, |(p50, _)| *p50);
    let is_slow = |time: Duration| time.as_secs_f64() >= of_others.as_secs_f64() * SLOW_TIMES;
    if !is_slow(slowest) || (all.len() > 1 && is_slow(second)) {
        return None;
    }
    let name = load.endpoints.get(usize::from(of.endpoint.0)).cloned();
    let name = name.unwrap_or_else(|| format!("endpoint {}", of.endpoint.0));
    let others = plural(all.len() as u64, "other");
    Some(Finding {
        class: LimitClass::SlowEndpoint,
        sentence: format!("one address of {} is slow: {name}", all.len() + 1),
        because: vec![
            format!("p50 {} there, {} at the {others}", time(slowest), time(of_others)),
            format!("{} of the time of all operations went there", percent(share_of(of, row))),
        ],
        experiment:
            "leave that address out: if the rate for each of the others stays, the store is \
                     limited by that server"
                .to_owned(),
    })
}

fn share_of(of: &EndpointAnalysis, row: &RowFacts<'_>) -> f64 {
    let all: f64 = row.analysis.endpoints.iter().map(|of| of.figures.service().sum_ns()).sum();
    of.figures.service().sum_ns() / all.max(1.0)
}

/// Returns that the way to the store was the limit, if it was.
pub(super) fn network(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Option<Finding> {
    let row = limiting(load).filter(|row| !row.on_files)?;
    // Loopback loses nothing and is not far: what looks like it there is a busy machine, whose TCP
    // sends again what its other side has not come round to.
    let endpoints = &row.analysis.endpoints;
    let used = endpoints.iter().map(|of| load.endpoints.get(usize::from(of.endpoint.0)));
    if !endpoints.is_empty() && used.flatten().all(|address| is_loopback(address)) {
        return None;
    }
    clients
        .iter()
        .find_map(|client| link_full(client).or_else(|| lossy(client)).or_else(|| far(row, client)))
}

fn link_full(client: &ClientFacts) -> Option<Finding> {
    let link = client.links.first()?;
    link.used().filter(|used| *used >= LINK_SHARE)?;
    Some(Finding {
        class: LimitClass::Network,
        sentence: format!("the client's network interface {} was full", link.name),
        because: words::link(client).into_iter().collect(),
        experiment: "add a client with its own interface (`--fleet`): if the rate grows, this \
                     interface was the limit"
            .to_owned(),
    })
}

fn lossy(client: &ClientFacts) -> Option<Finding> {
    let sockets = client.sockets?;
    sockets.lost().filter(|share| *share >= LOST_SHARE)?;
    if sockets.retransmits.max(sockets.out_of_order) < LOST_MIN {
        return None;
    }
    Some(Finding {
        class: LimitClass::Network,
        sentence: "the network was the limit: it lost or delayed segments".to_owned(),
        because: words::lost(client).into_iter().collect(),
        experiment:
            "run the client next to the store (same switch or host): if retransmissions stop and \
            the rate grows, the network was the limit"
                .to_owned(),
    })
}

fn far(row: &RowFacts<'_>, client: &ClientFacts) -> Option<Finding> {
    let rtt = client.sockets?.rtt_min.filter(|rtt| *rtt >= ROUND_TRIP_MIN)?;
    let median = row.analysis.total.service().p50?;
    (rtt.as_secs_f64() >= median.as_secs_f64() * ROUND_TRIP_SHARE).then(|| Finding {
        class: LimitClass::Network,
        sentence: "the way to the store and back takes most of the time of an operation".to_owned(),
        because: vec![format!(
            "{}the shortest round trip took {}, the median operation {}",
            words::of(client),
            time(rtt),
            time(median)
        )],
        experiment: "run the client next to the store: if latency falls by the round trip, the \
                     network was the limit; or double --concurrent: if the rate doubles, too"
            .to_owned(),
    })
}

/// Returns what was the limit of a load that nothing else limited: too little of it, or the store.
pub(super) fn closed(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Finding {
    let Some(row) = limiting(load) else { return unknown(Vec::new()) };
    let places = row.in_flight_max;
    let addresses = endpoints_used(row).max(1);
    let line: Vec<String> = words::in_flight(row).into_iter().collect();
    let between = row.in_flight().map(|mean| 1.0 - mean / f64::from(places));
    let are_between = between.is_some_and(|share| share > BETWEEN_SHARE);
    if are_between && (row.pauses || matches!(row.paced, Paced::Capped(_))) {
        return paused(line);
    }
    if places <= addresses {
        return one_at_a_time(row, line);
    }
    if are_between && row.paced == Paced::Closed {
        return unknown(line);
    }
    if !clients.iter().all(ClientFacts::is_known) {
        return Finding {
            sentence: "what was the limit is unknown, as the kernel does not tell what threads \
                       of the client used"
                .to_owned(),
            ..unknown(line)
        };
    }
    let (waited, queue) = queueing(row);
    if places < IN_FLIGHT_MIN.saturating_mul(addresses) {
        return too_few(row, line, queue);
    }
    let busy = store_busy(row, clients);
    if busy.is_none() && !waited {
        return match clients.iter().any(client::is_crowded) {
            true => crowded(queue.into_iter().chain(line).collect()),
            false => no_waiting(row, line, queue),
        };
    }
    store(row, queue.into_iter().chain(busy).chain(line).collect())
}

fn store(row: &RowFacts<'_>, because: Vec<String>) -> Finding {
    let more = match (row.on_files, row.paced) {
        (true, _) => "the workers or the depth",
        (false, Paced::Open) => "--max-in-flight",
        (false, _) => "--concurrent",
    };
    Finding {
        class: LimitClass::Store,
        sentence: "the store was the limit: operations waited in it, and nothing of the client or \
                   the way was short"
            .to_owned(),
        because,
        experiment: format!(
            "double {more}: if the rate stays and latency doubles, the store is at its capacity; \
             if the rate grows, it had room"
        ),
    }
}

fn paused(line: Vec<String>) -> Finding {
    Finding {
        class: LimitClass::NotEnoughLoad,
        sentence: "the load was the limit: workers wait between operations, as the workload asks"
            .to_owned(),
        because: line,
        experiment:
            "halve the pauses, or double the cap on the rate: if the rate grows, the store \
                     has room"
                .to_owned(),
    }
}

fn one_at_a_time(row: &RowFacts<'_>, line: Vec<String>) -> Finding {
    let more = if row.on_files { "the workers or the depth" } else { "--concurrent" };
    Finding {
        class: LimitClass::ClientConnections,
        sentence: match (row.in_flight_max, row.on_files) {
            (1, false) => "one connection carried the load, one operation at a time".to_owned(),
            (1, true) => "one operation at a time was in flight".to_owned(),
            (more, _) => format!("{more} operations were in flight, at most one for each address"),
        },
        because: line,
        experiment: format!("double {more}: if the rate grows, the client was the limit"),
    }
}

fn too_few(row: &RowFacts<'_>, mut line: Vec<String>, queue: Option<String>) -> Finding {
    line.extend(queue);
    Finding {
        class: LimitClass::NotEnoughLoad,
        sentence: format!(
            "the load was the limit: with {} at once, a busy store looks like an idle one",
            plural(u64::from(row.in_flight_max), "operation")
        ),
        because: line,
        experiment: more_workers(row),
    }
}

fn no_waiting(row: &RowFacts<'_>, mut line: Vec<String>, queue: Option<String>) -> Finding {
    line.splice(0..0, queue);
    Finding {
        class: LimitClass::NotEnoughLoad,
        sentence: "the load was the limit: no operation waited for others, so the store had room"
            .to_owned(),
        because: line,
        experiment: more_workers(row),
    }
}

/// What does not wait shows in the fastest operation, which waits for a processor where others have
/// them: the client then, or a store on the same machine.
fn crowded(because: Vec<String>) -> Finding {
    Finding {
        sentence: "what was the limit is unknown: others kept the processors of the client's \
                   machine busy, so even the fastest operation may have waited for them"
            .to_owned(),
        experiment: "stop other programs, or move the client to a machine of its own, and repeat"
            .to_owned(),
        ..unknown(because)
    }
}

fn more_workers(row: &RowFacts<'_>) -> String {
    let more = if row.on_files { "the workers or the depth" } else { "--concurrent" };
    format!("double {more}: if the rate grows and latency stays, there was too little load")
}

fn unknown(because: Vec<String>) -> Finding {
    Finding {
        class: LimitClass::Unknown,
        sentence: "what was the limit is unknown: workers were between operations for much of \
                   the time, and nothing seen of the client says why"
            .to_owned(),
        because,
        experiment: "double --threads, then --concurrent: what makes the rate grow was the limit"
            .to_owned(),
    }
}

/// Returns how many addresses operations went to.
fn endpoints_used(row: &RowFacts<'_>) -> u32 {
    u32::try_from(row.analysis.endpoints.len()).unwrap_or(u32::MAX)
}

/// Tells whether operations waited for others, by how much longer the median took than the fastest
/// of its kind.
fn queueing(row: &RowFacts<'_>) -> (bool, Option<String>) {
    let kinds = row.analysis.kinds.iter();
    let Some(kind) = kinds.max_by_key(|kind| kind.figures.latency.samples) else {
        return (false, None);
    };
    let Some(times) = queue_times(&kind.figures) else { return (false, None) };
    let known = |of: Option<Duration>| of.map_or_else(String::new, time);
    let line = format!(
        "the median {} took {} times as long as the fastest ({} and {})",
        kind.kind.name(),
        number(times),
        known(kind.figures.service().p50),
        known(kind.figures.stage.service_min)
    );
    (times >= QUEUE_TIMES, Some(line))
}

fn queue_times(figures: &Figures) -> Option<f64> {
    let median = figures.service().p50?.as_secs_f64();
    // A store that serves one after the other takes as long for each of them once all workers are
    // at it. What is without waiting shows before.
    let fastest = figures.stage.service_min?.as_secs_f64();
    (fastest > 0.0).then(|| median / fastest)
}

/// Says what else shows that the store was busy, if anything does.
fn store_busy(row: &RowFacts<'_>, clients: &[ClientFacts]) -> Option<String> {
    clients.iter().find_map(|client| {
        if row.on_files {
            let device = client.devices.first().filter(|device| device.busy >= DEVICE_FULL);
            return device.and_then(|_| words::device(client));
        }
        let window = client.sockets?.window_limited.filter(|share| *share >= WINDOW_SHARE);
        window.and_then(|_| words::window(client))
    })
}
