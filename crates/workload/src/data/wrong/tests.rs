//! Every kind planted by hand, and then by chance.

use super::*;
use crate::Random;
use crate::data::Generator;

const KEY: u64 = 77;
const OTHER_KEY: u64 = 78;

/// Diagnoses `bytes`, read from `offset` on in pieces of `cut`.
fn diagnose(
    right: Content<'_>,
    offset: u64,
    expected_len: usize,
    bytes: &[u8],
    cut: usize,
) -> Option<Wrong> {
    let mut evidence: Option<Evidence> = None;
    for (index, piece) in bytes.chunks(cut).enumerate() {
        let at = offset + (index * cut) as u64;
        match &mut evidence {
            Some(evidence) => evidence.keep(piece),
            None => {
                evidence = right
                    .first_difference(at, piece)
                    .map(|wrong| Evidence::new(wrong, &piece[(wrong - at) as usize..]));
            }
        }
    }
    let (expected_len, len) = (expected_len as u64, bytes.len() as u64);
    right.diagnose(&Received { offset, expected_len, len, evidence: evidence.as_ref() })
}

fn filled(content: Content<'_>, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    content.fill(offset, &mut bytes);
    bytes
}

#[test]
fn each_kind_is_named_in_words() {
    let generator = Generator::new(5);
    let right = generator.content(KEY, 3);
    let (offset, len) = (10_000, 50_000);
    let good = filled(right, offset, len);
    let older = filled(generator.content(KEY, 2), offset, len);
    let other = filled(generator.content(OTHER_KEY, 0), offset, len);
    let zeros = vec![0; len];
    let noise = filled(Generator::new(6).content(KEY, 3), offset, len);
    let shifted = filled(right, offset + 512, len);
    let joined = |at: usize, first: &[u8], then: &[u8]| [&first[..at], &then[at..]].concat();
    let mut flipped = good.clone();
    flipped[7] ^= 0x81;
    flipped[49_000] ^= 4;
    let hole = joined(12_000, &joined(8_000, &good, &zeros), &good);
    let rotated = [&good[len - 9_000..], &good[..len - 9_000]].concat();
    for (bytes, kind, text) in [
        (other.clone(), WrongKind::OtherObject, "bytes of another object of this run"),
        (older.clone(), WrongKind::OldVersion, "bytes of an older version (2 instead of 3)"),
        (
            filled(generator.content(KEY, 900), offset + 1, len),
            WrongKind::OldVersion,
            "bytes of a newer version (900 instead of 3) from 1 byte further on",
        ),
        (shifted, WrongKind::Shifted, "bytes of the same object from 512 bytes further on"),
        (rotated, WrongKind::Shifted, "bytes of the same object from 41000 bytes further on"),
        (
            [&noise[..9], &good[..len - 9]].concat(),
            WrongKind::Shifted,
            "bytes of the same object from 9 bytes further back",
        ),
        (zeros.clone(), WrongKind::Zeroed, "zeros"),
        (hole, WrongKind::Zeroed, "zeros, and right again by its end"),
        (joined(4_096, &good, &zeros), WrongKind::Torn, "right up to here, then zeros"),
        (
            joined(40_000, &good, &older),
            WrongKind::Torn,
            "right up to here, then bytes of an older version (2 instead of 3)",
        ),
        (
            joined(30_000, &other, &good),
            WrongKind::Torn,
            "bytes of another object of this run, and right bytes by its end",
        ),
        (
            joined(30_000, &zeros, &older),
            WrongKind::Torn,
            "zeros, and bytes of an older version (2 instead of 3) by its end",
        ),
        (
            joined(30_000, &good, &noise),
            WrongKind::Torn,
            "right up to here, then bytes that this run never wrote",
        ),
        (flipped, WrongKind::Flipped, "at least 3 flipped bits in 2 bytes"),
        (good[..49_999].to_vec(), WrongKind::Short, "49999 bytes instead of 50000"),
        (Vec::new(), WrongKind::Short, "0 bytes instead of 50000"),
        ([&good[..], b"xy"].concat(), WrongKind::Long, "50002 bytes instead of 50000"),
        (noise, WrongKind::Foreign, "bytes that this run never wrote"),
    ] {
        for cut in [1_000, 16_384, 100_000] {
            let wrong = diagnose(right, offset, len, &bytes, cut);
            assert_eq!(wrong, Some(Wrong { kind, text: text.to_owned() }), "cut at {cut}");
        }
    }
    assert_eq!(diagnose(right, offset, len, &good, 999), None);
}

#[test]
fn little_content_gets_what_can_be_told() {
    let generator = Generator::new(5);
    let right = generator.content(KEY, 2);
    for len in 1..100 {
        let kind = |bytes: &[u8]| diagnose(right, 0, len, bytes, 7).map(|wrong| wrong.kind);
        let good = filled(right, 0, len);
        assert_eq!(kind(&good), None);
        assert_eq!(kind(&vec![0; len]), Some(WrongKind::Zeroed), "{len} bytes");
        let mut flipped = good.clone();
        flipped[len / 2] ^= 0x10;
        assert_eq!(kind(&flipped), Some(WrongKind::Flipped), "{len} bytes");
        if len >= 3 {
            let older = filled(generator.content(KEY, 0), 0, len);
            assert_eq!(kind(&older), Some(WrongKind::OldVersion), "{len} bytes");
        }
        if len >= 8 {
            assert_eq!(kind(&filled(right, 300, len)), Some(WrongKind::Shifted), "{len} bytes");
        }
        if len >= 24 {
            let other = filled(generator.content(OTHER_KEY, 2), 0, len);
            assert_eq!(kind(&other), Some(WrongKind::OtherObject), "{len} bytes");
        }
    }
}

