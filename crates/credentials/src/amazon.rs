//! The places in which Amazon's tools find keys, asked by `aws-config`. Providers are made anew
//! each time, so that none hands out what it remembers.

mod http_client;
mod process;
mod profile;
mod sts;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::BehaviorVersion;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::imds;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError as NotGiven;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::TimeSource;
use aws_types::region::Region;
use plimsoll_model::{Moment, Secret, SharedClock, WallTime};
use tokio::runtime::Builder;
use tokio::time::timeout;

use self::http_client::OwnClient;
use self::profile::{Base, Profiles};
use self::sts::Service;
use crate::error::{At as _, shown, without_generalities};
use crate::{Chain, CredentialsError, DEFAULT, Keys, Result, Source, WEB_IDENTITY};

/// Where keys are looked for after those that are given, in this order.
pub(crate) const PLACES: &str = "AWS_ACCESS_KEY_ID, MINIO_ROOT_USER, the profiles of ~/.aws or \
                                 AWS_CONFIG_FILE (AWS_PROFILE), a web identity \
                                 (AWS_WEB_IDENTITY_TOKEN_FILE), the container \
                                 (AWS_CONTAINER_CREDENTIALS_FULL_URI) and the instance's role";
/// The region of token services where nothing says another.
pub(crate) const REGION_DEFAULT: &str = "us-east-1";
const INSTANCE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// How long the instance's service may take to accept a connection, and to answer: most machines
/// are no instances, and nothing answers at its address; a container may reach it and hear nothing.
const INSTANCE_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long a place may take beyond the caller's patience before it counts as held up.
const HELD_UP_MAX: Duration = Duration::from_millis(500);
/// What names the file of the token that is shown to the container's service.
const CONTAINER_TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// Returns the keys of a profile; `None` where nobody asked for one and there are none.
pub(crate) fn of_profile(chain: &Chain, name: &str) -> Result<Option<Keys>> {
    let mut profiles = Profiles::read(chain, name)?;
    chain.known.add(profiles.secrets());
    let is_asked = chain.profile_name().is_some() || name != DEFAULT;
    if !profiles.has(name) {
        let missing = || CredentialsError::NoProfile(shown(name));
        return if is_asked { Err(missing()) } else { Ok(None) };
    }
    let base = profiles.base(name)?;
    let region = chain.region_of_variables().or_else(|| profiles.setting(name, "region"));
    let client = OwnClient::of_library(chain);
    let config = config(chain, region, &client);
    let mut provider = ProfileFileCredentialsProvider::builder().configure(&config);
    if let Base::Process { command, role } = &base {
        let keys = process::keys(chain, name, command)?;
        chain.known.add(keys.secrets());
        // It is run here, where it is ended as a whole; the rest is left to the library.
        let Some(role) = role else { return Ok(Some(keys)) };
        chain.refuse_expired(&keys, &Source::Profile(name.to_owned()))?;
        profiles.have_source(role, process::SOURCE);
        provider = provider.with_custom_provider(process::SOURCE, credentials_of(&keys));
    }
    let provider = provider.profile_files(profiles.files()).profile_name(name).build();
    let profile = || name.to_owned();
    match (given(chain, provider, &client)?, base) {
        (Given::Keys(keys), _) => Ok(Some(keys)),
        (Given::Nothing(_), _) if !is_asked => Ok(None),
        (Given::Nothing(_), _) => Err(CredentialsError::EmptyProfile(profile())),
        (Given::TooLate, _) => Err(CredentialsError::Slow.of_profile(name)),
        (Given::Error(reason), Base::SignOn) => {
            Err(CredentialsError::SignOn { profile: profile(), reason })
        }
        (Given::Error(reason), Base::Process { .. } | Base::Other) => {
            Err(CredentialsError::Answer(reason).of_profile(name))
        }
    }
}

/// Returns the region that a profile names.
pub(crate) fn region_of_profile(chain: &Chain, name: &str) -> Option<String> {
    // What cannot be read was an error before, or does not matter.
    Profiles::read(chain, name).ok()?.setting(name, "region")
}

/// Returns the keys that a token service gives for a token of the caller's.
pub(crate) fn of_web_token(chain: &Chain, name: &'static str) -> Result<Keys> {
    let token = chain.web_token.as_ref().map_or("", Secret::expose);
    let token = chain.token_of(token).at(name)?;
    sts::assume_role(chain, &token, Service::store(chain)).at(name)
}

/// Returns the keys of the web identity that the environment names; `None` where it names none.
pub(crate) fn of_web_identity(chain: &Chain) -> Result<Option<Keys>> {
    let Some(path) = chain.set(WEB_IDENTITY) else { return Ok(None) };
    if chain.set("AWS_ROLE_ARN").is_none() {
        return Err(CredentialsError::Unset("AWS_ROLE_ARN"));
    }
    let token = chain.token_of(&format!("{}{path}", crate::FILE_SCHEME))?;
    sts::assume_role(chain, &token, Service::amazon()).map(Some)
}

/// Returns the keys of the container we run in; `None` outside of one.
pub(crate) fn of_container(chain: &Chain) -> Result<Option<Keys>> {
    // The library reads it whatever it is, and however long.
    if let Some(path) = chain.set(CONTAINER_TOKEN) {
        chain.token_of(&format!("{}{path}", crate::FILE_SCHEME)).at(CONTAINER_TOKEN)?;
    }
    let client = OwnClient::of_library(chain);
    let config = config(chain, None, &client);
    let provider = EcsCredentialsProvider::builder().configure(&config).build();
    given(chain, provider, &client)?.or_none()
}

