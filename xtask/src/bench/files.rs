//! `bench files`: CPU per operation and rates on files and names, beside fio, mdtest and elbencho.

mod fio;
mod names;
mod ours;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::{machine, median, or_dash};
use crate::process;

/// How large the file is that blocks are read from: laying it out must not weigh.
const READ_FILE: &str = "128MiB";
/// How large the file is that is written over and over.
const WRITE_FILE: &str = "512MiB";

/// What is measured, how long and how often.
pub(crate) struct Plan {
    rounds: usize,
    duration: Duration,
    /// Files of each worker in the cases of names.
    files_count: u32,
    /// Only cases whose name holds this text.
    only: String,
    /// The build that is measured; otherwise one is made.
    program: Option<PathBuf>,
}

impl Plan {
    /// Reads the words behind `bench files`; `None` when they are not understood.
    pub(crate) fn parse(mut words: &[&str]) -> Option<Self> {
        let duration = Duration::from_secs(10);
        let (only, program) = (String::new(), None);
        let mut plan = Self { rounds: 5, duration, files_count: 200_000, only, program };
        loop {
            words = match words {
                [] => break,
                ["--quick", rest @ ..] => {
                    plan.rounds = 1;
                    plan.duration = Duration::from_secs(2);
                    plan.files_count = 20_000;
                    rest
                }
                ["--rounds", rounds, rest @ ..] => {
                    plan.rounds = rounds.parse().ok().filter(|rounds| *rounds > 0)?;
                    rest
                }
                ["--seconds", seconds, rest @ ..] => {
                    plan.duration = Duration::from_secs(seconds.parse().ok().filter(|s| *s > 0)?);
                    rest
                }
                ["--program", path, rest @ ..] => {
                    plan.program = Some(PathBuf::from(path));
                    rest
                }
                ["--only", text, rest @ ..] => {
                    plan.only = (*text).to_owned();
                    rest
                }
                _ => return None,
            };
        }
        Some(plan)
    }
}

/// What one run gave of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// `read`, `create` and so on.
    what: &'static str,
    ops_per_sec: f64,
    /// User and system time of the whole process over operations, where all of it is of this kind.
    us_per_op: Option<f64>,
    /// The same as the process itself accounts it: of the measured stage alone.
    own_us_per_op: Option<f64>,
}

/// Blocks of one file by one worker.
#[derive(Clone, Copy)]
struct Blocks {
    interface: &'static str,
    is_write: bool,
    is_direct: bool,
    block: &'static str,
    depth: u32,
}

/// Which work.
#[derive(Clone, Copy)]
enum Work {
    Blocks(Blocks),
    /// Blocks of nothing: the null target.
    Null,
    /// Empty files in a directory for each of so many workers.
    Names {
        workers: u32,
    },
}

/// What has to be reached against one peer.
#[derive(Clone, Copy)]
struct Peer {
    program: &'static str,
    /// The most that our CPU per operation may be of the peer's.
    cpu_max: Option<f64>,
    /// The least that our rate has to be of the peer's.
    rate_min: Option<f64>,
}

struct Case {
    name: &'static str,
    on_disk: bool,
    work: Work,
    peers: &'static [Peer],
    /// The most µs of CPU per operation, whatever others need.
    limit_us: Option<f64>,
}

const fn fio(cpu_max: Option<f64>, rate_min: Option<f64>) -> Peer {
    Peer { program: "fio", cpu_max, rate_min }
}

const BESIDE_FIO: &[Peer] = &[fio(None, None)];
const BESIDE_NAMES: &[Peer] = &[
    Peer { program: "mdtest", cpu_max: None, rate_min: Some(1.0) },
    Peer { program: "elbencho", cpu_max: None, rate_min: Some(0.97) },
];
const DIRECT_READS: Blocks =
    Blocks { interface: "io_uring", is_write: false, is_direct: true, block: "4KiB", depth: 16 };
