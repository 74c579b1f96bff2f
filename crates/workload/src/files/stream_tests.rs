//! Syncs, limits, and reads of what was written at the same time.

use plimsoll_model::WorkerId;

use super::super::FilePlan;
use super::*;
use crate::Random;
use crate::testing::{files_of, on_files};

const BLOCK: u64 = 4_096;

/// Returns the work of a worker who writes two files of three blocks; `job` and `blocks` say more.
fn writing(job: &str, blocks: &str) -> FileStream {
    working("write: {block: 4KiB}, order: sequential", job, blocks)
}

fn working(work: &str, job: &str, blocks: &str) -> FileStream {
    let job = format!("{{{job}work: {{blocks: {{on: f, {work}{blocks}}}}}}}");
    files_of(&on_files("f: {files: 2, size: 12KiB}", &[job])).stream(0, WorkerId(0), 0)
}

/// Returns a short text of all operations: `w0` is a write to file 0, `f` an fsync, `d` an
/// fdatasync; `!` stands before what has to wait.
fn told(mut stream: FileStream) -> String {
    let mut text = Vec::new();
    loop {
        let waits = if stream.must_drain() { "!" } else { "" };
        let Some(op) = stream.next_op() else { break };
        text.push(match op {
            FileOp::Block(op) => format!("{waits}{}{}", if op.write { 'w' } else { 'r' }, op.file),
            FileOp::Sync { file, data_only } => {
                assert!(stream.must_drain(), "a sync under way holds up the next operation");
                format!("{waits}{}{file}", if data_only { 'd' } else { 'f' })
            }
            FileOp::Name(_) => panic!("there are no names"),
        });
        stream.completed(&op, true);
    }
    text.join(" ")
}

#[test]
fn syncs_come_after_so_many_writes_and_wait() {
    let check = |blocks: &str, text: &str| assert_eq!(told(writing("", blocks)), text);
    check("", "w0 w0 w0 w1 w1 w1");
    check(", fsync_every: 2", "w0 w0 !f0 w0 w1 !f1 w1 w1 !f1");
    check(", end_fsync: true", "w0 w0 w0 w1 w1 w1 !f0 !f1");
    let both = "w0 !d0 w0 !d0 w0 !f0 w1 !d1 w1 !d1 w1 !f1";
    check(", fsync_every: 3, fdatasync_every: 1", both);
    let reading = working("read: {block: 4KiB}, order: sequential", "", ", end_fsync: true");
    assert_eq!(told(reading), "r0 r0 r0 r1 r1 r1");
    let random = working("write: {block: 4KiB}, order: each_once", "", ", end_fsync: true");
    assert_eq!(told(random), "w0 w1 w0 w1 w0 w1 !f0 !f1");
}

#[test]
fn a_limit_ends_a_job_and_its_last_syncs_still_come() {
    let limited = |limit: &str| writing(limit, ", repeats: true, end_fsync: true");
    assert_eq!(told(limited("ops: {each: 8}, ")), "w0 w0 w0 w1 w1 w1 w0 w0 !f0 !f1");
    // The block that reaches the limit is done whole.
    assert_eq!(told(limited("bytes: {each: 4097B}, ")), "w0 w0 !f0 !f1");
    let mut ended = limited("bytes: {each: 400KiB}, ");
    ended.next_op().unwrap();
    ended.end();
    assert_eq!(told(ended), "!f0 !f1");
}

/// The files of a plan as they should be on the medium.
struct Disk {
    files: Vec<Vec<u8>>,
    generator: Generator,
}

impl Disk {
    fn new(plan: &FilePlan) -> Self {
        let sizes = (0..plan.table.len() as u32).map(|file| plan.table.entry(file).size);
        let files = sizes.map(|size| vec![0; size as usize]).collect();
        Self { files, generator: Generator::new(plan.seed.0) }
    }

    fn place(&mut self, op: &BlockOp) -> &mut [u8] {
        &mut self.files[op.file as usize][op.offset as usize..][..op.len as usize]
    }

    /// Does one operation; returns what is wrong with what it read.
    fn carry_out(&mut self, stream: &FileStream, op: &BlockOp) -> Option<Wrong> {
        if op.write {
            let mut buffer = vec![0; op.len as usize + 7];
            stream.fill(op, &self.generator, &mut buffer);
            self.place(op).copy_from_slice(&buffer[..op.len as usize]);
            return None;
        }
        let bytes = self.place(op).to_vec();
        stream.check(op, &self.generator, &bytes)
    }
}

