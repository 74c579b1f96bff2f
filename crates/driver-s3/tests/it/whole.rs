//! Everything once against whole servers: the embedded store always, live ones where there are any.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_driver::{Admin, Driver, RootState, conformance};
use plimsoll_driver_s3::{Credentials, S3Config, S3Driver, S3Session};
use plimsoll_http::{TlsConfig, TlsOptions, Transport};
use plimsoll_model::{ErrorClass, WallTime};
use plimsoll_oracle::{Oracle, OracleConfig};
use plimsoll_testkit::{LiveKind, live};

use super::common::{self, block_on, delete, failed, get, list, pattern, put, stat};

/// Keys that each break a careless encoder somewhere.
const ODD_KEYS: [&str; 10] = [
    "plain",
    "with blank and+plus",
    "100%/%2F",
    "é€😀/日本語",
    "quote'\"<&>",
    "a=b&c=d?e#f",
    "deep/er/and/deeper",
    "~tilde!*();:@$,[]",
    "back\\slash|pipe^caret`tick{}",
    "ümläut\u{308}",
];

/// Signatures are only good at about the present time.
#[expect(clippy::disallowed_methods, reason = "stands in for the engine's clock")]
pub(crate) fn wall_now() -> WallTime {
    WallTime::from_unix_ns(0).after(SystemTime::now().duration_since(UNIX_EPOCH).unwrap())
}

pub(crate) fn config(address: SocketAddr, access_key: &str, secret_key: &str) -> S3Config {
    let mut config = common::config(address.port());
    config.credentials = Credentials::keys(access_key, secret_key, None);
    config.wall_epoch = wall_now();
    config
}

/// Runs everything in the configured bucket, which is not there before and empty after.
fn check_all(config: &S3Config, odd_keys: &[&str]) {
    let driver = S3Driver::new(config.clone()).unwrap();
    block_on(async {
        let clock = common::clock();
        let mut admin = driver.admin(&clock);
        assert_eq!(admin.ensure_root().await, Ok(RootState::Created));
        assert_eq!(admin.ensure_root().await, Ok(RootState::Existed));
        let mut session = driver.open_sessions(&clock, 1).pop().unwrap();
        check_objects(&mut session, odd_keys).await;
        check_batches(&mut session, odd_keys).await;
        check_lists(&mut session).await;

        // What is not below the prefix stays.
        assert_eq!(put(&mut session, "foreign", 3).await.result, Ok(()));
        assert_eq!(admin.sweep("odd/").await, Ok(odd_keys.len() as u64));
        assert_eq!(admin.sweep("list/").await, Ok(25));
        assert_eq!(admin.sweep("list/").await, Ok(0));
        let left = admin.survey("", None, true).await.unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].key.as_str(), left[0].size), ("foreign", 3));
        assert_eq!(delete(&mut session, &["foreign"]).await.result, Ok(()));
        conformance::check(&driver, &clock, "conformance/").await;
    });
}

/// Writes every odd key and reads it in every way.
async fn check_objects(session: &mut S3Session, odd_keys: &[&str]) {
    for (i, odd) in odd_keys.iter().enumerate() {
        let key = format!("odd/{odd}");
        let size = i as u64 * 100_000;
        let written = put(session, &key, size).await;
        assert_eq!((written.result, written.bytes), (Ok(()), size), "{key}");
        let found = stat(session, &key).await;
        assert_eq!((found.result, found.object_size), (Ok(()), Some(size)), "{key}");
        let (read, kept) = get(session, &key, None).await;
        assert_eq!((read.result, read.bytes), (Ok(()), size), "{key}");
        assert!(kept.bytes == pattern(0..size), "{key} has other bytes");
        assert_eq!(read.object_size, Some(size));
        if size > 0 {
            let (read, kept) = get(session, &key, Some((size - 99, 99))).await;
            assert_eq!((read.result, read.object_size), (Ok(()), Some(size)), "{key}");
            assert!(kept.bytes == pattern(size - 99..size), "{key} has other bytes in a range");
        }
    }
    let (missing, _) = get(session, "odd/missing", None).await;
    let error = failed(&missing, ErrorClass::NotFound, Some(404));
    assert!(error.message.starts_with("NoSuchKey: "), "{error}");
    failed(&stat(session, "odd/missing").await, ErrorClass::NotFound, Some(404));
    let (outside, _) = get(session, "odd/plain", Some((5, 5))).await;
    failed(&outside, ErrorClass::Client, Some(416));

    let (completion, mut entries) = list(session, "odd/", 3).await;
    assert_eq!(completion.result, Ok(()));
    entries.sort_by_key(|entry| entry.1);
    let expected: Vec<(String, u64)> =
        (0u64..).zip(odd_keys).map(|(i, odd)| (format!("odd/{odd}"), i * 100_000)).collect();
    assert_eq!(entries, expected);
}

