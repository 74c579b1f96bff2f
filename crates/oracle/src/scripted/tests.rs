//! The virtual store: it conforms, and what a right client sees of it is what its ledger says.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use plimsoll_driver::conformance;
use plimsoll_testkit::ManualClock;
use plimsoll_workload::Random;

use super::*;
use crate::behaviour::spoil;
use crate::script::Script;

const SEED: u64 = 3;
const STEP: Duration = Duration::from_millis(1);

fn driver(script: &str) -> ScriptedDriver {
    let yaml = format!("schema: plimsoll.oracle/1\nservice: {{time: {{constant: 1ms}}}}\n{script}");
    let script = Script::from_yaml(&yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"));
    ScriptedDriver::new(Behaviour::new(&script, SEED))
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

struct SourceContent(Vec<u8>);

impl ContentSource for SourceContent {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.0[offset as usize..offset as usize + buffer.len()]);
    }
}

#[derive(Default)]
struct CollectingSink(Vec<u8>);

impl ContentSink for CollectingSink {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

#[derive(Default)]
struct Listed(Vec<String>);

impl EntrySink for Listed {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn entry(&mut self, key: &str, _size: u64) {
        self.0.push(key.to_owned());
    }
}

/// A client that knows what it wrote, and classes what it sees.
struct Client {
    session: ScriptedSession,
    clock: Arc<ManualClock>,
    /// The contents by key, `None` when it is not known whether a write was done.
    written: BTreeMap<String, Vec<u8>>,
    random: Random,
    seen: HashMap<(OpKind, ErrorClass), u64>,
    right_bytes: u64,
}

impl Client {
    fn new(driver: &ScriptedDriver) -> Self {
        let clock = Arc::new(ManualClock::default());
        let shared: SharedClock = clock.clone();
        Self {
            session: driver.open_sessions(&shared, 1).remove(0),
            clock,
            written: BTreeMap::new(),
            random: Random::new(SEED, 9, 9),
            seen: HashMap::new(),
            right_bytes: 0,
        }
    }

    fn execute(&mut self, operation: Operation<'_>) -> Completion {
        self.clock.advance(STEP);
        block_on(self.session.execute(None, operation))
    }

    fn note(&mut self, kind: OpKind, result: Result<(), ErrorClass>) -> ErrorClass {
        let class = result.err().unwrap_or(ErrorClass::Ok);
        *self.seen.entry((kind, class)).or_default() += 1;
        class
    }

    fn put(&mut self, key: &str, len: usize) -> ErrorClass {
        let content: Vec<u8> = (0..len).map(|_| self.random.next_u64() as u8).collect();
        let mut given = SourceContent(content.clone());
        let done = self.execute(Operation::Put { key, content: &mut given });
        if done.result.is_ok() {
            self.written.insert(key.to_owned(), content);
        }
        self.note(OpKind::Put, done.result.map_err(|error| error.class))
    }

    fn get(&mut self, key: &str, range: Option<ByteRange>) -> (ErrorClass, Vec<u8>) {
        let mut taken = CollectingSink::default();
        let done = self.execute(Operation::Get { key, range, version: None, sink: &mut taken });
        assert_eq!(done.bytes, taken.0.len() as u64, "bytes are those given");
        let expected = self.written.get(key);
        let judge = |()| {
            let expected = expected.ok_or(ErrorClass::Ok)?;
            let (offset, len) = range.map_or((0, u64::MAX), |range| (range.offset, range.len));
            let asked = expected.get(offset as usize..).ok_or(ErrorClass::Ok)?;
            let right = &asked[..asked.len().min(len as usize)];
            match spoil::class_of_content(&taken.0, right) {
                Some(class) => Err(class),
                None => Ok(()),
            }
        };
        let result = done.result.map_err(|error| error.class).and_then(judge);
        if result.is_ok() {
            self.right_bytes += taken.0.len() as u64;
        }
        (self.note(OpKind::Get, result), taken.0)
    }

    fn stat(&mut self, key: &str) -> ErrorClass {
        let done = self.execute(Operation::Stat { key, version: None });
        let expected = self.written.get(key).map(|content| content.len() as u64);
        let result = done.result.map_err(|error| error.class).and_then(|()| {
            let wrong = expected.is_some() && done.object_size != expected;
            if wrong { Err(ErrorClass::Corrupt) } else { Ok(()) }
        });
        self.note(OpKind::Stat, result)
    }

    fn delete(&mut self, key: &str) -> ErrorClass {
        let keys = [key.to_owned()];
        let done = self.execute(Operation::Delete { keys: &keys });
        if done.result.is_ok() {
            self.written.remove(key);
        }
        self.note(OpKind::Delete, done.result.map_err(|error| error.class))
    }

