//! Tests of the answer parser: tables of answers, every way to split them, random bytes.

use proptest::prelude::*;

use super::*;

/// What a sink saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    status: u16,
    content_length: Option<u64>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl ResponseSink for Seen {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert_eq!(self.status, 0, "one head for each answer");
        self.status = head.status;
        self.content_length = head.content_length;
        let field = |field: &httparse::Header<'_>| (field.name.to_owned(), field.value.to_vec());
        self.headers = head.headers.iter().map(field).collect();
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(self.status > 0, "the head comes first");
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }
}

/// How reading an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    seen: Seen,
    /// Bytes that belong to the answer and whether the connection can be kept; `None` while it is
    /// not complete.
    complete: Option<(usize, bool)>,
    error: Option<ParseError>,
    /// What the end of the connection would mean.
    ending: Ending,
}

/// Feeds `bytes` in the given pieces; an answer's sizes must not depend on them.
fn read<'a>(method_is_head: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut parser = ResponseParser::new();
    parser.start(method_is_head);
    let (mut seen, mut complete, mut error, mut consumed) = (Seen::default(), None, None, 0);
    for piece in pieces {
        match parser.feed(piece, &mut seen) {
            Ok(fed) => {
                consumed += fed.consumed;
                if fed.complete {
                    complete.get_or_insert((consumed, parser.keeps_alive()));
                } else {
                    assert_eq!(fed.consumed, piece.len());
                }
            }
            Err(invalid) => {
                error = Some(invalid);
                break;
            }
        }
    }
    assert_eq!(parser.body_bytes(), seen.body.len() as u64);
    if error.is_none() {
        assert_eq!(parser.status(), seen.status);
    }
    Outcome { seen, complete, error, ending: parser.finish() }
}

/// Reads `bytes` whole, then split at every position, then byte by byte, and returns the one
/// outcome.
fn check(method_is_head: bool, bytes: &[u8]) -> Outcome {
    let whole = read(method_is_head, [bytes]);
    for at in 0..=bytes.len() {
        let split = read(method_is_head, [&bytes[..at], &bytes[at..]]);
        assert_eq!(split, whole, "split at {at}");
    }
    assert_eq!(read(method_is_head, bytes.chunks(1)), whole, "byte by byte");
    whole
}

#[test]
fn every_framing_is_read_whatever_the_pieces() {
    // Answer, status, body, bytes left over after it, connection kept.
    let cases: [(&str, u16, &str, usize, bool); 18] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 0, true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP", 200, "hello", 4, true),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, "", 0, true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab",
            200,
            "ab",
            0,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nab",
            200,
            "ab",
            0,
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, close\r\n\r\na",
            200,
            "a",
            0,
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, "ab", 0, false),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\na",
            200,
            "a",
            0,
            true,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0, true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nHTTP", 204, "", 4, true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "", 0, true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", 0, true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00b\r\n, our world\r\n0\r\n\r\nHT",
            200,
            "hello, our world",
            2,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=\"1;2\"\r\n0123456789\r\n1 ;y\r\n!\r\n0\r\n\r\n",
            200,
            "0123456789!",
            0,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n\r\n2\r\nab\r\n0\r\na: 1\r\nb: 2\r\n\r\n",
            200,
            "ab",
            0,
            true,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nx: y\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
            404,
            "no",
            0,
            true,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab\n", 200, "ab\n", 0, true),
        ("HTTP/1.1 503 \r\nRetry-After: 1\r\nContent-Length: 1\r\n\r\nx", 503, "x", 0, true),
    ];
    for (text, status, body, left_over, kept) in cases {
        let outcome = check(false, text.as_bytes());
        assert_eq!(outcome.error, None, "{text}");
        assert_eq!(outcome.complete, Some((text.len() - left_over, kept)), "{text}");
        assert_eq!((outcome.seen.status, outcome.seen.body), (status, body.as_bytes().to_vec()));
        assert_eq!(outcome.ending, Ending::Complete);
    }
}

