//! The flags for what a run tells while it runs.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use clap::Args;

/// Who is told of a run while it runs. Nobody is told of it unless asked for.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct TelemetryArgs {
    /// Serve the counters so far at http://ADDR:PORT/metrics, as Prometheus reads them, while the
    /// run lasts; port 0 takes a free one and says which
    #[arg(long, env = "PLIMSOLL_METRICS", value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Push the same counters once a second to an OpenTelemetry receiver (OTLP over HTTP, JSON);
    /// without a path to /v1/metrics
    #[arg(long, env = "PLIMSOLL_OTLP", hide_env_values = true, value_name = "URL")]
    pub(crate) otlp: Option<SecretUrl>,
    /// Write running totals once a second to InfluxDB (version 2):
    /// http(s)://TOKEN@HOST:PORT/BUCKET/ORG?TAG=VALUE&...; rather by environment than as a flag,
    /// which other users of this machine can read
    #[arg(long, env = "PLIMSOLL_INFLUXDB_CONNECT", hide_env_values = true, value_name = "URL")]
    pub(crate) influxdb: Option<SecretUrl>,
}

/// An address that may hold a secret: it is looked at only where it is used, so that no message
/// about the command line shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrl(pub(crate) String);

impl FromStr for SecretUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl")
    }
}
