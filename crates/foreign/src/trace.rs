//! Traces: logs of the operations on a store or on files, as several programs write them. They are
//! parsed line by line; what the lines mean together is up to the caller.

mod access_log;
mod csv;
mod fields;
mod fio;
mod ibm;
mod json;
mod lines;
mod request;

use std::borrow::Cow;
use std::io::Read;
use std::time::Duration;

use plimsoll_model::{Moment, OpKind};
use thiserror::Error;

use self::lines::{LINE_BYTES_MAX, Lines};
use crate::warp::input::Input;
use crate::warp::raw::{self, Names};
use crate::warp::{FileKind, WarpError};

/// The form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Server access logs of Amazon S3; Ceph's bucket logging writes the same.
    S3AccessLog,
    /// The operations log of Ceph's RADOS gateway, JSON.
    RgwOpsLog,
    /// The access log of Ceph's RADOS gateway, lines of its front end `beast`.
    RgwAccessLog,
    /// `mc admin trace --json` of MinIO.
    MinioTrace,
    /// A raw file of warp's.
    Warp,
    /// fio's `write_iolog`, version 2 or 3.
    FioIolog,
    /// The traces of IBM's object store that the SNIA keeps.
    IbmCos,
    /// Separated values below a header that states what they are.
    Csv,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 8] = [
        Self::S3AccessLog,
        Self::RgwOpsLog,
        Self::RgwAccessLog,
        Self::MinioTrace,
        Self::Warp,
        Self::FioIolog,
        Self::IbmCos,
        Self::Csv,
    ];

    /// Returns the name that it has in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S3AccessLog => "s3-access-log",
            Self::RgwOpsLog => "rgw-ops-log",
            Self::RgwAccessLog => "rgw-access-log",
            Self::MinioTrace => "minio-trace",
            Self::Warp => "warp",
            Self::FioIolog => "fio-iolog",
            Self::IbmCos => "ibm-cos",
            Self::Csv => "csv",
        }
    }

    /// Returns the form of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns what no trace of this form tells, a sentence each.
    pub fn never_told(self) -> &'static [&'static str] {
        const BODIES: &str = "the trace does not contain the content; what is written is random";
        const OFFSETS: &str = "the trace does not say where reads of a part begin; they begin at 0";
        const LISTS: &str = "the trace does not say what was listed; each listing is one page of \
        up to 1000 of the run's keys";
        match self {
            Self::S3AccessLog | Self::RgwOpsLog => &[BODIES, OFFSETS, LISTS],
            Self::RgwAccessLog => {
                &[BODIES, "the trace does not say how large the writes are", LISTS]
            }
            Self::MinioTrace => &[
                BODIES,
                "without `--verbose` sizes are MinIO's `rx` and `tx`, which count headers too, and \
                 reads of a part begin at 0",
                LISTS,
            ],
            Self::Warp => &[BODIES, OFFSETS, LISTS],
            Self::FioIolog => &["the trace does not contain the content"],
            Self::IbmCos | Self::Csv => &[BODIES],
        }
    }

    /// Returns the resolution of the format's timestamps. Where that is a second, a trace may still
    /// contain fractions.
    const fn tick(self) -> Duration {
        match self {
            Self::S3AccessLog | Self::RgwAccessLog | Self::Csv => Duration::from_secs(1),
            Self::RgwOpsLog | Self::FioIolog => Duration::from_micros(1),
            Self::IbmCos => Duration::from_millis(1),
            Self::MinioTrace | Self::Warp => Duration::from_nanos(1),
        }
    }

    /// Detects the format from the first lines of a trace.
    fn of(head: &[u8]) -> Option<Self> {
        let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !line.is_empty() && *line != b"[");
        let first = lines.next()?;
        if first.starts_with(b"fio version ") {
            return Some(Self::FioIolog);
        }
        if raw_header(first) {
            return Some(Self::Warp);
        }
        // The first lines may be remarks, or of what is none of this.
        let near = || std::iter::once(first).chain(lines.clone().take(50));
        if near().any(|line| line.starts_with(b"{")) {
            return near().find_map(json::format_of);
        }
        if near().any(|line| access_log::s3_line(line).is_some()) {
            return Some(Self::S3AccessLog);
        }
        if near().any(access_log::is_beast) {
            return Some(Self::RgwAccessLog);
        }
        if near().any(|line| ibm::line(line).is_ok()) {
            return Some(Self::IbmCos);
        }
        let header = near().find(|line| !line.starts_with(b"#"))?;
        csv::Columns::of(header).is_ok().then_some(Self::Csv)
    }
}

