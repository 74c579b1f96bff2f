//! The scan of a raw file: rows become operation records.

use std::borrow::Cow;
use std::io::Read;
use std::thread;

use plimsoll_model::{ErrorClass, JobId, Moment, OpKind, OpRecord, StageId};

use super::classify::Classifier;
use super::losses::{Loss, LossKind, Losses};
use super::names::{Interner, NAME_BYTES_MAX, Names, object_id};
use super::rows::{Rows, Step};
use super::time::{Timestamp, Timestamps};
use crate::warp::input::Input;
use crate::warp::{FileKind, WarpError};

/// By how much `duration_ns` may differ from end minus start: warp takes it from the monotonic
/// clock and the moments from the wall clock, which is slewed by up to a thousandth.
const DURATION_TOLERANCE_NS: u64 = 1_000_000;

/// How many bytes one operation may have moved. More is no measurement.
pub const BYTES_MAX: u64 = 1 << 53;
/// How many bytes all operations of a file together may have moved. Sums of several files must fit
/// 64 bits too.
pub const BYTES_SUM_MAX: u64 = 1 << 60;
/// How many objects all operations of a file together may have handled. Sums are of millionths.
pub const OBJECTS_SUM_MAX: u64 = 1 << 40;

/// The texts of one row that the record has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts<'a> {
    /// The object's name; empty for lists and batches.
    pub file: &'a str,
    /// Why the operation failed; empty if it did not.
    pub error: &'a str,
}

/// What is known at the end of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEnd {
    /// How many rows were handed out.
    pub rows: u64,
    /// The command line that warp adds at the end, without `# `.
    pub command_line: Option<String>,
    /// How far the clock of the first row's start time is ahead of UTC.
    pub utc_offset_seconds: Option<i32>,
    /// What could not be used.
    pub losses: Vec<Loss>,
}

