//! The nouns every room shares: units, ids, operation kinds, outcomes, moments and the operation
//! record.
//!
//! Plain values without IO: no async, no files, no protocol.

#[macro_use]
mod named;

mod ability;
mod files;
mod glob;
mod ids;
mod op;
mod outcome;
mod probe;
mod record;
mod secret;
mod seen;
mod series;
mod target;
mod time;
mod units;

pub use ability::Ability;
pub use files::{CacheState, Interface, SyncMode};
pub use glob::Glob;
pub use ids::{EndpointId, JobId, ObjectId, RunId, RunIdError, Seed, StageId, StageKind, WorkerId};
pub use named::UnknownName;
pub use op::{JobWork, OpKind};
pub use outcome::{EndReason, ErrorClass, WrongKind};
pub use probe::{ProbeOutcome, ProbeRole};
pub use record::{OpOutline, OpRecord, PackedOp, Visit};
pub use secret::{REDACTED, Secret, redacted};
pub use seen::{
    DISTURBED_KEPT_MAX, DisturbedSeen, EVIDENCE_KEPT_MAX, SOCKET_SAMPLES_MAX, SocketsSeen,
    Standstill, StandstillsSeen, ThreadUsage,
};
pub use series::SeriesKey;
pub use target::{Lookup, TargetKind};
pub use time::{Clock, Moment, SharedClock, WallTime};
pub use units::{ByteRate, Bytes, OpRate, UnitError, parse_duration, per_sec};
