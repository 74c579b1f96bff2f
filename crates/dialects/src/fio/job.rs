//! What a job file asks for, with every default filled in.

use std::time::Duration;

use super::error::Place;
use crate::command_line::Note;

/// The percentiles that fio reports where a job names none.
pub const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The jobs of a job file or of a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The file's name as it was given.
    pub name: String,
    /// The jobs in the order of the file, one for each section that is not global.
    pub jobs: Vec<Job>,
    /// What does not mean here what it means to fio, each once.
    pub notes: Vec<Note>,
    /// The options of global sections as written, variables replaced.
    pub global_options: Vec<(String, String)>,
}

/// Returns a note on an option of a section.
pub(super) fn note(section: &str, option: &str, what: impl Into<String>) -> Note {
    Note::new(format!("[{section}] `{option}`"), what)
}

/// A section with what it took over from the global ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name: the section's, or that of the option `name`.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// A text about it.
    pub description: Option<String>,
    /// When it starts and with whom it is reported.
    pub flow: Flow,
    /// Which blocks it reads and writes.
    pub pattern: Pattern,
    /// The files it works on.
    pub files: Files,
    /// How operations are issued.
    pub queue: Queue,
    /// How long it lasts.
    pub timing: Timing,
    /// How fast it may go, each clone for itself.
    pub rates: Rates,
    /// Idle time between operations.
    pub thinktime: Thinktime,
    /// What is checked.
    pub verify: Verify,
    /// What is reported of it.
    pub reporting: Reporting,
    /// The options of its own section as written, variables replaced.
    pub options: Vec<(String, String)>,
}

/// When a job starts and with whom it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Jobs of one wave may run at once; a wave starts when all jobs of the one before have ended.
    /// `stonewall` begins a wave.
    pub wave: u32,
    /// Jobs of one group are reported together where they ask for it. `stonewall` and `new_group`
    /// begin a group.
    pub group: u32,
    /// The index of an earlier job that must have ended first.
    pub wait_for: Option<usize>,
    /// How many clones run it.
    pub numjobs: u32,
    /// Whether its group is reported as one record instead of one for each clone.
    pub group_reporting: bool,
    /// How long after the start of everything it starts; each clone draws from the range.
    pub start_delay: Span<Duration>,
    /// Whether all jobs end when one of its operations fails.
    pub exitall_on_error: bool,
}

/// From the least to the most; both belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span<T> {
    /// The least.
    pub min: T,
    /// The most.
    pub max: T,
}

/// A value for reads and one for writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directions<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
}

/// Which blocks a job reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Whether one block follows the other.
    pub order: Order,
    /// Out of a hundred operations of a mixed job, how many are reads.
    pub read_percent: u32,
    /// How large the blocks are.
    pub blocks: Directions<Blocks>,
    /// Where random blocks lie.
    pub distribution: Distribution,
    /// Whether each block of a pass is visited once. Never with a distribution that favours some.
    pub random_map: bool,
    /// The seed of random choices; `None`: another one each run.
    pub seed: Option<u64>,
}

impl Pattern {
    /// Returns what fio calls it, such as `randread`.
    pub fn rw_name(&self) -> &'static str {
        match (self.direction, self.order) {
            (Direction::Read, Order::Sequential) => "read",
            (Direction::Read, Order::Random) => "randread",
            (Direction::Write, Order::Sequential) => "write",
            (Direction::Write, Order::Random) => "randwrite",
            (Direction::Mixed, Order::Sequential) => "rw",
            (Direction::Mixed, Order::Random) => "randrw",
        }
    }
}

/// Whether a job reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It only reads.
    Read,
    /// It only writes.
    Write,
    /// It does both; even where one of them has no share.
    Mixed,
}

/// Whether one block follows the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One block follows the other.
    Sequential,
    /// Blocks are drawn.
    Random,
}

/// How large blocks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// All alike.
    Fixed(u64),
    /// Drawn from a range, rounded down to a multiple of its least.
    Range(Span<u64>),
    /// Drawn by shares, which add up to a hundred.
    Split(Vec<BlockShare>),
}

