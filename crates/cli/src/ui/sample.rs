//! What a live screen shows of a stage: its counters, read again and again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use plimsoll_conduct::{Goal, StageView};
use plimsoll_engine::{LiveDetail, PartState};
use plimsoll_model::{ErrorClass, Moment, OpKind, per_sec};
use plimsoll_report::format;
use plimsoll_stats::Percentile;

use super::line::{progress, share, silence_in_words, state_in_words};

/// What is shown as of now is of this long at least.
const NOW_SPAN: Duration = Duration::from_secs(1);
/// Percentiles are of the last of this length: a second holds too few operations for a p99.
const LATENCY_SPAN: Duration = Duration::from_secs(5);
/// So many seconds of the past are kept; no terminal has more columns.
const PAST_MAX: usize = 512;

/// What is shown at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    /// What goes on.
    pub(super) doing: String,
    /// How much of it is done, from 0 to 1.
    pub(super) share: f64,
    /// The same in words.
    pub(super) progress: String,
    pub(super) left: Option<Duration>,
    /// That no operation has succeeded for a while.
    pub(super) silent: Option<String>,
    /// By kind of operation, and of all of them where there are several.
    pub(super) kinds: Vec<Row>,
    pub(super) hosts: Vec<Row>,
    pub(super) agents: Vec<Row>,
    /// Operations per second that the schedule offers, and that succeed.
    pub(super) offered: Option<(f64, f64)>,
    pub(super) failures: Vec<FailureRow>,
    /// By second, the newest last: operations per second, and the p99 in nanoseconds.
    pub(super) rates: Vec<u64>,
    pub(super) p99s: Vec<u64>,
}

/// A line of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// How it stands, where that is not as it should be.
    pub(super) state: Option<&'static str>,
    /// Successes per second, now and since the stage began.
    pub(super) now: f64,
    pub(super) mean: f64,
    /// Bytes per second, likewise.
    pub(super) bytes_now: f64,
    pub(super) bytes_mean: f64,
    /// Of the last seconds.
    pub(super) p50: Option<Duration>,
    pub(super) p99: Option<Duration>,
    pub(super) in_flight: Option<u64>,
    pub(super) failed: u64,
    /// Successes per second by second, the newest last.
    pub(super) past: Vec<u64>,
}

/// Failures of one class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FailureRow {
    pub(super) class: ErrorClass,
    pub(super) count: u64,
    /// The last text, with who was asked.
    pub(super) text: String,
}

/// What a line of figures is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Kind(OpKind),
    All,
    Host(usize),
    Agent(usize),
}

/// Everything that was counted up to a moment.
struct Reading {
    at: Moment,
    counted: BTreeMap<Of, LiveDetail>,
}

impl Reading {
    fn of(stage: &StageView<'_>, at: Moment) -> Self {
        let live = stage.live;
        let kinds = OpKind::ALL.iter().map(|kind| (Of::Kind(*kind), live.detail(*kind)));
        let hosts = (0..live.hosts_count()).map(|host| (Of::Host(host), live.host_detail(host)));
        let agents = (0..live.parts().len()).map(|slot| (Of::Agent(slot), live.slot_detail(slot)));
        let known = kinds.chain(hosts).chain(agents);
        let mut counted: BTreeMap<Of, LiveDetail> =
            known.filter_map(|(of, detail)| Some((of, detail?))).collect();
        let kinds = counted.range(..Of::All).map(|(_, detail)| detail.clone());
        let all = kinds.fold(LiveDetail::default(), LiveDetail::plus);
        counted.insert(Of::All, all);
        Self { at, counted }
    }

    /// Returns what has come since an earlier one, and how long that is.
    fn since(&self, before: &Self, of: Of) -> (LiveDetail, Duration) {
        let now = self.counted.get(&of).cloned().unwrap_or_default();
        let since = before.counted.get(&of).map_or_else(|| now.clone(), |then| now.since(then));
        (since, self.at.since(before.at))
    }
}

/// Turns counters into what is shown.
pub(super) struct Sampler {
    began: Moment,
    /// Of the last [`LATENCY_SPAN`], the newest last; there is always one.
    readings: VecDeque<Reading>,
    past: BTreeMap<Of, VecDeque<u64>>,
    p99s: VecDeque<u64>,
    past_at: Moment,
    /// When the last success was seen; none was before the first.
    success_seen: Option<Moment>,
}

