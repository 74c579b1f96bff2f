//! Large objects on a real Swift: lists of segments, segments by name, uploads in steps.

use plimsoll_driver::{ByteRange, Operation, Session as _, Settled};
use plimsoll_driver_swift::{Manifest, SwiftConfig};
use plimsoll_model::ErrorClass;

use crate::fake::{Fake, Step, answer};
use crate::support::{Client, Kept, Numbered, address};

const WHOLE: u64 = 100_000;
const SEGMENT: u64 = 30_000;

fn in_segments(manifest: Manifest) -> impl Fn(&mut SwiftConfig) {
    move |config| {
        (config.segment_bytes, config.has_segments) = (Some(SEGMENT), true);
        config.manifest = manifest;
    }
}

#[test]
fn objects_above_the_size_of_a_segment_are_one_object_to_who_reads_them() {
    for (container, manifest) in [("slo", Manifest::Static), ("dlo", Manifest::Dynamic)] {
        let Some(mut client) = Client::live(container, in_segments(manifest)) else { return };
        let done = client.put("dir/large", 7, WHOLE);
        assert_eq!((done.result, done.bytes, done.objects_count), (Ok(()), WHOLE, 1));
        assert!(done.last_byte_sent < done.first_byte, "the answer is that to the manifest");
        let (done, content) = client.get("dir/large", None);
        assert_eq!((done.result, done.object_size), (Ok(()), Some(WHOLE)));
        let written = Numbered { file: 7, size: WHOLE };
        assert!(content == written.bytes(0, WHOLE));
        // Across the end of a segment.
        let range = ByteRange { offset: SEGMENT - 5, len: 10 };
        let (done, content) = client.get("dir/large", Some(range));
        assert_eq!(done.result, Ok(()));
        assert!(content == written.bytes(SEGMENT - 5, 10));
        assert_eq!(client.stat("dir/large").object_size, Some(WHOLE));
        assert_eq!(client.put("dir/small", 8, SEGMENT).result, Ok(()));
        assert_eq!(client.keys().len(), 2 + 4, "four segments, and two objects");
        let (done, listed) = client.list("dir/", 2);
        let names: Vec<&str> = listed.entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((done.result, done.objects_count), (Ok(()), 2));
        assert_eq!(names, ["dir/large", "dir/small"], "a listing passes segments over");
        // Both kinds go by the same call, and segments with their object.
        for key in ["dir/large", "dir/small", "dir/nothing"] {
            let done = client.delete(key);
            assert_eq!((done.result, done.objects_count), (Ok(()), 1), "{key}");
        }
        assert_eq!(client.keys(), [""; 0]);
    }
}

#[test]
fn uploads_go_in_steps_and_what_is_given_up_leaves_nothing() {
    for (container, manifest) in [("steps-slo", Manifest::Static), ("steps-dlo", Manifest::Dynamic)]
    {
        let Some(mut client) = Client::live(container, in_segments(manifest)) else { return };
        let begin = |client: &mut Client| {
            let begun = client.run(Operation::CreateUpload { key: "k" });
            assert_eq!(begun.result, Ok(()));
            String::from(begun.server_name.unwrap())
        };
        let (upload, other) = (begin(&mut client), begin(&mut client));
        assert_ne!(upload, other);
        let mut parts = Vec::new();
        for number in 1..=3 {
            let size = 1_000 * u64::from(number);
            let content = &mut Numbered { file: number.into(), size };
            let done =
                client.run(Operation::PutPart { key: "k", upload: &upload, number, content });
            assert_eq!((done.result, done.bytes), (Ok(()), size));
            parts.push(String::from(done.server_name.unwrap()));
        }
        let content = &mut Numbered { file: 9, size: 10 };
        let part = Operation::PutPart { key: "k", upload: &other, number: 1, content };
        assert_eq!(client.run(part).result, Ok(()));
        let done = client.run(Operation::AbortUpload { key: "k", upload: &other });
        assert_eq!(done.result, Ok(()));
        assert_eq!(client.keys().len(), 3);
        let complete = Operation::CompleteUpload { key: "k", upload: &upload, parts: &parts };
        assert_eq!(client.run(complete).result, Ok(()));
        let (done, content) = client.get("k", None);
        let file = |file: u64| Numbered { file, size: 1_000 * file }.bytes(0, 1_000 * file);
        assert_eq!(done.result, Ok(()));
        assert!(content == [file(1), file(2), file(3)].concat());
        let mut sink = Kept::default();
        let done = client.run(Operation::GetPart { key: "k", number: 2, sink: &mut sink });
        match manifest {
            Manifest::Static => {
                assert_eq!((done.result, done.bytes), (Ok(()), 2_000));
                assert!(sink.bytes == file(2));
            }
            Manifest::Dynamic => {
                let error = done.result.unwrap_err();
                assert_eq!(error.class, ErrorClass::Protocol, "{error}");
                assert!(sink.bytes.is_empty());
            }
        }
        assert_eq!(client.delete("k").result, Ok(()));
        assert_eq!(client.keys(), [""; 0]);
    }
}

