//! Ctrl-C: the first one ends the stage under way, a second one leaves at once.
#![expect(clippy::disallowed_methods, reason = "a second Ctrl-C leaves without another word")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use plimsoll_engine::StopFlag;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::ui;

/// What a shell reports for a program that SIGINT ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Counts what the user asked for.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    stop: Arc<StopFlag>,
    count: Arc<AtomicU32>,
}

impl Interrupts {
    const REST_MAX: std::time::Duration = std::time::Duration::from_millis(50);

    /// Begins to listen for SIGINT and SIGTERM.
    pub(crate) fn listen() -> Result<Self> {
        let interrupts = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for Ctrl-C")?;
        let heard = interrupts.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || signals.forever().for_each(|_| heard.hear()))
            .context("cannot listen for Ctrl-C")?;
        Ok(interrupts)
    }

    fn hear(&self) {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.stop.set();
        } else {
            ui::restore_terminal();
            std::process::exit(EXIT_INTERRUPTED);
        }
    }

    /// Makes the next Ctrl-C leave at once: there is no stage left that it could end.
    pub(crate) fn leave_on_next(&self) {
        self.count.fetch_max(1, Ordering::SeqCst);
    }

    /// Rests for `time` at most, less when somebody may have asked to stop.
    pub(crate) fn rest(&self, time: std::time::Duration) {
        std::thread::park_timeout(time.min(Self::REST_MAX));
    }

    /// Ends the stage under way as Ctrl-C does.
    pub(crate) fn stop_stage(&self) {
        self.stop.set();
    }

    /// Returns the flag that ends the stage under way.
    pub(crate) fn stop_flag(&self) -> &StopFlag {
        &self.stop
    }
}
