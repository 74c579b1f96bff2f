//! Jobs that read and write blocks: which ones, how fast, for how long.

use std::time::Duration;

use plimsoll_model::{Interface, SyncMode};
use plimsoll_workload::ArrivalLaw;
use plimsoll_workload::plan::spec::{
    Arrivals, BlockLaw, BlockOrder, BlockSizes, BlocksSpec, CappedEach, InterfaceSpec, JobSpec,
    Limit, PacingSpec, ReadBlocks, SECTOR_BYTES, Share, Shares, SyncSpec, ThinkSpec, WorkSpec,
};
use plimsoll_workload::plan::{Cap, Percent, Size, SizeRange, Time, TimeRange};

use super::super::error::FioError;
use super::super::job::{
    self, Amount, Blocks, Direction, Directions, Distribution, Engine, Job, Order, RateProcess,
};
use super::files::Placed;
use super::{Lowering, refuse};

/// When a job has done its work.
struct Ends {
    bytes_max: Option<u64>,
    ops_max: Option<u64>,
    repeats: bool,
}

impl Lowering<'_> {
    /// Returns what a job of the job file comes to: one job, or one for each clone where files that
    /// already exist are not the same for all.
    pub(super) fn block_jobs(
        &mut self,
        index: usize,
        files: &Placed,
    ) -> Result<Vec<JobSpec>, FioError> {
        let job = self.job(index);
        let ends = self.ends(job, files)?;
        check_direct(job)?;
        self.note_ignored_ends(job);
        let Directions { read, write } = &job.pattern.blocks;
        let read_percent = match job.pattern.direction {
            Direction::Read => 100,
            Direction::Write => 0,
            Direction::Mixed => job.pattern.read_percent,
        };
        let mut work = BlocksSpec {
            order: order(job),
            repeats: Some(ends.repeats),
            seed: job.pattern.seed,
            direct: job.queue.direct,
            invalidates: job.files.invalidate,
            ..BlocksSpec::mixed(read_percent, sizes(read), sizes(write))
        };
        // Nothing is synced where nothing can be written.
        if job.pattern.direction != Direction::Read {
            work.sync = SyncSpec(match job.queue.sync {
                job::SyncMode::Off => SyncMode::Off,
                job::SyncMode::Sync => SyncMode::Sync,
                job::SyncMode::Dsync => SyncMode::Dsync,
            });
            work.fsync_every = job.queue.fsync_every;
            work.fdatasync_every = job.queue.fdatasync_every;
            work.end_fsync = job.queue.end_fsync;
        }
        let timing = JobSpec {
            bytes: ends.bytes_max.map(|bytes| Limit::Each { each: Size(bytes) }),
            ops: ends.ops_max.map(|ops| Limit::Each { each: ops }),
            pacing: pacing(job),
            ..self.timed_job(index, WorkSpec::Blocks(work.clone()))
        };
        Ok(self.by_parts(&timing, &work, files))
    }

    /// Returns the jobs that read back what a job has written.
    pub(super) fn reading_jobs(&mut self, index: usize, files: &Placed) -> Vec<JobSpec> {
        let job = self.job(index);
        let block = sizes(&job.pattern.blocks.write);
        let work = BlocksSpec {
            read: Some(ReadBlocks { block, percent: None }),
            order: BlockOrder::Sequential,
            repeats: Some(false),
            direct: job.queue.direct,
            invalidates: job.files.invalidate,
            ..BlocksSpec::of("")
        };
        let plain = self.plain_job(index, WorkSpec::Blocks(work.clone()));
        self.by_parts(&plain, &work, files)
    }

    /// Returns what all kinds of jobs have in common.
    pub(super) fn plain_job(&self, index: usize, work: WorkSpec) -> JobSpec {
        let job = self.job(index);
        let interface = match job.queue.engine {
            Engine::IoUring => Some(Interface::IoUring),
            Engine::Libaio => Some(Interface::Libaio),
            Engine::Null => None,
            Engine::Psync | Engine::FileCreate | Engine::FileStat | Engine::FileDelete => {
                Some(Interface::Psync)
            }
        };
        JobSpec {
            name: Some(job.name.clone()),
            group: Some(job.flow.group),
            depth: job.queue.depth(),
            interface: interface.map(InterfaceSpec),
            ..JobSpec::of(self.clones(job), work)
        }
    }

    /// Returns the same for jobs that last as the job file says.
    pub(super) fn timed_job(&self, index: usize, work: WorkSpec) -> JobSpec {
        let job = self.job(index);
        let time = |time| self.scale.time(time);
        // It counts from the start of the run, which may be long past.
        let delay = |delay: Duration| time(delay).saturating_sub(self.elapsed);
        let pause = job.thinktime.pause;
        JobSpec {
            start_delay: TimeRange {
                min: delay(job.flow.start_delay.min),
                max: delay(job.flow.start_delay.max),
            },
            ramp: Time(time(job.timing.ramp)),
            duration: job.timing.runtime.map(|runtime| Time(time(runtime))),
            think: (!pause.is_zero()).then(|| ThinkSpec {
                pause: Time(pause),
                spin: Time(job.thinktime.spin.min(pause)),
                every: job.thinktime.operations,
            }),
            ..self.plain_job(index, work)
        }
    }

    fn by_parts(&mut self, of: &JobSpec, work: &BlocksSpec, files: &Placed) -> Vec<JobSpec> {
        let job = |part: &super::files::Part| JobSpec {
            workers: part.clones,
            work: self.on_files.blocks(&part.files, work.clone()),
            ..of.clone()
        };
        files.parts.iter().map(job).collect()
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
                    let text = format!(
                        "`{percent}%` of files whose sizes are drawn is not an \
                    amount"
                    );
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
        let visits_all = matches!(order(job), BlockOrder::Sequential | BlockOrder::EachOnce);
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
                "`direct=1` needs blocks of whole sectors, and {size} bytes are not a multiple of \
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

fn sizes(blocks: &Blocks) -> BlockSizes {
    match blocks {
        Blocks::Fixed(size) => BlockSizes::Fixed(Size(*size)),
        Blocks::Range(range) => {
            BlockSizes::Drawn(BlockLaw::Range(SizeRange { min: range.min, max: range.max }))
        }
        Blocks::Split(shares) => {
            let shares = shares.iter().filter(|share| share.percent > 0);
            let share = |share: &job::BlockShare| Share {
                value: Size(share.size_bytes),
                weight: share.percent.into(),
            };
            BlockSizes::Drawn(BlockLaw::Shares(Shares(shares.map(share).collect())))
        }
    }
}

fn order(job: &Job) -> BlockOrder {
    if job.pattern.order == Order::Sequential {
        return BlockOrder::Sequential;
    }
    match job.pattern.distribution {
        Distribution::Uniform if job.pattern.random_map => BlockOrder::EachOnce,
        Distribution::Uniform => BlockOrder::Uniform,
        Distribution::Zipf { theta } => BlockOrder::Zipf(theta),
        Distribution::Pareto { h } => BlockOrder::Pareto(h),
        Distribution::Normal { deviation_percent } => {
            BlockOrder::Normal(Percent(deviation_percent))
        }
    }
}

fn pacing(job: &Job) -> PacingSpec {
    #[expect(clippy::cast_precision_loss, reason = "no rate is that exact")]
    let cap = |bytes: Option<u64>, ops: Option<u64>| {
        let bytes = bytes.map(|rate| Cap::BytesPerSec(rate as f64));
        bytes.or(ops.map(|rate| Cap::OpsPerSec(rate as f64)))
    };
    let (bytes, ops) = (&job.rates.bytes_per_sec, &job.rates.ops_per_sec);
    let read = cap(bytes.read, ops.read).filter(|_| job.pattern.direction != Direction::Write);
    let write = cap(bytes.write, ops.write).filter(|_| job.pattern.direction != Direction::Read);
    if read.is_none() && write.is_none() {
        return PacingSpec::Closed;
    }
    let arrivals = match job.rates.process {
        RateProcess::Poisson => ArrivalLaw::Poisson,
        RateProcess::Linear => ArrivalLaw::Constant,
    };
    PacingSpec::CappedEach(CappedEach { read, write, arrivals: Arrivals(arrivals) })
}
