//! Who asks, found out as other tools of S3 do: flags, environment, profile file, web identity,
//! container, instance role. Used only where the user asks for it. No secret stands in an error or
//! in a `Debug` form.

mod answer;
mod fetch;
mod metadata;
mod profile;
mod sts;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plimsoll_driver_s3::Credentials;
use plimsoll_http::{Endpoint, Proxies, TlsOptions};
use plimsoll_model::{Moment, SharedClock, WallTime};

use crate::args::CredentialArgs;
use crate::secret::Secret;
use fetch::Fetcher;
use plimsoll_conduct::input;
use sts::WebIdentity;

/// What a token's file begins with on the command line.
const FILE_SCHEME: &str = "file:";
/// More than any profile file, and than any token, has.
const PROFILE_BYTES_MAX: u64 = 4 << 20;
const TOKEN_BYTES_MAX: u64 = 1 << 20;

/// What the chain is asked with.
pub(crate) struct ChainArgs<'a> {
    /// The keys of the flags; they win over everything else.
    pub(crate) flags: &'a CredentialArgs,
    /// `--sts-web-token`: a token or `file:PATH`. Taken to the store, or to `AWS_ENDPOINT_URL_STS`,
    /// in exchange for keys; nothing else is tried then.
    pub(crate) web_token: Option<&'a str>,
    /// The store's first endpoint.
    pub(crate) store: &'a Endpoint,
    /// Whether it speaks TLS.
    pub(crate) store_tls: bool,
    /// Whom to trust where TLS is spoken.
    pub(crate) trust: TlsOptions,
    /// The proxies on the way to a token service; the machine's own services are asked directly.
    pub(crate) proxies: Option<Proxies>,
    /// The run's clock.
    pub(crate) clock: &'a SharedClock,
    /// The wall time at its epoch.
    pub(crate) wall_epoch: WallTime,
    /// The environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// What the chain found.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// Who asks.
    pub(crate) credentials: Credentials,
    /// Where they are from, for people.
    pub(crate) source: String,
    /// When they cease to be valid; `None` for never, or unknown.
    pub(crate) expires: Option<WallTime>,
}

/// Keys as a source hands them out.
struct Keys {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
    expires: Option<WallTime>,
}

impl Keys {
    /// Returns keys that never cease to be valid.
    fn lasting(access_key: String, secret_key: String, session_token: Option<String>) -> Self {
        Self { access_key, secret_key, session_token, expires: None }
    }
}

impl Resolved {
    /// Returns a warning where a run that ends at `end` outlives the credentials: they are asked
    /// for before a run only.
    pub(crate) fn outlived(&self, end: WallTime) -> Option<String> {
        let expires = self.expires.filter(|expires| *expires < end)?;
        Some(format!(
            "the credentials from {} expire at {expires}, before the run ends; operations after \
             that will be refused",
            self.source
        ))
    }
}

/// Returns the credentials of the first source that has any, asking anew each time.
pub(crate) fn resolve(args: &ChainArgs<'_>) -> Result<Resolved> {
    let (keys, source) = match args.web_token {
        Some(token) => {
            let token = web_token(token).context("--sts-web-token")?;
            let keys = sts::assume_role(args, &token, StsDefault::Store);
            (keys.context("--sts-web-token")?, "the token service (--sts-web-token)".to_owned())
        }
        None => match first_of_chain(args)? {
            Some(found) => found,
            None => bail!(
                "no credentials found: looked at --access-key, AWS_ACCESS_KEY_ID, \
                 MINIO_ROOT_USER, the profile file, a web identity, the container and the \
                 instance role"
            ),
        },
    };
    let now = args.now();
    if let Some(expires) = keys.expires.filter(|expires| *expires <= now) {
        bail!("the credentials from {source} have expired at {expires}");
    }
    let Keys { access_key, secret_key, session_token, expires } = keys;
    let credentials = Credentials::Keys { access_key, secret_key, session_token };
    Ok(Resolved { credentials, source, expires })
}

/// Returns the keys of Amazon's variables where the flags name none: what every tool of S3 takes.
/// `None` without such variables, and where a flag is given, were it empty.
pub(crate) fn of_amazon_variables(
    flags: &CredentialArgs,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Resolved>> {
    let CredentialArgs { access_key, secret_key, session_token } = flags;
    if [access_key, secret_key, session_token].into_iter().any(Option::is_some) {
        return Ok(None);
    }
    let found = of_variables(&VARIABLES[..1], variable)?;
    Ok(found.map(|(Keys { access_key, secret_key, session_token, expires }, name)| Resolved {
        credentials: Credentials::Keys { access_key, secret_key, session_token },
        source: format!("the environment ({name})"),
        expires,
    }))
}

/// Which token service is asked when none is named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StsDefault {
    /// The store itself, as MinIO offers one.
    Store,
    /// Amazon's.
    Amazon,
}

