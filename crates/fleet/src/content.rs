//! The files that content is made of, on their way to agents: all of them in a row, cut into
//! pieces, with a table that says where each begins.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use plimsoll_conduct::ContentFiles;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::contents::{Bounded, ContentError, KEPT_BYTES_MAX, fetch, hold};
use crate::fabric::{Fabric, FabricError, Kept, Space};
use crate::wire::Held;

/// All files together that content is made of hold no more, as each agent has them in memory.
pub const CONTENT_BYTES_MAX: u64 = 1 << 30;
/// A piece that the fabric keeps under a name.
const PIECE_BYTES: usize = 32 << 20;
/// So often a piece is asked for that does not arrive.
const TRIES_MAX: u32 = 3;

/// The files that content is made of, as they are found in the fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentDoc {
    /// The pieces that the files are cut into, in order.
    pieces: Vec<Kept>,
    /// The files, in the order in which they lie in the pieces.
    files: Vec<ContentFileDoc>,
}

/// One of these files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ContentFileDoc {
    /// What the workload calls it; nobody opens that path.
    path: String,
    size_bytes: u64,
    /// The SHA-256 of what it holds, in base64.
    sha256: String,
}

/// Why the files that content is made of do not come to an agent.
#[derive(Debug, Error)]
pub(crate) enum ShipError {
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("the files that content is made of hold more than {CONTENT_BYTES_MAX} B")]
    Long,
    #[error("the content of {path} has not arrived as it was sent")]
    Differs { path: String },
}

impl From<FabricError> for ShipError {
    fn from(error: FabricError) -> Self {
        Self::Content(error.into())
    }
}

/// Returns the path below which those of a run are kept.
pub(crate) fn path_of(run: &str) -> String {
    format!("{run}/content")
}

/// Has the fabric keep the files for the agents of a run.
pub(crate) fn ship(
    fabric: &dyn Fabric,
    run: &str,
    content: &ContentFiles,
) -> Result<Held<ContentDoc>, ShipError> {
    let mut doc = ContentDoc::default();
    let mut piece = Vec::new();
    let keep = |piece: &mut Vec<u8>, pieces: &mut Vec<Kept>| -> Result<(), FabricError> {
        let name = format!("{}/{}", path_of(run), pieces.len());
        pieces.push(fabric.put(&Space::Shared, &name, &mut &**piece)?);
        piece.clear();
        Ok(())
    };
    for (path, bytes) in content.iter() {
        let (path, size_bytes) = (path.to_owned(), bytes.len() as u64);
        doc.files.push(ContentFileDoc { path, size_bytes, sha256: sum_of(bytes) });
        let mut left = bytes;
        while !left.is_empty() {
            let (next, behind) = left.split_at(left.len().min(PIECE_BYTES - piece.len()));
            piece.extend_from_slice(next);
            left = behind;
            if piece.len() == PIECE_BYTES {
                keep(&mut piece, &mut doc.pieces)?;
            }
        }
    }
    if !piece.is_empty() {
        keep(&mut piece, &mut doc.pieces)?;
    }
    Ok(hold(fabric, &Space::Shared, format!("{}/table", path_of(run)), doc)?)
}

/// Returns the files that the fabric keeps for an agent, as they were sent.
pub(crate) fn receive(
    fabric: &dyn Fabric,
    held: Held<ContentDoc>,
) -> Result<ContentFiles, ShipError> {
    let ContentDoc { pieces, files } = fetch(fabric, &Space::Shared, held, KEPT_BYTES_MAX)?;
    let all = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size_bytes));
    if all > CONTENT_BYTES_MAX || pieces.len() as u64 > all.div_ceil(PIECE_BYTES as u64) {
        return Err(ShipError::Long);
    }
    let mut pieces = pieces.into_iter();
    let mut piece = Vec::new();
    let mut next = 0;
    let mut received = Vec::with_capacity(files.len());
    for ContentFileDoc { path, size_bytes, sha256 } in files {
        let mut bytes = Vec::new();
        while bytes.len() as u64 != size_bytes {
            if next == piece.len() {
                let Some(kept) = pieces.next() else { return Err(ShipError::Differs { path }) };
                (piece, next) = (piece_of(fabric, &kept)?, 0);
            }
            let wanted = usize::try_from(size_bytes).unwrap_or(usize::MAX) - bytes.len();
            let here = &piece[next..piece.len().min(next.saturating_add(wanted))];
            if here.is_empty() {
                return Err(ShipError::Differs { path });
            }
            bytes.extend_from_slice(here);
            next += here.len();
        }
        if sum_of(&bytes) != sha256 {
            return Err(ShipError::Differs { path });
        }
        received.push((path, bytes));
    }
    Ok(received.into_iter().collect())
}

