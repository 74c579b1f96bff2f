//! The admin against a scripted server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use plimsoll_driver::{Admin, Dates, DriverError, MissingRoot, RootState};
use plimsoll_driver_s3::{AdminLimits, Feature, S3Admin, S3Config, S3Driver};
use plimsoll_model::{Ability, ErrorClass};

use crate::common::{self, block_on};
use crate::fake::{Fake, Step, answer, error_xml};

pub(crate) fn admin(fake: &Fake, region: Option<&str>) -> S3Admin {
    let mut config = common::config(fake.port);
    config.region = region.map(str::to_owned);
    S3Driver::new(config).unwrap().admin(&common::clock())
}

/// Returns an admin that waits hardly at all.
fn impatient(fake: &Fake) -> S3Admin {
    let limits = AdminLimits { stall_timeout: Duration::from_millis(30), ..AdminLimits::default() };
    let driver = S3Driver::new(common::config(fake.port)).unwrap();
    driver.admin_within(&common::clock(), limits)
}

fn ensured(answers: Vec<String>, region: Option<&str>) -> (Result<RootState, DriverError>, Fake) {
    let fake = Fake::answering(answers);
    let state = block_on(admin(&fake, region).ensure_root());
    (state, fake)
}

pub(crate) fn page(keys: &[&str]) -> String {
    let entries: String = keys
        .iter()
        .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"))
        .collect();
    answer(200, &format!("<ListBucketResult>{entries}</ListBucketResult>"))
}

/// The answer of a bucket that keeps no versions.
fn unversioned() -> String {
    answer(200, "<VersioningConfiguration/>")
}

/// The answer of a bucket that retains nothing.
fn unlocked() -> String {
    answer(404, &error_xml("ObjectLockConfigurationNotFoundError"))
}

/// The answers of a bucket without unfinished uploads, to asking for some and for all.
pub(crate) fn no_uploads() -> [String; 2] {
    let none = || answer(200, "<ListMultipartUploadsResult/>");
    [none(), none()]
}

