//! Who hands out keys that live some seconds, as the agent of a container and a token service do,
//! and a store that refuses each key after its end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::Target;

/// How long each key is good for; they are fetched again when a third of that is left.
const LIFE: Duration = Duration::from_secs(6);
/// The secret of each key.
pub(super) const SECRET: &str = "hush-secret";

/// Returns the token that goes with a key.
pub(super) fn token_of(key: &str) -> String {
    format!("token-of-{key}")
}

/// By key, when it ends.
type Ends = Arc<Mutex<BTreeMap<String, SystemTime>>>;

/// Hands out another key each time.
pub(super) struct Issuer {
    url: String,
    ends: Ends,
}

impl Issuer {
    pub(super) fn start() -> Self {
        Self::named("KEY", Ends::default())
    }

    /// Starts another one, whose keys begin with this name and open the same stores.
    pub(super) fn beside(&self, name: &'static str) -> Self {
        Self::named(name, Arc::clone(&self.ends))
    }

    fn named(name: &'static str, ends: Ends) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let issued = Arc::clone(&ends);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let Some(head) = read_head(&mut stream) else { continue };
                let mut issued = issued.lock().unwrap();
                let key = format!("{name}{}", issued.len());
                let end = SystemTime::now() + LIFE;
                let expires = rfc_3339(end);
                let token = token_of(&key);
                let body = match head[0].starts_with("POST ") {
                    true => as_token_service(&key, &token, &expires),
                    false => format!(
                        r#"{{"AccessKeyId": "{key}", "SecretAccessKey": "{SECRET}",
                            "Token": "{token}", "Expiration": "{expires}"}}"#
                    ),
                };
                issued.insert(key, end);
                answer(stream.get_mut(), "200 OK", &body);
            }
        });
        Self { url, ends }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

fn as_token_service(key: &str, token: &str, expires: &str) -> String {
    format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
         <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>\
         <SessionToken>{token}</SessionToken><Expiration>{expires}</Expiration></Credentials>\
         </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

fn rfc_3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap();
    plimsoll_model::WallTime::from_unix_ns(since.as_nanos() as u64).to_string()
}

/// What the gate has seen.
#[derive(Default)]
struct Seen {
    /// By key, how many requests came with it.
    keys: BTreeMap<String, u64>,
    refused: u64,
}

/// A store that takes each request whose key is good at that instant.
pub(super) struct Gate {
    host: String,
    seen: Arc<Mutex<Seen>>,
}

impl Gate {
    /// Begins to take requests for a store that asks for no keys.
    pub(super) fn before(store: &Target, issuer: &Issuer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::<Mutex<Seen>>::default();
        let (to, ends, noted) = (store.host.clone(), Arc::clone(&issuer.ends), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (to, ends, noted) = (to.clone(), Arc::clone(&ends), Arc::clone(&noted));
                thread::spawn(move || carry(stream.unwrap(), &to, &ends, &noted));
            }
        });
        Self { host, seen }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns how many requests came with each key.
    pub(super) fn asked(&self) -> Vec<(String, u64)> {
        self.seen.lock().unwrap().keys.clone().into_iter().collect()
    }

    /// Returns how many requests came.
    pub(super) fn requests(&self) -> u64 {
        self.seen.lock().unwrap().keys.values().sum()
    }

    pub(super) fn refused(&self) -> u64 {
        self.seen.lock().unwrap().refused
    }
}

/// Carries one request to the store and its answer back, and closes the connection.
fn carry(stream: TcpStream, to: &str, ends: &Ends, seen: &Mutex<Seen>) {
    let mut stream = BufReader::new(stream);
    let Some(head) = read_head(&mut stream) else { return };
    let length = head.iter().find_map(|line| header(line, "content-length"));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    let key = key_of(&head).unwrap_or_else(|| panic!("nobody asks: {head:?}"));
    let is_good = ends.lock().unwrap().get(&key).is_some_and(|end| SystemTime::now() < *end);
    let mut noted = seen.lock().unwrap();
    *noted.keys.entry(key).or_default() += 1;
    noted.refused += u64::from(!is_good);
    drop(noted);
    if !is_good {
        let body = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.\
                    </Message></Error>";
        return answer(stream.get_mut(), "400 Bad Request", body);
    }
    let mut store = TcpStream::connect(to).unwrap();
    let of_keys = |line: &&String| {
        let names = ["authorization", "x-amz-security-token", "connection"];
        names.iter().all(|name| header(line, name).is_none())
    };
    for line in head.iter().filter(of_keys) {
        store.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }
    store.write_all(b"Connection: close\r\n\r\n").unwrap();
    store.write_all(&body).unwrap();
    let mut answered = Vec::new();
    store.read_to_end(&mut answered).unwrap();
    // Whoever asked may be gone at the end of the run.
    let _ = stream.get_mut().write_all(&answered);
}

/// Returns the key that signed a request, where the token that goes with it came along.
fn key_of(head: &[String]) -> Option<String> {
    let signed = head.iter().find_map(|line| header(line, "authorization"))?;
    let key = signed.split_once("Credential=")?.1.split('/').next()?;
    let token = head.iter().find_map(|line| header(line, "x-amz-security-token"))?;
    (token == token_of(key)).then(|| key.to_owned())
}

fn header<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim())
}

/// Returns the lines before the empty one; `None` where the connection ends before that.
fn read_head(stream: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for line in stream.lines() {
        match line.ok()? {
            line if line.is_empty() => return Some(lines),
            line => lines.push(line),
        }
    }
    None
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}
