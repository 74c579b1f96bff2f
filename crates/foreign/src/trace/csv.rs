//! Separated values below a header that states what they are.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_model::OpKind;

use super::fields::{civil, instant, maybe, shown};
use super::{Entry, Found};

/// What instants are counted in, by the name of their column.
const INSTANTS: [(&str, Option<u64>); 6] = [
    ("time", None),
    ("timestamp", None),
    ("time_s", Some(1_000_000_000)),
    ("time_ms", Some(1_000_000)),
    ("time_us", Some(1_000)),
    ("time_ns", Some(1)),
];

/// Where each value stands, and what parts them.
#[derive(Debug)]
pub(super) struct Columns {
    separator: u8,
    count: usize,
    /// The instant, and how many nanoseconds its unit has; `None` for seconds or a date.
    time: Option<(usize, Option<u64>)>,
    op: usize,
    key: Option<usize>,
    bucket: Option<usize>,
    size: Option<usize>,
    object_size: Option<usize>,
    offset: Option<usize>,
    length: Option<usize>,
    status: Option<usize>,
}

impl Columns {
    /// Finds the columns by their names.
    pub(super) fn of(header: &[u8]) -> Result<Self, String> {
        let separator = [b',', b'\t', b';'].into_iter().find(|byte| header.contains(byte));
        let separator = separator.ok_or("it is not a header: nothing separates its fields")?;
        let names: Vec<String> = fields(header, separator)?
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
            .collect();
        let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&&**name));
        let time = INSTANTS.into_iter().find_map(|(name, unit)| Some((find(&[name])?, unit)));
        let op = find(&["op", "operation", "kind"]);
        let op = op.ok_or("the header names no column `op`; see docs/replay.md")?;
        Ok(Self {
            separator,
            count: names.len(),
            time,
            op,
            key: find(&["key", "object", "name", "path", "file"]),
            bucket: find(&["bucket"]),
            size: find(&["size", "bytes"]),
            object_size: find(&["object_size"]),
            offset: find(&["offset"]),
            length: find(&["length", "len"]),
            status: find(&["status"]),
        })
    }

    /// Returns what instants are counted in, where their column says it.
    pub(super) fn tick(&self) -> Option<Duration> {
        self.time?.1.map(Duration::from_nanos)
    }

    /// Returns what a line says.
    pub(super) fn line<'l>(&self, line: &'l [u8]) -> Result<Found<'l>, String> {
        if line.starts_with(b"#") {
            return Ok(Found::Nothing);
        }
        let fields = fields(line, self.separator)?;
        if fields.len() != self.count {
            let (found, count) = (fields.len(), self.count);
            return Err(format!("it has {found} fields where the header has {count}"));
        }
        let field = |at: Option<usize>| at.map_or(&b""[..], |at| fields[at].trim_ascii());
        let at_ns = self.time.map(|(at, unit)| self.instant(field(Some(at)), unit)).transpose()?;
        let op = String::from_utf8_lossy(field(Some(self.op))).to_ascii_lowercase();
        let kind = match &*op {
            "get" => OpKind::Get,
            "put" => OpKind::Put,
            "head" | "stat" => OpKind::Stat,
            "delete" => OpKind::Delete,
            "list" => OpKind::List,
            "read" => OpKind::Read,
            "write" => OpKind::Write,
            "sync" | "fsync" => OpKind::Sync,
            _ => return Ok(Found::Unsupported(op.into())),
        };
        if let Some(status) = maybe(field(self.status), "the status")?
            && !(200..300).contains(&status)
        {
            return Ok(Found::Failed);
        }
        if kind == OpKind::List {
            return Ok(Found::Entry(Entry::of(at_ns, kind, Cow::Borrowed(b""))));
        }
        let key = field(self.key);
        if key.is_empty() {
            return Err("it names no key".to_owned());
        }
        let name = match self.bucket {
            None => Cow::Owned(key.to_vec()),
            Some(_) => super::access_log::named(field(self.bucket), key),
        };
        let bytes = maybe(field(self.size), "the size")?;
        let object_bytes = maybe(field(self.object_size), "the object size")?;
        let offset = maybe(field(self.offset), "the offset")?;
        let length = maybe(field(self.length), "the length")?;
        let range = match (kind, offset, length) {
            (OpKind::Read | OpKind::Write, offset, length) => {
                let len = length.or(bytes).filter(|len| (1..=u64::from(u32::MAX)).contains(len));
                let len = len.ok_or("a block needs a `length` of 1 to 4294967295")?;
                Some((offset.ok_or("a block needs an `offset`")?, len))
            }
            (OpKind::Get, None, None) => None,
            (OpKind::Get, offset, Some(length)) => Some((offset.unwrap_or(0), length)),
            (OpKind::Get, Some(_), None) => {
                return Err("an `offset` needs a `length`".to_owned());
            }
            _ => None,
        };
        Ok(Found::Entry(match range {
            // What is beside a part is the size of the whole.
            Some(_) if kind == OpKind::Get => {
                let object_bytes = object_bytes.or(bytes);
                Entry { object_bytes, range, ..Entry::of(at_ns, kind, name) }
            }
            _ => Entry { bytes, object_bytes, range, ..Entry::of(at_ns, kind, name) },
        }))
    }

    fn instant(&self, field: &[u8], unit_ns: Option<u64>) -> Result<u64, String> {
        match unit_ns {
            Some(unit_ns) => instant(field, unit_ns),
            None if field.get(4) == Some(&b'-') => civil(field),
            None => instant(field, 1_000_000_000),
        }
    }
}

/// Cuts a line into fields; one in double quotes may hold what parts them.
fn fields(line: &[u8], separator: u8) -> Result<Vec<Cow<'_, [u8]>>, String> {
    if !line.contains(&b'"') {
        return Ok(line.split(|byte| *byte == separator).map(Cow::Borrowed).collect());
    }
    let (mut fields, mut field, mut at) = (Vec::new(), Vec::new(), 0);
    let mut is_quoted = false;
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' if is_quoted && line.get(at + 1) == Some(&b'"') => {
                field.push(b'"');
                at += 1;
            }
            b'"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
            byte if byte == separator && !is_quoted => {
                fields.push(Cow::Owned(std::mem::take(&mut field)));
            }
            byte => field.push(byte),
        }
        at += 1;
    }
    if is_quoted {
        return Err(format!("a quote in {} does not end", shown(line)));
    }
    fields.push(Cow::Owned(field));
    Ok(fields)
}
