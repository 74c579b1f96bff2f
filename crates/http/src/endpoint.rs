//! One address of a target: host and port.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use crate::patterns::ENDPOINTS_COUNT_MAX;

/// One address of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name or address as typed; an IPv6 address without brackets. Requests and certificates are
    /// made out to it.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Where to connect to; `None` asks the resolver for the host's addresses.
    pub address: Option<IpAddr>,
}

/// Why hosts could not be replaced by their addresses.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name has no address, or the resolver does not answer.
    #[error("cannot resolve host `{host}` (`resolve_host`)")]
    Host {
        /// The name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// More addresses than an endpoint's number can tell apart.
    #[error("the hosts have more than {ENDPOINTS_COUNT_MAX} addresses (`resolve_host`)")]
    TooMany,
}

/// Returns an endpoint for each address that a host has, in place of the host; requests and
/// certificates stay made out to its name.
///
/// An address counts once for each name. Asks the system's resolver and waits for it.
pub fn resolve_all(endpoints: &[Endpoint]) -> Result<Vec<Endpoint>, ResolveError> {
    let mut all = Vec::with_capacity(endpoints.len());
    let mut seen = HashSet::new();
    for endpoint in endpoints {
        let unresolved = |source| ResolveError::Host { host: endpoint.host.clone(), source };
        let addresses: Vec<IpAddr> = match endpoint.address {
            Some(address) => vec![address],
            None => (endpoint.host.as_str(), endpoint.port)
                .to_socket_addrs()
                .map_err(unresolved)?
                .map(|found| found.ip())
                .collect(),
        };
        if addresses.is_empty() {
            return Err(unresolved(io::Error::other("it has no address")));
        }
        let pinned = addresses.into_iter().map(|address| {
            // A numeric host is its own address.
            let named = !endpoint.host.contains(':') && endpoint.host.parse::<IpAddr>().is_err();
            Endpoint { address: named.then_some(address), ..endpoint.clone() }
        });
        all.extend(pinned.filter(|endpoint| seen.insert(endpoint.clone())));
        if all.len() > ENDPOINTS_COUNT_MAX {
            return Err(ResolveError::TooMany);
        }
    }
    Ok(all)
}

impl Endpoint {
    /// Returns an endpoint whose host the resolver knows.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, address: None }
    }

    /// Returns the value of the Host header: the scheme's default port is left out, IPv6 stands in
    /// brackets.
    pub fn authority(&self, tls: bool) -> String {
        let default_port = if tls { 443 } else { 80 };
        match (self.port == default_port, self.host.contains(':')) {
            (true, true) => format!("[{}]", self.host),
            (true, false) => self.host.clone(),
            (false, true) => format!("[{}]:{}", self.host, self.port),
            (false, false) => format!("{}:{}", self.host, self.port),
        }
    }

    /// Returns what the endpoint is called in results: the authority, and behind `@` the address
    /// where one is set. [`expand_hosts`](crate::expand_hosts) reads it again.
    pub fn label(&self, tls: bool) -> String {
        match self.address {
            Some(address) => format!("{}@{address}", self.authority(tls)),
            None => self.authority(tls),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)?;
        } else {
            write!(f, "{}:{}", self.host, self.port)?;
        }
        match self.address {
            Some(address) => write!(f, "@{address}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_leaves_out_the_default_port_and_brackets_ipv6() {
        for (host, port, tls, authority) in [
            ("a.example", 80, false, "a.example"),
            ("a.example", 80, true, "a.example:80"),
            ("a.example", 443, true, "a.example"),
            ("a.example", 9000, false, "a.example:9000"),
            ("::1", 9000, false, "[::1]:9000"),
            ("::1", 443, true, "[::1]"),
        ] {
            assert_eq!(Endpoint::new(host, port).authority(tls), authority);
        }
    }

    #[test]
    fn an_address_shows_in_the_label_and_not_in_the_authority() {
        let address = Some(IpAddr::from([10, 0, 0, 1]));
        let endpoint = Endpoint { address, ..Endpoint::new("a.example", 443) };
        assert_eq!(endpoint.authority(true), "a.example");
        assert_eq!(endpoint.label(true), "a.example@10.0.0.1");
        assert_eq!(endpoint.to_string(), "a.example:443@10.0.0.1");
        let read = crate::expand_hosts(&endpoint.label(true), 443);
        assert_eq!(read, Ok(vec![endpoint]), "a label is a host again");
    }

    #[test]
    fn a_name_becomes_all_its_addresses_and_a_number_stays() {
        let found = resolve_all(&[
            Endpoint::new("127.0.0.1", 9000),
            Endpoint::new("localhost", 9000),
            Endpoint::new("localhost", 9000),
        ])
        .unwrap();
        assert_eq!(found[0], Endpoint::new("127.0.0.1", 9000));
        assert!(found.len() >= 2, "localhost has an address");
        for endpoint in &found[1..] {
            assert_eq!((endpoint.host.as_str(), endpoint.port), ("localhost", 9000));
            assert!(endpoint.address.is_some_and(|address| address.is_loopback()));
        }
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len(), "each one once");
        // RFC 6761: no name below `invalid` has an address.
        let refused = resolve_all(&[Endpoint::new("nowhere.invalid", 1)]).unwrap_err();
        assert_eq!(refused.to_string(), "cannot resolve host `nowhere.invalid` (`resolve_host`)");
    }
}
