//! The flags for what a run tells while it runs.

use std::net::SocketAddr;

use clap::Args;

use crate::secret::Secret;

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
    pub(crate) otlp: Option<Secret>,
    /// Write running totals once a second to InfluxDB (version 2):
    /// http(s)://TOKEN@HOST:PORT/BUCKET/ORG?TAG=VALUE&...; rather by environment than as a flag,
    /// which other users of this machine can read
    #[arg(long, env = "PLIMSOLL_INFLUXDB_CONNECT", hide_env_values = true, value_name = "URL")]
    pub(crate) influxdb: Option<Secret>,
}
