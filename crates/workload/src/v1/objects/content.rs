//! The objects as written: how large they are and what they hold.

use serde::{Deserialize, Serialize};

use crate::DataFileSpec;
use crate::sizes::PUT_BYTES_MAX;

/// What there is when the measured stage begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SizeBarSpec {
    /// The largest size in the bar.
    pub up_to_bytes: u64,
    /// How often the bar is taken, relative to the others.
    pub weight: u64,
}

/// What objects hold.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl GeneratorSpec {
    fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

impl SizeSpec {
    /// Returns the largest size that there can be.
    pub(crate) fn max(&self) -> u64 {
        match self {
            Self::FixedBytes(size) | Self::LogUniform { max_bytes: size, .. } => *size,
            Self::Histogram(bars) => bars.iter().map(|bar| bar.up_to_bytes).max().unwrap_or(0),
            Self::Lognormal { .. } => PUT_BYTES_MAX,
            Self::List(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }
}
