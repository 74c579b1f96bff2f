//! Marks beside what a run writes into a bucket, which say that it is under way: `clean` from any
//! machine leaves its objects alone while one holds.
//!
//! A mark is an empty object `<prefix>/plimsoll/<run>.live/<until>.<process>`. It is renewed long
//! before it ends; one that a killed run left behind ends by itself. Its age is the store's `Date`
//! less its `Last-Modified`, so that neither the clock of the run nor that of the cleaner counts:
//! one of them that is a minute off would end the lease of a run that lives. `Date` may be that of
//! a gateway whose clock is not the store's: an object written now tells by how much. On the
//! machine that the run is on, its process is asked for instead, so that nobody has to wait. A run
//! that agents carry out names no process: they work on for some seconds after their coordinator
//! was killed.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_driver::{Admin, DriverError};
use plimsoll_model::WallTime;
use tokio::sync::Notify;

use crate::{AdminOf, ConductError, Observer, RunTime, process};

/// How long a mark holds.
const HOLDS: Duration = Duration::from_secs(60);
/// How often it is renewed. A store under load may take its time.
const RENEWED: Duration = Duration::from_secs(15);
/// What ends the name of a run whose marks lie below it.
const LIVE: &str = ".live/";
const UNTIL: &str = "%Y%m%dt%H%M%Sz";

/// Who carries a run out, and so whose end is its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// This process.
    Process,
    /// The agents of a fleet.
    Agents,
}

impl Runner {
    /// Returns the end of a mark's name; none of agents is the name of a process.
    fn name(self) -> String {
        match self {
            Self::Process => process::identity(),
            Self::Agents => "agents".to_owned(),
        }
    }
}

/// Returns what the marks of the run whose objects lie below `base` begin with.
pub fn marks_of(base: &str) -> String {
    format!("{}{LIVE}", base.trim_end_matches('/'))
}

/// Returns the run that a key below the home of all runs is a mark of, and what the mark says.
pub fn read(below_home: &str) -> Option<(&str, &str)> {
    below_home.split_once(LIVE)
}

/// Returns what the objects of the run lie below that wrote a key, as far as its name tells.
pub fn run_of(key: &str) -> Option<&str> {
    const HOME: &str = "plimsoll/";
    let home = key.match_indices(HOME).find(|(at, _)| *at == 0 || key[..*at].ends_with('/'))?.0;
    let end = home + HOME.len() + key[home + HOME.len()..].find('/')?;
    Some(&key[..end])
}

/// Tells whether the mark under that key holds; one that no run wrote does not.
pub async fn holds(admin: &mut dyn Admin, key: &str) -> Result<bool, DriverError> {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let Some((until, process)) = name.split_once('.') else { return Ok(false) };
    let Ok(until) = DateTime::strptime(UNTIL, until) else { return Ok(false) };
    // A run that was stopped, or whose store does not answer, renews nothing and yet lives.
    if let Some(lives) = process::is_alive(process) {
        return Ok(lives);
    }
    // One that is not there any more was renewed just now.
    let Some(dates) = admin.dates_of(key).await? else { return Ok(true) };
    // A store that states no times ends none.
    let Some(now) = http_time(&dates.now) else { return Ok(true) };
    let Some(modified) = http_time(&dates.modified) else {
        // The store keeps it to itself, so that the clock of the run has to do.
        return Ok(now <= until);
    };
    let holds = |now: DateTime| now < modified.saturating_add(HOLDS);
    Ok(holds(now) || holds(now.saturating_sub(ahead(admin, key).await)))
}

/// Returns by how much the clock that a store states is ahead of the one that it stamps objects by,
/// as an object tells that is written now beside a mark.
/// Where nothing may be written, nothing is removed either, and it is taken at its word.
async fn ahead(admin: &mut dyn Admin, mark: &str) -> SignedDuration {
    let (until, _) = mark.rsplit_once('.').unwrap_or((mark, ""));
    let own = format!("{until}.{}", process::identity());
    if admin.put_mark(&own).await.is_err() {
        return SignedDuration::ZERO;
    }
    let dates = admin.dates_of(&own).await.ok().flatten();
    // What cannot be removed ends by itself.
    let _ = admin.remove_mark(&own).await;
    let known = dates.and_then(|of| Some((http_time(&of.now)?, http_time(&of.modified)?)));
    known.map_or(SignedDuration::ZERO, |(now, modified)| now.duration_since(modified))
}

