//! Versions of granules, whatever is under way at once.

use proptest::prelude::*;

use super::*;
use plimsoll_model::WrongKind;

const KEY: u64 = 77;
const GRANULE: u64 = 4_096;
const SIZE: u64 = 16 * GRANULE;

/// A file as it should be on the medium, and what is known of its versions.
struct World {
    generator: Generator,
    versions: Versions,
    disk: Vec<u8>,
    existing: bool,
    unverified: Cell<u64>,
}

impl World {
    fn new(size: u64, common: u64) -> Self {
        Self {
            generator: Generator::new(1),
            versions: Versions::Cells(Cells::new(size, common).unwrap()),
            disk: vec![0; size as usize],
            existing: false,
            unverified: Cell::new(0),
        }
    }

    fn begin(&self, block: Block) -> u16 {
        self.versions.plan_write(block, self.disk.len() as u64, 9)
    }

    fn end(&self, block: Block, version: u16, ok: bool) {
        self.versions.end_write(block, self.disk.len() as u64, version, ok);
    }

    fn content(&self, block: Block, version: u16) -> Vec<u8> {
        let mut bytes = vec![0; block.len as usize];
        self.generator.content(KEY, version.into()).fill(block.offset, &mut bytes);
        bytes
    }

    fn put(&mut self, block: Block, version: u16) {
        let bytes = self.content(block, version);
        self.disk[block.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }

    /// Writes a block with nothing else under way; returns its version.
    fn write(&mut self, block: Block) -> u16 {
        let version = self.begin(block);
        self.put(block, version);
        self.end(block, version, true);
        version
    }

    fn bytes(&self, block: Block) -> &[u8] {
        &self.disk[block.offset as usize..][..block.len as usize]
    }

    fn check(&self, block: Block, seen: u64, bytes: &[u8]) -> Option<Wrong> {
        let Self { versions, existing, unverified, .. } = self;
        let checked =
            Checked { path: "f", existing: *existing, key_hash: KEY, versions, unverified };
        checked.check(block, seen, &self.generator, bytes)
    }

    /// Checks what is on the medium with nothing going on meanwhile.
    fn read(&self, block: Block) -> Option<Wrong> {
        self.check(block, self.versions.plan_read(block), self.bytes(block))
    }

    /// Returns what a granule holds where no write is under way.
    fn cell(&self, granule: usize) -> u16 {
        let cell = self.whole_cell(granule);
        assert_eq!(writes(cell), 0);
        value(cell)
    }

    fn whole_cell(&self, granule: usize) -> u32 {
        let Versions::Cells(cells) = &self.versions else { panic!("there are no cells") };
        cells.cells[granule].load(Ordering::Relaxed)
    }
}

/// Returns the block of `count` granules from number `first` on.
fn granules(first: u64, count: u32) -> Block {
    Block { offset: first * GRANULE, len: count * GRANULE as u32 }
}

#[test]
fn each_write_makes_the_next_version() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    assert_eq!([world.write(block), world.write(block), world.write(block)], [1, 2, 3]);
    assert_eq!((world.cell(2), world.cell(3), world.cell(4)), (NEVER, 3, NEVER));
    assert_eq!(world.read(block), None);
    for _ in 3..VERSION_MAX {
        world.write(block);
    }
    assert_eq!(world.cell(3), VERSION_MAX);
    assert_eq!(world.write(block), 1);
}

#[test]
fn a_settled_block_holds_its_version_and_nothing_else() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    world.write(block);
    world.write(block);
    world.put(block, 1);
    let wrong = world.read(block).unwrap();
    assert_eq!(wrong.kind, WrongKind::OldVersion);
    let text = "byte 12288 of `f` is wrong: bytes of an older version (1 instead of 2)";
    assert_eq!(wrong.text, text);
    world.disk[12_288..16_384].fill(0);
    assert_eq!(world.read(block).unwrap().kind, WrongKind::Zeroed);
    world.put(block, 2);
    world.disk[12_300] ^= 8;
    let text = "byte 12300 of `f` is wrong: 1 flipped bit in 1 byte";
    assert_eq!(world.read(block).unwrap().text, text);
}