fn first_of_chain(args: &ChainArgs<'_>) -> Result<Option<(Keys, String)>> {
    if let Some(keys) = of_flags(args)? {
        return Ok(Some((keys, "the flags".to_owned())));
    }
    if let Some((keys, name)) = of_environment(args)? {
        return Ok(Some((keys, format!("the environment ({name})"))));
    }
    if let Some((keys, name)) = of_profile(args)? {
        return Ok(Some((keys, format!("profile `{name}`"))));
    }
    if let Some(keys) = of_web_identity(args)? {
        return Ok(Some((keys, "the web identity (AWS_WEB_IDENTITY_TOKEN_FILE)".to_owned())));
    }
    if let Some(keys) = metadata::of_container(args).context("the container's credentials")? {
        return Ok(Some((keys, "the container".to_owned())));
    }
    let found = metadata::of_instance(args).context("the instance's role")?;
    Ok(found.map(|(keys, role)| (keys, format!("the instance's role `{role}`"))))
}

fn of_flags(args: &ChainArgs<'_>) -> Result<Option<Keys>> {
    let given = |value: &Option<Secret>| Secret::given(value.as_ref());
    let CredentialArgs { access_key, secret_key, session_token } = args.flags;
    match (given(access_key), given(secret_key), given(session_token)) {
        (Some(access), Some(secret), token) => Ok(Some(Keys::lasting(access, secret, token))),
        (None, None, None) => Ok(None),
        (Some(_), None, _) => bail!("--access-key is given without --secret-key"),
        (None, ..) => bail!("--secret-key or --session-token is given without --access-key"),
    }
}

/// Amazon's names, those of its first tools, and MinIO's old and new ones.
const VARIABLES: [[&str; 3]; 4] = [
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
    ["AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN"],
    ["MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", ""],
    ["MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", ""],
];

fn of_environment(args: &ChainArgs<'_>) -> Result<Option<(Keys, &'static str)>> {
    of_variables(&VARIABLES, args.variable)
}

fn of_variables(
    names: &[[&'static str; 3]],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(Keys, &'static str)>> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    for &[access_name, secret_name, token_name] in names {
        match (set(access_name), set(secret_name)) {
            (Some(access), Some(secret)) => {
                let token = set(token_name);
                return Ok(Some((Keys::lasting(access, secret, token), access_name)));
            }
            (None, None) => {}
            (Some(_), None) => bail!("{access_name} is set without {secret_name}"),
            (None, Some(_)) => bail!("{secret_name} is set without {access_name}"),
        }
    }
    Ok(None)
}

fn of_profile(args: &ChainArgs<'_>) -> Result<Option<(Keys, String)>> {
    let asked = args.set("AWS_PROFILE").or_else(|| args.set("AWS_DEFAULT_PROFILE"));
    let home = args.set("HOME").map(PathBuf::from);
    let file = |name, default: &str| {
        let named = args.set(name).map(|path| (PathBuf::from(path), true));
        named.or_else(|| home.as_ref().map(|home| (home.join(default), false)))
    };
    let text = |file: Option<(PathBuf, bool)>| match file {
        None => Ok(String::new()),
        Some((path, named)) => read_profile_file(&path, named),
    };
    let credentials = text(file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"))?;
    let config = text(file("AWS_CONFIG_FILE", ".aws/config"))?;
    let name = asked.clone().unwrap_or_else(|| "default".to_owned());
    match profile::keys(&credentials, &config, &name)? {
        Some(keys) => Ok(Some((keys, name))),
        None if asked.is_none() => Ok(None),
        None => bail!("there is no profile `{name}` (AWS_PROFILE) in ~/.aws or the named files"),
    }
}

/// A file that nobody named need not be there.
fn read_profile_file(path: &Path, named: bool) -> Result<String> {
    match input::read_text(path, PROFILE_BYTES_MAX) {
        Err(error) if !named && error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("cannot read the profile file {}", path.display())),
    }
}

fn of_web_identity(args: &ChainArgs<'_>) -> Result<Option<Keys>> {
    let Some(path) = args.set("AWS_WEB_IDENTITY_TOKEN_FILE") else {
        return Ok(None);
    };
    let keys = web_token(&format!("{FILE_SCHEME}{path}"))
        .and_then(|token| sts::assume_role(args, &token, StsDefault::Amazon));
    keys.context("AWS_WEB_IDENTITY_TOKEN_FILE").map(Some)
}

/// Returns the token that a text is, or that its file holds.
fn web_token(text: &str) -> Result<WebIdentity> {
    let token = match text.strip_prefix(FILE_SCHEME) {
        None => text.to_owned(),
        Some(path) => input::read_text(Path::new(path), TOKEN_BYTES_MAX)
            .with_context(|| format!("cannot read the token from {path}"))?,
    };
    let token = token.trim().to_owned();
    if token.is_empty() {
        bail!("the token is empty");
    }
    Ok(WebIdentity(token))
}

impl ChainArgs<'_> {
    /// Returns a variable that is set to something.
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn now(&self) -> WallTime {
        self.wall_epoch.after(self.clock.now().since(Moment::from_ns(0)))
    }

    /// Returns what asks services of the machine itself.
    fn local_fetcher(&self) -> Result<Fetcher> {
        Fetcher::new(self.clock, &self.trust, None)
    }
}
