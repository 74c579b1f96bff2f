//! One session of a check: does what it is asked, and says what the answers mean.

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, DriverError, EntrySink, Operation, Session, Settled,
};
use plimsoll_model::{ErrorClass, Moment, SharedClock};
use plimsoll_workload::history::{Answer, HistoryOp, KeyNumber};

use super::config::CheckConfig;
use super::content::{Expected, PIECE_BYTES_MIN, Stamped, Stamps};
use super::state::{CheckOp, size_of};
use crate::pump::Performer;
use crate::source::Performed;

/// More content than any value has is counted and not kept.
const CONTENT_KEPT_MAX: usize = 1 << 20;
/// Names in a listing that nobody wrote, of which more are not kept.
const STRANGE_KEPT_MAX: usize = 16;

/// What an operation of a check came to.
pub(super) struct Checked {
    pub(super) completion: Completion,
    pub(super) answer: Answer,
    pub(super) end: Moment,
}

impl Performed for Checked {
    fn end(&self) -> Moment {
        self.end
    }

    // What is left of a failed one is not part of the history, which knows whole objects only.
    fn has_failed(&self) -> bool {
        self.completion.result.is_err()
    }
}

/// Does operations on one session.
pub(super) struct CheckSession<'a, S> {
    config: &'a CheckConfig,
    clock: &'a SharedClock,
    stamps: Stamps,
    session: S,
    key: [String; 1],
    content: Kept,
    entries: Entries<'a>,
}

impl<'a, S: Session> CheckSession<'a, S> {
    pub(super) fn new(config: &'a CheckConfig, clock: &'a SharedClock, session: S) -> Self {
        Self {
            config,
            clock,
            stamps: Stamps::new(config.salt),
            session,
            key: [String::new()],
            content: Kept::default(),
            entries: Entries { prefix: &config.prefix, known: Vec::new(), strange: Vec::new() },
        }
    }

    async fn execute(&mut self, op: HistoryOp, page_size: u32) -> Completion {
        if let Some(key) = op.key() {
            self.key[0] = format!("{}{key}", self.config.prefix);
        }
        let mut given;
        let operation = match op {
            HistoryOp::Put(value, size) => {
                given = Stamped { stamps: self.stamps, value, size };
                Operation::Put { key: &self.key[0], content: &mut given }
            }
            HistoryOp::Get(_, range) => {
                let range = range.map(|(offset, len)| ByteRange { offset, len });
                self.content.restart();
                Operation::Get { key: &self.key[0], range, version: None, sink: &mut self.content }
            }
            HistoryOp::Stat(_) => Operation::Stat { key: &self.key[0], version: None },
            HistoryOp::Delete(_) => Operation::Delete { keys: &self.key },
            HistoryOp::List => {
                self.entries.restart();
                let prefix = &self.config.prefix;
                Operation::List { prefix, page_size, pages_max: None, sink: &mut self.entries }
            }
        };
        let execution = self.session.execute(None, operation);
        match tokio::time::timeout(self.config.op_timeout, execution).await {
            Ok(completion) => completion,
            Err(_) => {
                let seconds = self.config.op_timeout.as_secs_f64();
                let message = format!("no answer within {seconds} s");
                let error = DriverError::new(ErrorClass::Timeout, message);
                Completion::bare(self.session.endpoint(), self.clock.now(), Err(error))
            }
        }
    }

    /// Returns what the completion of `op` tells.
    fn answer(&mut self, op: HistoryOp, completion: &Completion) -> Answer {
        let error = match &completion.result {
            Err(error) => error,
            Ok(()) => return self.success(op, completion),
        };
        match (op, error.class) {
            (HistoryOp::Get(..) | HistoryOp::Stat(_), ErrorClass::NotFound) => Answer::Absent,
            // The range was chosen for another version than is there.
            (HistoryOp::Get(_, Some(_)), _) if error.status == Some(416) => Answer::OutOfRange,
            (HistoryOp::Get(_, Some(_)), ErrorClass::Truncated) if error.status == Some(206) => {
                Answer::OutOfRange
            }
            (_, class) => Answer::Failed(class),
        }
    }

    fn success(&mut self, op: HistoryOp, completion: &Completion) -> Answer {
        match op {
            HistoryOp::Put(..) | HistoryOp::Delete(_) => Answer::Done,
            HistoryOp::Stat(_) => Answer::Present(completion.object_size),
            HistoryOp::List => Answer::Listed(
                std::mem::take(&mut self.entries.known),
                std::mem::take(&mut self.entries.strange),
            ),
            HistoryOp::Get(key, range) => {
                let bytes = &self.content.0;
                // Less than was asked for of a version that is shorter may not hold a stamp.
                if range.is_some() && (bytes.len() as u64) < PIECE_BYTES_MIN {
                    return Answer::OutOfRange;
                }
                let seed = self.config.seed;
                let expected = Expected {
                    key,
                    end: range.map(|(offset, len)| offset + len),
                    size: &|value| size_of(seed, value),
                };
                let offset = range.map_or(0, |(offset, _)| offset);
                match self.stamps.identify(bytes, offset, expected) {
                    Ok(value) => Answer::Value(value),
                    Err(wrong) => Answer::Wrong(wrong),
                }
            }
        }
    }
}

impl<S: Session> Performer for CheckSession<'_, S> {
    type Op = CheckOp;
    type Done = Checked;

    async fn perform(&mut self, op: &CheckOp) -> Checked {
        let completion = self.execute(op.op, op.page_size).await;
        let (end, answer) = (completion.end.max(op.begin), self.answer(op.op, &completion));
        Checked { completion, answer, end }
    }

    async fn settle(&mut self) -> Settled {
        self.session.settle().await
    }
}

/// Keeps the content of one read.
#[derive(Default)]
struct Kept(Vec<u8>);

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        let room = CONTENT_KEPT_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Keeps a listing, the keys by their numbers.
struct Entries<'a> {
    prefix: &'a str,
    known: Vec<(KeyNumber, u64)>,
    strange: Vec<String>,
}

impl EntrySink for Entries<'_> {
    fn restart(&mut self) {
        self.known.clear();
        self.strange.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        match key_number(self.prefix, key) {
            Some(number) => self.known.push((number, size)),
            None if self.strange.len() < STRANGE_KEPT_MAX => self.strange.push(key.to_owned()),
            None => {}
        }
    }
}

/// Returns the number of a key that a check may have written.
fn key_number(prefix: &str, key: &str) -> Option<KeyNumber> {
    let name = key.strip_prefix(prefix)?;
    let number = KeyNumber(name.strip_prefix('k')?.parse().ok()?);
    (number.to_string() == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_check_writes_have_a_number() {
        for number in [0, 7, 999_999, 1_000_000] {
            let key = format!("p/{}", KeyNumber(number));
            assert_eq!(key_number("p/", &key), Some(KeyNumber(number)));
        }
        for key in ["p/k7", "p/k0000007", "p/x000007", "q/k000007", "p/k-00007", "p/", "k000007"] {
            assert_eq!(key_number("p/", key), None, "{key}");
        }
    }
}
