//! A server that misbehaves: what is reported, and that the client stays usable.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use plimsoll_http::{
    Body, ExchangeErrorKind as Kind, Options, Request, ResponseHead, ResponseSink, TlsConfig,
    TlsOptions,
};

use super::support::{
    CountingClock, accept, answer, block_on, call, client, client_of, client_with_clock, get,
    options, read_head, serve,
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers one request with `bytes`, closes, then answers the next connection well; returns the
/// failure of the first.
fn check(bytes: &'static [u8], kind: Kind, message: &str, body_bytes: u64) {
    let (address, server) = serve(move |listener| {
        answer(&mut accept(&listener), bytes);
        answer(&mut accept(&listener), OK);
    });
    block_on(async {
        let mut client = client(address);
        let error = get(&mut client, "/").await.0.unwrap_err();
        assert_eq!((error.kind, error.body_bytes), (kind, body_bytes), "{}", error.message);
        assert_eq!(error.message, message.replace("ADDRESS", &address.to_string()));
        assert_eq!(error.first_byte.is_some(), !bytes.is_empty());
        assert!(error.first_byte.is_none_or(|first_byte| first_byte <= error.end));
        let (result, kept) = get(&mut client, "/").await;
        assert_eq!((result.unwrap().status, kept.body), (200, b"ok".to_vec()));
    });
    server.join().unwrap();
}

#[test]
fn a_connection_closed_without_an_answer_is_a_reset() {
    check(b"", Kind::Reset, "ADDRESS closed the connection without an answer", 0);
}

#[test]
fn a_connection_closed_inside_the_head_is_a_reset() {
    let message = "ADDRESS closed the connection inside the answer's head";
    check(b"HTTP/1.1 200 OK\r\nContent-", Kind::Reset, message, 0);
}

#[test]
fn half_a_body_is_truncated() {
    let message = "ADDRESS closed the connection inside the answer's body after 4 of 10 bytes";
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour", Kind::Truncated, message, 4);
    let message = "ADDRESS closed the connection inside the answer's body after 4 bytes";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nfour";
    check(chunked, Kind::Truncated, message, 4);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n";
    check(chunked, Kind::Truncated, message, 4);
}

#[test]
fn an_answer_that_is_no_http_is_a_protocol_error() {
    let message = "ADDRESS sent an answer that is not valid HTTP/1.1: \
                   its head cannot be parsed (invalid HTTP version)";
    check(b"SSH-2.0-OpenSSH_9.2p1\r\n", Kind::Protocol, message, 0);
    let message = "ADDRESS sent an answer that is not valid HTTP/1.1: \
                   it has both Content-Length and Transfer-Encoding";
    let both = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1";
    check(both, Kind::Protocol, message, 0);
    let message =
        "ADDRESS sent an answer that is not valid HTTP/1.1: a chunk is longer than its size says";
    let long = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc";
    check(long, Kind::Protocol, message, 1);
}

#[test]
fn plain_http_on_a_tls_port_is_recognised() {
    let message = "ADDRESS speaks TLS, but plain HTTP was sent; use `tls`";
    // The alert of a TLS library (fatal, unexpected message), and what Go and nginx answer.
    check(b"\x15\x03\x01\x00\x02\x02\x0a", Kind::Tls, message, 0);
    let go = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    check(go, Kind::Tls, message, 48);
    let nginx = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 53\r\n\r\n\
        <h1>The plain HTTP request was sent to HTTPS port</h1>";
    check(nginx, Kind::Tls, message, 53);
}

#[test]
fn a_reset_connection_says_so() {
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        stream.read_exact(&mut [0; 4]).unwrap();
        // Closing with unread bytes makes the kernel send a reset.
    });
    block_on(async {
        let error = get(&mut client(address), "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Reset);
        let expected =
            format!("{address} closed the connection without an answer: connection reset");
        assert!(error.message.starts_with(&expected), "{}", error.message);
    });
    server.join().unwrap();
}