fn raw_header(line: &[u8]) -> bool {
    let has = |name: &[u8]| line.split(|byte| *byte == b'\t').any(|field| field == name);
    has(b"thread") && has(b"op") && has(b"n_objects")
}

/// An operation of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'l> {
    /// When it began, since any instant that is the same in all of the trace; `None` where the
    /// trace has no instants.
    pub at_ns: Option<u64>,
    /// What it does.
    pub kind: OpKind,
    /// What it is about, with its bucket; empty for listings.
    pub name: Cow<'l, [u8]>,
    /// How many bytes were read or written, where that is told.
    pub bytes: Option<u64>,
    /// How large the object was, where that is told.
    pub object_bytes: Option<u64>,
    /// Where what was read or written begins and how long it is, where a part is meant.
    pub range: Option<(u64, u64)>,
}

impl<'l> Entry<'l> {
    /// Returns an operation of which nothing more is told.
    const fn of(at_ns: Option<u64>, kind: OpKind, name: Cow<'l, [u8]>) -> Self {
        Self { at_ns, kind, name, bytes: None, object_bytes: None, range: None }
    }
}

/// What a line of a trace says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'l> {
    /// An operation that succeeded.
    Entry(Entry<'l>),
    /// An operation that failed.
    Failed,
    /// An operation of a kind that has no counterpart here.
    Unsupported(Cow<'l, str>),
    /// Nothing that was asked for: a remark, a header.
    Nothing,
}

/// Why a trace is refused as a whole.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[source] WarpError),
    /// It is compressed in a way that is not read here.
    #[error("it is compressed with gzip, which is not supported: unpack it first (`gunzip`)")]
    Gzip,
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// Nothing tells its form.
    #[error(
        "line 1: its format is not recognised; name the format if it is one of these ({})",
        Format::ALL.map(Format::name).join(", ")
    )]
    Unknown,
    /// It has another form than was said, or a header that cannot be used.
    #[error("line {line}: {reason}")]
    Header {
        /// The line.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Who takes the lines wants no more.
    #[error("line {line}: {reason}")]
    Refused {
        /// The line.
        line: u64,
        /// Why.
        reason: String,
    },
}

impl TraceError {
    /// Returns the error with its line number moved by `lines`, those before the first counted one.
    fn behind(self, lines: u64) -> Self {
        match self {
            Self::Refused { line, reason } => Self::Refused { line: line + lines, reason },
            other => other,
        }
    }
}

/// The format of a trace that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Its name.
    pub format: Format,
    /// The resolution of its timestamps; where that is a second, fractions may still occur.
    pub tick: Duration,
}

