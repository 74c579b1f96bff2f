//! Lines to sections and options: comments, included files, variables.

use super::error::{FioError, Place, Problem};
use super::sums;
use super::{Host, Options};
use crate::command_line::LineError;

/// How deep files may include files.
const INCLUDE_DEPTH_MAX: usize = 16;
/// How many files may be included in all.
const INCLUDES_MAX: usize = 1_000;
/// How long the name of a section may be, as in fio.
const SECTION_NAME_MAX: usize = 255;

/// A section as written.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    /// Whether it sets what holds for the sections that follow.
    pub(super) is_global: bool,
    /// Whether what global sections before it say no longer holds.
    pub(super) begins_anew: bool,
    /// Whether it waits for all sections before, whatever its options say.
    pub(super) begins_wave: bool,
    pub(super) options: Vec<WrittenOption>,
}

/// An option as written, with its variables replaced.
#[derive(Clone, Debug)]
pub(super) struct WrittenOption {
    pub(super) name: String,
    /// `None` for a bare word.
    pub(super) value: Option<String>,
    pub(super) place: Place,
}

impl Section {
    pub(super) fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.to_owned(),
            place,
            is_global: name.starts_with("global"),
            begins_anew: false,
            begins_wave: false,
            options: Vec::new(),
        }
    }
}

impl WrittenOption {
    /// Returns it as it would stand on a line.
    pub(super) fn text(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the error that its value is refused.
    pub(super) fn refused(&self, why: String) -> FioError {
        self.error(LineError::value(self.quoted(), why))
    }

    /// Returns the error that it is not followed.
    pub(super) fn not_taken(&self, why: &str) -> FioError {
        self.error(LineError::not_taken(self.quoted(), why))
    }

    /// Returns an error about it with its place.
    pub(super) fn error(&self, error: LineError) -> FioError {
        FioError { place: self.place.clone(), problem: error.into() }
    }

    fn quoted(&self) -> String {
        format!("`{}`", self.text())
    }
}

/// Collects the sections of job files.
pub(super) struct Reader<'a> {
    options: &'a Options<'a>,
    /// What was read so far.
    pub(super) sections: Vec<Section>,
    /// The files being read, outermost first.
    chain: Vec<String>,
    includes_count: usize,
    /// Whether the lines belong to a section that is not wanted.
    is_skipping: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(options: &'a Options<'a>) -> Self {
        Self {
            options,
            sections: Vec::new(),
            chain: Vec::new(),
            includes_count: 0,
            is_skipping: false,
        }
    }

    /// Reads the job file `name`, whose text is `text`.
    pub(super) fn file(&mut self, text: &str, name: &str) -> Result<(), FioError> {
        self.chain = vec![plain_path(name)];
        self.is_skipping = false;
        let mut has_section = false;
        for (number, line) in (1..).zip(text.lines()) {
            let mut place = Place { file: name.to_owned(), line: Some(number), section: None };
            let line = line.trim();
            if let Some(rest) = line.strip_prefix('[') {
                has_section = true;
                self.section(rest, place)?;
            } else if has_section {
                place.section = self.sections.last().map(|section| section.name.clone());
                self.line(line, place)?;
            } else if !is_blank(line) {
                let text = format!("`{line}` stands before the first section");
                return Err(FioError { place, problem: Problem::Form(text) });
            }
        }
        Ok(())
    }

    fn section(&mut self, rest: &str, mut place: Place) -> Result<(), FioError> {
        let problem = match rest.strip_suffix(']') {
            None => format!("`[{rest}` opens a section and has no `]` at its end"),
            Some("") => "a section has no name".to_owned(),
            Some(name) if name.len() > SECTION_NAME_MAX => {
                format!("the name of a section is longer than {SECTION_NAME_MAX} bytes")
            }
            Some(name) => {
                let wanted = &self.options.sections;
                place.section = Some(name.to_owned());
                let section = Section::new(name, place);
                self.is_skipping =
                    !section.is_global && !wanted.is_empty() && !wanted.iter().any(|w| w == name);
                if !self.is_skipping {
                    self.sections.push(section);
                }
                return Ok(());
            }
        };
        Err(FioError { place, problem: Problem::Form(problem) })
    }

