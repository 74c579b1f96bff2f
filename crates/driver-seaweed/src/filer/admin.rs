//! Administration of a filer's directory: making it, listing it, removing what a run wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_driver::{
    Admin, Completion, ContentSource, CreatedRoot, Dates, DriverError, FoundObject, Lack,
    LackReason, Operation, RootState, Session as _, Step,
};
use plimsoll_model::{Ability, ErrorClass};

use super::listing::{Entry, Listing};
use super::path;
use super::session::FilerSession;
use super::thread::TokenFor;
use crate::error;
use crate::request::Follows;

/// How long a request may go without moving a byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The same of a removal: the filer answers when all that lies below a directory is gone.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(600);
/// How many entries are asked for per page.
const PAGE_SIZE: u32 = 1_000;
/// The most entries that are kept where no number is asked for.
const ENTRIES_MAX: u64 = 10_000_000;
/// How often a directory is removed in which there is something again: uploads that were given up
/// may come late.
const REMOVALS_MAX: u32 = 10;
/// More than the entry of any directory has.
const ENTRY_BYTES_MAX: usize = 64 << 20;

/// What all that runs write lies below.
const HOME: &str = "plimsoll";

/// Removes a directory with all that lies below it.
const RECURSIVE: &str = "?recursive=true";

/// An admin of [`FilerDriver`](crate::FilerDriver).
pub struct FilerAdmin {
    session: FilerSession,
    /// For removals, which take longer.
    remover: FilerSession,
    removed: Arc<AtomicU64>,
    /// Whether the directory did not exist before.
    has_created: bool,
}

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    File,
    Directory,
}

/// A file of no bytes.
struct Empty;

impl ContentSource for Empty {
    fn size(&self) -> u64 {
        0
    }

    fn fill(&mut self, _offset: u64, _buffer: &mut [u8]) {}
}

impl FilerAdmin {
    /// Returns the admin that asks by sessions whose requests may stall for so long.
    pub(super) fn new(session: impl Fn(Duration) -> FilerSession) -> Self {
        let (session, remover) = (session(STALL_TIMEOUT), session(REMOVAL_TIMEOUT));
        Self { session, remover, removed: Arc::default(), has_created: false }
    }

    fn directory(&self) -> &str {
        &self.session.thread.config.directory
    }

    /// Returns the path of what lies below the directory, from the filer's root on.
    fn path_of(&self, below: &str) -> String {
        format!("{}/{below}", self.directory()).trim_matches('/').to_owned()
    }

