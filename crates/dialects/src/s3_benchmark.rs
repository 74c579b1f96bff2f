//! The command lines of s3-benchmark, the fork with LIST2 and LISTver: what its flags ask for, the
//! workload that they come to, and each of its mistakes that is corrected.
//!
//! The table of `docs/coming-from-s3-benchmark.md` lists flags and corrections one by one.

mod corrections;
pub mod layout;
mod lower;
mod size;

use std::fmt;
use std::ops::RangeInclusive;

pub use corrections::CORRECTIONS;

pub use crate::correction::Correction;

use plimsoll_model::REDACTED;

use crate::command_line::Kind::{self, Number, Text};
use crate::command_line::{
    Flag, Given, LineError, Set, fill, find, go_help, go_number, read_go, set, taken, text,
};
use crate::spelling::did_you_mean;

/// How sizes are read, for people.
pub const SIZES: &str = "4M is 4,194,304 bytes, as in s3-benchmark";
/// The tests of one loop: each is a stage of the run, and a run has no more stages than numbers of
/// one byte.
pub const TESTS_PER_LOOP: u32 = 5;
/// The most loops of one run.
pub const LOOPS_MAX: u32 = 256 / TESTS_PER_LOOP;
/// A duration, threads or loops.
const MANY: RangeInclusive<u64> = 1..=i32::MAX as u64;

/// What a command line asks for. Its `Debug` form holds no key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Benchmark {
    /// `-a`.
    pub access_key: String,
    /// `-s`.
    pub secret_key: String,
    /// `-u`, read.
    pub address: Address,
    /// `-u` as written.
    pub url: String,
    /// `-b`.
    pub bucket: String,
    /// `-r`.
    pub region: String,
    /// `-d`, seconds of each test but DELETE.
    pub duration_s: u32,
    /// `-t`, workers.
    pub threads: u32,
    /// `-l`, how often the five tests are done.
    pub loops: u32,
    /// `-z`, read.
    pub size_bytes: u64,
    /// `-z` as written.
    pub size: String,
}

/// Where the store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The name or number; one of IPv6 without brackets.
    pub host: String,
    /// The port, if one is written.
    pub port: Option<u16>,
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Benchmark")
            .field("url", &self.url)
            .field("bucket", &self.bucket)
            .field("region", &self.region)
            .field("duration_s", &self.duration_s)
            .field("threads", &self.threads)
            .field("loops", &self.loops)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// What messages call the program.
const PROGRAM: &str = "s3-benchmark";

type Row = Flag<Set<Benchmark>>;

const fn flag(name: &'static str, kind: Kind, default: &'static str, to: Set<Benchmark>) -> Row {
    taken(name, kind, default, to)
}

/// Its flags, each with the line of the tool's own help.
pub(crate) static FLAGS: [Row; 9] = [
    flag("a", Text, "", |to, v| text(&mut to.access_key, v)).says("Access key"),
    flag("b", Text, "wasabi-benchmark-bucket", |to, v| text(&mut to.bucket, v))
        .says("Bucket for testing"),
    flag("d", Number, "60", |to, v| set(&mut to.duration_s, go_number(v, MANY)))
        .says("Duration of each test in seconds"),
    flag("l", Number, "1", |to, v| set(&mut to.loops, loops(v)))
        .says("Number of times to repeat test"),
    flag("r", Text, "us-east-1", |to, v| text(&mut to.region, v)).says("Region for testing"),
    flag("s", Text, "", |to, v| text(&mut to.secret_key, v)).says("Secret key"),
    flag("t", Number, "1", |to, v| set(&mut to.threads, go_number(v, MANY)))
        .says("Number of threads to run"),
    flag("u", Text, "http://s3.wasabisys.com", |to, v| text(&mut to.url, v))
        .says("URL for host with method prefix"),
    flag("z", Text, "1M", |to, v| {
        v.clone_into(&mut to.size);
        set(&mut to.size_bytes, size::parse(v))
    })
    .says("Size of objects in bytes with postfix K, M, and G"),
];

/// Returns what `s3-benchmark -help` tells.
pub fn help() -> String {
    go_help("Usage of s3-benchmark:", &FLAGS)
}

