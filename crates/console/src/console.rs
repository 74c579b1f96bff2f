//! The console itself: takes workloads in, has them run in their turn, and knows how each stands.

mod running;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_conduct::{NamedHosts, Stop};
use plimsoll_model::{Moment, Secret};
use plimsoll_record::{StateDirectory, StateDirectoryError, removal};
use thiserror::Error;

use crate::archive;
use crate::clock::Clock;
use crate::disk;
use crate::facts::Facts;
use crate::live::Watch;
use crate::redact::{self, Redacted};
use crate::runner::{Agent, AgentState, Problem, Refusal, Runner, Severity, Sound, Submission};
use crate::state::{Number, SourceKind, State};
use crate::store::{Accepted, Entry, Move, Store, StoreError};
use crate::triggers::Triggers;

/// What is longer than this is no name.
const NAME_BYTES_MAX: usize = 500;
/// Agents are asked for no more often than this.
const AGENTS_EVERY: Duration = Duration::from_secs(2);
/// What a run is said to have ended by that was under way when the console was killed.
const KILLED: &str =
    "the console was killed while this ran; its record has what was saved until then";

/// What the console was told when it was started.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What it is called.
    pub name: String,
    /// Where it is said to be.
    pub url: Option<String>,
    /// Where it keeps its own files.
    pub directory: PathBuf,
    /// Where COSBench's archives go.
    pub archive: PathBuf,
    /// How many workloads run at a time.
    pub concurrency: u32,
    /// Whether secrets of workloads are kept after they have run, for repeating them.
    pub keep_secrets: bool,
    /// Names of buckets, with `*` and `?`, that may be changed although no run made them.
    pub touch: Vec<String>,
    /// Secrets for repeating workloads.
    pub secrets: Vec<BoundSecrets>,
    /// Agents that are expected: their names and where they are said to be.
    pub drivers: Vec<(String, String)>,
    /// Where scripts lie that workloads may name.
    pub triggers: Option<PathBuf>,
}

/// Secrets and the only hosts that may be sent them.
#[derive(Clone, Debug, Default)]
pub struct BoundSecrets {
    /// The hosts.
    pub hosts: NamedHosts,
    /// The secrets, by the key under which workloads name them.
    pub by_key: BTreeMap<String, Secret>,
}

/// Why the console cannot begin, or cannot do what it is asked for.
#[derive(Debug, Error)]
pub enum ConsoleError {
    /// Its directory is not taken.
    #[error(transparent)]
    State(#[from] StateDirectoryError),
    /// A directory cannot be made or held.
    #[error("cannot use {} (`directory`)", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// Another console works there.
    #[error("another console uses {}: stop it, or name another directory", .0.display())]
    Taken(PathBuf),
    /// The database failed, or has no such workload.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workload cannot be run.
    #[error("{}", first_error(.0))]
    Refused(Vec<Problem>),
    /// It cannot be repeated.
    #[error(
        "{0} cannot be repeated, as its secrets were not kept and [secrets] of console.toml has \
         none for its hosts: submit it again, or start the console with --keep-secrets"
    )]
    NoSecrets(Number),
    /// It has secrets of somebody else's.
    #[error("{0} has secrets of {1}, who alone may repeat it")]
    OfAnother(Number, String),
    /// It cannot be kept.
    #[error("the workload cannot be kept, so it was not accepted")]
    Keep(#[source] io::Error),
}

fn first_error(problems: &[Problem]) -> &str {
    let error = problems.iter().find(|problem| problem.severity == Severity::Error);
    error.map_or("the workload cannot be run", |problem| &problem.message)
}

/// A workload that somebody submits.
#[derive(Clone, Copy, Debug)]
pub struct Submitted<'a> {
    /// The text.
    pub text: &'a str,
    /// What the file is called that it came in.
    pub file_name: Option<&'a str>,
    /// Instead of the workload's own name.
    pub name: Option<&'a str>,
    /// Who submits it.
    pub user: &'a str,
    /// Whether it goes before all that wait.
    pub first: bool,
    /// Which one it repeats.
    pub resubmitted_from: Option<Number>,
}

/// A workload that runs.
#[derive(Clone)]
pub(crate) struct Running {
    /// What is known of it at this moment.
    pub watch: Arc<Watch>,
    stop: Stop,
}

