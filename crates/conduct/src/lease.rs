//! Marks beside what a run writes into a bucket, which say that it is under way: `clean` from any
//! machine leaves its objects alone while one holds.
//!
//! A mark is an empty object `<prefix>/plimsoll/<run>.live/<until>.<process>`, so a listing tells
//! all of it. It is renewed long before it ends; one that a killed run left behind ends by itself.
//! On the machine that the run is on, its process is asked for instead, so that nobody has to wait.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

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

/// Tells whether a mark holds; one that nobody wrote does not.
pub fn holds(mark: &str, now: WallTime) -> bool {
    let Some((until, process)) = mark.split_once('.') else { return false };
    let Ok(until) = DateTime::strptime(UNTIL, until).and_then(|at| at.to_zoned(TimeZone::UTC))
    else {
        return false;
    };
    // The run may have ended a moment ago, or its clock may be off by one.
    let is_due = || until.timestamp().as_nanosecond() > i128::from(now.as_unix_ns());
    // A run that was stopped, or whose store does not answer, renews nothing and yet lives.
    process::is_alive(process).unwrap_or_else(is_due)
}

/// Tells whether a mark holds of the run whose objects lie below `base`.
pub async fn is_marked(
    admin: &mut dyn Admin,
    base: &str,
    now: WallTime,
) -> Result<bool, DriverError> {
    let marks = marks_of(base);
    let found = admin.survey(&marks, None, true).await?;
    Ok(found.iter().filter_map(|mark| mark.key.strip_prefix(&*marks)).any(|mark| holds(mark, now)))
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
    /// What its marks there begin with.
    pub marks: Vec<String>,
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
                let marks = bucket.marks.iter().map(|prefix| (prefix.clone(), None)).collect();
                Some(Keeper { admin, marks, time, observer })
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
    time: RunTime,
    observer: Arc<dyn Observer>,
}

/// Renews all marks round after round, for as long as there are any.
async fn keep(mut keepers: Vec<Keeper>) {
    let mut rounds = tokio::time::interval(RENEWED);
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
        let process = process::identity();
        for (prefix, before) in &mut self.marks {
            let since = Duration::from_nanos(self.time.clock.now().as_ns());
            let until = self.time.wall_epoch.after(since + HOLDS);
            let key = format!("{prefix}{}.{process}", compact(until));
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

fn compact(at: WallTime) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).unwrap_or_default();
    at.to_zoned(TimeZone::UTC).strftime(UNTIL).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_until_its_time_and_not_beyond_its_process() {
        // 2026-11-21 09:00:00 UTC, checked with `date -u -d @1795251600`.
        let at = |s: u64| WallTime::from_unix_ns((1_795_251_600 + s) * 1_000_000_000);
        assert_eq!(compact(at(0)), "20261121t090000z");
        let elsewhere = "20261121t090000z.another-machine-1-1";
        assert!(!holds(elsewhere, at(1)));
        assert!(holds(elsewhere, WallTime::from_unix_ns(at(0).as_unix_ns() - 1)));
        let mine = process::identity();
        let before = WallTime::from_unix_ns(at(0).as_unix_ns() - 1);
        assert!(holds(&format!("20261121t090000z.{mine}"), before));
        assert!(holds(&format!("20261121t090000z.{mine}"), at(1)), "its process is here");
        let gone = mine.rsplit_once('-').unwrap().0;
        assert!(!holds(&format!("20261121t090000z.{gone}-1"), before), "another start time");
        for nobody in ["", "x", "20261121t090000z", "later.x"] {
            assert!(!holds(nobody, before), "{nobody}");
        }
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