/// What people write for a flag of one letter.
const LONGER: [(&str, &str); 15] = [
    ("access", "-a"),
    ("access-key", "-a"),
    ("bucket", "-b"),
    ("duration", "-d"),
    ("loops", "-l"),
    ("region", "-r"),
    ("secret", "-s"),
    ("secret-key", "-s"),
    ("threads", "-t"),
    ("concurrent", "-t"),
    ("url", "-u"),
    ("host", "-u"),
    ("endpoint", "-u"),
    ("size", "-z"),
    ("obj.size", "-z"),
];

/// Returns what a command line asks for; `args` begin behind the name of the program.
pub fn from_args(args: &[String]) -> Result<Benchmark, LineError> {
    let values = read_go(args, PROGRAM, (&FLAGS, &[]), |given| Err(unknown(given)))?;
    let mut asked = Benchmark::default();
    fill(&FLAGS, &values, &mut asked)?;
    for (what, flag, key) in
        [("access key", "a", &asked.access_key), ("secret key", "s", &asked.secret_key)]
    {
        if key.is_empty() {
            let text =
                format!("there is no {what} (-{flag}); {PROGRAM} does not go without either");
            return Err(LineError::Form(text));
        }
    }
    asked.address = address(&asked.url).map_err(|why| {
        LineError::value(format!("`-u={}`", url_without_secrets(&asked.url)), why)
    })?;
    Ok(asked)
}

/// Returns the words of a command line without its keys, and without all that is not known.
pub fn without_secrets(args: &[String]) -> Vec<String> {
    let is_plain = |name: &str| find(&FLAGS, name).is_some() && !["a", "s"].contains(&name);
    let shown = |name: &str, value: &str| if is_plain(name) { value } else { REDACTED }.to_owned();
    crate::command_line::without_secrets(args, &|_| Some(Text), &shown)
}

fn unknown(given: &Given<'_>) -> LineError {
    let known = LONGER.iter().map(|(longer, flag)| (*longer, (*flag).to_owned()));
    let hint = did_you_mean(given.name, known);
    let written = match given.name.chars().next() {
        // A key that is written at once behind its letter.
        Some(letter @ ('a' | 's')) if hint.is_empty() => format!("`-{letter}{REDACTED}`"),
        _ => given.quoted(),
    };
    let letters: String = FLAGS.iter().map(|flag| format!(" -{}", flag.name)).collect();
    LineError::unknown(written, &format!("no flag of {PROGRAM}, which has{letters}"), &hint)
}

/// Reads how many loops there are.
fn loops(text: &str) -> Result<u32, String> {
    match go_number(text, MANY)? {
        loops if loops > LOOPS_MAX => Err(format!(
            "one run has at most {LOOPS_MAX} loops of {TESTS_PER_LOOP} tests; start it again for \
             more"
        )),
        loops => Ok(loops),
    }
}

/// Returns a URL without what may be a password, before `@`, or a token, behind `?` or `#`.
fn url_without_secrets(url: &str) -> String {
    let shown = match (url.rsplit_once('@'), url.split_once("://")) {
        (None, _) => url.to_owned(),
        (Some((_, host)), Some((scheme @ ("http" | "https"), _))) => format!("{scheme}://…@{host}"),
        (Some((_, host)), _) => format!("…@{host}"),
    };
    let end = shown.find(['?', '#']).unwrap_or(shown.len());
    shown[..end].to_owned()
}

/// Reads a URL of scheme, host and port.
fn address(url: &str) -> Result<Address, String> {
    let (tls, rest) = if let Some(rest) = url.strip_prefix("http://") {
        (false, rest)
    } else if let Some(rest) = url.strip_prefix("https://") {
        (true, rest)
    } else {
        return Err("it begins with http:// or https://".to_owned());
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['/', '?', '#', '@', ',', '{']) {
        return Err("it is a scheme, a host and a port, and nothing else".to_owned());
    }
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("it has no host".to_owned());
    }
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(format!("`{port}` is not a port, 1 to 65535 are")),
    });
    Ok(Address { tls, host: host.to_owned(), port: port.transpose()? })
}

#[cfg(test)]
mod tests;
