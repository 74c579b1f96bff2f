//! HdrHistogram's interval log (`.hlog`): a histogram of each interval and tag, as
//! `HistogramLogProcessor` and other readers of the format take it.
//!
//! Values are nanoseconds; the column of the maximum, which is for the eye, is in milliseconds.
//! Each histogram is of the format V2, compressed, in base64.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

/// Three decimal digits, as in our own histograms.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Longer times count as this, 78 hours, as in our own histograms.
const VALUE_MAX: u64 = (1 << 48) - 1;
/// The maximum is shown in milliseconds.
const MAX_DIVISOR: f64 = 1e6;
/// The length of an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// How many intervals are held: values come almost in the order of time. What comes later for an
/// interval that was written gets a line of its own, which readers add.
const OPEN_MAX: usize = 64;

/// What compresses the histograms.
#[derive(Default)]
pub struct Encoder(V2DeflateSerializer);

/// What was recorded of an interval.
#[derive(Default)]
struct Interval {
    /// The number of the last value that came for it.
    touched: u64,
    by_tag: BTreeMap<u32, Histogram<u64>>,
}

/// Writes an interval log. Memory is bounded by intervals and tags, not by values.
pub struct Writer<'a, W: Write> {
    log: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    tags: Vec<String>,
    open: BTreeMap<u64, Interval>,
    values: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Begins a log with lines of comment. Moments count from `started_unix_ns`, nanoseconds since
    /// 1970.
    pub fn begin(
        to: &'a mut W,
        encoder: &'a mut Encoder,
        started_unix_ns: u64,
        comments: &[&str],
    ) -> io::Result<Self> {
        let started = UNIX_EPOCH + Duration::from_nanos(started_unix_ns);
        let mut builder = IntervalLogWriterBuilder::new();
        for comment in comments {
            builder.add_comment(comment);
        }
        builder.with_start_time(started).with_base_time(started);
        builder.with_max_value_divisor(MAX_DIVISOR);
        let log = builder.begin_log_with(to, &mut encoder.0)?;
        Ok(Self { log, tags: Vec::new(), open: BTreeMap::new(), values: 0 })
    }

    /// Returns the number of a new tag; what no tag may hold becomes `_`.
    pub fn tag(&mut self, name: &str) -> u32 {
        let is_refused = |sign: char| sign == ',' || sign.is_whitespace() || sign.is_control();
        self.tags.push(name.replace(is_refused, "_"));
        self.tags.len() as u32 - 1
    }

    /// Adds a value to the interval in which it ended.
    pub fn record(&mut self, tag: u32, end_ns: u64, value_ns: u64) -> io::Result<()> {
        let number = end_ns / INTERVAL_NS;
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&number) {
            self.write_oldest()?;
        }
        self.values += 1;
        let interval = self.open.entry(number).or_default();
        interval.touched = self.values;
        let histogram = interval.by_tag.entry(tag).or_insert_with(|| {
            Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are a valid precision")
        });
        histogram.record(value_ns.min(VALUE_MAX)).expect("a resizing histogram takes any value");
        Ok(())
    }

    /// Writes the interval for which no value came for the longest time.
    fn write_oldest(&mut self) -> io::Result<()> {
        let oldest = self.open.iter().min_by_key(|(_, interval)| interval.touched);
        let Some(number) = oldest.map(|(number, _)| *number) else { return Ok(()) };
        let interval = self.open.remove(&number).unwrap_or_default();
        self.write(number, &interval)
    }

    fn write(&mut self, number: u64, interval: &Interval) -> io::Result<()> {
        let start = Duration::from_nanos(number * INTERVAL_NS);
        for (tag, histogram) in &interval.by_tag {
            let tag = Tag::new(&self.tags[*tag as usize]);
            let length = Duration::from_nanos(INTERVAL_NS);
            self.log.write_histogram(histogram, start, length, tag).map_err(
                |error| match error {
                    IntervalLogWriterError::IoError(error) => error,
                    IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
                },
            )?;
        }
        Ok(())
    }

    /// Writes what is left, in the order of time.
    pub fn finish(mut self) -> io::Result<()> {
        let open = std::mem::take(&mut self.open);
        open.iter().try_for_each(|(number, interval)| self.write(*number, interval))
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    /// Returns tag, second and values of each line.
    fn read(log: &[u8]) -> Vec<(String, u64, u64, u64)> {
        let mut decoder = Deserializer::new();
        let mut lines = Vec::new();
        for entry in IntervalLogIterator::new(log) {
            let LogEntry::Interval(line) = entry.expect("a log") else { continue };
            let bytes = plain_base64(line.encoded_histogram());
            let histogram: Histogram<u64> = decoder.deserialize(&mut &bytes[..]).expect("one");
            assert_eq!(line.duration(), Duration::from_secs(1));
            let tag = line.tag().expect("a tag").as_str().to_owned();
            lines.push((tag, line.start_timestamp().as_secs(), histogram.len(), histogram.max()));
        }
        lines
    }

    fn plain_base64(text: &str) -> Vec<u8> {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
        for sign in text.bytes().filter(|sign| *sign != b'=') {
            let six = alphabet.iter().position(|known| *known == sign).expect("base64");
            bits = bits << 6 | six as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        bytes
    }

    #[test]
    fn what_comes_late_is_in_a_line_of_its_own() {
        let (mut log, mut encoder) = (Vec::new(), Encoder::default());
        let mut writer = Writer::begin(&mut log, &mut encoder, 1_500_000_000, &["a\nb"]).unwrap();
        let (get, put) = (writer.tag("GET"), writer.tag("one, two/PUT"));
        // More seconds than are held, and then one more value of the first.
        for second in 0..100 {
            writer.record(get, second * INTERVAL_NS + 7, 1_000 + second).unwrap();
        }
        writer.record(get, 3, 5_000).unwrap();
        writer.record(put, 99 * INTERVAL_NS, u64::MAX).unwrap();
        writer.finish().unwrap();
        let text = String::from_utf8(log.clone()).unwrap();
        let head: Vec<&str> = text.lines().take(5).collect();
        assert_eq!(
            head,
            [
                "#a",
                "#b",
                "#[StartTime: 1.500 (seconds since epoch)]",
                "#[BaseTime: 1.500 (seconds since epoch)]",
                "#[MaxValueDivisor: 1000000.000]"
            ]
        );
        let lines = read(&log);
        assert_eq!(lines.len(), 102);
        assert_eq!(lines.iter().map(|(_, _, count, _)| count).sum::<u64>(), 102);
        let first: Vec<_> = lines.iter().filter(|(_, second, ..)| *second == 0).collect();
        assert_eq!(first.len(), 2, "{first:?}");
        let (tag, _, _, max) = lines.iter().find(|(tag, ..)| tag != "GET").expect("the upload");
        assert_eq!(tag, "one__two/PUT");
        assert!(max.abs_diff(VALUE_MAX) <= VALUE_MAX / 1_000, "{max}");
    }
}
