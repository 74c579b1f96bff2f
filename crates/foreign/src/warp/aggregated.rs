//! warp's aggregated file: one JSON object of sums and figures; the operations are gone.
//!
//! Field names are warp's; every field may be missing, and unknown ones are passed over.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::input::Input;
use super::{FileKind, WarpError};

/// How large the uncompressed text may be: it is held in memory.
pub const AGGREGATED_BYTES_MAX: u64 = 256 << 20;
/// The newest version of the format that is known.
pub const VERSION_MAX: u64 = 2;

/// Below this every whole number is exact.
const EXACT_MAX: f64 = (1u64 << 53) as f64;

/// A whole aggregated file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Aggregated {
    /// The version of the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<u64>,
    /// The command line, keys taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commandline: Option<String>,
    /// Whether the run had ended when this was written.
    #[serde(rename = "final", skip_serializing_if = "Option::is_none")]
    pub is_final: Option<bool>,
    /// Which warp wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warp_version: Option<String>,
    /// From which commit that warp was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warp_commit: Option<String>,
    /// When that warp was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warp_date: Option<String>,
    /// Everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Aggregate>,
    /// By kind of operation, under warp's name for it.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_op_type: BTreeMap<String, Aggregate>,
    /// By endpoint.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_host: BTreeMap<String, Aggregate>,
    /// By client.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_client: BTreeMap<String, Aggregate>,
    /// By how many bits the object's size has.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_obj_log_2_size: BTreeMap<String, Aggregate>,
    /// By category.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_category: BTreeMap<String, Aggregate>,
}

/// What is known of one set of operations. Failed ones are counted in with the others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Aggregate {
    /// A heading.
    #[serde(rename = "Title", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_requests: Option<u64>,
    /// Objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_objects: Option<u64>,
    /// Failed operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_errors: Option<u64>,
    /// Content bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Distinct worker numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// The first start, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// The last end, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// Up to ten error texts.
    #[serde(deserialize_with = "null_as_default", serialize_with = "null_if_empty")]
    pub first_errors: Vec<String>,
    /// The endpoints.
    #[serde(deserialize_with = "null_as_default")]
    pub hosts: Vec<String>,
    /// The clients.
    #[serde(deserialize_with = "null_as_default")]
    pub clients: Vec<String>,
    /// Throughput over whole seconds, two cut off at each end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Throughput of each endpoint over its own operations.
    #[serde(deserialize_with = "null_as_default")]
    pub throughput_by_host: BTreeMap<String, Throughput>,
    /// Throughput of each client over its own operations.
    #[serde(deserialize_with = "null_as_default")]
    pub throughput_by_client: BTreeMap<String, Throughput>,
    /// Times of requests for each client, in windows of ten seconds.
    #[serde(deserialize_with = "null_as_default")]
    pub requests_by_client: BTreeMap<String, Vec<Window>>,
}

/// What was moved in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Throughput {
    /// From when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// Until when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// Failed operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// How long; what the sums are to be divided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_duration_millis: Option<u64>,
    /// Content bytes, shares of operations included.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Objects, shares of operations included.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub objects: Option<f64>,
    /// Operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// The kind of operation, where it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_type: Option<String>,
    /// The same, second by second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmented: Option<Segmented>,
}

/// Throughput cut into segments of equal length.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Segmented {
    /// How long each is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_duration_millis: Option<u64>,
    /// By what fastest, median and slowest were chosen: `bps` or `ops`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted_by: Option<String>,
    /// When the fastest began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest_start: Option<String>,
    /// Bytes per second in the fastest.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub fastest_bps: Option<f64>,
    /// Objects per second in the fastest.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub fastest_ops: Option<f64>,
    /// When the median one began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_start: Option<String>,
    /// Bytes per second in the median one.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub median_bps: Option<f64>,
    /// Objects per second in the median one.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub median_ops: Option<f64>,
    /// When the slowest began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_start: Option<String>,
    /// Bytes per second in the slowest.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub slowest_bps: Option<f64>,
    /// Objects per second in the slowest.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub slowest_ops: Option<f64>,
    /// All of them in order of time.
    #[serde(deserialize_with = "null_as_default")]
    pub segments: Vec<Segment>,
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Segment {
    /// When it began, RFC 3339; two seconds early in files of warp's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Bytes per second.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bytes_per_sec: Option<f64>,
    /// Objects per second.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub obj_per_sec: Option<f64>,
    /// Failed operations that started in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
}

/// The requests of one client that ended within ten seconds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Window {
    /// From when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// Until when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// Their times, if all objects had one size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_sized_requests: Option<SingleSized>,
    /// Their speeds, if the sizes differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_sized_requests: Option<MultiSized>,
}

/// Times of requests for objects of one size.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct SingleSized {
    /// How many requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The size of each object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obj_size: Option<u64>,
    /// From how many windows this was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_entries: Option<u64>,
    /// The mean time.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur_avg_millis: Option<f64>,
    /// The median time.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur_median_millis: Option<f64>,
    /// The 90th percentile of the times.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur_90_millis: Option<f64>,
    /// The 99th percentile of the times.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur_99_millis: Option<f64>,
    /// The shortest time.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest_millis: Option<f64>,
    /// The longest time.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_millis: Option<f64>,
    /// The standard deviation of the times.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std_dev_millis: Option<f64>,
    /// Times to first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<FirstByte>,
}

/// Requests for objects of different sizes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct MultiSized {
    /// How many requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The mean size of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_obj_size: Option<u64>,
    /// From how many windows this was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_entries: Option<u64>,
    /// The size classes; those of warp's overlap.
    #[serde(deserialize_with = "null_as_default")]
    pub by_size: Vec<SizeClass>,
}

