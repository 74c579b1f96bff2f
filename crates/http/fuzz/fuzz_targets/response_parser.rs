//! Feeds any bytes to the answer parser: it must not panic, and how the bytes are split must not
//! matter.
//!
//! Run with `cargo +nightly fuzz run response_parser` in `crates/http`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_http::response::{Ending, ParseError, ResponseHead, ResponseParser, ResponseSink};

#[derive(Debug, Default, PartialEq)]
struct Seen {
    status: u16,
    body: Vec<u8>,
}

impl ResponseSink for Seen {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert_eq!(self.status, 0, "one head for each answer");
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(self.status > 0 && !bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }
}

type Outcome = (Seen, Option<usize>, Option<ParseError>, Ending);

fn read<'a>(method_is_head: bool, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut parser = ResponseParser::new();
    parser.start(method_is_head);
    let (mut seen, mut consumed, mut complete, mut error) = (Seen::default(), 0, None, None);
    for piece in pieces {
        match parser.feed(piece, &mut seen) {
            Ok(fed) => {
                assert!(fed.consumed == piece.len() || fed.complete);
                consumed += fed.consumed;
                if fed.complete {
                    complete = Some(consumed);
                }
            }
            Err(invalid) => {
                error = Some(invalid);
                break;
            }
        }
    }
    (seen, complete, error, parser.finish())
}

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (method_is_head, piece_size, bytes) = input;
    let whole = read(method_is_head, std::iter::once(bytes));
    let split = read(method_is_head, bytes.chunks(usize::from(piece_size).max(1)));
    assert_eq!(split, whole);
});
