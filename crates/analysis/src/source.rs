//! Where operation records come from: one after the other, or by several threads at once.

use std::convert::Infallible;

use plimsoll_model::{OpRecord, Visit};

/// Gives operation records, in any order, the same ones on every scan.
pub trait OpSource {
    /// Why a scan can fail.
    type Error;

    /// Shows every record to `visit`.
    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Self::Error>;

    /// Returns how many threads [`Self::scan_apart`] makes use of.
    fn threads(&self) -> usize {
        1
    }

    /// Shows every record to one of `visits`, of which there is at least one; each may be called on
    /// a thread of its own. Which of them sees a record is left to chance.
    fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<(), Self::Error> {
        self.scan(&mut *visits[0])
    }
}

impl OpSource for [OpRecord] {
    type Error = Infallible;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Infallible> {
        self.iter().for_each(visit);
        Ok(())
    }
}

impl OpSource for Vec<OpRecord> {
    type Error = Infallible;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Infallible> {
        self.as_slice().scan(visit)
    }
}

/// Has every record counted, by as many counters as the source has threads, and returns them as
/// one.
///
/// It must not matter which counter sees which record, nor in which order.
pub(crate) fn counted<S: OpSource + ?Sized, C: Send>(
    source: &S,
    new: impl Fn() -> C,
    add: impl Fn(&mut C, &OpRecord) + Sync,
    merge: impl Fn(&mut C, C),
) -> Result<C, S::Error> {
    let mut counters: Vec<C> = (0..source.threads().max(1)).map(|_| new()).collect();
    let add = &add;
    let mut visits: Vec<_> =
        counters.iter_mut().map(|counter| move |op: &OpRecord| add(counter, op)).collect();
    let mut visits: Vec<&mut Visit<'_>> =
        visits.iter_mut().map(|visit| visit as &mut Visit<'_>).collect();
    source.scan_apart(&mut visits)?;
    drop(visits);
    let mut counters = counters.into_iter();
    let first = counters.next().expect("there is at least one thread");
    Ok(counters.fold(first, |mut all, counter| {
        merge(&mut all, counter);
        all
    }))
}
