//! The documents in `docs/formats` describe what is written.
//!
//! `PLIMSOLL_BLESS=1 cargo test -p plimsoll-record formats` writes the generated ones anew.
#![expect(clippy::disallowed_methods, reason = "a test compares files of the repository")]

use std::fs::{self, File};

use parquet::file::reader::{FileReader, SerializedFileReader};
use plimsoll_record::schema::{Checked, Summary};
use plimsoll_record::{Manifest, ScrapedLine};
use plimsoll_testkit::{check_format, property_names};
use schemars::schema_for;

use crate::{MARK, new_run, op, writer};

fn page(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/");
    fs::read_to_string(format!("{folder}{name}")).unwrap()
}

fn pretty(schema: &schemars::Schema) -> String {
    format!("{}\n", serde_json::to_string_pretty(schema).unwrap())
}

/// Returns the columns and the metadata keys of a part, as the file itself states them.
fn ops_schema() -> String {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.append(&[op(1)]).unwrap();
    writer.finish().unwrap();
    let part = File::open(directory.ops_path().join("part-000000.parquet")).unwrap();
    let reader = SerializedFileReader::new(part).unwrap();
    let metadata = reader.metadata().file_metadata();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, metadata.schema());
    let mut text = String::from_utf8(text).unwrap();
    for pair in metadata.key_value_metadata().unwrap() {
        // The values of the run at hand are examples; the version is not.
        let value = pair.value.as_deref().unwrap_or("null");
        let digits = value.strip_prefix(MARK).map(|digits| "0".repeat(digits.len()));
        let value = digits.map_or(value.to_owned(), |zeros| format!("{MARK}{zeros}"));
        text += &format!("{} = {value}\n", pair.key);
    }
    text
}

#[test]
fn run_schema_json_is_current() {
    check_format("run.schema.json", &pretty(&schema_for!(Checked<Manifest>)));
}

#[test]
fn summary_schema_json_is_current() {
    check_format("summary.schema.json", &pretty(&schema_for!(Checked<Summary>)));
}

#[test]
fn scraped_schema_json_is_current() {
    check_format("scraped.schema.json", &pretty(&schema_for!(ScrapedLine)));
    let described = page("scraped.md");
    for name in property_names(schema_for!(ScrapedLine).as_value()) {
        let name = format!("`{name}`");
        assert!(described.contains(&name), "docs/formats/scraped.md does not describe {name}");
    }
}

#[test]
fn ops_schema_txt_is_current() {
    check_format("ops.schema.txt", &ops_schema());
}

#[test]
fn every_field_is_described() {
    let mut names = property_names(schema_for!(Checked<Manifest>).as_value());
    names.append(&mut property_names(schema_for!(Checked<Summary>).as_value()));
    assert!(names.contains("started_unix_ns") && names.contains("objects_micro"));
    let run = page("run.md");
    for name in names {
        assert!(
            run.contains(&format!("`{name}`")),
            "docs/formats/run.md does not describe `{name}`"
        );
    }

    let ops = page("ops.md");
    let schema = ops_schema();
    let columns = schema.lines().filter(|line| line.starts_with("  "));
    let columns = columns.map(|line| line.split([' ', ';']).filter(|word| !word.is_empty()).nth(2));
    let keys = schema.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| Some(key));
    let mut count = 0;
    for name in columns.chain(keys) {
        let name = name.unwrap();
        assert!(
            ops.contains(&format!("`{name}`")),
            "docs/formats/ops.md does not describe `{name}`"
        );
        count += 1;
    }
    assert_eq!(count, 18 + 5);
}
