//! Rows of the database as values.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::{Filter, Sort, StoreError};
use crate::facts::Facts;
use crate::state::{Number, SourceKind, State};

/// A workload as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its number.
    pub number: Number,
    /// What it is called.
    pub name: String,
    /// In which language it is written.
    pub kind: SourceKind,
    /// How it stands.
    pub state: State,
    /// Where in the queue it stands: lower is sooner.
    pub place: i64,
    /// Who submitted it; empty where nobody was asked.
    pub user: String,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_ms: i64,
    /// When it began to run.
    pub started_ms: Option<i64>,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// What its operations are.
    pub operations: Vec<String>,
    /// How many stages it has.
    pub stages_count: i64,
    /// How many operations have ended.
    pub ops_count: Option<i64>,
    /// How many of these failed.
    pub ops_failed_count: Option<i64>,
    /// How many content bytes were moved.
    pub bytes_count: Option<i64>,
    /// Where it is recorded.
    pub run_directory: Option<String>,
    /// Where its archive lies.
    pub archive_directory: Option<String>,
    /// Why its archive is not complete.
    pub archive_error: Option<String>,
    /// Why it did not go on.
    pub error: Option<String>,
    /// Which one it repeats.
    pub resubmitted_from: Option<Number>,
    /// Whether its text held secrets.
    pub has_secrets: bool,
}

/// A change of a workload's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateChange {
    /// Into which state.
    pub state: State,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Something that was said of a workload while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// `note`, `warning`, `stage` or `error`.
    pub level: String,
    /// What.
    pub text: String,
}

/// A workload as it was submitted.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its text without secrets.
    pub text: String,
    /// What the file is called that it came in.
    pub file_name: Option<String>,
    /// How it is understood, as YAML.
    pub explained: String,
    /// What is known of it before it runs.
    pub facts: Facts,
}

const COLUMNS: &str = "number, name, kind, state, place, user, submitted_ms, started_ms, ended_ms, \
    operations, stages_count, run_directory, archive_directory, archive_error, error, \
    resubmitted_from, has_secrets, ops_count, ops_failed_count, bytes_count";

fn read_entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (kind, state): (String, String) = (row.get(2)?, row.get(3)?);
    let operations: String = row.get(9)?;
    Ok(Entry {
        number: Number(row.get(0)?),
        name: row.get(1)?,
        kind: SourceKind::of_name(&kind).ok_or_else(|| unknown(2, &kind))?,
        state: State::of_name(&state).ok_or_else(|| unknown(3, &state))?,
        place: row.get(4)?,
        user: row.get(5)?,
        submitted_ms: row.get(6)?,
        started_ms: row.get(7)?,
        ended_ms: row.get(8)?,
        operations: operations.split_whitespace().map(str::to_owned).collect(),
        stages_count: row.get(10)?,
        run_directory: row.get(11)?,
        archive_directory: row.get(12)?,
        archive_error: row.get(13)?,
        error: row.get(14)?,
        resubmitted_from: row.get::<_, Option<i64>>(15)?.map(Number),
        has_secrets: row.get(16)?,
        ops_count: row.get(17)?,
        ops_failed_count: row.get(18)?,
        bytes_count: row.get(19)?,
    })
}

/// A word that no version of this program has written.
fn unknown(column: usize, word: &str) -> rusqlite::Error {
    let error = format!("`{word}` is unknown");
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}

pub(super) fn entry(connection: &Connection, number: Number) -> Result<Option<Entry>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM workload WHERE number = ?1");
    Ok(connection.query_row(&sql, [number.0], read_entry).optional()?)
}

pub(super) fn source(
    connection: &Connection,
    number: Number,
) -> Result<Option<Source>, StoreError> {
    let sql = "SELECT text, file_name, explained, facts FROM source WHERE number = ?1";
    let found = connection.query_row(sql, [number.0], |row| {
        let facts: String = row.get(3)?;
        let facts = serde_json::from_str(&facts).map_err(|_| unknown(3, &facts))?;
        Ok(Source { text: row.get(0)?, file_name: row.get(1)?, explained: row.get(2)?, facts })
    });
    Ok(found.optional()?)
}

pub(super) fn active(connection: &Connection) -> Result<Vec<Entry>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM workload WHERE state IN ('running', 'queued') \
         ORDER BY state = 'queued', place"
    );
    let mut query = connection.prepare(&sql)?;
    let found = query.query_map([], read_entry)?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn list(
    connection: &Connection,
    filter: &Filter,
) -> Result<(Vec<Entry>, i64), StoreError> {
    let (mut wheres, mut values) = (vec!["1".to_owned()], Vec::new());
    if let Some(text) = filter.text.as_deref().filter(|text| !text.is_empty()) {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        values.push(Value::Text(format!("%{escaped}%")));
        wheres.push(
            "(name LIKE ?1 ESCAPE '\\' OR 'w' || number LIKE ?1 ESCAPE '\\' \
             OR operations LIKE ?1 ESCAPE '\\' OR user LIKE ?1 ESCAPE '\\')"
                .to_owned(),
        );
    }
    if !filter.states.is_empty() {
        // Names of states are ours, and no text of anybody.
        let names: Vec<String> =
            filter.states.iter().map(|state| format!("'{}'", state.name())).collect();
        wheres.push(format!("state IN ({})", names.join(", ")));
    }
    if let Some(kind) = filter.kind {
        wheres.push(format!("kind = '{}'", kind.name()));
    }
    let wheres = wheres.join(" AND ");
    let count = format!("SELECT COUNT(*) FROM workload WHERE {wheres}");
    let total = connection.query_row(&count, params_from_iter(&values), |row| row.get(0))?;
    let key = match filter.sort {
        Sort::Submitted => "number",
        Sort::Duration => "COALESCE(ended_ms - started_ms, 0)",
        Sort::Name => "name COLLATE NOCASE",
        Sort::State => "state",
    };
    let order = if filter.is_rising { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT {COLUMNS} FROM workload WHERE {wheres} ORDER BY {key} {order}, number {order} \
         LIMIT {} OFFSET {}",
        filter.limit, filter.offset
    );
    let mut query = connection.prepare(&sql)?;
    let found = query.query_map(params_from_iter(&values), read_entry)?;
    Ok((found.collect::<Result<_, _>>()?, total))
}

pub(super) fn counts(connection: &Connection) -> Result<Vec<(State, i64)>, StoreError> {
    let mut query = connection.prepare("SELECT state, COUNT(*) FROM workload GROUP BY state")?;
    let found = query.query_map([], |row| {
        let state: String = row.get(0)?;
        Ok((State::of_name(&state).ok_or_else(|| unknown(0, &state))?, row.get(1)?))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn changes(
    connection: &Connection,
    number: Number,
) -> Result<Vec<StateChange>, StoreError> {
    let sql = "SELECT state, at_ms FROM state_change WHERE number = ?1 ORDER BY rowid";
    let mut query = connection.prepare(sql)?;
    let found = query.query_map([number.0], |row| {
        let state: String = row.get(0)?;
        let state = State::of_name(&state).ok_or_else(|| unknown(0, &state))?;
        Ok(StateChange { state, at_ms: row.get(1)? })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn remarks(connection: &Connection, number: Number) -> Result<Vec<Remark>, StoreError> {
    let sql = "SELECT at_ms, level, text FROM remark WHERE number = ?1 ORDER BY rowid";
    let mut query = connection.prepare(sql)?;
    let found = query.query_map([number.0], |row| {
        Ok(Remark { at_ms: row.get(0)?, level: row.get(1)?, text: row.get(2)? })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
