//! One part of an op log in memory, and what is checked of it before its pages are decoded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::thrift::{has_footer, unfolded_bytes};
use super::{
    KEY_ENDPOINTS, KEY_RUN_ID, KEY_SCHEMA, OPS_SCHEMA, PART_ROWS_MAX, TAIL_DIGITS, has_written,
    is_closed, open_name, part_name, tail_name,
};
use crate::RecordError;
use crate::folder::Folder;
use crate::seal::{DIGITS_COUNT, Seal};

/// How large a part that is read may be. A million rows take some 20 MB, and could not take 128.
const PART_BYTES_MAX: u64 = 256 << 20;
/// How much the pages of one column of a part may hold: eight bytes for each row, and as much
/// again.
const COLUMN_BYTES_MAX: u64 = 16 * PART_ROWS_MAX;

/// A part that was read, with its footer.
pub(super) struct Part {
    bytes: Arc<Bytes>,
    footer: ParquetMetaData,
    /// The run that wrote it.
    pub(super) run_id: String,
    /// In the order of their ids.
    pub(super) endpoints: Vec<String>,
    /// Its checksum, which fits.
    pub(super) checksum: [u8; DIGITS_COUNT],
}

impl Part {
    /// Reads the closed part of that number.
    pub(super) fn closed(ops: &Folder, number: u32) -> Result<Self, RecordError> {
        let name = part_name(number);
        let bytes = ops.read(&name, PART_BYTES_MAX)?;
        Self::of(bytes.into(), &ops.path_of(&name))
    }

    /// Reads what was saved of a part that was never closed; `None` if nothing was.
    pub(super) fn saved(ops: &Folder, number: u32) -> Result<Option<Self>, RecordError> {
        let (open, tail) = (open_name(number), tail_name(number));
        let tail_bytes = match ops.read(&tail, PART_BYTES_MAX) {
            Err(RecordError::Missing { .. }) => return Ok(None),
            read => read?,
        };
        let damaged = |reason: &str| RecordError::damaged(&ops.path_of(&tail), reason);
        let (begins, rest) = tail_bytes
            .split_at_checked(TAIL_DIGITS)
            .and_then(|(digits, rest)| {
                let begins: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
                Some((begins, rest.strip_prefix(b"\n")?))
            })
            .ok_or_else(|| damaged("it does not say where it belongs"))?;
        if begins > PART_BYTES_MAX {
            return Err(damaged("it belongs behind more bytes than a part has"));
        }
        let mut bytes = ops.read_first(&open, begins).map_err(|error| match error {
            // It may have been closed since it was looked for.
            RecordError::Missing { .. } if !is_closed(ops, number) => {
                damaged("the part it belongs to is missing")
            }
            other => other,
        })?;
        if bytes.len() as u64 != begins {
            return Err(damaged("the part it belongs to is shorter"));
        }
        bytes.extend_from_slice(rest);
        Self::of(bytes.into(), &ops.path_of(&open)).map(Some)
    }

    fn of(bytes: Bytes, path: &Path) -> Result<Self, RecordError> {
        // What a killed run saved of a part has one too: `OpLogWriter` seals each tail.
        let Some(checksum) = Seal::digits(&bytes) else {
            return Err(RecordError::damaged(path, "it has no checksum"));
        };
        if Seal::of(&bytes) == Seal::Broken {
            return Err(RecordError::damaged(path, Seal::BROKEN));
        }
        if !has_footer(&bytes) {
            return Err(RecordError::damaged(path, "its footer is not that of an op log"));
        }
        let footer = guarded(path, || ParquetMetaDataReader::new().parse_and_finish(&bytes))?;
        let endpoints = endpoints(path, footer.file_metadata())?;
        let run_id = metadata_value(footer.file_metadata(), KEY_RUN_ID);
        let run_id = run_id.unwrap_or_default().to_owned();
        check_columns(&footer)
            .and_then(|()| check_sizes(&bytes, &footer))
            .map_err(|reason| RecordError::damaged(path, reason))?;
        Ok(Self { bytes: Arc::new(bytes), footer, run_id, endpoints, checksum })
    }

    /// Returns how many rows its footer promises.
    pub(super) fn rows(&self) -> u64 {
        self.footer.file_metadata().num_rows() as u64
    }

    /// Returns the whole of it as a closed part is.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns its row groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.footer.row_groups().iter().map(|group| Group { bytes: &self.bytes, group })
    }
}

/// A row group of a part.
pub(super) struct Group<'a> {
    bytes: &'a Arc<Bytes>,
    group: &'a RowGroupMetaData,
}

impl Group<'_> {
    /// Returns how many rows it promises.
    pub(super) fn rows(&self) -> usize {
        self.group.num_rows() as usize
    }

    /// Returns what a column is, and the way to its pages.
    pub(super) fn column(
        &self,
        index: usize,
    ) -> Result<(ColumnDescPtr, SerializedPageReader<Bytes>), String> {
        let column = self.group.column(index);
        let pages = SerializedPageReader::new(Arc::clone(self.bytes), column, self.rows(), None);
        Ok((column.column_descr_ptr(), pages.map_err(|error| error.to_string())?))
    }
}

/// Runs a step of the Parquet library, which panics on some damaged files instead of returning an
/// error.
pub(super) fn guarded<T, E: ToString>(
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

fn metadata_value<'a>(metadata: &'a FileMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

/// Checks that the columns are those that are written.
fn check_columns(metadata: &ParquetMetaData) -> Result<(), String> {
    let found = metadata.file_metadata().schema();
    match has_written(found) {
        true => Ok(()),
        false => Err("its columns are not those of an op log".to_owned()),
    }
}

/// Checks that no part has more rows, nor larger columns, than were ever written: the pages of a
/// small file can unfold to anything.
fn check_sizes(bytes: &[u8], metadata: &ParquetMetaData) -> Result<(), String> {
    let rows = metadata.file_metadata().num_rows();
    let groups = metadata.row_groups();
    let sum = groups.iter().try_fold(0i64, |sum, group| {
        sum.checked_add(group.num_rows()).filter(|_| group.num_rows() >= 0)
    });
    if sum != Some(rows) || rows as u64 > PART_ROWS_MAX {
        return Err(format!("it says that it has {rows} rows"));
    }
    // Pages that several columns share would be walked once for each of them.
    let columns = groups.iter().flat_map(RowGroupMetaData::columns);
    let mut stored = columns.map(|column| u64::try_from(column.compressed_size()).ok());
    let sum = stored.try_fold(0u64, |sum, size| sum.checked_add(size?));
    if sum.is_none_or(|sum| sum > bytes.len() as u64) {
        return Err("its columns take more bytes than it has".to_owned());
    }
    for index in 0..metadata.file_metadata().schema_descr().num_columns() {
        let chunks = groups.iter().filter_map(|group| group.columns().get(index));
        let sum = chunks
            .map(|column| unfolded_bytes(chunk(bytes, column)?))
            .try_fold(0u64, |sum, size| sum.checked_add(size?));
        match sum {
            None => return Err("the headers of its pages make no sense".to_owned()),
            Some(sum) if sum > COLUMN_BYTES_MAX => {
                return Err(format!(
                    "its pages unfold to {sum} bytes, more than its rows can hold"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns the pages of a column in a row group.
fn chunk<'a>(bytes: &'a [u8], column: &ColumnChunkMetaData) -> Option<&'a [u8]> {
    let begins = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let begins = usize::try_from(begins).ok()?;
    let size = usize::try_from(column.compressed_size()).ok()?;
    bytes.get(begins..begins.checked_add(size)?)
}
