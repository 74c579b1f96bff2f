//! What every interface must do, and what is said of what it cannot.

use std::ffi::CStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use plimsoll_driver::{
    Access, DriverError, Handle, OpenMode, Place, Reply, Request, Ring, RingDriver,
};
use plimsoll_driver_file::{FilesDriver, FilesRing, facts};
use plimsoll_model::{ErrorClass, Interface, SyncMode};

use crate::{everywhere, in_memory, interfaces, on_disk};

const BLOCK: u32 = 4096;

fn ring(interface: Interface, slots: usize) -> FilesRing {
    FilesDriver::new("a disk").ring(interface, slots, BLOCK as usize).unwrap()
}

fn mode(access: Access) -> OpenMode {
    OpenMode { access, direct: false, sync: SyncMode::Off, random: true }
}

/// Does one request to its end.
fn run(ring: &mut FilesRing, slot: usize, request: &Request<'_>) -> Reply {
    if let Some(reply) = ring.submit(slot, request) {
        return reply;
    }
    let mut replies = Vec::new();
    ring.reap(None, &mut replies);
    assert_eq!(replies.len(), 1);
    let (answered, reply) = replies.pop().unwrap();
    assert_eq!(answered, slot);
    reply
}

/// Returns a block that no other number gives.
fn block(number: u64) -> Vec<u8> {
    (0..u64::from(BLOCK) / 8).flat_map(|word| (word * 1_000 + number).to_le_bytes()).collect()
}

/// Has every slot do a request, all in flight together; returns the replies by slot.
fn together<'a>(
    ring: &mut FilesRing,
    slots: usize,
    request: impl Fn(usize) -> Request<'a>,
) -> Vec<Reply> {
    let mut replies: Vec<(usize, Reply)> = Vec::new();
    for slot in 0..slots {
        replies.extend(ring.submit(slot, &request(slot)).map(|reply| (slot, reply)));
    }
    while replies.len() < slots {
        ring.reap(None, &mut replies);
    }
    replies.sort_by_key(|(slot, _)| *slot);
    assert!((0..slots).eq(replies.iter().map(|(slot, _)| *slot)));
    replies.into_iter().map(|(_, reply)| reply).collect()
}

#[test]
fn blocks_are_written_synced_and_read() {
    everywhere(|interface, folder| {
        let path = folder.join("file");
        let mut ring = ring(interface, 2);
        let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
        for number in 0..3 {
            ring.buffer(0).copy_from_slice(&block(number));
            let offset = number * u64::from(BLOCK);
            let reply = run(&mut ring, 0, &Request::Write { file, offset, len: BLOCK });
            assert_eq!(reply, Ok(u64::from(BLOCK)), "{interface:?}");
        }
        for data_only in [true, false] {
            assert_eq!(run(&mut ring, 1, &Request::Sync { file, data_only }), Ok(0));
        }
        assert_eq!(fs::read(&path).unwrap(), [block(0), block(1), block(2)].concat());
        for number in [2, 0, 1] {
            let offset = number * u64::from(BLOCK);
            let reply = run(&mut ring, 1, &Request::Read { file, offset, len: BLOCK });
            assert_eq!(reply, Ok(u64::from(BLOCK)));
            assert_eq!(ring.buffer(1), block(number));
        }
        // A part of a block leaves the rest of the buffer alone.
        ring.buffer(1).fill(9);
        assert_eq!(run(&mut ring, 1, &Request::Read { file, offset: 8, len: 16 }), Ok(16));
        assert_eq!(ring.buffer(1)[..16], block(0)[8..24]);
        assert!(ring.buffer(1)[16..].iter().all(|byte| *byte == 9));
    });
}

