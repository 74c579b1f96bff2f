//! A row group under way: its columns grow side by side, page by page, and in the file each lies in
//! one piece.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

/// How pages are compressed: the lowest level, as the recorder shares the machine with the load.
const LEVEL: i32 = 1;

/// Returns how pages are compressed, as files say it.
pub(super) fn compression() -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(LEVEL).expect("zstd has a level 1"))
}

/// Compresses pages; kept from one to the next, as its tables are large.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    /// The page under way before it is compressed.
    body: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> Self {
        let zstd = zstd::bulk::Compressor::new(LEVEL).expect("zstd has a level 1");
        Self { zstd, body: Vec::new() }
    }
}

/// The pages of one column.
struct Chunk {
    descr: ColumnDescPtr,
    pages: TrackedWrite<Vec<u8>>,
    pages_count: i32,
    rows: u64,
    /// How many bytes the pages unfold to, with their headers.
    unfolded: usize,
    /// How the values of pages are encoded.
    encoding: Encoding,
    dictionary: Dictionary,
}

/// The texts of a column, in the order in which they first came.
#[derive(Default)]
pub(super) struct Dictionary {
    /// By number of a text: its key, if it has one.
    keys: Vec<Option<u32>>,
    /// The texts, each behind its length.
    texts: Vec<u8>,
    count: u32,
}

impl Dictionary {
    /// Returns the key of a text by its number.
    pub(super) fn key(&mut self, number: u16, text: &str) -> u32 {
        let at = usize::from(number);
        if self.keys.len() <= at {
            // Bound: a number of 16 bits.
            self.keys.resize(at + 1, None);
        }
        *self.keys[at].get_or_insert_with(|| {
            self.texts.extend_from_slice(&(text.len() as u32).to_le_bytes());
            self.texts.extend_from_slice(text.as_bytes());
            self.count += 1;
            self.count - 1
        })
    }

    /// Returns how many bits a key has.
    pub(super) fn width(&self) -> u32 {
        u32::BITS - self.count.saturating_sub(1).leading_zeros()
    }
}

/// The columns of a row group, in memory until it is written.
pub(super) struct RowGroup {
    columns: Vec<Chunk>,
}

impl RowGroup {
    /// Returns an empty row group of these columns.
    pub(super) fn new(schema: &SchemaDescriptor) -> Self {
        let column = |descr: &ColumnDescPtr| Chunk {
            descr: Arc::clone(descr),
            pages: TrackedWrite::new(Vec::new()),
            pages_count: 0,
            rows: 0,
            unfolded: 0,
            encoding: Encoding::DELTA_BINARY_PACKED,
            dictionary: Dictionary::default(),
        };
        Self { columns: schema.columns().iter().map(column).collect() }
    }

    /// Adds a page of `rows` rows to a column. `fill` appends its levels and values and returns how
    /// these are encoded, which is the same for all pages of a column.
    pub(super) fn page(
        &mut self,
        column: usize,
        rows: usize,
        packer: &mut Packer,
        fill: impl FnOnce(&mut Vec<u8>, &mut Dictionary) -> Encoding,
    ) -> Result<(), ParquetError> {
        let chunk = &mut self.columns[column];
        packer.body.clear();
        chunk.encoding = fill(&mut packer.body, &mut chunk.dictionary);
        let page = Page::DataPage {
            buf: packer.zstd.compress(&packer.body)?.into(),
            num_values: rows as u32,
            encoding: chunk.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        chunk.unfolded += write_page(&mut chunk.pages, page, packer.body.len())?;
        chunk.pages_count += 1;
        chunk.rows += rows as u64;
        Ok(())
    }

    /// Adds the row group to a file.
    pub(super) fn write_to<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
        packer: &mut Packer,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for chunk in self.columns {
            let (bytes, closed) = chunk.close(packer)?;
            group.append_column(&bytes, closed)?;
        }
        group.close().map(|_| ())
    }
}

impl Chunk {
    /// Returns the pages, the dictionary before them if there is one, and what the footer says.
    fn close(mut self, packer: &mut Packer) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let mut stats = vec![PageEncodingStats {
            page_type: PageType::DATA_PAGE,
            encoding: self.encoding,
            count: self.pages_count,
        }];
        let mut encodings = vec![Encoding::RLE, self.encoding];
        let mut all = TrackedWrite::new(Vec::new());
        let Dictionary { texts, count, .. } = &self.dictionary;
        let has_dictionary = *count > 0;
        if has_dictionary {
            let page = Page::DictionaryPage {
                buf: packer.zstd.compress(texts)?.into(),
                num_values: *count,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            self.unfolded += write_page(&mut all, page, texts.len())?;
            stats.insert(
                0,
                PageEncodingStats {
                    page_type: PageType::DICTIONARY_PAGE,
                    encoding: Encoding::PLAIN,
                    count: 1,
                },
            );
            encodings.insert(0, Encoding::PLAIN);
        }
        let data_begins = all.bytes_written() as i64;
        let mut bytes = all.into_inner()?;
        bytes.append(&mut self.pages.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(self.descr)
            .set_compression(compression())
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.unfolded as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(data_begins)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes.into(), closed))
    }
}

/// Writes a page whose content unfolds to so many bytes, and returns how many these are with its
/// header.
fn write_page(
    to: &mut TrackedWrite<Vec<u8>>,
    page: Page,
    unfolded: usize,
) -> Result<usize, ParquetError> {
    let page = CompressedPage::new(page, unfolded);
    SerializedPageWriter::new(to).write_page(page).map(|written| written.uncompressed_size)
}
