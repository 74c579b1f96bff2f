//! Where operation records come from: one after the other, or by several threads at once.

use std::convert::Infallible;

use plimsoll_model::{OpOutline, OpRecord, Visit};

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

    /// Shows of every record no more than its outline, to visits as [`Self::scan_apart`] has them.
    fn scan_outlines(&self, visits: &mut [&mut Visit<'_, OpOutline>]) -> Result<(), Self::Error> {
        let mut visits: Vec<_> =
            visits.iter_mut().map(|visit| move |op: &OpRecord| visit(&op.outline())).collect();
        let mut visits: Vec<&mut Visit<'_>> =
            visits.iter_mut().map(|visit| visit as &mut Visit<'_>).collect();
        self.scan_apart(&mut visits)
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

/// Has everything counted that a scan shows, by a counter on each of so many threads, and returns
/// them as one.
///
/// It must not matter which counter sees what, nor in which order.
pub(crate) fn counted<R, C: Send, E>(
    threads: usize,
    scan: impl FnOnce(&mut [&mut Visit<'_, R>]) -> Result<(), E>,
    new: impl Fn() -> C,
    add: impl Fn(&mut C, &R) + Sync,
    merge: impl Fn(&mut C, C),
) -> Result<C, E> {
    let mut counters: Vec<C> = (0..threads.max(1)).map(|_| new()).collect();
    let add = &add;
    let mut visits: Vec<_> =
        counters.iter_mut().map(|counter| move |op: &R| add(counter, op)).collect();
    let mut visits: Vec<&mut Visit<'_, R>> =
        visits.iter_mut().map(|visit| visit as &mut Visit<'_, R>).collect();
    scan(&mut visits)?;
    drop(visits);
    let mut counters = counters.into_iter();
    let first = counters.next().expect("there is at least one thread");
    Ok(counters.fold(first, |mut all, counter| {
        merge(&mut all, counter);
        all
    }))
}
