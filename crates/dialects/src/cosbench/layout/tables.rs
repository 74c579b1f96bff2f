//! The tables: one row for each operation of each stage, of a time line, of each worker, of each
//! workload.

use super::number::{NOTHING, number, ratio, time};
use super::{Archive, ArchivedStage, Figures, Metric, StateAt, column, histogram};

/// The percentiles of tables.
const PERCENTS: [u64; 6] = [60, 80, 90, 95, 99, 100];

/// The first line of `<id>-<name>.csv`.
pub const SUMMARY_HEADER: &str = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,\
    Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,\
    Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status";

/// The first line of `run-history.csv`.
pub const HISTORY_HEADER: &str =
    "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State";

/// The first line of `workloads.csv`.
pub const WORKLOADS_HEADER: &str = "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,\
    Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,\
    Throughput,Bandwidth,Succ-Ratio,Config-Info";

/// The first line of `s<N>-<stage>-worker.csv`.
pub const WORKER_HEADER: &str = "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,\
    Avg-ProcTime,Throughput,Bandwidth,Succ-Ratio";

/// The first line of `<driver>.csv`, of which COSBench groups the fields wrongly.
const DRIVER_HEADER: &str = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,\
    Avg-ProcTime,Throughput,Bandwidth,Succ-Ratio";

/// Returns `<id>-<name>.csv`: the final figures.
pub fn summary_csv(archive: &Archive) -> String {
    let mut lines = vec![SUMMARY_HEADER.to_owned()];
    for stage in &archive.stages {
        let mut last = vec![stage.state().to_owned()];
        last.extend(stage.states.iter().map(state));
        if stage.metrics.is_empty() {
            let nothing = [NOTHING; 15].map(str::to_owned).into_iter();
            let cells = [column(&stage.name)].into_iter().chain(nothing).chain(last);
            lines.push(cells.collect::<Vec<_>>().join(","));
            continue;
        }
        for metric in &stage.metrics {
            let mut cells =
                vec![column(&stage.id), column(&metric.shown()), metric.op_type.clone()];
            cells.extend(counts(&metric.figures));
            cells.extend(times(&metric.figures));
            cells.extend(percentiles(metric));
            cells.extend(rates(&metric.figures));
            cells.extend(last.iter().cloned());
            lines.push(cells.join(","));
        }
    }
    lined(&lines)
}

fn state(StateAt { state, at }: &StateAt) -> String {
    format!("{state} @ {at}")
}

fn lined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn counts(figures: &Figures) -> [String; 2] {
    [figures.ops.to_string(), figures.bytes.to_string()]
}

fn times(figures: &Figures) -> [String; 2] {
    [time(figures.response_ms), time(figures.processing_ms)]
}

fn rates(figures: &Figures) -> [String; 3] {
    let Figures { ops, samples, throughput, bandwidth, .. } = *figures;
    [number(throughput), number(bandwidth), ratio(ops, samples)]
}

fn percentiles(metric: &Metric) -> [String; 6] {
    PERCENTS.map(|percent| {
        let time = metric.latencies.as_ref().and_then(|of| histogram::percentile(of, percent));
        time.map_or_else(|| NOTHING.to_owned(), |ms| ms.to_string())
    })
}

