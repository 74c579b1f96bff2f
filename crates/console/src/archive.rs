//! COSBench's archive of a workload: there while it runs, and complete when it has ended.
//!
//! What goes wrong here is noted; it never ends a run, whose record lies elsewhere.

mod tables;

pub use tables::ArchiveRoot;
pub(crate) use tables::last_number;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_dialects::cosbench::layout::stage_file;
use plimsoll_model::per_sec;

use rustix::io::Errno;

use crate::clock::{IN_FILES, local};
use crate::disk;
use crate::live::Beside;
use crate::names::safe;
use crate::state::{Number, SourceKind};
use crate::store::{Entry, Remark, StateChange};
use crate::ticks::{Counted, Tick};

/// The file with one line for each workload.
const HISTORY: &str = "run-history.csv";
const HISTORY_HEAD: &str =
    "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State\n";
/// The file with the figures of all workloads.
const ALL: &str = "workloads.csv";
/// The file with the number of the last workload.
const META: &str = ".meta";
/// Longer than any number.
const NUMBER_BYTES_MAX: u64 = 64;
/// The columns of the seconds of a stage.
const COLUMNS: [&str; 7] = [
    "Op-Count",
    "Byte-Count",
    "Avg-ResTime",
    "Avg-ProcTime",
    "Throughput",
    "Bandwidth",
    "Succ-Ratio",
];

/// The archive of a workload that runs.
pub(crate) struct Archive {
    root: PathBuf,
    directory: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    log: File,
    stages: BTreeMap<usize, StageFile>,
    /// The first thing that went wrong.
    failed: Option<String>,
}

/// The seconds of one stage.
struct StageFile {
    file: File,
    kinds: Vec<String>,
    rows: u64,
}

impl Archive {
    /// Returns where the archive of a workload lies.
    pub(crate) fn place(root: &Path, number: Number, name: &str) -> PathBuf {
        root.join(format!("{number}-{}", safe(name)))
    }

    /// Begins the archive of a workload with its text, from which secrets were taken. `is_begun`
    /// tells whether an earlier process has.
    pub(crate) fn begin(
        root: &Path,
        (number, name, is_begun): (Number, &str, bool),
        (kind, text): (SourceKind, &str),
    ) -> io::Result<Self> {
        let directory = Self::place(root, number, name);
        if !is_begun || disk::check_directory(&directory).is_err() {
            disk::make_new(&directory)?;
        }
        disk::write(&directory.join(kind.file_name()), text.as_bytes())?;
        let log = disk::appended(&directory.join("workload.log"))?;
        let open = Mutex::new(Open { log, stages: BTreeMap::new(), failed: None });
        Ok(Self { root: root.to_path_buf(), directory, open })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn with(&self, work: impl FnOnce(&mut Open) -> io::Result<()>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = work(&mut open) {
            open.failed.get_or_insert_with(|| error.to_string());
        }
    }

    /// Returns the first thing that went wrong.
    pub(crate) fn failed(&self) -> Option<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).failed.clone()
    }

    /// Writes the tables that COSBench writes of what it has run, out of the record.
    pub(crate) fn tables(&self, entry: &Entry, text: &str) -> Result<(), String> {
        tables::write(&self.root, &self.directory, entry, text)
    }

    /// Adds the workload to the history of the archive.
    pub(crate) fn end(&self, entry: &Entry, changes: &[StateChange]) -> io::Result<()> {
        let path = self.root.join(HISTORY);
        let is_new = disk::open_plain(&path).map_or(true, |(_, length)| length == 0);
        let mut line = if is_new { HISTORY_HEAD.to_owned() } else { String::new() };
        line.push_str(&history_line(entry, changes));
        disk::appended(&path)?.write_all(line.as_bytes())?;
        write_number(&self.root.join(META), entry.number)
    }
}

