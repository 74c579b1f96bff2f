//! The run directory as its users meet it: what is written is read back, what cannot be is refused
//! clearly.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

mod directory;
mod flat;
mod formats;
mod lease;
mod merge;
mod op_log;
mod outlines;
mod salvage;
mod summary;

use plimsoll_model::{
    EndReason, EndpointId, ErrorClass, JobId, Lookup, Moment, ObjectId, OpKind, OpRecord, RunId,
    StageId, StageKind, TargetKind, WallTime, WorkerId,
};
use plimsoll_record::schema::{
    self, Cleanup, CleanupState, ClockInfo, FirstError, LoopModel, Machine, MergedJob, MergedRun,
    MergedStage, Recorder, RunSchema, RunState, Stage, StageJob, Target, Tool,
};
use plimsoll_record::{Manifest, OpLogWriter, RunDirectory};

/// The wall time of the runs' epoch.
const EPOCH: WallTime = WallTime::from_unix_ns(1_795_251_600_000_000_000);

fn run_id() -> RunId {
    RunId::new("s3-get", EPOCH, 0)
}

fn manifest() -> Manifest {
    Manifest {
        schema: RunSchema::V1,
        run_id: run_id().to_string(),
        state: RunState::Running,
        state_reason: None,
        tool: Tool {
            name: Some("plimsoll".to_owned()),
            version: Some("0.1.0".to_owned()),
            commit: None,
            profile: None,
            built_for: None,
        },
        command_line: vec!["plimsoll".to_owned(), "s3".to_owned(), "get".to_owned()],
        started_unix_ns: EPOCH.as_unix_ns(),
        started_at: EPOCH.to_string(),
        clock: ClockInfo { source: Some("virtual".to_owned()), resolution_ns: None },
        seed: u64::MAX,
        machine: Machine { cores_count: Some(2), ..Machine::default() },
        target: Target {
            kind: Some(TargetKind::S3),
            endpoints: endpoints(),
            bucket: Some("bench".to_owned()),
            prefix: Some("plimsoll/".to_owned()),
            region: None,
            lookup: Some(Lookup::Path),
            tls: Some(false),
            payload_signing: Some("unsigned".to_owned()),
            embedded: false,
            files: None,
        },
        more_targets: Vec::new(),
        workload: serde_json::json!({"mix": {"GET": 1}}).into(),
        stages: vec![Stage {
            started_ns: Some(0),
            jobs: vec![StageJob::of("get", 20, LoopModel::Closed)],
            ..Stage::begun(0, StageKind::Measure, "get", LoopModel::Closed, (20, 2))
        }],
        recorder: Some(Recorder { rows_count: 7, parts_count: 1, wait_ns: 0 }),
        cleanup: Cleanup {
            state: CleanupState::Pending,
            objects_removed_count: None,
            files_removed_count: None,
            took_ns: None,
        },
        advice: vec!["the clock is coarse".to_owned()],
        notes: Vec::new(),
        first_errors: vec![FirstError {
            class: ErrorClass::Server,
            kind: OpKind::Get,
            endpoint: Some(endpoints()[0].clone()),
            at_ns: Some(5),
            stage_index: Some(0),
            job_index: Some(0),
            status: Some(500),
            message: "500 InternalError".to_owned(),
        }],
        receipt: None,
        agents: vec![schema::Agent {
            name: "node1".to_owned(),
            id: "a1".to_owned(),
            version: "0.1.0".to_owned(),
            machine: None,
            weight: 2,
            threads_count: 4,
            clock: vec![schema::ClockReading {
                stage_index: 0,
                at_ns: 5,
                offset_ns: -7,
                uncertainty_ns: 2,
            }],
            lost: Some(schema::AgentLoss {
                at_ns: 9,
                heard_ns: 6,
                stage_index: Some(1),
                why: "it was not responding".to_owned(),
            }),
            rows_count: None,
            receipt: None,
            losses: Vec::new(),
            cpu_ns: vec![Some(3), None],
        }],
        merged: vec![MergedRun {
            run_id: "s3-get-20261121t090000z-aaaa".to_owned(),
            hostname: None,
            started_unix_ns: EPOCH.as_unix_ns(),
            seed: Some(7),
            prefix: None,
            worker_index_first: 0,
            workers_count: 20,
            stages: vec![MergedStage {
                index: 0,
                planned_index: Some(0),
                started_ns: Some(0),
                ended_ns: Some(5),
                ended_by: Some(EndReason::Duration),
                jobs: vec![MergedJob { worker_first: 0, workers_count: 20 }],
            }],
            workload: None,
        }],
        events: Vec::new(),
        scraped: Vec::new(),
        virtual_time: false,
        certificate: None,
    }
}

