//! What the kernel tells of a thread's connections (`TCP_INFO`): of each when it is closed, and now
//! and then of one that is in use. Kept by thread, so that nothing is shared.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use plimsoll_model::{Moment, SOCKET_SAMPLES_MAX, SocketsSeen};
use tokio::net::TcpSocket;

/// How often one connection of a thread is looked at while it is in use.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Beyond so many connections of a thread one in [`CLOSED_ONE_IN`] is looked at: where each
/// operation has one of its own, a look costs more than it tells.
const CLOSED_ALL_MAX: u64 = 1_024;
const CLOSED_ONE_IN: u64 = 16;

/// How many descriptors are left to the record of the run.
const DESCRIPTORS_KEPT: u64 = 8;

thread_local! {
    static DESCRIPTORS_MAX: u64 = descriptors_max();
    static SEEN: RefCell<SocketsSeen> = RefCell::default();
    static LOOK_DUE: std::cell::Cell<Moment> = const { std::cell::Cell::new(Moment::EPOCH) };
}

/// Returns what the connections of the calling thread told so far, and begins anew.
pub fn take() -> SocketsSeen {
    SEEN.take()
}

/// Takes note of a connection that was made.
pub(crate) fn opened() {
    SEEN.with_borrow_mut(|seen| seen.opened += 1);
}

/// Takes note of requests that went through the ring of the thread.
pub(crate) fn over_ring(requests: usize) {
    SEEN.with_borrow_mut(|seen| seen.over_ring += requests as u64);
}

/// Takes note of why one could not be made, where that is this machine's own.
pub(crate) fn refused(error: &io::Error) {
    SEEN.with_borrow_mut(|seen| match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => seen.no_port += 1,
        Some(libc::EMFILE | libc::ENFILE) => seen.no_descriptor += 1,
        _ => {}
    });
}

/// Returns the socket, or that no descriptor was free where it took one of the last: the record of
/// a run needs some as well, and a run that cannot record is lost. The kernel gives the lowest
/// number that is free.
pub(crate) fn leaving_room(socket: TcpSocket) -> io::Result<TcpSocket> {
    match fits(socket.as_raw_fd(), DESCRIPTORS_MAX.with(|max| *max)) {
        true => Ok(socket),
        false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
}

fn fits(descriptor: i32, max: u64) -> bool {
    u64::try_from(descriptor).is_ok_and(|number| number + DESCRIPTORS_KEPT < max)
}

fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the struct that it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { u64::MAX }
}

/// Looks at a connection in use, if that is due.
pub(crate) fn look(socket: BorrowedFd<'_>, now: Moment) {
    if now < LOOK_DUE.get() {
        return;
    }
    LOOK_DUE.set(now.after(LOOK_EVERY));
    let Some(info) = Info::of(socket) else { return };
    SEEN.with_borrow_mut(|seen| info.add_times(seen));
}

/// Looks at a connection that is about to be closed. A thread that ends may have nothing left to
/// note it in.
pub(crate) fn closed(socket: BorrowedFd<'_>) {
    let _ = SEEN.try_with(|seen| {
        let Ok(mut seen) = seen.try_borrow_mut() else { return };
        let is_seen = seen.opened <= CLOSED_ALL_MAX || seen.opened.is_multiple_of(CLOSED_ONE_IN);
        if let Some(info) = is_seen.then(|| Info::of(socket)).flatten() {
            info.add_times(&mut seen);
            info.add_whole(&mut seen);
        }
    });
}

/// As many bytes of the kernel's `struct tcp_info` as are read here; older kernels fill fewer.
const INFO_BYTES: usize = 232;

