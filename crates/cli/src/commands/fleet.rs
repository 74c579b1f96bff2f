//! `plimsoll fleet`: makes many machines one benchmark.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::machine;
use plimsoll_fleet::broker::{
    Broker, BrokerError, BrokerSettings, RevokedAgent, Tended, TokenRules, ask_revoke, ask_token,
    find_server,
};
use plimsoll_fleet::roll::Recruit;
use plimsoll_record::{RunDirectory, StateDirectoryError, is_alive};
use plimsoll_report::format;
use serde_json::{Value, json};

use crate::args::Form;
use crate::args::fleet::{
    AgentsArgs, CollectArgs, FleetCommand, OwnFleetArgs, ReachArgs, RevokeArgs, TokenArgs, UpArgs,
};
use crate::commands::agent::JOIN;
use crate::fleet::Reachable;
use crate::ui::Ui;
use crate::{environment, fleet, shown, signals};

/// Runs one `fleet` command.
pub(crate) fn run(command: &FleetCommand) -> Result<ExitCode> {
    match command {
        FleetCommand::Up(args) => up(args),
        FleetCommand::Agents(args) => agents(args),
        FleetCommand::Collect(args) => collect(args),
        FleetCommand::Token(args) => token(args),
        FleetCommand::Revoke(args) => revoke(args),
    }
}

