//! The counters of a stage that goes on, read again and again: what was counted in between, by job
//! and kind, by agent and by address.

use plimsoll_conduct::StageView;
use plimsoll_engine::{LivePart, PartState};
use plimsoll_model::OpKind;

use crate::runner::Agent;
use crate::ticks::{Counted, HostPart, Part, Row};

/// Who carries a stage out.
pub(crate) struct Machines {
    /// Whether a fleet does; otherwise this process does.
    pub(crate) has_fleet: bool,
    /// Returns what is known of them at this moment.
    pub(crate) agents: Box<dyn Fn() -> Vec<Agent> + Send + Sync>,
}

impl Machines {
    /// Nobody of whom anything is known.
    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        Self { has_fleet: true, agents: Box::new(Vec::new) }
    }
}

/// What a stage has come to since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// By job and kind.
    pub(crate) rows: Vec<Row>,
    /// By agent.
    pub(crate) parts: Vec<Part>,
    /// By address.
    pub(crate) hosts: Vec<HostPart>,
}

impl Sums {
    /// Reads the counters of a stage of so many jobs.
    pub(crate) fn read(view: &StageView<'_>, workers_of_jobs: &[u32], machines: &Machines) -> Self {
        let rows = rows(view, workers_of_jobs.len());
        let agents = (machines.agents)();
        let mut parts: Vec<Part> =
            view.live.parts().iter().enumerate().map(|(slot, of)| part(view, slot, of)).collect();
        if let (false, [own, ..]) = (machines.has_fleet, &*agents) {
            parts = vec![whole(own, &rows, workers_of_jobs.iter().sum())];
        }
        for part in &mut parts {
            let machine = agents.iter().find(|agent| agent.name == part.name);
            part.clock_offset_ms = machine.and_then(|agent| agent.clock_offset_ms);
            part.cpu_percent = machine.and_then(|agent| agent.cpu_percent);
        }
        let hosts = hosts(view, &rows);
        Self { rows, parts, hosts }
    }

    /// Returns what has come since an earlier reading.
    #[must_use]
    pub(crate) fn since(&self, before: &Self) -> Self {
        let row = |row: &Row| {
            let earlier = before.rows.iter().find(|of| of.kind == row.kind && of.job == row.job);
            Row { counted: since(&row.counted, earlier.map(|of| &of.counted)), ..row.clone() }
        };
        let part = |part: &Part| {
            let earlier = before.parts.iter().find(|of| of.name == part.name);
            Part { counted: since(&part.counted, earlier.map(|of| &of.counted)), ..part.clone() }
        };
        let host = |host: &HostPart| {
            let earlier = before.hosts.iter().find(|of| of.name == host.name);
            let counted = since(&host.counted, earlier.map(|of| &of.counted));
            HostPart { counted, ..host.clone() }
        };
        Self {
            rows: self.rows.iter().map(row).collect(),
            parts: self.parts.iter().map(part).collect(),
            hosts: self.hosts.iter().map(host).collect(),
        }
    }

    /// Returns how many operations have ended.
    pub(crate) fn ended_count(&self) -> u64 {
        self.rows.iter().map(|row| row.counted.ended_count()).sum()
    }
}

fn since(now: &Counted, before: Option<&Counted>) -> Counted {
    before.map_or_else(|| now.clone(), |before| now.since(before))
}

fn all(rows: &[Row]) -> Counted {
    let mut sum = Counted::default();
    rows.iter().for_each(|row| sum.add(&row.counted));
    sum
}

/// Returns what was counted by job, where jobs are told apart, and kind.
fn rows(view: &StageView<'_>, jobs_count: usize) -> Vec<Row> {
    let live = view.live;
    let apart = live.jobs_count();
    // What is counted for no job is of the only one, where there is no other.
    let rest = (jobs_count == 1).then_some(1);
    let jobs = (0..apart).map(|job| (Some(job), Some(job + 1))).chain([(None, rest)]);
    let row = |(lane, job): (Option<usize>, Option<usize>), kind: &OpKind| {
        let (detail, in_flight) = (live.job_detail(lane, *kind), live.job_in_flight(lane, *kind));
        let is_there = detail.is_some() || in_flight > 0;
        let counted = detail.as_ref().map(Counted::of).unwrap_or_default();
        let kind = kind.name().to_owned();
        is_there.then_some(Row { job, kind, in_flight: Some(in_flight), counted })
    };
    jobs.flat_map(|job| OpKind::ALL.iter().filter_map(move |kind| row(job, kind))).collect()
}

fn part(view: &StageView<'_>, slot: usize, of: &LivePart) -> Part {
    let state = match of.state {
        PartState::Works => "running",
        PartState::Done => "done",
        PartState::Silent => "silent",
        PartState::Lost => "lost",
    };
    Part {
        name: of.name.clone(),
        state: state.to_owned(),
        in_flight: Some(view.live.slot_in_flight(slot)),
        counted: view.live.slot_detail(slot).as_ref().map(Counted::of).unwrap_or_default(),
        ..Part::default()
    }
}

