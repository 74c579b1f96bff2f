//! Proxies: which requests go through one, and through which.

mod server;

use std::net::IpAddr;
use std::sync::Arc;

pub(crate) use self::server::{PROXY_WANTS_USER, ProxyServer};
use plimsoll_model::Secret;

use crate::patterns::PatternError;
use crate::{Endpoint, TlsOptions, TlsSetupError};

/// Which requests go through which proxy. Its `Debug` form holds no password.
#[derive(Clone, Debug)]
pub struct Proxies {
    http: Option<Arc<ProxyServer>>,
    https: Option<Arc<ProxyServer>>,
    /// Who is spoken to without one.
    exceptions: Vec<Exception>,
    /// Whether loopback is spoken to without one.
    spares_loopback: bool,
}

/// What the customary variables hold, each `None` or empty where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyVariables<'a> {
    /// The proxy for plain HTTP (`HTTP_PROXY`).
    pub http: Option<&'a str>,
    /// The one for TLS (`HTTPS_PROXY`).
    pub https: Option<&'a str>,
    /// The one for either, where it has none of its own (`ALL_PROXY`).
    pub all: Option<&'a str>,
    /// Who is spoken to without (`NO_PROXY`): names (with all that is below them, with a leading
    /// dot only that), addresses, networks such as `10.0.0.0/8`, each but networks with a port if
    /// need be, or `*`, behind commas.
    pub exceptions: &'a str,
}

/// A host, or a set of them, that is spoken to without a proxy.
#[derive(Clone, Debug)]
enum Exception {
    Everyone,
    /// The domain and all below it, or only below it.
    Domain {
        name: String,
        only_below: bool,
        port: Option<u16>,
    },
    Network {
        address: IpAddr,
        prefix_bits: u32,
    },
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
}

/// Why the settings of a proxy cannot be used. No password stands in it.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The proxy is spoken to in a way that is not known.
    #[error(
        "a proxy of the kind `{0}://` is not known: http://, https://, socks5:// and socks5h:// are"
    )]
    Scheme(String),
    /// Its host is none.
    #[error("the proxy's address is not HOST:PORT")]
    Host(#[source] PatternError),
    /// It is a list of hosts.
    #[error("the proxy's address names several hosts")]
    Several,
    /// The user's name or password is not plain text.
    #[error("the proxy's user name or password is not valid percent-encoded text")]
    User,
    /// SOCKS has no room for the user's name or password (RFC 1929).
    #[error("a SOCKS proxy takes a user name and a password of 1 to 255 bytes each")]
    SocksUser,
    /// TLS to the proxy could not be set up.
    #[error("cannot set up TLS to the proxy")]
    Tls(#[source] TlsSetupError),
}

impl Proxies {
    /// Returns the settings that the customary variables hold; `None` if there is no proxy at all.
    ///
    /// A proxy is `[SCHEME://][USER:PASSWORD@]HOST[:PORT]` with one of the schemes `http` (which it
    /// is without one), `https`, `socks5` (names are resolved here) and `socks5h` (by the proxy).
    /// Whom to trust where TLS is spoken to it says `trust`, but for the certificate to show, which
    /// is none. Loopback is spoken to without a proxy always.
    pub fn parse(
        variables: &ProxyVariables<'_>,
        trust: &TlsOptions,
    ) -> Result<Option<Self>, ProxyError> {
        let server = |text: Option<&str>| {
            let given =
                |text: Option<&str>| Some(text?.trim().to_owned()).filter(|it| !it.is_empty());
            let text = given(text).or_else(|| given(variables.all));
            text.map(|text| ProxyServer::parse(&text, trust).map(Arc::new)).transpose()
        };
        let (http, https) = (server(variables.http)?, server(variables.https)?);
        if http.is_none() && https.is_none() {
            return Ok(None);
        }
        let exceptions = variables.exceptions.split(',').filter_map(Exception::parse).collect();
        Ok(Some(Self { http, https, exceptions, spares_loopback: true }))
    }

    /// Returns one proxy that every request goes through, to loopback as well.
    pub fn all(url: &str, trust: &TlsOptions) -> Result<Self, ProxyError> {
        let server = Arc::new(ProxyServer::parse(url.trim(), trust)?);
        Ok(Self {
            http: Some(Arc::clone(&server)),
            https: Some(server),
            exceptions: Vec::new(),
            spares_loopback: false,
        })
    }

    /// Returns where they are.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        [&self.http, &self.https].into_iter().flatten().map(|server| &server.endpoint)
    }

    /// Tells whether one of them is spoken to over TLS.
    pub fn speak_tls(&self) -> bool {
        [&self.http, &self.https].into_iter().flatten().any(|server| server.speaks_tls())
    }

    /// Returns who asks them, in each form in which they or a store may repeat it.
    pub fn secrets(&self) -> Vec<Secret> {
        [&self.http, &self.https]
            .into_iter()
            .flatten()
            .flat_map(|server| server.secrets())
            .collect()
    }

    /// Returns the proxy that requests to `endpoint` go through.
    pub(crate) fn route(&self, endpoint: &Endpoint, tls: bool) -> Option<Arc<ProxyServer>> {
        let server = if tls { &self.https } else { &self.http };
        let host = endpoint.host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        let loopback = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let excepted = |each: &Exception| each.covers(&host, address, endpoint.port);
        let spared = loopback && self.spares_loopback;
        if spared || self.exceptions.iter().any(excepted) { None } else { server.clone() }
    }
}

