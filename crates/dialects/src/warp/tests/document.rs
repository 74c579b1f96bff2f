//! The document that lists every flag says what the code does.

use super::super::flags::{Deal, FLAGS, Flag, Of};
use super::*;

/// Returns the row that the document should have.
fn row(flag: &Flag) -> String {
    let mut names = format!("`--{}`", flag.name);
    if let Some(short) = flag.short {
        names.push_str(&format!(", `-{short}`"));
    }
    if let Some(variable) = flag.variable {
        names.push_str(&format!(", `{variable}`"));
    }
    let of = match flag.of {
        Of::All => "all".to_owned(),
        Of::Benchmarks => "benchmarks".to_owned(),
        Of::BenchmarksAndMerge => "benchmarks, `merge`".to_owned(),
        Of::BenchmarksAndFiles => "benchmarks, `analyze`, `cmp`, `merge`".to_owned(),
        Of::Run => "`run`".to_owned(),
        Of::Only(some) => {
            some.iter().map(|one| format!("`{}`", one.name())).collect::<Vec<_>>().join(", ")
        }
    };
    let deal = match flag.deal {
        Deal::Take | Deal::Report => "taken",
        Deal::Note => "noted",
        Deal::Refuse => "refused",
    };
    format!("| {names} | {of} | {deal} | {}", flag.what)
}

#[test]
fn the_document_has_every_flag_and_its_deal() {
    let document = include_str!("../../../../../docs/coming-from-warp.md");
    // A row may say more than the note does, of a flag whose values differ.
    let is_there = |row: &String| document.lines().any(|line| line.starts_with(row.as_str()));
    let missing: Vec<String> = FLAGS.iter().map(row).filter(|row| !is_there(row)).collect();
    assert!(missing.is_empty(), "missing:\n{}", missing.join(" |\n"));
}

#[test]
fn the_document_has_every_command() {
    let document = include_str!("../../../../../docs/coming-from-warp.md");
    for benchmark in WarpBenchmark::ALL {
        let heading = format!("### `{}`", benchmark.name());
        assert!(document.lines().any(|line| line == heading), "{heading}");
    }
}
