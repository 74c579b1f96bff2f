//! Contents that are too large for a message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::fabric::{Fabric, FabricError, Kept, Space};
use crate::wire::Held;

/// What has more than this does not go in a message.
const HERE_BYTES_MAX: usize = 1 << 17;

/// No content has more of what coordinators have agents read.
pub(crate) const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Why a content cannot be handed over.
#[derive(Debug, Error)]
pub(crate) enum ContentError {
    /// The fabric did not do it.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// It would take more memory than anybody is to have a say in.
    #[error("`{name}` of {of} has {size_bytes} B, and at most {bytes_max} B are taken of it")]
    Long {
        /// Whose.
        of: Space,
        /// What it is called.
        name: String,
        /// How long it is said to be.
        size_bytes: u64,
        /// How long it may be.
        bytes_max: u64,
    },
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

/// Returns the content that a message has brought; one that is kept has `bytes_max` at most.
pub(crate) fn fetch<T: DeserializeOwned>(
    fabric: &dyn Fabric,
    space: &Space,
    held: Held<T>,
    bytes_max: u64,
) -> Result<T, ContentError> {
    let kept = match held {
        Held::Here(content) => return Ok(content),
        Held::Kept(kept) => kept,
    };
    if kept.size_bytes > bytes_max {
        let Kept { name, size_bytes, .. } = kept;
        return Err(ContentError::Long { of: space.clone(), name, size_bytes, bytes_max });
    }
    let mut bytes = Bounded::new(bytes_max);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use crate::pki::fresh_word;
    use crate::protocol::{AgentId, encode};
    use crate::wire::{Answer, HandedFiles};

    #[test]
    fn the_list_of_files_of_a_long_run_is_handed_in() {
        let (fabric, space) = (Local::default(), Space::Of(AgentId::new("a").unwrap()));
        let (word, sha256) = (fresh_word(), crate::content::sum_of(b""));
        let file = |number: u32| {
            let name = format!("ops/part-{number:06}.parquet");
            let kept = format!("{word}/{name}");
            let (word, sha256) = (word.clone(), sha256.clone());
            (name, Kept { name: kept, word, size_bytes: 1 << 20, sha256 })
        };
        // One every ten seconds, of a day.
        let files: HandedFiles = (0..8_640).map(file).collect();
        let held = hold(&fabric, &space, format!("{word}/files"), files.clone()).unwrap();
        let answer = Answer::HandedIn { files: held.clone(), losses: Vec::new() };
        encode(&answer).unwrap();
        assert!(fetch(&fabric, &space, held.clone(), 1 << 30).unwrap() == files);
        let long = fetch(&fabric, &space, held, 1 << 20).unwrap_err();
        assert!(matches!(long, ContentError::Long { .. }), "{long}");
    }
}
