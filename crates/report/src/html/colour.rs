//! The colours of a page: one table for the light and the dark theme.
//!
//! Red is for failures only. Kinds that commonly stand in one chart keep apart for eyes that do not
//! see red, green or blue; the tests hold the table to that.

use plimsoll_model::OpKind;

/// A colour in both themes, `0xRRGGBB` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shades {
    pub(super) light: u32,
    pub(super) dark: u32,
}

const fn shades(light: u32, dark: u32) -> Shades {
    Shades { light, dark }
}

/// Returns the colour of a kind; one without does not compile.
const fn of_kind(kind: OpKind) -> Shades {
    match kind {
        OpKind::Put => shades(0xb98b50, 0xe6b45f),
        OpKind::Get => shades(0x0280d9, 0x8eceff),
        OpKind::Delete => shades(0xb0498e, 0x9054b5),
        OpKind::List => shades(0x737104, 0x257b31),
        OpKind::Stat => shades(0x005d48, 0x30a290),
        OpKind::Append => shades(0x148798, 0x4ab0bd),
        OpKind::Post => shades(0x8e5c37, 0xf5ac05),
        OpKind::PutPart => shades(0x8e84b5, 0x9b4be1),
        OpKind::Retention => shades(0x6236a4, 0xbac6fd),
        OpKind::Read => shades(0x5c87be, 0x84bcee),
        OpKind::Write => shades(0xa7793b, 0xd7c18d),
        OpKind::Sync => shades(0x5f4aba, 0x7285c2),
        OpKind::Create => shades(0x038e80, 0x36fdc9),
        OpKind::Open => shades(0x4c6206, 0x74af78),
        OpKind::Unlink => shades(0x577b3d, 0x78de02),
        OpKind::Rename => shades(0xa751e0, 0xc19acc),
        OpKind::Mkdir => shades(0x834583, 0xac68bc),
        OpKind::Rmdir => shades(0x3520a7, 0x8f6dee),
        OpKind::CreateUpload => shades(0x2567bd, 0x379afe),
        OpKind::CompleteUpload => shades(0x750378, 0xe3dcf6),
        OpKind::AbortUpload => shades(0xb5278b, 0xed8bc0),
    }
}

/// The colours of anything else: hosts, rows, percentiles.
const OTHERS: [Shades; OTHER_COLORS_COUNT] = [
    shades(0x6f195c, 0x9f749e),
    shades(0x246885, 0x92dffe),
    shades(0x53079b, 0xa68dd3),
    shades(0xab5d2f, 0xc58228),
    shades(0x6e70f1, 0x7682fa),
    shades(0xa661b7, 0xc227be),
    shades(0x7d37d4, 0xb8adf4),
    shades(0x92954a, 0xefcc40),
];
/// How many colours there are for anything else.
pub(super) const OTHER_COLORS_COUNT: usize = 8;
/// The colours of what is neither a kind nor one of many, in the order of their numbers.
const SPECIAL: [Shades; 4] = [
    // All kinds together.
    shades(0x1b1f24, 0xe3e7ec),
    // The offered rate.
    shades(0x59636e, 0x9aa5b1),
    // What was done at an instant.
    shades(0x6b7682, 0x8d98a5),
    // A time without a success.
    shades(0x444c56, 0xaab4bf),
];
/// The reds of failures, a class each.
const FAILURES: [Shades; 4] = [
    shades(0xb3261e, 0xff7b72),
    shades(0xe0524a, 0xd9483f),
    shades(0x7a0c0c, 0xffb3ae),
    shades(0xd97a73, 0xb4625d),
];

const KINDS_COUNT: usize = OpKind::ALL.len();
const SPECIAL_FROM: usize = KINDS_COUNT + OTHER_COLORS_COUNT;
const FAILURES_FROM: usize = SPECIAL_FROM + SPECIAL.len();
const COUNT: usize = FAILURES_FROM + FAILURES.len();

/// One of the colours of the style sheet, `--s0`, `--s1`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeriesColor(u8);

impl SeriesColor {
    pub(super) const TOTAL: Self = Self(SPECIAL_FROM as u8);
    pub(super) const OFFERED: Self = Self(SPECIAL_FROM as u8 + 1);
    pub(super) const EVENT: Self = Self(SPECIAL_FROM as u8 + 2);
    pub(super) const OUTAGE: Self = Self(SPECIAL_FROM as u8 + 3);
    pub(super) const FAILED: Self = Self(FAILURES_FROM as u8);

    /// Returns every colour.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..COUNT as u8).map(Self)
    }

    /// Returns the colour of a kind, the same in all charts.
    pub(super) fn of_kind(kind: OpKind) -> Self {
        Self(kind as u8)
    }

    /// Returns the colour of something else by its place in a list.
    pub(super) fn of_other(index: usize) -> Self {
        Self((KINDS_COUNT + index % OTHER_COLORS_COUNT) as u8)
    }

    /// Returns the colour of a side of a comparison: 0 is before, 1 after.
    pub(super) fn of_side(side: usize) -> Self {
        [Self::of_kind(OpKind::Put), Self::of_kind(OpKind::Get)][side % 2]
    }

    /// Returns the colour of a class of failures by its place in a list.
    pub(super) fn of_failure(index: usize) -> Self {
        Self((FAILURES_FROM + index % FAILURES.len()) as u8)
    }

    /// Returns its number, by which the style sheet and placeholders name it.
    pub(super) fn number(self) -> u8 {
        self.0
    }

    /// Returns its name in the style sheet.
    pub(super) fn variable(self) -> String {
        format!("--s{}", self.0)
    }

    /// Returns how it looks.
    pub(super) const fn shades(self) -> Shades {
        let at = self.0 as usize;
        if at < KINDS_COUNT {
            of_kind(OpKind::ALL[at])
        } else if at < SPECIAL_FROM {
            OTHERS[at - KINDS_COUNT]
        } else if at < FAILURES_FROM {
            SPECIAL[at - SPECIAL_FROM]
        } else {
            FAILURES[at - FAILURES_FROM]
        }
    }
}

/// No two colours are the same in a theme, and the number of a kind is its place.
const _: () = {
    let mut a = 0;
    while a < COUNT {
        assert!(a >= KINDS_COUNT || OpKind::ALL[a] as usize == a);
        let mut b = 0;
        while b < a {
            let (one, other) = (SeriesColor(a as u8).shades(), SeriesColor(b as u8).shades());
            assert!(one.light != other.light && one.dark != other.dark);
            b += 1;
        }
        a += 1;
    }
};

/// Returns the rules that name the colours in both themes.
pub(super) fn variables() -> String {
    let rules = |of: fn(Shades) -> u32| -> String {
        let rule =
            |color: SeriesColor| format!("{}:#{:06x};", color.variable(), of(color.shades()));
        SeriesColor::all().map(rule).collect()
    };
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        rules(|of| of.light),
        rules(|of| of.dark)
    )
}

#[cfg(test)]
#[path = "colour_tests.rs"]
mod tests;
