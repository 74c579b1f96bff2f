//! What somebody who submits a workload may have done: on the network's word no file of this
//! machine is read or written, but below directories that were allowed.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use plimsoll_conduct::BucketGlob;
use plimsoll_driver_file::facts::real_path;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{FileNames, Members, Plan};

/// More buckets of a set than this are not looked at one by one.
const BUCKETS_MAX: u64 = 100_000;

/// Refuses a workload that reads or writes files elsewhere.
pub(super) fn check_files(plan: &Plan, allowed: &[PathBuf]) -> Result<()> {
    for set in &plan.sets {
        let (directories, paths, contents) = match &set.members {
            Members::Tree(tree) => (&*tree.directories, &[][..], &[][..]),
            Members::Files(files) => match &files.names {
                FileNames::Paths(paths) => (&[][..], &**paths, &[][..]),
                _ => (&*files.directories, &[][..], &[][..]),
            },
            Members::Objects(objects) => (&[][..], &[][..], &*objects.data_files),
            Members::Named(named) => (&[][..], &[][..], &*named.data_files),
            Members::Existing(_) => continue,
        };
        let all = directories.iter().chain(paths).chain(contents.iter().map(|file| &file.path));
        all.map(String::as_str).try_for_each(|path| check_path(path, allowed))?;
    }
    let traces = plan.sets.iter().filter_map(|set| set.members.traced());
    for traced in traces {
        check_path(&traced.of.file, allowed)?;
    }
    for target in &plan.targets {
        match &target.spec {
            Some(TargetSpec::Seaweedfs(spec)) => {
                spec.security.iter().try_for_each(|path| check_path(path, allowed))?;
            }
            Some(TargetSpec::Oracle(oracle)) => {
                oracle.script.iter().try_for_each(|path| check_path(path, allowed))?;
            }
            Some(TargetSpec::S3(s3)) => {
                let file = s3.hosts.0.iter().find_map(|hosts| hosts.strip_prefix("file:"));
                file.into_iter().try_for_each(|path| check_path(path, allowed))?;
                if s3.profile.is_some() {
                    bail!(
                        "`profile` names credentials of this machine, which a console does not use"
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_path(path: &str, allowed: &[PathBuf]) -> Result<()> {
    let is_below = |real: PathBuf| {
        let roots = allowed.iter().filter_map(|root| real_path(root).ok());
        roots.into_iter().any(|root| real.starts_with(root))
    };
    match real_path(Path::new(path)) {
        Ok(real) if is_below(real.clone()) => Ok(()),
        _ => bail!(
            "the console does not allow work on `{path}`: start it with --allow-dir and a \
             directory above it"
        ),
    }
}

/// Returns the buckets that a workload changes, and of these the ones that no pattern covers: it
/// runs only where a run of plimsoll has made them, or makes them.
pub(super) fn touched(plan: &Plan, own: &str, touch: &[BucketGlob]) -> (Vec<String>, Vec<String>) {
    let mut buckets: Vec<String> = Vec::new();
    for wanted in &plan.consents {
        let set = plan.set(wanted.set);
        let named = match &set.members {
            Members::Named(named) => named.buckets.as_ref(),
            Members::Files(_) | Members::Tree(_) => {
                buckets.push(format!("files of set {}", set.name));
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
    }
    buckets.sort();
    buckets.dedup();
    let is_covered = |name: &String| touch.iter().any(|glob| glob.matches(name));
    let open = buckets.iter().filter(|name| !is_covered(name)).cloned().collect();
    (buckets, open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_below_what_was_allowed_whatever_their_links_say() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink("/etc", inside.join("link")).unwrap();
        let allowed = [inside.clone()];
        let ok = |path: &Path| check_path(&path.display().to_string(), &allowed).is_ok();
        assert!(ok(&inside));
        for path in
            [directory.path(), &inside.join("link"), &inside.join("../x"), Path::new("/etc")]
        {
            assert!(!ok(path), "{}", path.display());
        }
        assert!(check_path(&inside.display().to_string(), &[]).is_err());
    }
}
