//! Getting files out of the page cache, so that reads come from the medium.

use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use crate::allowed_dirs::AllowedDirs;
use crate::trouble;

/// Where the kernel is told to empty its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Page cache, and names and attributes of files.
const EVERYTHING: &[u8] = b"3\n";
/// The numbers of tmpfs and ramfs in `statfs`: what they hold is nowhere but in the page cache.
const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// What came of dropping files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropOutcome {
    /// How many of the files were written out and dropped.
    pub fadvised_count: u64,
    /// Why the first of the others was not, if it should have been.
    pub missed: Option<String>,
}

/// Writes files out and drops them from the page cache; others stay in it. What lies in memory only
/// stays there.
pub fn drop_files<P: AsRef<Path>>(
    allowed: &AllowedDirs,
    files: impl IntoIterator<Item = P>,
) -> DropOutcome {
    let (mut fadvised_count, mut missed) = (0, None);
    for file in files {
        let file = file.as_ref();
        match drop_file(allowed, file) {
            Ok(true) => fadvised_count += 1,
            Ok(false) => {}
            Err(errno) => {
                let text = || {
                    let path = file.display();
                    format!("cannot drop {path} from the page cache: {}", trouble::text(errno))
                };
                missed.get_or_insert_with(text);
            }
        }
    }
    DropOutcome { fadvised_count, missed }
}

/// Empties all caches of the machine, of everybody's files; returns in words why that failed.
pub fn drop_machine() -> Result<(), String> {
    drop_with(Path::new(DROP_CACHES))
}

/// Returns false for a file that lies in memory only.
fn drop_file(allowed: &AllowedDirs, path: &Path) -> Result<bool, Errno> {
    // A pipe in the place of the file must not have us wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = allowed.open(path, flags, Mode::empty())?;
    if MEMORY.contains(&(rustix::fs::fstatfs(&fd)?.f_type as u64)) {
        return Ok(false);
    }
    // Only what is on the medium can be dropped.
    rustix::fs::fsync(&fd)?;
    rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
    Ok(true)
}

fn drop_with(switch: &Path) -> Result<(), String> {
    let why = |errno| match errno {
        Errno::ACCESS | Errno::PERM => format!("only root may write to {}", switch.display()),
        Errno::ROFS => format!("{} is read-only, as in most containers", switch.display()),
        errno => format!("cannot write to {}: {}", switch.display(), trouble::text(errno)),
    };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(switch, flags, Mode::empty()).map_err(why)?;
    rustix::fs::sync();
    rustix::io::write(&fd, EVERYTHING).map_err(why)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use std::fs;

    use super::*;

    #[test]
    fn files_and_the_machine_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (file, switch) = (folder.path().join("file"), folder.path().join("switch"));
        fs::write(&file, [7; 10_000]).unwrap();
        fs::write(&switch, "").unwrap();
        let is_memory = crate::facts::probe(folder.path()).unwrap().is_memory;
        let outcome = drop_files(&AllowedDirs::ANY, [&file]);
        let fadvised_count = u64::from(!is_memory);
        assert_eq!(outcome, DropOutcome { fadvised_count, missed: None });
        assert_eq!(fs::read(&switch).unwrap(), b"");
        assert_eq!(drop_with(&switch), Ok(()));
        assert_eq!(fs::read(&switch).unwrap(), b"3\n");
        assert_eq!(fs::read(&file).unwrap(), [7; 10_000]);
    }

    #[test]
    fn what_cannot_be_dropped_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (file, switch) = (folder.path().join("file"), folder.path().join("switch"));
        let (outcome, machine) =
            (drop_files(&AllowedDirs::ANY, [&file, &file]), drop_with(&switch));
        let (file, switch) = (file.display(), switch.display());
        let text = format!("cannot drop {file} from the page cache: No such file or directory");
        assert_eq!(outcome.missed, Some(text));
        assert_eq!(outcome.fadvised_count, 0);
        let text = format!("cannot write to {switch}: No such file or directory");
        assert_eq!(machine, Err(text));
    }
}
