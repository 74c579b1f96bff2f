//! `io_uring`: one call of the kernel sends what was submitted and waits for the first answer.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};
use plimsoll_driver::{DriverError, Handle, Reply};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use crate::block::{AGAIN_MAX, Act, Block, Progress};
use crate::buffers::Slab;
use crate::open::{OpenFile, OpenFiles};
use crate::ring::SENT_AT_ONCE;
use crate::trouble;

/// The longest piece of memory that the kernel registers as one buffer.
const REGION_BYTES_MAX: usize = 1 << 30;
/// How many files are registered at most; more of them work as well, a little slower.
const REGISTERED_FILES_MAX: u64 = 4096;

/// So often the kernel is called in one reaping where it does not take all that was submitted; then
/// the caller can look at other things.
const ROUNDS_MAX: u32 = 64;

/// A ring of the kernel.
pub(crate) struct Uring {
    ring: IoUring,
    slots: Vec<Progress>,
    /// How many operations the kernel has and has not answered.
    sent: usize,
    registry: Registry,
    /// How often in a row the kernel took nothing for want of resources.
    refusals: u32,
    /// The error after which nothing goes any more. What was under way then stays so: the kernel
    /// may still be at its buffers.
    broken: Option<Errno>,
}

/// What the kernel knows beforehand, so that it need not look it up for each operation.
struct Registry {
    /// How many slots share one registered buffer; 0 if none is registered.
    slots_per_region: usize,
    /// How many places for files there are in the kernel's table.
    places: u32,
    /// By handle, whether the kernel has it in its table at that place.
    has_file: Vec<bool>,
}

impl Uring {
    pub(crate) fn new(slab: &Slab) -> Result<Self, DriverError> {
        let ring = set_up(slab.slots() as u32).map_err(refused)?;
        if !ring.params().is_feature_ext_arg() {
            let text = "the io_uring of this kernel is too old; Linux 5.11 or newer is needed";
            return Err(trouble::with_text(Errno::NOSYS, text));
        }
        let registry = Registry {
            slots_per_region: register_buffers(&ring, slab),
            places: register_table(&ring),
            has_file: Vec::new(),
        };
        let slots = vec![Progress::IDLE; slab.slots()];
        Ok(Self { ring, slots, sent: 0, registry, refusals: 0, broken: None })
    }

    /// Tells the kernel of a file.
    pub(crate) fn register(&mut self, handle: Handle, fd: &OwnedFd) {
        let Registry { places, has_file, .. } = &mut self.registry;
        let place = handle.0;
        let is_done = place < *places
            && self.ring.submitter().register_files_update(place, &[fd.as_raw_fd()]).is_ok();
        has_file.resize(place as usize + 1, false);
        has_file[place as usize] = is_done;
    }

    #[inline]
    pub(crate) fn is_under_way(&self, slot: usize) -> bool {
        self.slots[slot].is_under_way
    }

    #[inline]
    pub(crate) fn submit(
        &mut self,
        slot: usize,
        block: Block,
        file: &OpenFile,
        room: *mut u8,
    ) -> Option<Reply> {
        let progress = Progress::new(block);
        if let Some(errno) = self.broken {
            return Some(Err(progress.failed(errno, file)));
        }
        self.slots[slot] = progress;
        let entry = self.registry.entry(slot, &progress, file, room);
        // SAFETY: the entry's memory is the slot's, which is kept until the kernel has answered,
        // and which nobody else is given before.
        unsafe { self.ring.submission().push(&entry) }
            .expect("the queue has a place for every slot, and a slot has one entry");
        let unsent = self.ring.submission().len();
        if unsent >= SENT_AT_ONCE {
            self.send(unsent);
        }
        None
    }

