//! The documents about scripts, held against the code.
#![expect(clippy::disallowed_methods, reason = "a test reads files of the repository")]

use std::fs;
use std::path::PathBuf;

use plimsoll_testkit::property_names;

use super::Script;

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

#[test]
fn every_field_is_described() {
    let page = fs::read_to_string(docs().join("formats/oracle.md")).unwrap();
    let names = property_names(&Script::json_schema());
    assert!(names.len() > 40, "{names:?}");
    let missing: Vec<&String> =
        names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/formats/oracle.md says nothing of {missing:?}");
}

#[test]
fn the_examples_are_scripts() {
    let mut count = 0;
    for file in fs::read_dir(docs().join("examples")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("oracle-") && name.ends_with(".yaml") {
            let script = Script::from_yaml(&fs::read_to_string(&path).unwrap());
            assert!(script.is_ok(), "{name}: {}", script.unwrap_err());
            count += 1;
        }
    }
    assert!(count >= 5, "{count} examples");
}
