//! Sizes, ranges, picks and limits as written.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::tree::{Tree, from_tree, scalar_or};
use crate::plan::units::{NumberRange, Size, SizeRange};

/// Zipf's exponent where none is said.
pub(crate) const THETA_DEFAULT: f64 = 0.99;

/// One value, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> OneOrMany<T> {
    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(value: T) -> Self {
        Self(vec![value])
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &*self.0 {
            [one] => one.serialize(to),
            many => many.serialize(to),
        }
    }
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            many @ Tree::List(_) => from_tree(many).map(Self),
            one => from_tree(one).map(|one| Self(vec![one])),
        }
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// Lets the schema of an object take shorter forms, too. Its description stays outside.
#[cfg(feature = "schema")]
pub(super) fn or_short(schema: &mut Schema, short: impl IntoIterator<Item = serde_json::Value>) {
    let description = schema.remove("description");
    let long = std::mem::take(schema).to_value();
    let forms: Vec<serde_json::Value> = short.into_iter().chain([long]).collect();
    schema.insert("anyOf".to_owned(), forms.into());
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
}

/// A limit: `1000` over all workers of the job, `{each: 1000}` for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Limit<T> {
    /// Over all workers of the job.
    All(T),
    /// For each of them.
    Each {
        /// The limit.
        each: T,
    },
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for Limit<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Each<T> {
            each: T,
        }
        let each = |limit: Each<T>| Self::Each { each: limit.each };
        scalar_or(Tree::deserialize(from)?, Self::All, each)
    }
}

/// Values with weights: `[{8MiB: 70}, {256MiB: 30}]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares<T>(pub Vec<Share<T>>);

/// A value and how often it is drawn, relative to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<T> {
    /// The value.
    pub value: T,
    /// How often.
    pub weight: u64,
}

impl<T: Display> Serialize for Shares<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct One<'a, T>(&'a Share<T>);
        impl<T: Display> Serialize for One<'_, T> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_map([(self.0.value.to_string(), self.0.weight)])
            }
        }
        to.collect_seq(self.0.iter().map(One))
    }
}

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for Shares<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = || D::Error::custom("must be a list of shares such as [{4KiB: 60}, {1MiB: 40}]");
        let Tree::List(entries) = Tree::deserialize(from)? else { return Err(form()) };
        let share = |(index, entry): (usize, Tree)| {
            let Tree::Map(fields) = entry else { return Err(form()) };
            let [(value, weight)] = <[(String, Tree); 1]>::try_from(fields).map_err(|_| form())?;
            let at = |reason: String| D::Error::custom(format!("field `[{index}]`: {reason}"));
            let value = value.parse().map_err(at)?;
            let weight = match weight {
                Tree::Int(weight) => u64::try_from(weight).ok(),
                _ => None,
            };
            let weight = weight.ok_or_else(|| at("a weight is a whole number".to_owned()))?;
            Ok(Share { value, weight })
        };
        entries.into_iter().enumerate().map(share).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(feature = "schema")]
impl<T> JsonSchema for Shares<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Shares".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let weight = schemars::json_schema!({ "type": "integer", "minimum": 0 });
        let share = schemars::json_schema!({
            "type": "object",
            "additionalProperties": weight,
            "minProperties": 1,
            "maxProperties": 1,
        });
        schemars::json_schema!({ "type": "array", "items": share, "minItems": 1 })
    }
}

/// How large members are: `10MiB`, or a law such as `{lognormal: {median: 16KiB, sigma: 1.5}}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SizeSpec {
    /// All of one size.
    Fixed(Size),
    /// Drawn for each of them.
    Drawn(SizeLaw),
}

impl<'de> Deserialize<'de> for SizeSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        scalar_or(Tree::deserialize(from)?, Self::Fixed, Self::Drawn)
    }
}

/// How sizes are drawn; the size of a member is a function of the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SizeLaw {
    /// Each as likely as the next: `1024..1087`.
    Uniform(SizeRange),
    /// Each doubling as likely as the next: `4KiB..1MiB`.
    LogUniform(SizeRange),
    /// The logarithm is normally distributed; nothing is above 5 GiB.
    Lognormal {
        /// Half of the sizes are below it.
        median: Size,
        /// The standard deviation of the natural logarithm; above 0 and at most 8.
        sigma: f64,
    },
    /// By weight from these sizes: `[{8MiB: 70}, {256MiB: 30}]`.
    Shares(Shares<Size>),
    /// By weight from bars, each from above the one before up to its size, evenly within:
    /// `[{4KiB: 3}, {1MiB: 1}]`. A bar of weight 0 says where the next begins.
    Histogram(Shares<Size>),
    /// From these sizes, each as likely as the next.
    List(Vec<Size>),
    /// So many times a unit, by weight from ranges of whole numbers, evenly within:
    /// `{unit: 1KB, numbers: [{1..64: 10}, {65..512: 20}]}`.
    Steps(SizeSteps),
}

/// Sizes that are multiples of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SizeSteps {
    /// The unit.
    pub unit: Size,
    /// How many times it, by weight.
    pub numbers: Shares<NumberRange>,
}

/// One file that objects are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DataFileSpec {
    /// Where it lies.
    #[serde(serialize_with = "super::names_what_is_sent")]
    pub path: String,
    /// How large it is.
    pub bytes: u64,
}

