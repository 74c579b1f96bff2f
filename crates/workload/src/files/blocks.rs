//! The blocks that one worker reads and writes, in order.
//!
//! Positions are counted in *units*, the smallest block there is in the job; what is left at the
//! end of a file and smaller than a unit is never touched. A larger block begins at a multiple of
//! its own size, so that it holds the unit that was drawn, and is cut at the end of the file. Where
//! blocks follow one another each begins where the last one ended. Reads and writes share one
//! order: what is visited once is either read or written.
//!
//! A pass is over when as many bytes have been moved as the files hold or, where each block comes
//! once, when each unit was drawn. With blocks of several sizes these differ: a pass may then leave
//! out some blocks and hold others twice.

use super::greatest_common;
use super::laws::{Scatter, Zipf, normal, self_similar};
use crate::Random;
use crate::plan::spec::{BlockLaw, BlockOrder, BlockSizes};
use crate::plan::{Blocks, Percent};

impl BlockSizes {
    /// Folds all sizes that are drawn: of a range, the least and the most, whose greatest common
    /// divisor is that of all.
    fn fold<T>(&self, begin: T, each: impl Fn(T, u64) -> T) -> T {
        match self {
            Self::Fixed(size) => each(begin, size.0),
            Self::Drawn(BlockLaw::Range(range)) => each(each(begin, range.min), range.max),
            Self::Drawn(BlockLaw::Shares(shares)) => {
                shares.0.iter().fold(begin, |folded, share| each(folded, share.value.0))
            }
        }
    }

    /// Returns the smallest size.
    pub(crate) fn smallest(&self) -> u64 {
        self.fold(u64::MAX, u64::min)
    }
}

impl Blocks {
    /// Tells whether blocks are read.
    pub const fn reads(&self) -> bool {
        self.read_percent > 0
    }

    /// Tells whether blocks are written.
    pub const fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Returns the sizes that are used.
    fn sizes(&self) -> impl Iterator<Item = &BlockSizes> {
        let reads = self.reads().then_some(&self.read);
        reads.into_iter().chain(self.writes().then_some(&self.write))
    }

    /// Returns the size of the smallest block.
    fn unit(&self) -> u64 {
        self.sizes().map(BlockSizes::smallest).min().unwrap_or(0)
    }

    /// Returns the size of the largest block.
    pub(crate) fn largest(&self) -> u64 {
        self.sizes().fold(0, |largest, sizes| sizes.fold(largest, u64::max))
    }

    /// Returns what the length of every block is a multiple of.
    pub(super) fn common(&self) -> u64 {
        self.sizes().fold(0, |common, sizes| sizes.fold(common, greatest_common))
    }
}

/// How large blocks are.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Fixed(u64),
    Range {
        min: u64,
        max: u64,
    },
    /// Sizes with the sum of the weights up to and with each.
    Shares(Vec<(u64, u64)>),
}

impl Sizes {
    pub(super) fn new(sizes: &BlockSizes) -> Self {
        match sizes {
            BlockSizes::Fixed(size) => Self::Fixed(size.0),
            BlockSizes::Drawn(BlockLaw::Range(range)) => {
                Self::Range { min: range.min, max: range.max }
            }
            BlockSizes::Drawn(BlockLaw::Shares(shares)) => {
                let mut sum = 0;
                let mut up_to = |weight: u64| {
                    sum += weight;
                    sum
                };
                let shares = shares.0.iter();
                Self::Shares(shares.map(|share| (up_to(share.weight), share.value.0)).collect())
            }
        }
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            // As fio does it (`get_next_buflen`): the multiples of the least come alike, and a most
            // that is none of them for what is left above the last.
            Self::Range { min, max } => {
                let size = min + random.below(*max);
                (size - size % min).min(*max)
            }
            Self::Shares(shares) => {
                let sum = shares.last().map_or(1, |(sum, _)| *sum);
                let drawn = random.below(sum);
                let share = shares.iter().find(|(up_to, _)| drawn < *up_to);
                share.expect("the last one is the sum").1
            }
        }
    }
}

/// Reads and writes in random order, of a hundred as many reads as asked for.
#[derive(Clone, Debug)]
struct Deck {
    /// Whether each is a read.
    cards: Vec<bool>,
    drawn: usize,
}

impl Deck {
    fn new(read_percent: u32) -> Self {
        let reads = read_percent.min(100);
        let common = greatest_common(u64::from(reads), 100) as u32;
        let cards = (0..100 / common).map(|index| index < reads / common).collect();
        Self { cards, drawn: 0 }
    }

    #[inline]
    fn draw(&mut self, random: &mut Random) -> bool {
        if let [only] = self.cards[..] {
            return only;
        }
        // A card at a time: a whole deck shuffled at once would make one operation wait for it.
        let left = (self.cards.len() - self.drawn) as u64;
        let other = self.drawn + random.below(left) as usize;
        self.cards.swap(self.drawn, other);
        let card = self.cards[self.drawn];
        self.drawn = (self.drawn + 1) % self.cards.len();
        card
    }
}

/// How the next unit of one file is drawn.
#[derive(Clone, Debug)]
enum Law {
    EachOnce { order: Scatter, next: u64 },
    Uniform,
    Zipf(Zipf, Scatter),
    SelfSimilar { power: f64, order: Scatter },
    Normal { deviation: f64 },
}

/// One file of the worker.
#[derive(Clone, Debug)]
struct Spot {
    file: u32,
    /// Its whole units, and their bytes.
    units: u64,
    end: u64,
    law: Law,
}

