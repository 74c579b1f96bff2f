//! How files are used: the interface to the kernel, and when a write counts as done.

/// How operations on files reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A ring of the kernel that takes and gives back many operations with one call.
    IoUring,
    /// The kernel's older asynchronous calls (`io_submit`).
    Libaio,
    /// One blocking call for each operation (`pread`, `pwrite`).
    Psync,
}

impl Interface {
    /// Every interface, the preferred one first.
    pub const ALL: [Self; 3] = [Self::IoUring, Self::Libaio, Self::Psync];

    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Libaio => "libaio",
            Self::Psync => "psync",
        }
    }

    /// Returns the interface of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

/// Whether each write is on the medium when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// No.
    #[default]
    Off,
    /// Content and attributes (`O_SYNC`).
    Sync,
    /// Content (`O_DSYNC`).
    Dsync,
}

impl SyncMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Off, Self::Sync, Self::Dsync];

    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Sync => "sync",
            Self::Dsync => "dsync",
        }
    }

    /// Returns the mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}
