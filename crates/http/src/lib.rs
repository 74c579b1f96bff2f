//! An HTTP/1.1 client made for measuring: a sans-IO core on httparse and the transport that carries
//! it.
//!
//! Knows sockets, TLS, framing and host choice; knows nothing of S3 or of workloads.
//!
//! The seam for another transport is [`response::ResponseParser`]: it is fed bytes, hands out the
//! head and slices of the body, and says when the answer is complete; nothing in it knows where the
//! bytes come from. [`Client`] is the transport on tokio (plain TCP and TLS). There are no hidden
//! retries: a request goes out once.

mod client;
mod connection;
mod dial;
mod endpoint;
mod error;
mod exchange;
pub mod hosts;
pub mod patterns;
pub mod response;
mod send;
mod tls;

pub use client::{Client, Options};
pub use endpoint::Endpoint;
pub use error::{ExchangeError, ExchangeErrorKind};
pub use exchange::{Body, Exchange, Request};
pub use hosts::{HostChooser, HostSelect};
pub use patterns::{PatternError, expand_hosts, expand_lines};
pub use response::{ResponseHead, ResponseSink};
pub use tls::{TlsConfig, TlsOptions, TlsSetupError};
