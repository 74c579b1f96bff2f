//! Administration of a cluster: volumes are made ready, and what a run was given is removed by its
//! journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_driver::{
    Admin, CreatedRoot, DriverError, FoundObject, Lack, LackReason, RootState, Step,
};
use plimsoll_model::{Ability, ErrorClass};

use crate::journal::{made_collection, read_list};
use crate::session::SeaweedSession;
use crate::{FileId, collection};

/// How many files are removed by one call.
const BATCH: usize = 1_000;

/// An admin of [`SeaweedDriver`](crate::SeaweedDriver).
pub struct SeaweedAdmin {
    session: SeaweedSession,
    /// `None` is the driver's own.
    collection: Option<Box<str>>,
    removed: Arc<AtomicU64>,
    /// Whether the collection did not exist before.
    has_created: bool,
}

impl SeaweedAdmin {
    pub(crate) fn new(session: SeaweedSession, collection: Option<&str>) -> Self {
        let collection = collection.map(Into::into);
        Self { session, collection, removed: Arc::default(), has_created: false }
    }

    fn collection(&self) -> &str {
        let own = &self.session.thread.master.config.collection;
        self.collection.as_deref().unwrap_or(own)
    }

    /// Has volumes of the collection made, and notes it where this run makes it; tells whether.
    async fn make_collection(&mut self) -> Result<bool, DriverError> {
        let thread = &self.session.thread;
        let name = self.collection();
        let is_new = !name.is_empty() && !collection::exists(thread, name).await?;
        if is_new && !thread.master.config.creates_collection {
            let why = format!(
                "collection `{name}` does not exist; name one that does, or add `create_bucket`"
            );
            return Err(DriverError::with_status(ErrorClass::NotFound, 404, why));
        }
        if is_new {
            let noted = thread.journal.note_made(name);
            noted.map_err(|error| DriverError::new(ErrorClass::Io, error.to_string()))?;
        }
        if let Some(count) = thread.master.config.grow {
            collection::grow(thread, name, count).await?;
        }
        let collection = self.collection.clone();
        self.session.await_volumes(collection.as_deref()).await?;
        self.has_created |= is_new;
        Ok(is_new)
    }

    async fn remove_journal(&mut self) -> Result<u64, DriverError> {
        self.removed.store(0, Ordering::Relaxed);
        let journal = Arc::clone(&self.session.thread.journal);
        let Some(path) = journal.path() else { return Ok(0) };
        let text = journal.read().map_err(|error| {
            let why = format!("cannot read {}: {error}", path.display());
            DriverError::new(ErrorClass::Io, why)
        })?;
        let ids = read_list(&text).map_err(|error| {
            let why = format!("{}: {error}", path.display());
            DriverError::new(ErrorClass::Client, why)
        })?;
        let thread = &self.session.thread;
        // A list that somebody edited must not remove what is in the collections of others.
        let collections = collection::of_volumes(thread).await;
        let own = self.collection();
        let is_own = |id: &FileId| collections.get(&id.volume).is_none_or(|name| name == own);
        let ids: Vec<FileId> = ids.into_iter().filter(is_own).collect();
        let mut nowhere = 0;
        for batch in ids.chunks(BATCH) {
            let done = thread.remove_all(batch).await;
            self.removed.fetch_add(done.there, Ordering::Relaxed);
            nowhere += done.nowhere;
            done.result?;
        }
        // With its collection a volume goes for good.
        if nowhere > 0 && (own.is_empty() || collection::exists(thread, own).await?) {
            let why = format!(
                "{nowhere} of the {} files that {} lists lie on volumes that no server has: start \
                 the volume server that is away",
                ids.len(),
                path.display()
            );
            return Err(DriverError::new(ErrorClass::Precondition, why));
        }
        if thread.master.config.drop_collection {
            for name in made_collection(&text) {
                collection::drop_empty(thread, name).await?;
            }
        }
        Ok(self.removed.load(Ordering::Relaxed))
    }
}

fn unsupported<'a, T: 'a>() -> Step<'a, T> {
    Box::pin(std::future::ready(Err(DriverError::unsupported())))
}

impl Admin for SeaweedAdmin {
    /// Has volumes made, without which a collection is not there.
    fn ensure_root(&mut self) -> Step<'_, RootState> {
        Box::pin(async {
            let made = self.make_collection().await?;
            Ok(if made { RootState::Created } else { RootState::Existed })
        })
    }

    fn has_created(&self) -> bool {
        self.has_created
    }

    /// Leaves the collection, unless the sweep was to drop it: nothing keeps another run from
    /// writing to it between a look at its files and its removal.
    fn remove_created(&mut self) -> Step<'_, Option<CreatedRoot>> {
        const WHY: &str = "SeaweedFS deletes a collection with all that is in it";
        let drops = self.session.thread.master.config.drop_collection;
        let stays = (self.has_created && !drops).then(|| CreatedRoot::Stays(WHY.to_owned()));
        Box::pin(std::future::ready(Ok(stays)))
    }

    /// Has volumes made that can be written to, so that this is in no figure.
    fn make_ready<'a>(&'a mut self, needs: &'a [Ability], _: &'a str) -> Step<'a, Option<Lack>> {
        Box::pin(async move {
            use Ability::{Delete, DeleteMany, Get, Put, Ranges, Stat};
            let offered = [Delete, DeleteMany, Get, Put, Ranges, Stat];
            if let Some(need) = needs.iter().find(|need| !offered.contains(need)) {
                let why = LackReason::OfStore("does not offer it by SeaweedFS's own protocol");
                return Ok(Some(Lack { need: *need, why }));
            }
            if needs.contains(&Put) {
                self.make_collection().await?;
            }
            Ok(None)
        })
    }

    fn survey<'a>(&'a mut self, _: &'a str, _: Option<u64>, _: bool) -> Step<'a, Vec<FoundObject>> {
        unsupported()
    }

    fn judge_name(&self, name: &str) -> Result<(), String> {
        name.parse::<FileId>().map(drop).map_err(|error| error.to_string())
    }

    /// Removes what the run was given, which lies below no prefix.
    fn sweep<'a>(&'a mut self, _: &'a str) -> Step<'a, u64> {
        Box::pin(self.remove_journal())
    }

    fn removed_count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.removed)
    }

    fn put_mark<'a>(&'a mut self, _: &'a str) -> Step<'a, ()> {
        unsupported()
    }

    fn remove_mark<'a>(&'a mut self, _: &'a str) -> Step<'a, ()> {
        unsupported()
    }
}
