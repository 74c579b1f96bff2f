//! What a row of a stage on files says of the jobs in it.

use std::time::Duration;

use plimsoll_model::{Bytes, OpRate};
use plimsoll_record::schema;
use plimsoll_report::ScheduleReport;
use plimsoll_report::phases::{CacheState, JobSchedule, PhaseRow};
use plimsoll_workload::RateProfile;
use plimsoll_workload::files::{
    BlockOrderSpec, BlockSizesSpec, BlocksSpec, FileJobSpec, FilePacingSpec, FileWorkSpec,
    JobFilesSpec, NameActSpec, NamesSpec,
};

use super::RowJobs;
use super::clients::ClientStage;

/// Returns what a row says of a job that several clients did: files and workers are added up, the
/// longest time is that of all, and in what else they differ is left out.
pub(super) fn described_of_all(clients: &[ClientStage<'_>], row: &RowJobs) -> Option<PhaseRow> {
    let jobs = clients.iter().filter_map(|of| of.stage.jobs.get(row.jobs[0]));
    let described = jobs.map(described).reduce(|all, each| PhaseRow {
        block: all.block.filter(|block| Some(block) == each.block.as_ref()),
        depth: all.depth.filter(|depth| Some(*depth) == each.depth),
        direct: all.direct && each.direct,
        files_count: all.files_count.zip(each.files_count).map(|(a, b)| a + b),
        file_size: all.file_size.filter(|size| Some(size) == each.file_size.as_ref()),
        duration: all.duration.zip(each.duration).map(|(a, b)| a.max(b)),
        ..all
    })?;
    let of_client = |of: &ClientStage<'_>| -> u32 {
        row.jobs.iter().filter_map(|job| of.stage.jobs.get(*job)).map(|job| job.clones).sum()
    };
    let workers = row.clone.map_or_else(|| clients.iter().map(of_client).sum(), |_| 1);
    Some(PhaseRow { workers, ..described })
}

