//! A part of a record by the order of its rows.

use plimsoll_model::OpRecord;

use crate::{OpSource, Stages};

/// Shows of some stages only the operations from one position on, and not more than so many.
#[derive(Debug)]
pub struct Window<'a, S: ?Sized> {
    /// All operations.
    pub source: &'a S,
    /// Which stages are counted and shown.
    pub stages: Stages,
    /// How many operations are left out at the beginning.
    pub offset: u64,
    /// How many are shown; all when `None`.
    pub limit: Option<u64>,
}

impl<S: OpSource + ?Sized> OpSource for Window<'_, S> {
    type Error = S::Error;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), S::Error> {
        let mut place = 0u64;
        self.source.scan(&mut |op| {
            if self.stages.contains(op.stage) {
                if self.shows(place) {
                    visit(op);
                }
                place += 1;
            }
        })
    }
}

impl<S: ?Sized> Window<'_, S> {
    fn shows(&self, place: u64) -> bool {
        let past = place.checked_sub(self.offset);
        past.is_some_and(|past| self.limit.is_none_or(|limit| past < limit))
    }
}
