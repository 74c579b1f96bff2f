//! `plimsoll fit`: a workload that is like a trace, with how far it is from it.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::output::Named;
use plimsoll_conduct::{RunTime, Traces};
use plimsoll_dialects::fit::{ArrivalFit, ArrivalsSeen, DISTANCE_MAX, Fitted, popularity_limit};
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
            "ks_limit": DISTANCE_MAX,
        },
        "popularity": popularity.map(|fit| json!({
            "zipf_exponent": fit.exponent,
            "interval_low": fit.interval.low,
            "interval_high": fit.interval.high,
            "objects_count": fit.population,
            "ks_distance": fit.distance,
            "ks_limit": popularity_limit(&fit),
        })),
        "arrivals": arrivals.as_ref().map(document_of_arrivals),
        "notes": notes,
        "workload": serde_json::to_value(file)?,
    }))
}

fn document_of_arrivals(fit: &ArrivalFit) -> serde_json::Value {
    let mut document = json!({
        "law": fit.law.name(),
        "is_assumed": fit.is_assumed,
        "ops_per_sec": fit.ops_per_sec,
    });
    let seen = match fit.seen {
        ArrivalsSeen::Gaps { variation, distance } => json!({
            "gap_variation": variation,
            "ks_distance": distance.map(|(distance, _)| distance),
            "ks_limit": distance.map(|(_, limit)| limit),
        }),
        ArrivalsSeen::Counts { tick, window, dispersion } => json!({
            "resolution_ns": tick.as_nanos() as u64,
            "window_ns": window.as_nanos() as u64,
            "count_dispersion": dispersion,
        }),
    };
    if let (Some(all), serde_json::Value::Object(seen)) = (document.as_object_mut(), seen) {
        all.extend(seen);
    }
    document
}