#[test]
fn synchronous_modes_and_one_way_access_work() {
    everywhere(|interface, folder| {
        for sync in SyncMode::ALL {
            let path = folder.join(sync.name());
            let mut ring = ring(interface, 1);
            let writing = OpenMode { sync, ..mode(Access::Write) };
            let file = ring.open_file(&path, writing).unwrap();
            ring.buffer(0).copy_from_slice(&block(7));
            assert_eq!(run(&mut ring, 0, &Request::Write { file, offset: 0, len: 100 }), Ok(100));
            let file = ring.open_file(&path, mode(Access::Read)).unwrap();
            assert_eq!(run(&mut ring, 0, &Request::Read { file, offset: 50, len: 50 }), Ok(50));
            assert_eq!(ring.buffer(0)[..50], block(7)[50..100]);
        }
    });
}

#[test]
fn many_slots_are_in_flight_together() {
    let slots = 64;
    everywhere(|interface, folder| {
        let mut ring = ring(interface, slots);
        let file = ring.open_file(&folder.join("file"), mode(Access::ReadWrite)).unwrap();
        check_together(&mut ring, file, slots);
    });
}

/// Writes and reads a block with every slot, three times.
fn check_together(ring: &mut FilesRing, file: Handle, slots: usize) {
    for round in 0..3 {
        let number = |slot: usize| (slot * 37 % slots) as u64;
        let offset = |slot: usize| number(slot) * u64::from(BLOCK);
        for slot in 0..slots {
            ring.buffer(slot).copy_from_slice(&block(1_000 * round + number(slot)));
        }
        let replies =
            together(ring, slots, |slot| Request::Write { file, offset: offset(slot), len: BLOCK });
        assert!(replies.iter().all(|reply| *reply == Ok(u64::from(BLOCK))), "{replies:?}");
        // Each slot reads what its neighbour wrote.
        let next = |slot: usize| (slot + 1) % slots;
        let replies = together(ring, slots, |slot| Request::Read {
            file,
            offset: offset(next(slot)),
            len: BLOCK,
        });
        assert!(replies.iter().all(|reply| *reply == Ok(u64::from(BLOCK))), "{replies:?}");
        for slot in 0..slots {
            assert_eq!(ring.buffer(slot), block(1_000 * round + number(next(slot))));
        }
    }
}

#[test]
fn blocks_pass_the_page_cache_by() {
    let folder = on_disk();
    let path = folder.path().join("file");
    let direct = OpenMode { direct: true, ..mode(Access::ReadWrite) };
    for interface in interfaces() {
        let mut ring = ring(interface, 64);
        let file = match ring.open_file(&path, direct) {
            Ok(file) => file,
            Err(error) => return println!("skipped: {error}"),
        };
        check_together(&mut ring, file, 64);
        let error = run(&mut ring, 0, &Request::Read { file, offset: 0, len: 100 }).unwrap_err();
        assert_eq!((error.class, error.status), (ErrorClass::Io, Some(22)));
        let start = format!(
            "cannot read block at 0 of {}: Invalid argument; with O_DIRECT, offsets and lengths \
             must be multiples of ",
            path.display()
        );
        assert!(error.message.starts_with(&start), "{error}");
        // The end of the file lies in the middle of the third block.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        let reply = run(&mut ring, 5, &Request::Read { file, offset: 8192, len: BLOCK });
        assert_eq!(reply, Ok(1_808), "{interface:?}");
    }
}

#[test]
fn the_end_of_a_file_ends_a_read() {
    everywhere(|interface, folder| {
        let path = folder.join("short");
        fs::write(&path, &[block(0), block(1), block(2)].concat()[..10_000]).unwrap();
        let mut ring = ring(interface, 4);
        let file = ring.open_file(&path, mode(Access::Read)).unwrap();
        let read = |offset| Request::Read { file, offset, len: BLOCK };
        assert_eq!(run(&mut ring, 3, &read(8192)), Ok(1_808));
        assert_eq!(ring.buffer(3)[..1_808], block(2)[..1_808]);
        assert_eq!(run(&mut ring, 3, &read(10_000)), Ok(0));
        assert_eq!(run(&mut ring, 3, &read(1 << 40)), Ok(0));
    });
}

