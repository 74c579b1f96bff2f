//! fio's logs of its own operations (`write_iolog`), versions 2 and 3.
//!
//! Source: fio's documentation, *Trace file format*. Instants of version 3 are written in
//! microseconds since the job began; in version 2 `wait` says how many microseconds lie between it
//! and the `wait` before.

use std::borrow::Cow;

use plimsoll_model::OpKind;

use super::fields::{instant, number, shown};
use super::{Entry, Found};

const MICROSECOND_NS: u64 = 1_000;

/// A log, as far as it was read.
pub(super) struct Log {
    has_instants: bool,
    /// Of version 2: the sum of all waits so far; `None` before the first.
    now_ns: Option<u64>,
}

impl Log {
    /// Returns the log that begins so.
    pub(super) fn of(header: &[u8]) -> Option<Self> {
        match header {
            b"fio version 2 iolog" => Some(Self { has_instants: false, now_ns: None }),
            b"fio version 3 iolog" => Some(Self { has_instants: true, now_ns: None }),
            _ => None,
        }
    }

    /// Returns what a line says.
    pub(super) fn line<'l>(&mut self, line: &'l [u8]) -> Result<Found<'l>, String> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let at_ns = match self.has_instants {
            true => Some(instant(next("the instant")?, MICROSECOND_NS)?),
            false => self.now_ns,
        };
        let (name, action) = (next("the file")?, next("the action")?);
        let name = Cow::Borrowed(name);
        let kind = match action {
            b"add" | b"open" | b"close" => return Ok(Found::Nothing),
            b"wait" if !self.has_instants => {
                let wait = instant(next("how long to wait")?, MICROSECOND_NS)?;
                let now = self.now_ns.unwrap_or(0).checked_add(wait);
                self.now_ns = Some(now.ok_or("the waits add up to too much")?);
                return Ok(Found::Nothing);
            }
            b"read" => OpKind::Read,
            b"write" => OpKind::Write,
            b"sync" => return Ok(Found::Entry(Entry::of(at_ns, OpKind::Sync, name))),
            b"datasync" => {
                // A range says that attributes may wait.
                let sync = Entry::of(at_ns, OpKind::Sync, name);
                return Ok(Found::Entry(Entry { range: Some((0, 0)), ..sync }));
            }
            b"trim" | b"sync_file_range" => {
                return Ok(Found::Unsupported(String::from_utf8_lossy(action)));
            }
            other => return Err(format!("{} is not an action", shown(other))),
        };
        let offset = number(next("the offset")?, "the offset")?;
        let len = number(next("the length")?, "the length")?;
        match (1..=u64::from(u32::MAX)).contains(&len) {
            true => {
                let range = Some((offset, len));
                Ok(Found::Entry(Entry { range, ..Entry::of(at_ns, kind, name) }))
            }
            false => Err(format!("a length of {len} is out of range: 1 to {}", u32::MAX)),
        }
    }
}
