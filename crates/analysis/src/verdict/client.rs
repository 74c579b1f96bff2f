//! Evidence that a client was the limit.

use super::facts::{ClientFacts, LoadFacts};
use super::words::{self, percent, plural};
use super::{Finding, LimitClass};

/// Of each worker thread's time: how much waiting for the recorder makes it a limit. Workers keep
/// going while the ring has room, so that any waiting at all means a recorder that is behind; one
/// part in twenty is what the rate loses at least.
pub(super) const RECORDER_SHARE: f64 = 0.05;

/// Of the periods of a control group's bound: in how many it may stop the client. Each stop holds
/// up all operations under way for tens of milliseconds, so that one in ten is in every p90.
pub(super) const THROTTLED_SHARE: f64 = 0.10;

/// Fewer periods (of 100 ms, the kernel's default) tell nothing.
const PERIODS_MIN: u64 = 5;

/// Of a client's time: how much it may stand still. Rates are lower by as much.
pub(super) const STILL_SHARE: f64 = 0.05;

/// Of the machine's time: how much a hypervisor may take. It is taken from all processors alike,
/// and operations that are under way wait.
pub(super) const STEAL_SHARE: f64 = 0.05;

/// Of each worker thread's time: how much it may be ready to run without a processor. That time is
/// in latencies as if the store had taken it.
pub(super) const DELAY_SHARE: f64 = 0.10;

/// A thread is full from here on, counting the time in which it wanted a processor and had none:
/// with less left over, operations that end wait for the thread before they are seen (with a single
/// server that is busy nine tenths of the time, nine are waiting on average: M/M/1).
pub(super) const THREAD_FULL: f64 = 0.90;

/// The machine is full from here on.
const MACHINE_FULL: f64 = 0.90;

/// From this share of the kernel on, the threads of a stage on files did the file system's work.
const KERNEL_SHARE: f64 = 0.50;

/// What a client may be short of beside connections, in the order in which it is looked for.
const SHORTAGES: [fn(&ClientFacts) -> Option<Finding>; 5] =
    [stopped, behind_recorder, throttled, stolen, starved];

/// Returns that a client could not make its connections, if one could not.
pub(super) fn closed_in(clients: &[ClientFacts]) -> Option<Finding> {
    of_any(clients, cannot_open)
}

/// Returns what a client was short of, if one was: of several the first shortage of any.
pub(super) fn short_of(clients: &[ClientFacts]) -> Option<Finding> {
    SHORTAGES.iter().find_map(|shortage| of_any(clients, shortage))
}

/// Returns a shortage of the first client that has it, and how many have.
fn of_any(
    clients: &[ClientFacts],
    shortage: impl Fn(&ClientFacts) -> Option<Finding>,
) -> Option<Finding> {
    let mut found = clients.iter().filter_map(shortage);
    let mut first = found.next()?;
    let others = found.count();
    if clients.len() > 1 {
        let all = clients.len();
        first.because.push(format!("{} of {all} clients were short of this", others + 1));
    }
    Some(first)
}

fn cannot_open(client: &ClientFacts) -> Option<Finding> {
    let line = words::descriptors(client)?;
    let (sentence, experiment) = if client.no_descriptor_count > 0 {
        (
            "the client could not have as many connections or files open as the load needs",
            "raise the limit of open files (`ulimit -n`) or use fewer workers: if failures stop \
            and the rate grows, the client was the limit",
        )
    } else {
        (
            "the client had no local port left for further connections",
            "keep connections open, add addresses, or widen net.ipv4.ip_local_port_range: if \
             failures go and the rate grows, the client was the limit",
        )
    };
    Some(Finding {
        class: LimitClass::ClientConnections,
        sentence: sentence.to_owned(),
        because: vec![line],
        experiment: experiment.to_owned(),
    })
}

fn stopped(client: &ClientFacts) -> Option<Finding> {
    client.still_share().filter(|share| *share >= STILL_SHARE)?;
    Some(Finding {
        class: LimitClass::ClientCpu,
        sentence: "the client itself stood still (stopped, without a processor, or its machine \
                   paused)"
            .to_owned(),
        because: [words::stood_still(client), words::processors(client)]
            .into_iter()
            .flatten()
            .collect(),
        experiment: "run it again without stopping it (Ctrl-Z, SIGSTOP, a paused virtual machine)"
            .to_owned(),
    })
}

fn behind_recorder(client: &ClientFacts) -> Option<Finding> {
    client.recorder_share().filter(|share| *share >= RECORDER_SHARE)?;
    Some(Finding {
        class: LimitClass::Recorder,
        sentence: "the recorder was the limit: worker threads waited until what they had done was \
                   written"
            .to_owned(),
        because: words::recorder(client).into_iter().collect(),
        experiment:
            "record to a faster disk (`--run-dir` on another one, or on /dev/shm): if the rate \
                     grows, the recorder was the limit"
                .to_owned(),
    })
}

