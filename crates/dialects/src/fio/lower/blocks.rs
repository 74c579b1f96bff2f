//! Jobs that read and write blocks: which ones, how fast, for how long.

use plimsoll_model::{Interface, SyncMode};
use plimsoll_workload::files::{
    BlockOrderSpec, BlockShareSpec, BlockSizesSpec, BlocksSpec, CapSpec, FileJobSpec,
    FilePacingSpec, FileWorkSpec, SpanSpec, ThinkSpec,
};

use super::super::error::FioError;
use super::super::job::{
    self, Amount, Blocks, Direction, Directions, Distribution, Engine, Job, Order, RateProcess,
};
use super::files::Placed;
use super::{Lowering, nanos, refuse};

/// What the page cache can be passed by in multiples of, at least.
const SECTOR_BYTES: u64 = 512;

/// When a job has done its work.
struct Ends {
    bytes_max: Option<u64>,
    ops_max: Option<u64>,
    repeats: bool,
}

impl Lowering<'_> {
    /// Returns what a job of the job file comes to: one job, or one for each clone where files that
    /// are there already are not the same for all.
    pub(super) fn block_jobs(
        &mut self,
        index: usize,
        files: &Placed,
    ) -> Result<Vec<FileJobSpec>, FioError> {
        let job = self.job(index);
        let ends = self.ends(job, files)?;
        check_direct(job)?;
        self.note_ignored_ends(job);
        let work = BlocksSpec {
            files: files.parts[0].files.clone(),
            read_percent: match job.pattern.direction {
                Direction::Read => 100,
                Direction::Write => 0,
                Direction::Mixed => job.pattern.read_percent,
            },
            read_blocks: sizes(&job.pattern.blocks.read),
            write_blocks: sizes(&job.pattern.blocks.write),
            order: order(job),
            repeats: ends.repeats,
            seed: job.pattern.seed,
            direct: job.queue.direct,
            sync: match job.queue.sync {
                job::SyncMode::Off => SyncMode::Off,
                job::SyncMode::Sync => SyncMode::Sync,
                job::SyncMode::Dsync => SyncMode::Dsync,
            },
            fsync_every: job.queue.fsync_every,
            fdatasync_every: job.queue.fdatasync_every,
            end_fsync: job.queue.end_fsync,
            invalidates: job.files.invalidate,
        };
        let work = if job.pattern.direction == Direction::Read { only_reading(work) } else { work };
        let spec = FileJobSpec {
            bytes_max: ends.bytes_max,
            ops_max: ends.ops_max,
            pacing: pacing(job),
            ..self.plain_job(index, FileWorkSpec::Blocks(work.clone()))
        };
        Ok(by_parts(&spec, &work, files))
    }

    /// Returns the jobs that read back what a job has written.
    pub(super) fn reading_jobs(&self, index: usize, files: &Placed) -> Vec<FileJobSpec> {
        let job = self.job(index);
        let work = only_reading(BlocksSpec {
            files: files.parts[0].files.clone(),
            read_percent: 100,
            read_blocks: sizes(&job.pattern.blocks.write),
            write_blocks: sizes(&job.pattern.blocks.write),
            order: BlockOrderSpec::Sequential,
            repeats: false,
            seed: None,
            direct: job.queue.direct,
            sync: SyncMode::Off,
            fsync_every: None,
            fdatasync_every: None,
            end_fsync: false,
            invalidates: job.files.invalidate,
        });
        let spec = FileJobSpec {
            start_delay_ns: SpanSpec::default(),
            ramp_ns: 0,
            duration_ns: None,
            think: None,
            ..self.plain_job(index, FileWorkSpec::Blocks(work.clone()))
        };
        by_parts(&spec, &work, files)
    }

    /// Returns what all kinds of jobs have in common.
    pub(super) fn plain_job(&self, index: usize, work: FileWorkSpec) -> FileJobSpec {
        let job = self.job(index);
        let time = |time| nanos(self.scale.time(time));
        // It counts from the start of the run, which may be long past.
        let delay = |delay| time(delay).saturating_sub(nanos(self.elapsed));
        let pause = nanos(job.thinktime.pause);
        FileJobSpec {
            name: job.name.clone(),
            group: job.flow.group,
            clones: self.clones(job),
            depth: job.queue.depth(),
            interface: match job.queue.engine {
                Engine::IoUring => Some(Interface::IoUring),
                Engine::Libaio => Some(Interface::Libaio),
                Engine::Null => None,
                Engine::Psync | Engine::FileCreate | Engine::FileStat | Engine::FileDelete => {
                    Some(Interface::Psync)
                }
            },
            start_delay_ns: SpanSpec {
                min: delay(job.flow.start_delay.min),
                max: delay(job.flow.start_delay.max),
            },
            ramp_ns: time(job.timing.ramp),
            duration_ns: job.timing.runtime.map(time),
            ops_max: None,
            bytes_max: None,
            pacing: FilePacingSpec::Closed,
            think: (pause > 0).then(|| ThinkSpec {
                pause_ns: pause,
                spin_ns: nanos(job.thinktime.spin).min(pause),
                every_ops: job.thinktime.operations,
            }),
            work,
        }
    }

    /// Returns when a job has done its work. `size` says how much that is where `filesize` says how
    /// large files are; a time that it is based on passes over all of it.
    fn ends(&self, job: &Job, files: &Placed) -> Result<Ends, FioError> {
        if job.timing.time_based {
            return Ok(Ends { bytes_max: None, ops_max: None, repeats: true });
        }
        let all = total(job, files);
        let asked =
            job.files.io_size.or(job.files.size.filter(|_| job.files.file_size_bytes.is_some()));
        let loops = u64::from(job.timing.loops);
        let bytes = match asked {
            None => None,
            Some(Amount::Bytes(bytes)) => Some(self.scale.size(bytes)),
            Some(Amount::Percent(percent)) => {
                let Some(all) = all else {
                    let text = format!("`{percent}%` of files whose sizes are drawn is no amount");
                    return Err(refuse(job, text));
                };
                let part = u128::from(all) * u128::from(percent) / 100;
                Some(u64::try_from(part).unwrap_or(u64::MAX))
            }
        };
        let bytes_max = match (bytes, loops) {
            (bytes, 1) => bytes,
            (bytes, loops) => {
                let Some(once) = bytes.or(all) else {
                    let text = "`loops` over files whose sizes are drawn; say an `io_size`";
                    return Err(refuse(job, text.to_owned()));
                };
                Some(once.saturating_mul(loops))
            }
        };
        let ops = job.files.operations_max.map(|count| self.scale.count(count));
        Ok(Ends {
            bytes_max,
            ops_max: ops.map(|count| count.saturating_mul(loops)),
            repeats: bytes_max.is_some_and(|bytes| all.is_none_or(|all| bytes > all)),
        })
    }

    fn note_ignored_ends(&mut self, job: &Job) {
        let ignored = [
            ("io_size", job.files.io_size.is_some()),
            ("number_ios", job.files.operations_max.is_some()),
            ("loops", job.timing.loops > 1),
        ];
        for (option, is_set) in ignored {
            if is_set && job.timing.time_based {
                self.note(job, option, "with `time_based` the time alone counts, as in fio");
            }
        }
    }

    /// Returns whether a job writes every byte of its files.
    pub(super) fn covers_files(&self, job: &Job, files: &Placed) -> bool {
        let visits_all =
            matches!(order(job), BlockOrderSpec::Sequential | BlockOrderSpec::EachOnce);
        let is_enough = |ends: Ends| {
            let bytes_min = ends.bytes_max.unwrap_or(u64::MAX);
            ends.ops_max.is_none() && total(job, files).is_some_and(|all| bytes_min >= all)
        };
        job.pattern.direction == Direction::Write
            && job.timing.runtime.is_none()
            && visits_all
            && self.ends(job, files).is_ok_and(is_enough)
    }
}

