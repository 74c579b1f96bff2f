//! What receivers are sent, taken apart again by rules of their own formats.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use plimsoll_engine::{
    COARSE_CELLS, LATENCY_CELLS, LiveCounts, LiveDetail, LivePart, PartState, coarse_cell_end_ns,
    latency_cell_end_ns,
};
use plimsoll_foreign::prometheus::Exposition;
use plimsoll_model::{EndpointId, ErrorClass, OpKind, StageId};
use plimsoll_stats::{Sample, Timeline};
use serde_json::Value;

use plimsoll_engine::RunClock;

use super::*;
use crate::prometheus::Buckets;
use crate::snapshot::{Snapshot, StageSnapshot};

fn clock() -> SharedClock {
    Arc::new(RunClock::start())
}

fn facts<'a>(endpoints: &'a [String], clock: &'a SharedClock) -> RunFacts<'a> {
    RunFacts {
        run_id: "run-1",
        what: "s3-\"get\"",
        endpoints,
        clock,
        wall_epoch: WallTime::from_unix_ns(0),
        cpu: || Duration::ZERO,
        tls_ca: None,
        tell: Arc::new(|_| ()),
    }
}

fn named<T>(name: &'static str, value: T) -> Option<Named<T>> {
    Some(Named { name, value })
}

const TOKEN: &str = "tok/en-that-is-secret==";

fn board(endpoints: &[&str]) -> Board {
    let endpoints: Vec<String> = endpoints.iter().map(|name| (*name).to_owned()).collect();
    Board::new(&facts(&endpoints, &clock()))
}

/// Three GETs that succeeded, after 1,000 ns, 1,100 ns and 200 s, and two that failed.
fn detail() -> LiveDetail {
    let mut detail = LiveDetail {
        ended: [0; ErrorClass::ALL.len()],
        bytes: 3_000,
        objects: 3,
        latency_ns: 200_000_002_100,
        ttfb_ns: 500_000_000,
        delay_ns: 3_000,
        ..LiveDetail::default()
    };
    detail.ended[ErrorClass::Ok as usize] = 3;
    detail.ended[ErrorClass::Throttled as usize] = 2;
    for cell in [0, 1, LATENCY_CELLS - 1] {
        detail.latency_cells[cell] = 1;
    }
    // One up to 1,024 ns and one beyond; one start in time and two between 1 and 2 us late.
    (detail.ttfb_cells[0], detail.ttfb_cells[COARSE_CELLS - 1]) = (1, 1);
    (detail.delay_cells[0], detail.delay_cells[1]) = (1, 2);
    detail
}

fn snapshot() -> Snapshot {
    let began = plimsoll_model::WallTime::from_unix_ns(5);
    let parts = Vec::new;
    let stage = |name: &str, kinds: Vec<(OpKind, LiveDetail)>| {
        let in_flight = kinds.iter().map(|(kind, _)| (*kind, 4)).collect();
        StageSnapshot { name: name.to_owned(), began, kinds, in_flight, parts: parts() }
    };
    Snapshot {
        at: plimsoll_model::WallTime::from_unix_ns(1_700_000_000_000_000_001),
        cpu: std::time::Duration::from_millis(1_500),
        stages: vec![stage("prepare", Vec::new()), stage("measure", vec![(OpKind::Get, detail())])],
    }
}

/// One sample line of the exposition format: name, labels, value.
type Line = (String, BTreeMap<String, String>, f64);

/// Parses one sample line strictly.
fn sample_line(line: &str) -> Line {
    let name_end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(name_end);
    assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':'), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap();
            let mut value = String::new();
            let mut chars = after.char_indices();
            let end = loop {
                match chars.next().unwrap() {
                    (_, '\\') => match chars.next().unwrap().1 {
                        'n' => value.push('\n'),
                        other => value.push(other),
                    },
                    (at, '"') => break at + 1,
                    (_, other) => value.push(other),
                }
            };
            assert_eq!(labels.insert(label.to_owned(), value), None, "{line}");
            match after[end..].strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after[end..].strip_prefix('}').unwrap();
                    break;
                }
            }
        }
    }
    (name.to_owned(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
}

/// Parses a whole page: every sample belongs to the family declared last, none comes twice.
fn page(text: &str) -> Vec<Line> {
    assert!(text.ends_with('\n'));
    let (mut lines, mut families) = (Vec::<Line>::new(), Vec::<(String, String)>::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(help.contains(' '), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(families.iter().all(|(known, _)| known != name), "{name} comes twice");
            families.push((name.to_owned(), kind.to_owned()));
        } else {
            let line = sample_line(line);
            let (family, kind) = families.last().unwrap();
            let tail = line.0.strip_prefix(family.as_str()).unwrap();
            match kind.as_str() {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&tail)),
                "counter" => assert!(tail.is_empty() && family.ends_with("_total")),
                _ => assert_eq!((tail, kind.as_str()), ("", "gauge")),
            }
            assert!(lines.iter().all(|old| (&old.0, &old.1) != (&line.0, &line.1)), "{line:?}");
            lines.push(line);
        }
    }
    lines
}

