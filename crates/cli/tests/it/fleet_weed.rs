//! Agents on a SeaweedFS whose volume servers they learn from its master.

use plimsoll_testkit::weed::{OwnWeed, WeedSetup};

use crate::fleet::Fleet;
use crate::harness::{plimsoll, stderr};

#[test]
fn volume_servers_that_a_master_names_are_hosts_too() {
    let setup = WeedSetup { volume_servers: 1, volumes_max: 8, ..WeedSetup::default() };
    let Some(weed) = OwnWeed::start(&setup) else { return };
    let master = weed.master();
    let (host, grpc_port) = master.rsplit_once('.').unwrap();
    let grpc = format!("{}:{grpc_port}", host.rsplit_once(':').unwrap().0);
    let volume_server = weed.volume_server(0);
    for (allowed, refused) in [
        (format!("{host},{grpc}"), Some(&*volume_server)),
        (format!("{host},{grpc},{volume_server}"), None),
        ("10.9.8.7".to_owned(), Some(host)),
    ] {
        let Some(fleet) = Fleet::start(&["a"], &["--allow-hosts", &allowed]) else { return };
        let line = format!(
            "weed write --master {master} --duration 1s --obj.size 1KiB --concurrent 2 \
             --create-bucket {}",
            fleet.flag
        );
        let output = plimsoll(fleet.place.path()).args(line.split(' ')).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.success(), refused.is_none(), "{allowed}: {said}");
        if let Some(refused) = refused {
            assert!(said.contains(&format!("does not allow load on {refused}")), "{said}");
        }
    }
}
