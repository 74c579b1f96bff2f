//! A run that goes on as one line, with a line for each agent of a fleet.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_conduct::{Goal, StageView};
use plimsoll_engine::{LiveCounts, LivePart, PartState};
use plimsoll_model::{ByteRate, Moment, OpKind};
use plimsoll_report::format;

use super::screen;
use super::text::{self, fitting};

/// How many columns the bar has.
const BAR_CHARS: usize = 16;

/// How many columns each line has that is drawn. The cursor stands at the end of the last one.
static DRAWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn drawn() -> MutexGuard<'static, Vec<usize>> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line, and those of agents below it.
pub(super) struct LineDisplay {
    agents: AgentRates,
    meter: Meter,
}

impl LineDisplay {
    pub(super) fn new(stage: &StageView<'_>) -> Self {
        Self { agents: AgentRates::default(), meter: Meter::new(stage) }
    }

    /// Draws it on a terminal of that size.
    pub(super) fn draw(&mut self, stage: &StageView<'_>, columns: usize, rows: usize) {
        let elapsed = self.meter.tick(stage);
        let ended = self.meter.now.ok + self.meter.now.failed;
        let bar = bar(share(stage.goal, ended, elapsed));
        let used = stage.name.chars().count() + BAR_CHARS + 3;
        let text = self.meter.text(stage, elapsed, columns.saturating_sub(used));
        let mut lines = vec![format!("{} {bar} {text}", stage.name)];
        lines.extend(self.agents.lines(stage).into_iter().map(|line| format!("  {line}")));
        lines.truncate(rows);
        // In the last column the end of a row would erase its character.
        let fitting = |line: &String| fitting(line, columns.saturating_sub(1));
        let lines: Vec<String> = lines.iter().map(fitting).collect();
        let mut drawn = drawn();
        // There is nobody to tell when the terminal is gone.
        let _ = std::io::stderr().write_all(redrawn(&drawn, &lines, columns).as_bytes());
        *drawn = lines.iter().map(|line| text::columns(line)).collect();
    }
}

impl Drop for LineDisplay {
    fn drop(&mut self) {
        beside_the_line(|| ());
    }
}

/// Writes while no line is drawn. It is drawn again at the next tick.
pub(super) fn beside_the_line(write: impl FnOnce()) {
    let mut drawn = drawn();
    if !drawn.is_empty() {
        let columns = screen::size().map_or(usize::MAX, |(columns, _)| columns.into());
        let _ = std::io::stderr().write_all(redrawn(&drawn, &[], columns).as_bytes());
        drawn.clear();
    }
    write();
}

/// Returns the control sequences (ECMA-48) and texts that put `lines` in the place of those that
/// were drawn, which have so many columns each and end where the cursor stands.
fn redrawn(drawn: &[usize], lines: &[String], columns: usize) -> String {
    // A terminal that has become narrower since has wrapped them.
    let rows: usize = drawn.iter().map(|line| line.div_ceil(columns.max(1)).max(1)).sum();
    let up = if rows > 1 { format!("\x1b[{}A", rows - 1) } else { String::new() };
    format!("\r{up}{}\x1b[J", lines.join("\x1b[K\r\n"))
}

/// Returns the bar of a share from 0 to 1.
fn bar(share: f64) -> String {
    let filled = (share * BAR_CHARS as f64) as usize;
    let head = usize::from(share > 0.0 && filled < BAR_CHARS);
    ["━".repeat(filled), "╸".repeat(head), "─".repeat(BAR_CHARS - filled - head)].concat()
}

/// Returns how much of a stage is done, from 0 to 1.
pub(super) fn share(goal: Goal, ended: u64, elapsed: Duration) -> f64 {
    let share = match goal {
        Goal::Ops(ops) => ended as f64 / ops.max(1) as f64,
        Goal::Time(time) => elapsed.as_secs_f64() / time.as_secs_f64(),
    };
    share.min(1.0)
}

/// Returns what is said at a moment of a time without a success, where it is worth saying; there
/// was one at `success_seen`, if there was any.
pub(super) fn silence_in_words(success_seen: Option<Moment>, at: Moment) -> Option<String> {
    /// A shorter time is none.
    const SILENT_MIN: Duration = Duration::from_secs(2);
    let silent = at.since(success_seen?);
    (silent >= SILENT_MIN).then(|| format!("NO SUCCESS FOR {} s", silent.as_secs()))
}

/// Turns counters into rates.
pub(super) struct Meter {
    started: Moment,
    seen_at: Moment,
    seen: LiveCounts,
    now: LiveCounts,
    /// Unknown until it has been counted for a while.
    ops_per_sec: Option<f64>,
    bytes_per_sec: f64,
    latency: Option<Duration>,
    /// When the last success was seen; none was before the first.
    success_seen: Option<Moment>,
}

