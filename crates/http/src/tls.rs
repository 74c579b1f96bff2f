//! TLS settings: whom to trust, and as whom to appear.
#![expect(clippy::disallowed_methods, reason = "reads the certificates that the user names")]

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::Secret;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::HttpVersion;

/// Whom to trust, and as whom to appear, as the user asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Takes any certificate.
    pub insecure: bool,
    /// A PEM file of certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Trusts those of `ca_file` and nobody else, and what they have issued under whatever name:
    /// for servers whose certificates do not hold the names that they are reached by.
    pub any_name_of_ca: bool,
    /// The certificate to show to servers that ask for one.
    pub identity: Option<TlsIdentity>,
}

/// A certificate of our own with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The certificate, and those that lead to its issuer behind it.
    pub certificate: Pem,
    /// Its key, which has no password.
    pub key: Pem,
}

/// A text in PEM. Its `Debug` form does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// In a file, which is read when it is needed.
    File(PathBuf),
    /// As somebody handed it over.
    Text(Secret),
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, pem::Error> {
        match self {
            Self::File(path) => read_pem_file(path).map_err(pem::Error::Io),
            Self::Text(text) => Ok(text.expose().as_bytes().to_vec()),
        }
    }
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Text(_) => f.write_str("what was handed over"),
        }
    }
}

/// More than any bundle of certificates has.
const PEM_FILE_BYTES_MAX: u64 = 16 << 20;

/// What webpki says of an issuer's own certificate that a server shows; its error is not to be told
/// apart in another way here.
pub(crate) const ISSUER_SHOWN: &str = "CaUsedAsEndEntity";

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
    /// Nobody is named that could vouch for a server.
    #[error("the certificate of the servers' issuer (CA) is missing")]
    NoCaFile,
    /// A file of our own certificate or key could not be read as PEM.
    #[error("cannot read a {what} from {place}")]
    IdentityFile {
        /// What it should hold.
        what: &'static str,
        /// Where it was looked for.
        place: String,
        /// What went wrong.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The key of our own certificate is encrypted.
    #[error(
        "the key in {place} has a password, which nobody can type during a run: take it off with \
         `openssl pkey -in KEY -out NEW-KEY`, and keep the new file to yourself"
    )]
    KeyHasPassword {
        /// Where the key is.
        place: String,
    },
    /// Our own certificate is another key's.
    #[error("the key of {key} does not belong to the certificate of {certificate}")]
    OtherKey {
        /// Where the certificate is.
        certificate: String,
        /// Where the key is.
        key: String,
    },
    /// Our own certificate and its key cannot be used.
    #[error("the certificate of {place} cannot be used with its key")]
    Identity {
        /// Where the certificate is.
        place: String,
        /// What is wrong with them.
        #[source]
        source: rustls::Error,
    },
    /// There is nobody to trust.
    #[error(
        "this machine has no CA certificates to trust a server by: install the package \
         ca-certificates, or name a file of them by SSL_CERT_FILE or `tls_ca`, or use `insecure`"
    )]
    NoRoots,
    /// The TLS library refused the settings.
    #[error("cannot set up TLS")]
    Provider(#[source] rustls::Error),
}

impl TlsConfig {
    /// Returns settings for TLS 1.2 and later that trust the system's roots and those of `ca_file`,
    /// or whom `options` say.
    pub fn load(options: &TlsOptions) -> Result<Self, TlsSetupError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(TlsSetupError::Provider)?;
        // A wrong --tls-ca is refused even where --insecure would make it needless.
        let named = named_certificates(options)?;
        let roots = load_roots(options, &named)?;
        let verifier: Arc<dyn ServerCertVerifier> = match options.insecure {
            true => Arc::new(TrustAnyone(provider)),
            false => Arc::new(TrustIssuersAndNamed::new(roots, named, options, provider)?),
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = read_identity(identity)?;
                let built = builder.with_client_auth_cert(chain, key);
                built.map_err(|source| unusable(identity, source))?
            }
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
        let none_needed = options.insecure || !options.any_name_of_ca;
        return if none_needed { Ok(Vec::new()) } else { Err(TlsSetupError::NoCaFile) };
    };
    let unreadable = |source| TlsSetupError::CaFile { path: path.clone(), source };
    let text = read_pem_file(path).map_err(|error| unreadable(pem::Error::Io(error)))?;
    let named: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let named = named.map_err(unreadable)?;
    if named.is_empty() {
        return Err(TlsSetupError::CaFileEmpty { path: path.clone() });
    }
    Ok(named)
}

/// Reads our own certificate and its key.
fn read_identity(
    identity: &TlsIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsSetupError> {
    let unreadable = |what, pem: &Pem, source| {
        let place = pem.to_string();
        TlsSetupError::IdentityFile { what, place, source }
    };
    let TlsIdentity { certificate, key } = identity;
    let chain = certificate.read().and_then(|text| {
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>()?;
        if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) }
    });
    let chain = chain.map_err(|source| unreadable("certificate", certificate, source))?;
    let text = key.read().map_err(|source| unreadable("private key", key, source))?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(found) => Ok((chain, found)),
        Err(_) if is_encrypted(&text) => {
            Err(TlsSetupError::KeyHasPassword { place: key.to_string() })
        }
        Err(source) => Err(unreadable("private key", key, source)),
    }
}

