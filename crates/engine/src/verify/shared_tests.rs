//! What is found of what comes of members of shared sets.

use plimsoll_driver::ContentSource as _;
use plimsoll_workload::SizeDist;
use plimsoll_workload::data::Generator;

use super::*;
use crate::verify::{Guard, SourceContent};

fn set(lengths: &[u64], hash_check: bool) -> SharedSet {
    let lengths = lengths.iter().map(|len| SizeDist::Fixed(*len)).collect();
    SharedSet { seed: 1, hash_check, lengths, home: String::new(), part_bytes: None }
}

/// Returns what the run writes of that length.
fn written(content: Content<'_>, set: &SharedSet, size: usize) -> Vec<u8> {
    let guard = set.hash_check.then(|| Guard::of(size as u64)).flatten();
    let mut given = SourceContent { content, offset: 0, size: size as u64, guard };
    let mut bytes = vec![0; size];
    // As a driver asks for it: piece by piece, and what was sent again.
    for (number, piece) in bytes.chunks_mut(777).enumerate() {
        given.fill(number as u64 * 777, piece);
    }
    bytes
}

/// Returns the kind of what is found of a body, however it is cut into pieces.
fn found(
    body: &[u8],
    set: &SharedSet,
    is_certain: bool,
    range: Option<(u64, u64)>,
) -> Result<bool, WrongKind> {
    let generator = Generator::new(1);
    let content = generator.content(5, 0);
    let all = [1, 7, 16, 41, 5_000].map(|cut| {
        let mut sink = SharedSink::new(content, set, is_certain, range);
        sink.accept(b"of an attempt before");
        sink.restart();
        body.chunks(cut).for_each(|piece| sink.accept(piece));
        match sink.found("k") {
            Found::Right => Ok(true),
            Found::Unchecked => Ok(false),
            Found::Wrong(wrong) => Err(wrong.kind),
        }
    });
    assert!(all.iter().all(|each| *each == all[0]), "{all:?}");
    all[0]
}

const RIGHT: Result<bool, WrongKind> = Ok(true);
const UNCHECKED: Result<bool, WrongKind> = Ok(false);

#[test]
fn what_begins_as_ours_is_checked_and_anything_else_is_counted() {
    let generator = Generator::new(1);
    let set = set(&[2_000, 3_000], false);
    let ours = written(generator.content(5, 0), &set, 2_000);
    let other = written(generator.content(6, 0), &set, 2_000);
    let find = |body: &[u8]| [found(body, &set, false, None), found(body, &set, true, None)];
    assert_eq!(find(&ours), [RIGHT, RIGHT]);
    assert_eq!(find(&other), [UNCHECKED, Err(WrongKind::OtherObject)]);
    assert_eq!(find(&other[..3])[0], UNCHECKED);
    let mut flipped = ours.clone();
    flipped[1_999] ^= 1;
    assert_eq!(find(&flipped), [Err(WrongKind::Flipped); 2]);
    // The first bytes tell whose it is.
    let mut flipped = ours.clone();
    flipped[15] ^= 1;
    assert_eq!(find(&flipped), [UNCHECKED, Err(WrongKind::Flipped)]);
    // What an earlier run wrote under the name may be shorter; of a few bytes nobody knows whose
    // they are.
    for (short, is) in [(0, UNCHECKED), (3, UNCHECKED), (16, RIGHT), (1_999, RIGHT)] {
        assert_eq!(find(&ours[..short]), [is, Err(WrongKind::Short)], "{short}");
    }
    let longest = written(generator.content(5, 0), &set, 3_001);
    assert_eq!(find(&longest[..3_000]), [RIGHT, RIGHT]);
    assert_eq!(find(&longest), [RIGHT, Err(WrongKind::Long)]);
    assert_eq!(found(&ours[..700], &super::tests::set(&[], false), false, None), RIGHT);
}

