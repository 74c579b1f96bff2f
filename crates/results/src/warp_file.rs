//! A raw file of warp's as a source of operations; a short one is read once and then kept.
#![expect(clippy::disallowed_methods, reason = "results opens the files it is given")]

use std::cell::{Ref, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_analysis::OpSource;
use plimsoll_foreign::warp::WarpError;
use plimsoll_foreign::warp::raw::{self, Names, ScanEnd, Texts};
use plimsoll_model::OpRecord;

use crate::error::ReadError;

/// How many operations are kept from the first scan for those after it; a longer file is read
/// again, so that memory does not grow with it.
const KEPT_OPS_MAX: usize = 1 << 19;
/// How many bytes of error texts are kept with them.
const KEPT_TEXT_BYTES_MAX: usize = 16 << 20;

/// A foreign file, or what came through the standard input.
pub(crate) enum Bytes {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Bytes {
    /// Returns what is at `path`; `-` is the standard input.
    pub(crate) fn at(path: &Path) -> Result<Self, ReadError> {
        if path != Path::new("-") {
            return Ok(Self::File(path.to_path_buf()));
        }
        let mut all = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut all);
        read.map_err(|source| ReadError::Place { place: "the standard input".to_owned(), source })?;
        Ok(Self::Memory(all.into()))
    }

    pub(crate) fn reader(&self) -> Result<Box<dyn Read + '_>, ReadError> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(Cursor::new(bytes)),
            Self::File(path) => {
                let file = File::open(path)
                    .map_err(|source| ReadError::Open { path: path.clone(), source })?;
                Box::new(BufReader::with_capacity(1 << 18, file))
            }
        })
    }

    pub(crate) fn failed(&self, source: WarpError) -> ReadError {
        let path = match self {
            Self::File(path) => path,
            Self::Memory(_) => Path::new("standard input"),
        };
        ReadError::Warp { path: path.to_path_buf(), source }
    }
}

/// A raw file of warp's.
pub struct WarpFile {
    bytes: Bytes,
    names: RefCell<Names>,
    /// How the first scan ended.
    end: RefCell<Option<ScanEnd>>,
    kept: RefCell<Kept>,
}

impl WarpFile {
    /// Returns the file at `path`; `-` is the standard input.
    pub fn at(path: &Path) -> Result<Self, ReadError> {
        Ok(Self::new(Bytes::at(path)?))
    }

    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, names: RefCell::default(), end: RefCell::default(), kept: RefCell::default() }
    }

    /// Returns what everything in it is called, as far as it has been read.
    pub fn names(&self) -> Ref<'_, Names> {
        self.names.borrow()
    }

    /// Returns what else it says; `None` before the first scan.
    pub fn end(&self) -> Option<ScanEnd> {
        self.end.borrow().clone()
    }

    /// Shows every operation with its error text, empty for those that succeeded.
    pub(crate) fn scan_errors(
        &self,
        visit: &mut dyn FnMut(&OpRecord, &str),
    ) -> Result<(), ReadError> {
        let is_first = self.end.borrow().is_none();
        let mut kept = self.kept.borrow_mut();
        if !is_first && kept.is_whole() {
            kept.show(visit);
            return Ok(());
        }
        let mut names = self.names.borrow_mut();
        let end = raw::scan(self.bytes.reader()?, &mut names, &mut |op, texts| {
            if is_first {
                kept.keep(op, texts.error);
            }
            visit(op, texts.error);
        });
        *self.end.borrow_mut() = Some(end.map_err(|source| self.bytes.failed(source))?);
        Ok(())
    }

    /// Shows every operation with all its texts, which are never kept: the file is read again.
    pub fn scan_texts(
        &self,
        visit: &mut dyn FnMut(&OpRecord, &Texts<'_>),
    ) -> Result<(), ReadError> {
        let mut names = self.names.borrow_mut();
        let end = raw::scan(self.bytes.reader()?, &mut names, visit);
        end.map(|_| ()).map_err(|source| self.bytes.failed(source))
    }
}

impl OpSource for WarpFile {
    type Error = ReadError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), ReadError> {
        self.scan_errors(&mut |op, _| visit(op))
    }
}

/// The operations of a file that is short enough.
#[derive(Default)]
struct Kept {
    ops: Vec<OpRecord>,
    /// The error texts, one behind the other.
    texts: String,
    /// Which operations have one, and where it ends.
    errors: Vec<(usize, usize)>,
    overflowed: bool,
}

impl Kept {
    fn is_whole(&self) -> bool {
        !self.overflowed
    }

    fn keep(&mut self, op: &OpRecord, error: &str) {
        if self.overflowed {
            return;
        }
        let too_long = self.texts.len() + error.len() > KEPT_TEXT_BYTES_MAX;
        if self.ops.len() == KEPT_OPS_MAX || too_long {
            *self = Self { overflowed: true, ..Self::default() };
            return;
        }
        if !error.is_empty() {
            self.texts.push_str(error);
            self.errors.push((self.ops.len(), self.texts.len()));
        }
        self.ops.push(*op);
    }

    fn show(&self, visit: &mut dyn FnMut(&OpRecord, &str)) {
        let mut errors = self.errors.iter().peekable();
        let mut from = 0;
        for (index, op) in self.ops.iter().enumerate() {
            match errors.next_if(|(of, _)| *of == index) {
                Some((_, to)) => {
                    visit(op, &self.texts[from..*to]);
                    from = *to;
                }
                None => visit(op, ""),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{EndpointId, ErrorClass, JobId, Moment, OpKind, StageId, WorkerId};

    use super::*;

    #[test]
    fn what_is_kept_is_shown_as_it_came_and_too_much_is_not_kept() {
        let op = |outcome| OpRecord {
            stage: StageId(0),
            job: JobId(0),
            worker: WorkerId(0),
            kind: OpKind::Get,
            endpoint: EndpointId(0),
            object: None,
            objects_count: 1,
            bytes: 0,
            intended: Moment::from_ns(1),
            start: Moment::from_ns(1),
            first_byte: None,
            assigned: None,
            last_byte_sent: None,
            end: Moment::from_ns(2),
            outcome,
            attempts: 1,
        };
        let rows =
            [(ErrorClass::Ok, ""), (ErrorClass::Server, "bad"), (ErrorClass::Timeout, "late")];
        let mut kept = Kept::default();
        let mut shown = Vec::new();
        for (class, text) in rows.iter().chain(&rows) {
            kept.keep(&op(*class), text);
        }
        kept.show(&mut |op, text| shown.push((op.outcome, text.to_owned())));
        let expected = rows.iter().chain(&rows).map(|(class, text)| (*class, (*text).to_owned()));
        assert_eq!(shown, expected.collect::<Vec<_>>());
        kept.keep(&op(ErrorClass::Server), &"x".repeat(KEPT_TEXT_BYTES_MAX));
        assert!(!kept.is_whole() && kept.ops.is_empty());
        kept.keep(&op(ErrorClass::Ok), "");
        assert!(!kept.is_whole() && kept.ops.is_empty());
    }
}
