//! The other clients: wrk and warp where they are on the path, and a bare socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::store::Store;
use super::{Sample, Work, cpu};
use crate::process;

/// warp prints no rate for less, since it leaves out two seconds at either end.
const WARP_DURATION_MIN: Duration = Duration::from_secs(10);
/// Few, so that preparing, which cannot be told apart in warp's CPU time, weighs little.
const WARP_OBJECTS: &str = "100";
/// What a bare socket reads at once.
const BARE_BUFFER_BYTES: usize = 256 << 10;
/// How long a bare socket waits for bytes.
const BARE_READ_MAX: Duration = Duration::from_secs(10);

/// Returns the programs that would be measured if they were there.
pub(super) fn missing() -> Vec<&'static str> {
    let programs = ["wrk", "warp"].into_iter();
    programs.filter(|program| process::on_path(program).is_none()).collect()
}

/// Runs every peer that knows this work; gives its place in the table, its name and its figures.
pub(super) fn run_all(
    store: &Store,
    work: &Work,
    duration: Duration,
) -> Result<Vec<(usize, &'static str, Sample)>> {
    let mut found = Vec::new();
    if work.verb == "get" && process::on_path("wrk").is_some() {
        found.push((1, "wrk", wrk(store, work, duration)?));
    }
    if store.authority.is_none() && (work.verb == "get" || work.uploads()) {
        found.push((2, "bare sockets", bare(store, work, duration)?));
    }
    if process::on_path("warp").is_some() {
        found.push((3, "warp", warp(store, work, duration.max(WARP_DURATION_MIN))?));
    }
    Ok(found)
}

fn wrk(store: &Store, work: &Work, duration: Duration) -> Result<Sample> {
    let mut command = Command::new("wrk");
    command
        .args(["-t", "1", "-c", &work.connections.to_string()])
        .args(["-d", &format!("{}s", duration.as_secs())])
        .arg(store.open_url(work.size));
    let finished = cpu::run(&mut command)?;
    if finished.stdout.contains("Non-2xx") || finished.stdout.contains("Socket errors") {
        bail!("wrk met errors: {}", finished.stdout);
    }
    let (ops_count, ops_per_sec) = read_wrk(&finished.stdout)
        .with_context(|| format!("wrk's report is not understood: {}", finished.stdout))?;
    Ok(of_process(&finished, ops_per_sec, ops_count))
}

/// Reads `  N requests in …` and `Requests/sec: N`.
fn read_wrk(report: &str) -> Option<(f64, f64)> {
    let ops_count = report.lines().find_map(|line| line.split_once(" requests in "))?.0;
    let rate = report.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    Some((ops_count.trim().parse().ok()?, rate.trim().parse().ok()?))
}

fn warp(store: &Store, work: &Work, duration: Duration) -> Result<Sample> {
    let mut command = Command::new("warp");
    command
        .env("WARP_ACCESS_KEY", &store.access_key)
        .env("WARP_SECRET_KEY", &store.secret_key)
        .current_dir(std::env::temp_dir())
        .args([work.verb, "--no-color", "--host", &store.host, "--bucket", "warp-bench"])
        .args(work.arguments())
        .args(["--duration", &format!("{}s", duration.as_secs())]);
    if store.authority.is_some() {
        command.args(["--tls", "--insecure"]);
    }
    if work.objects_count.is_some() {
        command.args(["--objects", WARP_OBJECTS]);
    }
    let finished = cpu::run(&mut command)?;
    let ops_per_sec = read_warp(&finished.stdout)
        .with_context(|| format!("warp's report is not understood: {}", finished.stdout))?;
    Ok(of_process(&finished, ops_per_sec, ops_per_sec * duration.as_secs_f64()))
}

