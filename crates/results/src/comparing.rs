//! The two sides of a comparison, read out of records.

use std::path::Path;

use crate::asked::Asked;
use crate::error::ResultsError;
use crate::open::{Origin, Record};
use crate::parameters::{Parameters, TRANSPORT, loop_model, merged, parameters, workload};
use plimsoll_analysis::compare::{
    Comparison, Difference, Margin, RunFigures, compare_within, differing,
};
use plimsoll_record::schema::LoopModel;
use plimsoll_report::format::count;
use plimsoll_report::html::{Curve, curves};
use plimsoll_report::{
    AgentReport, LoadLineReport, OpLogCheck, Report, RunState, StageReport, lost, stage_name,
    state_warning, verdict,
};
use plimsoll_stats::Interval;

impl Record {
    /// Returns the figures of its results, under the name of what ran; of an only row without that
    /// of the row.
    pub fn figures(&self, asked: &Asked) -> Result<RunFigures, ResultsError> {
        let report = self.report(asked)?;
        let mut figures = figures(report.what.clone(), &report, report.foreign.is_some());
        if is_of_one_row(&figures) {
            forget_rows(&mut figures);
        }
        Ok(figures)
    }
}

/// Returns what is to be known of a record before its figures are compared.
fn record_remarks(report: &Report) -> impl Iterator<Item = String> {
    let missing = report.op_log().filter(|check| !check.is_whole()).map(|check| {
        let OpLogCheck { rows, counted } = check;
        let (rows, counted) = (count(rows), count(counted));
        format!("its op log holds {rows} operations, and its workers counted {counted}")
    });
    let state = state_warning(report.state).map(str::to_owned);
    let lost = lost(&report.agents);
    let lost = lost.map(|lost| format!("DEGRADED: {lost}, so its rates are partial"));
    report.losses.iter().cloned().chain(missing).chain(lost).chain(state)
}

/// Tells whether all that the run did is in its record.
fn is_whole(record: &Record, report: &Report) -> bool {
    let is_closed = !matches!(report.state, RunState::Running | RunState::Killed);
    let holds_all = report.op_log().is_none_or(|check| check.is_whole());
    let has_all = !report.agents.iter().any(AgentReport::is_lost);
    record.is_whole && is_closed && holds_all && has_all
}

/// One side of a comparison.
#[derive(Default)]
pub struct Side {
    figures: Vec<RunFigures>,
    parameters: Vec<Parameters>,
    /// The workload of each run of ours, but for its seed and how long it lasted.
    workloads: Vec<(String, Parameters)>,
    /// What decided when operations started, of each run of which that is known.
    loops: Vec<LoopModel>,
    /// The runs whose client was the limit, each with the sentence that says so.
    client_limits: Vec<(String, String)>,
    /// What is to be known of records, each sentence with the run it is of.
    remarks: Vec<(String, String)>,
    /// Whether operations of a run are missing.
    is_incomplete: bool,
    /// What each run did over time; nothing of those of which only figures are known.
    curves: Vec<Vec<Curve>>,
}

impl Side {
    /// Adds a run.
    pub fn add(&mut self, path: &Path, record: &Record, asked: &Asked) -> Result<(), ResultsError> {
        let report = record.report(asked)?;
        let is_foreign = report.foreign.is_some();
        let limited = report.verdict.as_ref().is_some_and(|verdict| verdict.is_client);
        let sentence = verdict::line(&report).filter(|_| limited);
        self.client_limits.extend(sentence.map(|text| (path.display().to_string(), text)));
        let own = |text: String| (path.display().to_string(), text);
        self.remarks.extend(record_remarks(&report).map(own));
        self.is_incomplete |= !is_whole(record, &report);
        self.figures.push(figures(path.display().to_string(), &report, is_foreign));
        self.curves.push(curves(&report));
        if let Origin::Run { manifest, .. } = &record.origin {
            self.workloads.push((path.display().to_string(), workload(manifest)));
            self.loops.extend(loop_model(manifest));
            self.refuse_a_mix()?;
        }
        self.parameters.push(match &record.origin {
            Origin::Run { manifest, .. } => parameters(manifest),
            Origin::Warp { end } => flags(end.command_line.as_deref()),
        });
        Ok(())
    }

