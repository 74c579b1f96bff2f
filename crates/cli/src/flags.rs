//! From the fields that the rooms below name in their messages, such as `tls_ca`, to the flags of
//! the command that was typed: what has no such flag keeps the name that a workload file knows.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use clap::{ArgMatches, Command};
use plimsoll_conduct::ConductError;
use plimsoll_workload::plan::{InvalidField, ReadError};

/// All commands, and the flags of this process's one, without their dashes.
static TYPED: OnceLock<(Command, BTreeSet<String>)> = OnceLock::new();

/// Keeps the flags of the command that was typed.
pub(crate) fn keep(command: &Command, mut matches: &ArgMatches) {
    let mut names = Vec::new();
    while let Some((name, below)) = matches.subcommand() {
        names.push(name);
        matches = below;
    }
    let _ = TYPED.set((command.clone(), flags_of(command, names)));
}

/// Returns the flags of the command that `words` begin with; none if they name no command. Of
/// warp's command lines, which are read by themselves, they are those of `plimsoll s3`.
fn flags_of<'a>(command: &Command, words: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut of = command;
    for word in words {
        let s3 = || command.find_subcommand("s3").filter(|_| of.get_name() == "warp");
        let Some(below) = of.find_subcommand(word).or_else(s3) else { break };
        of = below;
    }
    let mut flags = BTreeSet::new();
    if !std::ptr::eq(of, command) {
        collect(of, &mut flags);
    }
    flags
}

/// Returns the field of a workload that an error is about.
pub(crate) fn refused_field(error: &anyhow::Error) -> Option<&InvalidField> {
    match error.downcast_ref() {
        Some(ConductError::Plan(refused) | ConductError::NotSimulated(refused)) => Some(refused),
        _ => {
            let read = error.downcast_ref::<ReadError>().map(|read| &read.invalid);
            read.or_else(|| error.downcast_ref::<InvalidField>())
        }
    }
}

/// Returns the refusal of a workload that another tool's words asked for in those words; any other
/// error as it is.
pub(crate) fn in_words(error: anyhow::Error, words: &[(&str, &str)]) -> anyhow::Error {
    match refused_field(&error) {
        Some(refused) => anyhow::anyhow!(plimsoll_dialects::in_words(refused, words)),
        None => error,
    }
}

/// Returns a message of clap's in the flags of all commands.
pub(crate) fn in_any_flags(command: &Command, text: &str) -> String {
    let mut flags = BTreeSet::new();
    collect(command, &mut flags);
    with_flags(text, &flags)
}

/// Tells whether the command that was typed has a flag of that name.
pub(crate) fn has(flag: &str) -> bool {
    TYPED.get().is_some_and(|(_, flags)| flags.contains(flag))
}

/// Returns a text with flags for fields in backticks, which are as long.
pub(crate) fn in_flags(text: &str) -> String {
    TYPED.get().map_or_else(|| text.to_owned(), |(_, flags)| with_flags(text, flags))
}

/// Returns a report's text with the flags of the command that made the run, and of the one typed.
pub(crate) fn in_flags_of_run(command_line: &str, text: &str) -> String {
    TYPED.get().map_or_else(
        || text.to_owned(),
        |(command, flags)| with_flags(text, &(flags | &flags_of_line(command, command_line))),
    )
}

fn flags_of_line(command: &Command, line: &str) -> BTreeSet<String> {
    flags_of(command, line.split_whitespace().skip(1))
}

fn collect(command: &Command, flags: &mut BTreeSet<String>) {
    let longs = command.get_arguments().filter_map(|arg| arg.get_long());
    flags.extend(longs.map(str::to_owned));
    command.get_subcommands().for_each(|below| collect(below, flags));
}

/// Words before the names that users and stores give: what is quoted behind one is no field.
const NAMED: [&str; 13] = [
    "set",
    "target",
    "stage",
    "job",
    "profile",
    "bucket",
    "container",
    "host",
    "collection",
    "center",
    "rack",
    "region",
    "column",
];

fn with_flags(text: &str, flags: &BTreeSet<String>) -> String {
    let field_of = |flag: &str| flag.replace(['-', '.'], "_");
    let is_letter = |c: char| c.is_alphabetic();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('`') {
        out.push_str(before);
        let word = before.strip_suffix(' ').and_then(|text| text.rsplit(|c| !is_letter(c)).next());
        let is_name = word.is_some_and(|word| NAMED.contains(&word));
        let quoted = behind.split_once('`').and_then(|(word, after)| {
            let flag = flags.iter().find(|flag| !is_name && field_of(flag) == word)?;
            Some((flag, after))
        });
        match quoted {
            Some((flag, after)) => {
                out.push_str(&format!("--{flag}"));
                rest = after;
            }
            None => {
                out.push('`');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_the_flags_that_are_there() {
        let flags = ["tls-ca", "part.size", "host"].map(str::to_owned).into();
        for (text, shown) in [
            ("use `tls_ca` FILE or `insecure`", "use --tls-ca FILE or `insecure`"),
            ("(`part_size`)", "(--part.size)"),
            ("`` is not a host name (`host`)", "`` is not a host name (--host)"),
            ("`a b` and `host", "`a b` and `host"),
            ("set `host` of `host`", "set `host` of --host"),
            ("bucket `host` (`host`)", "bucket `host` (--host)"),
            ("cannot resolve host `host`: no", "cannot resolve host `host`: no"),
            ("", ""),
        ] {
            assert_eq!(with_flags(text, &flags), shown);
        }
    }

    #[test]
    fn a_report_read_again_names_the_flags_of_its_own_command() {
        let command = <crate::args::Cli as clap::CommandFactory>::command();
        for (line, is_one) in [
            ("plimsoll s3 get --host h", true),
            ("plimsoll as warp get --host h", true),
            ("plimsoll null --duration 1s", true),
            ("plimsoll run s3.yaml", true),
            ("plimsoll merge s3", false),
            ("warp get --host h", false),
            ("", false),
        ] {
            assert_eq!(flags_of_line(&command, line).contains("threads"), is_one, "{line}");
        }
    }
}
