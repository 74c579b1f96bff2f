//! From what a record keeps of the clients of a stage to what the judge is told, and its verdict.

use std::time::Duration;

use plimsoll_analysis::verdict::{
    ClientFacts, DeviceFacts, LinkFacts, LoadFacts, MachineFacts, Paced, QuotaFacts, RowFacts,
    ScheduleFacts, SocketFacts, ThreadFacts, Verdict, judge,
};
use plimsoll_model::TargetKind;
use plimsoll_record::schema::{self, ClientEvidence, Manifest};
use plimsoll_report::{LoopModel, RowReport};

use crate::clients::ClientStage;

/// Returns who was the limit of a stage, whole and in rows of jobs; `None` where nothing was seen
/// of its clients, and where there was no store.
pub(crate) fn verdict(
    manifest: &Manifest,
    entry: &schema::Stage,
    clients: &[ClientStage<'_>],
    rows: &[RowReport],
) -> Option<Verdict> {
    if manifest.targets().all(|target| target.kind == Some(TargetKind::Null)) {
        return None;
    }
    let endpoints: Vec<String> = manifest.endpoints().cloned().collect();
    let rows = rows.iter().map(|row| facts_of_row(row, entry, clients)).collect();
    let load = LoadFacts { rows, endpoints: &endpoints };
    judge(&load, &client_facts(&entry.evidence))
}

/// Returns what the judge is told of the clients of a stage.
pub fn client_facts(evidence: &[ClientEvidence]) -> Vec<ClientFacts> {
    let several = evidence.len() > 1;
    evidence.iter().map(|of| facts_of_client(of, several)).collect()
}

fn facts_of_row<'a>(
    row: &'a RowReport,
    entry: &schema::Stage,
    clients: &[ClientStage<'_>],
) -> RowFacts<'a> {
    let schedules = || row.schedules.iter().map(|of| &of.schedule);
    let is_open = row.loop_model == LoopModel::Open || schedules().next().is_some();
    let paced = match row.loop_model {
        _ if is_open => Paced::Open,
        LoopModel::Capped { rate } => Paced::Capped(rate.map(|rate| rate.0)),
        LoopModel::Closed | LoopModel::Open => Paced::Closed,
    };
    let sum = schedules().map(|of| {
        let (late, skipped) = (of.late_count.unwrap_or(0), of.skipped_count.unwrap_or(0));
        of.offered_count.map(|offered| ScheduleFacts { offered, late, skipped })
    });
    let sum = sum.reduce(|a, b| {
        let (a, b) = (a?, b?);
        Some(ScheduleFacts {
            offered: a.offered.saturating_add(b.offered),
            late: a.late.saturating_add(b.late),
            skipped: a.skipped.saturating_add(b.skipped),
        })
    });
    let pauses = |client: &ClientStage<'_>| {
        let jobs = client.planned.map_or(&[][..], |(_, stage)| &stage.jobs);
        row.jobs.iter().filter_map(|job| jobs.get(*job)).any(|job| job.think.is_some())
    };
    // What is in flight is that of all jobs of the row, so all have places.
    let depth = row.depth.unwrap_or(1).max(1);
    let closed = row.jobs.iter().filter_map(|job| entry.jobs.get(*job));
    let closed = closed.filter(|job| job.schedule.is_none()).map(|job| job.workers_count);
    let workers = match is_open {
        true => closed.fold(0, u32::saturating_add),
        false => row.analysis.workers_count,
    };
    let places = schedules().map(|of| of.max_in_flight);
    let places = places.fold(workers.saturating_mul(depth), u32::saturating_add);
    RowFacts {
        analysis: &row.analysis,
        paced,
        schedule: sum.flatten(),
        pauses: clients.iter().any(pauses),
        on_files: row.is_on_files,
        in_flight_max: places,
    }
}

