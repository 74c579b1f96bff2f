//! Real job files with their values worked out by hand; what the other tests share.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::time::Duration;

use super::*;

mod anything;
mod command_lines;
mod files;
mod meanings;
mod refusals;
mod suffixes;

/// Parses with a machine of 8 processors; `files` can be included.
fn parse_with(units: Units, text: &str, files: &[(&str, &str)]) -> Result<JobFile, FioError> {
    with(units, files, |options| parse(text, "job.fio", options))
}

fn with<T>(units: Units, files: &[(&str, &str)], use_it: impl FnOnce(&Options<'_>) -> T) -> T {
    let read = |name: &str| {
        let file = files.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    };
    let variable = |name: &str| match name {
        "DIRECTORY" => Some("/mnt/old".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let host = Host { cpus_count: 8, memory_mib: 16_384, page_size_bytes: 4_096 };
    let options = Options { units, read: &read, variable: &variable, host, sections: Vec::new() };
    use_it(&options)
}

fn strict(text: &str) -> Result<JobFile, FioError> {
    parse_with(Units::Strict, text, &[])
}

/// Returns the one job of `[a]`, `rw=read` and these lines.
fn job(lines: &str) -> Job {
    let text = format!("[a]\nrw=read\n{lines}\n");
    strict(&text).map(|mut file| file.jobs.remove(0)).expect(lines)
}

fn notes(file: &JobFile) -> Vec<String> {
    file.notes.iter().map(ToString::to_string).collect()
}

fn testdata(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fio");
    std::fs::read_to_string(folder.join(name)).expect(name)
}

fn real(name: &str) -> JobFile {
    let text = testdata(name);
    with(Units::Strict, &[], |options| parse(&text, name, options)).expect(name)
}