#[test]
fn what_was_never_written_has_a_length_only() {
    let mut world = World::new(SIZE, GRANULE);
    world.disk.fill(b'x');
    let block = granules(0, 4);
    assert_eq!(world.read(block), None);
    let seen = world.versions.plan_read(block);
    let wrong = world.check(block, seen, &[b'x'; 100]).unwrap();
    assert_eq!(wrong.kind, WrongKind::Short);
    assert_eq!(wrong.text, "`f` gave 100 bytes instead of 16384 from byte 0 on");
}

#[test]
fn a_read_during_a_write_may_see_both() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    world.write(block);
    let seen_before = world.versions.plan_read(block);
    let version = world.begin(block);
    let seen_during = world.versions.plan_read(block);
    let old = world.bytes(block).to_vec();
    let new = world.content(block, version);
    let torn = [&new[..1_032], &old[1_032..]].concat();
    let twice = [&old[..8], &new[8..3_000], &old[3_000..]].concat();
    let mut flipped = torn.clone();
    flipped[2_000] ^= 1;
    let check = |world: &World| {
        for seen in [seen_before, seen_during] {
            for right in [&old, &new, &torn, &twice] {
                assert_eq!(world.check(block, seen, right), None);
            }
            assert_eq!(world.check(block, seen, &flipped).unwrap().kind, WrongKind::Flipped);
            assert_eq!(world.check(block, seen, &[0; 4_096]).unwrap().kind, WrongKind::Zeroed);
            assert_eq!(world.check(block, seen, &[b'x'; 4_096]).unwrap().kind, WrongKind::Foreign);
        }
    };
    check(&world);
    // The read is looked at after the write has ended.
    world.end(block, version, true);
    check(&world);
    // One that begins now sees the new version only.
    let seen = world.versions.plan_read(block);
    assert_eq!(world.check(block, seen, &new), None);
    assert_eq!(world.check(block, seen, &old).unwrap().kind, WrongKind::OldVersion);
}

#[test]
fn two_writes_at_once_leave_either_until_one_is_alone_again() {
    for first_ends_first in [true, false] {
        let mut world = World::new(SIZE, GRANULE);
        let block = granules(3, 1);
        world.write(block);
        let (a, b) = (world.begin(block), world.begin(block));
        let (first, second) = if first_ends_first { (a, b) } else { (b, a) };
        world.end(block, first, true);
        assert_eq!(settled(world.whole_cell(3)), None);
        world.end(block, second, true);
        assert_eq!(world.cell(3), ANY);
        for version in [a, b] {
            world.put(block, version);
            assert_eq!(world.read(block), None);
        }
        world.disk[12_291] ^= 4;
        let text = "byte 12291 of `f` is wrong: 1 flipped bit in 1 byte";
        assert_eq!(world.read(block).unwrap().text, text);
        world.disk[12_288..12_400].fill(0);
        assert!(world.read(block).is_some());
        let version = world.write(block);
        assert_eq!(world.cell(3), version);
        assert_eq!(world.read(block), None);
    }
}

#[test]
fn a_third_write_keeps_the_first_two_unsettled() {
    let world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    let (a, b) = (world.begin(block), world.begin(block));
    world.end(block, a, true);
    // It begins while b is under way, and ends alone.
    let c = world.begin(block);
    world.end(block, b, true);
    world.end(block, c, true);
    assert_eq!(world.cell(3), BLANK);
}

#[test]
fn a_failed_write_leaves_old_or_new() {
    let mut world = World::new(SIZE, GRANULE);
    let (fresh, written) = (granules(3, 1), granules(4, 1));
    world.write(written);
    for block in [fresh, written] {
        let version = world.begin(block);
        world.end(block, version, false);
        let half = Block { len: 2_048, ..block };
        assert_eq!(world.read(block), None, "nothing was written");
        world.put(half, version);
        assert_eq!(world.read(block), None, "half was written");
        world.put(block, version);
        assert_eq!(world.read(block), None, "all was written");
    }
    world.disk.fill(0);
    assert_eq!(world.read(fresh), None, "as if never written");
    assert_eq!(world.read(written).unwrap().kind, WrongKind::Zeroed);
    let version = world.write(fresh);
    assert_eq!(world.cell(3), version);
    world.disk.fill(0);
    assert_eq!(world.read(fresh).unwrap().kind, WrongKind::Zeroed);
}