fn facts_of_client(of: &ClientEvidence, several: bool) -> ClientFacts {
    let ns = Duration::from_nanos;
    let took = ns(of.took_ns);
    let thread = |thread: &schema::ThreadEvidence| ThreadFacts {
        cpu: ns(thread.cpu_ns),
        delay: ns(thread.run_delay_ns),
    };
    let process = of.user_ns.zip(of.system_ns).map(|(user, system)| (user as f64, system as f64));
    let own_ns = process.map(|(user, system)| user + system);
    ClientFacts {
        name: of.agent.clone().or_else(|| of.host.clone()).filter(|_| several),
        took,
        standstills_count: of.standstills_count,
        // No longer than it was there.
        stood_still: ns(of.stood_still_ns).min(took),
        cores: of.cores_milli.map(|milli| milli as f64 / 1e3),
        threads_count: of.threads.count,
        threads: of.threads.busiest.iter().map(thread).collect(),
        threads_cpu: of.threads.cpu_ns.map(ns),
        threads_delay: of.threads.run_delay_ns.map(ns),
        system_share: process.and_then(|(user, system)| share(system, user + system)),
        recorder_wait: Some(ns(of.recorder_wait_ns)),
        machine: of.processors.and_then(|all| machine(all, own_ns)),
        quota: of.quota.map(|quota| QuotaFacts {
            cores: quota.cores_milli.map(|milli| milli as f64 / 1e3),
            periods: quota.periods_count,
            throttled: quota.throttled_count,
        }),
        sockets: of.sockets.map(sockets),
        no_port_count: of.sockets.map_or(0, |of| of.no_port_count),
        no_descriptor_count: of.sockets.map_or(0, |of| of.no_descriptor_count),
        descriptors_max: of.descriptors_max,
        links: of.interfaces.iter().map(|link| link_facts(link, took)).collect(),
        devices: of.devices.iter().map(|device| device_facts(device, took)).collect(),
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn machine(all: schema::ProcessorsEvidence, own_ns: Option<f64>) -> Option<MachineFacts> {
    let whole = all.all_ns as f64;
    Some(MachineFacts {
        busy: share(all.busy_ns as f64, whole)?,
        steal: share(all.steal_ns as f64, whole)?,
        own: own_ns.and_then(|own| share(own, whole)),
    })
}

fn sockets(of: schema::SocketsEvidence) -> SocketFacts {
    let of_busy = |limited: u64| share(limited as f64, of.busy_ns as f64);
    SocketFacts {
        opened: of.opened_count,
        over_ring: of.io_uring_requests_count,
        rtt_min: of.rtt_min_ns.map(Duration::from_nanos),
        segments_sent: of.segments_sent_count,
        retransmits: of.retransmits_count,
        segments_received: of.segments_received_count,
        out_of_order: of.out_of_order_count,
        window_limited: of_busy(of.window_limited_ns),
        buffer_limited: of_busy(of.buffer_limited_ns),
    }
}

fn link_facts(of: &schema::InterfaceEvidence, took: Duration) -> LinkFacts {
    let most = of.received_bytes.max(of.sent_bytes) as f64;
    LinkFacts {
        name: of.name.clone(),
        bytes_per_sec: share(most, took.as_secs_f64()).unwrap_or(0.0),
        capacity_bytes_per_sec: of.bits_per_sec.map(|bits| bits as f64 / 8.0),
    }
}

fn device_facts(of: &schema::DeviceEvidence, took: Duration) -> DeviceFacts {
    let took = took.as_nanos() as f64;
    DeviceFacts {
        name: of.name.clone(),
        busy: share(of.busy_ns as f64, took).unwrap_or(0.0),
        queue: share(of.queue_ns as f64, took).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_record::schema::StageJob;
    use plimsoll_report::JobSchedule;

    use super::*;
    use crate::tests::testdata;
    use crate::{Asked, Record};

    #[test]
    fn places_of_a_row_are_those_of_all_of_its_jobs() {
        let record = Record::open(&testdata("s3-mixed")).unwrap();
        let report = record.report(&Asked::default()).unwrap();
        let mut row = report.results().next().unwrap().rows[0].clone();
        let schedule = row.schedules[0].schedule.clone();
        let at_once = schedule.max_in_flight;
        row.schedules = vec![JobSchedule::new("open", false, schedule)];
        (row.jobs, row.depth) = (vec![0, 1], Some(3));
        let manifest = record.manifest().unwrap();
        let mut entry = manifest.stages.last().unwrap().clone();
        entry.jobs.push(StageJob::of("closed", 4, schema::LoopModel::Closed));
        assert!(entry.jobs[0].schedule.is_some());
        let facts = facts_of_row(&row, &entry, &[]);
        assert_eq!(facts.in_flight_max, at_once + 4 * 3);
    }
}
