//! Reads the op log back, one batch of columns at a time.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use arrow_schema::Schema;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use plimsoll_model::{
    EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, OpRecord, StageId, WorkerId,
};

use super::{
    KEY_ENDPOINTS, KEY_SCHEMA, OPEN_SUFFIX, OPS_SCHEMA, PART_PREFIX, PART_SUFFIX, arrow_schema,
};
use crate::{RecordError, RunDirectory};

/// Rows decoded at a time: enough to spread the cost of a step, few enough to stay in the cache.
const ROWS_PER_BATCH: usize = 8_192;

/// The op log of a run, ready to be read.
#[derive(Debug)]
pub struct OpLog {
    parts: Vec<PathBuf>,
    unfinished: usize,
}

impl OpLog {
    /// Returns the op log of the run in `directory`.
    ///
    /// Fails when a part before others is missing, unless an unfinished part stands in its place.
    pub fn open(directory: &RunDirectory) -> Result<Self, RecordError> {
        let found = Found::of(directory)?;
        if let Some(number) = found.missing().next() {
            return Err(RecordError::Missing { path: found.path.join(part_name(number)) });
        }
        Ok(found.log())
    }

    /// Returns what is left of the op log of the run in `directory`, and a sentence for each part
    /// that is not.
    ///
    /// Parts without a readable footer are left out; pages are looked at only in a scan.
    pub fn salvage(directory: &RunDirectory) -> Result<(Self, Vec<String>), RecordError> {
        let found = Found::of(directory)?;
        let missing = found.missing().map(|number| {
            format!("{} is missing: its operations are not counted", part_name(number))
        });
        let mut losses: Vec<String> = missing.collect();
        losses.extend(found.open.iter().map(|number| {
            format!(
                "{} was never closed, as the run was killed or is still under way: its operations \
                 are not counted",
                part_name(*number)
            )
        }));
        let mut log = found.log();
        for path in log.parts.clone() {
            let opened = File::open(&path).map_err(|source| RecordError::io("open", &path, source));
            match opened.and_then(|file| footer(&path, &file)) {
                Ok(_) => {}
                Err(damage @ RecordError::Damaged { .. }) => {
                    losses.push(log.leave_out(&path, &damage));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((log, losses))
    }

    /// Leaves a part out of further scans, and returns the sentence that says so.
    pub fn leave_out(&mut self, part: &Path, damage: &RecordError) -> String {
        self.parts.retain(|path| path != part);
        let reason = match damage {
            RecordError::Damaged { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        let name = part.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} is damaged ({reason}): its operations are not counted")
    }

    /// Returns how many parts were never completed; their rows are lost, and `scan` passes them
    /// over.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns how many complete parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Hands every operation to `visit`, part by part in the order they were written, and returns
    /// how many there were.
    pub fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<u64, RecordError> {
        let mut rows = 0;
        for path in &self.parts {
            rows += scan_part(path, visit)?;
        }
        Ok(rows)
    }
}

/// The parts of an op log as the directory has them.
struct Found {
    path: PathBuf,
    closed: Vec<u32>,
    open: Vec<u32>,
}

impl Found {
    fn of(directory: &RunDirectory) -> Result<Self, RecordError> {
        let path = directory.ops_path();
        let entries =
            fs::read_dir(&path).map_err(|source| RecordError::io("read", &path, source))?;
        let (mut closed, mut open) = (Vec::new(), Vec::new());
        for entry in entries {
            let entry = entry.map_err(|source| RecordError::io("read", &path, source))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(number) = part_number(name) {
                closed.push(number);
            } else if let Some(number) = name.strip_suffix(OPEN_SUFFIX).and_then(part_number) {
                open.push(number);
            }
        }
        closed.sort_unstable();
        open.sort_unstable();
        Ok(Self { path, closed, open })
    }

    /// Returns the numbers below the last that neither a closed nor an unfinished part has.
    fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let last = self.closed.last().max(self.open.last()).copied().unwrap_or_default();
        (0..last).filter(|number| {
            self.closed.binary_search(number).is_err() && !self.open.contains(number)
        })
    }

    fn log(&self) -> OpLog {
        let parts = self.closed.iter().map(|number| self.path.join(part_name(*number)));
        OpLog { parts: parts.collect(), unfinished: self.open.len() }
    }
}

/// Returns the file name of a part.
fn part_name(number: u32) -> String {
    format!("{PART_PREFIX}{number:06}{PART_SUFFIX}")
}

/// Returns the number of the part of that file name.
fn part_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PART_PREFIX)?.strip_suffix(PART_SUFFIX)?;
    (digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn scan_part(path: &Path, visit: &mut dyn FnMut(&OpRecord)) -> Result<u64, RecordError> {
    let file = File::open(path).map_err(|source| RecordError::io("open", path, source))?;
    let (footer, endpoints) = footer(path, &file)?;
    let mut batches = guarded(path, || batches(file, footer))?;
    let schema = arrow_schema();
    let mut rows = 0;
    while let Some(batch) = guarded(path, || batches.next().transpose())? {
        let columns = Decoded::new(&batch, &schema, &endpoints)
            .map_err(|reason| RecordError::damaged(path, reason))?;
        for row in 0..batch.num_rows() {
            visit(&columns.op(row));
        }
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// Returns the footer of a part, and the endpoints it names.
fn footer(path: &Path, file: &File) -> Result<(ArrowReaderMetadata, Vec<String>), RecordError> {
    let footer = guarded(path, || ArrowReaderMetadata::load(file, ArrowReaderOptions::new()))?;
    let endpoints = endpoints(path, footer.metadata().file_metadata())?;
    Ok((footer, endpoints))
}

/// Runs a step of the Parquet library, which panics on some damaged files instead of returning an
/// error.
fn guarded<T, E: ToString>(
    path: &Path,
    step: impl FnOnce() -> Result<T, E>,
) -> Result<T, RecordError> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(reason)) => Err(RecordError::damaged(path, reason)),
        Err(_) => Err(RecordError::damaged(path, "its pages cannot be decoded")),
    }
}

/// Checks that a part is of a version that can be read, and returns its endpoints in the order of
/// their ids.
fn endpoints(path: &Path, footer: &FileMetaData) -> Result<Vec<String>, RecordError> {
    let found = metadata_value(footer, KEY_SCHEMA).unwrap_or("unknown");
    if found != OPS_SCHEMA {
        let (path, found) = (path.to_path_buf(), found.to_owned());
        return Err(RecordError::Version { path, found, supported: OPS_SCHEMA });
    }
    let endpoints = metadata_value(footer, KEY_ENDPOINTS).unwrap_or_default();
    serde_json::from_str(endpoints).map_err(|reason| RecordError::damaged(path, reason))
}

/// Returns the way to a part's rows. The columns are asked for with dictionaries, so that a text is
/// looked up once per batch and not once per row.
fn batches(
    file: File,
    footer: ArrowReaderMetadata,
) -> Result<ParquetRecordBatchReader, ParquetError> {
    let options = ArrowReaderOptions::new().with_schema(arrow_schema());
    let footer = ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), options)?;
    ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer)
        .with_batch_size(ROWS_PER_BATCH)
        .build()
}

