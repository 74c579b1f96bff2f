//! What servers do wrong, and what becomes of it.

use std::pin::pin;
use std::task::Poll;

use plimsoll_driver::{Driver, MESSAGE_CHARS_MAX, Operation, Session};
use plimsoll_driver_s3::{Credentials, S3Driver, S3Session};
use plimsoll_http::{Proxies, TlsOptions};
use plimsoll_model::{ErrorClass, REDACTED};

use super::common::{self, Pattern, block_on, delete, failed, get, pattern, put, stat};
use super::fake::{Fake, Step, answer, answer_with, error_xml};

fn session(fake: &Fake) -> S3Session {
    let driver = S3Driver::new(common::config(fake.port)).unwrap();
    driver.open_sessions(&common::clock(), 1).pop().unwrap()
}

#[test]
fn shed_load_is_told_from_failure() {
    let fake = Fake::answering([
        answer(503, &error_xml("SlowDown")),
        answer(503, &error_xml("ServiceUnavailable")),
        answer(200, ""),
    ]);
    block_on(async {
        let mut session = session(&fake);
        let throttled = put(&mut session, "k", 3).await;
        assert_eq!(failed(&throttled, ErrorClass::Throttled, Some(503)).message, "SlowDown: m");
        assert_eq!(throttled.objects_count, 0);
        failed(&put(&mut session, "k", 3).await, ErrorClass::Server, Some(503));
        let written = put(&mut session, "k", 3).await;
        assert_eq!((written.result, written.bytes, written.objects_count), (Ok(()), 3, 1));
        assert!(written.first_byte.is_some() && written.last_byte_sent < written.first_byte);
    });
}

#[test]
fn content_that_breaks_off_is_truncated() {
    let torn = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123".to_owned();
    let fake = Fake::start([Step::AnswerAndClose(torn), Step::Answer(answer(200, "0123456789"))]);
    block_on(async {
        let mut session = session(&fake);
        let (broken, kept) = get(&mut session, "k", None).await;
        failed(&broken, ErrorClass::Truncated, None);
        assert_eq!((broken.bytes, kept.bytes.as_slice()), (4, &b"0123"[..]));
        let (whole, kept) = get(&mut session, "k", None).await;
        assert_eq!(whole.result, Ok(()));
        assert_eq!((whole.bytes, whole.object_size), (10, Some(10)));
        assert_eq!((kept.bytes.as_slice(), kept.restarts_count), (&b"0123456789"[..], 1));
        assert!(whole.last_byte_sent.is_none() && whole.first_byte.is_some());
    });
}

#[test]
fn a_range_other_than_the_one_asked_for_is_refused() {
    let partial =
        |range: &str, body| answer_with(206, &format!("Content-Range: bytes {range}\r\n"), body);
    let cases = [
        (partial("2-4/10", "234"), Ok(Some(10))),
        (partial("2-4/*", "234"), Ok(None)),
        (partial("0-2/10", "012"), Err(ErrorClass::Protocol)),
        (partial("2-3/4", "23"), Err(ErrorClass::Truncated)),
        (partial("2-4/10", "2345"), Err(ErrorClass::Truncated)),
        (answer(206, "234"), Err(ErrorClass::Protocol)),
        (answer(200, "0123456789"), Err(ErrorClass::Protocol)),
        (answer(416, &error_xml("InvalidRange")), Err(ErrorClass::Client)),
    ];
    let fake = Fake::answering(cases.iter().map(|(answer, _)| answer.clone()));
    block_on(async {
        let mut session = session(&fake);
        for (answer, expected) in &cases {
            let (completion, kept) = get(&mut session, "k", Some((2, 3))).await;
            let class = completion.result.as_ref().map(|()| completion.object_size);
            assert_eq!(class.map_err(|error| error.class), *expected, "{answer}");
            if expected.is_ok() {
                assert_eq!((kept.bytes.as_slice(), completion.bytes), (&b"234"[..], 3));
            }
        }
    });
    assert!(fake.requests().iter().all(|request| request.contains("range: bytes=2-4\r\n")));
}

#[test]
fn the_whole_object_may_answer_a_range_that_is_the_whole() {
    let fake = Fake::answering([answer(200, "012"), answer_with(206, "", "012")]);
    block_on(async {
        let mut session = session(&fake);
        let (whole, kept) = get(&mut session, "k", Some((0, 3))).await;
        assert_eq!((whole.result, kept.bytes.as_slice()), (Ok(()), &b"012"[..]));
        let (unasked, kept) = get(&mut session, "k", None).await;
        failed(&unasked, ErrorClass::Protocol, Some(206));
        assert_eq!((kept.restarts_count, unasked.bytes), (0, 0));
    });
}

