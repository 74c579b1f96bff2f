//! What another tool does wrong and what is done instead.

use std::fmt;

/// One thing that the other tool does and that is done in another way here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// What it is about: a stage, a flag, a part of the report, or what several share.
    pub of: &'static str,
    /// What the tool does.
    pub there: &'static str,
    /// What is done here.
    pub here: &'static str,
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: there {}; here {}", self.of, self.there, self.here)
    }
}

pub(crate) const fn correct(
    of: &'static str,
    there: &'static str,
    here: &'static str,
) -> Correction {
    Correction { of, there, here }
}

#[cfg(test)]
impl Correction {
    /// Refuses what does not read well in the list of `--explain`.
    #[track_caller]
    pub(crate) fn assert_is_sentence(&self) {
        let text = self.to_string();
        assert!(text.contains(": there ") && text.contains("; here "), "{text}");
        assert!(!text.ends_with('.') && !text.contains("  "), "{text}");
    }
}