fn metadata_value<'a>(metadata: &'a FileMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

/// A text column: the meaning of each dictionary entry, and the entry of each row.
struct Texts<'a, K: ArrowDictionaryKeyType, V> {
    meanings: Vec<V>,
    keys: &'a [K::Native],
}

impl<'a, K: ArrowDictionaryKeyType<Native: Into<usize>>, V: Copy> Texts<'a, K, V> {
    fn new(
        batch: &'a RecordBatch,
        name: &'static str,
        meaning: impl Fn(&str) -> Option<V>,
    ) -> Result<Self, String> {
        let column = column(batch, name).as_dictionary::<K>();
        let texts = column.values().as_string::<i32>();
        let meanings = texts
            .iter()
            .flatten()
            .map(|text| meaning(text).ok_or_else(|| format!("column {name} holds `{text}`")));
        Ok(Self { meanings: meanings.collect::<Result<_, _>>()?, keys: column.keys().values() })
    }

    fn at(&self, row: usize) -> V {
        self.meanings[self.keys[row].into()]
    }
}

/// A batch with its columns told apart.
struct Decoded<'a> {
    stage: &'a [u8],
    job: &'a [u8],
    worker: &'a [u32],
    kind: Texts<'a, UInt8Type, OpKind>,
    endpoint: Texts<'a, UInt16Type, EndpointId>,
    object_owner: &'a PrimitiveArray<UInt32Type>,
    object_number: &'a [i64],
    objects_count: &'a [u32],
    bytes: &'a PrimitiveArray<Int64Type>,
    schedule_delay: &'a [i64],
    start: &'a [i64],
    last_byte_sent: &'a PrimitiveArray<Int64Type>,
    first_byte_to_end: &'a PrimitiveArray<Int64Type>,
    end: &'a [i64],
    outcome: Texts<'a, UInt8Type, ErrorClass>,
    attempts: &'a [u8],
}

