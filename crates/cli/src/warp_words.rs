//! Rewrites the flags of `as warp analyze`, `cmp` and `merge` from the forms that warp's library
//! reads to those that clap reads: one dash as well as two, `--switch=true` and `--switch=false`.

use std::ffi::OsString;

use clap::{ArgAction, Command};

/// Words before the flags: plimsoll, as, warp and the command.
const BEFORE: usize = 4;

/// Returns a command line of these commands in clap's form, and any other unchanged.
pub(crate) fn in_our_form(program: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let Some(command) = of_records(program, &words) else { return words };
    let mut read = words[..BEFORE].to_vec();
    let mut rest = words[BEFORE..].iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            read.push(word.clone());
            read.extend(rest.by_ref().cloned());
            break;
        }
        let Some((flag, is_switch, value)) = word.to_str().and_then(|word| split(command, word))
        else {
            read.push(word.clone());
            continue;
        };
        match (is_switch, value) {
            (true, None | Some("1" | "t" | "T" | "true" | "TRUE" | "True")) => {
                read.push(flag.into());
            }
            (true, Some("0" | "f" | "F" | "false" | "FALSE" | "False")) => {
                read.retain(|before| *before != *flag);
            }
            (_, Some(value)) => read.push(format!("{flag}={value}").into()),
            (false, None) => {
                read.push(flag.into());
                // The value may look like a flag.
                read.extend(rest.next().cloned());
            }
        }
    }
    read
}

/// Returns the command if it is one of these.
fn of_records<'c>(program: &'c Command, words: &[OsString]) -> Option<&'c Command> {
    let [_, first, second, third, ..] = words else { return None };
    let is_warp = first == "as" && second == "warp";
    let found = program.find_subcommand(first).filter(|_| is_warp)?;
    found.find_subcommand(second)?.find_subcommand(third)
}

/// Returns a long flag in clap's spelling, whether it is a switch, and its value; `None` for any
/// other word.
fn split<'w>(command: &Command, word: &'w str) -> Option<(String, bool, Option<&'w str>)> {
    let text = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let is_it = |arg: &&clap::Arg| {
        let others = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || others.contains(&name)
    };
    let arg = command.get_arguments().find(is_it).filter(|_| name.len() > 1)?;
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    Some((format!("--{}", arg.get_long()?), is_switch, value))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn read(line: &str) -> String {
        let words = format!("plimsoll {line}");
        let words = words.split_whitespace().map(OsString::from).collect();
        let read = in_our_form(&Cli::command(), words);
        let read: Vec<&str> = read[1..].iter().map(|word| word.to_str().unwrap()).collect();
        read.join(" ")
    }

    #[test]
    fn flags_are_read_as_warp_reads_them() {
        for (theirs, ours) in [
            ("analyze --full -analyze.dur 5s F", "analyze --full --analyze.dur 5s F"),
            ("analyze --analyze.v=true F", "analyze --analyze.v F"),
            ("analyze -full --full -full=F F", "analyze F"),
            ("analyze --full=false -full=1 F", "analyze --full F"),
            ("analyze -analyze.out=- F -v", "analyze --analyze.out=- F -v"),
            ("analyze --analyze.op -full F", "analyze --analyze.op -full F"),
            ("analyze --full=maybe F", "analyze --full=maybe F"),
            ("analyze -- -full", "analyze -- -full"),
            ("cmp -analyze.op GET A B", "cmp --analyze.op GET A B"),
            ("merge -benchdata=x A B", "merge --benchdata=x A B"),
            ("get -full=true", "get -full=true"),
        ] {
            assert_eq!(read(&format!("as warp {theirs}")), format!("as warp {ours}"));
        }
        assert_eq!(read("analyze -full=true F"), "analyze -full=true F", "warp's alone");
    }

    #[test]
    fn the_last_of_two_counts() {
        for line in [
            "as warp analyze --full --full F",
            "as warp analyze --analyze.op=GET -analyze.op=PUT F",
            "as warp cmp --analyze.op=GET --analyze.op=PUT A B",
            "as warp merge --benchdata a --benchdata b A B",
        ] {
            let words = format!("plimsoll {line}");
            let words = words.split_whitespace().map(OsString::from).collect();
            let read = in_our_form(&Cli::command(), words);
            let found = Cli::command().try_get_matches_from(read);
            let found = found.unwrap_or_else(|error| panic!("{line}: {error}"));
            let (_, found) = found.subcommand().unwrap().1.subcommand().unwrap();
            let (command, found) = found.subcommand().unwrap();
            let last = match command {
                "merge" => {
                    let name = found.get_one::<std::path::PathBuf>("benchdata").unwrap();
                    name.as_os_str() == "b"
                }
                _ => found.get_one::<String>("op").is_none_or(|op| op == "PUT"),
            };
            assert!(last, "{line}");
        }
    }
}
