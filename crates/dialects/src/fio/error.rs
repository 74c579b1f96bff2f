//! Why a job file is refused, and where.

use std::fmt;

use super::each_once;
use crate::command_line::LineError;

/// A place in a job file or on a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, or what stands for it.
    pub file: String,
    /// The 1-based number of the line, where there are lines.
    pub line: Option<u32>,
    /// The section.
    pub section: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match &self.section {
            Some(section) => write!(f, ": [{section}]"),
            None => f.write_str(":"),
        }
    }
}

/// What is wrong with a job file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{place} {problem}")]
pub struct FioError {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

impl FioError {
    /// Returns all of several errors as one, each once; `None` without any.
    pub(super) fn all(errors: Vec<Self>) -> Option<Self> {
        let mut kept = each_once(errors.into_iter().flat_map(Self::each).collect()).into_iter();
        let Self { place, problem } = kept.next()?;
        let more: Vec<Self> = kept.collect();
        Some(match more.is_empty() {
            true => Self { place, problem },
            false => Self { place, problem: Problem::Several { first: Box::new(problem), more } },
        })
    }

    fn each(self) -> Vec<Self> {
        match self.problem {
            Problem::Several { first, more } => {
                let first = Self { place: self.place, problem: *first };
                [first].into_iter().chain(more).collect()
            }
            problem => vec![Self { place: self.place, problem }],
        }
    }
}

/// What is wrong with a job file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Problem {
    /// It is not written as a job file is.
    #[error("{0}")]
    Form(String),
    /// An option or its value is refused.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Options that cannot hold together, or one that is missing.
    #[error("{0}")]
    Job(String),
    /// Several things; the first is where the error is.
    #[error("{first}{}", more.iter().map(|error| format!("\n{error}")).collect::<String>())]
    Several {
        /// The first.
        first: Box<Problem>,
        /// The others, each with its place.
        more: Vec<FioError>,
    },
    /// A file includes itself, by way of others or not.
    #[error("`include` goes round in a circle: {}", chain.join(" → "))]
    Circular {
        /// The files, outermost first.
        chain: Vec<String>,
    },
    /// Files include files too deeply.
    #[error("`include` goes deeper than {max} files: {}", chain.join(" → "))]
    TooDeep {
        /// How deep it may go.
        max: usize,
        /// The files, outermost first.
        chain: Vec<String>,
    },
    /// A file cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
}