/// Starts a fleet, and keeps it up until Ctrl-C.
// Long: its steps in their order, from the search for the server to its end.
fn up(args: &UpArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    let (beside, path) = environment::program_folders();
    let found = find_server(args.nats_server.as_deref(), beside.as_deref(), &path)?;
    found.remark.iter().for_each(|remark| ui.warn(remark));
    let addresses: Vec<String> = match &args.advertise {
        Some(hosts) => hosts.split(',').map(|host| host.trim().to_owned()).collect(),
        None if args.listen.ip().is_unspecified() => {
            let name = machine::describe().hostname;
            vec![name.unwrap_or_else(|| "localhost".to_owned())]
        }
        None => vec![args.listen.ip().to_string()],
    };
    if addresses.iter().any(String::is_empty) {
        bail!("--advertise: an address is empty");
    }
    let stop = signals::listen()?;
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => fleet::state_directory("fleet")?,
    };
    // The server is a child, and the files that it keeps there are private too.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let broker = Broker::start(BrokerSettings {
        program: found.program,
        listen: (args.listen.ip().to_string(), args.listen.port()),
        addresses: addresses.clone(),
        directory,
        agents_max: args.agents_max,
    });
    let mut broker = broker.map_err(|error| match error {
        BrokerError::Files { .. } | BrokerError::Directory(StateDirectoryError::Io { .. }) => {
            let why = "the fleet's files cannot be kept there; name another --directory";
            anyhow!(error).context(why)
        }
        error => error.into(),
    })?;
    let lasts = args.token_expires.map(|duration| duration.0);
    let token = broker.token(TokenRules { uses: args.token_uses, lasts })?;
    ui.note(&format!(
        "a fleet is up on {}:{} (nats-server {}); on each machine that takes part, run",
        addresses.join(", "),
        broker.port(),
        found.version
    ));
    ui.result(&joining_line(&token.to_text()))?;
    ui.note("then, here, any benchmark with --fleet; Ctrl-C ends the fleet");
    let mut trouble: Option<String> = None;
    signals::rest(&stop, || {
        match broker.tend() {
            Ok(None) => {}
            Ok(Some(tended)) => {
                trouble = None;
                say_tended(tended, ui);
            }
            // It is tried until it is done, and said once.
            Err(error) => {
                let said = format!("{:#}", anyhow!(error));
                if trouble.as_ref() != Some(&said) {
                    ui.warn(&format!("{said}; the fleet stays up and tries again"));
                    trouble = Some(said);
                }
            }
        }
        for (id, name) in broker.joined() {
            ui.note(&format!("{name} has joined ({id})"));
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn say_tended(tended: Tended, ui: Ui) {
    match tended {
        Tended::Restarted => ui.warn("the NATS server stopped by itself and was restarted"),
        Tended::Full => ui.warn(
            "the disk of the fleet's directory is full: agents can hand nothing in until there is \
             room",
        ),
        Tended::Resumed => ui.note("there is room again: the NATS server was restarted"),
        Tended::Recovered => ui.note("the fleet is as it should be again"),
    }
}

/// Returns the line by which agents join. The token is in the environment, which only the agent's
/// user can read; everybody on a machine sees its command lines.
fn joining_line(token: &str) -> String {
    format!("{JOIN}={token} plimsoll agent\n")
}

/// Prints another line by which agents join.
fn token(args: &TokenArgs) -> Result<ExitCode> {
    let fleet = own(&args.fleet)?;
    let lasts = args.expires.map(|duration| duration.0);
    let token = ask_token(&fleet.nats, TokenRules { uses: args.uses, lasts })?;
    Ui::plain().result(&joining_line(&token))?;
    Ok(ExitCode::SUCCESS)
}

/// Takes back leave to take part.
fn revoke(args: &RevokeArgs) -> Result<ExitCode> {
    if args.whom.is_empty() && args.token.is_empty() {
        bail!("name agents, or tokens with --token");
    }
    let ui = Ui::plain();
    let fleet = own(&args.fleet)?;
    let present = if args.whom.is_empty() { Vec::new() } else { fleet.all()?.present };
    // What they are called where they are shown; one that is not there is known by its own name.
    let id = |whom: &String| {
        let is_id = present.iter().any(|each| each.id.as_str() == whom);
        let named = present.iter().find(|each| !is_id && each.name == *whom);
        named.map_or_else(|| whom.clone(), |each| each.id.as_str().to_owned())
    };
    let whom = args.whom.iter().map(id).collect();
    let revoked = ask_revoke(&fleet.nats, whom, args.token.clone())?;
    for RevokedAgent { id, name, token } in &revoked.agents {
        ui.note(&format!("{name} ({id}) is cut off"));
        if let Some(token) = token {
            ui.note(&format!(
                "the line by which it had joined still lets it join: \
                 `plimsoll fleet revoke --token {token}` ends that"
            ));
        }
    }
    for number in &revoked.tokens {
        ui.note(&format!("token {number} lets no agent join any more"));
    }
    revoked.unknown.iter().for_each(|unknown| ui.warn(&format!("the fleet knows no {unknown}")));
    Ok(shown::exit_code(revoked.unknown.is_empty()))
}

/// Reaches a fleet that `plimsoll fleet up` has made.
fn own(args: &OwnFleetArgs) -> Result<Reachable> {
    fleet::reach(&ReachArgs { fleet: args.fleet.clone(), ..ReachArgs::default() })
}

/// Shows who is there.
fn agents(args: &AgentsArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    let roll = fleet::reach(&args.fleet)?.all()?;
    roll.strangers.iter().for_each(|stranger| ui.warn(stranger));
    let text = match args.print.form() {
        Form::Json => format!("{:#}\n", json!(roll.present.iter().map(doc).collect::<Vec<_>>())),
        Form::Text if roll.present.is_empty() => {
            ui.note("no agent has joined");
            return Ok(ExitCode::SUCCESS);
        }
        Form::Text => table(&roll.present),
    };
    ui.result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds to the record of a run what agents have kept of it.
fn collect(args: &CollectArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    let path = args.run.display();
    let directory = RunDirectory::open(&args.run)?;
    if is_alive(&args.run)? {
        bail!("{path}: the run is still going on");
    }
    let manifest = directory.read_manifest()?;
    if manifest.agents.is_empty() {
        bail!("{path}: no fleet has carried that run out");
    }
    let missing = manifest.agents.iter().filter(|agent| agent.rows_count.is_none());
    let missing: Vec<String> = missing.map(|agent| agent.name.clone()).collect();
    let fleet = fleet::reach(&args.fleet)?;
    let roll = fleet.keepers(&missing, &manifest.run_id)?;
    let collected = fleet.collect(&roll.present, &directory, args.parts_stay, ui)?;
    for (name, rows) in &collected.agents {
        ui.note(&format!("{name}: {}", format::plural(*rows, "operation")));
    }
    for (name, why) in &collected.missing {
        ui.warn(&format!("{name}: {why}"));
    }
    if collected.agents.is_empty() && collected.missing.is_empty() {
        ui.note("nothing of that run is missing");
    }
    Ok(shown::exit_code(collected.missing.is_empty()))
}

fn doc(recruit: &Recruit) -> Value {
    let about = &recruit.about;
    json!({
        "id": recruit.id.as_str(),
        "name": recruit.name,
        "version": about.version,
        "weight": about.weight,
        "busy": about.busy,
        "kept": about.kept,
    })
}

fn table(present: &[Recruit]) -> String {
    let row = |recruit: &Recruit| {
        let about = &recruit.about;
        let state = match &about.busy {
            Some(run) => format!("part of {run}"),
            None => "free".to_owned(),
        };
        let kept = match about.kept.len() {
            0 => String::new(),
            _ => format!(", keeps its part of {}", about.kept.join(", ")),
        };
        [
            recruit.name.clone(),
            recruit.id.as_str().to_owned(),
            about.weight.to_string(),
            state + &kept,
        ]
    };
    let head = ["agent", "id", "weight", "state"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(present.iter().map(row)).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |[name, id, weight, state]: &[String; 4]| {
        let [a, b, c] = widths;
        format!("{name:a$}  {id:b$}  {weight:>c$}  {state}\n")
    };
    rows.iter().map(line).collect()
}
