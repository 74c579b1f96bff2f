//! The command lines of s3-benchmark, the fork with LIST2 and LISTver: what its flags ask for, the
//! workload that they come to, and each of its mistakes that is corrected.
//!
//! The table of `docs/coming-from-s3-benchmark.md` lists flags and corrections one by one.

mod corrections;
pub mod layout;
mod lower;
mod size;

use std::fmt;

pub use corrections::CORRECTIONS;

pub use crate::correction::Correction;

use crate::spelling;

/// How sizes are read, for people.
pub const SIZES: &str = "4M is 4,194,304 bytes, as in s3-benchmark";
/// What stands for a key wherever a line is shown.
const HIDDEN: &str = "*REDACTED*";
/// The tests of one loop: each is a stage of the run, and a run has no more stages than numbers of
/// one byte.
pub const TESTS_PER_LOOP: u32 = 5;
/// The most loops of one run.
pub const LOOPS_MAX: u32 = 256 / TESTS_PER_LOOP;
/// The largest object that one PUT writes.
const SIZE_BYTES_MAX: u64 = 5 << 30;

/// What a command line asks for. Its `Debug` form holds no key.
#[derive(Clone, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What is wrong with a command line of s3-benchmark.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum S3BenchmarkError {
    /// It is not written as flags of Go programs are.
    #[error("{0}")]
    Form(String),
    /// s3-benchmark has no such flag.
    #[error(
        "`{flag}` is no flag of s3-benchmark, which has -a -b -d -l -r -s -t -u -z{}",
        did_you_mean(.nearest)
    )]
    Unknown {
        /// The flag.
        flag: String,
        /// Another one that looks like it.
        nearest: Option<&'static str>,
    },
    /// The value makes no sense.
    #[error("-{flag} `{value}`: {why}")]
    Value {
        /// The flag's letter.
        flag: &'static str,
        /// What was written.
        value: String,
        /// Why, or what to write.
        why: String,
    },
    /// It asks for [`help`].
    #[error("-help asks for help, and nothing else beside it")]
    Help,
    /// A key is not there.
    #[error("there is no {what} (-{flag}); s3-benchmark does not go without either")]
    NoKey {
        /// Which.
        what: &'static str,
        /// The flag's letter.
        flag: &'static str,
    },
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The values as written, before they are read.
struct Written {
    access_key: String,
    secret_key: String,
    url: String,
    bucket: String,
    region: String,
    duration: String,
    threads: String,
    loops: String,
    size: String,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            access_key: String::new(),
            secret_key: String::new(),
            url: "http://s3.wasabisys.com".to_owned(),
            bucket: "wasabi-benchmark-bucket".to_owned(),
            region: "us-east-1".to_owned(),
            duration: "60".to_owned(),
            threads: "1".to_owned(),
            loops: "1".to_owned(),
            size: "1M".to_owned(),
        }
    }
}

impl Written {
    fn of_flag(&mut self, name: &str) -> Option<&mut String> {
        Some(match name {
            "a" => &mut self.access_key,
            "b" => &mut self.bucket,
            "d" => &mut self.duration,
            "l" => &mut self.loops,
            "r" => &mut self.region,
            "s" => &mut self.secret_key,
            "t" => &mut self.threads,
            "u" => &mut self.url,
            "z" => &mut self.size,
            _ => return None,
        })
    }
}

/// What the program's help says of its flags: their letters, what they hold and what they mean.
const MEANINGS: [(&str, &str, &str); 9] = [
    ("a", "string", "Access key"),
    ("b", "string", "Bucket for testing"),
    ("d", "int", "Duration of each test in seconds"),
    ("l", "int", "Number of times to repeat test"),
    ("r", "string", "Region for testing"),
    ("s", "string", "Secret key"),
    ("t", "int", "Number of threads to run"),
    ("u", "string", "URL for host with method prefix"),
    ("z", "string", "Size of objects in bytes with postfix K, M, and G"),
];

