//! What failed calls and error answers mean.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_http::grpc::{GrpcError, status};
use plimsoll_http::{ExchangeError, ResponseHead};
use plimsoll_model::{ErrorClass, REDACTED};

/// How volume servers and filers name themselves (`Server`). Masters do not.
const NAME: &str = "SeaweedFS";

/// What the words of servers are about that do not name themselves: masters, and all by gRPC.
const TOPICS: [&str; 7] =
    ["collection", "data node", "jwt", "leader", "replica", "volume", "warming up"];

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

/// What every token begins with: `{"`, encoded.
const TOKEN_BEGIN: &str = "eyJ";

/// Returns the meaning of an exchange that came to no whole answer.
pub(crate) fn of_exchange(error: &ExchangeError) -> DriverError {
    DriverError::new(error.kind.class(), shown(&error.message))
}

/// Returns the meaning of a call of gRPC that failed.
pub(crate) fn of_call(error: &GrpcError) -> DriverError {
    match error {
        GrpcError::Transport { kind, message } => DriverError::new(kind.class(), shown(message)),
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
            let shown = match own_words(message) {
                "" if *code == status::UNIMPLEMENTED => {
                    "the server does not know the call; is it a server of SeaweedFS?".to_owned()
                }
                "" => format!("the server answered with the gRPC status {code}"),
                words => of_master(words),
            };
            DriverError::new(class_of_words(message, class), shown)
        }
    }
}

/// Returns the meaning of words that a master sent instead of a file id.
pub(crate) fn of_words(words: &str) -> DriverError {
    let shown = match own_words(words) {
        "" => "the master assigns no file id, and not in words of SeaweedFS".to_owned(),
        words => of_master(words),
    };
    DriverError::new(class_of_words(words, ErrorClass::Server), shown)
}

/// Returns whether an answer says that it is from a volume server or a filer.
pub(crate) fn is_named(head: &ResponseHead<'_>) -> bool {
    head.header("server").is_some_and(|server| server.starts_with(NAME))
}

/// Returns words that a server of SeaweedFS may have said, and nothing of others: they may be those
/// of another service, which users of a console must not read.
fn own_words(words: &str) -> &str {
    let lower = words.to_ascii_lowercase();
    if TOPICS.iter().any(|topic| lower.contains(topic)) { words } else { "" }
}

/// Tells whether an id was refused for a reason that passes by itself, so that asking again at once
/// would only keep masters busy.
pub(crate) fn passes(refused: &DriverError) -> bool {
    let message = refused.message.to_ascii_lowercase();
    refused.class == ErrorClass::Growing || LEADERLESS.iter().any(|words| message.contains(words))
}

/// Returns a master's words, with what to do about them where they do not say it.
fn of_master(words: &str) -> String {
    let words = shown(words);
    match words.contains(NONE_WRITABLE) {
        true if words.contains(NO_DISK) => format!("{NO_DISK_TOLD}; the master says: {words}"),
        true => format!("{USED_UP}; the master says: {words}"),
        false => words,
    }
}

/// Returns what a server said as one short line without tokens (JWT): some servers and proxies
/// repeat the headers of a request. A token is known by its form, as masters hand out one for each
/// file; the keys that tokens are signed with go over no wire.
fn shown(text: &str) -> String {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(TOKEN_BEGIN) {
        let (before, begun) = rest.split_at(at);
        let len = begun.find(|c: char| !is_of_token(c)).unwrap_or(begun.len());
        let (word, after) = begun.split_at(len);
        out.push_str(before);
        out.push_str(if word.matches('.').count() >= 2 { REDACTED } else { word });
        rest = after;
    }
    out.push_str(rest);
    one_line(&out)
}

fn class_of_words(words: &str, otherwise: ErrorClass) -> ErrorClass {
    match words {
        _ if SOON.iter().any(|soon| words.contains(soon)) => ErrorClass::Growing,
        _ if words.contains(FULL) => ErrorClass::Server,
        _ => otherwise,
    }
}

/// Returns the meaning of an answer whose status is not one of success. `body` holds
/// `{"error": "..."}`, or nothing. Anything else is not quoted, nor is that of a server that is not
/// named ([`is_named`]) and speaks of other things than SeaweedFS does.
pub(crate) fn of_answer(status: u16, body: &[u8], is_named: bool) -> DriverError {
    #[derive(serde::Deserialize)]
    struct Refusal {
        error: String,
    }

    let said = serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error);
    let said = said.unwrap_or_default();
    of_refusal(status, if is_named { &said } else { own_words(&said) })
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
    let message: String = message.into();
    DriverError::with_status(ErrorClass::Protocol, status, shown(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_services_are_not_repeated() {
        const INNER: &str = "token of user admin is invalid for db-7.internal";
        let body = format!("{{\"error\": \"{INNER}\"}}");
        let of_grpc = |code| {
            let refused = GrpcError::Status { code, message: INNER.to_owned() };
            of_call(&refused).message
        };
        assert_eq!(of_answer(403, body.as_bytes(), false).message, "the server answered 403");
        assert!(of_grpc(status::UNIMPLEMENTED).contains("is it a server of SeaweedFS?"));
        assert_eq!(of_grpc(2), "the server answered with the gRPC status 2");
        assert!(!of_words(INNER).message.contains("db-7"));
        // A volume server or a filer says who it is, and a master speaks of its own affairs.
        assert_eq!(of_answer(500, body.as_bytes(), true).message, INNER);
        let full = "No free volumes left for collection: x";
        let refused = GrpcError::Status { code: 2, message: full.to_owned() };
        for error in [of_words(full), of_call(&refused)] {
            assert_eq!((error.class, &*error.message), (ErrorClass::Server, full));
        }
    }

    #[test]
    fn tokens_that_a_server_repeats_are_in_no_message() {
        const TOKEN: &str =
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3MDAwMDAxMjB9.hush_sig-nature";
        let words = format!("wrong jwt: /3,01?jwt={TOKEN}, {TOKEN}.");
        let told = format!("wrong jwt: /3,01?jwt={REDACTED}, {REDACTED}");
        let body = format!("{{\"error\": \"{words}\"}}");
        let refused = GrpcError::Status { code: 2, message: words.clone() };
        for error in [
            of_answer(403, body.as_bytes(), true),
            of_answer(401, body.as_bytes(), false),
            of_refusal(500, &words),
            of_words(&words),
            of_call(&refused),
            of_success(200, &*words),
        ] {
            assert!(error.message.contains(&told), "{error}");
            assert!(!error.message.contains("hush"), "{error}");
        }
        // What is cut was without it before.
        let long = format!("jwt {} {TOKEN}", "x".repeat(plimsoll_driver::MESSAGE_CHARS_MAX - 50));
        assert!(!of_words(&long).message.contains("eyJ"));
        // What only begins so is no token.
        assert_eq!(of_words("volume eyJ.a is full").message, "volume eyJ.a is full");
    }
}
