//! Administration of a container: making it, listing it, removing what a run wrote, and the
//! container itself.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use percent_encoding::percent_decode_str;
use plimsoll_driver::{
    Admin, Completion, ContentSource, CreatedRoot, Dates, DriverError, FoundObject, Lack,
    LackReason, MissingRoot, Operation, RootState, Session as _, Step, one_line,
};
use plimsoll_model::{Ability, ErrorClass, SharedClock};

use crate::Shared;
use crate::config::Manifest;
use crate::listing::Listing;
use crate::session::{Call, SwiftSession};

/// How long a request may go without moving a byte where nobody says otherwise.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How many entries are asked for per page.
const PAGE_SIZE: u32 = 1_000;
/// The most entries that are kept where no number is asked for.
const ENTRIES_MAX: u64 = 10_000_000;
/// How many objects are removed at a time: Swift has no call for many that every server knows.
const REMOVERS: usize = 16;
/// How often a page may begin with what was removed before: a container's list may be late.
const REPEATS_MAX: u32 = 100;
/// How many pages one sweep removes at most.
const PAGES_MAX: u32 = 1_000_000;
/// How much longer than the run's prefix names are whose old versions are looked for in another
/// container: each length takes a request. Runs give names that are much shorter.
const ARCHIVED_NAME_BYTES_MAX: usize = 256;

/// What says of a container that a run has made it, and which.
const MADE: &str = "x-container-meta-plimsoll-made";
const MADE_HEADER: &str = "X-Container-Meta-Plimsoll-Made";

/// Administers a container of [`SwiftDriver`](crate::SwiftDriver).
pub struct SwiftAdmin {
    session: SwiftSession,
    /// For removals.
    removers: Vec<SwiftSession>,
    container: String,
    removed: Arc<AtomicU64>,
    has_created: bool,
}

/// An object of no bytes.
struct Empty;

impl ContentSource for Empty {
    fn size(&self) -> u64 {
        0
    }

    fn fill(&mut self, _offset: u64, _buffer: &mut [u8]) {}
}

impl SwiftAdmin {
    pub(crate) fn new(shared: Arc<Shared>, clock: SharedClock, container: String) -> Self {
        let stall = Some(shared.config.stall_timeout.unwrap_or(STALL_TIMEOUT));
        let session = || SwiftSession::new(Arc::clone(&shared), clock.clone(), stall);
        let removers = (0..REMOVERS).map(|_| session()).collect();
        let removed = Arc::default();
        Self { session: session(), removers, container, removed, has_created: false }
    }

