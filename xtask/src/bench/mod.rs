//! `bench cost`: client CPU per operation, beside wrk, warp and a bare socket on the same store.

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
    /// What both commands are told besides.
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

const WORKS: [Work; 5] = [
    Work::small("get", Some(2_000), Some(12.0), 44_000.0),
    Work::small("put", None, None, 58_000.0),
    Work::small("stat", Some(2_000), None, 44_000.0),
    Work {
        verb: "get",
        size: "1MiB",
        size_bytes: MIB,
        flags: &["--obj.size", "1MiB", "--concurrent", "8"],
        objects_count: Some(64),
        counted: None,
        connections: 8,
        limit_us: None,
        instructions_max: None,
    },
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
/// The most that the null driver may cost per operation, in µs, with everything recorded.
const NULL_LIMIT_US: f64 = 0.5;
/// The most instructions that it may take.
const NULL_INSTRUCTIONS_MAX: f64 = 6_300.0;

impl Work {
    const fn small(
        verb: &'static str,
        objects_count: Option<usize>,
        limit_us: Option<f64>,
        instructions_max: f64,
    ) -> Self {
        Self {
            verb,
            size: "1KiB",
            size_bytes: 1 << 10,
            flags: &["--obj.size", "1KiB", "--concurrent", "32"],
            objects_count,
            counted: None,
            connections: 32,
            limit_us,
            instructions_max: Some(instructions_max),
        }
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
    process::check(&mut process::cargo(&["build", "--release", "-p", "plimsoll"]), "the build")?;
    let mut rows = Samples::new();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        // A store per round: what puts leave behind must not grow from round to round.
        let store = Store::start()?;
        for (index, work) in WORKS.iter().enumerate() {
            let run = plimsoll::s3(&store, work, plan.duration)?;
            add(&mut rows, (index, 0), work.name(), "plimsoll", work.limit_us, run);
            for (place, contender, run) in peers::run_all(&store, work, plan.duration)? {
                add(&mut rows, (index, place), work.name(), contender, None, run);
            }
        }
        let run = plimsoll::null(plan.duration)?;
        let place = (WORKS.len(), 0);
        add(&mut rows, place, "null driver".to_owned(), "plimsoll", Some(NULL_LIMIT_US), run);
    }
    print_table(plan, &rows);
    for missing in peers::missing() {
        println!("\n{missing} is not on the path, so its rows are missing");
    }
    print_instructions()
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
    let store = Store::start()?;
    for work in WORKS.iter().filter(|work| work.instructions_max.is_some()) {
        let command = |duration| plimsoll::s3_command(&store, work, duration);
        let count = plimsoll::instructions_per_op(&command)?;
        println!("| {} | {count:.0} | {:.0} |", work.name(), work.instructions_max.unwrap_or(0.0));
    }
    let count = plimsoll::instructions_per_op(&plimsoll::null_command)?;
    println!("| null driver | {count:.0} | {NULL_INSTRUCTIONS_MAX:.0} |");
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
        "median of {} interleaved rounds of {} s; µs/op is user and system CPU of the client\n",
        plan.rounds,
        plan.duration.as_secs()
    );
    println!(
        "| work | client | µs/op | least–most | plimsoll ÷ it | whole process | ops/s | limit |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
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
            "| {} | {} | {} | {least:.2}–{most:.2} | {} | {} | {:.0} | {} |",
            row.work,
            row.contender,
            or_dash(cost),
            or_dash(ratio),
            or_dash(median(all(|sample| sample.whole_us_per_op))),
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