const WRITES: Blocks =
    Blocks { interface: "psync", is_write: true, is_direct: false, block: "1MiB", depth: 1 };

const CASES: [Case; 7] = [
    Case {
        name: "tmpfs 4 KiB random read, psync",
        on_disk: false,
        work: Work::Blocks(Blocks { block: "4KiB", is_write: false, ..WRITES }),
        peers: &[fio(Some(1.0), Some(1.0))],
        limit_us: None,
    },
    Case {
        name: "disk 4 KiB random read, O_DIRECT, io_uring depth 16",
        on_disk: true,
        work: Work::Blocks(DIRECT_READS),
        peers: &[fio(Some(1.0), Some(0.97))],
        limit_us: None,
    },
    Case {
        name: "tmpfs 1 MiB write of fresh data, psync",
        on_disk: false,
        work: Work::Blocks(WRITES),
        peers: &[fio(Some(0.6), None)],
        limit_us: None,
    },
    Case {
        name: "disk 1 MiB write of fresh data, O_DIRECT, psync",
        on_disk: true,
        work: Work::Blocks(Blocks { is_direct: true, ..WRITES }),
        peers: BESIDE_FIO,
        limit_us: None,
    },
    Case {
        name: "null target",
        on_disk: false,
        work: Work::Null,
        peers: BESIDE_FIO,
        limit_us: Some(0.5),
    },
    Case {
        name: "tmpfs names, 1 worker",
        on_disk: false,
        work: Work::Names { workers: 1 },
        peers: BESIDE_NAMES,
        limit_us: None,
    },
    Case {
        name: "tmpfs names, 2 workers",
        on_disk: false,
        work: Work::Names { workers: 2 },
        peers: BESIDE_NAMES,
        limit_us: None,
    },
];

/// Where everything is done; removed in the end.
struct Scratch {
    memory: PathBuf,
    disk: PathBuf,
}

impl Scratch {
    fn make() -> Result<Self> {
        let name = format!("plimsoll-bench-files-{}", std::process::id());
        let memory = PathBuf::from("/dev/shm").join(&name);
        let disk = process::root().join("target/tmp").join(&name);
        let scratch = Self { memory, disk };
        std::fs::create_dir_all(&scratch.memory)?;
        std::fs::create_dir_all(&scratch.disk)?;
        Ok(scratch)
    }

    fn of(&self, case: &Case) -> &PathBuf {
        if case.on_disk { &self.disk } else { &self.memory }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for folder in [&self.memory, &self.disk] {
            if let Err(error) = std::fs::remove_dir_all(folder) {
                eprintln!("cannot remove {}: {error}", folder.display());
            }
        }
    }
}

/// What all rounds of a case gave: ours, then those of each peer that is there.
struct Rounds {
    case: &'static Case,
    ours: Vec<Vec<Sample>>,
    peers: Vec<(&'static Peer, Vec<Vec<Sample>>)>,
}

/// Measures every case in turn, round by round, and prints the medians of the ratios.
pub(crate) fn files(plan: &Plan) -> Result<()> {
    if plan.program.is_none() {
        let mut build = process::cargo(&["build", "--release", "-p", "plimsoll"]);
        process::check(&mut build, "the build")?;
    }
    let scratch = Scratch::make()?;
    let is_there = |peer: &&Peer| process::on_path(peer.program).is_some();
    let rounds = |case: &'static Case| {
        let peers = case.peers.iter().filter(is_there).map(|peer| (peer, Vec::new())).collect();
        Rounds { case, ours: Vec::new(), peers }
    };
    let cases = CASES.iter().filter(|case| case.name.contains(&plan.only));
    let mut all: Vec<Rounds> = cases.map(rounds).collect();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        for rounds in &mut all {
            // Who comes first changes from round to round.
            let ours_last = round % 2 == 0;
            if !ours_last {
                rounds.ours.push(ours::run(rounds.case, &scratch, plan)?);
            }
            for (peer, samples) in &mut rounds.peers {
                samples.push(run_peer(peer, rounds.case, &scratch, plan)?);
            }
            if ours_last {
                rounds.ours.push(ours::run(rounds.case, &scratch, plan)?);
            }
        }
    }
    print_tables(plan, &all);
    Ok(())
}

