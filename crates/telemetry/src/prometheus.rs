//! The counters as text that Prometheus reads: its own format 0.0.4, or OpenMetrics for who asks
//! for that.

use plimsoll_engine::{
    COARSE_CELLS, LiveDetail, PartState, coarse_cell, coarse_cell_end_ns, latency_cell_end_ns,
};
use plimsoll_foreign::prometheus::{Exposition, Family, Writer};
use plimsoll_model::ErrorClass;

use crate::snapshot::{Board, Snapshot, seconds};

/// How finely latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buckets {
    /// A bucket for each power of two: a percentile is off by less than a factor of two.
    Coarse,
    /// Eight of them: it is off by an eighth at most.
    Fine,
}

const LATENCY: Family = histogram(
    "plimsoll_latency_seconds",
    "Latency of successful operations, from the intended start to the end.",
);
const TTFB: Family = histogram(
    "plimsoll_ttfb_seconds",
    "Time to first byte of successful operations; of an upload, from the last byte sent.",
);
const DELAY: Family = histogram(
    "plimsoll_schedule_delay_seconds",
    "Schedule delay of successful operations, from the intended start to the real one.",
);

/// Returns how many successes lie in each coarse cell, and the sum of their times in nanoseconds;
/// `None` where there is nothing to tell of.
type Cells = fn(&LiveDetail) -> Option<(&[u64], u64)>;

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: "counter", help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: "gauge", help }
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: "histogram", help }
}

/// Returns the text.
pub(super) fn text(
    board: &Board,
    snapshot: &Snapshot,
    exposition: Exposition,
    buckets: Buckets,
) -> String {
    let mut out = Writer::new(exposition);
    run(&mut out, board, snapshot);
    counters(&mut out, snapshot);
    histograms(&mut out, snapshot, buckets);
    if snapshot.stages.iter().any(|stage| !stage.parts.is_empty()) {
        agents(&mut out, snapshot);
    }
    let help = "Processor time of the load generator, all cores, user and system.";
    let family = counter("process_cpu_seconds_total", help);
    out.family(&family);
    out.sample(family.name, &[], snapshot.cpu.as_secs_f64(), None);
    out.finish()
}

fn run(out: &mut Writer, board: &Board, snapshot: &Snapshot) {
    let family = gauge("plimsoll_run_info", "The run, always 1.");
    out.family(&family);
    let version = env!("CARGO_PKG_VERSION");
    let labels = [("run", &*board.run_id), ("what", &*board.what), ("version", version)];
    out.sample(family.name, &labels, 1.0, None);
    let family = gauge("plimsoll_stage_info", "1 for the current stage, 0 for earlier ones.");
    out.family(&family);
    for (index, stage) in snapshot.stages.iter().enumerate() {
        let under_way = f64::from(u8::from(index + 1 == snapshot.stages.len()));
        out.sample(family.name, &[("stage", &stage.name)], under_way, None);
    }
}

fn counters(out: &mut Writer, snapshot: &Snapshot) {
    let help = "Operations ended, by how they ended: ok, or a class of failure.";
    let family = counter("plimsoll_operations_total", help);
    out.family(&family);
    each(snapshot, |[stage, kind], detail| {
        for class in ErrorClass::ALL {
            let count = detail.ended[class as usize];
            if count > 0 || class.is_ok() {
                let labels = [stage, kind, ("outcome", class.name())];
                out.sample(family.name, &labels, count as f64, None);
            }
        }
    });
    let family = counter("plimsoll_bytes_total", "Content bytes of successful operations.");
    out.family(&family);
    each(snapshot, |labels, detail| out.sample(family.name, &labels, detail.bytes as f64, None));
    let help = "Objects that successful operations handled: listed, deleted, else 1 each.";
    let family = counter("plimsoll_objects_total", help);
    out.family(&family);
    each(snapshot, |labels, detail| out.sample(family.name, &labels, detail.objects as f64, None));
    let help = "Operations under way in the current stage.";
    let family = gauge("plimsoll_operations_in_flight", help);
    out.family(&family);
    if let Some(stage) = snapshot.stages.last() {
        for (kind, in_flight) in &stage.in_flight {
            let labels = [("stage", &*stage.name), ("kind", kind.name())];
            out.sample(family.name, &labels, *in_flight as f64, None);
        }
    }
}

