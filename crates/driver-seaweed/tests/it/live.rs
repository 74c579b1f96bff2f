//! Files written to, read from and removed from a real SeaweedFS.

use std::net::TcpListener;
use std::sync::Arc;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, Driver as _, Operation, Session as _,
};
use plimsoll_driver_seaweed::{
    AssignBy, FileId, SeaweedConfig, SeaweedDriver, SeaweedSession, ServerAddress, UploadBy,
};
use plimsoll_engine::RunClock;
use plimsoll_model::{ErrorClass, SharedClock, WallTime};
use plimsoll_testkit::{LiveKind, live};

/// Content that tells its place and its file.
struct Numbered {
    file: u64,
    size: u64,
}

impl Numbered {
    fn bytes(&self, offset: u64, len: u64) -> Vec<u8> {
        (offset..offset + len).map(|at| (at * 31 + self.file * 7 + at / 251) as u8).collect()
    }
}

impl ContentSource for Numbered {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes(offset, buffer.len() as u64));
    }
}

#[derive(Default)]
struct Collected(Vec<u8>);

impl ContentSink for Collected {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

struct Cluster {
    runtime: tokio::runtime::Runtime,
    clock: SharedClock,
    session: SeaweedSession,
}

impl Cluster {
    /// Opens one session with the live SeaweedFS, if there is one.
    fn open(collection: &str, change: impl FnOnce(&mut SeaweedConfig)) -> Option<Self> {
        let server = live(LiveKind::SeaweedFs)?;
        let master: ServerAddress = server.host().parse().unwrap();
        let mut config = SeaweedConfig::new(vec![master], collection);
        change(&mut config);
        let clock = RunClock::start();
        let wall_epoch = clock.wall_epoch();
        let clock: SharedClock = Arc::new(clock);
        let driver = SeaweedDriver::open(config, &clock, wall_epoch).unwrap();
        assert!(driver.version().contains("4.48"), "{}", driver.version());
        assert_eq!(driver.endpoints().len(), 3, "masters, one volume server, others");
        let session = driver.open_sessions(&clock, 1).pop().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Some(Self { runtime, clock, session })
    }

    fn run(&mut self, operation: Operation<'_>) -> Completion {
        let before = self.clock.now();
        let done = self.runtime.block_on(self.session.execute(None, operation));
        assert!(before < done.end && done.end <= self.clock.now());
        let marks = [done.last_byte_sent, done.first_byte];
        assert!(marks.into_iter().flatten().all(|at| before < at && at <= done.end));
        done
    }

    /// Writes a file; while volumes are being made, it is tried again.
    fn put(&mut self, file: u64, size: u64) -> Box<str> {
        loop {
            let content = &mut Numbered { file, size };
            let done = self.run(Operation::Put { key: "of no matter", content });
            match done.result {
                Err(error) if error.class == ErrorClass::Throttled => {}
                result => {
                    assert_eq!(result, Ok(()));
                    assert_eq!((done.bytes, done.objects_count), (size, 1));
                    return done.server_name.unwrap();
                }
            }
        }
    }

