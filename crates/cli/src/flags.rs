//! From the fields that the rooms below name in their messages, such as `tls_ca`, to the flags of
//! the command that was typed: what has no such flag keeps the name that a workload file knows.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use clap::{ArgMatches, Command};
use plimsoll_conduct::ConductError;
use plimsoll_workload::plan::InvalidField;

/// The flags of this process's command, without their dashes.
static FLAGS: OnceLock<BTreeSet<String>> = OnceLock::new();

/// Keeps the flags of the command that was typed. Of warp's command lines, which are read by
/// themselves, they are those of `plimsoll s3`.
pub(crate) fn keep(command: &Command, matches: &ArgMatches) {
    let (mut of, mut given) = (command, matches);
    while let Some((name, below)) = given.subcommand() {
        let known = of.find_subcommand(name).or_else(|| command.find_subcommand("s3"));
        let Some(known) = known else { break };
        (of, given) = (known, below);
    }
    let mut flags = BTreeSet::new();
    collect(of, &mut flags);
    let _ = FLAGS.set(flags);
}

/// Returns the refusal of a workload that another tool's words asked for in those words; any other
/// error as it is.
pub(crate) fn in_words(error: anyhow::Error, words: &[(&str, &str)]) -> anyhow::Error {
    let refused = match error.downcast_ref() {
        Some(ConductError::Plan(refused)) => Some(refused),
        _ => error.downcast_ref::<InvalidField>(),
    };
    match refused {
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

/// Returns a text with flags for fields in backticks, which are as long.
pub(crate) fn in_flags(text: &str) -> String {
    FLAGS.get().map_or_else(|| text.to_owned(), |flags| with_flags(text, flags))
}

fn collect(command: &Command, flags: &mut BTreeSet<String>) {
    let longs = command.get_arguments().filter_map(|arg| arg.get_long());
    flags.extend(longs.map(str::to_owned));
    command.get_subcommands().for_each(|below| collect(below, flags));
}

fn with_flags(text: &str, flags: &BTreeSet<String>) -> String {
    let field_of = |flag: &str| flag.replace(['-', '.'], "_");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('`') {
        out.push_str(before);
        // What bears a name of its own is no field.
        let is_name = ["set ", "target ", "stage ", "job "].iter().any(|of| before.ends_with(of));
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
            ("`` is no host name (`host`)", "`` is no host name (--host)"),
            ("`a b` and `host", "`a b` and `host"),
            ("set `host` of `host`", "set `host` of --host"),
            ("", ""),
        ] {
            assert_eq!(with_flags(text, &flags), shown);
        }
    }
}
