//! Files: how jobs on them are laid out, and the operations of each worker in order.

mod blocks;
mod fill;
pub(crate) mod laws;
#[cfg(test)]
pub(crate) mod layout_tests;
mod names;
mod plan;
mod present;
mod replay;
mod stream;
mod table;
mod versions;

pub use names::{NameAct, NameOp};
pub use plan::{FileChanges, FilePlan, NamesThere};
pub use present::Told;
pub use stream::{BlockOp, FileOp, FileStream};
pub(crate) use table::below;
pub use table::{FileEntry, FileTable};

/// Returns the greatest common divisor; of 0 and another number the other.
pub(crate) const fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}
