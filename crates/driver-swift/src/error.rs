//! What failed exchanges and error answers mean.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_http::ExchangeError;
use plimsoll_model::ErrorClass;

/// Headers by which an answer is known to be from Swift, a gateway that speaks Swift, or Keystone.
/// Bodies of other services are not quoted: whoever submitted a workload to a console must not read
/// them.
pub(crate) const OF_SWIFT: [&str; 2] = ["x-trans-id", "x-openstack-request-id"];
/// The status by which Swift's `ratelimit` sheds load.
const RATE_LIMITED: u16 = 498;
/// What a 503 says that sheds load (gateways with Swift's protocol: Ceph's says `SlowDown`). Swift
/// itself answers 503 where its storage servers fail.
const SHED: [&str; 3] = ["slowdown", "slow down", "rate limit"];

/// Returns the meaning of an exchange that came to no whole answer.
pub(crate) fn of_exchange(error: &ExchangeError) -> DriverError {
    DriverError::new(error.kind.class(), one_line(&error.message))
}

/// Returns the meaning of an answer whose status is not one of success, with what its page says,
/// where that is a page of Swift's or of Keystone's ([`OF_SWIFT`]).
pub(crate) fn of_answer(status: u16, body: &[u8]) -> DriverError {
    let words = words_of(body);
    let is_shed = || {
        let words = words.to_ascii_lowercase();
        SHED.iter().any(|shed| words.contains(shed))
    };
    let class = match status {
        404 | 410 => ErrorClass::NotFound,
        401 | 403 => ErrorClass::Denied,
        // 202: the server holds something newer of that name, and kept nothing of a write.
        202 | 304 | 409 | 412 => ErrorClass::Precondition,
        429 | RATE_LIMITED => ErrorClass::Throttled,
        503 if is_shed() => ErrorClass::Throttled,
        // The server gave up waiting for what the request was to bring.
        408 => ErrorClass::Timeout,
        // What arrived is not what the request said (ETag, size of a segment).
        422 => ErrorClass::Corrupt,
        500..=599 => ErrorClass::Server,
        400..=499 => ErrorClass::Client,
        300..=399 => ErrorClass::Client,
        _ => ErrorClass::Protocol,
    };
    let message = match status {
        300..=399 if status != 304 => {
            format!("the server answered {status}, a redirect, which is not followed")
        }
        507 if words.is_empty() => "the server answered 507: no room is left".to_owned(),
        _ if words.is_empty() => format!("the server answered {status}"),
        _ => words,
    };
    DriverError::with_status(class, status, message)
}

/// Returns the error of an answer of success that does not say what it should.
pub(crate) fn of_success(status: u16, message: impl Into<String>) -> DriverError {
    DriverError::with_status(ErrorClass::Protocol, status, message)
}

/// Returns what a page says, without its markup.
fn words_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut words = String::new();
    let mut is_markup = false;
    for letter in text.chars() {
        match letter {
            '<' => {
                is_markup = true;
                words.push(' ');
            }
            '>' if is_markup => is_markup = false,
            _ if is_markup => {}
            other => words.push(other),
        }
    }
    one_line(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_their_meanings() {
        use ErrorClass::{
            Client, Corrupt, Denied, NotFound, Precondition, Protocol, Server, Throttled, Timeout,
        };
        for (status, class) in [
            (404, NotFound),
            (401, Denied),
            (403, Denied),
            (409, Precondition),
            (412, Precondition),
            (304, Precondition),
            (429, Throttled),
            (498, Throttled),
            (503, Server),
            (408, Timeout),
            (422, Corrupt),
            (411, Client),
            (413, Client),
            (416, Client),
            (302, Client),
            (500, Server),
            (507, Server),
            (206, Protocol),
        ] {
            let error = of_answer(status, b"");
            assert_eq!((error.class, error.status), (class, Some(status)));
            assert!(error.message.contains(&status.to_string()), "{}", error.message);
        }
        let of_ceph = br#"{"Code":"SlowDown","RequestId":"tx0"}"#;
        assert_eq!(of_answer(503, of_ceph).class, Throttled);
        let page = b"<html><h1>Service Unavailable</h1><p>Please try again later.</p></html>";
        assert_eq!(of_answer(503, page).class, Server);
    }

    #[test]
    fn of_a_page_only_the_words_are_shown() {
        let page = b"<html><h1>Conflict</h1><p>There was a conflict.</p></html>\n";
        assert_eq!(of_answer(409, page).message, "Conflict There was a conflict.");
        assert_eq!(of_answer(412, b"Maximum limit is 10000").message, "Maximum limit is 10000");
        assert_eq!(of_answer(400, b"a < b\x1b[2J").message, "a");
    }
}
