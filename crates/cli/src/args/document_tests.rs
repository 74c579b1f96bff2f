//! What documents quote: command lines, which the program's own parser must take, and sentences
//! that it prints, which must be in its sources.
#![allow(clippy::disallowed_methods, reason = "a test reads files of the repository")]

use std::fs;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use plimsoll_testkit::documents;

use super::tests::{files, repository};
use crate::args::{AsCommand, Cli, Command, WarpCommand};
use crate::load_line::with_benchmark;

/// The shortest piece of a quoted sentence that is looked for: shorter ones are found anywhere.
const PIECE_MIN: usize = 8;

/// Command lines that are meant to be refused, or stand for many, and why.
const NOT_PARSED: [(&str, &str); 4] = [
    ("plimsoll help", "the help itself"),
    ("plimsoll --help", "the help itself"),
    ("plimsoll COMMAND", "stands for any command"),
    ("--host ...", "stands for the hosts of the reader"),
];

/// Returns the command lines in the fenced blocks of a text.
fn command_lines(text: &str) -> Vec<String> {
    documents::blocks(text).into_iter().flat_map(|block| block.lines).collect()
}

/// Returns the commands that a text names between its fenced blocks, such as `plimsoll run FILE`.
fn named_commands(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    let spans = outside.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with("plimsoll ")).map(str::to_owned).collect()
}

/// Returns the words of the program in a line of a shell: up to a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("{line}: quotes do not match"));
    let is_shell = |word: &String| {
        ["|", "||", "&&", ";", "&", ">", "<"].contains(&word.as_str())
            || word.starts_with("2>")
            || word.starts_with('>')
    };
    words.into_iter().take_while(|word| !is_shell(word)).collect()
}

/// Returns why the program would refuse a line, if it would.
fn refusal(line: &str) -> Option<String> {
    let words = with_benchmark(words(line).into_iter().map(Into::into));
    let matches = Cli::command().try_get_matches_from(words);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Cli {
            command: Command::As(AsCommand::Warp(WarpCommand::Benchmark(words))), ..
        }) => crate::commands::warp::judge(&words).err().map(|error| format!("{error:#}")),
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the pages.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages = vec![root.join("README.md")];
    files(&root.join("docs"), ".md", &mut pages);
    pages
}

#[test]
fn every_command_that_a_document_names_exists() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for line in named_commands(&fs::read_to_string(&page).unwrap()) {
            // What stands for many commands, or is cut short.
            if ["...", "…", "COMMAND", "TOOL", "|"].iter().any(|part| line.contains(part)) {
                continue;
            }
            count += 1;
            // A sentence may leave out what a command needs, but names nothing that is not there.
            let words = with_benchmark(words(&line).into_iter().map(Into::into));
            let found = Cli::command().try_get_matches_from(words).err();
            let is_unknown = |error: &clap::Error| {
                matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
            };
            if let Some(error) = found.filter(is_unknown) {
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: {line}\n  {why}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 150, "{count}");
}

#[test]
fn every_command_of_a_document_is_parsed() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for line in command_lines(&text) {
            if NOT_PARSED.iter().any(|(part, _)| line.contains(part)) {
                continue;
            }
            count += 1;
            if let Some(why) = refusal(&line) {
                let why = why.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: {line}\n  {why}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 90, "{count}");
}

#[test]
fn command_lines_are_found_and_wrong_ones_are_refused() {
    let text = "plimsoll no\n```sh run\nplimsoll s3 get \\\n  --host h # x\nother\n```\n```text\n\
                $ plimsoll s3 put | tee x\n```\n";
    let found = command_lines(text);
    assert_eq!(found, ["plimsoll s3 get    --host h # x", "plimsoll s3 put | tee x"]);
    assert_eq!(words(&found[0]), ["plimsoll", "s3", "get", "--host", "h"]);
    assert_eq!(words(&found[1]), ["plimsoll", "s3", "put"]);
    assert_eq!(refusal(&found[0]), None);
    assert!(refusal("plimsoll s3 get --credentials chain").is_some());
    assert!(refusal("plimsoll as warp get --no-such-flag").is_some());
}

/// Returns all sources as one text, in which a literal that goes on in the next line is whole.
fn sources() -> String {
    let mut all: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(repository().join("crates")).unwrap() {
        files(&entry.unwrap().path().join("src"), ".rs", &mut all);
    }
    let mut whole = String::new();
    for path in all {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.split("\\\n");
        whole.push_str(lines.next().unwrap_or_default());
        lines.for_each(|line| whole.push_str(line.trim_start()));
    }
    whole
}

/// Returns the fixed pieces of a quoted sentence.
fn pieces(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('…').map(str::trim).filter(|piece| piece.len() >= PIECE_MIN)
}

#[test]
fn every_sentence_of_the_troubleshooting_page_is_printed() {
    let page = fs::read_to_string(repository().join("docs/troubleshooting.md")).unwrap();
    let sources = sources();
    let mut count = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("### ")) {
        let sentence = line.strip_prefix('`').and_then(|line| line.strip_suffix('`'));
        let sentence = sentence.unwrap_or_else(|| panic!("{line}: quote what is printed"));
        assert!(pieces(sentence).next().is_some(), "{sentence}: nothing to look for");
        for piece in pieces(sentence) {
            assert!(sources.contains(piece), "no source has `{piece}` of `{sentence}`");
        }
        count += 1;
    }
    assert!(count > 20, "{count}");
}
