//! Traces that a workload replays: read from their files, or from the record of a run.

mod of_run;

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_foreign::trace::{Entry, Format, Found, Scanned, TraceError, scan};
use plimsoll_workload::plan::Plan;
use plimsoll_workload::plan::spec::TraceOf;
use plimsoll_workload::trace::{Seen, Trace, TraceBuilder, TraceOptions};

use rustix::fs::FileType;

use crate::error::refused;
use crate::{ConductError, input};

/// The form of a record of a run of plimsoll.
const OF_RUN: &str = "plimsoll";
/// So many lines are read of a trace that somebody else's workload names: a compressed one of
/// 100 KB may hold many more, and what they say is held in memory.
const FOREIGN_LINES_MAX: u64 = if cfg!(test) { 1_000 } else { 5_000_000 };
/// One line of so many may be unreadable; with more of them a trace is taken for something else.
const UNREADABLE_ONE_OF: u64 = 10;

/// Traces that were read, each once.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    read: Vec<(TraceOf, Arc<Trace>)>,
    allowed: AllowedDirs,
}

impl Traces {
    /// Returns those that lie in directories that are allowed; none was read yet.
    pub const fn within(allowed: AllowedDirs) -> Self {
        Self { read: Vec::new(), allowed }
    }

    /// Returns a trace, and reads it unless it was read before.
    pub fn read(&mut self, of: &TraceOf) -> Result<Arc<Trace>, ConductError> {
        if let Some((_, known)) = self.read.iter().find(|(known, _)| known == of) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(read(of, &self.allowed)?);
        self.read.push((of.clone(), Arc::clone(&read)));
        Ok(read)
    }

    /// Reads the traces that a plan names, has it learn from them, and returns what is to be said
    /// of them.
    pub fn learn(&mut self, plan: &mut Plan) -> Result<Vec<String>, ConductError> {
        let named: Vec<_> = plan.traced().map(|(set, traced)| (set, traced.of.clone())).collect();
        let mut notes = Vec::new();
        for (set, of) in named {
            let trace = self.read(&of)?;
            plan.learn_trace(set, &trace)?;
            notes
                .extend(trace.facts.notes().into_iter().map(|note| format!("{}: {note}", of.file)));
        }
        Ok(notes)
    }
}

fn read(of: &TraceOf, allowed: &AllowedDirs) -> Result<Trace, ConductError> {
    let path = Path::new(&of.file);
    let mut builder = TraceBuilder::default();
    let kind = input::look_at(allowed, path).map(|(_, kind)| kind);
    let is_directory = matches!(kind, Ok(FileType::Directory));
    if is_directory && allowed.is_foreign() {
        return refused(format!("{} is a directory; here only files are replayed", of.file));
    }
    match (is_directory, of.format.as_deref()) {
        (true, None | Some(OF_RUN)) => {
            // Held, so that no link can take its place.
            let held = input::open_directory(allowed, path);
            let held =
                held.map_err(|source| ConductError::Content { path: path.into(), source })?;
            let opened = format!("/proc/self/fd/{}", held.as_raw_fd());
            of_run::read(if allowed.is_any() { path } else { Path::new(&opened) }, &mut builder)?;
        }
        (true, Some(_)) => {
            return refused(format!("{} is a directory, which no trace of that form is", of.file));
        }
        (false, Some(OF_RUN)) => {
            return refused(format!("{} is not a directory of a run", of.file));
        }
        (false, format) => {
            of_file(path, format.and_then(Format::from_name), allowed, &mut builder)?
        }
    }
    let options = TraceOptions {
        until: of.until.map(|until| until.0),
        size_unknown: of.unknown_size.map(|size| size.0),
    };
    builder.finish(options).or_else(|reason| refused(format!("{}: {reason}", of.file)))
}

fn of_file(
    path: &Path,
    format: Option<Format>,
    allowed: &AllowedDirs,
    builder: &mut TraceBuilder,
) -> Result<(), ConductError> {
    let content = |source| ConductError::Content { path: path.to_path_buf(), source };
    let file: Box<dyn Read> = input::open_named(allowed, path).map_err(content)?;
    let mut lines = 0u64;
    let scanned = scan(file, format, &mut |line, found| {
        lines += 1;
        if lines > FOREIGN_LINES_MAX && allowed.is_foreign() {
            return Err(format!("at most {FOREIGN_LINES_MAX} lines of a trace are read here"));
        }
        take(builder, line, found);
        Ok(())
    });
    let shown = path.display();
    let Scanned { format, tick } = match scanned {
        Ok(scanned) => scanned,
        Err(TraceError::Read(source)) => {
            let what = format!("cannot read {shown}");
            return Err(ConductError::Of { what, source: source.into() });
        }
        Err(error) => return refused(format!("{shown}: {error}")),
    };
    builder.tick = tick;
    let facts = &mut builder.facts;
    facts.format = format.name().to_owned();
    facts.of_format = format.never_told().iter().map(|told| (*told).to_owned()).collect();
    let facts = &builder.facts;
    let is_too_much = facts.unreadable_count.saturating_mul(UNREADABLE_ONE_OF) > lines;
    match &facts.unreadable_first {
        Some((line, reason)) if is_too_much || builder.ops_count() == 0 => refused(format!(
            "{shown}, line {line}: {reason} ({} of {lines} lines of this {} cannot be read)",
            facts.unreadable_count,
            format.name(),
        )),
        _ => Ok(()),
    }
}

/// Takes what a line says.
fn take(builder: &mut TraceBuilder, line: u64, found: Result<Found<'_>, String>) {
    match found {
        Ok(Found::Entry(entry)) => {
            let Entry { at_ns, kind, name, bytes, object_bytes, range } = entry;
            let seen = Seen { at_ns, kind, name: &name, bytes, object_bytes, range };
            if let Err(reason) = builder.add(&seen) {
                builder.facts.note_unreadable(line, reason);
            }
        }
        Ok(Found::Failed) => builder.facts.failed_count += 1,
        Ok(Found::Unsupported(name)) => builder.facts.note_unsupported(&name),
        Ok(Found::Nothing) => {}
        Err(reason) => builder.facts.note_unreadable(line, reason),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are read")]
mod tests;
