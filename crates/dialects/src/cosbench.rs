//! COSBench's workload files: XML to a model with everything inherited and every default, judged as
//! a whole in COSBench's words, and lowered to a workload of ours; and its archives of results.
//!
//! [`read`] takes what Intel's COSBench takes, of both its lines and of branch 0.5.0, and what the
//! fork sineio adds. Nothing that is passed over goes without a [`Note`]. Names are only text, and
//! secrets are taken out into [`Lowered::secrets`], which nothing shows.
//! `docs/coming-from-cosbench.md` goes through it point by point.

mod build;
mod check;
mod config;
mod corrections;
mod encoding;
mod error;
mod keys;
pub mod layout;
mod lower;
mod model;
mod selector;
mod storage;
mod xml;

pub use corrections::{CORRECTIONS, Correction};
pub use error::{Note, Place, Refused};
pub use lower::{Lowered, LoweredStage, Options, StageRole, Touched, WORDS, lower};
pub use model::{Division, Operation, Stage, Work, WorkKind, Workload};
pub use storage::may_hide;

/// Tells whether a text is a workload of COSBench: an XML whose root is `<workload>`.
pub fn is_workload(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<?") => "?>",
            _ if rest.starts_with("<!--") => "-->",
            _ => break,
        };
        let Some(at) = rest.find(end) else { return false };
        rest = rest[at + end.len()..].trim_start();
    }
    let Some(tag) = rest.strip_prefix("<workload") else { return false };
    tag.starts_with(|next: char| next.is_whitespace() || "/>".contains(next))
}

/// Returns the workload that a file holds, read, checked and expanded.
pub fn read(text: &[u8]) -> Result<Workload, Refused> {
    let root = xml::parse(text)?;
    let mut workload = build::build(&root)?;
    let mut notes = error::Notes::default();
    check::check(&workload, &mut notes)?;
    workload.notes.extend(notes.list());
    Ok(workload)
}

/// How sizes are read, for people.
pub const SIZES: &str = "4MB is 4,000,000 bytes, as in COSBench; 4MiB is 4,194,304, and 4M no size";

#[cfg(test)]
mod tests;
