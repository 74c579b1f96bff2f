//! Administration of the bucket: making it, listing it, removing what the run wrote.

use plimsoll_driver::{DELETE_BATCH_MAX, DriverError, FoundObject, RootState, Steward};
use plimsoll_model::ErrorClass;

use crate::session::{BucketCall, Listing, S3Session};
use crate::xml;

/// How many entries the steward asks for per page, which is also how many keys it removes with one
/// call.
const PAGE_SIZE: u32 = DELETE_BATCH_MAX as u32;
/// How often a key may be listed first again after it was removed; stores that list late get that
/// much patience.
const SWEEP_REPEATS_MAX: u32 = 100;

/// Administers the bucket of an [`S3Driver`](crate::S3Driver).
pub struct S3Steward {
    session: S3Session,
}

impl Steward for S3Steward {
    async fn ensure_root(&mut self) -> Result<RootState, DriverError> {
        let Err(error) = self.session.call_bucket(BucketCall::Head).await.result else {
            return Ok(RootState::Existed);
        };
        match error.status {
            Some(404) => self.create().await,
            Some(_) => self.explain(error).await,
            None => Err(error),
        }
    }

    async fn survey(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Result<Vec<FoundObject>, DriverError> {
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        let page_size = limit.map_or(PAGE_SIZE, |limit| limit.min(PAGE_SIZE.into()) as u32);
        let listing = Listing { prefix, page_size, recursive, entries_max: limit };
        let mut found = Vec::new();
        let mut take = |key: &str, size| found.push(FoundObject { key: key.to_owned(), size });
        self.session.survey(listing, &mut take).await.result?;
        Ok(found)
    }

    async fn sweep(&mut self, prefix: &str) -> Result<u64, DriverError> {
        assert!(!prefix.is_empty(), "sweeping needs a prefix of its own");
        let (mut removed_count, mut repeats_count) = (0, 0);
        let mut first_before = String::new();
        loop {
            let mut found = self.survey(prefix, Some(PAGE_SIZE.into()), true).await?;
            // Whatever the server lists, nothing outside of the prefix is touched.
            found.retain(|object| object.key.starts_with(prefix));
            let Some(first) = found.first() else {
                return Ok(removed_count);
            };
            let is_repeat = first.key == first_before;
            repeats_count = if is_repeat { repeats_count + 1 } else { 0 };
            if repeats_count > SWEEP_REPEATS_MAX {
                let message = format!("`{first_before}` is still listed after its removal");
                return Err(DriverError::new(ErrorClass::Protocol, message));
            }
            first.key.clone_into(&mut first_before);
            self.session.remove(found.iter().map(|object| object.key.as_str())).await.result?;
            removed_count += if is_repeat { 0 } else { found.len() as u64 };
        }
    }
}

impl S3Steward {
    pub(crate) fn new(session: S3Session) -> Self {
        Self { session }
    }

    fn bucket(&self) -> &str {
        &self.session.target.bucket
    }

    /// Finds out why the bucket may not be used: a HEAD is answered without a text, a list with
    /// one.
    async fn explain(&mut self, head_error: DriverError) -> Result<RootState, DriverError> {
        let Err(list_error) = self.survey("", Some(1), false).await else {
            return Ok(RootState::Existed);
        };
        let error = if list_error.status == head_error.status { list_error } else { head_error };
        let because = match error.class {
            ErrorClass::Denied => "cannot be read with these credentials",
            _ => "cannot be read",
        };
        let message = format!("bucket `{}` {because}: {}", self.bucket(), error.message);
        Err(DriverError { message, ..error })
    }

    async fn create(&mut self) -> Result<RootState, DriverError> {
        let Err(error) = self.session.call_bucket(BucketCall::Create).await.result else {
            return Ok(RootState::Created);
        };
        // Someone with the same credentials was faster.
        let text = xml::parse_error(self.session.answer_body());
        if text.is_some_and(|text| text.code == "BucketAlreadyOwnedByYou") {
            return Ok(RootState::Existed);
        }
        let message = format!(
            "bucket `{}` is not there and cannot be made: {}",
            self.bucket(),
            error.message
        );
        Err(DriverError { message, ..error })
    }
}
