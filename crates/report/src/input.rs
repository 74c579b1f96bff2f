//! Everything a report says about a run, as values.

use std::time::Duration;

use plimsoll_analysis::StageAnalysis;
use plimsoll_model::{EndpointId, ErrorClass, Moment, OpKind, OpRate, RunId, Seed, WallTime};

use crate::ScheduleReport;
use crate::proof::{Certificate, Verdict};

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoopModel {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, but not more than this many per second in all; waiting for the cap is not in the
    /// latency.
    Capped {
        /// The cap over all workers.
        rate: OpRate,
    },
    /// On a schedule, whatever the target does; the report says which.
    Open,
}

/// Whether the run came to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It did.
    Complete,
    /// It was ended early by the user; the figures are those of what ran.
    Interrupted,
    /// It never said that it ended: it runs still, or was killed.
    Killed,
    /// It could not go on.
    Failed,
}

/// What a stage beside the measured one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageWork {
    /// Objects written or removed.
    pub objects: u64,
    /// Bytes written; 0 where none are.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
}

/// An error as the target or the system worded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// Its class.
    pub class: ErrorClass,
    /// The operation it ended.
    pub kind: OpKind,
    /// Where it happened.
    pub endpoint: Option<EndpointId>,
    /// The protocol's own number (HTTP status, errno), where it is known.
    pub status: Option<u16>,
    /// Its text.
    pub message: String,
}

/// The op log held against the workers' own counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpLogCheck {
    /// Rows of the measured stage in the op log.
    pub rows: u64,
    /// Operations of the measured stage as counted by the workers.
    pub counted: u64,
}

/// How read content was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationMode {
    /// Every byte of every read.
    EveryByte,
    /// Every byte of what the run wrote; others were read as well.
    Partial,
    /// The length only, because the content is not known.
    LengthOnly,
    /// Switched off; the length is still checked.
    Off,
}

/// How much read content was checked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// How.
    pub mode: VerificationMode,
    /// Bytes compared; where only lengths are, bytes read.
    pub bytes: u64,
    /// With [`VerificationMode::Partial`], bytes that were read and not compared.
    pub unverified_bytes: u64,
}

/// What the proofs said of the instrument that measured; of a certificate that cannot be read
/// nothing is known and nothing passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateLine {
    /// The version of plimsoll that was proved.
    pub tool_version: Option<String>,
    /// The machine it was proved on.
    pub machine: Option<String>,
    /// The seed of the proofs.
    pub seed: Option<u64>,
    /// How many proofs passed.
    pub passed_count: u64,
    /// How many did not.
    pub failed_count: u64,
    /// When, as the certificate says it.
    pub when: Option<String>,
}

impl From<&Certificate> for CertificateLine {
    fn from(certificate: &Certificate) -> Self {
        Self {
            tool_version: Some(certificate.tool_version.clone()),
            machine: Some(certificate.machine.clone()),
            seed: Some(certificate.seed),
            passed_count: certificate.count(Verdict::Pass) as u64,
            failed_count: certificate.count(Verdict::Fail) as u64,
            when: Some(certificate.made_at.clone()),
        }
    }
}

/// Everything a report says about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The version of plimsoll that made the run; `None` for a record made elsewhere.
    pub tool_version: Option<String>,
    /// The run's id; `None` for a record made elsewhere.
    pub run_id: Option<RunId>,
    /// What ran, as the command names it: `s3 get`.
    pub what: String,
    /// The command line with secrets removed.
    pub command: String,
    /// The target in one line.
    pub target: String,
    /// Why a stop rule ended the measured stage before its time was up, if one did.
    pub ended_because: Option<String>,
    /// The target's addresses by [`EndpointId`].
    pub endpoints: Vec<String>,
    /// The clients by their number; empty when there is only one.
    pub clients: Vec<String>,
    /// How many seconds the local time is ahead of UTC; `None` when only UTC is to be shown.
    pub utc_offset_seconds: Option<i32>,
    /// The kind of record that was read when it is not plimsoll's own: `warp raw file`.
    pub foreign: Option<String>,
    /// When the measured stage began.
    pub started: WallTime,
    /// When operations start.
    pub loop_model: LoopModel,
    /// The seed of all choices, where it is known.
    pub seed: Option<Seed>,
    /// Workers of the measured stage.
    pub concurrency: u32,
    /// Threads they ran on, where it is known.
    pub threads: Option<u32>,
    /// What was made before the measured stage.
    pub prepare: Option<StageWork>,
    /// What was removed after it.
    pub cleanup: Option<StageWork>,
    /// The measured stage.
    pub analysis: StageAnalysis,
    /// First errors, a few of each class.
    pub errors: Vec<ErrorSample>,
    /// What of the record could not be read or used, a sentence each.
    pub losses: Vec<String>,
    /// Remarks that are no warnings.
    pub notes: Vec<String>,
    /// Where the run directory lies; `None` when nothing was kept.
    pub run_directory: Option<String>,
    /// Whether the run came to its own end.
    pub state: RunState,
    /// The op log held against the counters; `None` when no log was kept.
    pub op_log: Option<OpLogCheck>,
    /// How read content was checked; `None` when nothing is read.
    pub verification: Option<Verification>,
    /// User and system CPU time of the workers and the recorder during the measured stage.
    pub client_cpu: Option<Duration>,
    /// How long workers waited for the recorder, all added up.
    pub recorder_wait: Duration,
    /// The schedule of an open loop; `None` in others.
    pub schedule: Option<ScheduleReport>,
    /// What the proofs said of the instrument, if the run was given their certificate.
    pub certificate: Option<CertificateLine>,
    /// Whether time was that of a simulation: what this machine did while it ran says nothing then,
    /// and is not shown.
    pub virtual_time: bool,
    /// The hash of all operations as they were planned.
    pub stream_hash: Option<String>,
    /// How many contents that were read were wrong, by the name of what was wrong with them; those
    /// that were too short or too long are `short` and `long`.
    pub wrong: Vec<(String, u64)>,
}

impl RunReport {
    /// Returns the name of an endpoint.
    pub(crate) fn endpoint(&self, id: EndpointId) -> String {
        let name = self.endpoints.get(usize::from(id.0));
        name.cloned().unwrap_or_else(|| format!("endpoint {}", id.0))
    }

    /// Returns the name of a client.
    pub(crate) fn client(&self, number: u16) -> String {
        let name = self.clients.get(usize::from(number));
        name.cloned().unwrap_or_else(|| format!("client {number}"))
    }

    /// Returns when a moment of the run was.
    pub(crate) fn wall_time(&self, at: Moment) -> WallTime {
        self.started.after(at.since(self.analysis.started))
    }
}
