//! HTTP/2: against hyper behind TLS, and against a server that misbehaves on purpose.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use plimsoll_http::{
    Body, Client, Endpoint, ExchangeErrorKind as Kind, HttpVersion, Options, TlsConfig,
};
use tokio::net::TcpStream;

use crate::against_hyper::{SHAPES, check_echo, comparable, content, serve_hyper, serve_hyper_two};
use crate::support::{
    CountingClock, Kept, accept, answer, beside, call, client_of, get, options, serve,
};
use crate::tls::{acceptor, certificates, insecure};

fn http2(tls: Option<TlsConfig>) -> Options {
    Options { version: HttpVersion::Two, ..options(tls) }
}

fn plain_client(port: u16) -> Client {
    client_of("127.0.0.1", port, http2(None))
}

/// Leaves out what the versions say in different ways: what becomes of the connection, and that
/// there is no body.
fn without_framing(kept: Kept) -> Kept {
    let mut kept = comparable(kept);
    kept.headers.retain(|(name, value)| {
        !["connection", "transfer-encoding"].contains(&&**name)
            && (&**name, &**value) != ("content-length", b"0")
    });
    kept.content_length = kept.content_length.filter(|length| *length > 0);
    kept
}

#[test]
fn every_shape_and_bodies_beyond_every_window_go_over_tls() {
    let certificates = certificates("ours");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let acceptor = acceptor(&certificates, &[version], &["h2", "http/1.1"]);
        let opened = Cell::new(0);
        let serve = async |stream| {
            opened.set(opened.get() + 1);
            let stream = acceptor.accept(stream).await.unwrap();
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => serve_hyper_two(stream).await,
                _ => serve_hyper(stream).await,
            }
        };
        beside(serve, async |port| {
            let mut client = client_of("localhost", port, http2(Some(insecure())));
            for (method, path) in SHAPES {
                let (result, ours) = call(&mut client, method, path, Body::Empty).await;
                let exchange = result.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
                assert_eq!(exchange.body_bytes, ours.body.len() as u64);
                assert_eq!(exchange.first_body_byte.is_some(), !ours.body.is_empty());
                assert_eq!(exchange.last_byte_sent, None, "there was no body to send");
                let mut one = client_of("localhost", port, options(Some(insecure())));
                let theirs = call(&mut one, method, path, Body::Empty).await.1;
                assert_eq!(without_framing(ours), without_framing(theirs), "{method} {path}");
            }
            // hyper's windows are 1 MiB, ours 4 MiB.
            for size in [0, 1, 100_000, 10 << 20] {
                check_echo(&mut client, size).await;
            }
        });
        assert_eq!(opened.get(), 1 + SHAPES.len(), "one connection for all of HTTP/2");
    }
}

#[test]
fn it_is_known_beforehand_where_there_is_no_tls() {
    beside(serve_hyper_two, async |port| {
        let mut client = plain_client(port);
        check_echo(&mut client, 3_000_000).await;
        let (result, kept) = get(&mut client, "/length/5000000").await;
        assert_eq!((result.unwrap().status, kept.body), (200, content(5_000_000)));
    });
}

#[test]
fn a_server_without_it_is_recognised() {
    let certificates = certificates("ours");
    for (protocols, reason) in [
        (&["http/1.1"][..], "it offered http/1.1 instead; leave out `http2`"),
        (&[], "it offered no version at all (ALPN); leave out `http2`"),
        (&["http/1.0"], "leave out `http2`"),
    ] {
        let acceptor = acceptor(&certificates, rustls::ALL_VERSIONS, protocols);
        let serve = async |stream| drop(acceptor.accept(stream).await);
        beside(serve, async |port| {
            let mut client = client_of("localhost", port, http2(Some(insecure())));
            let error = get(&mut client, "/").await.0.unwrap_err();
            assert_eq!(error.kind, Kind::Tls);
            let start = format!("TLS with localhost:{port} failed: the server does not speak ");
            assert!(error.message.starts_with(&start), "{error}");
            assert!(error.message.ends_with(reason), "{error}");
        });
    }
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    crate::support::block_on(async {
        let error = get(&mut plain_client(address.port()), "/").await.0.unwrap_err();
        let expected = format!("{address} speaks HTTP/1.1, not HTTP/2; leave out `http2`");
        assert_eq!((error.kind, error.message), (Kind::Protocol, expected));
    });
    server.join().unwrap();
    beside(serve_hyper, async |port| {
        let error = get(&mut plain_client(port), "/").await.0.unwrap_err();
        let advice = " without an answer; does that port speak HTTP/2?";
        assert_eq!(error.kind, Kind::Reset);
        assert!(error.message.ends_with(advice), "{error}");
    });
    let acceptor = acceptor(&certificates, rustls::ALL_VERSIONS, &["h2"]);
    let serve = async |stream| drop(acceptor.accept(stream).await);
    beside(serve, async |port| {
        let error = get(&mut plain_client(port), "/").await.0.unwrap_err();
        let expected = format!("127.0.0.1:{port} speaks TLS, but plain HTTP was sent; use `tls`");
        assert_eq!((error.kind, error.message), (Kind::Tls, expected));
    });
}