/// Returns the figures of a client of which only the whole process is known.
fn of_process(finished: &cpu::Finished, ops_per_sec: f64, ops_count: f64) -> Sample {
    Sample {
        ops_per_sec,
        us_per_op: finished.cpu.as_secs_f64() * 1e6 / ops_count,
        whole_us_per_op: None,
        user_us_per_op: Some(finished.user.as_secs_f64() * 1e6 / ops_count),
    }
}

/// Reads the rate of ` * Average: 26.02 MiB/s, 1665.20 obj/s`; where there are several kinds of
/// operations, that of all of them comes last.
fn read_warp(report: &str) -> Option<f64> {
    let line = report.lines().rfind(|line| line.contains("* Average:"))?;
    let (before, _) = line.split_once(" obj/s")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Reads or writes one object per connection over and over with nothing but blocking system calls
/// in between.
///
/// The connections take turns, so that while one is served the answers to the others arrive.
fn bare(store: &Store, work: &Work, duration: Duration) -> Result<Sample> {
    let (host, size) = (&store.host, work.size_bytes);
    let (request, answer_bytes) = match work.uploads() {
        true => {
            let path = store.open_path("written");
            let head =
                format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n\r\n");
            ([head.into_bytes(), vec![b'x'; size]].concat(), 0)
        }
        false => {
            let path = store.open_path(work.size);
            (format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(), size)
        }
    };
    let mut connections = Vec::new();
    for _ in 0..work.connections {
        let mut connection = TcpStream::connect(host)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(BARE_READ_MAX))?;
        connection.write_all(&request)?;
        connections.push(connection);
    }
    let mut buffer = vec![0_u8; BARE_BUFFER_BYTES];
    let mut ops_count = 0_u32;
    let (began, cpu_began) = (Instant::now(), cpu::of_this_thread());
    while began.elapsed() < duration {
        for connection in &mut connections {
            read_answer(connection, &mut buffer, answer_bytes)?;
            connection.write_all(&request)?;
            ops_count += 1;
        }
    }
    let cpu = cpu::of_this_thread() - cpu_began;
    Ok(Sample {
        ops_per_sec: f64::from(ops_count) / began.elapsed().as_secs_f64(),
        us_per_op: cpu.as_secs_f64() * 1e6 / f64::from(ops_count),
        whole_us_per_op: None,
        user_us_per_op: None,
    })
}

/// Reads one answer whose body has `body_bytes`, keeping nothing of it.
fn read_answer(connection: &mut TcpStream, buffer: &mut [u8], body_bytes: usize) -> Result<()> {
    let (mut got, mut wanted) = (0, None);
    while wanted.is_none_or(|wanted| got < wanted) {
        let from = if wanted.is_none() { got } else { 0 };
        let len = connection.read(&mut buffer[from..])?;
        if len == 0 {
            bail!("the store closed a bare connection");
        }
        got += len;
        if wanted.is_none() {
            wanted = head_len(&buffer[..got]).map(|head| head + body_bytes);
        }
    }
    Ok(())
}

fn head_len(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_peers_are_read() {
        let wrk = "  1 threads and 32 connections\n  415306 requests in 5.10s, 515.79MB read\n\
                   Requests/sec:  81432.50\nTransfer/sec:    101.13MB\n";
        assert_eq!(read_wrk(wrk), Some((415_306.0, 81_432.5)));
        assert_eq!(read_wrk("unable to connect"), None);
        assert_eq!(read_warp("x\n * Average: 26.02 MiB/s, 1665.20 obj/s\n"), Some(1_665.2));
        assert_eq!(read_warp(" * Average: 1665.20 obj/s (7s)\n"), Some(1_665.2));
        let mixed = "Report: DELETE.\n * Average: 289.90 obj/s\n\n\
                     Report: GET.\n * Average: 81.25 MiB/s, 1299.95 obj/s\n\n\
                     Report: Total.\n * Average: 108.31 MiB/s, 2889.97 obj/s\n";
        assert_eq!(read_warp(mixed), Some(2_889.97));
    }
}
