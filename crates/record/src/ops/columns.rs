//! Rows of the op log as columns that wait to be encoded.

use bytes::Bytes;
use parquet::column::writer::{ColumnWriter, get_typed_column_writer_mut};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord};

use super::row_group::RowGroup;

/// A column: the values that are known, and where not all are, a 1 for each row with one and a 0
/// for each without.
struct Values<T> {
    values: Vec<T>,
    levels: Option<Vec<i16>>,
}

impl<T> Values<T> {
    fn required(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), levels: None }
    }

    fn optional(rows: usize) -> Self {
        Self { levels: Some(Vec::with_capacity(rows)), ..Self::required(rows) }
    }

    fn push(&mut self, value: T) {
        self.values.push(value);
    }

    fn push_known(&mut self, value: Option<T>) {
        let levels = self.levels.get_or_insert_default();
        levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.iter_mut().for_each(Vec::clear);
    }
}

/// A column that most logs know nothing for: it costs nothing until the first value is known.
struct RareValues {
    known: Values<i64>,
    /// A 0 for each row that may wait.
    unknown: Vec<i16>,
}

impl RareValues {
    fn new(rows: usize) -> Self {
        Self { known: Values::required(0), unknown: vec![0; rows] }
    }

    /// Adds the value of a row, behind those of `rows` others.
    fn push_known(&mut self, value: Option<i64>, rows: usize) {
        if value.is_some() || !self.known.values.is_empty() {
            let levels = self.known.levels.get_or_insert_default();
            levels.resize(rows, 0);
            self.known.push_known(value);
        }
    }

    fn write(&self, writer: &mut ColumnWriter<'static>, rows: usize) -> Result<(), ParquetError> {
        if !self.known.values.is_empty() {
            return write::<Int64Type>(writer, &self.known);
        }
        let writer = get_typed_column_writer_mut::<Int64Type>(writer);
        writer.write_batch(&[], Some(&self.unknown[..rows]), None).map(|_| ())
    }
}

/// Rows that wait to be encoded.
pub(super) struct Columns {
    rows_max: usize,
    kinds: Vec<ByteArray>,
    endpoints: Vec<ByteArray>,
    outcomes: Vec<ByteArray>,
    stage: Values<i32>,
    job: Values<i32>,
    worker: Values<i32>,
    kind: Values<ByteArray>,
    endpoint: Values<ByteArray>,
    object_owner: Values<i32>,
    object_number: Values<i64>,
    objects_count: Values<i32>,
    bytes: Values<i64>,
    schedule_delay: Values<i64>,
    start: Values<i64>,
    last_byte_sent: Values<i64>,
    first_byte_to_end: Values<i64>,
    end: Values<i64>,
    outcome: Values<ByteArray>,
    attempts: Values<i32>,
    assigned: RareValues,
}

impl Columns {
    /// Returns room for `rows_max` rows.
    pub(super) fn new(endpoints: &[String], rows_max: usize) -> Self {
        let fixed = |text: &'static str| ByteArray::from(Bytes::from_static(text.as_bytes()));
        Self {
            rows_max,
            kinds: OpKind::ALL.map(OpKind::name).map(fixed).to_vec(),
            endpoints: endpoints.iter().map(|endpoint| ByteArray::from(&**endpoint)).collect(),
            outcomes: ErrorClass::ALL.map(ErrorClass::name).map(fixed).to_vec(),
            stage: Values::required(rows_max),
            job: Values::required(rows_max),
            worker: Values::required(rows_max),
            kind: Values::required(rows_max),
            endpoint: Values::required(rows_max),
            object_owner: Values::optional(rows_max),
            object_number: Values::optional(rows_max),
            objects_count: Values::required(rows_max),
            bytes: Values::optional(rows_max),
            schedule_delay: Values::required(rows_max),
            start: Values::required(rows_max),
            last_byte_sent: Values::optional(rows_max),
            first_byte_to_end: Values::optional(rows_max),
            end: Values::required(rows_max),
            outcome: Values::required(rows_max),
            attempts: Values::required(rows_max),
            assigned: RareValues::new(rows_max),
        }
    }

    /// Returns how many endpoints are known.
    pub(super) fn endpoints_count(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns how many rows wait.
    pub(super) fn len(&self) -> usize {
        self.stage.values.len()
    }

    /// Tells whether there is room for no further row.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.rows_max
    }

