//! Who asks, found out as other tools of S3 do: keys that are given, environment, profiles, web
//! identity, container, instance role; and found out again before what was found expires.
//!
//! What is Amazon's own is left to `aws-config`, whose exchanges go over our own client. It reads
//! the environment of the process itself; profiles and tokens that are named here are read through
//! what the caller hands in. No secret stands in an error or in a `Debug` form.
//!
//! Without the feature `cloud` there is no `aws-config`: keys that are given and those of the
//! environment are all, and whoever asks for more is refused.
#![cfg_attr(
    not(feature = "cloud"),
    allow(dead_code, reason = "what only `amazon` calls; the default build checks it")
)]

#[cfg_attr(not(feature = "cloud"), path = "without_amazon.rs")]
mod amazon;
mod error;
mod refresh;
#[cfg(feature = "cloud")]
#[cfg(test)]
mod tests;
mod variables;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_http::{Endpoint, Proxies, TlsOptions};
use plimsoll_model::{Moment, Secret, SharedClock, WallTime, redacted};

pub use error::CredentialsError;
pub use refresh::{Refreshed, Refresher};

use error::At;

type Result<T> = std::result::Result<T, CredentialsError>;

/// What a token's file begins with where the token itself could stand.
const FILE_SCHEME: &str = "file:";
/// More than any profile file, and than any token, has.
const PROFILE_BYTES_MAX: u64 = 4 << 20;
const TOKEN_BYTES_MAX: u64 = 1 << 20;
/// The profile that nobody needs to name.
const DEFAULT: &str = "default";
const INSTANCE_ROLE: &str = "the instance's role";
const WEB_IDENTITY: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

/// How long one place may take to hand out keys, a command of a profile among them, unless another
/// time is asked for.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What messages call that which the caller was given, such as flags.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// All of the keys.
    pub keys: &'static str,
    /// The access key.
    pub access_key: &'static str,
    /// The secret key.
    pub secret_key: &'static str,
    /// The session token.
    pub session_token: &'static str,
    /// The web token.
    pub web_token: &'static str,
}

/// Keys that the caller was given; an empty one counts as none.
#[derive(Clone, Debug)]
pub struct StaticKeys {
    /// The public name of the key.
    pub access_key: Option<Secret>,
    /// Its secret.
    pub secret_key: Option<Secret>,
    /// The token that goes with a temporary key.
    pub session_token: Option<Secret>,
    /// What messages call them.
    pub names: Names,
}

/// Where credentials are looked for.
#[derive(Clone)]
pub struct Chain {
    /// The keys that win over everything else.
    pub given: StaticKeys,
    /// A token or `file:PATH`. Taken to the store, or to `AWS_ENDPOINT_URL_STS`, in exchange for
    /// keys; nothing else is tried then.
    pub web_token: Option<Secret>,
    /// The store's first endpoint.
    pub store: Endpoint,
    /// Whether it speaks TLS.
    pub store_tls: bool,
    /// Whom to trust where TLS is spoken to the store.
    pub trust: TlsOptions,
    /// The same where it is spoken to anybody else: what a token service is shown is worth more
    /// than one store.
    pub services_trust: TlsOptions,
    /// The proxies on the way to a token service; the machine's own services are asked directly.
    pub proxies: Option<Proxies>,
    /// Secrets that services and files have handed out so far.
    pub known: KnownSecrets,
    /// The run's clock.
    pub clock: SharedClock,
    /// The wall time at its epoch.
    pub wall_epoch: WallTime,
    /// How long one place may take.
    pub patience: Duration,
    /// The environment of this process.
    pub variable: fn(&str) -> Option<String>,
    /// Returns the text of a file of at most so many bytes.
    pub read: fn(&Path, u64) -> io::Result<String>,
    /// Runs a command line by a shell and returns what came of it; `None` where that takes longer,
    /// and then nothing of it goes on.
    pub run: fn(&str, Duration) -> io::Result<Option<Ran>>,
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its output, which may hold keys.
    pub output: Secret,
}

