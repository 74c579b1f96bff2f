//! Prometheus watches a run, and what a store tells of itself is kept with one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_testkit::{LiveKind, live, prometheus_folder, python_site};
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet::Fleet;
use crate::harness::{self, Background, plimsoll, printed, run_json, run_line, stderr};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A Prometheus of the test's own, on a port that the system chose.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts it on a configuration, with its data in `data`.
    fn start(folder: &Path, here: &Path, config: &str, data: &str) -> Self {
        std::fs::write(here.join("prometheus.yml"), config).unwrap();
        let log = std::fs::File::create(here.join("prometheus.log")).unwrap();
        let child = Command::new(folder.join("prometheus"))
            .current_dir(here)
            .args(["--config.file=prometheus.yml", "--web.listen-address=127.0.0.1:0"])
            .arg(format!("--storage.tsdb.path={data}"))
            .arg("--storage.tsdb.retention.time=100y")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut started = Self { child, address: String::new() };
        let listens = "msg=\"Listening on\" address=";
        started.address = awaited("Prometheus to listen", || {
            let log = std::fs::read_to_string(here.join("prometheus.log")).unwrap();
            let (_, address) = log.split_once(listens)?;
            Some(address.split_once('\n')?.0.to_owned())
        });
        awaited("Prometheus to be ready", || {
            get(&started.address, "/-/ready").starts_with("HTTP/1.0 200").then_some(())
        });
        started
    }

    /// Returns what a query gives: labels with their values.
    fn query(&self, query: &str, at: Option<f64>) -> Vec<(Value, f64)> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let at = at.map_or(String::new(), |at| format!("&time={at}"));
        let answer = self.json(&format!("/api/v1/query?query={query}{at}"));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let result = answer["data"]["result"].as_array().unwrap();
        let number = |of: &Value| of["value"][1].as_str().unwrap().parse().unwrap();
        result.iter().map(|of| (of["metric"].clone(), number(of))).collect()
    }

    /// Waits until a query gives a number; a stage that has ended may have none any more.
    fn await_data(&self, query: &str) -> Vec<(Value, f64)> {
        awaited(query, || {
            let found = self.query(query, None);
            found.iter().any(|(_, value)| value.is_finite()).then_some(found)
        })
    }

    fn json(&self, target: &str) -> Value {
        let answer = get(&self.address, target);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Asks until there is an answer.
#[track_caller]
fn awaited<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        harness::pause();
    }
}

/// Returns the whole answer to a GET.
fn get(address: &str, target: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET {target} HTTP/1.0\r\nhost: h\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// Returns a file of `deploy/`.
fn deployed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// Returns the queries of every panel of the dashboard with the title of the panel.
fn panels() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(deployed("grafana/plimsoll.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            // As Grafana fills in what is chosen by default.
            let query = query.replace("$instance", ".*").replace("$stage", ".*");
            let query = query.replace("$__rate_interval", "15s");
            assert!(!query.contains('$'), "{query}");
            queries.push((panel["title"].as_str().unwrap().to_owned(), query));
        }
    }
    queries
}

