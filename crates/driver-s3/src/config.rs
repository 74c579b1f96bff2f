//! What the driver is told: the target, the credentials and how to ask.

use std::time::Duration;

use plimsoll_driver::MissingRoot;
use plimsoll_http::patterns::ENDPOINTS_COUNT_MAX;
use plimsoll_http::{
    Endpoint, HostSelect, HttpVersion, Proxies, TlsConfig, Transport, TransportError,
};
use plimsoll_model::{Lookup, WallTime};

use crate::options::Settings;
use crate::{Credentials, RequestOptions};

/// The longest bucket name that any server takes (the limit of S3 before 2018).
const BUCKET_NAME_BYTES_MAX: usize = 255;

/// How long making a connection may take where nobody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything an [`S3Driver`](crate::S3Driver) needs to know.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The addresses of the target, indexed by `EndpointId`.
    pub endpoints: Vec<Endpoint>,
    /// TLS, or `None` for plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Who asks.
    pub credentials: Credentials,
    /// Where keys were looked for in vain, as messages say it.
    pub keys_sought: Option<String>,
    /// The region requests are signed for; `None` takes it from the host's name.
    pub region: Option<String>,
    /// The region where neither says it; `None` takes `us-east-1`.
    pub region_otherwise: Option<String>,
    /// The bucket everything happens in.
    pub bucket: String,
    /// What happens where that does not exist.
    pub missing_bucket: MissingRoot,
    /// How the bucket is named in requests.
    pub lookup: Lookup,
    /// How the endpoint of the next operation is chosen.
    pub host_select: HostSelect,
    /// Whether the SHA-256 of written content is computed and signed.
    pub sign_payload: bool,
    /// Whether the MD5 of written content is computed and sent.
    pub content_md5: bool,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long the store may let an exchange go without a byte; `None` leaves it to the caller.
    pub stall_timeout: Option<Duration>,
    /// Whether connections are kept between operations.
    pub keep_alive: bool,
    /// The version of HTTP that is spoken.
    pub http_version: HttpVersion,
    /// The proxies on the way, if any.
    pub proxies: Option<Proxies>,
    /// What carries connections.
    pub transport: Transport,
    /// The wall time at the run's epoch, from which the time in signatures is reckoned.
    pub wall_epoch: WallTime,
    /// What else requests ask of the target.
    pub options: RequestOptions,
}

/// Why a driver cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no endpoint.
    #[error("there is no host to speak to; give one with `host`")]
    NoEndpoint,
    /// There are more endpoints than a record holds.
    #[error("{0} hosts are too many, {ENDPOINTS_COUNT_MAX} are the most (`host`)")]
    TooManyEndpoints(usize),
    /// An endpoint's name cannot be one.
    #[error("`{0}` is not a host name (`host`)")]
    Host(String),
    /// The bucket's name cannot be one.
    #[error(
        "`{0}` is not a bucket name: 1 to {BUCKET_NAME_BYTES_MAX} letters, digits, `.`, `-` or `_`, \
         beginning with a letter or digit (`bucket`)"
    )]
    Bucket(String),
    /// The bucket's name cannot be part of a host's name.
    #[error(
        "bucket `{0}` is not allowed in a host name: 3 to 63 lower-case letters, digits, `-` or `.` \
         can (`lookup` path or another `bucket`)"
    )]
    BucketNotDns(String),
    /// The host is a numeric address, before which no bucket can stand.
    #[error(
        "a bucket cannot stand before the numeric address `{0}` (`lookup` path or another `host`)"
    )]
    NumericHost(String),
    /// One half of the credentials is missing.
    #[error("the {0} is empty; give both `access_key` and `secret_key`")]
    EmptyKey(&'static str),
    /// A part of the credentials, or the region, that a header cannot hold.
    #[error("the {name} holds a blank or a character that is not plain ASCII ({flag})")]
    NotPlain {
        /// Which value.
        name: &'static str,
        /// The flag that sets it.
        flag: &'static str,
    },
    /// A key would go over the wire for everyone to read.
    #[error("a key of your own (SSE-C) goes with every request, so it needs `tls`")]
    KeyInTheClear,
    /// A trailing checksum and something it cannot go with.
    #[error("`checksum` cannot go with {0}; leave one of them out")]
    ChecksumWith(&'static str),
    /// No part can have that size.
    #[error("part size {0} B is out of range: 1 B to 5 GiB (`part_size`)")]
    PartSize(u64),
    /// Not so many parts can be on their way at once.
    #[error("{0} parts at once cannot be, 1 to 1000 can (`part_parallel`)")]
    PartConcurrency(u32),
    /// A text that S3 or HTTP does not take.
    #[error(
        "a name is empty, or a text holds what is not plain ASCII or begins or ends with a blank \
         ({0})"
    )]
    Text(&'static str),
    /// More tags than an object may have.
    #[error("{0} tags are too many, an object has at most {1} (`tag`)")]
    TooManyTags(usize, usize),
}

