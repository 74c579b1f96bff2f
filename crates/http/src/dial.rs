//! Making a connection: name, address, TLS handshake, and what to say when one of them fails.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::connection::Connection;
use crate::error::Failure;
use crate::{Endpoint, ExchangeErrorKind, Options, TlsConfig};

/// What making a connection is busy with, for the message when it takes too long.
#[derive(Clone, Copy)]
enum Step {
    Resolve,
    Connect,
    Handshake,
}

/// Connects to `endpoint`. `addresses` keeps what its name resolved to, the one that worked first;
/// empty is unknown.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    options: &Options,
    addresses: &mut Vec<SocketAddr>,
) -> Result<Connection, Failure> {
    let step = Cell::new(Step::Resolve);
    let limit = options.connect_timeout;
    let in_time = timeout(limit, async {
        if addresses.is_empty() {
            *addresses = resolve(endpoint).await?;
        }
        step.set(Step::Connect);
        let tcp = connect(endpoint, addresses, limit).await?;
        step.set(Step::Handshake);
        match &options.tls {
            None => Ok(Connection::Plain(tcp)),
            Some(tls) => handshake(endpoint, tls, tcp).await,
        }
    });
    match in_time.await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(failure)) => {
            forget_if_unreachable(&failure, addresses);
            Err(failure)
        }
        Err(_) => {
            let failure = overdue(endpoint, step.get(), limit);
            forget_if_unreachable(&failure, addresses);
            Err(failure)
        }
    }
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
        Step::Connect => format!("no connection to {endpoint} within {limit:?}"),
        Step::Handshake => {
            format!("no TLS handshake with {endpoint} within {limit:?}; does that port speak TLS?")
        }
    };
    Failure::new(ExchangeErrorKind::ConnectTimeout, message)
}

async fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
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
        let attempt = timeout(share, TcpStream::connect(addresses[index])).await;
        match attempt.map(|connected| connected.and_then(without_delay)) {
            Ok(Ok(tcp)) => {
                addresses.swap(0, index);
                return Ok(tcp);
            }
            Ok(Err(error)) => failure = Some(connect_failure(endpoint, &error)),
            Err(_) => failure = Some(overdue(endpoint, Step::Connect, limit)),
        }
    }
    Err(failure.expect("a resolved name has an address"))
}

fn without_delay(tcp: TcpStream) -> io::Result<TcpStream> {
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

fn connect_failure(endpoint: &Endpoint, error: &io::Error) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {endpoint}"),
        io::ErrorKind::TimedOut => {
            let message = format!("no connection to {endpoint}: the network gave up waiting");
            return Failure::new(ExchangeErrorKind::ConnectTimeout, message);
        }
        _ => format!("cannot connect to {endpoint}: {}", error.to_string().to_lowercase()),
    };
    Failure::new(ExchangeErrorKind::Connect, message)
}

async fn handshake(
    endpoint: &Endpoint,
    tls: &TlsConfig,
    tcp: TcpStream,
) -> Result<Connection, Failure> {
    let failed = |reason: String| {
        let message = format!("TLS with {endpoint} failed: {reason}");
        Failure::new(ExchangeErrorKind::Tls, message)
    };
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|_| failed("its host is no name that a certificate can hold".to_owned()))?;
    let connected = TlsConnector::from(tls.client_config()).connect(name, tcp).await;
    match connected {
        Ok(stream) => Ok(Connection::Tls(Box::new(stream))),
        Err(error) => Err(failed(handshake_reason(&error))),
    }
}

/// Says what went wrong in a handshake and which flag helps.
fn handshake_reason(error: &io::Error) -> String {
    use rustls::{CertificateError, Error};
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(cause)) => match cause {
            CertificateError::UnknownIssuer => {
                "certificate is not trusted (unknown issuer); use --tls-ca or --insecure".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate has expired; use --insecure to go on nevertheless".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "certificate is made out to another name; use --insecure to go on nevertheless"
                    .to_owned()
            }
            other => format!("certificate is not trusted ({other}); use --tls-ca or --insecure"),
        },
        Some(Error::InvalidMessage(_)) => {
            "the server does not speak TLS; leave out --tls for plain HTTP".to_owned()
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection; does that port speak TLS?".to_owned()
        }
        None => error.to_string().to_lowercase(),
    }
}
