//! What the console tells of runs while they go on and when they have failed, and what it never
//! tells.

use std::path::Path;

use base64::Engine as _;
use serde_json::Value;

use crate::console::{Served, change_mode, private_file};
use crate::harness::{ACCESS_KEY, SECRET_KEY, oracle, pause, plimsoll};

/// A workload of COSBench's on the null target with two works at once.
fn two_works(runtime_s: u32, trigger: &str) -> String {
    let work = |name: &str, kind: &str| {
        format!(
            "<work name=\"{name}\" workers=\"2\" interval=\"1\" runtime=\"{runtime_s}\">\
             <operation type=\"{kind}\" ratio=\"100\" \
             config=\"containers=u(1,2);objects=u(1,9);sizes=c(1)KB\"/></work>"
        )
    };
    format!(
        "<workload name=\"two\"><storage type=\"none\"/><workflow>\
         <workstage name=\"main\"{trigger}>{}{}</workstage></workflow></workload>",
        work("reads", "read"),
        work("writes", "write")
    )
}

/// Returns a list of an answer.
pub(crate) fn rows<'a>(doc: &'a Value, key: &str) -> &'a Vec<Value> {
    doc[key].as_array().unwrap()
}

/// Asks until an answer is as it should be.
pub(crate) fn until(served: &Served, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answer = served.json(path);
        if is_it(&answer) {
            return answer;
        }
        pause();
    }
}

