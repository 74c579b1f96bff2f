//! One chart as SVG, for print and where no script runs, drawn by plotters in placeholder colours
//! that the style sheet replaces.
//!
//! Colours are attributes of the SVG, which any rule of a style sheet overrides; so one drawing
//! serves light, dark and paper. No font is needed: text is placed by its anchor.

use std::ops::Range;

use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

use super::axis::Axis;
use super::colour::SeriesColor;
use super::heat::Heat;
use super::thin::{Point, thinned};

/// Units of the drawing for each pixel of the page: plotters has whole units only.
const SCALE: u32 = 2;
/// A chart over the whole width of the page.
pub(super) const WIDE: (u32, u32) = (1_000 * SCALE, 250 * SCALE);
/// Points of a line that is drawn.
const POINTS_DRAWN_MAX: usize = 300;
/// Two of these lie side by side.
pub(super) const HALF: (u32, u32) = (490 * SCALE, 270 * SCALE);

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
    DashDotted,
    /// Pale.
    Shade,
    /// Filled.
    Full,
}

/// The strokes of lines, for charts in which colours alone would not tell them apart.
const LINES: [Stroke; 4] = [Stroke::Solid, Stroke::Dashed, Stroke::Dotted, Stroke::DashDotted];
/// With more lines than this they differ in their dashes too.
const COLORS_ALONE_MAX: usize = 5;

impl Stroke {
    const ALL: [Self; 6] =
        [Self::Solid, Self::Dashed, Self::Dotted, Self::DashDotted, Self::Shade, Self::Full];

    /// Returns the stroke of one of so many lines by its place among them.
    pub(super) fn of_line(index: usize, count: usize) -> Self {
        if count > COLORS_ALONE_MAX { LINES[index % LINES.len()] } else { Self::Solid }
    }

    /// Returns its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Dashed | Self::DashDotted => "dashed",
            Self::Dotted => "dotted",
            Self::Shade | Self::Full => "full",
        }
    }

    /// Returns the lengths of its dashes and gaps in units of a drawing; `None` where it has none.
    pub(super) fn dashes(self) -> Option<&'static [u8]> {
        match self {
            Self::Dashed => Some(&[12, 8]),
            Self::Dotted => Some(&[3, 6]),
            Self::DashDotted => Some(&[14, 6, 3, 6]),
            Self::Solid | Self::Shade | Self::Full => None,
        }
    }

    /// Returns the attribute that holds the colour, and what else its rule says.
    fn rule(self) -> (&'static str, String) {
        match self {
            Self::Shade => ("fill", ";fill-opacity:.16".to_owned()),
            Self::Full => ("fill", String::new()),
            _ => {
                let dashes = self.dashes().map_or(String::new(), |dashes| {
                    let dashes: Vec<String> = dashes.iter().map(u8::to_string).collect();
                    format!(";stroke-dasharray:{}", dashes.join(" "))
                });
                ("stroke", dashes)
            }
        }
    }
}

/// The first byte of every placeholder; the second tells how to draw, the third what colour.
const PLACEHOLDER: u8 = 0x0A;
const NEUTRAL: u8 = 0;
const TEXT: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 0);
const GRID: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 1);
const FRAME: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 2);

fn placeholder(color: SeriesColor, stroke: Stroke) -> RGBColor {
    RGBColor(PLACEHOLDER, stroke as u8 + 1, color.number())
}

/// Returns the rules that give the placeholders on a page their colours.
pub(super) fn style_rules(page: &str) -> String {
    let name = |color: RGBColor| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let mut rules = format!(
        "svg [fill=\"{}\"]{{fill:var(--dim)}}svg [stroke=\"{}\"]{{stroke:var(--grid)}}\
         svg [stroke=\"{}\"]{{stroke:var(--frame)}}",
        name(TEXT),
        name(GRID),
        name(FRAME)
    );
    for color in SeriesColor::all() {
        let (number, variable) = (color.number(), color.variable());
        if page.contains(&format!(" s{number}\"")) {
            rules += &format!(".s{number}{{color:var({variable})}}");
        }
        for stroke in Stroke::ALL {
            let placeholder = name(placeholder(color, stroke));
            let (of, more) = stroke.rule();
            if page.contains(&placeholder) {
                rules += &format!("svg [{of}=\"{placeholder}\"]{{{of}:var({variable}){more}}}");
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
    /// What is shaded over its whole height.
    pub(super) bands: Vec<Band>,
    /// What is marked over its whole height.
    pub(super) uprights: Vec<Upright>,
    /// Counts by column and row, drawn below everything else.
    pub(super) heat: Option<Heat>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Problem<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

impl Plot {
    /// Returns a plot of marks alone.
    pub(super) fn new(size: (u32, u32), x: Axis, y: Axis, marks: Vec<Mark>) -> Self {
        Self { size, x, y, marks, bands: Vec::new(), uprights: Vec::new(), heat: None }
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
            let style = placeholder(*color, Stroke::Dashed).stroke_width(SCALE);
            chart.draw_series([PathElement::new(vec![(at, low), (at, high)], style)])?;
            if !label.is_empty() {
                let text = Text::new(label.clone(), (at + 6.0 * width, high), font.clone());
                chart.draw_series([text])?;
            }
        }
        for mark in &self.marks {
            self.draw_mark(&mut chart, mark)?;
        }
        let ranges = chart.plotting_area().get_pixel_range();
        area.present()?;
        Ok(ranges)
    }

    fn draw_mark<'a>(
        &self,
        chart: &mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<Axis, Axis>>,
        mark: &Mark,
    ) -> Result<(), Problem<'a>> {
        let few = Mark { points: thinned(mark.points.clone(), POINTS_DRAWN_MAX), ..mark.clone() };
        // An area goes there and back, which is no order to thin it by.
        let is_area = matches!(mark.stroke, Stroke::Shade | Stroke::Full);
        for run in self.runs(if is_area { mark } else { &few }) {
            let color = placeholder(mark.color, mark.stroke);
            let full = placeholder(mark.color, Stroke::Full);
            let dot = |at: &(f64, f64)| Circle::new(*at, 3 * SCALE, full.filled());
            if mark.dots || run.len() == 1 {
                chart.draw_series(run.iter().map(dot))?;
            }
            match mark.stroke {
                Stroke::Shade | Stroke::Full => {
                    chart.draw_series([Polygon::new(run, color.filled())])?;
                }
                Stroke::Solid | Stroke::Dashed | Stroke::Dotted | Stroke::DashDotted
                    if run.len() > 1 =>
                {
                    let width = if mark.stroke == Stroke::Solid { 3 } else { 2 };
                    chart.draw_series([PathElement::new(run, color.stroke_width(width))])?;
                }
                Stroke::Solid | Stroke::Dashed | Stroke::Dotted | Stroke::DashDotted => {}
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