/// Where its fields are (`include/uapi/linux/tcp.h`, the same on every machine).
mod at {
    pub(super) const RTT: usize = 68;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DATA_SEGS_IN: usize = 152;
    pub(super) const DATA_SEGS_OUT: usize = 156;
    pub(super) const DELIVERY_RATE: usize = 160;
    pub(super) const BUSY_TIME: usize = 168;
    pub(super) const RWND_LIMITED: usize = 176;
    pub(super) const SNDBUF_LIMITED: usize = 184;
    pub(super) const RCV_OOOPACK: usize = 224;
}

/// What the kernel tells of one connection.
struct Info {
    bytes: [u8; INFO_BYTES],
    filled: usize,
}

impl Info {
    fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut bytes = [0; INFO_BYTES];
        let mut filled = INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `filled` bytes into the buffer, which has as many, and
        // the descriptor is open for as long as it is borrowed.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut filled,
            )
        };
        (result == 0).then_some(Self { bytes, filled: filled as usize })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let field = self.bytes[..self.filled].get(at..at + 4)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let field = self.bytes[..self.filled].get(at..at + 8)?;
        Some(u64::from_ne_bytes(field.try_into().ok()?))
    }

    fn add_times(&self, seen: &mut SocketsSeen) {
        if seen.rtt_us.len() < SOCKET_SAMPLES_MAX {
            seen.rtt_us.extend(self.u32(at::RTT).filter(|rtt| *rtt > 0));
            seen.delivery.extend(self.u64(at::DELIVERY_RATE).filter(|rate| *rate > 0));
        }
    }

    fn add_whole(&self, seen: &mut SocketsSeen) {
        let count = |at| u64::from(self.u32(at).unwrap_or(0));
        let time = |at| Duration::from_micros(self.u64(at).unwrap_or(0));
        seen.closed += 1;
        if seen.rtt_min_us.len() < SOCKET_SAMPLES_MAX {
            // All ones where none was measured.
            seen.rtt_min_us.extend(self.u32(at::MIN_RTT).filter(|rtt| *rtt < u32::MAX));
        }
        seen.segments_sent += count(at::DATA_SEGS_OUT);
        seen.retransmits += count(at::TOTAL_RETRANS);
        seen.segments_received += count(at::DATA_SEGS_IN);
        seen.out_of_order += count(at::RCV_OOOPACK);
        seen.busy += time(at::BUSY_TIME);
        seen.window_limited += time(at::RWND_LIMITED);
        seen.buffer_limited += time(at::SNDBUF_LIMITED);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_connection_tells_what_went_over_it() {
        take();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut other, _) = listener.accept().await.unwrap();
        opened();
        tcp.write_all(b"question").await.unwrap();
        other.read_exact(&mut [0; 8]).await.unwrap();
        other.write_all(b"answer").await.unwrap();
        tcp.read_exact(&mut [0; 6]).await.unwrap();
        look(tcp.as_fd(), Moment::from_ns(5));
        // Not due again for a second.
        look(tcp.as_fd(), Moment::from_ns(6));
        closed(tcp.as_fd());
        let seen = take();
        assert_eq!((seen.opened, seen.closed), (1, 1));
        assert_eq!((seen.segments_sent, seen.segments_received), (1, 1));
        assert_eq!((seen.retransmits, seen.out_of_order), (0, 0));
        assert_eq!((seen.rtt_us.len(), seen.rtt_min_us.len()), (2, 1));
        assert!(take().is_empty());
    }

    #[test]
    fn the_last_descriptors_are_left_to_the_record() {
        assert!(fits(31, 40) && !fits(32, 40));
        assert!(fits(31, u64::MAX) && !fits(-1, 40));
        assert!(descriptors_max() > 0);
    }

    #[test]
    fn what_this_machine_is_short_of_is_told_apart() {
        take();
        for errno in [libc::EADDRNOTAVAIL, libc::EMFILE, libc::ENFILE, libc::ECONNREFUSED] {
            refused(&io::Error::from_raw_os_error(errno));
        }
        let seen = take();
        assert_eq!((seen.no_port, seen.no_descriptor), (1, 2));
    }
}
