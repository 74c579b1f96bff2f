//! Keeps what a store tells of itself in Prometheus's text while a run lasts. A thread of its own
//! asks; no worker waits for it, and no page ends the run, whatever it answers.

mod fetch;
mod keep;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread::{Builder as ThreadBuilder, JoinHandle};
use std::time::Duration;

use futures::future::join_all;
use plimsoll_http::{TlsConfig, TlsOptions, Url};
use plimsoll_model::{Glob, Secret, SharedClock};
use plimsoll_record::ScrapedWriter;
use plimsoll_record::schema::ScrapedPage;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::{TelemetryError, Tell};
use fetch::{Page, SCRAPE_MAX, SCRAPE_MAX_AT_END};
use keep::Kept;

/// Pages that are read at most.
const PAGES_MAX: usize = 64;

/// What of a store's own metrics is kept.
#[derive(Clone)]
pub struct ScrapeAsked {
    /// What messages call the addresses, such as the flag that named them.
    pub name: &'static str,
    /// The pages: `http(s)://[TOKEN@|USER:PASSWORD@]HOST[:PORT][/PATH][?QUERY]`.
    pub urls: Vec<Secret>,
    /// How often each is read.
    pub every: Duration,
    /// Names of the metrics that are kept; empty: all but the buckets of histograms.
    pub matching: Vec<Glob>,
    /// Certificates to trust besides the system's.
    pub tls_ca: Option<PathBuf>,
}

/// Pages that will be read.
pub struct Scrape {
    pages: Vec<Page>,
    every: Duration,
    matching: Vec<Glob>,
}

impl Scrape {
    /// Returns what is to be read, if anything is; refuses what can never work.
    pub fn new(asked: &ScrapeAsked) -> Result<Option<Self>, TelemetryError> {
        let name = asked.name;
        let refused = |reason: String| TelemetryError::Address { name, reason };
        let urls = asked.urls.iter().map(Secret::expose).filter(|url| !url.is_empty());
        let urls: Vec<&str> = urls.collect();
        if urls.len() > PAGES_MAX {
            return Err(refused(format!("{} pages are too many: {PAGES_MAX} at most", urls.len())));
        }
        let page = |url: &&str| {
            let url = Url::parse(url).map_err(|reason| refused(reason.to_owned()))?;
            let options = TlsOptions { ca_file: asked.tls_ca.clone(), ..TlsOptions::default() };
            let load = || TlsConfig::load(&options).map_err(TelemetryError::Tls);
            let tls = url.tls.then(load).transpose()?;
            Page::new(&url, tls).map_err(refused)
        };
        let pages: Vec<Page> = urls.iter().map(page).collect::<Result<_, _>>()?;
        let (every, matching) = (asked.every, asked.matching.clone());
        Ok((!pages.is_empty()).then_some(Self { pages, every, matching }))
    }

    /// Returns the pages as the record of the run names them.
    pub fn pages(&self) -> Vec<ScrapedPage> {
        let interval_ns = self.every.as_nanos() as u64;
        let page = |page: &Page| ScrapedPage { url: page.shown.clone(), interval_ns };
        self.pages.iter().map(page).collect()
    }

    /// Begins to read the pages into `writer`, by the run's clock.
    pub fn begin(
        self,
        writer: ScrapedWriter,
        clock: &SharedClock,
        tell: Tell,
    ) -> Result<Scraper, TelemetryError> {
        let start = |what| move |source| TelemetryError::Start { what, source };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(start("the event loop"))?;
        let (end, ended) = watch::channel(false);
        let clock = SharedClock::clone(clock);
        let kept = Kept::new(writer, self.matching.clone(), tell);
        let thread = ThreadBuilder::new().name("scrape".to_owned());
        let thread = thread.spawn(move || self.run(&runtime, &clock, kept, &ended));
        let thread = thread.map_err(start("the thread for --scrape"))?;
        Ok(Scraper { end, thread: Some(thread) })
    }

    fn run(
        self,
        runtime: &Runtime,
        clock: &SharedClock,
        kept: Kept,
        ended: &watch::Receiver<bool>,
    ) {
        let kept = Rc::new(RefCell::new(kept));
        let every = self.every;
        runtime.block_on(join_all(self.pages.into_iter().enumerate().map(|(source, page)| {
            let reader = Reader {
                source: source as u16,
                page,
                clock: SharedClock::clone(clock),
                kept: Rc::clone(&kept),
            };
            reader.run(every, ended.clone())
        })));
    }
}

/// Reads one page until the run ends.
struct Reader {
    source: u16,
    page: Page,
    clock: SharedClock,
    kept: Rc<RefCell<Kept>>,
}

impl Reader {
    async fn run(self, every: Duration, mut ended: watch::Receiver<bool>) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let reading = async {
                ticks.tick().await;
                self.read(SCRAPE_MAX).await;
            };
            tokio::select! {
                biased;
                _ = ended.wait_for(|ended| *ended) => break,
                () = reading => {}
            }
        }
        // What came after the last one belongs to the run too.
        self.read(SCRAPE_MAX_AT_END).await;
    }

    async fn read(&self, within: Duration) {
        let start = self.clock.now();
        let read = self.page.fetch(&self.clock, within).await;
        let end = self.clock.now();
        self.kept.borrow_mut().keep(self.source, &self.page.shown, (start, end), read);
    }
}

/// The thread that reads pages. Dropped, it reads them a last time and ends, within 2 s.
pub struct Scraper {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.end.send_replace(true);
        // A panic there is no failure of the run.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
