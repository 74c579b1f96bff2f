//! TLS settings: whom to trust.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::HttpVersion;

/// Whom to trust, as the user asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Takes any certificate.
    pub insecure: bool,
    /// A PEM file of certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
}

/// How the versions of HTTP are called in a handshake (RFC 7301).
const ALPN_ONE: &[u8] = b"http/1.1";
pub(crate) const ALPN_TWO: &[u8] = b"h2";

/// TLS settings ready for use; cheap to clone, shared by all threads.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Offers HTTP/1.1 only.
    one: Arc<ClientConfig>,
    /// Offers HTTP/2 first, and HTTP/1.1 so that a server that knows nothing else can say so.
    two: Arc<ClientConfig>,
}

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The file of `--tls-ca` could not be read as PEM.
    #[error("cannot read certificates from `{}` (--tls-ca)", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The file of `--tls-ca` holds a certificate that cannot be used.
    #[error("`{}` (--tls-ca) holds a certificate that cannot be used", path.display())]
    CaCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
    /// The file of `--tls-ca` is no PEM file or an empty one.
    #[error("`{}` (--tls-ca) holds no PEM certificate", path.display())]
    CaFileEmpty {
        /// The file.
        path: PathBuf,
    },
    /// There is nobody to trust.
    #[error("this system has no trusted certificates; use --tls-ca FILE or --insecure")]
    NoRoots,
    /// The TLS library refused the settings.
    #[error("cannot set up TLS")]
    Provider(#[source] rustls::Error),
}

impl TlsConfig {
    /// Returns settings for TLS 1.2 and later that trust the system's roots and those of `ca_file`.
    pub fn load(options: &TlsOptions) -> Result<Self, TlsSetupError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(TlsSetupError::Provider)?;
        // A wrong --tls-ca is refused even where --insecure would make it needless.
        let roots = load_roots(options)?;
        let mut config = if options.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustAnyone(provider)))
                .with_no_client_auth()
        } else {
            builder.with_root_certificates(roots).with_no_client_auth()
        };
        config.alpn_protocols = vec![ALPN_ONE.to_vec()];
        let mut two = config.clone();
        two.alpn_protocols.insert(0, ALPN_TWO.to_vec());
        Ok(Self { one: Arc::new(config), two: Arc::new(two) })
    }

    pub(crate) fn client_config(&self, version: HttpVersion) -> Arc<ClientConfig> {
        match version {
            HttpVersion::One => self.one.clone(),
            HttpVersion::Two => self.two.clone(),
        }
    }
}

fn load_roots(options: &TlsOptions) -> Result<RootCertStore, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &options.ca_file {
        let unreadable = |source| TlsSetupError::CaFile { path: path.clone(), source };
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            let certificate = certificate.map_err(unreadable)?;
            roots
                .add(certificate)
                .map_err(|source| TlsSetupError::CaCertificate { path: path.clone(), source })?;
        }
        if roots.is_empty() {
            return Err(TlsSetupError::CaFileEmpty { path: path.clone() });
        }
    }
    if options.insecure {
        return Ok(roots);
    }
    // Single certificates of the system that do not parse are no reason to refuse the rest.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsSetupError::NoRoots) } else { Ok(roots) }
}

/// Takes any certificate but still checks that the server holds its key.
#[derive(Debug)]
struct TrustAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
