//! mdtest and elbencho on the same names.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::super::cpu;
use super::{Plan, Sample};
use crate::process;

/// Runs mdtest with a directory for each rank; with several ranks under `mpirun`.
pub(super) fn mdtest(workers: u32, folder: &Path, plan: &Plan) -> Result<Vec<Sample>> {
    let mut command = match workers {
        1 => Command::new("mdtest"),
        _ if process::on_path("mpirun").is_none() => bail!("mdtest needs mpirun on the path"),
        _ => {
            let mut command = Command::new("mpirun");
            command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
            command.args(["-np", &workers.to_string(), "mdtest"]);
            command
        }
    };
    command.args(["-F", "-u", "-C", "-T", "-r", "-n", &plan.files_count.to_string(), "-d"]);
    let report = cpu::run(command.arg(folder.join("mdtest")))?.stdout;
    let rows = [("File creation", "create"), ("File stat", "stat"), ("File removal", "unlink")];
    let read = |(row, what)| Some(sample(what, read_mdtest(&report, row)?));
    let samples: Option<Vec<Sample>> = rows.into_iter().map(read).collect();
    samples.with_context(|| format!("mdtest's report is not understood: {report}"))
}

/// Reads the maximum of `   File stat    450885.042   450885.042   450885.042   0.000`.
fn read_mdtest(report: &str, row: &str) -> Option<f64> {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(row))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Runs elbencho with a directory for each thread.
pub(super) fn elbencho(workers: u32, folder: &Path, plan: &Plan) -> Result<Vec<Sample>> {
    const NAME: &str = "elbencho";
    std::fs::create_dir_all(folder.join(NAME))?;
    let mut command = Command::new("elbencho");
    // It refuses whole paths below /dev, where the tmpfs lies.
    command
        .current_dir(folder)
        .args(["-d", "-w", "--stat", "-F", "-D", "-s", "0", "-n", "1", "--nolive"])
        .args(["-t", &workers.to_string(), "-N", &plan.files_count.to_string(), NAME]);
    let report = cpu::run(&mut command)?.stdout;
    let rows = [("WRITE", "create"), ("STAT", "stat"), ("RMFILES", "unlink")];
    let read = |(row, what)| Some(sample(what, read_elbencho(&report, row)?));
    let samples: Option<Vec<Sample>> = rows.into_iter().map(read).collect();
    samples.with_context(|| format!("elbencho's report is not understood: {report}"))
}

/// Reads the last column, of when the last worker was done, of the line `Files/s : first last` that
/// belongs to a stage. The stage's name stands before its first line only.
fn read_elbencho(report: &str, stage: &str) -> Option<f64> {
    let own = report.lines().skip_while(|line| line.split_whitespace().next() != Some(stage));
    let line = own.into_iter().find(|line| line.contains("Files/s"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

fn sample(what: &'static str, ops_per_sec: f64) -> Sample {
    Sample { what, ops_per_sec, us_per_op: None, own_us_per_op: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_peers_are_read() {
        let mdtest = "   Operation   Max   Min   Mean   Std Dev\n   ---------   ---   ---\n   \
                      File creation   178524.171   178524.171   178524.171   0.000\n   \
                      File stat       450885.042   450885.042   450885.042   0.000\n";
        assert_eq!(read_mdtest(mdtest, "File stat"), Some(450_885.042));
        assert_eq!(read_mdtest(mdtest, "File removal"), None);
        let elbencho = "WRITE       Elapsed time     :       171ms       181ms\n            \
                        Files/s          :      116419      110500\n---\n\
                        STAT        Elapsed time     :        64ms        64ms\n            \
                        Files/s          :      308118      308000\n---\n";
        assert_eq!(read_elbencho(elbencho, "WRITE"), Some(110_500.0));
        assert_eq!(read_elbencho(elbencho, "STAT"), Some(308_000.0));
        assert_eq!(read_elbencho(elbencho, "RMFILES"), None);
    }
}
