//! Feeds any bytes to the readers of warp's files: they must not panic, two scans must agree, and
//! what they hand out must be sound.
//!
//! Run with `cargo +nightly fuzz run warp` in `crates/foreign`, with `seeds` as a second corpus. It
//! also builds without cargo-fuzz on the stable compiler, with the flags of `sancov-module` in
//! `RUSTFLAGS` and with `--target`, which keeps them from build scripts.

#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use plimsoll_foreign::warp::raw::{Names, ScanEnd, scan};
use plimsoll_foreign::warp::{WarpError, aggregated, detect};

/// A reader that gives one byte at a time.
struct OneByOne<'a>(&'a [u8]);

impl Read for OneByOne<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let one = into.len().min(1);
        self.0.read(&mut into[..one])
    }
}

fn checked_scan(input: impl Read, names: &mut Names) -> Result<(ScanEnd, u64), WarpError> {
    let (mut rows, mut sum) = (0, 0u64);
    let end = scan(input, names, &mut |op, texts| {
        assert!(op.intended == op.start && op.start <= op.end);
        for moment in [op.first_byte, op.last_byte_sent].into_iter().flatten() {
            assert!(op.start <= moment && moment <= op.end);
        }
        assert_eq!(op.outcome.is_ok(), texts.error.is_empty());
        assert_eq!(op.object.is_none(), texts.file.is_empty());
        rows += 1;
        let parts = [op.start.as_ns(), op.end.as_ns(), op.bytes, op.worker.0.into()];
        sum = parts.iter().fold(sum, |sum, part| sum.rotate_left(7) ^ part);
    })?;
    assert!(rows > 0 && rows == end.rows);
    for loss in &end.losses {
        assert!(loss.count > 0 && loss.first_line > 0 && !loss.to_string().is_empty());
    }
    Ok((end, sum))
}

fuzz_target!(|bytes: &[u8]| {
    let mut names = Names::default();
    let first = checked_scan(bytes, &mut names);
    let names_before = names.clone();
    let second = checked_scan(OneByOne(bytes), &mut names);
    match (first, second) {
        (Ok(first), Ok(second)) => assert_eq!((first, names_before), (second, names)),
        (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
        (first, second) => panic!("the two scans differ: {first:?}, {second:?}"),
    }
    if let Err(error) = aggregated::read(bytes) {
        assert!(!error.to_string().is_empty());
    }
    let _ = detect(bytes);
});