fn value(lines: &[Line], name: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: BTreeMap<String, String> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    lines.iter().find(|line| line.0 == name && line.1 == wanted).unwrap().2
}

/// Returns the page in Prometheus's own format.
fn shown(snapshot: &Snapshot, buckets: Buckets) -> String {
    prometheus::text(&board(&["h:1"]), snapshot, Exposition::Text, buckets)
}

#[test]
fn the_usual_page_has_a_bucket_for_each_power_of_two() {
    let lines = page(&shown(&snapshot(), Buckets::Coarse));
    let get = [("stage", "measure"), ("kind", "GET")];
    let of = |name: &str, more: &[(&str, &str)]| value(&lines, name, &[&get[..], more].concat());
    let up_to = |name: &str, le| of(&format!("plimsoll_{name}_seconds_bucket"), &[("le", le)]);
    let latency = ["0.000001024", "0.000002048", "137.438953472", "+Inf"];
    assert_eq!(latency.map(|le| up_to("latency", le)), [1.0, 2.0, 2.0, 3.0]);
    assert_eq!(latency.map(|le| up_to("ttfb", le)), [1.0, 1.0, 1.0, 2.0]);
    assert_eq!(latency.map(|le| up_to("schedule_delay", le)), [1.0, 3.0, 3.0, 3.0]);
    assert_eq!(of("plimsoll_ttfb_seconds_sum", &[]), 0.5);
    assert_eq!(of("plimsoll_schedule_delay_seconds_sum", &[]), 0.000003);
    assert_eq!(of("plimsoll_operations_in_flight", &[]), 4.0);
    // 27 powers of two, the first cell, the last one, sum and count, of each histogram.
    let of_histograms = |line: &&Line| line.0.contains("_seconds_") && !line.0.contains("cpu");
    assert_eq!(lines.iter().filter(of_histograms).count(), 3 * 31);
    let fine = page(&shown(&snapshot(), Buckets::Fine));
    assert_eq!(fine.len() - lines.len(), LATENCY_CELLS - COARSE_CELLS);
    // A closed loop delays nothing, and without a first byte there is no time to it.
    let mut bare = snapshot();
    let detail = &mut bare.stages[1].kinds[0].1;
    (detail.delay_ns, detail.ttfb_cells) = (0, [0; COARSE_CELLS]);
    let text = shown(&bare, Buckets::Coarse);
    assert!(!text.contains("schedule_delay") && !text.contains("ttfb"), "{text}");
}

