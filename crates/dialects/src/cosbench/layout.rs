//! COSBench's archive of a workload, file by file, and the rows of its tables over all workloads:
//! names, columns and numbers as it writes them.
//!
//! What stands under its names, and where that differs from what COSBench puts there:
//!
//! * Op-Count, Byte-Count: operations that succeeded and their bytes, without rampup and rampdown.
//!   COSBench leaves out those that end after the runtime; here they count.
//! * Avg-ResTime: mean from start to end of the successes that lie in the measured span, in ms. It
//!   is not cut to whole milliseconds before.
//! * Avg-ProcTime: of reads from start to the first byte of the answer, of writes from the last
//!   byte sent to the first of the answer, where these are known; otherwise Avg-ResTime.
//! * Throughput, Bandwidth: successes and their bytes over one common window of all workers.
//!   COSBench adds up a rate of each worker over a window of its own, which is too much where
//!   workers end apart.
//! * 60%- to 100%-ResTime: the upper edge of the 10 ms in which the operation of that rank lies,
//!   with the rank rounded up. COSBench rounds it down, which is wrong with few operations.
//! * Succ-Ratio: successes among all operations that ended.
//! * Time lines: each operation counts in the one row in which it ended, so that rows add up; bytes
//!   and rates go by the share of its time. Avg-ProcTime is not known there.
//! * Config-Info, `workload-config.xml`: secrets are replaced by `***`.
//! * `<driver>.csv` has its fields in order, where COSBench groups them wrongly.
//!
//! Several operations of one type in a work have one row, named after all of them: a record does
//! not tell them apart. Commas in names become `-`: the tables have no quoting.

mod config_xml;
mod files;
mod from_results;
mod histogram;
mod logs;
mod number;
mod tables;
mod text;

use std::collections::BTreeMap;

use plimsoll_report::format;

pub use config_xml::config_xml;
pub use files::{ArchiveFile, files};
pub use from_results::{Ran, Results, WorkloadState, from_results};
pub use histogram::{LAST_BUCKET, histogram_csv};
pub use logs::{LogLine, log_line, scripts_log, workload_log};
pub use tables::{
    HISTORY_HEADER, SUMMARY_HEADER, WORKER_HEADER, WORKLOADS_HEADER, driver_csv, history_row, meta,
    stage_csv, summary_csv, worker_csv, workloads_rows,
};
pub use text::summary_table;

/// A workload that was run, as COSBench archives it. Times are local, `yyyy-MM-dd HH:mm:ss`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    /// Its id: `w3`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was handed in.
    pub submitted: String,
    /// When its first stage began; `None` where none did.
    pub started: Option<String>,
    /// When it was over.
    pub stopped: Option<String>,
    /// The types of its operations, each once.
    pub op_info: Vec<String>,
    /// `queuing`, `processing`, and at last `finished`, `failed`, `terminated` or `cancelled`.
    pub states: Vec<StateAt>,
    /// Its stages.
    pub stages: Vec<ArchivedStage>,
}

/// A state and when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateAt {
    /// The state.
    pub state: String,
    /// When.
    pub at: String,
}

/// A stage that was run, or that never was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivedStage {
    /// Its id: `s3-main`.
    pub id: String,
    /// Its name: `main`.
    pub name: String,
    /// `waiting`, `booting`, `submitting`, `authing`, `launching`, `running`, `closing`,
    /// `sleeping`, and at last `completed`, `failed`, `terminated`, `cancelled` or `aborted`.
    pub states: Vec<StateAt>,
    /// What came of each operation; none where the stage never ran.
    pub metrics: Vec<Metric>,
    /// The rows of its time line.
    pub snapshots: Vec<Snapshot>,
    /// What each worker did of each operation.
    pub workers: Vec<WorkerMetric>,
    /// What each driver did of each operation, by the driver's name.
    pub drivers: Vec<(String, Metric)>,
}

/// What came of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    /// The number of its work in the stage, 1-based.
    pub work: usize,
    /// The name of its work.
    pub work_name: String,
    /// Its type: `read`, `prepare`.
    pub op_type: String,
    /// What its samples are of: `read`, `write`.
    pub sample_type: String,
    /// Its name: `read`, `1-read`.
    pub op_name: String,
    /// Its ratio, in percent.
    pub ratio: u32,
    /// Its config, without secrets.
    pub config: String,
    /// Its counts, times and rates.
    pub figures: Figures,
    /// How many workers did it.
    pub workers: u32,
    /// How many of the successes took so long, by number of the bucket; `None` where that is not
    /// known.
    pub latencies: Option<BTreeMap<u32, u64>>,
}

/// Counts, times and rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Successes.
    pub ops: u64,
    /// Successes and failures.
    pub samples: u64,
    /// Bytes of successes.
    pub bytes: u64,
    /// Mean response time in ms.
    pub response_ms: Option<f64>,
    /// The same without the time of the transfer.
    pub processing_ms: Option<f64>,
    /// Successes a second.
    pub throughput: f64,
    /// Bytes a second.
    pub bandwidth: f64,
}

/// A row of a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When, `HH:mm:ss`.
    pub time: String,
    /// Of each operation of the stage, in their order.
    pub figures: Vec<Figures>,
    /// Its number, 0-based.
    pub version: u64,
}

/// What a worker did of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerMetric {
    /// The type of the operation.
    pub op_type: String,
    /// What its samples are of.
    pub sample_type: String,
    /// What came of it.
    pub figures: Figures,
}

impl Metric {
    /// Returns how tables show the operation: `read`, `prepare-write`.
    pub fn shown(&self) -> String {
        match self.op_name == self.sample_type {
            true => self.op_name.clone(),
            false => format!("{}-{}", self.op_name, self.sample_type),
        }
    }

    /// Tells whether it is of normal work.
    fn is_normal(&self) -> bool {
        !["init", "prepare", "mprepare", "cleanup", "dispose"].contains(&&*self.op_type)
    }
}

impl Archive {
    /// Returns the name of its directory: `w3-s3-sample`.
    pub fn directory(&self) -> String {
        format!("{}-{}", self.id, file_name(&self.name))
    }

    /// Returns the state that it is in.
    pub fn state(&self) -> &str {
        self.states.last().map_or("", |state| &state.state)
    }
}

impl ArchivedStage {
    /// Returns the state that it is in.
    pub fn state(&self) -> &str {
        self.states.last().map_or("waiting", |state| &state.state)
    }
}

/// Returns what the table of a stage is called, by the id of the stage.
pub fn stage_file(id: &str) -> String {
    format!("{}.csv", file_name(id))
}

/// Returns a part of a file's name: one that leads to no other directory.
fn file_name(name: &str) -> String {
    let letter = |letter: char| match letter {
        '/' | '\\' | '\0' => '-',
        letter if letter.is_control() => '-',
        letter => letter,
    };
    name.chars().map(letter).collect()
}

/// Returns a text that is one column of one line.
fn column(text: &str) -> String {
    let letter = |letter: char| if letter == ',' || letter.is_control() { '-' } else { letter };
    let text: String = text.chars().map(letter).collect();
    format::inert_cell(&text).into_owned()
}

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