impl S3Config {
    /// Returns how a store is asked that speaks plain HTTP, by nobody, in the plainest way.
    pub fn new(endpoints: Vec<Endpoint>, bucket: &str, wall_epoch: WallTime) -> Self {
        Self {
            endpoints,
            tls: None,
            credentials: Credentials::Anonymous,
            keys_sought: None,
            region: None,
            region_otherwise: None,
            bucket: bucket.to_owned(),
            missing_bucket: MissingRoot::Refuse,
            lookup: Lookup::default(),
            host_select: HostSelect::Weighed,
            sign_payload: false,
            content_md5: false,
            connect_timeout: CONNECT_TIMEOUT,
            stall_timeout: None,
            keep_alive: true,
            http_version: HttpVersion::One,
            proxies: None,
            transport: Transport::Sockets,
            wall_epoch,
            options: RequestOptions::default(),
        }
    }

    /// Has connections carried by `transport`, if it can carry them; `is_here` tells whether they
    /// are made on this machine.
    pub fn carry_by(&mut self, transport: Transport, is_here: bool) -> Result<(), TransportError> {
        self.transport = transport;
        transport.check(self.tls.is_some(), self.http_version, self.proxies.is_some(), is_here)
    }

    /// Returns the first thing that cannot work, apart from addressing.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        if self.endpoints.len() > ENDPOINTS_COUNT_MAX {
            return Err(ConfigError::TooManyEndpoints(self.endpoints.len()));
        }
        for endpoint in &self.endpoints {
            let odd = |b: u8| !b.is_ascii_graphic() || b"/?#@[]\\".contains(&b);
            if endpoint.host.is_empty() || endpoint.host.bytes().any(odd) {
                return Err(ConfigError::Host(endpoint.host.clone()));
            }
        }
        if !is_bucket_name(&self.bucket) {
            return Err(ConfigError::Bucket(self.bucket.clone()));
        }
        for region in [&self.region, &self.region_otherwise].into_iter().flatten() {
            check_plain("region", "`region`", region)?;
        }
        if let Some(keys) = self.credentials.current() {
            keys.check()?;
        }
        self.options.check(Settings {
            tls: self.tls.is_some(),
            sign_payload: self.sign_payload,
            content_md5: self.content_md5,
        })
    }
}

pub(crate) fn check_plain(
    name: &'static str,
    flag: &'static str,
    text: &str,
) -> Result<(), ConfigError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(ConfigError::NotPlain { name, flag });
    }
    Ok(())
}

pub(crate) fn is_bucket_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    name.len() <= BUCKET_NAME_BYTES_MAX
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && name.bytes().all(fits)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A configuration that works, for tests to change.
    pub(crate) fn sample() -> S3Config {
        // 2013-05-24T00:00:00Z, the day of the examples in the S3 documentation.
        let wall_epoch = WallTime::from_unix_ns(1_369_353_600_000_000_000);
        let endpoints = vec![Endpoint::new("s3.example", 80)];
        S3Config {
            credentials: Credentials::keys(
                "AKIAIOSFODNN7EXAMPLE",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                None,
            ),
            ..S3Config::new(endpoints, "examplebucket", wall_epoch)
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_flag_to_change() {
        type Change = dyn Fn(&mut S3Config);
        let refused = |change: &Change| {
            let mut config = sample();
            change(&mut config);
            config.check().err().map(|error| error.to_string()).unwrap_or_default()
        };
        let cases: [(&Change, &str); 10] = [
            (&|c| c.endpoints.clear(), "`host`"),
            (&|c| c.endpoints = vec![c.endpoints[0].clone(); 4_097], "4096 are the most (`host`)"),
            (&|c| c.endpoints[0].host.clear(), "`` is not a host name (`host`)"),
            (&|c| c.endpoints[0].host = "http://x".to_owned(), "`host`"),
            (&|c| c.bucket.clear(), "`bucket`"),
            (&|c| c.bucket = "a/b".to_owned(), "`a/b` is not a bucket name"),
            (&|c| c.bucket = "..".to_owned(), "`..` is not a bucket name"),
            (&|c| c.region = Some("eu west".to_owned()), "`region`"),
            (&|c| c.credentials = Credentials::keys("", "s", None), "the access key is empty"),
            (
                &|c| c.credentials = Credentials::keys("a", "s", Some("t\r\nx: y")),
                "`session_token`",
            ),
        ];
        for (change, text) in cases {
            let message = refused(change);
            assert!(message.contains(text), "`{message}` should hold `{text}`");
        }
        assert_eq!(sample().check(), Ok(()));
        assert_eq!(refused(&|c| c.credentials = Credentials::Anonymous), "");
    }
}
