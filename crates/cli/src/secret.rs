//! What no message, record or report may hold: values that cannot be printed.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// What stands for a secret wherever a command line is shown.
pub(crate) const HIDDEN: &str = "*REDACTED*";

/// A text that nothing shows. An argument of this type is left out of the command line that is kept
/// with a run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Returns the text.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
