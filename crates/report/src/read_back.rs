//! What became of writes that were acknowledged, as they were read back after the stages that
//! measured.

use serde::Serialize;

use crate::Report;
use crate::format::{count, plural};

/// How many names a text tells.
const NAMES_MAX: usize = 10;

/// What was found of the objects whose last write was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadBackReport {
    /// How many were read, whatever came of it; null where the run ended before.
    pub objects_count: Option<u64>,
    /// How many were not there.
    pub lost_count: u64,
    /// How many did not hold what was written.
    pub wrong_count: u64,
    /// How many could not be read, so that nothing is known of them.
    pub unread_count: u64,
    /// All of these by name, at most a thousand.
    pub objects: Vec<ReadBackObject>,
}

/// An object that is not as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadBackObject {
    /// Its key, the name that the target gave it, or its number where the record holds neither.
    pub key: String,
    /// What reading it came to, as the op log has it: `not-found`, `corrupt`, ….
    pub outcome: String,
}

impl ReadBackReport {
    /// Returns what is not as it should be, if anything is.
    pub fn flaw(&self) -> Option<String> {
        let Some(objects) = self.objects_count else {
            return Some(
                "the run ended before what was acknowledged could be read back".to_owned(),
            );
        };
        let bad = [
            (self.lost_count, "lost"),
            (self.wrong_count, "wrong"),
            (self.unread_count, "not readable"),
        ];
        let bad = bad.into_iter().filter(|(bad, _)| *bad > 0);
        let bad: Vec<String> = bad.map(|(bad, how)| format!("{} {how}", count(bad))).collect();
        (!bad.is_empty()).then(|| {
            let acknowledged = plural(objects, "acknowledged object");
            format!("of {acknowledged} {}", bad.join(", "))
        })
    }
}

/// Returns the line on writes that are all there; `None` where some are not, or none were read.
pub(crate) fn line(report: &Report) -> Option<(&'static str, String)> {
    let of = report.read_back.as_ref().filter(|of| of.flaw().is_none())?;
    let objects = plural(of.objects_count?, "acknowledged object");
    Some(("read back", format!("{objects}, every byte as it was written")))
}

/// Returns the warning of writes that are not there, with the names of the first.
pub(crate) fn warning(report: &Report) -> Option<String> {
    let of = report.read_back.as_ref()?;
    let flaw = of.flaw()?;
    let names: Vec<String> = of
        .objects
        .iter()
        .take(NAMES_MAX)
        .map(|of| format!("{} ({})", of.key, of.outcome))
        .collect();
    let all = of.lost_count + of.wrong_count + of.unread_count;
    let more = match all.saturating_sub(names.len() as u64) {
        0 => String::new(),
        more => format!(" and {} more", count(more)),
    };
    let lead = if names.is_empty() { "" } else { ": " };
    Some(format!("{flaw}{lead}{}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::{self, Look};

    fn shown(read_back: ReadBackReport) -> String {
        let mut report = fixture::steady();
        report.read_back = Some(read_back);
        let text = text::render(&report, &Look { width: 80, color: false });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lost_writes_are_named() {
        let object = |number: u64| ReadBackObject {
            key: format!("p/{number}"),
            outcome: "not-found".to_owned(),
        };
        let whole = ReadBackReport { objects_count: Some(500), ..ReadBackReport::default() };
        assert!(shown(whole.clone()).contains("500 acknowledged objects, every byte as it was"));
        let lost = ReadBackReport {
            lost_count: 12,
            objects: (0..12).map(object).collect(),
            ..whole.clone()
        };
        let text = shown(lost);
        assert!(text.contains("of 500 acknowledged objects 12 lost: p/0 (not-found), p/1"));
        assert!(text.contains("p/9 (not-found) and 2 more"), "{text}");
        let early = ReadBackReport::default().flaw().unwrap();
        assert!(early.contains("ended before"), "{early}");
    }
}
