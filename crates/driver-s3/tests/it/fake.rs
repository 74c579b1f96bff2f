//! A server that plays a script: one step per request, whatever is asked for.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the server does with one request.
pub(crate) enum Step {
    /// Reads the whole request and answers.
    Answer(String),
    /// Reads the head only, answers, and closes.
    AnswerEarly(String),
    /// Reads the head only, answers, and reads no more until the client closes.
    AnswerEarlyAndWait(String),
    /// Reads the whole request, answers, and closes.
    AnswerAndClose(String),
    /// Reads the whole request and answers nothing while the connection lives.
    Ignore,
}

/// What is still to be played.
type Script = Arc<Mutex<VecDeque<Step>>>;

/// A running server and what it was asked.
pub(crate) struct Fake {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Returns an answer with a body.
pub(crate) fn answer(status: u16, body: &str) -> String {
    answer_with(status, "", body)
}

/// Returns an answer with headers, each ended by CRLF, and a body.
pub(crate) fn answer_with(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns the body of an error.
pub(crate) fn error_xml(code: &str) -> String {
    format!("<Error><Code>{code}</Code><Message>m</Message></Error>")
}

impl Fake {
    /// Starts a server that plays `script`, whatever connections the requests come on; afterwards
    /// it answers no more.
    pub(crate) fn start(script: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
        let kept = requests.clone();
        // The threads end with the script, or with the process.
        thread::spawn(move || {
            while !script.lock().unwrap().is_empty() {
                let (stream, _) = listener.accept().unwrap();
                let (script, kept) = (script.clone(), kept.clone());
                thread::spawn(move || serve(stream, &script, &kept));
            }
        });
        Self { port, requests }
    }

    /// Starts a server that answers the requests in order.
    pub(crate) fn answering(answers: impl IntoIterator<Item = String>) -> Self {
        Self::start(answers.into_iter().map(Step::Answer))
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, script: &Mutex<VecDeque<Step>>, requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    while let Some((mut request, body_len)) = read_head(&mut reader) {
        let Some(step) = script.lock().unwrap().pop_front() else {
            return;
        };
        if !matches!(step, Step::AnswerEarly(_) | Step::AnswerEarlyAndWait(_)) {
            let mut body = vec![0; body_len];
            reader.read_exact(&mut body).unwrap();
            request.push_str(&String::from_utf8_lossy(&body));
        }
        requests.lock().unwrap().push(request);
        if let Step::AnswerEarlyAndWait(text) = &step {
            reader.get_mut().write_all(text.as_bytes()).unwrap();
            // The client has its answer and gives the connection up; what it sent is thrown away.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
            return;
        }
        let (text, close) = match step {
            Step::Answer(text) => (text, false),
            Step::AnswerEarly(text) | Step::AnswerAndClose(text) => (text, true),
            Step::AnswerEarlyAndWait(_) => unreachable!("it was answered above"),
            Step::Ignore => (String::new(), false),
        };
        reader.get_mut().write_all(text.as_bytes()).unwrap();
        if close {
            return;
        }
    }
}

/// Returns a head and the length of the body that follows it, or `None` at the end of the
/// connection.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<(String, usize)> {
    let mut head = String::new();
    let mut body_len = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(len) = line.strip_prefix("content-length: ") {
            body_len = len.trim().parse().unwrap();
        }
        head.push_str(&line);
        if line == "\r\n" {
            return Some((head, body_len));
        }
    }
}
