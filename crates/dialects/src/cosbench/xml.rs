//! Bytes to a tree of elements with lines and columns. Knows XML, and nothing of workloads.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::encoding;
use super::error::{Place, Refused};

/// A longer file is no workload.
pub(super) const BYTES_MAX: usize = 16 << 20;
/// Workloads are 5 deep.
const DEPTH_MAX: usize = 64;
/// More elements than this are no workload.
const ELEMENTS_MAX: usize = 10_000;
/// More attributes of one element than this are none of a workload.
const ATTRIBUTES_MAX: usize = 100;

/// An element.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<Element>,
    pub(super) place: Place,
    /// Where text stands in it that is more than blanks.
    pub(super) text_at: Option<Place>,
}

/// An attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: Place,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}

/// Returns the root of a document.
pub(super) fn parse(bytes: &[u8]) -> Result<Element, Refused> {
    if bytes.len() > BYTES_MAX {
        let most = BYTES_MAX >> 20;
        return Err(refuse(None, &format!("the file is larger than {most} MiB")));
    }
    let text = encoding::decode(bytes)?;
    let mut reader = Reader::from_str(&text);
    reader.config_mut().expand_empty_elements = true;
    let mut tree = Tree { lines: Lines::of(&text), open: Vec::new(), root: None, count: 0 };
    loop {
        let begin = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|error| {
            let at = tree.lines.place(reader.error_position() as usize);
            refuse(at, &error.to_string().replace('\n', " "))
        })?;
        let end = reader.buffer_position() as usize;
        match event {
            Event::Start(start) => {
                tree.start(&start, text.get(begin..end).unwrap_or_default(), begin)?;
            }
            Event::End(_) => tree.end(),
            Event::Text(piece) => tree.text(&piece, begin)?,
            Event::CData(piece) => tree.text(&piece, begin)?,
            Event::GeneralRef(name) => {
                let place = tree.lines.place(begin);
                let name = str::from_utf8(&name).unwrap_or_default();
                reference(name).map_err(|why| refuse(place, &why))?;
                tree.text(b"&", begin)?;
            }
            Event::DocType(_) => {
                let why = "a document type is not allowed: no workload needs one, and custom \
                entities are refused";
                return Err(refuse(tree.lines.place(begin), why));
            }
            Event::Eof => return tree.finish(text.len()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn refuse(place: impl Into<Option<Place>>, why: &str) -> Refused {
    Refused::parsing(place, why, "it is not well-formed XML, so nothing of it was read")
}

/// The elements that are open, and what is read so far.
struct Tree<'a> {
    lines: Lines<'a>,
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
}

impl Tree<'_> {
    /// Opens an element whose tag is `tag`, which begins at byte `begin`.
    fn start(&mut self, start: &BytesStart<'_>, tag: &str, begin: usize) -> Result<(), Refused> {
        let place = self.lines.place(begin);
        self.count += 1;
        if self.count > ELEMENTS_MAX {
            return Err(refuse(place, &format!("there are more than {ELEMENTS_MAX} elements")));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(refuse(place, &format!("elements are nested more than {DEPTH_MAX} deep")));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(refuse(place, "there is a second root element"));
        }
        let name = name(start.name().as_ref()).map_err(|why| refuse(place, &why))?;
        // The tag has no other way to say where an attribute stands.
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut rest = tag.find(&name).map_or(tag.len(), |at| at + name.len());
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| refuse(place, &error.to_string()))?;
            let key = self::name(attribute.key.as_ref()).map_err(|why| refuse(place, &why))?;
            let at = tag[rest..].find(&key).map_or(rest, |at| rest + at);
            let place = self.lines.place(begin + at);
            let raw = str::from_utf8(&attribute.value).map_err(|_| refuse(place, "no UTF-8"))?;
            rest = (at + key.len() + raw.len()).min(tag.len());
            while !tag.is_char_boundary(rest) {
                rest += 1;
            }
            if attributes.iter().any(|known| known.name == key) {
                let why = format!(
                    "Attribute \"{key}\" was already specified for element \
                                   \"{name}\"."
                );
                return Err(refuse(place, &why));
            }
            if attributes.len() == ATTRIBUTES_MAX {
                let why = format!("`{name}` has more than {ATTRIBUTES_MAX} attributes");
                return Err(refuse(place, &why));
            }
            let value = value(raw, &name, &key).map_err(|(why, more)| match more {
                Some(more) => Refused { more, ..refuse(place, &why) },
                None => refuse(place, &why),
            })?;
            attributes.push(Attribute { name: key, value, place });
        }
        let children = Vec::new();
        self.open.push(Element { name, attributes, children, place, text_at: None });
        Ok(())
    }

    fn end(&mut self) {
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn text(&mut self, text: &[u8], begin: usize) -> Result<(), Refused> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let place = self.lines.place(begin);
        match self.open.last_mut() {
            Some(element) => _ = element.text_at.get_or_insert(place),
            None if text == "\u{feff}".as_bytes() => {}
            None => {
                return Err(refuse(place, "Content is not allowed outside of the root element"));
            }
        }
        Ok(())
    }

    fn finish(mut self, length: usize) -> Result<Element, Refused> {
        if let Some(element) = self.open.pop() {
            let end = self.lines.place(length);
            let why = format!("the document ends inside of `{}`", element.name);
            return Err(refuse(end, &why));
        }
        self.root.ok_or_else(|| refuse(None, "Premature end of file: there is no element"))
    }
}

