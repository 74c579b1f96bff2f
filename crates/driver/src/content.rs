//! How content crosses the seam: given piece by piece on writing, taken piece by piece on reading.

/// Gives the bytes of an object that is written. Seekable, so that a second try or a digest can
/// read it again.
pub trait ContentSource {
    /// Returns the object's size.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on; `offset + buffer.len()` never exceeds the
    /// size.
    fn fill(&mut self, offset: u64, buffer: &mut [u8]);
}

/// Takes the bytes of an object that is read, in order.
pub trait ContentSink {
    /// Called before the first byte of every try: what came before does not count.
    fn restart(&mut self);

    /// Takes the next bytes.
    fn accept(&mut self, bytes: &[u8]);

    /// Takes all that is right unseen and returns how many bytes that is: for a target that
    /// transfers nothing.
    fn accept_unseen(&mut self) -> u64 {
        0
    }
}

/// Takes the entries of a listing, in the order in which the target gives them.
pub trait EntrySink {
    /// Called before the first entry of every try.
    fn restart(&mut self);

    /// Takes one entry.
    fn entry(&mut self, key: &str, size: u64);

    /// Takes all entries that are right unseen and returns how many they are: for a target that
    /// keeps nothing.
    fn accept_unseen(&mut self) -> u64 {
        0
    }
}
