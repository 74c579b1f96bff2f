//! Sign-ins, renewed tokens and answers that are wrong, played by a script.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_driver::{
    Admin as _, ByteRange, CreatedRoot, Driver as _, DriverError, MissingRoot, Operation,
    RootState, Session as _,
};
use plimsoll_driver_swift::{Address, Named, Service, SignIn, SwiftConfig, SwiftDriver, Who};
use plimsoll_model::ErrorClass;

use crate::fake::{Fake, Step, answer};
use crate::support::{Client, Kept, Numbered, address, clock, hidden};

fn at(fake: &Fake, path: &str) -> Address {
    address(&format!("http://127.0.0.1:{}{path}", fake.port))
}

fn v1(fake: &Fake) -> SwiftConfig {
    let auth = at(fake, "/auth/v1.0");
    SwiftConfig::new(SignIn::V1 { auth, user: "a:u".to_owned(), key: hidden("hush") }, "c")
}

/// Returns the configuration of a store that everybody may use.
fn open_to_all(fake: &Fake) -> SwiftConfig {
    let storage = Some(at(fake, "/v1/a"));
    SwiftConfig { storage, ..SwiftConfig::new(SignIn::Known { token: None }, "c") }
}

/// Plays a script to one session that needs no token.
fn playing(script: impl IntoIterator<Item = Step>) -> (Fake, Client) {
    let fake = Fake::playing(script);
    let client = Client::open(open_to_all(&fake)).unwrap();
    (fake, client)
}

#[test]
fn keystone_is_asked_once_and_the_store_with_its_token() {
    let keystones: [(&str, &str, bool); 2] =
        [("/v2.0", "POST /v2.0/tokens", false), ("/v3", "POST /v3/auth/tokens", true)];
    for (path, line, is_three) in keystones {
        let store = Fake::playing([Step::Answer(answer(200, "", "content"))]);
        let url = format!("http://127.0.0.1:{}/v1/AUTH_x", store.port);
        let body = match is_three {
            false => format!(
                r#"{{"access": {{"token": {{"id": "t0k"}}, "serviceCatalog": [{{"type":
                "object-store", "endpoints": [{{"region": "r", "publicURL": "{url}"}}]}}]}}}}"#
            ),
            true => format!(
                r#"{{"token": {{"catalog": [{{"type": "object-store", "name": "swift", "endpoints":
                [{{"interface": "public", "region": "r", "url": "{url}"}}]}}]}}}}"#
            ),
        };
        let headers = if is_three { "X-Subject-Token: t0k\r\n" } else { "" };
        let keystone = Fake::playing([Step::Answer(answer(200, headers, &body))]);
        let (auth, project) = (at(&keystone, path), Some(Named::Name("p".to_owned())));
        let user = Named::Name("u".to_owned());
        let who = Who::User { user, password: hidden("hush") };
        let service = Service { region: Some("r".to_owned()), ..Service::default() };
        let domain = || Named::Name("Default".to_owned());
        let sign_in = match is_three {
            false => SignIn::V2 { auth, who, project, service },
            true => {
                let (user_domain, project_domain) = (domain(), domain());
                SignIn::V3 { auth, who, project, user_domain, project_domain, service }
            }
        };
        let mut client = Client::open(SwiftConfig::new(sign_in, "c")).unwrap();
        assert_eq!(client.driver.endpoints(), [format!("127.0.0.1:{}", store.port)]);
        let (done, content) = client.get("k", None);
        assert_eq!((done.result, content.as_slice()), (Ok(()), &b"content"[..]));
        assert_eq!(keystone.lines(), [format!("{line} HTTP/1.1")]);
        assert!(keystone.requests()[0].contains("\"hush\""));
        let asked = &store.requests()[0];
        assert!(asked.starts_with("GET /v1/AUTH_x/c/k HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("\r\nX-Auth-Token: t0k\r\n") && !asked.contains("hush"), "{asked}");
    }
}

/// A store whose tokens are those that it has given, the last one only.
fn expiring() -> (Fake, Arc<AtomicU32>) {
    let given = Arc::new(AtomicU32::new(0));
    let valid = Arc::clone(&given);
    let port = Arc::new(Mutex::new(0));
    let own_port = Arc::clone(&port);
    let fake = Fake::start(move |head| {
        if head.starts_with("GET /auth/") {
            let number = valid.fetch_add(1, Ordering::SeqCst) + 1;
            let port = own_port.lock().unwrap();
            let headers = format!(
                "X-Auth-Token: t{number}\r\nX-Storage-Url: http://127.0.0.1:{port}/v1/a\r\n"
            );
            return Some(Step::Answer(answer(200, &headers, "")));
        }
        let token = format!("X-Auth-Token: t{}\r\n", valid.load(Ordering::SeqCst));
        let status = if head.contains(&token) { 201 } else { 401 };
        let status = if status == 201 && head.starts_with("GET ") { 200 } else { status };
        Some(Step::Answer(answer(status, "", "")))
    });
    *port.lock().unwrap() = fake.port;
    (fake, given)
}