/// Returns how each job with a schedule kept it.
pub(super) fn schedules(
    entry: &schema::Stage,
    clients: &[ClientStage<'_>],
    rows: &[RowJobs],
) -> Vec<JobSchedule> {
    let Some(ClientStage { stage, .. }) = clients.first() else { return Vec::new() };
    let is_open = |job: &FileJobSpec| matches!(job.pacing, FilePacingSpec::Open { .. });
    let of_jobs = entry.files.iter().flat_map(|files| &files.schedules);
    let mut of_jobs: Vec<(usize, &schema::Schedule)> =
        of_jobs.map(|of| (of.job_index as usize, &of.schedule)).collect();
    if let (true, Some(whole)) = (of_jobs.is_empty(), &entry.schedule) {
        // Older records have one for the whole stage.
        of_jobs.extend(stage.jobs.iter().position(is_open).map(|first| (first, whole)));
    }
    let report = |(index, kept): (usize, &schema::Schedule)| {
        let jobs: Vec<&FileJobSpec> =
            clients.iter().filter_map(|of| of.stage.jobs.get(index)).collect();
        let name = jobs.first()?.name.clone();
        let row = rows.iter().position(|row| row.jobs.contains(&index))?;
        // What clients without a schedule did beside it is in the figures of the row.
        let is_alone = rows[row].jobs.len() == 1
            && rows[row].clone.is_none()
            && jobs.iter().all(|job| is_open(job));
        Some(JobSchedule { job: name, row, is_alone, schedule: schedule(kept, &jobs) })
    };
    of_jobs.into_iter().filter_map(report).collect()
}

fn schedule(kept: &schema::Schedule, jobs: &[&FileJobSpec]) -> ScheduleReport {
    // Clients have their rates joined; all of them may have peaked at once.
    let peaks = kept.rates().map(|rate| rate.parse::<RateProfile>().ok().map(|rate| rate.peak()));
    let lasted: Option<Vec<u64>> = jobs.iter().map(|job| job.duration_ns).collect();
    let lasted = lasted.and_then(|all| all.into_iter().max());
    ScheduleReport {
        rate: kept.rate.clone(),
        rate_peak: peaks.sum::<Option<f64>>().map(OpRate),
        arrivals: kept.arrivals.clone(),
        max_in_flight: kept.max_in_flight,
        lasted: lasted.map(Duration::from_nanos),
        offered_count: kept.offered_count,
        late_count: kept.late_count,
        skipped_count: kept.skipped_count,
        delay_max: kept.delay_max_ns.map(Duration::from_nanos),
    }
}

/// Returns what a row says of its job; what is known only of the run is left empty.
pub(super) fn described(job: &FileJobSpec) -> PhaseRow {
    let empty = PhaseRow {
        name: String::new(),
        work: String::new(),
        block: None,
        workers: job.clones,
        depth: Some(job.depth),
        direct: false,
        interface: None,
        caches: CacheState::NotKnown,
        files_count: None,
        file_size: None,
        duration: job.duration_ns.map(Duration::from_nanos),
        served_by: Vec::new(),
        figures: Default::default(),
    };
    match &job.work {
        FileWorkSpec::Fill(fill) => PhaseRow {
            work: "fill".to_owned(),
            block: Some(Bytes(u64::from(fill.block_bytes)).to_string()),
            direct: fill.direct,
            ..empty
        },
        FileWorkSpec::Blocks(blocks) => PhaseRow {
            work: work_of(blocks),
            block: Some(blocks_text(blocks)),
            direct: blocks.direct,
            files_count: Some(files_count(&blocks.files, job.clones)),
            file_size: Some(span_text(blocks.files.size_bytes.min, blocks.files.size_bytes.max)),
            ..empty
        },
        FileWorkSpec::Names(names) => PhaseRow {
            work: act_of(names).to_owned(),
            depth: Some(1),
            files_count: Some(names.names_count(job.clones)),
            ..empty
        },
    }
}

/// Returns what a job does to blocks, in fio's words.
fn work_of(blocks: &BlocksSpec) -> String {
    let random = blocks.order != BlockOrderSpec::Sequential;
    let name = match (blocks.read_percent, random) {
        (100, false) => "read",
        (100, true) => "randread",
        (0, false) => "write",
        (0, true) => "randwrite",
        (_, false) => "rw",
        (_, true) => "randrw",
    };
    match blocks.read_percent {
        0 | 100 => name.to_owned(),
        reads => format!("{name} {reads}/{}", 100 - reads),
    }
}

fn blocks_text(blocks: &BlocksSpec) -> String {
    let (reads, writes) = (sizes_text(&blocks.read_blocks), sizes_text(&blocks.write_blocks));
    match blocks.read_percent {
        100 => reads,
        0 => writes,
        _ if reads == writes => reads,
        _ => format!("{reads} / {writes}"),
    }
}

fn sizes_text(sizes: &BlockSizesSpec) -> String {
    match sizes {
        BlockSizesSpec::FixedBytes(bytes) => Bytes(*bytes).to_string(),
        BlockSizesSpec::RangeBytes(range) => span_text(range.min, range.max),
        BlockSizesSpec::Shares(shares) => {
            let sizes = || shares.iter().map(|share| share.size_bytes);
            span_text(sizes().min().unwrap_or_default(), sizes().max().unwrap_or_default())
        }
    }
}

fn span_text(min: u64, max: u64) -> String {
    if min == max { Bytes(min).to_string() } else { format!("{}–{}", Bytes(min), Bytes(max)) }
}

fn files_count(files: &JobFilesSpec, clones: u32) -> u64 {
    match files.names.len() {
        0 => u64::from(files.count) * u64::from(clones),
        names => names as u64,
    }
}

fn act_of(names: &NamesSpec) -> &'static str {
    match names.act {
        NameActSpec::MakeTree => "make tree",
        NameActSpec::Create { .. } => "create",
        NameActSpec::Stat => "stat",
        NameActSpec::Open { .. } => "open, read, close",
        NameActSpec::Rename => "rename",
        NameActSpec::Remove => "remove",
        NameActSpec::RemoveTree => "remove tree",
    }
}
