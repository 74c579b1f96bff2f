//! Calls of gRPC against a server that answers as it is told.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use plimsoll_http::grpc::{GrpcChannel, GrpcError, status};
use plimsoll_http::{Endpoint, ExchangeErrorKind, Options};
use tokio::net::TcpStream;

use crate::support::beside;

const METHOD: &str = "/test.Service/Method";

/// A message as it stands on the wire.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn trailers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn begin(respond: &mut SendResponse<Bytes>) -> SendStream<Bytes> {
    let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    respond.send_response(head, false).unwrap()
}

/// Answers each call with what its message names.
fn answer(asked: &[u8], respond: &mut SendResponse<Bytes>) {
    let ok = trailers(&[("grpc-status", "0")]);
    let mut send = |bytes: &[u8], end: Option<HeaderMap>| {
        let mut stream = begin(respond);
        stream.send_data(Bytes::copy_from_slice(bytes), end.is_none()).unwrap();
        if let Some(end) = end {
            stream.send_trailers(end).unwrap();
        }
    };
    match asked {
        b"echo" => send(&framed(b"hello"), Some(ok)),
        b"empty" => send(&framed(b""), Some(ok)),
        b"nothing" => send(b"", Some(ok)),
        b"two" => send(&[framed(b"a"), framed(b"b")].concat(), Some(ok)),
        b"half" => send(&framed(b"hello")[..7], Some(ok)),
        b"compressed" => send(&[1, 0, 0, 0, 1, b'x'], Some(ok)),
        b"endless" => send(&[0, 0xff, 0xff, 0xff, 0xff, b'x'], Some(ok)),
        b"unsaid" => send(&framed(b"hello"), None),
        b"late" => {
            let late = [("grpc-status", "8"), ("grpc-message", "no%20room, caf%C3%A9")];
            send(&framed(b"hello"), Some(trailers(&late)));
        }
        b"at once" => {
            let head = Response::builder().header("grpc-status", "14").body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
        b"nonsense" => {
            let head = Response::builder().header("grpc-status", "x").body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
        b"no grpc" => {
            let head = Response::builder().status(404).body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
        other => panic!("nobody asks {other:?}"),
    }
}

/// Reads the first message of a call.
async fn first_message(body: &mut RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < 5 || bytes.len() < 5 + usize::from(bytes[4]) {
        let piece = body.data().await.unwrap().unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    bytes.split_off(5)
}

/// Serves the calls of one connection, while it goes on reading.
async fn serve_calls<F: Future<Output = ()>>(
    stream: TcpStream,
    serve: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F,
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = calls.next() => {}
            called = connection.accept() => match called {
                Some(Ok((request, respond))) => calls.push(serve(request, respond)),
                _ => return,
            },
        }
    }
}

fn message_of(error: GrpcError) -> (ExchangeErrorKind, String) {
    match error {
        GrpcError::Transport { kind, message } => (kind, message),
        GrpcError::Status { .. } => panic!("the server has said nothing: {error}"),
    }
}

#[test]
fn a_call_is_what_the_server_makes_of_it() {
    let serve = async |stream| {
        serve_calls(stream, async |request: Request<RecvStream>, mut respond| {
            assert_eq!(request.uri().path(), METHOD);
            assert_eq!(request.headers()["content-type"], "application/grpc");
            assert_eq!(request.headers()["te"], "trailers");
            let asked = first_message(&mut request.into_body()).await;
            answer(&asked, &mut respond);
        })
        .await;
    };
    beside(serve, async |port| {
        let endpoint = Endpoint::new("127.0.0.1", port);
        let channel = GrpcChannel::open(&endpoint, &Options::default()).await.unwrap();
        let call = async |asked: &'static str| channel.call(METHOD, asked.into()).await;
        assert_eq!(call("echo").await.unwrap(), "hello");
        assert_eq!(call("empty").await.unwrap(), "");
        for (asked, why) in [
            ("nothing", "success without a message"),
            ("two", "more than one message"),
            ("half", "half a message"),
            ("compressed", "a compressed message, which was not asked for"),
            ("endless", "a message of more than 4 MiB"),
            ("unsaid", "without a status"),
            ("no grpc", "HTTP status 404: it does not speak gRPC"),
        ] {
            let expected = format!("127.0.0.1:{port} answered {why}");
            let error = message_of(call(asked).await.unwrap_err());
            assert_eq!(error, (ExchangeErrorKind::Protocol, expected));
        }
        let status = |code, message: &str| GrpcError::Status { code, message: message.to_owned() };
        let late = status(status::RESOURCE_EXHAUSTED, "no room, café");
        assert_eq!(call("late").await, Err(late));
        assert_eq!(call("at once").await, Err(status(status::UNAVAILABLE, "")));
        assert_eq!(call("nonsense").await, Err(status(2, "")));
        // What one call came to is nothing to those after it.
        assert_eq!(call("echo").await.unwrap(), "hello");
        for _ in 0..2 {
            assert_eq!(channel.ping().await, Ok(()));
        }
        assert!(!channel.is_broken());
    });
}

#[test]
fn messages_go_both_ways_on_a_stream() {
    let serve = async |stream| {
        serve_calls(stream, async |request: Request<RecvStream>, mut respond| {
            let mut body = request.into_body();
            let mut stream = begin(&mut respond);
            for _ in 0..3 {
                let mut asked = first_message(&mut body).await;
                asked.reverse();
                stream.send_data(framed(&asked).into(), false).unwrap();
            }
            stream.send_trailers(trailers(&[("grpc-status", "0")])).unwrap();
        })
        .await;
    };
    beside(serve, async |port| {
        let endpoint = Endpoint::new("127.0.0.1", port);
        let channel = GrpcChannel::open(&endpoint, &Options::default()).await.unwrap();
        let mut stream = channel.open_stream(METHOD, "abc".into()).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "cba");
        for (asked, answered) in [("", ""), ("xyz", "zyx")] {
            stream.send(asked.into()).unwrap();
            assert_eq!(stream.next().await.unwrap().unwrap(), answered);
        }
        assert_eq!(stream.next().await, Ok(None));
    });
}

#[test]
fn a_connection_that_breaks_is_known_to_be_broken() {
    // Hangs up on the first call.
    let serve = async |stream| {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let called = connection.accept().await.unwrap().unwrap();
        drop(connection);
        drop(called);
    };
    beside(serve, async |port| {
        let endpoint = Endpoint::new("127.0.0.1", port);
        let channel = GrpcChannel::open(&endpoint, &Options::default()).await.unwrap();
        let (kind, message) = message_of(channel.call(METHOD, "x".into()).await.unwrap_err());
        assert_eq!(kind, ExchangeErrorKind::Reset, "{message}");
        assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
        while !channel.is_broken() {
            tokio::task::yield_now().await;
        }
        let (kind, _) = message_of(channel.call(METHOD, "x".into()).await.unwrap_err());
        assert_eq!(kind, ExchangeErrorKind::Reset);
    });
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    beside(
        async |_| {},
        async |_| {
            let endpoint = Endpoint::new("127.0.0.1", closed);
            let opened = GrpcChannel::open(&endpoint, &Options::default()).await;
            let (kind, message) = message_of(opened.unwrap_err());
            assert_eq!(kind, ExchangeErrorKind::Connect);
            assert!(message.contains(&format!("127.0.0.1:{closed}")), "{message}");
        },
    );
}