/// Notes which number was the last, in a file that is there or not: what holds no number is not
/// COSBench's.
fn write_number(path: &Path, number: Number) -> io::Result<()> {
    let is_number = |text: &str| text.trim().parse::<u64>().is_ok();
    match disk::read_end(path, NUMBER_BYTES_MAX) {
        Ok(text) if !is_number(&text) => Err(io::Error::other(format!(
            "{META} holds no number of COSBench's and stays as it is"
        ))),
        Err(error) if error.raw_os_error() != Some(Errno::NOENT.raw_os_error()) => Err(error),
        _ => disk::write(path, number.0.to_string().as_bytes()),
    }
}

impl Beside for Archive {
    /// Adds a line to the log.
    fn said(&self, Remark { at_ms, level, text }: &Remark) {
        let level = match &**level {
            "warning" => "WARN",
            "error" => "ERROR",
            _ => "INFO",
        };
        let at = local(*at_ms, IN_FILES);
        let millis = at_ms.rem_euclid(1_000);
        let text = text.replace(char::is_control, " ");
        let line = format!("{at},{millis:03} [{level}] [Workload] - {text}\n");
        self.with(|open| open.log.write_all(line.as_bytes()));
    }

    /// Adds a second to the table of its stage.
    fn tick(&self, tick: &Tick, stage: Option<&str>) {
        let Some(stage) = stage else { return };
        let path = self.directory.join(safe(&stage_file(stage)));
        self.with(|open| {
            let of_stage = match open.stages.entry(tick.stage) {
                std::collections::btree_map::Entry::Occupied(have) => have.into_mut(),
                std::collections::btree_map::Entry::Vacant(none) => {
                    if tick.rows.is_empty() {
                        return Ok(());
                    }
                    let kinds: Vec<String> = tick.rows.iter().map(|row| row.kind.clone()).collect();
                    // Who may write to the archive could have put a link in its place meanwhile.
                    disk::check_directory(&self.directory)?;
                    let mut file = disk::appended(&path)?;
                    file.write_all(stage_head(&kinds).as_bytes())?;
                    none.insert(StageFile { file, kinds, rows: 0 })
                }
            };
            let row = stage_row(tick, &of_stage.kinds, of_stage.rows);
            of_stage.rows += 1;
            of_stage.file.write_all(row.as_bytes())
        });
    }
}

/// Returns a text as one cell.
fn cell(text: &str) -> String {
    let plain = |c: char| if c == ',' || c.is_control() { '_' } else { c };
    let text: String = text.chars().map(plain).collect();
    plimsoll_report::format::inert_cell(&text).into_owned()
}

fn history_line(entry: &Entry, changes: &[StateChange]) -> String {
    let at = |at_ms: Option<i64>| at_ms.map_or("N/A".to_owned(), |at| local(at, IN_FILES));
    let change = |change: &StateChange| {
        format!("{} @ {}", change.state.cosbench_word(), local(change.at_ms, IN_FILES))
    };
    let detailed: Vec<String> = changes.iter().map(change).collect();
    format!(
        "{},{},{},{},{},{},{},{}\n",
        entry.number,
        cell(&entry.name),
        at(Some(entry.submitted_ms)),
        at(entry.started_ms),
        at(entry.ended_ms),
        cell(&op_info(&entry.operations)),
        entry.state.cosbench_word(),
        detailed.join(",")
    )
}

/// Returns the operations of a workload in COSBench's words.
fn op_info(operations: &[String]) -> String {
    operations.iter().map(|kind| op_name(kind)).collect::<Vec<_>>().join(" ")
}

/// Returns both header rows of a stage's table.
pub(crate) fn stage_head(kinds: &[String]) -> String {
    let blanks = ",".repeat(kinds.len().max(1));
    let groups: String = COLUMNS.iter().map(|column| format!("{column}{blanks}")).collect();
    let names: Vec<String> = kinds.iter().map(|kind| op_name(kind)).collect();
    let names = names.join(",");
    let names: String = COLUMNS.iter().map(|_| format!("{names},")).collect();
    format!("Timestamp,{groups}Version-Info,,\n,{names}Min-Version,Version,Max-Version\n")
}