#[test]
fn a_range_is_checked_where_it_lies() {
    let generator = Generator::new(1);
    let set = set(&[2_000, 3_000], false);
    let ours = written(generator.content(5, 0), &set, 3_000);
    let find =
        |from: usize, body: &[u8], len: u64| found(body, &set, false, Some((from as u64, len)));
    assert_eq!(find(500, &ours[500..900], 400), RIGHT);
    assert_eq!(find(500, &ours[501..901], 400), UNCHECKED);
    // Every member that was filled has as many bytes; one of an earlier run may have fewer.
    let of_filled = found(&ours[500..899], &set, true, Some((500, 400)));
    assert_eq!((of_filled, find(500, &ours[500..899], 400)), (Err(WrongKind::Short), RIGHT));
    // Not every member has.
    assert_eq!(find(1_900, &ours[1_900..2_000], 400), RIGHT);
}

#[test]
fn a_guard_tells_what_is_right_of_what_others_wrote() {
    let generator = Generator::new(1);
    let guarded = set(&[2_000], true);
    let content = generator.content(5, 0);
    let ours = written(content, &guarded, 2_000);
    assert_eq!((&ours[1_960..1_964], &ours[1_996..]), (&b"!!!!"[..], &b"!!!!"[..]));
    let find = |body: &[u8]| [false, true].map(|is| found(body, &guarded, is, None));
    assert_eq!(find(&ours), [RIGHT, RIGHT]);
    for wrong in [100, 1_959, 1_970] {
        let mut body = ours.clone();
        body[wrong] = body[wrong].wrapping_add(1);
        assert!(find(&body).iter().all(Result::is_err), "{wrong}");
    }
    // What another writes with a guard is right by that, and wrong by that.
    let mut other = written(generator.content(6, 0), &guarded, 900);
    assert_eq!(found(&other, &guarded, false, None), RIGHT);
    other[500] ^= 1;
    assert_eq!(found(&other, &guarded, false, None), Err(WrongKind::Foreign));
    // Without one there is nothing to go by.
    assert_eq!(found(&other[..800], &guarded, false, None), UNCHECKED);
    // A small object has none.
    let small = super::tests::set(&[40], true);
    let body = written(content, &small, 40);
    assert_eq!(found(&body, &small, true, None), RIGHT);
    assert_eq!(found(&body[..39], &small, true, None), Err(WrongKind::Short));
}

#[test]
fn a_guard_is_right_where_the_set_has_none() {
    let generator = Generator::new(1);
    let content = generator.content(5, 0);
    let plain = set(&[2_000], false);
    // Another work, or a run before this one, has written with hashCheck.
    for size in [57, 2_000, 3_000] {
        let mut guarded = written(content, &set(&[2_000], true), size);
        assert_eq!(found(&guarded, &plain, false, None), RIGHT, "{size}");
        let last = guarded.len() - 5;
        guarded[last] ^= 1;
        assert!(found(&guarded, &plain, false, None).is_err(), "{size}");
    }
    // Of what is another's the guard is not looked at.
    let other = written(generator.content(6, 0), &set(&[900], true), 900);
    assert_eq!(found(&other, &plain, false, None), UNCHECKED);
}

#[test]
fn a_guard_is_the_published_digest_in_hex() {
    // RFC 1321, appendix A.5: MD5 ("abc").
    let body = b"abc!!!!900150983cd24fb0d6963f7d28e17f72!!!!";
    let guarded = set(&[], true);
    assert_eq!(found(body, &guarded, false, None), RIGHT);
    let capitals = b"abc!!!!900150983CD24FB0D6963F7D28E17F72!!!!";
    assert_eq!(found(capitals, &guarded, false, None), RIGHT);
    assert_eq!(found(&body[1..], &guarded, false, None), Err(WrongKind::Foreign));
}

#[test]
fn what_is_not_transferred_is_as_long_as_it_should_be() {
    let generator = Generator::new(1);
    for (lengths, hash_check, range, right) in [
        (&[2_000][..], false, None, 2_000),
        (&[2_000][..], true, Some((1_900, 200)), 100),
        (&[1, 2][..], false, None, 0),
    ] {
        let set = set(lengths, hash_check);
        let mut sink = SharedSink::new(generator.content(5, 0), &set, false, range);
        assert_eq!(sink.accept_unseen(), right);
        assert!(matches!(sink.found("k"), Found::Right), "{lengths:?}");
    }
}