    /// Has the kernel take `unsent` entries. What it does not take goes out with the next reaping,
    /// which also deals with errors.
    fn send(&mut self, unsent: usize) {
        // The same call gives the answers that the kernel keeps for one, for the look after it.
        let has_answers = self.ring.submission().taskrun();
        let flags = if has_answers { EnterFlags::GETEVENTS } else { EnterFlags::empty() }.bits();
        // SAFETY: there is no argument, and so many entries are there.
        let taken = unsafe {
            self.ring.submitter().enter::<SubmitArgs<'_, '_>>(unsent as u32, 0, flags, None)
        };
        self.sent += taken.unwrap_or(0);
    }

    pub(crate) fn reap(
        &mut self,
        files: &OpenFiles,
        slab: &Slab,
        wait: Option<Duration>,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        let before = replies.len();
        for round in 0.. {
            if self.broken.is_some() {
                return;
            }
            let (_, queue, answers) = self.ring.split();
            let unsent = queue.len();
            // The kernel may have more answers that it only gives when it is called.
            let needs_call = unsent > 0 || answers.is_empty() || queue.taskrun();
            drop((queue, answers));
            if needs_call && let Err(errno) = self.enter(unsent, wait) {
                return self.give_up(errno, files, slab, replies);
            }
            self.drain(files, slab, replies);
            // Where the kernel did not take everything it has not waited either.
            let is_all_sent = self.ring.submission().is_empty();
            let is_put_off = wait.is_some() && round >= ROUNDS_MAX;
            if replies.len() > before || (wait.is_some() && is_all_sent) || is_put_off {
                return;
            }
        }
    }

    /// Takes the answers that are there. The kernel is called only where it says that it has some
    /// that it gives only then.
    #[inline]
    pub(crate) fn look(
        &mut self,
        files: &OpenFiles,
        slab: &Slab,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        if self.broken.is_some() {
            return;
        }
        let (_, queue, answers) = self.ring.split();
        let (needs_call, has_answers) = (queue.taskrun(), !answers.is_empty());
        drop((queue, answers));
        if needs_call && let Err(errno) = self.enter(0, Some(Duration::ZERO)) {
            return self.give_up(errno, files, slab, replies);
        }
        if needs_call || has_answers {
            self.drain(files, slab, replies);
        }
    }

    /// Has the kernel take `unsent` entries and wait for one answer.
    fn enter(&mut self, unsent: usize, wait: Option<Duration>) -> Result<(), Errno> {
        let want = u32::from(wait != Some(Duration::ZERO));
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        let time = wait.map(|wait| Timespec::from(wait.min(Duration::from_secs(1 << 30))));
        let mut args = SubmitArgs::new();
        if let Some(time) = &time {
            args = args.timespec(time);
        }
        // SAFETY: the flags announce an argument of this type, and so many entries are there.
        match unsafe { self.ring.submitter().enter(unsent as u32, want, flags.bits(), Some(&args)) }
        {
            Ok(taken) => self.sent += taken,
            Err(error) => match trouble::of(&error) {
                Errno::INTR | Errno::TIME => {}
                // The kernel is short of memory, or wants its answers taken first.
                Errno::AGAIN | Errno::BUSY if self.refusals < AGAIN_MAX => {
                    self.refusals += 1;
                    thread::yield_now();
                    return Ok(());
                }
                errno => return Err(errno),
            },
        }
        self.refusals = 0;
        Ok(())
    }

    /// Takes every answer that is there, and puts the rest of unfinished blocks into the queue.
    fn drain(&mut self, files: &OpenFiles, slab: &Slab, replies: &mut Vec<(usize, Reply)>) {
        let (_, mut queue, mut answers) = self.ring.split();
        for answer in &mut answers {
            self.sent -= 1;
            let slot = answer.user_data() as usize;
            let progress = &mut self.slots[slot];
            let file = files.get(progress.block.file);
            let result = u32::try_from(answer.result())
                .map_err(|_| Errno::from_raw_os_error(-answer.result()));
            match progress.advance(result, file) {
                Some(reply) => replies.push((slot, reply)),
                None => {
                    let entry = self.registry.entry(slot, progress, file, slab.pointer(slot));
                    // SAFETY: as in `submit`.
                    unsafe { queue.push(&entry) }.expect("the queue has a place for every slot");
                }
            }
        }
    }

