//! What help prints, and what the tables say of flags.

use super::*;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::args::{AsCommand, Cli, WarpCommand};
use crate::load_line::with_benchmark;

/// The lines and columns of a terminal that nobody has made larger.
const SCREEN: (usize, usize) = (24, 80);

/// Returns all commands that help shows, each with its path.
fn pages(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    found.push((path.to_owned(), command.clone()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path = format!("{path} {}", below.get_name());
        pages(below, path.trim_start(), found);
    }
}

fn all_pages(command: &Command) -> Vec<(String, Command)> {
    let mut found = Vec::new();
    pages(command, "", &mut found);
    found
}

fn words(line: &str) -> Vec<OsString> {
    shlex::split(line).unwrap().into_iter().map(OsString::from).collect()
}

/// Returns what a command line prints that asks for help.
fn help(line: &str) -> String {
    let words = words(line);
    let command = arranged(Cli::command(), depth_of(&words)).term_width(SCREEN.1);
    command.try_get_matches_from(words).unwrap_err().render().to_string()
}

#[test]
fn arranged_commands_are_sound() {
    arranged(Cli::command(), Depth::Short).debug_assert();
    arranged(Cli::command(), Depth::Long).debug_assert();
}

#[test]
fn every_page_has_examples_and_each_is_parsed() {
    let mut count = 0;
    // A page of a search is that of the benchmark, and one of a benchmark of warp's is warp's.
    let is_own = |path: &str| {
        let in_search = path.starts_with("loadline ") && path.matches(' ').count() > 1;
        !in_search
    };
    for (path, _) in all_pages(&Cli::command()).iter().filter(|(path, _)| is_own(path)) {
        let lines = EXAMPLES.iter().find(|(of, _)| of == path);
        let (_, lines) = lines.unwrap_or_else(|| panic!("`{path}` has no examples"));
        assert!((2..=3).contains(&lines.len()), "{path}: {}", lines.len());
        for line in *lines {
            let begins = format!("plimsoll {path}");
            assert!(line.starts_with(begins.trim_end()), "{line} is no example of {path}");
            assert!(line.len() <= SCREEN.1 - 2, "{line} is wider than a screen");
            let words = with_benchmark(words(line));
            let matches = Cli::command().try_get_matches_from(words);
            let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
            let cli = cli.unwrap_or_else(|error| panic!("{line}: {error}"));
            if let crate::args::Command::As(AsCommand::Warp(WarpCommand::Benchmark(words))) =
                cli.command
            {
                crate::commands::warp::judge(&words).unwrap_or_else(|e| panic!("{line}: {e}"));
            }
            count += 1;
        }
    }
    let is_built = |path: &str| {
        let first = path.split(' ').next().unwrap_or_default();
        first.is_empty() || Cli::command().find_subcommand(first).is_some()
    };
    let built = EXAMPLES.iter().filter(|(path, _)| is_built(path));
    assert_eq!(count, built.map(|(_, lines)| lines.len()).sum::<usize>());
}

#[test]
fn short_help_fits_a_screen() {
    let leaves = all_pages(&Cli::command());
    let mut count = 0;
    for (path, command) in leaves {
        let is_leaf = command.get_subcommands().next().is_none() || path == "loadline";
        if common_of(&path).is_empty() || !is_leaf {
            continue;
        }
        let text = help(&format!("plimsoll {path} -h"));
        let lines = text.trim_end().lines().count();
        assert!(lines <= SCREEN.0, "{path} -h has {lines} lines:\n{text}");
        let wide = text.lines().find(|line| line.chars().count() > SCREEN.1);
        assert_eq!(wide, None, "{path} -h");
        assert!(text.contains(&format!("All flags: plimsoll {path} --help")), "{text}");
        count += 1;
    }
    assert!(count > 25, "{count}");
    let text = help("plimsoll s3 get -h");
    for flag in ["host", "access-key", "secret-key", "bucket", "obj.size", "objects"]
        .iter()
        .chain(&["concurrent", "duration", "rate", "run-dir", "json"])
    {
        assert!(text.contains(&format!("--{flag}")), "{flag} is not in\n{text}");
    }
    assert!(!text.contains("--autoterm"), "{text}");
}

#[test]
fn long_help_has_every_flag_with_the_common_ones_first() {
    for (path, command) in all_pages(&Cli::command()).iter().skip(1) {
        let text = help(&format!("plimsoll {path} --help"));
        let is_shown = |arg: &&Arg| !arg.is_hide_set() && !left_out::is_flag_of(arg);
        let flags = command.get_arguments().filter(is_shown);
        for flag in flags.filter_map(Arg::get_long) {
            assert!(text.contains(&format!("--{flag}")), "{path} --help has no --{flag}");
        }
    }
    let text = help("plimsoll s3 get --help");
    let (_, of_workers) = text.split_once("--concurrent <N>").unwrap();
    let (of_workers, _) = of_workers.split_once("\n\n").unwrap();
    assert!(of_workers.contains("--transport sockets"), "{of_workers}");
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.ends_with(':') && line.starts_with(|c: char| c.is_uppercase()))
        .collect();
    let mut expected = vec![
        "Common options:",
        "Load:",
        "Objects:",
        "Checks:",
        "Output:",
        "Connection:",
        "Requests:",
        "Telemetry:",
        "Fleet:",
        "Advanced:",
        "Examples:",
    ];
    expected.retain(|heading| *heading != "Fleet:" || cfg!(feature = "fleet"));
    assert_eq!(headings, expected);
}