impl Exception {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::Everyone);
        }
        if let Some((address, bits)) = text.split_once('/') {
            return Some(Self::Network {
                address: address.parse().ok()?,
                prefix_bits: bits.parse().ok()?,
            });
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Address { address, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Some(Self::Address { address, port });
        }
        let host = host.strip_prefix('*').unwrap_or(host);
        let name = host.trim_matches('.').to_owned();
        Some(Self::Domain { name, only_below: host.starts_with('.'), port })
    }

    fn covers(&self, host: &str, host_address: Option<IpAddr>, host_port: u16) -> bool {
        let port_fits = |port: &Option<u16>| port.is_none_or(|port| port == host_port);
        match self {
            Self::Everyone => true,
            Self::Domain { name, only_below, port } => {
                let rest = host.strip_suffix(name.as_str());
                let below = rest.is_some_and(|rest| rest.ends_with('.'));
                port_fits(port) && (below || (!only_below && rest == Some("")))
            }
            Self::Address { address, port } => port_fits(port) && host_address == Some(*address),
            Self::Network { address, prefix_bits } => {
                host_address.is_some_and(|host| same_network(host, *address, *prefix_bits))
            }
        }
    }
}

/// Tells whether the first bits of two addresses are the same.
fn same_network(a: IpAddr, b: IpAddr, prefix_bits: u32) -> bool {
    let (a, b, bits) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    // All bits but those of the host; of no bits every address is the same.
    prefix_bits <= bits && (a ^ b).checked_shr(bits - prefix_bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: ProxyVariables<'_>) -> Result<Option<Proxies>, ProxyError> {
        Proxies::parse(&variables, &TlsOptions { insecure: true, ..TlsOptions::default() })
    }

    fn of_http(text: &str) -> Result<Option<Proxies>, ProxyError> {
        parse(ProxyVariables { http: Some(text), ..ProxyVariables::default() })
    }

    fn settings(exceptions: &str) -> Proxies {
        let (http, https) = (Some("plain.lan:3128"), Some("http://tls.lan:8080/"));
        parse(ProxyVariables { http, https, all: Some("all.lan"), exceptions }).unwrap().unwrap()
    }

    fn through(proxies: &Proxies, host: &str, port: u16, tls: bool) -> Option<String> {
        let route = proxies.route(&Endpoint::new(host, port), tls);
        route.map(|server| server.endpoint.to_string())
    }

    #[test]
    fn each_scheme_has_its_proxy_but_for_the_exceptions() {
        let all = settings("");
        assert_eq!(through(&all, "s3.lan", 80, false).as_deref(), Some("plain.lan:3128"));
        assert_eq!(through(&all, "s3.lan", 443, true).as_deref(), Some("tls.lan:8080"));
        for own in ["localhost", "127.0.0.1", "127.8.8.8", "::1"] {
            assert_eq!(through(&all, own, 80, false), None, "{own}");
        }
        for (exceptions, host, port, excepted) in [
            ("*", "s3.lan", 80, true),
            ("s3.lan", "s3.lan", 80, true),
            ("s3.lan", "S3.LAN.", 80, true),
            ("s3.lan", "a.s3.lan", 80, true),
            ("s3.lan", "as3.lan", 80, false),
            (".s3.lan", "a.s3.lan", 80, true),
            (".s3.lan", "s3.lan", 80, false),
            ("*.s3.lan", "a.s3.lan", 80, true),
            ("s3.lan:9000", "s3.lan", 9000, true),
            ("s3.lan:9000", "s3.lan", 80, false),
            ("x , 10.0.0.7", "10.0.0.7", 80, true),
            ("10.0.0.7", "10.0.0.70", 80, false),
            ("10.0.0.7:81", "10.0.0.7", 80, false),
            ("10.0.0.0/8", "10.250.0.7", 80, true),
            ("10.0.0.0/8", "11.0.0.7", 80, false),
            ("0.0.0.0/0", "11.0.0.7", 80, true),
            ("10.0.0.0/33", "10.0.0.0", 80, false),
            ("fd00::/8", "fd12::1", 80, true),
            ("fd00::/8", "fe12::1", 80, false),
            ("[fd00::1]:80", "fd00::1", 80, true),
            ("::/0", "10.0.0.1", 80, false),
        ] {
            let route = through(&settings(exceptions), host, port, false);
            assert_eq!(route.is_none(), excepted, "`{exceptions}` and {host}:{port}");
        }
    }

    #[test]
    fn one_proxy_for_all_is_one_for_loopback_too() {
        let all = Proxies::all(" proxy:3128 ", &TlsOptions::default()).unwrap();
        for (host, tls) in [("127.0.0.1", false), ("localhost", true), ("s3.lan", false)] {
            let route = through(&all, host, 80, tls);
            assert_eq!(route.as_deref(), Some("proxy:3128"), "{host}");
        }
        assert!(Proxies::all("ftp://h:1", &TlsOptions::default()).is_err());
    }

    #[test]
    fn no_proxy_is_none_and_an_unknown_kind_is_refused() {
        let blank = ProxyVariables { https: Some(" "), exceptions: "*", ..Default::default() };
        assert!(parse(blank).unwrap().is_none());
        for (text, reason) in [
            (
                "socks4://h:1",
                "a proxy of the kind `socks4://` is not known: http://, https://, socks5:// and \
                 socks5h:// are",
            ),
            (
                "socks5://u@h",
                "a SOCKS proxy takes a user name and a password of 1 to 255 bytes each",
            ),
            ("http://", "the proxy's address is not HOST:PORT"),
            ("h{1...2}:80", "the proxy's address names several hosts"),
            ("u:%ff@h", "the proxy's user name or password is not valid percent-encoded text"),
        ] {
            let error = of_http(text).unwrap_err();
            assert_eq!(error.to_string(), reason, "{text}");
        }
    }

    #[test]
    fn no_error_about_a_proxy_shows_its_password() {
        for text in [
            "http://user:SECRET@h:x",
            "http://user:SECRET/with@h:x",
            "user:SECRET?x@h{1...2}",
            "user:SECRET://x@h",
            "http://u%ff:SECRET@h",
            "socks5://:SECRET@h",
            "socks4://u:SECRET@h",
        ] {
            let error = of_http(text).unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let said = format!("{error} {source:?} {error:?}");
            assert!(!said.contains("SECRET"), "{text}: {said}");
        }
    }

    #[test]
    fn a_proxy_for_all_stands_in_where_there_is_none() {
        let (http, all) = (Some("plain.lan"), Some("SOCKS5H://me:pw@all.lan"));
        let proxies = parse(ProxyVariables { http, all, ..Default::default() }).unwrap().unwrap();
        assert_eq!(through(&proxies, "s3.lan", 80, false).as_deref(), Some("plain.lan:80"));
        assert_eq!(through(&proxies, "s3.lan", 443, true).as_deref(), Some("all.lan:1080"));
        assert!(!proxies.speak_tls());
        let tls = of_http("https://tls.lan").unwrap().unwrap();
        assert_eq!(through(&tls, "s3.lan", 80, false).as_deref(), Some("tls.lan:443"));
        assert!(tls.speak_tls() && through(&tls, "s3.lan", 443, true).is_none());
        let printed = format!("{proxies:?}");
        assert!(printed.contains("all.lan") && !printed.contains("pw"), "{printed}");
    }
}
