//! Checksums that follow the content they are of: the running checksum, and the body in chunks with
//! a trailer (`aws-chunked`) that carries it.

use aws_lc_rs::digest;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use crc_fast::CrcAlgorithm;
use plimsoll_driver::ContentSource;

use crate::Checksum;

/// How much content one chunk holds; S3 takes 8 KiB and more, and every SDK's server-side reader
/// takes this much.
const CHUNK_BYTES: u64 = 64 << 10;

/// A checksum of what came so far.
enum Running {
    /// The digest and how many bytes of its value count.
    Crc(Box<crc_fast::Digest>, usize),
    Sha(digest::Context),
}

impl Running {
    fn new(checksum: Checksum) -> Self {
        let crc = |algorithm, bytes| Self::Crc(Box::new(crc_fast::Digest::new(algorithm)), bytes);
        match checksum {
            Checksum::Crc32 | Checksum::Crc32FullObject => crc(CrcAlgorithm::Crc32IsoHdlc, 4),
            Checksum::Crc32c | Checksum::Crc32cFullObject => crc(CrcAlgorithm::Crc32Iscsi, 4),
            Checksum::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme, 8),
            Checksum::Sha1 => Self::Sha(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)),
            Checksum::Sha256 => Self::Sha(digest::Context::new(&digest::SHA256)),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(crc, _) => crc.update(bytes),
            Self::Sha(sha) => sha.update(bytes),
        }
    }

    /// Returns the value in base 64, as S3 writes it.
    fn finish(&self) -> String {
        match self {
            Self::Crc(crc, bytes) => {
                BASE64_STANDARD.encode(&crc.finalize().to_be_bytes()[8 - bytes..])
            }
            Self::Sha(sha) => BASE64_STANDARD.encode(sha.clone().finish()),
        }
    }
}

/// Returns how many digits a value has in base 64.
const fn value_len(checksum: Checksum) -> u64 {
    match checksum {
        Checksum::Crc32
        | Checksum::Crc32FullObject
        | Checksum::Crc32c
        | Checksum::Crc32cFullObject => 8,
        Checksum::Crc64Nvme => 12,
        Checksum::Sha1 => 28,
        Checksum::Sha256 => 44,
    }
}

/// Returns how long a body is in chunks and with its trailer.
pub(crate) fn encoded_len(size: u64, checksum: Checksum) -> u64 {
    let chunk_len = |bytes: u64| format!("{bytes:x}").len() as u64 + bytes + 4;
    let (whole_count, rest) = (size / CHUNK_BYTES, size % CHUNK_BYTES);
    let rest_len = if rest > 0 { chunk_len(rest) } else { 0 };
    let trailer_len = checksum.header().len() as u64 + 1 + value_len(checksum) + 2;
    whole_count * chunk_len(CHUNK_BYTES) + rest_len + 3 + trailer_len + 2
}

/// Makes the body of content in chunks, from its beginning to its end.
pub(crate) struct Chunked<'a> {
    content: &'a mut dyn ContentSource,
    checksum: Checksum,
    running: Running,
    /// How much content was taken.
    taken: u64,
    /// How much content the chunk under way still holds.
    chunk_left: u64,
    /// What stands between pieces of content, and how much of it was taken.
    frame: Vec<u8>,
    frame_taken: usize,
    ended: bool,
    /// Where in the body the next byte is.
    offset: u64,
}

impl<'a> Chunked<'a> {
    pub(crate) fn new(content: &'a mut dyn ContentSource, checksum: Checksum) -> Self {
        Self {
            content,
            checksum,
            running: Running::new(checksum),
            taken: 0,
            chunk_left: 0,
            frame: Vec::new(),
            frame_taken: 0,
            ended: false,
            offset: 0,
        }
    }

