//! Cuts the text of a raw file into rows and fields: tabs, CSV double quotes, `#` comments.

use std::io::Read;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2, memchr3_iter};

use crate::warp::WarpError;
use crate::warp::input::Input;

/// How long a row may be, with all lines of its quoted fields.
pub const ROW_BYTES_MAX: usize = 1 << 20;

/// What `Rows::advance` has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A row; its fields can be asked for.
    Row,
    /// A comment; its text can be asked for.
    Comment,
    /// A line that cannot be cut into fields; the next step goes on behind it.
    Bad,
    /// A last line that does not end: what is left of a file that was cut off.
    Unended,
    /// Nothing more.
    End,
}

/// What was found at the beginning of the unread text.
enum Cut {
    /// A row of this length, newline included.
    Row(usize),
    /// The text ends before the row does.
    More,
    /// A field begins with a quote.
    Quoted,
    /// What follows a closing quote is no end of a field.
    Bad,
}

/// The rows of an input, one at a time.
pub(super) struct Rows<R: Read> {
    input: Input<R>,
    fields: Vec<Range<usize>>,
    /// The fields of a row with quotes, unquoted; other rows are read where they are.
    unquoted: Vec<u8>,
    is_unquoted: bool,
    /// How many bytes the present row or comment takes.
    taken: usize,
    /// How many lines the present row or comment takes.
    taken_lines: u64,
    line: u64,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(input: Input<R>) -> Self {
        let (fields, unquoted) = (Vec::new(), Vec::new());
        Self { input, fields, unquoted, is_unquoted: false, taken: 0, taken_lines: 0, line: 1 }
    }

    /// Returns in which line the present row begins, 1-based.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Returns how many fields the present row has.
    pub(super) fn fields_count(&self) -> usize {
        self.fields.len()
    }

    /// Returns a field of the present row.
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let text = if self.is_unquoted { &self.unquoted } else { self.input.unread() };
        &text[self.fields[index].clone()]
    }

    /// Returns the present comment with its `#`.
    pub(super) fn comment(&self) -> &[u8] {
        self.input.unread()[..self.taken].trim_ascii_end()
    }

    /// Tells whether the compressed stream broke off or proved damaged.
    pub(super) fn is_broken(&self) -> bool {
        self.input.is_broken()
    }

    /// Goes to the next row, comment or fault.
    pub(super) fn advance(&mut self) -> Result<Step, WarpError> {
        loop {
            self.input.consume(std::mem::take(&mut self.taken));
            self.line += std::mem::take(&mut self.taken_lines);
            if self.input.unread().is_empty() && !self.input.fill()? {
                return Ok(Step::End);
            }
            if self.input.unread().starts_with(b"#") {
                return self.take_comment();
            }
            let step = self.take_row()?;
            if step != Step::Row || !self.is_blank() {
                return Ok(step);
            }
        }
    }

    /// Tells whether the present row is an empty line.
    fn is_blank(&self) -> bool {
        !self.is_unquoted && self.fields.len() == 1 && self.fields[0].is_empty()
    }

    fn take_row(&mut self) -> Result<Step, WarpError> {
        loop {
            let mut cut = self.cut_plain();
            if matches!(cut, Cut::Quoted) {
                cut = self.cut_quoted();
            }
            match cut {
                Cut::Row(length) if length <= ROW_BYTES_MAX => {
                    self.taken = length;
                    self.taken_lines = if self.is_unquoted {
                        memchr_iter(b'\n', &self.input.unread()[..length]).count() as u64
                    } else {
                        1
                    };
                    return Ok(Step::Row);
                }
                Cut::More if self.input.unread().len() <= ROW_BYTES_MAX => {
                    if !self.input.fill()? {
                        return self.skip_line();
                    }
                }
                _ => return self.skip_line(),
            }
        }
    }

    /// Cuts a row without quotes in one pass.
    fn cut_plain(&mut self) -> Cut {
        let text = self.input.unread();
        self.fields.clear();
        self.is_unquoted = false;
        let mut from = 0;
        for at in memchr3_iter(b'\t', b'\n', b'"', text) {
            match text[at] {
                b'\t' => {
                    self.fields.push(from..at);
                    from = at + 1;
                }
                b'\n' => {
                    let has_return = at > from && text[at - 1] == b'\r';
                    self.fields.push(from..at - usize::from(has_return));
                    return Cut::Row(at + 1);
                }
                // A quote within a field that does not begin with one stands for itself.
                _ if at > from => {}
                _ => return Cut::Quoted,
            }
        }
        Cut::More
    }

    /// Cuts a row with quotes; copies its fields to `unquoted`.
    fn cut_quoted(&mut self) -> Cut {
        let text = self.input.unread();
        self.fields.clear();
        self.unquoted.clear();
        self.is_unquoted = true;
        let mut at = 0;
        loop {
            let from = self.unquoted.len();
            if text.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    let Some(length) = memchr(b'"', &text[at..]) else { return Cut::More };
                    self.unquoted.extend_from_slice(&text[at..at + length]);
                    at += length + 1;
                    if text.get(at) != Some(&b'"') {
                        break;
                    }
                    self.unquoted.push(b'"');
                    at += 1;
                }
            } else {
                let Some(length) = memchr2(b'\t', b'\n', &text[at..]) else { return Cut::More };
                let field = &text[at..at + length];
                at += length;
                let field = if text[at] == b'\n' { field.strip_suffix(b"\r") } else { None }
                    .unwrap_or(field);
                self.unquoted.extend_from_slice(field);
            }
            self.fields.push(from..self.unquoted.len());
            match &text[at..] {
                [b'\t', ..] => at += 1,
                [b'\n', ..] => return Cut::Row(at + 1),
                [b'\r', b'\n', ..] => return Cut::Row(at + 2),
                [] | [b'\r'] => return Cut::More,
                _ => return Cut::Bad,
            }
        }
    }

    fn take_comment(&mut self) -> Result<Step, WarpError> {
        loop {
            let text = self.input.unread();
            if let Some(length) = memchr(b'\n', text) {
                (self.taken, self.taken_lines) = (length + 1, 1);
                return Ok(Step::Comment);
            }
            if text.len() > ROW_BYTES_MAX {
                return self.skip_line();
            }
            if !self.input.fill()? {
                self.taken = self.input.unread().len();
                return Ok(Step::Comment);
            }
        }
    }

    /// Gives up the present line, and only this one: a quote that never closes costs one row.
    fn skip_line(&mut self) -> Result<Step, WarpError> {
        loop {
            let text = self.input.unread();
            if let Some(length) = memchr(b'\n', text) {
                // The line number must stay that of the line given up until the next step.
                (self.taken, self.taken_lines) = (length + 1, 1);
                return Ok(Step::Bad);
            }
            let length = text.len();
            self.input.consume(length);
            if !self.input.fill()? {
                return Ok(Step::Unended);
            }
        }
    }
}
