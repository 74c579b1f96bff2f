//! Another program measures the store that stalls; what it says stands beside what we say, and
//! both beside the truth.

use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;

use plimsoll_analysis::warp::{WarpQuestion, WarpSizes};
use plimsoll_conduct::output::temporary_directory;
use plimsoll_engine::RunClock;
use plimsoll_model::{Clock, OpKind};
use plimsoll_report::proof::Check;
use plimsoll_results::WarpFile;

use crate::error::{Context, ProofError, Result};
use crate::loopback::{self, Noise, STALL_PERIOD_S, STALLED};
use crate::{CLOSED, Load, NamedProof, Prover, grouped, quantiles, stall, times};
use plimsoll_conduct::ConductError;
use plimsoll_conduct::embedded::KEY;

/// The proof, which is made only by name.
pub const PROOF: NamedProof = NamedProof {
    name: "rivals",
    about: "our open loop beside another program",
    claim: CLAIM,
    make: checks,
};

const CLAIM: &str = "\
    of a store that serves in 2 ms and freezes for 1 s in every 5 s the open loop shows what \
    users see who do not wait for each other, within 10 % and 1 ms; beside it stands what \
    another program says of the same store";

/// How many periods of the store are measured.
const PERIODS: u64 = 4;
const WORKERS: u64 = 16;
const OBJECTS: u64 = 64;
/// A fifth of the arrivals find the store frozen and wait for an even share of 1 s, so the part p
/// of all waits longer than 1 s · (1 − p / 0.2), and then 2 ms.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 100.0];
const TRUTH: [u64; 4] = [2 * MS, 502 * MS, 952 * MS, 1_002 * MS];
const MS: u64 = 1_000_000;
/// Each of 16 workers has a request of 2 ms after the other, in four fifths of the time.
const CLOSED_RATE: u64 = WORKERS * 500 * 4 / 5;
/// What of the user's environment would have it measure something else, or tell others.
const FOREIGN_VARIABLES: [&str; 5] =
    ["WARP_TLS", "WARP_KTLS", "WARP_SESSION_TOKEN", "WARP_REGION", "WARP_INFLUXDB_CONNECT"];
/// How long the other program may take beside measuring.
const BESIDE_MAX: Duration = Duration::from_secs(60);
/// How much of its output is told when it fails.
const OUTPUT_TOLD_MAX: usize = 300;

/// The other program.
#[derive(Clone, Debug)]
pub struct Rival {
    program: PathBuf,
}

/// What it says.
struct RivalFigures {
    times: [u64; 4],
    ops_per_sec: f64,
}

impl FromStr for Rival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').unwrap_or((text, "warp"));
        match (name, path) {
            ("warp", "") => Err("the path after `warp=` is empty".to_owned()),
            ("warp", path) => Ok(Self { program: PathBuf::from(path) }),
            _ => Err(format!("`{name}` is not known here; there is `warp`")),
        }
    }
}

fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let rival = prover.rival.as_ref().context("nothing is named to measure against")?;
    let version = rival.version()?;
    let mut noise = Noise::of_machine(prover)?;
    let theirs = rival.measure(prover)?;
    noise.note_machine(prover)?;
    let (opened, closed) = loopback::stalled_loops(prover, PERIODS, PERIODS)?;
    noise.note(&opened);
    let ours = opened.percentiles(OpKind::Get, PERCENTS)?;
    let timings =
        vec![loopback::near("open loop, 200/s: p50, p90, p99, max".to_owned(), &TRUTH, &ours)];
    let our_closed = closed.percentiles(OpKind::Get, PERCENTS)?;
    let counts = vec![
        told(format!("{version} says, {WORKERS} workers: p50, p90, p99, max"), &theirs.times),
        told(format!("our closed loop, {WORKERS} workers: the same"), &our_closed),
        Check {
            what: "closed loops: requests a second (not judged)".to_owned(),
            truth: format!("at most {}", grouped(CLOSED_RATE)),
            measured: format!(
                "warp says {}, we say {}",
                grouped(theirs.ops_per_sec.round() as u64),
                grouped(closed.row().analysis.total.stage.ops_ok / (PERIODS * STALL_PERIOD_S))
            ),
            holds: true,
        },
        quantiles::counted("open loop", &opened)?,
        quantiles::counted("closed loop", &closed)?,
        stall::labelled("open loop", &opened),
        stall::labelled("closed loop", &closed),
    ];
    loopback::judged(counts, timings, &noise)
}

/// Returns what somebody says of the times, for the reader to judge.
fn told(what: String, said: &[u64]) -> Check {
    let (truth, measured) = (times(&TRUTH), times(said));
    Check { what: format!("{what} (not judged)"), truth, measured, holds: true }
}