/// Tells whether a text holds a key with a password: of PKCS #8, or of the older kind, whose
/// encryption stands in a header.
fn is_encrypted(pem: &[u8]) -> bool {
    let mut lines = pem.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.any(|line| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----" || line == b"Proc-Type: 4,ENCRYPTED"
    })
}

fn unusable(identity: &TlsIdentity, source: rustls::Error) -> TlsSetupError {
    let TlsIdentity { certificate, key } = identity;
    match source {
        rustls::Error::InconsistentKeys(_) => {
            TlsSetupError::OtherKey { certificate: certificate.to_string(), key: key.to_string() }
        }
        source => TlsSetupError::Identity { place: certificate.to_string(), source },
    }
}

/// Reads a file whole, as long as it is a file and not larger than any of its kind.
fn read_pem_file(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe waits for who writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(PEM_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > PEM_FILE_BYTES_MAX {
        true => Err(io::Error::other(format!("it is larger than {PEM_FILE_BYTES_MAX} bytes"))),
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
    if options.insecure || options.any_name_of_ca {
        return Ok(roots);
    }
    // Single certificates of the system that do not parse are no reason to refuse the rest.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsSetupError::NoRoots) } else { Ok(roots) }
}

/// Says what it means when a server ends a connection because of our certificate; `None` where an
/// error is another one. With TLS 1.3 it comes only after the handshake, as it seems to us.
pub(crate) fn identity_refusal(error: &io::Error) -> Option<String> {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())?;
    let rustls::Error::AlertReceived(alert) = cause else { return None };
    // Go says "bad certificate" in TLS 1.2 of one that is missing.
    let is_of_identity = matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
    );
    let why = "the server does not accept our certificate, or wants one and was shown none";
    is_of_identity.then(|| format!("{why} ({})", in_words(&format!("{alert:?}"))))
}

/// Returns a message of the TLS library with the names of its values as words: `HandshakeFailure`
/// is `handshake failure`.
pub(crate) fn in_words(message: &str) -> String {
    let mut words = String::with_capacity(message.len());
    let mut chars = message.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            words.push(' ');
        }
        let begins_word = chars.peek().is_some_and(char::is_ascii_lowercase);
        words.push(if begins_word { c.to_ascii_lowercase() } else { c });
        before = c;
    }
    words
}

/// Takes certificates that somebody trusted has issued, and those that the user named themselves: a
/// store with a self-signed certificate shows the very one that is given for it, which is nobody's
/// issuer, or an issuer's own, which is not meant to be shown.
#[derive(Debug)]
struct TrustIssuersAndNamed {
    by_issuer: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
    /// Where names do not matter: the issuers, and how they sign.
    of_any_name: Option<(Arc<RootCertStore>, WebPkiSupportedAlgorithms)>,
}

impl TrustIssuersAndNamed {
    fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        options: &TlsOptions,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsSetupError> {
        let (roots, algorithms) = (Arc::new(roots), provider.signature_verification_algorithms);
        let built = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider);
        let by_issuer = built
            .build()
            .map_err(|error| TlsSetupError::Provider(rustls::Error::General(error.to_string())))?;
        let of_any_name = options.any_name_of_ca.then_some((roots, algorithms));
        Ok(Self { by_issuer, named, of_any_name })
    }
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
        let by_issuer = match &self.of_any_name {
            None => self.by_issuer.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            Some((roots, algorithms)) => verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                roots,
                intermediates,
                now,
                algorithms.all,
            )
            .map(|()| ServerCertVerified::assertion()),
        };
        let error = match by_issuer {
            Err(error) if is_about_issuer(&error) => error,
            verified => return verified,
        };
        if !self.named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            return Err(error);
        }
        if self.of_any_name.is_none() {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_library_are_told_in_words() {
        for (message, words) in [
            ("received fatal alert: HandshakeFailure", "received fatal alert: handshake failure"),
            ("UnknownCA", "unknown CA"),
            ("peer sent no certificates", "peer sent no certificates"),
            ("", ""),
        ] {
            assert_eq!(in_words(message), words);
        }
    }

    #[test]
    fn where_names_do_not_matter_nobody_else_is_trusted() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["ours".to_owned()]).unwrap();
        let named = [params.self_signed(&key).unwrap().der().clone()];
        let options = TlsOptions {
            ca_file: Some("a name for errors".into()),
            any_name_of_ca: true,
            ..TlsOptions::default()
        };
        assert_eq!(load_roots(&options, &named).unwrap().len(), 1);
        let of_system = rustls_native_certs::load_native_certs().certs.len();
        let beside_system = TlsOptions { any_name_of_ca: false, ..options };
        let roots = load_roots(&beside_system, &named).unwrap().len();
        assert!(roots <= 1 + of_system && (roots > 1 || of_system == 0), "{roots} {of_system}");
    }
}
