//! The store that all contenders read and write: the oracle in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{WORKS, plimsoll};
use crate::process;

/// Where the objects lie that clients without a signature read.
const OPEN_BUCKET: &str = "open";

/// A running store; dropping it ends it.
pub(super) struct Store {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub(super) host: String,
    pub(super) access_key: String,
    pub(super) secret_key: String,
}

impl Store {
    /// Starts the store and writes an object of each size that unsigned clients read.
    pub(super) fn start() -> Result<Self> {
        let (access_key, secret_key) = ("bench".to_owned(), process::random_hex(20)?);
        let mut command = Command::new(plimsoll::program());
        command
            // One thread per core, as anybody would run it: with fewer, what is measured is how
            // content crosses from the store's core to the client's.
            .args(["oracle", "--listen", "127.0.0.1:0", "--anonymous"])
            .env("PLIMSOLL_ACCESS_KEY", &access_key)
            .env("PLIMSOLL_SECRET_KEY", &secret_key)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = process::spawn(&mut command)?;
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        // From here on the child is ended on every way out.
        let mut store = Self { child, host: String::new(), access_key, secret_key };
        read.context("the oracle printed no text")?;
        let Some((_, host)) = line.trim().split_once("http://") else {
            bail!("the oracle's first line names no address: {line:?}");
        };
        store.host = host.trim_end_matches('/').to_owned();
        store.put(&format!("/{OPEN_BUCKET}"), &[])?;
        for work in WORKS {
            // Any bytes do: these clients do not look at them.
            store.put(&store.open_path(work.size), &vec![b'x'; work.size_bytes])?;
        }
        Ok(store)
    }

    /// Returns the path of the object that unsigned clients read.
    pub(super) fn open_path(&self, size: &str) -> String {
        format!("/{OPEN_BUCKET}/{size}")
    }

    fn put(&self, path: &str, body: &[u8]) -> Result<()> {
        let mut stream = TcpStream::connect(&self.host)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (host, len) = (&self.host, body.len());
        write!(
            stream,
            "PUT {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Length: {len}\r\n\r\n"
        )?;
        stream.write_all(body)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200") {
            bail!("the oracle refused PUT {path}: {answer}");
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = process::stop(&mut self.child, Duration::from_secs(5)) {
            eprintln!("warning: the oracle could not be stopped: {error:#}");
        }
    }
}
