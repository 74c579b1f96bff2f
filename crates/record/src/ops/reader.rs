//! Reads the op log back, one batch of columns at a time.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use arrow_schema::Schema;
use plimsoll_model::{
    EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, OpRecord, StageId, WorkerId,
};

use super::found::Found;
use super::part::{Part, guarded};
use super::{arrow_schema, open_name, part_name};
use crate::folder::Folder;
use crate::{RecordError, RunDirectory};

/// How many parts of which the same is to be said are named.
const PARTS_NAMED_MAX: usize = 8;

/// The op log of a run, ready to be read.
#[derive(Debug)]
pub struct OpLog {
    ops: Arc<Folder>,
    /// In the order in which they were written.
    parts: Vec<PartPlace>,
    unfinished: usize,
    /// The run that every part must be of, as far as a manifest names it.
    run_id: Option<String>,
    /// Whether a part without a checksum is none of this log.
    sealed_only: bool,
}

/// Where the rows of a part are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartPlace {
    /// In a part that is complete.
    Closed(u32),
    /// In what was saved of one that is not.
    Saved(u32),
}

/// What is left of the op log of a run that was killed, or that lost some of its files.
#[derive(Debug)]
pub struct Salvage {
    /// What can be read.
    pub log: OpLog,
    /// What cannot, a sentence each.
    pub losses: Vec<String>,
    /// What is to be known of what can, a sentence each.
    pub remarks: Vec<String>,
}

impl OpLog {
    /// Returns the op log of the run in `directory`, as this version writes it: with a checksum in
    /// each part.
    ///
    /// Fails when a part before others is missing, unless an unfinished part stands in its place.
    pub fn open(directory: &RunDirectory) -> Result<Self, RecordError> {
        let found = Found::of(directory)?;
        let ops = directory.ops()?;
        if let Some(gap) = found.missing().first() {
            return Err(RecordError::Missing { path: ops.path_of(&part_name(gap.first)) });
        }
        let run_id = run_of(directory)?;
        let parts = found.closed.iter().copied().map(PartPlace::Closed).collect();
        Ok(Self { ops, parts, unfinished: found.open.len(), run_id, sealed_only: true })
    }

    /// Returns what is left of the op log of the run in `directory`, of parts that were never
    /// closed too, and sentences about what is not.
    ///
    /// Parts that are not as they were written are left out; pages are decoded only in a scan.
    pub fn salvage(directory: &RunDirectory) -> Result<Salvage, RecordError> {
        let found = Found::of(directory)?;
        let mut losses = found.losses();
        let closed = found.closed.iter().copied().map(PartPlace::Closed);
        let mut parts: Vec<PartPlace> =
            closed.chain(found.open.iter().copied().map(PartPlace::Saved)).collect();
        parts.sort_by_key(|part| part.number());
        let ops = directory.ops()?;
        let run_id = run_of(directory)?;
        let unfinished = found.open.len();
        let mut log = Self { ops, parts, unfinished, run_id, sealed_only: false };
        let (mut damages, mut unsealed) = (Vec::new(), 0usize);
        for place in log.parts.clone() {
            match log.read(place) {
                Ok(Some(part)) => {
                    unsealed += usize::from(!part.is_sealed);
                    losses.extend(place.unsaved(Some(part.rows())));
                }
                Ok(None) => {
                    log.parts.retain(|each| *each != place);
                    losses.extend(place.unsaved(None));
                }
                Err(damage @ RecordError::Damaged { .. }) => {
                    damages.push(log.leave_out(&log.ops.path_of(&place.name()), &damage));
                }
                // It was closed since the directory was listed.
                Err(RecordError::Missing { .. }) if place.is_closed_in(&log.ops) => {
                    let now = PartPlace::Closed(place.number());
                    log.parts
                        .iter_mut()
                        .filter(|each| **each == place)
                        .for_each(|each| *each = now);
                }
                Err(error) => return Err(error),
            }
        }
        losses.extend(first_of(damages));
        let remarks = (unsealed > 0).then(|| {
            format!(
                "{unsealed} of {} parts of the op log have no checksum, as older versions of \
                 plimsoll wrote them: damage to them would not be seen",
                log.parts.len()
            )
        });
        Ok(Salvage { log, losses, remarks: remarks.into_iter().collect() })
    }

