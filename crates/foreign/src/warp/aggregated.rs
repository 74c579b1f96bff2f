//! warp's aggregated file: one JSON object of sums and figures; the operations are gone.
//!
//! Field names are warp's; every field may be missing or `null`, and unknown ones are passed over.

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

/// Declares the parts of the document, each field of which is read and written as [`Field`] has it.
macro_rules! parts {
    ($(
        $(#[$of_part:meta])*
        $part:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)+ }
    )+) => {
        $(
            $(#[$of_part])*
            #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
            #[serde(default)]
            pub struct $part {
                $(
                    $(#[$of_field])*
                    #[serde(deserialize_with = "Field::read", serialize_with = "Field::write")]
                    #[serde(skip_serializing_if = "Field::is_absent")]
                    pub $field: $type,
                )+
            }
        )+
    };
}

/// Declares which fields of a part are its figures, in the order in which warp prints them.
macro_rules! figures {
    ($part:ident: $count:literal of $($field:ident),+) => {
        impl $part {
            /// Returns its figures, in the order in which warp prints them.
            pub fn figures(&self) -> [Option<f64>; $count] {
                [$(self.$field),+]
            }

            /// Returns it with these figures.
            #[allow(clippy::needless_update, reason = "some parts have nothing else")]
            pub fn with_figures(self, [$($field),+]: [f64; $count]) -> Self {
                Self { $($field: Some($field),)+ ..self }
            }
        }
    };
}

parts! {
    /// A whole aggregated file.
    Aggregated {
        /// The version of the format.
        v: Option<u64>,
        /// The command line, keys taken out.
        commandline: Option<String>,
        /// Whether the run had ended when this was written.
        #[serde(rename = "final")]
        is_final: Option<bool>,
        /// Which warp wrote it.
        warp_version: Option<String>,
        /// From which commit that warp was built.
        warp_commit: Option<String>,
        /// When that warp was built.
        warp_date: Option<String>,
        /// Everything.
        total: Option<Aggregate>,
        /// By kind of operation, under warp's name for it.
        by_op_type: BTreeMap<String, Aggregate>,
        /// By endpoint.
        by_host: BTreeMap<String, Aggregate>,
        /// By client.
        by_client: BTreeMap<String, Aggregate>,
        /// By how many bits the object's size has.
        by_obj_log_2_size: BTreeMap<String, Aggregate>,
        /// By category.
        by_category: BTreeMap<String, Aggregate>,
    }

    /// What is known of one set of operations. Failed ones are counted in with the others.
    Aggregate {
        /// A heading.
        #[serde(rename = "Title")]
        title: Option<String>,
        /// Operations.
        total_requests: Option<u64>,
        /// Objects.
        total_objects: Option<u64>,
        /// Failed operations.
        total_errors: Option<u64>,
        /// Content bytes.
        total_bytes: Option<u64>,
        /// Distinct worker numbers.
        concurrency: Option<u64>,
        /// The first start, RFC 3339.
        start_time: Option<String>,
        /// The last end, RFC 3339.
        end_time: Option<String>,
        /// Up to ten error texts.
        first_errors: Vec<String>,
        /// The endpoints.
        hosts: Vec<String>,
        /// The clients.
        clients: Vec<String>,
        /// Throughput over whole seconds, two cut off at each end.
        throughput: Option<Throughput>,
        /// Throughput of each endpoint over its own operations.
        throughput_by_host: BTreeMap<String, Throughput>,
        /// Throughput of each client over its own operations.
        throughput_by_client: BTreeMap<String, Throughput>,
        /// Times of requests for each client, in windows of ten seconds.
        requests_by_client: BTreeMap<String, Vec<Window>>,
    }

    /// What was moved in a stretch of time.
    Throughput {
        /// From when, RFC 3339.
        start_time: Option<String>,
        /// Until when, RFC 3339.
        end_time: Option<String>,
        /// Failed operations.
        errors: Option<u64>,
        /// How long; what the sums are to be divided by.
        measure_duration_millis: Option<u64>,
        /// Content bytes, shares of operations included.
        bytes: Option<f64>,
        /// Objects, shares of operations included.
        objects: Option<f64>,
        /// Operations.
        ops: Option<u64>,
        /// The kind of operation, if the file has it.
        op_type: Option<String>,
        /// The same, second by second.
        segmented: Option<Segmented>,
    }

    /// Throughput cut into segments of equal length.
    Segmented {
        /// How long each is.
        segment_duration_millis: Option<u64>,
        /// By what fastest, median and slowest were chosen: `bps` or `ops`.
        sorted_by: Option<String>,
        /// When the fastest began, RFC 3339.
        fastest_start: Option<String>,
        /// Bytes per second in the fastest.
        fastest_bps: Option<f64>,
        /// Objects per second in the fastest.
        fastest_ops: Option<f64>,
        /// When the median one began, RFC 3339.
        median_start: Option<String>,
        /// Bytes per second in the median one.
        median_bps: Option<f64>,
        /// Objects per second in the median one.
        median_ops: Option<f64>,
        /// When the slowest began, RFC 3339.
        slowest_start: Option<String>,
        /// Bytes per second in the slowest.
        slowest_bps: Option<f64>,
        /// Objects per second in the slowest.
        slowest_ops: Option<f64>,
        /// All of them in order of time.
        segments: Vec<Segment>,
    }

    /// One segment.
    Segment {
        /// When it began, RFC 3339; two seconds early in files of warp's.
        start: Option<String>,
        /// Bytes per second.
        bytes_per_sec: Option<f64>,
        /// Objects per second.
        obj_per_sec: Option<f64>,
        /// Failed operations that started in it.
        errors: Option<u64>,
    }

    /// The requests of one client that ended within ten seconds.
    Window {
        /// From when, RFC 3339.
        start_time: Option<String>,
        /// Until when, RFC 3339.
        end_time: Option<String>,
        /// Their times, if all objects had one size.
        single_sized_requests: Option<SingleSized>,
        /// Their speeds, if the sizes differ.
        multi_sized_requests: Option<MultiSized>,
    }

    /// Times of requests for objects of one size.
    SingleSized {
        /// How many requests.
        requests: Option<u64>,
        /// The size of each object.
        obj_size: Option<u64>,
        /// From how many windows this was merged.
        merged_entries: Option<u64>,
        /// The mean time.
        dur_avg_millis: Option<f64>,
        /// The median time.
        dur_median_millis: Option<f64>,
        /// The 90th percentile of the times.
        dur_90_millis: Option<f64>,
        /// The 99th percentile of the times.
        dur_99_millis: Option<f64>,
        /// The shortest time.
        fastest_millis: Option<f64>,
        /// The longest time.
        slowest_millis: Option<f64>,
        /// The standard deviation of the times.
        std_dev_millis: Option<f64>,
        /// Times to first byte.
        first_byte: Option<FirstByte>,
    }

    /// Requests for objects of different sizes.
    MultiSized {
        /// How many requests.
        requests: Option<u64>,
        /// The mean size of the objects.
        avg_obj_size: Option<u64>,
        /// From how many windows this was merged.
        merged_entries: Option<u64>,
        /// The size classes; those of warp's overlap.
        by_size: Vec<SizeClass>,
    }

    /// Requests for objects within one size class.
    SizeClass {
        /// The least size, in bytes.
        min_size: Option<u64>,
        /// The size where the next class begins.
        max_size: Option<u64>,
        /// The least size as warp prints it.
        min_size_string: Option<String>,
        /// The end of the class as warp prints it.
        max_size_string: Option<String>,
        /// How many requests.
        requests: Option<u64>,
        /// The mean size of the objects.
        avg_obj_size: Option<u64>,
        /// The mean time.
        avg_duration_millis: Option<f64>,
        /// The mean speed in bytes per second.
        bps_average: Option<f64>,
        /// The median speed.
        bps_median: Option<f64>,
        /// The speed that 90 percent reached.
        bps_90: Option<f64>,
        /// The speed that 99 percent reached.
        bps_99: Option<f64>,
        /// The highest speed.
        bps_fastest: Option<f64>,
        /// The lowest speed.
        bps_slowest: Option<f64>,
        /// Times to first byte.
        first_byte: Option<FirstByte>,
        /// From how many windows this was merged.
        merged_entries: Option<u64>,
    }

    /// Times to first byte.
    FirstByte {
        /// The mean.
        average_millis: Option<f64>,
        /// The shortest.
        fastest_millis: Option<f64>,
        /// The 25th percentile.
        p25_millis: Option<f64>,
        /// The median.
        median_millis: Option<f64>,
        /// The 75th percentile.
        p75_millis: Option<f64>,
        /// The 90th percentile.
        p90_millis: Option<f64>,
        /// The 99th percentile.
        p99_millis: Option<f64>,
        /// The longest.
        slowest_millis: Option<f64>,
        /// The standard deviation.
        std_dev_millis: Option<f64>,
    }
}

figures!(SingleSized: 7 of dur_avg_millis, dur_median_millis, dur_90_millis, dur_99_millis,
    fastest_millis, slowest_millis, std_dev_millis);
figures!(SizeClass: 6 of bps_average, bps_median, bps_90, bps_99, bps_fastest, bps_slowest);
figures!(FirstByte: 9 of average_millis, fastest_millis, p25_millis, median_millis, p75_millis,
    p90_millis, p99_millis, slowest_millis, std_dev_millis);

/// A field of the document: one that is missing or `null` holds nothing, and one that holds nothing
/// is left out.
trait Field: Default + Serialize + for<'de> Deserialize<'de> {
    fn is_absent(&self) -> bool;

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::deserialize(from).map(Option::unwrap_or_default)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.serialize(to)
    }
}

macro_rules! optional_fields {
    ($($type:ty),+) => {
        $(impl Field for Option<$type> {
            fn is_absent(&self) -> bool {
                self.is_none()
            }
        })+
    };
}

optional_fields!(bool, u64, String, Aggregate, Throughput, Segmented, SingleSized, MultiSized);
optional_fields!(FirstByte);

/// A rate, a time or a sum with shares: it is not negative, and a whole one has no fraction.
impl Field for Option<f64> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Self::deserialize(from)? {
            Some(number) if number < 0.0 => {
                Err(de::Error::custom(format_args!("the number {number} is negative")))
            }
            number => Ok(number),
        }
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(whole) if whole.fract() == 0.0 && *whole < EXACT_MAX => {
                to.serialize_u64(*whole as u64)
            }
            number => number.serialize(to),
        }
    }
}

/// An empty list is there, as `null`.
impl<T: Serialize + for<'de> Deserialize<'de>> Field for Vec<T> {
    fn is_absent(&self) -> bool {
        false
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.is_empty() { to.serialize_none() } else { self.serialize(to) }
    }
}

impl<T: Serialize + for<'de> Deserialize<'de>> Field for BTreeMap<String, T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
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

#[cfg(test)]
mod tests;
