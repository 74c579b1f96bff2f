//! What a live screen shows of counters, and how it is drawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_conduct::{Announced, Ends, Fills, Goal, StageView};
use plimsoll_engine::latency_cell_end_ns;
use plimsoll_engine::{ErrorSample, LATENCY_CELLS, Live, LiveDetail, LivePart, PartState};
use plimsoll_model::{Clock, EndpointId, ErrorClass, JobId, Moment, OpKind, SharedClock};
use plimsoll_workload::RateProfile;

use super::sample::{FailureRow, Row, Sampler, View, left_in_words};
use super::text::Line;
use super::view::frame;

/// Shows what it is set to.
#[derive(Default)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.load(Ordering::Relaxed))
    }
}

const SECOND: u64 = 1_000_000_000;

/// A stage whose counters and clock are set by hand.
struct Shown {
    set: Arc<Set>,
    clock: SharedClock,
    live: Arc<Live>,
    rates: Vec<RateProfile>,
    endpoints: Vec<String>,
    goal: Goal,
    announced: Announced,
}

impl Shown {
    fn new(live: Live, goal: Goal) -> Self {
        let set = Arc::new(Set::default());
        let clock: SharedClock = Arc::clone(&set) as SharedClock;
        live.begin(Moment::EPOCH);
        let announced = Announced::doing("measuring");
        let (live, rates, endpoints) = (Arc::new(live), Vec::new(), Vec::new());
        Self { set, clock, live, rates, endpoints, goal, announced }
    }

    fn stage(&self) -> StageView<'_> {
        StageView {
            name: "main",
            announced: &self.announced,
            goal: self.goal,
            live: &self.live,
            clock: &self.clock,
            rates: &self.rates,
            endpoints: &self.endpoints,
        }
    }

    fn at(&self, seconds: f64) {
        self.set.0.store((seconds * SECOND as f64) as u64, Ordering::Relaxed);
    }
}

/// So many successes of so much each, the last `slow` of which took 1 s and the others 1 ms.
fn detail(ok: u64, slow: u64, bytes: u64) -> LiveDetail {
    let cell = |ns: u64| {
        (0..LATENCY_CELLS).find(|cell| latency_cell_end_ns(*cell).is_none_or(|end| ns <= end))
    };
    let mut detail = LiveDetail { bytes: ok * bytes, ..LiveDetail::default() };
    detail.ended[ErrorClass::Ok as usize] = ok;
    detail.latency_cells[cell(1_000_000).unwrap()] = ok - slow;
    detail.latency_cells[cell(SECOND).unwrap()] = slow;
    detail
}

fn failure(class: ErrorClass, endpoint: u16, message: &str) -> ErrorSample {
    ErrorSample {
        class,
        job: JobId(0),
        kind: OpKind::Get,
        endpoint: EndpointId(endpoint),
        at: Moment::EPOCH,
        status: None,
        message: message.to_owned(),
    }
}

#[test]
fn now_is_the_last_second_and_percentiles_are_of_the_last_five() {
    let shown = Shown::new(Live::new(1), Goal::Time(Duration::from_secs(60)));
    let mut sampler = Sampler::new(&shown.stage());
    let mut look = |second: u64, get: LiveDetail| {
        shown.at(second as f64);
        shown.live.show(0, None, OpKind::Get, &get);
        sampler.look(&shown.stage())
    };
    // All the slow ones are of the first second.
    let view = look(1, detail(100, 100, 1_000));
    let get = &view.kinds[0];
    assert_eq!((&*get.name, get.now, get.mean, get.bytes_now), ("GET", 100.0, 100.0, 100_000.0));
    assert_eq!(get.p50.map(|of| of.as_millis()), Some(1_006));
    assert_eq!((view.kinds.len(), &*view.doing), (1, "measuring"));
    for second in 2..=7 {
        look(second, detail(100 + 500 * (second - 1), 100, 1_000));
    }
    let view = look(8, detail(3_800, 100, 1_000));
    let get = &view.kinds[0];
    assert_eq!((get.now, get.mean), (700.0, 475.0));
    // Within an eighth of a millisecond.
    assert_eq!(get.p99.map(|of| of.as_micros()), Some(1_048));
    assert_eq!(get.past, [100, 500, 500, 500, 500, 500, 500, 700]);
    assert_eq!(view.rates, get.past);
    assert_eq!((view.share, &*view.progress), (8.0 / 60.0, "8 of 60 s"));
    assert_eq!(view.left, Some(Duration::from_secs(52)));
    assert_eq!(view.silent, None);
    let view = look(11, detail(3_800, 100, 1_000));
    assert_eq!((view.kinds[0].now, view.silent), (0.0, Some("NO SUCCESS FOR 3 s".to_owned())));
}

