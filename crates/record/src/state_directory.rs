//! Directories in which a fleet, an agent or a console keeps its state.
//!
//! The user names them, so they may hold other people's files. A directory is used only if it is
//! empty or has our mark. Only its owner can read it, and only files that we created under known
//! names are ever removed.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::exposure::{check_owner, check_unchangeable};
use crate::removal;

/// The mark: a file that holds a word for what keeps its state there.
const MARK: &str = ".plimsoll-state";
/// No mark holds more.
const MARK_BYTES_MAX: u64 = 64;
/// What file systems have at their root without anybody having put it there.
const OF_FILE_SYSTEM: &str = "lost+found";
const ONLY_OWNER: u32 = 0o700;
/// In a directory with this bit everybody renames their own alone.
const STICKY: u32 = 0o1000;

/// Why a directory is not taken.
#[derive(Debug, thiserror::Error)]
pub enum StateDirectoryError {
    /// It holds what others put there.
    #[error(
        "{} is not empty and no {of} of plimsoll keeps its files there; name an empty directory, \
         or one that does not exist (`directory`)",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What was to keep its state there.
        of: &'static str,
    },
    /// Something else of plimsoll's keeps its state there.
    #[error("{} holds the files of plimsoll's {other}; name another `directory`", path.display())]
    OfOther {
        /// The directory.
        path: PathBuf,
        /// What its mark says.
        other: String,
    },
    /// Another user could change what is in it.
    #[error("{} belongs to another user; name a `directory` of your own", path.display())]
    Owner {
        /// The directory.
        path: PathBuf,
    },
    /// Another user could put another directory in its place.
    #[error(
        "{} lies below {}, where other users can put another directory in its place \
         (chmod go-w); name a `directory` elsewhere",
        path.display(),
        above.display()
    )]
    Above {
        /// The directory.
        path: PathBuf,
        /// The one above it that they can change.
        above: PathBuf,
    },
    /// Another user may have put it there.
    #[error(
        "{} is a link, or others own it or may write to it; make it a file of your own alone",
        path.display()
    )]
    Planted {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A directory of state.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    /// Whether it did not exist before.
    is_created: bool,
    /// By which device and inode it is known, should another directory take its place.
    known_by: (u64, u64),
}

impl StateDirectory {
    /// Takes the directory at `path` for the state of `of`, such as a fleet. One that does not
    /// exist is created; one that exists must bear the mark of the same, or be empty but for names
    /// that are `expected`, which the user puts there beforehand.
    pub fn open(
        path: &Path,
        of: &'static str,
        expected: &[&str],
    ) -> Result<Self, StateDirectoryError> {
        let failed = |doing| {
            let path = path.to_path_buf();
            move |source| StateDirectoryError::Io { doing, path, source }
        };
        if let Some(above) = changeable_above(path).map_err(failed("look above"))? {
            return Err(StateDirectoryError::Above { path: path.to_path_buf(), above });
        }
        let is_created = fs::symlink_metadata(path).is_err();
        let created = DirBuilder::new().recursive(true).mode(ONLY_OWNER).create(path);
        created.map_err(failed("create"))?;
        let directory = fs::metadata(path).map_err(failed("look at"))?;
        let own = rustix::process::geteuid().as_raw();
        let owned = |_| StateDirectoryError::Owner { path: path.to_path_buf() };
        check_owner(&directory).map_err(owned)?;
        for name in expected {
            let file = path.join(name);
            if fs::symlink_metadata(&file).is_ok_and(|found| !is_ours(&found)) {
                return Err(StateDirectoryError::Planted { path: file });
            }
        }
        match taken_by(path, expected, own).map_err(failed("read"))?.as_deref() {
            None => return Err(StateDirectoryError::Foreign { path: path.to_path_buf(), of }),
            Some("") => {
                write_mark(&path.join(MARK), of).map_err(failed("write the mark in"))?;
            }
            Some(other) if other != of => {
                let (path, other) = (path.to_path_buf(), other.to_owned());
                return Err(StateDirectoryError::OfOther { path, other });
            }
            Some(_) => {}
        }
        // What only root may change is as root wants it: a volume of a container is an example.
        if directory.uid() == own && directory.mode() & 0o777 != ONLY_OWNER {
            let private = Permissions::from_mode(ONLY_OWNER);
            fs::set_permissions(path, private).map_err(failed("make private"))?;
        }
        let known_by = (directory.dev(), directory.ino());
        Ok(Self { path: path.to_path_buf(), is_created, known_by })
    }

