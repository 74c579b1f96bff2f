//! Limits on how many workloads of one user are judged and how many records are read concurrently,
//! so that nobody takes all threads or all memory: judging reads files and may ask a store, which
//! answers when it likes, and the report of a run of millions of operations takes some 80 MB.

use std::sync::Arc;

use axum::http::Uri;
use tokio::sync::OwnedSemaphorePermit;

use super::Site;
use super::refused::Refused;
use crate::held::{Held, Hold};

/// Requests of one user that are not answered to their last byte: whole answers are in memory until
/// then, some of 15 MB.
const REQUESTS_OF_USER_MAX: usize = 16;
/// Of these, requests with a body.
const BODIES_OF_USER_MAX: usize = 8;
/// Requests of one user for events, which have no last byte as long as a run goes on.
const LISTENERS_OF_USER_MAX: usize = 64;

/// Requests of each user that are not answered to their last byte.
#[derive(Default)]
pub(crate) struct Asking {
    all: Arc<Held<String>>,
    with_body: Arc<Held<String>>,
    for_events: Arc<Held<String>>,
}

/// What a request holds of its user's places.
pub(super) type Places = Vec<Hold<String>>;

/// Begins a request of a user, unless too many are not answered yet.
pub(super) fn ask(site: &Site, user: &str, uri: &Uri, has_body: bool) -> Result<Places, Refused> {
    let Asking { all, with_body, for_events } = &site.asking;
    let wanted = match (uri.path().ends_with("/events"), has_body) {
        (true, _) => vec![(for_events, LISTENERS_OF_USER_MAX)],
        (false, false) => vec![(all, REQUESTS_OF_USER_MAX)],
        (false, true) => vec![(all, REQUESTS_OF_USER_MAX), (with_body, BODIES_OF_USER_MAX)],
    };
    let places = wanted.into_iter().map(|(of, max)| of.take(user.to_owned(), max));
    let places: Option<Places> = places.collect();
    places.ok_or_else(|| Refused::busy("too many of your requests are under way: try again later"))
}

/// Workloads of one user that are judged concurrently.
const OF_USER_MAX: usize = 8;

/// Records that are read concurrently.
pub(super) const READERS_MAX: usize = 2;
/// Requests of one user that read records or wait for it, or whose answers are being sent.
const READS_OF_USER_MAX: usize = 8;

/// Begins a request that reads records, unless too many of a user's do.
pub(super) fn read(site: &Site, user: &str) -> Result<Hold<String>, Refused> {
    let turn = site.reading.take(user.to_owned(), READS_OF_USER_MAX);
    turn.ok_or_else(|| {
        Refused::busy(format!(
            "{READS_OF_USER_MAX} reports of yours are being made: try again later"
        ))
    })
}

/// Archives and files written concurrently, each by a thread that waits for its client.
pub(super) const WRITERS_MAX: usize = 24;
/// Of these, those of one user.
const WRITERS_OF_USER_MAX: usize = 8;

/// Begins to write an archive or a file, unless too many are being written.
pub(super) fn write(
    site: &Site,
    user: &str,
) -> Result<(Hold<String>, OwnedSemaphorePermit), Refused> {
    let (of_users, all) = &site.writing;
    let hold = of_users.take(user.to_owned(), WRITERS_OF_USER_MAX);
    let permit = Arc::clone(all).try_acquire_owned().ok();
    hold.zip(permit)
        .ok_or_else(|| Refused::busy("too many files are being downloaded: try again later"))
}

/// Begins to judge a workload of a user, unless too many of theirs are being judged.
pub(super) fn begin(site: &Site, user: &str) -> Result<Hold<String>, Refused> {
    let turn = site.judging.take(user.to_owned(), OF_USER_MAX);
    turn.ok_or_else(|| {
        Refused::busy(format!(
            "{OF_USER_MAX} workloads of yours are being judged: wait until one is done"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use futures::future::join_all;

    use super::*;
    use crate::api::guard::Caller;
    use crate::api::reading;
    use crate::console::Console;
    use crate::console::tests::{fake, settings};
    use crate::users::{Gate, Users};

    fn site(directory: &std::path::Path) -> Site {
        let (runner, _hand) = fake();
        let console = Console::open(settings(directory), runner).unwrap();
        let gate = Gate::new(
            Users::from_xml("<users><user username='ann' password='a'/></users>").unwrap(),
        );
        Site::new(console, gate, (None, false), String::new())
    }

    #[tokio::test]
    async fn few_records_are_read_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let site = Arc::new(site(directory.path()));
        let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (go, wait) = channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let request = |_| {
            let (now, most, wait) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&wait));
            let work = move |_: &Site| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                wait.lock().unwrap().recv().unwrap();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            reading(Arc::clone(&site), Caller { user: "ann".to_owned() }, work)
        };
        let reached = Arc::clone(&now);
        let lets_go = thread::spawn(move || {
            while reached.load(Ordering::SeqCst) < READERS_MAX {
                thread::yield_now();
            }
            (0..READS_OF_USER_MAX).for_each(|_| go.send(()).unwrap());
        });
        let answers = join_all((0..20).map(request)).await;
        lets_go.join().unwrap();
        let refused = answers.iter().filter(|answer| answer.status() == 429).count();
        assert_eq!((most.load(Ordering::SeqCst), refused), (READERS_MAX, 12));
        assert!(!site.reading.is_empty(), "until the answers are sent");
        drop(answers);
        assert!(site.reading.is_empty());
    }

    #[test]
    fn requests_of_a_user_are_bound_until_their_answers_are_sent() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path());
        let [page, events] = ["/api/v1/runs", "/api/v1/runs/w1/events"].map(Uri::from_static);
        let of = |user: &str, uri: &Uri, has_body: bool| {
            (0..99).map_while(|_| ask(&site, user, uri, has_body).ok()).collect::<Vec<_>>()
        };
        let sent = of("ann", &page, true);
        let asked = of("ann", &page, false);
        let listened = of("ann", &events, false);
        assert_eq!(
            [sent.len(), asked.len(), listened.len()],
            [BODIES_OF_USER_MAX, REQUESTS_OF_USER_MAX - BODIES_OF_USER_MAX, LISTENERS_OF_USER_MAX]
        );
        assert_eq!(of("bob", &page, false).len(), REQUESTS_OF_USER_MAX);
        drop(sent);
        assert_eq!(of("ann", &page, false).len(), BODIES_OF_USER_MAX);
    }

    #[test]
    fn who_downloads_many_archives_takes_no_thread_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path());
        let of = |user: &str| (0..99).map_while(|_| write(&site, user).ok()).collect::<Vec<_>>();
        let (ann, bob, carl) = (of("ann"), of("bob"), of("carl"));
        assert_eq!([ann.len(), bob.len(), carl.len()], [WRITERS_OF_USER_MAX; 3]);
        assert!(of("dora").is_empty());
        drop(bob);
        assert_eq!(of("dora").len(), WRITERS_OF_USER_MAX);
    }

    #[test]
    fn who_has_many_workloads_judged_takes_no_turn_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path());
        let mut of_ann: Vec<Hold<String>> =
            (0..20).filter_map(|_| begin(&site, "ann").ok()).collect();
        assert_eq!(of_ann.len(), OF_USER_MAX);
        assert!(begin(&site, "bob").is_ok());
        of_ann.pop();
        assert!(begin(&site, "ann").is_ok(), "one is done");
        drop(of_ann);
        assert!(site.judging.is_empty());
    }
}
