//! Proxies: which requests go through one, and what they look like then.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Failure;
use crate::patterns::{PatternError, expand_hosts};
use crate::{Endpoint, ExchangeErrorKind};

/// The port of a proxy whose URL names none.
const PORT_DEFAULT: u16 = 80;
/// The longest answer to CONNECT that is taken.
const TUNNEL_HEAD_BYTES_MAX: usize = 16 << 10;
/// The most header fields of one.
const TUNNEL_HEADERS_COUNT_MAX: usize = 64;

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

/// A proxy that speaks plain HTTP to its clients.
pub(crate) struct ProxyServer {
    pub(crate) endpoint: Endpoint,
    /// The value of Proxy-Authorization.
    authorization: Option<String>,
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The proxy is spoken to in another way than plain HTTP.
    #[error("a proxy of the kind `{0}://` is not known, only http:// is")]
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
}

impl Proxies {
    /// Returns the settings that the three customary variables hold: a URL for plain HTTP, one for
    /// TLS, and a list of who is spoken to without; `None` if there is no proxy at all.
    ///
    /// A URL is `http://[USER:PASSWORD@]HOST[:PORT]`, the scheme may be left out. The list holds
    /// names (with all that is below them, with a leading dot only that), addresses, networks such
    /// as `10.0.0.0/8`, each but networks with a port if need be, or `*`. Loopback is spoken to
    /// without a proxy always.
    pub fn parse(
        http: Option<&str>,
        https: Option<&str>,
        exceptions: &str,
    ) -> Result<Option<Self>, ProxyError> {
        let server = |text: Option<&str>| {
            let given = text.map(str::trim).filter(|text| !text.is_empty());
            given.map(|text| ProxyServer::parse(text).map(Arc::new)).transpose()
        };
        let (http, https) = (server(http)?, server(https)?);
        if http.is_none() && https.is_none() {
            return Ok(None);
        }
        let exceptions = exceptions.split(',').filter_map(Exception::parse).collect();
        Ok(Some(Self { http, https, exceptions, spares_loopback: true }))
    }

    /// Returns one proxy that every request goes through, to loopback as well.
    pub fn all(url: &str) -> Result<Self, ProxyError> {
        let server = Arc::new(ProxyServer::parse(url.trim())?);
        Ok(Self {
            http: Some(Arc::clone(&server)),
            https: Some(server),
            exceptions: Vec::new(),
            spares_loopback: false,
        })
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

impl ProxyServer {
    fn parse(text: &str) -> Result<Self, ProxyError> {
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Err(ProxyError::Scheme(scheme.to_owned()));
            }
            // It may be a part of a password.
            Some(_) => return Err(ProxyError::User),
            None => text,
        };
        // A password may hold what ends an authority, so it is taken off first.
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let mut endpoints = expand_hosts(host, PORT_DEFAULT).map_err(ProxyError::Host)?;
        if endpoints.len() != 1 {
            return Err(ProxyError::Several);
        }
        let endpoint = endpoints.pop().expect("one endpoint was counted");
        Ok(Self { endpoint, authorization: user.map(basic_authorization).transpose()? })
    }

    /// Returns a request's head as a proxy wants it: the whole URL in the request line (RFC 9112,
    /// section 3.2.2), and who asks the proxy.
    pub(crate) fn rewrite(&self, head: &[u8], authority: &str) -> Vec<u8> {
        let position = |byte, from: usize| {
            head[from..].iter().position(|each| *each == byte).map(|found| from + found)
        };
        let path = position(b' ', 0).map_or(0, |space| space + 1);
        let fields = position(b'\n', path).map_or(head.len(), |end| end + 1);
        let mut rewritten = Vec::with_capacity(head.len() + 256);
        rewritten.extend_from_slice(&head[..path]);
        rewritten.extend_from_slice(b"http://");
        rewritten.extend_from_slice(authority.as_bytes());
        rewritten.extend_from_slice(&head[path..fields]);
        rewritten.extend_from_slice(self.authorization_field().as_bytes());
        rewritten.extend_from_slice(&head[fields..]);
        rewritten
    }

