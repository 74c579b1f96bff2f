//! `bench cosbench`: what COSBench's workloads cost here, and what lies between their stages,
//! beside what was measured of COSBench itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::plimsoll::program;
use super::store::Store;
use super::{Plan, Sample, Samples, add, cpu, machine, plimsoll, print_table};
use crate::process;

/// What COSBench 0.4.2 took for an operation on storage `none` and for a GET of 4 KB, in µs of CPU.
const NONE_US: f64 = 7.5;
const GET_US: f64 = 160.0;
/// What is asked for: the null target's own limit, and a tenth of COSBench.
const NONE_LIMIT_US: f64 = 0.5;
const GET_LIMIT_US: f64 = GET_US / 10.0;
/// How much of a run may lie between two stages, in ms, and how many stages are tried.
const BETWEEN_LIMIT_MS: f64 = 100.0;
const STAGES: usize = 10;

/// Measures everything in turn, round by round, and prints the medians.
pub(crate) fn cosbench(plan: &Plan) -> Result<()> {
    process::check(&mut process::cargo(&["build", "--release", "-p", "plimsoll"]), "the build")?;
    let files = Files::new()?;
    let (mut rows, mut between) = (Samples::new(), Vec::new());
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        let seconds = plan.duration.as_secs();
        let none = files.write("none.xml", &none(seconds))?;
        let run = as_cosbench(&none, None)?;
        add(&mut rows, (0, 0), "none, 80/20".to_owned(), "plimsoll", Some(NONE_LIMIT_US), run);
        add(&mut rows, (0, 1), "none, 80/20".to_owned(), "COSBench, noted", None, noted(NONE_US));
        let store = Store::oracle(&[])?;
        let get = files.write("get.xml", &get(&store, seconds))?;
        let run = as_cosbench(&get, Some("read-here"))?;
        add(&mut rows, (1, 0), "GET 4 KB".to_owned(), "plimsoll", Some(GET_LIMIT_US), run);
        add(&mut rows, (1, 1), "GET 4 KB".to_owned(), "COSBench, noted", None, noted(GET_US));
        between.push(between_stages(&files)?);
    }
    print_table(plan, &rows);
    between.sort_by(f64::total_cmp);
    let most = between.last().copied().unwrap_or_default();
    println!(
        "\nbetween two of {STAGES} stages: {:.1} ms (median of the longest of each round, {most:.1} \
         at most); limit {BETWEEN_LIMIT_MS} ms, COSBench at least 8000\n{}",
        between[between.len() / 2],
        machine()
    );
    Ok(())
}

/// Returns what was noted of COSBench, which is not run here.
fn noted(us_per_op: f64) -> Sample {
    Sample { ops_per_sec: 1e6 / us_per_op, us_per_op, whole_us_per_op: None, user_us_per_op: None }
}

/// The workloads, in a folder that goes with them.
struct Files(PathBuf);

impl Files {
    fn new() -> Result<Self> {
        let name = format!("target/tmp/bench-cosbench-{}", std::process::id());
        let folder = process::root().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("warning: {} could not be removed: {error}", self.0.display());
        }
    }
}

fn workload(storage: &str, stages: &str) -> String {
    format!(
        "<workload name=\"bench\"><storage {storage}/><workflow>{stages}</workflow></workload>\n"
    )
}

fn none(seconds: u64) -> String {
    let main = format!(
        "<workstage name=\"main\"><work name=\"main\" workers=\"8\" runtime=\"{seconds}\">\
         <operation type=\"read\" ratio=\"80\" config=\"containers=u(1,32);objects=u(1,50)\"/>\
         <operation type=\"write\" ratio=\"20\" \
         config=\"containers=u(1,32);objects=u(51,100);sizes=c(64)KB\"/></work></workstage>"
    );
    workload("type=\"none\"", &main)
}

fn get(store: &Store, seconds: u64) -> String {
    let Store { host, access_key, secret_key, .. } = store;
    let storage = format!(
        "type=\"s3\" config=\"accesskey={access_key};secretkey={secret_key};\
         endpoint=http://{host};path_style_access=true\""
    );
    let data = "cprefix=read-here;containers=r(1,1);objects=r(1,2000);sizes=c(4)KB";
    let stages = format!(
        "<workstage name=\"init\"><work type=\"init\" workers=\"1\" \
         config=\"cprefix=read-here;containers=r(1,1)\"/></workstage>\
         <workstage name=\"prepare\"><work type=\"prepare\" workers=\"8\" config=\"{data}\"/>\
         </workstage><workstage name=\"main\"><work name=\"main\" workers=\"32\" \
         runtime=\"{seconds}\"><operation type=\"read\" ratio=\"100\" \
         config=\"cprefix=read-here;containers=c(1);objects=u(1,2000)\"/></work></workstage>"
    );
    workload(&storage, &stages)
}

/// Runs a workload to our own report.
fn as_cosbench(file: &Path, touch: Option<&str>) -> Result<Sample> {
    let mut command = Command::new(program());
    command.args(["as", "cosbench"]);
    if let Some(name) = touch {
        command.args(["--touch", &format!("{name}*")]);
    }
    command.arg(file);
    plimsoll::run(command, Some("1"), None)
}

/// Returns the longest time between two stages that each do one operation, in ms.
fn between_stages(files: &Files) -> Result<f64> {
    let stage = |number| {
        format!(
            "<workstage name=\"s{number}\"><work name=\"w\" workers=\"1\" totalOps=\"1\">\
             <operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work></workstage>"
        )
    };
    let stages: String = (0..STAGES).map(stage).collect();
    let file = files.write("stages.xml", &workload("type=\"none\"", &stages))?;
    let run = files.0.join("run");
    let mut command = Command::new(program());
    command.args(["as", "cosbench", "--json", "--run-dir"]).arg(&run).arg(&file);
    cpu::run(&mut command)?;
    let manifest = std::fs::read_to_string(run.join("run.json"))?;
    std::fs::remove_dir_all(&run)?;
    longest_gap_ms(&serde_json::from_str(&manifest)?).context("the record names no stages")
}

/// Returns the longest time from the end of a stage to the beginning of the next.
fn longest_gap_ms(manifest: &Value) -> Option<f64> {
    let stages = manifest.get("stages")?.as_array()?;
    let gap = |pair: &[Value]| {
        let (end, start) =
            (pair[0].get("ended_ns")?.as_f64()?, pair[1].get("started_ns")?.as_f64()?);
        Some((start - end) / 1e6)
    };
    stages.windows(2).map(gap).try_fold(0.0, |most: f64, gap| Some(most.max(gap?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_is_that_from_an_end_to_the_next_start() {
        let stage =
            |start: u64, end: u64| serde_json::json!({ "started_ns": start, "ended_ns": end });
        let stages =
            [stage(0, 1_000_000), stage(3_000_000, 4_000_000), stage(4_500_000, 5_000_000)];
        let manifest = serde_json::json!({ "stages": stages });
        assert_eq!(longest_gap_ms(&manifest), Some(2.0));
        assert_eq!(longest_gap_ms(&serde_json::json!({})), None);
    }
}
