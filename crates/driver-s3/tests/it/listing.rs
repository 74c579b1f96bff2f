//! Listings, page by page.

use plimsoll_driver::Driver;
use plimsoll_driver_s3::{S3Driver, S3Session};
use plimsoll_model::ErrorClass;

use super::common::{self, block_on, failed, list};
use super::fake::{Fake, answer, error_xml};

fn session(fake: &Fake) -> S3Session {
    let driver = S3Driver::new(common::config(fake.port)).unwrap();
    driver.open_sessions(&common::clock(), 1).pop().unwrap()
}

/// Returns a page with entries of size 7.
fn page(keys: &[&str], more: &str) -> String {
    let entries: String = keys
        .iter()
        .map(|key| format!("<Contents><Key>{key}</Key><Size>7</Size></Contents>"))
        .collect();
    answer(200, &format!("<ListBucketResult>{entries}{more}</ListBucketResult>"))
}

fn more(token: &str) -> String {
    format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>")
}

#[test]
fn pages_are_followed_to_the_end() {
    let encoded = "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>";
    let fake = Fake::answering([
        page(&["p/a", "p/b"], &more("t/1&amp;")),
        page(&[], &more("t2")),
        page(&["p/%E2%82%AC+x"], encoded),
    ]);
    block_on(async {
        let (completion, entries) = list(&mut session(&fake), "p/", 2).await;
        assert_eq!(completion.result, Ok(()));
        assert_eq!((completion.objects_count, completion.bytes), (3, 0));
        let keys: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
        assert_eq!(keys, ["p/a", "p/b", "p/€ x"]);
        assert!(entries.iter().all(|entry| entry.1 == 7));
        assert!(completion.first_byte < Some(completion.end));
    });
    let lines: Vec<String> =
        fake.requests().iter().map(|r| r.lines().next().unwrap().to_owned()).collect();
    let rest = "encoding-type=url&list-type=2&max-keys=2&prefix=p%2F HTTP/1.1";
    assert_eq!(lines[0], format!("GET /bucket?{rest}"));
    assert_eq!(lines[1], format!("GET /bucket?continuation-token=t%2F1%26&{rest}"));
    assert_eq!(lines[2], format!("GET /bucket?continuation-token=t2&{rest}"));
}

#[test]
fn a_list_that_does_not_say_how_it_goes_on_is_a_protocol_error() {
    for second in ["<IsTruncated>true</IsTruncated>", &more("t1")] {
        let fake = Fake::answering([page(&["a"], &more("t1")), page(&["b"], second)]);
        block_on(async {
            let (completion, entries) = list(&mut session(&fake), "", 1).await;
            failed(&completion, ErrorClass::Protocol, Some(200));
            assert_eq!((completion.objects_count, entries.len()), (2, 2));
        });
    }
}

#[test]
fn what_is_no_list_is_an_error() {
    for (text, class, status) in [
        (answer(200, &error_xml("AccessDenied")), ErrorClass::Denied, 200),
        (answer(200, "<ListBucketResult><Contents><Key>a"), ErrorClass::Protocol, 200),
        (answer(200, "<html>hello</html>"), ErrorClass::Protocol, 200),
        (answer(200, ""), ErrorClass::Protocol, 200),
        (answer(404, &error_xml("NoSuchBucket")), ErrorClass::NotFound, 404),
    ] {
        let fake = Fake::answering([text]);
        block_on(async {
            let (completion, entries) = list(&mut session(&fake), "", 1000).await;
            failed(&completion, class, Some(status));
            assert_eq!((completion.objects_count, entries), (0, Vec::new()));
        });
    }
}

#[test]
fn an_error_on_a_later_page_keeps_what_came_before() {
    let fake =
        Fake::answering([page(&["a", "b"], &more("t")), answer(503, &error_xml("SlowDown"))]);
    block_on(async {
        let (completion, _) = list(&mut session(&fake), "", 2).await;
        failed(&completion, ErrorClass::Throttled, Some(503));
        assert_eq!(completion.objects_count, 2);
        assert!(completion.first_byte.is_some());
    });
}

#[test]
fn a_list_that_goes_in_a_circle_ends() {
    let turns = (0..10).map(|turn| page(&["a"], &more(["t1", "t2", "t3"][turn % 3])));
    let fake = Fake::answering(turns);
    block_on(async {
        let (completion, _) = list(&mut session(&fake), "", 1).await;
        let error = failed(&completion, ErrorClass::Protocol, Some(200));
        assert!(error.message.contains("repeats itself"), "{error}");
        assert_eq!((completion.objects_count, fake.requests().len()), (4, 4));
    });
}

#[test]
fn a_list_of_pages_without_entries_ends() {
    let fake = Fake::answering((0..2_000).map(|number| page(&[], &more(&format!("t{number}")))));
    block_on(async {
        let (completion, _) = list(&mut session(&fake), "", 1).await;
        let error = failed(&completion, ErrorClass::Protocol, Some(200));
        assert!(error.message.ends_with("has 1001 pages without an entry"), "{error}");
        assert_eq!(completion.objects_count, 0);
    });
}
