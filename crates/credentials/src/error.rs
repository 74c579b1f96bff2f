//! Why no credentials could be had. No secret stands in any of it.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use plimsoll_model::WallTime;

use crate::Source;
use crate::amazon::PLACES;

/// How much of what others say is shown.
const MESSAGE_CHARS_MAX: usize = 300;
/// What errors of Amazon's libraries say that only wrap others.
const GENERALITIES: [&str; 8] = [
    "an error occurred while loading credentials",
    "unexpected credentials error",
    "the credentials provider was not properly configured",
    "the credential provider was not enabled",
    "dispatch failure",
    "service error",
    "io error",
    "other",
];

/// Why no credentials could be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// No source has any.
    #[error("no credentials found: looked at {given}, {places}")]
    NotFound {
        /// What the caller's own key is called.
        given: &'static str,
        /// Where else they were looked for.
        places: String,
    },
    /// They cannot be used any more.
    #[error("the credentials from {from} have expired at {}", to_the_second(*at))]
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
    /// What names a place that only the feature `cloud` can ask.
    #[error("{0}: this build takes keys that are given, or in the environment, and no others")]
    LeftOut(&'static str),
    /// The profile that was asked for is nowhere.
    #[error("there is no profile `{0}` (AWS_PROFILE) in ~/.aws or the named files")]
    NoProfile(String),
    /// A profile without keys.
    #[error("profile `{0}` holds no keys")]
    EmptyProfile(String),
    /// Profiles that name each other as sources, or one that names itself.
    #[error("the sources of profile `{profile}` (source_profile) go in a circle: {path}")]
    SourceLoop {
        /// The profile that was to be used.
        profile: String,
        /// The profiles on the way.
        path: String,
    },
    /// Profiles that name each other as sources without end.
    #[error("profile `{0}` leads from source to source (source_profile), more than 32 of them")]
    ManySources(String),
    /// A profile whose source is nowhere.
    #[error("profile `{profile}` names `{missing}` as its source, and there is no such profile")]
    NoSource {
        /// The one.
        profile: String,
        /// The other.
        missing: String,
    },
    /// The command of a profile takes too long.
    #[error(
        "profile `{profile}`: its credential_process has given no keys within {seconds} s and is \
         not waited for any longer"
    )]
    SlowProcess {
        /// The profile.
        profile: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// The command of a profile gives no keys.
    #[error("profile `{profile}`: its credential_process gives no keys: {reason}")]
    Process {
        /// The profile.
        profile: String,
        /// Why not.
        reason: String,
    },
    /// The login of a profile cannot be used.
    #[error(
        "profile `{profile}`: its SSO login gives no keys ({reason}); sign in with `aws sso login \
         --profile {profile}`"
    )]
    SignOn {
        /// The profile.
        profile: String,
        /// Why not.
        reason: String,
    },
    /// Something about a profile.
    #[error("profile `{profile}`")]
    OfProfile {
        /// The profile.
        profile: String,
        /// What is wrong.
        #[source]
        source: Box<CredentialsError>,
    },
    /// The profile files cannot be made out.
    #[error("cannot make out the profile files")]
    ProfileFile(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A source that had keys has none any more.
    #[error("{from} has no credentials any more")]
    Gone {
        /// Which one.
        from: Source,
    },
    /// A place has not answered in time.
    #[error("nothing came in time")]
    Slow,
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
    /// What a service or a command has said or done instead of handing out keys.
    #[error("{0}")]
    Answer(String),
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
    /// Says of which profile it is.
    pub(crate) fn of_profile(self, profile: &str) -> Self {
        Self::OfProfile { profile: profile.to_owned(), source: Box::new(self) }
    }
}

/// Returns an error with its causes, as one short line.
pub(crate) fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let causes =
        std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source());
    shown(&causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
}

/// Returns an error of Amazon's libraries with its causes, as one short line, without those that
/// say only that there is a further one, and without saying anything twice. Secrets are taken out
/// before it is cut: a part of one could be left.
pub(crate) fn without_generalities(
    error: &(dyn Error + 'static),
    without_secrets: &dyn Fn(&str) -> String,
) -> String {
    let all =
        std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    let mut told: Vec<String> = Vec::new();
    for text in all.map(ToString::to_string) {
        // Answers are shown whole there, and may hold keys.
        let text = text.split(". Response {").next().unwrap_or_default().to_owned();
        let is_new = !told.iter().any(|said| said.contains(&text));
        if is_new && !GENERALITIES.contains(&text.as_str()) {
            told.push(text);
        }
    }
    match told.is_empty() {
        true => shown(&without_secrets(&error.to_string())),
        false => shown(&without_secrets(&told.join(": "))),
    }
}

/// Returns text of others as one short line.
pub(crate) fn shown(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(MESSAGE_CHARS_MAX).collect()
}

/// Returns where credentials were looked for after those that are given, and what the last place
/// said, where that was something.
pub(crate) fn places(last: Option<&CredentialsError>) -> String {
    let cause = last.map(|error| error.source().unwrap_or(error));
    let said = cause.map(|cause| format!(" ({})", in_one_line(cause))).unwrap_or_default();
    format!("{PLACES}{said}")
}

/// Returns a time without its fraction of a second.
fn to_the_second(at: WallTime) -> String {
    at.to_string().split_once('.').map_or_else(|| at.to_string(), |(begin, _)| format!("{begin}Z"))
}

/// Says where an error is from.
pub(crate) trait At<T> {
    fn at(self, place: &'static str) -> Result<T, CredentialsError>;
}

impl<T> At<T> for Result<T, CredentialsError> {
    fn at(self, place: &'static str) -> Self {
        self.map_err(|error| match error {
            // It says the place itself.
            CredentialsError::LeftOut(_) => error,
            error => CredentialsError::At { place, source: Box::new(error) },
        })
    }
}