fn endpoints() -> Vec<String> {
    ["http://10.0.0.1:9000", "http://10.0.0.2:9000"].map(str::to_owned).to_vec()
}

fn new_run(path: &std::path::Path) -> RunDirectory {
    RunDirectory::create(path, &manifest()).unwrap()
}

fn writer(directory: &RunDirectory) -> OpLogWriter {
    OpLogWriter::new(directory, &run_id(), EPOCH, &endpoints())
}

/// Returns the operation of that number, with every column taking several values and every nullable
/// one also none.
fn op(number: u64) -> OpRecord {
    let start = Moment::from_ns(number * 1_000 + 10);
    let later = |ns: u64| Moment::from_ns(start.as_ns() + ns);
    OpRecord {
        stage: StageId((number % 3) as u8),
        job: JobId((number % 2) as u8),
        worker: WorkerId((number * 7 % 70_000) as u32),
        endpoint: EndpointId((number % 2) as u16),
        object: (!number.is_multiple_of(4)).then(|| ObjectId::new(WorkerId(3), number * number)),
        objects_count: (number % 1_000) as u32,
        bytes: if number.is_multiple_of(3) { 0 } else { number * 1_000_003 },
        intended: Moment::from_ns(number * 1_000 + number % 11),
        first_byte: (!number.is_multiple_of(3)).then(|| later(50)),
        last_byte_sent: number.is_multiple_of(7).then(|| later(20)),
        outcome: ErrorClass::ALL[number as usize % ErrorClass::ALL.len()],
        attempts: 1 + (number % 2) as u8,
        is_measured: !number.is_multiple_of(3),
        ..OpRecord::plain(OpKind::ALL[(number % 5) as usize], start, later(100 + number % 13))
    }
}

/// What stands before the digits of a checksum.
const MARK: &str = "crc64-nvme:";

/// CRC-64/NVME bit by bit.
fn crc64_nvme(bytes: &[u8]) -> u64 {
    let step = |crc: u64| (crc >> 1) ^ if crc & 1 == 1 { 0x9a6c_9329_ac4b_c9b5 } else { 0 };
    let with = |crc: u64, byte: &u8| (0..8).fold(crc ^ u64::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u64::MAX, with)
}

/// Puts the checksum into a file that was changed on purpose.
fn seal_anew(bytes: &mut [u8]) {
    let at = mark_at(bytes) + MARK.len();
    bytes[at..at + 16].fill(b'0');
    let digits = format!("{:016x}", crc64_nvme(bytes));
    bytes[at..at + 16].copy_from_slice(digits.as_bytes());
}

/// Takes the mark of its checksum from a part.
fn unseal(bytes: &mut [u8]) {
    let at = mark_at(bytes);
    bytes[at] = b'-';
}

fn mark_at(bytes: &[u8]) -> usize {
    bytes.windows(MARK.len()).rposition(|window| window == MARK.as_bytes()).unwrap()
}

/// Returns a document without its checksum, as it is edited.
fn without_checksum(text: &str) -> String {
    let at = text.rfind(",\n  \"checksum\"").unwrap();
    format!("{}\n}}\n", &text[..at])
}
