//! The kernel's older asynchronous calls, without the library of that name. Only direct blocks are
//! truly asynchronous; others are done while they are sent.

use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_long, c_ulong, timespec};
use plimsoll_driver::{DriverError, Reply};
use rustix::io::Errno;

use crate::block::{AGAIN_MAX, Act, Block, Progress};
use crate::buffers::Slab;
use crate::open::{OpenFile, OpenFiles};
use crate::ring::SENT_AT_ONCE;
use crate::{psync, trouble};

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// What the kernel is asked (`struct iocb` of `linux/aio_abi.h`, on little-endian machines).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: u64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// What it answers (`struct io_event`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    second_result: i64,
}

const _: () = assert!(size_of::<Control>() == 64 && size_of::<Event>() == 32);

/// The head of the events that a context maps into the process, at the address that is its name
/// (`struct aio_ring` of `fs/aio.c`).
#[repr(C)]
struct Mapped {
    id: u32,
    count: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
}

/// What `magic` says where the kernel lays them out so.
const MAPPED_MAGIC: u32 = 0xa10a_10a1;

/// A context of the kernel.
pub(crate) struct Libaio {
    context: c_ulong,
    slots: Vec<Progress>,
    /// By slot.
    controls: Box<[Control]>,
    /// The slots of what was submitted and not sent.
    queue: Vec<usize>,
    /// Where the controls of the queue lie, while they are sent.
    pointers: Vec<*mut Control>,
    /// How often in a row the kernel took nothing for want of resources.
    refusals: u32,
    events: Box<[Event]>,
    /// How many operations the kernel has and has not answered.
    sent: usize,
}

impl Libaio {
    pub(crate) fn new(slots: usize) -> Result<Self, DriverError> {
        let mut context: c_ulong = 0;
        // SAFETY: the kernel writes the new context to where we tell it.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, slots, &raw mut context) };
        check(result).map_err(|errno| match errno {
            Errno::NOSYS => trouble::with_text(errno, "this kernel has no io_setup (libaio)"),
            Errno::AGAIN => trouble::with_text(
                errno,
                "the machine's limit for libaio is reached (sysctl fs.aio-max-nr)",
            ),
            _ => trouble::failed("cannot set up libaio", errno),
        })?;
        Ok(Self {
            context,
            slots: vec![Progress::IDLE; slots],
            controls: vec![Control::default(); slots].into_boxed_slice(),
            queue: Vec::with_capacity(slots),
            pointers: Vec::with_capacity(slots),
            refusals: 0,
            events: vec![Event::default(); slots].into_boxed_slice(),
            sent: 0,
        })
    }

    #[inline]
    pub(crate) fn is_under_way(&self, slot: usize) -> bool {
        self.slots[slot].is_under_way
    }

    pub(crate) fn submit(
        &mut self,
        slot: usize,
        block: Block,
        file: &OpenFile,
        room: *mut u8,
    ) -> Option<Reply> {
        self.slots[slot] = Progress::new(block);
        self.enqueue(slot, file, room);
        if self.queue.len() >= SENT_AT_ONCE {
            // What is not taken goes out with the next reaping, which also deals with errors.
            let _ = self.send_once();
        }
        None
    }

    /// Sends what is in the queue with one call.
    fn send_once(&mut self) -> Result<(), Errno> {
        let controls = self.controls.as_mut_ptr();
        self.pointers.clear();
        self.pointers.extend(self.queue.iter().map(|slot| controls.wrapping_add(*slot)));
        // SAFETY: the pointers are to controls of ours, which the kernel copies, and which point to
        // buffers that are kept until it has answered.
        let result = unsafe {
            let (count, first) = (self.pointers.len(), self.pointers.as_mut_ptr());
            libc::syscall(libc::SYS_io_submit, self.context, count, first)
        };
        let count = check(result)?;
        self.queue.drain(..count);
        self.sent += count;
        Ok(())
    }

    /// Puts the rest of a slot's block into the queue. `room` is where the slot begins.
    fn enqueue(&mut self, slot: usize, file: &OpenFile, room: *mut u8) {
        let Progress { block, done, .. } = self.slots[slot];
        let (offset, len) = self.slots[slot].rest();
        let is_sync = matches!(block.act, Act::Sync { .. });
        self.controls[slot] = Control {
            data: slot as u64,
            opcode: match block.act {
                Act::Read => PREAD,
                Act::Write => PWRITE,
                Act::Sync { data_only: false } => FSYNC,
                Act::Sync { data_only: true } => FDSYNC,
            },
            fd: file.fd.as_raw_fd() as u32,
            // The kernel refuses a sync with a buffer.
            buffer: if is_sync {
                0
            } else {
                room.wrapping_add(done as usize).expose_provenance() as u64
            },
            len: u64::from(len),
            offset,
            ..Control::default()
        };
        self.queue.push(slot);
    }

