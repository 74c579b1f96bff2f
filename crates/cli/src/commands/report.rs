//! `plimsoll report`: a run as one HTML file.

use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::output::Named;
use plimsoll_model::Bytes;
use plimsoll_record::schema::Manifest;
use plimsoll_report::html::{self, Environment};
use plimsoll_results::{Asked, Record};

use crate::args::{ReportArgs, overwrite};
use crate::shown;
use crate::ui::Ui;

/// Writes the report of what was measured.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let record = Record::open(&args.run)?;
    let asked = Asked { details: true, ..args.analysis.asked()? };
    let report = shown::report(&record, &asked);
    let report = report.map_err(|error| shown::in_flags(error, &args.analysis))?;
    write(args, &html::render(&report, &record.manifest().map(environment).unwrap_or_default()))
}

fn write(args: &ReportArgs, page: &str) -> Result<ExitCode> {
    Named { name: "-o", path: &args.output, overwrite: overwrite(args.overwrite) }
        .write(page.as_bytes())?;
    let size = plimsoll_report::format::bytes(page.len() as u64);
    Ui::plain().note(&format!("written to {}, {size}", args.output.display()));
    Ok(ExitCode::SUCCESS)
}

fn environment(manifest: &Manifest) -> Environment {
    let machine = &manifest.machine;
    let facts = [
        ("machine", machine.hostname.clone()),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.cpu_model.clone()),
        ("cores", machine.cores_count.map(|cores| cores.to_string())),
        ("memory", machine.memory_bytes.map(|bytes| Bytes(bytes).to_string())),
        ("clock", Some(manifest.clock.source.clone())),
        ("tool", Some(format!("{} {}", manifest.tool.name, manifest.tool.version))),
        ("commit", manifest.tool.commit.clone()),
        ("bucket", manifest.target.bucket.clone()),
        ("addressing", manifest.target.lookup.clone()),
        ("TLS", manifest.target.tls.map(|tls| if tls { "yes" } else { "no" }.to_owned())),
        ("payload of uploads", manifest.target.payload_signing.clone()),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Environment { facts: known.collect() }
}
