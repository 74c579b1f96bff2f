//! Rows of the op log as column vectors, and their way into an Arrow batch.

use std::sync::Arc;

use arrow_array::types::{ArrowDictionaryKeyType, UInt8Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    UInt8Array, UInt32Array,
};
use arrow_schema::{ArrowError, SchemaRef};
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord};

/// A nullable column: the values, and which of them are known.
#[derive(Clone)]
struct Nullable<T> {
    values: Vec<T>,
    known: Vec<bool>,
}

impl<T: Default> Nullable<T> {
    fn with_capacity(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), known: Vec::with_capacity(rows) }
    }

    fn push(&mut self, value: Option<T>) {
        self.known.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }

    fn take(&mut self, rows: usize) -> Self {
        std::mem::replace(self, Self::with_capacity(rows))
    }
}

/// The texts of the columns that are stored as dictionaries.
#[derive(Clone)]
struct Texts {
    kinds: ArrayRef,
    endpoints: ArrayRef,
    outcomes: ArrayRef,
}

/// Rows that wait to be encoded.
#[derive(Clone)]
pub(super) struct Columns {
    rows_max: usize,
    schema: SchemaRef,
    texts: Texts,
    stage: Vec<u8>,
    job: Vec<u8>,
    worker: Vec<u32>,
    kind: Vec<u8>,
    endpoint: Vec<u16>,
    object_owner: Vec<u32>,
    object_number: Vec<i64>,
    object_known: Vec<bool>,
    objects_count: Vec<u32>,
    bytes: Nullable<i64>,
    schedule_delay: Vec<i64>,
    start: Vec<i64>,
    last_byte_sent: Nullable<i64>,
    first_byte_to_end: Nullable<i64>,
    end: Vec<i64>,
    outcome: Vec<u8>,
    attempts: Vec<u8>,
}

impl Columns {
    /// Returns room for `rows_max` rows.
    pub(super) fn new(schema: SchemaRef, endpoints: &[String], rows_max: usize) -> Self {
        let texts = Texts {
            kinds: Arc::new(StringArray::from_iter_values(OpKind::ALL.map(OpKind::name))),
            endpoints: Arc::new(StringArray::from_iter_values(endpoints)),
            outcomes: Arc::new(StringArray::from_iter_values(
                ErrorClass::ALL.map(ErrorClass::name),
            )),
        };
        Self {
            rows_max,
            schema,
            texts,
            stage: Vec::with_capacity(rows_max),
            job: Vec::with_capacity(rows_max),
            worker: Vec::with_capacity(rows_max),
            kind: Vec::with_capacity(rows_max),
            endpoint: Vec::with_capacity(rows_max),
            object_owner: Vec::with_capacity(rows_max),
            object_number: Vec::with_capacity(rows_max),
            object_known: Vec::with_capacity(rows_max),
            objects_count: Vec::with_capacity(rows_max),
            bytes: Nullable::with_capacity(rows_max),
            schedule_delay: Vec::with_capacity(rows_max),
            start: Vec::with_capacity(rows_max),
            last_byte_sent: Nullable::with_capacity(rows_max),
            first_byte_to_end: Nullable::with_capacity(rows_max),
            end: Vec::with_capacity(rows_max),
            outcome: Vec::with_capacity(rows_max),
            attempts: Vec::with_capacity(rows_max),
        }
    }

    /// Returns how many rows wait.
    pub(super) fn len(&self) -> usize {
        self.stage.len()
    }

