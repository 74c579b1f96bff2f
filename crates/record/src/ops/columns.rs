//! Rows of the op log as columns that wait to be encoded.

use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord};

use super::packed::{Number, push_deltas, push_hybrid, push_run, push_same};
use super::row_group::{Dictionary, Packer, RowGroup};

/// Values that wait. Most columns hold one value for thousands of rows, so as long as all are equal
/// they are counted and nothing else.
struct Values<T> {
    first: T,
    count: usize,
    /// Each of them, from the first one on that differs.
    each: Vec<T>,
}

impl<T: Copy + PartialEq + Default> Values<T> {
    fn new() -> Self {
        Self { first: T::default(), count: 0, each: Vec::new() }
    }

    #[inline]
    fn push(&mut self, value: T) {
        if self.count == 0 {
            self.first = value;
        } else if !self.each.is_empty() {
            self.each.push(value);
        } else if value != self.first {
            self.begin_each(value);
        }
        self.count += 1;
    }

    #[cold]
    fn begin_each(&mut self, value: T) {
        // Bound: rows that wait in memory to be written.
        self.each.resize(self.count, self.first);
        self.each.push(value);
    }

    fn clear(&mut self) {
        self.count = 0;
        self.each.clear();
    }
}

impl<T: Number + Default> Values<T> {
    /// Appends them as they stand in a page.
    fn encode(&self, out: &mut Vec<u8>) -> Encoding {
        match &self.each[..] {
            [] => push_same(out, self.first, self.count),
            each => push_deltas(out, each),
        }
        Encoding::DELTA_BINARY_PACKED
    }
}

impl Values<bool> {
    /// Appends them as they stand in a page: a bit each, the lowest first.
    fn encode(&self, out: &mut Vec<u8>) -> Encoding {
        let bits = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at)
        };
        match &self.each[..] {
            [] => {
                let byte = if self.first { u8::MAX } else { 0 };
                // Bound: rows that wait in memory to be written.
                out.resize(out.len() + self.count.div_ceil(8), byte);
            }
            each => out.extend(each.chunks(8).map(bits)),
        }
        Encoding::PLAIN
    }
}

/// A column in which rows may have no value.
struct Optional<T> {
    /// By row: 1 where there is one, else 0.
    levels: Values<u8>,
    known: Values<T>,
}

impl<T: Copy + PartialEq + Default> Optional<T> {
    fn new() -> Self {
        Self { levels: Values::new(), known: Values::new() }
    }

    #[inline]
    fn push(&mut self, value: Option<T>) {
        self.levels.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.known.push(value);
        }
    }

    fn clear(&mut self) {
        self.levels.clear();
        self.known.clear();
    }
}

impl<T: Number + Default> Optional<T> {
    fn encode(&self, out: &mut Vec<u8>) -> Encoding {
        let begin = out.len();
        out.extend_from_slice(&[0; size_of::<u32>()]);
        match &self.levels.each[..] {
            [] => push_run(out, self.levels.first, self.levels.count, 1),
            each => push_hybrid(out, each, 1),
        }
        let len = (out.len() - begin - size_of::<u32>()) as u32;
        out[begin..begin + size_of::<u32>()].copy_from_slice(&len.to_le_bytes());
        self.known.encode(out)
    }
}

/// Texts that are known by numbers.
struct Texts {
    all: Vec<String>,
    numbers: Values<u16>,
}

impl Texts {
    fn new(all: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { all: all.into_iter().map(Into::into).collect(), numbers: Values::new() }
    }

    fn encode(&self, out: &mut Vec<u8>, dictionary: &mut Dictionary) -> Encoding {
        let mut key = |number: u16| dictionary.key(number, &self.all[usize::from(number)]);
        let Values { first, count, each } = &self.numbers;
        let one = each.is_empty().then(|| key(*first));
        let keys: Vec<u32> = each.iter().map(|number| key(*number)).collect();
        let width = dictionary.width();
        out.push(width as u8);
        match one {
            Some(key) => push_run(out, key, *count, width),
            None => push_hybrid(out, &keys, width),
        }
        Encoding::RLE_DICTIONARY
    }
}

/// Rows that wait to be encoded.
pub(super) struct Columns {
    rows_max: usize,
    rows: usize,
    stage: Values<i32>,
    job: Values<i32>,
    worker: Values<i32>,
    kind: Texts,
    endpoint: Texts,
    object_owner: Optional<i32>,
    object_number: Optional<i64>,
    objects_count: Values<i32>,
    bytes: Optional<i64>,
    schedule_delay: Values<i64>,
    start: Values<i64>,
    last_byte_sent: Optional<i64>,
    first_byte_to_end: Optional<i64>,
    end: Values<i64>,
    outcome: Texts,
    attempts: Values<i32>,
    assigned: Optional<i64>,
    measured: Values<bool>,
}

