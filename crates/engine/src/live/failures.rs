//! The last failures of a thread, for a display: one of each class.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment};

use crate::outcome::ErrorSample;

/// A text of a class is replaced no more often than this: people read no faster, and a store that
/// refuses everything must not have the client write texts.
const REPLACED_AFTER: Duration = Duration::from_millis(250);

/// The last failure of each class; one that ends within 250 ms of the one that is kept is passed
/// over.
#[derive(Debug, Default)]
pub(crate) struct LastFailures(Mutex<Vec<ErrorSample>>);

impl LastFailures {
    /// Takes note of a failure of a class that ended at a moment, whose text is made where it is
    /// kept.
    pub(crate) fn note(&self, class: ErrorClass, at: Moment, make: impl FnOnce() -> ErrorSample) {
        let mut kept = self.kept();
        match kept.iter_mut().find(|kept| kept.class == class) {
            None => kept.push(make()),
            Some(kept) if at >= kept.at.after(REPLACED_AFTER) => *kept = make(),
            Some(_) => {}
        }
    }

    /// Shows what somebody else has seen fail.
    pub(super) fn set(&self, failures: Vec<ErrorSample>) {
        *self.kept() = failures;
    }

    pub(super) fn read(&self) -> Vec<ErrorSample> {
        self.kept().clone()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<ErrorSample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
