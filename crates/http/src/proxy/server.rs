//! One proxy: how it is spoken to, and how it is made to connect through.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use plimsoll_model::Secret;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_socks::tcp::Socks5Stream;
use tokio_socks::{Error as SocksError, TargetAddr};

use super::ProxyError;
use crate::error::Failure;
use crate::patterns::expand_hosts;
use crate::url::{forms_of_user, long_enough};
use crate::{Endpoint, ExchangeErrorKind, Options, TlsConfig, TlsOptions};

/// The status by which a proxy, not the server, asks who we are (RFC 9110, section 15.5.8).
pub(crate) const PROXY_WANTS_USER: u16 = 407;
/// The ports of proxies whose URLs name none.
const PORT_HTTP: u16 = 80;
const PORT_HTTPS: u16 = 443;
const PORT_SOCKS: u16 = 1080;
/// What the value of Proxy-Authorization begins with.
const BASIC: &str = "Basic ";
/// The longest answer to CONNECT that is taken.
const TUNNEL_HEAD_BYTES_MAX: usize = 16 << 10;
/// The most header fields of one.
const TUNNEL_HEADERS_COUNT_MAX: usize = 64;
/// The most bytes of a user's name or password that SOCKS has room for (RFC 1929, section 2).
const SOCKS_TEXT_BYTES_MAX: usize = 255;

/// A proxy.
pub(crate) struct ProxyServer {
    pub(crate) endpoint: Endpoint,
    kind: Kind,
}

/// How a proxy is spoken to.
enum Kind {
    /// In HTTP, which itself goes over TLS or not.
    Http {
        tls: Option<TlsConfig>,
        /// The value of Proxy-Authorization.
        authorization: Option<Secret>,
    },
    /// In SOCKS version 5 (RFC 1928).
    Socks {
        /// Whether it is handed names, not addresses.
        resolves_names: bool,
        user: Option<SocksUser>,
    },
}

/// Who asks a SOCKS proxy.
struct SocksUser {
    name: Secret,
    password: Secret,
}