/// Returns the part of who does all of it.
fn whole(own: &Agent, rows: &[Row], workers_count: u32) -> Part {
    Part {
        name: own.name.clone(),
        state: "running".to_owned(),
        workers_count: Some(workers_count).filter(|count| *count > 0),
        in_flight: rows.iter().map(|row| row.in_flight).sum(),
        counted: all(rows),
        ..Part::default()
    }
}

fn hosts(view: &StageView<'_>, rows: &[Row]) -> Vec<HostPart> {
    let named = |name: &String, counted| HostPart { name: without_user(name).to_owned(), counted };
    match view.endpoints {
        [only] => vec![named(only, all(rows))],
        several => {
            let apart = several.iter().enumerate().take(view.live.hosts_count());
            let counted = apart.filter_map(|(host, name)| {
                Some(named(name, Counted::of(&view.live.host_detail(host)?)))
            });
            counted.collect()
        }
    }
}

/// Returns an address without who asks it.
fn without_user(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use plimsoll_conduct::{Announced, Goal};
    use plimsoll_engine::{Live, LiveDetail, RunClock};
    use plimsoll_model::SharedClock;

    use super::*;
    use crate::runner::AgentState;

    fn detail(ok: u64) -> LiveDetail {
        let mut detail = LiveDetail { bytes: ok * 10, ..LiveDetail::default() };
        detail.ended[0] = ok;
        detail.latency_cells[3] = ok;
        detail
    }

    fn read(live: &Arc<Live>, endpoints: &[&str], workers: &[u32], machines: &Machines) -> Sums {
        let clock: SharedClock = Arc::new(RunClock::start());
        let endpoints: Vec<String> = endpoints.iter().map(|host| (*host).to_owned()).collect();
        let goal = Goal::Time(Duration::from_secs(1));
        let (name, announced) = ("main", &Announced::doing("main"));
        let (rates, endpoints) = (&[][..], &*endpoints);
        let view = StageView { name, announced, goal, live, clock: &clock, rates, endpoints };
        Sums::read(&view, workers, machines)
    }

    fn here() -> Machines {
        let own = Agent {
            name: "here".to_owned(),
            address: None,
            state: AgentState::Ready,
            clock_offset_ms: None,
            cpu_percent: Some(12.5),
            cores_count: None,
            version: None,
            seen_at_ms: None,
            run: None,
        };
        Machines { has_fleet: false, agents: Box::new(move || vec![own.clone()]) }
    }

    #[test]
    fn a_process_without_a_fleet_is_one_agent_and_a_stage_of_one_job_names_it() {
        let live = Arc::new(Live::new(2));
        live.show(0, None, OpKind::Get, &detail(5));
        live.show(1, None, OpKind::Get, &detail(2));
        live.show_in_flight(1, None, OpKind::Put, 3);
        let sums = read(&live, &["key@h:1"], &[4], &here());
        let rows: Vec<_> = sums
            .rows
            .iter()
            .map(|row| (row.job, &*row.kind, row.counted.ok, row.in_flight))
            .collect();
        assert_eq!(rows, [(Some(1), "PUT", 0, Some(3)), (Some(1), "GET", 7, Some(0))]);
        let [part] = &*sums.parts else { panic!("{:?}", sums.parts) };
        assert_eq!((&*part.name, part.workers_count, part.in_flight), ("here", Some(4), Some(3)));
        assert_eq!((part.counted.ok, part.cpu_percent), (7, Some(12.5)));
        assert_eq!(part.state, "running");
        let [host] = &*sums.hosts else { panic!("{:?}", sums.hosts) };
        assert_eq!((&*host.name, host.counted.ok), ("h:1", 7));
        live.show(0, None, OpKind::Get, &detail(9));
        let since = read(&live, &["h:1"], &[4], &here()).since(&sums);
        assert_eq!((since.ended_count(), since.parts[0].counted.ok), (4, 4));
        assert_eq!(since.hosts[0].counted.cells, [(3, 4)]);
    }

    #[test]
    fn jobs_agents_and_addresses_are_told_apart() {
        let live = Arc::new(Live::telling(2, 2, 2));
        live.show(0, Some(0), OpKind::Get, &detail(5));
        live.show(1, Some(1), OpKind::Get, &detail(2));
        live.show_host(1, 1, &detail(2));
        let part = |name: &str| LivePart { name: name.to_owned(), state: PartState::Works };
        live.show_parts(vec![part("a"), part("b")]);
        let sums = read(&live, &["h:1", "h:2"], &[1, 1], &Machines::unknown());
        let rows: Vec<_> = sums.rows.iter().map(|row| (row.job, row.counted.ok)).collect();
        assert_eq!(rows, [(Some(1), 5), (Some(2), 2)]);
        let parts: Vec<_> = sums.parts.iter().map(|part| (&*part.name, part.counted.ok)).collect();
        assert_eq!(parts, [("a", 5), ("b", 2)]);
        assert!(sums.parts.iter().all(|part| part.state == "running"));
        let hosts: Vec<_> = sums.hosts.iter().map(|host| (&*host.name, host.counted.ok)).collect();
        assert_eq!(hosts, [("h:2", 2)]);
    }
}
