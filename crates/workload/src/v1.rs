//! Version 1 of the workload language, in which objects and files had a language each. It is only
//! read: a file or a record of it is converted to today's language, and whatever is refused then is
//! refused in the fields of version 1.

mod by_name;
pub mod files;
mod from_files;
mod from_objects;
pub mod objects;
mod older;

use std::borrow::Cow;
use std::fmt;

pub use files::{FILES_SCHEMA, FilesSpec};
pub use objects::{SPEC_SCHEMA, WorkloadSpec};

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWorkload {
    /// The field of the spec, such as `objects.count`.
    pub field: Cow<'static, str>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for InvalidWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for InvalidWorkload {}

fn invalid<T>(
    field: impl Into<Cow<'static, str>>,
    reason: impl Into<String>,
) -> Result<T, InvalidWorkload> {
    Err(InvalidWorkload { field: field.into(), reason: reason.into() })
}

/// Returns what version 1 calls a field of today's language, by the first of these that it is or
/// lies in; what is not there has the same name.
fn field_of(form: &str, fields: &[(&'static str, &'static str)]) -> String {
    for (above, field) in fields {
        match form.strip_prefix(above) {
            Some("") => return (*field).to_owned(),
            Some(below) if *field == "pacing" => return format!("{field}{below}"),
            Some(below) if below.starts_with(['.', '[']) => return (*field).to_owned(),
            _ => {}
        }
    }
    form.to_owned()
}

#[cfg(test)]
mod convert_tests;