#[test]
fn an_answer_to_head_has_no_body_but_states_its_size() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nETag: \"x\"\r\n\r\n";
    let outcome = check(true, text.as_bytes());
    assert_eq!(outcome.complete, Some((text.len(), true)));
    assert_eq!(outcome.seen.content_length, Some(1024));
    assert_eq!(outcome.seen.headers[1], ("ETag".to_owned(), b"\"x\"".to_vec()));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(check(true, chunked.as_bytes()).complete, Some((chunked.len(), true)));
}

#[test]
fn the_end_of_the_connection_means_what_the_answer_was_at() {
    for (text, ending) in [
        ("", Ending::BeforeAnswer),
        ("HTTP/1.1 100 Continue\r\n\r\n", Ending::BeforeAnswer),
        ("HTTP/1.1 20", Ending::InsideHead),
        ("HTTP/1.1 100 Continue\r\n\r\nH", Ending::InsideHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Ending::InsideBody),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Ending::InsideBody),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
            Ending::InsideBody,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", Ending::Complete),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", Ending::Complete),
    ] {
        let outcome = check(false, text.as_bytes());
        assert_eq!(
            (outcome.complete, outcome.error, outcome.ending),
            (None, None, ending),
            "{text}"
        );
    }
    let outcome = check(false, b"HTTP/1.1 200 OK\r\n\r\nuntil the end");
    assert_eq!(outcome.seen.body, b"until the end");
}

#[test]
fn what_breaks_the_rules_is_refused_whatever_the_pieces() {
    use ParseError as E;
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let many_headers = "a: b\r\n".repeat(HEADERS_COUNT_MAX + 1);
    let long_header = format!("a: {}\r\n", "b".repeat(HEAD_BYTES_MAX));
    let long_extension = format!("1;{}\r\n", "x".repeat(4 << 10));
    let cases = [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), E::Head(httparse::Error::Version)),
        ("HTTP/2.0 200 OK\r\n\r\n".to_owned(), E::Head(httparse::Error::Version)),
        ("HTTP/1.1 2x0 OK\r\n\r\n".to_owned(), E::Head(httparse::Error::Status)),
        ("\u{15}\u{3}\u{1}\0\u{2}\u{2}F".to_owned(), E::Tls),
        // Found by fuzzing: one byte is not enough to tell TLS.
        ("\u{16}\n".to_owned(), E::Head(httparse::Error::Version)),
        ("HTTP/1.1 099 Odd\r\n\r\n".to_owned(), E::Status(99)),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), E::Status(101)),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(65), E::TooManyInterims),
        (format!("{ok}Content-Length: -1\r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: +1\r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: \r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: 1 2\r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: 0x10\r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: 18446744073709551616\r\n\r\n"), E::ContentLength),
        (format!("{ok}Content-Length: 1, 2\r\n\r\n"), E::ContentLengthConflict),
        (format!("{ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), E::ContentLengthConflict),
        (
            format!("{ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            E::LengthAndEncoding,
        ),
        (format!("{ok}Transfer-Encoding: gzip, chunked\r\n\r\n"), E::TransferEncoding),
        (format!("{ok}Transfer-Encoding: identity\r\n\r\n"), E::TransferEncoding),
        (
            format!("{ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            E::TransferEncoding,
        ),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), E::TransferEncoding),
        (format!("{chunked}\r\n"), E::ChunkSize),
        (format!("{chunked}x\r\n"), E::ChunkSize),
        (format!("{chunked}-1\r\n"), E::ChunkSize),
        (format!("{chunked}1\n"), E::ChunkSize),
        (format!("{chunked}1\r\r\n"), E::ChunkSize),
        (format!("{chunked}1 2\r\n"), E::ChunkSize),
        (format!("{chunked}1;a\n"), E::ChunkSize),
        (format!("{chunked}10000000000000000\r\n"), E::ChunkSize),
        (format!("{chunked}2\r\nabc\r\n"), E::ChunkEnd),
        (format!("{chunked}2\r\nab\n"), E::ChunkEnd),
        (format!("{chunked}2\r\nab\r\r"), E::ChunkEnd),
        (format!("{chunked}0\r\na: b\n\r\n"), E::Trailer),
        (format!("{chunked}0\r\n\rx"), E::Trailer),
    ];
    for (text, error) in cases {
        assert_eq!(check(false, text.as_bytes()).error, Some(error), "{text}");
    }
    // These are too long to be split at every byte.
    let long_trailer = format!("{chunked}0\r\n{}", "a: b\r\n".repeat(HEAD_BYTES_MAX / 6 + 1));
    for (text, error) in [
        (format!("{ok}{many_headers}\r\n"), E::TooManyHeaders),
        (format!("{ok}{long_header}\r\n"), E::HeadTooLong),
        (format!("{chunked}{long_extension}"), E::ChunkLineTooLong),
        (long_trailer, E::TrailerTooLong),
    ] {
        for pieces in [text.len(), 4096, 1000] {
            let outcome = read(false, text.as_bytes().chunks(pieces));
            assert_eq!(outcome.error, Some(error), "in pieces of {pieces}");
        }
    }
}

