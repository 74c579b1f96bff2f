//! What work asks of a target, and what targets offer.

named! {
    /// Something that a target can do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Ability {
        /// Reads whole objects.
        Get = "get",
        /// Reads parts of objects by their bytes.
        Ranges = "range",
        /// Writes objects.
        Put = "put",
        /// Writes objects by HTML forms.
        Post = "post",
        /// Reads properties of objects.
        Stat = "stat",
        /// Removes objects.
        Delete = "delete",
        /// Removes many objects with one call.
        DeleteMany = "delete of many objects with one call",
        /// Lists objects.
        List = "list",
        /// Lists the buckets that there are.
        ListBuckets = "list of an account",
        /// Lists versions of objects, also where a bucket keeps one of each only.
        ListVersions = "list of versions",
        /// Keeps versions of objects, with names of its own for them.
        Versions = "versions",
        /// Takes uploads in parts.
        Parts = "parts",
        /// Adds to the end of objects.
        Append = "append",
        /// Reads files out of zip archives.
        Zip = "archive get_from_zip",
        /// Takes apart tar archives.
        Tar = "archive put_tar",
        /// Writes one content under several names.
        Fanout = "fanout",
        /// Keeps objects from being removed.
        Retention = "retention",
        /// Makes and removes buckets.
        Buckets = "buckets",
        /// Reads and writes blocks of files.
        Blocks = "blocks",
        /// Makes, looks at and removes names of files and directories.
        Names = "names",
        /// Drops what is cached.
        DropCaches = "drop_caches",
    }
}
