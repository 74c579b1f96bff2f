//! Rows of a row group, decoded column by column.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use plimsoll_model::{
    EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, OpOutline, OpRecord, StageId, WorkerId,
};

use super::part::Group;
use super::texts::Texts;

/// Rows decoded at a time: enough to spread the cost of a step, few enough to stay in the cache.
pub(super) const ROWS_PER_BATCH: usize = 8_192;

/// No operation moves more, 256 TiB: sums of what a record holds must not pass 64 bits.
const OP_BYTES_MAX: u64 = 1 << 48;

/// A column: a value for each row of the batch, and a 0 for each that has none.
struct Column<T: DataType> {
    name: String,
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    /// Empty where every row has a value.
    levels: Vec<i16>,
    is_optional: bool,
}

impl<T: DataType> Column<T> {
    fn new(group: &Group<'_>, index: usize) -> Result<Self, String> {
        let (what, pages) = group.column(index)?;
        let (name, is_optional) = (what.name().to_owned(), what.max_def_level() > 0);
        let reader = ColumnReaderImpl::new(what, Box::new(pages));
        Ok(Self { name, reader, values: Vec::new(), levels: Vec::new(), is_optional })
    }

    fn read(&mut self, rows: usize) -> Result<(), String> {
        self.values.clear();
        self.levels.clear();
        let levels = self.is_optional.then_some(&mut self.levels);
        let read = self.reader.read_records(rows, levels, None, &mut self.values);
        let (read, ..) = read.map_err(|error| format!("column {}: {error}", self.name))?;
        if read < rows {
            return Err(format!("column {} ends early", self.name));
        }
        spread(&mut self.values, &self.levels);
        Ok(())
    }

    /// Reads numbers that are bytes.
    fn read_bytes(&mut self, rows: usize) -> Result<(), String>
    where
        T: DataType<T = i32>,
    {
        self.read(rows)?;
        self.check(|value| u8::try_from(*value).is_ok(), "what is no byte")
    }

    /// Reads numbers that are stored signed for the ease of queries, and never negative.
    fn read_known(&mut self, rows: usize) -> Result<(), String>
    where
        T: DataType<T = i64>,
    {
        self.read(rows)?;
        match none_is_negative(self.values.iter().copied()) {
            true => Ok(()),
            false => Err(format!("column {} holds a negative number", self.name)),
        }
    }

    /// Says which column holds what none of its values may be, where one of them is unsound.
    fn check(&self, is_sound: impl Fn(&T::T) -> bool, what: &str) -> Result<(), String> {
        match all(self.values.iter().map(is_sound)) {
            true => Ok(()),
            false => Err(format!("column {} holds {what}", self.name)),
        }
    }

    /// Returns the first rows of the batch.
    fn rows(&self, count: usize) -> Values<'_, T::T> {
        let levels = (!self.levels.is_empty()).then(|| &self.levels[..count]);
        Values { values: &self.values[..count], levels }
    }
}

/// Tells whether all are true, without ending at the first that is not: nearly always they are, and
/// a loop that goes on to its end is made of vector instructions.
fn all(sound: impl Iterator<Item = bool>) -> bool {
    sound.fold(true, |all, sound| all & sound)
}

/// Tells the same of signs, for which every processor has a vector instruction.
fn none_is_negative(values: impl Iterator<Item = i64>) -> bool {
    values.fold(0, |signs, value| signs | value) >= 0
}

/// Tells whether each value is at most that beside it; none of either is negative.
fn are_ordered(values: &[i64], most: &[i64]) -> bool {
    none_is_negative(values.iter().zip(most).map(|(value, most)| most - value))
}

/// Rows of a column.
#[derive(Clone, Copy)]
struct Values<'a, V> {
    values: &'a [V],
    /// `None` where every row has a value.
    levels: Option<&'a [i16]>,
}

impl<V: Copy> Values<'_, V> {
    fn at(&self, row: usize) -> Option<V> {
        self.levels.is_none_or(|levels| levels[row] > 0).then(|| self.values[row])
    }
}

/// Moves values that stand side by side to their rows, which have a level of 1. Without levels
/// every row has a value.
fn spread<V: Default>(values: &mut Vec<V>, levels: &[i16]) {
    let mut next = values.len();
    if next >= levels.len() {
        return;
    }
    values.resize_with(levels.len(), V::default);
    for row in (0..levels.len()).rev().filter(|row| levels[*row] > 0) {
        next -= 1;
        values.swap(row, next);
    }
}

/// Columns of a row group, and a batch of its rows.
pub(super) trait Batch<'a>: Sized {
    /// What a row becomes.
    type Row;

    /// Returns the columns of a row group, whose part has these endpoints.
    fn new(group: &Group<'_>, endpoints: &'a [String]) -> Result<Self, String>;

    /// Decodes the next rows in place of those before, and holds all to what they may be.
    fn read(&mut self, rows: usize) -> Result<(), String>;

    /// Shows the first rows of the batch.
    fn show(&self, count: usize, visit: &mut dyn FnMut(&Self::Row));
}

