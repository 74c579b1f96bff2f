//! Small specs for tests.

use plimsoll_model::SyncMode;

use super::*;

pub(super) const BLOCK: u64 = 4_096;

pub(super) fn files(count: u32, size: u64) -> JobFilesSpec {
    JobFilesSpec {
        directories: vec!["/mnt/a".to_owned()],
        names: Vec::new(),
        name_format: "$jobname.$jobnum.$filenum".to_owned(),
        count,
        size_bytes: SpanSpec::of(size),
        existing: false,
        destroys: false,
    }
}

pub(super) fn blocks(files: JobFilesSpec, order: BlockOrderSpec, read_percent: u32) -> BlocksSpec {
    BlocksSpec {
        files,
        read_percent,
        read_blocks: BlockSizesSpec::FixedBytes(BLOCK),
        write_blocks: BlockSizesSpec::FixedBytes(BLOCK),
        order,
        repeats: false,
        seed: None,
        direct: false,
        sync: SyncMode::Off,
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        invalidates: false,
    }
}

pub(super) fn fill(job: &str, clones: u32, files: JobFilesSpec) -> FileWorkSpec {
    let files = vec![FillFilesSpec { job: job.to_owned(), clones, files }];
    FileWorkSpec::Fill(FillSpec { files, block_bytes: 1 << 20, direct: false })
}

pub(super) fn tree(depth: u32, branching: u32, entries: u64) -> TreeSpec {
    TreeSpec {
        directories: vec!["/mnt/a".to_owned()],
        name: "test-dir.0-0".to_owned(),
        depth,
        branching,
        entries_per_directory: entries,
        leaves_only: false,
        per_clone: false,
        shared_names: false,
        of_directories: false,
    }
}

pub(super) fn names(tree: &TreeSpec, act: NameActSpec, shift: u32) -> FileWorkSpec {
    FileWorkSpec::Names(NamesSpec { tree: tree.clone(), act, shift, shuffled: false })
}

pub(super) fn job(clones: u32, work: FileWorkSpec) -> FileJobSpec {
    FileJobSpec::plain("job", clones, work)
}

/// Returns a spec with one job in each stage.
pub(super) fn spec(jobs: impl IntoIterator<Item = FileJobSpec>) -> FilesSpec {
    let stage = |job| FileStageSpec::plain("stage", vec![job]);
    FilesSpec {
        schema: FILES_SCHEMA.to_owned(),
        name: "test".to_owned(),
        seed: 7,
        verify: true,
        stages: jobs.into_iter().map(stage).collect(),
    }
}
