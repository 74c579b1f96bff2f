//! Runs on files: what is written, what it means, and the operations of each clone in order.

mod blocks;
mod by_name;
mod check;
#[cfg(test)]
mod examples;
mod fill;
pub(crate) mod laws;
#[cfg(test)]
pub(crate) mod layout_tests;
mod names;
mod plan;
mod spec;
mod stream;
mod table;
mod versions;

pub use names::NameOp;
pub use plan::FilePlan;
pub(crate) use plan::JobLayout;
pub use spec::{
    BlockOrderSpec, BlockShareSpec, BlockSizesSpec, BlocksSpec, CapSpec, FILES_SCHEMA, FileJobSpec,
    FilePacingSpec, FileStageSpec, FileWorkSpec, FilesSpec, FillFilesSpec, FillSpec, JobFilesSpec,
    NameActSpec, NamesSpec, SpanSpec, ThinkSpec, TreeSpec,
};
pub use stream::{BlockOp, FileOp, FileStream};
pub(crate) use table::below;
pub use table::{FileEntry, FileTable};

/// Returns the greatest common divisor; of 0 and another number the other.
pub(crate) const fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}
