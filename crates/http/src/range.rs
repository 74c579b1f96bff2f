//! Which bytes an answer to a ranged request holds (RFC 9110, section 14.4).

use std::cmp::Ordering;

use crate::ResponseHead;

/// What an answer of success to a request for a range holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldRange {
    /// The range, of something of this size where the answer says it.
    Asked {
        /// The size of the whole.
        size: Option<u64>,
    },
    /// What there is of the range: the whole ends before it.
    Short(String),
    /// Something else, as the text says.
    Other(String),
}

impl HeldRange {
    /// Returns what an answer of status 200 or 206 holds to a request for the `len` bytes from
    /// `offset` on.
    pub fn of(head: &ResponseHead<'_>, offset: u64, len: u64) -> Self {
        if head.status != 206 {
            return match offset == 0 && head.content_length == Some(len) {
                true => Self::Asked { size: Some(len) },
                false => {
                    Self::Other("the answer to a ranged request is the whole object".to_owned())
                }
            };
        }
        let Some(header) = head.header("content-range") else {
            return Self::Other("the answer is a range but does not say which".to_owned());
        };
        Self::of_header(header, offset, len)
    }

    fn of_header(header: &str, offset: u64, len: u64) -> Self {
        let Some((first, last, size)) = parse_content_range(header) else {
            return Self::Other(format!("`{}` is not a content range", shown(header)));
        };
        let wanted_last = offset + len - 1;
        let mismatch = || {
            format!("asked for bytes {offset}-{wanted_last}, the answer holds `{}`", shown(header))
        };
        match (first == offset, last.cmp(&wanted_last)) {
            (true, Ordering::Equal) => Self::Asked { size },
            // The whole ends before the range does: the server is right and the whole too short.
            (true, Ordering::Less) if size == Some(last + 1) => Self::Short(mismatch()),
            _ => Self::Other(mismatch()),
        }
    }
}

/// Returns first byte, last byte and size of the whole of `bytes FIRST-LAST/SIZE`, where the size
/// may be `*`.
pub fn parse_content_range(header: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, size) = header.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let size = if size == "*" { None } else { Some(size.parse().ok()?) };
    let in_order = first <= last && size.is_none_or(|size| last < size);
    in_order.then_some((first, last, size))
}

fn shown(header: &str) -> String {
    header.chars().take(80).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_strictly() {
        for (header, range) in [
            ("bytes 0-9/100", Some((0, 9, Some(100)))),
            ("bytes 5-5/*", Some((5, 5, None))),
            ("bytes 9-0/100", None),
            ("bytes 0-100/100", None),
            ("bytes */100", None),
            ("bytes 0-9", None),
            ("0-9/100", None),
            ("bytes -9/100", None),
        ] {
            assert_eq!(parse_content_range(header), range, "{header}");
        }
    }

    #[test]
    fn a_range_must_be_the_one_asked_for() {
        let held = |status, header: Option<&'static str>, content_length| {
            let value = header.unwrap_or_default().as_bytes();
            let header = header.map(|_| httparse::Header { name: "Content-Range", value });
            let headers = header.as_slice();
            HeldRange::of(&ResponseHead { status, reason: "", headers, content_length }, 10, 10)
        };
        let ranged = |header| held(206, header, Some(10));
        assert_eq!(ranged(Some("bytes 10-19/50")), HeldRange::Asked { size: Some(50) });
        assert_eq!(ranged(Some("bytes 10-19/*")), HeldRange::Asked { size: None });
        assert!(matches!(ranged(Some("bytes 10-14/15")), HeldRange::Short(_)));
        for wrong in
            [None, Some("bytes 10-14/50"), Some("bytes 0-9/50"), Some("bytes 10-20/50"), Some("x")]
        {
            assert!(matches!(ranged(wrong), HeldRange::Other(_)), "{wrong:?}");
        }
        assert!(matches!(held(200, None, Some(10)), HeldRange::Other(_)));
        let whole =
            ResponseHead { status: 200, reason: "", headers: &[], content_length: Some(10) };
        assert_eq!(HeldRange::of(&whole, 0, 10), HeldRange::Asked { size: Some(10) });
        assert!(matches!(HeldRange::of(&whole, 0, 9), HeldRange::Other(_)));
    }
}
