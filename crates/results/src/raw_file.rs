//! A raw file of warp's that is being written.

use std::io::{self, BufWriter, Write};

use plimsoll_foreign::warp::raw::{RawRow, Writer};

/// A raw file of warp's that is being written.
pub(crate) struct RawFile<W: Write> {
    writer: Writer<BufWriter<W>>,
    worker_max: u32,
}

impl<W: Write> RawFile<W> {
    pub(crate) fn new(to: W) -> io::Result<Self> {
        Ok(Self { writer: Writer::new(BufWriter::new(to))?, worker_max: 0 })
    }

    /// Writes one operation. The caller hands them over in the order of their starts.
    pub(crate) fn row(&mut self, row: &RawRow<'_>) -> io::Result<()> {
        self.worker_max = self.worker_max.max(row.thread);
        self.writer.row(row)
    }

    /// Ends the file with the command lines that made it, and returns the highest number of a
    /// worker.
    pub(crate) fn finish(mut self, command_lines: &[String]) -> io::Result<u32> {
        command_lines.iter().try_for_each(|line| self.writer.comment(line))?;
        self.writer.finish()?.flush()?;
        Ok(self.worker_max)
    }
}
