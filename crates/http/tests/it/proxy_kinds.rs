//! Proxies that are spoken to in SOCKS 5 and over TLS, with stores in both versions of HTTP, in
//! plain text and over TLS.
#![expect(clippy::disallowed_methods, reason = "certificates are files")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use plimsoll_http::{Client, ExchangeErrorKind as Kind, HttpVersion, Options, Proxies, TlsOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::against_hyper::{check_echo, serve_hyper, serve_hyper_two};
use crate::support::{accept, beside, block_on, client_of, get, options, serve};
use crate::tls::{Certificates, acceptor, certificates, insecure};

/// Nobody has a name below `invalid` (RFC 6761).
const HOST: &str = "store.invalid";
/// The versions of HTTP, and whether they go over TLS.
const WAYS: [(HttpVersion, bool); 4] = [
    (HttpVersion::One, false),
    (HttpVersion::One, true),
    (HttpVersion::Two, false),
    (HttpVersion::Two, true),
];

/// Settings that send all requests through one proxy.
fn through(proxy: &str, version: HttpVersion, tls: bool, trust: &TlsOptions) -> Options {
    let proxies = Some(Proxies::all(proxy, trust).unwrap());
    Options { proxies, version, ..options(tls.then(insecure)) }
}

/// Runs `test` beside a store that is spoken to in this way.
fn beside_store<F: Future<Output = ()>>(
    (version, tls): (HttpVersion, bool),
    test: impl FnOnce(u16) -> F,
) {
    let certificates = certificates("the store's");
    let acceptor = acceptor(&certificates, rustls::ALL_VERSIONS, &["h2", "http/1.1"]);
    let serve = async |stream| match (version, tls) {
        (HttpVersion::One, false) => serve_hyper(stream).await,
        (HttpVersion::Two, false) => serve_hyper_two(stream).await,
        (HttpVersion::One, true) => serve_hyper(acceptor.accept(stream).await.unwrap()).await,
        (HttpVersion::Two, true) => serve_hyper_two(acceptor.accept(stream).await.unwrap()).await,
    };
    beside(serve, test);
}

async fn use_it(client: &mut Client) {
    check_echo(client, 1_000_000).await;
    assert_eq!(get(client, "/length/5").await.0.unwrap().body_bytes, 5);
}

