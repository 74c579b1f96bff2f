//! Which hosts may be connected to, or may be sent a secret, where somebody limits them.
//!
//! What is known beforehand is checked before anything is opened. What is learned on the way, such
//! as servers that a server names, is checked by whoever connects: before a name is looked up.

use std::sync::Arc;

use crate::{Endpoint, PatternError, expand_hosts};

/// A list of hosts that somebody named, each with one port or with all of its ports, and with
/// whether it is to be spoken to over TLS only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedHosts(Vec<(Endpoint, bool)>);

impl NamedHosts {
    /// Reads a list such as `s3-{1...4}:9000,10.0.0.7`; a host without a port stands for all of its
    /// ports.
    pub fn parse(list: &str) -> Result<Self, PatternError> {
        Ok(Self::default().and(expand_hosts(list, 0)?, false))
    }

    /// Returns these hosts and those, which are named for TLS only, or for any way.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Endpoint>, needs_tls: bool) -> Self {
        self.0.extend(more.into_iter().map(|host| (host, needs_tls)));
        self
    }

    /// Returns whether an address is in the list, over TLS or without. Names are compared as
    /// written, not resolved: a name server could change where they lead. Of `NAME@ADDRESS` the
    /// address must be in the list.
    pub fn have(&self, endpoint: &Endpoint, over_tls: bool) -> bool {
        self.0.iter().any(|(named, needs_tls)| {
            let is_host = match endpoint.address {
                None => named.address.is_none() && named.host.eq_ignore_ascii_case(&endpoint.host),
                Some(address) => {
                    let told = named.address.or_else(|| named.host.parse().ok());
                    told == Some(address)
                }
            };
            let is_port = named.port == 0 || named.port == endpoint.port;
            is_host && is_port && (over_tls || !needs_tls)
        })
    }

    /// Returns whether all of these addresses are in the list, each with whether it is spoken to
    /// over TLS.
    pub fn have_all(&self, endpoints: &[(Endpoint, bool)]) -> bool {
        endpoints.iter().all(|(endpoint, over_tls)| self.have(endpoint, *over_tls))
    }
}

/// The hosts that may be connected to: all, or those that the owner of a machine named, whose
/// connections others direct.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Option<Arc<Named>>);

#[derive(Debug)]
struct Named {
    hosts: NamedHosts,
    /// What messages call the place where they are named.
    by: &'static str,
}

/// A host that nobody named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its owner does not allow load on {endpoint} ({by})")]
pub struct NotAllowed {
    /// Which one.
    pub endpoint: Endpoint,
    /// Where the hosts are named that may be connected to.
    pub by: &'static str,
}

impl AllowedHosts {
    /// All hosts.
    pub const ANY: Self = Self(None);

    /// Returns these hosts; `by` is what messages call the place where they are named, such as a
    /// flag.
    pub fn only(hosts: NamedHosts, by: &'static str) -> Self {
        Self(Some(Arc::new(Named { hosts, by })))
    }

    /// Returns whether they are those that somebody named.
    pub const fn are_named(&self) -> bool {
        self.0.is_some()
    }

    /// Refuses a host that may not be connected to.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), NotAllowed> {
        match &self.0 {
            Some(named) if !named.hosts.have(endpoint, true) => {
                Err(NotAllowed { endpoint: endpoint.clone(), by: named.by })
            }
            _ => Ok(()),
        }
    }

    /// Refuses the first of several that may not be connected to.
    pub fn check_all<'e>(
        &self,
        endpoints: impl IntoIterator<Item = &'e Endpoint>,
    ) -> Result<(), NotAllowed> {
        endpoints.into_iter().try_for_each(|endpoint| self.check(endpoint))
    }

    /// Returns them with another one.
    #[must_use]
    pub fn with(&self, endpoint: Endpoint) -> Self {
        let Some(named) = &self.0 else { return Self::ANY };
        Self::only(named.hosts.clone().and([endpoint], false), named.by)
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
            ("lab", 65_535, true),
            ("lab.evil", 1, false),
            ("::1", 80, true),
            ("::1", 81, false),
        ] {
            assert_eq!(named.have(&Endpoint::new(host, port), false), is_named, "{host}:{port}");
        }
        let pinned = |host: &str, port, address: &str| Endpoint {
            address: Some(address.parse().unwrap()),
            ..Endpoint::new(host, port)
        };
        assert!(
            !named.have(&pinned("lab", 1, "10.0.0.9"), false),
            "whoever names the address chooses it"
        );
        assert!(
            named.have(&pinned("lab", 80, "::1"), false)
                && !named.have(&pinned("lab", 81, "::1"), false)
        );
        let safe = named.clone().and([Endpoint::new("safe", 0)], true);
        assert!(safe.have(&Endpoint::new("safe", 443), true), "over TLS");
        assert!(!safe.have(&Endpoint::new("safe", 443), false), "without");
        let of_name = NamedHosts::parse("lab@10.0.0.1").unwrap();
        assert!(of_name.have(&pinned("lab", 5, "10.0.0.1"), false));
        assert!(
            !of_name.have(&pinned("lab", 5, "10.0.0.2"), false)
                && !of_name.have(&Endpoint::new("lab", 5), false)
        );
        let own = Endpoint::new("own", 7);
        let both = [own.clone(), Endpoint::new("lab", 2)].map(|host| (host, false));
        assert!(named.and([own.clone()], false).have_all(&both));
        assert!(!NamedHosts::default().have(&own, true) && NamedHosts::default().have_all(&[]));
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_who_said_so() {
        let only = AllowedHosts::only(NamedHosts::parse("lab").unwrap(), "--allow-hosts");
        let own = Endpoint::new("own", 7);
        let refused = only.check(&own).unwrap_err().to_string();
        assert_eq!(refused, "its owner does not allow load on own:7 (--allow-hosts)");
        assert!(
            only.with(own.clone()).check(&own).is_ok() && AllowedHosts::ANY.check(&own).is_ok()
        );
    }
}
