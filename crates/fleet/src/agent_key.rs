//! The key of an agent, kept in its directory: by it a fleet knows the agent again when it comes
//! back, so that restarts use up no numbers, and by it a directory is one agent's.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plimsoll_record::{StateDirectory, StateDirectoryError};
use thiserror::Error;

use crate::pki::{NewKey, PkiError};

/// The directory of the key in the agent's directory; only its owner may enter it.
const PLACE: &str = "identity";
const KEY: &str = "key.der";
/// More than any key on the curve P-256 has.
const BYTES_MAX: u64 = 4 << 10;
/// The most default directories of one user (`agent`, `agent-2` and so on).
const DIRECTORIES_MAX: u32 = 256;

/// Why an agent has no key.
#[derive(Debug, Error)]
pub enum AgentKeyError {
    /// Its directory is not an agent's.
    #[error(transparent)]
    State(#[from] StateDirectoryError),
    /// Something of its directory.
    #[error("cannot {what} {}", path.display())]
    Files {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another one uses the directory.
    #[error("another agent uses {}; each agent needs a directory of its own", path.display())]
    Used {
        /// Which.
        path: PathBuf,
    },
    /// Others may read it, or have put it there.
    #[error("{} is not this user's alone (chmod 700), and holds the agent's key", path.display())]
    Shared {
        /// Which directory.
        path: PathBuf,
    },
    /// It is no key.
    #[error("{} is not an agent's key; without it the agent joins as a new one", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: PkiError,
    },
}

/// An agent's key, and its directory for as long as this lives.
pub struct AgentKey {
    key: NewKey,
    /// Locked.
    file: File,
}

impl AgentKey {
    /// Returns the key of the agent that uses a directory, which is made where it is missing.
    pub fn open(directory: &Path) -> Result<Self, AgentKeyError> {
        StateDirectory::open(directory, "agent", &[])?;
        let place = directory.join(PLACE);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&place);
        made.map_err(|source| files("make", &place, source))?;
        let found = fs::symlink_metadata(&place);
        let found = found.map_err(|source| files("look at", &place, source))?;
        let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        if !is_own || found.mode() & 0o077 != 0 {
            return Err(AgentKeyError::Shared { path: place });
        }
        let path = place.join(KEY);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = options.open(&path);
        let mut file = opened.map_err(|source| files("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(AgentKeyError::Used { path: directory.to_path_buf() });
            }
            Err(TryLockError::Error(source)) => return Err(files("lock", &path, source)),
        }
        let mut bytes = Vec::new();
        let read = (&file).take(BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|source| files("read", &path, source))?;
        let form = |source| AgentKeyError::Form { path: path.clone(), source };
        if !bytes.is_empty() {
            return Ok(Self { key: NewKey::read(&bytes).map_err(form)?, file });
        }
        let key = NewKey::make().map_err(form)?;
        let kept = file.write_all(&key.to_der()).and_then(|()| file.sync_all());
        kept.map_err(|source| files("write", &path, source))?;
        Ok(Self { key, file })
    }

    /// Returns the first directory that no other agent uses, with its key: this one, else the same
    /// with a number behind it.
    pub fn open_free(directory: &Path) -> Result<(PathBuf, Self), AgentKeyError> {
        for number in 1..=DIRECTORIES_MAX {
            let mut path = directory.as_os_str().to_owned();
            if number > 1 {
                path.push(format!("-{number}"));
            }
            match Self::open(path.as_ref()) {
                Err(AgentKeyError::Used { .. }) => {}
                opened => return Ok((path.into(), opened?)),
            }
        }
        Err(AgentKeyError::Used { path: directory.to_path_buf() })
    }

    /// Returns the key.
    pub const fn key(&self) -> &NewKey {
        &self.key
    }
}

impl Drop for AgentKey {
    /// A process that is being started has the file open for a moment, and would keep the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn files(what: &'static str, path: &Path, source: io::Error) -> AgentKeyError {
    AgentKeyError::Files { what, path: path.to_path_buf(), source }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes what is no key")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_agent_has_the_same_key_again_and_nobody_else_may_read_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("a/agent");
        let public = |of: &AgentKey| of.key().public().to_vec();
        let first = AgentKey::open(&directory).unwrap();
        let mode = |name: &str| fs::metadata(directory.join(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("identity"), mode("identity/key.der")), (0o700, 0o600));
        let used = AgentKey::open(&directory).err().unwrap().to_string();
        assert!(used.starts_with("another agent uses "), "{used}");
        let (other, second) = AgentKey::open_free(&directory).unwrap();
        assert_eq!(other, place.path().join("a/agent-2"));
        let keys = [public(&first), public(&second)];
        drop((first, second));
        let (own, again) = AgentKey::open_free(&directory).unwrap();
        assert_eq!((own, public(&again)), (directory, keys[0].clone()));
        assert_eq!(public(&AgentKey::open(&other).unwrap()), keys[1]);
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn a_key_that_others_may_have_put_there_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join(PLACE);
        drop(AgentKey::open(place.path()).unwrap());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        let shared = AgentKey::open(place.path()).err().unwrap();
        assert!(matches!(shared, AgentKeyError::Shared { .. }), "{shared}");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(own.join(KEY), "no key").unwrap();
        let form = AgentKey::open(place.path()).err().unwrap();
        assert!(matches!(form, AgentKeyError::Form { .. }), "{form}");
    }
}
