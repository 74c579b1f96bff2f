//! Why no credentials could be had. No secret stands in any of it.

use std::io;
use std::path::PathBuf;

use plimsoll_http::{ExchangeError, TlsSetupError};
use plimsoll_model::WallTime;
use thiserror::Error;

use crate::Source;

/// Why no credentials could be had.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// No source has any.
    #[error(
        "no credentials found: looked at {given}, AWS_ACCESS_KEY_ID, MINIO_ROOT_USER, the profile \
         file, a web identity, the container and the instance role"
    )]
    NotFound {
        /// What the caller's own key is called.
        given: &'static str,
    },
    /// They cannot be used any more.
    #[error("the credentials from {from} have expired at {at}")]
    Expired {
        /// Where they are from.
        from: Source,
        /// Since when.
        at: WallTime,
    },
    /// A key was given without another that goes with it.
    #[error("{given} is given without {missing}")]
    HalfGiven {
        /// What was given.
        given: String,
        /// What was not.
        missing: &'static str,
    },
    /// A variable is set without another that goes with it.
    #[error("{set} is set without {missing}")]
    HalfSet {
        /// The one.
        set: &'static str,
        /// The other.
        missing: &'static str,
    },
    /// A variable that is needed is not set.
    #[error("{0} is not set")]
    Unset(&'static str),
    /// The profile that was asked for is nowhere.
    #[error("there is no profile `{0}` (AWS_PROFILE) in ~/.aws or the named files")]
    NoProfile(String),
    /// A profile without keys.
    #[error("profile `{0}` holds no keys")]
    EmptyProfile(String),
    /// A profile with half of its keys.
    #[error("profile `{profile}` has an {has} without {lacks}")]
    HalfProfile {
        /// Its name.
        profile: String,
        /// The setting that is there.
        has: &'static str,
        /// The setting that is not.
        lacks: &'static str,
    },
    /// A profile that gets its keys in a way that is not known here.
    #[error(
        "profile `{profile}` gets its keys by `{way}`, which is not supported; export them with \
         `aws configure export-credentials --format env`"
    )]
    OtherWay {
        /// Its name.
        profile: String,
        /// The setting that says so.
        way: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    Unreadable {
        /// What it should hold.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A token without a character.
    #[error("the token is empty")]
    EmptyToken,
    /// A variable does not name a service that may be asked.
    #[error("{variable}: {reason}")]
    Address {
        /// Which one.
        variable: &'static str,
        /// Why not.
        reason: String,
    },
    /// A request that cannot be sent.
    #[error("the value for {0} holds a character that a request cannot hold")]
    Field(String),
    /// A service keeps silent.
    #[error("{0} does not answer")]
    Silent(String),
    /// A service cannot be reached, or breaks off.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A service answers something else than credentials.
    #[error("{service} answered {status}{remark}")]
    Refused {
        /// Which one.
        service: String,
        /// The status.
        status: u16,
        /// To what, or what it says of it.
        remark: String,
    },
    /// An answer from which no keys can be read.
    #[error("{0}")]
    Answer(String),
    /// Connections cannot be encrypted.
    #[error("cannot set TLS up")]
    Tls(#[source] TlsSetupError),
    /// There is no event loop.
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
    /// What a place that was to have credentials says of it.
    #[error("{place}")]
    At {
        /// The place: a variable, or what the caller calls it.
        place: &'static str,
        /// What went wrong there.
        #[source]
        source: Box<CredentialsError>,
    },
}

impl CredentialsError {
    /// Returns the error of an answer in these words.
    pub(crate) fn answer(words: impl Into<String>) -> Self {
        Self::Answer(words.into())
    }
}

/// Says where an error is from.
pub(crate) trait At<T> {
    fn at(self, place: &'static str) -> Result<T, CredentialsError>;
}

impl<T> At<T> for Result<T, CredentialsError> {
    fn at(self, place: &'static str) -> Self {
        self.map_err(|error| CredentialsError::At { place, source: Box::new(error) })
    }
}
