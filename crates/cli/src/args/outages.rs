//! The flags of runs in which a store is to be away.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use clap::Args;
use plimsoll_conduct::EventAsked;
use plimsoll_model::parse_duration;
use plimsoll_workload::plan::WorkloadFile;

/// What is done to a store while a run goes on.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OutageArgs {
    /// Run a command of your own by `sh -c` so long after the start of the first measured stage,
    /// such as 30s:'docker kill node-3'; repeat for more. Its output, its exit code and its time
    /// are kept in the record, and it is marked on every chart. Put no secret into it: let the
    /// shell take secrets from a file or a variable
    #[arg(long, value_name = "WHEN:COMMAND")]
    pub(crate) event: Vec<EventArg>,
    /// When the measured stages are over, read back every object whose last write was acknowledged
    /// and that was not removed since, check every byte, and name those that are lost or wrong: the
    /// command then ends with status 1
    #[arg(long)]
    pub(crate) verify_acked: bool,
    /// Go on where all operations fail alike. Without it, a run ends whose first hundred
    /// operations, and all of its first 2 s, are refused for want of permission, of a bucket, or of
    /// a server
    #[arg(long)]
    pub(crate) keep_going: bool,
}

impl OutageArgs {
    /// Returns a workload with what these flags add to it.
    pub(crate) fn added_to(&self, file: WorkloadFile) -> Result<WorkloadFile> {
        // What is done to a store at an instant may come before its first success.
        let keep_going = file.keep_going || self.keep_going || !self.event.is_empty();
        let file = WorkloadFile { keep_going, ..file };
        if !self.verify_acked {
            return Ok(file);
        }
        file.with_read_back().map_err(|refused| {
            anyhow!(refused).context("--verify-acked: the workload cannot be read back")
        })
    }
}

/// A command and when it is to be run: `30s:docker kill node-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventArg(pub(crate) EventAsked);

impl FromStr for EventArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = "give a time and a command, such as 30s:'docker kill node-3'";
        let (after, command) = text.split_once(':').ok_or(form)?;
        let after = parse_duration(after).map_err(|error| format!("{error}; {form}"))?;
        let command = command.trim();
        match command.is_empty() {
            true => Err(form.to_owned()),
            false => Ok(Self(EventAsked { after, command: command.to_owned() })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_event_is_a_time_and_a_command() {
        let event: EventArg = "1m30s: kill -9 $(cat a:b)".parse().unwrap();
        assert_eq!(event.0.after, Duration::from_secs(90));
        assert_eq!(event.0.command, "kill -9 $(cat a:b)");
        for text in ["30s", "30s:", "30s:  ", "soon:true", "-1s:true", ":true"] {
            let error = text.parse::<EventArg>().unwrap_err();
            assert!(error.contains("docker kill"), "{text}: {error}");
        }
    }
}
