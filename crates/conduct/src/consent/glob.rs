//! Names of buckets by pattern, as flags have them.

use std::fmt;
use std::str::FromStr;

use plimsoll_model::Glob;

/// Names of buckets: `*` stands for any letters, `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketGlob(Glob);

impl BucketGlob {
    /// Tells whether a bucket has such a name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

impl FromStr for BucketGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = "must be the name of a bucket; `*` stands for any letters, `?` for one";
        text.parse().map(Self).map_err(|_| refused.to_owned())
    }
}

impl fmt::Display for BucketGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
