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

/// What stands in a text in the place of a secret.
pub const REDACTED: &str = "*REDACTED*";

/// Returns a text without secrets, which others may have repeated in it. The text has to be whole:
/// of one that was cut, a part of a secret could be left.
pub fn redacted<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let mut secrets: Vec<&str> = secrets.into_iter().filter(|secret| !secret.is_empty()).collect();
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
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

    #[test]
    fn a_text_keeps_no_part_of_a_secret() {
        let told = redacted("hush-hush, hush", ["", "hush", "hush-hush"]);
        assert_eq!(told, "*REDACTED*, *REDACTED*");
        assert_eq!(redacted("as it was", ["", "hush"]), "as it was");
    }
}