/// Called with the number of each line, and its content or why it cannot be parsed. An error ends
/// the scan.
pub type Visit<'v> = &'v mut dyn FnMut(u64, Result<Found<'_>, String>) -> Result<(), String>;

/// Parses a trace, which may be compressed by zstd, and calls `visit` for each line. Detects the
/// format from the first lines unless `said` names it.
pub fn scan(
    input: impl Read,
    said: Option<Format>,
    visit: Visit<'_>,
) -> Result<Scanned, TraceError> {
    let input = Input::open(input).map_err(TraceError::Read)?;
    let head = input.unread();
    if head.starts_with(&[0x1f, 0x8b]) {
        return Err(TraceError::Gzip);
    }
    if head.is_empty() && input.is_broken() {
        return Err(TraceError::Read(WarpError::Damaged));
    }
    if head.trim_ascii().is_empty() {
        return Err(TraceError::Empty);
    }
    let format = said.or_else(|| Format::of(head)).ok_or(TraceError::Unknown)?;
    let mut tick = format.tick();
    match format {
        Format::Warp => scan_warp(input, visit)?,
        Format::S3AccessLog => each(input, visit, access_log::s3)?,
        Format::RgwAccessLog => each(input, visit, access_log::beast)?,
        Format::RgwOpsLog => each(input, visit, json::rgw)?,
        Format::MinioTrace => each(input, visit, json::minio)?,
        Format::IbmCos => each(input, visit, ibm::line)?,
        Format::FioIolog => scan_fio(input, visit)?,
        Format::Csv => tick = scan_csv(input, visit)?.unwrap_or(tick),
    }
    Ok(Scanned { format, tick })
}

fn each<R: Read>(
    input: Input<R>,
    visit: Visit<'_>,
    mut read: impl FnMut(&[u8]) -> Result<Found<'_>, String>,
) -> Result<(), TraceError> {
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next().map_err(TraceError::Read)? {
        let number = line.number;
        let found = match line.text {
            Some([]) => continue,
            Some(text) => read(text),
            None => Err(too_long()),
        };
        visit(number, found).map_err(|reason| TraceError::Refused { line: number, reason })?;
    }
    lines.check_end()
}

fn too_long() -> String {
    format!("it is longer than {LINE_BYTES_MAX} bytes")
}

fn scan_fio<R: Read>(input: Input<R>, visit: Visit<'_>) -> Result<(), TraceError> {
    let mut lines = Lines::new(input);
    let header = lines.first().map_err(TraceError::Read)?;
    let mut log = match header.as_ref().and_then(|line| fio::Log::of(line)) {
        Some(log) => log,
        None => {
            let reason = "it is not a fio iolog: `fio version 2 iolog`, or 3, is missing";
            return Err(TraceError::Header { line: 1, reason: reason.to_owned() });
        }
    };
    let number = &mut |line: u64, found: Result<Found<'_>, String>| visit(line + 1, found);
    each(lines.into_rest(), number, |line| log.line(line)).map_err(|error| error.behind(1))
}

/// Returns the resolution of the timestamps if the header states it.
fn scan_csv<R: Read>(input: Input<R>, visit: Visit<'_>) -> Result<Option<Duration>, TraceError> {
    let mut lines = Lines::new(input);
    let mut before = 1;
    let header = loop {
        match lines.first().map_err(TraceError::Read)? {
            Some(line) if line.is_empty() || line.starts_with(b"#") => before += 1,
            Some(line) => break line,
            None => return Err(TraceError::Empty),
        }
    };
    let columns =
        csv::Columns::of(&header).map_err(|reason| TraceError::Header { line: before, reason })?;
    let number = &mut |line: u64, found: Result<Found<'_>, String>| visit(line + before, found);
    each(lines.into_rest(), number, |line| columns.line(line))
        .map_err(|error| error.behind(before))?;
    Ok(columns.tick())
}

/// Reads a raw file of warp's.
fn scan_warp<R: Read>(input: Input<R>, visit: Visit<'_>) -> Result<(), TraceError> {
    if input.kind().map_err(TraceError::Read)? == FileKind::Aggregated {
        return Err(TraceError::Read(WarpError::IsAggregated));
    }
    let (mut names, mut row, mut refused) = (Names::default(), 1, None);
    let end = raw::scan(lines::Rest(input), &mut names, &mut |op, texts| {
        row += 1;
        if refused.is_some() {
            return;
        }
        let found = match op.outcome.is_ok() {
            false => Found::Failed,
            true => warp_entry(op.kind, op.start, texts.file, (op.bytes, op.objects_count)),
        };
        if let Err(reason) = visit(row, Ok(found)) {
            refused = Some(TraceError::Refused { line: row, reason });
        }
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    for loss in end.map_err(TraceError::Read)?.losses {
        let reason = loss.to_string();
        for _ in 0..loss.count {
            let told = visit(loss.first_line, Err(reason.clone()));
            told.map_err(|reason| TraceError::Refused { line: loss.first_line, reason })?;
        }
    }
    Ok(())
}

fn warp_entry(
    kind: OpKind,
    start: Moment,
    file: &str,
    (bytes, objects_count): (u64, u32),
) -> Found<'_> {
    let at_ns = Some(start.as_ns());
    let name = Cow::Borrowed(file.as_bytes());
    match kind {
        OpKind::List => Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))),
        OpKind::Delete if file.is_empty() || objects_count > 1 => {
            Found::Unsupported("DELETE of several objects with one call".into())
        }
        OpKind::Get | OpKind::Put | OpKind::Post => {
            Found::Entry(Entry { bytes: Some(bytes), ..Entry::of(at_ns, kind, name) })
        }
        OpKind::Stat | OpKind::Delete => Found::Entry(Entry::of(at_ns, kind, name)),
        other => Found::Unsupported(other.name().into()),
    }
}

#[cfg(test)]
mod tests;
