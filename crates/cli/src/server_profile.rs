//! A server's own profile of a run: kept beside the record, or why there is none.

use std::io;

use anyhow::{Result, anyhow};
use plimsoll_driver_s3::{ServerProfile, ServerProfileError};
use plimsoll_record::RunDirectory;

/// What the server gathered is called in the run directory.
const SERVER_PROFILES: &str = "server-profiles.zip";

/// Ends the profiling of a server, if it began, and keeps what it gathered in the run directory.
pub(crate) fn save(mut profile: ServerProfile, directory: &RunDirectory) -> Result<()> {
    if !profile.runs() {
        return Ok(());
    }
    let mut refused = None;
    let written = directory.write_beside(SERVER_PROFILES, |file| match profile.finish(file) {
        Ok(()) => Ok(()),
        Err(ServerProfileError::Write(error)) => Err(error),
        Err(error) => {
            refused = Some(error);
            Err(io::Error::other("there are no profiles"))
        }
    });
    match refused {
        Some(error) => Err(unprofiled(error)),
        None => Ok(written.map(drop)?),
    }
}

/// Returns why a server is not profiled, with what the user can change.
pub(crate) fn unprofiled(error: ServerProfileError) -> anyhow::Error {
    match error {
        ServerProfileError::NoCredentials => {
            anyhow!("--serverprof needs credentials (--access-key, --secret-key)")
        }
        ServerProfileError::NotAllowed(..) => anyhow!("--serverprof: {error} (--access-key)"),
        ServerProfileError::NotMinio(..) => {
            anyhow!("--serverprof: {error}; leave --serverprof out")
        }
        other => anyhow::Error::from(other).context("--serverprof"),
    }
}
