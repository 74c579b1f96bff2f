//! Which agents stand out in a stage: those whose machine was the limit, and those that kept behind
//! the others.

use std::time::Duration;

use plimsoll_report::format;

/// A shorter stage tells nothing of who is slow.
const TOOK_MIN: Duration = Duration::from_secs(1);
/// From this share of its processors on, an agent may itself be the limit.
const BUSY_PERCENT: f64 = 90.0;
/// So much of a schedule may be late without a remark, and this much more than of the median agent.
const LATE_PERCENT: f64 = 5.0;
/// Below this share of what the median agent did, each by its weight, an agent is slow.
const SLOW_PERCENT: f64 = 50.0;
/// Fewer operations tell nothing.
const OPS_MIN: u64 = 100;
/// What began later than this was not ready in time.
const BEGAN_LATE_MAX: Duration = Duration::from_millis(50);

/// What an agent did in a stage.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) name: &'a str,
    /// How much of the load it took relative to others.
    pub(super) weight: u32,
    pub(super) took: Duration,
    pub(super) began_late_by: Duration,
    /// Processor time, and the processors that it could have used.
    pub(super) cpu_time: Duration,
    pub(super) cores: u32,
    pub(super) ops: u64,
    /// Operations of a schedule, and how many of them started late.
    pub(super) scheduled: Option<(u64, u64)>,
}

impl Part<'_> {
    fn busy_percent(&self) -> f64 {
        let possible = self.took.as_secs_f64() * f64::from(self.cores.max(1));
        self.cpu_time.as_secs_f64() / possible * 100.0
    }

    fn late_percent(&self) -> Option<f64> {
        let (offered, late) = self.scheduled.filter(|(offered, _)| *offered >= OPS_MIN)?;
        Some(late as f64 / offered as f64 * 100.0)
    }

    /// Returns operations per second and unit of weight; `None` where a schedule says how many.
    fn rate(&self) -> Option<f64> {
        let counts = self.scheduled.is_none() && self.weight > 0;
        counts.then(|| self.ops as f64 / self.took.as_secs_f64() / f64::from(self.weight))
    }
}

/// Returns what is to be said of agents in a stage.
pub(super) fn remarks(stage: &str, parts: &[Part<'_>]) -> Vec<String> {
    let long: Vec<&Part<'_>> = parts.iter().filter(|part| part.took >= TOOK_MIN).collect();
    let rate = median(long.iter().filter_map(|part| part.rate()));
    let late = median(long.iter().filter_map(|part| part.late_percent()));
    let all: u64 = long.iter().map(|part| part.ops).sum();
    let mut said = Vec::new();
    for part in parts.iter().filter(|part| part.began_late_by > BEGAN_LATE_MAX) {
        let by = format::duration(part.began_late_by);
        said.push(format!("agent {} began stage {stage} {by} late", part.name));
    }
    for part in long {
        let name = part.name;
        let busy = part.busy_percent();
        if busy >= BUSY_PERCENT {
            let cores = format::plural(u64::from(part.cores), "processor");
            said.push(format!(
                "agent {name} used {busy:.0} % of its {cores} in stage {stage}: its figures may \
                show its machine's limit, not the store's"
            ));
        }
        if let (Some(own), Some(others)) = (part.late_percent(), late)
            && own >= LATE_PERCENT
            && own >= others + LATE_PERCENT
        {
            said.push(format!(
                "agent {name} started {own:.0} % of its operations late in stage {stage}, the \
                 median agent {others:.0} %"
            ));
        }
        if let (Some(own), Some(others)) = (part.rate(), rate)
            && all >= OPS_MIN
            && own < others * SLOW_PERCENT / 100.0
        {
            said.push(format!(
                "agent {name} did {:.0} % of what the median agent did in stage {stage}, each by \
                 its weight",
                own / others * 100.0
            ));
        }
    }
    said
}

/// Returns the median of three values at least.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values.len() > 2).then(|| values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> Part<'_> {
        Part {
            name,
            weight: 1,
            took: Duration::from_secs(10),
            began_late_by: Duration::ZERO,
            cpu_time: Duration::from_secs(4),
            cores: 4,
            ops: 1_000,
            scheduled: None,
        }
    }

    #[test]
    fn nothing_is_said_where_nobody_stands_out() {
        let weighty = Part { weight: 3, ops: 2_900, ..part("c") };
        assert_eq!(remarks("main", &[part("a"), part("b"), weighty]), [""; 0]);
        assert_eq!(remarks("main", &[]), [""; 0]);
        // Of two nobody knows which is the odd one, and a moment tells nothing.
        assert_eq!(remarks("main", &[part("a"), Part { ops: 1, ..part("b") }]), [""; 0]);
        let took = Duration::from_millis(900);
        let brief = Part { took, cpu_time: took * 4, ..part("b") };
        assert_eq!(remarks("main", &[part("a"), brief]), [""; 0]);
    }

    #[test]
    fn who_stands_out_is_named_with_what_was_seen() {
        let busy = Part { cpu_time: Duration::from_secs(38), ..part("b") };
        let said = remarks("main", &[part("a"), busy]);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("agent b used 95 % of its 4 processors in stage main"));
        let slow = Part { ops: 400, ..part("c") };
        let said = remarks("main", &[part("a"), part("b"), slow]);
        assert_eq!(
            said,
            ["agent c did 40 % of what the median agent did in stage main, each by its weight"]
        );
        let scheduled = |late| Some((1_000, late));
        let kept = Part { scheduled: scheduled(3), ..part("a") };
        let late = Part { scheduled: scheduled(120), ops: 10, ..part("c") };
        let said = remarks("main", &[kept.clone(), kept, late]);
        assert_eq!(
            said,
            ["agent c started 12 % of its operations late in stage main, the median agent 0 %"]
        );
        let late = Part { began_late_by: Duration::from_millis(80), ..part("b") };
        assert_eq!(remarks("main", &[part("a"), late]), ["agent b began stage main 80.0 ms late"]);
    }
}