/// Serves one connection and does with each request what `answer` says.
async fn serve_raw(
    stream: TcpStream,
    mut answer: impl AsyncFnMut(Request<RecvStream>, SendResponse<Bytes>),
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        answer(request, respond).await;
    }
}

fn ok(content_length: usize) -> Response<()> {
    Response::builder().header("content-length", content_length).body(()).unwrap()
}

#[test]
fn a_reset_is_counted_as_one_and_costs_only_its_stream() {
    let opened = Cell::new(0);
    let serve = async |stream| {
        opened.set(opened.get() + 1);
        serve_raw(stream, async |request, mut respond| match request.uri().path() {
            "/refused" => respond.send_reset(Reason::REFUSED_STREAM),
            "/broken" => {
                let mut body = respond.send_response(ok(100), false).unwrap();
                body.send_reset(Reason::INTERNAL_ERROR);
            }
            _ => {
                let mut body = respond.send_response(ok(2), false).unwrap();
                body.send_data(Bytes::from_static(b"ok"), true).unwrap();
            }
        })
        .await;
    };
    beside(serve, async |port| {
        let mut client = plain_client(port);
        let ask = async |client: &mut Client, path| {
            let error = get(client, path).await.0.unwrap_err();
            (error.kind, error.message)
        };
        let here = format!("127.0.0.1:{port}");
        let (kind, message) = ask(&mut client, "/refused").await;
        let expected = format!("{here} reset the stream (REFUSED_STREAM) without an answer");
        assert_eq!((kind, message), (Kind::Reset, expected));
        let (kind, message) = ask(&mut client, "/broken").await;
        let start = format!("{here} reset the stream (INTERNAL_ERROR)");
        assert!(kind == Kind::Reset && message.starts_with(&start), "{kind:?}: {message}");
        assert_eq!(get(&mut client, "/").await.1.body, b"ok");
        assert_eq!(opened.get(), 1);
    });
}

/// The bytes of a frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[0, 0, len, kind, flags, 0, 0, 0, stream], payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` (RFC 7541, appendix A, entry 8) and `content-length: 100` (entry 28, a literal).
const OK_100: [u8; 7] = [0x88, 0x0f, 0x0d, 3, b'1', b'0', b'0'];

/// Reads until the client's request has come whole, which is when its stream ends in a frame of
/// HEADERS.
async fn read_request(stream: &mut TcpStream) {
    use tokio::io::AsyncReadExt;
    stream.read_exact(&mut [0; 24]).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; len as usize]).await.unwrap();
        if head[3] == HEADERS {
            return;
        }
    }
}

/// The outcome of a request to that port: how many bytes of body, or how it failed, without the
/// address in the message.
type Got = Result<u64, (Kind, String)>;

/// Answers one request with `frames`, then closes or waits for the client.
async fn answered(frames: &[Vec<u8>], close: bool) -> Got {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = async {
        let mut stream = listener.accept().await.unwrap().0;
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(&frames.concat()).await.unwrap();
        if close {
            stream.shutdown().await.unwrap();
        }
        // Ends once the client has closed, so that no reset of the socket takes the answer away.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    let client = async {
        match get(&mut plain_client(port), "/").await.0 {
            Ok(exchange) => Ok(exchange.body_bytes),
            Err(error) => {
                Err((error.kind, error.message.replace(&format!("127.0.0.1:{port} "), "")))
            }
        }
    };
    tokio::join!(server, client).1
}

async fn check_answer(frames: &[Vec<u8>], close: bool, kind: Kind, message: &str) {
    assert_eq!(answered(frames, close).await, Err((kind, message.to_owned())));
}

