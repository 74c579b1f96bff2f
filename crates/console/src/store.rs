//! What the console keeps of every workload, in SQLite: written before anybody is told that it was
//! accepted, so that a console that is killed forgets nothing.
//!
//! What a workload holds of secrets is never here: texts come redacted, the runnable original lies
//! in a file of its own (`sealed`).

mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use thiserror::Error;

use crate::disk;
use crate::facts::{Facts, StageProgress};
use crate::state::{Number, SourceKind, State};

pub(crate) use rows::{Entry, Remark, Source, StateChange};

/// The version of the tables.
const SCHEMA_VERSION: i64 = 1;
/// More remarks of one workload are not kept.
pub(crate) const REMARKS_MAX: i64 = 2_000;

/// How many workloads of one user wait for their turn at most, and how large their texts may be
/// together: these are kept twice.
const WAITING_MAX: i64 = 1_000;
const WAITING_BYTES_MAX: i64 = 64 << 20;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS workload (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    place INTEGER NOT NULL,
    user TEXT NOT NULL,
    submitted_ms INTEGER NOT NULL,
    started_ms INTEGER,
    ended_ms INTEGER,
    operations TEXT NOT NULL,
    stages_count INTEGER NOT NULL,
    ops_count INTEGER,
    ops_failed_count INTEGER,
    bytes_count INTEGER,
    run_directory TEXT,
    archive_directory TEXT,
    archive_error TEXT,
    error TEXT,
    resubmitted_from INTEGER,
    has_secrets INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS workload_by_state ON workload (state, place);
CREATE TABLE IF NOT EXISTS source (number INTEGER PRIMARY KEY, text TEXT NOT NULL,
    file_name TEXT, explained TEXT NOT NULL, facts TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS progress (number INTEGER PRIMARY KEY, stages TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS state_change (number INTEGER NOT NULL, state TEXT NOT NULL,
    at_ms INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS state_change_by_number ON state_change (number);
CREATE TABLE IF NOT EXISTS remark (number INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    level TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS remark_by_number ON remark (number);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT OR IGNORE INTO counter VALUES ('number', 0);
";

/// Why something cannot be kept or found.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database failed.
    #[error("the console's database failed")]
    Database(#[from] rusqlite::Error),
    /// The database was written by a newer version.
    #[error("the console's database has version {0}, which is newer than this program")]
    Newer(i64),
    /// There is no such workload.
    #[error("there is no workload {0}")]
    Unknown(Number),
    /// Too many of a user's wait.
    #[error(
        "{WAITING_MAX} workloads of yours wait, or {} MiB of them: cancel some, or wait",
        WAITING_BYTES_MAX >> 20
    )]
    Waiting,
    /// It is not in a state in which that can be.
    #[error("{number} is {}, so that is not possible", .state.name())]
    State {
        /// Which one.
        number: Number,
        /// How it stands.
        state: State,
    },
}

/// A workload that is accepted.
#[derive(Clone, Debug)]
pub(crate) struct Accepted<'a> {
    /// What it is called.
    pub name: &'a str,
    /// In which language it is written.
    pub kind: SourceKind,
    /// Its text without secrets.
    pub text: &'a str,
    /// What the file is called that it came in.
    pub file_name: Option<&'a str>,
    /// How it is understood, as YAML.
    pub explained: &'a str,
    /// What is known of it before it runs.
    pub facts: &'a Facts,
    /// Who submitted it.
    pub user: &'a str,
    /// Which one it repeats.
    pub resubmitted_from: Option<Number>,
    /// Whether its text held secrets.
    pub has_secrets: bool,
}

/// Where in the queue a workload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// One place further ahead.
    Up,
    /// One place further back.
    Down,
    /// Right before another.
    Before(Number),
    /// Right behind another.
    After(Number),
}

/// By what workloads are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// When they were submitted.
    #[default]
    Submitted,
    /// How long they ran.
    Duration,
    /// What they are called.
    Name,
    /// How they stand.
    State,
}

/// Which workloads are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only those whose name, id, operations or user hold this.
    pub text: Option<String>,
    /// Only those in one of these states; none: all.
    pub states: Vec<State>,
    /// Only those in this language.
    pub kind: Option<SourceKind>,
    /// By what they are sorted.
    pub sort: Sort,
    /// Whether the smallest comes first.
    pub is_rising: bool,
    /// How many to leave out.
    pub offset: i64,
    /// How many at most.
    pub limit: i64,
}

