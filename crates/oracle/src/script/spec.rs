//! The script as written: YAML, versioned. Durations are texts such as `2ms` or `1m30s`, shares
//! are numbers from 0 to 1.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a scripted store does.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Script"))]
pub(crate) struct ScriptSpec {
    /// `plimsoll.oracle/1`.
    pub(crate) schema: String,
    /// How long serving an operation takes.
    pub(crate) service: ServiceSpec,
    /// Kinds of operation that are served otherwise; each stands in the place of all of `service`.
    #[serde(default)]
    pub(crate) kinds: KindsSpec<ServiceSpec>,
    /// How many operations are served at once, the others waiting in one queue, first come first
    /// served; absent: any number.
    pub(crate) servers: Option<u32>,
    /// How many operations may wait; one that would have to wait beyond them is answered 503
    /// SlowDown. Needs `servers`; absent: any number.
    pub(crate) queue_max: Option<u32>,
    /// Operations above this rate are answered 503 SlowDown.
    pub(crate) rate_cap: Option<RateCapSpec>,
    /// How long after its arrival an operation is answered that `queue_max` or `rate_cap` turns
    /// away; absent: `1ms`.
    pub(crate) refusal_time: Option<String>,
    /// Stretches in which nothing makes progress.
    pub(crate) stalls: Option<StallsSpec>,
    /// Stretches in which serving takes longer.
    #[serde(default)]
    pub(crate) brownouts: Vec<BrownoutSpec>,
    /// The store falls into a state in which it is slow and stays there under load that it carried
    /// before. Needs `servers`.
    pub(crate) collapse: Option<CollapseSpec>,
    /// So many operations at the beginning are served without fault or lie and are not turned
    /// away, so that a run can prepare its objects; they do not count for `plant`.
    #[serde(default)]
    pub(crate) grace_count: u64,
    /// Failures by kind of operation; the entry of a kind stands in the place of all of `all`.
    #[serde(default)]
    pub(crate) faults: KindsSpec<FaultsSpec>,
    /// Answers that look right and are not.
    #[serde(default)]
    pub(crate) lies: LiesSpec,
    /// An exact number of wrong answers.
    pub(crate) plant: Option<PlantSpec>,
    /// What only a SeaweedFS does; other stores pass it over.
    pub(crate) seaweed: Option<SeaweedSpec>,
}

/// What only a SeaweedFS does: its masters and its volume servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SeaweedSpec {
    /// How masters give file ids.
    pub(crate) assign: AssignSpec,
    /// How long volumes are being made when the first file id of a collection is asked for; absent:
    /// they are there at once.
    pub(crate) growth: Option<GrowthSpec>,
    /// Changes of who leads; at the beginning it is master 0.
    pub(crate) leaders: Vec<LeaderSpec>,
    /// Volume servers that are away for a while.
    pub(crate) away: Vec<AwaySpec>,
}

/// How masters give file ids; the failures are shares of what is asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AssignSpec {
    /// How long it takes; absent: no time.
    pub(crate) time: Option<DistributionSpec>,
    /// Volumes are being made ("volume growth in progress").
    pub(crate) growing: f64,
    /// No volume can be made ("no free volumes left").
    pub(crate) full: f64,
    /// The master fails.
    pub(crate) failed: f64,
    /// Nothing is ever answered.
    pub(crate) silent: f64,
    /// The token is no longer valid; where there are tokens.
    pub(crate) expired_token: f64,
    /// The token is that of another file; where there are tokens.
    pub(crate) wrong_token: f64,
}

/// How long volumes are being made, by the first ids that are asked for or by time.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum GrowthSpec {
    /// So many requests for ids are refused, the one that began it among them.
    Assigns(u64),
    /// They are refused for so long.
    Lasting(String),
}

/// A change of who leads: either `at` a time or `after_assigns`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaderSpec {
    /// When, counted as the offset of stalls.
    pub(crate) at: Option<String>,
    /// When so many requests for ids have come.
    pub(crate) after_assigns: Option<u64>,
    /// Which master leads from then on, from 0; absent: none does.
    pub(crate) master: Option<u32>,
}

