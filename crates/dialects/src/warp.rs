//! warp's command lines and the files of `warp run`: what each flag asks for, in the flags of
//! `plimsoll s3`, as a workload and as settings of its run; and warp's layouts of a result.
//!
//! A flag is taken, or taken with a [`Note`] of what differs, or refused by name; none is passed
//! over. The table of `docs/coming-from-warp.md` lists them one by one.

mod arguments;
mod asked;
mod clients;
pub mod cmp;
mod command;
pub(crate) mod flags;
pub mod layout;
mod lower;
pub mod report;
mod run;
mod summed;
mod template;
mod values;
mod workload;
mod yaml;

use std::fmt;

pub use command::{WarpBenchmark, WarpCommand};
pub use flags::idle_flags;
pub use run::{WarpRun, WarpShown, WarpSignature, WarpStore};
pub use summed::document;
pub use workload::{
    BATCH, CONCURRENT, COPIES, MAX_KEYS, MEMBERS, PARTS, Sizes, VERSIONS, WEIGHTS, WarpWorkload,
};

pub use crate::command_line::Note;

use plimsoll_model::REDACTED;

use crate::command_line::LineError;

/// How sizes are read, for people.
pub const SIZES: &str = "4M is 4,000,000 bytes, as in warp; 4MiB is 4,194,304";

/// A command line of warp's, or a file of `warp run`, as it is to be carried out here. Its `Debug`
/// form holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WarpLine {
    /// What is to be done.
    pub command: WarpCommand,
    /// The flags: of `plimsoll s3` for a benchmark, else of `plimsoll as warp`; each name with its
    /// dashes, and its value unless it is a switch. Only `--tag` and `--add-metadata` are there
    /// more than once.
    pub flags: Vec<(String, Option<String>)>,
    /// What the report at the end of a benchmark is to show: flags of `plimsoll as warp analyze`.
    pub analysis: Vec<(String, Option<String>)>,
    /// The files behind `analyze`, `cmp`, `merge` and `run`.
    pub operands: Vec<String>,
    /// What `run` fills in: `--var Name=Value`.
    pub variables: Vec<(String, String)>,
    /// What differs from warp.
    pub notes: Vec<Note>,
}

/// What a command line is read with.
pub struct WarpReading<'a> {
    /// Returns the value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the hosts that a list with patterns such as `{1...8}` names.
    pub hosts: &'a dyn Fn(&str) -> Result<Vec<WarpHost>, String>,
}

/// A host of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpHost {
    /// Its name.
    pub name: String,
    /// Whether a port stands behind it.
    pub has_port: bool,
}

/// Returns what a command line asks for; `args` begin behind warp's name.
pub fn from_args(args: &[String], reading: &WarpReading<'_>) -> Result<WarpLine, LineError> {
    lower::lower(arguments::read(args)?, reading)
}

/// Returns the words of a command line without its secrets; `args` begin behind warp's name. Of a
/// flag that is not known the value is taken for one.
pub fn without_secrets(args: &[String]) -> Vec<String> {
    arguments::without_secrets(args)
}

/// Returns what a file of `warp run` asks for: a benchmark. With `variables` what stands in it as
/// `{{.Name}}` is filled in first; without any the text is taken as it is.
pub fn from_yaml(
    text: &str,
    variables: &[(String, String)],
    reading: &WarpReading<'_>,
) -> Result<WarpLine, LineError> {
    lower::lower(yaml::read(text, variables)?, reading)
}

impl WarpLine {
    /// Returns the line as it could be typed here, without its secrets, and every note, each in a
    /// line of its own that begins with `# `.
    pub fn explain(&self) -> String {
        let start = match self.command {
            WarpCommand::Benchmark(_) => "plimsoll s3",
            _ => "plimsoll as warp",
        };
        let mut text = format!("# {start} {}", self.command.name());
        for (name, value) in self.flags.iter().chain(&self.analysis) {
            text.push_str(&format!(" {name}"));
            if let Some(value) = value {
                let shown = if flags::is_secret(name) { REDACTED } else { value };
                text.push_str(&format!("={}", quoted(shown)));
            }
        }
        for (name, _) in &self.variables {
            // What a file is filled in with may be its keys.
            text.push_str(&format!(" --var={}", quoted(&format!("{name}={REDACTED}"))));
        }
        for operand in &self.operands {
            text.push_str(&format!(" {}", quoted(operand)));
        }
        for note in &self.notes {
            text.push_str(&format!("\n# {note}"));
        }
        text.push('\n');
        text
    }
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/,%+=@*-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl fmt::Debug for WarpLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WarpLine({:?})", self.explain())
    }
}

#[cfg(test)]
mod tests;