#[test]
fn a_large_block_is_checked_run_by_run() {
    let mut world = World::new(SIZE, GRANULE);
    world.write(granules(0, 16));
    world.write(granules(5, 2));
    world.write(granules(6, 1));
    let all = granules(0, 16);
    assert_eq!(world.read(all), None);
    assert_eq!([4, 5, 6, 7].map(|granule| world.cell(granule)), [1, 2, 3, 1]);
    // Granule 6 keeps what it had before its last write.
    world.put(granules(6, 1), 2);
    let wrong = world.read(all).unwrap();
    let text = "byte 24576 of `f` is wrong: bytes of an older version (2 instead of 3)";
    assert_eq!((wrong.kind, &*wrong.text), (WrongKind::OldVersion, text));
    // A block over several versions makes one that none of them has had.
    assert_eq!(world.write(granules(4, 4)), 4);
    assert_eq!(world.read(all), None);
    // What changes elsewhere in the block is no excuse for zeros in a granule that was written.
    let seen = world.versions.plan_read(all);
    world.write(granules(0, 1));
    let mut bytes = world.bytes(all).to_vec();
    assert_eq!(world.check(all, seen, &bytes), None);
    bytes[40_960..45_056].fill(0);
    assert_eq!(world.check(all, seen, &bytes).unwrap().kind, WrongKind::Zeroed);
}

#[test]
fn wrong_bytes_count_more_than_missing_ones() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(0, 4);
    world.write(block);
    world.write(granules(3, 1));
    let seen = world.versions.plan_read(block);
    let mut bytes = world.bytes(block)[..5_000].to_vec();
    let wrong = world.check(block, seen, &bytes).unwrap();
    assert_eq!(wrong.kind, WrongKind::Short);
    bytes[4_999] ^= 1;
    let wrong = world.check(block, seen, &bytes).unwrap();
    assert_eq!(wrong.kind, WrongKind::Flipped);
    let text = "byte 4999 of `f` is wrong: 1 flipped bit in 1 byte; \
                `f` gave 5000 bytes instead of 16384 from byte 0 on";
    assert_eq!(wrong.text, text);
}

#[test]
fn a_filled_file_is_checked_once_all_of_it_is_there() {
    let mut world = World::new(SIZE, GRANULE);
    world.versions = Versions::Filled(SIZE.into());
    let halves = [granules(0, 8), granules(8, 8)];
    assert_eq!(world.write(halves[0]), 1);
    assert_eq!(world.read(halves[1]), None, "not there yet");
    assert_eq!(world.write(halves[1]), 1);
    assert_eq!(world.read(granules(0, 16)), None);
    world.disk[70] ^= 255;
    assert!(world.read(granules(0, 1)).is_some());
    world.versions = Versions::Filled(SIZE.into());
    world.write(halves[0]);
    let version = world.begin(halves[1]);
    world.end(halves[1], version, false);
    assert_eq!(world.read(granules(0, 1)), None, "a part failed: nothing is known of the whole");
}

#[test]
fn what_was_there_before_is_not_checked() {
    let mut world = World::new(SIZE, GRANULE);
    world.existing = true;
    world.disk.fill(b'x');
    let version = world.begin(granules(3, 1));
    world.end(granules(3, 1), version, false);
    assert_eq!(world.read(granules(0, 8)), None, "it may still be what was there");
    world.write(granules(3, 2));
    assert_eq!(world.read(granules(0, 8)), None);
    world.disk[3 * 4_096..][..8_192].fill(b'x');
    assert_eq!(world.read(granules(0, 8)).unwrap().kind, WrongKind::Foreign);
}