#[test]
fn several_kinds_have_a_total_and_operations_are_left_at_the_rate_of_the_last_seconds() {
    let shown = Shown::new(Live::new(1), Goal::Ops(1_000));
    let mut sampler = Sampler::new(&shown.stage());
    shown.at(2.0);
    shown.live.show(0, None, OpKind::Get, &detail(150, 0, 10));
    shown.live.show(0, None, OpKind::Put, &detail(50, 0, 10));
    shown.live.show_in_flight(0, None, OpKind::Put, 3);
    let view = sampler.look(&shown.stage());
    let rows: Vec<_> = view.kinds.iter().map(|row| (&*row.name, row.now, row.in_flight)).collect();
    let expected = [("PUT", 25.0, Some(3)), ("GET", 75.0, Some(0)), ("total", 100.0, Some(3))];
    assert_eq!(rows, expected);
    assert_eq!((&*view.progress, view.left), ("200 of 1,000", Some(Duration::from_secs(8))));
    let words = [0, 59, 61, 3_725].map(|seconds| left_in_words(Duration::from_secs(seconds)));
    assert_eq!(words, ["0 s left", "59 s left", "1 min 1 s left", "1 h 2 min left"]);
}

#[test]
fn what_needs_a_look_stands_first_and_failures_say_whose_they_are() {
    let mut shown = Shown::new(Live::telling(3, 1, 3), Goal::Time(Duration::from_secs(60)));
    shown.endpoints = ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec();
    let part = |(name, state): (&str, PartState)| LivePart { name: name.to_owned(), state };
    use PartState::{Done, Lost, Works};
    let states = [("n0", Done), ("n1", Works), ("n2", Lost)];
    shown.live.show_parts(states.map(part).to_vec());
    let mut sampler = Sampler::new(&shown.stage());
    shown.at(1.0);
    shown.live.show(1, None, OpKind::Get, &detail(10, 0, 1));
    let mut failed = detail(5, 5, 1);
    failed.ended[ErrorClass::Connect as usize] = 2;
    failed.ended[ErrorClass::Throttled as usize] = 7;
    shown.live.show(2, None, OpKind::Get, &failed);
    shown.live.show_host(1, 0, &detail(10, 0, 1));
    shown.live.show_host(2, 2, &failed);
    let failures = [
        failure(ErrorClass::Connect, 2, "connect: connection refused\nby c:1"),
        failure(ErrorClass::Throttled, 2, "throttled (503): SlowDown"),
    ];
    shown.live.show_failures(2, failures.to_vec());
    let view = sampler.look(&shown.stage());
    let names = |rows: &[Row]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&view.hosts), ["c:1", "a:1", "b:1"]);
    assert_eq!(names(&view.agents), ["n2", "n1", "n0"]);
    assert_eq!(view.agents[0].state, Some("LOST"));
    let row = |class, count, text: &str| FailureRow { class, count, text: text.to_owned() };
    let expected = [
        row(ErrorClass::Throttled, 7, "n2: c:1: (503): SlowDown"),
        row(ErrorClass::Connect, 2, "n2: connection refused by c:1"),
    ];
    assert_eq!(view.failures, expected);
}

#[test]
fn the_offered_rate_is_that_of_the_schedule_where_all_jobs_have_one() {
    let mut shown = Shown::new(Live::new(1), Goal::Time(Duration::from_secs(60)));
    shown.rates = vec!["100/s for 2s, 500/s".parse().unwrap()];
    let mut sampler = Sampler::new(&shown.stage());
    let mut look = |seconds: f64, ok: u64| {
        shown.at(seconds);
        shown.live.show(0, None, OpKind::Get, &detail(ok, 0, 1));
        sampler.look(&shown.stage()).offered
    };
    assert_eq!(look(1.0, 90), Some((100.0, 90.0)));
    assert_eq!(look(2.5, 300), Some(((0.5 * 500.0 + 1.0 * 100.0) / 1.5, 140.0)));
    assert_eq!(look(3.5, 700), Some((500.0, 400.0)));
    // Of two jobs one asks for as much as it can.
    let mut shown = Shown::new(Live::telling(1, 2, 1), Goal::Time(Duration::from_secs(60)));
    shown.rates = vec!["100/s".parse().unwrap()];
    let mut sampler = Sampler::new(&shown.stage());
    shown.at(1.0);
    assert_eq!(sampler.look(&shown.stage()).offered, None);
}

/// Returns the rows of a screen of that size, without what is blank at their ends.
fn drawn(view: &View, said: &[&str], columns: usize, rows: usize) -> Vec<String> {
    let said: Vec<String> = said.iter().map(|line| (*line).to_owned()).collect();
    let lines = frame(view, &said, columns, rows);
    assert_eq!(lines.len(), rows);
    let row = |line: Line| line.0.into_iter().map(|(_, text)| text).collect::<String>();
    lines.into_iter().map(row).map(|row| row.trim_end().to_owned()).collect()
}

