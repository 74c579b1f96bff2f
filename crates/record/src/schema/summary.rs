//! The cells of `summary.json` as they stand in the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StoredHistogram;

/// The version of the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SummarySchema {
    /// The first version.
    #[default]
    #[serde(rename = "plimsoll.summary/1")]
    V1,
}

impl SummarySchema {
    /// The version this code writes and reads.
    pub const NAME: &'static str = "plimsoll.summary/1";
}

/// What happened in each interval of a run, kept in `summary.json`; summaries of parts of a run add
/// up exactly.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The version of this document.
    pub schema: SummarySchema,
    /// When interval 0 begins, counted from the run's epoch.
    pub origin_ns: u64,
    /// How long an interval is.
    pub interval_ns: u64,
    /// One series per stage, kind and endpoint that saw an operation, in that order.
    pub lanes: Vec<Series>,
}

/// The operations of one kind that one endpoint saw in one stage.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The stage, an index into the manifest's `stages`.
    pub stage: u8,
    /// The kind of operation, as in the op log.
    pub kind: String,
    /// The endpoint, an index into the manifest's `target.endpoints`.
    pub endpoint: u16,
    /// The intervals in which something happened, in order.
    pub cells: Vec<Cell>,
    /// The stretches of sixty intervals in which an operation succeeded, in order.
    pub times: Vec<Times>,
}

/// One interval of one series.
///
/// Bytes and objects are those of successes, shared by time between the intervals an operation
/// touched; everything else counts in the interval in which the operation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Which interval, 0-based.
    pub interval_index: u64,
    /// How many operations ended, by the class of their outcome; a class that is not named has
    /// none.
    pub ended: BTreeMap<String, u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// Objects handled, in millionths.
    pub objects_micro: u64,
}

/// The times of the successes that ended in a stretch of sixty intervals of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// The first interval of the stretch, a multiple of sixty.
    pub interval_index_first: u64,
    /// Latency (intended start to end); null without one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::Histogram>"))]
    pub latency_ns: Option<StoredHistogram>,
    /// Time to first byte; null where none is known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::Histogram>"))]
    pub ttfb_ns: Option<StoredHistogram>,
}
