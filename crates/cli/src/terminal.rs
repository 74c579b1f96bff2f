//! The terminal as an observer of a run, and whoever else is told of it while it goes on.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_conduct::{Observer, StageView, Stop};
use plimsoll_model::{SeriesKey, StageId};
use plimsoll_stats::Totals;
use plimsoll_telemetry::{Scraper, Telemetry};

use crate::ui::Ui;

/// Shows a run on the terminal and has telemetry told of it.
pub(crate) struct Terminal {
    ui: Ui,
    stop: Stop,
    /// Gone when everything has been told.
    telemetry: Mutex<Option<Telemetry>>,
    /// Reads the store's own metrics; gone when the stages have ended.
    scraper: Mutex<Option<Scraper>>,
}

impl Terminal {
    /// Returns an observer that shows a run by `ui`, where `q` ends its stage.
    pub(crate) fn observer(
        ui: Ui,
        stop: &Stop,
        telemetry: Option<Telemetry>,
        scraper: Option<Scraper>,
    ) -> Arc<dyn Observer> {
        let (telemetry, scraper) = (Mutex::new(telemetry), Mutex::new(scraper));
        Arc::new(Self { ui, stop: stop.clone(), telemetry, scraper })
    }
}

/// Shows remarks alone.
impl Observer for Ui {
    fn note(&self, line: &str) {
        Self::note(self, line);
    }

    fn warn(&self, line: &str) {
        Self::warn(self, line);
    }
}

impl Observer for Terminal {
    fn note(&self, line: &str) {
        self.ui.note(line);
    }

    fn warn(&self, line: &str) {
        self.ui.warn(line);
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        let telemetry = self.telemetry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(telemetry) = &*telemetry {
            telemetry.stage(stage.name, Arc::clone(stage.live));
        }
        drop(telemetry);
        self.ui.watch(stage, &self.stop, work);
    }

    fn stages_ended(&self, measured: Vec<(StageId, Totals<SeriesKey>)>) {
        // What it reads last is in the record before a report reads that.
        drop(self.scraper.lock().unwrap_or_else(PoisonError::into_inner).take());
        let telemetry = self.telemetry.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(telemetry) = telemetry {
            telemetry.finish(measured);
        }
    }
}
