//! Keeps the secrets of a session out of what its store says: some stores and gateways repeat the
//! headers of a request in the error they answer with, and errors go into records and reports.

use std::cell::RefCell;

use plimsoll_driver::REDACTED;
use plimsoll_model::Secret;

/// The secrets of the requests that a connection makes. Shared by the connection's answers.
#[derive(Debug, Default)]
pub(crate) struct Redaction(RefCell<Vec<Secret>>);

impl Redaction {
    /// Hides these from now on, and no others.
    pub(crate) fn hide(&self, secrets: impl Iterator<Item = Secret>) {
        let mut secrets: Vec<Secret> =
            secrets.filter(|secret| !secret.expose().is_empty()).collect();
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        *self.0.borrow_mut() = secrets;
    }

    /// Returns a text without the secrets. It has to be whole: of one that was cut, a part of a
    /// secret could be left.
    pub(crate) fn apply(&self, text: &str) -> String {
        let hidden = |text: String, secret: &Secret| text.replace(secret.expose(), REDACTED);
        self.0.borrow().iter().fold(text.to_owned(), hidden)
    }
}
