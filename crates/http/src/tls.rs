//! TLS settings: whom to trust.
#![expect(clippy::disallowed_methods, reason = "reads the certificates that the user names")]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
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

/// More than any bundle of certificates has.
const CA_FILE_BYTES_MAX: u64 = 16 << 20;

/// What webpki says of an issuer's own certificate that a server shows; its error is not to be told
/// apart in another way here.
const ISSUER_SHOWN: &str = "CaUsedAsEndEntity";

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
    #[error("cannot read certificates from `{}` (`tls_ca`)", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The file of `--tls-ca` holds a certificate that cannot be used.
    #[error("`{}` (`tls_ca`) holds a certificate that cannot be used", path.display())]
    CaCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
    /// The file of `--tls-ca` is no PEM file or an empty one.
    #[error("`{}` (`tls_ca`) holds no PEM certificate", path.display())]
    CaFileEmpty {
        /// The file.
        path: PathBuf,
    },
    /// There is nobody to trust.
    #[error("this system has no trusted certificates; use `tls_ca` FILE or `insecure`")]
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
        let named = named_certificates(options)?;
        let roots = load_roots(options, &named)?;
        let mut config = if options.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustAnyone(provider)))
                .with_no_client_auth()
        } else {
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let by_issuer = built.build().map_err(|error| {
                TlsSetupError::Provider(rustls::Error::General(error.to_string()))
            })?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustIssuersAndNamed {
                    by_issuer,
                    named,
                }))
                .with_no_client_auth()
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

/// Returns the certificates of the file that the user names.
fn named_certificates(options: &TlsOptions) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let Some(path) = &options.ca_file else {
        return Ok(Vec::new());
    };
    let unreadable = |source| TlsSetupError::CaFile { path: path.clone(), source };
    let text = read_ca_file(path).map_err(|error| unreadable(pem::Error::Io(error)))?;
    let named: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let named = named.map_err(unreadable)?;
    if named.is_empty() {
        return Err(TlsSetupError::CaFileEmpty { path: path.clone() });
    }
    Ok(named)
}

/// Reads a file whole, as long as it is a file and not larger than any of its kind.
fn read_ca_file(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe waits for who writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(CA_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > CA_FILE_BYTES_MAX {
        true => Err(io::Error::other(format!("it is larger than {CA_FILE_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

fn load_roots(
    options: &TlsOptions,
    named: &[CertificateDer<'static>],
) -> Result<RootCertStore, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &options.ca_file {
        for certificate in named {
            roots
                .add(certificate.clone())
                .map_err(|source| TlsSetupError::CaCertificate { path: path.clone(), source })?;
        }
    }
    if options.insecure {
        return Ok(roots);
    }
    // Single certificates of the system that do not parse are no reason to refuse the rest.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsSetupError::NoRoots) } else { Ok(roots) }
}

/// Takes certificates that somebody trusted has issued, and those that the user named themselves: a
/// store with a self-signed certificate shows the very one that is given for it, which is nobody's
/// issuer, or an issuer's own, which is not meant to be shown.
#[derive(Debug)]
struct TrustIssuersAndNamed {
    by_issuer: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

/// Tells whether a certificate that is valid in time was refused only because of who issued it, or
/// because it is an issuer's own. Its time is looked at before either.
fn is_about_issuer(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(cause) = error else {
        return false;
    };
    match cause {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(other) => other.to_string() == ISSUER_SHOWN,
        _ => false,
    }
}

impl ServerCertVerifier for TrustIssuersAndNamed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let by_issuer = self.by_issuer.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let error = match by_issuer {
            Err(error) if is_about_issuer(&error) => error,
            verified => return verified,
        };
        if !self.named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_issuer.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_issuer.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_issuer.supported_verify_schemes()
    }
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