/// What members hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ContentSpec {
    /// Random bytes.
    #[default]
    Random,
    /// Zeros.
    Zero,
    /// Letters.
    Text,
    /// Random bytes that compress and deduplicate.
    Shaped {
        /// By how much zstd -1 compresses them; at least 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compress_ratio: Option<f64>,
        /// How many blocks of 4 KiB there are for each distinct one; at least 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dedupe_ratio: Option<f64>,
    },
    /// The bytes of these files, one after the other and over again.
    Files(Vec<DataFileSpec>),
}

impl ContentSpec {
    pub(super) fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

/// Which part of a member is read: `1MiB` at a random offset, `random`, a length that is drawn, or,
/// where the size is not known, `{length: 1MB, of: 10MB}`.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeSpec {
    /// A log-uniform length from 1/256 of the size up to the size, at a random offset.
    Random,
    /// This many bytes at a random offset.
    Fixed(Size),
    /// A length that is drawn, at a random offset.
    Drawn(LengthLaw),
    /// This many bytes at a random offset within the first so many.
    Within(RangeWithin),
}

/// A range within the first bytes of a member, however large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RangeWithin {
    /// How many bytes are read.
    pub length: Size,
    /// Within the first so many.
    pub of: Size,
}

/// How lengths are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum LengthLaw {
    /// Each as likely as the next: `4KiB..1MiB`.
    Uniform(SizeRange),
    /// Each doubling as likely as the next.
    LogUniform(SizeRange),
}

impl Serialize for RangeSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Random => to.serialize_str("random"),
            Self::Fixed(size) => size.serialize(to),
            Self::Drawn(law) => law.serialize(to),
            Self::Within(within) => within.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for RangeSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            Tree::Text(text) if text == "random" => Ok(Self::Random),
            tree if tree.get("length").or_else(|| tree.get("of")).is_some() => {
                from_tree(tree).map(Self::Within)
            }
            tree => scalar_or(tree, Self::Fixed, Self::Drawn),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for RangeSpec {
    fn schema_name() -> Cow<'static, str> {
        "RangeSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        let law = generator.subschema_for::<LengthLaw>();
        let within = generator.subschema_for::<RangeWithin>();
        schemars::json_schema!({
            "description": "Which part of a member is read: `1MiB` at a random offset, `random`, \
                            a length that is drawn, or {length: 1MB, of: 10MB}.",
            "anyOf": [{ "const": "random" }, size, law, within],
        })
    }
}

/// Which member an operation is about; of sets with buckets the bucket and the key may be chosen
/// apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PickSpec {
    /// Out of all members.
    Member(Choice),
    /// The bucket first, then the key in it.
    InBucket {
        /// How the bucket is chosen; `uniform` when left out.
        #[cfg_attr(feature = "schema", schemars(default))]
        bucket: Choice,
        /// How the key is chosen; `uniform` when left out.
        #[cfg_attr(feature = "schema", schemars(default))]
        key: Choice,
    },
}

impl<'de> Deserialize<'de> for PickSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Both {
            #[serde(default)]
            bucket: Choice,
            #[serde(default)]
            key: Choice,
        }
        let tree = Tree::deserialize(from)?;
        match tree.get("bucket").or_else(|| tree.get("key")) {
            None => from_tree(tree).map(Self::Member),
            Some(_) => from_tree(tree).map(|Both { bucket, key }| Self::InBucket { bucket, key }),
        }
    }
}

/// How one of several is chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Choice {
    /// Each as likely as the next.
    #[default]
    Uniform,
    /// By Zipf's law: the one of rank r in proportion to r^-theta. Above 0, at most 10 and not 1.
    Zipf(f64),
    /// One after the other, and again from the first; the workers take turns.
    Sequential,
    /// Each as likely as the next of those that the worker owns.
    Own,
    /// By weight from ranges of numbers, 1-based, evenly within: `[{1..10: 3}, {11..100: 1}]`.
    Shares(Shares<NumberRange>),
}

impl Choice {
    pub(super) fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum ChoiceLaw {
    /// By Zipf's law with this exponent.
    Zipf(f64),
    /// By weight from ranges of numbers.
    Shares(Shares<NumberRange>),
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Uniform => to.serialize_str("uniform"),
            Self::Sequential => to.serialize_str("sequential"),
            Self::Own => to.serialize_str("own"),
            Self::Zipf(theta) if *theta == THETA_DEFAULT => to.serialize_str("zipf"),
            Self::Zipf(theta) => ChoiceLaw::Zipf(*theta).serialize(to),
            Self::Shares(shares) => ChoiceLaw::Shares(shares.clone()).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            Tree::Text(text) => match &*text {
                "uniform" => Ok(Self::Uniform),
                "zipf" => Ok(Self::Zipf(THETA_DEFAULT)),
                "sequential" => Ok(Self::Sequential),
                "own" => Ok(Self::Own),
                _ => Err(D::Error::custom(format!(
                    "`{text}` is unknown; allowed are uniform, zipf, sequential, own, {{zipf: \
                     0.99}} and {{shares: [{{1..10: 3}}]}}"
                ))),
            },
            tree => from_tree(tree).map(|law| match law {
                ChoiceLaw::Zipf(theta) => Self::Zipf(theta),
                ChoiceLaw::Shares(shares) => Self::Shares(shares),
            }),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "Choice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let law = generator.subschema_for::<ChoiceLaw>();
        schemars::json_schema!({
            "description": "How one of several is chosen; `zipf` is {zipf: 0.99}.",
            "anyOf": [{ "enum": ["uniform", "zipf", "sequential", "own"] }, law],
        })
    }
}
