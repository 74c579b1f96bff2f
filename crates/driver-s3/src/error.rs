//! What failed exchanges and error answers mean, and what can be done about them.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_http::ExchangeError;
use plimsoll_model::ErrorClass;

use crate::answer::Answer;
use crate::xml::{self, ErrorText};

/// Returns the meaning of an exchange that came to no whole answer.
pub(crate) fn of_exchange(answer: &Answer, error: &ExchangeError) -> DriverError {
    DriverError::new(error.kind.class(), shown(answer, &error.message))
}

/// Returns the meaning of an answer whose status is not the one of success.
pub(crate) fn of_answer(answer: &Answer) -> DriverError {
    let text = xml::parse_error(&answer.body);
    let unsaid = if answer.says_slow_down { SLOW_DOWN } else { "" };
    let code = text.as_ref().map_or(unsaid, |text| text.code.as_str());
    let class = class_of_status(answer.status, code);
    let mut message = match &text {
        Some(text) => stated(answer, text),
        None => unstated(answer),
    };
    if let Some(advice) = advice(answer, text.as_ref()) {
        message.push_str("; ");
        message.push_str(&advice);
    }
    DriverError::with_status(class, answer.status, message)
}

/// Returns the meaning of an error that an answer of success holds.
pub(crate) fn of_success(answer: &Answer, text: &ErrorText) -> DriverError {
    DriverError::with_status(class_of_code(&text.code), answer.status, stated(answer, text))
}

/// Returns the error of an answer that should be a document and is not.
pub(crate) fn of_document(answer: &Answer, why: &str) -> DriverError {
    let message = if answer.overflowed {
        format!("the answer is larger than {} bytes", answer.body.len())
    } else {
        format!("the answer cannot be understood: {why}")
    };
    DriverError::with_status(ErrorClass::Protocol, answer.status, shown(answer, &message))
}

/// Returns the error of an answer of success that did not come in time.
pub(crate) fn of_early(answer: &Answer, why: String) -> DriverError {
    DriverError::with_status(ErrorClass::Protocol, answer.status, why)
}

/// Returns the error of an answer to a question about an object that does not say how large it is.
pub(crate) fn of_no_size(answer: &Answer) -> DriverError {
    let message = "the answer does not state the object's size (Content-Length)";
    DriverError::with_status(ErrorClass::Protocol, answer.status, message)
}

/// Returns the error of one copy of a content that was to be written under several keys.
pub(crate) fn of_copy(answer: &Answer, key: &str, text: &str) -> DriverError {
    let message = shown(answer, &format!("`{key}` was not written: {text}"));
    DriverError::with_status(ErrorClass::Server, answer.status, message)
}

/// Returns the class of a status, `code` being the error code of S3 or empty.
fn class_of_status(status: u16, code: &str) -> ErrorClass {
    match status {
        404 if is_of_keys(code) => ErrorClass::Client,
        404 => ErrorClass::NotFound,
        401 | 403 => ErrorClass::Denied,
        400 if is_expired(code) => ErrorClass::Denied,
        304 | 409 | 412 => ErrorClass::Precondition,
        429 => ErrorClass::Throttled,
        503 if is_slow_down(code) => ErrorClass::Throttled,
        500..=599 => ErrorClass::Server,
        300..=499 => ErrorClass::Client,
        _ => ErrorClass::Protocol,
    }
}

/// Returns the class of an error within an answer of success.
fn class_of_code(code: &str) -> ErrorClass {
    match code {
        _ if is_slow_down(code) => ErrorClass::Throttled,
        "InternalError" | "ServiceUnavailable" => ErrorClass::Server,
        "AccessDenied" => ErrorClass::Denied,
        "NoSuchKey" | "NoSuchBucket" | "NoSuchUpload" => ErrorClass::NotFound,
        "PreconditionFailed" => ErrorClass::Precondition,
        _ => ErrorClass::Protocol,
    }
}

/// What S3 says when it sheds load.
const SLOW_DOWN: &str = "SlowDown";

/// MinIO says `SlowDownRead` and `SlowDownWrite` beside `SlowDown`.
fn is_slow_down(code: &str) -> bool {
    code.starts_with(SLOW_DOWN)
}

