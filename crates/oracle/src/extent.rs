//! Which bytes of an object a request asks for.

use std::ops::Range as Span;

use s3s::dto::Range;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::store::Object;

/// Which bytes of an object are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// All of them.
    Whole,
    /// A range of them.
    Range(Range),
    /// The part of that number that it was uploaded in.
    Part(i32),
}

impl Extent {
    /// Returns what a request asks for that names a range or a part, or neither.
    pub(crate) fn new(range: Option<Range>, part: Option<i32>) -> S3Result<Self> {
        match (range, part) {
            (None, None) => Ok(Self::Whole),
            (Some(range), None) => Ok(Self::Range(range)),
            (None, Some(part)) => Ok(Self::Part(part)),
            (Some(_), Some(_)) => {
                Err(s3_error!(InvalidRequest, "a range and a part cannot both be asked for"))
            }
        }
    }

    /// Returns where these bytes lie in the content of an object.
    pub(crate) fn span(self, object: &Object) -> S3Result<Span<usize>> {
        let size = object.content.len();
        match self {
            Self::Whole => Ok(0..size),
            Self::Range(range) => {
                let span = range.check(size as u64)?;
                // The last n bytes of nothing are none.
                match span.is_empty() {
                    true => Err(s3_error!(InvalidRange)),
                    false => Ok(span.start as usize..span.end as usize),
                }
            }
            Self::Part(number) => {
                // What came as a whole is its own and only part.
                let whole = [size];
                let ends = object.part_ends.as_deref().unwrap_or(&whole);
                let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let end = at.and_then(|at| Some((at, *ends.get(at)?)));
                let (at, end) = end.ok_or_else(no_such_part)?;
                Ok(at.checked_sub(1).map_or(0, |before| ends[before])..end)
            }
        }
    }
}

/// S3's answer to a part number beyond those that an object has.
fn no_such_part() -> S3Error {
    let code = S3ErrorCode::Custom("InvalidPartNumber".into());
    let mut error = S3Error::with_message(code, "the object has no part of that number");
    error.set_status_code(hyper::StatusCode::RANGE_NOT_SATISFIABLE);
    error
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use plimsoll_model::WallTime;

    use super::*;
    use crate::digests::Tag;
    use crate::store::VersionId;

    fn part(object: &Object, number: i32) -> Result<Span<usize>, String> {
        let span = Extent::Part(number).span(object);
        span.map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn a_part_lies_between_two_ends() {
        let content = Bytes::from_static(b"0123456789");
        let (tag, modified) = (Tag::of(&content), WallTime::from_unix_ns(0));
        let content = content.into();
        let version = VersionId::NULL;
        let mut object =
            Object { content, tag, modified, attributes: None, part_ends: None, version };
        let none = Err("InvalidPartNumber".to_owned());
        assert_eq!((part(&object, 1), part(&object, 2)), (Ok(0..10), none.clone()));
        object.part_ends = Some([4, 9, 10].into());
        let parts = [1, 2, 3].map(|number| part(&object, number));
        assert_eq!(parts, [Ok(0..4), Ok(4..9), Ok(9..10)]);
        for number in [-1, 0, 4] {
            assert_eq!(part(&object, number), none, "{number}");
        }
    }
}
