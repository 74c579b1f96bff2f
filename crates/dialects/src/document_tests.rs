//! The documents that list other tools' flags say what the tables do.

use std::collections::BTreeSet;

use crate::command_line::{Deal, Flag, Kind};
use crate::{fio, mdtest, s3_benchmark, warp, weed_benchmark};

const S3_BENCHMARK: &str = include_str!("../../../docs/coming-from-s3-benchmark.md");
const WEED_BENCHMARK: &str = include_str!("../../../docs/coming-from-weed-benchmark.md");
const MDTEST: &str = include_str!("../../../docs/coming-from-mdtest.md");
const FIO: &str = include_str!("../../../docs/coming-from-fio.md");
const WARP: &str = include_str!("../../../docs/coming-from-warp.md");

/// What a row of a document's tables must have.
struct Row {
    /// Flags as they are written, all of them in the first cell.
    flags: Vec<String>,
    /// What the cells behind it begin with.
    cells: Vec<String>,
}

impl Row {
    /// Tells whether a line is this row; `end` stands behind the flags in it.
    fn is(&self, line: &str, end: char) -> bool {
        let cells: Vec<&str> = line.split(" | ").collect();
        let Some((first, others)) = cells.split_first() else { return false };
        let first: Vec<&str> = first.trim_start_matches("| ").split(", ").collect();
        let has = |flag: &String| {
            first.iter().any(|cell| {
                let cell = cell.trim_start_matches("older ").trim_start_matches('`');
                cell.strip_prefix(&**flag).is_some_and(|rest| rest.starts_with(end))
            })
        };
        line.starts_with("| ")
            && self.flags.iter().all(has)
            && self.cells.len() <= others.len()
            && self.cells.iter().zip(others).all(|(cell, other)| {
                other.trim_start_matches('`').starts_with(cell.trim_start_matches('`'))
            })
    }
}

/// Returns a row for each name of a flag: what becomes of it, and in which words.
fn rows_of_deals<X>(flag: &Flag<X>, spelled: &dyn Fn(&str) -> String) -> Vec<Row> {
    let cells = match flag.deal {
        Deal::Take => vec!["taken".to_owned()],
        Deal::Note => vec!["noted".to_owned(), flag.says.to_owned()],
        Deal::Refuse => vec!["refused".to_owned(), flag.says.to_owned()],
    };
    flag.names().map(|name| Row { flags: vec![spelled(name)], cells: cells.clone() }).collect()
}

/// Returns the row of a flag of Go's, with its default.
fn row_of_default<X>(flag: &Flag<X>) -> Row {
    let is_shown = flag.kind != Kind::Switch && !flag.default.is_empty();
    let cells = is_shown.then(|| flag.default.to_owned()).into_iter().collect();
    Row { flags: vec![format!("-{}", flag.name)], cells }
}

/// Returns the row of a flag of warp's: names and variable, commands, what becomes of it.
fn row_of_warp(flag: &warp::flags::Row) -> Row {
    use warp::flags::Of;
    let others = flag.others.iter().map(|name| format!("-{name}"));
    let names = [format!("--{}", flag.name)].into_iter().chain(others);
    let of = match flag.to.of {
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
        Deal::Take => "taken",
        Deal::Note => "noted",
        Deal::Refuse => "refused",
    };
    Row {
        flags: names.chain(flag.to.variable.map(str::to_owned)).collect(),
        cells: vec![of, deal.to_owned(), flag.says.to_owned()],
    }
}

#[test]
fn every_flag_is_in_the_document_of_its_tool() {
    let dashed =
        |name: &str| if name.len() == 1 { format!("-{name}") } else { format!("--{name}") };
    let of_launchers = mdtest::flags::OF_LAUNCHERS.iter().filter(|flag| flag.deal == Deal::Note);
    let of_mdtest = mdtest::flags::FLAGS.iter().chain(of_launchers);
    let of_mdtest = of_mdtest.flat_map(|flag| rows_of_deals(flag, &dashed));
    let of_job = fio::options::all().flat_map(|flag| rows_of_deals(flag, &str::to_owned));
    let of_fio = fio::arguments::OF_TOOL.iter().flat_map(|flag| rows_of_deals(flag, &dashed));
    for (document, rows) in [
        (S3_BENCHMARK, s3_benchmark::FLAGS.iter().map(row_of_default).collect::<Vec<_>>()),
        (WEED_BENCHMARK, weed_benchmark::flags::FLAGS.iter().map(row_of_default).collect()),
        (MDTEST, of_mdtest.collect()),
        (FIO, of_job.chain(of_fio).collect()),
        (WARP, warp::flags::FLAGS.iter().map(row_of_warp).collect()),
    ] {
        let title = document.lines().next().unwrap_or_default();
        let count = |row: &Row, end| document.lines().filter(|line| row.is(line, end)).count();
        // Some stand there only with a value: `--client=HOST`.
        let is_once = |row: &Row| match count(row, '`') {
            0 => count(row, '=') == 1,
            count => count == 1,
        };
        let wrong = rows.iter().filter(|row| !is_once(row));
        let wrong: Vec<String> = wrong
            .map(|row| format!("{}: {}", row.flags.join(", "), row.cells.join(" | ")))
            .collect();
        assert!(wrong.is_empty(), "{title}: not there once:\n{}", wrong.join("\n"));
    }
}

#[test]
fn each_name_is_that_of_one_flag() {
    fn names<X>(flags: &'static [Flag<X>]) -> Vec<&'static str> {
        flags.iter().flat_map(Flag::names).collect()
    }
    let of_fio = fio::options::all().flat_map(Flag::names);
    for names in [
        names(&s3_benchmark::FLAGS),
        names(&weed_benchmark::flags::FLAGS),
        names(mdtest::flags::FLAGS),
        of_fio.chain(names(fio::arguments::OF_TOOL)).collect(),
        names(warp::flags::FLAGS),
    ] {
        let once: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), once.len(), "{names:?}");
    }
}