fn run_peer(peer: &Peer, case: &Case, scratch: &Scratch, plan: &Plan) -> Result<Vec<Sample>> {
    let folder = scratch.of(case);
    match case.work {
        Work::Blocks(blocks) => fio::run(Some(&blocks), folder, plan),
        Work::Null => fio::run(None, folder, plan),
        Work::Names { workers } if peer.program == "mdtest" => names::mdtest(workers, folder, plan),
        Work::Names { workers } => names::elbencho(workers, folder, plan),
    }
}

/// One figure of ours beside a peer's, both by round.
struct Line {
    name: String,
    ours: Vec<f64>,
    peer: Option<(&'static str, Vec<f64>)>,
    own: Vec<f64>,
    target: Target,
}

enum Target {
    None,
    /// The ratio is at most this.
    Most(f64),
    /// The ratio is at least this.
    Least(f64),
    /// Our own figure is at most this.
    Limit(f64),
}

impl Line {
    /// Returns the median of the rounds' ratios.
    fn ratio(&self) -> Option<f64> {
        let (_, peer) = self.peer.as_ref()?;
        median(self.ours.iter().zip(peer).map(|(ours, peer)| ours / peer).collect())
    }

    fn spread(&self) -> String {
        let Some((_, peer)) = &self.peer else { return "–".to_owned() };
        let ratios = || self.ours.iter().zip(peer).map(|(ours, peer)| ours / peer);
        let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
        format!("{least:.2}–{most:.2}")
    }

    /// Returns the target in words and whether it is reached.
    fn verdict(&self) -> (String, Option<bool>) {
        let (text, reached) = match self.target {
            Target::None => return ("–".to_owned(), None),
            Target::Most(most) => (format!("≤ {most}"), self.ratio().map(|ratio| ratio <= most)),
            Target::Least(least) => {
                (format!("≥ {least}"), self.ratio().map(|ratio| ratio >= least))
            }
            Target::Limit(limit) => {
                let ours = median(self.ours.clone());
                (format!("≤ {limit} µs"), ours.map(|ours| ours <= limit))
            }
        };
        (text, reached)
    }