#[test]
fn one_file_is_opened_once_for_each_mode() {
    everywhere(|interface, folder| {
        let path = folder.join("file");
        let mut ring = ring(interface, 1);
        let file = ring.open_file(&path, mode(Access::Write)).unwrap();
        assert_eq!(ring.open_file(&path, mode(Access::Write)), Ok(file));
        assert_ne!(ring.open_file(&path, mode(Access::Read)), Ok(file));
        let directory = ring.open_directory(folder).unwrap();
        assert_eq!(ring.open_directory(folder), Ok(directory));
        assert_ne!(directory, file);
    });
}

#[test]
fn names_are_made_looked_at_and_removed() {
    everywhere(|interface, folder| {
        let mut ring = ring(interface, 1);
        let directory = ring.open_directory(folder).unwrap();
        let place = |name: &'static CStr| Place { directory, name };
        let (sub, old, new) = (place(c"sub"), place(c"sub/old"), place(c"new"));
        let mut go = |request: Request<'_>| -> Reply {
            ring.buffer(0).copy_from_slice(&block(5));
            ring.submit(0, &request).expect("names are done at once")
        };
        assert_eq!(go(Request::Mkdir { place: sub }), Ok(0));
        assert_eq!(go(Request::Create { place: old, len: 3_000, sync: true }), Ok(3_000));
        assert_eq!(fs::read(folder.join("sub/old")).unwrap(), block(5)[..3_000]);
        assert_eq!(go(Request::Stat { place: old }), Ok(3_000));
        assert_eq!(go(Request::Open { place: old, len: 0 }), Ok(0));
        assert_eq!(go(Request::Open { place: old, len: 10 }), Ok(10));
        assert_eq!(go(Request::Rename { from: old, to: new }), Ok(0));
        assert_eq!(go(Request::Rmdir { place: sub }), Ok(0));
        assert_eq!(go(Request::Create { place: place(c"empty"), len: 0, sync: false }), Ok(0));
        assert_eq!(go(Request::Stat { place: place(c"empty") }), Ok(0));
        assert_eq!(go(Request::Unlink { place: place(c"empty") }), Ok(0));
        fs::write(folder.join("new"), &block(6)[..3_000]).unwrap();
        assert_eq!(go(Request::Open { place: new, len: BLOCK }), Ok(3_000));
        assert_eq!(ring.buffer(0)[..3_000], block(6)[..3_000]);
        assert_eq!(ring.submit(0, &Request::Unlink { place: new }), Some(Ok(0)));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    });
}

#[test]
fn names_that_do_not_fit_are_refused_in_words() {
    everywhere(|interface, folder| {
        fs::create_dir(folder.join("full")).unwrap();
        fs::write(folder.join("full/file"), "").unwrap();
        std::os::unix::fs::symlink("full/file", folder.join("link")).unwrap();
        let mut ring = ring(interface, 1);
        let directory = ring.open_directory(folder).unwrap();
        let place = |name: &'static CStr| Place { directory, name };
        let mut refused = |request: Request<'_>| match ring.submit(0, &request) {
            Some(Err(DriverError { class, status, message })) => {
                (class, status.unwrap(), message.replace(folder.to_str().unwrap(), "DIR"))
            }
            other => panic!("{other:?}"),
        };
        let (away, full, file) = (place(c"away"), place(c"full"), place(c"full/file"));
        let cases = [
            (Request::Stat { place: away }, 2, "cannot stat DIR/away: No such file or directory"),
            (
                Request::Open { place: away, len: 1 },
                2,
                "cannot open DIR/away: No such file or directory",
            ),
            (
                Request::Rename { from: away, to: file },
                2,
                "cannot rename DIR/away to DIR/full/file: No such file or directory",
            ),
            (
                Request::Create { place: full, len: 1, sync: false },
                21,
                "cannot create DIR/full: Is a directory",
            ),
            (Request::Mkdir { place: full }, 17, "cannot make directory DIR/full: File exists"),
            (
                Request::Rmdir { place: full },
                39,
                "cannot remove directory DIR/full: Directory not empty",
            ),
            (Request::Unlink { place: full }, 21, "cannot unlink DIR/full: Is a directory"),
            (
                Request::Open { place: place(c"link"), len: 0 },
                40,
                "cannot open DIR/link: a symbolic link is in the way and is not followed",
            ),
        ];
        for (request, status, message) in cases {
            let class = if status == 2 { ErrorClass::NotFound } else { ErrorClass::Io };
            assert_eq!(refused(request), (class, status, message.to_owned()));
        }
    });
}

