//! Measures what one operation costs the oracle's thread in CPU time: `cargo run --release
//! --example cost`.
//!
//! Requests are signed beforehand, so the client's signing is not in the way; only the CPU time of
//! the server's thread is counted, which the Linux scheduler keeps in `schedstat`.

#![expect(clippy::disallowed_methods, reason = "reads the CPU time of a thread")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that may fail loudly")]

#[path = "../tests/it/client.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod client;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use plimsoll_oracle::{Oracle, OracleConfig};

use client::{Client, Payload};

const CONNECTIONS: usize = 32;

fn main() {
    let config = OracleConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        access_key: "key".to_owned(),
        secret_key: "secret".to_owned(),
        capacity_bytes: 4 << 30,
        threads: 1,
        anonymous: false,
        domain: None,
        md5_etags: false,
        tls: None,
        script: None,
        seed: 0,
    };
    let oracle = Oracle::start(config).unwrap();
    let client = Client {
        addr: oracle.addr(),
        keys: Some(("key", "secret")),
        ahead_secs: 0,
        host: None,
        payload: Payload::Unsigned,
    };
    client.request("PUT", "/bucket", &[], b"");
    let thread = server_thread();
    println!("operation     bytes   µs of server CPU an operation (best of 5)");
    for (size, rounds) in [(1 << 10, 1000), (1 << 20, 20), (10 << 20, 2)] {
        for method in ["PUT", "GET", "HEAD", "DELETE"] {
            let body = vec![7; if method == "PUT" { size } else { 0 }];
            let requests: Vec<Vec<u8>> = (0..CONNECTIONS)
                .map(|index| {
                    let target = format!("/bucket/{size}/object-{index:08}");
                    let head = client.head(method, &target, &[], &body);
                    [head.as_bytes(), body.as_slice()].concat()
                })
                .collect();
            let best = (0..5)
                .map(|_| {
                    let before = cpu_ns(&thread);
                    converse(&client, &requests, method, rounds);
                    (cpu_ns(&thread) - before) as f64 / (rounds * CONNECTIONS) as f64
                })
                .fold(f64::INFINITY, f64::min);
            println!("{method:9} {size:9} {:9.1}", best / 1000.0);
        }
    }
}

/// Sends every request on a connection of its own and reads all answers, that many times over.
fn converse(client: &Client, requests: &[Vec<u8>], method: &str, rounds: usize) {
    let connect = |_| TcpStream::connect(client.addr).unwrap();
    let mut sockets: Vec<TcpStream> = requests.iter().map(connect).collect();
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..rounds {
        for (socket, request) in sockets.iter_mut().zip(requests) {
            socket.write_all(request).unwrap();
        }
        for socket in &mut sockets {
            skip_answer(socket, method == "HEAD", &mut buffer);
        }
    }
}

/// Reads an answer without looking at its body.
fn skip_answer(socket: &mut TcpStream, headless: bool, buffer: &mut [u8]) {
    let count = socket.read(buffer).unwrap();
    let text = &buffer[..count];
    assert!(text.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(text));
    let end = text.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = std::str::from_utf8(&text[..end]).unwrap().to_ascii_lowercase();
    let length = head.split_once("content-length: ").map(|(_, tail)| tail.split_once("\r\n"));
    let length: usize = length.flatten().map_or(0, |(length, _)| length.parse().unwrap());
    let mut left = if headless { 0 } else { length - (count - end) };
    while left > 0 {
        left -= socket.read(buffer).unwrap();
    }
}

fn server_thread() -> String {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let named = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).unwrap().starts_with("oracle-")
    };
    tasks.into_iter().find(named).unwrap().display().to_string()
}

fn cpu_ns(thread: &str) -> u64 {
    let schedstat = fs::read_to_string(format!("{thread}/schedstat")).unwrap();
    schedstat.split(' ').next().unwrap().parse().unwrap()
}
