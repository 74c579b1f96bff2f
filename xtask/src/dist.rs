//! What people install: the program built for old systems, packed in every shape, and each of these
//! tried as those who get it would.

mod build;
mod image;
mod pack;
mod tried;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::process::printed;

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What the program is built for here. Other targets are built by `.github/workflows/release.yml`.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What the command line of `dist` says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// A program to pack instead of building one, for trying how packages are made.
    program: Option<PathBuf>,
    /// Build once more, in another folder, and hold the two against each other.
    twice: bool,
    /// Make the wheel and no other package.
    wheel: bool,
}

impl Options {
    /// Reads `[--program PATH] [--twice] [--wheel]`; `None` when it is not that.
    pub(crate) fn parse(mut words: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            match (*word, rest) {
                ("--twice", _) => options.twice = true,
                ("--wheel", _) => options.wheel = true,
                ("--program", [path, rest @ ..]) => {
                    options.program = Some(path.into());
                    words = rest;
                }
                _ => return None,
            }
        }
        // A program that is given is not built, so there is nothing to build again.
        (options.program.is_none() || !options.twice).then_some(options)
    }
}

/// Where everything is made.
pub(crate) struct Place {
    /// What people get, and its checksums.
    out: PathBuf,
    /// What is made on the way.
    work: PathBuf,
    /// What stands in for the time of all files, so that two builds are equal: that of the commit,
    /// in seconds since 1970.
    epoch: String,
}

impl Place {
    fn new() -> Result<Self> {
        let out = process::root().join("target/dist");
        let work = process::root().join("target/dist-work");
        for folder in [&out, &work] {
            if folder.exists() {
                fs::remove_dir_all(folder)
                    .with_context(|| format!("cannot empty {}", folder.display()))?;
            }
            fs::create_dir_all(folder)?;
        }
        let mut git = Command::new("git");
        git.current_dir(process::root()).args(["log", "-1", "--format=%ct"]);
        Ok(Self { out, work, epoch: printed(&mut git, "git log")?.trim().to_owned() })
    }

    /// Returns where the files of the packages lie as they will on a system below `/usr`.
    fn tree(&self) -> PathBuf {
        self.work.join("tree")
    }

    fn program(&self) -> PathBuf {
        self.tree().join("bin/plimsoll")
    }
}

/// Makes all packages, tries each, and writes their checksums.
pub(crate) fn run(options: &Options) -> Result<()> {
    let place = Place::new()?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => {
            let built = build::program(&process::root())?;
            build::check(&built)?;
            built
        }
    };
    let starts_anywhere = build::asks_for_no_newer_glibc(&program)?;
    if options.twice {
        build::same_again(&program, &place.work)?;
    }
    pack::lay_out(&place, &program)?;
    if options.wheel {
        let wheel = pack::wheel(&place)?;
        tried::wheel(&place, &wheel)?;
        println!("{:>10} bytes  {}", fs::metadata(&wheel)?.len(), wheel.display());
        return Ok(());
    }
    let packages = [
        pack::archive(&place)?,
        pack::wheel(&place)?,
        pack::linux_package(&place, "deb")?,
        pack::linux_package(&place, "rpm")?,
        image::make(&place)?,
        pack::bill_of_materials(&place)?,
    ];
    tried::files(&place)?;
    let [_, wheel, deb, rpm, image, _] = &packages;
    tried::wheel(&place, wheel)?;
    tried::lintian(deb)?;
    if starts_anywhere {
        tried::in_debian_11(&place, deb, rpm)?;
    } else {
        println!("Debian 11: left out, as the program asks for a newer glibc (--program)");
    }
    tried::image(&place, image)?;
    write_checksums(&place)?;
    for package in &packages {
        println!("{:>10} bytes  {}", fs::metadata(package)?.len(), package.display());
    }
    Ok(())
}

/// Writes `SHA256SUMS` and has sha256sum read it again.
fn write_checksums(place: &Place) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(&place.out)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut sums = Command::new("sha256sum");
    sums.current_dir(&place.out).args(&names);
    fs::write(place.out.join("SHA256SUMS"), printed(&mut sums, "sha256sum")?)?;
    let mut again = Command::new("sha256sum");
    again.current_dir(&place.out).args(["--check", "--quiet", "SHA256SUMS"]);
    process::check(&mut again, "sha256sum --check")
}

/// Copies a file, makes it readable to all and gives it that mode.
fn place_file(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!(Options::parse(&[]), Some(Options::default()));
        let given = Options { program: Some("a/b".into()), ..Options::default() };
        assert_eq!(Options::parse(&["--program", "a/b"]).as_ref(), Some(&given));
        assert_eq!(Options::parse(&["--twice"]).map(|options| options.twice), Some(true));
        let wheel = Options { wheel: true, ..given };
        assert_eq!(Options::parse(&["--wheel", "--program", "a/b"]), Some(wheel));
        for wrong in [&["--program"][..], &["x"], &["--twice", "--program", "p"]] {
            assert_eq!(Options::parse(wrong), None);
        }
    }
}
