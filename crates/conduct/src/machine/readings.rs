//! What the kernel counts of this machine and process, read before a stage and after it; the
//! difference is the evidence that the record keeps of a client.

mod quota;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::StageOutcome;
use plimsoll_model::{SocketsSeen, Standstill, ThreadUsage};
use plimsoll_record::schema::{
    ClientEvidence, DeviceEvidence, InterfaceEvidence, ProcessUsage, ProcessorsEvidence,
    SocketsEvidence, StandstillEvidence, ThreadEvidence, ThreadsEvidence,
};

/// What was read at one moment.
pub(crate) struct Readings {
    usage: ProcessUsage,
    processors: Option<ProcessorsEvidence>,
    quotas: quota::Levels,
    interfaces: BTreeMap<String, InterfaceEvidence>,
    devices: BTreeMap<String, DeviceEvidence>,
}

impl Readings {
    /// Reads all of it; devices are those on which these files lie.
    pub(crate) fn now(files: &[String]) -> Self {
        let diskstats = if files.is_empty() { String::new() } else { text("/proc/diskstats") };
        Self {
            usage: super::usage(),
            processors: processors(&text("/proc/stat"), ticks_per_second()),
            quotas: quota::Levels::read(),
            interfaces: interfaces(&text("/proc/net/dev")),
            devices: devices(&diskstats, files.iter().filter_map(|file| device_of(file))),
        }
    }

    /// Returns what happened since, with what worker threads and connections tell of themselves;
    /// `None` of a stage that had no worker here.
    pub(crate) fn until(&self, now: &Self, outcome: &StageOutcome) -> Option<ClientEvidence> {
        if outcome.threads.is_empty() {
            return None;
        }
        let usage = super::usage_since(&now.usage, &self.usage);
        let quota = now.quotas.since(&self.quotas);
        let bound = quota.and_then(|quota| quota.cores_milli);
        let cores = super::cores() as u64 * 1_000;
        let mut seen = ClientEvidence {
            host: super::describe().hostname,
            agent: None,
            run_id: None,
            took_ns: ns(outcome.ended.since(outcome.started)),
            cores_milli: Some(bound.map_or(cores, |bound| bound.min(cores))),
            threads: threads(&outcome.threads),
            user_ns: Some(usage.user_ns),
            system_ns: Some(usage.system_ns),
            recorder_waits_count: outcome.recorder_waits,
            recorder_wait_ns: ns(outcome.recorder_wait),
            processors: now.processors.zip(self.processors).map(|(now, before)| {
                ProcessorsEvidence {
                    all_ns: now.all_ns.saturating_sub(before.all_ns),
                    busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
                    steal_ns: now.steal_ns.saturating_sub(before.steal_ns),
                }
            }),
            quota,
            sockets: sockets(&outcome.sockets),
            descriptors_max: Some(super::open_files_max()),
            descriptors_count: descriptors(),
            interfaces: now.interfaces_since(self),
            devices: now.devices_since(self),
            standstills_count: outcome.standstills.count,
            stood_still_ns: ns(outcome.standstills.total),
            standstills: spans(outcome, &outcome.standstills.longest),
            disturbed: spans(outcome, &outcome.disturbed.spans),
        };
        seen.truncate();
        Some(seen)
    }

    fn interfaces_since(&self, before: &Self) -> Vec<InterfaceEvidence> {
        let since = |(name, now): (&String, &InterfaceEvidence)| {
            let before = before.interfaces.get(name)?;
            let moved = InterfaceEvidence {
                received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
                sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
                lost_count: now.lost_count.saturating_sub(before.lost_count),
                bits_per_sec: bits_per_sec(name),
                name: name.clone(),
            };
            (moved.received_bytes + moved.sent_bytes > 0).then_some(moved)
        };
        let mut all: Vec<_> = self.interfaces.iter().filter_map(since).collect();
        all.sort_by_key(|of| std::cmp::Reverse(of.received_bytes.max(of.sent_bytes)));
        all
    }

    fn devices_since(&self, before: &Self) -> Vec<DeviceEvidence> {
        let since = |(name, now): (&String, &DeviceEvidence)| {
            let before = before.devices.get(name)?;
            Some(DeviceEvidence {
                name: name.clone(),
                requests_count: now.requests_count.saturating_sub(before.requests_count),
                busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
                queue_ns: now.queue_ns.saturating_sub(before.queue_ns),
            })
        };
        let mut all: Vec<_> = self.devices.iter().filter_map(since).collect();
        all.sort_by_key(|of| std::cmp::Reverse(of.busy_ns));
        all
    }
}