#[test]
fn jobs_agents_and_addresses_are_told_apart_while_a_run_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    served.submit(&two_works(600, ""));
    let of = |doc: &Value, job: u64| {
        let row = rows(doc, "rows").iter().find(|row| row["job"] == job);
        row.map_or(0.0, |row| row["ops_per_sec"][0].as_f64().unwrap())
    };
    let path = "/runs/w1/series?stage=1";
    let series = until(&served, path, |doc| of(doc, 1) > 0.0 && of(doc, 2) > 0.0);
    let kinds: Vec<(&Value, &Value)> = rows(&series, "rows")
        .iter()
        .filter(|row| !row["kind"].is_null())
        .map(|row| (&row["job_name"], &row["kind"]))
        .collect();
    assert_eq!(kinds, [(&"w1-reads".into(), &"GET".into()), (&"w2-writes".into(), &"PUT".into())]);
    let whole = rows(&series, "rows").iter().find(|row| row["kind"].is_null()).unwrap();
    let in_flight = whole["in_flight"][0].as_u64().unwrap();
    assert!(in_flight <= 4, "{in_flight} of four workers");
    let [agent] = &rows(&series, "agents")[..] else { panic!("{series}") };
    assert!(agent["ops_count"].as_u64().unwrap() > 0 && agent["state"] == "running", "{agent}");
    assert_eq!(agent["workers_count"], 4);
    assert!(agent["latency_ns"]["p50"].as_u64().is_some(), "{agent}");
    let [host] = &rows(&series, "hosts")[..] else { panic!("{series}") };
    assert!(host["ops_count"].as_u64().unwrap() > 0, "{host}");
    // The process itself is the agent.
    let agents = served.json("/agents");
    let own = &agents["agents"][0];
    assert_eq!((&own["name"], &own["clock_offset_ms"]), (&agent["agent"], &0.0.into()));
    assert!(own["cores_count"].as_u64().unwrap() > 0 && own["version"].is_string(), "{own}");
    assert_eq!((&own["state"], &own["run"]), (&"busy".into(), &"w1".into()));
    // Each job counts for itself, also after its end, and as its record does.
    served.ask("POST", "/controller/cli/cancel.action?id=w1", "text/plain", "");
    let run = served.wait("w1", &["cancelled"]);
    let jobs = rows(&run["stages"][0], "jobs");
    let counted = |index: usize| jobs[index]["ops_count"].as_u64().unwrap();
    let seconds = served.json("/runs/w1/timeline?limit=1000");
    let of_job = |name: &str| {
        let of = rows(&seconds, "rows").iter().filter(|row| row["job_name"] == name);
        of.map(|row| row["ops_count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((of_job("w1-reads"), of_job("w2-writes")), (counted(0), counted(1)));
    let files = run["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["name"] == "run/run.json"));
    assert!(files.iter().all(|file| file["name"] != "run/lock"), "{files:?}");
    assert_eq!(
        run["notes"].as_array().unwrap().iter().filter(|note| **note == "w1 begins").count(),
        0
    );
}

#[test]
fn addresses_of_one_target_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let target = oracle();
    let mut command = plimsoll(directory.path());
    target.credentials(&mut command);
    let (here, port) = target.host.split_once(':').unwrap();
    let hosts = [format!("{here}:{port}"), format!("localhost:{port}")];
    let served = Served::of(command, &format!("--host {}", hosts.join(",")));
    let accepted = served.submit(&format!(
        "schema: plimsoll.workload/2\nname: two\ntargets:\n  t: {{s3: {{hosts: ['{}', '{}'], \
         bucket: {}, create_bucket: true}}}}\nsets:\n  o: {{on: t, count: 9, size: 1B}}\nstages:\n\
         - {{name: fill, \
         prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n- {{name: main, duration: 10m, jobs: \
         [{{workers: 4, work: {{objects: [{{get: o}}]}}}}]}}\n",
        hosts[0], hosts[1], target.bucket
    ));
    assert_eq!(accepted, "Accepted with ID: w1\n");
    let series = until(&served, "/runs/w1/series?stage=2", |doc| {
        doc["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2)
    });
    let named = |host: &Value| host["host"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = rows(&series, "hosts").iter().map(named).collect();
    names.sort();
    assert_eq!(names, hosts);
    let counted = |doc: &Value| {
        rows(doc, "hosts").iter().map(|host| host["ops_count"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(counted(&series) > 0);
    // The counters of addresses, and those of jobs, come to what was recorded.
    served.ask("POST", "/controller/cli/cancel.action?id=w1", "text/plain", "");
    let run = served.wait("w1", &["cancelled"]);
    let series = served.json("/runs/w1/series?stage=2");
    let [agent] = &rows(&series, "agents")[..] else { panic!("{series}") };
    assert_eq!(counted(&series), agent["ops_count"].as_u64().unwrap());
    assert_eq!(run["stages"][1]["jobs"][0]["ops_count"], agent["ops_count"]);
}

#[test]
fn a_job_has_the_same_counts_in_its_run_and_in_the_matrix() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    served.submit(
        "schema: plimsoll.workload/2\nname: ramps\nsets:\n  o: {count: 5, size: 10B}\nstages:\n\
         - {name: fill, prepares: true, jobs: [{work: {fill: o}}]}\n- {name: main, duration: \
         600ms, jobs: [{workers: 2, ramp: 300ms, ramp_down: 300ms, pacing: {capped: 200/s}, \
         work: {objects: [{get: o}]}}]}\n",
    );
    let run = served.wait("w1", &["finished"]);
    let job = &run["stages"][1]["jobs"][0];
    let matrix = served.json("/matrix?runs=w1&ops=GET");
    let [row] = &rows(&matrix, "rows")[..] else { panic!("{matrix}") };
    for field in ["ops_count", "ops_failed_count", "bytes_count"] {
        assert_eq!(job[field], row[field], "{field}: {run}");
    }
    // The seconds have the ramps as well.
    let seconds = served.json("/runs/w1/timeline?limit=1000");
    let of_main = rows(&seconds, "rows").iter().filter(|row| row["stage"] == 2);
    let all: u64 = of_main.map(|row| row["ops_count"].as_u64().unwrap()).sum();
    assert!(all > row["ops_count"].as_u64().unwrap(), "{seconds}");
}

#[test]
fn keys_of_the_machine_are_not_used_for_what_somebody_submits() {
    let directory = tempfile::tempdir().unwrap();
    let target = oracle();
    let mut command = plimsoll(directory.path());
    command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    let served = Served::of(command, "");
    served.submit(&format!(
        "schema: plimsoll.workload/2\nname: t\ntargets:\n  t: {{s3: {{hosts: ['{}'], bucket: \
         {}, create_bucket: true}}}}\nsets:\n  o: {{on: t, count: 1, size: 1B}}\nstages:\n\
         - {{duration: 1s, jobs: \
         [{{work: {{objects: [{{put: o}}]}}}}]}}\n",
        target.host, target.bucket
    ));
    let run = served.wait("w1", &["failed", "terminated", "finished"]);
    let error = run["error"].as_str().unwrap_or_default();
    assert!(error.contains("without credentials, and none are given"), "{run}");
}

#[test]
fn a_stage_and_a_job_say_why_they_failed() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    // Nobody listens there, so that each read fails; one more may than does of the second work.
    let work = |name: &str, afr: &str| {
        format!(
            "<work name=\"{name}\" workers=\"1\" totalOps=\"3\" afr=\"{afr}\">\
             <operation type=\"read\" ratio=\"100\" \
             config=\"containers=c(1);objects=c(1)\"/></work>"
        )
    };
    served.submit(&format!(
        "<workload name=\"away\"><storage type=\"s3\" config=\"accesskey=AKIAHIDDEN;\
         secretkey=SECRETHIDDEN;endpoint=http://127.0.0.1:1\"/><workflow>\
         <workstage name=\"main\">{}{}</workstage></workflow></workload>",
        work("strict", "0"),
        work("lenient", "1000000")
    ));
    let run = served.wait("w1", &["failed", "terminated"]);
    let stage = &run["stages"][0];
    assert_eq!(stage["state"], "failed", "{run}");
    let error = stage["error"].as_str().unwrap();
    assert!(error.starts_with("w1-strict: 3 of 3 operations failed"), "{error}");
    assert!(error.contains("the first, GET: ") && !error.contains('\n'), "{error}");
    let strict = stage["jobs"][0]["error"].as_str().unwrap();
    assert_eq!(error, format!("w1-strict: {strict}"));
    assert_eq!(stage["jobs"][1]["error"], Value::Null);
    // What cannot be prepared ends the run in its stage.
    served.submit(
        "schema: plimsoll.workload/2\nname: away\ntargets:\n  t: {s3: {hosts: ['127.0.0.1:1'], \
         bucket: b}}\nsets:\n  o: {on: t, count: 1, size: 1KiB}\nstages:\n- {name: load, prepares: \
         true, jobs: [{work: {fill: o}}]}\n- {name: main, duration: 1s, jobs: [{work: {objects: \
         [{get: o}]}}]}\n",
    );
    let run = served.wait("w2", &["terminated"]);
    let ended = rows(&run, "stages").iter().find(|stage| !stage["error"].is_null());
    let ended = ended.unwrap_or_else(|| panic!("{run}"));
    assert_eq!((&ended["error"], &ended["state"]), (&run["error"], &"terminated".into()));
}

#[test]
fn workloads_of_other_tools_go_on_though_all_fails_alike() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    // Nobody listens there. A workload of our own ends after 2 s of that.
    served.submit(
        "<workload name=\"away\"><storage type=\"s3\" config=\"accesskey=AK;secretkey=SK;\
         endpoint=http://127.0.0.1:1\"/><workflow><workstage name=\"main\">\
         <work name=\"reads\" workers=\"1\" runtime=\"3\" afr=\"1000000\">\
         <operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=c(1)\"/></work>\
         </workstage></workflow></workload>",
    );
    let run = served.wait("w1", &["finished", "failed", "terminated"]);
    assert_eq!((&run["state"], &run["error"]), (&"finished".into(), &Value::Null), "{run}");
}

#[test]
fn what_was_cancelled_before_it_measured_has_no_report_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(directory.path(), "");
    served.submit(
        "schema: plimsoll.workload/2\nname: slow\nsets:\n  o: {count: 5000, size: 1B}\nstages:\n\
         - {name: fill, prepares: true, jobs: [{name: fill, pacing: {capped: 1/s}, work: \
         {fill: o}}]}\n- {name: main, duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}\n",
    );
    until(&served, "/runs/w1", |run| run["stages"][0]["state"] == "running");
    served.ask("POST", "/controller/cli/cancel.action?id=w1", "text/plain", "");
    let run = served.wait("w1", &["cancelled", "finished", "failed", "terminated"]);
    let state = |index: usize| run["stages"][index]["state"].as_str().unwrap();
    assert_eq!((state(0), state(1)), ("cancelled", "cancelled"), "{run}");
    assert_eq!((&run["state"], &run["has_record"]), (&"cancelled".into(), &false.into()));
    let refused = served.json("/runs/w1/report.json");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was measured"), "{message}");
    // Where the record lies on this machine is nobody's business who only looks.
    assert!(!message.contains("plimsoll-console/runs"), "{message}");
}

#[test]
fn scripts_are_run_around_their_stage_where_that_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::create_dir(here.join("scripts")).unwrap();
    change_mode(&here.join("scripts"), 0o755);
    private_file(&here.join("scripts/note.sh"), "echo note \"$@\"\n");
    private_file(&here.join("scripts/fails.sh"), "exit 7\n");
    let served = Served::start(here, "");
    let said = served.submit(&two_works(1, " trigger=\"note.sh(a,b)\""));
    assert!(said.contains("--triggers"), "{said}");
    drop(served);
    let served = Served::start(here, "--triggers scripts");
    served.submit(&two_works(1, " trigger=\"note.sh(a,b)\""));
    let run = served.wait("w2", &["finished", "failed", "terminated"]);
    assert_eq!(run["state"], "finished", "{run}");
    let log = here.join("plimsoll-console/archive/w2-two/scripts.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log, "================ stage 1 ================\nnote a b\nnote -k\n");
    served.submit(&two_works(600, " trigger=\"fails.sh()\""));
    let run = served.wait("w3", &["finished", "failed", "terminated"]);
    assert_eq!(run["state"], "terminated");
    assert!(run["error"].as_str().unwrap().contains("fails.sh` ended with"), "{run}");
    assert_eq!(run["stages"][0]["error"], run["error"]);
}

/// Returns every file below a directory as one text, as far as it is one.
fn all_files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(all_files(&entry.path())),
            false => {
                let path = entry.path();
                found.push((path.display().to_string(), std::fs::read(path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn no_secret_is_in_any_answer_or_file() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let users = "<users><user username='ann' password='WORDHIDDEN'/></users>";
    private_file(&here.join("users"), users);
    let own = "[secrets]\nhosts = [\"lab\"]\naccesskey = \"OWNHIDDEN\"\n";
    std::fs::create_dir(here.join("plimsoll-console")).unwrap();
    std::fs::write(here.join("plimsoll-console/console.toml"), own).unwrap();
    let mut served = Served::start(here, "--users users");
    let signed_out = served.ask("GET", "/api/v1/runs", "text/plain", "");
    assert!(signed_out.contains("signed_out"), "{signed_out}");
    let basic = base64::engine::general_purpose::STANDARD.encode("ann:WORDHIDDEN");
    served.authorization = format!("Authorization: Basic {basic}\r\n");
    served.account = "username=ann&password=WORDHIDDEN".to_owned();
    let accepted = served.submit(
        "<workload name=\"sealed\"><auth type=\"swauth\" \
         config=\"username=u;password=PASSHIDDEN;auth_url=http://127.0.0.1:1/auth/v1.0\"/>\
         <storage type=\"s3\" config=\"accesskey=KEYHIDDEN;secretkey=SECRETHIDDEN;\
         endpoint=http://127.0.0.1:1\"/><workflow><workstage name=\"main\">\
         <work name=\"m\" workers=\"1\" totalOps=\"2\"><operation type=\"read\" ratio=\"100\" \
         config=\"containers=c(1);objects=c(1);password=INHIDDEN\"/></work></workstage></workflow>\
         </workload>",
    );
    assert_eq!(accepted, "Accepted with ID: w1\n");
    let accepted = served.submit(
        "schema: plimsoll.workload/2\nname: yaml\ntargets:\n  t: {s3: {hosts: ['127.0.0.1:1'], \
         bucket: b}}\n# secret_key: COMMENTHIDDEN\nsets:\n  o: {on: t, count: 1, size: \
         1KiB}\nstages:\n- {name: load, prepares: true, jobs: [{work: {fill: o}}]}\n- {name: main, \
         duration: 1s, jobs: [{work: {objects: [{get: o}]}}]}\n",
    );
    assert_eq!(accepted, "Accepted with ID: w2\n");
    let over = ["finished", "failed", "terminated"];
    served.wait("w2", &over);
    let first = served.wait("w1", &over);
    let mut paths: Vec<String> =
        ["/session", "/overview", "/agents", "/runs", "/matrix?runs=w1,w2"]
            .map(str::to_owned)
            .to_vec();
    for part in [
        "",
        "/workload",
        "/log",
        "/series",
        "/timeline",
        "/timeline.csv",
        "/report.json",
        "/report.html",
    ] {
        paths.extend(["w1", "w2"].map(|id| format!("/runs/{id}{part}")));
    }
    for file in rows(&first, "files") {
        paths
            .push(format!("/runs/w1/files/{}", file["name"].as_str().unwrap().replace('/', "%2F")));
    }
    assert!(paths.len() > 20, "{paths:?}");
    let api = paths.iter().map(|path| format!("/api/v1{path}"));
    let others = ["index.action?", "workload.action?id=w1&"]
        .map(|at| format!("/controller/cli/{at}{}", served.account));
    for path in api.chain(others) {
        let answer = served.ask("GET", &path, "text/plain", "");
        assert!(!answer.contains("HIDDEN"), "{path}: {answer}");
        // Of a run that began no stage there are no seconds.
        assert!(!answer.is_empty() || path.ends_with(".csv"), "{path} answers nothing");
    }
    let check = served.ask(
        "POST",
        "/api/v1/check",
        "application/json",
        "{\"text\": \"<workload name='a'><storage type='s3' config='secretkey=CHECKHIDDEN'/>\"}",
    );
    assert!(check.contains("problems") && !check.contains("HIDDEN"), "{check}");
    drop(served);
    for (path, content) in all_files(&here.join("plimsoll-console")) {
        let is_there = content.windows(6).any(|window| window == b"HIDDEN");
        // Their own file is where they are to be.
        assert!(!is_there || path.ends_with("console.toml"), "{path} holds a secret");
    }
}