impl<'a> Decoded<'a> {
    fn new(batch: &'a RecordBatch, schema: &Schema, endpoints: &[String]) -> Result<Self, String> {
        // A damaged footer can change a column's type behind the back of the schema that was asked
        // for.
        let types = batch.columns().iter().map(|column| column.data_type());
        if !types.eq(schema.fields().iter().map(|field| field.data_type())) {
            return Err("its columns are not those of an op log".to_owned());
        }
        let endpoint_id = |text: &str| {
            let index = endpoints.iter().position(|endpoint| endpoint == text)?;
            Some(EndpointId(u16::try_from(index).ok()?))
        };
        let owner = column(batch, "object_owner").as_primitive::<UInt32Type>();
        let number = unsigned(batch, "object_number")?;
        if owner.values().iter().any(|owner| *owner > ObjectId::OWNER_MAX)
            || number.values().iter().any(|number| *number as u64 > ObjectId::NUMBER_MAX)
        {
            return Err("columns object_owner and object_number hold what is no object".to_owned());
        }
        let schedule_delay = unsigned(batch, "schedule_delay_ns")?.values();
        let start = unsigned(batch, "start_ns")?.values();
        let first_byte_to_end = unsigned(batch, "first_byte_to_end_ns")?;
        let end = unsigned(batch, "end_ns")?.values();
        check_differences(schedule_delay, start, |_| true, "schedule_delay_ns")?;
        let answered = |row| first_byte_to_end.is_valid(row);
        check_differences(first_byte_to_end.values(), end, answered, "first_byte_to_end_ns")?;
        Ok(Self {
            stage: column(batch, "stage").as_primitive::<UInt8Type>().values(),
            job: column(batch, "job").as_primitive::<UInt8Type>().values(),
            worker: column(batch, "worker").as_primitive::<UInt32Type>().values(),
            kind: Texts::new(batch, "kind", OpKind::from_name)?,
            endpoint: Texts::new(batch, "endpoint", endpoint_id)?,
            object_owner: owner,
            object_number: number.values(),
            objects_count: column(batch, "objects_count").as_primitive::<UInt32Type>().values(),
            bytes: unsigned(batch, "bytes")?,
            schedule_delay,
            start,
            last_byte_sent: unsigned(batch, "last_byte_sent_ns")?,
            first_byte_to_end,
            end,
            outcome: Texts::new(batch, "outcome", ErrorClass::from_name)?,
            attempts: column(batch, "attempts").as_primitive::<UInt8Type>().values(),
        })
    }

    fn op(&self, row: usize) -> OpRecord {
        let optional =
            |column: &PrimitiveArray<Int64Type>| column.is_valid(row).then(|| column.values()[row]);
        let (start, end) = (self.start[row], self.end[row]);
        OpRecord {
            stage: StageId(self.stage[row]),
            job: JobId(self.job[row]),
            worker: WorkerId(self.worker[row]),
            kind: self.kind.at(row),
            endpoint: self.endpoint.at(row),
            object: self.object_owner.is_valid(row).then(|| {
                let owner = WorkerId(self.object_owner.values()[row]);
                ObjectId::new(owner, self.object_number[row] as u64)
            }),
            objects_count: self.objects_count[row],
            bytes: optional(self.bytes).unwrap_or_default() as u64,
            intended: moment(start - self.schedule_delay[row]),
            start: moment(start),
            first_byte: optional(self.first_byte_to_end).map(|before| moment(end - before)),
            last_byte_sent: optional(self.last_byte_sent).map(moment),
            end: moment(end),
            outcome: self.outcome.at(row),
            attempts: self.attempts[row],
        }
    }
}

/// Returns a column by name; the reader was opened with the schema, so it is there.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    batch.column_by_name(name).expect("every batch has the columns of the schema")
}

/// Returns a column that is stored signed for the ease of queries, and never negative.
fn unsigned<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<Int64Type>, String> {
    let column = column(batch, name).as_primitive::<Int64Type>();
    // Where a row has no value the decoder leaves 0 or the value of another row, so the nulls need
    // no look.
    match column.values().iter().any(|value| *value < 0) {
        true => Err(format!("column {name} holds a negative number")),
        false => Ok(column),
    }
}

/// Checks that no difference of a row that has one leads back to before the run's epoch.
fn check_differences(
    differences: &[i64],
    moments: &[i64],
    is_known: impl Fn(usize) -> bool,
    name: &str,
) -> Result<(), String> {
    let mut rows = differences.iter().zip(moments).enumerate();
    match rows.any(|(row, (difference, moment))| difference > moment && is_known(row)) {
        true => Err(format!("column {name} leads back to before the run's epoch")),
        false => Ok(()),
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
        let check = |differences: &[i64], known: &[bool]| {
            check_differences(differences, &[0, 7], |row| known[row], "schedule_delay_ns")
        };
        assert_eq!(check(&[0, 7], &[true, true]), Ok(()));
        let refused = check(&[0, 8], &[true, true]).unwrap_err();
        assert_eq!(refused, "column schedule_delay_ns leads back to before the run's epoch");
        // What stands in a row that has no value means nothing.
        assert_eq!(check(&[0, 8], &[true, false]), Ok(()));
    }
}
