//! Tells the program what it is built of and how: the commit of the source, where that is known,
//! Cargo's profile and the target. Of the commit, what packagers say in `PLIMSOLL_COMMIT` counts
//! first, then what git says of this very repository, then what Cargo wrote into the package.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by environment")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PLIMSOLL_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PLIMSOLL_PROFILE={}", profile());
    println!("cargo:rustc-env=PLIMSOLL_TARGET={}", env::var("TARGET").unwrap_or_default());
    let given = env::var("PLIMSOLL_COMMIT").ok().map(|commit| commit.trim().to_owned());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    match given.filter(|commit| !commit.is_empty()).or_else(described).or_else(packaged) {
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

/// Returns the name of Cargo's profile. `PROFILE` knows two of them only; the folder that a build
/// script writes to lies in one of the profile's name, `debug` for `dev`.
fn profile() -> String {
    let out = env::var("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    match folder.map(|name| name.to_string_lossy().into_owned()) {
        Some(name) if name != "debug" => name,
        _ => "dev".to_owned(),
    }
}

/// Returns the commit that `cargo package` found when it made the package that lies here.
fn packaged() -> Option<String> {
    let file = Path::new(&env::var("CARGO_MANIFEST_DIR").ok()?).join(".cargo_vcs_info.json");
    let text = std::fs::read_to_string(file).ok()?;
    let (_, after) = text.split_once("\"sha1\":")?;
    let commit = after.split('"').nth(1)?;
    commit.get(..12).map(str::to_owned)
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