    /// Returns what a path of the filer is, from its root on.
    async fn kind(&mut self, path: &str) -> Result<Kind, DriverError> {
        let session = &mut self.session;
        session.set_directory(Some(path), "")?;
        session.begin("GET", "?metadata=true", TokenFor::Read, Follows::Document);
        let (client, host) = (&mut session.client, session.host);
        let done = session.wire.read(client, host, ENTRY_BYTES_MAX).await;
        match done.result {
            Err(error) if error.class == ErrorClass::NotFound => return Ok(Kind::Nothing),
            result => result?,
        }
        let answer = &session.wire.answer;
        match serde_json::from_slice::<Entry<'_>>(&answer.body) {
            Ok(entry) if entry.is_directory() => Ok(Kind::Directory),
            Ok(_) => Ok(Kind::File),
            Err(error) => {
                let why = format!("what the filer says of `/{path}` cannot be understood: {error}");
                Err(error::of_success(answer.status, why))
            }
        }
    }

    /// Refuses a path that leads through a file: a filer makes a directory of a file that something
    /// is written below, and what the file held is lost. Tells whether all of it is there.
    async fn check_way(&mut self, path: &str) -> Result<bool, DriverError> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends.filter(|end| *end > 0) {
            match self.kind(&path[..end]).await? {
                Kind::Directory => {}
                Kind::Nothing => return Ok(false),
                Kind::File => {
                    let why = format!(
                        "`/{}` is a file, which would be lost if something were written below it; \
                         name another directory",
                        &path[..end]
                    );
                    return Err(DriverError::new(ErrorClass::Precondition, why));
                }
            }
        }
        Ok(true)
    }

    async fn ensure(&mut self) -> Result<RootState, DriverError> {
        let directory = self.directory().to_owned();
        if self.check_way(&directory).await? {
            return Ok(RootState::Existed);
        }
        let session = &mut self.session;
        if !session.thread.config.creates_directory {
            let why = format!(
                "directory `/{directory}` does not exist; create it, or add `create_bucket`"
            );
            return Err(DriverError::with_status(ErrorClass::NotFound, 404, why));
        }
        session.set_directory(None, "")?;
        session.begin("POST", "/", TokenFor::Write, Follows::NoBytes);
        let (client, host) = (&mut session.client, session.host);
        // 409: somebody was faster.
        let done = session.wire.ask(client, host, false, &[201, 409]).await;
        done.result?;
        if session.wire.answer.status != 201 {
            return Ok(RootState::Existed);
        }
        self.has_created = true;
        Ok(RootState::Created)
    }

    async fn ready(&mut self, needs: &[Ability], base: &str) -> Result<Option<Lack>, DriverError> {
        use Ability::{Delete, DeleteMany, Get, List, Put, Ranges, Stat};
        let offered = [Delete, DeleteMany, Get, List, Put, Ranges, Stat];
        if let Some(need) = needs.iter().find(|need| !offered.contains(need)) {
            let why = LackReason::OfStore("does not offer it by SeaweedFS's filer");
            return Ok(Some(Lack { need: *need, why }));
        }
        if needs.contains(&Put) {
            self.ensure().await?;
            for below in [base.trim_end_matches('/'), HOME] {
                let way = self.path_of(below);
                self.check_way(&way).await?;
            }
        }
        Ok(None)
    }

    async fn find(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        goes_down: bool,
    ) -> Result<Vec<FoundObject>, DriverError> {
        let most = limit.unwrap_or(ENTRIES_MAX);
        let mut found: Vec<FoundObject> = Vec::new();
        let mut is_over = false;
        let mut take = |key: &str, size| {
            is_over = found.len() as u64 == most;
            if !is_over {
                found.push(FoundObject { key: key.to_owned(), size });
            }
            !is_over
        };
        if most > 0 {
            let listing = Listing { prefix, page_size: PAGE_SIZE, pages_max: None, goes_down };
            self.session.list(None, listing, &mut take).await.result?;
        }
        if is_over && limit.is_none() {
            let why = format!(
                "the list of `/{}` below `{prefix}` is longer than {ENTRIES_MAX} entries; ask for a \
                 number of them (`objects`) or below another `prefix`",
                self.directory()
            );
            return Err(DriverError::new(ErrorClass::Client, why));
        }
        Ok(found)
    }

    /// Removes a directory below the root with all that lies in it.
    async fn remove_below(&mut self, prefix: &str) -> Result<u64, DriverError> {
        self.removed.store(0, Ordering::Relaxed);
        let inside = prefix.strip_suffix('/').filter(|inside| path::judge(inside).is_ok());
        let Some(inside) = inside else {
            let why =
                format!("only what lies below a directory is removed, and `{prefix}` is not one");
            return Err(DriverError::new(ErrorClass::Client, why));
        };
        let path = self.path_of(inside);
        for _ in 0..REMOVALS_MAX {
            // A file of that name does not lie below the prefix.
            if self.kind(&path).await? != Kind::Directory {
                return Ok(self.removed.load(Ordering::Relaxed));
            }
            let mut count = 0;
            let mut take = |_: &str, _| {
                count += 1;
                true
            };
            let page_size = PAGE_SIZE;
            let listing = Listing { prefix, page_size, pages_max: None, goes_down: true };
            self.session.list(None, listing, &mut take).await.result?;
            self.remove(inside).await.result?;
            self.removed.fetch_add(count, Ordering::Relaxed);
        }
        let why = format!("`/{path}` is still there after it was removed {REMOVALS_MAX} times");
        Err(DriverError::new(ErrorClass::Protocol, why))
    }

    async fn remove(&mut self, inside: &str) -> Completion {
        let remover = &mut self.remover;
        if let Err(error) = remover.set_key(None, inside) {
            return remover.ended(Err(error));
        }
        remover.begin("DELETE", RECURSIVE, TokenFor::Write, Follows::Nothing);
        let (client, host) = (&mut remover.client, remover.host);
        remover.wire.ask(client, host, false, &[204, 200, 202, 404]).await
    }
}

impl Admin for FilerAdmin {
    fn ensure_root(&mut self) -> Step<'_, RootState> {
        Box::pin(self.ensure())
    }

    fn has_created(&self) -> bool {
        self.has_created
    }

    /// Leaves the directory. A filer of SeaweedFS 4.48 that removes an empty one removes with it
    /// what is written into it meanwhile (`DeleteFolderChildren` in its
    /// `weed/filer/filer_delete_entry.go`).
    fn remove_created(&mut self) -> Step<'_, Option<CreatedRoot>> {
        const WHY: &str = "SeaweedFS may delete with it what somebody has begun to write into it";
        let stays = self.has_created.then(|| CreatedRoot::Stays(WHY.to_owned()));
        Box::pin(std::future::ready(Ok(stays)))
    }

    /// Makes sure that nothing of others is in the way of what is written.
    fn make_ready<'a>(&'a mut self, needs: &'a [Ability], base: &'a str) -> Step<'a, Option<Lack>> {
        Box::pin(self.ready(needs, base))
    }

    fn survey<'a>(
        &'a mut self,
        prefix: &'a str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Step<'a, Vec<FoundObject>> {
        Box::pin(self.find(prefix, limit, recursive))
    }

    fn judge_name(&self, name: &str) -> Result<(), String> {
        path::judge(name).map_err(|error| error.to_string())
    }

    /// Removes the directory that the prefix names with its `/`, and nothing where it names none.
    fn sweep<'a>(&'a mut self, prefix: &'a str) -> Step<'a, u64> {
        Box::pin(self.remove_below(prefix))
    }

    fn removed_count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.removed)
    }

    fn put_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(async move {
            let put = Operation::Put { key, content: &mut Empty };
            self.session.execute(None, put).await.result
        })
    }

    fn remove_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(async move { self.session.delete(None, key).await.result })
    }

    fn dates_of<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Dates>> {
        Box::pin(async move {
            self.session.wire.answer.dates = Some(Dates::default());
            let asked = self.session.execute(None, Operation::Stat { key, version: None }).await;
            let dates = self.session.wire.answer.dates.take();
            match asked.result {
                Err(error) if error.class == ErrorClass::NotFound => Ok(None),
                asked => asked.map(|()| dates),
            }
        })
    }
}
