//! Limits on how many workloads of one user are judged concurrently, so that nobody takes all
//! threads: judging reads files and may ask a store, which answers when it likes.

use axum::http::StatusCode;

use super::Site;
use super::refused::Refused;
use crate::held::Hold;

/// Workloads of one user that are judged concurrently.
const OF_USER_MAX: usize = 8;

/// Begins to judge a workload of a user, unless too many of theirs are being judged.
pub(super) fn begin(site: &Site, user: &str) -> Result<Hold<String>, Refused> {
    let turn = site.judging.take(user.to_owned(), OF_USER_MAX);
    turn.ok_or_else(|| {
        Refused::new(
            StatusCode::TOO_MANY_REQUESTS,
            "busy",
            format!("{OF_USER_MAX} workloads of yours are being judged: wait until one is done"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Console;
    use crate::console::tests::{fake, settings};
    use crate::users::{Gate, Users};

    #[test]
    fn who_has_many_workloads_judged_takes_no_turn_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let (runner, _hand) = fake();
        let console = Console::open(settings(directory.path()), runner).unwrap();
        let gate = Gate::new(
            Users::from_xml("<users><user username='ann' password='a'/></users>").unwrap(),
        );
        let site = Site::new(console, gate, (None, false), String::new());
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
