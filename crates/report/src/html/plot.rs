//! One chart as SVG, for print and where no script runs, drawn by plotters in placeholder colours
//! that the style sheet replaces.
//!
//! Colours are attributes of the SVG, which any rule of a style sheet overrides; so one drawing
//! serves light, dark and paper. No font is needed: text is placed by its anchor.

use std::collections::BTreeSet;
use std::ops::Range;

use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::colour::SeriesColor;
use super::heat::Heat;
use super::thin::{Point, thinned};

/// Units of the drawing for each pixel of the page: plotters has whole units only.
pub(super) const SCALE: u32 = 2;
/// A chart over the whole width of the page.
pub(super) const WIDE: (u32, u32) = (1_000 * SCALE, 250 * SCALE);
/// One of several charts of the same over the whole width.
pub(super) const LOW: (u32, u32) = (1_000 * SCALE, 190 * SCALE);
/// Points of a line that is drawn.
const POINTS_DRAWN_MAX: usize = 300;
/// How much room a letter takes at most: those on paper and on a phone are larger.
const CHAR_UNITS: f64 = 17.0;
/// Two of these lie side by side.
pub(super) const HALF: (u32, u32) = (490 * SCALE, 270 * SCALE);

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    /// A line with one of the patterns of [`DASHES`].
    Line(u8),
    /// A thick line without gaps.
    Bold,
    /// Pale.
    Shade,
    /// Filled.
    Full,
}

/// The lengths of dashes and gaps of each pattern, in units of a drawing; the first has no gaps.
const DASHES: [&[u8]; 12] = [
    &[],
    &[12, 8],
    &[3, 6],
    &[14, 6, 3, 6],
    &[28, 8],
    &[14, 6, 3, 6, 3, 6],
    &[28, 8, 12, 8],
    &[4, 14],
    &[28, 6, 3, 6],
    &[12, 20],
    &[28, 6, 3, 6, 3, 6],
    &[12, 6, 12, 6, 3, 6],
];

impl Stroke {
    pub(super) const SOLID: Self = Self::Line(0);
    pub(super) const DASHED: Self = Self::Line(1);

    fn all() -> impl Iterator<Item = Self> {
        let lines = (0..DASHES.len() as u8).map(Self::Line);
        lines.chain([Self::Bold, Self::Shade, Self::Full])
    }

    /// Returns the stroke of a line by its place among those of a chart: all of them differ, so
    /// that no colour is needed to tell them apart.
    pub(super) fn of_line(index: usize) -> Self {
        Self::Line((index % DASHES.len()) as u8)
    }

    fn number(self) -> u8 {
        match self {
            Self::Line(pattern) => pattern,
            Self::Bold => 32,
            Self::Shade => 33,
            Self::Full => 34,
        }
    }

    /// Returns its class in the style sheet, by which a legend has a sample of it.
    pub(super) fn class(self) -> String {
        match self {
            Self::Line(pattern) => format!("k{pattern}"),
            Self::Bold => "bold".to_owned(),
            Self::Shade => "shade".to_owned(),
            Self::Full => "full".to_owned(),
        }
    }

    /// Returns the lengths of its dashes and gaps in units of a drawing; `None` where it has none.
    pub(super) fn dashes(self) -> Option<&'static [u8]> {
        let Self::Line(pattern) = self else { return None };
        DASHES.get(usize::from(pattern)).copied().filter(|dashes| !dashes.is_empty())
    }

    fn is_area(self) -> bool {
        matches!(self, Self::Shade | Self::Full)
    }

    /// Returns how thick a line is, in units of a drawing.
    pub(super) fn width(self) -> u32 {
        match self {
            Self::Bold => 5,
            Self::Line(_) | Self::Shade | Self::Full => 3,
        }
    }

    /// Returns the attribute that holds the colour, and what else its rule says.
    fn rule(self) -> (&'static str, String) {
        match self {
            Self::Shade => ("fill", ";fill-opacity:.16".to_owned()),
            Self::Full => ("fill", String::new()),
            Self::Line(_) | Self::Bold => {
                let dashes = self.dashes().map_or(String::new(), |dashes| {
                    let dashes: Vec<String> = dashes.iter().map(u8::to_string).collect();
                    format!(";stroke-dasharray:{}", dashes.join(" "))
                });
                ("stroke", dashes)
            }
        }
    }

    /// Returns the rule of its sample in a legend: the pattern, in pixels of the page.
    fn sample(self) -> String {
        let mut stops = Vec::new();
        let (mut at, mut is_gap) = (0.0, false);
        for length in self.dashes().unwrap_or(&[2]) {
            let end = at + f64::from(*length) / f64::from(SCALE);
            stops.push(format!("{} {at}px {end}px", if is_gap { "#0000" } else { "currentColor" }));
            (at, is_gap) = (end, !is_gap);
        }
        let stops = stops.join(",");
        format!(".{}{{background:repeating-linear-gradient(90deg,{stops})}}", self.class())
    }
}