/// Returns the time that a header states, in UTC.
pub(crate) fn http_time(text: &str) -> Option<DateTime> {
    DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", text).ok()
}

/// Tells whether a mark holds of the run whose objects lie below `base`.
pub async fn is_marked(admin: &mut dyn Admin, base: &str) -> Result<bool, DriverError> {
    let marks = marks_of(base);
    for mark in admin.survey(&marks, None, true).await? {
        if mark.key.starts_with(&*marks) && holds(admin, &mark.key).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what a run wrote below `base` and then its marks, and returns how many objects there
/// were. A lease of that run is held until they are gone.
pub async fn sweep_run(
    admin: &mut dyn Admin,
    base: &str,
    lease: Option<BucketLease>,
) -> Result<u64, DriverError> {
    let removed_count = admin.sweep(base).await?;
    drop(lease);
    admin.sweep(&marks_of(base)).await.map(|_| removed_count)
}

/// A bucket in which a run is marked.
pub struct Marked {
    /// Who administers the target.
    pub admin: AdminOf,
    /// The bucket; `None`: the target's own.
    pub bucket: Option<String>,
    /// What its marks there begin with, and those that are there.
    pub marks: Vec<(String, Option<String>)>,
}

/// Renews a run's marks until it is dropped. The marks stay; whoever cleans up removes them.
pub struct BucketLease {
    ended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl BucketLease {
    /// Begins to mark the run as under way. A store that refuses the mark is measured without one,
    /// with a warning.
    pub fn hold(
        buckets: Vec<Marked>,
        runner: Runner,
        time: &RunTime,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ConductError> {
        let ended = Arc::new(Notify::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConductError::event_loop)?;
        let time = time.clone();
        let heard = Arc::clone(&ended);
        let body = move || {
            let keepers = buckets.iter().filter_map(|bucket| {
                let admin = (bucket.admin)(bucket.bucket.as_deref(), &time.clock).ok()?;
                let (time, observer) = (time.clone(), Arc::clone(&observer));
                Some(Keeper { admin, marks: bucket.marks.clone(), runner, time, observer })
            });
            let keepers: Vec<Keeper> = keepers.collect();
            runtime.block_on(async {
                tokio::select! {
                    () = keep(keepers) => {}
                    () = heard.notified() => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(body);
        let what = "the thread that marks the run as going on";
        let thread = thread.map_err(|source| ConductError::Start { what, source })?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for BucketLease {
    fn drop(&mut self) {
        self.ended.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Keeper {
    admin: Box<dyn Admin>,
    /// What each mark begins with, and the one that is there.
    marks: Vec<(String, Option<String>)>,
    runner: Runner,
    time: RunTime,
    observer: Arc<dyn Observer>,
}

/// Renews all marks round after round, for as long as there are any.
async fn keep(mut keepers: Vec<Keeper>) {
    let mut rounds = tokio::time::interval(RENEWED);
    if keepers.iter().all(|keeper| keeper.marks.iter().all(|(_, mark)| mark.is_some())) {
        rounds.tick().await;
    }
    while !keepers.is_empty() {
        rounds.tick().await;
        let mut kept = Vec::with_capacity(keepers.len());
        for mut keeper in keepers {
            if keeper.renew().await {
                kept.push(keeper);
            }
        }
        keepers = kept;
    }
}

impl Keeper {
    /// Renews its marks; tells whether they are to be renewed again.
    async fn renew(&mut self) -> bool {
        for (prefix, before) in &mut self.marks {
            let key = mark_now(prefix, self.runner, &self.time);
            match self.admin.put_mark(&key).await {
                Ok(()) => {
                    // What cannot be removed ends by itself.
                    if let Some(before) = before.replace(key) {
                        let _ = self.admin.remove_mark(&before).await;
                    }
                }
                Err(error) if before.is_none() => {
                    self.observer.note(&format!(
                        "the run cannot be marked as going on ({error}); until it ends, do not \
                         clean the bucket from another machine"
                    ));
                    return false;
                }
                // A store that is away for a while is what is measured; the next round tries again.
                Err(_) => {}
            }
        }
        true
    }
}

/// Writes the marks of a run that begins, and returns what each begins with and the mark itself.
pub(crate) async fn first_marks(
    admin: &mut dyn Admin,
    bases: &[String],
    runner: Runner,
    time: &RunTime,
) -> Result<Vec<(String, Option<String>)>, DriverError> {
    let mut marks = Vec::new();
    for base in bases {
        let prefix = marks_of(base);
        let mark = mark_now(&prefix, runner, time);
        admin.put_mark(&mark).await?;
        marks.push((prefix, Some(mark)));
    }
    Ok(marks)
}

/// Returns the key of a mark that is written now.
fn mark_now(prefix: &str, runner: Runner, time: &RunTime) -> String {
    let since = Duration::from_nanos(time.clock.now().as_ns());
    let until = time.wall_epoch.after(since + HOLDS);
    format!("{prefix}{}.{}", compact(until), runner.name())
}

fn compact(at: WallTime) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).unwrap_or_default();
    at.to_zoned_datetime(TimeZone::UTC).strftime(UNTIL).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use plimsoll_driver::{Dates, FoundObject, Lack, RootState, Step};
    use plimsoll_model::Ability;

    use super::*;

    /// A store that reports only the dates of its marks: of one that was there, and of one that is
    /// written now.
    struct Dated {
        there: Option<Dates>,
        fresh: &'static str,
        written: Option<String>,
    }

    impl Admin for Dated {
        fn dates_of<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Dates>> {
            let mut dates = self.there.clone();
            if let (Some(dates), Some(_)) =
                (&mut dates, self.written.as_ref().filter(|own| *own == key))
            {
                dates.modified = self.fresh.to_owned();
            }
            Box::pin(std::future::ready(Ok(dates)))
        }

        fn ensure_root(&mut self) -> Step<'_, RootState> {
            unreachable!("only dates are asked for")
        }

        fn make_ready<'a>(&'a mut self, _: &'a [Ability], _: &'a str) -> Step<'a, Option<Lack>> {
            unreachable!("only dates are asked for")
        }

        fn survey<'a>(
            &'a mut self,
            _: &'a str,
            _: Option<u64>,
            _: bool,
        ) -> Step<'a, Vec<FoundObject>> {
            unreachable!("only dates are asked for")
        }

        fn sweep<'a>(&'a mut self, _: &'a str) -> Step<'a, u64> {
            unreachable!("only dates are asked for")
        }

        fn removed_count(&self) -> Arc<AtomicU64> {
            unreachable!("only dates are asked for")
        }

        fn put_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
            self.written = Some(key.to_owned());
            Box::pin(std::future::ready(Ok(())))
        }

        fn remove_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
            assert_eq!(self.written.take().as_deref(), Some(key));
            Box::pin(std::future::ready(Ok(())))
        }
    }

    /// Tells whether a mark of that name holds at a store that says this of the time.
    fn held(name: &str, dates: Option<(&str, &str)>) -> bool {
        held_by(name, dates, NINE)
    }

    /// The same of a store that stamps what is written now so.
    fn held_by(name: &str, dates: Option<(&str, &str)>, fresh: &'static str) -> bool {
        let there = dates
            .map(|(now, modified)| Dates { now: now.to_owned(), modified: modified.to_owned() });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let key = format!("plimsoll/r.live/{name}");
        let mut store = Dated { there, fresh, written: None };
        let holds = runtime.block_on(holds(&mut store, &key)).unwrap();
        assert_eq!(store.written, None, "what was written was removed");
        holds
    }

    const NINE: &str = "Sat, 21 Nov 2026 09:00:00 GMT";
    const BEFORE: &str = "Sat, 21 Nov 2026 08:59:01 GMT";
    const LONG_BEFORE: &str = "Sat, 21 Nov 2026 08:59:00 GMT";

    #[test]
    fn the_store_s_clock_alone_ends_the_mark_of_a_run_elsewhere() {
        // 2026-11-21 09:00:00 UTC, checked with `date -u -d @1795251600`.
        let nine = WallTime::from_unix_ns(1_795_251_600 * 1_000_000_000);
        assert_eq!(compact(nine), "20261121t090000z");
        // Whatever the clock of the run said, and whatever that of this machine says.
        for until in ["20261121t090000z", "19700101t000000z", "20991231t235959z"] {
            let mark = format!("{until}.another-machine-1-1");
            assert!(held(&mark, Some((NINE, BEFORE))), "{until}: 59 s old");
            assert!(!held(&mark, Some((NINE, LONG_BEFORE))), "{until}: 60 s old");
            assert!(held(&mark, Some((BEFORE, NINE))), "{until}: the store's clock was set back");
            assert!(held(&mark, Some(("", ""))), "{until}: a store without a clock ends nothing");
            assert!(held(&mark, None), "{until}: it was renewed since it was listed");
        }
        let of_run = |until: &str| held(&format!("{until}.x-1-1"), Some((NINE, "")));
        assert!(of_run("20261121t090000z") && !of_run("20261121t085959z"));
        for nobody in ["", "x", "20261121t090000z", "later.x"] {
            assert!(!held(nobody, Some((NINE, BEFORE))), "{nobody}");
        }
    }

    #[test]
    fn a_gateway_whose_clock_is_not_the_store_s_ends_no_mark() {
        let mark = "20261121t090000z.another-machine-1-1";
        // It states 9:00:00, and what is written now was written at 8:59:01.
        let by = |modified, fresh| held_by(mark, Some((NINE, modified)), fresh);
        assert!(by(LONG_BEFORE, BEFORE), "1 s old");
        assert!(!by("Sat, 21 Nov 2026 08:58:01 GMT", BEFORE), "60 s old");
        assert!(by("Sat, 21 Nov 2026 08:58:02 GMT", BEFORE), "59 s old");
        assert!(!by(LONG_BEFORE, ""), "a store that stamps nothing more is taken at its word");
    }

    #[test]
    fn a_process_that_is_known_to_live_or_to_be_gone_decides_for_its_mark() {
        let mine = process::identity();
        let mark = |process: &str| format!("20261121t090000z.{process}");
        assert!(held(&mark(&mine), Some((NINE, LONG_BEFORE))), "its process is here");
        let (place, _) = mine.split_once('-').unwrap();
        // No process has that number: it is above the most that Linux gives out.
        assert!(!held(&mark(&format!("{place}-4194305-1")), Some((NINE, BEFORE))));
        // Agents may work on although the process that wrote their mark is gone.
        let of_agents = mark(&Runner::Agents.name());
        assert!(held(&of_agents, Some((NINE, BEFORE))));
        assert!(!held(&of_agents, Some((NINE, LONG_BEFORE))));
        // A process whose start does not show may be hidden, so that its age counts.
        let hidden = mark(&format!("{place}-1-0"));
        assert!(held(&hidden, Some((NINE, BEFORE))));
        assert!(!held(&hidden, Some((NINE, LONG_BEFORE))));
    }

    #[test]
    fn a_mark_lies_beside_the_objects_of_its_run() {
        assert_eq!(marks_of("a/plimsoll/r/"), "a/plimsoll/r.live/");
        assert_eq!(read("r.live/20261121t090000z.x"), Some(("r", "20261121t090000z.x")));
        assert_eq!(read("r/0/1.rnd"), None);
        assert_eq!(run_of("a/plimsoll/r/0/1.rnd"), Some("a/plimsoll/r"));
        assert_eq!(run_of("plimsoll/r/1"), Some("plimsoll/r"));
        assert_eq!(run_of("xplimsoll/r/1"), None);
        assert_eq!(run_of("plimsoll/r"), None);
    }
}