async fn take<const N: usize>(stream: &mut tokio::net::TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn take_text(stream: &mut tokio::net::TcpStream) -> String {
    let [length] = take(stream).await;
    let mut text = vec![0; usize::from(length)];
    stream.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// Does what a client of SOCKS asks for (RFC 1928, RFC 1929), but always towards `port`; returns
/// whom it was asked to connect to.
async fn serve_socks(mut stream: tokio::net::TcpStream, user: bool, port: u16) -> String {
    let [version, methods] = take(&mut stream).await;
    let mut offered = vec![0; usize::from(methods)];
    stream.read_exact(&mut offered).await.unwrap();
    let method = if user { 2 } else { 0 };
    assert!(version == 5 && offered.contains(&method), "{version} {offered:?}");
    stream.write_all(&[5, method]).await.unwrap();
    if user {
        assert_eq!(take(&mut stream).await, [1]);
        let (name, password) = (take_text(&mut stream).await, take_text(&mut stream).await);
        assert_eq!((&*name, &*password), ("me", "sec:ret"));
        stream.write_all(&[1, 0]).await.unwrap();
    }
    let [version, command, _, kind] = take(&mut stream).await;
    assert_eq!((version, command), (5, 1), "CONNECT");
    let host = match kind {
        1 => std::net::Ipv4Addr::from(take::<4>(&mut stream).await).to_string(),
        3 => take_text(&mut stream).await,
        4 => std::net::Ipv6Addr::from(take::<16>(&mut stream).await).to_string(),
        other => panic!("address of type {other}"),
    };
    let asked = format!("{host} {}", u16::from_be_bytes(take(&mut stream).await));
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    pass_on(stream, port).await;
    asked
}

async fn pass_on(mut stream: impl AsyncRead + AsyncWrite + Unpin, port: u16) {
    let mut onward = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
}

#[test]
fn socks_passes_everything_on_by_name_or_by_address() {
    for way in WAYS {
        beside_store(way, async |port| {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let proxy = listener.local_addr().unwrap();
            let proxies = async {
                let mut asked = Vec::new();
                for user in [true, false] {
                    let stream = listener.accept().await.unwrap().0;
                    asked.push(serve_socks(stream, user, port).await);
                }
                asked
            };
            let clients = async {
                // The proxy alone knows the one name, and the other is looked up here.
                for (url, host) in [
                    (format!("socks5h://me:sec%3Aret@{proxy}"), HOST),
                    (format!("socks5://{proxy}"), "localhost"),
                ] {
                    let options = through(&url, way.0, way.1, &TlsOptions::default());
                    use_it(&mut client_of(host, 9000, options)).await;
                }
            };
            let (asked, ()) = tokio::join!(proxies, clients);
            assert_eq!(asked[0], "store.invalid 9000");
            assert!(["127.0.0.1 9000", "::1 9000"].contains(&&*asked[1]), "{asked:?}");
        });
    }
}

/// Reads a request's head, byte by byte so that nothing behind it is taken.
async fn head_of(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Returns settings that trust who issued these certificates beside the system's.
fn trusting(certificates: &Certificates, folder: &tempfile::TempDir) -> TlsOptions {
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, &certificates.authority_pem).unwrap();
    TlsOptions { ca_file: Some(path), ..TlsOptions::default() }
}

#[test]
fn a_proxy_over_tls_is_trusted_by_its_own_authority_and_passes_everything_on() {
    let folder = tempfile::tempdir().unwrap();
    let own = certificates("the proxy's");
    let trust = trusting(&own, &folder);
    let acceptor = acceptor(&own, rustls::ALL_VERSIONS, &["http/1.1"]);
    for way in WAYS {
        beside_store(way, async |port| {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let proxy = listener.local_addr().unwrap().port();
            let proxies = async {
                let stream = listener.accept().await.unwrap().0;
                let mut stream = acceptor.accept(stream).await.unwrap();
                if way == (HttpVersion::One, false) {
                    // It is asked itself: what it would send on is of no matter here.
                    let head = head_of(&mut stream).await;
                    assert!(head.starts_with("GET http://store.invalid:9000/ HTTP/1.1\r\n"));
                    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    stream.write_all(answer).await.unwrap();
                    stream.flush().await.unwrap();
                    return;
                }
                let expected = "CONNECT store.invalid:9000 HTTP/1.1\r\n\
                                Host: store.invalid:9000\r\n\
                                Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n";
                assert_eq!(head_of(&mut stream).await, expected);
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                stream.flush().await.unwrap();
                pass_on(stream, port).await;
            };
            let client = async {
                let url = format!("https://me:secret@localhost:{proxy}");
                let mut client = client_of(HOST, 9000, through(&url, way.0, way.1, &trust));
                match way {
                    (HttpVersion::One, false) => {
                        assert_eq!(get(&mut client, "/").await.1.body, b"ok");
                    }
                    _ => use_it(&mut client).await,
                }
            };
            tokio::join!(proxies, client);
        });
    }
}

#[test]
fn a_proxy_over_tls_that_is_not_trusted_or_speaks_none_is_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let trust = trusting(&certificates("somebody's"), &folder);
    let own = certificates("the proxy's");
    let acceptor = acceptor(&own, rustls::ALL_VERSIONS, &["http/1.1"]);
    let ask = async |host: &str, port: u16, trust: &TlsOptions| {
        let url = format!("https://me:secret@{host}:{port}");
        let options = through(&url, HttpVersion::One, true, trust);
        let error = get(&mut client_of(HOST, 9000, options), "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Tls, "{error}");
        error.message
    };
    beside(
        async |stream| drop(acceptor.accept(stream).await),
        async |port| {
            let said = ask("localhost", port, &trust).await;
            let start = format!(
                "TLS with the proxy localhost:{port} failed: certificate is not trusted (unknown"
            );
            assert!(said.starts_with(&start), "{said}");
            let own_authority = trusting(&own, &folder);
            let said = ask("127.0.0.1", port, &own_authority).await;
            assert!(
                said.contains("is for another name; give the proxy one of its names"),
                "{said}"
            );
        },
    );
    beside(serve_hyper, async |port| {
        let said = ask("localhost", port, &trust).await;
        let expected = format!(
            "TLS with the proxy localhost:{port} failed: it does not speak TLS; write http:// \
             before its address"
        );
        assert_eq!(said, expected);
    });
}

/// What a SOCKS proxy answers in turn, each after it was sent something.
type Answers = &'static [&'static [u8]];

#[test]
fn a_socks_proxy_that_refuses_says_why_and_shows_no_password() {
    let cases: [(bool, Answers, &str); 8] = [
        (true, &[&[5, 2], &[1, 1]], "refused: wrong user or password"),
        (false, &[&[5, 2]], "refused: it wants a user and a password"),
        (false, &[&[5, 0xff]], "refused: it wants a user and a password"),
        (false, &[&[5, 0], &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]], "refused: connection refused"),
        (false, &[&[5, 0], &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]], "refused: host unreachable"),
        (
            false,
            &[&[5, 0], &[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]],
            "refused: connection not allowed by ruleset",
        ),
        (
            false,
            &[b"HTTP/1.1 400 Bad Request\r\n\r\n"],
            "answered what is not SOCKS 5 (invalid response version)",
        ),
        (false, &[&[5, 0], &[]], "closed the connection"),
    ];
    for (user, answers, reason) in cases {
        let (address, server) = serve(move |listener: TcpListener| {
            let mut stream = accept(&listener);
            for answer in answers {
                assert_ne!(stream.read(&mut [0; 600]).unwrap(), 0);
                stream.write_all(answer).unwrap();
            }
        });
        block_on(async {
            let user = if user { "me:secret@" } else { "" };
            let said = refused(&format!("socks5h://{user}{address}"), Kind::Connect).await;
            let expected =
                format!("no connection to store.invalid:9000: the proxy {address} {reason}");
            assert_eq!(said, expected);
        });
        server.join().unwrap();
    }
}

async fn refused(url: &str, kind: Kind) -> String {
    let options = through(url, HttpVersion::One, false, &TlsOptions::default());
    let error = get(&mut client_of(HOST, 9000, options), "/").await.0.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(!error.message.contains("secret"), "{error}");
    error.message
}

#[test]
fn a_name_for_a_proxy_that_takes_addresses_has_to_be_known_here() {
    let (address, server): (SocketAddr, _) = serve(|listener: TcpListener| accept(&listener));
    block_on(async {
        let said = refused(&format!("socks5://{address}"), Kind::Resolve).await;
        assert!(said.starts_with("cannot resolve host `store.invalid`: "), "{said}");
        assert!(said.ends_with("; with socks5h:// the proxy looks it up"), "{said}");
    });
    drop(server.join().unwrap());
}
