//! Tests of content that is not plain random bytes: the ratios are met, every byte can be checked.

use std::collections::HashSet;

use super::*;
use crate::data::Generator;
use crate::data::{Evidence, Received};
use crate::hash_text;
use plimsoll_model::WrongKind;

fn shaped(compress_per_mille: u32, dedupe_per_mille: u32) -> Generator {
    let rule = DataRule::Shaped { compress_per_mille, dedupe_per_mille };
    Generator::with_rule(7, &rule, Vec::new())
}

fn bytes(generator: &Generator, key: &str, version: u32, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    generator.content(hash_text(key), version).fill(offset, &mut bytes);
    bytes
}

fn packed_len(bytes: &[u8]) -> usize {
    zstd::bulk::compress(bytes, 1).unwrap().len()
}

fn distinct_count(bytes: &[u8]) -> usize {
    bytes.chunks(UNIT_BYTES).collect::<HashSet<_>>().len()
}

#[test]
fn a_compress_ratio_is_met_by_zstd_1() {
    for ratio in [1.1, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 10.0, 20.0, 50.0] {
        let generator = shaped((ratio * 1_000.0) as u32, 1_000);
        for len in [64 << 10, 1 << 20, 10 << 20] {
            let content = bytes(&generator, "k", 0, 0, len);
            let got = len as f64 / packed_len(&content) as f64;

            assert!((got / ratio - 1.0).abs() < 0.03, "{got} instead of {ratio} in {len}");
        }
    }
}

#[test]
fn a_dedupe_ratio_is_met_in_blocks_of_4_kib() {
    for ratio in [1.25, 1.5, 2.0, 3.0, 7.5, 20.0] {
        let generator = shaped(1_000, (ratio * 1_000.0) as u32);
        for units in [1_000, 4_001] {
            let content = bytes(&generator, "k", 3, 0, units * UNIT_BYTES);
            let got = units as f64 / distinct_count(&content) as f64;
            assert!((got / ratio - 1.0).abs() < 0.03, "{got} instead of {ratio} in {units}");
        }
        // No other object and no other version holds any of them.
        let several: Vec<u8> = [("k", 0), ("k", 1), ("l", 0)]
            .into_iter()
            .flat_map(|(key, version)| bytes(&generator, key, version, 0, 600 * UNIT_BYTES))
            .collect();
        let got = 1_800.0 / distinct_count(&several) as f64;
        assert!((got / ratio - 1.0).abs() < 0.03, "{got} instead of {ratio} in three objects");
    }
}

#[test]
fn repeating_does_not_compress_what_is_large() {
    for (compress, dedupe) in [(1.0, 2.0), (2.0, 2.0), (3.0, 1.5)] {
        let generator = shaped((compress * 1_000.0) as u32, (dedupe * 1_000.0) as u32);
        let len = 128 << 20;
        let content = bytes(&generator, "k", 0, 0, len);
        let got = len as f64 / packed_len(&content) as f64;

        assert!((got / compress - 1.0).abs() < 0.03, "{got} instead of {compress}");
        let got = (len / UNIT_BYTES) as f64 / distinct_count(&content) as f64;
        assert!((got / dedupe - 1.0).abs() < 0.03, "{got} instead of {dedupe}");
    }
}

#[test]
fn any_piece_is_a_piece_of_the_whole_and_every_wrong_byte_is_seen() {
    let files = (0..70_001u32).map(|at| (at % 251) as u8).collect();
    let of_files = Generator::with_rule(7, &DataRule::Files { bytes: 70_001 }, files);
    let plain = |rule| Generator::with_rule(7, &rule, Vec::new());
    for generator in [
        shaped(3_000, 1_700),
        shaped(1_000, 2_000),
        plain(DataRule::Zero),
        plain(DataRule::Text),
        of_files,
    ] {
        let whole = bytes(&generator, "k", 2, 0, 200_000);
        for (from, len) in [(0, 1), (1, 5_000), (4_095, 2), (8_191, 30_000), (65_530, 134_470)] {
            let mut piece = bytes(&generator, "k", 2, from as u64, len);
            assert_eq!(piece, whole[from..from + len]);
            let content = generator.content(hash_text("k"), 2);
            assert!(content.matches(from as u64, &piece));
            piece[len - 1] ^= 0x10;
            assert!(!content.matches(from as u64, &piece));
            let wrong = content.first_difference(from as u64, &piece);
            assert_eq!(wrong, Some((from + len - 1) as u64));
        }
    }
}

#[test]
fn other_versions_and_objects_are_told_apart_in_what_compresses() {
    for (compress, dedupe) in [(4_000, 1_000), (1_000, 3_000), (2_500, 1_500)] {
        let generator = shaped(compress, dedupe);
        let right = generator.content(hash_text("k"), 5);
        for (key, version, kind) in
            [("k", 4, WrongKind::OldVersion), ("l", 0, WrongKind::OtherObject)]
        {
            let given = bytes(&generator, key, version, 0, 60_000);
            let evidence = Evidence::new(0, &given);
            let received = Received {
                offset: 0,
                expected_len: 60_000,
                len: 60_000,
                evidence: Some(&evidence),
            };
            assert_eq!(right.diagnose(&received).map(|wrong| wrong.kind), Some(kind));
        }
    }
}

#[test]
fn text_is_text_and_compresses() {
    let generator = Generator::with_rule(7, &DataRule::Text, Vec::new());
    let text = bytes(&generator, "k", 0, 0, 1 << 20);
    assert!(text.iter().all(|byte| byte.is_ascii_lowercase() || b" ,\n".contains(byte)));
    // 2^20 bytes of 4.2 bits each: the entropy of the letters.
    let ratio = text.len() as f64 / packed_len(&text) as f64;
    assert!((1.7..2.1).contains(&ratio), "{ratio}");
    assert_ne!(text, bytes(&generator, "k", 1, 0, 1 << 20));
}

/// The figures come from `docs/formats/data.py`.
#[test]
fn content_is_as_the_format_defines_it() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = Generator::with_rule(7, &DataRule::Text, Vec::new());
    for (generator, offset, vector) in [
        (shaped(4_000, 1_500), 1_010, include_str!("../data_vectors/4.txt")),
        (shaped(4_000, 1_500), 2_000 * 4_096 - 8, include_str!("../data_vectors/5.txt")),
        (text, 100, include_str!("../data_vectors/6.txt")),
    ] {
        assert_eq!(hex(&bytes(&generator, "päivä", 3, offset, 32)), vector.trim());
    }
}
