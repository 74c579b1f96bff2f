//! Figures, changes and percentages of a comparison, short enough for its columns.

use std::time::Duration;

use plimsoll_analysis::compare::Unit;

use crate::format::{count, duration, number};

const MIB: f64 = (1u64 << 20) as f64;

/// Returns a figure that is not negative; times and parts with their unit, the rest without.
pub(super) fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::OpsPerSec | Unit::ObjectsPerSec => short(value),
        Unit::BytesPerSec => short(value / MIB),
        Unit::Nanoseconds => duration(Duration::from_nanos(value.round() as u64)),
        Unit::Fraction => format!("{} %", percent_spread(value * 100.0)),
    }
}

/// Returns a figure that is not negative with its unit.
pub(super) fn with_unit(unit: Unit, value: f64) -> String {
    let name = match unit {
        Unit::OpsPerSec => " ops/s",
        Unit::ObjectsPerSec => " obj/s",
        Unit::BytesPerSec => " MiB/s",
        Unit::Nanoseconds | Unit::Fraction => "",
    };
    figure(unit, value) + name
}

/// Returns a change with its sign, none for no change.
///
/// The change of a part of the whole is in points of percent.
pub(super) fn signed(unit: Unit, change: f64) -> String {
    let text = figure(unit, change.abs());
    let text = if unit == Unit::Fraction { text.replace(" %", " pt") } else { text };
    with_sign(change, text)
}

/// Returns a percentage with its sign and at most two decimals, without the percent sign.
pub(super) fn percent_signed(percent: f64) -> String {
    with_sign(percent, percent_spread(percent.abs()))
}

/// Returns a percentage that is not negative, with at most two decimals.
pub(super) fn percent_spread(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        small if small < 0.005 => "<0.01".to_owned(),
        small if small < 9.995 => format!("{small:.2}"),
        middle if middle < 99.95 => format!("{middle:.1}"),
        large => count(large.round() as u64),
    }
}

fn with_sign(value: f64, text: String) -> String {
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c)) || text.starts_with('<');
    match value {
        _ if nothing => text,
        value if value < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

/// Returns a number in at most seven characters.
fn short(value: f64) -> String {
    if value < 999_999.5 { number(value) } else { format!("{} M", number(value / 1e6)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_no_change_has_none() {
        for (percent, text) in [
            (0.0, "0"),
            (0.004, "<0.01"),
            (-0.004, "<0.01"),
            (5.0, "+5.00"),
            (-12.34, "-12.3"),
            (9.996, "+10.0"),
            (-107.73, "-108"),
            (12_345.6, "+12,346"),
        ] {
            assert_eq!(percent_signed(percent), text, "{percent}");
        }
    }

    #[test]
    fn figures_are_in_the_unit_of_their_line() {
        for (unit, value, text) in [
            (Unit::OpsPerSec, -50.0, "-50.0"),
            (Unit::ObjectsPerSec, 12_345_678.0, "+12.3 M"),
            (Unit::BytesPerSec, 15.6 * MIB, "+15.6"),
            (Unit::Nanoseconds, -22_662_156.0, "-22.7 ms"),
            (Unit::Nanoseconds, 0.0, "0 s"),
            (Unit::Fraction, 0.012, "+1.20 pt"),
        ] {
            assert_eq!(signed(unit, value), text);
        }
        assert_eq!(with_unit(Unit::BytesPerSec, 500.0 * MIB), "500 MiB/s");
        assert_eq!(with_unit(Unit::Fraction, 0.0), "0 %");
    }
}
