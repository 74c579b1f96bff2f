//! Hosts that somebody named, such as those that a secret may be sent to.

use plimsoll_http::{Endpoint, PatternError, expand_hosts};

/// A list of hosts, each with one port or with all of its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedHosts(Vec<Endpoint>);

impl NamedHosts {
    /// Reads a list such as `s3-{1...4}:9000,10.0.0.7`; a host without a port stands for all of its
    /// ports.
    pub fn parse(list: &str) -> Result<Self, PatternError> {
        expand_hosts(list, 0).map(Self)
    }

    /// Returns these hosts and those.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Endpoint>) -> Self {
        self.0.extend(more);
        self
    }

    /// Returns whether an address is in the list. Names are compared as written, not by what they
    /// resolve to: whoever answers for a name could change that.
    pub fn have(&self, endpoint: &Endpoint) -> bool {
        self.0.iter().any(|named| {
            named.host.eq_ignore_ascii_case(&endpoint.host)
                && (named.port == 0 || named.port == endpoint.port)
        })
    }

    /// Returns whether all of these addresses are in the list.
    pub fn have_all(&self, endpoints: &[Endpoint]) -> bool {
        endpoints.iter().all(|endpoint| self.have(endpoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_with_one_port_or_with_all() {
        let named = NamedHosts::parse("s3-{1...2}:9000,LAB,[::1]:80").unwrap();
        for (host, port, is_named) in [
            ("s3-1", 9000, true),
            ("s3-2", 9000, true),
            ("s3-2", 9001, false),
            ("s3-3", 9000, false),
            ("lab", 1, true),
            ("lab.evil", 1, false),
            ("::1", 80, true),
            ("::1", 81, false),
        ] {
            assert_eq!(named.have(&Endpoint::new(host, port)), is_named, "{host}:{port}");
        }
        let own = Endpoint::new("own", 7);
        assert!(named.and([own.clone()]).have_all(&[own.clone(), Endpoint::new("lab", 2)]));
        assert!(!NamedHosts::default().have(&own) && NamedHosts::default().have_all(&[]));
    }
}