#[test]
fn an_error_is_no_content() {
    let fake =
        Fake::answering([answer(404, &error_xml("NoSuchKey")), answer(500, &"x".repeat(200_000))]);
    block_on(async {
        let mut session = session(&fake);
        let (missing, kept) = get(&mut session, "k", None).await;
        failed(&missing, ErrorClass::NotFound, Some(404));
        assert_eq!((kept.restarts_count, missing.bytes, missing.object_size), (0, 0, None));
        let (large, _) = get(&mut session, "k", None).await;
        assert!(failed(&large, ErrorClass::Server, Some(500)).message.len() < 400);
    });
}

#[test]
fn secrets_that_a_server_repeats_are_in_no_message() {
    let error = |code: &str, message: &str| {
        format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>")
    };
    // Its end is beyond what is kept of a message, its beginning is not.
    let cut = format!("{}hush-token==", "x".repeat(MESSAGE_CHARS_MAX - 14));
    let removal = error("AccessDenied", "hush-token==").replace("<Code>", "<Key>b</Key><Code>");
    let fake = Fake::answering([
        answer(400, &error("hush-token==", "signed with hush&#47;secret, hush-token==")),
        answer(200, &error("InternalError", "x-amz-security-token: hush-token==")),
        answer_with(301, "Location: http://h/?token=hush-token==\r\n", ""),
        answer(400, &error("Code", &cut)),
        answer(200, &format!("<DeleteResult>{removal}</DeleteResult>")),
        answer(400, &error("ExpiredToken", "hush-renewed, not hush-token==")),
        // `user:hush-proxy`, which a proxy passes on to some stores.
        answer(400, &error("Bad", "Basic dXNlcjpodXNoLXByb3h5 is user:hush-proxy, so hush-proxy")),
    ]);
    let shared = |secret: &str, token: &str| match Credentials::keys("AKID", secret, Some(token)) {
        Credentials::Keys(shared) => shared,
        Credentials::Anonymous => unreachable!("keys were given"),
    };
    let keys = shared("hush/secret", "hush-token==");
    let mut config = common::config(fake.port);
    config.credentials = Credentials::Keys(keys.clone());
    let proxy = format!("http://user:hush%2Dproxy@127.0.0.1:{}", fake.port);
    config.proxies = Some(Proxies::all(&proxy, &TlsOptions::default()).unwrap());
    let mut messages = Vec::new();
    block_on(async {
        let driver = S3Driver::new(config).unwrap();
        let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
        for _ in 0..4 {
            messages.push(put(&mut session, "k", 3).await.result.unwrap_err().message);
        }
        messages.push(delete(&mut session, &["a", "b"]).await.result.unwrap_err().message);
        // Keys that were replaced meanwhile are kept out just so.
        let renewed = shared("hush", "hush-renewed").current().1;
        keys.replace((*renewed).clone()).unwrap();
        for _ in 0..2 {
            messages.push(put(&mut session, "k", 3).await.result.unwrap_err().message);
        }
    });
    for message in &messages {
        assert!(!message.contains("hush") && !message.contains("dXNlcjpodXNo"), "{message}");
        // The last characters of a message that was cut may be the first of these.
        assert!(message.contains(&REDACTED[..4]), "{message}");
    }
    assert!(messages[2].contains(&format!("`http://h/?token={REDACTED}`")), "{}", messages[2]);
}

#[test]
fn a_redirect_says_what_to_set() {
    let elsewhere = answer_with(301, "x-amz-bucket-region: eu-west-1\r\n", "");
    let secure = answer_with(307, "Location: https://a.example/\r\n", "");
    let fake = Fake::answering([elsewhere, secure]);
    block_on(async {
        let mut session = session(&fake);
        let moved = stat(&mut session, "k").await;
        let message = &failed(&moved, ErrorClass::Client, Some(301)).message;
        assert!(message.ends_with("use `region` eu-west-1 or another `host`"), "{message}");
        let moved = delete(&mut session, &["k"]).await;
        let message = &failed(&moved, ErrorClass::Client, Some(307)).message;
        assert!(message.contains("`https://a.example/`"), "{message}");
    });
}

#[test]
fn a_success_that_holds_an_error_is_an_error() {
    let held = |code| answer(200, &format!("<?xml version=\"1.0\"?>\n{}", error_xml(code)));
    let fake = Fake::answering([held("SlowDown"), held("Odd"), held("InternalError")]);
    block_on(async {
        let mut session = session(&fake);
        failed(&put(&mut session, "k", 1).await, ErrorClass::Throttled, Some(200));
        failed(&put(&mut session, "k", 1).await, ErrorClass::Protocol, Some(200));
        let many = delete(&mut session, &["a", "b"]).await;
        failed(&many, ErrorClass::Server, Some(200));
        assert_eq!(many.objects_count, 0);
    });
}