    /// Does a request about the container.
    async fn call(
        &mut self,
        call: Call<'_>,
        expected: &[u16],
        wanted: &'static [&'static str],
    ) -> Result<u16, DriverError> {
        self.session.set_container(Some(&self.container))?;
        self.session.ask(call, &[], expected, wanted).await.result?;
        Ok(self.session.wire.answer.status)
    }

    fn explained(&self, what: &str, error: DriverError) -> DriverError {
        let message = format!("container `{}` {what}: {}", self.container, error.message);
        DriverError { message, ..error }
    }

    /// Tells whether the container is there.
    pub async fn exists(&mut self) -> Result<bool, DriverError> {
        let looked = self.call(Call::plain("HEAD"), &[204, 200, 404], &[MADE]).await;
        let looked = looked.map_err(|error| self.explained("cannot be looked at", error))?;
        Ok(looked != 404)
    }

    async fn ensure(&mut self) -> Result<RootState, DriverError> {
        if self.exists().await? {
            return Ok(RootState::Existed);
        }
        if self.session.shared.config.missing_container == MissingRoot::Refuse {
            let message = format!(
                "container `{}` does not exist; create it, or add `create_bucket`",
                self.container
            );
            return Err(DriverError::with_status(ErrorClass::NotFound, 404, message));
        }
        let state = self.make().await?;
        self.has_created |= state == RootState::Created;
        Ok(state)
    }

    /// Removes the container if this admin created it: Swift refuses one that is not empty.
    async fn remove_own(&mut self) -> Result<Option<CreatedRoot>, DriverError> {
        let missing = self.session.shared.config.missing_container;
        if !self.has_created || missing != MissingRoot::Create {
            return Ok(None);
        }
        match self.remove().await {
            Ok(_) => {
                self.has_created = false;
                Ok(Some(CreatedRoot::Removed))
            }
            Err(error) if error.status == Some(409) => {
                Ok(Some(CreatedRoot::Stays("somebody else uses it".to_owned())))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the container; one that is there stays as it is.
    pub async fn make(&mut self) -> Result<RootState, DriverError> {
        let policy = self.session.shared.config.policy.clone();
        let with_policy = [("X-Storage-Policy", policy.as_str())];
        let headers = if policy.is_empty() { &[][..] } else { &with_policy };
        let made = self.call(Call::with("PUT", headers), &[201, 202, 204], &[]).await;
        match made.map_err(|error| self.explained("cannot be made", error))? {
            201 => Ok(RootState::Created),
            _ => Ok(RootState::Existed),
        }
    }

    /// Notes at the container that this run has made it.
    pub async fn mark_made(&mut self, run: &str) -> Result<(), DriverError> {
        let headers = [(MADE_HEADER, run)];
        let marked = self.call(Call::with("POST", &headers), &[204, 200, 202], &[]).await;
        marked.map(drop).map_err(|error| self.explained("cannot be marked", error))
    }

    /// Returns which run has made the container, where one has noted that.
    pub async fn made_by(&mut self) -> Result<Option<String>, DriverError> {
        let is_there = self.exists().await?;
        let made = self.session.wire.answer.header(MADE).filter(|run| is_there && !run.is_empty());
        Ok(made.map(str::to_owned))
    }

    /// Tells whether a run has made the container; `None`: it is not there.
    async fn tell_marked(&mut self) -> Result<Option<bool>, DriverError> {
        match self.made_by().await {
            Ok(made) => Ok((self.session.wire.answer.status != 404).then_some(made.is_some())),
            // What cannot be listed is somebody else's.
            Err(error) if error.class == ErrorClass::Denied => Ok(Some(false)),
            Err(error) => Err(error),
        }
    }

    /// Removes the container, which must be empty, and tells whether it was there.
    pub async fn remove(&mut self) -> Result<bool, DriverError> {
        match self.call(Call::plain("DELETE"), &[204, 200, 404], &[]).await {
            Ok(status) => Ok(status != 404),
            Err(error) if error.status == Some(409) => {
                let why = format!("container `{}` is not empty", self.container);
                Err(DriverError { message: why, ..error })
            }
            Err(error) => Err(self.explained("cannot be removed", error)),
        }
    }

    /// Returns which version the server is, where it says that.
    pub async fn server_version(&mut self) -> Option<String> {
        self.session.info().await.version().map(str::to_owned)
    }

    /// Lists the containers of the account whose names begin so.
    pub async fn containers(&mut self, prefix: &str) -> Result<Vec<String>, DriverError> {
        let listing = Listing { prefix, page_size: PAGE_SIZE, ..Listing::default() };
        self.session.find(Some(""), listing).await
    }

    async fn ready(&mut self, needs: &[Ability]) -> Result<Option<Lack>, DriverError> {
        use Ability::{Buckets, Delete, Get, List, ListBuckets, Parts, Put, Ranges, Stat};
        let offered = [Buckets, Delete, Get, List, ListBuckets, Parts, Put, Ranges, Stat];
        if let Some(need) = needs.iter().find(|need| !offered.contains(need)) {
            let why = LackReason::OfStore("does not offer it by the API of Swift");
            return Ok(Some(Lack { need: *need, why }));
        }
        self.ensure().await?;
        let config = &self.session.shared.config;
        let (has_segments, manifest) = (config.segment_bytes.is_some(), config.manifest);
        // A server says whether it has lists of segments; of segments by their names it says
        // nothing.
        let needs_lists = manifest == Manifest::Static && (has_segments || needs.contains(&Parts));
        if needs_lists && !self.session.info().await.has("slo") {
            let why = LackReason::OfStore("makes no objects of lists of segments (SLO)");
            return Ok(Some(Lack { need: Parts, why }));
        }
        Ok(None)
    }

    async fn find(
        &mut self,
        container: &str,
        prefix: &str,
        limit: Option<u64>,
        goes_down: bool,
    ) -> Result<Vec<FoundObject>, DriverError> {
        let most = limit.unwrap_or(ENTRIES_MAX);
        let mut found: Vec<FoundObject> = Vec::new();
        if most == 0 {
            return Ok(found);
        }
        let mut is_over = false;
        let mut take = |key: &str, size| {
            is_over = found.len() as u64 == most;
            if !is_over {
                found.push(FoundObject { key: key.to_owned(), size });
            }
            !is_over
        };
        let page_size = most.min(PAGE_SIZE.into()) as u32;
        let has_segments = true;
        let listing = Listing { prefix, page_size, pages_max: None, goes_down, has_segments };
        self.session.list(Some(container), listing, &mut take).await.result?;
        if is_over && limit.is_none() {
            let why = format!(
                "the list of container `{container}` below `{prefix}` is longer than {ENTRIES_MAX} \
                 entries; ask for a number of them (`objects`) or below another `prefix`"
            );
            return Err(DriverError::new(ErrorClass::Client, why));
        }
        Ok(found)
    }

    async fn remove_below(&mut self, prefix: &str) -> Result<u64, DriverError> {
        assert!(!prefix.is_empty(), "sweeping needs its own prefix");
        self.removed.store(0, Ordering::Relaxed);
        match self.old_versions().await? {
            OldVersions::Nowhere => self.remove_objects(prefix).await?,
            OldVersions::Here => self.remove_versions(prefix).await?,
            // One that brings an old version back with a removal has none left to bring, and one
            // that keeps what is removed keeps it until it is removed there.
            OldVersions::In(archive) => {
                self.remove_archived(&archive, prefix).await?;
                self.remove_objects(prefix).await?;
                self.remove_archived(&archive, prefix).await?;
            }
        }
        Ok(self.removed.load(Ordering::Relaxed))
    }

    /// Returns where the container keeps what is overwritten or removed.
    async fn old_versions(&mut self) -> Result<OldVersions, DriverError> {
        const ENABLED: &str = "x-versions-enabled";
        const ELSEWHERE: [&str; 2] = ["x-history-location", "x-versions-location"];
        const WANTED: &[&str] = &[ENABLED, ELSEWHERE[0], ELSEWHERE[1]];
        let asked = self.call(Call::plain("HEAD"), &[204, 200, 404], WANTED).await;
        asked.map_err(|error| self.explained("cannot be looked at", error))?;
        let answer = &self.session.wire.answer;
        if answer.header(ENABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(OldVersions::Here);
        }
        let archive = ELSEWHERE.iter().find_map(|name| answer.header(name));
        let archive = archive.map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned());
        Ok(archive.filter(|name| !name.is_empty()).map_or(OldVersions::Nowhere, OldVersions::In))
    }

    /// Removes the objects below a prefix, as the container lists them.
    async fn remove_objects(&mut self, prefix: &str) -> Result<(), DriverError> {
        let container = self.container.clone();
        self.remove_listed(&container, prefix).await
    }

    /// Removes the old versions of objects below a prefix from the container that keeps them, where
    /// each is called by the length of its name in hexadecimal digits, its name, and the time.
    async fn remove_archived(&mut self, archive: &str, prefix: &str) -> Result<(), DriverError> {
        let longest = (prefix.len() + ARCHIVED_NAME_BYTES_MAX).min(KEY_BYTES_MAX);
        for length in prefix.len() + 1..=longest {
            let removed = self.remove_listed(archive, &format!("{length:03x}{prefix}")).await;
            removed.map_err(|error| {
                let what = format!("keeps old versions in container `{archive}`, which stay");
                self.explained(&what, error)
            })?;
        }
        Ok(())
    }

    async fn remove_listed(&mut self, container: &str, prefix: &str) -> Result<(), DriverError> {
        let mut patience = Patience::default();
        loop {
            let listed = self.find(container, prefix, Some(PAGE_SIZE.into()), true).await;
            let found = match listed {
                // Of a container that is not there nothing is left.
                Err(error) if error.class == ErrorClass::NotFound => Vec::new(),
                found => found?,
            };
            // Whatever the server lists, nothing outside of the prefix is touched.
            let keys: Vec<String> =
                found.into_iter().map(|of| of.key).filter(|key| key.starts_with(prefix)).collect();
            let Some(first) = keys.first() else { return Ok(()) };
            patience.check(first)?;
            self.remove_all(keys, async |session, key| {
                session.delete_alone(Some(container), key).await
            })
            .await?;
        }
    }

    /// Removes all versions of the objects below a prefix, and the marks of their deletion.
    async fn remove_versions(&mut self, prefix: &str) -> Result<(), DriverError> {
        let (container, mut patience) = (self.container.clone(), Patience::default());
        loop {
            let mut found = self.session.versions(&container, prefix, PAGE_SIZE).await?;
            found.retain(|version| version.name.starts_with(prefix));
            let Some(first) = found.first() else { return Ok(()) };
            patience.check(&format!("{}?{}", first.name, first.version_id))?;
            self.remove_all(found, async |session, version| {
                session.delete_version(&container, version).await
            })
            .await?;
        }
    }

    /// Removes several at a time.
    async fn remove_all<T>(
        &mut self,
        all: Vec<T>,
        remove: impl AsyncFn(&mut SwiftSession, &T) -> Completion,
    ) -> Result<(), DriverError> {
        let removed = &self.removed;
        let all = RefCell::new(all.into_iter());
        let next = || all.borrow_mut().next();
        let removers = self.removers.iter_mut().map(async |session| {
            while let Some(one) = next() {
                remove(session, &one).await.result?;
                // What was listed late was counted when it was removed.
                let was_there = session.wire.answer.status != 404;
                removed.fetch_add(was_there.into(), Ordering::Relaxed);
            }
            Ok::<_, DriverError>(())
        });
        try_join_all(removers).await.map(drop)
    }
}

/// Where a container keeps what is overwritten or removed.
enum OldVersions {
    /// It does not.
    Nowhere,
    /// In itself (`X-Versions-Enabled`).
    Here,
    /// In another container (`X-Versions-Location`, `X-History-Location`).
    In(String),
}

/// Detects a listing that keeps returning removed objects.
#[derive(Default)]
struct Patience {
    last_first: String,
    repeats: u32,
    pages: u32,
}

impl Patience {
    /// Refuses a page that begins as so many before it did, and pages without end.
    fn check(&mut self, first: &str) -> Result<(), DriverError> {
        self.repeats = if *first == *self.last_first { self.repeats + 1 } else { 0 };
        self.pages += 1;
        first.clone_into(&mut self.last_first);
        let why = if self.repeats > REPEATS_MAX {
            format!("`{}` is still listed after its removal", one_line(first))
        } else if self.pages > PAGES_MAX {
            format!("after {PAGES_MAX} pages were removed there are more")
        } else {
            return Ok(());
        };
        Err(DriverError::new(ErrorClass::Protocol, why))
    }
}

/// The longest name of an object that Swift takes.
const KEY_BYTES_MAX: usize = 1_024;

impl Admin for SwiftAdmin {
    fn ensure_root(&mut self) -> Step<'_, RootState> {
        Box::pin(self.ensure())
    }

    fn has_created(&self) -> bool {
        self.has_created
    }

    fn remove_created(&mut self) -> Step<'_, Option<CreatedRoot>> {
        Box::pin(self.remove_own())
    }

    fn make_bucket(&mut self) -> Step<'_, RootState> {
        Box::pin(self.make())
    }

    fn make_ready<'a>(
        &'a mut self,
        needs: &'a [Ability],
        _base: &'a str,
    ) -> Step<'a, Option<Lack>> {
        Box::pin(self.ready(needs))
    }

    fn survey<'a>(
        &'a mut self,
        prefix: &'a str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Step<'a, Vec<FoundObject>> {
        Box::pin(async move {
            let container = self.container.clone();
            self.find(&container, prefix, limit, recursive).await
        })
    }

    fn judge_name(&self, name: &str) -> Result<(), String> {
        match name.len() {
            0 => Err("no object has an empty name".to_owned()),
            len if len > KEY_BYTES_MAX => {
                Err(format!("the name of an object has at most {KEY_BYTES_MAX} bytes"))
            }
            _ => Ok(()),
        }
    }

    fn sweep<'a>(&'a mut self, prefix: &'a str) -> Step<'a, u64> {
        Box::pin(self.remove_below(prefix))
    }

    fn removed_count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.removed)
    }

    fn put_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(async move {
            let put = Operation::Put { key, content: &mut Empty };
            self.session.execute(Some(&self.container), put).await.result
        })
    }

    fn remove_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(async move { self.session.delete_alone(Some(&self.container), key).await.result })
    }

    fn dates_of<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Dates>> {
        Box::pin(async move {
            self.session.set_key(Some(&self.container), key)?;
            let wanted = &["date", "last-modified"];
            let asked = self.session.ask(Call::plain("HEAD"), &[], &[200, 204, 404], wanted).await;
            asked.result?;
            let answer = &self.session.wire.answer;
            let of = |name| answer.header(name).unwrap_or_default().to_owned();
            let dates = Dates { now: of("date"), modified: of("last-modified") };
            Ok(Some(dates).filter(|_| answer.status != 404))
        })
    }

    /// Notes it in the container's own metadata, so that it holds nothing but what runs write.
    fn mark<'a>(&'a mut self, run: &'a str) -> Step<'a, ()> {
        Box::pin(self.mark_made(run))
    }

    fn is_marked(&mut self) -> Step<'_, Option<bool>> {
        Box::pin(self.tell_marked())
    }

    fn remove_bucket(&mut self) -> Step<'_, bool> {
        Box::pin(self.remove())
    }
}
