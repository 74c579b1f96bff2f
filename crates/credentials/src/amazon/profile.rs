//! The profile files of Amazon's tools, read by `aws-config`, and what they say of how a profile
//! gets its keys.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use aws_config::profile::{Profile, ProfileSet};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_types::os_shim_internal::{Env, Fs};

use plimsoll_model::Secret;

use crate::{Chain, CredentialsError, PROFILE_BYTES_MAX, Result};

const SOURCE: &str = "source_profile";
const PROCESS: &str = "credential_process";
/// Settings by which a profile has keys of its own, whatever it names as its source.
const OWN_WAYS: [&str; 6] = [
    "aws_access_key_id",
    PROCESS,
    "web_identity_token_file",
    "sso_session",
    "sso_start_url",
    "login_session",
];

/// So many profiles may name each other as sources, one after the other.
const SOURCES_MAX: usize = 32;

/// What the first keys of a profile come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// A command, and the last role that is assumed with what it prints, by its profile.
    Process { command: String, role: Option<String> },
    /// A login by single sign-on.
    SignOn,
    /// Anything else.
    Other,
}

/// The profiles of both files.
pub(crate) struct Profiles {
    config: String,
    credentials: String,
    set: ProfileSet,
}

impl Profiles {
    /// Reads the files that the environment names, else the customary ones, which need not be
    /// there, with this profile as the one that is meant.
    pub(crate) fn read(chain: &Chain, name: &str) -> Result<Self> {
        let credentials = text_of(chain, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")?;
        let config = text_of(chain, "AWS_CONFIG_FILE", ".aws/config")?;
        let files = files_of(&config, &credentials);
        let name = Some(Cow::Owned(name.to_owned()));
        let loaded =
            async move { aws_config::profile::load(&Fs::real(), &Env::real(), &files, name).await };
        let set = super::wait(chain.patience, loaded)?.ok_or(CredentialsError::Slow)?;
        // The error says the line and repeats none.
        let set = set.map_err(|error| CredentialsError::ProfileFile(Box::new(error)))?;
        Ok(Self { config, credentials, set })
    }

    /// Returns the files as the library takes them.
    pub(crate) fn files(&self) -> EnvConfigFiles {
        files_of(&self.config, &self.credentials)
    }

    /// Tells whether there is such a profile.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.set.get_profile(name).is_some()
    }

    /// Returns a setting of a profile.
    pub(crate) fn setting(&self, profile: &str, name: &str) -> Option<String> {
        let value = self.set.get_profile(profile)?.get(name)?;
        Some(value.to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns the secrets that stand in the files.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let of_profile = |name: &str| {
            let setting = |of: &str| self.setting(name, of).map(Secret::from);
            ["aws_secret_access_key", "aws_session_token"].into_iter().filter_map(setting).collect()
        };
        self.set.profiles().flat_map::<Vec<Secret>, _>(of_profile).collect()
    }

    /// Has the role of a profile be assumed with the keys of a provider of this name, whatever it
    /// says itself.
    pub(crate) fn have_source(&mut self, profile: &str, provider: &str) {
        // What comes later wins, setting by setting.
        let more = format!(
            "[{profile}]\n{SOURCE} = {provider}\n[{provider}]\ncredential_source = {provider}\n"
        );
        self.credentials = format!("{}\n{more}", self.credentials);
    }

    /// Returns what the first keys of a profile come from; an error where its sources lead to none.
    pub(crate) fn base(&self, name: &str) -> Result<Base> {
        let mut walked = vec![name];
        loop {
            let here = *walked.last().expect("it began with one");
            let Some(profile) = self.set.get_profile(here) else {
                let from = walked.get(walked.len() - 2).copied().unwrap_or(here);
                let (profile, missing) = (from.to_owned(), here.to_owned());
                return Err(CredentialsError::NoSource { profile, missing });
            };
            let has_own = OWN_WAYS.iter().any(|way| profile.get(way).is_some());
            let is_static = walked.len() > 1 && profile.get("aws_access_key_id").is_some();
            let next = profile.get("role_arn").and_then(|_| profile.get(SOURCE));
            match next {
                None => return Ok(base_of(profile, &walked)),
                Some(_) if is_static => return Ok(Base::Other),
                Some(next) if next == here && has_own => return Ok(base_of(profile, &walked)),
                Some(_) if walked.len() > SOURCES_MAX => {
                    return Err(CredentialsError::ManySources(name.to_owned()));
                }
                Some(next) if walked.contains(&next) => {
                    walked.push(next);
                    let path = walked.join(", ");
                    return Err(CredentialsError::SourceLoop { profile: name.to_owned(), path });
                }
                Some(next) => walked.push(next),
            }
        }
    }
}

fn files_of(config: &str, credentials: &str) -> EnvConfigFiles {
    EnvConfigFiles::builder()
        .with_contents(EnvConfigFileKind::Config, config)
        .with_contents(EnvConfigFileKind::Credentials, credentials)
        .build()
}

/// Returns what the keys of the last of these profiles come from.
fn base_of(profile: &Profile, walked: &[&str]) -> Base {
    let has = |name| profile.get(name).is_some();
    // The last one may be its own source.
    let of_role = if has("role_arn") { walked.last() } else { walked.iter().rev().nth(1) };
    if has("credential_source") || has("web_identity_token_file") {
        Base::Other
    } else if has("sso_session") || has("sso_start_url") {
        Base::SignOn
    } else if let Some(command) = profile.get(PROCESS) {
        let role = of_role.map(|role| (*role).to_owned());
        Base::Process { command: command.to_owned(), role }
    } else {
        Base::Other
    }
}

/// Tells whether there is no such file, nor a folder for it: a home may be `/dev/null`.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the text of the file that a variable names, else of the customary one.
fn text_of(chain: &Chain, variable: &str, customary: &str) -> Result<String> {
    let home = chain.set("HOME").map(PathBuf::from);
    let named = chain.set(variable).map(|path| match (path.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    });
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| Some(home?.join(Path::new(customary)))) else {
        return Ok(String::new());
    };
    match (chain.read)(&path, PROFILE_BYTES_MAX) {
        Err(error) if !is_named && is_absent(&error) => Ok(String::new()),
        read => read.map_err(|source| CredentialsError::Unreadable {
            what: "the profile file",
            path,
            source,
        }),
    }
}
