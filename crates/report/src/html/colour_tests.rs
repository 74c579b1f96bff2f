//! The table of colours against what eyes can tell apart.

use plimsoll_model::OpKind;

use super::*;

/// What WCAG 2.1 (1.4.11) asks of a line against what it is drawn on.
const CONTRAST_MIN: f64 = 3.0;
/// The least distance in OKLab of two kinds that commonly stand in one chart, for every eye: 0.02
/// is just noticeable side by side, and lines are thin.
const APART_MIN: f64 = 0.075;
/// The same of the kinds of `s3 mixed`, which nearly every reader sees together.
const APART_OF_MIXED_MIN: f64 = 0.11;
/// The same, seen by eyes that see all colours: more than two shades of one hue.
const DIFFERENT_OF_MIXED_MIN: f64 = 0.15;
/// The same for any two kinds, seen by eyes that see all colours.
const DIFFERENT_MIN: f64 = 0.045;
/// The hues in OKLCH, in degrees, that are red: those of failures lie at 25 to 29.
const RED: [std::ops::Range<f64>; 2] = [0.0..45.0, 352.0..360.0];
/// The papers of the light and the dark theme, as in the style sheet.
const PAPERS: [u32; 2] = [0xffffff, 0x14171b];

type Rgb = [f64; 3];

/// What an eye sees of linear RGB: all of it, and without red, green and blue cones (Machado,
/// Oliveira, Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency,
/// 2009, severity 1.0).
const EYES: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
    [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_900],
    ],
];

