//! The page that Prometheus reads.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_foreign::prometheus::Exposition;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::prometheus::{self, Buckets};
use crate::snapshot::Board;

/// Where the page is.
pub(super) const PATH: &str = "/metrics";
/// What follows it, behind `?`, for who wants to have latencies told apart finely.
const FINE: &str = "buckets=fine";
/// Readers at one time; when there is one more, the one that has been here longest goes.
const READERS_MAX: usize = 16;
/// How long a reader may take.
const READ_MAX: Duration = Duration::from_secs(10);
/// The pause after a failed accept, most likely for want of file descriptors. The page is served
/// beside the workers, and a loop without a pause would take a core from them.
const REST: Duration = Duration::from_millis(100);

/// Serves the page to whoever asks, until dropped.
pub(super) async fn serve(listener: TcpListener, board: Arc<Board>) {
    let mut readers = JoinSet::new();
    // In the order in which they came.
    let mut here: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            (socket, _) = accepted(|| listener.accept()) => {
                // Who asks is answered at once; who has only begun to ask keeps nobody waiting.
                here.retain(|reader| !reader.is_finished());
                if here.len() == READERS_MAX && let Some(longest) = here.pop_front() {
                    longest.abort();
                }
                here.push_back(readers.spawn(answer(socket, Arc::clone(&board))));
            }
            Some(_) = readers.join_next() => {}
        }
    }
}

/// Waits for the next reader.
async fn accepted<T, F: Future<Output = io::Result<T>>>(accept: impl Fn() -> F) -> T {
    loop {
        if let Ok(accepted) = accept().await {
            return accepted;
        }
        let _ = timeout(REST, pending::<()>()).await;
    }
}

async fn answer(socket: TcpStream, board: Arc<Board>) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(&request, &board);
        async { Ok::<_, Infallible>(response) }
    });
    let connection =
        http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(socket), service);
    // A reader that goes away or is too slow gets nothing, and nobody is told.
    let _ = timeout(READ_MAX, connection).await;
}

fn respond(request: &Request<Incoming>, board: &Board) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = Response::new(Full::default());
    let mut content_type = "text/plain; charset=utf-8";
    if !is_read {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    } else if request.uri().path() == PATH {
        let exposition = wanted(request.headers());
        let is_fine =
            request.uri().query().is_some_and(|query| query.split('&').any(|of| of == FINE));
        let buckets = if is_fine { Buckets::Fine } else { Buckets::Coarse };
        content_type = exposition.content_type();
        let text = prometheus::text(board, &board.snapshot(), exposition, buckets);
        *response.body_mut() = text.into();
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = "the counters of this run are at /metrics\n".into();
    }
    let value = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

/// Returns the format that a reader wants: OpenMetrics, if it names it at all, since who knows it
/// prefers it.
fn wanted(headers: &HeaderMap) -> Exposition {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    match accepted.any(|value| value.contains("application/openmetrics-text")) {
        true => Exposition::OpenMetrics,
        false => Exposition::Text,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_accept_is_tried_again_after_a_pause() {
        let tries = Cell::new(0_u32);
        let accept = || {
            tries.set(tries.get() + 1);
            let number = tries.get();
            let failed = || io::Error::other("no descriptor");
            async move { if number <= 4 { Err(failed()) } else { Ok(number) } }
        };
        assert!(timeout(REST * 5 / 2, accepted(accept)).await.is_err());
        assert_eq!(tries.get(), 3, "one try, and one after each rest");
        assert_eq!(accepted(accept).await, 5);
    }
}