fn throttled(client: &ClientFacts) -> Option<Finding> {
    let quota = client.quota.filter(|quota| quota.periods >= PERIODS_MIN)?;
    quota.share().filter(|share| *share >= THROTTLED_SHARE)?;
    Some(Finding {
        class: LimitClass::ClientCpu,
        sentence: "the processor time that the client's control group may use was the limit"
            .to_owned(),
        because: [words::throttled(client), words::processors(client)]
            .into_iter()
            .flatten()
            .collect(),
        experiment: "raise or remove the bound (cpu.max, a container's limit of CPUs): if \
                     the rate grows, the client was the limit"
            .to_owned(),
    })
}

fn stolen(client: &ClientFacts) -> Option<Finding> {
    client.machine.filter(|machine| machine.steal >= STEAL_SHARE)?;
    Some(Finding {
        class: LimitClass::ClientCpu,
        sentence: "the hypervisor took processor time from the client's machine".to_owned(),
        because: [words::steal(client), words::processors(client)].into_iter().flatten().collect(),
        experiment:
            "run the client on its own machine, or on one with processors reserved for it: \
                     if the rate grows, the client was the limit"
                .to_owned(),
    })
}

fn starved(client: &ClientFacts) -> Option<Finding> {
    let share = client.delay_share()?;
    // Threads of which one alone waits are as late as all.
    let worst = client.threads.iter().filter_map(|thread| {
        let is_busy = client.wanted(thread)? >= THREAD_FULL;
        thread.starved().filter(|starved| is_busy && *starved >= 2.0 * DELAY_SHARE)
    });
    if share < DELAY_SHARE && worst.count() == 0 {
        return None;
    }
    Some(Finding {
        class: LimitClass::ClientCpu,
        sentence: "the processors of the client's machine were the limit: worker threads waited \
                   for one"
            .to_owned(),
        because: [words::delay(client), words::processors(client)].into_iter().flatten().collect(),
        experiment: "stop other programs on the client's machine, or use a larger or a second one \
        (`--fleet`): if the rate grows or latency falls, the client was the limit"
            .to_owned(),
    })
}

/// Tells whether the processors of a client's machine were taken, and most of them by others.
pub(super) fn is_crowded(client: &ClientFacts) -> bool {
    client.machine.is_some_and(|machine| {
        machine.busy >= MACHINE_FULL && machine.own.is_some_and(|own| own <= machine.busy / 2.0)
    })
}

/// Returns that threads of a client were full, if they were.
pub(super) fn threads_full(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Option<Finding> {
    clients.iter().find_map(|client| full(load, client))
}

fn full(load: &LoadFacts<'_>, client: &ClientFacts) -> Option<Finding> {
    let wanted = client.threads.iter().filter_map(|thread| client.wanted(thread));
    let full = wanted.filter(|wanted| *wanted >= THREAD_FULL).count();
    if full == 0 {
        return None;
    }
    let threads = client.threads_count;
    let of_threads = format!(
        "{}{full} of {} wanted a processor at least {} of the time",
        words::of(client),
        plural(u64::from(threads), "worker thread"),
        percent(THREAD_FULL)
    );
    let because = [Some(of_threads), words::processors(client)].into_iter().flatten().collect();
    let on_files = load.rows.iter().all(|row| row.on_files);
    if on_files && client.system_share.is_some_and(|share| share >= KERNEL_SHARE) {
        return Some(Finding {
            class: LimitClass::Unknown,
            sentence: "worker threads were busy in the kernel: whether the file system or this \
            machine's processors were the limit is unknown"
                .to_owned(),
            because,
            experiment:
                "double the workers: if the rate grows, threads were the limit; if it does \
                         not, the file system was"
                    .to_owned(),
        });
    }
    let cores_taken = client.cores.is_some_and(|cores| f64::from(threads) >= cores);
    let machine_full = client.machine.is_some_and(|machine| machine.busy >= MACHINE_FULL);
    Some(if cores_taken || machine_full {
        Finding {
            class: LimitClass::ClientCpu,
            sentence: "the processors of the client's machine were the limit".to_owned(),
            because,
            experiment: "use a larger machine or a second one (`--fleet`): if the rate grows, \
                         the client was the limit"
                .to_owned(),
        }
    } else {
        Finding {
            class: LimitClass::ClientThreads,
            sentence: "the client's threads were the limit: each kept one processor busy"
                .to_owned(),
            because,
            experiment: "double --threads: if the rate grows, the client was the limit".to_owned(),
        }
    })
}
