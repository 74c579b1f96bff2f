//! The S3 driver as the tests use it: slowdowns are counted by their status, and a listing is that
//! of one page.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_driver::{Completion, Driver, DriverError, EntrySink, Operation, Session, Settled};
use plimsoll_driver_s3::{S3Driver, S3Session};
use plimsoll_model::{EndpointId, ErrorClass, ObjectId, SharedClock};
use plimsoll_workload::{Keys, Random, hash_text};

const PAGE_DOMAIN: u64 = 0x7061_6765;
/// How many entries a page has at most, as in s3-benchmark.
pub(super) const PAGE_SIZE: u32 = 1_000;
/// The most last digits of an object's number that a prefix leaves open: a page holds as many.
const DIGITS_OPEN_MAX: u32 = PAGE_SIZE.ilog10();
/// s3-benchmark draws from a hundred prefixes. Here there are 30 to 300, unless each is a full page
/// or a single object.
const PREFIXES_MIN: usize = 30;

/// The driver of one test.
pub(super) struct Tester {
    driver: Arc<S3Driver>,
    shared: Arc<Shared>,
}

/// What the sessions of a test share.
struct Shared {
    slowdowns: AtomicU64,
    /// How many sessions there are, to tell them apart.
    sessions: AtomicU64,
    pages: Option<Pages>,
}

/// The pages that a test lists.
pub(super) struct Pages {
    /// Whether versions are listed.
    pub(super) versions: bool,
    pub(super) seed: u64,
    prefixes: Vec<Page>,
    /// Keys of which it is not known whether they are there.
    doubtful: HashSet<String>,
}

/// A prefix of the run's keys with what lies below it.
#[derive(Debug, PartialEq)]
struct Page {
    prefix: String,
    entries: Entries,
}

/// Entries as a set: how many, and the sum of the hashes of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entries {
    count: u64,
    hash: u64,
}

impl Entries {
    fn add(&mut self, key: &str) {
        self.count += 1;
        self.hash = self.hash.wrapping_add(hash_text(key));
    }
}

impl Pages {
    /// Returns the pages of these objects, which are in order of their ids.
    pub(super) fn of(
        (written, doubtful): (&[ObjectId], &[ObjectId]),
        keys: &Keys,
        (versions, seed): (bool, u64),
    ) -> Self {
        let group =
            |object: &ObjectId, open: u32| (object.owner(), object.number() / 10u64.pow(open));
        let groups = |open: u32| written.chunk_by(move |a, b| group(a, open) == group(b, open));
        let enough = |open: &u32| groups(*open).count() >= PREFIXES_MIN;
        let open = (1..=DIGITS_OPEN_MAX).rev().find(enough).unwrap_or(0);
        let mut key = String::new();
        let mut page = |group: &[ObjectId]| {
            let mut entries = Entries::default();
            for object in group {
                keys.write(*object, &mut key);
                entries.add(&key);
            }
            Page { prefix: prefix_of(&key, open as usize), entries }
        };
        let prefixes = groups(open).map(&mut page).collect();
        let named = |object: &ObjectId| {
            let mut key = String::new();
            keys.write(*object, &mut key);
            key
        };
        Self { versions, seed, prefixes, doubtful: doubtful.iter().map(named).collect() }
    }
}

/// Returns the part of a key `<base><owner>.<number>.<rest>.rnd` in front of the last `open` digits
/// of the number.
fn prefix_of(key: &str, open: usize) -> String {
    let number_end = key.rmatch_indices('.').nth(1).map_or(key.len(), |(at, _)| at);
    key[..number_end - open].to_owned()
}

impl Tester {
    /// Returns the driver of a test, which lists these pages.
    pub(super) fn new(driver: &Arc<S3Driver>, pages: Option<Pages>) -> Self {
        let (slowdowns, sessions) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Arc::new(Shared { slowdowns, sessions, pages });
        Self { driver: Arc::clone(driver), shared }
    }

    /// Returns how many answers were 503 or 429.
    pub(super) fn slowdowns(&self) -> u64 {
        self.shared.slowdowns.load(Ordering::Relaxed)
    }
}

impl Driver for Tester {
    type Session = TestSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<TestSession> {
        let session = |inner| {
            let number = self.shared.sessions.fetch_add(1, Ordering::Relaxed);
            let seed = self.shared.pages.as_ref().map_or(0, |pages| pages.seed);
            let random = Random::new(seed, PAGE_DOMAIN, number);
            TestSession { inner, shared: Arc::clone(&self.shared), random }
        };
        self.driver.open_sessions(clock, count).into_iter().map(session).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        self.driver.endpoints()
    }
}

/// A session of a test.
pub(super) struct TestSession {
    inner: S3Session,
    shared: Arc<Shared>,
    random: Random,
}

impl Session for TestSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let done = match (operation, &self.shared.pages) {
            (Operation::List { .. }, Some(pages)) => {
                let number = self.random.below(pages.prefixes.len() as u64);
                let page = &pages.prefixes[number as usize];
                list(&mut self.inner, pages, page).await
            }
            (operation, _) => self.inner.execute(bucket, operation).await,
        };
        if let Err(DriverError { status: Some(429 | 503), .. }) = done.result {
            self.shared.slowdowns.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    fn endpoint(&self) -> EndpointId {
        self.inner.endpoint()
    }

    async fn settle(&mut self) -> Settled {
        self.inner.settle().await
    }
}

