//! Keeps the secrets of a session out of what its store says: some stores and gateways repeat the
//! headers of a request in the error they answer with, and errors go into records and reports.

use std::cell::RefCell;

use plimsoll_model::{Secret, redacted};

/// The secrets of the requests that a connection makes. Shared by the connection's answers.
#[derive(Debug, Default)]
pub(crate) struct Redaction(RefCell<Vec<Secret>>);

impl Redaction {
    /// Hides these from now on, and no others.
    pub(crate) fn hide(&self, secrets: impl Iterator<Item = Secret>) {
        *self.0.borrow_mut() = secrets.collect();
    }

    /// Returns a whole text without the secrets.
    pub(crate) fn apply(&self, text: &str) -> String {
        redacted(text, self.0.borrow().iter().map(Secret::expose))
    }
}