fn row(name: &str, rate: f64, failed: u64) -> Row {
    Row {
        name: name.to_owned(),
        state: None,
        now: rate,
        mean: rate * 0.9,
        bytes_now: rate * 65_536.0,
        bytes_mean: rate * 0.9 * 65_536.0,
        p50: Some(Duration::from_micros(3_410)),
        p99: Some(Duration::from_micros(128_400)),
        in_flight: Some(1_024),
        failed,
        past: vec![1, 4, 8],
    }
}

fn busy() -> View {
    View {
        doing: "measuring".to_owned(),
        share: 0.5,
        progress: "150 of 300 s".to_owned(),
        left: Some(Duration::from_secs(150)),
        silent: Some("NO SUCCESS FOR 3 s".to_owned()),
        kinds: vec![
            row("PUT", 12_345.0, 0),
            row("GET", 123_456.0, 41),
            row("total", 135_801.0, 41),
        ],
        hosts: (1..=9).map(|host| row(&format!("10.0.0.{host}:9000"), 999.0, host)).collect(),
        agents: vec![Row { state: Some("LOST"), ..row("node2", 0.0, 3) }, row("node1", 9.0, 0)],
        offered: Some((2_000.0, 1_900.0)),
        failures: vec![FailureRow {
            class: ErrorClass::Timeout,
            count: 41,
            text: "no answer within 2 s ".repeat(9),
        }],
        rates: vec![1, 5, 9],
        p99s: vec![1_000_000, 9_000_000],
    }
}

#[test]
fn a_busy_run_fits_a_terminal_of_80_by_24() {
    let lines = drawn(&busy(), &["s3-mixed on 10.0.0.1:9000", "warning: late"], 80, 24);
    let expected = [
        "measuring",
        "━━━━━━━━━━━━━━━━━━━━──────────────────── 150 of 300 s, 2 min 30 s left",
        "NO SUCCESS FOR 3 s",
        "offered 2,000 ops/s, achieved 1,900 ops/s: 95 %",
        "",
    ];
    assert_eq!(lines[..5], expected, "{lines:#?}");
    assert_eq!(lines[23], "q ends this stage, Ctrl-C the run: both with a report");
    for figure in ["12,345", "123,456", "135,801", "128 ms", "failed", "LOST", "10.0.0.1:9000"] {
        assert!(lines.iter().any(|line| line.contains(figure)), "{figure} is not in {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("host, 1 of 9 ")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("41 timeout  no answer")), "{lines:#?}");
}

#[test]
fn charts_scale_bars_to_the_highest_and_stand_side_by_side_where_there_is_room() {
    let view = View {
        rates: vec![1, 5, 9, 0],
        p99s: vec![3_000_000, 4_000_000],
        kinds: vec![row("GET", 9.0, 0)],
        ..View::default()
    };
    let charts = |columns| drawn(&view, &[], columns, 10)[5..9].to_vec();
    let expected = [
        "",
        "rate by second, up to 9 ops/s         p99 by second, up to 4.00 ms",
        "  █                                   ▄█",
        "▁██                                   ██",
    ];
    assert_eq!(charts(73), expected);
    let expected = ["", "rate by second, up to 9 ops/s", "  █", "▁██"];
    assert_eq!(charts(71), expected);
}

#[test]
fn no_size_of_a_terminal_cuts_a_figure() {
    let view = busy();
    let figures = ["12,345", "11,111", "123,456", "111,110", "3.41 ms", "128 ms", "1,024", "41"];
    for columns in 1..=200 {
        for rows in [1, 2, 5, 12, 24, 50] {
            let lines = drawn(&view, &["said"; 30], columns, rows);
            let Some(put) = lines.iter().find(|line| line.starts_with("PUT")) else { continue };
            if columns < 30 {
                // Even the rate and the failures have no room.
                continue;
            }
            let words = ["PUT", "7.53", "7.54", "GiB/s", "772", "694", "MiB/s", "0", "ms"];
            for word in put.split_whitespace() {
                let is_whole = words.contains(&word)
                    || figures.iter().any(|figure| figure.split(' ').any(|part| part == word))
                    || word.chars().all(|c| "▁▂▃▄▅▆▇█".contains(c));
                assert!(is_whole, "{word} in {columns} x {rows}: {put}");
            }
        }
    }
}

#[test]
fn a_stage_that_makes_much_says_how_much() {
    let mut shown = Shown::new(Live::new(1), Goal::Ops(2_500));
    let said = |shown: &Shown| crate::ui::announcement(&shown.stage());
    shown.announced = Announced::doing("preparing");
    let of = |bytes| Fills { members_count: 2_500, are_files: false, bytes };
    shown.announced.fills = Some(of(2_500 * (10 << 20)));
    assert_eq!(said(&shown), "preparing: 24.4 GiB in 2,500 objects");
    shown.announced.fills = Some(of(2_500 * (100 << 10)));
    assert_eq!(said(&shown), "preparing");
    shown.announced = Announced { ends: Some(Ends::Stage), ..Announced::doing("measuring") };
    assert_eq!(said(&shown), "measuring; q or Ctrl-C ends it early, with a report");
}