/// Reads a raw file, compressed or not, and calls `visit` with every operation, in the order of the
/// file.
///
/// Moments are nanoseconds since 1970; the stage is the number of the operation's kind, for the
/// caller to group; worker and endpoint are positions in `names`, which may come from an earlier
/// scan. What cannot be used is counted in `ScanEnd::losses` and passed over.
pub fn scan(
    compressed: impl Read,
    names: &mut Names,
    visit: &mut dyn FnMut(&OpRecord, &Texts<'_>),
) -> Result<ScanEnd, WarpError> {
    scan_input(Input::open(compressed)?, names, visit)
}

/// Does what [`scan`] does, and has the input decompressed by a thread of its own meanwhile.
pub fn scan_ahead(
    compressed: impl Read + Send,
    names: &mut Names,
    visit: &mut dyn FnMut(&OpRecord, &Texts<'_>),
) -> Result<ScanEnd, WarpError> {
    let input = Input::open(compressed)?;
    thread::scope(|scope| scan_input(input.read_ahead(scope), names, visit))
}

fn scan_input(
    input: Input<impl Read>,
    names: &mut Names,
    visit: &mut dyn FnMut(&OpRecord, &Texts<'_>),
) -> Result<ScanEnd, WarpError> {
    if input.kind()? == FileKind::Aggregated {
        return Err(WarpError::IsAggregated);
    }
    let is_compressed = input.is_compressed();
    let mut rows = Rows::new(input);
    let mut command_line = None;
    let columns = loop {
        match rows.advance()? {
            Step::Comment => take_command_line(rows.comment(), &mut command_line),
            Step::Row => break Columns::find(&rows, is_compressed)?,
            Step::Bad | Step::Unended | Step::End if rows.is_broken() => {
                return Err(WarpError::Damaged);
            }
            Step::Bad | Step::Unended if !is_compressed => return Err(WarpError::NotWarp),
            Step::Bad | Step::Unended => {
                return Err(WarpError::MissingColumns(REQUIRED.join(", ")));
            }
            Step::End => return Err(WarpError::NoOperation(None)),
        }
    };
    let mut mapper = Mapper::new(columns, names);
    let mut losses = Losses::default();
    let mut rows_count = 0;
    loop {
        match rows.advance()? {
            Step::Row => match mapper.map(&rows) {
                Ok(mapped) => {
                    for flaw in mapped.flaws.into_iter().flatten() {
                        losses.add(flaw, rows.line());
                    }
                    rows_count += 1;
                    let texts = Texts { file: &mapped.file, error: &mapped.error };
                    visit(&mapped.op, &texts);
                }
                Err(Fault::Lost(what)) => losses.add(what, rows.line()),
                Err(Fault::UnknownOp) => {
                    losses.add_unknown_op(rows.field(mapper.columns.op), rows.line());
                }
                Err(Fault::Refused(error)) => return Err(error),
            },
            Step::Comment => take_command_line(rows.comment(), &mut command_line),
            Step::Bad => losses.add(LossKind::BadRow, rows.line()),
            step @ (Step::Unended | Step::End) => {
                if step == Step::Unended || rows.is_broken() {
                    losses.add(LossKind::Truncated, rows.line());
                }
                break;
            }
        }
    }
    let utc_offset_seconds = mapper.utc_offset_seconds;
    let losses = losses.into_vec();
    if rows_count == 0 {
        return Err(WarpError::NoOperation(losses.into_iter().next().map(Box::new)));
    }
    Ok(ScanEnd { rows: rows_count, command_line, utc_offset_seconds, losses })
}

/// Keeps the first comment that is a command line.
fn take_command_line(comment: &[u8], command_line: &mut Option<String>) {
    let text = comment.strip_prefix(b"# ").unwrap_or_default();
    if command_line.is_none() && (text.starts_with(b"warp ") || text.starts_with(b"plimsoll ")) {
        *command_line = Some(String::from_utf8_lossy(text).into_owned());
    }
}

/// The columns that a raw file must have; all versions of warp wrote them.
const REQUIRED: [&str; 9] =
    ["thread", "op", "n_objects", "bytes", "file", "error", "start", "first_byte", "end"];

/// Where each column stands.
struct Columns {
    count: usize,
    thread: usize,
    op: usize,
    objects: usize,
    bytes: usize,
    file: usize,
    error: usize,
    start: usize,
    first_byte: usize,
    end: usize,
    client: Option<usize>,
    endpoint: Option<usize>,
    last_byte: Option<usize>,
    duration: Option<usize>,
}

impl Columns {
    /// Finds the columns by their names in the header, which is the present row.
    fn find<R: Read>(header: &Rows<R>, is_compressed: bool) -> Result<Self, WarpError> {
        let count = header.fields_count();
        let position = |name: &str| (0..count).find(|i| header.field(*i) == name.as_bytes());
        let missing: Vec<&str> =
            REQUIRED.into_iter().filter(|name| position(name).is_none()).collect();
        if missing.len() == REQUIRED.len() && !is_compressed {
            return Err(WarpError::NotWarp);
        }
        let required = REQUIRED.map(position);
        let [
            Some(thread),
            Some(op),
            Some(objects),
            Some(bytes),
            Some(file),
            Some(error),
            Some(start),
            Some(first_byte),
            Some(end),
        ] = required
        else {
            return Err(WarpError::MissingColumns(missing.join(", ")));
        };
        let [client, endpoint, last_byte, duration] =
            ["client_id", "endpoint", "last_byte", "duration_ns"].map(position);
        Ok(Self {
            count,
            thread,
            op,
            objects,
            bytes,
            file,
            error,
            start,
            first_byte,
            end,
            client,
            endpoint,
            last_byte,
            duration,
        })
    }
}

/// Why a row gives no record.
enum Fault {
    Lost(LossKind),
    UnknownOp,
    Refused(WarpError),
}

impl From<WarpError> for Fault {
    fn from(error: WarpError) -> Self {
        Self::Refused(error)
    }
}

/// A row as a record, and what of it could not be used.
struct Mapped<'a> {
    op: OpRecord,
    file: Cow<'a, str>,
    error: Cow<'a, str>,
    flaws: [Option<LossKind>; 3],
}

/// Turns rows into records.
struct Mapper<'n> {
    columns: Columns,
    names: Interner<'n>,
    times: Timestamps,
    classifier: Classifier,
    utc_offset_seconds: Option<i32>,
    /// Of all records so far.
    bytes_sum: u64,
    objects_sum: u64,
}

impl<'n> Mapper<'n> {
    fn new(columns: Columns, names: &'n mut Names) -> Self {
        let (names, times, classifier) =
            (Interner::new(names), Timestamps::new(), Classifier::default());
        let (utc_offset_seconds, bytes_sum, objects_sum) = (None, 0, 0);
        Self { columns, names, times, classifier, utc_offset_seconds, bytes_sum, objects_sum }
    }

    fn map<'a, R: Read>(&mut self, row: &'a Rows<R>) -> Result<Mapped<'a>, Fault> {
        let columns = &self.columns;
        if row.fields_count() != columns.count {
            return Err(Fault::Lost(LossKind::BadRow));
        }
        let kind = op_kind(row.field(columns.op)).ok_or(Fault::UnknownOp)?;
        let thread = integer(row.field(columns.thread), "thread")?;
        let objects_count = integer(row.field(columns.objects), "n_objects")?;
        let bytes = whole_number(row.field(columns.bytes)).filter(|bytes| *bytes <= BYTES_MAX);
        let bytes = bytes.ok_or_else(|| bad_field("bytes"))?;
        let times = &mut self.times;
        let start = time(times, row.field(columns.start), "start")?;
        let end = time(times, row.field(columns.end), "end")?.unix_ns;
        let first_byte = optional_time(times, row.field(columns.first_byte), "first_byte")?;
        let last_byte = optional_field(row, columns.last_byte);
        let last_byte = optional_time(times, last_byte, "last_byte")?;
        let (offset_seconds, start) = (start.offset_seconds, start.unix_ns);
        if end < start {
            return Err(Fault::Lost(LossKind::EndBeforeStart));
        }
        let bytes_sum = sum(self.bytes_sum, bytes, BYTES_SUM_MAX, "bytes")?;
        let objects_sum =
            sum(self.objects_sum, objects_count.into(), OBJECTS_SUM_MAX, "n_objects")?;
        let client = name(optional_field(row, columns.client), "client_id")?;
        let endpoint = name(optional_field(row, columns.endpoint), "endpoint")?;
        let worker = self.names.worker(&client, thread)?;
        let endpoint = self.names.endpoint(&endpoint)?;
        self.utc_offset_seconds.get_or_insert(offset_seconds);
        (self.bytes_sum, self.objects_sum) = (bytes_sum, objects_sum);

        let is_outside = |ns: &u64| !(start..=end).contains(ns);
        let disagrees = !duration_agrees(optional_field(row, columns.duration), end - start);
        let flaws = [
            first_byte.filter(is_outside).map(|_| LossKind::FirstByteOutside),
            last_byte.filter(is_outside).map(|_| LossKind::LastByteOutside),
            disagrees.then_some(LossKind::DurationDisagrees),
        ];
        let inside = |ns: Option<u64>| ns.filter(|ns| !is_outside(ns)).map(Moment::from_ns);
        let error = text(row.field(columns.error));
        let outcome =
            if error.is_empty() { ErrorClass::Ok } else { self.classifier.classify(&error) };
        let op = OpRecord {
            stage: StageId(kind as u8),
            job: JobId(0),
            worker,
            kind,
            endpoint,
            object: object_id(row.field(columns.file)),
            objects_count,
            bytes,
            intended: Moment::from_ns(start),
            start: Moment::from_ns(start),
            first_byte: inside(first_byte),
            assigned: None,
            last_byte_sent: inside(last_byte),
            end: Moment::from_ns(end),
            outcome,
            attempts: 1,
            is_measured: true,
        };
        Ok(Mapped { op, file: text(row.field(columns.file)), error, flaws })
    }
}

