//! Whether a run is under way can be asked, and nobody else can take its lease meanwhile.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;

use plimsoll_record::{Lease, RunDirectory, is_alive};

use crate::new_run;

#[test]
fn a_run_is_alive_as_long_as_somebody_holds_its_directory() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let copy = directory.clone();
    assert!(is_alive(place.path()).unwrap());
    assert!(Lease::try_take(place.path()).unwrap().is_none());
    // Who reads it holds nothing, and takes nothing away.
    drop(RunDirectory::open(place.path()).unwrap());
    drop(directory);
    assert!(is_alive(place.path()).unwrap(), "a copy of the directory is left");
    drop(copy);
    assert!(!is_alive(place.path()).unwrap());

    let lease = Lease::try_take(place.path()).unwrap();
    assert!(lease.is_some() && is_alive(place.path()).unwrap());
    assert!(Lease::try_take(place.path()).unwrap().is_none());
    drop(lease);
    assert!(!is_alive(place.path()).unwrap());
}

#[test]
fn a_run_that_took_no_lease_is_not_alive() {
    let place = tempfile::tempdir().unwrap();
    drop(new_run(place.path()));
    fs::remove_file(place.path().join("lock")).unwrap();
    assert!(!is_alive(place.path()).unwrap());
    assert!(!is_alive(&place.path().join("nowhere")).unwrap());
    assert!(Lease::try_take(place.path()).unwrap().is_some());
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    drop(new_run(place.path()));
    let foreign = place.path().join("foreign");
    fs::remove_file(place.path().join("lock")).unwrap();
    std::os::unix::fs::symlink(&foreign, place.path().join("lock")).unwrap();
    assert!(is_alive(place.path()).is_err());
    assert!(Lease::try_take(place.path()).is_err());
    assert!(!foreign.exists());
}