/// Returns the keys of the role of the instance we run on; `None` where no service answers, or none
/// has a role.
pub(crate) fn of_instance(chain: &Chain) -> Result<Option<Keys>> {
    let client = OwnClient::of_library(chain);
    let config = config(chain, None, &client);
    let imds = imds::Client::builder().configure(&config);
    let imds = imds.connect_timeout(INSTANCE_WAIT_MAX).read_timeout(INSTANCE_WAIT_MAX).build();
    let provider = ImdsCredentialsProvider::builder().configure(&config).imds_client(imds);
    let is_disabled =
        chain.set("AWS_EC2_METADATA_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    match given(chain, provider.build(), &client)? {
        Given::Nothing(reason) if names_instance(chain) && !is_disabled => {
            Err(CredentialsError::Answer(reason))
        }
        other => other.or_none(),
    }
}

/// Tells whether somebody said where the instance's service is.
pub(crate) fn names_instance(chain: &Chain) -> bool {
    chain.set(INSTANCE).is_some()
}

/// What came of asking a place.
enum Given {
    Keys(Keys),
    /// It has none, and why.
    Nothing(String),
    /// It has not answered in time.
    TooLate,
    Error(String),
}

impl Given {
    fn or_none(self) -> Result<Option<Keys>> {
        match self {
            Self::Keys(keys) => Ok(Some(keys)),
            Self::Nothing(_) => Ok(None),
            Self::TooLate => Err(CredentialsError::Slow),
            Self::Error(reason) => Err(CredentialsError::Answer(reason)),
        }
    }
}

fn given(
    chain: &Chain,
    provider: impl ProvideCredentials + 'static,
    client: &OwnClient,
) -> Result<Given> {
    let asked = async move { provider.provide_credentials().await };
    let in_words = |error| without_generalities(error, &|text| client.without_secrets(text));
    Ok(match wait(chain.patience, asked)? {
        None => Given::TooLate,
        Some(Ok(credentials)) => Given::Keys(keys_of(&credentials)),
        Some(Err(error @ NotGiven::CredentialsNotLoaded(_))) => Given::Nothing(in_words(&error)),
        Some(Err(error)) => Given::Error(in_words(&error)),
    })
}

fn keys_of(credentials: &Credentials) -> Keys {
    let secret = |text: &str| Secret::from(text.to_owned());
    Keys {
        access_key: credentials.access_key_id().to_owned(),
        secret_key: secret(credentials.secret_access_key()),
        // Some say in this way that there is none.
        session_token: credentials.session_token().filter(|token| !token.is_empty()).map(secret),
        expires: credentials.expiry().map(wall_time),
    }
}

/// Returns keys as the library has them.
fn credentials_of(keys: &Keys) -> Credentials {
    let time = |at: WallTime| UNIX_EPOCH + Duration::from_nanos(at.as_unix_ns());
    let token = keys.session_token.as_ref().map(|token| token.expose().to_owned());
    let (access_key, secret_key) = (keys.access_key.clone(), keys.secret_key.expose().to_owned());
    Credentials::new(access_key, secret_key, token, keys.expires.map(time), process::SOURCE)
}

/// Returns a time as we have it; times before 1970 are long past either way.
pub(crate) fn wall_time(time: SystemTime) -> WallTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn config(chain: &Chain, region: Option<String>, client: &OwnClient) -> ProviderConfig {
    let region = region.unwrap_or_else(|| REGION_DEFAULT.to_owned());
    ProviderConfig::empty()
        .with_http_client(client.clone())
        .with_sleep_impl(TokioSleep::new())
        .with_time_source(RunTimeSource::of(chain))
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_region(Some(Region::new(region)))
}

/// The run's clock, as `aws-config` takes it.
pub(crate) struct RunTimeSource {
    clock: SharedClock,
    epoch: WallTime,
}

impl RunTimeSource {
    pub(crate) fn of(chain: &Chain) -> Self {
        Self { clock: chain.clock.clone(), epoch: chain.wall_epoch }
    }
}

impl std::fmt::Debug for RunTimeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunTimeSource")
    }
}

impl TimeSource for RunTimeSource {
    fn now(&self) -> SystemTime {
        let now = self.epoch.after(self.clock.now().since(Moment::EPOCH));
        UNIX_EPOCH + Duration::from_nanos(now.as_unix_ns())
    }
}

/// Waits for something on a thread of its own; `None` where it takes longer than `limit`. The
/// library reads some files without a look at what they are; a thread that is held up in one is
/// left behind.
pub(crate) fn wait<T: Send + 'static>(
    limit: Duration,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<Option<T>> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CredentialsError::Runtime)?;
    let (answer, answered) = mpsc::channel();
    let asking = move || {
        // Who has waited long enough is not there any more.
        let _ = answer.send(runtime.block_on(async { timeout(limit, future).await.ok() }));
        runtime.shutdown_background();
    };
    let named = thread::Builder::new().name("credentials".to_owned());
    named.spawn(asking).map_err(CredentialsError::Runtime)?;
    Ok(answered.recv_timeout(limit.saturating_add(HELD_UP_MAX)).ok().flatten())
}
