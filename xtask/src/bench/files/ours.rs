//! Our own runs on files, and what they say of themselves.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::{cpu, plimsoll};
use super::{Blocks, Case, Plan, READ_FILE, Sample, Scratch, WRITE_FILE, Work};

/// Runs a case with everything recorded and every byte checked.
pub(super) fn run(case: &Case, scratch: &Scratch, plan: &Plan) -> Result<Vec<Sample>> {
    let folder = scratch.of(case);
    let mut command = Command::new(plan.program.clone().unwrap_or_else(plimsoll::program));
    let duration = format!("{}s", plan.duration.as_secs());
    match case.work {
        Work::Blocks(blocks) => {
            add_blocks(&mut command, &blocks);
            command.args(["--duration", &duration, "--dir"]).arg(folder);
        }
        Work::Null => {
            let job = scratch.disk.join("null.fio");
            std::fs::write(&job, null_job(plan.duration.as_secs()))?;
            command.arg("run").arg(job).arg("--dir").arg(folder);
        }
        Work::Names { workers } => {
            command
                .args(["file", "metadata", "--no-shift", "--jobs", &workers.to_string()])
                .args(["--files", &plan.files_count.to_string(), "--dir"])
                .arg(folder);
        }
    }
    let run = scratch.disk.join("run");
    let finished = cpu::run(command.args(["--json", "-q", "--run-dir"]).arg(&run))?;
    remove(&run)?;
    let said: Value =
        serde_json::from_str(&finished.stdout).context("plimsoll --json printed no JSON")?;
    let mut samples =
        read(&said).with_context(|| format!("operations failed, or fields are missing: {said}"))?;
    if let [(sample, ops_count)] = &mut samples[..] {
        sample.us_per_op = Some(finished.cpu.as_secs_f64() * 1e6 / *ops_count);
    }
    Ok(samples.into_iter().map(|(sample, _)| sample).collect())
}

fn remove(run: &Path) -> Result<()> {
    std::fs::remove_dir_all(run).with_context(|| format!("cannot remove {}", run.display()))
}

fn add_blocks(command: &mut Command, blocks: &Blocks) {
    let Blocks { interface, is_write, is_direct, block, depth } = *blocks;
    match is_write {
        true => command.args(["file", "bandwidth", "--op", "write", "--file-size", WRITE_FILE]),
        false => command
            .args(["file", "iops", "--op", "read", "--order", "uniform"])
            .args(["--file-size", READ_FILE]),
    };
    command
        .args(["--interface", interface, "--block", block, "--depth", &depth.to_string()])
        .args(["--jobs", "1", "--threads", "1"])
        .args(["--direct", if is_direct { "on" } else { "off" }]);
}

/// Returns a job file of reads of nothing.
pub(super) fn null_job(seconds: u64) -> String {
    format!(
        "[null]\nioengine=null\nrw=randread\nnorandommap=1\nbs=4k\nsize=1g\ntime_based=1\n\
         runtime={seconds}\n"
    )
}

/// Reads the report `plimsoll.report/1`: what is measured in each stage, and how many operations it
/// had.
///
/// `None` when a field is missing, and when an operation failed: a cost among failures is no cost.
fn read(said: &Value) -> Option<Vec<(Sample, f64)>> {
    let mut samples = Vec::new();
    for stage in said["stages"].as_array()?.iter().filter(|stage| stage["is_result"] == true) {
        let total = stage.pointer("/rows/0/total/stage_total")?;
        if total["ops_failed_count"].as_u64()? > 0 {
            return None;
        }
        let ops = total["ops_ok_count"].as_f64()?;
        for kind in stage.pointer("/rows/0/kinds")?.as_array()? {
            let what = match kind["kind"].as_str()? {
                "READ" => "read",
                "WRITE" => "write",
                "CREATE" => "create",
                "STAT" => "stat",
                "UNLINK" => "unlink",
                _ => continue,
            };
            let sample = Sample {
                what,
                ops_per_sec: kind.pointer("/rates/ops_per_sec")?.as_f64()?,
                us_per_op: None,
                own_us_per_op: Some(stage["client_cpu_ns"].as_f64()? / 1e3 / ops),
            };
            samples.push((sample, kind.pointer("/stage_total/ops_ok_count")?.as_f64()?));
        }
    }
    (!samples.is_empty()).then_some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_unless_something_failed() {
        let counts =
            |failed: u64| serde_json::json!({ "ops_ok_count": 40, "ops_failed_count": failed });
        let row = |kind: &str, failed: u64| {
            let (total, rates) = (counts(failed), serde_json::json!({ "ops_per_sec": 20.0 }));
            let kind = serde_json::json!({ "kind": kind, "stage_total": total, "rates": rates });
            serde_json::json!({ "total": { "stage_total": total }, "kinds": [kind] })
        };
        let stage =
            |row| serde_json::json!({ "is_result": true, "client_cpu_ns": 60_000, "rows": [row] });
        let report = |failed: u64| {
            let prepared = serde_json::json!({ "is_result": false });
            let stages = [prepared, stage(row("STAT", failed)), stage(row("OPEN", failed))];
            serde_json::json!({ "stages": stages })
        };
        let stat =
            Sample { what: "stat", ops_per_sec: 20.0, us_per_op: None, own_us_per_op: Some(1.5) };
        assert_eq!(read(&report(0)), Some(vec![(stat, 40.0)]));
        assert_eq!(read(&report(1)), None);
        assert_eq!(read(&serde_json::json!({})), None);
    }
}
