//! The op log: one row per operation, in Parquet parts that are each complete in themselves.
//!
//! The columns are described in `docs/formats/ops.md`.

mod closing;
mod columns;
mod decoded;
mod found;
mod packed;
mod part;
mod reader;
mod row_group;
mod texts;
mod thrift;
mod writer;

use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{Type, TypePtr};

pub use reader::{OpLog, Salvage};
pub use writer::{OpLogTotals, OpLogWriter, PART_AGE_MAX, PART_ROWS_MAX, SAVE_AGE};

use crate::folder::Folder;

/// The version of the op log's columns, as it stands in every part.
const OPS_SCHEMA: &str = "plimsoll.ops/1";

/// The metadata key of the schema version.
const KEY_SCHEMA: &str = "plimsoll.schema";
/// The metadata key of the run id.
const KEY_RUN_ID: &str = "plimsoll.run_id";
/// The metadata key of the wall time of the run's epoch.
const KEY_EPOCH: &str = "plimsoll.epoch_unix_ns";
/// The metadata key of the endpoints, a JSON list in the order of their ids.
const KEY_ENDPOINTS: &str = "plimsoll.endpoints";
/// The metadata key of the checksum of the part.
const KEY_CHECKSUM: &str = "plimsoll.checksum";

/// How the file name of a part begins and ends; six digits of its number stand between.
const PART_PREFIX: &str = "part-";
const PART_SUFFIX: &str = ".parquet";
/// What is added to the name while the part is being written.
const OPEN_SUFFIX: &str = ".open";
/// What stands instead of that in the name of the file with which the part would end if the run
/// were killed now.
const TAIL_SUFFIX: &str = ".tail";
/// How many digits at the beginning of a tail say after how many bytes of the part it belongs; a
/// newline follows them.
const TAIL_DIGITS: usize = 20;

/// Returns the file name of a part.
fn part_name(number: u32) -> String {
    format!("{PART_PREFIX}{number:06}{PART_SUFFIX}")
}

/// Returns the sentence about what was not saved of a part that was never closed.
fn unsaved(number: u32, rows_saved: Option<u64>) -> String {
    let counted = match rows_saved {
        Some(rows) => format!(
            "the {rows} operations that were saved of it are counted, and those of its last \
             second or two are not"
        ),
        None => "its operations are not counted".to_owned(),
    };
    format!(
        "{} was never closed, as the run was killed or is still going on: {counted}",
        part_name(number)
    )
}

/// Tells whether the part of that number is complete.
fn is_closed(ops: &Folder, number: u32) -> bool {
    ops.file(&part_name(number)).is_ok()
}

/// Tells whether a complete part has that file name.
pub(crate) fn is_closed_part(name: &str) -> bool {
    name.ends_with(PART_SUFFIX) && part_number(name).is_some()
}

/// Tells whether a file of a part, complete or not, has that name.
pub(crate) fn is_part_file(name: &str) -> bool {
    part_number(name).is_some()
}

/// Returns the number of the part whose file, complete or not, has that name.
fn part_number(name: &str) -> Option<u32> {
    let (digits, _) = name.strip_prefix(PART_PREFIX)?.split_once(PART_SUFFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Returns the file name of a part that is not complete.
fn open_name(number: u32) -> String {
    part_name(number) + OPEN_SUFFIX
}

/// Returns the file name of the tail of a part that is not complete.
fn tail_name(number: u32) -> String {
    part_name(number) + TAIL_SUFFIX
}

/// The columns in the words of Parquet. Times and bytes are signed, so that a query may subtract
/// them freely.
const COLUMNS: &str = "message plimsoll_op {
    REQUIRED INT32 stage (INTEGER(8, false));
    REQUIRED INT32 job (INTEGER(8, false));
    REQUIRED INT32 worker (INTEGER(32, false));
    REQUIRED BYTE_ARRAY kind (STRING);
    REQUIRED BYTE_ARRAY endpoint (STRING);
    OPTIONAL INT32 object_owner (INTEGER(32, false));
    OPTIONAL INT64 object_number;
    REQUIRED INT32 objects_count (INTEGER(32, false));
    OPTIONAL INT64 bytes;
    REQUIRED INT64 schedule_delay_ns;
    REQUIRED INT64 start_ns;
    OPTIONAL INT64 last_byte_sent_ns;
    OPTIONAL INT64 first_byte_to_end_ns;
    REQUIRED INT64 end_ns;
    REQUIRED BYTE_ARRAY outcome (STRING);
    REQUIRED INT32 attempts (INTEGER(8, false));
    OPTIONAL INT64 assigned_ns;
    REQUIRED BOOLEAN measured;
}";

/// Returns the columns as Parquet sees them, as they are written today.
fn schema() -> TypePtr {
    Arc::new(parse_message_type(COLUMNS).expect("the columns are a schema"))
}

/// Tells whether these are the columns that are written.
fn has_written(columns: &Type) -> bool {
    *columns == *schema()
}