    pub(crate) fn reap(
        &mut self,
        files: &OpenFiles,
        slab: &Slab,
        wait: Option<Duration>,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        let before = replies.len();
        loop {
            self.send(files, replies);
            let has_replies = replies.len() > before;
            if self.sent > 0 {
                let wait = if has_replies { Some(Duration::ZERO) } else { wait };
                let count = self.take_events(wait);
                self.drain(count, files, slab, replies);
            }
            let is_all_sent = self.queue.is_empty();
            if replies.len() > before || (wait.is_some() && is_all_sent) {
                return;
            }
        }
    }

    /// Takes the events that are there. The kernel is called only where there are some.
    #[inline]
    pub(crate) fn look(
        &mut self,
        files: &OpenFiles,
        slab: &Slab,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        if self.sent > 0 && self.has_events() {
            let count = self.take_events(Some(Duration::ZERO));
            self.drain(count, files, slab, replies);
        }
    }

    /// Tells whether there may be events, without a call.
    fn has_events(&self) -> bool {
        // SAFETY: the kernel maps the events of a context at the address that is its name, for as
        // long as the context lives; the library of that name reads them in the same way.
        let mapped = unsafe { &*ptr::with_exposed_provenance::<Mapped>(self.context as usize) };
        let tail = mapped.tail.load(Ordering::Acquire);
        mapped.magic != MAPPED_MAGIC || mapped.head.load(Ordering::Relaxed) != tail
    }

    /// Sends what is in the queue, as far as the kernel takes it now.
    fn send(&mut self, files: &OpenFiles, replies: &mut Vec<(usize, Reply)>) {
        while !self.queue.is_empty() {
            match self.send_once() {
                Ok(()) | Err(Errno::INTR) => self.refusals = 0,
                Err(Errno::AGAIN) if self.sent > 0 => return,
                Err(Errno::AGAIN) if self.refusals < AGAIN_MAX => {
                    self.refusals += 1;
                    std::thread::yield_now();
                }
                Err(errno) => self.refuse_first(errno, files, replies),
            }
        }
    }

    /// Answers the first of the queue, which the kernel did not take.
    #[cold]
    fn refuse_first(&mut self, errno: Errno, files: &OpenFiles, replies: &mut Vec<(usize, Reply)>) {
        let slot = self.queue.remove(0);
        let progress = &mut self.slots[slot];
        let file = files.get(progress.block.file);
        let result = match progress.block.act {
            // Many file systems know no asynchronous sync.
            Act::Sync { data_only } if errno == Errno::INVAL => psync::sync(file, data_only),
            _ => Err(errno),
        };
        progress.is_under_way = false;
        let reply = result.map(|()| 0).map_err(|errno| progress.failed(errno, file));
        replies.push((slot, reply));
    }

    /// Waits for events; returns how many there are now.
    fn take_events(&mut self, wait: Option<Duration>) -> usize {
        let least: c_long = if wait == Some(Duration::ZERO) { 0 } else { 1 };
        let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
        let time = match wait {
            Some(wait) => {
                time.tv_sec = wait.as_secs().min(1 << 30) as libc::time_t;
                time.tv_nsec = c_long::from(wait.subsec_nanos());
                &raw mut time
            }
            None => ptr::null_mut(),
        };
        // SAFETY: the kernel writes at most as many events as there is room for.
        let result = unsafe {
            let (room, first) = (self.events.len(), self.events.as_mut_ptr());
            libc::syscall(libc::SYS_io_getevents, self.context, least, room, first, time)
        };
        match check(result) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(errno) => unreachable!("io_getevents of a context of ours: {errno}"),
        }
    }

    fn drain(
        &mut self,
        count: usize,
        files: &OpenFiles,
        slab: &Slab,
        replies: &mut Vec<(usize, Reply)>,
    ) {
        self.sent -= count;
        for index in 0..count {
            let Event { data, result, .. } = self.events[index];
            let slot = data as usize;
            let result =
                u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result as i32));
            let file = files.get(self.slots[slot].block.file);
            match self.slots[slot].advance(result, file) {
                Some(reply) => replies.push((slot, reply)),
                None => self.enqueue(slot, file, slab.pointer(slot)),
            }
        }
    }

    /// Waits until the kernel has nothing of ours any more.
    pub(crate) fn settle(&mut self) -> bool {
        // SAFETY: the context is ours; the call returns when nothing of it is under way.
        let result = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        self.sent = 0;
        result == 0
    }
}

/// Returns what a system call returned, or its error.
fn check(result: c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| trouble::last())
}