    fn print(&self, decimals: usize) {
        let (target, reached) = self.verdict();
        let middle = |values: &[f64]| {
            median(values.to_vec()).map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
        };
        let (peer, figure) = match &self.peer {
            Some((peer, values)) => (*peer, middle(values)),
            None => ("–", "–".to_owned()),
        };
        let reached = match reached {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        println!(
            "| {} | {} | {} | {peer} | {figure} | {} | {} | {target} | {reached} |",
            self.name,
            middle(&self.ours),
            middle(&self.own),
            or_dash(self.ratio()),
            self.spread(),
        );
    }
}

/// Returns a figure of one kind of operation in each round that has it.
fn each(rounds: &[Vec<Sample>], what: &str, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let samples = rounds.iter().flatten().filter(|sample| sample.what == what);
    samples.filter_map(figure).collect()
}

/// Returns the lines of a case: CPU per operation, and rates.
fn lines(rounds: &Rounds) -> (Vec<Line>, Vec<Line>) {
    let (mut costs, mut rates) = (Vec::new(), Vec::new());
    let kinds = rounds.ours.first().into_iter().flatten().map(|sample| sample.what);
    for what in kinds {
        let name = format!("{}: {what}", rounds.case.name);
        let ours = |figure: fn(&Sample) -> Option<f64>| each(&rounds.ours, what, figure);
        let (cost, own) = (ours(|sample| sample.us_per_op), ours(|sample| sample.own_us_per_op));
        if let Some(limit) = rounds.case.limit_us {
            let target = Target::Limit(limit);
            let (name, ours, own) = (name.clone(), cost.clone(), own.clone());
            costs.push(Line { name, ours, peer: None, own, target });
        }
        for (peer, samples) in &rounds.peers {
            let theirs = |figure: fn(&Sample) -> Option<f64>| {
                Some((peer.program, each(samples, what, figure)))
            };
            if !cost.is_empty() {
                costs.push(Line {
                    name: name.clone(),
                    ours: cost.clone(),
                    peer: theirs(|sample| sample.us_per_op),
                    own: own.clone(),
                    target: peer.cpu_max.map_or(Target::None, Target::Most),
                });
            }
            rates.push(Line {
                name: name.clone(),
                ours: ours(|sample| Some(sample.ops_per_sec)),
                peer: theirs(|sample| Some(sample.ops_per_sec)),
                own: Vec::new(),
                target: peer.rate_min.map_or(Target::None, Target::Least),
            });
        }
    }
    (costs, rates)
}

fn print_tables(plan: &Plan, all: &[Rounds]) {
    println!("{}", machine());
    println!(
        "{} interleaved rounds of {} s; medians, and the median, least and most of the ratios of the \
         rounds",
        plan.rounds,
        plan.duration.as_secs()
    );
    let (costs, rates): (Vec<_>, Vec<_>) = all.iter().map(lines).unzip();
    println!(
        "\nµs of CPU per operation: user and system time of the whole process, its start, laying"
    );
    println!("files out and the report included; \"phase\" is that of the measured phase alone\n");
    print_head("phase");
    costs.iter().flatten().for_each(|line| line.print(2));
    println!("\noperations per second\n");
    print_head("–");
    rates.iter().flatten().for_each(|line| line.print(0));
    let programs = ["fio", "mdtest", "elbencho"].into_iter();
    for missing in programs.filter(|program| process::on_path(program).is_none()) {
        println!("\n{missing} is not on the path, so its rows are missing");
    }
}

fn print_head(own: &str) {
    println!(
        "| work | plimsoll | {own} | beside | its figure | plimsoll ÷ it | least–most | target | \
         reached |"
    );
    println!("|---|---:|---:|---|---:|---:|---:|---|---|");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ours: &[f64], peer: &[f64], target: Target) -> Line {
        let peer = Some(("fio", peer.to_vec()));
        Line { name: String::new(), ours: ours.to_vec(), peer, own: Vec::new(), target }
    }

    #[test]
    fn what_is_judged_is_the_median_of_ratios() {
        // 0.5, 2 and 1: not the ratio of the medians, which is 2 to 4.
        let judged = line(&[2.0, 8.0, 1.0], &[4.0, 4.0, 1.0], Target::Most(1.0));
        assert_eq!(judged.ratio(), Some(1.0));
        assert_eq!(judged.spread(), "0.50–2.00");
        assert_eq!(judged.verdict(), ("≤ 1".to_owned(), Some(true)));
        let judged = line(&[0.96], &[1.0], Target::Least(0.97));
        assert_eq!(judged.verdict(), ("≥ 0.97".to_owned(), Some(false)));
        let judged = Line { peer: None, ..line(&[0.4, 0.6, 0.45], &[], Target::Limit(0.5)) };
        assert_eq!(judged.verdict(), ("≤ 0.5 µs".to_owned(), Some(true)));
        assert_eq!(line(&[1.0], &[], Target::Most(1.0)).verdict(), ("≤ 1".to_owned(), None));
    }

    #[test]
    fn words_are_understood() {
        let plan = Plan::parse(&["--rounds", "3", "--seconds", "4", "--only", "names"]).unwrap();
        assert_eq!((plan.rounds, plan.duration.as_secs(), &*plan.only), (3, 4, "names"));
        assert!(Plan::parse(&["--rounds", "0"]).is_none());
        assert!(Plan::parse(&["--fast"]).is_none());
    }
}
