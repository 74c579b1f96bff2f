//! What a report says of commands that the user had run at instants of a stage.

use std::time::Duration;

use plimsoll_model::Moment;
use serde::Serialize;

use crate::format::duration;
use crate::serial;

/// How much of a command and of what it wrote is shown.
const CHARS_MAX: usize = 60;

/// A command of the user's own, which was run at an instant of the stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventReport {
    /// How long after the start of the first measured stage it was to begin.
    #[serde(rename = "asked_after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub asked_after: Duration,
    /// The command, without secrets.
    pub command: String,
    /// When its shell was started, since the run's epoch; null where it was not.
    pub began_ns: Option<u64>,
    /// When its shell had ended; null where it was not started.
    pub ended_ns: Option<u64>,
    /// What its shell ended with; null where it did not end by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended its shell.
    pub signal: Option<i32>,
    /// The beginning of what it wrote, without secrets.
    pub output: String,
    /// How much it wrote in all.
    pub output_bytes: u64,
    /// Why it was not run, or was ended by the run; null where it ended by itself.
    pub reason: Option<String>,
}

impl EventReport {
    /// Returns it in one line, for a stage that began then.
    pub(crate) fn line(&self, stage_started: Moment) -> String {
        let at = match self.began_ns {
            Some(began) => Moment::from_ns(began).since(stage_started),
            None => self.asked_after,
        };
        let ended = match (&self.reason, self.exit_code, self.signal) {
            (Some(reason), ..) => reason.clone(),
            (None, Some(code), _) => format!("exit status {code}"),
            (None, None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None, None) => "how it ended is not known".to_owned(),
        };
        let took = self.began_ns.zip(self.ended_ns).map_or(String::new(), |(began, ended)| {
            format!(" after {}", duration(Duration::from_nanos(ended.saturating_sub(began))))
        });
        let failed = self.exit_code != Some(0);
        let wrote = self.output.lines().rfind(|line| !line.trim().is_empty());
        let wrote = wrote.filter(|_| failed).map(|line| format!(": {}", cut(line)));
        format!(
            "+{} `{}`, {ended}{took}{}",
            duration(at),
            cut(&self.command),
            wrote.unwrap_or_default()
        )
    }

    /// Returns what stands for it in the legend of a chart.
    pub(crate) fn name(&self) -> String {
        cut(&self.command)
    }
}

fn cut(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() > CHARS_MAX {
        true => text.chars().take(CHARS_MAX - 1).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(exit_code: Option<i32>, reason: Option<&str>) -> EventReport {
        EventReport {
            asked_after: Duration::from_secs(30),
            command: "docker kill\n node-3".to_owned(),
            began_ns: Some(41_000_100_000),
            ended_ns: Some(41_250_100_000),
            exit_code,
            signal: None,
            output: "so\nno such container\n".to_owned(),
            output_bytes: 21,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn an_event_is_told_in_one_line() {
        let started = Moment::from_ns(11_000_000_000);
        assert_eq!(
            event(Some(0), None).line(started),
            "+30.0 s `docker kill node-3`, exit status 0 after 250 ms"
        );
        assert_eq!(
            event(Some(1), None).line(started),
            "+30.0 s `docker kill node-3`, exit status 1 after 250 ms: no such container"
        );
        let not_run = EventReport {
            began_ns: None,
            ended_ns: None,
            output: String::new(),
            ..event(None, Some("not run: the stage had ended before"))
        };
        assert_eq!(
            not_run.line(started),
            "+30.0 s `docker kill node-3`, not run: the stage had ended before"
        );
    }
}
