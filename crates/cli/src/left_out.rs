//! The parts that a build may be without, each behind a Cargo feature: what help does not show of
//! them, and what is said to whoever asks for one.

use anyhow::{Error, Result, anyhow};
use clap::Arg;
use clap::error::{ContextKind, ContextValue};

/// A part of the program behind a feature of Cargo's.
pub(crate) struct Part {
    /// What people call it.
    name: &'static str,
    feature: &'static str,
    is_built: bool,
    commands: &'static [&'static str],
    /// Its flags of other commands.
    flags: &'static [&'static str],
    /// The heading of other flags of it.
    heading: Option<&'static str>,
}

pub(crate) const FLEET: Part = Part {
    name: "fleet",
    feature: "fleet",
    is_built: cfg!(feature = "fleet"),
    commands: &["fleet", "agent"],
    flags: &[],
    heading: Some("Fleet"),
};

pub(crate) const CONSOLE: Part = Part {
    name: "console",
    feature: "console",
    is_built: cfg!(feature = "console"),
    commands: &["console"],
    flags: &["archive"],
    heading: None,
};

pub(crate) const CLOUD: Part = Part {
    name: "cloud credentials, only keys of flags and of the environment",
    feature: "cloud-credentials",
    is_built: cfg!(feature = "cloud-credentials"),
    commands: &[],
    flags: &["sts-web-token", "credentials-timeout"],
    heading: None,
};

static PARTS: [Part; 3] = [FLEET, CONSOLE, CLOUD];

impl Part {
    /// Refuses to go on without the part.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_built { Ok(()) } else { Err(self.refusal()) }
    }

    pub(crate) fn refusal(&self) -> Error {
        anyhow!("this build has no {}: build it with `--features {}`", self.name, self.feature)
    }
}

/// Returns the refusal of a command that clap does not know as it is of a part that was left out.
pub(crate) fn command(error: &clap::Error) -> Option<Error> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    PARTS.iter().find(|part| part.commands.contains(&&**typed))?.check().err()
}

/// Tells whether a flag is of a part that was left out.
pub(crate) fn is_flag_of(arg: &Arg) -> bool {
    let is_of = |part: &Part| {
        part.heading.is_some() && part.heading == arg.get_help_heading()
            || arg.get_long().is_some_and(|long| part.flags.contains(&long))
    };
    left_out().any(is_of)
}

/// Tells whether an example has such a flag.
pub(crate) fn is_in(line: &str) -> bool {
    let flags = || line.split(' ').filter_map(|word| word.strip_prefix("--"));
    left_out().any(|part| flags().any(|flag| part.flags.contains(&flag)))
}

fn left_out() -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(|part| !part.is_built)
}
