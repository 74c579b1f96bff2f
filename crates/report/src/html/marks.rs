//! What is marked on every chart over time: outages as shaded stretches, and what was done at
//! instants of the run as upright lines.

use super::charts::Entry;
use super::plot::{Mark, SeriesColor, Stroke};
use crate::report::RowView;
use plimsoll_model::Moment;

/// The colour of outages, that of no host before the eighth.
const OUTAGE: usize = 7;
/// The colour of commands.
const EVENT: usize = 6;

/// What happened at times of a row, to be marked on its charts.
#[derive(Default)]
pub(super) struct Marks {
    /// From and until, in seconds.
    outages: Vec<(f64, f64)>,
    /// When a command was run, in seconds, and what stands for it.
    events: Vec<(f64, String)>,
}

impl Marks {
    /// Returns those of a row, on an axis that begins at `origin` and ends `seconds` later.
    pub(super) fn of(report: &RowView<'_>, origin: Moment, seconds: f64) -> Self {
        let analysis = &report.row.analysis;
        let at = |at: Moment| at.since(origin).as_secs_f64() - origin.since(at).as_secs_f64();
        let outages = analysis.ledger.iter().flat_map(|ledger| &ledger.outages);
        let outages = outages
            .map(|of| (at(of.from(analysis.started)), at(of.until(analysis.started))))
            .filter(|(from, until)| *until > 0.0 && *from < seconds)
            .collect();
        let events = report.stage.events.iter().filter_map(|of| {
            let begun = at(Moment::from_ns(of.began_ns?));
            (0.0..=seconds).contains(&begun).then(|| (begun, of.name()))
        });
        Self { outages, events: events.collect() }
    }

    /// Draws them below what a chart shows, and names them in its legend.
    pub(super) fn draw(&self, marks: &mut Vec<Mark>, legend: &mut Vec<Entry>) {
        // Places beyond the axis are taken for its ends.
        let (low, high) = (Some(f64::MIN_POSITIVE), Some(f64::MAX));
        let color = SeriesColor::of_other(OUTAGE);
        let stretch = |(from, until): &(f64, f64)| {
            let corners = [(*from, low), (*from, high), (*until, high), (*until, low)];
            Mark::line(color, Stroke::Shade, corners)
        };
        marks.splice(0..0, self.outages.iter().map(stretch));
        let line = |(at, _): &(f64, String)| {
            Mark::line(SeriesColor::of_other(EVENT), Stroke::Dashed, [(*at, low), (*at, high)])
        };
        marks.extend(self.events.iter().map(line));
        legend.extend(self.events.iter().map(|(_, name)| Entry {
            color: SeriesColor::of_other(EVENT),
            stroke: Stroke::Dashed,
            name: format!("event: {name}"),
        }));
        if !self.outages.is_empty() {
            legend.push(Entry { color, stroke: Stroke::Shade, name: "outage".to_owned() });
        }
    }
}