async fn check_batches(session: &mut S3Session, odd_keys: &[&str]) {
    let keys: Vec<String> = odd_keys.iter().map(|odd| format!("batch/{odd}")).collect();
    for key in &keys {
        assert_eq!(put(session, key, 1).await.result, Ok(()), "{key}");
    }
    let mut all: Vec<&str> = keys.iter().map(String::as_str).collect();
    all.push("batch/never was");
    let removed = delete(session, &all).await;
    assert_eq!((removed.result, removed.objects_count), (Ok(()), odd_keys.len() as u32 + 1));
    assert_eq!(list(session, "batch/", 1000).await.1, []);
    for _ in 0..2 {
        let single = delete(session, &["batch/single é"]).await;
        assert_eq!((single.result, single.objects_count), (Ok(()), 1));
        assert_eq!(put(session, "batch/single é", 1).await.result, Ok(()));
    }
    assert_eq!(delete(session, &["batch/single é"]).await.result, Ok(()));
}

async fn check_lists(session: &mut S3Session) {
    for i in 0..25 {
        assert_eq!(put(session, &format!("list/{i:02} é"), i).await.result, Ok(()));
    }
    for page_size in [1, 7, 25, 1000] {
        let (completion, entries) = list(session, "list/", page_size).await;
        assert_eq!((completion.result, completion.objects_count), (Ok(()), 25));
        let expected: Vec<(String, u64)> = (0..25).map(|i| (format!("list/{i:02} é"), i)).collect();
        assert_eq!(entries, expected, "pages of {page_size}");
    }
}

pub(crate) fn oracle() -> Oracle {
    Oracle::start(OracleConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        access_key: "oracle-key".to_owned(),
        secret_key: "oracle-secret".to_owned(),
        capacity_bytes: 64 << 20,
        threads: 1,
        anonymous: false,
        domain: None,
        md5_etags: false,
        tls: None,
        script: None,
        seed: 0,
    })
    .unwrap()
}

#[test]
fn everything_against_the_embedded_store() {
    let oracle = oracle();
    let mut config = config(oracle.addr(), "oracle-key", "oracle-secret");
    check_all(&config, &ODD_KEYS);
    (config.sign_payload, config.content_md5) = (true, true);
    config.bucket = "other-bucket".to_owned();
    config.region = Some("eu-west-1".to_owned());
    check_all(&config, &ODD_KEYS);
}

/// Keys that S3 takes as they are, but that servers on a file system refuse or tidy up.
#[test]
fn keys_are_never_normalised() {
    let oracle = oracle();
    let driver = S3Driver::new(config(oracle.addr(), "oracle-key", "oracle-secret")).unwrap();
    let keys = ["/lead", "//two", "a//b", "a/./b", "a/../b", "..", "end/", "c\u{7f}\n", " x "];
    block_on(async {
        let clock = common::clock();
        assert_eq!(driver.admin(&clock).ensure_root().await, Ok(RootState::Created));
        let mut session = driver.open_sessions(&clock, 1).pop().unwrap();
        for (key, size) in keys.iter().zip(1..) {
            assert_eq!(put(&mut session, key, size).await.result, Ok(()), "{key:?}");
        }
        for (key, size) in keys.iter().zip(1..) {
            assert_eq!(stat(&mut session, key).await.object_size, Some(size), "{key:?}");
        }
        let mut listed: Vec<(String, u64)> = list(&mut session, "", 2).await.1;
        listed.sort_by_key(|entry| entry.1);
        assert!(listed.iter().map(|entry| entry.0.as_str()).eq(keys));
        let removed = delete(&mut session, &keys).await;
        assert_eq!((removed.result, removed.objects_count), (Ok(()), 9));
        assert_eq!(list(&mut session, "", 2).await.1, []);
    });
}

#[test]
fn wrong_credentials_are_named() {
    let oracle = oracle();
    for (access_key, secret_key, code) in
        [("oracle-key", "wrong", "SignatureDoesNotMatch"), ("nobody", "x", "InvalidAccessKeyId")]
    {
        let driver = S3Driver::new(config(oracle.addr(), access_key, secret_key)).unwrap();
        let error = block_on(driver.admin(&common::clock()).ensure_root()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Denied);
        let begin = format!("bucket `bucket` cannot be read with these credentials: {code}");
        assert!(error.message.starts_with(&begin), "{error}");
        assert!(!error.message.contains("wrong"), "{error}");
    }
}

#[test]
fn everything_against_live_servers() {
    for server in LiveKind::ALL.into_iter().filter_map(live) {
        let address = server.host().parse().unwrap();
        let mut config = config(address, &server.access_key, &server.secret_key);
        // The servers may have seen this test before.
        let now_ns = config.wall_epoch.as_unix_ns();
        let over = format!("{:?}", config.transport).to_lowercase();
        config.bucket = format!("driver-s3-whole-{over}-{now_ns}");
        config.tls = server.ca.clone().map(|ca_file| {
            TlsConfig::load(&TlsOptions { ca_file: Some(ca_file), ..TlsOptions::default() })
                .unwrap()
        });
        if config.tls.is_some() {
            config.transport = Transport::Sockets;
        }
        // It takes a backslash for a slash, but not where several are removed at once.
        let has_backslashes = server.kind != LiveKind::SeaweedS3;
        let taken = |key: &&str| has_backslashes || !key.contains('\\');
        let odd_keys: Vec<&str> = ODD_KEYS.into_iter().filter(taken).collect();
        check_all(&config, &odd_keys);
        config.bucket = format!("driver-s3-signed-{over}-{now_ns}");
        (config.sign_payload, config.content_md5) = (true, true);
        check_all(&config, &odd_keys);
    }
}