impl Meter {
    /// Rates are taken over at least this long.
    const SPAN_MIN: Duration = Duration::from_secs(1);

    pub(super) fn new(stage: &StageView<'_>) -> Self {
        let now = stage.clock.now();
        Self {
            started: now,
            seen_at: now,
            seen: LiveCounts::default(),
            now: LiveCounts::default(),
            ops_per_sec: None,
            bytes_per_sec: 0.0,
            latency: None,
            success_seen: None,
        }
    }

    /// Reads the counters and returns how long the stage has run.
    pub(super) fn tick(&mut self, stage: &StageView<'_>) -> Duration {
        let at = stage.clock.now();
        let kinds = OpKind::ALL.iter().map(|kind| stage.live.counts(*kind));
        let ok_before = self.now.ok;
        self.now = kinds.fold(LiveCounts::default(), LiveCounts::plus);
        if self.now.ok > ok_before {
            self.success_seen = Some(at);
        }
        let span = at.since(self.seen_at);
        if span >= Self::SPAN_MIN {
            let seconds = span.as_secs_f64();
            let ok = self.now.ok - self.seen.ok;
            self.ops_per_sec = Some(ok as f64 / seconds);
            self.bytes_per_sec = (self.now.bytes - self.seen.bytes) as f64 / seconds;
            let latency_ns = self.now.latency_ns.wrapping_sub(self.seen.latency_ns);
            self.latency = latency_ns.checked_div(ok).map(Duration::from_nanos);
            (self.seen, self.seen_at) = (self.now, at);
        }
        at.since(self.started)
    }

    /// Returns how far it is and how fast, in `room` columns: what does not fit is left out whole.
    pub(super) fn text(&self, stage: &StageView<'_>, elapsed: Duration, room: usize) -> String {
        let ended = self.now.ok + self.now.failed;
        let progress = progress(stage, ended, elapsed);
        let errors = match self.now.failed {
            0 => "no errors".to_owned(),
            1 => "1 ERROR".to_owned(),
            failed => format!("{} ERRORS", format::count(failed)),
        };
        let text = match self.ops_per_sec.map(|rate| format::count(rate.round() as u64)) {
            _ if ended == 0 => format!("{progress}, nothing has ended yet"),
            None => format!("{progress}, {errors}"),
            Some(rate) => format!("{progress}, {errors}: {rate} ops/s"),
        };
        let bytes = (self.now.bytes > 0).then(|| format::byte_rate(ByteRate(self.bytes_per_sec)));
        let more = [
            silence_in_words(self.success_seen, stage.clock.now()),
            bytes,
            self.latency.map(|latency| format!("{} mean", format::duration(latency))),
        ];
        more.into_iter().flatten().fold(text, |text, part| {
            let fits = text.chars().count() + 2 + part.chars().count() <= room;
            if fits { format!("{text}, {part}") } else { text }
        })
    }
}

/// Returns how far a stage is that has ended so many operations.
pub(super) fn progress(stage: &StageView<'_>, ended: u64, elapsed: Duration) -> String {
    match stage.goal {
        // Its bytes end it, and nobody knows after how many operations.
        Goal::Ops(u64::MAX) => format::plural(ended, "operation"),
        Goal::Ops(ops) => format!("{} of {}", format::count(ended), format::count(ops)),
        Goal::Time(time) if elapsed.as_secs() > time.as_secs() => {
            let waited_for = waited_for(&stage.live.parts());
            format!("{0} of {0} s, waiting for {waited_for}", time.as_secs())
        }
        Goal::Time(time) => format!("{} of {} s", elapsed.as_secs(), time.as_secs()),
    }
}

/// Returns what the end of a stage waits for whose time is up: those who are behind the others, or
/// not responding, where others carry it out.
fn waited_for(parts: &[LivePart]) -> String {
    /// So many are named.
    const NAMED_MAX: usize = 3;
    let are_some_done = parts.iter().any(|part| part.state == PartState::Done);
    let is_waited_for = |part: &&LivePart| match part.state {
        PartState::Works => are_some_done,
        PartState::Silent => true,
        PartState::Done | PartState::Lost => false,
    };
    let waited: Vec<&str> = parts.iter().filter(is_waited_for).map(|part| &*part.name).collect();
    let named = waited[..waited.len().min(NAMED_MAX)].join(", ");
    match (waited.len(), waited.len().saturating_sub(NAMED_MAX)) {
        (0, _) => "operations in flight".to_owned(),
        (1, _) => format!("agent {named}"),
        (_, 0) => format!("agents {named}"),
        (_, others) => format!("agents {named} and {}", format::plural(others as u64, "other")),
    }
}

