//! What a driver is told: where the cluster is, and how files are written to it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use plimsoll_http::{AllowedHosts, Options, TlsConfig, Transport};

use crate::ServerAddress;

/// How file ids are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssignBy {
    /// By a call of gRPC each, as `weed benchmark` does.
    #[default]
    Call,
    /// Over one stream of gRPC.
    Stream,
    /// By HTTP, `/dir/assign`.
    Http,
}

/// How content goes to a volume server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UploadBy {
    /// As a form of one part (POST), as `weed` does.
    #[default]
    Form,
    /// As it is (PUT).
    Put,
}

/// The keys that tokens are signed with, where the client is given them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SigningKeys {
    /// Of writes and deletes.
    pub write: Option<Vec<u8>>,
    /// Of reads.
    pub read: Option<Vec<u8>>,
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &Option<Vec<u8>>| if key.is_some() { "given" } else { "none" };
        let (write, read) = (shown(&self.write), shown(&self.read));
        write!(f, "SigningKeys {{ write: {write}, read: {read} }}")
    }
}

/// Where a cluster is, and how files are written to it.
#[derive(Clone, Debug)]
pub struct SeaweedConfig {
    /// Its masters, at least one; the leader is found among them.
    pub masters: Vec<ServerAddress>,
    /// The collection that files are written to; empty for the one without a name.
    pub collection: String,
    /// Copies beyond the first, such as `001`; empty leaves it to the master.
    pub replication: String,
    /// How long files live, such as `3m`; empty for ever.
    pub ttl: String,
    /// The type of disk; empty for `hdd`.
    pub disk: String,
    /// Where files are to be; empty for anywhere.
    pub data_center: String,
    /// The rack where they are to be; empty for any.
    pub rack: String,
    /// Whether a file is on the disk before its upload is answered.
    pub fsync: bool,
    /// How file ids are asked for.
    pub assign_by: AssignBy,
    /// How many ids are asked for at once, at least 1.
    pub assign_count: u32,
    /// How content goes to a volume server.
    pub upload_by: UploadBy,
    /// How many volumes are made before a run.
    pub grow: Option<u32>,
    /// Whether a collection that does not exist is created.
    pub creates_collection: bool,
    /// Whether a collection that the run made is dropped with what the run wrote.
    pub drop_collection: bool,
    /// The keys of tokens.
    pub keys: SigningKeys,
    /// TLS to volume servers and to masters' HTTP; `None` for plain.
    pub tls: Option<TlsConfig>,
    /// Masters speak plain HTTP although volume servers speak TLS.
    pub masters_are_plain: bool,
    /// TLS of gRPC, `None` for plain.
    pub grpc_tls: Option<TlsConfig>,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// What carries connections to volume servers and, for ids over HTTP, to masters.
    pub transport: Transport,
    /// Which hosts may be connected to; masters and volume servers name each other.
    pub allowed: AllowedHosts,
    /// How long the first volumes may take to be made.
    pub growth_timeout: Duration,
}

impl SeaweedConfig {
    /// Returns the plain configuration of these masters and this collection.
    pub fn new(masters: Vec<ServerAddress>, collection: impl Into<String>) -> Self {
        Self {
            masters,
            collection: collection.into(),
            replication: String::new(),
            ttl: String::new(),
            disk: String::new(),
            data_center: String::new(),
            rack: String::new(),
            fsync: false,
            assign_by: AssignBy::default(),
            assign_count: 1,
            upload_by: UploadBy::default(),
            grow: None,
            creates_collection: false,
            drop_collection: false,
            keys: SigningKeys::default(),
            tls: None,
            masters_are_plain: false,
            grpc_tls: None,
            connect_timeout: Duration::from_secs(10),
            transport: Transport::Sockets,
            allowed: AllowedHosts::ANY,
            growth_timeout: Duration::from_secs(30),
        }
    }

    /// Returns TLS to masters' HTTP.
    pub(crate) fn masters_tls(&self) -> Option<TlsConfig> {
        self.tls.clone().filter(|_| !self.masters_are_plain)
    }

    /// Returns the options for gRPC to a server. An allowed HTTP port includes the usual gRPC port.
    /// Any other gRPC port must be allowed itself, because servers announce each other's ports.
    pub(crate) fn grpc_options(&self, server: &ServerAddress) -> Options {
        let is_allowed = server.has_usual_grpc_port() && self.allowed.check(&server.http).is_ok();
        Options {
            connect_timeout: self.connect_timeout,
            tls: self.grpc_tls.clone(),
            allowed: match is_allowed {
                true => self.allowed.with(server.grpc()),
                false => self.allowed.clone(),
            },
            ..Options::default()
        }
    }
}

impl SeaweedConfig {
    /// Adds to the path of a call of HTTP, which has a query, where files of a collection are to
    /// be, as far as anything is said of it.
    pub(crate) fn push_placement(&self, collection: &str, path: &mut String) {
        for (name, value) in [
            ("collection", collection),
            ("replication", &self.replication),
            ("ttl", &self.ttl),
            ("disk", &self.disk),
            ("dataCenter", &self.data_center),
            ("rack", &self.rack),
        ] {
            if !value.is_empty() {
                let value = percent_encode(value.as_bytes(), NON_ALPHANUMERIC);
                write!(path, "&{name}={value}").expect("memory takes everything");
            }
        }
    }
}

/// Returns how SeaweedFS writes how long files live: a number of at most 255 with a unit of
/// minutes, hours, days, weeks or years of 365 days; `None` where that cannot be said exactly.
pub fn ttl_of(time: Duration) -> Option<String> {
    const UNITS: [(u64, char); 5] =
        [(31_536_000, 'y'), (604_800, 'w'), (86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let seconds = time.as_secs();
    let is_whole = time.subsec_nanos() == 0 && seconds > 0;
    let fits = |(length, _): &&(u64, char)| {
        seconds.is_multiple_of(*length) && seconds / length <= u64::from(u8::MAX)
    };
    let (length, unit) = UNITS.iter().find(fits).filter(|_| is_whole)?;
    Some(format!("{}{unit}", seconds / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_exact_or_none() {
        for (seconds, ttl) in [
            (60, Some("1m")),
            (90 * 60, Some("90m")),
            (7_200, Some("2h")),
            (86_400, Some("1d")),
            (14 * 86_400, Some("2w")),
            (365 * 86_400, Some("1y")),
            (255 * 60, Some("255m")),
            (257 * 60, None),
            (0, None),
            (59, None),
            (61, None),
        ] {
            let found = ttl_of(Duration::from_secs(seconds));
            assert_eq!(found.as_deref(), ttl, "{seconds}");
        }
        assert_eq!(ttl_of(Duration::from_millis(60_500)), None);
    }
}