#[test]
fn a_token_that_has_expired_is_renewed_once_for_all_sessions() {
    let (fake, given) = expiring();
    let clock = clock();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = runtime.block_on(SwiftDriver::open(v1(&fake), &clock)).unwrap();
    assert_eq!(given.load(Ordering::SeqCst), 1, "one sign-in opens all");
    // All tokens that were given are refused from now on.
    given.fetch_add(1, Ordering::SeqCst);
    let works: Vec<_> = (0..2)
        .map(|_| {
            let (driver, clock) = (driver.clone(), clock.clone());
            std::thread::spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                for mut session in driver.open_sessions(&clock, 4) {
                    let content = &mut Numbered { file: 1, size: 300_000 };
                    let put = Operation::Put { key: "k", content };
                    let done = runtime.block_on(session.execute(None, put));
                    assert_eq!((done.result, done.bytes), (Ok(()), 300_000));
                }
            })
        })
        .collect();
    works.into_iter().for_each(|work| work.join().unwrap());
    let sign_ins = fake.lines().iter().filter(|line| line.contains("/auth/")).count();
    assert_eq!(sign_ins, 2, "one at first, and one for eight sessions");
}

#[test]
fn a_request_that_is_sent_again_with_a_new_token_is_counted() {
    let (fake, given) = expiring();
    let mut client = Client::open(v1(&fake)).unwrap();
    given.fetch_add(1, Ordering::SeqCst);
    let resent = [client.put("k", 1, 10), client.get("k", None).0].map(|done| {
        assert_eq!(done.result, Ok(()));
        done.resent_count
    });
    assert_eq!(resent, [1, 0], "the token of the second is the new one");
}

