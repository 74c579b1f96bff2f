//! Segments of an analysis as a Parquet file.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

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
}

/// Writes segments as one Parquet file, in place of one that is there.
pub fn write_segments(path: &Path, rows: &[SegmentRow]) -> Result<(), RecordError> {
    let file = File::create(path).map_err(|source| RecordError::io("write", path, source))?;
    let written = batch(rows).map_err(ParquetError::from).and_then(|batch| {
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None)?;
        writer.write(&batch)?;
        writer.close()
    });
    written.map(|_| ()).map_err(|source| RecordError::parquet_write(path, source))
}

fn batch(rows: &[SegmentRow]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let whole = |of: fn(&SegmentRow) -> u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| of(row) as i64)))
    };
    let number = |of: fn(&SegmentRow) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Float64Array>())
    };
    let op: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.op)));
    let host: ArrayRef =
        Arc::new(rows.iter().map(|row| row.host.as_deref()).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([
        ("index", whole(|row| row.index), false),
        ("op", op, false),
        ("host", host, true),
        ("duration_s", number(|row| Some(row.duration_s)), false),
        ("objects_per_op", number(|row| row.objects_per_op), true),
        ("bytes", whole(|row| row.bytes), false),
        ("full_ops", whole(|row| row.full_ops), false),
        ("partial_ops", whole(|row| row.partial_ops), false),
        ("ops_started", whole(|row| row.ops_started), false),
        ("ops_ended", whole(|row| row.ops_ended), false),
        ("errors", whole(|row| row.errors), false),
        ("mb_per_sec", number(|row| Some(row.mb_per_sec)), false),
        ("ops_ended_per_sec", number(|row| Some(row.ops_ended_per_sec)), false),
        ("objs_per_sec", number(|row| Some(row.objs_per_sec)), false),
        ("reqs_ended_avg_ms", number(|row| row.reqs_ended_avg_ms), true),
        ("start_time_unix_ns", whole(|row| row.start_time_unix_ns), false),
        ("end_time_unix_ns", whole(|row| row.end_time_unix_ns), false),
    ])
}

#[cfg(test)]
mod tests {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

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
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("segments.parquet");
        write_segments(&path, &[row.clone(), row]).unwrap();
        let file = File::open(&path).unwrap();
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = reader.next().unwrap().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 17));
        assert_eq!(batch.column_by_name("host").unwrap().null_count(), 2);
        assert_eq!(batch.column_by_name("reqs_ended_avg_ms").unwrap().null_count(), 0);
    }
}