impl Sampler {
    pub(super) fn new(stage: &StageView<'_>) -> Self {
        let now = stage.clock.now();
        let readings = VecDeque::from([Reading::of(stage, now)]);
        let (past, p99s) = (BTreeMap::new(), VecDeque::new());
        Self { began: now, readings, past, p99s, past_at: now, success_seen: None }
    }

    /// Reads the counters and returns what they show.
    pub(super) fn look(&mut self, stage: &StageView<'_>) -> View {
        let at = stage.clock.now();
        let reading = Reading::of(stage, at);
        let ok = |of: &Reading| of.counted.get(&Of::All).map_or(0, LiveDetail::ok_count);
        if self.readings.back().is_none_or(|last| ok(&reading) > ok(last)) {
            self.success_seen = Some(at);
        }
        self.readings.push_back(reading);
        // The oldest is the newest of those that are old enough.
        while self.readings.get(1).is_some_and(|of| at.since(of.at) >= LATENCY_SPAN) {
            self.readings.pop_front();
        }
        self.note_past(at);
        self.view(stage, at)
    }

    fn newest(&self) -> &Reading {
        self.readings.back().expect("one was read")
    }

    /// Returns what was read a second ago.
    fn recent(&self) -> &Reading {
        let at = self.newest().at;
        let old = self.readings.iter().rev().find(|of| at.since(of.at) >= NOW_SPAN);
        old.unwrap_or(&self.readings[0])
    }

    fn note_past(&mut self, at: Moment) {
        if at.since(self.past_at) < NOW_SPAN {
            return;
        }
        self.past_at = at;
        let known: Vec<Of> = self.newest().counted.keys().copied().collect();
        for of in known {
            let (since, span) = self.newest().since(self.recent(), of);
            let rate = per_second(since.ok_count(), span).round() as u64;
            push(self.past.entry(of).or_default(), rate);
            if of == Of::All {
                let p99 = since.latency(Percentile::P99).unwrap_or_default();
                push(&mut self.p99s, p99.as_nanos() as u64);
            }
        }
    }

    fn view(&self, stage: &StageView<'_>, at: Moment) -> View {
        let began = stage.live.begun().unwrap_or(self.began);
        let elapsed = at.since(began);
        let all = &self.newest().counted[&Of::All];
        let ended = all.ended_count();
        let kinds = OpKind::ALL.iter().filter_map(|kind| {
            let row = self.row(Of::Kind(*kind), kind.name(), elapsed)?;
            Some(Row { in_flight: Some(stage.live.in_flight(*kind)), ..row })
        });
        let mut kinds: Vec<Row> = kinds.collect();
        if kinds.len() > 1 {
            let in_flight = kinds.iter().filter_map(|row| row.in_flight).sum();
            let total = self.row(Of::All, "total", elapsed);
            kinds.extend(total.map(|total| Row { in_flight: Some(in_flight), ..total }));
        }
        View {
            doing: stage.announced.doing.clone(),
            share: share(stage.goal, ended, elapsed),
            progress: progress(stage, ended, elapsed),
            left: self.left(stage.goal, ended, elapsed),
            silent: silence_in_words(self.success_seen, at),
            kinds,
            hosts: self.hosts(stage, elapsed),
            agents: self.agents(stage, elapsed),
            offered: self.offered(stage, elapsed),
            failures: failures(stage, all),
            rates: past(self.past.get(&Of::All)),
            p99s: past(Some(&self.p99s)),
        }
    }

    /// Returns the figures of what has ended at all.
    fn row(&self, of: Of, name: &str, elapsed: Duration) -> Option<Row> {
        let all = self.newest().counted.get(&of)?;
        let (now, span) = self.newest().since(self.recent(), of);
        let (last, _) = self.newest().since(&self.readings[0], of);
        Some(Row {
            name: name.to_owned(),
            state: None,
            now: per_second(now.ok_count(), span),
            mean: per_second(all.ok_count(), elapsed),
            bytes_now: per_second(now.bytes, span),
            bytes_mean: per_second(all.bytes, elapsed),
            p50: last.latency(Percentile::P50),
            p99: last.latency(Percentile::P99),
            in_flight: None,
            failed: all.failed_count(),
            past: past(self.past.get(&of)),
        })
    }

