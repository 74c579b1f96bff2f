//! What work asks of a target, and what targets offer.

/// Something that a target can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ability {
    /// Reads whole objects.
    Get,
    /// Reads parts of objects by their bytes.
    Ranges,
    /// Writes objects.
    Put,
    /// Writes objects by HTML forms.
    Post,
    /// Reads properties of objects.
    Stat,
    /// Removes objects.
    Delete,
    /// Removes many objects with one call.
    DeleteMany,
    /// Lists objects.
    List,
    /// Lists the buckets that there are.
    ListBuckets,
    /// Lists versions of objects, also where a bucket keeps one of each only.
    ListVersions,
    /// Keeps versions of objects, with names of its own for them.
    Versions,
    /// Takes uploads in parts.
    Parts,
    /// Adds to the end of objects.
    Append,
    /// Reads files out of zip archives.
    Zip,
    /// Takes apart tar archives.
    Tar,
    /// Writes one content under several names.
    Fanout,
    /// Keeps objects from being removed.
    Retention,
    /// Makes and removes buckets.
    Buckets,
    /// Reads and writes blocks of files.
    Blocks,
    /// Makes, looks at and removes names of files and directories.
    Names,
    /// Drops what is cached.
    DropCaches,
}

impl Ability {
    /// Every ability.
    pub const ALL: [Self; 21] = [
        Self::Get,
        Self::Ranges,
        Self::Put,
        Self::Post,
        Self::Stat,
        Self::Delete,
        Self::DeleteMany,
        Self::List,
        Self::ListBuckets,
        Self::ListVersions,
        Self::Versions,
        Self::Parts,
        Self::Append,
        Self::Zip,
        Self::Tar,
        Self::Fanout,
        Self::Retention,
        Self::Buckets,
        Self::Blocks,
        Self::Names,
        Self::DropCaches,
    ];

    /// Returns what a refusal calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Ranges => "range",
            Self::Put => "put",
            Self::Post => "post",
            Self::Stat => "stat",
            Self::Delete => "delete",
            Self::DeleteMany => "delete of many objects with one call",
            Self::List => "list",
            Self::ListBuckets => "list of an account",
            Self::ListVersions => "list of versions",
            Self::Versions => "versions",
            Self::Parts => "parts",
            Self::Append => "append",
            Self::Zip => "archive get_from_zip",
            Self::Tar => "archive put_tar",
            Self::Fanout => "fanout",
            Self::Retention => "retention",
            Self::Buckets => "buckets",
            Self::Blocks => "blocks",
            Self::Names => "names",
            Self::DropCaches => "drop_caches",
        }
    }
}
