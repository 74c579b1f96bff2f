//! Histograms as they stand in `summary.json`.

use serde::{Deserialize, Serialize};

/// A histogram of at least one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Histogram {
    /// How many values.
    pub count: u64,
    /// Their exact sum, as decimal digits: it may need 128 bits.
    pub sum: String,
    /// The exact sum of their squares, as decimal digits.
    pub sum_of_squares: String,
    /// The smallest value, exactly.
    pub min: u64,
    /// The largest value, exactly.
    pub max: u64,
    /// Pairs of a bin's lowest value and how many values it holds, lowest first; bins without any
    /// are left out.
    pub bins: Vec<[u64; 2]>,
}

/// A histogram that is written as [`Histogram`] and held in its compact form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Histogram", try_from = "Histogram")]
pub struct StoredHistogram(pub plimsoll_stats::CompactHistogram);

impl From<StoredHistogram> for Histogram {
    fn from(StoredHistogram(stored): StoredHistogram) -> Self {
        let (min, max) = stored.min_max().expect("an empty histogram is stored as null");
        Self {
            count: stored.count(),
            sum: stored.sum().to_string(),
            sum_of_squares: stored.sum_of_squares().to_string(),
            min,
            max,
            bins: stored.bins().map(|bin| [bin.lowest, bin.count]).collect(),
        }
    }
}

impl TryFrom<Histogram> for StoredHistogram {
    type Error = String;

    fn try_from(file: Histogram) -> Result<Self, String> {
        let number = |digits: &str| {
            digits.parse::<u128>().map_err(|_| format!("`{digits}` is not a whole number"))
        };
        let (sum, sum_of_squares) = (number(&file.sum)?, number(&file.sum_of_squares)?);
        let total = file.bins.iter().try_fold(0u64, |total, bin| total.checked_add(bin[1]));
        if total != Some(file.count) {
            return Err(format!("the bins do not add up to the count {}", file.count));
        }
        let bins = file.bins.iter().map(|&[lowest, count]| plimsoll_stats::Bin { lowest, count });
        let min_max = Some((file.min, file.max));
        plimsoll_stats::CompactHistogram::from_parts(bins, sum, sum_of_squares, min_max)
            .map(Self)
            .ok_or_else(|| "a histogram contradicts itself".to_owned())
    }
}
