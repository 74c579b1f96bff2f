//! Who asks, found out as other tools of S3 do: keys that are given, environment, profile file, web
//! identity, container, instance role.
//!
//! The environment and the files are read through what the caller hands in. No secret stands in an
//! error or in a `Debug` form.

mod answer;
mod error;
mod fetch;
mod metadata;
mod profile;
mod sts;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_http::{Endpoint, Proxies, TlsOptions};
use plimsoll_model::{Moment, SharedClock, WallTime};

pub use error::CredentialsError;

use error::At;
use fetch::Fetcher;
use sts::{StsDefault, WebIdentity};

type Result<T> = std::result::Result<T, CredentialsError>;

/// What a token's file begins with where the token itself could stand.
const FILE_SCHEME: &str = "file:";
/// More than any profile file, and than any token, has.
const PROFILE_BYTES_MAX: u64 = 4 << 20;
const TOKEN_BYTES_MAX: u64 = 1 << 20;
const WEB_IDENTITY: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

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
pub struct StaticKeys {
    /// The public name of the key.
    pub access_key: Option<String>,
    /// Its secret.
    pub secret_key: Option<String>,
    /// The token that goes with a temporary key.
    pub session_token: Option<String>,
    /// What messages call them.
    pub names: Names,
}

/// Where credentials are looked for.
pub struct Chain<'a> {
    /// The keys that win over everything else.
    pub given: StaticKeys,
    /// A token or `file:PATH`. Taken to the store, or to `AWS_ENDPOINT_URL_STS`, in exchange for
    /// keys; nothing else is tried then.
    pub web_token: Option<&'a str>,
    /// The store's first endpoint.
    pub store: &'a Endpoint,
    /// Whether it speaks TLS.
    pub store_tls: bool,
    /// Whom to trust where TLS is spoken.
    pub trust: TlsOptions,
    /// The proxies on the way to a token service; the machine's own services are asked directly.
    pub proxies: Option<Proxies>,
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// The wall time at its epoch.
    pub wall_epoch: WallTime,
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the text of a file of at most so many bytes.
    pub read: &'a dyn Fn(&Path, u64) -> io::Result<String>,
}

/// Where credentials were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The caller has them; what it calls them.
    StaticKeys(&'static str),
    /// The environment; the variable of the access key.
    Variable(&'static str),
    /// A profile file; the profile.
    Profile(String),
    /// A token service, for a token that the caller has; what it calls that.
    WebToken(&'static str),
    /// A token service, for the token of the environment.
    WebIdentity,
    /// The container that we run in.
    Container,
    /// The instance that we run on; its role.
    Instance(String),
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
            Self::Instance(role) => write!(f, "the instance's role `{role}`"),
        }
    }
}

/// Keys as a source hands them out.
#[derive(Clone)]
pub struct Keys {
    /// The public name of the key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
    /// The token that goes with a temporary key.
    pub session_token: Option<String>,
    /// When they cease to be valid; `None` for never, or unknown.
    pub expires: Option<WallTime>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

impl Keys {
    /// Returns keys that never cease to be valid.
    fn lasting(access_key: String, secret_key: String, session_token: Option<String>) -> Self {
        Self { access_key, secret_key, session_token, expires: None }
    }
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// Who asks.
    pub keys: Keys,
    /// Where they are from.
    pub source: Source,
}

impl Found {
    /// Returns a warning where a run that ends at `end` outlives the credentials: they are asked
    /// for before a run only.
    pub fn outlived(&self, end: WallTime) -> Option<String> {
        let expires = self.keys.expires.filter(|expires| *expires < end)?;
        Some(format!(
            "the credentials from {} expire at {expires}, before the run ends; operations after \
             that will be refused",
            self.source
        ))
    }
}

impl StaticKeys {
    /// Returns the keys, if there are any.
    pub fn keys(&self) -> Result<Option<Keys>> {
        let given = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
        let half = |given, missing| Err(CredentialsError::HalfGiven { given, missing });
        let names = self.names;
        match (given(&self.access_key), given(&self.secret_key), given(&self.session_token)) {
            (Some(access), Some(secret), token) => Ok(Some(Keys::lasting(access, secret, token))),
            (None, None, None) => Ok(None),
            (Some(_), None, _) => half(names.access_key.to_owned(), names.secret_key),
            (None, ..) => {
                half(format!("{} or {}", names.secret_key, names.session_token), names.access_key)
            }
        }
    }

