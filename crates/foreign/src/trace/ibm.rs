//! The traces of IBM's object store in the repository of the SNIA.
//!
//! Source: SNIA IOTTA, *IBM Object Store Traces*, whose lines are `INSTANT REQUEST OBJECT [SIZE
//! [FIRST LAST]]`: milliseconds, a kind of request, a name without meaning, the object's size and
//! the first and the last byte that were read.

use std::borrow::Cow;

use plimsoll_model::OpKind;

use super::fields::{instant, number, shown};
use super::{Entry, Found};

const MILLISECOND_NS: u64 = 1_000_000;

/// Returns what a line says.
pub(super) fn line(line: &[u8]) -> Result<Found<'_>, String> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
    let at_ns = Some(instant(next("the instant")?, MILLISECOND_NS)?);
    let asked = next("the request")?;
    if !asked.starts_with(b"REST.") {
        return Err(format!("{} is not a request such as REST.GET.OBJECT", shown(asked)));
    }
    let name = Cow::Borrowed(next("the object")?);
    let kind = match asked {
        b"REST.GET.OBJECT" => OpKind::Get,
        b"REST.PUT.OBJECT" => OpKind::Put,
        b"REST.HEAD.OBJECT" => OpKind::Stat,
        b"REST.DELETE.OBJECT" => OpKind::Delete,
        other => return Ok(Found::Unsupported(String::from_utf8_lossy(other))),
    };
    let numbers: Vec<u64> =
        words.map(|word| number(word, "the number")).collect::<Result<_, _>>()?;
    let entry = Entry::of(at_ns, kind, name);
    Ok(Found::Entry(match (kind, &*numbers) {
        (_, []) => entry,
        (OpKind::Get, [size, first, last]) => {
            let len = last.checked_sub(*first).and_then(|len| len.checked_add(1));
            let len = len.ok_or_else(|| format!("byte {last} comes before byte {first}"))?;
            match (*first, len == *size) {
                (0, true) => Entry { bytes: Some(*size), object_bytes: Some(*size), ..entry },
                _ => Entry { object_bytes: Some(*size), range: Some((*first, len)), ..entry },
            }
        }
        (_, [size, ..]) if numbers.len() <= 3 => {
            Entry { bytes: Some(*size), object_bytes: Some(*size), ..entry }
        }
        _ => return Err(format!("{} fields are too many", numbers.len() + 3)),
    }))
}
