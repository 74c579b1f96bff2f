//! fio's clients: the agents of a fleet that carry a job file out, each all of it.

use std::collections::HashMap;
use std::num::NonZeroU32;

use anyhow::{Result, bail};
use plimsoll_dialects::fio::{Client, Engine, JobFile, paths_asked};

use super::{DEFAULT_DIRECTORY, Settings};
use crate::args::OutputArgs;
use crate::args::fleet::FleetArgs;
use crate::fleet::{self, Mustered, PLACES_MAX};
use crate::ui::Ui;

/// As many workers fill files on each machine at most.
const FILLERS_MAX: u32 = 16;

/// The agents of a command line, and what lies on their machines.
pub(super) struct Clients {
    pub(super) count: NonZeroU32,
    /// How many workers fill files, on all machines together.
    pub(super) fillers: u32,
    there: HashMap<String, There>,
    /// The agents themselves, where they were found already.
    pub(super) mustered: Option<Mustered>,
}

/// What lies at a path of all agents' machines.
#[derive(Default)]
struct There {
    /// The size of the smallest; `None` where one machine has nothing there.
    size_bytes: Option<u64>,
    /// Whether it is a device on any.
    is_device: bool,
}

/// Returns the flags of a run that has the agents of these names as clients.
pub(super) fn output(of: &OutputArgs, clients: &[Client]) -> Result<OutputArgs> {
    if of.fleet.agents.is_some() {
        bail!("--agents: `--client` names the agents already; leave one of the two out");
    }
    let name = |client: &Client| match client.name.contains(':') {
        true => format!("[{}]", client.name),
        false => client.name.clone(),
    };
    let names: Vec<String> = clients.iter().map(name).collect();
    let mut output = of.clone();
    let fleet = &mut output.fleet;
    if !fleet.is_asked()? {
        fleet.fleet = Some(None);
    }
    fleet.agents = Some(names.join(","));
    fleet.agents_equal = true;
    Ok(output)
}

/// Returns the line that carries out what `--explain` prints.
pub(super) fn explained(fleet: &FleetArgs) -> String {
    let on = match (&fleet.fabric, &fleet.fleet) {
        (Some(urls), _) => format!("--fabric={urls}"),
        (None, Some(Some(directory))) => format!("--fleet={}", directory.display()),
        (None, _) => "--fleet".to_owned(),
    };
    let agents = fleet.agents.as_deref().unwrap_or_default();
    format!("# plimsoll run FILE {on} --agents-equal --agents={agents}\n")
}

impl Clients {
    /// Finds the agents, unless only their number counts, and has them look at the files that jobs
    /// expect to be there.
    pub(super) fn find(
        clients: &[Client],
        file: &JobFile,
        settings: &Settings<'_>,
        ui: &Ui,
    ) -> Result<Option<Self>> {
        let Some(count) = NonZeroU32::new(u32::try_from(clients.len())?) else { return Ok(None) };
        if file.jobs.iter().any(|job| job.queue.engine == Engine::Null) {
            bail!(
                "--client: `ioengine=null` touches no file, so agents have nothing to do; leave \
                 --client out"
            );
        }
        let clones_max = settings.reading.jobs_max;
        let paths = paths_asked(file, DEFAULT_DIRECTORY, clones_max);
        if let Some(relative) = paths.iter().find(|path| !path.starts_with('/')) {
            bail!("`{relative}` is a different place on each agent: use absolute paths");
        }
        if paths.len() > PLACES_MAX {
            bail!(
                "agents look up {PLACES_MAX} files at most, and jobs take {} that no section makes \
                 (`filename`, `allow_file_create=0`)",
                paths.len()
            );
        }
        let is_known = settings.explain && paths.is_empty();
        let mustered = match is_known {
            true => None,
            false => Some(fleet::muster(&settings.output.fleet, &paths, ui)?),
        };
        let there = mustered.as_ref().map(|mustered| places(mustered, &paths)).transpose()?;
        let clones = file.jobs.iter().map(|job| job.flow.numjobs).max().unwrap_or(1);
        let fillers = clones.min(clones_max.unwrap_or(u32::MAX)).clamp(1, FILLERS_MAX);
        Ok(Some(Self {
            count,
            fillers: fillers.saturating_mul(count.get()),
            there: there.unwrap_or_default(),
            mustered,
        }))
    }

    /// Returns the size of what all agents have at a path.
    pub(super) fn size_bytes(&self, path: &str) -> Option<u64> {
        self.there.get(path)?.size_bytes
    }

    /// Tells whether a path is a device for any agent.
    pub(super) fn is_device(&self, path: &str) -> bool {
        self.there.get(path).is_some_and(|there| there.is_device)
    }
}

fn places(mustered: &Mustered, paths: &[String]) -> Result<HashMap<String, There>> {
    let of_agents = mustered.places()?;
    let there = |(index, path): (usize, &String)| {
        let each = || of_agents.iter().filter_map(|places| places.get(index));
        let sizes: Option<Vec<u64>> = each().map(|place| place.size_bytes).collect();
        let size_bytes = sizes.and_then(|sizes| sizes.into_iter().min());
        (path.clone(), There { size_bytes, is_device: each().any(|place| place.is_device) })
    };
    Ok(paths.iter().enumerate().map(there).collect())
}

#[cfg(feature = "fleet")]
#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{AsCommand, Cli, Command};

    fn fleet_of(line: &str, names: &[&str]) -> Result<FleetArgs> {
        let words = ["plimsoll", "as", "fio"].into_iter().chain(line.split_whitespace());
        let Command::As(AsCommand::Fio(args)) = Cli::parse_from(words).command else {
            unreachable!("it begins so")
        };
        let client = |name: &&str| Client { name: (*name).to_owned(), port: 8765 };
        let clients: Vec<Client> = names.iter().map(client).collect();
        output(&args.output, &clients).map(|output| output.fleet)
    }

    #[test]
    fn clients_are_agents_with_equal_shares() {
        for (line, names, expected) in [
            ("x", &["a", "b"][..], "--fleet --agents-equal --agents=a,b"),
            ("--fleet=/d x", &["a"], "--fleet=/d --agents-equal --agents=a"),
            (
                "--fabric nats://h:1 x",
                &["::1"],
                "--fabric=nats://h:1 --agents-equal --agents=[::1]",
            ),
        ] {
            let fleet = fleet_of(line, names).unwrap();
            assert!(fleet.agents_equal);
            assert_eq!(explained(&fleet), format!("# plimsoll run FILE {expected}\n"));
        }
        let refused = fleet_of("--fleet --agents 2 x", &["a"]).unwrap_err().to_string();
        assert!(refused.contains("`--client` names the agents already"), "{refused}");
    }
}
