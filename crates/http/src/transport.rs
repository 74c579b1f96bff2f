//! What carries connections, as far as that is for the user to say.

use std::io;

use crate::{HttpVersion, uring};

/// What carries plain connections of HTTP/1.1 that go through no proxy; all others are carried by
/// sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Requests of a thread that are ready at the same time go out with one system call of
    /// `io_uring` from a number on from which that pays, where the thread can have a ring; all
    /// others as over sockets.
    #[default]
    Auto,
    /// The sockets of the runtime (`epoll`): a system call for each send and each receive.
    Sockets,
    /// Each request without a body goes through `io_uring`, with others or alone. Where there is
    /// none, no connection is made.
    IoUring,
}

/// Why `io_uring` cannot carry what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// It is not plain HTTP/1.1.
    #[error("`transport` io_uring carries plain HTTP/1.1 alone, not {0}; leave it out")]
    Other(&'static str),
    /// The kernel has no ring for it, or does not let this process have one.
    #[error("`transport` io_uring cannot be had on this machine: {}; leave it out", in_words(.0))]
    Machine(io::Error),
}

/// Returns the system's words without the number behind them.
pub(crate) fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl Transport {
    /// Refuses `io_uring` that was asked for where it cannot carry connections: those over TLS, of
    /// that version, through a proxy, on this machine. Nothing is asked of the machine where
    /// `is_here` says that another one is meant.
    pub fn check(
        self,
        tls: bool,
        version: HttpVersion,
        proxy: bool,
        is_here: bool,
    ) -> Result<(), TransportError> {
        if self != Self::IoUring {
            return Ok(());
        }
        match (tls, version, proxy) {
            (true, ..) => Err(TransportError::Other("TLS")),
            (_, HttpVersion::Two, _) => Err(TransportError::Other("HTTP/2")),
            (.., true) => Err(TransportError::Other("what goes through a proxy")),
            _ if is_here => uring::probe().map_err(TransportError::Machine),
            _ => Ok(()),
        }
    }

    /// Returns the same for HTTP/1.1 without a proxy, over TLS or not, if it can be carried so.
    pub fn direct(self, tls: bool, is_here: bool) -> Result<Self, TransportError> {
        self.check(tls, HttpVersion::One, false, is_here).map(|()| self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ring_that_is_demanded_is_refused() {
        let why = |of: Transport, tls, version, proxy| {
            of.check(tls, version, proxy, false).map_err(|error| error.to_string())
        };
        let (one, two) = (HttpVersion::One, HttpVersion::Two);
        for of in [Transport::Auto, Transport::Sockets] {
            assert_eq!(why(of, true, two, true), Ok(()));
        }
        let ring = Transport::IoUring;
        let refused = |what| {
            let only = "`transport` io_uring carries plain HTTP/1.1 alone";
            Err(format!("{only}, not {what}; leave it out"))
        };
        assert_eq!(why(ring, false, one, false), Ok(()));
        assert_eq!(why(ring, true, one, false), refused("TLS"));
        assert_eq!(why(ring, false, two, false), refused("HTTP/2"));
        assert_eq!(why(ring, false, one, true), refused("what goes through a proxy"));
        let none = TransportError::Machine(io::Error::from_raw_os_error(libc::EPERM));
        let expected = "`transport` io_uring cannot be had on this machine: \
                        operation not permitted; leave it out";
        assert_eq!(none.to_string(), expected);
    }
}
