//! TLS against hyper behind rustls, with certificates made on the spot.

use std::sync::Arc;

use plimsoll_http::{
    Body, Client, ExchangeErrorKind as Kind, TlsConfig, TlsOptions, TlsSetupError,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::against_hyper::{SHAPES, check_echo, comparable, serve_hyper};
use crate::support::{
    CountingClock, accept, beside, block_on, call, client_of, get, options, serve,
};

/// A certificate authority of our own and a certificate that it gave to `localhost`.
pub(crate) struct Certificates {
    pub(crate) authority_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

pub(crate) fn certificates(authority: &str) -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, authority);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    Certificates {
        authority_pem: authority.pem(),
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

/// Returns what makes TLS of connections, agreeing on the first of `protocols` that the client
/// offers.
pub(crate) fn acceptor(
    certificates: &Certificates,
    versions: &[&'static rustls::SupportedProtocolVersion],
    protocols: &[&str],
) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.chain.clone(), certificates.key.clone_key())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Runs `test` beside a TLS server; it is handed the port.
fn with_tls_server<F: Future<Output = ()>>(
    certificates: &Certificates,
    versions: &[&'static rustls::SupportedProtocolVersion],
    test: impl FnOnce(u16) -> F,
) {
    let acceptor = acceptor(certificates, versions, &["h2", "http/1.1"]);
    let serve_tls = async |stream| {
        if let Ok(stream) = acceptor.accept(stream).await {
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
            serve_hyper(stream).await;
        }
    };
    beside(serve_tls, test);
}

/// Settings that trust `authority_pem` beside the system's roots.
fn trusting(authority_pem: &str) -> TlsConfig {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file.as_file(), authority_pem.as_bytes()).unwrap();
    let ca_file = Some(file.path().to_owned());
    TlsConfig::load(&TlsOptions { ca_file, ..TlsOptions::default() }).unwrap()
}

pub(crate) fn insecure() -> TlsConfig {
    TlsConfig::load(&TlsOptions { insecure: true, ..TlsOptions::default() }).unwrap()
}

fn tls_client(host: &str, port: u16, tls: TlsConfig) -> Client {
    client_of(host, port, options(Some(tls)))
}

#[test]
fn every_shape_is_read_over_tls_as_over_tcp() {
    let certificates = certificates("ours");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        with_tls_server(&certificates, &[version], async |port| {
            let mut client = tls_client("localhost", port, trusting(&certificates.authority_pem));
            for (method, path) in SHAPES {
                let (result, ours) = call(&mut client, method, path, Body::Empty).await;
                assert_eq!(result.unwrap().status, ours.status);
                let size = path.rsplit('/').next().unwrap().parse().unwrap_or(0);
                let expected = match (method, path) {
                    ("HEAD", _) => 0,
                    (_, "/missing") => 9,
                    _ => size,
                };
                assert_eq!(ours.body.len(), expected, "{method} {path}");
                // Asked again over a connection of its own, the answer is the same.
                let mut fresh = tls_client("localhost", port, insecure());
                let again = call(&mut fresh, method, path, Body::Empty).await.1;
                assert_eq!(comparable(ours), comparable(again));
            }
            check_echo(&mut client, 3_000_000).await;
        });
    }
}

/// Returns the failure of one exchange over TLS, less its start.
async fn refusal(host: &str, port: u16, tls: TlsConfig) -> (Kind, String) {
    let error = get(&mut tls_client(host, port, tls), "/length/1").await.0.unwrap_err();
    let start = format!("TLS with {host}:{port} failed: ");
    (error.kind, error.message.strip_prefix(&start).expect(&error.message).to_owned())
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_with_what_to_change() {
    let (known, unknown) = (certificates("known"), certificates("unknown"));
    with_tls_server(&known, rustls::ALL_VERSIONS, async |port| {
        let (kind, message) = refusal("localhost", port, trusting(&unknown.authority_pem)).await;
        assert_eq!(kind, Kind::Tls);
        let expected = "certificate is not trusted (unknown issuer); give its issuer's \
        certificate, or this one itself, by `tls_ca`, or use `insecure`";
        assert_eq!(message, expected);
        let (kind, message) = refusal("127.0.0.1", port, trusting(&known.authority_pem)).await;
        assert_eq!(kind, Kind::Tls);
        let expected = "certificate is for another name; give `host` one of its names, or use \
        `insecure` to ignore it";
        assert_eq!(message, expected);
        for host in ["localhost", "127.0.0.1"] {
            let mut client = tls_client(host, port, insecure());
            assert_eq!(get(&mut client, "/length/1").await.0.unwrap().body_bytes, 1);
        }
    });
}

/// Returns a certificate for `localhost` that nobody but itself has issued, an issuer's own or not.
fn self_signed(is_authority: bool, days: std::ops::RangeInclusive<i32>) -> Certificates {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "self");
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params.not_before = date_time_ymd(*days.start(), 1, 1);
    params.not_after = date_time_ymd(*days.end(), 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Certificates {
        authority_pem: certificate.pem(),
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

#[test]
fn the_very_certificate_that_is_named_is_trusted_for_its_name_and_time() {
    for is_authority in [false, true] {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let shown = self_signed(is_authority, 2020..=2120);
            let same_name = self_signed(is_authority, 2020..=2120);
            with_tls_server(&shown, &[version], async |port| {
                let mut client = tls_client("localhost", port, trusting(&shown.authority_pem));
                assert_eq!(get(&mut client, "/length/3").await.0.unwrap().body_bytes, 3);
                let trusted = || trusting(&shown.authority_pem);
                let (_, message) = refusal("127.0.0.1", port, trusted()).await;
                assert!(message.starts_with("certificate is for another name"), "{message}");
                // Another one with the same names is not the same.
                let (kind, message) =
                    refusal("localhost", port, trusting(&same_name.authority_pem)).await;
                let start = match is_authority {
                    true => "certificate is an issuer's own (CA) and not a server's; to trust",
                    false => "certificate is not trusted (unknown issuer); give its issuer's",
                };
                // The names are the same, so the signature may be what is looked at first.
                let starts = [start, "a signature does not match: the server"];
                assert!(starts.iter().any(|start| message.starts_with(start)), "{message}");
                assert_eq!(kind, Kind::Tls);
            });
        }
        for (years, start) in [
            (2020..=2021, "certificate has expired; have it renewed or set the clock"),
            (2110..=2120, "certificate is not valid yet; set the clock of this machine"),
        ] {
            let out_of_time = self_signed(is_authority, years);
            with_tls_server(&out_of_time, rustls::ALL_VERSIONS, async |port| {
                let trusted = trusting(&out_of_time.authority_pem);
                let (kind, message) = refusal("localhost", port, trusted).await;
                assert_eq!(kind, Kind::Tls);
                assert!(message.starts_with(start), "{message}");
            });
        }
    }
}

#[test]
fn a_server_without_the_key_of_the_certificate_it_shows_is_refused() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let shown = self_signed(true, 2020..=2120);
        let other_key = KeyPair::generate().unwrap();
        let stolen = Certificates {
            authority_pem: shown.authority_pem.clone(),
            chain: shown.chain.clone(),
            key: PrivateKeyDer::try_from(other_key.serialize_der()).unwrap(),
        };
        let acceptor = acceptor_of(&stolen, version);
        let serve_tls = async |stream| drop(acceptor.accept(stream).await);
        beside(serve_tls, async |port| {
            let trusted = trusting(&shown.authority_pem);
            let (kind, message) = refusal("localhost", port, trusted).await;
            assert_eq!(kind, Kind::Tls);
            assert!(message.starts_with("a signature does not match: the server"), "{message}");
        });
    }
}

/// Returns an acceptor whose key need not be that of its certificate.
fn acceptor_of(
    certificates: &Certificates,
    version: &'static rustls::SupportedProtocolVersion,
) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = provider.key_provider.load_private_key(certificates.key.clone_key()).unwrap();
    let certified = rustls::sign::CertifiedKey::new(certificates.chain.clone(), key);
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    TlsAcceptor::from(Arc::new(config))
}

