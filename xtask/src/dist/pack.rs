//! Packs the program: an archive, a wheel, packages for Debian and RPM, and the list of what is in
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Place, TARGET, VERSION, place_file};
use crate::process::printed;
use crate::{process, tools};

/// Where each shell looks for the completions of commands, below `/usr/share`.
pub(super) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/plimsoll"),
    ("zsh", "zsh/vendor-completions/_plimsoll"),
    ("fish", "fish/vendor_completions.d/plimsoll.fish"),
];
pub(super) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Documents of the package, below `/usr/share`.
pub(super) const DOCUMENTS: &str = "doc/plimsoll";
/// The terms of all that is linked into the program, below the root of a package's files.
pub(super) const THIRD_PARTIES: &str = "share/doc/plimsoll/third-parties.txt";
/// What our pages hold of others, and its terms.
const IN_PAGES: (&str, &str) = ("uPlot 1.6", "crates/report/src/html/vendor/LICENSE-uPlot");
/// The workload library of an archive or a wheel, from where that was unpacked.
pub(super) const LIBRARY: &str = "share/doc/plimsoll/workloads";
/// The same as packages of systems install it.
pub(super) const LIBRARY_INSTALLED: &str = "/usr/share/doc/plimsoll/workloads";

/// Lays out all files as they will lie below `/usr`.
pub(super) fn lay_out(place: &Place, program: &Path) -> Result<()> {
    place_file(program, &place.program(), 0o755)?;
    if fs::metadata(program)?.len() > 100_000_000 {
        // One for developers, with what a debugger needs.
        process::check(Command::new("strip").arg(place.program()), "strip")?;
    }
    let share = place.tree().join("share");
    let manuals = share.join("man/man1");
    let mut man = Command::new(place.program());
    process::check(man.arg("man").arg("--dir").arg(&manuals), "plimsoll man")?;
    for (shell, path) in COMPLETIONS {
        let mut completions = Command::new(place.program());
        let script = printed(completions.args(["completions", shell]), "plimsoll completions")?;
        let path = share.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(path, script)?;
    }
    let gate = "ci/gate.sh";
    let script = process::root().join("deploy").join(gate);
    place_file(&script, &share.join("plimsoll").join(gate), 0o755)?;
    let documents = share.join(DOCUMENTS);
    for licence in LICENCES {
        place_file(&process::root().join(licence), &documents.join(licence), 0o644)?;
    }
    fs::write(place.tree().join(THIRD_PARTIES), third_parties()?)?;
    place_library(&place.tree().join(LIBRARY), LIBRARY)?;
    // By these an editor checks workload files, and programs what they read.
    place_files("docs/formats", "json", &share.join("plimsoll/schemas"))
}

/// Returns the licence texts of all crates that are linked into the program, and of what its pages
/// hold.
fn third_parties() -> Result<String> {
    let mut about = Command::new(tools::install_crate(&tools::CARGO_ABOUT)?);
    let here = process::root().join("xtask/src/dist");
    // Not `--frozen`: crates of other systems are looked at too, and no build has fetched them.
    about.current_dir(process::root()).args(["about", "generate", "--locked", "--fail"]);
    about.args(["--manifest-path", "crates/cli/Cargo.toml", "--config"]);
    about.arg(here.join("about.toml")).arg(here.join("about.hbs"));
    let crates = printed(&mut about, "cargo about generate")?;
    let (name, terms) = IN_PAGES;
    let terms = fs::read_to_string(process::root().join(terms))?;
    Ok(format!("{crates}\n{}\nIn reports that are web pages: {name}\n\n{terms}", "=".repeat(80)))
}

/// Copies the workload library; its files call their folder `named`.
fn place_library(to: &Path, named: &str) -> Result<()> {
    place_files("workloads", "yaml", to)?;
    for file in fs::read_dir(to)? {
        let file = file?.path();
        fs::write(&file, as_packaged(&fs::read_to_string(&file)?, named))?;
    }
    Ok(())
}

/// Returns the text of a file of the library for where packages have it, and its schema.
fn as_packaged(text: &str, named: &str) -> String {
    let text = text.replace("$schema=../docs/formats/", "$schema=../../../plimsoll/schemas/");
    text.replace("plimsoll run workloads/", &format!("plimsoll run {named}/"))
}

/// Copies those files of a folder of the repository whose names have that ending.
fn place_files(from: &str, ending: &str, to: &Path) -> Result<()> {
    for file in fs::read_dir(process::root().join(from))? {
        let file = file?;
        if file.file_name().to_string_lossy().ends_with(ending) {
            place_file(&file.path(), &to.join(file.file_name()), 0o644)?;
        }
    }
    Ok(())
}

/// Packs all of it into an archive.
pub(super) fn archive(place: &Place) -> Result<PathBuf> {
    let name = format!("plimsoll-{VERSION}-{TARGET}");
    let archive = place.out.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg("--mode=u=rwX,go=rX").arg(format!("--mtime=@{}", place.epoch));
    tar.args(["--use-compress-program", "xz -9"]);
    tar.arg(format!("--transform=s,^\\.,{name},")).arg("--file").arg(&archive);
    process::check(tar.arg("--directory").arg(place.tree()).arg("."), "tar")?;
    Ok(archive)
}

