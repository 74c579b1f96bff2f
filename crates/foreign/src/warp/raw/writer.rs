//! Writes raw files that warp reads.

use std::io::{self, Write};

use super::time;

/// The highest worker number that warp's reader accepts.
pub const THREAD_MAX_OF_WARP: u32 = 65_535;

/// How much the file is compressed; as zstd's own default.
const ZSTD_LEVEL: i32 = 3;
const HEADER: &str = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\t\
                      first_byte\tlast_byte\tend\tduration_ns\tcat\n";

/// One line of a raw file; moments are nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRow<'a> {
    /// The worker's number within its client; warp refuses more than `THREAD_MAX_OF_WARP`.
    pub thread: u32,
    /// The kind of operation, by warp's name: `OpKind::name` is the same.
    pub op: &'a str,
    /// Which client it was.
    pub client_id: &'a str,
    /// How many objects it handled.
    pub objects: u32,
    /// How many content bytes it moved.
    pub bytes: u64,
    /// The address it went to, as a URL.
    pub endpoint: &'a str,
    /// The object's name; empty for lists and batches.
    pub file: &'a str,
    /// Why it failed; empty if it did not.
    pub error: &'a str,
    /// When it was issued.
    pub start_unix_ns: u64,
    /// When the first byte of the answer was there.
    pub first_byte: Option<u64>,
    /// When the last byte of the request had been handed over.
    pub last_byte: Option<u64>,
    /// When it ended; not before its start.
    pub end_unix_ns: u64,
}

/// Writes a raw file, compressed.
pub struct Writer<W: Write> {
    zstd: zstd::stream::write::Encoder<'static, W>,
    /// The line being made.
    line: Vec<u8>,
    rows: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a file with the header line.
    pub fn new(w: W) -> io::Result<Self> {
        let mut zstd = zstd::stream::write::Encoder::new(w, ZSTD_LEVEL)?;
        zstd.include_checksum(true)?;
        zstd.write_all(HEADER.as_bytes())?;
        Ok(Self { zstd, line: Vec::new(), rows: 0 })
    }

    /// Writes one operation. The caller hands them over in the order of their starts.
    pub fn row(&mut self, row: &RawRow<'_>) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        push_number(line, self.rows);
        push_number(line, row.thread.into());
        push_quoted(line, row.op);
        push_quoted(line, row.client_id);
        push_number(line, row.objects.into());
        push_number(line, row.bytes);
        push_quoted(line, row.endpoint);
        push_unquoted(line, row.file);
        push_quoted(line, row.error);
        push_time(line, Some(row.start_unix_ns));
        push_time(line, row.first_byte);
        push_time(line, row.last_byte);
        push_time(line, Some(row.end_unix_ns));
        push_number(line, row.end_unix_ns.saturating_sub(row.start_unix_ns));
        line.extend_from_slice(b"0\n");
        self.rows += 1;
        self.zstd.write_all(&self.line)
    }

    /// Writes a comment, each line of it with `# ` before.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            self.zstd.write_all(format!("# {line}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Ends the file and returns what it was written to.
    pub fn finish(self) -> io::Result<W> {
        self.zstd.finish()
    }
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut from, mut rest) = (digits.len(), number);
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[from..]);
    line.push(b'\t');
}

fn push_time(line: &mut Vec<u8>, unix_ns: Option<u64>) {
    if let Some(unix_ns) = unix_ns {
        time::push(line, unix_ns);
    }
    line.push(b'\t');
}

/// Adds a text, in quotes if warp's reader would take it for something else without.
fn push_quoted(line: &mut Vec<u8>, text: &str) {
    if text.starts_with(' ') || text.contains(['\t', '"', '\n', '\r']) {
        line.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                line.push(b'"');
            }
            line.push(byte);
        }
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
    line.push(b'\t');
}

/// Adds an object's name, which is never in quotes: what would need them becomes `_`.
fn push_unquoted(line: &mut Vec<u8>, text: &str) {
    let plain = |byte| if matches!(byte, b'\t' | b'\n' | b'\r' | b'"') { b'_' } else { byte };
    line.extend(text.bytes().map(plain));
    line.push(b'\t');
}