/// Requests for objects within one size class.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct SizeClass {
    /// The least size, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    /// The size where the next class begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// The least size as warp prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size_string: Option<String>,
    /// The end of the class as warp prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size_string: Option<String>,
    /// How many requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The mean size of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_obj_size: Option<u64>,
    /// The mean time.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_duration_millis: Option<f64>,
    /// The mean speed in bytes per second.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_average: Option<f64>,
    /// The median speed.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_median: Option<f64>,
    /// The speed that 90 percent reached.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_90: Option<f64>,
    /// The speed that 99 percent reached.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_99: Option<f64>,
    /// The highest speed.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_fastest: Option<f64>,
    /// The lowest speed.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub bps_slowest: Option<f64>,
    /// Times to first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<FirstByte>,
    /// From how many windows this was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_entries: Option<u64>,
}

/// Times to first byte.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct FirstByte {
    /// The mean.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_millis: Option<f64>,
    /// The shortest.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest_millis: Option<f64>,
    /// The 25th percentile.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p25_millis: Option<f64>,
    /// The median.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_millis: Option<f64>,
    /// The 75th percentile.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p75_millis: Option<f64>,
    /// The 90th percentile.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_millis: Option<f64>,
    /// The 99th percentile.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_millis: Option<f64>,
    /// The longest.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_millis: Option<f64>,
    /// The standard deviation.
    #[serde(deserialize_with = "millis", serialize_with = "number")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std_dev_millis: Option<f64>,
}

/// Returns what an aggregated file holds, compressed or not.
pub fn read(input: impl Read) -> Result<Aggregated, WarpError> {
    let mut input = Input::open(input)?;
    if input.kind()? == FileKind::Raw {
        let is_text_of_another_kind = !input.is_compressed() && !input.unread().contains(&b'\t');
        return Err(if is_text_of_another_kind { WarpError::NotWarp } else { WarpError::IsRaw });
    }
    while input.fill()? {
        if input.unread().len() as u64 > AGGREGATED_BYTES_MAX {
            return Err(WarpError::TooLarge(AGGREGATED_BYTES_MAX));
        }
    }
    if input.is_broken() {
        return Err(WarpError::Damaged);
    }
    let text = input.unread();
    let read: Aggregated = serde_json::from_slice(text).map_err(|error| refusal(text, &error))?;
    check_version(read.v)?;
    let Some(total) = read.total.as_ref().or_else(|| read.by_op_type.values().next()) else {
        let reason = "it has neither `total` nor `by_op_type`";
        return Err(WarpError::NotAggregated(reason.to_owned()));
    };
    if total.total_requests == Some(0) {
        return Err(WarpError::NoOperation(None));
    }
    Ok(read)
}

/// Returns the text of an aggregated file as warp prints it for `--json`, with a line feed behind.
pub fn text(file: &Aggregated) -> String {
    let text = serde_json::to_string_pretty(file);
    text.expect("it has text keys and finite numbers") + "\n"
}

/// Writes an aggregated file, compressed.
pub fn write(file: &Aggregated, to: impl Write) -> io::Result<()> {
    let mut compressed = zstd::Encoder::new(to, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    compressed.write_all(text(file).as_bytes())?;
    compressed.finish()?.flush()
}

fn check_version(v: Option<u64>) -> Result<(), WarpError> {
    match v {
        Some(v) if v > VERSION_MAX => Err(WarpError::NewerVersion(v)),
        _ => Ok(()),
    }
}

/// Says what is wrong with a text that is not what we know.
fn refusal(text: &[u8], error: &serde_json::Error) -> WarpError {
    #[derive(Deserialize)]
    struct Version {
        v: Option<u64>,
    }
    // A newer version may well use other types; its number is the better reason then.
    if let Ok(version) = serde_json::from_slice::<Version>(text)
        && let Err(newer) = check_version(version.v)
    {
        return newer;
    }
    let lines_before = error.line().saturating_sub(1);
    let before: usize =
        text.split_inclusive(|b| *b == b'\n').take(lines_before).map(<[u8]>::len).sum();
    let until = (before + error.column()).min(text.len());
    match field_before(&text[..until]) {
        Some(field) if !error.is_eof() => {
            let message = error.to_string();
            let reason = message.split(" at line ").next().unwrap_or_default().to_owned();
            WarpError::BadField { field, line: error.line(), reason }
        }
        _ => WarpError::NotAggregated(error.to_string()),
    }
}

/// Returns the name of the last field that begins in a text.
fn field_before(text: &[u8]) -> Option<String> {
    let colon = text.windows(2).rposition(|pair| pair == b"\":")?;
    let name_from = text[..colon].iter().rposition(|b| *b == b'"')? + 1;
    Some(String::from_utf8_lossy(&text[name_from..colon]).into_owned())
}

/// Reads a time: no number that is negative.
fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(millis) if !(millis >= 0.0 && millis.is_finite()) => {
            Err(de::Error::custom(format_args!("the time {millis} is negative or no number")))
        }
        millis => Ok(millis),
    }
}

/// Writes a number as warp does: a whole one without a fraction.
fn number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < EXACT_MAX => {
            serializer.serialize_i64(*value as i64)
        }
        value => value.serialize(serializer),
    }
}

/// Writes an empty list as `null`, as warp does.
fn null_if_empty<S: Serializer>(list: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    if list.is_empty() { serializer.serialize_none() } else { list.serialize(serializer) }
}

/// Reads `null`, which warp writes for empty lists, as nothing.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests;