/// Packs the program and the reader of runs into a wheel.
pub(super) fn wheel(place: &Place) -> Result<PathBuf> {
    let mut build = tools::dist_tools()?.python(&["-m", "hatchling", "build", "-t", "wheel"])?;
    build.arg("-d").arg(&place.out).current_dir(process::root().join("python"));
    build.env("PLIMSOLL_TREE", place.tree()).env("SOURCE_DATE_EPOCH", &place.epoch);
    process::check(&mut build, "hatchling build")?;
    tools::only_file(&place.out, "whl")
}

/// Makes a package of one of the formats that nfpm knows.
pub(super) fn linux_package(place: &Place, format: &str) -> Result<PathBuf> {
    let recipe = include_str!("nfpm.yaml")
        .replace("@VERSION@", VERSION)
        .replace("@TREE@", &place.tree().display().to_string())
        .replace("@EXTRA@", &place.work.join("extra").display().to_string());
    let extra = place.work.join("extra");
    write_extras(place, &extra)?;
    let path = place.work.join("nfpm.yaml");
    fs::write(&path, recipe)?;
    let mut nfpm = Command::new(tools::install_nfpm()?);
    nfpm.args(["package", "--packager", format, "--config"]).arg(&path);
    nfpm.arg("--target").arg(&place.out).env("SOURCE_DATE_EPOCH", &place.epoch);
    // It says where the package went, which is told below.
    printed(&mut nfpm, "nfpm package")?;
    tools::only_file(&place.out, format)
}

/// Writes what packages of Debian need besides: who may copy it, what changed, compressed manuals.
fn write_extras(place: &Place, extra: &Path) -> Result<()> {
    let manuals = extra.join("man");
    fs::create_dir_all(&manuals)?;
    for page in fs::read_dir(place.tree().join("share/man/man1"))? {
        let page = page?;
        let to = manuals.join(page.file_name());
        fs::copy(page.path(), &to)?;
        compress(&to)?;
    }
    place_library(&extra.join("workloads"), LIBRARY_INSTALLED)?;
    fs::write(extra.join("copyright"), include_str!("copyright"))?;
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email", "-d"]).arg(format!("@{}", place.epoch));
    let date = printed(&mut date, "date")?;
    let changes = format!(
        "plimsoll ({VERSION}) unstable; urgency=medium\n\n  * The program's own changelog tells \
         what changed.\n\n -- The Plimsoll developers <plimsoll@plimsoll.example>  {date}"
    );
    let changelog = extra.join("changelog");
    fs::write(&changelog, changes)?;
    compress(&changelog)
}

/// Compresses a file so that it is the same each time.
fn compress(file: &Path) -> Result<()> {
    process::check(Command::new("gzip").args(["-9", "-n", "-f"]).arg(file), "gzip")
}

/// Lists what the program is made of, as CycloneDX.
pub(super) fn bill_of_materials(place: &Place) -> Result<PathBuf> {
    let program = tools::install_crate(&tools::CARGO_CYCLONEDX)?;
    let mut command = Command::new(program);
    command.current_dir(process::root()).env("SOURCE_DATE_EPOCH", &place.epoch);
    command.args(["cyclonedx", "--manifest-path", "crates/cli/Cargo.toml", "--format", "json"]);
    command.args(["--target", TARGET, "--quiet", "--override-filename", "plimsoll.cdx"]);
    process::check(&mut command, "cargo cyclonedx")?;
    let made = process::root().join("crates/cli/plimsoll.cdx.json");
    let to = place.out.join(format!("plimsoll-{VERSION}.cdx.json"));
    // It is written beside the manifests of all crates of the workspace.
    let list = fs::read_to_string(&made).context("cargo cyclonedx left no list")?;
    // Our own crates have the path of this folder as their name there.
    fs::write(&to, list.replace(&process::root().display().to_string(), "/plimsoll"))?;
    let crates = fs::read_dir(process::root().join("crates"))?;
    let folders = crates.filter_map(|entry| Some(entry.ok()?.path()));
    for folder in folders.chain([process::root().join("xtask")]) {
        let list = folder.join("plimsoll.cdx.json");
        if list.exists() {
            fs::remove_file(list)?;
        }
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_gathered_of_the_licences_that_the_gate_allows() {
        let list = |file: &str, name: &str| {
            let text = fs::read_to_string(process::root().join(file)).unwrap();
            let (_, list) = text.split_once(&format!("\n{name} = [")).unwrap();
            list.split_once(']').unwrap().0.to_owned()
        };
        let allowed = list("deny.toml", "allow");
        assert!(allowed.contains("\"MIT\""), "{allowed}");
        assert_eq!(list("xtask/src/dist/about.toml", "accepted"), allowed);
    }

    #[test]
    fn files_of_the_library_name_what_packages_have() {
        let text = fs::read_to_string(process::root().join("workloads/home-directories.yaml"));
        let packaged = as_packaged(&text.unwrap(), LIBRARY_INSTALLED);
        let first = packaged.lines().next().unwrap();
        // From /usr/share/doc/plimsoll/workloads to /usr/share/plimsoll/schemas.
        assert!(first.ends_with("$schema=../../../plimsoll/schemas/workload-2.json"), "{first}");
        let runs = packaged.matches("plimsoll run ").count();
        let own = "plimsoll run /usr/share/doc/plimsoll/workloads/home-directories.yaml";
        assert_eq!((runs, packaged.matches(own).count()), (1, 1));
    }
}
