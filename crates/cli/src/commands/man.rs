//! `plimsoll man`: manual pages, made of what `--help` shows, or the same as Markdown.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use plimsoll_conduct::output::{self, Named};

use crate::args::{Cli, ManArgs, overwrite};
use crate::help::{self, Depth};
use crate::ui::Ui;

/// The heading of what is given without a flag.
const ARGUMENTS: &str = "Arguments";

/// Prints the main page, or writes one for each command.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode> {
    let mut program = help::arranged(Cli::command(), Depth::Long);
    program.build();
    let mut commands = Vec::new();
    collect(&program, "plimsoll", &mut commands);
    let ui = Ui::plain();
    let Some(directory) = &args.dir else {
        ui.result(&manual(&program, "plimsoll")?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let made = output::make_directory(directory);
    made.with_context(|| format!("--dir: cannot make {}", directory.display()))?;
    for (name, command) in &commands {
        let (ending, page) = match args.markdown {
            true => ("md", markdown(command, name)?),
            false => ("1", manual(command, name)?),
        };
        let path = directory.join(format!("{name}.{ending}"));
        let overwrite = overwrite(args.overwrite);
        Named { name: "--dir", path: &path, overwrite }.write(page.as_bytes())?;
    }
    ui.note(&format!("{} pages in {}", commands.len(), directory.display()));
    Ok(ExitCode::SUCCESS)
}

/// Adds a command and those of all below it, each with the name of its page.
fn collect<'a>(command: &'a Command, name: &str, found: &mut Vec<(String, &'a Command)>) {
    found.push((name.to_owned(), command));
    for below in shown(command) {
        collect(below, &format!("{name}-{}", below.get_name()), found);
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let below = command.get_subcommands();
    below.filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

fn manual(command: &Command, name: &str) -> Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// Returns the page of a command as Markdown: what it does, how it is called, its flags under
/// the headings that help has.
fn markdown(command: &Command, name: &str) -> Result<String> {
    let title = command.get_bin_name().unwrap_or(name);
    let mut page = format!("# {title}\n\n");
    let about = command.get_long_about().or(command.get_about());
    writeln!(page, "{}\n", escaped(&about.map(ToString::to_string).unwrap_or_default()))?;
    let usage = command.clone().render_usage().to_string();
    writeln!(page, "```text\n{}\n```", usage.trim_start_matches("Usage: "))?;
    let below: Vec<_> = shown(command).collect();
    if !below.is_empty() {
        page.push_str("\n## Commands\n\n");
    }
    for below in below {
        let (path, about) = (below.get_name(), below.get_about());
        let about = escaped(&about.map(ToString::to_string).unwrap_or_default());
        writeln!(page, "- [`{path}`]({name}-{path}.md): {about}")?;
    }
    page.push_str(&flags(command));
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        writeln!(
            page,
            "\n## Notes and examples\n\n```text\n{}\n```",
            after.to_string().trim_end()
        )?;
    }
    Ok(page)
}

/// Returns the flags of a command under their headings.
fn flags(command: &Command) -> String {
    let mut page = String::new();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut arguments: Vec<&Arg> = shown.collect();
    arguments.sort_by_key(|arg| (heading(arg) != ARGUMENTS, arg.get_display_order()));
    let mut headings: Vec<&str> = Vec::new();
    for heading in arguments.iter().map(|arg| heading(arg)) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for of in headings {
        page.push_str(&format!("\n## {of}\n\n"));
        for argument in arguments.iter().filter(|arg| heading(arg) == of) {
            page.push_str(&format!("{}\n", flag(argument)));
        }
    }
    page
}

fn heading(argument: &Arg) -> &str {
    let usual = if argument.is_positional() { ARGUMENTS } else { "Options" };
    argument.get_help_heading().unwrap_or(usual)
}

/// Returns the entry of a flag: its forms, what it means, and what it is without being given.
fn flag(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut said = vec![escaped(&help.map(ToString::to_string).unwrap_or_default())];
    let takes_value = argument.get_action().takes_values();
    let usual = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let usual = usual.collect::<Vec<_>>().join(" ");
    if takes_value && !usual.is_empty() && !argument.is_hide_default_value_set() {
        said.push(format!("Default: `{usual}`"));
    }
    let values = argument.get_possible_values();
    if takes_value && !values.is_empty() && !argument.is_hide_possible_values_set() {
        let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        said.push(format!("One of {}", names.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        said.push(format!("Environment: `{}`", variable.to_string_lossy()));
    }
    let said = said.join(". ");
    format!("- `{argument}`: {said}")
}

/// Returns text in which Markdown sees no markup, in one paragraph.
fn escaped(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('<', "&lt;").replace('*', "\\*").replace('[', "\\[")
}
