//! How an operation ended, as a class of its own for each meaning.

named! {
    /// Why a worker, a job or a stage ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EndReason {
        /// Everything was done.
        #[default]
        OutOfWork = "out-of-work",
        /// The time was up.
        Duration = "duration",
        /// The throughput was steady.
        Steady = "steady",
        /// The figures asked for were known well enough.
        Until = "until",
        /// An operation failed where the first failure was to end it.
        Failure = "failure",
        /// It was asked to stop.
        Stopped = "stopped",
    }
}

named! {
    /// What content that was read is instead of what it should be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum WrongKind {
        /// The content of another object of this run.
        OtherObject = "other-object",
        /// Another version of the same object.
        OldVersion = "old-version",
        /// The same version of the same object, from another offset.
        Shifted = "shifted",
        /// Zeros.
        Zeroed = "zeroed",
        /// One thing up to a point, another from there on.
        Torn = "torn",
        /// Right but for isolated bits or bytes.
        Flipped = "flipped",
        /// Too few bytes, all of them right.
        Short = "short",
        /// Too many bytes, the first of them right.
        Long = "long",
        /// None of these.
        Foreign = "foreign",
    }
}

impl WrongKind {
    /// Tells whether only the length is wrong.
    pub const fn is_length(self) -> bool {
        matches!(self, Self::Short | Self::Long)
    }
}

named! {
    /// The class of an operation's outcome.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum ErrorClass {
        /// It did what was asked, and the answer was right.
        Ok = "ok",
        /// The object or bucket is not there (404).
        NotFound = "not-found",
        /// The credentials are not good enough (401, 403).
        Denied = "denied",
        /// A condition of the request did not hold (412, 304, 409).
        Precondition = "precondition",
        /// The store shed load (503 SlowDown, 429).
        Throttled = "throttled",
        /// The store failed (other 5xx).
        Server = "server",
        /// The store refused the request (other 4xx).
        Client = "client",
        /// No answer in time.
        Timeout = "timeout",
        /// No connection could be made (name, port, TLS).
        Connect = "connect",
        /// The connection broke off.
        Reset = "reset",
        /// The content was shorter or longer than it should be.
        Truncated = "truncated",
        /// The content was wrong.
        Corrupt = "corrupt",
        /// The answer could not be understood, or was a success that held an error.
        Protocol = "protocol",
        /// The operating system refused (errno).
        Io = "io",
        /// It failed, and a record made elsewhere does not say how.
        Unknown = "unknown",
        /// The store has no room that it could assign yet and is making some (SeaweedFS: volume
        /// growth in progress).
        Growing = "growing",
    }
}

impl ErrorClass {
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
