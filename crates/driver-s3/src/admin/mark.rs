//! Marks in the bucket: empty objects whose names alone say something, and how old they are.

use plimsoll_driver::{ContentSource, Dates, DriverError, Operation, Session};

use super::{S3Admin, is_refusal};
use crate::s3_request::S3Request;

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

    /// Returns what time it is by the store's clock, as HTTP writes it; `None`: it does not say.
    pub async fn now(&mut self) -> Result<Option<String>, DriverError> {
        Ok(self.dated(S3Request::HeadBucket).await?.map(|dates| dates.now))
    }

    /// Returns the dates in the response to a request; `None` if the object does not exist.
    pub(super) async fn dated(
        &mut self,
        call: S3Request<'_>,
    ) -> Result<Option<Dates>, DriverError> {
        let lease = self.session.lease();
        let connection = &mut self.session.connection;
        connection.answer.dates = Some(Dates::default());
        let asked = connection.call(&lease, &call, &[200]).await.result;
        let dates = connection.answer.dates.take();
        match asked {
            Ok(()) => Ok(dates),
            Err(error) if error.status == Some(404) => Ok(None),
            // Only clients with the key get the date of an SSE-C object.
            Err(error) if is_refusal(&error) => {
                Ok(dates.map(|dates| Dates { modified: String::new(), ..dates }))
            }
            Err(error) => Err(self.overdue("asking for", error)),
        }
    }
}
