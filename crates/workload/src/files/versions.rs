//! Which version of its content each part of a file has, as far as that can be known while several
//! workers read and write it at once, and the check of what was read.
//!
//! A *granule* is the largest stretch of a file that every block either holds or leaves out; it has
//! one cell. A cell holds how many writes of the granule are under way and what its content is:
//! never written, a version, or unsettled, which is what writes leave that were under way together
//! and a write that failed. The next write that is under way alone settles it again.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::data::{Content, Evidence, Generator, Received, Wrong};

/// No granule is smaller; blocks that hold a part of one leave it unsettled.
const GRANULE_MIN: u64 = 512;

/// The lowest bits of a cell are what the granule holds, those above how many writes are under way.
/// The highest 16 count the writes that began: a cell that is as it was has not changed meanwhile.
const VALUE_BITS: u32 = 12;
const VALUE_MASK: u16 = (1 << VALUE_BITS) - 1;
/// So many writes under way are no longer counted, and the granule stays unsettled.
const WRITES_MAX: u32 = 15;
const BEGUN_SHIFT: u32 = 16;

const NEVER: u16 = 0;
/// The highest version; the first comes after it.
pub(super) const VERSION_MAX: u16 = VALUE_MASK - 4;
/// Unsettled, and the write under way is alone and will settle it.
const ALONE_BLANK: u16 = VALUE_MASK - 3;
const ALONE_ANY: u16 = VALUE_MASK - 2;
/// Unsettled: any version, or as if never written.
const BLANK: u16 = VALUE_MASK - 1;
/// Unsettled: any version.
const ANY: u16 = VALUE_MASK;

const fn value(cell: u32) -> u16 {
    cell as u16 & VALUE_MASK
}

const fn writes(cell: u32) -> u32 {
    cell >> VALUE_BITS & WRITES_MAX
}

const fn packed(begun: u32, writes: u32, value: u16) -> u32 {
    begun << BEGUN_SHIFT | writes << VALUE_BITS | value as u32
}

const fn is_blank(cell: u32) -> bool {
    matches!(value(cell), NEVER | ALONE_BLANK | BLANK)
}

/// Returns the version when nothing else can be there.
const fn settled(cell: u32) -> Option<u16> {
    match value(cell) {
        version @ 1..=VERSION_MAX if writes(cell) == 0 => Some(version),
        _ => None,
    }
}

/// Returns the cell with one more write under way, of all or only a part of the granule.
fn begun(cell: u32, whole: bool) -> u32 {
    let unsettled = if is_blank(cell) { BLANK } else { ANY };
    let value = match value(cell) {
        _ if writes(cell) > 0 || !whole => unsettled,
        BLANK => ALONE_BLANK,
        ANY => ALONE_ANY,
        value => value,
    };
    packed((cell >> BEGUN_SHIFT) + 1, (writes(cell) + 1).min(WRITES_MAX), value)
}

/// Returns the cell with one write less under way, which left `version` or failed.
fn ended(cell: u32, version: Option<u16>) -> u32 {
    debug_assert!(writes(cell) > 0, "a write ends that did not begin");
    if writes(cell) == WRITES_MAX {
        return cell;
    }
    let alone = writes(cell) == 1 && !matches!(value(cell), BLANK | ANY);
    let unsettled = if is_blank(cell) { BLANK } else { ANY };
    let value = match version {
        Some(version) if alone => version,
        _ => unsettled,
    };
    packed(cell >> BEGUN_SHIFT, writes(cell) - 1, value)
}

/// What is known of the versions of one file.
pub(super) enum Versions {
    /// Nothing: nobody asks.
    None,
    /// Everything is the first version once so many bytes more are filled. Enough for a file that
    /// is read only after it was filled and not written otherwise.
    Filled(AtomicU64),
    /// Each granule's own.
    Cells(Cells),
}