#[test]
fn a_refusal_before_the_content_was_sent_is_heard() {
    let denied = answer_with(403, "Connection: close\r\n", &error_xml("AccessDenied"));
    let fake = Fake::start([Step::AnswerEarly(denied), Step::Answer(answer(200, ""))]);
    block_on(async {
        let mut session = session(&fake);
        // Far more than the buffers between the two hold.
        let refused = put(&mut session, "k", 64 << 20).await;
        let error = refused.result.as_ref().expect_err("it was refused");
        // The server's close can outrun its answer; then there is nothing to hear.
        assert!(matches!(error.class, ErrorClass::Denied | ErrorClass::Reset), "{error}");
        assert_eq!((refused.bytes, refused.objects_count), (0, 0));
        assert_eq!(put(&mut session, "k", 1).await.result, Ok(()));
    });
}

#[test]
fn a_success_before_the_content_was_sent_is_none() {
    // Far more than the buffers between the two hold.
    const SIZE: u64 = 64 << 20;
    let ok = || answer_with(200, "ETag: \"e\"\r\n", "");
    let copies = answer(200, "{\"key\":\"a\"}{\"key\":\"b\"}");
    let answers = [ok(), ok(), ok(), ok(), copies, ok()];
    let fake = Fake::start(answers.map(Step::AnswerEarlyAndWait));
    block_on(async {
        let mut session = session(&fake);
        let keys = ["a".to_owned(), "b".to_owned()];
        for case in 0..6 {
            let (key, content) = ("k", &mut Pattern(SIZE));
            let operation = match case {
                0 => Operation::Put { key, content },
                1 => Operation::PutPart { key, upload: "u", number: 1, content },
                2 => Operation::Append { key, offset: 3, content },
                3 => Operation::PutArchive { key, archive: content, members: 9 },
                4 => Operation::Fanout { keys: &keys, content },
                _ => Operation::Post { key, content },
            };
            let early = session.execute(None, operation).await;
            let error = failed(&early, ErrorClass::Protocol, Some(200));
            let message = "the server answered 200 before the request was sent";
            assert_eq!(error.message, message, "operation {case}");
            assert_eq!(
                (early.bytes, early.objects_count, early.server_name),
                (0, 0, None),
                "{case}"
            );
        }
    });
}

