//! What failed calls and error answers mean.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_http::ExchangeError;
use plimsoll_http::grpc::{GrpcError, status};
use plimsoll_model::ErrorClass;

/// What a master says while it makes volumes.
const GROWING: &str = "volume growth in progress";

/// Returns the meaning of an exchange that came to no whole answer.
pub(crate) fn of_exchange(error: &ExchangeError) -> DriverError {
    DriverError::new(error.kind.class(), one_line(&error.message))
}

/// Returns the meaning of a call of gRPC that failed.
pub(crate) fn of_call(error: &GrpcError) -> DriverError {
    match error {
        GrpcError::Transport { kind, message } => DriverError::new(kind.class(), one_line(message)),
        GrpcError::Status { code, message } => {
            let class = match *code {
                status::DEADLINE_EXCEEDED => ErrorClass::Timeout,
                status::NOT_FOUND => ErrorClass::NotFound,
                status::RESOURCE_EXHAUSTED => ErrorClass::Throttled,
                status::UNIMPLEMENTED => ErrorClass::Client,
                _ => ErrorClass::Server,
            };
            DriverError::new(class_of_words(message, class), one_line(message))
        }
    }
}

/// Returns the meaning of words that a master sent instead of a file id.
pub(crate) fn of_words(words: &str) -> DriverError {
    DriverError::new(class_of_words(words, ErrorClass::Server), one_line(words))
}

fn class_of_words(words: &str, otherwise: ErrorClass) -> ErrorClass {
    if words.contains(GROWING) { ErrorClass::Throttled } else { otherwise }
}

/// Returns the meaning of an answer whose status is not one of success. `body` holds
/// `{"error": "..."}`, or nothing.
pub(crate) fn of_answer(status: u16, body: &[u8]) -> DriverError {
    #[derive(serde::Deserialize)]
    struct Refusal {
        error: String,
    }

    let said = serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error);
    let words = said.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    let class = match status {
        404 => ErrorClass::NotFound,
        401 | 403 => ErrorClass::Denied,
        304 | 409 | 412 => ErrorClass::Precondition,
        429 => ErrorClass::Throttled,
        500..=599 => class_of_words(&words, ErrorClass::Server),
        300..=499 => ErrorClass::Client,
        _ => ErrorClass::Protocol,
    };
    let message = match one_line(&words) {
        words if words.is_empty() => format!("the server answered {status}"),
        words => words,
    };
    DriverError::with_status(class, status, message)
}

/// Returns the error of an answer of success that does not say what it should.
pub(crate) fn of_success(status: u16, message: impl Into<String>) -> DriverError {
    DriverError::with_status(ErrorClass::Protocol, status, message)
}