#[test]
fn a_set_address_is_connected_to_under_the_name_of_the_host() {
    let certificates = certificates("ours");
    let acceptor = acceptor(&certificates, rustls::ALL_VERSIONS, &["http/1.1"]);
    let serve = async |stream| {
        let stream = acceptor.accept(stream).await.unwrap();
        assert_eq!(stream.get_ref().1.server_name(), Some("store.invalid"));
        serve_hyper(stream).await;
    };
    beside(serve, async |port| {
        // Nobody has a name below `invalid` (RFC 6761).
        let endpoints = plimsoll_http::expand_hosts("store.invalid@127.0.0.1", port).unwrap();
        let clock = Arc::new(CountingClock::default());
        let mut client = Client::new(endpoints.into(), options(Some(insecure())).into(), clock);
        assert_eq!(get(&mut client, "/length/7").await.0.unwrap().body_bytes, 7);
    });
}

#[test]
fn a_port_without_tls_is_recognised() {
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        std::io::Read::read_exact(&mut stream, &mut [0; 64]).unwrap();
        let bytes = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
        std::io::Write::write_all(&mut stream, bytes).unwrap();
        // Ends once the client has closed, so that no reset takes the answer away.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    block_on(async {
        let (kind, message) = refusal("127.0.0.1", address.port(), insecure()).await;
        assert_eq!(kind, Kind::Tls);
        let expected = "the server does not speak TLS; for plain HTTP leave out `tls`, and write \
        http:// where https:// is written";
        assert_eq!(message, expected);
    });
    server.join().unwrap();
}