/// Fetches a piece; what is under way while a server is started again is asked for once more.
fn piece_of(fabric: &dyn Fabric, kept: &Kept) -> Result<Vec<u8>, ShipError> {
    let mut tries = 1;
    loop {
        let mut piece = Bounded::new(PIECE_BYTES as u64);
        match fabric.get(&Space::Shared, kept, &mut piece) {
            Ok(_) => return Ok(piece.bytes),
            Err(FabricError::Failed { .. }) if tries < TRIES_MAX => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the checksum of a content.
pub(crate) fn sum_of(bytes: &[u8]) -> String {
    URL_SAFE.encode(digest(&SHA256, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;

    fn content(files: &[(&str, usize)]) -> ContentFiles {
        let file = |(index, (path, size)): (usize, &(&str, usize))| {
            let byte = |at: usize| (at.wrapping_mul(31) >> 3) as u8 ^ index as u8;
            ((*path).to_owned(), (0..*size).map(byte).collect())
        };
        files.iter().enumerate().map(file).collect()
    }

    #[test]
    fn files_arrive_as_they_were_sent_whatever_their_sizes() {
        let fabric = Local::default();
        for files in [
            &[("a", 1), ("b", 0), ("c", 70_000)][..],
            &[("large", PIECE_BYTES), ("next", 5)],
            &[("larger", 2 * PIECE_BYTES + 1), ("other", PIECE_BYTES - 1)],
            &[],
        ] {
            let sent = content(files);
            let held = ship(&fabric, "run", &sent).unwrap();
            assert!(receive(&fabric, held.clone()).unwrap() == sent, "{files:?}");
            fabric.remove(&Space::Shared, &path_of("run")).unwrap();
            let is_kept = files.iter().any(|(_, size)| *size > 0);
            assert_eq!(receive(&fabric, held).is_err(), is_kept, "nothing is left of {files:?}");
        }
    }

    #[test]
    fn what_is_not_what_was_sent_is_refused() {
        let fabric = Local::default();
        let held = ship(&fabric, "run", &content(&[("a", 100), ("b", 50)])).unwrap();
        let refusal = |put: &[u8], change: &dyn Fn(&mut ContentDoc)| {
            fabric.put(&Space::Shared, "run/content/0", &mut &*put).unwrap();
            let Held::Here(mut doc) = held.clone() else { panic!("it is short") };
            change(&mut doc);
            receive(&fabric, Held::Here(doc)).unwrap_err().to_string()
        };
        let differs = |path: &str| format!("the content of {path} has not arrived as it was sent");
        assert_eq!(refusal(&[0; 150], &|_| {}), differs("a"));
        assert_eq!(refusal(&[0; 7], &|_| {}), differs("a"));
        assert_eq!(refusal(&[], &|_| {}), differs("a"));
        assert_eq!(refusal(&[0; 150], &|doc| doc.pieces.clear()), differs("a"));
        let long = "the files that content is made of hold more than 1073741824 B";
        assert_eq!(refusal(&[0; 150], &|doc| doc.files[1].size_bytes = u64::MAX), long);
        assert_eq!(refusal(&[0; 150], &|doc| doc.pieces = vec![doc.pieces[0].clone(); 2]), long);
    }
}
