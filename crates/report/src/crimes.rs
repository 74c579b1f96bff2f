//! What of a run may mislead, in a short sentence each.

use plimsoll_analysis::Crime;

use crate::AdviceLine;
use crate::format::{bytes, duration, plural};
use crate::report::Report;

/// Returns one with its code.
pub fn crime_line(of: &Crime) -> AdviceLine {
    let (code, text) = match *of {
        Crime::EmbeddedStore => {
            ("embedded-store", "the store is a part of this program, on the same cores".to_owned())
        }
        Crime::SameHost => {
            ("same-host", "the store runs on this machine: both share its cores".to_owned())
        }
        Crime::ClosedLoop => {
            let text = "closed loop: workers wait, so times are not those of users";
            ("closed-loop", text.to_owned())
        }
        Crime::Short(measured) => {
            ("short", format!("{} measured: compaction takes minutes to show", duration(measured)))
        }
        Crime::FreshReads => {
            ("fresh-reads", "what was read had just been written: it may be cached".to_owned())
        }
        Crime::FitsInMemory { data, memory } => (
            "fits-in-memory",
            format!("{} of data fit into the memory of {}", bytes(data), bytes(memory)),
        ),
        Crime::Reducible => {
            ("reducible", "the content compresses or repeats: the store may save work".to_owned())
        }
        Crime::CachedReads => {
            ("cached-reads", "reads may have come from this machine's page cache".to_owned())
        }
        Crime::CachedWrites => {
            ("cached-writes", "writes went to this machine's page cache, without a sync".to_owned())
        }
        Crime::Unverified => ("unverified", "of what was read no content was looked at".to_owned()),
        Crime::UncomparedClocks(clients) => (
            "clocks-uncompared",
            format!("the clocks of {} were not compared", plural(clients as u64, "client")),
        ),
        Crime::UncertainClock(off) => {
            ("clock-uncertain", format!("the clock of an agent may be off by {}", duration(off)))
        }
        Crime::FewObjects(objects) => {
            ("few-objects", format!("{} in all, fewer than workers", plural(objects, "object")))
        }
        Crime::WarmUpIncluded(warm_up) => {
            ("warm-up", format!("the first {} differ, and are in the figures", duration(warm_up)))
        }
    };
    AdviceLine { code, text }
}

/// Returns them as lines of a text.
pub(crate) fn lines(report: &Report) -> impl Iterator<Item = (&'static str, &str)> {
    report.crimes.iter().map(|of| ("beware", &*of.text))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixture;
    use crate::text::{self, Look};

    #[test]
    fn each_takes_a_line_of_80_columns_and_there_are_few() {
        let second = Duration::from_millis(12_340);
        let all = [
            Crime::EmbeddedStore,
            Crime::SameHost,
            Crime::ClosedLoop,
            Crime::Short(second),
            Crime::FreshReads,
            Crime::FitsInMemory { data: 1_234 << 30, memory: 1_023 << 30 },
            Crime::Reducible,
            Crime::CachedReads,
            Crime::CachedWrites,
            Crime::Unverified,
            Crime::UncomparedClocks(100),
            Crime::UncertainClock(second),
            Crime::FewObjects(12_345),
            Crime::WarmUpIncluded(second),
        ];
        let lines_of: Vec<AdviceLine> = all.iter().map(crime_line).collect();
        for line in &lines_of {
            assert!(line.text.chars().count() <= 68, "{}", line.text);
        }
        let mut report = fixture::steady();
        let sound = text::render(&report, &Look { width: 80, color: false });
        assert!(!sound.contains("beware"), "{sound}");
        report.crimes = lines_of;
        let text = text::render(&report, &Look { width: 80, color: false });
        assert_eq!(text.matches("\nbeware ").count(), 14, "{text}");
        let text = text::brief(&report, &Look { width: 80, color: false });
        assert!(text.contains("\nbeware 1/14 the store is a part of"), "{text}");
    }
}
