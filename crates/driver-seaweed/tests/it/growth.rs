//! Volumes that cannot be made, and those that are used up.

use std::time::Duration;

use plimsoll_driver::{Admin as _, DriverError, Operation};
use plimsoll_driver_seaweed::{AssignBy, SeaweedConfig};
use plimsoll_model::{Ability, ErrorClass};
use plimsoll_testkit::LiveKind;
use plimsoll_testkit::weed::{OwnWeed, WeedSetup};

use crate::support::{Client, Numbered};

impl Client {
    fn make_ready(&mut self) -> Result<(), DriverError> {
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
fn a_replication_that_cannot_be_is_waited_for_with_a_limit() {
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        let three = |config: &mut SeaweedConfig| {
            config.replication = "002".to_owned();
            config.growth_timeout = Duration::from_millis(500);
            config.assign_by = assign_by;
        };
        let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "never", three) else { return };
        assert_eq!(cluster.refused_put().class, ErrorClass::Growing, "{assign_by:?}");
        let started = cluster.clock.now();
        let error = cluster.make_ready().unwrap_err();
        assert_eq!(error.class, ErrorClass::Growing);
        let start = "in 0.5 s no volume was made for collection `never`, replication 002";
        assert!(error.message.starts_with(start), "{error}");
        assert!(error.message.contains("`-max`"), "{error}");
        let waited = cluster.clock.now().since(started);
        assert!(waited >= Duration::from_millis(500), "{waited:?}");
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
            let start = "no volume can be written to and no more can be made: give volume servers";
            assert!(error.message.starts_with(start), "{assign_by:?}: {error}");
        }
    }
    first.put(2, 10);
}
