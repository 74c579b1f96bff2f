//! What a row of a stage says of the jobs in it.

use std::time::Duration;

use plimsoll_model::Bytes;
use plimsoll_workload::plan::spec::{BlockLaw, BlockSizes};
use plimsoll_workload::plan::{self, Blocks, Members, Plan, SizeRange, Work};

use crate::clients::{ClientStage, RowJobs};

/// What is known of a job before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// Bytes of one operation on blocks, such as `4 KiB` or `4 KiB–64 KiB`.
    pub block: Option<String>,
    /// How many operations each worker keeps in flight.
    pub depth: Option<u32>,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// How many files or names there are, of all workers.
    pub files_count: Option<u64>,
    /// How large a file is, such as `4 GiB`.
    pub file_size: Option<String>,
    /// How long it is to last; `None` where it ends when all is done.
    pub duration: Option<Duration>,
    /// The largest share of operations that may fail, 0 to 1.
    pub error_rate_max: Option<f64>,
}

/// Returns what a row says of a job that several clients did: files are added up, the longest time
/// is that of all, and in what else they differ is left out. Nothing is known where a client's
/// workload is not.
pub fn described(clients: &[ClientStage<'_>], row: &RowJobs) -> Described {
    let of_client = |of: &ClientStage<'_>| {
        let (plan, stage) = of.planned?;
        let limit = stage.duration;
        let jobs = || row.jobs.iter().filter_map(|job| stage.jobs.get(*job));
        let allowed = jobs().filter_map(|job| job.error_percent_max).map(|percent| percent / 100.0);
        let error_rate_max = allowed.reduce(f64::min);
        jobs().next().map(|job| Described { error_rate_max, ..of_job(plan, job, limit) })
    };
    let all = clients.iter().filter_map(of_client).reduce(|all, each| Described {
        block: all.block.filter(|block| Some(block) == each.block.as_ref()),
        depth: all.depth.filter(|depth| Some(*depth) == each.depth),
        direct: all.direct && each.direct,
        files_count: all.files_count.zip(each.files_count).map(|(a, b)| a + b),
        file_size: all.file_size.filter(|size| Some(size) == each.file_size.as_ref()),
        duration: all.duration.zip(each.duration).map(|(a, b)| a.max(b)),
        error_rate_max: [all.error_rate_max, each.error_rate_max]
            .into_iter()
            .flatten()
            .reduce(f64::min),
    });
    all.unwrap_or_default()
}

fn of_job(plan: &Plan, job: &plan::Job, limit: Option<Duration>) -> Described {
    let duration = [job.duration, limit].into_iter().flatten().min();
    let known = Described { depth: Some(job.depth.get()), duration, ..Described::default() };
    match &job.work {
        Work::Fill { block_bytes, direct, sets } => {
            let is_on_files =
                sets.iter().any(|set| matches!(plan.set(*set).members, Members::Files(_)));
            let block = is_on_files.then(|| Bytes(u64::from(*block_bytes)).to_string());
            Described { block, direct: *direct, ..known }
        }
        Work::Blocks(blocks) => {
            let files = plan.files(blocks.set);
            Described {
                block: Some(blocks_text(blocks)),
                direct: blocks.direct,
                files_count: Some(files.count()),
                file_size: Some(range_text(files.size)),
                ..known
            }
        }
        Work::Replay { .. } => Described { depth: None, ..known },
        Work::Names { set, act, .. } => {
            let shape = &plan.tree(*set).shape;
            let files_count = Some(shape.names_count(*act, job.workers.get()));
            Described { depth: Some(1), files_count, ..known }
        }
        _ => known,
    }
}

fn blocks_text(blocks: &Blocks) -> String {
    let (reads, writes) = (sizes_text(&blocks.read), sizes_text(&blocks.write));
    match blocks.read_percent {
        100 => reads,
        0 => writes,
        _ if reads == writes => reads,
        _ => format!("{reads} / {writes}"),
    }
}

fn sizes_text(sizes: &BlockSizes) -> String {
    match sizes {
        BlockSizes::Fixed(size) => Bytes(size.0).to_string(),
        BlockSizes::Drawn(BlockLaw::Range(range)) => range_text(*range),
        BlockSizes::Drawn(BlockLaw::Shares(shares)) => {
            let sizes = || shares.0.iter().map(|share| share.value.0);
            let (min, max) = (sizes().min(), sizes().max());
            range_text(SizeRange { min: min.unwrap_or_default(), max: max.unwrap_or_default() })
        }
    }
}

fn range_text(SizeRange { min, max }: SizeRange) -> String {
    if min == max { Bytes(min).to_string() } else { format!("{}–{}", Bytes(min), Bytes(max)) }
}