/// A cell for each granule.
pub(super) struct Cells {
    granule: u64,
    /// The logarithm of the granule to base 2 where that is whole; a division costs more.
    shift: Option<u32>,
    /// What one write leaves is never shorter than this.
    run_min: usize,
    cells: Box<[AtomicU32]>,
}

impl Cells {
    /// Returns cells for a file of `size` bytes whose blocks have multiples of `common` bytes;
    /// `None` where memory has no room for them: an offset in a trace says how large a file is.
    pub(super) fn new(size: u64, common: u64) -> Option<Self> {
        let granule = common.max(GRANULE_MIN);
        let cells = zeroed(usize::try_from(size.div_ceil(granule)).ok()?)?;
        let shift = granule.is_power_of_two().then(|| granule.trailing_zeros());
        let run_min = common.clamp(1, AnyVersion::RUN_MIN) as usize;
        Some(Self { granule, shift, run_min, cells })
    }

    #[inline]
    fn index(&self, offset: u64) -> usize {
        let index = match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.granule,
        };
        index as usize
    }

    #[inline]
    fn of(&self, block: Block) -> &[AtomicU32] {
        &self.cells[self.index(block.offset)..=self.index(block.offset + u64::from(block.len) - 1)]
    }

    /// Calls `each` for the cells of a block, telling whether it holds all of the granule.
    fn change(&self, block: Block, size: u64, mut each: impl FnMut(&AtomicU32, bool)) {
        let end = block.offset + u64::from(block.len);
        let first_whole = block.offset.is_multiple_of(self.granule);
        let last_whole = end >= size || end.is_multiple_of(self.granule);
        let cells = self.of(block);
        let last = cells.len() - 1;
        for (index, cell) in cells.iter().enumerate() {
            each(cell, (index > 0 || first_whole) && (index < last || last_whole));
        }
    }
}

/// Returns so many cells. Zeroed memory is mapped when it is touched, so that cells of large files
/// cost what is used of them.
fn zeroed(count: usize) -> Option<Box<[AtomicU32]>> {
    let layout = Layout::array::<AtomicU32>(count).ok()?;
    if count == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) }.cast::<AtomicU32>();
    let cells = std::ptr::slice_from_raw_parts_mut(start, count);
    // SAFETY: it was allocated with the layout of the slice, and zero is a valid AtomicU32.
    (!start.is_null()).then(|| unsafe { Box::from_raw(cells) })
}

/// A stretch of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// A file as the check sees it.
#[derive(Clone, Copy)]
pub(super) struct Checked<'a> {
    pub(super) path: &'a str,
    /// Whether something was in it before the run.
    pub(super) existing: bool,
    pub(super) key_hash: u64,
    pub(super) versions: &'a Versions,
    /// Takes up how many bytes came of which nothing is known.
    pub(super) unverified: &'a Cell<u64>,
}

/// What a read saw of its cells when it was planned: of one cell the cell itself, of several a
/// hash; above it whether something in it was as if never written.
const SEEN_BLANK: u64 = 1 << 63;

fn fingerprint(cells: &[AtomicU32]) -> u64 {
    let mut seen = 0u64;
    let mut blank = false;
    for cell in cells {
        let cell = cell.load(Ordering::Acquire);
        blank |= is_blank(cell);
        seen = seen.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(cell));
    }
    (seen & !SEEN_BLANK) | if blank { SEEN_BLANK } else { 0 }
}

/// Has a granule be unsettled for good.
fn unsettle(cell: &AtomicU32) {
    let update = |cell: u32| {
        let value = if is_blank(cell) { BLANK } else { ANY };
        Some(packed((cell >> BEGUN_SHIFT) + 1, WRITES_MAX, value))
    };
    cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, update)
        .expect("an update is always given");
}

impl Versions {
    /// Plans a read; returns what [`Checked::check`] has to be given.
    #[inline]
    pub(super) fn plan_read(&self, block: Block) -> u64 {
        match self {
            Self::None | Self::Filled(_) => 0,
            Self::Cells(cells) => fingerprint(cells.of(block)),
        }
    }

