//! By how much the agents' clocks are ahead, and when a stage begins by all of them.

use std::sync::PoisonError;
use std::time::Duration;

use plimsoll_model::Moment;
use plimsoll_record::schema::ClockReading;

use super::Lead;
use super::hearing::LOOK;
use crate::offset::Offset;

/// How far ahead the beginning of a stage is set, so that every agent hears of it before.
const LEAD: Duration = Duration::from_millis(30);
/// The same for each agent more.
const LEAD_EACH: Duration = Duration::from_micros(200);
/// How long clocks are measured at most.
const MEASURE_MAX: Duration = Duration::from_secs(2);
/// Of a clock that shows the same.
pub(super) const SAME: Offset = Offset { at: Moment::EPOCH, ns: 0, uncertainty_ns: 0 };

impl Lead {
    /// Measures all clocks, and returns by how much each is ahead.
    pub(super) fn measure(&mut self) -> Vec<Offset> {
        if self.is_virtual {
            return vec![SAME; self.agents.len()];
        }
        let begun = self.clock.now();
        let todo = self.shared.state().machine.measure(begun);
        self.perform(todo);
        let mut state = self.shared.state();
        while !state.machine.is_measured() && self.clock.now().since(begun) < MEASURE_MAX {
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut offsets = Vec::new();
        for (member, agent) in state.machine.members().iter().zip(&mut self.agents) {
            let offset = member.offset();
            if let Some(Offset { at, ns, uncertainty_ns }) = offset {
                let at_ns = at.as_ns();
                let stage_index = self.stage.unwrap_or_default();
                let offset_ns = ns;
                agent.clock.push(ClockReading { stage_index, at_ns, offset_ns, uncertainty_ns });
            }
            // Without an answer it is the one of before.
            let before = agent.clock.last().map(Offset::from);
            offsets.push(offset.or(before));
        }
        drop(state);
        // What was measured now is also how the clocks stood after the stage before.
        for (part, offset) in self.outcomes.last_mut().into_iter().flatten().zip(&offsets) {
            if let (Some(part), Some(offset)) = (part, offset) {
                part.clock = part.clock.until(*offset);
            }
        }
        for (index, offset) in offsets.iter().enumerate() {
            if offset.is_none() {
                self.give_up(index, "its clock could not be measured".to_owned());
            }
        }
        // Of one that is given up no moment is asked for.
        offsets.into_iter().map(|offset| offset.unwrap_or(SAME)).collect()
    }

    /// Returns when a stage begins for which all are ready, by the clock of the run.
    pub(super) fn begins(&self) -> Moment {
        match self.is_virtual {
            true => self.latest,
            false => {
                let each = LEAD_EACH * u32::try_from(self.agents.len()).unwrap_or(u32::MAX);
                self.clock.now().after(LEAD + each)
            }
        }
    }
}
