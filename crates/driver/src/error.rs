//! A failed operation as a driver reports it.

use std::fmt;

use plimsoll_model::ErrorClass;

/// Why an operation failed: a meaning, the protocol's status, and the first text of the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The meaning.
    pub class: ErrorClass,
    /// The protocol's own number (HTTP status, errno), where there is one.
    pub status: Option<u16>,
    /// What happened, one line, lower case, without secrets.
    pub message: String,
}

impl DriverError {
    /// Returns an error without a status.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        debug_assert!(!class.is_ok());
        Self { class, status: None, message: message.into() }
    }

    /// Returns the error that a kind of target knows no such operation.
    pub fn unsupported() -> Self {
        Self::new(ErrorClass::Client, "this kind of target knows no such operation")
    }

    /// Returns an error with the protocol's status.
    pub fn with_status(class: ErrorClass, status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), ..Self::new(class, message) }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{} ({status}): {}", self.class.name(), self.message),
            None => write!(f, "{}: {}", self.class.name(), self.message),
        }
    }
}

impl std::error::Error for DriverError {}

/// The longest text of a cause that is kept.
pub const MESSAGE_CHARS_MAX: usize = 300;

/// Returns what a target said on one line, cut to [`MESSAGE_CHARS_MAX`], without what a terminal
/// would obey.
pub fn one_line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    if let Some((cut, _)) = out.char_indices().nth(MESSAGE_CHARS_MAX) {
        out.truncate(cut);
        out.push('…');
    }
    out
}
