//! Files written to, listed, read and removed by the filer of a real SeaweedFS.

use std::sync::Arc;

use plimsoll_driver::{
    Admin as _, ByteRange, Completion, Driver as _, DriverError, EntrySink, FoundObject, Operation,
    RootState, Session as _, conformance,
};
use plimsoll_driver_seaweed::{FilerAdmin, FilerConfig, FilerDriver, FilerSession};
use plimsoll_engine::RunClock;
use plimsoll_http::{Endpoint, expand_hosts};
use plimsoll_model::{Ability, ErrorClass, SharedClock};
use plimsoll_testkit::{LiveKind, live};

use crate::support::{Collected, Numbered};

/// One session with a filer.
struct Filer {
    runtime: tokio::runtime::Runtime,
    clock: SharedClock,
    driver: FilerDriver,
    session: FilerSession,
    admin: FilerAdmin,
}

#[derive(Default)]
struct Entries(Vec<(String, u64)>);

impl EntrySink for Entries {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        self.0.push((key.to_owned(), size));
    }
}

impl Filer {
    /// Opens a session with the live filer, in an empty directory.
    fn live(directory: &str, change: impl FnOnce(&mut FilerConfig)) -> Option<Self> {
        let server = live(LiveKind::SeaweedFiler)?;
        let filers = expand_hosts(server.host(), 1).unwrap();
        let mut config = FilerConfig::new(filers, directory).unwrap();
        config.creates_directory = true;
        change(&mut config);
        let mut filer = Self::open(config);
        let mut above = filer.driver.admin(&filer.clock, Some("")).unwrap();
        filer.runtime.block_on(above.sweep(&format!("{directory}/"))).unwrap();
        assert_eq!(filer.runtime.block_on(filer.admin.ensure_root()), Ok(RootState::Created));
        assert_eq!(filer.runtime.block_on(filer.admin.ensure_root()), Ok(RootState::Existed));
        Some(filer)
    }

    fn open(config: FilerConfig) -> Self {
        let clock = RunClock::start();
        let driver = FilerDriver::new(config, clock.wall_epoch());
        let clock: SharedClock = Arc::new(clock);
        let session = driver.open_sessions(&clock, 1).pop().unwrap();
        let admin = driver.admin(&clock, None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, clock, driver, session, admin }
    }

    fn run(&mut self, operation: Operation<'_>) -> Completion {
        let before = self.clock.now();
        let done = self.runtime.block_on(self.session.execute(None, operation));
        assert!(before < done.end && done.end <= self.clock.now());
        done
    }

    fn put(&mut self, key: &str, file: u64, size: u64) {
        let done = self.run(Operation::Put { key, content: &mut Numbered { file, size } });
        assert_eq!((done.result, done.bytes, done.objects_count), (Ok(()), size, 1), "{key}");
    }

    fn get(&mut self, key: &str, range: Option<ByteRange>) -> (Completion, Vec<u8>) {
        let mut sink = Collected::default();
        let done = self.run(Operation::Get { key, range, version: None, sink: &mut sink });
        (done, sink.0)
    }

    fn class_of_get(&mut self, key: &str) -> ErrorClass {
        self.get(key, None).0.result.unwrap_err().class
    }

    fn survey(&mut self, prefix: &str, limit: Option<u64>, recursive: bool) -> Vec<FoundObject> {
        let found = self.admin.survey(prefix, limit, recursive);
        self.runtime.block_on(found).unwrap()
    }

    fn sweep(&mut self, prefix: &str) -> Result<u64, DriverError> {
        self.runtime.block_on(self.admin.sweep(prefix))
    }

    fn keys(&mut self) -> Vec<String> {
        self.survey("", None, true).into_iter().map(|found| found.key).collect()
    }
}

#[test]
fn the_filer_does_as_every_driver() {
    let Some(filer) = Filer::live("conformance", |_| {}) else { return };
    let base = "a run/";
    filer.runtime.block_on(conformance::check(&filer.driver, &filer.clock, base));
    let mut above = filer.driver.admin(&filer.clock, Some("")).unwrap();
    for directory in ["a/", "b/"] {
        filer.runtime.block_on(above.sweep(directory)).unwrap();
    }
    filer.runtime.block_on(conformance::check_buckets(&filer.driver, &filer.clock));
}