#[test]
fn a_removal_from_a_container_that_is_not_there_is_none() {
    let removed = |body: &str| {
        let headers = "X-Trans-Id: tx0\r\n";
        let (_fake, mut client) = playing([Step::Answer(answer(404, headers, body))]);
        let done = client.delete("k");
        (done.result.map_err(|error| error.class), done.objects_count)
    };
    assert_eq!(removed(r#"{"Code":"NoSuchKey"}"#), (Ok(()), 1));
    assert_eq!(removed("<html><h1>Not Found</h1></html>"), (Ok(()), 1));
    assert_eq!(removed(r#"{"Code":"NoSuchBucket"}"#), (Err(ErrorClass::NotFound), 0));
}

#[test]
fn a_user_who_is_no_longer_known_is_denied_after_one_more_try() {
    let store = Fake::start(|_| Some(Step::Answer(answer(401, "", "<h1>Unauthorized</h1>"))));
    let url = format!("http://127.0.0.1:{}/v1/a", store.port);
    let headers = format!("X-Auth-Token: t\r\nX-Storage-Url: {url}\r\n");
    // Another sign-in is given, but its token is not accepted either.
    let auth = Fake::playing([1, 2].map(|_| Step::Answer(answer(200, &headers, ""))));
    let mut client = Client::open(v1(&auth)).unwrap();
    let error = client.put("k", 1, 10).result.unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(401)));
    assert_eq!((store.lines().len(), auth.lines().len()), (2, 2));
    // Now the sign-in itself fails, and says so.
    let error = client.stat("k").result.unwrap_err();
    assert_ne!(error.class, ErrorClass::NotFound);
    assert!(!error.message.contains("hush"), "{error}");
}

#[test]
fn sign_ins_that_go_wrong_say_so_and_show_no_secret() {
    let refusal = |step: Step| {
        let fake = Fake::playing([step]);
        let error = Client::open(v1(&fake)).err().unwrap();
        assert!(!format!("{error} {:?}", v1(&fake)).contains("hush"), "{error}");
        error
    };
    let of = |status, headers: &str| refusal(Step::Answer(answer(status, headers, "")));
    assert_eq!(of(401, "").class, ErrorClass::Denied);
    assert_eq!(of(503, "").class, ErrorClass::Server);
    assert_eq!(of(302, "Location: http://evil/\r\n").class, ErrorClass::Client);
    assert_eq!(of(200, "").class, ErrorClass::Protocol, "no token");
    let error = of(200, "X-Auth-Token: t\r\n");
    assert!(error.message.contains("`storage_url`"), "{error}");
    let cut = Step::AnswerAndClose("HTTP/1.1 200 OK\r\nX-Auth-Tok".to_owned());
    let error: DriverError = refusal(cut);
    assert!(error.message.starts_with("signing in: "), "{error}");
    assert_eq!(refusal(Step::EndlessHeaders).class, ErrorClass::Protocol);
}

#[test]
fn answers_that_are_wrong_are_told_from_those_that_are_refused() {
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.".to_owned();
    let class = |step: Step| {
        let (_fake, mut client) = playing([step]);
        let (done, _) = client.get("k", None);
        done.result.unwrap_err().class
    };
    assert_eq!(class(Step::AnswerAndClose(short)), ErrorClass::Truncated);
    assert_eq!(class(Step::EndlessHeaders), ErrorClass::Protocol);
    assert_eq!(class(Step::Answer(answer(302, "Location: /\r\n", ""))), ErrorClass::Client);
    assert_eq!(class(Step::Answer(answer(206, "", "x"))), ErrorClass::Protocol);
    assert_eq!(class(Step::Answer(answer(498, "", ""))), ErrorClass::Throttled);
    assert_eq!(class(Step::AnswerAndClose("nonsense\r\n\r\n".to_owned())), ErrorClass::Protocol);

    let range = Some(ByteRange { offset: 10, len: 10 });
    let ranged = |status, header: &str, body: &str| {
        let (_fake, mut client) = playing([Step::Answer(answer(status, header, body))]);
        let (done, content) = client.get("k", range);
        (done.result.map_err(|error| error.class), content.len())
    };
    let header = "Content-Range: bytes 10-19/50\r\n";
    assert_eq!(ranged(206, header, "0123456789"), (Ok(()), 10));
    assert_eq!(ranged(206, header, "01234").0, Err(ErrorClass::Truncated));
    assert_eq!(ranged(200, "", "0123456789"), (Err(ErrorClass::Protocol), 0));
    let other = "Content-Range: bytes 0-9/50\r\n";
    assert_eq!(ranged(206, other, "0123456789"), (Err(ErrorClass::Protocol), 0));
}

#[test]
fn lists_that_are_wrong_are_refused() {
    let class = |bodies: &[&str]| {
        let answers = bodies.iter().map(|body| Step::Answer(answer(200, "", body)));
        let (_fake, mut client) = playing(answers.collect::<Vec<_>>());
        let (done, _) = client.list("", 1);
        done.result.map_err(|error| error.class)
    };
    let a = r#"[{"name": "a", "bytes": 1}]"#;
    assert_eq!(class(&[a, "[]"]), Ok(()));
    for wrong in ["", "[", "{}", "<html>", r#"[{"bytes": 1}]"#] {
        let expected = if wrong.is_empty() { Ok(()) } else { Err(ErrorClass::Protocol) };
        assert_eq!(class(&[a, wrong]), expected, "{wrong}");
    }
    assert_eq!(class(&[a, a]), Err(ErrorClass::Protocol), "it goes in a circle");
}

#[test]
fn what_was_stored_is_compared_with_what_was_sent() {
    let class = |headers: &str| {
        let fake = Fake::playing([Step::Answer(answer(201, headers, ""))]);
        let config = SwiftConfig { checks_md5: true, chunked: true, ..open_to_all(&fake) };
        let done = Client::open(config).unwrap().put("k", 0, 3);
        let request = fake.requests().pop().unwrap();
        assert!(request.contains("\r\nTransfer-Encoding: chunked\r\n"), "{request}");
        assert!(!request.contains("Content-Length"), "{request}");
        assert!(request.contains("\r\n\r\n3\r\n"), "{request}");
        done.result.map_err(|error| error.class)
    };
    // `printf '\0\37\76' | md5sum`: the three bytes are 0, 31 and 62.
    assert_eq!(class("Etag: \"2d2e2d2dd9ad4ef7ae0acbbf8d1e2d4c\"\r\n"), Err(ErrorClass::Corrupt));
    assert_eq!(class(""), Err(ErrorClass::Protocol));
    let right = "Etag: f5d25c6c5c47baec29ab1d087f07dd58\r\n";
    assert_eq!(class(right), Ok(()));
}

#[test]
fn an_account_is_listed_where_no_container_is_named() {
    let (fake, mut client) =
        playing([Step::Answer(answer(200, "", r#"[{"name": "c1", "count": 2, "bytes": 9}]"#))]);
    let mut sink = Kept::default();
    let list = Operation::List { prefix: "c", page_size: 5, pages_max: None, sink: &mut sink };
    let done = client.runtime.block_on(client.session.execute(Some(""), list));
    assert_eq!((done.result, sink.entries), (Ok(()), vec![("c1".to_owned(), 9)]));
    assert_eq!(fake.lines(), ["GET /v1/a?format=json&limit=5&prefix=c HTTP/1.1"]);
}

/// Returns what a sweep of `run/` came to at a container that says so of its versions, and which
/// requests it made; a page is asked for again until it is empty.
fn swept(header: &str, pages: &'static [(&'static str, &'static str)]) -> (u64, Vec<String>) {
    let head = answer(204, header, "");
    let removed = AtomicU32::new(0);
    let fake = Fake::start(move |request| {
        let line = request.lines().next().unwrap_or_default();
        let first_time = removed.load(Ordering::SeqCst) == 0;
        Some(Step::Answer(match line.split(' ').next() {
            Some("HEAD") => head.clone(),
            Some("DELETE") => {
                removed.fetch_add(1, Ordering::SeqCst);
                answer(204, "", "")
            }
            _ => {
                let page = pages.iter().find(|(of, _)| first_time && line.contains(of));
                answer(200, "", page.map_or("[]", |(_, page)| page))
            }
        }))
    });
    let mut client = Client::open(open_to_all(&fake)).unwrap();
    let count = client.runtime.block_on(client.admin.sweep("run/")).unwrap();
    let removals = fake.lines().into_iter().filter(|line| line.starts_with("DELETE "));
    let mut removals: Vec<String> = removals.collect();
    removals.sort();
    (count, removals)
}

#[test]
fn a_sweep_takes_the_versions_that_a_container_keeps() {
    let page = r#"[{"name": "run/1", "version_id": "1.5", "is_latest": false, "bytes": 1},
        {"name": "run/1", "version_id": "2.5", "is_latest": true, "bytes": 0},
        {"name": "run2/1", "version_id": "3.5", "is_latest": true, "bytes": 1}]"#;
    let pages: &[_] = Box::leak(Box::new([("versions=true", page)]));
    let (count, removals) = swept("X-Versions-Enabled: True\r\n", pages);
    let of = |id: &str| format!("DELETE /v1/a/c/run/1?version-id={id} HTTP/1.1");
    assert_eq!((count, removals), (2, vec![of("1.5"), of("2.5")]));
}

#[test]
fn a_sweep_takes_what_another_container_keeps_of_the_run() {
    // The length of the name in three hexadecimal digits, the name, and the time.
    let page = r#"[{"name": "005run/1/0001.5", "bytes": 1}, {"name": "005run/2/0002.5"}]"#;
    let pages: &[_] =
        Box::leak(Box::new([("/v1/a/old%20ones?format=json&limit=1000&prefix=005run/", page)]));
    for header in ["X-History-Location", "X-Versions-Location"] {
        let (count, removals) = swept(&format!("{header}: old%20ones\r\n"), pages);
        let of = |name: &str| format!("DELETE /v1/a/old%20ones/{name} HTTP/1.1");
        assert_eq!((count, removals), (2, vec![of("005run/1/0001.5"), of("005run/2/0002.5")]));
    }
}

#[test]
fn a_container_is_created_and_removed_only_as_it_was_asked_for() {
    let ended = |missing_container, last| {
        let script = [404, 201, last].map(|status| Step::Answer(answer(status, "", "")));
        let fake = Fake::playing(script);
        let config = SwiftConfig { missing_container, ..open_to_all(&fake) };
        let mut client = Client::open(config).unwrap();
        let made = client.runtime.block_on(client.admin.ensure_root());
        let removed = client.runtime.block_on(client.admin.remove_created());
        (made.map_err(|error| error.message), removed.unwrap(), fake.lines().len())
    };
    let refused = "container `c` does not exist; create it, or add `create_bucket`".to_owned();
    assert_eq!(ended(MissingRoot::Refuse, 204), (Err(refused), None, 1));
    let created = Ok(RootState::Created);
    assert_eq!(ended(MissingRoot::CreateAndKeep, 204), (created.clone(), None, 2));
    let removed = Some(CreatedRoot::Removed);
    assert_eq!(ended(MissingRoot::Create, 204), (created.clone(), removed, 3));
    let stays = Some(CreatedRoot::Stays("somebody else uses it".to_owned()));
    assert_eq!(ended(MissingRoot::Create, 409), (created, stays, 3));
}