    /// Makes the proxy connect `tcp` through to `endpoint`.
    pub(crate) async fn tunnel(
        &self,
        endpoint: &Endpoint,
        tcp: &mut TcpStream,
    ) -> Result<(), Failure> {
        let to = match endpoint.address {
            Some(address) => Endpoint::new(address.to_string(), endpoint.port),
            None => endpoint.clone(),
        };
        let fields = self.authorization_field();
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n");
        let broken = |error: std::io::Error| {
            self.refusal(endpoint, &format!("broke off: {}", error.to_string().to_lowercase()))
        };
        tcp.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut head = Vec::with_capacity(1024);
        // The server behind the proxy says nothing before it is spoken to, so that nothing of it is
        // taken with the head.
        while head.len() < TUNNEL_HEAD_BYTES_MAX {
            if tcp.read_buf(&mut head).await.map_err(broken)? == 0 {
                return Err(self.refusal(endpoint, "closed the connection"));
            }
            let mut fields = [httparse::EMPTY_HEADER; TUNNEL_HEADERS_COUNT_MAX];
            let mut answer = httparse::Response::new(&mut fields);
            match answer.parse(&head) {
                Ok(httparse::Status::Partial) => {}
                Ok(httparse::Status::Complete(_)) => {
                    let status = answer.code.unwrap_or_default();
                    if (200..300).contains(&status) {
                        return Ok(());
                    }
                    let reason = answer.reason.unwrap_or_default();
                    let answered = format!("answered {status} {reason}");
                    return Err(self.refusal(endpoint, answered.trim_end()));
                }
                Err(error) => {
                    let answered = format!("answered what is not HTTP ({error})");
                    return Err(self.refusal(endpoint, &answered));
                }
            }
        }
        Err(self.refusal(endpoint, "answered with a head that is too long"))
    }

    /// Returns the failure of a proxy that does not do what it was asked.
    pub(crate) fn refusal(&self, endpoint: &Endpoint, what: &str) -> Failure {
        let message = format!("no connection to {endpoint}: {self} {what}");
        Failure::new(ExchangeErrorKind::Connect, message)
    }

    fn authorization_field(&self) -> String {
        let field = |value| format!("Proxy-Authorization: {value}\r\n");
        self.authorization.as_ref().map(field).unwrap_or_default()
    }
}

impl fmt::Display for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}", self.endpoint)
    }
}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyServer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Returns the value that names a percent-encoded `USER:PASSWORD` (RFC 7617).
fn basic_authorization(user: &str) -> Result<String, ProxyError> {
    let decoded = percent_encoding::percent_decode_str(user).decode_utf8();
    let plain = decoded.map_err(|_| ProxyError::User)?;
    let with_colon = if plain.contains(':') { plain.into_owned() } else { format!("{plain}:") };
    Ok(format!("Basic {}", BASE64_STANDARD.encode(with_colon)))
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

    fn settings(exceptions: &str) -> Proxies {
        Proxies::parse(Some("plain.lan:3128"), Some("http://tls.lan:8080/"), exceptions)
            .unwrap()
            .unwrap()
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
        let all = Proxies::all(" proxy:3128 ").unwrap();
        for (host, tls) in [("127.0.0.1", false), ("localhost", true), ("s3.lan", false)] {
            let route = through(&all, host, 80, tls);
            assert_eq!(route.as_deref(), Some("proxy:3128"), "{host}");
        }
        assert!(Proxies::all("socks5://h:1").is_err());
    }

    #[test]
    fn no_proxy_is_none_and_an_unknown_kind_is_refused() {
        assert!(Proxies::parse(None, Some(" "), "*").unwrap().is_none());
        for (text, reason) in [
            ("socks5://h:1", "a proxy of the kind `socks5://` is not known, only http:// is"),
            ("http://", "the proxy's address is not HOST:PORT"),
            ("h{1...2}:80", "the proxy's address names several hosts"),
            ("u:%ff@h", "the proxy's user name or password is not valid percent-encoded text"),
        ] {
            let error = Proxies::parse(Some(text), None, "").unwrap_err();
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
        ] {
            let error = Proxies::parse(Some(text), None, "").unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let said = format!("{error} {source:?} {error:?}");
            assert!(!said.contains("SECRET"), "{text}: {said}");
        }
    }

    #[test]
    fn a_request_to_a_proxy_holds_the_whole_url_and_the_user() {
        let server = ProxyServer::parse("http://Aladdin:open%20sesame@proxy:8080").unwrap();
        let head = b"PUT /b/k?x HTTP/1.1\r\nHost: s3.lan:9000\r\n\r\n";
        let rewritten = String::from_utf8(server.rewrite(head, "s3.lan:9000")).unwrap();
        // The credentials are the example of RFC 7617, section 2.
        let expected = "PUT http://s3.lan:9000/b/k?x HTTP/1.1\r\n\
                        Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\
                        Host: s3.lan:9000\r\n\r\n";
        assert_eq!(rewritten, expected);
        let printed = format!("{server:?} {server}");
        assert!(printed.contains("proxy") && !printed.contains("QWxh"), "{printed}");
    }
}