    /// Plans a write; returns its version. Where nothing tells what comes next, it is `otherwise`.
    pub(super) fn plan_write(&self, block: Block, size: u64, otherwise: u16) -> u16 {
        let cells = match self {
            Self::None => return otherwise,
            Self::Filled(_) => return 1,
            Self::Cells(cells) => cells,
        };
        let (mut newest, mut unsettled) = (0, false);
        cells.change(block, size, |cell, whole| {
            let update = |cell| Some(begun(cell, whole));
            let before = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
            match value(before.expect("an update is always given")) {
                version @ NEVER..=VERSION_MAX => newest = newest.max(version),
                _ => unsettled = true,
            }
        });
        // Whoever sees bytes of the write sees its cells as well.
        fence(Ordering::Release);
        match newest {
            NEVER if unsettled => otherwise,
            VERSION_MAX => 1,
            newest => newest + 1,
        }
    }

    /// Takes note that another process writes anywhere in the file from now on: whatever version
    /// stands there is right.
    pub(super) fn unsettle(&self) {
        if let Self::Cells(cells) = self {
            cells.cells.iter().for_each(unsettle);
        }
    }

    /// Takes note that another process has filled a block of a file of `size` bytes.
    pub(super) fn filled_elsewhere(&self, block: Block, size: u64) {
        match self {
            Self::None => {}
            Self::Filled(_) => self.end_write(block, size, 1, true),
            Self::Cells(cells) => cells.change(block, size, |cell, whole| {
                // Nobody had written there, so that it is the first version.
                let first = packed(1, 0, 1);
                let is_first = whole
                    && cell.compare_exchange(0, first, Ordering::AcqRel, Ordering::Acquire).is_ok();
                if !is_first {
                    unsettle(cell);
                }
            }),
        }
    }

    /// Ends a write of `version`.
    pub(super) fn end_write(&self, block: Block, size: u64, version: u16, ok: bool) {
        match self {
            Self::None => {}
            Self::Filled(left) if ok => {
                left.fetch_sub(u64::from(block.len), Ordering::AcqRel);
            }
            // What failed is never taken off, so that nothing of the file is checked.
            Self::Filled(_) => {}
            Self::Cells(cells) => cells.change(block, size, |cell, _| {
                let update = |cell| Some(ended(cell, ok.then_some(version)));
                cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, update)
                    .expect("an update is always given");
            }),
        }
    }
}

/// A stretch of what was read and what may stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Anything.
    Unknown,
    /// This version.
    Version(u16),
    /// Any version, and zeros where so told; likely this one.
    Any { blank: bool, likely: u16 },
    /// Nothing: the block ends here.
    End,
}

