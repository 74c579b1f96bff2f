//! Why a command line is refused.

/// What is wrong with a command line of mdtest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MdtestError {
    /// It is not written as mdtest's are, or flags of it do not go together.
    #[error("{0}")]
    Form(String),
    /// Neither mdtest nor we have such a flag.
    #[error("`{flag}` is no flag of mdtest{}", did_you_mean(nearest))]
    Unknown {
        /// The flag.
        flag: String,
        /// The flag that was meant, if one looks like it.
        nearest: Option<String>,
    },
    /// mdtest has the flag and we do not follow it.
    #[error("`{written}` is not taken: {why}")]
    NotTaken {
        /// The flag with its value.
        written: String,
        /// Why, or what to do.
        why: String,
    },
    /// The value makes no sense, or is one that we do not follow.
    #[error("`{written}`: {why}")]
    Value {
        /// The flag with its value.
        written: String,
        /// Why, or what to write.
        why: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