/// Returns linear RGB of a colour in sRGB.
fn linear(color: u32) -> Rgb {
    [color >> 16, color >> 8, color].map(|value| {
        let value = f64::from(value & 0xff) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn product(matrix: &[[f64; 3]; 3], of: Rgb) -> Rgb {
    matrix.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum())
}

/// Returns OKLab of linear RGB (Ottosson 2020).
fn oklab(color: Rgb) -> Rgb {
    let cones = product(
        &[
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        color,
    );
    product(
        &[
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        cones.map(f64::cbrt),
    )
}

fn distance(a: Rgb, b: Rgb) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Returns how an eye sees a colour.
fn seen(eye: &[[f64; 3]; 3], color: u32) -> Rgb {
    oklab(product(eye, linear(color)).map(|value| value.clamp(0.0, 1.0)))
}

/// Returns the hue in OKLCH, in degrees.
fn hue(color: u32) -> f64 {
    let [_, a, b] = oklab(linear(color));
    b.atan2(a).to_degrees().rem_euclid(360.0)
}

/// Returns the contrast of WCAG 2.
fn contrast(a: u32, b: u32) -> f64 {
    let luminance = |color| {
        let [red, green, blue] = linear(color);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Returns a colour in the light and in the dark theme.
fn both(color: SeriesColor) -> [u32; 2] {
    let Shades { light, dark } = color.shades();
    [light, dark]
}

/// Kinds that commonly stand in one chart.
const TOGETHER: [&[OpKind]; 4] = [
    &[OpKind::Put, OpKind::Get, OpKind::Delete, OpKind::Stat, OpKind::List],
    &[OpKind::Read, OpKind::Write, OpKind::Sync],
    &[
        OpKind::Create,
        OpKind::Open,
        OpKind::Stat,
        OpKind::Unlink,
        OpKind::Rename,
        OpKind::Mkdir,
        OpKind::Rmdir,
    ],
    &[
        OpKind::Put,
        OpKind::Get,
        OpKind::PutPart,
        OpKind::CreateUpload,
        OpKind::CompleteUpload,
        OpKind::AbortUpload,
    ],
];

/// The least distance in the two charts that have the most lines.
const APART_OF_MANY_MIN: f64 = 0.065;

#[test]
fn black_and_white_are_as_the_standards_say() {
    assert!((contrast(0xffffff, 0x000000) - 21.0).abs() < 1e-9);
    assert!((oklab(linear(0xffffff))[0] - 1.0).abs() < 1e-4);
    // Red of sRGB lies at 29.2 degrees.
    assert!((hue(0xff0000) - 29.2).abs() < 0.1, "{}", hue(0xff0000));
}

#[test]
fn every_colour_shows_on_the_paper_of_its_theme() {
    for color in SeriesColor::all() {
        for (shade, paper) in both(color).into_iter().zip(PAPERS) {
            let contrast = contrast(shade, paper);
            assert!(contrast >= CONTRAST_MIN, "{color:?} #{shade:06x}: {contrast:.2}");
        }
    }
    let style = include_str!("page.css");
    assert!(style.contains("--paper: #fff;") && style.contains("--paper: #14171b;"));
}

#[test]
fn kinds_that_stand_together_keep_apart_for_every_eye() {
    let others: Vec<_> = (0..OTHER_COLORS_COUNT).map(SeriesColor::of_other).collect();
    let kinds =
        TOGETHER.map(|kinds| kinds.iter().copied().map(SeriesColor::of_kind).collect::<Vec<_>>());
    for group in kinds.iter().chain([&others]) {
        let min = if group.len() > 5 { APART_OF_MANY_MIN } else { APART_MIN };
        for (at, a) in group.iter().enumerate() {
            for (b, theme, eye) in group[..at]
                .iter()
                .flat_map(|b| [0, 1].map(|theme| (b, theme)))
                .flat_map(|(b, theme)| EYES.iter().map(move |eye| (b, theme, eye)))
            {
                let (one, other) = (both(*a)[theme], both(*b)[theme]);
                let apart = distance(seen(eye, one), seen(eye, other));
                assert!(apart >= min, "#{one:06x} and #{other:06x}: {apart:.4}, {:?}", eye[0]);
            }
        }
    }
}

#[test]
fn kinds_of_a_mixed_run_are_far_apart_for_every_eye_and_no_two_are_of_one_hue() {
    let [mixed, ..] = TOGETHER;
    for (at, a) in mixed.iter().enumerate() {
        for (b, theme) in mixed[..at].iter().flat_map(|b| [0, 1].map(|theme| (b, theme))) {
            let [one, other] = [a, b].map(|kind| both(SeriesColor::of_kind(*kind))[theme]);
            for (eye, min) in EYES.iter().zip([
                DIFFERENT_OF_MIXED_MIN,
                APART_OF_MIXED_MIN,
                APART_OF_MIXED_MIN,
                APART_OF_MIXED_MIN,
            ]) {
                let apart = distance(seen(eye, one), seen(eye, other));
                assert!(apart >= min, "{a:?} and {b:?}, theme {theme}: {apart:.4}, {:?}", eye[0]);
            }
            let turned = (hue(one) - hue(other)).abs();
            let turned = turned.min(360.0 - turned);
            assert!(turned >= 20.0, "{a:?} and {b:?}, theme {theme}: {turned:.0} degrees");
        }
    }
}

#[test]
fn any_two_kinds_differ_and_none_is_red() {
    for (at, kind) in OpKind::ALL.into_iter().enumerate() {
        for theme in [0, 1] {
            let color = both(SeriesColor::of_kind(kind))[theme];
            let is_red = RED.iter().any(|red| red.contains(&hue(color)));
            assert!(!is_red, "{kind:?} #{color:06x}: {:.0}", hue(color));
            for other in &OpKind::ALL[..at] {
                let theirs = both(SeriesColor::of_kind(*other))[theme];
                let apart = distance(oklab(linear(color)), oklab(linear(theirs)));
                assert!(apart >= DIFFERENT_MIN, "{kind:?} and {other:?}: {apart:.4}");
            }
        }
    }
    for index in 0..OTHER_COLORS_COUNT {
        let colors = both(SeriesColor::of_other(index));
        assert!(colors.iter().all(|color| RED.iter().all(|red| !red.contains(&hue(*color)))));
    }
    let failed = both(SeriesColor::FAILED).map(hue);
    assert!(failed.iter().all(|hue| RED[0].contains(hue)), "failures are red: {failed:?}");
}

#[test]
fn every_colour_is_named_in_both_themes() {
    let rules = variables();
    let (light, dark) = rules.split_once("@media").unwrap();
    for color in SeriesColor::all() {
        let rule = |shade: u32| format!("{}:#{shade:06x};", color.variable());
        let [in_light, in_dark] = both(color).map(rule);
        assert!(light.contains(&in_light) && dark.contains(&in_dark), "{color:?}");
    }
}
