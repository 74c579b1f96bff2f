//! Why an exchange did not come to a whole answer.

use std::fmt;

use plimsoll_model::{ErrorClass, Moment};

/// What kind of failure ended an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeErrorKind {
    /// The host's name has no address.
    Resolve,
    /// No connection could be made.
    Connect,
    /// No connection came about in time.
    ConnectTimeout,
    /// The connection stands, but the exchange did not go on in time.
    Stalled,
    /// The TLS handshake failed.
    Tls,
    /// The connection broke off before the answer's head was there, or with an error afterwards.
    Reset,
    /// The connection ended inside the answer's body.
    Truncated,
    /// The answer broke the rules of HTTP/1.1.
    Protocol,
}

impl ExchangeErrorKind {
    /// Returns what it means.
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::Resolve | Self::Connect | Self::Tls => ErrorClass::Connect,
            Self::ConnectTimeout | Self::Stalled => ErrorClass::Timeout,
            Self::Reset => ErrorClass::Reset,
            Self::Truncated => ErrorClass::Truncated,
            Self::Protocol => ErrorClass::Protocol,
        }
    }

    /// Tells whether no connection was made, so that nothing was sent.
    pub const fn is_connect(self) -> bool {
        matches!(self, Self::Resolve | Self::Connect | Self::ConnectTimeout | Self::Tls)
    }
}

/// An exchange that failed, with what is known of it until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeError {
    /// What kind of failure.
    pub kind: ExchangeErrorKind,
    /// One clear lower-case sentence that names the address.
    pub message: String,
    /// First byte of the answer, if one came.
    pub first_byte: Option<Moment>,
    /// When the last byte of the request's body had been handed to the socket, if it came to that.
    pub last_byte_sent: Option<Moment>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// When the failure was known.
    pub end: Moment,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExchangeError {}

/// A failure without its moments; the client adds them.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ExchangeErrorKind,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(kind: ExchangeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
