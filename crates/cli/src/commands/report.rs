//! `plimsoll report`: a run as one HTML file.

use std::process::ExitCode;

use anyhow::{Result, bail};
use plimsoll_model::Bytes;
use plimsoll_record::schema::Manifest;
use plimsoll_report::html::{self, Environment};

use crate::args::{AnalysisArgs, ReportArgs};
use crate::examine;
use crate::new_file::Named;
use crate::present_files;
use crate::recorded::{self, Origin};
use crate::ui::Ui;

/// Writes the report of what was measured.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let record = recorded::open_record(&args.run)?;
    if let (Some(report), Origin::Run { manifest, .. }) =
        (present_files::of_record(&record, &args.analysis)?, &record.origin)
    {
        return write(args, &html::phases::render(&report, &environment(manifest)));
    }
    let asked = AnalysisArgs { details: true, ..args.analysis.clone() };
    // Of a foreign file the last stage is what was measured.
    let Some(report) = examine::reports(&record, &asked)?.pop() else {
        bail!("{}: nothing was measured", args.run.display());
    };
    let environment = match &record.origin {
        Origin::Run { manifest, .. } => environment(manifest),
        Origin::Warp { .. } => Environment::default(),
    };
    write(args, &html::render(&report, &environment))
}

fn write(args: &ReportArgs, page: &str) -> Result<ExitCode> {
    Named { flag: "-o", path: &args.output, overwrite: args.overwrite }.write(page.as_bytes())?;
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
