//! Runs our own client and reads what it says of itself.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::store::Store;
use super::{Sample, Work, cpu};
use crate::process;

/// How long the runs are whose instructions are counted, under Valgrind some 30 times slower.
const COUNTED_SHORT: Duration = Duration::from_secs(4);
const COUNTED_LONG: Duration = Duration::from_secs(12);

/// Returns where the release build lies.
pub(super) fn program() -> PathBuf {
    process::root().join("target/release/plimsoll")
}

/// Runs one `s3` command against the store.
pub(super) fn s3(store: &Store, work: &Work, duration: Duration) -> Result<Sample> {
    run(s3_command(store, work, duration), Some("1"), work.counted)
}

/// Returns one `s3` command against the store.
pub(super) fn s3_command(store: &Store, work: &Work, duration: Duration) -> Command {
    let mut command = Command::new(program());
    command
        .env("PLIMSOLL_ACCESS_KEY", &store.access_key)
        .env("PLIMSOLL_SECRET_KEY", &store.secret_key)
        .args(["s3", work.verb, "--host", &store.host, "--create-bucket", "--keep-bucket"])
        .args(work.arguments())
        .args(["--duration", &format!("{}s", duration.as_secs())]);
    if let Some(count) = work.objects_count {
        command.args(["--objects", &count.to_string()]);
    }
    if let Some(authority) = &store.authority {
        command.arg("--tls").arg("--tls-ca").arg(authority);
    }
    command
}

/// Runs the null driver with everything recorded.
pub(super) fn null(duration: Duration) -> Result<Sample> {
    run(null_command(duration), Some("1"), None)
}

/// Returns the command of the null driver.
pub(super) fn null_command(duration: Duration) -> Command {
    let mut command = Command::new(program());
    command.args(["null", "--duration", &format!("{}s", duration.as_secs())]);
    command
}

/// Runs a command to its report; without a number of threads on as many as it takes by itself.
pub(super) fn run(
    mut command: Command,
    threads: Option<&str>,
    counted: Option<&str>,
) -> Result<Sample> {
    let runs = runs();
    std::fs::create_dir_all(&runs)?;
    command.args(threads.iter().flat_map(|threads| ["--threads", threads]));
    command.args(["--json", "--run-dir"]).arg(runs.join("run"));
    let finished = cpu::run(&mut command);
    std::fs::remove_dir_all(&runs)?;
    let finished = finished?;
    let said: Value =
        serde_json::from_str(&finished.stdout).context("plimsoll --json printed no JSON")?;
    let stage = measured(&said, counted)
        .with_context(|| format!("operations failed, or fields are missing: {said}"))?;
    Ok(Sample {
        ops_per_sec: stage.ops_count / stage.seconds,
        us_per_op: stage.client_cpu_seconds * 1e6 / stage.ops_count,
        whole_us_per_op: Some(finished.cpu.as_secs_f64() * 1e6 / stage.ops_count),
        user_us_per_op: Some(finished.user.as_secs_f64() * 1e6 / stage.ops_count),
    })
}

/// Returns a folder of this process's own for what one run leaves.
fn runs() -> PathBuf {
    process::root().join(format!("target/tmp/bench-runs-{}", std::process::id()))
}

/// Returns how many instructions outside of the kernel an operation takes, by Valgrind: the
/// difference between a long run and a short one, so that the start and what is prepared are in
/// neither. What analyses the record and writes the report is in it.
pub(super) fn instructions_per_op(command: &dyn Fn(Duration) -> Command) -> Result<f64> {
    let (ops_few, few) = instructions(command(COUNTED_SHORT))?;
    let (ops_many, many) = instructions(command(COUNTED_LONG))?;
    Ok((many - few) / (ops_many - ops_few))
}

