//! Making a connection: name, address, TLS handshake, and what to say when one of them fails.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connection::{Dialled, Tls, below_tls};
use crate::error::Failure;
use crate::proxy::ProxyServer;
use crate::tls::{ALPN_TWO, ISSUER_SHOWN, identity_refusal, in_words};
use crate::{Endpoint, ExchangeErrorKind, HttpVersion, Options, TlsConfig, seen};

const NO_HTTP2: &str = "the server does not speak HTTP/2";

/// What webpki says of a certificate without extensions.
const OLD_CERTIFICATE: &str = "UnsupportedCertVersion";

/// What making a connection is busy with, for the message when it takes too long.
#[derive(Clone, Copy)]
enum Step {
    Resolve,
    Connect,
    Tunnel,
    Handshake,
}

/// Connects to `endpoint`, through the proxy `via` if there is one. `addresses` keeps what the name
/// of the one or the other resolved to, the address that worked first; empty is unknown.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    via: Option<&ProxyServer>,
    options: &Options,
    addresses: &mut Vec<SocketAddr>,
) -> Result<Dialled, Failure> {
    let step = Cell::new(Step::Resolve);
    let limit = options.connect_timeout;
    let hop = via.map_or(endpoint, |proxy| &proxy.endpoint);
    let allowed = options.allowed.check_all([endpoint, hop]);
    allowed.map_err(|refused| Failure::new(ExchangeErrorKind::Connect, refused.to_string()))?;
    let in_time = timeout(limit, async {
        if addresses.is_empty() {
            *addresses = resolve(hop).await?;
        }
        step.set(Step::Connect);
        let tcp = connect(hop, addresses, limit).await?;
        let road = match via {
            None => Road::Plain(tcp),
            Some(proxy) => {
                step.set(Step::Tunnel);
                through(proxy, endpoint, options, tcp).await?
            }
        };
        step.set(Step::Handshake);
        let server = Peer { endpoint, version: options.version, is_proxy: false };
        Ok(match (road, &options.tls) {
            (Road::Plain(tcp), None) => Dialled::Plain(tcp),
            (Road::Tls(outer), None) => Dialled::Tls(outer),
            (Road::Plain(tcp), Some(tls)) => {
                Dialled::Tls(Box::new(handshake(&server, tls, below_tls(tcp)).await?))
            }
            (Road::Tls(outer), Some(tls)) => {
                Dialled::Nested(Box::new(handshake(&server, tls, *outer).await?))
            }
        })
    });
    let outcome = match in_time.await {
        Ok(outcome) => outcome,
        Err(_) => Err(match (step.get(), via) {
            (Step::Tunnel, Some(proxy)) => {
                let mut failure = proxy.refusal(endpoint, &format!("made none within {limit:?}"));
                failure.kind = ExchangeErrorKind::ConnectTimeout;
                failure
            }
            (Step::Handshake, _) => overdue(endpoint, Step::Handshake, limit),
            (step, _) => overdue(hop, step, limit),
        }),
    };
    outcome.map_err(|mut failure| {
        forget_if_unreachable(&failure, addresses);
        if via.is_some() && matches!(step.get(), Step::Resolve | Step::Connect) {
            failure.message.push_str(&format!("; it is the proxy for {endpoint}"));
        }
        failure
    })
}

/// A name whose addresses do not answer is looked up again next time; it may have moved.
fn forget_if_unreachable(failure: &Failure, addresses: &mut Vec<SocketAddr>) {
    if matches!(failure.kind, ExchangeErrorKind::Connect | ExchangeErrorKind::ConnectTimeout) {
        addresses.clear();
    }
}

fn overdue(endpoint: &Endpoint, step: Step, limit: Duration) -> Failure {
    let host = &endpoint.host;
    let message = match step {
        Step::Resolve => format!("cannot resolve host `{host}`: no answer within {limit:?}"),
        Step::Connect | Step::Tunnel => format!("no connection to {endpoint} within {limit:?}"),
        Step::Handshake => {
            format!("no TLS handshake with {endpoint} within {limit:?}; does that port speak TLS?")
        }
    };
    Failure::new(ExchangeErrorKind::ConnectTimeout, message)
}

async fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    if let Some(address) = endpoint.address {
        return Ok(vec![SocketAddr::new(address, endpoint.port)]);
    }
    let unresolved = |reason: &str| {
        let message = format!("cannot resolve host `{}`: {reason}", endpoint.host);
        Failure::new(ExchangeErrorKind::Resolve, message)
    };
    let found = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| unresolved(&plain_cause(&error)))?.collect();
    if found.is_empty() { Err(unresolved("it has no address")) } else { Ok(found) }
}

/// Returns the resolver's own words, without the standard library's preamble.
fn plain_cause(error: &io::Error) -> String {
    let text = error.to_string();
    let cause = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    cause.to_lowercase()
}

/// Tries every address in turn and moves the one that answers to the front.
async fn connect(
    endpoint: &Endpoint,
    addresses: &mut [SocketAddr],
    limit: Duration,
) -> Result<TcpStream, Failure> {
    let share = limit / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut failure = None;
    for index in 0..addresses.len() {
        let attempt = timeout(share, connect_to(addresses[index])).await;
        match attempt.map(|made| made.and_then(without_delay)) {
            Ok(Ok(tcp)) => {
                seen::opened();
                addresses.swap(0, index);
                return Ok(tcp);
            }
            Ok(Err(error)) => {
                seen::refused(&error);
                failure = Some(connect_failure(endpoint, &error));
            }
            Err(_) => failure = Some(overdue(endpoint, Step::Connect, limit)),
        }
    }
    Err(failure.expect("a resolved name has an address"))
}

/// A connection that is being made has its descriptor already, and many may be at once.
async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    socket.and_then(seen::leaving_room)?.connect(address).await
}

fn without_delay(tcp: TcpStream) -> io::Result<TcpStream> {
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

fn connect_failure(endpoint: &Endpoint, error: &io::Error) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {endpoint}"),
        io::ErrorKind::TimedOut => {
            let message = format!("no connection to {endpoint}: the network timed out");
            return Failure::new(ExchangeErrorKind::ConnectTimeout, message);
        }
        _ => format!("cannot connect to {endpoint}: {}", error.to_string().to_lowercase()),
    };
    Failure::new(ExchangeErrorKind::Connect, message)
}

/// What leads to a server: a socket, or the TLS in which a proxy is spoken to.
enum Road {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// Returns what leads through a proxy to `endpoint`, or, with requests that are made out to the
/// proxy, only to the proxy.
async fn through(
    proxy: &ProxyServer,
    endpoint: &Endpoint,
    options: &Options,
    mut tcp: TcpStream,
) -> Result<Road, Failure> {
    let address = match (endpoint.address, proxy.wants_addresses()) {
        (Some(address), _) => Some(SocketAddr::new(address, endpoint.port)),
        (None, true) => resolve(endpoint).await.map_err(left_to_proxy)?.first().copied(),
        (None, false) => None,
    };
    let tunnels = !proxy.is_asked(options);
    let Some(tls) = proxy.tls() else {
        if tunnels {
            proxy.tunnel(endpoint, address, &mut tcp).await?;
        }
        return Ok(Road::Plain(tcp));
    };
    let hop = Peer { endpoint: &proxy.endpoint, version: HttpVersion::One, is_proxy: true };
    let mut outer = handshake(&hop, tls, below_tls(tcp)).await?;
    if tunnels {
        proxy.tunnel(endpoint, address, &mut outer).await?;
    }
    Ok(Road::Tls(Box::new(outer)))
}

fn left_to_proxy(mut failure: Failure) -> Failure {
    failure.message.push_str("; with socks5h:// the proxy looks it up");
    failure
}

/// Whom TLS is spoken with.
struct Peer<'a> {
    endpoint: &'a Endpoint,
    version: HttpVersion,
    is_proxy: bool,
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    peer: &Peer<'_>,
    tls: &TlsConfig,
    stream: S,
) -> Result<TlsStream<S>, Failure> {
    let Peer { endpoint, version, is_proxy } = *peer;
    let failed = |reason: String| {
        let who = if is_proxy { "the proxy " } else { "" };
        let message = format!("TLS with {who}{endpoint} failed: {reason}");
        Failure::new(ExchangeErrorKind::Tls, message)
    };
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|_| failed("its host is not a name that a certificate can hold".to_owned()))?;
    let connector = TlsConnector::from(tls.client_config(version));
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| failed(handshake_reason(&error, peer)))?;
    let agreed = stream.get_ref().1.alpn_protocol();
    if version == HttpVersion::Two && agreed != Some(ALPN_TWO) {
        let agreed = agreed.map(|name| String::from_utf8_lossy(name).into_owned());
        let instead = match agreed {
            Some(name) => format!("offered {name} instead"),
            None => "offered no version at all (ALPN)".to_owned(),
        };
        return Err(failed(format!("{NO_HTTP2}: it {instead}; leave out `http2`")));
    }
    Ok(stream)
}

