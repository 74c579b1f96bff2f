//! What a test comes to, counted on the way of its operations to the op log.

use plimsoll_engine::{OpSink, OpSinkError};
use plimsoll_model::{ErrorClass, Moment, ObjectId, OpKind, OpRecord, PackedOp};
use plimsoll_report::s3_benchmark::TestFigures;

/// The way of a test's operations to the op log.
pub(super) struct Tally<'a> {
    log: &'a mut dyn OpSink,
    /// The objects of the population by their place in it: the op log names them as PUT did.
    population: &'a [ObjectId],
    named: Vec<PackedOp>,
    failed: [u64; ErrorClass::ALL.len()],
    figures: TestFigures,
    ended: Moment,
    written: Written,
}

/// What PUT of a loop left.
#[derive(Default)]
pub(super) struct Written {
    /// In order of their ids.
    pub(super) objects: Vec<ObjectId>,
    /// Objects whose PUT failed, which may be there all the same.
    pub(super) doubtful: Vec<ObjectId>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(log: &'a mut dyn OpSink, population: &'a [ObjectId]) -> Self {
        Self {
            log,
            population,
            named: Vec::new(),
            failed: [0; ErrorClass::ALL.len()],
            figures: TestFigures::default(),
            ended: Moment::EPOCH,
            written: Written::default(),
        }
    }

    /// Returns the figures of a test that began then, and what it wrote.
    pub(super) fn end(mut self, started: Moment, slowdowns: u64) -> (TestFigures, Written) {
        self.written.objects.sort_unstable();
        let counts = ErrorClass::ALL.into_iter().zip(self.failed);
        let figures = TestFigures {
            took: self.ended.since(started),
            slowdowns,
            failed: counts.filter(|(_, count)| *count > 0).collect(),
            ..self.figures
        };
        (figures, self.written)
    }

    fn count(&mut self, op: &OpRecord) {
        self.ended = self.ended.max(op.end);
        if op.kind == OpKind::Put
            && let Some(object) = op.object
        {
            let Written { objects, doubtful } = &mut self.written;
            if op.outcome.is_ok() { objects } else { doubtful }.push(object);
        }
        if !op.outcome.is_ok() {
            self.failed[op.outcome as usize] += 1;
            return;
        }
        let figures = &mut self.figures;
        figures.ops_ok += 1;
        figures.bytes += op.bytes;
        figures.rows += if op.kind == OpKind::List { u64::from(op.objects_count) } else { 0 };
        figures.latency.record(op.latency().as_nanos() as u64);
    }
}

impl OpSink for Tally<'_> {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.named.clear();
        for packed in ops {
            let mut op = OpRecord::from(packed);
            self.count(&op);
            if !self.population.is_empty() {
                op.object = op.object.map(|object| self.population[object.number() as usize]);
                self.named.push(PackedOp::from(&op));
            }
        }
        let ops = if self.population.is_empty() { ops } else { &self.named };
        self.log.append(ops)
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.log.tick(now)
    }
}
