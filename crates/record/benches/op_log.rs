//! What the op log costs: processor time and bytes per operation written, processor time per row
//! read.
//!
//! `cargo bench -p plimsoll-record` writes to the system's temporary directory, three times each
//! stream.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, reads its own processor time and may fail loudly"
)]

use plimsoll_model::{
    EndpointId, ErrorClass, Moment, ObjectId, OpKind, OpRecord, PackedOp, RunId, StageId, WallTime,
    WorkerId,
};
use plimsoll_record::{OpLog, OpLogWriter, RunDirectory};

const OPS: usize = 4_000_000;
const WORKERS: u32 = 32;

/// A small generator (SplitMix64), so that every run writes the same rows.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a log-normal value around `median`.
    fn log_normal(&mut self, median: f64, sigma: f64) -> u64 {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let (a, b) = (uniform(self.next()).max(1e-12), uniform(self.next()));
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        (median * (sigma * normal).exp()) as u64
    }
}

/// What the 32 workers do.
#[derive(Clone, Copy)]
enum Load {
    /// The mix of `s3 mixed` in a closed loop: one size, objects picked at random.
    Mixed,
    /// The same in an open loop, with sizes about 64 KiB.
    MixedOpenRandomSizes,
    /// New objects of 1 KiB in a closed loop.
    Put,
}

/// Returns what the workers do on two endpoints with latencies about 1 ms, in the order of
/// completion.
fn stream(load: Load) -> Vec<PackedOp> {
    let mut random = Random(7);
    let mut puts = [0u64; WORKERS as usize];
    let mut free_at = [0u64; WORKERS as usize];
    let mut ops: Vec<OpRecord> = Vec::with_capacity(OPS);
    for _ in 0..OPS {
        let worker = (0..WORKERS).min_by_key(|worker| free_at[*worker as usize]).unwrap();
        let kind = match random.next() % 100 {
            _ if matches!(load, Load::Put) => OpKind::Put,
            0..45 => OpKind::Get,
            45..75 => OpKind::Stat,
            75..90 => OpKind::Put,
            _ => OpKind::Delete,
        };
        let intended = free_at[worker as usize];
        let open_random = matches!(load, Load::MixedOpenRandomSizes);
        let start = intended + if open_random { random.log_normal(20_000.0, 1.0) } else { 0 };
        let took = random.log_normal(1_000_000.0, 0.4);
        let end = start + took;
        free_at[worker as usize] = end + 2_000 + random.next() % 1_000;
        let size = if open_random { random.log_normal(65_536.0, 0.5) } else { 1_024 };
        let object = match load {
            Load::Put => ObjectId::new(WorkerId(worker), puts[worker as usize]),
            _ => ObjectId::new(
                WorkerId((random.next() % u64::from(WORKERS)) as u32),
                random.next() % 2_500,
            ),
        };
        puts[worker as usize] += 1;
        let sent = (kind == OpKind::Put).then_some(start + took / 2);
        ops.push(OpRecord {
            stage: StageId(1),
            worker: WorkerId(worker),
            endpoint: EndpointId((random.next() % 2) as u16),
            object: Some(object),
            bytes: if kind.moves_bytes() { size } else { 0 },
            intended: Moment::from_ns(intended),
            first_byte: Some(Moment::from_ns(
                (start + took * 3 / 4 + random.next() % 50_000).min(end),
            )),
            last_byte_sent: sent.map(Moment::from_ns),
            outcome: if random.next().is_multiple_of(1_000) {
                ErrorClass::Server
            } else {
                ErrorClass::Ok
            },
            ..OpRecord::plain(kind, Moment::from_ns(start), Moment::from_ns(end))
        });
    }
    ops.sort_by_key(|op| op.end);
    ops.iter().map(PackedOp::from).collect()
}

/// Returns the processor time this thread has used.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn per_op(ns: u64) -> f64 {
    ns as f64 / OPS as f64
}

fn main() {
    // `cargo test --all-targets` starts benches too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for (name, load) in [
        ("mixed, closed, one size", Load::Mixed),
        ("mixed, open, random sizes", Load::MixedOpenRandomSizes),
        ("put, closed, one size", Load::Put),
    ] {
        let ops = stream(load);
        for _ in 0..3 {
            measure(name, &ops);
        }
    }
}

fn measure(name: &str, ops: &[PackedOp]) {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ops")).unwrap();
    std::fs::write(place.path().join("run.json"), "{}").unwrap();
    let directory = RunDirectory::open(place.path()).unwrap();
    // Without a manifest the op log is held against none.
    std::fs::remove_file(place.path().join("run.json")).unwrap();
    let endpoints = ["http://10.0.0.1:9000", "http://10.0.0.2:9000"].map(str::to_owned);
    let run_id = RunId::parse("bench").unwrap();

    let before = cpu_ns();
    let mut writer = OpLogWriter::new(&directory, &run_id, WallTime::from_unix_ns(0), &endpoints);
    for ops in ops.chunks(500) {
        writer.append_packed(ops).unwrap();
    }
    let totals = writer.finish().unwrap();
    let write_ns = cpu_ns() - before;

    let before = cpu_ns();
    let mut latency_ns = 0;
    let mut visit = |op: &OpRecord| latency_ns += op.latency().as_nanos();
    let rows = OpLog::open(&directory).unwrap().scan(&mut visit).unwrap();
    let read_ns = cpu_ns() - before;
    assert_eq!((rows, totals.rows), (OPS as u64, OPS as u64));
    println!(
        "{name}: write {:.0} ns/op, {:.2} bytes/op; read {:.0} ns/row; mean latency {} ns",
        per_op(write_ns),
        per_op(totals.bytes),
        per_op(read_ns),
        latency_ns / OPS as u128,
    );
    for column in columns(&directory) {
        println!("  {column}");
    }
}

/// Returns what each column of the first part takes.
fn columns(directory: &RunDirectory) -> Vec<String> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let part = std::fs::File::open(directory.ops_path().join("part-000000.parquet")).unwrap();
    let reader = SerializedFileReader::new(part).unwrap();
    let group = reader.metadata().row_group(0);
    let rows = group.num_rows() as f64;
    let bytes = |column: &parquet::file::metadata::ColumnChunkMetaData| {
        let (packed, raw) = (column.compressed_size() as f64, column.uncompressed_size() as f64);
        format!("{:20} {:.2} ({:.2})", column.column_path().string(), packed / rows, raw / rows)
    };
    group.columns().iter().map(bytes).collect()
}