/// Lists one page and checks what it holds.
async fn list(session: &mut S3Session, pages: &Pages, page: &Page) -> Completion {
    let prefix = &*page.prefix;
    let mut found = Found { doubtful: &pages.doubtful, entries: Entries::default() };
    let sink = &mut found;
    let mut done = match pages.versions {
        true => {
            let list =
                Operation::ListVersions { prefix, page_size: PAGE_SIZE, pages_max: None, sink };
            session.execute(None, list).await
        }
        false => {
            session
                .execute(
                    None,
                    Operation::List { prefix, page_size: PAGE_SIZE, pages_max: None, sink },
                )
                .await
        }
    };
    if done.result.is_ok() && found.entries != page.entries {
        let (got, want) = (found.entries.count, page.entries.count);
        let message = match got == want {
            true => format!("the page of `{prefix}` holds other keys than were written"),
            false => format!("the page of `{prefix}` holds {got} entries instead of {want}"),
        };
        done.result = Err(DriverError::new(ErrorClass::Corrupt, message));
    }
    done
}

/// Takes the entries of a page.
struct Found<'a> {
    doubtful: &'a HashSet<String>,
    entries: Entries,
}

impl EntrySink for Found<'_> {
    fn restart(&mut self) {
        self.entries = Entries::default();
    }

    fn entry(&mut self, key: &str, _size: u64) {
        if self.doubtful.is_empty() || !self.doubtful.contains(key) {
            self.entries.add(key);
        }
    }
}

/// Tells whether the target lists versions at all, by a listing of one entry.
pub(super) async fn lists_versions(driver: &S3Driver, clock: &SharedClock, prefix: &str) -> bool {
    /// The store knows no such request (501), or not for a bucket (405).
    const NOT_OFFERED: [u16; 2] = [501, 405];
    let mut session = driver.open_sessions(clock, 1).remove(0);
    let mut found = Found { doubtful: &HashSet::new(), entries: Entries::default() };
    let list = Operation::ListVersions { prefix, page_size: 1, pages_max: None, sink: &mut found };
    match session.execute(None, list).await.result {
        Ok(()) => true,
        // What else goes wrong is for the test to count.
        Err(error) => !error.status.is_some_and(|status| NOT_OFFERED.contains(&status)),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::WorkerId;
    use plimsoll_workload::KeyLayout;

    use super::*;

    fn objects(counts: &[u64]) -> Vec<ObjectId> {
        let of = |(owner, count): (u32, &u64)| {
            (0..*count).map(move |number| ObjectId::new(WorkerId(owner), number))
        };
        (0..).zip(counts).flat_map(of).collect()
    }

    fn pages(written: &[ObjectId], doubtful: &[ObjectId]) -> (Pages, Keys) {
        let layout = KeyLayout::for_run("", "r.1", false);
        let keys = Keys::Generated { layout, seed: 7 };
        (Pages::of((written, doubtful), &keys, (false, 7)), keys)
    }

    #[test]
    fn every_object_lies_on_one_page_of_at_most_1000() {
        for (counts, prefixes, largest) in [
            (vec![1], 1, 1),
            (vec![70, 70, 70, 69], 279, 1),
            (vec![1_000], 100, 10),
            (vec![1_835, 1_835, 1_834, 1_834, 1_834, 1_834, 1_834, 1_834], 152, 100),
            (vec![50_001, 49_999], 101, 1_000),
        ] {
            let written = objects(&counts);
            let (pages, keys) = pages(&written, &[]);
            assert_eq!(pages.prefixes.len(), prefixes, "{counts:?}");
            let most = pages.prefixes.iter().map(|page| page.entries.count).max();
            assert_eq!(most, Some(largest), "{counts:?}");
            let total: u64 = pages.prefixes.iter().map(|page| page.entries.count).sum();
            assert_eq!(total, written.len() as u64);
            let mut key = String::new();
            for object in written.iter().step_by(97) {
                keys.write(*object, &mut key);
                let on: Vec<&Page> =
                    pages.prefixes.iter().filter(|page| key.starts_with(&page.prefix)).collect();
                assert_eq!(on.len(), 1, "{key}");
            }
        }
    }

    #[test]
    fn what_is_doubtful_may_be_on_a_page_and_nothing_else_may() {
        let (written, doubtful) = (objects(&[5]), [ObjectId::new(WorkerId(0), 9)]);
        let (pages, keys) = pages(&written, &doubtful);
        let page = &pages.prefixes[3];
        let mut key = String::new();
        let mut sees = |numbers: &[u64]| {
            let mut found = Found { doubtful: &pages.doubtful, entries: Entries::default() };
            for number in numbers {
                keys.write(ObjectId::new(WorkerId(0), *number), &mut key);
                found.entry(&key, 1);
            }
            found.entries == page.entries
        };
        assert!(sees(&[3]) && sees(&[3, 9]) && sees(&[9, 3]));
        assert!(!sees(&[]) && !sees(&[4]) && !sees(&[3, 4]) && !sees(&[3, 3]) && !sees(&[9]));
    }
}