fn bad_field(column: &'static str) -> Fault {
    Fault::Lost(LossKind::BadField(column))
}

/// Returns the sum with one more value in it, if it may get that large.
fn sum(so_far: u64, value: u64, max: u64, column: &'static str) -> Result<u64, Fault> {
    let sum = so_far.checked_add(value).filter(|sum| *sum <= max);
    sum.ok_or(Fault::Lost(LossKind::BeyondSum(column)))
}

/// Returns a field whose column may be missing; then it is empty.
fn optional_field<R: Read>(row: &Rows<R>, column: Option<usize>) -> &[u8] {
    column.map_or(b"", |column| row.field(column))
}

fn op_kind(name: &[u8]) -> Option<OpKind> {
    str::from_utf8(name).ok().and_then(OpKind::from_name)
}

/// Returns a field as text; what is not UTF-8 in it is replaced.
fn text(field: &[u8]) -> Cow<'_, str> {
    // Nearly all texts are valid, and `from_utf8` is the faster way to find out.
    str::from_utf8(field).map_or_else(|_| String::from_utf8_lossy(field), Cow::Borrowed)
}

fn name<'a>(field: &'a [u8], column: &'static str) -> Result<Cow<'a, str>, Fault> {
    if field.len() > NAME_BYTES_MAX { Err(bad_field(column)) } else { Ok(text(field)) }
}

fn time(times: &mut Timestamps, field: &[u8], column: &'static str) -> Result<Timestamp, Fault> {
    times.parse(field).ok_or_else(|| bad_field(column))
}

fn optional_time(
    times: &mut Timestamps,
    field: &[u8],
    column: &'static str,
) -> Result<Option<u64>, Fault> {
    if field.is_empty() {
        return Ok(None);
    }
    time(times, field, column).map(|time| Some(time.unix_ns))
}

fn integer(field: &[u8], column: &'static str) -> Result<u32, Fault> {
    let number = whole_number(field).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| bad_field(column))
}

/// Returns the number that a field of digits names.
fn whole_number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Tells whether a duration, if there is one, is end minus start as nearly as two clocks can say.
fn duration_agrees(field: &[u8], between_ns: u64) -> bool {
    let tolerance = DURATION_TOLERANCE_NS + between_ns / 1_000;
    field.is_empty() || whole_number(field).is_some_and(|ns| ns.abs_diff(between_ns) <= tolerance)
}