/// Refuses blocks that cannot pass by the page cache.
fn check_direct(job: &Job) -> Result<(), FioError> {
    let odd = |blocks: &Blocks| match blocks {
        Blocks::Fixed(size) => Some(*size),
        Blocks::Range(range) => Some(range.min),
        Blocks::Split(shares) => shares
            .iter()
            .map(|share| share.size_bytes)
            .find(|size| !size.is_multiple_of(SECTOR_BYTES)),
    };
    let Directions { read, write } = &job.pattern.blocks;
    let used = match job.pattern.direction {
        Direction::Read => vec![read],
        Direction::Write => vec![write],
        Direction::Mixed => vec![read, write],
    };
    let odd = used.into_iter().filter_map(odd).find(|size| !size.is_multiple_of(SECTOR_BYTES));
    match odd.filter(|_| job.queue.direct) {
        None => Ok(()),
        Some(size) => {
            let text = format!(
                "`direct=1` needs blocks of whole sectors, and {size} bytes are no multiple of \
                 {SECTOR_BYTES}"
            );
            Err(refuse(job, text))
        }
    }
}

/// Returns the bytes of the files of one clone together, where all have one size.
fn total(job: &Job, files: &Placed) -> Option<u64> {
    let count = u64::from(job.files.count);
    (files.size.min == files.size.max).then(|| files.size.min.saturating_mul(count))
}

