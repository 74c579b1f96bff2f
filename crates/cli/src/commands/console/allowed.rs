//! What a submitted workload may do: which files of this machine it may name, which hosts it names,
//! and which buckets it changes.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::Path;

use anyhow::Result;
use plimsoll_conduct::{BucketGlob, ConductError, with_files};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_http::Endpoint;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{LocalFile, Members, Plan, WorkloadFile};

use crate::hosts;

/// More buckets of a set than this are not looked at one by one.
const BUCKETS_MAX: u64 = 100_000;

/// A submitted workload whose local files were all checked, with what opens them. It has no other
/// constructor, so nothing of a submitted workload is opened before that.
pub(super) struct Admitted {
    file: WorkloadFile,
    allowed: AllowedDirs,
}

impl Admitted {
    /// Checks a workload; refuses one that names files outside of these directories.
    pub(super) fn of(file: WorkloadFile, allowed: &AllowedDirs) -> Result<Self> {
        check_files(&file, allowed)?;
        // An allowed directory may hold links to files elsewhere.
        with_files(&file, allowed)?;
        Ok(Self { file, allowed: allowed.clone() })
    }

    /// Returns what opens the files that it names.
    pub(super) fn opens(&self) -> AllowedDirs {
        self.allowed.clone()
    }

    /// Renames it.
    pub(super) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.file.name);
    }
}

impl Deref for Admitted {
    type Target = WorkloadFile;

    fn deref(&self) -> &WorkloadFile {
        &self.file
    }
}

fn check_files(file: &WorkloadFile, allowed: &AllowedDirs) -> Result<(), ConductError> {
    let mut named = file.local_files().into_iter();
    match named.find(|file| !is_allowed(&file.path, allowed)) {
        None => Ok(()),
        Some(LocalFile { field, path, .. }) => Err(field
            .refuse(format!(
                "the console does not allow work on `{path}`: start it with --allow-dir and a \
                 directory above it"
            ))
            .into()),
    }
}

/// Returns whether a path lies in one of these directories now. `-`, which some fields take for the
/// standard input, does not.
fn is_allowed(path: &str, allowed: &AllowedDirs) -> bool {
    path != "-" && allowed.allows(Path::new(path))
}

/// Returns every host that a workload names, as [`hosts::named_in`] does; `None`, too, if any
/// certificate is taken, as nobody knows then who answers for a host.
pub(super) fn hosts_of(file: &WorkloadFile) -> Option<Vec<(Endpoint, bool)>> {
    hosts::named_in(file).filter(|_| !hosts::takes_any_certificate(file))
}

/// What a workload changes and may not have made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Sets of existing files, which a console never overwrites.
    pub(super) files: Vec<String>,
    /// All buckets.
    pub(super) all: Vec<String>,
    /// Buckets that no `touch` covers; allowed only if a run of plimsoll made them.
    pub(super) open: Vec<String>,
    /// Of these, the ones that need `touch` whoever made them.
    pub(super) foreign: Vec<String>,
}

