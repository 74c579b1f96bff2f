//! The seam between the engine and what speaks to a kind of target.
//!
//! A [`Driver`] opens one [`Session`] per worker on the thread that will drive it; a session does
//! one operation at a time. Administration (making the bucket, listing what is there, removing what
//! the run wrote) is apart in [`Admin`]. No concrete driver and no protocol is known here.

pub mod conformance;
mod content;
mod error;
pub mod memory;
pub mod mock;
pub mod null;
mod ring;

use std::fs::File;
use std::future::Future;
use std::num::NonZeroU32;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_model::{Ability, EndpointId, Moment, SharedClock, SocketsSeen, WallTime};

pub use content::{ContentSink, ContentSource, EntrySink};
pub use error::{DriverError, MESSAGE_CHARS_MAX, one_line};
pub use ring::{
    Access, Handle, NullRing, NullRings, OpenMode, Place, Reply, Request, Ring, RingDriver,
};

/// A range of an object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte, 0-based.
    pub offset: u64,
    /// How many bytes, at least 1.
    pub len: u64,
}

/// One operation as the engine asks for it. Keys are whole keys within the bucket or root.
pub enum Operation<'a> {
    /// Writes a whole object.
    Put {
        /// The object's key.
        key: &'a str,
        /// Gives the content; its length is the object's size.
        content: &'a mut dyn ContentSource,
    },
    /// Reads an object or a range of it.
    Get {
        /// The object's key.
        key: &'a str,
        /// The range, or `None` for the whole object.
        range: Option<ByteRange>,
        /// The version by the target's own name, or `None` for the latest.
        version: Option<&'a str>,
        /// Takes every content byte received.
        sink: &'a mut dyn ContentSink,
    },
    /// Reads an object's properties.
    Stat {
        /// The object's key.
        key: &'a str,
        /// The version by the target's own name, or `None` for the latest.
        version: Option<&'a str>,
    },
    /// Removes objects with one call; an object that is not there counts as removed.
    Delete {
        /// The keys, at least one, at most [`DELETE_BATCH_MAX`].
        keys: &'a [String],
    },
    /// Lists everything below a prefix, following pages to the end or as far as is asked; in the
    /// bucket of the empty name the buckets of the account, where the target offers that.
    List {
        /// The prefix, compared as text.
        prefix: &'a str,
        /// How many entries to ask for per page.
        page_size: u32,
        /// How many pages to read at most; `None`: all.
        pages_max: Option<NonZeroU32>,
        /// Takes every entry.
        sink: &'a mut dyn EntrySink,
    },
    /// Removes one version of an object for good.
    DeleteVersion {
        /// The object's key.
        key: &'a str,
        /// The version by the target's own name.
        version: &'a str,
    },
    /// Lists every version below a prefix, following pages to the end or as far as is asked; marks
    /// of deletion are entries too.
    ListVersions {
        /// The prefix, compared as text.
        prefix: &'a str,
        /// How many entries to ask for per page.
        page_size: u32,
        /// How many pages to read at most; `None`: all.
        pages_max: Option<NonZeroU32>,
        /// Takes every entry.
        sink: &'a mut dyn EntrySink,
    },
    /// Reads one part of an object that was uploaded in parts.
    GetPart {
        /// The object's key.
        key: &'a str,
        /// The part's number, from 1 on.
        number: u32,
        /// Takes every content byte received.
        sink: &'a mut dyn ContentSink,
    },
    /// Reads one file of a zip archive without the rest of it.
    GetMember {
        /// The archive's key.
        key: &'a str,
        /// The file's path in the archive.
        member: &'a str,
        /// Takes every content byte received.
        sink: &'a mut dyn ContentSink,
    },
    /// Sets until when an object may not be removed.
    Retain {
        /// The object's key.
        key: &'a str,
        /// The version by the target's own name, or `None` for the latest.
        version: Option<&'a str>,
        /// Until when.
        until: WallTime,
    },
    /// Begins an upload in parts; the completion's server name is its id.
    CreateUpload {
        /// The key that the object is to have.
        key: &'a str,
    },
    /// Writes one part of an upload; the completion's server name is the part's.
    PutPart {
        /// The key that the object is to have.
        key: &'a str,
        /// The upload.
        upload: &'a str,
        /// The part's number, from 1 on.
        number: u32,
        /// Gives the content; its length is the part's size.
        content: &'a mut dyn ContentSource,
    },
    /// Makes an object of the parts of an upload.
    CompleteUpload {
        /// The key that the object is to have.
        key: &'a str,
        /// The upload.
        upload: &'a str,
        /// The tags of its parts, those of part 1, 2, ... in order.
        parts: &'a [String],
    },
    /// Gives an upload up, with all parts that it has.
    AbortUpload {
        /// The key that the object was to have.
        key: &'a str,
        /// The upload.
        upload: &'a str,
    },
    /// Adds content to the end of an object.
    Append {
        /// The object's key.
        key: &'a str,
        /// How long the object is before.
        offset: u64,
        /// Gives what is added.
        content: &'a mut dyn ContentSource,
    },
    /// Writes a whole object by an HTML form.
    Post {
        /// The object's key.
        key: &'a str,
        /// Gives the content; its length is the object's size.
        content: &'a mut dyn ContentSource,
    },
    /// Writes an archive that the target takes apart into one object for each member.
    PutArchive {
        /// The archive's key.
        key: &'a str,
        /// Gives the archive.
        archive: &'a mut dyn ContentSource,
        /// How many members it has.
        members: u32,
    },
    /// Writes one content under several keys with one call.
    Fanout {
        /// The keys.
        keys: &'a [String],
        /// Gives the content; its length is the size of each object.
        content: &'a mut dyn ContentSource,
    },
}

