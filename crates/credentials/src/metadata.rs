//! Credentials that the machine itself hands out: to a container, or to an instance by its role.

use std::net::IpAddr;

use crate::error::At;
use crate::fetch::{Ask, Service};
use crate::{Chain, CredentialsError, Keys, Result, answer};

const RELATIVE_URI: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL_URI: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
const INSTANCE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// Where containers of ECS ask; the path is in the environment.
const CONTAINER_HOST: &str = "http://169.254.170.2";
/// Link-local addresses at which ECS and EKS hand out credentials, of whom no name can be false.
const CONTAINER_ADDRESSES: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
/// Where instances ask.
const INSTANCE_HOST: &str = "http://169.254.169.254";
const INSTANCE_ROLES: &str = "/latest/meta-data/iam/security-credentials/";
/// How long the token is to last without which the instance's service, in its second version, tells
/// nothing.
const INSTANCE_TOKEN_SECONDS: &str = "60";

/// Returns the credentials of the container we run in; `None` outside of one.
pub(crate) fn of_container(chain: &Chain<'_>) -> Result<Option<Keys>> {
    let refused = |variable, reason: String| Err(CredentialsError::Address { variable, reason });
    let url = match (chain.set(RELATIVE_URI), chain.set(FULL_URI)) {
        (Some(path), _) if path.starts_with('/') => format!("{CONTAINER_HOST}{path}"),
        (Some(_), _) => return refused(RELATIVE_URI, "it does not begin with `/`".to_owned()),
        (None, Some(url)) => url,
        (None, None) => return Ok(None),
    };
    let service = Service::parse(FULL_URI, &url)?;
    if !service.tls && !is_near(&service.endpoint.host) {
        let reason = format!(
            "it leads to {} in the clear; only https:// and loopback are asked for credentials",
            service.endpoint
        );
        return refused(FULL_URI, reason);
    }
    let token = match chain.set(TOKEN_FILE) {
        Some(path) => Some(chain.token_file(&path).at(TOKEN_FILE)?),
        None => chain.set("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let fields: Vec<(&str, &str)> =
        token.iter().map(|token| ("Authorization", token.trim())).collect();
    let ask = Ask { method: "GET", path: "", fields: &fields, body: "" };
    let answer = chain.local_fetcher()?.fetch(&service, &ask)?;
    if answer.status != 200 {
        return Err(answer.refused(&service, ""));
    }
    answer::keys_of_json(&answer.body).map(Some)
}

/// Tells whether a host is this machine, or one of the platform's own addresses.
fn is_near(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.is_loopback())
        || CONTAINER_ADDRESSES.contains(&host)
}

/// Returns the credentials of the role of the instance we run on, and the role's name; `None` where
/// no service answers, or none has a role.
pub(crate) fn of_instance(chain: &Chain<'_>) -> Result<Option<(Keys, String)>> {
    if chain.set("AWS_EC2_METADATA_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let named = chain.set(INSTANCE);
    let mut service = Service::parse(INSTANCE, named.as_deref().unwrap_or(INSTANCE_HOST))?;
    service.base.truncate(service.base.trim_end_matches('/').len());
    let fetcher = chain.local_fetcher()?;
    let fields = [("X-aws-ec2-metadata-token-ttl-seconds", INSTANCE_TOKEN_SECONDS)];
    let ask = Ask { method: "PUT", path: "/latest/api/token", fields: &fields, body: "" };
    let answer = match fetcher.fetch(&service, &ask) {
        Ok(answer) => answer,
        // Most machines are no instances: nothing answers at that address.
        Err(_) if named.is_none() => return Ok(None),
        Err(error) => return Err(error),
    };
    if answer.status != 200 {
        return Err(answer.refused(&service, " to the wish for a token"));
    }
    let token = String::from_utf8(answer.body);
    let token = token.map_err(|_| CredentialsError::answer("the token is not a string"))?;
    let token = token.trim();
    let get = |path: &str| {
        let fields = [("X-aws-ec2-metadata-token", token)];
        fetcher.fetch(&service, &Ask { method: "GET", path, fields: &fields, body: "" })
    };
    let roles = get(INSTANCE_ROLES)?;
    if roles.status == 404 {
        return Ok(None);
    }
    let listed = String::from_utf8_lossy(&roles.body);
    let role = listed.lines().next().unwrap_or_default().trim();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    if roles.status != 200 || role.is_empty() || !role.bytes().all(fits) {
        return Err(roles.refused(&service, " and names no role"));
    }
    let answer = get(&format!("{INSTANCE_ROLES}{role}"))?;
    if answer.status != 200 {
        return Err(answer.refused(&service, format!(" for role `{role}`")));
    }
    Ok(Some((answer::keys_of_json(&answer.body)?, role.to_owned())))
}