/// A stretch in which a volume server is away: its connections are closed, new ones refused.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AwaySpec {
    /// Which, from 0.
    pub(crate) server: u32,
    /// When it goes, counted as the offset of stalls.
    pub(crate) from: String,
    /// How long it is away.
    pub(crate) lasting: String,
    /// Whether the masters do not notice, and go on naming it.
    #[serde(default)]
    pub(crate) unnoticed: bool,
}

/// One entry per kind of operation.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct KindsSpec<T> {
    /// Every kind without an entry of its own; what cannot happen to one is left out for it. Only
    /// for `faults`.
    pub(crate) all: Option<T>,
    /// Reading an object or a range of it.
    pub(crate) get: Option<T>,
    /// Writing an object.
    pub(crate) put: Option<T>,
    /// Removing objects.
    pub(crate) delete: Option<T>,
    /// Listing.
    pub(crate) list: Option<T>,
    /// Reading the properties of an object or a file.
    pub(crate) stat: Option<T>,
    /// Adding to an object.
    pub(crate) append: Option<T>,
    /// Writing an object, or one content under several keys, by a form.
    pub(crate) post: Option<T>,
    /// Setting until when an object is kept, a legal hold on it, or its tags.
    pub(crate) retention: Option<T>,
    /// Beginning an upload in parts.
    pub(crate) create_upload: Option<T>,
    /// Writing one part.
    pub(crate) put_part: Option<T>,
    /// Making an object of the parts.
    pub(crate) complete_upload: Option<T>,
    /// Giving an upload in parts up.
    pub(crate) abort_upload: Option<T>,
    /// Reading a block of a file.
    pub(crate) read: Option<T>,
    /// Writing a block of a file.
    pub(crate) write: Option<T>,
    /// Putting a file on the medium.
    pub(crate) sync: Option<T>,
    /// Making a file.
    pub(crate) create: Option<T>,
    /// Opening and reading a file.
    pub(crate) open: Option<T>,
    /// Removing a file.
    pub(crate) unlink: Option<T>,
    /// Giving a file another name.
    pub(crate) rename: Option<T>,
    /// Making a directory.
    pub(crate) mkdir: Option<T>,
    /// Removing a directory.
    pub(crate) rmdir: Option<T>,
}

impl<T> Default for KindsSpec<T> {
    fn default() -> Self {
        Self {
            all: None,
            get: None,
            put: None,
            delete: None,
            list: None,
            stat: None,
            append: None,
            post: None,
            retention: None,
            create_upload: None,
            put_part: None,
            complete_upload: None,
            abort_upload: None,
            read: None,
            write: None,
            sync: None,
            create: None,
            open: None,
            unlink: None,
            rename: None,
            mkdir: None,
            rmdir: None,
        }
    }
}

/// How long serving takes.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceSpec {
    /// The distribution of the time.
    pub(crate) time: DistributionSpec,
    /// Time added for each content byte: a duration such as `2ns`, or a rate such as `200MiB/s`.
    pub(crate) per_byte: Option<String>,
    /// Serving gets slower as time goes by.
    pub(crate) drift: Option<DriftSpec>,
    /// When the first byte of the answer goes out; absent: with the last one.
    pub(crate) first_byte: Option<FirstByteSpec>,
}

/// A distribution of times.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum DistributionSpec {
    /// Always the same.
    Constant(String),
    /// Every time between both ends is equally likely.
    Uniform {
        /// The shortest.
        from: String,
        /// The longest.
        to: String,
    },
    /// Memoryless.
    Exponential {
        /// The mean.
        mean: String,
    },
    /// The logarithm has a normal distribution. Takes either `median` or `mean`.
    Lognormal {
        /// The median.
        median: Option<String>,
        /// The mean.
        mean: Option<String>,
        /// The standard deviation of the natural logarithm, above 0.
        sigma: f64,
    },
    /// A heavy tail: the chance of more than x is (scale / x)^shape.
    Pareto {
        /// The shortest.
        scale: String,
        /// The smaller, the heavier the tail; at 1 and below the mean is infinite.
        shape: f64,
    },
    /// One of two distributions.
    Bimodal {
        /// The one.
        first: Box<DistributionSpec>,
        /// The other.
        second: Box<DistributionSpec>,
        /// The share of operations that take `first`.
        share: f64,
    },
}

