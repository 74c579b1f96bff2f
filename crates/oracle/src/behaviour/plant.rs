//! An exact number of wrong answers, spread by the seed.

use plimsoll_model::ErrorClass;
use plimsoll_workload::{Permutation, Random};

use super::{Act, Request};
use crate::script::Plant;

const PLANT_DOMAIN: u64 = 0x706c_616e;

/// What is still to be planted.
///
/// The operations are chosen by selection sampling (Knuth, The Art of Computer Programming, volume
/// 2, 3.4.2, algorithm S): every choice of `count` out of `of` is equally likely.
#[derive(Clone, Debug)]
pub(super) struct Planting {
    acts: Vec<Act>,
    /// In which order the kinds come.
    order: Permutation,
    chosen_count: u64,
    count: u64,
    left_of: u64,
    /// How many of each act are chosen and were not yet possible: the operation was of another
    /// kind, or the lie the truth.
    due: Vec<u64>,
    due_count: u64,
    random: Random,
}

impl Planting {
    pub(super) fn new(plant: &Plant, seed: u64) -> Self {
        let mut random = Random::new(seed, PLANT_DOMAIN, 0);
        Self {
            acts: plant.acts.clone(),
            order: Permutation::new(random.next_u64(), plant.count),
            chosen_count: 0,
            count: plant.count,
            left_of: plant.of,
            due: vec![0; plant.acts.len()],
            due_count: 0,
            random,
        }
    }

    /// Returns what is planted in this operation, if anything; `class_of` tells whether an act is
    /// possible.
    pub(super) fn offer(
        &mut self,
        request: &Request<'_>,
        class_of: &mut dyn FnMut(Act, u64) -> Option<ErrorClass>,
    ) -> Option<(Act, ErrorClass, u64)> {
        if self.left_of > 0 && self.is_eligible(request) {
            let wanted = self.count - self.chosen_count;
            if self.random.below(self.left_of) < wanted {
                let number = self.order.at(self.chosen_count) % self.acts.len() as u64;
                self.due[number as usize] += 1;
                self.due_count += 1;
                self.chosen_count += 1;
            }
            self.left_of -= 1;
        }
        if self.due_count == 0 {
            return None;
        }
        let salt = self.random.next_u64();
        for (act, due) in self.acts.iter().zip(&mut self.due).filter(|(_, due)| **due > 0) {
            if let Some(class) = class_of(*act, salt) {
                *due -= 1;
                self.due_count -= 1;
                return Some((*act, class, salt));
            }
        }
        None
    }

    fn is_eligible(&self, request: &Request<'_>) -> bool {
        request.honest.is_ok() && self.acts.iter().any(|act| act.fits_request(request))
    }
}
