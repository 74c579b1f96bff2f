//! What an error text of warp's means, as one of our classes.

use memchr::memmem::Finder;
use plimsoll_model::ErrorClass;

/// How much of a text is looked at.
const TEXT_BYTES_MAX: usize = 4_096;

/// The status that a text names decides first; then the first rule with one of its words in the
/// text, which are in lower case.
const RULES: [(ErrorClass, &[&str]); 11] = [
    (
        ErrorClass::Throttled,
        &[
            "slowdown",
            "slow down",
            "reduce your request rate",
            "too many requests",
            "service unavailable",
            "service is unavailable",
            "server busy",
        ],
    ),
    (
        ErrorClass::Connect,
        &[
            "connection refused",
            "no such host",
            "dial tcp",
            "dial udp",
            "dial unix",
            "tls handshake",
            "tls: ",
            "x509: ",
            "no route to host",
            "network is unreachable",
        ],
    ),
    (
        ErrorClass::Reset,
        &[
            "connection reset",
            "reset by peer",
            "stream reset",
            "broken pipe",
            "unexpected eof",
            ": eof",
            "closed idle connection",
            "closed network connection",
            "connection closed",
        ],
    ),
    (ErrorClass::Server, &["gateway timeout", "gateway time-out"]),
    (ErrorClass::Timeout, &["timeout", "timed out", "deadline exceeded"]),
    (
        ErrorClass::Denied,
        &[
            "access denied",
            "accessdenied",
            "forbidden",
            "unauthorized",
            "signature",
            "access key",
            "difference between the request time",
        ],
    ),
    (ErrorClass::NotFound, &["does not exist", "not found", "nosuch"]),
    (ErrorClass::Precondition, &["precondition", "pre-condition"]),
    (ErrorClass::Server, &["internal error", "internal server error", "bad gateway"]),
    (
        ErrorClass::Truncated,
        &["unexpected size", "unexpected download size", "short read", "short upload"],
    ),
    (
        ErrorClass::Client,
        &["unsupported", "bad request", "cannot be empty", "malformed", "method not allowed"],
    ),
];
/// What stands before a number that is a status.
const STATUS_LEADS: [&str; 5] = ["status", "code", "http", "http/1.1", "error"];

/// Returns the class of an error text, `Unknown` if it tells nothing and `Ok` if it is empty.
pub fn classify(error: &str) -> ErrorClass {
    Classifier::default().classify(error)
}

/// Classes error texts; keeps what is needed for each of them.
pub(super) struct Classifier {
    rules: Vec<(ErrorClass, Finder<'static>)>,
    lower: Vec<u8>,
}

impl Default for Classifier {
    fn default() -> Self {
        let of_rule = |(class, words): (ErrorClass, &'static [&'static str])| {
            words.iter().map(move |word| (class, Finder::new(word)))
        };
        Self { rules: RULES.into_iter().flat_map(of_rule).collect(), lower: Vec::new() }
    }
}

impl Classifier {
    pub(super) fn classify(&mut self, error: &str) -> ErrorClass {
        if error.is_empty() {
            return ErrorClass::Ok;
        }
        self.lower.clear();
        self.lower.extend(error.bytes().take(TEXT_BYTES_MAX).map(|b| b.to_ascii_lowercase()));
        let text = self.lower.trim_ascii();
        if let Some(class) = status(text).and_then(class_of_status) {
            return class;
        }
        if text == b"eof" {
            return ErrorClass::Reset;
        }
        let matching = self.rules.iter().find(|(_, word)| word.find(text).is_some());
        matching.map_or(ErrorClass::Unknown, |(class, _)| *class)
    }
}

/// Returns the HTTP status that a text begins with, holds in parentheses or after a word such as
/// `status`. Other numbers may be sizes, ports or parts of names.
fn status(text: &[u8]) -> Option<u16> {
    let is_part_of_word = |b: &u8| b.is_ascii_alphanumeric() || b"./_-".contains(b);
    for (at, digits) in text.windows(3).enumerate() {
        if !matches!(digits, [b'3'..=b'5', b'0'..=b'9', b'0'..=b'9']) {
            continue;
        }
        let (before, after) = (&text[..at], &text[at + 3..]);
        let ends = match after {
            [b'.', rest @ ..] => rest.first().is_none_or(|b| b.is_ascii_whitespace()),
            _ => after.first().is_none_or(|b| !is_part_of_word(b)),
        };
        let lead = before.trim_ascii_end();
        let has_lead = || {
            let lead = lead.strip_suffix(b":").or(lead.strip_suffix(b"=")).unwrap_or(lead);
            let lead = lead.trim_ascii_end();
            before.last().is_some_and(|b| !is_part_of_word(b))
                && STATUS_LEADS.iter().any(|word| lead.ends_with(word.as_bytes()))
        };
        let is_bracketed = || before.last() == Some(&b'(') && after.first() == Some(&b')');
        if ends && (before.is_empty() || is_bracketed() || has_lead()) {
            return str::from_utf8(digits).ok()?.parse().ok();
        }
    }
    None
}

fn class_of_status(status: u16) -> Option<ErrorClass> {
    Some(match status {
        429 | 503 => ErrorClass::Throttled,
        401 | 403 => ErrorClass::Denied,
        404 => ErrorClass::NotFound,
        304 | 409 | 412 => ErrorClass::Precondition,
        408 => ErrorClass::Timeout,
        400..=499 => ErrorClass::Client,
        500..=599 => ErrorClass::Server,
        _ => return None,
    })
}