    fn hosts(&self, stage: &StageView<'_>, elapsed: Duration) -> Vec<Row> {
        let apart = stage.endpoints.iter().enumerate().take(stage.live.hosts_count());
        let row = |(host, name): (usize, &String)| {
            let named = || Row { name: name.clone(), ..Row::default() };
            self.row(Of::Host(host), name, elapsed).unwrap_or_else(named)
        };
        let mut rows: Vec<Row> = apart.map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.failed, row.p99)));
        rows
    }

    fn agents(&self, stage: &StageView<'_>, elapsed: Duration) -> Vec<Row> {
        let parts = stage.live.parts();
        let mut rows = Vec::new();
        for (slot, part) in parts.iter().enumerate() {
            let named = || Row { name: part.name.clone(), ..Row::default() };
            let row = self.row(Of::Agent(slot), &part.name, elapsed).unwrap_or_else(named);
            let order = match part.state {
                PartState::Lost => 0,
                PartState::Silent => 1,
                PartState::Works => 2,
                PartState::Done => 3,
            };
            let state = state_in_words(part.state);
            let in_flight = Some(stage.live.slot_in_flight(slot));
            rows.push((order, Row { state, in_flight, ..row }));
        }
        rows.sort_by_key(|(order, row)| (*order, std::cmp::Reverse((row.failed, row.p99))));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Returns how long it goes on; by operations, at the rate of the last seconds.
    fn left(&self, goal: Goal, ended: u64, elapsed: Duration) -> Option<Duration> {
        match goal {
            Goal::Time(time) => Some(time.saturating_sub(elapsed)),
            Goal::Ops(u64::MAX) => None,
            Goal::Ops(ops) => {
                let (last, span) = self.newest().since(&self.readings[0], Of::All);
                let left = ops.saturating_sub(ended) as f64;
                let seconds = left / per_second(last.ended_count(), span);
                Duration::try_from_secs_f64(seconds).ok()
            }
        }
    }

    /// Returns what was offered in the last second, where all jobs have a schedule of a rate, and
    /// what succeeded.
    fn offered(&self, stage: &StageView<'_>, elapsed: Duration) -> Option<(f64, f64)> {
        if stage.rates.is_empty() || stage.rates.len() != stage.live.jobs_count().max(1) {
            return None;
        }
        let (now, span) = self.newest().since(self.recent(), Of::All);
        let from = elapsed.saturating_sub(span);
        let due =
            stage.rates.iter().map(|rate| rate.count_within(elapsed) - rate.count_within(from));
        let offered = per_sec(due.sum(), elapsed - from).unwrap_or_default();
        Some((offered, per_second(now.ok_count(), span)))
    }
}

fn push(past: &mut VecDeque<u64>, value: u64) {
    if past.len() == PAST_MAX {
        past.pop_front();
    }
    past.push_back(value);
}

fn past(of: Option<&VecDeque<u64>>) -> Vec<u64> {
    of.map_or_else(Vec::new, |past| past.iter().copied().collect())
}

fn per_second(count: u64, span: Duration) -> f64 {
    per_sec(count as f64, span).unwrap_or_default()
}

/// Returns the failures by class, the most frequent first.
fn failures(stage: &StageView<'_>, all: &LiveDetail) -> Vec<FailureRow> {
    let last = stage.live.last_failures();
    let parts = stage.live.parts();
    let text = |class: ErrorClass| {
        let (slot, last) = last.iter().find(|(_, last)| last.class == class)?;
        let host = stage.endpoints.get(usize::from(last.endpoint.0));
        let host = host.filter(|host| stage.endpoints.len() > 1 && !last.message.contains(*host));
        let by = parts.get(*slot).map(|part| format!("{}: ", part.name));
        let at = host.map(|host| format!("{host}: "));
        let message = last.message.split_whitespace().collect::<Vec<_>>().join(" ");
        // Its count stands before the name of the class.
        let named = message.strip_prefix(class.name()).map(str::trim_start);
        let message = named.map_or(&*message, |rest| rest.strip_prefix(": ").unwrap_or(rest));
        Some([by.unwrap_or_default(), at.unwrap_or_default(), message.to_owned()].concat())
    };
    let classes = ErrorClass::ALL.iter().skip(1).map(|class| (*class, all.ended[*class as usize]));
    let failed = classes.filter(|(_, count)| *count > 0);
    let row = |(class, count)| FailureRow { class, count, text: text(class).unwrap_or_default() };
    let mut rows: Vec<FailureRow> = failed.map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

/// Returns how long it goes on in a few words.
pub(super) fn left_in_words(left: Duration) -> String {
    // With the whole seconds that have passed it makes up all of the time.
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s left"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s left"),
        (hours, minutes, _) => format!("{} h {minutes} min left", format::count(hours)),
    }
}
