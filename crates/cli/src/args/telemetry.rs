//! The flags for what a run tells while it runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plimsoll_conduct::{RunTime, machine};
use plimsoll_record::Manifest;
use plimsoll_telemetry::{Named, Receivers, RunFacts, Telemetry, TelemetryError};

use crate::args::ScrapeArgs;
use crate::secret::Secret;
use crate::ui::Ui;

/// Who is told of a run while it runs. Nobody is told of it unless asked for.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct TelemetryArgs {
    /// Export live metrics for Prometheus at http://ADDR:PORT/metrics during the run; port 0 takes
    /// a free one and says which
    #[arg(long, env = "PLIMSOLL_METRICS", value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Push the same counters once a second to an OpenTelemetry receiver (OTLP over HTTP, JSON);
    /// without a path to /v1/metrics
    #[arg(long, env = "PLIMSOLL_OTLP", hide_env_values = true, value_name = "URL")]
    pub(crate) otlp: Option<Secret>,
    /// Write running totals once a second to InfluxDB (version 2):
    /// http(s)://TOKEN@HOST:PORT/BUCKET/ORG?TAG=VALUE&...; prefer the environment variable: other
    /// users of this machine can see flags
    #[arg(long, env = "PLIMSOLL_INFLUXDB_CONNECT", hide_env_values = true, value_name = "URL")]
    pub(crate) influxdb: Option<Secret>,
    #[command(flatten)]
    pub(crate) scrape: ScrapeArgs,
}

impl TelemetryArgs {
    fn receivers(&self) -> Receivers {
        let named = |name, url: &Option<Secret>| {
            url.as_ref().map(|url| Named { name, value: url.expose().to_owned() })
        };
        Receivers {
            page: self.metrics.map(|value| Named { name: "--metrics", value }),
            otlp: named("--otlp", &self.otlp),
            influxdb: named("--influxdb", &self.influxdb),
        }
    }

    /// Begins to tell of a run of that manifest, if anybody is to be told.
    pub(crate) fn start(
        &self,
        manifest: &Manifest,
        what: &str,
        time: &RunTime,
        tls_ca: Option<PathBuf>,
        ui: Ui,
    ) -> Result<Option<Telemetry>, TelemetryError> {
        let facts = RunFacts {
            run_id: &manifest.run_id,
            what,
            endpoints: &manifest.target.endpoints,
            clock: &time.clock,
            wall_epoch: time.wall_epoch,
            cpu: machine::cpu_time,
            tls_ca,
            tell: Arc::new(move |line| ui.warn(line)),
        };
        let telemetry = Telemetry::start(&self.receivers(), &facts)?;
        if let Some(page) = telemetry.as_ref().and_then(Telemetry::page) {
            ui.note(&format!("metrics at {page}"));
        }
        Ok(telemetry)
    }
}