    /// Reads a line inside a section.
    fn line(&mut self, line: &str, place: Place) -> Result<(), FioError> {
        if is_blank(line) || self.is_skipping {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("include")
            && rest.starts_with([' ', '\t'])
        {
            return self.include(without_comment(rest), place);
        }
        let option = option(line, place, self.options)?;
        let section = self.sections.last_mut().expect("a line is read inside a section");
        section.options.push(option);
        Ok(())
    }

    fn include(&mut self, name: &str, place: Place) -> Result<(), FioError> {
        let (path, text) = self.read(name, &place)?;
        let mut chain = self.chain.clone();
        chain.push(plain_path(&path));
        if self.chain.contains(&plain_path(&path)) {
            return Err(FioError { place, problem: Problem::Circular { chain } });
        }
        self.includes_count += 1;
        if chain.len() > INCLUDE_DEPTH_MAX {
            let problem = Problem::TooDeep { max: INCLUDE_DEPTH_MAX, chain };
            return Err(FioError { place, problem });
        }
        if self.includes_count > INCLUDES_MAX {
            let problem = Problem::Form(format!("more than {INCLUDES_MAX} files are included"));
            return Err(FioError { place, problem });
        }
        self.chain = chain;
        for (number, line) in (1..).zip(text.lines()) {
            let place = Place { file: path.clone(), line: Some(number), ..place.clone() };
            let line = line.trim();
            if line.starts_with('[') {
                let text = format!("`{line}`: an included file must not have sections");
                return Err(FioError { place, problem: Problem::Form(text) });
            }
            self.line(line, place)?;
        }
        self.chain.pop();
        Ok(())
    }

    /// Returns the path and text of an included file: as named, or beside the file that names it.
    fn read(&self, name: &str, place: &Place) -> Result<(String, String), FioError> {
        let reason = match (self.options.read)(name) {
            Ok(text) => return Ok((name.to_owned(), text)),
            Err(reason) => reason,
        };
        if let Some((folder, _)) = place.file.rsplit_once('/')
            && !name.starts_with('/')
        {
            let path = format!("{folder}/{name}");
            if let Ok(text) = (self.options.read)(&path) {
                return Ok((path, text));
            }
        }
        let problem = Problem::Unreadable { file: name.to_owned(), reason };
        Err(FioError { place: place.clone(), problem })
    }
}

/// Reads `KEY=VALUE` or a bare `KEY`, with a comment or not.
fn option(line: &str, place: Place, options: &Options<'_>) -> Result<WrittenOption, FioError> {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(without_comment(value))),
        None => (without_comment(line), None),
    };
    written(name, value, place, options)
}

/// Returns an option with the variables in its value replaced.
fn written(
    name: &str,
    value: Option<&str>,
    place: Place,
    options: &Options<'_>,
) -> Result<WrittenOption, FioError> {
    let option = WrittenOption { name: name.to_owned(), value: value.map(str::to_owned), place };
    match value.map(|value| substitute(value, options)).transpose() {
        Ok(value) => Ok(WrittenOption { value, ..option }),
        Err(why) => Err(option.refused(why)),
    }
}

fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', ';'])
}

/// Cuts off what follows the first `;`, then the first `#`; there is no way to quote them.
fn without_comment(text: &str) -> &str {
    let text = text.split(';').next().unwrap_or_default();
    text.split('#').next().unwrap_or_default().trim()
}

/// Takes out the parts of a path that lead nowhere, so that a file is known again.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (index, part) in path.split('/').enumerate() {
        match part {
            "." => {}
            "" if index > 0 => {}
            ".." if parts.last().is_some_and(|last| !["", ".."].contains(last)) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Replaces `${NAME}` and fio's own variables; works out the sum that they may leave.
fn substitute(value: &str, options: &Options<'_>) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err("`${` has no `}`".to_owned());
        };
        if names_secret(name) {
            return Err(format!("{name} is named like a secret, and records keep job files"));
        }
        // fio goes on with nothing, and a directory becomes the one the program runs in.
        let Some(found) = (options.variable)(name) else {
            return Err(format!("the environment has no variable {name}"));
        };
        text.push_str(before);
        text.push_str(&found);
        rest = after;
    }
    text.push_str(rest);
    own_variables(text, options.host)
}

/// Tells whether a variable is named like those that hold keys, passwords and tokens: a job file of
/// somebody else could have them written where others read them.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let parts = [
        "SECRET", "PASS", "TOKEN", "CRED", "KEY", "AUTH", "COOKIE", "SESSION", "CONN", "HEADER",
        "PROXY",
    ];
    let ends = ["_PWD", "_PAT", "_DSN", "_URL", "_URI"];
    // What stores are asked with.
    let begins = ["PLIMSOLL_", "AWS_", "OS_", "ST_", "WEED_", "MINIO_"];
    parts.iter().any(|part| name.contains(part))
        || ends.iter().any(|end| name.ends_with(end))
        || begins.iter().any(|begin| name.starts_with(begin))
}

fn own_variables(text: String, host: Host) -> Result<String, String> {
    let known = [
        ("$pagesize", host.page_size_bytes),
        ("$mb_memory", host.memory_mib),
        ("$ncpus", host.cpus_count),
    ];
    let mut replaced = text.clone();
    for (name, number) in known {
        replaced = replaced.replace(name, &number.to_string());
    }
    let is_sum = replaced != text
        && replaced.contains(['+', '-', '*', '/'])
        && replaced.bytes().all(|b| b"+-*/() ".contains(&b) || b.is_ascii_digit());
    if !is_sum {
        return Ok(replaced);
    }
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number"));
    sums::evaluate(&replaced, false, &mut |text| number(text)).map(|sum| sum.to_string())
}