#[test]
fn how_an_answer_ends_is_told_apart() {
    let head = frame(HEADERS, END_HEADERS, 1, &OK_100);
    let some = frame(DATA, 0, 1, &[7; 40]);
    let inside = "inside the answer's body after 40 of 100 bytes";
    crate::support::block_on(async {
        let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]);
        let message = format!("reset the stream (INTERNAL_ERROR) {inside}");
        let frames = [head.clone(), some.clone(), reset];
        check_answer(&frames, false, Kind::Reset, &message).await;

        let message = format!("closed the connection {inside}");
        check_answer(&[head.clone(), some.clone()], true, Kind::Truncated, &message).await;
        check_answer(&[], true, Kind::Reset, "closed the connection without an answer").await;

        // The last stream it looked at is none, so that ours was not.
        let away = frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]);
        let message = "gave up the connection (ENHANCE_YOUR_CALM) without an answer";
        check_answer(&[away], false, Kind::Reset, message).await;

        let short = frame(DATA, END_STREAM, 1, &[7; 40]);
        let message = "sent an answer that is not valid HTTP/2: \
                       stream error detected: unspecific protocol error detected";
        check_answer(&[head, short], false, Kind::Protocol, message).await;
    });
}

/// A server may ask in this way for no more of the request, once its answer is whole (RFC 9113,
/// section 8.1); whole is what ends with END_STREAM.
#[test]
fn a_reset_ends_an_answer_only_after_the_end_of_its_stream() {
    let head = |flags, fields: &[u8]| frame(HEADERS, END_HEADERS | flags, 1, fields);
    let data = |flags, len| frame(DATA, flags, 1, &vec![7; len]);
    // NO_ERROR, INTERNAL_ERROR, CANCEL.
    for (code, name) in [(0, "NO_ERROR"), (2, "INTERNAL_ERROR"), (8, "CANCEL")] {
        let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, code]);
        crate::support::block_on(async {
            for fields in [&OK_100[..1], &OK_100] {
                let stated = if fields.len() > 1 { " of 100" } else { "" };
                for sent in [0, 40, 100] {
                    let frames = [head(0, fields), data(0, sent), reset.clone()];
                    let message = format!(
                        "reset the stream ({name}) inside the answer's body after {sent}{stated} \
                         bytes"
                    );
                    check_answer(&frames, false, Kind::Reset, &message).await;
                }
                let whole = [head(0, fields), data(END_STREAM, 100), reset.clone()];
                assert_eq!(answered(&whole, false).await, Ok(100), "{name}");
            }
            let empty = [head(END_STREAM, &OK_100[..1]), reset.clone()];
            assert_eq!(answered(&empty, false).await, Ok(0), "{name}");
        });
    }
}

#[test]
fn the_moments_are_in_their_order_and_an_early_answer_is_taken() {
    let sent = content(1_000_000);
    let early = async |stream| {
        serve_raw(stream, async |_, mut respond| {
            let mut body = respond.send_response(ok(2), false).unwrap();
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
        })
        .await;
    };
    beside(early, async |port| {
        // The window of a server that reads nothing is 64 KiB.
        let mut client = plain_client(port);
        let (result, kept) = call(&mut client, "PUT", "/", Body::Bytes(&sent)).await;
        let exchange = result.unwrap();
        assert_eq!((exchange.status, exchange.last_byte_sent), (200, None));
        assert!(exchange.is_early, "the answer is not about the whole body");
        assert_eq!(kept.body, b"ok");
    });
    beside(serve_hyper_two, async |port| {
        let mut client = plain_client(port);
        let body = Body::Bytes(&sent);
        let (result, kept) = call(&mut client, "PUT", "/after/1000000", body).await;
        let exchange = result.unwrap();
        assert!(kept.body == sent && !exchange.is_early);
        let first_body_byte = exchange.first_body_byte.unwrap();
        assert!(exchange.last_byte_sent.unwrap() < exchange.first_byte);
        assert!(exchange.first_byte <= first_body_byte && first_body_byte < exchange.end);
    });
}

#[test]
fn a_connection_that_the_server_gave_up_is_replaced_before_anything_is_sent() {
    let opened = Rc::new(Cell::new(0));
    let serve = async |stream| {
        opened.set(opened.get() + 1);
        let mut connection = h2::server::handshake(stream).await.unwrap();
        // One request for each connection: GOAWAY follows the answer.
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            respond.send_response(ok(0), true).unwrap();
            connection.graceful_shutdown();
        }
    };
    beside(serve, async |port| {
        let mut client = plain_client(port);
        for _ in 0..3 {
            assert_eq!(get(&mut client, "/").await.0.unwrap().status, 200);
            // The server's last word is under way when the answer is complete.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        let options = Options { keep_alive: false, ..http2(None) };
        let endpoints = Rc::from([Endpoint::new("127.0.0.1", port)]);
        let clock = Arc::new(CountingClock::default());
        let mut unkept = Client::new(endpoints, Rc::new(options), clock);
        for _ in 0..2 {
            assert_eq!(get(&mut unkept, "/").await.0.unwrap().status, 200);
        }
    });
    assert_eq!(opened.get(), 5);
}
