//! The flags for keeping a store's own metrics beside those of the run.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use plimsoll_conduct::RunTime;
use plimsoll_model::Glob;
use plimsoll_record::{Manifest, RunDirectory};
use plimsoll_telemetry::{Scrape, ScrapeAsked, Scraper};

use crate::args::Duration;
use crate::secret::Secret;
use crate::ui::Ui;

/// The variable that names a page.
pub(crate) const SCRAPE: &str = "PLIMSOLL_SCRAPE";

/// What a store tells of itself, kept with the run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct ScrapeArgs {
    /// Keep the store's own metrics in the record: a page in Prometheus's text, such as
    /// http://HOST:9000/minio/v2/metrics/cluster; without a path /metrics. Before the host may
    /// stand TOKEN@ or USER:PASSWORD@; prefer the environment variable then: other users of this
    /// machine can see flags. Can be given several times
    #[arg(long, env = SCRAPE, hide_env_values = true, value_name = "URL")]
    pub(crate) scrape: Vec<Secret>,
    /// How often to read each page
    #[arg(long, default_value = "2s", value_name = "DURATION", requires = "scrape")]
    pub(crate) scrape_interval: ScrapeInterval,
    /// Keep only metrics of that name, `*` stands for any letters; can be given several times
    /// [default: all but the buckets of histograms]
    #[arg(long, value_name = "NAME", requires = "scrape")]
    pub(crate) scrape_match: Vec<Glob>,
}

/// How often a page is read, 100 ms to an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrapeInterval(Duration);

impl Default for ScrapeInterval {
    fn default() -> Self {
        Self(Duration(std::time::Duration::from_secs(2)))
    }
}

impl std::str::FromStr for ScrapeInterval {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let every = text.parse::<Duration>().map_err(|error| error.to_string())?;
        let is_fine = (100..=3_600_000).contains(&every.0.as_millis());
        is_fine.then_some(Self(every)).ok_or_else(|| "must be 100ms to 1h".to_owned())
    }
}

impl ScrapeArgs {
    /// Returns the pages to read, if there are any, and notes them in the manifest; refuses those
    /// that can never be read.
    pub(crate) fn pages(
        &self,
        tls_ca: Option<PathBuf>,
        time: &RunTime,
        manifest: &mut Manifest,
    ) -> Result<Option<Scrape>> {
        let scrape = Scrape::new(&ScrapeAsked {
            name: "--scrape",
            urls: self.scrape.clone(),
            every: self.scrape_interval.0.0,
            matching: self.scrape_match.clone(),
            tls_ca,
        })?;
        if scrape.is_some() && time.virtual_time.is_some() {
            bail!("--scrape: in simulated time there is no store to ask");
        }
        manifest.scraped = scrape.as_ref().map_or(Vec::new(), Scrape::pages);
        Ok(scrape)
    }
}

/// Begins to read pages into the record of a run, if there are any.
pub(crate) fn begin(
    scrape: Option<Scrape>,
    directory: &RunDirectory,
    time: &RunTime,
    ui: Ui,
) -> Result<Option<Scraper>> {
    let Some(scrape) = scrape else { return Ok(None) };
    let writer = directory.begin_scraped()?;
    Ok(Some(scrape.begin(writer, &time.clock, Arc::new(move |line| ui.warn(line)))?))
}
