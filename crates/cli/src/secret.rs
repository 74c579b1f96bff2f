//! What no message, record or report may hold, as arguments have it: one of this type is left out
//! of the command line that is kept with a run.

pub(crate) use plimsoll_model::Secret;

/// What stands for a secret wherever a command line is shown.
pub(crate) const HIDDEN: &str = "*REDACTED*";