/// A block to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) write: bool,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// The blocks of one worker.
#[derive(Clone, Debug)]
pub(super) struct BlockStream {
    random: Random,
    deck: Deck,
    reads: Sizes,
    writes: Sizes,
    unit: u64,
    spots: Vec<Spot>,
    /// Where blocks follow one another, the next one's place; `None` where they are drawn.
    place: Option<u64>,
    /// The file of the next block, unless all of its blocks came.
    turn: usize,
    repeats: bool,
    bytes_of_pass: u64,
    bytes_left: u64,
}

impl BlockStream {
    /// Returns the blocks of a worker with these files and as much of each.
    pub(super) fn new(spec: &Blocks, files: &[(u32, u64)], mut random: Random) -> Self {
        let unit = spec.unit();
        let spot = |&(file, size): &(u32, u64)| {
            let units = size / unit;
            let law = match spec.order {
                BlockOrder::Sequential | BlockOrder::Uniform => Law::Uniform,
                BlockOrder::EachOnce => {
                    Law::EachOnce { order: Scatter::new(random.next_u64(), units), next: 0 }
                }
                BlockOrder::Zipf(theta) => {
                    Law::Zipf(Zipf::new(units, theta), Scatter::new(random.next_u64(), units))
                }
                BlockOrder::Pareto(h) => Law::SelfSimilar {
                    power: h.ln() / (1.0 - h).ln(),
                    order: Scatter::new(random.next_u64(), units),
                },
                BlockOrder::Normal(Percent(deviation)) => {
                    Law::Normal { deviation: deviation / 100.0 }
                }
            };
            Spot { file, units, end: units * unit, law }
        };
        let spots: Vec<Spot> = files.iter().filter(|(_, size)| *size >= unit).map(spot).collect();
        let bytes_of_pass = spots.iter().map(|spot| spot.end).sum();
        Self {
            random,
            deck: Deck::new(spec.read_percent),
            reads: Sizes::new(&spec.read),
            writes: Sizes::new(&spec.write),
            unit,
            spots,
            place: matches!(spec.order, BlockOrder::Sequential).then_some(0),
            turn: 0,
            repeats: spec.repeats,
            bytes_of_pass,
            bytes_left: bytes_of_pass,
        }
    }

    /// Returns the next block; `None` when all has been read or written.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Planned> {
        if self.bytes_left == 0 && !self.begin_pass() {
            return None;
        }
        if self.place.is_some() { self.next_in_row() } else { self.next_drawn() }
    }

    /// Tells whether passes follow one another without end.
    pub(super) fn repeats(&self) -> bool {
        self.repeats && self.bytes_of_pass > 0
    }

    /// Tells whether nothing is left to read or write.
    pub(super) fn is_done(&self) -> bool {
        let exhausted = |spot: &Spot| match spot.law {
            Law::EachOnce { next, .. } => next == spot.units,
            _ => false,
        };
        !self.repeats && (self.bytes_left == 0 || self.spots.iter().all(exhausted))
    }

    /// Begins the next pass if there is one.
    fn begin_pass(&mut self) -> bool {
        if !self.repeats || self.bytes_of_pass == 0 {
            return false;
        }
        self.bytes_left = self.bytes_of_pass;
        self.turn = 0;
        for spot in &mut self.spots {
            if let Law::EachOnce { order, next } = &mut spot.law {
                *order = Scatter::new(self.random.next_u64(), spot.units);
                *next = 0;
            }
        }
        true
    }

    #[inline]
    fn sort_and_size(&mut self) -> (bool, u64) {
        let read = self.deck.draw(&mut self.random);
        let sizes = if read { &self.reads } else { &self.writes };
        (!read, sizes.draw(&mut self.random))
    }

    fn next_in_row(&mut self) -> Option<Planned> {
        let offset = self.place?;
        let (write, size) = self.sort_and_size();
        let Spot { file, end, .. } = self.spots[self.turn];
        let len = size.min(end - offset);
        self.bytes_left -= len;
        self.place = Some(offset + len);
        if offset + len == end {
            self.place = Some(0);
            self.turn += 1;
        }
        Some(Planned { write, file, offset, len: len as u32 })
    }

    #[inline]
    fn next_drawn(&mut self) -> Option<Planned> {
        let (write, size) = self.sort_and_size();
        let (spot, unit) = match self.draw_unit() {
            Some(drawn) => drawn,
            None if self.begin_pass() => self.draw_unit()?,
            None => return None,
        };
        let Spot { file, end, .. } = self.spots[spot];
        let mut offset = unit * self.unit;
        let mut len = size;
        if size != self.unit {
            offset -= offset % size;
            len = size.min(end - offset);
        }
        self.bytes_left = self.bytes_left.saturating_sub(len);
        Some(Planned { write, file, offset, len: len as u32 })
    }

    /// Draws a unit of the next file that has one left.
    #[inline]
    fn draw_unit(&mut self) -> Option<(usize, u64)> {
        for _ in 0..self.spots.len() {
            let index = self.turn;
            self.turn += 1;
            if self.turn == self.spots.len() {
                self.turn = 0;
            }
            let Spot { units, law, .. } = &mut self.spots[index];
            let unit = match law {
                Law::EachOnce { next, .. } if *next == *units => continue,
                Law::EachOnce { order, next } => {
                    *next += 1;
                    order.at(*next - 1)
                }
                Law::Uniform => self.random.below(*units),
                Law::Zipf(law, order) => order.at(law.draw(&mut self.random)),
                Law::SelfSimilar { power, order } => {
                    order.at(self_similar(*units, *power, &mut self.random))
                }
                Law::Normal { deviation } => normal(*units, *deviation, &mut self.random),
            };
            return Some((index, unit));
        }
        None
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