#[test]
fn what_fails_says_where_and_why() {
    everywhere(|interface, folder| {
        let path = folder.join("file");
        let mut ring = ring(interface, 2);
        for away in [ring.open_file(&path, mode(Access::Read)), ring.open_directory(&path)] {
            let error = away.unwrap_err();
            assert_eq!((error.class, error.status), (ErrorClass::NotFound, Some(2)));
            let text = format!("cannot open {}: No such file or directory", path.display());
            assert_eq!(error.message, text);
        }
        fs::write(&path, block(1)).unwrap();
        let file = ring.open_file(&path, mode(Access::Read)).unwrap();
        let write = Request::Write { file, offset: 4096, len: BLOCK };
        let error = run(&mut ring, 1, &write).unwrap_err();
        assert_eq!((error.class, error.status), (ErrorClass::Io, Some(9)));
        let text = format!("cannot write block at 4096 of {}: Bad file descriptor", path.display());
        assert_eq!(error.message, text);
        // The slot is as good as before.
        assert_eq!(run(&mut ring, 1, &Request::Read { file, offset: 0, len: BLOCK }), Ok(4096));
    });
}

#[test]
fn a_full_device_is_told_from_a_broken_one() {
    let mut ring = ring(Interface::Psync, 1);
    let file = ring.open_file(Path::new("/dev/full"), mode(Access::Write)).unwrap();
    let error = run(&mut ring, 0, &Request::Write { file, offset: 4096, len: BLOCK }).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Io, Some(28)));
    assert_eq!(error.message, "cannot write block at 4096 of /dev/full: No space left on device");
}

#[test]
fn a_wrong_device_name_makes_no_file() {
    let path = Path::new("/dev/plimsoll-no-such-device");
    let error = ring(Interface::Psync, 1).open_file(path, mode(Access::Write)).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
    assert!(!path.exists());
}

#[test]
fn a_refusal_of_direct_blocks_is_explained() {
    let direct = OpenMode { direct: true, ..mode(Access::Read) };
    let path = Path::new("/proc/self/status");
    let error = ring(Interface::Psync, 1).open_file(path, direct).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Io, Some(22)));
    assert_eq!(
        error.message,
        "the file system at /proc/self/status (proc) refuses O_DIRECT; leave `direct` out"
    );
}

/// A pipe answers when we want it to, and as little as we want it to.
fn pipe(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    path
}

#[test]
fn waiting_ends_in_time_and_short_answers_are_completed() {
    if !interfaces().contains(&Interface::IoUring) {
        return;
    }
    let folder = on_disk();
    let path = pipe(folder.path());
    let mut ring = ring(Interface::IoUring, 2);
    let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
    let mut writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut replies = Vec::new();
    assert_eq!(ring.submit(1, &Request::Read { file, offset: 0, len: 100 }), None);
    for wait in [Duration::ZERO, Duration::from_millis(1)] {
        ring.reap(Some(wait), &mut replies);
        assert_eq!(replies, []);
    }
    let text: Vec<u8> = (0..100).collect();
    writer.write_all(&text[..30]).unwrap();
    ring.reap(Some(Duration::from_millis(1)), &mut replies);
    assert_eq!(replies, [], "30 bytes are no block of 100");
    // Another slot is not kept waiting by it.
    let other = ring.open_file(&folder.path().join("file"), mode(Access::Write)).unwrap();
    assert_eq!(ring.submit(0, &Request::Write { file: other, offset: 0, len: 10 }), None);
    ring.reap(None, &mut replies);
    assert_eq!(std::mem::take(&mut replies), [(0, Ok(10))]);
    writer.write_all(&text[30..]).unwrap();
    while replies.is_empty() {
        ring.reap(Some(Duration::from_secs(10)), &mut replies);
    }
    assert_eq!(replies, [(1, Ok(100))]);
    assert_eq!(ring.buffer(1)[..100], text);
}