#[test]
fn nothing_listening_is_refused() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    block_on(async {
        let error = get(&mut client(address), "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Connect);
        assert!(error.kind.is_connect());
        assert_eq!(error.message, format!("connection refused by {address}"));
    });
}

#[test]
fn an_unknown_host_is_named() {
    block_on(async {
        let mut client = client_of("nope.invalid", 9000, options(None));
        let error = get(&mut client, "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Resolve);
        let start = "cannot resolve host `nope.invalid`: ";
        assert!(error.message.starts_with(start), "{}", error.message);
    });
}

#[test]
fn every_address_of_a_name_is_tried() {
    // The server listens on IPv4 only; `localhost` may resolve to ::1 first.
    let (address, server) = serve(|listener| answer(&mut accept(&listener), OK));
    block_on(async {
        let mut client = client_of("localhost", address.port(), options(None));
        assert_eq!(get(&mut client, "/").await.0.unwrap().status, 200);
    });
    server.join().unwrap();
}

#[test]
fn a_silent_tls_port_is_given_up_in_time() {
    let tls = TlsConfig::load(&TlsOptions { insecure: true, ..TlsOptions::default() }).unwrap();
    let (finished, wait) = mpsc::channel::<()>();
    let (address, server) = serve(move |listener| {
        let stream = accept(&listener);
        let _ = wait.recv();
        drop(stream);
    });
    block_on(async {
        let connect_timeout = Duration::from_millis(50);
        let options = Options { connect_timeout, ..options(Some(tls)) };
        let mut client = client_of("127.0.0.1", address.port(), options);
        let error = get(&mut client, "/").await.0.unwrap_err();
        assert_eq!(error.kind, Kind::ConnectTimeout);
        let expected =
            format!("no TLS handshake with {address} within 50ms; does that port speak TLS?");
        assert_eq!(error.message, expected);
    });
    drop(finished);
    server.join().unwrap();
}

#[test]
fn a_kept_connection_is_used_again() {
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        for _ in 0..3 {
            answer(&mut stream, OK);
        }
    });
    block_on(async {
        let mut client = client(address);
        for _ in 0..3 {
            assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        }
    });
    server.join().unwrap();
}

#[test]
fn without_keep_alive_every_exchange_has_its_own_connection() {
    let (address, server) = serve(|listener| {
        for _ in 0..3 {
            let mut stream = accept(&listener);
            answer(&mut stream, OK);
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the client closes");
        }
    });
    block_on(async {
        let mut client =
            client_of("127.0.0.1", address.port(), Options { keep_alive: false, ..options(None) });
        for _ in 0..3 {
            assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        }
    });
    server.join().unwrap();
}

/// Has the first connection answer and then do `afterwards`; the second exchange must take a new
/// connection.
fn check_stale(first: &'static [u8], afterwards: &'static [u8], closes: bool) {
    let (said, hear) = tokio::sync::oneshot::channel();
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, first);
        stream.write_all(afterwards).unwrap();
        if closes {
            stream.shutdown(Shutdown::Both).unwrap();
        }
        said.send(()).unwrap();
        answer(&mut accept(&listener), OK);
        drop(stream);
    });
    block_on(async {
        let mut client = client(address);
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        hear.await.unwrap();
        // Lets the runtime look at its sockets, as it does whenever it waits for anything.
        tokio::task::yield_now().await;
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
    });
    server.join().unwrap();
}