/// Says what went wrong in a handshake and which flag helps.
fn handshake_reason(error: &io::Error, peer: &Peer<'_>) -> String {
    use rustls::{AlertDescription, CertificateError, Error};
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(cause)) => match cause {
            CertificateError::UnknownIssuer => {
                "certificate is not trusted (unknown issuer); give its issuer's certificate, or \
                this one itself, by `tls_ca`, or use `insecure`"
                    .to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate has expired; have it renewed or set the clock of this machine, or \
                use `insecure` to ignore it"
                    .to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "certificate is not valid yet; set the clock of this machine, or use `insecure` \
                to ignore it"
                    .to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let whose = if peer.is_proxy { "the proxy" } else { "`host`" };
                format!(
                    "certificate is for another name; give {whose} one of its names, or use \
                     `insecure` to ignore it"
                )
            }
            CertificateError::Other(other) if other.to_string() == OLD_CERTIFICATE => {
                "certificate is X.509 version 1, as `openssl x509 -req` makes without extensions, \
                and cannot be checked; get one of version 3 issued (-extfile), or \
                 use `insecure`"
                    .to_owned()
            }
            CertificateError::Other(other) if other.to_string() == ISSUER_SHOWN => {
                "certificate is an issuer's own (CA) and not a server's; to trust this very one, \
                give it by `tls_ca`, or use `insecure`"
                    .to_owned()
            }
            CertificateError::BadSignature => {
                "a signature does not match: the server does not hold the key of the certificate \
                that it shows, or another issuer has signed it"
                    .to_owned()
            }
            other => {
                let why = in_words(&other.to_string());
                format!("certificate is not trusted ({why}); use `tls_ca` or `insecure`")
            }
        },
        Some(Error::InvalidMessage(_)) if peer.is_proxy => {
            "it does not speak TLS; write http:// before its address".to_owned()
        }
        Some(Error::InvalidMessage(_)) => {
            "the server does not speak TLS; for plain HTTP leave out `tls`, and write http:// where \
            https:// is written"
                .to_owned()
        }
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol))
            if peer.version == HttpVersion::Two =>
        {
            format!("{NO_HTTP2}; leave out `http2`")
        }
        Some(other) => identity_refusal(error).unwrap_or_else(|| in_words(&other.to_string())),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            let who = if peer.is_proxy { "it" } else { "the server" };
            format!("{who} closed the connection; does that port speak TLS?")
        }
        None => error.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{CertificateError, Error, OtherError};

    use super::*;

    #[test]
    fn a_certificate_without_extensions_is_told_with_what_to_do() {
        let old = OtherError(Arc::new(io::Error::other(OLD_CERTIFICATE)));
        let cause = Error::InvalidCertificate(CertificateError::Other(old));
        let endpoint = &Endpoint::new("h", 1);
        let peer = Peer { endpoint, version: HttpVersion::One, is_proxy: false };
        let reason = handshake_reason(&io::Error::other(cause), &peer);
        assert!(reason.starts_with("certificate is X.509 version 1"), "{reason}");
        assert!(reason.contains("-extfile"), "{reason}");
    }
}