#[test]
fn the_longest_head_is_still_taken() {
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\na: ";
    let filler = "b".repeat(HEAD_BYTES_MAX - start.len() - 4);
    let text = format!("{start}{filler}\r\n\r\nabc");
    for pieces in [text.len(), HEAD_BYTES_MAX, 4096, 1000] {
        let outcome = read(false, text.as_bytes().chunks(pieces));
        assert_eq!(outcome.complete, Some((HEAD_BYTES_MAX + 3, true)));
        assert_eq!(outcome.seen.body, b"abc");
    }
    let too_long = format!("{start}b{filler}\r\n\r\nabc");
    for pieces in [text.len(), HEAD_BYTES_MAX, 4096, 1000] {
        let outcome = read(false, too_long.as_bytes().chunks(pieces));
        assert_eq!(outcome.error, Some(ParseError::HeadTooLong));
    }
}

#[test]
fn a_hundred_headers_are_taken_and_found_by_name() {
    struct Finder(Option<String>);
    impl ResponseSink for Finder {
        fn head(&mut self, head: &ResponseHead<'_>) {
            assert_eq!(head.headers.len(), HEADERS_COUNT_MAX);
            assert_eq!(head.header("absent"), None);
            assert_eq!(head.header("bytes"), None, "its value is not UTF-8");
            self.0 = head.header("x-AMZ-request-ID").map(str::to_owned);
        }

        fn body(&mut self, _bytes: &[u8]) {}
    }
    let mut text = b"HTTP/1.1 204 x\r\nbytes: \xff\r\n".to_vec();
    text.extend("a: b\r\n".repeat(HEADERS_COUNT_MAX - 2).bytes());
    text.extend(b"X-Amz-Request-Id:  7 \r\n\r\n");
    let mut finder = Finder(None);
    assert!(ResponseParser::new().feed(&text, &mut finder).unwrap().complete);
    assert_eq!(finder.0.as_deref(), Some("7"));
}

#[test]
fn one_parser_reads_one_answer_after_the_other() {
    let mut parser = ResponseParser::new();
    assert!(parser.feed(b"HTTP/1.1 200 OK\r\nCont", &mut Seen::default()).is_ok());
    for body in ["first", "2nd", ""] {
        parser.start(false);
        assert!(!parser.has_begun());
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut seen = Seen::default();
        let fed = parser.feed(text.as_bytes(), &mut seen);
        assert_eq!(fed, Ok(Fed { consumed: text.len(), complete: true }));
        assert_eq!(seen.body, body.as_bytes());
        assert!(parser.has_begun());
    }
}