/// Returns `s<N>-<stage>.csv`: the time line; empty where there is no row.
pub fn stage_csv(stage: &ArchivedStage) -> String {
    if stage.snapshots.is_empty() {
        return String::new();
    }
    const GROUPS: [&str; 7] = [
        "Op-Count",
        "Byte-Count",
        "Avg-ResTime",
        "Avg-ProcTime",
        "Throughput",
        "Bandwidth",
        "Succ-Ratio",
    ];
    let names: Vec<String> = stage.metrics.iter().map(|metric| column(&metric.shown())).collect();
    let more = ",".repeat(names.len().saturating_sub(1));
    let groups: String = GROUPS.iter().map(|group| format!(",{group}{more}")).collect();
    let under: String =
        GROUPS.iter().flat_map(|_| names.iter().map(|name| format!(",{name}"))).collect();
    let mut lines = vec![
        format!("Timestamp{groups},Version-Info,,"),
        format!("{under},Min-Version,Version,Max-Version"),
    ];
    for snapshot in &stage.snapshots {
        let all = |of: &dyn Fn(&Figures) -> String| -> Vec<String> {
            snapshot.figures.iter().map(of).collect()
        };
        let mut cells = vec![snapshot.time.clone()];
        cells.extend(all(&|of| of.ops.to_string()));
        cells.extend(all(&|of| of.bytes.to_string()));
        cells.extend(all(&|of| time(of.response_ms)));
        cells.extend(all(&|of| time(of.processing_ms)));
        cells.extend(all(&|of| number(of.throughput)));
        cells.extend(all(&|of| number(of.bandwidth)));
        cells.extend(all(&|of| ratio(of.ops, of.samples)));
        cells.extend([(); 3].map(|()| snapshot.version.to_string()));
        lines.push(cells.join(","));
    }
    lined(&lines)
}

/// Returns `s<N>-<stage>-worker.csv`: what each worker did of each operation.
pub fn worker_csv(stage: &ArchivedStage) -> String {
    let mut lines = vec![WORKER_HEADER.to_owned()];
    for worker in &stage.workers {
        let mut cells = vec![worker.op_type.clone(), worker.sample_type.clone()];
        cells.extend(counts(&worker.figures));
        cells.extend(times(&worker.figures));
        cells.extend(rates(&worker.figures));
        lines.push(cells.join(","));
    }
    lined(&lines)
}

/// Returns `<driver>.csv`: what a driver did of each operation of each stage.
pub fn driver_csv(archive: &Archive, driver: &str) -> String {
    let mut lines = vec![DRIVER_HEADER.to_owned()];
    for stage in &archive.stages {
        for (_, metric) in stage.drivers.iter().filter(|(name, _)| name == driver) {
            let mut cells =
                vec![column(&stage.id), column(&metric.shown()), metric.op_type.clone()];
            cells.extend(counts(&metric.figures));
            cells.extend(times(&metric.figures));
            cells.extend(rates(&metric.figures));
            lines.push(cells.join(","));
        }
    }
    lined(&lines)
}

/// Returns the row of a workload in `run-history.csv`, with its end of line.
pub fn history_row(archive: &Archive) -> String {
    let mut cells = vec![
        archive.id.clone(),
        column(&archive.name),
        archive.submitted.clone(),
        archive.started.clone().unwrap_or_default(),
        archive.stopped.clone().unwrap_or_default(),
        column(&archive.op_info.join(" ")),
        archive.state().to_owned(),
    ];
    cells.extend(archive.states.iter().map(state));
    format!("{}\n", cells.join(","))
}

/// Returns the rows of a workload in `workloads.csv`, each with its end of line.
pub fn workloads_rows(archive: &Archive) -> String {
    let mut lines = Vec::new();
    for stage in &archive.stages {
        for (number, metric) in (1..).zip(&stage.metrics) {
            let mut cells = vec![
                column(&format!("{}-{}-{number}", archive.id, stage.id)),
                column(&metric.shown()),
            ];
            cells.extend(counts(&metric.figures));
            cells.push(metric.workers.to_string());
            cells.extend(times(&metric.figures));
            cells.extend(percentiles(metric));
            cells.extend(rates(&metric.figures));
            let config = column(&metric.config.replace(';', " "));
            cells.push(format!("{}% {config}", metric.ratio));
            lines.push(cells.join(","));
        }
    }
    lined(&lines)
}

/// Returns what `.meta` holds: the number of the workload that was archived last.
pub fn meta(last_id: &str) -> String {
    last_id.trim_start_matches('w').to_owned()
}
