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
    /// When the target had told where the content of a write goes, where it is asked for that apart
    /// (SeaweedFS assigns a file id first).
    pub assigned: Option<Moment>,
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
    /// Whether it was due in the measured span of its job, and not in a ramp of its worker.
    pub is_measured: bool,
}

/// What a first look at an operation needs of its record: who did what at which address, from when
/// to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpOutline {
    /// The stage it belongs to.
    pub stage: StageId,
    /// The worker that issued it.
    pub worker: WorkerId,
    /// What it did.
    pub kind: OpKind,
    /// The address it went to.
    pub endpoint: EndpointId,
    /// When it was issued.
    pub start: Moment,
    /// When the answer was complete, or the failure known.
    pub end: Moment,
    /// Whether it was due in the measured span of its job.
    pub is_measured: bool,
}

/// Sees operations, on a thread of its own.
pub type Visit<'a, R = OpRecord> = dyn FnMut(&R) + Send + 'a;

impl OpRecord {
    /// Returns an operation on one object that succeeded, of the first worker, of which nothing
    /// else is known.
    pub const fn plain(kind: OpKind, start: Moment, end: Moment) -> Self {
        Self {
            stage: StageId(0),
            job: JobId(0),
            worker: WorkerId(0),
            kind,
            endpoint: EndpointId(0),
            object: None,
            objects_count: 1,
            bytes: 0,
            intended: start,
            start,
            assigned: None,
            first_byte: None,
            last_byte_sent: None,
            end,
            outcome: ErrorClass::Ok,
            attempts: 1,
            is_measured: true,
        }
    }

    /// Returns its outline.
    pub fn outline(&self) -> OpOutline {
        let Self { stage, worker, kind, endpoint, start, end, is_measured, .. } = *self;
        OpOutline { stage, worker, kind, endpoint, start, end, is_measured }
    }

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
            assigned: self.assigned.map(moment),
            first_byte: self.first_byte.map(moment),
            last_byte_sent: self.last_byte_sent.map(moment),
            end: moment(self.end),
            ..*self
        }
    }

    /// Returns how long it took to be told where the content goes, and to bring it there: start to
    /// `assigned`, and from there to the end. With retries the first holds all attempts but what
    /// the last one spent on its upload.
    pub fn parts(&self) -> Option<(Duration, Duration)> {
        let assigned = self.assigned?;
        Some((assigned.since(self.start), self.end.since(assigned)))
    }

    /// Returns the time to first byte: for an upload from the last body byte sent to the first byte
    /// of the answer, otherwise from start to the first byte of the answer's body.
    pub fn ttfb(&self) -> Option<Duration> {
        let first = self.first_byte?;
        Some(first.since(self.last_byte_sent.unwrap_or(self.start)))
    }
}

/// Nanoseconds between two moments in so many bytes, at most 7; all ones means unknown. What is
/// longer counts as the longest: 78 hours in 6 bytes, 18 minutes in 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Between<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Between<BYTES> {
    const NONE: Self = Self([u8::MAX; BYTES]);
    const MAX: u64 = (1 << (8 * BYTES)) - 2;

    #[inline]
    fn new(from: Moment, to: Moment) -> Self {
        let ns = to.as_ns().saturating_sub(from.as_ns()).min(Self::MAX).to_le_bytes();
        Self(std::array::from_fn(|byte| ns[byte]))
    }

    #[inline]
    fn optional(from: Moment, to: Option<Moment>) -> Self {
        to.map_or(Self::NONE, |to| Self::new(from, to))
    }

    #[inline]
    fn after(self, from: Moment) -> Moment {
        let mut ns = [0; 8];
        ns[..BYTES].copy_from_slice(&self.0);
        Moment::from_ns(from.as_ns() + u64::from_le_bytes(ns))
    }

    #[inline]
    fn optional_after(self, from: Moment) -> Option<Moment> {
        (self != Self::NONE).then(|| self.after(from))
    }
}

/// A number in the lower bits and another one above them, which a shift tells apart.
const ATTEMPTS_SHIFT: u32 = 56;
const ENDPOINT_SHIFT: u32 = 48;
const STAGE_SHIFT: u32 = 24;
/// The bit of an operation that is not measured; kinds have fewer.
const IN_RAMP: u8 = 1 << 7;

/// An `OpRecord` in 64 bytes, one cache line, for the queues between workers and recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PackedOp {
    /// With the attempts above it: 56 bits hold two years.
    intended_ns: u64,
    object: u64,
    /// With the endpoint above it: 48 bits hold 256 TiB.
    bytes: u64,
    /// With the stage above it: there are no more workers than owners of objects.
    worker: u32,
    objects_count: u32,
    start: Between<6>,
    first_byte: Between<6>,
    last_byte_sent: Between<6>,
    end: Between<6>,
    assigned: Between<5>,
    job: u8,
    /// The number of the kind, with [`IN_RAMP`] above it.
    kind: u8,
    outcome: ErrorClass,
}

