//! The op log: one row per operation, in Parquet parts that are each complete in themselves.
//!
//! The columns are described in `docs/formats/ops.md`.

mod columns;
mod found;
mod pages;
mod part;
mod reader;
mod writer;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use reader::{OpLog, Salvage};
pub use writer::{OpLogTotals, OpLogWriter, PART_AGE_MAX, PART_ROWS_MAX, SAVE_AGE};

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

/// Returns the file name of a part that is not complete.
fn open_name(number: u32) -> String {
    part_name(number) + OPEN_SUFFIX
}

/// Returns the file name of the tail of a part that is not complete.
fn tail_name(number: u32) -> String {
    part_name(number) + TAIL_SUFFIX
}

/// Returns the columns as Arrow sees them. Times and bytes are signed, so that a query may subtract
/// them freely.
fn arrow_schema() -> SchemaRef {
    let text = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    let column = |name, data_type| Field::new(name, data_type, false);
    let nullable = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        column("stage", DataType::UInt8),
        column("job", DataType::UInt8),
        column("worker", DataType::UInt32),
        column("kind", text(DataType::UInt8)),
        column("endpoint", text(DataType::UInt16)),
        nullable("object_owner", DataType::UInt32),
        nullable("object_number", DataType::Int64),
        column("objects_count", DataType::UInt32),
        nullable("bytes", DataType::Int64),
        column("schedule_delay_ns", DataType::Int64),
        column("start_ns", DataType::Int64),
        nullable("last_byte_sent_ns", DataType::Int64),
        nullable("first_byte_to_end_ns", DataType::Int64),
        column("end_ns", DataType::Int64),
        column("outcome", text(DataType::UInt8)),
        column("attempts", DataType::UInt8),
    ]))
}
