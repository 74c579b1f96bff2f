//! Orders, sizes and passes of blocks.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::SyncMode;

use super::*;
use crate::plan::spec::{Share, Shares};
use crate::plan::{SetIndex, Size, SizeRange};

const KIB: u64 = 1_024;
const BLOCK: u64 = 4_096;

fn blocks(order: BlockOrder, read_percent: u32) -> Blocks {
    Blocks {
        set: SetIndex(0),
        read_percent,
        read: BlockSizes::Fixed(Size(BLOCK)),
        write: BlockSizes::Fixed(Size(BLOCK)),
        order,
        repeats: false,
        seed: None,
        direct: false,
        sync: SyncMode::Off,
        fsync_every: None,
        fdatasync_every: None,
        end_fsync: false,
        invalidates: false,
    }
}

fn range(min: u64, max: u64) -> BlockSizes {
    BlockSizes::Drawn(BlockLaw::Range(SizeRange { min, max }))
}

fn shares(shares: &[(u64, u64)]) -> BlockSizes {
    let share = |&(size, weight): &(u64, u64)| Share { value: Size(size), weight };
    BlockSizes::Drawn(BlockLaw::Shares(Shares(shares.iter().map(share).collect())))
}

fn all(spec: &Blocks, files: &[(u32, u64)]) -> Vec<Planned> {
    stream(spec, files).collect()
}

fn stream(spec: &Blocks, files: &[(u32, u64)]) -> impl Iterator<Item = Planned> {
    let mut blocks = BlockStream::new(spec, files, Random::new(3, 1, 2));
    std::iter::from_fn(move || blocks.next())
}

fn places(planned: &[Planned]) -> Vec<(u32, u64, u32)> {
    planned.iter().map(|block| (block.file, block.offset, block.len)).collect()
}

#[test]
fn in_order_the_files_of_a_clone_follow_one_another() {
    let mut spec = blocks(BlockOrder::Sequential, 100);
    // The last 100 bytes of file 5 are no block.
    let has = [(5, 2 * BLOCK + 100), (9, BLOCK)];
    let pass = [(5, 0, 4_096), (5, 4_096, 4_096), (9, 0, 4_096)];
    assert_eq!(places(&all(&spec, &has)), pass);
    spec.repeats = true;
    let found: Vec<_> = stream(&spec, &has).take(7).collect();
    assert_eq!(places(&found), [&pass[..], &pass, &pass[..1]].concat());
}

#[test]
fn in_order_blocks_of_several_sizes_leave_no_gap() {
    let mut spec = blocks(BlockOrder::Sequential, 50);
    spec.read = shares(&[(4 * KIB, 1), (64 * KIB, 1)]);
    spec.write = range(8 * KIB, 33 * KIB);
    let found = all(&spec, &[(0, 1 << 20), (1, 1 << 19)]);
    for (file, size) in [(0, 1 << 20), (1, 1 << 19)] {
        let mut at = 0;
        for block in found.iter().filter(|block| block.file == file) {
            assert_eq!(block.offset, at);
            at += u64::from(block.len);
            let len = u64::from(block.len);
            let multiple = if block.write { 8 * KIB } else { 4 * KIB };
            // The last one is cut, and the end of a range counts though it is no multiple.
            let is_end = block.write && len == 33 * KIB;
            assert!(at == size || is_end || len.is_multiple_of(multiple));
            assert!(len <= if block.write { 33 * KIB } else { 64 * KIB });
        }
        assert_eq!(at, size);
    }
    assert!(found.iter().any(|block| block.len == 32 << 10 && block.write));
}

