//! One chart as SVG, drawn by plotters in placeholder colours that the style sheet replaces.
//!
//! Colours are attributes of the SVG, which any rule of a style sheet overrides; so one drawing
//! serves light, dark and paper. No font is needed: text is placed by its anchor.

use plotters::prelude::*;

use super::axis::Axis;

/// Units of the drawing for each pixel of the page: plotters has whole units only.
const SCALE: u32 = 2;
/// A chart over the whole width of the page.
pub(super) const WIDE: (u32, u32) = (1_000 * SCALE, 250 * SCALE);
/// Two of these lie side by side.
pub(super) const HALF: (u32, u32) = (490 * SCALE, 270 * SCALE);

/// How many colours there are: one for each kind of operation, then those for anything else.
const COLORS: u8 = OTHER_COLORS + OTHER_COLORS_COUNT as u8;
/// The first colour that is no kind's.
const OTHER_COLORS: u8 = plimsoll_model::OpKind::ALL.len() as u8;
/// How many colours there are for anything else.
pub(super) const OTHER_COLORS_COUNT: usize = 8;

/// One of the colours of the style sheet, `--s0`, `--s1`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeriesColor(u8);

impl SeriesColor {
    /// Returns the colour of a kind, the same in all charts.
    pub(super) fn of_kind(kind: plimsoll_model::OpKind) -> Self {
        Self(kind as u8)
    }

    /// Returns the colour of something else by its place in a list.
    pub(super) fn of_other(index: usize) -> Self {
        Self(OTHER_COLORS + (index % OTHER_COLORS_COUNT) as u8)
    }

    /// Returns its name in the style sheet.
    pub(super) fn variable(self) -> String {
        format!("--s{}", self.0)
    }
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    /// Below a line, pale.
    Shade,
    /// Filled.
    Full,
}

impl Stroke {
    /// Returns its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Dashed => "dashed",
            Self::Shade | Self::Full => "full",
        }
    }
}

/// The second byte of every placeholder tells how to draw, the third what colour.
const PLACEHOLDER: u8 = 0x0A;
const NEUTRAL: u8 = 0;
const TEXT: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 0);
const GRID: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 1);
const FRAME: RGBColor = RGBColor(PLACEHOLDER, NEUTRAL, 2);

fn placeholder(color: SeriesColor, stroke: Stroke) -> RGBColor {
    RGBColor(PLACEHOLDER, stroke as u8 + 1, color.0)
}

/// Returns the rules that give the placeholders their colours.
pub(super) fn style_rules() -> String {
    let name = |color: RGBColor| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let mut rules = format!(
        "svg [fill=\"{}\"]{{fill:var(--dim)}}svg [stroke=\"{}\"]{{stroke:var(--grid)}}\
         svg [stroke=\"{}\"]{{stroke:var(--frame)}}",
        name(TEXT),
        name(GRID),
        name(FRAME)
    );
    for color in (0..COLORS).map(SeriesColor) {
        let variable = color.variable();
        for (stroke, of, more) in [
            (Stroke::Solid, "stroke", ""),
            (Stroke::Dashed, "stroke", ";stroke-dasharray:9 7"),
            (Stroke::Shade, "fill", ";fill-opacity:.16"),
            (Stroke::Full, "fill", ""),
        ] {
            let placeholder = name(placeholder(color, stroke));
            rules += &format!("svg [{of}=\"{placeholder}\"]{{{of}:var({variable}){more}}}");
        }
    }
    rules
}

/// A line or an area through values; a gap where there is none.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) color: SeriesColor,
    pub(super) stroke: Stroke,
    pub(super) points: Vec<(f64, Option<f64>)>,
    /// Whether each point shows.
    pub(super) dots: bool,
}

impl Mark {
    pub(super) fn line(
        color: SeriesColor,
        stroke: Stroke,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        Self { color, stroke, points: points.into_iter().collect(), dots: false }
    }
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) size: (u32, u32),
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) marks: Vec<Mark>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Problem<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

impl Plot {
    /// Returns the drawing as an `svg` element; `label` must be escaped.
    pub(super) fn svg(&self, label: &str) -> String {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
        self.draw(&area).expect("a text takes every drawing");
        drop(area);
        // The size in pixels would hold against the width of the page.
        let (_, body) = svg.split_once('>').expect("a drawing begins with its element");
        let (width, height) = self.size;
        let open =
            format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">");
        open + &body.replace(" opacity=\"1\"", "").replace(" \"/>", "\"/>")
    }

    fn draw<'a>(&self, area: &Area<'a>) -> Result<(), Problem<'a>> {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8 * SCALE)
            .margin_right(20 * SCALE)
            .x_label_area_size(26 * SCALE)
            .y_label_area_size(self.y_labels_width())
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        // The backend divides by 1.24 what it writes as the size.
        let font = ("sans-serif", 12.0 * 1.24 * f64::from(SCALE)).into_font();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(SCALE))
            .axis_style(FRAME.stroke_width(SCALE))
            .label_style(font.color(&TEXT))
            .set_all_tick_mark_size(4 * SCALE)
            .draw()?;
        for mark in &self.marks {
            for run in self.runs(mark) {
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
                    Stroke::Solid | Stroke::Dashed if run.len() > 1 => {
                        let width = if mark.stroke == Stroke::Solid { 2 } else { 1 };
                        let style = color.stroke_width(width * SCALE);
                        chart.draw_series([PathElement::new(run, style)])?;
                    }
                    Stroke::Solid | Stroke::Dashed => {}
                }
            }
        }
        area.present()
    }

    /// Returns the room that the longest label of the upright axis needs.
    fn y_labels_width(&self) -> u32 {
        let chars = self.y.ticks.iter().map(|(_, label)| label.chars().count()).max();
        // Wide enough for the larger letters on paper.
        (18 + 9 * chars.unwrap_or(0) as u32) * SCALE
    }

    /// Returns the stretches of a mark without gaps, as places.
    fn runs(&self, mark: &Mark) -> Vec<Vec<(f64, f64)>> {
        let stretches = mark.points.split(|(_, value)| value.is_none());
        let place = |(x, y): &(f64, Option<f64>)| Some((self.x.place(*x), self.y.place((*y)?)));
        let places = stretches.map(|points| points.iter().filter_map(place).collect());
        places.filter(|run: &Vec<_>| !run.is_empty()).collect()
    }
}