    /// Refuses runs of other workloads on one side, of which a mean says nothing.
    fn refuse_a_mix(&self) -> Result<(), ResultsError> {
        let [(first, workload), .., (last, other)] = &self.workloads[..] else { return Ok(()) };
        let differences = merged(differing(&[workload], &[other]));
        let Some(of) = differences.first() else { return Ok(()) };
        let value = |values: &[String]| values.first().map_or("none", |value| value).to_owned();
        Err(ResultsError::MixedSide {
            first: first.clone(),
            last: last.clone(),
            name: of.name.clone(),
            values: (value(&of.before), value(&of.after)),
        })
    }

    /// Adds figures that warp made, with its command line.
    pub fn add_figures(&mut self, figures: RunFigures, command_line: Option<&str>) {
        self.figures.push(figures);
        self.parameters.push(flags(command_line));
        self.curves.push(Vec::new());
    }

    /// Returns what each run did over time, in the order in which they were added.
    pub fn curves(&self) -> &[Vec<Curve>] {
        &self.curves
    }

    /// Compares what was before with what came after.
    pub fn compare(mut self, mut after: Self, margin: Margin) -> (Comparison, Vec<Difference>) {
        if self.figures.iter().chain(&after.figures).all(is_of_one_row) {
            // Whatever it is called on either side.
            self.forget_rows();
            after.forget_rows();
        }
        let mut comparison = compare_within(&self.figures, &after.figures, margin);
        let open = self.has_open_loop().zip(after.has_open_loop());
        comparison.is_open_on_one_side = open.is_some_and(|(before, after)| before != after);
        self.client_limits.append(&mut after.client_limits);
        comparison.limit_by_clients(self.client_limits);
        comparison.remarks = self.remarks;
        comparison.remarks.append(&mut after.remarks);
        comparison.is_incomplete = self.is_incomplete || after.is_incomplete;
        let differences = merged(differing(&self.parameters, &after.parameters));
        if differences.iter().any(|of| of.name == TRANSPORT) {
            let sentence = "the sides differ in what carried requests, too, which changes rates by \
                            itself: --transport sockets is the same for any number of workers";
            comparison.remarks.push(("before and after".to_owned(), sentence.to_owned()));
        }
        (comparison, differences)
    }

    /// Tells whether a run of it was an open loop; `None` where that is known of none.
    fn has_open_loop(&self) -> Option<bool> {
        (!self.loops.is_empty()).then(|| self.loops.contains(&LoopModel::Open))
    }

    /// Has figures compared whatever the rows are called.
    fn forget_rows(&mut self) {
        self.figures.iter_mut().for_each(forget_rows);
    }
}

fn forget_rows(run: &mut RunFigures) {
    run.kinds.iter_mut().for_each(|kind| kind.of = None);
}

/// Tells whether a run has but one stage with one job.
fn is_of_one_row(run: &RunFigures) -> bool {
    run.kinds.windows(2).all(|pair| pair[0].of == pair[1].of)
}

/// Returns the figures of each row of each result.
fn figures(name: String, report: &Report, is_foreign: bool) -> RunFigures {
    let mut figures = RunFigures { name, kinds: Vec::new() };
    report.load_lines.iter().for_each(|line| add_line(&mut figures, line, report));
    let is_probe = |stage: &&StageReport| {
        let of = |index: u8| report.load_lines.iter().any(|line| line.search_index == index);
        stage.probe_of.is_some_and(of)
    };
    let results: Vec<_> = match report.results().next() {
        // What is compared of a search is the line: no two searches have the same probes.
        Some(_) => report.results().filter(|stage| !is_probe(stage)).collect(),
        // One that prepares may be asked for by name.
        None => report.stages.iter().collect(),
    };
    // Of a foreign file the last stage is what was measured.
    let first = if is_foreign { results.len().saturating_sub(1) } else { 0 };
    for stage in &results[first..] {
        let title = stage_name(stage);
        for row in &stage.rows {
            let job = match &stage.rows[..] {
                [_] => String::new(),
                _ => format!(", {}", row.name),
            };
            figures.add(&format!("{title}{job}"), &row.analysis);
        }
    }
    figures
}

/// Adds what a search found; of the kind of operation that it did, where it was one.
fn add_line(figures: &mut RunFigures, line: &LoadLineReport, report: &Report) {
    let rows = report.probes_of(line).flat_map(|stage| &stage.rows);
    let mut kinds = rows.flat_map(|row| &row.analysis.kinds).map(|kind| kind.kind);
    let first = kinds.next();
    let kind = first.filter(|first| kinds.all(|kind| kind == *first));
    let found = line.line.as_ref().map(|line| {
        let (low, high) = (line.ops_per_sec_low, line.ops_per_sec_high);
        (line.ops_per_sec, Interval { low, high })
    });
    figures.add_load_line(&line.name, kind, found, line.capacity_ops_per_sec);
}

