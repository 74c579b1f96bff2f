//! Keys as paths of a filer.
//!
//! A filer tidies the paths that it is sent: `a//b`, `a/./b` and `a/x/../b` are all `a/b`, and `a/`
//! is `a`. So that every key is one file and no key leads out of its directory, such keys are
//! refused.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// What needs an escape in a path and in a query: all that RFC 3986 does not call unreserved.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a text is no path of a filer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a filer has no file `{path}`: {why}")]
pub struct PathError {
    path: String,
    why: &'static str,
}

/// Returns a text as it stands in a path or in a query.
pub(super) fn encoded(text: &str) -> PercentEncode<'_> {
    percent_encode(text.as_bytes(), ESCAPED)
}

/// Returns a directory without `/` around it; empty for the root.
pub(super) fn directory(text: &str) -> Result<String, PathError> {
    let inside = text.trim_matches('/');
    if !inside.is_empty() {
        judge(inside)?;
    }
    Ok(inside.to_owned())
}

/// Refuses what is no path of a file.
pub(super) fn judge(path: &str) -> Result<(), PathError> {
    let why = path.split('/').find_map(|part| match part {
        "" => Some("between two `/`, before the first and behind the last there has to be a name"),
        "." | ".." => Some("no name is `.` or `..`"),
        _ => None,
    });
    let refused = |why| PathError { path: path.chars().take(200).collect(), why };
    why.map_or(Ok(()), |why| Err(refused(why)))
}

/// Writes a path, with its leading `/`, behind what `out` holds.
pub(super) fn push(out: &mut String, path: &str) {
    for part in path.split('/').filter(|part| !part.is_empty()) {
        write!(out, "/{}", encoded(part)).expect("memory takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_the_filer_would_tidy_are_refused() {
        for path in ["", "/a", "a/", "a//b", ".", "a/..", "../a", "a/./b", "/"] {
            assert!(judge(path).is_err(), "{path}");
        }
        for path in ["a", "a/b", "..a/b..", "a b/...", "%2e%2e", "päivä/🚢"] {
            assert_eq!(judge(path), Ok(()), "{path}");
        }
        assert_eq!(directory("//a/b/"), Ok("a/b".to_owned()));
        assert_eq!(directory("/"), Ok(String::new()));
        assert!(directory("a/../b").is_err());
    }

    #[test]
    fn names_are_escaped_and_slashes_are_not() {
        let mut out = String::new();
        push(&mut out, "bench/a dir");
        push(&mut out, "100%25 ?#/ä~-._");
        assert_eq!(out, "/bench/a%20dir/100%2525%20%3F%23/%C3%A4~-._");
    }
}