    /// Fails everything that is under way: the kernel does not answer any more.
    #[cold]
    fn give_up(
        &mut self,
        errno: Errno,
        files: &OpenFiles,
        slab: &Slab,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        // Some answers may have come.
        self.drain(files, slab, replies);
        self.broken = Some(errno);
        for (slot, progress) in self.slots.iter().enumerate() {
            if progress.is_under_way {
                let file = files.get(progress.block.file);
                replies.push((slot, Err(progress.failed(errno, file))));
            }
        }
    }

    /// Returns whether nothing goes any more.
    #[cold]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Waits until the kernel has nothing of ours any more; returns false if that cannot be known.
    pub(crate) fn settle(&mut self) -> bool {
        if self.broken.is_some() {
            return false;
        }
        while self.sent > 0 {
            if self.enter(0, None).is_err() {
                return false;
            }
            self.sent -= self.ring.completion().count();
        }
        // The kernel takes its time with the ring; what the buffers locked is wanted back before.
        if self.registry.slots_per_region > 0 {
            let _ = self.ring.submitter().unregister_buffers();
        }
        true
    }
}

impl Registry {
    /// Returns the entry for the rest of a slot's block. `room` is where the slot begins.
    #[inline]
    fn entry(
        &self,
        slot: usize,
        progress: &Progress,
        file: &OpenFile,
        room: *mut u8,
    ) -> squeue::Entry {
        let Progress { block, done, .. } = *progress;
        let (offset, len) = progress.rest();
        let room = room.wrapping_add(done as usize);
        let has_file = self.has_file.get(block.file.0 as usize) == Some(&true);
        macro_rules! on_file {
            ($fd:ident => $entry:expr) => {
                if has_file {
                    let $fd = Fixed(block.file.0);
                    $entry
                } else {
                    let $fd = Fd(file.fd.as_raw_fd());
                    $entry
                }
            };
        }
        let region = slot.checked_div(self.slots_per_region).map(|region| region as u16);
        let entry = match (block.act, region) {
            (Act::Read, Some(region)) => on_file!(fd => {
                opcode::ReadFixed::new(fd, room, len, region).offset(offset).build()
            }),
            (Act::Read, None) => {
                on_file!(fd => opcode::Read::new(fd, room, len).offset(offset).build())
            }
            (Act::Write, Some(region)) => on_file!(fd => {
                opcode::WriteFixed::new(fd, room, len, region).offset(offset).build()
            }),
            (Act::Write, None) => {
                on_file!(fd => opcode::Write::new(fd, room, len).offset(offset).build())
            }
            (Act::Sync { data_only }, _) => {
                let flags = if data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
                on_file!(fd => opcode::Fsync::new(fd).flags(flags).build())
            }
        };
        entry.user_data(slot as u64)
    }
}

/// Makes a ring with as much of what makes it fast as the kernel knows.
fn set_up(slots: u32) -> io::Result<IoUring> {
    let entries = slots.next_power_of_two();
    let newest = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(entries);
    let is_unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match newest {
        Err(error) if is_unknown(&error) => {}
        other => return other,
    }
    let middle = IoUring::builder()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(entries);
    match middle {
        Err(error) if is_unknown(&error) => IoUring::new(entries),
        other => other,
    }
}

/// Registers the buffers where the kernel agrees (locked memory is limited); returns how many slots
/// share one region.
fn register_buffers(ring: &IoUring, slab: &Slab) -> usize {
    let per_region = (REGION_BYTES_MAX / slab.stride()).min(slab.slots());
    if per_region == 0 || slab.slots() * slab.stride() > lockable_bytes() {
        return 0;
    }
    let regions: Vec<libc::iovec> = (0..slab.slots())
        .step_by(per_region)
        .map(|first| libc::iovec {
            iov_base: slab.pointer(first).cast(),
            iov_len: per_region.min(slab.slots() - first) * slab.stride(),
        })
        .collect();
    // SAFETY: the slab outlives the ring, or is never given back.
    match unsafe { ring.submitter().register_buffers(&regions) } {
        Ok(()) => per_region,
        Err(_) => 0,
    }
}