#[test]
fn openmetrics_is_told_to_who_asks_for_it() {
    let text =
        prometheus::text(&board(&["h:1"]), &snapshot(), Exposition::OpenMetrics, Buckets::Coarse);
    assert!(text.contains("# TYPE plimsoll_operations counter\n"), "{text}");
    assert!(text.contains("# UNIT plimsoll_latency_seconds seconds\n"), "{text}");
    assert!(text.contains("plimsoll_operations_total{stage=\"measure\",kind=\"GET\","), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_page_for_prometheus_holds_what_was_counted() {
    let lines = page(&shown(&snapshot(), Buckets::Fine));
    let get = [("stage", "measure"), ("kind", "GET")];
    let of = |name: &str, more: &[(&str, &str)]| value(&lines, name, &[&get[..], more].concat());
    assert_eq!(of("plimsoll_operations_total", &[("outcome", "ok")]), 3.0);
    assert_eq!(of("plimsoll_operations_total", &[("outcome", "throttled")]), 2.0);
    assert_eq!(of("plimsoll_bytes_total", &[]), 3_000.0);
    assert_eq!(of("plimsoll_objects_total", &[]), 3.0);
    let bucket = "plimsoll_latency_seconds_bucket";
    assert_eq!(of(bucket, &[("le", "0.000001024")]), 1.0);
    assert_eq!(of(bucket, &[("le", "0.000001152")]), 2.0);
    assert_eq!(of(bucket, &[("le", "137.438953472")]), 2.0);
    assert_eq!(of(bucket, &[("le", "+Inf")]), 3.0);
    assert_eq!(of("plimsoll_latency_seconds_count", &[]), 3.0);
    assert_eq!(of("plimsoll_latency_seconds_sum", &[]), 200.0000021);
    assert_eq!(value(&lines, "plimsoll_stage_info", &[("stage", "measure")]), 1.0);
    assert_eq!(value(&lines, "plimsoll_stage_info", &[("stage", "prepare")]), 0.0);
    assert_eq!(value(&lines, "process_cpu_seconds_total", &[]), 1.5);
    let version = env!("CARGO_PKG_VERSION");
    let run = [("run", "run-1"), ("what", "s3-\"get\""), ("version", version)];
    assert_eq!(value(&lines, "plimsoll_run_info", &run), 1.0);
}

#[test]
fn the_page_lists_the_agents_of_a_fleet() {
    let mut snapshot = snapshot();
    let part = |name: &str, state| LivePart { name: name.to_owned(), state };
    let counts = LiveCounts { ok: 7, failed: 2, bytes: 70, latency_ns: 9 };
    snapshot.stages[1].parts = vec![
        (part("node\"1", PartState::Works), counts),
        (part("node2", PartState::Silent), LiveCounts::default()),
        (part("node3", PartState::Lost), LiveCounts::default()),
        (part("node4", PartState::Done), LiveCounts::default()),
    ];
    let lines = page(&shown(&snapshot, Buckets::Coarse));
    let own = [("stage", "measure"), ("agent", "node\"1")];
    let of = |name: &str, more: &[(&str, &str)]| value(&lines, name, &[&own[..], more].concat());
    assert_eq!(of("plimsoll_agent_operations_total", &[("outcome", "ok")]), 7.0);
    assert_eq!(of("plimsoll_agent_operations_total", &[("outcome", "failed")]), 2.0);
    assert_eq!(of("plimsoll_agent_bytes_total", &[]), 70.0);
    let is_up = |agent: &str| value(&lines, "plimsoll_agent_up", &[("agent", agent)]);
    assert_eq!(["node\"1", "node2", "node3", "node4"].map(is_up), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn the_request_to_an_otlp_receiver_has_the_documented_form() {
    let request = otlp::request(&board(&["h:1"]), &snapshot());
    let resource = &request["resourceMetrics"][0];
    let attribute = |of: &Value, key: &str| {
        let found = of["attributes"].as_array().unwrap().iter().find(|each| each["key"] == key);
        found.unwrap()["value"]["stringValue"].as_str().unwrap().to_owned()
    };
    assert_eq!(attribute(&resource["resource"], "service.name"), "plimsoll");
    assert_eq!(attribute(&resource["resource"], "service.instance.id"), "run-1");
    let scope = &resource["scopeMetrics"][0];
    assert_eq!(scope["scope"]["name"], "plimsoll");
    let metrics = scope["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|each| each["name"].as_str().unwrap()).collect();
    let known = [
        "plimsoll.operations",
        "plimsoll.bytes",
        "plimsoll.objects",
        "plimsoll.operations.in_flight",
        "plimsoll.latency",
        "plimsoll.ttfb",
        "plimsoll.schedule_delay",
        "process.cpu.time",
    ];
    assert_eq!(names, known);
    for metric in metrics {
        // One kind of data each; 2 is AGGREGATION_TEMPORALITY_CUMULATIVE.
        let kinds = ["sum", "histogram", "gauge"];
        let [kind] =
            kinds.into_iter().filter(|kind| metric.get(kind).is_some()).collect::<Vec<_>>()[..]
        else {
            panic!("{metric}")
        };
        let data = &metric[kind];
        let temporality = (kind != "gauge").then_some(&Value::from(2)).cloned();
        assert_eq!(data.get("aggregationTemporality").cloned(), temporality);
        assert_eq!(data.get("isMonotonic").is_some(), kind == "sum");
        for point in data["dataPoints"].as_array().unwrap() {
            assert_eq!(point["startTimeUnixNano"], "5");
            assert_eq!(point["timeUnixNano"], "1700000000000000001");
        }
    }
    let ended = metrics[0]["sum"]["dataPoints"].as_array().unwrap();
    let ended: Vec<(String, &Value)> =
        ended.iter().map(|point| (attribute(point, "outcome"), &point["asInt"])).collect();
    assert_eq!(ended, [("ok".to_owned(), &"3".into()), ("throttled".to_owned(), &"2".into())]);
    assert_eq!(metrics[1]["sum"]["dataPoints"][0]["asInt"], "3000");
    assert_eq!(metrics[3]["gauge"]["dataPoints"][0]["asInt"], "4");
    for (at, counted) in [(5, "2"), (6, "3")] {
        let point = &metrics[at]["histogram"]["dataPoints"][0];
        let lengths =
            ["bucketCounts", "explicitBounds"].map(|of| point[of].as_array().unwrap().len());
        assert_eq!((lengths[0], lengths[1]), (COARSE_CELLS, COARSE_CELLS - 1));
        assert_eq!(point["count"], counted);
        assert_eq!(point["explicitBounds"][0], coarse_cell_end_ns(0).unwrap() as f64 / 1e9);
    }
    let point = &metrics[4]["histogram"]["dataPoints"][0];
    assert_eq!(
        (attribute(point, "stage"), attribute(point, "kind")),
        ("measure".into(), "GET".into())
    );
    assert_eq!((&point["count"], &point["sum"]), (&"3".into(), &200.0000021.into()));
    let bounds = point["explicitBounds"].as_array().unwrap();
    let counts = point["bucketCounts"].as_array().unwrap();
    assert_eq!(counts.len(), bounds.len() + 1, "the last bucket has no bound");
    assert!(bounds.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64()));
    assert_eq!(bounds[0], 0.000001024);
    assert_eq!(bounds.len(), (0..).map_while(latency_cell_end_ns).count());
    let total: u64 =
        counts.iter().map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(total, 3);
    assert_eq!(metrics[7]["sum"]["dataPoints"][0]["asDouble"], 1.5);
}

/// Splits at `separator` where no backslash stands before it, and takes the backslashes out.
fn split_unescaped(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for char in text.chars() {
        match char {
            '\\' if !escaped => escaped = true,
            _ if char == separator && !escaped => parts.push(String::new()),
            _ => {
                if escaped && char != separator {
                    parts.last_mut().unwrap().push('\\');
                }
                parts.last_mut().unwrap().push(char);
                escaped = false;
            }
        }
    }
    parts
}

/// Parses a line of the line protocol: measurement, tags, fields, time.
fn influx_line(line: &str) -> (String, BTreeMap<String, String>, BTreeMap<String, f64>, u64) {
    // Blanks inside of names and values are escaped.
    let parts = split_unescaped(line, ' ');
    let [head, fields, at] = parts.as_slice() else { panic!("{line}") };
    let head = split_unescaped(head, ',');
    let pair = |text: &String| {
        let [name, value] = <[String; 2]>::try_from(split_unescaped(text, '=')).unwrap();
        assert!(!name.is_empty() && !value.is_empty(), "{line}");
        (name, value)
    };
    let fields = fields.split(',').map(|field| {
        let (name, value) = field.split_once('=').unwrap();
        let number = match value.strip_suffix('i') {
            Some(integer) => integer.parse::<i64>().unwrap() as f64,
            None => value.parse().unwrap(),
        };
        (name.to_owned(), number)
    });
    (head[0].clone(), head[1..].iter().map(pair).collect(), fields.collect(), at.parse().unwrap())
}

fn database(url: &str) -> Result<Database, String> {
    Database::of(&Url::parse(url).map_err(str::to_owned)?)
}

#[test]
fn running_totals_have_warps_names_and_are_written_when_they_change() {
    let base = "http://t@h/b/o";
    let tagged = database(&format!("{base}?site=a%20b,c&x=1")).unwrap();
    let (board, snapshot) = (board(&["h:1"]), snapshot());
    let (lines, written) = influx::totals(&tagged, &board, &snapshot, &Default::default());
    let lines: Vec<_> = lines.lines().map(influx_line).collect();
    assert_eq!(lines.len(), 2, "one in all and one for the only endpoint");
    for (line, endpoint) in lines.iter().zip([None, Some("h:1")]) {
        let (measurement, tags, fields, at) = line;
        assert_eq!((measurement.as_str(), *at), ("warp", 1_700_000_000_000_000_001));
        assert_eq!(tags.get("endpoint").map(String::as_str), endpoint);
        let tag = |name: &str| tags[name].as_str();
        assert_eq!((tag("op"), tag("stage"), tag("warp_id")), ("GET", "measure", "run-1"));
        assert_eq!((tag("site"), tag("x")), ("a b,c", "1"));
        let names = ["requests", "objects", "bytes_total", "errors"];
        assert_eq!(names.map(|name| fields[name]), [5.0, 3.0, 3_000.0, 2.0]);
        assert_eq!(fields["request_total_secs"], 200.0000021);
        assert_eq!(fields["request_ttfb_total_secs"], 0.5);
    }
    let (again, _) = influx::totals(&tagged, &board, &snapshot, &written);
    assert_eq!(again, "", "nothing has changed");
    for (url, why) in [
        ("http://h/b/o", "no token"),
        ("http://t@h/b", "not BUCKET/ORG"),
        ("http://t@h/b/o/x", "not BUCKET/ORG"),
        ("http://t@h//o", "not BUCKET/ORG"),
        ("http://t@h/b/o?op=x", "`op` cannot be set"),
        ("http://t@h/b/o?x", "`x` has no name or no value"),
        ("http://t%0d%0a@h/b/o", "is not allowed in a header"),
    ] {
        let refused = database(url).err().unwrap();
        assert!(refused.contains(why), "{url}: {refused}");
    }
}

#[test]
fn the_summary_has_average_shortest_and_longest_in_all_and_for_each_endpoint() {
    let database = database("http://t@h/b/o").unwrap();
    let mut timeline = Timeline::new(0, 1_000_000_000);
    let mut record = |endpoint, latency_ns: u64, outcome: ErrorClass| {
        let key =
            SeriesKey { stage: StageId(1), kind: OpKind::Put, endpoint: EndpointId(endpoint) };
        let ttfb_ns = (endpoint == 0).then_some(latency_ns / 4);
        let outcome = outcome as u8;
        let op = Sample {
            start_ns: 0,
            end_ns: latency_ns,
            latency_ns,
            ttfb_ns,
            bytes: 10,
            objects: 1,
            outcome,
        };
        timeline.record(key, &op);
    };
    record(0, 1_000_000_000, ErrorClass::Ok);
    record(0, 3_000_000_000, ErrorClass::Ok);
    record(1, 8_000_000_000, ErrorClass::Ok);
    record(1, 9_000_000_000, ErrorClass::Server);
    let totals = timeline.totals();
    let text = influx::summary(&database, &board(&["a:1", "b:1"]), "measure", &totals);
    let lines: Vec<_> = text.lines().map(influx_line).collect();
    let names = ["requests", "objects", "bytes_total", "errors", "request_total_secs"];
    let spread = ["request_avg_secs", "request_min_secs", "request_max_secs"];
    let expected = [
        (None, [4.0, 3.0, 30.0, 1.0, 12.0], [4.0, 1.0, 8.0], Some(0.5)),
        (Some("a:1"), [2.0, 2.0, 20.0, 0.0, 4.0], [2.0, 1.0, 3.0], Some(0.5)),
        (Some("b:1"), [2.0, 1.0, 10.0, 1.0, 8.0], [8.0, 8.0, 8.0], None),
    ];
    assert_eq!(lines.len(), expected.len());
    for ((measurement, tags, fields, _), (endpoint, totals, times, ttfb)) in
        lines.iter().zip(expected)
    {
        assert_eq!(measurement, "warp_run_summary");
        assert_eq!(tags.get("endpoint").map(String::as_str), endpoint);
        assert_eq!(names.map(|name| fields[name]), totals);
        assert_eq!(spread.map(|name| fields[name]), times);
        // Without a time to first byte there is no figure, not a zero.
        assert_eq!(fields.get("request_ttfb_avg_secs").copied(), ttfb);
    }
}

#[test]
fn refusals_come_before_anything_runs_and_never_show_the_token() {
    let clock = clock();
    let facts = facts(&[], &clock);
    let refused = |otlp: Option<String>, influxdb: Option<String>| {
        let receivers = Receivers {
            page: None,
            otlp: otlp.and_then(|url| named("--otlp", url)),
            influxdb: influxdb.and_then(|url| named("--influxdb", url)),
        };
        Telemetry::start(&receivers, &facts).err().unwrap().to_string()
    };
    for rest in ["h:x/b/o", "h/b", "/b/o", "h/b/o?op=1", "h/b/o?x"] {
        let said = refused(None, Some(format!("http://{TOKEN}@{rest}")));
        assert!(said.starts_with("--influxdb: ") && !said.contains(TOKEN), "{said}");
    }
    let said = refused(Some(format!("http://{TOKEN}@h/")), None);
    assert!(said.starts_with("--otlp: ") && !said.contains(TOKEN), "{said}");
    assert!(Telemetry::start(&Receivers::default(), &facts).unwrap().is_none());
}

/// Takes one request, answers it, and returns its head and body.
fn take_request(listener: &TcpListener, status: &str) -> (String, String) {
    answer_request(listener, status, "")
}

fn answer_request(listener: &TcpListener, status: &str, said: &str) -> (String, String) {
    let (mut socket, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let count = socket.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            let said_bytes = said.len();
            let fields = format!("connection: close\r\ncontent-length: {said_bytes}\r\n");
            write!(socket, "HTTP/1.1 {status}\r\n{fields}\r\n{said}").unwrap();
            return (head.to_owned(), body.to_owned());
        }
    }
}

fn start(receivers: &Receivers) -> Telemetry {
    let endpoints = ["h:1".to_owned()];
    Telemetry::start(receivers, &facts(&endpoints, &clock())).unwrap().unwrap()
}

/// Returns what was done in a stage with one GET.
fn one_get() -> Totals<SeriesKey> {
    let mut timeline = Timeline::new(0, 1_000_000_000);
    let key = SeriesKey { stage: StageId(0), kind: OpKind::Get, endpoint: EndpointId(0) };
    timeline.record(
        key,
        &Sample {
            start_ns: 0,
            end_ns: 5,
            latency_ns: 5,
            ttfb_ns: None,
            bytes: 1,
            objects: 1,
            outcome: 0,
        },
    );
    timeline.totals()
}

#[test]
fn a_stage_keeps_its_number_among_those_of_its_name() {
    let board = board(&[]);
    for _ in 0..100 {
        board.begin("main", Arc::new(Live::new(1)));
    }
    // Those that are no longer told of have had theirs.
    let names: Vec<String> = board.snapshot().stages.into_iter().map(|of| of.name).collect();
    let expected: Vec<String> = (37..=100).map(|number| format!("main-{number}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn receivers_are_told_at_the_end_and_asked_as_they_want_it() {
    let otlp = TcpListener::bind("127.0.0.1:0").unwrap();
    let influx = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = Receivers {
        page: None,
        otlp: named("--otlp", format!("http://{}", otlp.local_addr().unwrap())),
        influxdb: named(
            "--influxdb",
            format!("http://{TOKEN}@{}/my%20bucket/org?site=x", influx.local_addr().unwrap()),
        ),
    };
    let telemetry = start(&args);
    // The first one only prepares.
    for _ in 0..2 {
        telemetry.stage("measure", Arc::new(Live::new(1)));
    }
    let (pushed, written) = std::thread::scope(|scope| {
        let pushed = scope.spawn(|| take_request(&otlp, "200 OK"));
        let written = scope.spawn(|| take_request(&influx, "204 No Content"));
        telemetry.finish(vec![(StageId(1), one_get())]);
        (pushed.join().unwrap(), written.join().unwrap())
    });
    assert!(pushed.0.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", pushed.0);
    assert!(pushed.0.contains("content-type: application/json\r\n"));
    let request: Value = serde_json::from_str(&pushed.1).unwrap();
    assert!(request["resourceMetrics"].is_array());
    let line = "POST /api/v2/write?org=org&bucket=my%20bucket&precision=ns HTTP/1.1\r\n";
    assert!(written.0.starts_with(line), "{}", written.0);
    assert!(written.0.contains(&format!("authorization: Token {TOKEN}\r\n")));
    let (measurement, tags, fields, _) = influx_line(written.1.lines().last().unwrap());
    assert_eq!((measurement.as_str(), tags["site"].as_str()), ("warp_run_summary", "x"));
    assert_eq!(fields["requests"], 1.0);
    // As in the counters that were told while it went on.
    assert_eq!(tags["stage"], "measure-2");
}

#[test]
fn the_page_is_served_while_the_run_lasts_and_nothing_else() {
    let page = |addr| Receivers { page: named("--metrics", addr), ..Receivers::default() };
    let telemetry = start(&page(([127, 0, 0, 1], 0).into()));
    let addr = telemetry.page.unwrap();
    telemetry.stage("measure", Arc::new(Live::new(1)));
    telemetry.stage("measure", Arc::new(Live::new(1)));
    let ask = |line: &str| {
        let mut socket = TcpStream::connect(addr).unwrap();
        let openmetrics = "accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1";
        let (line, accept) = match line.strip_suffix(" as OpenMetrics") {
            Some(line) => (line, openmetrics),
            None => (line, "accept: */*"),
        };
        let head = format!("{line} HTTP/1.1\r\nhost: h\r\n{accept}\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let lines = super::tests::page(body);
    assert_eq!(value(&lines, "plimsoll_stage_info", &[("stage", "measure")]), 0.0);
    assert_eq!(value(&lines, "plimsoll_stage_info", &[("stage", "measure-2")]), 1.0);
    let answer = ask("GET /metrics?buckets=fine as OpenMetrics");
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    assert!(ask("GET /other").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics").starts_with("HTTP/1.1 405"));
    // Readers that have only begun to ask keep nobody waiting.
    let halves = (0..40).map(|_| {
        let mut socket = TcpStream::connect(addr).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nhost:").unwrap();
        socket
    });
    let halves: Vec<TcpStream> = halves.collect();
    assert!(ask("GET /metrics").starts_with("HTTP/1.1 200"));
    // It did not have to wait for others to be given up: the fifteen before it are still here.
    let mut oldest = &halves[25];
    oldest.set_nonblocking(true).unwrap();
    assert_eq!(oldest.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(halves);
    // A second run cannot have the same address.
    let clock = clock();
    let facts = facts(&[], &clock);
    let refused = Telemetry::start(&page(addr), &facts).err().unwrap().to_string();
    assert_eq!(refused, format!("--metrics: cannot listen on {addr}"));
    drop(telemetry);
    assert!(TcpStream::connect(addr).is_err(), "the page ends with the run");
}

#[test]
fn what_a_receiver_repeats_of_its_address_is_not_shown() {
    for (spaces, shown) in [(0, ": *REDACTED*;"), ((16 << 10) - 5, "it answered 403;")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{TOKEN}@{}/b/o", listener.local_addr().unwrap());
        let args = Receivers { page: None, otlp: None, influxdb: named("--influxdb", url) };
        let told = Arc::new(std::sync::Mutex::new(String::new()));
        let kept = Arc::clone(&told);
        let (endpoints, clock) = (["h:1".to_owned()], clock());
        let facts = RunFacts {
            tell: Arc::new(move |line| kept.lock().unwrap().push_str(line)),
            ..facts(&endpoints, &clock)
        };
        let telemetry = Telemetry::start(&args, &facts).unwrap().unwrap();
        telemetry.stage("measure", Arc::new(Live::new(1)));
        std::thread::scope(|scope| {
            let said = format!("{}{TOKEN}", " ".repeat(spaces));
            let answered = scope.spawn(move || answer_request(&listener, "403 Forbidden", &said));
            telemetry.finish(vec![(StageId(0), one_get())]);
            answered.join().unwrap();
        });
        let told = told.lock().unwrap();
        assert!(told.contains(shown) && !told.contains("tok"), "{told}");
    }
}

#[test]
fn receivers_that_refuse_or_are_not_there_end_nothing() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = Receivers {
        page: None,
        otlp: named("--otlp", format!("http://{}/x", gone.local_addr().unwrap())),
        influxdb: named(
            "--influxdb",
            format!("http://{TOKEN}@{}/b/o", refusing.local_addr().unwrap()),
        ),
    };
    drop(gone);
    let telemetry = start(&args);
    telemetry.stage("measure", Arc::new(Live::new(1)));
    std::thread::scope(|scope| {
        let written = scope.spawn(|| take_request(&refusing, "401 Unauthorized"));
        telemetry.finish(vec![(StageId(0), one_get())]);
        assert!(written.join().unwrap().1.contains("warp_run_summary"));
    });
}
