//! `--warp-client`: agents of a fleet carry a benchmark out, each with as much as one client of
//! warp's.

use std::collections::BTreeSet;

use plimsoll_workload::plan::Rate;

use super::WarpHost;
use super::asked::Asked;
use super::command::WarpBenchmark;
use super::run::AGENTS;
use super::workload::{CONCURRENT, PARTS};
use crate::command_line::LineError;

const FLAG: &str = "warp-client";
/// How a fleet is asked for as warp uses its clients: all alike, each with its own record.
const FLEET: [&str; 3] = ["--fleet", "--agents-equal", "--parts-stay"];

/// Refuses clients that are not told where the store is.
pub(super) fn check(asked: &Asked) -> Result<(), LineError> {
    match asked.get(FLAG) {
        Some(given) if asked.get("host").is_none() => Err(given.wrong(
            "name the store with `--host`; 127.0.0.1:9000, where warp goes without it, is another \
             one on each machine",
        )),
        _ => Ok(()),
    }
}

/// Has the agents of these names carry the benchmark out, each with as much as the line says.
pub(super) fn adapt(
    asked: &mut Asked,
    benchmark: WarpBenchmark,
    ours: &mut Vec<(String, Option<String>)>,
    hosts: &dyn Fn(&str) -> Result<Vec<WarpHost>, String>,
) -> Result<(), LineError> {
    let Some(given) = asked.get(FLAG).cloned() else { return Ok(()) };
    let clients = hosts(&given.value).map_err(|why| given.wrong(why))?;
    let mut names = BTreeSet::new();
    if let Some(twice) = clients.iter().find(|client| !names.insert(&client.name)) {
        let why = format!("`{}` appears twice, and agents are told apart by name", twice.name);
        return Err(given.wrong(why));
    }
    let has_ports = clients.iter().any(|client| client.has_port);
    let agents = match has_ports {
        true => clients.iter().map(|client| &*client.name).collect::<Vec<_>>().join(","),
        false => given.value.clone(),
    };
    if agents.parse::<usize>().is_ok() {
        return Err(given.wrong("it is a list of names, not a number of clients"));
    }
    asked.given.retain(|given| given.flag.name != FLAG);
    let count = clients.len();
    let each = multiply(asked, benchmark, count as u64, ours).join(", ");
    asked.note(
        &given.written,
        format!(
            "agents of these names carry the run out; {each} are for each of the {count}, as in \
             warp; each keeps its own record, too"
        ),
    );
    if has_ports {
        let what = "ports are left out: agents connect to the fleet, and nobody to them";
        asked.note(&given.written, what);
    }
    for (name, what) in [
        ("syncstart", "this machine waits for it, and then all agents begin at one instant"),
        ("influxdb", "this machine sends the totals of all agents, not each its own"),
    ] {
        if let Some(given) = asked.get(name) {
            asked.note(given.written.clone(), what);
        }
    }
    ours.extend(FLEET.map(|flag| (flag.to_owned(), None)));
    ours.push((AGENTS.to_owned(), Some(agents)));
    Ok(())
}

/// Multiplies what counts for each of warp's clients, and returns the flags of it.
fn multiply(
    asked: &mut Asked,
    benchmark: WarpBenchmark,
    clients: u64,
    ours: &mut Vec<(String, Option<String>)>,
) -> Vec<String> {
    // Objects that are there are there once.
    let objects = match benchmark {
        WarpBenchmark::Multipart => Some(("parts", PARTS.into())),
        WarpBenchmark::Zip => Some(("files", benchmark.objects())),
        _ if asked.get("list-existing").is_some() || benchmark.objects() == 0 => None,
        _ => Some(("objects", benchmark.objects())),
    };
    let mut all = Vec::new();
    for (name, default) in [("concurrent", u64::from(CONCURRENT))].into_iter().chain(objects) {
        let each = asked.get(name).and_then(|given| given.value.parse().ok());
        let product = each.unwrap_or(default).saturating_mul(clients).to_string();
        match each {
            Some(_) => asked.change(name, product),
            None => ours.push((format!("--{name}"), Some(product))),
        }
        all.push(format!("`--{name}`"));
    }
    let rate = asked.get("rps-limit").and_then(|given| given.value.parse::<Rate>().ok());
    if let Some(Rate(each)) = rate {
        asked.change("rps-limit", Rate(each * clients as f64).to_string());
        all.push("`--rps-limit`".to_owned());
    }
    all
}
