//! Files with two copies: both are written and removed, and what becomes of operations when a
//! volume server is killed and comes back.

use std::time::Duration;

use plimsoll_driver::{DriverError, Operation};
use plimsoll_driver_seaweed::{FileId, SeaweedConfig};
use plimsoll_model::ErrorClass;
use plimsoll_testkit::weed::{OwnWeed, WeedSetup, http_get};
use plimsoll_testkit::{LiveKind, live};

use crate::support::{Client, Numbered};

/// How long it may take until a cluster has noticed who went or came.
const NOTICED_MAX: Duration = Duration::from_secs(60);

fn two_copies(config: &mut SeaweedConfig) {
    config.replication = "001".to_owned();
}

/// Returns the servers that have a file's volume, as the master knows them.
fn servers_of(master: &str, name: &str) -> Vec<String> {
    let fid: FileId = name.parse().unwrap();
    let path = format!("/dir/lookup?volumeId={}", fid.volume);
    let (status, body) = http_get(master, &path).unwrap();
    assert_eq!(status, 200);
    let found: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let locations = found["locations"].as_array().unwrap();
    locations.iter().map(|of| of["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn both_copies_are_written_and_removed() {
    let Some(server) = live(LiveKind::SeaweedCluster) else { return };
    let master = server.host();
    let mut cluster = Client::of(master, "copies", two_copies);
    let names: Vec<String> = (0..24).map(|file| cluster.put(file, 5_000).into()).collect();
    let mut copies = Vec::new();
    for (file, name) in names.iter().enumerate() {
        let servers = servers_of(master, name);
        assert_eq!(servers.len(), 2, "{name}");
        for server in servers {
            let (status, content) = http_get(&server, &format!("/{name}")).unwrap();
            assert_eq!(status, 200, "{name} of {server}");
            let expected = Numbered { file: file as u64, size: 5_000 }.bytes(0, 5_000);
            assert!(content == expected, "{name} of {server}");
            copies.push((server, name));
        }
        // One and the other in turn.
        for _ in 0..2 {
            assert_eq!(cluster.get(name, None).0.result, Ok(()), "{name}");
        }
    }
    let (one_by_one, at_once) = names.split_at(12);
    for name in one_by_one {
        assert_eq!(cluster.delete(name).result, Ok(()));
    }
    let done = cluster.run(Operation::Delete { keys: at_once });
    assert_eq!((done.result, done.objects_count), (Ok(()), 12));
    for (server, name) in copies {
        let (status, _) = http_get(&server, &format!("/{name}")).unwrap();
        assert_eq!(status, 404, "{name} of {server}");
    }
}

/// The classes of what may fail while a server is away: it is not reached, another one cannot make
/// a copy on it, volumes are made elsewhere.
const OF_AWAY: [ErrorClass; 4] =
    [ErrorClass::Connect, ErrorClass::Reset, ErrorClass::Server, ErrorClass::Growing];

impl Client {
    /// Does `operate` again and again until it succeeds; what fails is of the classes above.
    fn until_ok(&mut self, mut operate: impl FnMut(&mut Self) -> Result<(), DriverError>) {
        let started = self.clock.now();
        while let Err(error) = operate(self) {
            assert!(OF_AWAY.contains(&error.class) && !error.message.is_empty(), "{error:?}");
            self.settle();
            assert!(self.clock.now().since(started) < NOTICED_MAX, "{error}");
        }
    }

    fn write_files(&mut self, files: std::ops::Range<u64>) -> Vec<String> {
        let mut names = Vec::new();
        for file in files {
            self.until_ok(|cluster| {
                let content = &mut Numbered { file, size: 3_000 };
                let done = cluster.run(Operation::Put { key: "", content });
                names.extend(done.result.is_ok().then(|| done.server_name.unwrap().into()));
                done.result
            });
        }
        names
    }

    /// Writes thirty files, and more until one of them is of a kind.
    fn write_until(&mut self, is_found: impl Fn(&String) -> bool) -> Vec<String> {
        let mut names = self.write_files(1..31);
        while !names.iter().any(&is_found) {
            assert!(names.len() < 3_000, "volumes are made on several servers");
            names.extend(self.write_files(100..130));
        }
        names
    }
}

/// Checks what a volume server being away means for files with one copy: those that it has fail
/// in a clear class and are not taken for removed, and the others are as ever.
fn check_single(single: &mut Client, names: &[String], is_away: impl Fn(&str) -> bool) {
    let (away, there): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| is_away(name));
    assert!(!away.is_empty() && !there.is_empty());
    for name in &there {
        assert_eq!(single.get(name, None).0.result, Ok(()));
    }
    for name in &away {
        // Its volumes are not all told of in the same breath.
        single.until_ok(|cluster| match cluster.get(name, None).0.result {
            Err(error) if error.message.contains("is away") => Ok(()),
            result => result.map(|()| panic!("a server that is away has answered")),
        });
        let volume = name.parse::<FileId>().unwrap().volume;
        let keys = [name.clone(), there[0].clone()];
        let removed = single.run(Operation::Delete { keys: &keys });
        assert_eq!(removed.objects_count, 1);
        for result in [single.get(name, None).0.result, single.stat(name).result, removed.result] {
            let error = result.unwrap_err();
            assert_eq!(error.class, ErrorClass::Server, "{error}");
            let why = format!("no server has volume {volume} now; one that had it is away");
            assert_eq!(error.message, why);
        }
    }
}

#[test]
fn a_volume_server_is_killed_and_comes_back() {
    let setup = WeedSetup { volume_servers: 3, volumes_max: 60, ..WeedSetup::default() };
    let Some(mut weed) = OwnWeed::start(&setup) else { return };
    let mut double = Client::of(&weed.master(), "double", two_copies);
    let mut single = Client::of(&weed.master(), "single", |_| {});
    let master = weed.master().rsplit_once('.').unwrap().0.to_owned();
    // The first volumes may all be of one server.
    let first = single.write_files(0..1);
    let away = servers_of(&master, &first[0]).remove(0);
    let is_away = |name: &String| servers_of(&master, name).contains(&away);
    let before = double.write_until(is_away);
    let alone = [first, single.write_until(|name| !is_away(name))].concat();
    let alone_on_away: Vec<String> = alone.iter().filter(|name| is_away(name)).cloned().collect();

    let number = (0..3).find(|number| weed.volume_server(*number) == away).unwrap();
    weed.kill(number);
    for name in &before {
        double.until_ok(|cluster| cluster.get(name, None).0.result);
    }
    weed.await_volume_servers(2).unwrap();
    check_single(&mut single, &alone, |name| alone_on_away.iter().any(|of| of == name));
    let while_away = double.write_files(30..60);

    weed.start_again(number);
    for name in alone_on_away {
        single.until_ok(|cluster| cluster.get(&name, None).0.result);
    }
    let after = double.write_files(60..70);
    let all: Vec<String> = [before, while_away, after].concat();
    for name in &all {
        for _ in 0..2 {
            double.until_ok(|cluster| cluster.get(name, None).0.result);
        }
    }
    double.until_ok(|cluster| cluster.run(Operation::Delete { keys: &all }).result);
    for server in 0..3 {
        let server = weed.volume_server(server);
        for name in &all {
            let path = format!("/{name}");
            assert_eq!(http_get(&server, &path).unwrap().0, 404, "{name} of {server}");
        }
    }
}
