//! What other users of the machine can do to a file that this user names.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

const ROOT: u32 = 0;

/// What other users can do to a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exposure {
    /// They own it.
    #[error("it belongs to another user")]
    Foreign,
    /// They can change it.
    #[error("other users can change it (chmod go-w)")]
    Changeable,
    /// They can change it, or read it.
    #[error("other users can read or change it (chmod 600)")]
    Shared,
}

/// Refuses what another user than this one and root has made.
pub fn check_owner(found: &Metadata) -> Result<(), Exposure> {
    let own = rustix::process::geteuid().as_raw();
    if [own, ROOT].contains(&found.uid()) { Ok(()) } else { Err(Exposure::Foreign) }
}

/// Refuses what another user than this one and root can change: it decides who may do what.
pub fn check_unchangeable(found: &Metadata) -> Result<(), Exposure> {
    check_owner(found)?;
    if found.mode() & 0o022 == 0 { Ok(()) } else { Err(Exposure::Changeable) }
}

/// Refuses a secret that others can read as well. Who may read what root owns is for root to say,
/// as with the secrets that are put into a container.
pub fn check_private(found: &Metadata) -> Result<(), Exposure> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() == own && found.mode() & 0o077 != 0 {
        return Err(Exposure::Shared);
    }
    check_unchangeable(found)
}
