//! A token in exchange for keys (`AssumeRoleWithWebIdentity`): one of the caller's at the store, as
//! MinIO offers it, one of the environment at Amazon, either at the token service that the
//! environment names. Unlike Amazon's, a store needs no role.
//!
//! The client is configured here alone: with the configuration that `aws-config` makes of the
//! environment, tokens would go to `AWS_ENDPOINT_URL`, which names the store.

use aws_config::BehaviorVersion;
use aws_sdk_sts::config::{Builder, Region};
use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::assume_role_with_web_identity::AssumeRoleWithWebIdentityError;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use plimsoll_http::Url;
use plimsoll_model::Secret;

use super::http_client::OwnClient;
use super::{REGION_DEFAULT, RunTimeSource, wait, wall_time};
use crate::error::{shown, without_generalities};
use crate::{Chain, CredentialsError, Keys, Result};

/// What names the token service.
const NAMED: &str = "AWS_ENDPOINT_URL_STS";
/// What the session is called when nobody named it.
const SESSION_NAME: &str = "plimsoll";

/// A token service.
pub(super) struct Service {
    /// Where it is; `None`: Amazon's of the region.
    url: Option<String>,
    /// What messages call it.
    name: String,
}

impl Service {
    /// Returns the store, as a token service.
    pub(super) fn store(chain: &Chain) -> Self {
        let scheme = if chain.store_tls { "https" } else { "http" };
        let authority = chain.store.authority(chain.store_tls);
        Self { url: Some(format!("{scheme}://{authority}")), name: chain.store.to_string() }
    }

    /// Returns Amazon's.
    pub(super) fn amazon() -> Self {
        Self { url: None, name: "Amazon's token service".to_owned() }
    }
}

/// Exchanges the token for keys at the service that the environment names, `otherwise` at another.
pub(super) fn assume_role(chain: &Chain, token: &Secret, otherwise: Service) -> Result<Keys> {
    let Service { url, name } = named(chain)?.unwrap_or(otherwise);
    // Nothing is signed, so that the region only leads to Amazon's address of it.
    let region = || chain.region_of_variables().or_else(|| chain.region_of_profile());
    let region = if url.is_none() { region() } else { None };
    let client = OwnClient::of(chain);
    let mut config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region.unwrap_or_else(|| REGION_DEFAULT.to_owned())))
        .http_client(client.clone())
        .sleep_impl(TokioSleep::new())
        .time_source(RunTimeSource::of(chain));
    config.set_endpoint_url(url);
    let config = config.build();
    let role = chain.set("AWS_ROLE_ARN");
    let session = chain.set("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| SESSION_NAME.to_owned());
    let asked = aws_sdk_sts::Client::from_conf(config)
        .assume_role_with_web_identity()
        .set_role_session_name(role.is_some().then_some(session))
        .set_role_arn(role)
        .web_identity_token(token.expose());
    let answered =
        wait(chain.patience, async move { asked.send().await })?.ok_or(CredentialsError::Slow)?;
    let refused = |error| refusal(&error, &name, &|text| client.without_secrets(text));
    let credentials = answered.map_err(|error| CredentialsError::Answer(refused(error)))?;
    let credentials = credentials.credentials;
    let credentials = credentials.filter(|of| !of.access_key_id.is_empty());
    let credentials = credentials
        .ok_or_else(|| CredentialsError::Answer(format!("the answer of {name} holds no keys")))?;
    let no_time = |_| CredentialsError::Answer(format!("{name} says no time at which keys expire"));
    Ok(Keys {
        access_key: credentials.access_key_id,
        secret_key: Secret::from(credentials.secret_access_key),
        session_token: Some(Secret::from(credentials.session_token)),
        expires: Some(wall_time(credentials.expiration.try_into().map_err(no_time)?)),
    })
}

/// Returns the service that the environment names.
fn named(chain: &Chain) -> Result<Option<Service>> {
    let Some(url) = chain.set(NAMED) else { return Ok(None) };
    let refused = |reason: &str| {
        let reason = reason.to_owned();
        CredentialsError::Address { variable: NAMED, reason }
    };
    let parsed = Url::parse(&url).map_err(refused)?;
    if parsed.user.is_some() {
        return Err(refused("the address names a user"));
    }
    let name = parsed.endpoint.to_string();
    Ok(Some(Service { url: Some(url), name }))
}

fn refusal(
    error: &SdkError<AssumeRoleWithWebIdentityError, HttpResponse>,
    name: &str,
    without_secrets: &dyn Fn(&str) -> String,
) -> String {
    let SdkError::ServiceError(refused) = error else {
        return without_generalities(error, without_secrets);
    };
    let said = [refused.err().code(), refused.err().message()];
    let said: Vec<&str> = said.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
    shown(&format!("{name} answered {}{}", refused.raw().status(), without_secrets(&said)))
}
