//! A row group under way: its columns grow side by side, and in the file each lies in one piece.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;

/// The encoded pages of one column, shared with the writer that encodes them.
#[derive(Clone)]
struct Pages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SerializedPageWriter::new(&mut bytes).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

/// The columns of a row group, in memory until it is written.
pub(super) struct RowGroup {
    columns: Vec<(ColumnWriter<'static>, Pages)>,
}

impl RowGroup {
    /// Returns an empty row group of these columns.
    pub(super) fn new(schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> Self {
        let column = |column: &Arc<_>| {
            let pages = Pages(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))));
            let (column, properties) = (Arc::clone(column), Arc::clone(properties));
            (get_column_writer(column, properties, Box::new(pages.clone())), pages)
        };
        Self { columns: schema.columns().iter().map(column).collect() }
    }

    /// Returns the columns in their order.
    pub(super) fn columns(&mut self) -> impl Iterator<Item = &mut ColumnWriter<'static>> {
        self.columns.iter_mut().map(|(column, _)| column)
    }

    /// Adds the row group to a file.
    pub(super) fn write_to<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for (column, Pages(pages)) in self.columns {
            let closed = column.close()?;
            let pages = Arc::into_inner(pages).expect("the column's writer is gone");
            let pages = pages.into_inner().unwrap_or_else(PoisonError::into_inner);
            group.append_column(&Bytes::from(pages.into_inner()?), closed)?;
        }
        group.close().map(|_| ())
    }
}
