//! What the kernel's refusals mean, in words. Not what was asked: callers say that.

use std::fmt::Display;
use std::io;

use plimsoll_driver::DriverError;
use plimsoll_model::ErrorClass;
use rustix::io::Errno;

use crate::allowed_dirs::LINK;

/// Returns the system's text of an error, without its number.
pub(crate) fn text(errno: Errno) -> String {
    if errno == Errno::LOOP {
        return LINK.to_owned();
    }
    let text = io::Error::from(errno).to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns the error of a failed call: `what` was not possible, such as `cannot open x`.
pub(crate) fn failed(what: impl Display, errno: Errno) -> DriverError {
    let advice = match errno {
        Errno::MFILE => "; raise the limit of open files with `ulimit -n`",
        Errno::NFILE => "; the whole machine has too many open files (fs.file-max)",
        _ => "",
    };
    with_text(errno, format!("{what}: {}{advice}", text(errno)))
}

/// Returns the error of a failed call whose text says everything.
pub(crate) fn with_text(errno: Errno, text: impl Into<String>) -> DriverError {
    let class = match errno {
        Errno::NOENT => ErrorClass::NotFound,
        Errno::ACCESS | Errno::PERM => ErrorClass::Denied,
        _ => ErrorClass::Io,
    };
    let status = u16::try_from(errno.raw_os_error()).expect("Linux numbers errors up to 4095");
    DriverError::with_status(class, status, text)
}

/// Returns the error of the last system call.
pub(crate) fn last() -> Errno {
    of(&io::Error::last_os_error())
}

/// Returns the number of an error.
pub(crate) fn of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