/// Serving gets slower as time goes by.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DriftSpec {
    /// How many percent of the time at the start each minute adds.
    pub(crate) percent_per_minute: f64,
}

/// When the first byte of the answer goes out.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum FirstByteSpec {
    /// After this share of the time.
    Share(f64),
    /// After this much time, which comes on top of the distribution's.
    Delay(String),
}

/// A limit of the rate (token bucket).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RateCapSpec {
    /// How many operations a second are let in.
    pub(crate) ops_per_sec: f64,
    /// How many may come at once after a pause; absent: 1.
    pub(crate) burst: Option<u32>,
}

/// Stretches in which nothing makes progress: what arrives or is being served goes on afterwards.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StallsSpec {
    /// From the beginning of one to the beginning of the next.
    pub(crate) every: String,
    /// How long each is, less than `every`.
    pub(crate) lasting: String,
    /// When the first begins, counted from the run's epoch (over loopback: the server's start);
    /// absent: after `every`.
    pub(crate) offset: Option<String>,
}

/// A stretch in which serving takes longer.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct BrownoutSpec {
    /// When it begins, counted as the offset of stalls.
    pub(crate) from: String,
    /// How long it is.
    pub(crate) lasting: String,
    /// When it comes back, from beginning to beginning; absent: never.
    pub(crate) every: Option<String>,
    /// How many times as long an operation takes whose service begins within.
    pub(crate) factor: f64,
}

/// A store that falls into a slow state and stays there under load: a metastable failure (N.
/// Bronson and others, *Metastable Failures in Distributed Systems*, HotOS 2021).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CollapseSpec {
    /// It falls when an operation waits longer than this for a server.
    pub(crate) above: String,
    /// How many times as long serving takes then.
    pub(crate) factor: f64,
    /// It is back when no operation has waited longer than this,
    pub(crate) calm: String,
    /// for so long.
    pub(crate) lasting: String,
}

/// Failures by share of the operations.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FaultsSpec {
    /// 503 SlowDown.
    pub(crate) slow_down: f64,
    /// Other statuses from 400 to 599.
    pub(crate) status: BTreeMap<u16, f64>,
    /// The connection is reset before anything is answered.
    pub(crate) reset: f64,
    /// The connection ends in the middle of the answer's body (get, list); half of the block is
    /// read (read).
    pub(crate) half_body: f64,
    /// The answer states and holds more bytes than the object has (get).
    pub(crate) wrong_length: f64,
    /// A 200 whose body is an error document (not stat, which has no body).
    pub(crate) error_in_success: f64,
    /// Nothing is ever answered: the client's time limit strikes.
    pub(crate) silence: f64,
    /// The medium fails (`EIO`); for operations on files.
    pub(crate) io: f64,
}

/// Lies by share of the operations that they fit; one that cannot be told is not told.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LiesSpec {
    /// Get, read: the content of another object.
    pub(crate) other_key: f64,
    /// Get, read: the content before the last write.
    pub(crate) old_version: f64,
    /// Get, read: the object's content from another offset.
    pub(crate) shifted: f64,
    /// Get, read: zeros.
    pub(crate) zeroed: f64,
    /// Get, read: right up to a point, from there on an older version or another object.
    pub(crate) torn: f64,
    /// Get, read: right but for one bit.
    pub(crate) flipped: f64,
    /// Put, delete: acknowledged, and not done.
    pub(crate) lost_write: f64,
    /// Get, stat: answered as before the last write or delete of the key.
    pub(crate) stale_read: f64,
    /// List: one entry is left out.
    pub(crate) list_omission: f64,
    /// List: one entry too many, of a deleted object where there is one.
    pub(crate) list_ghost: f64,
    /// Put, of SeaweedFS: done, and acknowledged with the checksum of other content.
    pub(crate) wrong_tag: f64,
    /// Put, of SeaweedFS: acknowledged, and one of several copies is not there.
    pub(crate) lost_copy: f64,
}

/// An exact number of wrong answers.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PlantSpec {
    /// How many.
    pub(crate) count: u64,
    /// Among how many operations that one of `kinds` fits, from the first one on; the seed spreads
    /// them.
    pub(crate) of: u64,
    /// Which, in even shares: names of `lies`, `half_body`, `wrong_length`.
    pub(crate) kinds: Vec<String>,
}