    /// Leaves a part out of further scans, and returns the sentence that says so.
    pub fn leave_out(&mut self, part: &Path, damage: &RecordError) -> String {
        self.parts.retain(|place| self.ops.path_of(&place.name()) != part);
        let reason = match damage {
            RecordError::Damaged { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        let name = part.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} is damaged ({reason}): its operations are not counted")
    }

    /// Returns how many parts were never completed; [`Self::open`] passes them over.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns how many parts there are to be read.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Hands every operation to `visit`, part by part in the order they were written, and returns
    /// how many there were.
    pub fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<u64, RecordError> {
        let mut rows = 0;
        for &place in &self.parts {
            let path = self.ops.path_of(&place.name());
            let Some(part) = self.read(place)? else {
                return Err(RecordError::Missing { path });
            };
            if self.sealed_only && !part.is_sealed {
                return Err(RecordError::damaged(&path, "it has no checksum"));
            }
            rows += scan_part(part, &path, visit)?;
        }
        Ok(rows)
    }

    /// Reads a part; `None` where nothing of it was saved.
    ///
    /// One of another run is damage, though it is whole: its moments count from another epoch.
    fn read(&self, place: PartPlace) -> Result<Option<Part>, RecordError> {
        let part = match place {
            PartPlace::Closed(number) => Some(Part::closed(&self.ops, number)?),
            PartPlace::Saved(number) => Part::saved(&self.ops, number)?,
        };
        if let (Some(part), Some(run_id)) = (&part, &self.run_id)
            && part.run_id != *run_id
        {
            let path = self.ops.path_of(&place.name());
            return Err(RecordError::damaged(&path, format!("it belongs to run {}", part.run_id)));
        }
        Ok(part)
    }
}

impl PartPlace {
    fn number(self) -> u32 {
        match self {
            Self::Closed(number) | Self::Saved(number) => number,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Closed(number) => part_name(number),
            Self::Saved(number) => open_name(number),
        }
    }

    fn is_closed_in(self, ops: &Folder) -> bool {
        matches!(self, Self::Saved(number) if ops.file(&part_name(number)).is_ok())
    }

    /// Returns the sentence about what was not saved of a part that was never closed.
    fn unsaved(self, rows_saved: Option<u64>) -> Option<String> {
        let Self::Saved(number) = self else { return None };
        let counted = match rows_saved {
            Some(rows) => format!(
                "the {rows} operations that were saved of it are counted, and those of its last \
                 second or two are not"
            ),
            None => "its operations are not counted".to_owned(),
        };
        Some(format!(
            "{} was never closed, as the run was killed or is still under way: {counted}",
            part_name(number)
        ))
    }
}

/// Returns the id of the run in `directory`; `None` where there is no manifest.
fn run_of(directory: &RunDirectory) -> Result<Option<String>, RecordError> {
    match directory.read_manifest() {
        Ok(manifest) => Ok(Some(manifest.run_id)),
        Err(RecordError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the first sentences, and how many more there are.
fn first_of(mut sentences: Vec<String>) -> Vec<String> {
    let more = sentences.len().saturating_sub(PARTS_NAMED_MAX);
    if more > 0 {
        sentences.truncate(PARTS_NAMED_MAX);
        sentences.push(format!("{more} more parts are damaged: their operations are not counted"));
    }
    sentences
}

fn scan_part(
    part: Part,
    path: &Path,
    visit: &mut dyn FnMut(&OpRecord),
) -> Result<u64, RecordError> {
    let (endpoints, promised) = (part.endpoints.clone(), part.rows());
    let mut batches = guarded(path, || part.batches())?;
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
    if rows != promised {
        let reason = format!("it holds {rows} rows, and says that it has {promised}");
        return Err(RecordError::damaged(path, reason));
    }
    Ok(rows)
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
        let meanings: Vec<V> = meanings.collect::<Result<_, _>>()?;
        let keys: &[K::Native] = column.keys().values();
        match keys.iter().any(|key| (*key).into() >= meanings.len()) {
            true => Err(format!("column {name} holds what has no meaning")),
            false => Ok(Self { meanings, keys }),
        }
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
        if start.iter().zip(end).any(|(start, end)| start > end) {
            return Err("column end_ns lies before start_ns".to_owned());
        }
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
