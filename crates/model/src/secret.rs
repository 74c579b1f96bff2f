//! What no message, record or report may hold: values that cannot be printed.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use zeroize::Zeroize;

/// A text that nothing shows, and that leaves no copy in memory when it goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Secret {
    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shows_it() {
        let secret = Secret::from("hush".to_owned());
        assert_eq!((format!("{secret:?}"), secret.expose()), ("Secret".to_owned(), "hush"));
    }
}
