//! What help shows: the flags that people use first, the others by group, and examples. How a
//! command line is parsed does not depend on it.

mod examples;
mod table;

#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::builder::{Resettable, Str, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use plimsoll_dialects::warp::WarpBenchmark;

use examples::EXAMPLES;
use table::{COMMON, GROUPS, MOVED, SHORT};

use crate::left_out;

/// The heading of the flags that people use.
const COMMON_OPTIONS: &str = "Common options";
/// The heading of what is printed and kept.
const OUTPUT: &str = "Output";
/// The heading of what few need.
const ADVANCED: &str = "Advanced";
/// The dialect whose benchmarks take their flags as they come.
const WARP: [&str; 2] = ["as", "warp"];

/// How much help shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One screen: the flags that people use, where a command has many.
    Short,
    /// Every flag, by group.
    Long,
}

/// Returns the depth that a command line asks for: `-h` is short, all else is long.
pub(crate) fn depth_of(words: &[OsString]) -> Depth {
    if words.iter().any(|word| word == "-h") { Depth::Short } else { Depth::Long }
}

/// Returns a command line that asks for the help of a benchmark of warp's, whose flags are not
/// clap's; `None` for any other.
pub(crate) fn of_warp(words: &[OsString]) -> Option<Vec<OsString>> {
    let of_warp = words.len() > 4 && words[1..3].iter().zip(WARP).all(|(word, of)| word == of);
    let asks = |word: &&OsString| *word == "-h" || *word == "--help";
    let benchmark = words.get(3).filter(|word| benchmarks().any(|(name, _)| *word == name))?;
    let asked = words.iter().skip(4).find(asks).filter(|_| of_warp)?;
    Some(words[..3].iter().chain([benchmark, asked]).cloned().collect())
}

/// Returns the program's commands as help shows them.
pub(crate) fn arranged(program: Command, depth: Depth) -> Command {
    arranged_below(program, &[], &[], depth)
}

/// Returns a command as help shows it; `globals` are the flags that it has from above.
fn arranged_below(command: Command, path: &[String], globals: &[Arg], depth: Depth) -> Command {
    let name = path.join(" ");
    let own = |arg: &&Arg| command.get_arguments().all(|other| other.get_id() != arg.get_id());
    let inherited: Vec<Arg> =
        globals.iter().filter(own).map(|arg| arg.clone().global(false)).collect();
    let command = command.args(inherited);
    let mut globals = globals.to_vec();
    globals.extend(command.get_arguments().filter(|arg| arg.is_global_set()).cloned());
    let command = if path == WARP { with_benchmarks(command) } else { command };
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = below.into_iter().fold(command, |command, below| {
        let mut path = path.to_vec();
        path.push(below.clone());
        command.mut_subcommand(below, |of| arranged_below(of, &path, &globals, depth))
    });
    let command = ordered(command, common_of(&name), depth);
    let command = with_own_help(command, !path.is_empty());
    with_examples(command, &name, depth)
}

/// Returns the flags that people use of a command; none if it has so few that all are shown.
fn common_of(path: &str) -> &'static [&'static str] {
    let is_of =
        |of: &str| path == of || path.strip_prefix(of).is_some_and(|at| at.starts_with(' '));
    let found = COMMON.iter().find(|(paths, _)| paths.iter().any(|of| is_of(of)));
    found.map_or(&[], |(_, flags)| *flags)
}

/// Returns what the tables call an argument: its long flag, or the name of its value.
fn name_of(arg: &Arg) -> String {
    let value = || arg.get_value_names().and_then(|names| names.first());
    let value = || value().map_or_else(|| arg.get_id().to_string(), ToString::to_string);
    arg.get_long().map_or_else(value, str::to_owned)
}

/// Returns a command whose arguments stand in the order of the tables, under their headings.
fn ordered(command: Command, common: &[&str], depth: Depth) -> Command {
    let place = |arg: &Arg| {
        let name = name_of(arg);
        let at = common.iter().position(|flag| *flag == name);
        let heading = heading_of(&name, arg, at.is_some());
        let group = GROUPS.iter().position(|group| Some(*group) == heading.as_deref());
        (group.map_or(0, |group| group + 1), at.unwrap_or(usize::MAX), heading)
    };
    let mut places: Vec<_> =
        command.get_arguments().map(|arg| (place(arg), arg.get_id().clone())).collect();
    places.sort_by_key(|((group, at, _), _)| (*group, *at));
    places.into_iter().enumerate().fold(command, |command, (order, ((_, at, heading), id))| {
        command.mut_arg(id, |arg| {
            // A group without a heading of its own is what clap calls options and arguments.
            let arg = if arg.is_positional() { arg } else { arg.display_order(order) };
            let is_left_out = left_out::is_flag_of(&arg);
            let arg = arg.help_heading(Resettable::from(heading.map(Str::from)));
            match depth {
                _ if is_left_out => arg.hide(true),
                Depth::Short if !common.is_empty() => shortened(arg, at < usize::MAX),
                _ => arg,
            }
        })
    })
}

fn heading_of(name: &str, arg: &Arg, is_common: bool) -> Option<String> {
    if arg.is_positional() {
        return None;
    }
    if is_common {
        return Some(COMMON_OPTIONS.to_owned());
    }
    let moved = MOVED.iter().find(|(_, flags)| flags.contains(&name));
    let heading = moved.map(|(heading, _)| *heading).or_else(|| arg.get_help_heading());
    // Where a store is and how it is spoken to has several names.
    heading.map(|heading| match heading {
        "Store" | "Storage" | "Cluster" => "Connection".to_owned(),
        heading => heading.to_owned(),
    })
}