    /// Tells whether there is room for no further row.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.rows_max
    }

    /// Adds one row. Two moments become differences: these are often 0, and then cost nothing.
    pub(super) fn push(&mut self, op: &OpRecord) {
        debug_assert!(op.intended <= op.start && op.start <= op.end);
        debug_assert!(op.first_byte.is_none_or(|first_byte| first_byte <= op.end));
        self.stage.push(op.stage.0);
        self.job.push(op.job.0);
        self.worker.push(op.worker.0);
        self.kind.push(op.kind as u8);
        self.endpoint.push(op.endpoint.0);
        self.object_known.push(op.object.is_some());
        self.object_owner.push(op.object.map_or(0, |object| object.owner().0));
        self.object_number.push(op.object.map_or(0, |object| object.number() as i64));
        self.objects_count.push(op.objects_count);
        // 63 bits hold 292 years and 9 EB.
        let moves_bytes = op.kind.moves_bytes() || op.bytes > 0;
        self.bytes.push(moves_bytes.then_some(op.bytes as i64));
        self.schedule_delay.push(ns_between(op.intended, op.start));
        self.start.push(op.start.as_ns() as i64);
        self.last_byte_sent.push(op.last_byte_sent.map(|moment| moment.as_ns() as i64));
        self.first_byte_to_end.push(op.first_byte.map(|moment| ns_between(moment, op.end)));
        self.end.push(op.end.as_ns() as i64);
        self.outcome.push(op.outcome as u8);
        self.attempts.push(op.attempts);
    }

    /// Takes the waiting rows out as one batch.
    pub(super) fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows_max;
        let known = take(&mut self.object_known, rows);
        let owner = take(&mut self.object_owner, rows);
        let owner = UInt32Array::new(owner.into(), nulls(known));
        let number = take(&mut self.object_number, rows);
        let number = Int64Array::new(number.into(), owner.nulls().cloned());
        let bytes = self.bytes.take(rows);
        let last_byte_sent = self.last_byte_sent.take(rows);
        let first_byte_to_end = self.first_byte_to_end.take(rows);
        let kind = text::<UInt8Type>(take(&mut self.kind, rows).into(), &self.texts.kinds)?;
        let endpoint =
            text::<UInt16Type>(take(&mut self.endpoint, rows).into(), &self.texts.endpoints)?;
        let outcome =
            text::<UInt8Type>(take(&mut self.outcome, rows).into(), &self.texts.outcomes)?;
        let nullable = |column: Nullable<i64>| {
            Arc::new(Int64Array::new(column.values.into(), nulls(column.known)))
        };
        RecordBatch::try_new(
            Arc::clone(&self.schema),
            vec![
                Arc::new(UInt8Array::from(take(&mut self.stage, rows))),
                Arc::new(UInt8Array::from(take(&mut self.job, rows))),
                Arc::new(UInt32Array::from(take(&mut self.worker, rows))),
                kind,
                endpoint,
                Arc::new(owner),
                Arc::new(number),
                Arc::new(UInt32Array::from(take(&mut self.objects_count, rows))),
                nullable(bytes),
                Arc::new(Int64Array::from(take(&mut self.schedule_delay, rows))),
                Arc::new(Int64Array::from(take(&mut self.start, rows))),
                nullable(last_byte_sent),
                nullable(first_byte_to_end),
                Arc::new(Int64Array::from(take(&mut self.end, rows))),
                outcome,
                Arc::new(UInt8Array::from(take(&mut self.attempts, rows))),
            ],
        )
    }
}

/// Returns the time from `from` to `to`; it is never negative, and neither is what the reader
/// accepts.
fn ns_between(from: Moment, to: Moment) -> i64 {
    to.as_ns().saturating_sub(from.as_ns()) as i64
}

/// Returns which rows have no value; `None` when all have one, which the encoder handles faster.
fn nulls<N: From<Vec<bool>>>(known: Vec<bool>) -> Option<N> {
    known.contains(&false).then(|| N::from(known))
}

/// Takes a column out and leaves room for the next rows.
fn take<T>(column: &mut Vec<T>, rows: usize) -> Vec<T> {
    std::mem::replace(column, Vec::with_capacity(rows))
}

/// Returns the column of `texts` that the keys pick.
fn text<K: ArrowDictionaryKeyType>(
    keys: PrimitiveArray<K>,
    texts: &ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let column: Arc<dyn Array> = Arc::new(DictionaryArray::try_new(keys, Arc::clone(texts))?);
    Ok(column)
}
