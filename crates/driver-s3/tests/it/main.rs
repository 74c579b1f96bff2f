//! The driver over loopback: against a server that plays a script, against the embedded store, and
//! against the live servers where there are any.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use plimsoll_http::Transport;

mod admin;
mod bucket_removal;
mod common;
mod fake;
mod faults;
mod keys;
mod listing;
mod offers;
mod operations;
mod whole;

/// What carries connections in the tests above.
const TRANSPORT: Transport = Transport::Sockets;

/// What holds over sockets, held over a ring: the conformance suite, faults, operations.
#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same tests with another transport")]
#[allow(dead_code, reason = "helpers of tests that are of sockets alone")]
mod io_uring {
    mod common;
    mod fake;
    mod faults;
    mod listing;
    mod operations;
    mod whole;

    const TRANSPORT: super::Transport = super::Transport::IoUring;
}
