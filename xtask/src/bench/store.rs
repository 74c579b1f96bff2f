//! The store that all contenders read and write: the oracle in a process of its own, or MinIO.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Work, plimsoll};
use crate::servers::Servers;
use crate::{process, tools};

/// Where the objects lie that clients without a signature read.
const OPEN_BUCKET: &str = "open";

/// A running store; dropping it ends it.
pub(super) struct Store {
    held: Held,
    /// `127.0.0.1:PORT`.
    pub(super) host: String,
    pub(super) access_key: String,
    pub(super) secret_key: String,
    /// What signs its certificate, where it speaks TLS.
    pub(super) authority: Option<PathBuf>,
    /// Where clients without keys read an object of that size, by its size in words, and write
    /// one under `written`: paths with a query.
    open: BTreeMap<&'static str, String>,
}

/// What ends with the store.
enum Held {
    Oracle(Child),
    Minio { _servers: Servers },
}

/// Where MinIO's objects lie that clients without keys read, by addresses that are signed for them.
const OPEN_OBJECTS: &str = "import boto3, botocore, json, sys
config = botocore.config.Config(signature_version='s3v4', s3={'addressing_style': 'path'})
store = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', config=config,
                     verify=sys.argv[2] or None)
store.create_bucket(Bucket='open')
paths = {}
def signed(call, key):
    at = {'Bucket': 'open', 'Key': key}
    url = store.generate_presigned_url(call, Params=at, ExpiresIn=86400)
    return url[len(sys.argv[1]):]
for name, size in json.loads(sys.argv[3]).items():
    store.put_object(Bucket='open', Key=name, Body=b'x' * size)
    paths[name] = signed('get_object', name)
paths['written'] = signed('put_object', 'written')
print(json.dumps(paths))
";

impl Store {
    /// Starts the oracle and writes an object of each size that unsigned clients read.
    pub(super) fn oracle(works: &[Work]) -> Result<Self> {
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
        let paths = works.iter().map(|work| work.size).chain(["written"]);
        let mut store = Self {
            held: Held::Oracle(child),
            host: String::new(),
            access_key,
            secret_key,
            authority: None,
            open: paths.map(|path| (path, format!("/{OPEN_BUCKET}/{path}"))).collect(),
        };
        read.context("the oracle printed no text")?;
        let Some((_, host)) = line.trim().split_once("http://") else {
            bail!("the oracle's first line names no address: {line:?}");
        };
        store.host = host.trim_end_matches('/').to_owned();
        store.put(&format!("/{OPEN_BUCKET}"), &[])?;
        for work in works {
            // Any bytes do: these clients do not look at them.
            store.put(store.open_path(work.size), &vec![b'x'; work.size_bytes])?;
        }
        Ok(store)
    }

    /// Starts MinIO, with TLS if asked, and writes an object of each size that clients without keys
    /// read.
    pub(super) fn minio(works: &[Work], with_tls: bool) -> Result<Self> {
        let servers = Servers::minio(&tools::install_minio()?, with_tls)?;
        let variables: BTreeMap<_, _> = servers.variables().into_iter().collect();
        let of = |name: &str| {
            variables.get(name).cloned().with_context(|| format!("MinIO has no {name}"))
        };
        let url = of(if with_tls { "PLIMSOLL_TEST_MINIO_TLS" } else { "PLIMSOLL_TEST_MINIO" })?;
        let (access_key, secret_key) =
            (of("PLIMSOLL_TEST_ACCESS_KEY")?, of("PLIMSOLL_TEST_SECRET_KEY")?);
        let authority = of("PLIMSOLL_TEST_MINIO_CA")?;
        let authority = if with_tls { authority } else { String::new() };
        let sizes: BTreeMap<_, _> = works.iter().map(|work| (work.size, work.size_bytes)).collect();
        let (python, site) = tools::install_python_packages()?;
        let mut script = Command::new(python);
        script.env("PYTHONPATH", site).env("AWS_ACCESS_KEY_ID", &access_key);
        script.env("AWS_SECRET_ACCESS_KEY", &secret_key);
        script.args(["-c", OPEN_OBJECTS, &url, &authority, &serde_json::to_string(&sizes)?]);
        let paths = process::printed(&mut script, "boto3")?;
        let paths: BTreeMap<String, String> = serde_json::from_str(&paths)?;
        let names = works.iter().map(|work| work.size).chain(["written"]);
        Ok(Self {
            held: Held::Minio { _servers: servers },
            host: url.split_once("://").context("a URL has a scheme")?.1.to_owned(),
            access_key,
            secret_key,
            authority: with_tls.then(|| authority.into()),
            open: names.map(|name| (name, paths[name].clone())).collect(),
        })
    }

    /// Returns the path of the object that clients without keys read, or of the one they write.
    pub(super) fn open_path(&self, name: &str) -> &str {
        &self.open[name]
    }

    /// Returns where that object is.
    pub(super) fn open_url(&self, name: &str) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.host, self.open_path(name))
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
        let Held::Oracle(child) = &mut self.held else { return };
        if let Err(error) = process::stop(child, Duration::from_secs(5)) {
            eprintln!("warning: the oracle could not be stopped: {error:#}");
        }
    }
}
