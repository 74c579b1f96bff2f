//! What the manifest says of pages on which a store told of itself.

use serde::{Deserialize, Serialize};

/// A page with a store's own metrics, which was read while the run lasted; what it said is in
/// `scraped.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedPage {
    /// Its address, without who asked and without what stood behind `?`.
    pub url: String,
    /// How often it was to be read.
    pub interval_ns: u64,
}
