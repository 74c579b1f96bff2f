//! The past of a stage's time line, on its way from the threads to who keeps it.
//!
//! A thread knows no files, and the recorder must not look into what a thread writes to. So each
//! thread takes the minutes that are over out of its own time line and sends them, once a minute;
//! the recorder puts those of all threads together and hands them to the sink.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use plimsoll_model::SeriesKey;
use plimsoll_stats::{Timeline, Totals};

use crate::outcome::{OpSink, OpSinkError};

/// How many parts of all threads wait for the recorder. A thread that finds no room keeps its part,
/// and offers it again a minute later with the next.
const WAITING_MAX: usize = 256;

/// What a thread took out of its time line: all before a stretch.
pub(crate) struct PastPart {
    before: usize,
    timeline: Timeline<SeriesKey>,
}

/// Where a thread sends its past.
#[derive(Clone)]
pub(crate) struct PastSender(SyncSender<PastPart>);

impl PastSender {
    /// Sends what is over of a time line in which a stretch begins.
    #[cold]
    pub(crate) fn send(&self, timeline: &mut Timeline<SeriesKey>) {
        let before = timeline.over_before();
        let Some(past) = timeline.split_before(before) else { return };
        match self.0.try_send(PastPart { before, timeline: past }) {
            Ok(()) => {}
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                timeline.merge(&back.timeline);
            }
        }
    }
}

/// The past of all threads, as the recorder has it.
pub(crate) struct Past {
    parts: Receiver<PastPart>,
    /// What waits for the others: threads reach a minute one after the other.
    waiting: Timeline<SeriesKey>,
    /// Before which stretch a thread has sent all.
    before: usize,
    kept: Totals<SeriesKey>,
}

impl Past {
    /// Returns the way for the past of a stage that is recorded into `sink`; nothing is sent where
    /// that does not keep it.
    pub(crate) fn of(sink: &mut dyn OpSink) -> (Option<PastSender>, Self) {
        let (sender, parts) = sync_channel(WAITING_MAX);
        let waiting = Timeline::of_seconds();
        let past = Self { parts, waiting, before: 0, kept: Totals::default() };
        (sink.past().is_some().then_some(PastSender(sender)), past)
    }

    /// Hands on what has come: once a further minute is over, those before the last one, which
    /// other threads may be about to send.
    pub(crate) fn hand_on(&mut self, sink: &mut dyn OpSink) -> Result<(), OpSinkError> {
        let Some(sink) = sink.past() else { return Ok(()) };
        while let Ok(PastPart { before, timeline }) = self.parts.try_recv() {
            self.waiting.merge(&timeline);
            if before <= self.before {
                continue;
            }
            self.before = before;
            if let Some(past) = self.waiting.split_before(before - 1) {
                sink.keep(&past)?;
                self.kept.add(&past);
            }
        }
        Ok(())
    }

    /// Returns what was not handed on, and the sums of what was.
    pub(crate) fn finish(self) -> (Timeline<SeriesKey>, Totals<SeriesKey>) {
        (self.waiting, self.kept)
    }
}

#[cfg(test)]
#[path = "past_tests.rs"]
mod tests;