#[test]
fn a_kept_connection_that_went_stale_is_replaced_before_sending() {
    check_stale(OK, b"", true);
    check_stale(OK, b"HTTP/1.1 408 Request Timeout\r\n\r\n", false);
    check_stale(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokSURPLUS", b"", false);
    check_stale(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", b"", false);
}

#[test]
fn a_connection_that_was_closed_while_the_thread_did_other_things_is_replaced() {
    let (close, asked_to_close) = mpsc::channel();
    let (said, hear) = mpsc::channel();
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, OK);
        asked_to_close.recv().unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
        said.send(()).unwrap();
        answer(&mut accept(&listener), OK);
    });
    let clock = Arc::new(CountingClock::default());
    let host = address.ip().to_string();
    block_on(async {
        let mut client =
            client_with_clock(&host, address.port(), options(None), Arc::clone(&clock));
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        // Blocks the thread, so that the runtime sees nothing of the close.
        close.send(()).unwrap();
        hear.recv().unwrap();
        clock.advance(Duration::from_secs(300));
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
    });
    server.join().unwrap();
}

#[test]
fn a_connection_closed_on_a_second_request_is_no_hidden_retry() {
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, OK);
        read_head(&mut stream);
        drop(stream);
        listener.set_nonblocking(true).unwrap();
        listener
    });
    block_on(async {
        let mut client = client(address);
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        assert_eq!(get(&mut client, "/").await.0.unwrap_err().kind, Kind::Reset);
    });
    let listener = server.join().unwrap();
    assert!(listener.accept().is_err(), "nobody connected again");
}

#[test]
fn a_dropped_exchange_leaves_the_client_usable() {
    let (address, server) = serve(|listener| {
        let mut first = accept(&listener);
        answer(&mut first, OK);
        answer(&mut first, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "the client gave this connection up");
        answer(&mut accept(&listener), OK);
    });
    block_on(async {
        let mut client = client(address);
        assert_eq!(get(&mut client, "/").await.0.unwrap().body_bytes, 2);
        let given_up = tokio::time::timeout(Duration::from_millis(20), get(&mut client, "/"));
        assert!(given_up.await.is_err());
        let (result, kept) = get(&mut client, "/").await;
        assert_eq!((result.unwrap().status, kept.body), (200, b"ok".to_vec()));
    });
    server.join().unwrap();
}

#[test]
fn interim_answers_are_passed_over_and_do_not_count_as_first_byte() {
    let (said, hear) = mpsc::channel();
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n");
        hear.recv().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    block_on(async {
        let clock = Arc::new(CountingClock::default());
        let mut client =
            client_with_clock("127.0.0.1", address.port(), options(None), clock.clone());
        let mut exchange = std::pin::pin!(get(&mut client, "/"));
        // The clock is read when bytes come in: those of the interim answer.
        while clock.readings() == 0 {
            tokio::select! {
                biased;
                _ = &mut exchange => panic!("the final answer is not there yet"),
                () = tokio::task::yield_now() => {}
            }
        }
        said.send(()).unwrap();
        let exchange = exchange.await.0.unwrap();
        assert_eq!(exchange.status, 200);
        assert_eq!(exchange.first_byte, exchange.end, "both come with the final answer");
        assert_eq!(exchange.first_body_byte, None);
    });
    server.join().unwrap();
}

/// Tells the server of every piece of the answer; after the last one it no longer listens.
struct Telling(mpsc::Sender<()>);

impl ResponseSink for Telling {
    fn head(&mut self, _head: &ResponseHead<'_>) {
        let _ = self.0.send(());
    }

    fn body(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), 3);
        let _ = self.0.send(());
    }
}

#[test]
fn first_byte_first_body_byte_and_end_are_told_apart() {
    let (said, hear) = mpsc::channel();
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        answer(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
        hear.recv().unwrap();
        stream.write_all(b"abc").unwrap();
        hear.recv().unwrap();
        stream.write_all(b"def").unwrap();
    });
    block_on(async {
        let head = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
        let request = Request { head, method_is_head: false, body: Body::Empty };
        let mut sink = Telling(said);
        let exchange = client(address).exchange(0, request, &mut sink).await.unwrap();
        let first_body_byte = exchange.first_body_byte.unwrap();
        assert!(exchange.first_byte < first_body_byte && first_body_byte < exchange.end);
        assert_eq!(exchange.body_bytes, 6);
    });
    server.join().unwrap();
}

