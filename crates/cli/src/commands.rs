//! One file per command.

#[cfg(feature = "fleet")]
pub(crate) mod agent;
pub(crate) mod analyze;
pub(crate) mod check;
pub(crate) mod clean;
mod clean_bucket;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(feature = "console")]
pub(crate) mod console;
pub(crate) mod cosbench;
pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod fio;
pub(crate) mod fit;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod load_line;
pub(crate) mod man;
pub(crate) mod mdtest;
pub(crate) mod merge;
pub(crate) mod null;
pub(crate) mod oracle;
pub(crate) mod prove;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod s3;
pub(crate) mod s3_benchmark;
pub(crate) mod warp;
pub(crate) mod warp_shown;
pub(crate) mod weed;
pub(crate) mod weed_benchmark;

use std::process::ExitCode;

use anyhow::Result;

use crate::ui::Ui;

/// Prints another tool's own help, and where that of our flags is.
fn help_of(help: &str, name: &str, ui: &Ui) -> Result<ExitCode> {
    let ours = format!("plimsoll's own flags stand before these: plimsoll as {name} --help");
    ui.result(&format!("{help}\n{ours}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What has the workload printed that another tool's words mean, wherever it stands among them.
const EXPLAIN: &str = "--explain";

/// Has plimsoll's own JSON report printed where `--json` asks for another tool's, likewise.
const REPORT_JSON: &str = "--report-json";

/// Has a run fail whose client was the limit, likewise.
const FAIL_ON_CLIENT_LIMIT: &str = "--fail-on-client-limit";

/// Returns whether our own flag stands among another tool's words, and the words without it.
fn take_explain(words: &[String]) -> (bool, Vec<String>) {
    take(words, EXPLAIN)
}

fn take(words: &[String], flag: &str) -> (bool, Vec<String>) {
    let others: Vec<String> = words.iter().filter(|word| *word != flag).cloned().collect();
    (others.len() < words.len(), others)
}
