//! Compares generated documents with the committed ones in `docs/formats`.
#![expect(clippy::disallowed_methods, reason = "tests compare files of the repository")]

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