pub(crate) fn head(status: u16) -> String {
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

/// Returns the admin of a bucket that, where it does not exist, is treated so.
pub(crate) fn admin_for(fake: &Fake, missing_bucket: MissingRoot) -> S3Admin {
    let config = S3Config { missing_bucket, ..common::config(fake.port) };
    S3Driver::new(config).unwrap().admin(&common::clock())
}

#[test]
fn a_bucket_that_does_not_exist_is_not_created_unasked() {
    let fake = Fake::answering(vec![head(404), head(404), answer(200, "")]);
    let mut admin = admin_for(&fake, MissingRoot::Refuse);
    let error = block_on(admin.make_ready(&[Ability::Put], "run/")).unwrap_err();
    let sentence = "bucket `bucket` does not exist; create it, or add `create_bucket`";
    assert_eq!((error.message.as_str(), error.class), (sentence, ErrorClass::NotFound));
    assert_eq!((fake.requests().len(), admin.has_created()), (1, false));
    // What a stage of a workload makes is asked for.
    assert_eq!(block_on(admin.make_bucket()), Ok(RootState::Created));
}

#[test]
fn times_are_those_of_the_store() {
    let dates_of = |head: &str| {
        let fake = Fake::answering([head.to_owned()]);
        block_on(admin(&fake, None).dates_of("k"))
    };
    let stated = "Date: Sat, 21 Nov 2026 09:00:00 GMT\r\n\
                  Last-Modified: Sat, 21 Nov 2026 08:00:00 GMT\r\nContent-Length: 0\r\n\r\n";
    let now = "Sat, 21 Nov 2026 09:00:00 GMT".to_owned();
    let modified = "Sat, 21 Nov 2026 08:00:00 GMT".to_owned();
    let of = |status: u16| dates_of(&format!("HTTP/1.1 {status} X\r\n{stated}"));
    assert_eq!(of(200), Ok(Some(Dates { now: now.clone(), modified })));
    assert_eq!(of(404), Ok(None));
    // What is encrypted with a key of somebody else's has no date for us.
    assert_eq!(of(400), Ok(Some(Dates { now, modified: String::new() })));
    assert!(of(503).is_err());
    let silent = dates_of("HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(silent, Ok(Some(Dates::default())));
}

#[test]
fn a_bucket_tells_by_its_mark_who_made_it() {
    let told = |answers| {
        let fake = Fake::answering(answers);
        let told = block_on(admin(&fake, None).is_marked());
        (told, fake.requests().len())
    };
    assert_eq!(told(vec![head(404)]), (Ok(None), 1));
    // Who may list may read, whatever HEAD says.
    assert_eq!(told(vec![head(403), page(&[]), head(404)]), (Ok(Some(false)), 3));
    assert_eq!(told(vec![head(200), head(403)]), (Ok(Some(false)), 2));
    let denied = answer(403, &error_xml("AccessDenied"));
    let error = told(vec![head(403), denied]).0.unwrap_err();
    let sentence = "bucket `bucket` cannot be read with these credentials: AccessDenied";
    assert!(error.message.starts_with(sentence), "{error}");
    let tagged = |key: &str| {
        let tag = format!("<Tag><Key>{key}</Key><Value>a-run</Value></Tag>");
        let other = "<Tag><Key>owner</Key><Value>plimsoll-made</Value></Tag>";
        answer(200, &format!("<Tagging><TagSet>{other}{tag}</TagSet></Tagging>"))
    };
    let none = || answer(404, &error_xml("NoSuchTagSet"));
    assert_eq!(told(vec![head(200), none()]), (Ok(Some(false)), 2));
    assert_eq!(told(vec![head(200), answer(501, &error_xml("NotImplemented"))]).0, Ok(Some(false)));
    assert_eq!(told(vec![head(200), tagged("else")]), (Ok(Some(false)), 2));
    assert_eq!(told(vec![head(200), tagged("plimsoll-made")]), (Ok(Some(true)), 2));
    for answers in [vec![head(503), head(503)], vec![head(200), head(503)]] {
        let error = told(answers).0.unwrap_err();
        assert!(error.message.starts_with("bucket `bucket` cannot be "), "{error}");
    }
    let expired = answer(400, &error_xml("ExpiredToken"));
    let error = told(vec![head(400), expired]).0.unwrap_err();
    let sentence = "bucket `bucket` cannot be read, as the credentials from `access_key` have \
                    expired: ExpiredToken";
    assert!(error.message.starts_with(sentence), "{error}");
    let no_name = answer(400, &error_xml("InvalidBucketName"));
    let error = told(vec![head(400), no_name]).0.unwrap_err();
    let sentence = "bucket `bucket` cannot be read: InvalidBucketName";
    assert!(error.message.starts_with(sentence), "{error}");

    let fake = Fake::answering(vec![head(200)]);
    block_on(admin(&fake, None).mark("a-run")).unwrap();
    let request = &fake.requests()[0];
    assert!(request.starts_with("PUT /bucket?tagging= HTTP/1.1\r\n"), "{request}");
    let tag = "<Tag><Key>plimsoll-made</Key><Value>a-run</Value></Tag>";
    assert!(request.contains(tag), "{request}");
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
        "bucket `bucket` does not exist and cannot be made: AccessDenied: m",
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
    let objects = [
        unversioned(),
        unlocked(),
        page(&["run/1", "foreign/1", "run/2"]),
        done(),
        page(&["run/3", "run"]),
        done(),
        page(&["foreign/1"]),
    ];
    let fake = Fake::answering(objects.into_iter().chain(no_uploads()));
    assert_eq!(block_on(admin(&fake, None).sweep("run/")), Ok(3));
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
    let answers = [unversioned(), unlocked()].into_iter().chain(stuck.take(1_000).flatten());
    let fake = Fake::answering(answers);
    let error = block_on(admin(&fake, None).sweep("run/")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.contains("`run/1` is still listed"), "{error}");

    let fake = Fake::answering([
        unversioned(),
        unlocked(),
        page(&["run/1"]),
        answer(
            200,
            "<DeleteResult><Error><Key>run/1</Key><Code>AccessDenied</Code></Error></DeleteResult>",
        ),
    ]);
    let error = block_on(admin(&fake, None).sweep("run/")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Denied, "{error}");
}

/// Returns a page of versions; a mark of deletion has no size.
pub(crate) fn versions(entries: &[(&str, &str, Option<u64>)]) -> String {
    let entry = |(key, version, size): &(&str, &str, Option<u64>)| {
        let (name, size) = match size {
            Some(size) => ("Version", format!("<Size>{size}</Size>")),
            None => ("DeleteMarker", String::new()),
        };
        format!("<{name}><Key>{key}</Key><VersionId>{version}</VersionId>{size}</{name}>")
    };
    let entries: String = entries.iter().map(entry).collect();
    answer(200, &format!("<ListVersionsResult>{entries}</ListVersionsResult>"))
}

#[test]
fn sweeping_takes_versions_marks_and_uploads_and_lifts_our_retention() {
    let uploads = "<ListMultipartUploadsResult>\
        <Upload><Key>run/5</Key><UploadId>u1</UploadId></Upload>\
        <Upload><Key>run/6</Key><UploadId>u3</UploadId></Upload>\
        <Upload><Key>other/5</Key><UploadId>u2</UploadId></Upload></ListMultipartUploadsResult>";
    let lock = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>\
        </ObjectLockConfiguration>";
    let fake = Fake::answering([
        answer(
            200,
            "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>",
        ),
        answer(200, lock),
        versions(&[
            ("run/1", "v2", None),
            ("run/1", "v1", Some(5)),
            ("foreign", "v9", Some(1)),
            ("run/2", "null", Some(6)),
        ]),
        answer(200, "<DeleteResult/>"),
        versions(&[]),
        answer(200, "<ListMultipartUploadsResult/>"),
        answer(200, uploads),
        // Of its key's list the first is one, and the second is only remembered.
        answer(200, uploads),
        answer(200, "<ListMultipartUploadsResult/>"),
        answer(204, ""),
    ]);
    assert_eq!(block_on(admin(&fake, None).sweep("run/")), Ok(2), "marks are no objects");
    let requests = fake.requests();
    let removal = &requests[3];
    assert!(removal.contains("x-amz-bypass-governance-retention: true\r\n"), "{removal}");
    for (key, version) in [("run/1", "v2"), ("run/1", "v1"), ("run/2", "null")] {
        let object = format!("<Key>{key}</Key><VersionId>{version}</VersionId>");
        assert!(removal.contains(&object), "{removal}");
    }
    assert!(!removal.contains("foreign"), "{removal}");
    assert!(requests[5].contains("prefix=run%2F&uploads="), "{}", requests[5]);
    assert!(requests[6].contains("prefix=&uploads="), "{}", requests[6]);
    assert!(requests[7].contains("prefix=run%2F5&uploads="), "{}", requests[7]);
    assert!(requests[8].contains("prefix=run%2F6&uploads="), "{}", requests[8]);
    assert!(requests[9].starts_with("DELETE /bucket/run/5?uploadId=u1 "), "{}", requests[9]);
    assert_eq!(requests.len(), 10);
}

#[test]
fn a_server_without_versions_and_uploads_is_swept_all_the_same() {
    let unknown = || answer(501, &error_xml("NotImplemented"));
    let fake = Fake::answering([
        unknown(),
        unknown(),
        page(&["run/1"]),
        answer(200, "<DeleteResult/>"),
        page(&[]),
        unknown(),
        unknown(),
    ]);
    assert_eq!(block_on(admin(&fake, None).sweep("run/")), Ok(1));
    assert_eq!(fake.requests().len(), 7);
}

#[test]
fn a_bucket_without_a_lock_is_refused_and_left_alone() {
    let lock = |state| {
        let name = "ObjectLockEnabled";
        let body =
            format!("<ObjectLockConfiguration><{name}>{state}</{name}></ObjectLockConfiguration>");
        answer(200, &body)
    };
    let ensure = |answers: Vec<String>| {
        let fake = Fake::answering(answers);
        let state = block_on(admin(&fake, None).ensure_root_with_lock());
        (state.map_err(|error| error.message), fake)
    };
    let (state, fake) = ensure(vec![head(404), answer(200, ""), lock("Enabled")]);
    assert_eq!(state, Ok(RootState::Created));
    assert!(fake.requests()[1].contains("x-amz-bucket-object-lock-enabled: true\r\n"));
    assert_eq!(ensure(vec![head(200), lock("Enabled")]).0, Ok(RootState::Existed));

    let none = answer(404, &error_xml("ObjectLockConfigurationNotFoundError"));
    let (state, fake) = ensure(vec![head(200), none]);
    assert!(state.unwrap_err().contains("name another `bucket`"));
    assert!(fake.requests().iter().all(|request| !request.starts_with("PUT")));
}

#[test]
fn versioning_is_switched_on_once() {
    let enabled = || {
        answer(200, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
    };
    let fake = Fake::answering([enabled()]);
    assert_eq!(block_on(admin(&fake, None).ensure_versioning()), Ok(()));

    let fake = Fake::answering([unversioned(), answer(200, "")]);
    assert_eq!(block_on(admin(&fake, None).ensure_versioning()), Ok(()));
    let request = &fake.requests()[1];
    assert!(request.starts_with("PUT /bucket?versioning= "), "{request}");
    assert!(request.contains("<Status>Enabled</Status>"), "{request}");
}

#[test]
fn sweeping_everything_is_no_option() {
    let fake = Fake::answering([]);
    let mut admin = admin(&fake, None);
    let swept = catch_unwind(AssertUnwindSafe(|| block_on(admin.sweep(""))));
    assert!(swept.is_err());
    assert!(fake.requests().is_empty());
}

#[test]
fn a_survey_stops_at_its_limit_and_at_slashes() {
    let truncated = "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>\
        <Contents><Key>b</Key><Size>2</Size></Contents><IsTruncated>true</IsTruncated>\
        <NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
    let fake = Fake::answering([answer(200, truncated), answer(200, truncated)]);
    let found = block_on(admin(&fake, None).survey("", Some(3), false)).unwrap();
    let keys: Vec<(&str, u64)> = found.iter().map(|o| (o.key.as_str(), o.size)).collect();
    assert_eq!(keys, [("a", 1), ("b", 2), ("a", 1)]);
    let requests = fake.requests();
    assert!(requests[0].starts_with("GET /bucket?delimiter=%2F&encoding-type=url&"));
    assert!(requests[0].contains("&max-keys=3&"));
    let none = block_on(admin(&fake, None).survey("", Some(0), true));
    assert_eq!((none, fake.requests().len()), (Ok(Vec::new()), 2));
}

#[test]
fn nothing_of_administration_waits_for_ever() {
    let silent = || Fake::start(std::iter::repeat_with(|| Step::Ignore).take(8));
    let check = |what: &str, waited_for: &str, result: Result<(), DriverError>| {
        let error = result.expect_err(what);
        assert_eq!((error.class, error.status), (ErrorClass::Timeout, None), "{what}: {error}");
        let message = &error.message;
        assert!(message.starts_with(&format!("{waited_for} bucket `bucket`: ")), "{message}");
        assert!(message.ends_with(" did nothing for 30ms: no answer came"), "{message}");
    };
    block_on(async {
        let fake = silent();
        check("root", "asking for", impatient(&fake).ensure_root().await.map(drop));
        check("lock", "asking for", impatient(&fake).has_lock().await.map(drop));
        check("versions", "asking for", impatient(&fake).keeps_versions().await.map(drop));
        let survey = impatient(&fake).survey("", None, true).await;
        check("survey", "listing", survey.map(drop));
        let survey = impatient(&fake).survey_versions("", None).await;
        check("survey of versions", "listing", survey.map(drop));
        let survey = impatient(&fake).survey_uploads("p").await;
        check("survey of uploads", "listing", survey.map(drop));
        let fake = silent();
        check("sweep", "asking for", impatient(&fake).sweep("p/").await.map(drop));
        let fake = silent();
        let probed = impatient(&fake).probe(Feature::Append, "p/").await;
        assert_eq!(probed.unwrap_err().class, ErrorClass::Timeout);
    });
}

#[test]
fn an_answer_that_stops_half_way_is_not_waited_for() {
    let half = "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n<ListBucketResult>".to_owned();
    let fake = Fake::start([Step::Answer(half), Step::Ignore]);
    let error = block_on(impatient(&fake).survey("", None, true)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Timeout, "{error}");
    let place = "it is inside the answer's body after 18 of 100 bytes";
    assert!(error.message.ends_with(place), "{error}");
}

#[test]
fn a_call_that_is_given_up_leaves_a_usable_admin_and_says_what_it_did() {
    let fake = Fake::start([
        Step::Answer(unversioned()),
        Step::Answer(unlocked()),
        Step::Answer(page(&["run/1", "run/2"])),
        Step::Answer(answer(200, "<DeleteResult/>")),
        Step::Ignore,
        Step::Answer(page(&["run/3"])),
    ]);
    block_on(async {
        let mut admin = admin(&fake, None);
        let removed = admin.removed_count();
        {
            let mut sweep = pin!(admin.sweep("run/"));
            // Until the server ignores it.
            while fake.requests().len() < 5 {
                let polled = std::future::poll_fn(|cx| Poll::Ready(sweep.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(removed.load(Ordering::Relaxed), 2);
        let found = admin.survey("run/", None, true).await.unwrap();
        assert_eq!(found.iter().map(|object| &*object.key).collect::<Vec<_>>(), ["run/3"]);
    });
}

#[test]
fn a_survey_ends_where_nobody_said_how_long_it_may_be() {
    let more = |keys: &[&str], token: &str| {
        page(keys).replace(
            "</ListBucketResult>",
            &format!(
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}\
                 </NextContinuationToken></ListBucketResult>"
            ),
        )
    };
    let grown = |answer: String| {
        // The length of the body is stated in front of it.
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        crate::fake::answer(200, body)
    };
    let fake = Fake::answering([
        grown(more(&["a", "b"], "1")),
        grown(more(&["c", "d"], "2")),
        page(&["a", "b", "c"]),
        grown(more(&["a", "b"], "1")),
        grown(more(&["c", "d"], "2")),
    ]);
    let limits = AdminLimits { entries_max: 3, ..AdminLimits::default() };
    block_on(async {
        let driver = S3Driver::new(common::config(fake.port)).unwrap();
        let mut admin = driver.admin_within(&common::clock(), limits);
        let error = admin.survey("p", None, true).await.unwrap_err();
        let start = "the list of bucket `bucket` below `p` is longer than 3 entries";
        assert!(error.message.starts_with(start), "{error}");
        assert_eq!(admin.survey("p", None, true).await.map(|found| found.len()), Ok(3));
        // A number that is asked for holds.
        assert_eq!(admin.survey("p", Some(4), true).await.map(|found| found.len()), Ok(4));
    });
}

#[test]
fn a_sweep_ends_where_what_was_removed_comes_back_in_turns() {
    let turns = std::iter::repeat_with(|| {
        let done = || answer(200, "<DeleteResult/>");
        [page(&["run/1"]), done(), page(&["run/2"]), done()]
    });
    let fake =
        Fake::answering([unversioned(), unlocked()].into_iter().chain(turns.take(100).flatten()));
    let error = block_on(admin(&fake, None).sweep("run/")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.ends_with("is still listed after its removal"), "{error}");
}

#[test]
fn a_server_that_takes_a_fan_out_for_something_else_has_none() {
    let [none, nothing] = no_uploads();
    // As SeaweedFS: the form of one object is taken, and nothing said.
    let taken = "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
    let fake = Fake::answering([taken, unversioned(), unlocked(), page(&["p/x"]), none, nothing]);
    let offers = block_on(admin(&fake, None).probe(Feature::Fanout, "p/"));
    assert_eq!(offers, Ok(false));
}