    /// Returns the keys of Amazon's variables where none are given: what every tool of S3 takes.
    /// `None` without such variables, and where a key is given, were it empty.
    pub fn or_amazon_variables(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Found>> {
        if [&self.access_key, &self.secret_key, &self.session_token].iter().any(|it| it.is_some()) {
            return Ok(None);
        }
        of_variables(&VARIABLES[..1], variable)
    }
}

/// Amazon's names, those of its first tools, and MinIO's old and new ones.
const VARIABLES: [[&str; 3]; 4] = [
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
    ["AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN"],
    ["MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", ""],
    ["MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", ""],
];

fn of_variables(
    names: &[[&'static str; 3]],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Found>> {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    let half = |set, missing| Err(CredentialsError::HalfSet { set, missing });
    for &[access_name, secret_name, token_name] in names {
        match (value(access_name), value(secret_name)) {
            (Some(access), Some(secret)) => {
                let keys = Keys::lasting(access, secret, value(token_name));
                return Ok(Some(Found { keys, source: Source::Variable(access_name) }));
            }
            (None, None) => {}
            (Some(_), None) => return half(access_name, secret_name),
            (None, Some(_)) => return half(secret_name, access_name),
        }
    }
    Ok(None)
}

impl Chain<'_> {
    /// Returns the credentials of the first source that has any, asking anew each time.
    pub fn resolve(&self) -> Result<Found> {
        let names = self.given.names;
        let found = match self.web_token {
            Some(token) => {
                let keys = self.web_token(token);
                let keys = keys.and_then(|token| sts::assume_role(self, &token, StsDefault::Store));
                let source = Source::WebToken(names.web_token);
                Found { keys: keys.at(names.web_token)?, source }
            }
            None => {
                let given = names.access_key;
                self.first()?.ok_or(CredentialsError::NotFound { given })?
            }
        };
        let now = self.wall_epoch.after(self.clock.now().since(Moment::EPOCH));
        match found.keys.expires.filter(|expires| *expires <= now) {
            Some(at) => Err(CredentialsError::Expired { from: found.source, at }),
            None => Ok(found),
        }
    }

    fn first(&self) -> Result<Option<Found>> {
        let found = |keys, source| Ok(Some(Found { keys, source }));
        if let Some(keys) = self.given.keys()? {
            return found(keys, Source::StaticKeys(self.given.names.keys));
        }
        if let Some(of_environment) = of_variables(&VARIABLES, self.variable)? {
            return Ok(Some(of_environment));
        }
        if let Some((keys, name)) = self.of_profile()? {
            return found(keys, Source::Profile(name));
        }
        if let Some(keys) = self.of_web_identity().at(WEB_IDENTITY)? {
            return found(keys, Source::WebIdentity);
        }
        if let Some(keys) = metadata::of_container(self).at("the container's credentials")? {
            return found(keys, Source::Container);
        }
        match metadata::of_instance(self).at("the instance's role")? {
            Some((keys, role)) => found(keys, Source::Instance(role)),
            None => Ok(None),
        }
    }

    fn of_profile(&self) -> Result<Option<(Keys, String)>> {
        let asked = self.set("AWS_PROFILE").or_else(|| self.set("AWS_DEFAULT_PROFILE"));
        let credentials = self.profile_file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")?;
        let config = self.profile_file("AWS_CONFIG_FILE", ".aws/config")?;
        let name = asked.clone().unwrap_or_else(|| "default".to_owned());
        match profile::keys(&credentials, &config, &name)? {
            Some(keys) => Ok(Some((keys, name))),
            None if asked.is_none() => Ok(None),
            None => Err(CredentialsError::NoProfile(name)),
        }
    }

    /// Returns the text of the file that a variable names, else of the customary one, which need
    /// not be there.
    fn profile_file(&self, variable: &str, customary: &str) -> Result<String> {
        let named = self.set(variable).map(PathBuf::from);
        let is_named = named.is_some();
        let at_home = || Some(Path::new(&self.set("HOME")?).join(customary));
        let Some(path) = named.or_else(at_home) else { return Ok(String::new()) };
        match (self.read)(&path, PROFILE_BYTES_MAX) {
            Err(error) if !is_named && error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|source| CredentialsError::Unreadable {
                what: "the profile file",
                path,
                source,
            }),
        }
    }

    fn of_web_identity(&self) -> Result<Option<Keys>> {
        let Some(path) = self.set(WEB_IDENTITY) else { return Ok(None) };
        let token = self.web_token(&format!("{FILE_SCHEME}{path}"))?;
        sts::assume_role(self, &token, StsDefault::Amazon).map(Some)
    }

    /// Returns the token that a text is, or that its file holds.
    fn web_token(&self, text: &str) -> Result<WebIdentity> {
        let token = match text.strip_prefix(FILE_SCHEME) {
            None => text.to_owned(),
            Some(path) => self.token_file(path)?,
        };
        match token.trim() {
            "" => Err(CredentialsError::EmptyToken),
            token => Ok(WebIdentity(token.to_owned())),
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

    /// Returns what asks services of the machine itself.
    fn local_fetcher(&self) -> Result<Fetcher> {
        Fetcher::new(self.clock, &self.trust, None)
    }
}
