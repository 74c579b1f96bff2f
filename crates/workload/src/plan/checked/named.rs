//! Objects with names of the user's own, checked.

use crate::data::DataRule;
use crate::plan::Pattern;
use crate::plan::spec::FilesOf;
use crate::{DataFileSpec, SizeDist};

/// Objects whose names are the user's own.
#[derive(Clone, Debug)]
pub struct NamedObjects {
    /// Their buckets; `None`: the target's own.
    pub buckets: Option<Pattern>,
    /// The keys in each bucket.
    pub keys: Pattern,
    /// How large those are that the run writes.
    pub sizes: Option<SizeDist>,
    /// What those hold.
    pub data: DataRule,
    /// The files that their bytes come from, where they do.
    pub data_files: Vec<DataFileSpec>,
    /// The files whose names the keys are and whose content they hold, instead of all that.
    pub files: Option<FilesOf>,
    /// Has them uploaded in parts of so many bytes.
    pub part_bytes: Option<u64>,
    /// How they are shared by all who write them; `None`: each has one writer.
    pub shared: Option<SharedContent>,
}

/// What members hold that anybody may write at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedContent {
    /// Fixes it, with the bucket and the key.
    pub seed: u64,
    /// Whether it ends in COSBench's guard.
    pub hash_check: bool,
}