/// One size of blocks and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShare {
    /// The size.
    pub size_bytes: u64,
    /// How many of a hundred operations have it.
    pub percent: u32,
}

impl Blocks {
    /// Returns the smallest block.
    pub fn size_bytes_min(&self) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range(range) => range.min,
            Self::Split(shares) => shares.iter().map(|s| s.size_bytes).min().unwrap_or_default(),
        }
    }

    /// Returns the largest block.
    pub fn size_bytes_max(&self) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range(range) => range.max,
            Self::Split(shares) => shares.iter().map(|s| s.size_bytes).max().unwrap_or_default(),
        }
    }
}

/// Where random blocks lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Anywhere alike.
    Uniform,
    /// By Zipf's law.
    Zipf {
        /// Its exponent.
        theta: f64,
    },
    /// By a Pareto distribution, with fio's parameter between 0 and 1.
    Pareto {
        /// Its parameter.
        h: f64,
    },
    /// By a normal distribution around the middle.
    Normal {
        /// Its deviation, in percent of the range.
        deviation_percent: f64,
    },
}

/// The files of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Where they lie; dealt to the clones in turn. Empty: where the program runs.
    pub directories: Vec<String>,
    /// Their names, which all clones share. Empty: names are made by `name_format`.
    pub names: Vec<String>,
    /// How names are made: `$jobname`, `$jobnum` and `$filenum` are replaced.
    pub name_format: String,
    /// How many files a clone has.
    pub count: u32,
    /// The size of all files of a clone together.
    pub size: Option<Amount>,
    /// The size of each file; files draw from the range.
    pub file_size_bytes: Option<Span<u64>>,
    /// How much is read and written before the job ends.
    pub io_size: Option<Amount>,
    /// After how many operations the job ends.
    pub operations_max: Option<u64>,
    /// Whether the job only makes its files.
    pub create_only: bool,
    /// Whether files that are missing may be made.
    pub allow_file_create: bool,
    /// Whether files are filled before they are written.
    pub overwrite: bool,
    /// Whether what is cached of them is dropped before the job.
    pub invalidate: bool,
}

/// A number of bytes or a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// A share in percent.
    Percent(u32),
}

impl Files {
    /// Returns the paths of the files of clone `clone`, 0-based, of the job `job`.
    pub fn paths(&self, job: &str, clone: u32) -> Vec<String> {
        let directory = match self.directories.len() {
            0 => None,
            count => Some(&self.directories[clone as usize % count]),
        };
        let names = if self.names.is_empty() {
            let name = |file: u32| {
                self.name_format
                    .replace("$jobname", job)
                    .replace("$jobnum", &clone.to_string())
                    .replace("$filenum", &file.to_string())
            };
            (0..self.count).map(name).collect()
        } else {
            self.names.clone()
        };
        match directory {
            None => names,
            Some(directory) => {
                let directory = directory.strip_suffix('/').unwrap_or(directory);
                names.iter().map(|name| format!("{directory}/{name}")).collect()
            }
        }
    }

    /// Returns the sizes that a file may have, where the job says them in bytes.
    pub fn size_of_file(&self) -> Option<Span<u64>> {
        self.file_size_bytes.or(match self.size {
            Some(Amount::Bytes(size)) => {
                let size = size / u64::from(self.count);
                Some(Span { min: size, max: size })
            }
            _ => None,
        })
    }

    /// Returns the paths that name devices instead of files.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let is_device = |path: &&str| path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
        self.names.iter().map(String::as_str).filter(is_device)
    }
}

/// How operations are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The way they are issued here.
    pub engine: Engine,
    /// What the job file calls it; `None` where it says nothing.
    pub engine_written: Option<String>,
    /// How many operations a clone keeps in flight, as written; see [`Queue::depth`].
    pub iodepth: u32,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// Whether each write is on the medium when it returns.
    pub sync: SyncMode,
    /// After how many writes an `fsync` follows.
    pub fsync_every: Option<u32>,
    /// After how many writes an `fdatasync` follows.
    pub fdatasync_every: Option<u32>,
    /// Whether an `fsync` ends the job.
    pub end_fsync: bool,
}

