//! The lines of an input, one at a time and none without bound.

use std::io::{self, Read};

use memchr::memchr;

use super::TraceError;
use crate::warp::WarpError;
use crate::warp::input::Input;

/// The longest line that is read; what is longer is passed over.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// A line.
pub(super) struct Line<'l> {
    /// Its number, from 1 on.
    pub(super) number: u64,
    /// Its text without what ends it and without blanks around it; `None` where it is too long.
    pub(super) text: Option<&'l [u8]>,
}

/// The lines of an input.
pub(super) struct Lines<R: Read> {
    input: Input<R>,
    number: u64,
    /// How many bytes the present line takes.
    taken: usize,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: Input<R>) -> Self {
        Self { input, number: 0, taken: 0 }
    }

    /// Returns the next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, WarpError> {
        self.input.consume(std::mem::take(&mut self.taken));
        self.number += 1;
        let (mut is_long, mut seen) = (false, 0);
        let end = loop {
            let unread = self.input.unread();
            if let Some(at) = memchr(b'\n', &unread[seen..]) {
                break seen + at + 1;
            }
            seen = unread.len();
            if seen > LINE_BYTES_MAX {
                // Of a line that is too long nothing is kept.
                self.input.consume(seen);
                (is_long, seen) = (true, 0);
            }
            if !self.input.fill()? {
                let rest = self.input.unread().len();
                if rest == 0 && !is_long {
                    return Ok(None);
                }
                break rest;
            }
        };
        self.taken = end;
        let is_long = is_long || end > LINE_BYTES_MAX + 1;
        let text = self.input.unread()[..end].trim_ascii();
        Ok(Some(Line { number: self.number, text: (!is_long).then_some(text) }))
    }

    /// Returns the next line by itself, an empty one where it is too long.
    pub(super) fn first(&mut self) -> Result<Option<Vec<u8>>, WarpError> {
        let line = self.next()?;
        Ok(line.map(|line| line.text.unwrap_or_default().to_vec()))
    }

    /// Returns what follows the lines so far.
    pub(super) fn into_rest(mut self) -> Input<R> {
        self.input.consume(self.taken);
        self.input
    }

    /// Refuses an input that broke off.
    pub(super) fn check_end(&self) -> Result<(), TraceError> {
        match self.input.is_broken() {
            true => Err(TraceError::Read(WarpError::Damaged)),
            false => Ok(()),
        }
    }
}

/// An input as a reader of plain bytes.
pub(super) struct Rest<R: Read>(pub(super) Input<R>);

impl<R: Read> Read for Rest<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.unread().is_empty() {
            self.0.fill().map_err(io::Error::other)?;
        }
        let unread = self.0.unread();
        let count = unread.len().min(into.len());
        into[..count].copy_from_slice(&unread[..count]);
        self.0.consume(count);
        if count == 0 && self.0.is_broken() {
            return Err(io::Error::other(WarpError::Damaged));
        }
        Ok(count)
    }
}