/// Where credentials were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The caller has them; what it calls them.
    StaticKeys(&'static str),
    /// The environment; the variable of the access key.
    Variable(&'static str),
    /// The profile files; the profile.
    Profile(String),
    /// A token service, for a token that the caller has; what it calls that.
    WebToken(&'static str),
    /// A token service, for the token of the environment.
    WebIdentity,
    /// The container that we run in.
    Container,
    /// The instance that we run on.
    Instance,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaticKeys(name) => f.write_str(name),
            Self::Variable(name) => write!(f, "the environment ({name})"),
            Self::Profile(name) => write!(f, "profile `{name}`"),
            Self::WebToken(name) => write!(f, "the token service ({name})"),
            Self::WebIdentity => write!(f, "the web identity ({WEB_IDENTITY})"),
            Self::Container => f.write_str("the container"),
            Self::Instance => f.write_str(INSTANCE_ROLE),
        }
    }
}

/// Keys as a source hands them out. Their `Debug` form holds no secret.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The public name of the key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// The token that goes with a temporary key.
    pub session_token: Option<Secret>,
    /// When they cease to be valid; `None` for never, or unknown.
    pub expires: Option<WallTime>,
}

/// Secrets that were sent or received, which no message may hold: services may repeat any of them.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<Mutex<VecDeque<Secret>>>);

/// How many of them are kept; older ones have long expired.
const KNOWN_MAX: usize = 256;

impl KnownSecrets {
    /// Adds those that are not known yet.
    pub(crate) fn add(&self, secrets: impl IntoIterator<Item = Secret>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if !secret.expose().is_empty() && !known.contains(&secret) {
                known.push_back(secret);
            }
        }
        while known.len() > KNOWN_MAX {
            known.pop_front();
        }
    }

    /// Returns a text without them.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        redacted(text, known.iter().map(Secret::expose))
    }
}

impl Keys {
    /// Returns what no message may hold.
    fn secrets(&self) -> Vec<Secret> {
        self.session_token.iter().chain([&self.secret_key]).cloned().collect()
    }
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// Who asks.
    pub keys: Keys,
    /// Where they are from.
    pub source: Source,
    /// The region that Amazon's tools would take with these keys, where they would know one.
    pub region: Option<String>,
}

impl Found {
    /// Returns when the keys expire, where that is before `end`.
    pub fn expire_before(&self, end: WallTime) -> Option<WallTime> {
        self.keys.expires.filter(|expires| *expires < end)
    }
}

impl StaticKeys {
    /// Returns the keys, if there are any.
    pub fn keys(&self) -> Result<Option<Keys>> {
        let given = |value: &Option<Secret>| value.clone().filter(|text| !text.expose().is_empty());
        let half = |given, missing| Err(CredentialsError::HalfGiven { given, missing });
        let names = self.names;
        match (given(&self.access_key), given(&self.secret_key), given(&self.session_token)) {
            (Some(access), Some(secret_key), session_token) => {
                let access_key = access.expose().to_owned();
                Ok(Some(Keys { access_key, secret_key, session_token, expires: None }))
            }
            (None, None, None) => Ok(None),
            (Some(_), None, _) => half(names.access_key.to_owned(), names.secret_key),
            (None, ..) => {
                half(format!("{} or {}", names.secret_key, names.session_token), names.access_key)
            }
        }
    }

    /// Tells whether any is given, were it empty.
    pub fn is_any(&self) -> bool {
        [&self.access_key, &self.secret_key, &self.session_token].iter().any(|it| it.is_some())
    }
}

impl Chain {
    /// Returns the credentials of the first source that has any, asking anew each time; it is an
    /// error of its own that none has.
    pub fn resolve(&self) -> Result<Found> {
        let found = self.first()?;
        self.refuse_expired(&found.keys, &found.source)?;
        Ok(found)
    }

