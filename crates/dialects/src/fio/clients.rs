//! `--client`: agents of a fleet carry the jobs out, each of them all.

use std::collections::BTreeSet;

use super::arguments::COMMAND_LINE;
use super::error::FioError;
use super::job::note;
use super::lines::WrittenOption;
use crate::command_line::{LineError, Note};
use crate::correction::{Correction, correct};

/// Where fio's servers listen if nobody says otherwise.
const PORT: u16 = 8765;

/// What is done otherwise with the figures of all clients together.
pub(super) const ALL_CLIENTS: Correction = correct(
    "All clients",
    "one record merges every group of the file, so that its rates add up what ran at different \
    times",
    "each group of each stage has its own, with percentiles",
);

/// A client of a command line: the agent of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// What the agent is called.
    pub name: String,
    /// The port where fio would find its server. Agents have none.
    pub port: u16,
}

/// The clients of a command line, with what is written behind each.
#[derive(Default)]
pub(super) struct Clients {
    given: Vec<Given>,
}

/// What the clients of a command line come to.
#[derive(Default)]
pub(super) struct Named {
    pub(super) clients: Vec<Client>,
    /// The job files that they share.
    pub(super) files: Vec<String>,
    /// What is to be said of them.
    pub(super) notes: Vec<Note>,
}

/// One `--client` with those that it names.
struct Given {
    option: WrittenOption,
    clients: Vec<Client>,
    has_ports: bool,
    /// The job files that follow it.
    files: Vec<String>,
    /// How many sections the command line had before it.
    sections_count: usize,
}

impl Clients {
    /// Takes a `--client`, which names a host or a file of hosts.
    pub(super) fn add(
        &mut self,
        option: &WrittenOption,
        sections_count: usize,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<(), FioError> {
        let value = option.value.as_deref().unwrap_or_default();
        let hosts = match read(value) {
            Ok(text) => text.split_whitespace().map(str::to_owned).collect(),
            Err(why) if value.contains('/') && !value.starts_with("sock:") => {
                return Err(refused(option, format!("it cannot be read: {why}")));
            }
            Err(_) => vec![value.to_owned()],
        };
        if hosts.is_empty() {
            return Err(refused(option, "the file names no host".to_owned()));
        }
        let parsed: Result<Vec<(Client, bool)>, String> =
            hosts.iter().map(|host| client(host)).collect();
        let parsed = parsed.map_err(|why| refused(option, why))?;
        let has_ports = parsed.iter().any(|(_, has_port)| *has_port);
        let clients = parsed.into_iter().map(|(client, _)| client).collect();
        let (option, files) = (option.clone(), Vec::new());
        self.given.push(Given { option, clients, has_ports, files, sections_count });
        Ok(())
    }

    /// Takes a job file if one of its clients stands before it.
    pub(super) fn take_file(&mut self, file: &str) -> bool {
        let last = self.given.last_mut();
        last.is_some_and(|given| {
            given.files.push(file.to_owned());
            true
        })
    }

    /// Returns what they come to, or why they cannot be meant.
    pub(super) fn finish(self) -> Result<Named, FioError> {
        let Some(first) = self.given.first() else { return Ok(Named::default()) };
        // Those without a file of their own take that of the others.
        let mut lists = self.given.iter().filter(|given| !given.files.is_empty());
        let files = lists.next().map(|given| given.files.clone()).unwrap_or_default();
        if let Some(other) = lists.find(|given| given.files != files) {
            let why = "clients carry out the same job files here; run what differs with a \
            separate command line";
            let written = format!("{} {}", written(&other.option), other.files.join(" "));
            return Err(not_taken(&other.option, &written, why.to_owned()));
        }
        let has_more = |given: &&Given| given.sections_count != first.sections_count;
        if let Some(other) = self.given.iter().find(has_more) {
            let why = "jobs between two clients are those of the first alone; name all clients \
                       before the jobs";
            return Err(refused(&other.option, why.to_owned()));
        }
        let mut names = BTreeSet::new();
        let mut clients = Vec::new();
        for given in &self.given {
            for client in &given.clients {
                if !names.insert(&client.name) {
                    let why = format!(
                        "`{}` appears twice, and agents are told apart by name",
                        client.name
                    );
                    return Err(refused(&given.option, why));
                }
                clients.push(client.clone());
            }
        }
        if let [Client { name, .. }] = &clients[..]
            && name.parse::<usize>().is_ok()
        {
            let why = "it is the name of an agent, not a number of clients".to_owned();
            return Err(refused(&first.option, why));
        }
        let notes = self.notes(&clients);
        Ok(Named { clients, files, notes })
    }

    fn notes(&self, clients: &[Client]) -> Vec<Note> {
        let option = match &self.given[..] {
            [given] => written(&given.option),
            _ => "--client".to_owned(),
        };
        let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        let names = names.join(", ");
        let mut whats = vec![format!(
            "agents of these names carry the jobs out, each of them all, as in fio: {names}"
        )];
        if self.given.iter().any(|given| given.has_ports) {
            let what = "agents connect to the fleet, never the other way round: ports only appear \
            in the JSON";
            whats.push(what.to_owned());
        }
        whats.push(ALL_CLIENTS.to_string());
        whats.into_iter().map(|what| note(COMMAND_LINE, &option, what)).collect()
    }
}

/// Returns the client that a host of fio's stands for, and whether a port was written.
fn client(host: &str) -> Result<(Client, bool), String> {
    if host.starts_with("sock:") {
        return Err(format!("`{host}` is a socket of fio's; write the name of an agent"));
    }
    let prefix = ["ip:", "ip4:", "ip6:"].into_iter().find_map(|prefix| host.strip_prefix(prefix));
    let (name, port) = match prefix.unwrap_or(host).split_once(',') {
        Some((name, port)) => (name, Some(port)),
        None => (prefix.unwrap_or(host), None),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("`{host}` names no agent; write HOST, HOST,PORT or a file of them"));
    }
    let number = port.map(|port| port.parse().map_err(|_| format!("`{port}` is not a port")));
    let number = number.transpose()?;
    Ok((Client { name: name.to_owned(), port: number.unwrap_or(PORT) }, port.is_some()))
}

fn written(option: &WrittenOption) -> String {
    format!("--{}", option.text())
}

fn refused(option: &WrittenOption, why: String) -> FioError {
    not_taken(option, &written(option), why)
}

fn not_taken(option: &WrittenOption, written: &str, why: String) -> FioError {
    option.error(LineError::not_taken(format!("`{written}`"), why))
}
