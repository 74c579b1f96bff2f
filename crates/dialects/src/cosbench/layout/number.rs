//! Numbers as COSBench writes them: at most two digits behind the point, `0.##`.

/// Returns a number, ties to even.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// What stands where there is no number.
pub(super) const NOTHING: &str = "N/A";

/// Returns a time in ms; 0 is none.
pub(super) fn time(ms: Option<f64>) -> String {
    match ms {
        Some(ms) if ms > 0.0 => number(ms),
        _ => NOTHING.to_owned(),
    }
}

/// Returns how many of all there are, in percent; of none there is no number. COSBench has none
/// either where all of them failed, which looks like an idle store.
pub(super) fn ratio(part: u64, all: u64) -> String {
    match all {
        0 => NOTHING.to_owned(),
        all => percent(part, all),
    }
}

/// Returns a share in percent.
pub(super) fn percent(part: u64, all: u64) -> String {
    match all {
        0 => "0%".to_owned(),
        all => format!("{}%", number(part as f64 * 100.0 / all as f64)),
    }
}
