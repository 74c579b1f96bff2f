//! Work on objects as a run lays it out: which sets there are, who is in them at a moment, and the
//! operations of each worker, in order. All of it is a function of the seed and of what became of
//! the operations before, whatever thread or machine they run on.

mod job;
mod members;
mod op;
mod pages;
mod pick;
mod pool;
mod set;
mod shared;
mod slices;
mod source;

pub(crate) use job::PREPARES;
pub use job::{Listed, ObjectsJob, RemovalOrder, Verify};
pub(crate) use members::TRACKED_MAX;
pub use members::{Change, Held, Members};
pub use op::{Below, ObjectRef, PlannedOp, Subject};
pub use pages::Pages;
pub use set::{ObjectSet, SetBuckets};
pub use shared::SharedSet;
pub use source::{ObjectSource, UploadPlan};

#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
