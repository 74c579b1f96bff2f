//! One operation as it is planned.

use plimsoll_model::{ObjectId, OpKind, WorkerId};

use crate::mix64;
use crate::plan::SetIndex;

/// A member by id, size and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Its id in its set.
    pub id: ObjectId,
    /// Its size; `None` where nobody in this run knows it.
    pub size: Option<u64>,
    /// Which of its contents is written or expected: 0 until it is overwritten. Where the store
    /// keeps versions, the number of the version.
    pub version: u32,
    /// Whether the operation is about this version by the store's own name for it, instead of what
    /// lies under the key.
    pub is_by_name: bool,
}

impl ObjectRef {
    /// Stands for a version where nobody knows which it is.
    const VERSION_UNKNOWN: u32 = u32::MAX;

    /// Returns a member of which nobody knows what it holds: writing it has failed.
    pub const fn doubtful(id: ObjectId) -> Self {
        Self::newest(id, None, Self::VERSION_UNKNOWN)
    }

    /// Tells whether nobody knows what it holds.
    pub const fn is_doubtful(&self) -> bool {
        self.version == Self::VERSION_UNKNOWN
    }

    /// Returns the newest content of a member.
    pub const fn newest(id: ObjectId, size: Option<u64>, version: u32) -> Self {
        Self { id, size, version, is_by_name: false }
    }
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// One member, or the part of it given as offset and length.
    Object(ObjectRef, Option<(u64, u64)>),
    /// Positions of the order in which a set is removed.
    Batch {
        /// The first position.
        from: u64,
        /// How many.
        count: u32,
    },
    /// What lies below a prefix, in one of the set's buckets.
    Listing {
        /// The prefix.
        below: Below,
        /// The bucket, 0-based among those of the set.
        bucket: u32,
        /// Which operation of the mix says how it is read.
        op: u16,
    },
    /// One part of a member.
    Part {
        /// The member.
        object: ObjectId,
        /// The part's number, from 1 on.
        number: u32,
        /// Where in the member it begins.
        offset: u64,
        /// How long it is.
        len: u64,
    },
    /// One file of the zip archive that the set is.
    Member(ObjectRef),
    /// A whole archive: that of the set, or one of the worker's own.
    Archive(ObjectId),
    /// One content under several names.
    Copies(ObjectRef),
}

/// The prefix that a listing is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Below {
    /// That of an owner of members, where each has one, or the one of all.
    Owner(WorkerId),
    /// That of a page of the set, 0-based.
    Page(u32),
}

impl Subject {
    /// Returns the one member that it is or is part of.
    pub const fn object_id(&self) -> Option<ObjectId> {
        match self {
            Self::Object(object, _) | Self::Member(object) | Self::Copies(object) => {
                Some(object.id)
            }
            Self::Part { object, .. } => Some(*object),
            Self::Archive(id) => Some(*id),
            Self::Batch { .. } | Self::Listing { .. } => None,
        }
    }
}

/// The next operation of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannedOp {
    /// What to do.
    pub kind: OpKind,
    /// The set it is done to.
    pub set: SetIndex,
    /// What of it.
    pub subject: Subject,
}

impl PlannedOp {
    /// Returns a hash of what is planned.
    pub fn fingerprint(&self) -> u64 {
        let of = |object: &ObjectRef| {
            let size = object.size.unwrap_or(u64::MAX);
            (object.id.as_u64(), size ^ u64::from(object.version) << 48)
        };
        let words = match &self.subject {
            Subject::Object(object, range) => {
                let (offset, len) = range.unwrap_or((0, u64::MAX));
                let (id, size) = of(object);
                [id, size, offset, len]
            }
            Subject::Batch { from, count } => [*from, u64::from(*count), 1, 0],
            Subject::Listing { below: Below::Owner(owner), bucket, .. } => {
                [2, owner.0.into(), (*bucket).into(), 0]
            }
            Subject::Listing { below: Below::Page(page), bucket, .. } => {
                [2, (*page).into(), (*bucket).into(), 1]
            }
            Subject::Part { object, number, len, .. } => {
                [object.as_u64(), u64::from(*number), *len, 3]
            }
            Subject::Member(object) => [of(object).0, of(object).1, 4, 0],
            Subject::Archive(id) => [id.as_u64(), 5, 0, 0],
            Subject::Copies(object) => [of(object).0, of(object).1, 6, 0],
        };
        let start = mix64(self.set.0 as u64) ^ (self.kind as u64 + 1);
        words.into_iter().fold(start, |hash, word| mix64(hash ^ mix64(word)))
    }
}
