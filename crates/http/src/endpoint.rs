//! One address of a target: host and port.

use std::fmt;

/// One address of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name or address as typed; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Returns the value of the Host header: the scheme's default port is left out, IPv6 stands in
    /// brackets.
    pub fn authority(&self, tls: bool) -> String {
        let default_port = if tls { 443 } else { 80 };
        match (self.port == default_port, self.host.contains(':')) {
            (true, true) => format!("[{}]", self.host),
            (true, false) => self.host.clone(),
            (false, _) => self.to_string(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
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
            assert_eq!(Endpoint { host: host.to_owned(), port }.authority(tls), authority);
        }
    }
}
