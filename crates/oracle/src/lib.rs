//! The embedded store: an S3 server on loopback whose objects live in memory.
//!
//! It answers the object operations of S3, with versions, object lock, conditions, copies and tags,
//! checks signatures, and is fast enough not to be what a benchmark measures. Restarting it forgets
//! everything. Known differences from Amazon S3:
//!
//! * An ETag is the MD5 of the content only when the request carried `Content-MD5`, or the store
//!   was told so. Otherwise it is `crc64-<CRC-64/NVME>-<size>`: MD5 costs 1.5 ms per MiB, and S3
//!   calls an ETag opaque.
//! * An object that was uploaded in parts without MD5, or added to, has an ETag made of the ETags
//!   of what it is made of: `crc64-<CRC-64/NVME>-<size>-<how many>`.
//! * No policies, no access lists, no encryption; what is not offered answers `NotImplemented` and
//!   says what, but for encryption by the server, which is taken and not done.
//! * A full store answers 507 `InsufficientStorage`, a code that S3 does not have.
//!
//! A [`Script`] says how a store takes its time, fails and lies, and its [`Ledger`] what it truly
//! did: over loopback, and in virtual time as [`ScriptedDriver`] and, of files, [`ScriptedFiles`].

mod backend;
mod behaviour;
mod checksum;
mod clock;
mod content;
mod digests;
mod extent;
mod heads;
mod ledger;
mod listing;
mod misbehave;
mod script;
mod scripted;
mod scripted_files;
mod server;
mod store;
mod upload;

pub use behaviour::spoil::{Source, class_of_content, spoil};
pub use behaviour::{
    Act, Behaviour, ERROR_IN_SUCCESS_CODE, Lie, NEVER, Request, Verdict, WRONG_LENGTH_EXTRA,
};
pub use clock::wall_time;
pub use ledger::Ledger;
pub use misbehave::{
    BoxError, Misbehaviour, Nothing, OracleClock, Ruling, Serving, Socket, Timer, converse,
};
pub use script::seaweed::{AssignFault, Away, Growth, LeaderChange, SeaweedPlan, When};
pub use script::{SCRIPT_SCHEMA, Script, ScriptError};
pub use scripted::{ScriptedDriver, ScriptedSession};
pub use scripted_files::{ScriptedFiles, ScriptedRing};
pub use server::{ACCEPT_PAUSE, Oracle, OracleConfig, OracleError, OracleStats, TlsIdentity};
