//! Writes metrics as text.

use std::fmt::Write as _;

/// Which text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus's format 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// Returns its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What the samples of one name have in common.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name; that of a counter ends in `_total`.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What it is, in one sentence.
    pub help: &'static str,
}

/// Writes metrics as text, a family after the other.
#[derive(Debug)]
pub struct Writer {
    exposition: Exposition,
    text: String,
}

impl Writer {
    /// Returns one that has written nothing.
    pub fn new(exposition: Exposition) -> Self {
        Self { exposition, text: String::with_capacity(1 << 14) }
    }

    /// Begins a family.
    pub fn family(&mut self, family: &Family) {
        let Family { name, kind, help } = *family;
        // OpenMetrics calls a counter without what its sample ends in.
        let name = match self.exposition {
            Exposition::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
            Exposition::Text => name,
        };
        self.line(format_args!("# TYPE {name} {kind}"));
        if self.exposition == Exposition::OpenMetrics {
            for unit in ["seconds", "bytes"] {
                if name.ends_with(&format!("_{unit}")) {
                    self.line(format_args!("# UNIT {name} {unit}"));
                }
            }
        }
        self.line(format_args!(
            "# HELP {name} {}",
            help.replace('\\', "\\\\").replace('\n', "\\n")
        ));
    }

    /// Writes a sample of the family that was begun last; `at_unix_ns` is when it was so, where
    /// that is not the moment of being read.
    pub fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: f64,
        at_unix_ns: Option<u64>,
    ) {
        self.text.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            self.text.extend(value.chars().map(Escaped).flat_map(Escaped::chars));
            self.text.push('"');
        }
        self.text.push_str(if labels.is_empty() { " " } else { "} " });
        self.number(value);
        if let Some(ns) = at_unix_ns {
            // OpenMetrics counts seconds, Prometheus's own format milliseconds.
            let written = match self.exposition {
                Exposition::OpenMetrics => {
                    write!(self.text, " {}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
                }
                Exposition::Text => write!(self.text, " {}", ns / 1_000_000),
            };
            written.expect("writing to memory does not fail");
        }
        self.text.push('\n');
    }

    /// Writes a histogram of the family that was begun last: of each bucket its upper bound and how
    /// many lie in it, in ascending order; the last one has no bound.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        buckets: impl Iterator<Item = (Option<f64>, u64)>,
        sum: f64,
        at_unix_ns: Option<u64>,
    ) {
        let (bucket, mut count) = (format!("{name}_bucket"), 0);
        for (end, inside) in buckets {
            count += inside;
            let end = end.map_or("+Inf".to_owned(), |end| end.to_string());
            let labels = [labels, &[("le", end.as_str())]].concat();
            self.sample(&bucket, &labels, count as f64, at_unix_ns);
        }
        self.sample(&format!("{name}_sum"), labels, sum, at_unix_ns);
        self.sample(&format!("{name}_count"), labels, count as f64, at_unix_ns);
    }

    /// Returns what was written so far and forgets it, for who writes much.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Returns the whole text.
    pub fn finish(mut self) -> String {
        if self.exposition == Exposition::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn number(&mut self, value: f64) {
        let written = if value.is_finite() {
            write!(self.text, "{value}")
        } else if value.is_nan() {
            write!(self.text, "NaN")
        } else {
            write!(self.text, "{}Inf", if value > 0.0 { '+' } else { '-' })
        };
        written.expect("writing to memory does not fail");
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{text}").expect("writing to memory does not fail");
    }
}

/// A letter as it stands in a label's value.
struct Escaped(char);

impl Escaped {
    fn chars(self) -> impl Iterator<Item = char> {
        let (first, second) = match self.0 {
            '\n' => ('\\', Some('n')),
            special @ ('\\' | '"') => ('\\', Some(special)),
            plain => (plain, None),
        };
        std::iter::once(first).chain(second)
    }
}
