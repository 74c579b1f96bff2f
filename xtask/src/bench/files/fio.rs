//! fio on the same blocks.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::cpu;
use super::{Blocks, Plan, READ_FILE, Sample, WRITE_FILE};

/// Runs blocks on a file that fio lays out and removes, or without blocks its null engine.
pub(super) fn run(blocks: Option<&Blocks>, folder: &Path, plan: &Plan) -> Result<Vec<Sample>> {
    let finished = cpu::run(&mut command(blocks, folder, plan.duration.as_secs()))?;
    let (sample, ops_count) = read(&finished.stdout)
        .with_context(|| format!("fio's report is not understood: {}", finished.stdout))?;
    let us_per_op = Some(finished.cpu.as_secs_f64() * 1e6 / ops_count);
    Ok(vec![Sample { us_per_op, ..sample }])
}

/// Returns a size as fio reads it as powers of two: it takes `4KiB` for 4,000 bytes.
fn size(text: &str) -> &str {
    text.trim_end_matches("iB")
}

fn command(blocks: Option<&Blocks>, folder: &Path, seconds: u64) -> Command {
    let mut command = Command::new("fio");
    command.current_dir(folder).args(["--output-format=json", "--name=bench", "--thread"]);
    command.args(["--time_based", &format!("--runtime={seconds}")]);
    let Some(Blocks { interface, is_write, is_direct, block, depth }) = blocks else {
        command.args(["--ioengine=null", "--rw=randread", "--norandommap", "--bs=4k"]);
        command.arg("--size=1g");
        return command;
    };
    command.args([&format!("--ioengine={interface}"), &format!("--iodepth={depth}")]);
    command.args([&format!("--bs={}", size(block)), &format!("--direct={}", u8::from(*is_direct))]);
    command.args(["--filename=fio.bench", "--unlink=1"]);
    match is_write {
        true => command.args([
            "--rw=write",
            "--refill_buffers=1",
            &format!("--size={}", size(WRITE_FILE)),
        ]),
        false => {
            command.args(["--rw=randread", "--norandommap", &format!("--size={}", size(READ_FILE))])
        }
    };
    if *interface == "io_uring" {
        command.args(["--registerfiles=1", "--fixedbufs=1"]);
    }
    command
}

/// Reads fio's JSON, before which it may print notes: figures, and how many operations there were.
fn read(report: &str) -> Option<(Sample, f64)> {
    let said: Value = serde_json::from_str(&report[report.find('{')?..]).ok()?;
    let job = &said["jobs"][0];
    if job["error"].as_i64()? != 0 {
        return None;
    }
    let (what, direction) = ["read", "write"]
        .map(|what| (what, &job[what]))
        .into_iter()
        .find(|(_, direction)| direction["total_ios"].as_u64().is_some_and(|ios| ios > 0))?;
    let ops_per_sec = direction["iops"].as_f64()?;
    let sample = Sample { what, ops_per_sec, us_per_op: None, own_us_per_op: None };
    Some((sample, direction["total_ios"].as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!([size("4KiB"), size("128MiB")], ["4K", "128M"]);
    }

    #[test]
    fn a_report_of_fio_is_read() {
        let report = "fio: a note\n{\"jobs\": [{\"error\": 0, \"read\": {\"total_ios\": 0}, \
                      \"write\": {\"total_ios\": 30, \"iops\": 15.5}}]}";
        let (sample, ops_count) = read(report).unwrap();
        assert_eq!((sample.what, sample.ops_per_sec, ops_count), ("write", 15.5, 30.0));
        assert_eq!(read(&report.replace("\"error\": 0", "\"error\": 5")), None);
        assert_eq!(read("fio: no"), None);
    }
}
