//! The stages of a plan, one after the other; of a search one probe after the other.

use plimsoll_workload::plan::Plan;

use crate::Done;
use crate::chosen::{Chooser, Chosen};
use crate::probes::Searching;

/// Where a run stands among the stages of its plan.
struct InOrder<'a> {
    left_out: &'a [usize],
    /// The stage that comes next, or is searched.
    at: usize,
    searching: Option<Searching>,
}

/// Returns the stages of a plan, one after the other, but for those that are left out.
pub fn in_order(left_out: &[usize]) -> Chooser<'_> {
    let mut order = InOrder { left_out, at: 0, searching: None };
    Box::new(move |plan, done| order.next(plan, done))
}

impl InOrder<'_> {
    fn next(&mut self, plan: &Plan, done: &[Done]) -> Option<Chosen> {
        loop {
            if let Some(searching) = &mut self.searching {
                if let Some(chosen) = searching.next(plan, done.last()) {
                    return Some(chosen);
                }
                self.searching = None;
                self.at += 1;
            }
            while self.left_out.contains(&self.at) {
                self.at += 1;
            }
            let stage = plan.stages.get(self.at)?;
            let Some(search) = &stage.search else {
                self.at += 1;
                return Some(Chosen::plain(self.at - 1));
            };
            self.searching = Some(Searching::new(self.at, search));
        }
    }
}
