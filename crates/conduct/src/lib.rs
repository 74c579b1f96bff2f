//! Conducting a run: a workload on its target, stage after stage, with a record of all of it.
//!
//! Whoever has a run conducted is told of it as an [`Observer`] and ends it by a [`Stop`]. No
//! terminal, no signal, no command line and no look of a report is known here.

mod consent;
mod error;
mod files;
pub mod input;
pub mod lease;
pub mod machine;
mod manifest;
mod objects;
mod observer;
mod process;
mod recording;
mod stop;
mod store;
mod time;
mod work;

pub use consent::{Consent, Permit};
pub use error::ConductError;
pub use files::{FileSettings, FilesRun, jobs_of};
pub use lease::BucketLease;
pub use manifest::{Opening, of_workload};
pub use objects::{BeforeMeasuring, CallerError, ObjectsWork};
pub use observer::{Goal, Observer, StageView};
pub use recording::{Cleaning, Done, Recorded, Recording, note_outcome};
pub use stop::{Stop, Stopped};
pub use store::StoreAdmin;
pub use time::RunTime;
pub use work::{NextStage, Work};