/// Returns a name of an element or attribute.
fn name(bytes: &[u8]) -> Result<String, String> {
    let text = str::from_utf8(bytes).map_err(|_| "a name is not UTF-8".to_owned())?;
    let begins = text.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
    let is_part = |letter: char| letter.is_alphanumeric() || "_-.:".contains(letter);
    match begins && text.chars().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not a name", text.escape_default())),
    }
}

/// Returns the value of an attribute, or why there is none and what to do.
fn value(raw: &str, element: &str, key: &str) -> Result<String, (String, Option<String>)> {
    if let Some(at) = raw.find('<') {
        let why = format!(
            "The value of attribute \"{key}\" associated with an element type \"{element}\" must \
             not contain the '<' character."
        );
        let placeholder = raw[at..].find('>').map(|end| &raw[at..=at + end]);
        let more = placeholder.map(|text| {
            format!(
                "`{text}` is a placeholder: put the value in its place, or write `&lt;` for `<`"
            )
        });
        return Err((why, more));
    }
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['&', '\t', '\r', '\n']) {
        value.push_str(&rest[..at]);
        if !rest[at..].starts_with('&') {
            value.push(' ');
            rest = &rest[at + 1..];
            continue;
        }
        let end = rest[at..].find(';').ok_or_else(|| {
            let why = format!("an `&` in attribute \"{key}\" begins no reference");
            (why, Some("write `&amp;` for `&`".to_owned()))
        })?;
        value.push(reference(&rest[at + 1..at + end]).map_err(|why| (why, None))?);
        rest = &rest[at + end + 1..];
    }
    value.push_str(rest);
    Ok(value)
}

/// Returns the character that a reference stands for.
fn reference(name: &str) -> Result<char, String> {
    let numbered = |digits: &str, radix| {
        let code = u32::from_str_radix(digits, radix).ok()?;
        let is_digits = digits.chars().all(|digit| digit.is_digit(radix));
        char::from_u32(code).filter(|letter| is_digits && is_allowed(*letter))
    };
    let found = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        name => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) => numbered(digits, 16),
            (None, Some(digits)) => numbered(digits, 10),
            (None, None) => None,
        },
    };
    found.ok_or_else(|| {
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        format!("The entity \"{shown}\" was referenced, but not declared.")
    })
}

/// Tells whether XML 1.0 allows a character.
fn is_allowed(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        letter => letter >= ' ',
    }
}

/// Where lines begin; places are asked for in rising order of bytes.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { text, starts: [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    fn place(&self, at: usize) -> Place {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts[line - 1];
        // Only so much of a line is counted: one of many megabytes is asked for often.
        let before = &self.text.as_bytes()[start..at];
        let column = match before.len() < 10_000 {
            true => before.iter().filter(|byte| (**byte as i8) >= -0x40).count(),
            false => before.len(),
        };
        Place { line: line as u32, column: column as u32 + 1 }
    }
}
