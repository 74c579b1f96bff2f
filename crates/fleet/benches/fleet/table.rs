//! Figures beside their targets.

/// What a figure has to reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Most(f64),
    Least(f64),
    /// It is only told.
    None,
}

/// A figure, measured several times.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) values: Vec<f64>,
    pub(crate) target: Target,
}

impl Row {
    pub(crate) fn new(
        what: impl Into<String>,
        unit: &'static str,
        values: Vec<f64>,
        target: Target,
    ) -> Self {
        Self { what: what.into(), unit, values, target }
    }

    /// Prints the median of the values, the least and the most of them, and the target.
    pub(crate) fn print(&self) {
        let Self { what, unit, .. } = self;
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let Some((least, most)) = values.first().zip(values.last()) else {
            println!("| {what} | – | – | 0 | | |");
            return;
        };
        let median = values[values.len() / 2].midpoint(values[(values.len() - 1) / 2]);
        let (target, verdict) = match self.target {
            Target::None => (String::new(), ""),
            Target::Most(limit) => (format!("≤ {limit} {unit}"), met(median <= limit)),
            Target::Least(limit) => (format!("≥ {limit} {unit}"), met(median >= limit)),
        };
        let (middle, least, most) = (shown(median), shown(*least), shown(*most));
        let count = values.len();
        println!("| {what} | {middle} {unit} | {least}–{most} | {count} | {target} | {verdict} |");
    }
}

pub(crate) fn print_head() {
    println!("| figure | median | least–most | samples | target | |");
    println!("|---|---:|---:|---:|---:|---|");
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn shown(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the value of rank ⌈p/100 · n⌉ of the sorted values.
pub(crate) fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (p / 100.0 * values.len() as f64).ceil().max(1.0);
    values[rank as usize - 1]
}
