//! Keys that are replaced while sessions go on.

use plimsoll_driver::{Driver, Operation, Session};
use plimsoll_driver_s3::{Credentials, Keys, S3Driver, SharedKeys, Signature};
use plimsoll_model::Secret;

use crate::common::{self, Pattern, block_on, put};
use crate::fake::{Fake, answer};

fn keys(access_key: &str, token: &str) -> Keys {
    let secret = |text: &str| Secret::from(text.to_owned());
    Keys {
        access_key: access_key.to_owned(),
        secret_key: secret("S"),
        session_token: Some(secret(token)),
        source: None,
    }
}

#[test]
fn the_next_operation_is_signed_with_the_keys_that_hold_then() {
    for (signature, begins) in [(Signature::V4, "Credential=KEY/"), (Signature::V2, "AWS KEY:")] {
        let fake = Fake::answering(vec![answer(200, ""); 6]);
        let shared = SharedKeys::new(keys("A1", "t1"));
        let mut config = common::config(fake.port);
        config.credentials = Credentials::Keys(shared.clone());
        config.options.signature = signature;
        block_on(async {
            let driver = S3Driver::new(config).unwrap();
            let mut sessions = driver.open_sessions(&common::clock(), 2);
            for (access_key, token) in [("A1", "t1"), ("A2", "t2"), ("A3", "t3")] {
                shared.replace(keys(access_key, token)).unwrap();
                for session in &mut sessions {
                    assert_eq!(put(session, "k", 5).await.result, Ok(()));
                }
            }
        });
        let requests = fake.requests();
        for (request, number) in requests.iter().zip([1, 1, 2, 2, 3, 3]) {
            let credential = begins.replace("KEY", &format!("A{number}"));
            let token = format!("x-amz-security-token: t{number}\r\n");
            assert!(request.contains(&credential) && request.contains(&token), "{request}");
        }
    }
}

#[test]
fn forms_are_signed_with_the_keys_that_hold_then() {
    let fake = Fake::answering(vec![answer(204, ""); 2]);
    let shared = SharedKeys::new(keys("A1", "t1"));
    let mut config = common::config(fake.port);
    config.credentials = Credentials::Keys(shared.clone());
    block_on(async {
        let driver = S3Driver::new(config).unwrap();
        let mut session = driver.open_sessions(&common::clock(), 1).pop().unwrap();
        for (access_key, token) in [("A1", "t1"), ("A2", "t2")] {
            shared.replace(keys(access_key, token)).unwrap();
            let post = Operation::Post { key: "k", content: &mut Pattern(5) };
            assert_eq!(session.execute(None, post).await.result, Ok(()));
        }
    });
    for (request, number) in fake.requests().iter().zip([1, 2]) {
        let (key, token) = (format!("A{number}/20130524/"), format!("\r\nt{number}\r\n"));
        assert!(request.contains(&key) && request.contains(&token), "{request}");
    }
}
