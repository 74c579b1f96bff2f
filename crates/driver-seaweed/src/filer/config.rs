//! What a driver of filers is told: where they are, and how files are written to them.

use std::time::Duration;

use plimsoll_http::{Endpoint, TlsConfig, Transport};

use super::path::{self, PathError};
use crate::SigningKeys;

/// The port that a filer has where nobody says otherwise.
pub const PORT: u16 = 8888;

/// Where filers are, and how files are written to them.
#[derive(Clone, Debug)]
pub struct FilerConfig {
    /// The filers, at least one; all of one store. Sessions take them in turn.
    pub filers: Vec<Endpoint>,
    /// The directory of all keys, without `/` around it; empty for the root of the filer.
    pub directory: String,
    /// The collection that content is stored in; empty leaves it to the filer, as all below.
    pub collection: String,
    /// Copies beyond the first, such as `001`.
    pub replication: String,
    /// How long files live, such as `3m`.
    pub ttl: String,
    /// The type of disk.
    pub disk: String,
    /// Where content is to be.
    pub data_center: String,
    /// The rack where it is to be.
    pub rack: String,
    /// Whether a directory that does not exist is created.
    pub creates_directory: bool,
    /// Whether content is on the disk before its upload is answered.
    pub fsync: bool,
    /// Whether whole files that are read are compared with the MD5 that the filer states: what
    /// somebody else wrote is known by nothing else. It costs as much as carrying the bytes.
    pub sums_reads: bool,
    /// The keys of tokens, which a filer takes other ones of than volume servers.
    pub keys: SigningKeys,
    /// TLS, or `None` for plain.
    pub tls: Option<TlsConfig>,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// What carries connections.
    pub transport: Transport,
}

impl FilerConfig {
    /// Returns the plain configuration of these filers and this directory, which may be written
    /// with `/` around it.
    pub fn new(filers: Vec<Endpoint>, directory: &str) -> Result<Self, PathError> {
        Ok(Self {
            filers,
            directory: path::directory(directory)?,
            collection: String::new(),
            replication: String::new(),
            ttl: String::new(),
            disk: String::new(),
            data_center: String::new(),
            rack: String::new(),
            creates_directory: false,
            fsync: false,
            sums_reads: false,
            keys: SigningKeys::default(),
            tls: None,
            connect_timeout: Duration::from_secs(10),
            transport: Transport::Sockets,
        })
    }

    /// Returns the same in another directory.
    pub(super) fn in_directory(&self, directory: &str) -> Result<Self, PathError> {
        Ok(Self { directory: path::directory(directory)?, ..self.clone() })
    }

    /// Returns the query of an upload, with its leading `?`; may be empty.
    pub(super) fn put_query(&self) -> String {
        let fields = [
            ("collection", &self.collection),
            ("replication", &self.replication),
            ("ttl", &self.ttl),
            ("disk", &self.disk),
            ("dataCenter", &self.data_center),
            ("rack", &self.rack),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let mut query: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", path::encoded(value))).collect();
        query.extend(self.fsync.then(|| "fsync=true".to_owned()));
        if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_says_what_was_given_and_nothing_else() {
        let plain = FilerConfig::new(vec![Endpoint::new("f", PORT)], "/bench/").unwrap();
        assert_eq!((plain.put_query().as_str(), plain.directory.as_str()), ("", "bench"));
        let all = FilerConfig {
            collection: "a&b".to_owned(),
            replication: "001".to_owned(),
            ttl: "3d".to_owned(),
            disk: "ssd".to_owned(),
            data_center: "d 1".to_owned(),
            rack: "r1".to_owned(),
            fsync: true,
            ..plain
        };
        let query = "?collection=a%26b&replication=001&ttl=3d&disk=ssd&dataCenter=d%201&rack=r1\
                     &fsync=true";
        assert_eq!(all.put_query(), query);
    }
}
