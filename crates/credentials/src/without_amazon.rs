//! Stands in for `amazon` in a build without the feature `cloud`: refuses whoever names a place
//! that only `amazon` can ask.

use crate::{Chain, CredentialsError, Keys, Result, WEB_IDENTITY};

/// Where keys are looked for after those that are given, in this order.
pub(crate) const PLACES: &str = "AWS_ACCESS_KEY_ID and MINIO_ROOT_USER, and nowhere else: this \
                                 build is without the cloud's credentials";

pub(crate) fn of_profile(chain: &Chain, _: &str) -> Result<Option<Keys>> {
    none_unless_named(chain, &["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
}

pub(crate) fn region_of_profile(_: &Chain, _: &str) -> Option<String> {
    None
}

pub(crate) fn of_web_token(_: &Chain, name: &'static str) -> Result<Keys> {
    Err(CredentialsError::LeftOut(name))
}

pub(crate) fn of_web_identity(chain: &Chain) -> Result<Option<Keys>> {
    none_unless_named(chain, &[WEB_IDENTITY])
}

pub(crate) fn of_container(chain: &Chain) -> Result<Option<Keys>> {
    none_unless_named(
        chain,
        &["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
    )
}

pub(crate) fn of_instance(chain: &Chain) -> Result<Option<Keys>> {
    none_unless_named(chain, &["AWS_EC2_METADATA_SERVICE_ENDPOINT"])
}

pub(crate) fn names_instance(_: &Chain) -> bool {
    true
}

/// Returns that there are no keys, unless one of these variables names a place that has some.
fn none_unless_named(chain: &Chain, variables: &[&'static str]) -> Result<Option<Keys>> {
    match variables.iter().find(|name| chain.set(name).is_some()) {
        Some(named) => Err(CredentialsError::LeftOut(named)),
        None => Ok(None),
    }
}
