//! Files of somebody else, which no command may touch.

use plimsoll_driver::{ContentSink, ContentSource};

/// The content of the file of that number.
pub(crate) struct Numbered(pub(crate) u64);

impl ContentSource for Numbered {
    fn size(&self) -> u64 {
        100 + self.0 % 50
    }

    fn fill(&mut self, _: u64, buffer: &mut [u8]) {
        buffer.fill(self.0 as u8);
    }
}

/// Takes the content of such a file.
pub(crate) struct Same {
    number: u64,
    len: u64,
    is_same: bool,
}

impl Same {
    pub(crate) fn of(number: u64) -> Self {
        Self { number, len: 0, is_same: true }
    }

    /// Tells whether all of the file came, and nothing else.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_same && self.len == Numbered(self.number).size()
    }
}

impl ContentSink for Same {
    fn restart(&mut self) {
        self.len = 0;
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.is_same &= bytes.iter().all(|byte| *byte == self.number as u8);
    }
}
