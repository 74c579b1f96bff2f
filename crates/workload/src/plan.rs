//! The workload language `plimsoll.workload/2`: one file says where the load goes, what there is,
//! what is done and when it ends.
//!
//! [`WorkloadFile`] is the file as people write it; [`Plan`] is what it means, checked: numbers
//! instead of texts, indices instead of names. A [`FieldPath`] says which field a refusal is about.

mod ability;
mod check;
mod checked;
mod full;
mod local;
mod on_files;
mod owed;
mod path;
mod pattern;
mod pins;
pub(crate) mod place;
mod print;
mod read;
mod read_back;
mod rules;
mod secrets;
pub mod spec;
mod tree;
mod units;
mod work;

pub use checked::{
    Amount, Change, Consent, FileNames, Files, Job, JobPacing, Members, NamedObjects, Objects,
    Plan, Search, Set, SetIndex, SharedContent, Stage, Target, TargetIndex, Think, Traced, Tree,
};
pub use local::LocalFile;
pub use on_files::{FilesIn, OnFiles};
pub use owed::Owed;
pub use path::{FieldPath, InvalidField, Segment};
pub use pattern::Pattern;
pub use pins::UnknownAgents;
pub use place::{Placed, PlacedJob, PlacedStage, Placing};
pub use read::{Position, ReadError, Source, read_as};
pub use rules::{SloOf, SloSpec, UntilSpec};
pub use secrets::{Secrets, TargetSecrets};
pub use spec::{WORKLOAD_SCHEMA, WorkloadFile};
pub use units::{Cap, NumberRange, Percent, Rate, RateRange, Size, SizeRange, Time, TimeRange};
pub use work::{Blocks, Length, Op, OpAct, Work};

/// Returns what a run of that name is titled: the commands name theirs by their own words.
pub fn title_of(name: &str) -> String {
    match name.split_once('-') {
        Some((group @ ("s3" | "file" | "weed"), command)) => format!("{group} {command}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod anything_tests;
#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod filer_tests;
#[cfg(test)]
mod schema_tests;