#[test]
fn what_nobody_wrote_is_counted_apart() {
    let mut world = World::new(SIZE, GRANULE);
    let unverified = |world: &World, block| {
        assert_eq!(world.read(block), None);
        world.unverified.take()
    };
    assert_eq!(unverified(&world, granules(2, 1)), GRANULE);
    world.write(granules(1, 2));
    assert_eq!(unverified(&world, granules(1, 2)), 0);
    // One before them and two behind them.
    assert_eq!(unverified(&world, granules(0, 5)), 3 * GRANULE);
    // What failed may have left anything in a file that was there, and only zeros in one's own.
    let version = world.begin(granules(3, 1));
    world.end(granules(3, 1), version, false);
    assert_eq!(unverified(&world, granules(3, 1)), 0);
    world.existing = true;
    assert_eq!(unverified(&world, granules(3, 1)), GRANULE);
    world.versions = Versions::Filled(1.into());
    assert_eq!(unverified(&world, granules(0, 4)), 4 * GRANULE, "a part was not filled");
    world.versions = Versions::None;
    assert_eq!(unverified(&world, granules(0, 4)), 4 * GRANULE);
    world.versions = Versions::Filled(0.into());
    world.put(granules(0, 4), 1);
    assert_eq!(unverified(&world, granules(0, 4)), 0);
}

#[test]
fn blocks_that_share_a_granule_leave_it_unsettled() {
    // Blocks of 100 bytes in granules of 512.
    let mut world = World::new(2_000, 100);
    let block = |index: u64| Block { offset: 100 * index, len: 100 };
    for round in 0..3 {
        for index in [3, 4, 5, 6, 19] {
            world.write(block(index));
            assert_eq!(world.read(block(index)), None, "{round} {index}");
        }
    }
    assert_eq!([0, 1, 2, 3].map(|granule| world.cell(granule)), [BLANK, BLANK, NEVER, BLANK]);
    world.disk[350] ^= 1;
    assert!(world.read(block(3)).is_some());
    world.disk[350] ^= 1;
    // The rest of the file up to its end is the whole last granule.
    let version = world.write(Block { offset: 1_536, len: 464 });
    assert_eq!(world.cell(3), version);
}

#[test]
fn more_writes_than_can_be_counted_stay_unsettled() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    let versions: Vec<u16> = (0..20).map(|_| world.begin(block)).collect();
    versions.iter().for_each(|version| world.end(block, *version, true));
    let stays = |world: &World| {
        let cell = world.whole_cell(3);
        assert_eq!((writes(cell), value(cell)), (WRITES_MAX, BLANK));
    };
    stays(&world);
    let version = world.write(block);
    assert_eq!(world.read(block), None);
    stays(&world);
    world.put(block, version);
    assert_eq!(world.read(block), None);
}

#[test]
fn a_version_that_came_back_meanwhile_is_no_reason_to_be_strict() {
    let mut world = World::new(SIZE, GRANULE);
    let block = granules(3, 1);
    (0..9).for_each(|_| _ = world.write(block));
    let seen = world.versions.plan_read(block);
    // Two writes at once; the one after them is given the version that was there before.
    let (a, b) = (world.begin(block), world.begin(block));
    world.put(block, a);
    let read = world.bytes(block).to_vec();
    world.end(block, a, true);
    world.end(block, b, true);
    assert_eq!(world.write(block), 9);
    assert_eq!(world.check(block, seen, &read), None);
}

/// An operation under way in the property below.
enum UnderWay {
    Write { block: Block, version: u16, done: usize },
    Read { block: Block, seen: u64, bytes: Vec<u8>, quiet: bool },
}

/// What a granule is by the plainest of rules.
#[derive(Clone, Copy, Default)]
struct Model {
    under_way: u32,
    /// Whether two were under way at once since the last time that none was.
    disputed: bool,
    known: Option<u16>,
    begun: u32,
}

/// A file of eight granules of 512 bytes, and the model of it.
struct Play {
    world: World,
    model: [Model; 8],
}

