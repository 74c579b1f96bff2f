//! Marks in the bucket: empty objects whose names alone say something.

use plimsoll_driver::{ContentSource, DriverError, Operation, Session};

use super::S3Admin;

/// An object of no bytes.
struct Empty;

impl ContentSource for Empty {
    fn size(&self) -> u64 {
        0
    }

    fn fill(&mut self, _offset: u64, _buffer: &mut [u8]) {}
}

impl S3Admin {
    /// Writes an empty object.
    pub(super) async fn put_empty(&mut self, key: &str) -> Result<(), DriverError> {
        let put = Operation::Put { key, content: &mut Empty };
        self.session.execute(None, put).await.result.map(|_| ())
    }

    /// Removes an object, as far as the bucket lets go of it; one that is not there counts as
    /// removed.
    pub(super) async fn remove_one(&mut self, key: &str) -> Result<(), DriverError> {
        self.session.remove([(key, None)].into_iter(), false).await.result.map(|_| ())
    }
}
