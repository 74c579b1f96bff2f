//! One exchange: the request goes to the service, and what it leaves unread of the body is read to
//! nowhere.
//!
//! hyper closes a connection over an unread body; the kernel then resets it, and a refusal of a
//! large upload would be lost on its way.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{Request, Response};
use s3s::service::S3Service;
use s3s::{Body, HttpError};

/// A body that two hold: the service, and who reads what it leaves.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Incoming>>);

/// Answers one request.
pub(crate) async fn answer(
    service: S3Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, HttpError> {
    if request.body().is_end_stream() {
        return service.call(request.map(Body::from)).await;
    }
    // Who waits for `100 Continue` sends nothing before it, and reading the body would ask for it.
    let waits = request.headers().contains_key(EXPECT);
    let (head, body) = request.into_parts();
    let body = SharedBody(Arc::new(Mutex::new(body)));
    let request = Request::from_parts(head, Body::http_body(body.clone()));
    let answer = service.call(request).await;
    if !waits {
        let mut rest = Body::http_body(body);
        while let Some(Ok(_)) = rest.next().await {}
    }
    answer
}

impl SharedBody {
    fn lock(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().expect("nobody panics while polling a body")
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}
