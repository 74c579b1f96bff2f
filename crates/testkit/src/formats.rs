//! Compares generated documents with the committed ones in `docs/formats`.
#![expect(clippy::disallowed_methods, reason = "tests compare files of the repository")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Fails unless `docs/formats/<name>` is `fresh`; with `PLIMSOLL_BLESS=1` it is written first.
#[track_caller]
pub fn check_format(name: &str, fresh: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats");
    let path = PathBuf::from(folder).join(name);
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        fs::write(&path, fresh).expect("the documents can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == fresh,
        "docs/formats/{name} is not what the code writes: if a field went or means something \
         else, raise its version (`plimsoll.…/2`) first; then describe the change in \
         docs/formats/*.md and run this test again with PLIMSOLL_BLESS=1"
    );
}

/// Returns the names of all properties in a JSON schema.
pub fn property_names(schema: &serde_json::Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect_property_names(schema, &mut names);
    names
}

fn collect_property_names(schema: &serde_json::Value, names: &mut BTreeSet<String>) {
    match schema {
        serde_json::Value::Object(fields) => {
            if let Some(serde_json::Value::Object(found)) = fields.get("properties") {
                names.extend(found.keys().cloned());
            }
            fields.values().for_each(|value| collect_property_names(value, names));
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| collect_property_names(value, names));
        }
        _ => (),
    }
}
