//! A network of a test's own, in which the other side is some way off and packets are lost: TCP as
//! the kernel does it, between two addresses of a device whose packets this program carries.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Where a server of that network listens.
pub(crate) const NEAR: &str = "10.9.0.1";
/// Where a client reaches the same server, the long way.
pub(crate) const FAR: &str = "10.9.0.2";

/// How long each packet is on its way, and which are lost.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) one_way: Duration,
    /// Each that has this number is lost; `None` for none.
    pub(crate) lost_each: Option<u64>,
}

/// Calls `body` on a thread in a network of its own, where children that it starts are as well;
/// `None` where that may not be made here.
pub(crate) fn within<T: Send>(way: Way, body: impl FnOnce() -> T + Send) -> Option<T> {
    let on_thread = || {
        // SAFETY: takes no pointers, and changes nothing but the network of this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return None;
        }
        let device = device("far0")?;
        let up = "ip link set lo up && ip addr add 10.9.0.1/24 dev far0 && ip link set far0 up";
        let made = Command::new("sh").args(["-c", up]).status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| carry(&device, way, &is_over));
            let over = Over(&is_over);
            let result = body();
            drop(over);
            Some(result)
        })
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap())
}

/// Ends the carrying, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns a device whose packets are read and written as a file.
fn device(name: &str) -> Option<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun").ok()?;
    // SAFETY: a structure of integers, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request outlives the call, which writes the name of the device to it.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    (code == 0).then_some(file)
}

/// Sends each packet back, from the address that it was for to the one that it came from: so a
/// client that calls [`FAR`] speaks with what listens at [`NEAR`].
fn carry(mut device: &File, way: Way, is_over: &AtomicBool) {
    let mut on_their_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let (mut packet, mut number) = (vec![0; 1 << 16], 0_u64);
    while !is_over.load(Ordering::Relaxed) {
        let longest = Duration::from_millis(20);
        let due =
            on_their_way.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
        let wait = Timespec::try_from(due.map_or(longest, |due| due.min(longest))).unwrap();
        let mut ready = [PollFd::new(device, PollFlags::IN)];
        if poll(&mut ready, Some(&wait)).is_ok_and(|count| count > 0) {
            let length = device.read(&mut packet).unwrap();
            // Version 4: source and destination are at 12 and 16, and the checksum stays right.
            if length >= 20 && packet[0] >> 4 == 4 {
                number += 1;
                let is_lost = way.lost_each.is_some_and(|each| number.is_multiple_of(each));
                let mut back = packet[..length].to_vec();
                let (source, destination) = back[12..20].split_at_mut(4);
                source.swap_with_slice(destination);
                let kept = (!is_lost).then(|| (Instant::now() + way.one_way, back));
                on_their_way.extend(kept);
            }
        }
        while on_their_way.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let (_, back) = on_their_way.pop_front().unwrap();
            device.write_all(&back).unwrap();
        }
    }
}