impl ProxyServer {
    /// Reads a proxy's address, with whom to trust where TLS is spoken to it.
    pub(super) fn parse(text: &str, trust: &TlsOptions) -> Result<Self, ProxyError> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                (scheme.to_ascii_lowercase(), rest)
            }
            // It may be a part of a password.
            Some(_) => return Err(ProxyError::User),
            None => ("http".to_owned(), text),
        };
        // A password may hold what ends an authority, so it is taken off first.
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let http = |tls| {
            let authorization = user.map(basic_authorization).transpose()?;
            Ok(Kind::Http { tls, authorization })
        };
        let socks = |resolves_names| {
            Ok(Kind::Socks { resolves_names, user: user.map(SocksUser::parse).transpose()? })
        };
        let (kind, port) = match &*scheme {
            "http" => (http(None)?, PORT_HTTP),
            "https" => {
                let trust = TlsOptions { identity: None, ..trust.clone() };
                (http(Some(TlsConfig::load(&trust).map_err(ProxyError::Tls)?))?, PORT_HTTPS)
            }
            "socks5" => (socks(false)?, PORT_SOCKS),
            "socks5h" => (socks(true)?, PORT_SOCKS),
            _ => return Err(ProxyError::Scheme(scheme)),
        };
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let mut endpoints = expand_hosts(host, port).map_err(ProxyError::Host)?;
        if endpoints.len() != 1 {
            return Err(ProxyError::Several);
        }
        let endpoint = endpoints.pop().expect("one endpoint was counted");
        Ok(Self { endpoint, kind })
    }

    /// Returns who asks the proxy, in each form in which it or the store may repeat it.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let Kind::Http { authorization: Some(value), .. } = &self.kind else { return Vec::new() };
        let encoded = value.expose().trim_start_matches(BASIC);
        let user = BASE64_STANDARD.decode(encoded).unwrap_or_default();
        long_enough(forms_of_user(&String::from_utf8_lossy(&user)).into_iter())
    }

    pub(crate) fn speaks_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// Returns how TLS is spoken to the proxy itself, `None` for not at all.
    pub(crate) fn tls(&self) -> Option<&TlsConfig> {
        match &self.kind {
            Kind::Http { tls, .. } => tls.as_ref(),
            Kind::Socks { .. } => None,
        }
    }

    /// Tells whether requests are made out to the proxy, which sends on what it understands of
    /// them; otherwise it passes on bytes.
    pub(crate) fn is_asked(&self, options: &Options) -> bool {
        matches!(self.kind, Kind::Http { .. }) && !options.tunnels()
    }

    /// Tells whether the address behind it has to be known here.
    pub(crate) fn wants_addresses(&self) -> bool {
        matches!(self.kind, Kind::Socks { resolves_names: false, .. })
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

    /// Makes the proxy connect `stream` through to `endpoint`, at an address of it where one is
    /// known.
    pub(crate) async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        endpoint: &Endpoint,
        address: Option<SocketAddr>,
        stream: &mut S,
    ) -> Result<(), Failure> {
        match &self.kind {
            Kind::Http { .. } => self.tunnel_http(endpoint, stream).await,
            Kind::Socks { user, .. } => {
                let target = match address {
                    Some(address) => TargetAddr::Ip(address),
                    None => TargetAddr::Domain(endpoint.host.as_str().into(), endpoint.port),
                };
                let connected = match user {
                    None => Socks5Stream::connect_with_socket(stream, target).await,
                    Some(SocksUser { name, password }) => {
                        let (name, password) = (name.expose(), password.expose());
                        Socks5Stream::connect_with_password_and_socket(
                            stream, target, name, password,
                        )
                        .await
                    }
                };
                let refused = |error| self.refusal(endpoint, &socks_reason(error));
                connected.map(drop).map_err(refused)
            }
        }
    }

    async fn tunnel_http<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        endpoint: &Endpoint,
        stream: &mut S,
    ) -> Result<(), Failure> {
        let to = match endpoint.address {
            Some(address) => Endpoint::new(address.to_string(), endpoint.port),
            None => endpoint.clone(),
        };
        let fields = self.authorization_field();
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n");
        let broken = |error: io::Error| self.refusal(endpoint, &broke_off(&error));
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let mut head = Vec::with_capacity(1024);
        // The server behind the proxy says nothing before it is spoken to, so that nothing of it is
        // taken with the head.
        while head.len() < TUNNEL_HEAD_BYTES_MAX {
            if stream.read_buf(&mut head).await.map_err(broken)? == 0 {
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
                    if status == PROXY_WANTS_USER {
                        return Err(self.wants_user(endpoint));
                    }
                    // Its words may repeat what it was sent, the password too.
                    return Err(self.refusal(endpoint, &format!("answered {status}")));
                }
                Err(error) => {
                    let answered = format!("answered what is not HTTP ({error})");
                    return Err(self.refusal(endpoint, &answered));
                }
            }
        }
        Err(self.refusal(endpoint, "answered with a head that is too long"))
    }

    /// Returns the failure of a proxy that asks who we are, or does not take our word for it.
    pub(crate) fn wants_user(&self, endpoint: &Endpoint) -> Failure {
        let known = matches!(&self.kind, Kind::Http { authorization: Some(_), .. });
        let why = if known { "wrong user or password" } else { "it wants a user and a password" };
        self.refusal(endpoint, &format!("answered {PROXY_WANTS_USER}: {why}"))
    }

    /// Returns the failure of a proxy that does not do what it was asked.
    pub(crate) fn refusal(&self, endpoint: &Endpoint, what: &str) -> Failure {
        let message = format!("no connection to {endpoint}: {self} {what}");
        Failure::new(ExchangeErrorKind::Connect, message)
    }

    fn authorization_field(&self) -> String {
        match &self.kind {
            Kind::Http { authorization: Some(value), .. } => {
                format!("Proxy-Authorization: {}\r\n", value.expose())
            }
            _ => String::new(),
        }
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

impl SocksUser {
    fn parse(text: &str) -> Result<Self, ProxyError> {
        let (name, password) = text.split_once(':').unwrap_or((text, ""));
        let fits = |text: &str| (1..=SOCKS_TEXT_BYTES_MAX).contains(&text.len());
        let (name, password) = (decoded(name)?, decoded(password)?);
        match fits(&name) && fits(&password) {
            true => Ok(Self { name: name.into(), password: password.into() }),
            false => Err(ProxyError::SocksUser),
        }
    }
}

fn decoded(text: &str) -> Result<String, ProxyError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(|plain| plain.into_owned()).map_err(|_| ProxyError::User)
}

/// Returns the value that names a percent-encoded `USER:PASSWORD` (RFC 7617).
fn basic_authorization(user: &str) -> Result<Secret, ProxyError> {
    let plain = decoded(user)?;
    let with_colon = if plain.contains(':') { plain } else { format!("{plain}:") };
    Ok(format!("{BASIC}{}", BASE64_STANDARD.encode(with_colon)).into())
}

fn broke_off(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "closed the connection".to_owned(),
        _ => format!("broke off: {}", error.to_string().to_lowercase()),
    }
}

/// Says what a SOCKS proxy did instead of connecting through.
fn socks_reason(error: SocksError) -> String {
    match error {
        SocksError::Io(error) => broke_off(&error),
        SocksError::InvalidResponseVersion
        | SocksError::UnknownAuthMethod
        | SocksError::InvalidReservedByte
        | SocksError::UnknownAddressType
        | SocksError::UnknownError => {
            format!("answered what is not SOCKS 5 ({})", error.to_string().to_lowercase())
        }
        SocksError::PasswordAuthFailure(_) => "refused: wrong user or password".to_owned(),
        SocksError::NoAcceptableAuthMethods | SocksError::AuthorizationRequired => {
            "refused: it wants a user and a password".to_owned()
        }
        other => format!("refused: {}", other.to_string().to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_a_proxy_holds_the_whole_url_and_the_user() {
        let trust = TlsOptions::default();
        let server = ProxyServer::parse("http://Aladdin:open%20sesame@proxy:8080", &trust).unwrap();
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