    /// Fills `buffer` with the bytes of the body from `offset` on, which is where the last call
    /// ended.
    pub(crate) fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        assert_eq!(offset, self.offset, "a body in chunks is made in order");
        self.offset += buffer.len() as u64;
        let mut rest = buffer;
        while !rest.is_empty() {
            let framed = (self.frame.len() - self.frame_taken).min(rest.len());
            let (head, tail) = rest.split_at_mut(framed);
            head.copy_from_slice(&self.frame[self.frame_taken..self.frame_taken + framed]);
            self.frame_taken += framed;
            rest = tail;
            if rest.is_empty() {
                return;
            }
            if self.chunk_left == 0 {
                self.next_frame();
                continue;
            }
            let len = self.chunk_left.min(rest.len() as u64);
            let (piece, tail) = rest.split_at_mut(len as usize);
            self.content.fill(self.taken, piece);
            self.running.update(piece);
            self.taken += len;
            self.chunk_left -= len;
            rest = tail;
        }
    }

    /// Puts what comes after the content taken so far into `self.frame`.
    fn next_frame(&mut self) {
        assert!(!self.ended, "nothing follows the trailer");
        self.frame.clear();
        self.frame_taken = 0;
        if self.taken > 0 {
            self.frame.extend_from_slice(b"\r\n");
        }
        let left = self.content.size() - self.taken;
        self.chunk_left = left.min(CHUNK_BYTES);
        self.frame.extend_from_slice(format!("{:x}\r\n", self.chunk_left).as_bytes());
        if left == 0 {
            self.ended = true;
            let trailer = format!("{}:{}\r\n\r\n", self.checksum.header(), self.running.finish());
            self.frame.extend_from_slice(trailer.as_bytes());
        }
    }

    /// Returns the checksum of the content taken so far, in base 64.
    pub(crate) fn value(&self) -> String {
        self.running.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(Vec<u8>);

    impl ContentSource for Text {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
            buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        }
    }

    /// Returns the whole body, made in pieces of `piece` bytes, and the checksum.
    fn body(content: &[u8], checksum: Checksum, piece: usize) -> (Vec<u8>, String) {
        let mut source = Text(content.to_vec());
        let mut chunked = Chunked::new(&mut source, checksum);
        let mut out = vec![0; encoded_len(content.len() as u64, checksum) as usize];
        let mut offset = 0;
        for part in out.chunks_mut(piece) {
            chunked.fill(offset, part);
            offset += part.len() as u64;
        }
        assert!(chunked.ended && chunked.frame_taken == chunked.frame.len(), "nothing is left");
        let value = chunked.value();
        (out, value)
    }

    /// The check values of the catalogue of parametrised CRC algorithms, and FIPS 180's of `abc`.
    #[test]
    fn values_are_the_published_ones() {
        for (checksum, content, hex) in [
            (Checksum::Crc32, "123456789", "cbf43926"),
            (Checksum::Crc32FullObject, "123456789", "cbf43926"),
            (Checksum::Crc32c, "123456789", "e3069283"),
            (Checksum::Crc32cFullObject, "123456789", "e3069283"),
            (Checksum::Crc64Nvme, "123456789", "ae8b14860a799888"),
            (Checksum::Sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                Checksum::Sha256,
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect();
            let (_, value) = body(content.as_bytes(), checksum, 3);
            assert_eq!(BASE64_STANDARD.decode(&value).unwrap(), bytes, "{}", checksum.name());
            assert_eq!(value.len() as u64, value_len(checksum));
        }
    }

    /// The layout of "Signature calculations for trailing headers" in the S3 API reference.
    #[test]
    fn a_body_is_chunks_and_a_trailer() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (small, _) = body(b"123456789", Checksum::Crc32, 1);
        assert_eq!(text(small), "9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n");
        let (empty, _) = body(b"", Checksum::Crc32c, 100);
        assert_eq!(text(empty), "0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n");
        // AWS's own example: 65 KiB of `a`, in chunks of 64 KiB and 1 KiB, with CRC-32C.
        let (large, value) = body(&[b'a'; 65 << 10], Checksum::Crc32c, 1000);
        assert_eq!(value, "sOO8/Q==");
        let large = text(large);
        assert!(large.starts_with("10000\r\naaa") && large.contains("aaa\r\n400\r\naaa"));
        assert!(large.ends_with("aaa\r\n0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"));
    }

    #[test]
    fn it_does_not_matter_in_what_pieces_a_body_is_made() {
        let content: Vec<u8> = (0..3 * CHUNK_BYTES + 17).map(|i| ((i * 31) >> 3) as u8).collect();
        let whole = body(&content, Checksum::Crc64Nvme, usize::MAX);
        for piece in [1, 7, 4096, 65_536, 65_545] {
            assert!(body(&content, Checksum::Crc64Nvme, piece) == whole, "pieces of {piece}");
        }
    }
}
