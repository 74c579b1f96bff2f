//! Files written to, read from and removed from a real SeaweedFS.

use std::net::TcpListener;
use std::task::Poll;
use std::time::Duration;

use plimsoll_driver::{ByteRange, Driver as _, Operation, Session as _};
use plimsoll_driver_seaweed::{AssignBy, FileId, SeaweedConfig, ServerAddress, UploadBy};
use plimsoll_model::ErrorClass;
use plimsoll_testkit::LiveKind;

use crate::support::{Client, Numbered};

#[test]
fn files_are_written_read_and_removed_by_every_way_of_asking_and_sending() {
    for assign_by in [AssignBy::Call, AssignBy::Stream, AssignBy::Http] {
        for (upload_by, assign_count) in [(UploadBy::Form, 1), (UploadBy::Put, 3)] {
            let change = |config: &mut SeaweedConfig| {
                (config.assign_by, config.upload_by) = (assign_by, upload_by);
                config.assign_count = assign_count;
            };
            let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "ways", change) else {
                return;
            };
            let endpoints = cluster.driver.endpoints();
            assert_eq!(endpoints.len(), 3, "masters, one volume server, others");
            let mut names = Vec::new();
            for (file, size) in [(1, 0), (2, 1), (3, 1_024), (4, 1 << 20), (5, 300_001)] {
                let name = cluster.put(file, size);
                let (done, content) = cluster.get(&name, None);
                assert_eq!(done.result, Ok(()), "{assign_by:?} {upload_by:?} {size}");
                assert_eq!((done.bytes, done.object_size), (size, Some(size)));
                assert!(content == Numbered { file, size }.bytes(0, size), "{name}");
                let stat = cluster.stat(&name);
                assert_eq!((stat.result, stat.object_size), (Ok(()), Some(size)));
                names.push(name);
            }
            let ids: Vec<FileId> = names.iter().map(|name| name.parse().unwrap()).collect();
            let together = ids.windows(2).filter(|pair| pair[0].plus(1) == Some(pair[1])).count();
            if assign_count == 3 {
                assert!(together >= 3, "five names by three at a time: {names:?}");
            }
            let range = ByteRange { offset: 250, len: 700 };
            let (done, content) = cluster.get(&names[4], Some(range));
            assert_eq!((done.result, done.object_size), (Ok(()), Some(300_001)));
            assert!(content == Numbered { file: 5, size: 300_001 }.bytes(250, 700));
            for name in &names {
                for _ in 0..2 {
                    let done = cluster.delete(name);
                    assert_eq!((done.result, done.objects_count), (Ok(()), 1));
                }
                let (done, content) = cluster.get(name, None);
                assert_eq!(done.result.unwrap_err().class, ErrorClass::NotFound);
                assert_eq!((content.len(), done.bytes), (0, 0));
            }
        }
    }
}

#[test]
fn many_are_removed_at_once_and_those_of_others_stay() {
    let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "batches", |_| {}) else { return };
    let mut names: Vec<String> = (0..40).map(|file| cluster.put(file, 64).into()).collect();
    let others = names.split_off(30);
    // What is not there any more is gone.
    for _ in 0..2 {
        let done = cluster.run(Operation::Delete { keys: &names });
        assert_eq!((done.result, done.objects_count), (Ok(()), 30));
    }
    // On volumes that no server has nothing is removed, of one file as of many.
    names.push("999999,01637037d6".to_owned());
    let done = cluster.run(Operation::Delete { keys: &names });
    let class = done.result.unwrap_err().class;
    assert_eq!((class, done.objects_count), (ErrorClass::NotFound, 30));
    for name in &names {
        assert_eq!(cluster.get(name, None).0.result.unwrap_err().class, ErrorClass::NotFound);
    }
    for name in &others {
        assert_eq!(cluster.get(name, None).0.result, Ok(()), "{name}");
    }
    // A wrong cookie removes nothing.
    let id: FileId = others[0].parse().unwrap();
    let guess = FileId { cookie: id.cookie ^ 1, ..id }.to_string();
    let keys = [guess, others[1].clone()];
    let done = cluster.run(Operation::Delete { keys: &keys });
    assert_eq!((done.result.unwrap_err().class, done.objects_count), (ErrorClass::Client, 1));
    assert_eq!(cluster.get(&others[0], None).0.result, Ok(()));
}

#[test]
fn an_upload_that_was_given_up_leaves_nothing() {
    let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "given-up", |_| {}) else { return };
    let name = cluster.put(1, 10);
    // Dropped at many moments, later and later, until some of them lay within the upload.
    let (mut given_up, mut tries) = (0, 0_u32);
    while given_up < 3 {
        tries += 1;
        assert!(tries < 2_000, "an upload of 2 MiB ends within 0.2 s, if its id is there by then");
        let dropped_at = cluster.clock.now().after(tries * Duration::from_micros(100));
        let mut content = Numbered { file: 2, size: 2 << 20 };
        let put = Operation::Put { key: "", content: &mut content };
        let Client { runtime, clock, session, .. } = &mut cluster;
        runtime.block_on(async {
            let mut put = std::pin::pin!(session.execute(None, put));
            while clock.now() < dropped_at {
                let is_done =
                    std::future::poll_fn(|cx| Poll::Ready(put.as_mut().poll(cx).is_ready()));
                if is_done.await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
        let settled = cluster.settle();
        assert_eq!(settled.left_count, 0);
        given_up += settled.given_up_count;
    }
    assert_eq!(cluster.get(&name, None).0.result, Ok(()));
}

#[test]
fn ranges_beyond_the_end_and_names_of_nothing_fail_in_their_classes() {
    let Some(mut cluster) = Client::live(LiveKind::SeaweedFs, "ends", |_| {}) else { return };
    let name = cluster.put(9, 1_000);
    let beyond = ByteRange { offset: 900, len: 200 };
    let (done, _) = cluster.get(&name, Some(beyond));
    assert_eq!(done.result.unwrap_err().class, ErrorClass::Truncated);
    for (name, class) in [
        ("999999,01637037d6", ErrorClass::NotFound),
        ("no id", ErrorClass::Client),
        ("3,01637037d6\r\nHost: elsewhere", ErrorClass::Client),
    ] {
        let (done, _) = cluster.get(name, None);
        assert_eq!(done.result.unwrap_err().class, class, "{name}");
    }
    // A wrong cookie is a guess.
    let id: FileId = name.parse().unwrap();
    let guess = FileId { cookie: id.cookie ^ 1, ..id }.to_string();
    let (done, _) = cluster.get(&guess, None);
    assert_eq!(done.result.unwrap_err().class, ErrorClass::NotFound);
    let (done, content) = cluster.get(&name, None);
    assert_eq!((done.result, content.len()), (Ok(()), 1_000));
}

#[test]
fn masters_that_are_away_are_named() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let master: ServerAddress = format!("127.0.0.1:{closed}.1").parse().unwrap();
    let error = Client::try_open(SeaweedConfig::new(vec![master], "x")).err().unwrap();
    assert_eq!(error.class, ErrorClass::Connect);
    assert!(error.message.contains(&format!("127.0.0.1:{closed}")), "{error}");
}