    fn get(&mut self, name: &str, range: Option<ByteRange>) -> (Completion, Vec<u8>) {
        let mut sink = Collected::default();
        let version = Some(name);
        let done = self.run(Operation::Get { key: "", range, version, sink: &mut sink });
        (done, sink.0)
    }
}

#[test]
fn files_are_written_read_and_removed_by_every_way_of_asking_and_sending() {
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        for (upload_by, assign_count) in [(UploadBy::Form, 1), (UploadBy::Put, 3)] {
            let change = |config: &mut SeaweedConfig| {
                (config.assign_by, config.upload_by) = (assign_by, upload_by);
                config.assign_count = assign_count;
            };
            let Some(mut cluster) = Cluster::open("ways", change) else { return };
            let mut names = Vec::new();
            for (file, size) in [(1, 0), (2, 1), (3, 1_024), (4, 1 << 20), (5, 300_001)] {
                let name = cluster.put(file, size);
                let (done, content) = cluster.get(&name, None);
                assert_eq!(done.result, Ok(()), "{assign_by:?} {upload_by:?} {size}");
                assert_eq!((done.bytes, done.object_size), (size, Some(size)));
                assert!(content == Numbered { file, size }.bytes(0, size), "{name}");
                let stat = cluster.run(Operation::Stat { key: "", version: Some(&name) });
                assert_eq!((stat.result, stat.object_size), (Ok(()), Some(size)));
                names.push(name);
            }
            let ids: Vec<FileId> = names.iter().map(|name| name.parse().unwrap()).collect();
            let together = ids.windows(2).filter(|pair| pair[0].plus(1) == Some(pair[1])).count();
            if assign_count == 3 {
                assert!(together >= 3, "five names by three at a time: {names:?}");
            }
            let range = ByteRange { offset: 250, len: 700 };
            let (done, content) = cluster.get(&names[4], Some(range));
            assert_eq!((done.result, done.object_size), (Ok(()), Some(300_001)));
            assert!(content == Numbered { file: 5, size: 300_001 }.bytes(250, 700));
            for name in &names {
                for _ in 0..2 {
                    let delete = Operation::DeleteVersion { key: "", version: name };
                    let done = cluster.run(delete);
                    assert_eq!((done.result, done.objects_count), (Ok(()), 1));
                }
                let (done, content) = cluster.get(name, None);
                assert_eq!(done.result.unwrap_err().class, ErrorClass::NotFound);
                assert_eq!((content.len(), done.bytes), (0, 0));
            }
        }
    }
}

#[test]
fn ranges_beyond_the_end_and_names_of_nothing_fail_in_their_classes() {
    let Some(mut cluster) = Cluster::open("ends", |_| {}) else { return };
    let name = cluster.put(9, 1_000);
    let beyond = ByteRange { offset: 900, len: 200 };
    let (done, _) = cluster.get(&name, Some(beyond));
    assert_eq!(done.result.unwrap_err().class, ErrorClass::Truncated);
    for (name, class) in [
        ("999999,01637037d6", ErrorClass::NotFound),
        ("no id", ErrorClass::Client),
        ("3,01637037d6\r\nHost: elsewhere", ErrorClass::Client),
    ] {
        let (done, _) = cluster.get(name, None);
        assert_eq!(done.result.unwrap_err().class, class, "{name}");
    }
    // A wrong cookie is a guess.
    let id: FileId = name.parse().unwrap();
    let guess = FileId { cookie: id.cookie ^ 1, ..id }.to_string();
    let (done, _) = cluster.get(&guess, None);
    assert_eq!(done.result.unwrap_err().class, ErrorClass::NotFound);
    let (done, content) = cluster.get(&name, None);
    assert_eq!((done.result, content.len()), (Ok(()), 1_000));
}

#[test]
fn a_replication_that_cannot_be_is_told_by_the_master() {
    let three = |config: &mut SeaweedConfig| config.replication = "002".to_owned();
    let Some(mut cluster) = Cluster::open("replicated", three) else { return };
    let content = &mut Numbered { file: 1, size: 10 };
    let done = cluster.run(Operation::Put { key: "", content });
    let error = done.result.unwrap_err();
    assert!(error.message.contains("writable volumes"), "{error}");
    assert_eq!((done.server_name, done.bytes), (None, 0));
}

#[test]
fn masters_that_are_away_are_named() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let master: ServerAddress = format!("127.0.0.1:{closed}.1").parse().unwrap();
    let clock: SharedClock = Arc::new(RunClock::start());
    let config = SeaweedConfig::new(vec![master], "x");
    let error = SeaweedDriver::open(config, &clock, WallTime::from_unix_ns(0)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Connect);
    assert!(error.message.contains(&format!("127.0.0.1:{closed}")), "{error}");
}