impl Queue {
    /// Returns how many operations of a clone are in flight: one, whatever is written, where the
    /// engine waits for each.
    pub fn depth(&self) -> u32 {
        match self.engine {
            Engine::IoUring | Engine::Libaio | Engine::Null => self.iodepth,
            _ => 1,
        }
    }
}

/// The way operations are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Through a ring of the kernel.
    IoUring,
    /// Through the kernel's older asynchronous calls.
    Libaio,
    /// By `pread` and `pwrite`.
    Psync,
    /// Not at all; it measures the instrument.
    Null,
    /// Creates files.
    FileCreate,
    /// Asks for the attributes of files.
    FileStat,
    /// Removes files.
    FileDelete,
}

impl Engine {
    /// Returns whether it works on the names of files instead of on their content.
    pub fn is_metadata(self) -> bool {
        matches!(self, Self::FileCreate | Self::FileStat | Self::FileDelete)
    }
}

/// Whether each write is on the medium when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// No.
    Off,
    /// Content and attributes (`O_SYNC`).
    Sync,
    /// Content (`O_DSYNC`).
    Dsync,
}

/// How long a job lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long at most.
    pub runtime: Option<Duration>,
    /// Whether it begins anew when all is read and written, until the time is up.
    pub time_based: bool,
    /// How often all is read and written, where no time says so.
    pub loops: u32,
    /// How long it runs before the measured time begins, on top of `runtime`.
    pub ramp: Duration,
}

/// How fast a clone may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Bytes per second.
    pub bytes_per_sec: Directions<Option<u64>>,
    /// Operations per second.
    pub ops_per_sec: Directions<Option<u64>>,
    /// How operations are spread.
    pub process: RateProcess,
}

/// How operations of a limited rate are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// As arrivals without memory.
    Poisson,
}

/// Idle time between operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinktime {
    /// How long a pause is.
    pub pause: Duration,
    /// How much of it is spent computing.
    pub spin: Duration,
    /// After how many operations it comes.
    pub operations: u32,
}

/// What is checked. Here every byte is, against what was written; fio stores a sum with each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// What the job file calls the way of checking; `None` where it asks for none.
    pub method: Option<String>,
    /// Whether a job that writes reads all again at its end.
    pub after_writing: bool,
    /// Whether the job ends at the first block that is wrong.
    pub fatal: bool,
}

/// What is reported of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// Which percentiles.
    pub percentiles: Vec<f64>,
    /// Whether those of the time from issue to completion.
    pub clat_percentiles: bool,
    /// Whether those of the whole time.
    pub lat_percentiles: bool,
    /// Whether those of the time to issue.
    pub slat_percentiles: bool,
    /// Which logs are written.
    pub logs: Logs,
}

/// Logs over time, by the prefix of their files' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Of bytes per second.
    pub bw: Option<String>,
    /// Of operations per second.
    pub iops: Option<String>,
    /// Of times.
    pub lat: Option<String>,
    /// How much time one line stands for; `None`: each operation has a line.
    pub average: Option<Duration>,
}

impl Job {
    /// Returns whether files are filled before the job: fio does so for every job that can read,
    /// even with a share of no reads.
    pub fn fills_files(&self) -> bool {
        !self.queue.engine.is_metadata()
            && (self.pattern.direction != Direction::Write || self.files.overwrite)
    }

    /// Returns whether the job writes to its files once they are made.
    pub fn writes(&self) -> bool {
        !self.files.create_only
            && match self.queue.engine {
                Engine::FileCreate | Engine::FileDelete => true,
                Engine::FileStat => false,
                _ => match self.pattern.direction {
                    Direction::Read => false,
                    Direction::Write => true,
                    Direction::Mixed => self.pattern.read_percent < 100,
                },
            }
    }
}