impl Checked<'_> {
    /// Returns what is wrong with what a read of `block` gave; its plan had given `seen`.
    #[inline]
    pub(super) fn check(
        &self,
        block: Block,
        seen: u64,
        generator: &Generator,
        bytes: &[u8],
    ) -> Option<Wrong> {
        // What was read comes before what the cells are now.
        fence(Ordering::Acquire);
        let asked = &bytes[..bytes.len().min(block.len as usize)];
        let wrong = self.check_bytes(block, seen, generator, asked);
        if wrong.is_none() && bytes.len() == block.len as usize {
            return None;
        }
        with_length(self.path, block, wrong, bytes.len())
    }

    #[inline]
    fn check_bytes(
        &self,
        block: Block,
        seen: u64,
        generator: &Generator,
        bytes: &[u8],
    ) -> Option<Wrong> {
        match self.versions {
            Versions::Filled(left) if left.load(Ordering::Acquire) == 0 => {
                self.judge(block.offset, Right::Version(1), generator, bytes)
            }
            Versions::None | Versions::Filled(_) => {
                self.judge(block.offset, Right::Unknown, generator, bytes)
            }
            Versions::Cells(cells) => match cells.of(block) {
                [cell] => {
                    let same = fingerprint(std::slice::from_ref(cell)) == seen;
                    let right = self.right(cell.load(Ordering::Acquire), same, seen);
                    self.judge(block.offset, right, generator, bytes)
                }
                _ => self.check_runs(cells, block, seen, generator, bytes),
            },
        }
    }

    /// Checks granules in runs of which the same is known.
    fn check_runs(
        &self,
        cells: &Cells,
        block: Block,
        seen: u64,
        generator: &Generator,
        bytes: &[u8],
    ) -> Option<Wrong> {
        let covered = cells.of(block);
        let same = fingerprint(covered) == seen;
        let first = cells.index(block.offset) as u64;
        let mut rest = bytes;
        let mut at = block.offset;
        let mut rights =
            covered.iter().map(|cell| self.right(cell.load(Ordering::Acquire), same, seen));
        let mut run = rights.next()?;
        for (index, right) in rights.chain([Right::End]).enumerate() {
            if right == run {
                continue;
            }
            let next = (first + index as u64 + 1) * cells.granule;
            let (piece, behind) = rest.split_at(rest.len().min((next - at) as usize));
            let wrong = self.judge(at, run, generator, piece);
            if wrong.is_some() {
                return wrong;
            }
            (run, rest, at) = (right, behind, next);
        }
        None
    }

    /// Returns what may stand in a granule whose cell is `now`; `same` when all cells are as they
    /// were when the read was planned.
    #[inline]
    fn right(&self, now: u32, same: bool, seen: u64) -> Right {
        let (blank, likely) = match (value(now), settled(now)) {
            (NEVER, _) if writes(now) == 0 => return Right::Unknown,
            (_, Some(version)) if same => return Right::Version(version),
            (_, Some(version)) => (seen & SEEN_BLANK != 0, version),
            _ => (is_blank(now) || (!same && seen & SEEN_BLANK != 0), value(now)),
        };
        match blank && self.existing {
            true => Right::Unknown,
            false => Right::Any { blank, likely: likely.clamp(1, VERSION_MAX) },
        }
    }

    /// Returns what is wrong with bytes from `offset` on.
    #[inline]
    fn judge(
        &self,
        offset: u64,
        right: Right,
        generator: &Generator,
        bytes: &[u8],
    ) -> Option<Wrong> {
        let version = match right {
            Right::Unknown => {
                self.unverified.set(self.unverified.get() + bytes.len() as u64);
                return None;
            }
            Right::End => return None,
            Right::Version(version) => version,
            Right::Any { blank, likely } => {
                let run_min = match self.versions {
                    Versions::Cells(cells) => cells.run_min,
                    Versions::None | Versions::Filled(_) => 1,
                };
                let key_hash = self.key_hash;
                let mut any = AnyVersion { generator, key_hash, blank, likely, run_min };
                let wrong = any.unexplained(offset, bytes)?;
                let content = any.content(any.likely);
                return describe(self.path, &content, offset + wrong as u64, &bytes[wrong..]);
            }
        };
        let content = generator.content(self.key_hash, u32::from(version));
        if content.matches(offset, bytes) {
            return None;
        }
        describe(self.path, &content, offset, bytes)
    }
}

/// Names what is wrong with bytes from `offset` on, in a whole sentence.
#[cold]
pub(super) fn describe(
    path: &str,
    content: &Content<'_>,
    offset: u64,
    bytes: &[u8],
) -> Option<Wrong> {
    let at = content.first_difference(offset, bytes)?;
    let evidence = Evidence::new(at, &bytes[(at - offset) as usize..]);
    // A missing rest is told of elsewhere.
    let len = bytes.len() as u64;
    let received = Received { offset, expected_len: len, len, evidence: Some(&evidence) };
    let wrong = content.diagnose(&received)?;
    let text = format!("byte {at} of `{path}` is wrong: {}", wrong.text);
    Some(Wrong { text, ..wrong })
}