/// Returns an argument as one line, or hidden.
fn shortened(arg: Arg, is_common: bool) -> Arg {
    let name = name_of(&arg);
    let short = SHORT.iter().find(|(flag, _)| *flag == name).map(|(_, text)| *text);
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    let default = default_of(&arg);
    let arg = arg.hide(!is_common).hide_env(takes_value).hide_default_value(takes_value);
    let arg = arg.hide_possible_values(takes_value);
    match short {
        // Some say themselves what stands for what is not given.
        Some(text) if text.contains('[') => arg.help(text),
        Some(text) => arg.help(with_default(text, default.as_deref())),
        None => arg,
    }
}

/// Returns what stands for an argument that is not given: as the parser has it, or as its help
/// says.
fn default_of(arg: &Arg) -> Option<String> {
    if let Some(value) = arg.get_default_values().first() {
        return value.to_str().map(str::to_owned);
    }
    let help = arg.get_help()?.to_string();
    let (_, said) = help.split_once("[default: ")?;
    let (said, _) = said.split_once(']')?;
    Some(said.replace('\n', " "))
}

/// Returns a line with as much of the default as it has room for.
fn with_default(text: &str, default: Option<&str>) -> String {
    /// Of 80 columns what the longest flag leaves.
    const CHARS_MAX: usize = 52;
    let Some(default) = default else { return text.to_owned() };
    let whole = match default.split_once("; ") {
        Some((first, other)) => match other.strip_suffix(" on the embedded store") {
            Some(embedded) => format!("{first}; embedded: {embedded}"),
            None => default.to_owned(),
        },
        None => default.to_owned(),
    };
    let first = whole.split(';').next().unwrap_or_default();
    let lines = [&*whole, first].map(|default| format!("{text} [default: {default}]"));
    let fitting = lines.into_iter().find(|line| line.chars().count() <= CHARS_MAX);
    fitting.unwrap_or_else(|| text.to_owned())
}

/// Returns a command whose own help flag stands last, and which alone says the version.
fn with_own_help(command: Command, is_below: bool) -> Command {
    let has = |heading: &&str| {
        command
            .get_arguments()
            .any(|arg| !arg.is_hide_set() && arg.get_help_heading() == Some(heading))
    };
    let heading = [COMMON_OPTIONS, OUTPUT].into_iter().find(has);
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    let help = help.help("Print help: -h the common flags, --help all of them");
    let help = help.help_heading(heading).display_order(usize::MAX);
    command.disable_help_flag(true).disable_version_flag(is_below).arg(help)
}

/// Returns a command with its examples below, and where the other flags are found.
fn with_examples(command: Command, path: &str, depth: Depth) -> Command {
    let examples = examples_of(path);
    let mut text = String::new();
    let is_one_screen = depth == Depth::Short && !common_of(path).is_empty();
    if let Some(before) = command.get_after_help().filter(|_| !is_one_screen) {
        text = format!("{before}\n\n");
    }
    if !examples.is_empty() {
        text.push_str("Examples:\n");
        let examples = examples.iter().filter(|line| !left_out::is_in(line));
        text.extend(examples.map(|line| format!("  {line}\n")));
    }
    if is_one_screen {
        text.push_str(&format!("All flags: plimsoll {path} --help"));
    }
    let command =
        if is_one_screen { command.mut_arg("help", |help| help.hide(true)) } else { command };
    command.after_help(text.trim_end().to_owned())
}

/// Returns the examples of a command; of one without any, those of the command above it.
fn examples_of(path: &str) -> &'static [&'static str] {
    let found = EXAMPLES.iter().find(|(of, _)| *of == path).map(|(_, lines)| *lines);
    let above = || path.rsplit_once(' ').map_or(&[][..], |(above, _)| examples_of(above));
    found.unwrap_or_else(above)
}

/// Flags that people look for where they are not, with where they are.
const ELSEWHERE: [(&str, &str); 2] = [
    (
        "--slo",
        "`plimsoll loadline s3 get --slo ...` searches for the highest rate that keeps it, and \
         `plimsoll analyze RUN --slo ...` holds it against a run that is there",
    ),
    ("--gate", "`plimsoll compare BEFORE AFTER --gate ...` holds runs against a rule"),
];

/// Has the refusal of a flag say which command has it, where people look for it elsewhere.
pub(crate) fn point_elsewhere(error: &mut clap::Error) {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let flag = flag.split(['=', ' ']).next().unwrap_or_default();
    let Some((_, place)) = ELSEWHERE.iter().find(|(name, _)| *name == flag) else { return };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*place)]));
}

/// Returns warp's benchmarks, each with what it does.
fn benchmarks() -> impl Iterator<Item = (&'static str, String)> {
    let each = WarpBenchmark::ALL.into_iter().map(|benchmark| {
        let name = benchmark.name();
        (name, format!("Run warp's `{name}` benchmark, with warp's flags"))
    });
    each.chain([("run", "Run a YAML file of warp's".to_owned())])
}

fn with_benchmarks(command: Command) -> Command {
    benchmarks().fold(command, |command, (name, about)| {
        let words = Arg::new("words").num_args(0..).value_name("WARP FLAGS");
        let words = words.help(
            "warp's own flags. plimsoll's --explain prints the equivalent workload file and exits, \
             and its --report-json prints plimsoll's JSON instead of warp's report",
        );
        command.subcommand(Command::new(name).about(about).arg(words))
    })
}