/// Returns the flags of a command line of warp's, but for where it wrote to.
fn flags(command: Option<&str>) -> Parameters {
    let words = command.unwrap_or_default().split_whitespace().filter_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, "true"));
        let telling = name.starts_with("--") && name != "--benchdata";
        telling.then(|| (name.to_owned(), value.to_owned()))
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::testdata;

    /// Returns the report of a committed run as if its measured stage had come again, so much
    /// slower.
    fn twice(times_slower: f64) -> Report {
        let record = Record::open(&testdata("s3-get")).unwrap();
        let mut report = record.report(&Asked::default()).unwrap();
        let mut again = report.results().next().unwrap().clone();
        again.number_of_title = 2;
        for row in &mut again.rows {
            for kind in &mut row.analysis.kinds {
                let rates = kind.figures.rates.as_mut().unwrap();
                rates.ops.0 /= times_slower;
            }
        }
        report.stages.push(again);
        report
    }

    #[test]
    fn each_of_several_stages_of_one_name_is_compared() {
        let side = |times_slower| Side {
            figures: (0..3)
                .map(|_| figures("run".to_owned(), &twice(times_slower), false))
                .collect(),
            ..Side::default()
        };
        let compared = side(1.0).compare(side(5.0), Margin::default()).0;
        let places: Vec<Option<&str>> =
            compared.kinds.iter().map(|kind| kind.of.as_deref()).collect();
        assert_eq!(places, [Some("measure"), Some("measure #2")]);
        let rate = |at: usize| {
            let row = compared.kinds[at].row(plimsoll_analysis::compare::Metric::Rate).unwrap();
            row.percent.unwrap().round()
        };
        assert_eq!([rate(0), rate(1)], [0.0, -80.0]);
        // A side that has but one says so of the other.
        let mut single = side(1.0);
        single.figures.iter_mut().for_each(|run| run.kinds.truncate(1));
        let compared = single.compare(side(1.0), Margin::default()).0;
        let presence: Vec<_> = compared.kinds.iter().map(|kind| kind.presence).collect();
        use plimsoll_analysis::compare::Presence;
        assert_eq!(presence, [Presence::Both, Presence::AfterOnly]);
        // An export names each.
        let names: Vec<Option<String>> = figures("run".to_owned(), &twice(1.0), false)
            .kinds
            .into_iter()
            .map(|of| of.of)
            .collect();
        assert_eq!(names.len(), 2);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn sides_that_differ_in_what_carried_requests_are_told_apart_with_what_to_do() {
        let side = |transport: &str| Side {
            figures: vec![figures("run".to_owned(), &twice(1.0), false)],
            parameters: vec![vec![(TRANSPORT.to_owned(), transport.to_owned())]],
            ..Side::default()
        };
        let remarks =
            |after: &str| side("sockets").compare(side(after), Margin::default()).0.remarks;
        assert_eq!(remarks("sockets"), []);
        let told = remarks("io_uring");
        assert!(told.len() == 1 && told[0].1.contains("--transport sockets"), "{told:?}");
    }

    #[test]
    fn an_open_loop_is_told_from_loops_that_are_known_not_to_be() {
        use LoopModel::{Capped, Closed, Open};
        let is_told = |before: &[LoopModel], after: &[LoopModel]| {
            let side = |loops: &[LoopModel]| Side { loops: loops.to_vec(), ..Side::default() };
            side(before).compare(side(after), Margin::default()).0.is_open_on_one_side
        };
        assert!(is_told(&[Closed], &[Open]) && is_told(&[Open], &[Capped, Closed]));
        assert!(!is_told(&[Capped], &[Closed]) && !is_told(&[Open, Closed], &[Open]));
        // A record that does not tell is no closed loop.
        assert!(!is_told(&[Open], &[]));
    }

    #[test]
    fn titles_of_stages_of_one_name_are_numbered() {
        let mut record = Record::open(&testdata("s3-get")).unwrap();
        let Origin::Run { manifest, .. } = &mut record.origin else { panic!("a run of ours") };
        let mut manifest = manifest.clone();
        for stage in &mut manifest.stages {
            stage.name = "main".to_owned();
        }
        let stages = crate::open::run_stages(&manifest, &record.survey);
        let titles: Vec<&str> = stages.iter().map(|stage| &*stage.title).collect();
        assert_eq!(titles, ["main", "main #2"]);
    }
}
