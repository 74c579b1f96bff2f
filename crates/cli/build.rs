//! Tells the program which commit of the source it is built of, where that is known: what packagers
//! say in `PLIMSOLL_COMMIT`, else what git says of this very repository.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by environment")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PLIMSOLL_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let given = env::var("PLIMSOLL_COMMIT").ok().map(|commit| commit.trim().to_owned());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    match given.filter(|commit| !commit.is_empty()).or_else(described) {
        Some(commit) => {
            println!("cargo:rustc-env=PLIMSOLL_BUILT_OF={commit}");
            println!("cargo:rustc-env=PLIMSOLL_VERSION={version} ({commit})");
        }
        None => println!("cargo:rustc-env=PLIMSOLL_VERSION={version}"),
    }
}

/// Returns what git calls the commit that is checked out, if this is the repository of the project
/// and not one that holds a copy of it.
fn described() -> Option<String> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").ok()?).join("../..").canonicalize().ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // HEAD changes when another branch is checked out, the branch with each commit.
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD"].into_iter().chain(branch.as_deref()) {
        let path = root.join(git(&root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["describe", "--always", "--dirty", "--abbrev=12"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