#[test]
fn a_tls_port_without_tls_from_us_is_recognised() {
    with_tls_server(&certificates("ours"), rustls::ALL_VERSIONS, async |port| {
        let mut client = client_of("127.0.0.1", port, options(None));
        let error = get(&mut client, "/").await.0.unwrap_err();
        let expected = format!("127.0.0.1:{port} speaks TLS, but plain HTTP was sent; use `tls`");
        assert_eq!((error.kind, error.message), (Kind::Tls, expected));
    });
}

#[test]
fn a_ca_file_that_is_none_is_refused() {
    let load = |path: &std::path::Path| {
        TlsConfig::load(&TlsOptions {
            insecure: true,
            ca_file: Some(path.to_owned()),
            ..TlsOptions::default()
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let missing = load(&folder.path().join("missing.pem"));
    assert!(matches!(missing, Err(TlsSetupError::CaFile { .. })), "{missing:?}");
    // Neither of these has an end, or says when it begins.
    let endless = load(std::path::Path::new("/dev/zero"));
    assert!(matches!(endless, Err(TlsSetupError::CaFile { .. })), "{endless:?}");
    let huge = tempfile::NamedTempFile::new().unwrap();
    huge.as_file().set_len(1 << 30).unwrap();
    let refused = load(huge.path());
    assert!(matches!(refused, Err(TlsSetupError::CaFile { .. })), "{refused:?}");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let refused = load(empty.path());
    assert!(matches!(refused, Err(TlsSetupError::CaFileEmpty { .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().ends_with("(`tls_ca`) holds no PEM certificate"));
}

#[test]
fn a_tls_connection_is_kept_until_the_server_closes_it() {
    with_tls_server(&certificates("ours"), rustls::ALL_VERSIONS, async |port| {
        let mut client = tls_client("localhost", port, insecure());
        for path in ["/length/5", "/close/5", "/length/5", "/length/5"] {
            assert_eq!(get(&mut client, path).await.0.unwrap().body_bytes, 5);
        }
    });
}