/// How a workload has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended<'a> {
    /// In which state.
    pub state: State,
    /// Why it did not go on.
    pub error: Option<&'a str>,
    /// When.
    pub at_ms: i64,
}

/// The database.
pub(crate) struct Store(Mutex<Connection>);

impl Store {
    /// Opens the database at a path, or makes it.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        // The database's own logs are made with the rights of its file. Where that cannot be made,
        // opening it says why.
        let _ = disk::appended_private(path);
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(StoreError::Newer(version));
        }
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic in the middle of a transaction has rolled it back.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Returns a number that no workload has or had. Who is refused uses one up, too.
    pub(crate) fn next_number(&self) -> Result<Number, StoreError> {
        self.writing(|transaction| {
            let sql = "UPDATE counter SET value = value + 1 WHERE name = 'number' RETURNING value";
            Ok(Number(transaction.query_row(sql, [], |row| row.get(0))?))
        })
    }

    /// Keeps a workload as the last one of the queue.
    pub(crate) fn accept(
        &self,
        number: Number,
        accepted: &Accepted<'_>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let operations = accepted.facts.operations.join(" ");
        let facts = serde_json::to_string(accepted.facts).expect("facts are plain values");
        self.writing(|transaction| {
            let waiting = "SELECT COUNT(*), COALESCE(SUM(LENGTH(text)), 0) FROM workload \
                           JOIN source USING (number) WHERE state = 'queued' AND user = ?1";
            let (count, bytes): (i64, i64) =
                transaction
                    .query_row(waiting, [accepted.user], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if count >= WAITING_MAX || bytes + accepted.text.len() as i64 > WAITING_BYTES_MAX {
                return Err(StoreError::Waiting);
            }
            let place = "SELECT COALESCE(MAX(place), 0) + 1 FROM workload";
            let place: i64 = transaction.query_row(place, [], |row| row.get(0))?;
            transaction.execute(
                "INSERT INTO workload (number, name, kind, state, place, user, submitted_ms, \
                 operations, stages_count, resubmitted_from, has_secrets) \
                 VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    number.0,
                    accepted.name,
                    accepted.kind.name(),
                    place,
                    accepted.user,
                    at_ms,
                    operations,
                    accepted.facts.stages.len() as i64,
                    accepted.resubmitted_from.map(|from| from.0),
                    accepted.has_secrets,
                ],
            )?;
            let Accepted { text, file_name, explained, .. } = accepted;
            let source = "INSERT INTO source VALUES (?1, ?2, ?3, ?4, ?5)";
            transaction.execute(source, params![number.0, text, file_name, explained, facts])?;
            note_change(transaction, number, State::Queued, at_ms)
        })
    }

    /// Gives no number up to this one.
    pub(crate) fn count_from(&self, last: i64) -> Result<(), StoreError> {
        self.writing(|transaction| {
            let counter = "UPDATE counter SET value = ?1 WHERE name = 'number' AND value < ?1";
            transaction.execute(counter, params![last])?;
            Ok(())
        })
    }

    /// Returns the workload whose turn it is, which runs from now on, unless as many run as may.
    pub(crate) fn take_next(
        &self,
        running_max: i64,
        at_ms: i64,
    ) -> Result<Option<Entry>, StoreError> {
        self.writing(|transaction| {
            let running = "SELECT COUNT(*) FROM workload WHERE state = 'running'";
            let running: i64 = transaction.query_row(running, [], |row| row.get(0))?;
            if running >= running_max {
                return Ok(None);
            }
            let first = "SELECT number FROM workload WHERE state = 'queued' ORDER BY place LIMIT 1";
            let first: Option<i64> =
                transaction.query_row(first, [], |row| row.get(0)).optional()?;
            let Some(number) = first.map(Number) else { return Ok(None) };
            transaction.execute(
                "UPDATE workload SET state = 'running', started_ms = ?2 WHERE number = ?1",
                params![number.0, at_ms],
            )?;
            note_change(transaction, number, State::Running, at_ms)?;
            rows::entry(transaction, number)
        })
    }

    /// Keeps so many runs that have ended, at once.
    #[cfg(test)]
    pub(crate) fn fill_for_tests(&self, count: i64, facts: &Facts) {
        let insert = "INSERT INTO workload (number, name, kind, state, place, user, submitted_ms, \
                      operations, stages_count, has_secrets) \
                      VALUES (?1, 'run-' || ?1, 'cosbench', 'finished', ?1, 'ann', ?1, ?2, 5, 0)";
        let operations = facts.operations.join(" ");
        let filled = self.writing(|transaction| {
            for number in 1..=count {
                transaction.execute(insert, params![number, operations])?;
            }
            Ok(())
        });
        filled.expect("the database takes them");
    }

    /// Keeps where a workload is recorded and archived.
    pub(crate) fn place(
        &self,
        number: Number,
        run: Option<&str>,
        archive: Option<&str>,
    ) -> Result<(), StoreError> {
        self.writing(|transaction| {
            transaction.execute(
                "UPDATE workload SET run_directory = COALESCE(?2, run_directory), \
                 archive_directory = COALESCE(?3, archive_directory) WHERE number = ?1",
                params![number.0, run, archive],
            )?;
            Ok(())
        })
    }

    /// Keeps what went wrong with the archive of a workload.
    pub(crate) fn archive_failed(&self, number: Number, error: &str) -> Result<(), StoreError> {
        self.writing(|transaction| {
            let sql = "UPDATE workload SET archive_error = ?2 WHERE number = ?1";
            transaction.execute(sql, params![number.0, error])?;
            Ok(())
        })
    }

    /// Keeps how a workload that ran has ended.
    pub(crate) fn end(&self, number: Number, ended: &Ended<'_>) -> Result<(), StoreError> {
        self.writing(|transaction| end(transaction, number, ended))
    }

    /// Cancels a workload that waits; tells whether it still waited.
    pub(crate) fn cancel_queued(&self, number: Number, at_ms: i64) -> Result<bool, StoreError> {
        self.writing(|transaction| {
            let entry = rows::entry(transaction, number)?.ok_or(StoreError::Unknown(number))?;
            if entry.state != State::Queued {
                return Ok(false);
            }
            end(transaction, number, &Ended { state: State::Cancelled, error: None, at_ms })?;
            Ok(true)
        })
    }

    /// Ends what ran when the console was killed; returns which workloads those are.
    pub(crate) fn terminate_orphans(
        &self,
        why: &str,
        at_ms: i64,
    ) -> Result<Vec<Number>, StoreError> {
        self.writing(|transaction| {
            let mut query =
                transaction.prepare("SELECT number FROM workload WHERE state = 'running'")?;
            let found = query.query_map([], |row| row.get(0).map(Number))?;
            let orphans: Vec<Number> = found.collect::<Result<_, _>>()?;
            let ended = Ended { state: State::Terminated, error: Some(why), at_ms };
            for number in &orphans {
                end(transaction, *number, &ended)?;
            }
            Ok(orphans)
        })
    }

    /// Moves a workload that waits.
    pub(crate) fn reorder(&self, number: Number, to: Move) -> Result<(), StoreError> {
        self.writing(|transaction| {
            let mut query = transaction.prepare(
                "SELECT number, place FROM workload WHERE state = 'queued' ORDER BY place",
            )?;
            let found = query.query_map([], |row| Ok((Number(row.get(0)?), row.get(1)?)))?;
            let queue: Vec<(Number, i64)> = found.collect::<Result<_, _>>()?;
            let places: Vec<i64> = queue.iter().map(|(_, place)| *place).collect();
            let mut order: Vec<Number> = queue.iter().map(|(number, _)| *number).collect();
            let find = |order: &[Number], wanted: Number| {
                let at = order.iter().position(|each| *each == wanted);
                at.map_or_else(|| Err(not_queued(transaction, wanted)), Ok)
            };
            let at = find(&order, number)?;
            if let Move::Before(other) | Move::After(other) = to {
                find(&order, other)?;
                if other == number {
                    return Ok(());
                }
            }
            order.remove(at);
            let at = match to {
                Move::Up => at.saturating_sub(1),
                Move::Down => (at + 1).min(order.len()),
                Move::Before(other) => find(&order, other)?,
                Move::After(other) => find(&order, other)? + 1,
            };
            order.insert(at, number);
            for (number, place) in order.iter().zip(places) {
                let sql = "UPDATE workload SET place = ?2 WHERE number = ?1";
                transaction.execute(sql, params![number.0, place])?;
            }
            Ok(())
        })
    }

    /// Keeps a remark about a workload, unless there are too many.
    pub(crate) fn remark(&self, number: Number, remark: &Remark) -> Result<(), StoreError> {
        self.writing(|transaction| {
            transaction.execute(
                "INSERT INTO remark SELECT ?1, ?2, ?3, ?4 \
                 WHERE (SELECT COUNT(*) FROM remark WHERE number = ?1) < ?5",
                params![number.0, remark.at_ms, remark.level, remark.text, REMARKS_MAX],
            )?;
            Ok(())
        })
    }

    /// Returns a workload.
    pub(crate) fn entry(&self, number: Number) -> Result<Entry, StoreError> {
        rows::entry(&self.connection(), number)?.ok_or(StoreError::Unknown(number))
    }

    /// Keeps how the stages of a workload stand, and what was counted so far.
    pub(crate) fn progress(
        &self,
        number: Number,
        stages: &[StageProgress],
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(stages).expect("progress is plain values");
        let sum = |count: fn(&StageProgress) -> u64| {
            stages.iter().map(count).fold(0, u64::saturating_add).min(i64::MAX as u64) as i64
        };
        let (ops, failed) = (sum(|stage| stage.ops_count), sum(|stage| stage.ops_failed_count));
        let bytes = sum(|stage| stage.bytes_count);
        self.writing(|transaction| {
            let sql = "INSERT OR REPLACE INTO progress VALUES (?1, ?2)";
            transaction.execute(sql, params![number.0, text])?;
            let sql = "UPDATE workload SET ops_count = ?2, ops_failed_count = ?3, bytes_count = ?4 \
                       WHERE number = ?1";
            transaction.execute(sql, params![number.0, ops, failed, bytes])?;
            Ok(())
        })
    }

    /// Returns how the stages of a workload stood when that was last kept.
    pub(crate) fn kept_progress(&self, number: Number) -> Result<Vec<StageProgress>, StoreError> {
        let sql = "SELECT stages FROM progress WHERE number = ?1";
        let connection = self.connection();
        let text: Option<String> =
            connection.query_row(sql, [number.0], |row| row.get(0)).optional()?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Returns the text of a workload, and what is known of it.
    pub(crate) fn source(&self, number: Number) -> Result<Source, StoreError> {
        rows::source(&self.connection(), number)?.ok_or(StoreError::Unknown(number))
    }

    /// Returns how a workload has stood, in order.
    pub(crate) fn changes(&self, number: Number) -> Result<Vec<StateChange>, StoreError> {
        rows::changes(&self.connection(), number)
    }

    /// Returns what was remarked on a workload, in order.
    pub(crate) fn remarks(&self, number: Number) -> Result<Vec<Remark>, StoreError> {
        rows::remarks(&self.connection(), number)
    }

    /// Returns the workloads that wait, in the order of their turns, and those that run.
    pub(crate) fn active(&self) -> Result<Vec<Entry>, StoreError> {
        rows::active(&self.connection())
    }

    /// Returns workloads, and how many there are of the kind that is asked for.
    pub(crate) fn list(&self, filter: &Filter) -> Result<(Vec<Entry>, i64), StoreError> {
        rows::list(&self.connection(), filter)
    }

    /// Returns how many workloads there are in each state.
    pub(crate) fn counts(&self) -> Result<Vec<(State, i64)>, StoreError> {
        rows::counts(&self.connection())
    }
}

fn not_queued(connection: &Connection, number: Number) -> StoreError {
    match rows::entry(connection, number) {
        Ok(Some(entry)) => StoreError::State { number, state: entry.state },
        Ok(None) => StoreError::Unknown(number),
        Err(error) => error,
    }
}

fn note_change(
    transaction: &Transaction<'_>,
    number: Number,
    state: State,
    at_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO state_change VALUES (?1, ?2, ?3)";
    transaction.execute(sql, params![number.0, state.name(), at_ms])?;
    Ok(())
}

fn end(
    transaction: &Transaction<'_>,
    number: Number,
    Ended { state, error, at_ms }: &Ended<'_>,
) -> Result<(), StoreError> {
    transaction.execute(
        "UPDATE workload SET state = ?2, error = ?3, ended_ms = ?4 WHERE number = ?1",
        params![number.0, state.name(), error, at_ms],
    )?;
    note_change(transaction, number, *state, *at_ms)
}
