//! The objects as written: how large they are and what they hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::invalid;
use crate::data::{COMPRESS_RATIO_MAX, DEDUPE_RATIO_MAX, DataRule};
use crate::sizes::{PUT_BYTES_MAX, SIGMA_MAX, is_sigma};
use crate::{InvalidWorkload, SizeBar, SizeDist};

/// The longest list of sizes.
const SIZES_MAX: usize = 1_000_000;
/// The most versions of one object that are prepared.
const VERSIONS_MAX: u32 = 10_000;

/// What there is when the measured stage begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectsSpec {
    /// How many objects the prepare stage uploads; of `multipart` how many parts, of `zip` how many
    /// files.
    pub count: u64,
    /// How large they, and objects written later, are: what one operation moves, so of `multipart`
    /// and `multipart_put` a part, of `append` what is added, of `zip` and `snowball` a file.
    pub size: SizeSpec,
    /// How many versions of each object the prepare stage uploads. With more than one, operations
    /// are about one version of an object by its name at the store.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub versions: u32,
    /// Instead of uploading, take what is already there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingSpec>,
    /// What they hold.
    #[serde(default, skip_serializing_if = "GeneratorSpec::is_random")]
    pub generator: GeneratorSpec,
    /// By how much zstd -1 compresses random content; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress_ratio: Option<f64>,
    /// How many blocks of 4 KiB random content has for each distinct one; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_ratio: Option<f64>,
}

fn one() -> u32 {
    1
}

fn is_one(versions: &u32) -> bool {
    *versions == 1
}

impl Default for ObjectsSpec {
    /// Returns no objects, each of one byte.
    fn default() -> Self {
        Self {
            count: 0,
            size: SizeSpec::FixedBytes(1),
            versions: 1,
            existing: None,
            generator: GeneratorSpec::Random,
            compress_ratio: None,
            dedupe_ratio: None,
        }
    }
}

/// Objects that were there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExistingSpec {
    /// At most this many; all when absent.
    pub limit: Option<u64>,
    /// Whether to look below `/` too.
    pub recursive: bool,
    /// Whether they may be removed. A run that does so asks for leave once more when it is started.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub destroys: bool,
}

/// How large objects are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SizeSpec {
    /// All of one size.
    FixedBytes(u64),
    /// Every doubling between both ends is equally likely.
    LogUniform {
        /// The smallest size.
        min_bytes: u64,
        /// The largest size.
        max_bytes: u64,
    },
    /// A bar by weight, then evenly within the bar.
    Histogram(Vec<SizeBarSpec>),
    /// The logarithm is normally distributed; nothing is above 5 GiB.
    Lognormal {
        /// Half of the sizes are below it.
        median_bytes: u64,
        /// The standard deviation of the natural logarithm, at most 8.
        sigma: f64,
    },
    /// These sizes in bytes, each as likely as the next.
    List(Vec<u64>),
}

/// One bar: sizes above the previous bar's up to this one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeBarSpec {
    /// The largest size in the bar.
    pub up_to_bytes: u64,
    /// How often the bar is taken, relative to the others.
    pub weight: u64,
}

/// What objects hold.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum GeneratorSpec {
    /// Random bytes.
    #[default]
    Random,
    /// Zeros.
    Zero,
    /// Letters.
    Text,
    /// The bytes of these files, one after the other and over again.
    Files(Vec<DataFileSpec>),
}

/// One file that objects are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFileSpec {
    /// Where it lies.
    pub path: String,
    /// How large it is.
    pub bytes: u64,
}

