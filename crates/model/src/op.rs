//! The kinds of operation, and what a job does by them.

named! {
    /// What one operation does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum OpKind {
        /// Writes one whole object.
        Put = "PUT",
        /// Reads one object or a range of it.
        Get = "GET",
        /// Removes one or several objects with one call.
        Delete = "DELETE",
        /// Lists everything below one prefix, all pages.
        List = "LIST",
        /// Reads an object's properties without its content.
        Stat = "STAT",
        /// Adds to the end of an object.
        Append = "APPEND",
        /// Writes one object by an HTML form, or one content under several names.
        Post = "POST",
        /// Writes one part of an object that is uploaded in parts.
        PutPart = "PUTPART",
        /// Sets until when an object may not be removed.
        Retention = "RETENTION",
        /// Reads one block of an open file.
        Read = "READ",
        /// Writes one block of an open file.
        Write = "WRITE",
        /// Has what was written to a file put on the medium (`fsync`, `fdatasync`).
        Sync = "SYNC",
        /// Makes a file: opens it anew, writes what it is to hold, closes it.
        Create = "CREATE",
        /// Opens a file, reads what is asked of it, closes it.
        Open = "OPEN",
        /// Removes a file.
        Unlink = "UNLINK",
        /// Gives a file or a directory another name.
        Rename = "RENAME",
        /// Makes a directory.
        Mkdir = "MKDIR",
        /// Removes a directory.
        Rmdir = "RMDIR",
        /// Begins an upload in parts.
        CreateUpload = "CREATEUPLOAD",
        /// Makes an object of the parts of an upload.
        CompleteUpload = "COMPLETEUPLOAD",
        /// Gives up an upload in parts.
        AbortUpload = "ABORTUPLOAD",
    }
}

impl OpKind {
    /// Returns the kind of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Tells whether the operation moves object content, so that bytes per second mean something.
    pub const fn moves_bytes(self) -> bool {
        matches!(
            self,
            Self::Put
                | Self::Get
                | Self::Append
                | Self::Post
                | Self::PutPart
                | Self::Read
                | Self::Write
                | Self::Create
                | Self::Open
        )
    }
}

named! {
    /// What a job does; blocks in fio's words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JobWork {
        /// Operations on whole objects, mixed by weight.
        Objects = "objects",
        /// Uploads of objects in parts.
        PutParts = "put parts",
        /// Reads of single parts of objects.
        GetPart = "get part",
        /// Additions to the ends of objects.
        Append = "append",
        /// Reads of members of ZIP archives.
        GetFromZip = "get from zip",
        /// Uploads of archives that the store takes apart.
        PutTar = "put tar",
        /// Uploads of one content under several names.
        Fanout = "fanout",
        /// Settings of how long objects may not be removed.
        Retention = "retention",
        /// Blocks read in order.
        Read = "read",
        /// Blocks read at random.
        RandRead = "randread",
        /// Blocks written in order.
        Write = "write",
        /// Blocks written at random.
        RandWrite = "randwrite",
        /// Blocks read and written in order.
        ReadWrite = "rw",
        /// Blocks read and written at random.
        RandReadWrite = "randrw",
        /// A tree of directories made.
        MakeTree = "make tree",
        /// Files made.
        Create = "create",
        /// Attributes of files read.
        Stat = "stat",
        /// Files opened, read and closed.
        OpenReadClose = "open, read, close",
        /// Files renamed.
        Rename = "rename",
        /// Files or objects removed.
        Remove = "remove",
        /// A tree of directories removed.
        RemoveTree = "remove tree",
        /// Objects or files written before they are used.
        Fill = "fill",
        /// What was written, read back.
        ReadBack = "read back",
        /// Buckets made, of which no operation is recorded.
        MakeBuckets = "make buckets",
        /// Buckets removed, of which no operation is recorded.
        RemoveBuckets = "remove buckets",
        /// Operations of a trace.
        Replay = "replay",
    }
}

impl JobWork {
    /// Returns it with the shares of what is read and written: `randrw 70/30`.
    pub fn with_shares(self, read_percent: Option<u8>) -> String {
        let shares = read_percent.map(|reads| format!(" {reads}/{}", 100_u8.saturating_sub(reads)));
        format!("{self}{}", shares.unwrap_or_default())
    }
}
