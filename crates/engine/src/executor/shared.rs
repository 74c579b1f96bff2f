//! Members of shared sets: reads of what anybody may have written, and uploads in parts that are
//! one operation.

use plimsoll_driver::{ByteRange, Completion, Operation, Session};
use plimsoll_model::{ErrorClass, Moment};
use plimsoll_workload::Keys;
use plimsoll_workload::objects::SharedSet;

use super::{Executor, bounded, expect_name, together};
use crate::verify::{Found, Guard, SharedSink, SourceContent, in_class};

impl Executor<'_> {
    /// Reads a member of a shared set, or a range of it.
    pub(super) async fn get_shared<S: Session>(
        &mut self,
        session: &mut S,
        (shared, is_certain): (&SharedSet, bool),
        range: Option<(u64, u64)>,
        start: Moment,
    ) -> Completion {
        let mut taken = SharedSink::new(self.content(0), shared, is_certain, range);
        if let Keys::Files(_) = self.set().keys {
            taken.has_length(self.set().size_of(self.member));
        }
        let range = range.map(|(offset, len)| ByteRange { offset, len });
        let get = Operation::Get { key: &self.key, range, version: None, sink: &mut taken };
        let mut done = in_bucket!(self, session, get, start);
        match &done.result {
            Ok(()) if taken.is_error_document() => done.result = Err(self.error_document()),
            Ok(()) => match taken.found(&self.key) {
                Found::Right => {}
                Found::Unchecked => self.is_unchecked = true,
                Found::Wrong(wrong) => {
                    self.wrong = Some(wrong.kind);
                    done.result = Err(in_class(wrong));
                }
            },
            // The driver knew before we did.
            Err(error) if error.class == ErrorClass::Truncated => {
                self.wrong = taken.wrong_length(&self.key);
            }
            Err(_) => {}
        }
        done
    }

    /// Returns the guard that what is written under the present key ends in, if it is to have one.
    pub(super) fn guard(&self, size: u64) -> Option<Guard> {
        self.set().shared.as_ref().filter(|shared| shared.hash_check)?;
        match self.set().keys {
            // A file is followed by its guard, however small it is.
            Keys::Files(_) => Some(Guard::behind(size)),
            _ => Guard::of(size),
        }
    }

    /// Returns in parts of how many bytes an object of that size is uploaded, if it is.
    pub(super) fn parts_of(&self, size: u64) -> Option<u64> {
        let part_bytes = self.set().shared.as_ref()?.part_bytes?;
        // Of nothing there are no parts.
        (size > 0).then_some(part_bytes)
    }

    /// Uploads an object in parts, one after the other. It is as a whole what the first failure
    /// makes of it, and what was uploaded by then is given up. The last byte sent is that of the
    /// last part, not of the list of the parts; the first byte is that of the answer that makes an
    /// object of them, so that a failed upload has none.
    pub(super) async fn put_in_parts<S: Session>(
        &mut self,
        session: &mut S,
        mut given: SourceContent<'_>,
        start: Moment,
    ) -> Completion {
        let size = given.size;
        let part_bytes = self.parts_of(size).expect("it is uploaded in parts");
        let key = &self.key;
        let create = Operation::CreateUpload { key };
        let mut whole = in_bucket!(self, session, create, start);
        expect_name(&mut whole, key, "name of the upload");
        let Some(upload) = whole.server_name.take().filter(|_| whole.result.is_ok()) else {
            return whole;
        };
        let (mut parts, mut last_byte_sent) = (Vec::new(), None);
        for number in 1.. {
            let offset = (u64::from(number) - 1) * part_bytes;
            if offset >= size {
                break;
            }
            (given.offset, given.size) = (offset, part_bytes.min(size - offset));
            let (upload, content) = (&*upload, &mut given);
            let put = Operation::PutPart { key, upload, number, content };
            let mut part = in_bucket!(self, session, put, start);
            expect_name(&mut part, key, "name of the part");
            parts.extend(part.server_name.take().map(String::from));
            last_byte_sent = part.last_byte_sent;
            whole = together(whole, part);
            if whole.result.is_err() {
                break;
            }
        }
        let is_right = whole.result.is_ok();
        let end = match is_right {
            true => Operation::CompleteUpload { key, upload: &upload, parts: &parts },
            false => Operation::AbortUpload { key, upload: &upload },
        };
        let end = in_bucket!(self, session, end, start);
        let mut first_byte = None;
        if is_right {
            first_byte = end.first_byte;
            whole = together(whole, end);
        }
        Completion { first_byte, last_byte_sent, objects_count: 1, ..whole }
    }
}