/// Returns the work without what concerns writes only.
fn only_reading(work: BlocksSpec) -> BlocksSpec {
    BlocksSpec {
        sync: SyncMode::Off,
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        ..work
    }
}

fn by_parts(spec: &FileJobSpec, work: &BlocksSpec, files: &Placed) -> Vec<FileJobSpec> {
    let job = |part: &super::files::Part| FileJobSpec {
        clones: part.clones,
        work: FileWorkSpec::Blocks(BlocksSpec { files: part.files.clone(), ..work.clone() }),
        ..spec.clone()
    };
    files.parts.iter().map(job).collect()
}

fn sizes(blocks: &Blocks) -> BlockSizesSpec {
    match blocks {
        Blocks::Fixed(size) => BlockSizesSpec::FixedBytes(*size),
        Blocks::Range(range) => {
            BlockSizesSpec::RangeBytes(SpanSpec { min: range.min, max: range.max })
        }
        Blocks::Split(shares) => {
            let shares = shares.iter().filter(|share| share.percent > 0);
            let share = |share: &job::BlockShare| BlockShareSpec {
                size_bytes: share.size_bytes,
                weight: share.percent,
            };
            BlockSizesSpec::Shares(shares.map(share).collect())
        }
    }
}

fn order(job: &Job) -> BlockOrderSpec {
    if job.pattern.order == Order::Sequential {
        return BlockOrderSpec::Sequential;
    }
    match job.pattern.distribution {
        Distribution::Uniform if job.pattern.random_map => BlockOrderSpec::EachOnce,
        Distribution::Uniform => BlockOrderSpec::Uniform,
        Distribution::Zipf { theta } => BlockOrderSpec::Zipf { theta },
        Distribution::Pareto { h } => BlockOrderSpec::Pareto { h },
        Distribution::Normal { deviation_percent } => BlockOrderSpec::Normal { deviation_percent },
    }
}

fn pacing(job: &Job) -> FilePacingSpec {
    #[expect(clippy::cast_precision_loss, reason = "no rate is that exact")]
    let cap = |bytes: Option<u64>, ops: Option<u64>| {
        let bytes = bytes.map(|rate| CapSpec::BytesPerSec(rate as f64));
        bytes.or(ops.map(|rate| CapSpec::OpsPerSec(rate as f64)))
    };
    let (bytes, ops) = (&job.rates.bytes_per_sec, &job.rates.ops_per_sec);
    let read = cap(bytes.read, ops.read).filter(|_| job.pattern.direction != Direction::Write);
    let write = cap(bytes.write, ops.write).filter(|_| job.pattern.direction != Direction::Read);
    if read.is_none() && write.is_none() {
        return FilePacingSpec::Closed;
    }
    FilePacingSpec::Capped { read, write, poisson: job.rates.process == RateProcess::Poisson }
}
