//! The steward against a scripted server.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plimsoll_driver::{DriverError, RootState, Steward};
use plimsoll_driver_s3::{S3Driver, S3Steward};
use plimsoll_model::ErrorClass;

use crate::common::{self, block_on};
use crate::fake::{Fake, answer, error_xml};

fn steward(fake: &Fake, region: Option<&str>) -> S3Steward {
    let mut config = common::config(fake.port);
    config.region = region.map(str::to_owned);
    S3Driver::new(config).unwrap().steward(&common::clock())
}

fn ensured(answers: Vec<String>, region: Option<&str>) -> (Result<RootState, DriverError>, Fake) {
    let fake = Fake::answering(answers);
    let state = block_on(steward(&fake, region).ensure_root());
    (state, fake)
}

fn page(keys: &[&str]) -> String {
    let entries: String = keys
        .iter()
        .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"))
        .collect();
    answer(200, &format!("<ListBucketResult>{entries}</ListBucketResult>"))
}

fn head(status: u16) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn a_bucket_is_found_or_made() {
    let (state, _) = ensured(vec![head(200)], None);
    assert_eq!(state, Ok(RootState::Existed));

    let (state, fake) = ensured(vec![head(404), answer(200, "")], None);
    assert_eq!(state, Ok(RootState::Created));
    let request = &fake.requests()[1];
    assert!(request.starts_with("PUT /bucket HTTP/1.1\r\ncontent-length: 0\r\n"), "{request}");

    let (state, fake) = ensured(vec![head(404), answer(200, "")], Some("eu-west-1"));
    assert_eq!(state, Ok(RootState::Created));
    let request = &fake.requests()[1];
    assert!(request.contains("<LocationConstraint>eu-west-1</LocationConstraint>"), "{request}");

    let owned = answer(409, &error_xml("BucketAlreadyOwnedByYou"));
    let (state, _) = ensured(vec![head(404), owned], None);
    assert_eq!(state, Ok(RootState::Existed));
}

#[test]
fn a_bucket_out_of_reach_is_explained() {
    let told = |answers, class, text: &str| {
        let error = ensured(answers, None).0.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.contains(text), "{error} should hold `{text}`");
    };
    told(
        vec![head(403), answer(403, &error_xml("SignatureDoesNotMatch"))],
        ErrorClass::Denied,
        "bucket `bucket` cannot be read with these credentials: SignatureDoesNotMatch: m",
    );
    told(
        vec![head(403), answer(403, &error_xml("RequestTimeTooSkewed"))],
        ErrorClass::Denied,
        "set the clock of this machine",
    );
    told(
        vec![head(404), answer(403, &error_xml("AccessDenied"))],
        ErrorClass::Denied,
        "bucket `bucket` is not there and cannot be made: AccessDenied: m",
    );
    told(
        vec![head(404), answer(409, &error_xml("BucketAlreadyExists"))],
        ErrorClass::Precondition,
        "cannot be made: BucketAlreadyExists",
    );
    told(
        vec![head(500), answer(500, &error_xml("InternalError"))],
        ErrorClass::Server,
        "bucket `bucket` cannot be read: InternalError: m",
    );
    // Who may list may read, whatever HEAD says.
    let (state, _) = ensured(vec![head(403), page(&["k"])], None);
    assert_eq!(state, Ok(RootState::Existed));
}

#[test]
fn sweeping_takes_only_what_is_below_the_prefix() {
    let done = || answer(200, "<DeleteResult/>");
    let fake = Fake::answering([
        page(&["run/1", "foreign/1", "run/2"]),
        done(),
        page(&["run/3", "run"]),
        done(),
        page(&["foreign/1"]),
    ]);
    assert_eq!(block_on(steward(&fake, None).sweep("run/")), Ok(3));
    let requests = fake.requests();
    let bodies: Vec<&str> =
        requests.iter().filter(|r| r.starts_with("POST ")).map(String::as_str).collect();
    assert_eq!(bodies.len(), 2);
    for (body, keys) in bodies.iter().zip([&["run/1", "run/2"][..], &["run/3"][..]]) {
        assert_eq!(body.matches("<Key>").count(), keys.len(), "{body}");
        assert!(keys.iter().all(|key| body.contains(&format!("<Key>{key}</Key>"))), "{body}");
    }
}

#[test]
fn sweeping_ends_also_where_nothing_goes_away() {
    let stuck = std::iter::repeat_with(|| [page(&["run/1"]), answer(200, "<DeleteResult/>")]);
    let fake = Fake::answering(stuck.take(1_000).flatten());
    let error = block_on(steward(&fake, None).sweep("run/")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.contains("`run/1` is still listed"), "{error}");

    let fake = Fake::answering([
        page(&["run/1"]),
        answer(
            200,
            "<DeleteResult><Error><Key>run/1</Key><Code>AccessDenied</Code></Error></DeleteResult>",
        ),
    ]);
    let error = block_on(steward(&fake, None).sweep("run/")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Denied, "{error}");
}

#[test]
fn sweeping_everything_is_no_option() {
    let fake = Fake::answering([]);
    let mut steward = steward(&fake, None);
    let swept = catch_unwind(AssertUnwindSafe(|| block_on(steward.sweep(""))));
    assert!(swept.is_err());
    assert!(fake.requests().is_empty());
}

#[test]
fn a_survey_stops_at_its_limit_and_at_slashes() {
    let truncated = "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>\
        <Contents><Key>b</Key><Size>2</Size></Contents><IsTruncated>true</IsTruncated>\
        <NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
    let fake = Fake::answering([answer(200, truncated), answer(200, truncated)]);
    let found = block_on(steward(&fake, None).survey("", Some(3), false)).unwrap();
    let keys: Vec<(&str, u64)> = found.iter().map(|o| (o.key.as_str(), o.size)).collect();
    assert_eq!(keys, [("a", 1), ("b", 2), ("a", 1)]);
    let requests = fake.requests();
    assert!(requests[0].starts_with("GET /bucket?delimiter=%2F&encoding-type=url&"));
    assert!(requests[0].contains("&max-keys=3&"));
    let none = block_on(steward(&fake, None).survey("", Some(0), true));
    assert_eq!((none, fake.requests().len()), (Ok(Vec::new()), 2));
}
