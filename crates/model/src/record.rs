//! The operation record: what is kept of every operation, and its packed form for queues.

use std::time::Duration;

use crate::{EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, StageId, WorkerId};

/// What is kept of one operation. Moments count from the run's epoch; unknown is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpRecord {
    /// The stage it belongs to.
    pub stage: StageId,
    /// The job within the stage.
    pub job: JobId,
    /// The worker that issued it.
    pub worker: WorkerId,
    /// What it did.
    pub kind: OpKind,
    /// The address it went to.
    pub endpoint: EndpointId,
    /// The object it was about; `None` for lists and batches.
    pub object: Option<ObjectId>,
    /// How many objects it handled: entries listed, keys deleted, 1 for the rest.
    pub objects_count: u32,
    /// Content bytes moved (download: received, upload: sent), headers not counted.
    pub bytes: u64,
    /// When the schedule wanted it to start.
    pub intended: Moment,
    /// When it was issued.
    pub start: Moment,
    /// When the first byte of the answer's body (download, list) or of the answer (others) was
    /// there.
    pub first_byte: Option<Moment>,
    /// When the last byte of the request's body had been handed to the socket.
    pub last_byte_sent: Option<Moment>,
    /// When the answer was complete, or the failure known.
    pub end: Moment,
    /// How it ended.
    pub outcome: ErrorClass,
    /// How many tries it took; 1 without retries.
    pub attempts: u8,
}

impl OpRecord {
    /// Returns the latency: intended start to end.
    pub fn latency(&self) -> Duration {
        self.end.since(self.intended)
    }

    /// Returns the service time: start to end.
    pub fn service_time(&self) -> Duration {
        self.end.since(self.start)
    }

    /// Returns the record with all moments `ns` earlier, as on a clock that began so much later.
    pub fn before(&self, ns: u64) -> Self {
        let moment = |at: Moment| Moment::from_ns(at.as_ns().saturating_sub(ns));
        Self {
            intended: moment(self.intended),
            start: moment(self.start),
            first_byte: self.first_byte.map(moment),
            last_byte_sent: self.last_byte_sent.map(moment),
            end: moment(self.end),
            ..*self
        }
    }

    /// Returns the time to first byte: for an upload from the last body byte sent to the first byte
    /// of the answer, otherwise from start to the first byte of the answer's body.
    pub fn ttfb(&self) -> Option<Duration> {
        let first = self.first_byte?;
        Some(first.since(self.last_byte_sent.unwrap_or(self.start)))
    }
}

/// Nanoseconds in 48 bits (up to 78 hours); all ones means unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ns48([u16; 3]);

impl Ns48 {
    const MAX: u64 = (1 << 48) - 2;
    const NONE: Self = Self([u16::MAX; 3]);

    fn new(from: Moment, to: Moment) -> Self {
        let ns = to.as_ns().saturating_sub(from.as_ns()).min(Self::MAX);
        Self([ns as u16, (ns >> 16) as u16, (ns >> 32) as u16])
    }

    fn optional(from: Moment, to: Option<Moment>) -> Self {
        to.map_or(Self::NONE, |to| Self::new(from, to))
    }

    fn after(self, from: Moment) -> Moment {
        let ns = self.0.iter().rev().fold(0u64, |ns, part| ns << 16 | u64::from(*part));
        Moment::from_ns(from.as_ns() + ns)
    }

    fn optional_after(self, from: Moment) -> Option<Moment> {
        (self != Self::NONE).then(|| self.after(from))
    }
}

/// An `OpRecord` in 64 bytes, one cache line, for the queues between workers and recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PackedOp {
    intended_ns: u64,
    object: u64,
    bytes: u64,
    worker: u32,
    objects_count: u32,
    start: Ns48,
    first_byte: Ns48,
    last_byte_sent: Ns48,
    end: Ns48,
    endpoint: u16,
    stage: u8,
    job: u8,
    kind: OpKind,
    outcome: ErrorClass,
    attempts: u8,
}

const _: () = assert!(size_of::<PackedOp>() == 64);

impl From<&OpRecord> for PackedOp {
    fn from(op: &OpRecord) -> Self {
        debug_assert!(op.intended <= op.start && op.start <= op.end);
        Self {
            intended_ns: op.intended.as_ns(),
            object: op.object.map_or(u64::MAX, ObjectId::as_u64),
            bytes: op.bytes,
            worker: op.worker.0,
            objects_count: op.objects_count,
            start: Ns48::new(op.intended, op.start),
            first_byte: Ns48::optional(op.start, op.first_byte),
            last_byte_sent: Ns48::optional(op.start, op.last_byte_sent),
            end: Ns48::new(op.start, op.end),
            endpoint: op.endpoint.0,
            stage: op.stage.0,
            job: op.job.0,
            kind: op.kind,
            outcome: op.outcome,
            attempts: op.attempts,
        }
    }
}

impl From<&PackedOp> for OpRecord {
    fn from(packed: &PackedOp) -> Self {
        let intended = Moment::from_ns(packed.intended_ns);
        let start = packed.start.after(intended);
        Self {
            stage: StageId(packed.stage),
            job: JobId(packed.job),
            worker: WorkerId(packed.worker),
            kind: packed.kind,
            endpoint: EndpointId(packed.endpoint),
            object: ObjectId::from_u64(packed.object),
            objects_count: packed.objects_count,
            bytes: packed.bytes,
            intended,
            start,
            first_byte: packed.first_byte.optional_after(start),
            last_byte_sent: packed.last_byte_sent.optional_after(start),
            end: packed.end.after(start),
            outcome: packed.outcome,
            attempts: packed.attempts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> OpRecord {
        OpRecord {
            stage: StageId(1),
            job: JobId(2),
            worker: WorkerId(70_000),
            kind: OpKind::Get,
            endpoint: EndpointId(300),
            object: Some(ObjectId::new(WorkerId(3), 99)),
            objects_count: 1,
            bytes: 10 << 20,
            intended: Moment::from_ns(1_000),
            start: Moment::from_ns(1_500),
            first_byte: Some(Moment::from_ns(2_500)),
            last_byte_sent: None,
            end: Moment::from_ns(9_000_000_000_000),
            outcome: ErrorClass::Truncated,
            attempts: 2,
        }
    }

    #[test]
    fn packing_loses_nothing() {
        let whole = sample();
        let sparse =
            OpRecord { object: None, first_byte: None, last_byte_sent: Some(whole.start), ..whole };
        for op in [whole, sparse] {
            assert_eq!(OpRecord::from(&PackedOp::from(&op)), op);
        }
    }

    #[test]
    fn times_run_between_the_documented_instants() {
        let download = sample();
        assert_eq!(download.latency(), Duration::from_nanos(9_000_000_000_000 - 1_000));
        assert_eq!(download.service_time(), Duration::from_nanos(9_000_000_000_000 - 1_500));
        assert_eq!(download.ttfb(), Some(Duration::from_nanos(1_000)));
        let upload = OpRecord { last_byte_sent: Some(Moment::from_ns(2_100)), ..download };
        assert_eq!(upload.ttfb(), Some(Duration::from_nanos(400)));
        assert_eq!(OpRecord { first_byte: None, ..download }.ttfb(), None);
    }
}
