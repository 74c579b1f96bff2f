//! `bench weed`: client CPU per file that is written and read, beside `weed benchmark` on the same
//! SeaweedFS.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Plan, Sample, Samples, add, cpu, plimsoll, print_table};
use crate::process;
use crate::servers::Servers;
use crate::tools;

/// What both are told: as many workers, files as large.
const WORKERS: &str = "16";
const SIZES: &str = "1024,1087";
/// Files that plimsoll reads from.
const FILES: &str = "20000";
/// How many files `weed benchmark` writes and reads for each second that the plan says.
const FILES_PER_SEC: u64 = 10_000;

/// Measures both in turn, round by round, and prints the medians.
pub(crate) fn weed(plan: &Plan) -> Result<()> {
    process::check(&mut process::cargo(&["build", "--release", "-p", "plimsoll"]), "the build")?;
    let program = tools::install_weed()?;
    let mut rows = Samples::new();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        let servers = Servers::weed(&program)?;
        let variables = servers.variables();
        let master = variables.iter().find(|(name, _)| *name == "PLIMSOLL_TEST_WEED_MASTER");
        let master = &master.context("the server has a master")?.1;
        for (index, verb) in ["write", "read"].into_iter().enumerate() {
            let work = format!("{verb} 1 KiB");
            for (place, contender, threads) in
                [(0, "plimsoll, 1 thread", Some("1")), (1, "plimsoll", None)]
            {
                let mut command = Command::new(plimsoll::program());
                command.args(["weed", verb, "--master", master, "--concurrent", WORKERS]);
                command.args(["--obj.size", SIZES, "--create-bucket"]);
                command.args(["--duration", &format!("{}s", plan.duration.as_secs())]);
                if verb == "read" {
                    command.args(["--objects", FILES]);
                }
                let run = plimsoll::run(command, threads, None)?;
                add(&mut rows, (index, place), work.clone(), contender, None, run);
            }
            let run = peer(&program, master, verb, plan.duration.as_secs() * FILES_PER_SEC)?;
            add(&mut rows, (index, 2), work, "weed benchmark", None, run);
        }
    }
    print_table(plan, &rows);
    Ok(())
}

/// Runs `weed benchmark` to write or to read; its reading takes the list of its writing.
fn peer(program: &Path, master: &str, verb: &str, files: u64) -> Result<Sample> {
    let list = process::root().join(format!("target/tmp/bench-weed-{}", std::process::id()));
    let mut command = Command::new(program);
    command.args([&format!("-logdir={}", std::env::temp_dir().display()), "benchmark"]);
    command.args([&format!("-master={master}"), &format!("-n={files}"), &format!("-c={WORKERS}")]);
    command.args(["-size=1024", &format!("-{verb}Only"), &format!("-list={}", list.display())]);
    let finished = cpu::run(&mut command)?;
    if verb == "read" {
        std::fs::remove_file(&list).context("cannot remove the list of files")?;
    }
    let figure = |name: &str| {
        let line = finished.stdout.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let done = figure("Completed requests:").context("weed benchmark names no requests")?;
    let rate = figure("Requests per second:").context("weed benchmark names no rate")?;
    Ok(Sample {
        ops_per_sec: rate,
        us_per_op: finished.cpu.as_secs_f64() * 1e6 / done,
        whole_us_per_op: Some(finished.cpu.as_secs_f64() * 1e6 / done),
        user_us_per_op: Some(finished.user.as_secs_f64() * 1e6 / done),
    })
}
