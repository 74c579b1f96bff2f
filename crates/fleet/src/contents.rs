//! Contents that are too large for a message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::fabric::{Fabric, FabricError, Space};
use crate::wire::Held;

/// What has more than this does not go in a message.
const HERE_BYTES_MAX: usize = 1 << 17;

/// More than any of these contents has.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Why a content cannot be handed over.
#[derive(Debug, Error)]
pub(crate) enum ContentError {
    /// The fabric did not do it.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// It is not what it should be.
    #[error("`{name}` of {of} is not what it should be")]
    Form {
        /// Whose.
        of: Space,
        /// What it is called.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Returns a content as it goes into a message, having the fabric keep it where it is too large.
pub(crate) fn hold<T: Serialize>(
    fabric: &dyn Fabric,
    space: &Space,
    name: String,
    content: T,
) -> Result<Held<T>, ContentError> {
    let bytes = serde_json::to_vec(&content).map_err(|source| ContentError::Form {
        of: space.clone(),
        name: name.clone(),
        source,
    })?;
    if bytes.len() <= HERE_BYTES_MAX {
        return Ok(Held::Here(content));
    }
    Ok(Held::Kept(fabric.put(space, &name, &mut &*bytes)?))
}

/// Returns the content that a message has brought.
pub(crate) fn fetch<T: DeserializeOwned>(
    fabric: &dyn Fabric,
    space: &Space,
    held: Held<T>,
) -> Result<T, ContentError> {
    let kept = match held {
        Held::Here(content) => return Ok(content),
        Held::Kept(kept) => kept,
    };
    let mut bytes = Bounded::new(KEPT_BYTES_MAX);
    fabric.get(space, &kept, &mut bytes)?;
    let read = serde_json::from_slice(&bytes.bytes);
    read.map_err(|source| ContentError::Form { of: space.clone(), name: kept.name, source })
}

/// Takes no more than it may.
pub(crate) struct Bounded {
    pub(crate) bytes: Vec<u8>,
    bytes_max: u64,
}

impl Bounded {
    pub(crate) const fn new(bytes_max: u64) -> Self {
        Self { bytes: Vec::new(), bytes_max }
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.bytes_max {
            return Err(std::io::Error::other("it is longer than any such content"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
