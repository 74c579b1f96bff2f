//! The workload of a run, read once.

use plimsoll_workload::plan::{Plan, WORKLOAD_SCHEMA, WorkloadFile};
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The workload of a run: what was asked for, not what came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedWorkload {
    /// One of `plimsoll.workload/2`.
    Known(Box<WorkloadFile>),
    /// What another tool's record says. Of merged runs that differ in their workload it holds what
    /// they have in common.
    Unknown(Value),
}

impl RecordedWorkload {
    /// Returns the workload, where it is known.
    pub fn file(&self) -> Option<&WorkloadFile> {
        match self {
            Self::Known(file) => Some(file),
            Self::Unknown(_) => None,
        }
    }

    /// Returns whether a build of before the first release wrote it. `is_as_written`: the checksum
    /// of the record vouches that nobody has edited it.
    pub(crate) fn is_of_before_release(&self, is_as_written: bool) -> bool {
        let Self::Unknown(value) = self else { return false };
        match value["schema"].as_str() {
            Some("plimsoll.files/1" | "plimsoll.workload/1") => true,
            // Other forms had today's number; what has been edited may only have a slip in it.
            Some(WORKLOAD_SCHEMA) => is_as_written,
            _ => false,
        }
    }

    /// Returns what it means, where it is known and sound.
    pub fn plan(&self) -> Option<Plan> {
        self.file()?.recorded().ok()
    }

    /// Returns what it is called, also where no more of it is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Known(file) => Some(&file.name),
            Self::Unknown(value) => value["name"].as_str(),
        }
    }

    /// Returns it as it is written.
    pub fn to_value(&self) -> Value {
        match self {
            // A workload has text keys and finite numbers.
            Self::Known(file) => serde_json::to_value(file).unwrap_or_default(),
            Self::Unknown(value) => value.clone(),
        }
    }

    fn read(value: &Value) -> Option<WorkloadFile> {
        match value["schema"].as_str()? {
            WORKLOAD_SCHEMA => serde_json::from_value(value.clone()).ok(),
            _ => None,
        }
    }
}

impl From<Value> for RecordedWorkload {
    fn from(value: Value) -> Self {
        let file = Self::read(&value);
        file.map_or(Self::Unknown(value), |file| Self::Known(Box::new(file)))
    }
}

impl From<WorkloadFile> for RecordedWorkload {
    fn from(file: WorkloadFile) -> Self {
        Self::Known(Box::new(file))
    }
}

impl Serialize for RecordedWorkload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(file) => file.serialize(to),
            Self::Unknown(value) => value.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for RecordedWorkload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Self::from)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for RecordedWorkload {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RecordedWorkload".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// Its own schema is `docs/formats/workload-2.json`.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}
