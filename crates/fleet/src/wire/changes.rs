//! What a stage has changed, as it travels.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_conduct::Changes;
use plimsoll_engine::ServerNames;
use plimsoll_model::ObjectId;
use plimsoll_workload::files::{FileChanges, NamesThere, Told};
use plimsoll_workload::objects::{Change, Held};
use plimsoll_workload::plan::SetIndex;
use serde::{Deserialize, Serialize};

/// What a stage has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesDoc {
    /// By set, who is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<(usize, ChangeDoc)>,
    /// What stores call versions of objects: by set, object, version, versions of each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<(usize, u64, u32, u32, String)>,
    /// Workers that have filled all their files: by job on files, from one to before another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    filled: Vec<(usize, u32, u32)>,
    /// Names of files and directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    there: Vec<ThereDoc>,
}

/// As [`NamesThere`] has them: rows of numbers, from one to before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ThereDoc {
    job: usize,
    of_tree: bool,
    place: u64,
    made: Vec<(u64, u64)>,
    begun: Vec<(u64, u64)>,
}

impl ThereDoc {
    fn of(there: &NamesThere) -> Self {
        let rows = |rows: &[Range<u64>]| rows.iter().map(|row| (row.start, row.end)).collect();
        let NamesThere { job, of_tree, place, names } = there;
        let (made, begun) = (rows(&names.made), rows(&names.begun));
        Self { job: *job, of_tree: *of_tree, place: *place, made, begun }
    }

    fn there(self) -> NamesThere {
        let rows = |rows: Vec<(u64, u64)>| rows.into_iter().map(|(start, end)| start..end);
        let Self { job, of_tree, place, made, begun } = self;
        let names = Told { made: rows(made).collect(), begun: rows(begun).collect() };
        NamesThere { job, of_tree, place, names }
    }
}

/// As [`Change`] has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChangeDoc {
    Filled { worker: u32, workers: u32, done: u64, failed: Vec<u64> },
    Holds(Vec<(u64, u32)>),
    Numbered { owner: u32, law: u16, next: u64 },
    Put { owner: u32, law: u16, from: u64, to: u64, failed: Vec<u64> },
    Doubtful(Vec<u64>),
}

impl ChangeDoc {
    fn of(change: &Change) -> Self {
        match change.clone() {
            Change::Filled { worker, workers, done, failed } => {
                Self::Filled { worker, workers, done, failed }
            }
            Change::Holds(held) => {
                Self::Holds(held.iter().map(|held| (held.id.as_u64(), held.version)).collect())
            }
            Change::Numbered { owner, law, next } => Self::Numbered { owner, law, next },
            Change::Put { owner, law, from, to, failed } => {
                Self::Put { owner, law, from, to, failed }
            }
            Change::Doubtful(ids) => Self::Doubtful(ids.iter().map(|id| id.as_u64()).collect()),
        }
    }

    fn change(self) -> Option<Change> {
        Some(match self {
            Self::Filled { worker, workers, done, failed } => {
                Change::Filled { worker, workers, done, failed }
            }
            Self::Holds(held) => {
                let held = held
                    .into_iter()
                    .map(|(id, version)| Some(Held { id: ObjectId::from_u64(id)?, version }));
                Change::Holds(held.collect::<Option<_>>()?)
            }
            Self::Numbered { owner, law, next } => Change::Numbered { owner, law, next },
            Self::Put { owner, law, from, to, failed } => {
                Change::Put { owner, law, from, to, failed }
            }
            Self::Doubtful(ids) => {
                Change::Doubtful(ids.into_iter().map(ObjectId::from_u64).collect::<Option<_>>()?)
            }
        })
    }
}

impl ChangesDoc {
    /// Returns them, to be sent.
    pub fn of(changes: &Changes) -> Self {
        let members = changes.members.iter();
        let members = members.map(|(set, change)| (set.0, ChangeDoc::of(change))).collect();
        let mut names = Vec::new();
        for each in &changes.names {
            each.each(|set, id, version, versions, name| {
                names.push((set.0, id.as_u64(), version, versions, name.to_owned()));
            });
        }
        let filled = changes.files.filled.iter();
        let filled = filled.map(|(job, workers)| (*job, workers.start, workers.end)).collect();
        let there = changes.files.names.iter().map(ThereDoc::of).collect();
        Self { members, names, filled, there }
    }

    /// Returns them as they were sent; `None` where they mean nothing in a run with so many sets.
    pub fn changes(self, sets_count: usize) -> Option<Changes> {
        let set = |index: usize| (index < sets_count).then_some(SetIndex(index));
        let members = self.members.into_iter();
        let members = members.map(|(index, change)| Some((set(index)?, change.change()?)));
        let mut names = ServerNames::default();
        for (index, id, version, versions, name) in &self.names {
            names.note(set(*index)?, ObjectId::from_u64(*id)?, *version, *versions, name);
        }
        let names = if names.is_empty() { Vec::new() } else { vec![Arc::new(names)] };
        let files = FileChanges {
            filled: self.filled.into_iter().map(|(job, from, to)| (job, from..to)).collect(),
            names: self.there.into_iter().map(ThereDoc::there).collect(),
        };
        Some(Changes { members: members.collect::<Option<_>>()?, names, files })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::WorkerId;

    use super::*;

    #[test]
    fn changes_come_back_as_they_went() {
        let id = ObjectId::new(WorkerId(3), 7);
        let members = vec![
            (SetIndex(0), Change::Filled { worker: 1, workers: 4, done: 9, failed: vec![2, 5] }),
            (SetIndex(1), Change::Holds(vec![Held { id, version: 2 }])),
            (SetIndex(1), Change::Numbered { owner: 1, law: 0, next: 77 }),
            (SetIndex(0), Change::Put { owner: 5, law: 1, from: 3, to: 9, failed: vec![4] }),
            (SetIndex(1), Change::Doubtful(vec![id])),
        ];
        let mut names = ServerNames::default();
        names.note(SetIndex(1), id, 0, 2, "3,01637037d6");
        names.note(SetIndex(1), id, 1, 2, "4,0263");
        let told = Told { made: vec![0..5, 7..9], begun: vec![0..10, 12..13] };
        let files = FileChanges {
            filled: vec![(1, 4..6)],
            names: vec![NamesThere { job: 0, of_tree: true, place: 3, names: told }],
        };
        let sent = ChangesDoc::of(&Changes {
            members: members.clone(),
            names: vec![Arc::new(names.clone())],
            files: files.clone(),
        });
        let text = serde_json::to_string(&sent).unwrap();
        let read: ChangesDoc = serde_json::from_str(&text).unwrap();
        let Changes { members: back, names: named, files: of_files } =
            read.clone().changes(2).unwrap();
        assert_eq!((back, of_files), (members, files));
        assert_eq!(*named[0], names);
        assert!(read.changes(1).is_none(), "there is no such set");
        let beyond = r#"{"members":[[0,{"doubtful":[18446744073709551615]}]]}"#;
        assert!(serde_json::from_str::<ChangesDoc>(beyond).unwrap().changes(1).is_none());
    }
}