/// The rates of the agents of a fleet.
#[derive(Default)]
struct AgentRates {
    /// By agent: when it was looked at, and what it had counted.
    seen: Vec<(Moment, LiveCounts)>,
    rates: Vec<f64>,
}

impl AgentRates {
    /// So many lines are shown.
    const LINES_MAX: usize = 8;

    /// Reads the counters and returns a line for each agent: those first who need a look.
    fn lines(&mut self, stage: &StageView<'_>) -> Vec<String> {
        let parts = stage.live.parts();
        let now = stage.clock.now();
        self.seen.resize(parts.len(), (now, LiveCounts::default()));
        self.rates.resize(parts.len(), 0.0);
        for (slot, (seen, rate)) in self.seen.iter_mut().zip(&mut self.rates).enumerate() {
            let counts = stage.live.counts_of(slot);
            let span = now.since(seen.0);
            if span >= Meter::SPAN_MIN {
                *rate = counts.ok.saturating_sub(seen.1.ok) as f64 / span.as_secs_f64();
                *seen = (now, counts);
            }
        }
        agent_lines(&parts, Self::LINES_MAX, |slot| {
            (self.rates[slot], stage.live.counts_of(slot).failed)
        })
    }
}

/// Returns a line for each agent, those first who need a look, and one for what is left of more
/// than `lines_max`; `counted` returns an agent's rate and its failures.
fn agent_lines(
    parts: &[LivePart],
    lines_max: usize,
    counted: impl Fn(usize) -> (f64, u64),
) -> Vec<String> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|slot| match parts[*slot].state {
        PartState::Lost => 0,
        PartState::Silent => 1,
        PartState::Works | PartState::Done => 2,
    });
    let shown = if parts.len() > lines_max { lines_max - 1 } else { parts.len() };
    let width = order.iter().take(shown).map(|slot| parts[*slot].name.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |slot: &usize| {
        let LivePart { name, state } = &parts[*slot];
        let (rate, failed) = counted(*slot);
        let failed = match failed {
            0 => String::new(),
            failed => format!(", {} failed", format::count(failed)),
        };
        let state = match state_in_words(*state) {
            Some(words) => format!("{words}{failed}"),
            None => format!("{} ops/s{failed}", format::count(rate.round() as u64)),
        };
        format!("{name:width$}  {state}")
    };
    let mut lines: Vec<String> = order.iter().take(shown).map(line).collect();
    if let Some(more) = parts.len().checked_sub(shown).filter(|more| *more > 0) {
        lines.push(format!("and {}", format::plural(more as u64, "more agent")));
    }
    lines
}

/// Returns how an agent stands in a few words; nothing while it works.
pub(super) fn state_in_words(state: PartState) -> Option<&'static str> {
    match state {
        PartState::Works => None,
        PartState::Done => Some("done"),
        PartState::Silent => Some("not responding"),
        PartState::Lost => Some("LOST"),
    }
}

