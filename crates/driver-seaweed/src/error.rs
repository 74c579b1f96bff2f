//! What failed calls and error answers mean.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_http::ExchangeError;
use plimsoll_http::grpc::{GrpcError, status};
use plimsoll_model::ErrorClass;

/// What a master says while it makes volumes, and while no volume server has come yet.
const SOON: [&str; 2] = ["volume growth in progress", "no volume server capacity registered yet"];

/// What masters say while none of them leads, or the one that does has only begun to.
const LEADERLESS: [&str; 3] = ["not current leader", "not the leader", "warming up"];

/// What a master says that can make no volume, by HTTP with a status of the client's mistakes.
const FULL: &str = "no free volumes left";

/// What a master says when no volume can be written to and it makes none.
const NONE_WRITABLE: &str = "failed to find writable volumes";
const USED_UP: &str = "no volume is writable and no more can be made: give volume servers \
                       more of them (`-max`; of a type of disk: `-disk`), or remove collections";

/// What a master says beside that where no volume server has disks of the type.
const NO_DISK: &str = "no volume server carries the";
const NO_DISK_TOLD: &str = "no volume server has disks of that type";

/// What it means when a server takes no token.
const NO_TOKEN: &str = "the server rejects the token: its keys are jwt.signing (writes) \
                        and jwt.signing.read (reads) in its security.toml, a filer's \
                        jwt.filer_signing and jwt.filer_signing.read";

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
                status::PERMISSION_DENIED | status::UNAUTHENTICATED => ErrorClass::Denied,
                status::RESOURCE_EXHAUSTED => ErrorClass::Throttled,
                status::FAILED_PRECONDITION => ErrorClass::Precondition,
                status::INVALID_ARGUMENT | status::UNIMPLEMENTED => ErrorClass::Client,
                _ => ErrorClass::Server,
            };
            DriverError::new(class_of_words(message, class), of_master(message))
        }
    }
}

/// Returns the meaning of words that a master sent instead of a file id.
pub(crate) fn of_words(words: &str) -> DriverError {
    DriverError::new(class_of_words(words, ErrorClass::Server), of_master(words))
}

/// Tells whether an id was refused for a reason that passes by itself, so that asking again at once
/// would only keep masters busy.
pub(crate) fn passes(refused: &DriverError) -> bool {
    let message = refused.message.to_ascii_lowercase();
    refused.class == ErrorClass::Growing || LEADERLESS.iter().any(|words| message.contains(words))
}

/// Returns a master's words, with what to do about them where they do not say it.
fn of_master(words: &str) -> String {
    let words = one_line(words);
    match words.contains(NONE_WRITABLE) {
        true if words.contains(NO_DISK) => format!("{NO_DISK_TOLD}; the master says: {words}"),
        true => format!("{USED_UP}; the master says: {words}"),
        false => words,
    }
}

fn class_of_words(words: &str, otherwise: ErrorClass) -> ErrorClass {
    match words {
        _ if SOON.iter().any(|soon| words.contains(soon)) => ErrorClass::Growing,
        _ if words.contains(FULL) => ErrorClass::Server,
        _ => otherwise,
    }
}

/// Returns the meaning of an answer whose status is not one of success. `body` holds
/// `{"error": "..."}`, or nothing. Anything else is not quoted: it may be of another service, which
/// whoever submitted a workload to a console must not read.
pub(crate) fn of_answer(status: u16, body: &[u8]) -> DriverError {
    #[derive(serde::Deserialize)]
    struct Refusal {
        error: String,
    }

    let said = serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error);
    of_refusal(status, &said.unwrap_or_default())
}

/// Returns the meaning of a status with the words beside it.
pub(crate) fn of_refusal(status: u16, words: &str) -> DriverError {
    let class = match status {
        404 => ErrorClass::NotFound,
        401 | 403 => ErrorClass::Denied,
        304 | 409 | 412 => ErrorClass::Precondition,
        429 => ErrorClass::Throttled,
        // Of a master: it finds no volume, or cannot read what it is asked.
        406 if words.contains(NONE_WRITABLE) => ErrorClass::Server,
        500..=599 => class_of_words(words, ErrorClass::Server),
        300..=499 => class_of_words(words, ErrorClass::Client),
        _ => ErrorClass::Protocol,
    };
    let message = match of_master(words) {
        // Without words to a HEAD; a server also answers so to whom its white list does not have.
        words if status == 401 && (words.is_empty() || words.contains("jwt")) => {
            let of = if words.is_empty() { "no words" } else { &words };
            format!("{NO_TOKEN} (401: {of})")
        }
        words if words.is_empty() => format!("the server answered {status}"),
        words => words,
    };
    DriverError::with_status(class, status, message)
}

/// Returns the error of an answer of success that does not say what it should.
pub(crate) fn of_success(status: u16, message: impl Into<String>) -> DriverError {
    DriverError::with_status(ErrorClass::Protocol, status, message)
}
