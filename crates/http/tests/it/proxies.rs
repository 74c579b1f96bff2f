//! Proxies on loopback. The hosts behind them have names that do not exist, so that nothing but the
//! proxy can lead there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use plimsoll_http::{
    Body, Client, ExchangeErrorKind as Kind, HttpVersion, Options, Proxies, ProxyVariables,
    TlsConfig, TlsOptions,
};
use tokio::io::AsyncWriteExt;

use crate::against_hyper::{check_echo, serve_hyper, serve_hyper_two};
use crate::support::{
    accept, answer, beside, block_on, call, client_of, get, options, read_head, serve,
};
use crate::tls::{acceptor, certificates, insecure};

/// Nobody has a name below `invalid` (RFC 6761).
const HOST: &str = "store.invalid";

fn through(proxy: &str, tls: Option<TlsConfig>) -> Options {
    let variables =
        ProxyVariables { all: Some(proxy), exceptions: "other.invalid", ..Default::default() };
    let proxies = Proxies::parse(&variables, &TlsOptions::default()).unwrap();
    Options { proxies, ..options(tls) }
}

fn client_through(address: SocketAddr, tls: Option<TlsConfig>) -> Client {
    client_of(HOST, 9000, through(&format!("http://me:secret@{address}"), tls))
}

#[test]
fn plain_requests_go_to_the_proxy_with_their_whole_url() {
    let (address, server) = serve(|listener: TcpListener| {
        let mut stream = accept(&listener);
        let mut heads = Vec::new();
        for _ in 0..2 {
            heads.push(read_head(&mut stream));
            stream.read_exact(&mut [0; 3]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
        heads
    });
    block_on(async {
        let mut client = client_through(address, None);
        for _ in 0..2 {
            let (result, kept) = call(&mut client, "PUT", "/b/k?x", Body::Bytes(b"abc")).await;
            assert_eq!((result.unwrap().status, &*kept.body), (200, &b"ok"[..]));
        }
    });
    // `bWU6c2VjcmV0` is `me:secret`.
    let expected = "PUT http://store.invalid:9000/b/k?x HTTP/1.1\r\n\
                    Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\
                    Host: test\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(server.join().unwrap(), [expected, expected], "on one connection");
}

/// Does what CONNECT asks for, but always towards `port`, after checking the request.
async fn serve_tunnel(mut stream: tokio::net::TcpStream, port: u16) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut byte).await.unwrap();
        head.push(byte[0]);
    }
    let expected = "CONNECT store.invalid:9000 HTTP/1.1\r\nHost: store.invalid:9000\r\n\
                    Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
    stream.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n").await.unwrap();
    let mut onward = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
}

#[test]
fn tls_goes_through_a_tunnel_in_both_versions() {
    let certificates = certificates("ours");
    let acceptor = acceptor(&certificates, rustls::ALL_VERSIONS, &["h2", "http/1.1"]);
    let serve = async |stream| {
        let stream = acceptor.accept(stream).await.unwrap();
        // The name in the handshake is that of the store, not of the proxy.
        assert_eq!(stream.get_ref().1.server_name(), Some(HOST));
        match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => serve_hyper_two(stream).await,
            _ => serve_hyper(stream).await,
        }
    };
    beside(serve, async |port| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let proxies = async {
            for _ in 0..2 {
                serve_tunnel(listener.accept().await.unwrap().0, port).await;
            }
        };
        let clients = async {
            for version in [HttpVersion::One, HttpVersion::Two] {
                let url = format!("http://me:secret@{proxy}");
                let options = Options { version, ..through(&url, Some(insecure())) };
                let mut client = client_of(HOST, 9000, options);
                check_echo(&mut client, 1_000_000).await;
                assert_eq!(get(&mut client, "/length/5").await.0.unwrap().body_bytes, 5);
            }
        };
        tokio::join!(proxies, clients);
    });
}

/// Returns the failure of one exchange through a proxy at `address`.
async fn refusal(address: SocketAddr, tls: Option<TlsConfig>) -> (Kind, String) {
    let error = get(&mut client_through(address, tls), "/").await.0.unwrap_err();
    assert!(!error.message.contains("secret"), "{error}");
    (error.kind, error.message)
}

#[test]
fn a_proxy_that_refuses_is_a_failure_to_connect_that_names_it() {
    type Script = fn(&mut TcpStream);
    let cases: [(Script, bool, &str); 5] = [
        (
            |stream| answer(stream, b"HTTP/1.1 403 secret\r\nContent-Length: 0\r\n\r\n"),
            true,
            "answered 403",
        ),
        (|stream| drop(read_head(stream)), true, "closed the connection"),
        (
            |stream| answer(stream, b"SOCKS no\r\n\r\n"),
            true,
            "answered what is not HTTP (invalid HTTP version)",
        ),
        (
            |stream| {
                let head = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; 20_000]].concat();
                answer(stream, &head);
                let _ = stream.read_to_end(&mut Vec::new());
            },
            true,
            "answered with a head that is too long",
        ),
        (
            |stream| answer(stream, b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"),
            false,
            "answered 407: wrong user or password",
        ),
    ];
    for (script, tls, reason) in cases {
        let (address, server) = serve(move |listener| script(&mut accept(&listener)));
        block_on(async {
            let (kind, message) = refusal(address, tls.then(insecure)).await;
            let expected =
                format!("no connection to store.invalid:9000: the proxy {address} {reason}");
            assert_eq!((kind, message), (Kind::Connect, expected));
        });
        server.join().unwrap();
    }
    // A port on which nobody listens any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    block_on(async {
        let (kind, message) = refusal(address, None).await;
        let expected =
            format!("connection refused by {address}; it is the proxy for store.invalid:9000");
        assert_eq!((kind, message), (Kind::Connect, expected));
    });
}

#[test]
fn who_is_excepted_is_spoken_to_directly() {
    beside(serve_hyper, async |port| {
        // Nobody listens at the proxy's address; loopback needs no proxy.
        let mut client = client_of("127.0.0.1", port, through("proxy.invalid:1", None));
        assert_eq!(get(&mut client, "/length/3").await.0.unwrap().body_bytes, 3);
        let mut client = client_of("other.invalid", 1, through("proxy.invalid:1", None));
        let error = get(&mut client, "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Resolve);
        assert!(error.message.starts_with("cannot resolve host `other.invalid`"), "{error}");
    });
}