/// The first byte of every placeholder; the second tells how to draw, the third what colour.
const PLACEHOLDER: u8 = 0x0A;
const NEUTRAL: u8 = 0;
const TEXT: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 0);
const GRID: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 1);
const FRAME: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 2);
const STRETCH: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 3);

fn placeholder(color: SeriesColor, stroke: Stroke) -> RGBColor {
    RGBColor(PLACEHOLDER, stroke.number() + 1, color.number())
}

/// Returns the rules that give the placeholders on a page their colours.
pub(super) fn style_rules(page: &str) -> String {
    let name = |color: RGBColor| format!("{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let neutral = |attribute: &str, color: RGBColor, variable: &str| {
        format!("svg [{attribute}=\"#{}\"]{{{attribute}:var(--{variable})}}", name(color))
    };
    let mut rules = neutral("fill", TEXT, "dim")
        + &neutral("stroke", GRID, "grid")
        + &neutral("stroke", FRAME, "frame")
        + &neutral("fill", STRETCH, "stretch");
    let lines = Stroke::all().filter(|stroke| matches!(stroke, Stroke::Line(_)));
    rules.extend(lines.map(Stroke::sample));
    // Few of all that there are.
    let used: BTreeSet<&str> = page.split("\"#").filter_map(|text| text.get(..6)).collect();
    for color in SeriesColor::all() {
        let (number, variable) = (color.number(), color.variable());
        rules += &format!(".s{number}{{color:var({variable})}}");
        for stroke in Stroke::all() {
            let placeholder = name(placeholder(color, stroke));
            let (of, more) = stroke.rule();
            if used.contains(&*placeholder) {
                rules += &format!("svg [{of}=\"#{placeholder}\"]{{{of}:var({variable}){more}}}");
            }
        }
    }
    rules
}

/// A line or an area through values; a gap where there is none.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) color: SeriesColor,
    pub(super) stroke: Stroke,
    pub(super) points: Vec<Point>,
    /// Whether each point shows.
    pub(super) dots: bool,
    /// What it is called where its values can be asked for; empty where they cannot.
    pub(super) name: String,
}

impl Mark {
    pub(super) fn line(
        color: SeriesColor,
        stroke: Stroke,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        let points = points.into_iter().collect();
        Self { color, stroke, points, dots: false, name: String::new() }
    }

    /// Returns it with a name.
    pub(super) fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// A stretch of a chart from one place of the level axis to another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Band {
    pub(super) from: f64,
    pub(super) until: f64,
    pub(super) color: SeriesColor,
    /// What it says where it is pointed at.
    pub(super) text: String,
}

/// A stretch with a name of its own that stands at its top: a stage of the run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) from: f64,
    pub(super) until: f64,
    pub(super) name: String,
}

/// An upright line at a place of the level axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upright {
    pub(super) at: f64,
    pub(super) color: SeriesColor,
    /// What it says where it is pointed at.
    pub(super) text: String,
    /// What stands beside it; empty where the legend says what it is.
    pub(super) label: String,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) size: (u32, u32),
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) marks: Vec<Mark>,
    /// What its level axis is cut into, every other one shaded; empty where it is one.
    pub(super) stretches: Vec<Stretch>,
    /// What is shaded over its whole height.
    pub(super) bands: Vec<Band>,
    /// What is marked over its whole height.
    pub(super) uprights: Vec<Upright>,
    /// Counts by column and row, drawn below everything else.
    pub(super) heat: Option<Heat>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn<'b, 'a> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
type Problem<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

impl Plot {
    /// Returns a plot of marks alone.
    pub(super) fn new(size: (u32, u32), x: Axis, y: Axis, marks: Vec<Mark>) -> Self {
        let (stretches, bands, uprights) = (Vec::new(), Vec::new(), Vec::new());
        Self { size, x, y, marks, stretches, bands, uprights, heat: None }
    }

