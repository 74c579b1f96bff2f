//! An HTTP client made for measuring: a sans-IO core of HTTP/1.1 on httparse and the transport that
//! carries it; HTTP/2 where it is asked for, on h2 over the same transport.
//!
//! Knows sockets, TLS, framing and host choice; knows nothing of S3 or of workloads.
//!
//! The seam for another transport is [`response::ResponseParser`]: it is fed bytes, hands out the
//! head and slices of the body, and says when the answer is complete; nothing in it knows where the
//! bytes come from. [`Client`] carries them on tokio's sockets; over plain TCP, requests of a
//! thread that are ready together may go out through its `io_uring`. There are no hidden retries: a
//! request goes out once.

mod allowed;
mod channel;
mod client;
mod connection;
mod dial;
mod endpoint;
mod error;
mod exchange;
pub mod grpc;
pub mod hosts;
mod http2;
pub mod patterns;
mod proxy;
mod range;
pub mod response;
pub mod seen;
mod send;
mod stall;
mod tls;
mod transport;
mod uring;
mod url;

pub use allowed::{AllowedHosts, NamedHosts, NotAllowed};
pub use client::{Client, HttpVersion, Options};
pub use endpoint::{Endpoint, ResolveError, resolve_all};
pub use error::{ExchangeError, ExchangeErrorKind};
pub use exchange::{Body, Exchange, Request};
pub use hosts::{HostChooser, HostSelect};
pub use patterns::{PatternError, Scheme, expand_hosts, expand_lines, split_scheme};
pub use proxy::{Proxies, ProxyError, ProxyVariables};
pub use range::{HeldRange, parse_content_range};
pub use response::{ResponseHead, ResponseSink};
pub use tls::{Pem, TlsConfig, TlsIdentity, TlsOptions, TlsSetupError};
pub use transport::{Transport, TransportError};
pub use url::{PORT_PLAIN, PORT_TLS, Url};
