//! Keys in the environment, under the names that stores and their tools have for them.

use plimsoll_model::Secret;

use crate::{CredentialsError, Keys, Result};

/// Amazon's names, those of its first tools, and MinIO's old and new ones.
const VARIABLES: [[&str; 3]; 4] = [
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
    ["AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN"],
    ["MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", ""],
    ["MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", ""],
];

/// Returns the keys of the first names that are set, and the name of the access key.
pub(crate) fn keys(variable: fn(&str) -> Option<String>) -> Result<Option<(Keys, &'static str)>> {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    let half = |set, missing| Err(CredentialsError::HalfSet { set, missing });
    for [access_name, secret_name, token_name] in VARIABLES {
        match (value(access_name), value(secret_name)) {
            (Some(access_key), Some(secret)) => {
                let keys = Keys {
                    access_key,
                    secret_key: Secret::from(secret),
                    session_token: value(token_name).map(Secret::from),
                    expires: None,
                };
                return Ok(Some((keys, access_name)));
            }
            (None, None) => {}
            (Some(_), None) => return half(access_name, secret_name),
            (None, Some(_)) => return half(secret_name, access_name),
        }
    }
    Ok(None)
}