#[test]
fn help_itself_has_no_heading_to_itself() {
    for depth in [Depth::Short, Depth::Long] {
        for (path, command) in all_pages(&arranged(Cli::command(), depth)) {
            let of_help = command.get_arguments().find(|arg| arg.get_id() == "help").unwrap();
            let Some(heading) = of_help.get_help_heading() else { continue };
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            let beside = shown.filter(|arg| arg.get_help_heading() == Some(heading)).count();
            assert!(of_help.is_hide_set() || beside > 1, "{path}: {heading}");
        }
    }
}

#[test]
#[cfg(feature = "console")]
fn every_name_in_the_tables_is_one() {
    let mut names = Vec::new();
    let mut headings = Vec::new();
    for (_, command) in all_pages(&Cli::command()) {
        for arg in command.get_arguments() {
            names.push(name_of(arg));
            headings.extend(arg.get_help_heading().map(str::to_owned));
        }
    }
    let told = COMMON.iter().flat_map(|(_, flags)| flags.iter()).chain(
        MOVED.iter().flat_map(|(_, flags)| flags.iter()).chain(SHORT.iter().map(|(flag, _)| flag)),
    );
    for name in told {
        assert!(names.iter().any(|other| other == name), "no command has {name}");
    }
    let paths = all_pages(&Cli::command());
    for path in COMMON.iter().flat_map(|(paths, _)| paths.iter()) {
        assert!(paths.iter().any(|(of, _)| of == path), "there is no command {path}");
    }
    let is_new = |group: &&str| [COMMON_OPTIONS, ADVANCED, "Checks", "Connection"].contains(group);
    for group in GROUPS.iter().filter(|group| !is_new(group)) {
        assert!(headings.iter().any(|heading| heading == group), "no flag is under {group}");
    }
}

#[test]
fn help_of_warp_lists_its_benchmarks() {
    let text = help("plimsoll as warp --help");
    for (name, _) in benchmarks() {
        assert!(text.contains(&format!("\n  {name} ")), "{name} is not in\n{text}");
    }
    let asked = of_warp(&words("plimsoll as warp get --host=h --help")).unwrap();
    assert_eq!(asked, words("plimsoll as warp get --help"));
    let matches = arranged(Cli::command(), Depth::Long).try_get_matches_from(asked);
    let text = matches.unwrap_err().render().to_string();
    assert!(text.contains("Usage: plimsoll as warp get [WARP FLAGS]..."), "{text}");
    for line in ["plimsoll as warp get --host=h", "plimsoll as warp analyze f --help"] {
        assert_eq!(of_warp(&words(line)), None, "{line}");
    }
}

#[test]
fn search_flags_are_shown_below_a_search() {
    let text = help("plimsoll loadline s3 get -h");
    assert!(text.contains("--slo") && text.contains("--budget"), "{text}");
    assert!(
        Cli::try_parse_from(["plimsoll", "loadline", "s3", "get", "--slo", "p99<=1ms"]).is_ok()
    );
}
