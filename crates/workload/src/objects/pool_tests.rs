//! The pool against one that keeps everything about an object with the object.

use plimsoll_model::WorkerId;
use proptest::prelude::*;

use super::*;

/// Objects with what is under way on each.
#[derive(Default)]
struct Naive(Vec<(Held, Readers)>);

impl Naive {
    fn free(&self, how: Use) -> impl Fn(usize) -> bool + '_ {
        move |index| match how {
            Use::Read => self.0[index].1 != CHANGING,
            Use::Changed => self.0[index].1 == 0,
        }
    }

    fn draw(&self, random: &mut Random, how: Use) -> usize {
        let hit = random.below(self.0.len() as u64) as usize;
        (hit..self.0.len()).chain(0..hit).find(|index| self.free(how)(*index)).unwrap()
    }

    fn at(&self, held: Held) -> usize {
        self.0.iter().position(|(each, readers)| *each == held && *readers > 0).unwrap()
    }
}

/// Both pools, and what is under way on them.
struct Pair {
    pool: Pool,
    naive: Naive,
    randoms: [Random; 2],
    picker: Picker,
    reads: Vec<Held>,
    writes: Vec<Held>,
    next_number: u64,
    is_versioned: bool,
}

impl Pair {
    fn new(count: u64, versions: u32) -> Self {
        let id = |number| ObjectId::new(WorkerId(3), number);
        let all = (0..count).flat_map(move |number| {
            (0..versions).map(move |version| Held { id: id(number), version })
        });
        let randoms = [Random::new(1, 2, 3), Random::new(1, 2, 3)];
        let naive = Naive(all.clone().map(|held| (held, 0)).collect());
        let (reads, writes) = (Vec::new(), Vec::new());
        Self {
            pool: Pool::new(all),
            naive,
            randoms,
            picker: Picker::Uniform { count: 1 },
            reads,
            writes,
            next_number: count,
            is_versioned: versions > 1,
        }
    }

    fn has_free(&self, how: Use) -> bool {
        let any = (0..self.naive.0.len()).any(self.naive.free(how));
        assert_eq!(self.pool.any_free(how), any);
        any
    }

    /// Does what `step` says, if it can be done.
    fn step(&mut self, step: u8, which: usize) {
        match step {
            0 if self.has_free(Use::Read) => {
                let held = self.pool.read((&mut self.picker, &mut self.randoms[0]));
                let index = self.naive.draw(&mut self.randoms[1], Use::Read);
                self.naive.0[index].1 += 1;
                assert_eq!(held, self.naive.0[index].0);
                self.reads.push(held);
            }
            // Objects in several versions are not overwritten, as two would become the same.
            1 if !self.is_versioned && self.has_free(Use::Changed) => {
                let held = self.pool.overwrite((&mut self.picker, &mut self.randoms[0]));
                let index = self.naive.draw(&mut self.randoms[1], Use::Changed);
                let (here, readers) = &mut self.naive.0[index];
                (here.version, *readers) = ((here.version + 1) % VERSIONS, CHANGING);
                assert_eq!(held, *here);
                self.writes.push(held);
            }
            2 => {
                let held = Held::new(ObjectId::new(WorkerId(3), self.next_number));
                self.next_number += 1;
                self.naive.0.push((self.pool.write_new(held), CHANGING));
                self.writes.push(held);
            }
            3 if self.has_free(Use::Changed) => {
                let held = self.pool.remove((&mut self.picker, &mut self.randoms[0]));
                let index = self.naive.draw(&mut self.randoms[1], Use::Changed);
                assert_eq!(held, self.naive.0.swap_remove(index).0);
            }
            4 if !self.reads.is_empty() => {
                let held = self.reads.swap_remove(which % self.reads.len());
                self.pool.was_read(held);
                let index = self.naive.at(held);
                self.naive.0[index].1 -= 1;
            }
            5 | 6 if !self.writes.is_empty() => {
                let held = self.writes.swap_remove(which % self.writes.len());
                self.pool.written(held, step == 5);
                let index = self.naive.at(held);
                self.naive.0[index].1 = 0;
                if step == 6 {
                    self.naive.0.swap_remove(index);
                }
            }
            _ => {
                let [mine, theirs] = self.randoms.each_mut().map(Random::next_u64);
                assert_eq!(mine, theirs);
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_drawn_is_what_a_naive_pool_draws(
        count in 0u64..8,
        versions in 1u32..3,
        steps in prop::collection::vec((0u8..8, any::<usize>()), 0..120),
    ) {
        let mut pair = Pair::new(count, versions);
        for (step, which) in steps {
            pair.step(step, which);
        }
        prop_assert_eq!(pair.pool.ids.len(), pair.naive.0.len());
    }
}

#[test]
fn an_object_takes_eight_bytes() {
    let mut pool = Pool::new(std::iter::empty());
    for number in 0..1 << 16 {
        let held = pool.write_new(Held::new(ObjectId::new(WorkerId(7), number)));
        pool.written(held, true);
    }
    assert_eq!(pool.held_bytes(), 8 << 16);
}