    fn list(&mut self, prefix: &str) -> (ErrorClass, Vec<String>) {
        let mut listed = Listed::default();
        let done = self.execute(Operation::List {
            prefix,
            page_size: 10,
            pages_max: None,
            sink: &mut listed,
        });
        let below = self.written.keys().filter(|key| key.starts_with(prefix));
        let is_right = below.eq(&listed.0);
        let result = done.result.map_err(|error| error.class);
        let result = result.and(if is_right { Ok(()) } else { Err(ErrorClass::Corrupt) });
        (self.note(OpKind::List, result), listed.0)
    }

    fn agrees_with(&self, ledger: &Ledger) {
        for kind in OpKind::ALL {
            for class in ErrorClass::ALL {
                let seen = self.seen.get(&(kind, class)).copied().unwrap_or(0);
                let truth = ledger.count(kind, class);
                assert_eq!(seen, truth, "{} {}", kind.name(), class.name());
            }
        }
        assert_eq!(self.right_bytes, ledger.content_bytes(OpKind::Get));
    }
}

#[test]
fn an_honest_scripted_store_conforms() {
    for script in ["", "lies: {torn: 0}\nplant: {count: 1, of: 1000000, kinds: [stale_read]}\n"] {
        let clock: SharedClock = Arc::new(ManualClock::default());
        block_on(conformance::check(&driver(script), &clock, "base/"));
        block_on(conformance::check_buckets(&driver(script), &clock));
    }
}

#[test]
fn moments_lie_in_the_future_of_the_clock() {
    let driver =
        driver("kinds: {get: {time: {constant: 4ms}, first_byte: {share: 0.5}}}\nservers: 1\n");
    let clock = Arc::new(ManualClock::default());
    let shared: SharedClock = clock.clone();
    let mut session = driver.open_sessions(&shared, 1).remove(0);
    let ms = |moment: Option<Moment>| moment.map(|moment| moment.as_ns() / 1_000_000);
    let mut content = SourceContent(vec![7; 10]);
    let put = block_on(session.execute(None, Operation::Put { key: "a", content: &mut content }));
    assert_eq!((ms(put.last_byte_sent), ms(put.first_byte)), (Some(0), Some(1)));
    let mut taken = CollectingSink::default();
    let get = Operation::Get { key: "a", range: None, version: None, sink: &mut taken };
    let get = block_on(session.execute(None, get));
    assert_eq!((ms(get.first_byte), ms(Some(get.end))), (Some(3), Some(5)), "after the put");
    assert_eq!((get.object_size, get.bytes, taken.0), (Some(10), 10, vec![7; 10]));
}

#[test]
fn a_right_client_sees_what_the_ledger_says() {
    let driver = driver(
        "faults:
  all: {slow_down: 0.01, status: {500: 0.01, 409: 0.01}, reset: 0.01, half_body: 0.01,
        wrong_length: 0.01, error_in_success: 0.01, silence: 0.01}
lies: {other_key: 0.02, old_version: 0.02, shifted: 0.02, zeroed: 0.02, torn: 0.02, flipped: 0.02,
       lost_write: 0.02, stale_read: 0.02, list_omission: 0.02, list_ghost: 0.02}
",
    );
    let mut client = Client::new(&driver);
    for number in 0..60_000 {
        let key = format!("key-{:02}", client.random.below(40));
        match number % 8 {
            // More puts than deletes, so that most reads find something.
            0 | 5 => _ = client.put(&key, 500),
            1 => _ = client.delete(&key),
            2 => _ = client.stat(&key),
            3 => _ = client.list("key-"),
            4 => {
                let (offset, len) = (client.random.below(600), 1 + client.random.below(300));
                client.get(&key, Some(ByteRange { offset, len }));
            }
            _ => _ = client.get(&key, None),
        }
        learn(&mut client, &driver, &key);
    }
    client.agrees_with(&driver.ledger());
    let told = |lie: &Lie| !matches!(lie, Lie::WrongTag | Lie::LostCopy);
    for lie in Lie::ALL.into_iter().filter(told) {
        let count = driver.ledger().lie_count(lie);
        assert!(count > 50, "{} told {count} times", lie.name());
    }
}

/// Tells the client whether a write was done that failed or was lost; only of an object whose
/// replacement was lost it goes on to expect what it wrote.
fn learn(client: &mut Client, driver: &ScriptedDriver, key: &str) {
    match driver.store.get(BUCKET, key) {
        Err(_) => drop(client.written.remove(key)),
        Ok(_) if driver.store.lost_write(BUCKET, key) => {}
        Ok(object) => {
            drop(client.written.insert(key.to_owned(), object.content.whole().to_vec()));
        }
    }
}

#[test]
fn planted_wrong_bytes_are_exactly_as_many_and_nothing_else_is_wrong() {
    let kinds = "[other_key, old_version, shifted, zeroed, torn, flipped, half_body, wrong_length]";
    let driver =
        driver(&format!("grace_count: 60\nplant: {{count: 200, of: 5000, kinds: {kinds}}}\n"));
    let mut client = Client::new(&driver);
    for number in 0..30 {
        client.put(&format!("key-{number:02}"), 700);
    }
    for number in 0..30 {
        client.put(&format!("key-{number:02}"), 700);
    }
    let mut wrong = 0;
    for _ in 0..6_000 {
        let key = format!("key-{:02}", client.random.below(30));
        let offset = client.random.below(600);
        let range = offset.is_multiple_of(2).then_some(ByteRange { offset, len: 100 });
        wrong += u32::from(!client.get(&key, range).0.is_ok());
    }
    assert_eq!(wrong, 200);
    client.agrees_with(&driver.ledger());
    for name in kinds.trim_matches(['[', ']']).split(", ") {
        assert_eq!(driver.ledger().acts(OpKind::Get)[name], 25, "{name}");
    }
}

#[test]
fn each_fault_is_what_its_name_says() {
    let one = |fault: &str| {
        let script = format!("grace_count: 1\nfaults: {{get: {{{fault}: 1}}}}\n");
        let driver = driver(&script);
        let mut client = Client::new(&driver);
        client.put("a", 100);
        let mut taken = CollectingSink::default();
        let done = client.execute(Operation::Get {
            key: "a",
            range: None,
            version: None,
            sink: &mut taken,
        });
        let error = done.result.expect_err(fault);
        (error.class, error.status, taken.0.len(), done.end)
    };
    let end = Moment::from_ns(3_000_000);
    assert_eq!(one("slow_down"), (ErrorClass::Throttled, Some(503), 0, end));
    assert_eq!(one("reset"), (ErrorClass::Reset, None, 0, end));
    assert_eq!(one("half_body"), (ErrorClass::Truncated, None, 50, end));
    let (class, status, len, at) = one("wrong_length");
    assert_eq!((class, status, at), (ErrorClass::Truncated, None, end));
    assert!((101..=164).contains(&len), "{len}");
    assert_eq!(one("error_in_success"), (ErrorClass::Protocol, Some(200), 0, end));
    assert_eq!(one("silence"), (ErrorClass::Timeout, None, 0, Moment::from_ns(u64::MAX / 2)));
}

#[test]
fn lost_writes_and_stale_reads_show_what_was_before() {
    let lost = driver("grace_count: 1\nlies: {lost_write: 1}\n");
    let mut client = Client::new(&lost);
    assert_eq!(client.put("a", 10), ErrorClass::Ok);
    let first = client.written["a"].clone();
    assert_eq!(client.put("a", 10), ErrorClass::Ok);
    assert_eq!(client.get("a", None), (ErrorClass::Corrupt, first), "the first content");
    client.put("b", 10);
    assert_eq!(client.get("b", None).0, ErrorClass::NotFound);
    client.delete("a");
    assert_eq!(client.stat("a"), ErrorClass::Ok, "still there");
    client.agrees_with(&lost.ledger());
    assert_eq!(lost.ledger().lie_count(Lie::LostWrite), 3);

    let stale = driver("grace_count: 2\nlies: {stale_read: 1}\n");
    let mut client = Client::new(&stale);
    client.put("a", 10);
    client.put("b", 10);
    let old = client.written["b"].clone();
    client.put("b", 10);
    assert_eq!(client.get("a", None).0, ErrorClass::NotFound);
    assert_eq!(client.get("b", None), (ErrorClass::Corrupt, old));
    client.delete("a");
    assert_eq!(client.stat("a"), ErrorClass::Ok, "as if it were not deleted");
    assert_eq!(client.get("never", None).0, ErrorClass::NotFound);
    client.agrees_with(&stale.ledger());
    assert_eq!(stale.ledger().lie_count(Lie::StaleRead), 3, "the last one was the truth");
}

#[test]
fn lists_omit_and_invent_one_entry() {
    let omitting = driver("lies: {list_omission: 1}\n");
    let mut client = Client::new(&omitting);
    assert_eq!(client.list("").0, ErrorClass::Ok, "there is nothing to omit");
    for key in ["a/1", "a/2", "b/1"] {
        client.put(key, 1);
    }
    let listed = client.list("a/").1;
    assert!(listed == ["a/1"] || listed == ["a/2"], "{listed:?}");
    client.agrees_with(&omitting.ledger());

    let haunted = driver("lies: {list_ghost: 1}\n");
    let mut client = Client::new(&haunted);
    for key in ["a/1", "a/2", "b/1"] {
        client.put(key, 1);
    }
    let listed = client.list("a/").1;
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed.is_sorted() && listed.iter().any(|key| key.starts_with("a/ghost-")));
    client.delete("a/1");
    assert_eq!(client.list("a/").1, ["a/1", "a/2"], "the deleted one is back");
    client.agrees_with(&haunted.ledger());
}