/// Returns what a workload changes.
pub(super) fn touched(plan: &Plan, own: &str, touch: &[BucketGlob]) -> Touched {
    let mut found = Touched::default();
    let is_covered = |name: &String| touch.iter().any(|glob| glob.matches(name));
    let mut seen = BTreeSet::new();
    for wanted in plan.consents.iter().filter(|of| seen.insert((of.set, of.target.0))) {
        let mut buckets: Vec<String> = Vec::new();
        let set = plan.set(wanted.set);
        let named = match &set.members {
            Members::Named(named) => named.buckets.as_ref(),
            Members::Files(_) | Members::Tree(_) => {
                found.files.push(set.name.clone());
                continue;
            }
            _ => None,
        };
        match named {
            Some(pattern) => {
                let count = pattern.count().min(BUCKETS_MAX);
                buckets.extend((0..count).map(|index| pattern.name(index)));
            }
            None => buckets.push(match &plan.target(wanted.target).spec {
                Some(TargetSpec::S3(s3)) => s3.bucket.clone().unwrap_or_else(|| own.to_owned()),
                _ => own.to_owned(),
            }),
        }
        let open: Vec<String> = buckets.iter().filter(|name| !is_covered(name)).cloned().collect();
        if !matches!(set.members, Members::Named(_)) {
            found.foreign.extend(open.clone());
        }
        found.open.extend(open);
        found.all.extend(buckets);
    }
    for names in [&mut found.files, &mut found.all, &mut found.open, &mut found.foreign] {
        names.sort();
        names.dedup();
    }
    found
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are named")]
mod tests {
    use anyhow::anyhow;
    use plimsoll_conduct::Traces;
    use plimsoll_workload::plan::spec::TraceOf;

    use super::*;

    fn file(targets: &str) -> WorkloadFile {
        let text =
            format!("schema: plimsoll.workload/2\nname: w\ntargets: {targets}\nstages: []\n");
        WorkloadFile::from_yaml("w", &text).unwrap()
    }

    #[test]
    fn files_lie_below_what_was_allowed_whatever_their_links_say() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink("/etc", inside.join("link")).unwrap();
        let only = |path: &Path| AllowedDirs::only(&[path.to_owned()]).unwrap();
        let allowed = only(&inside);
        let ok = |path: &Path| is_allowed(&path.display().to_string(), &allowed);
        assert!(ok(&inside));
        for path in
            [directory.path(), &inside.join("link"), &inside.join("../x"), Path::new("/etc")]
        {
            assert!(!ok(path), "{}", path.display());
        }
        assert!(!is_allowed(&inside.display().to_string(), &AllowedDirs::none()));
        let here = std::path::absolute(".").unwrap();
        assert!(is_allowed("x", &only(&here)) && !is_allowed("-", &only(&here)));
    }

    #[test]
    fn a_link_out_of_a_directory_of_contents_lets_no_workload_in() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, secret) = (directory.path().join("in"), directory.path().join("secret"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&secret, "s").unwrap();
        let text = format!(
            "schema: plimsoll.workload/2\nname: w\nsets:\n  o: {{named: {{files: '{}'}}, shared: \
             true}}\nstages: []\n",
            inside.display()
        );
        let only = |path: &Path| AllowedDirs::only(&[path.to_owned()]).unwrap();
        let admitted = |allowed: &AllowedDirs| {
            let file = WorkloadFile::from_yaml("w", &text).unwrap();
            Admitted::of(file, allowed).map(drop).map_err(|error| error.to_string())
        };
        std::fs::write(inside.join("a"), "a").unwrap();
        assert!(
            admitted(&AllowedDirs::none())
                .unwrap_err()
                .starts_with("sets.o.named.files: the console does not")
        );
        assert_eq!(admitted(&only(&inside)), Ok(()));
        std::os::unix::fs::symlink(&secret, inside.join("b")).unwrap();
        assert!(admitted(&only(&inside)).unwrap_err().contains("in/b"));
    }

    #[test]
    fn what_becomes_a_link_once_a_workload_was_admitted_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        for path in [&inside, &outside] {
            std::fs::create_dir_all(path.join("names")).unwrap();
            std::fs::write(path.join("names/a"), "a").unwrap();
            std::fs::write(path.join("trace"), "time,op,key,size\n1,get,a,10\n").unwrap();
        }
        let at = inside.display();
        let text = format!(
            "schema: plimsoll.workload/2\nname: w\nsets:\n  o: {{named: {{files: '{at}/names'}}, \
             shared: true}}\n  t: {{trace: {{file: '{at}/trace'}}}}\nstages: []\n"
        );
        let file = WorkloadFile::from_yaml("w", &text).unwrap();
        let allowed = AllowedDirs::only(std::slice::from_ref(&inside)).unwrap();
        let admitted = Admitted::of(file, &allowed).unwrap();
        let trace = TraceOf::file(inside.join("trace").display().to_string());
        let read = || {
            let names = with_files(&admitted, &admitted.opens()).map(drop);
            let trace = Traces::within(admitted.opens()).read(&trace).map(drop);
            [names, trace].map(|read| read.map_err(|error| format!("{:#}", anyhow!(error))))
        };
        assert_eq!(read(), [Ok(()), Ok(())]);
        for name in ["names", "trace"] {
            std::fs::rename(inside.join(name), inside.join(format!("{name}-was"))).unwrap();
            std::os::unix::fs::symlink(outside.join(name), inside.join(name)).unwrap();
        }
        for refused in read() {
            let why = refused.unwrap_err();
            assert!(why.ends_with("a symbolic link is in the way and is not followed"), "{why}");
        }
    }

    #[test]
    fn every_host_of_a_workload_is_told() {
        let told = |targets: &str| {
            let hosts = hosts_of(&file(targets))?;
            let told = |(host, tls)| format!("{host}{}", if tls { " (TLS)" } else { "" });
            Some(hosts.into_iter().map(told).collect::<Vec<_>>().join(", "))
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(told("{}"), of(""));
        assert_eq!(
            told("{s3: {hosts: ['https://a/', 'b-{1...2}:7'], proxy: 'socks5://p'}}"),
            of("a:443 (TLS), b-1:7, b-2:7, p:1080")
        );
        assert_eq!(told("{s3: {hosts: 'a', tls: true, proxy: p}}"), of("a:443 (TLS), p:80 (TLS)"));
        assert_eq!(
            told("{swift: {auth: 'https://k/v3', storage_url: 'http://s:1/v1/a'}}"),
            of("k:443 (TLS), s:1")
        );
        assert_eq!(told("{a: {seaweedfs: {master: 'm,n:1'}}, b: {null: {}}}"), of("m:9333, n:1"));
        assert_eq!(told("{seaweedfs: {filer: [f, g]}}"), of("f:8888, g:8888"));
        assert_eq!(told("{s3: {hosts: 'https://a', insecure: true}}"), None);
        // Their ports of gRPC, and what a name server says, are not told.
        assert_eq!(told("{seaweedfs: {master: 'm:1.2'}}"), None);
        assert_eq!(told("{swift: {auth: 'gopher://k/'}}"), None);
    }
}
