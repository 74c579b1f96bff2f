//! The kinds of operation.

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// Writes one whole object.
    Put = 0,
    /// Reads one object or a range of it.
    Get = 1,
    /// Removes one or several objects with one call.
    Delete = 2,
    /// Lists everything below one prefix, all pages.
    List = 3,
    /// Reads an object's properties without its content.
    Stat = 4,
    /// Adds to the end of an object.
    Append = 5,
    /// Writes one object by an HTML form, or one content under several names.
    Post = 6,
    /// Writes one part of an object that is uploaded in parts.
    PutPart = 7,
    /// Sets until when an object may not be removed.
    Retention = 8,
    /// Reads one block of an open file.
    Read = 9,
    /// Writes one block of an open file.
    Write = 10,
    /// Has what was written to a file put on the medium (`fsync`, `fdatasync`).
    Sync = 11,
    /// Makes a file: opens it anew, writes what it is to hold, closes it.
    Create = 12,
    /// Opens a file, reads what is asked of it, closes it.
    Open = 13,
    /// Removes a file.
    Unlink = 14,
    /// Gives a file or a directory another name.
    Rename = 15,
    /// Makes a directory.
    Mkdir = 16,
    /// Removes a directory.
    Rmdir = 17,
    /// Begins an upload in parts.
    CreateUpload = 18,
    /// Makes an object of the parts of an upload.
    CompleteUpload = 19,
    /// Gives up an upload in parts.
    AbortUpload = 20,
}

impl OpKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::Put,
        Self::Get,
        Self::Delete,
        Self::List,
        Self::Stat,
        Self::Append,
        Self::Post,
        Self::PutPart,
        Self::Retention,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Create,
        Self::Open,
        Self::Unlink,
        Self::Rename,
        Self::Mkdir,
        Self::Rmdir,
        Self::CreateUpload,
        Self::CompleteUpload,
        Self::AbortUpload,
    ];

    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "PUT",
            Self::Get => "GET",
            Self::Delete => "DELETE",
            Self::List => "LIST",
            Self::Stat => "STAT",
            Self::Append => "APPEND",
            Self::Post => "POST",
            Self::PutPart => "PUTPART",
            Self::Retention => "RETENTION",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Sync => "SYNC",
            Self::Create => "CREATE",
            Self::Open => "OPEN",
            Self::Unlink => "UNLINK",
            Self::Rename => "RENAME",
            Self::Mkdir => "MKDIR",
            Self::Rmdir => "RMDIR",
            Self::CreateUpload => "CREATEUPLOAD",
            Self::CompleteUpload => "COMPLETEUPLOAD",
            Self::AbortUpload => "ABORTUPLOAD",
        }
    }

    /// Returns the kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

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
