//! Keys that the command of a profile prints (`credential_process`).

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use plimsoll_model::Secret;
use serde::Deserialize;

use super::wall_time;
use crate::{Chain, CredentialsError, Keys, Result};

/// What the keys of a command are called where the library assumes a role with them.
pub(crate) const SOURCE: &str = "plimsoll-credential-process";
/// The version of what commands print.
const VERSION: u64 = 1;

/// What a command prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    version: Option<u64>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    expiration: Option<String>,
}

/// Returns the keys that the command of a profile prints.
pub(crate) fn keys(chain: &Chain, profile: &str, command: &str) -> Result<Keys> {
    let refused =
        |reason: String| CredentialsError::Process { profile: profile.to_owned(), reason };
    let ran = (chain.run)(command, chain.patience)
        .map_err(|error| refused(format!("it cannot be started: {error}")))?;
    let Some(ran) = ran else {
        let (profile, seconds) = (profile.to_owned(), chain.patience.as_secs_f64());
        return Err(CredentialsError::SlowProcess { profile, seconds });
    };
    if !ran.status.success() {
        // What it says may hold secrets, and this goes to the logs of pipelines.
        return Err(refused(format!("it ended with {}; run it by hand to see why", ran.status)));
    }
    parsed(ran.output.expose()).map_err(refused)
}

/// Reads what a command has printed; the reason why not repeats none of it.
fn parsed(text: &str) -> std::result::Result<Keys, String> {
    let printed: Printed = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("what it prints is not the JSON of credentials (line {line}, column {column})")
    })?;
    let given = |value: Option<String>| value.filter(|text| !text.is_empty());
    let without = |name: &str| format!("what it prints holds no `{name}`");
    if printed.version != Some(VERSION) {
        return Err(format!("what it prints has another `Version` than {VERSION}"));
    }
    let secret_key =
        Secret::from(given(printed.secret_access_key).ok_or_else(|| without("SecretAccessKey"))?);
    let time = |text: String| {
        let at = DateTime::from_str(&text, Format::DateTimeWithOffset).ok()?;
        at.try_into().ok().map(wall_time)
    };
    let no_time = || "what it prints as `Expiration` is no time of RFC 3339".to_owned();
    let expires = given(printed.expiration).map(|text| time(text).ok_or_else(no_time));
    Ok(Keys {
        access_key: given(printed.access_key_id).ok_or_else(|| without("AccessKeyId"))?,
        secret_key,
        session_token: given(printed.session_token).map(Secret::from),
        expires: expires.transpose()?,
    })
}
