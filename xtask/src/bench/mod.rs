//! `bench cost`, `bench tls`: client CPU per operation, beside wrk, warp and a bare socket on the
//! same store.

mod analyse;
mod cosbench;
mod cpu;
mod files;
mod fleet;
mod peers;
mod plimsoll;
mod store;
mod weed;

pub(crate) use analyse::analyse;
pub(crate) use cosbench::cosbench;
pub(crate) use files::{Plan as FilesPlan, files};
pub(crate) use fleet::fleet;
pub(crate) use weed::weed;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use crate::process;
use store::Store;

/// How long and how often everything is measured.
pub(crate) struct Plan {
    rounds: usize,
    duration: Duration,
}

impl Plan {
    /// What figures are taken from.
    pub(crate) fn full() -> Self {
        Self { rounds: 5, duration: Duration::from_secs(5) }
    }

    /// A look whether everything still runs.
    pub(crate) fn quick() -> Self {
        Self { rounds: 1, duration: Duration::from_secs(1) }
    }
}

/// One kind of work on the store.
#[derive(Clone, Copy)]
struct Work {
    /// The command of plimsoll and of warp.
    verb: &'static str,
    /// What one operation that is counted moves.
    size: &'static str,
    size_bytes: usize,
    /// What both commands are told, where that is more than the size and the connections.
    flags: &'static [&'static str],
    /// Objects that are written before, where the command reads some.
    objects_count: Option<usize>,
    /// The kind whose operations are counted; `None`: all of them.
    counted: Option<&'static str>,
    /// As many connections as the command has under way.
    connections: usize,
    /// The most µs per operation that DESIGN §6 allows; its other limits are relative to a peer.
    limit_us: Option<f64>,
    /// The most instructions that an operation may take, where they are counted: a tenth more than
    /// on 2026-11-26, by a Valgrind that knows no SHA instructions.
    instructions_max: Option<f64>,
}

const MIB: usize = 1 << 20;

/// On the oracle, where the client is the limit.
const WORKS: [Work; 5] = [
    Work::plain("get", ("1KiB", 1 << 10), 32, Some(2_000)).limited(12.0).in_instructions(44_000.0),
    Work::plain("put", ("1KiB", 1 << 10), 32, None).in_instructions(58_000.0),
    Work::plain("stat", ("1KiB", 1 << 10), 32, Some(2_000)).in_instructions(44_000.0),
    Work::plain("get", ("1MiB", MIB), 8, Some(64)),
    // Of the parts, with what it costs to begin and to complete the uploads.
    Work {
        verb: "multipart-put",
        size: "5MiB",
        size_bytes: 5 * MIB,
        flags: &[
            "--part.size",
            "5MiB",
            "--parts",
            "4",
            "--part.concurrent",
            "2",
            "--concurrent",
            "4",
        ],
        objects_count: None,
        counted: Some("PUTPART"),
        connections: 8,
        limit_us: None,
        instructions_max: None,
    },
];
/// On MinIO, where the store is the limit.
const WORKS_OF_MINIO: [Work; 6] = [
    Work::plain("get", ("1KiB", 1 << 10), 16, Some(2_000)),
    Work::plain("put", ("1KiB", 1 << 10), 16, None),
    Work::plain("stat", ("1KiB", 1 << 10), 16, Some(2_000)),
    Work::plain("mixed", ("64KiB", 64 << 10), 16, Some(1_000)),
    Work::plain("get", ("1MiB", MIB), 16, Some(64)),
    Work::plain("put", ("1MiB", MIB), 16, None),
];
/// The most that the null driver may cost per operation, in µs, with everything recorded.
const NULL_LIMIT_US: f64 = 0.5;
/// The most instructions that it may take.
const NULL_INSTRUCTIONS_MAX: f64 = 6_300.0;

impl Work {
    const fn plain(
        verb: &'static str,
        (size, size_bytes): (&'static str, usize),
        connections: usize,
        objects_count: Option<usize>,
    ) -> Self {
        Self {
            verb,
            size,
            size_bytes,
            flags: &[],
            objects_count,
            counted: None,
            connections,
            limit_us: None,
            instructions_max: None,
        }
    }

    const fn limited(self, us: f64) -> Self {
        Self { limit_us: Some(us), ..self }
    }

    const fn in_instructions(self, instructions_max: f64) -> Self {
        Self { instructions_max: Some(instructions_max), ..self }
    }

    /// Returns what a command is told of the work.
    fn arguments(&self) -> Vec<String> {
        let told = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        if self.flags.is_empty() {
            return told(&["--obj.size", self.size, "--concurrent", &self.connections.to_string()]);
        }
        told(self.flags)
    }

    fn name(&self) -> String {
        format!("{} {}", self.verb, self.size)
    }

    /// Tells whether it writes content.
    fn uploads(&self) -> bool {
        self.verb.ends_with("put")
    }
}

/// What one run of one contender gave.
struct Sample {
    ops_per_sec: f64,
    /// User and system CPU over operations, of the measured stage alone where that is known.
    us_per_op: f64,
    /// The same of the whole process, preparing included.
    whole_us_per_op: Option<f64>,
    /// The part of the whole process's that was not the kernel's.
    user_us_per_op: Option<f64>,
}

/// All samples, by the order of the table: work, then contender.
type Samples = BTreeMap<(usize, usize), Row>;

struct Row {
    work: String,
    contender: &'static str,
    limit_us: Option<f64>,
    samples: Vec<Sample>,
}

/// Measures everything in turn, round by round, and prints the medians.
pub(crate) fn cost(plan: &Plan) -> Result<()> {
    build()?;
    let mut rows = Samples::new();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        // A store per round: what puts leave behind must not grow from round to round.
        measure(&Store::oracle(&WORKS)?, &WORKS, plan, &mut rows)?;
        let run = plimsoll::null(plan.duration)?;
        let place = (WORKS.len(), 0);
        add(&mut rows, place, "null driver".to_owned(), "plimsoll", Some(NULL_LIMIT_US), run);
    }
    print_table(plan, &rows);
    print_instructions()?;
    println!("\nMinIO, where the store is the limit:\n");
    on_minio(plan, false)
}