/// Returns how much memory one ring may lock, so that one on every core leaves half of the limit:
/// the rings themselves count, too.
fn lockable_bytes() -> usize {
    match getrlimit(Resource::Memlock).current {
        Some(limit) if !geteuid().is_root() => {
            let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
            limit as usize / (2 * cores)
        }
        _ => usize::MAX,
    }
}

/// Makes an empty table for files in the kernel; returns how many have a place in it.
fn register_table(ring: &IoUring) -> u32 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(REGISTERED_FILES_MAX);
    let places = limit.min(REGISTERED_FILES_MAX) as u32;
    match ring.submitter().register_files_sparse(places) {
        Ok(()) => places,
        Err(_) => 0,
    }
}

fn refused(error: io::Error) -> DriverError {
    let errno = trouble::of(&error);
    let text = match errno {
        Errno::NOSYS => {
            "this kernel has no io_uring, or a filter of system calls hides it".to_owned()
        }
        Errno::PERM if is_switched_off() => {
            "io_uring is switched off on this machine (sysctl kernel.io_uring_disabled)".to_owned()
        }
        Errno::PERM => "io_uring is forbidden here, as containers often do (seccomp)".to_owned(),
        Errno::NOMEM => {
            "no memory for an io_uring; raise the limit of locked memory with `ulimit -l`"
                .to_owned()
        }
        _ => return trouble::failed("cannot make an io_uring", errno),
    };
    trouble::with_text(errno, text)
}

/// Returns whether the administrator forbids rings (0 allows them to everybody).
fn is_switched_off() -> bool {
    let setting = crate::facts::read_text("/proc/sys/kernel/io_uring_disabled");
    setting.is_some_and(|text| text.trim() != "0")
}

#[cfg(test)]
mod tests {
    use plimsoll_driver::{Request, Ring};
    use plimsoll_model::Interface;

    use super::*;
    use crate::FilesRing;
    use crate::ring::Way;

    #[test]
    fn after_a_fatal_error_no_buffer_is_used_again_that_the_kernel_may_own() {
        if let Err(why) = crate::available(Interface::IoUring) {
            return println!("skipped: {why}");
        }
        let mut ring = FilesRing::new(Interface::IoUring, 3, 4096, OpenFiles::default()).unwrap();
        // Nothing comes out of a pipe that is empty, so the kernel keeps the read.
        let (pipe, _writer) = std::io::pipe().unwrap();
        let file = ring.files.add(pipe.into());
        let read = Request::Read { file, offset: u64::MAX, len: 4096 };
        assert!(ring.submit(1, &read).is_none());
        let mut replies = Vec::new();
        ring.reap(Some(Duration::ZERO), &mut replies);
        assert!(replies.is_empty());
        let FilesRing { way: Way::Uring(uring), files, slab, .. } = &mut ring else {
            panic!("another way")
        };
        uring.give_up(Errno::NXIO, files, slab, &mut replies);
        let owned = slab.pointer(1);
        let [(1, Err(error))] = &replies[..] else { panic!("{replies:?}") };
        assert!(error.message.contains("No such device or address"), "{error}");

        for slot in 0..3 {
            let buffer = ring.buffer(slot);
            assert_eq!(buffer.len(), 4096);
            assert_ne!(buffer.as_mut_ptr(), owned, "slot {slot}");
            buffer.fill(7);
            assert!(ring.submit(slot, &read).unwrap().is_err(), "slot {slot}");
        }
        ring.reap(None, &mut replies);
        assert_eq!(replies.len(), 1, "it is answered once");
        // The memory is never given back, so that it can be looked at.
        let start = ring.slab.pointer(0);
        drop(ring);
        // SAFETY: the slab leaked, as the read was never settled.
        assert_eq!(unsafe { start.read_volatile() }, 7);
    }
}
