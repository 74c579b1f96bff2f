//! Why a command line or a file of `warp run` is refused.

/// What is wrong with a command line of warp's, or a file of `warp run`. No secret stands in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WarpArgError {
    /// It is not written as warp's are, or flags of it do not go together.
    #[error("{0}")]
    Form(String),
    /// Neither warp nor we have such a command.
    #[error("`{name}` is no command of warp{}", did_you_mean(nearest.as_deref()))]
    UnknownCommand {
        /// The command.
        name: String,
        /// The command that was meant, if one looks like it.
        nearest: Option<&'static str>,
    },
    /// Neither warp nor we have such a flag, or its command has not.
    #[error("{written} is no flag of `warp {command}`{hint}")]
    UnknownFlag {
        /// The flag or key.
        written: String,
        /// The command.
        command: &'static str,
        /// The flag that was meant, or the commands that have it; may be empty.
        hint: String,
    },
    /// warp has it and we do not follow it.
    #[error("{written} is not taken: {why}")]
    NotTaken {
        /// The flag with its value, or the command.
        written: String,
        /// Why, or what to do.
        why: String,
    },
    /// The value makes no sense, or is one that we do not follow.
    #[error("{written}: {why}")]
    Value {
        /// The flag with its value.
        written: String,
        /// Why, or what to write.
        why: String,
    },
}

/// Returns the end of a sentence that suggests another word.
pub(super) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
