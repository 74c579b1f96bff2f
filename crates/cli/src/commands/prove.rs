//! `plimsoll prove`: the program measured by itself.
#![expect(clippy::disallowed_methods, reason = "cli writes the files it is asked for")]

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_engine::RunClock;
use plimsoll_report::proof::{self, Certificate, PROOF_SCHEMA, Proof, Verdict};

use crate::args::ProveArgs;
use crate::machine;
use crate::present;
use crate::prove::{Bench, NamedProof, PROOFS};
use crate::signals::Interrupts;
use crate::ui::Ui;

/// Makes the proofs that were asked for.
pub(crate) fn run(args: &ProveArgs) -> Result<ExitCode> {
    let ui = Ui::new(&args.print);
    let chosen = chosen(args)?;
    let bench = Bench { seed: args.seed, interrupts: Interrupts::listen()?, ui: ui.silent() };
    let mut proofs: Vec<Proof> = Vec::new();
    for named in chosen {
        if !args.print.json {
            ui.note(&format!("proving {} ...", named.name));
        }
        let proof = named.prove(&bench);
        if bench.interrupts.stop_flag().is_set() {
            bail!("stopped; nothing was proved");
        }
        if !args.print.json {
            ui.result(&(proof::text(&proof, ui.color) + "\n"))?;
        }
        proofs.push(proof);
    }
    let certificate = Certificate {
        schema: PROOF_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: RunClock::start().wall_epoch().to_string(),
        machine: machine::in_words(),
        seed: args.seed,
        place: "virtual".to_owned(),
        proofs,
    };
    let document = serde_json::to_string_pretty(&certificate)? + "\n";
    if let Some(path) = &args.certificate {
        fs::write(path, &document)
            .with_context(|| format!("--certificate: cannot write {}", path.display()))?;
    }
    ui.result(&if args.print.json { document } else { proof::summary(&certificate) })?;
    Ok(present::exit_code(certificate.count(Verdict::Fail) == 0))
}

fn chosen(args: &ProveArgs) -> Result<Vec<&'static NamedProof>> {
    let names = || PROOFS.iter().map(|proof| proof.name).collect::<Vec<_>>().join(", ");
    if args.all || args.names.is_empty() {
        return Ok(PROOFS.iter().collect());
    }
    let named = |name: &String| {
        let found = PROOFS.iter().find(|proof| proof.name == name);
        found.with_context(|| format!("no proof is called `{name}`; there are {}", names()))
    };
    args.names.iter().map(named).collect()
}