impl Columns {
    /// Returns columns in which up to `rows_max` rows may wait.
    pub(super) fn new(endpoints: &[String], rows_max: usize) -> Self {
        Self {
            rows_max,
            rows: 0,
            stage: Values::new(),
            job: Values::new(),
            worker: Values::new(),
            kind: Texts::new(OpKind::ALL.map(OpKind::name)),
            endpoint: Texts::new(endpoints),
            object_owner: Optional::new(),
            object_number: Optional::new(),
            objects_count: Values::new(),
            bytes: Optional::new(),
            schedule_delay: Values::new(),
            start: Values::new(),
            last_byte_sent: Optional::new(),
            first_byte_to_end: Optional::new(),
            end: Values::new(),
            outcome: Texts::new(ErrorClass::ALL.map(ErrorClass::name)),
            attempts: Values::new(),
            assigned: Optional::new(),
            measured: Values::new(),
        }
    }

    /// Returns how many endpoints are known.
    #[inline]
    pub(super) fn endpoints_count(&self) -> usize {
        self.endpoint.all.len()
    }

    /// Returns how many rows wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Tells whether there is room for no further row.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.rows >= self.rows_max
    }

    /// Adds one row, whose endpoint is known. Two moments become differences: these are often 0,
    /// and then cost nothing.
    #[inline]
    pub(super) fn push(&mut self, op: &OpRecord) {
        debug_assert!(op.intended <= op.start && op.start <= op.end);
        debug_assert!(op.first_byte.is_none_or(|first_byte| first_byte <= op.end));
        let ns = |moment: Moment| moment.as_ns() as i64;
        self.rows += 1;
        self.stage.push(op.stage.0.into());
        self.job.push(op.job.0.into());
        self.worker.push(op.worker.0 as i32);
        self.kind.numbers.push(op.kind as u16);
        self.endpoint.numbers.push(op.endpoint.0);
        self.object_owner.push(op.object.map(|object| object.owner().0 as i32));
        self.object_number.push(op.object.map(|object| object.number() as i64));
        self.objects_count.push(op.objects_count as i32);
        // 63 bits hold 292 years and 9 EB.
        let moves_bytes = op.kind.moves_bytes() || op.bytes > 0;
        self.bytes.push(moves_bytes.then_some(op.bytes as i64));
        self.schedule_delay.push(ns_between(op.intended, op.start));
        self.start.push(ns(op.start));
        self.last_byte_sent.push(op.last_byte_sent.map(ns));
        self.first_byte_to_end.push(op.first_byte.map(|at| ns_between(at, op.end)));
        self.end.push(ns(op.end));
        self.outcome.numbers.push(op.outcome as u16);
        self.attempts.push(op.attempts.into());
        self.assigned.push(op.assigned.map(ns));
        self.measured.push(op.is_measured);
    }

    /// Adds the waiting rows to a row group, as a page of each column; they wait on until they are
    /// cleared.
    pub(super) fn encode(
        &self,
        group: &mut RowGroup,
        packer: &mut Packer,
    ) -> Result<(), ParquetError> {
        type Fill<'a> = &'a dyn Fn(&mut Vec<u8>, &mut Dictionary) -> Encoding;
        // In the order of the schema.
        let columns: [Fill<'_>; 18] = [
            &|out, _| self.stage.encode(out),
            &|out, _| self.job.encode(out),
            &|out, _| self.worker.encode(out),
            &|out, dictionary| self.kind.encode(out, dictionary),
            &|out, dictionary| self.endpoint.encode(out, dictionary),
            &|out, _| self.object_owner.encode(out),
            &|out, _| self.object_number.encode(out),
            &|out, _| self.objects_count.encode(out),
            &|out, _| self.bytes.encode(out),
            &|out, _| self.schedule_delay.encode(out),
            &|out, _| self.start.encode(out),
            &|out, _| self.last_byte_sent.encode(out),
            &|out, _| self.first_byte_to_end.encode(out),
            &|out, _| self.end.encode(out),
            &|out, dictionary| self.outcome.encode(out, dictionary),
            &|out, _| self.attempts.encode(out),
            &|out, _| self.assigned.encode(out),
            &|out, _| self.measured.encode(out),
        ];
        for (index, fill) in columns.into_iter().enumerate() {
            group.page(index, self.rows, packer, fill)?;
        }
        Ok(())
    }

    /// Forgets the waiting rows.
    pub(super) fn clear(&mut self) {
        let Self { stage, job, worker, objects_count, attempts, .. } = self;
        [stage, job, worker, objects_count, attempts].into_iter().for_each(Values::clear);
        let Self { schedule_delay, start, end, .. } = self;
        [schedule_delay, start, end].into_iter().for_each(Values::clear);
        let Self { kind, endpoint, outcome, .. } = self;
        [kind, endpoint, outcome].into_iter().for_each(|texts| texts.numbers.clear());
        let Self { object_number, bytes, last_byte_sent, first_byte_to_end, assigned, .. } = self;
        let large = [object_number, bytes, last_byte_sent, first_byte_to_end, assigned];
        large.into_iter().for_each(Optional::clear);
        self.object_owner.clear();
        self.measured.clear();
        self.rows = 0;
    }
}

/// Returns the time from `from` to `to`; it is never negative, and neither is what the reader
/// accepts.
#[inline]
fn ns_between(from: Moment, to: Moment) -> i64 {
    to.as_ns().saturating_sub(from.as_ns()) as i64
}