/// Returns what `s3-benchmark -help` tells.
pub fn help() -> String {
    let mut defaults = Written::default();
    let flags = MEANINGS.iter().map(|(flag, kind, meaning)| {
        let default = match (defaults.of_flag(flag).map(|text| &**text), *kind) {
            (None | Some(""), _) => String::new(),
            (Some(number), "int") => format!(" (default {number})"),
            (Some(text), _) => format!(" (default \"{text}\")"),
        };
        format!("  -{flag} {kind}\n    \t{meaning}{default}\n")
    });
    let flags: String = flags.collect();
    format!("Usage of s3-benchmark:\n{flags}")
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
pub fn from_args(args: &[String]) -> Result<Benchmark, S3BenchmarkError> {
    let written = read(args)?;
    for (what, flag, key) in
        [("access key", "a", &written.access_key), ("secret key", "s", &written.secret_key)]
    {
        if key.is_empty() {
            return Err(S3BenchmarkError::NoKey { what, flag });
        }
    }
    let size_bytes = size::parse(&written.size).map_err(|why| value("z", &written.size, why))?;
    if size_bytes > SIZE_BYTES_MAX {
        return Err(value("z", &written.size, "one PUT writes at most 5G".to_owned()));
    }
    let loops = number("l", &written.loops)?;
    if loops > LOOPS_MAX {
        let why = format!(
            "one run has at most {LOOPS_MAX} loops of {TESTS_PER_LOOP} tests; start it again for \
            more"
        );
        return Err(value("l", &written.loops, why));
    }
    Ok(Benchmark {
        address: address(&written.url).map_err(|why| value("u", &written.url, why))?,
        duration_s: number("d", &written.duration)?,
        threads: number("t", &written.threads)?,
        loops,
        size_bytes,
        access_key: written.access_key,
        secret_key: written.secret_key,
        url: written.url,
        bucket: written.bucket,
        region: written.region,
        size: written.size,
    })
}

/// Returns the words of a command line without its keys.
pub fn without_secrets(args: &[String]) -> Vec<String> {
    let mut words = args.iter();
    let mut shown = Vec::new();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or_default();
        let (name, given) =
            name.split_once('=').map_or((name, None), |(name, given)| (name, Some(given)));
        let is_plain = Written::default().of_flag(name).is_some() && !matches!(name, "a" | "s");
        let hide = |value: &str| if is_plain { value.to_owned() } else { HIDDEN.to_owned() };
        match given {
            Some(value) => {
                let flag = word.split_once('=').map_or(&**word, |(flag, _)| flag);
                shown.push(format!("{flag}={}", hide(value)));
            }
            None => {
                shown.push(word.clone());
                shown.extend(words.next().map(|value| hide(value)));
            }
        }
    }
    shown
}

/// Reads flags as Go programs do: `-x v`, `-x=v`, each also with two dashes; the last of two wins.
fn read(args: &[String]) -> Result<Written, S3BenchmarkError> {
    let mut written = Written::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or_default();
        if name.is_empty() {
            let text = format!(
                "`{word}` is no flag; s3-benchmark would pass over it and all that follows, so \
                 leave it out"
            );
            return Err(S3BenchmarkError::Form(text));
        }
        let (name, given) =
            name.split_once('=').map_or((name, None), |(name, given)| (name, Some(given)));
        let Some(place) = written.of_flag(name) else {
            return Err(match name {
                "h" | "help" => S3BenchmarkError::Help,
                _ => unknown(word, name),
            });
        };
        let given = match given {
            Some(given) => given,
            None => words.next().ok_or_else(|| {
                S3BenchmarkError::Form(format!("`{word}` has no value behind it"))
            })?,
        };
        given.clone_into(place);
    }
    Ok(written)
}

fn unknown(word: &str, name: &str) -> S3BenchmarkError {
    let longer = spelling::nearest(name, LONGER.iter().map(|(longer, _)| *longer));
    let flag = match longer {
        // A key that is written at once behind its letter.
        None if name.starts_with(['a', 's']) => format!("-{}{HIDDEN}", &name[..1]),
        _ => word.split_once('=').map_or(word, |(flag, _)| flag).to_owned(),
    };
    let nearest = LONGER.iter().find(|(each, _)| Some(*each) == longer).map(|(_, flag)| *flag);
    S3BenchmarkError::Unknown { flag, nearest }
}

fn value(flag: &'static str, value: &str, why: String) -> S3BenchmarkError {
    let value = if flag == "u" { url_without_secrets(value) } else { value.to_owned() };
    S3BenchmarkError::Value { flag, value, why }
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

/// Reads a number of at least 1. Go reads `010` as 8 and takes 0, which ends in a panic or
/// does nothing.
fn number(flag: &'static str, text: &str) -> Result<u32, S3BenchmarkError> {
    let refused = |why: &str| Err(value(flag, text, why.to_owned()));
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return refused("it is a whole number in decimal digits");
    }
    match text.parse::<u32>() {
        Ok(0) => refused("it is 1 at least"),
        Ok(_) if text.starts_with('0') => {
            refused("s3-benchmark reads a number that begins with 0 as octal; write it without")
        }
        Ok(number) if number <= i32::MAX as u32 => Ok(number),
        _ => refused("the number is too large"),
    }
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
