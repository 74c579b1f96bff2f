//! Makes an image for containers, without a daemon: the program, the C library, certificates of
//! public authorities and time zones, and nothing that could be logged in to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::pack::{DOCUMENTS, LICENCES};
use super::{Place, VERSION, place_file};
use crate::process::printed;
use crate::{process, tools};

/// What the image takes from Debian.
const PACKAGES: [&str; 5] = ["base-files", "ca-certificates", "libc6", "netbase", "tzdata"];
/// Where programs look for the certificates of public authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Who runs in the container.
const USER: &str = "10001:10001";
/// Where runs are kept if nobody says otherwise; a volume goes here.
const RUNS: &str = "/runs";

/// Makes the image and returns the archive that holds it.
pub(super) fn make(place: &Place) -> Result<PathBuf> {
    if !process::is_root() {
        bail!("an image is made by the superuser, who can give its files to others");
    }
    tools::ensure_package("buildah", "buildah")?;
    tools::ensure_package("skopeo", "skopeo")?;
    let root = place.work.join("image");
    lay_out(place, &root)?;
    let archive = place.out.join(format!("plimsoll-{VERSION}-image.tar"));
    let container = buildah(place, &["from", "scratch"])?;
    let container = container.trim();
    let copied = root.display().to_string();
    buildah(place, &["copy", "--quiet", container, &copied, "/"])?;
    // Copied by itself, as files are root's unless somebody is named.
    let runs = place.work.join("image-runs");
    fs::create_dir_all(&runs)?;
    let runs = runs.display().to_string();
    buildah(place, &["copy", "--quiet", "--chown", USER, container, &runs, RUNS])?;
    let entry = ["--entrypoint", r#"["/usr/bin/plimsoll"]"#, "--cmd", "--help"];
    let labels = [
        "org.opencontainers.image.title=plimsoll".to_owned(),
        format!("org.opencontainers.image.version={VERSION}"),
        "org.opencontainers.image.licenses=MIT OR Apache-2.0".to_owned(),
    ];
    let mut config = vec!["config", "--user", USER, "--workingdir", RUNS, "--volume", RUNS];
    config.extend(entry);
    labels.iter().for_each(|label| config.extend(["--label", label]));
    config.push(container);
    buildah(place, &config)?;
    let to = format!("oci-archive:{}:plimsoll:{VERSION}", archive.display());
    let committed = ["commit", "--quiet", "--format", "oci", "--timestamp", &place.epoch];
    buildah(place, &[&committed[..], &[container, &to]].concat())?;
    Ok(archive)
}

/// Runs buildah with a store of its own, which goes with the rest of what is made on the way.
pub(super) fn buildah(place: &Place, words: &[&str]) -> Result<String> {
    let mut command = Command::new("buildah");
    command.args(["--storage-driver", "vfs"]);
    command.arg("--root").arg(place.work.join("containers"));
    command.arg("--runroot").arg(place.work.join("containers-run"));
    printed(command.args(words), &format!("buildah {}", words.first().unwrap_or(&"")))
}

/// Lays out the files of the image.
fn lay_out(place: &Place, root: &Path) -> Result<()> {
    let downloads = place.work.join("downloads");
    for folder in [root, &downloads] {
        fs::create_dir_all(folder)?;
    }
    tools::apt_get(&[&["download"][..], &PACKAGES].concat(), &downloads)?;
    for package in fs::read_dir(&downloads)? {
        let mut unpack = Command::new("dpkg-deb");
        process::check(unpack.arg("-x").arg(package?.path()).arg(root), "dpkg-deb -x")?;
    }
    trust_authorities(root)?;
    for unused in ["usr/share/man", "usr/share/bug", "usr/share/lintian"] {
        let unused = root.join(unused);
        if unused.exists() {
            fs::remove_dir_all(unused)?;
        }
    }
    // Of documents only whose the parts are and on what terms.
    let mut find = Command::new("find");
    find.arg(root.join("usr/share/doc")).args(["-type", "f", "!", "-name", "copyright", "-delete"]);
    process::check(&mut find, "find -delete")?;
    for terms in [LICENCES[0], LICENCES[1], "third-parties.txt"] {
        let ours = place.tree().join("share").join(DOCUMENTS);
        place_file(&ours.join(terms), &root.join("usr/share").join(DOCUMENTS).join(terms), 0o644)?;
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/:/\nplimsoll:x:10001:10001::/runs:/\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nplimsoll:x:10001:\n")?;
    place_file(&place.program(), &root.join("usr/bin/plimsoll"), 0o755)
}

/// Puts the certificates into one file, as the package does when it is installed.
fn trust_authorities(root: &Path) -> Result<()> {
    let folder = root.join("usr/share/ca-certificates/mozilla");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    let mut all = String::new();
    for file in files {
        all.push_str(fs::read_to_string(file)?.trim_end());
        all.push('\n');
    }
    let to = root.join(AUTHORITIES);
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    Ok(fs::write(to, all)?)
}
