//! The agents that carried a run out.

use std::time::Duration;

use serde::Serialize;

use crate::table::{Cell, Table, Tone, harmless};
use crate::{Report, RunState, format, serial};

/// A process that carried out a part of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentReport {
    /// What people call it.
    pub name: String,
    /// What it is called on its fabric.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// Its machine in one line.
    pub machine: Option<String>,
    /// How much of the workers it had relative to others.
    pub weight: u32,
    /// How many threads drove its operations.
    #[serde(rename = "threads_count")]
    pub threads: u32,
    /// By how much its moments may be wrong against those of other agents, at most; null where that
    /// was not measured, as in virtual time.
    #[serde(rename = "clock_uncertainty_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub clock_uncertainty: Option<Duration>,
    /// How many operations of it are in the record; null where none is, as it was lost.
    #[serde(rename = "rows_count")]
    pub rows: Option<u64>,
    /// Processor time of its worker threads and its recorder, over all stages.
    #[serde(rename = "client_cpu_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub cpu: Option<Duration>,
    /// How it was lost; null where it was there to the end.
    pub lost: Option<LossReport>,
    /// What is missing of what it recorded, a sentence each.
    pub losses: Vec<String>,
}

/// How an agent was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossReport {
    /// When it was last heard of, since the run's epoch: what it did from then on is not known.
    #[serde(rename = "heard_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub heard: Duration,
    /// When it was given up.
    #[serde(rename = "at_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
    /// The stage under way, or the last one; null before the first.
    pub stage: Option<String>,
    /// Why.
    pub why: String,
}

impl AgentReport {
    /// Tells whether anything that it did, or was to do, is missing.
    pub fn is_lost(&self) -> bool {
        self.lost.is_some() || self.rows.is_none()
    }

    /// Says what is missing of it, if anything is.
    pub fn missing(&self) -> Vec<String> {
        // Where the coordinator has ended before it could find out who is there.
        let untold = self.rows.is_none().then(|| {
            format!(
                "DEGRADED: everything that agent {} did is missing here (`plimsoll fleet collect` \
                 fetches what it kept)",
                self.name
            )
        });
        let of_loss = self.lost.as_ref().map(|lost| self.missing_since(lost)).or(untold);
        let of_record =
            self.losses.iter().map(|loss| format!("of what agent {} recorded: {loss}", self.name));
        of_loss.into_iter().chain(of_record).collect()
    }

    fn missing_since(&self, lost: &LossReport) -> String {
        let during =
            lost.stage.as_ref().map_or(String::new(), |stage| format!(" in stage {stage}"));
        let what = match self.rows {
            None => {
                "everything that it did is missing here (`plimsoll fleet collect` fetches what it \
                kept)"
            }
            Some(_) => "what it recorded is here, and its share of the work is missing",
        };
        format!(
            "DEGRADED: agent {} was lost{during} ({}), last response {} after the run began; \
            {what}",
            self.name,
            lost.why,
            format::duration(lost.heard)
        )
    }
}

/// More names than that say nothing.
const NAMES_MAX: usize = 6;

fn names<'a>(agents: impl Iterator<Item = &'a AgentReport> + Clone) -> String {
    let more = if agents.clone().nth(NAMES_MAX).is_some() { ", …" } else { "" };
    let names: Vec<&str> = agents.take(NAMES_MAX).map(|agent| &*agent.name).collect();
    names.join(", ") + more
}

/// Says which agents were lost; `None` where none was.
pub fn lost(agents: &[AgentReport]) -> Option<String> {
    let lost = agents.iter().filter(|agent| agent.is_lost());
    match lost.clone().count() {
        0 => None,
        1 => Some(format!("agent {} was lost", names(lost))),
        _ => Some(format!("agents {} were lost", names(lost))),
    }
}

impl Report {
    /// Tells whether agents were lost on the way and the rest went on without them.
    pub(crate) fn is_degraded(&self) -> bool {
        match self.state {
            RunState::Degraded => true,
            RunState::Interrupted => lost(&self.agents).is_some(),
            RunState::Complete | RunState::Running | RunState::Killed | RunState::Failed => false,
        }
    }

    /// Returns what was run, and how it ended if it did not come to its own end with all agents.
    pub(crate) fn title(&self) -> String {
        let remark = match self.state {
            RunState::Interrupted if self.is_degraded() => " (DEGRADED, interrupted)",
            state => state.remark(),
        };
        format!("{}{remark}", self.what)
    }
}

/// Says that rates are those of a part, where agents were lost.
pub(crate) fn partial(agents: &[AgentReport]) -> Option<String> {
    lost(agents).map(|lost| format!("rates are partial, as {lost}"))
}

/// What each agent was and did, as columns.
pub(crate) const HEADINGS: [&str; 7] =
    ["agent", "weight", "threads", "operations", "client CPU", "clock", "lost"];