#[test]
fn every_panel_and_every_rule_works_on_a_run_that_prometheus_watches() {
    let Some(folder) = prometheus_folder() else { return };
    let (target, here) = (harness::oracle(), tempfile::tempdir().unwrap());
    let line = "s3 mixed --objects 50 --obj.size 4KiB --duration 20m --rate 300/s --concurrent 4 \
                --run-dir run --metrics 127.0.0.1:0";
    let mut running = Background::start(target.command(here.path(), line));
    let address = running.await_line("metrics at http://");
    let address = address.split_once("http://").unwrap().1.strip_suffix("/metrics").unwrap();
    running.await_line("measure: ");
    let targets = format!("static_configs: [{{targets: [\"{address}\"]}}]");
    let config = format!(
        "global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}\n\
         rule_files: [{}]\n\
         scrape_configs: [{{job_name: plimsoll, {targets}}}]\n",
        deployed("prometheus/plimsoll.rules.yml").canonicalize().unwrap().display()
    );
    let prometheus = Prometheus::start(&folder, here.path(), &config, "data");
    let queries = panels();
    assert!(queries.len() > 12, "{queries:?}");
    let of_agents = |title: &str| title == "Agents";
    for (_, query) in queries.iter().filter(|(title, _)| !of_agents(title)) {
        prometheus.await_data(query);
    }
    // There is no fleet here, but in the next test.
    let agents: Vec<_> = queries.iter().filter(|(title, _)| of_agents(title)).collect();
    assert_eq!(agents.len(), 1);
    assert_eq!(prometheus.query(&agents[0].1, None), []);
    let rules = std::fs::read_to_string(deployed("prometheus/plimsoll.rules.yml")).unwrap();
    let recorded = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    let recorded: Vec<&str> = recorded.filter(|name| !name.contains("failed")).collect();
    assert_eq!(recorded.len(), 3);
    recorded.iter().for_each(|name| drop(prometheus.await_data(name)));
    let failing = |rules: &Value| {
        let groups = rules["data"]["groups"].as_array().unwrap().iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
        rules.filter(|rule| rule["health"] != "ok").count()
    };
    awaited("all rules to be evaluated", || {
        (failing(&prometheus.json("/api/v1/rules")) == 0).then_some(())
    });
    // Nobody may be woken by a run that goes as it should.
    assert_eq!(prometheus.query("ALERTS{alertstate=\"firing\"}", None), []);
    let page = get(address, "/metrics");
    let (_, body) = page.split_once("\r\n\r\n").unwrap();
    let lines = body.lines().filter(|line| !line.starts_with('#')).count();
    assert!(lines < 600, "{lines} series are too many");
    let mut check = Command::new(folder.join("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    drop(prometheus);
    running.signal(Signal::INT);
    running.end();
}

#[test]
fn the_panel_of_agents_has_a_line_for_each_agent_of_a_fleet() {
    let Some(folder) = prometheus_folder() else { return };
    let Some(fleet) = Fleet::start(&["north", "south"], &[]) else { return };
    let (target, here) = (harness::oracle(), tempfile::tempdir().unwrap());
    let line = "s3 get --objects 20 --obj.size 4KiB --duration 20m --rate 200/s --concurrent 4 \
                --run-dir run --metrics 127.0.0.1:0 --agents north,south";
    let mut running = Background::start(fleet.command(&target, line));
    let address = running.await_line("metrics at http://");
    let address = address.split_once("http://").unwrap().1.strip_suffix("/metrics").unwrap();
    running.await_line("measure: ");
    let config = format!(
        "scrape_configs: [{{job_name: plimsoll, scrape_interval: 250ms, \
         static_configs: [{{targets: [\"{address}\"]}}]}}]\n"
    );
    let prometheus = Prometheus::start(&folder, here.path(), &config, "data");
    for (_, query) in panels().into_iter().filter(|(title, _)| title == "Agents") {
        awaited("both agents to work", || {
            let found = prometheus.query(&query, None);
            let working = found.iter().filter(|(_, rate)| *rate > 0.0);
            let mut names: Vec<_> = working.filter_map(|(of, _)| of["agent"].as_str()).collect();
            names.sort_unstable();
            (names == ["north", "south"]).then_some(())
        });
    }
    drop(prometheus);
    running.signal(Signal::INT);
    assert_eq!(running.end().0, Some(130));
}

#[test]
fn a_finished_run_becomes_a_history_of_prometheus() {
    let Some(folder) = prometheus_folder() else { return };
    let (target, here) = (harness::oracle(), tempfile::tempdir().unwrap());
    let line = "s3 get --objects 20 --obj.size 4KiB --duration 3s --concurrent 2 --run-dir run";
    run_json(target.command(here.path(), line), 0);
    printed(here.path(), "export run -o run.om");
    printed(here.path(), "export run -o ops.jsonl");
    let text = std::fs::read_to_string(here.path().join("run.om")).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let made = Command::new(folder.join("promtool"))
        .current_dir(here.path())
        .args(["tsdb", "create-blocks-from", "openmetrics", "run.om", "blocks"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let prometheus = Prometheus::start(&folder, here.path(), "global: {}\n", "blocks");
    let ops = std::fs::read_to_string(here.path().join("ops.jsonl")).unwrap();
    let ops: Vec<Value> = ops.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |stage: &str, kind: &str| -> Vec<&Value> {
        ops.iter().filter(|op| op["stage"] == stage && op["kind"] == kind).collect()
    };
    let run = std::fs::read(here.path().join("run/run.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    let epoch = run["started_unix_ns"].as_u64().unwrap();
    let end = ops.iter().map(|op| op["end_ns"].as_u64().unwrap()).max().unwrap();
    // Each sum stands at the end of its second.
    let after = (epoch + end) as f64 / 1e9 + 1.0;
    let value = |query: &str| {
        let found = prometheus.query(query, Some(after));
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        found[0].1
    };
    for (stage, kind) in [("prepare", "PUT"), ("measure", "GET")] {
        let own = of(stage, kind);
        assert!(!own.is_empty());
        let id = run["run_id"].as_str().unwrap();
        let labels = format!("run=\"{id}\",stage=\"{stage}\",kind=\"{kind}\"");
        let count = own.len() as f64;
        assert_eq!(value(&format!("plimsoll_operations_total{{{labels},outcome=\"ok\"}}")), count);
        assert_eq!(value(&format!("plimsoll_bytes_total{{{labels}}}")), count * 4_096.0);
        assert_eq!(value(&format!("plimsoll_latency_seconds_count{{{labels}}}")), count);
        let sum: u64 = own.iter().map(|op| op["latency_ns"].as_u64().unwrap()).sum();
        let told = value(&format!("plimsoll_latency_seconds_sum{{{labels}}}"));
        assert!((told - sum as f64 / 1e9).abs() < 1e-6, "{told} {sum}");
        // 2^20 ns, 1.048576 ms.
        let short = own.iter().filter(|op| op["latency_ns"].as_u64().unwrap() <= 1 << 20).count();
        let bucket = format!("plimsoll_latency_seconds_bucket{{{labels},le=\"0.001048576\"}}");
        assert_eq!(value(&bucket), short as f64);
        // In the middle there is a rate.
        let rate = format!("rate(plimsoll_operations_total{{{labels},outcome=\"ok\"}}[10s]) > 0");
        assert_eq!(prometheus.query(&rate, Some(after)).len(), 1, "{rate}");
    }
}

/// Reads the last body with the official package, and prints of each metric what matters.
const READ_OTLP: &str = r#"
import json, sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
request = Parse(sys.stdin.read(), ExportMetricsServiceRequest(), ignore_unknown_fields=False)
scope, = request.resource_metrics[0].scope_metrics
found = {}
for metric in scope.metrics:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    points = []
    for point in data.data_points:
        of = {a.key: a.value.string_value for a in point.attributes}
        of["begun"] = point.start_time_unix_nano
        of["at"] = point.time_unix_nano
        if kind == "histogram":
            of.update(count=point.count, sum=point.sum, buckets=list(point.bucket_counts),
                      bounds=list(point.explicit_bounds))
        else:
            of["value"] = getattr(point, point.WhichOneof("value"))
        points.append(of)
    temporality = getattr(data, "aggregation_temporality", None)
    found[metric.name] = {"kind": kind, "unit": metric.unit, "temporality": temporality,
                          "monotonic": getattr(data, "is_monotonic", None), "points": points}
print(json.dumps(found))
"#;

/// Takes requests until one comes whose body says that the run has ended, as the last does.
fn last_body(listener: &TcpListener, ended: impl Fn() -> bool) -> String {
    listener.set_nonblocking(true).unwrap();
    let mut last = String::new();
    loop {
        let has_ended = ended();
        match listener.accept() {
            Ok((socket, _)) => last = body(socket),
            Err(_) if has_ended => return last,
            Err(_) => harness::pause(),
        }
    }
}

/// Returns the body of a request, which is answered well.
fn body(mut socket: TcpStream) -> String {
    socket.set_nonblocking(false).unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "the request broke off");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            socket.write_all(answer).unwrap();
            return body.to_owned();
        }
    }
}

#[test]
fn what_is_pushed_is_read_by_the_official_package_of_opentelemetry() {
    let Some(site) = python_site() else { return };
    let (target, here) = (harness::oracle(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = "s3 get --objects 20 --obj.size 4KiB --duration 2s --rate 200/s --concurrent 2 \
                --run-dir run --otlp";
    let url = format!("http://{}", listener.local_addr().unwrap());
    let command = target.command(here.path(), &format!("{line} {url}"));
    let pushed = std::thread::scope(|scope| {
        let (has_ended, listener) = (AtomicU64::new(0), &listener);
        let has_ended = Arc::new(has_ended);
        let ended = Arc::clone(&has_ended);
        let pushed = scope.spawn(move || last_body(listener, || ended.load(Ordering::SeqCst) > 0));
        let output = harness::run(command);
        // Before anything can fail: whoever listens goes on until then.
        has_ended.store(1, Ordering::SeqCst);
        // 1 where a busy machine did not keep the schedule, of which nothing here depends.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        pushed.join().unwrap()
    });
    let mut python = Command::new("python3")
        .env("PYTHONPATH", &site)
        .args(["-c", READ_OTLP])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(pushed.as_bytes()).unwrap();
    let read = python.wait_with_output().unwrap();
    assert!(read.status.success(), "{pushed}");
    let metrics: BTreeMap<String, Value> = serde_json::from_slice(&read.stdout).unwrap();
    printed(here.path(), "export run -o ops.jsonl");
    let ops = std::fs::read_to_string(here.path().join("ops.jsonl")).unwrap();
    let gets = ops.lines().filter(|line| line.contains("\"stage\":\"measure\"")).count() as u64;
    assert!(gets > 0, "{ops}");
    let cumulative = ["bytes", "objects", "operations", "latency", "ttfb", "schedule_delay"];
    for name in cumulative.map(|name| format!("plimsoll.{name}")) {
        let metric = &metrics[&name];
        // AGGREGATION_TEMPORALITY_CUMULATIVE.
        assert_eq!(metric["temporality"], 2, "{name}");
        let points = metric["points"].as_array().unwrap();
        let is_get = |of: &&Value| of["stage"] == "measure" && of["kind"] == "GET";
        let [point] = points.iter().filter(is_get).collect::<Vec<_>>()[..] else {
            panic!("{name}: {points:?}")
        };
        assert!(point["begun"].as_u64() < point["at"].as_u64(), "{name}: {point}");
        if metric["kind"] != "histogram" {
            let factor = if name == "plimsoll.bytes" { 4_096 } else { 1 };
            assert_eq!(
                (&metric["monotonic"], &point["value"]),
                (&true.into(), &(gets * factor).into())
            );
            continue;
        }
        let bounds: Vec<f64> = serde_json::from_value(point["bounds"].clone()).unwrap();
        let buckets: Vec<u64> = serde_json::from_value(point["buckets"].clone()).unwrap();
        assert_eq!(buckets.len(), bounds.len() + 1, "{name}");
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
        let sum: u64 = buckets.iter().sum();
        assert_eq!((sum, point["count"].as_u64()), (gets, Some(gets)), "{name}");
        assert_eq!(metric["unit"], "s");
    }
    assert_eq!(metrics["plimsoll.operations.in_flight"]["kind"], "gauge");
    assert_eq!(metrics["process.cpu.time"]["kind"], "sum");
}

/// A store's page whose counter grows by 10 with each reading and whose gauge goes up and down.
fn metrics_page() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let readings = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&readings);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, mut buffer) = (socket.unwrap(), [0; 4_096]);
            if socket.read(&mut buffer).unwrap_or_default() == 0 {
                continue;
            }
            let n = count.fetch_add(1, Ordering::SeqCst);
            let body = format!(
                "# TYPE store_requests_total counter\nstore_requests_total{{api=\"get\"}} {}\n\
                 # TYPE store_queue gauge\nstore_queue {}\nstore_still 1\n",
                n * 10,
                n % 2
            );
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    (address, readings)
}

#[test]
fn what_a_store_tells_of_itself_is_kept_and_shown() {
    let (target, here) = (harness::oracle(), tempfile::tempdir().unwrap());
    let (address, readings) = metrics_page();
    let line = "s3 get --objects 20 --obj.size 1KiB --duration 3s --concurrent 2 --run-dir run \
                --scrape-interval 200ms --scrape";
    let url = format!("http://top-secret@{address}/m?token=hidden");
    let output = harness::run(
        target.command(here.path(), &format!("{line} {url} --scrape http://127.0.0.1:1")),
    );
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert_eq!(
        said.matches("warning: --scrape: http://127.0.0.1:1/metrics: ").count(),
        1,
        "{said}"
    );
    assert!(readings.load(Ordering::SeqCst) >= 3);
    let read = |name: &str| std::fs::read_to_string(here.path().join("run").join(name)).unwrap();
    let (run, kept) = (read("run.json"), read("scraped.jsonl"));
    for text in [&run, &kept, &said] {
        assert!(!text.contains("top-secret") && !text.contains("hidden"), "{text}");
    }
    let run: Value = serde_json::from_str(&run).unwrap();
    let typed = run["command_line"].as_array().unwrap();
    let page = format!("http://*REDACTED*@{address}/m?*REDACTED*");
    for shown in [page.as_str(), "http://127.0.0.1:1"] {
        assert!(typed.iter().any(|word| word == shown), "{shown}: {typed:?}");
    }
    assert_eq!(run["scraped"][0]["url"], format!("http://{address}/m?*REDACTED*"));
    assert_eq!(run["scraped"][0]["interval_ns"], 200_000_000);
    let report: Value = serde_json::from_str(&printed(here.path(), "analyze run --json")).unwrap();
    let scraped = &report["scraped"];
    let names =
        |metric: &Value| (metric["name"].as_str().unwrap().to_owned(), metric["is_rate"] == true);
    let names: Vec<_> = scraped["metrics"].as_array().unwrap().iter().map(names).collect();
    // A rate moved in each reading, a gauge in all but the first.
    let expected = [("store_requests_total".to_owned(), true), ("store_queue".to_owned(), false)];
    assert_eq!(names, expected);
    assert_eq!(scraped["series_still_count"], 1);
    let rates = &scraped["metrics"][0]["series"][0];
    assert_eq!(rates["labels"]["api"], "get");
    // Ten a reading, five readings a second at most.
    let mean = rates["mean"].as_f64().unwrap();
    assert!(mean > 0.0 && mean < 60.0, "{rates}");
    assert_eq!(scraped["pages"][1]["failed_count"], scraped["pages"][1]["scrapes_count"]);
    let text = printed(here.path(), "analyze run -v");
    assert!(text.contains("the store's own metrics\n  store_requests_total: mean "), "{text}");
    printed(here.path(), "report run -o run.html");
    let html = std::fs::read_to_string(here.path().join("run.html")).unwrap();
    assert!(html.contains("<figure id=\"chart-scraped-1\""), "no chart");
    // A record without it is as good as one that never had it, but says so.
    std::fs::remove_file(here.path().join("run/scraped.jsonl")).unwrap();
    let text = printed(here.path(), "analyze run -v");
    assert!(text.contains("scraped.jsonl is missing"), "{text}");
}

#[test]
fn scraping_is_refused_before_anything_is_written_where_it_cannot_work() {
    let here = tempfile::tempdir().unwrap();
    for (flags, why) in [
        ("--scrape ftp://secret@h", "does not begin with http://"),
        ("--scrape http://h --scrape-interval 1ms", "100ms to 1h"),
        ("--scrape http://h --scrape-match ", "--scrape-match"),
    ] {
        let mut command = plimsoll(here.path());
        command.args(format!("s3 get --objects 40 --duration 1s --run-dir run {flags}").split(' '));
        let output = harness::run(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
    assert!(!here.path().join("run").exists());
    let output = run_line(here.path(), "null --duration 1s --scrape-interval 1s --run-dir run");
    assert!(stderr(&output).contains("--scrape"), "{output:?}");
}

#[test]
fn minio_is_kept_beside_a_run_against_it() {
    for kind in [LiveKind::Minio, LiveKind::MinioTls] {
        let Some(server) = live(kind) else { return };
        let target = harness::live(&server, "plimsoll-scraped");
        let here = tempfile::tempdir().unwrap();
        let url = format!("{}/minio/v2/metrics/node", server.url);
        let line = "s3 get --objects 20 --obj.size 4KiB --duration 2s --concurrent 2 --run-dir run \
                    --scrape-interval 500ms --scrape-match minio_* --scrape";
        run_json(target.command(here.path(), &format!("{line} {url}")), 0);
        let report: Value =
            serde_json::from_str(&printed(here.path(), "analyze run --json")).unwrap();
        let page = &report["scraped"]["pages"][0];
        assert_eq!((&page["url"], &page["failed_count"]), (&url.into(), &0.into()), "{page}");
        assert!(page["scrapes_count"].as_u64().unwrap() >= 2, "{page}");
        assert!(page["series_count"].as_u64().unwrap() > 10, "{page}");
    }
}