    /// Returns the drawing as an `svg` element; `label` must be escaped.
    pub(super) fn svg(&self, label: &str) -> String {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
        let (x, y) = self.draw(&area).expect("a text takes every drawing");
        drop(area);
        // The size in pixels would hold against the width of the page.
        let (_, body) = svg.split_once('>').expect("a drawing begins with its element");
        let (width, height) = self.size;
        let open =
            format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">");
        let heat = self.heat.as_ref().map_or(String::new(), |heat| heat.svg(&self.x, &x, &y));
        open + &heat + &body.replace(" opacity=\"1\"", "").replace(" \"/>", "\"/>")
    }

    /// Draws it, and returns the pixels of what lies between its axes.
    fn draw<'a>(&self, area: &Area<'a>) -> Result<(Range<i32>, Range<i32>), Problem<'a>> {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8 * SCALE)
            .margin_right(20 * SCALE)
            .x_label_area_size(if self.x.title.is_empty() { 26 } else { 44 } * SCALE)
            .y_label_area_size(self.y_labels_width())
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        // The backend divides by 1.24 what it writes as the size.
        let font = ("sans-serif", 12.0 * 1.24 * f64::from(SCALE)).into_font().color(&TEXT);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(SCALE))
            .axis_style(FRAME.stroke_width(SCALE))
            .label_style(font.clone())
            .axis_desc_style(font.clone())
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .set_all_tick_mark_size(4 * SCALE)
            .draw()?;
        self.draw_stretches(&mut chart, &font)?;
        self.draw_happened(&mut chart, &font)?;
        for mark in &self.marks {
            self.draw_mark(&mut chart, mark)?;
        }
        let ranges = chart.plotting_area().get_pixel_range();
        area.present()?;
        Ok(ranges)
    }

    /// Draws what the level axis is cut into, with as many names as have room.
    fn draw_stretches<'a>(
        &self,
        chart: &mut Drawn<'_, 'a>,
        font: &TextStyle<'_>,
    ) -> Result<(), Problem<'a>> {
        let (low, high) = (self.y.low, self.y.high);
        let ends = |of: &Stretch| (self.x.place(of.from), self.x.place(of.until));
        for (from, until) in self.stretches.iter().skip(1).step_by(2).map(ends) {
            let corners = vec![(from, low), (from, high), (until, high), (until, low)];
            chart.draw_series([Polygon::new(corners, STRETCH.filled())])?;
        }
        let unit = (self.x.high - self.x.low) / f64::from(self.size.0);
        let wide = |of: &Stretch| (of.name.chars().count() as f64 + 1.0) * CHAR_UNITS * unit;
        let each = self.stretches.iter().map(|of| (ends(of), wide(of)));
        let places = label_places(&each.collect::<Vec<_>>(), (self.x.low, self.x.high));
        let style = font.clone().pos(Pos::new(HPos::Center, VPos::Top));
        for (of, at) in self.stretches.iter().zip(places) {
            let Some(at) = at else { continue };
            chart.draw_series([Text::new(of.name.clone(), (at, high), style.clone())])?;
        }
        Ok(())
    }

    /// Draws what is marked over its whole height.
    fn draw_happened<'a>(
        &self,
        chart: &mut Drawn<'_, 'a>,
        font: &TextStyle<'_>,
    ) -> Result<(), Problem<'a>> {
        let (low, high) = (self.y.low, self.y.high);
        let width = (self.x.high - self.x.low) / f64::from(self.size.0);
        for Band { from, until, color, .. } in &self.bands {
            // Two units at least, or a short one would not be seen.
            let (from, until) = (self.x.place(*from), self.x.place(until.max(from + 2.0 * width)));
            let fill = placeholder(*color, Stroke::Shade).filled();
            let corners = vec![(from, low), (from, high), (until, high), (until, low)];
            chart.draw_series([Polygon::new(corners, fill)])?;
        }
        for Upright { at, color, label, .. } in &self.uprights {
            let at = self.x.place(*at);
            let style = placeholder(*color, Stroke::DASHED).stroke_width(SCALE);
            chart.draw_series([PathElement::new(vec![(at, low), (at, high)], style)])?;
            if !label.is_empty() {
                let text = Text::new(label.clone(), (at + 6.0 * width, high), font.clone());
                chart.draw_series([text])?;
            }
        }
        Ok(())
    }

    fn draw_mark<'a>(&self, chart: &mut Drawn<'_, 'a>, mark: &Mark) -> Result<(), Problem<'a>> {
        let few = Mark { points: thinned(mark.points.clone(), POINTS_DRAWN_MAX), ..mark.clone() };
        // An area goes there and back, which is no order to thin it by.
        let is_area = mark.stroke.is_area();
        for run in self.runs(if is_area { mark } else { &few }) {
            let color = placeholder(mark.color, mark.stroke);
            let full = placeholder(mark.color, Stroke::Full);
            let dot = |at: &(f64, f64)| Circle::new(*at, 3 * SCALE, full.filled());
            if mark.dots || run.len() == 1 {
                chart.draw_series(run.iter().map(dot))?;
            }
            if is_area {
                chart.draw_series([Polygon::new(run, color.filled())])?;
            } else if run.len() > 1 {
                let style = color.stroke_width(mark.stroke.width());
                chart.draw_series([PathElement::new(run, style)])?;
            }
        }
        Ok(())
    }

    /// Returns the room that the longest label of the upright axis needs.
    fn y_labels_width(&self) -> u32 {
        let chars = self.y.ticks.iter().map(|(_, label)| label.chars().count()).max();
        // Wide enough for the larger letters on paper.
        let title = if self.y.title.is_empty() { 0 } else { 18 };
        (18 + title + 9 * chars.unwrap_or(0) as u32) * SCALE
    }

    /// Returns the stretches of a mark without gaps, as places.
    fn runs(&self, mark: &Mark) -> Vec<Vec<(f64, f64)>> {
        let stretches = mark.points.split(|(_, value)| value.is_none());
        let place = |(x, y): &(f64, Option<f64>)| Some((self.x.place(*x), self.y.place((*y)?)));
        let places = stretches.map(|points| points.iter().filter_map(place).collect());
        places.filter(|run: &Vec<_>| !run.is_empty()).collect()
    }
}

