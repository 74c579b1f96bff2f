//! Why a job file is refused, and where.

use std::fmt;

/// A place in a job file or on a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {problem}")]
pub struct FioError {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

/// What is wrong with a job file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not written as a job file is.
    #[error("{0}")]
    Form(String),
    /// Neither fio nor we have such an option.
    #[error("`{option}` is no option of fio{}", did_you_mean(nearest))]
    Unknown {
        /// The option.
        option: String,
        /// The option that is spelled most like it.
        nearest: Option<&'static str>,
    },
    /// fio has the option and we do not follow it.
    #[error("`{written}` is not taken: {why}")]
    NotTaken {
        /// The option with its value.
        written: String,
        /// Why, or what to do.
        why: String,
    },
    /// The value makes no sense, or not the one it seems to.
    #[error("`{written}`: {why}")]
    Value {
        /// The option with its value.
        written: String,
        /// Why, or what to write.
        why: String,
    },
    /// Options that cannot hold together, or one that is missing.
    #[error("{0}")]
    Job(String),
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

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
