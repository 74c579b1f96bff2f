//! Writes the op log, part by part.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter,
    RowGroupMetaData,
};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;
use plimsoll_model::{Moment, OpRecord, PackedOp, RunId, WallTime};

use super::columns::Columns;
use super::row_group::{Packer, RowGroup};
use super::{
    KEY_CHECKSUM, KEY_ENDPOINTS, KEY_EPOCH, KEY_RUN_ID, KEY_SCHEMA, OPS_SCHEMA, TAIL_DIGITS,
    open_name, part_name, part_number, schema, tail_name,
};
use crate::seal::{Sealing, UNSEALED};
use crate::{RecordError, RunDirectory};

/// The most rows of one part.
pub const PART_ROWS_MAX: u64 = 1_000_000;

/// How old the oldest operation of the open part may get before `tick` closes the part.
pub const PART_AGE_MAX: Duration = Duration::from_secs(10);

/// How old the oldest operation may get that would be lost if the run were killed, before `tick`
/// makes sure of it.
pub const SAVE_AGE: Duration = Duration::from_secs(1);

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
    number: u32,
    rows: u64,
    file: SerializedFileWriter<Sealing>,
    /// The rows that are encoded and not yet in the file.
    group: Option<RowGroup>,
}

impl OpenPart {
    /// Writes the rows that are encoded as a row group.
    fn flush(&mut self, packer: &mut Packer) -> Result<(), ParquetError> {
        self.group.take().map_or(Ok(()), |group| group.write_to(&mut self.file, packer))
    }
}

