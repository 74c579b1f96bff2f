//! Exchanges over real sockets: against hyper, and against a server that misbehaves on purpose.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod against_hyper;
mod faults;
mod grpc;
mod http2;
mod identity;
mod proxies;
mod proxy_kinds;
mod srv;
mod support;
mod tls;
