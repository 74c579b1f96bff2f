//! What is not as it should be of a result; any of it makes the exit code 1.

use plimsoll_analysis::FailedShare;
use plimsoll_report::{OpLogCheck, Report, StageReport, format, stage_name};

/// Returns what is not as it should be; `max_error_rate` is in percent.
pub fn flaws(report: &Report, max_error_rate: f64) -> Vec<String> {
    let mut flaws = Vec::new();
    let is_only = report.stages.len() == 1 || report.results().count() == 1;
    let on_files = report.stages.iter().flat_map(|stage| &stage.rows).any(|row| row.is_on_files);
    for line in report.load_lines.iter().filter(|line| line.line.is_none()) {
        let because = line.no_line_because.as_deref().unwrap_or_default();
        flaws.push(format!("{}: no load line: {because}", line.name));
    }
    // What probes beyond the line miss is what they were made for.
    for stage in report.stages.iter().filter(|stage| stage.probe_of.is_none()) {
        // What is no result has to have none, such as a pause.
        let is_idle = stage.failed_share().ended == 0;
        if !stage.is_result && (!on_files || is_idle) {
            continue;
        }
        let lead = match is_only && !on_files {
            true => String::new(),
            false => format!("{}: ", stage_name(stage)),
        };
        of_stage(stage, &lead, max_error_rate, &mut flaws);
    }
    flaws.extend(report.read_back.as_ref().and_then(|of| of.flaw()));
    let differ = report.op_log().is_some_and(|check| !check.is_whole());
    let is_whole = report.agents.iter().all(|of| of.rows.is_some() && of.losses.is_empty());
    if differ && report.losses.is_empty() && is_whole {
        let flaw = "the op log and the counters differ: this is a bug in plimsoll; please report \
        it";
        flaws.push(flaw.to_owned());
    } else if let Some(check) = report.op_log().filter(|_| differ && is_whole) {
        // Somebody took it away: what is shown is not what was measured.
        let OpLogCheck { rows, counted } = check;
        flaws.push(format!(
            "operations are missing from the record: it holds {} of the {} that were counted",
            format::count(rows),
            format::count(counted)
        ));
    }
    flaws.extend(report.agents.iter().filter_map(|agent| match (&agent.lost, agent.rows) {
        (Some(_), _) => {
            Some(format!("agent {} was lost, so its share of the work is missing", agent.name))
        }
        (None, None) => Some(format!("what agent {} did is missing", agent.name)),
        (None, Some(_)) => None,
    }));
    flaws
}

fn of_stage(stage: &StageReport, lead: &str, max_error_rate: f64, flaws: &mut Vec<String>) {
    let all = stage.failed_share();
    if all.ended == 0 {
        let flaw = match lead {
            "" => "no operation ended while measuring, so there is no result".to_owned(),
            lead => format!("{lead}no operation ended, so there is no result"),
        };
        flaws.push(flaw);
        return;
    }
    let mut others = all;
    for row in &stage.rows {
        let Some(most) = row.error_rate_max else { continue };
        let own = row.failed_share();
        others = others.without(own);
        let lead = if stage.rows.len() == 1 { lead } else { &format!("{lead}{}: ", row.name) };
        let percent = most * 100.0;
        let allowed = format!("its max_error_rate of {percent}%");
        flaws.extend(too_many_failed(lead, own, percent, &allowed));
    }
    let allowed = format!("`max_error_rate` {max_error_rate}%");
    flaws.extend(too_many_failed(lead, others, max_error_rate, &allowed));
    let count = stage.rows.iter().map(|row| row.schedules.len()).sum::<usize>();
    let schedules = stage.rows.iter().flat_map(|row| &row.schedules);
    for missed in schedules.filter(|of| !of.schedule.is_kept()) {
        let alone = stage.rows.len() == 1 && count == 1;
        let job = if alone { String::new() } else { format!(" by job {}", missed.job) };
        let more = if lead.is_empty() { "; the report says what to change" } else { "" };
        flaws.push(format!(
            "{lead}SCHEDULE NOT KEPT{job}: more than 1 % of the operations were late or skipped, \
             so this is not the load that was asked for{more}"
        ));
    }
}

/// `percent_max` is what `allowed` says in words.
fn too_many_failed(
    lead: &str,
    share: FailedShare,
    percent_max: f64,
    allowed: &str,
) -> Option<String> {
    let FailedShare { failed, ended } = share;
    let percent = share.rate()? * 100.0;
    let what = match lead {
        "" => format!("{percent:.2} % of the operations"),
        lead => format!("{lead}{failed} of {ended} operations"),
    };
    (percent > percent_max).then(|| format!("{what} failed, more than {allowed} allows"))
}
