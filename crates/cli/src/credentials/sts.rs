//! A token of an identity provider in exchange for keys (`AssumeRoleWithWebIdentity`).

use anyhow::{Context, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::fetch::{Ask, Fetcher, Service};
use super::{ChainArgs, Keys, StsDefault, answer};

/// The version of the interface, the only one there is.
const VERSION: &str = "2011-06-15";
/// What the session is called when nobody named it.
const SESSION_NAME: &str = "plimsoll";
const FORM: &str = "application/x-www-form-urlencoded";

/// A token; it has no `Debug` form.
pub(super) struct WebIdentity(pub(super) String);

/// Exchanges the token for keys.
pub(super) fn assume_role(
    args: &ChainArgs<'_>,
    token: &WebIdentity,
    default: StsDefault,
) -> Result<Keys> {
    let service = service(args, default)?;
    let role = args.set("AWS_ROLE_ARN");
    if default == StsDefault::Amazon && role.is_none() {
        bail!("AWS_ROLE_ARN is not set");
    }
    let session = args.set("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| SESSION_NAME.to_owned());
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
    let fetcher = Fetcher::new(args.clock, &args.trust, args.proxies.clone())?;
    let answer = fetcher.fetch(&service, &ask)?;
    if answer.status != 200 {
        // A service may repeat what it was given.
        let said = answer::refusal_of_xml(&answer.body).replace(&token.0, "…");
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        bail!("{} answered {}{said}", service.endpoint, answer.status);
    }
    answer::keys_of_xml(&answer.body)
}

fn service(args: &ChainArgs<'_>, default: StsDefault) -> Result<Service> {
    if let Some(url) = args.set("AWS_ENDPOINT_URL_STS") {
        return Service::parse(&url).context("AWS_ENDPOINT_URL_STS");
    }
    match default {
        StsDefault::Store => {
            Ok(Service { tls: args.store_tls, endpoint: args.store.clone(), base: String::new() })
        }
        StsDefault::Amazon => {
            let region = args.set("AWS_REGION").or_else(|| args.set("AWS_DEFAULT_REGION"));
            let place = region.map(|region| format!(".{region}")).unwrap_or_default();
            Service::parse(&format!("https://sts{place}.amazonaws.com")).context("AWS_REGION")
        }
    }
}
