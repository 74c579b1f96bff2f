//! What reading a run again costs: op logs of growing length made by the null driver.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{cpu, median, plimsoll};
use crate::process;

/// How long the logs are, about.
const OPS: [f64; 3] = [1e6, 1e7, 1e8];
const ROUNDS: usize = 3;

/// Makes a log of each length and prints CPU time and memory of `plimsoll analyze` on it.
pub(crate) fn analyse() -> Result<()> {
    process::check(&mut process::cargo(&["build", "--release", "-p", "plimsoll"]), "building")?;
    let runs = process::root().join(format!("target/tmp/bench-analyse-{}", std::process::id()));
    std::fs::create_dir_all(&runs)?;
    let outcome = measure(&runs);
    std::fs::remove_dir_all(&runs)?;
    outcome
}

fn measure(runs: &Path) -> Result<()> {
    let ops_per_second = log(&runs.join("warm"), 1.0)?;
    println!("operations     log       CPU     per operation   peak RSS");
    for wanted in OPS {
        let run = runs.join(format!("{wanted}"));
        let ops = log(&run, (wanted / ops_per_second).max(0.1) * 1.1)?;
        let (mut seconds, mut rss_kib) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            let finished = cpu::run(Command::new(plimsoll::program()).arg("analyze").arg(&run))?;
            seconds.push(finished.cpu.as_secs_f64());
            rss_kib = rss_kib.max(finished.rss_kib);
        }
        let seconds = median(seconds).context("there were rounds")?;
        println!(
            "{ops:>10} {:>6.1} MiB {seconds:>7.2} s {:>12.1} ns {:>8.1} MiB",
            bytes(&run.join("ops"))? as f64 / 1_048_576.0,
            seconds * 1e9 / ops,
            rss_kib as f64 / 1_024.0
        );
        std::fs::remove_dir_all(&run)?;
    }
    Ok(())
}

/// Makes a run, and returns how many operations it has.
fn log(run: &Path, seconds: f64) -> Result<f64> {
    let mut command = Command::new(plimsoll::program());
    let duration = format!("{}ms", (seconds * 1e3).ceil());
    command.args(["null", "--threads", "1", "--json", "-q", "--duration", &duration]);
    let finished = cpu::run(command.arg("--run-dir").arg(run))?;
    let said: Value = serde_json::from_str(&finished.stdout).context("--json printed no JSON")?;
    let ops = plimsoll::measured_row(&said)
        .and_then(|row| row.pointer("/total/stage_total/ops_ok_count")?.as_f64());
    ops.context("the report names no operations")
}

fn bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for part in std::fs::read_dir(folder)? {
        bytes += part?.metadata()?.len();
    }
    Ok(bytes)
}
