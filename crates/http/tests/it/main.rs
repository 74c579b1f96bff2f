//! Exchanges over real sockets: against hyper, and against a server that misbehaves on purpose.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use plimsoll_http::Transport;

mod against_hyper;
mod faults;
mod grpc;
mod http2;
mod identity;
mod proxies;
mod proxy_kinds;
mod support;
mod tls;

/// What carries connections in the tests above.
const TRANSPORT: Transport = Transport::Sockets;

/// What holds over sockets, held over a ring.
#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same tests with another transport")]
#[allow(dead_code, reason = "helpers of tests that are of sockets alone")]
mod io_uring {
    mod against_hyper;
    mod faults;
    mod support;

    const TRANSPORT: super::Transport = super::Transport::IoUring;
}
