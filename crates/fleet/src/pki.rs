//! Who is who in a fleet of ours: an authority that lives as long as the fleet, and certificates of
//! it. Whoever joins knows the authority by its fingerprint.

use std::sync::Arc;

use aws_lc_rs::{digest, rand};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SignatureAlgorithm,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use thiserror::Error;

/// What the servers of every fleet are called in their certificates, whatever their addresses.
const SERVER: &str = "plimsoll-fleet";
/// How long the public part of a key on the curve P-256 is, as a point.
const POINT_BYTES: usize = 65;

/// Why somebody cannot be told from others.
#[derive(Debug, Error)]
pub enum PkiError {
    /// A certificate cannot be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// TLS cannot be set up with it.
    #[error("cannot set TLS up")]
    Tls(#[from] rustls::Error),
    /// A public key is not of the kind that is used here.
    #[error("a public key is not one of the curve P-256")]
    Key,
}

/// The SHA-256 of an authority's certificate.
pub type Fingerprint = [u8; 32];

/// Returns the fingerprint of a certificate.
fn fingerprint(certificate: &[u8]) -> Fingerprint {
    let digest = digest::digest(&digest::SHA256, certificate);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Who signs the certificates of a fleet. Its key is nowhere but in memory.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
}

/// A certificate with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// In DER.
    pub certificate: Vec<u8>,
    /// In PKCS #8.
    pub key: Vec<u8>,
}

/// A public key that somebody else has made.
struct Foreign([u8; POINT_BYTES]);

impl PublicKeyData for Foreign {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

fn params(name: &str, purpose: ExtendedKeyUsagePurpose) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![purpose];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

impl Authority {
    /// Returns a new one.
    pub fn new() -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "plimsoll fleet authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.der().to_vec();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Returns its fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.certificate)
    }

    /// Returns its certificate in DER.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// Returns what a server of the fleet shows.
    pub fn server(&self) -> Result<Identity, PkiError> {
        self.identity(params(SERVER, ExtendedKeyUsagePurpose::ServerAuth)?)
    }

    /// Returns what a client of that name shows.
    pub fn client(&self, name: &str) -> Result<Identity, PkiError> {
        self.identity(params(name, ExtendedKeyUsagePurpose::ClientAuth)?)
    }

    fn identity(&self, params: CertificateParams) -> Result<Identity, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.der().to_vec();
        Ok(Identity { certificate, key: key.serialize_der() })
    }

    /// Returns the certificate of a client of that name who has made its key itself.
    pub fn sign(&self, name: &str, public_key: &[u8]) -> Result<Vec<u8>, PkiError> {
        let point: [u8; POINT_BYTES] = public_key.try_into().map_err(|_| PkiError::Key)?;
        // An uncompressed point, as RFC 5480 has it.
        if point[0] != 4 {
            return Err(PkiError::Key);
        }
        let params = params(name, ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(params.signed_by(&Foreign(point), &self.issuer)?.der().to_vec())
    }
}

/// A key whose certificate somebody else signs.
pub struct NewKey(KeyPair);

impl NewKey {
    /// Returns a new one.
    pub fn make() -> Result<Self, PkiError> {
        Ok(Self(KeyPair::generate()?))
    }

    /// Returns the key that was kept, as [`to_der`](Self::to_der) has it.
    pub fn read(der: &[u8]) -> Result<Self, PkiError> {
        let key = KeyPair::try_from(der)?;
        match key.der_bytes().len() == POINT_BYTES {
            true => Ok(Self(key)),
            false => Err(PkiError::Key),
        }
    }

    /// Returns it as it is kept, in PKCS #8.
    pub fn to_der(&self) -> Vec<u8> {
        self.0.serialize_der()
    }

    /// Returns a number that another key hardly has.
    pub fn number(&self) -> u32 {
        let [a, b, c, d, ..] = fingerprint(self.public());
        u32::from_be_bytes([a, b, c, d])
    }

    /// Returns its public part.
    pub fn public(&self) -> &[u8] {
        self.0.der_bytes()
    }

    /// Returns it with its certificate.
    pub fn with(&self, certificate: Vec<u8>) -> Identity {
        Identity { certificate, key: self.0.serialize_der() }
    }
}

/// Returns how a client shows who it is, and whom it trusts: servers of the authority with that
/// fingerprint, whatever their addresses.
pub fn client_config(
    authority: Fingerprint,
    identity: &Identity,
) -> Result<rustls::ClientConfig, PkiError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Pinned { authority, provider: Arc::clone(&provider) };
    let certificate = CertificateDer::from(identity.certificate.clone());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key.clone()));
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(vec![certificate], key)?)
}

/// Trusts servers whose chain ends in the authority of a fingerprint.
#[derive(Debug)]
struct Pinned {
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let is_authority =
            |certificate: &&CertificateDer<'_>| fingerprint(certificate) == self.authority;
        let unknown = || rustls::Error::from(CertificateError::UnknownIssuer);
        let authority = intermediates.iter().find(is_authority).ok_or_else(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        );
        let verifier = verifier.build().map_err(|_| unknown())?;
        let name = ServerName::try_from(SERVER).expect("it is a name");
        verifier.verify_server_cert(end_entity, &[], &name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken in a fleet".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns a word that nobody can guess.
pub(crate) fn fresh_word() -> String {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the system has random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifies(authority: &Authority, shown: &Identity, by: &Authority) -> bool {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let pinned = Pinned { authority: authority.fingerprint(), provider };
        let leaf = CertificateDer::from(shown.certificate.clone());
        let chain = [CertificateDer::from(by.certificate().to_vec())];
        let name = ServerName::try_from("10.0.0.1").unwrap();
        // A year in which certificates of today hold.
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
        pinned.verify_server_cert(&leaf, &chain, &name, &[], now).is_ok()
    }

    #[test]
    fn only_servers_of_the_authority_are_trusted() {
        let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let server = own.server().unwrap();
        assert!(verifies(&own, &server, &own));
        // Of another authority, of none that is shown, and of a client that plays server.
        assert!(!verifies(&own, &other.server().unwrap(), &other));
        assert!(!verifies(&own, &other.server().unwrap(), &own));
        assert!(!verifies(&own, &own.client("plimsoll-fleet").unwrap(), &own));
        assert!(!verifies(&other, &server, &own));
    }

    #[test]
    fn keys_stay_with_who_makes_them() {
        let authority = Authority::new().unwrap();
        let key = NewKey::make().unwrap();
        let certificate = authority.sign("a0001", key.public()).unwrap();
        assert!(client_config(authority.fingerprint(), &key.with(certificate)).is_ok());
        for bad in [&[][..], &[4; 64], &[2; 65]] {
            assert!(matches!(authority.sign("a", bad), Err(PkiError::Key)));
        }
    }
}