/// Adds what is wrong with the length, of which `len` bytes came, to what else is wrong.
#[cold]
pub(super) fn with_length(
    path: &str,
    block: Block,
    wrong: Option<Wrong>,
    len: usize,
) -> Option<Wrong> {
    let (offset, expected_len) = (block.offset, u64::from(block.len));
    let received = Received { offset, expected_len, len: len as u64, evidence: None };
    let Some(length) = received.wrong_length() else { return wrong };
    let gave = format!("`{path}` gave {} from byte {offset} on", length.text);
    Some(match wrong {
        Some(wrong) => Wrong { text: format!("{}; {gave}", wrong.text), ..wrong },
        None => Wrong { text: gave, ..length },
    })
}

/// A place of a file where any version may stand, and where two may meet.
struct AnyVersion<'a> {
    generator: &'a Generator,
    key_hash: u64,
    /// Whether zeros are right as well.
    blank: bool,
    /// What is tried first: where one version was found, it goes on.
    likely: u16,
    /// Fewer bytes of a version in a row are chance.
    run_min: usize,
}

impl AnyVersion<'_> {
    /// Bytes looked at in one step.
    const STEP: usize = 512;
    /// So many bytes in a row can always be traced.
    const TRACED: usize = 128;
    /// Bytes are copied by as many at once, so that two writes never meet closer together.
    const RUN_MIN: u64 = 8;

    fn content(&self, version: u16) -> Content<'_> {
        self.generator.content(self.key_hash, u32::from(version))
    }

    /// Returns where in `bytes` something begins that is of no version, and has `likely` be the one
    /// that should stand there.
    fn unexplained(&mut self, offset: u64, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let rest = &bytes[at..];
            let step = &rest[..rest.len().min(Self::STEP)];
            if self.is_one(place, step) {
                at += step.len();
                continue;
            }
            let run = self.longest(place, step);
            if run < self.run_min.min(step.len()) {
                if at == 0 {
                    self.look_further(offset, bytes);
                }
                return Some(at);
            }
            at += run;
        }
        None
    }

    /// Takes the first version that stands anywhere for the likely one.
    fn look_further(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = offset;
        for piece in bytes.chunks(Self::TRACED) {
            if self.is_traced(at, piece) {
                return;
            }
            at += piece.len() as u64;
        }
    }

    /// Tells whether all is of one version that is near at hand.
    fn is_one(&mut self, at: u64, bytes: &[u8]) -> bool {
        if self.content(self.likely).matches(at, bytes) || self.is_zeros(bytes) {
            return true;
        }
        self.is_traced(at, bytes)
    }

    /// Tells whether all is of one version, by tracing it.
    fn is_traced(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some(origin) = self.generator.identify(bytes) else { return false };
        let found = origin.key_hash == self.key_hash && origin.offset == at;
        match u16::try_from(origin.version) {
            Ok(version @ 1..=VERSION_MAX) if found => {
                self.likely = version;
                true
            }
            _ => false,
        }
    }

    fn is_zeros(&self, bytes: &[u8]) -> bool {
        self.blank && bytes.iter().all(|byte| *byte == 0)
    }

    /// Returns how many of the first bytes one version gives, and remembers which.
    fn longest(&mut self, at: u64, bytes: &[u8]) -> usize {
        let zeros = bytes.iter().take_while(|byte| self.blank && **byte == 0).count();
        let head = &bytes[..bytes.len().min(self.run_min)];
        let found = (1..=VERSION_MAX).find(|version| self.content(*version).matches(at, head));
        let Some(version) = found else { return zeros };
        let end = self.content(version).first_difference(at, bytes);
        let run = end.map_or(bytes.len(), |end| (end - at) as usize);
        if run > zeros {
            self.likely = version;
        }
        run.max(zeros)
    }
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
