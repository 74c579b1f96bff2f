//! A server that plays a script: one step per request, whatever is asked for.

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
    /// Reads the whole request, answers, and closes.
    AnswerAndClose(String),
    /// Reads the whole request and answers nothing while the connection lives.
    Ignore,
}

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
    /// Starts a server that plays `script`; afterwards it accepts no more.
    pub(crate) fn start(script: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, kept) = (script.into_iter().collect::<Vec<_>>(), requests.clone());
        // The thread ends with its script, or with the process.
        thread::spawn(move || {
            let mut script = script.into_iter().peekable();
            while script.peek().is_some() {
                let (stream, _) = listener.accept().unwrap();
                serve(stream, &mut script, &kept);
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

fn serve(
    stream: TcpStream,
    script: &mut impl Iterator<Item = Step>,
    requests: &Mutex<Vec<String>>,
) {
    let mut reader = BufReader::new(stream);
    while let Some((mut request, body_len)) = read_head(&mut reader) {
        let Some(step) = script.next() else {
            return;
        };
        if !matches!(step, Step::AnswerEarly(_)) {
            let mut body = vec![0; body_len];
            reader.read_exact(&mut body).unwrap();
            request.push_str(&String::from_utf8_lossy(&body));
        }
        requests.lock().unwrap().push(request);
        let (text, close) = match step {
            Step::Answer(text) => (text, false),
            Step::AnswerEarly(text) | Step::AnswerAndClose(text) => (text, true),
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
