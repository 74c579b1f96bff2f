//! What each server offers beyond reading and writing, measured: each operation and each option is
//! tried on every live server and on the embedded store, and the outcome must be what
//! `docs/drivers/s3.md` says.

use std::time::Duration;

use plimsoll_driver::{Admin, Completion, Driver, DriverError, Operation, Session, Settled};
use plimsoll_driver_s3::{
    Checksum, Encryption, Feature, RequestOptions, S3Admin, S3Config, S3Driver, S3Session,
    Signature,
};
use plimsoll_http::{TlsConfig, TlsOptions};
use plimsoll_model::{ErrorClass, SharedClock};
use plimsoll_testkit::{LiveKind, live};

use crate::common::{self, Kept, Pattern, block_on, pattern};
use crate::whole::{self, wall_now};

const MIB: u64 = 1 << 20;

/// One row of the table: what is tried, and how.
type Row = (&'static str, fn(&Fixture) -> Result<(), DriverError>);

const ROWS: [Row; 37] = [
    ("versions: PUT, GET, STAT, LIST, DELETE of one", versions),
    ("retention and its lifting", retention),
    ("upload in parts, GET of a part", parts),
    ("parts below 5 MiB", |b| b.probe(Feature::SmallParts)),
    ("PUT in parts above `--part.size`", |b| b.put_in_parts(RequestOptions::default())),
    ("unfinished uploads are listed and given up", unfinished_uploads),
    ("POST of a form", post),
    ("append", |b| b.probe(Feature::Append)),
    ("file of a zip archive", |b| b.probe(Feature::Zip)),
    ("archive taken apart", |b| b.probe(Feature::Snowball)),
    ("fan-out", |b| b.probe(Feature::Fanout)),
    ("SSE-C", |b| b.put_with(encrypted(Encryption::SseC { key: [7; 32] }))),
    ("SSE-C in parts", |b| b.put_in_parts(encrypted(Encryption::SseC { key: [7; 32] }))),
    ("SSE-S3", |b| b.put_with(encrypted(Encryption::SseS3))),
    ("SSE-S3 in parts", |b| b.put_in_parts(encrypted(Encryption::SseS3))),
    ("SSE-KMS", |b| b.put_with(encrypted(Encryption::SseKms { key_id: None }))),
    ("SSE-KMS in parts", |b| b.put_in_parts(encrypted(Encryption::SseKms { key_id: None }))),
    ("SSE-KMS with a key that is not there", |b| {
        let key_id = Some("plimsoll-no-such-key".to_owned());
        b.put_with(encrypted(Encryption::SseKms { key_id }))
    }),
    ("checksum CRC32", |b| b.put_with(summed(Checksum::Crc32))),
    ("checksum CRC32 in parts", |b| b.put_in_parts(summed(Checksum::Crc32))),
    ("checksum CRC32-FO", |b| b.put_with(summed(Checksum::Crc32FullObject))),
    ("checksum CRC32-FO in parts", |b| b.put_in_parts(summed(Checksum::Crc32FullObject))),
    ("checksum CRC32C", |b| b.put_with(summed(Checksum::Crc32c))),
    ("checksum CRC32C in parts", |b| b.put_in_parts(summed(Checksum::Crc32c))),
    ("checksum CRC32C-FO", |b| b.put_with(summed(Checksum::Crc32cFullObject))),
    ("checksum CRC32C-FO in parts", |b| b.put_in_parts(summed(Checksum::Crc32cFullObject))),
    ("checksum CRC64NVME", |b| b.put_with(summed(Checksum::Crc64Nvme))),
    ("checksum CRC64NVME in parts", |b| b.put_in_parts(summed(Checksum::Crc64Nvme))),
    ("checksum SHA1", |b| b.put_with(summed(Checksum::Sha1))),
    ("checksum SHA1 in parts", |b| b.put_in_parts(summed(Checksum::Sha1))),
    ("checksum SHA256", |b| b.put_with(summed(Checksum::Sha256))),
    ("checksum SHA256 in parts", |b| b.put_in_parts(summed(Checksum::Sha256))),
    ("storage class REDUCED_REDUNDANCY", |b| {
        let storage_class = Some("REDUCED_REDUNDANCY".to_owned());
        b.put_with(RequestOptions { storage_class, ..RequestOptions::default() })
    }),
    ("tags", |b| {
        let tags = vec![("a b".to_owned(), "1+2 / 3".to_owned())];
        b.put_with(RequestOptions { tags, ..RequestOptions::default() })
    }),
    ("metadata", |b| {
        let metadata = vec![("Some-Name".to_owned(), "a value".to_owned())];
        b.put_with(RequestOptions { metadata, ..RequestOptions::default() })
    }),
    ("`If-None-Match: *`", if_none_match),
    ("Signature V2", |b| {
        b.put_with(RequestOptions { signature: Signature::V2, ..RequestOptions::default() })
    }),
];

/// A server under test, with a bucket of its own.
struct Fixture {
    config: S3Config,
    clock: SharedClock,
}

impl Fixture {
    fn new(mut config: S3Config) -> Self {
        config.bucket = format!("driver-s3-offers-{}", config.wall_epoch.as_unix_ns());
        let bench = Self { config, clock: common::clock() };
        bench.with(RequestOptions::default(), async |admin, _| admin.ensure_root().await).unwrap();
        bench
    }

    /// Runs `work` with an admin, and a session of these options, and sweeps afterwards.
    fn with<T>(
        &self,
        options: RequestOptions,
        work: impl AsyncFnOnce(&mut S3Admin, &mut S3Session) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let driver = |options| S3Driver::new(S3Config { options, ..self.config.clone() });
        let wanted = driver(options).map_err(refused)?;
        let plain = driver(RequestOptions::default()).map_err(refused)?;
        block_on(async {
            let mut admin = plain.admin(&self.clock);
            let mut session = wanted.open_sessions(&self.clock, 1).pop().unwrap();
            let outcome = work(&mut admin, &mut session).await;
            admin.sweep("offers/").await.unwrap();
            outcome
        })
    }

    fn probe(&self, feature: Feature) -> Result<(), DriverError> {
        let offers = self.with(RequestOptions::default(), async |admin, _| {
            admin.probe(feature, "offers/").await
        })?;
        if offers { Ok(()) } else { Err(ignored()) }
    }

    /// Writes with one request and reads again.
    fn put_with(&self, options: RequestOptions) -> Result<(), DriverError> {
        self.with(options, async |_, session| {
            for size in [0, 100_001] {
                put_and_read(session, "offers/é k", size).await?;
            }
            Ok(())
        })
    }

    /// Writes in three parts and reads again.
    fn put_in_parts(&self, options: RequestOptions) -> Result<(), DriverError> {
        let options = RequestOptions { part_size: Some(5 * MIB), ..options };
        self.with(options, async |_, session| put_and_read(session, "offers/parts", 11 * MIB).await)
    }
}

fn encrypted(encryption: Encryption) -> RequestOptions {
    RequestOptions { encryption, ..RequestOptions::default() }
}

fn summed(checksum: Checksum) -> RequestOptions {
    RequestOptions { checksum: Some(checksum), ..RequestOptions::default() }
}

fn refused(error: plimsoll_driver_s3::ConfigError) -> DriverError {
    DriverError::new(ErrorClass::Client, error.to_string())
}

/// What stands for a server that takes a request and does not do what it asks.
fn ignored() -> DriverError {
    DriverError::new(ErrorClass::Protocol, "ignored")
}

async fn run(session: &mut S3Session, operation: Operation<'_>) -> Result<Completion, DriverError> {
    let mut completion = session.execute(None, operation).await;
    let result = std::mem::replace(&mut completion.result, Ok(()));
    result.map(|()| completion)
}

async fn put_and_read(session: &mut S3Session, key: &str, size: u64) -> Result<(), DriverError> {
    let written = run(session, Operation::Put { key, content: &mut Pattern(size) }).await?;
    assert_eq!((written.bytes, written.objects_count), (size, 1), "{key}");
    assert!(size == 0 || written.last_byte_sent <= written.first_byte, "{written:?}");
    let stated = run(session, Operation::Stat { key, version: None }).await?;
    assert_eq!(stated.object_size, Some(size));
    assert!(read(session, key, None).await? == pattern(0..size), "{key} has other bytes");
    Ok(())
}

async fn read(
    session: &mut S3Session,
    key: &str,
    version: Option<&str>,
) -> Result<Vec<u8>, DriverError> {
    let mut kept = Kept::default();
    run(session, Operation::Get { key, range: None, version, sink: &mut kept }).await?;
    Ok(kept.bytes)
}

fn versions(bench: &Fixture) -> Result<(), DriverError> {
    // A bucket of its own: one that keeps versions cannot be made to stop that.
    let mut config = bench.config.clone();
    config.bucket.push_str("-versions");
    let bench = Fixture { config, clock: bench.clock.clone() };
    bench.with(RequestOptions::default(), async |admin, session| {
        admin.ensure_root().await?;
        admin.ensure_versioning().await?;
        admin.ensure_versioning().await?;
        let key = "offers/é v";
        let mut tags = Vec::new();
        for size in [10, 20, 30] {
            let written = run(session, Operation::Put { key, content: &mut Pattern(size) }).await?;
            tags.push(String::from(written.server_name.ok_or_else(ignored)?));
        }
        let first = Some(tags[0].as_str());
        let stated = run(session, Operation::Stat { key, version: first }).await?;
        assert_eq!(stated.object_size, Some(10));
        assert_eq!(read(session, key, first).await?, pattern(0..10));
        assert_eq!(read(session, key, None).await?, pattern(0..30));
        run(session, Operation::Delete { keys: &[key.to_owned()] }).await?;

        for page_size in [1, 2, 1_000] {
            let mut kept = Kept::default();
            let prefix = "offers/";
            let listed = run(
                session,
                Operation::ListVersions { prefix, page_size, pages_max: None, sink: &mut kept },
            )
            .await?;
            assert_eq!(listed.objects_count, 4, "three versions and a mark of deletion");
            let mut sizes: Vec<u64> = kept.entries.iter().map(|entry| entry.1).collect();
            sizes.sort_unstable();
            assert_eq!(sizes, [0, 10, 20, 30]);
            assert!(kept.entries.iter().all(|entry| entry.0 == key), "{:?}", kept.entries);
        }
        for tag in &tags[..2] {
            run(session, Operation::DeleteVersion { key, version: tag }).await?;
        }
        let found = admin.survey_versions("offers/", None).await?;
        let (markers, left): (Vec<_>, Vec<_>) = found.iter().partition(|found| found.is_marker);
        assert_eq!((markers.len(), left.len(), &left[0].version), (1, 1, &tags[2]));
        assert_eq!(admin.sweep("offers/").await, Ok(1), "the mark is no object");
        assert_eq!(admin.survey_versions("offers/", None).await?, []);
        Ok(())
    })
}

fn retention(bench: &Fixture) -> Result<(), DriverError> {
    let mut config = bench.config.clone();
    config.bucket.push_str("-lock");
    let until = config.wall_epoch.after(Duration::from_secs(3_600));
    let bench = Fixture { config, clock: bench.clock.clone() };
    bench.with(RequestOptions::default(), async |admin, session| {
        admin.ensure_root_with_lock().await?;
        admin.ensure_root_with_lock().await?;
        assert!(admin.probe(Feature::Lock, "offers/").await?);
        let key = "offers/kept";
        let written = run(session, Operation::Put { key, content: &mut Pattern(10) }).await?;
        // A server may retain objects without keeping versions of them.
        let version = written.server_name.as_deref();
        for _ in 0..2 {
            run(session, Operation::Retain { key, version, until }).await?;
        }
        let removed = match version {
            Some(version) => run(session, Operation::DeleteVersion { key, version }).await,
            None => run(session, Operation::Delete { keys: &[key.to_owned()] }).await,
        };
        if removed.is_ok() {
            return Err(ignored());
        }
        assert_eq!(admin.sweep("offers/").await?, 1, "the admin may lift it");
        assert_eq!(admin.survey("offers/", None, true).await?, []);
        Ok(())
    })
}

fn parts(bench: &Fixture) -> Result<(), DriverError> {
    bench.with(RequestOptions::default(), async |_, session| {
        let key = "offers/é p";
        let begun = run(session, Operation::CreateUpload { key }).await?;
        let upload = &*begun.server_name.ok_or_else(ignored)?;
        let mut tags = Vec::new();
        for (number, size) in [(1, 5 * MIB), (2, 1_000)] {
            let content = &mut Pattern(size);
            let written = run(session, Operation::PutPart { key, upload, number, content }).await?;
            assert_eq!(written.bytes, size);
            tags.push(String::from(written.server_name.ok_or_else(ignored)?));
        }
        run(session, Operation::CompleteUpload { key, upload, parts: &tags }).await?;
        let mut kept = Kept::default();
        let part = run(session, Operation::GetPart { key, number: 2, sink: &mut kept }).await?;
        if kept.bytes.len() as u64 == 5 * MIB + 1_000 {
            return Err(ignored());
        }
        assert!(kept.bytes == pattern(0..1_000) && part.bytes == 1_000);
        assert_eq!(part.object_size, Some(5 * MIB + 1_000));
        Ok(())
    })
}

fn unfinished_uploads(bench: &Fixture) -> Result<(), DriverError> {
    bench.with(RequestOptions::default(), async |admin, session| {
        let mut uploads = Vec::new();
        for key in ["offers/u1", "offers/é u2", "other/u3"] {
            let begun = run(session, Operation::CreateUpload { key }).await?;
            let upload = String::from(begun.server_name.ok_or_else(ignored)?);
            let content = &mut Pattern(10);
            run(session, Operation::PutPart { key, upload: &upload, number: 1, content }).await?;
            uploads.push((key, upload));
        }
        let mut found = admin.survey_uploads("offers/").await?;
        found.sort_by(|a, b| a.key.cmp(&b.key));
        let ours: Vec<_> =
            found.iter().map(|found| (found.key.as_str(), found.upload.clone())).collect();
        assert_eq!(ours, uploads[..2]);
        admin.sweep("offers/").await?;
        assert_eq!(admin.survey_uploads("offers/").await?, []);
        let foreign = admin.survey_uploads("other/").await?;
        assert_eq!(foreign.len(), 1, "what is not below the prefix stays");
        let (key, upload) = &uploads[2];
        run(session, Operation::AbortUpload { key, upload }).await?;
        Ok(())
    })
}

fn post(bench: &Fixture) -> Result<(), DriverError> {
    let options = RequestOptions {
        metadata: vec![("name".to_owned(), "value".to_owned())],
        ..RequestOptions::default()
    };
    bench.with(options, async |_, session| {
        for size in [1, 300_000] {
            let key = "offers/é \"post\"";
            let written =
                run(session, Operation::Post { key, content: &mut Pattern(size) }).await?;
            assert_eq!((written.bytes, written.objects_count), (size, 1));
            assert!(read(session, key, None).await? == pattern(0..size));
        }
        Ok(())
    })
}

fn if_none_match(bench: &Fixture) -> Result<(), DriverError> {
    let options = RequestOptions {
        if_none_match: true,
        part_size: Some(5 * MIB),
        ..RequestOptions::default()
    };
    bench.with(options, async |admin, session| {
        for size in [10, 6 * MIB] {
            let key = &format!("offers/{size}");
            run(session, Operation::Put { key, content: &mut Pattern(size) }).await?;
            match run(session, Operation::Put { key, content: &mut Pattern(size) }).await {
                Ok(_) => return Err(ignored()),
                Err(error) => assert_eq!(error.class, ErrorClass::Precondition, "{error}"),
            }
        }
        let settled = session.settle().await;
        assert_eq!(settled, Settled { given_up_count: 1, left_count: 0 });
        assert_eq!(admin.survey_uploads("offers/").await?, [], "what failed was given up");
        Ok(())
    })
}

/// Returns what the table says of an outcome.
fn cell(outcome: Result<(), DriverError>) -> String {
    let Err(error) = outcome else { return "yes".to_owned() };
    let is_code = |part: &&str| part.starts_with(char::is_uppercase) && !part.contains(' ');
    let code = error.message.split([':', ';']).map(str::trim).find(is_code).unwrap_or("no code");
    match error.status {
        Some(status) => format!("no ({status} {code})"),
        None if error.class == ErrorClass::Client => "needs TLS".to_owned(),
        None => "no".to_owned(),
    }
}

/// Returns the column of a server as the document has it.
#[allow(clippy::disallowed_methods, reason = "the document is what is tested")]
fn documented(column: usize) -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/drivers/s3.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| tried |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].to_owned(), cells[column].to_owned())
        })
        .collect()
}

