//! How an operation ended, as a class of its own for each meaning.

/// The class of an operation's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ErrorClass {
    /// It did what was asked, and the answer was right.
    Ok = 0,
    /// The object or bucket is not there (404).
    NotFound = 1,
    /// The credentials are not good enough (401, 403).
    Denied = 2,
    /// A condition of the request did not hold (412, 304, 409).
    Precondition = 3,
    /// The store shed load (503 SlowDown, 429).
    Throttled = 4,
    /// The store failed (other 5xx).
    Server = 5,
    /// The store refused the request (other 4xx).
    Client = 6,
    /// No answer in time.
    Timeout = 7,
    /// No connection could be made (name, port, TLS).
    Connect = 8,
    /// The connection broke off.
    Reset = 9,
    /// The content was shorter or longer than it should be.
    Truncated = 10,
    /// The content was wrong.
    Corrupt = 11,
    /// The answer could not be understood, or was a success that held an error.
    Protocol = 12,
    /// The operating system refused (errno).
    Io = 13,
    /// It failed, and a record made elsewhere does not say how.
    Unknown = 14,
    /// The store has no room that it could assign yet and is making some (SeaweedFS: volume growth
    /// in progress).
    Growing = 15,
}

impl ErrorClass {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::Ok,
        Self::NotFound,
        Self::Denied,
        Self::Precondition,
        Self::Throttled,
        Self::Server,
        Self::Client,
        Self::Timeout,
        Self::Connect,
        Self::Reset,
        Self::Truncated,
        Self::Corrupt,
        Self::Protocol,
        Self::Io,
        Self::Unknown,
        Self::Growing,
    ];

    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::Precondition => "precondition",
            Self::Throttled => "throttled",
            Self::Server => "server",
            Self::Client => "client",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::Protocol => "protocol",
            Self::Io => "io",
            Self::Unknown => "unknown",
            Self::Growing => "growing",
        }
    }

    /// Returns the class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns the class of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Tells whether the operation did what was asked.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Tells whether another attempt may succeed, so that a visible retry makes sense.
    pub const fn is_transient(self) -> bool {
        use ErrorClass::{Connect, Growing, Reset, Server, Throttled, Timeout};
        matches!(self, Throttled | Server | Timeout | Connect | Reset | Growing)
    }
}
