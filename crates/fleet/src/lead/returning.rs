//! Agents that were lost and come back with what they recorded.

use std::sync::PoisonError;
use std::time::Duration;

use plimsoll_conduct::CallerError;
use plimsoll_model::Moment;

use super::Lead;
use super::hearing::{LOOK, State};
use crate::coordinator::Standing;
use crate::fabric::Address;
use crate::protocol::{Ask, encode};
use crate::roll::Recruit;
use crate::wire::Order;

/// How often the roll is called.
const CALL_EVERY: Duration = Duration::from_millis(250);
/// Who is there has said so after this long.
const SETTLED: Duration = Duration::from_millis(500);

/// How an agent stands that was lost.
enum Return {
    /// Nothing is heard of it.
    Away,
    /// It is there, and still ends what it does for the run.
    Leaving,
    /// It is there, and keeps its part; the number is of the message that says so.
    Back(Recruit, u64),
}

impl Lead {
    /// Takes on again those agents that were lost and are there again with what they recorded, so
    /// that they hand it in, and returns which. Who still ends what it does is waited for.
    pub(super) fn take_back(&mut self) -> Result<Vec<usize>, CallerError> {
        let begun = self.clock.now();
        let mut called: Option<Moment> = None;
        let mut state = self.shared.state();
        state.present.clear();
        let found = loop {
            let now = self.clock.now();
            let lost = self.lost(&state);
            let returns: Vec<(usize, Return)> =
                lost.into_iter().map(|index| (index, self.how_returns(&state, index))).collect();
            let is_leaving = returns.iter().any(|(_, how)| matches!(how, Return::Leaving));
            let are_back = returns.iter().all(|(_, how)| matches!(how, Return::Back(..)));
            let limit = if is_leaving { self.settings.limits.lost_after } else { SETTLED };
            if are_back || now.since(begun) >= limit {
                break returns;
            }
            if called.is_none_or(|at| now.since(at) >= CALL_EVERY) {
                called = Some(now);
                let (coordinator, look) = (self.settings.coordinator, Vec::new());
                if let Ok(message) = encode(&Ask::<Order>::Roll { coordinator, look, number: 0 }) {
                    // What cannot be sent is said again.
                    let _ = self.fabric.post(&Address::Agents, message);
                }
            }
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(state);
        let mut back = Vec::new();
        for (index, how) in found {
            let Return::Back(recruit, number) = how else { continue };
            let (who, now) = ((recruit.id.clone(), recruit.incarnation), self.clock.now());
            self.shared.state().machine.take_back(now, index, who, number);
            let name = &self.agents[index].name;
            self.recruits[index] = Recruit { name: name.clone(), ..recruit };
            self.observer.note(&format!("agent {name} is back, and hands in what it recorded"));
            back.push(index);
        }
        if !back.is_empty() {
            self.make_spaces()?;
        }
        Ok(back)
    }

    fn lost(&self, state: &State) -> Vec<usize> {
        let members = state.machine.members().iter().enumerate();
        let lost = members.filter(|(_, member)| matches!(member.standing(), Standing::Lost(_)));
        lost.map(|(index, _)| index).collect()
    }

    /// Tells how an agent stands: by its id, or by its name, where no other agent of the run has
    /// that and it has joined anew.
    fn how_returns(&self, state: &State, index: usize) -> Return {
        let own = &self.recruits[index];
        let is_other = |recruit: &Recruit| self.recruits.iter().any(|each| each.id == recruit.id);
        let of_name =
            |recruit: &Recruit| recruit.about.name == own.about.name && !is_other(recruit);
        let names = self.recruits.iter().filter(|each| each.about.name == own.about.name);
        let is_alone = names.count() == 1;
        let anew = || state.present.values().find(|(recruit, _)| is_alone && of_name(recruit));
        match state.present.get(&own.id).or_else(anew) {
            Some((Recruit { about, .. }, _)) if about.busy.as_ref() == Some(&self.run) => {
                Return::Leaving
            }
            Some((recruit, number))
                if recruit.about.busy.is_none() && recruit.about.kept.contains(&self.run) =>
            {
                Return::Back(recruit.clone(), *number)
            }
            Some(_) | None => Return::Away,
        }
    }
}
