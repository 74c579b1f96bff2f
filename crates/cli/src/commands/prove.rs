//! `plimsoll prove`: the program measured by itself.

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::machine;
use plimsoll_conduct::output::{self, Named};
use plimsoll_engine::RunClock;
use plimsoll_http::Transport;
use plimsoll_model::Clock;
use plimsoll_proof::{LOOPBACK_PROOFS, NamedProof, PROOFS, Prover, RIVALS, side_by_side};
use plimsoll_report::proof::{self, Certificate, PROOF_SCHEMA, Proof, Verdict};

use crate::args::{ProveArgs, overwrite};
use crate::ui::Ui;
use crate::{said, shown, signals};

/// Makes the proofs that were asked for.
pub(crate) fn run(args: &ProveArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    let chosen = chosen(args)?;
    let overwrite = overwrite(args.overwrite);
    let kept = args.certificate.as_ref();
    let kept = kept.map(|path| Named { name: "--certificate", path, overwrite });
    kept.as_ref().map_or(Ok(()), Named::check)?;
    // Every proof keeps its records there for as long as it needs them.
    output::temporary_directory()?;
    let is_alone = kept.is_some_and(|file| file.is_stdout());
    let transport = Transport::from(args.transport);
    transport.direct(false, over_sockets(args))?;
    let prover = Prover {
        seed: args.seed,
        full: args.full,
        seeds: args.seeds.map(|seeds| seeds.get().into()),
        transport,
        rival: args.against.clone(),
        explained: RefCell::default(),
        stop: signals::listen()?,
        observer: Arc::new(ui.silent()),
        command_line: said::command_line(),
    };
    // Over sockets times are judged, which another measurement at the same time would change.
    let at_once = if over_sockets(args) { 1 } else { machine::cores() };
    if !args.print.json {
        let more = "`verbose` shows claims and figures, `full` measures more";
        ui.note(&format!("making {} proofs; {more}", chosen.len()));
    }
    let color = ui.color && !is_alone;
    let show = |text: &str| show(&ui, text, is_alone);
    let mut proofs: Vec<Proof> = Vec::new();
    let items = chosen.into_iter().map(|named| (named, prover.clone())).collect();
    side_by_side(items, at_once, timed, |(named, proof, took, explained)| -> Result<()> {
        if prover.stop.flag().is_set() {
            bail!("stopped; nothing was proved");
        }
        match (args.print.json, args.verbose) {
            (true, _) => {}
            (false, true) => show(&(proof::text(&proof, color) + "\n"))?,
            (false, false) => show(&proof::line(&proof, named.about, took, color))?,
        }
        if args.explain {
            show(&in_full(named.name, &explained))?;
        }
        proofs.push(proof);
        Ok(())
    })?;
    let certificate = Certificate {
        schema: PROOF_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: RunClock::start().wall_epoch().to_string(),
        machine: machine::in_words(),
        seed: args.seed,
        place: if over_sockets(args) { "loopback" } else { "virtual" }.to_owned(),
        proofs,
    };
    let document = serde_json::to_string_pretty(&certificate)? + "\n";
    kept.map_or(Ok(()), |file| file.write(document.as_bytes()))?;
    match args.print.json {
        // The document is there already.
        true if is_alone => {}
        true => ui.result(&document)?,
        false => show(&proof::summary(&certificate))?,
    }
    Ok(shown::exit_code(certificate.count(Verdict::Fail) == 0))
}

/// Prints a text; beside a certificate on stdout it goes to stderr.
fn show(ui: &Ui, text: &str, is_alone: bool) -> Result<()> {
    if is_alone {
        ui.note(text.trim_end());
        return Ok(());
    }
    ui.text(text)
}

/// What a proof came to, how long it took, and what it measured.
type Timed = (&'static NamedProof, Proof, Duration, Vec<(String, String)>);

/// Makes one proof.
fn timed((named, prover): (&'static NamedProof, Prover)) -> Timed {
    let clock = RunClock::start();
    let began = clock.now();
    let proof = named.prove(&prover);
    (named, proof, clock.now().since(began), prover.explained.take())
}

/// Tells whether the scripted stores are servers, rather than in virtual time.
fn over_sockets(args: &ProveArgs) -> bool {
    args.loopback || args.against.is_some()
}

fn chosen(args: &ProveArgs) -> Result<Vec<&'static NamedProof>> {
    let usual: &[NamedProof] = if over_sockets(args) { &LOOPBACK_PROOFS } else { &PROOFS };
    if args.against.is_some() && !args.names.iter().any(|name| name == RIVALS.name) {
        bail!("--against is for the proof `{}`, which is made only by name", RIVALS.name);
    }
    if args.names.is_empty() {
        return Ok(usual.iter().collect());
    }
    let names = || usual.iter().map(|proof| proof.name).collect::<Vec<_>>().join(", ");
    let named = |name: &String| {
        if name == RIVALS.name {
            let needed = args.against.as_ref().map(|_| &RIVALS);
            return needed.with_context(|| format!("{name}: name the other program (--against)"));
        }
        let found = usual.iter().find(|proof| proof.name == name);
        let place = if over_sockets(args) { " over loopback" } else { "" };
        found.with_context(|| format!("no proof is called `{name}`{place}; there are {}", names()))
    };
    args.names.iter().map(named).collect()
}

/// Returns what a proof measured, so that anybody can repeat it.
fn in_full(name: &str, measured: &[(String, String)]) -> String {
    let mut text = String::new();
    for (number, (workload, script)) in (1..).zip(measured) {
        text += &format!(
            "# {name}, measurement {number}: the workload\n{workload}\n\
             # {name}, measurement {number}: the script\n{script}\n"
        );
    }
    text
}
