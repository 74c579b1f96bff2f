//! A raw file of warp's as a source of operations; a short one is read once and then kept.
#![expect(clippy::disallowed_methods, reason = "results opens the files it is given")]

use std::cell::{Ref, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Builder, Scope};

use plimsoll_analysis::OpSource;
use plimsoll_foreign::warp::WarpError;
use plimsoll_foreign::warp::raw::{self, Names, ScanEnd, Texts};
use plimsoll_model::{OpRecord, Visit};

use crate::error::ReadError;
use crate::threads::threads_count;

/// How many operations are kept from the first scan for those after it; a longer file is read
/// again, so that memory does not grow with it.
const KEPT_OPS_MAX: usize = 1 << 19;
/// How many bytes of error texts are kept with them.
const KEPT_TEXT_BYTES_MAX: usize = 16 << 20;

/// So many operations are worth a thread.
const THREAD_OPS_MIN: usize = 1 << 14;
/// How many operations are handed to a thread at once, and how many such batches wait for it.
const BATCH_OPS: usize = 1_024;
const BATCHES_MAX: usize = 4;

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

    pub(crate) fn reader(&self) -> Result<Box<dyn Read + Send + '_>, ReadError> {
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
        let end = raw::scan_ahead(self.bytes.reader()?, &mut names, &mut |op, texts| {
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
        let end = raw::scan_ahead(self.bytes.reader()?, &mut names, visit);
        end.map(|_| ()).map_err(|source| self.bytes.failed(source))
    }
}

impl OpSource for WarpFile {
    type Error = ReadError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), ReadError> {
        self.scan_errors(&mut |op, _| visit(op))
    }

    fn threads(&self) -> usize {
        let is_kept = self.end.borrow().is_some() && self.kept.borrow().is_whole();
        if is_kept {
            threads_count().min(self.kept.borrow().ops.len() / THREAD_OPS_MIN).max(1)
        } else {
            1
        }
    }

    /// Shows what is kept stretch by stretch. A file that is read has one thread that cuts it into
    /// operations, as their names are numbered in their order, and one that counts them.
    fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<(), ReadError> {
        let is_first = self.end.borrow().is_none();
        if !is_first && self.kept.borrow().is_whole() {
            share(&self.kept.borrow().ops, visits);
            return Ok(());
        }
        behind(&mut *visits[0], |visit| self.scan(visit))
    }
}

/// Shows operations to visits, each on a thread of its own; whoever is free takes the next ones.
fn share(ops: &[OpRecord], visits: &mut [&mut Visit<'_>]) {
    let next = AtomicUsize::new(0);
    let show = |visit: &mut Visit<'_>| {
        while let Some(batch) = ops.chunks(BATCH_OPS).nth(next.fetch_add(1, Ordering::Relaxed)) {
            batch.iter().for_each(&mut *visit);
        }
    };
    let Some((own, others)) = visits.split_first_mut() else { return };
    thread::scope(|scope| {
        let show = &show;
        for visit in others {
            let thread = Builder::new().name("count".to_owned());
            // Where the system has no more threads, those that there are show all.
            let _ = thread.spawn_scoped(scope, move || show(&mut **visit));
        }
        show(&mut **own);
    });
}

/// Has a scan show its operations to `visit` on a thread of its own, so many at a time; those of a
/// short one without a thread.
fn behind<E>(
    visit: &mut Visit<'_>,
    scan: impl FnOnce(&mut dyn FnMut(&OpRecord)) -> Result<(), E>,
) -> Result<(), E> {
    thread::scope(|scope| {
        let mut counting = Counting::Here(visit);
        let mut batch = Vec::with_capacity(BATCH_OPS);
        let scanned = scan(&mut |op| {
            batch.push(*op);
            if batch.len() == BATCH_OPS {
                counting.begin(scope);
                counting.count(&mut batch);
            }
        });
        counting.count(&mut batch);
        scanned
    })
}

/// Where operations are counted.
enum Counting<'scope, 'v> {
    Here(&'scope mut Visit<'v>),
    /// On a thread, which is sent batches and sends those back that it has counted.
    There(SyncSender<Vec<OpRecord>>, Receiver<Vec<OpRecord>>),
    /// Nowhere, while a thread begins.
    Moving,
}

impl<'scope, 'v: 'scope> Counting<'scope, 'v> {
    /// Has a thread count from now on, if there is one to be had.
    fn begin(&mut self, scope: &'scope Scope<'scope, '_>) {
        let visit = match std::mem::replace(self, Self::Moving) {
            Self::Here(visit) => visit,
            other => return *self = other,
        };
        let (give, take) = channel::<&'scope mut Visit<'v>>();
        let (send, receive) = sync_channel::<Vec<OpRecord>>(BATCHES_MAX);
        let (used, free) = channel();
        let thread = Builder::new().name("count".to_owned()).spawn_scoped(scope, move || {
            let Ok(visit) = take.recv() else { return };
            for mut batch in receive {
                batch.drain(..).for_each(|op| visit(&op));
                // The scan may have come to its end.
                let _ = used.send(batch);
            }
        });
        *self = match thread {
            Err(_) => Self::Here(visit),
            Ok(_) => match give.send(visit) {
                Ok(()) => Self::There(send, free),
                Err(unsent) => Self::Here(unsent.0),
            },
        };
    }

    fn count(&mut self, batch: &mut Vec<OpRecord>) {
        match self {
            Self::Here(visit) => batch.drain(..).for_each(|op| visit(&op)),
            Self::There(send, free) => {
                let next = free.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH_OPS));
                // Nobody takes it only where `visit` has panicked, which the scope tells.
                let _ = send.send(std::mem::replace(batch, next));
            }
            Self::Moving => unreachable!("nothing is counted while a thread begins"),
        }
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
    use plimsoll_model::{ErrorClass, Moment, OpKind};

    use super::*;

    fn op(outcome: ErrorClass) -> OpRecord {
        OpRecord { outcome, ..OpRecord::plain(OpKind::Get, Moment::from_ns(1), Moment::from_ns(2)) }
    }

    #[test]
    fn what_is_kept_is_shown_as_it_came_and_too_much_is_not_kept() {
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

    #[test]
    fn threads_are_shown_every_operation_once() {
        let ops: Vec<OpRecord> = (0..10 * BATCH_OPS as u64 + 7)
            .map(|number| {
                let at = Moment::from_ns(number);
                OpRecord { intended: at, start: at, end: at, ..op(ErrorClass::Ok) }
            })
            .collect();
        // A thread behind a scan sees what the scan shows, in its order.
        for count in [0, 1, BATCH_OPS, BATCH_OPS + 1, ops.len()] {
            let mut seen = Vec::new();
            let shown = behind(&mut |op: &OpRecord| seen.push(*op), |visit| {
                ops[..count].iter().for_each(visit);
                Err::<(), _>("the scan's own")
            });
            assert!(seen == ops[..count] && shown == Err("the scan's own"), "{count}");
        }
        let mut seen = vec![Vec::new(); 3];
        let mut visits: Vec<_> =
            seen.iter_mut().map(|seen| move |op: &OpRecord| seen.push(*op)).collect();
        let mut visits: Vec<&mut Visit<'_>> =
            visits.iter_mut().map(|visit| visit as &mut Visit<'_>).collect();
        share(&ops, &mut visits);
        drop(visits);
        let mut all = seen.concat();
        all.sort_by_key(|op| op.start);
        assert!(all == ops);
    }
}