fn spans(outcome: &StageOutcome, all: &[Standstill]) -> Vec<StandstillEvidence> {
    let of = |of: &Standstill| StandstillEvidence {
        from_ns: ns(of.from.since(outcome.started)),
        length_ns: ns(of.length),
    };
    all.iter().map(of).collect()
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns what a file of the kernel's says; nothing where it is not there.
fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn threads(all: &[ThreadUsage]) -> ThreadsEvidence {
    let delays: Option<Vec<Duration>> = all.iter().map(|of| of.run_delay).collect();
    let each = |of: &ThreadUsage| ThreadEvidence {
        cpu_ns: ns(of.cpu),
        run_delay_ns: of.run_delay.map_or(0, ns),
    };
    let mut busiest: Vec<ThreadEvidence> = all.iter().map(each).collect();
    busiest.sort_by_key(|of| std::cmp::Reverse(of.cpu_ns + of.run_delay_ns));
    if delays.is_none() {
        // A delay that is not known is not 0.
        busiest.clear();
    }
    ThreadsEvidence {
        count: u32::try_from(all.len()).unwrap_or(u32::MAX),
        cpu_ns: Some(ns(all.iter().map(|of| of.cpu).sum())),
        run_delay_ns: delays.map(|delays| ns(delays.into_iter().sum())),
        busiest,
    }
}

fn sockets(seen: &SocketsSeen) -> Option<SocketsEvidence> {
    if seen.is_empty() {
        return None;
    }
    let us = |times: &[u32]| median(times).map(|us| u64::from(us) * 1_000);
    Some(SocketsEvidence {
        opened_count: seen.opened,
        io_uring_requests_count: seen.over_ring,
        seen_count: seen.closed,
        no_port_count: seen.no_port,
        no_descriptor_count: seen.no_descriptor,
        rtt_min_ns: us(&seen.rtt_min_us),
        rtt_ns: us(&seen.rtt_us),
        segments_sent_count: seen.segments_sent,
        retransmits_count: seen.retransmits,
        segments_received_count: seen.segments_received,
        out_of_order_count: seen.out_of_order,
        busy_ns: ns(seen.busy),
        window_limited_ns: ns(seen.window_limited),
        buffer_limited_ns: ns(seen.buffer_limited),
        delivery_bytes_per_sec: median(&seen.delivery),
    })
}

/// Returns the lower median.
fn median<T: Copy + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

fn ticks_per_second() -> u64 {
    // SAFETY: the call only reads a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// Returns the time of all processors from `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal, in ticks; what guests had is in user and nice.
fn processors(stat: &str, ticks_per_second: u64) -> Option<ProcessorsEvidence> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000 / ticks_per_second);
    let all: u64 = ticks.iter().sum();
    Some(ProcessorsEvidence {
        all_ns: ns(all),
        // What was stolen was wanted and not had.
        busy_ns: ns(all - idle - iowait - steal),
        steal_ns: ns(steal),
    })
}

/// Returns what each interface counted, from `/proc/net/dev`: bytes, packets, errors, drops and
/// four more received, then the same sent.
fn interfaces(dev: &str) -> BTreeMap<String, InterfaceEvidence> {
    let one = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts: Vec<u64> = counts.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let [
            received_bytes,
            _,
            r_errors,
            r_drops,
            _,
            _,
            _,
            _,
            sent_bytes,
            _,
            s_errors,
            s_drops,
            ..,
        ] = counts[..]
        else {
            return None;
        };
        let name = name.trim().to_owned();
        let lost_count = r_errors + r_drops + s_errors + s_drops;
        let of = InterfaceEvidence {
            name: name.clone(),
            received_bytes,
            sent_bytes,
            lost_count,
            bits_per_sec: None,
        };
        Some((name, of))
    };
    dev.lines().filter_map(one).collect()
}

/// Returns what an interface carries, where it is one of hardware: what pairs of virtual ones state
/// is made up.
fn bits_per_sec(name: &str) -> Option<u64> {
    let place = Path::new("/sys/class/net").join(name);
    place
        .join("device")
        .exists()
        .then(|| text(place.join("speed")))?
        .trim()
        .parse::<u64>()
        .ok()
        .map(
            // In millions of bits a second.
            |speed| speed * 1_000_000,
        )
}

/// Returns the numbers of the device on which a file lies, or which it is.
fn device_of(file: &str) -> Option<(u32, u32)> {
    let metadata = fs::metadata(file).ok()?;
    let is_device = metadata.file_type().is_block_device();
    let number = if is_device { metadata.rdev() } else { metadata.dev() };
    let numbers = (rustix::fs::major(number), rustix::fs::minor(number));
    // File systems in memory, over the network or of several devices have none.
    (numbers.0 != 0).then_some(numbers)
}

/// Returns what devices counted, from `/proc/diskstats` (`Documentation/admin-guide/iostats.rst`).
fn devices(
    diskstats: &str,
    wanted: impl Iterator<Item = (u32, u32)>,
) -> BTreeMap<String, DeviceEvidence> {
    const MS: u64 = 1_000_000;
    let wanted: Vec<(u32, u32)> = wanted.collect();
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let numbers = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?.to_owned();
        let counts: Vec<u64> = words.map_while(|n| n.parse().ok()).collect();
        let [reads, _, _, _, writes, _, _, _, _, busy_ms, queue_ms, ..] = counts[..] else {
            return None;
        };
        let of = DeviceEvidence {
            name: name.clone(),
            requests_count: reads + writes,
            busy_ns: busy_ms.saturating_mul(MS),
            queue_ns: queue_ms.saturating_mul(MS),
        };
        wanted.contains(&numbers).then_some((name, of))
    };
    diskstats.lines().filter_map(one).collect()
}

/// Returns how many files and connections this process has open.
fn descriptors() -> Option<u64> {
    // One is that by which they are counted.
    fs::read_dir("/proc/self/fd").ok().map(|all| (all.count() as u64).saturating_sub(1))
}

#[cfg(test)]
#[path = "readings_tests.rs"]
mod tests;
