//! What is marked on every chart over time: failures and outages as shaded stretches, what was done
//! at instants of the run, and the steps of its rate, as upright lines.

use std::time::Duration;

use plimsoll_analysis::SegmentRow;
use plimsoll_model::{ErrorClass, Moment};

use super::charts::Entry;
use super::colour::SeriesColor;
use super::plot::{Band, Plot, Stroke, Upright};
use crate::format::{count, duration, number};
use crate::report::{Report, RowView};

/// More stretches of failures than this are told as fewer, longer ones.
const BANDS_MAX: usize = 120;
/// More events than this are not marked.
const UPRIGHTS_MAX: usize = 60;

/// What happened at times of a row, to be marked on its charts.
#[derive(Default)]
pub(super) struct Marks {
    bands: Vec<Band>,
    uprights: Vec<Upright>,
}

impl Marks {
    /// Returns those of a row, on an axis that begins at `origin` and ends `seconds` later.
    pub(super) fn of(report: &RowView<'_>, origin: Moment, seconds: f64) -> Self {
        let analysis = &report.row.analysis;
        let at = |at: Moment| at.since(origin).as_secs_f64() - origin.since(at).as_secs_f64();
        let series = analysis.details.as_ref().map_or(&[][..], |details| &details.series);
        let mut bands = failures(series, &at);
        let outages = analysis.ledger.iter().flat_map(|ledger| &ledger.outages);
        bands.extend(outages.map(|of| Band {
            from: at(of.from(analysis.started)),
            until: at(of.until(analysis.started)),
            color: SeriesColor::OUTAGE,
            text: format!("outage: no success for {}", duration(of.gap)),
        }));
        bands.retain(|band| band.until > 0.0 && band.from < seconds);
        for band in &mut bands {
            (band.from, band.until) = (band.from.max(0.0), band.until.min(seconds));
        }
        let events = report.stage.events.iter().filter_map(|of| {
            let (at, color) = (at(Moment::from_ns(of.began_ns?)), SeriesColor::EVENT);
            Some(Upright { at, color, text: format!("event: {}", of.name()), label: String::new() })
        });
        let steps = report.row.steps.iter().map(|of| {
            let (at, rate) = (at(analysis.started.after(of.from)), number(of.offered.0));
            let (color, label) = (SeriesColor::OFFERED, format!("{rate}/s"));
            Upright { at, color, text: format!("step: {label} offered"), label }
        });
        let mut uprights: Vec<Upright> = events.chain(steps).collect();
        for upright in &mut uprights {
            // A stage begins before its span does: what begins with it is marked where that does.
            let is_step = !upright.label.is_empty();
            upright.at = if is_step { upright.at.max(0.0) } else { upright.at };
        }
        uprights.retain(|upright| (0.0..=seconds).contains(&upright.at));
        Self { bands, uprights }
    }

    /// Returns those of a whole run, whose axis begins with a stage that began `first` after the
    /// first of all, and ends `seconds` later. The steps of rates are left out.
    pub(super) fn of_run(report: &Report, first: Duration, seconds: f64) -> Self {
        let mut all = Self::default();
        for stage in &report.stages {
            let offset = stage.started_after.saturating_sub(first).as_secs_f64();
            for row in &stage.rows {
                let view = RowView { report, stage, row };
                let of_row = Self::of(&view, row.analysis.started, stage.took.as_secs_f64());
                let shifted = |band: Band| Band {
                    from: band.from + offset,
                    until: band.until + offset,
                    ..band
                };
                all.bands.extend(of_row.bands.into_iter().map(shifted));
                let events = of_row.uprights.into_iter().filter(|of| of.label.is_empty());
                for event in events.map(|of| Upright { at: of.at + offset, ..of }) {
                    if !all.uprights.contains(&event) && all.uprights.len() < UPRIGHTS_MAX {
                        all.uprights.push(event);
                    }
                }
            }
        }
        all.bands = fewer(all.bands, seconds);
        all
    }

    /// Puts them on a plot, and names them in its legend.
    pub(super) fn put(self, plot: &mut Plot, legend: &mut Vec<Entry>) {
        let is_known = |legend: &[Entry], name: &str| legend.iter().any(|of| of.name == name);
        let events = self.uprights.iter().filter(|of| of.label.is_empty());
        for event in events {
            if !is_known(legend, &event.text) {
                let text = event.text.clone();
                legend.push(Entry::of_mark(event.color, Stroke::DASHED, text));
            }
        }
        for (color, name) in [(SeriesColor::FAILED, "failures"), (SeriesColor::OUTAGE, "outage")] {
            if !is_known(legend, name) && self.bands.iter().any(|band| band.color == color) {
                legend.push(Entry::of_mark(color, Stroke::Shade, name.to_owned()));
            }
        }
        plot.bands.extend(self.bands);
        for upright in self.uprights {
            // Rows of a stage have its events in common.
            if !plot.uprights.contains(&upright) {
                plot.uprights.push(upright);
            }
        }
    }
}

/// Returns bands over an axis that long, those near each other as one where there are too many.
fn fewer(mut bands: Vec<Band>, seconds: f64) -> Vec<Band> {
    if bands.len() <= BANDS_MAX {
        return bands;
    }
    let near = seconds / BANDS_MAX as f64;
    bands.sort_by(|a, b| a.color.number().cmp(&b.color.number()).then(a.from.total_cmp(&b.from)));
    let mut merged: Vec<Band> = Vec::new();
    for band in bands {
        match merged.last_mut() {
            Some(last) if last.color == band.color && band.from <= last.until + near => {
                last.until = last.until.max(band.until);
                if last.text != band.text {
                    let is_outage = band.color == SeriesColor::OUTAGE;
                    last.text = if is_outage { "outages" } else { "failures" }.to_owned();
                }
            }
            _ => merged.push(band),
        }
    }
    merged
}

/// Returns the stretches of segments in which operations failed, neighbours as one.
fn failures(series: &[SegmentRow], at: &impl Fn(Moment) -> f64) -> Vec<Band> {
    let each = series.len().div_ceil(2 * BANDS_MAX).max(1);
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (index, rows) in series.chunks(each).enumerate() {
        if rows.iter().all(|row| row.failed.count() == 0) {
            continue;
        }
        let (from, until) = (index * each, index * each + rows.len());
        match stretches.last_mut() {
            Some((_, last)) if *last == from => *last = until,
            _ => stretches.push((from, until)),
        }
    }
    let band = |(from, until): (usize, usize)| {
        let rows = &series[from..until];
        let of = |class| rows.iter().map(|row| row.failed.of(class)).sum::<u64>();
        let classes = ErrorClass::ALL.into_iter().filter(|class| !class.is_ok());
        let told = classes.map(|class| (class, of(class))).filter(|(_, failed)| *failed > 0);
        let told: Vec<String> =
            told.map(|(class, failed)| format!("{} {}", count(failed), class.name())).collect();
        let last = &rows[rows.len() - 1];
        Band {
            from: at(rows[0].start),
            until: at(last.start.after(last.length)),
            color: SeriesColor::FAILED,
            text: format!("failed: {}", told.join(", ")),
        }
    };
    stretches.into_iter().map(band).collect()
}