impl Rival {
    /// Returns what it calls itself; without it there is nothing to prove.
    fn version(&self) -> Result<String> {
        let skipped = |reason| Err(ProofError::Skipped { reason, checks: Vec::new() });
        let program = self.program.display();
        let output =
            match Command::new(&self.program).arg("--version").stdin(Stdio::null()).output() {
                Ok(output) => output,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let reason = format!("no `{program}` is found; --against warp=PATH names one");
                    return skipped(reason);
                }
                Err(error) => {
                    return skipped(format!("cannot run `{program}`: {error}"));
                }
            };
        let said = String::from_utf8_lossy(&output.stdout);
        match said.trim().strip_prefix("warp version ") {
            Some(version) => Ok(format!("warp {}", version.lines().next().unwrap_or_default())),
            None => skipped(format!("`{program}` is not the benchmark warp")),
        }
    }

    /// Has it measure the store that stalls.
    fn measure(&self, prover: &Prover) -> Result<RivalFigures> {
        let seconds = PERIODS * STALL_PERIOD_S;
        let load = Load {
            operations: "{get: o}",
            pacing: CLOSED.to_owned(),
            lasts: Duration::from_secs(seconds),
            workers: WORKERS as u32,
            objects: OBJECTS,
            size: 1_024,
        };
        let oracle = prover.serve(&load.file(prover.seed), STALLED)?;
        let place = temporary_directory()?;
        let output = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(place.path())
            .args(["get", "--no-color", "--full", "--noclear", "--lookup", "path"])
            .args(["--host", &oracle.addr().to_string(), "--bucket", loopback::BUCKET])
            .args(["--objects", &OBJECTS.to_string(), "--obj.size", "1KiB"])
            .args(["--concurrent", &WORKERS.to_string(), "--duration", &format!("{seconds}s")])
            .args(["--benchdata", "told"])
            .env("WARP_ACCESS_KEY", KEY)
            .env("WARP_SECRET_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("cannot keep what it prints")?)
            .stderr(output.try_clone().context("cannot keep what it prints")?);
        for name in FOREIGN_VARIABLES {
            command.env_remove(name);
        }
        let child = command.spawn().context("cannot start the other program")?;
        let within = Duration::from_secs(seconds) + BESIDE_MAX;
        let ended = Running(child).wait(prover, within)?;
        if !ended.success() {
            let words = last_words(output)?;
            return Err(ProofError::Missing(format!(
                "the other program ended with {ended}: {words}"
            )));
        }
        read(&place.path().join("told.csv.zst"))
    }
}

/// Returns the end of what it printed, in one line.
fn last_words(mut output: std::fs::File) -> Result<String> {
    let mut text = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut text)).context("what it printed")?;
    let text = String::from_utf8_lossy(&text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = words.char_indices().rev().take(OUTPUT_TOLD_MAX).last().map_or(0, |(at, _)| at);
    Ok(words[from..].to_owned())
}

/// Reads its raw file by its own method.
fn read(path: &Path) -> Result<RivalFigures> {
    let file = WarpFile::at(path)?;
    let question = WarpQuestion { op: Some(OpKind::Get), verbose: true, ..WarpQuestion::default() };
    let analysis = file.analyze(&question).context("the other program's record")?;
    let figures = analysis.kinds.first().and_then(|kind| kind.figures.as_ref());
    let figures = figures.context("the other program recorded too few requests")?;
    let times = match figures.requests.as_ref().map(|requests| &requests.sizes) {
        Some(WarpSizes::Single(single)) => single.times.as_ref(),
        _ => None,
    };
    let times = &times.context("the other program recorded no times")?.durations;
    Ok(RivalFigures {
        times: PERCENTS.map(|percent| times.percentile(percent as usize).as_nanos() as u64),
        ops_per_sec: figures.throughput.objects_per_second().context("it recorded no span")?,
    })
}

/// A program under way; it is ended when this is dropped.
struct Running(Child);

impl Running {
    /// Waits for its end, as long as the user does.
    fn wait(mut self, prover: &Prover, within: Duration) -> Result<ExitStatus> {
        let clock = RunClock::start();
        let started = clock.now();
        loop {
            if let Some(ended) = self.0.try_wait().context("cannot wait for the other program")? {
                return Ok(ended);
            }
            if prover.stop.flag().is_set() {
                return Err(ConductError::Stopped.into());
            }
            if clock.now().since(started) > within {
                let seconds = within.as_secs();
                let late = format!("the other program was not done after {seconds} s");
                return Err(ProofError::Missing(late));
            }
            prover.stop.rest(within);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be ended again, which is as good.
        let _: io::Result<()> = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_is_named_with_or_without_its_place() {
        let program = |text: &str| text.parse().map(|rival: Rival| rival.program);
        assert_eq!(program("warp"), Ok(PathBuf::from("warp")));
        assert_eq!(program("warp=bin/w=1"), Ok(PathBuf::from("bin/w=1")));
        assert!(program("warp=").unwrap_err().contains("empty"));
        assert!(program("fio=bin/fio").unwrap_err().contains("`fio`"));
    }
}