/// The queue, what runs, and what has run.
pub struct Console {
    settings: Settings,
    store: Arc<Store>,
    runner: Arc<dyn Runner>,
    clock: Clock,
    triggers: Option<Triggers>,
    running: Mutex<BTreeMap<Number, Running>>,
    cancelled: Mutex<Vec<Number>>,
    idle: Condvar,
    is_closing: Mutex<bool>,
    agents: Mutex<Option<(Moment, Vec<Agent>)>>,
    /// Ends of runs that the database has not taken yet, such as on a full disk.
    unsettled: Mutex<Vec<running::Settled>>,
    /// Whether a thread will offer them again and look for what waits.
    pumps_again: AtomicBool,
    /// What keeps other consoles out.
    held: Mutex<Vec<File>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the database is asked again that has not taken something.
const PUMP_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What the owner writes into the console's directory before it begins.
pub const CONFIG_FILE: &str = "console.toml";

impl Console {
    /// Opens the console's directory, ends what was under way when it was killed, and begins to run
    /// what waits.
    pub fn open(settings: Settings, runner: Arc<dyn Runner>) -> Result<Arc<Self>, ConsoleError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| ConsoleError::Directory(path, error)
        };
        let directory = settings.directory.clone();
        StateDirectory::open(&directory, "console", &[CONFIG_FILE])?;
        for part in [&directory.join("sealed"), &directory.join("series")] {
            disk::make_private(part).map_err(failed(part))?;
        }
        let runs = directory.join("runs");
        for part in [&runs, &settings.archive] {
            disk::make(part).map_err(failed(part))?;
        }
        let mut held = Vec::new();
        for path in [&directory, &settings.archive] {
            disk::check_writable(path).map_err(failed(path))?;
            let taken = || ConsoleError::Taken(path.clone());
            held.push(disk::hold(path).map_err(failed(path))?.ok_or_else(taken)?);
        }
        let store = Arc::new(Store::open(&directory.join("console.sqlite"))?);
        // COSBench may have archived its own workloads there, whose directories stay as they are.
        store.count_from(archive::last_number(&settings.archive))?;
        let clock = Clock::start();
        let triggers = settings.triggers.as_deref().map(Triggers::of);
        let console = Arc::new(Self {
            settings,
            store,
            runner,
            clock,
            triggers,
            running: Mutex::default(),
            cancelled: Mutex::default(),
            idle: Condvar::new(),
            is_closing: Mutex::new(false),
            agents: Mutex::default(),
            unsettled: Mutex::default(),
            pumps_again: AtomicBool::default(),
            held: Mutex::new(held),
        });
        console.recover()?;
        console.pump();
        Ok(console)
    }

    /// Ends what was under way when the console was killed.
    fn recover(&self) -> Result<(), ConsoleError> {
        let now = self.clock.now_ms();
        for number in self.store.terminate_orphans(KILLED, now)? {
            running::settle_orphan(self, number);
        }
        Ok(())
    }

    /// Returns what it was told when it was started.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what is kept.
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the time of day, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Returns a moment that is never taken back.
    pub(crate) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// Tells whether a fleet carries workloads out.
    pub fn has_fleet(&self) -> bool {
        self.runner.has_fleet()
    }

    /// Returns a workload that runs.
    pub(crate) fn running(&self, number: Number) -> Option<Running> {
        lock(&self.running).get(&number).cloned()
    }

    /// Judges a workload.
    pub fn check(
        &self,
        text: &str,
        file_name: Option<&str>,
        name: Option<&str>,
    ) -> Result<Sound, Refusal> {
        self.judge(&Submission { text, file_name, name, touch: &self.settings.touch, asks: false })
    }

    fn judge(&self, submission: &Submission<'_>) -> Result<Sound, Refusal> {
        let sound = self.runner.check(submission)?;
        let mut problems = Vec::new();
        if sound.name.len() > NAME_BYTES_MAX {
            let text = format!("the name has more than {NAME_BYTES_MAX} bytes");
            problems.push(Problem::error(text));
        }
        for trigger in &sound.facts.triggers {
            let judged = match &self.triggers {
                Some(triggers) => triggers.check(&trigger.call),
                None => Err(format!(
                    "trigger `{}` would run a script, which the console does not allow: start it \
                     with --triggers DIR",
                    trigger.call
                )),
            };
            problems.extend(judged.err().map(Problem::error));
        }
        match problems.is_empty() {
            true => Ok(sound),
            false => Err(Refusal { kind: sound.kind, problems }),
        }
    }

    /// Takes a workload in, which is kept when this returns; also returns what its author should
    /// know.
    pub fn submit(
        self: &Arc<Self>,
        submitted: &Submitted<'_>,
    ) -> Result<(Number, Vec<Problem>), ConsoleError> {
        // As with COSBench, who is refused has used a number up.
        let number = self.store.next_number()?;
        let Submitted { text, file_name, name, .. } = *submitted;
        let submission =
            Submission { text, file_name, name, touch: &self.settings.touch, asks: true };
        let sound = self.judge(&submission);
        let sound = sound.map_err(|refusal| ConsoleError::Refused(refusal.problems))?;
        let Redacted { text, had_secrets } = redact::redact(sound.kind, submitted.text);
        let public = |text: &String| redact::redact(SourceKind::Cosbench, text).text;
        let description = sound.facts.description.as_ref().map(public);
        let facts = Facts { description, ..sound.facts };
        let explained = redact::redact(SourceKind::Plimsoll, &sound.explained).text;
        let sealed = self.sealed(number);
        disk::write_private(&sealed, submitted.text.as_bytes()).map_err(ConsoleError::Keep)?;
        let accepted = Accepted {
            name: &sound.name,
            kind: sound.kind,
            text: &text,
            file_name: submitted.file_name,
            explained: &explained,
            facts: &facts,
            user: submitted.user,
            resubmitted_from: submitted.resubmitted_from,
            has_secrets: had_secrets,
        };
        if let Err(error) = self.store.accept(number, &accepted, self.now_ms()) {
            let _ = removal::file(&sealed);
            return Err(error.into());
        }
        if submitted.first {
            self.to_front(number)?;
        }
        self.pump();
        Ok((number, sound.problems))
    }

    /// Moves a workload before all that wait.
    fn to_front(&self, number: Number) -> Result<(), ConsoleError> {
        let active = self.store.active()?;
        let first = active.iter().find(|entry| entry.state == State::Queued);
        match first {
            Some(first) => Ok(self.store.reorder(number, Move::Before(first.number))?),
            None => Ok(()),
        }
    }

    /// Submits a workload again. Its sealed text is only for the user who submitted it.
    pub fn resubmit(self: &Arc<Self>, number: Number, user: &str) -> Result<Number, ConsoleError> {
        let entry = self.store.entry(number)?;
        let source = self.store.source(number)?;
        let is_owner = entry.user == user;
        let kept = is_owner.then(|| disk::read_text(&self.sealed(number)).ok()).flatten();
        let text = match kept {
            Some(text) => text,
            None if !entry.has_secrets => source.text,
            None => self.filled_in(entry.kind, &source.text).ok_or_else(|| match is_owner {
                true => ConsoleError::NoSecrets(number),
                false => ConsoleError::OfAnother(number, entry.user.clone()),
            })?,
        };
        let submitted = Submitted {
            text: &text,
            file_name: source.file_name.as_deref(),
            name: Some(&entry.name),
            user,
            first: false,
            resubmitted_from: Some(number),
        };
        self.submit(&submitted).map(|(number, _)| number)
    }

    /// Fills secrets of `console.toml` into a redacted text. Every host of the text must be bound
    /// to them, and they may only become credentials: as a part of an object's name, say, whoever
    /// wrote the text could read them.
    fn filled_in(&self, kind: SourceKind, text: &str) -> Option<String> {
        let without = self.check(text, None, None).ok()?;
        let hosts = without.hosts.as_ref()?;
        let fitting = self.settings.secrets.iter().filter(|of| of.hosts.have_all(hosts));
        let known = |key: &str| {
            let known = fitting.clone().find_map(|of| of.by_key.get(key));
            known.map(|secret| secret.expose().to_owned())
        };
        let filled = redact::restore(kind, text, &known)?;
        let with = self.check(&filled, None, None).ok()?;
        let is_same = (&without.explained, &without.facts, &without.hosts)
            == (&with.explained, &with.facts, &with.hosts);
        is_same.then_some(filled)
    }

    /// Cancels a workload that waits or runs.
    pub(crate) fn cancel(&self, number: Number) -> Result<Entry, ConsoleError> {
        if self.store.cancel_queued(number, self.now_ms())? {
            self.forget_secrets(number);
            return Ok(self.store.entry(number)?);
        }
        let entry = self.store.entry(number)?;
        let running = lock(&self.running).get(&number).cloned();
        match running {
            Some(running) if entry.state == State::Running => {
                lock(&self.cancelled).push(number);
                running.watch.remark("info", "cancelled");
                running.stop.request();
                Ok(entry)
            }
            _ => Err(StoreError::State { number, state: entry.state }.into()),
        }
    }

    /// Moves a workload that waits.
    pub(crate) fn reorder(&self, number: Number, to: Move) -> Result<(), ConsoleError> {
        Ok(self.store.reorder(number, to)?)
    }

    /// Returns who carries workloads out; those that are expected and not there are away.
    pub fn agents(&self) -> Vec<Agent> {
        let mut kept = lock(&self.agents);
        let now = self.moment();
        if kept.as_ref().is_none_or(|(at, _)| now.since(*at) >= AGENTS_EVERY) {
            let mut agents = self.runner.agents();
            // Without a fleet this process does what runs.
            if let (false, [own, ..]) = (self.has_fleet(), &mut *agents) {
                let runs = lock(&self.running).keys().next().copied();
                own.state = if runs.is_some() { AgentState::Busy } else { AgentState::Ready };
                own.run = runs.map(|number| number.to_string());
            }
            for (name, url) in &self.settings.drivers {
                match agents.iter_mut().find(|agent| agent.name == *name) {
                    Some(agent) => {
                        agent.address.get_or_insert_with(|| url.clone());
                    }
                    None => agents.push(away(name, url)),
                }
            }
            *kept = Some((self.moment(), agents));
        }
        kept.as_ref().map(|(_, agents)| agents.clone()).unwrap_or_default()
    }

    /// Runs nothing more; asks what runs to end, waits until it has, and leaves the directories to
    /// whoever opens them next. Returns how many ran.
    pub fn close(&self) -> usize {
        *lock(&self.is_closing) = true;
        let mut running = lock(&self.running);
        let ended_count = running.len();
        running.values().for_each(|running| {
            running.watch.remark("warning", "the console is being ended");
            running.stop.request();
        });
        while !running.is_empty() {
            running = self.idle.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        // Not left to the end of the last thread, which nobody waits for.
        lock(&self.held).clear();
        ended_count
    }

    /// Waits until a workload does not run any more, or for so long.
    pub fn wait_until_over(&self, number: Number, time_max: Duration) {
        let running = lock(&self.running);
        let runs = |running: &mut BTreeMap<Number, Running>| running.contains_key(&number);
        drop(self.idle.wait_timeout_while(running, time_max, runs));
    }

    /// Returns where the runnable text of a workload lies until it has run.
    fn sealed(&self, number: Number) -> PathBuf {
        self.settings.directory.join("sealed").join(number.to_string())
    }

    /// Returns where the seconds of a workload lie.
    pub(crate) fn series(&self, number: Number) -> PathBuf {
        self.settings.directory.join("series").join(format!("{number}.jsonl"))
    }

    /// Removes the runnable text of a workload, unless it is to be kept.
    fn forget_secrets(&self, number: Number) {
        if !self.settings.keep_secrets {
            // What cannot be removed is only read by the owner.
            let _ = removal::file(&self.sealed(number));
        }
    }

    /// Begins to run what waits, as far as it may.
    fn pump(self: &Arc<Self>) {
        let is_settled = running::settle(self);
        let is_read = loop {
            match self.next_turn() {
                Ok(Some(turn)) => running::launch(self, turn),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if !is_settled || !is_read {
            self.pump_again();
        }
    }

    /// Tries again after a while what the database did not take, such as on a full disk: nobody may
    /// submit anything until then.
    fn pump_again(self: &Arc<Self>) {
        if self.pumps_again.swap(true, Ordering::SeqCst) {
            return;
        }
        let console = Arc::downgrade(self);
        let thread = thread::Builder::new().name("queue".to_owned());
        let spawned = thread.spawn(move || {
            thread::park_timeout(PUMP_AGAIN_AFTER);
            if let Some(console) = console.upgrade() {
                console.pumps_again.store(false, Ordering::SeqCst);
                console.pump();
            }
        });
        if spawned.is_err() {
            self.pumps_again.store(false, Ordering::SeqCst);
        }
    }

    /// Takes the next workload whose turn it is, unless the console is being closed.
    fn next_turn(self: &Arc<Self>) -> Result<Option<running::Turn>, StoreError> {
        // Held until the workload stands among those that run, which is where `close` looks.
        let is_closing = lock(&self.is_closing);
        if *is_closing {
            return Ok(None);
        }
        let running_max = i64::from(self.settings.concurrency.max(1));
        let entry = self.store.take_next(running_max, self.now_ms())?;
        Ok(entry.map(|entry| running::enter(self, entry)))
    }
}

fn away(name: &str, url: &str) -> Agent {
    Agent {
        name: name.to_owned(),
        address: Some(url.to_owned()),
        state: AgentState::Away,
        clock_offset_ms: None,
        cpu_percent: None,
        cores_count: None,
        version: None,
        seen_at_ms: None,
        run: None,
    }
}
