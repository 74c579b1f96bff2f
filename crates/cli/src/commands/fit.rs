//! `plimsoll fit`: a workload that is like a trace, with how far it is from it.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::output::Named;
use plimsoll_conduct::{RunTime, Traces};
use plimsoll_dialects::fit::Fitted;
use serde_json::json;

use crate::args::replay::FitArgs;
use crate::args::{Form, overwrite};
use crate::conducted::fresh_seed;

/// Makes a workload of a trace.
pub(crate) fn run(args: &FitArgs) -> Result<ExitCode> {
    let ui = args.print.ui();
    let of = args.trace.of();
    let trace = Traces::default().read(&of)?;
    let seed = fresh_seed(RunTime::machine().wall_epoch);
    let fitted = Fitted::of(&trace, seed).with_context(|| format!("cannot fit {}", of.file))?;
    let yaml = fitted.file.to_yaml();
    let overwrite = overwrite(args.overwrite);
    let named = args.output.as_ref().map(|path| Named { name: "-o", path, overwrite });
    // Without a file the workload goes to the standard output anyway.
    let named = named.filter(|named| args.print.json || !named.is_stdout());
    if named.is_some_and(|named| named.is_stdout()) {
        bail!("-o - and --json both write to the standard output: give -o a file");
    }
    named.map_or(Ok(()), |named| named.write(yaml.as_bytes()))?;
    for note in trace.facts.notes().iter().chain(&fitted.notes) {
        ui.note(&format!("{}: {note}", of.file));
    }
    match (args.print.form(), named) {
        (Form::Json, _) => ui.result(&format!("{:#}\n", document(&fitted)?))?,
        (Form::Text, Some(_)) => ui.result(&fitted.summary())?,
        (Form::Text, None) => {
            ui.note(fitted.summary().trim_end());
            ui.result(&yaml)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what was found as one object.
fn document(fitted: &Fitted) -> Result<serde_json::Value> {
    let Fitted { file, mix, sizes, popularity, arrivals, notes } = fitted;
    Ok(json!({
        "ops_count": mix.all(),
        "reads_percent": mix.reads_percent(),
        "sizes": {
            "law": sizes.law,
            "objects_count": sizes.count,
            "median_bytes": sizes.median,
            "ks_distance": sizes.distance,
        },
        "popularity": popularity.map(|fit| json!({
            "zipf_exponent": fit.exponent,
            "std_error": fit.std_error,
        })),
        "arrivals": arrivals.as_ref().map(|fit| json!({
            "law": fit.law.name(),
            "ops_per_sec": fit.ops_per_sec,
            "gap_variation": fit.variation,
            "ks_distance": fit.distance,
        })),
        "notes": notes,
        "workload": serde_json::to_value(file)?,
    }))
}