#[test]
fn a_list_whose_segments_are_not_those_that_were_sent_makes_no_object() {
    let Some(mut client) = Client::live("lists", in_segments(Manifest::Static)) else { return };
    let content = &mut Numbered { file: 1, size: 10 };
    let part = Operation::PutPart { key: "k", upload: "u1", number: 1, content };
    assert_eq!(client.run(part).result, Ok(()));
    let parts = ["10-d41d8cd98f00b204e9800998ecf8427e".to_owned()];
    let complete = Operation::CompleteUpload { key: "k", upload: "u1", parts: &parts };
    let error = client.run(complete).result.unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Client, Some(400)));
    assert!(error.message.contains("Etag Mismatch"), "{error}");
    assert_eq!(client.stat("k").result.unwrap_err().class, ErrorClass::NotFound);
}

#[test]
fn segments_of_a_write_that_failed_are_removed_when_the_session_settles() {
    let segment = "plimsoll-segments";
    let fake = Fake::start(move |head| {
        let line = head.lines().next().unwrap_or_default();
        Some(Step::Answer(match () {
            () if line.starts_with("GET ") => {
                let path = line.split("prefix=").nth(1).unwrap_or_default();
                let prefix = path.split(['&', ' ']).next().unwrap_or_default();
                let names =
                    [1, 2].map(|number| format!("{{\"name\": \"{prefix}0000000{number}\"}}"));
                answer(200, "", &format!("[{}, {{\"name\": \"foreign\"}}]", names.join(", ")))
            }
            () if line.contains("00000002") && line.starts_with("PUT ") => answer(507, "", ""),
            () if line.starts_with("DELETE ") => answer(204, "", ""),
            () if line.contains(segment) => answer(201, "Etag: x\r\n", ""),
            () => answer(201, "", ""),
        }))
    });
    let sign_in = plimsoll_driver_swift::SignIn::Known { token: None };
    let mut config = SwiftConfig::new(sign_in, "c");
    config.storage = Some(address(&format!("http://127.0.0.1:{}/v1/a", fake.port)));
    in_segments(Manifest::Static)(&mut config);
    let mut client = Client::open(config).unwrap();
    let done = client.put("k", 1, WHOLE);
    assert_eq!(done.result.unwrap_err().class, ErrorClass::Server);
    assert_eq!((done.bytes, done.objects_count), (2 * SEGMENT, 0));
    let settled = client.runtime.block_on(client.session.settle());
    assert_eq!(settled, Settled { given_up_count: 1, left_count: 0 });
    let lines = fake.lines();
    assert!(lines[2].starts_with("GET /v1/a/c?format=json"), "{lines:?}");
    assert!(lines[3].starts_with("DELETE /v1/a/c/k/plimsoll-segments/"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("foreign")), "{lines:?}");
}
