//! A raw file of warp's that is being written.

use std::io::{self, BufWriter, Write};

use plimsoll_foreign::warp::raw::{RawRow, Writer};
use plimsoll_model::{Moment, OpRecord};

/// A raw file of warp's that is being written.
pub(crate) struct RawFile<W: Write> {
    writer: Writer<BufWriter<W>>,
    worker_max: u32,
}

/// What the names of a record say of an operation.
pub(crate) struct Around<'a> {
    pub(crate) thread: u32,
    pub(crate) client_id: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) file: &'a str,
    pub(crate) error: &'a str,
}

impl<W: Write> RawFile<W> {
    pub(crate) fn new(to: W) -> io::Result<Self> {
        Ok(Self { writer: Writer::new(BufWriter::new(to))?, worker_max: 0 })
    }

    /// Writes one operation, with what only the record around it says. The caller hands them over
    /// in the order of their starts.
    pub(crate) fn row(&mut self, op: &OpRecord, around: &Around<'_>) -> io::Result<()> {
        let Around { thread, client_id, endpoint, file, error } = *around;
        self.worker_max = self.worker_max.max(thread);
        self.writer.row(&RawRow {
            thread,
            op: op.kind.name(),
            client_id,
            objects: op.objects_count,
            bytes: op.bytes,
            endpoint,
            file,
            error,
            start_unix_ns: op.start.as_ns(),
            first_byte: op.first_byte.map(Moment::as_ns),
            last_byte: op.last_byte_sent.map(Moment::as_ns),
            end_unix_ns: op.end.as_ns(),
        })
    }

    /// Ends the file with the command lines that made it, and returns the highest number of a
    /// worker.
    pub(crate) fn finish(mut self, command_lines: &[String]) -> io::Result<u32> {
        command_lines.iter().try_for_each(|line| self.writer.comment(line))?;
        self.writer.finish()?.flush()?;
        Ok(self.worker_max)
    }
}
