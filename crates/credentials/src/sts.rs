//! A token of an identity provider in exchange for keys (`AssumeRoleWithWebIdentity`).

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::fetch::{Ask, Fetcher, Service};
use crate::{Chain, CredentialsError, Keys, Result, answer};

/// The version of the interface, the only one there is.
const VERSION: &str = "2011-06-15";
/// What the session is called when nobody named it.
const SESSION_NAME: &str = "plimsoll";
const FORM: &str = "application/x-www-form-urlencoded";

/// Which token service is asked when none is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StsDefault {
    /// The store itself, as MinIO offers one.
    Store,
    /// Amazon's.
    Amazon,
}

/// A token; it has no `Debug` form.
pub(crate) struct WebIdentity(pub(crate) String);

/// Exchanges the token for keys.
pub(crate) fn assume_role(
    chain: &Chain<'_>,
    token: &WebIdentity,
    default: StsDefault,
) -> Result<Keys> {
    let service = service(chain, default)?;
    let role = chain.set("AWS_ROLE_ARN");
    if default == StsDefault::Amazon && role.is_none() {
        return Err(CredentialsError::Unset("AWS_ROLE_ARN"));
    }
    let session = chain.set("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| SESSION_NAME.to_owned());
    let mut form = vec![
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", VERSION),
        ("WebIdentityToken", &token.0),
    ];
    if let Some(role) = &role {
        form.extend([("RoleArn", role.as_str()), ("RoleSessionName", &session)]);
    }
    let pairs = form
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    let body = pairs.collect::<Vec<_>>().join("&");
    let path = if service.base.is_empty() { "/" } else { "" };
    let ask = Ask { method: "POST", path, fields: &[("Content-Type", FORM)], body: &body };
    let fetcher = Fetcher::new(chain.clock, &chain.trust, chain.proxies.clone())?;
    let answer = fetcher.fetch(&service, &ask)?;
    if answer.status != 200 {
        // A service may repeat what it was given.
        let said = answer::refusal_of_xml(&answer.body).replace(&token.0, "…");
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        return Err(answer.refused(&service, said));
    }
    answer::keys_of_xml(&answer.body)
}

fn service(chain: &Chain<'_>, default: StsDefault) -> Result<Service> {
    const NAMED: &str = "AWS_ENDPOINT_URL_STS";
    if let Some(url) = chain.set(NAMED) {
        return Service::parse(NAMED, &url);
    }
    match default {
        StsDefault::Store => {
            Ok(Service { tls: chain.store_tls, endpoint: chain.store.clone(), base: String::new() })
        }
        StsDefault::Amazon => {
            let region = chain.set("AWS_REGION").or_else(|| chain.set("AWS_DEFAULT_REGION"));
            let place = region.map(|region| format!(".{region}")).unwrap_or_default();
            Service::parse("AWS_REGION", &format!("https://sts{place}.amazonaws.com"))
        }
    }
}
