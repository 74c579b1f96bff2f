//! What the operations of a trace are, as a mix of the workload language.

use std::fmt;

use plimsoll_model::OpKind;
use plimsoll_workload::plan::spec::{
    Choice, DeleteOp, GetOp, LengthLaw, ListOp, OpSpec, PickSpec, PutAs, PutOp, RangeSpec, StatOp,
};
use plimsoll_workload::plan::{Size, SizeRange};
use plimsoll_workload::trace::{NO_OBJECT, Trace};

/// How many operations of each kind there are. In the workload they are the weights of the mix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MixFit {
    /// Reads of whole objects.
    pub gets: u64,
    /// Reads of parts.
    pub parts: u64,
    /// Looks at properties.
    pub stats: u64,
    /// Writes of objects that were not there.
    pub new_puts: u64,
    /// Writes of objects that were there.
    pub overwrites: u64,
    /// Removals.
    pub deletes: u64,
    /// Listings.
    pub lists: u64,
    /// The least and the greatest length of a part.
    lengths: Option<(u64, u64)>,
    /// Removals beyond as many as objects are put, which the mix does not have.
    deletes_left_out: u64,
}

impl MixFit {
    /// Counts the operations of a trace, and says what the mix does not have of them.
    pub(super) fn of(trace: &Trace) -> (Self, Vec<String>) {
        let mut mix = Self::default();
        let made = trace.made_first().len();
        let mut is_there: Vec<bool> =
            (0..trace.objects_count() as usize).map(|n| n < made).collect();
        for op in trace.ops() {
            match op.kind {
                OpKind::Get if op.is_range => {
                    mix.parts += 1;
                    let (least, most) = mix.lengths.unwrap_or((op.len, op.len));
                    mix.lengths = Some((least.min(op.len), most.max(op.len)));
                }
                OpKind::Get => mix.gets += 1,
                OpKind::Stat => mix.stats += 1,
                OpKind::List => mix.lists += 1,
                OpKind::Put | OpKind::Delete if op.object != NO_OBJECT => {
                    let is_put = op.kind == OpKind::Put;
                    let was_there = std::mem::replace(&mut is_there[op.object as usize], is_put);
                    match (is_put, was_there) {
                        (true, true) => mix.overwrites += 1,
                        (true, false) => mix.new_puts += 1,
                        (false, _) => mix.deletes += 1,
                    }
                }
                _ => {}
            }
        }
        let mut notes = Vec::new();
        mix.deletes_left_out = mix.deletes.saturating_sub(mix.new_puts);
        if mix.deletes_left_out > 0 {
            notes.push(format!(
                "{} of {} removals are left out: a mix removes no more objects than it puts new \
                 ones",
                mix.deletes_left_out, mix.deletes
            ));
        }
        if mix.parts > 0 {
            notes.push(
                "parts that are read have lengths between those of the trace, each doubling as \
                 likely as the next, and begin anywhere"
                    .to_owned(),
            );
        }
        (mix, notes)
    }

    /// Returns how many operations there are.
    pub fn all(&self) -> u64 {
        let Self { gets, parts, stats, new_puts, overwrites, deletes, lists, .. } = self;
        gets + parts + stats + new_puts + overwrites + deletes + lists
    }

    /// Returns the share of reads of objects, in percent of all operations.
    pub fn reads_percent(&self) -> f64 {
        (self.gets + self.parts) as f64 / self.all().max(1) as f64 * 100.0
    }

    /// Returns the operations of a mix with these weights.
    pub(super) fn operations(&self, set: &str, pick: Option<Choice>, trace: &Trace) -> Vec<OpSpec> {
        let set = || set.to_owned();
        let pick = || pick.clone().map(PickSpec::Member);
        let deletes = self.deletes - self.deletes_left_out;
        let counts = [
            self.gets,
            self.parts,
            self.stats,
            self.new_puts,
            self.overwrites,
            deletes,
            self.lists,
        ];
        let [gets, parts, stats, new_puts, overwrites, deletes, lists] = weights(counts);
        // A part is of the largest object at most.
        let puts = trace.ops().iter().filter(|op| op.kind == OpKind::Put).map(|op| op.len);
        let largest = puts.chain(trace.made_first().iter().copied()).max().unwrap_or(1).max(1);
        let (least, most) = self.lengths.unwrap_or((1, 1));
        let (min, max) = (least.clamp(1, largest), most.clamp(1, largest));
        let range = match min == max {
            true => RangeSpec::Fixed(Size(min)),
            false => RangeSpec::Drawn(LengthLaw::LogUniform(SizeRange { min, max })),
        };
        let get = |weight, range| {
            OpSpec::Get(GetOp { get: set(), weight, pick: pick(), range, ..GetOp::default() })
        };
        let put = |weight, put_as, pick| {
            OpSpec::Put(PutOp { put: set(), weight, put_as, pick, ..PutOp::default() })
        };
        let all = [
            (gets, get(gets, None)),
            (parts, get(parts, Some(range))),
            (
                stats,
                OpSpec::Stat(StatOp {
                    stat: set(),
                    weight: stats,
                    pick: pick(),
                    ..StatOp::default()
                }),
            ),
            (new_puts, put(new_puts, None, None)),
            (overwrites, put(overwrites, Some(PutAs::Overwrite), None)),
            (
                deletes,
                OpSpec::Delete(DeleteOp {
                    delete: set(),
                    weight: deletes,
                    batch: 1,
                    ..DeleteOp::default()
                }),
            ),
            (lists, OpSpec::List(ListOp { list: set(), weight: lists, ..list() })),
        ];
        all.into_iter().filter(|(weight, _)| *weight > 0).map(|(_, op)| op).collect()
    }
}

/// Returns a listing of one page as a trace has them.
fn list() -> ListOp {
    ListOp { page: 1_000, pages: Some(1), ..ListOp::default() }
}

/// Returns counts as weights: without a common divisor, and as 32 bits; what is there stays above
/// 0.
fn weights(counts: [u64; 7]) -> [u32; 7] {
    let common = counts.iter().fold(0, |common, count| greatest_common(common, *count)).max(1);
    let largest = counts.iter().max().map_or(0, |count| count / common);
    let scale = largest.div_ceil(u64::from(u32::MAX) / 8).max(1);
    counts.map(|count| match count / common {
        0 => 0,
        count => (count / scale).max(1) as u32,
    })
}

const fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

impl fmt::Display for MixFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("get", self.gets),
            ("get part", self.parts),
            ("stat", self.stats),
            ("put new", self.new_puts),
            ("overwrite", self.overwrites),
            ("delete", self.deletes),
            ("list", self.lists),
        ];
        let share = |count: u64| count as f64 / self.all().max(1) as f64 * 100.0;
        let there = all.into_iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            there.map(|(name, count)| format!("{name} {:.1} %", share(count))).collect();
        f.write_str(&parts.join(", "))
    }
}