fn histograms(out: &mut Writer, snapshot: &Snapshot, buckets: Buckets) {
    out.family(&LATENCY);
    each(snapshot, |labels, detail| {
        let sum = seconds(detail.latency_ns);
        let cells = detail.latency_cells.iter().copied().enumerate();
        match buckets {
            Buckets::Fine => {
                let cells = cells.map(|(cell, n)| (latency_cell_end_ns(cell).map(seconds), n));
                out.histogram(LATENCY.name, &labels, cells, sum, None);
            }
            Buckets::Coarse => {
                let mut sums = [0; COARSE_CELLS];
                cells.for_each(|(cell, n)| sums[coarse_cell(cell)] += n);
                out.histogram(LATENCY.name, &labels, coarse(&sums), sum, None);
            }
        }
    });
    let mut of_histogram = |family: &Family, cells: Cells| {
        let mut begun = false;
        each(snapshot, |labels, detail| {
            let Some((cells, sum)) = cells(detail) else { return };
            if !std::mem::replace(&mut begun, true) {
                out.family(family);
            }
            out.histogram(family.name, &labels, coarse(cells), seconds(sum), None);
        });
    };
    of_histogram(&TTFB, |detail| {
        let is_known = detail.ttfb_cells.iter().any(|count| *count > 0);
        is_known.then_some((&detail.ttfb_cells, detail.ttfb_ns))
    });
    // In a closed loop every operation starts when it is intended to.
    of_histogram(&DELAY, |detail| {
        (detail.delay_ns > 0).then_some((&detail.delay_cells, detail.delay_ns))
    });
}

/// Returns coarse cells with their upper bounds in seconds.
fn coarse(cells: &[u64]) -> impl Iterator<Item = (Option<f64>, u64)> {
    let cells = cells.iter().copied().enumerate();
    cells.map(|(cell, count)| (coarse_cell_end_ns(cell).map(seconds), count))
}

/// Writes what is known of each agent of a fleet.
fn agents(out: &mut Writer, snapshot: &Snapshot) {
    let of_stages = || {
        let of_stage = |stage| move |part| (stage, part);
        snapshot.stages.iter().flat_map(move |stage| stage.parts.iter().map(of_stage(stage)))
    };
    let help = "Operations that an agent has ended, by whether they succeeded.";
    let family = counter("plimsoll_agent_operations_total", help);
    out.family(&family);
    for (stage, (part, counts)) in of_stages() {
        for (outcome, count) in [("ok", counts.ok), ("failed", counts.failed)] {
            let labels = [("stage", &*stage.name), ("agent", &part.name), ("outcome", outcome)];
            out.sample(family.name, &labels, count as f64, None);
        }
    }
    let help = "Content bytes of an agent's successful operations.";
    let family = counter("plimsoll_agent_bytes_total", help);
    out.family(&family);
    for (stage, (part, counts)) in of_stages() {
        let labels = [("stage", &*stage.name), ("agent", &part.name)];
        out.sample(family.name, &labels, counts.bytes as f64, None);
    }
    let help = "1 while an agent reports, 0 when it is silent or lost.";
    let family = gauge("plimsoll_agent_up", help);
    out.family(&family);
    for (part, _) in snapshot.stages.last().into_iter().flat_map(|stage| &stage.parts) {
        let is_up = matches!(part.state, PartState::Works | PartState::Done);
        out.sample(family.name, &[("agent", &part.name)], f64::from(u8::from(is_up)), None);
    }
}

/// Calls `write` for every kind of every stage, with the labels that say which.
fn each(snapshot: &Snapshot, mut write: impl FnMut([(&str, &str); 2], &LiveDetail)) {
    for stage in &snapshot.stages {
        for (kind, detail) in &stage.kinds {
            write([("stage", &stage.name), ("kind", kind.name())], detail);
        }
    }
}
