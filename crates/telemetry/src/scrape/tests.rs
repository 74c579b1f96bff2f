//! Pages that are as they should be, and pages that are not.
#![expect(clippy::disallowed_methods, reason = "a test makes a record and waits for a thread")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use plimsoll_engine::RunClock;
use plimsoll_record::{RunDirectory, Scraped};

use super::*;

fn asked(urls: &[&str]) -> ScrapeAsked {
    ScrapeAsked {
        name: "--scrape",
        urls: urls.iter().map(|url| Secret::from((*url).to_owned())).collect(),
        every: Duration::from_secs(3_600),
        matching: Vec::new(),
        tls_ca: None,
    }
}

/// Answers one request after the other with what `answer` writes, and keeps the heads.
fn serve(
    answer: impl Fn(&mut TcpStream, usize) + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            let (mut head, mut buffer) = (Vec::new(), [0; 4_096]);
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match socket.read(&mut buffer) {
                    Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            seen.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
            answer(&mut socket, number);
        }
    });
    (addr, heads)
}

/// Returns an answer with a body.
fn page(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{more}\r\n{body}")
}

fn run_directory(place: &Path) -> RunDirectory {
    std::fs::write(place.join("run.json"), "{}").unwrap();
    RunDirectory::open(place).unwrap()
}

/// Reads pages twice, as a run does that ends at once, and returns what is kept and what was told.
fn scraped(asked: &ScrapeAsked) -> (Scraped, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let directory = run_directory(place.path());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell: Tell = {
        let told = Arc::clone(&told);
        Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()))
    };
    let scrape = Scrape::new(asked).unwrap().unwrap();
    let clock: SharedClock = Arc::new(RunClock::start());
    let scraper = scrape.begin(directory.begin_scraped().unwrap(), &clock, tell).unwrap();
    // The first reading begins at once.
    let deadline = Instant::now() + Duration::from_secs(60);
    while directory.read_scraped().unwrap().unwrap().scrapes.len() < asked.urls.len() {
        assert!(Instant::now() < deadline, "nothing was read");
        thread::yield_now();
    }
    drop(scraper);
    let told = told.lock().unwrap().clone();
    (directory.read_scraped().unwrap().unwrap(), told)
}

#[test]
fn a_page_is_read_with_its_token_and_only_what_changed_is_kept() {
    let bodies = [
        "# TYPE a_total counter\na_total{x=\"1\"} 1\nb 2\nc_bucket{le=\"1\"} 3\n\
         c_distribution{le=\"1\"} 3\nd 4\n",
        "# TYPE a_total counter\na_total{x=\"1\"} 5\nb 2\nbad\ne NaN\n",
    ];
    let (addr, heads) = serve(move |socket, number| {
        socket.write_all(page("200 OK", "", bodies[number.min(1)]).as_bytes()).unwrap();
    });
    let (scraped, told) = scraped(&asked(&[&format!("http://tok%2Fen@{addr}/m?secret=1")]));
    assert_eq!(told, Vec::<String>::new());
    let names: Vec<(&str, bool)> =
        scraped.series.iter().map(|of| (&*of.name, of.is_counter)).collect();
    assert_eq!(names, [("a_total", true), ("b", false), ("d", false), ("e", false)]);
    let values: Vec<_> = scraped.scrapes.iter().map(|of| of.values.clone()).collect();
    assert_eq!(values[0], [(0, Some(1.0)), (1, Some(2.0)), (2, Some(4.0))]);
    // `b` is as it was, `d` is gone, and `e` was never a number.
    assert_eq!(values[1], [(0, Some(5.0)), (2, None)]);
    assert_eq!(scraped.scrapes[1].lines_unread_count, 1);
    for scrape in &scraped.scrapes {
        assert!(scrape.start_ns < scrape.end_ns && scrape.failure.is_none(), "{scrape:?}");
    }
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("GET /m?secret=1 HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[0].contains("\r\nauthorization: Bearer tok/en\r\n"), "{}", heads[0]);
}

#[test]
fn names_are_chosen_by_pattern() {
    let (addr, heads) = serve(|socket, _| {
        let body = "a_x 1\nb_x 2\na_bucket{le=\"1\"} 3\n";
        socket.write_all(page("200 OK", "", body).as_bytes()).unwrap();
    });
    let url = format!("http://user:pass%3Aword@{addr}");
    let matching = vec!["a_*".parse().unwrap(), "c".parse().unwrap()];
    let (scraped, _) = scraped(&ScrapeAsked { matching, ..asked(&[&url]) });
    let names: Vec<&str> = scraped.series.iter().map(|of| &*of.name).collect();
    assert_eq!(names, ["a_x", "a_bucket"]);
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("GET /metrics HTTP/1.1\r\n"), "{}", heads[0]);
    // `user:pass:word`.
    assert!(heads[0].contains("authorization: Basic dXNlcjpwYXNzOndvcmQ=\r\n"), "{}", heads[0]);
}