#[test]
fn a_ring_that_is_dropped_waits_for_the_kernel() {
    if !interfaces().contains(&Interface::IoUring) {
        return;
    }
    let folder = on_disk();
    let path = pipe(folder.path());
    let mut ring = ring(Interface::IoUring, 1);
    let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
    assert_eq!(ring.submit(0, &Request::Read { file, offset: 0, len: BLOCK }), None);
    ring.reap(Some(Duration::ZERO), &mut Vec::new());
    let writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut reader = writer.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (&writer).write_all(&block(3)).unwrap());
        drop(ring);
    });
    // The ring took the block out of the pipe, so the next to come out is the next put in.
    (&writer).write_all(b"next").unwrap();
    let mut next = [0; 4];
    std::io::Read::read_exact(&mut reader, &mut next).unwrap();
    assert_eq!(&next, b"next");
}

#[test]
fn rings_with_blocks_under_way_are_dropped_and_made_again() {
    let folder = on_disk();
    for interface in interfaces() {
        for _ in 0..20 {
            let mut ring = ring(interface, 16);
            let path = folder.path().join("file");
            let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
            for slot in 0..16 {
                let offset = 4096 * slot as u64;
                ring.submit(slot, &Request::Write { file, offset, len: BLOCK });
            }
            ring.reap(None, &mut Vec::new());
        }
    }
}

#[test]
fn large_buffers_work() {
    let folder = on_disk();
    for interface in interfaces() {
        let driver = FilesDriver::new("a disk");
        let mut ring = driver.ring(interface, 3, 5 << 20).unwrap();
        let path = folder.path().join("large");
        let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
        ring.buffer(2).fill(0xa5);
        let write = Request::Write { file, offset: 1 << 20, len: 5 << 20 };
        assert_eq!(run(&mut ring, 2, &write), Ok(5 << 20));
        assert_eq!(ring.buffer(1).len(), 5 << 20);
        let read = Request::Read { file, offset: 1 << 20, len: 5 << 20 };
        assert_eq!(run(&mut ring, 1, &read), Ok(5 << 20));
        assert!(ring.buffer(1).iter().all(|byte| *byte == 0xa5));
    }
    assert_eq!(FilesDriver::new("a disk").endpoints(), ["a disk"]);
    assert!(interfaces().contains(&plimsoll_driver_file::best()));
    assert!(facts::probe(folder.path()).is_ok());
}

#[test]
fn more_files_than_the_kernel_registers_work() {
    let files = 4_200;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < 2 * files) {
        return println!("skipped: the limit of open files is below {}", 2 * files);
    }
    let Some(folder) = in_memory() else { return };
    if !interfaces().contains(&Interface::IoUring) {
        return;
    }
    let mut ring = ring(Interface::IoUring, 2);
    let mut last = None;
    for number in 0..files {
        let path = folder.path().join(number.to_string());
        let file = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
        ring.buffer(0)[..8].copy_from_slice(&number.to_le_bytes());
        assert_eq!(run(&mut ring, 0, &Request::Write { file, offset: 0, len: 8 }), Ok(8));
        last = Some((path, file));
    }
    let (path, file) = last.unwrap();
    assert_eq!(fs::read(path).unwrap(), (files - 1).to_le_bytes());
    assert_eq!(run(&mut ring, 1, &Request::Read { file, offset: 0, len: 8 }), Ok(8));
    assert_eq!(ring.buffer(1)[..8], (files - 1).to_le_bytes());
}