#[test]
fn small_files_and_files_in_chunks_come_back_with_the_sum_that_the_filer_states() {
    for fsync in [false, true] {
        let change = |config: &mut FilerConfig| {
            config.sums_reads = true;
            config.fsync = fsync;
            config.collection = "of a filer".to_owned();
            (config.replication, config.ttl) = ("000".to_owned(), "3d".to_owned());
        };
        let Some(mut filer) = Filer::live("chunks", change) else { return };
        for (file, size) in [(1, 0), (2, 1), (3, 1_024), (4, 9_000_001)] {
            filer.put("x/y", file, size);
            let (done, content) = filer.get("x/y", None);
            assert_eq!((done.result, done.object_size), (Ok(()), Some(size)));
            assert!(content == Numbered { file, size }.bytes(0, size), "{size}");
            let stat = filer.run(Operation::Stat { key: "x/y", version: None });
            assert_eq!((stat.result, stat.object_size), (Ok(()), Some(size)));
            let found = [FoundObject { key: "x/y".to_owned(), size }];
            assert_eq!(filer.survey("x/", None, true), found);
        }
        // Across the end of a chunk.
        let range = ByteRange { offset: (4 << 20) - 10, len: 20 };
        let (done, content) = filer.get("x/y", Some(range));
        assert_eq!((done.result, done.object_size), (Ok(()), Some(9_000_001)));
        assert!(content == Numbered { file: 4, size: 9_000_001 }.bytes(range.offset, 20));
        let beyond = ByteRange { offset: 9_000_000, len: 20 };
        let (done, _) = filer.get("x/y", Some(beyond));
        assert_eq!(done.result.unwrap_err().class, ErrorClass::Truncated);
    }
}

#[test]
fn lists_are_whole_and_in_the_order_of_keys_whatever_the_pages() {
    let Some(mut filer) = Filer::live("lists", |_| {}) else { return };
    let mut keys: Vec<String> = (0..60).map(|number| format!("many/{number:03}")).collect();
    let odd = [
        "a!",
        "a-",
        "a.b",
        "a.b2/z",
        "a/x",
        "a/x.y/z",
        "a/y",
        "a0",
        "b/c/d/e",
        "st*r/[1]",
        "st*r2",
        "päivä/🚢",
        "<&>/\"'",
    ];
    keys.extend(odd.map(str::to_owned));
    for (key, size) in keys.iter().zip(1..) {
        filer.put(key, size, size);
    }
    let sizes: Vec<(String, u64)> = keys.iter().cloned().zip(1..).collect();
    for page_size in [1, 7, 1_000] {
        for prefix in ["", "a", "a/", "a.", "many/01", "b/c/d/e", "st*r", "st*r/[", "p", "<", "no"]
        {
            let mut expected: Vec<_> =
                sizes.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
            expected.sort_unstable();
            let mut entries = Entries::default();
            let done = filer.run(Operation::List {
                prefix,
                page_size,
                pages_max: None,
                sink: &mut entries,
            });
            assert_eq!(done.result, Ok(()), "`{prefix}`");
            assert_eq!(entries.0, expected, "`{prefix}` in pages of {page_size}");
            assert_eq!(done.objects_count as usize, expected.len());
        }
    }
    let mut entries = Entries::default();
    let pages_max = std::num::NonZeroU32::new(2);
    let list = Operation::List { prefix: "many/", page_size: 7, pages_max, sink: &mut entries };
    assert_eq!(filer.run(list).objects_count, 14);
    // Of a file nothing lies below it, and its content is no list.
    filer.put("many/file", 1, 5_000);
    assert_eq!(filer.survey("many/file/", None, true), []);
    let of_level: Vec<_> = filer.survey("a", None, false).into_iter().map(|of| of.key).collect();
    assert_eq!(of_level, ["a!", "a-", "a.b", "a0"]);
    assert_eq!(filer.survey("many/", Some(5), true).len(), 5);
    assert_eq!(filer.survey("many/", Some(0), true).len(), 0);
}

#[test]
fn a_sweep_removes_what_lies_below_its_prefix_and_nothing_else() {
    let Some(mut filer) = Filer::live("sweeps", |_| {}) else { return };
    let foreign = ["plimsoll/run", "plimsoll/run2/a", "plimsoll/runs", "a", "b/run/c"];
    for key in foreign {
        filer.put(key, 1, 10);
    }
    assert_eq!(filer.sweep("plimsoll/run/"), Ok(0), "a file of that name is not below it");
    let own = "plimsoll/own/";
    for number in 0..50 {
        filer.put(&format!("{own}{}/{number}", number % 3), 1, 10);
    }
    for refused in ["", "/", "plimsoll", "plimsoll/own", "../", "./", "plimsoll/../", "//"] {
        let error = filer.sweep(refused).unwrap_err();
        assert_eq!(error.class, ErrorClass::Client, "`{refused}`");
    }
    let count = filer.admin.removed_count();
    assert_eq!(filer.sweep(own), Ok(50));
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 50);
    assert_eq!(filer.sweep(own), Ok(0));
    let mut expected = foreign.map(str::to_owned);
    expected.sort();
    assert_eq!(filer.keys(), expected);
    // Marks are empty files.
    let mark = "plimsoll/own.live/until.process";
    filer.runtime.block_on(filer.admin.put_mark(mark)).unwrap();
    let found = filer.survey("plimsoll/own.live/", None, true);
    assert_eq!(found, [FoundObject { key: mark.to_owned(), size: 0 }]);
    for _ in 0..2 {
        filer.runtime.block_on(filer.admin.remove_mark(mark)).unwrap();
    }
    assert_eq!(filer.keys(), expected);
}

