//! Scripted files keep what is written, end when the script says, and fail and lie as it does.

use plimsoll_driver::Access;
use plimsoll_model::{Clock, SyncMode};

use super::*;
use crate::Script;

const MODE: OpenMode =
    OpenMode { access: Access::ReadWrite, direct: false, sync: SyncMode::Off, random: false };

/// A clock that is set by hand.
struct Hand(Mutex<Moment>);

impl Clock for Hand {
    fn now(&self) -> Moment {
        *self.0.lock().unwrap()
    }
}

/// Files of a script, and the clock that they look at.
fn files(script: &str) -> (ScriptedFiles, Arc<Hand>) {
    let yaml = format!("schema: plimsoll.oracle/1\nservice: {{time: {{constant: 1ms}}}}\n{script}");
    let behaviour = Behaviour::new(&Script::from_yaml(&yaml).unwrap(), 7);
    let clock = Arc::new(Hand(Mutex::new(Moment::EPOCH)));
    (ScriptedFiles::new(behaviour, Arc::clone(&clock) as SharedClock, true), clock)
}

/// Does one request to its end, and returns when that is and what comes of it.
fn done(ring: &mut ScriptedRing, clock: &Hand, asked: &Asked<'_>) -> (Moment, Reply) {
    assert!(ring.submit(0, asked).is_none());
    let end = ring.next_end().unwrap();
    let mut replies = Vec::new();
    ring.look(&mut replies);
    assert!(replies.is_empty() && clock.now() < end, "it takes time");
    *clock.0.lock().unwrap() = end;
    ring.look(&mut replies);
    let (slot, reply) = replies.pop().unwrap();
    assert!((slot, replies.len(), ring.next_end()) == (0, 0, None));
    (end, reply)
}

fn written(ring: &mut ScriptedRing, clock: &Hand, file: Handle, offset: u64, byte: u8) -> Reply {
    ring.buffer(0).fill(byte);
    done(ring, clock, &Asked::Write { file, offset, len: 8 }).1
}

fn read(ring: &mut ScriptedRing, clock: &Hand, file: Handle, offset: u64) -> (Reply, [u8; 8]) {
    ring.buffer(0).fill(0xEE);
    let reply = done(ring, clock, &Asked::Read { file, offset, len: 8 }).1;
    (reply, ring.buffer(0)[..8].try_into().unwrap())
}

#[test]
fn blocks_are_kept_and_holes_are_zeros() {
    let (files, clock) = files("kinds: {write: {time: {constant: 3ms}}}");
    let mut ring = files.ring(Interface::IoUring, 1, 8).unwrap();
    let file = ring.open_file(Path::new("/d/f"), MODE).unwrap();
    assert_eq!(written(&mut ring, &clock, file, 8, 5), Ok(8));
    assert_eq!(clock.now(), Moment::from_ns(3_000_000));
    assert_eq!(read(&mut ring, &clock, file, 8), (Ok(8), [5; 8]));
    assert_eq!(clock.now(), Moment::from_ns(4_000_000));
    assert_eq!(read(&mut ring, &clock, file, 0), (Ok(8), [0; 8]));
    assert_eq!(read(&mut ring, &clock, file, 12), (Ok(8), [5, 5, 5, 5, 0, 0, 0, 0]));
    // Another ring opens the same file.
    let mut other = files.ring(Interface::Psync, 1, 8).unwrap();
    let file = other.open_file(Path::new("/d/f"), MODE).unwrap();
    assert_eq!(read(&mut other, &clock, file, 8), (Ok(8), [5; 8]));
    assert_eq!(done(&mut other, &clock, &Asked::Sync { file, data_only: true }).1, Ok(0));
}

#[test]
fn what_is_under_way_ends_in_order_and_waits_for_a_server() {
    let (files, clock) = files("servers: 1");
    let mut ring = files.ring(Interface::IoUring, 3, 8).unwrap();
    let file = ring.open_file(Path::new("/d/f"), MODE).unwrap();
    for slot in [2, 0, 1] {
        ring.submit(slot, &Asked::Read { file, offset: 0, len: 8 });
    }
    let mut replies = Vec::new();
    for (ms, slot) in [(1, 2), (2, 0), (3, 1)] {
        assert_eq!(ring.next_end(), Some(Moment::from_ns(ms * 1_000_000)));
        *clock.0.lock().unwrap() = Moment::from_ns(ms * 1_000_000);
        ring.reap(Some(Duration::ZERO), &mut replies);
        assert_eq!(std::mem::take(&mut replies), [(slot, Ok(8))]);
    }
}