/// The columns of outlines.
pub(super) struct Outlines<'a> {
    endpoints: &'a [String],
    stage: Column<Int32Type>,
    worker: Column<Int32Type>,
    kind: Texts<OpKind>,
    endpoint: Texts<EndpointId>,
    start: Column<Int64Type>,
    end: Column<Int64Type>,
    measured: Column<BoolType>,
}

impl<'a> Batch<'a> for Outlines<'a> {
    type Row = OpOutline;

    fn new(group: &Group<'_>, endpoints: &'a [String]) -> Result<Self, String> {
        Ok(Self {
            endpoints,
            stage: Column::new(group, 0)?,
            worker: Column::new(group, 2)?,
            kind: Texts::new(group, 3)?,
            endpoint: Texts::new(group, 4)?,
            start: Column::new(group, 10)?,
            end: Column::new(group, 13)?,
            measured: Column::new(group, 17)?,
        })
    }

    fn read(&mut self, rows: usize) -> Result<(), String> {
        self.measured.read(rows)?;
        self.stage.read_bytes(rows)?;
        self.worker.read(rows)?;
        self.worker.check(|worker| *worker as u32 <= ObjectId::OWNER_MAX, "what is no worker")?;
        self.kind.read(rows, &OpKind::from_name)?;
        let endpoints = self.endpoints;
        self.endpoint.read(rows, &|text| {
            let index = endpoints.iter().position(|endpoint| endpoint == text)?;
            Some(EndpointId(u16::try_from(index).ok()?))
        })?;
        self.start.read_known(rows)?;
        self.end.read_known(rows)?;
        match are_ordered(&self.start.values, &self.end.values) {
            true => Ok(()),
            false => Err("column end_ns lies before start_ns".to_owned()),
        }
    }

    fn show(&self, count: usize, visit: &mut dyn FnMut(&OpOutline)) {
        let rows = self.rows(count);
        (0..count).for_each(|row| visit(&rows.outline(row)));
    }
}

impl Outlines<'_> {
    /// Returns the first rows of the batch.
    fn rows(&self, count: usize) -> OutlineRows<'_> {
        OutlineRows {
            stage: &self.stage.values[..count],
            worker: &self.worker.values[..count],
            kind: &self.kind.meanings[..count],
            endpoint: &self.endpoint.meanings[..count],
            start: &self.start.values[..count],
            end: &self.end.values[..count],
            measured: &self.measured.values[..count],
        }
    }
}

/// All columns.
pub(super) struct Decoded<'a> {
    outlines: Outlines<'a>,
    job: Column<Int32Type>,
    object_owner: Column<Int32Type>,
    object_number: Column<Int64Type>,
    objects_count: Column<Int32Type>,
    bytes: Column<Int64Type>,
    schedule_delay: Column<Int64Type>,
    last_byte_sent: Column<Int64Type>,
    first_byte_to_end: Column<Int64Type>,
    outcome: Texts<ErrorClass>,
    attempts: Column<Int32Type>,
    assigned: Column<Int64Type>,
}

impl<'a> Batch<'a> for Decoded<'a> {
    type Row = OpRecord;

    fn new(group: &Group<'_>, endpoints: &'a [String]) -> Result<Self, String> {
        let small = |index| Column::<Int32Type>::new(group, index);
        let large = |index| Column::<Int64Type>::new(group, index);
        Ok(Self {
            outlines: Outlines::new(group, endpoints)?,
            job: small(1)?,
            object_owner: small(5)?,
            object_number: large(6)?,
            objects_count: small(7)?,
            bytes: large(8)?,
            schedule_delay: large(9)?,
            last_byte_sent: large(11)?,
            first_byte_to_end: large(12)?,
            outcome: Texts::new(group, 14)?,
            attempts: small(15)?,
            assigned: large(16)?,
        })
    }

    fn read(&mut self, rows: usize) -> Result<(), String> {
        self.outlines.read(rows)?;
        self.job.read_bytes(rows)?;
        self.attempts.read_bytes(rows)?;
        self.objects_count.read(rows)?;
        self.outcome.read(rows, &ErrorClass::from_name)?;
        let no_object = "what is no object";
        self.object_owner.read(rows)?;
        self.object_owner.check(|owner| *owner as u32 <= ObjectId::OWNER_MAX, no_object)?;
        self.object_number.read(rows)?;
        self.object_number.check(|number| *number as u64 <= ObjectId::NUMBER_MAX, no_object)?;
        if self.object_owner.levels != self.object_number.levels {
            return Err("columns object_owner and object_number hold half an object".to_owned());
        }
        let Self { bytes, schedule_delay, last_byte_sent, first_byte_to_end, .. } = self;
        let known = [bytes, schedule_delay, last_byte_sent, first_byte_to_end, &mut self.assigned];
        for column in known {
            column.read_known(rows)?;
        }
        let moved = "more than one operation moves";
        self.bytes.check(|bytes| *bytes as u64 <= OP_BYTES_MAX, moved)?;
        let (start, end) = (&self.outlines.start.values, &self.outlines.end.values);
        check_differences(&self.schedule_delay.values, start, "schedule_delay_ns")?;
        check_differences(&self.first_byte_to_end.values, end, "first_byte_to_end_ns")
    }

    fn show(&self, count: usize, visit: &mut dyn FnMut(&OpRecord)) {
        let rows = self.rows(count);
        (0..count).for_each(|row| visit(&rows.op(row)));
    }
}