#[test]
fn a_file_in_the_way_of_what_is_written_is_found_before() {
    let Some(mut filer) = Filer::live("ways", |_| {}) else { return };
    let needs = [Ability::Put];
    let ready = |filer: &mut Filer, base: &str| {
        filer.runtime.block_on(filer.admin.make_ready(&needs, base))
    };
    assert_eq!(ready(&mut filer, "plimsoll/run/"), Ok(None));
    filer.put("plimsoll", 1, 10);
    for base in ["plimsoll/run/", "other/plimsoll/run/"] {
        let error = ready(&mut filer, base).unwrap_err();
        assert!(error.message.starts_with("`/ways/plimsoll` is a file"), "{error}");
    }
    filer.put("deep/er", 1, 10);
    assert!(ready(&mut filer, "deep/er/plimsoll/run/").is_err());
    let lack = filer.runtime.block_on(filer.admin.make_ready(&[Ability::Versions], "x/"));
    assert_eq!(lack.unwrap().unwrap().need, Ability::Versions);
    let mut below = filer.driver.admin(&filer.clock, Some("ways/plimsoll/more")).unwrap();
    let error = filer.runtime.block_on(below.ensure_root()).unwrap_err();
    assert!(error.message.starts_with("`/ways/plimsoll` is a file"), "{error}");
    assert_eq!(filer.keys(), ["deep/er", "plimsoll"], "nothing was harmed");
}

#[test]
fn what_cannot_be_fails_in_its_class() {
    let Some(mut filer) = Filer::live("classes", |_| {}) else { return };
    filer.put("d/e", 1, 10);
    assert_eq!(filer.class_of_get("none"), ErrorClass::NotFound);
    // The page that a filer makes of a directory is no content.
    assert_eq!(filer.class_of_get("d"), ErrorClass::Protocol);
    let stat = filer.run(Operation::Stat { key: "d", version: None });
    assert_eq!(stat.result.unwrap_err().class, ErrorClass::Protocol);
    for key in ["", "/x", "x/", "a//b", "../out", "d/../e", "."] {
        assert_eq!(filer.class_of_get(key), ErrorClass::Client, "`{key}`");
        let content = &mut Numbered { file: 1, size: 1 };
        let put = filer.run(Operation::Put { key, content });
        assert_eq!(put.result.unwrap_err().class, ErrorClass::Client, "`{key}`");
    }
    // A directory is not removed with what it holds, as a key or as one of many.
    let keys = ["x".to_owned(), "d".to_owned(), "y".to_owned()];
    let done = filer.run(Operation::Delete { keys: &keys });
    assert_eq!((done.result.unwrap_err().class, done.objects_count), (ErrorClass::Server, 2));
    assert_eq!(filer.keys(), ["d/e"]);
    let mut sink = Collected::default();
    let version = Some("1");
    let get = Operation::Get { key: "d/e", range: None, version, sink: &mut sink };
    assert!(filer.run(get).result.is_err());
}

#[test]
fn sessions_take_filers_in_turn_and_one_that_is_away_is_told() {
    let Some(server) = live(LiveKind::SeaweedFiler) else { return };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut filers = expand_hosts(server.host(), 1).unwrap();
    filers.push(Endpoint::new("127.0.0.1", closed));
    let filer = Filer::open(FilerConfig::new(filers, "turns").unwrap());
    let endpoints = filer.driver.endpoints();
    assert_eq!(endpoints[1], format!("127.0.0.1:{closed}"));
    // One was opened before.
    let sessions = filer.driver.open_sessions(&filer.clock, 3);
    for (mut session, endpoint) in sessions.into_iter().zip([1, 0, 1]) {
        assert_eq!(session.endpoint().0, endpoint);
        let stat = Operation::Stat { key: "none", version: None };
        let done = filer.runtime.block_on(session.execute(None, stat));
        let expected = [ErrorClass::NotFound, ErrorClass::Connect][usize::from(endpoint)];
        assert_eq!(done.result.unwrap_err().class, expected);
    }
}
