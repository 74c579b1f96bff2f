//! The console on a fleet: its agents, what each does while a run goes on, and names that no agent
//! has.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::console::Served;
use crate::console_runs::{rows, until};
use crate::fleet::Fleet;
use crate::harness::{Target, oracle};

/// A workload of two works, one of which names an agent.
fn pinned(Target { host, access_key, secret_key, .. }: &Target, driver: &str) -> String {
    let work = |name: &str, driver: &str| {
        format!(
            "<work name=\"{name}\" workers=\"2\" interval=\"1\" runtime=\"600\"{driver}>\
             <operation type=\"write\" ratio=\"100\" \
             config=\"cprefix={name};containers=c(1);objects=u(1,9);sizes=c(1)KB\"/></work>"
        )
    };
    format!(
        "<workload name=\"pinned\"><storage type=\"s3\" config=\"accesskey={access_key};secretkey={secret_key};\
         path_style_access=true;endpoint=http://{host}\"/><workflow>\
         <workstage name=\"init\"><work type=\"init\" workers=\"1\" \
         config=\"cprefix=all;containers=r(1,1)\"/><work type=\"init\" workers=\"1\" \
         config=\"cprefix=own;containers=r(1,1)\"/></workstage>\
         <workstage name=\"main\">{}{}</workstage></workflow></workload>",
        work("all", ""),
        work("own", &format!(" driver=\"{driver}\""))
    )
}

#[test]
fn a_console_on_a_fleet_shows_its_agents_and_what_each_does() {
    let Some(fleet) = Fleet::start(&["driver1", "driver2"], &[]) else { return };
    let target = oracle();
    let served = Served::start(fleet.place.path(), &fleet.flag);
    let is_known = |agent: &Value| {
        ["clock_offset_ms", "cpu_percent", "cores_count"].iter().all(|key| agent[*key].is_number())
    };
    let agents = until(&served, "/agents", |doc| {
        rows(doc, "agents").len() == 2 && rows(doc, "agents").iter().all(is_known)
    });
    for agent in rows(&agents, "agents") {
        assert_eq!((&agent["state"], agent["version"].is_string()), (&"ready".into(), true));
        // All of them have this machine's clock.
        assert!(agent["clock_offset_ms"].as_f64().unwrap().abs() < 1_000.0, "{agent}");
        assert!((0.0..=100.0).contains(&agent["cpu_percent"].as_f64().unwrap()), "{agent}");
    }
    // A name that no agent has is warned of, and the work is shared.
    let check = json!({"text": pinned(&target, "driver7")}).to_string();
    let checked = served.ask("POST", "/api/v1/check", "application/json", &check);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    let warnings = rows(&checked, "problems").iter().filter(|of| of["severity"] == "warning");
    let said: String = warnings.map(|of| of["message"].as_str().unwrap()).collect();
    assert!(said.contains("no agent is called driver7"), "{checked}");
    assert!(said.contains("driver1, driver2"), "{said}");
    // Each agent and each job counts for itself while it goes on.
    assert_eq!(served.submit(&pinned(&target, "driver2")), "Accepted with ID: w1\n");
    let is_counted = |doc: &Value| {
        let main = |of: &&Value| of["stage_name"] == "s2-main" && of["job"].is_number();
        let jobs = rows(doc, "rows").iter().filter(main).count();
        let of_main = rows(doc, "agents").iter().filter(|of| of["stage"] == 2);
        let counted = of_main.filter(|of| of["ops_count"].as_u64().unwrap() > 0).count();
        jobs == 2 && counted == 2
    };
    let series = until(&served, "/runs/w1/series", is_counted);
    let of_main = || rows(&series, "agents").iter().filter(|of| of["stage"] == 2);
    let names: Vec<&str> = of_main().map(|of| of["agent"].as_str().unwrap()).collect();
    assert_eq!(names, ["driver1", "driver2"]);
    assert!(of_main().all(|of| of["state"] == "running" && of["in_flight"].is_number()));
    assert!(of_main().all(|of| of["latency_ns"]["p50"].is_number()), "{series}");
    let run = served.json("/runs/w1");
    assert_eq!(run["agents"], json!(["driver1", "driver2"]));
    assert_eq!(run["stages"][1]["jobs"][1]["agents"], json!(["driver2"]));
    // The agents are part of a run that has a page here.
    let is_busy = |agent: &Value| agent["state"] == "busy" && agent["run"] == "w1";
    until(&served, "/agents", |doc| rows(doc, "agents").iter().all(is_busy));
    served.ask("POST", "/controller/cli/cancel.action?id=w1", "text/plain", "");
    let run = served.wait("w1", &["cancelled", "failed", "finished", "terminated"]);
    assert_eq!(run["state"], "cancelled");
}