const _: () = assert!(size_of::<PackedOp>() == 64);

const fn lower(bits: u32, of: u64) -> u64 {
    of & ((1 << bits) - 1)
}

impl From<&OpRecord> for PackedOp {
    #[inline]
    fn from(op: &OpRecord) -> Self {
        debug_assert!(op.intended <= op.start && op.start <= op.end);
        debug_assert!(op.worker.0 >> STAGE_SHIFT == 0, "no more than owners of objects");
        let intended_ns = op.intended.as_ns().min(lower(ATTEMPTS_SHIFT, u64::MAX));
        let bytes = op.bytes.min(lower(ENDPOINT_SHIFT, u64::MAX));
        let stage = u32::from(op.stage.0) << STAGE_SHIFT;
        Self {
            intended_ns: intended_ns | u64::from(op.attempts) << ATTEMPTS_SHIFT,
            object: op.object.map_or(u64::MAX, ObjectId::as_u64),
            bytes: bytes | u64::from(op.endpoint.0) << ENDPOINT_SHIFT,
            worker: lower(STAGE_SHIFT, u64::from(op.worker.0)) as u32 | stage,
            objects_count: op.objects_count,
            start: Between::new(op.intended, op.start),
            first_byte: Between::optional(op.start, op.first_byte),
            last_byte_sent: Between::optional(op.start, op.last_byte_sent),
            end: Between::new(op.start, op.end),
            assigned: Between::optional(op.start, op.assigned),
            job: op.job.0,
            kind: op.kind as u8 | if op.is_measured { 0 } else { IN_RAMP },
            outcome: op.outcome,
        }
    }
}

impl PackedOp {
    /// Marks it as one that was not due in the measured span of its job.
    #[inline]
    pub fn leave_out(&mut self) {
        self.kind |= IN_RAMP;
    }
}

impl From<&PackedOp> for OpRecord {
    #[inline]
    fn from(packed: &PackedOp) -> Self {
        let intended = Moment::from_ns(lower(ATTEMPTS_SHIFT, packed.intended_ns));
        let start = packed.start.after(intended);
        Self {
            stage: StageId((packed.worker >> STAGE_SHIFT) as u8),
            job: JobId(packed.job),
            worker: WorkerId(lower(STAGE_SHIFT, u64::from(packed.worker)) as u32),
            kind: OpKind::from_number(packed.kind & !IN_RAMP).expect("packed from a kind"),
            endpoint: EndpointId((packed.bytes >> ENDPOINT_SHIFT) as u16),
            object: ObjectId::from_u64(packed.object),
            objects_count: packed.objects_count,
            bytes: lower(ENDPOINT_SHIFT, packed.bytes),
            intended,
            start,
            assigned: packed.assigned.optional_after(start),
            first_byte: packed.first_byte.optional_after(start),
            last_byte_sent: packed.last_byte_sent.optional_after(start),
            end: packed.end.after(start),
            outcome: packed.outcome,
            attempts: (packed.intended_ns >> ATTEMPTS_SHIFT) as u8,
            is_measured: packed.kind & IN_RAMP == 0,
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
            assigned: Some(Moment::from_ns(1_700)),
            first_byte: Some(Moment::from_ns(2_500)),
            last_byte_sent: None,
            end: Moment::from_ns(9_000_000_000_000),
            outcome: ErrorClass::Truncated,
            attempts: 2,
            is_measured: true,
        }
    }

    #[test]
    fn packing_loses_nothing() {
        let whole = sample();
        let sparse =
            OpRecord { object: None, first_byte: None, last_byte_sent: Some(whole.start), ..whole };
        let largest = OpRecord {
            stage: StageId(u8::MAX),
            worker: WorkerId(ObjectId::OWNER_MAX),
            endpoint: EndpointId(u16::MAX),
            bytes: (1 << 48) - 1,
            intended: Moment::from_ns((1 << 55) - 1),
            start: Moment::from_ns(1 << 55),
            assigned: None,
            attempts: u8::MAX,
            end: Moment::from_ns((1 << 55) + (1 << 47)),
            first_byte: None,
            ..whole
        };
        for op in [whole, sparse, largest] {
            assert_eq!(OpRecord::from(&PackedOp::from(&op)), op);
            let in_ramp = OpRecord { is_measured: false, ..op };
            let mut packed = PackedOp::from(&op);
            packed.leave_out();
            assert_eq!(
                [packed, PackedOp::from(&in_ramp)].map(|of| OpRecord::from(&of)),
                [in_ramp; 2]
            );
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
        let parts = download.parts().map(|(assign, upload)| [assign.as_nanos(), upload.as_nanos()]);
        assert_eq!(parts, Some([200, 9_000_000_000_000 - 1_700]));
        assert_eq!(OpRecord { assigned: None, ..download }.parts(), None);
    }
}