#[test]
fn what_ends_while_others_are_sent_is_not_kept_waiting() {
    if !interfaces().contains(&Interface::IoUring) {
        return;
    }
    let folder = on_disk();
    let path = pipe(folder.path());
    let mut ring = ring(Interface::IoUring, 5);
    let slow = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
    let cached = folder.path().join("cached");
    fs::write(&cached, block(1)).unwrap();
    let cached = ring.open_file(&cached, mode(Access::Read)).unwrap();
    assert_eq!(ring.submit(4, &Request::Read { file: slow, offset: 0, len: 3 }), None);
    let mut replies = Vec::new();
    ring.reap(Some(Duration::ZERO), &mut replies);
    assert_eq!(replies, []);
    OpenOptions::new().read(true).write(true).open(&path).unwrap().write_all(b"end").unwrap();
    // As many as are sent at once: they are answered while they are sent.
    for slot in 0..4 {
        let read = Request::Read { file: cached, offset: 0, len: BLOCK };
        assert_eq!(ring.submit(slot, &read), None);
    }
    ring.reap(None, &mut replies);
    assert!(replies.contains(&(4, Ok(3))), "{replies:?}");
}

#[test]
fn a_look_sees_what_has_ended_and_waits_for_nothing() {
    for interface in interfaces() {
        if interface == Interface::Psync {
            continue;
        }
        let folder = on_disk();
        let mut ring = ring(interface, 4);
        let mut replies = Vec::new();
        ring.look(&mut replies);
        let file = ring.open_file(&folder.path().join("file"), mode(Access::Write)).unwrap();
        for slot in 0..3 {
            let write = Request::Write { file, offset: slot as u64 * 10, len: 10 };
            assert_eq!(ring.submit(slot, &write), None);
        }
        while replies.len() < 3 {
            ring.look(&mut replies);
            thread::yield_now();
        }
        replies.sort_by_key(|(slot, _)| *slot);
        assert_eq!(replies, [(0, Ok(10)), (1, Ok(10)), (2, Ok(10))], "{}", interface.name());
        if interface != Interface::IoUring {
            continue;
        }
        // What ends by itself is seen, too, without a request that follows.
        let path = pipe(folder.path());
        let slow = ring.open_file(&path, mode(Access::ReadWrite)).unwrap();
        assert_eq!(ring.submit(3, &Request::Read { file: slow, offset: 0, len: 3 }), None);
        replies.clear();
        ring.look(&mut replies);
        assert_eq!(replies, []);
        OpenOptions::new().read(true).write(true).open(&path).unwrap().write_all(b"end").unwrap();
        while replies.is_empty() {
            ring.look(&mut replies);
            thread::yield_now();
        }
        assert_eq!(replies, [(3, Ok(3))]);
    }
}

#[test]
fn a_thread_with_a_ring_keeps_no_connection_of_others_open() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    // Threads of other tests that make rings have a copy of `ours` while they make theirs; that of
    // this test would have it for as long as it lives.
    theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (made, over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ring = ring(Interface::Psync, 1);
            made.wait();
            over.wait();
        });
        made.wait();
        drop(ours);
        let seen = theirs.read(&mut [0; 8]).map_err(|error| error.kind());
        over.wait();
        assert_ne!(seen, Err(ErrorKind::WouldBlock), "the other end is still open");
        assert_eq!(seen, Ok(0));
    });
}

/// A thread that drives files has descriptors of its own, so that a handler which wakes somebody by
/// one would wake nobody there: signals to the process must go to its other threads.
#[test]
fn a_thread_that_drives_files_takes_no_signals_but_its_own_faults() {
    let interface = interfaces()[0];
    let blocked = std::thread::spawn(move || {
        let _ring = FilesDriver::new("here").ring(interface, 1, 4096).unwrap();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    });
    let blocked = blocked.join().unwrap();
    let is_blocked = |signal: u64| blocked & (1 << (signal - 1)) != 0;
    // By the numbers that Linux gives them: HUP, INT, QUIT, USR1, TERM; ILL, ABRT, FPE, SEGV.
    assert!([1, 2, 3, 10, 15].into_iter().all(is_blocked), "{blocked:x}");
    assert!(![4, 6, 8, 11].into_iter().any(is_blocked), "{blocked:x}");
}
