//! TLS where the server asks for a certificate, and where names do not matter.
#![expect(clippy::disallowed_methods, reason = "certificates are files")]

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_http::{
    Client, ExchangeErrorKind as Kind, Pem, TlsConfig, TlsIdentity, TlsOptions, TlsSetupError,
};
use plimsoll_model::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::against_hyper::serve_hyper;
use crate::support::{beside, client_of, get, options};

/// An authority and what it has issued, as files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Issues a certificate that holds no name but a common one, as those of SeaweedFS's servers.
    fn issue(&self, name: &str, last_year: i32) -> TlsIdentity {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| self.folder.path().join(format!("{name}.{kind}.pem"));
        std::fs::write(file("cert"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        TlsIdentity { certificate: file("cert").into(), key: file("key").into() }
    }

    fn ca_file(&self) -> Option<PathBuf> {
        Some(self.folder.path().join("ca.pem"))
    }

    /// Returns a server's side that shows `identity`, and asks for a certificate of `clients_of`.
    fn acceptor(
        &self,
        version: &'static rustls::SupportedProtocolVersion,
        identity: &TlsIdentity,
        clients_of: Option<&Self>,
    ) -> TlsAcceptor {
        use rustls_pki_types::pem::PemObject as _;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap();
        let builder = match clients_of {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let of_clients =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(of_clients.build().unwrap())
            }
        };
        let certificate = CertificateDer::from_pem_slice(&text_of(&identity.certificate)).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&text_of(&identity.key)).unwrap();
        let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

const VERSIONS: [&rustls::SupportedProtocolVersion; 2] =
    [&rustls::version::TLS12, &rustls::version::TLS13];

fn text_of(pem: &Pem) -> Vec<u8> {
    match pem {
        Pem::File(path) => std::fs::read(path).unwrap(),
        Pem::Text(_) => unreachable!("authorities write files"),
    }
}

/// The same, handed over instead of named.
fn handed_over(identity: &TlsIdentity) -> TlsIdentity {
    let text = |pem| Pem::Text(Secret::from(String::from_utf8(text_of(pem)).unwrap()));
    TlsIdentity { certificate: text(&identity.certificate), key: text(&identity.key) }
}

/// Asks a server for five bytes; `Err` holds what went wrong, without where.
async fn ask(port: u16, host: &str, tls: &TlsOptions) -> Result<u64, (Kind, String)> {
    let tls = TlsConfig::load(tls).unwrap();
    let mut client: Client = client_of(host, port, options(Some(tls)));
    let outcome = get(&mut client, "/length/5").await.0;
    let place = format!("{host}:{port}");
    let plain = |message: &str| message.replace(&place, "HOST");
    outcome.map(|done| done.body_bytes).map_err(|error| (error.kind, plain(&error.message)))
}

#[test]
fn whom_the_authority_vouches_for_is_trusted_under_any_name_where_that_is_asked_for() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let any_name = |of: &Authority| TlsOptions {
        ca_file: of.ca_file(),
        any_name_of_ca: true,
        ..TlsOptions::default()
    };
    for version in VERSIONS {
        let acceptor = ours.acceptor(version, &ours.issue("volume01", 2120), None);
        let serve_tls = async |stream| {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_hyper(stream).await;
            }
        };
        beside(serve_tls, async |port| {
            for host in ["localhost", "127.0.0.1"] {
                assert_eq!(ask(port, host, &any_name(&ours)).await, Ok(5));
            }
            let (kind, message) = ask(port, "localhost", &any_name(&other)).await.unwrap_err();
            assert_eq!(kind, Kind::Tls);
            assert!(message.contains("certificate is not trusted (unknown issuer)"), "{message}");
            let by_name = TlsOptions { any_name_of_ca: false, ..any_name(&ours) };
            let (kind, message) = ask(port, "localhost", &by_name).await.unwrap_err();
            assert_eq!(kind, Kind::Tls);
            assert!(message.contains("certificate is for another name"), "{message}");
        });
        let acceptor = ours.acceptor(version, &ours.issue("old", 2021), None);
        let serve_tls = async |stream| drop(acceptor.accept(stream).await);
        beside(serve_tls, async |port| {
            let (_, message) = ask(port, "localhost", &any_name(&ours)).await.unwrap_err();
            assert!(message.contains("certificate has expired"), "{message}");
        });
    }
    let nobody = TlsOptions { any_name_of_ca: true, ..TlsOptions::default() };
    assert!(matches!(TlsConfig::load(&nobody), Err(TlsSetupError::NoCaFile)));
}

#[test]
fn a_server_that_asks_for_a_certificate_is_shown_ours() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    for version in VERSIONS {
        let acceptor = ours.acceptor(version, &ours.issue("master", 2120), Some(&ours));
        let serve_tls = async |stream| {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_hyper(stream).await;
            }
        };
        let of = |identity| TlsOptions {
            ca_file: ours.ca_file(),
            any_name_of_ca: true,
            identity,
            ..TlsOptions::default()
        };
        beside(serve_tls, async |port| {
            let identity = ours.issue("client", 2120);
            for identity in [handed_over(&identity), identity] {
                assert_eq!(ask(port, "localhost", &of(Some(identity))).await, Ok(5));
            }
            let stranger = Some(other.issue("stranger", 2120));
            for (identity, alert) in [(None, "certificate required"), (stranger, "unknown CA")] {
                let (kind, message) = ask(port, "localhost", &of(identity)).await.unwrap_err();
                assert_eq!(kind, Kind::Tls, "{message}");
                let why = "the server does not accept our certificate, or wants one and was shown";
                assert!(message.contains(why) && message.contains(alert), "{message}");
            }
        });
    }
}

#[test]
fn a_certificate_of_our_own_that_cannot_be_used_is_refused_by_name() {
    let ours = Authority::new("ours");
    let (one, two) = (ours.issue("one", 2120), ours.issue("two", 2120));
    let load = |certificate: &Pem, key: &Pem| {
        let (certificate, key) = (certificate.clone(), key.clone());
        let identity = Some(TlsIdentity { certificate, key });
        TlsConfig::load(&TlsOptions { insecure: true, identity, ..TlsOptions::default() })
    };
    assert!(load(&one.certificate, &one.key).is_ok());
    let missing = Pem::from(ours.folder.path().join("missing.pem"));
    let handed = handed_over(&two).key;
    assert!(!format!("{handed:?}").contains("PRIVATE"), "{handed:?}");
    let of_two = format!("the key of {} does not belong to the certificate of", two.key);
    for (certificate, key, start) in [
        (&one.certificate, &two.key, &*of_two),
        (&one.certificate, &handed, "the key of what was handed over does not belong to the"),
        (&one.key, &one.key, "cannot read a certificate from `"),
        (&missing, &one.key, "cannot read a certificate from `"),
        (&one.certificate, &one.certificate, "cannot read a private key from `"),
        (&one.certificate, &missing, "cannot read a private key from `"),
    ] {
        let message = load(certificate, key).unwrap_err().to_string();
        assert!(message.starts_with(start), "{message}");
    }
}
