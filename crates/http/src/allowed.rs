//! Which hosts may be connected to, where somebody limits them: the owner of a machine whose
//! connections others direct.
//!
//! What is known beforehand is checked before anything is opened. What is learned on the way, such
//! as servers that a server names, is checked by whoever connects: before a name is looked up.

use std::sync::Arc;

use crate::Endpoint;

/// The hosts that may be connected to: all, or those that somebody named.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Option<Arc<Named>>);

/// The hosts that somebody named.
#[derive(Debug)]
struct Named {
    /// Port 0 stands for all ports of a host.
    hosts: Vec<Endpoint>,
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

    /// Returns these hosts, of which port 0 stands for all ports; `by` is what messages call the
    /// place where they are named, such as a flag.
    pub fn only(hosts: Vec<Endpoint>, by: &'static str) -> Self {
        Self(Some(Arc::new(Named { hosts, by })))
    }

    /// Returns whether they are those that somebody named.
    pub const fn are_named(&self) -> bool {
        self.0.is_some()
    }

    /// Refuses a host that may not be connected to.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), NotAllowed> {
        let Some(named) = &self.0 else { return Ok(()) };
        let is_it = |allowed: &Endpoint| {
            let is_port = allowed.port == 0 || allowed.port == endpoint.port;
            is_port && allowed.host.eq_ignore_ascii_case(&endpoint.host)
        };
        match named.hosts.iter().any(is_it) {
            true => Ok(()),
            false => Err(NotAllowed { endpoint: endpoint.clone(), by: named.by }),
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
        Self::only([&named.hosts[..], &[endpoint]].concat(), named.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand_hosts;

    #[test]
    fn a_host_without_a_port_stands_for_all_of_its_ports() {
        let hosts = expand_hosts("store{1...2},S3.lan:443,[::1]:9000", 0).unwrap();
        let only = AllowedHosts::only(hosts, "--allow-hosts");
        let check = |host: &str, port| only.check(&Endpoint::new(host, port));
        for (host, port) in [("store1", 1), ("STORE2", 65_535), ("s3.lan", 443), ("::1", 9000)] {
            assert_eq!(check(host, port), Ok(()), "{host}");
        }
        for (host, port) in [("store3", 1), ("s3.lan", 80), ("a.s3.lan", 443), ("127.0.0.1", 9000)]
        {
            let refused = check(host, port).unwrap_err().to_string();
            let expected =
                format!("its owner does not allow load on {host}:{port} (--allow-hosts)");
            assert_eq!(refused, expected);
        }
        let other = Endpoint::new("other", 7);
        assert_eq!(only.with(other.clone()).check(&other), Ok(()));
        assert!(only.check(&other).is_err() && AllowedHosts::ANY.check(&other).is_ok());
    }
}