/// Returns how the agents stand in a few words; nothing where all of them work.
pub(super) fn agents_in_words(parts: &[LivePart]) -> String {
    let of = |state| {
        let names = parts.iter().filter(move |part| part.state == state);
        names.map(|part| &*part.name).collect::<Vec<_>>()
    };
    let named = |names: Vec<&str>, what: &str| match names.len() {
        0 => None,
        1..=3 => Some(format!("{} {what}", names.join(", "))),
        count => Some(format!("{count} {what}")),
    };
    let said = [named(of(PartState::Lost), "lost"), named(of(PartState::Silent), "not responding")];
    let said: Vec<String> = said.into_iter().flatten().collect();
    match (parts.len(), said.is_empty()) {
        (0, _) | (_, true) => String::new(),
        (all, false) => format!("; of {all} agents {}", said.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use plimsoll_conduct::Announced;
    use plimsoll_engine::Live;
    use plimsoll_model::{Clock, SharedClock};

    use super::*;

    /// Shows what it is set to.
    #[derive(Default)]
    struct Set(AtomicU64);

    impl Clock for Set {
        fn now(&self) -> Moment {
            Moment::from_ns(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn no_more_time_is_shown_than_a_stage_has() {
        let set = Arc::new(Set::default());
        let clock: SharedClock = Arc::clone(&set) as SharedClock;
        let live = Arc::new(Live::new(1));
        let goal = Goal::Time(Duration::from_secs(8));
        let stage = StageView {
            name: "main",
            announced: &Announced::doing("main"),
            goal,
            live: &live,
            clock: &clock,
            rates: &[],
            endpoints: &[],
        };
        let mut meter = Meter::new(&stage);
        let mut progress = |seconds: u64| {
            set.0.store(seconds * 1_000_000_000, Ordering::Relaxed);
            let elapsed = meter.tick(&stage);
            let text = meter.text(&stage, elapsed, 200);
            text.split_once(", nothing has ended yet").expect("it says so").0.to_owned()
        };
        assert_eq!(progress(3), "3 of 8 s");
        assert_eq!(progress(8), "8 of 8 s");
        assert_eq!(progress(9), "8 of 8 s, waiting for operations in flight");
        let parts = |states: &[PartState]| {
            let part = |(name, state): (char, &PartState)| LivePart {
                name: name.to_string(),
                state: *state,
            };
            live.show_parts(('a'..).zip(states).map(part).collect());
        };
        use PartState::{Done, Lost, Silent, Works};
        parts(&[Works, Silent, Done]);
        assert_eq!(progress(10), "8 of 8 s, waiting for agents a, b");
        parts(&[Works, Works]);
        assert_eq!(progress(10), "8 of 8 s, waiting for operations in flight");
        parts(&[Lost, Silent, Works]);
        assert_eq!(progress(10), "8 of 8 s, waiting for agent b");
        parts(&[Silent, Silent, Silent, Silent, Silent, Works]);
        assert_eq!(progress(10), "8 of 8 s, waiting for agents a, b, c and 2 others");
        // What does not fit is left out whole.
        (meter.now.ok, meter.now.bytes) = (1, 1);
        assert_eq!(meter.ops_per_sec, Some(0.0));
        (meter.bytes_per_sec, meter.latency) = (0.0, Some(Duration::from_millis(8)));
        meter.success_seen = Some(Moment::from_ns(6_000_000_000));
        let text = |room: usize| meter.text(&stage, Duration::from_secs(5), room);
        let whole = "5 of 8 s, no errors: 0 ops/s, NO SUCCESS FOR 4 s, 0 MiB/s, 8.00 ms mean";
        assert_eq!(text(80), whole);
        assert_eq!(text(70), whole.strip_suffix(", 8.00 ms mean").unwrap());
        assert_eq!(text(30), "5 of 8 s, no errors: 0 ops/s");
        // No rate is known before one has been counted.
        let mut first = Meter::new(&stage);
        first.now.failed = 1;
        assert_eq!(first.text(&stage, Duration::ZERO, 30), "0 of 8 s, 1 ERROR");
    }

    #[test]
    fn the_line_and_those_of_agents_are_drawn_over_those_before() {
        let lines = ["main ━╸─ 5 of 8 s", "  node1  LOST"].map(str::to_owned);
        let first = redrawn(&[], &lines, 40);
        assert_eq!(first, "\rmain ━╸─ 5 of 8 s\x1b[K\r\n  node1  LOST\x1b[J");
        // The cursor stands in the last of two rows.
        assert_eq!(redrawn(&[17, 13], &lines[1..], 18), "\r\x1b[1A  node1  LOST\x1b[J");
        assert_eq!(redrawn(&[17], &[], 18), "\r\x1b[J");
        // A narrower terminal has wrapped both, into three rows and two; a wider one neither.
        assert_eq!(redrawn(&[17, 13], &[], 8), "\r\x1b[4A\x1b[J");
        assert_eq!(redrawn(&[17, 13], &[], 7), "\r\x1b[4A\x1b[J");
        assert_eq!(redrawn(&[17, 13], &[], 13), "\r\x1b[2A\x1b[J");
        assert_eq!(redrawn(&[17, 0], &[], 200), "\r\x1b[1A\x1b[J");
        let bars = ["─".repeat(16), format!("{}╸{}", "━".repeat(8), "─".repeat(7)), "━".repeat(16)];
        assert_eq!([0.0, 0.5, 1.0].map(bar), bars);
    }

    #[test]
    fn agents_that_need_a_look_stand_first() {
        use PartState::{Done, Lost, Silent, Works};
        let parts = |states: &[PartState]| -> Vec<LivePart> {
            let part = |(number, state): (usize, &PartState)| LivePart {
                name: format!("node{number}"),
                state: *state,
            };
            states.iter().enumerate().map(part).collect()
        };
        let counted = |slot: usize| (1_000.4 * slot as f64, slot as u64 / 3);
        let few = parts(&[Works, Done, Silent, Lost]);
        let lines = agent_lines(&few, 8, counted);
        let expected =
            ["node3  LOST, 1 failed", "node2  not responding", "node0  0 ops/s", "node1  done"];
        assert_eq!(lines, expected);
        assert_eq!(agents_in_words(&few), "; of 4 agents node3 lost, node2 not responding");
        let many = agent_lines(&parts(&[Works; 12]), 3, counted);
        assert_eq!(many, ["node0  0 ops/s", "node1  1,000 ops/s", "and 10 more agents"]);
        assert_eq!(agents_in_words(&parts(&[Works; 12])), "");
        assert_eq!(agents_in_words(&parts(&[Silent; 5])), "; of 5 agents 5 not responding");
        assert!(agent_lines(&[], 8, counted).is_empty());
    }
}