#[test]
fn failures_within_a_batch_are_counted() {
    let result = "<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code>\
                  <Message>no</Message></Error></DeleteResult>";
    let fake =
        Fake::answering([answer(200, result), answer(200, "<DeleteResult/>"), answer(200, "")]);
    block_on(async {
        let mut session = session(&fake);
        let partly = delete(&mut session, &["a", "b", "c<"]).await;
        let error = failed(&partly, ErrorClass::Denied, Some(200));
        assert_eq!(error.message, "AccessDenied: `b` was not removed: no");
        assert_eq!(partly.objects_count, 2);
        let all = delete(&mut session, &["a", "b"]).await;
        assert_eq!((all.result, all.objects_count), (Ok(()), 2));
        failed(&delete(&mut session, &["a", "b"]).await, ErrorClass::Protocol, Some(200));
    });
    let request = &fake.requests()[0];
    assert!(request.starts_with("POST /bucket?delete= HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("<Object><Key>c&lt;</Key></Object>"), "{request}");
    assert!(request.contains("\r\ncontent-md5: "), "{request}");
}

#[test]
fn what_is_not_there_is_deleted_already() {
    let fake = Fake::answering([
        answer(204, ""),
        answer(404, &error_xml("NoSuchKey")),
        answer(404, &error_xml("NoSuchBucket")),
    ]);
    block_on(async {
        let mut session = session(&fake);
        for _ in 0..2 {
            let gone = delete(&mut session, &["k"]).await;
            assert_eq!((gone.result, gone.objects_count), (Ok(()), 1));
        }
        failed(&delete(&mut session, &["k"]).await, ErrorClass::NotFound, Some(404));
    });
    assert!(fake.requests()[0].starts_with("DELETE /bucket/k HTTP/1.1\r\n"));
}

#[test]
fn a_stat_tells_the_size_without_a_body() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n".to_owned();
    let sizeless = "HTTP/1.1 200 OK\r\n\r\n".to_owned();
    let unknown = "HTTP/1.1 404 X\r\nContent-Length: 9\r\n\r\n".to_owned();
    let fake = Fake::start([
        Step::Answer(head),
        Step::Answer(unknown),
        // An answer to HEAD ends with its head, with or without a length.
        Step::Answer(sizeless),
    ]);
    block_on(async {
        let mut session = session(&fake);
        let found = stat(&mut session, "k").await;
        assert_eq!((found.result, found.object_size, found.bytes), (Ok(()), Some(1234), 0));
        let missing = stat(&mut session, "k").await;
        failed(&missing, ErrorClass::NotFound, Some(404));
        assert_eq!(missing.object_size, None);
        // Nobody can tell whether that is the object that was written.
        let unsaid = stat(&mut session, "k").await;
        let error = failed(&unsaid, ErrorClass::Protocol, Some(200));
        assert!(error.message.ends_with("the object's size (Content-Length)"), "{error}");
        assert_eq!((unsaid.object_size, unsaid.objects_count), (None, 0));
    });
}

#[test]
fn payload_digests_are_sent_where_wanted() {
    let fake = Fake::answering([answer(200, "")]);
    let mut config = common::config(fake.port);
    (config.sign_payload, config.content_md5) = (true, true);
    block_on(async {
        let driver = S3Driver::new(config).unwrap();
        let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
        assert_eq!(put(&mut session, "k", 0).await.result, Ok(()));
    });
    let request = &fake.requests()[0];
    let empty_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert!(request.contains(&format!("x-amz-content-sha256: {empty_sha256}\r\n")), "{request}");
    assert!(request.contains("content-md5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n"), "{request}");
    assert!(request.contains("content-length: 0\r\n"), "{request}");
}

#[test]
fn anonymous_requests_are_not_signed_and_tokens_are_sent() {
    let fake = Fake::answering([answer(200, ""), answer(200, "")]);
    let ask = |credentials| {
        let mut config = common::config(fake.port);
        config.credentials = credentials;
        config.keep_alive = false;
        block_on(async {
            let driver = S3Driver::new(config).unwrap();
            let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
            assert_eq!(put(&mut session, "k", 5).await.result, Ok(()));
        });
    };
    ask(Credentials::Anonymous);
    ask(Credentials::keys("A", "S", Some("to/ken==")));
    let requests = fake.requests();
    assert!(!requests[0].contains("authorization") && !requests[0].contains("x-amz"));
    assert!(requests[0].ends_with(std::str::from_utf8(&pattern(0..5)).unwrap()));
    assert!(requests[1].contains("x-amz-security-token: to/ken==\r\n"));
    assert!(requests[1].contains("x-amz-date;x-amz-security-token, Signature="));
}

#[test]
fn a_refused_connection_is_a_connect_error_and_the_session_lives_on() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let fake = Fake::answering([answer(200, ""), answer(200, "")]);
    let mut config = common::config(port);
    config.endpoints.extend(common::config(fake.port).endpoints);
    block_on(async {
        let driver = S3Driver::new(config).unwrap();
        assert_eq!(
            driver.endpoints(),
            [format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", fake.port)]
        );
        let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
        let refused = put(&mut session, "k", 1).await;
        let error = failed(&refused, ErrorClass::Connect, None);
        assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
        assert_eq!((refused.endpoint.0, session.endpoint().0), (0, 0));
        // The dead host is left alone.
        for _ in 0..2 {
            let written = put(&mut session, "k", 1).await;
            assert_eq!((written.endpoint.0, written.result), (1, Ok(())));
        }
    });
}

#[test]
fn an_abandoned_operation_leaves_a_usable_session() {
    let fake = Fake::start([Step::Ignore, Step::Answer(answer(200, "content"))]);
    let idle = Fake::answering([]);
    let mut config = common::config(fake.port);
    config.endpoints.extend(common::config(idle.port).endpoints);
    block_on(async {
        let driver = S3Driver::new(config).unwrap();
        let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
        let mut kept = common::Kept::default();
        {
            let operation =
                Operation::Get { key: "k", range: None, version: None, sink: &mut kept };
            let mut execute = pin!(session.execute(None, operation));
            // Until the server has heard of it and ignores it.
            std::future::poll_fn(|cx| {
                assert!(execute.as_mut().poll(cx).is_pending());
                cx.waker().wake_by_ref();
                if fake.requests().is_empty() { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
        }
        assert_eq!(session.endpoint().0, 0);
        // Nothing counts as in flight any more: the other endpoint, never used, is next, then this
        // one again.
        let (_, _) = get(&mut session, "k", None).await;
        assert_eq!(session.endpoint().0, 1);
        let (again, kept) = get(&mut session, "k", None).await;
        assert_eq!((again.endpoint.0, again.result), (0, Ok(())));
        assert_eq!(kept.bytes, b"content");
    });
}