#[test]
fn what_a_page_repeats_of_its_address_is_not_shown() {
    let refusal = format!("Cannot GET /m?token=hush-query&a=1 {}hush-query", " ".repeat(170));
    let (addr, _) = serve(move |socket, _| {
        let said = format!("{refusal} user:hush-pass dXNlcjpodXNoLXBhc3M= hush-pass");
        socket.write_all(page("403 Forbidden", "", &said).as_bytes()).unwrap();
    });
    let (scraped, told) =
        scraped(&asked(&[&format!("http://user:hush%2Dpass@{addr}/m?token=hush-query&a=1")]));
    let failure = scraped.scrapes[0].failure.clone().unwrap();
    for text in told.iter().chain([&failure]) {
        assert!(!text.contains("hush") && !text.contains("dXNlcjpo"), "{text}");
    }
    assert!(failure.contains("403: Cannot GET /m?*REDACTED* *REDACTED*"), "{failure}");
    // Nor is a part of it, wherever the answer is cut.
    let (addr, _) = serve(move |socket, _| {
        let said = format!("{}hush-query", " ".repeat((16 << 10) - 5));
        socket.write_all(page("403 Forbidden", "", &said).as_bytes()).unwrap();
    });
    let (scraped, _) = self::scraped(&asked(&[&format!("http://{addr}/m?token=hush-query")]));
    let failure = scraped.scrapes[0].failure.clone().unwrap();
    assert!(failure.contains("403: *REDACTED*;"), "{failure}");
}

#[test]
fn a_hostile_page_is_told_of_in_one_sentence_and_costs_only_itself() {
    let long = || format!("# {}\n", "x".repeat(1 << 20)).repeat(20);
    let too_many: String = (0..keep::SERIES_MAX + 7).map(|n| format!("a{n} 1\n")).collect();
    let answers: Vec<(String, &str)> = vec![
        (page("200 OK", "", "<html>no metrics</html>"), "holds no metrics"),
        (page("403 Forbidden", "", "who are\nyou?"), "it answered 403: who are you?; a token"),
        (
            page("403 Forbidden", "", "<Error><Code>Denied</Code><Message>Not you</Mess"),
            "it answered 403: Denied Not you; a token",
        ),
        (
            page("302 Found", "location: https://u:p@h/x?token=y\r\n", ""),
            "302, which leads to https://h/x; name",
        ),
        (page("200 OK", "content-encoding: gzip\r\n", "x"), "encoded as \"gzip\""),
        ("HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n".to_owned(), "longer than 16 MiB"),
        (format!("HTTP/1.1 200 OK\r\n\r\n{}", long()), "longer than 16 MiB"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\na 1".to_owned(), "--scrape"),
        ("SSH-2.0-x\r\n".to_owned(), "--scrape"),
        (String::new(), "--scrape"),
        (page("200 OK", "", &too_many), "more than 2000 series"),
    ];
    for (answer, expected) in answers {
        let (addr, _) = serve(move |socket, _| {
            // Who asks may have gone away, as it should where the answer is too long.
            let _ = socket.write_all(answer.as_bytes());
        });
        let (scraped, told) = scraped(&asked(&[&format!("http://secret-token@{addr}/x")]));
        assert_eq!(told.len(), 1, "{expected}: {told:?}");
        assert!(told[0].contains(expected), "{expected}: {told:?}");
        let with = format!("--scrape: http://{addr}/x: ");
        assert!(told[0].starts_with(&with) && !told[0].contains("secret-token"), "{told:?}");
        assert_eq!(scraped.scrapes.len(), 2, "{expected}");
        let failed = scraped.scrapes.iter().filter(|of| of.failure.is_some()).count();
        assert_eq!(failed, if expected.contains("series") { 0 } else { 2 }, "{expected}");
        assert!(scraped.series.len() <= keep::SERIES_MAX);
    }
}

#[test]
fn a_page_that_hangs_is_not_waited_for_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let place = tempfile::tempdir().unwrap();
    let directory = run_directory(place.path());
    let clock: SharedClock = Arc::new(RunClock::start());
    let scrape = Scrape::new(&asked(&[&url])).unwrap().unwrap();
    let writer = directory.begin_scraped().unwrap();
    let scraper = scrape.begin(writer, &clock, Arc::new(|_| ())).unwrap();
    // It is asked, and never answered.
    let held = listener.accept().unwrap();
    let began = clock.now();
    drop(scraper);
    let took = clock.now().since(began);
    drop(held);
    assert!(took < SCRAPE_MAX, "{took:?}");
    let scraped = directory.read_scraped().unwrap().unwrap();
    let failure = scraped.scrapes.last().unwrap().failure.as_deref();
    assert_eq!(failure, Some("no whole answer within 2 s"));
}

#[test]
fn addresses_that_cannot_be_are_refused_without_being_repeated() {
    for (url, why) in [
        ("ftp://secret@h/", "does not begin with http://"),
        ("http://secret%0d%0a@h/", "not allowed in a header"),
        ("http://secret%ff@h/", "not UTF-8"),
        ("http://secret@/x", "names no host"),
    ] {
        let refused = Scrape::new(&asked(&[url])).err().unwrap().to_string();
        assert!(refused.starts_with("--scrape: ") && refused.contains(why), "{url}: {refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
    assert!(Scrape::new(&asked(&[""])).unwrap().is_none());
    let pages = Scrape::new(&asked(&["https://t@h:9/a?b=c", "http://h"])).unwrap().unwrap().pages();
    let urls: Vec<&str> = pages.iter().map(|page| &*page.url).collect();
    assert_eq!(urls, ["https://h:9/a?*REDACTED*", "http://h/metrics"]);
    let many = vec!["http://h"; PAGES_MAX + 1];
    assert!(Scrape::new(&asked(&many)).is_err());
}
