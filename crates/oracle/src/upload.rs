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
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::{Request, Response, StatusCode};
use s3s::service::S3Service;
use s3s::{Body, HttpError};

use crate::misbehave::{BoxError, Serving};

/// The code of an answer that sheds load.
const SLOW_DOWN_CODE: &str = "SlowDown";

/// A body that two hold: the service, and who reads what it leaves.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Incoming>>);

impl Serving for S3Service {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        answer(self.clone(), request).await.map_err(BoxError::from)
    }

    fn error(status: StatusCode, code: &str) -> Response<String> {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>the script of this oracle says so</Message></Error>"
        );
        let mut response = Response::new(text);
        *response.status_mut() = status;
        if code == SLOW_DOWN_CODE {
            // As S3 has it: the one thing that tells it from other 503s in an answer to HEAD.
            response.extensions_mut().insert(ReasonPhrase::from_static(b"Slow Down"));
        }
        let xml = HeaderValue::from_static("application/xml");
        response.headers_mut().insert(CONTENT_TYPE, xml);
        response
    }
}

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
