//! The kinds of operation.

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
