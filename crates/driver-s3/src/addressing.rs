//! Where requests go: Host header, path prefix and region, resolved once from the configuration.

use std::net::Ipv4Addr;
use std::sync::Arc;

use plimsoll_http::Endpoint;
use plimsoll_model::{Lookup, WallTime};

use crate::config::is_bucket_name;
use crate::headers::OptionHeaders;
use crate::{ConfigError, S3Config};

const REGION_DEFAULT: &str = "us-east-1";

/// Hosts at or below these names serve buckets as part of the host's name.
const DNS_STYLE_DOMAINS: [&str; 4] =
    ["amazonaws.com", "amazonaws.com.cn", "aliyuncs.com", "storage.googleapis.com"];

/// The target as requests need it.
#[derive(Debug)]
pub(crate) struct Target {
    /// Where operations go that name no bucket.
    pub(crate) place: Arc<Place>,
    pub(crate) region: String,
    pub(crate) wall_epoch: WallTime,
    pub(crate) headers: OptionHeaders,
}

/// A bucket, as requests need it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: String,
    /// Indexed by `EndpointId`.
    pub(crate) addresses: Vec<Address>,
}

/// One endpoint as requests need it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Whom the socket connects to, and whose certificate TLS expects.
    pub(crate) connect_to: Endpoint,
    /// The value of the Host header.
    pub(crate) host_header: String,
    /// What stands before `/key`: `/bucket`, or nothing when the bucket is in the host's name.
    pub(crate) path_prefix: String,
    /// The bucket when it is in the host's name, else nothing.
    pub(crate) host_bucket: String,
}

impl Target {
    pub(crate) fn resolve(config: &S3Config) -> Result<Self, ConfigError> {
        let place = Arc::new(Place::resolve(config, &config.bucket)?);
        let from_host = || {
            config.endpoints.iter().find_map(|endpoint| region_of(&endpoint.host.to_lowercase()))
        };
        let region =
            config.region.clone().or_else(from_host).or_else(|| config.region_otherwise.clone());
        Ok(Self {
            place,
            region: region.unwrap_or_else(|| REGION_DEFAULT.to_owned()),
            wall_epoch: config.wall_epoch,
            headers: OptionHeaders::new(&config.options),
        })
    }

    /// Tells whether a bucket made in this region must say so (S3 refuses the default region's
    /// name).
    pub(crate) fn states_location(&self) -> bool {
        self.region != REGION_DEFAULT
    }
}

impl Place {
    /// Returns a bucket of the target.
    pub(crate) fn resolve(config: &S3Config, bucket: &str) -> Result<Self, ConfigError> {
        if !is_bucket_name(bucket) {
            return Err(ConfigError::Bucket(bucket.to_owned()));
        }
        let tls = config.tls.is_some();
        let address = |endpoint| Address::resolve(endpoint, bucket, config.lookup, tls);
        let addresses = config.endpoints.iter().map(address).collect::<Result<_, _>>()?;
        Ok(Self { bucket: bucket.to_owned(), addresses })
    }
}

impl Address {
    fn resolve(
        endpoint: &Endpoint,
        bucket: &str,
        lookup: Lookup,
        tls: bool,
    ) -> Result<Self, ConfigError> {
        let numeric = endpoint.host.contains(':') || endpoint.host.parse::<Ipv4Addr>().is_ok();
        let dns = match lookup {
            Lookup::Path => false,
            Lookup::Dns if numeric => return Err(ConfigError::NumericHost(endpoint.host.clone())),
            Lookup::Dns if !is_dns_name(bucket) => {
                return Err(ConfigError::BucketNotDns(bucket.to_owned()));
            }
            Lookup::Dns => true,
            // A certificate for *.host does not cover a.b.host.
            Lookup::Auto => {
                is_dns_style_host(&endpoint.host)
                    && is_dns_name(bucket)
                    && !(tls && bucket.contains('.'))
            }
        };
        let mut connect_to = endpoint.clone();
        if dns {
            connect_to.host = format!("{bucket}.{}", endpoint.host);
        }
        Ok(Self {
            host_header: connect_to.authority(tls),
            connect_to,
            path_prefix: if dns { String::new() } else { format!("/{bucket}") },
            host_bucket: if dns { bucket.to_owned() } else { String::new() },
        })
    }
}

