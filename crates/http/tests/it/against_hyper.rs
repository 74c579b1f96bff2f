//! A hyper server answers in many shapes; we must read what hyper's own client reads.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_http::{Body, Client};
use tokio::net::TcpStream;

use super::support::{Kept, beside, call, client_of, options};

type AnyBody = BoxBody<Bytes, Infallible>;

/// What the server answers to, each a shape of its own.
pub(crate) const SHAPES: [(&str, &str); 14] = [
    ("GET", "/length/0"),
    ("GET", "/length/5"),
    ("GET", "/length/1024"),
    ("GET", "/length/5000000"),
    ("HEAD", "/length/1024"),
    ("HEAD", "/chunked/1000"),
    ("GET", "/chunked/0"),
    ("GET", "/chunked/1000"),
    ("GET", "/chunked/3000000"),
    ("GET", "/trailers/1000"),
    ("DELETE", "/no-content"),
    ("GET", "/not-modified"),
    ("GET", "/close/70000"),
    ("GET", "/missing"),
];

pub(crate) fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 / 7) as u8).collect()
}

/// A body without a known length, in frames of odd sizes.
fn frames(size: usize, trailers: bool) -> AnyBody {
    let content = Bytes::from(content(size));
    let mut frames: Vec<Result<Frame<Bytes>, Infallible>> = Vec::new();
    let (mut at, mut step) = (0, 1);
    while at < size {
        let end = (at + step).min(size);
        frames.push(Ok(Frame::data(content.slice(at..end))));
        (at, step) = (end, step * 3 % 100_003 + 1);
    }
    if trailers {
        let fields =
            HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("7"))]);
        frames.push(Ok(Frame::trailers(fields)));
    }
    BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)))
}

async fn answer(request: Request<hyper::body::Incoming>) -> Result<Response<AnyBody>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut parts = path.split('/').skip(1);
    let shape = parts.next().unwrap_or_default();
    let size = parts.next().map_or(0, |size| size.parse().unwrap());
    let builder = Response::builder().header("X-Shape", shape);
    let full = |size| Full::new(Bytes::from(content(size))).boxed();
    Ok(match shape {
        "length" => builder.body(full(size)),
        "chunked" => builder.body(frames(size, false)),
        "trailers" => builder.header("Trailer", "x-sum").body(frames(size, true)),
        "close" => builder.header("Connection", "close").body(full(size)),
        // Not before the request has come whole.
        "after" => {
            let taken = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(taken.len(), size);
            builder.body(full(size))
        }
        "no-content" => builder.status(204).body(Empty::new().boxed()),
        "not-modified" => builder.status(304).body(Empty::new().boxed()),
        "echo" => builder.body(request.into_body().map_err(|error| panic!("{error}")).boxed()),
        _ => builder.status(404).body(full(9)),
    }
    .unwrap())
}

/// Serves one connection with hyper.
pub(crate) async fn serve_hyper<T>(stream: T)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let server = hyper::server::conn::http1::Builder::new();
    // A client that goes away ends its connection with an error; that is its right.
    let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

/// Answers without a body where HEAD asks; with HTTP/2, hyper does not see to that.
async fn answer_two(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<AnyBody>, Infallible> {
    let method_is_head = request.method() == hyper::Method::HEAD;
    let mut response = answer(request).await?;
    if method_is_head {
        let length = hyper::body::Body::size_hint(response.body()).exact();
        *response.body_mut() = Empty::new().boxed();
        if let Some(length) = length {
            response.headers_mut().insert("content-length", length.into());
        }
    }
    Ok(response)
}

/// Serves one connection of HTTP/2 with hyper.
pub(crate) async fn serve_hyper_two<T>(stream: T)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer_two)).await;
}

/// What hyper's own client reads.
async fn ask_hyper(port: u16, method: &str, path: &str) -> Kept {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let request = Request::builder().method(method).uri(path).header("Host", "test");
    let exchange = async move {
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await;
        let (head, body) = response.unwrap().into_parts();
        let field = |(name, value): (&hyper::header::HeaderName, &HeaderValue)| {
            (name.to_string(), value.as_bytes().to_vec())
        };
        let length = head.headers.get("content-length");
        Kept {
            status: head.status.as_u16(),
            content_length: length.map(|length| length.to_str().unwrap().parse().unwrap()),
            headers: head.headers.iter().map(field).collect(),
            body: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    };
    tokio::join!(exchange, connection).0
}

/// Leaves out what changes from answer to answer, and the order of fields.
pub(crate) fn comparable(mut kept: Kept) -> Kept {
    kept.headers.retain(|(name, _)| name != "date");
    kept.headers.sort();
    kept
}

#[test]
fn we_read_what_hyper_reads() {
    beside(serve_hyper, |port| async move {
        // One client for all, so that every shape but `close` leaves a connection that the next one
        // can use.
        let mut client = client_of("127.0.0.1", port, options(None));
        for (method, path) in SHAPES {
            let (result, ours) = call(&mut client, method, path, Body::Empty).await;
            let exchange = result.unwrap();
            assert_eq!(
                (exchange.status, exchange.body_bytes),
                (ours.status, ours.body.len() as u64)
            );
            assert_eq!(exchange.first_body_byte.is_some(), !ours.body.is_empty());
            assert!(exchange.first_byte <= exchange.end);
            let theirs = ask_hyper(port, method, path).await;
            assert_eq!(comparable(ours), comparable(theirs), "{method} {path}");
        }
    });
}

#[test]
fn what_we_send_comes_back() {
    beside(serve_hyper, |port| async move {
        let mut client = client_of("127.0.0.1", port, options(None));
        for size in [0, 1, 100_000, 5_000_000] {
            check_echo(&mut client, size).await;
        }
    });
}

/// Sends a body that the server sends back while it comes in, so that both directions run at once.
pub(crate) async fn check_echo(client: &mut Client, size: usize) {
    let sent = content(size);
    let mut fill = |offset: u64, buffer: &mut [u8]| {
        buffer.copy_from_slice(&sent[offset as usize..][..buffer.len()]);
    };
    for body in [Body::Bytes(&sent), Body::Source { len: size as u64, fill: &mut fill }] {
        let (result, kept) = call(client, "PUT", "/echo", body).await;
        let exchange = result.unwrap();
        assert_eq!((exchange.status, kept.status), (200, 200));
        assert!(kept.body == sent, "{size} bytes came back changed");
        assert_eq!(exchange.last_byte_sent.is_some(), size > 0);
    }
}