/// A read whose content has been made wrong.
struct Planted {
    version: u32,
    offset: u64,
    expected_len: usize,
    bytes: Vec<u8>,
}

/// Makes a read of an object of `size` wrong in a way of `kind`.
fn plant(generator: &Generator, random: &mut Random, kind: WrongKind, size: u64) -> Planted {
    let version = 1 + random.below(6) as u32;
    let right = generator.content(KEY, version);
    let (offset, len) = match random.below(2) {
        0 => (0, size),
        // 94 bytes are enough to trace them wherever they lie.
        _ => {
            let len = 94 + random.below(size - 93);
            (random.below(size - len + 1), len)
        }
    };
    let expected_len = len as usize;
    let good = filled(right, offset, expected_len);
    let mut bytes = good.clone();
    let older = generator.content(KEY, random.below(version.into()) as u32);
    let other = generator.content(OTHER_KEY, random.below(3) as u32);
    let shift = 1 + random.below((len / 3).min(6_000));
    match kind {
        WrongKind::OtherObject => other.fill(offset, &mut bytes),
        WrongKind::OldVersion => older.fill(offset, &mut bytes),
        WrongKind::Shifted => match random.below(4) {
            0 => right.fill(offset + shift, &mut bytes),
            1 => right
                .fill(offset.saturating_sub(shift) + len * u64::from(offset < shift), &mut bytes),
            2 => bytes.rotate_right(shift as usize),
            _ => {
                bytes.rotate_left(shift as usize);
                bytes[(len - shift) as usize..].fill(0);
            }
        },
        WrongKind::Zeroed => {
            if random.below(2) == 0 {
                bytes.fill(0);
            } else {
                let hole = 8 + random.below(len / 2);
                let from = random.below(len - hole - 8) as usize;
                bytes[from..from + hole as usize].fill(0);
            }
        }
        WrongKind::Torn => {
            let at = (5 + random.below(len - 9)) as usize;
            let at_offset = offset + at as u64;
            match random.below(5) {
                0 => older.fill(at_offset, &mut bytes[at..]),
                1 => other.fill(at_offset, &mut bytes[at..]),
                2 => bytes[at..].fill(0),
                3 => older.fill(offset, &mut bytes[..at]),
                _ => right.fill(at_offset + shift, &mut bytes[at..]),
            }
        }
        WrongKind::Flipped => {
            for _ in 0..=random.below(4) {
                bytes[random.below(len) as usize] ^= 1 << random.below(8);
            }
        }
        WrongKind::Short => bytes.truncate(random.below(len) as usize),
        WrongKind::Long => {
            let more = 1 + random.below(1_000) as usize;
            bytes.extend(filled(if random.below(2) == 0 { right } else { other }, 0, more));
        }
        WrongKind::Foreign => Generator::new(1_000).content(KEY, version).fill(offset, &mut bytes),
    }
    // Flips of one bit can undo one another.
    if bytes == good {
        bytes[0] ^= 1;
    }
    Planted { version, offset, expected_len, bytes }
}

#[test]
fn planted_faults_are_found_and_named() {
    const SIZES: [(u64, usize); 4] = [(100, 430), (1 << 10, 430), (8_193, 230), (100 << 10, 22)];
    let (mut trials, mut named) = (0, 0);
    let mut misses = Vec::new();
    for kind in WrongKind::ALL {
        for (size, count) in SIZES {
            for seed in 0..count as u64 {
                let generator = Generator::new(seed % 5);
                let mut random = Random::new(seed, size, kind as u64);
                let planted = plant(&generator, &mut random, kind, size);
                let Planted { version, offset, expected_len, bytes } = &planted;
                let right = generator.content(KEY, *version);
                let cut = 1 + random.below(40_000).max(size / 16) as usize;
                let wrong = diagnose(right, *offset, *expected_len, bytes, cut);
                let wrong = wrong.unwrap_or_else(|| panic!("{kind:?} of {size} was not found"));
                if seed % 8 == 0 {
                    let whole = diagnose(right, *offset, *expected_len, bytes, 1 << 20);
                    assert_eq!(Some(&wrong), whole.as_ref(), "cut at {cut}");
                    let good = filled(right, *offset, *expected_len);
                    assert_eq!(diagnose(right, *offset, *expected_len, &good, cut), None);
                }
                trials += 1;
                if wrong.kind == kind {
                    named += 1;
                } else {
                    misses.push(format!("{kind:?} of {size}, seed {seed}: {wrong:?}"));
                }
            }
        }
    }
    assert!(trials >= 10_000, "{trials} trials");
    assert!(named * 1_000 >= trials * 999, "{named} of {trials}; {:#?}", &misses);
}