/// Returns what COSBench calls a kind of operation.
pub(crate) fn op_name(kind: &str) -> String {
    match kind {
        "GET" => "read".to_owned(),
        "PUT" | "POST" => "write".to_owned(),
        other => other.to_ascii_lowercase(),
    }
}

/// Returns one second of a stage's table.
pub(crate) fn stage_row(tick: &Tick, kinds: &[String], version: u64) -> String {
    let of = |kind: &String| {
        let mut sum = Counted::default();
        tick.rows.iter().filter(|row| row.kind == *kind).for_each(|row| sum.add(&row.counted));
        sum
    };
    let counted: Vec<Counted> = kinds.iter().map(of).collect();
    let interval = Duration::from_nanos(tick.interval_ns);
    let per_second = |count: u64| per_sec(count as f64, interval).unwrap_or_default();
    let column = |value: &dyn Fn(&Counted) -> String| {
        counted.iter().map(|counted| format!("{},", value(counted))).collect::<String>()
    };
    let ms = |ns: Option<f64>| ns.map_or("N/A".to_owned(), |ns| plain(ns / 1e6));
    format!(
        "{},{}{}{}{}{}{}{}{version},{version},{version}\n",
        local(tick.at_ms, "%H:%M:%S"),
        column(&|of| of.ok.to_string()),
        column(&|of| of.bytes.to_string()),
        column(&|of| ms(of.latency_ns_mean())),
        column(&|of| ms(of.ttfb_ns_mean().or(of.latency_ns_mean()))),
        column(&|of| plain(per_second(of.ok))),
        column(&|of| plain(per_second(of.bytes))),
        column(&|of| match of.ended_count() {
            0 => "N/A".to_owned(),
            ended => format!("{}%", plain(of.ok as f64 * 100.0 / ended as f64)),
        }),
    )
}

/// Returns a number with two decimals at most.
fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::Row;

    #[test]
    fn a_file_that_holds_no_number_is_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(META);
        let noted = || disk::read_text(&path).unwrap();
        write_number(&path, Number(7)).unwrap();
        assert_eq!(noted(), "7");
        write_number(&path, Number(8)).unwrap();
        assert_eq!(noted(), "8");
        for foreign in ["notes of mine", "-5", "99999999999999999999999", ""] {
            disk::write(&path, foreign.as_bytes()).unwrap();
            let refused = write_number(&path, Number(9)).unwrap_err().to_string();
            assert_eq!(refused, ".meta holds no number of COSBench's and stays as it is");
            assert_eq!(noted(), foreign);
        }
    }

    #[test]
    fn a_stages_table_has_cosbenchs_columns() {
        let kinds = ["GET".to_owned(), "PUT".to_owned()];
        // The head of `s3-main.csv` that COSBench wrote for two operations.
        assert_eq!(
            stage_head(&kinds),
            "Timestamp,Op-Count,,Byte-Count,,Avg-ResTime,,Avg-ProcTime,,Throughput,,Bandwidth,,\
             Succ-Ratio,,Version-Info,,\n,read,write,read,write,read,write,read,write,read,write,\
             read,write,read,write,Min-Version,Version,Max-Version\n"
        );
        let counted = Counted {
            ok: 4,
            failed: BTreeMap::from([("timeout".to_owned(), 1)]),
            bytes: 4_000,
            latency_ns: 10_000_000,
            ..Counted::default()
        };
        let row = Row { kind: "GET".to_owned(), counted, ..Row::default() };
        let tick = Tick { interval_ns: 2_000_000_000, rows: vec![row], ..Tick::default() };
        let row = stage_row(&tick, &kinds, 3);
        let (_, row) = row.split_once(',').unwrap();
        assert_eq!(row, "4,0,4000,0,2.5,N/A,2.5,N/A,2,0,2000,0,80%,N/A,3,3,3\n");
    }
}