fn is_dns_style_host(host: &str) -> bool {
    let host = host.to_lowercase();
    DNS_STYLE_DOMAINS.iter().any(|domain| {
        host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Tells whether a bucket's name may stand in a host's name (the S3 naming rules that matter for
/// that).
fn is_dns_name(bucket: &str) -> bool {
    let label_fits = |label: &str| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(fits)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (3..=63).contains(&bucket.len())
        && bucket.split('.').all(label_fits)
        && bucket.parse::<Ipv4Addr>().is_err()
}

/// Returns the region that an AWS host's name holds: `s3.REGION.`, `s3-REGION.` or
/// `s3.dualstack.REGION.`.
fn region_of(host: &str) -> Option<String> {
    let name =
        host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    let region = name
        .strip_prefix("s3.dualstack.")
        .or_else(|| name.strip_prefix("s3-fips.dualstack."))
        .or_else(|| name.strip_prefix("s3-fips."))
        .or_else(|| name.strip_prefix("s3."))
        .or_else(|| name.strip_prefix("s3-"))?;
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    // `s3-accelerate` and `s3-external-1` name no region; regions end in `-<digits>`.
    let is_region = region.bytes().all(fits)
        && region.starts_with(|c: char| c.is_ascii_lowercase())
        && region.matches('-').count() >= 2
        && region.ends_with(|c: char| c.is_ascii_digit());
    is_region.then(|| region.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::sample;

    #[test]
    fn the_bucket_stands_in_the_host_or_in_the_path() {
        use Lookup::{Auto, Dns, Path};
        for (host, bucket, lookup, tls, host_header, path_prefix) in [
            ("s3.amazonaws.com", "abc", Auto, true, "abc.s3.amazonaws.com:9000", ""),
            (
                "s3.eu-west-1.amazonaws.com",
                "a.bc",
                Auto,
                false,
                "a.bc.s3.eu-west-1.amazonaws.com:9000",
                "",
            ),
            ("s3.amazonaws.com", "a.bc", Auto, true, "s3.amazonaws.com:9000", "/a.bc"),
            ("s3.amazonaws.com", "Abc", Auto, true, "s3.amazonaws.com:9000", "/Abc"),
            (
                "oss-cn-hangzhou.aliyuncs.com",
                "abc",
                Auto,
                false,
                "abc.oss-cn-hangzhou.aliyuncs.com:9000",
                "",
            ),
            ("storage.googleapis.com", "abc", Auto, false, "abc.storage.googleapis.com:9000", ""),
            ("notamazonaws.com", "abc", Auto, false, "notamazonaws.com:9000", "/abc"),
            ("localhost", "abc", Auto, false, "localhost:9000", "/abc"),
            ("127.0.0.1", "abc", Auto, false, "127.0.0.1:9000", "/abc"),
            ("::1", "abc", Auto, false, "[::1]:9000", "/abc"),
            ("s3.amazonaws.com", "abc", Path, false, "s3.amazonaws.com:9000", "/abc"),
            ("minio.lan", "abc", Dns, true, "abc.minio.lan:9000", ""),
        ] {
            let endpoint = Endpoint::new(host, 9000);
            let address = Address::resolve(&endpoint, bucket, lookup, tls).unwrap();
            assert_eq!(address.host_header, host_header);
            assert_eq!(address.path_prefix, path_prefix, "{host} {bucket}");
            let named =
                if path_prefix.is_empty() { format!("{bucket}.{host}") } else { host.to_owned() };
            assert_eq!(address.connect_to, Endpoint::new(named, 9000));
        }
    }

    #[test]
    fn dns_lookup_is_refused_where_no_name_can_hold_the_bucket() {
        for (host, bucket, flag) in [
            ("10.0.0.1", "abc", "`host`"),
            ("::1", "abc", "`host`"),
            ("minio.lan", "a_c", "`bucket`"),
        ] {
            let endpoint = Endpoint::new(host, 80);
            let refused = Address::resolve(&endpoint, bucket, Lookup::Dns, false).unwrap_err();
            assert!(refused.to_string().contains(flag), "{refused}");
        }
    }

    #[test]
    fn bucket_names_that_a_host_name_can_hold() {
        for name in ["abc", "a-b.c1", "123", &"a".repeat(63)] {
            assert!(is_dns_name(name), "{name}");
        }
        for name in ["ab", "a..b", "-ab", "a-.b", "Abc", "a_b", "192.168.0.1", &"a".repeat(64)] {
            assert!(!is_dns_name(name), "{name}");
        }
    }

    #[test]
    fn the_region_is_given_or_named_by_the_host_or_the_default() {
        for (given, host, region) in [
            (Some("eu-1"), "s3.us-west-2.amazonaws.com", "eu-1"),
            (None, "s3.us-west-2.amazonaws.com", "us-west-2"),
            (None, "S3.US-WEST-2.amazonaws.com", "us-west-2"),
            (None, "s3-us-gov-west-1.amazonaws.com", "us-gov-west-1"),
            (None, "s3.dualstack.eu-central-1.amazonaws.com", "eu-central-1"),
            (None, "s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            (None, "s3.amazonaws.com", "us-east-1"),
            (None, "s3-accelerate.amazonaws.com", "us-east-1"),
            (None, "s3-external-1.amazonaws.com", "us-east-1"),
            (None, "s3.us-west-2.example.com", "us-east-1"),
        ] {
            let mut config = sample();
            config.region = given.map(str::to_owned);
            config.endpoints[0].host = host.to_owned();
            let target = Target::resolve(&config).unwrap();
            assert_eq!(target.region, region, "{host}");
            assert_eq!(target.states_location(), region != "us-east-1");
        }
    }
}
