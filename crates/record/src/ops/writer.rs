//! Writes the op log, part by part.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use plimsoll_model::{Moment, OpRecord, PackedOp, RunId, WallTime};

use super::columns::Columns;
use super::{
    KEY_ENDPOINTS, KEY_EPOCH, KEY_RUN_ID, KEY_SCHEMA, OPEN_SUFFIX, OPS_SCHEMA, PART_PREFIX,
    PART_SUFFIX, arrow_schema,
};
use crate::{RecordError, RunDirectory};

/// The most rows of one part, which is also one row group.
pub const PART_ROWS_MAX: u64 = 1_000_000;

/// How old the oldest operation of the open part may get before `tick` closes the part.
pub const PART_AGE_MAX: Duration = Duration::from_secs(10);

/// Rows that wait as plain vectors before they are encoded; with fewer or more of them a row costs
/// more.
const ROWS_BUFFERED_MAX: usize = 8_192;

/// What was written in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpLogTotals {
    /// Operations in closed parts.
    pub rows: u64,
    /// Closed parts.
    pub parts: u32,
    /// Bytes of the closed parts.
    pub bytes: u64,
}

/// The part that is being written.
struct OpenPart {
    path: PathBuf,
    rows: u64,
    file: ArrowWriter<File>,
}

/// Writes operations to the run directory.
///
/// A part becomes visible under its name when it is complete; a writer that is dropped without
/// [`OpLogWriter::finish`] loses the open part and nothing else. After an error the rows of the
/// open part are lost, and its file stays behind as unfinished.
pub struct OpLogWriter {
    directory: PathBuf,
    endpoints_count: usize,
    schema: SchemaRef,
    properties: WriterProperties,
    columns: Columns,
    oldest_end: Option<Moment>,
    part: Option<OpenPart>,
    part_number: u32,
    totals: OpLogTotals,
}

impl OpLogWriter {
    /// Returns a writer for the run's op log; `epoch` is the wall time of moment 0, and an
    /// `EndpointId` is an index into `endpoints`.
    pub fn new(
        directory: &RunDirectory,
        run_id: &RunId,
        epoch: WallTime,
        endpoints: &[String],
    ) -> Self {
        let schema = arrow_schema();
        Self {
            directory: directory.ops_path(),
            endpoints_count: endpoints.len(),
            properties: properties(run_id, epoch, endpoints),
            columns: Columns::new(SchemaRef::clone(&schema), endpoints, ROWS_BUFFERED_MAX),
            schema,
            oldest_end: None,
            part: None,
            part_number: 0,
            totals: OpLogTotals::default(),
        }
    }

    /// Adds operations in the order given.
    pub fn append(&mut self, ops: &[OpRecord]) -> Result<(), RecordError> {
        ops.iter().try_for_each(|op| self.push(op))
    }

    /// Adds operations as they come out of the workers' queues.
    pub fn append_packed(&mut self, ops: &[PackedOp]) -> Result<(), RecordError> {
        ops.iter().try_for_each(|op| self.push(&OpRecord::from(op)))
    }

    /// Closes the open part if its oldest operation ended [`PART_AGE_MAX`] or longer before `now`.
    pub fn tick(&mut self, now: Moment) -> Result<(), RecordError> {
        match self.oldest_end {
            Some(oldest) if now.since(oldest) >= PART_AGE_MAX => self.close_part(),
            _ => Ok(()),
        }
    }

    /// Closes the last part and returns what was written in all.
    pub fn finish(mut self) -> Result<OpLogTotals, RecordError> {
        self.close_part()?;
        Ok(self.totals)
    }

    fn push(&mut self, op: &OpRecord) -> Result<(), RecordError> {
        if usize::from(op.endpoint.0) >= self.endpoints_count {
            return Err(RecordError::UnknownEndpoint {
                path: self.directory.clone(),
                index: op.endpoint.0,
                count: self.endpoints_count,
            });
        }
        if self.oldest_end.is_none() {
            self.oldest_end = Some(op.end);
        }
        self.columns.push(op);
        let rows_open = self.part.as_ref().map_or(0, |part| part.rows);
        if rows_open + self.columns.len() as u64 >= PART_ROWS_MAX {
            return self.close_part();
        }
        if self.columns.is_full() {
            return self.encode();
        }
        Ok(())
    }

    /// Moves the waiting rows into the open part, which is begun if there is none.
    fn encode(&mut self) -> Result<(), RecordError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.open_part()?,
        };
        let rows = self.columns.len() as u64;
        let written = self.columns.take_batch().map_err(Into::into);
        written
            .and_then(|batch| part.file.write(&batch))
            .map_err(|source| RecordError::parquet_write(&part.path, source))?;
        part.rows += rows;
        self.part = Some(part);
        Ok(())
    }

    fn open_part(&mut self) -> Result<OpenPart, RecordError> {
        let name = format!("{PART_PREFIX}{:06}{PART_SUFFIX}{OPEN_SUFFIX}", self.part_number);
        let path = self.directory.join(name);
        // The number is used up even if the part fails, so that its remains are never written over.
        self.part_number += 1;
        let file =
            File::create(&path).map_err(|source| RecordError::io("create", &path, source))?;
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_schema_root("plimsoll_op".to_owned())
            .with_skip_arrow_metadata(true);
        let file = ArrowWriter::try_new_with_options(file, SchemaRef::clone(&self.schema), options)
            .map_err(|source| RecordError::parquet_write(&path, source))?;
        Ok(OpenPart { path, rows: 0, file })
    }

    /// Completes the open part and gives it its name.
    fn close_part(&mut self) -> Result<(), RecordError> {
        self.oldest_end = None;
        if self.columns.len() > 0 {
            self.encode()?;
        }
        let Some(OpenPart { path, rows, mut file }) = self.part.take() else { return Ok(()) };
        file.finish().map_err(|source| RecordError::parquet_write(&path, source))?;
        let bytes = file.bytes_written() as u64;
        drop(file);
        fs::rename(&path, closed_path(&path))
            .map_err(|source| RecordError::io("rename", &path, source))?;
        self.totals.rows += rows;
        self.totals.parts += 1;
        self.totals.bytes += bytes;
        Ok(())
    }
}

/// Returns the name an open part gets when it is complete.
fn closed_path(open: &Path) -> PathBuf {
    open.with_extension("")
}

/// Returns how the columns are encoded.
fn properties(run_id: &RunId, epoch: WallTime, endpoints: &[String]) -> WriterProperties {
    let endpoints = serde_json::Value::from(endpoints.to_vec());
    let metadata = [
        (KEY_SCHEMA, OPS_SCHEMA.to_owned()),
        (KEY_RUN_ID, run_id.to_string()),
        (KEY_EPOCH, epoch.as_unix_ns().to_string()),
        (KEY_ENDPOINTS, endpoints.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let level = ZstdLevel::try_new(1).expect("zstd has a level 1");
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata))
        .set_max_row_group_row_count(Some(PART_ROWS_MAX as usize))
        .set_compression(Compression::ZSTD(level))
        .set_write_batch_size(ROWS_BUFFERED_MAX)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for text in ["kind", "endpoint", "outcome"] {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(text), true)
            .set_column_encoding(ColumnPath::from(text), Encoding::PLAIN);
    }
    properties.build()
}