/// Runs all stages of a plan, eight operations of random workers under way at once and done in
/// random order; returns how many reads there were and the first that was wrong.
fn run(
    plan: &FilePlan,
    disk: &mut Disk,
    mut spoil: impl FnMut(usize, &mut Disk),
) -> (u64, Option<Wrong>) {
    let mut random = Random::new(1, 2, 3);
    let mut reads = 0;
    for stage in 0..plan.plan.stages.len() {
        spoil(stage, disk);
        let mut streams: Vec<FileStream> = (0..plan.workers(stage))
            .map(|worker| plan.stream(stage, WorkerId(worker), 0))
            .collect();
        let mut under_way: Vec<(usize, BlockOp)> = Vec::new();
        let mut live = streams.len();
        let mut has_more = vec![true; live];
        while live > 0 || !under_way.is_empty() {
            let worker = random.below(streams.len() as u64) as usize;
            if under_way.len() < 8 && has_more[worker] {
                match streams[worker].next_op() {
                    Some(FileOp::Block(op)) => under_way.push((worker, op)),
                    Some(op) => streams[worker].completed(&op, true),
                    None => {
                        has_more[worker] = false;
                        live -= 1;
                    }
                }
                if random.below(3) > 0 {
                    continue;
                }
            }
            if under_way.is_empty() {
                continue;
            }
            let (worker, op) = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
            reads += u64::from(!op.write);
            let wrong = disk.carry_out(&streams[worker], &op);
            streams[worker].completed(&FileOp::Block(op), true);
            if wrong.is_some() {
                return (reads, wrong);
            }
        }
    }
    (reads, None)
}

fn mixed() -> FilePlan {
    let read = "{work: {blocks: {on: f, read: {block: 30000B}, order: sequential}}}";
    let mix = "{workers: 4, ops: {each: 600}, work: {blocks: {on: f, order: {zipf: 0.8}, read: \
               {block: 4KiB, percent: 60%}, write: {block: {range: 2KiB..20000B}}}}}";
    let stages = ["{workers: 3, work: {fill: f}}", read, mix, read];
    files_of(&on_files("f: {names: [x, y], size: 100000B..300000B}", &stages))
}

#[test]
fn what_workers_write_to_one_file_at_once_is_read_as_right() {
    let plan = mixed();
    let mut disk = Disk::new(&plan);
    let (reads, wrong) = run(&plan, &mut disk, |_, _| {});
    assert_eq!(wrong, None);
    assert!(reads > 1_000, "{reads}");
}

#[test]
fn a_byte_that_turned_is_found_with_its_place() {
    for stage in [1, 3] {
        let plan = mixed();
        let mut disk = Disk::new(&plan);
        let spoil = |now: usize, disk: &mut Disk| {
            if now == stage {
                disk.files[1][54_321] ^= 0x10;
            }
        };
        let (_, wrong) = run(&plan, &mut disk, spoil);
        let path = "/mnt/a/plimsoll/r/y";
        let text = format!("byte 54321 of `{path}` is wrong: 1 flipped bit in 1 byte");
        assert_eq!(wrong.map(|wrong| wrong.text), Some(text), "stage {stage}");
    }
}

#[test]
fn a_table_has_what_its_streams_could_not_check() {
    // Two files of three blocks each are read that nobody fills.
    let job = "{work: {blocks: {on: f, read: {block: 4KiB}}}}";
    let mut file = on_files("f: {files: 2, size: 12KiB}", &[job]);
    for (verify, expected) in [(true, 6 * BLOCK), (false, 0)] {
        file.verify = verify;
        let plan = files_of(&file);
        let generator = Generator::new(7);
        let mut stream = plan.stream(0, WorkerId(0), 0);
        while let Some(op) = stream.next_op() {
            let FileOp::Block(block) = op else { panic!("there are only blocks") };
            if verify {
                assert_eq!(stream.check(&block, &generator, &vec![0; block.len as usize]), None);
            }
            stream.completed(&op, true);
        }
        assert_eq!(plan.table.unverified_bytes(), 0, "it is still under way");
        drop(stream);
        assert_eq!(plan.table.unverified_bytes(), expected);
    }
}