impl Play {
    fn model(&mut self, block: Block) -> &mut [Model] {
        &mut self.model[(block.offset / 512) as usize..][..block.len as usize / 512]
    }

    fn begin(&mut self, block: Block, writes: bool) -> UnderWay {
        if !writes {
            let quiet = self.model(block).iter().all(|granule| granule.known.is_some());
            let seen = self.world.versions.plan_read(block);
            return UnderWay::Read { block, seen, bytes: Vec::new(), quiet };
        }
        for granule in self.model(block) {
            granule.under_way += 1;
            granule.begun += 1;
            granule.disputed |= granule.under_way > 1;
            granule.known = None;
        }
        UnderWay::Write { block, version: self.world.begin(block), done: 0 }
    }

    /// Brings the bytes of a write from `done` to `to` on the medium.
    fn put(&mut self, block: Block, version: u16, done: usize, to: usize) {
        let bytes = self.world.content(block, version);
        let place = &mut self.world.disk[block.offset as usize..];
        place[done..to].copy_from_slice(&bytes[done..to]);
    }

    fn end_write(&mut self, block: Block, version: u16, ok: bool) {
        self.world.end(block, version, ok);
        for granule in self.model(block) {
            granule.under_way -= 1;
            granule.known = (ok && !granule.disputed).then_some(version);
            granule.disputed &= granule.under_way > 0;
        }
    }

    /// Goes on with one operation, up to `cut` of its bytes or, with chance 1 in 2, to its end.
    fn go_on(&mut self, one: UnderWay, cut: usize, action: u32) -> Option<UnderWay> {
        match one {
            UnderWay::Write { block, version, done } if action < 8 => {
                let to = cut.max(done);
                self.put(block, version, done, to);
                Some(UnderWay::Write { block, version, done: to })
            }
            UnderWay::Write { block, version, done } => {
                let ok = action < 14;
                if ok {
                    self.put(block, version, done, block.len as usize);
                }
                self.end_write(block, version, ok);
                None
            }
            UnderWay::Read { block, seen, mut bytes, quiet } => {
                let ends = action >= 6;
                let to = if ends { block.len as usize } else { cut.max(bytes.len()) };
                let more = &self.world.bytes(block)[bytes.len()..to];
                bytes.extend_from_slice(more);
                if !ends {
                    return Some(UnderWay::Read { block, seen, bytes, quiet });
                }
                assert_eq!(self.world.check(block, seen, &bytes), None, "a false alarm");
                if quiet && self.world.versions.plan_read(block) == seen {
                    bytes[cut] ^= 1;
                    assert!(self.world.check(block, seen, &bytes).is_some(), "nothing was found");
                }
                None
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever goes on at once, right bytes are never called wrong; and a granule whose last write
    /// was alone holds that and nothing else.
    #[test]
    fn no_interleaving_makes_a_false_alarm(steps in prop::collection::vec(any::<u32>(), 1..150)) {
        let mut play = Play { world: World::new(4_096, 512), model: Default::default() };
        let mut slots: [Option<UnderWay>; 5] = Default::default();
        for step in steps {
            let (first, action) = (step >> 4 & 7, step >> 28);
            let count = (step >> 8 & 3).clamp(1, 8 - first);
            let new = Block { offset: u64::from(first) * 512, len: count * 512 };
            let slot = &mut slots[(step % 5) as usize];
            *slot = match slot.take() {
                None => Some(play.begin(new, action < 9)),
                Some(one) => {
                    let (UnderWay::Write { block, .. } | UnderWay::Read { block, .. }) = &one;
                    // Where a copy is interrupted, in multiples of eight bytes.
                    let cut = (step >> 12) as usize % (block.len as usize / 8) * 8;
                    play.go_on(one, cut, action)
                }
            };
            for (granule, each) in play.model.iter().enumerate() {
                let cell = play.world.whole_cell(granule);
                prop_assert_eq!(settled(cell), each.known, "granule {}", granule);
                prop_assert_eq!(cell == 0, each.begun == 0);
                prop_assert_eq!(writes(cell), each.under_way);
            }
        }
    }
}