/// Tries every row on a server and compares with its column.
fn check(config: S3Config, column: usize) {
    let bench = Fixture::new(config);
    let measured: Vec<(String, String)> =
        ROWS.iter().map(|(name, attempt)| ((*name).to_owned(), cell(attempt(&bench)))).collect();
    assert_eq!(measured, documented(column), "docs/drivers/s3.md, column {column}");
}

#[test]
fn the_embedded_store_offers_what_the_document_says() {
    let oracle = whole::oracle();
    check(whole::config(oracle.addr(), "oracle-key", "oracle-secret"), 5);
}

#[test]
fn live_servers_offer_what_the_document_says() {
    let columns = [
        (LiveKind::Minio, 1),
        (LiveKind::MinioTls, 2),
        (LiveKind::Versitygw, 3),
        (LiveKind::SeaweedS3, 4),
    ];
    for (kind, column) in columns {
        let Some(server) = live(kind) else { continue };
        let address = server.host().parse().unwrap();
        let mut config = whole::config(address, &server.access_key, &server.secret_key);
        config.wall_epoch = wall_now();
        config.tls = server.ca.clone().map(|ca_file| {
            TlsConfig::load(&TlsOptions { ca_file: Some(ca_file), ..TlsOptions::default() })
                .unwrap()
        });
        check(config, column);
    }
}
