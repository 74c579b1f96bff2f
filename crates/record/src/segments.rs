//! Segments of an analysis as a Parquet file.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::RecordError;

/// One segment; the columns are described in `docs/formats/segments.md`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each field is the column of its name")]
pub struct SegmentRow {
    pub index: u64,
    pub op: &'static str,
    pub host: Option<String>,
    pub duration_s: f64,
    pub objects_per_op: Option<f64>,
    pub bytes: u64,
    pub full_ops: u64,
    pub partial_ops: u64,
    pub ops_started: u64,
    pub ops_ended: u64,
    pub errors: u64,
    pub mb_per_sec: f64,
    pub ops_ended_per_sec: f64,
    pub objs_per_sec: f64,
    pub reqs_ended_avg_ms: Option<f64>,
    pub start_time_unix_ns: u64,
    pub end_time_unix_ns: u64,
    pub stage: String,
    pub iteration_index: u64,
    pub job: String,
}

/// The columns in the words of Parquet.
const COLUMNS: &str = "message plimsoll_segment {
    REQUIRED INT64 index;
    REQUIRED BYTE_ARRAY op (STRING);
    OPTIONAL BYTE_ARRAY host (STRING);
    REQUIRED DOUBLE duration_s;
    OPTIONAL DOUBLE objects_per_op;
    REQUIRED INT64 bytes;
    REQUIRED INT64 full_ops;
    REQUIRED INT64 partial_ops;
    REQUIRED INT64 ops_started;
    REQUIRED INT64 ops_ended;
    REQUIRED INT64 errors;
    REQUIRED DOUBLE mb_per_sec;
    REQUIRED DOUBLE ops_ended_per_sec;
    REQUIRED DOUBLE objs_per_sec;
    OPTIONAL DOUBLE reqs_ended_avg_ms;
    REQUIRED INT64 start_time_unix_ns;
    REQUIRED INT64 end_time_unix_ns;
    REQUIRED BYTE_ARRAY stage (STRING);
    REQUIRED INT64 iteration_index;
    REQUIRED BYTE_ARRAY job (STRING);
}";

/// Writes segments as one Parquet file, in place of one that is there.
pub fn write_segments(path: &Path, rows: &[SegmentRow]) -> Result<(), RecordError> {
    let file = File::create(path).map_err(|source| RecordError::io("write", path, source))?;
    encode(file, rows).map_err(|source| RecordError::parquet_write(path, source))
}

fn encode(file: File, rows: &[SegmentRow]) -> Result<(), ParquetError> {
    let mut file = SerializedFileWriter::new(
        file,
        Arc::new(parse_message_type(COLUMNS)?),
        WriterProperties::default().into(),
    )?;
    Columns { group: file.next_row_group()?, rows }.write()?;
    file.close().map(|_| ())
}

/// Writes one column after the other.
struct Columns<'f, 'a> {
    group: SerializedRowGroupWriter<'f, File>,
    rows: &'a [SegmentRow],
}

impl<'a> Columns<'_, 'a> {
    fn write(mut self) -> Result<(), ParquetError> {
        self.whole(|row| row.index)?;
        self.text(|row| Some(row.op))?;
        self.text(|row| row.host.as_deref())?;
        self.number(|row| Some(row.duration_s))?;
        self.number(|row| row.objects_per_op)?;
        self.whole(|row| row.bytes)?;
        self.whole(|row| row.full_ops)?;
        self.whole(|row| row.partial_ops)?;
        self.whole(|row| row.ops_started)?;
        self.whole(|row| row.ops_ended)?;
        self.whole(|row| row.errors)?;
        self.number(|row| Some(row.mb_per_sec))?;
        self.number(|row| Some(row.ops_ended_per_sec))?;
        self.number(|row| Some(row.objs_per_sec))?;
        self.number(|row| row.reqs_ended_avg_ms)?;
        self.whole(|row| row.start_time_unix_ns)?;
        self.whole(|row| row.end_time_unix_ns)?;
        self.text(|row| Some(&row.stage))?;
        self.whole(|row| row.iteration_index)?;
        self.text(|row| Some(&row.job))?;
        self.group.close().map(|_| ())
    }

    fn whole(&mut self, of: impl Fn(&SegmentRow) -> u64) -> Result<(), ParquetError> {
        self.column::<Int64Type>(|row| Some(of(row) as i64))
    }

    fn number(&mut self, of: impl Fn(&SegmentRow) -> Option<f64>) -> Result<(), ParquetError> {
        self.column::<DoubleType>(of)
    }

    fn text(&mut self, of: impl Fn(&'a SegmentRow) -> Option<&'a str>) -> Result<(), ParquetError> {
        self.column::<ByteArrayType>(|row| of(row).map(ByteArray::from))
    }

    fn column<T: DataType>(
        &mut self,
        of: impl Fn(&'a SegmentRow) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let known: Vec<Option<T::T>> = self.rows.iter().map(of).collect();
        let levels: Vec<i16> = known.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = known.into_iter().flatten().collect();
        let mut column = self.group.next_column()?.expect("the schema has that column");
        column.typed::<T>().write_batch(&values, Some(&levels), None)?;
        column.close()
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    #[test]
    fn what_is_written_is_read_back_with_nulls() {
        let row = SegmentRow {
            index: 0,
            op: "GET",
            host: None,
            duration_s: 1.0,
            objects_per_op: None,
            bytes: 7,
            full_ops: 1,
            partial_ops: 2,
            ops_started: 3,
            ops_ended: 4,
            errors: 5,
            mb_per_sec: 0.5,
            ops_ended_per_sec: 4.0,
            objs_per_sec: 4.25,
            reqs_ended_avg_ms: Some(1.5),
            start_time_unix_ns: 1_795_251_600_000_000_000,
            end_time_unix_ns: 1_795_251_601_000_000_000,
            stage: "main".to_owned(),
            iteration_index: 2,
            job: "users".to_owned(),
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("segments.parquet");
        write_segments(&path, &[row.clone(), row]).unwrap();
        let file = File::open(&path).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        let columns: Vec<(&String, &Field)> = rows[1].get_column_iter().collect();
        assert_eq!(columns.len(), 20);
        let of = |name: &str| columns.iter().find(|(each, _)| *each == name).unwrap().1;
        assert_eq!(*of("op"), Field::Str("GET".to_owned()));
        assert_eq!(*of("host"), Field::Null);
        assert_eq!(*of("objects_per_op"), Field::Null);
        assert_eq!(*of("ops_ended"), Field::Long(4));
        assert_eq!(*of("objs_per_sec"), Field::Double(4.25));
        assert_eq!(*of("reqs_ended_avg_ms"), Field::Double(1.5));
        assert_eq!(*of("end_time_unix_ns"), Field::Long(1_795_251_601_000_000_000));
        assert_eq!(*of("stage"), Field::Str("main".to_owned()));
        assert_eq!(*of("iteration_index"), Field::Long(2));
        assert_eq!(*of("job"), Field::Str("users".to_owned()));
    }
}
