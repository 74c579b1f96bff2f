//! How a workload of the queue stands, and in which language it is written.

use serde::{Deserialize, Serialize};

/// How a workload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// It ran to its end, and all is as it should be.
    Finished,
    /// It ran to its end, and too much of it failed.
    Failed,
    /// It could not go on: an error, or the end of the console.
    Terminated,
    /// Somebody cancelled it.
    Cancelled,
}

impl State {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Finished,
        Self::Failed,
        Self::Terminated,
        Self::Cancelled,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns COSBench's word for it.
    pub fn cosbench_word(self) -> &'static str {
        match self {
            Self::Queued => "queuing",
            Self::Running => "processing",
            other => other.name(),
        }
    }

    /// Returns the one of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Tells whether nothing more comes of it.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// In which language a workload is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// COSBench's XML.
    Cosbench,
    /// Plimsoll's own YAML.
    Plimsoll,
    /// A job file of fio's.
    Fio,
}

impl SourceKind {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Cosbench, Self::Plimsoll, Self::Fio];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosbench => "cosbench",
            Self::Plimsoll => "plimsoll",
            Self::Fio => "fio",
        }
    }

    /// Returns the one of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns what a file of it is called.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Cosbench => "workload-config.xml",
            Self::Plimsoll => "workload.yaml",
            Self::Fio => "job.fio",
        }
    }

    /// Returns the media type of a file of it.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Cosbench => "application/xml",
            Self::Plimsoll => "application/yaml",
            Self::Fio => "text/plain; charset=utf-8",
        }
    }
}

/// The number of a workload, which people write as `w7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub i64);

impl Number {
    /// Returns the number that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('w')?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 18;
        let number = is_plain.then(|| digits.parse().ok()).flatten()?;
        (number > 0 && !digits.starts_with('0')).then_some(Self(number))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "w{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_as_a_number_is_one() {
        assert_eq!(Number::parse("w17"), Some(Number(17)));
        for text in ["", "w", "17", "w0", "w01", "w-1", "w+1", "w1 ", "W1", "w../x", "w٣"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
        assert_eq!(Number::parse(&format!("w{}", "9".repeat(40))), None);
    }

    #[test]
    fn names_are_those_of_the_api() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
            assert_eq!(State::of_name(state.name()), Some(state));
        }
        for kind in SourceKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(SourceKind::of_name(kind.name()), Some(kind));
        }
    }
}