    /// Returns where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes files that were created here under these names, and directories that a server which
    /// was started here has filled. Then the mark goes, even where the user's own files stay: none
    /// that he adds later is taken for ours. The directory goes if it is empty and did not exist
    /// before. Another directory that has taken its place is left as it is.
    pub fn remove(self, files: &[&str], trees: &[&str]) -> io::Result<()> {
        let there = fs::metadata(&self.path)?;
        if (there.dev(), there.ino()) != self.known_by {
            return Ok(());
        }
        files.iter().try_for_each(|name| removal::file(&self.path.join(name)))?;
        for name in trees {
            match removal::tree(&self.path.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        removal::file(&self.path.join(MARK))?;
        if self.is_created {
            removal::empty_directory(&self.path)?;
        }
        Ok(())
    }
}

/// Returns the directory above another in which other users may rename what leads to it. A group is
/// taken for other users unless it is this process's own: many systems give each user one, and let
/// it write.
fn changeable_above(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = std::path::absolute(path)?;
    // Where links lead.
    let real = path.ancestors().find_map(|above| fs::canonicalize(above).ok()).unwrap_or_default();
    for above in path.ancestors().skip(1).chain(real.ancestors().skip(1)) {
        let found = match fs::metadata(above) {
            // It will be made, for this user alone.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            found => found?,
        };
        let is_of_group = found.gid() == rustix::process::getegid().as_raw();
        let by_others = if is_of_group { 0o002 } else { 0o022 };
        let is_open = found.mode() & by_others != 0 && found.mode() & STICKY == 0;
        if is_open || check_owner(&found).is_err() {
            return Ok(Some(above.to_path_buf()));
        }
    }
    Ok(None)
}

/// Returns what the mark of a directory says, empty where the directory is free; `None` where it
/// holds other files.
fn taken_by(path: &Path, expected: &[&str], own: u32) -> io::Result<Option<String>> {
    // The mark is written before anything else. Another process may be starting right now, so files
    // without a mark are looked at twice.
    for _ in 0..2 {
        let word = read_mark(&path.join(MARK), own)?;
        let is_free = match word.as_deref() {
            // About to be written, or left by a process whose disk was full.
            Some("") => is_empty(path, &[expected, &[MARK]].concat())?,
            Some(_) => return Ok(word),
            None => is_empty(path, expected)?,
        };
        if is_free {
            return Ok(Some(String::new()));
        }
    }
    Ok(None)
}

/// Tells whether something is a file that only this user or root may have written.
fn is_ours(found: &Metadata) -> bool {
    found.is_file() && check_unchangeable(found).is_ok()
}

/// Returns what the mark says, nothing where it is about to be written; `None` where there is none
/// of this user's.
fn read_mark(path: &Path, own: u32) -> io::Result<Option<String>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != own {
        return Ok(None);
    }
    let mut text = String::new();
    file.take(MARK_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text.trim_end().to_owned()))
}

fn write_mark(path: &Path, of: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
    file.write_all(format!("{of}\n").as_bytes())
}