/// Tells whether a server refuses keys because their time is over.
pub(crate) fn is_expired(code: &str) -> bool {
    code.starts_with("ExpiredToken")
}

/// Tells whether it is the key service that has something against a request: MinIO says
/// `kms:KeyNotFound`, Amazon `KMS.NotFoundException`.
fn is_of_keys(code: &str) -> bool {
    code.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("kms"))
}

/// Returns what a store says of an error, without a full stop: advice may follow.
fn stated(answer: &Answer, text: &ErrorText) -> String {
    if text.message.is_empty() {
        return shown(answer, &text.code);
    }
    let said = text.message.trim_end().trim_end_matches('.');
    shown(answer, &format!("{}: {said}", text.code))
}

/// Returns what a store said as one short line without the secrets of the request.
fn shown(answer: &Answer, text: &str) -> String {
    one_line(&answer.redaction.apply(text))
}

/// Describes an answer that is no error document of S3. Its body is not quoted: it may be of
/// another service, which users of a console must not read.
fn unstated(answer: &Answer) -> String {
    match answer.body.trim_ascii().is_empty() {
        true => format!("the answer {} has no details", answer.status),
        false => format!("the answer {} is no error of S3's: is it a store?", answer.status),
    }
}

/// Returns what the user can change about it, for errors that come from a wrong setting.
fn advice(answer: &Answer, text: Option<&ErrorText>) -> Option<String> {
    let code = text.map_or("", |text| text.code.as_str());
    if code == "RequestTimeTooSkewed" {
        return Some("set the clock of this machine".to_owned());
    }
    if is_of_keys(code) {
        return Some("check `sse_kms_key`".to_owned());
    }
    let wrong_region =
        matches!(code, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException");
    if matches!(answer.status, 301 | 302 | 307 | 308) || wrong_region {
        let stated_region =
            text.map(|text| text.region.as_str()).filter(|region| !region.is_empty());
        let region = stated_region.unwrap_or(&answer.bucket_region);
        return Some(match (region.is_empty(), answer.location.is_empty()) {
            (false, _) => format!("use `region` {} or another `host`", shown(answer, region)),
            (true, false) => {
                format!(
                    "it redirects to `{}`: use it as `host`, or another `region`",
                    shown(answer, &answer.location)
                )
            }
            (true, true) => "use another `region` or `host`".to_owned(),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_driver::MESSAGE_CHARS_MAX;
    use plimsoll_http::ExchangeErrorKind;
    use plimsoll_model::Moment;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, body: body.as_bytes().to_vec(), ..Answer::default() }
    }

    fn error_xml(code: &str, message: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        )
    }

    #[test]
    fn an_answer_without_a_body_may_say_slow_down_in_its_reason() {
        let bare = |says_slow_down| {
            let answer = Answer { says_slow_down, ..answer(503, "") };
            of_answer(&answer).class
        };
        assert_eq!(bare(true), ErrorClass::Throttled);
        assert_eq!(bare(false), ErrorClass::Server);
        // What the body says counts for more.
        let stated = answer(503, &error_xml("ServiceUnavailable", "why"));
        let stated = Answer { says_slow_down: true, ..stated };
        assert_eq!(of_answer(&stated).class, ErrorClass::Server);
    }

    #[test]
    fn the_class_follows_the_status_and_slow_down() {
        use ErrorClass::{Client, Denied, NotFound, Precondition, Protocol, Server, Throttled};
        for (status, code, class) in [
            (404, "NoSuchKey", NotFound),
            (404, "NoSuchBucket", NotFound),
            (404, "kms:KeyNotFound", Client),
            (400, "KMS.NotFoundException", Client),
            (401, "Unauthorized", Denied),
            (403, "AccessDenied", Denied),
            (400, "ExpiredToken", Denied),
            (403, "SignatureDoesNotMatch", Denied),
            (304, "", Precondition),
            (409, "BucketNotEmpty", Precondition),
            (412, "PreconditionFailed", Precondition),
            (429, "TooManyRequests", Throttled),
            (503, "SlowDown", Throttled),
            (503, "SlowDownWrite", Throttled),
            (503, "ServiceUnavailable", Server),
            (503, "", Server),
            (500, "InternalError", Server),
            (507, "InsufficientStorage", Server),
            (400, "InvalidArgument", Client),
            (411, "MissingContentLength", Client),
            (416, "InvalidRange", Client),
            (301, "PermanentRedirect", Client),
            (307, "TemporaryRedirect", Client),
            (202, "", Protocol),
            (204, "", Protocol),
        ] {
            let error = of_answer(&answer(status, &error_xml(code, "why")));
            assert_eq!((error.class, error.status), (class, Some(status)), "{status} {code}");
        }
    }

    #[test]
    fn an_error_in_a_success_is_classed_by_its_code() {
        for (code, class) in [
            ("SlowDown", ErrorClass::Throttled),
            ("InternalError", ErrorClass::Server),
            ("AccessDenied", ErrorClass::Denied),
            ("NoSuchKey", ErrorClass::NotFound),
            ("MalformedXML", ErrorClass::Protocol),
        ] {
            let text = ErrorText { code: code.to_owned(), ..ErrorText::default() };
            assert_eq!(of_success(&answer(200, ""), &text).class, class, "{code}");
        }
    }

    #[test]
    fn messages_say_what_to_change() {
        let message = |status, body: &str| of_answer(&answer(status, body)).message;
        let skewed = error_xml("RequestTimeTooSkewed", "The difference is too large.");
        assert_eq!(
            message(403, &skewed),
            "RequestTimeTooSkewed: The difference is too large; set the clock of this machine"
        );
        let no_key = error_xml("kms:KeyNotFound", "no such key");
        assert_eq!(message(404, &no_key), "kms:KeyNotFound: no such key; check `sse_kms_key`");
        let redirect = error_xml("PermanentRedirect", "Elsewhere");
        assert_eq!(
            message(301, &redirect),
            "PermanentRedirect: Elsewhere; use another `region` or `host`"
        );
        let mut elsewhere = answer(301, "");
        elsewhere.bucket_region = "eu-west-1".to_owned();
        assert_eq!(
            of_answer(&elsewhere).message,
            "the answer 301 has no details; use `region` eu-west-1 or another `host`"
        );
        elsewhere.bucket_region.clear();
        elsewhere.location = "https://a.example/".to_owned();
        assert!(of_answer(&elsewhere).message.contains("`https://a.example/`"));
        let malformed = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message>\
                         <Region>eu-central-1</Region></Error>";
        assert!(message(400, malformed).ends_with("; use `region` eu-central-1 or another `host`"));
    }

    #[test]
    fn messages_are_one_short_line() {
        let long = of_answer(&answer(500, &error_xml("X", &"two\nlines ".repeat(100)))).message;
        assert!(!long.contains('\n') && long.starts_with("X: two lines two"), "{long}");
        assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert_eq!(of_answer(&answer(500, "")).message, "the answer 500 has no details");
        let html = of_answer(&answer(502, "<html>\r\n<body>Bad\tGateway</body>")).message;
        assert_eq!(html, "the answer 502 is no error of S3's: is it a store?");
    }

    #[test]
    fn every_failure_of_an_exchange_has_its_class() {
        for (kind, class) in [
            (ExchangeErrorKind::Resolve, ErrorClass::Connect),
            (ExchangeErrorKind::Connect, ErrorClass::Connect),
            (ExchangeErrorKind::Tls, ErrorClass::Connect),
            (ExchangeErrorKind::ConnectTimeout, ErrorClass::Timeout),
            (ExchangeErrorKind::Stalled, ErrorClass::Timeout),
            (ExchangeErrorKind::Reset, ErrorClass::Reset),
            (ExchangeErrorKind::Truncated, ErrorClass::Truncated),
            (ExchangeErrorKind::Protocol, ErrorClass::Protocol),
        ] {
            let failed = ExchangeError {
                kind,
                message: "no luck".to_owned(),
                first_byte: None,
                last_byte_sent: None,
                body_bytes: 0,
                end: Moment::EPOCH,
            };
            assert_eq!(
                of_exchange(&Answer::default(), &failed),
                DriverError::new(class, "no luck")
            );
        }
    }
}
