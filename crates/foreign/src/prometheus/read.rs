//! Reads metrics as text. A line that cannot be read costs itself and no other.

use std::collections::HashMap;

/// What the values of a series mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesKind {
    /// A number that only grows, but for restarts.
    Counter,
    /// A number that goes up and down, or of which nothing is said.
    Gauge,
    /// How many observations of a histogram lie up to a bound.
    Bucket,
}

/// The value of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSample {
    /// Its name.
    pub name: String,
    /// Names and values of its labels, as they came.
    pub labels: Vec<(String, String)>,
    /// Its value; may be infinite or no number.
    pub value: f64,
    /// What its values mean.
    pub kind: SeriesKind,
}

/// What a page holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The samples that could be read, in their order.
    pub samples: Vec<PageSample>,
    /// How many lines could not be read.
    pub lines_unread_count: u64,
    /// How many samples were left out, since there are more than were asked for.
    pub samples_left_out_count: u64,
}

/// Reads a page; keeps no more than so many samples that `is_wanted`, by name and labels.
pub fn read(
    text: &str,
    samples_max: usize,
    is_wanted: impl Fn(&str, &[(String, String)]) -> bool,
) -> Page {
    let (mut page, mut types) = (Page::default(), HashMap::<&str, &str>::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if words.next() == Some("TYPE")
                && let (Some(name), Some(kind)) = (words.next(), words.next())
            {
                types.insert(name, kind);
            }
            continue;
        }
        let Some((name, labels, value)) = sample(line) else {
            page.lines_unread_count += 1;
            continue;
        };
        if !is_wanted(&name, &labels) {
            continue;
        }
        if page.samples.len() == samples_max {
            page.samples_left_out_count += 1;
            continue;
        }
        let kind = kind(&types, &name);
        page.samples.push(PageSample { name, labels, value, kind });
    }
    page
}

/// Returns what the values of a series of that name mean.
fn kind(types: &HashMap<&str, &str>, name: &str) -> SeriesKind {
    let of = |name: &str| types.get(name).copied();
    for (suffix, kind) in [
        ("_bucket", SeriesKind::Bucket),
        ("_sum", SeriesKind::Counter),
        ("_count", SeriesKind::Counter),
    ] {
        let family = name.strip_suffix(suffix).and_then(of);
        if matches!(family, Some("histogram" | "summary")) {
            return kind;
        }
    }
    // OpenMetrics calls a counter without `_total`.
    let own = of(name).or_else(|| name.strip_suffix("_total").and_then(of));
    match own {
        Some("counter") => SeriesKind::Counter,
        None | Some("untyped" | "unknown") if name.ends_with("_total") => SeriesKind::Counter,
        _ => SeriesKind::Gauge,
    }
}

type Labels = Vec<(String, String)>;

/// Reads the line of a sample: name, labels, value; what follows is passed over.
fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    let (mut name, mut labels) = (name.to_owned(), Vec::new());
    if let Some(inside) = rest.strip_prefix('{') {
        rest = read_labels(inside, &mut name, &mut labels)?;
    }
    let value = rest.split_ascii_whitespace().next()?;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':' || b == b'.';
    let is_fine = !name.is_empty() && name.bytes().all(is_name);
    is_fine.then_some(())?;
    Some((name, labels, value.parse().ok()?))
}

/// Reads labels up to the closing brace and returns what follows it. A name in quotation marks
/// without a value is that of the sample.
fn read_labels<'a>(inside: &'a str, name: &mut String, labels: &mut Labels) -> Option<&'a str> {
    let mut rest = inside.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (label, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted)?,
            None => {
                let end = rest.find(['=', ' ', '}', ','])?;
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        let after = after.trim_start();
        rest = match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = quoted_text(value.trim_start().strip_prefix('"')?)?;
                labels.push((label, value));
                after
            }
            None if name.is_empty() => {
                *name = label;
                after
            }
            None => return None,
        };
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// Reads text up to the quotation mark that ends it, and returns what follows that.
fn quoted_text(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut chars) = (String::new(), quoted.char_indices());
    loop {
        match chars.next()? {
            (at, '"') => return Some((text, &quoted[at + 1..])),
            (_, '\\') => text.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            (_, other) => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Exposition, Family, Writer};
    use super::*;

    fn all(text: &str) -> Page {
        read(text, usize::MAX, |_, _| true)
    }

    #[test]
    fn both_formats_are_read_and_a_bad_line_costs_itself() {
        let page = all("# HELP a_total all \"of\" them\n# TYPE a_total counter\n\
             a_total{x=\"1\",y=\"q\\\"\\\\\\n\",} 3 1700000000000\na_total{x=\"2\"} 1e3\n\
             # TYPE b gauge\nb{} +Inf\nb NaN\n\
             # TYPE c histogram\nc_bucket{le=\"+Inf\"} 4 # {trace=\"t\"} 0.5 1.0\nc_sum 2.5\n\
             c_count 4\nc_other 1\n# TYPE d counter\nd_total 7\nunheard_total 8\n\
             {\"e.f\", g=\"h\"} 9\nbroken{x=\"1\" 3\nbroken\nbroken x\nbr/oken 3\n# EOF\n");
        let line = |of: &PageSample| {
            let labels: Vec<String> =
                of.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (of.name.clone(), labels.join(" "), of.value.to_string(), of.kind)
        };
        let line = |of: &PageSample| {
            let (name, labels, value, kind) = line(of);
            format!("{name} [{labels}] {value} {kind:?}")
        };
        let lines: Vec<String> = page.samples.iter().map(line).collect();
        let expected = [
            "a_total [x=1 y=q\"\\\n] 3 Counter",
            "a_total [x=2] 1000 Counter",
            "b [] inf Gauge",
            "b [] NaN Gauge",
            "c_bucket [le=+Inf] 4 Bucket",
            "c_sum [] 2.5 Counter",
            "c_count [] 4 Counter",
            "c_other [] 1 Gauge",
            "d_total [] 7 Counter",
            "unheard_total [] 8 Counter",
            "e.f [g=h] 9 Gauge",
        ];
        assert_eq!(lines, expected);
        assert_eq!(page.lines_unread_count, 4);
        let few = read("a 1\nb 2\nc 3\nb 4\n", 1, |name, _| name != "a");
        assert_eq!((few.samples.len(), few.samples_left_out_count), (1, 2));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in any::<f64>(), label in ".*", om in any::<bool>()) {
            let exposition = if om { Exposition::OpenMetrics } else { Exposition::Text };
            let mut writer = Writer::new(exposition);
            writer.family(&Family { name: "a_total", kind: "counter", help: "b" });
            writer.sample("a_total", &[("x", &label), ("y", "z")], value, Some(1_500_000_000));
            let page = all(&writer.finish());
            prop_assert_eq!(page.samples.len(), 1);
            let of = &page.samples[0];
            prop_assert_eq!((&*of.name, of.kind), ("a_total", SeriesKind::Counter));
            prop_assert!(of.value == value || of.value.is_nan() && value.is_nan());
            prop_assert_eq!(&of.labels[0].1, &label);
        }

        #[test]
        fn nothing_ends_the_reader(text in "([a-z\"{}=,#\\\\ \n0-9]|TYPE|_total){0,60}") {
            let lines = text.lines().count() as u64;
            let page = all(&text);
            prop_assert!(page.samples.len() as u64 + page.lines_unread_count <= lines);
        }
    }
}