/// Writes operations to the run directory.
///
/// A part becomes visible under its name when it is complete. Until then a second file beside it
/// holds how the part would end after what is saved of it, so that a writer that is dropped without
/// [`OpLogWriter::finish`] loses what came after that alone. After an error the rows of the open
/// part are lost that were not saved, and its files stay behind as unfinished.
pub struct OpLogWriter {
    directory: RunDirectory,
    schema: SchemaDescriptor,
    properties: WriterPropertiesPtr,
    columns: Columns,
    packer: Packer,
    saves: bool,
    oldest_end: Option<Moment>,
    /// When the oldest operation ended that is not saved.
    unsaved_end: Option<Moment>,
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
        Self {
            directory: directory.clone(),
            properties: Arc::new(properties(run_id, epoch, endpoints)),
            columns: Columns::new(endpoints, ROWS_BUFFERED_MAX),
            packer: Packer::new(),
            schema: SchemaDescriptor::new(schema()),
            saves: true,
            oldest_end: None,
            unsaved_end: None,
            part: None,
            part_number: 0,
            totals: OpLogTotals::default(),
        }
    }

    /// Returns a writer whose open part is not saved, for what can be made again.
    #[must_use]
    pub fn without_saving(self) -> Self {
        Self { saves: false, ..self }
    }

    /// Returns a writer that goes on behind the parts that are there.
    pub fn behind_others(self) -> Result<Self, RecordError> {
        let ops = self.directory.ops()?;
        let names = ops.names();
        let names = names.map_err(|source| RecordError::io("read", ops.path(), source))?;
        let part_number = names.iter().filter_map(|name| part_number(name)).max();
        Ok(Self { part_number: part_number.map_or(0, |last| last + 1), ..self })
    }

    /// Adds operations in the order given.
    pub fn append(&mut self, ops: &[OpRecord]) -> Result<(), RecordError> {
        ops.iter().try_for_each(|op| self.push(op))
    }

    /// Adds operations as they come out of the workers' queues.
    pub fn append_packed(&mut self, ops: &[PackedOp]) -> Result<(), RecordError> {
        ops.iter().try_for_each(|op| self.push(&OpRecord::from(op)))
    }

    /// Closes the open part if its oldest operation ended [`PART_AGE_MAX`] or longer before `now`,
    /// and saves it if the oldest that is not saved ended [`SAVE_AGE`] before.
    pub fn tick(&mut self, now: Moment) -> Result<(), RecordError> {
        let is_due = |end: Option<Moment>, age| end.is_some_and(|end| now.since(end) >= age);
        if is_due(self.oldest_end, PART_AGE_MAX) {
            self.close_part()
        } else if self.saves && is_due(self.unsaved_end, SAVE_AGE) {
            self.save()
        } else {
            Ok(())
        }
    }

    /// Closes the last part and returns what was written in all.
    pub fn finish(mut self) -> Result<OpLogTotals, RecordError> {
        self.close_part()?;
        Ok(self.totals)
    }

    fn push(&mut self, op: &OpRecord) -> Result<(), RecordError> {
        if usize::from(op.endpoint.0) >= self.columns.endpoints_count() {
            return Err(RecordError::UnknownEndpoint {
                path: self.directory.ops_path(),
                index: op.endpoint.0,
                count: self.columns.endpoints_count(),
            });
        }
        self.oldest_end.get_or_insert(op.end);
        self.unsaved_end.get_or_insert(op.end);
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
        let mut part = self.taken_part()?;
        let group = part.group.get_or_insert_with(|| RowGroup::new(&self.schema));
        let encoded = self.columns.encode(group, &mut self.packer);
        encoded.map_err(|source| self.failed(part.number, source))?;
        part.rows += self.columns.len() as u64;
        self.columns.clear();
        self.part = Some(part);
        Ok(())
    }

    /// Takes the open part out, which is begun if there is none.
    fn taken_part(&mut self) -> Result<OpenPart, RecordError> {
        if let Some(part) = self.part.take() {
            return Ok(part);
        }
        let number = self.part_number;
        let (ops, name) = (self.directory.ops()?, open_name(number));
        // The number is used up even if the part fails, so that its remains are never written over.
        self.part_number += 1;
        let file = ops.create(&name);
        let file = file.map_err(|source| RecordError::io("create", &ops.path_of(&name), source))?;
        let file = self.file(Sealing::new(file)).map_err(|source| self.failed(number, source))?;
        Ok(OpenPart { number, rows: 0, file, group: None })
    }

    fn file<W: Write + Send>(&self, to: W) -> Result<SerializedFileWriter<W>, ParquetError> {
        SerializedFileWriter::new(to, self.schema.root_schema_ptr(), Arc::clone(&self.properties))
    }

    /// Makes sure of the open part against the end of the process: rows that are encoded become a
    /// row group of it, and with what waits it is written how the part would end.
    fn save(&mut self) -> Result<(), RecordError> {
        self.unsaved_end = None;
        let mut part = self.taken_part()?;
        let tail = part.flush(&mut self.packer).and_then(|()| self.tail(&mut part.file));
        let tail = tail.map_err(|source| self.failed(part.number, source))?;
        let ops = self.directory.ops()?;
        let (name, new_name) = (tail_name(part.number), format!("{}.tmp", tail_name(part.number)));
        ops.remove(&new_name)
            .and_then(|()| ops.create(&new_name)?.write_all(&tail))
            .and_then(|()| ops.rename(&new_name, &name))
            .map_err(|source| RecordError::io("write", &ops.path_of(&name), source))?;
        self.part = Some(part);
        Ok(())
    }

    /// Returns how the part would end: after how many bytes, the waiting rows, and the footer.
    fn tail(&mut self, part: &mut SerializedFileWriter<Sealing>) -> Result<Vec<u8>, ParquetError> {
        part.flush()?;
        let begins = part.bytes_written();
        let mut groups = part.flushed_row_groups().to_vec();
        let mut tail = Vec::new();
        if self.columns.len() > 0 {
            let (bytes, group) = self.waiting()?;
            groups.push(moved(group, begins as i64, groups.len())?);
            tail = bytes;
        }
        let footer = footer(&self.properties, groups)?;
        ParquetMetaDataWriter::new(&mut tail, &footer).finish()?;
        part.inner().sum().clone().seal(&mut tail)?;
        let mut file = format!("{begins:0TAIL_DIGITS$}\n").into_bytes();
        file.append(&mut tail);
        Ok(file)
    }

    /// Returns the waiting rows as a row group that begins at 0.
    fn waiting(&mut self) -> Result<(Vec<u8>, RowGroupMetaData), ParquetError> {
        let mut group = RowGroup::new(&self.schema);
        self.columns.encode(&mut group, &mut self.packer)?;
        let mut file = self.file(Vec::new())?;
        let begins = file.bytes_written();
        group.write_to(&mut file, &mut self.packer)?;
        file.flush()?;
        let group = file.flushed_row_groups()[0].clone();
        let bytes = file.inner()[begins..].to_vec();
        Ok((bytes, moved(group, -(begins as i64), 0)?))
    }

    /// Completes the open part and gives it its name.
    fn close_part(&mut self) -> Result<(), RecordError> {
        self.oldest_end = None;
        self.unsaved_end = None;
        if self.columns.len() > 0 {
            self.encode()?;
        }
        let Some(mut part) = self.part.take() else { return Ok(()) };
        let finished = part.flush(&mut self.packer).and_then(|()| part.file.finish());
        let OpenPart { number, rows, mut file, .. } = part;
        let finished = finished.and_then(|_| Ok(file.inner_mut().seal()?));
        finished.map_err(|source| self.failed(number, source))?;
        let bytes = file.bytes_written() as u64;
        drop(file);
        let (ops, name) = (self.directory.ops()?, open_name(number));
        ops.rename(&name, &part_name(number))
            .and_then(|()| ops.remove(&tail_name(number)))
            .map_err(|source| RecordError::io("rename", &ops.path_of(&name), source))?;
        self.totals.rows += rows;
        self.totals.parts += 1;
        self.totals.bytes += bytes;
        Ok(())
    }

    /// Returns the error for a failure of the Parquet library while writing a part.
    fn failed(&self, number: u32, source: ParquetError) -> RecordError {
        RecordError::parquet_write(&self.directory.ops_path().join(open_name(number)), source)
    }
}