impl GeneratorSpec {
    fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

impl SizeSpec {
    pub(crate) fn lower(&self) -> SizeDist {
        match self {
            Self::FixedBytes(size) => SizeDist::Fixed(*size),
            Self::LogUniform { min_bytes, max_bytes } => {
                SizeDist::LogUniform { min: *min_bytes, max: *max_bytes }
            }
            Self::Histogram(bars) => {
                let mut bars: Vec<SizeBar> = bars
                    .iter()
                    .map(|bar| SizeBar { up_to: bar.up_to_bytes, weight: bar.weight })
                    .collect();
                bars.sort_by_key(|bar| bar.up_to);
                SizeDist::Histogram(bars)
            }
            Self::Lognormal { median_bytes, sigma } => {
                SizeDist::LogNormal { median: *median_bytes, sigma: *sigma }
            }
            Self::List(sizes) => SizeDist::List(sizes.as_slice().into()),
        }
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        let sizes = match self {
            Self::FixedBytes(size) => vec![*size],
            Self::LogUniform { min_bytes, max_bytes } => {
                if min_bytes > max_bytes {
                    return invalid("objects.size", "the minimum is above the maximum");
                }
                vec![*min_bytes, *max_bytes]
            }
            Self::Histogram(bars) => {
                if bars.is_empty() || bars.iter().any(|bar| bar.weight == 0) {
                    return invalid("objects.size", "needs bars, each with a weight above 0");
                }
                bars.iter().map(|bar| bar.up_to_bytes).collect()
            }
            Self::Lognormal { median_bytes, sigma } => {
                if !is_sigma(*sigma) {
                    let reason = format!("the deviation must be above 0 and at most {SIGMA_MAX}");
                    return invalid("objects.size", reason);
                }
                vec![*median_bytes]
            }
            Self::List(sizes) => {
                if !(1..=SIZES_MAX).contains(&sizes.len()) {
                    let reason = format!("a list must hold 1 to {SIZES_MAX} sizes");
                    return invalid("objects.size", reason);
                }
                sizes.clone()
            }
        };
        if sizes.contains(&0) {
            return invalid("objects.size", "must be at least 1 byte");
        }
        if sizes.iter().any(|size| *size > PUT_BYTES_MAX) {
            return invalid("objects.size", "one PUT writes at most 5GiB");
        }
        Ok(())
    }
}

impl From<&SizeDist> for SizeSpec {
    fn from(dist: &SizeDist) -> Self {
        match dist {
            SizeDist::Fixed(size) => Self::FixedBytes(*size),
            SizeDist::LogUniform { min, max } => {
                Self::LogUniform { min_bytes: *min, max_bytes: *max }
            }
            SizeDist::Histogram(bars) => {
                let bar =
                    |bar: &SizeBar| SizeBarSpec { up_to_bytes: bar.up_to, weight: bar.weight };
                Self::Histogram(bars.iter().map(bar).collect())
            }
            SizeDist::LogNormal { median, sigma } => {
                Self::Lognormal { median_bytes: *median, sigma: *sigma }
            }
            SizeDist::List(sizes) => Self::List(sizes.to_vec()),
        }
    }
}

impl ObjectsSpec {
    /// Tells what is wrong with sizes and versions.
    pub(super) fn check(&self) -> Result<(), InvalidWorkload> {
        self.size.check()?;
        if !(1..=VERSIONS_MAX).contains(&self.versions) {
            return invalid("objects.versions", format!("must be 1 to {VERSIONS_MAX}"));
        }
        Ok(())
    }

    /// Returns what the objects hold.
    pub(super) fn lower_data(&self) -> Result<DataRule, InvalidWorkload> {
        let per_mille = |field: &'static str, ratio: Option<f64>, max: f64| {
            let ratio = ratio.unwrap_or(1.0);
            if !(1.0..=max).contains(&ratio) {
                return invalid(field, format!("must be 1 to {max}"));
            }
            if ratio > 1.0 && !self.generator.is_random() {
                return invalid(field, "needs random content; leave the generator at random");
            }
            Ok((ratio * 1_000.0).round() as u32)
        };
        let compress =
            per_mille("objects.compress_ratio", self.compress_ratio, COMPRESS_RATIO_MAX)?;
        let dedupe = per_mille("objects.dedupe_ratio", self.dedupe_ratio, DEDUPE_RATIO_MAX)?;
        Ok(match &self.generator {
            GeneratorSpec::Random if (compress, dedupe) == (1_000, 1_000) => DataRule::Random,
            GeneratorSpec::Random => {
                DataRule::Shaped { compress_per_mille: compress, dedupe_per_mille: dedupe }
            }
            GeneratorSpec::Zero => DataRule::Zero,
            GeneratorSpec::Text => DataRule::Text,
            GeneratorSpec::Files(files) => {
                let bytes = files.iter().map(|file| file.bytes).sum();
                if bytes == 0 {
                    return invalid("objects.generator", "the files hold nothing to upload");
                }
                DataRule::Files { bytes }
            }
        })
    }
}