impl Decoded<'_> {
    /// Returns the first rows of the batch.
    fn rows(&self, count: usize) -> Rows<'_> {
        Rows {
            outlines: self.outlines.rows(count),
            job: &self.job.values[..count],
            object_owner: &self.object_owner.values[..count],
            object_number: self.object_number.rows(count),
            objects_count: &self.objects_count.values[..count],
            bytes: &self.bytes.values[..count],
            schedule_delay: &self.schedule_delay.values[..count],
            last_byte_sent: self.last_byte_sent.rows(count),
            first_byte_to_end: self.first_byte_to_end.rows(count),
            outcome: &self.outcome.meanings[..count],
            attempts: &self.attempts.values[..count],
            assigned: self.assigned.rows(count),
        }
    }
}

/// Rows of a batch. All slices are of one length, so that a loop over the rows looks once whether
/// they are in all of them.
#[derive(Clone, Copy)]
struct OutlineRows<'a> {
    stage: &'a [i32],
    worker: &'a [i32],
    kind: &'a [OpKind],
    endpoint: &'a [EndpointId],
    start: &'a [i64],
    end: &'a [i64],
    measured: &'a [bool],
}

impl OutlineRows<'_> {
    /// Returns one of them.
    #[inline]
    fn outline(&self, row: usize) -> OpOutline {
        OpOutline {
            stage: StageId(self.stage[row] as u8),
            worker: WorkerId(self.worker[row] as u32),
            kind: self.kind[row],
            endpoint: self.endpoint[row],
            start: moment(self.start[row]),
            end: moment(self.end[row]),
            is_measured: self.measured[row],
        }
    }
}

/// The same of all columns.
#[derive(Clone, Copy)]
struct Rows<'a> {
    outlines: OutlineRows<'a>,
    job: &'a [i32],
    object_owner: &'a [i32],
    object_number: Values<'a, i64>,
    objects_count: &'a [i32],
    bytes: &'a [i64],
    schedule_delay: &'a [i64],
    last_byte_sent: Values<'a, i64>,
    first_byte_to_end: Values<'a, i64>,
    outcome: &'a [ErrorClass],
    attempts: &'a [i32],
    assigned: Values<'a, i64>,
}

impl Rows<'_> {
    /// Returns one of them.
    #[inline]
    fn op(&self, row: usize) -> OpRecord {
        let outline = self.outlines.outline(row);
        let OpOutline { stage, worker, kind, endpoint, is_measured, .. } = outline;
        let (start, end) = (self.outlines.start[row], self.outlines.end[row]);
        OpRecord {
            stage,
            job: JobId(self.job[row] as u8),
            worker,
            kind,
            endpoint,
            object: self.object_number.at(row).map(|number| {
                ObjectId::new(WorkerId(self.object_owner[row] as u32), number as u64)
            }),
            objects_count: self.objects_count[row] as u32,
            // A row without bytes has moved none.
            bytes: self.bytes[row] as u64,
            intended: moment(start - self.schedule_delay[row]),
            start: moment(start),
            assigned: self.assigned.at(row).map(moment),
            first_byte: self.first_byte_to_end.at(row).map(|before| moment(end - before)),
            last_byte_sent: self.last_byte_sent.at(row).map(moment),
            end: moment(end),
            outcome: self.outcome[row],
            attempts: self.attempts[row] as u8,
            is_measured,
        }
    }
}

/// Checks that no difference leads back to before the run's epoch; it is 0 where there is none.
fn check_differences(differences: &[i64], moments: &[i64], name: &str) -> Result<(), String> {
    match are_ordered(differences, moments) {
        true => Ok(()),
        false => Err(format!("column {name} leads back to before the run's epoch")),
    }
}

fn moment(ns: i64) -> Moment {
    Moment::from_ns(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_may_lead_back_to_the_epoch_and_not_further() {
        let check = |differences: &[i64]| check_differences(differences, &[0, 7], "delay_ns");
        assert_eq!(check(&[0, 7]), Ok(()));
        let refused = check(&[0, 8]).unwrap_err();
        assert_eq!(refused, "column delay_ns leads back to before the run's epoch");
    }

    #[test]
    fn values_come_to_their_rows_and_rows_without_one_hold_none() {
        let spread = |mut values: Vec<i64>, levels: &[i16]| {
            spread(&mut values, levels);
            values
        };
        assert_eq!(spread(vec![7, 8, 9], &[0, 1, 0, 0, 1, 1, 0]), [0, 7, 0, 0, 8, 9, 0]);
        assert_eq!(spread(vec![7, 8], &[1, 1]), [7, 8]);
        assert_eq!(spread(vec![7], &[1, 0]), [7, 0]);
        assert_eq!(spread(vec![], &[0, 0]), [0, 0]);
        assert_eq!(spread(vec![7, 8], &[]), [7, 8]);
    }
}
