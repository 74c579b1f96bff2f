//! `plimsoll man`: manual pages, made of what `--help` shows.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use plimsoll_conduct::output::Named;

use crate::args::{Cli, ManArgs, overwrite};
use crate::help::{self, Depth};
use crate::ui::Ui;

/// Prints the main page, or writes one for each command.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode> {
    let mut program = help::arranged(Cli::command(), Depth::Long);
    program.build();
    let mut pages = Vec::new();
    collect(&program, "plimsoll", &mut pages)?;
    let ui = Ui::plain();
    let Some(directory) = &args.dir else {
        ui.result(&String::from_utf8(pages.swap_remove(0).1)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    for (name, page) in &pages {
        let path = directory.join(format!("{name}.1"));
        let overwrite = overwrite(args.overwrite);
        Named { name: "--dir", path: &path, overwrite }.write(page)?;
    }
    ui.note(&format!("{} pages in {}", pages.len(), directory.display()));
    Ok(ExitCode::SUCCESS)
}

/// Adds the page of a command and those of all below it.
fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let mut page = Vec::new();
    Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    pages.push((name.to_owned(), page));
    let shown = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        collect(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}
