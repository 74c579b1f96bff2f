//! Who is let in, by which address, and what starting and stopping do.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use plimsoll_oracle::{Oracle, OracleError, TlsIdentity};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, Payload, read_answer};
use crate::{KEYS, client, config, start};

#[test]
fn only_a_good_signature_is_let_in() {
    let (_oracle, client) = start(config());
    let wrong_secret = Some((KEYS.0, "another-secret"));
    let unknown_key = Some(("another-key", KEYS.1));
    for (keys, ahead_secs, code) in [
        (wrong_secret, 0, "SignatureDoesNotMatch"),
        (unknown_key, 0, "InvalidAccessKeyId"),
        (None, 0, "AccessDenied"),
        (Some(KEYS), -1000, "RequestTimeTooSkewed"),
        (Some(KEYS), 1000, "RequestTimeTooSkewed"),
    ] {
        let client = Client { keys, ahead_secs, ..client.clone() };
        for (method, target) in
            [("GET", "/"), ("PUT", "/bucket/k"), ("GET", "/bucket/k"), ("DELETE", "/bucket")]
        {
            let answer = client.request(method, target, &[], b"");
            assert_eq!(answer.error(), (403, code.to_owned()), "{method} {target}");
        }
    }
    // Fifteen minutes are allowed either way.
    for ahead_secs in [-800, 800] {
        let client = Client { ahead_secs, ..client.clone() };
        assert_eq!(client.request("HEAD", "/bucket", &[], b"").status, 200);
    }
}

#[test]
fn a_refusal_arrives_however_much_is_being_sent() {
    let (_oracle, client) = start(config());
    let content = vec![7; 8 << 20];
    let unknown = Client { keys: Some(("another-key", KEYS.1)), ..client.clone() };
    let refused = unknown.request("PUT", "/bucket/k", &[], &content);
    assert_eq!(refused.error(), (403, "InvalidAccessKeyId".to_owned()));
    let refused = client.request("PUT", "/nowhere/k", &[], &content);
    assert_eq!(refused.error(), (404, "NoSuchBucket".to_owned()));

    // Who asks first is told without having sent anything.
    let head = unknown.head("PUT", "/bucket/k", &[("expect", "100-continue")], &content);
    let mut socket = TcpStream::connect(client.addr).unwrap();
    socket.write_all(head.as_bytes()).unwrap();
    let refused = read_answer(&mut socket, false);
    assert_eq!(refused.error(), (403, "InvalidAccessKeyId".to_owned()));
    // What it sends next must not be taken for the body: boto3 waited for its answer for ever.
    assert_eq!(refused.header("connection"), Some("close"));
}

#[test]
fn an_anonymous_store_still_checks_what_is_signed() {
    let mut config = config();
    config.anonymous = true;
    let (_oracle, client) = start(config);
    let nobody = Client { keys: None, ..client.clone() };
    assert_eq!(nobody.request("PUT", "/bucket/k", &[], b"x").status, 200);
    assert_eq!(nobody.request("GET", "/bucket/k", &[], b"").text(), "x");
    let liar = Client { keys: Some((KEYS.0, "another-secret")), ..client };
    let answer = liar.request("GET", "/bucket/k", &[], b"");
    assert_eq!(answer.error(), (403, "SignatureDoesNotMatch".to_owned()));
}

#[test]
fn a_bucket_may_be_a_host_name() {
    let mut config = config();
    config.domain = Some("s3.test".to_owned());
    let (_oracle, client) = start(config);
    client.request("PUT", "/bucket/k", &[], b"by path");
    for (host, target) in [
        ("bucket.s3.test", "/k"),
        ("bucket.s3.test:9000", "/k"),
        ("s3.test", "/bucket/k"),
        ("localhost:9000", "/bucket/k"),
    ] {
        let client = Client { host: Some(host), ..client.clone() };
        assert_eq!(client.request("GET", target, &[], b"").text(), "by path", "{host}");
    }
    let client = Client { host: Some("bucket.s3.test"), ..client };
    assert_eq!(client.request("GET", "/?list-type=2", &[], b"").elements("Key"), ["k"]);
}