/// Returns the middles of the names of stretches, each of which has ends and a name so wide; `None`
/// for those that would lie over others. The longest stretches have their names first.
fn label_places(each: &[((f64, f64), f64)], (low, high): (f64, f64)) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..each.len()).collect();
    let length = |at: usize| each[at].0.1 - each[at].0.0;
    order.sort_by(|a, b| length(*b).total_cmp(&length(*a)));
    let mut places = vec![None; each.len()];
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for at in order {
        let ((from, until), wide) = each[at];
        let half = wide / 2.0;
        if wide > high - low {
            continue;
        }
        let middle = f64::midpoint(from, until).clamp(low + half, high - half);
        let (left, right) = (middle - half, middle + half);
        if taken.iter().all(|(from, until)| right <= *from || left >= *until) {
            taken.push((left, right));
            places[at] = Some(middle);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_lie_over_others_are_left_out_those_of_short_stretches_first() {
        // A name in its stretch, one wider than its stretch beside it, one with room, one too wide.
        let each = [((0.0, 50.0), 20.0), ((50.0, 52.0), 60.0), ((52.0, 100.0), 20.0)];
        assert_eq!(label_places(&each, (0.0, 100.0)), [Some(25.0), None, Some(76.0)]);
        // At an end it moves into the chart.
        let each = [((0.0, 2.0), 20.0), ((2.0, 100.0), 20.0)];
        assert_eq!(label_places(&each, (0.0, 100.0)), [Some(10.0), Some(51.0)]);
        assert_eq!(label_places(&[((0.0, 9.0), 200.0)], (0.0, 100.0)), [None]);
        let many: Vec<_> = (0..64).map(|at| ((f64::from(at), f64::from(at + 1)), 7.0)).collect();
        let shown: Vec<f64> = label_places(&many, (0.0, 64.0)).into_iter().flatten().collect();
        assert!(
            shown.len() >= 8 && shown.windows(2).all(|two| two[1] - two[0] >= 7.0),
            "{shown:?}"
        );
    }

    #[test]
    fn lines_differ_in_their_dashes_from_the_second_on() {
        let strokes: Vec<Stroke> = (0..DASHES.len()).map(Stroke::of_line).collect();
        for (at, stroke) in strokes.iter().enumerate() {
            assert!(strokes[..at].iter().all(|other| other.dashes() != stroke.dashes()));
        }
        assert_eq!(Stroke::of_line(0), Stroke::SOLID);
        let numbers: BTreeSet<u8> = Stroke::all().map(Stroke::number).collect();
        assert_eq!(numbers.len(), Stroke::all().count());
        let dotted = ".k2{background:repeating-linear-gradient(90deg,currentColor 0px 1.5px,#0000 \
                      1.5px 4.5px)}";
        assert_eq!(Stroke::of_line(2).sample(), dotted);
    }
}