/// Returns a row group that lies `by` further on in its file, as the one of that index.
fn moved(group: RowGroupMetaData, by: i64, index: usize) -> Result<RowGroupMetaData, ParquetError> {
    let moved = |at: i64| at + by;
    let column = |column: &ColumnChunkMetaData| {
        column
            .clone()
            .into_builder()
            .set_data_page_offset(moved(column.data_page_offset()))
            .set_dictionary_page_offset(column.dictionary_page_offset().map(moved))
            .build()
    };
    let columns = group.columns().iter().map(column).collect::<Result<_, _>>()?;
    let begins = moved(group.file_offset().unwrap_or_default());
    let builder = group.into_builder().set_column_metadata(columns).set_file_offset(begins);
    builder.set_ordinal(index as i32).build()
}

/// Returns the footer of a part with these row groups, as the library writes it.
fn footer(
    properties: &WriterProperties,
    groups: Vec<RowGroupMetaData>,
) -> Result<ParquetMetaData, ParquetError> {
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let first = groups.first().ok_or_else(|| ParquetError::General("no rows".to_owned()))?;
    let metadata = FileMetaData::new(
        properties.writer_version().as_num(),
        rows,
        Some(properties.created_by().to_owned()),
        properties.key_value_metadata().cloned(),
        first.schema_descr_ptr(),
        None,
    );
    Ok(ParquetMetaData::new(metadata, groups))
}

/// Returns what a file says of itself. How columns are encoded is [`RowGroup`]'s to say.
fn properties(run_id: &RunId, epoch: WallTime, endpoints: &[String]) -> WriterProperties {
    let endpoints = serde_json::Value::from(endpoints.to_vec());
    let metadata = [
        (KEY_SCHEMA, OPS_SCHEMA.to_owned()),
        (KEY_RUN_ID, run_id.to_string()),
        (KEY_EPOCH, epoch.as_unix_ns().to_string()),
        (KEY_ENDPOINTS, endpoints.to_string()),
        // It is looked for near the end, so it comes last.
        (KEY_CHECKSUM, UNSEALED.to_owned()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    WriterProperties::builder()
        .set_created_by(format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata))
        .set_offset_index_disabled(true)
        .build()
}
