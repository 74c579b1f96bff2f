//! What the tests share: a clock, a sink that keeps everything, a client, a server that plays a
//! script.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_http::{
    Body, Client, Endpoint, Exchange, ExchangeError, Options, Request, ResponseHead, ResponseSink,
    TlsConfig, Transport,
};
use plimsoll_model::{Clock, Moment};

use super::TRANSPORT;

/// Counts up by one for every reading, so that moments show the order of events.
#[derive(Default)]
pub(crate) struct CountingClock(AtomicU64);

impl CountingClock {
    /// Lets time pass.
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns how often it was read.
    pub(crate) fn readings(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Keeps an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl ResponseSink for Kept {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert_eq!(self.status, 0, "one head for each answer");
        self.status = head.status;
        self.content_length = head.content_length;
        self.headers = head
            .headers
            .iter()
            .map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec()))
            .collect();
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // A test that hangs fails with a name instead of holding up the whole suite.
        tokio::time::timeout(Duration::from_secs(60), future).await.expect("the test ends in time")
    })
}

/// Runs `test` beside a server that serves each connection with `serve`; it is handed the port.
pub(crate) fn beside<S: Future<Output = ()>, F: Future<Output = ()>>(
    serve: impl Fn(tokio::net::TcpStream) -> S,
    test: impl FnOnce(u16) -> F,
) {
    block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut connections = futures::stream::FuturesUnordered::new();
        let mut test = std::pin::pin!(test(port));
        loop {
            tokio::select! {
                () = &mut test => return,
                accepted = listener.accept() => connections.push(serve(accepted.unwrap().0)),
                Some(()) = futures::StreamExt::next(&mut connections) => {}
            }
        }
    });
}

pub(crate) fn options(tls: Option<TlsConfig>) -> Options {
    let connect_timeout = Duration::from_secs(20);
    // Sockets where this machine has nothing else.
    let transport = TRANSPORT.direct(tls.is_some(), true).unwrap_or(Transport::Sockets);
    Options { connect_timeout, tls, transport, ..Options::default() }
}

pub(crate) fn client_of(host: &str, port: u16, options: Options) -> Client {
    client_with_clock(host, port, options, Arc::new(CountingClock::default()))
}

pub(crate) fn client_with_clock(
    host: &str,
    port: u16,
    options: Options,
    clock: Arc<CountingClock>,
) -> Client {
    let endpoints = Rc::from([Endpoint::new(host, port)]);
    Client::new(endpoints, Rc::new(options), clock)
}

pub(crate) fn client(address: SocketAddr) -> Client {
    client_of(&address.ip().to_string(), address.port(), options(None))
}

pub(crate) async fn get(
    client: &mut Client,
    path: &str,
) -> (Result<Exchange, ExchangeError>, Kept) {
    call(client, "GET", path, Body::Empty).await
}

pub(crate) async fn call(
    client: &mut Client,
    method: &str,
    path: &str,
    mut body: Body<'_>,
) -> (Result<Exchange, ExchangeError>, Kept) {
    let length = match &body {
        Body::Empty => 0,
        Body::Bytes(bytes) => bytes.len() as u64,
        Body::Source { len, .. } => *len,
    };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n");
    let mut kept = Kept::default();
    let (head, body) = (head.as_bytes(), body.reborrow());
    let request = Request { head, method_is_head: method == "HEAD", body };
    let result = client.exchange(0, request, &mut kept).await;
    (result, kept)
}

/// Starts a server thread that plays `script` on a listener of its own.
pub(crate) fn serve<T: Send + 'static>(
    script: impl FnOnce(TcpListener) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, std::thread::spawn(move || script(listener)))
}

pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().unwrap().0
}

/// Reads a request's head, byte by byte so that nothing of the body is taken.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Reads a request's head and answers with `bytes`.
pub(crate) fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    read_head(stream);
    stream.write_all(bytes).unwrap();
}
