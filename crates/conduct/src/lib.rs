//! Conducting a run: a workload on its target, stage after stage, with a record of all of it.
//!
//! Whoever has a run conducted is told of it as an [`Observer`] and ends it by a [`Stop`]. No
//! terminal, no signal, no command line and no look of a report is known here.

mod admin;
mod announced;
pub mod bounds;
mod bucket_work;
pub mod child;
mod chosen;
mod consent;
mod content;
mod crew;
pub mod embedded;
mod error;
mod events;
mod files;
mod in_order;
pub mod input;
pub mod lease;
pub mod leftovers;
pub mod machine;
mod manifest;
mod observer;
mod opening;
pub mod output;
mod own_path;
mod plan_work;
mod probes;
mod process;
mod read_back;
mod recording;
mod run;
mod scripted;
mod stop;
mod swift;
mod targets;
mod time;
mod traces;
mod work;

pub use admin::{RunAdmin, remove_created};
pub use announced::{Announced, Ends, Fills};
pub use chosen::{Chooser, Chosen, ChosenProbe};
pub use consent::{BucketGlob, Consent, Permit, foreign_buckets};
pub use content::{ContentFiles, ContentFrom, with_files};
pub use crew::{Agents, Alone, Changes, Crew, DirectedStage, FilesReady};
pub use error::{CallerError, ConductError};
pub use events::{EventAsked, Events, GRACE, Hide, OUTPUT_BYTES_MAX};
pub use files::{FileSettings, FilesPart, FilesRun};
pub use in_order::in_order;
pub use lease::{BucketLease, Marked, Runner};
pub use manifest::{Built, Opening, of_workload};
pub use observer::{Goal, Observer, StageView};
pub use opening::{AskedStore, Lent, QUEUE, Reach, Reached, StandIn, Targets};
pub use plan_work::{BeforeMeasuring, PlanWork};
pub use plimsoll_http::{Endpoint, NamedHosts};
pub use recording::{Cleaning, Done, Recorded, Recording, in_one_line, note_outcome};
pub use run::{BegunRun, FoundObjects, OpenRun, RunRequest, RunSettings};
pub use scripted::Scripted;
pub use stop::{Stop, Stopped};
pub use targets::{AdminOf, AnyDriver, AnySession, FilesOn, Store, Target};
pub use time::RunTime;
pub use traces::Traces;
pub use work::{NextStage, Work};