#[test]
fn each_block_comes_once_in_every_pass() {
    let mut spec = blocks(BlockOrder::EachOnce, 30);
    let has = [(0, 100 * BLOCK), (1, 37 * BLOCK + 5)];
    let pass = all(&spec, &has);
    assert_eq!(pass.len(), 137);
    let distinct: BTreeSet<_> = places(&pass).into_iter().collect();
    assert_eq!(distinct.len(), 137);
    assert!(distinct.iter().all(|(_, offset, len)| offset % BLOCK == 0 && *len == 4_096));
    // The files take turns for as long as both have blocks left.
    assert!(pass[..74].iter().enumerate().all(|(index, block)| block.file == index as u32 % 2));
    let of_first = pass.iter().filter(|block| block.file == 0);
    assert!(!of_first.map(|block| block.offset).is_sorted());
    spec.repeats = true;
    let passes: Vec<_> = stream(&spec, &has).take(3 * 137).collect();
    let order = |pass: usize| places(&passes[pass * 137..][..137]);
    for pass in 0..3 {
        assert_eq!(order(pass).into_iter().collect::<BTreeSet<_>>(), distinct, "pass {pass}");
    }
    assert_ne!(order(0), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn blocks_lie_at_multiples_of_their_size() {
    for order in [
        BlockOrder::EachOnce,
        BlockOrder::Uniform,
        BlockOrder::Zipf(1.2),
        BlockOrder::Pareto(0.3),
        BlockOrder::Normal(Percent(20.0)),
    ] {
        let mut spec = blocks(order, 50);
        spec.write = BlockSizes::Fixed(Size(64 * KIB));
        spec.repeats = true;
        let size = 300 * KIB;
        let mut cut = 0;
        for block in stream(&spec, &[(0, size)]).take(2_000) {
            let full = if block.write { 64 * KIB } else { 4 * KIB };
            assert!(block.offset.is_multiple_of(full), "{order:?}");
            if u64::from(block.len) < full {
                assert_eq!((block.offset, block.len), (256 * KIB, 44 << 10));
                cut += 1;
            }
        }
        assert!(cut > 0, "{order:?}");
    }
}

#[test]
fn a_pass_is_over_when_as_many_bytes_were_moved_as_there_are() {
    let mut spec = blocks(BlockOrder::Uniform, 100);
    assert_eq!(all(&spec, &[(0, 100 * BLOCK)]).len(), 100);
    // Large blocks and small ones in turn by chance: 1 MiB is reached long before 256 units.
    spec.order = BlockOrder::EachOnce;
    spec.read = shares(&[(4 * KIB, 50), (64 * KIB, 50)]);
    let sum: u64 = all(&spec, &[(0, 1 << 20)]).iter().map(|block| u64::from(block.len)).sum();
    assert!((1 << 20..(1 << 20) + 64 * KIB).contains(&sum), "{sum}");
}

#[test]
fn of_a_hundred_operations_as_many_are_reads_as_asked_for() {
    for (percent, deck) in [(0, 1), (100, 1), (70, 10), (33, 100), (50, 2), (25, 4)] {
        let mut spec = blocks(BlockOrder::Uniform, percent);
        spec.repeats = true;
        let found: Vec<_> = stream(&spec, &[(0, BLOCK)]).take(1_000).collect();
        for hand in found.chunks(deck) {
            let reads = hand.iter().filter(|block| !block.write).count();
            assert_eq!(reads, deck * percent as usize / 100, "{percent}");
        }
    }
}

#[test]
fn shares_come_by_weight_and_ranges_evenly() {
    let mut random = Random::new(1, 2, 3);
    let sizes = Sizes::new(&shares(&[(1, 10), (2, 0), (3, 30), (4, 60)]));
    let mut counts = [0u32; 5];
    (0..10_000).for_each(|_| counts[sizes.draw(&mut random) as usize] += 1);
    assert_eq!(counts[2], 0);
    for (size, count) in [(1, 1_000), (3, 3_000), (4, 6_000)] {
        assert!(counts[size].abs_diff(count) < 200, "{counts:?}");
    }
    // Both ends are given, as fio does: each multiple of the least as often as the next, and an
    // end that is no multiple for what is left.
    for (range, expected) in [
        (range(4, 8), &[(4, 5_000), (8, 5_000)][..]),
        (range(4, 16), &[(4, 2_500), (8, 2_500), (12, 2_500), (16, 2_500)]),
        (range(4, 13), &[(4, 3_077), (8, 3_077), (12, 3_077), (13, 769)]),
        (range(5, 5), &[(5, 10_000)]),
        (range(1, 2), &[(1, 5_000), (2, 5_000)]),
    ] {
        let sizes = Sizes::new(&range);
        let mut counts = BTreeMap::<u64, u32>::new();
        (0..10_000).for_each(|_| *counts.entry(sizes.draw(&mut random)).or_default() += 1);
        assert_eq!(counts.len(), expected.len(), "{counts:?}");
        for (size, count) in expected {
            assert!(counts[size].abs_diff(*count) < 200, "{counts:?}");
        }
    }
}

#[test]
fn hot_blocks_are_spread_over_the_file() {
    let mut spec = blocks(BlockOrder::Zipf(1.2), 100);
    spec.repeats = true;
    let mut counts = vec![0u32; 1_000];
    for block in stream(&spec, &[(0, 1_000 * BLOCK)]).take(50_000) {
        counts[(block.offset / BLOCK) as usize] += 1;
    }
    let mut hottest: Vec<usize> = (0..1_000).collect();
    hottest.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
    // The ten hottest in a row would be the law without a scatter.
    let (least, most) = (hottest[..10].iter().min(), hottest[..10].iter().max());
    assert!(most.unwrap() - least.unwrap() > 400, "{:?}", &hottest[..10]);
    // The sum of r^-1.2 up to 1000 is 4.3358: 1 / 4.3358 of all draws are of the first rank.
    let first = f64::from(counts[hottest[0]]) / 50_000.0;
    assert!((first - 0.2306).abs() < 0.008, "{first}");
}
