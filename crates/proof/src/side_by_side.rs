//! Work on several threads whose results come in a fixed order.

use std::collections::BTreeMap;
use std::sync::{Mutex, mpsc};

/// Works on `items` with up to `threads_max` threads, and passes each result to `take` on the
/// calling thread: in the order of the items, each as soon as it and all before it are there.
///
/// The first error of `take` ends it; items that have begun are finished.
pub fn side_by_side<I: Send, T: Send, E>(
    items: Vec<I>,
    threads_max: usize,
    work: impl Fn(I) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads_max.clamp(1, items.len().max(1));
    let left = Mutex::new(items.into_iter().enumerate());
    let next = || left.lock().ok()?.next();
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, item)) = next() {
                    // Nobody receives once `take` has failed.
                    if sender.send((index, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (index, result) in results {
            early.insert(index, result);
            while let Some(result) = early.remove(&due) {
                due += 1;
                take(result)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        // Early items take longest.
        let work = |item: u64| (item..50).map(std::hint::black_box).min().unwrap_or(50);
        for threads in [0, 1, 2, 7, 100] {
            let mut taken = Vec::new();
            let all: Result<(), ()> = side_by_side((0..=50).collect(), threads, work, |result| {
                taken.push(result);
                Ok(())
            });
            assert_eq!((all, taken), (Ok(()), (0..=50).collect()), "{threads} threads");
        }
    }

    #[test]
    fn the_first_error_is_the_last_result_taken() {
        let mut taken = Vec::new();
        let ended = side_by_side(
            (0..50).collect(),
            2,
            |item: u64| item,
            |item| {
                taken.push(item);
                if item < 3 { Ok(()) } else { Err(item) }
            },
        );
        assert_eq!((ended, taken), (Err(3), vec![0, 1, 2, 3]));
    }
}
