//! How files are used: the interface to the kernel, and when a write counts as done.

named! {
    /// How operations on files reach the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Interface {
        /// A ring of the kernel that takes and gives back many operations with one call.
        IoUring = "io_uring",
        /// The kernel's older asynchronous calls (`io_submit`).
        Libaio = "libaio",
        /// One blocking call for each operation (`pread`, `pwrite`).
        Psync = "psync",
    }
}

named! {
    /// Whether each write is on the medium when it returns.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum SyncMode {
        /// No.
        #[default]
        Off = "off",
        /// Content and attributes (`O_SYNC`).
        Sync = "sync",
        /// Content (`O_DSYNC`).
        Dsync = "dsync",
    }
}

named! {
    /// What lay between the operations and the medium.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CacheState {
        /// The stage's own files were dropped from caches before it.
        Dropped = "dropped",
        /// All that the machine had cached was dropped before the stage.
        DroppedMachine = "dropped-machine",
        /// The page cache was passed by (`O_DIRECT`).
        Bypassed = "bypassed",
        /// What was cached before may have been used.
        Cached = "cached",
    }
}