impl AgentReport {
    /// Returns what stands under the headings but the first.
    pub(crate) fn cells(&self) -> [String; 6] {
        let within = |of| format!("±{}", format::duration(of));
        let lost = self.lost.as_ref().map(|lost| {
            let after = format::duration(lost.heard);
            lost.stage.as_ref().map_or_else(|| after.clone(), |stage| format!("{stage}, {after}"))
        });
        [
            self.weight.to_string(),
            self.threads.to_string(),
            format::known(self.rows, format::count),
            format::known(self.cpu, format::duration),
            format::known(self.clock_uncertainty, within),
            lost.unwrap_or_default(),
        ]
    }
}

/// Returns a table of several agents, for people; `None` where there is one at most.
pub(crate) fn table(agents: &[AgentReport]) -> Option<Table> {
    if agents.len() < 2 {
        return None;
    }
    // That nobody was lost needs no column.
    let columns = if agents.iter().any(|agent| agent.lost.is_some()) { 7 } else { 6 };
    let mut table = Table::new(&HEADINGS[..columns]);
    for agent in agents {
        let tone = if agent.lost.is_some() { Tone::Bad } else { Tone::Plain };
        let cells = agent.cells().into_iter().take(columns - 1);
        table.row(&harmless(&agent.name), tone, cells.map(|text| Cell::new(text, tone)));
    }
    Some(table)
}

/// Returns the agents in one line; `None` where there are none.
pub(crate) fn line(agents: &[AgentReport]) -> Option<String> {
    if agents.is_empty() {
        return None;
    }
    let lost = agents.iter().filter(|agent| agent.is_lost());
    let lost = match lost.clone().count() {
        0 => String::new(),
        1 => format!(", one lost ({})", names(lost)),
        count => format!(", {count} lost ({})", names(lost)),
    };
    let clocks = agents.iter().filter_map(|agent| agent.clock_uncertainty).max();
    let clocks = clocks.map_or(String::new(), |clocks| {
        format!("; their clocks agree to ±{}", format::duration(clocks))
    });
    Some(format!("{}{lost}: {}{clocks}", agents.len(), names(agents.iter())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::table::Paint;
    use crate::text::{self, Look};

    #[test]
    fn each_agent_has_a_row_with_what_it_did() {
        let agent = |name: &str, lost| AgentReport {
            name: name.to_owned(),
            id: "a0001".to_owned(),
            version: "1".to_owned(),
            machine: None,
            weight: 4,
            threads: 2,
            clock_uncertainty: Some(Duration::from_micros(123)),
            rows: Some(12_345),
            cpu: Some(Duration::from_millis(1_500)),
            lost,
            losses: Vec::new(),
        };
        let text = |agents: &[AgentReport]| {
            let mut text = String::new();
            table(agents)?.write(Paint { color: false }, &mut text);
            Some(text)
        };
        assert_eq!(text(&[agent("alone", None)]), None);
        let two = text(&[agent("node1", None), agent("n\u{1b}2", None)]).unwrap();
        let expected = "\
agent    weight  threads  operations  client CPU    clock
  node1       4        2      12,345      1.50 s  ±123 µs
  n 2         4        2      12,345      1.50 s  ±123 µs
";
        assert_eq!(two, expected);
        let heard = Duration::from_secs(3);
        let (at, stage) = (Duration::from_secs(13), Some("measure".to_owned()));
        let loss = LossReport { heard, at, stage, why: "it has ended".to_owned() };
        let node2 = agent("node2", Some(loss.clone()));
        let told = [agent("node1", None), node2.clone()];
        assert_eq!(
            line(&told).unwrap(),
            "2, one lost (node2): node1, node2; their clocks agree to ±123 µs"
        );
        let all = [node2.clone(), agent("node1", None), AgentReport { rows: None, ..node2 }];
        assert_eq!(lost(&all).unwrap(), "agents node2, node2 were lost");
        assert_eq!(partial(&told).unwrap(), "rates are partial, as agent node2 was lost");
        assert_eq!(partial(&told[..1]), None);
        let untold = AgentReport { rows: None, ..agent("node3", None) };
        assert!(untold.missing()[0].contains("everything that agent node3 did is missing here"));
        assert_eq!(agent("node1", None).missing(), [""; 0]);
        let gone = AgentReport { rows: None, cpu: None, ..agent("node2", Some(loss)) };
        let two = text(&[agent("node1", None), gone]).unwrap();
        let last = two.lines().last().unwrap();
        assert!(last.ends_with("measure, 3.00 s") && last.contains(" – "), "{two}");

        // A run that lost an agent and was ended by its user says the former first.
        let mut report = fixture::steady();
        report.state = RunState::Interrupted;
        let headline = |report: &Report| {
            let text = text::render(report, &Look { width: 80, color: false });
            text.lines().next().unwrap().split(':').next().unwrap().to_owned()
        };
        assert_eq!(headline(&report), "s3 get (interrupted)");
        report.agents = told.to_vec();
        assert_eq!(headline(&report), "s3 get (DEGRADED, interrupted)");
    }
}