/// Returns how many operations a command measured and how many instructions the process took.
fn instructions(command: Command) -> Result<(f64, f64)> {
    let runs = runs();
    std::fs::create_dir_all(&runs)?;
    let log = runs.join("valgrind");
    let mut counted = Command::new("valgrind");
    counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    counted.arg(format!("--log-file={}", log.display()));
    counted.arg(command.get_program()).args(command.get_args());
    counted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    counted.args(["--threads", "1", "--json", "--run-dir"]).arg(runs.join("run"));
    let finished = cpu::run(&mut counted);
    let told = std::fs::read_to_string(&log);
    std::fs::remove_dir_all(&runs)?;
    let (finished, told) = (finished?, told.context("valgrind left no log")?);
    let said: Value =
        serde_json::from_str(&finished.stdout).context("plimsoll --json printed no JSON")?;
    let ops = measured(&said, None).context("operations failed, or fields are missing")?.ops_count;
    let count = collected(&told).with_context(|| format!("valgrind counted nothing: {told}"))?;
    Ok((ops, count))
}

/// Reads how many instructions Callgrind counted.
fn collected(told: &str) -> Option<f64> {
    told.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

/// What the process says of its measured stage.
#[derive(Debug, PartialEq)]
struct Measured {
    ops_count: f64,
    seconds: f64,
    /// User and system time of the threads that work and record, from the stage's start to its end.
    client_cpu_seconds: f64,
}

/// Reads the report `plimsoll.report/1` of a run that measures one job.
///
/// `None` when a field is missing, and when an operation failed: a cost among failures is no cost.
fn measured(said: &Value, counted: Option<&str>) -> Option<Measured> {
    let (stage, row) = (measured_stage(said)?, measured_row(said)?);
    let total = row.pointer("/total/stage_total")?;
    if total.get("ops_failed_count")?.as_u64()? > 0 {
        return None;
    }
    let total = match counted {
        None => total,
        Some(kind) => {
            let mut kinds = row.get("kinds")?.as_array()?.iter();
            kinds.find(|each| each["kind"] == kind)?.get("stage_total")?
        }
    };
    Some(Measured {
        ops_count: total.get("ops_ok_count")?.as_f64()?,
        seconds: stage.get("duration_ns")?.as_f64()? / 1e9,
        client_cpu_seconds: stage.get("client_cpu_ns")?.as_f64()? / 1e9,
    })
}

/// Returns the last stage that is a result: those before it fill what it works on.
fn measured_stage(said: &Value) -> Option<&Value> {
    said.get("stages")?.as_array()?.iter().rfind(|stage| stage["is_result"] == true)
}

/// Returns the figures of the job that a report says was measured.
pub(super) fn measured_row(said: &Value) -> Option<&Value> {
    measured_stage(said)?.pointer("/rows/0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_unless_something_failed() {
        let report = |failed_count: u64| {
            let total = serde_json::json!({
                "stage_total": { "ops_ok_count": 400, "ops_failed_count": failed_count },
            });
            let kinds = serde_json::json!([
                { "kind": "GET", "stage_total": { "ops_ok_count": 300 } },
                { "kind": "STAT", "stage_total": { "ops_ok_count": 100 } },
            ]);
            serde_json::json!({ "stages": [
                { "is_result": true, "duration_ns": 1, "client_cpu_ns": 1, "rows": [{}] },
                {
                    "is_result": true,
                    "duration_ns": 2_500_000_000_u64,
                    "client_cpu_ns": 500_000_000,
                    "rows": [{ "total": total, "kinds": kinds }],
                },
            ] })
        };
        let good = Measured { ops_count: 400.0, seconds: 2.5, client_cpu_seconds: 0.5 };
        assert_eq!(measured(&report(0), None), Some(good));
        assert_eq!(measured(&report(0), Some("STAT")).map(|of| of.ops_count), Some(100.0));
        assert_eq!(measured(&report(0), Some("PUT")), None);
        assert_eq!(measured(&report(1), None), None);
        assert_eq!(measured(&serde_json::json!({}), None), None);
    }

    #[test]
    fn instructions_are_read_from_the_log_of_callgrind() {
        let log = "==7== Events    : Ir\n==7== Collected : 57392494\n==7== \n";
        assert_eq!(collected(log), Some(57_392_494.0));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