    fn refuse_expired(&self, keys: &Keys, from: &Source) -> Result<()> {
        match keys.expires.filter(|expires| *expires <= self.now()) {
            Some(at) => Err(CredentialsError::Expired { from: from.clone(), at }),
            None => Ok(()),
        }
    }

    /// Returns the wall time.
    fn now(&self) -> WallTime {
        self.wall_epoch.after(self.clock.now().since(Moment::EPOCH))
    }

    fn first(&self) -> Result<Found> {
        let names = self.given.names;
        if self.web_token.is_some() {
            let source = Source::WebToken(names.web_token);
            let keys = self.ask(&source)?;
            let keys = keys.ok_or_else(|| CredentialsError::Gone { from: source.clone() })?;
            return Ok(Found { keys, source, region: None });
        }
        if let Some(keys) = self.given.keys()? {
            let source = Source::StaticKeys(names.keys);
            return Ok(Found { keys, source, region: None });
        }
        if let Some((keys, name)) = variables::keys(self.variable)? {
            let region = name.starts_with("AWS_").then(|| self.region_of_variables()).flatten();
            return Ok(Found { keys, source: Source::Variable(name), region });
        }
        let profile = self.profile_name().unwrap_or_else(|| DEFAULT.to_owned());
        let region = || self.region_of_variables().or_else(|| self.region_of_profile());
        for source in [Source::Profile(profile), Source::WebIdentity, Source::Container] {
            if let Some(keys) = self.ask(&source)? {
                return Ok(Found { keys, source, region: region() });
            }
        }
        let (given, source) = (names.access_key, Source::Instance);
        match self.ask(&source) {
            Ok(Some(keys)) => Ok(Found { keys, source, region: region() }),
            Ok(None) => Err(CredentialsError::NotFound { given, places: error::places(None) }),
            // Something else may answer at its address, so that says only that it has no keys.
            Err(error) if !amazon::names_instance(self) => {
                let places = error::places(Some(&error));
                Err(CredentialsError::NotFound { given, places })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns what one source has, asking it anew.
    fn ask(&self, source: &Source) -> Result<Option<Keys>> {
        match source {
            Source::StaticKeys(_) => self.given.keys(),
            Source::Variable(_) => Ok(variables::keys(self.variable)?.map(|(keys, _)| keys)),
            Source::WebToken(name) => amazon::of_web_token(self, name).map(Some),
            Source::Profile(name) => amazon::of_profile(self, name),
            Source::WebIdentity => amazon::of_web_identity(self).at(WEB_IDENTITY),
            Source::Container => amazon::of_container(self).at("the container's credentials"),
            Source::Instance => amazon::of_instance(self).at(INSTANCE_ROLE),
        }
    }

    /// Returns the profile that is asked for.
    fn profile_name(&self) -> Option<String> {
        self.set("AWS_PROFILE").or_else(|| self.set("AWS_DEFAULT_PROFILE"))
    }

    fn region_of_variables(&self) -> Option<String> {
        self.set("AWS_REGION").or_else(|| self.set("AWS_DEFAULT_REGION"))
    }

    fn region_of_profile(&self) -> Option<String> {
        let name = self.profile_name().unwrap_or_else(|| DEFAULT.to_owned());
        amazon::region_of_profile(self, &name)
    }

    /// Returns the token that a text is, or that its file holds.
    fn token_of(&self, text: &str) -> Result<Secret> {
        let token = match text.strip_prefix(FILE_SCHEME) {
            None => text.to_owned(),
            Some(path) => self.token_file(path)?,
        };
        match token.trim() {
            "" => Err(CredentialsError::EmptyToken),
            token => Ok(Secret::from(token.to_owned())),
        }
    }

    fn token_file(&self, path: &str) -> Result<String> {
        let path = PathBuf::from(path);
        (self.read)(&path, TOKEN_BYTES_MAX).map_err(|source| CredentialsError::Unreadable {
            what: "the token from",
            path,
            source,
        })
    }

    /// Returns a variable that is set to something.
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }
}
