//! Volumes that cannot be made, and those that are used up.

use std::time::Duration;

use plimsoll_driver::{Admin as _, DriverError, Operation};
use plimsoll_driver_seaweed::{AssignBy, SeaweedConfig};
use plimsoll_model::{Ability, ErrorClass};
use plimsoll_testkit::LiveKind;
use plimsoll_testkit::weed::{OwnWeed, WeedSetup};

use crate::standin;
use crate::support::{Client, Numbered};

const DISK: &str = "no volume server has disks of that type; ";

impl Client {
    pub(crate) fn make_ready(&mut self) -> Result<(), DriverError> {
        let mut admin = self.driver.admin(&self.clock, None);
        let lack = self.runtime.block_on(admin.make_ready(&[Ability::Put], ""))?;
        assert!(lack.is_none());
        Ok(())
    }

    fn refused_put(&mut self) -> DriverError {
        let content = &mut Numbered { file: 1, size: 10 };
        let done = self.run(Operation::Put { key: "", content });
        assert_eq!((done.server_name, done.bytes), (None, 0));
        done.result.unwrap_err()
    }
}

#[test]
fn what_the_cluster_has_no_places_for_is_refused_at_once() {
    type Change = fn(&mut SeaweedConfig);
    let asked: [(Change, &str); 4] = [
        (|config| config.replication = "002".to_owned(), "replication 002 needs 3 volume servers"),
        (|config| config.data_center = "nope".to_owned(), "there is no data center `nope`, only"),
        (|config| config.rack = "nope".to_owned(), "there is no rack `nope`, only `DefaultRack`"),
        (|config| config.disk = "ssd".to_owned(), DISK),
    ];
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        for (change, start) in asked {
            let change = |config: &mut SeaweedConfig| {
                change(config);
                config.assign_by = assign_by;
            };
            let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "never", change) else {
                return;
            };
            let error = cluster.make_ready().unwrap_err();
            // By HTTP a master does not tell a lack of disks from one of volumes.
            let start = match (start, assign_by) {
                (DISK, AssignBy::Http) => "no volume is writable and no more can be made: ",
                _ => start,
            };
            assert!(error.message.starts_with(start), "{assign_by:?}: {error}");
            assert_ne!(error.class, ErrorClass::Growing);
        }
    }
}

#[test]
fn volumes_that_are_used_up_are_told_at_once() {
    let setup = WeedSetup { volume_servers: 1, volumes_max: 1, ..WeedSetup::default() };
    let Some(weed) = OwnWeed::start(&setup) else { return };
    let mut first = Client::of(&weed.master(), "first", |_| {});
    assert_eq!(first.make_ready(), Ok(()));
    first.put(1, 10);
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        let change = |config: &mut SeaweedConfig| config.assign_by = assign_by;
        let mut second = Client::of(&weed.master(), "second", change);
        for error in [second.refused_put(), second.make_ready().unwrap_err()] {
            assert_eq!(error.class, ErrorClass::Server, "{assign_by:?}: {error}");
            let start = "no volume is writable and no more can be made: give volume servers";
            assert!(error.message.starts_with(start), "{assign_by:?}: {error}");
        }
    }
    first.put(2, 10);
}

#[test]
fn growth_without_end_is_waited_for_with_a_limit() {
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        let stand_in = standin::scripted("seaweed: {growth: {lasting: 1h}}");
        let mut cluster = standin::connect(&stand_in, |config| {
            config.growth_timeout = Duration::from_millis(500);
            config.assign_by = assign_by;
        });
        assert_eq!(cluster.refused_put().class, ErrorClass::Growing, "{assign_by:?}");
        let started = cluster.clock.now();
        let error = cluster.make_ready().unwrap_err();
        assert_eq!(error.class, ErrorClass::Growing);
        let start = "in 0.5 s no volume was made for collection `mine`, replication by default";
        assert!(error.message.starts_with(start), "{error}");
        assert!(error.message.contains("`-max`"), "{error}");
        let waited = cluster.clock.now().since(started);
        assert!(waited >= Duration::from_millis(500), "{waited:?}");
    }
}