    /// Adds one row, whose endpoint is known. Two moments become differences: these are often 0,
    /// and then cost nothing.
    pub(super) fn push(&mut self, op: &OpRecord) {
        debug_assert!(op.intended <= op.start && op.start <= op.end);
        debug_assert!(op.first_byte.is_none_or(|first_byte| first_byte <= op.end));
        let ns = |moment: Moment| moment.as_ns() as i64;
        self.assigned.push_known(op.assigned.map(ns), self.len());
        self.stage.push(op.stage.0.into());
        self.job.push(op.job.0.into());
        self.worker.push(op.worker.0 as i32);
        self.kind.push(self.kinds[op.kind as usize].clone());
        self.endpoint.push(self.endpoints[usize::from(op.endpoint.0)].clone());
        self.object_owner.push_known(op.object.map(|object| object.owner().0 as i32));
        self.object_number.push_known(op.object.map(|object| object.number() as i64));
        self.objects_count.push(op.objects_count as i32);
        // 63 bits hold 292 years and 9 EB.
        let moves_bytes = op.kind.moves_bytes() || op.bytes > 0;
        self.bytes.push_known(moves_bytes.then_some(op.bytes as i64));
        self.schedule_delay.push(ns_between(op.intended, op.start));
        self.start.push(ns(op.start));
        self.last_byte_sent.push_known(op.last_byte_sent.map(ns));
        self.first_byte_to_end.push_known(op.first_byte.map(|at| ns_between(at, op.end)));
        self.end.push(ns(op.end));
        self.outcome.push(self.outcomes[op.outcome as usize].clone());
        self.attempts.push(op.attempts.into());
    }

    /// Adds the waiting rows to a row group; they wait on until they are cleared.
    pub(super) fn encode(&self, group: &mut RowGroup) -> Result<(), ParquetError> {
        let mut columns = group.columns();
        let mut next = || columns.next().expect("a writer for each column");
        write::<Int32Type>(next(), &self.stage)?;
        write::<Int32Type>(next(), &self.job)?;
        write::<Int32Type>(next(), &self.worker)?;
        write::<ByteArrayType>(next(), &self.kind)?;
        write::<ByteArrayType>(next(), &self.endpoint)?;
        write::<Int32Type>(next(), &self.object_owner)?;
        write::<Int64Type>(next(), &self.object_number)?;
        write::<Int32Type>(next(), &self.objects_count)?;
        write::<Int64Type>(next(), &self.bytes)?;
        write::<Int64Type>(next(), &self.schedule_delay)?;
        write::<Int64Type>(next(), &self.start)?;
        write::<Int64Type>(next(), &self.last_byte_sent)?;
        write::<Int64Type>(next(), &self.first_byte_to_end)?;
        write::<Int64Type>(next(), &self.end)?;
        write::<ByteArrayType>(next(), &self.outcome)?;
        write::<Int32Type>(next(), &self.attempts)?;
        self.assigned.write(next(), self.len())
    }

    /// Forgets the waiting rows.
    pub(super) fn clear(&mut self) {
        let Self { stage, job, worker, object_owner, objects_count, attempts, .. } = self;
        let small = [stage, job, worker, object_owner, objects_count, attempts];
        small.into_iter().for_each(Values::clear);
        let Self { kind, endpoint, outcome, .. } = self;
        [kind, endpoint, outcome].into_iter().for_each(Values::clear);
        let Self { object_number, bytes, schedule_delay, start, end, .. } = self;
        [object_number, bytes, schedule_delay, start, end].into_iter().for_each(Values::clear);
        self.last_byte_sent.clear();
        self.first_byte_to_end.clear();
        self.assigned.known.clear();
    }
}

fn write<T: DataType>(
    writer: &mut ColumnWriter<'static>,
    column: &Values<T::T>,
) -> Result<(), ParquetError> {
    let writer = get_typed_column_writer_mut::<T>(writer);
    writer.write_batch(&column.values, column.levels.as_deref(), None).map(|_| ())
}

/// Returns the time from `from` to `to`; it is never negative, and neither is what the reader
/// accepts.
fn ns_between(from: Moment, to: Moment) -> i64 {
    to.as_ns().saturating_sub(from.as_ns()) as i64
}