/// Measures the same on MinIO over TLS.
pub(crate) fn tls(plan: &Plan) -> Result<()> {
    build()?;
    on_minio(plan, true)
}

fn on_minio(plan: &Plan, with_tls: bool) -> Result<()> {
    let mut rows = Samples::new();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {} on MinIO", plan.rounds);
        let store = Store::minio(&WORKS_OF_MINIO, with_tls)?;
        measure(&store, &WORKS_OF_MINIO, plan, &mut rows)?;
    }
    print_table(plan, &rows);
    for missing in peers::missing() {
        println!("\n{missing} is not on the path, so its rows are missing");
    }
    Ok(())
}

/// Prints how many instructions an operation takes where Valgrind can count them: that does not
/// depend on how busy the machine is.
fn print_instructions() -> Result<()> {
    if process::on_path("valgrind").is_none() {
        println!("\nvalgrind is not on the path, so no instructions are counted");
        return Ok(());
    }
    println!(
        "\n| work | instructions per operation, outside of the kernel | limit |\n|---|---:|---:|"
    );
    let store = Store::oracle(&WORKS)?;
    for work in WORKS.iter().filter(|work| work.instructions_max.is_some()) {
        let command = |duration| plimsoll::s3_command(&store, work, duration);
        let count = plimsoll::instructions_per_op(&command)?;
        println!("| {} | {count:.0} | {:.0} |", work.name(), work.instructions_max.unwrap_or(0.0));
    }
    let count = plimsoll::instructions_per_op(&plimsoll::null_command)?;
    println!("| null driver | {count:.0} | {NULL_INSTRUCTIONS_MAX:.0} |");
    Ok(())
}

fn build() -> Result<()> {
    process::check(&mut process::cargo(&["build", "--release", "-p", "plimsoll"]), "the build")
}

/// Has everybody do each work on the store in turn.
fn measure(store: &Store, works: &[Work], plan: &Plan, rows: &mut Samples) -> Result<()> {
    for (index, work) in works.iter().enumerate() {
        let run = plimsoll::s3(store, work, plan.duration)?;
        add(rows, (index, 0), work.name(), "plimsoll", work.limit_us, run);
        for (place, contender, run) in peers::run_all(store, work, plan.duration)? {
            add(rows, (index, place), work.name(), contender, None, run);
        }
    }
    Ok(())
}

fn add(
    rows: &mut Samples,
    place: (usize, usize),
    work: String,
    contender: &'static str,
    limit_us: Option<f64>,
    sample: Sample,
) {
    let row = rows.entry(place).or_insert(Row { work, contender, limit_us, samples: Vec::new() });
    row.samples.push(sample);
}

fn print_table(plan: &Plan, rows: &Samples) {
    println!("{}", machine());
    println!(
        "median of {} interleaved rounds of {} s; µs/op is user and system CPU of the client\n\
         wrk and bare sockets sign nothing and read or write one object over and over\n",
        plan.rounds,
        plan.duration.as_secs()
    );
    println!(
        "| work | client | µs/op | least–most | plimsoll ÷ it | whole process | user part of that \
         | ops/s | limit |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut own = None;
    for (&(_, place), row) in rows {
        let all = |figure: fn(&Sample) -> Option<f64>| -> Vec<f64> {
            row.samples.iter().filter_map(figure).collect()
        };
        let costs = all(|sample| Some(sample.us_per_op));
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = costs.iter().copied().fold(0.0, f64::max);
        let cost = median(costs);
        if place == 0 {
            own = cost;
        }
        let ratio = own.zip(cost).filter(|_| place > 0).map(|(own, cost)| own / cost);
        println!(
            "| {} | {} | {} | {least:.2}–{most:.2} | {} | {} | {} | {:.0} | {} |",
            row.work,
            row.contender,
            or_dash(cost),
            or_dash(ratio),
            or_dash(median(all(|sample| sample.whole_us_per_op))),
            or_dash(median(all(|sample| sample.user_us_per_op))),
            median(all(|sample| Some(sample.ops_per_sec))).unwrap_or(f64::NAN),
            or_dash(row.limit_us),
        );
    }
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

/// Returns the middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(lower.midpoint(upper))
}

/// Describes the machine: without it no figure means anything.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores_count = std::thread::available_parallelism().map_or(0, usize::from);
    let model = model.map_or("unknown CPU", |(_, model)| model);
    format!("machine: {model}, {cores_count} cores, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