/// The most keys one [`Operation::Delete`] may carry (S3's own limit).
pub const DELETE_BATCH_MAX: usize = 1_000;

/// What came of one operation. A failed one keeps whatever moments are known.
#[derive(Debug)]
pub struct Completion {
    /// The address it went to.
    pub endpoint: EndpointId,
    /// When the target had told where the content goes, where it is asked for that apart.
    pub assigned: Option<Moment>,
    /// First byte of the answer's body (get, list) or of the answer (others).
    pub first_byte: Option<Moment>,
    /// When the last byte of the request's body had been handed to the socket; `None` without a
    /// body.
    pub last_byte_sent: Option<Moment>,
    /// When the answer was complete, or the failure known.
    pub end: Moment,
    /// Content bytes moved.
    pub bytes: u64,
    /// Objects handled: entries listed, keys deleted, 1 for the rest; of a failed operation those
    /// that succeeded.
    pub objects_count: u32,
    /// The object's size as the target states it (stat, and get where the answer says it).
    pub object_size: Option<u64>,
    /// How the target names what came of it: the version that a PUT wrote, the upload that was
    /// begun, the part that was written.
    pub server_name: Option<Box<str>>,
    /// Whether content that the driver checks as a rule could not be checked this time.
    pub is_unchecked: bool,
    /// How many requests the driver sent again by itself, as after a token had expired.
    pub resent_count: u8,
    /// Success, or what went wrong.
    pub result: Result<(), DriverError>,
}

impl Completion {
    /// Returns the completion of an operation of which nothing is known but its end and its result.
    pub fn bare(endpoint: EndpointId, end: Moment, result: Result<(), DriverError>) -> Self {
        Self {
            endpoint,
            assigned: None,
            first_byte: None,
            last_byte_sent: None,
            end,
            bytes: 0,
            objects_count: 0,
            object_size: None,
            server_name: None,
            is_unchecked: false,
            resent_count: 0,
            result,
        }
    }
}

/// One worker's handle on a target. Stays on the thread that opened it.
pub trait Session {
    /// Does one operation to its end, in the target's own bucket or in the one that is named; what
    /// has no buckets takes the name as the first part of keys. Never panics on what the target
    /// answers; failures are in the completion.
    ///
    /// Dropping the future abandons the operation; the session must be usable afterwards (a new
    /// connection).
    fn execute(
        &mut self,
        bucket: Option<&str>,
        operation: Operation<'_>,
    ) -> impl Future<Output = Completion>;

    /// Returns the endpoint that the operation under way, or the last one, went to.
    fn endpoint(&self) -> EndpointId;

    /// Cleans up behind operations that failed or were abandoned, such as giving up the upload that
    /// one of them had begun.
    ///
    /// Takes time of no operation: it is called after the end of a failed one, before the start of
    /// the next. The driver limits how long it takes; what it could not do is left to the sweep.
    fn settle(&mut self) -> impl Future<Output = Settled> {
        std::future::ready(Settled::default())
    }
}

/// What cleaning up behind failed operations came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Uploads that were given up: the target has thrown their parts away.
    pub given_up_count: u64,
    /// Uploads that could not be given up, so that their parts are still there.
    pub left_count: u64,
}

impl Settled {
    /// Adds what came of another time.
    pub fn add(&mut self, other: Self) {
        self.given_up_count += other.given_up_count;
        self.left_count += other.left_count;
    }
}

/// Makes sessions for one target. Shared by all threads.
pub trait Driver: Send + Sync {
    /// The session type.
    type Session: Session;

    /// Opens `count` sessions on the calling thread, inside its runtime. Connections open on first
    /// use.
    ///
    /// Sessions opened by one call may share thread-local state, such as how busy each endpoint is.
    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<Self::Session>;

    /// Returns the addresses of the target, indexed by [`EndpointId`], as reports show them.
    fn endpoints(&self) -> Vec<String>;

    /// Has the driver note in a file from now on what the target calls that which is written, each
    /// name before it is used, where names are all that it can be removed by. The file is open to
    /// be read and added to; `path` is what messages call it.
    fn keep_names(&self, _path: &Path, _file: File) {}

