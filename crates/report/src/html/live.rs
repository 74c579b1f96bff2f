//! What the script of a page draws its charts from: the values of every chart, as JSON.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};

use super::axis::{Axis, Reads};
use super::charts::Chart;
use super::document::within_script;
use super::limits::{Limits, NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::plot::{Mark, SCALE};
use crate::table::elided;

/// How many digits of a value the script is given.
const DIGITS: i32 = 6;
/// What the figures of a page take at most, with their values, before no more are added.
const FIGURES_SIZE_MAX: usize = 760_000;

/// The charts of a page, in the order in which they were added, and how much the page shows.
#[derive(Debug)]
pub(super) struct Live {
    charts: RefCell<Vec<Value>>,
    /// How many bytes the figures take.
    drawn: Cell<usize>,
    pub(super) limits: Limits,
}

impl Live {
    pub(super) fn new(limits: Limits) -> Self {
        Self { charts: RefCell::default(), drawn: Cell::default(), limits }
    }

    /// Adds a figure with its chart under its name, where there is room for it. Charts over time of
    /// one group move together.
    pub(super) fn add(&self, id: &str, group: &str, chart: &Chart, figure: &str) -> bool {
        let value = value(id, group, chart);
        let of_value = value.as_ref().map_or(0, |value| within_script(value).len());
        let drawn = self.drawn.get() + figure.len() + of_value;
        // Once there is none, none is made by something smaller that comes later.
        self.drawn.set(drawn);
        if !self.is_full() {
            self.charts.borrow_mut().extend(value);
        }
        !self.is_full()
    }

    /// Tells whether the figures take all the room of a page: no more are added then.
    pub(super) fn is_full(&self) -> bool {
        self.drawn.get() > FIGURES_SIZE_MAX
    }

    /// Returns all of them as JSON in which nothing ends the element that holds it.
    pub(super) fn into_json(self) -> String {
        within_script(&Value::from(self.charts.into_inner()))
    }
}

/// Returns what the script is given of a chart; `None` of one without values.
fn value(id: &str, group: &str, chart: &Chart) -> Option<Value> {
    let plot = &chart.plot;
    let named: Vec<&Mark> = plot.marks.iter().filter(|mark| !mark.name.is_empty()).collect();
    if named.is_empty() && plot.heat.is_none() {
        return None;
    }
    let mut xs: Vec<Vec<f64>> = Vec::new();
    let series: Vec<Value> = named.iter().map(|mark| series(mark, &mut xs)).collect();
    let bands = plot.bands.iter();
    let bands = bands
        .map(|of| json!([of.from, of.until, of.color.number(), elided(&of.text, TEXT_CHARS_MAX)]));
    let stretches = plot.stretches.iter().map(|of| json!([of.from, of.until, of.name]));
    let uprights = plot.uprights.iter();
    let uprights = uprights
        .map(|of| json!([of.at, of.color.number(), elided(&of.text, NAME_CHARS_MAX), of.label]));
    let mut value = json!({
        "id": id, "height": plot.size.1 / SCALE, "x": axis(&plot.x), "y": axis(&plot.y),
        "xs": xs, "series": series, "stretches": stretches.collect::<Vec<_>>(),
        "bands": bands.collect::<Vec<_>>(), "uprights": uprights.collect::<Vec<_>>(),
    });
    if plot.x.reads == Reads::Offset {
        value["group"] = format!("time-{group}").into();
    }
    if let Some(heat) = &plot.heat {
        value["heat"] = heat.json();
    }
    Some(value)
}

fn series(mark: &Mark, xs: &mut Vec<Vec<f64>>) -> Value {
    let x: Vec<f64> = mark.points.iter().map(|(x, _)| rounded(*x)).collect();
    let at = xs.iter().position(|known| *known == x).unwrap_or_else(|| {
        xs.push(x);
        xs.len() - 1
    });
    let y: Vec<Option<f64>> = mark.points.iter().map(|(_, y)| y.map(rounded)).collect();
    json!({
        "name": elided(&mark.name, NAME_CHARS_MAX), "color": mark.color.number(), "look": mark.stroke.class(),
        "dash": mark.stroke.dashes(), "width": mark.stroke.width(), "dots": mark.dots, "x": at, "y": y,
    })
}

fn axis(axis: &Axis) -> Value {
    let ticks: Vec<_> =
        axis.ticks.iter().map(|(place, label)| json!([axis.value(*place), label])).collect();
    let (reads, unit) = match axis.reads {
        Reads::Number(unit) => ("number", unit),
        Reads::Time => ("time", ""),
        Reads::Offset => ("offset", ""),
        Reads::Share => ("share", ""),
        Reads::Label => ("label", ""),
    };
    json!({
        "low": axis.value(axis.low), "high": axis.value(axis.high), "log": axis.is_log(),
        "title": axis.title, "reads": reads, "unit": unit, "ticks": ticks,
    })
}

/// Returns a value with as many digits as are shown.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    match digits {
        // A power above one is exact, its inverse is not.
        0.. => (value * 10f64.powi(digits)).round() / 10f64.powi(digits),
        _ => value.round(),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn values_have_six_digits() {
        for (value, want) in [
            (0.0, 0.0),
            (1.0 / 3.0, 0.333_333),
            (12.345_678_9, 12.345_7),
            (-0.000_123_456_78, -0.000_123_457),
            (1_234_567_890.4, 1_234_567_890.0),
        ] {
            assert_eq!(rounded(value), want, "{value}");
        }
    }
}