const LARGE: usize = 32 << 20;

/// Has the server answer after `read_first` bytes of a large body, and close if asked to.
fn check_early_answer(read_first: usize, closes: bool) {
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        read_head(&mut stream);
        stream.read_exact(&mut vec![0; read_first]).unwrap();
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\ndenied").unwrap();
        if closes {
            drop(stream);
        } else {
            // The client stops sending and closes, since the answer is complete.
            assert!(std::io::copy(&mut stream, &mut std::io::sink()).unwrap() < LARGE as u64);
        }
        answer(&mut accept(&listener), OK);
    });
    block_on(async {
        let mut client = client(address);
        let mut fill = |_: u64, buffer: &mut [u8]| buffer.fill(7);
        let body = Body::Source { len: LARGE as u64, fill: &mut fill };
        let (result, kept) = call(&mut client, "PUT", "/", body).await;
        let exchange = result.unwrap();
        assert_eq!((exchange.status, kept.body), (403, b"denied".to_vec()));
        assert_eq!(exchange.last_byte_sent, None, "the body was not sent to its end");
        assert!(exchange.is_early);
        let next = get(&mut client, "/").await.0.unwrap();
        assert_eq!((next.status, next.is_early), (200, false));
    });
    server.join().unwrap();
}

#[test]
fn an_answer_before_the_body_is_sent_is_reported() {
    check_early_answer(0, false);
    check_early_answer(1 << 20, false);
    check_early_answer(0, true);
    check_early_answer(1 << 20, true);
}

#[test]
fn a_server_that_closes_while_the_body_is_sent_is_a_reset() {
    let (address, server) = serve(|listener| {
        let mut stream = accept(&listener);
        read_head(&mut stream);
    });
    block_on(async {
        let body = vec![7; LARGE];
        let (result, _) = call(&mut client(address), "PUT", "/", Body::Bytes(&body)).await;
        let error = result.unwrap_err();
        assert_eq!((error.kind, error.last_byte_sent), (Kind::Reset, None));
        let start = format!("{address} closed the connection while the request was sent");
        assert!(error.message.starts_with(&start), "{}", error.message);
    });
    server.join().unwrap();
}

#[test]
fn a_body_arrives_whole_from_bytes_and_from_a_source() {
    let sizes = [0, 1, 1000, 256 << 10, (256 << 10) + 1, 3_000_000];
    let (address, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        let mut bodies = Vec::new();
        for size in sizes.into_iter().flat_map(|size| [size, size]) {
            read_head(&mut stream);
            let mut body = vec![0; size];
            stream.read_exact(&mut body).unwrap();
            stream.write_all(OK).unwrap();
            bodies.push(body);
        }
        bodies
    });
    let content = |offset: u64| (offset * 7 / 3) as u8;
    block_on(async {
        let mut client = client(address);
        for size in sizes {
            let bytes: Vec<u8> = (0..size as u64).map(content).collect();
            let (result, _) = call(&mut client, "PUT", "/", Body::Bytes(&bytes)).await;
            assert_eq!(result.unwrap().last_byte_sent.is_some(), size > 0);
            let mut next = 0;
            let mut fill = |offset: u64, buffer: &mut [u8]| {
                assert_eq!(offset, next, "pieces come in order");
                next += buffer.len() as u64;
                buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = content(at));
            };
            let body = Body::Source { len: size as u64, fill: &mut fill };
            let exchange = call(&mut client, "PUT", "/", body).await.0.unwrap();
            assert!(exchange.last_byte_sent.is_none_or(|sent| sent < exchange.end));
            assert_eq!(exchange.last_byte_sent.is_some(), size > 0);
            assert_eq!(next, size as u64);
        }
    });
    for (index, body) in server.join().unwrap().iter().enumerate() {
        assert_eq!(body.len(), sizes[index / 2]);
        assert!(body.iter().zip(0..).all(|(byte, at)| *byte == content(at)), "body {index}");
    }
}