/// Returns an identity for a server, and what opens a connection to one that has it.
pub(crate) fn tls() -> (TlsIdentity, impl Fn(&Oracle) -> StreamOwned<ClientConnection, TcpStream>) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert_pem, key_pem) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = Arc::new(tls);
    let open = move |oracle: &Oracle| {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&tls), name).unwrap();
        StreamOwned::new(connection, TcpStream::connect(oracle.addr()).unwrap())
    };
    (TlsIdentity { cert_pem, key_pem }, open)
}

#[test]
fn it_speaks_tls_when_given_an_identity() {
    let (identity, open) = tls();
    let mut config = config();
    config.tls = Some(identity);
    let oracle = Oracle::start(config.clone()).unwrap();
    let mut socket = open(&oracle);
    let client = client(&oracle);
    assert_eq!(client.converse(&mut socket, "PUT", "/bucket", &[], b"").status, 200);
    let content = vec![3; 300_000];
    assert_eq!(client.converse(&mut socket, "PUT", "/bucket/k", &[], &content).status, 200);
    assert_eq!(client.converse(&mut socket, "GET", "/bucket/k", &[], b"").body, content);

    config.tls = Some(TlsIdentity { cert_pem: String::new(), key_pem: String::new() });
    assert!(matches!(Oracle::start(config), Err(OracleError::TlsPem(_))));
}

#[test]
fn many_connections_are_served_at_once() {
    let (oracle, client) = start(config());
    thread::scope(|scope| {
        for worker in 0..8 {
            let client = Client { payload: Payload::Unsigned, ..client.clone() };
            scope.spawn(move || {
                let mut socket = TcpStream::connect(client.addr).unwrap();
                for turn in 0..20 {
                    let target = format!("/bucket/{worker}-{turn}");
                    let content = target.repeat(100).into_bytes();
                    client.converse(&mut socket, "PUT", &target, &[], &content);
                    let got = client.converse(&mut socket, "GET", &target, &[], b"");
                    assert_eq!(got.body, content);
                }
            });
        }
    });
    assert_eq!(oracle.stats().objects_count, 160);
}

#[test]
fn an_oracle_that_ended_is_not_there() {
    let (oracle, client) = start(config());
    let open = TcpStream::connect(client.addr).unwrap();
    let addr = oracle.addr();
    oracle.shutdown();
    assert!(TcpStream::connect(addr).is_err());
    // The connection that was open is closed too: it reads as ended or reset, not as waiting.
    assert!(matches!(std::io::Read::read(&mut &open, &mut [0]), Ok(0) | Err(_)));
}

#[test]
fn what_cannot_start_says_why() {
    let mut none = config();
    none.threads = 0;
    assert!(matches!(Oracle::start(none), Err(OracleError::NoThreads)));
    let oracle = Oracle::start(config()).unwrap();
    let mut taken = config();
    taken.listen = oracle.addr();
    let Err(error) = Oracle::start(taken) else { panic!("two listen on one port") };
    assert_eq!(error.to_string(), format!("cannot listen on {}", oracle.addr()));
}

#[test]
fn every_refusal_says_why() {
    let (_oracle, client) = start(config());
    let (range, long) = (("range", "bytes=9-"), format!("/bucket/{}", "k".repeat(1025)));
    assert_eq!(client.request("PUT", "/bucket/k", &[], b"x").status, 200);
    for (method, target, headers, code) in [
        ("PUT", "/x2", &[][..], "InvalidBucketName"),
        ("PUT", long.as_str(), &[], "KeyTooLongError"),
        ("GET", "/bucket/k", &[range], "InvalidRange"),
        ("GET", "/bucket/none", &[], "NoSuchKey"),
    ] {
        let refused = client.request(method, target, headers, b"");
        assert_eq!(refused.elements("Code"), [code]);
        let messages = refused.elements("Message");
        assert!(messages.len() == 1 && messages[0].len() > 10, "{}", refused.text());
    }
}
