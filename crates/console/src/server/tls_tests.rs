//! The console over TLS: by a client that knows its certificate, by one that does not, and in plain
//! text.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::ServerName;

use super::*;
use crate::console::tests::{fake, settings};

/// A certificate of `localhost` and its key, as PEM.
fn certificate() -> (Vec<u8>, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes())
}

/// A console that nobody has to sign in to, with its directory.
fn console(directory: &tempfile::TempDir) -> Arc<Console> {
    let (runner, _hand) = fake();
    Console::open(settings(directory.path()), runner).unwrap()
}

fn serve(tls: (Vec<u8>, Vec<u8>), users: Users) -> Serve {
    Serve {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        users,
        tls: Some(tls),
        host_name: None,
        version: "0.1.0".to_owned(),
    }
}

/// Asks over TLS, and trusts that certificate alone.
fn ask(address: SocketAddr, trusted: &[u8], request: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_slice_iter(trusted);
    found.for_each(|certificate| roots.add(certificate.unwrap()).unwrap());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(address)?);
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    // The server may close without a farewell when all was said.
    let read = stream.read_to_string(&mut answer);
    if answer.is_empty() { read.map(|_| answer) } else { Ok(answer) }
}

#[test]
fn who_knows_its_certificate_is_answered_and_nobody_in_plain_text() {
    let directory = tempfile::tempdir().unwrap();
    let tls = certificate();
    let users = "<users><user username=\"ann\" password=\"pw\"/></users>";
    let serve = serve(tls.clone(), Users::from_xml(users).unwrap());
    let serving = Serving::start(console(&directory), serve).unwrap();
    let address = serving.addresses()[0];
    let host = format!("Host: localhost:{}\r\nConnection: close\r\n", address.port());
    let get = format!("GET /api/v1/session HTTP/1.1\r\n{host}\r\n");
    let answer = ask(address, &tls.0, &get).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"user\":null"), "{answer}");
    // The cookie never goes over a connection that others can read.
    let body = "{\"user\": \"ann\", \"password\": \"pw\"}";
    let length = body.len();
    let post = format!(
        "POST /api/v1/session HTTP/1.1\r\n{host}Content-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    let answer = ask(address, &tls.0, &post).unwrap();
    let cookie = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie:"));
    assert!(cookie.is_some_and(|cookie| cookie.contains("; Secure")), "{answer}");
    // Nobody is told anything who does not speak TLS, nor does one ask who trusts another.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(get.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|window| window == b"HTTP"), "{answer:?}");
    let error = ask(address, &certificate().0, &get).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn what_is_no_certificate_with_its_key_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let console = console(&directory);
    let (chain, key) = certificate();
    let other = certificate().1;
    for (chain, key) in [(chain.clone(), other), (chain.clone(), Vec::new()), (Vec::new(), key)] {
        let started = Serving::start(Arc::clone(&console), serve((chain, key), Users::default()));
        assert!(matches!(started.err(), Some(ServeError::Tls(_))));
    }
}
