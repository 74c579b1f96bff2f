//! The page of a record that is larger than any: it stays small, and says what it leaves out.
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAnalysis, analyze};
use plimsoll_model::{EndpointId, ErrorClass, Moment, OpKind, OpRecord, StageId};

use super::{Environment, render};
use crate::agents::LossReport;
use crate::report::RowReport;
use crate::{AgentReport, ErrorSample, EventReport, Report, StageReport, fixture};

/// What no page may reach.
const SIZE_MAX: usize = 900_000;
const KINDS: [OpKind; 5] = [OpKind::Put, OpKind::Get, OpKind::Delete, OpKind::Stat, OpKind::List];

/// A text of ten thousand characters, most of which take six bytes as HTML.
fn evil(what: &str) -> String {
    format!("{what} </script><script>alert(1)</script>{}", "\"'<&>".repeat(2_000))
}

/// Five kinds for ten seconds, each on all hosts in turn; every seventh fails one in three.
fn analysis(hosts: u16) -> RowAnalysis {
    let mut ops = Vec::new();
    let clients: Vec<u16> = (0..64).collect();
    for (number, kind) in (0..).zip(KINDS) {
        let each_ms = (10_000 / (3 * u64::from(hosts)).max(500)).max(1);
        for (at, start) in (0..10_000).step_by(each_ms as usize).enumerate() {
            let host = (at % usize::from(hosts)) as u16;
            let took = 5 + u64::from(host) % 90;
            let is_failed = host.is_multiple_of(7) && at.is_multiple_of(3);
            let outcome = if is_failed { ErrorClass::Server } else { ErrorClass::Ok };
            let worker = number * 10 + at as u32 % 13;
            let op = fixture::op(kind, worker, start, took);
            ops.push(OpRecord { endpoint: EndpointId(host), outcome, ..op });
        }
    }
    let about = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(10_100_000_000), 64);
    let asked = Question { depth: Depth::Details, client_of: &clients, ..about };
    let Ok(mut analysis) = analyze(&ops, &asked);
    analysis.rows.pop().unwrap()
}

fn stage(number: u64, analysis: &RowAnalysis) -> StageReport {
    let error = |at: usize| ErrorSample {
        class: ErrorClass::Server,
        kind: KINDS[at % KINDS.len()],
        endpoint: Some(EndpointId(0)),
        status: None,
        message: evil(&format!("error {at}")),
    };
    let event = EventReport {
        asked_after: Duration::ZERO,
        command: evil("event"),
        began_ns: Some(3_000_000_000),
        ended_ns: None,
        exit_code: Some(1),
        signal: None,
        output: evil("output"),
        output_bytes: 10_000,
        reason: Some(evil("reason")),
    };
    StageReport {
        started_after: Duration::from_millis(10_200) * number as u32,
        ended_because: Some(evil("because")),
        errors: (0..8).map(error).collect(),
        events: vec![event],
        ..StageReport::of(&evil("stage"), vec![RowReport::of(&evil("row"), analysis.clone())])
    }
}

fn agent(number: u32) -> AgentReport {
    AgentReport {
        name: evil("agent"),
        id: evil("id"),
        version: evil("version"),
        machine: Some(evil("machine")),
        weight: 1,
        threads: 2,
        clock_uncertainty: None,
        rows: Some(u64::from(number)),
        cpu: None,
        lost: (number == 5).then(|| LossReport {
            heard: Duration::ZERO,
            at: Duration::ZERO,
            stage: Some(evil("stage")),
            why: evil("why"),
        }),
        losses: vec![evil("loss")],
    }
}

/// A report of so many stages, of which the first put load on so many hosts.
fn report(stages: u64, hosts: u16) -> Report {
    let (first, others) = (analysis(hosts), analysis(4));
    let stages = (0..stages).map(|at| stage(at, if at == 0 { &first } else { &others }));
    let mut report = Report {
        command: evil("command"),
        endpoints: (0..hosts).map(|host| evil(&format!("host {host}"))).collect(),
        clients: (0..64).map(|client| evil(&format!("client {client}"))).collect(),
        agents: (0..64).map(agent).collect(),
        notes: (0..100).map(|note| evil(&format!("note {note}"))).collect(),
        losses: vec![evil("loss"); 100],
        advice: vec![evil("advice"); 100],
        machine: Some(evil("machine")),
        run_directory: Some(evil("directory")),
        ..Report::of(&evil("what"), fixture::steady().epoch, stages.collect())
    };
    report.targets[0].address = evil("target");
    report
}

fn checked(report: &Report) -> String {
    let facts = vec![(evil("fact"), evil("value")); 100];
    let html = render(report, &Environment { facts });
    assert!(html.len() < SIZE_MAX, "{} bytes", html.len());
    assert_eq!(html.matches("</script").count(), 3, "no text became an element");
    let (_, data) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["schema"], crate::json::SCHEMA);
    html
}

#[test]
fn a_thousand_hosts_64_agents_five_kinds_and_64_stages_are_small() {
    let html = checked(&report(64, 1_000));
    // What is left out is said, with how much of it.
    assert!(html.contains("Left out of the page to keep the file small: "));
    assert!(html.contains("left out here to keep the file small: "));
    // All that ran is on the page at least as a stretch of the whole run.
    assert!(html.contains("<figure id=\"chart-run-operations\""));
    assert!(html.contains(" more (in the JSON report)</li>"), "there are 100 notes and more");
}

#[test]
fn one_stage_of_a_thousand_hosts_keeps_its_charts_and_shows_the_hosts_that_matter() {
    let mut report = report(1, 1_000);
    report.endpoints = (0..1_000).map(|host| format!("http://host-{host}:9000")).collect();
    let html = checked(&report);
    assert!(!html.contains("Left out of the page"), "all charts are there");
    assert!(html.contains("<figure id=\"chart-throughput\""));
    let (_, hosts) = html.split_once("<section id=\"hosts\">").unwrap();
    let (hosts, _) = hosts.split_once("</section>").unwrap();
    let shown = hosts.matches("<th scope=\"row\">http://host-").count();
    assert_eq!(shown, 64, "{hosts}");
    assert!(hosts.contains("and 936 more (in the JSON report): these are the slowest"));
    // Those that fail are among them: half of the places are theirs.
    let failing = (0..1_000).step_by(7);
    let failing = failing.filter(|host| hosts.contains(&format!(">http://host-{host}:9000<")));
    assert!(failing.count() >= 32);
}

#[test]
fn a_usual_record_is_shown_whole() {
    let html = checked(&Report { agents: Vec::new(), ..report(2, 4) });
    assert!(html.contains("id=\"stage-2-") || html.contains("<section id=\"stage-2\">"));
    assert!(!html.contains("Left out of the page"));
}