#[test]
fn names_are_made_looked_at_and_removed() {
    let (files, clock) = files("");
    let mut ring = files.ring(Interface::Psync, 1, 8).unwrap();
    let directory = ring.open_directory(Path::new("/d")).unwrap();
    let place = |name| Place { directory, name };
    let (a, b) = (place(c"a"), place(c"b"));
    let missing = |reply: Reply| {
        let error = reply.unwrap_err();
        assert_eq!((error.class, error.status), (ErrorClass::NotFound, Some(2)));
    };
    missing(done(&mut ring, &clock, &Asked::Stat { place: a }).1);
    ring.buffer(0).fill(9);
    let create = Asked::Create { place: a, len: 5, sync: false };
    assert_eq!(done(&mut ring, &clock, &create).1, Ok(5));
    assert_eq!(done(&mut ring, &clock, &Asked::Stat { place: a }).1, Ok(5));
    assert_eq!(done(&mut ring, &clock, &Asked::Rename { from: a, to: b }).1, Ok(0));
    missing(done(&mut ring, &clock, &Asked::Open { place: a, len: 8 }).1);
    ring.buffer(0).fill(0);
    assert_eq!(done(&mut ring, &clock, &Asked::Open { place: b, len: 8 }).1, Ok(5));
    assert_eq!(ring.buffer(0), [9, 9, 9, 9, 9, 0, 0, 0]);
    assert_eq!(done(&mut ring, &clock, &Asked::Unlink { place: b }).1, Ok(0));
    missing(done(&mut ring, &clock, &Asked::Unlink { place: b }).1);
    assert_eq!(done(&mut ring, &clock, &Asked::Mkdir { place: a }).1, Ok(0));
    assert_eq!(done(&mut ring, &clock, &Asked::Rmdir { place: a }).1, Ok(0));
    missing(done(&mut ring, &clock, &Asked::Rmdir { place: a }).1);
}

#[test]
fn files_fail_and_lie_as_the_script_says() {
    let (files, clock) =
        files("grace_count: 2\nfaults: {write: {io: 1.0}}\nlies: {old_version: 1.0}");
    let mut ring = files.ring(Interface::IoUring, 1, 8).unwrap();
    let file = ring.open_file(Path::new("/d/f"), MODE).unwrap();
    assert_eq!(written(&mut ring, &clock, file, 0, 1), Ok(8));
    assert_eq!(written(&mut ring, &clock, file, 0, 2), Ok(8));
    let error = written(&mut ring, &clock, file, 0, 3).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Io, Some(5)));
    assert_eq!(read(&mut ring, &clock, file, 0), (Ok(8), [1; 8]));
    let ledger = files.ledger();
    assert_eq!(ledger.count(OpKind::Read, ErrorClass::Corrupt), 1);
    assert_eq!(ledger.count(OpKind::Write, ErrorClass::Io), 1);
    assert_eq!(ledger.count(OpKind::Write, ErrorClass::Ok), 2);
}

#[test]
fn half_a_block_and_what_is_turned_away_move_less() {
    let (files, clock) = files("faults: {read: {half_body: 1.0}}\nrate_cap: {ops_per_sec: 1}");
    let mut ring = files.ring(Interface::IoUring, 1, 8).unwrap();
    let file = ring.open_file(Path::new("/d/f"), MODE).unwrap();
    assert_eq!(read(&mut ring, &clock, file, 0).0, Ok(4));
    assert_eq!(read(&mut ring, &clock, file, 0).0.unwrap_err().class, ErrorClass::Throttled);
    let of_objects = "faults: {get: {io: 0.5}}";
    let of_files = "faults: {read: {reset: 0.5}}";
    for (script, part) in [(of_objects, "have no medium"), (of_files, "fail by `io`")] {
        let yaml =
            format!("schema: plimsoll.oracle/1\nservice: {{time: {{constant: 1ms}}}}\n{script}");
        let refused = Script::from_yaml(&yaml).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
}