/// Tells whether nothing is in a directory but these names.
fn is_empty(path: &Path, expected: &[&str]) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != OF_FILE_SYSTEM && !expected.iter().any(|expected| name == *expected) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "fills directories and looks at what is left")]

    use super::*;

    const OF: &str = "fleet";

    fn open(path: &Path) -> Result<StateDirectory, StateDirectoryError> {
        StateDirectory::open(path, OF, &["told.toml"])
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_directory_that_others_filled_is_refused_and_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("main.c"), "int main;").unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        let refused = open(place.path()).unwrap_err();
        assert!(matches!(refused, StateDirectoryError::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains("(`directory`)"), "{refused}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert_eq!(mode(place.path()), 0o755);
    }

    #[test]
    fn a_marked_directory_is_taken_again_and_made_private() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path().join("told.toml"), "").unwrap();
        fs::create_dir(place.path().join(OF_FILE_SYSTEM)).unwrap();
        drop(open(place.path()).unwrap());
        assert_eq!(mode(place.path()), ONLY_OWNER);
        // Killed before it removed anything.
        fs::write(place.path().join("server.key"), "secret").unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        let again = open(place.path()).unwrap();
        assert_eq!((again.path(), mode(place.path())), (place.path(), ONLY_OWNER));
        let refused = StateDirectory::open(place.path(), "console", &[]).unwrap_err();
        assert!(matches!(&refused, StateDirectoryError::OfOther { other, .. } if other == OF));
    }

    #[test]
    fn what_others_may_have_put_there_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("state"), place.path().join("other"));
        let told = path.join("told.toml");
        let is_refused = || matches!(open(&path), Err(StateDirectoryError::Planted { .. }));
        fs::create_dir(&path).unwrap();
        fs::write(&told, "").unwrap();
        fs::set_permissions(&told, Permissions::from_mode(0o666)).unwrap();
        assert!(is_refused() && !path.join(MARK).exists(), "refused, and left as it is");
        fs::rename(&told, &other).unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&other, &told).unwrap();
        assert!(is_refused());
        fs::remove_file(&told).unwrap();
        fs::rename(&other, &told).unwrap();
        assert!(!is_refused());
    }

    #[test]
    fn a_directory_is_not_taken_where_others_can_put_another_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let (above, link) = (place.path().join("project"), place.path().join("link"));
        let state = above.join("more/state");
        let may = |mode: u32| fs::set_permissions(&above, Permissions::from_mode(mode)).unwrap();
        fs::create_dir(&above).unwrap();
        for mode in [0o757, 0o2757] {
            may(mode);
            let refused = open(&state).unwrap_err();
            assert!(matches!(refused, StateDirectoryError::Above { .. }), "{mode:o}: {refused}");
            assert!(refused.to_string().contains("project, where other users"), "{refused}");
            assert!(!above.join("more").exists(), "nothing is made");
        }
        std::os::unix::fs::symlink(&above, &link).unwrap();
        assert!(matches!(open(&link.join("state")), Err(StateDirectoryError::Above { .. })));
        for mode in [0o1777, 0o775] {
            may(mode);
            open(&state).unwrap().remove(&[], &[]).unwrap();
        }
        // A group of several users.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&above, None, Some(65_534)).unwrap();
            may(0o775);
            assert!(matches!(open(&state), Err(StateDirectoryError::Above { .. })));
        }
    }

    #[test]
    fn those_that_start_at_once_find_one_mark() {
        for _ in 0..20 {
            let place = tempfile::tempdir().unwrap();
            let start = std::sync::Barrier::new(4);
            let opened = |number: usize| {
                start.wait();
                let own = open(place.path());
                fs::write(place.path().join(format!("key-{number}")), "").unwrap();
                own.map(drop)
            };
            std::thread::scope(|scope| {
                let all = [0, 1, 2, 3].map(|number| {
                    let opened = &opened;
                    scope.spawn(move || opened(number))
                });
                all.into_iter().for_each(|each| each.join().unwrap().unwrap());
            });
            // One that found its disk full left an empty mark.
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join(MARK), "").unwrap();
            drop(open(place.path()).unwrap());
            assert_eq!(fs::read_to_string(place.path().join(MARK)).unwrap(), "fleet\n");
        }
    }

    #[test]
    fn only_what_was_created_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        let own = open(&path).unwrap();
        fs::write(path.join("server.key"), "secret").unwrap();
        fs::create_dir_all(path.join("jetstream/x")).unwrap();
        fs::write(path.join("jetstream/x/1"), "1").unwrap();
        fs::write(path.join("notes"), "of the user").unwrap();
        own.remove(&["server.key", "never.was"], &["jetstream", "nor.this"]).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["notes"]);
        // Nothing that the user puts there from now on is taken for ours.
        assert!(open(&path).is_err());
        fs::remove_file(path.join("notes")).unwrap();
        // It existed before this time.
        open(&path).unwrap().remove(&[], &[]).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        open(&path).unwrap().remove(&[], &[]).unwrap();
        assert!(!path.exists() && place.path().join("a").exists());
    }

    #[test]
    fn what_has_taken_its_place_is_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("fleet");
        let first = open(&path).unwrap();
        fs::rename(&path, place.path().join("moved")).unwrap();
        let second = open(&path).unwrap();
        fs::write(path.join("server.key"), "of the second").unwrap();
        first.remove(&["server.key"], &[]).unwrap();
        assert!(path.join("server.key").exists() && path.join(MARK).exists());
        second.remove(&["server.key"], &[]).unwrap();
        assert!(!path.exists() && place.path().join("moved").exists());
    }

    #[test]
    fn a_link_is_no_mark_and_leads_to_no_removal() {
        let place = tempfile::tempdir().unwrap();
        let (path, outside) = (place.path().join("state"), place.path().join("outside"));
        fs::create_dir_all(outside.join("kept")).unwrap();
        fs::write(outside.join("mark"), "fleet\n").unwrap();
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(outside.join("mark"), path.join(MARK)).unwrap();
        assert!(open(&path).is_err());
        fs::remove_file(path.join(MARK)).unwrap();
        let own = open(&path).unwrap();
        std::os::unix::fs::symlink(&outside, path.join("jetstream")).unwrap();
        own.remove(&[], &["jetstream"]).unwrap();
        assert!(outside.join("kept").exists() && !path.join("jetstream").exists());
    }
}