/// Submits a workload to a console on two agents, and returns once both have done something of its
/// longest stage.
fn at_work(fleet: &Fleet, target: &Target, seconds: u32) -> Served {
    let served = Served::start(fleet.place.path(), &fleet.flag);
    until(&served, "/agents", |doc| rows(doc, "agents").len() == 2);
    let workload = pinned(target, "driver2").replace("\"600\"", &format!("\"{seconds}\""));
    assert_eq!(served.submit(&workload), "Accepted with ID: w1\n");
    until(&served, "/runs/w1/series", |doc| {
        let of_main = rows(doc, "agents").iter().filter(|of| of["stage"] == 2);
        of_main.filter(|of| of["ops_count"].as_u64().unwrap() > 0).count() == 2
    });
    served
}

/// Returns the state of the first run's record, and whether each of its agents was lost.
fn lost(served: &Served) -> (Value, Vec<bool>) {
    let report = served.json("/runs/w1/report.json");
    let is_lost = |agent: &Value| agent["lost"].is_object();
    (report["state"].clone(), rows(&report, "agents").iter().map(is_lost).collect())
}

#[test]
fn a_console_goes_on_without_an_agent_that_dies() {
    let Some(fleet) = Fleet::start(&["driver1", "driver2"], &[]) else { return };
    let target = oracle();
    let served = at_work(&fleet, &target, 5);
    fleet.agents[1].signal(Signal::KILL);
    let run = served.wait("w1", &["failed", "finished", "terminated", "cancelled"]);
    assert_eq!(run["state"], "failed", "{run}");
    let why = run["error"].as_str().unwrap_or_default();
    assert!(why.starts_with("DEGRADED: ") && why.contains("driver2"), "{run}");
    assert_eq!(lost(&served), ("degraded".into(), vec![false, true]));
    // The one that is left carries out what comes next.
    until(&served, "/agents", |doc| {
        rows(doc, "agents").iter().any(|agent| agent["state"] == "ready")
    });
    let workload = pinned(&target, "driver1").replace(" driver=\"driver1\"", "");
    let workload = workload.replace("\"600\"", "\"1\"");
    assert_eq!(served.submit(&workload), "Accepted with ID: w2\n");
    let run = served.wait("w2", &["failed", "finished", "terminated"]);
    assert_eq!(run["state"], "finished", "{run}");
}

/// Such an agent is there, as far as anybody can tell, and never answers.
#[test]
fn a_console_cancels_a_run_of_which_an_agent_no_longer_answers() {
    let Some(fleet) = Fleet::start(&["driver1", "driver2"], &[]) else { return };
    let target = oracle();
    let served = at_work(&fleet, &target, 600);
    fleet.agents[1].signal(Signal::STOP);
    served.ask("POST", "/controller/cli/cancel.action?id=w1", "text/plain", "");
    let run = served.wait("w1", &["failed", "finished", "terminated", "cancelled"]);
    assert_eq!(run["state"], "cancelled", "{run}");
    assert_eq!(lost(&served), ("interrupted".into(), vec![false, true]));
    fleet.agents[1].signal(Signal::CONT);
}