    /// Returns how many connections so many sessions may have open at once, on `threads` threads.
    fn connections_max(&self, sessions: u64, threads: u64) -> u64 {
        let _ = threads;
        sessions * self.endpoints().len() as u64
    }

    /// Returns what the connections of the calling thread told until now, and begins anew.
    fn sockets_seen(&self) -> SocketsSeen {
        SocketsSeen::default()
    }

    /// Returns what the target can do where that needs no look at it; `None`: its [`Admin`] tells.
    fn offers(&self) -> Option<&'static [Ability]> {
        None
    }
}

/// An object found on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundObject {
    /// Its key.
    pub key: String,
    /// Its size.
    pub size: u64,
}

/// What preparing the root (bucket, directory) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootState {
    /// It was there.
    Existed,
    /// It was made.
    Created,
}

/// What happens where the root of a run does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingRoot {
    /// The run is refused.
    #[default]
    Refuse,
    /// It is created, and removed at the end if nothing is in it.
    Create,
    /// It is created and stays.
    CreateAndKeep,
}

impl MissingRoot {
    /// Returns what is asked for: whether it is created, and whether one that was stays.
    pub const fn asked(create: bool, keep: bool) -> Self {
        match (create, keep) {
            (false, _) => Self::Refuse,
            (true, false) => Self::Create,
            (true, true) => Self::CreateAndKeep,
        }
    }
}

/// What became of a root that an admin created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreatedRoot {
    /// It was empty and was removed.
    Removed,
    /// It stays; a sentence says why.
    Stays(String),
}

/// A step of administration.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + 'a>>;

/// Something that work needs and a target does not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is needed.
    pub need: Ability,
    /// What the target does instead, such as `keeps no versions`, or what can be done about it.
    pub why: LackReason,
}

/// Why something is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LackReason {
    /// The target never offers it; the text goes on after `the store`.
    OfStore(&'static str),
    /// It is not switched on for this bucket or directory; a whole sentence.
    OfRoot(String),
}

/// When an object was written and what time it is now, both by the target's own clock, as HTTP
/// writes times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dates {
    /// The time of the answer (`Date`); empty where the target states none.
    pub now: String,
    /// When the object was written (`Last-Modified`); empty where the target states none.
    pub modified: String,
}

/// Administration of a target, outside of what is measured: one bucket, directory or collection of
/// it, which is its root here.
pub trait Admin {
    /// Makes sure that the root exists. The driver's configuration says whether to create it.
    fn ensure_root(&mut self) -> Step<'_, RootState>;

    /// Tells whether this admin created the root.
    fn has_created(&self) -> bool {
        false
    }

    /// Removes the root if this admin created it, nothing is in it and it was not to be kept;
    /// `None`: there is nothing to be said about it.
    fn remove_created(&mut self) -> Step<'_, Option<CreatedRoot>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Makes sure that the root is there and offers what work needs, and returns what is lacking.
    /// What has to be tried out is tried out below `base`, which is the run's own.
    fn make_ready<'a>(&'a mut self, needs: &'a [Ability], base: &'a str) -> Step<'a, Option<Lack>>;

    /// Lists up to `limit` objects below `prefix` (all when `None`); `recursive` false stops at
    /// `/`.
    fn survey<'a>(
        &'a mut self,
        prefix: &'a str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Step<'a, Vec<FoundObject>>;

    /// Returns why a name that the user gives can be that of no object.
    fn judge_name(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }

    /// Removes every object below `prefix`, which must not be empty, and returns how many there
    /// were.
    fn sweep<'a>(&'a mut self, prefix: &'a str) -> Step<'a, u64>;

    /// Returns what counts the objects that the sweep under way has removed, or the last one did,
    /// also one that was given up.
    fn removed_count(&self) -> Arc<AtomicU64>;

    /// Writes an empty object, whose name alone says something.
    fn put_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()>;

    /// Removes an object, as far as the target lets go of it; one that is not there counts as
    /// removed.
    fn remove_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()>;

    /// Returns when an object was written, by the target's own clock; `None`: it is not there, or
    /// the target does not say.
    fn dates_of<'a>(&'a mut self, _key: &'a str) -> Step<'a, Option<Dates>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Makes the bucket, unless it already exists.
    fn make_bucket(&mut self) -> Step<'_, RootState> {
        self.ensure_root()
    }

    /// Notes in the bucket that this run made it.
    fn mark<'a>(&'a mut self, _run: &'a str) -> Step<'a, ()> {
        Box::pin(std::future::ready(Err(DriverError::unsupported())))
    }

    /// Tells whether a run of plimsoll made the bucket; `None`: it is not there. One that cannot be
    /// looked into was made by somebody else.
    fn is_marked(&mut self) -> Step<'_, Option<bool>> {
        Box::pin(std::future::ready(Ok(Some(false))))
    }

    /// Removes the bucket, and tells whether it was there. One that holds anything is refused and
    /// left as it is.
    fn remove_bucket(&mut self) -> Step<'_, bool> {
        Box::pin(std::future::ready(Err(DriverError::unsupported())))
    }
}
