//! The kinds of target, and how a request names the bucket.

named! {
    /// What the load is put on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TargetKind {
        /// An object store that speaks S3.
        S3 = "s3",
        /// SeaweedFS by its own protocol.
        Seaweedfs = "seaweedfs",
        /// SeaweedFS by its filers.
        SeaweedfsFiler = "seaweedfs-filer",
        /// An object store that speaks Swift.
        Swift = "swift",
        /// Directories of file systems, or devices.
        File = "file",
        /// A scripted store or scripted files, in virtual time or embedded.
        Oracle = "oracle",
        /// Nothing: every operation succeeds immediately.
        Null = "null",
    }
}

named! {
    /// How requests to S3 name the bucket.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Lookup {
        /// In the host's name at the large public providers where the bucket's name allows it, else
        /// in the path.
        #[default]
        Auto = "auto",
        /// In the path: `https://host/bucket/key`.
        Path = "path",
        /// In the host's name: `https://bucket.host/key`.
        Dns = "dns",
    }
}
