//! What the manifest says of commands that the user had run at instants of a stage.

use serde::{Deserialize, Serialize};

/// A command of the user's own, which the run carried out at an instant of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The stage.
    pub stage_index: u8,
    /// How long after the start of the stage it was to begin.
    pub asked_after_ns: u64,
    /// The command as it was given to the shell, without secrets that the run knows.
    pub command: String,
    /// When its shell was started; null where it was not.
    pub began_ns: Option<u64>,
    /// When its shell was seen to have ended, at most some milliseconds after it had; null where it
    /// was not.
    pub ended_ns: Option<u64>,
    /// What its shell ended with; null where it did not end by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended its shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The beginning of what it wrote to its standard output and its standard error, in the order
    /// in which it came, without secrets that the run knows.
    pub output: String,
    /// How much it wrote in all.
    pub output_bytes: u64,
    /// Why it was not run, or was ended by the run; null where it ended by itself.
    pub reason: Option<String>,
}