/// How the body of a generated answer is framed.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Length,
    Chunked,
    UntilClose,
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Length), Just(Shape::Chunked), Just(Shape::UntilClose)]
}

/// Writes a valid answer; `cuts` decides over the sizes of its chunks.
fn render(
    shape: Shape,
    status: u16,
    fields: &[(String, String)],
    body: &[u8],
    cuts: &[usize],
) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Some Reason\r\n");
    for (name, value) in fields {
        text.push_str(&format!("x-{name}: {value}\r\n"));
    }
    let mut bytes = match shape {
        Shape::Length => format!("{text}Content-Length: {}\r\n\r\n", body.len()).into_bytes(),
        Shape::Chunked => format!("{text}Transfer-Encoding: chunked\r\n\r\n").into_bytes(),
        Shape::UntilClose => format!("{text}\r\n").into_bytes(),
    };
    if !matches!(shape, Shape::Chunked) {
        bytes.extend_from_slice(body);
        return bytes;
    }
    for chunk in pieces(body, cuts).filter(|chunk| !chunk.is_empty()) {
        bytes.extend(format!("{:x};ext=\"{}\"\r\n", chunk.len(), chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\nx-trailer: 1\r\n\r\n");
    bytes
}

/// Cuts `bytes` into pieces of the given sizes over and over.
fn pieces<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().copied().cycle();
    std::iter::from_fn(move || {
        let size = sizes.next()?.min(bytes.len());
        let (piece, rest) = bytes.split_at(size);
        bytes = rest;
        (size > 0).then_some(piece)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_answers_are_read_the_same_however_split(
        shape in shapes(),
        status in 200u16..600,
        fields in prop::collection::vec(("[a-z]{1,8}", "[!-~]{0,20}"), 0..10),
        body in prop::collection::vec(any::<u8>(), 0..3000),
        chunks in prop::collection::vec(1usize..500, 1..8),
        splits in prop::collection::vec(1usize..200, 1..8),
    ) {
        prop_assume!(status != 204 && status != 304);
        let bytes = render(shape, status, &fields, &body, &chunks);
        let outcome = read(false, pieces(&bytes, &splits));
        prop_assert_eq!(outcome.error, None);
        prop_assert_eq!(outcome.ending, Ending::Complete);
        prop_assert_eq!(outcome.complete.is_some(), !matches!(shape, Shape::UntilClose));
        prop_assert_eq!(&outcome.seen.body, &body);
        prop_assert_eq!(outcome.seen.status, status);
        for ((name, value), (seen_name, seen_value)) in fields.iter().zip(&outcome.seen.headers) {
            prop_assert_eq!(&format!("x-{name}"), seen_name);
            prop_assert_eq!(value.as_bytes(), seen_value);
        }
    }

    #[test]
    fn random_bytes_never_panic_and_splits_do_not_matter(
        start in prop_oneof![
            Just(""),
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.1 200 OK\r\n\r\n"),
            Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Just("HTTP/1.1 100 Continue\r\n\r\n"),
        ],
        noise in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"HTP/1. 02\r\n:;abcdef,".to_vec())],
            0..300,
        ),
        splits in prop::collection::vec(1usize..50, 1..8),
        method_is_head in any::<bool>(),
    ) {
        let bytes = [start.as_bytes(), &noise].concat();
        let whole = read(method_is_head, [&bytes[..]]);
        prop_assert_eq!(read(method_is_head, pieces(&bytes, &splits)), whole);
    }

    #[test]
    fn a_valid_answer_with_one_wrong_byte_never_panics(
        shape in shapes(),
        body in prop::collection::vec(any::<u8>(), 0..100),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        splits in prop::collection::vec(1usize..50, 1..8),
    ) {
        let mut bytes = render(shape, 200, &[], &body, &[7]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let whole = read(false, [&bytes[..]]);
        prop_assert_eq!(read(false, pieces(&bytes, &splits)), whole);
    }
}
