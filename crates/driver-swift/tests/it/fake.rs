//! A server that plays a script: one step per request, whatever is asked for; it says what it was
//! asked.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the server does with one request.
pub(crate) enum Step {
    /// Reads the whole request and answers.
    Answer(String),
    /// Reads the whole request, answers, and closes.
    AnswerAndClose(String),
    /// Answers with headers until the client has enough.
    EndlessHeaders,
}

type Answers = dyn Fn(&str) -> Option<Step> + Send + Sync;

/// A running server and what it was asked.
pub(crate) struct Fake {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Returns an answer with headers, each ended by CRLF, and a body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

impl Fake {
    /// Starts a server that plays a script, whatever connections the requests come on; afterwards
    /// it closes connections.
    pub(crate) fn playing(script: impl IntoIterator<Item = Step>) -> Self {
        let script = Mutex::new(script.into_iter().collect::<VecDeque<_>>());
        Self::start(move |_| script.lock().unwrap().pop_front())
    }

    /// Starts a server that answers each request by what it is, without its body.
    pub(crate) fn start(answers: impl Fn(&str) -> Option<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        let answers: Arc<Answers> = Arc::new(answers);
        // The threads end with the process.
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (answers, kept) = (answers.clone(), kept.clone());
                thread::spawn(move || serve(stream, &*answers, &kept));
            }
        });
        Self { port, requests }
    }

    /// Returns the requests so far, each with its body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the first lines of the requests so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |request: &String| request.lines().next().unwrap_or_default().to_owned();
        self.requests().iter().map(line).collect()
    }
}

fn serve(stream: TcpStream, answers: &Answers, requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader) {
        let body = read_body(&mut reader, &head);
        requests.lock().unwrap().push(format!("{head}{body}"));
        match answers(&head) {
            None => return,
            Some(Step::Answer(text)) => reader.get_mut().write_all(text.as_bytes()).unwrap(),
            Some(Step::AnswerAndClose(text)) => {
                reader.get_mut().write_all(text.as_bytes()).unwrap();
                return;
            }
            Some(Step::EndlessHeaders) => {
                let stream = reader.get_mut();
                let mut line = b"HTTP/1.1 200 OK\r\n".to_vec();
                while stream.write_all(&line).is_ok() {
                    line = b"X-Filler: abcdefghijklmnopqrstuvwxyz\r\n".to_vec();
                }
                return;
            }
        }
    }
}

/// Returns a head, or `None` at the end of the connection.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        head.push_str(&line);
        if line == "\r\n" {
            return Some(head);
        }
    }
}

fn read_body(reader: &mut BufReader<TcpStream>, head: &str) -> String {
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let len = header("Content-Length: ").map_or(0, |len| len.parse().unwrap());
    let mut body = vec![0; len];
    reader.read_exact(&mut body).unwrap();
    if header("Transfer-Encoding: ").is_some() {
        while !body.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            body.push(byte[0]);
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
