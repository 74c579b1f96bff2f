//! One exchange: the request goes to the service, and what it leaves unread of the body is read to
//! nowhere.
//!
//! hyper closes a connection over an unread body; the kernel then resets it, and a refusal of a
//! large upload would be lost on its way.
//!
//! The keys of a fan-out travel beside the request, for s3s does not know their field of the form.

mod form;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use s3s::service::S3Service;
use s3s::{Body, HttpError};

use self::form::Opening;
use crate::backend::FanoutAnswer;
use crate::misbehave::{BoxError, Serving};

/// The code of an answer that sheds load.
const SLOW_DOWN_CODE: &str = "SlowDown";

/// The most of a form that s3s is handed at once: where a piece ends like the boundary begins, it
/// refuses (`failed to read file stream`) a next one with which they are above 64 KiB.
const FORM_FRAME_BYTES_MAX: usize = 32 << 10;
/// How long a document in XML may be: as s3s has it.
const DOCUMENT_BYTES_MAX: u64 = 20 << 20;

/// Queries with which a request carries such a document.
const DOCUMENTS: [&str; 9] = [
    "acl",
    "cors",
    "delete",
    "legal-hold",
    "lifecycle",
    "object-lock",
    "retention",
    "tagging",
    "versioning",
];

/// A body that two hold: the service, and who reads what it leaves.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<BegunBody>>);

/// A body of which some was read already.
struct BegunBody {
    begin: Bytes,
    rest: Incoming,
    /// The most that is handed on at once.
    frame_bytes_max: usize,
    /// Whether anybody asked for more of it, by which a client that waits is told to send it.
    is_asked_for: bool,
}

impl Serving for S3Service {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        answer(self.clone(), request).await.map_err(BoxError::from)
    }

    fn error(status: StatusCode, code: &str) -> Response<String> {
        let mut response = error(status, code, "the script of this oracle says so");
        if code == SLOW_DOWN_CODE {
            // As S3 has it: the one thing that tells it from other 503s in an answer to HEAD.
            response.extensions_mut().insert(ReasonPhrase::from_static(b"Slow Down"));
        }
        response
    }
}

/// Returns a refusal as S3 writes it.
fn error(status: StatusCode, code: &str, message: &str) -> Response<String> {
    let mut response = Response::new(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>{message}</Message></Error>"
    ));
    *response.status_mut() = status;
    let xml = HeaderValue::from_static("application/xml");
    response.headers_mut().insert(CONTENT_TYPE, xml);
    response
}

/// Answers one request. Every refusal has a message.
pub(crate) async fn answer(
    service: S3Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, HttpError> {
    let mut answer = exchange(service, request).await?;
    if answer.status().is_client_error() || answer.status().is_server_error() {
        let text = answer.body().bytes().and_then(|bytes| with_message(&bytes));
        if let Some(text) = text {
            answer.headers_mut().remove(CONTENT_LENGTH);
            *answer.body_mut() = Body::from(text);
        }
    }
    Ok(answer)
}

/// Returns a refusal that has a code and no message with one; `None` where nothing is missing.
fn with_message(refusal: &[u8]) -> Option<String> {
    let text = str::from_utf8(refusal).ok()?;
    let (before, rest) = text.split_once("<Code>")?;
    let (code, rest) = rest.split_once("</Code>")?;
    if rest.contains("<Message>") {
        return None;
    }
    let why = match code {
        "InvalidBucketName" => {
            "a bucket name has 3 to 63 small letters, digits, dots and hyphens, begins and ends \
             with a letter or digit, and is no IP address"
        }
        "InvalidURI" => "the path or the query cannot be decoded",
        "KeyTooLongError" => "a key has 1 to 1024 bytes",
        "InvalidRange" => "the range lies beyond the end of the object",
        "EntityTooLarge" => "the content is larger than this store takes at once",
        "SignatureDoesNotMatch" => "the signature is not that of the request and the secret key",
        "NotImplemented" => "this store does not offer what is asked",
        "MethodNotAllowed" => "the method is not allowed for what is addressed",
        "AccessDenied" => "the request has no signature that gives access",
        _ => "the request cannot be served as it was made",
    };
    Some(format!("{before}<Code>{code}</Code><Message>{why}</Message>{rest}"))
}

async fn exchange(
    service: S3Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, HttpError> {
    if request.body().is_end_stream() {
        return service.call(request.map(Body::from)).await;
    }
    // Who waits for `100 Continue` sends nothing before it, and reading the body would ask for it.
    let waits = request.headers().contains_key(EXPECT);
    let (mut head, mut rest) = request.into_parts();
    let (mut begin, mut frame_bytes_max) = (Bytes::new(), usize::MAX);
    if form::is_one(&head) {
        frame_bytes_max = FORM_FRAME_BYTES_MAX;
        let opening = Opening::read(&mut rest).await;
        begin = opening.bytes;
        if let Some(keys) = opening.fanout {
            head.extensions.insert(keys);
        }
    }
    let is_asked_for = !begin.is_empty();
    let body = BegunBody { begin, rest, frame_bytes_max, is_asked_for };
    let body = SharedBody(Arc::new(Mutex::new(body)));
    let mut answer = if is_document_too_long(&head) {
        let message = "a document is at most 20 MiB long";
        let refused = error(StatusCode::BAD_REQUEST, "MaxMessageLengthExceeded", message);
        Ok(refused.map(Body::from))
    } else {
        let request = Request::from_parts(head, Body::http_body(body.clone()));
        service.call(request).await
    };
    if let Ok(answer) = &mut answer
        && let Some(FanoutAnswer(lines)) = answer.extensions_mut().remove()
    {
        *answer.status_mut() = StatusCode::OK;
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
        *answer.body_mut() = Body::from(lines);
    }
    if waits && !body.lock().is_asked_for {
        // What comes next on this connection would be taken for the body that was never sent.
        if let Ok(answer) = &mut answer {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    } else {
        let mut rest = Body::http_body(body);
        while let Some(Ok(_)) = rest.next().await {}
    }
    answer
}

/// Tells whether a request announces more XML than s3s takes, which answers that by a 500, as if
/// the fault was here.
fn is_document_too_long(head: &Parts) -> bool {
    let mut fields = head.uri.query().unwrap_or_default().split('&');
    let is_document = fields.any(|field| {
        let name = field.split_once('=').map_or(field, |(name, _)| name);
        DOCUMENTS.contains(&name) || (head.method == Method::POST && name == "uploadId")
    });
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length: Option<u64> = length.and_then(|length| length.parse().ok());
    is_document && length.is_some_and(|length| length > DOCUMENT_BYTES_MAX)
}

impl SharedBody {
    fn lock(&self) -> MutexGuard<'_, BegunBody> {
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
        let mut body = self.lock();
        body.is_asked_for = true;
        if body.begin.is_empty() {
            let polled = Pin::new(&mut body.rest).poll_frame(cx);
            match polled.map_ok(Frame::into_data) {
                Poll::Ready(Some(Ok(Ok(data)))) => body.begin = data,
                Poll::Ready(Some(Ok(Err(other)))) => return Poll::Ready(Some(Ok(other))),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        let len = body.begin.len().min(body.frame_bytes_max);
        Poll::Ready(Some(Ok(Frame::data(body.begin.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        let body = self.lock();
        body.begin.is_empty() && body.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.lock();
        let (begin, mut hint) = (body.begin.len() as u64, body.rest.size_hint());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + begin);
        }
        hint.set_lower(hint.lower() + begin);
        hint
    }
}
